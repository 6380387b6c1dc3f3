//! What a format's walker is handed and hands back: how far it came, why it stopped, and a place for what it finds.

use super::record::{Finding, Interface, LinkType, Record, Severity};
use crate::options::Limits;

/// Records of one window at most: small enough that a window's columns stay in the cache.
pub(crate) const WINDOW_RECORDS: usize = 16_384;

/// Finds the records of one format in a stretch of bytes.
pub(crate) trait Walk: Send {
    /// Walks from `from`; returns where it stopped and why. Every record found lies whole in `data`.
    fn walk(&mut self, data: &[u8], from: usize, out: &mut WalkOut<'_>) -> (usize, WalkEnd);
}

#[derive(Debug)]
pub(crate) enum WalkEnd {
    /// The next record needs `data` to reach this far.
    NeedMore(usize),
    /// The window holds as many records as it may.
    Full,
    /// Nothing after this can be trusted.
    Damaged(Damage),
}

/// Why a file cannot be followed any further.
///
/// Reading stops there. A search for the next plausible record was decided against: what follows may be the payload of the
/// damaged record, a payload may itself be a capture file, and a row that was never captured is worse than a missing one.
/// Wireshark stops at the same place, so the frame numbers before it are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    AbsurdLength {
        claimed: u32,
    },
    LengthMismatch {
        first: u32,
        second: u32,
    },
    BadByteOrder,
    NoSection,
    Version {
        major: u16,
        minor: u16,
    },
    /// The file goes on with nothing but zeros, as after a power cut.
    Zeros,
}

impl Damage {
    /// The words that the finding quotes: keys of sentences, each with its figure.
    pub fn reason(self) -> Vec<(&'static str, u64)> {
        match self {
            Self::AbsurdLength { claimed } => vec![("reason.length", claimed.into())],
            Self::LengthMismatch { first, second } => {
                vec![("reason.block_length", first.into()), ("reason.block_length_end", second.into())]
            }
            Self::BadByteOrder => vec![("reason.byte_order", 0)],
            Self::NoSection => vec![("reason.no_section", 0)],
            Self::Version { major, minor } => {
                vec![("reason.version", major.into()), ("reason.version_minor", minor.into())]
            }
            Self::Zeros => vec![("reason.zeros", 0)],
        }
    }
}

/// Where a walker puts what it finds.
pub(crate) struct WalkOut<'a> {
    pub file: u16,
    /// Offset of the data's first byte in the (decompressed) content.
    pub base: u64,
    pub limits: &'a Limits,
    /// The data reaches to the end of the input.
    pub is_last: bool,
    /// Index of the data's buffer in the window.
    pub buffer: u16,
    pub records: &'a mut Vec<Record>,
    pub comments: &'a mut Vec<(u32, String)>,
    pub interfaces: &'a mut Vec<Interface>,
    pub counts: &'a mut Counts,
}

/// What a file's walk counts beside records.
#[derive(Default)]
pub(crate) struct Counts {
    pub frames: u64,
    pub malformed_blocks: Counted,
    pub unknown_blocks: Counted,
    unknown_block_type: u32,
    pub other_records: Counted,
    pub appended_files: Counted,
    unrepresentable_times: u64,
    undescribed_frames: u64,
    interfaces_over_limit: u64,
    comments_over_limit: u64,
    comment_bytes: usize,
    packet_drops: u64,
    /// Stand-ins for interfaces that no block describes, and for records that are no packets.
    undescribed: Option<u32>,
    without_interface: Option<u32>,
}

/// A count, and where the first was: its byte in the content and the frames before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub count: u64,
    pub first_offset: u64,
    pub frames_before: u64,
}

impl Counted {
    fn add(&mut self, offset: u64, frames_before: u64) {
        if self.count == 0 {
            (self.first_offset, self.frames_before) = (offset, frames_before);
        }
        self.count += 1;
    }
}

impl WalkOut<'_> {
    pub fn is_full(&self) -> bool {
        self.records.len() >= WINDOW_RECORDS
    }

    pub fn push(&mut self, mut record: Record) {
        self.counts.frames += 1;
        record.frame_no = self.counts.frames;
        record.buffer = self.buffer;
        self.records.push(record);
    }

    /// For the record that is pushed next. Returns whether it was kept.
    pub fn add_comment(&mut self, comment: &[u8]) -> bool {
        if comment.is_empty() {
            return false;
        }
        if self.counts.comment_bytes.saturating_add(comment.len()) > self.limits.comment_bytes {
            self.counts.comments_over_limit += 1;
            return false;
        }
        self.counts.comment_bytes += comment.len();
        let at = self.records.len() as u32;
        self.comments.push((at, text(comment)));
        true
    }

    /// Adds an interface, unless there are as many as the limits allow.
    pub fn add_interface(&mut self, interface: Interface) -> Option<u32> {
        if self.interfaces.len() >= self.limits.interfaces {
            self.counts.interfaces_over_limit += 1;
            return None;
        }
        self.interfaces.push(interface);
        Some(self.interfaces.len() as u32 - 1)
    }

    /// The stand-in for interface numbers that no block describes.
    pub fn undescribed_interface(&mut self) -> u32 {
        self.counts.undescribed_frames += 1;
        stand_in(&mut self.counts.undescribed, self.interfaces, self.file, LinkType::UNKNOWN)
    }

    /// The stand-in for records that are no packets and so have no interface.
    pub fn no_interface(&mut self, offset: usize) -> u32 {
        self.counts.other_records.add(self.base + offset as u64, self.counts.frames);
        stand_in(&mut self.counts.without_interface, self.interfaces, self.file, LinkType::NO_PACKET)
    }

    /// A block too short for what it says it holds; `offset` is where it starts in the data.
    pub fn malformed_block(&mut self, offset: usize) {
        self.counts.malformed_blocks.add(self.base + offset as u64, self.counts.frames);
    }

    pub fn unknown_block(&mut self, block_type: u32, offset: usize) {
        if self.counts.unknown_blocks.count == 0 {
            self.counts.unknown_block_type = block_type;
        }
        self.counts.unknown_blocks.add(self.base + offset as u64, self.counts.frames);
    }

    /// A whole file that was appended to this one.
    pub fn appended_file(&mut self, offset: usize) {
        self.counts.appended_files.add(self.base + offset as u64, self.counts.frames);
    }

    pub fn unrepresentable_time(&mut self) {
        self.counts.unrepresentable_times += 1;
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

impl Counts {
    /// What the counts amount to, once the file was read.
    pub fn findings(&self, file: u16, limits: &Limits) -> Vec<Finding> {
        let mut findings = Vec::new();
        let plain: [(&'static str, Severity, u64); 5] = [
            ("unrepresentable_time", Severity::Warning, self.unrepresentable_times),
            ("undescribed_interface", Severity::Warning, self.undescribed_frames),
            ("interface_limit", Severity::Error, self.interfaces_over_limit),
            ("comment_limit", Severity::Warning, self.comments_over_limit),
            ("packet_drops", Severity::Warning, self.packet_drops),
        ];
        for (code, severity, count) in plain {
            if count > 0 {
                let mut finding = Finding::new(code, severity).in_file(file).value(count, "count");
                finding.count = count;
                if code == "comment_limit" {
                    finding = finding.detail("limit", limits.comment_bytes);
                }
                if code == "interface_limit" {
                    finding = finding.detail("limit", limits.interfaces);
                }
                findings.push(finding);
            }
        }
        let placed = [
            ("malformed_blocks", Severity::Error, self.malformed_blocks),
            ("unknown_blocks", Severity::Info, self.unknown_blocks),
            ("other_records", Severity::Info, self.other_records),
            ("appended_file", Severity::Warning, self.appended_files),
        ];
        for (code, severity, counted) in placed {
            if counted.count > 0 {
                let mut finding = Finding::new(code, severity).in_file(file).value(counted.count, "count");
                finding = finding.detail("offset", counted.first_offset).detail("frames", counted.frames_before);
                if code == "unknown_blocks" {
                    finding = finding.detail("type", format!("{:#010x}", self.unknown_block_type));
                }
                if code == "other_records" {
                    finding = finding.at_frame(counted.frames_before + 1);
                }
                finding.count = counted.count;
                findings.push(finding);
            }
        }
        if self.frames == 0 {
            findings.push(Finding::new("no_frames", Severity::Warning).in_file(file));
        }
        findings
    }
}

/// Stand-ins are outside the limit: there are two of them at most.
fn stand_in(known: &mut Option<u32>, interfaces: &mut Vec<Interface>, file: u16, link: LinkType) -> u32 {
    *known.get_or_insert_with(|| {
        interfaces.push(Interface::new(file, link, 0));
        interfaces.len() as u32 - 1
    })
}

/// Text of an option: UTF-8 by the standard, and ended by the first NUL where a writer padded it.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// Runs a walker over whole bytes, for tests of the formats.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub struct Walked {
        pub records: Vec<Record>,
        pub comments: Vec<(u32, String)>,
        pub interfaces: Vec<Interface>,
        pub findings: Vec<Finding>,
        pub end: WalkEnd,
        pub at: usize,
    }

    impl Walked {
        pub fn times(&self) -> Vec<Option<i64>> {
            self.records.iter().map(Record::time).collect()
        }

        pub fn codes(&self) -> Vec<&'static str> {
            self.findings.iter().map(|finding| finding.code).collect()
        }

        pub fn damage(&self) -> Option<Damage> {
            match self.end {
                WalkEnd::Damaged(damage) => Some(damage),
                _ => None,
            }
        }
    }

    pub fn walk_all(walker: &mut dyn Walk, data: &[u8], from: usize, interfaces: Vec<Interface>) -> Walked {
        walk_limited(walker, data, from, interfaces, &Limits::default())
    }

    pub fn walk_limited(
        walker: &mut dyn Walk,
        data: &[u8],
        from: usize,
        mut interfaces: Vec<Interface>,
        limits: &Limits,
    ) -> Walked {
        let (mut records, mut comments, mut counts) = (Vec::new(), Vec::new(), Counts::default());
        let mut out = WalkOut {
            file: 0,
            base: 0,
            limits,
            is_last: true,
            buffer: 0,
            records: &mut records,
            comments: &mut comments,
            interfaces: &mut interfaces,
            counts: &mut counts,
        };
        let (at, end) = walker.walk(data, from, &mut out);
        Walked { findings: counts.findings(0, limits), records, comments, interfaces, end, at }
    }
}
