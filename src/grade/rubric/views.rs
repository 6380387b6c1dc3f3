//! Queries that several checks begin with: `[view.NAME]`. A query that names one has it before it, so that it still runs
//! anywhere as it is.

use super::check::unknown_params;
use super::parse::is_name;
use crate::grade::document::Section;
use crate::grade::params::Param;

pub(super) const VIEW_KEYS: [&str; 1] = ["sql"];

#[derive(Clone, Debug)]
pub(super) struct View {
    name: String,
    sql: String,
}

/// `[view.NAME]`, in the order of the file; each may name those above it.
pub(super) fn read(top: &Section<'_>, params: &[Param]) -> Vec<View> {
    let Some(section) = top.section("view", "view") else { return Vec::new() };
    let mut views: Vec<View> = Vec::new();
    for (name, entry) in section.entries() {
        if !is_name(name) {
            entry.problem(format!("{name} is no name for a view: small letters, digits and _, a letter first"));
        }
        let Some(section) = entry.section(format!("view {name}")) else {
            entry.problem(format!("view.{name} must be a table: [view.{name}]"));
            continue;
        };
        section.expect_keys(&VIEW_KEYS);
        let sql = section.required_text("sql");
        for unknown in unknown_params(&sql, params) {
            section.problem_at("sql", format!("view {name}: {unknown}"));
        }
        views.push(View { name: name.to_owned(), sql: trimmed(&sql).to_owned() });
    }
    views
}

/// The views that a query names, and those that these name, in the order of the file.
fn named<'v>(sql: &str, views: &'v [View]) -> Vec<&'v View> {
    let mut found: Vec<&View> = Vec::new();
    // A view names only those above it: from the last one up, each is seen after all that could name it.
    for view in views.iter().rev() {
        if has_word(sql, &view.name) || found.iter().any(|other| has_word(&other.sql, &view.name)) {
            found.push(view);
        }
    }
    found.reverse();
    found
}

/// The texts of the views that a query needs.
pub(super) fn texts<'v>(sql: &str, views: &'v [View]) -> Vec<&'v str> {
    named(sql, views).into_iter().map(|view| view.sql.as_str()).collect()
}

/// The query with the views that it names before it.
pub(super) fn expanded(sql: &str, views: &[View]) -> String {
    let named = named(sql, views);
    if named.is_empty() {
        return sql.to_owned();
    }
    let before: Vec<_> = named.iter().map(|view| format!("{} AS (\n{}\n)", view.name, view.sql)).collect();
    let sql = trimmed(sql);
    match after_with(sql) {
        Some((recursive, rest)) => format!("WITH{recursive} {}, {rest}", before.join(", ")),
        None => format!("WITH {}\n{sql}", before.join(", ")),
    }
}

/// What stands after a leading `WITH`, and whether it is `RECURSIVE`.
fn after_with(sql: &str) -> Option<(&'static str, &str)> {
    let keyword = |text: &'_ str, word: &str| -> Option<usize> {
        let head = text.get(..word.len())?;
        let is_end = text.get(word.len()..)?.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(word) && is_end).then_some(word.len())
    };
    let rest = sql.get(keyword(sql, "WITH")?..)?.trim_start();
    match keyword(rest, "RECURSIVE") {
        Some(length) => Some((" RECURSIVE", rest.get(length..)?.trim_start())),
        None => Some(("", rest)),
    }
}

fn trimmed(sql: &str) -> &str {
    sql.trim().trim_end_matches(';').trim_end()
}

fn has_word(sql: &str, word: &str) -> bool {
    sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, sql: &str) -> View {
        View { name: name.into(), sql: sql.into() }
    }

    #[test]
    fn a_query_has_the_views_that_it_names_before_it_and_no_others() {
        let views = [
            view("a", "SELECT 1 AS x"),
            view("b", "SELECT x FROM a"),
            view("c", "SELECT x FROM b"),
            view("d", "SELECT 2"),
        ];
        assert_eq!(
            expanded("SELECT x FROM b;", &views),
            "WITH a AS (\nSELECT 1 AS x\n), b AS (\nSELECT x FROM a\n)\nSELECT x FROM b"
        );
        assert_eq!(expanded("SELECT bb", &views), "SELECT bb");
        assert_eq!(
            expanded("with e AS (SELECT 1) SELECT x FROM a, e", &views),
            "WITH a AS (\nSELECT 1 AS x\n), e AS (SELECT 1) SELECT x FROM a, e"
        );
        assert!(
            expanded("WITH RECURSIVE e(n) AS (SELECT x FROM a) SELECT 1", &views).starts_with("WITH RECURSIVE a AS")
        );
    }
}
