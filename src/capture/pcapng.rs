//! The pcapng format (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces with their own clock resolution,
//! enhanced, simple and obsolete packet blocks, statistics, comments.
//!
//! ```text
//!  0            4                8                          total - 4
//!  +------------+----------------+------------ … -----------+--------------+
//!  | block type | total length   | body (padded to 4 bytes) | total length |
//!  +------------+----------------+------------ … -----------+--------------+
//! ```
//!
//! Wireshark also numbers records that are no packets: custom blocks, systemd journal entries, Sysdig events (seen with
//! tshark 4.0.17 on files of each kind). They take a number here too, so that `frame_no` stays Wireshark's: as records of
//! link type [`LinkType::NO_PACKET`] with their sizes and without time. All other blocks are skipped; those of no known type
//! are counted.

use super::pcap::u32_of;
use super::record::{Interface, LinkType, Record};
use super::timestamp::pcapng_time_ns;
use super::walk::{Damage, Walk, WalkEnd, WalkOut, text};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const JOURNAL_EXPORT: u32 = 9;
const DECRYPTION_SECRETS: u32 = 10;
const CUSTOM: u32 = 0x0bad;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
/// Sysdig events, of the three kinds that Wireshark numbers, and the bytes before their parameters.
const SYSDIG_EVENTS: [(u32, usize); 3] = [(0x204, 24), (0x216, 28), (0x221, 28)];

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

/// Names and descriptions of interfaces are kept up to here: an option may hold 64 KiB, and a file may hold many.
const NAME_BYTES: usize = 1_024;

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

/// A block's body, and where in the data its block starts.
#[derive(Clone, Copy)]
struct Block<'a> {
    body: &'a [u8],
    at: usize,
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
            let least = if is_section { 28 } else { 12 };
            if total < least || total > out.limits.block_bytes {
                return (at, WalkEnd::Damaged(Damage::AbsurdLength { claimed: total }));
            }
            // Some writers forget to count the padding.
            let padded = (total as usize).next_multiple_of(4);
            let Some(block) = data.get(at..at + padded) else {
                return (at, WalkEnd::NeedMore(at + padded));
            };
            let trailer = u32_of(&block[padded - 4..], is_big_endian);
            if trailer != total && trailer as usize != padded {
                return (at, WalkEnd::Damaged(Damage::LengthMismatch { first: total, second: trailer }));
            }
            let block = Block { body: &block[8..padded - 4], at };
            if is_section {
                if let Some(damage) = self.section(is_big_endian, block.body) {
                    return (at, WalkEnd::Damaged(damage));
                }
            } else {
                self.block(block_type, block, out);
            }
            at += padded;
        }
    }
}

impl PcapngWalker {
    fn section(&mut self, is_big_endian: bool, body: &[u8]) -> Option<Damage> {
        self.is_big_endian = is_big_endian;
        self.interfaces.clear();
        let (major, minor) = (self.u16_of(&body[4..6]), self.u16_of(&body[6..8]));
        // 1.2 is the same as 1.0 by the standard's own words.
        self.in_section = major == 1 && matches!(minor, 0 | 2);
        (!self.in_section).then_some(Damage::Version { major, minor })
    }

    fn block(&mut self, block_type: u32, block: Block<'_>, out: &mut WalkOut<'_>) {
        match block_type {
            INTERFACE_DESCRIPTION => self.interface(block, out),
            ENHANCED_PACKET => self.enhanced_packet(block, out),
            SIMPLE_PACKET => self.simple_packet(block, out),
            PACKET => self.obsolete_packet(block, out),
            INTERFACE_STATISTICS => self.statistics(block, out),
            // Wireshark counts what follows the vendor's number.
            CUSTOM | CUSTOM_NOT_COPIED => self.other_record(block, 4, out),
            JOURNAL_EXPORT => self.other_record(block, 0, out),
            NAME_RESOLUTION | DECRYPTION_SECRETS => {}
            _ => match SYSDIG_EVENTS.iter().find(|(known, _)| *known == block_type) {
                Some((_, header)) => self.other_record(block, *header, out),
                None => out.unknown_block(block_type, block.at),
            },
        }
    }

    fn interface(&mut self, block: Block<'_>, out: &mut WalkOut<'_>) {
        let Some(fixed) = block.body.get(..8) else { return out.malformed_block(block.at) };
        let link = LinkType(self.u16_of(&fixed[..2]));
        let mut interface = Interface::new(out.file, link, self.u32_of(&fixed[4..8]));
        for (code, value) in self.options(&block.body[8..]) {
            let name = || Some(text(&value[..value.len().min(NAME_BYTES)])).filter(|name| !name.is_empty());
            match (code, value.len()) {
                (IF_NAME, _) => interface.name = name(),
                (IF_DESCRIPTION, _) => interface.description = name(),
                (IF_SPEED, 8) => interface.speed_bps = Some(self.u64_of(value)).filter(|speed| *speed > 0),
                (IF_TSRESOL, 1) => interface.tsresol = value[0],
                (IF_TSOFFSET, 8) => interface.tsoffset_s = self.u64_of(value) as i64,
                // Bytes to some writers, bits to others; no link has 8 bytes of it.
                (IF_FCSLEN, 1) => interface.fcs_bytes = if value[0] < 8 { value[0] } else { value[0] / 8 },
                _ => {}
            }
        }
        let (tsresol, tsoffset_s, snap_length) = (interface.tsresol, interface.tsoffset_s, interface.snap_length);
        if let Some(index) = out.add_interface(interface) {
            self.interfaces.push(SectionInterface { index, link, snap_length, tsresol, tsoffset_s });
        }
    }

    fn enhanced_packet(&mut self, block: Block<'_>, out: &mut WalkOut<'_>) {
        let Some(fixed) = block.body.first_chunk::<20>() else { return out.malformed_block(block.at) };
        let field = |index: usize| self.u32_of(&fixed[4 * index..4 * index + 4]);
        let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
        self.packet(field(0), Some(ticks), (field(3), field(4)), block, 20, out);
    }

    fn obsolete_packet(&mut self, block: Block<'_>, out: &mut WalkOut<'_>) {
        let Some(fixed) = block.body.first_chunk::<20>() else { return out.malformed_block(block.at) };
        let field = |index: usize| self.u32_of(&fixed[4 * index..4 * index + 4]);
        let interface = u32::from(self.u16_of(&fixed[..2]));
        let drops = self.u16_of(&fixed[2..4]);
        if drops != u16::MAX {
            out.add_packet_drops(u64::from(drops));
        }
        let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
        self.packet(interface, Some(ticks), (field(3), field(4)), block, 20, out);
    }

    fn simple_packet(&mut self, block: Block<'_>, out: &mut WalkOut<'_>) {
        let Some(fixed) = block.body.first_chunk::<4>() else { return out.malformed_block(block.at) };
        let original = self.u32_of(fixed);
        let snap_length = self.interfaces.first().map_or(0, |interface| interface.snap_length);
        let limit = if snap_length == 0 { u32::MAX } else { snap_length };
        self.packet(0, None, (original.min(limit), original), block, 4, out);
    }

    /// What Wireshark numbers although it is no packet; its content starts `header` bytes into the body.
    fn other_record(&mut self, block: Block<'_>, header: usize, out: &mut WalkOut<'_>) {
        if block.body.len() < header {
            return out.malformed_block(block.at);
        }
        let bytes = (block.body.len() - header) as u32;
        let record = Record {
            time_ns: 0,
            frame_no: 0,
            offset: (block.at + 8 + header) as u32,
            captured_bytes: bytes,
            original_bytes: bytes,
            interface: out.no_interface(block.at),
            file: out.file,
            buffer: 0,
            link: LinkType::NO_PACKET,
            flags: Record::NO_TIME,
        };
        out.push(record);
    }

    /// `lengths` = captured and original bytes; the frame starts `header` bytes into the body, options follow it.
    fn packet(
        &mut self,
        interface_id: u32,
        ticks: Option<u64>,
        lengths: (u32, u32),
        block: Block<'_>,
        header: usize,
        out: &mut WalkOut<'_>,
    ) {
        let (captured, original) = lengths;
        let end = header + captured as usize;
        if end > block.body.len() {
            return out.malformed_block(block.at);
        }
        let interface = self.interfaces.get(interface_id as usize).copied();
        let time = match (&interface, ticks) {
            (Some(known), Some(ticks)) => pcapng_time_ns(ticks, known.tsresol, known.tsoffset_s),
            _ => None,
        };
        if ticks.is_some() && time.is_none() && interface.is_some() {
            out.unrepresentable_time();
        }
        let link = interface.map_or(LinkType::UNKNOWN, |known| known.link);
        let index = interface.map_or_else(|| out.undescribed_interface(), |known| known.index);
        let mut flags = if time.is_none() { Record::NO_TIME } else { 0 };
        let options_at = end.next_multiple_of(4);
        // Options start after padding; most packets have none, and then nothing is allocated.
        if ticks.is_some() && block.body.len() >= options_at + 4 {
            for (code, value) in self.options(&block.body[options_at..]) {
                match (code, value.len()) {
                    (OPT_COMMENT, _) if out.add_comment(value) => flags |= Record::COMMENT,
                    (EPB_DROPCOUNT, 8) => out.add_packet_drops(self.u64_of(value)),
                    _ => {}
                }
            }
        }
        out.push(Record {
            time_ns: time.unwrap_or(0),
            frame_no: 0,
            offset: (block.at + 8 + header) as u32,
            captured_bytes: captured,
            original_bytes: original,
            interface: index,
            file: out.file,
            buffer: 0,
            link,
            flags,
        });
    }

    fn statistics(&mut self, block: Block<'_>, out: &mut WalkOut<'_>) {
        let Some(fixed) = block.body.get(..12) else { return out.malformed_block(block.at) };
        let Some(known) = self.interfaces.get(self.u32_of(&fixed[..4]) as usize).copied() else {
            return out.malformed_block(block.at);
        };
        let (mut interface_drops, mut os_drops) = (None, None);
        for (code, value) in self.options(&block.body[12..]) {
            match (code, value.len()) {
                (ISB_IFDROP, 8) => interface_drops = known_count(self.u64_of(value)),
                (ISB_OSDROP, 8) => os_drops = known_count(self.u64_of(value)),
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

/// All ones mean that the writer does not know.
fn known_count(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

#[cfg(test)]
mod tests;
