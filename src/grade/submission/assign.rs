//! Which file of a submission is which input of a lab: by name pattern and by what the file is.

use globset::{GlobBuilder, GlobMatcher};

use super::finding::SubmissionFinding;
use super::names::is_capture_name;
use super::{FileKind, Submission, SubmittedFile};
use crate::capture::Severity;
use crate::logs::LogKind;

/// An input that a lab asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    pub name: String,
    pub kind: InputKind,
    /// Patterns for the file's name, or for its path inside the submission; upper and lower case are the same. None at all
    /// takes any name.
    pub patterns: Vec<String>,
    pub required: bool,
}

impl InputSpec {
    /// Whether a file with this name, without its ending, is meant for just this input.
    fn is_called(&self, stem: &str) -> bool {
        let is_plain = |pattern: &&String| !pattern.contains(['*', '?', '[', '{']);
        let names = self.patterns.iter().filter(is_plain).map(|pattern| pattern.to_lowercase());
        names.chain([self.name.to_lowercase()]).any(|name| name == stem.to_lowercase())
    }

    pub(super) fn names(&self) -> Names<'_> {
        let matchers = self.patterns.iter().filter_map(|pattern| matcher(pattern).ok()).collect();
        Names { input: self, matchers }
    }
}

/// The names that an input's file may have.
pub(super) struct Names<'a> {
    input: &'a InputSpec,
    matchers: Vec<GlobMatcher>,
}

impl Names<'_> {
    /// Whether a file's own name, or `name`, which may be longer, is one.
    pub(super) fn fit(&self, base_name: &str, name: &str) -> bool {
        self.input.is_called(stem(base_name)) || self.matchers.iter().any(|matcher| matcher.is_match(name))
    }
}

/// What a file must be to serve as an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    Capture,
    Log(LogKind),
    /// Any text, logs too: answers, a design.
    Text,
}

impl InputKind {
    /// `capture`, the name of a tool whose output is read, or `text`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "capture" => Some(Self::Capture),
            "text" => Some(Self::Text),
            name => LogKind::from_name(name).map(Self::Log),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Log(kind) => kind.name(),
            Self::Text => "text",
        }
    }

    fn fits(self, file: &SubmittedFile) -> bool {
        match self {
            Self::Capture => file.kind == FileKind::Capture,
            Self::Log(kind) => file.logs.contains(&kind),
            Self::Text => matches!(file.kind, FileKind::Text | FileKind::Log(_)),
        }
    }
}

/// What became of one input. Files are named by their index in [`Submission::files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assigned {
    File(usize),
    /// No file fits. `near` are files whose name fits but which are something else.
    Missing {
        near: Vec<usize>,
    },
    /// Several files fit, or the one that fits is wanted by another input too.
    Ambiguous {
        candidates: Vec<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputAssignment {
    pub name: String,
    pub outcome: Assigned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// One for each input, in their order.
    pub inputs: Vec<InputAssignment>,
    /// Files that serve as no input.
    pub unused: Vec<usize>,
    pub findings: Vec<SubmissionFinding>,
}

impl Assignment {
    /// The file of an input, if there is just one.
    pub fn file_of<'s>(&self, input: &str, submission: &'s Submission) -> Option<&'s SubmittedFile> {
        let found = self.inputs.iter().find(|assigned| assigned.name == input)?;
        match found.outcome {
            Assigned::File(at) => submission.files.get(at),
            _ => None,
        }
    }
}

/// Says what is wrong with a pattern, if anything.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    matcher(pattern).map(|_| ()).map_err(|error| error.kind().to_string())
}

fn matcher(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    GlobBuilder::new(pattern).case_insensitive(true).literal_separator(false).build().map(|glob| glob.compile_matcher())
}

/// Finds the file for each input. Names decide first; where they leave one input and one file of its kind, those belong
/// together, which is said. A pattern that is none (see [`check_pattern`]) fits no file.
pub fn assign(inputs: &[InputSpec], submission: &Submission) -> Assignment {
    let files = &submission.files;
    let named: Vec<Vec<usize>> = inputs.iter().map(|input| named(input, files)).collect();
    let fitting: Vec<Vec<usize>> = inputs
        .iter()
        .zip(&named)
        .map(|(input, named)| {
            named.iter().copied().filter(|at| files.get(*at).is_some_and(|file| input.kind.fits(file))).collect()
        })
        .collect();
    let (fitting, passed_over) = exact(inputs, files, fitting);
    let is_printed = |file: &SubmittedFile| {
        submission.findings.iter().any(|finding| finding.code == "tcpdump_text" && finding.file == file.name)
    };
    let printed = files.iter().enumerate().filter(|(_, file)| is_printed(file)).map(|(at, _)| at).collect();
    let mut solver = Solver { inputs, files, fitting, chosen: vec![None; inputs.len()], printed, findings: Vec::new() };
    solver.by_name();
    solver.by_kind();
    solver.say_passed_over(&passed_over);
    solver.finish(&named)
}

/// Files whose name fits: the file's own name, or, where no file of the input's kind has such a name, that of a folder
/// around it. A folder that is called after the lab would fit every input.
fn named(input: &InputSpec, files: &[SubmittedFile]) -> Vec<usize> {
    if input.patterns.is_empty() {
        return (0..files.len()).collect();
    }
    let names = input.names();
    let by = |name: fn(&SubmittedFile) -> &str| -> Vec<usize> {
        let fits = |file: &SubmittedFile| names.fit(file.base_name(), name(file));
        files.iter().enumerate().filter(|(_, file)| fits(file)).map(|(at, _)| at).collect()
    };
    let own = by(SubmittedFile::base_name);
    let has_kind = own.iter().any(|at| files.get(*at).is_some_and(|file| input.kind.fits(file)));
    if has_kind { own } else { by(|file| file.name.as_str()) }
}

/// Input, file that is taken for it, and file that is passed over.
type PassedOver = (usize, usize, usize);

/// Of several files that fit an input, one that is called exactly like it, or like a pattern without a wildcard, is meant.
/// The others come second.
fn exact(
    inputs: &[InputSpec],
    files: &[SubmittedFile],
    mut fitting: Vec<Vec<usize>>,
) -> (Vec<Vec<usize>>, Vec<PassedOver>) {
    let mut passed_over = Vec::new();
    for (input, (spec, fits)) in inputs.iter().zip(&mut fitting).enumerate() {
        let is_exact = |at: &usize| files.get(*at).is_some_and(|file| spec.is_called(stem(file.base_name())));
        let found: Vec<_> = fits.iter().copied().filter(is_exact).collect();
        if let ([taken], true) = (found.as_slice(), fits.len() > 1) {
            passed_over.extend(fits.iter().filter(|at| *at != taken).map(|at| (input, *taken, *at)));
            *fits = found;
        }
    }
    (fitting, passed_over)
}

/// A file's name without its ending, and without that of a compression.
fn stem(name: &str) -> &str {
    let ends = |name: &str, ending: &str| name.to_ascii_lowercase().ends_with(ending);
    let plain = [".gz", ".zst", ".lz4", ".xz"].into_iter().find(|ending| ends(name, ending));
    let plain = plain.and_then(|ending| name.get(..name.len() - ending.len())).unwrap_or(name);
    plain.rsplit_once('.').map_or(plain, |(stem, _)| if stem.is_empty() { plain } else { stem })
}

struct Solver<'a> {
    inputs: &'a [InputSpec],
    files: &'a [SubmittedFile],
    /// For each input, the files that fit by name and kind.
    fitting: Vec<Vec<usize>>,
    chosen: Vec<Option<usize>>,
    /// Files that hold what tcpdump printed on the screen.
    printed: Vec<usize>,
    findings: Vec<SubmissionFinding>,
}

impl Solver<'_> {
    fn is_used(&self, file: usize) -> bool {
        self.chosen.contains(&Some(file))
    }

    /// Whether a file that one input has chosen is lost to another. A saved session may hold the output of two tools: then
    /// it serves an input of each.
    fn excludes(&self, one: usize, other: usize) -> bool {
        let kind = |at: usize| self.inputs.get(at).map(|input| input.kind);
        match (kind(one), kind(other)) {
            (Some(InputKind::Log(one)), Some(InputKind::Log(other))) => one == other,
            _ => true,
        }
    }

    fn is_taken(&self, file: usize, input: usize) -> bool {
        self.chosen.iter().enumerate().any(|(other, chosen)| *chosen == Some(file) && self.excludes(other, input))
    }

    /// The files that are left for an input. Copies of one file count once.
    fn open(&self, input: usize) -> Vec<usize> {
        let mut seen: Vec<&str> = Vec::new();
        let fitting = self.fitting.get(input).map_or(&[][..], Vec::as_slice);
        let mut open = Vec::new();
        for at in fitting.iter().copied().filter(|at| !self.is_taken(*at, input)) {
            let Some(file) = self.files.get(at) else { continue };
            if !seen.contains(&file.sha256.as_str()) {
                seen.push(&file.sha256);
                open.push(at);
            }
        }
        open
    }

    /// Gives each input the one file that is left for it, again and again, as long as that changes anything.
    fn by_name(&mut self) {
        loop {
            let wishes: Vec<(usize, usize)> = (0..self.inputs.len())
                .filter(|input| self.chosen.get(*input) == Some(&None))
                .filter_map(|input| match self.open(input).as_slice() {
                    [only] => Some((input, *only)),
                    _ => None,
                })
                .collect();
            let mut has_changed = false;
            for (input, file) in &wishes {
                // Wanted by two inputs, neither of which has another: nobody can tell.
                let rivals = wishes.iter().filter(|(other, wish)| wish == file && self.excludes(*other, *input));
                if rivals.count() == 1
                    && let Some(chosen) = self.chosen.get_mut(*input)
                {
                    *chosen = Some(*file);
                    has_changed = true;
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// One input of a kind without a file, and one file of that kind that is left: they belong together.
    fn by_kind(&mut self) {
        let inputs = self.inputs;
        for (at, input) in inputs.iter().enumerate() {
            let is_open = |other: usize| {
                self.chosen.get(other) == Some(&None) && self.fitting.get(other).is_some_and(Vec::is_empty)
            };
            let rivals = inputs
                .iter()
                .enumerate()
                .filter(|(other, rival)| rival.kind == input.kind && self.chosen.get(*other) == Some(&None));
            if !is_open(at) || rivals.count() != 1 {
                continue;
            }
            let mut left = self
                .files
                .iter()
                .enumerate()
                .filter(|(file, content)| input.kind.fits(content) && !self.is_taken(*file, at));
            let (Some((file, content)), None) = (left.next(), left.next()) else { continue };
            let finding = SubmissionFinding::info("assigned_by_kind", &content.name);
            let finding = finding.detail("input", &input.name).detail("patterns", input.patterns.join(", "));
            if let Some(chosen) = self.chosen.get_mut(at) {
                *chosen = Some(file);
            }
            self.findings.push(finding);
        }
    }

    /// Files that were not taken since another one is called exactly like the input.
    fn say_passed_over(&mut self, passed_over: &[(usize, usize, usize)]) {
        for (input, taken, other) in passed_over {
            let is_taken = self.chosen.get(*input) == Some(&Some(*taken));
            let (Some(spec), Some(taken), Some(file)) =
                (self.inputs.get(*input), self.files.get(*taken), self.files.get(*other))
            else {
                continue;
            };
            if is_taken && !self.is_used(*other) && taken.sha256 != file.sha256 {
                let finding = SubmissionFinding::warning("passed_over", &file.name);
                self.findings.push(finding.detail("input", &spec.name).detail("taken", &taken.name));
            }
        }
    }

    /// Whether a file whose name fits inputs of several kinds was meant for one of this kind. A name like a capture's says
    /// so, and any other that it is no capture, unless it is what tcpdump printed.
    fn is_meant(&self, file: usize, kind: InputKind, named: &[Vec<usize>]) -> bool {
        let fits = |is_capture: bool| {
            let of_kind = |input: &InputSpec| (input.kind == InputKind::Capture) == is_capture;
            self.inputs
                .iter()
                .zip(named)
                .any(|(input, named)| of_kind(input) && !input.patterns.is_empty() && named.contains(&file))
        };
        let Some(submitted) = self.files.get(file).filter(|_| fits(true) && fits(false)) else { return true };
        let is_text = matches!(submitted.kind, FileKind::Text | FileKind::Log(_));
        let has_ending = submitted.base_name().contains('.');
        let is_capture = is_capture_name(&submitted.name) || !has_ending && !is_text || self.printed.contains(&file);
        is_capture == (kind == InputKind::Capture)
    }

    fn finish(mut self, named_by: &[Vec<usize>]) -> Assignment {
        let inputs = self.inputs;
        let mut assigned = Vec::with_capacity(inputs.len());
        for (at, input) in inputs.iter().enumerate() {
            let outcome = match self.chosen.get(at).copied().flatten() {
                Some(file) => Assigned::File(file),
                None => {
                    let candidates = self.open(at);
                    let near: Vec<usize> = match named_by.get(at) {
                        // A file that serves as another input is no failed try at this one.
                        Some(named) if !input.patterns.is_empty() => {
                            let is_try =
                                |file: &usize| !self.is_used(*file) && self.is_meant(*file, input.kind, named_by);
                            named.iter().copied().filter(is_try).collect()
                        }
                        _ => Vec::new(),
                    };
                    self.say(input, &candidates, &near);
                    if candidates.is_empty() { Assigned::Missing { near } } else { Assigned::Ambiguous { candidates } }
                }
            };
            assigned.push(InputAssignment { name: input.name.clone(), outcome });
        }
        let is_copy = |file: &SubmittedFile| {
            let of_chosen = |at: &usize| self.files.get(*at).is_some_and(|chosen| chosen.sha256 == file.sha256);
            self.chosen.iter().flatten().any(of_chosen)
        };
        let unused: Vec<usize> = (0..self.files.len()).filter(|at| !self.is_used(*at)).collect();
        for at in &unused {
            if let Some(file) = self.files.get(*at) {
                // It was told already.
                if self.findings.iter().any(|finding| finding.code == "passed_over" && finding.file == file.name) {
                    continue;
                }
                let code = if is_copy(file) { "unused_copy" } else { "unused_file" };
                self.findings.push(SubmissionFinding::info(code, &file.name).words("kind", kind_key(file.kind)));
            }
        }
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Assignment { inputs: assigned, unused, findings: self.findings }
    }

    fn say(&mut self, input: &InputSpec, candidates: &[usize], near: &[usize]) {
        let names = |files: &[usize]| {
            let names: Vec<&str> = files.iter().filter_map(|at| Some(self.files.get(*at)?.name.as_str())).collect();
            names.join(", ")
        };
        let patterns = if input.patterns.is_empty() { "*".to_owned() } else { input.patterns.join(", ") };
        let (code, file) = match (candidates, near) {
            ([_], _) => ("contested_input", names(candidates)),
            ([_, _, ..], _) => ("ambiguous_input", names(candidates)),
            ([], [_, ..]) => ("wrong_kind", names(near)),
            ([], []) => ("missing_input", String::new()),
        };
        let mut finding = SubmissionFinding::error(code, &file);
        if !input.required {
            finding.severity = if code == "missing_input" { Severity::Info } else { Severity::Warning };
        }
        let finding = finding.detail("input", &input.name).detail("patterns", patterns);
        self.findings.push(finding.words("kind", input_key(input.kind)));
    }
}

pub(super) fn kind_key(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Capture => "submission.kind.capture",
        FileKind::Log(kind) => input_key(InputKind::Log(kind)),
        FileKind::Text => "submission.kind.text",
        FileKind::Archive => "submission.kind.archive",
        FileKind::Other => "submission.kind.other",
    }
}

pub(super) fn input_key(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Capture => "submission.kind.capture",
        InputKind::Text => "submission.kind.text",
        InputKind::Log(LogKind::Iperf3) => "submission.kind.iperf3",
        InputKind::Log(LogKind::Ping) => "submission.kind.ping",
        InputKind::Log(LogKind::Perftest) => "submission.kind.perftest",
        InputKind::Log(LogKind::Ss) => "submission.kind.ss",
        InputKind::Log(LogKind::Nstat) => "submission.kind.nstat",
        InputKind::Log(LogKind::Ethtool) => "submission.kind.ethtool",
        InputKind::Log(LogKind::Dcb) => "submission.kind.dcb",
        InputKind::Log(LogKind::Hping3) => "submission.kind.hping3",
    }
}
