//! Zips: unpacked into memory, under limits, whatever their names and headers claim.

use std::io::{Read, Seek};

use zip::ZipReadOptions;
use zip::read::ZipFileEntry;
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::finding::SubmissionFinding;
use super::names::{Fault, clean, decode, is_junk};
use super::{BLOCK_BYTES, Collector};

/// Bytes that an archive may always unpack to, whatever its own size.
const FREE_BYTES: u64 = 64 << 20;

/// Reads the files of a zip. `depth` counts the archives around this one.
pub(super) fn read<R: Read + Seek>(mut reader: R, size: u64, name: &str, depth: usize, collector: &mut Collector<'_>) {
    // The archive that is the submission needs no name; one inside a folder or another archive does.
    let prefix =
        if collector.root_archive.as_deref() == Some(name) && depth == 0 { String::new() } else { format!("{name}/") };
    let entries = match entries(&mut reader, name, collector) {
        Ok(entries) => entries,
        Err(error) => {
            collector.find(damaged("damaged_archive", name, &error));
            return;
        }
    };
    if entries.is_empty() {
        collector.find(SubmissionFinding::error("empty_archive", name));
    }
    let allowed = size.saturating_mul(collector.limits.ratio).max(FREE_BYTES);
    let mut state = Archive { name, prefix, depth, allowed, unpacked: 0, is_guessed: false };
    for entry in entries {
        if !collector.goes_on() || !state.entry(entry, &mut reader, collector) {
            break;
        }
    }
    if state.is_guessed {
        collector.find(SubmissionFinding::info("name_encoding", name));
    }
}

/// The directory of the archive, up to the limit on files. Damage in the middle leaves what comes before.
fn entries<R: Read + Seek>(
    reader: &mut R,
    name: &str,
    collector: &mut Collector<'_>,
) -> Result<Vec<ZipFileEntry<'static>>, ZipError> {
    let mut archive = ZipIterable::try_new(reader, Default::default())?;
    let declared = archive.len();
    // Folders count too: an archive of a million folders is as long to walk.
    let limit = collector.limits.files.saturating_mul(2);
    let mut entries = Vec::new();
    for entry in archive.files()?.take(limit) {
        if !collector.goes_on() {
            break;
        }
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) if entries.is_empty() => return Err(error),
            Err(error) => {
                collector.find(damaged("damaged_archive", name, &error));
                return Ok(entries);
            }
        }
    }
    collector.left_out_files += declared.saturating_sub(limit) as u64;
    Ok(entries)
}

struct Archive<'a> {
    name: &'a str,
    prefix: String,
    depth: usize,
    /// Bytes that the whole archive may unpack to.
    allowed: u64,
    unpacked: u64,
    /// Whether the encoding of a name had to be guessed.
    is_guessed: bool,
}

impl Archive<'_> {
    /// Reads one entry; false where the archive is not read any further.
    fn entry<R: Read + Seek>(
        &mut self,
        entry: ZipFileEntry<'static>,
        reader: &mut R,
        collector: &mut Collector<'_>,
    ) -> bool {
        let (raw, is_guessed) = decode(entry.name_raw(), || entry.name().ok());
        let (inside, fault) = clean(&raw);
        let is_folder = entry.is_dir() || raw.ends_with(['/', '\\']);
        let name = format!("{}{inside}", self.prefix);
        if is_folder {
            return true;
        }
        if is_junk(&inside) {
            collector.junk.push(name);
            return true;
        }
        self.is_guessed |= is_guessed;
        match fault {
            Some(Fault::Climbs) => {
                collector.find(SubmissionFinding::error("climbing_path", &name));
                return true;
            }
            Some(Fault::Absolute) => collector.find(SubmissionFinding::warning("absolute_path", &name)),
            Some(Fault::Device) => collector.find(SubmissionFinding::warning("device_name", &name)),
            None => {}
        }
        if entry.is_symlink() {
            collector.find(SubmissionFinding::warning("link", &name));
            return true;
        }
        if entry.encrypted() {
            collector.find(SubmissionFinding::error("encrypted", &name));
            return true;
        }
        if !zip::SUPPORTED_COMPRESSION_METHODS.contains(&entry.compression()) {
            let finding = SubmissionFinding::error("packing_method", &name);
            collector.find(finding.detail("reason", format!("{:?}", entry.compression())));
            return true;
        }
        if collector.files.len() >= collector.limits.files {
            collector.left_out_files += 1;
            return true;
        }
        let declared = entry.size();
        self.unpack(entry, declared, reader, &name, collector)
    }

    fn unpack<R: Read + Seek>(
        &mut self,
        entry: ZipFileEntry<'static>,
        declared: u64,
        reader: &mut R,
        name: &str,
        collector: &mut Collector<'_>,
    ) -> bool {
        let of_archive = self.allowed.saturating_sub(self.unpacked);
        let of_all = collector.limits.unpacked_bytes.saturating_sub(collector.unpacked);
        let of_file = collector.limits.file_bytes;
        let limit = of_file.min(of_all).min(of_archive);
        // What the header declares may be a lie: the limit holds for what really comes out.
        let mut bytes = Vec::with_capacity(declared.min(limit).min(1 << 20) as usize);
        let options = ZipReadOptions::new();
        let mut file = match entry.with_reader(reader, options) {
            Ok(file) => file,
            Err(error) => {
                collector.find(refused(name, &error));
                return true;
            }
        };
        let mut inside = (&mut file).take(limit.saturating_add(1));
        let outcome = loop {
            match (&mut inside).take(BLOCK_BYTES as u64).read_to_end(&mut bytes) {
                Ok(0) => break Ok(()),
                Ok(_) if !collector.goes_on() => return false,
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        let length = bytes.len() as u64;
        self.unpacked = self.unpacked.saturating_add(length);
        collector.unpacked = collector.unpacked.saturating_add(length);
        if length > limit {
            return self.over_limit(name, limit, of_file, of_archive, collector);
        }
        if let Err(error) = outcome {
            collector.find(SubmissionFinding::error("damaged_file", name).detail("reason", error));
            return true;
        }
        collector.bytes(name, bytes.into(), self.depth + 1);
        true
    }

    fn over_limit(&self, name: &str, limit: u64, of_file: u64, of_archive: u64, collector: &mut Collector<'_>) -> bool {
        if limit == of_file {
            collector.find(SubmissionFinding::error("file_too_large", name).value(of_file >> 20));
            return true;
        }
        let finding = if limit == of_archive {
            SubmissionFinding::error("zip_bomb", self.name).value(collector.limits.ratio)
        } else {
            SubmissionFinding::error("too_much", self.name).value(collector.limits.unpacked_bytes >> 20)
        };
        collector.find(finding);
        false
    }
}

fn damaged(code: &'static str, name: &str, error: &ZipError) -> SubmissionFinding {
    SubmissionFinding::error(code, name).detail("reason", error)
}

fn refused(name: &str, error: &ZipError) -> SubmissionFinding {
    match error {
        ZipError::UnsupportedArchive(what) if *what == ZipError::PASSWORD_REQUIRED => {
            SubmissionFinding::error("encrypted", name)
        }
        _ => damaged("damaged_file", name, error),
    }
}
