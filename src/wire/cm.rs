//! InfiniBand connection management: MADs of class 7 on queue pair 1 (IBTA volume 1, chapters 12 and 13.4).
//!
//! ```text
//!  0     1      2       3       4       6          8            16        18        20         24
//!  +-----+------+-------+-------+-------+----------+------------+---------+---------+----------+------
//!  |base | class| class | method| status| specific | transaction| attri-  | reserved| attribute| data
//!  |  1  |  7   |version|       |       |          | ID         | bute ID |         | modifier | 232
//!  +-----+------+-------+-------+-------+----------+------------+---------+---------+----------+------
//! ```

use super::{be16, be24, be32, be64};

/// What a connection management message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmKind {
    Req,
    Mra,
    Rej,
    Rep,
    Rtu,
    Dreq,
    Drep,
    SidrReq,
    SidrRep,
    Lap,
    Apr,
}

impl CmKind {
    fn of(attribute: u16) -> Option<Self> {
        Some(match attribute {
            0x10 => Self::Req,
            0x11 => Self::Mra,
            0x12 => Self::Rej,
            0x13 => Self::Rep,
            0x14 => Self::Rtu,
            0x15 => Self::Dreq,
            0x16 => Self::Drep,
            0x17 => Self::SidrReq,
            0x18 => Self::SidrRep,
            0x19 => Self::Lap,
            0x1a => Self::Apr,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Req => "REQ",
            Self::Mra => "MRA",
            Self::Rej => "REJ",
            Self::Rep => "REP",
            Self::Rtu => "RTU",
            Self::Dreq => "DREQ",
            Self::Drep => "DREP",
            Self::SidrReq => "SIDR_REQ",
            Self::SidrRep => "SIDR_REP",
            Self::Lap => "LAP",
            Self::Apr => "APR",
        }
    }
}

/// One connection management message. Fields that a kind of message does not have are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmMessage {
    pub kind: CmKind,
    pub transaction_id: u64,
    pub local_comm_id: u32,
    /// REQ has none: it opens the communication.
    pub remote_comm_id: Option<u32>,
    /// REQ: what the peer is asked for; RDMA IP CM carries the port in its lower 16 bits.
    pub service_id: Option<u64>,
    /// REQ and REP: the sender's queue pair.
    pub local_qpn: Option<u32>,
    /// REQ and REP: packet sequence number that the peer's first request shall have.
    pub starting_psn: Option<u32>,
    /// REQ: largest payload of a packet, in bytes.
    pub path_mtu_bytes: Option<u32>,
    /// REJ: why.
    pub reject_reason: Option<u16>,
}

impl CmMessage {
    pub const HEADER_BYTES: usize = 24;
    /// Queue pair of the general services interface, where these messages go.
    pub const QPN: u32 = 1;

    /// Reads the payload of a packet to queue pair 1; `None` for other management classes and for messages cut too short.
    pub fn parse(mad: &[u8]) -> Option<Self> {
        let header = mad.first_chunk::<{ Self::HEADER_BYTES }>()?;
        if header[0] != 1 || header[1] != 7 {
            return None;
        }
        let kind = CmKind::of(be16(header, 16))?;
        let data = mad.get(Self::HEADER_BYTES..)?;
        let word = |at: usize| data.get(at..at + 4).map(|bytes| be32(bytes, 0));
        let number = |at: usize| data.get(at..at + 3).map(|bytes| be24(bytes, 0));
        let mut message = Self {
            kind,
            transaction_id: be64(header, 8),
            local_comm_id: word(0)?,
            remote_comm_id: None,
            service_id: None,
            local_qpn: None,
            starting_psn: None,
            path_mtu_bytes: None,
            reject_reason: None,
        };
        match kind {
            CmKind::Req => {
                message.service_id = data.get(8..16).map(|bytes| be64(bytes, 0));
                message.local_qpn = number(32);
                message.starting_psn = number(44);
                message.path_mtu_bytes = data.get(50).and_then(|byte| match byte >> 4 {
                    code @ 1..=5 => Some(128 << code),
                    _ => None,
                });
            }
            CmKind::Rep => {
                message.remote_comm_id = word(4);
                message.local_qpn = number(12);
                message.starting_psn = number(20);
            }
            CmKind::Rej => {
                message.remote_comm_id = word(4);
                message.reject_reason = data.get(10..12).map(|bytes| be16(bytes, 0));
            }
            CmKind::SidrReq | CmKind::SidrRep => {}
            _ => message.remote_comm_id = word(4),
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mad(attribute: u16, data: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        bytes[8..16].copy_from_slice(&[0, 0, 0, 1, 2, 3, 4, 5]);
        bytes[16..18].copy_from_slice(&attribute.to_be_bytes());
        for (at, value) in data {
            bytes[24 + at..24 + at + value.len()].copy_from_slice(value);
        }
        bytes
    }

    #[test]
    fn a_request_names_its_queue_pair_and_the_number_to_begin_at() {
        let service = [0, 0, 0, 0, 1, 6, 0x48, 0x19];
        let bytes = mad(
            0x10,
            &[(0, &[9, 9, 9, 9]), (8, &service), (32, &[0, 0, 0x12]), (44, &[0x48, 0x2e, 0x42]), (50, &[0x37])],
        );
        let message = CmMessage::parse(&bytes).unwrap();
        assert_eq!((message.kind, message.local_comm_id, message.remote_comm_id), (CmKind::Req, 0x0909_0909, None));
        assert_eq!((message.local_qpn, message.starting_psn), (Some(0x12), Some(0x48_2e42)));
        assert_eq!((message.service_id, message.path_mtu_bytes), (Some(0x0106_4819), Some(1_024)));
    }

    #[test]
    fn a_reply_names_both_communications_and_a_rejection_its_reason() {
        let reply =
            mad(0x13, &[(0, &[0, 0, 0, 2]), (4, &[0, 0, 0, 1]), (12, &[0, 0, 0x15]), (20, &[0xff, 0xff, 0xff])]);
        let message = CmMessage::parse(&reply).unwrap();
        assert_eq!((message.local_comm_id, message.remote_comm_id), (2, Some(1)));
        assert_eq!((message.local_qpn, message.starting_psn), (Some(0x15), Some(0xff_ffff)));
        let rejected = CmMessage::parse(&mad(0x12, &[(10, &[0, 28])])).unwrap();
        assert_eq!((rejected.kind, rejected.reject_reason), (CmKind::Rej, Some(28)));
    }

    #[test]
    fn every_shorter_length_gives_what_is_there_and_other_classes_nothing() {
        let bytes = mad(0x10, &[(32, &[0, 0, 0x12])]);
        for length in 0..bytes.len() {
            let message = CmMessage::parse(&bytes[..length]);
            assert_eq!(message.is_some(), length >= 28, "{length}");
            assert_eq!(message.is_some_and(|message| message.local_qpn.is_some()), length >= 24 + 35, "{length}");
        }
        let mut other = bytes.clone();
        other[1] = 3;
        assert_eq!(CmMessage::parse(&other), None);
        assert_eq!(CmMessage::parse(&mad(0x99, &[])), None);
    }
}
