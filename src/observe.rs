//! Progress and stopping are one question, asked on the calling thread.

use std::ops::ControlFlow;

/// Told how far a run has come; may end it.
pub trait Observer {
    /// Called at least once per window of input (at most 16 MiB), and between the parts of the work on it. `done_bytes` counts input as stored (compressed bytes for
    /// a compressed file); `total_bytes` is `None` where the size is not known. `Break` ends the run with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn on_progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) -> ControlFlow<()>;
}

/// An observer that watches nothing and never stops a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn on_progress(&mut self, _done_bytes: u64, _total_bytes: Option<u64>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
