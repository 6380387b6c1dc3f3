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

use super::record::{Interface, LinkType, Record};
use super::single::{Damage, Walk, WalkEnd, WalkOut};
use super::timestamp::pcap_time_ns;

pub(crate) struct PcapWalker {
    is_big_endian: bool,
    is_nano: bool,
    record_header_bytes: usize,
    length_order: LengthOrder,
    link: LinkType,
}

/// Some old writers put the original length first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LengthOrder {
    CapturedFirst,
    OriginalFirst,
    /// pcap 2.3 and DG/UX files: whichever is smaller was captured.
    SmallerIsCaptured,
}

impl PcapWalker {
    pub const HEADER_BYTES: usize = 24;

    /// Reads the file header; `head` holds at least [`Self::HEADER_BYTES`] and starts with a pcap magic.
    pub fn new(head: &[u8], file: u16) -> Option<(Self, Interface, &'static str)> {
        let head = head.first_chunk::<{ Self::HEADER_BYTES }>()?;
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
        let (major, minor) = (u16_at(4), u16_at(6));
        let length_order = match (major, minor) {
            (2, 0..=2) => LengthOrder::OriginalFirst,
            (2, 3) | (543, 0) => LengthOrder::SmallerIsCaptured,
            _ => LengthOrder::CapturedFirst,
        };
        let network = u32_at(20);
        let link = LinkType((network & 0xffff) as u16);
        let mut interface = Interface::new(file, link, u32_at(16));
        if network & 0x0400_0000 != 0 {
            interface.fcs_bytes = (network >> 28) as u8 * 2;
        }
        interface.tsresol = if is_nano { 9 } else { 6 };
        let record_header_bytes = if is_modified { 24 } else { 16 };
        Some((Self { is_big_endian, is_nano, record_header_bytes, length_order, link }, interface, name))
    }
}

impl Walk for PcapWalker {
    fn walk(&mut self, data: &[u8], from: usize, out: &mut WalkOut<'_>) -> (usize, WalkEnd) {
        let mut at = from;
        loop {
            if out.is_full() {
                return (at, WalkEnd::Full);
            }
            let Some(header) = data.get(at..at + self.record_header_bytes) else {
                return (at, WalkEnd::NeedMore(at.saturating_add(self.record_header_bytes)));
            };
            let field = |index: usize| u32_of(&header[4 * index..4 * index + 4], self.is_big_endian);
            let (seconds, fraction, first, second) = (field(0), field(1), field(2), field(3));
            let (captured, original) = match self.length_order {
                LengthOrder::CapturedFirst => (first, second),
                LengthOrder::OriginalFirst => (second, first),
                LengthOrder::SmallerIsCaptured => (first.min(second), first.max(second)),
            };
            if captured > out.block_limit {
                return (at, WalkEnd::Damaged(Damage::AbsurdLength { claimed: captured }));
            }
            let start = at + self.record_header_bytes;
            let end = start + captured as usize;
            if end > data.len() {
                return (at, WalkEnd::NeedMore(end));
            }
            out.push(Record {
                time_ns: pcap_time_ns(seconds, fraction, self.is_nano),
                frame_no: 0,
                offset: start as u32,
                captured_bytes: captured,
                original_bytes: original,
                interface: out.first_interface,
                file: out.file,
                buffer: 0,
                link: self.link,
                flags: 0,
            });
            at = end;
        }
    }
}

pub(super) fn u32_of(bytes: &[u8], is_big_endian: bool) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}
