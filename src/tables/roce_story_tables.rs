//! `roce_qps`, `roce_messages`, `roce_intervals` and `roce_events`.

use super::{FrameList, Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per queue pair that sends requests, with what its peer answers. Two queue pairs that both send have a row each
    /// (`peer_qp_id`). A connection that takes a queue pair's number later has a row of its own.
    table "roce_qps" => RoceQpRow / RoceQpBuilder {
        /// File of the first packet, from 1.
        file_no: u32,
        /// First packet's frame number in its file.
        frame_no: u64,
        /// Time of the first packet.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first packet.
        time_rel_ns: Option<i64>,
        /// Number of the queue pair in the capture, from 0.
        qp_id: u64,
        /// Interface of the capture, from 0.
        interface_id: u32,
        /// Virtual network, where tunnelled.
        vni: Option<u32>,
        /// Transport service: `RC`, `UC`, `RD`, `UD`, `XRC`.
        service: Symbol,
        /// Address of the requester.
        requester_ip: Ip,
        /// Its queue pair number; null where nothing tells it (requests do not name it).
        requester_qp: Option<u32>,
        /// Address of the responder.
        responder_ip: Ip,
        /// Its queue pair number.
        responder_qp: u32,
        /// What the two numbers were paired by: `cm` (connection manager), `perftest` (its log beside the capture), `deth` (datagrams name both), `psn` (acknowledgements fit these requests alone), `same_number` (they fit several).
        paired_by: Option<Symbol>,
        /// `certain` (cm, perftest, deth), `high` (at least three acknowledgements fit, and next to none do not), `low`.
        pair_confidence: Option<Symbol>,
        /// The same two queue pairs in the other direction.
        peer_qp_id: Option<u64>,
        /// Where the tap is, as the capture itself says (cooked link types), else by what was lost, copied or damaged before and behind it: `requester`, `responder`, `middle`; by CE marks alone `behind_marks`, behind a switch that marks; `unknown`.
        tap: Symbol,
        /// Time of the last packet.
        end: Option<TimeNs>,
        /// From the first packet to the last, in nanoseconds.
        duration_ns: Option<i64>,
        /// Packets of the requester.
        request_count: u64,
        /// READ and atomic response packets.
        response_count: u64,
        /// Acknowledge packets, NAKs included.
        ack_count: u64,
        /// Messages begun.
        message_count: u64,
        /// Payload of requests sent for the first time, and of READ responses that came in their places.
        bytes: u64,
        /// `bytes` in bits, over `duration_ns`.
        throughput_bps: Option<u64>,
        /// Path MTU, from the first packet of a long message or the connection manager.
        path_mtu_bytes: Option<u32>,
        /// Differentiated services code point of the first request.
        dscp: u8,
        /// VLAN priority of the first request.
        vlan_pcp: Option<u8>,
        /// Requests sent again; exact where the tap is at the requester, elsewhere without those lost before the tap.
        retransmit_count: u64,
        /// ... after a sequence NAK.
        retransmit_nak_count: u64,
        /// ... since the responder was not ready.
        retransmit_rnr_count: u64,
        /// ... after a timeout.
        retransmit_timeout_count: u64,
        /// ... READ and atomic requests asked for again.
        retransmit_reissue_count: u64,
        /// ... for a reason that the capture does not show.
        retransmit_unknown_count: u64,
        /// Payload sent again.
        retransmit_bytes: u64,
        /// Requests sent again, of all.
        retransmit_ratio: Option<f64>,
        /// Time without progress before its timeouts, in all, in nanoseconds.
        timeout_wait_ns: i64,
        /// Median time from the first packet of a message to its acknowledgement or the end of its response, as seen at the tap; null over unreliable services, where nothing answers. Likewise the next two.
        latency_median_ns: Option<i64>,
        /// 99th percentile of these times.
        latency_p99_ns: Option<i64>,
        /// Longest of them.
        latency_max_ns: Option<i64>,
        /// Times that the requester went back; waits for a responder that was not ready are not counted.
        rewind_count: u64,
        /// Requests that came to the responder in order; null unless the tap is there. Likewise the next five.
        in_order_count: Option<u64>,
        /// ... ahead of one that was missing.
        out_of_sequence_count: Option<u64>,
        /// ... a second time.
        duplicate_count: Option<u64>,
        /// Gaps that the responder saw: it sends one sequence NAK for each.
        gap_count: Option<u64>,
        /// Requests that arrived and were dropped, out of sequence or a second time: what go-back-N wastes. Without READs and atomics that came again, which are answered again, and without copies that the network made.
        discarded_count: Option<u64>,
        /// Their payload.
        discarded_bytes: Option<u64>,
        /// Requests with a wrong invariant CRC or checksum.
        damaged_count: u64,
        /// Copies of requests that the network made: nobody sent them again.
        network_duplicate_count: u64,
        /// Sequence NAKs.
        nak_sequence_count: u64,
        /// NAKs of a receiver that was not ready (RNR).
        nak_rnr_count: u64,
        /// NAKs that end the connection.
        nak_fatal_count: u64,
        /// Numbers sent that nothing acknowledged.
        unanswered_count: u64,
        /// Numbers acknowledged that the capture does not hold.
        not_captured_count: u64,
        /// Requests marked CE by a congested switch, as they passed the tap.
        ce_count: u64,
        /// Requests marked CE, of all.
        ce_ratio: Option<f64>,
        /// Requests that do not allow marking (Not-ECT).
        not_ect_count: u64,
        /// Congestion notification packets (CNP) to the requester.
        cnp_count: u64,
        /// READ and atomic responses marked CE, as they passed the tap.
        response_ce_count: u64,
        /// Congestion notification packets to the responder, which slow its READ responses.
        response_cnp_count: u64,
        /// Shortest time from a CE mark to the CNP after it, as seen at the tap.
        ce_to_cnp_min_ns: Option<i64>,
        /// Median of these times.
        ce_to_cnp_median_ns: Option<i64>,
    }
}

table! {
    /// One row per RDMA message: from its first packet to its acknowledgement or response. In the order of first packets.
    table "roce_messages" => RoceMessageRow / RoceMessageBuilder {
        /// File of the first packet, from 1.
        file_no: u32,
        /// First packet's frame number in its file.
        frame_no: u64,
        /// Time of the first packet.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first packet.
        time_rel_ns: Option<i64>,
        /// Number of the message in the capture, from 0.
        message_id: u64,
        /// Queue pair: see `roce_qps`.
        qp_id: u64,
        /// Address of the requester.
        requester_ip: Ip,
        /// Its queue pair number, where known when the message ended.
        requester_qp: Option<u32>,
        /// Address of the responder.
        responder_ip: Ip,
        /// Its queue pair number.
        responder_qp: u32,
        /// Transport service.
        service: Symbol,
        /// `send`, `write`, `read`, `compare_swap`, `fetch_add`.
        operation: Symbol,
        /// Length of the message: as its first packet declares it (RETH), else the sum of its payloads.
        bytes: u64,
        /// RETH: declared length.
        dma_bytes: Option<u32>,
        /// Payload that passed the tap, each packet once (READ: of the responses, in their places).
        payload_bytes: u64,
        /// Number of the first packet.
        psn: u32,
        /// Number of the last packet (READ: of the last response).
        last_psn: u32,
        /// Packets of the requester, repetitions included.
        packet_count: u64,
        /// Packets of the response.
        response_count: u64,
        /// Last frame of the message, acknowledgement included.
        last_frame_no: u64,
        /// When it was over: time of the acknowledgement, of the last response, or of the NAK that refused it; of the last packet over unreliable services.
        end: Option<TimeNs>,
        /// From the first packet to `end`, as seen at the tap; null where it failed, and over unreliable services, where nothing answers.
        latency_ns: Option<i64>,
        /// `bytes` in bits, over `latency_ns`.
        throughput_bps: Option<u64>,
        /// How it ended: `acknowledged`, `response`, `failed` (NAK), `sent` (unreliable service), `unfinished`.
        completion: Symbol,
        /// Whether all its packets passed the tap: first, last, and as many bytes as declared.
        is_complete: bool,
        /// Immediate data.
        imm: Option<u32>,
        /// Requests of the message that were sent again.
        retransmit_count: u64,
        /// ... after a sequence NAK.
        retransmit_nak_count: u64,
        /// ... since the responder was not ready.
        retransmit_rnr_count: u64,
        /// ... after a timeout.
        retransmit_timeout_count: u64,
        /// ... READ and atomic requests asked for again.
        retransmit_reissue_count: u64,
        /// ... for a reason that the capture does not show.
        retransmit_unknown_count: u64,
        /// Requests marked CE.
        ce_count: u64,
    }
}

table! {
    /// One row per queue pair and interval of time in which packets of it passed: how much, and how much of it marked. By queue
    /// pair, then by time. An interval is 1 ms long, or so many doublings of it that a queue pair has at most 256.
    table "roce_intervals" => RoceIntervalRow / RoceIntervalBuilder {
        /// File of the queue pair's first packet, from 1.
        file_no: u32,
        /// Queue pair: see `roce_qps`.
        qp_id: u64,
        /// Start of the interval: a multiple of its length since 1970.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to that start; negative where the capture begins within the interval.
        time_rel_ns: Option<i64>,
        /// Length of the interval: the same for all of a queue pair.
        interval_ns: i64,
        /// Address of the requester.
        requester_ip: Ip,
        /// Its queue pair number; null where nothing tells it.
        requester_qp: Option<u32>,
        /// Address of the responder.
        responder_ip: Ip,
        /// Its queue pair number.
        responder_qp: u32,
        /// Packets of the requester.
        request_count: u64,
        /// READ and atomic response packets.
        response_count: u64,
        /// Payload of both as it passed the tap, repetitions included.
        bytes: u64,
        /// `bytes` in bits, over the length of the interval.
        throughput_bps: u64,
        /// Requests sent again.
        retransmit_count: u64,
        /// Requests marked CE by a congested switch.
        ce_count: u64,
        /// Requests marked CE, of all; null where none passed.
        ce_ratio: Option<f64>,
        /// Requests that do not allow marking (Not-ECT).
        not_ect_count: u64,
        /// Congestion notification packets (CNP) to the requester.
        cnp_count: u64,
        /// Responses marked CE.
        response_ce_count: u64,
        /// Responses marked CE, of all; null where none passed.
        response_ce_ratio: Option<f64>,
        /// Congestion notification packets to the responder.
        response_cnp_count: u64,
    }
}

table! {
    /// One row per thing that happened on a RoCE queue pair, in the order of first frames.
    table "roce_events" => RoceEventRow / RoceEventBuilder {
        /// File of the first frame, from 1.
        file_no: u32,
        /// First frame of the event in its file.
        frame_no: u64,
        /// Time of the first frame.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture to the first of the event.
        time_rel_ns: Option<i64>,
        /// Queue pair: see `roce_qps`. Of `connect`, `reject` and `disconnect`, queue pair 1, whose messages they are.
        qp_id: u64,
        /// Address of the requester.
        requester_ip: Ip,
        /// Its queue pair number (of `connect` and `disconnect`, of the queue pair that is connected).
        requester_qp: Option<u32>,
        /// Address of the responder.
        responder_ip: Ip,
        /// Its queue pair number.
        responder_qp: u32,
        /// What happened: `connect`, `reject`, `disconnect` (connection manager), `go_back_n` (requests sent again), `rnr` (receiver not ready), `nak` (refused for good), `unanswered` (tries without any answer), `congestion` (CE marks), `cnp` (congestion notifications), `capture_loss` (acknowledged packets that the capture does not hold), `not_listed` (a queue pair had more than a thousand events; `count` were left out).
        kind: Symbol,
        /// From its first frame to its end, in nanoseconds.
        duration_ns: i64,
        /// Its end.
        end: Option<TimeNs>,
        /// Packet sequence number it begins at.
        psn: Option<u32>,
        /// Requests sent again (`go_back_n`, `unanswered`), NAKs (`rnr`), marks, notifications, packets (`capture_loss`), requests of the connection manager (`connect`), reason code (`reject`).
        count: u64,
        /// Payload sent again (`go_back_n`, `unanswered`), or marked (`congestion`).
        bytes: Option<u64>,
        /// How often the requester went back to the same packet.
        try_count: Option<u64>,
        /// Time that the responder asked to wait (`rnr`), or time without progress before the timeout (`go_back_n`, `unanswered`; of several tries the longest), in nanoseconds.
        wait_ns: Option<i64>,
        /// What started it: `nak`, `timeout`, `reissue`, `unknown` (`go_back_n`, `unanswered`); `invalid_request`, `remote_access`, `remote_operation` (`nak`).
        cause: Option<Symbol>,
        /// How it ended: `acknowledged`, `again` (it went back elsewhere before that), `timeout` (the same, when its timer ran out), `accepted` (`rnr`), `gave_up` (likely: silence longer than between tries), `capture_end`.
        end_reason: Option<Symbol>,
        /// Its first 20 frames.
        frames: FrameList,
        /// What happened, in English.
        message_en: Option<String>,
        /// What happened, in Chinese.
        message_zh: Option<String>,
    }
}
