//! One input, from its first byte to its last, as windows of records.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::buffer::Buffer;
use super::decompress::{Counted, decompressor};
use super::input::Input;
use super::pcap::PcapWalker;
use super::pcapng::PcapngWalker;
use super::record::{FileFacts, Finding, Interface, LinkType, Record, Severity, Window};
use super::sniff::{Content, LooksLike, sniff};
use crate::error::Error;
use crate::options::Limits;

/// Records of one window at most: small enough that a window's columns stay in the cache.
pub(crate) const WINDOW_RECORDS: usize = 16_384;
/// Bytes of one buffer, read or mapped.
const BUFFER_BYTES: usize = 8 << 20;
/// Plain files from this size on are mapped; smaller ones are copied, so that nobody can cut them under our feet.
const MAP_FROM_BYTES: u64 = 64 << 20;
/// Bytes read before the content is judged.
const HEAD_BYTES: usize = 64 << 10;

/// Finds the records of one format in a stretch of bytes.
pub(crate) trait Walk: Send {
    /// Walks from `from`; returns where it stopped and why. Every record found lies whole in `data`.
    fn walk(&mut self, data: &[u8], from: usize, out: &mut WalkOut<'_>) -> (usize, WalkEnd);
}

pub(crate) enum WalkEnd {
    /// The next record needs `data` to reach this far.
    NeedMore(usize),
    /// The window holds as many records as it may.
    Full,
    /// Nothing after this can be trusted.
    Damaged(Damage),
}

/// Why a file cannot be followed any further.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    AbsurdLength { claimed: u32 },
    LengthMismatch { first: u32, second: u32 },
    BadByteOrder,
    NoSection,
}

/// Where a walker puts what it finds.
pub(crate) struct WalkOut<'a> {
    pub file: u16,
    /// Where this file's interfaces start (always 0 within a file; the set of files renumbers).
    pub first_interface: u32,
    pub block_limit: u32,
    pub skipped_blocks: u64,
    pub unrepresentable_times: u64,
    records: &'a mut Vec<Record>,
    comments: &'a mut Vec<(u32, String)>,
    interfaces: &'a mut Vec<Interface>,
    counts: &'a mut Counts,
    interface_limit: usize,
}

/// What a file's walk counts beside records.
#[derive(Default)]
struct Counts {
    frames: u64,
    malformed_blocks: u64,
    skipped_blocks: u64,
    unrepresentable_times: u64,
    undescribed: Option<u32>,
    undescribed_frames: u64,
    interfaces_over_limit: u64,
    packet_drops: u64,
}

impl WalkOut<'_> {
    pub fn is_full(&self) -> bool {
        self.records.len() >= WINDOW_RECORDS
    }

    pub fn push(&mut self, mut record: Record) {
        self.counts.frames += 1;
        record.frame_no = self.counts.frames;
        self.records.push(record);
    }

    /// For the record that is pushed next.
    pub fn add_comment(&mut self, comment: String) {
        let at = self.records.len() as u32;
        match self.comments.last_mut() {
            Some((index, text)) if *index == at => {
                text.push('\n');
                text.push_str(&comment);
            }
            _ => self.comments.push((at, comment)),
        }
    }

    pub fn add_interface(&mut self, interface: Interface) -> u32 {
        if self.interfaces.len() >= self.interface_limit {
            self.counts.interfaces_over_limit += 1;
        } else {
            self.interfaces.push(interface);
        }
        self.interfaces.len() as u32 - 1
    }

    /// The stand-in for interface numbers that no block describes.
    pub fn undescribed_interface(&mut self) -> u32 {
        self.counts.undescribed_frames += 1;
        if let Some(index) = self.counts.undescribed {
            return index;
        }
        let index = self.add_interface(Interface::new(self.file, LinkType::UNKNOWN, 0));
        self.counts.undescribed = Some(index);
        index
    }

    pub fn malformed_block(&mut self) {
        self.counts.malformed_blocks += 1;
    }

    pub fn add_packet_drops(&mut self, drops: u64) {
        self.counts.packet_drops = self.counts.packet_drops.saturating_add(drops);
    }

    pub fn set_drops(&mut self, interface: u32, interface_drops: Option<u64>, os_drops: Option<u64>) {
        if let Some(known) = self.interfaces.get_mut(interface as usize) {
            known.interface_drops = interface_drops.or(known.interface_drops);
            known.os_drops = os_drops.or(known.os_drops);
        }
    }
}

/// Reads one input.
pub(crate) struct SingleReader {
    path: PathBuf,
    source: Source,
    walker: Box<dyn Walk>,
    buffer: Arc<Buffer>,
    at: usize,
    /// Offset of the buffer's first byte in the (decompressed) content.
    base: u64,
    retired: Vec<Arc<Buffer>>,
    limits: Limits,
    counts: Counts,
    is_done: bool,
    pub file: u16,
    pub interfaces: Vec<Interface>,
    pub findings: Vec<Finding>,
    pub facts: FileFacts,
}

enum Source {
    Mapped { file: File, length: u64 },
    Stream { reader: Box<dyn Read + Send>, stored: Arc<AtomicU64>, is_compressed: bool, is_at_end: bool },
}

impl SingleReader {
    pub fn open(input: Input, file: u16, limits: &Limits) -> Result<Self, Error> {
        let name = input.name();
        let path = PathBuf::from(&name);
        let stored = Arc::new(AtomicU64::new(0));
        let (mut raw, stored_bytes, plain_file) = open_raw(input, &path)?;
        let io_error = |error| Error::io(&path, error);
        let (head, outcome) = read_head(&mut raw);
        outcome.map_err(io_error)?;
        let content = sniff(&head);
        let head_length = head.len() as u64;
        let rest: Box<dyn Read + Send> = Box::new(Counted { inner: raw, count: stored.clone() });
        let (content, compression, source, head) = match content {
            Content::Other(looks_like) => return Err(Error::NotACapture { path, looks_like }),
            Content::Compressed(compression) => {
                let joined: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(rest));
                stored.fetch_add(head_length, Ordering::Relaxed);
                let mut reader = decompressor(compression, joined, stored.clone(), limits).map_err(io_error)?;
                // A damaged stream may still have given enough to judge by; the damage is reported when reading on.
                let (head, outcome) = read_head(&mut reader);
                let content = match sniff(&head) {
                    Content::Other(LooksLike::Empty | LooksLike::CutHeader) if outcome.is_err() => {
                        return Err(Error::io(&path, outcome.err().unwrap_or_else(|| io::ErrorKind::InvalidData.into())));
                    }
                    Content::Other(_) | Content::Compressed(_) => {
                        return Err(Error::NotACapture { path, looks_like: LooksLike::CompressedOther });
                    }
                    content => content,
                };
                let reader: Box<dyn Read + Send> = match outcome {
                    Ok(()) => reader,
                    Err(error) => Box::new(Failing(Some(error))),
                };
                let source = Source::Stream { reader, stored, is_compressed: true, is_at_end: false };
                (content, Some(compression), source, head)
            }
            content => {
                let source = match plain_file {
                    Some(file) if stored_bytes.is_some_and(|bytes| bytes >= MAP_FROM_BYTES) => {
                        Source::Mapped { file, length: stored_bytes.unwrap_or(0) }
                    }
                    _ => {
                        stored.fetch_add(head_length, Ordering::Relaxed);
                        Source::Stream { reader: rest, stored, is_compressed: false, is_at_end: false }
                    }
                };
                (content, None, source, head)
            }
        };
        let mut interfaces = Vec::new();
        let (walker, format, at): (Box<dyn Walk>, _, _) = if content == Content::Pcap {
            let Some((walker, interface, format)) = PcapWalker::new(&head, file) else {
                return Err(Error::NotACapture { path, looks_like: LooksLike::Unknown });
            };
            interfaces.push(interface);
            (Box::new(walker), format, PcapWalker::HEADER_BYTES)
        } else {
            (Box::new(PcapngWalker::default()), "pcapng", 0)
        };
        let facts = FileFacts {
            name,
            format,
            compression: compression.map(|compression| compression.name()),
            stored_bytes,
            frames: 0,
            first_time_ns: None,
            last_time_ns: None,
        };
        Ok(Self {
            path,
            source,
            walker,
            buffer: Arc::new(Buffer::owned(head)),
            at,
            base: 0,
            retired: Vec::new(),
            limits: limits.clone(),
            counts: Counts::default(),
            is_done: false,
            file,
            interfaces,
            findings: Vec::new(),
            facts,
        })
    }

    /// The next records, at most [`WINDOW_RECORDS`]; `None` at the end. A window may be empty: then the caller should ask
    /// its observer and call again.
    pub fn next_window(&mut self) -> Result<Option<Window>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let mut window = Window::default();
        // Reserved at the guess that frames are large; small ones grow the list, which is then re-used by nobody.
        window.records.reserve(4_096);
        loop {
            let (at, end) = self.walk_into(&mut window);
            self.at = at;
            match end {
                WalkEnd::Full => break,
                WalkEnd::Damaged(damage) => {
                    self.report_damage(damage);
                    self.end();
                    break;
                }
                WalkEnd::NeedMore(need) if !window.records.is_empty() && self.can_give_more() => {
                    // Hand out what there is; the buffer is replaced at the next call.
                    let _ = need;
                    break;
                }
                WalkEnd::NeedMore(need) => match self.refill(need - self.at) {
                    Refill::More => {}
                    Refill::Interrupted => break,
                    Refill::End(error) => {
                        self.report_end(error);
                        self.end();
                        break;
                    }
                    Refill::Failed(error) => return Err(Error::io(&self.path, error)),
                },
            }
        }
        if !window.records.is_empty() {
            window.buffers.push(self.buffer.clone());
            self.note_times(&window.records);
        }
        window.total_bytes = self.facts.stored_bytes;
        window.done_bytes = match &self.source {
            Source::Mapped { .. } => self.base + self.at as u64,
            Source::Stream { stored, .. } => stored.load(Ordering::Relaxed),
        };
        Ok(Some(window))
    }

    fn walk_into(&mut self, window: &mut Window) -> (usize, WalkEnd) {
        let mut out = WalkOut {
            file: self.file,
            first_interface: 0,
            block_limit: self.limits.block_bytes,
            skipped_blocks: 0,
            unrepresentable_times: 0,
            records: &mut window.records,
            comments: &mut window.comments,
            interfaces: &mut self.interfaces,
            counts: &mut self.counts,
            interface_limit: self.limits.interfaces,
        };
        let buffer = self.buffer.clone();
        let result = self.walker.walk(&buffer, self.at, &mut out);
        let (skipped, unrepresentable) = (out.skipped_blocks, out.unrepresentable_times);
        self.counts.skipped_blocks += skipped;
        self.counts.unrepresentable_times += unrepresentable;
        result
    }

    fn can_give_more(&self) -> bool {
        match &self.source {
            Source::Mapped { length, .. } => self.base + (self.buffer.len() as u64) < *length,
            Source::Stream { is_at_end, .. } => !is_at_end,
        }
    }

    /// Replaces the buffer by one that starts at the first unread byte and reaches at least `need` bytes, if the input does.
    fn refill(&mut self, need: usize) -> Refill {
        let wanted = need.max(BUFFER_BYTES);
        let next_base = self.base + self.at as u64;
        match &mut self.source {
            Source::Mapped { file, length } => {
                // The length is asked again: a file cut meanwhile must not be mapped past its end.
                let now = file.metadata().map_or(*length, |metadata| metadata.len().min(*length));
                let available = now.saturating_sub(next_base);
                if available < need as u64 && self.base + self.buffer.len() as u64 >= now {
                    return Refill::End(None);
                }
                let bytes = available.min(wanted as u64) as usize;
                match map(file, next_base, bytes) {
                    Ok(buffer) => self.buffer = Arc::new(buffer),
                    Err(error) => return Refill::Failed(error),
                }
            }
            Source::Stream { reader, is_at_end, is_compressed, .. } => {
                if *is_at_end {
                    return Refill::End(None);
                }
                let carried = self.buffer.get(self.at..).unwrap_or(&[]);
                let mut bytes = recycled(&mut self.retired, wanted);
                bytes[..carried.len()].copy_from_slice(carried);
                let (filled, outcome) = read_up_to(reader, &mut bytes[..wanted], carried.len());
                let is_short = filled < wanted;
                let next = Arc::new(Buffer::Owned { bytes, filled });
                let old = std::mem::replace(&mut self.buffer, next);
                self.retired.push(old);
                self.retired.truncate(8);
                match outcome {
                    Ok(()) => *is_at_end = is_short,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        self.base = next_base;
                        self.at = 0;
                        return Refill::Interrupted;
                    }
                    Err(error) if *is_compressed => {
                        *is_at_end = true;
                        self.report_compression(&error);
                    }
                    Err(error) => return Refill::Failed(error),
                }
            }
        }
        self.base = next_base;
        self.at = 0;
        Refill::More
    }

    fn note_times(&mut self, records: &[Record]) {
        let mut times = records.iter().filter_map(Record::time);
        if self.facts.first_time_ns.is_none() {
            self.facts.first_time_ns = times.next();
        }
        if let Some(last) = records.iter().rev().find_map(Record::time) {
            self.facts.last_time_ns = Some(last);
        }
        for record in records {
            if let Some(interface) = self.interfaces.get_mut(record.interface as usize) {
                interface.frames += 1;
            }
        }
        self.facts.frames = self.counts.frames;
    }

    fn report_damage(&mut self, damage: Damage) {
        let offset = self.base + self.at as u64;
        let reason = match damage {
            Damage::AbsurdLength { claimed } => format!("length {claimed}"),
            Damage::LengthMismatch { first, second } => format!("block length {first} != {second}"),
            Damage::BadByteOrder => "byte-order magic".to_owned(),
            Damage::NoSection => "no section header".to_owned(),
        };
        let left = self.facts.stored_bytes.filter(|_| self.facts.compression.is_none());
        let finding = Finding::new("damaged_file", Severity::Error)
            .in_file(self.file)
            .value(offset, "byte")
            .detail("frames", self.counts.frames)
            .detail("reason", reason)
            .detail("lost", left.map_or_else(|| "?".to_owned(), |size| size.saturating_sub(offset).to_string()));
        self.findings.push(finding);
    }

    fn report_end(&mut self, error: Option<io::Error>) {
        let left = self.buffer.len().saturating_sub(self.at);
        if left > 0 && error.is_none() && !self.findings.iter().any(|finding| finding.code.starts_with("compressed_")) {
            let finding = Finding::new("cut_file", Severity::Warning)
                .in_file(self.file)
                .value(left as u64, "bytes")
                .detail("frames", self.counts.frames);
            self.findings.push(finding);
        }
    }

    fn report_compression(&mut self, error: &io::Error) {
        let code = match error.kind() {
            io::ErrorKind::FileTooLarge => "compressed_limit",
            io::ErrorKind::UnexpectedEof => "compressed_cut",
            _ => "compressed_damaged",
        };
        let severity = if code == "compressed_cut" { Severity::Warning } else { Severity::Error };
        let finding = Finding::new(code, severity)
            .in_file(self.file)
            .value(self.base + self.at as u64 + self.buffer.len() as u64, "bytes")
            .detail("frames", self.counts.frames)
            .detail("reason", error);
        self.findings.push(finding);
    }

    /// Reports what was counted on the way; nothing is read after this.
    fn end(&mut self) {
        self.is_done = true;
        let counts = std::mem::take(&mut self.counts);
        self.facts.frames = counts.frames;
        let counted: [(&'static str, Severity, u64); 5] = [
            ("malformed_blocks", Severity::Warning, counts.malformed_blocks),
            ("unrepresentable_time", Severity::Warning, counts.unrepresentable_times),
            ("undescribed_interface", Severity::Warning, counts.undescribed_frames),
            ("interface_limit", Severity::Error, counts.interfaces_over_limit),
            ("packet_drops", Severity::Warning, counts.packet_drops),
        ];
        for (code, severity, count) in counted {
            if count > 0 {
                let mut finding = Finding::new(code, severity).in_file(self.file).value(count, "count");
                finding.count = count;
                self.findings.push(finding);
            }
        }
        if counts.frames == 0 {
            self.findings.push(Finding::new("no_frames", Severity::Warning).in_file(self.file));
        }
    }
}

enum Refill {
    More,
    Interrupted,
    End(Option<io::Error>),
    Failed(io::Error),
}

/// A reader that gives the error it was made with once, then nothing.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

type Raw = (Box<dyn Read + Send>, Option<u64>, Option<File>);

fn open_raw(input: Input, path: &Path) -> Result<Raw, Error> {
    match input {
        Input::Bytes(bytes) | Input::NamedBytes(bytes, _) => {
            let length = bytes.len() as u64;
            Ok((Box::new(io::Cursor::new(bytes)), Some(length), None))
        }
        Input::Reader(reader, _) => Ok((reader, None, None)),
        Input::Path(name) if name.as_os_str() == "-" => Ok((Box::new(io::stdin()), None, None)),
        Input::Path(name) => {
            let file = File::open(&name).map_err(|error| Error::io(path, error))?;
            let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
            if metadata.is_dir() {
                return Err(Error::io(path, io::ErrorKind::IsADirectory.into()));
            }
            if !metadata.is_file() {
                return Ok((Box::new(file), None, None));
            }
            let second = file.try_clone().ok();
            Ok((Box::new(file), Some(metadata.len()), second))
        }
    }
}

fn read_head(reader: &mut dyn Read) -> (Vec<u8>, io::Result<()>) {
    let mut head = vec![0; HEAD_BYTES];
    let (filled, outcome) = read_up_to(reader, &mut head, 0);
    head.truncate(filled);
    (head, outcome)
}

/// Reads until `bytes` is full or the input ends; returns how far it is filled.
fn read_up_to(reader: &mut dyn Read, bytes: &mut [u8], filled: usize) -> (usize, io::Result<()>) {
    let mut filled = filled;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            // A reader of the caller's may claim more than it was given room for.
            Ok(read) => filled = (filled + read).min(bytes.len()),
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// Room for at least `wanted` bytes, from a buffer that no window uses any more where there is one.
fn recycled(retired: &mut Vec<Arc<Buffer>>, wanted: usize) -> Vec<u8> {
    let mut room = Vec::new();
    if let Some(at) = retired.iter().position(|buffer| Arc::strong_count(buffer) == 1)
        && let Ok(Buffer::Owned { bytes, .. }) = Arc::try_unwrap(retired.swap_remove(at))
    {
        room = bytes;
    }
    if room.len() < wanted {
        room.resize(wanted, 0);
    }
    room
}

/// Maps `bytes` bytes of a file from `offset`.
#[expect(unsafe_code, reason = "a memory map is the one way to read hundreds of gigabytes without copying them")]
fn map(file: &File, offset: u64, bytes: usize) -> io::Result<Buffer> {
    // SAFETY: the map is read-only and private to this reader, and its length was checked against the file's just before.
    // What the type system cannot see is another process that cuts or rewrites the file meanwhile; files below
    // `MAP_FROM_BYTES`, the ones that people edit, are copied instead. Values read from changed bytes are only ever treated
    // as untrusted input.
    let map = unsafe { memmap2::MmapOptions::new().offset(offset).len(bytes).map(file) }?;
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Sequential);
    Ok(Buffer::Mapped(map))
}
