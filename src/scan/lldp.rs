//! The LLDP stage of a run: rows of `lldp`, and what the two ends of a link agree on.

use super::core::Context;
use super::rows::file_no;
use super::shard::CHUNK_RECORDS;
use super::sink::Sink;
use crate::analyze::{Links, Mark};
use crate::capture::Record;
use crate::tables::*;
use crate::wire::{Dcbx, Ets, Frame, Ip, LLDP_CAPABILITIES, Layers, LldpPdu, Mac};

/// Where LLDP frames go that no bridge passes on.
const NEAREST_BRIDGE: Mac = Mac([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);
const PRIORITIES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

#[derive(Default)]
pub(crate) struct LldpStage {
    pub links: Links,
}

impl LldpStage {
    pub fn on_window(&mut self, context: &Context<'_>, mut sink: Option<&mut Sink<LldpRow>>) {
        for (number, chunk) in context.decoded.chunks.iter().enumerate() {
            for at in &chunk.lldp {
                let place = number * CHUNK_RECORDS + *at as usize;
                let (Some(frame), Some(record)) =
                    (chunk.frames.get(*at as usize), context.decoded.window.records.get(place))
                else {
                    continue;
                };
                let bytes = context.decoded.window.bytes(record);
                let start = (frame.payload_at as usize).min(bytes.len());
                let end = start.saturating_add(frame.payload_bytes as usize).min(bytes.len());
                let pdu = LldpPdu::parse(&bytes[start..end]);
                // In a tunnel the addresses are those of the tunnel's ends, and the link is none of this capture's.
                let is_here = frame.tunnels == 0 && frame.layers.has(Layers::MACS);
                if is_here && frame.dst_mac == NEAREST_BRIDGE && pdu.problem.is_none() {
                    let mark = Mark { file: record.file, frame_no: record.frame_no, time_ns: record.time_ns };
                    self.links.on_pdu(record.interface, frame.src_mac, &pdu, mark);
                }
                if let Some(sink) = &mut sink {
                    sink.push(row(context, record, frame, pdu));
                }
            }
        }
    }
}

fn row(context: &Context<'_>, record: &Record, frame: &Frame, pdu: LldpPdu) -> LldpRow {
    let has_macs = frame.layers.has(Layers::MACS);
    let has_source = has_macs || frame.layers.has(Layers::SOURCE_MAC_ONLY);
    let dcbx = &pdu.dcbx;
    let (ets, recommended) = (dcbx.ets.as_ref(), dcbx.ets_recommended.as_ref());
    let (chassis, port) = (pdu.chassis, pdu.port);
    LldpRow {
        file_no: file_no(record.file),
        frame_no: record.frame_no,
        time: record.time().map(TimeNs),
        time_rel_ns: context.time_rel_ns(record),
        interface_id: record.interface,
        src_mac: has_source.then_some(frame.src_mac),
        dst_mac: has_macs.then_some(frame.dst_mac),
        chassis_id_kind: chassis.as_ref().map(|id| Symbol(id.kind)),
        chassis_id: chassis.map(|id| id.text),
        port_id_kind: port.as_ref().map(|id| Symbol(id.kind)),
        port_id: port.map(|id| id.text),
        hold_ns: pdu.ttl_s.map(|seconds| i64::from(seconds) * 1_000_000_000),
        port_description: pdu.port_description,
        system_name: pdu.system_name,
        system_description: pdu.system_description,
        capabilities: pdu.enabled_capabilities.map(|bits| NameSet { bits: u32::from(bits), names: &LLDP_CAPABILITIES }),
        management_ip: pdu.management_ip,
        port_vlan: pdu.port_vlan,
        max_frame_bytes: pdu.max_frame_bytes,
        dcbx: (dcbx.dialects != 0).then_some(NameSet { bits: u32::from(dcbx.dialects), names: &Dcbx::DIALECTS }),
        pfc_priorities: dcbx.pfc.map(|pfc| NameSet { bits: u32::from(pfc.enabled), names: &PRIORITIES }),
        pfc_mask: dcbx.pfc.map(|pfc| pfc.enabled),
        is_pfc_willing: dcbx.pfc.map(|pfc| pfc.is_willing),
        pfc_max_classes: dcbx.pfc.map(|pfc| pfc.max_classes),
        is_macsec_bypass: dcbx.pfc.and_then(|pfc| pfc.is_macsec_bypass),
        ets_classes: ets.map(|ets| numbers(&ets.classes)),
        ets_bandwidths: ets.map(|ets| numbers(&ets.bandwidths)),
        ets_algorithms: ets.and_then(algorithms),
        is_ets_willing: ets.and_then(|ets| ets.is_willing),
        ets_max_classes: ets.and_then(|ets| ets.max_classes),
        ets_recommended_classes: recommended.map(|ets| numbers(&ets.classes)),
        ets_recommended_bandwidths: recommended.map(|ets| numbers(&ets.bandwidths)),
        ets_recommended_algorithms: recommended.and_then(algorithms),
        app_priorities: dcbx.has_apps().then(|| joined(dcbx.apps.iter().map(ToString::to_string))),
        roce_v2_priority: dcbx.roce_v2_priority(),
        roce_v1_priority: dcbx.roce_v1_priority(),
        tlv_count: pdu.tlv_count,
        problem: pdu.problem.map(|problem| Symbol(problem.name())),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn numbers(numbers: &[u8; 8]) -> String {
    joined(numbers.iter().map(u8::to_string))
}

fn algorithms(ets: &Ets) -> Option<String> {
    let name = |code: &u8| match code {
        0 => "strict".to_owned(),
        1 => "cbs".to_owned(),
        2 => "ets".to_owned(),
        255 => "vendor".to_owned(),
        code => code.to_string(),
    };
    Some(joined(ets.algorithms?.iter().map(name)))
}

impl TableRow for LldpRow {
    type Builder = LldpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.management_ip, Ip::NONE, Ip::NONE, Ip::NONE], None, None)
    }
}
