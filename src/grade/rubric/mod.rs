//! A rubric: what a lab asks of a submission. Read from `rubric.toml`; see `docs/grading.md`.

mod check;
mod parse;
#[cfg(test)]
mod tests;
mod views;

use rust_decimal::Decimal;

pub(in crate::grade) use check::bound_names;
pub(in crate::grade) use parse::qualifiers;
pub use parse::{KEYS, is_lab_id};

use super::params::Param;
use super::units::Unit;
use crate::sql::Value;

/// A lab's rubric, as valid as it can be told without running it.
#[derive(Clone, Debug)]
pub struct Rubric {
    pub id: String,
    pub version: String,
    /// SHA-256 of the file, with line ends as `\n`.
    pub sha256: String,
    pub params: Vec<Param>,
    pub inputs: Vec<Input>,
    /// In the order they are shown.
    pub groups: Vec<String>,
    /// In the order they are assessed.
    pub checks: Vec<Check>,
}

/// A file that a submission has, or may have: a schema in SQL.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: String,
    /// `capture`, or a kind of log.
    pub kind: String,
    /// File name patterns.
    pub patterns: Vec<String>,
    pub required: bool,
    /// A condition over `tcp_flows`: the connections that the lab is about.
    pub traffic: Option<String>,
}

/// One thing that is asked.
#[derive(Clone, Debug)]
pub struct Check {
    pub id: String,
    pub line: usize,
    pub group: Option<String>,
    pub points: Decimal,
    /// Inputs that it reads.
    pub inputs: Vec<String>,
    /// Optional inputs that its queries read through views: without a file they are empty.
    pub optional_inputs: Vec<String>,
    /// What each input's capture must offer.
    pub needs: Vec<(String, Vec<String>)>,
    pub depends_on: Vec<String>,
    /// With the views that it names.
    pub sql: String,
    /// The line of the rubric where it begins.
    pub sql_line: usize,
    pub rows: Rows,
    pub expect: Vec<Expect>,
    pub partial: Vec<Partial>,
    pub notes: Vec<Note>,
    pub on_no_rows: Outcome,
    pub on_null: Outcome,
    pub not_assessable: WhenNotAssessable,
    pub on_damage: OnDamage,
    pub evidence: Option<String>,
    pub display_filter: Option<String>,
    pub visibility: Visibility,
    pub tags: Vec<String>,
    /// Whether a failure asks for a person's look.
    pub review: bool,
    pub time_limit_s: u64,
}

/// One condition on a column of the check's row.
#[derive(Clone, Debug)]
pub struct Expect {
    pub column: String,
    pub op: Op,
    pub expected: Expected,
    pub tolerance: Option<Tolerance>,
    pub unit: Option<Unit>,
    /// Words for a failure of this condition, instead of those for any failure.
    pub say: Option<String>,
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub enum Expected {
    Values(Vec<Value>),
    /// Expressions over parameters and the columns of the row.
    Sql(Vec<String>),
}

/// Some of the points, or words of its own for a kind of failure (with no points).
#[derive(Clone, Debug)]
pub struct Partial {
    /// An expression over parameters and the columns of the row.
    pub when: String,
    pub points: Decimal,
    pub say: String,
}

/// Words that are added to the message, whatever the outcome.
#[derive(Clone, Debug)]
pub struct Note {
    /// An expression over parameters and the columns of the row.
    pub when: String,
    pub say: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Between,
    OneOf,
    Approx,
}

impl Op {
    pub const ALL: [(&'static str, Self); 9] = [
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("lt", Self::Lt),
        ("le", Self::Le),
        ("gt", Self::Gt),
        ("ge", Self::Ge),
        ("between", Self::Between),
        ("one_of", Self::OneOf),
        ("approx", Self::Approx),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }
}

/// How far off an approximate value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    Absolute(f64),
    /// A share of the expected value: 0.05 for "5%".
    Relative(f64),
}

/// Which rows of the answer must meet the expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    First,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    Pass,
    Partial,
    Fail,
    NotAssessable,
}

impl Outcome {
    pub const ALL: [Self; 4] = [Self::Pass, Self::Partial, Self::Fail, Self::NotAssessable];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Partial => "partial",
            Self::Fail => "fail",
            Self::NotAssessable => "not_assessable",
        }
    }
}

/// What becomes of the points of a check that could not be assessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotAssessable {
    ZeroAndReview,
    /// The check leaves the total.
    Exclude,
}

/// What a failure on a damaged capture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    NotAssessable,
    Assess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Visible,
    Hidden,
}

impl Rubric {
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    pub fn max_score(&self) -> Decimal {
        self.checks.iter().map(|check| check.points).sum::<Decimal>().normalize()
    }
}
