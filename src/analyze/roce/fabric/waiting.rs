//! What waits in a fabric, and until when: requests for what is said of them, messages for more of their packets.
//!
//! Whatever is due is done before the next packet is looked at. So it does not matter when else it is done, and how many packets
//! are told at a time: that decides when memory is given back, and nothing else.

use std::cmp::Reverse;

use super::Fabric;
use crate::analyze::Moment;

/// Queue pairs that may be quiet are looked at this often, in capture time.
const REST_EVERY_NS: i64 = 1_000_000_000;

/// A queue pair with requests that wait: the frame and time of the first, as it was when it was looked at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due(Reverse<(u64, i64, u32)>);

impl Due {
    fn new(since: Moment, channel: u32) -> Self {
        Self(Reverse((since.frame, since.ns, channel)))
    }

    fn since(&self) -> Moment {
        let Reverse((frame, ns, _)) = self.0;
        Moment { ns, frame }
    }

    fn channel(&self) -> u32 {
        self.0.0.2
    }
}

impl Fabric {
    /// Judges the requests that have waited too long by now. Where the tap is shows in what is said of them, so that is done for
    /// all queue pairs before a packet tells more of it.
    pub(super) fn catch_up(&mut self, now: Moment) {
        while let Some(due) = self.due.peek().copied().filter(|due| now.is_beyond(due.since(), &self.limits)) {
            self.due.pop();
            let Self { channels, pairs, limits, out, .. } = self;
            let Some(channel) = channels.get_mut(due.channel() as usize) else { continue };
            let Some(pair) = pairs.get(channel.ends.pair as usize) else { continue };
            channel.expire(now, limits, &pair.path, out);
            channel.is_due = channel.waits_since().is_some();
            if let Some(since) = channel.waits_since() {
                self.due.push(Due::new(since, due.channel()));
            }
        }
    }

    /// Something is about to happen to a queue pair.
    pub(super) fn catch_up_with(&mut self, index: u32, now: Moment) {
        if let Some(channel) = self.channels.get_mut(index as usize) {
            channel.catch_up(now, &self.limits, &mut self.out, index);
        }
    }

    /// Looks after a queue pair that something happened to.
    pub(super) fn keep_watch(&mut self, index: u32) {
        let Some(channel) = self.channels.get_mut(index as usize) else { return };
        if !channel.is_active {
            channel.is_active = true;
            self.active.push(index);
        }
        if let Some(since) = channel.waits_since().filter(|_| !channel.is_due) {
            channel.is_due = true;
            self.due.push(Due::new(since, index));
        }
    }

    /// Gives out what is due, and lets quiet queue pairs give memory back.
    pub fn rest(&mut self, now: Moment) {
        self.catch_up(now);
        if self.next_rest_ns.is_some_and(|next| now.ns < next) {
            return;
        }
        self.next_rest_ns = Some(now.ns.saturating_add(REST_EVERY_NS));
        let Self { active, channels, limits, out, .. } = self;
        active.retain(|index| {
            let Some(channel) = channels.get_mut(*index as usize) else { return false };
            channel.is_active = !channel.catch_up(now, limits, out, *index);
            channel.is_active
        });
    }

    /// Gives out the messages with numbers below `before`, finished or not, since too many wait behind them. `next` is the number
    /// of the next message that begins.
    pub fn end_messages(&mut self, before: u64, next: u64) {
        if self.oldest_message >= before {
            return;
        }
        self.oldest_message = next;
        for (index, channel) in self.channels.iter_mut().enumerate() {
            channel.end_messages(before, &mut self.out, index as u32);
            self.oldest_message = self.oldest_message.min(channel.messages.first_id().unwrap_or(next));
        }
    }

    /// The capture is over.
    pub fn finish(&mut self, now_ns: i64) {
        for (index, channel) in self.channels.iter_mut().enumerate() {
            if let Some(pair) = self.pairs.get(channel.ends.pair as usize) {
                channel.finish(now_ns, &pair.path, &mut self.out, index as u32);
            }
        }
    }
}
