//! How a connection began and how it ended.

use serde::{Deserialize, Serialize};

use super::event::{Event, EventKind, Events, Frames, Mark};
use crate::analyze::frozen::StateWord;
use crate::analyze::segment::{ACK, FIN, RST, SYN, Segment};

/// Bits of the TCP flags that negotiate ECN in a SYN (RFC 3168 6.1.1).
pub const ECE: u16 = 0x40;
pub const CWR: u16 = 0x80;

/// iperf3 opens each of its connections with a cookie of 36 letters and a NUL.
const IPERF3_COOKIE_BYTES: u32 = 37;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tries {
    first: Mark,
    last: Mark,
    count: u64,
    frames: Frames,
}

impl Tries {
    fn add(slot: &mut Option<Box<Self>>, now: Mark) {
        match slot {
            Some(tries) => {
                tries.count += 1;
                tries.last = now;
                tries.frames.add(now);
            }
            None => *slot = Some(Box::new(Self { first: now, last: now, count: 1, frames: Frames::of(now) })),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Resets {
    tries: Tries,
    #[serde(with = "crate::analyze::frozen::word")]
    class: StateWord,
}

/// Opening and closing of one connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ends {
    client: Option<u8>,
    syn: Option<Box<Tries>>,
    syn_ack: Option<Box<Tries>>,
    asked_for_ecn: bool,
    pub is_ecn_negotiated: bool,
    /// The client's first ACK after the SYN.
    done: Option<Mark>,
    refused: Option<Mark>,
    /// An ICMP error that says that the SYN did not arrive.
    unreachable: Option<Mark>,
    /// The server sent something that is no SYN,ACK: it must have answered, though that was not captured.
    heard_of_server: bool,
    fin: [bool; 2],
    resets: [Option<Box<Resets>>; 2],
    #[serde(with = "crate::analyze::frozen::maybe_word")]
    closed_by: Option<StateWord>,
    payload_bytes: [u64; 2],
    first_payload_bytes: [u32; 2],
}

impl Ends {
    pub fn on_segment(&mut self, s: &Segment<'_>, now: Mark) {
        let dir = usize::from(s.dir & 1);
        if s.has(RST) {
            self.on_reset(s, dir, now);
            return;
        }
        if s.has(SYN) {
            if s.has(ACK) {
                self.client = Some(s.dir & 1 ^ 1);
                Tries::add(&mut self.syn_ack, now);
                // An answer with both bits is a stack that reflects what it does not know.
                self.is_ecn_negotiated |= self.asked_for_ecn && s.flags & (ECE | CWR) == ECE;
            } else if self.client.is_none_or(|client| client == s.dir & 1) {
                self.client = Some(s.dir & 1);
                Tries::add(&mut self.syn, now);
                self.asked_for_ecn = s.flags & (ECE | CWR) == ECE | CWR;
            }
        } else if self.client == Some(s.dir & 1) {
            if s.has(ACK) && self.done.is_none() {
                self.done = Some(now);
            }
        } else {
            self.heard_of_server = true;
        }
        if s.payload_bytes > 0 {
            if self.payload_bytes[dir] == 0 {
                self.first_payload_bytes[dir] = s.payload_bytes;
            }
            self.payload_bytes[dir] += u64::from(s.payload_bytes);
        }
        if s.has(FIN) {
            self.fin[dir] = true;
            self.closed_by.get_or_insert("fin");
        }
    }

    /// An ICMP "unreachable" quotes a segment of `sender`: it answers the SYN, as long as nothing else does.
    pub fn on_unreachable(&mut self, sender: u8, now: Mark) {
        let is_open = self.syn.is_some() && self.syn_ack.is_none() && !self.heard_of_server;
        if is_open && self.client == Some(sender & 1) {
            self.unreachable.get_or_insert(now);
        }
    }

    fn on_reset(&mut self, s: &Segment<'_>, dir: usize, now: Mark) {
        self.closed_by.get_or_insert("rst");
        if let Some(resets) = &mut self.resets[dir] {
            resets.tries.count += 1;
            resets.tries.last = now;
            resets.tries.frames.add(now);
            return;
        }
        let class = self.class_of(s.dir & 1, dir);
        if class == "refused" {
            self.refused = Some(now);
        }
        let tries = Tries { first: now, last: now, count: 1, frames: Frames::of(now) };
        self.resets[dir] = Some(Box::new(Resets { tries, class }));
    }

    fn class_of(&self, sender: u8, dir: usize) -> &'static str {
        let is_client = self.client == Some(sender);
        if self.fin[0] || self.fin[1] || self.resets[dir ^ 1].is_some() {
            return "after_close";
        }
        if self.client.is_some() && self.done.is_none() {
            return match (is_client, self.syn_ack.is_some() || self.heard_of_server) {
                (false, false) => "refused",
                (true, true) => "half_open",
                (true, false) => "gave_up",
                (false, true) => "abort",
            };
        }
        if self.is_iperf3_data() {
            return "test_end";
        }
        if self.payload_bytes == [0, 0] && self.client.is_none() { "unknown" } else { "abort" }
    }

    /// The mark of an iperf3 data connection: the client's cookie first, then data in one direction alone.
    fn is_iperf3_data(&self) -> bool {
        let client = usize::from(self.client.unwrap_or(0) & 1);
        let cookie = u64::from(IPERF3_COOKIE_BYTES);
        let [sent, received] = [self.payload_bytes[client], self.payload_bytes[client ^ 1]];
        self.client.is_some()
            && self.first_payload_bytes[client] == IPERF3_COOKIE_BYTES
            && (received == 0 && sent > cookie || sent == cookie && received > 0)
    }

    /// What became of the handshake.
    pub fn handshake(&self) -> &'static str {
        match (&self.syn, &self.syn_ack) {
            (None, None) => "not_captured",
            _ if self.done.is_some() => "complete",
            // Nothing of the client is here: the capture began in between, or what it sends passes elsewhere or under other
            // addresses (NAT).
            (None, Some(_)) => "not_captured",
            (_, Some(_)) => "half_open",
            _ if self.refused.is_some() => "refused",
            _ if self.heard_of_server => "half_open",
            _ => "no_answer",
        }
    }

    /// SYNs and SYN,ACKs sent again.
    pub fn retries(&self) -> (u64, u64) {
        let again = |tries: &Option<Box<Tries>>| tries.as_ref().map_or(0, |tries| tries.count - 1);
        (again(&self.syn), again(&self.syn_ack))
    }

    pub fn closed_by(&self) -> &'static str {
        self.closed_by.unwrap_or("none")
    }

    /// The events of beginning and end; `last` is the last segment.
    pub fn finish(&self, last: Mark, events: &mut Events) {
        self.tell_handshake(last, events);
        for (tries, cause, is_client) in [(&self.syn, "syn", true), (&self.syn_ack, "synack", false)] {
            let (Some(tries), Some(client)) = (tries, self.client) else { continue };
            if tries.count > 1 {
                events.push(Event {
                    end_ns: tries.last.time_ns,
                    count: tries.count - 1,
                    cause: Some(cause),
                    frames: tries.frames.clone(),
                    ..Event::at(EventKind::SynRetry, if is_client { client } else { client ^ 1 }, tries.first)
                });
            }
        }
        for (dir, resets) in self.resets.iter().enumerate() {
            let Some(resets) = resets else { continue };
            events.push(Event {
                end_ns: resets.tries.last.time_ns,
                count: resets.tries.count,
                cause: Some(resets.class),
                frames: resets.tries.frames.clone(),
                ..Event::at(EventKind::Reset, dir as u8, resets.tries.first)
            });
        }
    }

    fn tell_handshake(&self, last: Mark, events: &mut Events) {
        let Some(client) = self.client else { return };
        let Some(first) = self.syn.as_ref().or(self.syn_ack.as_ref()) else { return };
        let syns = self.syn.as_ref().map_or(0, |syn| syn.count);
        let (kind, dir, end) = match self.handshake() {
            "not_captured" => return,
            "complete" => (EventKind::Handshake, client, self.done.unwrap_or(last)),
            "refused" => (EventKind::Refused, client ^ 1, self.refused.unwrap_or(last)),
            "half_open" => (EventKind::HalfOpen, client, last),
            _ => (EventKind::NoAnswer, client ^ 1, self.unreachable.unwrap_or(last)),
        };
        let is_turned_away = kind == EventKind::NoAnswer && self.unreachable.is_some();
        let mut frames = first.frames.clone();
        if let Some(syn_ack) = self.syn.as_ref().and(self.syn_ack.as_ref()) {
            syn_ack.frames.list().iter().for_each(|frame_no| frames.add(Mark { frame_no: *frame_no, ..syn_ack.first }));
        }
        if matches!(kind, EventKind::Handshake | EventKind::Refused) || is_turned_away {
            frames.add(end);
        }
        let cause = is_turned_away.then_some("unreachable");
        events.push(Event { end_ns: end.time_ns, count: syns, cause, frames, ..Event::at(kind, dir, first.first) });
    }
}
