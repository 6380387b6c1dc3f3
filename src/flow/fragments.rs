//! IP fragments: the first one's ports for the later ones, and whole datagrams again.
//!
//! Runs over the decoded frames in order, before they are shared out to shards. Only frames with [`Layers::FRAGMENT`] are
//! looked at. What is held is bounded in bytes; the oldest datagram goes first. As receivers do since RFC 5722 (IPv6) and
//! Linux 4.19 (IPv4), a datagram whose fragments overlap is never put together: an exact copy is ignored.

use std::collections::{HashMap, VecDeque};

use crate::wire::{Chunk, DecodeConfig, Frame, Ip, Layers, Protocol, decode_datagram};

/// Nanoseconds after which a datagram's missing fragments are no longer waited for (RFC 8200 section 4.5).
const LIFETIME_NS: i64 = 60_000_000_000;
/// What a datagram and a fragment cost beside their bytes.
const DATAGRAM_COST: usize = 256;
const FRAGMENT_COST: usize = 64;
const MAX_PACKET_BYTES: usize = 65_535;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    src: Ip,
    dst: Ip,
    id: u32,
    ip_protocol: u8,
    vni: Option<u32>,
    interface: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Collecting,
    /// Put together. Copies of its fragments still get the ports.
    Done,
    /// Will never be put together: cut by the snap length, overlapping, or of impossible lengths.
    Broken,
}

#[derive(Debug, Default)]
struct Datagram {
    number: u64,
    state: State,
    last_time_ns: Option<i64>,
    ports: Option<(u16, u16)>,
    /// The IP header of the first fragment.
    header: Vec<u8>,
    /// Fragments by offset, none overlapping.
    pieces: Vec<(usize, Vec<u8>)>,
    held_bytes: usize,
    /// Where the last fragment ends.
    end: Option<usize>,
    /// Frames of the window at hand that came before the ports were known: chunk and frame.
    waiting: Vec<(usize, usize)>,
}

/// What may be said of a run's fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FragmentCounts {
    /// Datagrams given up because too many bytes were held.
    pub dropped: u64,
    pub reassembled: u64,
}

/// Fragments that wait for the rest of their datagram.
#[derive(Debug)]
pub(crate) struct Fragments {
    datagrams: HashMap<Key, Datagram>,
    /// Oldest first; an entry whose number is no longer its datagram's is stale.
    order: VecDeque<(u64, Key)>,
    next_number: u64,
    held_bytes: usize,
    limit_bytes: usize,
    pub counts: FragmentCounts,
}

/// A fragment as it came: where its frame is, and its bytes.
pub(crate) struct Arrival<'a> {
    /// Chunk of the window, and frame of the chunk.
    pub place: (usize, usize),
    pub interface: u32,
    pub time_ns: Option<i64>,
    /// The captured frame.
    pub bytes: &'a [u8],
}

impl Fragments {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            datagrams: HashMap::new(),
            order: VecDeque::new(),
            next_number: 0,
            held_bytes: 0,
            limit_bytes,
            counts: FragmentCounts::default(),
        }
    }

    /// Shows the next fragment. The frame that completes a datagram is decoded anew, as the whole of it; its former and its
    /// new protocol are returned.
    pub fn on_fragment(
        &mut self,
        arrival: &Arrival<'_>,
        chunks: &mut [Chunk],
        config: &DecodeConfig,
    ) -> Option<(Protocol, Protocol)> {
        let (chunk, at) = arrival.place;
        let frame = *chunks.get(chunk)?.frames.get(at)?;
        let key = Key {
            src: frame.src_ip,
            dst: frame.dst_ip,
            id: frame.ip_id,
            ip_protocol: frame.ip_protocol,
            vni: frame.layers.has(Layers::VNI).then_some(frame.vni),
            interface: arrival.interface,
        };
        self.expire(arrival.time_ns);
        let is_first = frame.fragment_offset == 0;
        let is_over = self.datagrams.get(&key).is_some_and(|datagram| {
            is_late(datagram.last_time_ns, arrival.time_ns) || is_first && datagram.state == State::Done
        });
        if is_over {
            self.forget(&key);
        }
        self.make_room(arrival.bytes.len());
        let (next_number, order) = (&mut self.next_number, &mut self.order);
        let datagram = self.datagrams.entry(key).or_insert_with(|| {
            let number = *next_number;
            *next_number += 1;
            order.push_back((number, key));
            self.held_bytes += DATAGRAM_COST;
            Datagram { number, ..Datagram::default() }
        });
        datagram.last_time_ns = arrival.time_ns.or(datagram.last_time_ns);
        share_ports(datagram, &frame, arrival.place, chunks, config);
        if datagram.state != State::Collecting || !is_reassembled(frame.ip_protocol) {
            return None;
        }
        let before = datagram.held_bytes;
        datagram.add(&frame, arrival.bytes);
        let whole = datagram.take_whole(frame.src_ip.is_v6(), frame.ip_protocol);
        self.held_bytes = self.held_bytes + datagram.held_bytes - before;
        let whole = whole?;
        self.counts.reassembled += 1;
        let chunk = chunks.get_mut(chunk)?;
        decode_datagram(at, whole, config, chunk);
        Some((frame.protocol, chunk.frames.get(at)?.protocol))
    }

    /// Ends a window: places in it mean nothing any more.
    pub fn end_window(&mut self) {
        for datagram in self.datagrams.values_mut() {
            datagram.waiting.clear();
        }
    }

    fn expire(&mut self, now_ns: Option<i64>) {
        while let Some((number, key)) = self.order.front().copied() {
            match self.datagrams.get(&key) {
                Some(datagram) if datagram.number == number => {
                    if !is_late(datagram.last_time_ns, now_ns) {
                        return;
                    }
                    self.forget(&key);
                }
                _ => {}
            }
            self.order.pop_front();
        }
    }

    fn make_room(&mut self, bytes: usize) {
        while self.held_bytes + bytes + DATAGRAM_COST > self.limit_bytes {
            let Some((number, key)) = self.order.pop_front() else { return };
            if let Some(datagram) = self.datagrams.get(&key).filter(|datagram| datagram.number == number) {
                self.counts.dropped += u64::from(datagram.state == State::Collecting);
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(datagram) = self.datagrams.remove(key) {
            self.held_bytes -= datagram.held_bytes + DATAGRAM_COST;
        }
    }
}

impl Datagram {
    fn add(&mut self, frame: &Frame, bytes: &[u8]) {
        let (l3, l4) = (frame.l3_at as usize, frame.l4_at as usize);
        let end = l3 + frame.ip_bytes as usize;
        let start = usize::from(frame.fragment_offset);
        let is_more = frame.layers.has(Layers::MORE_FRAGMENTS);
        let Some(piece) = bytes.get(l4..end).filter(|piece| !piece.is_empty()) else {
            return self.give_up();
        };
        let piece_end = start + piece.len();
        if is_more && piece.len() % 8 != 0 || piece_end > MAX_PACKET_BYTES {
            return self.give_up();
        }
        let at = self.pieces.partition_point(|(other, _)| *other < start);
        if let Some((other, bytes)) = self.pieces.get(at)
            && (*other, bytes.as_slice()) == (start, piece)
        {
            return;
        }
        let is_before_next = self.pieces.get(at).is_none_or(|(next, _)| piece_end <= *next);
        let is_after_last = at == 0 || self.pieces.get(at - 1).is_some_and(|(last, bytes)| last + bytes.len() <= start);
        let is_within = match (self.end, is_more) {
            (Some(end), true) => piece_end <= end,
            (Some(end), false) => piece_end == end,
            (None, true) => true,
            (None, false) => self.pieces.last().is_none_or(|(last, bytes)| last + bytes.len() <= piece_end),
        };
        if !is_before_next || !is_after_last || !is_within {
            return self.give_up();
        }
        if !is_more {
            self.end = Some(piece_end);
        }
        if start == 0 {
            self.header = bytes.get(l3..l4).unwrap_or(&[]).to_vec();
        }
        self.held_bytes += piece.len() + FRAGMENT_COST;
        self.pieces.insert(at, (start, piece.to_vec()));
    }

    fn give_up(&mut self) {
        self.state = State::Broken;
        self.release();
    }

    fn release(&mut self) {
        self.pieces = Vec::new();
        self.header = Vec::new();
        self.held_bytes = 0;
    }

    /// The packet without fragmentation, once all of it is there: its header says so, but for the header checksum.
    fn take_whole(&mut self, is_v6: bool, ip_protocol: u8) -> Option<Vec<u8>> {
        let end = self.end?;
        let held: usize = self.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        if held != end || self.header.len() < 20 {
            return None;
        }
        // Extension headers before the fragment header say nothing that is needed here.
        let mut whole = self.header[..if is_v6 { 40.min(self.header.len()) } else { self.header.len() }].to_vec();
        let header_bytes = whole.len();
        if header_bytes + end > MAX_PACKET_BYTES || is_v6 && header_bytes < 40 {
            self.give_up();
            return None;
        }
        whole.reserve_exact(end);
        for (_, bytes) in &self.pieces {
            whole.extend_from_slice(bytes);
        }
        if is_v6 {
            whole[4..6].copy_from_slice(&(end as u16).to_be_bytes());
            whole[6] = ip_protocol;
        } else {
            whole[2..4].copy_from_slice(&((header_bytes + end) as u16).to_be_bytes());
            // More-fragments and the offset go, don't-fragment stays.
            whole[6] &= 0x40;
            whole[7] = 0;
        }
        self.state = State::Done;
        self.release();
        Some(whole)
    }
}

/// TCP, UDP, and what carries another packet. A fragmented ICMP message is read from its first fragment, which holds all that
/// its row says.
fn is_reassembled(ip_protocol: u8) -> bool {
    matches!(ip_protocol, 4 | 6 | 17 | 41 | 47 | 0 | 43 | 51 | 60)
}

fn is_late(last_ns: Option<i64>, now_ns: Option<i64>) -> bool {
    matches!((last_ns, now_ns), (Some(last), Some(now)) if now.saturating_sub(last) > LIFETIME_NS)
}

/// Gives the ports to fragments that have none: this one, or those of the window that came before the first.
fn share_ports(
    datagram: &mut Datagram,
    frame: &Frame,
    place: (usize, usize),
    chunks: &mut [Chunk],
    config: &DecodeConfig,
) {
    let mut give = |(chunk, at): (usize, usize), (src_port, dst_port): (u16, u16)| {
        let Some(frame) = chunks.get_mut(chunk).and_then(|chunk| chunk.frames.get_mut(at)) else { return };
        frame.layers.set(Layers::PORTS);
        (frame.src_port, frame.dst_port) = (src_port, dst_port);
        frame.flow_hash = config.hasher.hash(frame);
    };
    if frame.layers.has(Layers::PORTS) {
        let ports = (frame.src_port, frame.dst_port);
        datagram.ports = Some(ports);
        datagram.waiting.drain(..).for_each(|place| give(place, ports));
    } else if let Some(ports) = datagram.ports {
        give(place, ports);
    } else if frame.fragment_offset != 0 {
        datagram.waiting.push(place);
    }
}
