//! `matches`.

use super::{Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per packet that was seen at either of two capture points (the result of `match`, not a table of a capture).
    /// Packets are told by innermost addresses and ports, IP identification, length, and what they carry: TCP sequence and
    /// acknowledgement number, flags and timestamps; RoCE PSN, opcode, queue pair and AETH; else the first 16 bytes after
    /// the UDP header or from the IP payload on. Identical copies are matched in order. In the order of A; what was seen at
    /// B alone is placed by time.
    table "matches" => MatchRow / MatchBuilder {
        /// File of capture A, from 1; null where the packet was not seen there.
        a_file_no: Option<u32>,
        /// Frame number in its file of capture A.
        a_frame_no: Option<u64>,
        /// File of capture B, from 1; null where the packet was not seen there.
        b_file_no: Option<u32>,
        /// Frame number in its file of capture B.
        b_frame_no: Option<u64>,
        /// Capture time at A, by A's clock.
        a_time: Option<TimeNs>,
        /// Capture time at B, by B's clock.
        b_time: Option<TimeNs>,
        /// Source address, innermost.
        src_ip: Ip,
        /// Source port; null for fragments and protocols without ports.
        src_port: Option<u16>,
        /// Destination address, innermost.
        dst_ip: Ip,
        /// Destination port; null for fragments and protocols without ports.
        dst_port: Option<u16>,
        /// Highest protocol that was recognised.
        protocol: Option<Symbol>,
        /// Payload of the packet in bytes; of a resegmented one, the bytes that this row speaks of (of a fragmented packet, of
        /// its IP payload).
        payload_bytes: u32,
        /// `a_to_b` (A sees the packet first), `b_to_a`, or `unknown`. By the TTL where a router lies between the points,
        /// else by comparing both directions of traffic, else by other hosts' traffic; one direction alone does not tell.
        direction: Symbol,
        /// `delivered`; `resegmented` (bytes seen downstream in packets of other size: segmentation or receive offload, or IP
        /// fragmentation; one row per pair of frames that share bytes); `lost` (seen upstream only, while both captures ran);
        /// `duplicated` (a further copy downstream of a packet that was delivered); `not_captured` (seen downstream only:
        /// the capture upstream missed it); `outside` (the other capture had not begun or had ended by its last frame);
        /// `unmatched` (seen at one point, and either the direction is unknown or no packet between these addresses was seen
        /// at both points: it does not pass there, or was rewritten by NAT).
        status: Symbol,
        /// RFC 4737: a packet of the same flow and direction that was sent later (comes later in the upstream capture) arrived
        /// before this one (comes earlier in the downstream capture). Never set on duplicates.
        is_reordered: bool,
        /// Time downstream less time upstream, RAW: the offset of the two clocks is part of it. Null where the packet was
        /// seen once or the direction is unknown.
        delay_ns: Option<i64>,
        /// The delay less the least one of its flow and direction, which the clocks' offset does not touch.
        delay_above_min_ns: Option<i64>,
    }
}
