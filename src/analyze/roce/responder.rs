//! The responder of a queue pair, imitated at the tap: which requests it would take, were it there.

use super::psn::Psn;

/// Gaps that are remembered until the responder complains of them.
const GAPS: usize = 16;

/// What a responder makes of a request that comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    InOrder,
    /// Numbers before it are missing; with `true` it is the first that shows it.
    OutOfSequence(bool),
    Duplicate,
}

/// Where what the responder misses was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    BeforeTap,
    AfterTap,
    NotKnown,
}

#[derive(Debug, Default)]
pub(super) struct Responder {
    /// The number it waits for; `None` before the first request.
    next: Option<Psn>,
    /// It has complained of a gap and drops all until the number it waits for comes.
    is_complaining: bool,
    gaps: [Option<Psn>; GAPS],
    next_gap: usize,
}

impl Responder {
    pub fn start_at(&mut self, psn: Psn) {
        self.next = self.next.or(Some(psn));
    }

    pub fn next(&self) -> Option<Psn> {
        self.next
    }

    /// A request over a reliable service.
    pub fn on_request(&mut self, psn: Psn, span: u32) -> Model {
        let next = *self.next.get_or_insert(psn);
        match psn.since(next) {
            0 => {
                self.next = Some(psn.plus(span));
                self.is_complaining = false;
                Model::InOrder
            }
            behind if behind < 0 => Model::Duplicate,
            _ if self.is_complaining => Model::OutOfSequence(false),
            _ => {
                self.is_complaining = true;
                self.gaps[self.next_gap] = Some(next);
                self.next_gap = (self.next_gap + 1) % GAPS;
                Model::OutOfSequence(true)
            }
        }
    }

    /// An unreliable service takes what comes, and drops the message that misses something.
    pub fn on_unreliable(&mut self, psn: Psn) -> Model {
        let next = *self.next.get_or_insert(psn);
        let ahead = psn.since(next);
        if ahead < 0 {
            return Model::Duplicate;
        }
        self.next = Some(psn.plus(1));
        if ahead == 0 { Model::InOrder } else { Model::OutOfSequence(true) }
    }

    /// It says that it waits for `psn`.
    pub fn on_nak(&mut self, psn: Psn) -> Missing {
        if let Some(gap) = self.gaps.iter_mut().find(|gap| **gap == Some(psn)) {
            *gap = None;
            return Missing::BeforeTap;
        }
        let Some(next) = self.next else { return Missing::NotKnown };
        if psn.is_before(next) {
            // It passed here and did not arrive: so did nothing after it.
            self.next = Some(psn);
            self.is_complaining = true;
            return Missing::AfterTap;
        }
        Missing::NotKnown
    }

    /// It waits for `psn`, which the tap had taken for received.
    pub fn wait_for(&mut self, psn: Psn) {
        self.next = Some(psn);
        self.is_complaining = false;
    }

    /// It was not ready for the request at `psn`.
    pub fn on_refused(&mut self, psn: Psn) {
        if self.next.is_some_and(|next| psn.is_before(next)) {
            self.next = Some(psn);
            self.is_complaining = false;
        }
    }

    /// It says that everything before `psn` is there. Returns how many numbers the tap has not seen in their places.
    pub fn on_acknowledged(&mut self, psn: Psn) -> u32 {
        let missed = self.next.map_or(0, |next| psn.since(next).max(0) as u32);
        if missed > 0 {
            self.next = Some(psn);
            self.is_complaining = false;
        }
        missed
    }

    pub fn correct_next(&mut self, psn: Psn) {
        self.next = Some(psn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psn(number: u32) -> Psn {
        Psn::new(number)
    }

    #[test]
    fn a_gap_is_complained_of_once_until_its_number_comes() {
        let mut responder = Responder::default();
        assert_eq!(responder.on_request(psn(0xff_fffe), 1), Model::InOrder);
        assert_eq!(responder.on_request(psn(0), 1), Model::OutOfSequence(true));
        assert_eq!(responder.on_request(psn(1), 1), Model::OutOfSequence(false));
        assert_eq!(responder.on_nak(psn(0xff_ffff)), Missing::BeforeTap);
        assert_eq!(responder.on_request(psn(0xff_ffff), 1), Model::InOrder);
        assert_eq!(responder.on_request(psn(0), 1), Model::InOrder);
        assert_eq!(responder.on_request(psn(0xff_ffff), 1), Model::Duplicate);
        assert_eq!(responder.on_request(psn(2), 1), Model::OutOfSequence(true));
    }

    #[test]
    fn a_read_takes_as_many_numbers_as_its_response_has_packets() {
        let mut responder = Responder::default();
        assert_eq!(responder.on_request(psn(10), 4), Model::InOrder);
        assert_eq!(responder.next(), Some(psn(14)));
        assert_eq!(responder.on_request(psn(12), 2), Model::Duplicate);
        assert_eq!(responder.on_request(psn(14), 1), Model::InOrder);
    }

    #[test]
    fn what_passed_the_tap_and_is_missed_was_lost_after_it() {
        let mut responder = Responder::default();
        (0..5).for_each(|number| assert_eq!(responder.on_request(psn(number), 1), Model::InOrder));
        assert_eq!(responder.on_nak(psn(2)), Missing::AfterTap);
        assert_eq!(responder.on_request(psn(5), 1), Model::OutOfSequence(false));
        assert_eq!(responder.on_request(psn(2), 1), Model::InOrder);
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_seen_moves_it_on() {
        let mut responder = Responder::default();
        responder.on_request(psn(7), 1);
        assert_eq!((responder.on_acknowledged(psn(8)), responder.on_acknowledged(psn(11))), (0, 3));
        assert_eq!(responder.on_request(psn(11), 1), Model::InOrder);
    }
}
