//! Runs a capture through all stages: windows of records, decoded in parallel, routed to shards, analysed in order, built
//! into batches in frame order. The rows are the same for any number of threads.

mod ahead;
mod attic;
mod clocks;
mod columns;
mod core;
mod decoding;
mod dns;
mod engine;
mod filter;
mod finish;
mod following;
mod gate;
mod kept;
mod lldp;
mod lldp_findings;
mod packet_columns;
mod packet_id;
mod pause;
mod points;
mod quality;
mod quoted;
mod roce;
mod roce_findings;
mod roce_intervals;
mod roce_story;
mod route;
mod rows;
mod shard;
mod sink;
mod slots;
mod story;
mod streams;
mod tally;
mod tcp;
mod tcp_columns;
mod turns;
mod verdicts;

pub use engine::{MultiScan, Scan, ScanRequest};
pub use filter::Filter;
pub use tally::Summary;

pub(crate) use engine::Engine;
#[cfg(feature = "convert")]
pub(crate) use engine::pool;

/// Streams one table of a capture in bounded memory.
pub fn scan<I>(inputs: I, options: &crate::Options, request: ScanRequest) -> Result<Scan, crate::Error>
where
    I: IntoIterator,
    I::Item: Into<crate::Input>,
{
    Scan::new(inputs.into_iter().map(Into::into).collect(), options, request)
}
