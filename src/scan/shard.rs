//! One shard: all frames of some flows, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use super::attic::AtticFile;
use super::kept::{Keep, Kept};
use super::packet_id::{PacketId, sighting_of};
use super::quoted::Quote;
use super::slots::Slots;
use super::streams::Streams;
use super::tcp::RowPlace;
use super::turns::{Turn, Turns};
use super::verdicts::{StoryPlace, Verdicts};
use crate::analyze::{
    Connection, Copy, CopyFinder, CopyKind, HoldLimits, Judgement, Moment, Story, VerdictSummary, WsFlags, WsRow,
};
use crate::capture::Window;
use crate::flow::{FlowHasher, FlowKey, FlowRef, FlowState, FlowTable, Opening};
use crate::wire::{Chunk, Frame, Ip, Layers, TcpHeader};

/// A window with its frames decoded.
pub(crate) struct Decoded<'a> {
    pub window: &'a Window,
    pub chunks: &'a [Chunk],
    /// The latest time up to each frame: see [`Moment`].
    pub latest_ns: &'a [i64],
    /// Frames before the window.
    pub first_frame: u64,
}

/// Of so many connections the states stay in the processor's cache.
const IN_CACHE: usize = 8;

/// Frames whose memory is asked for together.
const BATCH: usize = 32;
/// The same for turns, of which several mostly belong to one connection.
const TURN_BATCH: usize = 128;

/// Records per chunk: what one worker decodes at a time.
pub(crate) const CHUNK_RECORDS: usize = 1_024;

impl Decoded<'_> {
    #[inline]
    pub fn frame(&self, at: usize) -> Option<(&Frame, &Chunk)> {
        let chunk = self.chunks.get(at / CHUNK_RECORDS)?;
        Some((chunk.frames.get(at % CHUNK_RECORDS)?, chunk))
    }

    /// How far the capture had come with the frame at a place.
    #[inline]
    pub fn moment(&self, at: usize) -> Moment {
        Moment { ns: self.latest_ns.get(at).copied().unwrap_or(0), frame: self.first_frame + at as u64 }
    }

    /// Payload that came with the frame at a place: of a datagram that it completed, its own part, since the other
    /// fragments brought theirs.
    fn own_payload_bytes(&self, at: usize, frame: &Frame, chunk: &Chunk) -> u32 {
        if !frame.layers.has(Layers::WHOLE) {
            return frame.payload_bytes;
        }
        chunk.datagram_of(at % CHUNK_RECORDS).map_or(0, |datagram| datagram.piece_bytes)
    }
}

/// What a run needs of its shards.
#[derive(Clone, Debug)]
pub(crate) struct ShardNeeds {
    pub flow_limit: usize,
    pub streams: bool,
    /// What Wireshark says of each segment of a stream.
    pub ws: bool,
    pub connections: bool,
    pub copies: bool,
    pub verdicts: bool,
    pub stories: bool,
    pub hold: HoldLimits,
    pub hasher: FlowHasher,
}

/// Marks a place in the order of a shard's frames: not the frame itself, but the TCP header that its ICMP error quotes.
pub(crate) const QUOTED: u32 = 1 << 31;

/// What Wireshark says of one TCP segment, as far as its row shows it.
#[derive(Clone, Copy, Default)]
pub(crate) struct TcpOut {
    /// Index of its Wireshark stream in the shard.
    stream: u32,
    pub flags: WsFlags,
    pub duplicate_ack_num: u32,
    pub relative_seq: u32,
    pub relative_ack: u32,
    pub bytes_in_flight: Option<u32>,
    pub window_bytes: Option<u64>,
    pub ack_rtt_ns: Option<i64>,
    pub initial_rtt_ns: Option<i64>,
}

impl TcpOut {
    fn of(stream: u32, ws: &WsRow) -> Self {
        Self {
            stream,
            flags: ws.flags,
            duplicate_ack_num: ws.duplicate_ack_num,
            relative_seq: ws.relative_seq,
            relative_ack: ws.relative_ack,
            bytes_in_flight: ws.bytes_in_flight,
            window_bytes: ws.window_bytes,
            ack_rtt_ns: ws.ack_rtt_ns,
            initial_rtt_ns: ws.initial_rtt_ns,
        }
    }
}

/// What was found of a segment, and what of itself its row needs besides.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub out: &'a TcpOut,
    pub ack: u32,
    pub sacks: &'a [(u32, u32)],
    /// Number of its Wireshark stream.
    pub stream: u64,
}

/// The flow that a frame belongs to, the end of it that sent the frame, and the flow's numbers where it has them already.
#[derive(Clone, Copy)]
struct Belongs {
    flow: FlowRef,
    sender: u8,
    numbers: Option<FlowNumbers>,
}

impl Belongs {
    const NOWHERE: Self = Self { flow: FlowRef::NONE, sender: 0, numbers: None };
}

/// What stands for a flow and the addresses of a frame of it.
#[derive(Clone, Copy)]
pub(crate) struct FlowNumbers {
    pub id: u64,
    /// Of source and destination.
    pub addresses: [u32; 2],
}

impl FlowNumbers {
    pub const NONE: Self = Self { id: u64::MAX, addresses: [u32::MAX; 2] };

    fn of(flow: &FlowState, sender: u8) -> Self {
        let [low, high] = flow.addresses;
        Self { id: flow.id, addresses: if sender == 0 { [low, high] } else { [high, low] } }
    }
}

/// The state of one shard.
#[derive(Default)]
pub(crate) struct Shard {
    pub flows: FlowTable,
    /// By flow index; none for what is no TCP.
    pub connections: Slots<Connection>,
    /// Flow of each frame of this window that was routed here, in order.
    refs: Vec<Belongs>,
    pub frames_without_flow: u64,
    pub streams: Streams,
    /// TCP segments that are not followed yet, in the order of their frames; those of this window from `kept_before` on.
    keep: Keep,
    kept_before: usize,
    /// What was found of each of them; made by [`Self::follow`].
    outs: Vec<TcpOut>,
    /// Frames of this window that are copies of earlier ones, by their place in the window.
    pub copies: Vec<(u32, Copy)>,
    copy_finder: CopyFinder,
    verdicts: Verdicts,
    turns: Turns,
    /// Judgements that became final, by row of this shard.
    pub judgements: Vec<(u64, Judgement)>,
    /// Where rows went, from the first one on that waits.
    row_places: VecDeque<(RowPlace, bool)>,
    first_row: u64,
    next_row: u64,
}

impl Shard {
    /// A shard whose states may rest in a file.
    pub fn new(file: &Arc<AtticFile>) -> Self {
        let mut shard = Self::default();
        shard.connections.use_file(file);
        shard.streams.use_file(file);
        shard.verdicts.use_file(file);
        shard
    }

    /// Takes the frames of a window that belong here, in their order, to the flows they belong to and past the copy finder,
    /// and keeps the TCP segments among them. `place`: of the window's first frame among those followed together.
    pub fn process(&mut self, decoded: &Decoded<'_>, frames: &[u32], place: u32, needs: &ShardNeeds) {
        self.refs.clear();
        self.copies.clear();
        self.copy_finder.forget(decoded.first_frame);
        self.kept_before = self.keep.segments.len();
        for batch in frames.chunks(BATCH) {
            let packets = self.fetch_frames(decoded, batch, needs);
            for (&at, packet) in batch.iter().zip(packets) {
                let turn = if at & QUOTED == 0 {
                    self.on_frame(decoded, at, place, packet, needs)
                } else {
                    self.refs.push(Belongs::NOWHERE);
                    self.on_quoted(decoded, at, place, needs)
                };
                if let Some((member, turn)) = turn {
                    self.turns.add(member, turn);
                }
            }
        }
    }

    /// The numbers of each frame's flow, in the order of the frames; once all flows have theirs.
    pub fn flow_numbers(&self) -> impl Iterator<Item = Option<FlowNumbers>> {
        self.refs.iter().map(|belongs| {
            let now = || Some(FlowNumbers::of(self.flows.flows.get(belongs.flow.0 as usize)?, belongs.sender));
            belongs.numbers.or_else(now)
        })
    }

    /// Follows the TCP segments kept so far, connection by connection.
    pub fn follow(&mut self, needs: &ShardNeeds, now: Moment) {
        let (mut turns, keep) = (std::mem::take(&mut self.turns), std::mem::take(&mut self.keep));
        turns.sort();
        if needs.ws {
            self.outs.clear();
            self.outs.resize(keep.segments.len(), TcpOut::default());
        }
        let (mut batch, mut rest) = (Vec::with_capacity(TURN_BATCH), turns.iter());
        loop {
            batch.clear();
            batch.extend(rest.by_ref().take(TURN_BATCH));
            if batch.is_empty() {
                break;
            }
            if turns.groups() > IN_CACHE {
                self.fetch_turns(&keep, &batch);
            }
            for turn in &batch {
                if turn.at & QUOTED != 0 {
                    self.on_quoted_segment(&keep, turn, needs);
                } else if let Some(kept) = keep.segments.get(turn.at as usize) {
                    self.on_segment(&keep, kept, turn, needs);
                }
            }
        }
        drop(rest);
        (self.turns, self.keep) = (turns, keep);
        self.turns.start();
        self.next_row += self.keep.segments.len() as u64;
        if needs.verdicts {
            self.verdicts.expire(now, &needs.hold, &mut self.judgements);
            self.verdicts.make_room(self.flows.flows.len(), &needs.hold);
            self.rest_connections();
        }
    }

    /// Gives out all rows that waited too long.
    pub fn expire_all(&mut self, needs: &ShardNeeds, now: Moment) {
        self.verdicts.expire_all(now, &needs.hold, &mut self.judgements);
        self.rest_connections();
    }

    fn rest_connections(&mut self) {
        for flow in self.verdicts.rested.drain(..) {
            self.connections.rest(flow as usize);
            if let Some(state) = self.flows.flows.get(flow as usize) {
                self.streams.rest(state.stream);
            }
        }
    }

    /// Reads a little of all that following these segments will need, as [`Self::fetch_frames`] does.
    fn fetch_turns(&self, keep: &Keep, batch: &[Turn]) {
        let mut sum = 0;
        for turn in batch {
            sum ^= keep.segments.get((turn.at & !QUOTED) as usize).map_or(0, Kept::touch);
            sum ^= self.flows.flows.get(turn.flow.0 as usize).map_or(0, |flow| flow.stream);
        }
        let stream_of = |flow: FlowRef| self.flows.flows.get(flow.0 as usize).map_or(u32::MAX, |flow| flow.stream);
        let firsts = batch.chunk_by(|one, next| one.flow == next.flow).filter_map(<[Turn]>::first);
        for turn in firsts.clone() {
            let connection = self.connections.seen_at_work(turn.flow.0 as usize);
            sum ^= connection.map_or(0, Connection::touch) ^ self.verdicts.touch(turn.flow.0);
            sum ^= self.streams.touch(stream_of(turn.flow));
        }
        // Where their lists lie is known only by now.
        for turn in firsts {
            sum ^= self.verdicts.touch_lists(turn.flow.0) ^ self.streams.touch_lists(stream_of(turn.flow));
        }
        std::hint::black_box(sum);
    }

    /// Forgets the segments that were followed.
    pub fn forget(&mut self) {
        self.keep.clear();
        self.kept_before = 0;
    }

    /// How many connections have segments that are not followed yet.
    pub fn active_connections(&self) -> usize {
        self.turns.groups()
    }

    /// How many segments are not followed yet.
    pub fn kept_segments(&self) -> usize {
        self.keep.segments.len()
    }

    /// The segments of this window: their indices, and their frames' places.
    pub fn window_segments(&self) -> impl Iterator<Item = (u32, u32)> {
        let kept = self.keep.segments.iter().enumerate().skip(self.kept_before);
        kept.map(|(index, kept)| (index as u32, kept.place))
    }

    /// What was found of a segment.
    pub fn found(&self, index: u32) -> Option<Found<'_>> {
        let out = self.outs.get(index as usize)?;
        let kept = self.keep.segments.get(index as usize)?;
        let stream = self.streams.streams.get(out.stream as usize)?;
        Some(Found { out, ack: kept.tcp.ack, sacks: self.keep.sacks(kept), stream: stream.id })
    }

    /// Reads a little of all that [`Self::on_frame`] will need for these frames. Nothing in one step waits for anything else
    /// in it, so the memory of all frames comes in the time of one; met one at a time, each would wait for its own.
    /// Returns what identifies each packet, where copies are looked for.
    fn fetch_frames(&self, decoded: &Decoded<'_>, batch: &[u32], needs: &ShardNeeds) -> [PacketId; BATCH] {
        fetch(decoded, batch.iter().copied());
        self.fetch_flows(decoded, batch);
        let mut packets = [PacketId::default(); BATCH];
        if !needs.copies {
            return packets;
        }
        for (packet, at) in packets.iter_mut().zip(batch).filter(|(_, at)| **at & QUOTED == 0) {
            let Some((frame, chunk)) = decoded.frame(*at as usize) else { continue };
            let Some(record) = decoded.window.records.get(*at as usize) else { continue };
            *packet = PacketId::of(decoded.window, record, frame, chunk, &needs.hasher);
        }
        std::hint::black_box(packets.iter().fold(0, |sum, packet| sum ^ self.copy_finder.touch(packet.hash)));
        packets
    }

    /// Reads a little of each line of the flows that these frames most likely belong to: those under the same hash.
    fn fetch_flows(&self, decoded: &Decoded<'_>, batch: &[u32]) {
        let mut likely = [FlowRef::NONE; BATCH];
        for (flow, at) in likely.iter_mut().zip(batch) {
            let frame = decoded.frame((at & !QUOTED) as usize);
            *flow = frame.and_then(|(frame, _)| self.flows.likely(frame.flow_hash)).unwrap_or(FlowRef::NONE);
        }
        let states = likely.iter().filter_map(|flow| self.flows.flows.get(flow.0 as usize));
        std::hint::black_box(states.fold(0, |sum, state| sum ^ state.touch()));
    }

    /// Finds a frame's flow and counts it there. Returns what is left to be done when its connection's turn comes, for a
    /// whole TCP segment.
    fn on_frame(
        &mut self,
        decoded: &Decoded<'_>,
        at: u32,
        place: u32,
        packet: PacketId,
        needs: &ShardNeeds,
    ) -> Option<(u32, Turn)> {
        let (frame, chunk) = decoded.frame(at as usize)?;
        let record = decoded.window.records.get(at as usize)?;
        let tcp = chunk.tcp_of(frame);
        let Some((key, is_reversed)) = FlowKey::of(frame, record.interface) else {
            self.refs.push(Belongs::NOWHERE);
            return None;
        };
        let flow_limit = needs.flow_limit;
        let sender = u8::from(is_reversed);
        let make = || FlowState {
            key,
            hash: frame.flow_hash,
            other_vni: None,
            tunnel_ends: tunnel_ends(frame, chunk, &needs.hasher),
            id: 0,
            addresses: [u32::MAX; 2],
            first_in_window: at,
            first_frame: record.frame_no,
            file: record.file,
            first_time_ns: record.time(),
            last_time_ns: None,
            packets: [0; 2],
            bytes: [0; 2],
            payload_bytes: [0; 2],
            first_sender: sender,
            protocol: frame.protocol,
            tunnel: chunk.tunnels_of(frame).last().map(|tunnel| tunnel.kind),
            opening: Opening::default(),
            stream_slot: u32::MAX,
            stream: u32::MAX,
        };
        let mut flow = self.flows.find_or_add(frame.flow_hash, &key, tcp, flow_limit, make);
        let mut replaces = FlowRef::NONE;
        if let Some(tcp) = tcp
            && tcp.has_flag(TcpHeader::SYN)
            && self.flows.flows.get(flow.0 as usize).is_some_and(|flow| flow.opening.is_succeeded_by(sender, tcp))
        {
            replaces = flow;
            flow = self.flows.replace(frame.flow_hash, &key, flow_limit, make());
        }
        let is_numbered = (flow.0 as usize) < self.flows.numbered;
        let Some(state) = self.flows.flows.get_mut(flow.0 as usize) else {
            self.refs.push(Belongs::NOWHERE);
            self.frames_without_flow += 1;
            return None;
        };
        self.refs.push(Belongs { flow, sender, numbers: is_numbered.then(|| FlowNumbers::of(state, sender)) });
        let copy = if needs.copies {
            let frame_at = decoded.first_frame + u64::from(at);
            self.copy_finder.on_packet(packet.hash, packet.has_number, sighting_of(record, frame), frame_at)
        } else {
            None
        };
        if let Some(copy) = copy {
            self.copies.push((at, copy));
        }
        let end = usize::from(sender);
        state.packets[end] += 1;
        state.bytes[end] += u64::from(record.original_bytes);
        state.payload_bytes[end] += u64::from(decoded.own_payload_bytes(at as usize, frame, chunk));
        state.last_time_ns = record.time().max(state.last_time_ns);
        // A fragment's segment is not whole.
        let tcp = tcp.filter(|_| !frame.is_piece())?;
        state.opening.on_segment(sender, tcp, frame.payload_bytes);
        if !needs.connections && !needs.streams {
            return None;
        }
        let member = if needs.streams {
            match state.stream_slot {
                u32::MAX => {
                    let (ends, flows) = ((key.low, key.high), &self.flows);
                    let slot = self.streams.slot(frame.flow_hash, ends, Some(flow.0), flows);
                    if let Some(state) = self.flows.flows.get_mut(flow.0 as usize) {
                        state.stream_slot = slot;
                    }
                    slot
                }
                slot => slot,
            }
        } else {
            flow.0
        };
        let kept = self.keep.add(place + at, decoded.moment(at as usize), record, frame, chunk, tcp);
        let mut turn = Turn::new(kept, flow, sender);
        (turn.replaces, turn.copy) = (replaces, copy.map(|copy| copy.kind));
        Some((member, turn))
    }

    /// Shows a TCP segment to all that follow its connection.
    fn on_segment(&mut self, keep: &Keep, kept: &Kept, turn: &Turn, needs: &ShardNeeds) {
        let Turn { at, flow, sender, copy, .. } = *turn;
        let index = flow.0 as usize;
        if turn.replaces != FlowRef::NONE {
            self.verdicts.finish_one(turn.replaces.0, keep.moment(kept), &needs.hold, &mut self.judgements);
        }
        // A copy elsewhere is in a flow of its own, but for a router hop on one interface.
        let is_copy = matches!(copy, Some(CopyKind::SameInterface | CopyKind::RouterHop));
        if needs.connections {
            let seen = keep.seen(kept, sender, is_copy, copy == Some(CopyKind::RouterHop));
            self.connections.live(index).on_segment(&seen);
        }
        if !needs.streams {
            return;
        }
        let Some(state) = self.flows.flows.get_mut(index) else { return };
        let row = self.next_row + u64::from(at);
        let (tcp, segment) = (&kept.tcp, keep.segment(kept, sender, row));
        let is_whole = tcp.options & TcpHeader::BAD_OFFSET == 0;
        let (stream, ws) = if is_whole && !needs.ws {
            (self.streams.on_unasked_segment(state.stream_slot, kept.place, &segment), WsRow::default())
        } else if is_whole {
            self.streams.on_segment(state.stream_slot, kept.place, &segment)
        } else {
            let (stream, flags) = self.streams.on_unanalysed(state.stream_slot, kept.place, &segment);
            (stream, WsRow { flags, relative_seq: tcp.seq, relative_ack: tcp.ack, ..WsRow::default() })
        };
        state.stream = stream;
        if let Some(out) = self.outs.get_mut(at as usize).filter(|_| needs.ws) {
            *out = TcpOut::of(stream, &ws);
        }
        if needs.verdicts && is_whole {
            let story = needs.stories.then_some(StoryPlace { file: kept.file, is_copy });
            self.verdicts.on_segment(flow.0, &segment, story, &needs.hold, &mut self.judgements);
        } else if needs.verdicts {
            self.verdicts.on_broken(row, &mut self.judgements);
        }
    }

    /// Finds the stream and the flow of the TCP header that an ICMP error quotes.
    fn on_quoted(&mut self, decoded: &Decoded<'_>, at: u32, place: u32, needs: &ShardNeeds) -> Option<(u32, Turn)> {
        let quote = Quote::of(decoded, at, needs)?;
        let flow = self.flows.find(quote.stand_in.flow_hash, &quote.key).unwrap_or(FlowRef::NONE);
        let (ends, flows) = ((quote.key.low, quote.key.high), &self.flows);
        let of_flow = Some(flow.0).filter(|_| flow != FlowRef::NONE);
        let slot = self.streams.slot(quote.stand_in.flow_hash, ends, of_flow, flows);
        let at = at & !QUOTED;
        let kept = self.keep.add_quote(place + at, decoded.moment(at as usize), &quote, slot);
        Some((slot, Turn::new(kept | QUOTED, flow, quote.sender)))
    }

    /// Wireshark counts a quoted header into its stream, and a "too big" cuts the segments.
    fn on_quoted_segment(&mut self, keep: &Keep, turn: &Turn, needs: &ShardNeeds) {
        let Some(quote) = keep.quotes.get((turn.at & !QUOTED) as usize) else { return };
        if let Some(kept) = &quote.segment {
            self.streams.on_unanalysed(quote.slot, kept.place, &keep.segment(kept, quote.sender, 0));
        }
        if turn.flow == FlowRef::NONE {
            return;
        }
        if needs.verdicts {
            self.verdicts.catch_up(turn.flow.0, quote.at, &needs.hold, &mut self.judgements);
        }
        if needs.stories && quote.is_unreachable && quote.seq.is_some() {
            self.verdicts.on_icmp_unreachable(turn.flow.0, quote.sender, quote.mark);
        }
        if let (true, Some(mtu), Some(seq)) = (needs.verdicts, quote.mtu, quote.seq) {
            self.verdicts.on_icmp_too_big(turn.flow.0, quote.mark.time_ns, quote.sender, seq, mtu);
        }
    }

    /// Says where the next row went; in the order of the segments kept.
    pub fn add_place(&mut self, place: RowPlace) {
        self.row_places.push_back((place, false));
    }

    /// Where a row went; it is asked once, when it is judged.
    pub fn place_of(&mut self, row: u64) -> Option<RowPlace> {
        let index = usize::try_from(row.checked_sub(self.first_row)?).ok()?;
        let (place, is_judged) = self.row_places.get_mut(index)?;
        *is_judged = true;
        Some(*place)
    }

    /// Forgets the places of rows before the first that waits.
    pub fn forget_places(&mut self) {
        while self.row_places.front().is_some_and(|(_, is_judged)| *is_judged) {
            self.row_places.pop_front();
            self.first_row += 1;
        }
    }

    /// Judges everything that still waits, with what is known.
    pub fn finish_verdicts(&mut self, now: Moment, limits: &HoldLimits) {
        self.verdicts.finish(now, limits, &mut self.judgements);
    }

    /// Ends the stories; everything must be judged.
    pub fn finish_stories(&mut self) {
        self.verdicts.finish_stories();
    }

    /// Lets so many quiet connections stay at work, and few of the others in memory.
    #[cfg(test)]
    pub fn keep_idle(&mut self, most: usize) {
        self.streams.keep_in_memory(most.min(4));
        self.connections.keep_in_memory(most.min(4));
        self.verdicts.keep_idle(most);
    }

    /// Tells the story of a flow's connection; see [`Verdicts::tell`].
    pub fn tell<T>(&self, flow: usize, tell: impl FnOnce(Option<&Story>, &VerdictSummary) -> T) -> Option<T> {
        self.verdicts.tell(flow, tell)
    }
}

/// Stands for the two ends of the innermost tunnel around a frame, in any order; 0 without one.
fn tunnel_ends(frame: &Frame, chunk: &Chunk, hasher: &FlowHasher) -> u64 {
    chunk.tunnels_of(frame).last().map_or(0, |tunnel| {
        let end = |ip: &Ip| {
            ip.octets()
                .chunks(8)
                .fold(1, |hash, part| hasher.with(hash, part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))))
        };
        end(&tunnel.src_ip).wrapping_add(end(&tunnel.dst_ip))
    })
}

/// Reads a little of each line of what decoding left of these frames.
fn fetch(decoded: &Decoded<'_>, places: impl Iterator<Item = u32> + Clone) {
    let mut sum = 0;
    for at in places.clone() {
        let at = (at & !QUOTED) as usize;
        if let Some((frame, _)) = decoded.frame(at) {
            sum ^= u64::from(frame.layers.0) ^ u64::from(frame.payload_bytes) ^ frame.flow_hash;
        }
        sum ^= decoded.window.records.get(at).map_or(0, |record| record.frame_no);
    }
    for at in places {
        let tcp = decoded.frame((at & !QUOTED) as usize).and_then(|(frame, chunk)| chunk.tcp_of(frame));
        sum ^= tcp.map_or(0, |tcp| u64::from(tcp.seq));
    }
    std::hint::black_box(sum);
}
