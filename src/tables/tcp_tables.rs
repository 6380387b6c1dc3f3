//! `tcp` and `tcp_flows`.

use super::{SackList, Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per TCP segment. Fragments are left out.
    table "tcp" => TcpRow / TcpBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Wireshark's `tcp.stream`: by addresses and ports alone.
        tcp_stream: Option<u64>,
        /// Connection: see tables `flows` and `tcp_flows`. Finer than `tcp_stream`: also by interface and virtual network.
        flow_id: Option<u64>,
        /// Source address.
        src_ip: Ip,
        /// Destination address.
        dst_ip: Ip,
        /// Source port.
        src_port: u16,
        /// Destination port.
        dst_port: u16,
        /// Sequence number relative to the first one of this direction, as Wireshark shows it.
        seq: u32,
        /// Acknowledgement number relative to the first sequence number of the other direction.
        ack: u32,
        /// Sequence number as on the wire.
        seq_raw: u32,
        /// Acknowledgement number as on the wire.
        ack_raw: u32,
        /// The twelve flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256.
        flags: u16,
        /// The flags in words: `SYN,ACK`.
        flags_text: Symbol,
        /// Payload as the IP header declares it, in bytes.
        payload_bytes: u32,
        /// Window field as on the wire.
        window: u16,
        /// Window in bytes, scaled; null where the scale is not known (no SYN in the capture).
        window_bytes: Option<u64>,
        /// Maximum segment size option, in bytes.
        mss: Option<u16>,
        /// Window scale option: a shift count.
        wscale: Option<u8>,
        /// Whether the SACK-permitted option is present.
        is_sack_permitted: bool,
        /// SACK blocks: left and right edge, relative like `ack`.
        sack: SackList,
        /// Timestamp value option.
        tsval: Option<u32>,
        /// Timestamp echo reply option.
        tsecr: Option<u32>,
    }
}

table! {
    /// One row per TCP connection. `client_*` is what the client did as a sender, `server_*` what the server did. The client
    /// sent the SYN; where none was seen (`client_known` false), the end with the lower port is taken for the server.
    table "tcp_flows" => TcpFlowRow / TcpFlowBuilder {
        /// File of the first segment, from 1.
        file_no: u32,
        /// First frame of the connection in its file.
        frame_no: u64,
        /// Time of the first segment.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first segment.
        time_rel_ns: Option<i64>,
        /// Wireshark's `tcp.stream`.
        tcp_stream: Option<u64>,
        /// Connection.
        flow_id: u64,
        /// Interface of the capture, from 0.
        interface_id: u32,
        /// Virtual network identifier of the tunnel it was seen in.
        vni: Option<u32>,
        /// Client's address.
        client_ip: Ip,
        /// Client's port.
        client_port: u16,
        /// Server's address.
        server_ip: Ip,
        /// Server's port.
        server_port: u16,
        /// Whether a SYN says which end is the client.
        client_known: bool,
        /// First to last segment, in nanoseconds.
        duration_ns: Option<i64>,
        /// SYN to the ACK that ends the handshake, in nanoseconds; null where the handshake was not seen.
        handshake_rtt_ns: Option<i64>,
        /// Segments sent by the client.
        client_packets: u64,
        /// Segments sent by the server.
        server_packets: u64,
        /// Payload sent by the client, resent bytes included.
        client_bytes: u64,
        /// Payload sent by the server, resent bytes included.
        server_bytes: u64,
        /// Bytes of the client's stream that were delivered: acknowledged, or else seen; each counted once.
        client_unique_bytes: u64,
        /// Bytes of the server's stream that were delivered.
        server_unique_bytes: u64,
        /// `client_unique_bytes` over the time from the client's first to its last data segment, in bits per second; null where that is no time.
        client_goodput_bps: Option<u64>,
        /// The same for the server.
        server_goodput_bps: Option<u64>,
        /// Largest payload of one segment sent by the client, in bytes; above `server_mss` it was cut by the network card (offload).
        client_max_segment_bytes: u32,
        /// Largest payload of one segment sent by the server.
        server_max_segment_bytes: u32,
        /// MSS option of the client's SYN, in bytes.
        client_mss: Option<u16>,
        /// MSS option of the server's SYN,ACK.
        server_mss: Option<u16>,
        /// Window scale option of the client's SYN.
        client_wscale: Option<u8>,
        /// Window scale option of the server's SYN,ACK.
        server_wscale: Option<u8>,
        /// Whether both ends permitted SACK in the handshake.
        is_sack_permitted: bool,
        /// Whether both ends sent timestamps in the handshake.
        has_timestamps: bool,
        /// SYN segments of the client; more than one means it tried again.
        syn_count: u64,
        /// FIN segments of both ends.
        fin_count: u64,
        /// RST segments of both ends.
        rst_count: u64,
        /// Segments with a zero window sent by the client (not RST).
        client_zero_window_count: u64,
        /// Segments with a zero window sent by the server.
        server_zero_window_count: u64,
        /// Segments of the client that carry the CE mark.
        client_ce_count: u64,
        /// Segments of the server that carry the CE mark.
        server_ce_count: u64,
    }
}
