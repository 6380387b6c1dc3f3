//! The verdict analysis of one shard's connections, and when each is asked again.

use crate::analyze::segment::Segment;
use crate::analyze::{Evidence, HoldLimits, Judgement, Verdict, VerdictConnection, VerdictSummary};

/// Quiet connections are looked at this often, in capture time.
const EXPIRE_EVERY_NS: i64 = 500_000_000;
/// A connection that nothing was heard of for this long is put to rest.
const QUIET_NS: i64 = 2_000_000_000;

struct Slot {
    connection: VerdictConnection,
    last_ns: i64,
    is_active: bool,
}

/// By flow index of the shard.
#[derive(Default)]
pub(super) struct Verdicts {
    slots: Vec<Option<Box<Slot>>>,
    /// Flows heard of lately, or with rows that wait.
    active: Vec<u32>,
    next_expiry_ns: Option<i64>,
}

impl Verdicts {
    /// `is_whole`: the header can be analysed; the row of one that cannot is judged at once.
    pub fn on_segment(&mut self, flow: u32, segment: &Segment<'_>, is_whole: bool, out: &mut Vec<(u64, Judgement)>) {
        if !is_whole {
            out.push((segment.row, Judgement::plain(Verdict::Unknown, Evidence::default())));
            return;
        }
        let index = flow as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let slot = self.slots[index].get_or_insert_with(|| {
            Box::new(Slot { connection: VerdictConnection::default(), last_ns: 0, is_active: false })
        });
        slot.connection.on_segment(segment, out);
        slot.last_ns = segment.time_ns;
        if !slot.is_active {
            slot.is_active = true;
            self.active.push(flow);
        }
    }

    pub fn on_icmp_too_big(&mut self, flow: u32, time_ns: i64, sender: u8, seq: u32, mtu: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(flow as usize) {
            slot.connection.on_icmp_too_big(time_ns, sender, seq, mtu);
        }
    }

    /// Gives out rows that waited too long, and lets quiet connections give memory back.
    pub fn expire(&mut self, now_ns: i64, row_now: u64, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        if self.next_expiry_ns.is_some_and(|next| now_ns < next) {
            return;
        }
        self.next_expiry_ns = Some(now_ns.saturating_add(EXPIRE_EVERY_NS));
        let slots = &mut self.slots;
        self.active.retain(|flow| {
            let Some(Some(slot)) = slots.get_mut(*flow as usize) else { return false };
            slot.connection.expire(now_ns, row_now, limits, out);
            slot.is_active = slot.connection.is_waiting() || now_ns.saturating_sub(slot.last_ns) < QUIET_NS;
            slot.is_active
        });
    }

    /// The connection is over: another one has taken its ports.
    pub fn finish_one(&mut self, flow: u32, out: &mut Vec<(u64, Judgement)>) {
        if let Some(Some(slot)) = self.slots.get_mut(flow as usize) {
            slot.connection.finish(out);
        }
    }

    pub fn finish(&mut self, out: &mut Vec<(u64, Judgement)>) {
        for slot in self.slots.iter_mut().flatten() {
            slot.connection.finish(out);
        }
    }

    pub fn summary(&self, flow: usize) -> Option<VerdictSummary> {
        Some(self.slots.get(flow)?.as_ref()?.connection.summary())
    }
}
