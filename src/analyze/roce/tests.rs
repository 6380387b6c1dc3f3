//! Crafted packets between two hosts: one fact each.

mod again;
mod overtaken;

use super::fabric::Outs;
use super::message::Message;
use super::types::*;
use super::{Channel, Fabric, NO_MESSAGE, RoceEvent, RoceEventKind, Tap};
use crate::analyze::{HoldLimits, Mark, Moment};
use crate::wire::{CmKind, CmMessage, Ip, RocePacket};

const MS: i64 = 1_000_000;
const A: u8 = 1;
const B: u8 = 2;
const ACK: u8 = 0x1f;
const SEQUENCE_NAK: u8 = 0x60;

/// Two hosts and what is said of the packets between them.
#[derive(Default)]
struct Lab {
    fabric: Fabric,
    time_ns: i64,
    packets: u64,
    ids: [u16; 4],
    judged: Vec<RoceJudgement>,
    messages: Vec<Message>,
    placed: Vec<(u32, u64)>,
    moved: Vec<(u64, u64, usize)>,
}

/// A packet to be filled in.
#[derive(Clone)]
struct Craft {
    from: u8,
    to: u8,
    ip_id: Option<u16>,
    if_index: u32,
    traffic_class: u8,
    is_icrc_bad: bool,
    packet: RocePacket,
    cm: Option<CmMessage>,
}

fn packet(from: u8, opcode: u8, dest_qp: u32, psn: u32) -> Craft {
    let to = if from == A { B } else { A };
    let packet = RocePacket { opcode, dest_qp, psn: psn & 0xff_ffff, payload_bytes: 1_024, ..RocePacket::default() };
    Craft { from, to, ip_id: None, if_index: 0, traffic_class: 0x6a, is_icrc_bad: false, packet, cm: None }
}

/// A SEND of one packet, to queue pair 0x20 unless `qp` says otherwise.
fn send(psn: u32) -> Craft {
    packet(A, 0x04, 0x20, psn)
}

fn read(psn: u32, bytes: u32) -> Craft {
    let mut craft = packet(A, 0x0c, 0x20, psn);
    (craft.packet.reth, craft.packet.payload_bytes) = (Some((0x1000, 7, bytes)), 0);
    craft
}

fn answer(syndrome: u8, psn: u32) -> Craft {
    let mut craft = packet(B, 0x11, 0x10, psn);
    (craft.packet.aeth, craft.packet.payload_bytes) = (Some((syndrome, 0)), 0);
    craft
}

impl Craft {
    fn for_qp(mut self, qp: u32) -> Self {
        self.packet.dest_qp = qp;
        self
    }

    fn id(mut self, id: u16) -> Self {
        self.ip_id = Some(id);
        self
    }

    fn bytes(mut self, bytes: u32) -> Self {
        self.packet.payload_bytes = bytes;
        self
    }
}

impl Lab {
    fn of(limits: HoldLimits, endpoints: &[RoceEndpoint]) -> Self {
        Self { fabric: Fabric::new(limits, endpoints), ..Self::default() }
    }

    /// Lets a packet pass the tap 10 microseconds after the one before. Identifications count up unless given.
    fn see(&mut self, craft: Craft) -> &mut Self {
        self.time_ns += 10_000;
        let next = &mut self.ids[usize::from(craft.from)];
        let ip_id = craft.ip_id.unwrap_or_else(|| {
            *next += 1;
            *next
        });
        let ip = |host: u8| Ip::v4([10, 0, 0, host]);
        let (row, frame_no) = (self.packets, self.packets + 1);
        self.packets += 1;
        self.fabric.on_packet(&RoceSeen {
            row,
            at: row as u32,
            moment: Moment { ns: self.time_ns, frame: row },
            mark: Mark { file: 0, frame_no, time_ns: self.time_ns },
            src_ip: ip(craft.from),
            dst_ip: ip(craft.to),
            interface: 0,
            vni: None,
            if_index: craft.if_index,
            ip_id: Some(ip_id),
            ttl: 64,
            traffic_class: craft.traffic_class,
            pcp: None,
            is_from_us: None,
            packet: &craft.packet,
            is_icrc_bad: craft.is_icrc_bad,
            is_checksum_bad: false,
            is_proven: !craft.is_icrc_bad,
            cm: craft.cm.as_ref(),
        });
        self.collect();
        self
    }

    fn all(&mut self, crafts: impl IntoIterator<Item = Craft>) -> &mut Self {
        for craft in crafts {
            self.see(craft);
        }
        self
    }

    fn wait(&mut self, time_ns: i64) -> &mut Self {
        self.time_ns += time_ns;
        self
    }

    fn collect(&mut self) {
        let fresh: Vec<u64> = self.fabric.out.fresh.iter().map(|(at, _, _)| u64::from(*at)).collect();
        self.fabric.number_messages(&fresh);
        let Outs { judgements, placed, moved, finished, .. } = std::mem::take(&mut self.fabric.out);
        self.judged.extend(judgements);
        self.moved.extend(moved);
        self.placed.extend(placed.iter().map(|placed| (placed.at, placed.message)));
        self.messages.extend(finished.into_iter().map(|done| done.message));
    }

    fn finish(&mut self) -> &mut Self {
        self.fabric.finish(self.time_ns);
        self.collect();
        self.judged.sort_by_key(|judgement| judgement.row);
        self.messages.sort_by_key(|message| message.id);
        self
    }

    /// `sent`, `cause` and `arrival` of the packet in a frame.
    fn said(&self, frame_no: u64) -> (&str, &str, &str) {
        let of_row = |judgement: &&RoceJudgement| judgement.row == frame_no - 1;
        let judgement = self.judged.iter().find(of_row).unwrap_or_else(|| panic!("frame {frame_no} is not judged"));
        (
            judgement.sent.map_or("", Sent::name),
            judgement.cause.map_or("", Cause::name),
            judgement.arrival.map_or("", Arrival::name),
        )
    }

    fn channel(&self, at: u32) -> &Channel {
        self.fabric.channel(at).unwrap_or_else(|| panic!("no queue pair {at}"))
    }

    fn tap(&self, at: u32) -> Tap {
        self.fabric.tap(self.channel(at))
    }

    fn events(&self, at: u32, kind: RoceEventKind) -> Vec<&RoceEvent> {
        self.channel(at).story.events().filter(|event| event.kind == kind).collect()
    }
}

#[test]
fn numbers_wrap_within_a_message_and_a_read_takes_one_for_each_packet_of_its_response() {
    let mut lab = Lab::default();
    let part = |opcode, psn: u32| packet(A, opcode, 0x20, psn);
    lab.all([part(0x00, 0xff_fffe), part(0x01, 0xff_ffff), part(0x02, 0), answer(ACK, 0)]);
    lab.see(read(1, 3 * 1_024));
    let data = |opcode, psn| packet(B, opcode, 0x10, psn);
    lab.all([data(0x0d, 1), data(0x0e, 2), data(0x0f, 3)]);
    lab.all([send(4), answer(ACK, 4)]).finish();
    for frame_no in [1, 2, 3, 5, 9] {
        assert_eq!(lab.said(frame_no), ("new", "", "in_order"), "frame {frame_no}");
    }
    let told: Vec<_> =
        lab.messages.iter().map(|m| (m.psn.get(), m.last_psn().get(), m.payload_bytes, m.completion.name())).collect();
    let expected = [(0xff_fffe, 0, 3_072, "acknowledged"), (1, 3, 3_072, "response"), (4, 4, 1_024, "acknowledged")];
    assert_eq!(told, expected);
    assert!(lab.messages.iter().all(Message::is_whole));
    assert_eq!((lab.channel(0).path_mtu, lab.channel(0).counts.resent_total()), (Some(1_024), 0));
}

#[test]
fn one_acknowledgement_covers_many_requests() {
    let mut lab = Lab::default();
    lab.all((0..40).map(send)).see(answer(ACK, 39)).finish();
    assert!((1..=40).all(|frame_no| lab.said(frame_no) == ("new", "", "in_order")));
    assert!(lab.messages.iter().all(|message| message.done.is_some_and(|done| done.frame_no == 41)));
    // The acknowledgement belongs to the message whose packet it names.
    assert_eq!(lab.placed.last(), Some(&(40, 39)));
}

#[test]
fn at_the_requester_a_nak_sends_it_back_and_how_things_arrived_is_not_known() {
    let mut lab = Lab::default();
    lab.all((0..6).map(send)).see(answer(SEQUENCE_NAK, 2)).see(send(6));
    lab.all((2..7).map(send)).see(answer(ACK, 6)).finish();
    assert_eq!((lab.said(1), lab.said(2)), (("new", "", "in_order"), ("new", "", "in_order")));
    for frame_no in [3, 4, 5, 6, 8] {
        assert_eq!(lab.said(frame_no), ("new", "", "unknown"), "frame {frame_no}");
    }
    for frame_no in 9..=13 {
        assert_eq!(lab.said(frame_no), ("retransmit", "nak", "unknown"), "frame {frame_no}");
    }
    assert_eq!(lab.tap(0), Tap::Requester);
    let back = lab.events(0, RoceEventKind::GoBack);
    assert_eq!(
        (back.len(), back[0].count, back[0].bytes, back[0].end_reason),
        (1, 5, Some(5_120), Some("acknowledged"))
    );
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.rewinds[Cause::Nak as usize], counts.sequence_naks), (1, 1));
}

#[test]
fn at_the_responder_a_gap_is_counted_once_and_what_follows_it_is_out_of_sequence() {
    let mut lab = Lab::default();
    // Number 2 is lost before the tap.
    lab.all([0, 1, 3, 4, 5].map(send)).see(answer(SEQUENCE_NAK, 2));
    lab.all((2..6).map(|psn| send(psn).id(200 + psn as u16))).see(answer(ACK, 5)).finish();
    let arrivals: Vec<_> = [1, 2, 3, 4, 5, 7, 8, 9, 10].map(|frame_no| lab.said(frame_no).2).into();
    let (order, out) = ("in_order", "out_of_sequence");
    assert_eq!(arrivals, [order, order, out, out, out, order, order, order, order]);
    assert_eq!(lab.said(7), ("retransmit", "nak", order));
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.gaps, counts.discarded, counts.discarded_bytes), (1, 3, 3_072));
    assert_eq!(lab.tap(0), Tap::Responder);
}

#[test]
fn a_receiver_that_is_not_ready_refuses_and_no_gap_is_seen_behind_the_refusal() {
    let mut lab = Lab::default();
    lab.all([send(7), answer(0x2e, 7)]).wait(2 * MS).all([send(7), answer(0x2e, 7)]).wait(2 * MS);
    lab.all([send(7), answer(ACK, 7)]).finish();
    assert_eq!(lab.said(1), ("new", "", "in_order"));
    assert_eq!(lab.said(3), ("retransmit", "rnr", "in_order"));
    assert_eq!(lab.said(5).1, "rnr");
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.rnr_naks, counts.rewinds[Cause::Rnr as usize], counts.duplicates), (2, 2, 0));
    let rnr = lab.events(0, RoceEventKind::Rnr);
    assert_eq!((rnr.len(), rnr[0].count, rnr[0].wait_ns, rnr[0].end_reason), (1, 2, Some(1_280_000), Some("accepted")));
    assert!(lab.events(0, RoceEventKind::GoBack).is_empty());
}

#[test]
fn a_read_with_a_gap_in_its_response_is_asked_for_again_from_there() {
    let mut lab = Lab::default();
    let data = |opcode, psn| packet(B, opcode, 0x10, psn);
    lab.all([read(10, 8 * 1_024), data(0x0d, 10), data(0x0e, 11), data(0x0e, 13), data(0x0e, 14)]);
    lab.see(read(12, 6 * 1_024));
    lab.all([data(0x0d, 12), data(0x0e, 13), data(0x0e, 14), data(0x0e, 15), data(0x0e, 16), data(0x0f, 17)]);
    lab.finish();
    assert_eq!(lab.said(6), ("retransmit", "reissue", "unknown"));
    // The requester's tap sees the gap: 12 was lost before it.
    assert_eq!(lab.tap(0), Tap::Requester);
    assert_eq!((lab.said(4).2, lab.said(7).2), ("unknown", "in_order"));
    let message = &lab.messages[0];
    assert_eq!((lab.messages.len(), message.payload_bytes, message.completion.name()), (1, 8 * 1_024, "response"));
    assert_eq!((message.last_psn().get(), message.resent[Cause::Reissue as usize]), (17, 1));
}

#[test]
fn silence_before_it_makes_a_repetition_a_timeout_and_tries_without_end_go_unanswered() {
    let mut lab = Lab::default();
    lab.see(send(5));
    for _ in 0..4 {
        lab.wait(67 * MS).see(send(5));
    }
    lab.finish();
    assert!((2..=5).all(|frame_no| lab.said(frame_no) == ("retransmit", "timeout", "unknown")));
    let tries = lab.events(0, RoceEventKind::Unanswered);
    assert_eq!((tries.len(), tries[0].tries, tries[0].end_reason), (1, Some(4), Some("capture_end")));
    // Longer without a try than ever between two: it has likely given up.
    let mut lab = Lab::default();
    lab.all([send(5)]).wait(67 * MS).all([send(5)]).wait(67 * MS).all([send(5)]).wait(900 * MS);
    lab.see(send(1).for_qp(0x77)).finish();
    assert_eq!(lab.events(0, RoceEventKind::Unanswered)[0].end_reason, Some("gave_up"));
}

#[test]
fn the_time_that_timeouts_cost_is_from_the_last_sign_of_life_or_the_sending_and_counted_once() {
    let mut lab = Lab::default();
    lab.see(send(5));
    for _ in 0..4 {
        lab.wait(67 * MS).see(send(5));
    }
    lab.finish();
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.timeout_wait_ns, counts.longest_timeout_wait_ns), (4 * 67_010_000, 67_010_000));
    assert_eq!(lab.events(0, RoceEventKind::Unanswered)[0].wait_ns, Some(67_010_000));
    // A queue pair that had nothing to send did not wait.
    let mut lab = Lab::default();
    lab.all([send(0), answer(ACK, 0)])
        .wait(5_000 * MS)
        .all([send(1)])
        .wait(67 * MS)
        .all([send(1), answer(ACK, 1)])
        .finish();
    assert_eq!(lab.channel(0).counts.timeout_wait_ns, 67_010_000);
    assert_eq!(lab.events(0, RoceEventKind::GoBack)[0].wait_ns, Some(67_010_000));
    // What a NAK repairs costs no timeout.
    let mut lab = Lab::default();
    lab.all([send(0), send(1), send(2), answer(SEQUENCE_NAK, 1), send(1), send(2), answer(ACK, 2)]).finish();
    assert_eq!((lab.channel(0).counts.timeout_wait_ns, lab.channel(0).counts.resent_total()), (0, 2));
}

#[test]
fn latency_is_from_the_first_packet_of_a_message_to_its_completion() {
    let mut lab = Lab::default();
    lab.all([send(0), answer(ACK, 0), send(1)]).wait(3 * MS).all([answer(ACK, 1), send(2)]).finish();
    let latency = lab.channel(0).latency.as_ref().unwrap();
    // 10 us, and 3 ms more; the one without an answer has none.
    assert_eq!((latency.at_ns(500), latency.at_ns(1_000)), (Some(10_000), Some(3_010_000)));
    // Nor has one that is refused.
    let mut lab = Lab::default();
    lab.all([send(0), answer(0x62, 0)]).finish();
    assert_eq!((lab.messages[0].completion.name(), lab.messages[0].latency_ns()), ("failed", None));
    assert!(lab.channel(0).latency.is_none());
    assert_eq!(lab.channel(0).counts.fatal_by_code, [0, 0, 1, 0, 0]);
}

#[test]
fn a_nak_that_brings_no_step_back_is_not_why_the_timer_does_later() {
    let mut lab = Lab::default();
    lab.all([send(0), send(1), send(2), answer(SEQUENCE_NAK, 1)]).wait(2_000 * MS);
    lab.all([send(1), send(2), answer(ACK, 2)]).finish();
    assert_eq!((lab.said(5).1, lab.said(6).1), ("timeout", "timeout"));
    // But it had asked for just that.
    let back = lab.events(0, RoceEventKind::GoBack);
    assert_eq!((back[0].cause, back[0].unheeded_nak.map(|nak| nak.frame_no)), (Some("timeout"), Some(4)));
    assert_eq!(lab.channel(0).counts.timeouts_after_nak, 1);
    // One of another packet had not, and one that is heeded leaves nothing.
    let mut lab = Lab::default();
    lab.all([send(0), send(1), send(2), answer(SEQUENCE_NAK, 1), send(1), send(2)]).wait(2_000 * MS);
    lab.all([send(1), send(2), answer(ACK, 2)]).finish();
    assert_eq!((lab.said(7).1, lab.channel(0).counts.timeouts_after_nak), ("timeout", 0));
    assert!(lab.events(0, RoceEventKind::GoBack).iter().all(|back| back.unheeded_nak.is_none()));
}

#[test]
fn the_same_identification_means_that_the_network_copied_the_packet() {
    let mut lab = Lab::default();
    lab.all([send(0).id(50), send(1).id(51), send(1).id(51), send(2).id(52), answer(ACK, 2)]).finish();
    assert_eq!(lab.said(3), ("network_duplicate", "", "duplicate"));
    assert_eq!(lab.said(4), ("new", "", "in_order"));
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.network_duplicates, counts.resent_total(), counts.duplicates), (1, 0, 1));
    // Nobody went back: it is no waste of that.
    assert_eq!((counts.discarded, counts.discarded_bytes), (0, 0));
}

#[test]
fn copies_made_by_the_capture_are_no_duplicates_of_the_network() {
    // All devices of a host: each packet on two of them.
    let mut lab = Lab::default();
    for psn in 0..3 {
        let first = Craft { if_index: 4, ..send(psn).id(50 + psn as u16) };
        lab.all([first.clone(), Craft { if_index: 7, ..first }]);
    }
    lab.see(answer(ACK, 2)).finish();
    assert_eq!((lab.said(1), lab.said(2)), (("new", "", "in_order"), ("capture_duplicate", "", "")));
    assert_eq!(lab.channel(0).counts.network_duplicates, 0);
    // A mirror port gives every packet twice; the network copies a few.
    let mut lab = Lab::default();
    for psn in 0..20 {
        lab.all([send(psn).id(50 + psn as u16), send(psn).id(50 + psn as u16)]);
    }
    lab.finish();
    assert_eq!((lab.said(2), lab.said(40).0), (("unknown", "", "unknown"), "capture_duplicate"));
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.network_duplicates, counts.request_bytes), (0, 20 * 1_024));
}

#[test]
fn an_original_that_was_overtaken_is_no_repetition() {
    let mut lab = Lab::default();
    lab.all([send(0).id(50), send(2).id(52), send(1).id(51), answer(SEQUENCE_NAK, 1)]);
    lab.all([send(2).id(53), answer(ACK, 2)]).finish();
    assert_eq!(lab.said(2), ("new", "", "out_of_sequence"));
    assert_eq!(lab.said(3), ("new", "", "in_order"));
    assert_eq!(lab.said(5).0, "retransmit");
}

#[test]
fn a_repetition_that_overtakes_its_original_is_still_the_repetition() {
    let mut lab = Lab::default();
    lab.all([send(0).id(50), send(1).id(60), send(1).id(51), answer(ACK, 1)]).finish();
    assert_eq!((lab.said(2).0, lab.said(3).0), ("retransmit", "new"));
    assert_eq!((lab.channel(0).counts.resent_total(), lab.channel(0).counts.request_bytes), (1, 2_048));
}

#[test]
fn a_damaged_packet_counts_for_nothing_and_its_repetition_is_taken() {
    let mut lab = Lab::default();
    let damaged = Craft { is_icrc_bad: true, ..send(1) };
    lab.all([send(0), damaged, send(2), answer(SEQUENCE_NAK, 1), send(1), send(2), answer(ACK, 2)]).finish();
    assert_eq!(lab.said(2), ("", "", "damaged"));
    assert_eq!((lab.said(3).2, lab.said(5)), ("out_of_sequence", ("retransmit", "nak", "in_order")));
    assert_eq!(lab.placed[1], (1, NO_MESSAGE));
}

#[test]
fn a_notification_of_either_code_is_matched_to_the_queue_pair_it_slows() {
    for opcode in [0x80, 0x81] {
        let mut lab = Lab::default();
        let marked = |psn| Craft { traffic_class: 0x6b, ..send(psn) };
        lab.all([send(0), answer(ACK, 0), marked(1), marked(2)]).wait(MS);
        let notification = Craft { traffic_class: 0xc2, ..packet(B, opcode, 0x10, 0).bytes(16) };
        lab.all([notification, answer(ACK, 2)]).finish();
        let channel = lab.channel(0);
        assert_eq!((channel.counts.ce, channel.counts.notifications), (2, 1), "{opcode:x}");
        assert_eq!(channel.notification_class, Some(6));
        // From the first mark: 10 microseconds between packets.
        let delay = channel.story.notification_delay.as_ref().and_then(|delay| delay.min_ns());
        assert_eq!(delay, Some(MS + 20_000));
        assert_eq!(lab.events(0, RoceEventKind::Congestion)[0].count, 2);
        assert_eq!(lab.events(0, RoceEventKind::Notification)[0].frames.list(), [5]);
    }
}

#[test]
fn acknowledgements_pair_queue_pairs_whose_numbers_lie_apart_and_say_how_sure_that_is() {
    let mut lab = Lab::default();
    let ack = |qp, psn| answer(ACK, psn).for_qp(qp);
    for step in 0..4 {
        lab.all([send(1_000 + step).for_qp(0x20), send(500_000 + step).for_qp(0x21)]);
        lab.all([ack(0x11, 500_000 + step), ack(0x10, 1_000 + step)]);
    }
    lab.finish();
    let told = |at| (lab.channel(at).ends.requester_qp, lab.channel(at).paired_by, lab.channel(at).confidence());
    assert_eq!(told(0), (Some(0x10), PairedBy::Psn, Some("high")));
    assert_eq!(told(1), (Some(0x11), PairedBy::Psn, Some("high")));
}

#[test]
fn queue_pairs_that_all_begin_at_number_0_are_paired_by_equal_numbers_with_low_confidence() {
    let mut lab = Lab::default();
    lab.all([send(0).for_qp(0x20), send(0).for_qp(0x21), send(0).for_qp(0x22)]);
    lab.see(answer(ACK, 0).for_qp(0x21)).finish();
    assert_eq!(lab.channel(1).paired_by, PairedBy::SameNumber);
    assert_eq!((lab.channel(1).confidence(), lab.channel(0).confidence()), (Some("low"), None));
}

#[test]
fn the_connection_manager_pairs_both_directions_and_tells_where_numbers_begin() {
    let mut lab = Lab::default();
    let blank = CmMessage {
        kind: CmKind::Req,
        transaction_id: 1,
        local_comm_id: 100,
        remote_comm_id: None,
        service_id: None,
        local_qpn: Some(0x10),
        starting_psn: Some(9_000),
        path_mtu_bytes: Some(1_024),
        reject_reason: None,
    };
    let mad = |from, message| {
        let mut craft = packet(from, 0x64, 1, 0).bytes(256);
        (craft.packet.deth, craft.cm) = (Some((0x8001_0000, 1)), Some(message));
        craft
    };
    let reply = CmMessage {
        kind: CmKind::Rep,
        local_comm_id: 200,
        remote_comm_id: Some(100),
        local_qpn: Some(0x20),
        starting_psn: Some(4_000),
        path_mtu_bytes: None,
        ..blank
    };
    let ready = CmMessage { kind: CmKind::Rtu, remote_comm_id: Some(200), local_qpn: None, ..blank };
    lab.all([mad(A, blank), mad(B, reply), mad(A, ready)]);
    // The first request, number 4000, is lost before the tap.
    lab.all([send(4_001), packet(B, 0x04, 0x10, 9_000)]).finish();
    let told = |at| (lab.channel(at).ends.requester_qp, lab.channel(at).paired_by, lab.channel(at).path_mtu);
    assert_eq!(told(2), (Some(0x10), PairedBy::Cm, Some(1_024)));
    assert_eq!(told(3), (Some(0x20), PairedBy::Cm, Some(1_024)));
    let gap = lab.judged.iter().find(|judgement| judgement.row == 3).unwrap().evidence;
    assert_eq!(gap.0 & Evidence::PSN_GAP.0, Evidence::PSN_GAP.0);
    let connect = lab.events(0, RoceEventKind::Connect);
    assert_eq!((connect.len(), connect[0].ends, connect[0].frames.list()), (1, Some((0x10, 0x20)), &[1, 2, 3][..]));
}

#[test]
fn a_log_that_names_both_ends_pairs_them_for_certain() {
    let end = |host, qpn, psn| RoceEndpoint {
        ip: Ip::v4([10, 0, 0, host]),
        qpn,
        psn,
        rkey: None,
        vaddr: None,
        peer_qpn: None,
    };
    let mut lab = Lab::of(
        HoldLimits::default(),
        &[end(A, 0x10, 300), end(B, 0x20, 90_000), end(A, 0x11, 700_000), end(B, 0x21, 5)],
    );
    lab.all([send(300), send(700_000).for_qp(0x21)]).finish();
    let told = |at| (lab.channel(at).ends.requester_qp, lab.channel(at).paired_by, lab.channel(at).confidence());
    assert_eq!(told(0), (Some(0x10), PairedBy::Log, Some("certain")));
    assert_eq!(told(1), (Some(0x11), PairedBy::Log, Some("certain")));
    // A capture that began in the middle, or a log of another run with the same queue pairs: their numbers cannot tell which.
    let pair = |host, qpn, psn, peer| RoceEndpoint { peer_qpn: Some(peer), ..end(host, qpn, psn) };
    let log = [pair(A, 0x10, 300, 0x20), pair(B, 0x20, 9, 0x10), pair(A, 0x11, 500_000, 0x21), pair(B, 0x21, 5, 0x11)];
    let mut lab = Lab::of(HoldLimits::default(), &log);
    lab.all([send(480_000), send(20_000).for_qp(0x21)]).finish();
    assert_eq!([0, 1].map(|at| lab.channel(at).paired_by), [PairedBy::None; 2]);
    // A key that is not the peer's, or numbers far from those of the log, are another connection's.
    let mut lab = Lab::of(HoldLimits::default(), &log);
    lab.all([send(9_000_000)]).finish();
    assert_eq!(lab.channel(0).paired_by, PairedBy::None);
}

#[test]
fn what_is_acknowledged_and_was_never_seen_was_lost_by_the_capture() {
    let mut lab = Lab::default();
    lab.all([send(0), answer(ACK, 0), send(1), answer(ACK, 5), send(6), answer(ACK, 6)]).finish();
    assert_eq!(lab.channel(0).counts.not_captured, 4);
    assert_eq!(lab.said(5), ("new", "", "in_order"));
    assert_eq!(lab.events(0, RoceEventKind::CaptureLoss)[0].count, 4);
    assert_eq!(lab.channel(0).counts.gaps, 0);
}

#[test]
fn packets_that_arrive_out_of_order_and_are_acknowledged_were_not_lost() {
    // A receiver that puts packets in order itself, as with adaptive routing.
    let mut lab = Lab::default();
    lab.all([send(0).id(50), send(2).id(52), send(1).id(51), answer(ACK, 2), send(3).id(53), answer(ACK, 3)]).finish();
    assert_eq!(lab.said(5), ("new", "", "in_order"));
    let counts = &lab.channel(0).counts;
    assert_eq!((counts.resent_total(), counts.not_captured), (0, 0));
}

#[test]
fn a_number_far_off_begins_another_connection_on_the_same_queue_pair() {
    let mut lab = Lab::default();
    lab.all([send(10), answer(ACK, 10), send(9_000_000), answer(ACK, 9_000_000)]).finish();
    let channels: Vec<_> = lab.fabric.channels().map(|channel| channel.counts.requests).collect();
    assert_eq!(channels, [1, 1]);
}

#[test]
fn a_refusal_for_good_fails_the_message_and_is_told() {
    let mut lab = Lab::default();
    lab.all([send(0), answer(0x62, 0)]).finish();
    assert_eq!(lab.messages[0].completion.name(), "failed");
    let refused = lab.events(0, RoceEventKind::Refused);
    assert_eq!((refused.len(), refused[0].cause), (1, Some("remote_access")));
}

#[test]
fn datagrams_are_paired_by_their_headers_and_never_sent_again() {
    let mut lab = Lab::default();
    let datagram = |source, psn| {
        let mut craft = packet(A, 0x64, 0x20, psn);
        craft.packet.deth = Some((0x1111, source));
        craft
    };
    // Numbers count packets to all destinations.
    lab.all([datagram(5, 0), datagram(6, 0), datagram(5, 9), datagram(5, 3)]).finish();
    let told: Vec<_> = lab.fabric.channels().map(|c| (c.ends.requester_qp, c.counts.requests)).collect();
    assert_eq!(told, [(Some(5), 3), (Some(6), 1)]);
    assert!((1..=4).all(|frame_no| lab.said(frame_no) == ("new", "", "unknown")));
    assert!(lab.messages.iter().all(|message| message.completion.name() == "sent"));
}

#[test]
fn what_waits_too_long_is_judged_with_what_is_known() {
    let mut lab = Lab::of(HoldLimits { rows: 1_000, time_ns: 10_000 * MS }, &[]);
    lab.all([send(0), send(1)]);
    let first = Moment { ns: lab.time_ns - 10_000, frame: 0 };
    for (after_ns, frames, judged) in [(10_000 * MS, 1_000, 0), (10_000 * MS + 1, 2, 1), (1, 1_001, 1), (1, 1_002, 2)] {
        lab.fabric.rest(Moment { ns: first.ns + after_ns, frame: first.frame + frames });
        lab.collect();
        assert_eq!(lab.judged.len(), judged, "{after_ns} {frames}");
    }
    assert_eq!((lab.said(1), lab.said(2)), (("new", "", "unknown"), ("new", "", "unknown")));
}
