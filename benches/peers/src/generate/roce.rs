//! RoCEv2 RC WRITE traffic: messages of many packets, coalesced ACKs, losses answered by NAK and go-back-N, CE and CNPs.
//!
//! Packets of a queue pair are counted from 0; only the wire maps them to 24-bit PSNs.

use std::io;

use super::events::EventQueue;
use super::output::CaptureFile;
use super::payload::Payload;
use super::rng::Rng;
use super::wire::{self, ETHERNET_LEN, Endpoint, IPV4_LEN, IpFields, UDP_LEN};

const PORT: u16 = 4791;
const WRITE_FIRST: u8 = 0x06;
const WRITE_MIDDLE: u8 = 0x07;
const WRITE_LAST: u8 = 0x08;
const WRITE_ONLY: u8 = 0x0a;
const ACKNOWLEDGE: u8 = 0x11;
const CNP: u8 = 0x81;
/// ACK without credit information; NAK "PSN sequence error" (IBTA 9.7.5.1).
const SYNDROME_ACK: u8 = 0x1f;
const SYNDROME_SEQUENCE_NAK: u8 = 0x60;
const BTH_LEN: usize = 12;
const TO_TAP_NS: u64 = 2_000;
const FROM_TAP_NS: u64 = 3_000;
const TIMEOUT_NS: u64 = 4_000_000;
const WINDOW_PACKETS: u64 = 64;
const ACK_EVERY: u64 = 16;
const LOSS_PER_MILLION: u64 = 150;
const LOSS_BEFORE_TAP_PER_MILLION: u64 = 50;
const CE_PER_MILLION: u64 = 400;
const CNP_GAP_NS: u64 = 50_000;
/// DSCP 26 with ECT(0), as NCCL_IB_TC=106 gives; CNPs travel with DSCP 48.
const TOS_DATA: u8 = 26 << 2 | 0b10;
const TOS_CE: u8 = TOS_DATA | 0b11;
const TOS_CNP: u8 = 48 << 2;

pub(crate) fn write(data_packets: u64, queue_pairs: u64, seed: u64, file: &mut CaptureFile) -> io::Result<()> {
    let mut rng = Rng::new(seed, 0x726f_6365);
    let mut queue = EventQueue::new();
    let mut pairs: Vec<QueuePair> = (0..queue_pairs)
        .map(|number| {
            queue.at(1_000_000 + number * 37_000, Event::Send(number as usize));
            queue.at(1_000_000 + number * 37_000 + TIMEOUT_NS, Event::Timeout(number as usize));
            QueuePair::new(number, data_packets.div_ceil(queue_pairs), &mut rng)
        })
        .collect();
    let payload = Payload::new(seed);
    let mut scratch = Scratch::default();
    while let Some((now, event)) = queue.next() {
        match event {
            Event::Send(at) => pairs[at].send(now, at, &mut queue, &mut rng),
            Event::Tap(at, packet) => pairs[at].write(now, &packet, &payload, &mut scratch, file)?,
            Event::RequestArrives { at, index, is_ce } => pairs[at].on_request(now, at, index, is_ce, &mut queue),
            Event::ReplyArrives { at, covers, is_nak } => pairs[at].on_reply(now, at, covers, is_nak, &mut queue),
            Event::Timeout(at) => pairs[at].on_timer(now, at, &mut queue),
        }
    }
    Ok(())
}

enum Event {
    Send(usize),
    Tap(usize, Packet),
    RequestArrives {
        at: usize,
        index: u64,
        is_ce: bool,
    },
    /// All packets before `covers` are acknowledged.
    ReplyArrives {
        at: usize,
        covers: u64,
        is_nak: bool,
    },
    Timeout(usize),
}

#[derive(Clone, Copy)]
enum Packet {
    Request { index: u64, ip_id: u16, is_ce: bool },
    Reply { psn_index: u64, syndrome: u8, messages: u64, ip_id: u16 },
    Cnp { ip_id: u16 },
}

struct QueuePair {
    requester: Endpoint,
    responder: Endpoint,
    /// The responder's and the requester's queue pair numbers, as `dest_qp` holds them.
    responder_qp: u32,
    requester_qp: u32,
    first_psn: u32,
    remote_key: u32,
    base_address: u64,
    mtu_bytes: u64,
    packets_per_message: u64,
    last_payload_bytes: u64,
    packet_ns: u64,
    total: u64,
    next: u64,
    unacknowledged: u64,
    is_sending: bool,
    timeout_at_ns: u64,
    expected: u64,
    nak_sent: bool,
    last_cnp_ns: Option<u64>,
    ip_id: [u16; 2],
}

#[derive(Default)]
struct Scratch {
    transport: Vec<u8>,
    frame: Vec<u8>,
    covered: Vec<u8>,
}

impl QueuePair {
    fn new(number: u64, packets: u64, rng: &mut Rng) -> Self {
        let mtu_bytes = if number.is_multiple_of(2) { 4096 } else { 1024 };
        let packets_per_message = [1, 16, 64, 256][(number / 2 % 4) as usize];
        let entropy = 0xc000 | (rng.next_u16() & 0x3fff);
        let host = |net: u8| [192, 168, net, 10 + (number % 8) as u8];
        // Every third queue pair soon passes the end of the PSN space.
        let first_psn = if number.is_multiple_of(3) { 0xff_fe00 } else { rng.next_u32() & 0xff_ffff };
        Self {
            requester: Endpoint { ip: host(10), port: entropy },
            responder: Endpoint { ip: host(20), port: PORT },
            responder_qp: 0x100 + number as u32,
            requester_qp: 0x8100 + number as u32,
            first_psn,
            remote_key: rng.next_u32(),
            base_address: 0x7f00_0000_0000 + (rng.below(1 << 20) << 12),
            mtu_bytes,
            packets_per_message,
            last_payload_bytes: if number % 4 == 1 { mtu_bytes - 6 } else { mtu_bytes },
            // 100 Gb/s shared by eight busy queue pairs.
            packet_ns: (mtu_bytes + 82) * 8 * 8 / 100,
            total: packets.div_ceil(packets_per_message) * packets_per_message,
            next: 0,
            unacknowledged: 0,
            is_sending: true,
            timeout_at_ns: 0,
            expected: 0,
            nak_sent: false,
            last_cnp_ns: None,
            ip_id: [rng.next_u16(), rng.next_u16()],
        }
    }

    fn send(&mut self, now: u64, at: usize, queue: &mut EventQueue<Event>, rng: &mut Rng) {
        let window_end = self.total.min(self.unacknowledged + WINDOW_PACKETS);
        if self.next >= window_end {
            self.is_sending = false;
            return;
        }
        let index = self.next;
        self.next += 1;
        self.timeout_at_ns = now + TIMEOUT_NS;
        queue.at(now + self.packet_ns, Event::Send(at));
        let ip_id = self.next_ip_id(0);
        if rng.per_million(LOSS_BEFORE_TAP_PER_MILLION) {
            return;
        }
        let is_ce = rng.per_million(CE_PER_MILLION);
        queue.at(now + TO_TAP_NS, Event::Tap(at, Packet::Request { index, ip_id, is_ce }));
        if !rng.per_million(LOSS_PER_MILLION) {
            queue.at(now + TO_TAP_NS + FROM_TAP_NS, Event::RequestArrives { at, index, is_ce });
        }
    }

    fn on_request(&mut self, now: u64, at: usize, index: u64, is_ce: bool, queue: &mut EventQueue<Event>) {
        if is_ce && self.last_cnp_ns.is_none_or(|last| now - last >= CNP_GAP_NS) {
            self.last_cnp_ns = Some(now);
            let ip_id = self.next_ip_id(1);
            queue.at(now + FROM_TAP_NS, Event::Tap(at, Packet::Cnp { ip_id }));
        }
        if index > self.expected {
            if !self.nak_sent {
                self.nak_sent = true;
                self.reply(now, at, SYNDROME_SEQUENCE_NAK, queue);
            }
            return;
        }
        if index == self.expected {
            self.expected += 1;
            self.nak_sent = false;
        }
        if self.asks_for_ack(index) {
            self.reply(now, at, SYNDROME_ACK, queue);
        }
    }

    fn reply(&mut self, now: u64, at: usize, syndrome: u8, queue: &mut EventQueue<Event>) {
        let is_nak = syndrome == SYNDROME_SEQUENCE_NAK;
        // A NAK names the packet it wants, an ACK the last one it has.
        let psn_index = if is_nak { self.expected } else { self.expected - 1 };
        let messages = self.expected / self.packets_per_message;
        let ip_id = self.next_ip_id(1);
        queue.at(now + FROM_TAP_NS, Event::Tap(at, Packet::Reply { psn_index, syndrome, messages, ip_id }));
        let event = Event::ReplyArrives { at, covers: self.expected, is_nak };
        queue.at(now + FROM_TAP_NS + TO_TAP_NS, event);
    }

    fn on_reply(&mut self, now: u64, at: usize, covers: u64, is_nak: bool, queue: &mut EventQueue<Event>) {
        self.unacknowledged = self.unacknowledged.max(covers);
        self.next = if is_nak { covers } else { self.next.max(covers) };
        self.timeout_at_ns = now + TIMEOUT_NS;
        self.resume(now, at, queue);
    }

    fn on_timer(&mut self, now: u64, at: usize, queue: &mut EventQueue<Event>) {
        if self.unacknowledged == self.total {
            return;
        }
        if now >= self.timeout_at_ns {
            self.next = self.unacknowledged;
            self.timeout_at_ns = now + TIMEOUT_NS;
            self.resume(now, at, queue);
        }
        queue.at(self.timeout_at_ns, Event::Timeout(at));
    }

    fn resume(&mut self, now: u64, at: usize, queue: &mut EventQueue<Event>) {
        if !self.is_sending {
            self.is_sending = true;
            queue.at(now + 500, Event::Send(at));
        }
    }

    fn asks_for_ack(&self, index: u64) -> bool {
        let position = index % self.packets_per_message;
        position + 1 == self.packets_per_message || position % ACK_EVERY == ACK_EVERY - 1
    }

    fn write(
        &mut self,
        now: u64,
        packet: &Packet,
        payload: &Payload,
        scratch: &mut Scratch,
        file: &mut CaptureFile,
    ) -> io::Result<()> {
        let transport = &mut scratch.transport;
        transport.clear();
        let (src, dst, ip) = match *packet {
            Packet::Request { index, ip_id, is_ce } => {
                self.request(index, payload, transport);
                let tos = if is_ce { TOS_CE } else { TOS_DATA };
                (self.requester, self.responder, IpFields { id: ip_id, tos, ttl: 64 })
            }
            Packet::Reply { psn_index, syndrome, messages, ip_id } => {
                base_transport(transport, ACKNOWLEDGE, 0, self.requester_qp, false, self.psn(psn_index));
                transport.push(syndrome);
                transport.extend_from_slice(&(messages as u32).to_be_bytes()[1..]);
                file.truth.naks += u64::from(syndrome == SYNDROME_SEQUENCE_NAK);
                let (src, dst) = self.backwards();
                (src, dst, IpFields { id: ip_id, tos: TOS_DATA, ttl: 64 })
            }
            Packet::Cnp { ip_id } => {
                base_transport(transport, CNP, 0, self.requester_qp, false, 0);
                transport[4] = 0x40;
                transport.extend_from_slice(&[0; 16]);
                let (src, dst) = self.backwards();
                (src, dst, IpFields { id: ip_id, tos: TOS_CNP, ttl: 64 })
            }
        };
        transport.extend_from_slice(&[0; 4]);
        wire::udp(&mut scratch.frame, src, dst, ip, transport, false);
        let end = scratch.frame.len() - 4;
        let icrc = icrc(&scratch.frame[ETHERNET_LEN..end], &mut scratch.covered);
        scratch.frame[end..].copy_from_slice(&icrc.to_le_bytes());
        file.truth.roce += 1;
        file.frame(now, &scratch.frame)
    }

    fn request(&self, index: u64, payload: &Payload, transport: &mut Vec<u8>) {
        let position = index % self.packets_per_message;
        let is_last = position + 1 == self.packets_per_message;
        let opcode = match (position, is_last) {
            (0, true) => WRITE_ONLY,
            (0, false) => WRITE_FIRST,
            (_, false) => WRITE_MIDDLE,
            (_, true) => WRITE_LAST,
        };
        let len = if is_last { self.last_payload_bytes } else { self.mtu_bytes } as usize;
        let pad = len.wrapping_neg() & 3;
        let psn = self.psn(index);
        base_transport(transport, opcode, pad as u8, self.responder_qp, self.asks_for_ack(index), psn);
        if position == 0 {
            let message = index / self.packets_per_message;
            let message_bytes = (self.packets_per_message - 1) * self.mtu_bytes + self.last_payload_bytes;
            let address = self.base_address + message % 64 * self.packets_per_message * self.mtu_bytes;
            transport.extend_from_slice(&address.to_be_bytes());
            transport.extend_from_slice(&self.remote_key.to_be_bytes());
            transport.extend_from_slice(&(message_bytes as u32).to_be_bytes());
        }
        let offset = u64::from(self.responder_qp) * 65_537 + index * self.mtu_bytes;
        transport.extend_from_slice(payload.at(offset, len));
        transport.extend_from_slice(&[0; 3][..pad]);
    }

    /// Replies come from a port of their own, as NICs choose it, and go to the RoCE port.
    fn backwards(&self) -> (Endpoint, Endpoint) {
        (Endpoint { port: self.requester.port, ..self.responder }, Endpoint { port: PORT, ..self.requester })
    }

    fn psn(&self, index: u64) -> u32 {
        self.first_psn.wrapping_add(index as u32) & 0xff_ffff
    }

    fn next_ip_id(&mut self, side: usize) -> u16 {
        self.ip_id[side] = self.ip_id[side].wrapping_add(1);
        self.ip_id[side]
    }
}

/// The base transport header (IBTA 9.2): opcode, flags and padding, P_Key, queue pair, PSN.
fn base_transport(out: &mut Vec<u8>, opcode: u8, pad: u8, dest_qp: u32, ack_request: bool, psn: u32) {
    const MIGRATED: u8 = 0x40;
    out.extend_from_slice(&[opcode, MIGRATED | pad << 4, 0xff, 0xff]);
    out.extend_from_slice(&dest_qp.to_be_bytes());
    out.extend_from_slice(&(psn | u32::from(ack_request) << 31).to_be_bytes());
}

/// The invariant CRC of a RoCEv2 packet over IPv4, from the IP header up to the CRC; it goes out little-endian.
///
/// CRC-32 over eight bytes of ones and the packet, with all that routers may change set to ones (IBTA annex A17).
pub(crate) fn icrc(packet: &[u8], covered: &mut Vec<u8>) -> u32 {
    const TOS: usize = 1;
    const TTL: usize = 8;
    const HEADER_CHECKSUM: usize = 10;
    const UDP_CHECKSUM: usize = IPV4_LEN + 6;
    const BTH_RESERVED: usize = IPV4_LEN + UDP_LEN + 4;
    covered.clear();
    covered.extend_from_slice(&[0xff; 8]);
    covered.extend_from_slice(&packet[..IPV4_LEN + UDP_LEN + BTH_LEN]);
    for at in [TOS, TTL, HEADER_CHECKSUM, HEADER_CHECKSUM + 1, UDP_CHECKSUM, UDP_CHECKSUM + 1, BTH_RESERVED] {
        covered[8 + at] = 0xff;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(covered);
    hasher.update(&packet[IPV4_LEN + UDP_LEN + BTH_LEN..]);
    hasher.finalize()
}
