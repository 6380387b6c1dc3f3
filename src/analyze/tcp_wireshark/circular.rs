//! Sequence number comparison as Wireshark does it.
//!
//! The sign of the 32-bit difference decides. At a distance of exactly 2^31 the difference has no opposite, so both
//! "before" and "after" hold; flags of damaged captures depend on that.

/// `a` comes strictly after `b`.
pub(super) fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// `a` comes strictly before `b`.
pub(super) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// `a` is `b` or comes before it.
pub(super) fn is_at_or_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) <= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap_of_the_sequence_space() {
        assert!(is_after(5, 0xffff_fff0) && !is_before(5, 0xffff_fff0));
        assert!(is_before(0xffff_fff0, 5) && !is_after(0xffff_fff0, 5));
        assert!(is_at_or_before(7, 7) && !is_before(7, 7) && !is_after(7, 7));
    }

    #[test]
    fn half_the_circle_away_is_both_before_and_after() {
        assert!(is_after(0x8000_0000, 0) && is_before(0x8000_0000, 0));
        assert!(is_after(0, 0x8000_0000) && is_before(0, 0x8000_0000));
        assert!(is_after(0x7fff_ffff, 0) && !is_before(0x7fff_ffff, 0));
    }
}
