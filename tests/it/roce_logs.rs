//! Queue pairs that a log of perftest beside the capture names.

use wirelab::logs::{self, LogError, LogKind};
use wirelab::wire::Ip;
use wirelab::{Input, Options, RoceEndpoint, ScanRequest, TableId};

use crate::support::cells::{self, Value};
use crate::support::{crate_root, outside_folder, tables, with_threads};

fn log(name: &str) -> Vec<u8> {
    std::fs::read(crate_root().join("tests/data/logs").join(name)).unwrap()
}

#[test]
fn both_ends_of_each_queue_pair_are_named_with_keys_and_peers() {
    let ends = logs::roce_endpoints(&log("perftest_4qp.txt")).unwrap();
    assert_eq!(ends.len(), 8);
    for pair in ends.chunks(2) {
        assert_eq!((pair[0].peer_qpn, pair[1].peer_qpn), (Some(pair[1].qpn), Some(pair[0].qpn)));
        assert!(pair[0].ip != pair[1].ip && !pair[0].ip.is_none(), "{pair:?}");
        assert!(pair[0].rkey.is_some() && pair[0].vaddr.is_some());
    }
    let wrong = logs::roce_endpoints(&log("ping_q.txt")).unwrap_err();
    assert_eq!(wrong, LogError::NotThisKind { kind: LogKind::Perftest, looks_like: Some(LogKind::Ping) });
    assert_eq!(logs::roce_endpoints(b" \n").unwrap_err(), LogError::Empty);
    // InfiniBand has no addresses that a capture would show.
    let local = " local address: LID 0x01 QPN 0x0012 PSN 0x482e42\n remote address: LID 0x02 QPN 0x0013 PSN 0x1\n";
    let infiniband = format!("                    RDMA_Write BW Test\n{local}");
    assert_eq!(logs::roce_endpoints(infiniband.as_bytes()), Ok(vec![]));
}

#[test]
fn lab_captures_without_the_connection_manager_are_paired_by_their_logs() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let (mut paired, mut compared) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("roce_") || path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let truth: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let Some(text) = truth["truth"]["client_out"].as_str() else { continue };
        let Ok(endpoints) = logs::roce_endpoints(text.as_bytes()) else { continue };
        for host in ["vm0", "vm1"] {
            let of = |options: &Options| {
                let inputs = vec![Input::Path(folder.join(format!("{name}.{host}.pcap")))];
                let qps = tables(inputs, options, &[ScanRequest::new(TableId::RoceQps)]).unwrap().remove(0);
                let shown = |cell: &Value| match cell {
                    Value::Text(text) => text.clone(),
                    Value::Int(number) => number.to_string(),
                    _ => String::new(),
                };
                let columns = ["requester_ip", "requester_qp", "responder_qp", "paired_by"];
                columns.map(|name| cells::column(&qps.batches, name).iter().map(shown).collect::<Vec<_>>())
            };
            let without = of(&with_threads(1));
            let with = of(&Options { roce_endpoints: endpoints.clone(), ..with_threads(1) });
            for row in 0..with[0].len() {
                if with[3][row] != "perftest" {
                    assert_eq!(with[1][row], without[1][row], "{name}.{host}");
                    continue;
                }
                paired += 1;
                let is_named = |end: &RoceEndpoint| {
                    end.ip.to_string() == with[0][row]
                        && end.qpn.to_string() == with[1][row]
                        && end.peer_qpn.map(|number| number.to_string()) == Some(with[2][row].clone())
                };
                assert!(endpoints.iter().any(is_named), "{name}.{host} {row}");
                // What acknowledgements told for themselves, the log confirms.
                if without[3][row] == "psn" {
                    compared += 1;
                    assert_eq!(with[1][row], without[1][row], "{name}.{host} {row}");
                }
            }
        }
    }
    println!("{paired} queue pairs by log, {compared} of them also by acknowledgements");
    assert!(paired > 0);
}

/// Queue pairs keep their numbers from run to run more often than not; where they start to count changes.
#[test]
fn a_log_of_another_run_with_the_same_queue_pairs_pairs_nothing() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let truth = std::fs::read(folder.join("roce_write_4qp.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
    let ends = logs::roce_endpoints(truth["truth"]["client_out"].as_str().unwrap().as_bytes()).unwrap();
    let paired = |by: u32, has_peers: bool| {
        let moved = |end: &RoceEndpoint| RoceEndpoint {
            psn: end.psn.wrapping_add(by) & 0x00ff_ffff,
            peer_qpn: end.peer_qpn.filter(|_| has_peers),
            ..*end
        };
        let options = Options { roce_endpoints: ends.iter().map(moved).collect(), ..with_threads(1) };
        let inputs = vec![Input::Path(folder.join("roce_write_4qp.vm0.pcap"))];
        let qps = tables(inputs, &options, &[ScanRequest::new(TableId::RoceQps)]).unwrap().remove(0);
        let by = cells::column(&qps.batches, "paired_by");
        by.iter().filter(|by| **by == Value::Text("perftest".to_owned())).count()
    };
    assert!(paired(0, true) >= 4);
    for has_peers in [true, false] {
        for by in [1_500_000, 0x00ff_fc00, 5_000, 9_000_000] {
            assert_eq!(paired(by, has_peers), 0, "{by}");
        }
    }
}

#[test]
fn a_log_of_another_run_pairs_nothing() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let end = |host, qpn, psn| RoceEndpoint {
        ip: Ip::v4([10, 77, 0, host]),
        qpn,
        psn,
        rkey: None,
        vaddr: None,
        peer_qpn: None,
    };
    let inputs = vec![Input::Path(folder.join("roce_send_uc.vm0.pcap"))];
    let options = Options { roce_endpoints: vec![end(1, 1, 1), end(2, 2, 2)], ..with_threads(1) };
    let qps = tables(inputs, &options, &[ScanRequest::new(TableId::RoceQps)]).unwrap().remove(0);
    let by = cells::column(&qps.batches, "paired_by");
    assert!(!by.is_empty() && !by.contains(&Value::Text("perftest".to_owned())));
}

#[test]
fn a_perftest_log_in_a_submission_pairs_the_queue_pairs_of_its_capture() {
    use wirelab::grade::{GradeOptions, Lab, grade, read_submission, submission::SubmissionLimits};

    let capture = crate_root().join("sample-captures/roce-pfc/roce-pfc.pcap");
    let of = |table, name| {
        let inputs = vec![Input::Path(capture.clone())];
        let found = tables(inputs, &with_threads(1), &[ScanRequest::new(table)]).unwrap().remove(0);
        cells::column(&found.batches, name)[0].clone()
    };
    let number = |table, name| of(table, name).int().unwrap();
    let (own, peer) = (number(TableId::RoceQps, "requester_qp"), number(TableId::RoceQps, "responder_qp"));
    let psn = number(TableId::Roce, "psn");
    assert_eq!(of(TableId::RoceQps, "requester_ip").text(), Some("10.77.0.1"));
    let gid = |host| format!(" GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:77:00:{host:02}\n");
    let log = format!(
        "                    RDMA_Write BW Test\n Number of qps   : 1\n local address: LID 0000 QPN 0x{own:04x} PSN 0x{psn:06x}\n{}\
          remote address: LID 0000 QPN 0x{peer:04x} PSN 0x000007\n{}",
        gid(1),
        gid(2)
    );
    let scratch = std::env::temp_dir().join(format!("wirelab-roce-log-{}", std::process::id()));
    let (lab, handed_in) = (scratch.join("pairs"), scratch.join("submission"));
    std::fs::create_dir_all(&lab).unwrap();
    std::fs::create_dir_all(&handed_in).unwrap();
    let rubric = "schema = \"wirelab-rubric/1\"\nid = \"pairs\"\nversion = \"1\"\n[input.run]\nkind = \"capture\"\n\
                  [input.log]\nkind = \"perftest\"\nrequired = false\n\
                  [[check]]\nid = \"paired\"\npoints = \"1\"\nsql = \"SELECT paired_by FROM run.roce_qps\"\n\
                  on_no_rows = \"fail\"\non_null = \"fail\"\n\
                  expect = [{ col = \"paired_by\", op = \"eq\", value = \"perftest\" }]\n";
    std::fs::write(lab.join("rubric.toml"), rubric).unwrap();
    let words = "title = \"Pairs\"\nsummary = \"One.\"\n[input]\nrun = \"run\"\nlog = \"log\"\n\
                 [check.paired]\ntitle = \"paired\"\npass = \"yes\"\nfail = \"no\"\nhint = \"look\"\n";
    for name in ["feedback.en.toml", "feedback.zh.toml"] {
        std::fs::write(lab.join(name), words).unwrap();
    }
    let lab = Lab::read(&lab).unwrap_or_else(|problems| panic!("{problems:?}"));
    let status = || {
        let submission =
            read_submission(std::slice::from_ref(&handed_in), &SubmissionLimits::default(), &mut wirelab::Unobserved)
                .unwrap();
        let report = grade(&lab, &submission, &GradeOptions::default(), &mut wirelab::Unobserved).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        report["items"][0]["status"].as_str().unwrap().to_owned()
    };
    std::fs::copy(&capture, handed_in.join("run.pcap")).unwrap();
    assert_eq!(status(), "fail");
    std::fs::write(handed_in.join("ib_write_bw.txt"), log).unwrap();
    assert_eq!(status(), "pass");
    std::fs::remove_dir_all(scratch).unwrap();
}
