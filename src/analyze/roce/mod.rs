//! What happened on each RoCE queue pair: who answers whom, what was sent again and why, what became of every message.
//!
//! A [`Fabric`] is told every packet between some addresses, in order. The requester of a queue pair (`requester`) and its
//! responder (`responder`) are modelled apart: what was sent again is known where the packets pass, how they arrived only
//! where they arrive, or where acknowledgements prove it. Where that is, `path` tells by what was lost before the tap and
//! behind it. No I/O, no clock; memory is bounded by queue pairs, waiting requests, open messages and events.

mod channel;
mod cm;
mod counts;
mod endpoints;
mod event;
mod fabric;
mod intervals;
mod message;
mod path;
mod psn;
mod requester;
mod responder;
mod story;
mod taker;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use channel::Channel;
pub(crate) use event::{RoceEvent, RoceEventKind};
pub(crate) use fabric::{Fabric, Finished as FinishedMessage, LeftOut, NO_CHANNEL, NO_MESSAGE};
pub(crate) use path::Tap;
pub(crate) use types::{Cause as RoceCause, Evidence as RoceEvidence, RoceJudgement, RoceSeen, Service};

pub use types::RoceEndpoint;
