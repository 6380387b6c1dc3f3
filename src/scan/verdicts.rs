//! The verdict analysis of one shard's connections and the stories that rest on it, and when each is asked again.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attic::AtticFile;
use super::route::SHARDS;
use super::slots::Slots;
use crate::analyze::segment::{FIN, RST, Segment};
use crate::analyze::{
    Evidence, HoldLimits, Judgement, Mark, Moment, Story, Verdict, VerdictConnection, VerdictSummary,
};

/// Quiet connections are looked at this often, in capture time, and on fast links after so many frames of the capture, at
/// least or for each of them: all rows wait behind the last ones of a connection that has ended.
const EXPIRE_EVERY_NS: i64 = 500_000_000;
const EXPIRE_EVERY_FRAMES: u64 = 16_384;
const EXPIRE_FRAMES_EACH: u64 = 1_024;
/// A connection that nothing was heard of for this long is put to rest.
const QUIET_NS: i64 = 2_000_000_000;

/// After its end, a connection that nothing was heard of for this long is put to rest: short ones may come by the thousand.
const CLOSED_NS: i64 = 200_000_000;
/// So many quiet connections of a shard may stay at work: packing and unpacking takes longer than so little memory is worth.
const IDLE_AT_WORK: usize = 128;

/// What the states of a shard's connections may take after its segments were followed: with what else a run needs, all shards stay
/// under 1 GiB however many connections are open at a time. With more of them states are packed and unpacked all the time.
const STATE_BYTES: usize = (640 << 20) / SHARDS;
/// Measured: of a connection at work, and of a flow at rest with all that is kept of it.
const LIVE_BYTES: usize = 8_200;
const REST_BYTES: usize = 580;
/// At least so many of a shard stay at work.
const FEWEST_AT_WORK: usize = 128;

/// Bits of [`Live::ends`]: FIN of either end, RST of any.
const BOTH_FINS: u8 = 3;
const RESET: u8 = 4;

/// The state of a connection.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Live {
    // What is told at the end comes first, so that it can be unpacked alone: see [`Told`].
    story: Option<Box<Story>>,
    /// Of a state at rest.
    summary: Option<Box<VerdictSummary>>,
    connection: VerdictConnection,
    /// Of the [`Moment`] of the last segment.
    last_ns: i64,
    /// What has ended it so far.
    ends: u8,
    is_active: bool,
    /// It is among the idle ones.
    #[serde(skip)]
    is_listed: bool,
}

/// The first fields of [`Live`].
#[derive(Deserialize)]
struct Told {
    story: Option<Box<Story>>,
    summary: Option<Box<VerdictSummary>>,
}

impl Live {
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

    /// Does what may have been done since the last segment, or not yet: see [`VerdictConnection::settle`].
    fn catch_up(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        if self.connection.is_waiting() {
            self.judge(out, |connection, out| connection.settle(now, limits, out));
        }
    }

    /// After such a silence the connection is put to rest.
    fn patience_ns(&self) -> i64 {
        if is_over(self.ends) { CLOSED_NS } else { QUIET_NS }
    }

    /// Makes it ready to be put to rest; says whether rows of it wait. Where none does, what is told of it is told without
    /// unpacking all of it.
    fn lie_down(&mut self) -> bool {
        if let Some(story) = &mut self.story {
            story.rest();
        }
        let is_waiting = self.connection.is_waiting();
        if !is_waiting {
            self.is_active = false;
            self.summary = Some(Box::new(self.connection.summary()));
        }
        is_waiting
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

/// A flow heard of lately, or with rows that wait.
struct Active {
    flow: u32,
    /// Where rows of it wait although it is at rest: when it is to be looked at.
    due: Option<Moment>,
}

/// By flow index of the shard.
#[derive(Default)]
pub(super) struct Verdicts {
    slots: Slots<Live>,
    active: Vec<Active>,
    /// Flows that have ended, and when.
    closed: VecDeque<(u32, i64)>,
    /// Quiet flows at work, in the order in which they became so; some may have been heard of since.
    idle: VecDeque<u32>,
    #[cfg(test)]
    most_idle: Option<usize>,
    /// Flows that were put to rest since they were last asked for.
    pub rested: Vec<u32>,
    /// When all are looked at next.
    next_expiry: Option<Moment>,
}

impl Verdicts {
    /// With `story` the connection's story is followed as well.
    pub fn on_segment(
        &mut self,
        flow: u32,
        segment: &Segment<'_>,
        story: Option<StoryPlace>,
        limits: &HoldLimits,
        out: &mut Vec<(u64, Judgement)>,
    ) {
        let live = self.slots.live(flow as usize);
        live.summary = None;
        live.catch_up(segment.at, limits, out);
        if let Some(place) = story.filter(|place| !place.is_copy) {
            live.story.get_or_insert_default().on_segment(segment, place.file);
        }
        live.judge(out, |connection, out| connection.on_segment(segment, limits, out));
        live.last_ns = segment.at.ns;
        if !live.is_active {
            live.is_active = true;
            self.active.push(Active { flow, due: None });
        }
        if segment.flags & (FIN | RST) != 0 {
            let was_over = is_over(live.ends);
            live.ends |= if segment.has(RST) { RESET } else { 1 << (segment.dir & 1) };
            if is_over(live.ends) && !was_over {
                self.closed.push_back((flow, segment.at.ns));
            }
        }
    }

    /// See [`Slots::use_file`].
    pub fn use_file(&mut self, file: &Arc<AtticFile>) {
        self.slots.use_file(file);
    }

    /// Asks for the memory that the next segment of a connection will need.
    pub fn touch(&self, flow: u32) -> u32 {
        self.slots
            .seen_at_work(flow as usize)
            .map_or(0, |live| live.connection.touch() ^ live.story.as_ref().map_or(0, |story| story.touch()))
    }

    /// The same for its lists; call it after [`Self::touch`].
    pub fn touch_lists(&self, flow: u32) -> u32 {
        self.slots.seen_at_work(flow as usize).map_or(0, |live| {
            live.connection.touch_lists() ^ live.story.as_ref().map_or(0, |story| story.touch_lists())
        })
    }

    /// Lets so many quiet connections stay at work, and few of the others in memory.
    #[cfg(test)]
    pub fn keep_idle(&mut self, most: usize) {
        self.most_idle = Some(most);
        self.slots.keep_in_memory(most.min(4));
    }

    /// A segment whose header cannot be analysed is judged at once.
    pub fn on_broken(&mut self, row: u64, out: &mut Vec<(u64, Judgement)>) {
        out.push((row, Judgement::plain(Verdict::Unknown, Evidence::default())));
    }

    pub fn on_icmp_too_big(&mut self, flow: u32, time_ns: i64, sender: u8, seq: u32, mtu: u32) {
        if let Some(live) = self.slots.known(flow as usize) {
            live.connection.on_icmp_too_big(time_ns, sender, seq, mtu);
            self.list_if_quiet(flow);
        }
    }

    /// An ICMP "unreachable" about a segment that `sender` sent.
    pub fn on_icmp_unreachable(&mut self, flow: u32, sender: u8, now: Mark) {
        if let Some(story) = self.slots.known(flow as usize).and_then(|live| live.story.as_mut()) {
            story.on_unreachable(sender, now);
            self.list_if_quiet(flow);
        }
    }

    /// One that was brought back to work goes to rest again.
    fn list_if_quiet(&mut self, flow: u32) {
        if let Some(live) = self.slots.at_work(flow as usize)
            && !live.is_active
            && !std::mem::replace(&mut live.is_listed, true)
        {
            self.idle.push_back(flow);
        }
    }

    /// The state of a connection that is at work, or of which rows wait.
    fn not_done(&mut self, flow: u32) -> Option<&mut Live> {
        let told = self.slots.start_at_rest::<Told>(flow as usize);
        let is_waiting = told.is_some_and(|told| told.summary.is_none());
        if is_waiting { Some(self.slots.live(flow as usize)) } else { self.slots.at_work(flow as usize) }
    }

    /// Something else than a segment is about to happen to a connection.
    pub fn catch_up(&mut self, flow: u32, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        if let Some(live) = self.not_done(flow) {
            live.catch_up(now, limits, out);
        }
    }

    /// Gives out rows that waited too long, and puts connections to rest that are quiet. Nothing depends on when or how often
    /// this is done, but for memory.
    pub fn expire(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        while let Some((flow, closed_ns)) = self.closed.front().copied() {
            if now.ns.saturating_sub(closed_ns) < CLOSED_NS {
                break;
            }
            self.closed.pop_front();
            look_at(&mut self.slots, &mut self.idle, flow, now, limits, out);
        }
        if self.next_expiry.is_none_or(|next| now.ns >= next.ns || now.frame >= next.frame) {
            self.expire_all(now, limits, out);
        } else {
            self.put_to_rest();
        }
    }

    /// The same at once, whenever it was done last.
    pub fn expire_all(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        let Self { slots, idle, active, .. } = self;
        active.retain_mut(|Active { flow, due }| {
            if slots.at_work(*flow as usize).is_some() {
                return look_at(slots, idle, *flow, now, limits, out);
            }
            let Some(due) = due else { return false };
            if now.ns < due.ns && now.frame < due.frame {
                return true;
            }
            let live = slots.live(*flow as usize);
            live.catch_up(now, limits, out);
            let is_waiting = live.lie_down();
            *due = live.connection.due(limits);
            slots.rest(*flow as usize);
            is_waiting
        });
        let frames = EXPIRE_EVERY_FRAMES.max(active.len() as u64 * EXPIRE_FRAMES_EACH);
        self.next_expiry =
            Some(Moment { ns: now.ns.saturating_add(EXPIRE_EVERY_NS), frame: now.frame.saturating_add(frames) });
        self.put_to_rest();
    }

    /// Puts connections to rest that have been quiet longest, until few enough are at work.
    fn put_to_rest(&mut self) {
        let most = IDLE_AT_WORK;
        #[cfg(test)]
        let most = self.most_idle.unwrap_or(most);
        while self.slots.at_work_count() > most
            && let Some(flow) = self.idle.pop_front()
        {
            let Some(live) = self.slots.at_work(flow as usize) else { continue };
            live.is_listed = false;
            if live.is_active {
                continue;
            }
            live.lie_down();
            self.slots.rest(flow as usize);
            self.rested.push(flow);
        }
    }

    /// Puts connections to rest until few enough are at work: those that were not heard of for longest, and not only quiet ones.
    /// `flows`: how many the shard has.
    pub fn make_room(&mut self, flows: usize, limits: &HoldLimits) {
        let most = (STATE_BYTES.saturating_sub(flows * REST_BYTES) / LIVE_BYTES).max(FEWEST_AT_WORK);
        #[cfg(test)]
        let most = self.most_idle.unwrap_or(most);
        let Self { slots, active, rested, .. } = self;
        let Some(excess) = slots.at_work_count().checked_sub(most).filter(|excess| *excess > 0) else { return };
        // A fourth more, so that it is not done all the time.
        let at_work = active.iter().filter_map(|active| Some(slots.seen_at_work(active.flow as usize)?.last_ns));
        let mut heard_ns: Vec<_> = at_work.collect();
        let Some(last) = (excess + most / 4).min(heard_ns.len()).checked_sub(1) else { return };
        let latest_ns = *heard_ns.select_nth_unstable(last).1;
        active.retain_mut(|Active { flow, due }| {
            let Some(live) = slots.at_work(*flow as usize).filter(|live| live.last_ns <= latest_ns) else {
                return true;
            };
            let is_waiting = live.lie_down();
            *due = is_waiting.then(|| live.connection.due(limits));
            slots.rest(*flow as usize);
            rested.push(*flow);
            is_waiting
        });
    }

    /// The connection is over: another one has taken its ports.
    pub fn finish_one(&mut self, flow: u32, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        // The story of one at rest of which no row waits ends when it is told.
        if let Some(live) = self.not_done(flow) {
            live.judge(out, |connection, out| connection.finish(now, limits, out));
            live.finish_story();
        }
    }

    /// Judges everything that waits; the connections may go on.
    pub fn finish(&mut self, now: Moment, limits: &HoldLimits, out: &mut Vec<(u64, Judgement)>) {
        for live in self.slots.each_at_work() {
            live.judge(out, |connection, out| connection.finish(now, limits, out));
        }
        let Self { slots, active, .. } = self;
        active.retain(|Active { flow, due }| {
            if slots.at_work(*flow as usize).is_some() {
                return true;
            }
            if due.is_some() {
                let live = slots.live(*flow as usize);
                live.judge(out, |connection, out| connection.finish(now, limits, out));
                live.lie_down();
                slots.rest(*flow as usize);
            }
            false
        });
    }

    /// The capture is over.
    pub fn finish_stories(&mut self) {
        self.slots.each_at_work().for_each(Live::finish_story);
    }

    /// Tells the story of a flow's connection, and what its verdicts come to; both are complete when the capture is over.
    pub fn tell<T>(&self, flow: usize, tell: impl FnOnce(Option<&Story>, &VerdictSummary) -> T) -> Option<T> {
        if let Some(Told { mut story, summary }) = self.slots.start_at_rest(flow) {
            let summary = summary.unwrap_or_default();
            if let Some(story) = &mut story {
                story.finish(&summary);
            }
            return Some(tell(story.as_deref(), &summary));
        }
        let live = self.slots.seen_at_work(flow)?;
        Some(tell(live.story.as_deref(), &live.connection.summary()))
    }
}

/// Gives out what waited too long of a flow's connection, and lists it where it is quiet; says whether it stays active.
fn look_at(
    slots: &mut Slots<Live>,
    idle: &mut VecDeque<u32>,
    flow: u32,
    now: Moment,
    limits: &HoldLimits,
    out: &mut Vec<(u64, Judgement)>,
) -> bool {
    let Some(live) = slots.at_work(flow as usize) else { return false };
    live.catch_up(now, limits, out);
    live.connection.shrink();
    live.is_active = live.connection.is_waiting() || now.ns.saturating_sub(live.last_ns) < live.patience_ns();
    if !live.is_active && !live.is_listed {
        live.is_listed = true;
        idle.push_back(flow);
    }
    live.is_active
}

fn is_over(ends: u8) -> bool {
    ends & RESET != 0 || ends & BOTH_FINS == BOTH_FINS
}
