//! The directory of a dataset: what is in it, who writes to it, and how a capture's tables get there all at once.
//!
//! ```text
//! DIR/_wirelab.json                            what the directory is
//! DIR/_wirelab/captures/CAPTURE.json           what is done: written last, so what it names as done is whole
//! DIR/_wirelab/part/                           what is being written
//! DIR/TABLE/capture=CAPTURE/part-0.parquet     rows
//! ```
//!
//! Readers of datasets pass over names that begin with an underscore.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::Stamp;
use super::plan::encoded;
use super::{DatasetFormat, GroupBy};
use crate::error::Error;
use crate::tables::{TABLES, TableId};

/// Version of this layout.
const LAYOUT: u64 = 1;
const MANIFEST: &str = "_wirelab.json";
const OWN: &str = "_wirelab";
/// More than a manifest or a marker of many thousand files has.
const TEXT_BYTES: u64 = 64 << 20;

/// A directory that this process alone writes to.
pub(super) struct Dataset {
    root: PathBuf,
    format: DatasetFormat,
    _lock: File,
}

/// A capture that is done.
pub(super) struct Marker {
    pub name: String,
    pub record: Record,
}

/// What was read, how, and what came out.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub inputs: Vec<(String, Stamp)>,
    pub made_with: Value,
    pub tables: BTreeMap<String, Written>,
    /// Tables that were being put in their places: what is there may be of before.
    pub unfinished: Vec<TableId>,
    /// In English and Chinese.
    pub warnings: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub rows: u64,
    pub bytes: u64,
}

impl Dataset {
    /// Opens a dataset, or begins one in a directory that is empty or not there.
    pub fn open(root: &Path, format: DatasetFormat, group_by: GroupBy) -> Result<Self, Error> {
        let shown = root.display();
        if root.exists() && !root.is_dir() {
            return Err(Error::Usage(format!("{shown} is a file: name a directory for the dataset")));
        }
        let manifest = root.join(MANIFEST);
        let is_begun = manifest.exists();
        if is_begun {
            check_manifest(&manifest, format, group_by)?;
        } else if root.exists() {
            let entries = std::fs::read_dir(root).map_err(|error| Error::io(root, error))?;
            for entry in entries {
                let name = entry.map_err(|error| Error::io(root, error))?.file_name();
                // A run that was killed as it began.
                if !name.to_string_lossy().starts_with(OWN) {
                    return Err(Error::Usage(format!(
                        "{shown} is neither empty nor a dataset of wirelab (it holds {}): name another directory",
                        told(&name.to_string_lossy())
                    )));
                }
            }
        }
        let own = root.join(OWN);
        std::fs::create_dir_all(root).map_err(|error| Error::write(root, error))?;
        for folder in [own.clone(), own.join("captures"), own.join("part")] {
            // A link would have files removed that are somebody else's.
            if std::fs::symlink_metadata(&folder).is_ok_and(|data| !data.is_dir()) {
                return Err(Error::Usage(format!(
                    "{} is no directory, so {shown} is no dataset of wirelab: name another directory",
                    folder.display()
                )));
            }
            std::fs::create_dir_all(&folder).map_err(|error| Error::write(&folder, error))?;
        }
        let lock = lock(&own.join("lock"), root)?;
        let dataset = Self { root: root.to_path_buf(), format, _lock: lock };
        dataset.clear_parts()?;
        if !is_begun {
            let text = json!({
                "wirelab": "dataset", "layout": LAYOUT, "format": format.name(), "group_by": group_by.to_string(),
                "partition": "capture",
            });
            write_whole(&manifest, &dataset.part("_manifest"), &text, true)?;
        }
        Ok(dataset)
    }

    /// What was being written when an earlier run was killed. That is files; a folder is somebody else's and stays.
    fn clear_parts(&self) -> Result<(), Error> {
        let folder = self.root.join(OWN).join("part");
        let entries = std::fs::read_dir(&folder).map_err(|error| Error::io(&folder, error))?;
        for entry in entries.filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
                remove_file(&entry.path())?;
            }
        }
        Ok(())
    }

    /// The captures that are done, by name. One whose marker cannot be read is done anew, and so is a table that is gone.
    pub fn markers(&self) -> Result<Vec<Marker>, Error> {
        let folder = self.root.join(OWN).join("captures");
        let entries = std::fs::read_dir(&folder).map_err(|error| Error::io(&folder, error))?;
        let mut markers = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| Error::io(&folder, error))?.path();
            let Ok(text) = text_of(&path) else { continue };
            let Some(mut marker) = serde_json::from_slice(&text).ok().and_then(|value| marker_of(&value)) else {
                continue;
            };
            // One that speaks of another capture is of no use.
            if path != self.marker_path(&marker.name) {
                continue;
            }
            let is_there = |table: &str, written: &Written| {
                let id = TABLES.into_iter().find(|id| id.name() == table);
                let length =
                    id.and_then(|id| std::fs::metadata(self.place(id, &marker.name)).ok()).map(|data| data.len());
                length == Some(written.bytes)
            };
            marker.record.tables.retain(|table, written| is_there(table, written));
            markers.push(marker);
        }
        markers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(markers)
    }

    pub fn format(&self) -> DatasetFormat {
        self.format
    }

    /// Where a table of a capture is.
    pub fn place(&self, table: TableId, name: &str) -> PathBuf {
        let file = format!("part-0.{}", self.format.name());
        self.root.join(table.name()).join(format!("capture={}", encoded(name))).join(file)
    }

    /// Where something is written before it is whole.
    pub fn part(&self, name: &str) -> PathBuf {
        self.root.join(OWN).join("part").join(encoded(name))
    }

    fn marker_path(&self, name: &str) -> PathBuf {
        self.root.join(OWN).join("captures").join(format!("{}.json", encoded(name)))
    }

    /// Puts a capture's new tables, whole and on the disk, in their places, and says that it is done. Killed on the way, its
    /// marker names the tables that are not done, so that the next run does them whatever it is asked for, and knows the
    /// capture by its files and its name. Tables that the record does not name have rows of another run and are removed.
    pub fn commit(&self, name: &str, parts: &[(TableId, PathBuf)], record: &Record) -> Result<(), Error> {
        let (marker, part) = (self.marker_path(name), self.part(&format!("{name}.json")));
        let mut unfinished = Record { unfinished: parts.iter().map(|(table, _)| *table).collect(), ..record.clone() };
        for (table, _) in parts {
            unfinished.tables.remove(table.name());
        }
        // Where there was nothing, a marker that the power takes with it is as good as none.
        write_whole(&marker, &part, &marker_json(name, &unfinished), marker.exists())?;
        for table in TABLES.into_iter().filter(|table| !record.tables.contains_key(table.name())) {
            self.remove_table(table, name)?;
        }
        for (table, part) in parts {
            let place = self.place(*table, name);
            let folder = place.parent().unwrap_or(&self.root);
            std::fs::create_dir_all(folder).map_err(|error| Error::write(folder, error))?;
            std::fs::rename(part, &place).map_err(|error| Error::write(&place, error))?;
        }
        write_whole(&marker, &part, &marker_json(name, record), true)
    }

    /// Takes a capture out, its marker first.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        remove_file(&self.marker_path(name))?;
        TABLES.into_iter().try_for_each(|table| self.remove_table(table, name))
    }

    fn remove_table(&self, table: TableId, name: &str) -> Result<(), Error> {
        let place = self.place(table, name);
        remove_file(&place)?;
        if let Some(folder) = place.parent() {
            // Something of somebody else's in it keeps it.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// Text from a dataset in a message: short, and without what changes how the rest is shown.
pub(super) fn told(text: &str) -> String {
    let sound = |c: char| if matches!(c, '"' | '\'' | '\\') { c.to_string() } else { c.escape_debug().to_string() };
    text.chars().take(200).map(sound).collect()
}

/// The content of a small file of the dataset. A pipe would keep a run waiting for ever.
fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > TEXT_BYTES {
        return Err(io::Error::other("it is no regular file, or too large"));
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open(path)?, TEXT_BYTES), &mut text)?;
    Ok(text)
}

fn lock(path: &Path, root: &Path) -> Result<File, Error> {
    if std::fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(Error::write(path, io::Error::other("it is no regular file")));
    }
    let file = File::options().create(true).append(true).open(path).map_err(|error| Error::write(path, error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::Usage(format!("another conversion is writing to {}: wait for it to end", root.display())))
        }
        // A file system without locks is no reason not to work.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn check_manifest(path: &Path, format: DatasetFormat, group_by: GroupBy) -> Result<(), Error> {
    let shown = path.display();
    let text = text_of(path).map_err(|error| Error::io(path, error))?;
    let manifest: Option<Value> = serde_json::from_slice(&text).ok();
    let Some(manifest) = manifest.filter(|manifest| manifest["wirelab"] == "dataset") else {
        return Err(Error::Usage(format!("{shown} does not describe a dataset of wirelab: name another directory")));
    };
    if manifest["layout"] != LAYOUT {
        return Err(Error::Usage(format!("{shown} was written by another version of wirelab: name another directory")));
    }
    for (key, what, wanted) in [
        ("format", "its files have the format", format.name().to_owned()),
        ("group_by", "its captures are grouped by", group_by.to_string()),
    ] {
        if manifest[key] != *wanted {
            let there = told(manifest[key].as_str().unwrap_or("something else"));
            return Err(Error::Usage(format!(
                "the dataset is of another kind: {what} {there}, not {wanted} ({shown}); ask for the same, or name another directory"
            )));
        }
    }
    Ok(())
}

/// Writes a small file so that it is there whole or not at all.
fn write_whole(path: &Path, part: &Path, value: &Value, is_synced: bool) -> Result<(), Error> {
    let write = || {
        let mut file = File::create(part)?;
        io::Write::write_all(&mut file, format!("{value:#}\n").as_bytes())?;
        if is_synced {
            file.sync_all()?;
        }
        std::fs::rename(part, path)
    };
    write().map_err(|error| Error::write(path, error))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(Error::write(path, error))
        }
        _ => Ok(()),
    }
}

fn marker_json(name: &str, record: &Record) -> Value {
    let input = |(path, stamp): &(String, Stamp)| json!({ "path": path, "bytes": stamp.bytes, "modified_ns": stamp.modified_ns });
    let table =
        |(name, written): (&String, &Written)| (name.clone(), json!({ "rows": written.rows, "bytes": written.bytes }));
    let mut marker = json!({
        "capture": name,
        "inputs": record.inputs.iter().map(input).collect::<Vec<_>>(),
        "made_with": record.made_with,
        "tables": record.tables.iter().map(table).collect::<serde_json::Map<_, _>>(),
        "warnings": record.warnings.iter().map(|(en, zh)| json!({ "en": en, "zh": zh })).collect::<Vec<_>>(),
    });
    if !record.unfinished.is_empty() {
        marker["unfinished"] = record.unfinished.iter().map(|table| table.name()).collect();
    }
    marker
}

fn marker_of(value: &Value) -> Option<Marker> {
    let input = |input: &Value| {
        let stamp = Stamp { bytes: input["bytes"].as_u64()?, modified_ns: input["modified_ns"].as_i64()? };
        Some((input["path"].as_str()?.to_owned(), stamp))
    };
    let table = |(name, written): (&String, &Value)| {
        Some((name.clone(), Written { rows: written["rows"].as_u64()?, bytes: written["bytes"].as_u64()? }))
    };
    let warning = |warning: &Value| Some((warning["en"].as_str()?.to_owned(), warning["zh"].as_str()?.to_owned()));
    Some(Marker {
        name: value["capture"].as_str()?.to_owned(),
        record: Record {
            inputs: value["inputs"].as_array()?.iter().map(input).collect::<Option<_>>()?,
            made_with: value["made_with"].clone(),
            tables: value["tables"].as_object()?.iter().map(table).collect::<Option<_>>()?,
            unfinished: match &value["unfinished"] {
                Value::Null => Vec::new(),
                names => {
                    let table = |name: &Value| TableId::from_name(name.as_str()?).ok();
                    names.as_array()?.iter().map(table).collect::<Option<_>>()?
                }
            },
            warnings: value["warnings"].as_array()?.iter().map(warning).collect::<Option<_>>()?,
        },
    })
}
