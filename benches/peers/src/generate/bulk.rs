//! Bulk TCP transfers over a lossy path, seen from the middle of it; plain or inside VXLAN.
//!
//! Losses behind the tap give segments that pass it twice; losses before it give gaps that are filled later.

use std::collections::HashSet;
use std::io;

use super::events::EventQueue;
use super::output::CaptureFile;
use super::payload::Payload;
use super::receiver::{Acknowledgement, BUFFER_BYTES, Receiver, Reply};
use super::rng::Rng;
use super::sender::{RETRANSMISSION_TIMEOUT_NS, Sender, Sending};
use super::wire::{self, ACK, Endpoint, FIN, IpFields, PSH, SYN, TcpSegment};

const TO_TAP_NS: u64 = 60_000;
const FROM_TAP_NS: u64 = 240_000;
const LINK_BITS_PER_NS: u64 = 10;
const ACK_DELAY_NS: u64 = 50_000;
const START_GAP_NS: u64 = 3_000_000;
const LOSS_PER_MILLION: u64 = 800;
const LOSS_BEFORE_TAP_PER_MILLION: u64 = 120;
const REORDER_PER_MILLION: u64 = 50;
const REORDER_NS: u64 = 90_000;
const WINDOW_SCALE: u32 = 7;
/// Reordered and resent copies have arrived by then: the closing packets are the last of their connection.
const QUIET_BEFORE_FIN_NS: u64 = 2_000_000;
const SERVER_PORT: u16 = 5201;

pub(crate) struct Plan {
    bytes: u64,
    connections: u64,
    seed: u64,
    mss: u64,
    vni: Option<u32>,
}

impl Plan {
    /// At least `bytes` of file over `connections`, MTU 1500 with timestamps.
    pub fn plain(bytes: u64, connections: u64, seed: u64) -> Self {
        Self { bytes, connections, seed, mss: 1448, vni: None }
    }

    /// The same with an inner MTU of 1450, as overlays have.
    pub fn vxlan(bytes: u64, connections: u64, seed: u64) -> Self {
        Self { bytes, connections, seed, mss: 1398, vni: Some(0x00_1234) }
    }
}

pub(crate) fn write(plan: &Plan, file: &mut CaptureFile) -> io::Result<()> {
    let mut simulation = Simulation::new(plan, file);
    while let Some((now, event)) = simulation.queue.next() {
        simulation.handle(now, event)?;
    }
    Ok(())
}

struct Simulation<'a> {
    queue: EventQueue<Event>,
    connections: Vec<Connection>,
    rng: Rng,
    payload: Payload,
    link_free_ns: u64,
    frame: Vec<u8>,
    tunnel_frame: Vec<u8>,
    vni: Option<u32>,
    file: &'a mut CaptureFile,
}

enum Event {
    Start(usize),
    /// A packet passes the tap.
    Tap(usize, Packet),
    SegmentArrives {
        at: usize,
        offset: u64,
        len: u64,
        tsval: u32,
    },
    DelayedAck(usize),
    AckArrives {
        at: usize,
        acknowledgement: Acknowledgement,
        tsval: u32,
    },
    Timeout(usize),
    Close(usize),
}

struct Connection {
    /// Indexed by [`Side`].
    ends: [Endpoint; 2],
    first_seq: [u32; 2],
    ip_id: [u16; 2],
    clock_offset_ms: [u32; 2],
    client: Side,
    sender: Sender,
    receiver: Receiver,
    /// First transmissions that were dropped before the tap.
    unseen: HashSet<u64>,
    delayed_ack_pending: bool,
    timeout_at_ns: u64,
    /// The other side's latest timestamp, to echo: the sender's, the receiver's.
    echo: [u32; 2],
    segment_arrival_ns: u64,
    loss_burst_left: u64,
    tunnel_ip_id: u16,
    tunnel_port: u16,
    is_closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender = 0,
    Receiver = 1,
}

impl Side {
    fn other(self) -> Self {
        if self == Self::Sender { Self::Receiver } else { Self::Sender }
    }
}

#[derive(Clone, Copy)]
struct Packet {
    from: Side,
    offset: u64,
    ack: u64,
    len: u64,
    flags: u8,
    ip_id: u16,
    tsval: u32,
    tsecr: u32,
    acknowledgement: Acknowledgement,
    repeats_seen_bytes: bool,
}

impl<'a> Simulation<'a> {
    fn new(plan: &Plan, file: &'a mut CaptureFile) -> Self {
        let mut rng = Rng::new(plan.seed, 0);
        let mut queue = EventQueue::new();
        // One frame holds `mss` bytes; ACKs come on top, so the file ends up somewhat above what was asked for.
        let per_frame = plan.mss + 66 + 16 + if plan.vni.is_some() { 50 } else { 0 };
        let stream_bytes = (plan.bytes * plan.mss).div_ceil(per_frame * plan.connections);
        let connections = (0..plan.connections)
            .map(|number| {
                queue.at((number + 1) * START_GAP_NS, Event::Start(number as usize));
                Connection::new(number, stream_bytes, plan.mss, &mut rng)
            })
            .collect();
        Self {
            queue,
            connections,
            rng,
            payload: Payload::new(plan.seed),
            link_free_ns: 0,
            frame: Vec::new(),
            tunnel_frame: Vec::new(),
            vni: plan.vni,
            file,
        }
    }

    fn handle(&mut self, now: u64, event: Event) -> io::Result<()> {
        match event {
            Event::Start(at) => self.handshake(now, at),
            Event::Close(at) => self.close(now, at),
            Event::Tap(at, packet) => return self.write_packet(now, at, &packet),
            Event::SegmentArrives { at, offset, len, tsval } => {
                let connection = &mut self.connections[at];
                if connection.receiver.expects(offset) {
                    connection.echo[Side::Receiver as usize] = tsval;
                }
                match connection.receiver.on_segment(offset, len) {
                    Reply::Now(acknowledgement) => self.send_ack(now, at, acknowledgement),
                    Reply::Later if !connection.delayed_ack_pending => {
                        connection.delayed_ack_pending = true;
                        self.queue.at(now + ACK_DELAY_NS, Event::DelayedAck(at));
                    }
                    Reply::Later => {}
                }
            }
            Event::DelayedAck(at) => {
                self.connections[at].delayed_ack_pending = false;
                if let Some(acknowledgement) = self.connections[at].receiver.on_delay_over() {
                    self.send_ack(now, at, acknowledgement);
                }
            }
            Event::AckArrives { at, acknowledgement, tsval } => {
                let connection = &mut self.connections[at];
                connection.echo[Side::Sender as usize] = tsval;
                connection.sender.on_acknowledgement(&acknowledgement);
                connection.timeout_at_ns = now + RETRANSMISSION_TIMEOUT_NS;
                if connection.sender.is_done() {
                    if !std::mem::replace(&mut connection.is_closed, true) {
                        self.queue.at(now + QUIET_BEFORE_FIN_NS, Event::Close(at));
                    }
                } else {
                    self.send_all_allowed(now, at);
                }
            }
            Event::Timeout(at) => {
                let connection = &mut self.connections[at];
                if connection.is_closed {
                    return Ok(());
                }
                if now >= connection.timeout_at_ns {
                    connection.sender.on_timeout();
                    connection.timeout_at_ns = now + RETRANSMISSION_TIMEOUT_NS;
                    self.send_all_allowed(now, at);
                }
                let due = self.connections[at].timeout_at_ns;
                self.queue.at(due, Event::Timeout(at));
            }
        }
        Ok(())
    }

    /// SYN, SYN-ACK and ACK are not lost; then the sender begins.
    fn handshake(&mut self, now: u64, at: usize) {
        let client = self.connections[at].client;
        let syn = self.connections[at].packet(now, client, SYN, 0, 0);
        self.tap_at(now, at, syn);
        let answer_ns = now + TO_TAP_NS + FROM_TAP_NS + 10_000;
        self.connections[at].echo[client.other() as usize] = syn.tsval;
        let syn_ack = self.connections[at].packet(answer_ns, client.other(), SYN | ACK, 0, 1);
        self.tap_at(answer_ns, at, syn_ack);
        let established_ns = answer_ns + TO_TAP_NS + FROM_TAP_NS + 5_000;
        self.connections[at].echo[client as usize] = syn_ack.tsval;
        let ack = self.connections[at].packet(established_ns, client, ACK, 1, 1);
        self.tap_at(established_ns, at, ack);
        // Whoever sends hears of the connection at the latest one crossing after the client's ACK.
        let begin_ns = established_ns + TO_TAP_NS + FROM_TAP_NS;
        let connection = &mut self.connections[at];
        connection.timeout_at_ns = begin_ns + RETRANSMISSION_TIMEOUT_NS;
        self.queue.at(begin_ns, Event::Timeout(at));
        let acknowledgement = Acknowledgement::of_handshake();
        let tsval = if client == Side::Sender { syn_ack.tsval } else { ack.tsval };
        self.queue.at(begin_ns, Event::AckArrives { at, acknowledgement, tsval });
    }

    fn send_all_allowed(&mut self, now: u64, at: usize) {
        while let Some(sending) = self.connections[at].sender.next_sending() {
            self.send_segment(now, at, sending);
        }
    }

    fn send_segment(&mut self, now: u64, at: usize, sending: Sending) {
        let bits = (sending.len + 90) * 8;
        let leaves_ns = now.max(self.link_free_ns);
        self.link_free_ns = leaves_ns + bits / LINK_BITS_PER_NS;
        let connection = &mut self.connections[at];
        let is_last = sending.offset + sending.len == connection.sender.end();
        let flags = if is_last { ACK | PSH } else { ACK };
        let mut packet = connection.packet(leaves_ns, Side::Sender, flags, sending.offset, 1);
        packet.len = sending.len;
        if self.rng.per_million(LOSS_BEFORE_TAP_PER_MILLION) {
            if sending.is_new {
                connection.unseen.insert(sending.offset);
            }
            return;
        }
        packet.repeats_seen_bytes = !sending.is_new && !connection.unseen.remove(&sending.offset);
        self.queue.at(leaves_ns + TO_TAP_NS, Event::Tap(at, packet));
        if connection.loss_burst_left > 0 {
            connection.loss_burst_left -= 1;
            return;
        }
        if self.rng.per_million(LOSS_PER_MILLION) {
            connection.loss_burst_left = self.rng.below(3);
            return;
        }
        let mut arrives_ns = (leaves_ns + TO_TAP_NS + FROM_TAP_NS).max(connection.segment_arrival_ns);
        if self.rng.per_million(REORDER_PER_MILLION) {
            arrives_ns += REORDER_NS;
        } else {
            connection.segment_arrival_ns = arrives_ns;
        }
        let event = Event::SegmentArrives { at, offset: sending.offset, len: sending.len, tsval: packet.tsval };
        self.queue.at(arrives_ns, event);
    }

    fn send_ack(&mut self, now: u64, at: usize, acknowledgement: Acknowledgement) {
        let mut packet = self.connections[at].packet(now, Side::Receiver, ACK, 1, acknowledgement.ack);
        packet.acknowledgement = acknowledgement;
        self.queue.at(now + FROM_TAP_NS, Event::Tap(at, packet));
        let event = Event::AckArrives { at, acknowledgement, tsval: packet.tsval };
        self.queue.at(now + FROM_TAP_NS + TO_TAP_NS, event);
    }

    /// FIN, FIN-ACK, ACK once everything is acknowledged.
    fn close(&mut self, now: u64, at: usize) {
        let end = self.connections[at].sender.end();
        let fin = self.connections[at].packet(now, Side::Sender, FIN | ACK, end, 1);
        self.tap_at(now, at, fin);
        let answer_ns = now + TO_TAP_NS + FROM_TAP_NS + 20_000;
        self.connections[at].echo[Side::Receiver as usize] = fin.tsval;
        let answer = self.connections[at].packet(answer_ns, Side::Receiver, FIN | ACK, 1, end + 1);
        self.tap_at(answer_ns, at, answer);
        let last_ns = answer_ns + TO_TAP_NS + FROM_TAP_NS + 5_000;
        self.connections[at].echo[Side::Sender as usize] = answer.tsval;
        let last = self.connections[at].packet(last_ns, Side::Sender, ACK, end + 1, 2);
        self.tap_at(last_ns, at, last);
    }

    fn tap_at(&mut self, sent_ns: u64, at: usize, packet: Packet) {
        let to_tap = if packet.from == Side::Sender { TO_TAP_NS } else { FROM_TAP_NS };
        self.queue.at(sent_ns + to_tap, Event::Tap(at, packet));
    }

    fn write_packet(&mut self, now: u64, at: usize, packet: &Packet) -> io::Result<()> {
        let connection = &mut self.connections[at];
        let (src, dst) = (packet.from as usize, packet.from.other() as usize);
        let mut options = Vec::with_capacity(40);
        if packet.flags & SYN != 0 {
            let mss = if self.vni.is_some() { 1410_u16 } else { 1460 };
            options.extend_from_slice(&[2, 4, (mss >> 8) as u8, mss as u8, 4, 2, 8, 10]);
        } else {
            options.extend_from_slice(&[1, 1, 8, 10]);
        }
        options.extend_from_slice(&packet.tsval.to_be_bytes());
        options.extend_from_slice(&packet.tsecr.to_be_bytes());
        if packet.flags & SYN != 0 {
            options.extend_from_slice(&[1, 3, 3, WINDOW_SCALE as u8]);
        }
        let sack = packet.acknowledgement.sack();
        if !sack.is_empty() {
            options.extend_from_slice(&[1, 1, 5, 2 + 8 * sack.len() as u8]);
            for &(left, right) in sack {
                options.extend_from_slice(&connection.seq(dst, left).to_be_bytes());
                options.extend_from_slice(&connection.seq(dst, right).to_be_bytes());
            }
        }
        let window = match packet.flags & SYN {
            0 if packet.from == Side::Sender => 502,
            0 if packet.acknowledgement.ack == 0 => (BUFFER_BYTES >> WINDOW_SCALE) as u16,
            0 => (packet.acknowledgement.window_bytes >> WINDOW_SCALE) as u16,
            _ => 64240,
        };
        let segment = TcpSegment {
            src: connection.ends[src],
            dst: connection.ends[dst],
            ip: IpFields { id: packet.ip_id, tos: 0, ttl: 63 },
            seq: connection.seq(src, packet.offset),
            ack: if packet.flags & ACK == 0 { 0 } else { connection.seq(dst, packet.ack) },
            flags: packet.flags,
            window,
            options: &options,
            payload: self.payload.at(at as u64 * 1_000_003 + packet.offset, packet.len as usize),
        };
        wire::tcp(&mut self.frame, &segment);
        let truth = &mut self.file.truth;
        truth.tcp += 1;
        truth.tcp_flows += u64::from(packet.flags & (SYN | ACK) == SYN);
        truth.retransmissions += u64::from(packet.repeats_seen_bytes);
        let Some(vni) = self.vni else {
            return self.file.frame(now, &self.frame);
        };
        let vteps = [[172, 16, 0, 1 + src as u8], [172, 16, 0, 1 + dst as u8]];
        connection.tunnel_ip_id = connection.tunnel_ip_id.wrapping_add(1);
        let (port, ip_id) = (connection.tunnel_port, connection.tunnel_ip_id);
        wire::vxlan(&mut self.tunnel_frame, &self.frame, vteps, vni, port, ip_id);
        self.file.frame(now, &self.tunnel_frame)
    }
}

impl Connection {
    fn new(number: u64, stream_bytes: u64, mss: u64, rng: &mut Rng) -> Self {
        let client = Endpoint { ip: [10, 77, 1, 10 + (number % 200) as u8], port: 40_000 + rng.below(20_000) as u16 };
        let server = Endpoint { ip: [10, 77, 2, 10 + (number % 4) as u8], port: SERVER_PORT + (number / 200) as u16 };
        // Every fourth transfer is a download: the client opens it and the server sends.
        let is_download = number % 4 == 3;
        Self {
            ends: if is_download { [server, client] } else { [client, server] },
            first_seq: [rng.next_u32(), rng.next_u32()],
            ip_id: [rng.next_u16(), rng.next_u16()],
            clock_offset_ms: [rng.next_u32(), rng.next_u32()],
            client: if is_download { Side::Receiver } else { Side::Sender },
            sender: Sender::new(mss, stream_bytes, 60 + rng.below(100)),
            receiver: Receiver::new(),
            unseen: HashSet::new(),
            delayed_ack_pending: false,
            timeout_at_ns: u64::MAX,
            echo: [0; 2],
            segment_arrival_ns: 0,
            loss_burst_left: 0,
            tunnel_ip_id: rng.next_u16(),
            tunnel_port: 0xc000 | rng.next_u16(),
            is_closed: false,
        }
    }

    /// The next packet of one side; IP IDs count the packets a side sends, SYN-ACKs (ID 0, as Linux sends) aside.
    fn packet(&mut self, now: u64, from: Side, flags: u8, offset: u64, ack: u64) -> Packet {
        let ip_id = if flags & (SYN | ACK) == SYN | ACK {
            0
        } else {
            let id = &mut self.ip_id[from as usize];
            *id = id.wrapping_add(1);
            *id
        };
        Packet {
            from,
            offset,
            ack,
            len: 0,
            flags,
            ip_id,
            tsval: self.clock_ms(now, from),
            tsecr: if flags & ACK == 0 { 0 } else { self.echo[from as usize] },
            acknowledgement: Acknowledgement::default(),
            repeats_seen_bytes: false,
        }
    }

    fn clock_ms(&self, now: u64, side: Side) -> u32 {
        self.clock_offset_ms[side as usize].wrapping_add((now / 1_000_000) as u32)
    }

    fn seq(&self, side: usize, offset: u64) -> u32 {
        self.first_seq[side].wrapping_add(offset as u32)
    }
}
