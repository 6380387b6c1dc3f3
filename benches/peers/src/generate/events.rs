//! A queue of things to happen, in time order and, at the same time, in the order they were asked for.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    asked: u64,
}

impl<E> EventQueue<E> {
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), asked: 0 }
    }

    pub fn at(&mut self, time_ns: u64, event: E) {
        self.asked += 1;
        self.heap.push(Entry { time_ns, order: self.asked, event });
    }

    pub fn next(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|entry| (entry.time_ns, entry.event))
    }

    pub fn next_time_ns(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.time_ns)
    }
}

struct Entry<E> {
    time_ns: u64,
    order: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    // Reversed: `BinaryHeap` gives out the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time_ns, other.order).cmp(&(self.time_ns, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}
