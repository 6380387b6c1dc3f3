//! One flag after the other.

use super::*;
use crate::analyze::tcp_wireshark::WsFlags;

#[test]
fn resent_data_after_a_pause_is_a_plain_retransmission() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 201, 501, 100);
    talk.wait_us(1000);
    let row = talk.data(CLIENT, 101, 501, 100);
    assert_eq!(row.flags, WsFlags::PLAIN_RETRANSMISSION);
    assert_eq!(row.rto_ns, Some(1_020_000));
}

#[test]
fn resent_data_within_one_handshake_time_is_called_out_of_order() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 201, 501, 100);
    talk.wait_us(980);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::OUT_OF_ORDER);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn without_a_handshake_the_limit_for_out_of_order_is_three_milliseconds() {
    let mut talk = Talk::without_handshake();
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 201, 501, 100);
    talk.wait_us(2980);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::OUT_OF_ORDER);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn the_newest_segment_sent_again_is_never_out_of_order() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn a_retransmission_at_the_same_instant_shows_no_rto() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.wait_us(-10);
    let row = talk.data(CLIENT, 101, 501, 100);
    assert_eq!((row.flags, row.rto_ns), (WsFlags::PLAIN_RETRANSMISSION, None));
}

#[test]
fn a_clock_that_goes_back_leaves_only_the_plain_retransmission() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.data(CLIENT, 201, 501, 100);
    talk.wait_us(-500);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::PLAIN_RETRANSMISSION);
}

/// Three segments, the first of which the server misses: it repeats the ACK of its SYN/ACK `duplicates` times.
fn gap_with_duplicate_acks(duplicates: u32) -> Talk {
    let mut talk = Talk::after_handshake(1000);
    for seq in [101, 201, 301] {
        talk.data(CLIENT, seq, 501, 100);
    }
    for duplicate in 1..=duplicates {
        let row = talk.ack(SERVER, 501, 101);
        assert_eq!((row.flags, row.duplicate_ack_num), (WsFlags::DUPLICATE_ACK, duplicate));
        assert_eq!(row.duplicate_ack_frame, Some(2));
    }
    talk
}

#[test]
fn two_duplicate_acks_make_a_fast_retransmission_and_one_does_not() {
    assert_eq!(gap_with_duplicate_acks(2).data(CLIENT, 101, 501, 100).flags, WsFlags::FAST_RETRANSMISSION);
    assert_eq!(gap_with_duplicate_acks(1).data(CLIENT, 101, 501, 100).flags, WsFlags::OUT_OF_ORDER);
}

#[test]
fn a_fast_retransmission_starts_where_the_peer_waits_and_comes_within_20_ms() {
    assert_eq!(gap_with_duplicate_acks(3).data(CLIENT, 201, 501, 100).flags, WsFlags::OUT_OF_ORDER);
    for (wait_us, expected) in [(19_980, WsFlags::FAST_RETRANSMISSION), (19_990, WsFlags::PLAIN_RETRANSMISSION)] {
        let mut talk = gap_with_duplicate_acks(3);
        talk.wait_us(wait_us);
        assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, expected);
    }
}

#[test]
fn an_ack_that_moves_on_restarts_the_duplicate_count() {
    let mut talk = gap_with_duplicate_acks(3);
    assert_eq!(talk.ack(SERVER, 501, 201).flags, WsFlags::NONE);
    let row = talk.ack(SERVER, 501, 201);
    assert_eq!((row.duplicate_ack_num, row.duplicate_ack_frame), (1, Some(10)));
}

#[test]
fn data_that_the_peer_acknowledged_before_is_spurious() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.ack(SERVER, 501, 201);
    talk.wait_us(2000);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::SPURIOUS_RETRANSMISSION);
    assert_eq!(talk.data(CLIENT, 101, 501, 101).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn a_reset_with_ack_0_switches_the_spurious_test_off() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.ack(SERVER, 501, 201);
    talk.hear(talk.segment(SERVER, 501, 0, RST));
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn a_repeated_syn_and_a_repeated_fin_are_retransmissions() {
    let mut talk = Talk::without_handshake();
    talk.hear(talk.segment(CLIENT, 100, 0, SYN));
    assert_eq!(talk.hear(talk.segment(CLIENT, 100, 0, SYN)).flags, WsFlags::PLAIN_RETRANSMISSION);
    let mut talk = Talk::after_handshake(1000);
    talk.hear(talk.segment(CLIENT, 101, 501, FIN | ACK));
    assert_eq!(talk.hear(talk.segment(CLIENT, 101, 501, FIN | ACK)).flags, WsFlags::PLAIN_RETRANSMISSION);
}

#[test]
fn a_closed_window_is_flagged_and_a_reset_with_window_0_is_not() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.ack_with_window(SERVER, 501, 101, 0).flags, WsFlags::ZERO_WINDOW);
    for flags in [RST, RST | ACK, FIN | ACK] {
        let mut talk = Talk::after_handshake(1000);
        let row = talk.hear(Segment { window: 0, ..talk.segment(SERVER, 501, 101, flags) });
        assert_eq!(row.flags, WsFlags::NONE);
    }
}

#[test]
fn one_byte_into_a_closed_window_is_a_probe_and_its_answer_a_probe_ack() {
    let mut talk = Talk::after_handshake(1000);
    talk.ack_with_window(SERVER, 501, 101, 0);
    assert_eq!(talk.data(CLIENT, 101, 501, 1).flags, WsFlags::ZERO_WINDOW_PROBE);
    let answer = talk.ack_with_window(SERVER, 501, 101, 0);
    assert_eq!(answer.flags, WsFlags::ZERO_WINDOW | WsFlags::ZERO_WINDOW_PROBE_ACK);
    // The probe did not move the sender on: the next one is again a probe, and so is real data new.
    assert_eq!(talk.data(CLIENT, 101, 501, 1).flags, WsFlags::ZERO_WINDOW_PROBE);
    talk.ack_with_window(SERVER, 501, 101, 900);
    assert_eq!(talk.data(CLIENT, 101, 501, 100).flags, WsFlags::NONE);
}

#[test]
fn none_or_two_bytes_or_an_old_byte_into_a_closed_window_are_no_probe() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    talk.ack_with_window(SERVER, 501, 101, 0);
    assert_eq!(talk.ack(CLIENT, 201, 501).flags, WsFlags::DUPLICATE_ACK);
    assert_eq!(talk.data(CLIENT, 101, 501, 1).flags, WsFlags::OUT_OF_ORDER);
    assert_eq!(talk.data(CLIENT, 201, 501, 2).flags, WsFlags::NONE);
}

#[test]
fn a_closed_window_said_twice_without_a_probe_is_no_probe_ack() {
    let mut talk = Talk::after_handshake(1000);
    talk.ack_with_window(SERVER, 501, 101, 0);
    assert_eq!(talk.ack_with_window(SERVER, 501, 101, 0).flags, WsFlags::ZERO_WINDOW);
}

#[test]
fn a_new_window_without_news_is_a_window_update() {
    let mut talk = Talk::after_handshake(1000);
    talk.ack(SERVER, 501, 101);
    assert_eq!(talk.ack_with_window(SERVER, 501, 101, 1001).flags, WsFlags::WINDOW_UPDATE);
    talk.data(CLIENT, 101, 501, 100);
    assert_eq!(talk.ack_with_window(SERVER, 501, 201, 1002).flags, WsFlags::NONE);
}

#[test]
fn data_up_to_the_scaled_edge_fills_the_window_and_data_past_it_does_not() {
    for (payload_bytes, expected) in [(3999, WsFlags::NONE), (4000, WsFlags::WINDOW_FULL), (4001, WsFlags::NONE)] {
        let mut talk = Talk::after_handshake(1000);
        talk.ack(SERVER, 501, 101);
        assert_eq!(talk.data(CLIENT, 101, 501, payload_bytes).flags, expected);
    }
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.data(CLIENT, 101, 501, 1000).flags, WsFlags::WINDOW_FULL);
}

#[test]
fn without_a_handshake_the_window_is_never_full() {
    let mut talk = Talk::without_handshake();
    talk.ack(SERVER, 501, 101);
    assert_eq!(talk.data(CLIENT, 101, 501, 1000).flags, WsFlags::NONE);
}

#[test]
fn one_byte_or_none_just_below_the_end_is_a_keep_alive() {
    for payload_bytes in [0, 1] {
        let mut talk = Talk::after_handshake(1000);
        talk.data(CLIENT, 101, 501, 100);
        talk.ack(SERVER, 501, 201);
        assert_eq!(talk.data(CLIENT, 200, 501, payload_bytes).flags, WsFlags::KEEP_ALIVE);
        assert_eq!(talk.ack(SERVER, 501, 201).flags, WsFlags::KEEP_ALIVE_ACK);
        // The answer is no duplicate ACK and does not count as one.
        assert_eq!(talk.ack(SERVER, 501, 201).duplicate_ack_num, 0);
    }
}

#[test]
fn two_bytes_from_just_below_the_end_are_new_data_after_a_probe() {
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 101, 501, 100);
    assert_eq!(talk.data(CLIENT, 200, 501, 2).flags, WsFlags::NONE);
}

#[test]
fn a_jump_is_a_lost_segment_except_in_a_reset() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.data(CLIENT, 201, 501, 100).flags, WsFlags::LOST_SEGMENT);
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.hear(talk.segment(CLIENT, 201, 501, RST | ACK)).flags, WsFlags::NONE);
}

#[test]
fn an_ack_past_the_data_seen_is_flagged_once_per_gap() {
    let mut talk = Talk::after_handshake(1000);
    assert_eq!(talk.ack(SERVER, 501, 201).flags, WsFlags::ACK_LOST_SEGMENT);
    assert_eq!(talk.ack(SERVER, 501, 301).flags, WsFlags::NONE);
    let mut talk = Talk::after_handshake(1000);
    talk.data(CLIENT, 201, 501, 100);
    assert_eq!(talk.ack(SERVER, 501, 201).flags, WsFlags::ACK_LOST_SEGMENT);
    assert_eq!(talk.ack(SERVER, 501, 301).flags, WsFlags::NONE);
}

#[test]
fn after_an_ack_of_unseen_data_the_counter_reads_as_many_duplicates() {
    let mut talk = Talk::after_handshake(1000);
    // The client acknowledges server data that is not in the capture.
    assert_eq!(talk.ack(CLIENT, 101, 601).flags, WsFlags::ACK_LOST_SEGMENT);
    talk.data(CLIENT, 101, 601, 100);
    talk.data(SERVER, 501, 101, 100);
    talk.data(CLIENT, 201, 601, 100);
    assert_eq!(talk.data(CLIENT, 101, 601, 50).flags, WsFlags::FAST_RETRANSMISSION);
    // The next duplicate counts as the first.
    let row = talk.ack(SERVER, 601, 101);
    assert_eq!((row.flags, row.duplicate_ack_num), (WsFlags::DUPLICATE_ACK, 1));
}

#[test]
fn a_new_kind_of_mptcp_option_excuses_one_duplicate_ack() {
    let mut talk = Talk::after_handshake(1000);
    let with_option = |talk: &mut Talk, mptcp| talk.hear(Segment { mptcp, ..talk.segment(SERVER, 501, 101, ACK) });
    assert_eq!(with_option(&mut talk, 1 << 2).duplicate_ack_num, 1);
    assert_eq!(with_option(&mut talk, 1 << 2).flags, WsFlags::NONE);
    assert_eq!(with_option(&mut talk, 1 << 2).duplicate_ack_num, 2);
    // A kind that the other side showed counts as well.
    talk.hear(Segment { mptcp: 1 << 3, ..talk.segment(CLIENT, 101, 501, ACK) });
    assert_eq!(with_option(&mut talk, 0).flags, WsFlags::NONE);
    assert_eq!(with_option(&mut talk, 0).duplicate_ack_num, 3);
}

#[test]
fn flags_follow_the_wrap_of_the_sequence_space() {
    let mut talk = Talk::without_handshake();
    assert_eq!(talk.data(CLIENT, 0xffff_ffd0, 501, 32).flags, WsFlags::NONE);
    assert_eq!(talk.data(CLIENT, 0xffff_fff0, 501, 32).flags, WsFlags::NONE);
    assert_eq!(talk.data(CLIENT, 0x20, 501, 16).flags, WsFlags::LOST_SEGMENT);
    assert_eq!(talk.data(CLIENT, 0x10, 501, 16).flags, WsFlags::OUT_OF_ORDER);
    talk.ack(SERVER, 501, 0x10);
    assert_eq!(talk.data(CLIENT, 0xffff_fff0, 501, 32).flags, WsFlags::SPURIOUS_RETRANSMISSION);
}

#[test]
fn half_the_sequence_space_away_is_both_lost_and_out_of_order() {
    let mut talk = Talk::without_handshake();
    talk.data(CLIENT, 101, 501, 100);
    let flags = talk.data(CLIENT, 201 + (1 << 31), 501, 100).flags;
    assert_eq!(flags, WsFlags::LOST_SEGMENT | WsFlags::OUT_OF_ORDER);
    let mut talk = Talk::without_handshake();
    talk.data(CLIENT, 101, 501, 100);
    assert_eq!(talk.data(CLIENT, 200 + (1 << 31), 501, 100).flags, WsFlags::LOST_SEGMENT);
}

#[test]
fn a_sequence_end_of_0_reads_as_unknown() {
    let mut talk = Talk::without_handshake();
    talk.data(CLIENT, 0xffff_ff9c, 501, 100);
    assert_eq!(talk.data(CLIENT, 500, 501, 100).flags, WsFlags::NONE);
}
