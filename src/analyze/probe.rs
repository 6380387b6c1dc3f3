//! ICMP echo requests and what answers them.

use std::collections::HashMap;

use super::{HoldLimits, Moment};
use crate::wire::Ip;

/// A request, and what came back.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub file: u16,
    pub frame_no: u64,
    pub time_ns: Option<i64>,
    pub is_v6: bool,
    pub flow_id: Option<u64>,
    pub src_ip: Ip,
    pub dst_ip: Ip,
    pub identifier: u16,
    pub sequence: u16,
    pub ip_bytes: u32,
    pub vni: Option<u32>,
    pub interface: u32,
    pub at: Moment,
    pub replied: Option<Moment>,
    pub reply_frame_no: Option<u64>,
    pub reply_ttl: Option<u8>,
    pub rtt_ns: Option<i64>,
    pub error_frame_no: Option<u64>,
    pub duplicate_count: u32,
}

impl Probe {
    /// Whether nothing counts for it any more; once true, that stays so.
    fn is_over(&self, now: Moment, limits: &HoldLimits) -> bool {
        limits.is_over(self.at, self.replied, now)
    }
}

type ProbeKey = (Ip, Ip, u16, u16, Option<u32>, u32);
/// A reply lies in the flow of its request, whatever the virtual network of each is.
type ReplyKey = (u64, Ip, u16, u16);

/// Matches replies to requests. Holds a request back until its answer can no longer change; rows come out in the order of
/// requests.
#[derive(Default)]
pub(crate) struct ProbeTracker {
    open: HashMap<ProbeKey, u64>,
    open_in_flow: HashMap<ReplyKey, u64>,
    held: crate::flow::HoldQueue<Probe>,
    limits: HoldLimits,
}

impl ProbeTracker {
    pub fn new(limits: HoldLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub fn on_request(&mut self, probe: Probe) {
        let (key, reply_key) = (key_of(&probe), reply_key_of(&probe));
        let number = self.held.push(probe);
        // A request sent again (or captured twice) takes the replies from here on.
        self.open.insert(key, number);
        if let Some(key) = reply_key {
            self.open_in_flow.insert(key, number);
        }
    }

    /// `requester` and `target` are the request's source and destination.
    #[expect(clippy::too_many_arguments, reason = "the fields of one reply; no other place has them together")]
    pub fn on_reply(
        &mut self,
        requester: Ip,
        target: Ip,
        echo: (u16, u16),
        vni: Option<u32>,
        interface: u32,
        flow_id: Option<u64>,
        frame_no: u64,
        time_ns: Option<i64>,
        ttl: u8,
        at: Moment,
    ) {
        let key = (requester, target, echo.0, echo.1, vni, interface);
        let in_flow = flow_id.and_then(|flow_id| self.open_in_flow.get(&(flow_id, requester, echo.0, echo.1)));
        let waiting = [self.open.get(&key), in_flow].into_iter().flatten().copied();
        let limits = self.limits;
        let number = waiting.into_iter().find(|number| {
            // One that is over may have been given out by now or not.
            self.held.get_mut(*number).is_some_and(|probe| !probe.is_over(at, &limits))
        });
        let Some(probe) = number.and_then(|number| self.held.get_mut(number)) else { return };
        if probe.reply_frame_no.is_some() {
            probe.duplicate_count += 1;
            return;
        }
        probe.reply_frame_no = Some(frame_no);
        probe.reply_ttl = Some(ttl);
        probe.replied = Some(at);
        probe.rtt_ns = time_ns.zip(probe.time_ns).map(|(reply, request)| reply - request);
    }

    /// An ICMP error that quotes a request.
    #[expect(clippy::too_many_arguments, reason = "as of a reply")]
    pub fn on_error(
        &mut self,
        requester: Ip,
        target: Ip,
        echo: (u16, u16),
        vni: Option<u32>,
        interface: u32,
        frame_no: u64,
        at: Moment,
    ) {
        let key = (requester, target, echo.0, echo.1, vni, interface);
        let probe = self.open.get(&key).and_then(|number| self.held.get_mut(*number));
        if let Some(probe) = probe.filter(|probe| !probe.is_over(at, &self.limits)) {
            probe.error_frame_no.get_or_insert(frame_no);
        }
    }

    /// Hands out what nothing can change any more after `now`; everything where the capture has ended (`None`).
    pub fn release(&mut self, now: Option<Moment>, mut out: impl FnMut(Probe)) {
        while let Some(probe) = self.held.front() {
            if now.is_some_and(|now| !probe.is_over(now, &self.limits)) {
                return;
            }
            let number = self.held.front_number();
            let Some(probe) = self.held.pop() else { return };
            let key = key_of(&probe);
            if self.open.get(&key) == Some(&number) {
                self.open.remove(&key);
            }
            if let Some(key) = reply_key_of(&probe).filter(|key| self.open_in_flow.get(key) == Some(&number)) {
                self.open_in_flow.remove(&key);
            }
            out(probe);
        }
    }
}

fn reply_key_of(probe: &Probe) -> Option<ReplyKey> {
    Some((probe.flow_id?, probe.src_ip, probe.identifier, probe.sequence))
}

fn key_of(probe: &Probe) -> ProbeKey {
    (probe.src_ip, probe.dst_ip, probe.identifier, probe.sequence, probe.vni, probe.interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::moment::each_late_answer;

    const A: Ip = Ip::NONE;

    fn at(frame: u64, ns: i64) -> Moment {
        Moment { ns, frame }
    }

    fn request(frame_no: u64, time_ns: i64, sequence: u16) -> Probe {
        Probe {
            file: 0,
            frame_no,
            time_ns: Some(time_ns),
            is_v6: false,
            flow_id: None,
            src_ip: A,
            dst_ip: A,
            identifier: 7,
            sequence,
            ip_bytes: 84,
            vni: None,
            interface: 0,
            at: at(frame_no, time_ns),
            replied: None,
            reply_frame_no: None,
            reply_ttl: None,
            rtt_ns: None,
            error_frame_no: None,
            duplicate_count: 0,
        }
    }

    #[test]
    fn a_request_without_reply_does_not_hold_back_the_order_for_ever() {
        let mut tracker = ProbeTracker::default();
        tracker.on_request(request(1, 0, 1));
        tracker.on_request(request(2, 1_000, 2));
        tracker.on_reply(A, A, (7, 2), None, 0, None, 3, Some(1_500), 64, at(3, 1_500));
        let mut rows = Vec::new();
        tracker.release(Some(at(3, 2_000_000_000)), |probe| rows.push(probe.frame_no));
        assert!(rows.is_empty(), "the first may still be answered");
        tracker.release(Some(at(3, 10_000_000_001)), |probe| rows.push(probe.frame_no));
        assert_eq!(rows, [1, 2]);
    }

    #[test]
    fn replies_beyond_the_first_are_counted() {
        let mut tracker = ProbeTracker::default();
        tracker.on_request(request(1, 0, 1));
        for frame_no in 2..5 {
            let time_ns = frame_no as i64 * 100;
            tracker.on_reply(A, A, (7, 1), None, 0, None, frame_no, Some(time_ns), 64, at(frame_no, time_ns));
        }
        let mut rows = Vec::new();
        tracker.release(None, |probe| rows.push((probe.reply_frame_no, probe.rtt_ns, probe.duplicate_count)));
        assert_eq!(rows, [(Some(2), Some(200), 2)]);
    }

    #[test]
    fn what_comes_later_than_it_may_never_counts_whenever_rows_are_handed_out() {
        each_late_answer(|limits, is_often, answers, is_counted| {
            let (mut tracker, mut rows) = (ProbeTracker::new(limits), Vec::new());
            tracker.on_request(Probe { flow_id: Some(3), ..request(1, 0, 1) });
            for now in answers {
                if is_often {
                    tracker.release(Some(Moment { frame: now.frame - 1, ..now }), |probe| rows.push(probe));
                }
                tracker.on_reply(A, A, (7, 1), None, 0, Some(3), now.frame, Some(now.ns), 64, now);
                tracker.on_error(A, A, (7, 1), None, 0, now.frame, now);
            }
            tracker.release(None, |probe| rows.push(probe));
            let told = rows.iter().map(|row| (row.reply_frame_no.is_some(), row.duplicate_count > 0));
            assert_eq!(told.collect::<Vec<_>>(), [is_counted], "{answers:?}");
            assert_eq!(rows[0].error_frame_no.is_some(), is_counted.0, "{answers:?}");
        });
    }
}
