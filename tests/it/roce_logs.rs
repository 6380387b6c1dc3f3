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
