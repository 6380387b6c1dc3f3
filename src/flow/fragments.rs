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
        self.make_room(arrival.bytes.len() + FRAGMENT_COST);
        self.drop_stale_order();
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

    /// Datagrams that were forgotten out of turn leave entries behind; a capture whose clock stands still never reaches them.
    fn drop_stale_order(&mut self) {
        if self.order.len() > 2 * self.datagrams.len() + 64 {
            let datagrams = &self.datagrams;
            self.order.retain(|(number, key)| datagrams.get(key).is_some_and(|datagram| datagram.number == *number));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::LinkType;
    use crate::options::Options;
    use crate::wire::decode;

    /// Datagrams of the tests are 40 bytes over IP: UDP from port 5000 to 53, and 32 bytes.
    fn datagram() -> Vec<u8> {
        let mut bytes = vec![0x13, 0x88, 0, 53, 0, 40, 0, 0];
        bytes.extend(0..32);
        bytes
    }

    fn fragment(id: u8, protocol: u8, part: &[u8], start: usize, is_more: bool) -> Vec<u8> {
        let field = (start / 8) as u16 | if is_more { 0x2000 } else { 0 };
        let mut bytes = vec![0x45, 0, 0, 20 + part.len() as u8, 0, id];
        bytes.extend(field.to_be_bytes());
        bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(part);
        bytes
    }

    fn piece(id: u8, from: usize, to: usize) -> Vec<u8> {
        fragment(id, 17, &datagram()[from..to], from, to < 40)
    }

    struct Run {
        fragments: Fragments,
        config: DecodeConfig,
    }

    impl Run {
        fn new(limit_bytes: usize) -> Self {
            Self { fragments: Fragments::new(limit_bytes), config: DecodeConfig::new(&Options::default()) }
        }

        /// One window of packets at one second each; how many datagrams were completed, and the frames.
        fn window(&mut self, packets: &[Vec<u8>]) -> (u64, Chunk) {
            let before = self.fragments.counts.reassembled;
            let mut chunks = [Chunk::default()];
            for packet in packets {
                decode(LinkType::IPV4, packet, packet.len() as u32, &self.config, &mut chunks[0]);
            }
            for (at, bytes) in packets.iter().enumerate() {
                let time_ns = Some(at as i64 * 1_000_000_000);
                let arrival = Arrival { place: (0, at), interface: 0, time_ns, bytes };
                self.fragments.on_fragment(&arrival, &mut chunks, &self.config);
            }
            self.fragments.end_window();
            let [chunk] = chunks;
            (self.fragments.counts.reassembled - before, chunk)
        }
    }

    fn ports(chunk: &Chunk) -> Vec<(u16, u16)> {
        chunk.frames.iter().map(|frame| (frame.src_port, frame.dst_port)).collect()
    }

    #[test]
    fn the_frame_that_completes_a_datagram_speaks_for_the_whole() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            let pieces = [piece(1, 0, 16), piece(1, 16, 32), piece(1, 32, 40)];
            let packets: Vec<_> = order.iter().map(|at: &usize| pieces[*at].clone()).collect();
            let (whole, chunk) = Run::new(1 << 20).window(&packets);
            assert_eq!((whole, ports(&chunk)), (1, vec![(5000, 53); 3]), "{order:?}");
            let last = chunk.frames[2];
            assert_eq!((last.protocol, last.payload_bytes), (Protocol::Udp, 32));
            assert!(!last.is_piece() && last.layers.has(Layers::FRAGMENT) && chunk.frames[0].is_piece());
            let datagram_bytes = &chunk.datagram_of(2).unwrap().bytes;
            assert_eq!((datagram_bytes.len(), &datagram_bytes[20..]), (60, &datagram()[..]));
            let one_flow = chunk.frames.iter().all(|frame| frame.flow_hash == last.flow_hash);
            assert!(one_flow);
        }
    }

    #[test]
    fn fragments_find_each_other_across_windows() {
        let mut run = Run::new(1 << 20);
        assert_eq!(run.window(&[piece(1, 0, 16)]).0, 0);
        let (whole, chunk) = run.window(&[piece(1, 16, 40)]);
        assert_eq!((whole, ports(&chunk), chunk.frames[0].payload_bytes), (1, vec![(5000, 53)], 32));
    }

    #[test]
    fn a_tcp_segment_is_read_once_from_the_whole() {
        let mut segment = vec![0, 80, 0x30, 0x39, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
        segment.extend([7; 20]);
        let packets = [fragment(1, 6, &segment[..24], 0, true), fragment(1, 6, &segment[24..], 24, false)];
        let (whole, chunk) = Run::new(1 << 20).window(&packets);
        assert_eq!((whole, chunk.frames[1].is_tcp(), chunk.frames[1].payload_bytes), (1, true, 20));
        assert_eq!(chunk.tcp_of(&chunk.frames[1]).map(|tcp| (tcp.seq, tcp.window)), Some((1, 256)));
        assert!(chunk.frames[0].is_piece());
    }

    #[test]
    fn a_copy_changes_nothing_and_still_gets_the_ports() {
        let packets = [piece(1, 0, 16), piece(1, 0, 16), piece(1, 16, 40), piece(1, 16, 40)];
        let (whole, chunk) = Run::new(1 << 20).window(&packets);
        assert_eq!((whole, ports(&chunk)), (1, vec![(5000, 53); 4]));
    }

    #[test]
    fn overlapping_and_impossible_fragments_are_never_put_together() {
        let overlap = [piece(1, 0, 24), piece(1, 16, 40)];
        let uneven = [fragment(2, 17, &datagram()[..13], 0, true), fragment(2, 17, &datagram()[16..], 16, false)];
        let two_ends = [piece(3, 32, 40), fragment(3, 17, &[0; 8], 16, false), piece(3, 0, 16), piece(3, 16, 32)];
        for packets in [&overlap[..], &uneven, &two_ends] {
            let mut run = Run::new(1 << 20);
            assert_eq!(run.window(packets).0, 0);
            assert_eq!(run.fragments.held_bytes, DATAGRAM_COST);
        }
        let cut = [piece(4, 0, 16), piece(4, 16, 40)[..30].to_vec()];
        assert_eq!(Run::new(1 << 20).window(&cut).0, 0);
    }

    #[test]
    fn the_ids_of_a_minute_ago_are_forgotten() {
        let mut packets = vec![piece(1, 0, 16)];
        packets.extend(vec![piece(2, 0, 16); 61]);
        packets.push(piece(1, 16, 40));
        assert_eq!(Run::new(1 << 20).window(&packets).0, 0);
    }

    #[test]
    fn the_order_of_arrival_stays_as_short_as_what_is_held() {
        let mut run = Run::new(1 << 20);
        run.window(&[piece(1, 0, 16)]);
        for _ in 0..500 {
            assert_eq!(run.window(&[piece(2, 0, 16), piece(2, 16, 40)]).0, 1);
        }
        assert!(run.fragments.order.len() <= 70, "{}", run.fragments.order.len());
    }

    #[test]
    fn a_flood_is_held_within_the_limit_and_counted() {
        let mut run = Run::new(4_096);
        for _ in 0..40 {
            let packets: Vec<_> = (0..=255).map(|id| piece(id, 0, 16)).collect();
            run.window(&packets);
            assert!(run.fragments.held_bytes <= 4_096 && run.fragments.order.len() <= 256);
        }
        assert!(run.fragments.counts.dropped > 1_000);
        let fresh = run.window(&[piece(7, 0, 16), piece(7, 16, 40)]).0;
        assert_eq!(fresh, 1);
    }

    proptest::proptest! {
        #[test]
        fn any_fragments_are_held_within_the_limit_and_counted_rightly(
            parts in proptest::collection::vec((0_u8..3, 0_usize..9, 0_usize..40, proptest::bool::ANY, 0_usize..5), 0..60),
        ) {
            let mut run = Run::new(2_048);
            let packet = |&(id, at, length, is_more, protocol): &(u8, usize, usize, bool, usize)| {
                let protocol = [17, 6, 4, 47, 1][protocol];
                fragment(id, protocol, &vec![id ^ 0x45; length], at * 8, is_more)
            };
            for part in parts.chunks(7) {
                let packets: Vec<_> = part.iter().map(packet).collect();
                run.window(&packets);
                let held = run.fragments.datagrams.values().map(|datagram| {
                    let pieces: usize = datagram.pieces.iter().map(|(_, bytes)| bytes.len() + FRAGMENT_COST).sum();
                    assert_eq!(pieces, datagram.held_bytes);
                    DATAGRAM_COST + pieces
                });
                proptest::prop_assert_eq!(held.sum::<usize>(), run.fragments.held_bytes);
                proptest::prop_assert!(run.fragments.held_bytes <= 2_048);
            }
        }
    }
}
