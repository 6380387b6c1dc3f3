//! One file of a set while it is read: its windows, and its interfaces' numbers in the capture.

use std::collections::VecDeque;

use super::record::{Finding, Interface, LinkType, Record, Severity, Window};
use super::single::SingleReader;
use crate::error::Error;

/// Windows read ahead to see whether a file is about to end.
const AHEAD_WINDOWS: usize = 3;

/// The interfaces of the whole capture.
pub(super) struct Interfaces {
    pub all: Vec<Interface>,
    limit: usize,
    /// Stands in for those past the limit.
    over_limit: Option<u32>,
}

impl Interfaces {
    pub fn new(limit: usize) -> Self {
        Self { all: Vec::new(), limit, over_limit: None }
    }

    fn add(&mut self, interface: &Interface) -> u32 {
        let is_stand_in = matches!(interface.link, LinkType::UNKNOWN | LinkType::NO_PACKET);
        if self.all.len() >= self.limit && !is_stand_in {
            let number = self.all.len() as u32;
            let file = interface.file;
            return *self.over_limit.get_or_insert_with(|| {
                self.all.push(Interface::new(file, LinkType::UNKNOWN, 0));
                number
            });
        }
        // Frames and drops are added when the file ends.
        self.all.push(Interface { frames: 0, interface_drops: None, os_drops: None, ..interface.clone() });
        self.all.len() as u32 - 1
    }
}

/// A file being read.
pub(super) struct Lane {
    pub reader: SingleReader,
    pub is_read: bool,
    pub done_bytes: u64,
    windows: VecDeque<Window>,
    /// Next record of the first window.
    at: usize,
    /// Time of the last record taken; stands in for records without one.
    last_time_ns: i64,
    /// Numbers in the capture of the file's interfaces.
    numbers: Vec<u32>,
    continues: Option<Ended>,
    over_limit: u64,
    /// Where the first window's buffer is in the window being merged.
    merged_buffer: Option<(u16, u16)>,
}

/// A file that ended.
pub(super) struct Ended {
    ring: Option<String>,
    numbers: Vec<u32>,
}

impl Ended {
    pub fn is_same_ring(&self, name: &str) -> bool {
        self.ring.is_some() && self.ring == ring_of(name)
    }
}

impl Lane {
    pub fn new(reader: SingleReader, first_time_ns: Option<i64>, continues: Option<Ended>) -> Self {
        Self {
            reader,
            is_read: false,
            done_bytes: 0,
            windows: VecDeque::new(),
            at: 0,
            last_time_ns: first_time_ns.unwrap_or(i64::MIN),
            numbers: Vec::new(),
            continues,
            over_limit: 0,
            merged_buffer: None,
        }
    }

    /// Takes over windows that were read when the file was looked at.
    pub fn adopt(&mut self, windows: VecDeque<Window>, all: &mut Interfaces) {
        for window in windows {
            self.take_in(window, all);
        }
    }

    /// Reads until there is a record, the file ends, or the input makes it wait.
    pub fn fill(&mut self, all: &mut Interfaces) -> Result<(), Error> {
        while self.windows.is_empty() && !self.is_read {
            let before = self.done_bytes;
            self.read_one(all)?;
            if self.windows.is_empty() && self.done_bytes == before {
                break;
            }
        }
        Ok(())
    }

    pub fn read_ahead(&mut self, all: &mut Interfaces) -> Result<(), Error> {
        while !self.is_read && self.windows.len() < AHEAD_WINDOWS {
            let before = self.done_bytes;
            self.read_one(all)?;
            if !self.is_read && self.done_bytes == before && self.windows.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Nothing is left.
    pub fn has_ended(&self) -> bool {
        self.windows.is_empty() && self.is_read
    }

    /// Nothing is there yet: the caller asks its observer, then comes back.
    pub fn is_waiting(&self) -> bool {
        self.windows.is_empty() && !self.is_read
    }

    pub fn is_at_window_start(&self) -> bool {
        self.at == 0
    }

    pub fn take_window(&mut self) -> Window {
        let window = self.windows.pop_front().unwrap_or_default();
        self.last_time_ns = window.records.iter().rev().find_map(Record::time).unwrap_or(self.last_time_ns);
        window
    }

    /// Latest time in the window at hand.
    pub fn window_end(&self) -> i64 {
        let records = self.windows.front().map_or(&[][..], |window| &window.records);
        records.iter().filter_map(Record::time).max().unwrap_or(self.last_time_ns)
    }

    pub fn next_time(&self) -> i64 {
        let record = self.windows.front().and_then(|window| window.records.get(self.at));
        record.map_or(i64::MAX, |record| record.time().unwrap_or(self.last_time_ns))
    }

    pub fn start_merging(&mut self) {
        self.merged_buffer = None;
    }

    /// Moves the next record to the end of `merged`.
    pub fn move_record(&mut self, merged: &mut Window) {
        let Some(window) = self.windows.front() else { return };
        let Some(record) = window.records.get(self.at) else { return };
        let mut record = *record;
        record.buffer = match self.merged_buffer {
            Some((own, there)) if own == record.buffer => there,
            _ => {
                // A merged window takes in no more buffers than it has records.
                merged.buffers.extend(window.buffers.get(usize::from(record.buffer)).cloned());
                let there = merged.buffers.len().saturating_sub(1) as u16;
                self.merged_buffer = Some((record.buffer, there));
                there
            }
        };
        if record.flags & Record::COMMENT != 0 {
            let from = window.comments.partition_point(|(index, _)| (*index as usize) < self.at);
            let own = window.comments[from..].iter().take_while(|(index, _)| *index as usize == self.at);
            let at = merged.records.len() as u32;
            merged.comments.extend(own.map(|(_, text)| (at, text.clone())));
        }
        merged.records.push(record);
        self.last_time_ns = record.time().unwrap_or(self.last_time_ns);
        self.at += 1;
        if self.at >= window.records.len() {
            self.windows.pop_front();
            self.at = 0;
            self.merged_buffer = None;
        }
    }

    /// Adds the file's counts to the capture's interfaces.
    pub fn end(mut self, all: &mut Interfaces) -> (Ended, SingleReader) {
        self.number_interfaces(all);
        for (local, interface) in self.reader.interfaces.iter().enumerate() {
            let Some(global) = self.numbers.get(local).and_then(|at| all.all.get_mut(*at as usize)) else { continue };
            let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            };
            global.frames += interface.frames;
            global.interface_drops = sum(global.interface_drops, interface.interface_drops);
            global.os_drops = sum(global.os_drops, interface.os_drops);
        }
        if self.over_limit > 0 {
            let mut finding = Finding::new("interface_limit", Severity::Error).in_file(self.reader.file);
            finding = finding.value(self.over_limit, "count").detail("limit", all.limit);
            finding.count = self.over_limit;
            self.reader.findings.push(finding);
        }
        (Ended { ring: ring_of(&self.reader.facts.name), numbers: self.numbers }, self.reader)
    }

    fn read_one(&mut self, all: &mut Interfaces) -> Result<(), Error> {
        match self.reader.next_window()? {
            None => self.is_read = true,
            Some(window) => self.take_in(window, all),
        }
        Ok(())
    }

    fn take_in(&mut self, mut window: Window, all: &mut Interfaces) {
        self.done_bytes = window.done_bytes;
        self.number_interfaces(all);
        if window.records.is_empty() {
            return;
        }
        if self.numbers.iter().enumerate().any(|(local, number)| local as u32 != *number) {
            for record in &mut window.records {
                record.interface = self.numbers.get(record.interface as usize).copied().unwrap_or(record.interface);
            }
        }
        self.windows.push_back(window);
    }

    /// Gives the file's new interfaces their numbers in the capture.
    fn number_interfaces(&mut self, all: &mut Interfaces) {
        for local in self.numbers.len()..self.reader.interfaces.len() {
            let interface = &self.reader.interfaces[local];
            let continued = self.continues.as_ref().and_then(|ended| ended.numbers.get(local).copied());
            let is_same = |at: &u32| {
                let old = all.all.get(*at as usize);
                old.is_some_and(|old| old.link == interface.link && old.name == interface.name)
            };
            let number = continued.filter(is_same).unwrap_or_else(|| all.add(interface));
            self.over_limit += u64::from(all.over_limit == Some(number));
            self.numbers.push(number);
        }
    }
}

/// Whether two names are of files of one ring.
pub(super) fn is_same_ring(a: &str, b: &str) -> bool {
    ring_of(a).is_some_and(|ring| ring_of(b).as_ref() == Some(&ring))
}

/// What the names of a ring's files have in common: the name without the number or date that `tcpdump -C`, `-W`, `-G` or
/// `dumpcap -b` give it; `None` where it does not end as a capture's name does. A short number before the ending
/// (`node-2.pcap`) more likely names a host and stays.
pub(crate) fn ring_of(name: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut stem = name;
    for ending in [".gz", ".zst", ".lz4", ".xz"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    // tcpdump -C: trace.pcap, trace.pcap1, trace.pcap2.
    let unnumbered = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    for ending in [".pcap", ".pcapng", ".cap", ".dmp"] {
        if let Some(stem) = unnumbered.strip_suffix(ending) {
            let undated =
                stem.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | ':' | 'T'));
            let tail = &stem[undated.len()..];
            // dumpcap -b: trace_00001_20260131120000; tcpdump -G: whatever strftime gives, with at least a date.
            let parts: Vec<&str> = tail.split(['_', '-', '.', ':', 'T']).collect();
            let digits: usize = parts.iter().map(|part| part.len()).sum();
            let is_counter = parts.iter().any(|part| part.len() == 5 && is_number(part));
            if digits >= 8 || is_counter {
                return Some(undated.to_owned());
            }
            return Some(stem.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::ring_of;

    #[test]
    fn files_of_one_ring_are_known_by_their_names() {
        let rings: [&[&str]; 4] = [
            &["d/h1.pcap", "d/h1.pcap1", "d/h1.pcap12", "d/h1.pcap007.gz"],
            &["lan_00001_20260131120000.pcapng", "lan_00002_20260131120500.pcapng"],
            &["eth0-2026-01-31_12:00:00.pcap", "eth0-2026-01-31_13:00:00.pcap"],
            &["t_00001.pcap.zst", "t_00002.pcap.zst"],
        ];
        for ring in rings {
            let first = ring_of(ring[0]);
            assert!(first.is_some() && ring.iter().all(|name| ring_of(name) == first), "{ring:?}");
        }
    }

    #[test]
    fn a_short_number_names_a_host() {
        assert_ne!(ring_of("node-1.pcap"), ring_of("node-2.pcap"));
        assert_ne!(ring_of("h1.pcap"), ring_of("h2.pcap"));
        assert_ne!(ring_of("a/h1.pcap1"), ring_of("b/h1.pcap2"));
    }
}
