//! Crafted connections: copies of one packet, keep-alives and window probes.

use super::tests::{A, B, MS, Wire, piece, verdict_of};
use super::*;

#[test]
fn the_same_packet_twice_is_the_networks_if_the_receiver_got_it_twice_and_else_the_captures() {
    for (dsack, verdict) in [(true, Verdict::NetworkDuplicate), (false, Verdict::CaptureDuplicate)] {
        let mut wire = Wire::at_server().shake(10 * MS, true);
        wire.data(20 * MS, 0, 110);
        let copy = wire.send(20 * MS + 5000, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ip_id, s.ts) = (A, B, 1448, Some(110), Some((5_020, 1)));
        });
        assert_eq!(wire.so_far(copy), None, "the answer is still out");
        wire.ack(20 * MS + 9000, 1, if dsack { &[(0, 1)] } else { &[] });
        wire.data(400 * MS, 1, 111);
        wire.ack(401 * MS, 2, &[]);
        let all = wire.finish();
        assert_eq!(verdict_of(&all, copy), verdict);
        assert_eq!(all[copy as usize].first_frame_no, Some(copy), "the frame before it");
    }
}

#[test]
fn what_copies_a_repetition_is_not_compared_with_the_first_sending() {
    let mut wire = Wire::at_client().without_ids();
    let syn = |wire: &mut Wire, time_ns| {
        wire.send(time_ns, 0, |s| {
            (s.flags, s.seq, s.ts, s.l4_checksum_field) = (SYN, A - 1, None, 7);
        })
    };
    let rows = [0, 1_000 * MS, 1_000 * MS + 30_000].map(|time_ns| syn(&mut wire, time_ns));
    let all = wire.finish();
    let verdicts = rows.map(|row| verdict_of(&all, row));
    assert_eq!(verdicts, [Verdict::New, Verdict::Retransmit, Verdict::CaptureDuplicate]);
}

#[test]
fn a_second_interface_or_a_hop_further_on_makes_a_capture_duplicate_at_once() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let copy = |wire: &mut Wire, interface, ttl| {
        wire.send(20 * MS + 100, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A, B, 1448, Some(110));
            (s.interface, s.ttl) = (interface, ttl);
        })
    };
    let (other_interface, next_hop) = (copy(&mut wire, 1, 64), copy(&mut wire, 0, 63));
    assert_eq!(wire.so_far(other_interface).map(|j| j.verdict), Some(Verdict::CaptureDuplicate));
    assert!(wire.so_far(next_hop).is_some_and(|j| j.evidence.has(Evidence::TTL)));
    assert_eq!(wire.connection.summary().vantage, Vantage::Middle);
    wire.finish();
}

#[test]
fn identical_resets_with_id_zero_are_not_duplicates_but_on_another_interface_they_are() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    let reset = |wire: &mut Wire, interface| {
        wire.send(20 * MS, 1, |s| {
            (s.flags, s.seq, s.window, s.ip_id, s.ts) = (RST, B, 0, Some(0), None);
            (s.l4_checksum_field, s.interface) = (77, interface);
        })
    };
    let rows = [reset(&mut wire, 0), reset(&mut wire, 0), reset(&mut wire, 1)];
    let all = wire.finish();
    assert_eq!(rows.map(|row| verdict_of(&all, row)), [Verdict::New, Verdict::New, Verdict::CaptureDuplicate]);
}

#[test]
fn pieces_of_an_offloaded_frame_seen_again_behind_it_are_capture_duplicates() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    let cut = |wire: &mut Wire, n, pieces: u32, id| {
        wire.send(20 * MS, 0, |s| {
            (s.seq, s.ack, s.payload_bytes, s.ip_id, s.interface) = (piece(n), B, 1448 * pieces, Some(id), n & 1);
        })
    };
    cut(&mut wire, 0, 3, 110);
    let rows = [cut(&mut wire, 0, 1, 110), cut(&mut wire, 1, 1, 111), cut(&mut wire, 2, 1, 112)];
    let after = cut(&mut wire, 3, 1, 113);
    let all = wire.finish();
    assert_eq!(rows.map(|row| verdict_of(&all, row)), [Verdict::CaptureDuplicate; 3]);
    assert_eq!(verdict_of(&all, after), Verdict::New);
}

#[test]
fn a_keep_alive_is_no_retransmission() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    wire.ack(30 * MS, 1, &[]);
    let bare = wire.send(9_000 * MS, 0, |s| (s.seq, s.ack, s.ip_id) = (piece(1) - 1, B, Some(111)));
    let one_byte = wire.send(9_100 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (piece(1) - 1, B, 1, Some(112));
    });
    let all = wire.finish();
    assert_eq!([bare, one_byte].map(|row| verdict_of(&all, row)), [Verdict::KeepAlive; 2]);
    assert_eq!(all[bare as usize].retransmit_segments, 0);
}

#[test]
fn a_single_byte_sent_twice_and_reported_twice_is_a_tail_probe_not_a_keep_alive() {
    for (sack, verdict) in [(&[(A, A + 1)][..], Verdict::Retransmit), (&[], Verdict::KeepAlive)] {
        let mut wire = Wire::at_server().shake(10 * MS, true);
        wire.send(20 * MS, 0, |s| (s.seq, s.ack, s.payload_bytes) = (A, B, 1));
        wire.send(20 * MS + 1000, 1, |s| (s.seq, s.ack) = (B, A + 1));
        let row = wire.send(250 * MS, 0, |s| (s.seq, s.ack, s.payload_bytes) = (A, B, 1));
        wire.send_with(250 * MS + 1000, 1, sack, |s| (s.seq, s.ack) = (B, A + 1));
        let all = wire.finish();
        assert_eq!(verdict_of(&all, row), verdict);
    }
}

#[test]
fn probes_into_a_closed_window_are_window_probes_and_a_reset_does_not_close_it() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    wire.send(30 * MS, 1, |s| (s.seq, s.ack, s.window) = (B, piece(1), 0));
    let old_byte = wire.send(300 * MS, 0, |s| (s.seq, s.ack, s.ip_id) = (piece(1) - 1, B, Some(111)));
    let next_byte = wire.send(800 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (piece(1), B, 1, Some(112));
    });
    wire.send(810 * MS, 1, |s| (s.seq, s.ack, s.window) = (B, piece(1), 0));
    let again = wire.send(1_600 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (piece(1), B, 1, Some(113));
    });
    let all = wire.finish();
    assert_eq!([old_byte, next_byte, again].map(|row| verdict_of(&all, row)), [Verdict::WindowProbe; 3]);

    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    wire.ack(30 * MS, 1, &[]);
    wire.send(31 * MS, 1, |s| (s.flags, s.seq, s.window, s.ip_id) = (RST, B, 0, Some(0)));
    let row = wire.send(300 * MS, 0, |s| (s.seq, s.ack, s.ip_id) = (piece(1) - 1, B, Some(111)));
    assert_eq!(verdict_of(&wire.finish(), row), Verdict::KeepAlive);
}

#[test]
fn copies_that_nothing_tells_apart_are_the_same_however_often_they_are_looked_at() {
    for step_ms in [1, 5_000] {
        let mut wire = Wire::at_client().shake(10 * MS, true);
        let twice = |wire: &mut Wire, n| wire.data(20 * MS, n, 110 + n as u16);
        twice(&mut wire, 0);
        twice(&mut wire, 0);
        wire.ack(30 * MS, 1, &[(0, 1)]);
        for n in [1, 2, 2, 1] {
            twice(&mut wire, n);
        }
        // The copy that came first is acknowledged last.
        wire.ack(50 * MS, 2, &[]);
        wire.ack(52 * MS, 3, &[]);
        let mut out = Vec::new();
        for ms in (52..=5_052).step_by(step_ms) {
            let now = Moment { ns: ms * MS, frame: wire.next_row };
            wire.connection.settle(now, &HoldLimits::default(), &mut out);
        }
        let verdicts: Vec<_> = out.iter().map(|(_, judgement)| judgement.verdict).collect();
        assert_eq!(verdicts, [Verdict::NetworkDuplicate; 2], "every {step_ms} ms: as the first copy was");
    }
}
