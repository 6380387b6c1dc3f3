//! Columns of texts and lists.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder as _, ListBuilder, PrimitiveBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::{Cell, CellBuilder, FrameList, Gaps, SackList};

impl Cell for Option<String> {
    type Builder = StringBuilder;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Utf8
    }
}

impl CellBuilder<Option<String>> for StringBuilder {
    fn with_capacity(_rows: usize) -> Self {
        StringBuilder::new()
    }
    fn push(&mut self, value: &Option<String>) {
        self.append_option(value.as_deref());
    }
    fn finish(mut self) -> ArrayRef {
        Arc::new(StringBuilder::finish(&mut self))
    }
}

impl Gaps for StringBuilder {
    fn push_gaps(&mut self, rows: usize) {
        self.append_nulls(rows);
    }
}

impl Cell for FrameList {
    type Builder = ListBuilder<UInt64Builder>;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new_list_field(DataType::UInt64, true)))
    }
}

impl CellBuilder<FrameList> for ListBuilder<UInt64Builder> {
    fn with_capacity(rows: usize) -> Self {
        ListBuilder::with_capacity(PrimitiveBuilder::new(), rows)
    }
    fn push(&mut self, value: &FrameList) {
        self.values().append_slice(&value.0);
        self.append(true);
    }
    fn finish(mut self) -> ArrayRef {
        Arc::new(ListBuilder::finish(&mut self))
    }
}

/// Lists of left and right edges; a segment without SACK blocks has an empty list.
pub(crate) struct SackColumn {
    left: UInt32Builder,
    right: UInt32Builder,
    offsets: Vec<i32>,
}

fn sack_fields() -> Fields {
    Fields::from(vec![Field::new("left", DataType::UInt32, false), Field::new("right", DataType::UInt32, false)])
}

impl SackColumn {
    /// Adds as many rows without a block.
    pub fn push_empty(&mut self, rows: usize) {
        let end = self.left.len() as i32;
        self.offsets.extend(std::iter::repeat_n(end, rows));
    }
}

impl Cell for SackList {
    type Builder = SackColumn;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new_list_field(DataType::Struct(sack_fields()), false)))
    }
}

impl CellBuilder<SackList> for SackColumn {
    fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { left: UInt32Builder::new(), right: UInt32Builder::new(), offsets }
    }
    #[inline]
    fn push(&mut self, value: &SackList) {
        for (left, right) in value.blocks.iter().take(usize::from(value.count)) {
            self.left.append_value(*left);
            self.right.append_value(*right);
        }
        self.offsets.push(self.left.len() as i32);
    }
    fn finish(mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![Arc::new(self.left.finish()), Arc::new(self.right.finish())];
        let blocks = StructArray::new(sack_fields(), columns, None);
        let field = Arc::new(Field::new_list_field(blocks.data_type().clone(), false));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Arc::new(arrow_array::ListArray::new(field, offsets, Arc::new(blocks), None))
    }
}
