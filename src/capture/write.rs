//! Frames of a capture as a new pcapng file, for Wireshark: interfaces, times in nanoseconds, comments.
//!
//! A frame without time becomes a simple packet block, which has none either; such a block belongs to its section's first
//! interface, so a new section is begun where that is another.

use std::io::{self, Write};

use super::fileset::Reader;
use super::record::{Interface, LinkType, Record};
use crate::error::Error;
use crate::observe::Observer;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// LINKTYPE_USER0, for frames whose link type no block described: Wireshark shows their bytes.
const USER_LINK_TYPE: u16 = 147;
/// Times before 1970 are counted from here (in seconds), far enough back for every `i64` of nanoseconds.
const EARLY_OFFSET_S: i64 = -9_223_372_037;
/// Most bytes of an option.
const OPTION_BYTES: usize = u16::MAX as usize;

/// What was written of the frames asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Frames written.
    pub frames: u64,
    /// Comments written with them.
    pub comments: u64,
    /// Comments left out because their frame has no time: a simple packet block has no place for them.
    pub comments_left_out: u64,
    /// Records left out because they are no packets (custom blocks, log entries).
    pub records_left_out: u64,
}

/// Which frames to write, and what to say of them. Files count from 1, frames as in Wireshark.
pub(crate) struct Selection<'a> {
    /// Sorted; `None` = all.
    frames: Option<Vec<(u32, u64)>>,
    /// Sorted by frame, those of one frame in the order given.
    comments: Vec<(u32, u64, &'a str)>,
}

impl<'a> Selection<'a> {
    pub fn new(frames: Option<&[(u32, u64)]>, comments: &[(u32, u64, &'a str)]) -> Self {
        let frames = frames.map(|frames| {
            let mut frames = frames.to_vec();
            frames.sort_unstable();
            frames.dedup();
            frames
        });
        let mut comments = comments.to_vec();
        comments.sort_by_key(|(file, frame, _)| (*file, *frame));
        Self { frames, comments }
    }

    fn has(&self, key: (u32, u64)) -> bool {
        self.frames.as_ref().is_none_or(|frames| frames.binary_search(&key).is_ok())
    }

    fn comments_of(&self, key: (u32, u64)) -> impl Iterator<Item = &'a str> {
        let from = self.comments.partition_point(|(file, frame, _)| (*file, *frame) < key);
        self.comments[from..]
            .iter()
            .take_while(move |(file, frame, _)| (*file, *frame) == key)
            .map(|(_, _, text)| *text)
    }
}

/// Writes the selected frames in the order of the capture.
///
/// A frame asked for that the capture does not hold is an error: the file would prove less than it claims.
pub(crate) fn write_frames(
    mut reader: Reader,
    selection: &Selection<'_>,
    out: &mut dyn Write,
    out_name: &std::path::Path,
    observer: &mut dyn Observer,
) -> Result<WriteReport, Error> {
    let io_error = |error| Error::io(out_name, error);
    let mut writer = Writer { out, section: Vec::new(), block: Vec::new(), latest_ns: 0 };
    let mut report = WriteReport::default();
    let mut found = Vec::new();
    writer.begin_section().map_err(io_error)?;
    while let Some(window) = reader.next_window()? {
        if observer.on_progress(window.done_bytes, window.total_bytes).is_break() {
            return Err(Error::Cancelled);
        }
        for (at, record) in window.records.iter().enumerate() {
            let key = (u32::from(record.file) + 1, record.frame_no);
            if !selection.has(key) {
                continue;
            }
            if selection.frames.is_some() {
                found.push(key);
            }
            if record.link == LinkType::NO_PACKET {
                report.records_left_out += 1;
                continue;
            }
            let mut comments: Vec<&str> = Vec::new();
            if record.flags & Record::COMMENT != 0 {
                let from = window.comments.partition_point(|(index, _)| (*index as usize) < at);
                let own = window.comments[from..].iter().take_while(|(index, _)| *index as usize == at);
                comments.extend(own.map(|(_, text)| text.as_str()));
            }
            comments.extend(selection.comments_of(key));
            let interface = reader.interfaces().get(record.interface as usize);
            let fallback = Interface::new(record.file, record.link, 0);
            let interface = (record.interface, interface.unwrap_or(&fallback));
            writer.frame(record, interface, window.bytes(record), &comments).map_err(io_error)?;
            report.frames += 1;
            let comments = comments.len() as u64;
            match record.time() {
                Some(_) => report.comments += comments,
                None => report.comments_left_out += comments,
            }
        }
    }
    let missing = selection.frames.as_ref().and_then(|frames| {
        found.sort_unstable();
        frames.iter().find(|key| found.binary_search(key).is_err())
    });
    if let Some((file, frame)) = missing {
        return Err(Error::Usage(format!("the capture has no frame {frame} in file {file}")));
    }
    writer.statistics(&reader.facts().interfaces).and_then(|()| writer.out.flush()).map_err(io_error)?;
    Ok(report)
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    /// What each interface of the section stands for.
    section: Vec<Described>,
    /// The block being put together.
    block: Vec<u8>,
    latest_ns: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Described {
    interface: u32,
    /// Frames of other link types may share a stand-in's number.
    link: LinkType,
    /// Its times count from [`EARLY_OFFSET_S`].
    is_early: bool,
    snap_length: u32,
}

impl Writer<'_> {
    fn begin_section(&mut self) -> io::Result<()> {
        self.section.clear();
        self.begin(SECTION_HEADER);
        self.u32(0x1a2b_3c4d);
        self.u32(1);
        self.block.extend([0xff; 8]);
        self.option(4, concat!("wirelab ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.end_options();
        self.finish()
    }

    fn frame(
        &mut self,
        record: &Record,
        interface: (u32, &Interface),
        data: &[u8],
        comments: &[&str],
    ) -> io::Result<()> {
        let Some(time_ns) = record.time() else { return self.simple_packet(record, interface, data) };
        let is_early = time_ns < 0;
        let snap_length = interface.1.snap_length;
        let described = Described { interface: interface.0, link: record.link, is_early, snap_length };
        let id = match self.section.iter().position(|known| *known == described) {
            Some(id) => id,
            None => self.describe(described, interface.1)?,
        };
        self.latest_ns = self.latest_ns.max(time_ns);
        let ticks = if is_early {
            i128::from(time_ns) - i128::from(EARLY_OFFSET_S) * 1_000_000_000
        } else {
            i128::from(time_ns)
        };
        let ticks = u64::try_from(ticks).unwrap_or(0);
        self.begin(ENHANCED_PACKET);
        for field in [id as u32, (ticks >> 32) as u32, ticks as u32, data.len() as u32, record.original_bytes] {
            self.u32(field);
        }
        self.data(data);
        for comment in comments {
            self.option(1, comment.as_bytes());
        }
        if !comments.is_empty() {
            self.end_options();
        }
        self.finish()
    }

    fn simple_packet(&mut self, record: &Record, interface: (u32, &Interface), data: &[u8]) -> io::Result<()> {
        // Its captured length is not written: it is the smaller of the original and the snap length.
        let own = interface.1.snap_length;
        let fits = record.original_bytes.min(if own == 0 { u32::MAX } else { own }) == data.len() as u32;
        let snap_length = if fits { own } else { data.len() as u32 };
        let described = Described { interface: interface.0, link: record.link, is_early: false, snap_length };
        if self.section.first() != Some(&described) {
            if !self.section.is_empty() {
                self.begin_section()?;
            }
            self.describe(described, interface.1)?;
        }
        self.begin(SIMPLE_PACKET);
        self.u32(record.original_bytes.max(data.len() as u32));
        self.data(data);
        self.finish()
    }

    /// Writes an interface description; returns its number in the section.
    fn describe(&mut self, described: Described, interface: &Interface) -> io::Result<usize> {
        self.begin(INTERFACE_DESCRIPTION);
        let link = if described.link == LinkType::UNKNOWN { USER_LINK_TYPE } else { described.link.0 };
        self.u32(u32::from(link));
        self.u32(described.snap_length);
        if let Some(name) = &interface.name {
            self.option(2, name.as_bytes());
        }
        if let Some(description) = &interface.description {
            self.option(3, description.as_bytes());
        }
        if let Some(speed) = interface.speed_bps {
            self.option(8, &speed.to_le_bytes());
        }
        self.option(9, &[9]);
        if interface.fcs_bytes > 0 {
            self.option(13, &[interface.fcs_bytes]);
        }
        if described.is_early {
            self.option(14, &EARLY_OFFSET_S.to_le_bytes());
        }
        self.end_options();
        self.section.push(described);
        self.finish()?;
        Ok(self.section.len() - 1)
    }

    /// Drop counts of the interfaces written, so that they are not lost with the copy.
    fn statistics(&mut self, interfaces: &[Interface]) -> io::Result<()> {
        for id in 0..self.section.len() {
            let described = self.section[id];
            let is_first = self.section.iter().position(|known| known.interface == described.interface) == Some(id);
            let Some(interface) = interfaces.get(described.interface as usize).filter(|_| is_first) else { continue };
            if interface.interface_drops.is_none() && interface.os_drops.is_none() {
                continue;
            }
            let ticks = u64::try_from(self.latest_ns).unwrap_or(0);
            self.begin(INTERFACE_STATISTICS);
            for field in [id as u32, (ticks >> 32) as u32, ticks as u32] {
                self.u32(field);
            }
            for (code, count) in [(5, interface.interface_drops), (7, interface.os_drops)] {
                if let Some(count) = count {
                    self.option(code, &count.to_le_bytes());
                }
            }
            self.end_options();
            self.finish()?;
        }
        Ok(())
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.u32(block_type);
        // The length, known at the end.
        self.u32(0);
    }

    fn finish(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.out.write_all(&self.block)
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    fn data(&mut self, data: &[u8]) {
        self.block.extend_from_slice(data);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..whole_characters(value, OPTION_BYTES)];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.data(value);
    }

    fn end_options(&mut self) {
        self.u32(0);
    }
}

/// Where to cut a text so that it has at most `most` bytes and ends with a whole character.
fn whole_characters(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let is_inside = |at: &usize| text[*at] & 0xc0 == 0x80;
    (0..=most).rev().find(|at| !is_inside(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Pcapng, pcap};
    use super::*;
    use crate::capture::Input;
    use crate::observe::Unobserved;
    use crate::options::Limits;

    fn write(
        files: &[Vec<u8>],
        frames: Option<&[(u32, u64)]>,
        comments: &[(u32, u64, &str)],
    ) -> (Vec<u8>, WriteReport) {
        let mut out = Vec::new();
        let inputs: Vec<Input> = files.iter().map(|bytes| bytes.clone().into()).collect();
        let reader = Reader::open(inputs, &Limits::default()).expect("captures");
        let report = write_frames(reader, &Selection::new(frames, comments), &mut out, "out".as_ref(), &mut Unobserved)
            .expect("no error");
        (out, report)
    }

    struct Frame {
        time: Option<i64>,
        link: u16,
        interface: Option<String>,
        original: u32,
        data: Vec<u8>,
        comments: Vec<String>,
    }

    fn read(bytes: &[u8]) -> (Vec<Frame>, Vec<Interface>) {
        let mut reader = Reader::open(vec![bytes.to_vec().into()], &Limits::default()).expect("our own file");
        let mut frames = Vec::new();
        while let Some(window) = reader.next_window().expect("no error") {
            for (at, record) in window.records.iter().enumerate() {
                let own = window.comments.iter().filter(|(index, _)| *index as usize == at);
                frames.push(Frame {
                    time: record.time(),
                    link: record.link.0,
                    interface: reader.interfaces()[record.interface as usize].name.clone(),
                    original: record.original_bytes,
                    data: window.bytes(record).to_vec(),
                    comments: own.map(|(_, text)| text.clone()).collect(),
                });
            }
        }
        assert!(reader.facts().findings.is_empty(), "{:?}", reader.facts().findings);
        (frames, reader.facts().interfaces.clone())
    }

    #[test]
    fn chosen_frames_come_back_whole_with_old_and_new_comments() {
        let mut file = Pcapng::new(true);
        let (speed, drops) = (file.u64(25_000_000_000), file.u64(8));
        file.interface(1, 96, &[(2, b"eth0"), (3, b"uplink"), (8, &speed)]).interface(
            101,
            0,
            &[(2, b"tun0"), (9, &[9])],
        );
        file.packet_of(0, 1_000_001, (5, 60), b"abcde", &[(1, b"old"), (1, "旧".as_bytes())]);
        file.packet(1, 2_000_000_003, b"not chosen", &[]).packet(1, 3_000_000_007, b"xyz", &[]);
        let mut body = [file.u32(0), file.u32(0), file.u32(0)].concat();
        body.extend(file.options(&[(5, &drops), (0, &[])]));
        file.block(5, &body);
        let comments = [(1, 3, "first loss"), (1, 1, "new"), (1, 3, "and why")];
        let (bytes, report) = write(&[file.bytes], Some(&[(1, 3), (1, 1), (1, 3)]), &comments);
        assert_eq!(report, WriteReport { frames: 2, comments: 5, ..WriteReport::default() });
        let (frames, interfaces) = read(&bytes);
        assert_eq!(frames.iter().map(|f| f.time).collect::<Vec<_>>(), [Some(1_000_001_000), Some(3_000_000_007)]);
        assert_eq!((frames[0].original, &frames[0].data[..]), (60, &b"abcde"[..]));
        assert_eq!(frames[0].comments, ["old", "旧", "new"]);
        assert_eq!(frames[1].comments, ["first loss", "and why"]);
        assert_eq!((frames[0].link, frames[1].link), (1, 101));
        assert_eq!((frames[0].interface.as_deref(), frames[1].interface.as_deref()), (Some("eth0"), Some("tun0")));
        let first = &interfaces[0];
        assert_eq!((first.snap_length, first.speed_bps, first.interface_drops), (96, Some(25_000_000_000), Some(8)));
        assert_eq!(first.description.as_deref(), Some("uplink"));
    }

    #[test]
    fn frames_without_time_or_before_1970_or_of_no_known_link_survive() {
        let mut file = Pcapng::new(false);
        let offset = file.u64(-10_i64 as u64);
        file.interface(1, 4, &[]).interface(101, 0, &[(14, &offset)]);
        file.packet(0, 5_000_000, b"timed", &[]).simple(60, b"abcd").packet(1, 1_000_000, b"early", &[]);
        file.packet(9, 7, b"undescribed", &[]).block(0xbad, &[0; 8]).packet(0, 6_000_000, b"later", &[]);
        let (bytes, report) = write(&[file.bytes], None, &[(1, 2, "no place for this")]);
        assert_eq!(report, WriteReport { frames: 5, comments: 0, comments_left_out: 1, records_left_out: 1 });
        let (frames, _) = read(&bytes);
        let kept: Vec<_> = frames.iter().map(|f| (f.time, f.link, f.original, f.data.as_slice())).collect();
        let expected: [(Option<i64>, u16, u32, &[u8]); 5] = [
            (Some(5_000_000_000), 1, 5, b"timed"),
            (None, 1, 60, b"abcd"),
            (Some(-9_000_000_000), 101, 5, b"early"),
            (None, USER_LINK_TYPE, 11, b"undescribed"),
            (Some(6_000_000_000), 1, 5, b"later"),
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn frames_of_several_files_are_written_in_the_order_of_time() {
        let files = [pcap(&[(10, b"a".as_slice()), (30, b"c")]), pcap(&[(20, b"b".as_slice()), (40, b"d")])];
        let (bytes, _) = write(&files, Some(&[(1, 1), (1, 2), (2, 1)]), &[(2, 1, "from the other host")]);
        let (frames, interfaces) = read(&bytes);
        assert_eq!(frames.iter().map(|f| f.data[0]).collect::<Vec<_>>(), b"abc");
        assert_eq!((interfaces.len(), &frames[1].comments[..]), (2, &["from the other host".to_owned()][..]));
    }

    #[test]
    fn a_frame_that_is_not_there_is_an_error() {
        let reader = Reader::open(vec![pcap(&[(1, b"a")]).into()], &Limits::default()).expect("a capture");
        let selection = Selection::new(Some(&[(1, 1), (1, 2)]), &[]);
        let error = write_frames(reader, &selection, &mut Vec::new(), "out".as_ref(), &mut Unobserved)
            .expect_err("frame 2 is not there");
        assert!(error.to_string().contains("frame 2 in file 1"), "{error}");
    }

    #[test]
    fn a_comment_longer_than_an_option_is_cut_between_characters() {
        let long = "损".repeat(30_000);
        let (bytes, _) = write(&[pcap(&[(1, b"a")])], None, &[(1, 1, &long)]);
        let (frames, _) = read(&bytes);
        assert_eq!(frames[0].comments[0], "损".repeat(21_845));
    }
}
