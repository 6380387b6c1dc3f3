//! Columns of which many rows say the same: dictionaries of texts.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array};
use arrow_schema::DataType;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::numbers::Keys;
use super::{Cell, CellBuilder, Gaps, NameSet, Symbol};
use crate::wire::{Ip, Mac};

fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Distinct values in the order they came, each formatted once.
pub(crate) struct Distinct<K> {
    keys: Keys,
    names: Names<K>,
}

/// What a value is told by at a glance; others may share it.
pub(crate) trait Glance {
    fn glance(&self) -> u64;
}

/// Values that lately came are known without a search: a power of two.
const LATELY: usize = 128;

/// What is in a dictionary so far.
struct Names<K> {
    values: Vec<K>,
    /// Of the first `indexed` values; the others came with numbers, and were not searched for since.
    index: HashTable<i32>,
    indexed: usize,
    hasher: DefaultHashBuilder,
    /// By glance.
    lately: Vec<Option<(K, i32)>>,
    /// One more than the key, by the number that the caller has for a value; 0 where it was not met yet.
    by_number: Vec<u32>,
}

/// Larger numbers are not kept: the list is made anew for each dictionary.
const MOST_NUMBERS: u32 = 1 << 17;

impl<K: Copy + Eq + Hash + Glance> Names<K> {
    #[inline]
    fn key_of(&mut self, value: K) -> i32 {
        let at = (value.glance().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (LATELY - 1);
        match self.lately.get(at) {
            Some(Some((last, key))) if *last == value => *key,
            _ => self.find(value, at),
        }
    }

    /// `number` and this value stand for each other, but for numbers from [`MOST_NUMBERS`] on.
    #[inline]
    fn key_by_number(&mut self, number: u32, value: K) -> i32 {
        if number >= MOST_NUMBERS {
            return self.key_of(value);
        }
        let number = number as usize;
        if let Some(known) = self.by_number.get(number).and_then(|key| key.checked_sub(1)) {
            debug_assert!(self.values.get(known as usize) == Some(&value), "a number stands for one value");
            return known as i32;
        }
        // Nothing came without its number yet: the value is not there.
        let key = if self.indexed == 0 { self.add(value) } else { self.key_of(value) };
        if self.by_number.len() <= number {
            self.by_number.resize((number + 1).next_power_of_two(), 0);
        }
        self.by_number[number] = key as u32 + 1;
        key
    }

    fn add(&mut self, value: K) -> i32 {
        self.values.push(value);
        self.values.len() as i32 - 1
    }

    fn find(&mut self, value: K, at: usize) -> i32 {
        let (values, hasher) = (&self.values, &self.hasher);
        for (key, value) in values.iter().enumerate().skip(self.indexed) {
            self.index.insert_unique(hasher.hash_one(value), key as i32, |&at| hasher.hash_one(values[at as usize]));
        }
        let hash = self.hasher.hash_one(value);
        let values = &self.values;
        let key = match self.index.find(hash, |&at| values[at as usize] == value) {
            Some(&key) => key,
            None => {
                let key = self.add(value);
                let (values, hasher) = (&self.values, &self.hasher);
                self.index.insert_unique(hash, key, |&at| hasher.hash_one(values[at as usize]));
                key
            }
        };
        self.indexed = self.values.len();
        if self.lately.is_empty() {
            self.lately.resize(LATELY, None);
        }
        self.lately[at] = Some((value, key));
        key
    }
}

impl<K: Copy + Eq + Hash + Glance> Distinct<K> {
    fn new(rows: usize) -> Self {
        let names = Names {
            values: Vec::new(),
            index: HashTable::new(),
            indexed: 0,
            hasher: DefaultHashBuilder::default(),
            lately: Vec::new(),
            by_number: Vec::new(),
        };
        Self { keys: Keys::new(rows), names }
    }

    #[inline]
    fn put(&mut self, value: Option<K>) {
        let key = value.map(|value| self.names.key_of(value));
        self.keys.put(key);
    }

    #[inline]
    fn put_all(&mut self, values: impl Iterator<Item = Option<K>>) {
        let Self { keys, names } = self;
        keys.put_all(values.map(|value| value.map(|value| names.key_of(value))));
    }

    fn array(self, text: impl Fn(&K, &mut String)) -> ArrayRef {
        let mut words = StringBuilder::with_capacity(self.names.values.len(), self.names.values.len() * 16);
        let mut word = String::new();
        for value in &self.names.values {
            word.clear();
            text(value, &mut word);
            words.append_value(&word);
        }
        dictionary(self.keys.array(), Arc::new(words.finish()))
    }
}

impl<K: Copy + Eq + Hash + Glance> Distinct<K> {
    /// Adds a value for each row, with a number that always stands for it and for no other: found by it, nothing is searched
    /// for. [`u32::MAX`] for a value without a number.
    #[inline]
    pub fn extend_numbered(&mut self, values: impl Iterator<Item = (u32, Option<K>)>) {
        let Self { keys, names } = self;
        keys.put_all(values.map(|(number, value)| value.map(|value| names.key_by_number(number, value))));
    }
}

impl<K: Copy + Eq + Hash + Glance> Gaps for Distinct<K> {
    fn push_gaps(&mut self, rows: usize) {
        self.keys.push_gaps(rows);
    }
}

/// A word that is known by where it lies: the same place is the same word, without a look at its letters.
#[derive(Clone, Copy)]
pub(crate) struct Word(&'static str);

impl PartialEq for Word {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.0 == other.0
    }
}

impl Eq for Word {}

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Glance for Ip {
    #[inline]
    fn glance(&self) -> u64 {
        let (high, low) = self.words();
        high ^ low.rotate_left(29)
    }
}

impl Glance for Mac {
    #[inline]
    fn glance(&self) -> u64 {
        let Self([a, b, c, d, e, f]) = *self;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }
}

impl Glance for Word {
    #[inline]
    fn glance(&self) -> u64 {
        self.0.as_ptr().addr() as u64
    }
}

/// A column's names are always the same ones: known by where their list lies, without a look at them.
impl PartialEq for NameSet {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits && (std::ptr::eq(self.names, other.names) || self.names == other.names)
    }
}

impl Eq for NameSet {}

impl Hash for NameSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits.hash(state);
    }
}

impl Glance for NameSet {
    #[inline]
    fn glance(&self) -> u64 {
        u64::from(self.bits)
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
            #[inline]
            fn extend(&mut self, values: impl Iterator<Item = $cell>) {
                self.put_all(values.map(|value| {
                    let $value = &value;
                    $get
                }));
            }
            fn finish(self) -> ArrayRef {
                self.array(|$shown, $word| $show)
            }
        }
    };
}

dictionary_cell!(Ip, Ip, true, |ip| (!ip.is_none()).then_some(*ip), |ip, word| ip.push_to(word));
dictionary_cell!(Option<Mac>, Mac, true, |mac| *mac, |mac, word| mac.push_to(word));
dictionary_cell!(Option<Symbol>, Word, true, |symbol| symbol.map(|s| Word(s.0)), |text, word| word.push_str(text.0));

dictionary_cell!(Option<NameSet>, NameSet, true, |set| *set, |set, word| {
    let NameSet { bits, names } = *set;
    let present = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
    for (at, name) in present.enumerate() {
        if at > 0 {
            word.push(',');
        }
        word.push_str(name);
    }
});

/// A word that is never missing: its column is not nullable.
pub(crate) struct Words(Distinct<Word>);

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
        self.0.put(Some(Word(value.0)));
    }
    #[inline]
    fn extend(&mut self, values: impl Iterator<Item = Symbol>) {
        self.0.put_all(values.map(|value| Some(Word(value.0))));
    }
    fn finish(self) -> ArrayRef {
        self.0.array(|text, word| word.push_str(text.0))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;

    use super::*;

    /// What each row says.
    fn rows(column: Distinct<Ip>) -> (Vec<Option<String>>, usize) {
        let array = CellBuilder::<Ip>::finish(column);
        let array = array.as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap();
        let words = array.downcast_dict::<StringArray>().unwrap();
        (words.into_iter().map(|word| word.map(str::to_owned)).collect(), array.values().len())
    }

    #[test]
    fn values_with_and_without_numbers_share_one_dictionary() {
        let ip = |last| Ip::v4([10, 0, 0, last]);
        let text = |last: u8| Some(format!("10.0.0.{last}"));
        let mut column = Distinct::<Ip>::new(16);
        // By number, then the same and others by search, then again by number, also of those that were searched for.
        column.extend_numbered([(5, Some(ip(1))), (9, Some(ip(2))), (5, Some(ip(1)))].into_iter());
        column.extend_numbered([(u32::MAX, Some(ip(1))), (u32::MAX, Some(ip(3))), (u32::MAX, None)].into_iter());
        column.extend_numbered([(9, Some(ip(2))), (3, Some(ip(3))), (MOST_NUMBERS, Some(ip(4)))].into_iter());
        column.extend_numbered([(3, Some(ip(3))), (MOST_NUMBERS, Some(ip(4))), (5, Some(ip(1)))].into_iter());
        let (told, words) = rows(column);
        assert_eq!(words, 4, "every value once");
        let expected = [1, 2, 1, 1, 3, 0, 2, 3, 4, 3, 4, 1].map(|last| if last == 0 { None } else { text(last) });
        assert_eq!(told, expected);
    }
}
