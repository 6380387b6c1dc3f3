//! What comes again: whether it was dropped, why it was asked for, where its answer was lost, and how that ends.

use super::*;

fn data(opcode: u8, psn: u32) -> Craft {
    packet(B, opcode, 0x10, psn)
}

/// A capture at the responder: number 1 was lost on the way there.
fn at_the_responder() -> Lab {
    let mut lab = Lab::default();
    lab.all([send(0), send(2), answer(SEQUENCE_NAK, 1), send(1), send(2), answer(ACK, 2)]);
    lab
}

#[test]
fn a_read_or_atomic_that_comes_again_is_answered_again_and_not_dropped() {
    let mut lab = at_the_responder();
    let atomic = |opcode| packet(A, opcode, 0x20, 4).bytes(0);
    for (ask, reply) in [(read(3, 1_024), data(0x10, 3)), (atomic(0x14), data(0x12, 4).bytes(0))] {
        lab.all([ask.clone(), reply.clone()]).wait(67 * MS).all([ask, reply]);
    }
    lab.all([send(5), answer(ACK, 5)]).wait(67 * MS).all([send(5), answer(ACK, 5)]).finish();
    for frame_no in [9, 13, 17] {
        assert_eq!(lab.said(frame_no), ("retransmit", "timeout", "duplicate"), "frame {frame_no}");
    }
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.duplicates, counts.out_of_sequence), (3, 1));
    // Number 2 behind the gap, and the SEND.
    assert_eq!((counts.discarded, counts.discarded_twice, counts.discarded_bytes), (2, 1, 2_048));
}

#[test]
fn an_unreliable_service_drops_no_packet_for_a_gap_before_it() {
    let mut lab = at_the_responder();
    lab.all([0, 2, 3].map(|psn| packet(A, 0x24, 0x21, psn))).finish();
    assert_eq!((lab.said(8).2, lab.said(9).2), ("out_of_sequence", "in_order"));
    assert_eq!((lab.channel(0).counts.discarded, lab.channel(1).counts.discarded), (1, 0));
}

#[test]
fn what_repeats_acknowledged_requests_after_a_short_silence_may_have_been_on_its_way() {
    for (wait, cause) in [(5 * MS, "unknown"), (15 * MS, "unknown"), (67 * MS, "timeout")] {
        let mut lab = Lab::default();
        lab.all([send(0), send(1), answer(ACK, 1)]).wait(wait).all([send(1), answer(ACK, 1)]).finish();
        assert_eq!(lab.said(4).1, cause, "{wait}");
    }
}

#[test]
fn a_read_asked_for_again_after_some_silence_is_a_timeout_only_where_no_gap_can_be_why() {
    let whole = |lab: &mut Lab| {
        lab.all([read(3, 4 * 1_024), data(0x0d, 3), data(0x0e, 4), data(0x0e, 5), data(0x0f, 6)]);
    };
    // Its requester may have seen a gap behind the tap, and have been slow.
    for (wait, cause) in [(2 * MS, "reissue"), (15 * MS, "unknown"), (67 * MS, "timeout")] {
        let mut lab = at_the_responder();
        whole(&mut lab);
        lab.wait(wait).see(read(4, 3 * 1_024)).finish();
        assert_eq!(lab.said(12), ("retransmit", cause, "duplicate"));
        let timeouts = u64::from(cause == "timeout");
        assert_eq!(lab.channel(0).counts.rewinds[Cause::Timeout as usize], timeouts);
        assert_eq!(lab.channel(0).counts.timeout_wait_ns > 0, cause == "timeout");
    }
    // Nothing came behind the one that it asks for.
    let mut lab = at_the_responder();
    whole(&mut lab);
    lab.wait(15 * MS).see(read(6, 1_024)).finish();
    assert_eq!(lab.said(12).1, "timeout");
}

#[test]
fn a_response_dropped_behind_a_gap_and_lost_the_next_time_does_not_put_the_tap_in_between() {
    let mut lab = Lab::default();
    // Number 11 is lost before the tap: what comes behind it is dropped. Then number 12 is.
    lab.all([read(10, 2 * 1_024), read(12, 3 * 1_024), data(0x0d, 10), data(0x0d, 12), data(0x0e, 13), data(0x0f, 14)]);
    lab.all([read(11, 1_024), read(12, 3 * 1_024), data(0x10, 11), data(0x0e, 13), data(0x0f, 14)]);
    lab.all([read(12, 3 * 1_024), data(0x0d, 12), data(0x0e, 13), data(0x0f, 14)]).finish();
    assert_eq!(lab.tap(0), Tap::Requester);
    let arrivals: Vec<_> = [9, 10, 11, 13, 14, 15].map(|frame_no| lab.said(frame_no).2).into();
    assert_eq!(arrivals, ["in_order", "unknown", "unknown", "in_order", "in_order", "in_order"]);
    let ends: Vec<_> = lab.events(0, RoceEventKind::GoBack).iter().map(|event| event.end_reason).collect();
    assert_eq!(ends, [Some("again"), Some("acknowledged")]);
}

#[test]
fn a_response_that_passed_in_its_place_and_is_asked_for_again_was_lost_behind_the_tap() {
    let mut lab = Lab::default();
    lab.all([read(10, 2 * 1_024), data(0x0d, 10), data(0x0f, 11), read(10, 2 * 1_024)]).finish();
    assert_eq!(lab.tap(0), Tap::Responder);
}

#[test]
fn a_lost_acknowledgement_is_told_as_that_and_ends_with_the_next_one() {
    let mut lab = Lab::default();
    lab.all((0..4).map(send)).see(answer(ACK, 3)).wait(67 * MS);
    for psn in 0..4 {
        lab.all([send(psn), answer(ACK, 3)]);
    }
    lab.finish();
    let back = lab.events(0, RoceEventKind::GoBack);
    assert_eq!((back.len(), back[0].count, back[0].end_reason), (1, 4, Some("acknowledged")));
    assert_eq!((back[0].start.frame_no, back[0].end_ns), (6, lab.time_ns));
    assert_eq!(back[0].unheeded_ack.map(|ack| ack.frame_no), Some(5));
    assert_eq!((lab.channel(0).counts.timeouts_after_ack, lab.tap(0)), (1, Tap::Responder));
    // Where the last packet is lost nothing says that all was acknowledged.
    let mut lab = Lab::default();
    lab.all([send(0), send(1), answer(ACK, 0)]).wait(67 * MS).all([send(1), answer(ACK, 1)]).finish();
    assert_eq!(lab.channel(0).counts.timeouts_after_ack, 0);
    assert!(lab.events(0, RoceEventKind::GoBack)[0].unheeded_ack.is_none());
}

#[test]
fn tries_that_are_acknowledged_each_time_are_not_unanswered() {
    let mut lab = Lab::default();
    lab.all([send(5), answer(ACK, 5)]);
    for _ in 0..3 {
        lab.wait(67 * MS).all([send(5), answer(ACK, 5)]);
    }
    lab.wait(900 * MS).see(send(1).for_qp(0x77)).finish();
    assert!(lab.events(0, RoceEventKind::Unanswered).is_empty());
    let back = lab.events(0, RoceEventKind::GoBack);
    assert_eq!((back.len(), back[0].tries, back[0].end_reason), (1, Some(3), Some("acknowledged")));
}

#[test]
fn where_nothing_answers_there_is_no_latency() {
    let mut lab = Lab::default();
    let mut datagram = packet(A, 0x64, 0x20, 0);
    datagram.packet.deth = Some((0x1111, 5));
    // A datagram, and a message of two packets on an unreliable connection.
    lab.all([datagram, packet(A, 0x20, 0x21, 0), packet(A, 0x22, 0x21, 1)]).finish();
    let told: Vec<_> = lab.messages.iter().map(|m| (m.completion.name(), m.latency_ns(), m.done.is_some())).collect();
    assert_eq!(told, [("sent", None, true); 2]);
    assert!(lab.fabric.channels().all(|channel| channel.latency.is_none()));
}

/// A packet of a WRITE of three packets that begins with number `first`.
fn write_part(first: u32, at: u32) -> Craft {
    let mut craft = packet(A, [0x06, 0x07, 0x08][at as usize], 0x20, first + at).id((100 + first + at) as u16);
    craft.packet.reth = (at == 0).then_some((0x1000, 7, 3_072));
    craft
}

#[test]
fn a_message_whose_first_packet_is_late_ends_where_that_says() {
    let mut lab = Lab::default();
    // Its first packet comes second, its last behind the second one of the next, whose first is late as well.
    lab.all([write_part(0, 0), write_part(0, 1), write_part(0, 2)]);
    lab.all([write_part(3, 1), write_part(3, 0), write_part(6, 1), write_part(3, 2)]);
    lab.all([write_part(6, 0), write_part(6, 2), answer(ACK, 8)]).finish();
    let told = lab.messages.iter().map(|message| (message.psn.get(), message.payload_bytes, message.is_whole()));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(0, 3_072, true), (3, 3_072, true), (6, 3_072, true)]);
}
