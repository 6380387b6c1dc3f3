//! DNS queries, what answered them, and which were asked again.

use std::collections::HashMap;

use super::{HoldLimits, Moment};
use crate::wire::{DnsMessage, Ip, Question};

/// The same question again within this time is the same wish: resolvers try for half a minute at most.
const RETRY_NS: i64 = 30_000_000_000;
/// Questions remembered for that; beyond it the older half is forgotten.
const KEPT_QUESTIONS: usize = 65_536;
/// So many queries of one number are looked through for the one that a response is for.
const MOST_ASKED_AGAIN: usize = 16;

/// Where and when a message was captured, and between whom it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DnsPlace {
    pub file: u16,
    pub frame_no: u64,
    pub time_ns: Option<i64>,
    pub flow_id: Option<u64>,
    pub client: (Ip, u16),
    pub server: (Ip, u16),
    pub vni: Option<u32>,
    pub interface: u32,
    pub at: Moment,
}

/// A query and its response; or a response whose query was not captured.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub place: DnsPlace,
    /// Of the query, or else of the response.
    pub message: DnsMessage,
    pub has_query: bool,
    pub response: Option<(u64, Option<i64>, DnsMessage)>,
    answered: Option<Moment>,
    /// The query of the same number before it.
    earlier: Option<u64>,
    pub retry_count: u32,
    pub duplicate_count: u32,
}

impl Transaction {
    fn new(place: DnsPlace, message: DnsMessage) -> Self {
        Self {
            place,
            message,
            has_query: false,
            response: None,
            answered: None,
            earlier: None,
            retry_count: 0,
            duplicate_count: 0,
        }
    }

    /// Query to response.
    pub fn rtt_ns(&self) -> Option<i64> {
        let (_, answered_ns, _) = self.response.as_ref().filter(|_| self.has_query)?;
        Some(answered_ns.as_ref()? - self.place.time_ns?)
    }

    /// Whether nothing counts for it any more; once true, that stays so.
    fn is_over(&self, now: Moment, limits: &HoldLimits) -> bool {
        !self.has_query || limits.is_over(self.place.at, self.answered, now)
    }
}

/// Client, server, identifier, question, and where a response must be seen.
type Key = (Ip, u16, Ip, u16, Option<Question>, Scope);

/// A response lies in the flow of its query, whatever the virtual network of each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Flow(u64),
    /// Where there were more flows than are told apart: virtual network and interface.
    Place(Option<u32>, u32),
}

/// The last time a client asked something, and how often in vain before.
struct Asked {
    number: u64,
    time_ns: Option<i64>,
    in_vain: u32,
    is_answered: bool,
}

/// Matches responses to queries. Transactions come out in the order of their first frames.
#[derive(Default)]
pub(crate) struct DnsTracker {
    open: HashMap<Key, u64>,
    asked: HashMap<(Ip, Question), Asked>,
    held: crate::flow::HoldQueue<Transaction>,
    limits: HoldLimits,
}

impl DnsTracker {
    pub fn new(limits: HoldLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub fn on_message(&mut self, place: DnsPlace, message: DnsMessage) {
        let key = key_of(&place, &message);
        if message.is_response() {
            self.on_response(key, place, message);
            return;
        }
        let question = key.4.clone();
        let transaction = Transaction { has_query: true, ..Transaction::new(place, message) };
        let number = self.held.push(transaction);
        let earlier = self.open.insert(key, number);
        if let Some(transaction) = self.held.get_mut(number) {
            transaction.earlier = earlier;
        }
        let Some(question) = question else { return };
        self.make_room();
        let asked = self.asked.entry((place.client.0, question));
        let now = |in_vain| Asked { number, time_ns: place.time_ns, in_vain, is_answered: false };
        let in_vain = match &asked {
            std::collections::hash_map::Entry::Occupied(before) => {
                let before = before.get();
                let is_recent = before.time_ns.zip(place.time_ns).is_some_and(|(old, new)| new - old <= RETRY_NS);
                if is_recent && !before.is_answered { before.in_vain + 1 } else { 0 }
            }
            std::collections::hash_map::Entry::Vacant(_) => 0,
        };
        asked.insert_entry(now(in_vain));
        if let Some(transaction) = self.held.get_mut(number) {
            transaction.retry_count = in_vain;
        }
    }

    fn on_response(&mut self, key: Key, place: DnsPlace, message: DnsMessage) {
        if let Some(asked) = key.4.clone().and_then(|question| self.asked.get_mut(&(place.client.0, question))) {
            asked.is_answered = true;
        }
        let latest = self.open.get(&key).copied();
        let waiting = latest.map_or_else(Vec::new, |latest| self.waiting(latest, place.at));
        let response = Some((place.frame_no, place.time_ns, message.clone()));
        if !waiting.is_empty() {
            // Those behind the first that has no answer move up: answers come in the order of the queries.
            let mut next = (response, Some(place.at));
            for number in waiting {
                let Some(query) = self.held.get_mut(number) else { continue };
                std::mem::swap(&mut query.response, &mut next.0);
                std::mem::swap(&mut query.answered, &mut next.1);
            }
            return;
        }
        let latest = latest.and_then(|number| self.held.get_mut(number));
        if let Some(transaction) = latest.filter(|query| !query.is_over(place.at, &self.limits)) {
            transaction.duplicate_count += 1;
            return;
        }
        let response = Some((place.frame_no, place.time_ns, message.clone()));
        self.held.push(Transaction { response, ..Transaction::new(place, message) });
    }

    /// The queries from `latest` back to the last one that has no answer yet, which a further response may be for; none where all
    /// have one. The same number is asked again, or taken again before the first answer came.
    fn waiting(&mut self, latest: u64, now: Moment) -> Vec<u64> {
        let (mut numbers, mut next) = (Vec::new(), Some(latest));
        for _ in 0..MOST_ASKED_AGAIN {
            let Some((number, query)) = next.and_then(|number| Some((number, self.held.get_mut(number)?))) else {
                break;
            };
            next = query.earlier;
            // One that is over may have been given out by now or not.
            if query.is_over(now, &self.limits) {
                continue;
            }
            numbers.push(number);
            if query.response.is_none() {
                return numbers;
            }
        }
        Vec::new()
    }

    fn make_room(&mut self) {
        if self.asked.len() >= KEPT_QUESTIONS {
            let mut numbers: Vec<_> = self.asked.values().map(|asked| asked.number).collect();
            let middle = numbers.len() / 2;
            let (_, median, _) = numbers.select_nth_unstable(middle);
            let median = *median;
            self.asked.retain(|_, asked| asked.number > median);
        }
    }

    /// Hands out what nothing can change any more after `now`; everything where the capture has ended (`None`).
    pub fn release(&mut self, now: Option<Moment>, mut out: impl FnMut(&Transaction)) {
        while let Some(first) = self.held.front() {
            if now.is_some_and(|now| !first.is_over(now, &self.limits)) {
                return;
            }
            let number = self.held.front_number();
            let Some(transaction) = self.held.pop() else { return };
            let key = key_of(&transaction.place, &transaction.message);
            if self.open.get(&key) == Some(&number) {
                self.open.remove(&key);
            }
            out(&transaction);
        }
    }
}

/// Names are the same in either case: some resolvers mix it to make guessing harder.
fn key_of(place: &DnsPlace, message: &DnsMessage) -> Key {
    let question = message
        .question
        .as_ref()
        .map(|question| Question { name: question.name.to_ascii_lowercase(), ..question.clone() });
    let scope = place.flow_id.map_or(Scope::Place(place.vni, place.interface), Scope::Flow);
    (place.client.0, place.client.1, place.server.0, message.id, question, scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::moment::each_late_answer;

    const SECOND: i64 = 1_000_000_000;

    fn place(frame_no: u64, time_ns: i64) -> DnsPlace {
        let end = (Ip::NONE, 5_353);
        DnsPlace {
            file: 0,
            frame_no,
            time_ns: Some(time_ns),
            flow_id: None,
            client: end,
            server: end,
            vni: None,
            interface: 0,
            at: Moment { ns: time_ns, frame: frame_no },
        }
    }

    fn message(id: u16, flags: u16, name: &str) -> DnsMessage {
        let question = Some(Question { name: name.into(), qtype: 1, qclass: 1 });
        let answers = Vec::new();
        let (question_count, answer_count, authority_count, additional_count) = (1, 0, 0, 0);
        DnsMessage { id, flags, question_count, answer_count, authority_count, additional_count, question, answers }
    }

    /// Frame, frame of the response, round trip, retries, duplicates.
    type Told = (u64, Option<u64>, Option<i64>, u32, u32);

    fn all(mut tracker: DnsTracker) -> Vec<Told> {
        let mut rows = Vec::new();
        tracker.release(None, |done| {
            let response = done.response.as_ref().map(|response| response.0);
            rows.push((done.place.frame_no, response, done.rtt_ns(), done.retry_count, done.duplicate_count));
        });
        rows
    }

    #[test]
    fn a_response_belongs_to_the_query_of_its_number_and_question() {
        let mut tracker = DnsTracker::default();
        tracker.on_message(place(1, 0), message(7, 0x100, "a.example"));
        tracker.on_message(place(2, 10), message(8, 0x100, "b.example"));
        // The same number, another question: someone guesses.
        tracker.on_message(place(3, 20), message(7, 0x8180, "evil.example"));
        tracker.on_message(place(4, 30), message(8, 0x8180, "B.Example"));
        tracker.on_message(place(5, 40), message(7, 0x8180, "a.example"));
        tracker.on_message(place(6, 50), message(7, 0x8180, "a.example"));
        let rows = all(tracker);
        assert_eq!(rows, [(1, Some(5), Some(40), 0, 1), (2, Some(4), Some(20), 0, 0), (3, Some(3), None, 0, 0)]);
    }

    #[test]
    fn asking_again_counts_until_it_is_answered_or_forgotten() {
        let mut tracker = DnsTracker::default();
        tracker.on_message(place(1, 0), message(1, 0x100, "svc"));
        tracker.on_message(place(2, 5 * SECOND), message(2, 0x100, "svc"));
        tracker.on_message(place(3, 10 * SECOND), message(3, 0x100, "svc"));
        tracker.on_message(place(4, 10 * SECOND + 1), message(3, 0x8180, "svc"));
        tracker.on_message(place(5, 11 * SECOND), message(4, 0x100, "svc"));
        tracker.on_message(place(6, 60 * SECOND), message(5, 0x100, "svc"));
        assert_eq!(all(tracker).iter().map(|row| row.3).collect::<Vec<_>>(), [0, 1, 2, 0, 0]);
    }

    #[test]
    fn queries_of_one_number_are_answered_in_their_order() {
        let ask = |tracker: &mut DnsTracker, frame, ns| tracker.on_message(place(frame, ns), message(7, 0x100, "svc"));
        let answer =
            |tracker: &mut DnsTracker, frame, ns| tracker.on_message(place(frame, ns), message(7, 0x8180, "svc"));
        // Both come through, and so do both answers; a third one is too many.
        let mut tracker = DnsTracker::default();
        ask(&mut tracker, 1, 0);
        ask(&mut tracker, 2, 10);
        (3..=5).for_each(|frame| answer(&mut tracker, frame, 10 * frame as i64));
        assert_eq!(all(tracker), [(1, Some(3), Some(30), 0, 0), (2, Some(4), Some(30), 1, 1)]);
        // The first was lost: the answer is the second one's.
        let mut tracker = DnsTracker::default();
        ask(&mut tracker, 1, 0);
        ask(&mut tracker, 2, 5 * SECOND);
        answer(&mut tracker, 3, 5 * SECOND + 10);
        assert_eq!(all(tracker), [(1, None, None, 0, 0), (2, Some(3), Some(10), 1, 0)]);
        // The first answer was over before the second question.
        let mut tracker = DnsTracker::default();
        ask(&mut tracker, 1, 0);
        answer(&mut tracker, 2, 10);
        ask(&mut tracker, 3, 2 * SECOND);
        answer(&mut tracker, 4, 2 * SECOND + 10);
        assert_eq!(all(tracker), [(1, Some(2), Some(10), 0, 0), (3, Some(4), Some(10), 0, 0)]);
    }

    #[test]
    fn rows_wait_for_the_answer_and_no_longer_than_asked() {
        let mut tracker = DnsTracker::default();
        tracker.on_message(place(1, 0), message(1, 0x100, "svc"));
        tracker.on_message(place(2, 10), message(2, 0x100, "other"));
        tracker.on_message(place(3, 20), message(2, 0x8180, "other"));
        let mut count = 0;
        let at = |ns| Some(Moment { ns, frame: 4 });
        tracker.release(at(9 * SECOND), |_| count += 1);
        assert_eq!(count, 0, "the first may still be answered");
        tracker.release(at(11 * SECOND), |_| count += 1);
        assert_eq!(count, 2);
    }

    #[test]
    fn what_comes_later_than_it_may_never_counts_whenever_rows_are_handed_out() {
        each_late_answer(|limits, is_often, answers, is_counted| {
            let (mut tracker, mut rows) = (DnsTracker::new(limits), Vec::new());
            tracker.on_message(place(1, 0), message(1, 0x100, "svc"));
            for at in answers {
                if is_often {
                    tracker.release(Some(Moment { frame: at.frame - 1, ..at }), |done| rows.push(done.clone()));
                }
                tracker.on_message(place(at.frame, at.ns), message(1, 0x8180, "svc"));
            }
            tracker.release(None, |done| rows.push(done.clone()));
            let query = rows.first().map(|query| (query.response.is_some(), query.duplicate_count > 0));
            assert_eq!(query, Some(is_counted), "{answers:?}");
            let strays = usize::from(!is_counted.0) + usize::from(!is_counted.1);
            assert_eq!(rows.len(), 1 + strays, "{answers:?}");
        });
    }
}
