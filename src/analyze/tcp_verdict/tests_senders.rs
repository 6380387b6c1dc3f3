//! Crafted connections: why a segment was resent, and whether that was needed.

use super::tests::{A, B, MS, Wire};
use super::*;

fn cause_of(judgements: &[Judgement], row: u64) -> (Option<Cause>, Option<Outcome>) {
    assert_eq!(judgements[row as usize].verdict, Verdict::Retransmit);
    (judgements[row as usize].cause, judgements[row as usize].outcome)
}

/// Ten pieces in flight at 20 ms over a path of 10 ms.
fn ten_in_flight(sack: bool) -> Wire {
    let mut wire = Wire::at_client().shake(10 * MS, sack);
    for n in 0..10 {
        wire.data(20 * MS, n, 110 + n as u16);
    }
    wire
}

#[test]
fn silence_and_the_first_piece_again_is_a_timeout_and_what_follows_is_slow_start() {
    let mut wire = ten_in_flight(false);
    let first = wire.data(240 * MS, 0, 120);
    let backed_off = wire.data(660 * MS, 0, 121);
    wire.ack(670 * MS, 1, &[]);
    let second = wire.data(670 * MS + 1000, 1, 122);
    wire.ack(680 * MS, 10, &[]);
    let all = wire.finish();
    let causes = [first, backed_off, second].map(|row| cause_of(&all, row).0);
    assert_eq!(causes, [Some(Cause::Timeout), Some(Cause::Timeout), Some(Cause::SlowStart)]);
    assert_eq!(all[second as usize].outcome, Some(Outcome::Unknown), "no SACK, so no D-SACK could tell");
}

#[test]
fn the_last_piece_again_after_two_round_trips_is_a_tail_probe() {
    let mut wire = ten_in_flight(true);
    let probe = wire.data(50 * MS, 9, 120);
    let timeout = wire.data(260 * MS, 0, 121);
    wire.ack(270 * MS, 10, &[]);
    wire.ack(900 * MS, 10, &[]);
    let all = wire.finish();
    assert_eq!(cause_of(&all, probe), (Some(Cause::Probe), Some(Outcome::Needed)));
    assert_eq!(cause_of(&all, timeout), (Some(Cause::Timeout), Some(Outcome::Needed)));
    assert_eq!(all[timeout as usize].first_frame_no, Some(4), "after the three of the handshake");
}

#[test]
fn a_lone_piece_is_probed_first_and_times_out_then() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let rows = [wire.data(245 * MS, 0, 111), wire.data(455 * MS, 0, 112), wire.data(875 * MS, 0, 113)];
    let all = wire.finish();
    let causes = rows.map(|row| cause_of(&all, row).0);
    assert_eq!(causes, [Some(Cause::Probe), Some(Cause::Timeout), Some(Cause::Timeout)]);
}

#[test]
fn no_timer_runs_out_within_microseconds() {
    for (after_ns, cause) in [(10_000, Cause::Unknown), (9 * MS, Cause::Unknown), (15 * MS, Cause::Timeout)] {
        let mut wire = Wire::at_client().shake(10 * MS, false);
        wire.data(20 * MS, 0, 110);
        let row = wire.data(20 * MS + after_ns, 0, 111);
        assert_eq!(cause_of(&wire.finish(), row).0, Some(cause), "{after_ns}");
    }
}

#[test]
fn a_tail_is_not_probed_without_sack() {
    let mut wire = Wire::at_client().shake(10 * MS, false);
    wire.data(20 * MS, 0, 110);
    let row = wire.data(245 * MS, 0, 111);
    assert_eq!(cause_of(&wire.finish(), row).0, Some(Cause::Timeout));
}

#[test]
fn a_d_sack_for_the_repeated_bytes_makes_it_spurious() {
    let mut wire = ten_in_flight(true);
    wire.ack(30 * MS, 0, &[(1, 3)]);
    let again = wire.data(31 * MS, 0, 120);
    wire.ack(32 * MS, 10, &[]);
    assert_eq!(wire.so_far(again), None, "the receiver has not seen it yet");
    wire.ack(42 * MS, 10, &[(0, 1)]);
    assert!(wire.so_far(again).is_some(), "and now it has");
    let summary = wire.connection.summary();
    assert_eq!((summary.directions[0].dsack_old_count, summary.directions[0].dsack_segments), (1, 1));
    assert_eq!(summary.directions[0].retransmit_segments[Cause::Fast as usize][Outcome::Spurious as usize], 1);
    assert_eq!(cause_of(&wire.finish(), again), (Some(Cause::Fast), Some(Outcome::Spurious)));
}

#[test]
fn one_d_sack_block_may_report_several_pieces_but_each_only_once() {
    let mut wire = ten_in_flight(true);
    wire.ack(30 * MS, 0, &[(2, 4)]);
    let rows = [wire.data(31 * MS, 0, 120), wire.data(31 * MS, 1, 121), wire.data(32 * MS, 0, 122)];
    wire.ack(45 * MS, 10, &[(0, 2)]);
    wire.ack(900 * MS, 10, &[]);
    let all = wire.finish();
    let outcomes = rows.map(|row| cause_of(&all, row).1);
    assert_eq!(outcomes, [Some(Outcome::Spurious), Some(Outcome::Spurious), Some(Outcome::Needed)]);
}

#[test]
fn a_timeout_proved_spurious_ends_the_slow_start() {
    let mut wire = ten_in_flight(true);
    let timeout = wire.data(240 * MS, 0, 120);
    // The original of the fourth piece, never resent, arrives: F-RTO (RFC 5682).
    wire.ack(245 * MS, 4, &[]);
    wire.ack(246 * MS, 4, &[(5, 8)]);
    let fast = wire.data(247 * MS, 4, 121);
    let all = wire.finish();
    assert_eq!(cause_of(&all, timeout).0, Some(Cause::Timeout));
    assert_eq!(cause_of(&all, fast).0, Some(Cause::Fast));
}

#[test]
fn one_offloaded_frame_resent_counts_its_segments() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    let frame = |wire: &mut Wire, time_ns, id| {
        wire.send(time_ns, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A, B, 3 * 1448 + 1, Some(id));
        })
    };
    frame(&mut wire, 20 * MS, 110);
    wire.data(20 * MS, 4, 114);
    wire.ack(30 * MS, 0, &[(4, 5)]);
    let again = frame(&mut wire, 31 * MS, 115);
    let all = wire.finish();
    assert_eq!((all[again as usize].verdict, all[again as usize].retransmit_segments), (Verdict::Retransmit, 4));
}

#[test]
fn syn_and_syn_ack_sent_again_are_their_own_causes() {
    let mut wire = Wire::at_client();
    wire.syn(0, 0, SYN, A - 1, 0, true);
    let syn = wire.syn(1_000 * MS, 0, SYN, A - 1, 0, true);
    wire.syn(1_010 * MS, 1, SYN | ACK, B - 1, A, true);
    let synack = wire.syn(2_010 * MS, 1, SYN | ACK, B - 1, A, true);
    let all = wire.finish();
    assert_eq!(cause_of(&all, syn).0, Some(Cause::Syn));
    assert_eq!(cause_of(&all, synack).0, Some(Cause::SynAck));
}

#[test]
fn after_an_icmp_too_big_the_pieces_are_the_path_mtus_doing() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    let jumbo = |wire: &mut Wire, time_ns, from: u32, len, id| {
        wire.send(time_ns, 0, |s| (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + from, B, len, Some(id)))
    };
    jumbo(&mut wire, 20 * MS, 0, 1448, 110);
    jumbo(&mut wire, 20 * MS, 1448, 1448, 111);
    wire.connection.on_icmp_too_big(21 * MS, 0, A, 1_000);
    let rows = [jumbo(&mut wire, 22 * MS, 0, 948, 112), jumbo(&mut wire, 22 * MS, 948, 500, 113)];
    let all = wire.finish();
    assert_eq!(rows.map(|row| cause_of(&all, row).0), [Some(Cause::Pmtu); 2]);
    assert!(all[rows[0] as usize].evidence.has(Evidence::ICMP));
}

#[test]
fn smaller_pieces_after_a_timeout_are_path_mtu_probing() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    wire.data(20 * MS, 1, 111);
    let part = |wire: &mut Wire, time_ns, from: u32, len, id| {
        wire.send(time_ns, 0, |s| (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + from, B, len, Some(id)))
    };
    let timeout = part(&mut wire, 3_300 * MS, 0, 512, 112);
    wire.send(3_310 * MS, 1, |s| (s.seq, s.ack) = (B, A + 512));
    let next = part(&mut wire, 3_311 * MS, 512, 512, 113);
    let all = wire.finish();
    assert_eq!(cause_of(&all, timeout).0, Some(Cause::Timeout));
    assert_eq!(cause_of(&all, next).0, Some(Cause::Pmtu));
}

#[test]
fn a_repetition_after_a_silence_whose_original_never_passed_the_tap_is_found_by_its_id() {
    let forty_pieces = |wire: &mut Wire, id_step: u16| {
        for n in 0..40 {
            wire.data(20 * MS, n, 102 + n as u16 * id_step);
            wire.ack(20 * MS + 1000, n + 1, &[]);
        }
    };
    let mut wire = Wire::at_server().shake(10 * MS, true);
    forty_pieces(&mut wire, 1);
    let lost = wire.data(900 * MS, 40, 150);
    wire.ack(900 * MS + 1000, 41, &[]);
    assert_eq!(cause_of(&wire.finish(), lost).0, Some(Cause::Timeout));

    // Six numbers in a second are no timeouts of one small segment, and ten thousand fit into no window.
    for (payload_bytes, id, verdict) in [
        (1_448, 148, Verdict::Retransmit),
        (18, 148, Verdict::New),
        (18, 144, Verdict::Retransmit),
        (1_448, 1_140, Verdict::New),
    ] {
        let mut wire = Wire::at_server().shake(10 * MS, true);
        forty_pieces(&mut wire, 1);
        let row = wire.send(900 * MS, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + 40 * 1_448, B, payload_bytes, Some(id));
        });
        wire.ack(900 * MS + 1000, 41, &[]);
        assert_eq!(wire.finish()[row as usize].verdict, verdict, "{payload_bytes} {id}");
    }

    // Without the silence, or where the IDs are shared with other connections, nothing is claimed.
    for (time_ns, id_step) in [(60 * MS, 1), (900 * MS, 3)] {
        let mut wire = Wire::at_server().shake(10 * MS, true);
        forty_pieces(&mut wire, id_step);
        let row = wire.data(time_ns, 40, 250);
        assert_eq!(wire.finish()[row as usize].verdict, Verdict::New);
    }
}

#[test]
fn at_the_sender_new_data_is_final_at_once_and_a_repetition_waits_for_its_answer() {
    let mut wire = ten_in_flight(true);
    assert!(!wire.connection.is_waiting());
    let again = wire.data(300 * MS, 9, 120);
    assert!(wire.connection.is_waiting() && wire.so_far(again).is_none());
    wire.ack(310 * MS, 10, &[]);
    assert_eq!(wire.so_far(again), None);
    wire.ack(800 * MS, 10, &[]);
    assert_eq!(wire.so_far(again).and_then(|j| j.outcome), Some(Outcome::Needed));
    wire.finish();
}

#[test]
fn a_row_held_past_the_limit_comes_out_undecided() {
    let mut wire = ten_in_flight(true);
    let again = wire.data(300 * MS, 9, 120);
    let mut out = Vec::new();
    let limits = HoldLimits { rows: 1_000, time_ns: 10 * MS };
    wire.connection.settle(Moment { ns: 310 * MS, frame: wire.next_row }, &limits, &mut out);
    assert!(out.is_empty());
    wire.connection.settle(Moment { ns: 310 * MS + 1, frame: wire.next_row }, &limits, &mut out);
    assert_eq!(out.iter().map(|&(row, j)| (row, j.outcome)).collect::<Vec<_>>(), [(again, Some(Outcome::Unknown))]);
    assert!(!wire.connection.is_waiting());
}

#[test]
fn the_tap_is_placed_by_ttl_and_by_the_halves_of_the_handshake() {
    assert_eq!(Wire::at_client().shake(10 * MS, true).connection.summary().vantage, Vantage::Client);
    assert_eq!(Wire::at_server().shake(10 * MS, true).connection.summary().vantage, Vantage::Server);
    let shake = |synack_ns, ack_ns, ttl: u8| {
        let mut wire = Wire::at_client();
        let mut out = Vec::new();
        let mut row = |time_ns, dir, flags, seq, ack| {
            wire.send(time_ns, dir, |s| (s.flags, s.seq, s.ack, s.ttl) = (flags, seq, ack, ttl));
        };
        row(0, 0, SYN, A - 1, 0);
        row(synack_ns, 1, SYN | ACK, B - 1, A);
        row(ack_ns, 0, ACK, A, B);
        wire.connection.finish(Moment::default(), &HoldLimits::default(), &mut out);
        wire.connection.summary().vantage
    };
    assert_eq!(shake(10 * MS, 10 * MS + 50_000, 64), Vantage::Client);
    assert_eq!(shake(50_000, 10 * MS, 64), Vantage::Server);
    assert_eq!(shake(5 * MS, 10 * MS, 64), Vantage::Unknown);
    assert_eq!(shake(5 * MS, 10 * MS, 63), Vantage::Middle);
}

#[test]
fn a_host_that_was_busy_at_the_handshake_is_not_far_away() {
    let after = |trip_ns| {
        let mut wire = Wire::at_client();
        wire.ttl = [64; 2];
        wire.syn(0, 0, SYN, A - 1, 0, true);
        wire.syn(4_470_000, 1, SYN | ACK, B - 1, A, true);
        wire.send(4_650_000, 0, |s| (s.seq, s.ack) = (A, B));
        assert_eq!(wire.connection.summary().vantage, Vantage::Client);
        wire.data(10 * MS, 0, 110);
        wire.ack(10 * MS + trip_ns, 1, &[]);
        wire.connection.summary().vantage
    };
    assert_eq!(after(4_300_000), Vantage::Client);
    assert_eq!(after(100_000), Vantage::Unknown);
}

#[test]
fn a_probe_that_queued_behind_its_original_is_no_timeout() {
    let again_after = |ticks: u32| {
        let mut wire = Wire::at_server().shake(20 * MS, true);
        for n in 0..9 {
            wire.data((30 + i64::from(n)) * MS, n, 110 + n as u16);
        }
        wire.ack(40 * MS, 9, &[]);
        let stamped = |wire: &mut Wire, time_ns, tsval, id| {
            wire.send(time_ns, 0, |s| {
                (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + 9 * 1448, B, 286, Some(id));
                s.ts = Some((tsval, 1));
            })
        };
        // Both come out of a queue that was stuck: 31 us apart, but sent far from each other.
        stamped(&mut wire, 400 * MS, 5_060, 120);
        let again = stamped(&mut wire, 400 * MS + 31_000, 5_060 + ticks, 121);
        cause_of(&wire.finish(), again).0
    };
    assert_eq!(again_after(10), Some(Cause::Probe));
    assert_eq!(again_after(210), Some(Cause::Timeout));
}

#[test]
fn a_timer_that_backs_off_for_long_resends_what_was_seen_and_acknowledged() {
    let mut wire = Wire::at_server().without_ids().without_timestamps().shake(MS, true);
    for n in 0..4 {
        wire.data((10 + i64::from(n)) * MS, n, 0);
    }
    wire.ack(20 * MS, 4, &[]);
    let (mut time_ns, mut wait_ns, mut resent) = (20 * MS, 250 * MS, Vec::new());
    // The ACKs never arrive: the first piece again and again, each time reported as received twice.
    for _ in 0..8 {
        (time_ns, wait_ns) = (time_ns + wait_ns, wait_ns * 2);
        resent.push(wire.data(time_ns, 0, 0));
        wire.ack(time_ns + MS, 4, &[(0, 1)]);
        wire.connection.shrink();
    }
    let all = wire.finish();
    for row in resent {
        let judgement = all[row as usize];
        assert_eq!((judgement.verdict, judgement.outcome), (Verdict::Retransmit, Some(Outcome::Spurious)), "row {row}");
    }
}

#[test]
fn an_acknowledgement_just_before_the_limit_does_not_tell_yet_that_a_repetition_was_needed() {
    let resent_again = |dsack_ns: Option<i64>| {
        let mut wire = Wire::at_server().shake(1_000 * MS, true);
        wire.data(1_100 * MS, 0, 100);
        let row = wire.data(2_500 * MS, 0, 101);
        wire.ack(12_490 * MS, 1, &[]);
        if let Some(time_ns) = dsack_ns {
            wire.ack(time_ns, 1, &[(0, 1)]);
        }
        wire.ack(60_000 * MS, 1, &[]);
        wire.finish()[row as usize].outcome
    };
    assert_eq!(resent_again(None), Some(Outcome::Unknown));
    assert_eq!(resent_again(Some(12_495 * MS)), Some(Outcome::Spurious));
    assert_eq!(resent_again(Some(14_000 * MS)), Some(Outcome::Unknown), "later than anything may wait");
}
