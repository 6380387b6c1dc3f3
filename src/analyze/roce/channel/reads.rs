//! READs whose span is not known at once.

use super::*;

/// A READ whose span is not known yet: the path MTU has not been seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRead {
    pub psn: Psn,
    pub bytes: u32,
    /// Running number of its message.
    pub message: u64,
}

impl Channel {
    /// A request after a READ of unknown span tells how many numbers the READ took.
    pub(super) fn close_open_read(&mut self, psn: Psn) {
        let Some(open) = self.open_read.take() else { return };
        let taken = psn.since(open.psn);
        let is_next = self.requester.next() == Some(open.psn.plus(1));
        if taken < 1 || !is_next || taken as u32 > open.bytes.div_ceil(PATH_MTUS[0]).max(1) {
            return;
        }
        let mut fitting = PATH_MTUS.iter().filter(|mtu| open.bytes.div_ceil(**mtu).max(1) == taken as u32);
        let Some(mtu) = fitting.next() else { return };
        if fitting.next().is_none() && taken > 1 {
            self.path_mtu = self.path_mtu.or(Some(*mtu));
        }
        self.span_open_read(&open, *mtu);
    }

    /// The first packet of a response tells the path MTU.
    pub(super) fn size_open_read(&mut self) {
        let Some(mtu) = self.path_mtu else { return };
        if let Some(open) = self.open_read.take()
            && self.requester.next() == Some(open.psn.plus(1))
        {
            self.span_open_read(&open, mtu);
        }
    }

    fn span_open_read(&mut self, open: &OpenRead, mtu: u32) {
        let span = open.bytes.div_ceil(mtu).max(1);
        let next = open.psn.plus(span);
        self.messages.set_read_span(open.message, mtu);
        self.requester.correct_next(next);
        if self.responder.next() == Some(open.psn.plus(1)) {
            self.responder.correct_next(next);
        }
        if let Some(waiting) = self.waiting.iter_mut().rev().find(|waiting| waiting.psn == open.psn) {
            waiting.span = span;
        }
    }
}
