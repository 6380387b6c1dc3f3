//! One `[[check]]`.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::parse::{is_name, qualifiers, unit};
use super::views::{self, View};
use super::{
    Check, Expect, Expected, Input, Note, OnDamage, Op, Outcome, Partial, Rows, Tolerance, Visibility,
    WhenNotAssessable,
};
use crate::grade::SUBMISSION_SCHEMA;
use crate::grade::document::{Section, did_you_mean};
use crate::grade::feedback::is_reserved;
use crate::grade::needs;
use crate::grade::params::Param;
use crate::sql::Value;

pub(super) const CHECK_KEYS: [&str; 21] = [
    "id",
    "group",
    "points",
    "inputs",
    "needs",
    "depends_on",
    "sql",
    "rows",
    "expect",
    "partial",
    "note",
    "on_no_rows",
    "on_null",
    "not_assessable",
    "on_damage",
    "evidence",
    "display_filter",
    "visibility",
    "tags",
    "review",
    "time_limit_s",
];
pub(super) const EXPECT_KEYS: [&str; 7] = ["col", "op", "value", "sql", "tolerance", "unit", "say"];
pub(super) const PARTIAL_KEYS: [&str; 3] = ["when", "points", "say"];
pub(super) const NOTE_KEYS: [&str; 2] = ["when", "say"];

const DEFAULT_TIME_LIMIT_S: u64 = 10;
const MOST_TIME_LIMIT_S: u64 = 600;

/// What the rubric says before its checks.
pub(super) struct Known<'a> {
    pub inputs: &'a [Input],
    pub params: &'a [Param],
    pub views: &'a [View],
}

/// `earlier` are the checks above this one in the file.
pub(super) fn read(mut section: Section<'_>, known: &Known<'_>, earlier: &[Check]) -> Check {
    let Known { inputs, params, views } = *known;
    let id = section.required_text("id");
    if !id.is_empty() && !is_name(&id) {
        section.problem_at("id", format!("{id} is no name for a check: small letters, digits and _, a letter first"));
    }
    section.rename(format!("check {id}"));
    section.expect_keys(&CHECK_KEYS);
    if !section.has("points") {
        section.problem(format!("check {id} lacks the key points"));
    }
    let points = section.points("points").unwrap_or_default();
    let sql = section.required_text("sql");
    let evidence = section.text("evidence");
    let outcomes = [("pass", Outcome::Pass), ("fail", Outcome::Fail), ("not_assessable", Outcome::NotAssessable)];
    let on = |key: &str, meaning: &str| {
        if !section.has(key) {
            section.problem(format!("check {id} lacks the key {key}: what it means where {meaning}"));
        }
        section.choice(key, &outcomes).unwrap_or(Outcome::NotAssessable)
    };
    let on_no_rows = on("on_no_rows", "the query gives no row");
    let on_null = on("on_null", "an expected column is NULL");
    let expect: Vec<_> = section.sections("expect", "expect").iter().filter_map(read_expect).collect();
    if !section.has("expect") || section.is_empty_list("expect") {
        section.problem_at("expect", format!("check {id} expects nothing: it lacks the key expect"));
    }
    let partial: Vec<_> =
        section.sections("partial", "partial").iter().filter_map(|one| read_partial(one, points)).collect();
    let needs = read_needs(&section, inputs);
    let depends_on = section.texts("depends_on");
    for name in &depends_on {
        if !earlier.iter().any(|check| check.id == *name) {
            let hint = did_you_mean(name, earlier.iter().map(|check| check.id.as_str()));
            section.problem_at("depends_on", format!("no check above this one is called {name}{hint}"));
        }
        let is_hidden = |check: &Check| check.visibility == Visibility::Hidden;
        if section.text("visibility").as_deref() != Some("hidden")
            && earlier.iter().any(|check| check.id == *name && is_hidden(check))
        {
            let message = format!("{name} is hidden, and this check is not: students would learn of it");
            section.problem_at("depends_on", message);
        }
    }
    let time_limit_s = match section.scalar("time_limit_s") {
        None => DEFAULT_TIME_LIMIT_S,
        Some(Value::Integer(limit)) if (1..=MOST_TIME_LIMIT_S as i64).contains(&limit) => limit.unsigned_abs(),
        Some(_) => {
            section.problem_at("time_limit_s", format!("time_limit_s is from 1 to {MOST_TIME_LIMIT_S}"));
            DEFAULT_TIME_LIMIT_S
        }
    };
    let notes = section.sections("note", "note").iter().map(read_note).collect();
    let own = [Some(sql.as_str()), evidence.as_deref()];
    let of_views = own.into_iter().flatten().flat_map(|sql| views::texts(sql, views)).flat_map(qualifiers).collect();
    let (read, optional_inputs) = read_inputs(&section, inputs, &own, &of_views, &needs);
    let check = Check {
        line: section.line(),
        sql_line: section.line_of("sql"),
        group: section.text("group"),
        points,
        inputs: read,
        optional_inputs,
        needs,
        depends_on,
        sql: views::expanded(&sql, views),
        rows: section.choice("rows", &[("first", Rows::First), ("all", Rows::All)]).unwrap_or(Rows::First),
        expect,
        partial,
        notes,
        on_no_rows,
        on_null,
        not_assessable: section
            .choice(
                "not_assessable",
                &[("zero_and_review", WhenNotAssessable::ZeroAndReview), ("exclude", WhenNotAssessable::Exclude)],
            )
            .unwrap_or(WhenNotAssessable::ZeroAndReview),
        on_damage: section
            .choice("on_damage", &[("not_assessable", OnDamage::NotAssessable), ("assess", OnDamage::Assess)])
            .unwrap_or(OnDamage::NotAssessable),
        evidence: evidence.map(|sql| views::expanded(&sql, views)),
        display_filter: section.text("display_filter"),
        visibility: section
            .choice("visibility", &[("visible", Visibility::Visible), ("hidden", Visibility::Hidden)])
            .unwrap_or(Visibility::Visible),
        tags: section.texts("tags"),
        review: section.boolean("review").unwrap_or(false),
        time_limit_s,
        id,
    };
    complain_of_parameters(&section, &check, params);
    complain_of_frames(&section, &check, inputs);
    check
}

fn read_expect(section: &Section<'_>) -> Option<Expect> {
    section.expect_keys(&EXPECT_KEYS);
    let column = section.required_text("col");
    if !section.has("op") {
        section.problem("expect lacks the key op");
    }
    let op = match section.text("op").as_deref().and_then(op_of_sign) {
        Some((sign, name)) => {
            section.problem_at("op", format!("op is a word: for {sign} it is {name}"));
            return None;
        }
        None => section.choice("op", &Op::ALL)?,
    };
    let expected = match (section.has("value"), section.has("sql")) {
        (true, false) => Expected::Values(section.scalars("value")),
        (false, true) => Expected::Sql(section.texts("sql")),
        (true, true) => {
            section.problem("expect has both value and sql: it takes one of them");
            return None;
        }
        (false, false) => {
            section.problem("expect lacks value, or sql: what the column is compared with");
            return None;
        }
    };
    let count = match &expected {
        Expected::Values(values) => values.len(),
        Expected::Sql(expressions) => expressions.len(),
    };
    let is_right = match op {
        Op::Between => count == 2,
        Op::OneOf => count > 0,
        _ => count == 1,
    };
    if !is_right {
        let wanted = match op {
            Op::Between => "a list of two: the least and the most",
            Op::OneOf => "a list of at least one",
            _ => "one value",
        };
        section.problem(format!("{} takes {wanted}, not {count}", op.name()));
    }
    let tolerance = section.scalar("tolerance").and_then(|given| {
        let tolerance = match &given {
            Value::Integer(number) => Some(Tolerance::Absolute(*number as f64)),
            Value::Real(number) => Some(Tolerance::Absolute(*number)),
            Value::Text(text) => {
                let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                percent.map(|percent| Tolerance::Relative(percent / 100.0))
            }
            Value::Null => None,
        };
        let is_sound = |tolerance: &Tolerance| match tolerance {
            Tolerance::Absolute(size) | Tolerance::Relative(size) => size.is_finite() && *size >= 0.0,
        };
        let tolerance = tolerance.filter(is_sound);
        if tolerance.is_none() {
            section.problem_at("tolerance", "tolerance is a number from 0 on, or a share such as \"5%\"");
        }
        tolerance
    });
    if (op == Op::Approx) != section.has("tolerance") {
        section.problem("tolerance belongs to op = \"approx\", which needs it");
    }
    let say = read_say(section);
    Some(Expect { column, op, expected, tolerance, unit: unit(section), say })
}

/// The operator that a sign of other languages stands for.
fn op_of_sign(sign: &str) -> Option<(&'static str, &'static str)> {
    let signs = [
        ("=", "eq"),
        ("==", "eq"),
        ("!=", "ne"),
        ("<>", "ne"),
        ("<", "lt"),
        ("<=", "le"),
        (">", "gt"),
        (">=", "ge"),
        ("~", "approx"),
        ("~=", "approx"),
        ("in", "one_of"),
    ];
    signs.into_iter().find(|(known, _)| *known == sign.trim())
}

fn read_partial(section: &Section<'_>, most: Decimal) -> Option<Partial> {
    section.expect_keys(&PARTIAL_KEYS);
    let when = section.required_text("when");
    let points = section.points("points");
    if !section.has("points") {
        section.problem("partial lacks the key points (\"0\" for words of its own alone)");
    }
    let points = points?;
    if points >= most && !most.is_zero() {
        section.problem_at("points", format!("partial points must be less than the {most} of the check"));
    }
    if !section.has("say") {
        section.problem("partial lacks the key say: which words of the feedback files it uses");
    }
    Some(Partial { when, points, say: read_say(section).unwrap_or_default() })
}

fn read_note(section: &Section<'_>) -> Note {
    section.expect_keys(&NOTE_KEYS);
    if !section.has("say") {
        section.problem("note lacks the key say: which words of the feedback files it uses");
    }
    Note { when: section.required_text("when"), say: read_say(section).unwrap_or_default() }
}

fn read_say(section: &Section<'_>) -> Option<String> {
    let say = section.text("say")?;
    if !is_name(&say) || is_reserved(&say) {
        section.problem_at("say", format!("{say} cannot name words: small letters, digits and _, and no outcome"));
    }
    Some(say)
}

fn read_needs(section: &Section<'_>, inputs: &[Input]) -> Vec<(String, Vec<String>)> {
    let Some(table) = section.section("needs", "needs") else { return Vec::new() };
    let mut needs = Vec::new();
    for (input, entry) in table.entries() {
        match inputs.iter().find(|known| known.name == input) {
            None => {
                let hint = did_you_mean(input, inputs.iter().map(|input| input.name.as_str()));
                entry.problem(format!("there is no input {input}{hint}"));
            }
            Some(known) if known.kind != "capture" => {
                entry.problem(format!("needs speaks of captures, and input {input} is none"));
            }
            Some(_) => {}
        }
        let mut names = Vec::new();
        for item in entry.items() {
            match item.text() {
                Some(name) if needs::is_known(&name) => names.push(name),
                Some(name) => {
                    let known = needs::known();
                    let hint = did_you_mean(&name, known.iter().map(String::as_str));
                    let all = known.join(", ");
                    item.problem(format!("there is no need {name}{hint}; there are {all}"));
                }
                None => item.problem("needs is a list of texts in quotes"),
            }
        }
        needs.push((input.to_owned(), names));
    }
    needs
}

/// The inputs that the check names, else those that its queries read; and optional ones that only views read, which need
/// not be there.
fn read_inputs(
    section: &Section<'_>,
    inputs: &[Input],
    own: &[Option<&str>],
    of_views: &BTreeSet<&str>,
    needs: &[(String, Vec<String>)],
) -> (Vec<String>, Vec<String>) {
    let named = section.texts("inputs");
    for name in &named {
        if !inputs.iter().any(|input| input.name == *name) {
            let hint = did_you_mean(name, inputs.iter().map(|input| input.name.as_str()));
            section.problem_at("inputs", format!("there is no input {name}{hint}"));
        }
    }
    let words: BTreeSet<_> = own.iter().flatten().flat_map(|sql| qualifiers(sql)).collect();
    let is_read = |input: &&Input| {
        let is_viewed = input.required && of_views.contains(input.name.as_str());
        let is_needed = needs.iter().any(|(name, wanted)| *name == input.name && !wanted.is_empty());
        words.contains(input.name.as_str()) || is_viewed || is_needed
    };
    let mut read: Vec<_> = inputs.iter().filter(is_read).map(|input| input.name.clone()).collect();
    // A bare table name means the first input.
    if read.is_empty()
        && !words.contains(SUBMISSION_SCHEMA)
        && let Some(first) = inputs.first()
    {
        read.push(first.name.clone());
    }
    let read = if section.has("inputs") { named } else { read };
    let is_optional =
        |input: &&Input| !input.required && of_views.contains(input.name.as_str()) && !read.contains(&input.name);
    let optional = inputs.iter().filter(is_optional).map(|input| input.name.clone()).collect();
    (read, optional)
}

/// Frames are those of a capture: a check of logs alone has none to name.
fn complain_of_frames(section: &Section<'_>, check: &Check, inputs: &[Input]) {
    let names_frames = check.evidence.as_deref().is_some_and(|sql| has_word(sql, "frame_no"));
    let is_capture = |name: &String| inputs.iter().any(|input| input.name == *name && input.kind == "capture");
    if names_frames && !check.inputs.iter().chain(&check.optional_inputs).any(is_capture) {
        let read = if check.inputs.is_empty() { "none".to_owned() } else { check.inputs.join(", ") };
        let message = format!(
            "the evidence of check {} has frame_no, but none of its inputs ({read}) is a capture: name the capture in \
             inputs, or call the column something else",
            check.id
        );
        section.problem_at("evidence", message);
    }
}

/// Whether the SQL has this word.
fn has_word(sql: &str, word: &str) -> bool {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one.eq_ignore_ascii_case(word))
}

/// Every `:name` in the check's SQL must be a parameter of the lab.
fn complain_of_parameters(section: &Section<'_>, check: &Check, params: &[Param]) {
    let expressions = check.expect.iter().flat_map(|expect| match &expect.expected {
        Expected::Sql(expressions) => expressions.as_slice(),
        Expected::Values(_) => &[],
    });
    let queries = [&check.sql].into_iter().chain(check.evidence.as_ref());
    let texts = queries.chain(expressions).chain(check.partial.iter().map(|partial| &partial.when));
    let texts = texts.chain(check.notes.iter().map(|note| &note.when));
    for text in texts {
        for unknown in unknown_params(text, params) {
            let key = if *text == check.sql { "sql" } else { "id" };
            section.problem_at(key, format!("check {}: {unknown}", check.id));
        }
    }
}

/// What to say of each `:name` in an SQL text that is no parameter of the lab.
pub(super) fn unknown_params(sql: &str, params: &[Param]) -> Vec<String> {
    let unknown = bound_names(sql).into_iter().filter(|name| !params.iter().any(|param| param.name == *name));
    unknown
        .map(|name| {
            let hint = did_you_mean(name, params.iter().map(|param| param.name.as_str()));
            format!(":{name} is no [param.{name}]{hint}")
        })
        .collect()
}

/// The names after colons in an SQL text, outside of quotes and comments.
pub(in crate::grade) fn bound_names(sql: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = sql;
    while let Some(at) = rest.find(['\'', '"', ':', '-', '/']) {
        let (found, after) = (rest.as_bytes().get(at).copied(), rest.get(at + 1..).unwrap_or(""));
        rest = match found {
            Some(quote @ (b'\'' | b'"')) => after.split_once(quote as char).map_or("", |(_, tail)| tail),
            Some(b'-') if after.starts_with('-') => after.split_once('\n').map_or("", |(_, tail)| tail),
            Some(b'/') if after.starts_with('*') => after.split_once("*/").map_or("", |(_, tail)| tail),
            Some(b':') => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                if end > 0 && !names.contains(&&after[..end]) {
                    names.push(&after[..end]);
                }
                &after[end..]
            }
            _ => after,
        };
    }
    names
}
