//! Several captures at once, in bounded memory; progress and stopping on the calling thread.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rayon::ThreadPool;

use super::capture::{Failure, convert};
use super::dataset::{Dataset, Record};
use super::plan::Group;
use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;

/// The observer is asked this often.
const EVERY: Duration = Duration::from_millis(50);
/// Memory that all captures together are expected to take.
const BUDGET_BYTES: u64 = 1 << 30;
/// What a large capture of many flows takes with all tables, measured; small ones take less.
const CAPTURE_BYTES: u64 = 512 << 20;
const LEAST_BYTES: u64 = 8 << 20;
/// Most memory for a stored byte of a capture that is small: nine were measured for plain ones of small frames, and
/// compressed ones grow.
const GROWTH: u64 = 20;

/// What all captures of a run share.
pub(super) struct Run<'a> {
    pub dataset: &'a Dataset,
    pub options: &'a Options,
    pub made_with: &'a serde_json::Value,
    pub pool: Option<Arc<ThreadPool>>,
    /// Captures at once.
    pub jobs: usize,
}

struct Shared {
    next: AtomicUsize,
    is_stopped: AtomicBool,
    done_bytes: Vec<AtomicU64>,
    room: Room,
}

/// Memory that is left for further captures.
struct Room {
    left: Mutex<u64>,
    freed: Condvar,
}

impl Run<'_> {
    /// Converts the groups that miss something; the outcomes come in their order.
    pub fn all(&self, groups: &[&Group], observer: &mut dyn Observer) -> Result<Vec<Result<Record, Error>>, Error> {
        let total: u64 = groups.iter().map(|group| group.bytes()).sum();
        let shared = Shared {
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            done_bytes: groups.iter().map(|_| AtomicU64::new(0)).collect(),
            room: Room { left: Mutex::new(BUDGET_BYTES), freed: Condvar::new() },
        };
        let mut outcomes: Vec<Option<Result<Record, Error>>> = groups.iter().map(|_| None).collect();
        // Also where nothing is to be done.
        let mut fatal = observer.on_progress(0, Some(total)).is_break().then_some(Error::Cancelled);
        if fatal.is_some() {
            shared.is_stopped.store(true, Ordering::Relaxed);
        }
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for _ in 0..self.jobs.min(groups.len()) {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || {
                    while let Some((at, outcome)) = self.next(groups, shared) {
                        if sender.send((at, outcome)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(EVERY) {
                    Ok((at, Err(Failure::Output(error)))) => {
                        shared.is_stopped.store(true, Ordering::Relaxed);
                        let _ = fatal.get_or_insert(error);
                        outcomes[at] = None;
                    }
                    Ok((at, Err(Failure::Input(error)))) => outcomes[at] = Some(Err(error)),
                    Ok((at, Ok(record))) => outcomes[at] = Some(Ok(record)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                let done: u64 = shared.done_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
                if observer.on_progress(done.min(total), Some(total)).is_break() {
                    shared.is_stopped.store(true, Ordering::Relaxed);
                    let _ = fatal.get_or_insert(Error::Cancelled);
                }
            }
        });
        // Asked to stop when the last capture was as good as done, it was not stopped.
        let is_over = |outcome: &Option<Result<_, _>>| !matches!(outcome, None | Some(Err(Error::Cancelled)));
        match fatal {
            Some(Error::Cancelled) if outcomes.iter().all(is_over) => {}
            Some(error) => return Err(error),
            None => {}
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(Error::Cancelled))).collect())
    }

    /// Converts the group that is due next.
    fn next(&self, groups: &[&Group], shared: &Shared) -> Option<(usize, Result<Record, Failure>)> {
        let at = shared.next.fetch_add(1, Ordering::Relaxed);
        let group = groups.get(at)?;
        let taken = (group.bytes().saturating_mul(GROWTH)).clamp(LEAST_BYTES, CAPTURE_BYTES);
        shared.room.take(taken);
        let outcome = if shared.is_stopped.load(Ordering::Relaxed) {
            Err(Failure::Input(Error::Cancelled))
        } else {
            let mut watch = Watch { shared, at };
            let work = || {
                let (pool, is_stopped) = (self.pool.as_ref(), &shared.is_stopped);
                convert(self.dataset, group, self.options, self.made_with, pool, is_stopped, &mut watch)
            };
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::Input(fault(panic.as_ref()))))
        };
        shared.done_bytes[at].store(group.bytes(), Ordering::Relaxed);
        shared.room.give(taken);
        Some((at, outcome))
    }
}

/// A fault of our own is told like that of a file: it must not stop the others.
fn fault(panic: &(dyn std::any::Any + Send)) -> Error {
    let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::Usage(format!("wirelab has a fault, please report it: {}", what.unwrap_or("unknown panic")))
}

impl Room {
    fn take(&self, bytes: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while *left < bytes {
            left = self.freed.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        *left -= bytes;
    }

    fn give(&self, bytes: u64) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        self.freed.notify_all();
    }
}

/// Notes how far a capture has come, and stops it with the others.
struct Watch<'a> {
    shared: &'a Shared,
    at: usize,
}

impl Observer for Watch<'_> {
    fn on_progress(&mut self, done_bytes: u64, _total_bytes: Option<u64>) -> ControlFlow<()> {
        self.shared.done_bytes[self.at].store(done_bytes, Ordering::Relaxed);
        if self.shared.is_stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
