//! Crafted conversations. What tshark 4.0.17 prints for the same packets was the source of every expectation.

mod fields;
mod flags;
mod streams;

use super::{Segment, WsRow, WsStream};

const FIN: u16 = 0x01;
const SYN: u16 = 0x02;
const RST: u16 = 0x04;
const ACK: u16 = 0x10;

const CLIENT: u8 = 0;
const SERVER: u8 = 1;

/// One conversation. Every segment comes 10 µs after the one before, offers a window of 1000 and has ACK set.
#[derive(Default)]
struct Talk {
    stream: WsStream,
    frame_no: u64,
    time_ns: i64,
}

impl Talk {
    /// Client number 100, server number 500, both with a window scale of 2; the round trip takes `rtt_us`.
    fn after_handshake(rtt_us: i64) -> Self {
        let mut talk = Self { time_ns: 1_000_000_000, ..Self::default() };
        talk.hear(Segment { wscale: Some(2), ..talk.segment(CLIENT, 100, 0, SYN) });
        talk.wait_us(rtt_us - 20);
        talk.hear(Segment { wscale: Some(2), ..talk.segment(SERVER, 500, 101, SYN | ACK) });
        talk.hear(talk.segment(CLIENT, 101, 501, ACK));
        talk
    }

    /// A conversation whose handshake is not in the capture.
    fn without_handshake() -> Self {
        Self { time_ns: 1_000_000_000, ..Self::default() }
    }

    fn wait_us(&mut self, wait_us: i64) {
        self.time_ns += wait_us * 1000;
    }

    /// The next segment, to be changed by struct update and then heard.
    fn segment(&self, dir: u8, seq: u32, ack: u32, flags: u16) -> Segment<'static> {
        Segment { dir, seq, ack, flags, window: 1000, ..Segment::default() }
    }

    fn hear(&mut self, segment: Segment) -> WsRow {
        self.frame_no += 1;
        self.wait_us(10);
        self.stream.on_segment(&Segment { frame_no: self.frame_no, time_ns: self.time_ns, ..segment })
    }

    fn data(&mut self, dir: u8, seq: u32, ack: u32, payload_bytes: u32) -> WsRow {
        self.hear(Segment { payload_bytes, ..self.segment(dir, seq, ack, ACK) })
    }

    fn ack(&mut self, dir: u8, seq: u32, ack: u32) -> WsRow {
        self.hear(self.segment(dir, seq, ack, ACK))
    }

    fn ack_with_window(&mut self, dir: u8, seq: u32, ack: u32, window: u16) -> WsRow {
        self.hear(Segment { window, ..self.segment(dir, seq, ack, ACK) })
    }
}
