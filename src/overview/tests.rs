use super::*;
use crate::observe::Unobserved;

fn sample(path: &str) -> String {
    format!("{}/sample-captures/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn overview_of(path: &str) -> Overview {
    overview([sample(path).as_str()], &Options::default(), &mut Unobserved).expect("a sample that is read")
}

#[test]
fn an_overview_counts_what_the_tables_hold() {
    let path = sample("roce-verbs/roce-verbs.pcap");
    let seen = overview_of("roce-verbs/roce-verbs.pcap");
    let capture = crate::open([path.as_str()], &Options::default()).expect("a sample that opens");
    let roce = capture.table(TableId::Roce).expect("a table");
    assert!(seen.roce.packets > 0);
    assert_eq!(seen.roce.packets, roce.num_rows() as u64);
    assert_eq!(seen.roce.opcodes.iter().map(|(_, _, count)| count).sum::<u64>(), seen.roce.packets);
    assert_eq!(seen.summary.frames, capture.summary().expect("a summary").frames);
    assert_eq!(seen.timeline.bins().iter().sum::<u64>(), seen.summary.original_bytes);
}

#[test]
fn the_largest_connections_come_first() {
    let seen = overview_of("vxlan-kubernetes/vxlan-kubernetes.node.pcap");
    let bytes: Vec<_> = seen
        .top_connections
        .batches
        .iter()
        .map(|batch| {
            let of = |column: &str| batch[column].as_primitive::<UInt64Type>().value(0);
            of("client_bytes") + of("server_bytes")
        })
        .collect();
    assert_eq!(bytes.len() as u64, seen.connection_count.min(10));
    assert!(bytes.len() > 1 && bytes.is_sorted_by(|a, b| a >= b), "{bytes:?}");
    assert!(seen.tunnels.iter().any(|((kind, _), counts)| kind == "VXLAN" && counts.packets > 0));
}

#[test]
fn failures_come_first_with_their_queue_pairs_and_the_longest_of_each_kind_is_shown() {
    let seen = overview_of("roce-verbs/roce-verbs.pcap");
    let told: Vec<_> = seen
        .roce
        .happenings
        .iter()
        .map(|one| {
            let kinds = Words::new(&one.longest["kind"]);
            (kinds.get(0).unwrap_or("?").to_owned(), one.outcome.name(), one.events, one.queue_pairs.len())
        })
        .collect();
    let expected = [
        ("unanswered", "failed", 1, 1),
        ("rnr", "failed", 1, 1),
        ("nak", "failed", 3, 3),
        ("nak", "failed", 1, 1),
        ("rnr", "settled", 1, 1),
    ];
    assert_eq!(told, expected.map(|(kind, outcome, events, pairs)| (kind.to_owned(), outcome, events, pairs)));
    let numbers: Vec<_> = seen.roce.happenings[2].queue_pairs.iter().map(|pair| pair.responder_qp).collect();
    assert_eq!(numbers, [Some(0x18), Some(0x19), Some(0x1a)]);
    let seen = overview_of("roce-loss/roce-loss.requester.pcap");
    let first = &seen.roce.happenings[0];
    assert_eq!(first.longest["duration_ns"].as_primitive::<Int64Type>().value(0), first.longest_ns);
    assert_eq!((first.events, Words::new(&first.longest["end_reason"]).get(0)), (2, Some("timeout")));
    // Three queue pairs that send data, two for the connection manager; the finding and the table say the same.
    assert_eq!((seen.roce.queue_pair_count, seen.roce.management_count), (3, 2));
    assert_eq!(seen.roce.top_queue_pairs.len(), 3);
}

#[test]
fn reordering_and_packets_that_were_too_big_are_counted() {
    let seen = overview_of("tcp-reorder/tcp-reorder.pcap");
    assert_eq!((seen.reordered.segments, seen.reordered.connections), (427, 2));
    let seen = overview_of("vxlan-mtu-mismatch/vxlan-mtu-mismatch.node.pcap");
    let said: Vec<_> = seen.too_big.iter().map(|(said, count)| (said.by.as_str(), said.mtu, *count)).collect();
    assert!(!said.is_empty() && said.iter().all(|(_, mtu, _)| *mtu == Some(1450)), "{said:?}");
    let asked: Vec<_> = seen.too_big.iter().map(|(said, _)| (said.src_ip.as_str(), said.dst_ip.as_str())).collect();
    assert!(asked.contains(&("10.244.1.10", "10.244.2.11")), "{asked:?}");
    assert_eq!(overview_of("ping-delay/ping-delay.pcap").too_big.iter().count(), 0);
}

#[test]
fn probes_are_counted_by_who_asked_whom() {
    let seen = overview_of("ping-delay/ping-delay.pcap");
    let counts: Vec<_> = seen.probes.iter().map(|(_, counts)| counts.clone()).collect();
    assert_eq!(counts.iter().map(|counts| counts.sent_count).sum::<u64>(), 12);
    assert!(
        counts
            .iter()
            .all(|counts| counts.rtt.min_ns <= counts.rtt.mean_ns() && counts.rtt.mean_ns() <= counts.rtt.max_ns)
    );
}

#[test]
fn dns_queries_are_counted_by_question_and_udp_flows_by_bytes() {
    let seen = overview_of("vxlan-kubernetes/vxlan-kubernetes.pod.pcap");
    let asked = |name: &str, record_type: &str| {
        let is_it = |question: &DnsQuestion| {
            (question.name.as_deref(), question.record_type.as_deref()) == (Some(name), Some(record_type))
        };
        let (question, counts) = seen.dns.questions.iter().find(|(question, _)| is_it(question)).unwrap();
        assert_eq!(question.server_ip, "10.96.0.2");
        (counts.query_count, counts.unanswered_count, counts.failures.clone())
    };
    assert_eq!(asked("web.default.svc.cluster.local", "A"), (24, 0, [].into()));
    assert_eq!(asked("web.default.svc.cluster.local", "AAAA"), (24, 0, [("NXDOMAIN".to_owned(), 24)].into()));
    assert_eq!((seen.dns.questions.len(), seen.dns.question_count, seen.dns.total.query_count), (10, 10, 56));
    assert_eq!((seen.dns.left_out, seen.dns.silent_servers.len()), (0, 0));
    assert_eq!((seen.udp_flow_count, seen.top_udp_flows.len()), (0, 0), "DNS is told apart");
    let seen = overview_of("udp-loss/udp-loss.pcap");
    assert_eq!((seen.udp_flow_count, seen.top_udp_flows.len(), seen.dns.questions.len()), (1, 1, 0));
}
