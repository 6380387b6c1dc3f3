//! `docs/tables.md` says what the declarations say.

use arrow_schema::DataType;
use wirelab::TABLES;

use crate::support::crate_root;

#[test]
fn the_table_documentation_is_up_to_date() {
    let path = crate_root().join("docs/tables.md");
    let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let now = documented();
    // Git on Windows may have changed the line ends.
    let differing = written.lines().zip(now.lines()).find(|(written, now)| written != now);
    assert_eq!(differing, None, "docs/tables.md is stale: make docs");
    assert_eq!(written.lines().count(), now.lines().count(), "docs/tables.md is stale: make docs");
}

/// Without logs, only what stands before them can be compared.
#[cfg(feature = "logs")]
fn documented() -> String {
    wirelab::tables::markdown() + &wirelab::logs::markdown()
}

#[cfg(not(feature = "logs"))]
fn documented() -> String {
    let now = wirelab::tables::markdown();
    let written = std::fs::read_to_string(crate_root().join("docs/tables.md")).unwrap_or_default();
    let of_logs = written.find("\n## Tables of logs").map_or("", |at| &written[at..]);
    now + of_logs
}

#[test]
fn every_column_is_documented_and_named_by_the_rules() {
    for table in TABLES {
        let definition = table.definition();
        assert!(!definition.doc.trim().is_empty(), "{}", definition.name);
        for column in &definition.columns {
            let name = format!("{}.{}", definition.name, column.name);
            assert!(column.doc.trim().ends_with(['.', '?']), "{name}: its comment is no sentence");
            assert!(!column.name.ends_with("_len") && !column.name.ends_with("_ms"), "{name}: unit");
            let is_truth = ["is_", "has_", "ws_", "client_known"].iter().any(|start| column.name.starts_with(start));
            assert!(column.data_type != DataType::Boolean || is_truth, "{name}: a boolean starts with is_ or has_");
            if column.name.ends_with("_ns") {
                assert_eq!(column.data_type, DataType::Int64, "{name}: durations are int64 nanoseconds");
            }
            if column.name == "time" {
                assert!(matches!(column.data_type, DataType::Timestamp(_, Some(_))), "{name}");
            }
        }
    }
}
