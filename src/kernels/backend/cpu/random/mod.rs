//! Philox4x32-10, a counter-based generator: the i-th number depends on seed, stream and i alone, so any thread can compute it.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). Not here: which numbers
//! of the stream belong to an operation (`ops/random.rs`).

pub(super) mod compute;
pub mod rejection;

use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::{Base, Isa, math};

const MUL: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Numbers of one parallel task.
const PIECE: usize = 32 << 10;

/// Four random words for the counter `at` under the key `seed`.
#[inline(always)]
pub fn philox(seed: u64, at: u64) -> [u32; 4] {
    philox_of(seed, [at as u32, (at >> 32) as u32, 0, 0])
}

/// Four random words for a counter of four words.
#[inline(always)]
fn philox_of(seed: u64, counter: [u32; 4]) -> [u32; 4] {
    let mut c = counter;
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

/// An element type that is drawn from blocks of four words.
pub trait RandomElement: Copy + Default + Send + Sync {
    /// How many numbers one block yields.
    const PER_BLOCK: usize;
}
impl RandomElement for f32 {
    const PER_BLOCK: usize = 4;
}
impl RandomElement for f64 {
    const PER_BLOCK: usize = 2;
}
impl RandomElement for u64 {
    const PER_BLOCK: usize = 2;
}

/// A distribution: four random words become numbers.
pub trait BlockSampler<T: RandomElement>: Sync {
    fn block<I: Isa>(&self, words: [u32; 4]) -> [T; 4];
}

/// Uniform in [0, 1).
#[derive(Debug, Clone, Copy)]
pub struct Uniform;
impl BlockSampler<f32> for Uniform {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [f32; 4] {
        w.map(unit_f32)
    }
}
impl BlockSampler<f64> for Uniform {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [f64; 4] {
        [unit_f64(w[0], w[1]), unit_f64(w[2], w[3]), 0.0, 0.0]
    }
}

/// Exponential with rate 1.
#[derive(Debug, Clone, Copy)]
pub struct Exponential;
impl BlockSampler<f64> for Exponential {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [f64; 4] {
        // No closure: one that is not inlined would lose the instruction set.
        let u: [f64; 4] = Uniform.block::<I>(w);
        [-math::f64::log1p::<I>(-u[0]), -math::f64::log1p::<I>(-u[1]), 0.0, 0.0]
    }
}

/// Normal with mean 0 and variance 1, two from two uniform ones (Box and Muller).
#[derive(Debug, Clone, Copy)]
pub struct Normal;
impl BlockSampler<f32> for Normal {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [f32; 4] {
        let unit = |a: u32| f64::from(a) * (1.0 / 4294967296.0);
        let (a, b) = (math::f32::normal_pair::<I>(unit(w[0]), unit(w[1])), math::f32::normal_pair::<I>(unit(w[2]), unit(w[3])));
        [a[0], a[1], b[0], b[1]]
    }
}
impl BlockSampler<f64> for Normal {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [f64; 4] {
        // 1 - u is in (0, 1], where the logarithm is finite.
        let r = (-2.0 * math::f64::log1p::<I>(-unit_f64(w[0], w[1]))).sqrt();
        let t = std::f64::consts::TAU * unit_f64(w[2], w[3]);
        [r * math::f64::cos::<I>(t), r * math::f64::sin::<I>(t), 0.0, 0.0]
    }
}

/// 64 random bits.
#[derive(Debug, Clone, Copy)]
pub struct Bits;
impl BlockSampler<u64> for Bits {
    #[inline(always)]
    fn block<I: Isa>(&self, w: [u32; 4]) -> [u64; 4] {
        [u64::from(w[0]) << 32 | u64::from(w[1]), u64::from(w[2]) << 32 | u64::from(w[3]), 0, 0]
    }
}

/// How many counters `n` numbers use.
pub fn blocks<T: RandomElement>(n: usize) -> u64 {
    n.div_ceil(T::PER_BLOCK) as u64
}

/// Counters that are computed side by side.
const LANES: usize = 16;

/// `out[i] = f(i, number i)` for i in `from..to`; `from` is the first number of a block.
///
/// # Safety
/// `out` is writable up to `to`.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
unsafe fn some<I: Isa, T: RandomElement, K: BlockSampler<T>, O>(
    (from, to): (usize, usize),
    (seed, start): (u64, u64),
    kind: &K,
    f: &impl Fn(usize, T) -> O,
    out: *mut O,
) {
    let per = T::PER_BLOCK;
    let counter = |i: usize| start.wrapping_add((i / per) as u64);
    let mut i = from;
    while i < to {
        let mut words = [[0u32; LANES]; 4];
        for k in 0..LANES {
            let w = philox(seed, counter(i).wrapping_add(k as u64));
            (0..4).for_each(|n| words[n][k] = w[n]);
        }
        let mut numbers = [[T::default(); LANES]; 4];
        for k in 0..LANES {
            let block = kind.block::<I>([words[0][k], words[1][k], words[2][k], words[3][k]]);
            (0..per).for_each(|n| numbers[n][k] = block[n]);
        }
        // SAFETY: `at` is below `to`.
        let put = |at: usize, k: usize| unsafe { out.add(at).write(f(at, numbers[k % per][k / per])) };
        if i + LANES * per <= to {
            (0..LANES * per).for_each(|k| put(i + k, k));
        } else {
            (0..to - i).for_each(|k| put(i + k, k));
        }
        i += LANES * per;
    }
}
#[cfg(target_arch = "x86_64")]
macro_rules! instance {
    ($name:ident, $isa:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name<T: RandomElement, K: BlockSampler<T>, O>(
            range: (usize, usize),
            stream: (u64, u64),
            kind: &K,
            f: &impl Fn(usize, T) -> O,
            out: *mut O,
        ) {
            // SAFETY: the caller's promise is passed on.
            unsafe { some::<crate::simd::$isa, T, K, O>(range, stream, kind, f, out) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
instance!(some_avx512, Avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt");
#[cfg(target_arch = "x86_64")]
instance!(some_avx2, Avx2, "avx2,fma,bmi1,bmi2,lzcnt");

/// `out[i] = f(i, number i)` for numbers of the stream that starts at counter `start`.
///
/// # Safety
/// `out` is writable for `n` elements.
pub unsafe fn fill<T: RandomElement, K: BlockSampler<T>, O>(
    out: *mut O,
    n: usize,
    seed: u64,
    start: u64,
    kind: K,
    f: impl Fn(usize, T) -> O + Sync,
) {
    let out = SharedPointer::new(out);
    parallel_for(n.div_ceil(PIECE), |p| {
        let (range, stream) = ((p * PIECE, ((p + 1) * PIECE).min(n)), (seed, start));
        // SAFETY: the features were found on this machine; pieces are disjoint and end at n.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            {
                use crate::simd::{InstructionSet, instruction_set};
                match instruction_set() {
                    InstructionSet::Avx512 => return some_avx512(range, stream, &kind, &f, out.get()),
                    InstructionSet::Avx2 => return some_avx2(range, stream, &kind, &f, out.get()),
                    InstructionSet::Base => {}
                }
            }
            some::<Base, T, K, O>(range, stream, &kind, &f, out.get());
        }
    });
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
        let words = |i: usize| unit_f32(philox(3, (i / 4) as u64)[i % 4]);
        assert!(draw(100, 0).iter().enumerate().all(|(i, v)| *v == words(i)));
        let long = draw(3 * PIECE + 5, 0);
        assert_eq!(draw(10, 0)[..], long[..10]);
        assert_eq!(draw(8, 2)[..], long[8..16]);
        assert_ne!(long[..100], long[PIECE..PIECE + 100]);
    }
}
