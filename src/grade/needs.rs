//! What a check may need of a capture, by the findings on its quality: an unmet need is the capture's fault, and no wrong
//! answer.

use super::report::QualityFinding;
use crate::words;

/// A need with a name: which findings speak against it.
struct Need {
    name: &'static str,
    codes: &'static [&'static str],
    /// Connections that have what is needed all the same, as a condition over `tcp_flows`: where the lab's own connections
    /// do, a finding on others is no obstacle.
    unless: Option<&'static str>,
}

const NEEDS: [Need; 10] = [
    Need { name: "handshake", codes: &["missing_handshake"], unless: Some("client_known") },
    Need {
        name: "both_directions",
        codes: &["one_direction"],
        unless: Some("client_packets > 0 AND server_packets > 0"),
    },
    Need { name: "whole_frames", codes: &["snap_length"], unless: None },
    Need { name: "no_capture_loss", codes: &["capture_loss", "interface_drops", "packet_drops"], unless: None },
    Need { name: "single_copy", codes: &["duplicate_frames", "duplicate_router_hop"], unless: None },
    Need { name: "no_offload", codes: &["offload"], unless: None },
    Need { name: "steady_clock", codes: &["clock_backwards", "clock_offset"], unless: None },
    Need { name: "decoded", codes: &["unknown_link_type"], unless: None },
    Need {
        name: "not_damaged",
        codes: &[
            "damaged_file",
            "cut_file",
            "compressed_cut",
            "compressed_damaged",
            "malformed_blocks",
            "file_shortened",
            "read_error",
        ],
        unless: None,
    },
    Need { name: "frames", codes: &["no_frames"], unless: None },
];

/// Findings that mean that a part of the file is missing.
const DAMAGE: [&str; 9] = [
    "damaged_file",
    "cut_file",
    "compressed_cut",
    "compressed_damaged",
    "compressed_limit",
    "malformed_blocks",
    "file_shortened",
    "file_changed",
    "read_error",
];

/// Whether a rubric may ask for this: the name of a need, or the code of a finding that must not be there.
pub fn is_known(name: &str) -> bool {
    NEEDS.iter().any(|need| need.name == name) || is_code(name) && words::has(&format!("quality.{name}"))
}

/// Everything that a rubric may ask for.
pub fn known() -> Vec<String> {
    let names = NEEDS.iter().map(|need| need.name.to_owned());
    names.chain(words::keys("quality.").into_iter().filter(|name| is_code(name))).collect()
}

/// Not one of the sentences that a finding may have by what it found: those have a point in their keys.
fn is_code(name: &str) -> bool {
    !name.contains('.')
}

/// The finding that speaks against a need.
pub fn obstacle<'f>(name: &str, findings: &'f [QualityFinding]) -> Option<&'f QualityFinding> {
    match NEEDS.iter().find(|need| need.name == name) {
        Some(need) => findings.iter().find(|finding| need.codes.contains(&finding.code.as_str())),
        None => findings.iter().find(|finding| finding.code == name),
    }
}

/// A query that gives one row if the lab's connections have what is needed, or if there are none: `traffic` says which
/// connections those are.
pub fn relief(name: &str, input: &str, traffic: Option<&str>) -> Option<String> {
    let unless = NEEDS.iter().find(|need| need.name == name)?.unless?;
    let traffic = traffic.unwrap_or("1");
    Some(format!(
        "SELECT 1 FROM (SELECT count(*) AS all_flows, coalesce(sum({unless}), 0) AS sound FROM {input}.tcp_flows \
         WHERE ({traffic})) WHERE sound > 0 OR all_flows = 0"
    ))
}

/// How words call the need: `grade.need.…`.
pub fn words_key(name: &str) -> String {
    let is_named = NEEDS.iter().any(|need| need.name == name);
    if is_named { format!("grade.need.{name}") } else { "grade.need.absent".to_owned() }
}

/// The finding that says that a part of the capture is missing.
pub fn damage(findings: &[QualityFinding]) -> Option<&QualityFinding> {
    findings.iter().find(|finding| DAMAGE.contains(&finding.code.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Lang, say};

    #[test]
    fn every_code_is_one_that_captures_can_have_and_every_need_has_words() {
        for need in &NEEDS {
            for code in need.codes {
                assert!(words::has(&format!("quality.{code}")), "{code}");
            }
            assert!(words::has(&words_key(need.name)), "{}", need.name);
        }
        for code in DAMAGE {
            assert!(words::has(&format!("quality.{code}")), "{code}");
        }
        assert!(is_known("capture_loss") && is_known("handshake") && !is_known("hand_shake"));
        assert!(known().contains(&"offload".to_owned()));
        assert!(is_known("vantage") && !is_known("vantage.server") && !known().iter().any(|name| name.contains('.')));
        assert_ne!(say(Lang::Zh, &words_key("offload"), &[("code", &"offload")]), "grade.need.absent");
    }
}
