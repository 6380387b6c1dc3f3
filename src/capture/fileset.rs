//! Several files as one capture.
//!
//! Files whose spans of time follow each other (a `tcpdump -C`/`-W` ring) are read one after the other, and a file's
//! interfaces continue those of the file before. Files whose spans overlap (one per host) are merged by time, each with
//! interfaces of its own. A file is opened only when its first frame is due.
//!
//! The order of the rows does not depend on the order of the arguments: files that begin at the same time are ordered by
//! name. Files that give no time come first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use super::input::Input;
use super::lane::{Ended, Interfaces, Lane, is_same_ring};
use super::record::{CaptureFacts, Finding, Interface, Record, Severity, Window};
use super::single::SingleReader;
use super::source::Share;
use super::walk::WINDOW_RECORDS;
use crate::error::Error;
use crate::options::Limits;

/// Clocks of two CPUs may disagree by this much where one file of a ring ends and the next begins.
const RING_OVERLAP_NS: i64 = 1_000_000;
/// Sets of more files than this do not hold them open between reads.
const HELD_OPEN_FILES: usize = 64;
/// Windows that are looked at for a file's first time.
const LOOK_WINDOWS: usize = 4;
/// Bytes by which a file is known again.
const KNOWN_BY_BYTES: usize = 4_096;
/// Memory for the windows of all decompressors together, while there are not very many of them.
const DECODERS_BYTES: u64 = 512 << 20;

/// Reads a capture of one or more inputs in the order of time.
pub struct Reader {
    limits: Limits,
    share: Share,
    pending: VecDeque<Pending>,
    lanes: Vec<Lane>,
    /// Files that ended, whose interfaces a later file of the same ring continues.
    ended: Vec<Ended>,
    /// Files were read side by side: there is more than one host.
    has_overlapped: bool,
    interfaces: Interfaces,
    facts: CaptureFacts,
    done_bytes: u64,
    total_bytes: Option<u64>,
}

struct Pending {
    file: u16,
    first_time_ns: Option<i64>,
    stored_bytes: Option<u64>,
    known_by: Known,
    source: PendingSource,
}

/// Length and hash of a file's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Known(usize, u64);

enum PendingSource {
    /// A file that was looked at and closed again.
    Closed(Input),
    Open(Box<SingleReader>, VecDeque<Window>),
}

impl Reader {
    pub fn open(inputs: Vec<Input>, limits: &Limits) -> Result<Self, Error> {
        Self::open_with(inputs, limits, Share::default())
    }

    pub(super) fn open_with(inputs: Vec<Input>, limits: &Limits, share: Share) -> Result<Self, Error> {
        if inputs.is_empty() {
            return Err(Error::Usage("no capture was given".to_owned()));
        }
        let most = limits.files.min(usize::from(u16::MAX));
        if let Some(input) = inputs.get(most) {
            return Err(Error::Limit { path: input.name().into(), limit: "files", value: most as u64 });
        }
        let share = Share { is_reopened: share.is_reopened || inputs.len() > HELD_OPEN_FILES, ..share };
        let is_set = inputs.len() > 1;
        let mut pending = Vec::with_capacity(inputs.len());
        let mut facts = CaptureFacts::default();
        let mut total_bytes = Some(0_u64);
        for (file, input) in inputs.into_iter().enumerate() {
            let again = match &input {
                Input::Path(path) if is_set && path.is_file() => Some(Input::Path(path.clone())),
                Input::Bytes(bytes) if is_set => Some(Input::Bytes(bytes.clone())),
                Input::NamedBytes(bytes, name) if is_set => Some(Input::NamedBytes(bytes.clone(), name.clone())),
                _ => None,
            };
            let look_share = if again.is_some() { Share { buffer_bytes: 64 << 10, ..share } } else { share };
            let mut reader = SingleReader::open(input, file as u16, limits, look_share)?;
            total_bytes = total_bytes.and_then(|total| total.checked_add(reader.facts.stored_bytes?));
            facts.files.push(reader.facts.clone());
            let known_by = Known::of(reader.head(), KNOWN_BY_BYTES);
            let mut windows = VecDeque::new();
            if is_set {
                // Only the head of the file is in memory yet, so this costs little.
                while reader.facts.first_time_ns.is_none() && windows.len() < LOOK_WINDOWS {
                    let Some(window) = reader.next_window()? else { break };
                    windows.push_back(window);
                }
            }
            let (first_time_ns, stored_bytes) = (reader.facts.first_time_ns, reader.facts.stored_bytes);
            let source = match again {
                Some(input) => PendingSource::Closed(input),
                None => PendingSource::Open(Box::new(reader), windows),
            };
            pending.push(Pending { file: file as u16, first_time_ns, stored_bytes, known_by, source });
        }
        let name = |pending: &Pending| &facts.files[usize::from(pending.file)].name;
        pending.sort_by(|a, b| {
            let key = |pending: &Pending| (pending.first_time_ns, pending.known_by);
            a.first_time_ns.cmp(&b.first_time_ns).then_with(|| name(a).cmp(name(b))).then_with(|| key(a).cmp(&key(b)))
        });
        Ok(Self {
            limits: limits.clone(),
            share,
            pending: pending.into(),
            lanes: Vec::new(),
            ended: Vec::new(),
            has_overlapped: false,
            interfaces: Interfaces::new(limits.interfaces),
            facts,
            done_bytes: 0,
            total_bytes,
        })
    }

    /// Size of the whole input as stored, where known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// What is known beside the records; complete after the last window.
    pub fn facts(&self) -> &CaptureFacts {
        &self.facts
    }

    /// The interfaces met so far, by the numbers that records carry.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces.all
    }

    /// The next window in the order of time; `None` at the end. A window may be empty.
    pub fn next_window(&mut self) -> Result<Option<Window>, Error> {
        self.fill_lanes()?;
        if self.lanes.is_empty() {
            if self.pending.is_empty() {
                self.facts.interfaces.clone_from(&self.interfaces.all);
                return Ok(None);
            }
            self.start_next()?;
        }
        let mut window = match self.lanes.as_mut_slice() {
            [] => Window::default(),
            // The usual case: one file, or one file of a ring. Its windows go through as they are.
            [lane] if lane.is_at_window_start() && !is_due(&self.pending, lane.window_end()) => lane.take_window(),
            _ => self.merge()?,
        };
        let running: u64 = self.lanes.iter().map(|lane| lane.done_bytes).sum();
        window.done_bytes = self.done_bytes + running;
        window.total_bytes = self.total_bytes;
        Ok(Some(window))
    }

    /// Takes back the list of a window that nobody needs any more, so that the next one need not have new memory.
    pub fn reuse(&mut self, records: Vec<Record>) {
        if let [lane] = self.lanes.as_mut_slice() {
            lane.reader.reuse(records);
        }
    }

    /// Gives every lane a window with records left, and retires the lanes that ended.
    fn fill_lanes(&mut self) -> Result<(), Error> {
        let mut index = 0;
        while index < self.lanes.len() {
            let lane = &mut self.lanes[index];
            lane.fill(&mut self.interfaces)?;
            if lane.has_ended() {
                let lane = self.lanes.remove(index);
                self.retire(lane);
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    fn retire(&mut self, lane: Lane) {
        self.done_bytes += lane.reader.facts.stored_bytes.unwrap_or(lane.done_bytes);
        let (ended, mut reader) = lane.end(&mut self.interfaces);
        self.facts.findings.append(&mut reader.findings);
        if let Some(facts) = self.facts.files.get_mut(usize::from(reader.file)) {
            *facts = reader.facts;
        }
        self.ended.push(ended);
    }

    /// Starts the file that is due next. One that is gone since it was looked at is reported and left out.
    fn start_next(&mut self) -> Result<(), Error> {
        let Some(pending) = self.pending.pop_front() else { return Ok(()) };
        let (reader, windows) = match pending.source {
            PendingSource::Open(reader, windows) => (*reader, windows),
            PendingSource::Closed(input) => {
                match SingleReader::open(input, pending.file, &self.limits, self.share_of_next()) {
                    Ok(mut reader) => {
                        let is_shorter = reader.facts.stored_bytes < pending.stored_bytes;
                        if is_shorter || Known::of(reader.head(), pending.known_by.0) != pending.known_by {
                            reader
                                .findings
                                .push(file_changed(pending.file).list("reason", [("reason.other_content", 0)]));
                        }
                        (reader, VecDeque::new())
                    }
                    Err(error) => {
                        self.facts.findings.push(file_changed(pending.file).detail("reason", error));
                        return Ok(());
                    }
                }
            }
        };
        self.has_overlapped |= !self.lanes.is_empty();
        let continued = self.continued_by(&reader.facts.name);
        let mut lane = Lane::new(reader, pending.first_time_ns, continued);
        lane.adopt(windows, &mut self.interfaces);
        lane.fill(&mut self.interfaces)?;
        self.lanes.push(lane);
        Ok(())
    }

    /// The ended file whose interfaces the file called `name` continues.
    fn continued_by(&mut self, name: &str) -> Option<Ended> {
        let same_ring = self.ended.iter().rposition(|ended| ended.is_same_ring(name));
        match same_ring {
            Some(at) => Some(self.ended.remove(at)),
            // Files that follow each other are one host's whatever their names, unless there is more than one host.
            None if !self.has_overlapped => self.ended.pop(),
            None => None,
        }
    }

    /// The more files are read side by side, the less memory each may take.
    fn share_of_next(&self) -> Share {
        let running = self.lanes.len();
        let most = match running {
            0..8 => self.share.buffer_bytes,
            8..64 => 1 << 20,
            _ => 64 << 10,
        };
        let decoder_bytes = (DECODERS_BYTES / (running as u64 + 1)).max(16 << 20).min(self.share.decoder_bytes);
        Share { buffer_bytes: self.share.buffer_bytes.min(most), decoder_bytes, ..self.share }
    }

    /// Takes records in the order of time from all lanes, and starts files as they fall due.
    fn merge(&mut self) -> Result<Window, Error> {
        let mut merged = Window::default();
        if self.lanes.iter().any(Lane::is_waiting) {
            return Ok(merged);
        }
        // Lanes stay at their places while this runs. Among equal times the one that began first comes first.
        let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            lane.start_merging();
            next.push(Reverse((lane.next_time(), index)));
        }
        while merged.records.len() < WINDOW_RECORDS {
            let Some(Reverse((time_ns, index))) = next.pop() else { break };
            if is_due(&self.pending, time_ns) && !(next.is_empty() && self.is_ring_seam(index)?) {
                next.push(Reverse((time_ns, index)));
                let lanes = self.lanes.len();
                self.start_next()?;
                if let Some(lane) = self.lanes.get(lanes) {
                    if lane.is_waiting() {
                        break;
                    }
                    if !lane.has_ended() {
                        next.push(Reverse((lane.next_time(), lanes)));
                    }
                }
                continue;
            }
            let Some(lane) = self.lanes.get_mut(index) else { break };
            lane.move_record(&mut merged);
            lane.fill(&mut self.interfaces)?;
            if lane.is_waiting() || lane.has_ended() {
                // The caller sees to it before more is merged: another file may continue the one that ended.
                break;
            }
            next.push(Reverse((lane.next_time(), index)));
        }
        Ok(merged)
    }

    /// Whether the file due next follows the only one being read, whose last frames merely overlap its first.
    fn is_ring_seam(&mut self, index: usize) -> Result<bool, Error> {
        let Some(due_ns) = self.pending.front().and_then(|pending| pending.first_time_ns) else { return Ok(false) };
        let due_name = self.pending.front().and_then(|due| self.facts.files.get(usize::from(due.file)));
        let Some(lane) = self.lanes.get_mut(index) else { return Ok(false) };
        if self.has_overlapped && due_name.is_some_and(|due| !is_same_ring(&due.name, &lane.reader.facts.name)) {
            return Ok(false);
        }
        lane.read_ahead(&mut self.interfaces)?;
        if !lane.is_read {
            return Ok(false);
        }
        let facts = &lane.reader.facts;
        let (Some(first), Some(last)) = (facts.first_time_ns, facts.last_time_ns) else { return Ok(false) };
        Ok(last.saturating_sub(due_ns) <= RING_OVERLAP_NS.min(last.saturating_sub(first) / 50))
    }
}

impl Known {
    fn of(head: &[u8], most: usize) -> Self {
        let head = &head[..head.len().min(most)];
        // Keys are fixed, so the same bytes give the same hash in every run.
        let mut hasher = DefaultHasher::new();
        hasher.write(head);
        Self(head.len(), hasher.finish())
    }
}

fn file_changed(file: u16) -> Finding {
    Finding::new("file_changed", Severity::Error).in_file(file)
}

/// Whether the next file begins no later than `time_ns`. Files without times come before all others.
fn is_due(pending: &VecDeque<Pending>, time_ns: i64) -> bool {
    pending.front().is_some_and(|next| next.first_time_ns.is_some_and(|first| first <= time_ns))
}

#[cfg(test)]
mod tests;
