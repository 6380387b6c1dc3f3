//! Between two pieces of a step's work: shall the run end here?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rayon::prelude::*;

use crate::observe::Observer;

/// While workers are at it, the observer is asked this often.
const EVERY: Duration = Duration::from_millis(20);

/// Rows that are built between two looks at whether the run shall end.
pub(super) const ROWS_BETWEEN_LOOKS: usize = 4_096;

/// How much of the input was worked on, told by one thread to another.
#[derive(Default)]
pub(super) struct Progress {
    done_bytes: AtomicU64,
    /// 0 where it is not known.
    total_bytes: AtomicU64,
}

impl Progress {
    pub fn set(&self, done_bytes: u64, total_bytes: Option<u64>) {
        self.done_bytes.store(done_bytes, Ordering::Relaxed);
        self.total_bytes.store(total_bytes.unwrap_or(0), Ordering::Relaxed);
    }

    fn get(&self) -> (u64, Option<u64>) {
        let total_bytes = self.total_bytes.load(Ordering::Relaxed);
        (self.done_bytes.load(Ordering::Relaxed), Some(total_bytes).filter(|bytes| *bytes > 0))
    }
}

/// Asks the observer, and remembers that it said no.
pub(super) struct Asker<'a> {
    observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
    progress: &'a Progress,
}

impl<'a> Asker<'a> {
    pub fn new(observer: &'a mut dyn Observer, stop: &'a AtomicBool, progress: &'a Progress) -> Self {
        Self { observer, stop, progress }
    }

    pub fn is_over(&mut self) -> bool {
        // Nobody is asked again who said so.
        let (done_bytes, total_bytes) = self.progress.get();
        let is_over =
            self.stop.load(Ordering::Relaxed) || self.observer.on_progress(done_bytes, total_bytes).is_break();
        self.stop.store(is_over, Ordering::Relaxed);
        is_over
    }

    /// Has the pool work, where there is one, else the calling thread. The work may ask, as often as it likes, that the pool
    /// does `read` as well; `beside` is done by the calling thread, meanwhile where it can.
    pub fn run(
        &mut self,
        pool: Option<&rayon::ThreadPool>,
        work: impl FnOnce(&mut Gate<'_, '_>, &dyn Fn()) + Send,
        read: impl Fn() + Sync,
        beside: impl FnOnce(),
    ) {
        let stop = self.stop;
        let Some(pool) = pool else {
            work(&mut Gate { stop, asker: Some(self) }, &|| {});
            return beside();
        };
        let read = &read;
        pool.in_place_scope(|scope| {
            // Dropped with the work's end, also by a panic.
            let (sender, receiver) = sync_channel::<()>(0);
            scope.spawn(move |scope| {
                let read_on = || {
                    let sender = sender.clone();
                    scope.spawn(move |_| {
                        let _sender = sender;
                        read();
                    });
                };
                work(&mut Gate { stop, asker: None }, &read_on);
            });
            beside();
            while receiver.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) && !self.is_over() {}
        });
    }
}

/// Where work in pieces stops. Without an asker it is done by a pool, inside of which it must be used.
pub(crate) struct Gate<'g, 'a> {
    stop: &'g AtomicBool,
    asker: Option<&'g mut Asker<'a>>,
}

impl Gate<'_, '_> {
    pub fn is_parallel(&self) -> bool {
        self.asker.is_none()
    }

    pub fn is_shut(&mut self) -> bool {
        self.asker.as_mut().is_some_and(|asker| asker.is_over()) || self.stop.load(Ordering::Relaxed)
    }

    /// Does two things, side by side where a pool does them, else in this order.
    pub fn both(&mut self, one: impl FnOnce(&mut Gate<'_, '_>) + Send, other: impl FnOnce(&mut Gate<'_, '_>) + Send) {
        if self.is_parallel() {
            let stop = self.stop;
            rayon::join(|| one(&mut Gate { stop, asker: None }), || other(&mut Gate { stop, asker: None }));
        } else {
            one(self);
            other(self);
        }
    }

    /// Works on each item, side by side where a pool does it; on none that is left when the run is to end.
    pub fn each<T: Send>(&mut self, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        if self.is_parallel() {
            let stop = self.stop;
            items.par_iter_mut().enumerate().for_each(|(at, item)| {
                if !stop.load(Ordering::Relaxed) {
                    work(at, item);
                }
            });
        } else {
            for (at, item) in items.iter_mut().enumerate() {
                if self.is_shut() {
                    return;
                }
                work(at, item);
            }
        }
    }
}
