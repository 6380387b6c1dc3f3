//! Bytes to records: file formats, compression, time, several files as one capture.
//!
//! Nothing here knows what a packet holds. [`Reader`] hands out [`Window`]s: a stretch of bytes and the records in it, in the
//! order of the capture.

mod buffer;
mod decompress;
mod fileset;
mod input;
mod lane;
mod pcap;
mod pcapng;
mod record;
mod single;
mod sniff;
mod source;
#[cfg(test)]
mod testing;
mod timestamp;
mod walk;
mod write;

pub use input::Input;
pub use record::{Finding, FindingSubject, Interface, LinkType, Record, Severity, Window};
pub use sniff::LooksLike;
pub use write::WriteReport;

/// Not part of the interface: what reads windows, for measuring it alone.
#[doc(hidden)]
pub use fileset::Reader;
#[cfg(feature = "convert")]
pub(crate) use lane::ring_of;
pub(crate) use record::{CaptureFacts, FileFacts};
#[cfg(feature = "convert")]
pub(crate) use sniff::is_capture;
pub(crate) use walk::WINDOW_RECORDS;
pub(crate) use write::{Selection, write_frames};
