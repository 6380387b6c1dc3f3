//! The numbers beside the flags.

use super::*;
use crate::analyze::tcp_wireshark::WsFlags;

#[test]
fn numbers_are_relative_to_the_syn_of_each_side() {
    let mut talk = Talk::without_handshake();
    let syn = talk.hear(talk.segment(CLIENT, 100, 77, SYN));
    assert_eq!((syn.relative_seq, syn.relative_ack), (0, 77));
    let syn_ack = talk.hear(talk.segment(SERVER, 500, 101, SYN | ACK));
    assert_eq!((syn_ack.relative_seq, syn_ack.relative_ack), (0, 1));
    let data = talk.data(CLIENT, 101, 501, 10);
    assert_eq!((data.relative_seq, data.relative_ack), (1, 1));
}

#[test]
fn without_a_syn_the_first_segment_shows_1_and_1() {
    let mut talk = Talk::without_handshake();
    let row = talk.data(CLIENT, 5000, 6000, 10);
    assert_eq!((row.relative_seq, row.relative_ack), (1, 1));
    let row = talk.data(SERVER, 6000, 5010, 10);
    assert_eq!((row.relative_seq, row.relative_ack), (1, 11));
    // Before the first number seen: the relative number wraps.
    assert_eq!(talk.data(CLIENT, 4990, 6010, 10).relative_seq, 0xffff_fff7);
}

#[test]
fn an_ack_field_without_the_ack_bit_is_shown_raw() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.hear(talk.segment(CLIENT, 101, 501, RST)).relative_ack, 501);
}

#[test]
fn the_window_is_scaled_from_the_handshake_on() {
    let mut talk = Talk::without_handshake();
    let syn = talk.hear(Segment { wscale: Some(7), ..talk.segment(CLIENT, 100, 0, SYN) });
    assert_eq!((syn.window_bytes, syn.window_shown), (Some(1000), 1000));
    talk.hear(Segment { wscale: Some(20), ..talk.segment(SERVER, 500, 101, SYN | ACK) });
    assert_eq!(talk.ack(CLIENT, 101, 501).window_bytes, Some(128_000));
    assert_eq!(talk.ack(SERVER, 501, 101).window_bytes, Some(1000 << 14));
    assert_eq!(talk.hear(talk.segment(CLIENT, 100, 0, SYN)).window_bytes, Some(1000));
}

#[test]
fn a_window_of_unknown_scale_is_shown_raw_and_has_no_bytes() {
    let row = Talk::without_handshake().ack(CLIENT, 101, 501);
    assert_eq!((row.window_bytes, row.window_shown), (None, 1000));
}

#[test]
fn scaling_needs_the_option_from_both_sides() {
    for (client, server) in [(None, Some(7)), (None, None)] {
        let mut talk = Talk::without_handshake();
        talk.hear(Segment { wscale: client, ..talk.segment(CLIENT, 100, 0, SYN) });
        talk.hear(Segment { wscale: server, ..talk.segment(SERVER, 500, 101, SYN | ACK) });
        assert_eq!(talk.ack(CLIENT, 101, 501).window_bytes, Some(1000));
        assert_eq!(talk.ack(SERVER, 501, 101).window_bytes, Some(1000));
    }
    // The other way round Wireshark goes on scaling the client's windows.
    let mut talk = Talk::without_handshake();
    talk.hear(Segment { wscale: Some(7), ..talk.segment(CLIENT, 100, 0, SYN) });
    talk.hear(talk.segment(SERVER, 500, 101, SYN | ACK));
    assert_eq!(talk.ack(CLIENT, 101, 501).window_bytes, Some(1000));
}

#[test]
fn bytes_in_flight_grow_with_data_and_shrink_with_acks() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).bytes_in_flight, Some(100));
    assert_eq!(talk.data(CLIENT, 201, 501, 100).bytes_in_flight, Some(200));
    assert_eq!(talk.ack(CLIENT, 301, 501).bytes_in_flight, None);
    talk.ack(SERVER, 501, 151);
    assert_eq!(talk.data(CLIENT, 301, 501, 100).bytes_in_flight, Some(250));
}

#[test]
fn the_fin_of_this_segment_is_no_byte_in_flight_but_an_earlier_one_is() {
    let mut talk = Talk::after_handshake(1000);
    let fin = Segment { payload_bytes: 50, ..talk.segment(CLIENT, 101, 501, FIN | ACK) };
    assert_eq!(talk.hear(fin).bytes_in_flight, Some(50));
    assert_eq!(talk.data(CLIENT, 101, 501, 50).bytes_in_flight, Some(51));
}

#[test]
fn the_last_sack_blocks_are_taken_off_up_to_three_of_them() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 1000);
    let blocks = [(201, 301), (401, 451), (501, 551), (601, 701)];
    for (count, expected) in [(1, 910), (2, 870), (3, 830), (4, 840)] {
        talk.hear(Segment { sack: &blocks[..count], ..talk.segment(SERVER, 501, 101, ACK) });
        let seq = 1091 + count as u32 * 10;
        assert_eq!(talk.data(CLIENT, seq, 501, 10).bytes_in_flight, Some(expected));
    }
    talk.ack(SERVER, 501, 101);
    assert_eq!(talk.data(CLIENT, 1141, 501, 10).bytes_in_flight, Some(1050));
}

#[test]
fn a_count_that_sack_drives_to_zero_or_below_is_not_shown() {
    for (right, expected) in [(200, Some(1)), (201, None), (202, None), (1_500_000_000, None)] {
        let mut talk = Talk::after_handshake(1000);
        talk.hear(Segment { sack: &[(101, right)], ..talk.segment(SERVER, 501, 101, ACK) });
        assert_eq!(talk.data(CLIENT, 101, 501, 100).bytes_in_flight, expected);
    }
}

#[test]
fn after_a_gap_nothing_is_in_flight_until_the_peer_acknowledges() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.data(CLIENT, 201, 501, 100).bytes_in_flight, None);
    assert_eq!(talk.data(CLIENT, 301, 501, 100).bytes_in_flight, None);
    talk.hear(Segment { payload_bytes: 5, ..talk.segment(SERVER, 501, 0, 0) });
    assert_eq!(talk.data(CLIENT, 401, 501, 100).bytes_in_flight, None);
    talk.ack(SERVER, 506, 101);
    assert_eq!(talk.data(CLIENT, 501, 501, 100).bytes_in_flight, Some(400));
}

#[test]
fn an_ack_is_timed_against_the_segment_that_ends_there() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 201, 501, 100);
    let row = talk.ack(SERVER, 501, 301);
    assert_eq!((row.acks_frame, row.ack_rtt_ns), (Some(5), Some(10_000)));
    assert_eq!(talk.ack(SERVER, 501, 301).ack_rtt_ns, None);
}

#[test]
fn a_round_trip_of_no_time_names_the_frame_only() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.wait_us(-10);
    let row = talk.ack(SERVER, 501, 201);
    assert_eq!((row.acks_frame, row.ack_rtt_ns), (Some(4), None));
    talk.data(CLIENT, 201, 501, 100);
    talk.wait_us(-15);
    assert_eq!(talk.ack(SERVER, 501, 301).ack_rtt_ns, Some(-5_000));
}

#[test]
fn the_handshake_time_shows_where_there_is_something_to_say() {
    let mut talk = Talk::without_handshake();
    assert_eq!(talk.hear(talk.segment(CLIENT, 100, 0, SYN)).initial_rtt_ns, None);
    talk.wait_us(500);
    assert_eq!(talk.hear(talk.segment(SERVER, 500, 101, SYN | ACK)).initial_rtt_ns, None);
    assert_eq!(talk.ack(CLIENT, 101, 501).initial_rtt_ns, Some(520_000));
    assert_eq!(talk.data(CLIENT, 101, 501, 10).initial_rtt_ns, Some(520_000));
    assert_eq!(talk.ack(SERVER, 501, 106).initial_rtt_ns, None);
    assert_eq!(talk.ack(SERVER, 501, 111).initial_rtt_ns, Some(520_000));
}

#[test]
fn the_handshake_is_timed_from_the_last_syn_to_any_first_ack() {
    let mut talk = Talk::without_handshake();
    talk.hear(talk.segment(CLIENT, 100, 0, SYN));
    talk.hear(talk.segment(CLIENT, 100, 0, SYN));
    assert_eq!(talk.data(SERVER, 501, 101, 10).initial_rtt_ns, Some(10_000));
}

#[test]
fn a_frame_that_wireshark_looked_at_in_vain_still_shows_the_handshake_time() {
    let mut talk = Talk::after_handshake(1000);
    talk.ack(SERVER, 501, 201);
    let silent = talk.ack(SERVER, 501, 301);
    assert_eq!((silent.flags, silent.initial_rtt_ns), (WsFlags::NONE, Some(1_000_000)));
    // A repeated SYN that ends at 0, which reads as unknown, is looked at as well.
    let mut talk = Talk::without_handshake();
    talk.hear(talk.segment(CLIENT, u32::MAX, 0, SYN));
    talk.ack(SERVER, 501, 0);
    let silent = talk.hear(talk.segment(CLIENT, u32::MAX, 0, SYN));
    assert_eq!((silent.flags, silent.initial_rtt_ns), (WsFlags::NONE, Some(10_000)));
}

#[test]
fn a_full_list_neither_grows_nor_counts_the_number_of_a_fin() {
    let mut talk = Talk::without_handshake();
    for index in 0..10_000 {
        talk.data(CLIENT, 101 + index, 501, 1);
    }
    let row = talk.hear(talk.segment(CLIENT, 10_101, 501, FIN | ACK));
    assert_eq!(row.flags, WsFlags::NONE);
    assert_eq!(talk.data(CLIENT, 10_102, 501, 1).flags, WsFlags::LOST_SEGMENT);
    talk.ack(SERVER, 501, 101);
    assert_eq!(talk.data(CLIENT, 10_103, 501, 1).bytes_in_flight, Some(10_000));
}
