//! Folders that stand for the captures in them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::capture::{is_capture, ring_of};

/// Folders within folders that are looked into.
const DEPTH: usize = 32;
/// Enough to know a capture by.
const HEAD_BYTES: u64 = 64;

/// The captures below a folder in the order of their names: what is called so, whatever it holds, and what begins like one.
/// Hidden files, and what cannot be a capture (notes, logs), are left out; what cannot be looked at is given with the reason.
pub(super) fn captures(folder: &Path) -> Vec<(PathBuf, Option<io::Error>)> {
    let is_shown = |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    let entries = WalkDir::new(folder).max_depth(DEPTH).sort_by_file_name().into_iter().filter_entry(is_shown);
    let found = entries.filter_map(|entry| match entry {
        Ok(entry) => match may_be_capture(&entry) {
            Ok(is_one) => is_one.then(|| (entry.into_path(), None)),
            Err(error) => Some((entry.into_path(), Some(error))),
        },
        Err(error) => {
            let path = error.path().unwrap_or(folder).to_owned();
            Some((path, Some(error.into_io_error().unwrap_or_else(|| io::Error::other("it contains itself")))))
        }
    });
    let found: Vec<_> = found.collect();
    match found.is_empty() {
        true => vec![(folder.to_owned(), Some(io::Error::other("there is no capture in it")))],
        false => found,
    }
}

fn may_be_capture(entry: &DirEntry) -> io::Result<bool> {
    let kind = entry.file_type();
    if kind.is_dir() {
        return Ok(false);
    }
    let path = entry.path();
    // Packed, numbered and dated ones too.
    let is_named = ring_of(&entry.file_name().to_string_lossy().to_lowercase()).is_some();
    // A link to a file counts; one to a folder is not followed.
    let metadata = match path.metadata() {
        Err(error) if is_named || error.kind() != io::ErrorKind::NotFound => return Err(error),
        metadata => metadata.ok(),
    };
    let Some(metadata) = metadata.filter(|metadata| !metadata.is_dir()) else { return Ok(false) };
    if is_named || !metadata.is_file() {
        // Whoever reads it is told where it is no file.
        return Ok(is_named);
    }
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(is_capture(&head))
}
