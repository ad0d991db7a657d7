//! Loops of logsumexp: the largest element and the sum of the exponentials of the differences from it, along rows and down columns, for
//! each instruction set.

use super::reducers::{Float, Numeric};
use super::variance::{MaxAndSum, subtracted};
use crate::backend::cpu::softmax::{fold, larger};
use crate::rows::Real;
use crate::simd::{Base, F32, F64, KernelNumber, dispatch};

/// How many exponentials are added in their own type before the sum is added in double precision.
const TOGETHER: usize = 4096;
/// Columns that are processed together.
const COLUMNS: usize = 256;

/// Element types with sums of exponentials.
pub trait ExpSums: Float {
    /// Of `n` elements that lie `stride` apart, at least one.
    ///
    /// # Safety
    /// All of them are readable.
    unsafe fn row(p: *const Self, n: usize, stride: isize) -> MaxAndSum<Self>;

    /// Of columns of `rows` elements, at least one, merged into `acc`.
    ///
    /// # Safety
    /// `acc.len()` columns, `stride` apart, of all rows are readable.
    unsafe fn down(p: *const Self, rows: usize, row_stride: isize, stride: isize, acc: &mut [MaxAndSum<Self>]);
}

#[cfg(target_arch = "x86_64")]
macro_rules! instance {
    ($isa:ident, $features:literal) => {
        mod $isa {
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn row_of<C: KernelNumber + Real>(p: *const C::Stored, n: usize, stride: isize) -> MaxAndSum<C::Stored>
            where
                C::Stored: Float,
            {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::row_of::<C>(p, n, stride) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn columns<C: KernelNumber + Real>(
                p: *const C::Stored,
                rows: usize,
                row: isize,
                stride: isize,
                acc: &mut [MaxAndSum<C::Stored>],
            ) where
                C::Stored: Float,
            {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::columns::<C>(p, rows, row, stride, acc) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
instance!(avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt");
#[cfg(target_arch = "x86_64")]
instance!(avx2, "avx2,fma,bmi1,bmi2,lzcnt");

macro_rules! exps {
    ($t:ty, $cell:ident) => {
        impl ExpSums for $t {
            unsafe fn row(p: *const $t, n: usize, stride: isize) -> MaxAndSum<$t> {
                // SAFETY: the features were found on this machine; the caller's promise is passed on.
                unsafe { dispatch!(row_of, $cell, (p, n, stride)) }
            }

            unsafe fn down(p: *const $t, rows: usize, row_stride: isize, stride: isize, acc: &mut [MaxAndSum<$t>]) {
                for (b, acc) in acc.chunks_mut(COLUMNS).enumerate() {
                    let p = p.wrapping_offset((b * COLUMNS) as isize * stride);
                    // SAFETY: as above.
                    unsafe { dispatch!(columns, $cell, (p, rows, row_stride, stride, acc)) };
                }
            }
        }
    };
}
exps!(f32, F32);
exps!(f64, F64);

/// # Safety
/// As for `ExpSums::row`.
#[inline(always)]
unsafe fn row_of<C: KernelNumber + Real>(p: *const C::Stored, n: usize, stride: isize) -> MaxAndSum<C::Stored>
where
    C::Stored: Float,
{
    // SAFETY: indices stay below n. Dense rows have a loop of their own, which vectorises.
    unsafe { if stride == 1 { row_by::<C>(n, |i| C::new(*p.add(i))) } else { row_by::<C>(n, |i| C::new(*p.offset(i as isize * stride))) } }
}

#[inline(always)]
fn row_by<C: KernelNumber + Real>(n: usize, x: impl Fn(usize) -> C) -> MaxAndSum<C::Stored>
where
    C::Stored: Float,
{
    let top = fold(n, x(0), &x, larger).raw();
    let base = C::new(subtracted(top));
    let mut sum = 0.0;
    let mut start = 0;
    while start < n {
        let now = (n - start).min(TOGETHER);
        sum += fold(now, C::from_bool(0), |i| (x(start + i) - base).exp(), |a, b| a + b).raw().wide();
        start += now;
    }
    MaxAndSum { top, sum }
}

/// # Safety
/// As for `ExpSums::down`, of at most `COLUMNS` columns.
#[inline(always)]
unsafe fn columns<C: KernelNumber + Real>(
    p: *const C::Stored,
    rows: usize,
    row_stride: isize,
    stride: isize,
    acc: &mut [MaxAndSum<C::Stored>],
) where
    C::Stored: Float,
{
    // SAFETY: the caller's promise covers i < rows and j < acc.len(). Dense columns have a loop of their own, which vectorises.
    unsafe {
        if stride == 1 {
            columns_by::<C>(rows, |i, j| C::new(*p.offset(i as isize * row_stride).add(j)), acc);
        } else {
            columns_by::<C>(rows, |i, j| C::new(*p.offset(i as isize * row_stride + j as isize * stride)), acc);
        }
    }
}

#[inline(always)]
fn columns_by<C: KernelNumber + Real>(rows: usize, x: impl Fn(usize, usize) -> C, acc: &mut [MaxAndSum<C::Stored>])
where
    C::Stored: Float,
{
    let zero = C::from_bool(0);
    let (mut top, mut base, mut sum) = ([MaxAndSum::<C::Stored>::NONE.top; COLUMNS], [zero; COLUMNS], [zero; COLUMNS]);
    let (top, base, sum) = (&mut top[..acc.len()], &mut base[..acc.len()], &mut sum[..acc.len()]);
    base.iter_mut().enumerate().for_each(|(j, t)| *t = x(0, j));
    for i in 1..rows {
        base.iter_mut().enumerate().for_each(|(j, t)| *t = larger(*t, x(i, j)));
    }
    for (top, t) in top.iter_mut().zip(base.iter_mut()) {
        *top = t.raw();
        *t = C::new(subtracted(*top));
    }
    for i in 0..rows {
        sum.iter_mut().zip(base.iter()).enumerate().for_each(|(j, (s, t))| *s = *s + (x(i, j) - *t).exp());
    }
    for (a, (top, s)) in acc.iter_mut().zip(top.iter().zip(sum.iter())) {
        let here = MaxAndSum { top: *top, sum: s.raw().wide() };
        // What is merged with nothing costs no exponentials.
        *a = if a.sum == 0.0 && a.top == C::Stored::LOWEST { here } else { a.merge(here) };
    }
}
