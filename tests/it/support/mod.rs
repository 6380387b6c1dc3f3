//! What several test modules share.

pub mod cells;
pub mod craft;
pub mod generate;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use wirelab::scan::MultiScan;
use wirelab::{Error, Input, Options, ScanRequest, TABLES, TableId, Unobserved};

pub fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that an environment variable names, or else a default beside the repository. `None`, said aloud, where there
/// is none; a folder that was named and is not there is a failure.
pub fn outside_folder(variable: &str, default: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        let path = PathBuf::from(named);
        assert!(path.is_dir(), "{variable} names {}, which is no folder", path.display());
        return Some(path);
    }
    let path = crate_root().join(default);
    if path.is_dir() {
        return Some(path);
    }
    println!("SKIPPED: {} is not there; set {variable} to run this test", path.display());
    None
}

/// Files below a folder whose names end in one of `endings`, sorted.
pub fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub fn sample(name: &str) -> PathBuf {
    crate_root().join("sample-captures").join(name)
}

pub fn with_threads(threads: usize) -> Options {
    Options { threads: NonZeroUsize::new(threads), ..Options::default() }
}

/// The batches of one table.
pub struct TableBatches {
    pub table: TableId,
    pub batches: Vec<RecordBatch>,
}

impl TableBatches {
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The same rows without the columns of which `is_left_out` is true.
    pub fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Self {
        let project = |batch: &RecordBatch| {
            let fields = batch.schema_ref().fields();
            let kept: Vec<_> = (0..fields.len()).filter(|at| !is_left_out(fields[*at].name())).collect();
            batch.project(&kept).unwrap()
        };
        Self { table: self.table, batches: self.batches.iter().map(project).collect() }
    }

    /// The table as an Arrow IPC stream, batch boundaries included.
    pub fn ipc(&self) -> Vec<u8> {
        ipc(&self.batches)
    }
}

/// All tables in one pass, in the order of [`TABLES`].
pub fn all_tables(inputs: Vec<Input>, options: &Options) -> Result<Vec<TableBatches>, Error> {
    tables(inputs, options, &TABLES.map(ScanRequest::new))
}

pub fn tables(inputs: Vec<Input>, options: &Options, requests: &[ScanRequest]) -> Result<Vec<TableBatches>, Error> {
    let mut tables: Vec<_> =
        requests.iter().map(|request| TableBatches { table: request.table, batches: Vec::new() }).collect();
    let mut scan = MultiScan::new(inputs, options, requests)?;
    while let Some(batches) = scan.next_batches(&mut Unobserved)? {
        for (of, batch) in batches {
            tables.iter_mut().find(|table| table.table == of).expect("a table that was asked for").batches.push(batch);
        }
    }
    Ok(tables)
}

/// All tables without the columns that speak of the input's name: what must be the same however the bytes came in.
pub fn nameless_tables(inputs: Vec<Input>) -> Result<Vec<TableBatches>, Error> {
    tables(inputs, &with_threads(1), &TABLES.map(|table| without(table, &["file_name", "message_en", "message_zh"])))
}

/// Asks for every column of a table but some.
pub fn without(table: TableId, left_out: &[&str]) -> ScanRequest {
    let names = table.definition().columns.iter().map(|column| column.name);
    let columns = names.filter(|name| !left_out.contains(name)).map(str::to_owned).collect();
    ScanRequest { columns: Some(columns), ..ScanRequest::new(table) }
}

fn ipc(batches: &[RecordBatch]) -> Vec<u8> {
    let Some(first) = batches.first() else { return Vec::new() };
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Resend);
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &first.schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Fails, naming the table and the first row that differs, unless both runs gave the same bytes.
pub fn assert_same_tables(ours: &[TableBatches], theirs: &[TableBatches], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}: other tables");
    for (a, b) in ours.iter().zip(theirs) {
        let name = a.table.name();
        assert_eq!(a.table, b.table, "{what}: other tables");
        if a.ipc() == b.ipc() {
            continue;
        }
        let sizes = |table: &TableBatches| table.batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
        assert_eq!(sizes(a), sizes(b), "{what}: {name}: rows per batch differ");
        let (left, right) = (cells::rows_as_text(&a.batches), cells::rows_as_text(&b.batches));
        for (at, (left, right)) in left.iter().zip(&right).enumerate() {
            assert_eq!(left, right, "{what}: {name}: row {at} differs");
        }
        panic!("{what}: {name}: equal values in unequal bytes");
    }
}

/// A folder for files of one test, removed at its end.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A figure of `/proc/self/status` in bytes; `None` where there is no such file.
pub fn process_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
}
