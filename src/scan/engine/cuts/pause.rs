//! The same of pauses: when they are over, and which come first.

use super::*;

const PAUSES: [TableId; 3] = [TableId::Pause, TableId::PauseIntervals, TableId::CaptureQuality];

impl Tape {
    /// PFC from the port with this number, for one class.
    fn pfc(&mut self, port: u8, class: u8, quanta: u16) {
        let mut frame = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, port, 0x88, 8, 1, 1, 0, 1 << class];
        frame.extend((0..8).flat_map(|of| if of == class { quanta } else { 0 }.to_be_bytes()));
        frame.resize(60, 0);
        self.frame(frame);
    }

    /// A packet of another host, by DSCP in a class.
    fn traffic(&mut self, host: u8, class: u8) {
        let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, host, 8, 0];
        frame.extend([0x45, class << 5, 0, 28, 0, 0, 0x40, 0, 60, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 99]);
        frame.extend([0, 9, 0, 9, 0, 8, 0, 0]);
        self.frame(frame);
    }

    fn frame(&mut self, bytes: Vec<u8>) {
        let length = bytes.len() as u32;
        self.packets.push((self.now_ns, bytes, length));
        self.now_ns += 1;
    }
}

#[test]
fn pauses_are_the_same_wherever_windows_and_files_end() {
    let mut told = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let mut dice = Dice(seed * 977 + 5);
        let mut tape = Tape { now_ns: 100 * SECOND, link: 1, tables: &PAUSES, ..Tape::default() };
        // More ports than pauses may be open at once, and times in which they are.
        let longest_ns = if seed < 4 { 20_000 } else { 400_000 };
        for _ in 0..900 {
            let (port, class) = (dice.roll(100) as u8, dice.roll(4) as u8);
            match dice.roll(6) {
                0 => tape.traffic(port, class),
                1 => tape.pfc(port, class, 0),
                _ => tape.pfc(port, class, 1 + dice.roll(0xfffe) as u16),
            }
            tape.wait([0, 0, longest_ns / 4, longest_ns][dice.roll(4) as usize]);
            if seed % 2 == 1 && dice.roll(50) == 0 {
                tape.wait(-20 * MS);
            }
        }
        let rows = read_in_any_pieces(&tape, (100, 10 * SECOND), &format!("seed {seed}"));
        let of = |of: TableId| rows.iter().filter(move |(table, _)| *table == of).map(|(_, row)| row);
        told.extend(of(TableId::PauseIntervals).map(|row| value(row, "ended_by")));
        let counted = of(TableId::PauseIntervals).map(|row| value(row, "pause_count").parse::<usize>().unwrap());
        let asked = of(TableId::Pause).filter(|row| value(row, "quanta") != "0").count();
        assert!(seed >= 4 || counted.sum::<usize>() < asked, "seed {seed}");
    }
    assert_eq!(told.iter().collect::<Vec<_>>(), ["capture_end", "expiry", "xon"]);
}
