//! The classic pcap format: micro- and nanosecond, both byte orders, and the "modified" variant 0xa1b2cd34.
//!
//! draft-ietf-opsawg-pcap. A file header of 24 bytes, then records:
//!
//! ```text
//!  0        4            8              12               16
//!  +--------+------------+--------------+----------------+---- … ----+
//!  | seconds| fraction   | captured len | original len   | the frame |
//!  +--------+------------+--------------+----------------+---- … ----+
//! ```
//!
//! The modified variant has eight bytes more in each record header (interface, protocol, packet type).

use super::record::{Interface, LinkType, Record};
use super::timestamp::pcap_time_ns;
use super::walk::{Damage, Walk, WalkEnd, WalkOut};

/// Most bytes that a frame has in any file of libpcap or Wireshark, unless the file header announces longer ones. A larger
/// length is damage: believed, it would swallow the records after it as one frame that never was.
const USUAL_FRAME_BYTES: u32 = 262_144;

/// So many zeros where records should be are not records.
const ZERO_RUN_BYTES: usize = 4_096;

pub(crate) struct PcapWalker {
    header: FileHeader,
    /// Interface of the frames at hand.
    interface: u32,
}

/// Some old writers put the original length first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LengthOrder {
    CapturedFirst,
    OriginalFirst,
    /// pcap 2.3: whichever is smaller was captured.
    SmallerIsCaptured,
}

#[derive(Clone, Copy)]
struct FileHeader {
    is_big_endian: bool,
    is_nano: bool,
    record_header_bytes: usize,
    length_order: LengthOrder,
    version: (u16, u16),
    snap_length: u32,
    link: LinkType,
    fcs_bytes: u8,
    name: &'static str,
}

impl PcapWalker {
    pub const HEADER_BYTES: usize = 24;

    /// Reads the file header; `head` holds at least [`Self::HEADER_BYTES`] and starts with a pcap magic.
    pub fn new(head: &[u8], file: u16) -> Option<(Self, Interface, &'static str)> {
        let header = FileHeader::parse(head)?;
        Some((Self { header, interface: 0 }, header.interface(file), header.name))
    }

    /// Largest captured length that is believed.
    fn frame_limit(&self, block_limit: u32) -> u32 {
        self.header.snap_length.max(USUAL_FRAME_BYTES).min(block_limit)
    }
}

impl FileHeader {
    fn parse(head: &[u8]) -> Option<Self> {
        let head = head.first_chunk::<{ PcapWalker::HEADER_BYTES }>()?;
        let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let (is_big_endian, is_nano, is_modified, name) = match magic {
            0xa1b2_c3d4 => (false, false, false, "pcap"),
            0xd4c3_b2a1 => (true, false, false, "pcap"),
            0xa1b2_3c4d => (false, true, false, "pcap (nanosecond)"),
            0x4d3c_b2a1 => (true, true, false, "pcap (nanosecond)"),
            0xa1b2_cd34 => (false, false, true, "pcap (modified)"),
            0x34cd_b2a1 => (true, false, true, "pcap (modified)"),
            _ => return None,
        };
        let u16_at = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let u32_at = |at: usize| u32_of(&head[at..at + 4], is_big_endian);
        let version = (u16_at(4), u16_at(6));
        let length_order = match version {
            // 543.0 is what DG/UX wrote.
            (2, 0..=2) | (543, 0) => LengthOrder::OriginalFirst,
            (2, 3) => LengthOrder::SmallerIsCaptured,
            _ => LengthOrder::CapturedFirst,
        };
        // Upper bits: FCS length in units of two bytes (28 to 31), whether it is stated (26), reserved (16 to 25, 27).
        let network = u32_at(20);
        let is_reserved_zero = network & 0x03ff_0000 == 0;
        let link = if is_reserved_zero { LinkType((network & 0xffff) as u16) } else { LinkType::UNKNOWN };
        let has_fcs = is_reserved_zero && network & 0x0400_0000 != 0;
        Some(Self {
            is_big_endian,
            is_nano,
            record_header_bytes: if is_modified { 24 } else { 16 },
            length_order,
            version,
            snap_length: u32_at(16),
            link,
            fcs_bytes: if has_fcs { (network >> 28) as u8 * 2 } else { 0 },
            name,
        })
    }

    fn interface(&self, file: u16) -> Interface {
        let mut interface = Interface::new(file, self.link, self.snap_length);
        interface.fcs_bytes = self.fcs_bytes;
        interface.tsresol = if self.is_nano { 9 } else { 6 };
        interface
    }
}

impl Walk for PcapWalker {
    fn walk(&mut self, data: &[u8], from: usize, out: &mut WalkOut<'_>) -> (usize, WalkEnd) {
        let (major, minor) = self.header.version;
        if major < 2 {
            return (from, WalkEnd::Damaged(Damage::Version { major, minor }));
        }
        let mut limit = self.frame_limit(out.limits.block_bytes);
        let mut header = self.header;
        let mut at = from;
        loop {
            if out.is_full() {
                return (at, WalkEnd::Full);
            }
            let Some(bytes) = data.get(at..at + header.record_header_bytes) else {
                return (at, WalkEnd::NeedMore(at.saturating_add(header.record_header_bytes)));
            };
            let field = |index: usize| u32_of(&bytes[4 * index..4 * index + 4], header.is_big_endian);
            let (seconds, fraction, first, second) = (field(0), field(1), field(2), field(3));
            let (captured, original) = match header.length_order {
                LengthOrder::CapturedFirst => (first, second),
                LengthOrder::OriginalFirst => (second, first),
                LengthOrder::SmallerIsCaptured => (first.min(second), first.max(second)),
            };
            if captured == 0 {
                // A frame of no bytes is rare; what else looks like one is checked before it becomes a row.
                match not_a_record(data, at, out.is_last) {
                    Peek::Record => {}
                    Peek::NeedMore(end) => return (at, WalkEnd::NeedMore(end)),
                    Peek::Zeros => return (at, WalkEnd::Damaged(Damage::Zeros)),
                    Peek::FileHeader(appended) => {
                        let Some(interface) = out.add_interface(appended.interface(out.file)) else {
                            return (at, WalkEnd::Damaged(Damage::AbsurdLength { claimed: captured }));
                        };
                        out.appended_file(at);
                        (self.header, self.interface) = (appended, interface);
                        header = appended;
                        limit = self.frame_limit(out.limits.block_bytes);
                        at += Self::HEADER_BYTES;
                        continue;
                    }
                }
            }
            if captured > limit {
                return (at, WalkEnd::Damaged(Damage::AbsurdLength { claimed: captured }));
            }
            let start = at + header.record_header_bytes;
            let end = start + captured as usize;
            if end > data.len() {
                return (at, WalkEnd::NeedMore(end));
            }
            out.push(Record {
                time_ns: pcap_time_ns(seconds, fraction, header.is_nano),
                frame_no: 0,
                offset: start as u32,
                captured_bytes: captured,
                original_bytes: original,
                interface: self.interface,
                file: out.file,
                buffer: 0,
                link: header.link,
                flags: 0,
            });
            at = end;
        }
    }
}

/// What a record header of captured length 0 is.
enum Peek {
    Record,
    /// The header of another file: `cat a.pcap b.pcap`.
    FileHeader(FileHeader),
    Zeros,
    NeedMore(usize),
}

fn not_a_record(data: &[u8], at: usize, is_last: bool) -> Peek {
    let rest = &data[at..];
    if rest.len() < ZERO_RUN_BYTES && !is_last {
        return Peek::NeedMore(at + ZERO_RUN_BYTES);
    }
    // Fewer may be empty frames of time 0, and Wireshark numbers them as such.
    if rest.len() >= ZERO_RUN_BYTES && rest[..ZERO_RUN_BYTES].iter().all(|byte| *byte == 0) {
        return Peek::Zeros;
    }
    match FileHeader::parse(rest) {
        // Read as a record it would be of the year 2055 and empty; the version makes it certain enough.
        Some(header) if header.version == (2, 4) => Peek::FileHeader(header),
        _ => Peek::Record,
    }
}

pub(super) fn u32_of(bytes: &[u8], is_big_endian: bool) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::super::walk::testing::{Walked, walk_all};
    use super::*;

    struct File {
        big: bool,
        bytes: Vec<u8>,
    }

    impl File {
        fn new(magic: u32, big: bool, version: (u16, u16), network: u32) -> Self {
            let mut file = Self { big, bytes: Vec::new() };
            file.u32(magic).u16(version.0).u16(version.1).u32(0).u32(0).u32(65_535).u32(network);
            file
        }

        fn u32(&mut self, value: u32) -> &mut Self {
            self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
            self
        }

        fn u16(&mut self, value: u16) -> &mut Self {
            self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
            self
        }

        fn frame(&mut self, seconds: u32, fraction: u32, lengths: (u32, u32), data: &[u8]) -> &mut Self {
            self.u32(seconds).u32(fraction).u32(lengths.0).u32(lengths.1);
            self.bytes.extend_from_slice(data);
            self
        }

        fn walk(&self) -> Walked {
            let (mut walker, interface, _) = PcapWalker::new(&self.bytes, 0).expect("a header");
            walk_all(&mut walker, &self.bytes, PcapWalker::HEADER_BYTES, vec![interface])
        }
    }

    const MICRO: u32 = 0xa1b2_c3d4;
    const NANO: u32 = 0xa1b2_3c4d;

    #[test]
    fn both_byte_orders_and_resolutions_give_the_same_frame() {
        for big in [false, true] {
            for (magic, fraction, time) in [(MICRO, 7, 5_000_007_000), (NANO, 7, 5_000_000_007)] {
                let walked = File::new(magic, big, (2, 4), 1).frame(5, fraction, (3, 60), b"abc").walk();
                assert_eq!(walked.times(), [Some(time)]);
                let record = walked.records[0];
                assert_eq!((record.captured_bytes, record.original_bytes, record.offset), (3, 60, 40));
                assert_eq!((record.link, record.frame_no), (LinkType::ETHERNET, 1));
            }
        }
    }

    #[test]
    fn modified_records_have_eight_bytes_more() {
        for big in [false, true] {
            let mut file = File::new(0xa1b2_cd34, big, (2, 4), 1);
            for second in 1..=2 {
                file.frame(second, 0, (3, 3), &[9; 8]).bytes.extend(b"abc");
            }
            let walked = file.walk();
            assert_eq!(walked.times(), [Some(1_000_000_000), Some(2_000_000_000)]);
            assert_eq!(&file.bytes[walked.records[1].offset as usize..][..3], b"abc");
        }
    }

    #[test]
    fn old_versions_have_the_lengths_swapped() {
        for (version, lengths) in [((2, 2), (60, 3)), ((2, 3), (60, 3)), ((2, 3), (3, 60)), ((543, 0), (60, 3))] {
            let walked = File::new(MICRO, true, version, 1).frame(1, 0, lengths, b"abc").walk();
            assert_eq!((walked.records[0].captured_bytes, walked.records[0].original_bytes), (3, 60), "{version:?}");
        }
    }

    #[test]
    fn the_network_field_also_says_how_long_the_fcs_is() {
        let interface = |network| File::new(MICRO, false, (2, 4), network).walk().interfaces[0].clone();
        assert_eq!((interface(0x2400_0001).link, interface(0x2400_0001).fcs_bytes), (LinkType::ETHERNET, 4));
        assert_eq!((interface(0x2000_0001).link, interface(0x2000_0001).fcs_bytes), (LinkType::ETHERNET, 0));
        assert_eq!(interface(0x0020_0001).link, LinkType::UNKNOWN, "reserved bits may change the meaning");
    }

    #[test]
    fn a_frame_longer_than_any_writer_makes_is_damage() {
        let walked = File::new(MICRO, false, (2, 4), 1)
            .frame(1, 0, (3, 3), b"abc")
            .frame(2, 0, (300_000, 300_000), &vec![1; 300_000])
            .walk();
        assert_eq!((walked.records.len(), walked.at), (1, 43));
        assert_eq!(walked.damage(), Some(Damage::AbsurdLength { claimed: 300_000 }));
    }

    #[test]
    fn a_version_before_2_is_not_read() {
        let walked = File::new(MICRO, false, (1, 2), 1).frame(1, 0, (3, 3), b"abc").walk();
        assert_eq!(walked.damage(), Some(Damage::Version { major: 1, minor: 2 }));
    }

    #[test]
    fn a_long_run_of_zeros_is_not_frames_but_a_few_empty_ones_are() {
        let mut file = File::new(MICRO, false, (2, 4), 1);
        file.frame(1, 0, (3, 3), b"abc").bytes.extend([0; 10_000]);
        let walked = file.walk();
        assert_eq!((walked.records.len(), walked.damage()), (1, Some(Damage::Zeros)));
        let mut file = File::new(MICRO, false, (2, 4), 1);
        file.frame(1, 0, (3, 3), b"abc").bytes.extend([0; 32]);
        assert_eq!(file.walk().records.len(), 3);
        let walked = File::new(MICRO, false, (2, 4), 1).frame(0, 0, (0, 0), b"").frame(1, 0, (3, 3), b"abc").walk();
        assert_eq!((walked.records.len(), walked.damage()), (2, None));
    }

    #[test]
    fn a_file_appended_with_cat_is_read_on_with_its_own_header() {
        let mut file = File::new(MICRO, false, (2, 4), 1);
        file.frame(1, 0, (3, 3), b"abc");
        let second = File::new(NANO, true, (2, 4), 101).frame(2, 5, (2, 2), b"de").bytes.clone();
        file.bytes.extend(second);
        let walked = file.walk();
        assert_eq!(walked.times(), [Some(1_000_000_000), Some(2_000_000_005)]);
        assert_eq!(walked.records[1].link, LinkType::RAW);
        assert_eq!((walked.records[1].interface, walked.interfaces.len()), (1, 2));
        assert_eq!(walked.codes(), ["appended_file"]);
    }

    #[test]
    fn every_truncation_keeps_the_frames_before_it() {
        let file =
            File::new(MICRO, false, (2, 4), 1).frame(1, 0, (3, 3), b"abc").frame(2, 0, (4, 4), b"defg").bytes.clone();
        for length in 24..file.len() {
            let walked = File { big: false, bytes: file[..length].to_vec() }.walk();
            assert_eq!(walked.records.len(), usize::from(length >= 43), "{length}");
            assert!(matches!(walked.end, WalkEnd::NeedMore(need) if need > length));
        }
    }
}
