//! Promises about the code itself: what the core depends on, what each folder may know, and how large a file may grow.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{crate_root, files_below};

#[test]
fn the_core_depends_on_no_python_and_no_query_engine() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    // Of this platform: what others depend on was perhaps never downloaded here.
    let arguments = ["tree", "-p", "wirelab", "-e", "normal", "--offline", "--all-features", "--prefix", "none"];
    let output = Command::new(cargo).args(arguments).current_dir(crate_root()).output().unwrap();
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let crates: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"wirelab") && crates.contains(&"arrow-array"), "{tree}");
    for unwanted in ["pyo3", "pyo3-arrow", "numpy", "datafusion", "tokio", "pcap-parser", "etherparse"] {
        assert!(!crates.contains(&unwanted), "the core depends on {unwanted}");
    }
}

#[test]
fn analyzers_know_no_clock_no_input_and_no_arrow() {
    let unwanted = [
        "std::time",
        "Instant",
        "SystemTime",
        "std::fs",
        "std::io",
        "std::net",
        "std::thread",
        "std::env",
        "arrow",
        "rayon",
    ];
    let lines = code_lines("src/analyze");
    assert!(lines.len() > 500, "{} lines of analyzers", lines.len());
    for (path, line, code) in lines {
        if let Some(word) = unwanted.iter().find(|word| code.contains(**word)) {
            panic!("{}:{line}: an analyzer must not know of {word}", path.display());
        }
    }
}

#[test]
fn a_stage_knows_the_ones_before_it_and_nothing_after() {
    let stages = ["capture", "wire", "flow", "analyze", "tables", "scan", "convert", "sql", "logs", "grade"];
    // The hash that spreads flows is taken while the frame is at hand.
    let excepted = [("wire", "crate::flow::FlowHasher")];
    for (at, stage) in stages.iter().enumerate() {
        for (path, line, code) in code_lines(&format!("src/{stage}")) {
            for later in &stages[at + 1..] {
                let is_excepted = excepted.iter().any(|(of, what)| of == stage && code.contains(what));
                let knows = code.contains(&format!("crate::{later}")) && !is_excepted;
                assert!(!knows, "{}:{line}: {stage} must not know of {later}", path.display());
            }
        }
    }
}

#[test]
fn time_is_neither_read_from_a_clock_nor_kept_in_floats() {
    let lines = code_lines("src");
    assert!(lines.len() > 5_000, "{} lines of code", lines.len());
    for (path, line, code) in lines {
        let place = path.display();
        // A query has a deadline; its results do not depend on it.
        let has_deadline = path == crate_root().join("src/sql/guard.rs");
        for clock in ["Instant::now", "SystemTime::now"] {
            assert!(has_deadline && clock == "Instant::now" || !code.contains(clock), "{place}:{line}: {clock}");
        }
        if path.starts_with(crate_root().join("src/capture")) {
            assert!(!code.contains("f64") && !code.contains("f32"), "{place}:{line}: a float");
        }
    }
}

#[test]
fn the_library_prints_nothing() {
    for folder in ["src", "python/src"] {
        for (path, line, code) in code_lines(folder) {
            for macro_name in ["println!", "print!", "dbg!", "todo!", "unimplemented!"] {
                // `eprintln!` ends in `println!` too.
                assert!(!code.contains(macro_name), "{}:{line}: {macro_name}", path.display());
            }
        }
    }
}

#[test]
fn the_memory_map_and_the_two_traits_of_virtual_tables_are_unsafe_and_nothing_else() {
    let places: Vec<_> = code_lines("src")
        .into_iter()
        .filter(|(_, _, code)| {
            code.replace("unsafe_code", "").split(|c: char| !c.is_alphanumeric()).any(|word| word == "unsafe")
        })
        .map(|(path, _, code)| {
            let path = path.strip_prefix(crate_root()).unwrap().display().to_string().replace('\\', "/");
            (path, code.trim().to_owned())
        })
        .collect();
    let (tables, others): (Vec<_>, Vec<_>) = places.iter().partition(|(path, _)| path == "src/sql/vtab.rs");
    assert!(tables.len() == 2 && tables.iter().all(|(_, code)| code.starts_with("unsafe impl VTab")), "{places:?}");
    assert!(others.len() == 1 && others[0].0 == "src/spill.rs", "{places:?}");
    let lib = std::fs::read_to_string(crate_root().join("src/lib.rs")).unwrap();
    assert!(lib.contains("#![deny(unsafe_code)]"));
}

#[test]
fn sql_knows_nothing_of_grading_and_no_stage_of_sql() {
    let stages = ["capture", "wire", "flow", "analyze", "tables", "scan", "join", "overview"];
    for (path, line, code) in stages.iter().flat_map(|stage| code_lines(&format!("src/{stage}"))) {
        assert!(!code.contains("crate::sql"), "{}:{line}: a stage must not know of sql", path.display());
    }
    for (path, line, code) in code_lines("src/sql") {
        for later in ["crate::grade", "crate::logs"] {
            assert!(!code.contains(later), "{}:{line}: sql must not know of {later}", path.display());
        }
    }
}

#[test]
fn no_file_grows_past_six_hundred_lines() {
    // One file is over the limit until it is split; it may not grow either.
    let excepted = [("src/wire/walk.rs", 690)];
    for folder in ["src", "python/src", "tests", "examples"] {
        for path in rust_files(folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            // Unit tests at the end of a file do not count.
            let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
            let limit = excepted.iter().find(|(of, _)| path.ends_with(of)).map_or(600, |(_, limit)| *limit);
            assert!(lines <= limit, "{}: {lines} lines", path.display());
        }
    }
}

/// Every line of code below a folder: without comments, and without the unit tests at the end of a file.
fn code_lines(folder: &str) -> Vec<(PathBuf, usize, String)> {
    let mut lines = Vec::new();
    for path in rust_files(folder).into_iter().filter(|path| !is_test(path)) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate();
        lines.extend(code.filter_map(|(at, line)| {
            let code = line.split("//").next().unwrap_or("");
            (!code.trim().is_empty()).then(|| (path.clone(), at + 1, code.to_owned()))
        }));
    }
    lines
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let folder = crate_root().join(folder);
    if folder.is_dir() { files_below(&folder, &[".rs"]) } else { Vec::new() }
}

/// Files of unit tests: `tests.rs` and everything in a folder `tests`.
fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(crate_root()).unwrap();
    inside.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}
