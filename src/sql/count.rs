//! `SELECT count(*) FROM table`: asked so often, and of so large tables, that SQLite need not walk the rows for it.

/// The schema (empty where none is named) and the table whose rows a query counts, where it does nothing else. Of anything
/// that is not plainly so, comments and quoted names among it, SQLite knows the answer.
pub(super) fn counted(sql: &str) -> Option<(&str, &str)> {
    let rest = keyword(sql, "SELECT")?;
    let rest = symbol(symbol(symbol(keyword(rest, "COUNT")?, "(")?, "*")?, ")")?;
    let rest = match keyword(rest, "FROM") {
        Some(rest) => rest,
        // What the column is called; SQLite says that, and refuses what is no name. Without AS it might be an operator.
        None => keyword(name(keyword(rest, "AS")?)?.1, "FROM")?,
    };
    let (first, rest) = name(rest)?;
    let (schema, table, rest) = match symbol(rest, ".") {
        Some(rest) => name(rest).map(|(table, rest)| (first, table, rest))?,
        None => ("", first, rest),
    };
    symbol(rest, ";").unwrap_or(rest).trim_start().is_empty().then_some((schema, table))
}

/// What follows a keyword that a query goes on with.
fn keyword<'a>(sql: &'a str, wanted: &str) -> Option<&'a str> {
    name(sql).filter(|(word, _)| word.eq_ignore_ascii_case(wanted)).map(|(_, rest)| rest)
}

fn symbol<'a>(sql: &'a str, wanted: &str) -> Option<&'a str> {
    sql.trim_start().strip_prefix(wanted)
}

/// A word without quotes, and what follows it.
fn name(sql: &str) -> Option<(&str, &str)> {
    let sql = sql.trim_start();
    let end = sql.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(sql.len());
    sql.split_at_checked(end).filter(|(word, _)| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_counts_a_table_and_no_more_is_known() {
        for (sql, table) in [
            ("SELECT count(*) FROM packets", ("", "packets")),
            ("select COUNT ( * ) as n\nfrom Packets ; ", ("", "Packets")),
            (" SELECT count(*)AS rows FROM jumbo.tcp_flows;", ("jumbo", "tcp_flows")),
            ("SELECT count(*)FROM a . b", ("a", "b")),
        ] {
            assert_eq!(counted(sql), Some(table), "{sql}");
        }
    }

    #[test]
    fn anything_else_is_left_to_sqlite() {
        for sql in [
            "",
            "SELECT",
            "SELECT count(*)",
            "SELECT count(*) FROM",
            "SELECT count(*) AS FROM packets",
            "SELECT count(*) rows FROM packets",
            "SELECT count(*) ISNULL FROM packets",
            "SELECT count(dns_id) FROM dns",
            "SELECT count(*) FROM packets WHERE 0",
            "SELECT count(*) FROM packets p",
            "SELECT count(*) FROM packets, tcp",
            "SELECT count(*) FROM packets LIMIT 0",
            "SELECT count(*) FROM packets; SELECT 1",
            "SELECT count(*), 1 FROM packets",
            "SELECT count(*) + 1 FROM packets",
            "SELECT count(*) FROM (SELECT 1)",
            "SELECT count(*) FROM \"packets\"",
            "SELECT count(*) FROM packets -- all",
            "WITH packets AS (SELECT 1) SELECT count(*) FROM packets",
            "EXPLAIN SELECT count(*) FROM packets",
            "SELECT count(*) FROM a.b.c",
            "SELECT count(*) FROM 包",
        ] {
            assert_eq!(counted(sql), None, "{sql}");
        }
    }
}
