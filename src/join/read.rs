//! Reads one capture into what the join needs of it: one small entry per IP packet.

use std::collections::HashMap;

use crate::analyze::{CopyFinder, CopyKind, Sighting};
use crate::capture::{Input, Reader, Record, Window};
use crate::error::Error;
use crate::flow::Endpoint;
use crate::observe::Observer;
use crate::options::Options;
use crate::wire::{Chunk, DecodeConfig, Frame, Ip, Layers, Protocol, decode};

const CHUNK_RECORDS: usize = 2_048;
/// No packet, no peer.
pub(super) const NONE: u32 = u32::MAX;

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Fate {
    #[default]
    Open,
    Delivered,
    Resegmented,
    Lost,
    Duplicated,
    NotCaptured,
    Outside,
    Unmatched,
}

impl Fate {
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Resegmented => "resegmented",
            Self::Lost => "lost",
            Self::Duplicated => "duplicated",
            Self::NotCaptured => "not_captured",
            Self::Outside => "outside",
            Self::Open | Self::Unmatched => "unmatched",
        }
    }
}

/// A packet as one of the points saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// The same at every point that the packet passes: see [`Pool::key`].
    pub key: u64,
    pub time_ns: i64,
    pub frame_no: u64,
    /// Index into [`Pool::flows`].
    pub flow: u32,
    /// TCP sequence number; of a fragment its offset, in bytes.
    pub seq: u32,
    /// Of a fragment: of its IP packet.
    pub payload_bytes: u32,
    /// What follows the IP header.
    pub ip_payload_bytes: u32,
    pub ip_bytes: u32,
    /// 0 = none.
    pub ip_id: u32,
    /// Index of the same packet at the other point.
    pub peer: u32,
    pub file: u16,
    pub ttl: u8,
    pub kind: u8,
    pub fate: Fate,
    pub is_reordered: bool,
}

impl Packet {
    pub const TCP: u8 = 1;
    pub const FRAGMENT: u8 = 2;

    pub fn has_tcp_bytes(&self) -> bool {
        self.kind & (Self::TCP | Self::FRAGMENT) == Self::TCP && self.payload_bytes > 0
    }
}

/// All packets of one flow in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub src: Endpoint,
    pub dst: Endpoint,
    pub protocol: Protocol,
    /// Index of its host pair.
    pub pair: u32,
    /// The packets go from the pair's higher address to the lower one.
    pub is_down: bool,
}

/// What both captures share: the numbers of flows and host pairs, and the hash that names packets.
pub(super) struct Pool {
    config: DecodeConfig,
    flow_limit: usize,
    by_flow: HashMap<(Endpoint, Endpoint, u8), u32>,
    by_pair: HashMap<(Ip, Ip), u32>,
    pub flows: Vec<Flow>,
    pub pairs: usize,
}

/// One capture, read.
#[derive(Default)]
pub(super) struct Side {
    pub packets: Vec<Packet>,
    pub frames: u64,
    /// When the first and the last frame of any kind were captured.
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Frames that cannot be compared: not IP, without a time, or of flows beyond the limit.
    pub not_compared: u64,
    /// Frames that show a packet again which the same capture already holds.
    pub copies: u64,
    /// Reading stopped at the limit of packets.
    pub is_cut: bool,
}

impl Pool {
    pub fn new(options: &Options) -> Self {
        Self {
            config: DecodeConfig::new(options),
            flow_limit: options.limits.flows,
            by_flow: HashMap::new(),
            by_pair: HashMap::new(),
            flows: Vec::new(),
            pairs: 0,
        }
    }

    /// Reads a capture, up to `limit` packets. `before` bytes of input were read before it.
    pub fn read(
        &mut self,
        inputs: Vec<Input>,
        options: &Options,
        limit: usize,
        progress: &mut Progress<'_>,
    ) -> Result<Side, Error> {
        let mut reader = Reader::open(inputs, &options.limits)?;
        progress.add_input(reader.total_bytes());
        let mut side = Side::default();
        let mut chunk = Chunk::default();
        let mut copies = CopyFinder::default();
        while let Some(window) = reader.next_window()? {
            progress.tell(window.done_bytes)?;
            for records in window.records.chunks(CHUNK_RECORDS) {
                progress.go_on()?;
                chunk.clear();
                for record in records {
                    decode(record.link, window.bytes(record), record.original_bytes, &self.config, &mut chunk);
                }
                for (at, record) in records.iter().enumerate() {
                    if side.packets.len() == limit {
                        side.is_cut = true;
                        return Ok(side);
                    }
                    self.add(&mut side, &mut copies, &window, record, &chunk, at);
                }
            }
        }
        progress.end_input();
        Ok(side)
    }

    fn add(
        &mut self,
        side: &mut Side,
        copies: &mut CopyFinder,
        window: &Window,
        record: &Record,
        chunk: &Chunk,
        at: usize,
    ) {
        side.frames += 1;
        let (Some(frame), Some(time_ns)) = (chunk.frames.get(at), record.time()) else {
            side.not_compared += 1;
            return;
        };
        side.first_ns = Some(side.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        side.last_ns = Some(side.last_ns.map_or(time_ns, |last| last.max(time_ns)));
        let flow = if frame.layers.has(Layers::IP) { self.flow(frame) } else { None };
        let Some(flow) = flow else {
            side.not_compared += 1;
            return;
        };
        let key = self.key(frame, chunk, window.bytes(record));
        let sighting = Sighting {
            file: 0,
            frame_no: record.frame_no,
            time_ns,
            interface: record.interface,
            ttl: frame.ttl,
            tunnels: frame.tunnels,
            vni: frame.vni,
        };
        let has_id = frame.layers.has(Layers::IP_ID) && frame.ip_id != 0;
        // A second copy with the same headers on the same interface came over the wire twice: that is for the join to say.
        let copy = copies.on_packet(key, has_id, sighting, side.frames);
        if copy.is_some_and(|copy| copy.kind != CopyKind::SameInterface) {
            side.copies += 1;
            return;
        }
        let is_piece = frame.is_piece();
        let tcp = chunk.tcp_of(frame).filter(|_| !is_piece);
        let kind = if tcp.is_some() { Packet::TCP } else { 0 } | if is_piece { Packet::FRAGMENT } else { 0 };
        let ip_payload_bytes = frame.ip_bytes.saturating_sub(frame.l4_at.saturating_sub(frame.l3_at));
        side.packets.push(Packet {
            key,
            time_ns,
            frame_no: record.frame_no,
            flow,
            seq: tcp.map_or(u32::from(frame.fragment_offset), |tcp| tcp.seq),
            payload_bytes: if is_piece { ip_payload_bytes } else { frame.payload_bytes },
            ip_payload_bytes,
            ip_bytes: frame.ip_bytes,
            ip_id: if frame.layers.has(Layers::IP_ID) { frame.ip_id } else { 0 },
            peer: NONE,
            file: record.file,
            ttl: frame.ttl,
            kind,
            fate: Fate::Open,
            is_reordered: false,
        });
    }

    /// Number of the frame's flow and direction. Tunnels and interfaces do not count, since they differ between points;
    /// fragments, of which only the first knows the ports, go by addresses alone.
    fn flow(&mut self, frame: &Frame) -> Option<u32> {
        let has_ports = !frame.is_piece();
        let end = |ip, port| Endpoint { ip, port: if has_ports { port } else { 0 } };
        let (src, dst) = (end(frame.src_ip, frame.src_port), end(frame.dst_ip, frame.dst_port));
        let key = (src, dst, frame.ip_protocol);
        if let Some(&flow) = self.by_flow.get(&key) {
            return Some(flow);
        }
        if self.flows.len() >= self.flow_limit.min(NONE as usize) {
            return None;
        }
        let is_down = src.ip > dst.ip;
        let ips = if is_down { (dst.ip, src.ip) } else { (src.ip, dst.ip) };
        let pairs = &mut self.pairs;
        let pair = *self.by_pair.entry(ips).or_insert_with(|| {
            *pairs += 1;
            *pairs as u32 - 1
        });
        let flow = self.flows.len() as u32;
        self.flows.push(Flow { src, dst, protocol: frame.protocol, pair, is_down });
        self.by_flow.insert(key, flow);
        Some(flow)
    }

    /// Identifies a packet wherever it is captured, by what routers, bridges and network cards leave alone. A TCP checksum is
    /// left out, because senders that leave it to the card show another one than the receiver sees; what stands in a UDP or
    /// other payload goes in by its first bytes, for the same reason.
    fn key(&self, frame: &Frame, chunk: &Chunk, bytes: &[u8]) -> u64 {
        let hasher = &self.config.hasher;
        if frame.is_piece() {
            return hasher.packet(frame, 0, (0, 0));
        }
        if let Some(tcp) = chunk.tcp_of(frame) {
            let stamps = u64::from(tcp.tsval) << 32 | u64::from(tcp.tsecr);
            return hasher.with(hasher.packet(frame, tcp.flags, (tcp.seq, tcp.ack)), stamps);
        }
        let roce = matches!(frame.protocol, Protocol::RoceV1 | Protocol::RoceV2)
            .then(|| chunk.roce.get(frame.detail as usize));
        if let Some(roce) = roce.flatten() {
            let (syndrome, msn) = roce.aeth.unwrap_or_default();
            let key = hasher.packet(frame, u16::from(roce.opcode), (roce.psn, roce.dest_qp));
            return hasher.with(key, u64::from(syndrome) << 32 | u64::from(msn));
        }
        let is_udp = frame.ip_protocol == 17 && frame.layers.has(Layers::PORTS);
        let at = frame.l4_at as usize + if is_udp { 8 } else { 0 };
        let word = |at: usize| {
            let mut word = [0; 8];
            let there = bytes.get(at..).unwrap_or(&[]);
            let length = there.len().min(8);
            word[..length].copy_from_slice(&there[..length]);
            u64::from_le_bytes(word)
        };
        hasher.with(hasher.with(hasher.packet(frame, 0, (0, 0)), word(at)), word(at + 8))
    }
}

/// Progress over two captures.
pub(super) struct Progress<'a> {
    observer: &'a mut dyn Observer,
    before_bytes: u64,
    done_bytes: u64,
    total_bytes: Option<u64>,
}

impl<'a> Progress<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, before_bytes: 0, done_bytes: 0, total_bytes: Some(0) }
    }

    fn add_input(&mut self, bytes: Option<u64>) {
        self.total_bytes = self.total_bytes.and_then(|total| Some(total + bytes?));
    }

    fn tell(&mut self, done_bytes: u64) -> Result<(), Error> {
        self.done_bytes = self.before_bytes + done_bytes;
        self.go_on()
    }

    /// Asked between the parts of the work.
    pub fn go_on(&mut self) -> Result<(), Error> {
        // How much the second capture holds is not known while the first is read.
        let total = self.total_bytes.filter(|_| self.before_bytes > 0);
        if self.observer.on_progress(self.done_bytes, total).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn end_input(&mut self) {
        self.before_bytes = self.done_bytes;
    }
}
