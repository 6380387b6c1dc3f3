//! Packet sequence numbers.

/// A packet sequence number (IBTA volume 1, 9.7.1): a point on a circle of 2^24. Deliberately not `Ord`: "before" has a
/// meaning only within 2^23.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    const MASK: u32 = 0x00ff_ffff;

    /// The number in the lower 24 bits of a header field.
    pub fn new(field: u32) -> Self {
        Self(field & Self::MASK)
    }

    pub fn get(self) -> u32 {
        self.0
    }

    /// `count` packets further on.
    pub fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count) & Self::MASK)
    }

    /// Packets from `earlier` to here: -2^23 to 2^23 - 1, negative where `earlier` is ahead.
    pub fn since(self, earlier: Self) -> i32 {
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }

    pub fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }

    /// The one further on.
    pub fn max(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    pub fn min(self, other: Self) -> Self {
        if self.is_before(other) { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_after_24_bits() {
        let last = Psn::new(0xff_ffff);
        assert_eq!(last.plus(1), Psn::new(0));
        assert_eq!((last.plus(3).since(last), last.since(last.plus(3))), (3, -3));
        assert!(last.is_before(Psn::new(5)) && !Psn::new(5).is_before(last));
        assert_eq!((last.max(Psn::new(0)), last.min(Psn::new(0))), (Psn::new(0), last));
        // A plain compare calls 0 the smaller one.
        assert!(last.get() > Psn::new(0).get());
    }

    #[test]
    fn half_the_circle_is_behind() {
        let here = Psn::new(100);
        assert_eq!(here.plus(0x7f_ffff).since(here), 0x7f_ffff);
        assert_eq!(here.plus(0x80_0000).since(here), -0x80_0000);
        assert_eq!(Psn::new(0x1234_5678).get(), 0x34_5678);
    }
}
