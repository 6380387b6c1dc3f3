//! Rows of the tables that have one per frame, or per part of a frame.

use super::core::Context;
use super::shard::FlowNumbers;
use super::sink::Sink;
use crate::analyze::{CopyKind, Probe, ProbeTracker};
use crate::capture::Record;
use crate::tables::*;
use crate::wire::{
    ArpPacket, BthFlags, Chunk, Frame, IcmpMessage, Ip, Layers, PauseFrame, Protocol, RocePacket, opcode_name,
};
use crate::wire::{aeth_text, pause_ns};

impl Context<'_> {
    /// Every frame with its record, chunk and place in the window.
    pub(super) fn frames(&self) -> impl Iterator<Item = (usize, &Record, &Frame, &Chunk)> {
        let chunks = self.decoded.chunks.iter();
        let frames = chunks.flat_map(|chunk| chunk.frames.iter().map(move |frame| (frame, chunk)));
        let records = self.decoded.window.records.iter();
        records.zip(frames).enumerate().map(|(at, (record, (frame, chunk)))| (at, record, frame, chunk))
    }

    #[inline]
    fn flow_numbers(&self, at: usize) -> FlowNumbers {
        self.flow_numbers.get(at).copied().unwrap_or(FlowNumbers::NONE)
    }

    #[inline]
    pub(super) fn flow_id(&self, at: usize) -> Option<u64> {
        Some(self.flow_numbers(at).id).filter(|id| *id != u64::MAX)
    }

    /// The frame's source address, and its number; see [`AddressBook`](crate::flow::AddressBook).
    #[inline]
    pub(super) fn numbered_src_ip(&self, at: usize, frame: &Frame) -> (u32, Ip) {
        (self.flow_numbers(at).addresses[0], frame.src_ip)
    }

    #[inline]
    pub(super) fn numbered_dst_ip(&self, at: usize, frame: &Frame) -> (u32, Ip) {
        (self.flow_numbers(at).addresses[1], frame.dst_ip)
    }

    pub(super) fn time_rel_ns(&self, record: &Record) -> Option<i64> {
        relative(record.time(), self.first_time_ns)
    }
}

pub(super) fn relative(time_ns: Option<i64>, first_ns: Option<i64>) -> Option<i64> {
    time_ns?.checked_sub(first_ns?)
}

pub(super) fn file_no(file: u16) -> u32 {
    u32::from(file) + 1
}

impl RowSubject {
    pub(super) fn of(time: Option<TimeNs>, ips: [Ip; 4], src_port: Option<u16>, dst_port: Option<u16>) -> Self {
        Self { time_ns: time.map(|time| time.0), ips, ports: [src_port, dst_port, None, None] }
    }
}

pub(super) fn arp_of<'a>(frame: &Frame, chunk: &'a Chunk) -> Option<&'a ArpPacket> {
    if frame.protocol == Protocol::Arp && frame.stop == 0 { chunk.arp.get(frame.detail as usize) } else { None }
}

pub(super) fn roce_of<'a>(frame: &Frame, chunk: &'a Chunk) -> Option<&'a RocePacket> {
    let is_roce = matches!(frame.protocol, Protocol::RoceV1 | Protocol::RoceV2);
    if is_roce { chunk.roce.get(frame.detail as usize) } else { None }
}

fn icmp_of<'a>(frame: &Frame, chunk: &'a Chunk) -> Option<&'a IcmpMessage> {
    let is_icmp = matches!(frame.protocol, Protocol::Icmp | Protocol::Icmpv6);
    if is_icmp { chunk.icmp.get(frame.detail as usize) } else { None }
}

pub(super) fn roce_rows(context: &Context<'_>, sink: &mut Sink<RoceRow>) {
    for (at, record, frame, chunk) in context.frames() {
        if let Some(packet) = roce_of(frame, chunk) {
            sink.push(roce_row(context, at, record, frame, packet));
        }
    }
}

/// A row without what the analysis says.
pub(super) fn roce_row(
    context: &Context<'_>,
    at: usize,
    record: &Record,
    frame: &Frame,
    packet: &RocePacket,
) -> RoceRow {
    let has_ports = frame.protocol == Protocol::RoceV2;
    let reth = packet.reth;
    let rkey = reth.map(|reth| reth.1).or(packet.atomic.map(|atomic| atomic.1)).or(packet.ieth);
    RoceRow {
        file_no: file_no(record.file),
        frame_no: record.frame_no,
        time: record.time().map(TimeNs),
        time_rel_ns: context.time_rel_ns(record),
        flow_id: context.flow_id(at),
        src_ip: frame.src_ip,
        dst_ip: frame.dst_ip,
        src_port: has_ports.then_some(frame.src_port),
        dst_port: has_ports.then_some(frame.dst_port),
        protocol: Symbol(frame.protocol.name().unwrap_or("RoCEv2")),
        opcode: packet.opcode,
        opcode_name: opcode_name(packet.opcode).map(Symbol),
        pkey: packet.pkey,
        dest_qp: packet.dest_qp,
        psn: packet.psn,
        is_ack_req: packet.flags.has(BthFlags::ACK_REQ),
        is_solicited: packet.flags.has(BthFlags::SOLICITED),
        is_fecn: packet.flags.has(BthFlags::FECN),
        is_becn: packet.flags.has(BthFlags::BECN),
        pad: packet.pad,
        va: reth.map(|reth| reth.0).or(packet.atomic.map(|atomic| atomic.0)),
        rkey,
        dma_bytes: reth.map(|reth| reth.2),
        syndrome: packet.aeth.map(|aeth| aeth.0),
        aeth: packet.aeth.map(|aeth| Symbol(aeth_text(aeth.0))),
        msn: packet.aeth.map(|aeth| aeth.1),
        imm: packet.imm,
        qkey: packet.deth.map(|deth| deth.0),
        src_qp: packet.deth.map(|deth| deth.1),
        swap_or_add: packet.atomic.map(|atomic| atomic.2),
        compare: packet.atomic.map(|atomic| atomic.3),
        original_value: packet.atomic_ack,
        payload_bytes: packet.payload_bytes,
        dscp: frame.dscp(),
        ecn: frame.ecn(),
        icrc_status: packet.icrc.map(|status| Symbol(status.as_str())),
        sent: None,
        cause: None,
        arrival: None,
        evidence: None,
        qp_id: None,
        message_id: None,
    }
}

impl TableRow for RoceRow {
    type Builder = RoceBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.src_ip, self.dst_ip, Ip::NONE, Ip::NONE], self.src_port, self.dst_port)
    }
}

pub(super) fn pause_rows(context: &Context<'_>, sink: &mut Sink<PauseRow>) {
    for (_, record, frame, chunk) in context.frames() {
        let pause: &PauseFrame = match frame.protocol {
            Protocol::Pause | Protocol::Pfc => match chunk.pause.get(frame.detail as usize) {
                Some(pause) => pause,
                None => continue,
            },
            _ => continue,
        };
        for (class, quanta) in pause.classes() {
            sink.push(PauseRow {
                file_no: file_no(record.file),
                frame_no: record.frame_no,
                time: record.time().map(TimeNs),
                time_rel_ns: context.time_rel_ns(record),
                interface_id: record.interface,
                kind: Symbol(if pause.is_pfc { "PFC" } else { "PAUSE" }),
                src_mac: frame.layers.has(Layers::MACS).then_some(frame.src_mac),
                class,
                quanta,
                pause_ns: context.link_speed_bps.and_then(|speed| pause_ns(quanta, speed)),
            });
        }
    }
}

impl TableRow for PauseRow {
    type Builder = PauseBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [Ip::NONE; 4], None, None)
    }
}

pub(super) fn tunnel_rows(context: &Context<'_>, sink: &mut Sink<TunnelRow>) {
    for (at, record, frame, chunk) in context.frames() {
        for (depth, tunnel) in chunk.tunnels_of(frame).iter().enumerate() {
            sink.push(TunnelRow {
                file_no: file_no(record.file),
                frame_no: record.frame_no,
                time: record.time().map(TimeNs),
                time_rel_ns: context.time_rel_ns(record),
                depth: depth as u8,
                kind: Symbol(tunnel.kind.name()),
                vni: tunnel.vni,
                outer_src_ip: tunnel.src_ip,
                outer_dst_ip: tunnel.dst_ip,
                outer_src_port: tunnel.ports.map(|ports| ports.0),
                outer_dst_port: tunnel.ports.map(|ports| ports.1),
                outer_dscp: tunnel.traffic_class >> 2,
                outer_ecn: tunnel.traffic_class & 3,
                outer_ttl: tunnel.ttl,
                inner_src_ip: tunnel.inner_src_ip,
                inner_dst_ip: tunnel.inner_dst_ip,
                overhead_bytes: tunnel.overhead_bytes,
                flow_id: context.flow_id(at),
            });
        }
    }
}

impl TableRow for TunnelRow {
    type Builder = TunnelBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.outer_src_ip, self.outer_dst_ip, self.inner_src_ip, self.inner_dst_ip];
        RowSubject::of(self.time, ips, self.outer_src_port, self.outer_dst_port)
    }
}

pub(super) fn icmp_rows(context: &Context<'_>, sink: &mut Sink<IcmpRow>) {
    for (at, record, frame, chunk) in context.frames() {
        let Some(message) = icmp_of(frame, chunk) else { continue };
        let quoted = message.quoted;
        sink.push(IcmpRow {
            file_no: file_no(record.file),
            frame_no: record.frame_no,
            time: record.time().map(TimeNs),
            time_rel_ns: context.time_rel_ns(record),
            flow_id: context.flow_id(at),
            protocol: Symbol(if message.is_v6 { "ICMPv6" } else { "ICMP" }),
            src_ip: frame.src_ip,
            dst_ip: frame.dst_ip,
            r#type: message.icmp_type,
            code: message.code,
            identifier: message.echo.map(|echo| echo.0),
            sequence: message.echo.map(|echo| echo.1),
            mtu: message.mtu,
            quoted_src_ip: quoted.map_or(Ip::NONE, |quoted| quoted.src_ip),
            quoted_dst_ip: quoted.map_or(Ip::NONE, |quoted| quoted.dst_ip),
            quoted_ip_protocol: quoted.map(|quoted| quoted.ip_protocol),
            quoted_src_port: quoted.and_then(|quoted| quoted.src_port),
            quoted_dst_port: quoted.and_then(|quoted| quoted.dst_port),
            quoted_ip_bytes: quoted.map(|quoted| quoted.ip_bytes),
        });
    }
}

impl TableRow for IcmpRow {
    type Builder = IcmpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.src_ip, self.dst_ip, self.quoted_src_ip, self.quoted_dst_ip];
        RowSubject::of(self.time, ips, self.quoted_src_port, self.quoted_dst_port)
    }
}

pub(super) fn arp_rows(context: &Context<'_>, sink: &mut Sink<ArpRow>) {
    for (_, record, frame, chunk) in context.frames() {
        let Some(arp) = arp_of(frame, chunk) else { continue };
        sink.push(ArpRow {
            file_no: file_no(record.file),
            frame_no: record.frame_no,
            time: record.time().map(TimeNs),
            time_rel_ns: context.time_rel_ns(record),
            operation: arp.operation,
            sender_mac: arp.sender_mac,
            sender_ip: arp.sender_ip,
            target_mac: arp.target_mac,
            target_ip: arp.target_ip,
        });
    }
}

impl TableRow for ArpRow {
    type Builder = ArpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.sender_ip, self.target_ip, Ip::NONE, Ip::NONE], None, None)
    }
}

/// Shows the window's echo requests, replies and errors to the tracker.
pub(super) fn follow_probes(context: &Context<'_>, probes: &mut ProbeTracker) {
    let mut copies = context.copies.iter().peekable();
    for (at, record, frame, chunk) in context.frames() {
        // The second sighting of a request is no second request: only the reply to the first would be looked at.
        let copy = copies.next_if(|(index, _)| *index as usize == at);
        let is_copy = copy.is_some_and(|(_, copy)| matches!(copy.kind, CopyKind::SameInterface | CopyKind::RouterHop));
        if is_copy {
            continue;
        }
        let Some(message) = icmp_of(frame, chunk) else { continue };
        let vni = frame.layers.has(Layers::VNI).then_some(frame.vni);
        if let Some(echo) = message.echo {
            if message.is_echo_request() {
                probes.on_request(Probe {
                    file: record.file,
                    frame_no: record.frame_no,
                    time_ns: record.time(),
                    is_v6: message.is_v6,
                    flow_id: context.flow_id(at),
                    src_ip: frame.src_ip,
                    dst_ip: frame.dst_ip,
                    identifier: echo.0,
                    sequence: echo.1,
                    ip_bytes: frame.ip_bytes,
                    vni,
                    interface: record.interface,
                    at: context.decoded.moment(at),
                    replied: None,
                    reply_frame_no: None,
                    reply_ttl: None,
                    rtt_ns: None,
                    error_frame_no: None,
                    duplicate_count: 0,
                });
            } else {
                let (requester, target) = (frame.dst_ip, frame.src_ip);
                let (frame_no, time) = (record.frame_no, record.time());
                let (interface, flow) = (record.interface, context.flow_id(at));
                let moment = context.decoded.moment(at);
                probes.on_reply(requester, target, echo, vni, interface, flow, frame_no, time, frame.ttl, moment);
            }
        } else if let Some((quoted, echo)) = message.quoted.and_then(|quoted| Some((quoted, quoted.echo?))) {
            let moment = context.decoded.moment(at);
            probes.on_error(quoted.src_ip, quoted.dst_ip, echo, vni, record.interface, record.frame_no, moment);
        }
    }
}

pub(super) fn probe_row(probe: &Probe, first_ns: Option<i64>) -> ProbeRow {
    ProbeRow {
        file_no: file_no(probe.file),
        frame_no: probe.frame_no,
        time: probe.time_ns.map(TimeNs),
        time_rel_ns: relative(probe.time_ns, first_ns),
        protocol: Symbol(if probe.is_v6 { "ICMPv6" } else { "ICMP" }),
        flow_id: probe.flow_id,
        src_ip: probe.src_ip,
        dst_ip: probe.dst_ip,
        identifier: probe.identifier,
        sequence: probe.sequence,
        ip_bytes: probe.ip_bytes,
        reply_frame_no: probe.reply_frame_no,
        reply_ttl: probe.reply_ttl,
        rtt_ns: probe.rtt_ns,
        error_frame_no: probe.error_frame_no,
        duplicate_count: probe.duplicate_count,
        is_lost: probe.reply_frame_no.is_none(),
    }
}

impl TableRow for ProbeRow {
    type Builder = ProbeBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.src_ip, self.dst_ip, Ip::NONE, Ip::NONE], None, None)
    }
}
