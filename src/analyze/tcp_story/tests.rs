//! Crafted connections, one for each kind of event. Direction 0 is the client, the tap is at it.

use super::*;
use crate::analyze::tcp_verdict::{Cause, DirectionSummary, Evidence, Outcome, Verdict};

const MS: i64 = 1_000_000;
const MSS: u32 = 1_000;

/// A connection that is made segment by segment; every one is judged when `verdict` says so.
#[derive(Default)]
struct Tale {
    story: Story,
    frame_no: u64,
}

impl Tale {
    fn tell(&mut self, time_ns: i64, segment: Segment<'_>) -> u64 {
        self.frame_no += 1;
        let row = self.frame_no;
        let segment = Segment { row, frame_no: row, time_ns, ip_id: Some(row as u16), ..segment };
        self.story.on_segment(&segment, 0);
        row
    }

    /// A segment that is sent for the first time.
    fn fresh(&mut self, time_ns: i64, segment: Segment<'_>) {
        let row = self.tell(time_ns, segment);
        self.story.on_judgement(row, &Judgement::plain(Verdict::New, Evidence::default()));
    }

    fn resent(&mut self, time_ns: i64, segment: Segment<'_>, cause: Cause) -> (u64, Judgement) {
        let row = self.tell(time_ns, segment);
        let judgement = Judgement {
            verdict: Verdict::Retransmit,
            cause: Some(cause),
            outcome: Some(Outcome::Needed),
            retransmit_segments: 1,
            ..Judgement::plain(Verdict::Retransmit, Evidence::SACK)
        };
        (row, judgement)
    }

    /// SYN at 0, SYN,ACK at 10 ms, ACK at 11 ms; streams start at 101 and 501.
    fn opened() -> Self {
        let mut tale = Self::default();
        tale.fresh(0, Segment { flags: SYN, seq: 100, ..client() });
        tale.fresh(10 * MS, Segment { flags: SYN | ACK, seq: 500, ack: 101, ..server() });
        tale.fresh(11 * MS, ack_of(0, 101, 501));
        tale
    }

    fn data(&mut self, time_ns: i64, start: u32) {
        self.fresh(time_ns, data(start));
    }

    fn acked(&mut self, time_ns: i64, ack: u32) {
        self.fresh(time_ns, ack_of(1, 501, ack));
    }

    fn finish(&mut self) -> (Vec<Event>, StorySummary) {
        let mut verdicts = VerdictSummary::default();
        verdicts.directions[0] = DirectionSummary { is_at_sender: true, ..DirectionSummary::default() };
        self.story.finish(&verdicts);
        (self.story.events().cloned().collect(), self.story.summary(&verdicts))
    }

    /// The only event of a kind.
    fn only(&mut self, kind: EventKind) -> Event {
        let (events, _) = self.finish();
        let found: Vec<_> = events.iter().filter(|event| event.kind == kind).collect();
        assert_eq!(found.len(), 1, "{events:#?}");
        found[0].clone()
    }
}

fn client() -> Segment<'static> {
    Segment { dir: 0, flags: ACK, window: 60_000, mss: Some(MSS as u16), wscale: Some(0), ..Segment::default() }
}

fn server() -> Segment<'static> {
    Segment { dir: 1, ..client() }
}

fn data(start: u32) -> Segment<'static> {
    Segment { seq: start, ack: 501, payload_bytes: MSS, ..client() }
}

fn ack_of(dir: u8, seq: u32, ack: u32) -> Segment<'static> {
    Segment { dir, seq, ack, ..client() }
}

#[test]
fn data_after_a_silence_does_not_end_the_recovery_that_begins_behind_it() {
    let mut tale = Tale::opened();
    (0..4).for_each(|n| tale.data(20 * MS, 101 + n * MSS));
    tale.acked(30 * MS, 101 + 4 * MSS);
    // New data after a silence, more of it, and a hole in that.
    tale.data(500 * MS, 101 + 4 * MSS);
    (5..9).for_each(|n| tale.data(501 * MS, 101 + n * MSS));
    let (row, judgement) = tale.resent(520 * MS, data(101 + 6 * MSS), Cause::Fast);
    tale.story.on_judgement(row, &judgement);
    tale.acked(525 * MS, 101 + 6 * MSS);
    tale.acked(540 * MS, 101 + 9 * MSS);
    let event = tale.only(EventKind::Recovery);
    assert_eq!((event.start.time_ns, event.end_ns, event.end_reason), (520 * MS, 540 * MS, Some("acknowledged")));
}

#[test]
fn data_that_was_acknowledged_before_it_was_recorded_ends_an_idle_stretch() {
    let mut tale = Tale::opened();
    tale.data(20 * MS, 101);
    tale.acked(30 * MS, 101 + MSS);
    // Recorded behind their acknowledgements, every 100 ms.
    for n in 1..6_u32 {
        let time_ns = i64::from(n) * 100 * MS;
        tale.acked(time_ns, 101 + (n + 1) * MSS);
        tale.data(time_ns + 10, 101 + n * MSS);
    }
    tale.data(600 * MS, 101 + 6 * MSS);
    let (events, summary) = tale.finish();
    assert!(events.iter().all(|event| event.kind != EventKind::Idle), "{events:#?}");
    assert!(summary.sides[0].idle_ns > Some(500 * MS));
}

#[test]
fn a_handshake_lasts_from_syn_to_the_clients_ack() {
    let mut tale = Tale::opened();
    let event = tale.only(EventKind::Handshake);
    assert_eq!((event.start.frame_no, event.end_ns, event.dir, event.count), (1, 11 * MS, 0, 1));
    assert_eq!(event.frames.list(), [1, 2, 3]);
    assert_eq!(tale.finish().1.handshake, "complete");
}

#[test]
fn a_syn_answered_by_rst_is_refused_and_one_answered_by_nothing_is_not_answered() {
    let mut refused = Tale::default();
    refused.fresh(0, Segment { flags: SYN, seq: 100, ..client() });
    refused.fresh(MS, Segment { flags: RST | ACK, ack: 101, window: 0, ..server() });
    let event = refused.only(EventKind::Refused);
    assert_eq!((event.dir, event.end_ns, event.frames.list()), (1, MS, &[1, 2][..]));
    assert_eq!(refused.only(EventKind::Reset).cause, Some("refused"));
    assert_eq!(refused.finish().1.handshake, "refused");

    let mut silent = Tale::default();
    for (try_no, time_ns) in [0, 1_000 * MS, 3_000 * MS].into_iter().enumerate() {
        let syn = Segment { flags: SYN, seq: 100, ..client() };
        if try_no == 0 {
            silent.fresh(time_ns, syn);
        } else {
            let (row, judgement) = silent.resent(time_ns, syn, Cause::Syn);
            silent.story.on_judgement(row, &judgement);
        }
    }
    let event = silent.only(EventKind::NoAnswer);
    assert_eq!((event.dir, event.count, event.end_ns), (1, 3, 3_000 * MS));
    let retry = silent.only(EventKind::SynRetry);
    assert_eq!((retry.dir, retry.count, retry.cause), (0, 2, Some("syn")));
    let (events, summary) = silent.finish();
    assert_eq!((summary.handshake, summary.syn_retries, summary.closed_by), ("no_answer", 2, "none"));
    assert!(!events.iter().any(|event| event.kind == EventKind::Timeout), "a SYN's timer is told as syn_retry alone");
}

#[test]
fn an_icmp_unreachable_that_quotes_the_syn_turns_it_away() {
    let mut tale = Tale::default();
    tale.fresh(0, Segment { flags: SYN, seq: 100, ..client() });
    let told = Mark { file: 0, frame_no: 7, time_ns: 3 * MS };
    // What is said of the other end's segments does not concern the SYN.
    tale.story.on_unreachable(1, Mark { time_ns: MS, ..told });
    tale.story.on_unreachable(0, told);
    tale.story.on_unreachable(0, Mark { time_ns: 9 * MS, ..told });
    let event = tale.only(EventKind::NoAnswer);
    assert_eq!(
        (event.dir, event.end_ns, event.cause, event.frames.list()),
        (1, 3 * MS, Some("unreachable"), &[1, 7][..])
    );
    assert_eq!(tale.finish().1.handshake, "no_answer");

    // A host that answered is reached, whatever comes later.
    let mut tale = Tale::default();
    tale.fresh(0, Segment { flags: SYN, seq: 100, ..client() });
    tale.fresh(MS, Segment { flags: SYN | ACK, seq: 500, ack: 101, ..server() });
    tale.story.on_unreachable(0, told);
    assert_eq!(tale.only(EventKind::HalfOpen).cause, None);
}

#[test]
fn a_client_that_resets_the_answer_leaves_a_half_open_connection() {
    let mut tale = Tale::default();
    tale.fresh(0, Segment { flags: SYN, seq: 100, ..client() });
    tale.fresh(MS, Segment { flags: SYN | ACK, seq: 500, ack: 101, ..server() });
    tale.fresh(2 * MS, Segment { flags: RST, seq: 101, ..client() });
    assert_eq!(tale.only(EventKind::Reset).cause, Some("half_open"));
    assert_eq!(tale.only(EventKind::HalfOpen).dir, 0);
    assert_eq!(tale.finish().1.handshake, "half_open");
}

#[test]
fn a_recovery_lasts_until_all_that_was_out_is_acknowledged() {
    let mut tale = Tale::opened();
    for at in 0..5 {
        tale.data(20 * MS + i64::from(at), 101 + at * MSS);
    }
    tale.acked(30 * MS, 101);
    let resent = tale.resent(31 * MS, data(101), Cause::Fast);
    let again = tale.resent(32 * MS, data(1_101), Cause::Fast);
    // Sent while the recovery lasts: not waited for.
    tale.data(33 * MS, 5_101);
    tale.acked(41 * MS, 3_101);
    tale.acked(42 * MS, 5_101);
    tale.acked(50 * MS, 6_101);
    // Judged late, and not in order.
    tale.story.on_judgement(again.0, &again.1);
    tale.story.on_judgement(resent.0, &resent.1);
    let event = tale.only(EventKind::Recovery);
    assert_eq!((event.dir, event.start.time_ns, event.end_ns), (0, 31 * MS, 42 * MS));
    assert_eq!((event.count, event.bytes, event.cause), (2, Some(2_000), Some("sack")));
    assert_eq!((event.end_reason, event.frames.list()), (Some("acknowledged"), &[resent.0, again.0][..]));
    let side = tale.finish().1.sides[0];
    assert_eq!((side.resent_bytes, side.payload_bytes), (2_000, 8_000));
}

#[test]
fn a_timer_that_runs_out_ends_a_recovery_and_starts_a_timeout() {
    let mut tale = Tale::opened();
    (0..5).for_each(|at| tale.data(20 * MS, 101 + at * MSS));
    tale.acked(30 * MS, 101);
    let rows = [
        tale.resent(31 * MS, data(101), Cause::Fast),
        tale.resent(300 * MS, data(101), Cause::Timeout),
        tale.resent(900 * MS, data(101), Cause::Timeout),
    ];
    tale.acked(910 * MS, 1_101);
    let last = tale.resent(911 * MS, data(1_101), Cause::SlowStart);
    tale.acked(920 * MS, 5_101);
    for (row, judgement) in rows.iter().chain([&last]) {
        tale.story.on_judgement(*row, judgement);
    }
    let recovery = tale.only(EventKind::Recovery);
    assert_eq!((recovery.count, recovery.end_ns, recovery.end_reason), (1, 300 * MS, Some("timeout")));
    let timeout = tale.only(EventKind::Timeout);
    assert_eq!((timeout.start.time_ns, timeout.end_ns, timeout.count), (300 * MS, 920 * MS, 3));
    assert_eq!((timeout.cause, timeout.end_reason), (Some("timeout"), Some("acknowledged")));
    assert_eq!(tale.finish().1.sides[0].longest_stall_ns, Some(890 * MS));
}

#[test]
fn late_originals_are_no_recovery_and_needless_ones_say_so() {
    let mut late = Tale::opened();
    late.data(20 * MS, 1_101);
    let row = late.tell(21 * MS, data(101));
    late.story.on_judgement(row, &Judgement::plain(Verdict::Reordered, Evidence::IP_ID));
    late.acked(30 * MS, 2_101);
    assert!(late.finish().0.iter().all(|event| event.kind == EventKind::Handshake));

    let mut needless = Tale::opened();
    needless.data(20 * MS, 101);
    let (row, judgement) = needless.resent(40 * MS, data(101), Cause::Probe);
    needless.acked(41 * MS, 1_101);
    needless.story.on_judgement(row, &Judgement { outcome: Some(Outcome::Spurious), ..judgement });
    let event = needless.only(EventKind::Recovery);
    assert_eq!((event.cause, event.end_reason), (Some("probe"), Some("spurious")));
}

#[test]
fn what_was_acknowledged_before_it_was_sent_again_is_over_with_the_next_ack() {
    let mut tale = Tale::opened();
    tale.data(20 * MS, 101);
    tale.acked(21 * MS, 1_101);
    let (row, judgement) = tale.resent(40 * MS, data(101), Cause::Probe);
    tale.acked(41 * MS, 1_101);
    tale.story.on_judgement(row, &Judgement { outcome: Some(Outcome::Spurious), ..judgement });
    tale.data(1_600 * MS, 1_101);
    tale.acked(1_610 * MS, 2_101);
    let event = tale.only(EventKind::Recovery);
    assert_eq!((event.start.time_ns, event.end_ns, event.end_reason), (40 * MS, 41 * MS, Some("spurious")));
}

#[test]
fn a_closed_window_is_timed_until_it_opens_and_holds_the_sender() {
    let mut tale = Tale::opened();
    tale.data(20 * MS, 101);
    tale.fresh(30 * MS, Segment { window: 0, ..ack_of(1, 501, 1_101) });
    let probe = tale.tell(250 * MS, Segment { seq: 1_100, ack: 501, ..client() });
    tale.story.on_judgement(probe, &Judgement::plain(Verdict::WindowProbe, Evidence::WINDOW));
    tale.fresh(251 * MS, Segment { window: 0, ..ack_of(1, 501, 1_101) });
    // Data of the peer, which the client acknowledges with the number that its probes have: no probe.
    tale.fresh(300 * MS, Segment { window: 0, payload_bytes: 100, ..ack_of(1, 501, 1_101) });
    tale.fresh(301 * MS, ack_of(0, 1_100, 601));
    tale.fresh(530 * MS, ack_of(1, 601, 1_101));
    tale.data(531 * MS, 1_101);
    tale.acked(540 * MS, 2_101);
    let event = tale.only(EventKind::ZeroWindow);
    assert_eq!((event.dir, event.start.time_ns, event.end_ns, event.count), (1, 30 * MS, 530 * MS, 1));
    assert_eq!(event.end_reason, Some("window_update"));
    let limited = tale.only(EventKind::WindowLimited);
    assert_eq!((limited.dir, limited.start.time_ns, limited.end_ns), (0, 30 * MS, 530 * MS));
    let sides = tale.finish().1.sides;
    assert_eq!((sides[1].zero_window_ns, sides[1].zero_window_stalls), (500 * MS, 1));
    assert_eq!((sides[0].window_limited_ns, sides[0].longest_stall_ns), (Some(500 * MS), Some(500 * MS)));
    assert_eq!(sides[1].window_limited_ns, None, "the tap is not at the server");
}

#[test]
fn a_window_of_zero_in_a_reset_or_fin_closes_nothing() {
    let mut tale = Tale::opened();
    tale.data(20 * MS, 101);
    tale.fresh(30 * MS, Segment { flags: FIN | ACK, window: 0, ..ack_of(1, 501, 1_101) });
    tale.fresh(31 * MS, Segment { flags: RST | ACK, window: 0, ..ack_of(1, 502, 1_101) });
    assert!(!tale.finish().0.iter().any(|event| event.kind == EventKind::ZeroWindow));
}

#[test]
fn a_pause_with_everything_acknowledged_is_idle_and_the_end_is_none() {
    let mut tale = Tale::opened();
    tale.data(20 * MS, 101);
    tale.acked(30 * MS, 1_101);
    tale.data(1_030 * MS, 1_101);
    tale.acked(1_040 * MS, 2_101);
    tale.fresh(9_000 * MS, Segment { flags: FIN | ACK, seq: 2_101, ack: 501, ..client() });
    let event = tale.only(EventKind::Idle);
    assert_eq!(
        (event.dir, event.start.time_ns, event.end_ns, event.end_reason),
        (0, 30 * MS, 1_030 * MS, Some("data"))
    );
    let summary = tale.finish().1;
    assert_eq!((summary.sides[0].idle_ns, summary.sides[1].idle_ns), (Some(1_000 * MS), None));
    assert_eq!(summary.closed_by, "fin");
}

/// A sender that an unbroken stream of ACKs clocks: in each round trip it keeps as many segments in flight as `sizes` says.
fn rounds(sizes: &[u32]) -> Tale {
    let mut tale = Tale::opened();
    let (mut sent, mut acked) = (101, 101);
    for (round, size) in (2..).zip(sizes) {
        let mut time_ns = round * 10 * MS;
        let end = sent;
        loop {
            while sent < acked + size * MSS {
                tale.data(time_ns, sent);
                sent += MSS;
            }
            if acked >= end {
                break;
            }
            (acked, time_ns) = (acked + MSS, time_ns + 1_000);
            tale.acked(time_ns, acked);
        }
    }
    tale
}

#[test]
fn growth_by_doubling_is_slow_start_and_slow_growth_is_congestion_avoidance() {
    let mut doubling = rounds(&[2, 4, 8, 16, 32, 32, 32]);
    let event = doubling.only(EventKind::SlowStart);
    assert!(event.count >= 3, "{event:?}");
    assert_eq!((event.dir, event.end_reason), (0, Some("leveled")));
    assert!(event.bytes >= Some(16_000));

    let mut slow = rounds(&[20, 21, 22, 23, 24, 25, 26]);
    let event = slow.only(EventKind::CongestionAvoidance);
    assert!(event.count >= 4 && event.bytes >= Some(24_000), "{event:?}");

    let mut steady = rounds(&[20; 8]);
    assert!(steady.finish().0.iter().all(|event| event.kind == EventKind::Handshake), "no growth, no name");
}

#[test]
fn phases_are_not_told_where_the_tap_is_not_at_the_sender() {
    let mut tale = rounds(&[2, 4, 8, 16, 32, 32, 32]);
    let verdicts = VerdictSummary::default();
    tale.story.finish(&verdicts);
    assert!(tale.story.events().all(|event| event.kind == EventKind::Handshake));
    assert_eq!(tale.story.summary(&verdicts).sides[0].max_in_flight_bytes, None);
}

#[test]
fn an_echo_of_congestion_lasts_until_the_sender_says_cwr() {
    let mut tale = Tale::default();
    tale.fresh(0, Segment { flags: SYN | ECE | CWR, seq: 100, ..client() });
    tale.fresh(10 * MS, Segment { flags: SYN | ACK | ECE, seq: 500, ack: 101, ..server() });
    tale.fresh(11 * MS, ack_of(0, 101, 501));
    tale.fresh(20 * MS, Segment { ecn: 3, ..data(101) });
    tale.data(20 * MS, 1_101);
    tale.fresh(30 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 1_101) });
    tale.fresh(31 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 2_101) });
    tale.fresh(32 * MS, Segment { flags: ACK | CWR, ..data(2_101) });
    tale.acked(42 * MS, 3_101);
    let event = tale.only(EventKind::Ecn);
    assert_eq!((event.dir, event.start.time_ns, event.end_ns, event.count), (0, 20 * MS, 32 * MS, 2));
    assert_eq!((event.cause, event.end_reason), (Some("ce"), Some("cwr")));
    let summary = tale.finish().1;
    assert!(summary.is_ecn_negotiated);
    assert_eq!((summary.sides[1].ece_count, summary.sides[0].cwr_count), (2, 1));
}

#[test]
fn a_mark_on_the_segment_that_says_cwr_is_the_cause_of_the_next_echo() {
    let mut tale = Tale::opened();
    tale.fresh(20 * MS, Segment { ecn: 3, ..data(101) });
    tale.fresh(30 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 1_101) });
    tale.fresh(31 * MS, Segment { ecn: 3, ..data(1_101) });
    tale.fresh(32 * MS, Segment { flags: ACK | CWR, ecn: 3, ..data(2_101) });
    tale.fresh(33 * MS, Segment { ecn: 3, ..data(3_101) });
    tale.fresh(42 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 4_101) });
    let (events, _) = tale.finish();
    let told: Vec<_> = events.iter().filter(|event| event.kind == EventKind::Ecn).collect();
    let of = |at: usize| (told[at].start.time_ns, told[at].cause, told[at].end_reason);
    assert_eq!(told.len(), 2);
    assert_eq!(of(0), (20 * MS, Some("ce"), Some("cwr")));
    assert_eq!(of(1), (32 * MS, Some("ce"), Some("unfinished")));
}

#[test]
fn a_mark_whose_echo_comes_after_the_end_of_the_last_is_the_cause_of_the_next() {
    // No CWR is captured. The mark on the second segment passes before the echo of the first one's ends.
    let marked = |is_marked: bool| {
        let mut tale = Tale::opened();
        tale.fresh(20 * MS, Segment { ecn: 3, ..data(101) });
        tale.fresh(30 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 1_101) });
        tale.data(31 * MS, 1_101);
        tale.fresh(32 * MS, Segment { ecn: if is_marked { 3 } else { 2 }, ..data(2_101) });
        tale.acked(41 * MS, 2_101);
        tale.fresh(42 * MS, Segment { flags: ACK | ECE, ..ack_of(1, 501, 3_101) });
        let (events, _) = tale.finish();
        events.iter().filter(|event| event.kind == EventKind::Ecn).map(|event| event.cause).collect::<Vec<_>>()
    };
    assert_eq!(marked(true), [Some("ce"), Some("ce")]);
    assert_eq!(marked(false), [Some("ce"), Some("ece")]);
}

#[test]
fn an_answer_without_anything_of_the_client_is_no_half_open_connection() {
    let mut tale = Tale::default();
    tale.fresh(0, Segment { flags: SYN | ACK, seq: 500, ack: 101, ..server() });
    tale.fresh(5 * MS, ack_of(1, 501, 151));
    let (events, summary) = tale.finish();
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(summary.handshake, "not_captured");
}

#[test]
fn resets_are_told_apart_by_what_came_before() {
    let reset = || Segment { flags: RST | ACK, ..ack_of(1, 501, 1_101) };
    let mut abort = Tale::opened();
    abort.data(20 * MS, 101);
    abort.fresh(30 * MS, reset());
    assert_eq!(abort.only(EventKind::Reset).cause, Some("abort"));
    assert_eq!(abort.finish().1.closed_by, "rst");

    let mut closed = Tale::opened();
    closed.data(20 * MS, 101);
    closed.fresh(30 * MS, Segment { flags: FIN | ACK, ..ack_of(1, 501, 1_101) });
    closed.fresh(31 * MS, reset());
    closed.fresh(32 * MS, reset());
    let event = closed.only(EventKind::Reset);
    assert_eq!((event.cause, event.count, event.dir), (Some("after_close"), 2, 1));
    assert_eq!(closed.finish().1.closed_by, "fin");

    let mut test_end = Tale::opened();
    test_end.fresh(20 * MS, Segment { payload_bytes: 37, ..data(101) });
    test_end.data(21 * MS, 138);
    test_end.fresh(30 * MS, reset());
    assert_eq!(test_end.only(EventKind::Reset).cause, Some("test_end"));

    let mut lone = Tale::default();
    lone.fresh(0, reset());
    assert_eq!(lone.only(EventKind::Reset).cause, Some("unknown"));
    assert_eq!(lone.finish().1.handshake, "not_captured");
}

#[test]
fn round_trips_follow_karn_and_timestamps() {
    // Without timestamps a resent segment gives no sample.
    let mut plain = Tale::opened();
    plain.data(20 * MS, 101);
    plain.acked(30 * MS, 1_101);
    plain.data(40 * MS, 1_101);
    let _ = plain.resent(60 * MS, data(1_101), Cause::Probe);
    plain.acked(61 * MS, 2_101);
    let side = plain.finish().1.sides[0];
    assert_eq!((side.rtt_min_ns, side.rtt_p99_ns), (Some(10 * MS), Some(10 * MS)));

    // With them the echo names the sending.
    let mut stamped = Tale::opened();
    let stamp = |tsval| Segment { ts: Some((tsval, 7)), ..data(101) };
    stamped.fresh(40 * MS, stamp(1_000));
    let _ = stamped.resent(60 * MS, stamp(1_020), Cause::Probe);
    stamped.fresh(65 * MS, Segment { ts: Some((7, 1_020)), ..ack_of(1, 501, 1_101) });
    assert_eq!(stamped.finish().1.sides[0].rtt_min_ns, Some(5 * MS));
}

#[test]
fn sequence_numbers_may_wrap_in_a_recovery() {
    let mut tale = Tale::default();
    let start = u32::MAX - 1_500;
    tale.fresh(0, data(start));
    tale.data(MS, start.wrapping_add(MSS));
    tale.data(2 * MS, start.wrapping_add(2 * MSS));
    let (row, judgement) = tale.resent(20 * MS, data(start), Cause::Fast);
    tale.acked(30 * MS, start.wrapping_add(3 * MSS));
    tale.story.on_judgement(row, &judgement);
    let event = tale.only(EventKind::Recovery);
    assert_eq!((event.end_ns, event.end_reason), (30 * MS, Some("acknowledged")));
    assert_eq!(tale.finish().1.sides[0].max_in_flight_bytes, Some(3_000));
}

#[test]
fn a_flood_of_events_is_counted_and_not_kept() {
    let mut tale = Tale::opened();
    for at in 0..1_500_u32 {
        tale.data(i64::from(at) * 1_000 * MS + 20 * MS, 101 + at * MSS);
        tale.acked(i64::from(at) * 1_000 * MS + 30 * MS, 1_101 + at * MSS);
    }
    let (events, summary) = tale.finish();
    let listed = events.iter().filter(|event| event.kind == EventKind::Idle).count() as u64;
    let more = events.iter().find(|event| event.kind == EventKind::NotListed).unwrap();
    assert_eq!(listed, crate::analyze::event_list::LISTED_EVENTS as u64);
    // 1,499 pauses and the handshake.
    assert_eq!(listed + more.count, 1_500);
    assert_eq!(summary.sides[0].idle_ns, Some(1_499 * 990 * MS));
}
