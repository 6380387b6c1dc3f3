//! Sequence number arithmetic modulo 2^32 (RFC 9293 3.4), and the same idea for 16-bit IP identifications.

/// Bytes from `from` up to `to`; negative if `to` lies before `from`.
pub(super) fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

/// Whether `a` comes before `b`.
pub(super) fn before(a: u32, b: u32) -> bool {
    distance(a, b) > 0
}

/// The later of two sequence numbers.
pub(super) fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// The earlier of two sequence numbers.
pub(super) fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

/// Whether the IP identification `a` was given out before `b`, counting modulo 2^16.
pub(super) fn id_before(a: u16, b: u16) -> bool {
    (b.wrapping_sub(a) as i16) > 0
}

/// `bytes` in segments of `mss` bytes, at least one.
pub(super) fn segments_of(bytes: u32, mss: u32) -> u32 {
    bytes.div_ceil(mss.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap_at_two_to_the_32() {
        assert_eq!(distance(0xffff_fff0, 0x10), 0x20);
        assert!(before(0xffff_fff0, 0x10) && !before(0x10, 0xffff_fff0));
        assert_eq!((later(u32::MAX, 0), earlier(u32::MAX, 0)), (0, u32::MAX));
        assert!(id_before(0xffff, 0) && !id_before(0, 0xffff));
    }

    #[test]
    fn a_frame_of_any_size_is_at_least_one_segment() {
        assert_eq!([segments_of(0, 1448), segments_of(1448, 1448), segments_of(1449, 1448)], [1, 1, 2]);
        assert_eq!(segments_of(5, 0), 5);
    }
}
