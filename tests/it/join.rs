//! Two capture points, joined: against what the kernels counted, and as the truth that verdicts are measured by.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use wirelab::join::TravelCounts;
use wirelab::{MatchOptions, Matches, ScanRequest, TableId, Unobserved, match_captures};

use crate::support::cells::{Value, column};
use crate::support::{outside_folder, tables, with_threads};

/// Captures at h1 and h2 with what their queueing disciplines dropped, towards h2 and towards h1, and duplicated.
const DROPS: [(&str, u64, u64, u64); 10] = [
    ("tcp_clean", 0, 0, 0),
    ("tcp_loss1", 33, 0, 0),
    ("tcp_loss1_nosack", 24, 0, 0),
    ("tcp_loss_ack", 0, 20, 0),
    ("tcp_noecn_red", 62, 0, 0),
    ("tcp_reorder", 0, 0, 0),
    ("tcp_corrupt", 0, 0, 0),
    ("tcp_ecn_red", 0, 0, 0),
    ("tcp_duplicate", 0, 0, 53),
    ("udp_loss2", 30, 0, 0),
];
/// RoCE captures have no such counter: what tcpdump counted more at one end than at the other.
const ROCE: [(&str, u64, u64, u64); 6] = [
    ("roce_write_rc", 0, 0, 0),
    ("roce_write_loss1", 4173 - 4134, 0, 0),
    ("roce_read_loss1", 0, 8068 - 7970, 0),
    ("roce_write_ackloss", 0, 1732 - 1717, 0),
    ("roce_write_dup", 0, 0, 1052 - 1036),
    ("roce_write_reorder", 0, 0, 0),
];
/// Retransmissions that reach h2.
const RETRANSMITS: [(&str, usize); 5] =
    [("tcp_loss1", 36), ("tcp_noecn_red", 62), ("tcp_rto_blackout", 121), ("tcp_reorder", 27), ("tcp_duplicate", 3)];

#[test]
fn losses_and_duplicates_are_those_of_the_queueing_disciplines() {
    let Some(folder) = labs() else { return };
    for (expected, ends) in [(&DROPS[..], ["h1", "h2"]), (&ROCE[..], ["vm0", "vm1"])] {
        for &(name, forward, back, duplicated) in expected {
            for is_swapped in [false, true] {
                let matches = joined(&folder, name, ends, is_swapped);
                let summary = matches.summary();
                let (there, here) = match is_swapped {
                    false => (&summary.a_to_b, &summary.b_to_a),
                    true => (&summary.b_to_a, &summary.a_to_b),
                };
                let told =
                    |counts: &TravelCounts| (counts.lost_count, counts.duplicated_count, counts.not_captured_count);
                assert_eq!((told(there), told(here)), ((forward, duplicated, 0), (back, 0, 0)), "{name}");
                assert_eq!(summary.unknown.sent_count + summary.unknown.unmatched_count, 0, "{name}");
                let outside = summary.a_to_b.outside_count + summary.b_to_a.outside_count;
                let [up, down] = if is_swapped { [&summary.b, &summary.a] } else { [&summary.a, &summary.b] };
                assert_eq!(outside, 0, "{name}");
                assert_eq!(there.sent_count + here.delivered_count, up.packets, "{name}");
                assert_eq!(there.delivered_count + duplicated + here.sent_count, down.packets, "{name}");
            }
        }
    }
}

#[test]
fn the_counts_expected_of_queueing_disciplines_stand_in_the_captures_own_truth() {
    let Some(folder) = labs() else { return };
    for (name, forward, back, _) in DROPS {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
        let drops = |port: &str| {
            let disciplines = truth["truth"]["qdisc"][port].as_array().cloned().unwrap_or_default();
            // The outermost one counts what those inside dropped as well.
            disciplines.iter().find(|one| one["root"] == true).and_then(|one| one["drops"].as_u64()).unwrap_or(0)
        };
        assert_eq!((drops("r:r2"), drops("r:r1")), (forward, back), "{name}");
    }
}

#[test]
fn verdicts_at_the_receiver_agree_with_what_the_sender_sent() {
    let Some(folder) = labs() else { return };
    let mut retransmits = Score::default();
    let mut reordered = Score::default();
    println!(
        "| capture | truth retransmit | found | wrong | missed | alone | truth reordered | found | wrong | missed |"
    );
    for path in captures_at_both(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".h1.pcap").to_owned();
        let (resent, late) = score(&folder, &name);
        println!("| {name} | {resent} | {} | {late} |", resent.alone);
        if let Some((_, expected)) = RETRANSMITS.iter().find(|(known, _)| *known == name) {
            assert!(resent.truth.abs_diff(*expected) <= 1, "{name}: {} retransmissions reach h2", resent.truth);
        }
        retransmits.add(&resent);
        reordered.add(&late);
    }
    println!("| all | {retransmits} | {} | {reordered} |", retransmits.alone);
    for (what, score) in [("retransmit", retransmits), ("reordered", reordered)] {
        assert!(score.truth > 100, "{what}: too few to judge by");
        let (precision, recall) = score.ratios();
        assert!(precision >= 0.995 && recall >= 0.995, "{what}: precision {precision:.4}, recall {recall:.4}");
    }
}

#[test]
fn segments_that_a_tunnel_endpoint_cut_are_matched_by_their_bytes() {
    let Some(folder) = labs() else { return };
    let matches = joined(&folder, "vxlan_http_offload", ["n1", "pod"], false);
    let summary = matches.summary();
    assert!(summary.a_to_b.resegmented_count > 0);
    assert_eq!((summary.a_to_b.lost_count, summary.a_to_b.lost_bytes, summary.a_to_b.not_captured_count), (0, 0, 0));
    for name in ["tcp_tso_on", "tcp_tso_on_1cpu"] {
        let matches = joined(&folder, name, ["h1", "h2"], false);
        let (there, back) = (&matches.summary().a_to_b, &matches.summary().b_to_a);
        assert_eq!(
            (there.lost_count, there.not_captured_count, back.lost_count, back.not_captured_count),
            (0, 0, 0, 0)
        );
    }
}

fn labs() -> Option<PathBuf> {
    outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures")
}

fn joined(folder: &Path, name: &str, ends: [&str; 2], is_swapped: bool) -> Matches {
    let [mut a, mut b] = ends.map(|end| folder.join(format!("{name}.{end}.pcap")));
    if is_swapped {
        std::mem::swap(&mut a, &mut b);
    }
    match_captures([a], [b], &MatchOptions::default(), &mut Unobserved)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// TCP captures whose two ends are hosts h1 and h2.
fn captures_at_both(folder: &Path) -> Vec<PathBuf> {
    let paths = crate::support::files_below(folder, &[".h1.pcap"]);
    let is_told = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let has_other = folder.join(name.replace(".h1.", ".h2.")).is_file();
        has_other && ["tcp_", "pmtu_tcp", "pmtu_blackhole"].iter().any(|start| name.starts_with(start))
    };
    paths.into_iter().filter(is_told).collect()
}

/// How one verdict fares against the truth.
#[derive(Clone, Copy, Default)]
struct Score {
    truth: usize,
    found: usize,
    wrong: usize,
    missed: usize,
    /// Retransmissions that arrive in order because every earlier copy was lost before the tap: nothing there tells them.
    alone: usize,
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} | {} | {} | {}", self.truth, self.found, self.wrong, self.missed)
    }
}

impl Score {
    fn add(&mut self, other: &Self) {
        self.truth += other.truth;
        self.found += other.found;
        self.wrong += other.wrong;
        self.missed += other.missed;
        self.alone += other.alone;
    }

    fn count(&mut self, is_true: bool, is_said: bool) {
        self.truth += usize::from(is_true);
        self.found += usize::from(is_true && is_said);
        self.wrong += usize::from(!is_true && is_said);
        self.missed += usize::from(is_true && !is_said);
    }

    fn ratios(&self) -> (f64, f64) {
        let ratio = |part: usize, whole: usize| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        (ratio(self.found, self.found + self.wrong), ratio(self.found, self.truth - self.alone))
    }
}

/// A segment of the table `tcp`.
struct Segment {
    verdict: String,
    key: (String, i128, i128),
    seq: u32,
    bytes: u32,
}

fn segments(path: &Path) -> (Vec<i128>, HashMap<i128, Segment>) {
    let mut request = ScanRequest::new(TableId::Tcp);
    let columns = ["frame_no", "verdict", "src_ip", "src_port", "dst_port", "seq_raw", "payload_bytes"];
    request.columns = Some(columns.map(str::to_owned).to_vec());
    let batches = tables(vec![path.to_path_buf().into()], &with_threads(1), &[request]).unwrap().remove(0).batches;
    let cells: BTreeMap<_, _> = columns.iter().map(|name| (*name, column(&batches, name))).collect();
    let int = |name: &str, row: usize| cells[name][row].int().unwrap();
    let text = |name: &str, row: usize| cells[name][row].text().unwrap_or("").to_owned();
    let frames: Vec<_> = cells["frame_no"].iter().map(|cell| cell.int().unwrap()).collect();
    let all = frames.iter().enumerate().map(|(row, frame)| {
        let key = (text("src_ip", row), int("src_port", row), int("dst_port", row));
        let (seq, bytes) = (int("seq_raw", row) as u32, int("payload_bytes", row) as u32);
        (*frame, Segment { verdict: text("verdict", row), key, seq, bytes })
    });
    (frames.clone(), all.collect())
}

/// Verdicts on what arrives at h2, against what h1 sent: retransmissions there, and RFC 4737 between the two.
fn score(folder: &Path, name: &str) -> (Score, Score) {
    let [h1, h2] = ["h1", "h2"].map(|end| folder.join(format!("{name}.{end}.pcap")));
    let (_, sent) = segments(&h1);
    let (order, arrived) = segments(&h2);
    let matches = match_captures([h1], [h2], &MatchOptions::default(), &mut Unobserved).unwrap();
    let batches: Vec<_> = matches.batches(false).map(Result::unwrap).collect();
    let [a, b, direction, status, is_late] =
        ["a_frame_no", "b_frame_no", "direction", "status", "is_reordered"].map(|name| column(&batches, name));
    let mut origin = HashMap::new();
    for row in 0..a.len() {
        let is_delivered = matches!(status[row].text(), Some("delivered" | "resegmented"));
        if let (Some(a), Some(b), Some("a_to_b"), true) =
            (a[row].int(), b[row].int(), direction[row].text(), is_delivered)
        {
            origin.insert(b, (a, is_late[row] == Value::Bool(true)));
        }
    }
    let (mut resent, mut late) = (Score::default(), Score::default());
    // Per flow: where the highest byte seen so far ends.
    let mut highest: HashMap<(String, i128, i128), u32> = HashMap::new();
    for frame in order {
        let segment = &arrived[&frame];
        let end = segment.seq.wrapping_add(segment.bytes);
        let before = highest.get(&segment.key).copied();
        if before.is_none_or(|before| end.wrapping_sub(before) as i32 > 0) {
            highest.insert(segment.key.clone(), end);
        }
        let Some((from, is_late)) = origin.get(&frame) else { continue };
        let Some(original) = sent.get(from) else { continue };
        let is_resent = original.verdict == "retransmit";
        let is_in_order = before.is_none_or(|before| segment.seq.wrapping_sub(before) as i32 >= 0);
        let is_said = segment.verdict == "retransmit";
        if is_resent && is_in_order && !is_said {
            (resent.truth, resent.alone) = (resent.truth + 1, resent.alone + 1);
        } else {
            resent.count(is_resent, is_said);
        }
        // What carries no bytes takes no place in the stream: whether an ACK was overtaken is no verdict on a segment.
        if segment.bytes > 0 {
            late.count(*is_late && !is_resent, segment.verdict == "reordered");
            if (*is_late && !is_resent) != (segment.verdict == "reordered") || is_resent != is_said && !is_in_order {
                println!(
                    "  {name}: frame {frame} (h1 {from}): {} there, {}, overtaken: {is_late}",
                    original.verdict, segment.verdict
                );
            }
        }
    }
    (resent, late)
}
