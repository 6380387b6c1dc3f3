//! Messages some or all of whose packets come after those of later ones.

use super::*;

/// A packet of WRITEs of four packets each, the first of which begins at 0. Identifications tell the order of sending.
fn write(psn: u32) -> Craft {
    let opcode = [0x06, 0x07, 0x07, 0x08][psn as usize % 4];
    let mut craft = packet(A, opcode, 0x20, psn).id(psn as u16 + 1);
    craft.packet.reth = (opcode == 0x06).then_some((0x1000, 7, 4_096));
    craft
}

/// Number of the first and last packet, packets, bytes, first frame.
fn told(lab: &Lab) -> Vec<(u32, u32, u64, u64, u64)> {
    let mut told: Vec<_> = lab
        .messages
        .iter()
        .map(|m| (m.psn.get(), m.last_psn().get(), m.packets, m.payload_bytes, m.first.frame_no))
        .collect();
    told.sort_unstable();
    told
}

#[test]
fn a_message_that_was_overtaken_as_a_whole_is_a_message() {
    let mut lab = Lab::default();
    lab.all((0..4).chain(8..12).chain(4..8).map(write)).see(answer(ACK, 11)).finish();
    assert_eq!(told(&lab), [(0, 3, 4, 4_096, 1), (4, 7, 4, 4_096, 9), (8, 11, 4, 4_096, 5)]);
    assert!(lab.messages.iter().all(|message| message.completion.name() == "acknowledged"));
    let of_frames = |frames: std::ops::RangeInclusive<usize>| {
        let ids: Vec<_> = frames.map(|frame| lab.placed[frame - 1].1).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        ids[0]
    };
    assert!(of_frames(5..=8) < of_frames(9..=12), "numbered in the order of their first packets");
}

#[test]
fn a_message_that_was_lost_before_the_tap_begins_when_it_is_sent_again() {
    let mut lab = Lab::default();
    lab.all([send(0), send(2), send(3), answer(SEQUENCE_NAK, 1), send(1), send(2), send(3), answer(ACK, 3)]).finish();
    let messages: Vec<_> = told(&lab).iter().map(|(psn, _, packets, ..)| (*psn, *packets)).collect();
    assert_eq!(messages, [(0, 1), (1, 1), (2, 2), (3, 2)]);
    assert_eq!(lab.channel(0).counts.messages, 4);
}

#[test]
fn a_packet_before_the_first_one_of_its_message_is_not_of_the_message_before() {
    let mut lab = Lab::default();
    // Numbers 6 and 9 come before their messages begin: nobody can tell yet that they are of two.
    lab.all([0, 1, 2, 3, 6, 9, 4, 5, 7, 8, 10, 11].map(write)).see(answer(ACK, 11)).finish();
    assert_eq!(told(&lab), [(0, 3, 4, 4_096, 1), (4, 7, 4, 4_096, 5), (8, 11, 4, 4_096, 6)]);
    let message_of_8 = lab.placed[9].1;
    assert_eq!(lab.moved, [(5, message_of_8, 0)]);
}

#[test]
fn in_whatever_order_packets_come_every_message_is_whole() {
    let mut dice = 88_172_645_463_325_252_u64;
    let mut roll = |sides: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    };
    for round in 0..200 {
        // Every tenth packet is late, by up to so many others.
        let most = 1 + roll(30) as u32;
        let mut order: Vec<(u32, u32)> = (2..200).map(|psn| (psn, psn)).collect();
        for (place, _) in &mut order {
            *place += if roll(10) == 0 { 1 + roll(u64::from(most)) as u32 } else { 0 };
        }
        order.sort_by_key(|(place, _)| *place);
        let mut lab = Lab::default();
        lab.all([0, 1].map(write)).all(order.iter().map(|(_, psn)| write(*psn))).see(answer(ACK, 199)).finish();
        let wrong: Vec<_> =
            lab.messages.iter().filter(|m| !(m.is_whole() && m.span == 4 && m.packets == 4 && m.is_done())).collect();
        assert!(wrong.is_empty(), "round {round}, up to {most}: {wrong:?}");
        assert_eq!(lab.messages.len(), 50, "round {round}, up to {most}");
        let mut message_of: Vec<u64> = lab.placed.iter().take(200).map(|(_, message)| *message).collect();
        for (row, message, _) in &lab.moved {
            message_of[*row as usize] = *message;
        }
        for ((_, psn), message) in order.iter().zip(&message_of[2..]) {
            let own = lab.messages.iter().find(|m| m.psn.get() == psn - psn % 4).map(|m| m.id);
            assert_eq!(own, Some(*message), "round {round}, number {psn}");
        }
    }
}
