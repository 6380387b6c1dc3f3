//! Rows of `dns`.

use super::core::Context;
use super::rows::{file_no, relative};
use super::shard::CHUNK_RECORDS;
use crate::analyze::{CopyKind, DnsPlace, DnsTracker, DnsTransaction};
use crate::tables::*;
use crate::wire::{DnsMessage, Ip, Layers, Protocol, dns_type_name, rcode_name};

/// Shows the window's DNS messages to the tracker.
pub(super) fn follow(context: &Context<'_>, tracker: &mut DnsTracker) {
    let mut copies = context.copies.iter().peekable();
    for (at, record, frame, chunk) in context.frames() {
        // A copy made by the capture is no second query.
        let copy = copies.next_if(|(index, _)| *index as usize == at);
        let is_copy = copy.is_some_and(|(_, copy)| matches!(copy.kind, CopyKind::SameInterface | CopyKind::RouterHop));
        let is_server_source = frame.src_port == DnsMessage::PORT;
        if is_copy || frame.protocol != Protocol::Udp || !(is_server_source || frame.dst_port == DnsMessage::PORT) {
            continue;
        }
        if frame.is_piece() {
            continue;
        }
        let frame_bytes = context.decoded.window.bytes(record);
        let bytes = match frame.layers.has(Layers::REASSEMBLED) {
            true => chunk.datagram_of(at % CHUNK_RECORDS).map_or(&[][..], |datagram| &datagram.bytes),
            false => frame_bytes,
        };
        let start = (frame.payload_at as usize).min(bytes.len());
        let end = start.saturating_add(frame.payload_bytes as usize).min(bytes.len());
        let Ok(message) = DnsMessage::parse(&bytes[start..end]) else { continue };
        let (source, destination) = ((frame.src_ip, frame.src_port), (frame.dst_ip, frame.dst_port));
        let (client, server) = if message.is_response() { (destination, source) } else { (source, destination) };
        // What answers comes from the port of servers, what asks goes there.
        if server.1 != DnsMessage::PORT {
            continue;
        }
        let place = DnsPlace {
            file: record.file,
            frame_no: record.frame_no,
            time_ns: record.time(),
            flow_id: context.flow_id(at),
            client,
            server,
            vni: frame.layers.has(Layers::VNI).then_some(frame.vni),
            interface: record.interface,
            at: context.decoded.moment(at),
        };
        tracker.on_message(place, message);
    }
}

pub(super) fn row(done: &DnsTransaction, first_ns: Option<i64>) -> DnsRow {
    let (place, message) = (&done.place, &done.message);
    let question = message.question.as_ref();
    let response = done.response.as_ref().map(|(frame_no, _, response)| (*frame_no, response));
    let flag = |bit: u16| response.is_some_and(|(_, response)| response.flags & bit != 0);
    let rcode = response.map(|(_, response)| response.rcode());
    DnsRow {
        file_no: file_no(place.file),
        frame_no: place.frame_no,
        time: place.time_ns.map(TimeNs),
        time_rel_ns: relative(place.time_ns, first_ns),
        flow_id: place.flow_id,
        client_ip: place.client.0,
        client_port: place.client.1,
        server_ip: place.server.0,
        server_port: place.server.1,
        dns_id: message.id,
        opcode: message.opcode(),
        query_name: question.map(|question| question.name.clone()),
        query_type: question.map(|question| question.qtype),
        query_type_name: question.and_then(|question| dns_type_name(question.qtype)).map(Symbol),
        query_class: question.map(|question| question.qclass),
        question_count: message.question_count,
        is_recursion_desired: message.flags & 0x0100 != 0,
        is_query_seen: done.has_query,
        retry_count: done.retry_count,
        response_frame_no: response.map(|(frame_no, _)| frame_no),
        rtt_ns: done.rtt_ns(),
        rcode,
        rcode_name: rcode.and_then(rcode_name).map(Symbol),
        is_authoritative: flag(0x0400),
        is_truncated: flag(0x0200),
        is_recursion_available: flag(0x0080),
        answer_count: response.map(|(_, response)| response.answer_count),
        authority_count: response.map(|(_, response)| response.authority_count),
        additional_count: response.map(|(_, response)| response.additional_count),
        answers: response
            .filter(|(_, response)| !response.answers.is_empty())
            .map(|(_, response)| response.answers.join(", ")),
        duplicate_count: done.duplicate_count,
    }
}

impl TableRow for DnsRow {
    type Builder = DnsBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.client_ip, self.server_ip, Ip::NONE, Ip::NONE];
        RowSubject::of(self.time, ips, Some(self.client_port), Some(self.server_port))
    }
}
