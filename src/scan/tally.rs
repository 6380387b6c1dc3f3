//! Counts over the whole capture that cost next to nothing: what `info` shows, and what findings rest on.

use crate::analyze::Moment;
use crate::capture::{LinkType, Record};
use crate::wire::{ChecksumStatus, Chunk, Frame, IcrcStatus, Protocol};

/// What a capture holds, in a few figures.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub frames: u64,
    /// Bytes on the wire.
    pub original_bytes: u64,
    /// Bytes in the file.
    pub captured_bytes: u64,
    /// Earliest and latest time.
    pub first_time_ns: Option<i64>,
    pub last_time_ns: Option<i64>,
    /// Frames by highest protocol, most frequent first.
    pub protocols: Vec<(&'static str, u64)>,
}

const PROTOCOLS: usize = 32;

/// Counts of a stretch of frames; stretches add up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub frames: u64,
    pub original_bytes: u64,
    pub captured_bytes: u64,
    pub min_time_ns: Option<i64>,
    pub max_time_ns: Option<i64>,
    protocols: [u64; PROTOCOLS],
    names: [Option<&'static str>; PROTOCOLS],
    /// Frames cut by the snap length.
    pub cut: Marked,
    /// Frames of a link type that is not decoded.
    pub unknown_link: Marked,
    pub unknown_link_type: Option<LinkType>,
    /// Frames whose decoding stopped although all their bytes are there.
    pub undecoded: Marked,
    pub checksums: ChecksumTally,
}

/// What verifying checksums found; all zero where nobody verified.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChecksumTally {
    /// Frames with at least one checksum that could be verified.
    pub verified: u64,
    /// Frames whose checksum of TCP, UDP or ICMP is one of them.
    pub verified_l4: u64,
    /// Frames with a wrong one.
    pub bad: Marked,
    pub bad_ip: u64,
    pub bad_l4: u64,
    pub bad_icrc: u64,
    /// Frames that left it to the sender's network card.
    pub partial: Marked,
}

impl ChecksumTally {
    fn count(&mut self, record: &Record, frame: &Frame, chunk: &Chunk) {
        use ChecksumStatus::{Bad, Ok, Partial};
        let is_roce = matches!(frame.protocol, Protocol::RoceV1 | Protocol::RoceV2);
        let icrc = if is_roce { chunk.roce.get(frame.detail as usize).and_then(|packet| packet.icrc) } else { None };
        let of_headers = [frame.ip_checksum, frame.l4_checksum];
        let is_verified = of_headers.iter().any(|status| matches!(status, Some(Ok | Bad | Partial)))
            || matches!(icrc, Some(IcrcStatus::Ok | IcrcStatus::Bad));
        if !is_verified {
            return;
        }
        self.verified += 1;
        self.verified_l4 += u64::from(matches!(frame.l4_checksum, Some(Ok | Bad | Partial)));
        let [ip, l4] = of_headers.map(|status| status == Some(Bad));
        let is_icrc_bad = icrc == Some(IcrcStatus::Bad);
        if ip || l4 || is_icrc_bad {
            self.bad.add(record);
            self.bad_ip += u64::from(ip);
            self.bad_l4 += u64::from(l4);
            self.bad_icrc += u64::from(is_icrc_bad);
        }
        if of_headers.contains(&Some(Partial)) {
            self.partial.add(record);
        }
    }

    fn merge(&mut self, later: &Self) {
        self.verified += later.verified;
        self.verified_l4 += later.verified_l4;
        self.bad.merge(&later.bad);
        self.bad_ip += later.bad_ip;
        self.bad_l4 += later.bad_l4;
        self.bad_icrc += later.bad_icrc;
        self.partial.merge(&later.partial);
    }
}

/// A count with the first frames it concerns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    pub count: u64,
    /// File (from 0), frame number and time.
    pub first: Vec<(u16, u64, Option<i64>)>,
}

impl Marked {
    const KEPT: usize = 20;

    pub fn add(&mut self, record: &Record) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push((record.file, record.frame_no, record.time()));
        }
    }

    pub fn merge(&mut self, later: &Self) {
        self.count += later.count;
        let room = Self::KEPT.saturating_sub(self.first.len());
        self.first.extend(later.first.iter().take(room));
    }
}

impl Tally {
    /// Counts the frames of a chunk; `records` are theirs.
    pub fn count(&mut self, records: &[Record], chunk: &Chunk) {
        for (record, frame) in records.iter().zip(&chunk.frames) {
            self.original_bytes += u64::from(record.original_bytes);
            self.captured_bytes += u64::from(record.captured_bytes);
            if let Some(time) = record.time() {
                self.min_time_ns = Some(self.min_time_ns.map_or(time, |min| min.min(time)));
                self.max_time_ns = Some(self.max_time_ns.map_or(time, |max| max.max(time)));
            }
            let at = frame.protocol as usize % PROTOCOLS;
            self.protocols[at] += 1;
            if self.names[at].is_none() {
                self.names[at] = Some(frame.protocol.name().unwrap_or("unknown"));
            }
            self.checksums.count(record, frame, chunk);
            let is_cut = record.captured_bytes < record.original_bytes;
            if is_cut {
                self.cut.add(record);
            }
            if record.link == LinkType::NO_PACKET {
                // Its file says so in a finding of its own.
            } else if !record.link.is_known() {
                self.unknown_link.add(record);
                self.unknown_link_type = self.unknown_link_type.or(Some(record.link));
            } else if frame.stop != 0 && !is_cut && frame.protocol != Protocol::Unknown {
                self.undecoded.add(record);
            }
        }
        self.frames += chunk.frames.len() as u64;
    }

    /// A frame that was counted under one protocol turned out to be of another.
    pub fn recount(&mut self, before: Protocol, after: Protocol) {
        let (before, at) = (before as usize % PROTOCOLS, after as usize % PROTOCOLS);
        self.protocols[before] = self.protocols[before].saturating_sub(1);
        self.protocols[at] += 1;
        self.names[at] = self.names[at].or(Some(after.name().unwrap_or("unknown")));
    }

    pub fn merge(&mut self, later: &Self) {
        self.frames += later.frames;
        self.original_bytes += later.original_bytes;
        self.captured_bytes += later.captured_bytes;
        self.min_time_ns = [self.min_time_ns, later.min_time_ns].into_iter().flatten().min();
        self.max_time_ns = [self.max_time_ns, later.max_time_ns].into_iter().flatten().max();
        for at in 0..PROTOCOLS {
            self.protocols[at] += later.protocols[at];
            self.names[at] = self.names[at].or(later.names[at]);
        }
        self.cut.merge(&later.cut);
        self.unknown_link.merge(&later.unknown_link);
        self.unknown_link_type = self.unknown_link_type.or(later.unknown_link_type);
        self.undecoded.merge(&later.undecoded);
        self.checksums.merge(&later.checksums);
    }

    pub fn summary(&self) -> Summary {
        let mut protocols: Vec<_> = (0..PROTOCOLS)
            .filter_map(|at| Some((self.names[at]?, self.protocols[at])))
            .filter(|(_, count)| *count > 0)
            .collect();
        protocols.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        Summary {
            frames: self.frames,
            original_bytes: self.original_bytes,
            captured_bytes: self.captured_bytes,
            first_time_ns: self.min_time_ns,
            last_time_ns: self.max_time_ns,
            protocols,
        }
    }
}

/// Time order of the records: how often, and how far at most, the clock went backwards. In frame order, so not part of a
/// tally that is counted in parallel.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockOrder {
    last_time_ns: Option<i64>,
    /// First and latest time that are believed.
    believed_ns: Option<(i64, i64)>,
    /// The latest time up to each frame of the window, from the first one of the capture on: see [`Moment`].
    pub latest_ns: Vec<i64>,
    /// Frames before the window.
    pub first_frame: u64,
    frames: u64,
    /// With the last frame of the window.
    pub now: Moment,
    pub backwards: Marked,
    pub largest_step_ns: i64,
}

/// A time further ahead is believed only if the frame after it does not go back again: one damaged stamp must not stop the
/// clock that everything waits by.
const BELIEVED_NS: i64 = 3_600_000_000_000;

/// The time that the frame after one has: of the next frame, if there is one, if it has one.
pub(crate) type NextTime = Option<Option<i64>>;

impl ClockOrder {
    fn advance(&mut self, time: i64, next: NextTime) {
        let Some((first, latest)) = self.believed_ns else {
            self.believed_ns = Some((time, time));
            return;
        };
        // A damaged stamp on the first frame: the second one starts the clock.
        if self.now.ns == 0 && first == latest && time < first.saturating_sub(BELIEVED_NS) {
            self.believed_ns = Some((time, time));
            return;
        }
        let stays = |next: Option<i64>| next.is_none_or(|next| next >= time.saturating_sub(BELIEVED_NS));
        if time <= latest.saturating_add(BELIEVED_NS) || next.is_some_and(stays) {
            let latest = latest.max(time);
            self.believed_ns = Some((first, latest));
            self.now.ns = self.now.ns.max(latest.saturating_sub(first));
        }
    }

    /// Whether the time of the last of these records is believed only with that of the record after them.
    pub fn needs_next(&self, records: &[Record]) -> bool {
        let Some((last, before)) = records.split_last() else { return false };
        let Some(time) = last.time() else { return false };
        // What is near the time before it needs nothing: either that is believed, or this one does not go back from it.
        let is_near = |other: i64| time.saturating_sub(other).saturating_abs() <= BELIEVED_NS;
        if before.last().and_then(Record::time).is_some_and(is_near) {
            return false;
        }
        let mut clock = Self { believed_ns: self.believed_ns, now: self.now, ..Self::default() };
        clock.watch(records, None);
        clock.believed_ns.is_none_or(|(_, latest)| time > latest.saturating_add(BELIEVED_NS))
    }

    /// Takes the records of a window; `next` is the time of the one after them, of use where [`Self::needs_next`] says so.
    pub fn watch(&mut self, records: &[Record], next: NextTime) {
        self.first_frame = self.frames;
        self.latest_ns.clear();
        for (at, record) in records.iter().enumerate() {
            let Some(time) = record.time() else {
                self.latest_ns.push(self.now.ns);
                continue;
            };
            self.advance(time, records.get(at + 1).map(Record::time).or(next));
            self.latest_ns.push(self.now.ns);
            if let Some(last) = self.last_time_ns
                && time < last
            {
                self.backwards.add(record);
                self.largest_step_ns = self.largest_step_ns.max(last.saturating_sub(time));
            }
            self.last_time_ns = Some(time);
        }
        self.frames += records.len() as u64;
        self.now.frame = self.frames.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damaged_time_does_not_stop_the_clock_and_a_long_pause_moves_it_on() {
        const SECOND: i64 = 1_000_000_000;
        // What the clock says with each frame.
        let clock = |times: &[i64]| {
            let mut clock = ClockOrder::default();
            let step = |at: usize| {
                clock.advance(times[at] * SECOND, times.get(at + 1).map(|next| Some(next * SECOND)));
                clock.now.ns / SECOND
            };
            (0..times.len()).map(step).collect::<Vec<_>>()
        };
        let year = 365 * 86_400;
        assert_eq!(clock(&[100, 101, 103, 102]), [0, 1, 3, 3]);
        assert_eq!(clock(&[100, 100 + year, 101, 102]), [0, 0, 1, 2]);
        assert_eq!(clock(&[100 + year, 100, 101, 102]), [0, 0, 1, 2], "the first one");
        assert_eq!(clock(&[100, 101, 100 + year]), [0, 1, 1], "nothing after it tells");
        assert_eq!(clock(&[100, 101, 100 + year, 101 + year]), [0, 1, year, year + 1], "two agree");
        assert_eq!(clock(&[100, 100 + year, 100 + 2 * year, 100 + 2 * year]), [0, year, 2 * year, 2 * year]);
        assert_eq!(clock(&[100, 100 + 3_600, 100 + 7_200]), [0, 3_600, 7_200]);
    }
}
