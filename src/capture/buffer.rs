//! Where the bytes of a window live.

use std::ops::Deref;

/// A stretch of input that records point into.
#[derive(Debug)]
pub struct Buffer {
    /// The rest behind `filled` is kept so that a re-used list is not cleared again.
    pub bytes: Vec<u8>,
    pub filled: usize,
}

impl Buffer {
    pub fn owned(bytes: Vec<u8>) -> Self {
        let filled = bytes.len();
        Self { bytes, filled }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or(&[])
    }
}
