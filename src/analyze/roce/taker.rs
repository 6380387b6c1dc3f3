//! What the requester has got of its answers, imitated at the tap: which answer it would take next, were it there.

use super::psn::Psn;

/// A requester that misses an answer asks for it at once. One that goes on with new requests so much later does not miss it.
const HEAL_NS: i64 = 10_000_000;

/// What a requester makes of an answer that comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    InPlace,
    /// Answers before it are missing: it is dropped.
    Ahead,
    /// It was taken before.
    Again,
}

/// Where an answer that the requester asks for again was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    BeforeTap,
    AfterTap,
    NotKnown,
}

#[derive(Debug, Default)]
pub(super) struct Taker {
    /// After the last answer that it took; `None` before the first request.
    next: Option<Psn>,
    /// Since when answers have passed ahead of the one that is due.
    gap_since_ns: Option<i64>,
    /// The furthest number answered since it asked again.
    furthest: Option<Psn>,
}

impl Taker {
    pub fn next(&self) -> Option<Psn> {
        self.next
    }

    /// Answers have passed ahead of one that is due.
    pub fn has_gap(&self) -> bool {
        self.gap_since_ns.is_some()
    }

    /// It sends a request for the first time.
    pub fn on_new(&mut self, psn: Psn, time_ns: i64) {
        self.next = self.next.or(Some(psn));
        if self.gap_since_ns.is_some_and(|since| time_ns.saturating_sub(since) >= HEAL_NS) {
            (self.next, self.gap_since_ns) = (self.furthest.map(|furthest| furthest.plus(1)), None);
        }
    }

    /// Data for the number `psn` passes, while the answer to `due` is the next to be taken.
    pub fn on_data(&mut self, psn: Psn, due: Option<Psn>, time_ns: i64) -> Taken {
        self.reach(psn);
        let ahead = due.map_or(0, |due| psn.since(due));
        if ahead < 0 {
            return Taken::Again;
        }
        if ahead > 0 {
            self.gap_since_ns = self.gap_since_ns.or(Some(time_ns));
            return Taken::Ahead;
        }
        (self.next, self.gap_since_ns) = (Some(psn.plus(1)), None);
        Taken::InPlace
    }

    /// An acknowledgement of everything up to `psn` passes. One from beyond an answer that is due shows the requester a gap.
    pub fn on_acknowledged(&mut self, psn: Psn, due: Option<Psn>, time_ns: i64) {
        self.reach(psn);
        match due {
            Some(due) if !psn.is_before(due) => self.gap_since_ns = self.gap_since_ns.or(Some(time_ns)),
            _ if self.next.is_some_and(|next| !psn.is_before(next)) => self.next = Some(psn.plus(1)),
            _ => {}
        }
    }

    fn reach(&mut self, psn: Psn) {
        if self.furthest.is_none_or(|furthest| furthest.is_before(psn)) {
            self.furthest = Some(psn);
        }
    }

    /// Whether answers to later numbers have passed since it asked: by these it may see that the one to `psn` is missing.
    pub fn may_miss(&self, psn: Psn) -> bool {
        self.furthest.is_some_and(|furthest| psn.is_before(furthest))
    }

    /// It goes back to `psn` and drops what comes before the answer to that. `start` is where the answer begins that is due:
    /// some requesters ask for the whole of it again.
    pub fn on_rewind(&mut self, psn: Psn, start: Option<Psn>) -> Missed {
        let missed = match self.next {
            Some(next) if psn.is_before(next) && (self.gap_since_ns.is_none() || start != Some(psn)) => {
                Missed::AfterTap
            }
            _ if self.gap_since_ns.is_some() => Missed::BeforeTap,
            _ => Missed::NotKnown,
        };
        *self = Self { next: Some(psn), ..Self::default() };
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psn(number: u32) -> Psn {
        Psn::new(number)
    }

    fn data(taker: &mut Taker, number: u32) -> Taken {
        taker.on_new(psn(10), 0);
        let due = taker.next();
        taker.on_data(psn(number), due, 0)
    }

    #[test]
    fn answers_behind_a_gap_are_not_taken_and_what_is_asked_for_again_was_lost_before_the_tap() {
        let mut taker = Taker::default();
        assert_eq!([10, 12, 13].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::Ahead, Taken::Ahead]);
        assert!(taker.may_miss(psn(11)));
        assert_eq!(taker.on_rewind(psn(11), None), Missed::BeforeTap);
        assert!(!taker.may_miss(psn(11)));
        // What came behind the gap comes again; 13 is lost this time, though it passed once.
        assert_eq!([11, 12, 14].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::InPlace, Taken::Ahead]);
        assert_eq!(taker.on_rewind(psn(13), None), Missed::BeforeTap);
        assert_eq!([13, 12].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::Again]);
    }

    #[test]
    fn an_answer_that_passed_in_its_place_and_is_asked_for_again_was_lost_behind_the_tap() {
        let mut taker = Taker::default();
        assert_eq!([10, 11].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::InPlace]);
        assert_eq!((taker.may_miss(psn(10)), taker.may_miss(psn(11))), (true, false));
        assert_eq!(taker.on_rewind(psn(10), None), Missed::AfterTap);
        // Nothing has passed since.
        assert_eq!(taker.on_rewind(psn(10), None), Missed::NotKnown);
    }

    #[test]
    fn a_requester_that_goes_on_does_not_miss_what_the_capture_lacks() {
        let mut taker = Taker::default();
        assert_eq!([10, 12].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::Ahead]);
        taker.on_new(psn(13), HEAL_NS);
        assert_eq!(data(&mut taker, 13), Taken::InPlace);
    }

    #[test]
    fn an_acknowledgement_from_beyond_a_missing_answer_is_a_gap() {
        let mut taker = Taker::default();
        assert_eq!(data(&mut taker, 10), Taken::InPlace);
        taker.on_acknowledged(psn(12), None, 0);
        assert_eq!(taker.next(), Some(psn(13)));
        taker.on_acknowledged(psn(20), Some(psn(15)), 0);
        assert_eq!((taker.next(), taker.on_rewind(psn(15), None)), (Some(psn(13)), Missed::BeforeTap));
    }

    #[test]
    fn a_requester_that_asks_for_the_whole_of_a_response_again_does_not_miss_what_came_in_its_place() {
        let mut taker = Taker::default();
        assert_eq!([10, 11, 13].map(|number| data(&mut taker, number)), [Taken::InPlace, Taken::InPlace, Taken::Ahead]);
        assert_eq!(taker.on_rewind(psn(10), Some(psn(10))), Missed::BeforeTap);
    }
}
