use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

use super::*;
use crate::observe::Unobserved;
use crate::words::Lang;

const MS: i64 = 1_000_000;
const START_NS: i64 = 1_700_000_000_000_000_000;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

type Packets = Vec<(i64, Vec<u8>)>;

/// A packet of raw IP from the client (port 1000) or the server (port 80).
#[derive(Clone, Copy)]
struct Tcp {
    is_reply: bool,
    seq: u32,
    ack: u32,
    id: u16,
    bytes: usize,
    ttl: u8,
    server: [u8; 4],
}

impl Default for Tcp {
    fn default() -> Self {
        Self { is_reply: false, seq: 0, ack: 0, id: 0, bytes: 0, ttl: 64, server: SERVER }
    }
}

impl Tcp {
    fn packet(&self) -> Vec<u8> {
        let (src, dst, ports) = match self.is_reply {
            false => (CLIENT, self.server, [1000_u16, 80]),
            true => (self.server, CLIENT, [80, 1000]),
        };
        let mut packet = vec![0x45, 0];
        packet.extend((40 + self.bytes as u16).to_be_bytes());
        packet.extend(self.id.to_be_bytes());
        packet.extend([0x40, 0, self.ttl, 6, 0, 0]);
        packet.extend(src);
        packet.extend(dst);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        packet.resize(40 + self.bytes, 0x61);
        packet
    }
}

fn data(number: u32) -> Tcp {
    Tcp { seq: number * 100, id: 500 + number as u16, bytes: 100, ..Tcp::default() }
}

fn reply(number: u32) -> Tcp {
    Tcp { is_reply: true, ack: number * 100, id: 9_000 + number as u16, ..Tcp::default() }
}

fn pcap(packets: &Packets) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for (time_ns, packet) in packets {
        let time_ns = START_NS + time_ns;
        let length = packet.len() as u32;
        for word in [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn compare_with(a: &Packets, b: &Packets, options: &MatchOptions) -> Matches {
    let input = |packets| [Input::Bytes(pcap(packets).into())];
    match_captures(input(a), input(b), options, &mut Unobserved).expect("captures that are read")
}

fn compare(a: &Packets, b: &Packets) -> Matches {
    compare_with(a, b, &MatchOptions::default())
}

/// `a_frame_no b_frame_no status payload_bytes`, with a star for reordered ones.
fn told(matches: &Matches) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in matches.batches(false) {
        let batch = batch.expect("a batch");
        let number = |name: &str, row: usize| {
            let column = batch[name].as_primitive::<UInt64Type>();
            if column.is_null(row) { "-".to_owned() } else { column.value(row).to_string() }
        };
        let bytes = batch["payload_bytes"].as_primitive::<UInt32Type>();
        for row in 0..batch.num_rows() {
            let late = if batch["is_reordered"].as_boolean().value(row) { "*" } else { "" };
            let (a, b, status) = (number("a_frame_no", row), number("b_frame_no", row), word(&batch, "status", row));
            lines.push(format!("{a} {b} {status}{late} {}", bytes.value(row)));
        }
    }
    lines
}

fn word(batch: &RecordBatch, column: &str, row: usize) -> String {
    let column = batch[column].as_dictionary::<Int32Type>();
    column.values().as_string::<i32>().value(column.key(row).expect("a word")).to_owned()
}

/// What is neither delivered nor on time.
fn exceptions(matches: &Matches) -> Vec<String> {
    told(matches).into_iter().filter(|line| !line.contains(" delivered ")).collect()
}

/// Twenty segments one way and as many acknowledgements back; `change` edits what B gets.
fn exchange(offset_ns: i64, change: impl Fn(u32) -> Vec<i64>) -> (Packets, Packets) {
    let (mut a, mut b) = (Packets::new(), Packets::new());
    for number in 0..20 {
        let sent = i64::from(number) * 10 * MS;
        a.push((sent, data(number).packet()));
        for delay in change(number) {
            b.push((offset_ns + sent + delay, data(number).packet()));
        }
        b.push((offset_ns + sent + 6 * MS, reply(number).packet()));
        a.push((sent + 8 * MS, reply(number).packet()));
    }
    for packets in [&mut a, &mut b] {
        packets.sort_by_key(|(time_ns, _)| *time_ns);
    }
    (a, b)
}

#[test]
fn loss_duplication_and_reordering_are_told_whichever_point_comes_first() {
    let (a, b) = exchange(0, |number| match number {
        7 => vec![],
        9 => vec![5 * MS, 5 * MS + 100],
        12 => vec![27 * MS],
        _ => vec![5 * MS],
    });
    let matches = compare(&a, &b);
    let counts = &matches.summary().a_to_b;
    let figures = (counts.sent_count, counts.delivered_count, counts.lost_count, counts.lost_bytes);
    assert_eq!(figures, (20, 19, 1, 100));
    assert_eq!((counts.duplicated_count, counts.reordered_count), (1, 1));
    assert_eq!(
        matches.summary().b_to_a,
        TravelCounts {
            sent_count: 20,
            delivered_count: 20,
            delay: Some(DelayFigures { min_ns: 2 * MS, median_ns: 2 * MS, p99_ns: 2 * MS }),
            ..TravelCounts::default()
        }
    );
    let lines = told(&matches);
    assert_eq!(lines.iter().filter(|line| line.contains('*')).count(), 1, "{lines:?}");
    assert_eq!(exceptions(&matches).len(), 3, "{lines:?}");
    let swapped = compare(&b, &a);
    assert_eq!(swapped.summary().b_to_a, *counts);
    assert_eq!(swapped.summary().a_to_b, matches.summary().b_to_a);
}

#[test]
fn the_clocks_offset_is_estimated_and_bounded_and_delays_stay_raw() {
    let (a, b) = exchange(1_000 * MS, |_| vec![5 * MS]);
    let matches = compare(&a, &b);
    let offset = matches.summary().clock_offset.expect("traffic both ways");
    assert_eq!((offset.low_ns, offset.high_ns), (998 * MS, 1_005 * MS));
    assert_eq!(offset.estimate_ns, 1_001 * MS + MS / 2);
    assert_eq!(matches.summary().a_to_b.delay.map(|delay| delay.min_ns), Some(1_005 * MS));
    let batch = matches.batches(false).next().expect("rows").expect("a batch");
    assert_eq!(batch["delay_above_min_ns"].as_primitive::<Int64Type>().value(0), 0);
    assert!(matches.summary().sentences(Lang::En)[0].contains("not one-way latencies"));
    assert!(matches.summary().sentences(Lang::Zh)[0].contains("不是单向时延"));
}

#[test]
fn what_passed_before_the_other_capture_began_is_outside() {
    let (a, mut b) = exchange(0, |_| vec![5 * MS]);
    b.retain(|(time_ns, _)| *time_ns > 50 * MS);
    let matches = compare(&a, &b);
    let counts = &matches.summary().a_to_b;
    assert_eq!((counts.outside_count, counts.lost_count, counts.sent_count), (5, 0, 15));
    // The acknowledgements of that time, seen at A downstream, were not missed by B's capture either.
    assert_eq!(matches.summary().b_to_a.outside_count, 5);
    assert_eq!(matches.summary().b_to_a.not_captured_count, 0);
}

#[test]
fn what_the_capture_upstream_missed_is_not_captured() {
    let (mut a, b) = exchange(0, |_| vec![5 * MS]);
    a.retain(|(time_ns, _)| *time_ns != 100 * MS);
    let matches = compare(&a, &b);
    let counts = &matches.summary().a_to_b;
    assert_eq!((counts.not_captured_count, counts.sent_count, counts.lost_count), (1, 19, 0));
}

#[test]
fn packets_without_an_identification_are_matched_in_order_and_a_lost_copy_is_the_earlier_one() {
    let plain = |is_reply, seq| Tcp { is_reply, seq, ..Tcp::default() }.packet();
    let mut a: Packets = (0..5).map(|n| (i64::from(n) * 100 * MS, plain(false, n))).collect();
    let mut b: Packets = (0..5).map(|n| (i64::from(n) * 100 * MS + 5 * MS, plain(false, n))).collect();
    b.push((410 * MS, plain(true, 9)));
    a.push((415 * MS, plain(true, 9)));
    // Three equal packets leave, 200 ms apart; the first does not arrive.
    for n in 0..3 {
        a.push((500 * MS + n * 200 * MS, plain(false, 77)));
        if n > 0 {
            b.push((505 * MS + n * 200 * MS, plain(false, 77)));
        }
    }
    a.push((1_000 * MS, plain(false, 99)));
    b.push((1_005 * MS, plain(false, 99)));
    assert_eq!(exceptions(&compare(&a, &b)), ["7 - lost 0"]);
}

#[test]
fn packets_that_nat_rewrote_are_unmatched_and_not_lost() {
    let (mut a, mut b) = exchange(0, |_| vec![5 * MS]);
    let rewritten = |server| Tcp { seq: 5, id: 77, bytes: 10, server, ..Tcp::default() }.packet();
    a.push((300 * MS, rewritten([10, 96, 0, 10])));
    b.push((305 * MS, rewritten([10, 244, 2, 11])));
    a.push((310 * MS, data(30).packet()));
    b.push((315 * MS, data(30).packet()));
    let matches = compare(&a, &b);
    assert_eq!(exceptions(&matches), ["41 - unmatched 10", "- 41 unmatched 10"]);
    assert_eq!(matches.summary().unknown.unmatched_count, 2);
    assert_eq!((matches.summary().a_to_b.lost_count, matches.summary().a_to_b.sent_count), (0, 21));
    assert!(matches.summary().sentences(Lang::En).iter().any(|said| said.contains("NAT")));
}

#[test]
fn a_large_frame_is_matched_with_the_segments_it_became_across_the_wrap() {
    let (mut a, mut b) = exchange(0, |_| vec![5 * MS]);
    let segment = |seq: u32, id, bytes| Tcp { seq, id, bytes, ..Tcp::default() }.packet();
    let base = u32::MAX - 1_999;
    // Two frames of 4,344 bytes, cut into three segments each; the middle one of the second is lost and sent again.
    for (at, frame) in [(300 * MS, 0_u32), (301 * MS, 1)] {
        a.push((at, segment(base.wrapping_add(frame * 4_344), 700 + 3 * frame as u16, 4_344)));
        for part in (0..3).filter(|part| (frame, *part) != (1, 1)) {
            let seq = base.wrapping_add(frame * 4_344 + part * 1_448);
            b.push((at + 5 * MS + i64::from(part), segment(seq, (700 + 3 * frame + part) as u16, 1_448)));
        }
    }
    let again = segment(base.wrapping_add(4_344 + 1_448), 706, 1_448);
    a.push((330 * MS, again.clone()));
    b.push((335 * MS, again));
    a.push((340 * MS, data(30).packet()));
    b.push((345 * MS, data(30).packet()));
    let matches = compare(&a, &b);
    assert_eq!(
        exceptions(&matches),
        [
            "41 41 resegmented 1448",
            "41 42 resegmented 1448",
            "41 43 resegmented 1448",
            "42 44 resegmented 1448",
            "42 45 resegmented 1448",
            "42 - lost 1448",
        ]
    );
    let counts = &matches.summary().a_to_b;
    assert_eq!((counts.resegmented_count, counts.lost_count, counts.lost_bytes), (2, 0, 1_448));
    assert_eq!((counts.not_captured_count, counts.reordered_count), (0, 0));
}

#[test]
fn segments_that_were_merged_on_the_way_are_matched_with_the_large_frame() {
    let (mut a, mut b) = exchange(0, |_| vec![5 * MS]);
    let segment = |seq, id, bytes| Tcp { is_reply: true, seq, id, bytes, ..Tcp::default() }.packet();
    // From the server: B is upstream.
    for part in 0..3_u32 {
        b.push((300 * MS + i64::from(part), segment(1_000 + part * 500, 9_100 + part as u16, 500)));
    }
    a.push((305 * MS, segment(1_000, 9_100, 1_500)));
    b.push((310 * MS, reply(200).packet()));
    a.push((315 * MS, reply(200).packet()));
    let matches = compare(&a, &b);
    assert_eq!(exceptions(&matches), ["41 41 resegmented 500", "41 42 resegmented 500", "41 43 resegmented 500"]);
    assert_eq!(matches.summary().b_to_a.resegmented_count, 3);
    assert_eq!(matches.summary().b_to_a.lost_bytes, 0);
}

#[test]
fn a_packet_that_was_fragmented_on_the_way_is_matched_with_its_fragments() {
    let (mut a, mut b) = exchange(0, |_| vec![5 * MS]);
    // UDP, 3,000 bytes after the IP header.
    let udp = |offset: u16, has_more: bool, bytes: u16| {
        let mut packet = vec![0x45, 0];
        packet.extend((20 + bytes).to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(((offset / 8) | if has_more { 0x2000 } else { 0 }).to_be_bytes());
        packet.extend([64, 17, 0, 0]);
        packet.extend(CLIENT.iter().chain(&SERVER));
        if offset == 0 {
            packet.extend([0x20, 0, 0x20, 1, 0x0b, 0xb8, 0, 0]);
        }
        packet.resize(20 + usize::from(bytes), 7);
        packet
    };
    a.push((300 * MS, udp(0, false, 3_000)));
    b.push((305 * MS, udp(0, true, 1_480)));
    // The second fragment is lost.
    b.push((306 * MS, udp(2_960, false, 40)));
    a.push((310 * MS, data(30).packet()));
    b.push((315 * MS, data(30).packet()));
    let pieces = exceptions(&compare(&a, &b));
    assert_eq!(pieces, ["41 41 resegmented 1480", "41 42 resegmented 40", "41 - lost 1480"]);
}

#[test]
fn one_direction_alone_does_not_tell_which_point_comes_first() {
    let (mut a, mut b) = exchange(0, |number| if number == 7 { vec![] } else { vec![5 * MS] });
    for packets in [&mut a, &mut b] {
        packets.retain(|(_, packet)| packet[20..22] == 1_000_u16.to_be_bytes());
    }
    let matches = compare(&a, &b);
    assert_eq!(matches.summary().unknown.delivered_count, 19);
    assert_eq!((matches.summary().unknown.unmatched_count, matches.summary().clock_offset), (1, None));
    assert!(matches.summary().sentences(Lang::En).iter().any(|said| said.contains("direction")));
    let same_clock = MatchOptions { is_same_clock: true, ..MatchOptions::default() };
    assert_eq!(compare_with(&a, &b, &same_clock).summary().a_to_b.lost_count, 1);
}

#[test]
fn a_router_between_the_points_tells_the_direction_of_one_way_traffic() {
    let a: Packets = (0..20).map(|n| (i64::from(n) * MS, data(n).packet())).collect();
    // By clocks that are an hour apart the packets arrive before they were sent.
    let late = |n: u32| (i64::from(n) * MS - 3_600_000 * MS, Tcp { ttl: 63, ..data(n) }.packet());
    let b: Packets = (0..20).filter(|n| *n != 11).map(late).collect();
    let counts = &compare(&a, &b).summary().a_to_b.clone();
    assert_eq!((counts.sent_count, counts.lost_count), (20, 1));
}

#[test]
fn neighbours_that_the_capture_upstream_swapped_were_not_reordered_by_the_network() {
    let (mut a, b) = exchange(0, |_| vec![5 * MS]);
    let at = a.iter().position(|(time_ns, _)| *time_ns == 100 * MS).expect("a packet");
    let next = a.iter().position(|(time_ns, _)| *time_ns == 110 * MS).expect("a packet");
    let packet = std::mem::take(&mut a[at].1);
    a[at].1 = std::mem::replace(&mut a[next].1, packet);
    assert_eq!(compare(&a, &b).summary().a_to_b.reordered_count, 0);
}

#[test]
fn a_packet_damaged_on_the_way_is_delivered() {
    let (a, mut b) = exchange(0, |_| vec![5 * MS]);
    let (_, damaged) = b.iter_mut().find(|(time_ns, _)| *time_ns == 105 * MS).expect("a packet");
    // A bit of the sequence number.
    damaged[26] ^= 0x10;
    assert_eq!(exceptions(&compare(&a, &b)), Vec::<String>::new());
}

#[test]
fn the_same_packet_before_and_after_a_router_in_one_capture_counts_once() {
    let (a, mut b) = exchange(0, |_| vec![5 * MS]);
    let hops: Packets = b
        .iter()
        .map(|(time_ns, packet)| {
            let mut packet = packet.clone();
            packet[8] -= 1;
            (time_ns + 10, packet)
        })
        .collect();
    b.extend(hops);
    b.sort_by_key(|(time_ns, _)| *time_ns);
    let matches = compare(&a, &b);
    assert_eq!((matches.summary().b.copies, matches.summary().a_to_b.duplicated_count), (40, 0));
    assert_eq!(exceptions(&matches), Vec::<String>::new());
}

#[test]
fn a_capture_beyond_the_limit_counts_as_ended_and_that_is_said() {
    let (a, b) = exchange(0, |_| vec![5 * MS]);
    let options = MatchOptions { packets: 20, ..MatchOptions::default() };
    let matches = compare_with(&a, &b, &options);
    assert!(matches.summary().a.is_cut && matches.summary().b.is_cut);
    assert_eq!(matches.summary().a_to_b.lost_count, 0);
    assert!(matches.summary().sentences(Lang::En)[0].contains("limit"));
}

#[test]
fn captures_of_different_traffic_have_nothing_in_common_and_say_so() {
    let (a, _) = exchange(0, |_| vec![5 * MS]);
    let other = Tcp { server: [10, 9, 9, 9], ..Tcp::default() }.packet();
    let matches = compare(&a, &vec![(0, other)]);
    assert_eq!(matches.summary().unknown.unmatched_count, 41);
    assert_eq!(matches.summary().sentences(Lang::En).len(), 1);
    assert_eq!(matches.batches(true).map(|batch| batch.expect("a batch").num_rows()).sum::<usize>(), 41);
    assert!(compare(&Packets::new(), &Packets::new()).batches(false).next().is_none());
}
