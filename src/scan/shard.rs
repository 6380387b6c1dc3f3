//! One shard: all frames of some flows, in order.

use super::streams::Streams;
use crate::analyze::segment::Segment;
use crate::analyze::{Connection, WsRow};
use crate::capture::{Record, Window};
use crate::flow::{FlowKey, FlowRef, FlowState, FlowTable};
use crate::wire::{Chunk, Frame, Layers, TcpHeader};

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
}

impl Shard {
    /// Follows the frames of a window that belong here. `flow_limit` is this shard's share.
    pub fn process(&mut self, decoded: &Decoded<'_>, frames: &[u32], flow_limit: usize, needs_streams: bool) {
        self.refs.clear();
        self.tcp.clear();
        for &at in frames {
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
                flow = self.flows.replace(frame.flow_hash, &key, flow_limit, make());
            }
            self.refs.push(flow);
            let Some(state) = self.flows.flows.get_mut(flow.0 as usize) else {
                self.frames_without_flow += 1;
                continue;
            };
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
            if let Some(slot) = self.connections.get_mut(index) {
                let connection = slot.get_or_insert_with(Box::default);
                connection.on_segment(sender, record.time(), tcp, frame.payload_bytes, frame.ecn());
            }
            if needs_streams {
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
            }
        }
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
    let first = tcp.sack_at as usize;
    Segment {
        frame_no: record.frame_no,
        time_ns: record.time_ns,
        dir: sender,
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        payload_bytes: frame.payload_bytes,
        wscale: tcp.wscale(),
        sack: chunk.sacks.get(first..first + usize::from(tcp.sack_count)).unwrap_or(&[]),
        mptcp: tcp.mptcp_subtypes as u8,
    }
}
