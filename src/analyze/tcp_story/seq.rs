//! Sequence numbers on their circle of 2^32 (RFC 9293 section 3.4).

/// Whether `a` comes before `b`.
pub fn before(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) > 0
}

/// Bytes from `a` up to `b`; 0 where `b` is not after `a`.
pub fn bytes_between(a: u32, b: u32) -> u32 {
    if before(a, b) { b.wrapping_sub(a) } else { 0 }
}
