//! What is told of a connection: events with a start, an end and the frames that show them.

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::analyze::event_list::{EventList, ListedEvent};
use crate::analyze::frozen::StateWord;

/// Frames that an event lists; more are only counted.
pub const LISTED_FRAMES: usize = 20;

/// A frame and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// File of the capture, from 0.
    pub file: u16,
    /// Frame number in its file, from 1.
    pub frame_no: u64,
    /// Capture time, nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// SYN, SYN/ACK and ACK.
    Handshake,
    /// A SYN answered by RST.
    Refused,
    /// A SYN that nothing answered.
    NoAnswer,
    /// A SYN/ACK without the client's ACK.
    HalfOpen,
    /// SYN or SYN/ACK sent again.
    SynRetry,
    /// Data sent again on word from the receiver, or by a probe.
    Recovery,
    /// Data sent again because the timer ran out, with the slow start that follows.
    Timeout,
    /// A receiver closed its window.
    ZeroWindow,
    /// The receiver's window, not the network, held the sender back.
    WindowLimited,
    /// The sender had nothing to send.
    Idle,
    /// Bytes in flight grew by half or more each round trip.
    SlowStart,
    /// Bytes in flight grew slowly.
    CongestionAvoidance,
    /// The receiver reported congestion marks (RFC 3168).
    Ecn,
    /// RST.
    Reset,
    /// More events than are listed.
    NotListed,
}

impl EventKind {
    /// The name used in tables and in the keys of words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Refused => "refused",
            Self::NoAnswer => "no_answer",
            Self::HalfOpen => "half_open",
            Self::SynRetry => "syn_retry",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::ZeroWindow => "zero_window",
            Self::WindowLimited => "window_limited",
            Self::Idle => "idle",
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Ecn => "ecn",
            Self::Reset => "reset",
            Self::NotListed => "not_listed",
        }
    }
}

/// So many frames lie beside what they belong to: as many as a handshake has. Most events have no more.
const FRAMES_INLINE: usize = 3;

/// The first frames of something.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Frames {
    file: u16,
    list: SmallVec<[u64; FRAMES_INLINE]>,
}

impl Frames {
    pub fn of(mark: Mark) -> Self {
        Self { file: mark.file, list: smallvec![mark.frame_no] }
    }

    /// Takes in one more; frames of another file than the first one's are left out, as their numbers would mislead.
    pub fn add(&mut self, mark: Mark) {
        if self.list.is_empty() {
            self.file = mark.file;
        }
        let is_new = self.list.last() != Some(&mark.frame_no);
        if self.list.len() < LISTED_FRAMES && self.file == mark.file && is_new {
            self.list.push(mark.frame_no);
        }
    }

    pub fn list(&self) -> &[u64] {
        &self.list
    }
}

/// Something that happened on a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    pub kind: EventKind,
    /// Whom it concerns: 0 or 1, as in `Segment::dir`.
    pub dir: u8,
    pub start: Mark,
    /// Capture time of its end.
    pub end_ns: i64,
    /// Bytes that it concerns; what they are depends on the kind.
    pub bytes: Option<u64>,
    /// How many; of what depends on the kind.
    pub count: u64,
    #[serde(with = "crate::analyze::frozen::maybe_word")]
    pub cause: Option<StateWord>,
    #[serde(with = "crate::analyze::frozen::maybe_word")]
    pub end_reason: Option<StateWord>,
    pub frames: Frames,
}

impl Event {
    /// An event of one frame, to be filled in.
    pub fn at(kind: EventKind, dir: u8, start: Mark) -> Self {
        Self {
            kind,
            dir,
            start,
            end_ns: start.time_ns,
            bytes: None,
            count: 1,
            cause: None,
            end_reason: None,
            frames: Frames::of(start),
        }
    }
}

impl ListedEvent for Event {
    fn as_rest(&self) -> Self {
        Self { end_ns: self.end_ns, ..Self::at(EventKind::NotListed, self.dir, self.start) }
    }

    fn add_to_rest(&mut self, other: &Self) {
        self.count += 1;
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}

/// The events of one connection so far.
pub type Events = EventList<Event>;
