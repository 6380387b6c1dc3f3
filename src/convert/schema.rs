//! What a file of the dataset says of itself.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::tables::TableId;

/// Units by the ends of names; `docs/tables.md` has the rest.
const UNITS: [(&str, &str); 5] =
    [("_ns", "ns"), ("_bytes", "bytes"), ("_bps", "bit/s"), ("_ratio", "1"), ("_quanta", "quanta of 512 bit times")];

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A table's schema with the version that wrote it, and units.
pub(super) fn schema(table: TableId) -> SchemaRef {
    let plain = table.definition().schema();
    let field = |field: &Arc<Field>| {
        let unit = UNITS.iter().find(|(end, _)| field.name().ends_with(end));
        let metadata = unit.map(|(_, unit)| ("unit".to_owned(), (*unit).to_owned())).into_iter().collect();
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    };
    let fields: Vec<_> = plain.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, facts(table).into_iter().collect::<HashMap<_, _>>()))
}

/// Key and value pairs beside the schema, also for readers that know nothing of Arrow.
pub(super) fn facts(table: TableId) -> [(String, String); 2] {
    [("wirelab.version".to_owned(), VERSION.to_owned()), ("wirelab.table".to_owned(), table.name().to_owned())]
}
