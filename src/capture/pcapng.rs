//! The pcapng format (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces with their own clock resolution,
//! enhanced, simple and obsolete packet blocks, statistics, comments. Blocks of other types are skipped.
//!
//! ```text
//!  0            4                8                          total - 4
//!  +------------+----------------+------------ … -----------+--------------+
//!  | block type | total length   | body (padded to 4 bytes) | total length |
//!  +------------+----------------+------------ … -----------+--------------+
//! ```

use super::pcap::u32_of;
use super::record::{Interface, LinkType, Record};
use super::single::{Damage, Walk, WalkEnd, WalkOut};
use super::timestamp::pcapng_time_ns;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
const EPB_DROPCOUNT: u16 = 4;

#[derive(Default)]
pub(crate) struct PcapngWalker {
    is_big_endian: bool,
    in_section: bool,
    /// This section's interfaces: where each is in the capture's list, and what times need of it.
    interfaces: Vec<SectionInterface>,
}

#[derive(Clone, Copy)]
struct SectionInterface {
    index: u32,
    link: LinkType,
    snap_length: u32,
    tsresol: u8,
    tsoffset_s: i64,
}

impl Walk for PcapngWalker {
    fn walk(&mut self, data: &[u8], from: usize, out: &mut WalkOut<'_>) -> (usize, WalkEnd) {
        let mut at = from;
        loop {
            if out.is_full() {
                return (at, WalkEnd::Full);
            }
            let Some(header) = data.get(at..at + 12) else {
                return (at, WalkEnd::NeedMore(at + 12));
            };
            // The type of a section header reads the same in both byte orders, and its body says which it is.
            let is_section = header[..4] == [0x0a, 0x0d, 0x0d, 0x0a];
            let is_big_endian = if is_section {
                match header[8..12] {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return (at, WalkEnd::Damaged(Damage::BadByteOrder)),
                }
            } else if self.in_section {
                self.is_big_endian
            } else {
                return (at, WalkEnd::Damaged(Damage::NoSection));
            };
            let block_type = if is_section { SECTION_HEADER } else { u32_of(&header[..4], is_big_endian) };
            let total = u32_of(&header[4..8], is_big_endian);
            if total < 12 || total > out.block_limit {
                return (at, WalkEnd::Damaged(Damage::AbsurdLength { claimed: total }));
            }
            let padded = (total as usize).next_multiple_of(4);
            let Some(block) = data.get(at..at + padded) else {
                return (at, WalkEnd::NeedMore(at + padded));
            };
            let trailer = u32_of(&block[padded - 4..], is_big_endian);
            if trailer != total && trailer as usize != padded {
                return (at, WalkEnd::Damaged(Damage::LengthMismatch { first: total, second: trailer }));
            }
            let body = &block[8..padded - 4];
            self.block(block_type, is_big_endian, body, at + 8, out);
            at += padded;
        }
    }
}

impl PcapngWalker {
    fn block(&mut self, block_type: u32, is_big_endian: bool, body: &[u8], body_at: usize, out: &mut WalkOut<'_>) {
        match block_type {
            SECTION_HEADER => {
                self.is_big_endian = is_big_endian;
                self.in_section = true;
                self.interfaces.clear();
            }
            INTERFACE_DESCRIPTION => self.interface(body, out),
            ENHANCED_PACKET => self.enhanced_packet(body, body_at, out),
            SIMPLE_PACKET => self.simple_packet(body, body_at, out),
            PACKET => self.obsolete_packet(body, body_at, out),
            INTERFACE_STATISTICS => self.statistics(body, out),
            _ => out.skipped_blocks += 1,
        }
    }

    fn interface(&mut self, body: &[u8], out: &mut WalkOut<'_>) {
        let Some(fixed) = body.get(..8) else { return out.malformed_block() };
        let link = LinkType(self.u16_of(&fixed[..2]));
        let mut interface = Interface::new(out.file, link, self.u32_of(&fixed[4..8]));
        for (code, value) in self.options(&body[8..]) {
            match (code, value.len()) {
                (IF_NAME, _) => interface.name = Some(text(value)),
                (IF_DESCRIPTION, _) => interface.description = Some(text(value)),
                (IF_SPEED, 8) => interface.speed_bps = Some(self.u64_of(value)).filter(|speed| *speed > 0),
                (IF_TSRESOL, 1) => interface.tsresol = value[0],
                (IF_TSOFFSET, 8) => interface.tsoffset_s = self.u64_of(value) as i64,
                (IF_FCSLEN, 1) => interface.fcs_bytes = value[0],
                _ => {}
            }
        }
        let described = SectionInterface {
            index: u32::MAX,
            link,
            snap_length: interface.snap_length,
            tsresol: interface.tsresol,
            tsoffset_s: interface.tsoffset_s,
        };
        let index = out.add_interface(interface);
        self.interfaces.push(SectionInterface { index, ..described });
    }

    fn enhanced_packet(&mut self, body: &[u8], body_at: usize, out: &mut WalkOut<'_>) {
        let Some(fixed) = body.first_chunk::<20>() else { return out.malformed_block() };
        let field = |index: usize| self.u32_of(&fixed[4 * index..4 * index + 4]);
        let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
        self.packet(field(0), Some(ticks), (field(3), field(4)), body, body_at, 20, out);
    }

    fn obsolete_packet(&mut self, body: &[u8], body_at: usize, out: &mut WalkOut<'_>) {
        let Some(fixed) = body.first_chunk::<20>() else { return out.malformed_block() };
        let field = |index: usize| self.u32_of(&fixed[4 * index..4 * index + 4]);
        let interface = u32::from(self.u16_of(&fixed[..2]));
        let drops = self.u16_of(&fixed[2..4]);
        if drops != u16::MAX {
            out.add_packet_drops(u64::from(drops));
        }
        let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
        self.packet(interface, Some(ticks), (field(3), field(4)), body, body_at, 20, out);
    }

    fn simple_packet(&mut self, body: &[u8], body_at: usize, out: &mut WalkOut<'_>) {
        let Some(fixed) = body.first_chunk::<4>() else { return out.malformed_block() };
        let original = self.u32_of(fixed);
        let snap_length = self.interfaces.first().map_or(0, |interface| interface.snap_length);
        let limit = if snap_length == 0 { u32::MAX } else { snap_length };
        let captured = original.min(limit).min((body.len() - 4) as u32);
        self.packet(0, None, (captured, original), body, body_at, 4, out);
    }

    /// `lengths` = captured and original bytes; the frame starts `header` bytes into the body, options follow it.
    #[expect(clippy::too_many_arguments, reason = "three block types share one tail; a struct would only rename them")]
    fn packet(
        &mut self,
        interface_id: u32,
        ticks: Option<u64>,
        lengths: (u32, u32),
        body: &[u8],
        body_at: usize,
        header: usize,
        out: &mut WalkOut<'_>,
    ) {
        let (captured, original) = lengths;
        let end = header + captured as usize;
        if end > body.len() {
            return out.malformed_block();
        }
        let interface = self.interfaces.get(interface_id as usize).copied();
        let time = match (&interface, ticks) {
            (Some(known), Some(ticks)) => pcapng_time_ns(ticks, known.tsresol, known.tsoffset_s),
            _ => None,
        };
        if ticks.is_some() && time.is_none() && interface.is_some() {
            out.unrepresentable_times += 1;
        }
        let link = interface.map_or(LinkType::UNKNOWN, |known| known.link);
        let index = interface.map_or_else(|| out.undescribed_interface(), |known| known.index);
        let mut flags = if time.is_none() { Record::NO_TIME } else { 0 };
        let options_at = end.next_multiple_of(4);
        // Options start after padding; most packets have none, and then nothing is allocated.
        if ticks.is_some() && body.len() >= options_at + 4 {
            for (code, value) in self.options(&body[options_at..]) {
                match (code, value.len()) {
                    (OPT_COMMENT, _) => {
                        flags |= Record::COMMENT;
                        out.add_comment(text(value));
                    }
                    (EPB_DROPCOUNT, 8) => out.add_packet_drops(self.u64_of(value)),
                    _ => {}
                }
            }
        }
        out.push(Record {
            time_ns: time.unwrap_or(0),
            frame_no: 0,
            offset: (body_at + header) as u32,
            captured_bytes: captured,
            original_bytes: original,
            interface: index,
            file: out.file,
            buffer: 0,
            link,
            flags,
        });
    }

    fn statistics(&mut self, body: &[u8], out: &mut WalkOut<'_>) {
        let Some(fixed) = body.get(..12) else { return out.malformed_block() };
        let Some(known) = self.interfaces.get(self.u32_of(&fixed[..4]) as usize).copied() else {
            return out.malformed_block();
        };
        let (mut interface_drops, mut os_drops) = (None, None);
        for (code, value) in self.options(&body[12..]) {
            match (code, value.len()) {
                (ISB_IFDROP, 8) => interface_drops = Some(self.u64_of(value)),
                (ISB_OSDROP, 8) => os_drops = Some(self.u64_of(value)),
                _ => {}
            }
        }
        out.set_drops(known.index, interface_drops, os_drops);
    }

    /// The options of a block, up to their end mark or the first that does not fit.
    fn options<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let is_big_endian = self.is_big_endian;
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let header = rest.first_chunk::<4>()?;
            let u16_of = |bytes: [u8; 2]| {
                if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
            };
            let code = u16_of([header[0], header[1]]);
            let length = usize::from(u16_of([header[2], header[3]]));
            if code == 0 {
                return None;
            }
            let value = rest.get(4..4 + length)?;
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
            Some((code, value))
        })
    }

    fn u16_of(&self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32_of(&self, bytes: &[u8]) -> u32 {
        u32_of(bytes, self.is_big_endian)
    }

    fn u64_of(&self, bytes: &[u8]) -> u64 {
        let (first, second) = (u64::from(self.u32_of(&bytes[..4])), u64::from(self.u32_of(&bytes[4..8])));
        if self.is_big_endian { first << 32 | second } else { second << 32 | first }
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}
