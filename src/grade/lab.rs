//! Labs: those that are compiled in, and those of an instructor's own folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::document::{Problem, nearest};
use super::feedback::{self, Feedback};
use super::fill::Places;
use super::report::Both;
use super::rubric::{Rubric, is_lab_id};
use crate::error::Error;
use crate::words::Lang;

pub const RUBRIC_FILE: &str = "rubric.toml";
pub const FEEDBACK_FILES: [&str; 2] = ["feedback.en.toml", "feedback.zh.toml"];
pub const README_FILE: &str = "README.md";
/// The same in Chinese; a lab may lack it.
pub const README_FILE_ZH: &str = "README.zh.md";

/// Bytes of one file of a lab that are read.
const MOST_FILE_BYTES: u64 = 4 << 20;

/// A lab that is compiled into the library: its files' texts.
struct Shipped {
    id: &'static str,
    rubric: &'static str,
    feedback: [&'static str; 2],
    readme: [&'static str; 2],
}

include!(concat!(env!("OUT_DIR"), "/shipped_labs.rs"));

/// A rubric with its words.
#[derive(Clone, Debug)]
pub struct Lab {
    pub rubric: Rubric,
    pub en: Feedback,
    pub zh: Feedback,
    pub readme: String,
    /// In Chinese; empty where the lab has none.
    pub readme_zh: String,
    /// Its folder; none for a lab that is compiled in.
    pub folder: Option<PathBuf>,
}

impl Lab {
    pub fn id(&self) -> &str {
        &self.rubric.id
    }

    pub fn words(&self, lang: Lang) -> &Feedback {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }

    /// What students and instructors read; in English where there is none in the language asked for.
    pub fn readme(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh if !self.readme_zh.trim().is_empty() => &self.readme_zh,
            _ => &self.readme,
        }
    }

    pub fn title(&self) -> Both {
        Both::new(|lang| self.words(lang).title.clone())
    }

    /// What people call a column that is compared: the lab's label, else its name.
    pub fn label(&self, column: &str) -> Both {
        Both::new(|lang| self.words(lang).labels.get(column).map_or(column, String::as_str).to_owned())
    }

    /// A check's title, with the parameters' defaults in it.
    pub fn check_title(&self, check: &str, lang: Lang) -> String {
        let mut places = Places::default();
        for param in &self.rubric.params {
            places.value(format!("param.{}", param.name), param.default.clone(), param.unit);
        }
        let title = self.words(lang).checks.get(check).map_or(check, |words| words.title.as_str());
        places.fill(title, lang, &mut BTreeSet::new())
    }

    /// Reads a lab's folder. What is wrong with it comes with file and line.
    pub fn read(folder: &Path) -> Result<Self, Vec<Problem>> {
        let read = |name: &str| read_text(&folder.join(name));
        let rubric = read(RUBRIC_FILE).map_err(|problem| vec![problem])?;
        let [en, zh] = FEEDBACK_FILES.map(read);
        // A README is for people; a lab can be graded without.
        let readme = [README_FILE, README_FILE_ZH].map(|name| match folder.join(name).is_file() {
            true => read(name).unwrap_or_default(),
            false => String::new(),
        });
        let name = |file: &str| folder.join(file).display().to_string();
        let [en_name, zh_name] = FEEDBACK_FILES.map(name);
        let texts = [(en_name, en), (zh_name, zh)];
        Self::parse(&name(RUBRIC_FILE), &rubric, texts, readme, Some(folder.to_path_buf()))
    }

    fn parse(
        rubric_name: &str,
        rubric: &str,
        feedback_texts: [(String, Result<String, Problem>); 2],
        readme: [String; 2],
        folder: Option<PathBuf>,
    ) -> Result<Self, Vec<Problem>> {
        let rubric = Rubric::parse(rubric_name, rubric)?;
        let mut problems = Vec::new();
        let [en, zh] = feedback_texts.map(|(name, text)| match text {
            Ok(text) => {
                let (feedback, of_file) = Feedback::parse(&name, &text, &rubric);
                problems.extend(of_file);
                Some(feedback)
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let (Some(en), Some(zh)) = (en, zh) else { return Err(problems) };
        // Keys that are missing altogether were complained of already.
        if problems.is_empty() {
            problems.extend(feedback::compare(&en, &zh));
        }
        let [readme, readme_zh] = readme;
        if problems.is_empty() { Ok(Self { rubric, en, zh, readme, readme_zh, folder }) } else { Err(problems) }
    }

    fn shipped(lab: &Shipped) -> Result<Self, Vec<Problem>> {
        let name = |file: &str| format!("{}/{file}", lab.id);
        let [en, zh] = FEEDBACK_FILES.map(name);
        let texts = [(en, Ok(lab.feedback[0].to_owned())), (zh, Ok(lab.feedback[1].to_owned()))];
        Self::parse(&name(RUBRIC_FILE), lab.rubric, texts, lab.readme.map(str::to_owned), None)
    }
}

/// Where labs are looked for: an instructor's folders first, then what is compiled in.
#[derive(Clone, Debug, Default)]
pub struct Library {
    folders: Vec<PathBuf>,
}

/// A lab that a library holds.
#[derive(Clone, Debug)]
pub struct Listed {
    pub id: String,
    pub folder: Option<PathBuf>,
}

impl Library {
    /// `folders` hold one folder for each lab, or are labs themselves.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect() }
    }

    /// All labs, by id. Of two with one id, that of the folder named first is taken.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut listed: Vec<Listed> = Vec::new();
        let mut add = |id: String, folder: Option<PathBuf>| {
            if !listed.iter().any(|lab| lab.id == id) {
                listed.push(Listed { id, folder });
            }
        };
        for folder in &self.folders {
            for lab in labs_in(folder)? {
                let id = lab.canonicalize().unwrap_or_else(|_| lab.clone());
                let id = id.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                add(id, Some(lab));
            }
        }
        for shipped in SHIPPED {
            add(shipped.id.to_owned(), None);
        }
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(listed)
    }

    /// The lab with this id, or in this folder.
    pub fn lab(&self, name: &str) -> Result<Lab, Error> {
        let path = Path::new(name);
        // An id is never taken for a folder that happens to be called so, unless it is one with a rubric.
        let has_rubric = path.join(RUBRIC_FILE).is_file();
        // What is neither an id nor there at all was meant as a name: `LAB`, or one in capitals.
        let is_nothing = path.components().count() == 1 && !path.exists();
        let found = if has_rubric || !(is_lab_id(name) || is_nothing) {
            Some(Lab::read(path))
        } else {
            self.find(name)?.map(|listed| match &listed.folder {
                Some(folder) => Lab::read(folder),
                None => match SHIPPED.iter().find(|shipped| shipped.id == listed.id) {
                    Some(shipped) => Lab::shipped(shipped),
                    None => Err(Vec::new()),
                },
            })
        };
        match found {
            Some(Ok(lab)) => Ok(lab),
            Some(Err(problems)) => {
                let lines: Vec<_> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
                Err(Error::Usage(format!("lab {name} cannot be used:{}", lines.concat())))
            }
            None => {
                let known: Vec<_> = self.list()?.into_iter().map(|lab| lab.id).collect();
                let near = nearest(&name.to_lowercase(), known.iter().map(String::as_str)).map(str::to_owned);
                Err(Error::NoLab { name: name.to_owned(), near, known })
            }
        }
    }

    fn find(&self, id: &str) -> Result<Option<Listed>, Error> {
        Ok(self.list()?.into_iter().find(|lab| lab.id == id))
    }
}

/// The folder itself if it is a lab, else all labs in it.
fn labs_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if folder.join(RUBRIC_FILE).is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut labs: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join(RUBRIC_FILE).is_file())
        .collect();
    labs.sort();
    Ok(labs)
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let name = path.display().to_string();
    let of_file = |message: String| Problem::of_file(&name, message);
    let length = std::fs::metadata(path).map(|metadata| metadata.len());
    match length {
        Ok(length) if length > MOST_FILE_BYTES => {
            return Err(of_file(format!("the file has {length} bytes; {MOST_FILE_BYTES} are read")));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(of_file("the file is missing".to_owned()));
        }
        _ => {}
    }
    let bytes = std::fs::read(path).map_err(|error| of_file(error.to_string()))?;
    let text =
        String::from_utf8(bytes).map_err(|_| of_file("the file is not UTF-8 text; save it as UTF-8".to_owned()))?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned).replace("\r\n", "\n"))
}
