//! Payload bytes: words of a made-up vocabulary, so that compressors find about as much as in logs and text.

use super::rng::Rng;

/// Longer than the windows of gzip and of zstd's usual levels: they find words again, not the pool.
const POOL_LEN: usize = 16 * 1024 * 1024 - 3;
/// Longest slice handed out in one piece.
const MAX_SLICE: usize = 16 * 1024;
const WORDS: u64 = 4096;

pub(crate) struct Payload {
    pool: Vec<u8>,
}

impl Payload {
    pub fn new(seed: u64) -> Self {
        Self::with_len(seed, POOL_LEN)
    }

    pub fn with_len(seed: u64, pool_len: usize) -> Self {
        let mut rng = Rng::new(seed, 0x7061_796c);
        let vocabulary: Vec<Vec<u8>> = (0..WORDS)
            .map(|_| {
                let len = 3 + rng.below(8);
                (0..len).map(|_| b'a' + rng.below(26) as u8).chain(std::iter::once(b' ')).collect()
            })
            .collect();
        let mut pool = Vec::with_capacity(pool_len + MAX_SLICE);
        while pool.len() < pool_len {
            // The smaller of two draws: frequent and rare words, as in a language.
            let word = rng.below(WORDS).min(rng.below(WORDS)) as usize;
            pool.extend_from_slice(&vocabulary[word]);
        }
        pool.truncate(pool_len);
        pool.extend_from_within(..MAX_SLICE);
        Self { pool }
    }

    /// The `len` bytes at `offset` of an endless stream: a resent segment carries what the first one did.
    pub fn at(&self, offset: u64, len: usize) -> &[u8] {
        let start = (offset % (self.pool.len() - MAX_SLICE) as u64) as usize;
        &self.pool[start..start + len]
    }
}
