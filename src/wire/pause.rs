//! MAC control, EtherType 0x8808: IEEE 802.3x PAUSE and IEEE 802.1Qbb priority-based flow control (PFC).
//!
//! ```text
//!  0       2       4        6             18       20
//!  +-------+-------+--------+----- … -----+--------+
//!  | 0x0101| class | time 0 |             | time 7 |   PFC; PAUSE (0x0001) has one time at byte 2
//!  |opcode | enable|        |             |        |
//!  +-------+-------+--------+----- … -----+--------+
//!            low byte: bit n set = the time of class n counts
//! ```
//!
//! Times are in quanta of 512 bit times, so nanoseconds need the link speed.

use super::be16;
use super::error::DecodeErrorKind;

/// A PAUSE or PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    pub is_pfc: bool,
    /// PFC: bit n set = `quanta[n]` counts. PAUSE: 0.
    pub class_enable: u8,
    /// Pause times in quanta; a PAUSE frame's is `quanta[0]`.
    pub quanta: [u16; 8],
}

impl PauseFrame {
    pub const PAUSE: u16 = 0x0001;
    pub const PFC: u16 = 0x0101;
    /// Bytes read of a PFC frame; Ethernet padding after them is ignored.
    pub const PFC_BYTES: usize = 20;
    pub const PAUSE_BYTES: usize = 4;

    /// `bytes` follow the EtherType.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeErrorKind> {
        let truncated = |need_bytes| DecodeErrorKind::Truncated { need_bytes, have_bytes: bytes.len() };
        let Some(opcode) = bytes.first_chunk::<2>() else { return Err(truncated(2)) };
        match u16::from_be_bytes(*opcode) {
            Self::PAUSE => {
                let Some(bytes) = bytes.first_chunk::<{ Self::PAUSE_BYTES }>() else {
                    return Err(truncated(Self::PAUSE_BYTES));
                };
                let mut quanta = [0; 8];
                quanta[0] = be16(bytes, 2);
                Ok(Self { is_pfc: false, class_enable: 0, quanta })
            }
            Self::PFC => {
                let Some(bytes) = bytes.first_chunk::<{ Self::PFC_BYTES }>() else {
                    return Err(truncated(Self::PFC_BYTES));
                };
                let quanta = std::array::from_fn(|class| be16(bytes, 4 + 2 * class));
                Ok(Self { is_pfc: true, class_enable: bytes[3], quanta })
            }
            opcode => Err(DecodeErrorKind::BadField { field: "opcode", value: u64::from(opcode) }),
        }
    }

    /// The classes the frame speaks of: `None` for all of them (PAUSE).
    pub fn classes(&self) -> impl Iterator<Item = (Option<u8>, u16)> + use<> {
        let frame = *self;
        (0..8_u8).filter_map(move |class| {
            let quanta = frame.quanta[usize::from(class)];
            match frame.is_pfc {
                true => (frame.class_enable >> class & 1 == 1).then_some((Some(class), quanta)),
                false => (class == 0).then_some((None, quanta)),
            }
        })
    }
}

/// Nanoseconds that `quanta` last at a link speed; rounded down.
pub(crate) fn pause_ns(quanta: u16, link_speed_bps: u64) -> Option<i64> {
    let bit_times = u128::from(quanta) * 512 * 1_000_000_000;
    i64::try_from(bit_times.checked_div(u128::from(link_speed_bps))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pfc(class_enable: u8) -> Vec<u8> {
        let mut bytes = vec![1, 1, 0, class_enable];
        bytes.extend((0..8_u16).flat_map(|class| (0x100 + class).to_be_bytes()));
        bytes
    }

    #[test]
    fn pfc_names_only_its_enabled_classes() {
        let frame = PauseFrame::parse(&pfc(0b1000_1000)).unwrap();
        assert_eq!(frame.classes().collect::<Vec<_>>(), [(Some(3), 0x103), (Some(7), 0x107)]);
    }

    #[test]
    fn pause_has_one_time_for_all_classes() {
        let frame = PauseFrame::parse(&[0, 1, 0xff, 0xff, 9, 9]).unwrap();
        assert_eq!(frame.classes().collect::<Vec<_>>(), [(None, 0xffff)]);
    }

    #[test]
    fn every_shorter_length_says_what_is_missing() {
        let bytes = pfc(1);
        for have_bytes in 2..PauseFrame::PFC_BYTES {
            let error = PauseFrame::parse(&bytes[..have_bytes]).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 20, have_bytes });
        }
        assert!(matches!(PauseFrame::parse(&[0, 2, 0, 0]), Err(DecodeErrorKind::BadField { value: 2, .. })));
    }

    #[test]
    fn a_quantum_lasts_512_bit_times() {
        // IEEE 802.3: 65535 quanta are 3.355 ms at 10 Gb/s and 335.5 us at 100 Gb/s.
        assert_eq!(pause_ns(0xffff, 10_000_000_000), Some(3_355_392));
        assert_eq!(pause_ns(0xffff, 100_000_000_000), Some(335_539));
        assert_eq!(pause_ns(1, 0), None);
    }
}
