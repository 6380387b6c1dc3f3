//! What comes again, and what never comes back.

use super::*;

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
