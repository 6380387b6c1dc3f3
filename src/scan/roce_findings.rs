//! What is to be said of RoCE and of pauses: losses and their repair, refusals, congestion, priorities, and what a capture
//! at a host cannot show.

use std::collections::{BTreeSet, HashMap};

use super::core::Core;
use super::lldp_findings;
use super::quality::{marked, percent};
use super::tally::Marked;
use crate::analyze::{Channel, Fabric, RoceCause, RoceEventKind, Service, Tap};
use crate::capture::{Finding, Severity};
use crate::words;

/// perftest's and NCCL's usual ports for setting up queue pairs.
const SETUP_PORTS: [u16; 1] = [18_515];

pub(super) fn findings(core: &Core) -> Vec<Finding> {
    let mut findings = Vec::new();
    let channels: Vec<&Channel> = match &core.roce {
        Some(stage) => stage.fabrics.iter().flat_map(Fabric::channels).collect(),
        None => Vec::new(),
    };
    let data: Vec<&Channel> = channels.iter().copied().filter(|channel| !is_management(channel)).collect();
    let taps = Taps::of(core);
    let has_roce = core.roce.as_ref().is_some_and(|stage| stage.packets() > 0);
    if has_roce {
        repairs(&data, &taps, &mut findings);
        silences(core, &data, &mut findings);
        congestion(&data, &taps, &mut findings);
        priorities(core, &data, &mut findings);
        pairing(core, &data, &mut findings);
        findings.extend(control_only(&channels, &data));
    } else {
        findings.extend(roce_expected(core));
    }
    findings.extend(lldp_findings::findings(core, &data));
    pauses(core, has_roce, &mut findings);
    findings
}

/// Where the tap is, by queue pair: as far as is known, and where the capture itself says it.
struct Taps(HashMap<u64, (Tap, Option<Tap>)>);

impl Taps {
    fn of(core: &Core) -> Self {
        let fabrics = core.roce.iter().flat_map(|stage| &stage.fabrics);
        let of_fabric = |fabric: &Fabric| {
            let places =
                fabric.channels().map(|channel| (channel.id, (fabric.tap(channel), fabric.tap_by_host(channel))));
            places.collect::<Vec<_>>()
        };
        Self(fabrics.flat_map(of_fabric).collect())
    }

    fn get(&self, channel: &Channel) -> Tap {
        self.0.get(&channel.id).map_or(Tap::Unknown, |taps| taps.0)
    }

    fn by_host(&self, channel: &Channel) -> Option<Tap> {
        self.0.get(&channel.id).and_then(|taps| taps.1)
    }
}

/// Parts of a list that there are any of.
fn present<const N: usize>(parts: [(&'static str, u64); N]) -> impl Iterator<Item = (&'static str, u64)> {
    parts.into_iter().filter(|(_, count)| *count > 0)
}

/// The queue pair of management datagrams carries no data.
fn is_management(channel: &Channel) -> bool {
    channel.ends.service == Service::Ud && channel.ends.responder_qp == 1
}

/// A mark on the first frames of some queue pairs or of what happened on them.
fn mark_of(channels: &[&Channel], count: u64, kind: Option<RoceEventKind>) -> Marked {
    let mut first: Vec<_> = channels
        .iter()
        .filter_map(|channel| match kind {
            None => Some(channel.first),
            Some(kind) => channel.story.events().find(|event| event.kind == kind).map(|event| event.start),
        })
        .map(|mark| (mark.file, mark.frame_no, Some(mark.time_ns)))
        .collect();
    first.sort_unstable();
    first.dedup();
    first.truncate(20);
    Marked { count, first }
}

fn total(channels: &[&Channel], of: impl Fn(&Channel) -> u64) -> u64 {
    channels.iter().map(|channel| of(channel)).sum()
}

fn with<'a>(channels: &[&'a Channel], is: impl Fn(&Channel) -> bool) -> Vec<&'a Channel> {
    channels.iter().copied().filter(|channel| is(channel)).collect()
}

/// What was sent again and why, and what was refused.
fn repairs(data: &[&Channel], taps: &Taps, findings: &mut Vec<Finding>) {
    let requests = total(data, |channel| channel.counts.requests);
    let is_near = |channels: &[&Channel]| channels.iter().all(|channel| taps.get(channel) == Tap::Requester);
    let resent = with(data, |channel| channel.counts.resent_total() > 0);
    if !resent.is_empty() {
        let count = total(&resent, |channel| channel.counts.resent_total());
        let reasons = [
            ("roce.reason.nak", RoceCause::Nak),
            ("roce.reason.rnr", RoceCause::Rnr),
            ("roce.reason.timeout", RoceCause::Timeout),
            ("roce.reason.reissue", RoceCause::Reissue),
            ("roce.reason.unknown", RoceCause::Unknown),
        ];
        let rewinds = [
            ("roce.rewind.nak", RoceCause::Nak),
            ("roce.rewind.rnr", RoceCause::Rnr),
            ("roce.rewind.timeout", RoceCause::Timeout),
            ("roce.rewind.reissue", RoceCause::Reissue),
            ("roce.rewind.unknown", RoceCause::Unknown),
        ];
        let of = |cause: RoceCause| total(&resent, |channel| channel.counts.resent[cause as usize]);
        let went_back = |cause: RoceCause| total(&resent, |channel| channel.counts.rewinds[cause as usize]);
        let naks = total(data, |channel| channel.counts.sequence_naks);
        let all_rewinds: u64 = RoceCause::ALL.into_iter().map(went_back).sum();
        let is_far = resent.iter().all(|channel| matches!(taps.get(channel), Tap::Responder | Tap::Middle));
        let is_near = is_near(&resent);
        let exact = match is_near {
            true => "roce.exact.requester",
            false if is_far => "roce.exact.elsewhere",
            false => "roce.exact.unknown",
        };
        let finding = Finding::new("roce_retransmit", Severity::Warning)
            .value(count, "packets")
            .detail("total", requests)
            .detail("share", percent(count, requests))
            .detail("bytes", total(&resent, |channel| channel.counts.resent_bytes))
            .detail("qps", resent.len())
            .list("reasons", present(reasons.map(|(key, cause)| (key, of(cause)))))
            .list("rewinds", present(rewinds.map(|(key, cause)| (key, went_back(cause)))))
            .detail("each", (count + all_rewinds / 2).checked_div(all_rewinds).unwrap_or(count))
            .detail("naks", naks)
            .list("exact", [(exact, 0)])
            .list("unheeded", [(if is_near { "roce.unheeded.requester" } else { "roce.unheeded.elsewhere" }, 0)])
            // A NAK that is lost on its way, ignored, or the last of the capture makes nobody go back.
            .variant_if(naks > went_back(RoceCause::Nak), "unheeded");
        findings.push(marked(finding, &mark_of(&resent, count, None)));
    }
    // A queue pair that nothing answers any more is told as such, not also as one that waits.
    let is_gone = |channel: &Channel| channel.has_event(RoceEventKind::Unanswered);
    let held = with(data, |channel| channel.counts.timeout_wait_ns > 0 && !is_gone(channel));
    if !held.is_empty() {
        let timeouts = total(&held, |channel| channel.counts.rewinds[RoceCause::Timeout as usize]);
        let heard = total(&held, |channel| channel.counts.timeouts_after_nak);
        let acknowledged = total(&held, |channel| channel.counts.timeouts_after_ack);
        let known = [("roce.timeout.nak", heard), ("roce.timeout.ack", acknowledged)];
        let longest = held.iter().map(|channel| channel.counts.longest_timeout_wait_ns).max().unwrap_or(0);
        let finding = Finding::new("roce_timeout_wait", Severity::Warning)
            .value(total(&held, |channel| channel.counts.timeout_wait_ns.unsigned_abs()), "ns")
            .detail("timeouts", timeouts)
            .detail("qps", held.len())
            .detail("longest", words::short(longest))
            .list("known", present(known))
            .list("fate", [(if is_near(&held) { "roce.fate.requester" } else { "roce.fate.elsewhere" }, 0)])
            .variant_if(heard + acknowledged > 0, "some")
            .variant_if(heard == timeouts, "nak")
            .variant_if(acknowledged == timeouts, "ack");
        findings.push(marked(finding, &mark_of(&held, timeouts, None)));
    }
    let gone = with(data, is_gone);
    if !gone.is_empty() {
        let count = gone.len() as u64;
        let finding = Finding::new("roce_unanswered", Severity::Warning)
            .value(count, "queue pairs")
            .detail("total", data.len())
            .detail("waited", words::short(gone.iter().map(|channel| channel.counts.timeout_wait_ns).sum()))
            .detail("packets", total(&gone, |channel| channel.counts.resent_total()));
        findings.push(marked(finding, &mark_of(&gone, count, Some(RoceEventKind::Unanswered))));
    }
    let waiting = with(data, |channel| channel.counts.rnr_naks > 0);
    if !waiting.is_empty() {
        let count = total(&waiting, |channel| channel.counts.rnr_naks);
        let finding = Finding::new("roce_rnr", Severity::Warning).value(count, "NAKs").detail("qps", waiting.len());
        findings.push(marked(finding, &mark_of(&waiting, count, Some(RoceEventKind::Rnr))));
    }
    let refused = with(data, |channel| channel.counts.fatal_naks > 0);
    if !refused.is_empty() {
        let count = total(&refused, |channel| channel.counts.fatal_naks);
        let of = |code: usize| total(&refused, |channel| channel.counts.fatal_by_code[code]);
        let finding =
            Finding::new("roce_nak", Severity::Warning).value(count, "NAKs").detail("qps", refused.len()).list(
                "refusals",
                present([
                    ("roce.refusal.invalid_request", of(1)),
                    ("roce.refusal.remote_access", of(2)),
                    ("roce.refusal.remote_operation", of(3)),
                    ("roce.refusal.invalid_rd_request", of(4)),
                    ("roce.refusal.reserved", of(0)),
                ]),
            );
        findings.push(marked(finding, &mark_of(&refused, count, Some(RoceEventKind::Refused))));
    }
    let dropped = with(data, |channel| channel.counts.discarded > 0);
    if !dropped.is_empty() {
        let count = total(&dropped, |channel| channel.counts.discarded);
        let finding = Finding::new("roce_discarded", Severity::Info)
            .value(count, "packets")
            .detail("bytes", total(&dropped, |channel| channel.counts.discarded_bytes))
            .list(
                "why",
                present([
                    ("roce.discarded.gaps", total(&dropped, |channel| channel.counts.gaps)),
                    ("roce.discarded.duplicates", total(&dropped, |channel| channel.counts.discarded_twice)),
                ]),
            );
        findings.push(marked(finding, &mark_of(&dropped, count, None)));
    }
    let copied = with(data, |channel| channel.counts.network_duplicates > 0);
    if !copied.is_empty() {
        let count = total(&copied, |channel| channel.counts.network_duplicates);
        let finding = Finding::new("roce_network_duplicates", Severity::Info)
            .value(count, "packets")
            .detail("total", requests)
            .detail("qps", copied.len());
        findings.push(marked(finding, &mark_of(&copied, count, None)));
    }
}

/// What the capture lacks.
fn silences(core: &Core, data: &[&Channel], findings: &mut Vec<Finding>) {
    let lossy = with(data, |channel| channel.counts.not_captured > 0);
    if !lossy.is_empty() {
        let count = total(&lossy, |channel| channel.counts.not_captured);
        let finding =
            Finding::new("roce_capture_loss", Severity::Warning).value(count, "packets").detail("qps", lossy.len());
        findings.push(marked(finding, &mark_of(&lossy, count, Some(RoceEventKind::CaptureLoss))));
    }
    let is_mute = |channel: &Channel| {
        channel.ends.service.is_reliable()
            && channel.counts.acknowledgements + channel.counts.responses == 0
            && channel.counts.resent_total() == 0
            && channel.counts.requests > 3
    };
    let mute = with(data, is_mute);
    // Beyond the limit an answer may belong to requests that were left out: it is no sign of a missing direction.
    let left_out = core.roce.as_ref().map(|stage| stage.left_out()).unwrap_or_default();
    let is_over = left_out.over_limit > 0;
    let orphans = if is_over { 0 } else { left_out.without_requests };
    if !mute.is_empty() || orphans > 0 {
        let finding = Finding::new("roce_one_direction", Severity::Warning)
            .value(mute.len() as u64, "queue pairs")
            .detail("total", data.len())
            .detail("answers", orphans);
        findings.push(marked(finding, &mark_of(&mute, mute.len() as u64 + orphans, None)));
    }
    if is_over {
        let over = left_out.over_limit + left_out.without_requests;
        let mut finding = Finding::new("roce_limit", Severity::Error).value(over, "packets");
        finding.count = over;
        findings.push(finding);
    }
}

/// Queue pairs were connected, and no data of theirs is here: hardware may keep it to itself.
fn control_only(channels: &[&Channel], data: &[&Channel]) -> Option<Finding> {
    let connected = with(channels, |channel| channel.has_event(RoceEventKind::Connect));
    if connected.is_empty() || !data.is_empty() {
        return None;
    }
    let is_connect =
        |channel: &Channel| channel.story.events().filter(|event| event.kind == RoceEventKind::Connect).count() as u64;
    let count = total(&connected, is_connect);
    let finding = Finding::new("roce_control_only", Severity::Warning).value(count, "connections");
    Some(marked(finding, &mark_of(&connected, count, Some(RoceEventKind::Connect))))
}

/// ECN: marks, and the notifications that should follow them.
fn congestion(data: &[&Channel], taps: &Taps, findings: &mut Vec<Finding>) {
    let marks_of = |channel: &Channel| channel.counts.ce + channel.counts.response_ce;
    let notifications_of = |channel: &Channel| channel.counts.notifications + channel.counts.response_notifications;
    let marked_qps = with(data, |channel| marks_of(channel) > 0);
    let marks = total(&marked_qps, marks_of);
    let notifications = total(data, notifications_of);
    let requests = total(data, |channel| channel.counts.requests);
    // Where the same traffic was captured at several points, those without marks lie before the switch.
    let interfaces: BTreeSet<u32> = marked_qps.iter().map(|channel| channel.ends.interface).collect();
    let beside = with(data, |channel| interfaces.contains(&channel.ends.interface));
    let packets = total(&beside, |channel| channel.counts.requests + channel.counts.responses);
    if marks > 0 {
        let code = if notifications == 0 { "roce_ce_without_cnp" } else { "roce_congestion" };
        let severity = if notifications == 0 { Severity::Warning } else { Severity::Info };
        let delays = marked_qps.iter().filter_map(|channel| channel.story.notification_delay.as_ref()?.at_ns(500));
        let shortest = delays.min().map_or_else(|| "-".to_owned(), words::short);
        // Marks on responses alone are no event of the queue pair.
        let has_event = marked_qps.iter().any(|channel| channel.has_event(RoceEventKind::Congestion));
        let kind = has_event.then_some(RoceEventKind::Congestion);
        let finding = Finding::new(code, severity)
            .value(marks, "packets")
            .detail("total", packets)
            .detail("share", percent(marks, packets))
            .detail("qps", marked_qps.len())
            .detail("cnps", notifications)
            .detail("delay", shortest)
            .variant_if(notifications == 0 && !passes_answers(&marked_qps), "one_way")
            .variant_if(notifications == 0 && is_at_receivers(&marked_qps, taps), "here");
        findings.push(marked(finding, &mark_of(&marked_qps, marks, kind)));
    } else if notifications > 0 {
        let slowed = with(data, |channel| notifications_of(channel) > 0);
        let has_event = slowed.iter().any(|channel| channel.has_event(RoceEventKind::Notification));
        let kind = has_event.then_some(RoceEventKind::Notification);
        let finding = Finding::new("roce_cnp_without_ce", Severity::Info)
            .value(notifications, "packets")
            .detail("qps", slowed.len());
        findings.push(marked(finding, &mark_of(&slowed, notifications, kind)));
    }
    let unmarkable = with(data, |channel| channel.counts.not_ect > 0);
    if !unmarkable.is_empty() {
        let count = total(&unmarkable, |channel| channel.counts.not_ect);
        let finding = Finding::new("roce_not_ect", Severity::Info)
            .value(count, "packets")
            .detail("total", requests)
            .detail("qps", unmarkable.len())
            .variant_if(count == requests, "all");
        findings.push(marked(finding, &mark_of(&unmarkable, count, None)));
    }
}

/// Whether what the receivers of the marked packets send passes the tap: their CNPs would as well, on the same way.
fn passes_answers(marked: &[&Channel]) -> bool {
    marked.iter().all(|channel| {
        let counts = &channel.counts;
        // Of a READ's response the receiver is the requester.
        (counts.ce == 0 || counts.acknowledgements + counts.responses > 0)
            && (counts.response_ce == 0 || counts.requests > 0)
    })
}

/// Whether the capture itself says that it was taken at the receivers of all the marked packets. Marks are seen all the way
/// from the switch to there.
fn is_at_receivers(marked: &[&Channel], taps: &Taps) -> bool {
    passes_answers(marked)
        && marked.iter().all(|channel| {
            let (tap, counts) = (taps.by_host(channel), &channel.counts);
            (counts.ce == 0 || tap == Some(Tap::Responder)) && (counts.response_ce == 0 || tap == Some(Tap::Requester))
        })
}

/// The class that a queue pair's packets travel in: VLAN priority, else the usual map from DSCP.
fn class_of(channel: &Channel) -> u8 {
    channel.pcp.unwrap_or(channel.traffic_class >> 5)
}

/// DSCP, VLAN priority and PFC classes should tell one story.
fn priorities(core: &Core, data: &[&Channel], findings: &mut Vec<Finding>) {
    let plain = with(data, |channel| channel.traffic_class >> 2 == 0 && channel.pcp.unwrap_or(0) == 0);
    if !plain.is_empty() {
        let count = plain.len() as u64;
        let finding = Finding::new("roce_dscp_zero", Severity::Info)
            .value(count, "queue pairs")
            .detail("total", data.len())
            .variant_if(plain.len() == data.len(), "all");
        findings.push(marked(finding, &mark_of(&plain, count, None)));
    }
    let mixed = with(data, |channel| channel.has_other_dscp || channel.has_other_pcp);
    if !mixed.is_empty() {
        let count = mixed.len() as u64;
        let finding =
            Finding::new("roce_dscp_varies", Severity::Warning).value(count, "queue pairs").detail("total", data.len());
        findings.push(marked(finding, &mark_of(&mixed, count, None)));
    }
    let torn = with(data, |channel| channel.pcp.is_some_and(|pcp| pcp != channel.traffic_class >> 5));
    if let Some(first) = torn.iter().min_by_key(|channel| channel.id) {
        let count = torn.len() as u64;
        let finding = Finding::new("roce_pcp_mismatch", Severity::Warning)
            .value(count, "queue pairs")
            .detail("pcp", first.pcp.unwrap_or(0))
            .detail("dscp", first.traffic_class >> 2)
            .detail("class", first.traffic_class >> 5);
        findings.push(marked(finding, &mark_of(&torn, count, None)));
    }
    let data_classes: BTreeSet<u8> = data.iter().map(|channel| class_of(channel)).collect();
    let shared = with(data, |channel| channel.notification_class.is_some_and(|class| class == class_of(channel)));
    if !shared.is_empty() {
        let count = total(&shared, |channel| channel.counts.notifications);
        let finding = Finding::new("roce_cnp_in_data_class", Severity::Warning)
            .value(count, "packets")
            .detail("class", class_of(shared[0]));
        findings.push(marked(finding, &mark_of(&shared, count, Some(RoceEventKind::Notification))));
    }
    let Some(pauses) = &core.pauses else { return };
    let paused: Vec<u8> = (0..8).filter(|class| pauses.by_class[usize::from(*class)].pauses > 0).collect();
    let is_unused = |class: &&u8| !data_classes.contains(class);
    if !paused.is_empty() && !data_classes.is_empty() && paused.iter().filter(is_unused).count() == paused.len() {
        let frames = paused.iter().map(|class| pauses.by_class[usize::from(*class)].pauses).sum();
        let list = |classes: &[u8]| classes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let finding = Finding::new("pfc_other_class", Severity::Warning)
            .value(frames, "pauses")
            .detail("paused", list(&paused))
            .detail("used", list(&data_classes.into_iter().collect::<Vec<_>>()));
        let first = paused.iter().filter_map(|class| pauses.by_class[usize::from(*class)].first).min();
        let first = first.into_iter().map(|(file, frame_no, time_ns)| (file, frame_no, Some(time_ns))).collect();
        findings.push(marked(finding, &Marked { count: frames, first }));
    }
}

/// How queue pairs were paired, and where the tap is.
fn pairing(core: &Core, data: &[&Channel], findings: &mut Vec<Finding>) {
    let Some(stage) = &core.roce else { return };
    let by = |name: &str| total(data, |channel| u64::from(channel.paired_by.name() == Some(name)));
    let unpaired = total(data, |channel| u64::from(channel.paired_by.name().is_none()));
    if data.is_empty() {
        return;
    }
    let mut taps = [0_u64; Tap::COUNT];
    let (mut hosts, mut is_told) = (BTreeSet::new(), true);
    for fabric in &stage.fabrics {
        for channel in fabric.channels().filter(|channel| !is_management(channel)) {
            let tap = fabric.tap(channel);
            taps[tap as usize] += 1;
            is_told &= fabric.tap_by_host(channel).is_some();
            hosts.insert(match tap {
                Tap::Requester => Some(channel.ends.requester_ip),
                Tap::Responder => Some(channel.ends.responder_ip),
                Tap::Middle | Tap::BehindMarks | Tap::Unknown => None,
            });
        }
    }
    // The one host at which all of it was captured.
    let mut hosts = hosts.into_iter();
    let host = hosts.next().flatten().filter(|_| hosts.next().is_none());
    let of = |tap: Tap| taps[tap as usize];
    let finding = Finding::new("roce_queue_pairs", Severity::Info)
        .value(data.len() as u64, "queue pairs")
        .list(
            "pairing",
            present([
                ("roce.pairing.cm", by("cm")),
                ("roce.pairing.perftest", by("perftest")),
                ("roce.pairing.deth", by("deth")),
                ("roce.pairing.psn", by("psn") + by("same_number")),
                ("roce.pairing.none", unpaired),
            ]),
        )
        .list(
            "taps",
            present([
                ("roce.tap.requester", of(Tap::Requester)),
                ("roce.tap.responder", of(Tap::Responder)),
                ("roce.tap.middle", of(Tap::Middle)),
                ("roce.tap.behind_marks", of(Tap::BehindMarks)),
                ("roce.tap.unknown", of(Tap::Unknown)),
            ]),
        )
        .list(
            "roles",
            present([("roce.role.requester", of(Tap::Requester)), ("roce.role.responder", of(Tap::Responder))]),
        )
        .detail("host", host.map_or_else(String::new, |ip| ip.to_string()))
        .variant_if(host.is_some(), "near")
        .variant_if(host.is_some() && is_told, "host")
        .variant_if(of(Tap::BehindMarks) == data.len() as u64, "marks")
        .variant_if(of(Tap::Unknown) == data.len() as u64, "unknown");
    findings.push(marked(finding, &mark_of(data, data.len() as u64, None)));
}

/// Connections by which RoCE programs set up their queue pairs, in a capture without RoCE.
fn roce_expected(core: &Core) -> Option<Finding> {
    let is_setup = |port: u16| SETUP_PORTS.contains(&port);
    let flows = core.shards.iter().flat_map(|shard| &shard.flows.flows);
    let setups =
        flows.filter(|flow| flow.key.ip_protocol == 6 && (is_setup(flow.key.low.port) || is_setup(flow.key.high.port)));
    let mut first: Vec<_> = setups.map(|flow| (flow.file, flow.first_frame, flow.first_time_ns)).collect();
    if first.is_empty() {
        return None;
    }
    first.sort_unstable();
    let count = first.len() as u64;
    first.truncate(20);
    let finding = Finding::new("roce_expected", Severity::Warning).value(count, "connections");
    Some(marked(finding, &Marked { count, first }))
}

fn pauses(core: &Core, has_roce: bool, findings: &mut Vec<Finding>) {
    let Some(pauses) = &core.pauses else { return };
    let span_ns =
        core.tally.max_time_ns.zip(core.tally.min_time_ns).map_or(0, |(last, first)| last.saturating_sub(first));
    let mut has_any = false;
    for (class, sum) in pauses.by_class.iter().enumerate().filter(|(_, sum)| sum.pauses > 0) {
        has_any = true;
        let class = if class < 8 { ("roce.class.one", class as u64) } else { ("roce.class.all", 0) };
        let first = sum.first.into_iter().map(|(file, frame_no, time_ns)| (file, frame_no, Some(time_ns))).collect();
        let mark = Marked { count: sum.pauses, first };
        let known_ns = u64::try_from(sum.known_ns).unwrap_or(0);
        let is_known = core.options.link_speed_bps.is_some();
        let code = match (sum.storms > 0, is_known) {
            (true, _) => "pause_storm",
            (false, true) => "pauses",
            (false, false) => "pauses_without_speed",
        };
        let severity = if sum.storms > 0 { Severity::Warning } else { Severity::Info };
        let finding = Finding::new(code, severity)
            .value(known_ns, "ns")
            .list("class", [class])
            .detail("share", percent(known_ns, u64::try_from(span_ns).unwrap_or(0).max(1)))
            .detail("longest", words::short(sum.longest_ns))
            .detail("storms", sum.storms)
            .detail("total", words::short(sum.to_xon_ns))
            .detail("longest_to_xon", words::short(sum.longest_to_xon_ns))
            .detail("xons", sum.xons);
        // Without a link speed XON alone tells when a pause was over at the latest.
        let finding = match code == "pauses_without_speed" {
            true => finding.variant_if(sum.xons > 0, "some").variant_if(sum.xons == sum.pauses, "xon"),
            false => finding,
        };
        findings.push(marked(finding, &mark));
    }
    if has_roce && !has_any {
        findings.push(Finding::new("no_pause_frames", Severity::Info));
    }
}
