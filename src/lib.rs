//! Packet captures of AI-cluster networks as Arrow tables.
//!
//! The data's way through the folders: [`capture`] (bytes to records) → [`wire`] (one frame's layers) → [`flow`] (which
//! frames belong together) → `analyze` (what happened on each flow) → [`tables`] (Arrow). [`scan`] drives it.
//!
//! ```
//! let capture = wirelab::open(
//!     [concat!(env!("CARGO_MANIFEST_DIR"), "/sample-captures/ping-delay/ping-delay.pcap")],
//!     &wirelab::Options::default(),
//! )?;
//! let probes = capture.table(wirelab::TableId::Probes)?;
//! assert_eq!(probes.num_rows(), 12);
//! # Ok::<(), wirelab::Error>(())
//! ```

#![deny(unsafe_code)]

mod analyze;
pub mod capture;
#[cfg(feature = "convert")]
pub mod convert;
mod error;
pub mod flow;
#[cfg(feature = "grade")]
pub mod grade;
pub mod join;
#[cfg(feature = "logs")]
pub mod logs;
mod observe;
mod open;
mod options;
pub mod overview;
pub mod scan;
mod spill;
#[cfg(feature = "sql")]
pub mod sql;
pub mod tables;
pub mod wire;
pub mod words;
#[cfg(feature = "text")]
pub mod write;

pub use analyze::RoceEndpoint;
pub use capture::Input;
#[cfg(feature = "convert")]
pub use convert::{Conversion, ConvertOptions, convert};
pub use error::Error;
pub use join::{MatchOptions, MatchSummary, Matches, match_captures};
pub use observe::{Observer, Unobserved};
pub use open::{Capture, TableData, open};
pub use options::{Checksums, Limits, Options};
pub use overview::{Overview, overview};
pub use scan::{Filter, Scan, ScanRequest, Summary, scan};
pub use tables::{TABLES, TableId};
pub use words::Lang;
