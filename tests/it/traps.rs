//! What misleads users of other tools, and what happens here instead: one test for each, on a capture made for it, and on
//! real ones where they are at hand.

mod captures;
mod copies;
mod frames;
mod roce;
mod roce_ecn;
mod tcp;

use std::collections::BTreeMap;

use wirelab::{Input, ScanRequest, TableId};

use crate::support::cells::{Value, column, ints, texts};
use crate::support::{TableBatches, tables, with_threads};

/// A finding of `capture_quality`.
#[derive(Debug)]
struct Found {
    severity: String,
    value: Option<i128>,
    unit: Option<String>,
    count: i128,
    frames: Vec<i128>,
    en: String,
    zh: String,
}

/// The tables of one capture that traps are seen in.
struct Tables(Vec<TableBatches>);

impl Tables {
    fn of(input: impl Into<Input>) -> Self {
        Self::of_set(vec![input.into()])
    }

    fn of_set(inputs: Vec<Input>) -> Self {
        let wanted = [
            TableId::Packets,
            TableId::Tcp,
            TableId::TcpFlows,
            TableId::Flows,
            TableId::Tunnels,
            TableId::Interfaces,
            TableId::CaptureQuality,
        ];
        Self(tables(inputs, &with_threads(1), &wanted.map(ScanRequest::new)).unwrap())
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Self::of(Input::Bytes(bytes.into()))
    }

    fn column(&self, table: TableId, name: &str) -> Vec<Value> {
        column(&self.table(table).batches, name)
    }

    fn ints(&self, table: TableId, name: &str) -> Vec<i128> {
        ints(&self.table(table).batches, name)
    }

    fn texts(&self, table: TableId, name: &str) -> Vec<String> {
        texts(&self.table(table).batches, name)
    }

    fn table(&self, table: TableId) -> &TableBatches {
        self.0.iter().find(|of| of.table == table).unwrap()
    }

    /// Rows of `tcp` by verdict.
    fn verdicts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for verdict in self.texts(TableId::Tcp, "verdict") {
            *counts.entry(verdict).or_insert(0) += 1;
        }
        counts
    }

    /// Sum of a column of `tcp_flows` over both directions.
    fn both_sides(&self, name: &str) -> i128 {
        let of = |side: &str| self.ints(TableId::TcpFlows, &format!("{side}_{name}")).iter().sum::<i128>();
        of("client") + of("server")
    }

    fn findings(&self) -> BTreeMap<String, Found> {
        let of = |name: &str| self.column(TableId::CaptureQuality, name);
        let codes = self.texts(TableId::CaptureQuality, "code");
        let (severities, messages) = (of("severity"), of("message_en").into_iter().zip(of("message_zh")));
        let figures = of("value").into_iter().zip(of("unit")).zip(of("count")).zip(of("frames"));
        let text = |value: &Value| value.text().map(str::to_owned);
        let rows = codes.into_iter().zip(severities).zip(messages).zip(figures);
        rows.map(|(((code, severity), (en, zh)), (((value, unit), count), frames))| {
            let frames = match frames {
                Value::List(frames) => frames.iter().filter_map(Value::int).collect(),
                _ => Vec::new(),
            };
            let found = Found {
                severity: text(&severity).unwrap(),
                value: value.int(),
                unit: text(&unit),
                count: count.int().unwrap(),
                frames,
                en: text(&en).unwrap(),
                zh: text(&zh).unwrap(),
            };
            assert!(!found.en.contains('{') && !found.zh.contains('{'), "{code}: {found:?}");
            println!("{code}\n    {}\n    {}", found.en, found.zh);
            (code, found)
        })
        .collect()
    }

    /// The finding of a code, and no other one of a warning's weight or more.
    fn only_warning(&self, code: &str) -> Found {
        let mut findings = self.findings();
        let found = findings.remove(code).unwrap_or_else(|| panic!("no {code} among {:?}", findings.keys()));
        findings.retain(|_, other| other.severity != "info");
        assert!(findings.is_empty(), "beside {code}: {findings:?}");
        found
    }
}
