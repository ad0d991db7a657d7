//! Philox4x32-10, a counter-based generator: the i-th number depends on seed, stream and i alone, so any thread can compute it.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).

use super::threads::parallel_for;

const MUL: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Numbers in one piece of parallel work.
const PIECE: usize = 32 << 10;

/// Four random words for the counter `at` under the key `seed`.
#[inline(always)]
pub fn philox(seed: u64, at: u64) -> [u32; 4] {
    let mut c = [at as u32, (at >> 32) as u32, 0, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let p0 = u64::from(c[0]) * u64::from(MUL[0]);
        let p1 = u64::from(c[2]) * u64::from(MUL[1]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// In [0, 1), 24 bits.
#[inline(always)]
pub fn unit_f32(a: u32) -> f32 {
    (a >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// In [0, 1), 53 bits.
#[inline(always)]
pub fn unit_f64(a: u32, b: u32) -> f64 {
    ((u64::from(a) << 21) ^ (u64::from(b) >> 11)) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Two independent normal numbers from two in [0, 1) (Box and Muller).
#[inline(always)]
fn normal_pair(u: f64, v: f64) -> [f64; 2] {
    // 1 - u is in (0, 1], where the logarithm is finite.
    let r = (-2.0 * (-u).ln_1p()).sqrt();
    let (s, c) = (std::f64::consts::TAU * v).sin_cos();
    [r * c, r * s]
}

/// Numbers that a block of four words gives.
pub trait Draw: Copy + Send + Sync {
    /// How many numbers of this kind one block gives.
    const PER_BLOCK: usize;
}
impl Draw for f32 {
    const PER_BLOCK: usize = 4;
}
impl Draw for f64 {
    const PER_BLOCK: usize = 2;
}
impl Draw for u64 {
    const PER_BLOCK: usize = 2;
}

/// Kinds of numbers as blocks.
pub trait Block<T: Draw>: Sync {
    fn block(&self, words: [u32; 4]) -> [T; 4];
}

/// Uniform in [0, 1).
#[derive(Debug, Clone, Copy)]
pub struct Uniform;
impl Block<f32> for Uniform {
    #[inline(always)]
    fn block(&self, w: [u32; 4]) -> [f32; 4] {
        w.map(unit_f32)
    }
}
impl Block<f64> for Uniform {
    #[inline(always)]
    fn block(&self, w: [u32; 4]) -> [f64; 4] {
        [unit_f64(w[0], w[1]), unit_f64(w[2], w[3]), 0.0, 0.0]
    }
}

/// Normal with mean 0 and variance 1.
#[derive(Debug, Clone, Copy)]
pub struct Normal;
impl Block<f32> for Normal {
    #[inline(always)]
    fn block(&self, w: [u32; 4]) -> [f32; 4] {
        let unit = |a: u32| f64::from(a) * (1.0 / 4294967296.0);
        let (a, b) = (normal_pair(unit(w[0]), unit(w[1])), normal_pair(unit(w[2]), unit(w[3])));
        [a[0] as f32, a[1] as f32, b[0] as f32, b[1] as f32]
    }
}
impl Block<f64> for Normal {
    #[inline(always)]
    fn block(&self, w: [u32; 4]) -> [f64; 4] {
        let a = normal_pair(unit_f64(w[0], w[1]), unit_f64(w[2], w[3]));
        [a[0], a[1], 0.0, 0.0]
    }
}

/// 64 random bits.
#[derive(Debug, Clone, Copy)]
pub struct Bits;
impl Block<u64> for Bits {
    #[inline(always)]
    fn block(&self, w: [u32; 4]) -> [u64; 4] {
        [u64::from(w[0]) << 32 | u64::from(w[1]), u64::from(w[2]) << 32 | u64::from(w[3]), 0, 0]
    }
}

/// How many counters `n` numbers use.
pub fn blocks<T: Draw>(n: usize) -> u64 {
    n.div_ceil(T::PER_BLOCK) as u64
}

struct Out<O>(*mut O);

impl<O> Out<O> {
    #[inline(always)]
    fn get(&self) -> *mut O {
        self.0
    }
}
// SAFETY: pieces write disjoint parts.
unsafe impl<O> Send for Out<O> {}
// SAFETY: as above.
unsafe impl<O> Sync for Out<O> {}

/// `out[i] = f(i, number i)` for numbers of the stream that starts at counter `start`.
///
/// # Safety
/// `out` is writable for `n` elements.
pub unsafe fn fill<T: Draw, K: Block<T>, O>(out: *mut O, n: usize, seed: u64, start: u64, kind: K, f: impl Fn(usize, T) -> O + Sync) {
    let out = Out(out);
    let some = |from: usize, to: usize| {
        let mut i = from;
        while i < to {
            let words = philox(seed, start.wrapping_add((i / T::PER_BLOCK) as u64));
            let block = kind.block(words);
            for (k, v) in block.iter().take(T::PER_BLOCK).enumerate() {
                if i + k < to {
                    // SAFETY: below n.
                    unsafe { out.get().add(i + k).write(f(i + k, *v)) };
                }
            }
            i += T::PER_BLOCK;
        }
    };
    if n <= PIECE {
        some(0, n);
    } else {
        parallel_for(n.div_ceil(PIECE), |p| some(p * PIECE, ((p + 1) * PIECE).min(n)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_numbers() {
        // Known answers of the authors' reference (kat_vectors, philox4x32 10): counter and key all zero.
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn moments_are_right() {
        let n = 40_000;
        let mut z = vec![0f32; n];
        // SAFETY: n elements.
        unsafe { fill(z.as_mut_ptr(), n, 7, 0, Normal, |_, v: f32| v) };
        let moment = |k: i32| z.iter().map(|v| f64::from(*v).powi(k)).sum::<f64>() / n as f64;
        assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.2);
        let mut u = vec![0f64; n];
        // SAFETY: as above.
        unsafe { fill(u.as_mut_ptr(), n, 7, 0, Uniform, |_, v: f64| v) };
        assert!(u.iter().all(|v| (0.0..1.0).contains(v)));
        assert!((u.iter().sum::<f64>() / n as f64 - 0.5).abs() < 0.01);
    }

    #[test]
    fn a_number_depends_on_its_place_alone() {
        let draw = |n: usize, start: u64| {
            let mut v = vec![0f32; n];
            // SAFETY: n elements.
            unsafe { fill(v.as_mut_ptr(), n, 3, start, Uniform, |_, x: f32| x) };
            v
        };
        let long = draw(3 * PIECE + 5, 0);
        assert_eq!(draw(10, 0)[..], long[..10]);
        assert_eq!(draw(8, 2)[..], long[8..16]);
        assert_ne!(long[..100], long[PIECE..PIECE + 100]);
    }
}
