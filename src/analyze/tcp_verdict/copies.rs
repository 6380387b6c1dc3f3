//! Finds a second copy of the same packet, whoever made it: the capture or the network.
//!
//! A resent packet gets a new IP ID, and most often a new TSval and ACK; a copy differs in none of them. Remembered is
//! a fingerprint of each recent segment of one direction, one after the other in a ring whose size follows the number of
//! segments in a second, so that a slow connection stays small. Nearly every segment goes beyond all before it, in its
//! bytes, its ACK or its timestamp: it is a copy of none of them, and the ring is not searched.

use serde::{Deserialize, Serialize};

use super::rtt::LATEST_NS;
use super::seq::before;
use super::types::{ACK, Checksum, Evidence, Segment};

/// Fingerprints at first.
const FEW: usize = 16;

/// Fingerprints at most: they reach over a queue of several hundred packets between two taps.
const MOST: usize = 2_048;

/// A print that is overwritten before this age might still have met its copy: the ring is too small. Connections of few
/// segments a second so stay small for life.
const YOUNG_NS: i64 = 1_000_000_000;

/// Two packets without IP ID that are the same in every other field, seen at one place: nearer than this they are
/// copies, as no sender repeats bytes, SYN or FIN that fast.
const ECHO_NS: i64 = 50_000;

/// Tags that are compared in one go.
const BLOCK: usize = 32;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Print {
    /// The upper half of the hash; the lower one is its tag.
    rest: u32,
    interface: u16,
    ttl: u8,
    time_ns: i64,
    frame_no: u64,
}

/// What the ring says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// Not seen before.
    No,
    /// The same packet, seen at another interface or a hop further on.
    Elsewhere { evidence: Evidence, first_frame_no: u64 },
    /// The same packet, seen at the same place.
    Here { first_frame_no: u64 },
}

/// How far a direction has come, in each number that a copy repeats.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Furthest {
    end: u32,
    ack: u32,
    tsval: u32,
    is_known: bool,
}

impl Furthest {
    /// Whether a segment goes beyond every one before it.
    fn is_passed_by(&mut self, s: &Segment) -> bool {
        let end = s.seq.wrapping_add(s.seq_len());
        let tsval = s.ts.map_or(self.tsval, |(tsval, _)| tsval);
        let is_first = !self.is_known;
        let ack = if s.has(ACK) { s.ack } else { self.ack };
        let is_beyond = before(self.end, end) || before(self.ack, ack) || before(self.tsval, tsval);
        let further = |old: u32, new: u32| if is_first || before(old, new) { new } else { old };
        *self = Self {
            end: further(self.end, end),
            ack: further(self.ack, ack),
            tsval: further(self.tsval, tsval),
            is_known: true,
        };
        is_first || is_beyond
    }
}

/// The recent segments of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CopyTable {
    /// The lower halves of the hashes, apart from the rest so that a search reads little.
    tags: Vec<u32>,
    prints: Vec<Print>,
    /// Prints that the ring holds at most, for now.
    room: usize,
    /// The oldest print, once the ring is full.
    oldest: usize,
    furthest: Furthest,
    last_ns: i64,
}

impl CopyTable {
    /// Asks for the memory where the next print goes.
    pub fn touch(&self) -> u32 {
        let at = if self.tags.len() < self.room { self.tags.len().saturating_sub(1) } else { self.oldest };
        self.tags.get(at).map_or(0, |tag| tag ^ 1) ^ self.prints.get(at).map_or(0, |print| print.rest)
    }

    /// Looks a segment up and remembers it. `names_packets`: whether its direction's IP IDs tell packets apart.
    pub fn check(&mut self, s: &Segment, names_packets: bool) -> Copied {
        let id = s.ip_id.filter(|&id| id != 0 && names_packets);
        let hash = fingerprint(s, id);
        let interface = (s.interface ^ s.interface >> 16) as u16;
        self.shrink(s.time_ns);
        self.last_ns = s.time_ns;
        let is_soon = |first: &&Print| s.time_ns.saturating_sub(first.time_ns) <= LATEST_NS;
        if !self.furthest.is_passed_by(s)
            && let Some(first) = self.find(hash).filter(is_soon)
        {
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
            let is_echo = s.seq_len() > 0 && (0..ECHO_NS).contains(&s.time_ns.saturating_sub(first.time_ns));
            let first_frame_no = first.frame_no;
            if id.is_some() || is_echo {
                return Copied::Here { first_frame_no };
            }
            // Sent again: what copies it comes after this one.
        }
        let (rest, ttl) = ((hash >> 32) as u32, s.ttl);
        self.add(hash as u32, Print { rest, interface, ttl, time_ns: s.time_ns, frame_no: s.frame_no });
        Copied::No
    }

    /// Searches from the newest: copies follow soon.
    fn find(&self, hash: u64) -> Option<&Print> {
        let (newer, older) = self.tags.split_at_checked(self.oldest)?;
        let (newer_prints, older_prints) = self.prints.split_at_checked(self.oldest)?;
        search(newer, newer_prints, hash).or_else(|| search(older, older_prints, hash))
    }

    fn add(&mut self, tag: u32, print: Print) {
        if self.tags.len() == self.room && self.is_too_small(print.time_ns) {
            self.tags.rotate_left(self.oldest);
            self.prints.rotate_left(self.oldest);
            self.oldest = 0;
            self.room = (self.room * 2).max(FEW);
            self.tags.reserve_exact(self.room - self.tags.len());
            self.prints.reserve_exact(self.room - self.prints.len());
        }
        if self.tags.len() < self.room {
            self.tags.push(tag);
            self.prints.push(print);
        } else if let (Some(old_tag), Some(old)) = (self.tags.get_mut(self.oldest), self.prints.get_mut(self.oldest)) {
            (*old_tag, *old) = (tag, print);
            self.oldest = (self.oldest + 1) % self.room;
        }
    }

    /// Whether a full ring must grow, as its oldest print is young.
    fn is_too_small(&self, now_ns: i64) -> bool {
        let is_young = |oldest: &Print| now_ns.saturating_sub(oldest.time_ns) < YOUNG_NS;
        self.room < MOST && self.prints.get(self.oldest).is_none_or(is_young)
    }

    /// Frees the ring when none of its packets can be met by a copy any more.
    fn shrink(&mut self, now_ns: i64) {
        if self.room > 0 && now_ns.saturating_sub(self.last_ns) > LATEST_NS {
            *self = Self { furthest: self.furthest, last_ns: self.last_ns, ..Self::default() };
        }
    }
}

/// The last print with this hash.
fn search<'a>(tags: &[u32], prints: &'a [Print], hash: u64) -> Option<&'a Print> {
    let (tag, rest) = (hash as u32, (hash >> 32) as u32);
    tags.rchunks(BLOCK).zip(prints.rchunks(BLOCK)).find_map(|(tags, prints)| {
        // Without a way out in the middle, this is a few instructions for the whole block.
        if !tags.iter().fold(false, |is_there, one| is_there | (*one == tag)) {
            return None;
        }
        tags.iter().zip(prints).rev().find(|(one, print)| **one == tag && print.rest == rest).map(|(_, print)| print)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::Moment;

    fn segment(number: u32, time_ns: i64, ip_id: u16) -> Segment<'static> {
        Segment {
            frame_no: u64::from(number),
            time_ns,
            at: Moment { ns: time_ns, frame: u64::from(number) },
            seq: 1_000_u32.wrapping_add(number.wrapping_mul(100)),
            payload_bytes: 100,
            ip_id: Some(ip_id),
            ttl: 64,
            ..Segment::default()
        }
    }

    #[test]
    fn of_a_fast_direction_the_last_two_thousand_segments_are_remembered() {
        let mut table = CopyTable::default();
        let number_of = |n: u32| u32::MAX - 40_000_000 + n;
        for n in 0..10_000 {
            assert_eq!(table.check(&segment(number_of(n), i64::from(n), n as u16 | 1 << 15), true), Copied::No);
            for ago in [0, 1, 31, 32, 33, 2_047] {
                let Some(old) = n.checked_sub(ago) else { continue };
                let found = table.check(&segment(number_of(old), i64::from(n), old as u16 | 1 << 15), true);
                let first_frame_no = u64::from(number_of(old));
                assert_eq!(found, Copied::Here { first_frame_no }, "{n} {ago}");
            }
        }
        assert_eq!(table.tags.len(), MOST);
        assert_eq!(table.prints.capacity(), MOST);
    }

    #[test]
    fn a_slow_direction_stays_small_and_a_repetition_with_another_id_is_no_copy() {
        let mut table = CopyTable::default();
        for n in 0..100 {
            let time_ns = i64::from(n) * 500_000_000;
            assert_eq!(table.check(&segment(n, time_ns, n as u16 + 1), true), Copied::No);
            assert_eq!(table.check(&segment(n, time_ns + 9, 500 + n as u16), true), Copied::No);
        }
        assert_eq!(table.tags.len(), FEW);
        table.shrink(100 * 500_000_000 + LATEST_NS);
        assert_eq!(table.prints.capacity(), 0);
    }
}
