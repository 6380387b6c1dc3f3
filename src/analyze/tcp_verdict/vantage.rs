//! Where the tap is: at the client, at the server, or between.

use serde::{Deserialize, Serialize};

use super::seq::before;
use super::types::{ACK, RST, SYN, Vantage};

/// TTLs that hosts start with; one of these on the wire means no router was crossed yet.
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

/// One half of the handshake must take this many times the other before it says where the tap is: next to a host, an
/// answer takes some ten microseconds, but a busy host can be late by as much as a short path takes.
const LOPSIDED: i64 = 4;

/// What a segment says of where it was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub dir: u8,
    pub time_ns: i64,
    pub flags: u16,
    pub ttl: u8,
    pub seq: u32,
    /// Payload, SYN and FIN.
    pub seq_len: u32,
    pub ack: u32,
}

/// What has been seen of handshake and TTLs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct VantagePoint {
    syn_ns: Option<i64>,
    synack_ns: Option<i64>,
    ack_ns: Option<i64>,
    /// A repeated SYN or SYN/ACK: it is not known which one was answered.
    is_repeated: bool,
    client_dir: Option<u8>,
    ttl: [Option<u8>; 2],
    /// The same packet before and after a router.
    is_router: bool,
    /// What all this says, kept because it is asked for every segment.
    sender_dir: Option<u8>,
    /// Only the handshake's times say so: they are compared with later ones.
    is_by_times: bool,
    /// Bytes of each direction that no answer was seen of yet: their end, and when they passed.
    asked: [Option<(u32, i64)>; 2],
    /// The shortest time from the tap to the other end of each direction and back, after the handshake.
    trip_ns: [Option<i64>; 2],
}

impl VantagePoint {
    /// Takes in a segment that is neither damaged nor a copy.
    pub fn on_packet(&mut self, s: &Passing) {
        let Passing { time_ns, flags, ttl, .. } = *s;
        let dir = s.dir & 1;
        let has = |flag: u16| flags & flag != 0;
        if self.ack_ns.is_some() && self.ttl[usize::from(dir)].is_some() {
            if self.is_by_times {
                self.time_trip(s);
            }
            return;
        }
        if !has(RST) {
            self.ttl[usize::from(dir)].get_or_insert(ttl);
        }
        match (has(SYN), has(ACK)) {
            (true, false) => {
                self.is_repeated |= self.syn_ns.is_some();
                self.syn_ns = Some(time_ns);
                self.client_dir = Some(dir);
            }
            (true, true) => {
                self.is_repeated |= self.synack_ns.is_some();
                self.synack_ns = Some(time_ns);
                self.client_dir = Some(1 - dir);
            }
            (false, true) if self.synack_ns.is_some() && self.client_dir == Some(dir) => {
                self.ack_ns.get_or_insert(time_ns);
            }
            _ => {}
        }
        self.sender_dir = self.find_sender_dir();
    }

    /// A host that was busy at the handshake answers as late as one that is far away; later answers tell them apart.
    fn time_trip(&mut self, s: &Passing) {
        let (own, other) = (usize::from(s.dir & 1), usize::from(s.dir & 1 ^ 1));
        if let Some((_, asked_ns)) = self.asked[other].filter(|(end, _)| s.flags & ACK != 0 && !before(s.ack, *end)) {
            self.asked[other] = None;
            let trip_ns = s.time_ns.saturating_sub(asked_ns);
            if self.trip_ns[other].is_none_or(|shortest| trip_ns < shortest) {
                self.trip_ns[other] = Some(trip_ns);
                self.sender_dir = self.find_sender_dir();
            }
        }
        if s.seq_len > 0 && s.flags & RST == 0 && self.asked[own].is_none() {
            self.asked[own] = Some((s.seq.wrapping_add(s.seq_len), s.time_ns));
        }
    }

    /// A copy of one packet arrived with another TTL.
    pub fn on_router_copy(&mut self) {
        (self.is_router, self.sender_dir) = (true, None);
    }

    /// Which direction the client sends in.
    pub fn client_dir(&self) -> Option<u8> {
        self.client_dir
    }

    /// SYN to the client's ACK: one full round trip, wherever the tap is.
    pub fn round_trip_ns(&self) -> Option<i64> {
        let (Some(syn_ns), Some(ack_ns), false) = (self.syn_ns, self.ack_ns, self.is_repeated) else {
            return None;
        };
        Some(ack_ns.saturating_sub(syn_ns)).filter(|&ns| ns >= 0)
    }

    /// Which direction's sender is at the tap, if one is.
    pub fn sender_dir(&self) -> Option<u8> {
        self.sender_dir
    }

    fn find_sender_dir(&mut self) -> Option<u8> {
        self.is_by_times = false;
        let fresh = self.ttl.map(|ttl| ttl.map(|ttl| INITIAL_TTLS.contains(&ttl)));
        match fresh {
            _ if self.is_router => None,
            // One side's packets have crossed a router, the other's have not: certain, unlike times.
            [Some(true), Some(false)] => Some(0),
            [Some(false), Some(true)] => Some(1),
            [Some(true), Some(true)] => {
                let by_times = self.lopsided();
                self.is_by_times = by_times.is_some();
                by_times
            }
            _ => None,
        }
    }

    /// The statement for the flow table.
    pub fn vantage(&self) -> Vantage {
        let crossed = self.ttl.map(|ttl| ttl.is_some_and(|ttl| !INITIAL_TTLS.contains(&ttl)));
        match (self.sender_dir(), self.client_dir) {
            (Some(sender), Some(client)) if sender == client => Vantage::Client,
            (Some(_), Some(_)) => Vantage::Server,
            _ if self.is_router || crossed == [true, true] => Vantage::Middle,
            _ => Vantage::Unknown,
        }
    }

    /// The direction whose sender answered at once while the other's answer took a path's time.
    fn lopsided(&self) -> Option<u8> {
        let (syn_ns, synack_ns, ack_ns) = (self.syn_ns?, self.synack_ns?, self.ack_ns?);
        let (server_ns, client_ns) = (synack_ns.saturating_sub(syn_ns), ack_ns.saturating_sub(synack_ns));
        if self.is_repeated || server_ns < 0 || client_ns < 0 {
            return None;
        }
        let client_dir = self.client_dir?;
        let shortest = |handshake_ns: i64, dir: u8| {
            self.trip_ns[usize::from(dir & 1)].map_or(handshake_ns, |ns| ns.min(handshake_ns))
        };
        let (server_ns, client_ns) = (shortest(server_ns, client_dir), shortest(client_ns, 1 - client_dir));
        if server_ns > client_ns.saturating_mul(LOPSIDED) {
            Some(client_dir)
        } else if client_ns > server_ns.saturating_mul(LOPSIDED) {
            Some(1 - client_dir)
        } else {
            None
        }
    }
}
