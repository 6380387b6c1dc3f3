//! Windows that are read while earlier ones are worked on.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::attic::locked;
use super::tally::NextTime;
use crate::capture::{CaptureFacts, Reader, Record, Window};
use crate::error::Error;

/// So many windows may wait for the one that is worked on: reading and the work on windows take turns in being the longer of
/// the two, and neither shall wait for the other.
const MOST_WAITING: usize = 2;

/// A capture, and what was read of it ahead.
pub(super) struct Ahead {
    reader: Reader,
    read: Read,
}

/// What was read.
#[derive(Default)]
struct Read {
    waiting: VecDeque<Window>,
    /// Met behind the windows that wait.
    failure: Option<Error>,
    is_over: bool,
    /// The records of windows that nobody needs any more.
    spent: Vec<Vec<Record>>,
}

/// The same for several threads.
pub(super) struct Shared<'a> {
    reader: Mutex<&'a mut Reader>,
    read: Mutex<&'a mut Read>,
    is_reading: AtomicBool,
}

impl Ahead {
    pub fn new(reader: Reader) -> Self {
        Self { reader, read: Read::default() }
    }

    pub fn facts(&self) -> &CaptureFacts {
        self.reader.facts()
    }

    /// Whether all windows were taken; if something kept the others from being read, that.
    pub fn is_over(&mut self) -> Result<bool, Error> {
        let is_over = self.read.is_over && self.read.waiting.is_empty();
        self.read.failure.take_if(|_| is_over).map_or(Ok(is_over), Err)
    }

    /// For the threads of one step.
    pub fn share(&mut self) -> Shared<'_> {
        let Self { reader, read } = self;
        Shared { reader: Mutex::new(reader), read: Mutex::new(read), is_reading: AtomicBool::new(false) }
    }
}

impl Shared<'_> {
    /// The next window; `None` where there is none. It is read now where none waits.
    pub fn next(&self) -> Option<Window> {
        let take = || {
            let mut read = locked(&self.read);
            (read.waiting.pop_front(), read.is_over)
        };
        let (window, is_over) = take();
        if window.is_some() || is_over {
            return window;
        }
        self.read_one();
        take().0
    }

    /// The time of the record after those of all windows that were taken.
    pub fn next_time(&self) -> NextTime {
        loop {
            let waiting = {
                let read = locked(&self.read);
                let next = read.waiting.iter().find_map(|window| window.records.first()).map(Record::time);
                if next.is_some() || read.is_over {
                    return next;
                }
                read.waiting.len()
            };
            self.read_to(waiting + 1, || false);
        }
    }

    /// Reads a window where none waits.
    pub fn read_one(&self) {
        self.read_to(1, || false);
    }

    /// Claims the reading of further windows; [`Self::read_on`] must follow. `false` where enough wait, or somebody reads.
    pub fn wants_reader(&self) -> bool {
        let has_room = {
            let read = locked(&self.read);
            !read.is_over && read.waiting.len() < MOST_WAITING
        };
        has_room && !self.is_reading.swap(true, Ordering::Relaxed)
    }

    /// Reads until enough windows wait, or nobody needs them now.
    pub fn read_on(&self, is_needless: impl Fn() -> bool) {
        self.read_to(MOST_WAITING, is_needless);
        self.is_reading.store(false, Ordering::Relaxed);
    }

    fn read_to(&self, most: usize, is_needless: impl Fn() -> bool) {
        let mut reader = locked(&self.reader);
        loop {
            let spent = {
                let mut read = locked(&self.read);
                if read.is_over || read.waiting.len() >= most {
                    return;
                }
                std::mem::take(&mut read.spent)
            };
            if is_needless() {
                return;
            }
            spent.into_iter().for_each(|records| reader.reuse(records));
            let next = reader.next_window();
            let mut read = locked(&self.read);
            match next {
                Ok(Some(window)) => read.waiting.push_back(window),
                Ok(None) => read.is_over = true,
                Err(error) => (read.failure, read.is_over) = (Some(error), true),
            }
        }
    }

    /// Takes back the records of a window that nobody needs any more: see [`Reader::reuse`].
    pub fn reuse(&self, records: Vec<Record>) {
        locked(&self.read).spent.push(records);
    }
}
