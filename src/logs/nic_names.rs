//! What the counters of network cards count. Drivers name them as they like; these are the names that RoCE labs meet.
//!
//! mlx5: the kernel's "Ethtool counters" and `rdma_counter` documentation; bnxt, ice, i40e, ixgbe, irdma, rxe: the string tables
//! of their drivers.

use std::sync::LazyLock;

use regex::Regex;

use crate::tables::Symbol;

/// What a counter counts, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub kind: Option<Symbol>,
    pub direction: Option<Symbol>,
    pub class: Option<u8>,
}

/// Patterns over the whole name, and what such a counter counts: `way` and `class` are direction and priority; `what` tells
/// packets from bytes. The first that fits counts.
const KINDS: [(&str, &str); 26] = [
    (r"^(?<way>rx|tx)_prio(?<class>\d)_pause_duration$", "pause_duration_us"),
    (r"^(?<way>rx|tx)_prio(?<class>\d)_pause_transition$", "pause_transitions"),
    (r"^(?<way>rx|tx)_prio(?<class>\d)_pause$", "pause_frames"),
    (r"^(?<way>rx|tx)_prio(?<class>\d)_(?:buf_|cong_)?discards?$", "dropped_no_buffer"),
    (r"^(?<way>rx|tx)_prio(?<class>\d)_marked$", "ecn_marked"),
    (r"^(?<way>rx|tx)_prio(?<class>\d)_(?<what>packets|bytes)$", ""),
    (r"^(?<way>rx|tx)_(?<what>packets|bytes)_pri(?<class>\d)$", ""),
    (r"^(?<way>rx|tx)_(?:global_pause|pause_ctrl_phy)$", "pause_frames"),
    (r"^(?<way>rx|tx)_global_pause_duration$", "pause_duration_us"),
    (r"^(?<way>rx|tx)_global_pause_transition$", "pause_transitions"),
    (r"^(?<way>tx)_pause_storm_(?:warning|error)_events$", "pause_storm"),
    (r"^(?:port\.)?(?<way>rx|tx)_priority_(?<class>\d)_xoff(?:\.nic)?$", "pause_frames"),
    (r"^(?:port\.)?(?<way>rx|tx)_priority_(?<class>\d)_xon(?:_2_xoff)?(?:\.nic)?$", "resume_frames"),
    (r"^(?:port\.)?link_xoff_(?<way>rx|tx)(?:\.nic)?$", "pause_frames"),
    (r"^(?:port\.)?link_xon_(?<way>rx|tx)(?:\.nic)?$", "resume_frames"),
    (r"^(?<way>rx|tx)_flow_control_xoff$", "pause_frames"),
    (r"^(?<way>rx|tx)_flow_control_xon$", "resume_frames"),
    (r"^(?<way>rx|tx)_pfc_ena_frames_pri(?<class>\d)$", "pause_frames"),
    (r"^(?<way>rx|tx)_pfc_frames$", "pfc_frames"),
    (r"^pfc_pri(?<class>\d)_(?<way>rx|tx)_duration_us$", "pause_duration_us"),
    (r"^pfc_pri(?<class>\d)_(?<way>rx|tx)_transitions$", "pause_transitions"),
    (r"^(?<way>rx|tx)_pause(?:_frames)?$", "pause_frames"),
    (r"^(?<way>rx|tx)(?:\d+)?_ecn_mark$", "ecn_marked"),
    (r"^(?<way>rx|tx)_vport_rdma_(?:unicast|multicast)_(?<what>packets|bytes)$", "rdma_"),
    (r"^(?<way>rx|tx)_(?:dropped|drops|discards|queue_dropped|roce_discards)(?:\.nic)?$", "dropped"),
    (r"^(?<way>rx|tx)_(?<what>packets|bytes)(?:_phy)?$", ""),
];

/// Patterns of loss and damage.
const FAULTS: [(&str, &str); 3] = [
    (r"^(?<way>rx)_(?:out_of_buffer|discards_phy|no_buffer_count|missed_errors)$", "dropped_no_buffer"),
    (r"^(?<way>rx|tx)_(?:crc_errors|crc_errors_phy|crc_errors\.nic|fcs_err_frames)$", "crc_errors"),
    (r"^(?<way>rx|tx)_(?:errors|errors_phy|symbol_err_phy|wqe_err|length_errors|roce_errors)$", "errors"),
];

/// Counters of the RDMA side, as `hw_counters` names them and some drivers' `ethtool -S` too: name, what, direction.
const NAMED: [(&str, &str, &str); 43] = [
    // mlx5
    ("np_cnp_sent", "cnp_sent", "tx"),
    ("rp_cnp_handled", "cnp_handled", "rx"),
    ("rp_cnp_ignored", "cnp_ignored", "rx"),
    ("np_ecn_marked_roce_packets", "ecn_marked", "rx"),
    ("out_of_sequence", "out_of_sequence", "rx"),
    ("packet_seq_err", "sequence_naks", "rx"),
    ("implied_nak_seq_err", "implied_naks", "rx"),
    ("duplicate_request", "duplicate_requests", "rx"),
    ("rnr_nak_retry_err", "rnr_naks", "rx"),
    ("local_ack_timeout_err", "ack_timeout", ""),
    ("req_transport_retries_exceeded", "retry_exceeded", ""),
    ("roce_adp_retrans", "adaptive_retransmits", "tx"),
    ("out_of_buffer", "dropped_no_buffer", "rx"),
    ("rx_icrc_encapsulated", "icrc_errors", "rx"),
    // bnxt_re, in its versions
    ("tx_cnp_pkts", "cnp_sent", "tx"),
    ("cnp_tx_pkts", "cnp_sent", "tx"),
    ("np_cnp_pkts", "cnp_sent", "tx"),
    ("rx_cnp_pkts", "cnp_handled", "rx"),
    ("cnp_rx_pkts", "cnp_handled", "rx"),
    ("rx_ecn_marked_pkts", "ecn_marked", "rx"),
    ("seq_err_naks_rcvd", "sequence_naks", "rx"),
    ("rnr_naks_rcvd", "rnr_naks", "rx"),
    ("to_retransmits", "timeout_retransmits", "tx"),
    ("oos_drop_count", "out_of_sequence", "rx"),
    ("res_oos_drop_count", "out_of_sequence", "rx"),
    ("dup_req", "duplicate_requests", "rx"),
    ("dup_reqs", "duplicate_requests", "rx"),
    ("max_retry_exceeded", "retry_exceeded", ""),
    ("missing_resp", "implied_naks", "rx"),
    // irdma
    ("cnpSent", "cnp_sent", "tx"),
    ("cnpHandled", "cnp_handled", "rx"),
    ("cnpIgnored", "cnp_ignored", "rx"),
    ("RxECNMrkd", "ecn_marked", "rx"),
    // Soft-RoCE
    ("sent_pkts", "rdma_packets", "tx"),
    ("rcvd_pkts", "rdma_packets", "rx"),
    ("out_of_seq_request", "out_of_sequence", "rx"),
    ("rcvd_seq_err", "sequence_naks", "rx"),
    ("rcvd_rnr_err", "rnr_naks", "rx"),
    ("send_rnr_err", "rnr_naks", "tx"),
    ("completer_retry_err", "retries", "tx"),
    ("retry_exceeded_err", "retry_exceeded", ""),
    ("retry_rnr_exceeded_err", "rnr_retry_exceeded", ""),
    ("send_err", "errors", "tx"),
];

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let patterns = KINDS.iter().chain(&FAULTS);
    patterns.filter_map(|(pattern, kind)| Some((Regex::new(pattern).ok()?, *kind))).collect()
});

/// What a counter of that name counts; `None` where that is not known.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    if let Some((_, kind, way)) = NAMED.iter().find(|(known, ..)| *known == name) {
        return Some(Meaning { kind: Some(Symbol(kind)), direction: direction(way), class: None });
    }
    let (pattern, kind) = PATTERNS.iter().find(|(pattern, _)| pattern.is_match(name))?;
    let found = pattern.captures(name)?;
    let kind = match (*kind, found.name("what").map(|what| what.as_str())) {
        ("", Some("bytes")) => "bytes",
        ("", _) => "packets",
        ("rdma_", Some("bytes")) => "rdma_bytes",
        ("rdma_", _) => "rdma_packets",
        (kind, _) => kind,
    };
    let class = found.name("class").and_then(|class| class.as_str().parse().ok()).filter(|class| *class < 8);
    let direction = found.name("way").and_then(|way| direction(way.as_str()));
    Some(Meaning { kind: Some(Symbol(kind)), direction, class })
}

/// Whether it is the name of a counter of the RDMA side.
pub(super) fn is_rdma(name: &str) -> bool {
    NAMED.iter().any(|(known, ..)| *known == name)
}

/// The direction that the beginning of a name tells.
pub(super) fn way_of(name: &str) -> Option<Symbol> {
    ["rx", "tx"].into_iter().find(|way| name.starts_with(way)).map(Symbol)
}

fn direction(way: &str) -> Option<Symbol> {
    match way {
        "rx" => Some(Symbol("rx")),
        "tx" => Some(Symbol("tx")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> (&'static str, &'static str, Option<u8>) {
        let meaning = meaning(name).unwrap_or_else(|| panic!("{name} is not known"));
        (meaning.kind.unwrap().0, meaning.direction.map_or("", |way| way.0), meaning.class)
    }

    #[test]
    fn counters_of_three_vendors_that_count_the_same_have_the_same_kind() {
        for (names, expected) in [
            (
                &["rx_prio3_pause", "rx_pfc_ena_frames_pri3", "rx_priority_3_xoff.nic"][..],
                ("pause_frames", "rx", Some(3)),
            ),
            (&["tx_prio4_pause", "tx_pfc_ena_frames_pri4", "tx_priority_4_xoff.nic"], ("pause_frames", "tx", Some(4))),
            (&["rx_pause_ctrl_phy", "rx_pause_frames", "link_xoff_rx.nic"], ("pause_frames", "rx", None)),
            (&["rx_prio5_pause_duration", "pfc_pri5_rx_duration_us"], ("pause_duration_us", "rx", Some(5))),
            (&["np_cnp_sent", "tx_cnp_pkts", "cnpSent"], ("cnp_sent", "tx", None)),
            (&["rp_cnp_handled", "rx_cnp_pkts", "cnpHandled"], ("cnp_handled", "rx", None)),
            (&["np_ecn_marked_roce_packets", "rx_ecn_marked_pkts", "RxECNMrkd"], ("ecn_marked", "rx", None)),
            (&["out_of_sequence", "oos_drop_count", "out_of_seq_request"], ("out_of_sequence", "rx", None)),
            (&["packet_seq_err", "seq_err_naks_rcvd", "rcvd_seq_err"], ("sequence_naks", "rx", None)),
            (&["rx_prio3_packets", "rx_packets_pri3"], ("packets", "rx", Some(3))),
            (&["tx_prio3_bytes", "tx_bytes_pri3"], ("bytes", "tx", Some(3))),
        ] {
            for name in names {
                assert_eq!(of(name), expected, "{name}");
            }
        }
        assert_eq!(of("rx_vport_rdma_unicast_bytes"), ("rdma_bytes", "rx", None));
        assert_eq!(of("rx_priority_3_xon.nic"), ("resume_frames", "rx", Some(3)));
        for unknown in ["rx_prio9_pause", "rx_prio3_pauses", "module_bus_stuck", "rx0_kicks"] {
            let class = meaning(unknown).and_then(|meaning| meaning.class);
            assert!(meaning(unknown).is_none() || class.is_none(), "{unknown}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), KINDS.len() + FAULTS.len());
    }
}
