//! The one macro of the crate: a table, declared once.

/// Declares a table: its row type, builder, schema and documentation. `Option<T>` (and an address) is a nullable column;
/// every column must have a comment, which is its cell in `docs/tables.md`.
macro_rules! table {
    (
        $(#[doc = $table_doc:literal])+
        table $name:literal => $row:ident / $builder:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty, )+
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $row {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        pub(crate) struct $builder {
            rows: usize,
            $( $field: Option<<$type as $crate::tables::cell::Cell>::Builder>, )+
        }

        impl $row {
            /// The table's definition, made once.
            pub(crate) fn table() -> &'static $crate::tables::TableDef {
                static DEFINITION: std::sync::LazyLock<$crate::tables::TableDef> = std::sync::LazyLock::new(|| {
                    $crate::tables::TableDef {
                        name: $name,
                        doc: concat!($($table_doc, "\n"),+),
                        columns: vec![ $( $crate::tables::ColumnDef {
                            name: stringify!($field).strip_prefix("r#").unwrap_or(stringify!($field)),
                            data_type: <$type as $crate::tables::cell::Cell>::data_type(),
                            is_nullable: <$type as $crate::tables::cell::Cell>::NULLABLE,
                            doc: concat!($($doc, "\n"),+),
                        }, )+ ],
                    }
                });
                &DEFINITION
            }
        }

        impl $crate::tables::column::TableBuilder<$row> for $builder {
            fn new(projection: &$crate::tables::Projection, capacity: usize) -> Self {
                let mut column = 0..;
                let mut is_wanted = || column.next().is_some_and(|at| projection.has(at));
                Self {
                    rows: 0,
                    $( $field: is_wanted().then(|| $crate::tables::cell::CellBuilder::with_capacity(capacity)), )+
                }
            }

            fn append(&mut self, rows: &[$row]) {
                self.rows += rows.len();
                // Column by column over a block of rows that fits the cache.
                for block in rows.chunks(256) {
                    $( if let Some(builder) = &mut self.$field {
                        for row in block {
                            $crate::tables::cell::CellBuilder::push(builder, &row.$field);
                        }
                    } )+
                }
            }

            fn rows(&self) -> usize {
                self.rows
            }

            fn finish(self) -> Vec<Option<arrow_array::ArrayRef>> {
                vec![ $( self.$field.map($crate::tables::cell::CellBuilder::finish), )+ ]
            }
        }
    };
}

#[cfg(feature = "logs")]
pub(crate) use table;
