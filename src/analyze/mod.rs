//! Per-flow state machines. They are told frames and times, do no I/O, hold no clock, know no threads and no Arrow.

mod connection;
mod dns;
mod duplicates;
mod event_list;
pub(crate) mod frozen;
mod holes;
mod links;
mod moment;
mod pause;
mod probe;
mod recent;
mod roce;
pub(crate) mod segment;
mod tcp_story;
mod tcp_verdict;
mod tcp_wireshark;

pub(crate) use connection::{Connection, SeenSegment, Side};
pub(crate) use dns::{DnsPlace, DnsTracker, Transaction as DnsTransaction};
pub(crate) use duplicates::{Copy, CopyFinder, CopyKind, Sighting};
pub(crate) use links::{Links, LldpPort, PfcAgreement, agreement};
pub(crate) use moment::{HoldLimits, Moment};
pub(crate) use pause::{PauseInterval, PauseTracker};
pub(crate) use probe::{Probe, ProbeTracker};
pub use roce::RoceEndpoint;
pub(crate) use roce::{
    Channel, Fabric, FinishedMessage, LeftOut, NO_CHANNEL, NO_MESSAGE, RoceCause, RoceEvent, RoceEventKind,
    RoceEvidence, RoceJudgement, RoceSeen, Service, Tap,
};
pub(crate) use tcp_story::{Event as StoryEvent, EventKind, Frames, Mark, Quantiles, SideStory, Story, StorySummary};
pub(crate) use tcp_verdict::{
    Cause, Connection as VerdictConnection, DirectionSummary, Evidence, Judgement, Outcome, Summary as VerdictSummary,
    Vantage, Verdict,
};
pub(crate) use tcp_wireshark::{WsFlags, WsRow, WsStream, starts_new_stream};
