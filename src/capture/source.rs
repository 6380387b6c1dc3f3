//! Where a reader's bytes come from: a stream that fills one buffer after the other.
//!
//! Captures are read, not mapped: a file that is cut while it is mapped ends the process (SIGBUS), and copying from the
//! system's cache costs no more than the page faults of a map would (measured on bulk and on small frames alike).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::buffer::Buffer;
use super::input::Input;
use crate::error::Error;

/// Bytes read before the content is judged.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// How much of the machine one of several files may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Bytes of one buffer.
    pub buffer_bytes: usize,
    /// Memory that a compressed file may demand for its window.
    pub decoder_bytes: u64,
    /// Files are opened anew for each read: a process may not hold very many open.
    pub is_reopened: bool,
}

impl Default for Share {
    fn default() -> Self {
        Self { buffer_bytes: 2 << 20, decoder_bytes: 256 << 20, is_reopened: false }
    }
}

pub(super) struct Source {
    pub reader: Box<dyn Read + Send>,
    /// Bytes taken from it so far, as stored.
    pub stored: Arc<AtomicU64>,
    pub kind: StreamKind,
    pub is_at_end: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// A file; an error ends it, and the rows so far are kept.
    File,
    Compressed,
    /// The caller's own; its errors go back to the caller.
    Reader,
}

pub(super) struct Raw {
    pub reader: Box<dyn Read + Send>,
    /// Size, where known.
    pub bytes: Option<u64>,
    pub kind: StreamKind,
}

pub(super) fn open_raw(input: Input, path: &Path, share: &Share) -> Result<Raw, Error> {
    let stream = |reader, bytes, kind| Raw { reader, bytes, kind };
    match input {
        Input::Bytes(bytes) | Input::NamedBytes(bytes, _) => {
            let length = bytes.len() as u64;
            Ok(stream(Box::new(io::Cursor::new(bytes)), Some(length), StreamKind::File))
        }
        Input::Reader(reader, _) => Ok(stream(reader, None, StreamKind::Reader)),
        Input::Path(name) if name.as_os_str() == "-" => Ok(stream(Box::new(io::stdin()), None, StreamKind::File)),
        Input::Path(name) => {
            let file = File::open(&name).map_err(|error| Error::io(path, error))?;
            let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
            if metadata.is_dir() {
                return Err(Error::io(path, io::ErrorKind::IsADirectory.into()));
            }
            if !metadata.is_file() {
                return Ok(stream(Box::new(file), None, StreamKind::File));
            }
            let bytes = metadata.len();
            if share.is_reopened {
                let reader = Reopened { path: name, at: 0, identity: identity(&metadata) };
                return Ok(stream(Box::new(reader), Some(bytes), StreamKind::File));
            }
            Ok(stream(Box::new(file), Some(bytes), StreamKind::File))
        }
    }
}

/// A file that is open only while it is read from.
struct Reopened {
    path: PathBuf,
    at: u64,
    identity: Option<(u64, u64)>,
}

impl Read for Reopened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = File::open(&self.path)?;
        if identity(&file.metadata()?) != self.identity {
            return Err(io::Error::other("another file took its place while it was read"));
        }
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// A reader that gives the error it was made with once, then nothing.
pub(super) struct Failing(pub Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The first bytes; an interrupted read is taken up again.
pub(super) fn read_head(reader: &mut dyn Read) -> (Vec<u8>, io::Result<()>) {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    let outcome = loop {
        let (now, outcome) = read_up_to(reader, &mut head, filled);
        filled = now;
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => break outcome,
        }
    };
    head.truncate(filled);
    (head, outcome)
}

/// Reads until `bytes` is full or the input ends; returns how far it is filled.
pub(super) fn read_up_to(reader: &mut dyn Read, bytes: &mut [u8], filled: usize) -> (usize, io::Result<()>) {
    let mut filled = filled;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            // A reader of the caller's may claim more than it was given room for.
            Ok(read) => filled = (filled + read).min(bytes.len()),
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// Room for at least `wanted` bytes, from a buffer that no window uses any more where there is one.
pub(super) fn recycled(retired: &mut Vec<Arc<Buffer>>, wanted: usize) -> Vec<u8> {
    let fits = |buffer: &Arc<Buffer>| Arc::strong_count(buffer) == 1 && buffer.bytes.len() >= wanted;
    if let Some(at) = retired.iter().position(fits)
        && let Ok(Buffer { bytes, .. }) = Arc::try_unwrap(retired.swap_remove(at))
    {
        return bytes;
    }
    // Fresh zeros cost nothing until they are written to.
    vec![0; wanted]
}
