//! Datasets: what is in them, what a second run does, and what becomes of faults on the way.

mod grouping;
mod resuming;
mod rows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use wirelab::convert::{Conversion, ConvertOptions, Outcome, convert};
use wirelab::{Error, TableId, Unobserved};

use crate::support::files_below;
use crate::support::with_threads;

const TABLES: [TableId; 3] = [TableId::Packets, TableId::Tcp, TableId::TcpFlows];

fn some_tables() -> ConvertOptions {
    ConvertOptions { tables: TABLES.to_vec(), run: with_threads(2), ..ConvertOptions::default() }
}

fn run<P: Into<PathBuf> + Clone>(inputs: &[P], out: &Path, options: &ConvertOptions) -> Result<Conversion, Error> {
    convert(inputs.iter().cloned(), out, options, &mut Unobserved)
}

/// Every file of a dataset but the lock, by its place in it.
fn content(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = files_below(root, &[".parquet", ".arrow", ".json"]);
    let place = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    files.iter().map(|path| (place(path), std::fs::read(path).unwrap())).collect()
}

/// `written`, `unchanged` or `failed` for each capture, with its name.
fn outcomes(done: &Conversion) -> Vec<(String, &'static str)> {
    let word = |outcome: &Outcome| match outcome {
        Outcome::Written(_) => "written",
        Outcome::Unchanged => "unchanged",
        Outcome::Failed(_) => "failed",
    };
    done.captures.iter().map(|capture| (capture.name.clone(), word(&capture.outcome))).collect()
}

fn part(root: &Path, table: TableId, name: &str) -> PathBuf {
    root.join(table.name()).join(format!("capture={name}")).join("part-0.parquet")
}

/// The rows of a Parquet file, and how many are in each row group.
fn read(path: &Path) -> (Vec<RecordBatch>, Vec<i64>) {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let groups = builder.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    (builder.build().unwrap().collect::<Result<_, _>>().unwrap(), groups)
}
