//! The verdict analysis of one shard's connections and the stories that rest on it, and when each is asked again.

use crate::analyze::segment::Segment;
use crate::analyze::{Evidence, HoldLimits, Judgement, Mark, Story, Verdict, VerdictConnection, VerdictSummary};

/// Quiet connections are looked at this often, in capture time.
const EXPIRE_EVERY_NS: i64 = 500_000_000;
/// A connection that nothing was heard of for this long is put to rest.
const QUIET_NS: i64 = 2_000_000_000;

struct Slot {
    connection: VerdictConnection,
    story: Option<Box<Story>>,
    last_ns: i64,
    is_active: bool,
}

impl Slot {
    /// Lets the connection judge, and tells its story what it judged.
    fn judge(
        &mut self,
        out: &mut Vec<(u64, Judgement)>,
        work: impl FnOnce(&mut VerdictConnection, &mut Vec<(u64, Judgement)>),
    ) {
        let before = out.len();
        work(&mut self.connection, out);
        if let Some(story) = &mut self.story {
            out.iter().skip(before).for_each(|(row, judgement)| story.on_judgement(*row, judgement));
        }
    }

    fn finish_story(&mut self) {
        if let Some(story) = &mut self.story {
            story.finish(&self.connection.summary());
        }
    }
}

/// Where the frame of a segment is, for its story.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoryPlace {
    pub file: u16,
    /// The same packet was captured before, at the same place.
    pub is_copy: bool,
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
    /// With `story` the connection's story is followed as well.
    pub fn on_segment(
        &mut self,
        flow: u32,
        segment: &Segment<'_>,
        story: Option<StoryPlace>,
        out: &mut Vec<(u64, Judgement)>,
    ) {
        let index = flow as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let slot = self.slots[index].get_or_insert_with(|| {
            Box::new(Slot { connection: VerdictConnection::default(), story: None, last_ns: 0, is_active: false })
        });
        if let Some(place) = story.filter(|place| !place.is_copy) {
            slot.story.get_or_insert_default().on_segment(segment, place.file);
        }
        slot.judge(out, |connection, out| connection.on_segment(segment, out));
        slot.last_ns = segment.time_ns;
        if !slot.is_active {
            slot.is_active = true;
            self.active.push(flow);
        }
    }

    /// A segment whose header cannot be analysed is judged at once.
    pub fn on_broken(&mut self, row: u64, out: &mut Vec<(u64, Judgement)>) {
        out.push((row, Judgement::plain(Verdict::Unknown, Evidence::default())));
    }

    pub fn on_icmp_too_big(&mut self, flow: u32, time_ns: i64, sender: u8, seq: u32, mtu: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(flow as usize) {
            slot.connection.on_icmp_too_big(time_ns, sender, seq, mtu);
        }
    }

    /// An ICMP "unreachable" about a segment that `sender` sent.
    pub fn on_icmp_unreachable(&mut self, flow: u32, sender: u8, now: Mark) {
        if let Some(Some(slot)) = self.slots.get_mut(flow as usize)
            && let Some(story) = &mut slot.story
        {
            story.on_unreachable(sender, now);
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
            slot.judge(out, |connection, out| connection.expire(now_ns, row_now, limits, out));
            slot.is_active = slot.connection.is_waiting() || now_ns.saturating_sub(slot.last_ns) < QUIET_NS;
            if let Some(story) = slot.story.as_mut().filter(|_| !slot.is_active) {
                story.rest();
            }
            slot.is_active
        });
    }

    /// The connection is over: another one has taken its ports.
    pub fn finish_one(&mut self, flow: u32, now_ns: i64, out: &mut Vec<(u64, Judgement)>) {
        if let Some(Some(slot)) = self.slots.get_mut(flow as usize) {
            slot.judge(out, |connection, out| connection.finish(now_ns, out));
            slot.finish_story();
        }
    }

    /// Judges everything that waits; the connections may go on.
    pub fn finish(&mut self, now_ns: i64, out: &mut Vec<(u64, Judgement)>) {
        for slot in self.slots.iter_mut().flatten() {
            slot.judge(out, |connection, out| connection.finish(now_ns, out));
        }
    }

    /// The capture is over.
    pub fn finish_stories(&mut self) {
        self.slots.iter_mut().flatten().for_each(|slot| slot.finish_story());
    }

    /// The story of a flow's connection, and what its verdicts come to.
    pub fn story(&self, flow: usize) -> Option<(&Story, VerdictSummary)> {
        let slot = self.slots.get(flow)?.as_ref()?;
        Some((slot.story.as_deref()?, slot.connection.summary()))
    }

    pub fn summary(&self, flow: usize) -> Option<VerdictSummary> {
        Some(self.slots.get(flow)?.as_ref()?.connection.summary())
    }
}
