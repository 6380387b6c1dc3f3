//! No result depends on where a window of frames, or a file of a ring, ends.

mod pause;
mod roce;

use super::*;
use crate::capture::{Record, Window};
use crate::observe::Unobserved;

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const TABLES: [TableId; 6] =
    [TableId::Packets, TableId::Tcp, TableId::TcpFlows, TableId::TcpEvents, TableId::Dns, TableId::Probes];

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Packets in the order of the capture, each with its time.
struct Tape {
    now_ns: i64,
    packets: Vec<(i64, Vec<u8>, u32)>,
    /// What is read of it.
    tables: &'static [TableId],
    /// Link type: IPv4, unless it is told otherwise.
    link: u32,
}

impl Default for Tape {
    fn default() -> Self {
        Self { now_ns: 0, packets: Vec::new(), tables: &TABLES, link: 101 }
    }
}

impl Tape {
    fn ip(&mut self, id: u16, protocol: u8, from: [u8; 4], to: [u8; 4], body: &[u8], missing: u16) {
        let bytes = 20 + body.len() as u16 + missing;
        let mut packet = vec![0x45, 0];
        packet.extend(bytes.to_be_bytes());
        packet.extend(id.to_be_bytes());
        packet.extend([0x40, 0, 60, protocol, 0, 0]);
        packet.extend(from.into_iter().chain(to));
        packet.extend(body);
        self.packets.push((self.now_ns, packet, u32::from(bytes)));
        self.now_ns += 1;
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a segment")]
    fn tcp(&mut self, port: u16, dir: u8, id: u16, flags: u8, seq: u32, ack: u32, payload: u16, sack: &[(u32, u32)]) {
        let mut options = Vec::new();
        if flags & SYN != 0 {
            options.extend([2, 4, 5, 180, 4, 2, 1, 1]);
        } else if !sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * sack.len() as u8]);
            options.extend(sack.iter().flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()]).flatten());
        }
        let (near, far) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let ((from, to), ports) = if dir == 0 { ((near, far), [port, 80]) } else { ((far, near), [80, port]) };
        let mut body = ports.map(u16::to_be_bytes).concat();
        body.extend([seq, ack].map(u32::to_be_bytes).concat());
        body.extend([(5 + options.len() as u8 / 4) << 4, flags, 0x20, 0, 0, 0, 0, 0]);
        body.extend(options);
        self.ip(id, 6, from, to, &body, payload);
    }

    fn dns(&mut self, number: u16, is_response: bool) {
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 3]);
        let ((from, to), ports) =
            if is_response { ((server, client), [53, 999_u16]) } else { ((client, server), [999, 53]) };
        let mut message = number.to_be_bytes().to_vec();
        message.extend([
            if is_response { 0x81 } else { 1 },
            if is_response { 0x80 } else { 0 },
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
        ]);
        message.extend([1, b'a', 0, 0, 1, 0, 1]);
        let mut body = ports.map(u16::to_be_bytes).concat();
        body.extend((8 + message.len() as u16).to_be_bytes());
        body.extend([0, 0]);
        body.extend(message);
        self.ip(self.packets.len() as u16, 17, from, to, &body, 0);
    }

    fn ping(&mut self, sequence: u16, is_reply: bool) {
        let (near, far) = ([10, 0, 0, 1], [10, 0, 0, 4]);
        let (from, to) = if is_reply { (far, near) } else { (near, far) };
        let mut body = vec![if is_reply { 0 } else { 8 }, 0, 0, 0, 0, 7];
        body.extend(sequence.to_be_bytes());
        self.ip(self.packets.len() as u16, 1, from, to, &body, 0);
    }

    /// A router's ICMP error about a segment of the near end: 1 "unreachable", 4 "fragmentation needed".
    fn refuse(&mut self, port: u16, code: u8, seq: u32) {
        let mut body = vec![3, code, 0, 0, 0, 0, 2, 0];
        body.extend([0x45, 0, 0, 40, 0, 9, 0x40, 0, 60, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        body.extend([port, 80].map(u16::to_be_bytes).concat());
        body.extend(seq.to_be_bytes());
        self.ip(self.packets.len() as u16, 1, [10, 0, 0, 5], [10, 0, 0, 1], &body, 0);
    }

    fn filler(&mut self, frames: usize) {
        for _ in 0..frames {
            self.ip(self.packets.len() as u16, 17, [10, 0, 0, 8], [10, 0, 0, 9], &[0, 9, 0, 9, 0, 8, 0, 0], 0);
        }
    }

    /// A frame whose time lies far ahead.
    fn damaged_time(&mut self) {
        self.wait(50_000 * HOUR);
        self.filler(1);
        self.wait(-50_000 * HOUR);
    }

    /// Whether a packet from there on is a copy of one before: that is told only within a file.
    fn has_copies_across(&self, at: usize) -> bool {
        let (before, after) = self.packets.split_at(at);
        let near = |(ns, ..): &&(i64, Vec<u8>, u32)| (ns - self.packets[at].0).abs() <= SECOND;
        let mut before = before.iter().rev().take_while(near);
        before.any(|(_, old, _)| after.iter().take_while(near).any(|(_, new, _)| old == new))
    }

    fn wait(&mut self, ns: i64) {
        self.now_ns += ns;
    }

    /// The tape as files that end before these packets.
    fn files(&self, cuts: &[usize]) -> Vec<Input> {
        let mut files = vec![Vec::new()];
        for (at, (time_ns, packet, bytes)) in self.packets.iter().enumerate() {
            if at > 0 && cuts.contains(&at) {
                files.push(Vec::new());
            }
            let Some(file) = files.last_mut() else { continue };
            if file.is_empty() {
                for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, self.link] {
                    file.extend(word.to_le_bytes());
                }
            }
            let (seconds, rest) = ((SECOND + time_ns) / SECOND, (SECOND + time_ns) % SECOND);
            for word in [seconds as u32, rest as u32, packet.len() as u32, *bytes] {
                file.extend(word.to_le_bytes());
            }
            file.extend(packet);
        }
        let name = |at: usize| format!("ring_{at:05}_20260101000000.pcap");
        files.into_iter().enumerate().map(|(at, file)| Input::NamedBytes(file.into(), name(at))).collect()
    }

    fn read(&self, limits: (u64, i64), cuts: &[usize], windows: &mut dyn FnMut() -> usize) -> Rows {
        self.read_by(limits, cuts, 0, windows)
    }

    /// TCP is followed whenever there are so many `segments`.
    fn read_by(&self, limits: (u64, i64), cuts: &[usize], segments: usize, windows: &mut dyn FnMut() -> usize) -> Rows {
        rows(self.files(cuts), self.tables, limits, segments, windows)
    }
}

type Rows = Vec<(TableId, RecordBatch)>;

/// All rows of a capture that is worked on in windows of the sizes that `next_size` gives. TCP is followed whenever there are
/// so many `segments`.
fn rows(
    inputs: Vec<Input>,
    tables: &[TableId],
    (hold_frames, hold_ns): (u64, i64),
    segments: usize,
    next_size: &mut dyn FnMut() -> usize,
) -> Rows {
    let mut options = Options { threads: std::num::NonZeroUsize::new(1), ..Options::default() };
    (options.limits.hold_frames, options.limits.hold_ns) = (hold_frames, hold_ns);
    let requests: Vec<_> = tables.iter().copied().map(ScanRequest::new).collect();
    let mut engine = Engine::new(inputs, &options, &requests).unwrap();
    engine.core.fewest_segments = segments;
    engine.core.most_segments = segments;
    engine.core.shards.iter_mut().for_each(|shard| shard.keep_idle(0));
    let stop = AtomicBool::new(false);
    let mut batches = Vec::new();
    while let Some(window) = engine.ahead.share().next() {
        let mut rest = window.records.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(next_size().clamp(1, rest.len()));
            rest = later;
            let piece = Window { records: now.to_vec(), buffers: window.buffers.clone(), ..Window::default() };
            let core = &mut engine.core;
            let next = rest.first().map(Record::time);
            let next = next.or_else(|| core.needs_next(&piece).then(|| engine.ahead.share().next_time()).flatten());
            Asker::new(&mut Unobserved, &stop, &Progress::default()).run(
                None,
                |gate, _| core.process(&piece, next, gate),
                || {},
                || {},
            );
            batches.extend(engine.core.take_batches().unwrap());
        }
    }
    assert!(engine.ahead.is_over().unwrap());
    let (core, facts, mut is_finished) = (&mut engine.core, engine.ahead.facts(), false);
    while !is_finished {
        let finish = |gate: &mut Gate<'_, '_>, _: &dyn Fn()| is_finished = core.finish(facts, gate);
        Asker::new(&mut Unobserved, &stop, &Progress::default()).run(None, finish, || {}, || {});
    }
    batches.extend(engine.core.take_batches().unwrap());
    let row = |(table, batch): &(TableId, RecordBatch)| {
        (0..batch.num_rows()).map(|row| (*table, batch.slice(row, 1))).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = batches.iter().flat_map(row).collect();
    // Other findings tell of the files.
    let is_here = |code: String| code.starts_with("roce") || code.starts_with("pause");
    rows.retain(|(table, row)| *table != TableId::CaptureQuality || is_here(value(row, "code")));
    // Packets first: the order of the frames explains what differs after them.
    rows.sort_by_key(|(table, _)| (*table != TableId::Packets, table.name()));
    rows
}

fn value(row: &RecordBatch, column: &str) -> String {
    let Some(array) = row.column_by_name(column) else { return "none".into() };
    arrow_cast::display::array_value_to_string(array, 0).unwrap()
}

/// The rows without what numbers frames and files.
fn unnumbered(rows: &Rows) -> Vec<(TableId, Vec<String>)> {
    let is_number = |name: &str| {
        ["file_no", "duplicate_of", "frames", "message_en", "message_zh"].contains(&name) || name.ends_with("frame_no")
    };
    let told = |row: &RecordBatch| {
        let columns = row.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let of = |name: &String| {
            let value = value(row, name);
            let value = if is_number(name) { value.is_empty().to_string() } else { value };
            format!("{name}={value}")
        };
        columns.iter().map(of).collect()
    };
    rows.iter().map(|(table, row)| (*table, told(row))).collect()
}

fn assert_same(one: &Rows, other: &Rows, what: &str) {
    for (one, other) in one.iter().zip(other) {
        if one != other {
            let (one, other) = (unnumbered(&vec![one.clone()]), unnumbered(&vec![other.clone()]));
            let differs = one[0].1.iter().zip(&other[0].1).filter(|(one, other)| one != other);
            panic!("{what}: {:?} {:?} {:?}", one[0].0, differs.collect::<Vec<_>>(), one[0].1);
        }
    }
    assert_eq!(one.len(), other.len(), "{what}");
}

/// Reads a tape in one piece, and in many ways in several; all must give the same rows, which are returned.
fn read_in_any_pieces(tape: &Tape, limits: (u64, i64), what: &str) -> Rows {
    let whole = tape.read(limits, &[], &mut || usize::MAX);
    for size in [1, 2, 7] {
        assert_same(&whole, &tape.read(limits, &[], &mut || size), &format!("{what}, windows of {size}"));
    }
    let mut dice = Dice(77);
    assert_same(&whole, &tape.read(limits, &[], &mut || 1 + dice.roll(40) as usize), &format!("{what}, any windows"));
    for segments in [10, 64] {
        let followed = tape.read_by(limits, &[], segments, &mut || 1 + dice.roll(7) as usize);
        assert_same(&whole, &followed, &format!("{what}, {segments} segments at a time"));
    }
    let is_in_order = tape.packets.is_sorted_by_key(|(time_ns, ..)| *time_ns);
    for step in [1, 3, 50].into_iter().filter(|_| is_in_order) {
        let is_cut = |at: &usize| at % step == step / 2 && !tape.has_copies_across(*at);
        let cuts: Vec<_> = (0..tape.packets.len()).filter(is_cut).collect();
        let ring = tape.read(limits, &cuts, &mut || usize::MAX);
        for (one, other) in unnumbered(&whole).iter().zip(&unnumbered(&ring)) {
            let differs = one.1.iter().zip(&other.1).filter(|(one, other)| one != other).collect::<Vec<_>>();
            assert_eq!(one, other, "{what}, ring of {}: {differs:?}", cuts.len());
        }
        assert_eq!(whole.len(), ring.len(), "{what}");
    }
    whole
}

/// A segment that is sent again, and what the receiver says of it later, and never again.
fn late_answer(wait_ns: i64, frames: usize, has_dsack: bool) -> String {
    let mut tape = Tape::default();
    tape.tcp(5_000, 0, 1, SYN, 0, 0, 0, &[]);
    tape.wait(20 * MS);
    tape.tcp(5_000, 1, 1, SYN | ACK, 0, 1, 0, &[]);
    tape.wait(20 * MS);
    tape.tcp(5_000, 0, 2, ACK, 1, 1, 0, &[]);
    tape.tcp(5_000, 0, 3, ACK, 1, 1, 1_000, &[]);
    tape.wait(300 * MS);
    let sent_ns = tape.now_ns;
    tape.tcp(5_000, 0, 4, ACK, 1, 1, 1_000, &[]);
    tape.filler(frames);
    tape.now_ns = sent_ns + wait_ns;
    tape.tcp(5_000, 1, 2, ACK, 1, 1_001, 0, if has_dsack { &[(1, 1_001)] } else { &[] });
    tape.wait(SECOND);
    tape.filler(1);
    let rows = read_in_any_pieces(&tape, (100, 10 * SECOND), &format!("{wait_ns} {frames} {has_dsack}"));
    let again = rows.iter().filter(|(table, _)| *table == TableId::Tcp).nth(4).unwrap();
    assert_eq!(value(&again.1, "verdict"), "retransmit");
    value(&again.1, "outcome")
}

#[test]
fn an_answer_to_a_repetition_counts_up_to_the_limits_and_never_beyond() {
    for (wait_ns, frames, expected) in [
        (SECOND, 0, ["spurious", "needed"]),
        (9 * SECOND, 99, ["spurious", "needed"]),
        // The limit comes before a D-SACK has had its time.
        (10 * SECOND, 99, ["spurious", "unknown"]),
        (10 * SECOND + 1, 0, ["unknown", "unknown"]),
        (30 * SECOND, 0, ["unknown", "unknown"]),
        (SECOND, 100, ["unknown", "unknown"]),
        (SECOND, 150, ["unknown", "unknown"]),
    ] {
        let outcomes = [true, false].map(|has_dsack| late_answer(wait_ns, frames, has_dsack));
        assert_eq!(outcomes, expected, "{wait_ns} {frames}");
    }
}

#[test]
fn an_answer_to_a_query_or_a_ping_counts_up_to_the_limits_and_never_beyond() {
    for (wait_ns, frames, is_counted) in
        [(10 * SECOND, 98, true), (10 * SECOND + 1, 0, false), (SECOND, 99, true), (SECOND, 100, false)]
    {
        let mut tape = Tape::default();
        tape.dns(7, false);
        tape.ping(1, false);
        tape.filler(frames.max(1) - 1);
        tape.now_ns = wait_ns;
        tape.dns(7, true);
        tape.now_ns = wait_ns + 1;
        tape.ping(1, true);
        let rows = read_in_any_pieces(&tape, (100, 10 * SECOND), &format!("{wait_ns} {frames}"));
        let of = |table: TableId| rows.iter().find(|(other, _)| *other == table).map(|(_, row)| row).unwrap();
        assert_eq!(value(of(TableId::Dns), "rtt_ns").is_empty(), !is_counted, "{wait_ns} {frames}");
        assert_eq!(value(of(TableId::Probes), "rtt_ns").is_empty(), !is_counted, "{wait_ns} {frames}");
    }
}

#[test]
fn what_is_asked_after_hours_of_silence_is_answered() {
    let mut tape = Tape::default();
    tape.filler(1);
    for hour in 0..6_i64 {
        // The frame that ends a silence, and one with a damaged time between a query and its response.
        tape.now_ns = 3 * hour * HOUR;
        tape.dns(hour as u16, false);
        tape.wait(SECOND);
        if hour % 2 == 1 {
            tape.damaged_time();
        }
        tape.dns(hour as u16, true);
        tape.now_ns += 2 * HOUR;
        tape.ping(hour as u16, false);
        tape.wait(SECOND);
        tape.ping(hour as u16, true);
    }
    let rows = read_in_any_pieces(&tape, (262_144, 10 * SECOND), "hours of silence");
    for table in [TableId::Dns, TableId::Probes] {
        let times = rows.iter().filter(|(other, _)| *other == table).map(|(_, row)| value(row, "rtt_ns"));
        let times: Vec<_> = times.collect();
        assert_eq!((times.len(), times.iter().filter(|time| time.is_empty()).count()), (6, 0), "{table:?} {times:?}");
    }
}

#[test]
fn of_pings_that_are_hours_apart_each_is_told_by_itself() {
    let mut tape = Tape::default();
    for number in 0..5 {
        tape.ping(number, false);
        tape.wait(2 * HOUR);
    }
    let rows = read_in_any_pieces(&tape, (262_144, 10 * SECOND), "pings hours apart");
    assert_eq!(rows.iter().filter(|(table, _)| *table == TableId::Probes).count(), 5);
}

/// What the ends of a connection do next.
#[derive(Clone, Default)]
struct Talk {
    id: [u16; 2],
    /// Next and first unacknowledged byte of each end.
    next: [u32; 2],
    una: [u32; 2],
}

/// Some connections, queries and pings, with losses, repetitions, copies, long silences and clocks that jump back.
fn any_tape(seed: u64, jumps_back: bool) -> Tape {
    let mut dice = Dice(seed * 7_919 + 1);
    let mut tape = Tape { now_ns: 100 * SECOND, ..Tape::default() };
    let mut talks = vec![Talk::default(); 3];
    let pauses = [SECOND / 10, SECOND / 3, SECOND, 3 * SECOND, 11 * SECOND, 2 * HOUR];
    for number in 0..400_u16 {
        match dice.roll(60) {
            at @ 0..6 => tape.wait(pauses[at as usize]),
            6 => tape.filler(dice.roll(150) as usize),
            7 if jumps_back => tape.wait(-(dice.roll(5_000) as i64) * MS),
            8 if jumps_back => tape.damaged_time(),
            _ => tape.wait(dice.roll(30) as i64 * MS),
        }
        match dice.roll(40) {
            0 => tape.dns(dice.roll(3) as u16, dice.roll(2) == 0),
            1 => tape.ping(dice.roll(3) as u16, dice.roll(2) == 0),
            2 => {
                let one = dice.roll(3) as usize;
                let code = [1, 4][dice.roll(2) as usize];
                tape.refuse(5_000 + one as u16, code, talks[one].next[0].saturating_sub(500));
            }
            _ => {}
        }
        let one = dice.roll(3) as usize;
        let (talk, port, dir) = (&mut talks[one], 5_000 + one as u16, dice.roll(2) as usize);
        if talk.next == [0, 0] {
            tape.tcp(port, 0, number, SYN, 0, 0, 0, &[]);
            tape.wait(5 * MS);
            tape.tcp(port, 1, number, SYN | ACK, 0, 1, 0, &[]);
            (talk.next, talk.una) = ([1, 1], [1, 1]);
            talk.id = [number + 10, number + 20];
            continue;
        }
        let (own, ack) = (talk.next[dir], talk.una[dir ^ 1]);
        let payload = 500 + 500 * dice.roll(2) as u32;
        let mut id = talk.id[dir];
        let send = |tape: &mut Tape, id: u16, flags: u8, seq: u32, ack: u32, payload: u32, sack: &[(u32, u32)]| {
            tape.tcp(port, dir as u8, id, flags | ACK, seq, ack, payload as u16, sack);
        };
        match dice.roll(24) {
            // New bytes, seen or lost before the tap.
            0..8 => {
                send(&mut tape, id, 0, own, ack, payload, &[]);
                talk.next[dir] = own + payload;
            }
            8 => talk.next[dir] = own + payload,
            // Old bytes: with a new number, one that is late, or the packet of before.
            9..13 => {
                let back = 500 * (1 + dice.roll(4) as u32);
                let late = [0, 0, 1, 2, 40][dice.roll(5) as usize];
                send(&mut tape, id.wrapping_sub(late), 0, own.saturating_sub(back).max(1), ack, 500, &[]);
            }
            13 | 14 => {
                id = id.wrapping_sub(1);
                let again = tape.packets.last().cloned();
                tape.packets.extend(again.map(|(_, packet, bytes)| (tape.now_ns, packet, bytes)));
                tape.now_ns += 1;
            }
            // Acknowledgements, of all or of a part, with D-SACK or SACK.
            15..21 => {
                let all = talk.next[dir ^ 1];
                let acked = if dice.roll(3) == 0 { talk.una[dir ^ 1].max(all.saturating_sub(1_000)) } else { all };
                talk.una[dir ^ 1] = acked;
                let low = acked.saturating_sub(500 * (1 + dice.roll(3) as u32)).max(1);
                let sack = match dice.roll(3) {
                    0 if low < acked => vec![(low, acked)],
                    1 if acked + 500 < all => vec![(acked + 500, all)],
                    _ => vec![],
                };
                send(&mut tape, id, 0, own, acked, 0, &sack);
            }
            // A keep-alive, the end, and another connection on the same ports.
            21 => send(&mut tape, id, 0, own - 1, ack, dice.roll(2) as u32, &[]),
            22 => {
                send(&mut tape, id, FIN, own, ack, 0, &[]);
                talk.next[dir] = own + u32::from(dice.roll(2) == 0);
            }
            _ if dice.roll(4) == 0 => {
                send(&mut tape, id, if dice.roll(2) == 0 { RST } else { 0 }, own, ack, 0, &[]);
                talk.next = [0, 0];
            }
            _ => {}
        }
        talk.id[dir] = id.wrapping_add(1 + u16::from(dice.roll(20) == 0));
    }
    tape
}

#[test]
fn whatever_happens_the_rows_are_the_same_wherever_windows_and_files_end() {
    let mut told = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let limits = [(100, 10 * SECOND), (262_144, 10 * SECOND), (20, SECOND)][seed as usize % 3];
        let rows = read_in_any_pieces(&any_tape(seed, seed % 2 == 1), limits, &format!("seed {seed}"));
        let verdicts = rows.iter().filter(|(table, _)| *table == TableId::Tcp);
        told.extend(verdicts.map(|(_, row)| value(row, "verdict") + " " + &value(row, "outcome")));
    }
    for what in [
        "new ",
        "retransmit needed",
        "retransmit spurious",
        "retransmit unknown",
        "reordered ",
        "network_duplicate ",
        "capture_duplicate ",
        "keep_alive ",
    ] {
        assert!(told.contains(what), "{what}: {told:?}");
    }
}
