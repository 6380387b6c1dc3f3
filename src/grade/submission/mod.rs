//! What was handed in: a folder, a zip or one file, read with limits and without trusting a path.
//!
//! Nothing is executed and nothing is written. Captures of a folder stay on disk and are read from there; what comes out of
//! a zip is held in memory. Whatever is left out, and whatever is not what it seems, is a [`SubmissionFinding`].

mod archive;
mod assign;
mod content;
mod finding;
mod folder;
mod names;
mod unusable;

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::capture::Input;
use crate::error::Error;
use crate::logs::{self, LogKind};
use crate::observe::Observer;

pub use assign::{Assigned, Assignment, InputAssignment, InputKind, InputSpec, assign, check_pattern};
pub use finding::SubmissionFinding;
pub use folder::{children, left_out, may_be_class};
pub use unusable::{Unusable, unusable};

/// Bytes that are read before the observer is asked again.
const BLOCK_BYTES: usize = 1 << 20;
/// Most findings of one submission; nobody reads more.
const MAX_FINDINGS: usize = 200;

/// Limits on what is read of one submission. Hitting one is a finding; the rest is read.
#[derive(Clone, Debug)]
pub struct SubmissionLimits {
    /// Most files, of the folder and of archives together.
    pub files: usize,
    /// Most folders inside each other.
    pub depth: usize,
    /// Most archives inside each other; 1 reads a zip, 2 also a zip inside it.
    pub archive_depth: usize,
    /// Most bytes of one file of an archive, unpacked; also of one file that is not a capture.
    pub file_bytes: u64,
    /// Most bytes of all files of archives, unpacked: they are held in memory.
    pub unpacked_bytes: u64,
    /// Most unpacked bytes as a multiple of the archive's size, beyond the first 64 MiB.
    pub ratio: u64,
}

impl Default for SubmissionLimits {
    fn default() -> Self {
        Self { files: 2_000, depth: 12, archive_depth: 2, file_bytes: 512 << 20, unpacked_bytes: 1 << 30, ratio: 300 }
    }
}

/// What one student, or one group, handed in.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Name of the folder, or of the file without its ending.
    pub id: String,
    /// The files, by name.
    pub files: Vec<SubmittedFile>,
    pub findings: Vec<SubmissionFinding>,
}

/// One file of a submission.
#[derive(Clone, Debug)]
pub struct SubmittedFile {
    /// Path inside the submission, with forward slashes.
    pub name: String,
    pub content: Content,
    /// SHA-256 of the content, in lower-case hexadecimal.
    pub sha256: String,
    pub size: u64,
    /// Whether it is a capture in gzip, zstd, lz4 or xz: what it holds may be far larger.
    pub is_compressed: bool,
    pub kind: FileKind,
    /// Every tool whose output is in it; a saved terminal session may hold that of several.
    pub logs: Vec<LogKind>,
}

/// Where the bytes of a file are.
#[derive(Clone, Debug)]
pub enum Content {
    Path(PathBuf),
    Bytes(Arc<[u8]>),
}

/// What a file is, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    Capture,
    Log(LogKind),
    /// Text of no tool that is known: answers, configuration, a readme.
    Text,
    /// An archive that was not unpacked.
    Archive,
    Other,
}

impl FileKind {
    /// `capture`, the name of a tool, `text`, `archive` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Log(kind) => kind.name(),
            Self::Text => "text",
            Self::Archive => "archive",
            Self::Other => "other",
        }
    }
}

impl SubmittedFile {
    /// The last part of the name.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// The file as an input of a capture.
    pub fn input(&self) -> Input {
        match &self.content {
            Content::Path(path) => Input::Path(path.clone()),
            Content::Bytes(bytes) => Input::NamedBytes(bytes.clone(), self.name.clone()),
        }
    }

    /// The content of a file that is no capture, as far as logs are read.
    pub fn bytes(&self) -> Result<Arc<[u8]>, Error> {
        match &self.content {
            Content::Bytes(bytes) => Ok(bytes.clone()),
            Content::Path(path) => Ok(logs::bytes_of(path)?.into()),
        }
    }
}

/// Reads a submission from disk: a folder, a zip, or one file. Fails only where `path` itself cannot be read, or where the
/// observer asks to stop.
pub fn read(path: &Path, limits: &SubmissionLimits, observer: &mut dyn Observer) -> Result<Submission, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    if !metadata.is_dir() && !metadata.is_file() {
        // A pipe would be waited for without end.
        return Err(Error::Usage(format!("{} is neither a folder nor a file", path.display())));
    }
    let mut collector = Collector::new(limits, observer);
    if metadata.is_dir() {
        folder::read(path, &mut collector).map_err(|error| Error::io(path, error))?;
    } else {
        let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy());
        let name = names::clean(&name).0;
        collector.root_archive = Some(name.clone());
        collector.file_on_disk(path, &name, 0).map_err(|error| Error::io(path, error))?;
    }
    let id = if metadata.is_dir() {
        folder_name(path)
    } else {
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
    };
    collector.finish(id.unwrap_or_else(|| "submission".to_owned()))
}

/// The same for bytes at hand, such as an upload.
pub fn read_bytes(
    name: &str,
    bytes: Arc<[u8]>,
    limits: &SubmissionLimits,
    observer: &mut dyn Observer,
) -> Result<Submission, Error> {
    let mut collector = Collector::new(limits, observer);
    let (clean, _) = names::clean(name);
    collector.root_archive = Some(clean.clone());
    collector.bytes(&clean, bytes, 0);
    let stem = Path::new(&clean).file_stem().map_or_else(|| clean.clone(), |stem| stem.to_string_lossy().into_owned());
    collector.finish(stem)
}

/// `.` and `..` have no name of their own.
fn folder_name(path: &Path) -> Option<String> {
    let name = match path.file_name() {
        Some(name) => name.to_owned(),
        None => path.canonicalize().ok()?.file_name()?.to_owned(),
    };
    Some(name.to_string_lossy().into_owned())
}

/// Gathers files and findings under the limits.
struct Collector<'a> {
    limits: &'a SubmissionLimits,
    observer: &'a mut dyn Observer,
    /// Whether the observer asked to stop: nothing more is read.
    is_cancelled: bool,
    files: Vec<SubmittedFile>,
    findings: Vec<SubmissionFinding>,
    /// Bytes unpacked so far, of all archives.
    unpacked: u64,
    left_out_files: u64,
    junk: Vec<String>,
    /// Hash of each file, by its name in lower case.
    hashes: HashMap<String, String>,
    /// Name of the archive that is the whole submission.
    root_archive: Option<String>,
}

impl Observer for Collector<'_> {
    /// Remembers that the real observer asked to stop.
    fn on_progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) -> ControlFlow<()> {
        let asked = self.observer.on_progress(done_bytes, total_bytes);
        self.is_cancelled |= asked.is_break();
        asked
    }
}

impl<'a> Collector<'a> {
    fn new(limits: &'a SubmissionLimits, observer: &'a mut dyn Observer) -> Self {
        Self {
            limits,
            observer,
            is_cancelled: false,
            files: Vec::new(),
            findings: Vec::new(),
            unpacked: 0,
            left_out_files: 0,
            junk: Vec::new(),
            hashes: HashMap::new(),
            root_archive: None,
        }
    }

    /// Asks the observer; to be called at least once per mebibyte.
    fn goes_on(&mut self) -> bool {
        !self.is_cancelled && self.on_progress(0, None).is_continue()
    }

    fn find(&mut self, finding: SubmissionFinding) {
        self.findings.push(finding);
    }

    /// Whether one more file is within the limit.
    fn has_room(&mut self) -> bool {
        if !self.goes_on() {
            return false;
        }
        let has_room = self.files.len() < self.limits.files;
        self.left_out_files += u64::from(!has_room);
        has_room
    }

    /// A file of a folder. `depth` counts the archives around it.
    fn file_on_disk(&mut self, path: &Path, name: &str, depth: usize) -> std::io::Result<()> {
        if !self.has_room() {
            return Ok(());
        }
        let mut file = std::fs::File::open(path)?;
        let size = file.metadata()?.len();
        let looked = content::look(Input::Path(path.to_path_buf()), name, self);
        if looked.is_zip && depth < self.limits.archive_depth {
            archive::read(std::io::BufReader::new(file), size, name, depth, self);
            return Ok(());
        }
        let sha256 = self.hash(&mut file)?;
        let content = Content::Path(path.to_path_buf());
        self.add(name, content, sha256, size, looked, depth);
        Ok(())
    }

    /// A file of an archive, or an upload.
    fn bytes(&mut self, name: &str, bytes: Arc<[u8]>, depth: usize) {
        if !self.has_room() {
            return;
        }
        let looked = content::look(Input::NamedBytes(bytes.clone(), name.to_owned()), name, self);
        let size = bytes.len() as u64;
        if looked.is_zip && depth < self.limits.archive_depth {
            archive::read(std::io::Cursor::new(bytes), size, name, depth, self);
            return;
        }
        // Memory is always readable.
        let sha256 = self.hash(&mut bytes.as_ref()).unwrap_or_default();
        self.add(name, Content::Bytes(bytes), sha256, size, looked, depth);
    }

    fn add(
        &mut self,
        name: &str,
        content: Content,
        sha256: String,
        size: u64,
        mut looked: content::Looked,
        depth: usize,
    ) {
        if looked.is_zip && depth >= self.limits.archive_depth {
            self.find(SubmissionFinding::error("nested_too_deep", name));
        }
        self.findings.extend(std::mem::take(&mut looked.findings));
        let name = self.distinct(name, &sha256);
        let Some(name) = name else { return };
        self.hashes.insert(name.to_lowercase(), sha256.clone());
        let content::Looked { kind, logs, is_compressed, .. } = looked;
        self.files.push(SubmittedFile { name, content, sha256, size, is_compressed, kind, logs });
    }

    /// A name that no other file has; `None` for a file that is there already, byte by byte.
    fn distinct(&mut self, name: &str, sha256: &str) -> Option<String> {
        // Windows and macOS do not tell `A.pcap` from `a.pcap`.
        let Some(first) = self.hashes.get(&name.to_lowercase()) else { return Some(name.to_owned()) };
        if first == sha256 {
            self.find(SubmissionFinding::info("same_file_twice", name));
            return None;
        }
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending)) if !ending.contains('/') => (stem, format!(".{ending}")),
            _ => (name, String::new()),
        };
        let mut other_names = (2..).map(|number: u32| format!("{stem} ({number}){ending}"));
        let other = other_names.find(|other| !self.hashes.contains_key(&other.to_lowercase()))?;
        self.find(SubmissionFinding::warning("duplicate_name", name).detail("other", &other));
        Some(other)
    }

    /// SHA-256 in hex; of no use once the observer asked to stop.
    fn hash(&mut self, file: &mut dyn Read) -> std::io::Result<String> {
        let mut hasher = Sha256::new();
        let mut block = vec![0; BLOCK_BYTES];
        while self.goes_on() {
            let length = file.read(&mut block)?;
            if length == 0 {
                break;
            }
            hasher.update(block.get(..length).unwrap_or_default());
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn finish(mut self, id: String) -> Result<Submission, Error> {
        if self.is_cancelled {
            return Err(Error::Cancelled);
        }
        if self.left_out_files > 0 {
            let finding = SubmissionFinding::error("too_many_files", "").value(self.left_out_files);
            self.find(finding.detail("limit", self.limits.files));
        }
        if let Some(first) = self.junk.first() {
            let finding = SubmissionFinding::info("left_out", first).value(self.junk.len() as u64);
            self.findings.push(finding);
        }
        if self.files.is_empty() {
            self.find(SubmissionFinding::error("no_files", ""));
        }
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let more = self.findings.len().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            self.findings.truncate(MAX_FINDINGS);
            self.findings.push(SubmissionFinding::info("more_findings", "").value(more as u64));
        }
        Ok(Submission { id, files: self.files, findings: self.findings })
    }
}
