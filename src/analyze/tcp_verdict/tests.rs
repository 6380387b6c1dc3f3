//! Crafted connections: what a segment is. `tests_senders.rs` has why it was resent.

use super::*;

pub(super) const MS: i64 = 1_000_000;
const CLIENT_ISN: u32 = 1_000;
const SERVER_ISN: u32 = 50_000;
/// First data byte of the client.
pub(super) const A: u32 = CLIENT_ISN + 1;
/// First data byte of the server.
pub(super) const B: u32 = SERVER_ISN + 1;

/// Feeds a connection and keeps every judgement.
pub(super) struct Wire {
    pub connection: Connection,
    pub next_row: u64,
    judged: Vec<(u64, Judgement)>,
    latest_ns: i64,
    ids: [Option<u16>; 2],
    pub ttl: [u8; 2],
    has_ts: bool,
}

impl Wire {
    /// A tap at the receiving server (the client's packets have crossed a router), with IP IDs and timestamps.
    pub fn at_server() -> Self {
        Self {
            connection: Connection::default(),
            next_row: 0,
            judged: Vec::new(),
            latest_ns: 0,
            ids: [Some(100), Some(9_000)],
            ttl: [63, 64],
            has_ts: true,
        }
    }

    /// A tap at the sending client.
    pub fn at_client() -> Self {
        Self { ttl: [64, 63], ..Self::at_server() }
    }

    /// No IP IDs, as with IPv6.
    pub fn without_ids(mut self) -> Self {
        self.ids = [None; 2];
        self
    }

    pub fn without_timestamps(mut self) -> Self {
        self.has_ts = false;
        self
    }

    /// SYN, SYN/ACK and ACK with this round trip; SACK is negotiated if `sack`. Ends at `rtt_ns`.
    pub fn shake(mut self, rtt_ns: i64, sack: bool) -> Self {
        let (near, far) = if self.ttl[0] == 64 { (rtt_ns, rtt_ns) } else { (0, rtt_ns) };
        self.syn(0, 0, SYN, CLIENT_ISN, 0, sack);
        self.syn(near, 1, SYN | ACK, SERVER_ISN, A, sack);
        self.send(far, 0, |s| (s.seq, s.ack) = (A, B));
        self
    }

    pub fn syn(&mut self, time_ns: i64, dir: u8, flags: u16, seq: u32, ack: u32, sack: bool) -> u64 {
        self.send(time_ns, dir, |s| {
            (s.flags, s.seq, s.ack, s.sack_permitted) = (flags, seq, ack, sack);
            (s.mss, s.wscale) = (Some(1460), Some(7));
        })
    }

    /// Sends a bare ACK that `change` turns into something else; the next IP ID and a millisecond TSval are filled in.
    pub fn send(&mut self, time_ns: i64, dir: u8, change: impl FnOnce(&mut Segment)) -> u64 {
        self.send_with(time_ns, dir, &[], change)
    }

    /// The same with SACK blocks.
    pub fn send_with<'a>(
        &mut self,
        time_ns: i64,
        dir: u8,
        sack: &'a [(u32, u32)],
        change: impl FnOnce(&mut Segment<'a>),
    ) -> u64 {
        let side = usize::from(dir);
        self.latest_ns = self.latest_ns.max(time_ns);
        let row = self.next_row;
        self.next_row += 1;
        let mut s = Segment {
            row,
            frame_no: row + 1,
            time_ns,
            at: Moment { ns: self.latest_ns, frame: row },
            dir,
            seq: 0,
            ack: 0,
            flags: ACK,
            window: 500,
            payload_bytes: 0,
            mss: None,
            wscale: None,
            sack_permitted: false,
            ts: self.has_ts.then_some(((time_ns / MS) as u32 + 5_000, 1)),
            sack,
            mptcp: 0,
            ip_id: self.ids[side],
            ttl: self.ttl[side],
            ecn: 0,
            l4_checksum_field: row as u16,
            checksum: Checksum::Ok,
            interface: 0,
        };
        if let Some(id) = &mut self.ids[side] {
            *id = id.wrapping_add(1);
        }
        change(&mut s);
        self.connection.settle(s.at, &HoldLimits::default(), &mut self.judged);
        self.connection.on_segment(&s, &HoldLimits::default(), &mut self.judged);
        row
    }

    /// Client data of 1,448 bytes, the `n`-th from the start, with this IP ID.
    pub fn data(&mut self, time_ns: i64, n: u32, id: u16) -> u64 {
        self.send(time_ns, 0, |s| {
            (s.seq, s.ack, s.payload_bytes) = (A.wrapping_add(n * 1448), B, 1448);
            s.ip_id = s.ip_id.map(|_| id);
        })
    }

    /// The server acknowledges the first `n` pieces and reports `sack`, in pieces.
    pub fn ack(&mut self, time_ns: i64, n: u32, sack: &[(u32, u32)]) -> u64 {
        let mut blocks = [(0, 0); 4];
        for (block, &(from, to)) in blocks.iter_mut().zip(sack) {
            *block = (piece(from), piece(to));
        }
        let blocks = &blocks[..sack.len()];
        self.send_with(time_ns, 1, blocks, |s| (s.seq, s.ack) = (B, piece(n)))
    }

    /// Closes the connection; each row must have come out exactly once.
    pub fn finish(mut self) -> Vec<Judgement> {
        self.connection.finish(Moment::default(), &HoldLimits::default(), &mut self.judged);
        self.judged.sort_by_key(|&(row, _)| row);
        let rows: Vec<u64> = self.judged.iter().map(|&(row, _)| row).collect();
        assert_eq!(rows, (0..self.next_row).collect::<Vec<_>>(), "every row once");
        self.judged.into_iter().map(|(_, judgement)| judgement).collect()
    }

    /// What has come out so far for a row.
    pub fn so_far(&self, row: u64) -> Option<Judgement> {
        self.judged.iter().find(|&&(judged, _)| judged == row).map(|&(_, judgement)| judgement)
    }
}

/// The first sequence number of the client's `n`-th piece.
pub(super) const fn piece(n: u32) -> u32 {
    A + n * 1448
}

pub(super) fn verdict_of(judgements: &[Judgement], row: u64) -> Verdict {
    judgements[row as usize].verdict
}

#[test]
fn an_original_five_milliseconds_late_is_reordered_by_its_id_though_the_round_trip_is_one() {
    let mut wire = Wire::at_server().shake(MS, true);
    wire.data(2 * MS, 0, 110);
    let first = wire.data(2 * MS + 1000, 2, 112);
    wire.ack(2 * MS + 2000, 1, &[(2, 3)]);
    let late = wire.data(7_200_000, 1, 111);
    let all = wire.finish();
    assert_eq!((verdict_of(&all, first), verdict_of(&all, late)), (Verdict::New, Verdict::Reordered));
    assert!(all[late as usize].evidence.has(Evidence::IP_ID));
}

#[test]
fn a_repetition_within_the_round_trip_is_a_retransmission_by_its_id() {
    let mut wire = Wire::at_server().shake(50 * MS, true);
    wire.data(60 * MS, 0, 110);
    wire.data(60 * MS + 1000, 2, 112);
    wire.ack(60 * MS + 2000, 1, &[(2, 3)]);
    let again = wire.data(72 * MS, 1, 113);
    wire.ack(72 * MS + 1000, 3, &[]);
    wire.ack(400 * MS, 3, &[]);
    let all = wire.finish();
    assert_eq!(all[again as usize].verdict, Verdict::Retransmit);
    assert_eq!((all[again as usize].cause, all[again as usize].outcome), (Some(Cause::Fast), Some(Outcome::Needed)));
    assert_eq!((all[again as usize].retransmit_segments, all[again as usize].first_frame_no), (1, None));
}

#[test]
fn ids_of_zero_leave_the_order_to_the_timestamps() {
    let mut wire = Wire::at_server().shake(10 * MS, true);
    let id_zero = |wire: &mut Wire, time_ns, n, tsval| {
        wire.send(time_ns, 0, |s| {
            (s.seq, s.ack, s.payload_bytes) = (piece(n), B, 1448);
            (s.ip_id, s.ts) = (Some(0), Some((tsval, 1)));
        })
    };
    id_zero(&mut wire, 20 * MS, 0, 5_020);
    id_zero(&mut wire, 22 * MS, 3, 5_022);
    let original = id_zero(&mut wire, 23 * MS, 1, 5_021);
    let again = id_zero(&mut wire, 33 * MS, 2, 5_032);
    let all = wire.finish();
    assert_eq!((verdict_of(&all, original), verdict_of(&all, again)), (Verdict::Reordered, Verdict::Retransmit));
    assert!(all[again as usize].evidence.has(Evidence::TSVAL));
}

#[test]
fn without_ids_and_with_equal_timestamps_nothing_is_claimed() {
    let mut wire = Wire::at_server().without_ids().shake(MS / 2, true);
    let at = |wire: &mut Wire, n| {
        wire.send(9 * MS, 0, |s| (s.seq, s.ack, s.payload_bytes) = (piece(n), B, 1448));
    };
    at(&mut wire, 0);
    at(&mut wire, 2);
    let row = wire.send(9 * MS + 400_000, 0, |s| (s.seq, s.ack, s.payload_bytes) = (piece(1), B, 1448));
    assert_eq!(verdict_of(&wire.finish(), row), Verdict::Ambiguous);
}

#[test]
fn without_ids_and_timestamps_only_the_round_trip_is_left_to_judge_by() {
    let mut wire = Wire::at_server().without_ids().without_timestamps().shake(20 * MS, true);
    let at = |wire: &mut Wire, time_ns, n| wire.data(time_ns, n, 0);
    at(&mut wire, 30 * MS, 0);
    at(&mut wire, 30 * MS, 2);
    let soon = at(&mut wire, 33 * MS, 1);
    at(&mut wire, 40 * MS, 4);
    let between = at(&mut wire, 55 * MS, 3);
    wire.ack(56 * MS, 5, &[]);
    at(&mut wire, 60 * MS, 6);
    wire.ack(60 * MS + 1000, 5, &[(6, 7)]);
    let asked_for = at(&mut wire, 81 * MS, 5);
    let all = wire.finish();
    assert_eq!(
        [soon, between, asked_for].map(|row| verdict_of(&all, row)),
        [Verdict::Reordered, Verdict::Ambiguous, Verdict::Retransmit]
    );
}

#[test]
fn an_original_that_comes_after_its_repetition_relabels_it() {
    let mut wire = Wire::at_server().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let again = wire.data(300 * MS, 1, 112);
    let original = wire.data(301 * MS, 1, 111);
    wire.ack(301 * MS + 1000, 2, &[(1, 2)]);
    let all = wire.finish();
    assert_eq!((verdict_of(&all, again), verdict_of(&all, original)), (Verdict::Retransmit, Verdict::Reordered));
    assert_eq!(all[again as usize].outcome, Some(Outcome::Spurious));
}

#[test]
fn damaged_bytes_cover_nothing_and_a_partial_checksum_is_no_damage() {
    let mut wire = Wire::at_server().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let damaged = wire.send(21 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id, s.checksum) = (piece(1), B, 1448, Some(111), Checksum::Bad);
    });
    wire.send(22 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id, s.checksum) = (piece(2), B, 1448, Some(112), Checksum::Partial);
    });
    wire.ack(22 * MS + 1000, 1, &[(2, 3)]);
    let again = wire.data(33 * MS, 1, 113);
    wire.ack(33 * MS + 1000, 3, &[]);
    wire.ack(900 * MS, 3, &[]);
    let all = wire.finish();
    assert_eq!((verdict_of(&all, damaged), verdict_of(&all, again)), (Verdict::Damaged, Verdict::Retransmit));
    assert_eq!(all[again as usize].outcome, Some(Outcome::Needed));
    assert!(!all[again as usize].evidence.has(Evidence::SEEN_BYTES));
}

#[test]
fn numbers_that_wrap_make_no_retransmission() {
    let mut wire = Wire::at_client();
    let isn = u32::MAX - 2_000;
    wire.syn(0, 0, SYN, isn, 0, true);
    wire.syn(10 * MS, 1, SYN | ACK, SERVER_ISN, isn.wrapping_add(1), true);
    let mut rows = Vec::new();
    for n in 0..4u32 {
        rows.push(wire.send(20 * MS, 0, |s| {
            (s.seq, s.ack, s.payload_bytes) = (isn.wrapping_add(1 + n * 1448), B, 1448);
        }));
    }
    let again = wire.send(900 * MS, 0, |s| (s.seq, s.ack, s.payload_bytes) = (isn.wrapping_add(1), B, 1448));
    let all = wire.finish();
    assert!(rows.iter().all(|&row| verdict_of(&all, row) == Verdict::New));
    assert_eq!(verdict_of(&all, again), Verdict::Retransmit);
}

#[test]
fn a_repetition_that_goes_on_into_new_bytes_is_one_and_moves_the_highest() {
    let mut wire = Wire::at_client().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let overlap = wire.send(500 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + 1_000, B, 1_448, Some(111));
    });
    let next = wire.send(501 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (A + 2_448, B, 100, Some(112));
    });
    let all = wire.finish();
    assert_eq!((verdict_of(&all, overlap), verdict_of(&all, next)), (Verdict::Retransmit, Verdict::New));
}

#[test]
fn a_capture_that_starts_in_the_middle_still_tells_late_from_resent() {
    let mut wire = Wire::at_server();
    wire.data(20 * MS, 10, 110);
    wire.ack(20 * MS + 1000, 11, &[]);
    wire.data(21 * MS, 12, 112);
    let late = wire.data(22 * MS, 11, 111);
    wire.data(23 * MS, 14, 114);
    let again = wire.data(40 * MS, 13, 115);
    let older = wire.data(41 * MS, 3, 116);
    let all = wire.finish();
    assert_eq!(
        [late, again, older].map(|row| verdict_of(&all, row)),
        [Verdict::Reordered, Verdict::Retransmit, Verdict::Retransmit]
    );
    assert_eq!(all[again as usize].outcome, Some(Outcome::Unknown), "SACK was never negotiated in sight");
}

#[test]
fn one_direction_alone_leaves_the_outcome_open() {
    let mut wire = Wire::at_client();
    for n in 0..3 {
        wire.data(20 * MS, n, 110 + n as u16);
    }
    let again = wire.data(400 * MS, 0, 113);
    let all = wire.finish();
    assert_eq!(
        (all[again as usize].verdict, all[again as usize].outcome),
        (Verdict::Retransmit, Some(Outcome::Unknown))
    );
}

#[test]
fn a_number_far_outside_the_window_is_unknown_and_does_no_harm() {
    let mut wire = Wire::at_server().shake(10 * MS, true);
    wire.data(20 * MS, 0, 110);
    let stray = wire.send(21 * MS, 0, |s| {
        (s.seq, s.ack, s.payload_bytes, s.ip_id) = (piece(1) ^ 0x4000_0000, B, 1448, Some(111));
    });
    let next = wire.data(22 * MS, 1, 112);
    let all = wire.finish();
    assert_eq!((verdict_of(&all, stray), verdict_of(&all, next)), (Verdict::Unknown, Verdict::New));
}

#[test]
fn any_segments_at_all_neither_panic_nor_lose_a_row() {
    let mut state = 7u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let sacks: [&[(u32, u32)]; 4] =
        [&[], &[(A, A + 9)], &[(u32::MAX, 5), (3, 1)], &[(0, u32::MAX), (A, A + 5792), (9, 9), (A, A)]];
    for _ in 0..40 {
        let mut wire = Wire::at_server();
        for _ in 0..400 {
            let (r, near) = (next(), next());
            let time_ns = if r % 97 == 0 { i64::MIN / 2 + r as i64 % 1000 } else { (r % 4_000) as i64 * MS };
            wire.send_with(time_ns, (r >> 8) as u8 & 1, sacks[(r >> 35) as usize % 4], |s| {
                s.seq = if near % 5 == 0 { near as u32 } else { A.wrapping_add((near % 30_000) as u32) };
                s.ack = if near % 7 == 0 { (near >> 32) as u32 } else { A.wrapping_add((near >> 20) as u32 % 30_000) };
                s.flags = (r >> 16) as u16 & if near % 3 == 0 { 0xfff } else { ACK };
                s.payload_bytes = [0, 1, 1448, 65_000, u32::MAX][(r >> 32) as usize % 5];
                s.window = (r >> 40) as u16;
                s.ip_id = [None, Some(0), Some((r >> 48) as u16), s.ip_id][(near >> 50) as usize % 4];
                s.mss = [None, Some(0), Some(1460)][(near >> 53) as usize % 3];
                s.wscale = Some((near >> 40) as u8);
                s.ts = [None, Some((r as u32, near as u32)), s.ts][(near >> 57) as usize % 3];
            });
            if r % 50 == 0 {
                wire.connection.on_icmp_too_big(time_ns, r as u8, near as u32, (r >> 50) as u32);
                let now = Moment { ns: wire.latest_ns, frame: wire.next_row };
                let limits = HoldLimits { rows: 20, time_ns: 500 * MS };
                let judged = &mut wire.judged;
                wire.connection.settle(now, &limits, judged);
                wire.connection.shrink();
            }
        }
        wire.finish();
    }
}
