//! Numbers from a seed, for tests that take many shapes.

pub(in crate::backend::cpu) struct Seed(pub u64);

impl Seed {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    pub fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Multiples of 1/8, which all types have, so that sums of some hundred products are exact in float32.
    pub fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| (self.below(17) as f64 - 8.0) / 8.0).collect()
    }
}
