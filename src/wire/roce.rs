//! RDMA over Converged Ethernet: the InfiniBand Base Transport Header and its extension headers (IBTA volume 1, chapter 9).
//!
//! ```text
//!  0      1            2        4          5          8        9        12
//!  +------+------------+--------+----------+----------+--------+--------+
//!  |opcode| SE M Pad TVer| P_Key|F B resv6 | dest QP  |A resv7 | PSN    |
//!  +------+------------+--------+----------+----------+--------+--------+
//! ```
//!
//! Extension headers follow in an order that the opcode fixes; pad bytes and a 4-byte invariant CRC end the packet.

use super::error::DecodeErrorKind;
use super::icrc::IcrcStatus;
use super::{be16, be24, be32, be64};

/// Bits of the Base Transport Header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BthFlags(pub u8);

impl BthFlags {
    pub const SOLICITED: u8 = 1;
    pub const MIG_REQ: u8 = 2;
    pub const FECN: u8 = 4;
    pub const BECN: u8 = 8;
    pub const ACK_REQ: u8 = 16;
    /// An extension header is missing from the capture.
    pub const EXTENSION_CUT: u8 = 32;

    pub fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// One RoCE packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RocePacket {
    pub opcode: u8,
    pub flags: BthFlags,
    /// Pad bytes after the payload, 0 to 3.
    pub pad: u8,
    pub pkey: u16,
    pub dest_qp: u32,
    pub psn: u32,
    /// RETH: virtual address, remote key, DMA length.
    pub reth: Option<(u64, u32, u32)>,
    /// AETH: syndrome and message sequence number.
    pub aeth: Option<(u8, u32)>,
    pub imm: Option<u32>,
    /// IETH: remote key to invalidate.
    pub ieth: Option<u32>,
    /// DETH: queue key and source queue pair.
    pub deth: Option<(u32, u32)>,
    /// AtomicETH: virtual address, remote key, swap or add, compare.
    pub atomic: Option<(u64, u32, u64, u64)>,
    /// AtomicAckETH: the value before the operation.
    pub atomic_ack: Option<u64>,
    /// XRCETH: shared receive queue.
    pub xrc_srq: Option<u32>,
    /// Payload without pad bytes and invariant CRC, as the lengths declare it.
    pub payload_bytes: u32,
    /// Whether the invariant CRC fits; `None` where not verified.
    pub icrc: Option<IcrcStatus>,
}

const RETH: u16 = 1;
const AETH: u16 = 2;
const IMM: u16 = 4;
const IETH: u16 = 8;
const DETH: u16 = 16;
const ATOMIC: u16 = 32;
const ATOMIC_ACK: u16 = 64;
const RDETH: u16 = 128;
const XRC: u16 = 256;

impl RocePacket {
    pub const BTH_BYTES: usize = 12;
    pub const ICRC_BYTES: u32 = 4;

    /// Reads the transport headers. `declared_bytes` is the length of everything from the BTH to the invariant CRC.
    pub fn parse(bytes: &[u8], declared_bytes: u32) -> Result<Self, DecodeErrorKind> {
        let Some(bth) = bytes.first_chunk::<{ Self::BTH_BYTES }>() else {
            return Err(DecodeErrorKind::Truncated { need_bytes: Self::BTH_BYTES, have_bytes: bytes.len() });
        };
        if bth[1] & 0x0f != 0 {
            return Err(DecodeErrorKind::BadField { field: "transport version", value: u64::from(bth[1] & 0x0f) });
        }
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let mut packet = Self {
            opcode: bth[0],
            flags: BthFlags(
                flag(bth[1] & 0x80 != 0, BthFlags::SOLICITED)
                    | flag(bth[1] & 0x40 != 0, BthFlags::MIG_REQ)
                    | flag(bth[4] & 0x80 != 0, BthFlags::FECN)
                    | flag(bth[4] & 0x40 != 0, BthFlags::BECN)
                    | flag(bth[8] & 0x80 != 0, BthFlags::ACK_REQ),
            ),
            pad: bth[1] >> 4 & 3,
            pkey: be16(bth, 2),
            dest_qp: be24(bth, 5),
            psn: be24(bth, 9),
            ..Self::default()
        };
        let headers = packet.parse_extensions(&bytes[Self::BTH_BYTES..]);
        let overhead = Self::BTH_BYTES as u32 + headers + u32::from(packet.pad) + Self::ICRC_BYTES;
        packet.payload_bytes = declared_bytes.saturating_sub(overhead);
        Ok(packet)
    }

    /// Whether a packet that came to a RoCE port is one: version 0, a known opcode, a partition key.
    pub fn is_plausible(bytes: &[u8]) -> bool {
        bytes
            .first_chunk::<{ Self::BTH_BYTES }>()
            .is_some_and(|bth| bth[1] & 0x0f == 0 && opcode_name(bth[0]).is_some() && be16(bth, 2) != 0)
    }

    /// Reads the extension headers that the opcode asks for; returns their length.
    fn parse_extensions(&mut self, bytes: &[u8]) -> u32 {
        let wanted = extensions(self.opcode);
        let mut at = 0_usize;
        let mut take = |flag: u16, length: usize| -> Option<&[u8]> {
            if wanted & flag == 0 {
                return None;
            }
            let header = bytes.get(at..at + length);
            at += length;
            if header.is_none() {
                self.flags.0 |= BthFlags::EXTENSION_CUT;
            }
            header
        };
        take(RDETH, 4);
        let deth = take(DETH, 8);
        let xrc = take(XRC, 4);
        let reth = take(RETH, 16);
        let atomic = take(ATOMIC, 28);
        let aeth = take(AETH, 4);
        let atomic_ack = take(ATOMIC_ACK, 8);
        let imm = take(IMM, 4);
        let ieth = take(IETH, 4);
        self.deth = deth.map(|header| (be32(header, 0), be24(header, 5)));
        self.xrc_srq = xrc.map(|header| be24(header, 1));
        self.reth = reth.map(|header| (be64(header, 0), be32(header, 8), be32(header, 12)));
        self.atomic = atomic.map(|header| (be64(header, 0), be32(header, 8), be64(header, 12), be64(header, 20)));
        self.aeth = aeth.map(|header| (header[0], be24(header, 1)));
        self.atomic_ack = atomic_ack.map(|header| be64(header, 0));
        self.imm = imm.map(|header| be32(header, 0));
        self.ieth = ieth.map(|header| be32(header, 0));
        at as u32
    }
}

/// Which extension headers an opcode brings.
fn extensions(opcode: u8) -> u16 {
    let operation = match opcode & 0x1f {
        0x03 | 0x05 | 0x09 => IMM,
        0x06 | 0x0a | 0x0c => RETH,
        0x0b => RETH | IMM,
        0x0d | 0x0f | 0x10 | 0x11 => AETH,
        0x12 => AETH | ATOMIC_ACK,
        0x13 | 0x14 => ATOMIC,
        0x16 | 0x17 => IETH,
        _ => 0,
    };
    // Responses name no shared receive queue and no source queue pair: their requester knows.
    let is_response = matches!(opcode & 0x1f, 0x0d..=0x12);
    match opcode >> 5 {
        0 | 1 => operation,
        2 => RDETH | operation | if is_response { 0 } else { DETH },
        3 => DETH | operation & IMM,
        5 => operation | if is_response { 0 } else { XRC },
        _ => 0,
    }
}

/// The opcode's name as the IBTA gives it, behind its transport service; `None` for reserved ones.
pub fn opcode_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "RC_SEND_FIRST",
        0x01 => "RC_SEND_MIDDLE",
        0x02 => "RC_SEND_LAST",
        0x03 => "RC_SEND_LAST_WITH_IMMEDIATE",
        0x04 => "RC_SEND_ONLY",
        0x05 => "RC_SEND_ONLY_WITH_IMMEDIATE",
        0x06 => "RC_RDMA_WRITE_FIRST",
        0x07 => "RC_RDMA_WRITE_MIDDLE",
        0x08 => "RC_RDMA_WRITE_LAST",
        0x09 => "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE",
        0x0a => "RC_RDMA_WRITE_ONLY",
        0x0b => "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
        0x0c => "RC_RDMA_READ_REQUEST",
        0x0d => "RC_RDMA_READ_RESPONSE_FIRST",
        0x0e => "RC_RDMA_READ_RESPONSE_MIDDLE",
        0x0f => "RC_RDMA_READ_RESPONSE_LAST",
        0x10 => "RC_RDMA_READ_RESPONSE_ONLY",
        0x11 => "RC_ACKNOWLEDGE",
        0x12 => "RC_ATOMIC_ACKNOWLEDGE",
        0x13 => "RC_COMPARE_SWAP",
        0x14 => "RC_FETCH_ADD",
        0x16 => "RC_SEND_LAST_WITH_INVALIDATE",
        0x17 => "RC_SEND_ONLY_WITH_INVALIDATE",
        0x20 => "UC_SEND_FIRST",
        0x21 => "UC_SEND_MIDDLE",
        0x22 => "UC_SEND_LAST",
        0x23 => "UC_SEND_LAST_WITH_IMMEDIATE",
        0x24 => "UC_SEND_ONLY",
        0x25 => "UC_SEND_ONLY_WITH_IMMEDIATE",
        0x26 => "UC_RDMA_WRITE_FIRST",
        0x27 => "UC_RDMA_WRITE_MIDDLE",
        0x28 => "UC_RDMA_WRITE_LAST",
        0x29 => "UC_RDMA_WRITE_LAST_WITH_IMMEDIATE",
        0x2a => "UC_RDMA_WRITE_ONLY",
        0x2b => "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
        0x40 => "RD_SEND_FIRST",
        0x41 => "RD_SEND_MIDDLE",
        0x42 => "RD_SEND_LAST",
        0x43 => "RD_SEND_LAST_WITH_IMMEDIATE",
        0x44 => "RD_SEND_ONLY",
        0x45 => "RD_SEND_ONLY_WITH_IMMEDIATE",
        0x46 => "RD_RDMA_WRITE_FIRST",
        0x47 => "RD_RDMA_WRITE_MIDDLE",
        0x48 => "RD_RDMA_WRITE_LAST",
        0x49 => "RD_RDMA_WRITE_LAST_WITH_IMMEDIATE",
        0x4a => "RD_RDMA_WRITE_ONLY",
        0x4b => "RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
        0x4c => "RD_RDMA_READ_REQUEST",
        0x4d => "RD_RDMA_READ_RESPONSE_FIRST",
        0x4e => "RD_RDMA_READ_RESPONSE_MIDDLE",
        0x4f => "RD_RDMA_READ_RESPONSE_LAST",
        0x50 => "RD_RDMA_READ_RESPONSE_ONLY",
        0x51 => "RD_ACKNOWLEDGE",
        0x52 => "RD_ATOMIC_ACKNOWLEDGE",
        0x53 => "RD_COMPARE_SWAP",
        0x54 => "RD_FETCH_ADD",
        0x55 => "RD_RESYNC",
        0x64 => "UD_SEND_ONLY",
        0x65 => "UD_SEND_ONLY_WITH_IMMEDIATE",
        // RoCEv2 names 0x81; 0x80 is the code of native InfiniBand that some devices send (IBTA annex A10).
        0x80 => "CNP_INFINIBAND",
        0x81 => "CNP",
        0xa0 => "XRC_SEND_FIRST",
        0xa1 => "XRC_SEND_MIDDLE",
        0xa2 => "XRC_SEND_LAST",
        0xa3 => "XRC_SEND_LAST_WITH_IMMEDIATE",
        0xa4 => "XRC_SEND_ONLY",
        0xa5 => "XRC_SEND_ONLY_WITH_IMMEDIATE",
        0xa6 => "XRC_RDMA_WRITE_FIRST",
        0xa7 => "XRC_RDMA_WRITE_MIDDLE",
        0xa8 => "XRC_RDMA_WRITE_LAST",
        0xa9 => "XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE",
        0xaa => "XRC_RDMA_WRITE_ONLY",
        0xab => "XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
        0xac => "XRC_RDMA_READ_REQUEST",
        0xad => "XRC_RDMA_READ_RESPONSE_FIRST",
        0xae => "XRC_RDMA_READ_RESPONSE_MIDDLE",
        0xaf => "XRC_RDMA_READ_RESPONSE_LAST",
        0xb0 => "XRC_RDMA_READ_RESPONSE_ONLY",
        0xb1 => "XRC_ACKNOWLEDGE",
        0xb2 => "XRC_ATOMIC_ACKNOWLEDGE",
        0xb3 => "XRC_COMPARE_SWAP",
        0xb4 => "XRC_FETCH_ADD",
        0xb6 => "XRC_SEND_LAST_WITH_INVALIDATE",
        0xb7 => "XRC_SEND_ONLY_WITH_INVALIDATE",
        _ => return None,
    })
}

/// What an AETH syndrome says (IBTA 9.7.5): kind, and credit code, timer code or NAK code.
pub(crate) fn aeth_text(syndrome: u8) -> &'static str {
    match (syndrome >> 5 & 3, syndrome & 0x1f) {
        (0, _) => "ACK",
        (1, _) => "RNR_NAK",
        (3, 0) => "NAK_PSN_SEQUENCE_ERROR",
        (3, 1) => "NAK_INVALID_REQUEST",
        (3, 2) => "NAK_REMOTE_ACCESS_ERROR",
        (3, 3) => "NAK_REMOTE_OPERATIONAL_ERROR",
        (3, 4) => "NAK_INVALID_RD_REQUEST",
        _ => "RESERVED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_first_brings_address_key_and_length() {
        let mut bytes = vec![0x06, 0x70, 0xff, 0xff, 0xc0, 0, 0, 0x11, 0x80, 0x12, 0x34, 0x56];
        bytes.extend([0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0x0a, 0xbc, 0, 1, 0, 0]);
        let packet = RocePacket::parse(&bytes, 12 + 16 + 1024 + 3 + 4).unwrap();
        assert_eq!(packet.reth, Some((0x1000_0000, 0x0abc, 0x0001_0000)));
        assert_eq!((packet.dest_qp, packet.psn, packet.pad, packet.payload_bytes), (0x11, 0x0012_3456, 3, 1024));
        let has = |flag| packet.flags.has(flag);
        assert!(has(BthFlags::FECN) && has(BthFlags::BECN) && has(BthFlags::ACK_REQ) && !has(BthFlags::SOLICITED));
    }

    #[test]
    fn reliable_datagram_and_xrc_put_their_headers_first() {
        let mut bytes = vec![0x4b, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 2];
        bytes.extend([0, 0, 0, 9]); // RDETH
        bytes.extend([0, 0, 0, 7, 0, 0, 0, 5]); // DETH
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]); // RETH
        bytes.extend([0, 0, 0, 4]); // ImmDt
        let packet = RocePacket::parse(&bytes, 12 + 32 + 4).unwrap();
        assert_eq!((packet.deth, packet.reth, packet.imm), (Some((7, 5)), Some((1, 2, 3)), Some(4)));
        assert_eq!(packet.payload_bytes, 0);
        let mut bytes = vec![0xa4, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 2];
        bytes.extend([0, 0, 0, 0x42]);
        assert_eq!(RocePacket::parse(&bytes, 30).unwrap().xrc_srq, Some(0x42));
    }

    #[test]
    fn a_cut_extension_is_said_and_the_base_header_kept() {
        let bytes = [0x06, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0];
        let packet = RocePacket::parse(&bytes, 1052).unwrap();
        assert_eq!((packet.reth, packet.psn), (None, 2));
        assert!(packet.flags.has(BthFlags::EXTENSION_CUT));
    }

    #[test]
    fn every_shorter_length_says_what_is_missing_and_another_version_is_refused() {
        let bytes = [0x04, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 2];
        for have_bytes in 0..12 {
            let error = RocePacket::parse(&bytes[..have_bytes], 16).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 12, have_bytes });
        }
        let mut other = bytes;
        other[1] = 1;
        assert!(matches!(RocePacket::parse(&other, 16), Err(DecodeErrorKind::BadField { value: 1, .. })));
        assert!(RocePacket::is_plausible(&bytes) && !RocePacket::is_plausible(&other));
    }
}
