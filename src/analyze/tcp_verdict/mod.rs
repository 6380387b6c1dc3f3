//! What each TCP segment is, why it was resent, and whether that was needed.
//!
//! A [`Connection`] is told the segments of one connection, both directions, in the order of the capture, and gives
//! out one [`Judgement`] for each: at once where nothing later can change it, otherwise when the receiver's answer is
//! in. There is no clock and no input or output here: time arrives in [`Segment`].
//!
//! In the order of the questions: is it damaged; is it the same packet again (`copies`); does it start before the
//! highest byte sent, and if so was it sent after higher bytes (`order`, `sent`, `ip_id`); why (`sender`); did the
//! receiver have it already (`held`).

mod copies;
mod half;
mod held;
mod ip_id;
mod judge;
mod order;
mod rtt;
mod sender;
mod sent;
mod seq;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_copies;
#[cfg(test)]
mod tests_late;
#[cfg(test)]
mod tests_senders;
mod types;
mod vantage;

use serde::{Deserialize, Serialize};

pub use types::{Cause, DirectionSummary, Evidence, Judgement, Outcome, Summary, Vantage, Verdict};

use super::{HoldLimits, Moment};
use half::Half;
use types::Segment;
#[cfg(test)]
use types::{ACK, Checksum, RST, SYN};
pub(crate) use vantage::{Passing, VantagePoint};

/// IPv4 and TCP header without options; what a path MTU must hold besides the payload.
const HEADER_BYTES: u32 = 40;
/// An IPv6 header is this much longer.
const IPV6_EXTRA_BYTES: u32 = 20;

/// One TCP connection, from SYN to the end or to a port's reuse; telling connections apart is the caller's part.
///
/// Memory is bounded: at most about 3 MB a direction with everything full, a few KB in ordinary bulk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Connection {
    halves: [Half; 2],
    vantage: VantagePoint,
    is_ipv6: bool,
}

impl Connection {
    /// Asks for the memory that the next segment will need: reads a little here and there.
    pub fn touch(&self) -> u32 {
        let of = |half: &Half| {
            half.snd_max.unwrap_or(0)
                ^ half.newest_tsval.unwrap_or(0)
                ^ half.counts.verdict_count[0] as u32
                ^ half.resent_segments as u32
                ^ half.gap_until_ns as u32
                ^ half.sender.una().unwrap_or(0)
                ^ u32::from(half.held.is_empty())
                ^ u32::from(half.has_fin)
        };
        of(&self.halves[0]) ^ of(&self.halves[1]) ^ u32::from(self.is_ipv6)
    }

    /// The same for the ends of its lists.
    pub fn touch_lists(&self) -> u32 {
        let of = |half: &Half| half.copies.touch() ^ half.sent.touch() ^ half.held.touch();
        of(&self.halves[0]) ^ of(&self.halves[1])
    }

    /// Takes in the next segment and pushes every row that became final: (row, judgement), in any order, each row
    /// once in the life of the connection. Call [`Self::settle`] with the segment's moment before.
    pub fn on_segment(&mut self, s: &Segment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        self.is_ipv6 = s.ip_id.is_none();
        self.halves.iter_mut().for_each(|half| half.held.on_segment());
        self.judge(s, out);
        for dir in 0..2 {
            let (half, peer) = self.pair(dir);
            half.release(s.at.ns, peer, limits, out);
        }
    }

    /// Gives out the rows that are decided by now, and those that have waited longer than `limits` with what is known.
    ///
    /// Before every segment this makes what the segment meets a matter of the capture alone; between segments it may be
    /// called at any time or never.
    pub fn settle(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        for dir in 0..2 {
            let (half, peer) = self.pair(dir);
            half.settle(now, peer, limits, out);
        }
    }

    /// An ICMP "fragmentation needed" or "packet too big" that quotes a segment of direction `dir` starting at `seq`;
    /// `mtu_bytes` is 0 where the router did not say.
    pub fn on_icmp_too_big(&mut self, _time_ns: i64, dir: u8, seq: u32, mtu_bytes: u32) {
        let (half, peer) = self.pair(usize::from(dir & 1));
        let headers = HEADER_BYTES + if half.newest_tsval.is_some() { 12 } else { 0 };
        let (Some(snd_max), limit) = (half.snd_max, half.payload_limit(peer)) else {
            return;
        };
        let v6 = if self.is_ipv6 { IPV6_EXTRA_BYTES } else { 0 };
        let (half, _) = self.pair(usize::from(dir & 1));
        let mss = mtu_bytes.saturating_sub(headers + v6);
        // RFC 1191: a router that states no MTU leaves the sender to guess; Linux then halves.
        let mss = if mss == 0 { limit.unwrap_or(2 * 536) / 2 } else { mss };
        if limit.is_none_or(|limit| mss < limit) {
            half.sender.on_too_big(seq, snd_max, mss.max(1));
        }
    }

    /// Gives memory back that is not needed now; changes nothing else.
    pub fn shrink(&mut self) {
        for half in &mut self.halves {
            half.held.shrink();
            half.sent.shrink();
        }
    }

    /// Gives out everything; the capture or the connection is over. What is decided by then is said as if the connection
    /// had been looked at the moment it was.
    pub fn finish(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        self.settle(now, limits, out);
        for dir in 0..2 {
            let (half, peer) = self.pair(dir);
            half.held.on_segment();
            let answers = half.answers(peer);
            half.held.finish(answers, &mut half.counts, out);
        }
    }

    /// When [`Self::settle`] may do something if no segment comes until then: at this time or with this frame.
    pub fn due(&self, limits: &HoldLimits) -> Moment {
        let [one, other] = [0, 1].map(|dir: usize| self.halves[dir].held.due(self.halves[dir].sender.una(), limits));
        Moment { ns: one.ns.min(other.ns), frame: one.frame.min(other.frame) }
    }

    /// Whether any row waits.
    pub fn is_waiting(&self) -> bool {
        self.halves.iter().any(|half| !half.held.is_empty())
    }

    /// What is known so far. Counts hold the rows given out.
    pub fn summary(&self) -> Summary {
        let mut directions = [self.halves[0].counts, self.halves[1].counts];
        if let Some(dir) = self.vantage.sender_dir() {
            directions[usize::from(dir)].is_at_sender = true;
        }
        Summary {
            vantage: self.vantage.vantage(),
            client_dir: self.vantage.client_dir(),
            is_sack_negotiated: self.halves[0].has_sack(&self.halves[1]),
            directions,
        }
    }

    /// One direction and the other.
    fn pair(&mut self, dir: usize) -> (&mut Half, &mut Half) {
        let [zero, one] = &mut self.halves;
        if dir == 0 { (zero, one) } else { (one, zero) }
    }
}
