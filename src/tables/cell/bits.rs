//! Bits one after the other, 64 to a word.

use arrow_buffer::{BooleanBuffer, Buffer};

#[derive(Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// Adds the lowest `count` bits of `word`, up to 64; those above must be 0.
    #[inline]
    pub fn push_word(&mut self, word: u64, count: usize) {
        let shift = self.len % 64;
        match self.words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= word << shift;
                if shift + count > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            _ if count > 0 => self.words.push(word),
            _ => {}
        }
        self.len += count;
    }

    /// Adds the same bit `count` times.
    pub fn push_n(&mut self, bit: bool, count: usize) {
        let mut left = count;
        while left > 0 {
            let now = left.min(64);
            self.push_word(if bit { u64::MAX >> (64 - now) } else { 0 }, now);
            left -= now;
        }
    }

    pub fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_follow_each_other() {
        let mut bits = Bits::default();
        let mut expected = Vec::new();
        for (at, count) in [1, 63, 64, 0, 5, 64, 60, 3, 64, 64, 17].into_iter().enumerate() {
            let word = 0x9e37_79b9_7f4a_7c15_u64.rotate_left(at as u32 * 7) & (1_u64 << count.min(63)).wrapping_sub(1);
            bits.push_word(word, count);
            expected.extend((0..count).map(|bit| word >> bit & 1 == 1));
            bits.push_n(at % 2 == 0, at * 11);
            expected.extend(std::iter::repeat_n(at % 2 == 0, at * 11));
        }
        assert_eq!(bits.finish().iter().collect::<Vec<_>>(), expected);
    }
}
