//! `flows` and `probes`.

use super::{Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per flow: innermost 5-tuple, virtual network and interface. A new SYN with another initial sequence number
    /// starts a new one.
    table "flows" => FlowRow / FlowBuilder {
        /// File of the first frame, from 1.
        file_no: u32,
        /// First frame of the flow in its file.
        frame_no: u64,
        /// Time of the first frame.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first of the flow.
        time_rel_ns: Option<i64>,
        /// Number of the flow, from 0, in the order of first frames.
        flow_id: u64,
        /// Interface of the capture, from 0.
        interface_id: u32,
        /// Highest protocol recognised in the first frame.
        protocol: Option<Symbol>,
        /// IP protocol number.
        ip_protocol: u8,
        /// Tunnel the flow was seen in.
        tunnel: Option<Symbol>,
        /// Virtual network identifier; where the two directions have one each, that of the first frame.
        vni: Option<u32>,
        /// Client's address: who sent the SYN, else the end with the higher port, else who sent first.
        client_ip: Ip,
        /// Client's port; null where the protocol has none.
        client_port: Option<u16>,
        /// Server's address.
        server_ip: Ip,
        /// Server's port.
        server_port: Option<u16>,
        /// Whether a SYN says which end is the client.
        client_known: bool,
        /// First to last frame, in nanoseconds.
        duration_ns: Option<i64>,
        /// Time of the last frame.
        end: Option<TimeNs>,
        /// Frames sent by the client.
        client_packets: u64,
        /// Frames sent by the server.
        server_packets: u64,
        /// Bytes on the wire sent by the client.
        client_bytes: u64,
        /// Bytes on the wire sent by the server.
        server_bytes: u64,
        /// Payload sent by the client, in bytes.
        client_payload_bytes: u64,
        /// Payload sent by the server, in bytes.
        server_payload_bytes: u64,
    }
}

table! {
    /// One row per probe: an ICMP echo request and its reply.
    table "probes" => ProbeRow / ProbeBuilder {
        /// File of the request, from 1.
        file_no: u32,
        /// Frame of the request in its file.
        frame_no: u64,
        /// Time of the request.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// `ICMP` or `ICMPv6`.
        protocol: Symbol,
        /// Flow of the request.
        flow_id: Option<u64>,
        /// Who asked.
        src_ip: Ip,
        /// Who was asked.
        dst_ip: Ip,
        /// Identifier of the echo request.
        identifier: u16,
        /// Sequence number of the echo request.
        sequence: u16,
        /// Size of the request's IP packet, in bytes.
        ip_bytes: u32,
        /// Frame of the reply in its file; null where none was seen.
        reply_frame_no: Option<u64>,
        /// TTL of the reply.
        reply_ttl: Option<u8>,
        /// Request to reply, in nanoseconds.
        rtt_ns: Option<i64>,
        /// Frame of an ICMP error that answers the request (unreachable, too big, time exceeded).
        error_frame_no: Option<u64>,
        /// Replies beyond the first (`ping` says DUP!), up to 1 s after it; copies of one packet in the capture do not count.
        duplicate_count: u32,
        /// Whether no reply was seen within the limits of the run: 10 s and 262,144 frames after the request.
        is_lost: bool,
    }
}
