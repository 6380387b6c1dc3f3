//! The graded report: one shape for all renderings and exports. Its JSON is the same bytes for the same submission, rubric
//! and version: sorted keys, no clock, no absolute paths, points as decimal text.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Number, Value as Json};

use super::rubric::{Op, Outcome, Visibility};
use super::units::Unit;
use crate::sql::Value;
use crate::words::Lang;

/// The code of a reason that is none to worry: an input that need not be handed in was not.
pub const OPTIONAL_INPUT: &str = "optional_input";

/// What the JSON says it is.
pub const SCHEMA: &str = "wirelab-result/1";

/// The JSON Schema of the report's JSON.
pub const JSON_SCHEMA: &str = include_str!("report.schema.json");

/// Text in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Both {
    pub en: String,
    pub zh: String,
}

impl Both {
    pub fn new(mut say: impl FnMut(Lang) -> String) -> Self {
        Self { en: say(Lang::En), zh: say(Lang::Zh) }
    }

    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.zh.is_empty()
    }
}

/// How a submission did.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub tool_version: &'static str,
    pub view: View,
    pub lab: String,
    pub title: Both,
    pub summary: Both,
    pub rubric: RubricFacts,
    #[serde(serialize_with = "values")]
    pub params: BTreeMap<String, Value>,
    pub submission: SubmissionFacts,
    /// Sum of the items' points; null where a total would tell of checks that are not shown.
    #[serde(serialize_with = "some_points")]
    pub score: Option<Decimal>,
    #[serde(serialize_with = "some_points")]
    pub max_score: Option<Decimal>,
    pub status: Status,
    pub needs_review: bool,
    /// Why a person should look at it.
    pub review: Vec<Reason>,
    pub capture_quality: Vec<QualityFinding>,
    pub groups: Vec<Group>,
    pub items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    Full,
    /// Visible checks alone.
    Student,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Graded,
    /// Some checks could not be assessed. Those that wait for a lost one do not count: their mark is final.
    Partial,
    /// None could.
    NotAssessable,
    /// Nothing in the submission serves as an input of the lab.
    Error,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Graded => "graded",
            Self::Partial => "partial",
            Self::NotAssessable => "not_assessable",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct RubricFacts {
    pub id: String,
    pub version: String,
    pub sha256: String,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct SubmissionFacts {
    pub id: String,
    pub files: Vec<FileFacts>,
    pub findings: Vec<SubmissionFinding>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct FileFacts {
    pub name: String,
    pub sha256: String,
    pub bytes: u64,
    pub kind: String,
    /// The lab's input that it was taken for.
    pub input: Option<String>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct SubmissionFinding {
    pub code: String,
    pub severity: String,
    pub file: Option<String>,
    pub message: Both,
}

/// A row of an input's `capture_quality`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct QualityFinding {
    pub input: String,
    pub file: Option<String>,
    pub code: String,
    pub severity: String,
    pub value: Option<i64>,
    pub unit: Option<String>,
    pub count: i64,
    pub frames: Vec<u64>,
    pub message: Both,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct Group {
    pub id: String,
    pub title: Both,
    #[serde(serialize_with = "some_points")]
    pub points: Option<Decimal>,
    #[serde(serialize_with = "some_points")]
    pub max_points: Option<Decimal>,
}

/// Why, by a stable name and in words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub code: String,
    /// The check that it is about.
    pub check: Option<String>,
    pub message: Both,
}

impl Reason {
    /// Whether the query was answered, and just did not tell.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.code.as_str(), "null" | "no_rows")
    }
}

/// One check's result.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Item {
    pub id: String,
    pub group: Option<String>,
    pub title: Both,
    #[serde(serialize_with = "points")]
    pub points: Decimal,
    #[serde(serialize_with = "points")]
    pub max_points: Decimal,
    pub status: Outcome,
    pub counted: Counted,
    pub needs_review: bool,
    /// The `confidence` column of the check's row, where its query gives one: 0 to 1.
    pub confidence: Option<f64>,
    pub measured: Vec<Measured>,
    pub message: Both,
    /// What to try next; null where nothing was lost.
    pub hint: Option<Both>,
    /// Why it could not be assessed.
    pub reason: Option<Reason>,
    /// Whether it waits for a check that lost its points: then nothing more can become of it.
    #[serde(skip)]
    pub waits_for_loss: bool,
    pub visibility: Visibility,
    pub tags: Vec<String>,
    /// Inputs that the check reads.
    pub inputs: Vec<String>,
    /// The check's query, for the student to run.
    pub sql: String,
    /// What `wirelab sql` needs for that: `NAME=FILE`; none where it cannot run it.
    #[serde(skip)]
    pub sources: Option<Vec<String>>,
    pub evidence: Vec<Evidence>,
    /// What was looked for, where no frames can be shown for a lost point.
    pub searched: Option<String>,
}

impl Item {
    /// Whether points were lost, or might have been.
    pub fn is_lost(&self) -> bool {
        self.status != Outcome::Pass
    }
}

/// How an item goes into the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// With the points it got.
    Full,
    /// With no points, since it could not be assessed.
    Zero,
    /// Not at all: it left the total.
    Excluded,
}

#[derive(Clone, Debug)]
pub struct Measured {
    pub column: String,
    /// What the lab's words call the column.
    pub label: Both,
    pub value: Value,
    pub unit: Option<Unit>,
    pub op: Op,
    /// One value, or those of `between` and `one_of`; null where an expression has none.
    pub expected: Vec<Value>,
    pub tolerance: Option<String>,
    /// Whether it is as expected; null where that cannot be told.
    pub is_met: Option<bool>,
}

#[derive(Clone, Debug)]
pub struct Evidence {
    pub input: Option<String>,
    pub file: Option<String>,
    pub frames: Vec<u64>,
    /// Whether there are more frames than are named.
    pub has_more: bool,
    pub first_time_ns: Option<i64>,
    /// Time of the first frame of the capture; none where it is not known.
    pub start_ns: Option<i64>,
    /// For Wireshark.
    pub filter: Option<String>,
    /// Columns of the evidence query, in its order, where it has more than those that name frames.
    pub columns: Vec<String>,
    pub rows: Vec<BTreeMap<String, Value>>,
}

impl Report {
    /// The canonical JSON, with a line feed at its end.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).map(sorted).unwrap_or(Json::Null);
        serde_json::to_string_pretty(&value).map(|text| text + "\n").unwrap_or_default()
    }

    /// What the student may see: visible checks, and no total that would tell of others.
    pub fn for_student(&self) -> Self {
        let is_hidden = |item: &Item| item.visibility == Visibility::Hidden;
        let hidden: Vec<_> = self.items.iter().filter(|item| is_hidden(item)).map(|item| item.id.clone()).collect();
        let mut seen = self.clone();
        seen.view = View::Student;
        seen.items.retain(|item| !is_hidden(item));
        if hidden.is_empty() {
            return seen;
        }
        seen.score = None;
        seen.max_score = None;
        seen.status = status_of(&seen.items);
        seen.review.retain(|reason| reason.check.as_ref().is_none_or(|check| !hidden.contains(check)));
        seen.needs_review = !seen.review.is_empty();
        for group in &mut seen.groups {
            if self.items.iter().any(|item| is_hidden(item) && item.group.as_ref() == Some(&group.id)) {
                group.points = None;
                group.max_points = None;
            }
        }
        seen.groups.retain(|group| seen.items.iter().any(|item| item.group.as_ref() == Some(&group.id)));
        seen
    }
}

/// What became of the whole, by its items.
pub fn status_of(items: &[Item]) -> Status {
    let is_optional = |item: &&Item| item.reason.as_ref().is_some_and(|reason| reason.code == OPTIONAL_INPUT);
    let asked = items.len() - items.iter().filter(is_optional).count();
    let open = |item: &&Item| item.status == Outcome::NotAssessable && !item.waits_for_loss && !is_optional(item);
    match items.iter().filter(open).count() {
        0 => Status::Graded,
        open if open == asked => Status::NotAssessable,
        _ => Status::Partial,
    }
}

/// Points as text, without zeros that say nothing.
pub fn points_text(points: Decimal) -> String {
    points.normalize().to_string()
}

/// A time as text, in UTC, to the nanosecond.
pub fn time_text(ns: i64) -> String {
    let Some(time) = arrow_array::temporal_conversions::timestamp_ns_to_datetime(ns) else { return ns.to_string() };
    let text = format!("{time:?}");
    let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{seconds}.{fraction:0<9}Z")
}

/// Whether a column of evidence holds times.
pub fn is_time(column: &str) -> bool {
    column == "time" || column.ends_with("_time")
}

/// A value of SQL in JSON. Whole numbers that JavaScript would round are text.
pub fn json_value(value: &Value) -> Json {
    const EXACT: i64 = 1 << 53;
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) if (-EXACT..=EXACT).contains(number) => Json::Number((*number).into()),
        Value::Integer(number) => Json::String(number.to_string()),
        // JSON has no infinity.
        Value::Real(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
    }
}

/// Keys in order, whatever map serde_json was built with.
fn sorted(value: Json) -> Json {
    match value {
        Json::Object(map) => {
            let ordered: BTreeMap<_, _> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Json::Object(ordered.into_iter().collect::<Map<_, _>>())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn points<S: Serializer>(points: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&points_text(*points))
}

fn some_points<S: Serializer>(points: &Option<Decimal>, serializer: S) -> Result<S::Ok, S::Error> {
    points.map(points_text).serialize(serializer)
}

fn values<S: Serializer>(values: &BTreeMap<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, json_value(value))))
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let expected = match (self.op, self.expected.as_slice()) {
            (Op::Between | Op::OneOf, values) => Json::Array(values.iter().map(json_value).collect()),
            (_, values) => values.first().map_or(Json::Null, json_value),
        };
        serde_json::json!({
            "column": self.column,
            "value": json_value(&self.value),
            "unit": self.unit.map(Unit::name),
            "op": self.op.name(),
            "expected": expected,
            "tolerance": self.tolerance,
            "met": self.is_met,
        })
        .serialize(serializer)
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = |name: &str, value: &Value| match value {
            Value::Integer(ns) if is_time(name) => Json::String(time_text(*ns)),
            value => json_value(value),
        };
        let row = |row: &BTreeMap<String, Value>| {
            Json::Object(row.iter().map(|(name, value)| (name.clone(), cell(name, value))).collect())
        };
        serde_json::json!({
            "input": self.input,
            "file": self.file,
            "frames": self.frames,
            "has_more": self.has_more,
            "first_time": self.first_time_ns.map(time_text),
            "filter": self.filter,
            "columns": self.columns,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
        .serialize(serializer)
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Visibility {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
        })
    }
}
