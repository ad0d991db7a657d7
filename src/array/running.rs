//! Scans, and extremes with their places, of arrays on the CPU whose elements are pending: they are read as they are made.

use super::Array;
use super::pending::{Fold, Folding, From};
use crate::backend::cpu::places::extreme;
use crate::backend::cpu::reduce::Blocks;
use crate::backend::cpu::scan::{Scan, scan};
use crate::backend::cpu::threads::{Shared, parallel_for};
use crate::error::Result;
use crate::layout::DType;
use std::sync::Arc;

/// Sizes before, along and behind a dimension.
type Around = (usize, usize, usize);

impl Array {
    /// What `extreme_along` gives, where this array's elements are pending. Two steps, of which nobody may want one.
    pub(super) fn pending_extreme(&self, max: bool, around: Around, shape: &[usize]) -> Result<Option<(Array, Array)>> {
        if self.storage().is_plain() || !self.is_contiguous() {
            return Ok(None);
        }
        let step = |values, to| {
            let fold = Arc::new(Place { max, dtype: self.dtype(), around, values });
            self.pending_fold(|| Folding::Host(fold), &[], shape, to)
        };
        let Some(values) = step(true, self.dtype())? else { return Ok(None) };
        Ok(step(false, DType::I64)?.map(|places| (values, places)))
    }

    /// What `scan` gives, where this array's elements are pending and of the type in which they are accumulated.
    pub(super) fn pending_scan(&self, kind: Scan, around: Around) -> Result<Option<Array>> {
        if self.storage().is_plain() || !self.is_contiguous() {
            return Ok(None);
        }
        if !self.dtype().is_float() && self.dtype() != DType::I64 {
            return Ok(None);
        }
        let fold = Arc::new(Running { kind, dtype: self.dtype(), around });
        self.pending_fold(|| Folding::Host(fold), &[], self.shape(), self.dtype())
    }
}

/// Extremes along a dimension, or their places, that wait for somebody to look at them.
struct Place {
    max: bool,
    dtype: DType,
    around: Around,
    /// Whether they themselves are wanted.
    values: bool,
}

impl Fold for Place {
    fn name(&self) -> &'static str {
        if self.max { "max" } else { "min" }
    }

    unsafe fn run(&self, from: From<'_>, _: &[*const u8], to: *mut u8) {
        let (outer, _, inner) = self.around;
        if outer * inner == 0 {
            return;
        }
        // The other result.
        let (mut values, mut places) = (Vec::<u64>::new(), Vec::<i64>::new());
        let (v, p): (*mut u8, *mut i64) = if self.values {
            places.reserve_exact(outer * inner);
            (to, places.as_mut_ptr())
        } else {
            values.reserve_exact((outer * inner * self.dtype.size()).div_ceil(8));
            (values.as_mut_ptr().cast(), to.cast())
        };
        // SAFETY: the caller's; the result is new, and the other one has as many elements.
        unsafe { extreme(self.max, self.dtype, self.around, from.elements(), v, p) }
    }
}

/// A scan that waits for somebody to look at it.
struct Running {
    kind: Scan,
    dtype: DType,
    around: Around,
}

impl Running {
    /// Makes all elements where the results will be.
    ///
    /// # Safety
    /// There is room for them, and they are the elements of this scan.
    unsafe fn make(&self, blocks: &dyn Blocks, to: *mut u8) {
        const PIECE: usize = 1 << 15;
        let numel = self.around.0 * self.around.1 * self.around.2;
        let to = Shared::new(to);
        parallel_for(numel.div_ceil(PIECE), |k| {
            if !blocks.goes_on() {
                return;
            }
            let (start, len) = (k * PIECE, PIECE.min(numel - k * PIECE));
            let size = self.dtype.size();
            let here = to.at(start * size);
            // SAFETY: the caller's.
            let made = unsafe { blocks.make(start, len, here) };
            if !std::ptr::eq(made, here) {
                // SAFETY: so many elements were made, and there is room for them.
                unsafe { std::ptr::copy_nonoverlapping(made, here, len * size) };
            }
        });
    }
}

impl Fold for Running {
    fn name(&self) -> &'static str {
        if self.kind == Scan::Sum { "cumsum" } else { "cumprod" }
    }

    unsafe fn run(&self, from: From<'_>, _: &[*const u8], to: *mut u8) {
        let x = match from {
            From::Memory(x) => x,
            From::Made(blocks) => {
                // SAFETY: the caller's.
                unsafe { self.make(blocks, to) };
                if !blocks.goes_on() {
                    return;
                }
                to.cast_const()
            }
        };
        // SAFETY: the caller's; in place both are of one type.
        unsafe { scan(self.kind, self.dtype, self.around, x, to) }
    }
}
