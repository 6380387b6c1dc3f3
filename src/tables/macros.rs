//! The one macro of the crate: a table, declared once.

/// Declares a table: its row type, builder, schema and documentation. `Option<T>` (and an address) is a nullable column;
/// every column must have a comment, which is its cell in `docs/tables.md`. A table `by columns` has no rows in memory: what
/// finds them fills the builder's columns, all of them alike (`packets` and `tcp`, of which there are most by far).
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

        $crate::tables::builder!($row / $builder, $name, concat!($($table_doc, "\n"),+), {
            $( $field: $type, concat!($($doc, "\n"),+); )+
        });

        impl $builder {
            fn append_rows(&mut self, rows: &[$row]) {
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
        }
    };
    (
        $(#[doc = $table_doc:literal])+
        table $name:literal by columns => $row:ident / $builder:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty, )+
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, Debug)]
        pub(crate) enum $row {}

        $crate::tables::builder!($row / $builder, $name, concat!($($table_doc, "\n"),+), {
            $( $field: $type, concat!($($doc, "\n"),+); )+
        });

        impl $builder {
            /// There are no rows that it could be called with.
            fn append_rows(&mut self, rows: &[$row]) {
                if let Some(row) = rows.first() {
                    match *row {}
                }
            }
        }
    };
}

/// What both kinds of table have: a builder, and the definition.
macro_rules! builder {
    ($row:ident / $builder:ident, $name:literal, $table_doc:expr, { $( $field:ident: $type:ty, $doc:expr; )+ }) => {
        pub(crate) struct $builder {
            pub rows: usize,
            $( pub $field: Option<<$type as $crate::tables::cell::Cell>::Builder>, )+
        }

        impl $row {
            /// The table's definition, made once.
            pub(crate) fn table() -> &'static $crate::tables::TableDef {
                static DEFINITION: std::sync::LazyLock<$crate::tables::TableDef> = std::sync::LazyLock::new(|| {
                    $crate::tables::TableDef {
                        name: $name,
                        doc: $table_doc,
                        columns: vec![ $( $crate::tables::ColumnDef {
                            name: stringify!($field).strip_prefix("r#").unwrap_or(stringify!($field)),
                            data_type: <$type as $crate::tables::cell::Cell>::data_type(),
                            is_nullable: <$type as $crate::tables::cell::Cell>::NULLABLE,
                            doc: $doc,
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
                self.append_rows(rows);
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

pub(crate) use builder;
#[cfg(feature = "logs")]
pub(crate) use table;
