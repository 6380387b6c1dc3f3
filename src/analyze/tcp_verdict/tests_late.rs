//! Crafted connections: what comes too late to have been overtaken, and counters that do not tell the order.

use super::rtt::LATEST_NS;
use super::tests::{A, B, MS, Wire, piece, verdict_of};
use super::*;

/// After the limit, and still within it.
const SIDES: [(i64, bool); 2] = [(LATEST_NS + 1, true), (LATEST_NS, false)];

#[test]
fn what_is_sent_once_more_after_a_long_silence_is_a_retransmission_and_a_bare_ack_is_new() {
    for (silence_ns, is_long) in SIDES {
        let mut wire = Wire::at_server().without_timestamps().shake(10 * MS, true);
        let mut play = |from_ns| {
            let ack = wire.send(from_ns, 0, |s| (s.seq, s.ack, s.ip_id) = (A, B + 7, Some(103)));
            (ack, [0, 1].map(|n| wire.data(from_ns + 1, n, 104 + n as u16)))
        };
        play(20 * MS);
        let (ack, data) = play(20 * MS + 1 + silence_ns);
        let all = wire.finish();
        let verdicts = [ack, data[0], data[1]].map(|row| verdict_of(&all, row));
        if is_long {
            assert_eq!(verdicts, [Verdict::New, Verdict::Retransmit, Verdict::Retransmit]);
            let first = all[data[0] as usize];
            assert_eq!((first.cause, first.first_frame_no), (Some(Cause::Timeout), Some(5)));
            assert!(first.evidence.has(Evidence::SEEN_BYTES.with(Evidence::QUIET)), "{first:?}");
            assert!(!first.evidence.has(Evidence::IP_ID), "{first:?}");
        } else {
            assert_eq!(verdicts[0], Verdict::Reordered);
        }
    }
}

#[test]
fn an_older_id_is_late_only_as_long_as_a_packet_may_be_overtaken() {
    for (silence_ns, is_long) in SIDES {
        let mut wire = Wire::at_server().shake(10 * MS, true);
        wire.data(20 * MS, 0, 110);
        wire.data(20 * MS, 1, 112);
        let at_ns = 20 * MS + silence_ns;
        let ack = wire.send(at_ns, 0, |s| (s.seq, s.ack, s.ip_id) = (piece(1), B + 7, Some(111)));
        let expected = if is_long { Verdict::New } else { Verdict::Reordered };
        assert_eq!(verdict_of(&wire.finish(), ack), expected, "{silence_ns}");
    }
}

#[test]
fn a_counter_that_went_round_during_a_silence_makes_nothing_late() {
    let mut wire = Wire::at_server().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    wire.data(21 * MS, 1, 111);
    wire.data(21 * MS, 0, 112);
    let after: Vec<_> = (2..6).map(|n| wire.data(30_000 * MS, n, 60 + n as u16)).collect();
    let all = wire.finish();
    assert!(after.iter().all(|row| verdict_of(&all, *row) == Verdict::New));
}

#[test]
fn an_older_timestamp_is_late_only_as_long_as_a_packet_may_be_overtaken() {
    for (silence_ns, is_long) in SIDES {
        let mut wire = Wire::at_server().without_ids().shake(10 * MS, true);
        wire.data(20 * MS, 0, 0);
        wire.data(30 * MS, 2, 0);
        let stamped = |wire: &mut Wire, n: u32, stamp| {
            wire.send(30 * MS + silence_ns, 0, |s| {
                (s.seq, s.ack, s.payload_bytes, s.ts) = (piece(n), B, 1448, Some((stamp, 1)));
            })
        };
        let (old, next) = (stamped(&mut wire, 1, 5_025), stamped(&mut wire, 3, 5_029));
        let all = wire.finish();
        let expected =
            if is_long { [Verdict::Retransmit, Verdict::New] } else { [Verdict::Reordered, Verdict::Reordered] };
        assert_eq!([old, next].map(|row| verdict_of(&all, row)), expected, "{silence_ns}");
    }
}

#[test]
fn the_same_bytes_with_the_same_timestamp_are_one_packet_only_if_they_come_soon() {
    for (silence_ns, is_long) in SIDES {
        let mut wire = Wire::at_server().without_ids().shake(10 * MS, true);
        (0..20).for_each(|n| assert_eq!(wire.data((20 + i64::from(n)) * MS, n, 0), 3 + u64::from(n)));
        let again = wire.send(39 * MS + silence_ns, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ts) = (piece(19), B, 1448, Some((5_039, 1)));
        });
        let expected = if is_long { Verdict::Retransmit } else { Verdict::CaptureDuplicate };
        assert_eq!(verdict_of(&wire.finish(), again), expected, "{silence_ns}");
    }
}

#[test]
fn a_hole_that_is_filled_after_so_long_was_filled_by_a_repetition() {
    for (silence_ns, is_long) in SIDES {
        let mut wire = Wire::at_server().without_ids().without_timestamps().shake(10 * MS, true);
        wire.data(20 * MS, 0, 0);
        wire.data(20 * MS, 2, 0);
        let row = wire.data(20 * MS + silence_ns, 1, 0);
        let all = wire.finish();
        let expected = if is_long { Verdict::Retransmit } else { Verdict::Ambiguous };
        assert_eq!(verdict_of(&all, row), expected, "{silence_ns}");
        assert!(all[row as usize].evidence.has(Evidence::TIME));
    }
}

#[test]
fn where_a_round_trip_takes_seconds_a_packet_may_be_late_for_longer() {
    let mut wire = Wire::at_server().without_ids().without_timestamps().shake(10 * MS, true);
    for n in 0..20_u32 {
        wire.data(i64::from(n) * 4_000 * MS + 20 * MS, n, 0);
        wire.ack(i64::from(n) * 4_000 * MS + 3_000 * MS, n + 1, &[]);
    }
    wire.data(100_000 * MS, 21, 0);
    let row = wire.data(100_000 * MS + 2 * LATEST_NS, 20, 0);
    assert_eq!(verdict_of(&wire.finish(), row), Verdict::Ambiguous);
}

#[test]
fn a_packet_of_a_slow_connection_is_no_copy_of_one_that_passed_long_ago() {
    for (seconds, expected) in [(5, Verdict::CaptureDuplicate), (6, Verdict::Retransmit)] {
        let mut wire = Wire::at_server().without_timestamps().shake(10 * MS, true);
        for n in 0..10_u32 {
            wire.data(i64::from(n) * 1_000 * MS + 20 * MS, n, 110 + n as u16);
        }
        let row = wire.data((9 + seconds) * 1_000 * MS + 20 * MS, 9, 119);
        assert_eq!(verdict_of(&wire.finish(), row), expected, "{seconds} s");
    }
}

#[test]
fn pieces_that_a_network_card_numbers_in_the_wrong_byte_order_are_neither_late_nor_sent_again() {
    let mut wire = Wire::at_server().without_timestamps().shake(10 * MS, true);
    // Offloaded frames of three packets, as the card of a sender cuts and numbers them.
    let id = |n: u32| 110 + (n / 3 * 3) as u16 + ((n % 3) as u16 * 0x100);
    let rows: Vec<_> = (0..12).map(|n| wire.data(20 * MS, n, id(n))).collect();
    wire.ack(30 * MS, 4, &[(5, 12)]);
    let again = wire.data(31 * MS, 4, 125);
    wire.ack(45 * MS, 12, &[]);
    let all = wire.finish();
    assert!(rows.iter().all(|row| verdict_of(&all, *row) == Verdict::New));
    assert_eq!(verdict_of(&all, again), Verdict::Retransmit);
}

#[test]
fn a_syn_ack_that_passes_twice_at_once_was_captured_twice() {
    for (after_ns, expected) in [(40_000, Verdict::CaptureDuplicate), (60_000, Verdict::Retransmit)] {
        let mut wire = Wire::at_server().without_ids();
        wire.syn(0, 0, SYN, A - 1, 0, true);
        let twice = [0, after_ns].map(|ns| {
            wire.send(10 * MS + ns, 1, |s| {
                (s.flags, s.seq, s.ack, s.ts, s.l4_checksum_field) = (SYN | ACK, B - 1, A, None, 7);
            })
        });
        assert_eq!(verdict_of(&wire.finish(), twice[1]), expected, "{after_ns}");
    }
}

#[test]
fn an_acknowledged_row_is_the_same_whether_its_frames_or_its_time_are_over_first() {
    use super::held::{AckedAt, Answers, Held, HeldRow, Kind};
    let limits = HoldLimits { rows: 5, time_ns: 100_000 };
    let answers = Answers { has_sack: true, wait_ns: 1_000, round_trip_ns: 10 };
    // Acknowledged in time for a D-SACK to be due before the limit; and so late that none is.
    for acked_ns in [100, 99_900] {
        let told = [Moment { ns: acked_ns + 50, frame: 1_000 }, Moment { ns: 300_000, frame: 2_000 }].map(|now| {
            let (mut held, mut counts, mut out) = (Held::default(), DirectionSummary::default(), Vec::new());
            let row = HeldRow {
                row: 7,
                seq: 1,
                end: 2,
                time_ns: 0,
                since: Moment { ns: 0, frame: 1 },
                kind: Kind::Resent(Cause::Timeout),
                evidence: Evidence::SND_MAX,
                segments: 1,
                first_frame_no: None,
                acked: Some(AckedAt { time_ns: acked_ns, at_ns: acked_ns }),
            };
            held.hold(row, &mut counts, &mut out);
            held.release(now.ns, Some(2), answers, &limits, &mut counts, &mut out);
            held.expire(now, Some(2), answers, &limits, &mut counts, &mut out);
            assert!(held.is_empty());
            out
        });
        assert_eq!(told[0], told[1]);
        let outcome = if acked_ns == 100 { Outcome::Needed } else { Outcome::Unknown };
        assert_eq!(told[0][0].1.outcome, Some(outcome));
    }
}
