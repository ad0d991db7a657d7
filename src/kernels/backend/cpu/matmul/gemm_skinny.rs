//! Products of few rows with a large matrix (skinny GEMM), with AVX-512. The matrix is not packed as in `gemm`, because there is too little
//! work per element to pay for that.
//!
//! The cuts of the sum over k depend on k alone, so the bits are the same for any number of threads, and those of a row do not depend on
//! the other rows.

use super::algorithms::{FEW_ACROSS, FEW_ALONG, Product};
use super::packed::Bias;
use super::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::matmul::Mat;
use crate::backend::cpu::matmul::transposed::transposed_copy;
use crate::host::threads::parallel_for;
use crate::simd::{InstructionSet, instruction_set};
use std::arch::x86_64::*;

/// Rows, and vectors of the matrix, that are in registers together.
const TILE: usize = 4;
/// Rows in registers where the matrix has at most `NARROW` vectors.
const TALL: usize = 8;
const NARROW: usize = 2;
/// Elements of a small matrix: where it is dense along k, it is worth a transposed copy, which has no sums across a register.
const SMALL: usize = 1 << 13;
/// The fewest rows that pay for this copy.
const COPIED: usize = 4;
/// Products that are added up in registers before the sum goes on in memory.
const DEPTH: usize = 1024;
/// Multiply-adds of one task.
const TASK: usize = 1 << 18;
/// Up to so many there is one task: another core would take longer to get the operands.
const ALONE: usize = 1 << 19;

/// The memory order of the large matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenseAlong {
    /// Dense along k, as a weight of `linear` does.
    Along,
    /// Dense along n.
    Across,
}

#[derive(Clone, Copy)]
pub(crate) struct ProductPointer<T>(*mut T, isize, isize);
// SAFETY: tasks write to disjoint columns.
unsafe impl<T> Send for ProductPointer<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for ProductPointer<T> {}
impl<T> ProductPointer<T> {
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> *mut T {
        self.0.wrapping_offset(i as isize * self.1 + j as isize * self.2)
    }
}

/// A product of few rows: `a` (dense along k if `b` is) times `b`, plus the bias. At least one step of k.
#[derive(Clone, Copy)]
pub(crate) struct SkinnyProduct<T> {
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    bias: Bias<T>,
    out: ProductPointer<T>,
}

/// Element types with such products.
pub(crate) trait SkinnyGemm: CoreNumber {
    const LANES: usize = Self::Avx512::LANES;

    /// R rows of results from `i` on, in the `width` (at most `TILE`) columns from `j` on, where both operands are dense along k.
    ///
    /// # Safety
    /// The machine has AVX-512. These rows of `a` and columns of `b`, and their bias, are readable, and the results are writable.
    unsafe fn along<const R: usize>(p: &SkinnyProduct<Self>, at: (usize, usize), width: usize);

    /// As `along`, for up to `C` vectors of columns, where `b` is dense along them, and rows of `a` with any strides.
    ///
    /// # Safety
    /// As for `along`.
    unsafe fn across<const R: usize, const C: usize>(p: &SkinnyProduct<Self>, at: (usize, usize), width: usize);
}

macro_rules! few {
    ($t:ty, $lanes:literal, $mask:ty, $zero:ident, $set:ident, $load:ident, $some:ident, $fma:ident, $add:ident, $reduce:ident, $store:ident) => {
        impl SkinnyGemm for $t {
            #[target_feature(enable = "avx512f")]
            unsafe fn along<const R: usize>(p: &SkinnyProduct<$t>, (i, j): (usize, usize), width: usize) {
                let SkinnyProduct { k, a, b, bias, out } = *p;
                // SAFETY: the caller's; masked loads read what lies below k only. Columns beyond the width are the last one again.
                unsafe {
                    let x: [*const $t; R] = std::array::from_fn(|r| a.at(i + r, 0));
                    let y: [*const $t; TILE] = std::array::from_fn(|c| b.at(0, j + c.min(width - 1)));
                    let mut start = 0;
                    while start < k {
                        let end = k.min(start + DEPTH);
                        let mut sums = [[$zero(); TILE]; R];
                        let mut p = start;
                        while p + $lanes <= end {
                            let v: [_; R] = std::array::from_fn(|r| $load(x[r].add(p)));
                            for c in 0..TILE {
                                let w = $load(y[c].add(p));
                                for r in 0..R {
                                    sums[r][c] = $fma(v[r], w, sums[r][c]);
                                }
                            }
                            p += $lanes;
                        }
                        if p < end {
                            let rest = ((1u32 << (end - p)) - 1) as $mask;
                            let v: [_; R] = std::array::from_fn(|r| $some(rest, x[r].add(p)));
                            for c in 0..TILE {
                                let w = $some(rest, y[c].add(p));
                                for r in 0..R {
                                    sums[r][c] = $fma(v[r], w, sums[r][c]);
                                }
                            }
                        }
                        for r in 0..R {
                            for c in 0..width {
                                let (to, sum) = (out.at(i + r, j + c), $reduce(sums[r][c]));
                                let sum = if start == 0 { sum } else { *to + sum };
                                *to = match bias {
                                    Bias::Rows(bias) if end == k => sum + *bias.add(i + r),
                                    Bias::Columns(bias) if end == k => sum + *bias.add(j + c),
                                    _ => sum,
                                };
                            }
                        }
                        start = end;
                    }
                }
            }

            #[target_feature(enable = "avx512f")]
            unsafe fn across<const R: usize, const C: usize>(p: &SkinnyProduct<$t>, (i, j): (usize, usize), width: usize) {
                let SkinnyProduct { k, a, b, bias, out } = *p;
                let rest: [$mask; C] = std::array::from_fn(|c| {
                    let n = width.saturating_sub(c * $lanes).min($lanes);
                    ((1u32 << n) - 1) as $mask
                });
                // SAFETY: the caller's; masks leave out what lies beyond the width.
                unsafe {
                    let x: [*const $t; R] = std::array::from_fn(|r| a.at(i + r, 0));
                    let mut start = 0;
                    while start < k {
                        let end = k.min(start + DEPTH);
                        let mut sums = [[$zero(); C]; R];
                        for p in start..end {
                            let y = b.at(p, j);
                            let w: [_; C] = std::array::from_fn(|c| $some(rest[c], y.wrapping_add(c * $lanes)));
                            for r in 0..R {
                                let v = $set(*x[r].wrapping_offset(p as isize * a.cs));
                                for c in 0..C {
                                    sums[r][c] = $fma(v, w[c], sums[r][c]);
                                }
                            }
                        }
                        for r in 0..R {
                            for c in 0..C {
                                let to = out.at(i + r, j).wrapping_add(c * $lanes);
                                let sum = if start == 0 { sums[r][c] } else { $add($some(rest[c], to), sums[r][c]) };
                                let sum = match bias {
                                    Bias::Rows(bias) if end == k => $add(sum, $set(*bias.add(i + r))),
                                    Bias::Columns(bias) if end == k => $add(sum, $some(rest[c], bias.wrapping_add(j + c * $lanes))),
                                    _ => sum,
                                };
                                $store(to, rest[c], sum);
                            }
                        }
                        start = end;
                    }
                }
            }
        }
    };
}
few!(
    f32,
    16,
    __mmask16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_reduce_add_ps,
    _mm512_mask_storeu_ps
);
few!(
    f64,
    8,
    __mmask8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_reduce_add_pd,
    _mm512_mask_storeu_pd
);

/// How such a product is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkinnyForm {
    /// With a small transposed copy of the right operand.
    Copied,
    /// Few rows, with a right operand that lies so.
    Rows(DenseAlong),
    /// Few columns: the transposed product.
    Columns,
}

/// The form: for speed, where one of the operands has few rows or columns.
pub(super) fn form<T: SkinnyGemm>(p: &Product<T>, asked: Asked) -> Result<SkinnyForm, Why> {
    let ((m, n, k), [a, b]) = (p.sizes, p.factors);
    needs(instruction_set() == InstructionSet::Avx512, "it is written for AVX-512")?;
    needs(![m, n, k].contains(&0), "nothing is multiplied")?;
    let is_copied = b.rs == 1 && b.cs != 1 && (COPIED..=FEW_ALONG).contains(&m) && n.saturating_mul(k) <= SMALL && T::LANES <= n;
    // By name, any number of rows and columns.
    let by_name = asked == Asked::ByName;
    if is_copied {
        Ok(SkinnyForm::Copied)
    } else if (m <= FEW_ALONG && m <= n || by_name) && b.rs == 1 {
        Ok(SkinnyForm::Rows(DenseAlong::Along))
    } else if (m <= FEW_ACROSS || by_name) && b.cs == 1 {
        Ok(SkinnyForm::Rows(DenseAlong::Across))
    } else if (n <= FEW_ACROSS || by_name) && a.cs == 1 {
        Ok(SkinnyForm::Columns)
    } else {
        Err("there are many rows and columns, or no dense ones")
    }
}

/// `out` (m x n, row-major) is overwritten by `a` (m x k) times `b` (k x n), plus a bias.
///
/// # Safety
/// It has this form; the operands are readable, `out` is writable and overlaps neither.
pub(crate) unsafe fn product<T: SkinnyGemm>(
    form: SkinnyForm,
    (m, n, k): (usize, usize, usize),
    [a, b]: [Mat<T>; 2],
    bias: Bias<T>,
    out: *mut T,
    parallel: bool,
) {
    let p = SkinnyProduct { k, a, b, bias, out: ProductPointer(out, n as isize, 1) };
    // SAFETY: the caller's; what is made dense is copied with its own strides.
    unsafe {
        match form {
            SkinnyForm::Copied => {
                let copy = transposed_copy(k, n, b, false);
                tiles(&SkinnyProduct { b: copy.mat, ..p }, (m, n), DenseAlong::Across, parallel);
            }
            SkinnyForm::Rows(DenseAlong::Along) => {
                dense(m, k, a, |a| tiles(&SkinnyProduct { a, ..p }, (m, n), DenseAlong::Along, parallel));
            }
            SkinnyForm::Rows(DenseAlong::Across) => tiles(&p, (m, n), DenseAlong::Across, parallel),
            SkinnyForm::Columns => {
                let transposed = SkinnyProduct { b: a.t(), bias: bias.t(), out: ProductPointer(out, 1, n as isize), ..p };
                dense(n, k, b.t(), |a| tiles(&SkinnyProduct { a, ..transposed }, (n, m), DenseAlong::Along, parallel));
            }
        }
    }
}

/// Calls `f` with `a`, copied if it is not dense along k.
///
/// # Safety
/// `m` x `k` elements are readable.
unsafe fn dense<T: SkinnyGemm>(m: usize, k: usize, a: Mat<T>, f: impl FnOnce(Mat<T>)) {
    if a.cs == 1 {
        return f(a);
    }
    // SAFETY: the caller's.
    let copy: Vec<T> = (0..m * k).map(|i| unsafe { *a.at(i / k, i % k) }).collect();
    f(Mat { ptr: copy.as_ptr(), rs: k as isize, cs: 1 });
}

/// Computes all m x n results.
///
/// # Safety
/// The machine has AVX-512; `b` has the memory order `lies`, and `out` is dense along n where `b` is; the operands are readable, `out` is
/// writable and overlaps neither.
unsafe fn tiles<T: SkinnyGemm>(p: &SkinnyProduct<T>, (m, n): (usize, usize), lies: DenseAlong, parallel: bool) {
    let k = p.k;
    let step = if lies == DenseAlong::Along { TILE } else { TILE * T::LANES };
    let is_shared = parallel && m * n * k > ALONE;
    let width = if is_shared { (TASK / (m * k)).next_multiple_of(step).max(step) } else { n };
    parallel_for(n.div_ceil(width.max(1)), |t| {
        let (first, end) = (t * width, n.min((t + 1) * width));
        for j in (first..end).step_by(step) {
            let now = step.min(end - j);
            let tall = lies == DenseAlong::Across && now <= NARROW * T::LANES;
            let mut i = 0;
            while i < m {
                macro_rules! tile {
                    ($R:literal) => {
                        // SAFETY: the caller's; these rows and columns are there, and this task alone writes these columns.
                        unsafe {
                            match lies {
                                DenseAlong::Along => T::along::<$R>(p, (i, j), now),
                                DenseAlong::Across if tall => T::across::<$R, NARROW>(p, (i, j), now),
                                DenseAlong::Across => T::across::<$R, TILE>(p, (i, j), now),
                            }
                        }
                    };
                }
                match m - i {
                    // SAFETY: as above.
                    TALL.. if tall => unsafe {
                        T::across::<TALL, NARROW>(p, (i, j), now);
                        i += TALL;
                        continue;
                    },
                    1 => tile!(1),
                    2 => tile!(2),
                    3 => tile!(3),
                    _ => tile!(4),
                }
                i += TILE;
            }
        }
    });
}
