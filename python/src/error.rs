//! The core's errors as the exceptions that Python users expect.

use std::any::Any;
use std::io::ErrorKind;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use wirelab::{Error, Lang};

/// The exception for an error of the core.
pub fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failure| failure)
}

/// The exception for a fault of our own that was caught.
pub fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("wirelab has a fault, please report it: {}", what.unwrap_or("unknown panic"));
    named(py, "WirelabError", &message).unwrap_or_else(|failure| failure)
}

pub fn usage(py: Python<'_>, message: &str) -> PyErr {
    named(py, "UsageError", message).unwrap_or_else(|failure| failure)
}

/// The same, in both languages.
pub fn usage_in(py: Python<'_>, english: &str, chinese: &str) -> PyErr {
    let error = usage(py, english);
    let said = || -> PyResult<()> {
        let messages = PyDict::new(py);
        messages.set_item("en", english)?;
        messages.set_item("zh", chinese)?;
        error.value(py).setattr("messages", messages)
    };
    // Without them the English message is there all the same.
    let _ = said();
    error
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let message = error.message(Lang::En);
    let raised = match error {
        Error::Io { path, source } | Error::Write { path, source } => {
            os_error(py, &path.display().to_string(), source, None)?
        }
        Error::NoRoom { folder, source } => os_error(py, &folder.display().to_string(), source, Some(&message))?,
        Error::NotACapture { path, looks_like } => {
            let raised = named(py, "NotACaptureError", &message)?;
            raised.value(py).setattr("path", path.display().to_string())?;
            raised.value(py).setattr("looks_like", looks_like.to_string())?;
            raised
        }
        Error::Limit { limit, .. } => {
            let raised = named(py, "LimitError", &message)?;
            raised.value(py).setattr("limit", *limit)?;
            raised
        }
        Error::Sql { fault, offset, .. } => {
            let class = if fault.limit().is_some() { "QueryLimitError" } else { "SqlError" };
            let raised = named(py, class, &message)?;
            raised.value(py).setattr("offset", *offset)?;
            if let Some(limit) = fault.limit() {
                raised.value(py).setattr("limit", limit)?;
            }
            raised
        }
        Error::Usage(_) | Error::NoTable { .. } | Error::NoColumn { .. } | Error::NoLab { .. } => {
            named(py, "UsageError", &message)?
        }
        // An observer of ours stops a run for a reason that it keeps; this is for one that has none.
        Error::Cancelled => PyKeyboardInterrupt::new_err(message.clone()),
        _ => named(py, "WirelabError", &message)?,
    };
    let messages = PyDict::new(py);
    messages.set_item("en", message)?;
    messages.set_item("zh", error.message(Lang::Zh))?;
    raised.value(py).setattr("messages", messages)?;
    Ok(raised)
}

/// `OSError(errno, text, file name)` makes the right subclass by itself. The text is the system's, or `message`.
fn os_error(py: Python<'_>, path: &str, source: &std::io::Error, message: Option<&str>) -> PyResult<PyErr> {
    let symbol = match source.kind() {
        ErrorKind::NotFound => Some("ENOENT"),
        ErrorKind::PermissionDenied => Some("EACCES"),
        ErrorKind::IsADirectory => Some("EISDIR"),
        ErrorKind::NotADirectory => Some("ENOTDIR"),
        ErrorKind::BrokenPipe => Some("EPIPE"),
        ErrorKind::StorageFull => Some("ENOSPC"),
        _ => None,
    };
    let number: Option<i32> = match symbol {
        Some(symbol) => Some(py.import("errno")?.getattr(symbol)?.extract()?),
        None => source.raw_os_error(),
    };
    Ok(match number {
        Some(number) => {
            let text = match message {
                Some(message) => message.to_owned(),
                None => py.import("os")?.call_method1("strerror", (number,))?.extract()?,
            };
            PyErr::from_value(py.get_type::<PyOSError>().call1((number, text, path))?)
        }
        None => PyOSError::new_err(message.map_or_else(|| format!("{path}: {source}"), str::to_owned)),
    })
}

/// An exception of the package: they have two parents each, so they are made in Python.
fn named(py: Python<'_>, name: &'static str, message: &str) -> PyResult<PyErr> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("wirelab._errors").map(Bound::unbind))?;
    let class: Bound<'_, PyType> = module.bind(py).getattr(name)?.cast_into()?;
    Ok(PyErr::from_value(class.call1((message,))?))
}
