//! Compares two captures of the same traffic: `cargo run --release --example match_captures -- A B`.

use wirelab::{Lang, MatchOptions, Unobserved, match_captures};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(a), Some(b)) = (arguments.next(), arguments.next()) else { return Err("two captures, please".into()) };
    let matches = match_captures([a.as_str()], [b.as_str()], &MatchOptions::default(), &mut Unobserved)?;
    let mut rows = 0;
    for batch in matches.batches(false) {
        rows += batch?.num_rows();
    }
    let summary = matches.summary();
    println!("{rows} rows; A to B: {:?}; B to A: {:?}", summary.a_to_b, summary.b_to_a);
    for sentence in summary.sentences(Lang::En) {
        println!("{sentence}");
    }
    Ok(())
}
