//! What is told of a queue pair: events with a start, an end and the frames that show them.

use crate::analyze::event_list::{EventList, ListedEvent};
use crate::analyze::{Frames, Mark};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoceEventKind {
    /// REQ, REP and RTU of the connection manager.
    Connect,
    Reject,
    /// DREQ and DREP.
    Disconnect,
    /// The requester went back and sent again.
    GoBack,
    /// The responder was not ready to receive.
    Rnr,
    /// A NAK that ends the queue pair.
    Refused,
    /// Requests that nothing answered.
    Unanswered,
    /// Packets marked by a congested switch.
    Congestion,
    /// Congestion notifications to the sender.
    Notification,
    /// Acknowledged packets that the capture does not hold.
    CaptureLoss,
    /// More events than are listed.
    NotListed,
}

impl RoceEventKind {
    /// The name used in tables and in the keys of words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reject => "reject",
            Self::Disconnect => "disconnect",
            Self::GoBack => "go_back_n",
            Self::Rnr => "rnr",
            Self::Refused => "nak",
            Self::Unanswered => "unanswered",
            Self::Congestion => "congestion",
            Self::Notification => "cnp",
            Self::CaptureLoss => "capture_loss",
            Self::NotListed => "not_listed",
        }
    }
}

/// Something that happened on a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct RoceEvent {
    pub kind: RoceEventKind,
    pub start: Mark,
    pub end_ns: i64,
    pub psn: Option<u32>,
    /// How many; of what depends on the kind.
    pub count: u64,
    pub bytes: Option<u64>,
    /// How often the requester went back, or was refused.
    pub tries: Option<u64>,
    /// How long the responder asked to wait.
    pub wait_ns: Option<i64>,
    /// The queue pairs of both ends, where they are not those that the messages themselves went between.
    pub ends: Option<(u32, u32)>,
    pub cause: Option<&'static str>,
    /// The sequence NAK that had asked in vain for what a timeout sends again.
    pub unheeded_nak: Option<Mark>,
    /// The acknowledgement of all of it that had passed the tap before the timeout.
    pub unheeded_ack: Option<Mark>,
    pub end_reason: Option<&'static str>,
    pub frames: Frames,
}

impl RoceEvent {
    /// An event of one frame, to be filled in.
    pub fn at(kind: RoceEventKind, start: Mark) -> Self {
        Self {
            kind,
            start,
            end_ns: start.time_ns,
            psn: None,
            count: 1,
            bytes: None,
            tries: None,
            wait_ns: None,
            ends: None,
            cause: None,
            unheeded_nak: None,
            unheeded_ack: None,
            end_reason: None,
            frames: Frames::of(start),
        }
    }
}

impl ListedEvent for RoceEvent {
    fn as_rest(&self) -> Self {
        Self { end_ns: self.end_ns, ..Self::at(RoceEventKind::NotListed, self.start) }
    }

    fn add_to_rest(&mut self, other: &Self) {
        self.count += 1;
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}

/// The events of one queue pair so far.
pub(super) type RoceEvents = EventList<RoceEvent>;
