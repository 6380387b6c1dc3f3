//! Arrow schemas and builders. Each table is declared once, with the [`table!`](macros) macro; its schema, its row type, its
//! builder and its documentation come from that declaration. How rows are found is none of this folder's business.

pub(crate) mod cell;
pub(crate) mod column;
#[macro_use]
mod macros;
mod capture_tables;
mod control_tables;
mod flow_tables;
mod lldp_table;
mod match_table;
mod packets;
mod registry;
mod roce_story_tables;
mod roce_tables;
mod service_tables;
mod tcp_events;
mod tcp_tables;

pub(crate) use capture_tables::*;
pub(crate) use cell::{FrameList, NameSet, SackList, Symbol, TimeNs};
#[cfg(any(feature = "sql", feature = "text"))]
pub(crate) use column::nearest;
pub use column::{ColumnDef, Projection, TableDef, type_name};
pub(crate) use column::{RowSubject, TableBuilder, TableRow};
pub(crate) use control_tables::*;
pub(crate) use flow_tables::*;
pub(crate) use lldp_table::*;
pub(crate) use macros::builder;
#[cfg(feature = "logs")]
pub(crate) use macros::table;
pub(crate) use match_table::*;
pub(crate) use packets::*;
#[cfg(feature = "logs")]
pub(crate) use registry::markdown_of;
pub use registry::{TABLES, TableId, markdown};
pub(crate) use roce_story_tables::*;
pub(crate) use roce_tables::*;
pub(crate) use service_tables::*;
pub(crate) use tcp_events::*;
pub(crate) use tcp_tables::*;
