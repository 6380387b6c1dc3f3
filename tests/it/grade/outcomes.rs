//! What a report says, outcome by outcome.

use serde_json::{Value, json};

use super::{folder_of, graded, json as json_of, lab, lab_folder, sample};

fn item<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("{id}"))
}

fn case(name: &str) -> std::path::PathBuf {
    lab_folder("every-outcome").join("cases").join(name)
}

#[test]
fn a_partial_result_says_how_much_of_what_was_measured_and_shows_the_frames() {
    let report = graded(&lab("every-outcome"), &[sample("ping-delay/ping-delay.pcap")], &[("count", "24")]);
    let report = json_of(&report);
    let item = item(&report, "probes_sent");
    assert_eq!(item["status"], "partial");
    assert_eq!((&item["points"], &item["max_points"]), (&json!("0.5"), &json!("2")));
    assert_eq!(item["message"]["en"], "Only 12 packets of 24 probes were sent: 0.5 of 2 points.");
    assert_eq!(item["message"]["zh"], "24 个探测报文只发送了 12 个数据包：得 0.5 分，满分 2 分。");
    assert_eq!(item["hint"]["en"], "Let ping run to its end.");
    assert_eq!(item["title"]["en"], "24 probes were sent");
    assert_eq!(
        item["measured"],
        json!([{ "column": "sent", "value": 12, "unit": "packets", "op": "ge", "expected": 24, "tolerance": null, "met": false }])
    );
    let evidence = &item["evidence"][0];
    assert_eq!((&evidence["input"], &evidence["file"]), (&json!("ping"), &json!("ping-delay.pcap")));
    assert_eq!(evidence["frames"], json!([1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]));
    assert_eq!((&evidence["filter"], &evidence["has_more"]), (&json!("icmp.type == 8"), &json!(false)));
    let first_time = evidence["first_time"].as_str().unwrap();
    assert!(first_time.ends_with('Z') && first_time.len() == 30, "{first_time}");
    assert_eq!(item["searched"], Value::Null);
}

#[test]
fn what_waits_for_a_failed_check_gets_no_points_and_stays_in_the_total() {
    let report = json_of(&graded(&lab("every-outcome"), &[sample("ping-delay/ping-delay.pcap")], &[("count", "100")]));
    let waiting = item(&report, "probes_answered");
    assert_eq!((&waiting["status"], &waiting["counted"]), (&json!("not_assessable"), &json!("zero")));
    assert_eq!(waiting["needs_review"], false);
    assert_eq!(waiting["reason"]["code"], "depends_on");
    // The title of the other check is filled in.
    assert!(waiting["reason"]["message"]["en"].as_str().unwrap().contains("\"100 probes were sent\""));
    assert_eq!(waiting["searched"], "check probes_sent");
    assert!(waiting["hint"]["en"].as_str().unwrap().contains("\"100 probes were sent\""));
}

#[test]
fn what_waits_for_one_that_waits_for_a_failure_stays_in_the_total_too() {
    let check = |id: &str, depends_on: &str, expected: u8| {
        format!(
            "[[check]]\nid = \"{id}\"\npoints = \"1\"\n{depends_on}not_assessable = \"exclude\"\n\
             sql = \"SELECT count(*) > 0 AS sent FROM ping.probes\"\non_no_rows = \"fail\"\non_null = \"fail\"\n\
             expect = [{{ col = \"sent\", op = \"eq\", value = {expected} }}]\n"
        )
    };
    let rubric = [
        "schema = \"wirelab-rubric/1\"\nid = \"chain\"\nversion = \"1\"\n[input.ping]\nkind = \"capture\"\n".to_owned(),
        check("first", "", 0),
        check("second", "depends_on = [\"first\"]\n", 1),
        check("third", "depends_on = [\"second\"]\n", 1),
    ];
    let words = ["first", "second", "third"]
        .map(|id| format!("[check.{id}]\ntitle = \"{id}\"\npass = \"yes\"\nfail = \"no\"\nhint = \"look\"\n"));
    let words = format!("title = \"Chain\"\nsummary = \"Three.\"\n[input]\nping = \"ping\"\n{}", words.concat());
    let folder = std::env::temp_dir().join(format!("wirelab-chain-{}", std::process::id())).join("chain");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rubric.toml"), rubric.concat()).unwrap();
    for name in ["feedback.en.toml", "feedback.zh.toml"] {
        std::fs::write(folder.join(name), &words).unwrap();
    }
    let lab = wirelab::grade::Lab::read(&folder).unwrap_or_else(|problems| panic!("{problems:?}"));
    let report = json_of(&graded(&lab, &[sample("ping-delay/ping-delay.pcap")], &[]));
    assert_eq!(item(&report, "first")["status"], "fail");
    for id in ["second", "third"] {
        assert_eq!(
            (&item(&report, id)["status"], &item(&report, id)["counted"]),
            (&json!("not_assessable"), &json!("zero"))
        );
    }
    assert_eq!((&report["score"], &report["max_score"]), (&json!("0"), &json!("3")));
    std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
}

#[test]
fn an_optional_input_that_is_missing_leaves_the_total_where_the_lab_says_so() {
    let report = json_of(&graded(&lab("every-outcome"), &[sample("ping-delay/ping-delay.pcap")], &[]));
    let excluded = item(&report, "mss");
    assert_eq!((&excluded["counted"], &excluded["reason"]["code"]), (&json!("excluded"), &json!("optional_input")));
    assert_eq!(excluded["searched"], "tcp: capture *tcp*.pcap");
    // That it need not be handed in is all there is to say.
    assert_eq!(excluded["hint"], Value::Null);
    // The other check without an input counts as nothing, and asks for a look.
    let zero = item(&report, "answer");
    assert_eq!((&zero["counted"], &zero["needs_review"]), (&json!("zero"), &json!(true)));
    assert_eq!((&report["score"], &report["max_score"]), (&json!("4.5"), &json!("4.75")));
    assert_eq!((&report["status"], &report["needs_review"]), (&json!("partial"), &json!(true)));
    assert_eq!(report["review"][0]["check"], "answer");
}

#[test]
fn an_unmet_need_is_the_captures_fault_and_names_its_frames() {
    let report = json_of(&graded(&lab("every-outcome"), &[case("no-handshake")], &[("port", "6000")]));
    let unmet = item(&report, "mss");
    assert_eq!((&unmet["status"], &unmet["reason"]["code"]), (&json!("not_assessable"), &json!("unmet_need")));
    let text = unmet["reason"]["message"]["en"].as_str().unwrap();
    assert!(
        text.contains("capture of the transfer") && text.contains("a TCP handshake") && text.contains("began before")
    );
    assert_eq!(unmet["evidence"][0]["frames"], json!([1]));
    assert_eq!(unmet["evidence"][0]["filter"], "frame.number in {1}");
    assert!(report["capture_quality"].as_array().unwrap().iter().any(|one| one["code"] == "missing_handshake"));
}

#[test]
fn a_need_is_met_where_the_labs_own_connections_have_it() {
    // Without connections of the port, it is the check that says so, not the capture's quality.
    let report = json_of(&graded(&lab("every-outcome"), &[case("no-handshake")], &[("port", "7000")]));
    let item = item(&report, "mss");
    assert_ne!(item["reason"]["code"], "unmet_need", "{item}");
    assert_eq!(item["status"], "fail");
    assert_eq!(item["reason"]["code"], "null");
}

#[test]
fn what_a_cut_capture_lacks_is_no_failure() {
    let report = graded(&lab("every-outcome"), &[case("cut-capture")], &[("count", "3")]);
    let report = json_of(&report);
    let lost = item(&report, "probes_answered");
    assert_eq!((&lost["status"], &lost["reason"]["code"]), (&json!("not_assessable"), &json!("damaged_capture")));
    assert_eq!((&lost["points"], &lost["counted"]), (&json!("0"), &json!("zero")));
    assert_eq!(lost["needs_review"], true);
    // What there is may still pass.
    assert_eq!(item(&report, "probes_sent")["status"], "pass");
    let cut = report["capture_quality"].as_array().unwrap().iter().find(|one| one["code"] == "cut_file").unwrap();
    assert!(cut["message"]["en"].as_str().unwrap().starts_with("ping.pcap ends"), "{cut}");
}

#[test]
fn a_lost_point_without_frames_says_what_was_searched_for() {
    let temporary = tempfile();
    let tcp = sample("tcp-loss/tcp-loss.h1.pcap");
    let folder = folder_of(&temporary, &[("ping.pcap", &tcp)]);
    let report = json_of(&graded(&lab("every-outcome"), &[folder], &[]));
    std::fs::remove_dir_all(temporary).unwrap();
    let lost = item(&report, "probes_sent");
    assert_eq!((&lost["status"], &lost["evidence"][0]["frames"]), (&json!("fail"), &json!([])));
    assert_eq!(lost["searched"], "SELECT frame_no, time FROM ping.probes ORDER BY frame_no");
    assert_eq!(lost["evidence"][0]["filter"], "icmp.type == 8");
}

#[test]
fn braces_of_a_display_filter_hold_the_frames() {
    let report = json_of(&graded(&lab("every-outcome"), &[case("server-mss")], &[("port", "6000"), ("mss", "8960")]));
    let lost = item(&report, "mss");
    let filter = "tcp.port == 5201 && tcp.flags.syn == 1 && frame.number in {1, 2}";
    assert_eq!(lost["evidence"][0]["filter"], filter);
    assert_eq!(lost["evidence"][0]["rows"], json!([{ "frame_no": 1, "mss": 8960 }, { "frame_no": 2, "mss": 1460 }]));
    assert_eq!(lost["message"]["en"], "The server announced 1,460 bytes.");
}

#[test]
fn a_check_that_is_at_fault_itself_costs_nobody_a_crash_and_asks_for_a_look() {
    let report = json_of(&graded(&lab("faulty"), &[sample("ping-delay/ping-delay.pcap")], &[]));
    let told: Vec<_> = ["unknown_column", "endless", "text_for_number", "other_column"]
        .map(|id| {
            let item = item(&report, id);
            assert_eq!((&item["status"], &item["needs_review"]), (&json!("not_assessable"), &json!(true)), "{id}");
            item["reason"]["code"].as_str().unwrap().to_owned()
        })
        .to_vec();
    assert_eq!(told, ["sql_failed", "time_limit", "wrong_type", "sql_failed"]);
    assert_eq!(item(&report, "unknown_column")["counted"], "excluded");
    let fails = item(&report, "evidence_fails");
    assert_eq!((&fails["status"], &fails["needs_review"]), (&json!("fail"), &json!(true)));
    assert_eq!(item(&report, "sound")["status"], "pass");
    assert_eq!((&report["score"], &report["max_score"]), (&json!("1"), &json!("5")));
}

#[test]
fn students_see_visible_checks_and_no_total_that_tells_of_others() {
    let report = graded(&lab("every-outcome"), &[case("no-handshake")], &[]);
    let full = json_of(&report);
    assert_eq!(item(&full, "no_copies")["status"], "pass");
    let student = json_of(&report.for_student());
    assert_eq!(
        (&student["view"], &student["score"], &student["max_score"]),
        (&json!("student"), &Value::Null, &Value::Null)
    );
    assert!(!student.to_string().contains("no_copies") && !student.to_string().contains("No file was handed in twice"));
    let text = wirelab::grade::text(&report.for_student(), Default::default());
    assert!(text.contains("no total") && !text.contains("handed in twice"), "{text}");
    // A lab without hidden checks keeps its total.
    let open = graded(&lab("faulty"), &[sample("ping-delay/ping-delay.pcap")], &[]).for_student();
    assert_eq!(json_of(&open)["max_score"], "5");
}

#[test]
fn a_submission_without_a_readable_file_is_an_error_with_findings_and_no_points() {
    let temporary = tempfile();
    let folder = folder_of(&temporary, &[]);
    std::fs::write(folder.join("notes.docx"), b"").unwrap();
    let report = json_of(&graded(&lab("every-outcome"), &[folder], &[]));
    assert_eq!((&report["score"], &report["status"]), (&json!("0"), &json!("error")));
    assert!(!report["submission"]["findings"].as_array().unwrap().is_empty());
    std::fs::remove_dir_all(temporary).unwrap();
}

#[test]
fn two_files_that_could_be_one_input_are_not_guessed_between() {
    let temporary = tempfile();
    let ping = sample("ping-delay/ping-delay.pcap");
    let tcp = sample("tcp-loss/tcp-loss.h1.pcap");
    let folder = folder_of(&temporary, &[("ping1.pcap", &ping), ("ping2.pcap", &tcp)]);
    let report = json_of(&graded(&lab("every-outcome"), &[folder], &[]));
    let lost = item(&report, "probes_sent");
    assert_eq!(lost["reason"]["code"], "ambiguous_input", "{lost}");
    assert!(lost["reason"]["message"]["en"].as_str().unwrap().contains("ping1.pcap, ping2.pcap"));
    std::fs::remove_dir_all(temporary).unwrap();
}

/// A folder of its own for one test.
fn tempfile() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("wirelab-grade-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
