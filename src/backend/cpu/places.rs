//! Where the largest and smallest elements are of what a program makes: `select::extreme` of elements that come in pieces.

use super::reduce::Blocks;
use super::reducers::Number;
use super::select::first_extreme;
use super::threads::{Shared, parallel_for};

/// Elements that are made together.
const BLOCK: usize = 8192;
/// The most columns of a block: wider rows are cut.
const COLUMNS: usize = 1024;
/// Elements that one task looks at.
const PIECE: usize = 1 << 17;

/// The best so far of each column, and where.
struct Best<'a, T> {
    values: &'a mut [T],
    places: &'a mut [i64],
}

impl<T: Number> Best<'_, T> {
    /// Takes a value that stands behind all before, if it is better; the first nan is best.
    #[inline(always)]
    fn take(&mut self, max: bool, column: usize, v: T, place: i64) {
        let best = self.values[column];
        let better = if max { v > best } else { v < best } | v.is_nan();
        if better & !best.is_nan() {
            self.values[column] = v;
            self.places[column] = place;
        }
    }
}

/// As `select::extreme`, with the same results, of elements that `blocks` makes.
///
/// # Safety
/// `blocks` makes `outer * n * inner` elements of `T`, n at least 1; the outputs have `outer * inner`, and nothing overlaps.
pub unsafe fn extreme_made<T: Number>(
    max: bool,
    (outer, n, inner): (usize, usize, usize),
    blocks: &dyn Blocks,
    values: *mut T,
    places: *mut i64,
) {
    // Tasks that are not to go on leave their part as it is.
    // SAFETY: the caller's.
    unsafe {
        std::ptr::write_bytes(values, 0, outer * inner);
        std::ptr::write_bytes(places, 0, outer * inner);
    }
    let width = inner.min(COLUMNS);
    let strips = inner.div_ceil(COLUMNS);
    // Rows of a task, and of a block.
    let rows = (PIECE / width).clamp(1, n);
    let together = if strips > 1 { 1 } else { (BLOCK / width).max(1) };
    let pieces = n.div_ceil(rows);
    // What each piece finds: the first piece's goes to the outputs.
    let others = (pieces - 1) * outer * inner;
    let (mut found, mut at) = (vec![T::ZERO; others], vec![0i64; others]);
    let results = [(Shared::new(values), Shared::new(places)), (Shared::new(found.as_mut_ptr()), Shared::new(at.as_mut_ptr()))];
    parallel_for(outer * strips * pieces, |task| {
        if !blocks.goes_on() {
            return;
        }
        let (piece, o, strip) = (task / (outer * strips), task / strips % outer, task % strips);
        let (begin, column) = (piece * rows, strip * COLUMNS);
        let columns = COLUMNS.min(inner - column);
        let (to, start) = if piece == 0 { (&results[0], 0) } else { (&results[1], (piece - 1) * outer * inner) };
        let first = start + o * inner + column;
        // SAFETY: these columns of this piece are this task's alone, and lie inside the results.
        let mut best = unsafe {
            Best {
                values: std::slice::from_raw_parts_mut(to.0.at(first), columns),
                places: std::slice::from_raw_parts_mut(to.1.at(first), columns),
            }
        };
        let mut buffer: Vec<T> = Vec::with_capacity(together * columns);
        let end = n.min(begin + rows);
        let mut row = begin;
        while row < end {
            let count = together.min(end - row);
            let made = blocks.make((o * n + row) * inner + column, count * columns, buffer.as_mut_ptr().cast());
            // SAFETY: so many elements have been made, here or where they lie anyway.
            let block = unsafe { std::slice::from_raw_parts(made.cast::<T>(), count * columns) };
            if row == begin {
                best.values.copy_from_slice(&block[..columns]);
                best.places.fill(begin as i64);
            }
            if inner == 1 {
                let at = first_extreme(block, max);
                best.take(max, 0, block[at], (row + at) as i64);
            } else {
                for (i, line) in block.chunks_exact(columns).enumerate() {
                    for (c, v) in line.iter().enumerate() {
                        best.take(max, c, *v, (row + i) as i64);
                    }
                }
            }
            row += count;
        }
    });
    // SAFETY: the outputs hold so many.
    let mut best = unsafe {
        Best {
            values: std::slice::from_raw_parts_mut(values, outer * inner),
            places: std::slice::from_raw_parts_mut(places, outer * inner),
        }
    };
    if others > 0 {
        for (found, at) in found.chunks(outer * inner).zip(at.chunks(outer * inner)) {
            for (c, (v, place)) in found.iter().zip(at).enumerate() {
                best.take(max, c, *v, *place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::select::extreme;
    use super::*;

    struct Lying(Vec<f32>);

    impl Blocks for Lying {
        fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
            // SAFETY: the buffer has room for them.
            unsafe { std::ptr::copy_nonoverlapping(self.0[start..start + len].as_ptr(), buffer.cast(), len) };
            buffer
        }
        fn all(&self) -> Option<*const u8> {
            None
        }
        fn goes_on(&self) -> bool {
            true
        }
    }

    #[test]
    fn pieces_find_what_the_whole_has() {
        for shape in [(1, 300_000, 1), (5, 70, 1), (3, 9000, 1), (1, 700, 900), (2, 3, 2500), (4, 1, 6), (1, 2, 1)] {
            let numel = shape.0 * shape.1 * shape.2;
            for (step, nan) in [(7919, false), (1, false), (104_729, true)] {
                let mut x: Vec<f32> = (0..numel).map(|i| (i * step % 1013) as f32 - 500.0).collect();
                x.iter_mut().filter(|v| **v == 3.0).for_each(|v| *v = -0.0);
                if nan {
                    (0..numel).skip(numel / 3).step_by(977).for_each(|i| x[i] = f32::NAN);
                }
                for max in [true, false] {
                    let out = shape.0 * shape.2;
                    let (mut v, mut p, mut w, mut q) = (vec![0f32; out], vec![0i64; out], vec![0f32; out], vec![0i64; out]);
                    // SAFETY: sizes as both want them.
                    unsafe {
                        extreme(max, shape, x.as_ptr(), v.as_mut_ptr(), p.as_mut_ptr());
                        extreme_made(max, shape, &Lying(x.clone()), w.as_mut_ptr(), q.as_mut_ptr());
                    }
                    assert_eq!(p, q, "{shape:?} {step} {max}");
                    assert!(v.iter().zip(&w).all(|(a, b)| a.to_bits() == b.to_bits()), "{shape:?} {step} {max}");
                }
            }
        }
    }
}
