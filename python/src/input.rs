//! What a caller hands in as a capture, as the core's inputs.

use std::io::{self, Read};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use wirelab::Input;

use crate::error::usage;
use crate::observer::Raised;

/// Paths (text or path-like), content (bytes), or `(file-like, name)`; the package has told them apart.
pub fn inputs(given: Vec<Bound<'_, PyAny>>, raised: &Raised) -> PyResult<Vec<Input>> {
    given.iter().map(|given| input(given, raised)).collect()
}

fn input(given: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Input> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Input::Bytes(bytes.as_bytes().into()));
    }
    if let Ok((file, name)) = given.extract::<(Py<PyAny>, String)>() {
        let reader = PyReader { file, raised: raised.clone(), left: Vec::new(), at: 0 };
        return Ok(Input::Reader(Box::new(reader), name));
    }
    given.extract::<PathBuf>().map(Input::Path)
}

/// Reads from a Python object with `read(n)`.
struct PyReader {
    file: Py<PyAny>,
    raised: Raised,
    /// What the object gave beyond what was asked for.
    left: Vec<u8>,
    at: usize,
}

impl Read for PyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.left.len() {
            let read = Python::try_attach(|py| {
                py.check_signals()?;
                read_once(py, &self.file, buffer, &mut self.left)
            });
            self.at = 0;
            return match read {
                Some(Ok(Some(read))) => Ok(read),
                Some(Ok(None)) => self.take_left(buffer),
                Some(Err(raised)) => {
                    let told = io::Error::other(raised.to_string());
                    self.raised.keep(raised);
                    Err(told)
                }
                None => Err(io::Error::other("the interpreter is going down")),
            };
        }
        self.take_left(buffer)
    }
}

impl PyReader {
    fn take_left(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&self.left[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// The bytes of one `read`, in `buffer` if they fit, else in `left` (`None`).
fn read_once(py: Python<'_>, file: &Py<PyAny>, buffer: &mut [u8], left: &mut Vec<u8>) -> PyResult<Option<usize>> {
    let given = file.bind(py).call_method1("read", (buffer.len(),))?;
    let copied;
    let bytes = match given.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes(),
        Err(_) => {
            copied = bytes_of(&given)?;
            copied.as_slice()
        }
    };
    left.clear();
    if let Some(room) = buffer.get_mut(..bytes.len()) {
        room.copy_from_slice(bytes);
        return Ok(Some(bytes.len()));
    }
    left.extend_from_slice(bytes);
    Ok(None)
}

fn bytes_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = given.py();
    if let Ok(bytes) = given.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    let kind = given.get_type().name()?.to_string();
    if kind == "memoryview" {
        return given.call_method0("tobytes")?.extract();
    }
    Err(usage(py, &format!("read() gave {kind}, not bytes; open the file in binary mode (\"rb\")")))
}
