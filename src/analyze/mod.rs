//! Per-flow state machines. They are told frames and times, do no I/O, hold no clock, know no threads and no Arrow.

mod connection;
mod duplicates;
mod holes;
mod probe;
pub(crate) mod segment;
mod tcp_wireshark;

pub(crate) use connection::{Connection, SeenSegment};
pub(crate) use duplicates::{Copy, CopyFinder, CopyKind, Sighting};
pub(crate) use probe::{Probe, ProbeTracker};
pub(crate) use tcp_wireshark::{WsFlags, WsRow, WsStream, starts_new_stream};
