//! `roce`.

use super::{NameSet, Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per RoCE packet (InfiniBand transport over UDP port 4791, or over EtherType 0x8915).
    table "roce" => RoceRow / RoceBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Flow of the frame.
        flow_id: Option<u64>,
        /// Source address (RoCEv1: source GID).
        src_ip: Ip,
        /// Destination address (RoCEv1: destination GID).
        dst_ip: Ip,
        /// UDP source port: entropy for load balancing, the same for all packets of a queue pair's direction. Null for RoCEv1.
        src_port: Option<u16>,
        /// UDP destination port. Null for RoCEv1.
        dst_port: Option<u16>,
        /// `RoCEv2` or `RoCEv1`.
        protocol: Symbol,
        /// BTH opcode.
        opcode: u8,
        /// Transport service and operation, as `RC_RDMA_WRITE_FIRST`; null for reserved codes.
        opcode_name: Option<Symbol>,
        /// Partition key.
        pkey: u16,
        /// Destination queue pair, 24 bits.
        dest_qp: u32,
        /// Packet sequence number, 24 bits.
        psn: u32,
        /// Whether an acknowledgement is requested.
        is_ack_req: bool,
        /// Solicited event bit.
        is_solicited: bool,
        /// Forward explicit congestion notification bit.
        is_fecn: bool,
        /// Backward explicit congestion notification bit.
        is_becn: bool,
        /// Pad bytes after the payload, 0 to 3.
        pad: u8,
        /// RETH or AtomicETH: virtual address.
        va: Option<u64>,
        /// RETH, AtomicETH or IETH: remote key.
        rkey: Option<u32>,
        /// RETH: length of the whole message, in bytes.
        dma_bytes: Option<u32>,
        /// AETH: syndrome byte.
        syndrome: Option<u8>,
        /// What the syndrome says: `ACK`, `RNR_NAK`, `NAK_PSN_SEQUENCE_ERROR` ...
        aeth: Option<Symbol>,
        /// AETH: message sequence number, 24 bits.
        msn: Option<u32>,
        /// Immediate data.
        imm: Option<u32>,
        /// DETH: queue key.
        qkey: Option<u32>,
        /// DETH: source queue pair.
        src_qp: Option<u32>,
        /// AtomicETH: value to swap in or to add.
        swap_or_add: Option<u64>,
        /// AtomicETH: value to compare with.
        compare: Option<u64>,
        /// AtomicAckETH: value before the operation.
        original_value: Option<u64>,
        /// Payload without pad bytes and invariant CRC, in bytes.
        payload_bytes: u32,
        /// Differentiated services code point.
        dscp: u8,
        /// Explicit congestion notification: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
        ecn: u8,
        /// Invariant CRC: `ok`, `bad`, `unverifiable` (cut by the snap length, fragment); null where not verified.
        icrc_status: Option<Symbol>,
        /// What the requester did, of requests and of READ and atomic responses: `new`, `retransmit`, `network_duplicate` (sent once, copied on the way: same IP identification), `capture_duplicate` (captured twice), `unknown`. Null for acknowledgements, CNPs and damaged packets.
        sent: Option<Symbol>,
        /// Why it was sent again: `nak` (sequence NAK), `rnr` (receiver not ready), `timeout` (after silence), `reissue` (a READ or atomic operation asked for again without either), `unknown` (the capture does not show it: as where a READ is asked for again after some silence, for a gap in answers that passed the tap whole, or by its timer).
        cause: Option<Symbol>,
        /// How it came to its receiver: `in_order`, `out_of_sequence`, `duplicate`, `damaged`, `unknown` (the tap cannot know). Known where the tap is at the receiver; elsewhere only `in_order`, where acknowledgements prove it. Null for acknowledgements and CNPs.
        arrival: Option<Symbol>,
        /// What `sent`, `cause` and `arrival` rest on.
        evidence: Option<NameSet>,
        /// Queue pair whose requester sent it, or is answered or slowed by it: see `roce_qps`. Null where that is not known.
        qp_id: Option<u64>,
        /// Message it belongs to: see `roce_messages`. Of an acknowledgement, the message whose packet it names.
        message_id: Option<u64>,
    }
}
