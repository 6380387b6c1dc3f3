//! One capture of the dataset: read once, all its tables written as they come.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rayon::ThreadPool;

use super::DatasetFormat;
use super::dataset::{Dataset, Record, Written};
use super::parquet::ParquetFile;
use super::plan::Group;
use super::schema::{facts, schema};
use crate::capture::Input;
use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;
use crate::scan::{Engine, ScanRequest};
use crate::tables::TableId;
use crate::words::Lang;
use crate::write::{TableFormat, TableWriter};

const BUFFER_BYTES: usize = 256 << 10;
/// Files that are waited for at a time.
const SYNCS: usize = 6;
/// Steps of the run whose batches may wait for the writer.
const WAITING: usize = 2;
/// Rows that are encoded between two looks at whether to stop; the same for all threads, so that files are the same.
const SLICE_ROWS: usize = 8_192;

/// Why a capture was not converted.
pub(super) enum Failure {
    /// Its files are at fault; others may do better.
    Input(Error),
    /// The dataset cannot be written: no other capture will do better.
    Output(Error),
}

type Batches = Vec<(TableId, RecordBatch)>;

/// Reads the files of a group and puts its missing tables into the dataset, unless it is to stop before all are whole.
pub(super) fn convert(
    dataset: &Dataset,
    group: &Group,
    options: &Options,
    made_with: &serde_json::Value,
    pool: Option<&std::sync::Arc<ThreadPool>>,
    is_stopped: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Record, Failure> {
    for file in &group.files {
        if let Err(error) = &file.stamp {
            let copy = error
                .raw_os_error()
                .map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error);
            return Err(Failure::Input(Error::Io { path: file.path.clone(), source: copy }));
        }
    }
    let inputs = group.files.iter().map(|file| Input::Path(file.path.clone())).collect();
    let requests: Vec<_> = group.missing.iter().map(|table| ScanRequest::new(*table)).collect();
    // What is said of a capture must not depend on how much memory there is.
    let options = Options { memory_budget_bytes: None, ..options.clone() };
    let mut engine = Engine::with_pool(inputs, &options, &requests, pool.cloned()).map_err(Failure::Input)?;
    let mut files = Files::new(dataset, group, pool.map(AsRef::as_ref), is_stopped);
    match pool {
        None => {
            while let Some(batches) = engine.step(observer).map_err(Failure::Input)? {
                files.write(batches)?;
            }
            files.finish()?;
        }
        // Rows are encoded and written while the next ones are found.
        Some(_) => std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Batches>(WAITING);
            let files = &mut files;
            let writer = scope.spawn(move || {
                while let Ok(batches) = receiver.recv() {
                    files.write(batches)?;
                }
                Ok(())
            });
            let read = loop {
                match engine.step(observer) {
                    Ok(Some(batches)) => {
                        // A writer that is gone has an error to tell.
                        if !batches.is_empty() && sender.send(batches).is_err() {
                            break Ok(());
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(Failure::Input(error)),
                }
            };
            drop(sender);
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written.and(read)
        })
        .and_then(|()| files.finish())?,
    }
    let [english, chinese] = [Lang::En, Lang::Zh].map(|lang| engine.warnings(lang));
    let mut tables = group.kept.as_ref().map(|record| record.tables.clone()).unwrap_or_default();
    tables.extend(files.done.iter().map(|(table, written)| (table.name().to_owned(), *written)));
    let record = Record {
        inputs: group.stamps(),
        made_with: made_with.clone(),
        tables,
        unfinished: Vec::new(),
        warnings: english.into_iter().zip(chinese).collect(),
    };
    let parts: Vec<_> = group.missing.iter().map(|table| (*table, files.part(*table))).collect();
    dataset.commit(&group.name, &parts, &record).map_err(Failure::Output)?;
    Ok(record)
}

/// The files of a group while they are written. What was not put in its place is removed.
struct Files<'a> {
    dataset: &'a Dataset,
    group: &'a Group,
    pool: Option<&'a ThreadPool>,
    is_stopped: &'a AtomicBool,
    open: BTreeMap<TableId, Open>,
    done: BTreeMap<TableId, Written>,
}

struct Open {
    inner: Inner,
    rows: u64,
}

enum Inner {
    Parquet(Box<ParquetFile<BufWriter<File>>>),
    Arrow(Box<TableWriter<BufWriter<File>>>),
}

impl<'a> Files<'a> {
    fn new(dataset: &'a Dataset, group: &'a Group, pool: Option<&'a ThreadPool>, is_stopped: &'a AtomicBool) -> Self {
        Self { dataset, group, pool, is_stopped, open: BTreeMap::new(), done: BTreeMap::new() }
    }

    /// Whoever asked for the end does not wait for rows that are thrown away.
    fn go_on(&self) -> Result<(), Failure> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(Failure::Input(Error::Cancelled)) } else { Ok(()) }
    }

    fn part(&self, table: TableId) -> PathBuf {
        self.dataset.part(&format!("{}.{}", self.group.name, table.name()))
    }

    fn failed(&self, table: TableId, error: ArrowError) -> Failure {
        let source = match error {
            ArrowError::IoError(_, source) => source,
            other => io::Error::other(other),
        };
        Failure::Output(Error::Write { path: self.dataset.place(table, &self.group.name), source })
    }

    fn write(&mut self, batches: Batches) -> Result<(), Failure> {
        for (table, batch) in batches {
            let mut start = 0;
            while start < batch.num_rows() {
                self.go_on()?;
                let slice = batch.slice(start, SLICE_ROWS.min(batch.num_rows() - start));
                self.write_one(table, &slice).map_err(|error| self.failed(table, error))?;
                start += SLICE_ROWS;
            }
        }
        Ok(())
    }

    fn write_one(&mut self, table: TableId, batch: &RecordBatch) -> Result<(), ArrowError> {
        if !self.open.contains_key(&table) {
            let open = self.create(table)?;
            self.open.insert(table, open);
        }
        let Some(open) = self.open.get_mut(&table) else { return Ok(()) };
        open.rows += batch.num_rows() as u64;
        match &mut open.inner {
            Inner::Parquet(file) => file.write(batch, self.pool),
            Inner::Arrow(file) => file.write(batch),
        }
    }

    fn create(&self, table: TableId) -> Result<Open, ArrowError> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(self.part(table))?);
        let schema = schema(table);
        let inner = match self.dataset.format() {
            DatasetFormat::Parquet => Inner::Parquet(Box::new(ParquetFile::new(out, &schema, facts(table))?)),
            DatasetFormat::Arrow => Inner::Arrow(Box::new(TableWriter::new(TableFormat::Arrow, &schema, out)?)),
        };
        Ok(Open { inner, rows: 0 })
    }

    /// Ends all files; a table without rows becomes a file without rows, so that every capture has every table.
    fn finish(&mut self) -> Result<(), Failure> {
        let mut rows = Vec::with_capacity(self.group.missing.len());
        for table in &self.group.missing {
            self.go_on()?;
            let count = self.end(*table).map_err(|error| self.failed(*table, error))?;
            rows.push((*table, count));
        }
        self.go_on()?;
        let paths: Vec<PathBuf> = self.group.missing.iter().map(|table| self.part(*table)).collect();
        // The system writes what several wait for in one go.
        let sizes: Vec<io::Result<u64>> = std::thread::scope(|scope| {
            let shares = paths.chunks(paths.len().div_ceil(SYNCS).max(1));
            let shares: Vec<_> =
                shares.map(|share| scope.spawn(|| share.iter().map(|path| sync(path)).collect())).collect();
            let done = |share: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
                share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            shares.into_iter().flat_map(done).collect()
        });
        for ((table, rows), bytes) in rows.into_iter().zip(sizes) {
            let bytes = bytes.map_err(|error| self.failed(table, error.into()))?;
            self.done.insert(table, Written { rows, bytes });
        }
        Ok(())
    }

    fn end(&mut self, table: TableId) -> Result<u64, ArrowError> {
        let open = match self.open.remove(&table) {
            Some(open) => open,
            None => self.create(table)?,
        };
        match open.inner {
            Inner::Parquet(file) => file.finish(self.pool)?,
            Inner::Arrow(file) => file.finish()?,
        }
        Ok(open.rows)
    }
}

/// Waits until a file is on the disk, before its marker is: a name must not outlive its content when the power goes. Returns its
/// length.
fn sync(path: &Path) -> io::Result<u64> {
    let file = File::options().append(true).open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        self.open.clear();
        for table in &self.group.missing {
            // Those in their places are not here any more.
            let _ = std::fs::remove_file(self.part(*table));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};

    use super::{Failure, Files};
    use crate::convert::dataset::Dataset;
    use crate::convert::plan::Group;
    use crate::convert::{DatasetFormat, GroupBy};
    use crate::error::Error;
    use crate::tables::TableId;

    #[test]
    fn nothing_more_is_encoded_once_the_run_is_to_stop() {
        let out = std::env::temp_dir().join(format!("wirelab-convert-stop-{}", std::process::id()));
        let dataset = Dataset::open(&out, DatasetFormat::Parquet, GroupBy::File).unwrap();
        let group = Group { name: "a".to_owned(), files: Vec::new(), missing: vec![TableId::Packets], kept: None };
        let stop = AtomicBool::new(true);
        let mut files = Files::new(&dataset, &group, None, &stop);
        let rows: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("time", rows)]).unwrap();
        let written = files.write(vec![(TableId::Packets, batch)]);
        assert!(matches!(written, Err(Failure::Input(Error::Cancelled))));
        assert!(matches!(files.finish(), Err(Failure::Input(Error::Cancelled))));
        assert!(!files.part(TableId::Packets).exists());
        drop(files);
        std::fs::remove_dir_all(out).unwrap();
    }
}
