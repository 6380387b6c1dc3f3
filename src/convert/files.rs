//! The files to convert: what is known of each without reading it.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::folder;
use crate::error::Error;

/// A file to convert.
#[derive(Debug)]
pub(super) struct InputFile {
    /// As the caller named it.
    pub path: PathBuf,
    /// The same file by one name, whatever links lead to it.
    pub key: String,
    pub stamp: Result<Stamp, io::Error>,
}

/// By what a file is seen to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub bytes: u64,
    /// Nanoseconds since 1970; 0 where the system does not tell.
    pub modified_ns: i64,
}

impl InputFile {
    /// Bytes as stored; 0 where it cannot be looked at.
    pub fn bytes(&self) -> u64 {
        self.stamp.as_ref().map_or(0, |stamp| stamp.bytes)
    }

    /// The last part of its name.
    pub fn file_name(&self) -> &str {
        file_name(&self.key)
    }
}

pub(super) fn file_name(key: &str) -> &str {
    key.rsplit(['/', '\\']).next().unwrap_or(key)
}

/// Looks at the files, and at those in folders; one that is named twice counts once.
pub(super) fn look_at(paths: Vec<PathBuf>) -> Result<Vec<InputFile>, Error> {
    let mut every = Vec::with_capacity(paths.len());
    for path in paths {
        if path.is_dir() {
            every.extend(folder::captures(&path));
        } else {
            every.push((path, None));
        }
    }
    let mut seen = HashSet::new();
    let mut files = Vec::with_capacity(every.len());
    for (path, failure) in every {
        if path.as_os_str() == "-" {
            return Err(Error::Usage(
                "convert reads files, so that a second run can tell what is done; save standard input to a file first"
                    .to_owned(),
            ));
        }
        let real = path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or_else(|_| path.clone());
        let key = text_of(&real);
        if seen.insert(key.clone()) {
            let stamp = failure.map_or_else(|| stamp(&path), Err);
            files.push(InputFile { path, key, stamp });
        }
    }
    if files.is_empty() {
        return Err(Error::Usage("no capture was given".to_owned()));
    }
    Ok(files)
}

pub(super) fn stamp(path: &Path) -> Result<Stamp, io::Error> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file, and convert must be able to read it again"));
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_ns = modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
    Ok(Stamp { bytes: metadata.len(), modified_ns })
}

/// Begins the text of a path that is no UTF-8; no path that was made absolute begins so.
const ENCODED: &str = "percent-encoded:";

/// A path as text; two that differ never give the same. Where it is no UTF-8, bytes that are no text are percent-encoded.
fn text_of(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return text.to_owned();
    }
    let mut text = ENCODED.to_owned();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

/// Whether nothing is left where a file was.
pub(super) fn is_gone(key: &str) -> bool {
    match key.strip_prefix(ENCODED) {
        None => !Path::new(key).exists(),
        Some(text) => path_of(text).is_some_and(|path| !path.exists()),
    }
}

#[cfg(unix)]
fn path_of(encoded: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut parts = encoded.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// Elsewhere a name that is no Unicode cannot be made from bytes.
#[cfg(not(unix))]
fn path_of(_encoded: &str) -> Option<PathBuf> {
    None
}
