//! All tables, by name.

use super::column::{TableDef, type_name};
use super::*;

/// A table of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TableId {
    Packets,
    Tcp,
    TcpFlows,
    TcpEvents,
    Flows,
    Roce,
    RoceQps,
    RoceMessages,
    RoceIntervals,
    RoceEvents,
    Pause,
    PauseIntervals,
    Lldp,
    Tunnels,
    Probes,
    Dns,
    Icmp,
    Arp,
    Interfaces,
    CaptureQuality,
}

/// Every table, in the order documentation shows them.
pub const TABLES: [TableId; 20] = [
    TableId::Packets,
    TableId::Tcp,
    TableId::TcpFlows,
    TableId::TcpEvents,
    TableId::Flows,
    TableId::Roce,
    TableId::RoceQps,
    TableId::RoceMessages,
    TableId::RoceIntervals,
    TableId::RoceEvents,
    TableId::Pause,
    TableId::PauseIntervals,
    TableId::Lldp,
    TableId::Tunnels,
    TableId::Probes,
    TableId::Dns,
    TableId::Icmp,
    TableId::Arp,
    TableId::Interfaces,
    TableId::CaptureQuality,
];

impl TableId {
    pub fn from_name(name: &str) -> Result<Self, crate::Error> {
        TABLES.into_iter().find(|table| table.name() == name).ok_or_else(|| {
            let known: Vec<_> = TABLES.iter().map(|table| table.name()).collect();
            crate::Error::NoTable { name: name.to_owned(), near: super::column::nearest(name, &known), known }
        })
    }

    pub fn name(self) -> &'static str {
        self.definition().name
    }

    pub fn definition(self) -> &'static TableDef {
        match self {
            Self::Packets => PacketRow::table(),
            Self::Tcp => TcpRow::table(),
            Self::TcpFlows => TcpFlowRow::table(),
            Self::TcpEvents => TcpEventRow::table(),
            Self::Flows => FlowRow::table(),
            Self::Roce => RoceRow::table(),
            Self::RoceQps => RoceQpRow::table(),
            Self::RoceIntervals => RoceIntervalRow::table(),
            Self::RoceMessages => RoceMessageRow::table(),
            Self::RoceEvents => RoceEventRow::table(),
            Self::Pause => PauseRow::table(),
            Self::PauseIntervals => PauseIntervalRow::table(),
            Self::Lldp => LldpRow::table(),
            Self::Tunnels => TunnelRow::table(),
            Self::Probes => ProbeRow::table(),
            Self::Dns => DnsRow::table(),
            Self::Icmp => IcmpRow::table(),
            Self::Arp => ArpRow::table(),
            Self::Interfaces => InterfaceRow::table(),
            Self::CaptureQuality => QualityRow::table(),
        }
    }
}

/// `docs/tables.md`: every table with its columns, from the declarations.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Tables\n\nWritten by `make docs` from the declarations in `src/tables/` and `src/logs/`; do not edit.\n\n\
         Times are nanoseconds since 1970-01-01 UTC, exact. `file_no` and `frame_no` together name a frame.\n",
    );
    for definition in TABLES.iter().map(|table| table.definition()).chain([MatchRow::table()]) {
        text.push_str(&markdown_of(definition, "##"));
    }
    text
}

/// One table for a documentation page, under a heading such as `##`.
pub(crate) fn markdown_of(definition: &TableDef, heading: &str) -> String {
    let mut text = format!("\n{heading} `{}`\n\n{}\n\n", definition.name, one_line(definition.doc));
    text.push_str("| column | type | null | meaning |\n|---|---|---|---|\n");
    for column in &definition.columns {
        let null = if column.is_nullable { "yes" } else { "" };
        let (name, kind, doc) = (column.name, type_name(&column.data_type), one_line(column.doc));
        text.push_str(&format!("| `{name}` | {kind} | {null} | {doc} |\n"));
    }
    text
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
