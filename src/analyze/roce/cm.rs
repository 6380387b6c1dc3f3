//! Connections as the connection manager opens and closes them: which queue pairs belong together.

use std::collections::VecDeque;

use super::event::{RoceEvent, RoceEventKind};
use super::psn::Psn;
use super::types::RoceSeen;
use crate::wire::{CmKind, CmMessage};

/// Connections being opened or closed that are remembered.
const MOST_OPEN: usize = 1_024;

/// Two queue pairs that belong together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// Direction of the active side's requests.
    pub direction: u8,
    /// Queue pair of each side, and the number of its first request: the other side chose it. `None` where the snap length
    /// cut it off.
    pub active: (u32, Option<Psn>),
    pub passive: (u32, Option<Psn>),
    pub path_mtu: Option<u32>,
}

#[derive(Debug)]
struct Opening {
    pair: u32,
    direction: u8,
    active_id: u32,
    passive_id: Option<u32>,
    qpn: u32,
    psn: Option<Psn>,
    passive_qpn: u32,
    path_mtu: Option<u32>,
    event: Option<RoceEvent>,
}

#[derive(Debug, Default)]
pub(super) struct CmWatch {
    opening: VecDeque<Opening>,
    closing: VecDeque<(u32, u32, u32, RoceEvent)>,
}

/// What a message came to.
#[derive(Debug, Default)]
pub(super) struct CmNews {
    pub opened: Option<Opened>,
    pub event: Option<RoceEvent>,
}

impl CmWatch {
    pub fn on_message(&mut self, pair: u32, direction: u8, message: &CmMessage, seen: &RoceSeen<'_>) -> CmNews {
        let mut news = CmNews::default();
        match message.kind {
            CmKind::Req => self.on_request(pair, direction, message, seen),
            CmKind::Rep => news.opened = self.on_reply(pair, direction, message, seen),
            CmKind::Rtu => news.event = self.on_ready(pair, message, seen),
            CmKind::Rej => news.event = self.on_reject(pair, message, seen),
            CmKind::Dreq => {
                let is_known = self.closing.iter().any(|(of, local, remote, _)| {
                    *of == pair && *local == message.local_comm_id && Some(*remote) == message.remote_comm_id
                });
                if let (false, Some(remote)) = (is_known, message.remote_comm_id) {
                    let mut event = RoceEvent::at(RoceEventKind::Disconnect, seen.mark);
                    event.ends = self.ends_of(pair, message.local_comm_id, remote);
                    if self.closing.len() >= MOST_OPEN {
                        self.closing.pop_front();
                    }
                    self.closing.push_back((pair, message.local_comm_id, remote, event));
                }
            }
            CmKind::Drep => {
                let found = self.closing.iter().position(|(of, local, remote, _)| {
                    *of == pair && Some(*local) == message.remote_comm_id && *remote == message.local_comm_id
                });
                if let Some((_, _, _, mut event)) = found.and_then(|at| self.closing.remove(at)) {
                    event.end_ns = seen.mark.time_ns;
                    event.frames.add(seen.mark);
                    news.event = Some(event);
                }
            }
            _ => {}
        }
        news
    }

    fn on_request(&mut self, pair: u32, direction: u8, message: &CmMessage, seen: &RoceSeen<'_>) {
        let Some(qpn) = message.local_qpn else { return };
        let same =
            |open: &&mut Opening| open.pair == pair && open.active_id == message.local_comm_id && open.qpn == qpn;
        if let Some(open) = self.opening.iter_mut().find(same) {
            if let Some(event) = &mut open.event {
                event.count += 1;
                event.frames.add(seen.mark);
            }
            return;
        }
        if self.opening.len() >= MOST_OPEN {
            self.opening.pop_front();
        }
        self.opening.push_back(Opening {
            pair,
            direction,
            active_id: message.local_comm_id,
            passive_id: None,
            qpn,
            psn: message.starting_psn.map(Psn::new),
            passive_qpn: 0,
            path_mtu: message.path_mtu_bytes,
            event: Some(RoceEvent::at(RoceEventKind::Connect, seen.mark)),
        });
    }

    fn on_reply(&mut self, pair: u32, direction: u8, message: &CmMessage, seen: &RoceSeen<'_>) -> Option<Opened> {
        let (qpn, psn) = (message.local_qpn?, message.starting_psn.map(Psn::new));
        let open = self.opening.iter_mut().rev().find(|open| {
            open.pair == pair && Some(open.active_id) == message.remote_comm_id && open.direction != direction
        })?;
        if let Some(event) = &mut open.event {
            event.frames.add(seen.mark);
            event.ends = Some((open.qpn, qpn));
        }
        if open.passive_id.replace(message.local_comm_id).is_some() {
            return None;
        }
        open.passive_qpn = qpn;
        let (active, passive) = ((open.qpn, psn), (qpn, open.psn));
        Some(Opened { direction: open.direction, active, passive, path_mtu: open.path_mtu })
    }

    fn on_ready(&mut self, pair: u32, message: &CmMessage, seen: &RoceSeen<'_>) -> Option<RoceEvent> {
        let open = self.opening.iter_mut().rev().find(|open| {
            open.pair == pair && open.active_id == message.local_comm_id && open.passive_id == message.remote_comm_id
        })?;
        let mut event = open.event.take()?;
        event.end_ns = seen.mark.time_ns;
        event.frames.add(seen.mark);
        Some(event)
    }

    fn on_reject(&mut self, pair: u32, message: &CmMessage, seen: &RoceSeen<'_>) -> Option<RoceEvent> {
        let at = self.opening.iter().rposition(|open| {
            open.pair == pair && [Some(open.active_id), open.passive_id].contains(&message.remote_comm_id)
        })?;
        let mut event = self.opening.remove(at)?.event?;
        event.kind = RoceEventKind::Reject;
        event.end_ns = seen.mark.time_ns;
        event.psn = None;
        event.count = u64::from(message.reject_reason.unwrap_or(0));
        event.frames.add(seen.mark);
        Some(event)
    }

    /// The queue pairs of a connection: of the side whose identifier comes first, and of the other.
    fn ends_of(&self, pair: u32, local: u32, remote: u32) -> Option<(u32, u32)> {
        self.opening.iter().rev().filter(|open| open.pair == pair).find_map(|open| {
            let ids = (open.active_id, open.passive_id?);
            match ids {
                _ if ids == (local, remote) => Some((open.qpn, open.passive_qpn)),
                _ if ids == (remote, local) => Some((open.passive_qpn, open.qpn)),
                _ => None,
            }
        })
    }
}
