//! Between a run and Python: progress, Ctrl-C, and exceptions that must end the run as they are.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use wirelab::{Error, Observer};

use crate::error;

/// So much time passes between two times that Python is asked, at least.
const EVERY: Duration = Duration::from_millis(100);

/// Keeps the exception that ended a run, from wherever in the run it came.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps the first.
    pub fn keep(&self, raised: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
    }

    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Asks Python for signals, and tells it of progress.
pub struct PyObserver {
    progress: Option<Py<PyAny>>,
    raised: Raised,
    asked: Instant,
    last: (u64, Option<u64>),
}

impl PyObserver {
    pub fn new(progress: Option<Py<PyAny>>, raised: Raised) -> Self {
        Self { progress, raised, asked: Instant::now(), last: (0, None) }
    }

    /// Does work without the interpreter lock. An exception that was kept meanwhile goes before the work's own outcome:
    /// it may have been taken for damage of the input on the way.
    pub fn run<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Self) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let raised = self.raised.clone();
        let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(self))));
        if let Some(raised) = raised.take() {
            return Err(raised);
        }
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => Err(error::to_py(py, &failure)),
            Err(panic) => Err(error::panicked(py, panic.as_ref())),
        }
    }

    /// Where whatever calls Python in this run keeps what was raised.
    pub fn raised(&self) -> Raised {
        self.raised.clone()
    }

    /// Asked where nothing is read.
    pub fn go_on(&mut self) -> Result<(), Error> {
        let (done_bytes, total_bytes) = self.last;
        if self.on_progress(done_bytes, total_bytes).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Tells of the end, once.
    pub fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let (done_bytes, total_bytes) = self.last;
        match self.progress.take() {
            Some(progress) => progress.call1(py, (total_bytes.unwrap_or(done_bytes), total_bytes)).map(drop),
            None => Ok(()),
        }
    }
}

impl Observer for PyObserver {
    fn on_progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) -> ControlFlow<()> {
        self.last = (done_bytes, total_bytes);
        if self.asked.elapsed() < EVERY {
            return ControlFlow::Continue(());
        }
        let told = Python::try_attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (done_bytes, total_bytes)).map(drop),
                None => Ok(()),
            }
        });
        // From its end on: a slow one shall not take all the time there is.
        self.asked = Instant::now();
        match told {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(raised)) => {
                self.raised.keep(raised);
                ControlFlow::Break(())
            }
            // The interpreter is going down.
            None => ControlFlow::Break(()),
        }
    }
}
