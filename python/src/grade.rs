//! Labs, and graded reports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use wirelab::Lang;
use wirelab::grade::{self, GradeOptions, Library, TextOptions, submission};

use crate::error;
use crate::observer::{PyObserver, Raised};
use crate::request::RunOptions;

/// A lab, read and found sound.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Lab(Arc<grade::Lab>);

/// How a submission did.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Report(Arc<grade::Report>);

/// The lab of this name, or in this folder.
#[pyfunction]
pub fn lab(py: Python<'_>, name: &str, folders: Vec<PathBuf>) -> PyResult<Lab> {
    let lab = py.detach(|| Library::new(folders).lab(name)).map_err(|failure| error::to_py(py, &failure))?;
    Ok(Lab(Arc::new(lab)))
}

/// Ids of all labs, with their folders; none for a lab that comes with the package.
#[pyfunction]
pub fn labs(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Vec<(String, Option<PathBuf>)>> {
    let listed = Library::new(folders).list().map_err(|failure| error::to_py(py, &failure))?;
    Ok(listed.into_iter().map(|lab| (lab.id, lab.folder)).collect())
}

/// What a folder of submissions holds.
#[pyfunction]
pub fn submissions(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    submission::children(&folder).map_err(|source| error::to_py(py, &wirelab::Error::Io { path: folder, source }))
}

/// What else a folder of submissions holds that might have been meant as one.
#[pyfunction]
pub fn left_out(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    submission::left_out(&folder).map_err(|source| error::to_py(py, &wirelab::Error::Io { path: folder, source }))
}

/// Whether a folder seems to hold the submissions of several people.
#[pyfunction]
pub fn may_be_class(py: Python<'_>, folder: PathBuf) -> bool {
    py.detach(|| submission::may_be_class(&folder))
}

/// Writes a new lab's folder, and says where.
#[pyfunction]
pub fn new_lab(py: Python<'_>, id: &str, into: PathBuf) -> PyResult<PathBuf> {
    grade::new_lab(id, &into).map_err(|failure| error::to_py(py, &failure))
}

/// The JSON Schema of reports.
#[pyfunction]
pub fn report_schema() -> &'static str {
    grade::JSON_SCHEMA
}

/// Checks a lab: its files, its words, and each case, or the one named, with the report it gets.
#[pyfunction]
pub fn check_lab<'py>(
    py: Python<'py>,
    folder: PathBuf,
    options: RunOptions,
    case: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = GradeOptions { params: BTreeMap::new(), capture: options.into_core() };
    let mut observer = PyObserver::new(None, Raised::default());
    let check = observer.run(py, |observer| grade::check_lab(&folder, case.as_deref(), &options, observer))?;
    let all = PyDict::new(py);
    all.set_item("lab", &check.lab)?;
    all.set_item("case_names", &check.case_names)?;
    all.set_item("is_sound", check.is_sound())?;
    all.set_item("problems", check.problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    all.set_item("notes", check.notes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let cases = PyList::empty(py);
    for case in &check.cases {
        let one = PyDict::new(py);
        one.set_item("name", &case.name)?;
        one.set_item("score", &case.score)?;
        one.set_item("failing", &case.failing)?;
        one.set_item("partial", &case.partial)?;
        one.set_item("not_assessable", &case.not_assessable)?;
        one.set_item("problems", &case.problems)?;
        let report = case.report.as_ref().map(|report| Py::new(py, Report(Arc::clone(report)))).transpose()?;
        one.set_item("report", report)?;
        cases.append(one)?;
    }
    all.set_item("cases", cases)?;
    all.set_item("losses", check.losses.clone())?;
    Ok(all)
}

#[pymethods]
impl Lab {
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.0.folder.clone()
    }

    /// The lab at a glance, in one language.
    fn facts<'py>(&self, py: Python<'py>, lang: &str) -> PyResult<Bound<'py, PyDict>> {
        let (lab, lang) = (&self.0, lang_of(lang));
        let words = lab.words(lang);
        let all = PyDict::new(py);
        all.set_item("id", lab.id())?;
        all.set_item("version", &lab.rubric.version)?;
        all.set_item("title", &words.title)?;
        all.set_item("summary", &words.summary)?;
        all.set_item("readme", lab.readme(lang))?;
        all.set_item("max_score", grade::points_text(lab.rubric.max_score()))?;
        let params = PyList::empty(py);
        for param in &lab.rubric.params {
            let one = PyDict::new(py);
            one.set_item("name", &param.name)?;
            one.set_item("type", param.kind.name())?;
            one.set_item("default", grade::readable(&param.default, param.unit, lang))?;
            params.append(one)?;
        }
        all.set_item("params", params)?;
        let inputs = PyList::empty(py);
        for input in &lab.rubric.inputs {
            let one = PyDict::new(py);
            one.set_item("name", &input.name)?;
            one.set_item("kind", &input.kind)?;
            one.set_item("match", &input.patterns)?;
            one.set_item("required", input.required)?;
            one.set_item("words", words.inputs.get(&input.name))?;
            inputs.append(one)?;
        }
        all.set_item("inputs", inputs)?;
        let checks = PyList::empty(py);
        for check in &lab.rubric.checks {
            let one = PyDict::new(py);
            one.set_item("id", &check.id)?;
            one.set_item("group", &check.group)?;
            one.set_item("points", grade::points_text(check.points))?;
            one.set_item("title", lab.check_title(&check.id, lang))?;
            one.set_item("visible", check.visibility == grade::Visibility::Visible)?;
            one.set_item("sql", &check.sql)?;
            checks.append(one)?;
        }
        all.set_item("checks", checks)?;
        Ok(all)
    }

    /// Grades one submission: a folder, an archive or files, or bytes with a name.
    fn grade(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        bytes: Option<(String, Vec<u8>)>,
        params: BTreeMap<String, String>,
        options: RunOptions,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        let options = GradeOptions { params, capture: options.into_core() };
        let mut observer = PyObserver::new(progress, Raised::default());
        let report = observer.run(py, |observer| {
            let limits = submission::SubmissionLimits::default();
            let submission = match bytes {
                Some((name, bytes)) => submission::read_bytes(&name, bytes.into(), &limits, observer)?,
                None => grade::read_submission(&paths, &limits, observer)?,
            };
            grade::grade(&self.0, &submission, &options, observer)
        })?;
        observer.finish(py)?;
        Ok(Report(Arc::new(report)))
    }
}

#[pymethods]
impl Report {
    /// The canonical JSON.
    fn json(&self) -> String {
        self.0.to_json()
    }

    /// Score and most points as decimal text; none where a total would tell of hidden checks.
    fn points(&self) -> (Option<String>, Option<String>) {
        (self.0.score.map(grade::points_text), self.0.max_score.map(grade::points_text))
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.0.status.name()
    }

    #[getter]
    fn submission(&self) -> &str {
        &self.0.submission.id
    }

    #[getter]
    fn needs_review(&self) -> bool {
        self.0.needs_review
    }

    /// Ids of checks with this status, or of all.
    fn ids(&self, status: Option<&str>) -> Vec<String> {
        let items = self.0.items.iter().filter(|item| status.is_none_or(|status| item.status.name() == status));
        items.map(|item| item.id.clone()).collect()
    }

    fn for_student(&self) -> Self {
        Self(Arc::new(self.0.for_student()))
    }

    fn text(&self, lang: &str, width: usize, is_painted: bool) -> String {
        grade::text(&self.0, TextOptions { lang: lang_of(lang), width, is_painted })
    }

    /// A whole page, or the report alone for a page that there is already.
    fn html(&self, lang: &str, is_page: bool) -> String {
        if is_page { grade::page(&self.0, lang_of(lang)) } else { grade::part(&self.0, lang_of(lang)) }
    }
}

fn lang_of(tag: &str) -> Lang {
    Lang::from_tag(tag).unwrap_or_default()
}
