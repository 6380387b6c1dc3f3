//! Which file is which input.

use wirelab::Lang;
use wirelab::grade::submission::{
    Assigned, Assignment, InputKind, InputSpec, Submission, assign, check_pattern, unusable,
};

use super::{capture, log, other_capture, unpacked, zip_of};

fn input(name: &str, kind: &str, patterns: &[&str]) -> InputSpec {
    let kind = InputKind::from_name(kind).unwrap();
    InputSpec { name: name.into(), kind, patterns: patterns.iter().map(|p| p.to_string()).collect(), required: true }
}

fn two_captures() -> [InputSpec; 2] {
    [input("standard", "capture", &["*1500*", "*standard*"]), input("jumbo", "capture", &["*9000*", "*jumbo*"])]
}

fn submission(files: &[(&str, &[u8])]) -> Submission {
    unpacked("lab.zip", zip_of(files))
}

/// The name of each input's file, or what became of it instead.
fn outcomes(assignment: &Assignment, submission: &Submission) -> Vec<String> {
    let name = |at: &usize| submission.files[*at].name.clone();
    let shown = |outcome: &Assigned| match outcome {
        Assigned::File(at) => name(at),
        Assigned::Missing { near } => format!("missing {:?}", near.iter().map(name).collect::<Vec<_>>()),
        Assigned::Ambiguous { candidates } => {
            format!("ambiguous {:?}", candidates.iter().map(name).collect::<Vec<_>>())
        }
    };
    assignment.inputs.iter().map(|assigned| shown(&assigned.outcome)).collect()
}

fn codes(assignment: &Assignment) -> Vec<&'static str> {
    for finding in &assignment.findings {
        for lang in [Lang::En, Lang::Zh] {
            let message = finding.message(lang);
            assert!(!message.contains('{') && !message.contains("submission."), "{message}");
        }
    }
    assignment.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_folder_called_after_the_lab_does_not_make_every_file_fit() {
    let folder = "实验-1500-9000";
    let (standard, jumbo) = (format!("{folder}/mtu1500.pcap"), format!("{folder}/mtu9000.pcap"));
    let submission = submission(&[(&standard, &capture()), (&jumbo, &other_capture())]);
    let found = assign(&two_captures(), &submission);
    assert_eq!(outcomes(&found, &submission), [standard, jumbo]);
    assert_eq!((codes(&found), found.unused.len()), (vec![], 0));
}

#[test]
fn names_decide_whatever_their_case_and_folder() {
    let submission = submission(&[("lab/Jumbo/run.PCAP", &capture()), ("lab/STANDARD.pcap", &other_capture())]);
    let found = assign(&two_captures(), &submission);
    assert_eq!(outcomes(&found, &submission), ["lab/STANDARD.pcap", "lab/Jumbo/run.PCAP"]);
    assert_eq!((codes(&found), found.unused.len()), (vec![], 0));
    assert_eq!(found.file_of("jumbo", &submission).unwrap().name, "lab/Jumbo/run.PCAP");
    assert!(found.file_of("nothing", &submission).is_none());
}

#[test]
fn the_one_file_that_is_left_is_taken_by_its_kind_and_that_is_said() {
    let submission = submission(&[("mtu9000.pcap", &capture()), ("second.pcap", &other_capture())]);
    let found = assign(&two_captures(), &submission);
    assert_eq!(outcomes(&found, &submission), ["second.pcap", "mtu9000.pcap"]);
    assert_eq!(codes(&found), ["assigned_by_kind"]);
}

#[test]
fn two_unnamed_captures_for_two_inputs_are_not_guessed() {
    let submission = submission(&[("a.pcap", &capture()), ("b.pcap", &other_capture())]);
    let found = assign(&two_captures(), &submission);
    assert_eq!(outcomes(&found, &submission), ["missing []", "missing []"]);
    assert_eq!(codes(&found), ["missing_input", "missing_input", "unused_file", "unused_file"]);
    assert_eq!(found.unused, [0, 1]);
}

#[test]
fn several_files_for_one_input_are_ambiguous() {
    let submission = submission(&[("jumbo1.pcap", &capture()), ("jumbo2.pcap", &other_capture())]);
    let found = assign(&two_captures()[1..], &submission);
    assert_eq!(outcomes(&found, &submission), ["ambiguous [\"jumbo1.pcap\", \"jumbo2.pcap\"]"]);
    assert!(codes(&found).contains(&"ambiguous_input"));
}

#[test]
fn a_copy_does_not_make_an_input_ambiguous() {
    let submission = submission(&[("jumbo.pcap", &capture()), ("jumbo copy.pcap", &capture())]);
    let found = assign(&two_captures()[1..], &submission);
    assert_eq!(outcomes(&found, &submission), ["jumbo.pcap"]);
    assert_eq!(codes(&found), ["unused_copy"]);
}

#[test]
fn the_same_capture_for_both_inputs_reaches_the_lab() {
    let submission = submission(&[("standard.pcap", &capture()), ("jumbo.pcap", &capture())]);
    let found = assign(&two_captures(), &submission);
    assert_eq!(outcomes(&found, &submission), ["standard.pcap", "jumbo.pcap"]);
}

#[test]
fn one_file_that_fits_two_inputs_is_contested_and_other_files_solve_what_they_can() {
    let both = submission(&[("standard-vs-jumbo.pcap", &capture())]);
    let found = assign(&two_captures(), &both);
    let contested = "ambiguous [\"standard-vs-jumbo.pcap\"]";
    assert_eq!(outcomes(&found, &both), [contested, contested]);
    assert!(codes(&found).starts_with(&["contested_input", "contested_input"]));
    let solved = submission(&[("jumbo_after_standard.pcap", &capture()), ("standard.pcap", &other_capture())]);
    let found = assign(&two_captures(), &solved);
    assert_eq!(outcomes(&found, &solved), ["standard.pcap", "jumbo_after_standard.pcap"]);
}

#[test]
fn a_file_with_the_right_name_and_the_wrong_content_is_named() {
    let submission = submission(&[("jumbo.pcap", b"\x89PNG\r\n\x1a\n...")]);
    let found = assign(&two_captures()[1..], &submission);
    assert_eq!(outcomes(&found, &submission), ["missing [\"jumbo.pcap\"]"]);
    assert_eq!(codes(&found), ["wrong_kind", "unused_file"]);
}

#[test]
fn a_file_that_serves_as_one_input_is_no_failed_try_at_another() {
    let inputs = [input("jumbo", "capture", &["*9000*"]), input("iperf3_jumbo", "iperf3", &["*9000*"])];
    let submission = submission(&[("mtu9000.pcap", &capture())]);
    let found = assign(&inputs, &submission);
    assert_eq!(outcomes(&found, &submission), ["mtu9000.pcap", "missing []"]);
    assert_eq!(codes(&found), ["missing_input"]);
}

#[test]
fn logs_are_told_by_content_whatever_their_names() {
    let inputs = [
        input("ping", "ping", &["*ping*"]),
        input("iperf", "iperf3", &["*iperf*"]),
        input("answers", "text", &["answers.*"]),
    ];
    let submission = submission(&[
        ("log1.txt", &log("ping_delay.txt")),
        ("log2.txt", &log("iperf3_tcp_json.client.txt")),
        ("answers.md", b"42"),
    ]);
    let found = assign(&inputs, &submission);
    assert_eq!(outcomes(&found, &submission), ["log1.txt", "log2.txt", "answers.md"]);
    assert_eq!(codes(&found), ["assigned_by_kind", "assigned_by_kind"]);
}

#[test]
fn a_saved_session_serves_an_input_of_each_tool_in_it() {
    let inputs = [
        input("ping", "ping", &["*ping*"]),
        input("iperf", "iperf3", &["*iperf*"]),
        input("more", "ping", &["*more*"]),
    ];
    let session = [log("ping_delay.txt"), log("iperf3_tcp_text.client.txt")].concat();
    let submission = submission(&[("ping and iperf.txt", &session)]);
    let found = assign(&inputs, &submission);
    assert_eq!(outcomes(&found, &submission), ["ping and iperf.txt", "ping and iperf.txt", "missing []"]);
    assert!(found.unused.is_empty());
}

#[test]
fn an_input_that_may_be_missing_is_no_error() {
    let mut optional = input("ping", "ping", &["*ping*"]);
    optional.required = false;
    let submission = submission(&[("a.pcap", &capture())]);
    let found = assign(&[optional], &submission);
    assert_eq!(found.findings[0].code, "missing_input");
    assert_eq!(found.findings[0].severity.name(), "info");
}

#[test]
fn an_input_without_patterns_takes_the_one_file_of_its_kind() {
    let submission = submission(&[("whatever.pcap", &capture()), ("notes.txt", b"x")]);
    let found = assign(&[input("capture", "capture", &[])], &submission);
    assert_eq!(outcomes(&found, &submission), ["whatever.pcap"]);
    assert_eq!(codes(&found), ["unused_file"]);
}

#[test]
fn a_pattern_that_is_none_is_told() {
    assert!(check_pattern("*9000*").is_ok() && check_pattern("lab/**/x{1,2}.pcap").is_ok());
    assert!(check_pattern("a[").is_err());
    assert_eq!(InputKind::from_name("nonsense"), None);
    for name in ["capture", "text", "iperf3", "ss"] {
        assert_eq!(InputKind::from_name(name).unwrap().name(), name);
    }
}

#[test]
fn of_several_files_the_one_that_is_called_as_asked_is_taken_and_the_others_are_named() {
    let inputs = [input("standard", "capture", &["*1500*"]), input("jumbo", "capture", &["mtu9000", "*9000*"])];
    let files: [(&str, &[u8]); 4] = [
        ("lab/MTU9000.pcap.gz", &capture()),
        ("lab/mtu9000-first.pcap", &other_capture()),
        ("lab/standard.pcap", &[&capture()[..], b"\0"].concat()),
        ("lab/1500.pcap", &[&capture()[..], b"\0\0"].concat()),
    ];
    let handed_in = submission(&files);
    let found = assign(&inputs, &handed_in);
    assert_eq!(outcomes(&found, &handed_in), ["lab/standard.pcap", "lab/MTU9000.pcap.gz"]);
    let mut told: Vec<_> = found.findings.iter().map(|finding| (finding.code, finding.file.as_str())).collect();
    told.sort_unstable();
    assert_eq!(told, [("passed_over", "lab/1500.pcap"), ("passed_over", "lab/mtu9000-first.pcap")]);
    assert_eq!(codes(&found).len(), 2);

    // Two that are called alike, in two folders: nobody can tell.
    let files: [(&str, &[u8]); 2] = [("a/mtu9000.pcap", &capture()), ("b/mtu9000.pcap", &other_capture())];
    let handed_in = submission(&files);
    let found = assign(&inputs[1..], &handed_in);
    assert_eq!(outcomes(&found, &handed_in), ["ambiguous [\"a/mtu9000.pcap\", \"b/mtu9000.pcap\"]"]);
}

/// The inputs of a lab with a log beside each capture, under the same names.
fn captures_and_logs() -> Vec<InputSpec> {
    let log = |name: &str, pattern: &str| InputSpec { required: false, ..input(name, "iperf3", &[pattern]) };
    [two_captures().to_vec(), vec![log("log_standard", "*1500*"), log("log_jumbo", "*9000*")]].concat()
}

#[test]
fn a_file_that_is_no_capture_was_a_try_at_the_capture_and_not_at_the_log_of_the_same_name() {
    let inputs = captures_and_logs();
    let files: [(&str, &[u8]); 3] = [
        ("mtu1500.pcap", b"my notes\n"),
        ("mtu9000.pcap", &[0x91, 0, 0xff].repeat(100)),
        ("mtu9000.json", b"{\"no\": \"iperf3\"}\n"),
    ];
    let submission = submission(&files);
    let found = assign(&inputs, &submission);
    assert_eq!(
        outcomes(&found, &submission),
        ["missing [\"mtu1500.pcap\"]", "missing [\"mtu9000.pcap\"]", "missing []", "missing [\"mtu9000.json\"]"]
    );
    let wrong: Vec<_> = found.findings.iter().filter(|finding| finding.code == "wrong_kind").collect();
    let wrong: Vec<_> = wrong.iter().map(|finding| finding.file.as_str()).collect();
    assert_eq!(wrong, ["mtu1500.pcap", "mtu9000.pcap", "mtu9000.json"]);
    let why = |at: usize| {
        let Assigned::Missing { near } = &found.inputs[at].outcome else { panic!("{found:?}") };
        unusable(&inputs[at], near, &submission)
    };
    let text = why(0).unwrap();
    assert_eq!(text.files, ["mtu1500.pcap"]);
    assert!(text.en.starts_with("mtu1500.pcap is no capture: it is a text file."), "{text:?}");
    assert!(text.zh.starts_with("mtu1500.pcap 不是抓包文件：它是文本文件。"), "{text:?}");
    assert!(why(1).unwrap().en.contains("no known kind"), "{found:?}");
    assert_eq!(why(2), None);
    assert_eq!(why(3).unwrap().en, "mtu9000.json is text, not output of iperf3.");
}

#[test]
fn what_tcpdump_printed_was_a_try_at_the_capture_whatever_its_ending() {
    let line = "10:00:00.000000 IP 10.0.0.1.5201 > 10.0.0.2.40000: Flags [S], seq 1, win 64240, length 0\n".repeat(8);
    let submission = submission(&[("mtu1500.txt", line.as_bytes()), ("mtu9000.pcap", &capture())]);
    let found = assign(&captures_and_logs(), &submission);
    assert_eq!(outcomes(&found, &submission)[0], "missing [\"mtu1500.txt\"]");
    assert_eq!(outcomes(&found, &submission)[2], "missing []");
}

#[test]
fn an_archive_that_was_not_opened_may_hold_what_is_missing() {
    let submission = submission(&[("lab.rar", b"Rar!\x1a\x07\x01\x00rest")]);
    let inputs = captures_and_logs();
    let why = unusable(&inputs[0], &[], &submission).unwrap();
    assert!(why.files.is_empty() && why.en.contains("lab.rar is a RAR archive"), "{why:?}");
    // What need not be handed in is not looked for there.
    assert_eq!(unusable(&inputs[2], &[], &submission), None);
}
