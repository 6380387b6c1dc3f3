//! What a cell of a row may be, and how cells of each kind become an Arrow array.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, ListBuilder, PrimitiveBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, Int32Array, PrimitiveArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::wire::{Ip, Mac};

/// A value that a column can hold.
pub(crate) trait Cell: Sized {
    type Builder: CellBuilder<Self>;
    const NULLABLE: bool;
    fn data_type() -> DataType;
}

pub(crate) trait CellBuilder<T>: Send {
    fn with_capacity(rows: usize) -> Self;
    fn push(&mut self, value: &T);
    fn finish(self) -> ArrayRef;
}

/// Capture time; the column's type is timestamp[ns, UTC].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeNs(pub i64);

/// One word of a fixed set, as a dictionary entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol(pub &'static str);

/// A set of named bits, shown as the names joined by commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameSet {
    pub bits: u32,
    pub names: &'static [&'static str],
}

/// SACK blocks of a segment: up to four of left and right edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackList {
    pub blocks: [(u32, u32); 4],
    pub count: u8,
}

/// Frame numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameList(pub Vec<u64>);

// ---- numbers

/// Values without gaps: a plain list that becomes the array's buffer.
pub(crate) struct Plain<A: ArrowPrimitiveType> {
    values: Vec<A::Native>,
}

/// Values with gaps.
pub(crate) struct Gapped<A: ArrowPrimitiveType> {
    values: Vec<A::Native>,
    valid: NullBufferBuilder,
}

impl<A: ArrowPrimitiveType> Gapped<A> {
    fn new(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), valid: NullBufferBuilder::new(rows) }
    }

    #[inline]
    fn put(&mut self, value: Option<A::Native>) {
        match value {
            Some(value) => {
                self.values.push(value);
                self.valid.append_non_null();
            }
            None => {
                self.values.push(A::Native::default());
                self.valid.append_null();
            }
        }
    }

    fn array(mut self) -> PrimitiveArray<A> {
        PrimitiveArray::new(ScalarBuffer::from(self.values), self.valid.finish())
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
            fn finish(self) -> ArrayRef { Arc::new(self.array()) }
        }
    )*};
}

number_cell!(
    u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type, i64 => Int64Type, f64 => Float64Type
);

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

impl Cell for Option<TimeNs> {
    type Builder = Gapped<TimestampNanosecondType>;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        time_type()
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
    fn finish(self) -> ArrayRef {
        Arc::new(self.array().with_timezone("UTC"))
    }
}

impl Cell for bool {
    type Builder = BooleanBuilder;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Boolean
    }
}

impl CellBuilder<bool> for BooleanBuilder {
    fn with_capacity(rows: usize) -> Self {
        BooleanBuilder::with_capacity(rows)
    }
    #[inline]
    fn push(&mut self, value: &bool) {
        self.append_value(*value);
    }
    fn finish(mut self) -> ArrayRef {
        Arc::new(BooleanBuilder::finish(&mut self))
    }
}

/// A truth that may not be known.
pub(crate) struct Truths(BooleanBuilder);

impl Cell for Option<bool> {
    type Builder = Truths;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Boolean
    }
}

impl CellBuilder<Option<bool>> for Truths {
    fn with_capacity(rows: usize) -> Self {
        Self(BooleanBuilder::with_capacity(rows))
    }
    fn push(&mut self, value: &Option<bool>) {
        self.0.append_option(*value);
    }
    fn finish(mut self) -> ArrayRef {
        Arc::new(BooleanBuilder::finish(&mut self.0))
    }
}

// ---- dictionaries

fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Distinct values in the order they came, each formatted once.
pub(crate) struct Distinct<K> {
    keys: Vec<i32>,
    valid: NullBufferBuilder,
    values: Vec<K>,
    index: HashTable<i32>,
    hasher: DefaultHashBuilder,
    last: Option<(K, i32)>,
}

impl<K: Copy + Eq + Hash> Distinct<K> {
    fn new(rows: usize) -> Self {
        Self {
            keys: Vec::with_capacity(rows),
            valid: NullBufferBuilder::new(rows),
            values: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            last: None,
        }
    }

    #[inline]
    fn put(&mut self, value: Option<K>) {
        let Some(value) = value else {
            self.keys.push(0);
            self.valid.append_null();
            return;
        };
        // Neighbouring rows often agree.
        let key = match self.last {
            Some((last, key)) if last == value => key,
            _ => self.key_of(value),
        };
        self.keys.push(key);
        self.valid.append_non_null();
    }

    fn key_of(&mut self, value: K) -> i32 {
        let hash = self.hasher.hash_one(value);
        let values = &self.values;
        let key = match self.index.find(hash, |&at| values[at as usize] == value) {
            Some(&key) => key,
            None => {
                let key = self.values.len() as i32;
                self.values.push(value);
                let (values, hasher) = (&self.values, &self.hasher);
                self.index.insert_unique(hash, key, |&at| hasher.hash_one(values[at as usize]));
                key
            }
        };
        self.last = Some((value, key));
        key
    }

    fn array(mut self, text: impl Fn(&K, &mut String)) -> ArrayRef {
        let mut words = StringBuilder::with_capacity(self.values.len(), self.values.len() * 16);
        let mut word = String::new();
        for value in &self.values {
            word.clear();
            text(value, &mut word);
            words.append_value(&word);
        }
        let keys = Int32Array::new(ScalarBuffer::from(self.keys), self.valid.finish());
        dictionary(keys, Arc::new(words.finish()))
    }
}

fn dictionary(keys: Int32Array, words: ArrayRef) -> ArrayRef {
    // Every key was given out by the same builder as the words, so the array is valid as made.
    Arc::new(
        DictionaryArray::<Int32Type>::try_new(keys, words)
            .unwrap_or_else(|_| DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<Option<&str>>())),
    )
}

macro_rules! dictionary_cell {
    ($cell:ty, $key:ty, $nullable:expr, |$value:ident| $get:expr, |$shown:ident, $word:ident| $show:expr) => {
        impl Cell for $cell {
            type Builder = Distinct<$key>;
            const NULLABLE: bool = $nullable;
            fn data_type() -> DataType {
                dictionary_type()
            }
        }
        impl CellBuilder<$cell> for Distinct<$key> {
            fn with_capacity(rows: usize) -> Self {
                Self::new(rows)
            }
            #[inline]
            fn push(&mut self, $value: &$cell) {
                self.put($get);
            }
            fn finish(self) -> ArrayRef {
                self.array(|$shown, $word| $show)
            }
        }
    };
}

use std::fmt::Write as _;

dictionary_cell!(Ip, Ip, true, |ip| (!ip.is_none()).then_some(*ip), |ip, word| {
    let _ = write!(word, "{ip}");
});
dictionary_cell!(Option<Mac>, Mac, true, |mac| *mac, |mac, word| {
    let _ = write!(word, "{mac}");
});
dictionary_cell!(Option<Symbol>, &'static str, true, |symbol| symbol.map(|s| s.0), |text, word| word.push_str(text));

dictionary_cell!(
    Option<NameSet>,
    (u32, &'static [&'static str]),
    true,
    |set| set.map(|s| (s.bits, s.names)),
    |set, word| {
        let (bits, names) = *set;
        let present = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
        for (at, name) in present.enumerate() {
            if at > 0 {
                word.push(',');
            }
            word.push_str(name);
        }
    }
);

/// A word that is never missing: its column is not nullable.
pub(crate) struct Words(Distinct<&'static str>);

impl Cell for Symbol {
    type Builder = Words;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        dictionary_type()
    }
}

impl CellBuilder<Symbol> for Words {
    fn with_capacity(rows: usize) -> Self {
        Self(Distinct::new(rows))
    }
    #[inline]
    fn push(&mut self, value: &Symbol) {
        self.0.put(Some(value.0));
    }
    fn finish(self) -> ArrayRef {
        self.0.array(|text, word| word.push_str(text))
    }
}

// ---- text and lists

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

use arrow_array::builder::ArrayBuilder as _;
