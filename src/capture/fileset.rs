//! Several files as one capture.
//!
//! Files whose spans of time follow each other (a `tcpdump -C`/`-W` ring) are read one after the other, and a file's
//! interfaces continue those of the file before. Files whose spans overlap (one per host) are merged by time, each with
//! interfaces of its own. A file is opened only when its first frame is due.

use std::collections::VecDeque;
use std::sync::Arc;

use super::buffer::Buffer;
use super::input::Input;
use super::record::{CaptureFacts, Interface, Record, Window};
use super::single::{SingleReader, WINDOW_RECORDS};
use crate::error::Error;
use crate::options::Limits;

/// Clocks of two CPUs may disagree by this much where one file of a ring ends and the next begins.
const RING_OVERLAP_NS: i64 = 1_000_000;

/// Reads a capture of one or more inputs in the order of time.
pub(crate) struct Reader {
    limits: Limits,
    pending: VecDeque<Pending>,
    lanes: Vec<Lane>,
    /// Lanes that ended, whose interfaces a later file of the same ring continues.
    ended: Vec<Ended>,
    facts: CaptureFacts,
    done_bytes: u64,
    total_bytes: Option<u64>,
}

struct Pending {
    file: u16,
    first_time_ns: Option<i64>,
    source: PendingSource,
}

enum PendingSource {
    /// A file that was looked at and closed again.
    Closed(Input),
    Open(Box<SingleReader>, VecDeque<Window>),
}

/// A file being read.
struct Lane {
    reader: SingleReader,
    windows: VecDeque<Window>,
    /// Next record of the first window.
    at: usize,
    /// Time of the last record taken; stands in for records without one.
    last_time_ns: i64,
    interfaces: Vec<u32>,
    continues: Option<Ended>,
    is_read: bool,
    done_bytes: u64,
}

#[derive(Clone)]
struct Ended {
    stem: String,
    interfaces: Vec<u32>,
}

impl Reader {
    pub fn open(inputs: Vec<Input>, limits: &Limits) -> Result<Self, Error> {
        if inputs.is_empty() {
            return Err(Error::Usage("no capture was given".to_owned()));
        }
        if inputs.len() > usize::from(u16::MAX) {
            return Err(Error::Usage(format!("{} files are too many for one capture (at most 65,535)", inputs.len())));
        }
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
            let mut reader = SingleReader::open(input, file as u16, limits)?;
            total_bytes = total_bytes.and_then(|total| Some(total + reader.facts.stored_bytes?));
            facts.files.push(reader.facts.clone());
            let mut windows = VecDeque::new();
            if is_set {
                // Only the head of the file is in memory yet, so this costs little.
                while let Some(window) = reader.next_window()? {
                    let has_time = window.records.iter().any(Record::has_time);
                    windows.push_back(window);
                    if has_time {
                        break;
                    }
                }
            }
            let first_time_ns = reader.facts.first_time_ns;
            let source = match again {
                Some(input) => PendingSource::Closed(input),
                None => PendingSource::Open(Box::new(reader), windows),
            };
            pending.push(Pending { file: file as u16, first_time_ns, source });
        }
        // Stable: files that start at the same time stay in the order given.
        pending.sort_by_key(|pending| pending.first_time_ns);
        Ok(Self {
            limits: limits.clone(),
            pending: pending.into(),
            lanes: Vec::new(),
            ended: Vec::new(),
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

    /// The next window in the order of time; `None` at the end. A window may be empty.
    pub fn next_window(&mut self) -> Result<Option<Window>, Error> {
        self.fill_lanes()?;
        if self.lanes.is_empty() {
            if self.pending.is_empty() {
                return Ok(None);
            }
            self.start_next()?;
            self.fill_lanes()?;
        }
        let mut window = match self.lanes.as_mut_slice() {
            [] => Window::default(),
            // The usual case: one file, or one file of a ring. Its windows go through as they are.
            [lane] if lane.at == 0 && !is_due(&self.pending, lane.window_end()) => lane.take_window(),
            _ => self.merge()?,
        };
        for lane in &mut self.lanes {
            lane.number_interfaces(&mut self.facts.interfaces, &self.limits);
        }
        // Records carry their lane's numbers until here; only lanes know the capture's.
        for record in &mut window.records {
            if let Some(lane) = self.lanes.iter().find(|lane| lane.reader.file == record.file) {
                record.interface = lane.interfaces.get(record.interface as usize).copied().unwrap_or(0);
            }
        }
        let running: u64 = self.lanes.iter().map(|lane| lane.done_bytes).sum();
        window.done_bytes = self.done_bytes + running;
        window.total_bytes = self.total_bytes;
        Ok(Some(window))
    }

    /// Gives every lane a window with records left, and retires the lanes that ended.
    fn fill_lanes(&mut self) -> Result<(), Error> {
        let mut index = 0;
        while index < self.lanes.len() {
            let lane = &mut self.lanes[index];
            lane.fill()?;
            if lane.windows.is_empty() && lane.is_read {
                let lane = self.lanes.swap_remove(index);
                self.retire(lane);
            } else {
                index += 1;
            }
        }
        self.lanes.sort_by_key(|lane| lane.reader.file);
        Ok(())
    }

    fn retire(&mut self, mut lane: Lane) {
        lane.number_interfaces(&mut self.facts.interfaces, &self.limits);
        for (local, interface) in lane.reader.interfaces.iter().enumerate() {
            let Some(global) = lane.interfaces.get(local).and_then(|at| self.facts.interfaces.get_mut(*at as usize)) else {
                continue;
            };
            let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            };
            global.frames += interface.frames;
            global.interface_drops = sum(global.interface_drops, interface.interface_drops);
            global.os_drops = sum(global.os_drops, interface.os_drops);
        }
        self.done_bytes += lane.reader.facts.stored_bytes.unwrap_or(lane.done_bytes);
        self.facts.findings.append(&mut lane.reader.findings);
        let stem = stem(&lane.reader.facts.name);
        if let Some(facts) = self.facts.files.get_mut(usize::from(lane.reader.file)) {
            *facts = lane.reader.facts.clone();
        }
        self.ended.push(Ended { stem, interfaces: lane.interfaces });
    }

    fn start_next(&mut self) -> Result<(), Error> {
        let Some(pending) = self.pending.pop_front() else { return Ok(()) };
        let (reader, windows) = match pending.source {
            PendingSource::Closed(input) => {
                (SingleReader::open(input, pending.file, &self.limits)?, VecDeque::new())
            }
            PendingSource::Open(reader, windows) => (*reader, windows),
        };
        let own_stem = stem(&reader.facts.name);
        let continued = if self.lanes.is_empty() {
            self.ended.pop()
        } else {
            // Other hosts are being read: only a file of the same name but for its number continues one that ended.
            let same = self.ended.iter().rposition(|ended| ended.stem == own_stem);
            same.map(|at| self.ended.remove(at))
        };
        self.lanes.push(Lane {
            reader,
            windows,
            at: 0,
            last_time_ns: pending.first_time_ns.unwrap_or(i64::MIN),
            interfaces: Vec::new(),
            continues: continued,
            is_read: false,
            done_bytes: 0,
        });
        self.lanes.sort_by_key(|lane| lane.reader.file);
        Ok(())
    }

    /// Takes records in the order of time from all lanes, and starts files as they fall due.
    fn merge(&mut self) -> Result<Window, Error> {
        let mut merged = Window::default();
        let mut held: Vec<(u16, Arc<Buffer>, u16)> = Vec::new();
        while merged.records.len() < WINDOW_RECORDS {
            let next = self.lanes.iter().enumerate().min_by_key(|(_, lane)| lane.next_time());
            let Some((index, time_ns)) = next.map(|(index, lane)| (index, lane.next_time())) else { break };
            if is_due(&self.pending, time_ns) {
                if self.is_ring_seam(index)? {
                    // The file goes on before the next one starts, although their clocks overlap a little.
                } else {
                    self.start_next()?;
                    self.fill_lanes()?;
                    continue;
                }
            }
            let lane = &mut self.lanes[index];
            let Some(window) = lane.windows.front() else { break };
            let Some(record) = window.records.get(lane.at) else { break };
            let mut record = *record;
            let Some(buffer) = window.buffers.get(usize::from(record.buffer)) else { break };
            let file = record.file;
            let known = held.iter().find(|(of, held, _)| *of == file && Arc::ptr_eq(held, buffer)).map(|(_, _, at)| *at);
            record.buffer = match known {
                Some(at) => at,
                None => {
                    let at = merged.buffers.len() as u16;
                    merged.buffers.push(buffer.clone());
                    held.retain(|(of, _, _)| *of != file);
                    held.push((file, buffer.clone(), at));
                    at
                }
            };
            if record.flags & Record::COMMENT != 0
                && let Ok(at) = window.comments.binary_search_by_key(&(lane.at as u32), |(index, _)| *index)
            {
                merged.comments.push((merged.records.len() as u32, window.comments[at].1.clone()));
            }
            merged.records.push(record);
            lane.last_time_ns = record.time().unwrap_or(lane.last_time_ns);
            lane.at += 1;
            if lane.at >= window.records.len() {
                lane.windows.pop_front();
                lane.at = 0;
                lane.fill()?;
                if lane.windows.is_empty() {
                    // It ended or has nothing yet: either way the caller sees to it before more is merged.
                    break;
                }
            }
        }
        Ok(merged)
    }

    /// Whether the file due next follows the only one being read, whose last frames merely overlap its first.
    fn is_ring_seam(&mut self, index: usize) -> Result<bool, Error> {
        let Some(due_ns) = self.pending.front().and_then(|pending| pending.first_time_ns) else { return Ok(true) };
        if self.lanes.len() != 1 {
            return Ok(false);
        }
        let lane = &mut self.lanes[index];
        while !lane.is_read && lane.windows.len() < 3 {
            lane.read_one()?;
        }
        if !lane.is_read {
            return Ok(false);
        }
        let facts = &lane.reader.facts;
        let (Some(first), Some(last)) = (facts.first_time_ns, facts.last_time_ns) else { return Ok(false) };
        Ok(last.saturating_sub(due_ns) <= RING_OVERLAP_NS.min(last.saturating_sub(first) / 2))
    }
}

impl Lane {
    fn fill(&mut self) -> Result<(), Error> {
        while self.windows.is_empty() && !self.is_read {
            let before = self.done_bytes;
            self.read_one()?;
            if self.windows.is_empty() && !self.is_read && self.done_bytes == before {
                // Interrupted while waiting: the caller asks its observer, then comes back.
                break;
            }
        }
        Ok(())
    }

    fn read_one(&mut self) -> Result<(), Error> {
        match self.reader.next_window()? {
            None => self.is_read = true,
            Some(window) => {
                self.done_bytes = window.done_bytes;
                if !window.records.is_empty() {
                    self.windows.push_back(window);
                }
            }
        }
        Ok(())
    }

    fn take_window(&mut self) -> Window {
        let window = self.windows.pop_front().unwrap_or_default();
        self.last_time_ns = window.records.iter().rev().find_map(Record::time).unwrap_or(self.last_time_ns);
        window
    }

    /// Latest time in the window at hand.
    fn window_end(&self) -> i64 {
        let records = self.windows.front().map_or(&[][..], |window| &window.records);
        records.iter().filter_map(Record::time).max().unwrap_or(self.last_time_ns)
    }

    fn next_time(&self) -> i64 {
        let record = self.windows.front().and_then(|window| window.records.get(self.at));
        record.map_or(i64::MAX, |record| record.time().unwrap_or(self.last_time_ns))
    }

    /// Gives the file's interfaces their numbers in the capture.
    fn number_interfaces(&mut self, all: &mut Vec<Interface>, limits: &Limits) {
        for local in self.interfaces.len()..self.reader.interfaces.len() {
            let interface = &self.reader.interfaces[local];
            let continued = self.continues.as_ref().and_then(|ended| ended.interfaces.get(local).copied());
            let is_same = |at: &u32| {
                all.get(*at as usize).is_some_and(|old| old.link == interface.link && old.name == interface.name)
            };
            let number = match continued.filter(is_same) {
                Some(number) => number,
                None if all.len() >= limits.interfaces => all.len() as u32 - 1,
                None => {
                    // Frames and drops are added when the file ends.
                    let fresh = Interface { frames: 0, interface_drops: None, os_drops: None, ..interface.clone() };
                    all.push(fresh);
                    all.len() as u32 - 1
                }
            };
            self.interfaces.push(number);
        }
    }
}

fn is_due(pending: &VecDeque<Pending>, time_ns: i64) -> bool {
    pending.front().is_some_and(|next| next.first_time_ns.is_none_or(|first| first <= time_ns))
}

/// The file name without the number that `tcpdump -C`, `-W` or `dumpcap -b` give it.
fn stem(name: &str) -> String {
    let without_date = name.split("_0").next().unwrap_or(name);
    without_date.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}
