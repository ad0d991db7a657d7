//! The inner loops of pooling over rows, compiled for each instruction set.

use crate::backend::cpu::reduce::reducers::Numeric;

/// Functions that run in the instance of this machine's instruction set.
macro_rules! vectorised {
    ($($(#[$doc:meta])* fn $name:ident[$T:ident: $bound:ident $(, const $C:ident: usize)*]($($a:ident: $t:ty),+ $(,)?) $body:block)+) => { $(
        $(#[$doc])*
        #[inline]
        pub(super) fn $name<$T: $bound $(, const $C: usize)*>($($a: $t),+) {
            #[inline(always)]
            fn body<$T: $bound $(, const $C: usize)*>($($a: $t),+) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx512<$T: $bound $(, const $C: usize)*>($($a: $t),+) { body::<$T $(, $C)*>($($a),+) }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx2<$T: $bound $(, const $C: usize)*>($($a: $t),+) { body::<$T $(, $C)*>($($a),+) }
                use $crate::simd::{InstructionSet, instruction_set};
                match if $T::VECTORS { instruction_set() } else { InstructionSet::Base } {
                    // SAFETY: the features were found on this machine.
                    InstructionSet::Avx512 => unsafe { avx512::<$T $(, $C)*>($($a),+) },
                    // SAFETY: as above.
                    InstructionSet::Avx2 => unsafe { avx2::<$T $(, $C)*>($($a),+) },
                    InstructionSet::Base => body::<$T $(, $C)*>($($a),+),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            body::<$T $(, $C)*>($($a),+)
        }
    )+ };
}

/// Elements that are pooled.
pub trait Pooled: Numeric {
    /// Whether loops are compiled for each instruction set.
    const VECTORS: bool;
    /// Divided by `n`, which is not zero; integers are truncated.
    fn over(self, n: Self) -> Self;
    fn of_count(n: i64) -> Self;
    fn as_count(self) -> i64;
}

macro_rules! floats {
    ($($t:ty),+) => { $(
        impl Pooled for $t {
            const VECTORS: bool = true;
            #[inline(always)]
            fn over(self, n: Self) -> Self {
                self / n
            }
            #[inline(always)]
            fn of_count(n: i64) -> Self {
                n as $t
            }
            #[inline(always)]
            fn as_count(self) -> i64 {
                self as i64
            }
        }
    )+ };
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),+) => { $(
        impl Pooled for $t {
            const VECTORS: bool = false;
            #[inline(always)]
            fn over(self, n: Self) -> Self {
                self.wrapping_div(n)
            }
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one macro for all integers")]
            fn of_count(n: i64) -> Self {
                n as $t
            }
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "as above")]
            fn as_count(self) -> i64 {
                self as i64
            }
        }
    )+ };
}
integers!(u8, i8, i16, i32, i64);

/// Positions behind those of all elements: those of padding.
pub(super) const NOWHERE: i32 = i32::MAX;

/// Elements of a long run that are looked at together.
pub(super) const RUN: usize = 32;

/// Whether the element `c` at `ci` comes before `b` at `bi`: it is larger, or the first of equal ones; the last of several nan.
#[inline(always)]
fn is_better<T: Pooled>(c: T, ci: i32, b: T, bi: i32) -> bool {
    (c > b) | ((c == b) & (ci < bi)) | (c.is_nan() & (!b.is_nan() | (ci > bi)))
}

/// How a tap follows from the row of a window and a place along the last axis, which lie in one number: the place takes `shift` bits. The first
/// window begins at `start`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TapCode {
    pub shift: u32,
    pub kernel: i32,
    pub start: i32,
    pub stride: i32,
    /// The reciprocal of the dilation, which is more than 1, times 2^32, rounded up. Places in a window are multiples of the dilation below 2^32, so
    /// products with it have the exact quotient in their upper half.
    pub per_tap: u32,
}

vectorised! {
    /// The taps of a row of windows.
    fn dilated_taps_of_row[T: Pooled](at: &[i32], code: TapCode, to: &mut [u8]) {
        let (mask, per_tap) = ((1i32 << code.shift) - 1, u64::from(code.per_tap));
        for (o, (at, to)) in at.iter().zip(to).enumerate() {
            let along = (at & mask) - (code.start + o as i32 * code.stride);
            let k = (u64::from(along.cast_unsigned()) * per_tap) >> 32;
            *to = ((at >> code.shift) * code.kernel + k as i32) as u8;
        }
    }

    /// As `dilated_taps_of_row`, without dilation.
    fn taps_of_row[T: Pooled](at: &[i32], code: TapCode, to: &mut [u8]) {
        let mask = (1i32 << code.shift) - 1;
        for (o, (at, to)) in at.iter().zip(to).enumerate() {
            let along = (at & mask) - (code.start + o as i32 * code.stride);
            *to = ((at >> code.shift) * code.kernel + along) as u8;
        }
    }

    /// Takes a later row into account: where it is larger, or nan. Its positions begin with `base`.
    fn larger_row[T: Pooled](x: &[T], base: i32, v: &mut [T], at: &mut [i32]) {
        for (j, ((c, v), at)) in x.iter().zip(v).zip(at).enumerate() {
            let takes = (*c > *v) | c.is_nan();
            *v = if takes { *c } else { *v };
            *at = if takes { base + j as i32 } else { *at };
        }
    }

    /// As `larger_row`, without positions.
    fn larger_values[T: Pooled](x: &[T], v: &mut [T]) {
        for (c, v) in x.iter().zip(v) {
            *v = if (*c > *v) | c.is_nan() { *c } else { *v };
        }
    }

    /// The largest of each window of a row: of K elements, S apart from the next window's.
    fn along_row[T: Pooled, const K: usize, const S: usize](v: &[T], at: &[i32], to: &mut [T], to_at: &mut [i32]) {
        let n = to.len().min(to_at.len());
        let (v, at) = (&v[..(n - 1) * S + K], &at[..(n - 1) * S + K]);
        for o in 0..n {
            let (mut best, mut place) = (v[o * S], at[o * S]);
            for k in 1..K {
                let (c, ci) = (v[o * S + k], at[o * S + k]);
                let takes = is_better(c, ci, best, place);
                best = if takes { c } else { best };
                place = if takes { ci } else { place };
            }
            to[o] = best;
            to_at[o] = place;
        }
    }

    /// As `along_row`, without positions.
    fn values_along_row[T: Pooled, const K: usize, const S: usize](v: &[T], to: &mut [T]) {
        let n = to.len();
        let v = &v[..(n - 1) * S + K];
        for o in 0..n {
            let mut best = v[o * S];
            for k in 1..K {
                let c = v[o * S + k];
                best = if (c > best) | c.is_nan() { c } else { best };
            }
            to[o] = best;
        }
    }

    /// The largest of a long run, as `best_of`.
    fn best_of_run[T: Pooled](v: &[T], at: &[i32], best: &mut (T, i32)) {
        let n = v.len().min(at.len());
        let (v, at) = (&v[..n], &at[..n]);
        let (mut top, mut has_nan) = ([T::LOWEST; RUN], [false; RUN]);
        let mut some = |v: &[T]| {
            for ((v, top), has_nan) in v.iter().zip(&mut top).zip(&mut has_nan) {
                *has_nan |= v.is_nan();
                *top = if *v > *top { *v } else { *top };
            }
        };
        v.chunks_exact(RUN).for_each(&mut some);
        some(v.chunks_exact(RUN).remainder());
        if has_nan.contains(&true) {
            *best = best_of(0..n, v, at);
            return;
        }
        let top = top.iter().fold(T::LOWEST, |top, v| if *v > top { *v } else { top });
        let mut first = [NOWHERE; RUN];
        let mut some = |v: &[T], at: &[i32]| {
            for ((v, at), first) in v.iter().zip(at).zip(&mut first) {
                *first = if (*v == top) & (*at < *first) { *at } else { *first };
            }
        };
        v.chunks_exact(RUN).zip(at.chunks_exact(RUN)).for_each(|(v, at)| some(v, at));
        some(v.chunks_exact(RUN).remainder(), at.chunks_exact(RUN).remainder());
        *best = (top, first.iter().fold(NOWHERE, |first, at| first.min(*at)));
    }

    /// As `best_of_run`, without positions.
    fn largest_of_run[T: Pooled](v: &[T], best: &mut T) {
        let mut top = [T::LOWEST; RUN];
        let mut some = |v: &[T]| {
            for (v, top) in v.iter().zip(&mut top) {
                *top = if (*v > *top) | v.is_nan() { *v } else { *top };
            }
        };
        v.chunks_exact(RUN).for_each(&mut some);
        some(v.chunks_exact(RUN).remainder());
        *best = largest_of(0..RUN, &top);
    }

    /// Adds a row.
    fn add_row[T: Pooled](x: &[T], to: &mut [T]) {
        for (x, to) in x.iter().zip(to) {
            *to = to.plus(*x);
        }
    }

    /// The sums of windows of a row, of K elements, S apart from the next window's, over the counts of elements.
    fn mean_along_row[T: Pooled, const K: usize, const S: usize](v: &[T], counts: &[T], to: &mut [T]) {
        let n = to.len().min(counts.len());
        let v = &v[..(n - 1) * S + K];
        for o in 0..n {
            let mut sum = v[o * S];
            for k in 1..K {
                sum = sum.plus(v[o * S + k]);
            }
            to[o] = sum.over(counts[o]);
        }
    }

    /// The adjoint of `mean_along_row`: what each window gives to its elements, added.
    fn spread_along_row[T: Pooled, const K: usize, const S: usize](g: &[T], counts: &[T], to: &mut [T]) {
        let n = g.len().min(counts.len());
        let to = &mut to[..(n - 1) * S + K];
        for o in 0..n {
            let share = g[o].over(counts[o]);
            for k in 0..K {
                to[o * S + k] = to[o * S + k].plus(share);
            }
        }
    }
}

/// As `along_row`, of any size, stride and dilation.
pub(super) fn along_any_row<T: Pooled>(
    (kernel, stride, dilation): (usize, usize, usize),
    v: &[T],
    at: &[i32],
    to: &mut [T],
    to_at: &mut [i32],
) {
    for (o, (to, to_at)) in to.iter_mut().zip(to_at).enumerate() {
        (*to, *to_at) = best_of_window((o * stride, kernel, dilation), v, at);
    }
}

/// The largest element of a window: its first position in a row, how many elements, and their distance.
pub(super) fn best_of_window<T: Pooled>((first, count, step): (usize, usize, usize), v: &[T], at: &[i32]) -> (T, i32) {
    if step != 1 || count < RUN {
        return best_of((0..count).map(|k| first + k * step), v, at);
    }
    let mut best = (T::LOWEST, NOWHERE);
    best_of_run(&v[first..first + count], &at[first..first + count], &mut best);
    best
}

/// As `best_of_window`, without positions.
pub(super) fn largest_of_window<T: Pooled>((first, count, step): (usize, usize, usize), v: &[T]) -> T {
    if step != 1 || count < RUN {
        return largest_of((0..count).map(|k| first + k * step), v);
    }
    let mut best = T::LOWEST;
    largest_of_run(&v[first..first + count], &mut best);
    best
}

/// The largest of the elements at some positions of a row, of which there is one.
#[inline(always)]
pub(super) fn best_of<T: Pooled>(mut of: impl Iterator<Item = usize>, v: &[T], at: &[i32]) -> (T, i32) {
    let Some(first) = of.next() else { return (T::LOWEST, NOWHERE) };
    of.fold((v[first], at[first]), |(best, place), k| if is_better(v[k], at[k], best, place) { (v[k], at[k]) } else { (best, place) })
}

/// As `best_of`, without positions.
#[inline(always)]
pub(super) fn largest_of<T: Pooled>(of: impl Iterator<Item = usize>, v: &[T]) -> T {
    of.fold(T::LOWEST, |best, k| if v[k] > best || v[k].is_nan() { v[k] } else { best })
}
