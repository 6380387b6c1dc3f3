//! TCP, RFC 9293, with the options of RFC 7323 and RFC 2018.
//!
//! ```text
//!  0        2        4            8            12     13    14       16        18      20
//!  +--------+--------+------------+------------+------+-----+--------+---------+-------+--- … ---+
//!  | source | dest.  | sequence   | acknowledg.| data | flags| window| checksum| urgent| options |
//!  | port   | port   | number     | number     |offset|     |        |         |       |         |
//!  +--------+--------+------------+------------+------+-----+--------+---------+-------+--- … ---+
//! ```

use super::error::DecodeErrorKind;
use super::{be16, be32};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    pub seq: u32,
    pub ack: u32,
    /// Twelve bits: the reserved ones, AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
    pub flags: u16,
    pub window: u16,
    pub checksum: u16,
    /// Header length as the data offset declares it.
    pub header_bytes: u8,
    /// Bits of [`TcpHeader::HAS_MSS`] and its siblings.
    pub options: u8,
    pub mss: u16,
    pub wscale: u8,
    pub tsval: u32,
    pub tsecr: u32,
    /// Where the SACK blocks start in [`Chunk::sacks`](super::Chunk::sacks), and how many there are.
    pub sack_at: u32,
    pub sack_count: u8,
    /// MPTCP (RFC 8684): bit n set = an option of subtype n was seen.
    pub mptcp_subtypes: u16,
}

impl TcpHeader {
    pub const MIN_BYTES: usize = 20;

    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const URG: u16 = 0x020;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;

    pub const HAS_MSS: u8 = 1;
    pub const HAS_WSCALE: u8 = 2;
    pub const SACK_PERMITTED: u8 = 4;
    pub const HAS_TIMESTAMPS: u8 = 8;
    /// An option did not fit its list; what came before it was kept.
    pub const OPTIONS_DAMAGED: u8 = 16;
    /// The data offset is below 5 or points past the segment.
    pub const BAD_OFFSET: u8 = 32;

    /// Reads the fixed header; `bytes` may lack the urgent pointer (and the checksum) where the capture was cut.
    pub fn parse_fixed(bytes: &[u8]) -> Result<Self, DecodeErrorKind> {
        let Some(fixed) = bytes.first_chunk::<16>() else {
            return Err(DecodeErrorKind::Truncated { need_bytes: Self::MIN_BYTES, have_bytes: bytes.len() });
        };
        Ok(Self {
            seq: be32(fixed, 4),
            ack: be32(fixed, 8),
            flags: be16(fixed, 12) & 0x0fff,
            window: be16(fixed, 14),
            checksum: bytes.get(16..18).map_or(0, |field| be16(field, 0)),
            header_bytes: (fixed[12] >> 4) * 4,
            ..Self::default()
        })
    }

    /// Reads the options; SACK blocks are appended to `sacks`.
    pub fn parse_options(&mut self, options: &[u8], sacks: &mut Vec<(u32, u32)>) {
        self.sack_at = sacks.len() as u32;
        // Nearly every segment of a bulk transfer: two NOPs and a timestamp.
        if let Some(bytes) = options.first_chunk::<12>()
            && options.len() == 12
            && bytes[..4] == [1, 1, 8, 10]
        {
            self.options |= Self::HAS_TIMESTAMPS;
            self.tsval = be32(bytes, 4);
            self.tsecr = be32(bytes, 8);
            return;
        }
        let mut at = 0;
        while let Some(&kind) = options.get(at) {
            match kind {
                0 => return,
                1 => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let length = options.get(at + 1).map_or(0, |length| usize::from(*length));
            let Some(value) = options.get(at + 2..at + length.max(2)).filter(|_| length >= 2) else {
                self.options |= Self::OPTIONS_DAMAGED;
                return;
            };
            match (kind, value.len()) {
                (2, 2) => {
                    self.options |= Self::HAS_MSS;
                    self.mss = be16(value, 0);
                }
                (3, 1) => {
                    self.options |= Self::HAS_WSCALE;
                    self.wscale = value[0];
                }
                (4, 0) => self.options |= Self::SACK_PERMITTED,
                (5, _) => {
                    for block in value.chunks_exact(8) {
                        sacks.push((be32(block, 0), be32(block, 4)));
                        self.sack_count += 1;
                    }
                }
                (8, 8) => {
                    self.options |= Self::HAS_TIMESTAMPS;
                    self.tsval = be32(value, 0);
                    self.tsecr = be32(value, 4);
                }
                (30, 1..) => self.mptcp_subtypes |= 1 << (value[0] >> 4),
                _ => {}
            }
            at += length;
        }
    }

    pub fn has_flag(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub fn mss(&self) -> Option<u16> {
        (self.options & Self::HAS_MSS != 0).then_some(self.mss)
    }

    pub fn wscale(&self) -> Option<u8> {
        (self.options & Self::HAS_WSCALE != 0).then_some(self.wscale)
    }

    pub fn timestamps(&self) -> Option<(u32, u32)> {
        (self.options & Self::HAS_TIMESTAMPS != 0).then_some((self.tsval, self.tsecr))
    }

    pub fn is_sack_permitted(&self) -> bool {
        self.options & Self::SACK_PERMITTED != 0
    }
}

/// The flags as text, in the order a person says them: `SYN,ACK`.
pub fn tcp_flags_text(flags: u16) -> &'static str {
    use std::sync::LazyLock;
    // 512 possible sets; each text is made once, so that rows and dictionaries hold plain `&'static str`.
    static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        const NAMES: [(u16, &str); 9] = [
            (0x002, "SYN"),
            (0x001, "FIN"),
            (0x004, "RST"),
            (0x008, "PSH"),
            (0x010, "ACK"),
            (0x020, "URG"),
            (0x040, "ECE"),
            (0x080, "CWR"),
            (0x100, "AE"),
        ];
        (0..512_u16)
            .map(|flags| {
                let names: Vec<_> = NAMES.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
                names.join(",")
            })
            .collect()
    });
    TEXTS.get(usize::from(flags & 0x1ff)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bytes: &[u8]) -> (TcpHeader, Vec<(u32, u32)>) {
        let (mut header, mut sacks) = (TcpHeader::default(), Vec::new());
        header.parse_options(bytes, &mut sacks);
        (header, sacks)
    }

    #[test]
    fn a_syn_of_linux_carries_four_options() {
        let (header, _) = options(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
        assert_eq!((header.mss(), header.wscale(), header.timestamps()), (Some(1460), Some(7), Some((1, 0))));
        assert!(header.is_sack_permitted());
    }

    #[test]
    fn sack_blocks_come_out_in_order() {
        let mut bytes = vec![1, 1, 5, 18];
        bytes.extend([0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40]);
        let (header, sacks) = options(&bytes);
        assert_eq!((header.sack_count, sacks), (2, vec![(10, 20), (30, 40)]));
    }

    #[test]
    fn the_fast_path_and_the_slow_path_agree_on_timestamps() {
        let fast = options(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]).0;
        let slow = options(&[8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1]).0;
        assert_eq!((fast.timestamps(), slow.timestamps()), (Some((9, 8)), Some((9, 8))));
    }

    #[test]
    fn a_damaged_option_keeps_what_came_before_it() {
        for bad in [&[2, 4, 5, 0xb4, 8, 0][..], &[2, 4, 5, 0xb4, 8, 10, 1], &[2, 4, 5, 0xb4, 5]] {
            let (header, _) = options(bad);
            assert_eq!(header.mss(), Some(0x05b4));
            assert_ne!(header.options & TcpHeader::OPTIONS_DAMAGED, 0);
        }
    }

    #[test]
    fn every_shorter_length_says_what_is_missing() {
        for have_bytes in 0..16 {
            let error = TcpHeader::parse_fixed(&[0x50; 20][..have_bytes]).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 20, have_bytes });
        }
    }

    #[test]
    fn flags_are_named() {
        assert_eq!(tcp_flags_text(0x012), "SYN,ACK");
        assert_eq!(tcp_flags_text(0), "");
        assert_eq!(tcp_flags_text(0xfff), "SYN,FIN,RST,PSH,ACK,URG,ECE,CWR,AE");
    }
}
