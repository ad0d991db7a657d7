//! Cumulative sums, products and log-sum-exp of complex numbers, accumulated in double precision.
//!
//! Not here: those of other numbers (the file above).

use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::{Complex, Complex32, Complex64, DType};

/// Columns that one job accumulates side by side.
const COLUMNS: usize = 64;
/// Elements of the smallest job.
const TASK: usize = 1 << 14;

/// An element, and the accumulator that it is computed in.
trait Scanned: Copy + Send + Sync + 'static {
    fn widened(self) -> Complex64;
    fn narrowed(z: Complex64) -> Self;
}

impl Scanned for Complex32 {
    #[inline(always)]
    fn widened(self) -> Complex64 {
        Complex { re: f64::from(self.re), im: f64::from(self.im) }
    }
    #[inline(always)]
    fn narrowed(z: Complex64) -> Self {
        Complex { re: z.re as f32, im: z.im as f32 }
    }
}

impl Scanned for Complex64 {
    #[inline(always)]
    fn widened(self) -> Complex64 {
        self
    }
    #[inline(always)]
    fn narrowed(z: Complex64) -> Self {
        z
    }
}

fn exp(z: Complex64) -> Complex64 {
    let size = z.re.exp();
    // Of no length, whatever the angle.
    if size == 0.0 { Complex64::ZERO } else { Complex { re: size * z.im.cos(), im: size * z.im.sin() } }
}

/// Adds numbers given by their logarithms, with PyTorch's results for infinities: with two parts of minus infinity nothing is added, and after nan
/// all is nan.
fn log_add_exp(a: Complex64, b: Complex64) -> Complex64 {
    if a.is_nan() || b.is_nan() {
        return Complex { re: f64::NAN, im: f64::NAN };
    }
    let (low, top) = if a.re < b.re { (a, b) } else { (b, a) };
    if top.re.is_infinite() && low.re == top.re {
        if low.re < 0.0 {
            return low;
        }
        let sum = exp(low).plus(exp(top));
        return Complex { re: sum.re.hypot(sum.im).ln(), im: sum.im.atan2(sum.re) };
    }
    let z = exp(Complex { re: low.re - top.re, im: low.im - top.im });
    // The logarithm of 1 + z, whose square differs from 1 by this.
    let more = z.re * (2.0 + z.re) + z.im * z.im;
    Complex { re: top.re + 0.5 * more.ln_1p(), im: top.im + z.im.atan2(1.0 + z.re) }
}

/// Each row is read before it is written.
///
/// # Safety
/// As for `scan`, of elements of `T`.
unsafe fn columns<T: Scanned>(
    (outer, n, inner): (usize, usize, usize),
    x: *const T,
    out: *mut T,
    start: Complex64,
    merge: impl Fn(Complex64, Complex64) -> Complex64 + Sync,
) {
    let (x, out) = (SharedPointer::new(x.cast_mut()), SharedPointer::new(out));
    let blocks = inner.div_ceil(COLUMNS);
    let together = (TASK / (n * inner.min(COLUMNS)).max(1)).max(1);
    let jobs = outer * blocks;
    parallel_for(jobs.div_ceil(together), |t| {
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, b) = (job / blocks, job % blocks);
            let width = COLUMNS.min(inner - b * COLUMNS);
            if width == 1 {
                // One sum stays in registers.
                let mut sum = start;
                for i in 0..n {
                    let at = (o * n + i) * inner + b * COLUMNS;
                    // SAFETY: the caller's; this job alone handles this column.
                    unsafe {
                        sum = merge(sum, (*x.at(at)).widened());
                        *out.at(at) = T::narrowed(sum);
                    }
                    if i % 4096 == 4095 {
                        interrupt::check();
                    }
                }
                continue;
            }
            let mut sums = [start; COLUMNS];
            for i in 0..n {
                let at = (o * n + i) * inner + b * COLUMNS;
                for (j, sum) in sums[..width].iter_mut().enumerate() {
                    // SAFETY: the caller's; this job alone handles these columns.
                    unsafe {
                        *sum = merge(*sum, (*x.at(at + j)).widened());
                        *out.at(at + j) = T::narrowed(*sum);
                    }
                }
                if i % 4096 == 4095 {
                    interrupt::check();
                }
            }
        }
    });
}

/// Calls `columns` for complex64 or complex128.
///
/// # Safety
/// As for `scan::scan`.
unsafe fn scan(
    dtype: DType,
    around: (usize, usize, usize),
    (x, out): (*const u8, *mut u8),
    start: Complex64,
    merge: impl Fn(Complex64, Complex64) -> Complex64 + Sync,
) {
    // SAFETY: the caller's.
    unsafe {
        match dtype {
            DType::C64 => columns::<Complex32>(around, x.cast(), out.cast(), start, merge),
            _ => columns::<Complex64>(around, x.cast(), out.cast(), start, merge),
        }
    }
}

/// # Safety
/// As for `scan`.
pub(super) unsafe fn sums(dtype: DType, around: (usize, usize, usize), memory: (*const u8, *mut u8)) {
    // SAFETY: the caller's.
    unsafe { scan(dtype, around, memory, Complex64::ZERO, Complex64::plus) }
}

/// # Safety
/// As for `scan`.
pub(super) unsafe fn products(dtype: DType, around: (usize, usize, usize), memory: (*const u8, *mut u8)) {
    // SAFETY: the caller's.
    unsafe { scan(dtype, around, memory, Complex64::ONE, Complex64::times) }
}

/// # Safety
/// As for `scan`.
pub(super) unsafe fn logarithms_of_sums(dtype: DType, around: (usize, usize, usize), memory: (*const u8, *mut u8)) {
    // SAFETY: the caller's.
    unsafe { scan(dtype, around, memory, Complex { re: f64::NEG_INFINITY, im: 0.0 }, log_add_exp) }
}
