//! Copies, casts and fills of strided memory.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::cast::convert_fn;
use crate::backend::cpu::common::operands::{output, view};
use crate::backend::cpu::common::strided::{Tiles, collapse};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::Copying;
use crate::error::Result;
use crate::host::threads::parallel_for;
use crate::layout::{DType, ElementBytes, Scalar};

/// Elements of a tile: where source and destination have different memory orders, a few neighbouring cache lines of each row and each
/// column.
const ROOM: usize = 4096;
const GRAIN: usize = 1 << 16;

#[derive(Clone, Copy)]
struct CopyPointers(*const u8, *mut u8);
// SAFETY: they point into memory that outlives the copy; each thread writes its own tiles.
unsafe impl Send for CopyPointers {}
// SAFETY: as above.
unsafe impl Sync for CopyPointers {}

impl CopyPointers {
    #[inline(always)]
    fn get(&self) -> (*const u8, *mut u8) {
        (self.0, self.1)
    }
}

/// Copies every element of `shape` from `src` to `dst`, converting from `from` to `to`: floats to integers by truncation (nan and what
/// is out of range gives the least integer), anything to bool as "not zero". Strides are in elements; empty ones stand for a single value.
///
/// # Safety
/// Every element that the shape and strides name is inside its memory, aligned, and initialised in `src`. No two indices name the
/// same element of `dst`, and `dst` does not overlap `src`, except element for element.
pub unsafe fn copy(from: DType, to: DType, shape: &[usize], src: *const u8, src_strides: &[isize], dst: *mut u8, dst_strides: &[isize]) {
    let numel: usize = shape.iter().product();
    if numel == 0 {
        return;
    }
    let elem = [to.size(), from.size()];
    let dims = collapse(shape, [dst_strides, src_strides], elem);
    let mv = convert_fn(from, to);
    if let [dim] = dims.as_slice() {
        // SAFETY: the caller's.
        return unsafe { line(mv, dim.size, src, dim.strides[1], dst, dim.strides[0]) };
    }
    let tiles = Tiles::new(dims, ROOM, elem);
    let (count, per) = (tiles.count(), tiles.per_grain(GRAIN));
    let ptrs = CopyPointers(src, dst);
    let work = |piece: usize| {
        let (src, dst) = ptrs.get();
        tiles.for_each(piece * per, count.min((piece + 1) * per), |tile| {
            // SAFETY: tiles lie within the operands.
            unsafe {
                mv(tile.rows, tile.cols, src.offset(tile.offsets[1]), tiles.strides(1), dst.offset(tile.offsets[0]), tiles.strides(0))
            }
        });
    };
    parallel_for(count.div_ceil(per), work);
}

/// # Safety
/// As for `copy`, along one dimension; strides in bytes.
unsafe fn line(mv: crate::backend::cpu::common::cast::ConvertFn, n: usize, src: *const u8, ss: isize, dst: *mut u8, ds: isize) {
    if n < 2 * GRAIN {
        // SAFETY: the caller's.
        return unsafe { mv(1, n, src, (0, ss), dst, (0, ds)) };
    }
    let ptrs = CopyPointers(src, dst);
    parallel_for(n.div_ceil(GRAIN), |i| {
        let (src, dst) = ptrs.get();
        let start = i * GRAIN;
        // SAFETY: the caller's; the pieces do not overlap.
        unsafe { mv(1, GRAIN.min(n - start), src.offset(start as isize * ss), (0, ss), dst.offset(start as isize * ds), (0, ds)) }
    });
}

/// Writes `value`, converted to `dtype`, to every element of `shape`.
///
/// # Safety
/// Every element that the shape and strides name is inside `dst`, and aligned.
pub unsafe fn fill(dtype: DType, shape: &[usize], dst: *mut u8, strides: &[isize], value: Scalar) {
    #[repr(align(16))]
    struct AlignedScalar(ElementBytes);
    let bytes = AlignedScalar(value.to_bytes(dtype));
    // SAFETY: the source is one value, seen at every index.
    unsafe { copy(dtype, dtype, shape, bytes.0.as_ptr(), &[], dst, strides) }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Copying {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(_: &Copying, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output("copy", outs, 0)?;
        let x = view("copy", ins, 0)?;
        // SAFETY: see above.
        unsafe { copy(x.dtype, out.dtype, out.shape, x.ptr(), x.strides, out.ptr(), out.strides) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_are_moved_whole_and_nothing_beside_them() {
        for dtype in [DType::U8, DType::I16, DType::F32, DType::F64] {
            for n in 1..=70 {
                let (size, from, to) = (dtype.size(), n + 3, n + 1);
                let x: Vec<u64> = (0..(3 * from * size).div_ceil(8)).map(|i| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
                let mut y = vec![0u64; (3 * to * size).div_ceil(8)];
                // SAFETY: there are three rows of both.
                unsafe {
                    let strides = [from, to].map(|s| [s as isize, 1]);
                    copy(dtype, dtype, &[3, n], x.as_ptr().cast(), &strides[0], y.as_mut_ptr().cast(), &strides[1]);
                }
                let bytes = |v: &[u64]| v.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
                let (x, y) = (bytes(&x), bytes(&y));
                for (x, y) in x.chunks(from * size).zip(y.chunks(to * size)).take(3) {
                    assert_eq!(x[..n * size], y[..n * size], "{n} of {dtype:?}");
                    assert!(y[n * size..].iter().all(|b| *b == 0), "written behind {n} of {dtype:?}");
                }
            }
        }
    }

    #[test]
    fn rows_go_backwards_on_either_side() {
        for n in [1, 15, 16, 17, 63, 64, 100] {
            let x: Vec<f32> = (0..3 * n).map(|i| i as f32).collect();
            for (rows, columns) in [(1, -1), (-1, 1), (-1, -1)] {
                for on_output in [false, true] {
                    let mut y = vec![-1.0f32; 3 * n];
                    let strides = [rows * n as isize, columns];
                    // The last element in memory comes first where a stride is negative.
                    let first = (if rows < 0 { 2 * n } else { 0 }) + if columns < 0 { n - 1 } else { 0 };
                    let dense = [n as isize, 1];
                    // SAFETY: the arrays have so many elements.
                    unsafe {
                        let (from, to) = (x.as_ptr(), y.as_mut_ptr());
                        let (from, from_strides) = if on_output { (from, &dense) } else { (from.add(first), &strides) };
                        let (to, to_strides) = if on_output { (to.add(first), &strides) } else { (to, &dense) };
                        copy(DType::F32, DType::F32, &[3, n], from.cast(), from_strides, to.cast(), to_strides);
                    }
                    for (i, y) in y.iter().enumerate() {
                        let (r, c) = (i / n, i % n);
                        let (r, c) = (if rows < 0 { 2 - r } else { r }, if columns < 0 { n - 1 - c } else { c });
                        assert_eq!(*y, x[r * n + c], "{n} {rows} {columns} {on_output}");
                    }
                }
            }
        }
    }
}
