//! Speed that labs rely on. The bounds are several times what was measured, since tests run unoptimised and side by side.

use std::time::{Duration, Instant};

use super::sources::*;

#[test]
fn a_million_rows_join_themselves_on_their_flow_in_seconds() {
    let database = Memory::default().with("packets", packets(1_000_000, 50_000, 32_768)).database();
    let start = Instant::now();
    let joined = "SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id";
    assert_eq!(integer(&database, joined), 20_000_000);
    let took = start.elapsed();
    println!("self-join of 1,000,000 rows, 20,000,000 pairs: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let start = Instant::now();
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE frame_no BETWEEN 500000 AND 500999"), 1_000);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
