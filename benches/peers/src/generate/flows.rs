//! Many small conversations: TCP requests and responses, and some UDP, in frames of 66 to 130 bytes.

use std::io;

use super::events::EventQueue;
use super::output::CaptureFile;
use super::payload::Payload;
use super::rng::Rng;
use super::wire::{self, ACK, Endpoint, FIN, IpFields, PSH, RST, SYN, TcpSegment};

/// Ethernet, IPv4 and TCP headers with timestamps: the smallest frame after the handshake.
const BARE_FRAME: u64 = 66;
const MAX_FRAME: u64 = 130;
const UDP_HEADERS: u64 = 42;
const WINDOW_SCALE: u8 = 7;
/// A port that no dissector of Wireshark claims.
const SERVER_PORT: u16 = 18_410;
const RESEND_PER_MILLION: u64 = 2_000;
const RESEND_AFTER_NS: u64 = 210_000_000;
const TCP_LEAST_FRAMES: u64 = 7;

/// Exactly `packets` frames in exactly `flows` conversations, nearly all of them open at the same time.
pub(crate) fn write_small(packets: u64, flows: u64, seed: u64, file: &mut CaptureFile) -> io::Result<()> {
    let mean = packets / flows;
    if mean < 2 * TCP_LEAST_FRAMES {
        let message = "small needs at least 14 frames for each flow";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let spread = mean - TCP_LEAST_FRAMES;
    let mut budgets = Vec::with_capacity(flows as usize);
    let mut rng = Rng::new(seed, u64::MAX);
    for pair in 0..flows / 2 {
        // Two flows share twice the mean, so that the sum is exact while the lengths vary.
        let more = rng.below(spread + 1);
        let is_longer = u64::from(2 * pair < packets % flows) + u64::from(2 * pair + 1 < packets % flows);
        budgets.extend([mean + more + is_longer, mean - more]);
    }
    if flows % 2 == 1 {
        budgets.push(mean);
    }
    let style =
        Style { seed, flow_gap_ns: 50_000, step_ns: 10_000_000, udp_per_million: 40_000, refused_per_million: 0 };
    write(&style, flows, |number, _| budgets[number as usize], file)
}

/// Connections of 8 to 12 frames that soon give way to the next; one in fifty is refused, with two frames.
pub(crate) fn write_short(flows: u64, seed: u64, file: &mut CaptureFile) -> io::Result<()> {
    let style =
        Style { seed, flow_gap_ns: 20_000, step_ns: 3_000_000, udp_per_million: 0, refused_per_million: 20_000 };
    write(&style, flows, |_, rng| 8 + rng.below(5), file)
}

struct Style {
    seed: u64,
    flow_gap_ns: u64,
    /// Mean time between two frames of a flow.
    step_ns: u64,
    udp_per_million: u64,
    refused_per_million: u64,
}

fn write(
    style: &Style,
    flows: u64,
    mut budget: impl FnMut(u64, &mut Rng) -> u64,
    file: &mut CaptureFile,
) -> io::Result<()> {
    let payload = Payload::with_len(style.seed, 1 << 20);
    let mut frame = Vec::new();
    let mut queue = EventQueue::new();
    let mut started = 0;
    loop {
        // Flows are made when they start: a million of them do not all wait in memory.
        let start_ns = started * style.flow_gap_ns;
        if started < flows && queue.next_time_ns().is_none_or(|next| start_ns <= next) {
            let mut rng = Rng::new(style.seed, started);
            let frames = budget(started, &mut rng);
            queue.at(start_ns, Box::new(Flow::new(started, frames, style, rng)));
            started += 1;
            continue;
        }
        let Some((now, mut flow)) = queue.next() else {
            return Ok(());
        };
        let wait_ns = flow.write_next(now, style, &payload, &mut frame, file)?;
        if flow.frames_left > 0 {
            queue.at(now + wait_ns, flow);
        }
    }
}

struct Flow {
    kind: Kind,
    /// Client, server.
    ends: [Endpoint; 2],
    next_seq: [u32; 2],
    ip_id: [u16; 2],
    clock_offset_ms: [u32; 2],
    echo: [u32; 2],
    step: u64,
    frames_left: u64,
    /// The latest data segment, for a retransmission: side, sequence number, payload offset and length.
    latest: Option<(usize, u32, u64, usize)>,
    resend: bool,
    /// Whose turn it is to send data.
    turn: usize,
    payload_offset: u64,
    ends_with_reset: bool,
    rng: Rng,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    RefusedTcp,
    Udp,
}

impl Flow {
    fn new(number: u64, frames: u64, style: &Style, mut rng: Rng) -> Self {
        let kind = if rng.per_million(style.udp_per_million) {
            Kind::Udp
        } else if rng.per_million(style.refused_per_million) {
            Kind::RefusedTcp
        } else {
            Kind::Tcp
        };
        let host = number % 62_500;
        let client_ip = [10, 1, (host / 250) as u8, (host % 250 + 1) as u8];
        let client = Endpoint { ip: client_ip, port: 32_768 + (number / 62_500 % 28_000) as u16 };
        let server = Endpoint { ip: [10, 2, 0, 1 + rng.below(64) as u8], port: SERVER_PORT };
        Self {
            kind,
            ends: [client, server],
            next_seq: [rng.next_u32(), rng.next_u32()],
            ip_id: [rng.next_u16(), rng.next_u16()],
            clock_offset_ms: [rng.next_u32(), rng.next_u32()],
            echo: [0; 2],
            step: 0,
            frames_left: if kind == Kind::RefusedTcp { 2 } else { frames },
            latest: None,
            resend: false,
            turn: 0,
            payload_offset: rng.below(1 << 20),
            ends_with_reset: rng.per_million(30_000),
            rng,
        }
    }

    /// Writes one frame and returns how long it is until the next.
    fn write_next(
        &mut self,
        now: u64,
        style: &Style,
        payload: &Payload,
        frame: &mut Vec<u8>,
        file: &mut CaptureFile,
    ) -> io::Result<u64> {
        match self.kind {
            Kind::Udp => self.udp_frame(frame, payload),
            Kind::RefusedTcp | Kind::Tcp => self.tcp_frame(now, frame, payload, file),
        }
        file.frame(now, frame)?;
        self.step += 1;
        self.frames_left -= 1;
        let may_resend = self.latest.is_some() && self.frames_left > 4 && !self.resend;
        self.resend = may_resend && self.rng.per_million(RESEND_PER_MILLION);
        let pause_ns = style.step_ns / 2 + self.rng.below(style.step_ns);
        Ok(match (self.step, self.resend) {
            // The handshake is quicker than the application.
            (0..=2, _) => 100_000 + self.rng.below(200_000),
            (_, true) => RESEND_AFTER_NS,
            _ => pause_ns,
        })
    }

    fn udp_frame(&mut self, frame: &mut Vec<u8>, payload: &Payload) {
        let from = (self.step % 2) as usize;
        let len = BARE_FRAME - UDP_HEADERS + self.rng.below(MAX_FRAME - BARE_FRAME + 1);
        let ip = self.next_ip(from);
        wire::udp(frame, self.ends[from], self.ends[1 - from], ip, payload.at(self.payload_offset, len as usize), true);
        self.payload_offset += len;
    }

    fn tcp_frame(&mut self, now: u64, frame: &mut Vec<u8>, payload: &Payload, file: &mut CaptureFile) {
        file.truth.tcp += 1;
        file.truth.tcp_flows += u64::from(self.step == 0);
        let closing = if self.ends_with_reset { 1 } else { 3 };
        match (self.step, self.frames_left) {
            (0, _) => self.segment(now, frame, 0, SYN, None),
            (1, _) if self.kind == Kind::RefusedTcp => self.segment(now, frame, 1, RST | ACK, None),
            (1, _) => self.segment(now, frame, 1, SYN | ACK, None),
            (2, _) => self.segment(now, frame, 0, ACK, None),
            (_, 1) if self.ends_with_reset => self.segment(now, frame, 0, RST | ACK, None),
            (_, 3) if closing == 3 => self.segment(now, frame, 0, FIN | ACK, None),
            (_, 2) if closing == 3 => self.segment(now, frame, 1, FIN | ACK, None),
            (_, 1) => self.segment(now, frame, 0, ACK, None),
            _ => self.exchange(now, frame, payload, file),
        }
    }

    /// A request, a response, an ACK on its own, or a segment sent again because its answer did not come.
    fn exchange(&mut self, now: u64, frame: &mut Vec<u8>, payload: &Payload, file: &mut CaptureFile) {
        if let (true, Some((from, seq, offset, len))) = (self.resend, self.latest) {
            file.truth.retransmissions += 1;
            let expected = std::mem::replace(&mut self.next_seq[from], seq);
            self.segment(now, frame, from, PSH | ACK, Some(payload.at(offset, len)));
            self.next_seq[from] = expected;
            return;
        }
        if self.latest.is_some() && self.rng.below(5) == 0 {
            // Whoever received last acknowledges, and then it is still its turn.
            self.latest = None;
            return self.segment(now, frame, self.turn, ACK, None);
        }
        let from = self.turn;
        let len = 1 + self.rng.below(MAX_FRAME - BARE_FRAME) as usize;
        self.latest = Some((from, self.next_seq[from], self.payload_offset, len));
        self.segment(now, frame, from, PSH | ACK, Some(payload.at(self.payload_offset, len)));
        self.payload_offset += len as u64;
        self.turn = 1 - from;
    }

    fn segment(&mut self, now: u64, frame: &mut Vec<u8>, from: usize, flags: u8, data: Option<&[u8]>) {
        let data = data.unwrap_or(&[]);
        let has_ack = flags & ACK != 0;
        let tsval = self.clock_offset_ms[from].wrapping_add((now / 1_000_000) as u32);
        let tsecr = if has_ack { self.echo[from] } else { 0 };
        let (tsval_bytes, tsecr_bytes) = (tsval.to_be_bytes(), tsecr.to_be_bytes());
        let mut options = [0_u8; 20];
        let options = if flags & SYN != 0 {
            options[..8].copy_from_slice(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10]);
            options[8..12].copy_from_slice(&tsval_bytes);
            options[12..16].copy_from_slice(&tsecr_bytes);
            options[16..].copy_from_slice(&[1, 3, 3, WINDOW_SCALE]);
            &options[..]
        } else if self.kind == Kind::RefusedTcp {
            // A closed port answers without options.
            &options[..0]
        } else {
            options[..4].copy_from_slice(&[1, 1, 8, 10]);
            options[4..8].copy_from_slice(&tsval_bytes);
            options[8..12].copy_from_slice(&tsecr_bytes);
            &options[..12]
        };
        let is_refusal = self.kind == Kind::RefusedTcp && from == 1;
        let segment = TcpSegment {
            src: self.ends[from],
            dst: self.ends[1 - from],
            ip: self.next_ip(from),
            seq: if is_refusal { 0 } else { self.next_seq[from] },
            ack: if has_ack { self.next_seq[1 - from] } else { 0 },
            flags,
            window: if is_refusal {
                0
            } else if flags & SYN != 0 {
                64_240
            } else {
                502
            },
            options,
            payload: data,
        };
        wire::tcp(frame, &segment);
        self.echo[1 - from] = tsval;
        let sequence_len = data.len() as u32 + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        self.next_seq[from] = self.next_seq[from].wrapping_add(sequence_len);
    }

    fn next_ip(&mut self, from: usize) -> IpFields {
        self.ip_id[from] = self.ip_id[from].wrapping_add(1);
        IpFields { id: self.ip_id[from], tos: 0, ttl: 64 }
    }
}
