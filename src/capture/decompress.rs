//! Compressed input: gzip, zstd, lz4 and xz behind one `Read`, with a stated limit on how much it may grow.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sniff::Compression;
use crate::options::Limits;

/// Decompresses `stored` with at most about `decoder_bytes` of memory. Reading past the limits of `limits` ends with an error of kind `FileTooLarge`.
pub(crate) fn decompressor(
    compression: Compression,
    stored: Box<dyn Read + Send>,
    stored_bytes: Arc<AtomicU64>,
    limits: &Limits,
    decoder_bytes: u64,
) -> io::Result<Box<dyn Read + Send>> {
    let stored = BufReader::with_capacity(64 << 10, stored);
    let inner: Box<dyn Read + Send> = match compression {
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(stored)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
            // The window is memory that the file asks for; 2^27 bytes is what `zstd --long=27` writes.
            decoder.window_log_max((decoder_bytes / 2).max(1 << 20).ilog2().min(27))?;
            Box::new(decoder)
        }
        Compression::Lz4 => Box::new(Lz4Frames { inner: lz4_flex::frame::FrameDecoder::new(stored) }),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_auto_decoder(decoder_bytes, liblzma::stream::CONCATENATED)
                .map_err(io::Error::other)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(stored, stream))
        }
    };
    Ok(Box::new(Bounded {
        inner,
        stored_bytes,
        produced: 0,
        ratio: limits.decompress_ratio,
        free_bytes: limits.decompress_free_bytes,
    }))
}

/// Several lz4 frames, one after the other, are one content; the decoder stops after each.
struct Lz4Frames<R: BufRead> {
    inner: lz4_flex::frame::FrameDecoder<R>,
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.inner.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.inner.get_mut().fill_buf()?.is_empty() {
                return Ok(read);
            }
        }
    }
}

/// Counts what was read of the stored bytes.
pub(crate) struct Counted<R> {
    pub inner: R,
    pub count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Stops a decompression bomb.
struct Bounded {
    inner: Box<dyn Read + Send>,
    stored_bytes: Arc<AtomicU64>,
    produced: u64,
    ratio: u64,
    free_bytes: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.stored_bytes.load(Ordering::Relaxed).saturating_mul(self.ratio).max(self.free_bytes);
        if self.produced > allowed {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "decompressed size over the limit"));
        }
        let read = self.inner.read(buffer)?;
        self.produced += read as u64;
        Ok(read)
    }
}
