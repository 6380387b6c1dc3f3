//! Explicit congestion notification (RFC 3168): who was told to slow down, and did.

use serde::{Deserialize, Serialize};

use super::event::{Event, EventKind, Events, Frames, Mark};
use super::seq::before;
use crate::analyze::frozen::StateWord;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    start: Mark,
    last_ns: i64,
    #[serde(with = "crate::analyze::frozen::word")]
    cause: StateWord,
    echoes: u64,
    /// End of everything sent when the first echo came.
    window_end: u32,
    /// The sender's CWR: its end of everything sent then, and the time.
    cwr: Option<(u32, i64)>,
    frames: Frames,
}

/// The marks on one sender's data and the echoes that it got.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EcnWatch {
    mark: Option<Mark>,
    /// A mark that came while echoes of earlier ones did, and where its segment ends: what they answer may be over before the
    /// echo of this one comes.
    late: Option<(u32, Mark)>,
    open: Option<Box<Open>>,
    pub cwr_count: u64,
}

impl EcnWatch {
    /// A segment of the sender, up to `end`, passed with the CE mark. Call it before [`Self::on_cwr`].
    pub fn on_mark(&mut self, end: u32, now: Mark) {
        let Some(open) = &self.open else {
            self.mark.get_or_insert(now);
            return;
        };
        // The sender's CWR answers what was marked before it; what is marked from there on asks anew.
        if open.cwr.is_none() {
            self.late = Some((end, now));
        } else {
            self.late.get_or_insert((end, now));
        }
    }

    /// The sender says that it has slowed down.
    pub fn on_cwr(&mut self, snd_max: u32, now: Mark) {
        self.cwr_count += 1;
        if let Some(open) = self.open.as_mut().filter(|open| open.cwr.is_none()) {
            open.cwr = Some((snd_max, now.time_ns));
            open.frames.add(now);
            self.late = self.late.filter(|(_, mark)| *mark == now);
        }
    }

    /// An acknowledgement of the sender's data, `has_echo` if its ECE bit is set.
    pub fn on_ack(&mut self, ack: u32, has_echo: bool, snd_max: u32, now: Mark, dir: u8, events: &mut Events) {
        if let Some(open) = &self.open {
            // What was sent after the CWR is acknowledged: the next echo asks anew.
            let is_over = match open.cwr {
                Some((end, _)) => !before(ack, end),
                None => !has_echo && !before(ack, open.window_end),
            };
            if is_over {
                let has_cwr = open.cwr.is_some();
                let late = self.late.filter(|(end, _)| has_cwr || before(ack, *end));
                self.finish("ece_stopped", dir, events);
                self.mark = late.map(|(_, mark)| mark);
            }
        }
        if !has_echo {
            return;
        }
        let mark = &mut self.mark;
        let open = self.open.get_or_insert_with(|| {
            let (start, cause) = mark.take().map_or((now, "ece"), |mark| (mark, "ce"));
            let frames = Frames::of(start);
            Box::new(Open { start, last_ns: now.time_ns, cause, echoes: 0, window_end: snd_max, cwr: None, frames })
        });
        open.echoes += 1;
        open.last_ns = now.time_ns;
        open.frames.add(now);
    }

    /// Ends what is open; `reason` where no CWR was seen.
    pub fn finish(&mut self, reason: &'static str, dir: u8, events: &mut Events) {
        let Some(open) = self.open.take() else { return };
        self.late = None;
        let (end_ns, reason) = open.cwr.map_or((open.last_ns, reason), |(_, cwr_ns)| (cwr_ns, "cwr"));
        events.push(Event {
            end_ns,
            count: open.echoes,
            cause: Some(open.cause),
            end_reason: Some(reason),
            frames: open.frames,
            ..Event::at(EventKind::Ecn, dir, open.start)
        });
    }
}
