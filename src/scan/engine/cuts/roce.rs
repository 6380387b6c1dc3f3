//! The same of RoCE: what waits for answers, messages that rest, and what is known of the tap by then.

use super::*;
use crate::wire::icrc::icrc_ipv4;

const ROCE: [TableId; 6] = [
    TableId::Roce,
    TableId::RoceQps,
    TableId::RoceMessages,
    TableId::RoceIntervals,
    TableId::RoceEvents,
    TableId::CaptureQuality,
];

const SEND: u8 = 0x04;
const READ: u8 = 0x0c;
const READ_RESPONSE: u8 = 0x10;
const ACKNOWLEDGE: u8 = 0x11;
const NOTIFICATION: u8 = 0x81;
const UNRELIABLE: u8 = 0x20;

/// Syndromes of the responder.
const TAKEN: u8 = 0x1f;
const NOT_READY: u8 = 0x20;
const SEQUENCE_NAK: u8 = 0x60;

/// A packet to be sent.
#[derive(Clone, Copy)]
struct Packet {
    from: u8,
    to: u8,
    opcode: u8,
    qp: u32,
    psn: u32,
    /// Of an answer its syndrome, of a READ the bytes asked for.
    detail: u32,
    is_marked: bool,
    has_good_header: bool,
    has_good_icrc: bool,
}

/// A request from host 1 to queue pair 0x20 of host 2, which host 2 answers to queue pair 0x10.
fn request(opcode: u8, psn: u32) -> Packet {
    Packet {
        from: 1,
        to: 2,
        opcode,
        qp: 0x20,
        psn,
        detail: 512,
        is_marked: false,
        has_good_header: true,
        has_good_icrc: true,
    }
}

fn send(psn: u32) -> Packet {
    request(SEND, psn)
}

fn answer(syndrome: u8, psn: u32) -> Packet {
    Packet { from: 2, to: 1, qp: 0x10, detail: u32::from(syndrome), ..request(ACKNOWLEDGE, psn) }
}

impl Packet {
    fn to_qp(self, qp: u32) -> Self {
        Self { qp, ..self }
    }
}

fn roce_tape() -> Tape {
    Tape { tables: &ROCE, ..Tape::default() }
}

impl Tape {
    fn roce(&mut self, packet: Packet) {
        let id = 1 + self.packets.len() as u16;
        self.roce_with(packet, id);
    }

    /// IPv4 with its checksum, UDP without, payload and invariant CRC.
    fn roce_with(&mut self, packet: Packet, id: u16) {
        let Packet { from, to, opcode, qp, psn, detail, .. } = packet;
        let mut transport = vec![opcode, 0, 0xff, 0xff];
        transport.extend([qp, psn & 0xff_ffff].map(u32::to_be_bytes).concat());
        match opcode & 0x1f {
            READ => {
                transport.extend([0, 0x1000, 7, detail].map(u32::to_be_bytes).concat());
            }
            READ_RESPONSE | ACKNOWLEDGE => transport.extend((detail << 24).to_be_bytes()),
            _ => {}
        }
        if matches!(opcode & 0x1f, 0..=SEND | READ_RESPONSE) {
            transport.extend([0xab; 256]);
        }
        let mut ip =
            [0x45, 2 | u8::from(packet.is_marked), 0, 0, 0, 0, 0x40, 0, 60, 17, 0, 0, 10, 0, 1, from, 10, 0, 1, to];
        ip[2..4].copy_from_slice(&(20 + 8 + 4 + transport.len() as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        let sum: u32 = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16) ^ u16::from(!packet.has_good_header);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut udp = [0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0];
        udp[4..6].copy_from_slice(&(8 + 4 + transport.len() as u16).to_be_bytes());
        let icrc = icrc_ipv4(&ip, &udp, &transport) ^ u32::from(!packet.has_good_icrc);
        let mut bytes = ip.to_vec();
        bytes.extend(udp);
        bytes.extend(transport);
        bytes.extend(icrc.to_le_bytes());
        let length = bytes.len() as u32;
        self.packets.push((self.now_ns, bytes, length));
        self.now_ns += 1;
    }
}

fn of(rows: &Rows, table: TableId) -> Vec<&RecordBatch> {
    rows.iter().filter(|(other, _)| *other == table).map(|(_, row)| row).collect()
}

fn values(rows: &Rows, table: TableId, column: &str) -> Vec<String> {
    of(rows, table).into_iter().map(|row| value(row, column)).collect()
}

const LIMITS: (u64, i64) = (100, 10 * SECOND);

#[test]
fn an_acknowledgement_of_a_request_counts_up_to_the_limits_and_never_beyond() {
    for (wait_ns, frames, is_counted) in [
        (10 * SECOND, 99, true),
        (10 * SECOND + 1, 0, false),
        (30 * SECOND, 0, false),
        (SECOND, 99, true),
        (SECOND, 100, false),
        (SECOND, 150, false),
    ] {
        let mut tape = roce_tape();
        tape.roce(send(0));
        tape.filler(frames);
        tape.now_ns = wait_ns;
        tape.roce(answer(TAKEN, 0));
        let rows = read_in_any_pieces(&tape, LIMITS, &format!("{wait_ns} {frames}"));
        let said = &values(&rows, TableId::Roce, "arrival")[0];
        assert_eq!(said, if is_counted { "in_order" } else { "unknown" }, "{wait_ns} {frames}");
        // The message itself was taken all the same.
        assert_eq!(values(&rows, TableId::RoceMessages, "completion"), ["acknowledged"]);
    }
}

#[test]
fn a_repetition_belongs_to_its_message_until_the_queue_pair_has_been_quiet_for_longer_than_the_limit() {
    for (wait_ns, is_known) in [(3 * SECOND, true), (10 * SECOND, true), (10 * SECOND + 1, false)] {
        for is_acknowledged in [false, true] {
            let mut tape = roce_tape();
            tape.roce(send(0));
            if is_acknowledged {
                tape.roce(answer(TAKEN, 0));
            }
            tape.now_ns += wait_ns - 1;
            tape.roce(send(0));
            tape.roce(answer(TAKEN, 0));
            let what = format!("{wait_ns} {is_acknowledged}");
            let rows = read_in_any_pieces(&tape, LIMITS, &what);
            // What nothing answered stays open for as long as it takes.
            let is_one = is_known || !is_acknowledged;
            let expected: &[&str] = if is_one { &["2"] } else { &["1", "1"] };
            assert_eq!(values(&rows, TableId::RoceMessages, "packet_count"), expected, "{what}");
            assert_eq!(values(&rows, TableId::RoceQps, "retransmit_timeout_count"), ["1"], "{what}");
        }
    }
}

#[test]
fn a_message_that_too_many_wait_behind_ends_where_it_is_whatever_the_windows() {
    // 16 messages may wait, which is looked at after every second packet.
    for (others, completion) in [(16, "acknowledged"), (17, "unfinished"), (40, "unfinished")] {
        let mut tape = roce_tape();
        tape.roce(send(0));
        tape.roce(answer(TAKEN, 0));
        tape.roce(send(1));
        for psn in 0..others {
            tape.roce(send(5_000 + psn).to_qp(0x21));
        }
        tape.roce(answer(TAKEN, 1));
        let rows = read_in_any_pieces(&tape, (16, 10 * SECOND), &format!("{others}"));
        assert_eq!(values(&rows, TableId::RoceMessages, "completion")[..2], ["acknowledged", completion], "{others}");
    }
}

#[test]
fn what_is_said_of_a_request_rests_on_what_was_known_of_the_tap_by_its_limit() {
    for (wait_ns, arrival) in [(10 * SECOND, "in_order"), (10 * SECOND + 1, "unknown")] {
        let mut tape = roce_tape();
        tape.roce(send(0));
        // Another queue pair complains of a number that did not pass the tap: it is at the receiver.
        for psn in [0, 2] {
            tape.roce(send(psn).to_qp(0x21));
        }
        tape.now_ns = wait_ns;
        tape.roce(answer(SEQUENCE_NAK, 1).to_qp(0x21));
        tape.wait(SECOND);
        tape.roce(send(1).to_qp(0x21));
        let rows = read_in_any_pieces(&tape, LIMITS, &format!("{wait_ns}"));
        assert_eq!(values(&rows, TableId::RoceQps, "tap"), ["responder", "responder"]);
        assert_eq!(values(&rows, TableId::Roce, "arrival")[0], arrival, "{wait_ns}");
    }
}

#[test]
fn a_wrong_checksum_is_damage_from_the_first_right_invariant_crc_on() {
    let mut tape = roce_tape();
    for psn in 0..6 {
        let is_proven = psn > 2;
        tape.roce(Packet { has_good_header: psn % 2 == 0, has_good_icrc: is_proven, ..send(psn) });
    }
    let rows = read_in_any_pieces(&tape, LIMITS, "checksums");
    let is_damaged: Vec<_> = values(&rows, TableId::Roce, "arrival").iter().map(|said| said == "damaged").collect();
    assert_eq!(is_damaged, [false, false, false, true, false, true]);
}

#[test]
fn a_message_tells_the_requester_that_was_known_when_it_was_given_out() {
    // 16 may wait, and who sends them is known with the first answer.
    let mut tape = roce_tape();
    for psn in 0..40 {
        tape.roce(send(psn));
    }
    tape.roce(answer(TAKEN, 39));
    let rows = read_in_any_pieces(&tape, (16, 10 * SECOND), "requesters");
    let told = values(&rows, TableId::RoceMessages, "requester_qp");
    assert!(told[..24].iter().all(String::is_empty) && told[24..].iter().all(|qp| qp == "16"), "{told:?}");
}

/// A queue pair's requester, and what it has sent.
struct Talk {
    from: u8,
    to: u8,
    own: u32,
    peer: u32,
    service: u8,
    next: u32,
    acknowledged: u32,
    /// Packet of each number.
    sent: Vec<(u32, Packet)>,
}

impl Talk {
    fn new(from: u8, to: u8, number: u32, service: u8) -> Self {
        let (own, peer) = (0x10 + number, 0x20 + number);
        Self { from, to, own, peer, service, next: 0xff_fff0, acknowledged: 0xff_fff0, sent: Vec::new() }
    }

    fn ask(&mut self, opcode: u8, numbers: u32) -> Packet {
        let packet =
            Packet { from: self.from, to: self.to, qp: self.peer, ..request(opcode | self.service, self.next) };
        self.sent.push((self.next, packet));
        self.next += numbers;
        packet
    }

    fn answer(&self, syndrome: u8, psn: u32) -> Packet {
        Packet { from: self.to, to: self.from, qp: self.own, ..answer(syndrome, psn) }
    }
}

/// Queue pairs between three hosts, with losses before the tap and behind it, repetitions, copies, refusals, marks, damage,
/// silences of many seconds and clocks that jump back.
fn any_roce_tape(seed: u64, jumps_back: bool) -> Tape {
    let mut dice = Dice(seed * 6_151 + 3);
    let mut tape = Tape { now_ns: 100 * SECOND, ..roce_tape() };
    let mut talks = [
        Talk::new(1, 2, 0, 0),
        Talk::new(1, 2, 1, 0),
        Talk::new(2, 1, 0, 0),
        Talk::new(1, 3, 3, 0),
        Talk::new(3, 2, 4, 0),
        Talk::new(1, 2, 5, UNRELIABLE),
    ];
    let pauses = [SECOND / 10, SECOND / 3, SECOND, 3 * SECOND, 11 * SECOND];
    for _ in 0..500 {
        match dice.roll(80) {
            at @ 0..5 => tape.wait(pauses[at as usize]),
            5 => tape.filler(dice.roll(150) as usize),
            6 if jumps_back => tape.wait(-(dice.roll(5_000) as i64) * MS),
            _ => tape.wait(dice.roll(20) as i64 * MS),
        }
        // Some queue pairs are quiet most of the time.
        let talk = &mut talks[(dice.roll(6) * dice.roll(6) / 5) as usize];
        match dice.roll(24) {
            // Requests that pass the tap, with a mark now and then, or do not.
            0..6 => {
                let packet = talk.ask(SEND, 1);
                tape.roce(Packet { is_marked: dice.roll(12) == 0, ..packet });
            }
            6 => {
                talk.ask(SEND, 1);
            }
            7 | 8 => {
                for opcode in 0..3 {
                    let packet = talk.ask(opcode, 1);
                    if dice.roll(6) > 0 {
                        tape.roce(packet);
                    }
                }
            }
            9 if talk.service == 0 => {
                let psn = talk.next;
                let packet = talk.ask(READ, 2);
                tape.roce(packet);
                for (opcode, psn) in [(0x0d, psn), (0x0f, psn + 1)].into_iter().filter(|_| dice.roll(4) > 0) {
                    tape.roce(Packet { opcode, detail: u32::from(TAKEN), ..talk.answer(TAKEN, psn) });
                }
            }
            // It goes back: to what is not acknowledged, or further.
            10..13 => {
                let back = talk.acknowledged - dice.roll(3) as u32;
                let again: Vec<_> =
                    talk.sent.iter().filter(|(psn, _)| *psn >= back).take(1 + dice.roll(5) as usize).collect();
                again.into_iter().for_each(|(_, packet)| tape.roce(*packet));
            }
            // Copies, of the network and of a router's other side, and packets that are late.
            at @ (13 | 14) => {
                let again = tape.packets.last().cloned();
                tape.packets.extend(again.map(|(_, mut packet, bytes)| {
                    if at == 14 {
                        packet[8] -= 1;
                        // The checksum counts the TTL in its upper byte.
                        let sum = u16::from_be_bytes([packet[10], packet[11]]).overflowing_add(0x100);
                        packet[10..12].copy_from_slice(&(sum.0 + u16::from(sum.1)).to_be_bytes());
                    }
                    (tape.now_ns, packet, bytes)
                }));
                tape.now_ns += 1;
            }
            15 => {
                if let Some((_, packet)) = talk.sent.iter().rev().nth(dice.roll(4) as usize) {
                    let id = (tape.packets.len() as u16).wrapping_sub(dice.roll(6) as u16);
                    tape.roce_with(*packet, id.max(1));
                }
            }
            _ if talk.service != 0 || talk.next == talk.acknowledged => {}
            16..20 => {
                let all = talk.next - talk.acknowledged;
                let taken = if dice.roll(3) == 0 { 1 + dice.roll(u64::from(all)) as u32 } else { all };
                talk.acknowledged += taken;
                tape.roce(talk.answer(TAKEN, talk.acknowledged - 1));
            }
            20 => {
                let psn = talk.acknowledged + dice.roll(u64::from(talk.next - talk.acknowledged)) as u32;
                let syndrome = [SEQUENCE_NAK, SEQUENCE_NAK, NOT_READY, 0x61][dice.roll(4) as usize];
                tape.roce(talk.answer(syndrome, psn));
            }
            21 => tape.roce(Packet { opcode: NOTIFICATION, ..talk.answer(TAKEN, 0) }),
            _ => {
                let packet = talk.ask(SEND, 1);
                let (has_good_header, has_good_icrc) = [(true, false), (false, true)][dice.roll(2) as usize];
                tape.roce(Packet { has_good_header, has_good_icrc, ..packet });
            }
        }
    }
    tape
}

#[test]
fn whatever_happens_to_queue_pairs_the_rows_are_the_same_wherever_windows_and_files_end() {
    let mut told = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let limits = [(100, 10 * SECOND), (262_144, 10 * SECOND), (20, SECOND), (8, 2 * SECOND)][seed as usize % 4];
        let rows = read_in_any_pieces(&any_roce_tape(seed, seed % 2 == 1), limits, &format!("seed {seed}"));
        for (table, column) in [
            (TableId::Roce, "sent"),
            (TableId::Roce, "cause"),
            (TableId::Roce, "arrival"),
            (TableId::RoceMessages, "completion"),
            (TableId::RoceQps, "tap"),
        ] {
            told.extend(values(&rows, table, column));
        }
    }
    for what in [
        "new",
        "retransmit",
        "network_duplicate",
        "capture_duplicate",
        "nak",
        "rnr",
        "timeout",
        "reissue",
        "in_order",
        "out_of_sequence",
        "duplicate",
        "damaged",
        "unknown",
        "acknowledged",
        "response",
        "failed",
        "sent",
        "unfinished",
        "responder",
        "middle",
    ] {
        assert!(told.contains(what), "{what}: {told:?}");
    }
}
