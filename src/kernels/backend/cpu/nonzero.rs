//! The positions of the true elements of a mask (bytes that are not 0).

use crate::backend::contract::{CountedResult, Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, malformed};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{Family, Nonzero};
use crate::error::Result;
use crate::host::memory::raw_slice::RawSlice;
use crate::host::memory::reserve::zeros;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::DType;

/// Elements of one task.
const PIECE: usize = 1 << 15;
/// Positions that are collected in a buffer before they are written.
const TOGETHER: usize = 256;

/// For each piece of a mask the number of true elements before it, and at the end the total.
pub fn count(mask: RawSlice<'_, u8>) -> Vec<usize> {
    let pieces = mask.len().div_ceil(PIECE);
    let mut counts = zeros::<usize>(pieces + 1);
    let to = SharedPointer::new(counts.as_mut_ptr());
    parallel_for(pieces, |p| {
        let piece = mask.part(p * PIECE, (p + 1) * PIECE);
        // Sums of up to 255 fit a byte, of which a register holds many.
        let some = |at: usize| usize::from(piece.part(at, at + 255).iter().fold(0u8, |n, b| n + u8::from(b != 0)));
        let n = (0..piece.len()).step_by(255).map(some).sum::<usize>();
        // SAFETY: this task alone writes this place, which outlives the tasks.
        unsafe { to.at(p + 1).write(n) };
    });
    for p in 0..pieces {
        counts[p + 1] += counts[p];
    }
    counts
}

/// Writes the positions of the true elements of a row-major `mask`, in order: coordinates of dimension d start at `d * n`, where n is the
/// last of the `counts` from `count`. If the mask has changed since, some positions appear twice or not at all.
///
/// # Safety
/// `out` has room for `n` numbers for each dimension of `shape`, of which the mask has the size.
pub unsafe fn positions(mask: RawSlice<'_, u8>, shape: &[usize], counts: &[usize], out: *mut i64) {
    let (Some(&inner), Some(&n)) = (shape.last(), counts.last()) else { return };
    let out = SharedPointer::new(out);
    parallel_for(counts.len() - 1, |p| {
        let (mut found, end) = (counts[p], counts[p + 1]);
        let (mut at, last) = (p * PIECE, mask.len().min((p + 1) * PIECE));
        let mut some = [0i64; TOGETHER];
        while at < last {
            let column = at % inner;
            let now = (last - at).min(TOGETHER).min(inner - column);
            let mut k = 0;
            for (i, b) in mask.part(at, at + now).iter().enumerate() {
                // Without a branch, which would be unpredictable.
                some[k & (TOGETHER - 1)] = (column + i) as i64;
                k += usize::from(b != 0);
            }
            let k = k.min(end - found);
            // SAFETY: `found + k` is at most `end`, and this task alone writes from `counts[p]` to there.
            unsafe {
                std::ptr::copy_nonoverlapping(some.as_ptr(), out.at((shape.len() - 1) * n + found), k);
                let mut row = at / inner;
                for d in (0..shape.len() - 1).rev() {
                    std::slice::from_raw_parts_mut(out.at(d * n + found), k).fill((row % shape[d]) as i64);
                    row /= shape[d];
                }
            }
            found += k;
            at += now;
        }
        // The whole output is written in any case.
        for d in 0..shape.len() {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts_mut(out.at(d * n + found), end - found).fill(0) };
        }
    });
}

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

/// A mask, and the counts of its true elements.
pub(super) struct NonzeroMask<'a> {
    x: View<'a>,
    mask: DenseOperand<'a>,
    counts: Vec<usize>,
}

pub(super) unsafe fn count_true<'a>(x: View<'a>) -> Result<NonzeroMask<'a>> {
    // SAFETY: see above. Elements of bool are read as bytes, of which any but 0 holds.
    let mask = unsafe { DenseOperand::cast(&x, DType::Bool)? };
    // SAFETY: as many bytes as elements.
    let counts = count(unsafe { RawSlice::new(mask.ptr(), x.numel()) });
    Ok(NonzeroMask { x, mask, counts })
}

impl CountedResult for NonzeroMask<'_> {
    fn count(&self) -> usize {
        self.counts.last().copied().unwrap_or(0)
    }

    unsafe fn fill(&self, out: View<'_>) -> Result<()> {
        // SAFETY: as for `count_nonzero`; there is room for all that were counted, even if another thread changed the mask after that.
        unsafe { positions(RawSlice::new(self.mask.ptr(), self.x.numel()), self.x.shape, &self.counts, out.ptr().cast()) };
        Ok(())
    }
}

impl CpuFamily for Nonzero {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(request: &Nonzero, _ins: &[Operand<'_>], _outs: &[Option<View<'_>>]) -> Result<()> {
        // Its size is counted first (`Backend::count`).
        Err(malformed(request.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_a_plain_loop() {
        for shape in [&[5usize][..], &[100_000], &[3, 4], &[300, 333], &[20, 7, 600], &[70_000, 1], &[1, 0]] {
            let numel: usize = shape.iter().product();
            // Any byte but 0 is true.
            let truth = |i: usize| if i * i % 7 < 3 || i / 1000 % 5 == 1 { (i % 255 + 1) as u8 } else { 0 };
            let mask: Vec<u8> = (0..numel).map(truth).collect();
            let bytes = RawSlice::from(&mask[..]);
            let counts = count(bytes);
            let n = mask.iter().filter(|b| **b != 0).count();
            assert_eq!(counts.last(), Some(&n));
            let mut got = vec![-1; shape.len() * n];
            // SAFETY: there is room for n numbers for each dimension.
            unsafe { positions(bytes, shape, &counts, got.as_mut_ptr()) };
            let mut want = vec![Vec::new(); shape.len()];
            for i in (0..numel).filter(|i| mask[*i] != 0) {
                let mut rest = i;
                for d in (0..shape.len()).rev() {
                    want[d].push((rest % shape[d]) as i64);
                    rest /= shape[d];
                }
            }
            assert_eq!(got, want.concat(), "{shape:?}");
        }
    }

    #[test]
    fn a_mask_that_changes_after_it_was_counted_stays_inside_its_room() {
        let shape = [70_000usize];
        let (none, all) = (vec![0u8; shape[0]], vec![255u8; shape[0]]);
        for (counted, read) in [(&none, &all), (&all, &none), (&all, &all)] {
            let counts = count(RawSlice::from(&counted[..]));
            let n = counts.last().copied().unwrap_or(0);
            let mut got = vec![-1; n + 1];
            // SAFETY: there is room for n numbers.
            unsafe { positions(RawSlice::from(&read[..]), &shape, &counts, got.as_mut_ptr()) };
            assert!(got[..n].iter().all(|i| (0..shape[0] as i64).contains(i)) && got[n] == -1);
        }
    }
}
