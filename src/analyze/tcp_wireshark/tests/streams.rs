//! Where a stream begins and what a SYN does to it.

use super::*;
use crate::analyze::tcp_wireshark::{WsFlags, starts_new_stream};

#[test]
fn a_bare_syn_with_another_number_starts_a_new_stream() {
    let talk = Talk::after_handshake(1000);
    assert!(starts_new_stream(&talk.stream, &talk.segment(CLIENT, 777, 0, SYN)));
    assert!(!starts_new_stream(&talk.stream, &talk.segment(CLIENT, 100, 0, SYN)));
    assert!(!starts_new_stream(&talk.stream, &talk.segment(CLIENT, 777, 501, SYN | ACK)));
    assert!(!starts_new_stream(&talk.stream, &talk.segment(CLIENT, 777, 501, ACK)));
    assert!(!starts_new_stream(&WsStream::default(), &talk.segment(CLIENT, 777, 0, SYN)));
}

#[test]
fn a_syn_after_a_tail_without_handshake_starts_a_new_stream() {
    let mut talk = Talk::without_handshake();
    talk.data(CLIENT, 101, 501, 10);
    assert!(starts_new_stream(&talk.stream, &talk.segment(CLIENT, 777, 0, SYN)));
    // The tail's numbering starts one below its first segment; a SYN there would be its own.
    assert!(!starts_new_stream(&talk.stream, &talk.segment(CLIENT, 100, 0, SYN)));
    // The server never spoke, but the client's ACK gave its number away.
    assert!(starts_new_stream(&talk.stream, &talk.segment(SERVER, 777, 0, SYN)));
    assert!(!starts_new_stream(&talk.stream, &talk.segment(SERVER, 500, 0, SYN)));
}

#[test]
fn only_the_first_segment_on_reused_ports_says_so() {
    let mut talk = Talk { stream: WsStream::on_reused_ports(), ..Talk::without_handshake() };
    assert_eq!(talk.hear(talk.segment(CLIENT, 777, 0, SYN)).flags, WsFlags::REUSED_PORTS);
    assert_eq!(talk.hear(talk.segment(SERVER, 888, 778, SYN | ACK)).flags, WsFlags::NONE);
}

#[test]
fn a_syn_ack_with_another_number_stays_and_restarts_the_numbering() {
    let mut talk = Talk::after_handshake(1000);
    let row = talk.hear(talk.segment(SERVER, 900, 101, SYN | ACK));
    assert!(row.flags.contains(WsFlags::REUSED_PORTS));
    assert_eq!(row.relative_seq, 0);
    assert_eq!(talk.ack(CLIENT, 101, 901).relative_ack, 1);
}

#[test]
fn a_syn_with_the_old_number_rewinds_its_sender_to_the_first_hole() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 301, 501, 100);
    assert_eq!(talk.hear(talk.segment(CLIENT, 100, 0, SYN)).flags, WsFlags::OUT_OF_ORDER);
    assert_eq!(talk.data(CLIENT, 401, 501, 100).flags, WsFlags::LOST_SEGMENT);
}

#[test]
fn a_quoted_syn_opens_a_stream_of_its_own_and_times_the_handshake() {
    let mut talk = Talk { stream: WsStream::on_reused_ports(), ..Talk::without_handshake() };
    let quoted = |talk: &Talk, flags| Segment { time_ns: talk.time_ns, ..talk.segment(CLIENT, 777, 0, flags) };
    let syn = quoted(&talk, SYN);
    assert_eq!(talk.stream.on_quoted_segment(&syn), WsFlags::REUSED_PORTS);
    assert_eq!(talk.stream.on_quoted_segment(&syn), WsFlags::NONE);
    // It leaves the numbering open: any number may follow.
    assert!(!starts_new_stream(&talk.stream, &talk.segment(CLIENT, 999, 0, SYN)));
    let first = talk.data(CLIENT, 101, 501, 100);
    assert_eq!(first.initial_rtt_ns, Some(10_000));
}

#[test]
fn a_quoted_syn_ack_restarts_the_numbering() {
    let mut talk = Talk::after_handshake(1000);
    let quoted = talk.segment(SERVER, 900, 101, SYN | ACK);
    assert_eq!(talk.stream.on_quoted_segment(&quoted), WsFlags::REUSED_PORTS);
    assert_eq!(talk.stream.on_quoted_segment(&quoted), WsFlags::NONE);
    assert_eq!(talk.ack(SERVER, 901, 101).relative_seq, 1);
}

#[test]
fn a_quiet_stream_is_small() {
    let mut talk = Talk::after_handshake(1000);
    for index in 0..1000 {
        talk.data(CLIENT, 101 + index * 100, 501, 100);
    }
    talk.ack(SERVER, 501, 101 + 1000 * 100);
    talk.stream.compact();
    assert!(size_of::<WsStream>() + talk.stream.heap_bytes() <= 240);
}
