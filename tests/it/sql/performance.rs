//! Speed that labs rely on. Clocks say little where tests run side by side on a busy machine, so a query is measured against
//! another one of the same size that has nothing to look up, in the same moment.

use std::time::{Duration, Instant};

use wirelab::sql::QueryLimits;

use super::sources::*;

#[test]
fn a_million_rows_join_themselves_on_their_flow_at_a_few_times_the_cost_of_counting_the_pairs() {
    let limits = QueryLimits { time: Duration::from_secs(600), ..QueryLimits::default() };
    let database = Memory::default().with("packets", packets(1_000_000, 100_000, 32_768)).database_with(limits);
    let timed = |sql: &str, expected: i64| {
        let start = Instant::now();
        assert_eq!(integer(&database, sql), expected);
        start.elapsed()
    };
    let joined = timed("SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id", 10_000_000);
    let pairs = "SELECT count(*) FROM (SELECT frame_no FROM packets LIMIT 10) a CROSS JOIN packets b";
    let counted = timed(pairs, 10_000_000);
    println!("1,000,000 rows joined to 10,000,000 pairs: {joined:?}; counted: {counted:?}");
    assert!(joined < counted * 20, "{joined:?}, {counted:?}");
    let range = "SELECT count(*) FROM packets WHERE frame_no BETWEEN 500000 AND 500999";
    // The first time tells that the rows are in the order of their frame numbers.
    let seek = (0..5).map(|_| timed(range, 1_000)).min().unwrap();
    assert!(seek < joined / 10, "{seek:?}, {joined:?}");
}
