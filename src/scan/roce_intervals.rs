//! Rows of `roce_intervals`.

use super::core::Sinks;
use super::roce::RoceStage;
use super::rows::{file_no, relative};
use crate::analyze::{Channel, Fabric};
use crate::tables::*;
use crate::wire::Ip;

pub(super) fn interval_table(stage: &RoceStage, first_ns: Option<i64>, sinks: &mut Sinks) {
    let Some(sink) = &mut sinks.roce_intervals else { return };
    let mut channels: Vec<&Channel> = stage.fabrics.iter().flat_map(Fabric::channels).collect();
    channels.sort_unstable_by_key(|channel| channel.id);
    for channel in channels {
        let length_ns = channel.intervals.length_ns();
        for (start_ns, counts) in channel.intervals.iter() {
            let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
            let bits = u128::from(counts.bytes) * 8 * 1_000_000_000 / u128::from(length_ns.unsigned_abs().max(1));
            sink.push(RoceIntervalRow {
                file_no: file_no(channel.first.file),
                qp_id: channel.id,
                time: Some(TimeNs(start_ns)),
                time_rel_ns: relative(Some(start_ns), first_ns),
                interval_ns: length_ns,
                requester_ip: channel.ends.requester_ip,
                requester_qp: channel.ends.requester_qp,
                responder_ip: channel.ends.responder_ip,
                responder_qp: channel.ends.responder_qp,
                request_count: counts.requests,
                response_count: counts.responses,
                bytes: counts.bytes,
                throughput_bps: u64::try_from(bits).unwrap_or(u64::MAX),
                retransmit_count: counts.resent,
                ce_count: counts.ce,
                ce_ratio: share(counts.ce, counts.requests),
                not_ect_count: counts.not_ect,
                cnp_count: counts.notifications,
                response_ce_count: counts.response_ce,
                response_ce_ratio: share(counts.response_ce, counts.responses),
                response_cnp_count: counts.response_notifications,
            });
        }
    }
}

impl TableRow for RoceIntervalRow {
    type Builder = RoceIntervalBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.requester_ip, self.responder_ip, Ip::NONE, Ip::NONE], None, None)
    }
}
