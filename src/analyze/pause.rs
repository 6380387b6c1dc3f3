//! Pauses, put together from the frames that begin, refresh and end them (IEEE 802.3x PAUSE, IEEE 802.1Qbb PFC).

use std::collections::BTreeMap;

use super::{Frames, Mark};
use crate::wire::{Mac, PauseFrame, pause_ns};

/// Without a link speed a pause is taken to be over when even a link of 1 Gb/s would have sat it out.
const SLOWEST_BPS: u64 = 1_000_000_000;
/// Pauses that may be open at once: ports and classes.
const MOST_OPEN: usize = 256;
/// Classes of interfaces whose flows are remembered.
const MOST_CLASSES: usize = 4_096;
/// Flows of a class that are remembered.
const FLOWS: usize = 64;
/// A flow shares a pause if it sent so shortly before it.
const SHARING_NS: i64 = 10_000_000;

/// Who is paused by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PausePort {
    pub interface: u32,
    /// The congested port.
    pub src_mac: [u8; 6],
    pub is_pfc: bool,
    /// Priority class; `None` where all traffic stops.
    pub class: Option<u8>,
}

/// One pause from its first frame to its end.
#[derive(Clone, Debug)]
pub(crate) struct PauseInterval {
    pub port: PausePort,
    pub start: Mark,
    /// `None` where nothing tells it: no link speed, and no frame that ends the pause.
    pub end_ns: Option<i64>,
    /// `xon`, `expiry`, `capture_end`.
    pub ended_by: &'static str,
    /// Frames that ask for it: the first and its refreshes.
    pub requests: u64,
    pub largest_quanta: u16,
    pub frames: Frames,
    /// Frames of the class that passed meanwhile, other than from the congested port.
    pub carried: u64,
    pub carried_bytes: u64,
    /// Flows that had sent in the class just before, or sent meanwhile.
    pub sharing_flows: u64,
}

#[derive(Debug)]
struct Open {
    interval: PauseInterval,
    /// When the last request has run its time, if that is known.
    deadline_ns: Option<i64>,
    /// When it is over, at the latest, by the capture's latest time.
    over_ns: i64,
}

/// Flows of a class on an interface, with when they last sent.
#[derive(Debug, Default)]
struct Recent {
    flows: Vec<(u64, i64)>,
}

#[derive(Debug)]
pub(crate) struct PauseTracker {
    open: BTreeMap<PausePort, Open>,
    /// When the first of them is over.
    next_over_ns: i64,
    recent: BTreeMap<(u32, u8), Recent>,
    finished: Vec<PauseInterval>,
    link_speed_bps: Option<u64>,
    /// Pauses that began while too many were open.
    pub left_out: u64,
}

impl PauseTracker {
    pub fn new(link_speed_bps: Option<u64>) -> Self {
        Self {
            open: BTreeMap::new(),
            next_over_ns: i64::MAX,
            recent: BTreeMap::new(),
            finished: Vec::new(),
            link_speed_bps: link_speed_bps.filter(|bps| *bps > 0),
            left_out: 0,
        }
    }

    /// How far the capture has come with the frame that comes next, by its latest time. Pauses that are over by then are over
    /// before it: it does not matter when else that is asked.
    pub fn catch_up(&mut self, now_ns: i64) {
        if now_ns < self.next_over_ns {
            return;
        }
        let over = self.open.iter().filter(|(_, open)| now_ns >= open.over_ns);
        let mut over: Vec<(i64, PausePort)> = over.map(|(port, open)| (open.over_ns, *port)).collect();
        over.sort_unstable();
        for (_, port) in over {
            if let Some(open) = self.open.remove(&port) {
                let interval = PauseInterval { end_ns: open.deadline_ns, ended_by: "expiry", ..open.interval };
                self.finished.push(interval);
            }
        }
        self.next_over_ns = self.open.values().map(|open| open.over_ns).min().unwrap_or(i64::MAX);
    }

    /// `now_ns` is the capture's latest time, which may be on another scale than the mark's.
    pub fn on_pause(&mut self, interface: u32, src_mac: Mac, frame: &PauseFrame, mark: Mark, now_ns: i64) {
        self.catch_up(now_ns);
        for (class, quanta) in frame.classes() {
            let port = PausePort { interface, src_mac: src_mac.0, is_pfc: frame.is_pfc, class };
            self.on_class(port, quanta, mark, now_ns);
        }
    }

    fn on_class(&mut self, port: PausePort, quanta: u16, mark: Mark, now_ns: i64) {
        if quanta == 0 {
            if let Some(mut open) = self.open.remove(&port) {
                open.interval.frames.add(mark);
                (open.interval.end_ns, open.interval.ended_by) = (Some(mark.time_ns), "xon");
                self.finished.push(open.interval);
            }
            return;
        }
        let lasts_ns = |bps: u64| pause_ns(quanta, bps).unwrap_or(i64::MAX);
        let deadline_ns = self.link_speed_bps.map(|bps| mark.time_ns.saturating_add(lasts_ns(bps)));
        let over_ns = now_ns.saturating_add(lasts_ns(self.link_speed_bps.unwrap_or(SLOWEST_BPS)));
        self.next_over_ns = self.next_over_ns.min(over_ns);
        if let Some(open) = self.open.get_mut(&port) {
            // A later request replaces the time that is left.
            (open.deadline_ns, open.over_ns) = (deadline_ns, over_ns);
            open.interval.requests += 1;
            open.interval.largest_quanta = open.interval.largest_quanta.max(quanta);
            open.interval.frames.add(mark);
            return;
        }
        if self.open.len() >= MOST_OPEN {
            self.left_out += 1;
            return;
        }
        let sharing_flows = self.sharing(&port, mark.time_ns);
        let interval = PauseInterval {
            port,
            start: mark,
            end_ns: None,
            ended_by: "capture_end",
            requests: 1,
            largest_quanta: quanta,
            frames: Frames::of(mark),
            carried: 0,
            carried_bytes: 0,
            sharing_flows,
        };
        self.open.insert(port, Open { interval, deadline_ns, over_ns });
    }

    /// A frame of traffic, by its priority. Call [`Self::catch_up`] before it.
    pub fn on_traffic(&mut self, interface: u32, src_mac: Mac, class: u8, flow: u64, bytes: u32, time_ns: i64) {
        if self.recent.len() >= MOST_CLASSES && !self.recent.contains_key(&(interface, class)) {
            return;
        }
        let recent = self.recent.entry((interface, class)).or_default();
        let is_new = match recent.flows.iter_mut().find(|(known, _)| *known == flow) {
            Some(known) => std::mem::replace(&mut known.1, time_ns) < time_ns.saturating_sub(SHARING_NS),
            None => {
                if recent.flows.len() >= FLOWS {
                    let oldest = (0..recent.flows.len()).min_by_key(|at| recent.flows[*at].1).unwrap_or(0);
                    recent.flows.swap_remove(oldest);
                }
                recent.flows.push((flow, time_ns));
                true
            }
        };
        if self.open.is_empty() {
            return;
        }
        for (port, open) in &mut self.open {
            let concerns = port.interface == interface && port.class.is_none_or(|of| of == class);
            if concerns && port.src_mac != src_mac.0 {
                open.interval.carried += 1;
                open.interval.carried_bytes += u64::from(bytes);
                open.interval.sharing_flows += u64::from(is_new);
            }
        }
    }

    fn sharing(&self, port: &PausePort, now_ns: i64) -> u64 {
        let of_port = |key: &(u32, u8)| key.0 == port.interface && port.class.is_none_or(|class| class == key.1);
        let classes = self.recent.iter().filter(|(key, _)| of_port(key));
        let flows = classes.flat_map(|(_, recent)| &recent.flows);
        flows.filter(|(_, last)| now_ns.saturating_sub(*last) <= SHARING_NS).count() as u64
    }

    /// Pauses that are over, in the order of their ends.
    pub fn finished(&mut self, now_ns: i64) -> Vec<PauseInterval> {
        self.catch_up(now_ns);
        std::mem::take(&mut self.finished)
    }

    /// The capture is over; `latest_ns` is its latest time as frames tell it.
    pub fn finish(&mut self, now_ns: i64, latest_ns: i64) -> Vec<PauseInterval> {
        let mut rest = self.finished(now_ns);
        for (_, mut open) in std::mem::take(&mut self.open) {
            // It lasts at least until here, if its time is known.
            open.interval.end_ns = open.deadline_ns.map(|deadline| deadline.min(latest_ns));
            rest.push(open.interval);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const HOST: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn pfc(class: u8, quanta: u16) -> PauseFrame {
        let mut frame = PauseFrame { is_pfc: true, class_enable: 1 << class, quanta: [0; 8] };
        frame.quanta[usize::from(class)] = quanta;
        frame
    }

    fn at(frame_no: u64, time_ns: i64) -> Mark {
        Mark { file: 0, frame_no, time_ns }
    }

    #[test]
    fn refreshes_make_one_pause_that_expires_after_the_last() {
        // 0xffff quanta last 335,539 ns at 100 Gb/s.
        let mut pauses = PauseTracker::new(Some(100_000_000_000));
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(1, 0), 0);
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(2, 300_000), 300_000);
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(3, 600_000), 600_000);
        pauses.on_pause(0, MAC, &pfc(3, 100), at(4, 2_000_000), 2_000_000);
        let over = pauses.finish(9_000_000, 9_000_000);
        let told: Vec<_> = over.iter().map(|p| (p.start.frame_no, p.end_ns, p.requests, p.ended_by)).collect();
        assert_eq!(told, [(1, Some(935_539), 3, "expiry"), (4, Some(2_000_512), 1, "expiry")]);
    }

    #[test]
    fn a_refresh_with_fewer_quanta_shortens_a_pause_and_zero_ends_it() {
        let mut pauses = PauseTracker::new(Some(100_000_000_000));
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(1, 0), 0);
        pauses.on_pause(0, MAC, &pfc(3, 10), at(2, 1_000), 1_000);
        assert_eq!(pauses.finished(2_000)[0].end_ns, Some(1_051));
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(3, 5_000), 5_000);
        pauses.on_pause(0, MAC, &pfc(4, 0xffff), at(4, 6_000), 6_000);
        pauses.on_pause(0, MAC, &pfc(3, 0), at(5, 7_000), 7_000);
        let over = pauses.finish(8_000, 8_000);
        let told: Vec<_> = over.iter().map(|p| (p.port.class, p.end_ns, p.ended_by)).collect();
        assert_eq!(told, [(Some(3), Some(7_000), "xon"), (Some(4), Some(8_000), "capture_end")]);
    }

    #[test]
    fn without_a_link_speed_only_xon_tells_an_end() {
        let mut pauses = PauseTracker::new(None);
        pauses.on_pause(0, MAC, &pfc(3, 1_000), at(1, 0), 0);
        pauses.on_pause(0, MAC, &pfc(3, 0), at(2, 400_000), 400_000);
        pauses.on_pause(0, MAC, &pfc(3, 1_000), at(3, 1_000_000), 1_000_000);
        // 1,000 quanta last 512 microseconds at 1 Gb/s: what comes later is another pause.
        pauses.on_pause(0, MAC, &pfc(3, 1_000), at(4, 1_600_000), 1_600_000);
        let over = pauses.finish(1_700_000, 1_700_000);
        let told: Vec<_> = over.iter().map(|p| (p.start.frame_no, p.end_ns, p.ended_by)).collect();
        assert_eq!(told, [(1, Some(400_000), "xon"), (3, None, "expiry"), (4, None, "capture_end")]);
    }

    #[test]
    fn what_the_paused_class_carried_is_counted_and_the_congested_port_left_out() {
        let mut pauses = PauseTracker::new(Some(1_000_000_000));
        pauses.on_traffic(0, HOST, 3, 77, 1_000, 0);
        pauses.on_traffic(0, HOST, 3, 78, 1_000, 1_000);
        pauses.on_pause(0, MAC, &pfc(3, 0xffff), at(1, 2_000), 2_000);
        for (mac, class, flow) in [(HOST, 3, 77), (HOST, 3, 79), (HOST, 0, 80), (MAC, 3, 81)] {
            pauses.on_traffic(0, mac, class, flow, 500, 3_000);
        }
        pauses.on_traffic(1, HOST, 3, 77, 500, 3_000);
        let over = pauses.finish(4_000, 4_000);
        assert_eq!((over[0].carried, over[0].carried_bytes, over[0].sharing_flows), (2, 1_000, 3));
    }

    #[test]
    fn pauses_are_told_in_the_order_of_their_ends_whenever_that_is_asked() {
        let told = |asked_ns: &[i64]| {
            let mut pauses = PauseTracker::new(Some(1_000_000_000));
            // 1,000 quanta last 512 microseconds at 1 Gb/s.
            pauses.on_pause(0, MAC, &pfc(5, 2_000), at(1, 0), 0);
            pauses.on_pause(0, MAC, &pfc(3, 1_000), at(2, 100_000), 100_000);
            pauses.on_pause(0, MAC, &pfc(4, 1_000), at(3, 200_000), 200_000);
            let mut over: Vec<_> = asked_ns.iter().flat_map(|now_ns| pauses.finished(*now_ns)).collect();
            over.extend(pauses.finish(1_100_000, 1_100_000));
            over.iter().map(|p| (p.port.class, p.end_ns)).collect::<Vec<_>>()
        };
        let ends = [(Some(3), Some(612_000)), (Some(4), Some(712_000)), (Some(5), Some(1_024_000))];
        assert_eq!(told(&[]), ends);
        assert_eq!(told(&[611_999, 612_000, 711_999, 712_000]), ends);
    }
}
