//! The state of a connection that is quiet, packed into a few hundred bytes: nearly all of its numbers are small or nothing,
//! and its lists are short. Unpacked it is what it was, so that the connection may go on any time.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// Packs a state into `scratch`. `None` where that cannot be done, and the state must stay as it is.
pub(crate) fn freeze<'a, T: Serialize>(state: &T, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    scratch.clear();
    postcard::serialize_with_flavor(state, Packing(scratch)).ok()?;
    Some(scratch)
}

/// Takes in numbers a few bytes at a time, of which a state has hundreds: each is too short for a call that copies memory.
struct Packing<'a>(&'a mut Vec<u8>);

/// A number takes no more.
const SHORT_BYTES: usize = 10;

impl postcard::ser_flavors::Flavor for Packing<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if bytes.len() <= SHORT_BYTES {
            bytes.iter().for_each(|byte| self.0.push(*byte));
        } else {
            self.0.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Unpacks a state that [`freeze`] packed.
pub(crate) fn thaw<T: DeserializeOwned>(frozen: &[u8]) -> Option<T> {
    postcard::from_bytes(frozen).ok()
}

/// Unpacks the first fields of a state that [`freeze`] packed: those of `T` in its order.
pub(crate) fn thaw_start<T: DeserializeOwned>(frozen: &[u8]) -> Option<T> {
    postcard::take_from_bytes(frozen).ok().map(|(start, _)| start)
}

/// A word in a state. Under a name of its own, or serde takes it for something borrowed from what is unpacked.
pub(crate) type StateWord = &'static str;

/// Words that a state may hold.
const WORDS: [&str; 38] = [
    "abort",
    "acknowledged",
    "after_close",
    "application",
    "ce",
    "complete",
    "cwr",
    "data",
    "dup_ack",
    "ece",
    "ece_stopped",
    "fast",
    "fin",
    "gave_up",
    "half_open",
    "idle",
    "leveled",
    "loss",
    "no_answer",
    "none",
    "not_captured",
    "pmtu",
    "probe",
    "refused",
    "reset",
    "rst",
    "sack",
    "slow_start",
    "spurious",
    "syn",
    "synack",
    "test_end",
    "timeout",
    "unfinished",
    "unknown",
    "unreachable",
    "window",
    "window_update",
];

/// Stands for the words by their places in [`WORDS`]; a state with another word is not packed.
pub(crate) mod word {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::WORDS;

    pub fn serialize<S: Serializer>(word: &&'static str, to: S) -> Result<S::Ok, S::Error> {
        let place = WORDS.iter().position(|known| known == word);
        to.serialize_u8(place.ok_or_else(|| S::Error::custom("not among the words"))? as u8)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
        let place = u8::deserialize(from)?;
        WORDS.get(usize::from(place)).copied().ok_or_else(|| D::Error::custom("not among the words"))
    }
}

/// The same where there may be none.
pub(crate) mod maybe_word {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::StateWord;

    #[derive(Serialize, Deserialize)]
    struct Word(#[serde(with = "super::word")] StateWord);

    pub fn serialize<S: Serializer>(word: &Option<&'static str>, to: S) -> Result<S::Ok, S::Error> {
        word.map(Word).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
        Ok(Option::<Word>::deserialize(from)?.map(|word| word.0))
    }
}

/// Packs counts of which most are 0: only the others, each with its place.
fn pack_counts<S: Serializer>(counts: &[u64], to: S) -> Result<S::Ok, S::Error> {
    let others = || (0_u8..=u8::MAX).zip(counts).filter(|(_, count)| **count != 0);
    let mut list = to.serialize_seq(Some(others().count()))?;
    others().try_for_each(|place| list.serialize_element(&place))?;
    list.end()
}

fn unpack_counts<'de, D: Deserializer<'de>>(counts: &mut [u64], from: D) -> Result<(), D::Error> {
    for (place, count) in SmallVec::<[(u8, u64); 8]>::deserialize(from)? {
        let known = counts.get_mut(usize::from(place));
        *known.ok_or_else(|| D::Error::custom("not among the kinds"))? = count;
    }
    Ok(())
}

/// Counts by kind.
pub(crate) mod counts {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer, const N: usize>(counts: &[u64; N], to: S) -> Result<S::Ok, S::Error> {
        super::pack_counts(counts, to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(from: D) -> Result<[u64; N], D::Error> {
        let mut counts = [0; N];
        super::unpack_counts(&mut counts, from)?;
        Ok(counts)
    }
}

/// The same of counts by two kinds.
pub(crate) mod counts_by_two {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer, const M: usize, const N: usize>(
        counts: &[[u64; N]; M],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::pack_counts(counts.as_flattened(), to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const M: usize, const N: usize>(
        from: D,
    ) -> Result<[[u64; N]; M], D::Error> {
        let mut counts = [[0; N]; M];
        super::unpack_counts(counts.as_flattened_mut(), from)?;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Counted {
        #[serde(with = "super::counts")]
        few: [u64; 5],
        #[serde(with = "super::counts_by_two")]
        by_two: [[u64; 3]; 2],
    }

    #[test]
    fn counts_are_what_they_were_and_noughts_take_no_room() {
        let none = Counted::default();
        let some = Counted { few: [0, 7, 0, 0, u64::MAX], by_two: [[0, 0, 1], [300, 0, 0]] };
        let mut scratch = Vec::new();
        for counted in [&none, &some] {
            let packed = super::freeze(counted, &mut scratch).unwrap();
            assert_eq!(super::thaw::<Counted>(packed).as_ref(), Some(counted));
        }
        assert_eq!(super::freeze(&none, &mut scratch).map(<[u8]>::len), Some(2));
        assert_eq!(super::thaw::<Counted>(&[1, 5, 1, 0]), None, "there is no fifth place");
    }
}
