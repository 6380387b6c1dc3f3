//! Columns of numbers, times and truths.

use std::sync::Arc;

use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::bits::Bits;
use super::{Cell, CellBuilder, Gaps, TimeNs};

/// Cells that are taken in together: those of one word of bits.
pub(crate) const BLOCK: usize = 64;

/// Whether the cells to come are surely so few. Where the compiler knows their number as well (a slice's, mapped), taking
/// them in is one loop that looks at nothing but them.
#[inline]
fn is_one_word(values: &impl Iterator) -> bool {
    values.size_hint().1.is_some_and(|most| most <= BLOCK)
}

/// Values without gaps: a plain list that becomes the array's buffer.
pub(crate) struct Plain<A: ArrowPrimitiveType> {
    values: Vec<A::Native>,
}

/// Values with gaps. While all rows are gaps nothing but their number is kept, and while none is, no bits are.
pub(crate) struct Gapped<A: ArrowPrimitiveType> {
    /// Of every row, gaps too; empty while all rows are gaps.
    values: Vec<A::Native>,
    /// Of every row, once there are both gaps and values.
    valid: Bits,
    rows: usize,
    gaps: usize,
    capacity: usize,
}

impl<A: ArrowPrimitiveType> Gapped<A> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { values: Vec::new(), valid: Bits::default(), rows: 0, gaps: 0, capacity }
    }

    pub(super) fn put(&mut self, value: Option<A::Native>) {
        if value.is_none() && self.values.is_empty() {
            self.rows += 1;
            self.gaps += 1;
            return;
        }
        self.make_values();
        self.values.push(value.unwrap_or_default());
        self.note(u64::from(value.is_some()), 1);
    }

    #[inline]
    pub(super) fn put_all(&mut self, values: impl Iterator<Item = Option<A::Native>>) {
        let mut values = values;
        while self.values.is_empty() {
            let Some(value) = values.next() else { return };
            self.put(value);
        }
        if is_one_word(&values) {
            let (before, mut word, mut bit) = (self.values.len(), 0_u64, 1_u64);
            self.values.extend(values.map(|value| {
                word |= if value.is_some() { bit } else { 0 };
                bit <<= 1;
                value.unwrap_or_default()
            }));
            self.note(word, self.values.len() - before);
            return;
        }
        loop {
            let (mut block, mut word, mut count) = ([A::Native::default(); BLOCK], 0_u64, 0);
            for (place, value) in block.iter_mut().zip(&mut values) {
                *place = value.unwrap_or_default();
                word |= u64::from(value.is_some()) << count;
                count += 1;
            }
            self.values.extend_from_slice(block.get(..count).unwrap_or(&block));
            self.note(word, count);
            if count < BLOCK {
                return;
            }
        }
    }

    /// Takes note of which of the next `count` rows have a value; the values are there already.
    fn note(&mut self, word: u64, count: usize) {
        let gaps = count - word.count_ones() as usize;
        if self.gaps + gaps > 0 {
            if self.gaps == 0 {
                self.valid.push_n(true, self.rows);
            }
            self.valid.push_word(word, count);
        }
        self.gaps += gaps;
        self.rows += count;
    }

    /// Gives the gaps so far their place among the values.
    fn make_values(&mut self) {
        if self.values.is_empty() {
            self.values.reserve(self.capacity.max(self.rows));
            self.values.resize(self.rows, A::Native::default());
            self.valid.push_n(false, self.rows);
        }
    }

    pub(super) fn array(self) -> PrimitiveArray<A> {
        if self.rows == self.gaps {
            let nulls = (self.rows > 0).then(|| NullBuffer::new_null(self.rows));
            return PrimitiveArray::new(ScalarBuffer::from(vec![A::Native::default(); self.rows]), nulls);
        }
        let nulls = (self.gaps > 0).then(|| NullBuffer::new(self.valid.finish()));
        PrimitiveArray::new(ScalarBuffer::from(self.values), nulls)
    }
}

impl<A: ArrowPrimitiveType> Gaps for Gapped<A> {
    fn push_gaps(&mut self, rows: usize) {
        if self.values.is_empty() {
            self.rows += rows;
            self.gaps += rows;
            return;
        }
        self.values.resize(self.rows + rows, A::Native::default());
        if self.gaps == 0 && rows > 0 {
            self.valid.push_n(true, self.rows);
        }
        self.valid.push_n(false, rows);
        self.rows += rows;
        self.gaps += rows;
    }
}

macro_rules! number_cell {
    ($($native:ty => $arrow:ty),*) => {$(
        impl Cell for $native {
            type Builder = Plain<$arrow>;
            const NULLABLE: bool = false;
            fn data_type() -> DataType { <$arrow>::DATA_TYPE }
        }
        impl CellBuilder<$native> for Plain<$arrow> {
            fn with_capacity(rows: usize) -> Self { Self { values: Vec::with_capacity(rows) } }
            #[inline]
            fn push(&mut self, value: &$native) { self.values.push(*value); }
            #[inline]
            fn extend(&mut self, values: impl Iterator<Item = $native>) { self.values.extend(values); }
            fn finish(self) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::new(ScalarBuffer::from(self.values), None))
            }
        }
        impl Cell for Option<$native> {
            type Builder = Gapped<$arrow>;
            const NULLABLE: bool = true;
            fn data_type() -> DataType { <$arrow>::DATA_TYPE }
        }
        impl CellBuilder<Option<$native>> for Gapped<$arrow> {
            fn with_capacity(rows: usize) -> Self { Self::new(rows) }
            #[inline]
            fn push(&mut self, value: &Option<$native>) { self.put(*value); }
            #[inline]
            fn extend(&mut self, values: impl Iterator<Item = Option<$native>>) { self.put_all(values); }
            fn finish(self) -> ArrayRef { Arc::new(self.array()) }
        }
    )*};
}

number_cell!(
    u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type, i64 => Int64Type, f64 => Float64Type
);

/// Keys into a dictionary.
pub(super) type Keys = Gapped<Int32Type>;

impl Cell for Option<TimeNs> {
    type Builder = Gapped<TimestampNanosecondType>;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
    }
}

impl CellBuilder<Option<TimeNs>> for Gapped<TimestampNanosecondType> {
    fn with_capacity(rows: usize) -> Self {
        Self::new(rows)
    }
    #[inline]
    fn push(&mut self, value: &Option<TimeNs>) {
        self.put(value.map(|time| time.0));
    }
    #[inline]
    fn extend(&mut self, values: impl Iterator<Item = Option<TimeNs>>) {
        self.put_all(values.map(|value| value.map(|time| time.0)));
    }
    fn finish(self) -> ArrayRef {
        Arc::new(self.array().with_timezone("UTC"))
    }
}

/// Yes or no in every row.
#[derive(Default)]
pub(crate) struct YesNo(Bits);

impl YesNo {
    /// Adds as many rows that all say no.
    pub fn push_no(&mut self, rows: usize) {
        self.0.push_n(false, rows);
    }
}

impl Cell for bool {
    type Builder = YesNo;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Boolean
    }
}

impl CellBuilder<bool> for YesNo {
    fn with_capacity(_rows: usize) -> Self {
        Self::default()
    }
    #[inline]
    fn push(&mut self, value: &bool) {
        self.0.push_word(u64::from(*value), 1);
    }
    #[inline]
    fn extend(&mut self, values: impl Iterator<Item = bool>) {
        let mut values = values;
        if is_one_word(&values) {
            let (mut word, mut count) = (0_u64, 0);
            values.for_each(|value| {
                word |= u64::from(value) << count;
                count += 1;
            });
            self.0.push_word(word, count);
            return;
        }
        loop {
            let (mut word, mut count) = (0_u64, 0);
            for value in values.by_ref().take(BLOCK) {
                word |= u64::from(value) << count;
                count += 1;
            }
            self.0.push_word(word, count);
            if count < BLOCK {
                return;
            }
        }
    }
    fn finish(self) -> ArrayRef {
        Arc::new(BooleanArray::new(self.0.finish(), None))
    }
}

/// A truth that may not be known.
#[derive(Default)]
pub(crate) struct Truths {
    values: Bits,
    valid: Bits,
}

impl Cell for Option<bool> {
    type Builder = Truths;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Boolean
    }
}

impl CellBuilder<Option<bool>> for Truths {
    fn with_capacity(_rows: usize) -> Self {
        Self::default()
    }
    fn push(&mut self, value: &Option<bool>) {
        self.values.push_word(u64::from(*value == Some(true)), 1);
        self.valid.push_word(u64::from(value.is_some()), 1);
    }
    fn finish(self) -> ArrayRef {
        let valid = Some(NullBuffer::new(self.valid.finish())).filter(|valid| valid.null_count() > 0);
        Arc::new(BooleanArray::new(self.values.finish(), valid))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;

    /// Rows in the order of `parts`, each added by one call: a part of gaps, or of values of which every third is missing.
    fn column(parts: &[(usize, bool)]) {
        let mut builder = <Gapped<UInt32Type> as CellBuilder<Option<u32>>>::with_capacity(1_000);
        let mut expected: Vec<Option<u32>> = Vec::new();
        for (part, &(rows, has_gaps)) in parts.iter().enumerate() {
            let value = |at: usize| (!has_gaps || !at.is_multiple_of(3)).then_some((part * 1_000 + at) as u32);
            match part % 3 {
                0 => builder.extend((0..rows).map(value)),
                1 => (0..rows).for_each(|at| builder.push(&value(at))),
                _ => builder.push_gaps(rows),
            }
            expected.extend((0..rows).map(|at| if part % 3 == 2 { None } else { value(at) }));
        }
        let array = CellBuilder::<Option<u32>>::finish(builder);
        let array = array.as_primitive::<UInt32Type>();
        assert_eq!(array.iter().collect::<Vec<_>>(), expected);
        assert_eq!(array.null_count(), expected.iter().filter(|value| value.is_none()).count());
    }

    #[test]
    fn columns_have_the_gaps_they_were_given() {
        column(&[]);
        column(&[(0, true), (0, true), (700, true)]);
        column(&[(0, true), (0, true), (700, true), (64, false), (3, false), (0, true), (130, true)]);
        column(&[(300, false), (5, false), (0, false), (64, false), (64, true)]);
        column(&[(300, false), (5, false), (70, false), (64, false), (1, true), (1, true), (127, true)]);
        column(&[(1, true), (200, false), (9, true), (65, true)]);
    }
}
