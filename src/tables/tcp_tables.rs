//! `tcp` and `tcp_flows`.

use super::{NameSet, SackList, Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per TCP segment. Fragments are left out.
    table "tcp" by columns => TcpRow / TcpBuilder {
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
        /// What the segment is: `new`, `retransmit`, `reordered`, `network_duplicate`, `capture_duplicate`, `keep_alive`, `window_probe`, `damaged`, `ambiguous`, `unknown`. From evidence, unlike the `ws_` columns.
        verdict: Option<Symbol>,
        /// Why it was resent: `fast`, `timeout`, `slow_start`, `probe`, `pmtu`, `syn`, `synack`, `unknown`; null where it was not.
        cause: Option<Symbol>,
        /// Whether resending was `needed` or `spurious` (the receiver had it), or `unknown`; null where it was not resent.
        outcome: Option<Symbol>,
        /// What the verdict rests on: `ip_id`, `sack`, `dsack`, `tsval`, `ack`, `time`, `seen_bytes`, `snd_max`, `icmp`, `quiet`, `checksum` ...
        evidence: Option<NameSet>,
        /// Segments of one MSS that were resent here; more than 1 where the sender's network card cuts the frame; 0 where nothing was resent.
        retransmit_segments: u32,
        /// Frame (of the same file) that carried these bytes, or this packet, first; null for new segments.
        original_frame_no: Option<u64>,
        /// Wireshark: time since the segment that this ACK acknowledges (`tcp.analysis.ack_rtt`), in nanoseconds.
        ws_ack_rtt_ns: Option<i64>,
        /// Wireshark: handshake RTT of the stream (`tcp.analysis.initial_rtt`), on the frames where tshark prints it in one pass.
        ws_initial_rtt_ns: Option<i64>,
        /// Wireshark: `tcp.analysis.bytes_in_flight`.
        ws_bytes_in_flight: Option<u32>,
        /// Wireshark: `tcp.analysis.retransmission`; also set for fast and spurious ones.
        ws_retransmission: bool,
        /// Wireshark: `tcp.analysis.fast_retransmission`.
        ws_fast_retransmission: bool,
        /// Wireshark: `tcp.analysis.spurious_retransmission`.
        ws_spurious_retransmission: bool,
        /// Wireshark: `tcp.analysis.out_of_order`; with a long round trip most retransmissions carry it.
        ws_out_of_order: bool,
        /// Wireshark: `tcp.analysis.duplicate_ack`.
        ws_duplicate_ack: bool,
        /// Wireshark: number of the duplicate ACK (`tcp.analysis.duplicate_ack_num`); null where it is none.
        ws_duplicate_ack_num: Option<u32>,
        /// Wireshark: `tcp.analysis.zero_window`.
        ws_zero_window: bool,
        /// Wireshark: `tcp.analysis.zero_window_probe`.
        ws_zero_window_probe: bool,
        /// Wireshark: `tcp.analysis.zero_window_probe_ack`.
        ws_zero_window_probe_ack: bool,
        /// Wireshark: `tcp.analysis.window_full`.
        ws_window_full: bool,
        /// Wireshark: `tcp.analysis.window_update`.
        ws_window_update: bool,
        /// Wireshark: `tcp.analysis.keep_alive`.
        ws_keep_alive: bool,
        /// Wireshark: `tcp.analysis.keep_alive_ack`.
        ws_keep_alive_ack: bool,
        /// Wireshark: `tcp.analysis.lost_segment` ("previous segment not captured").
        ws_lost_segment: bool,
        /// Wireshark: `tcp.analysis.ack_lost_segment` ("ACKed unseen segment").
        ws_ack_lost_segment: bool,
        /// Wireshark: `tcp.analysis.reused_ports`.
        ws_reused_ports: bool,
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
        /// Virtual network identifier of the tunnel it was seen in; where the two directions have one each, that of the first frame.
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
        /// Packets sent by the client: segments, or the IP fragments of one; copies of frames (`duplicate_of`) are left out.
        client_packets: u64,
        /// Segments sent by the server, likewise.
        server_packets: u64,
        /// Payload sent by the client, resent bytes included, copies of frames left out.
        client_bytes: u64,
        /// Payload sent by the server, likewise.
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
        /// Where the capture was taken: at the `client`, at the `server`, in the `middle`, or `unknown`.
        vantage: Option<Symbol>,
        /// Segments that the client sent again, in segments of one MSS: all causes. At the sender's tap this is the kernel's RetransSegs.
        client_retransmit_count: u64,
        /// Of these, fast retransmissions (duplicate ACKs, SACK, RACK).
        client_retransmit_fast_count: u64,
        /// Of these, after the retransmission timer ran out; SYN and SYN,ACK included.
        client_retransmit_timeout_count: u64,
        /// Of these, in slow start after a timeout, or in smaller pieces after the path MTU shrank.
        client_retransmit_slow_start_count: u64,
        /// Of these, tail loss probes.
        client_retransmit_probe_count: u64,
        /// Of these, resent in vain: the receiver had the bytes already (D-SACK).
        client_retransmit_spurious_count: u64,
        /// `client_retransmit_count` over the data segments that the client sent; null without any.
        client_retransmit_ratio: Option<f64>,
        /// Segments of the client that were overtaken on the way.
        client_reordered_count: u64,
        /// Segments of the client that arrived twice (network duplicates).
        client_network_duplicate_count: u64,
        /// Segments that the server sent again, in segments of one MSS: all causes. At the sender's tap this is the kernel's RetransSegs.
        server_retransmit_count: u64,
        /// Of these, fast retransmissions (duplicate ACKs, SACK, RACK).
        server_retransmit_fast_count: u64,
        /// Of these, after the retransmission timer ran out; SYN and SYN,ACK included.
        server_retransmit_timeout_count: u64,
        /// Of these, in slow start after a timeout, or in smaller pieces after the path MTU shrank.
        server_retransmit_slow_start_count: u64,
        /// Of these, tail loss probes.
        server_retransmit_probe_count: u64,
        /// Of these, resent in vain: the receiver had the bytes already (D-SACK).
        server_retransmit_spurious_count: u64,
        /// `server_retransmit_count` over the data segments that the server sent; null without any.
        server_retransmit_ratio: Option<f64>,
        /// Segments of the server that were overtaken on the way.
        server_reordered_count: u64,
        /// Segments of the server that arrived twice (network duplicates).
        server_network_duplicate_count: u64,
        /// What became of the handshake: `complete`, `refused` (RST), `no_answer`, `half_open` (the client's ACK is missing), `not_captured` (no SYN, or nothing of the client).
        handshake: Option<Symbol>,
        /// SYNs sent again.
        syn_retry_count: u64,
        /// SYN,ACKs sent again.
        syn_ack_retry_count: u64,
        /// Whether SYN and SYN,ACK agreed on ECN (RFC 3168).
        is_ecn_negotiated: bool,
        /// What ended it first: `fin`, `rst`, or `none` of them in the capture.
        closed_by: Option<Symbol>,
        /// Least time from a data segment of the client at the tap to the ACK of its last byte, in nanoseconds: tap to the other end and back, delayed ACKs included. Where bytes were resent only an ACK whose timestamp names one sending counts; without timestamps none. Null without a sample.
        client_rtt_min_ns: Option<i64>,
        /// Median of the same. Quantiles are exact up to 64 samples, then within 1.6 %.
        client_rtt_median_ns: Option<i64>,
        /// 99th percentile of the same.
        client_rtt_p99_ns: Option<i64>,
        /// How long the client's own receive window was closed, from the segment that closed it to the one that opened it (or to the end), in nanoseconds.
        client_zero_window_ns: i64,
        /// How often the client's receive window closed.
        client_zero_window_stall_count: u64,
        /// How long the other end's window held the client back: less than one segment more might be sent. Null where the tap is not at the client, or the window's scale is not known.
        client_window_limited_ns: Option<i64>,
        /// Pauses between the client's data with everything acknowledged: it had nothing to send, or what it sent was lost before the capture point. Null where it sent no data.
        client_idle_ns: Option<i64>,
        /// The longest that the client waited with bytes out and none newly acknowledged, or with the other end's window closed. Null where it sent no data.
        client_longest_stall_ns: Option<i64>,
        /// ACKs of the client that report congestion (ECE), SYNs left out.
        client_ece_count: u64,
        /// Segments of the client that say it slowed down (CWR), SYNs left out.
        client_cwr_count: u64,
        /// Payload that the client sent again, in bytes.
        client_retransmit_bytes: u64,
        /// `client_retransmit_bytes` over all payload of the client, resent bytes included; copies made by the capture are left out of both. Null where it sent none.
        client_retransmit_bytes_ratio: Option<f64>,
        /// Most bytes of the client that were sent and not acknowledged. Null where the tap is not at the client: elsewhere it is not known.
        client_max_in_flight_bytes: Option<u32>,
        /// Least time from a data segment of the server at the tap to the ACK of its last byte, in nanoseconds: tap to the other end and back, delayed ACKs included. Where bytes were resent only an ACK whose timestamp names one sending counts; without timestamps none. Null without a sample.
        server_rtt_min_ns: Option<i64>,
        /// Median of the same. Quantiles are exact up to 64 samples, then within 1.6 %.
        server_rtt_median_ns: Option<i64>,
        /// 99th percentile of the same.
        server_rtt_p99_ns: Option<i64>,
        /// How long the server's own receive window was closed, from the segment that closed it to the one that opened it (or to the end), in nanoseconds.
        server_zero_window_ns: i64,
        /// How often the server's receive window closed.
        server_zero_window_stall_count: u64,
        /// How long the other end's window held the server back: less than one segment more might be sent. Null where the tap is not at the server, or the window's scale is not known.
        server_window_limited_ns: Option<i64>,
        /// Pauses between the server's data with everything acknowledged: it had nothing to send, or what it sent was lost before the capture point. Null where it sent no data.
        server_idle_ns: Option<i64>,
        /// The longest that the server waited with bytes out and none newly acknowledged, or with the other end's window closed. Null where it sent no data.
        server_longest_stall_ns: Option<i64>,
        /// ACKs of the server that report congestion (ECE), SYNs left out.
        server_ece_count: u64,
        /// Segments of the server that say it slowed down (CWR), SYNs left out.
        server_cwr_count: u64,
        /// Payload that the server sent again, in bytes.
        server_retransmit_bytes: u64,
        /// `server_retransmit_bytes` over all payload of the server, resent bytes included; copies made by the capture are left out of both. Null where it sent none.
        server_retransmit_bytes_ratio: Option<f64>,
        /// Most bytes of the server that were sent and not acknowledged. Null where the tap is not at the server: elsewhere it is not known.
        server_max_in_flight_bytes: Option<u32>,
    }
}
