//! Discrete Fourier transforms.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, numel};
use crate::layout::DType;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Between which numbers a transform goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FftKind {
    Complex,
    /// Along the last of the dimensions the output has all frequencies, or the first `n / 2 + 1` alone.
    FromReal,
    /// Along the last of the dimensions the operand has the first `n / 2 + 1` frequencies, of which the others are the conjugates, or all of
    /// them: then the output is the real part.
    ToReal,
}

/// One operand, transformed along `dims` (each once, all with elements) and multiplied by `scale`. Shapes differ along the last of `dims` alone.
/// Complex dtypes have the precision of the real ones.
#[derive(Debug, Clone)]
pub struct Fft {
    pub kind: FftKind,
    /// Whether the exponents' sign is positive.
    pub inverse: bool,
    pub dims: SmallVec<[usize; 4]>,
    pub scale: f64,
    /// Where only the first `n / 2 + 1` frequencies are there: what those that stand for two are multiplied by besides, which are all but the
    /// first and, of an even length, the last.
    pub inner: f64,
}

impl Hash for Fft {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.inverse, &self.dims, self.scale.to_bits(), self.inner.to_bits()).hash(state);
    }
}

impl Fft {
    /// Whether sizes along the last dimension fit: of the operand, and of the output.
    fn fits(&self, from: usize, to: usize) -> bool {
        match self.kind {
            FftKind::Complex => from == to,
            FftKind::FromReal => to == from || to == from / 2 + 1,
            FftKind::ToReal => from == to || from == to / 2 + 1,
        }
    }
}

impl Family for Fft {
    fn name(&self) -> &'static str {
        match self.kind {
            FftKind::Complex => "_fft_c2c",
            FftKind::FromReal => "_fft_r2c",
            FftKind::ToReal => "_fft_c2r",
        }
    }

    fn elems(&self) -> Elems {
        if self.kind == FftKind::FromReal { Elems::only(&REAL, "defined for float32 and float64") } else { COMPLEX }
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((x, from))], [Some((o, to))]) = (ins, outs) else { return false };
        let pair = match self.kind {
            FftKind::Complex => (*from, *from),
            FftKind::FromReal => (*from, from.row().complex.unwrap_or(*from)),
            FftKind::ToReal => (*from, from.row().real),
        };
        let Some(last) = self.dims.last().copied() else { return false };
        let once = self.dims.iter().enumerate().all(|(k, d)| *d < x.len() && !self.dims[..k].contains(d));
        self.elems().has(*from)
            && (*from, *to) == pair
            && x.len() == o.len()
            && once
            && x.iter().zip(*o).enumerate().all(|(d, (from, to))| if d == last { self.fits(*from, *to) } else { from == to })
            && self.dims.iter().all(|d| x[*d] > 0 && o[*d] > 0)
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        // Some five operations for each element and halving of a length.
        let shape = ins.first().copied().flatten().map_or(&[][..], |(shape, _)| shape);
        let transformed: SmallVec<[usize; 4]> = self.dims.iter().filter_map(|d| shape.get(*d).copied()).collect();
        elements(ins, outs).saturating_mul(u64::from(numel(&transformed).max(2).ilog2()))
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        [FftKind::Complex, FftKind::FromReal, FftKind::ToReal]
            .map(|kind| Fft { kind, inverse: false, dims: SmallVec::from_slice(&[0]), scale: 1.0, inner: 1.0 })
            .into()
    }
}

const REAL: [DType; 2] = [DType::F32, DType::F64];
const COMPLEX: Elems = match (REAL[0].row().complex, REAL[1].row().complex) {
    (Some(single), Some(double)) => Elems::only(&[single, double], "defined for complex64 and complex128"),
    _ => Elems::only(&[], "there are no complex dtypes"),
};
