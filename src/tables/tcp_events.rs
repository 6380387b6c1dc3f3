//! `tcp_events`.

use super::{FrameList, Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per thing that happened on a TCP connection, in the order of first frames. Phases and limits by the window are
    /// told only where the tap is at the sender; copies made by the capture are left out.
    table "tcp_events" => TcpEventRow / TcpEventBuilder {
        /// File of the first frame, from 1.
        file_no: u32,
        /// First frame of the event in its file.
        frame_no: u64,
        /// Time of the first frame.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first of the event.
        time_rel_ns: Option<i64>,
        /// Connection: see `tcp_flows`.
        flow_id: u64,
        /// Wireshark's `tcp.stream`.
        tcp_stream: Option<u64>,
        /// Client's address.
        client_ip: Ip,
        /// Client's port.
        client_port: u16,
        /// Server's address.
        server_ip: Ip,
        /// Server's port.
        server_port: u16,
        /// What happened: `handshake`, `refused`, `no_answer`, `half_open`, `syn_retry`, `recovery`, `timeout`, `zero_window`, `window_limited`, `idle`, `slow_start`, `congestion_avoidance`, `ecn`, `reset`, `not_listed` (a connection had more than a thousand events; `count` were left out).
        kind: Symbol,
        /// Whom it concerns: `client` or `server`. The sender of the data for recovery, timeout, phases, limits and ecn; the receiver whose window closed for `zero_window`; who sent the RST for `reset`; who did not answer for `refused` and `no_answer`.
        side: Symbol,
        /// From its first frame to its end, in nanoseconds.
        duration_ns: i64,
        /// Its end: for recovery and timeout, when everything that was out at its start was acknowledged.
        end: Option<TimeNs>,
        /// Payload sent again (`recovery`, `timeout`); bytes in flight in the last round trip of a phase (`slow_start`, `congestion_avoidance`).
        bytes: Option<u64>,
        /// SYNs (`handshake`, `refused`, `no_answer`, `half_open`), repetitions (`syn_retry`), segments sent again (`recovery`, `timeout`), window probes (`zero_window`), stretches (`window_limited`), round trips (phases), ACKs with ECE (`ecn`), RSTs (`reset`).
        count: u64,
        /// What started it. No answer: `unreachable` where an ICMP message turned the SYN away (its frame is the last of `frames`). Recovery: `sack`, `dup_ack`, `probe`, `pmtu`, `unknown`; timeout: `timeout`, `slow_start`; syn_retry: `syn`, `synack`; ecn: `ce` (the mark was seen) or `ece`; reset: `refused`, `half_open`, `gave_up`, `after_close`, `test_end` (iperf3 ends its data connections so), `abort`, `unknown`.
        cause: Option<Symbol>,
        /// How it ended: `acknowledged`, `spurious` (acknowledged, and all of it had been there already), `timeout`, `reset`, `unfinished` (recovery, timeout); `window_update`, `reset`, `unfinished` (zero_window); `data`, `window` (idle); `leveled`, `loss`, `window`, `application`, `reset`, `unfinished` (phases); `cwr`, `ece_stopped`, `reset`, `unfinished` (ecn).
        end_reason: Option<Symbol>,
        /// Its first 20 frames.
        frames: FrameList,
        /// What happened, in English.
        message_en: Option<String>,
        /// What happened, in Chinese.
        message_zh: Option<String>,
    }
}
