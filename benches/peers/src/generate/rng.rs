//! Seeded random numbers (SplitMix64, Steele, Lea and Flood 2014): small, fast, equal everywhere.

#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// An independent stream for each `(seed, lane)`.
    pub fn new(seed: u64, lane: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ lane.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.next_u64();
        rng
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    pub fn next_u16(&mut self) -> u16 {
        (self.next_u64() >> 48) as u16
    }

    /// A number in `0..limit`; the bias of the multiply method is far below anything a capture shows.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// True `count` times in a million.
    pub fn per_million(&mut self, count: u64) -> bool {
        self.below(1_000_000) < count
    }
}
