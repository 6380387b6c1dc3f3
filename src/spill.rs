//! Tables that do not fit memory: written to a temporary file as they come, and mapped back, so that the system keeps of
//! them what is in use.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;

use crate::error::Error;
use crate::tables::TableId;

const BUFFER_BYTES: usize = 1 << 20;
/// Assumed where the system does not tell.
const UNKNOWN_MEMORY_BYTES: u64 = 8 << 30;

/// What tables may take unless the caller says: half of what the machine has, or of what the container is given.
pub(crate) fn default_budget() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let container = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse::<u64>().ok());
    let total = [machine, container].into_iter().flatten().min().unwrap_or(UNKNOWN_MEMORY_BYTES);
    total / 2
}

/// Tables while they are computed: in memory up to a budget, the largest ones beyond it in files.
pub(crate) struct Store {
    budget: u64,
    taken: u64,
    tables: HashMap<TableId, Held>,
}

enum Held {
    Memory { batches: Vec<RecordBatch>, bytes: u64 },
    File(Box<Spilled>),
}

impl Store {
    /// `taken` is what other tables take already.
    pub fn new(budget: u64, taken: u64) -> Self {
        Self { budget, taken, tables: HashMap::new() }
    }

    pub fn add(&mut self, table: TableId, batch: RecordBatch) -> Result<(), Error> {
        let held = self.tables.entry(table).or_insert_with(|| Held::Memory { batches: Vec::new(), bytes: 0 });
        match held {
            Held::File(file) => return file.write(&batch),
            Held::Memory { batches, bytes } => {
                let more = batch.get_array_memory_size() as u64;
                *bytes += more;
                self.taken += more;
                batches.push(batch);
            }
        }
        while self.taken > self.budget && self.spill_largest()? {}
        Ok(())
    }

    /// Puts the largest table that is in memory into a file; whether there was one.
    fn spill_largest(&mut self) -> Result<bool, Error> {
        let size = |held: &Held| match held {
            Held::Memory { bytes, .. } => *bytes,
            Held::File(_) => 0,
        };
        let largest = self.tables.values_mut().filter(|held| size(held) > 0).max_by_key(|held| size(held));
        let Some(held) = largest else { return Ok(false) };
        if let Held::Memory { batches, bytes } = held
            && let Some(first) = batches.first()
        {
            let mut file = Box::new(Spilled::new(first)?);
            // Given back one by one.
            for batch in batches.drain(..) {
                file.write(&batch)?;
            }
            self.taken -= *bytes;
            *held = Held::File(file);
        }
        Ok(true)
    }

    /// The batches of a table, and the memory they take.
    pub fn take(&mut self, table: TableId) -> Result<(Vec<RecordBatch>, u64), Error> {
        match self.tables.remove(&table) {
            None => Ok((Vec::new(), 0)),
            Some(Held::Memory { batches, bytes }) => Ok((batches, bytes)),
            Some(Held::File(file)) => Ok((file.mapped()?, 0)),
        }
    }
}

/// A table in a file. Each batch has dictionaries of its own, which an Arrow stream may replace and an Arrow file may not.
struct Spilled {
    writer: StreamWriter<BufWriter<File>>,
    file: Temporary,
}

impl Spilled {
    fn new(first: &RecordBatch) -> Result<Self, Error> {
        let (file, out) = Temporary::new()?;
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Resend);
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let writer = StreamWriter::try_new_with_options(out, &first.schema(), options);
        Ok(Self { writer: writer.map_err(|error| file.failed(error))?, file })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.writer.write(batch).map_err(|error| self.file.failed(error))
    }

    /// The batches, their columns in the mapped file.
    fn mapped(mut self) -> Result<Vec<RecordBatch>, Error> {
        let finished =
            self.writer.finish().and_then(|()| self.writer.get_mut().get_ref().metadata().map_err(Into::into));
        let bytes = finished.map_err(|error| self.file.failed(error))?.len();
        let map = usize::try_from(bytes)
            .map_err(std::io::Error::other)
            .and_then(|bytes| map(self.writer.get_ref().get_ref(), bytes));
        let map = map.map_err(|error| self.file.no_room(error))?;
        let mut buffer = Buffer::from(bytes::Bytes::from_owner(Mapped { map, _file: self.file }));
        let mut decoder = StreamDecoder::new();
        let mut batches = Vec::new();
        while let Some(batch) = decoder.decode(&mut buffer)? {
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// Maps the first `bytes` bytes of a temporary file of ours.
#[expect(
    unsafe_code,
    reason = "tables beyond the memory budget are used in place; a read would bring them back into memory"
)]
fn map(file: &File, bytes: usize) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: a map is sound as long as nobody cuts or rewrites the file beneath it. This file was made by us, is written no
    // more, and nobody else can open it for writing: it has no name any more, or, where the system cannot do that, one in the
    // directory for temporary files that only its owner may write to. The map is read-only and goes before the file does.
    unsafe { memmap2::MmapOptions::new().len(bytes).map(file) }
}

/// The map goes before the file does.
struct Mapped {
    map: memmap2::Mmap,
    _file: Temporary,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// A file in the directory for temporary ones, gone when nobody uses it any more. Where the system can, it has no name from
/// the beginning, so that not even a crash leaves it.
pub(crate) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    pub fn new() -> Result<(Self, File), Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = std::env::temp_dir();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("wirelab-{}-{number}.tmp", std::process::id()));
            match create(&path) {
                Ok(file) => {
                    #[cfg(unix)]
                    std::fs::remove_file(&path).map_err(|error| Self { path: path.clone() }.no_room(error))?;
                    return Ok((Self { path }, file));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Self { path }.no_room(error)),
            }
        }
    }

    pub fn no_room(&self, source: std::io::Error) -> Error {
        Error::NoRoom { folder: self.path.parent().unwrap_or(&self.path).to_path_buf(), source }
    }

    pub fn unreadable(&self, source: std::io::Error) -> Error {
        Error::io(&self.path, source)
    }

    fn failed(&self, error: ArrowError) -> Error {
        match error {
            ArrowError::IoError(_, source) => self.no_room(source),
            other => Error::Arrow(other),
        }
    }
}

/// A new file that only its owner may look into: frames may hold what is not for everybody.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(not(unix))]
impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
