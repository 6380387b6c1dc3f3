//! Folders: walked without following links, hidden files left out.

use std::path::{Path, PathBuf};

use super::Collector;
use super::finding::SubmissionFinding;
use super::names::{clean, is_junk};

/// Endings of what lies beside submissions: rosters, worksheets and reports.
const BESIDE: [&str; 8] = [".csv", ".xls", ".xlsx", ".ods", ".toml", ".html", ".htm", ".md"];

/// Submissions in a folder of a class: its folders and files, sorted, without what systems leave behind and without
/// rosters and reports.
pub fn children(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    Ok(sorted_out(folder)?.0)
}

/// What else is there and might have been meant as one: links, which are not followed, and files that are taken for rosters
/// and reports.
pub fn left_out(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    Ok(sorted_out(folder)?.1)
}

fn sorted_out(folder: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_beside = kind.is_file() && BESIDE.iter().any(|ending| name.ends_with(ending));
        if is_junk(&name) {
            continue;
        }
        let list = if !is_beside && (kind.is_dir() || kind.is_file()) { &mut found } else { &mut others };
        list.push(entry.path());
    }
    found.sort();
    others.sort();
    Ok((found, others))
}

/// Whether a folder seems to hold the submissions of several people and none itself: everything in it is a folder or an
/// archive, and there are at least two. A hint, no more: a submission may have two folders as well.
pub fn may_be_class(folder: &Path) -> bool {
    let is_container = |path: &PathBuf| {
        let name = path.to_string_lossy().to_lowercase();
        path.is_dir() || [".zip", ".rar", ".7z", ".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending))
    };
    children(folder).is_ok_and(|found| found.len() > 1 && found.iter().all(is_container))
}

/// Reads every file below a folder. Fails only where the folder itself cannot be read.
pub(super) fn read(root: &Path, collector: &mut Collector<'_>) -> std::io::Result<()> {
    walk(root, "", 0, collector)
}

fn walk(folder: &Path, prefix: &str, depth: usize, collector: &mut Collector<'_>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if !collector.goes_on() {
            break;
        }
        let (part, _) = clean(&entry.file_name().to_string_lossy());
        let name = if prefix.is_empty() { part.clone() } else { format!("{prefix}/{part}") };
        if is_junk(&part) {
            collector.junk.push(name);
            continue;
        }
        let path = entry.path();
        // What the entry is itself, not what it points to.
        let kind = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) => {
                collector.find(SubmissionFinding::error("unreadable", &name).detail("reason", error));
                continue;
            }
        };
        let outcome = if kind.is_symlink() {
            collector.find(SubmissionFinding::warning("link", &name));
            Ok(())
        } else if kind.is_dir() && depth + 1 > collector.limits.depth {
            collector.find(SubmissionFinding::error("folders_too_deep", &name).detail("limit", collector.limits.depth));
            Ok(())
        } else if kind.is_dir() {
            walk(&path, &name, depth + 1, collector)
        } else if kind.is_file() {
            collector.file_on_disk(&path, &name, 0)
        } else {
            collector.find(SubmissionFinding::warning("special_file", &name));
            Ok(())
        };
        if let Err(error) = outcome {
            collector.find(SubmissionFinding::error("unreadable", &name).detail("reason", error));
        }
    }
    Ok(())
}
