//! `sample-captures/*/expect.toml` against the tables: each expectation was printed by an independent reader, or counted by
//! a kernel or a tool. The grammar is described in `sample-captures/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::{Table, Value as Toml};
use wirelab::{Capture, TableData, TableId};

use crate::support::cells::{self, Value};
use crate::support::{crate_root, with_threads};

#[test]
fn every_expectation_of_every_sample_holds() {
    let (mut checked, mut failures) = (0, Vec::new());
    for sample in samples() {
        let expectations = expectations(&sample);
        assert!(!expectations.is_empty(), "{}: no expectation", sample.display());
        let mut captures: BTreeMap<String, Capture> = BTreeMap::new();
        for (number, expectation) in expectations.iter().enumerate() {
            let capture = captures.entry(expectation.file.clone()).or_insert_with(|| {
                let path = sample.join(&expectation.file);
                wirelab::open([path.as_path()], &with_threads(2)).unwrap_or_else(|error| panic!("{error}"))
            });
            let table = capture.table(expectation.table).unwrap_or_else(|error| panic!("{error}"));
            for failure in expectation.failures(&table) {
                let (folder, file, table) = (sample.display(), &expectation.file, expectation.table.name());
                failures.push(format!("{folder}: expect {}: {file}: {table}: {failure}", number + 1));
            }
            checked += 1;
        }
    }
    assert!(failures.is_empty(), "{} of {checked} expectations fail:\n{}", failures.len(), failures.join("\n"));
    println!("{checked} expectations hold");
}

#[test]
fn every_sample_has_a_readme_and_expectations_of_each_of_its_captures() {
    for sample in samples() {
        let readme = std::fs::read_to_string(sample.join("README.md")).unwrap_or_default();
        let named: BTreeSet<_> = expectations(&sample).into_iter().map(|expectation| expectation.file).collect();
        for capture in captures_of(&sample) {
            assert!(named.contains(&capture), "{}: nothing is expected of {capture}", sample.display());
            assert!(readme.contains(&capture), "{}: README.md says nothing of {capture}", sample.display());
        }
        for file in named {
            assert!(sample.join(&file).is_file(), "{}: {file} is not there", sample.display());
        }
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let capture =
        wirelab::open([crate::support::sample("ping-delay/ping-delay.pcap").as_path()], &with_threads(1)).unwrap();
    for wrong in [
        "table = 'icmp'\ncount = 23",
        "table = 'icmp'\nmatch = { type = 8 }\nframe_no = [1, 2]",
        "table = 'icmp'\nmatch = { type__ne = 8, type__gt = 8 }\ncount = 1",
        "table = 'probes'\nsum = { rtt_ns = 257771001 }",
        "table = 'packets'\nmatch = { protocol__contains = 'TCP' }\ncount = 24",
        "table = 'packets'\nmatch = { vlan_id__is_null = false }\ncount = 24",
    ] {
        let expectation = Expectation::parse(&wrong.parse::<Table>().unwrap(), Some("ping-delay.pcap")).unwrap();
        let table = capture.table(expectation.table).unwrap();
        assert_eq!(expectation.failures(&table).len(), 1, "{wrong}");
    }
    for faulty in
        ["table = 'icmp'", "table = 'imcp'\ncount = 1", "table = 'icmp'\nmatch = { typ = 8 }\ncount = 1", "tabel = 1"]
    {
        assert!(Expectation::parse(&faulty.parse::<Table>().unwrap(), Some("ping-delay.pcap")).is_err(), "{faulty}");
    }
}

fn samples() -> Vec<PathBuf> {
    let folder = crate_root().join("sample-captures");
    let mut samples: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    samples.sort();
    assert!(samples.len() >= 12, "{} samples", samples.len());
    samples
}

fn captures_of(sample: &Path) -> Vec<String> {
    let names = std::fs::read_dir(sample).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut captures: Vec<_> = names.filter(|name| name.contains(".pcap")).collect();
    captures.sort();
    captures
}

fn expectations(sample: &Path) -> Vec<Expectation> {
    let path = sample.join("expect.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let captures = captures_of(sample);
    let default_file = match (file.get("file"), captures.as_slice()) {
        (Some(Toml::String(file)), _) => Some(file.as_str()),
        (None, [only]) => Some(only.as_str()),
        _ => None,
    };
    for key in file.keys() {
        assert!(["file", "expect"].contains(&key.as_str()), "{}: unknown key {key}", path.display());
    }
    let parse = |expectation: &Toml| {
        let table = expectation.as_table().ok_or("an [[expect]] is a table")?;
        Expectation::parse(table, default_file)
    };
    let list = file.get("expect").and_then(Toml::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().map(|item| parse(item).unwrap_or_else(|error| panic!("{}: {error}: {item}", path.display()))).collect()
}

/// One `[[expect]]`.
struct Expectation {
    file: String,
    table: TableId,
    matches: Vec<Condition>,
    count: Option<usize>,
    frame_no: Option<Vec<i128>>,
    sums: Vec<(String, i128)>,
}

struct Condition {
    column: String,
    test: Test,
    value: Value,
}

#[derive(Clone, Copy)]
enum Test {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Contains,
    IsNull,
}

const SUFFIXES: [(&str, Test); 7] = [
    ("__gte", Test::GreaterOrEqual),
    ("__gt", Test::Greater),
    ("__lte", Test::LessOrEqual),
    ("__lt", Test::Less),
    ("__ne", Test::NotEqual),
    ("__contains", Test::Contains),
    ("__is_null", Test::IsNull),
];

impl Expectation {
    fn parse(from: &Table, default_file: Option<&str>) -> Result<Self, String> {
        let known = ["file", "table", "match", "count", "frame_no", "sum"];
        if let Some(key) = from.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("unknown key {key}"));
        }
        let file = from.get("file").and_then(Toml::as_str).or(default_file).ok_or("which file?")?.to_owned();
        let table = from.get("table").and_then(Toml::as_str).ok_or("which table?")?;
        let table = TableId::from_name(table).map_err(|error| error.to_string())?;
        let has_column = |name: &str| match table.definition().columns.iter().any(|column| column.name == name) {
            true => Ok(()),
            false => Err(format!("table {} has no column {name}", table.name())),
        };
        let mut matches = Vec::new();
        for (key, value) in from.get("match").and_then(Toml::as_table).into_iter().flatten() {
            let suffixed = SUFFIXES.iter().find_map(|(suffix, test)| Some((key.strip_suffix(suffix)?, *test)));
            let (column, test) = suffixed.unwrap_or((key, Test::Equal));
            has_column(column)?;
            matches.push(Condition { column: column.to_owned(), test, value: value_of(value)? });
        }
        let mut sums = Vec::new();
        for (column, value) in from.get("sum").and_then(Toml::as_table).into_iter().flatten() {
            has_column(column)?;
            sums.push((column.clone(), value_of(value)?.int().ok_or("a sum is a whole number")?));
        }
        let count = from.get("count").map(|count| count.as_integer().and_then(|count| usize::try_from(count).ok()));
        let frame_no = match from.get("frame_no").map(value_of).transpose()? {
            None => None,
            Some(Value::List(frames)) => {
                has_column("frame_no")?;
                Some(frames.iter().map(Value::int).collect::<Option<_>>().ok_or("frame numbers are whole numbers")?)
            }
            Some(_) => return Err("frame_no is a list".to_owned()),
        };
        let expectation =
            Self { file, table, matches, count: count.map(|c| c.ok_or("count?")).transpose()?, frame_no, sums };
        if expectation.count.is_none() && expectation.frame_no.is_none() && expectation.sums.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        Ok(expectation)
    }

    fn failures(&self, table: &Arc<TableData>) -> Vec<String> {
        let mut is_kept = vec![true; table.num_rows()];
        for condition in &self.matches {
            let values = cells::column(&table.batches, &condition.column);
            for (kept, value) in is_kept.iter_mut().zip(&values) {
                *kept &= condition.holds(value);
            }
        }
        let kept = |column: &str| -> Vec<Value> {
            let values = cells::column(&table.batches, column).into_iter();
            values.zip(&is_kept).filter(|(_, kept)| **kept).map(|(value, _)| value).collect()
        };
        let mut failures = Vec::new();
        let rows = is_kept.iter().filter(|kept| **kept).count();
        if let Some(count) = self.count.filter(|count| *count != rows) {
            failures.push(format!("{count} rows expected, {rows} match"));
        }
        if let Some(frames) = &self.frame_no {
            let found: Vec<_> = kept("frame_no").iter().filter_map(Value::int).collect();
            if found != *frames {
                failures.push(format!("frames {frames:?} expected, {found:?} match"));
            }
        }
        for (column, sum) in &self.sums {
            let add = |value: &Value| match value {
                Value::Int(value) => *value,
                Value::Bool(value) => i128::from(*value),
                Value::Null => 0,
                other => panic!("{column} cannot be summed: {other:?}"),
            };
            let found: i128 = kept(column).iter().map(add).sum();
            if found != *sum {
                failures.push(format!("sum of {column}: {sum} expected, {found} found over {rows} rows"));
            }
        }
        failures
    }
}

impl Condition {
    fn holds(&self, cell: &Value) -> bool {
        use std::cmp::Ordering;
        if let Test::IsNull = self.test {
            return Value::Bool(*cell == Value::Null) == self.value;
        }
        if *cell == Value::Null {
            return false;
        }
        let order = || match (cell, &self.value) {
            (Value::Int(cell), Value::Int(value)) => cell.cmp(value),
            (Value::Float(cell), Value::Float(value)) => cell.total_cmp(value),
            (Value::Text(cell), Value::Text(value)) => cell.cmp(value),
            (Value::Bool(cell), Value::Bool(value)) => cell.cmp(value),
            (Value::List(cell), Value::List(value)) if cell == value => Ordering::Equal,
            (Value::List(_), Value::List(_)) => Ordering::Less,
            (cell, value) => panic!("{}: {cell:?} cannot be compared with {value:?}", self.column),
        };
        match self.test {
            Test::Equal => order().is_eq(),
            Test::NotEqual => order().is_ne(),
            Test::Greater => order().is_gt(),
            Test::GreaterOrEqual => order().is_ge(),
            Test::Less => order().is_lt(),
            Test::LessOrEqual => order().is_le(),
            Test::Contains => match (cell, &self.value) {
                (Value::Text(cell), Value::Text(value)) => cell.contains(value),
                (Value::List(items), value) => items.contains(value),
                (cell, value) => panic!("{}: {cell:?} cannot contain {value:?}", self.column),
            },
            Test::IsNull => unreachable!("handled above"),
        }
    }
}

fn value_of(toml: &Toml) -> Result<Value, String> {
    Ok(match toml {
        Toml::String(text) => Value::Text(text.clone()),
        Toml::Integer(number) => Value::Int(i128::from(*number)),
        Toml::Float(number) => Value::Float(*number),
        Toml::Boolean(truth) => Value::Bool(*truth),
        Toml::Array(items) => Value::List(items.iter().map(value_of).collect::<Result<_, _>>()?),
        other => return Err(format!("{other} is no value of a cell")),
    })
}
