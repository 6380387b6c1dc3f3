//! One shard: all frames of some flows, in order.

use std::collections::VecDeque;

use super::streams::Streams;
use super::tcp::RowPlace;
use super::verdicts::{StoryPlace, Verdicts};
use crate::analyze::segment::{Checksum, Segment};
use crate::analyze::{
    Connection, Copy, CopyFinder, CopyKind, HoldLimits, Judgement, Mark, SeenSegment, Sighting, Story, VerdictSummary,
    WsRow,
};
use crate::capture::{Record, Window};
use crate::flow::{FlowHasher, FlowKey, FlowRef, FlowState, FlowTable};
use crate::wire::{ChecksumStatus, Chunk, Frame, Layers, Protocol, QuotedPacket, TcpHeader};

/// A window with its frames decoded.
pub(crate) struct Decoded<'a> {
    pub window: &'a Window,
    pub chunks: &'a [Chunk],
}

/// Records per chunk: what one worker decodes at a time.
pub(crate) const CHUNK_RECORDS: usize = 2_048;

impl Decoded<'_> {
    #[inline]
    pub fn frame(&self, at: usize) -> Option<(&Frame, &Chunk)> {
        let chunk = self.chunks.get(at / CHUNK_RECORDS)?;
        Some((chunk.frames.get(at % CHUNK_RECORDS)?, chunk))
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
    pub connections: bool,
    pub copies: bool,
    pub verdicts: bool,
    pub stories: bool,
    pub hold: HoldLimits,
    pub hasher: FlowHasher,
}

/// Marks a place in the order of a shard's frames: not the frame itself, but the TCP header that its ICMP error quotes.
pub(crate) const QUOTED: u32 = 1 << 31;

/// What analysis says of one TCP segment.
#[derive(Clone, Copy)]
pub(crate) struct TcpOut {
    /// Place of its frame in the window.
    pub at: u32,
    /// Index of its Wireshark stream in the shard.
    pub stream: u32,
    pub ws: WsRow,
}

/// The state of one shard.
#[derive(Default)]
pub(crate) struct Shard {
    pub flows: FlowTable,
    /// By flow index; `None` for what is no TCP.
    pub connections: Vec<Option<Box<Connection>>>,
    /// Flow of each frame of this window that was routed here, in order.
    pub refs: Vec<FlowRef>,
    pub frames_without_flow: u64,
    pub streams: Streams,
    /// What was found of each TCP segment of this window that was routed here, in order.
    pub tcp: Vec<TcpOut>,
    /// Frames of this window that are copies of earlier ones, by their place in the window.
    pub copies: Vec<(u32, Copy)>,
    copy_finder: CopyFinder,
    verdicts: Verdicts,
    /// Judgements that became final, by row of this shard.
    pub judgements: Vec<(u64, Judgement)>,
    /// Where the rows of this window went, then those of all windows whose first row still waits.
    pub window_places: Vec<RowPlace>,
    row_places: VecDeque<(RowPlace, bool)>,
    first_row: u64,
    next_row: u64,
}

impl Shard {
    /// Follows the frames of a window that belong here.
    pub fn process(&mut self, decoded: &Decoded<'_>, frames: &[u32], needs: &ShardNeeds, now_ns: i64) {
        let flow_limit = needs.flow_limit;
        self.refs.clear();
        self.tcp.clear();
        self.copies.clear();
        for &at in frames {
            if at & QUOTED != 0 {
                self.refs.push(FlowRef::NONE);
                self.on_quoted(decoded, at & !QUOTED, needs);
                continue;
            }
            let Some((frame, chunk)) = decoded.frame(at as usize) else { continue };
            let Some(record) = decoded.window.records.get(at as usize) else { continue };
            let tcp = chunk.tcp_of(frame);
            let Some((key, is_reversed)) = FlowKey::of(frame, record.interface) else {
                self.refs.push(FlowRef::NONE);
                continue;
            };
            let sender = u8::from(is_reversed);
            let make = || FlowState {
                key,
                hash: frame.flow_hash,
                id: 0,
                first_in_window: at,
                first_frame: record.frame_no,
                file: record.file,
                first_time_ns: record.time(),
                last_time_ns: None,
                packets: [0; 2],
                bytes: [0; 2],
                payload_bytes: [0; 2],
                first_sender: sender,
                protocol: frame.protocol.name().unwrap_or("IP"),
                tunnel: chunk.tunnels_of(frame).last().map(|tunnel| tunnel.kind.name()),
                stream_slot: u32::MAX,
                stream: u32::MAX,
            };
            let mut flow = self.flows.find_or_add(frame.flow_hash, &key, flow_limit, make);
            if let Some(tcp) = tcp
                && self.is_new_connection(flow, sender, tcp)
            {
                self.verdicts.finish_one(flow.0, &mut self.judgements);
                flow = self.flows.replace(frame.flow_hash, &key, flow_limit, make());
            }
            self.refs.push(flow);
            let Some(state) = self.flows.flows.get_mut(flow.0 as usize) else {
                self.frames_without_flow += 1;
                continue;
            };
            let copy = if needs.copies {
                let (hash, has_id, sighting) = sighting_of(decoded.window, record, frame, chunk, &needs.hasher);
                self.copy_finder.on_packet(hash, has_id, sighting)
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
            let Some(tcp) = tcp.filter(|_| !frame.is_piece()) else { continue };
            let index = flow.0 as usize;
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, || None);
            }
            // A copy elsewhere is in a flow of its own, but for a router hop on one interface.
            let is_copy = copy.is_some_and(|copy| matches!(copy.kind, CopyKind::SameInterface | CopyKind::RouterHop));
            if let Some(slot) = self.connections.get_mut(index) {
                let connection = slot.get_or_insert_with(Box::default);
                if needs.connections {
                    connection.on_segment(&SeenSegment {
                        sender,
                        frame_no: record.frame_no,
                        time_ns: record.time(),
                        tcp,
                        sack: sack_of(chunk, tcp),
                        payload_bytes: frame.payload_bytes,
                        ecn: frame.ecn(),
                        ttl: frame.ttl,
                        is_copy,
                        is_router_copy: copy.is_some_and(|copy| copy.kind == CopyKind::RouterHop),
                    });
                } else {
                    connection.identify(sender, tcp);
                }
            }
            if needs.streams {
                if state.stream_slot == u32::MAX {
                    state.stream_slot = self.streams.slot(frame.flow_hash, (key.low, key.high));
                }
                let segment = segment_of(record, frame, chunk, tcp, sender);
                let is_whole = tcp.options & TcpHeader::BAD_OFFSET == 0;
                let (stream, ws) = if is_whole {
                    self.streams.on_segment(state.stream_slot, at, &segment)
                } else {
                    let (stream, flags) = self.streams.on_unanalysed(state.stream_slot, at, &segment);
                    let raw = WsRow { flags, relative_seq: tcp.seq, relative_ack: tcp.ack, ..WsRow::default() };
                    (stream, raw)
                };
                state.stream = stream;
                self.tcp.push(TcpOut { at, stream, ws });
                if needs.verdicts && is_whole {
                    let segment = Segment { row: self.next_row, ..segment };
                    let story = needs.stories.then_some(StoryPlace { file: record.file, is_copy });
                    self.verdicts.on_segment(flow.0, &segment, story, &mut self.judgements);
                } else if needs.verdicts {
                    self.verdicts.on_broken(self.next_row, &mut self.judgements);
                }
                self.next_row += 1;
            }
        }
        if needs.verdicts {
            self.verdicts.expire(now_ns, self.next_row, &needs.hold, &mut self.judgements);
        }
    }

    /// The TCP header quoted by an ICMP error: Wireshark counts it into its stream, and a "too big" cuts the segments.
    fn on_quoted(&mut self, decoded: &Decoded<'_>, at: u32, needs: &ShardNeeds) {
        let Some((frame, chunk)) = decoded.frame(at as usize) else { return };
        let Some(record) = decoded.window.records.get(at as usize) else { return };
        let Some(message) = chunk.icmp.get(frame.detail as usize) else { return };
        let Some(quoted) = message.quoted.as_ref() else { return };
        let stand_in = quoted_frame(quoted, frame, &needs.hasher);
        let Some((key, is_reversed)) = FlowKey::of(&stand_in, record.interface) else { return };
        let sender = u8::from(is_reversed);
        if needs.streams
            && let Some(tcp) = quoted_tcp(decoded.window.bytes(record), frame.payload_at as usize)
        {
            let slot = self.streams.slot(stand_in.flow_hash, (key.low, key.high));
            self.streams.on_unanalysed(slot, at, &segment_of(record, &stand_in, chunk, &tcp, sender));
        }
        // "Fragmentation needed" is no refusal: the sender cuts its segments and goes on.
        let is_unreachable = match message.is_v6 {
            false => message.icmp_type == 3 && message.code != 4,
            true => message.icmp_type == 1,
        };
        if let (true, true, Some(_)) = (needs.stories, is_unreachable, quoted.seq)
            && let Some(flow) = self.flows.find(stand_in.flow_hash, &key)
        {
            let now = Mark { file: record.file, frame_no: record.frame_no, time_ns: record.time_ns };
            self.verdicts.on_icmp_unreachable(flow.0, sender, now);
        }
        if let (true, Some(mtu), Some(seq)) = (needs.verdicts, message.mtu, quoted.seq)
            && let Some(flow) = self.flows.find(stand_in.flow_hash, &key)
        {
            self.verdicts.on_icmp_too_big(flow.0, record.time_ns, sender, seq, mtu);
        }
    }

    /// Puts the places of this window's rows behind those that still wait.
    pub fn keep_places(&mut self) {
        self.row_places.extend(self.window_places.iter().map(|place| (*place, false)));
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
    pub fn finish_verdicts(&mut self) {
        self.verdicts.finish(&mut self.judgements);
    }

    /// Ends the stories; everything must be judged.
    pub fn finish_stories(&mut self) {
        self.verdicts.finish_stories();
    }

    pub fn verdict_summary(&self, flow: usize) -> Option<VerdictSummary> {
        self.verdicts.summary(flow)
    }

    /// The story of a flow's connection, and what its verdicts come to.
    pub fn story(&self, flow: usize) -> Option<(&Story, VerdictSummary)> {
        self.verdicts.story(flow)
    }

    fn is_new_connection(&self, flow: FlowRef, sender: u8, tcp: &TcpHeader) -> bool {
        tcp.has_flag(TcpHeader::SYN)
            && self
                .connections
                .get(flow.0 as usize)
                .and_then(Option::as_ref)
                .is_some_and(|connection| connection.is_succeeded_by(sender, tcp))
    }
}

fn segment_of<'a>(record: &Record, frame: &Frame, chunk: &'a Chunk, tcp: &TcpHeader, sender: u8) -> Segment<'a> {
    Segment {
        frame_no: record.frame_no,
        time_ns: record.time_ns,
        dir: sender,
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        payload_bytes: frame.payload_bytes,
        mss: tcp.mss(),
        wscale: tcp.wscale(),
        sack_permitted: tcp.is_sack_permitted(),
        ts: tcp.timestamps(),
        sack: sack_of(chunk, tcp),
        mptcp: tcp.mptcp_subtypes as u8,
        row: 0,
        ip_id: (!frame.src_ip.is_v6()).then_some(frame.ip_id as u16),
        ttl: frame.ttl,
        ecn: frame.ecn(),
        l4_checksum_field: tcp.checksum,
        checksum: match frame.l4_checksum {
            None => Checksum::NotChecked,
            Some(ChecksumStatus::Ok) => Checksum::Ok,
            Some(ChecksumStatus::Bad) => Checksum::Bad,
            Some(ChecksumStatus::Partial) => Checksum::Partial,
            Some(ChecksumStatus::Unverifiable) => Checksum::Unverifiable,
            Some(ChecksumStatus::Absent) => Checksum::Absent,
        },
        interface: record.interface,
    }
}

/// A frame with the addresses and ports of a quoted TCP segment, so that it finds its flow.
pub(super) fn quoted_frame(quoted: &QuotedPacket, frame: &Frame, hasher: &FlowHasher) -> Frame {
    let mut layers = Layers(Layers::IP.0 | Layers::PORTS.0);
    if frame.layers.has(Layers::VNI) {
        layers.set(Layers::VNI);
    }
    let mut stand_in = Frame {
        layers,
        protocol: Protocol::Tcp,
        src_ip: quoted.src_ip,
        dst_ip: quoted.dst_ip,
        src_port: quoted.src_port.unwrap_or(0),
        dst_port: quoted.dst_port.unwrap_or(0),
        ip_protocol: quoted.ip_protocol,
        vni: frame.vni,
        ..Frame::default()
    };
    stand_in.flow_hash = hasher.hash(&stand_in);
    stand_in
}

/// The TCP header behind the IP header that an ICMP error quotes, if its fixed part is there.
fn quoted_tcp(bytes: &[u8], at: usize) -> Option<TcpHeader> {
    let quote = bytes.get(at..)?;
    let header_bytes = match quote.first()? >> 4 {
        4 => usize::from(quote.first()? & 15) * 4,
        _ => 40,
    };
    TcpHeader::parse_fixed(quote.get(header_bytes..)?).ok()
}

fn sack_of<'a>(chunk: &'a Chunk, tcp: &TcpHeader) -> &'a [(u32, u32)] {
    let first = tcp.sack_at as usize;
    chunk.sacks.get(first..first + usize::from(tcp.sack_count)).unwrap_or(&[])
}

/// What identifies the packet in a frame, whether that is enough to know a copy on the same spot, and where it was seen.
fn sighting_of(
    window: &Window,
    record: &Record,
    frame: &Frame,
    chunk: &Chunk,
    hasher: &FlowHasher,
) -> (u64, bool, Sighting) {
    let mut has_id = frame.ip_id != 0;
    let (checksum, numbers) = match frame.protocol {
        Protocol::Tcp => chunk.tcp_of(frame).map_or((0, (0, 0)), |tcp| (tcp.checksum, (tcp.seq, tcp.ack))),
        Protocol::RoceV2 | Protocol::RoceV1 => {
            let packet = chunk.roce.get(frame.detail as usize);
            (0, packet.map_or((0, 0), |packet| (packet.psn, packet.dest_qp << 8 | u32::from(packet.opcode))))
        }
        protocol => {
            let at = match protocol {
                Protocol::Udp => 6,
                Protocol::Icmp | Protocol::Icmpv6 => 2,
                _ => usize::MAX,
            };
            let field = (frame.l4_at as usize).checked_add(at).and_then(|at| window.bytes(record).get(at..at + 2));
            let echo = matches!(protocol, Protocol::Icmp | Protocol::Icmpv6)
                .then(|| chunk.icmp.get(frame.detail as usize).and_then(|message| message.echo))
                .flatten();
            // A number that is used once identifies an echo message as well as an IP identification does.
            has_id |= echo.is_some();
            let numbers = echo.map_or((0, 0), |(identifier, sequence)| (u32::from(identifier), u32::from(sequence)));
            (field.map_or(0, |field| u16::from_be_bytes([field[0], field[1]])), numbers)
        }
    };
    let sighting = Sighting {
        file: record.file,
        frame_no: record.frame_no,
        time_ns: record.time_ns,
        interface: record.interface,
        ttl: frame.ttl,
        tunnels: frame.tunnels,
        vni: frame.vni,
    };
    (hasher.packet(frame, checksum, numbers), has_id, sighting)
}
