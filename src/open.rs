//! An opened capture: tables on demand, each computed once.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::capture::{CaptureFacts, Input, Reader, Selection, WriteReport, write_frames};
use crate::error::Error;
use crate::observe::{Observer, Unobserved};
use crate::options::Options;
use crate::scan::{Engine, ScanRequest, Summary};
#[cfg(feature = "sql")]
use crate::scan::{Filter, MultiScan};
use crate::spill::{self, Store};
#[cfg(feature = "sql")]
use crate::sql::Part;
use crate::tables::TableId;
use crate::words::Lang;

/// Stored bytes below which a table is computed whole, whatever columns a query reads: the next one will read others, and
/// going through the capture again costs more than they do.
#[cfg(feature = "sql")]
const WHOLE_TABLES_BYTES: u64 = 64 << 20;
/// Tables whose rows speak of the addresses, ports and time in their columns of these names.
#[cfg(feature = "sql")]
const FILTERED: [TableId; 3] = [TableId::Packets, TableId::Tcp, TableId::Roce];
/// Most bytes kept of an input that can be read only once (standard input, a reader).
const KEPT_INPUT_BYTES: u64 = 2 << 30;

/// A table in memory, or mapped from a temporary file that goes with it.
#[derive(Clone, Debug)]
pub struct TableData {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl TableData {
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A capture of one or more files. Tables are computed when they are first asked for, then kept. Clones share them.
#[derive(Clone)]
pub struct Capture {
    inputs: Arc<[Kept]>,
    options: Arc<Options>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tables: HashMap<TableId, Arc<TableData>>,
    /// Tables of which only some columns were asked for.
    partial: HashMap<TableId, Arc<TableData>>,
    /// Memory that tables take; those in files take none.
    taken: HashMap<TableId, u64>,
    summary: Option<Summary>,
    facts: Option<CaptureFacts>,
    /// What was wrong with the files in any pass over them, in English and Chinese.
    warnings: Vec<(String, String)>,
}

impl State {
    fn keep_warnings(&mut self, warnings: impl Fn(Lang) -> Vec<String>) {
        for both in warnings(Lang::En).into_iter().zip(warnings(Lang::Zh)) {
            if !self.warnings.contains(&both) {
                self.warnings.push(both);
            }
        }
    }
}

#[cfg(feature = "sql")]
impl State {
    /// What is to be computed for some columns of a table, if they are not there. Columns that an earlier query read stay.
    fn request(&self, table: TableId, columns: &[String]) -> Option<ScanRequest> {
        let has = |data: &TableData, column: &String| data.schema.column_with_name(column).is_some();
        let partial = self.partial.get(&table);
        let is_there = partial.is_some_and(|data| columns.iter().all(|column| has(data, column)));
        if is_there || self.tables.contains_key(&table) {
            return None;
        }
        let mut all = columns.to_vec();
        let kept = partial.iter().flat_map(|data| data.schema.fields()).map(|field| field.name().clone());
        all.extend(kept.filter(|column| !columns.contains(column)));
        Some(ScanRequest { columns: Some(all), ..ScanRequest::new(table) })
    }
}

/// An input that can be read again.
enum Kept {
    Path(PathBuf, Option<Stamp>),
    Bytes(Arc<[u8]>, String),
}

/// What tells whether a file is still the one that was opened; it is read anew for each table.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
}

impl Stamp {
    /// `None` for what is no file that can be looked at: reading it tells.
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// Opens one or more files (or bytes, or readers) as one capture. Fails at once where one of them is no capture.
pub fn open<I>(inputs: I, options: &Options) -> Result<Capture, Error>
where
    I: IntoIterator,
    I::Item: Into<Input>,
{
    let inputs = inputs.into_iter().map(|input| keep(input.into())).collect::<Result<_, _>>()?;
    let capture = Capture { inputs, options: Arc::new(options.clone()), state: Arc::default() };
    // Looks at the first bytes of every file, so that a wrong one is named now and not at the first table.
    Engine::new(capture.inputs(), options, &[])?;
    Ok(capture)
}

impl Capture {
    /// The table, computed now if it is not yet known.
    pub fn table(&self, table: TableId) -> Result<Arc<TableData>, Error> {
        self.table_observed(table, &mut Unobserved)
    }

    /// The same, with progress and a way to stop.
    pub fn table_observed(&self, table: TableId, observer: &mut dyn Observer) -> Result<Arc<TableData>, Error> {
        self.load(&[table], observer)?;
        self.lock().tables.get(&table).cloned().ok_or(Error::Cancelled)
    }

    /// Computes several tables in one pass over the capture.
    pub fn load(&self, tables: &[TableId], observer: &mut dyn Observer) -> Result<(), Error> {
        let missing: Vec<_> = {
            let state = self.lock();
            tables.iter().copied().filter(|table| !state.tables.contains_key(table)).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let requests: Vec<_> = missing.iter().map(|table| ScanRequest::new(*table)).collect();
        let computed = self.compute(&requests, observer)?;
        let mut state = self.lock();
        for (table, data) in computed {
            state.partial.remove(&table);
            state.tables.entry(table).or_insert_with(|| Arc::new(data));
        }
        Ok(())
    }

    /// Tables in the order asked for, each with at least the columns named, in one pass over the capture. Of a large capture
    /// no other columns are computed.
    #[cfg(feature = "sql")]
    pub(crate) fn load_columns(
        &self,
        wanted: &[(TableId, Vec<String>)],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Arc<TableData>>, Error> {
        if self.stored_bytes() < WHOLE_TABLES_BYTES {
            let tables: Vec<_> = wanted.iter().map(|(table, _)| *table).collect();
            self.load(&tables, observer)?;
        } else {
            let missing: Vec<_> = {
                let state = self.lock();
                wanted.iter().filter_map(|(table, columns)| state.request(*table, columns)).collect()
            };
            if !missing.is_empty() {
                let computed = self.compute(&missing, observer)?;
                let mut state = self.lock();
                state.partial.extend(computed.into_iter().map(|(table, data)| (table, Arc::new(data))));
            }
        }
        let state = self.lock();
        let found = |table: &TableId| state.tables.get(table).or_else(|| state.partial.get(table)).cloned();
        wanted.iter().map(|(table, _)| found(table).ok_or(Error::Cancelled)).collect()
    }

    /// At least these rows of a table, with the columns named. Of a large capture no more is read than the first ones take;
    /// what a filter leaves out is not kept where the table would outgrow memory. The table stays unknown.
    #[cfg(feature = "sql")]
    pub(crate) fn load_part(
        &self,
        wanted: &(TableId, Vec<String>),
        part: &Part,
        observer: &mut dyn Observer,
    ) -> Result<Arc<TableData>, Error> {
        let (table, columns) = wanted;
        let is_worth_it = match part {
            // What is found is known at the end, and a scan leaves out what is said of memory.
            Part::First(_) => self.stored_bytes() >= WHOLE_TABLES_BYTES && *table != TableId::CaptureQuality,
            // A row takes about as much memory as a small frame does in a file.
            Part::Kept(_) => self.stored_bytes() >= self.budget() && FILTERED.contains(table),
        };
        let is_there = self.lock().request(*table, columns).is_none();
        if is_there || !is_worth_it {
            let mut tables = self.load_columns(std::slice::from_ref(wanted), observer)?;
            return tables.pop().ok_or(Error::Cancelled);
        }
        let (enough, filter) = match part {
            Part::First(rows) => (*rows, Filter::default()),
            Part::Kept(filter) => (usize::MAX, filter.clone()),
        };
        let request = ScanRequest { table: *table, columns: Some(columns.clone()), filter };
        let definition = table.definition();
        let schema = definition.schema_of(&definition.project(Some(columns))?);
        let mut scan = MultiScan::new(self.unchanged_inputs()?, &self.options, &[request])?;
        let taken = self.lock().taken.values().sum();
        let (mut store, mut count) = (Store::new(self.budget(), taken), 0);
        while count < enough
            && let Some(more) = scan.next_batches(observer)?
        {
            for (table, batch) in more {
                count += batch.num_rows();
                store.add(table, batch)?;
            }
        }
        self.lock().keep_warnings(|lang| scan.warnings(lang));
        let (batches, _) = store.take(*table)?;
        Ok(Arc::new(TableData { schema, batches }))
    }

    /// Bytes that tables may take in memory.
    fn budget(&self) -> u64 {
        self.options.memory_budget_bytes.unwrap_or_else(spill::default_budget)
    }

    /// Goes through the capture once. The lock is not held meanwhile: two callers may both compute, and get the same rows.
    fn compute(
        &self,
        requests: &[ScanRequest],
        observer: &mut dyn Observer,
    ) -> Result<Vec<(TableId, TableData)>, Error> {
        let budget = self.budget();
        let options = Options { memory_budget_bytes: Some(budget), ..(*self.options).clone() };
        let mut engine = Engine::new(self.unchanged_inputs()?, &options, requests)?;
        let taken = {
            // Those that are asked for again take the place of what is there.
            let state = self.lock();
            let is_asked_for = |table: &TableId| requests.iter().any(|request| request.table == *table);
            state.taken.iter().filter(|(table, _)| !is_asked_for(table)).map(|(_, bytes)| bytes).sum()
        };
        let mut store = Store::new(budget, taken);
        while let Some(finished) = engine.step(observer)? {
            for (table, batch) in finished {
                store.add(table, batch)?;
            }
        }
        let mut tables = Vec::with_capacity(requests.len());
        let mut sizes = Vec::with_capacity(requests.len());
        for request in requests {
            let definition = request.table.definition();
            let schema = definition.schema_of(&definition.project(request.columns.as_deref())?);
            let (batches, bytes) = store.take(request.table)?;
            sizes.push((request.table, bytes));
            tables.push((request.table, TableData { schema, batches }));
        }
        let mut state = self.lock();
        state.taken.extend(sizes);
        state.keep_warnings(|lang| engine.warnings(lang));
        state.summary = Some(engine.summary());
        state.facts = Some(engine.facts().clone());
        Ok(tables)
    }

    /// Bytes of the inputs as they are stored.
    #[cfg(feature = "sql")]
    fn stored_bytes(&self) -> u64 {
        let bytes = |kept: &Kept| match kept {
            // What cannot be looked at is told by the reading.
            Kept::Path(path, _) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Kept::Bytes(bytes, _) => bytes.len() as u64,
        };
        self.inputs.iter().map(bytes).sum()
    }

    /// What is wrong with the files themselves (cut, damaged, shortened while they were read), in English and Chinese, as far
    /// as they were read until now. All findings are in table `capture_quality`.
    pub fn warnings(&self) -> Vec<(String, String)> {
        self.lock().warnings.clone()
    }

    /// Frames, bytes, time and protocols; read on the way of any table.
    pub fn summary(&self) -> Result<Summary, Error> {
        if self.lock().summary.is_none() {
            self.load(&[TableId::CaptureQuality], &mut Unobserved)?;
        }
        self.lock().summary.clone().ok_or(Error::Cancelled)
    }

    /// The files of the capture, in the order given: name, format and compression, size, frames.
    pub fn files(&self) -> Result<Vec<crate::capture::FileFacts>, Error> {
        self.summary()?;
        Ok(self.lock().facts.as_ref().map(|facts| facts.files.clone()).unwrap_or_default())
    }

    /// Writes frames as a pcapng file for Wireshark, in the order of the capture: with their interfaces, times to the
    /// nanosecond, original lengths and comments, to which those of `comments` are added. Frames are (`file_no`, `frame_no`)
    /// as in every table; `None` writes all. An existing file is replaced once all is written.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        frames: Option<&[(u32, u64)]>,
        comments: &[(u32, u64, &str)],
    ) -> Result<WriteReport, Error> {
        self.write_observed(path, frames, comments, &mut Unobserved)
    }

    /// The same, with progress and a way to stop.
    pub fn write_observed(
        &self,
        path: impl AsRef<Path>,
        frames: Option<&[(u32, u64)]>,
        comments: &[(u32, u64, &str)],
        observer: &mut dyn Observer,
    ) -> Result<WriteReport, Error> {
        let path = path.as_ref();
        if self.inputs.iter().any(|kept| matches!(kept, Kept::Path(own, _) if is_same_file(own, path))) {
            return Err(Error::OwnFile { path: path.to_path_buf() });
        }
        let io_error = |error| Error::write(path, error);
        let mut part_name = path.file_name().unwrap_or_default().to_owned();
        part_name.push(".part");
        let part = path.with_file_name(part_name);
        let file = std::fs::File::create(&part).map_err(io_error)?;
        let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
        let written = self.write_named(&mut out, path, frames, comments, observer);
        let done = written.and_then(|report| std::fs::rename(&part, path).map(|()| report).map_err(io_error));
        if done.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        done
    }

    /// The same, to any writer.
    pub fn write_to(
        &self,
        out: &mut dyn Write,
        frames: Option<&[(u32, u64)]>,
        comments: &[(u32, u64, &str)],
    ) -> Result<WriteReport, Error> {
        self.write_named(out, "-".as_ref(), frames, comments, &mut Unobserved)
    }

    fn write_named(
        &self,
        out: &mut dyn Write,
        name: &Path,
        frames: Option<&[(u32, u64)]>,
        comments: &[(u32, u64, &str)],
        observer: &mut dyn Observer,
    ) -> Result<WriteReport, Error> {
        let reader = Reader::open(self.unchanged_inputs()?, &self.options.limits)?;
        write_frames(reader, &Selection::new(frames, comments), out, name, observer)
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The capture's inputs, to be read anew.
    pub fn inputs(&self) -> Vec<Input> {
        let again = |kept: &Kept| match kept {
            Kept::Path(path, _) => Input::Path(path.clone()),
            Kept::Bytes(bytes, name) => Input::NamedBytes(bytes.clone(), name.clone()),
        };
        self.inputs.iter().map(again).collect()
    }

    /// The same, where no file changed since the capture was opened.
    fn unchanged_inputs(&self) -> Result<Vec<Input>, Error> {
        for kept in self.inputs.iter() {
            if let Kept::Path(path, Some(stamp)) = kept
                && Stamp::of(path).is_some_and(|now| now != *stamp)
            {
                return Err(Error::Changed { path: path.clone() });
            }
        }
        Ok(self.inputs())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half-done under the lock, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("inputs", &self.inputs()).finish_non_exhaustive()
    }
}

/// Whether two names are of one file, also by way of links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().zip(other.canonicalize().ok()).is_some_and(|(one, other)| one == other)
}

/// Files are read again for each table; what cannot be is kept in memory, up to a limit.
fn keep(input: Input) -> Result<Kept, Error> {
    let input_name = input.name();
    let name = PathBuf::from(&input_name);
    let reader: Box<dyn Read + Send> = match input {
        Input::Bytes(bytes) => return Ok(Kept::Bytes(bytes, input_name)),
        Input::NamedBytes(bytes, name) => return Ok(Kept::Bytes(bytes, name)),
        Input::Path(path) if path.as_os_str() == "-" => Box::new(std::io::stdin()),
        Input::Path(path) => match std::fs::metadata(&path) {
            // Pipes and devices give their bytes once.
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                Box::new(std::fs::File::open(&path).map_err(|error| Error::io(&path, error))?)
            }
            _ => {
                let stamp = Stamp::of(&path);
                return Ok(Kept::Path(path, stamp));
            }
        },
        Input::Reader(reader, _) => reader,
    };
    let mut bytes = Vec::new();
    reader.take(KEPT_INPUT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| Error::io(&name, error))?;
    if bytes.len() as u64 > KEPT_INPUT_BYTES {
        return Err(Error::Limit { path: name, limit: "kept_input_bytes", value: KEPT_INPUT_BYTES });
    }
    Ok(Kept::Bytes(bytes.into(), input_name))
}
