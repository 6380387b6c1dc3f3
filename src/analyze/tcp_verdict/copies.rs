//! Finds a second copy of the same packet, whoever made it: the capture or the network.
//!
//! A resent packet gets a new IP ID, and most often a new TSval and ACK; a copy differs in none of them. Remembered is
//! a fingerprint of each recent segment of one direction, in a small set-associative table: a few nanoseconds a
//! segment, and its size follows the number of segments in a second, so that a slow connection stays small.

use super::types::{Checksum, Evidence, Segment};

/// Fingerprints of one set; the oldest makes room.
const WAYS: usize = 8;

/// Sets at first: enough for a burst in flight between two taps.
const MIN_SETS: usize = 4;

/// A table that nothing was added to for this long holds no packet that a copy may still come of.
const STALE_NS: i64 = 5_000_000_000;

/// Sets at most. 2,048 fingerprints reach over a queue of several hundred packets between two taps.
const MAX_SETS: usize = 256;

/// A print that is overwritten before this age might still have met its copy: the table is too small. Connections of few
/// segments a second so stay small for life.
const YOUNG_NS: i64 = 1_000_000_000;

/// Two packets without IP ID that are the same in every other field, seen at one place: nearer than this they are
/// copies, as no sender repeats itself that fast.
const ECHO_NS: i64 = 50_000;

#[derive(Clone, Copy, Debug, Default)]
struct Print {
    /// 0 for a free place.
    tag: u32,
    interface: u16,
    ttl: u8,
    /// The bits of the hash that choose a set, for when there are more sets.
    set: u8,
    time_ns: i64,
    frame_no: u64,
}

/// What the table says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// Not seen before.
    No,
    /// The same packet, seen at another interface or a hop further on.
    Elsewhere { evidence: Evidence, first_frame_no: u64 },
    /// The same packet, seen at the same place.
    Here { first_frame_no: u64 },
}

/// The recent segments of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct CopyTable {
    /// `sets * WAYS` places.
    prints: Vec<Print>,
    last_ns: i64,
}

impl CopyTable {
    /// Looks a segment up and remembers it. `names_packets`: whether its direction's IP IDs tell packets apart.
    pub fn check(&mut self, s: &Segment, names_packets: bool) -> Copied {
        let id = s.ip_id.filter(|&id| id != 0 && names_packets);
        let hash = fingerprint(s, id);
        let tag = (hash as u32).max(1);
        if self.prints.is_empty() {
            self.prints.resize(MIN_SETS * WAYS, Print::default());
        }
        self.last_ns = s.time_ns;
        let (sets, hash_set) = (self.prints.len() / WAYS, (hash >> 32) as u8);
        let set = usize::from(hash_set) & (sets - 1);
        let ways = &mut self.prints[set * WAYS..(set + 1) * WAYS];
        let interface = (s.interface ^ s.interface >> 16) as u16;
        if let Some(first) = ways.iter().find(|print| print.tag == tag) {
            let other_interface = first.interface != interface;
            let other_ttl = first.ttl != s.ttl;
            if other_interface || other_ttl {
                let mut evidence = Evidence::SAME_PACKET;
                if other_interface {
                    evidence = evidence.with(Evidence::INTERFACE);
                }
                if other_ttl {
                    evidence = evidence.with(Evidence::TTL);
                }
                return Copied::Elsewhere { evidence, first_frame_no: first.frame_no };
            }
            let is_echo = s.payload_bytes > 0 && (0..ECHO_NS).contains(&s.time_ns.saturating_sub(first.time_ns));
            let first_frame_no = first.frame_no;
            return if id.is_some() || is_echo { Copied::Here { first_frame_no } } else { Copied::No };
        }
        let age_of = |print: &&mut Print| if print.tag == 0 { i64::MIN } else { print.time_ns };
        let Some(oldest) = ways.iter_mut().min_by_key(age_of) else { return Copied::No };
        let is_too_small = oldest.tag != 0 && s.time_ns.saturating_sub(oldest.time_ns) < YOUNG_NS;
        *oldest = Print { tag, interface, ttl: s.ttl, set: hash_set, time_ns: s.time_ns, frame_no: s.frame_no };
        if is_too_small {
            self.grow();
        }
        Copied::No
    }

    /// Frees the table when it has become stale.
    pub fn shrink(&mut self, now_ns: i64) {
        if !self.prints.is_empty() && now_ns.saturating_sub(self.last_ns) > STALE_NS {
            *self = Self::default();
        }
    }

    /// Doubles the table, up to the limit.
    fn grow(&mut self) {
        let sets = self.prints.len() / WAYS;
        if sets >= MAX_SETS {
            return;
        }
        self.prints.extend_from_within(..);
        for (at, print) in self.prints.iter_mut().enumerate() {
            let is_upper = at / WAYS >= sets;
            if (usize::from(print.set) & sets != 0) != is_upper {
                *print = Print::default();
            }
        }
    }
}

/// All fields that stay the same on the way and that a resent packet would change, as 64 well-mixed bits.
fn fingerprint(s: &Segment, id: Option<u16>) -> u64 {
    let (tsval, tsecr) = s.ts.unwrap_or((0, 0));
    let head = u64::from(id.unwrap_or(0)) << 48 ^ u64::from(s.flags) << 32 ^ u64::from(s.payload_bytes);
    let mut hash = mix(head, u64::from(s.seq) << 32 | u64::from(s.ack));
    hash = mix(hash, u64::from(tsval) << 32 | u64::from(tsecr));
    if id.is_none() {
        let checksum = if s.checksum == Checksum::Partial { 0 } else { s.l4_checksum_field };
        hash = mix(hash, u64::from(s.window) << 16 | u64::from(checksum));
        for &(left, right) in s.sack.iter().take(4) {
            hash = mix(hash, u64::from(left) << 32 | u64::from(right));
        }
    }
    hash
}

fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(u128::from(word ^ 0xd6e8_feb8_6659_fd93));
    (product as u64) ^ (product >> 64) as u64 ^ hash.rotate_left(23)
}
