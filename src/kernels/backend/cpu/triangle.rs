//! The upper or lower triangles of matrices.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{malformed, result, view};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::index::StridedBlock;
use crate::call::{Family, Triangle};
use crate::error::Result;
use crate::host::interrupt;

/// Copies a matrix, keeping what lies on and above (`upper`) or on and below the `diagonal`-th diagonal; the rest becomes zero.
/// `out` may be `x` itself.
///
/// # Safety
/// Both matrices are valid for `rows` x `cols` elements of `size` bytes (1, 2, 4, 8 or 16) with these strides, and equal or disjoint.
unsafe fn triangle(
    out: (*mut u8, [isize; 2]),
    x: (*const u8, [isize; 2]),
    size: usize,
    (rows, cols): (usize, usize),
    diagonal: i64,
    upper: bool,
) {
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => triangle_t::<u8>(out, x, rows, cols, diagonal, upper),
            2 => triangle_t::<u16>(out, x, rows, cols, diagonal, upper),
            4 => triangle_t::<u32>(out, x, rows, cols, diagonal, upper),
            8 => triangle_t::<u64>(out, x, rows, cols, diagonal, upper),
            _ => triangle_t::<[u64; 2]>(out, x, rows, cols, diagonal, upper),
        }
    }
}

unsafe fn triangle_t<T: Copy + Default>(
    out: (*mut u8, [isize; 2]),
    x: (*const u8, [isize; 2]),
    rows: usize,
    cols: usize,
    diagonal: i64,
    upper: bool,
) {
    let (to, from) = (out.0.cast::<T>(), x.0.cast::<T>());
    for i in 0..rows {
        interrupt::check();
        // Columns `kept` stay: from the diagonal on, or up to it.
        let edge = (i as i128 + diagonal as i128).clamp(-1, cols as i128);
        let kept = if upper { edge.max(0) as usize..cols } else { 0..(edge + 1).min(cols as i128) as usize };
        // SAFETY: rows lie inside both matrices.
        unsafe {
            let (to, from) = (to.offset(i as isize * out.1[0]), from.offset(i as isize * x.1[0]));
            if (out.1[1], x.1[1]) == (1, 1) {
                to.write_bytes(0, kept.start);
                if !std::ptr::eq(to, from) {
                    std::ptr::copy_nonoverlapping(from.add(kept.start), to.add(kept.start), kept.len());
                }
                to.add(kept.end).write_bytes(0, cols - kept.end);
                continue;
            }
            for j in 0..cols as isize {
                let v = if kept.contains(&(j as usize)) { *from.offset(j * x.1[1]) } else { T::default() };
                *to.offset(j * out.1[1]) = v;
            }
        }
    }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Triangle {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(t: &Triangle, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(t, outs, 0)?;
        let x = view(t.name(), ins, 0)?;
        let Some(r) = out.shape.len().checked_sub(2) else { return Err(malformed(t.name())) };
        let (to, from) = (StridedBlock::new(&out.shape[..r], &out.strides[..r]), StridedBlock::new(&out.shape[..r], &x.strides[..r]));
        let size = out.dtype.size() as isize;
        for b in 0..out.shape[..r].iter().product() {
            // SAFETY: each matrix lies inside its array; the arrays are equal or disjoint.
            unsafe {
                triangle(
                    (out.ptr().offset(to.offset(b) * size), [out.strides[r], out.strides[r + 1]]),
                    (x.ptr().offset(from.offset(b) * size), [x.strides[r], x.strides[r + 1]]),
                    size as usize,
                    (out.shape[r], out.shape[r + 1]),
                    t.diagonal,
                    t.upper,
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_of_every_diagonal() {
        for d in -4..=4i64 {
            for upper in [true, false] {
                let mut m: Vec<u32> = (1..=6).collect();
                // SAFETY: a 2 x 3 matrix, in place.
                unsafe {
                    let p = m.as_mut_ptr().cast::<u8>();
                    triangle((p, [3, 1]), (p, [3, 1]), 4, (2, 3), d, upper);
                }
                for i in 0..2i64 {
                    for j in 0..3i64 {
                        let keep = if upper { j - i >= d } else { j - i <= d };
                        assert_eq!(m[(i * 3 + j) as usize] != 0, keep, "{d} {upper} {i} {j}");
                    }
                }
            }
        }
    }
}
