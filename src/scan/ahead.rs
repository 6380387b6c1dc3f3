//! Windows that are read while an earlier one is worked on.

use std::collections::VecDeque;

use super::gate::Beside;
use crate::capture::{CaptureFacts, Reader, Record, Window};
use crate::error::Error;

/// So many windows may wait for the one that is worked on: reading and the work on windows take turns in being the longer of
/// the two, and neither shall wait for the other.
const MOST_WAITING: usize = 2;

/// A capture, and what was read of it ahead.
pub(super) struct Ahead {
    reader: Reader,
    waiting: VecDeque<Window>,
    /// Met behind the windows that wait.
    failure: Option<Error>,
    is_over: bool,
    pub place: Beside,
}

impl Ahead {
    pub fn new(reader: Reader, place: Beside) -> Self {
        Self { reader, waiting: VecDeque::new(), failure: None, is_over: false, place }
    }

    /// The next window; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Window>, Error> {
        self.fill(|| false);
        match self.waiting.pop_front() {
            Some(window) => Ok(Some(window)),
            None => self.failure.take().map_or(Ok(None), Err),
        }
    }

    /// Reads a window if none waits, and further ones while `is_busy`, unless reading may have to wait for somebody.
    pub fn fill(&mut self, is_busy: impl Fn() -> bool) {
        let most = if self.place == Beside::InPool { MOST_WAITING } else { 1 };
        while !self.is_over && (self.waiting.is_empty() || self.waiting.len() < most && is_busy()) {
            match self.reader.next_window() {
                Ok(Some(window)) => self.waiting.push_back(window),
                Ok(None) => self.is_over = true,
                Err(error) => (self.failure, self.is_over) = (Some(error), true),
            }
        }
    }

    /// Takes back the records of a window that nobody needs any more: see [`Reader::reuse`].
    pub fn reuse(&mut self, records: Vec<Record>) {
        self.reader.reuse(records);
    }

    pub fn facts(&self) -> &CaptureFacts {
        self.reader.facts()
    }
}
