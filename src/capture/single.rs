//! One input, from its first byte to its last, as windows of records.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::buffer::Buffer;
use super::decompress::{Counted, decompressor};
use super::input::Input;
use super::pcap::PcapWalker;
use super::pcapng::PcapngWalker;
use super::record::{FileFacts, Finding, Interface, Record, Severity, Window};
use super::sniff::{Compression, Content, LooksLike, sniff};
use super::source::{Failing, Share, Source, StreamKind, open_raw, read_head, read_up_to, recycled};
use super::walk::{Counts, Damage, Walk, WalkEnd, WalkOut};
use crate::error::Error;
use crate::options::Limits;

/// A window is read in pieces of this size: the walk from record to record, each step of which waits for the one before,
/// finds in the processor's cache what was just read.
const PIECE_BYTES: usize = 256 << 10;
/// After so many windows' bytes without a record the caller gets an empty window, so that it can ask its observer.
const QUIET_WINDOWS: usize = 2;
/// Buffers of so many windows' bytes, and so many lists of records, are kept for re-use.
const KEPT_WINDOWS: usize = 4;

/// Reads one input.
pub(crate) struct SingleReader {
    path: PathBuf,
    source: Source,
    share: Share,
    walker: Box<dyn Walk>,
    buffer: Arc<Buffer>,
    at: usize,
    /// Offset of the buffer's first byte in the (decompressed) content.
    base: u64,
    retired: Vec<Arc<Buffer>>,
    /// Empty lists for the records of the next windows.
    spare: Vec<Vec<Record>>,
    /// The reader's error, where records were read before it: they go out first.
    failure: Option<io::Error>,
    limits: Limits,
    counts: Counts,
    is_done: bool,
    /// The input did not end where it should; a finding says so already.
    has_bad_end: bool,
    pub file: u16,
    pub interfaces: Vec<Interface>,
    pub findings: Vec<Finding>,
    pub facts: FileFacts,
}

impl SingleReader {
    pub fn open(input: Input, file: u16, limits: &Limits, share: Share) -> Result<Self, Error> {
        let name = input.name();
        let path = PathBuf::from(&name);
        let stored = Arc::new(AtomicU64::new(0));
        let mut raw = open_raw(input, &path, &share)?;
        let io_error = |error| Error::io(&path, error);
        let (head, outcome) = read_head(&mut raw.reader);
        let outcome = match raw.kind {
            // What was read of a file is kept; the error comes again, or the end.
            StreamKind::File if !head.is_empty() => outcome.err(),
            _ => outcome.map(|()| None).map_err(io_error)?,
        };
        let rest: Box<dyn Read + Send> = match outcome {
            None => Box::new(Counted { inner: raw.reader, count: stored.clone() }),
            Some(error) => Box::new(Failing(Some(error))),
        };
        let content = sniff(&head);
        let stored_now = head.len() as u64;
        let (content, compression, source, head) = match content {
            Content::Other(looks_like) => return Err(Error::NotACapture { path, looks_like }),
            Content::Compressed(compression) => {
                stored.fetch_add(stored_now, Ordering::Relaxed);
                let joined: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(rest));
                let reader = decompressor(compression, joined, stored.clone(), limits, share.decoder_bytes);
                let (content, reader, head) = open_compressed(reader.map_err(io_error)?, &path)?;
                let source = Source { reader, stored, kind: StreamKind::Compressed, is_at_end: false };
                (content, Some(compression), source, head)
            }
            content => {
                stored.fetch_add(stored_now, Ordering::Relaxed);
                let source = Source { reader: rest, stored, kind: raw.kind, is_at_end: false };
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
            compression: compression.map(Compression::name),
            stored_bytes: raw.bytes,
            frames: 0,
            first_time_ns: None,
            last_time_ns: None,
        };
        Ok(Self {
            path,
            source,
            share,
            walker,
            buffer: Arc::new(Buffer::owned(head)),
            at,
            base: 0,
            retired: Vec::new(),
            spare: Vec::new(),
            failure: None,
            limits: limits.clone(),
            counts: Counts::default(),
            is_done: false,
            has_bad_end: false,
            file,
            interfaces,
            findings: Vec::new(),
            facts,
        })
    }

    /// The next records, at most one window's worth; `None` at the end. A window may be empty: then the caller should ask
    /// its observer and call again.
    pub fn next_window(&mut self) -> Result<Option<Window>, Error> {
        if let Some(error) = self.failure.take() {
            return Err(Error::io(&self.path, error));
        }
        if self.is_done {
            return Ok(None);
        }
        let mut window = Window { records: self.spare.pop().unwrap_or_default(), ..Window::default() };
        // The first list is reserved at the guess that frames are large; small ones grow it.
        window.records.reserve((self.share.buffer_bytes / 256).clamp(256, 4_096));
        let mut taken_bytes = 0;
        loop {
            let before = window.records.len();
            let (at, end) = self.walk_into(&mut window);
            taken_bytes += at - self.at;
            self.at = at;
            if window.records.len() > before {
                window.buffers.push(self.buffer.clone());
            }
            match end {
                WalkEnd::Full => break,
                WalkEnd::Damaged(damage) => {
                    self.report_damage(damage);
                    self.end();
                    break;
                }
                // What there is goes out; the buffer is replaced at the next call.
                WalkEnd::NeedMore(_) if taken_bytes >= self.most_bytes(&window) && !self.source.is_at_end => {
                    break;
                }
                WalkEnd::NeedMore(need) => match self.refill(need - self.at) {
                    Refill::More => {}
                    Refill::Interrupted => break,
                    Refill::End => {
                        self.report_end();
                        self.end();
                        break;
                    }
                    Refill::Failed(error) if window.records.is_empty() => return Err(Error::io(&self.path, error)),
                    Refill::Failed(error) => {
                        self.failure = Some(error);
                        break;
                    }
                },
            }
        }
        self.note_records(&window.records);
        window.total_bytes = self.facts.stored_bytes;
        window.done_bytes = self.source.stored.load(Ordering::Relaxed);
        Ok(Some(window))
    }

    /// Takes back the list of a window that nobody needs any more.
    pub fn reuse(&mut self, records: Vec<Record>) {
        if self.spare.len() < KEPT_WINDOWS {
            let mut records = records;
            records.clear();
            self.spare.push(records);
        }
    }

    /// The content's first bytes; whole only until records are read.
    pub fn head(&self) -> &[u8] {
        &self.buffer
    }

    /// Bytes of one window.
    fn most_bytes(&self, window: &Window) -> usize {
        let is_quiet = window.records.is_empty();
        self.share.buffer_bytes.saturating_mul(if is_quiet { QUIET_WINDOWS } else { 1 })
    }

    fn walk_into(&mut self, window: &mut Window) -> (usize, WalkEnd) {
        let buffer = self.buffer.clone();
        let mut out = WalkOut {
            file: self.file,
            base: self.base,
            limits: &self.limits,
            is_last: self.source.is_at_end,
            buffer: window.buffers.len() as u16,
            records: &mut window.records,
            comments: &mut window.comments,
            interfaces: &mut self.interfaces,
            counts: &mut self.counts,
        };
        self.walker.walk(&buffer, self.at, &mut out)
    }

    /// Replaces the buffer by one that starts at the first unread byte and reaches at least `need` bytes, if the input does.
    fn refill(&mut self, need: usize) -> Refill {
        let next_base = self.base + self.at as u64;
        let mut wanted = need.max(self.share.buffer_bytes.min(PIECE_BYTES));
        let Source { reader, is_at_end, kind, .. } = &mut self.source;
        if *is_at_end {
            return Refill::End;
        }
        if let (Some(bytes), StreamKind::File) = (self.facts.stored_bytes, *kind) {
            // Small files need no large buffer; one byte more shows that they end there.
            let left = bytes.saturating_sub(next_base).saturating_add(1);
            wanted = wanted.min(usize::try_from(left).unwrap_or(wanted)).max(need);
        }
        let carried = self.buffer.get(self.at..).unwrap_or(&[]);
        let mut bytes = recycled(&mut self.retired, wanted);
        bytes[..carried.len()].copy_from_slice(carried);
        let (filled, outcome) = read_up_to(reader, &mut bytes[..wanted], carried.len());
        let is_short = filled < wanted;
        let next = Arc::new(Buffer { bytes, filled });
        let old = std::mem::replace(&mut self.buffer, next);
        self.retired.push(old);
        let mut kept_bytes: usize = self.retired.iter().map(|buffer| buffer.bytes.len()).sum();
        while kept_bytes > self.share.buffer_bytes.saturating_mul(KEPT_WINDOWS) {
            kept_bytes -= self.retired.remove(0).bytes.len();
        }
        match outcome {
            Ok(()) => *is_at_end = is_short,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.base = next_base;
                self.at = 0;
                return Refill::Interrupted;
            }
            Err(error) => {
                *is_at_end = true;
                match *kind {
                    StreamKind::Compressed => self.report_compression(&error),
                    StreamKind::File => {
                        let _ = self.read_error(&error);
                    }
                    StreamKind::Reader => return Refill::Failed(error),
                }
            }
        }
        let end = next_base + self.buffer.len() as u64;
        let is_shorter = self.facts.compression.is_none() && self.facts.stored_bytes.is_some_and(|bytes| end < bytes);
        if self.source.is_at_end && self.source.kind == StreamKind::File && is_shorter && !self.has_bad_end {
            // The file may have been cut at any place; where reading ended is at least known.
            let size_now = std::fs::metadata(&self.path).map(|file| file.len()).ok();
            let before = self.facts.stored_bytes.unwrap_or(0);
            self.report_shorter(size_now.filter(|size| *size < before).unwrap_or(end));
        }
        self.base = next_base;
        self.at = 0;
        Refill::More
    }

    fn note_records(&mut self, records: &[Record]) {
        for time in records.iter().filter_map(Record::time) {
            self.facts.first_time_ns = Some(self.facts.first_time_ns.map_or(time, |first| first.min(time)));
            self.facts.last_time_ns = Some(self.facts.last_time_ns.map_or(time, |last| last.max(time)));
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
        let left = self.facts.stored_bytes.filter(|_| self.facts.compression.is_none());
        let finding = Finding::new("damaged_file", Severity::Error)
            .in_file(self.file)
            .value(offset, "byte")
            .detail("frames", self.counts.frames)
            .list("reason", damage.reason())
            .detail("lost", left.map_or_else(|| "?".to_owned(), |size| size.saturating_sub(offset).to_string()));
        self.findings.push(finding);
    }

    fn report_end(&mut self) {
        let left = self.buffer.len().saturating_sub(self.at);
        if left > 0 && !self.has_bad_end {
            let finding = Finding::new("cut_file", Severity::Warning)
                .in_file(self.file)
                .value(left as u64, "bytes")
                .detail("offset", self.base + self.at as u64)
                .detail("frames", self.counts.frames);
            self.findings.push(finding);
        }
    }

    /// A file that got shorter while it was read.
    fn report_shorter(&mut self, bytes_now: u64) {
        self.has_bad_end = true;
        let before = self.facts.stored_bytes.unwrap_or(0);
        let finding = Finding::new("file_shortened", Severity::Error)
            .in_file(self.file)
            .value(bytes_now, "bytes")
            .detail("before", before)
            .detail("frames", self.counts.frames);
        self.findings.push(finding);
    }

    /// A file that cannot be read any further: what was read stays.
    fn read_error(&mut self, error: &io::Error) -> Refill {
        self.has_bad_end = true;
        let finding = Finding::new("read_error", Severity::Error)
            .in_file(self.file)
            .value(self.base + self.buffer.len() as u64, "byte")
            .detail("frames", self.counts.frames)
            .because(error);
        self.findings.push(finding);
        Refill::End
    }

    fn report_compression(&mut self, error: &io::Error) {
        self.has_bad_end = true;
        let code = match error.kind() {
            io::ErrorKind::FileTooLarge => "compressed_limit",
            io::ErrorKind::UnexpectedEof => "compressed_cut",
            _ => "compressed_damaged",
        };
        let severity = if code == "compressed_cut" { Severity::Warning } else { Severity::Error };
        let finding = Finding::new(code, severity)
            .in_file(self.file)
            .value(self.base + self.at as u64 + self.buffer.len() as u64, "bytes")
            .because(error);
        self.findings.push(finding);
    }

    /// Reports what was counted on the way; nothing is read after this.
    fn end(&mut self) {
        self.is_done = true;
        self.facts.frames = self.counts.frames;
        // What came out before the stream broke was walked after the break was seen.
        for finding in self.findings.iter_mut().filter(|finding| finding.code.starts_with("compressed_")) {
            finding.details.push(("frames", self.counts.frames.to_string()));
        }
        self.findings.extend(self.counts.findings(self.file, &self.limits));
    }
}

enum Refill {
    More,
    Interrupted,
    End,
    Failed(io::Error),
}

type Opened = (Content, Box<dyn Read + Send>, Vec<u8>);

/// Judges what is inside. A damaged stream may still give enough to judge by; the damage is reported when reading on.
fn open_compressed(mut reader: Box<dyn Read + Send>, path: &std::path::Path) -> Result<Opened, Error> {
    let (head, outcome) = read_head(&mut reader);
    let looks_like = match sniff(&head) {
        Content::Other(LooksLike::Empty | LooksLike::CutHeader) => match outcome {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(Error::io(path, error)),
            _ => LooksLike::CompressedEmpty,
        },
        Content::Compressed(_) => LooksLike::CompressedTwice,
        Content::Other(LooksLike::Text) => LooksLike::CompressedText,
        Content::Other(LooksLike::Unknown) => LooksLike::CompressedOther,
        Content::Other(known) => known,
        content => {
            let reader: Box<dyn Read + Send> = match outcome {
                Ok(()) => reader,
                Err(error) => Box::new(Failing(Some(error))),
            };
            return Ok((content, reader, head));
        }
    };
    Err(Error::NotACapture { path: path.to_path_buf(), looks_like })
}

#[cfg(test)]
mod tests;
