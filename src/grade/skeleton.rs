//! A new lab to begin with: small, whole, and sound by `labs check`.

use std::path::{Path, PathBuf};

use super::cases::{CASE_FILE, CASES_FOLDER};
use super::lab::{FEEDBACK_FILES, README_FILE, README_FILE_ZH, RUBRIC_FILE};
use super::rubric::is_lab_id;
use crate::error::Error;

const TEXTS: [(&str, &str); 5] = [
    (RUBRIC_FILE, include_str!("skeleton/rubric.toml")),
    (FEEDBACK_FILES[0], include_str!("skeleton/feedback.en.toml")),
    (FEEDBACK_FILES[1], include_str!("skeleton/feedback.zh.toml")),
    (README_FILE, include_str!("skeleton/README.md")),
    (README_FILE_ZH, include_str!("skeleton/README.zh.md")),
];

const ANSWERED: &[u8] = include_bytes!("skeleton/answered.pcap");
const UNANSWERED: &[u8] = include_bytes!("skeleton/unanswered.pcap");

/// Cases with what they must get.
const CASES: [(&str, &[u8], &str); 3] = [
    ("full-marks", ANSWERED, "# A submission that gets every point.\nscore = \"3\"\n"),
    (
        "some-lost",
        UNANSWERED,
        "# Two of four probes were not answered.\nscore = \"2\"\npartial = [\"probes_answered\"]\n",
    ),
    (
        "too-few",
        ANSWERED,
        "# Fewer probes than asked for: the second check waits for the first.\nscore = \"0\"\n\
         failing = [\"probes_sent\"]\nnot_assessable = [\"probes_answered\"]\nparams = { count = 5 }\n",
    ),
];

/// Texts of the template that say only that the author's own belong there.
const PLACEHOLDERS: [&str; 6] = [
    "LAB_ID: a title of your own",
    "One sentence: what the experiment shows.",
    "LAB_ID：请改为自己的标题",
    "用一句话说明这个实验要观察什么。",
    "What the experiment shows, in a few sentences.",
    "用几句话说明这个实验要观察什么。",
];

/// Whether a text still has one of those in it.
pub(super) fn is_template(text: &str, id: &str) -> bool {
    PLACEHOLDERS.iter().any(|placeholder| text.contains(&placeholder.replace("LAB_ID", id)))
}

/// Writes a new lab's folder below `into`, and says where. A folder that is there already is left alone.
pub fn new_lab(id: &str, into: &Path) -> Result<PathBuf, Error> {
    if !is_lab_id(id) {
        return Err(Error::Usage(format!(
            "a lab's name is small letters, digits and hyphens, a letter first; not {id}"
        )));
    }
    let folder = into.join(id);
    if folder.exists() {
        return Err(Error::Usage(format!("{} is there already", folder.display())));
    }
    let write = |path: PathBuf, bytes: &[u8]| {
        let parent = path.parent().unwrap_or(into);
        std::fs::create_dir_all(parent).map_err(|error| Error::write(parent, error))?;
        std::fs::write(&path, bytes).map_err(|error| Error::write(&path, error))
    };
    for (name, text) in TEXTS {
        write(folder.join(name), text.replace("LAB_ID", id).as_bytes())?;
    }
    for (name, capture, expected) in CASES {
        let case = folder.join(CASES_FOLDER).join(name);
        write(case.join("ping.pcap"), capture)?;
        write(case.join(CASE_FILE), expected.as_bytes())?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_those_of_the_template() {
        for placeholder in PLACEHOLDERS {
            assert!(TEXTS.iter().any(|(_, text)| text.contains(placeholder)), "{placeholder}");
        }
    }
}
