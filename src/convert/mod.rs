//! Many captures to a dataset of files, partitioned by table and capture, for DuckDB, Polars, pandas and whatever else reads
//! Hive partitions.
//!
//! ```no_run
//! use wirelab::convert::{ConvertOptions, convert};
//!
//! let options = ConvertOptions { tables: vec![wirelab::TableId::TcpFlows], ..ConvertOptions::default() };
//! let done = convert(["monday.pcap", "tuesday.pcap"], "flows", &options, &mut wirelab::Unobserved)?;
//! assert!(done.failed().next().is_none());
//! // Now there are flows/tcp_flows/capture=monday.pcap/part-0.parquet and the same for tuesday.
//! # Ok::<(), wirelab::Error>(())
//! ```

mod capture;
mod dataset;
mod files;
mod folder;
mod parquet;
mod plan;
mod run;
mod schema;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;
use crate::tables::{TABLES, TableId};
use crate::words::Lang;

/// Captures at once, unless the caller says how many: each holds several files open.
const MOST_JOBS: usize = 16;

/// What to convert to, and how.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// How captures are read; `threads` are shared by all of them.
    pub run: Options,
    pub tables: Vec<TableId>,
    pub format: DatasetFormat,
    pub group_by: GroupBy,
    /// Captures at once at most; `None` takes as many as there are threads. Large captures wait for each other, so that all
    /// together stay within about 1 GiB.
    pub jobs: Option<NonZeroUsize>,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            run: Options::default(),
            tables: TABLES.to_vec(),
            format: DatasetFormat::default(),
            group_by: GroupBy::default(),
            jobs: None,
        }
    }
}

/// Format of a dataset's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatasetFormat {
    /// Parquet, compressed with zstd; row groups of at most 131,072 rows.
    #[default]
    Parquet,
    /// Arrow IPC files.
    Arrow,
}

impl DatasetFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    pub fn from_name(name: &str) -> Result<Self, Error> {
        [Self::Parquet, Self::Arrow].into_iter().find(|format| format.name() == name).ok_or_else(|| {
            Error::Usage(format!("there is no format {name} for a dataset; the formats are parquet and arrow"))
        })
    }
}

/// Which files are one capture, and so one partition: its flows are followed from file to file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// Each file.
    #[default]
    File,
    /// The files of a ring (`tcpdump -C` or `-G`, `dumpcap -b`), by their names.
    Ring,
    /// Files as they are named, one after the other, until they are so many bytes.
    Bytes(u64),
    /// All of them.
    All,
}

impl fmt::Display for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Ring => f.write_str("ring"),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::All => f.write_str("all"),
        }
    }
}

/// How a conversion went.
#[derive(Debug)]
pub struct Conversion {
    /// The captures named, in order.
    pub captures: Vec<Converted>,
    /// Captures of the dataset that were not named this time, and were made by another version or with other options.
    pub outdated_count: usize,
    /// Captures of the dataset that were not named this time, and of which no file is where it was: deleted, or renamed. Their
    /// rows stay.
    pub gone_count: usize,
}

/// One capture of the dataset.
#[derive(Debug)]
pub struct Converted {
    /// Its name in the column `capture`.
    pub name: String,
    pub files: Vec<PathBuf>,
    pub outcome: Outcome,
    warnings: Vec<(String, String)>,
}

/// What became of a capture.
#[derive(Debug)]
pub enum Outcome {
    /// Tables were written, with so many rows.
    Written(Vec<(TableId, u64)>),
    /// Everything asked for was there, made from the same files with the same options.
    Unchanged,
    /// Nothing was written; what the dataset had of it is as before.
    Failed(Error),
}

impl Converted {
    /// What is wrong with its files (cut, damaged), though they were read as far as they go.
    pub fn warnings(&self, lang: Lang) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(move |(english, chinese)| if lang == Lang::Zh { chinese } else { english }.as_str())
    }
}

impl Conversion {
    /// The captures that could not be converted.
    pub fn failed(&self) -> impl Iterator<Item = (&Converted, &Error)> {
        self.captures.iter().filter_map(|capture| match &capture.outcome {
            Outcome::Failed(error) => Some((capture, error)),
            _ => None,
        })
    }
}

/// Converts captures to a dataset in the directory `out`; what is there already and still fits is left alone. A folder stands
/// for the captures in it and in its folders: files called like one (`.pcap`, `.pcapng`, `.cap` or `.dmp`, also numbered or
/// packed), and those that begin like one.
///
/// Each capture's tables appear together once all are whole, so that a run may be stopped or killed at any time and the next
/// one does the rest. A capture that fails does not stop the others. An error is returned where nothing can be done: the
/// call is at fault, the directory holds something else, it cannot be written, or the observer stopped the run before all
/// captures were done.
pub fn convert<I>(
    inputs: I,
    out: impl AsRef<Path>,
    options: &ConvertOptions,
    observer: &mut dyn Observer,
) -> Result<Conversion, Error>
where
    I: IntoIterator,
    I::Item: Into<PathBuf>,
{
    let out = out.as_ref();
    let mut tables = options.tables.clone();
    tables.sort_unstable();
    tables.dedup();
    if tables.is_empty() {
        return Err(Error::Usage("no table was asked for".to_owned()));
    }
    if options.group_by == GroupBy::Bytes(0) {
        return Err(Error::Usage("a group must have room for at least one byte".to_owned()));
    }
    if out.as_os_str().is_empty() {
        return Err(Error::Usage("the dataset's directory has no name".to_owned()));
    }
    let files = files::look_at(inputs.into_iter().map(Into::into).collect())?;
    if let Ok(root) = out.canonicalize()
        && let Some(file) = files.iter().find(|file| Path::new(&file.key).starts_with(&root))
    {
        return Err(Error::Usage(format!(
            "{} lies in {}, where the dataset is to be: name another directory",
            file.path.display(),
            out.display()
        )));
    }
    let dataset = dataset::Dataset::open(out, options.format, options.group_by)?;
    let made_with = made_with(options);
    let plan = plan::plan(files, options.group_by, &tables, &made_with, dataset.markers()?)?;
    for name in &plan.superseded {
        dataset.remove(name)?;
    }
    let groups: Vec<_> = plan.groups.iter().filter(|group| !group.missing.is_empty()).collect();
    let jobs = options.jobs.map_or_else(|| options.run.thread_count().min(MOST_JOBS), NonZeroUsize::get);
    let pool = if groups.is_empty() { None } else { crate::scan::pool(&options.run)? };
    let run = run::Run { dataset: &dataset, options: &options.run, made_with: &made_with, pool, jobs };
    let mut outcomes = run.all(&groups, observer)?.into_iter();
    let captures = plan.groups.into_iter().map(|group| {
        let (outcome, warnings) = if group.missing.is_empty() {
            (Outcome::Unchanged, group.kept.map(|record| record.warnings).unwrap_or_default())
        } else {
            match outcomes.next().unwrap_or(Err(Error::Cancelled)) {
                Ok(record) => {
                    let rows = |table: &TableId| Some((*table, record.tables.get(table.name())?.rows));
                    (Outcome::Written(group.missing.iter().filter_map(rows).collect()), record.warnings)
                }
                Err(error) => (Outcome::Failed(error), Vec::new()),
            }
        };
        let files = group.files.into_iter().map(|file| file.path).collect();
        Converted { name: group.name, files, outcome, warnings }
    });
    Ok(Conversion { captures: captures.collect(), outdated_count: plan.outdated, gone_count: plan.gone })
}

/// All that the rows depend on beside the files.
fn made_with(options: &ConvertOptions) -> serde_json::Value {
    let Options {
        threads: _,
        memory_budget_bytes: _,
        link_speed_bps,
        pause_storm_ns,
        vxlan_ports,
        roce_ports,
        roce_endpoints,
        checksums,
        limits,
    } = &options.run;
    json!({
        "wirelab": schema::VERSION,
        "link_speed_bps": link_speed_bps,
        "pause_storm_ns": pause_storm_ns,
        "vxlan_ports": vxlan_ports,
        "roce_ports": roce_ports,
        "roce_endpoints": roce_endpoints.iter().map(|end| format!("{end:?}")).collect::<Vec<_>>(),
        "checksums": format!("{checksums:?}").to_lowercase(),
        "limits": format!("{limits:?}"),
    })
}
