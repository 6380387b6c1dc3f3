//! A bounded list of events: the first ones as they are, the rest as one.

use serde::{Deserialize, Serialize};

/// Events that are listed; what comes after is counted in one.
pub const LISTED_EVENTS: usize = 1_000;

/// An event that may stand for all that are not listed.
pub trait ListedEvent: Sized {
    /// The event that stands for this one and all that follow.
    fn as_rest(&self) -> Self;
    /// One more that it stands for.
    fn add_to_rest(&mut self, other: &Self);
}

/// The events of one connection or queue pair so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventList<E> {
    list: Vec<E>,
    rest: Option<Box<E>>,
}

impl<E> Default for EventList<E> {
    fn default() -> Self {
        Self { list: Vec::new(), rest: None }
    }
}

impl<E: ListedEvent> EventList<E> {
    pub fn push(&mut self, event: E) {
        if self.list.len() < LISTED_EVENTS {
            self.list.push(event);
            return;
        }
        match &mut self.rest {
            Some(rest) => rest.add_to_rest(&event),
            None => self.rest = Some(Box::new(event.as_rest())),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.list.iter().chain(self.rest.as_deref())
    }

    /// Leaves out what turned out not to be known.
    pub fn retain(&mut self, keep: impl FnMut(&E) -> bool) {
        self.list.retain(keep);
    }
}
