//! What the readers of every format hand on.

use std::sync::Arc;

use super::buffer::Buffer;

/// A `LINKTYPE_` number as registered at tcpdump.org.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    pub const NULL: Self = Self(0);
    pub const ETHERNET: Self = Self(1);
    pub const RAW_BSD: Self = Self(12);
    pub const RAW_OPENBSD: Self = Self(14);
    pub const RAW: Self = Self(101);
    pub const LOOP: Self = Self(108);
    pub const LINUX_SLL: Self = Self(113);
    pub const IPV4: Self = Self(228);
    pub const IPV6: Self = Self(229);
    pub const LINUX_SLL2: Self = Self(276);
    /// No interface description says what the frame is.
    pub const UNKNOWN: Self = Self(u16::MAX);
    /// Not a packet, but something that Wireshark numbers as it numbers packets (a custom block, a log entry).
    pub const NO_PACKET: Self = Self(u16::MAX - 1);

    /// Whether the frames of this link type are decoded.
    pub fn is_known(self) -> bool {
        matches!(
            self,
            Self::NULL
                | Self::ETHERNET
                | Self::RAW_BSD
                | Self::RAW_OPENBSD
                | Self::RAW
                | Self::LOOP
                | Self::LINUX_SLL
                | Self::IPV4
                | Self::IPV6
                | Self::LINUX_SLL2
        )
    }

    /// The registered name, for the ones decoded here and for those that users meet most.
    pub fn name(self) -> &'static str {
        match self.0 {
            0 => "NULL",
            1 => "ETHERNET",
            9 => "PPP",
            12 | 14 | 101 => "RAW",
            50 => "PPP_HDLC",
            105 => "IEEE802_11",
            107 => "FRELAY",
            108 => "LOOP",
            113 => "LINUX_SLL",
            127 => "IEEE802_11_RADIOTAP",
            147..=162 => "USER",
            189 | 220 => "USB_LINUX",
            195 | 230 => "IEEE802_15_4",
            197 => "ERF",
            228 => "IPV4",
            229 => "IPV6",
            239 => "NFLOG",
            247 => "INFINIBAND",
            253 => "NETLINK",
            276 => "LINUX_SLL2",
            65_534 => "NO_PACKET",
            u16::MAX => "UNKNOWN",
            _ => "OTHER",
        }
    }
}

/// One captured frame: where its bytes are, and what the file says about it.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Nanoseconds since 1970-01-01 UTC; 0 with [`Record::NO_TIME`].
    pub time_ns: i64,
    /// From 1, per file, as Wireshark counts.
    pub frame_no: u64,
    /// Where the frame starts in its buffer.
    pub offset: u32,
    pub captured_bytes: u32,
    /// Bytes on the wire.
    pub original_bytes: u32,
    /// Index into the capture's interfaces.
    pub interface: u32,
    /// Index into the capture's files, from 0.
    pub file: u16,
    /// Index into the window's buffers.
    pub(crate) buffer: u16,
    pub link: LinkType,
    pub flags: u8,
}

impl Record {
    /// The file gives the frame no time (a simple packet block), or one that does not fit.
    pub const NO_TIME: u8 = 1;
    /// The frame has a comment: see [`Window::comments`].
    pub const COMMENT: u8 = 2;

    pub fn has_time(&self) -> bool {
        self.flags & Self::NO_TIME == 0
    }

    pub fn time(&self) -> Option<i64> {
        self.has_time().then_some(self.time_ns)
    }
}

/// A stretch of the capture: records in order, and the bytes they point into.
#[derive(Debug, Default)]
pub struct Window {
    pub records: Vec<Record>,
    pub(crate) buffers: Vec<Arc<Buffer>>,
    /// Comments, by index into `records`, ascending; a record with several has several entries.
    pub comments: Vec<(u32, String)>,
    /// Input consumed so far, as stored.
    pub done_bytes: u64,
    /// Size of the whole input as stored, where known.
    pub total_bytes: Option<u64>,
}

impl Window {
    /// The captured bytes of a record of this window.
    pub fn bytes(&self, record: &Record) -> &[u8] {
        let start = record.offset as usize;
        self.buffers
            .get(usize::from(record.buffer))
            .and_then(|buffer| buffer.get(start..start + record.captured_bytes as usize))
            .unwrap_or(&[])
    }
}

/// An interface of the capture, as its file describes it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Index into the capture's files, from 0.
    pub file: u16,
    pub link: LinkType,
    /// Most bytes kept of a frame; 0 = no limit stated.
    pub snap_length: u32,
    /// Bytes of frame check sequence at the end of each frame, where the file says so.
    pub fcs_bytes: u8,
    pub name: Option<String>,
    pub description: Option<String>,
    /// Link speed in bits per second, where the file says so.
    pub speed_bps: Option<u64>,
    /// Resolution byte as in `if_tsresol`.
    pub(crate) tsresol: u8,
    pub(crate) tsoffset_s: i64,
    /// Drops the capturing system reported: by the interface, and by the operating system.
    pub interface_drops: Option<u64>,
    pub os_drops: Option<u64>,
    /// Frames seen.
    pub frames: u64,
}

impl Interface {
    pub(crate) fn new(file: u16, link: LinkType, snap_length: u32) -> Self {
        Self {
            file,
            link,
            snap_length,
            fcs_bytes: 0,
            name: None,
            description: None,
            speed_bps: None,
            tsresol: 6,
            tsoffset_s: 0,
            interface_drops: None,
            os_drops: None,
            frames: 0,
        }
    }
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingSubject {
    /// Index into the capture's files, from 0; `None` = the whole capture.
    pub file: Option<u16>,
    pub interface: Option<u32>,
    /// First frame concerned.
    pub frame_no: Option<u64>,
    pub time_ns: Option<i64>,
}

/// Something about the capture that whoever reads its figures must know.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Stable name; the sentences are `quality.<code>` in `src/words/`, or `quality.<code>.<variant>`.
    pub code: &'static str,
    /// Which sentence, where one code has several.
    pub variant: Option<&'static str>,
    pub severity: Severity,
    pub subject: FindingSubject,
    /// The figure, in `unit`.
    pub value: Option<i64>,
    pub unit: &'static str,
    /// How many frames (or events) it concerns.
    pub count: u64,
    /// The first frames concerned, at most 20.
    pub frames: Vec<u64>,
    /// Further values for the sentence.
    pub details: Vec<(&'static str, String)>,
    /// Lists for the sentence: each part is a sentence's key and its `{count}`, said in the reader's language.
    pub lists: Vec<(&'static str, Vec<(&'static str, u64)>)>,
}

impl Finding {
    pub(crate) fn new(code: &'static str, severity: Severity) -> Self {
        Self {
            code,
            variant: None,
            severity,
            subject: FindingSubject::default(),
            value: None,
            unit: "",
            count: 1,
            frames: Vec::new(),
            details: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(crate) fn in_file(mut self, file: u16) -> Self {
        self.subject.file = Some(file);
        self
    }

    pub(crate) fn at_frame(mut self, frame_no: u64) -> Self {
        self.subject.frame_no = Some(frame_no);
        self.frames.push(frame_no);
        self
    }

    pub(crate) fn value(mut self, value: u64, unit: &'static str) -> Self {
        self.value = Some(i64::try_from(value).unwrap_or(i64::MAX));
        self.unit = unit;
        self
    }

    /// Another sentence of the same code, where `is` holds.
    pub(crate) fn variant_if(mut self, is: bool, variant: &'static str) -> Self {
        if is {
            self.variant = Some(variant);
        }
        self
    }

    pub(crate) fn list(mut self, name: &'static str, parts: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        self.lists.push((name, parts.into_iter().collect()));
        self
    }

    /// `{reason}` of the sentence: what reading failed with, in the reader's language where it is one of the usual errors.
    pub(crate) fn because(self, error: &std::io::Error) -> Self {
        let text = error.to_string();
        // Texts of flate2, zstd, lz4 and xz; each is for cut or broken files.
        let key = match text.as_str() {
            "incomplete deflate stream" => "reason.deflate_cut",
            "corrupt deflate stream" => "reason.deflate_corrupt",
            "incomplete frame" => "reason.frame_cut",
            "unexpected end of file" | "premature eof" | "failed to fill whole buffer" => "reason.end_missing",
            "decompressed size over the limit" => "reason.over_limit",
            _ => return self.detail("reason", text),
        };
        self.list("reason", [(key, 0)])
    }

    pub(crate) fn detail(mut self, name: &'static str, value: impl ToString) -> Self {
        self.details.push((name, value.to_string()));
        self
    }
}

/// One input file of the capture.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// As the caller named it; `-` for standard input, `<bytes>` for bytes.
    pub name: String,
    pub format: &'static str,
    pub compression: Option<&'static str>,
    /// Size as stored, where known.
    pub stored_bytes: Option<u64>,
    pub frames: u64,
    /// Earliest and latest time of a frame.
    pub first_time_ns: Option<i64>,
    pub last_time_ns: Option<i64>,
}

/// What is known of the capture beside its records; complete once the last window was read.
#[derive(Clone, Debug, Default)]
pub struct CaptureFacts {
    pub files: Vec<FileFacts>,
    pub interfaces: Vec<Interface>,
    pub findings: Vec<Finding>,
}
