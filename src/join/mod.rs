//! Joins two captures of the same traffic, taken at two points of its path: which packets were lost, duplicated, delayed or
//! reordered between them.
//!
//! The steps, each in its file: both captures are read into small entries (`read`); packets that were seen exactly once at
//! each point are linked (`pair`); from these follow the direction of each flow and the offset of the two clocks
//! (`direction`), which help to link packets of which there are several copies, packets damaged on the way, and at last TCP
//! bytes that left and arrived in segments of different size (`ranges`); what is still open is judged (`judge`).
//!
//! Held in memory: 64 bytes per packet of either capture and about 150 per flow, at most [`MatchOptions::packets`] packets of
//! each; while the two are joined, 16 more per packet. The rows are built batch by batch.
//!
//! ```
//! let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-captures/ping-delay/ping-delay.pcap");
//! let options = wirelab::MatchOptions::default();
//! let matches = wirelab::match_captures([sample], [sample], &options, &mut wirelab::Unobserved)?;
//! // One capture against itself: everything is found, and nothing tells which of the two comes first.
//! assert_eq!(matches.summary().unknown.lost_count, 0);
//! for batch in matches.batches(false) {
//!     assert_eq!(batch?.schema(), matches.schema());
//! }
//! # Ok::<(), wirelab::Error>(())
//! ```

mod direction;
mod judge;
mod pair;
mod ranges;
mod read;
mod rows;
mod summary;
#[cfg(test)]
mod tests;

use arrow_schema::SchemaRef;

pub use direction::{ClockOffset, Point};
pub use rows::MatchBatches;
pub use summary::{DelayFigures, FlowCounts, MatchSummary, PointFacts, TravelCounts};

use crate::capture::Input;
use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;
use crate::tables::{MatchRow, TableDef};
use direction::Directions;
use read::{Flow, NONE, Pool, Progress, Side};

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct MatchOptions {
    /// How the captures are read.
    pub run: Options,
    /// Most packets of each capture that are compared; beyond it the capture counts as ended, and the summary says so.
    pub packets: usize,
    /// One clock stamped both captures, so that even traffic of one direction tells which point comes first.
    pub is_same_clock: bool,
}

impl Default for MatchOptions {
    fn default() -> Self {
        Self { run: Options::default(), packets: 5_000_000, is_same_clock: false }
    }
}

/// Two captures, joined.
pub struct Matches {
    joined: Joined,
    summary: MatchSummary,
}

/// Compares what two points saw. Each capture may be of several files. Either point may be the one upstream.
pub fn match_captures<A, B>(a: A, b: B, options: &MatchOptions, observer: &mut dyn Observer) -> Result<Matches, Error>
where
    A: IntoIterator,
    A::Item: Into<Input>,
    B: IntoIterator,
    B::Item: Into<Input>,
{
    let mut pool = Pool::new(&options.run);
    let mut progress = Progress::new(observer);
    let limit = options.packets.min(NONE as usize - 1);
    let a = pool.read(a.into_iter().map(Into::into).collect(), &options.run, limit, &mut progress)?;
    let b = pool.read(b.into_iter().map(Into::into).collect(), &options.run, limit, &mut progress)?;
    let mut joined = Joined::new(a, b, pool, options.is_same_clock, &mut progress)?;
    progress.go_on()?;
    let summary = MatchSummary::new(&mut joined, options);
    Ok(Matches { joined, summary })
}

impl Matches {
    /// The table `matches`, as it is declared.
    pub fn definition() -> &'static TableDef {
        MatchRow::table()
    }

    pub fn schema(&self) -> SchemaRef {
        rows::schema()
    }

    pub fn summary(&self) -> &MatchSummary {
        &self.summary
    }

    /// The rows, in batches; with `is_unmatched_only` without those that were delivered.
    pub fn batches(&self, is_unmatched_only: bool) -> MatchBatches<'_> {
        MatchBatches::new(&self.joined, is_unmatched_only)
    }
}

/// Both captures with their packets linked and judged.
struct Joined {
    a: Side,
    b: Side,
    flows: Vec<Flow>,
    directions: Directions,
    /// Of resegmented packets: by A, those that A did not see last, by B.
    pieces: Vec<JoinedPiece>,
    /// Least delay of each flow.
    min_delays: Vec<Option<i64>>,
}

/// TCP bytes that one packet of A and one of B share, or [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JoinedPiece {
    a: u32,
    b: u32,
    bytes: u32,
}

impl Joined {
    fn new(
        mut a: Side,
        mut b: Side,
        pool: Pool,
        is_same_clock: bool,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let Pool { flows, pairs, .. } = pool;
        let learn = |a: &Side, b: &Side| Directions::new(&a.packets, &b.packets, &flows, pairs, is_same_clock);
        let copies = pair::link_unique(&mut a.packets, &mut b.packets);
        progress.go_on()?;
        let mut directions = learn(&a, &b);
        progress.go_on()?;
        pair::link_copies(&mut a.packets, &mut b.packets, copies, &flows, &directions);
        progress.go_on()?;
        directions = learn(&a, &b);
        progress.go_on()?;
        pair::link_by_identification(&mut a.packets, &mut b.packets, &flows, &directions);
        progress.go_on()?;
        let ranges = ranges::link_ranges(&mut a.packets, &mut b.packets, &flows, &directions);
        let mut pieces: Vec<_> = ranges
            .into_iter()
            .map(|(first, piece)| match first {
                Point::A => JoinedPiece { a: piece.up, b: piece.down, bytes: piece.bytes },
                Point::B => JoinedPiece { a: piece.down, b: piece.up, bytes: piece.bytes },
            })
            .collect();
        pieces.sort_unstable();
        progress.go_on()?;
        for (packets, upstream) in [(&mut b.packets, Point::A), (&mut a.packets, Point::B)] {
            pair::mark_duplicates(packets, |flow| directions.of(flow, &flows) == Some(upstream));
        }
        judge::judge(&mut a, &mut b, &flows, &directions);
        Ok(Self { a, b, flows, directions, pieces, min_delays: Vec::new() })
    }

    /// The packet upstream that a piece belongs to, with its place; and the flow.
    fn upstream_of(&self, piece: &JoinedPiece) -> (Option<(Point, u32)>, u32) {
        let (a, b) = (self.a.packets.get(piece.a as usize), self.b.packets.get(piece.b as usize));
        let flow = a.or(b).map_or(NONE, |packet| packet.flow);
        let up = match self.directions.of(flow, &self.flows) {
            Some(Point::A) => a.map(|_| (Point::A, piece.a)),
            Some(Point::B) => b.map(|_| (Point::B, piece.b)),
            None => None,
        };
        (up, flow)
    }

    /// What to take off B's times to place them among A's.
    fn shift_ns(&self) -> i64 {
        self.directions.offset.map_or_else(|| self.directions.typical_ns().unwrap_or(0), |offset| offset.estimate_ns)
    }
}
