//! Where the bytes of a window live: in memory of ours, or mapped from a plain file.

use std::ops::Deref;

/// A stretch of input that records point into.
#[derive(Debug)]
pub enum Buffer {
    /// Bytes that were read: the first `filled` of `bytes` hold input. The rest is kept so that a re-used list is not
    /// cleared again.
    Owned { bytes: Vec<u8>, filled: usize },
    /// A mapped stretch of a plain file; offsets count from the start of the map.
    Mapped(memmap2::Mmap),
}

impl Buffer {
    pub fn owned(bytes: Vec<u8>) -> Self {
        let filled = bytes.len();
        Self::Owned { bytes, filled }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Owned { bytes, filled } => bytes.get(..*filled).unwrap_or(&[]),
            Self::Mapped(map) => map,
        }
    }
}
