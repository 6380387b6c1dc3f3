//! Two capture points, joined.

use wirelab::{MatchOptions, Unobserved, match_captures};
use crate::support::outside_folder;

#[test]
fn explore() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in &names {
        for (x, y) in [("h1", "h2"), ("vm0", "vm1"), ("n1","pod"), ("h1","r"), ("br0","w0")] {
            let Some(stem) = name.strip_suffix(&format!(".{x}.pcap")) else { continue };
            let other = format!("{stem}.{y}.pcap");
            if !names.contains(&other) { continue }
            let m = match_captures([folder.join(name)], [folder.join(&other)], &MatchOptions::default(), &mut Unobserved).unwrap();
            let s = m.summary();
            println!("{stem}: {} {} off {:?}", s.a.packets, s.b.packets, s.clock_offset);
            for (n, c) in [("ab", &s.a_to_b), ("ba", &s.b_to_a), ("??", &s.unknown)] {
                if *c != Default::default() { println!("   {n} sent {} del {} reseg {} lost {} ({}) dup {} reord {} notcap {} out {} unm {} {:?}", c.sent_count, c.delivered_count, c.resegmented_count, c.lost_count, c.lost_bytes, c.duplicated_count, c.reordered_count, c.not_captured_count, c.outside_count, c.unmatched_count, c.delay); }
            }
            let rows: usize = m.batches(false).map(|b| b.unwrap().num_rows()).sum();
            println!("   rows {rows}");
        }
    }
}
