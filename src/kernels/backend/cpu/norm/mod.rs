//! Layer, group and batch norm. The input is seen as (outer, groups, channels, inner), and walked in one of four ways: `rows`, whose
//! elements each have a weight (layer norm), or `narrow` ones; `chunks` of the elements of one channel (group and batch norm of images); `columns` (batch norm
//! of vectors and of channels with few elements).
//!
//! Sums are taken of distances from a shift near the mean, in one pass: a large mean does not cancel. Where the shift turns out to be far
//! from the mean beside the deviation, a second pass takes the mean itself.
//!
//! Not here: variances alone (`reduce/variance.rs`), and what is composed of operations, as root-mean-square norm is (`ops/normalize.rs`).

pub(super) mod compute;
mod chunks;
mod columns;
mod far;
mod loops;
mod narrow;
mod rows;

pub use loops::NormElement;

use super::matmul::panel_vector::CoreNumber;
use crate::call::NormShape;
use crate::host::memory::reserve::filled;
use crate::simd::InstructionSet;
use std::borrow::Cow;
use std::slice::from_raw_parts;

/// Elements that one task handles at least.
const TASK: usize = 1 << 15;
/// Elements of one mean that stay in the cache while they are read twice. More of them are divided among tasks.
const WHOLE: usize = 1 << 17;
/// Channels with fewer elements in a row are walked in another way than as chunks.
const SHORT: usize = 16;

/// Weights and biases; null where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Affine<T> {
    pub weight: *const T,
    pub bias: *const T,
}

/// Where means, reciprocals of standard deviations, and (unless null) variances go.
#[derive(Debug, Clone, Copy)]
pub struct Stats<T> {
    pub mean: *mut T,
    pub rstd: *mut T,
    pub var: *mut T,
}
// SAFETY: tasks write to disjoint elements.
unsafe impl<T> Send for Stats<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Stats<T> {}
// SAFETY: only read.
unsafe impl<T> Send for Affine<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Affine<T> {}

impl<T: NormElement> Affine<T> {
    /// Weight and bias `i`.
    ///
    /// # Safety
    /// There are so many.
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> (f64, f64) {
        // SAFETY: the caller's.
        unsafe {
            let weight = if self.weight.is_null() { 1.0 } else { (*self.weight.add(i)).wide() };
            (weight, if self.bias.is_null() { 0.0 } else { (*self.bias.add(i)).wide() })
        }
    }

    /// The weights (or ones) and biases (or zeros), each repeated `times`.
    ///
    /// # Safety
    /// There are `n` of them, which stay as they are.
    unsafe fn expanded<'a>(&self, n: usize, times: usize) -> (Cow<'a, [T]>, Cow<'a, [T]>) {
        let all = |p: *const T, or: T| {
            if p.is_null() {
                return Cow::Owned(filled(or, n * times));
            }
            // SAFETY: the caller's.
            let own = unsafe { from_raw_parts(p, n) };
            if times == 1 { Cow::Borrowed(own) } else { own.iter().flat_map(|v| std::iter::repeat_n(*v, times)).collect() }
        };
        (all(self.weight, T::ONE), all(self.bias, T::ZERO))
    }
}

/// A mean and what the deviation is computed from.
#[derive(Debug, Clone, Copy)]
struct Moments {
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    count: f64,
    /// The shift was too far away for `squares` to be accurate.
    is_poor: bool,
}

impl Moments {
    /// From the sums of distances from `shift` and of their squares.
    #[inline(always)]
    fn new<T: NormElement>(shift: T, (s, q): (f64, f64), count: usize) -> Moments {
        let n = count as f64;
        let off = s / n;
        let squares = q - s * off;
        // Nan stays.
        let squares = if squares < 0.0 { 0.0 } else { squares };
        Moments { mean: shift.wide() + off, squares, count: n, is_poor: s * off > 16.0 * squares }
    }

    #[inline(always)]
    fn rstd(&self, eps: f64) -> f64 {
        1.0 / (self.squares / self.count + eps).sqrt()
    }

    /// Writes the statistics of number `i`.
    ///
    /// # Safety
    /// There is room for them.
    #[inline(always)]
    unsafe fn put<T: NormElement>(&self, to: &Stats<T>, i: usize, eps: f64) -> Applied<T> {
        let (mean, rstd) = (T::narrow(self.mean), self.rstd(eps));
        // SAFETY: the caller's.
        unsafe {
            *to.mean.add(i) = mean;
            *to.rstd.add(i) = T::narrow(rstd);
            if !to.var.is_null() {
                *to.var.add(i) = T::narrow(self.squares / self.count);
            }
        }
        Applied { mean, rest: self.mean - mean.wide(), rstd }
    }
}

/// Mean and deviation of contiguous elements.
fn moments<T: NormElement>(x: &[T]) -> Moments {
    let (first, sums) = loops::shifted_sums(x);
    let found = Moments::new(first, sums, x.len());
    if !found.is_poor {
        return found;
    }
    let first = T::narrow(found.mean);
    Moments::new(first, loops::sums(x, first), x.len())
}

/// What is applied to elements: the mean, rounded and the rest of it, and the factor.
#[derive(Debug, Clone, Copy)]
struct Applied<T> {
    mean: T,
    rest: f64,
    rstd: f64,
}

impl<T: NormElement> Applied<T> {
    #[inline(always)]
    fn given(mean: T, var: T, eps: f64) -> Applied<T> {
        Applied { mean, rest: 0.0, rstd: 1.0 / (var.wide() + eps).sqrt() }
    }

    /// Factor and summand for the distance from `mean`, with a weight and a bias.
    #[inline(always)]
    fn line(&self, (weight, bias): (f64, f64)) -> (T, T) {
        let scale = self.rstd * weight;
        let shift = bias - self.rest * scale;
        (T::narrow(scale), T::narrow(shift))
    }
}

/// The gradient of x is `g * a + (x - mean) * b + c`, where a is to be multiplied by the weight.
#[inline(always)]
fn gradient_line<T: NormElement>(rstd: f64, (g, gx): (f64, f64), count: usize) -> (f64, T, T) {
    let n = count as f64;
    (rstd, T::narrow(-rstd * rstd * rstd * gx / n), T::narrow(-rstd * g / n))
}

/// Normalises `x` by its own statistics.
///
/// # Safety
/// All have as many elements as the shape says; what is written overlaps nothing else.
pub unsafe fn forward<T: NormElement + CoreNumber>(s: &NormShape, eps: f64, x: *const T, affine: Affine<T>, y: *mut T, to: Stats<T>) {
    // SAFETY: the caller's.
    unsafe {
        match way(s) {
            Way::Rows => rows::forward(s, eps, x, affine, y, to),
            Way::Narrow(isa) => narrow::forward(isa, s, eps, x, affine, y, to),
            Way::Chunks => chunks::forward(s, eps, x, affine, y, to),
            Way::Columns => columns::forward(s, eps, x, affine, y, to),
        }
        far::forward(s, eps, x, affine, y, to);
    }
}

/// Normalises x, by means and variances that are given behind it.
///
/// # Safety
/// As for `forward`.
pub unsafe fn apply<T: NormElement>(s: &NormShape, eps: f64, from: [*const T; 3], affine: Affine<T>, y: *mut T) {
    // SAFETY: the caller's.
    unsafe {
        match way(s) {
            Way::Rows | Way::Narrow(_) => rows::apply(s, eps, from, affine, y),
            Way::Chunks => chunks::apply(s, eps, from, affine, y),
            Way::Columns => columns::apply(s, eps, from, affine, y),
        }
    }
}

/// The gradients of x and, perhaps, of weight and bias, from the gradient, x, the means and the reciprocals of deviations. `weight` may be
/// null, and `dx` may be the memory of the gradient: all sums of a mean are made before its elements are written, each at the place that it is
/// read from.
///
/// # Safety
/// As for `forward`, but for that.
pub unsafe fn backward<T: NormElement + CoreNumber>(
    s: &NormShape,
    fixed: bool,
    from: [*const T; 4],
    weight: *const T,
    dx: *mut T,
    params: Option<(*mut T, *mut T)>,
) {
    // SAFETY: the caller's.
    unsafe {
        let far = far::gradients(s, fixed, from, weight);
        match way(s) {
            Way::Narrow(isa) if !fixed => narrow::backward(isa, s, from, weight, dx, params),
            Way::Rows | Way::Narrow(_) => rows::backward(s, fixed, from, weight, dx, params),
            Way::Chunks => chunks::backward(s, fixed, from, weight, dx, params),
            Way::Columns => columns::backward(s, fixed, from, weight, dx, params),
        }
        far.put(dx, params);
    }
}

enum Way {
    Rows,
    Narrow(InstructionSet),
    Chunks,
    Columns,
}

fn way(s: &NormShape) -> Way {
    match (s.across, s.inner < SHORT) {
        (true, true) => Way::Columns,
        (false, true) => narrow::fits(s).map_or(Way::Rows, Way::Narrow),
        _ => Way::Chunks,
    }
}
