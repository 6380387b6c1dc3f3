//! One check on one submission.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::ask::{Asker, Unanswered};
use super::compare::{Shown, compare, is_true, number};
use super::evidence;
use super::inputs::{InputState, Presence};
use super::reasons::{self, Titles, Why};
use crate::error::Error;
use crate::grade::SUBMISSION_SCHEMA;
use crate::grade::lab::Lab;
use crate::grade::needs;
use crate::grade::report::{Counted, Evidence, Item, Measured, QualityFinding};
use crate::grade::rubric::{
    Check, Expect, Expected, OnDamage, Outcome, Rows, Tolerance, WhenNotAssessable, qualifiers,
};
use crate::grade::submission::InputKind;
use crate::grade::units::Unit;
use crate::observe::Observer;
use crate::sql::{self, Value};

/// Rows that are looked at where all must be as expected.
const MOST_ROWS: usize = 10_000;

/// What all checks of a submission share.
pub(super) struct Bench<'a> {
    pub lab: &'a Lab,
    pub params: &'a BTreeMap<String, Value>,
    pub inputs: &'a [InputState],
    pub quality: &'a [QualityFinding],
    pub asker: &'a Asker,
    /// Checks that were assessed before.
    pub done: BTreeMap<String, Outcome>,
    /// Checks of those that left the total.
    pub left_out: BTreeSet<String>,
    /// Checks that wait for a lost one, at whatever remove, with that one.
    pub lost: BTreeMap<String, String>,
    pub titles: Titles,
    /// What is wrong with checks themselves: check and message.
    pub faults: Vec<(String, String)>,
    /// Places of words that nothing fills, by check.
    pub unfilled: BTreeSet<(String, String)>,
    /// Words of the lab that were used: check and name.
    pub said: BTreeSet<(String, String)>,
}

/// What a check's query showed.
pub(super) struct Found {
    pub outcome: Outcome,
    pub points: Decimal,
    /// Words by name, the best first.
    pub say: Vec<String>,
    pub measured: Vec<Measured>,
    pub columns: Vec<String>,
    pub row: Vec<Value>,
    pub why: Option<Why>,
    /// The expectation that the words speak of.
    pub focus: usize,
    /// Words that are added to the message.
    pub notes: Vec<String>,
}

impl Found {
    fn open(why: Why) -> Self {
        Self {
            outcome: Outcome::NotAssessable,
            points: Decimal::ZERO,
            say: Vec::new(),
            measured: Vec::new(),
            columns: Vec::new(),
            row: Vec::new(),
            why: Some(why),
            focus: 0,
            notes: Vec::new(),
        }
    }
}

impl Bench<'_> {
    pub fn assess(&mut self, check: &Check, observer: &mut dyn Observer) -> Result<Item, Error> {
        let found = self.find(check, observer);
        let mut found = match found {
            Ok(found) => found,
            Err(Unanswered::Ended(error)) => return Err(error),
            Err(Unanswered::TimeLimit(limit)) => Found::open(Why::TimeLimit(limit)),
            Err(Unanswered::Failed(message)) => Found::open(Why::SqlFailed(message)),
        };
        let fault = match &found.why {
            Some(Why::SqlFailed(message)) => Some(message.clone()),
            Some(why) if why.is_fault() => Some(reasons::reason(why, self.lab, &self.titles, &check.id).message.en),
            _ => None,
        };
        self.faults.extend(fault.map(|message| (check.id.clone(), message)));
        let damage = || self.findings(check).find(|finding| needs::damage(std::slice::from_ref(*finding)).is_some());
        if matches!(found.outcome, Outcome::Fail | Outcome::Partial)
            && check.on_damage == OnDamage::NotAssessable
            && let Some(damage) = damage()
        {
            found.outcome = Outcome::NotAssessable;
            found.points = Decimal::ZERO;
            found.say.clear();
            found.notes.clear();
            found.why = Some(Why::Damaged(damage.clone()));
        }
        let (shown, evidence_fault) = self.evidence(check, &found, observer)?;
        self.faults.extend(evidence_fault.iter().map(|message| (check.id.clone(), format!("evidence: {message}"))));
        if let Some(Why::DependsOn { lost: Some(lost), .. }) = &found.why {
            self.lost.insert(check.id.clone(), lost.clone());
        }
        let item = self.item(check, found, shown, evidence_fault.is_some());
        self.done.insert(check.id.clone(), item.status);
        if item.counted == Counted::Excluded {
            self.left_out.insert(check.id.clone());
        }
        self.titles.insert(check.id.clone(), item.title.clone());
        Ok(item)
    }

    /// The findings on the captures that the check reads.
    fn findings<'s>(&'s self, check: &'s Check) -> impl Iterator<Item = &'s QualityFinding> {
        self.quality.iter().filter(|finding| check.inputs.contains(&finding.input))
    }

    fn find(&self, check: &Check, observer: &mut dyn Observer) -> Result<Found, Unanswered> {
        for name in &check.depends_on {
            let outcome = self.done.get(name).copied();
            if outcome != Some(Outcome::Pass) {
                let is_open = outcome == Some(Outcome::NotAssessable);
                let lost = if is_open { self.lost.get(name).cloned() } else { Some(name.clone()) };
                return Ok(Found::open(Why::DependsOn { check: name.clone(), is_open, lost }));
            }
        }
        for name in &check.inputs {
            let Some(input) = self.inputs.iter().find(|input| input.name == *name) else { continue };
            match &input.presence {
                Presence::Present => {}
                Presence::Missing => {
                    let is_free = !input.required && check.not_assessable == WhenNotAssessable::Exclude;
                    let why = if is_free { Why::NotHandedIn } else { Why::MissingInput };
                    return Ok(Found::open(why(name.clone())));
                }
                Presence::Unusable(why) => {
                    return Ok(Found::open(Why::Unusable { name: name.clone(), why: why.clone() }));
                }
                Presence::Ambiguous => {
                    return Ok(Found::open(Why::Ambiguous { name: name.clone(), files: input.files.join(", ") }));
                }
                Presence::Unreadable { file, why } => {
                    return Ok(Found::open(Why::Unreadable { file: file.clone(), why: why.clone() }));
                }
            }
        }
        if let Some(unmet) = self.unmet_need(check, observer)? {
            return Ok(Found::open(unmet));
        }
        let asked_rows = if check.rows == Rows::All { MOST_ROWS + 1 } else { 1 };
        let answer = self.asker.ask(&check.sql, asked_rows, check.time_limit_s, observer)?;
        if answer.rows.len() > MOST_ROWS {
            let message = format!("the query gives more than {MOST_ROWS} rows; let it count instead");
            return Err(Unanswered::Failed(message));
        }
        self.judge(check, answer, observer)
    }

    fn unmet_need(&self, check: &Check, observer: &mut dyn Observer) -> Result<Option<Why>, Unanswered> {
        for (input, wanted) in &check.needs {
            let findings: Vec<_> = self.quality.iter().filter(|finding| finding.input == *input).cloned().collect();
            for need in wanted {
                let Some(obstacle) = needs::obstacle(need, &findings) else { continue };
                let traffic = self.lab.rubric.input(input).and_then(|input| input.traffic.as_deref());
                if let Some(relief) = needs::relief(need, input, traffic)
                    && !self.asker.ask(&relief, 1, check.time_limit_s, observer)?.rows.is_empty()
                {
                    continue;
                }
                return Ok(Some(Why::Unmet { need: need.clone(), finding: obstacle.clone() }));
            }
        }
        Ok(None)
    }

    /// The rows against the expectations: the first row that is not as expected decides, else the first of all.
    fn judge(&self, check: &Check, answer: sql::Rows, observer: &mut dyn Observer) -> Result<Found, Unanswered> {
        let sql::Rows { columns, rows } = answer;
        for expect in &check.expect {
            if !columns.contains(&expect.column) {
                let message = format!("the query has no column {}; it has {}", expect.column, columns.join(", "));
                return Err(Unanswered::Failed(message));
            }
        }
        let mut passed = None;
        for row in rows {
            let found = self.judge_row(check, &columns, row, observer)?;
            if found.outcome != Outcome::Pass {
                return Ok(found);
            }
            passed.get_or_insert(found);
        }
        match passed {
            Some(found) => Ok(found),
            None => self.no_rows(check, columns, observer),
        }
    }

    fn no_rows(&self, check: &Check, columns: Vec<String>, observer: &mut dyn Observer) -> Result<Found, Unanswered> {
        let nothing = vec![Value::Null; columns.len()];
        let mut measured = Vec::new();
        for expect in &check.expect {
            // An expression over the row has no value here; one over parameters alone does.
            measured.push(self.measure(check, expect, &columns, &nothing, observer)?.0);
        }
        Ok(Found {
            outcome: check.on_no_rows,
            points: if check.on_no_rows == Outcome::Pass { check.points } else { Decimal::ZERO },
            say: vec!["no_rows".to_owned(), check.on_no_rows.name().to_owned()],
            measured,
            columns,
            row: Vec::new(),
            why: (check.on_no_rows != Outcome::Pass).then_some(Why::NoRows),
            focus: 0,
            notes: Vec::new(),
        })
    }

    fn judge_row(
        &self,
        check: &Check,
        columns: &[String],
        row: Vec<Value>,
        observer: &mut dyn Observer,
    ) -> Result<Found, Unanswered> {
        let mut notes = Vec::new();
        for note in &check.notes {
            if is_true(&self.asker.value(&note.when, columns, &row, check.time_limit_s, observer)?) {
                notes.push(note.say.clone());
            }
        }
        let found = self.compare_row(check, columns, row, observer)?;
        Ok(Found { notes, ..found })
    }

    fn compare_row(
        &self,
        check: &Check,
        columns: &[String],
        row: Vec<Value>,
        observer: &mut dyn Observer,
    ) -> Result<Found, Unanswered> {
        let mut measured = Vec::new();
        let mut shown = Vec::new();
        for expect in &check.expect {
            let (one, result) = self.measure(check, expect, columns, &row, observer)?;
            measured.push(one);
            shown.push(result);
        }
        let mut found = Found {
            outcome: Outcome::Pass,
            points: check.points,
            say: vec![Outcome::Pass.name().to_owned()],
            measured,
            columns: columns.to_vec(),
            row,
            why: None,
            focus: 0,
            notes: Vec::new(),
        };
        let at = |wanted: Shown| shown.iter().position(|one| *one == wanted);
        if shown.iter().all(|one| *one == Shown::Met) {
            return Ok(found);
        }
        found.focus = shown.iter().position(|one| *one != Shown::Met).unwrap_or(0);
        if let Some(wrong) = at(Shown::WrongType) {
            let column = check.expect.get(wrong).map_or(String::new(), |expect| expect.column.clone());
            return Ok(Found { measured: found.measured, ..Found::open(Why::WrongType(column)) });
        }
        found.points = Decimal::ZERO;
        for partial in &check.partial {
            let value = self.asker.value(&partial.when, columns, &found.row, check.time_limit_s, observer)?;
            if is_true(&value) {
                found.outcome = if partial.points.is_zero() { Outcome::Fail } else { Outcome::Partial };
                found.points = partial.points;
                found.say = vec![partial.say.clone()];
                return Ok(found);
            }
        }
        // A condition that is plainly not met decides over one that cannot be told.
        if let Some(not_met) = at(Shown::NotMet) {
            found.focus = not_met;
            let of_expect = shown.iter().zip(&check.expect).filter(|(shown, _)| **shown == Shown::NotMet);
            found.outcome = Outcome::Fail;
            found.say = of_expect.filter_map(|(_, expect)| expect.say.clone()).take(1).collect();
            found.say.push(Outcome::Fail.name().to_owned());
            return Ok(found);
        }
        let column = check.expect.get(found.focus).map_or(String::new(), |expect| expect.column.clone());
        found.outcome = check.on_null;
        found.points = if check.on_null == Outcome::Pass { check.points } else { Decimal::ZERO };
        found.say = vec!["null".to_owned(), check.on_null.name().to_owned()];
        found.why = (check.on_null != Outcome::Pass).then_some(Why::Null(column));
        Ok(found)
    }

    fn measure(
        &self,
        check: &Check,
        expect: &Expect,
        columns: &[String],
        row: &[Value],
        observer: &mut dyn Observer,
    ) -> Result<(Measured, Shown), Unanswered> {
        let at = columns.iter().position(|column| *column == expect.column);
        let value = at.and_then(|at| row.get(at)).cloned().unwrap_or(Value::Null);
        let expected = match &expect.expected {
            Expected::Values(values) => values.clone(),
            Expected::Sql(expressions) => {
                let mut values = Vec::new();
                for expression in expressions {
                    values.push(self.asker.value(expression, columns, row, check.time_limit_s, observer)?);
                }
                values
            }
        };
        let shown = compare(&value, expect.op, &expected, expect.tolerance);
        let unit = expect.unit.or_else(|| Unit::of_column(&expect.column));
        let measured = Measured {
            column: expect.column.clone(),
            label: self.lab.label(&expect.column),
            value,
            unit,
            op: expect.op,
            expected,
            tolerance: expect.tolerance.map(|tolerance| match tolerance {
                Tolerance::Absolute(size) => size.to_string(),
                Tolerance::Relative(share) => format!("{}%", (share * 1e8).round() / 1e6),
            }),
            is_met: match shown {
                Shown::Met => Some(true),
                Shown::NotMet => Some(false),
                Shown::Null | Shown::WrongType => None,
            },
        };
        Ok((measured, shown))
    }

    /// Frames and rows, and what went wrong with the evidence query itself.
    fn evidence(
        &self,
        check: &Check,
        found: &Found,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Evidence>, Option<String>), Error> {
        match &found.why {
            Some(Why::Unmet { finding, .. }) => return Ok((vec![evidence::of_finding(finding)], None)),
            // A file that was cut shows no frame of its own: then those that the check found are all there is to look at.
            Some(Why::Damaged(finding)) if !finding.frames.is_empty() || check.evidence.is_none() => {
                return Ok((vec![evidence::of_finding(finding)], None));
            }
            Some(why) if !why.has_answer() => return Ok((Vec::new(), None)),
            _ => {}
        }
        let Some(sql) = &check.evidence else { return Ok((Vec::new(), None)) };
        match self.asker.ask(sql, evidence::ASKED_ROWS, check.time_limit_s, observer) {
            Ok(answer) => {
                let has_frames = answer.columns.iter().any(|column| column == "frame_no");
                let input = self.evidence_input(check, &qualifiers(sql), has_frames);
                Ok((evidence::of_answer(&answer, input, self.inputs), None))
            }
            Err(Unanswered::Ended(error)) => Err(error),
            Err(Unanswered::TimeLimit(limit)) => Ok((Vec::new(), Some(format!("more than {limit} s")))),
            Err(Unanswered::Failed(message)) => Ok((Vec::new(), Some(message))),
        }
    }

    /// The input that evidence is of where its rows do not say: the first that the query reads. Frames are of a capture.
    fn evidence_input<'c>(&self, check: &'c Check, words: &BTreeSet<&str>, has_frames: bool) -> Option<&'c str> {
        let names = || check.inputs.iter().chain(&check.optional_inputs).map(String::as_str);
        let is_fit = |name: &&str| !has_frames || evidence::is_capture(self.inputs, name);
        let read = names().filter(is_fit).find(|name| words.contains(name));
        read.or_else(|| names().find(is_fit))
    }

    fn item(&mut self, check: &Check, found: Found, mut shown: Vec<Evidence>, has_evidence_fault: bool) -> Item {
        let mut places = self.places(check, &found, &shown);
        let has_frame = shown.iter().any(|evidence| !evidence.frames.is_empty());
        // A filter that names frames is none where there are none.
        let template = check.display_filter.as_ref().filter(|text| has_frame || !text.contains("{{frames}}"));
        let filter = template.map(|text| self.fill(check, text, &places).en);
        for evidence in &mut shown {
            if evidence.filter.is_none() {
                evidence.filter = filter.clone().or_else(|| evidence::frames_filter(&evidence.frames));
            }
        }
        let has_frames = shown.iter().any(|evidence| !evidence.frames.is_empty() || !evidence.rows.is_empty());
        if shown.is_empty()
            && let Some(filter) = filter
            && found.why.as_ref().is_none_or(Why::has_answer)
        {
            let input = self.evidence_input(check, &qualifiers(&check.sql), true);
            shown.push(evidence::of_filter(input, self.inputs, filter));
        }
        places.text("filter", shown.iter().find_map(|one| one.filter.clone()).unwrap_or_default());
        let reason = found.why.as_ref().map(|why| reasons::reason(why, self.lab, &self.titles, &check.id));
        let is_lost = found.outcome != Outcome::Pass;
        let (message, own_hint) = self.words(check, &found, &places);
        let message = message.or_else(|| reason.as_ref().map(|reason| reason.message.clone())).unwrap_or_default();
        let message = self.with_notes(check, &found.notes, &places, message);
        let of_reason = found.why.as_ref().map(|why| reasons::hint(why, self.lab, &self.titles));
        let of_check = self.text(|lab, lang| lab.words(lang).checks.get(&check.id)?.hint.clone());
        let hint = match (own_hint, found.outcome, of_reason) {
            (Some(own), _, _) => Some(own),
            (None, Outcome::NotAssessable, Some(of_reason)) => of_reason,
            (None, _, of_reason) => {
                of_check.map(|hint| self.fill_both(check, &hint, &places)).or_else(|| of_reason.flatten())
            }
        };
        let counted = self.counted(check, &found);
        let is_fault = found.why.as_ref().is_some_and(Why::is_fault) || has_evidence_fault;
        let needs_review = is_fault
            || (found.outcome == Outcome::NotAssessable
                && check.not_assessable == WhenNotAssessable::ZeroAndReview
                && !matches!(found.why, Some(Why::DependsOn { .. })))
            || (found.outcome == Outcome::NotAssessable && found.why.as_ref().is_some_and(Why::is_defect))
            || (check.review && matches!(found.outcome, Outcome::Fail | Outcome::Partial));
        let searched = match &found.why {
            _ if !is_lost || has_frames => None,
            Some(why) if !why.has_answer() => Some(reasons::searched(why, self.lab, check)),
            _ => Some(check.evidence.as_ref().unwrap_or(&check.sql).trim().to_owned()),
        };
        let confidence = found.columns.iter().position(|column| column == "confidence");
        let confidence = confidence.and_then(|at| found.row.get(at)).and_then(number);
        let title = self.text(|lab, lang| lab.words(lang).checks.get(&check.id).map(|words| words.title.clone()));
        let title = title.unwrap_or_default();
        Item {
            id: check.id.clone(),
            group: check.group.clone(),
            title: self.fill_both(check, &title, &places),
            points: found.points,
            max_points: check.points,
            status: found.outcome,
            counted,
            needs_review,
            confidence: confidence.filter(|number| number.is_finite()),
            measured: found.measured,
            message,
            hint: hint.filter(|_| is_lost),
            reason,
            waits_for_loss: self.lost.contains_key(&check.id),
            visibility: check.visibility,
            tags: check.tags.clone(),
            inputs: check.inputs.clone(),
            sql: check.sql.trim().to_owned(),
            sources: self.sources(check),
            evidence: shown,
            searched,
        }
    }

    /// What the queries of the check read, as `wirelab sql` names it; none where that cannot be.
    fn sources(&self, check: &Check) -> Option<Vec<String>> {
        if qualifiers(&check.sql).contains(SUBMISSION_SCHEMA) {
            return None;
        }
        let input = |name: &String| self.inputs.iter().find(|input| input.name == *name);
        let mut sources = Vec::new();
        for name in &check.inputs {
            let input = input(name).filter(|input| input.kind != InputKind::Text)?;
            match (&input.presence, input.files.as_slice()) {
                (Presence::Present, [file]) => sources.push(format!("{name}={file}")),
                _ => return None,
            }
        }
        // What the query reads beside the inputs that the check is about.
        let words = qualifiers(&check.sql);
        let is_beside =
            |input: &&InputState| words.contains(input.name.as_str()) && !check.inputs.contains(&input.name);
        for input in self.inputs.iter().filter(is_beside) {
            let source = match (&input.presence, input.files.as_slice()) {
                (Presence::Present, [file]) => file.clone(),
                _ => format!("empty:{}", input.kind.name()),
            };
            sources.push(format!("{}={source}", input.name));
        }
        Some(sources)
    }

    /// A check that waits for another is treated as that one is, where that could not be assessed.
    fn counted(&self, check: &Check, found: &Found) -> Counted {
        if found.outcome != Outcome::NotAssessable {
            return Counted::Full;
        }
        // Also where that one waits in turn: what began with a failure stays in the total.
        let waits_for_a_loss = match &found.why {
            Some(Why::DependsOn { check: other, .. }) => !self.left_out.contains(other),
            _ => false,
        };
        match check.not_assessable {
            WhenNotAssessable::Exclude if !waits_for_a_loss => Counted::Excluded,
            _ => Counted::Zero,
        }
    }
}
