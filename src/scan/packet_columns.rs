//! The rows of `packets`, column by column: a block of frames is taken through one column after the other, and columns that
//! none of its frames has cost nothing.

use std::ops::Range;

use super::columns;
use super::core::Context;
use super::rows::{arp_of, file_no};
use super::sink::Sink;
use crate::analyze::Copy;
use crate::capture::Record;
use crate::tables::cell::{BLOCK, Cell, CellBuilder, Gaps};
use crate::tables::*;
use crate::wire::{Chunk, Frame, Ip, Layers, Protocol, TunnelLayer};

/// A frame that has a row.
#[derive(Clone, Copy)]
struct Item<'a> {
    /// Place in the window.
    at: usize,
    record: &'a Record,
    frame: &'a Frame,
}

/// What is rare: by place in the window.
struct Extras<'a> {
    copies: &'a [(u32, Copy)],
    comments: &'a [(u32, String)],
}

/// Frames of one chunk that are taken together ([`BLOCK`] at most: they stay in the processor's first cache while column
/// after column looks at them), and what any or all of them have.
struct Block<'a> {
    chunk: &'a Chunk,
    items: &'a [Item<'a>],
    any: Layers,
    all: Layers,
    has_tunnels: bool,
    has_arp: bool,
}

impl<'a> Block<'a> {
    fn new(chunk: &'a Chunk, items: &'a [Item<'a>]) -> Self {
        let mut block =
            Self { chunk, items, any: Layers(0), all: Layers(u32::MAX), has_tunnels: false, has_arp: false };
        for item in items {
            block.any.0 |= item.frame.layers.0;
            block.all.0 &= item.frame.layers.0;
            block.has_tunnels |= item.frame.tunnels > 0;
            block.has_arp |= item.frame.protocol == Protocol::Arp;
        }
        block
    }

    /// A column that every frame has.
    #[inline]
    fn fill<T: Cell>(&self, column: &mut Option<T::Builder>, value: impl Fn(&Item<'a>) -> T) {
        columns::fill(self.items, column, value);
    }

    /// A column of what frames with some layer have.
    #[inline]
    fn with<T>(&self, column: &mut Option<<Option<T> as Cell>::Builder>, layer: Layers, value: impl Fn(&Frame) -> T)
    where
        Option<T>: Cell<Builder: Gaps>,
    {
        let Some(column) = column else { return };
        if self.all.has(layer) {
            column.extend(self.items.iter().map(|item| Some(value(item.frame))));
        } else if self.any.has(layer) {
            column.extend(self.items.iter().map(|item| item.frame.layers.has(layer).then(|| value(item.frame))));
        } else {
            column.push_gaps(self.items.len());
        }
    }

    /// A column that is empty but where `is_there`.
    #[inline]
    fn rare<T: Cell<Builder: Gaps>>(
        &self,
        column: &mut Option<T::Builder>,
        is_there: bool,
        value: impl Fn(&Item<'a>) -> T,
    ) {
        columns::rare(self.items, column, is_there, value);
    }

    /// A column of the outermost tunnel.
    #[inline]
    fn outer<T>(&self, column: &mut Option<<Option<T> as Cell>::Builder>, value: impl Fn(&TunnelLayer) -> Option<T>)
    where
        Option<T>: Cell<Builder: Gaps>,
    {
        self.rare(column, self.has_tunnels, |item| self.chunk.tunnels_of(item.frame).first().and_then(&value));
    }
}

/// Adds the rows of a window. With `is_parallel` both halves of the columns are filled at the same time.
pub(super) fn packet_rows(context: &Context<'_>, sink: &mut Sink<PacketRow>, is_parallel: bool) {
    if sink.only_counts() {
        let frames = context.decoded.chunks.iter().map(|chunk| chunk.frames.len()).sum();
        sink.fill(frames, |builder, count| builder.rows += count);
        return;
    }
    let mut items = Vec::new();
    let mut first = 0;
    for chunk in context.decoded.chunks {
        items.clear();
        let records = context.decoded.window.records.get(first..).unwrap_or(&[]);
        for (offset, (record, frame)) in records.iter().zip(&chunk.frames).enumerate() {
            if sink.keeps(|| subject(record, frame, chunk)) {
                items.push(Item { at: first + offset, record, frame });
            }
        }
        let extras = Extras {
            copies: within(context.copies, first, chunk.frames.len()),
            comments: within(&context.decoded.window.comments, first, chunk.frames.len()),
        };
        let mut rest = items.as_slice();
        sink.fill(items.len(), |builder, count| {
            let (now, later) = rest.split_at(count.min(rest.len()));
            rest = later;
            append(context, chunk, now, &extras, builder, is_parallel);
        });
        first += chunk.frames.len();
    }
}

/// The entries whose places in the window lie in a chunk.
fn within<T>(entries: &[(u32, T)], first: usize, count: usize) -> &[(u32, T)] {
    let start = entries.partition_point(|(at, _)| (*at as usize) < first);
    let end = entries.partition_point(|(at, _)| (*at as usize) < first + count);
    entries.get(start..end).unwrap_or(&[])
}

fn subject(record: &Record, frame: &Frame, chunk: &Chunk) -> RowSubject {
    let tunnel = chunk.tunnels_of(frame).first();
    let outer = tunnel.map_or((Ip::NONE, Ip::NONE), |outer| (outer.src_ip, outer.dst_ip));
    let outer_ports = tunnel.and_then(|outer| outer.ports);
    let (src_ip, dst_ip) = addresses(frame, chunk);
    let ports = frame.layers.has(Layers::PORTS).then_some((frame.src_port, frame.dst_port));
    RowSubject {
        time_ns: record.time(),
        ips: [src_ip, dst_ip, outer.0, outer.1],
        ports: [
            ports.map(|ports| ports.0),
            ports.map(|ports| ports.1),
            outer_ports.map(|ports| ports.0),
            outer_ports.map(|ports| ports.1),
        ],
    }
}

/// For ARP those of sender and target.
fn addresses(frame: &Frame, chunk: &Chunk) -> (Ip, Ip) {
    arp_of(frame, chunk).map_or((frame.src_ip, frame.dst_ip), |arp| (arp.sender_ip, arp.target_ip))
}

impl TableRow for PacketRow {
    type Builder = PacketBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        match *self {}
    }
}

/// Adds rows of one chunk to the batch. Every column is named here, so that none can be forgotten.
fn append(
    context: &Context<'_>,
    chunk: &Chunk,
    items: &[Item<'_>],
    extras: &Extras<'_>,
    builder: &mut PacketBuilder,
    is_parallel: bool,
) {
    let PacketBuilder {
        rows,
        file_no: file_no_column,
        frame_no,
        time,
        time_rel_ns,
        interface_id,
        packet_direction,
        ifindex,
        captured_bytes,
        original_bytes,
        src_mac,
        dst_mac,
        ethertype,
        vlan_id,
        vlan_pcp,
        inner_vlan_id,
        mpls_label,
        tunnel,
        vni,
        outer_src_ip,
        outer_dst_ip,
        outer_src_port,
        outer_dst_port,
        outer_dscp,
        outer_ecn,
        outer_ttl,
        src_ip,
        dst_ip,
        protocol,
        src_port,
        dst_port,
        dscp,
        ecn,
        ttl,
        ip_id,
        ip_bytes,
        ip_protocol,
        is_fragment,
        fragment_offset,
        payload_bytes,
        flow_id,
        ip_checksum,
        l4_checksum,
        duplicate_of,
        duplicate_kind,
        comment,
        decode_stop,
    } = builder;
    *rows += items.len();
    let mut link = |block: &Block<'_>| {
        block.fill(file_no_column, |item| file_no(item.record.file));
        block.fill(frame_no, |item| item.record.frame_no);
        block.fill(time, |item| item.record.time().map(TimeNs));
        block.fill(time_rel_ns, |item| context.time_rel_ns(item.record));
        block.fill(interface_id, |item| item.record.interface);
        let has_direction = block.items.iter().any(|item| item.frame.direction.name().is_some());
        block.rare(packet_direction, has_direction, |item| item.frame.direction.name().map(Symbol));
        block.with(ifindex, Layers::IF_INDEX, |frame| frame.if_index);
        block.fill(captured_bytes, |item| item.record.captured_bytes);
        block.fill(original_bytes, |item| item.record.original_bytes);
        let has_source = |layers: Layers| layers.has(Layers::MACS) || layers.has(Layers::SOURCE_MAC_ONLY);
        block.rare(src_mac, has_source(block.any), |item| has_source(item.frame.layers).then_some(item.frame.src_mac));
        block.with(dst_mac, Layers::MACS, |frame| frame.dst_mac);
        block.with(ethertype, Layers::ETHERTYPE, |frame| frame.ethertype);
        block.with(vlan_id, Layers::VLAN, |frame| frame.vlan_tci & 0x0fff);
        block.with(vlan_pcp, Layers::VLAN, |frame| (frame.vlan_tci >> 13) as u8);
        block.with(inner_vlan_id, Layers::QINQ, |frame| frame.inner_vlan_tci & 0x0fff);
        block.with(mpls_label, Layers::MPLS, |frame| frame.mpls_label);
        block.rare(tunnel, block.has_tunnels, |item| {
            block.chunk.tunnels_of(item.frame).last().map(|tunnel| Symbol(tunnel.kind.name()))
        });
        block.with(vni, Layers::VNI, |frame| frame.vni);
        let outer_ip = |item: &Item<'_>, ip: fn(&TunnelLayer) -> Ip| {
            block.chunk.tunnels_of(item.frame).first().map_or(Ip::NONE, ip)
        };
        block.rare(outer_src_ip, block.has_tunnels, |item| outer_ip(item, |outer| outer.src_ip));
        block.rare(outer_dst_ip, block.has_tunnels, |item| outer_ip(item, |outer| outer.dst_ip));
        block.outer(outer_src_port, |outer| outer.ports.map(|ports| ports.0));
        block.outer(outer_dst_port, |outer| outer.ports.map(|ports| ports.1));
        block.outer(outer_dscp, |outer| Some(outer.traffic_class >> 2));
        block.outer(outer_ecn, |outer| Some(outer.traffic_class & 3));
        block.outer(outer_ttl, |outer| Some(outer.ttl));
        block.fill(flow_id, |item| context.flow_id(item.at));
    };
    let mut network = |block: &Block<'_>| {
        if block.has_arp {
            block.fill(src_ip, |item| addresses(item.frame, block.chunk).0);
            block.fill(dst_ip, |item| addresses(item.frame, block.chunk).1);
        } else {
            columns::fill_ips(block.items, src_ip, |item| context.numbered_src_ip(item.at, item.frame));
            columns::fill_ips(block.items, dst_ip, |item| context.numbered_dst_ip(item.at, item.frame));
        }
        block.fill(protocol, |item| item.frame.protocol.name().map(Symbol));
        block.with(src_port, Layers::PORTS, |frame| frame.src_port);
        block.with(dst_port, Layers::PORTS, |frame| frame.dst_port);
        block.with(dscp, Layers::IP, Frame::dscp);
        block.with(ecn, Layers::IP, Frame::ecn);
        block.with(ttl, Layers::IP, |frame| frame.ttl);
        block.with(ip_id, Layers::IP_ID, |frame| frame.ip_id);
        block.with(ip_bytes, Layers::IP, |frame| frame.ip_bytes);
        block.with(ip_protocol, Layers::IP, |frame| frame.ip_protocol);
        block.fill(is_fragment, |item| item.frame.layers.has(Layers::FRAGMENT));
        block.with(fragment_offset, Layers::FRAGMENT, |frame| frame.fragment_offset);
        block
            .fill(payload_bytes, |item| (item.frame.protocol != Protocol::Unknown).then_some(item.frame.payload_bytes));
        let is_verified = block.items.iter().any(|item| item.frame.ip_checksum.is_some());
        block.rare(ip_checksum, is_verified, |item| item.frame.ip_checksum.map(|status| Symbol(status.as_str())));
        let is_verified = block.items.iter().any(|item| item.frame.l4_checksum.is_some());
        block.rare(l4_checksum, is_verified, |item| item.frame.l4_checksum.map(|status| Symbol(status.as_str())));
        let copy_at = |item: &Item<'_>| {
            let found = extras.copies.binary_search_by_key(&item.at, |(at, _)| *at as usize);
            found.ok().and_then(|found| extras.copies.get(found)).map(|(_, copy)| *copy)
        };
        let has_copies = !extras.copies.is_empty();
        block.rare(duplicate_of, has_copies, |item| copy_at(item).map(|copy| copy.of_frame_no));
        block.rare(duplicate_kind, has_copies, |item| copy_at(item).map(|copy| Symbol(copy.kind.name())));
        block.rare(comment, !extras.comments.is_empty(), |item| comment_at(extras.comments, item.at));
        let is_stopped = block.items.iter().any(|item| item.frame.stop != 0);
        block.rare(decode_stop, is_stopped, |item| {
            if item.frame.stop == 0 { None } else { block.chunk.stop_of(item.frame).map(ToString::to_string) }
        });
    };
    let blocks = || items.chunks(BLOCK).map(|items| Block::new(chunk, items));
    if is_parallel {
        rayon::join(|| blocks().for_each(|block| link(&block)), || blocks().for_each(|block| network(&block)));
    } else {
        for block in blocks() {
            link(&block);
            network(&block);
        }
    }
}

/// All comments of a frame, a line each.
fn comment_at(comments: &[(u32, String)], at: usize) -> Option<String> {
    let Range { start, end } = comments.partition_point(|(place, _)| (*place as usize) < at)
        ..comments.partition_point(|(place, _)| *place as usize <= at);
    let texts: Vec<&str> = comments.get(start..end)?.iter().map(|(_, text)| text.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
