//! Reductions of arrays: shapes and dtypes of the results, and checks.

use super::Array;
use super::run::run1;
use crate::call::{Reduce, Reducer, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims};
use crate::rows::{Func, Part, RowId};
use smallvec::SmallVec;

fn not_floating(d: DType) -> Error {
    Error::dtype(format!("expected a floating point tensor, got {d}"))
}

/// Which dimensions are reduced, and whether they stay as dimensions of size 1.
#[derive(Debug, Clone, Copy)]
struct ReducedFlags<'a> {
    reduced: &'a [bool],
    keepdim: bool,
}

impl ReducedFlags<'_> {
    /// Whether there is a flag for each dimension.
    fn check(&self, of: &Array) -> Result<()> {
        if self.reduced.len() == of.rank() {
            return Ok(());
        }
        Err(Error::shape(format!(
            "a reduction needs {} flags for an array of shape {:?}, got {}",
            of.rank(),
            of.shape(),
            self.reduced.len()
        )))
    }

    /// Refuses to take the maximum or minimum of no elements.
    fn check_best(&self, of: &Array) -> Result<()> {
        self.check(of)?;
        if of.numel() > 0 || !reduced_shape(of.shape(), self.reduced, self.keepdim).iter().all(|n| *n > 0) {
            return Ok(());
        }
        Err(Error::index(format!("expected something to look through, got shape {:?}", of.shape())))
    }
}

impl Array {
    /// The reduction over the dimensions marked in `reduced` (one flag each).
    pub fn reduce(&self, reducer: Reducer, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce_to(reducer, reduced, keepdim, reducer.out_dtype(self.dtype()))
    }

    /// As `reduce`, but floats of 16 bits give the float32 that is computed, for more steps before it is rounded.
    pub fn reduce_unrounded(&self, reducer: Reducer, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let to = reducer.out_dtype(self.dtype());
        self.reduce_to(reducer, reduced, keepdim, if to.is_half() { to.computed() } else { to })
    }

    fn reduce_to(&self, reducer: Reducer, reduced: &[bool], keepdim: bool, to: DType) -> Result<Array> {
        ReducedFlags { reduced, keepdim }.check(self)?;
        if self.dtype().is_wide_unsigned() {
            if self.dtype() == DType::U64 && matches!(reducer, Reducer::Extreme { .. }) {
                return Err(Error::not_implemented("an extreme of uint64: convert it to a signed or floating dtype"));
            }
            return self.cast(DType::I64)?.reduce(reducer, reduced, keepdim)?.cast(to);
        }
        if self.dtype().is_complex() && self.dtype().is_narrow() {
            return self.cast(self.dtype().computed())?.reduce(reducer, reduced, keepdim)?.cast(to);
        }
        if reducer.is_float_only() && !self.dtype().is_float() {
            return Err(not_floating(self.dtype()));
        }
        let shape = reduced_shape(self.shape(), reduced, keepdim);
        run1(Request::Reduce(Reduce { reducer, reduced: SmallVec::from_slice(reduced) }), &[self], &shape, to)
    }

    /// The sum over the dimensions marked in `reduced` (one flag each). Floats keep their dtype, integers and bool give int64.
    pub fn sum(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::Sum, reduced, keepdim)
    }

    /// The product, with dtypes as for `sum`.
    pub fn prod(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::Prod, reduced, keepdim)
    }

    /// The largest elements, or the smallest with `max` false; nan wins. Something must be there to reduce.
    pub fn extreme(&self, max: bool, reduced: &[bool], keepdim: bool) -> Result<Array> {
        ReducedFlags { reduced, keepdim }.check_best(self)?;
        self.reduce(Reducer::Extreme { max }, reduced, keepdim)
    }

    /// Whether all elements (or any, with `all` false) are true, as bool.
    pub fn truth(&self, all: bool, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::Truth { all }, reduced, keepdim)
    }

    /// The sum of squared distances from the mean. Floats only.
    pub fn squares(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::SquaredDeviations, reduced, keepdim)
    }

    /// As `squares`, unrounded (see `reduce_unrounded`); also of complex numbers, whose sizes have squares that are those of both parts.
    pub fn squares_unrounded(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        if !self.dtype().is_complex() {
            return self.reduce_unrounded(Reducer::SquaredDeviations, reduced, keepdim);
        }
        ReducedFlags { reduced, keepdim }.check(self)?;
        let of_parts = self.parts()?.reduce(Reducer::SquaredDeviations, &with(reduced, false), keepdim)?;
        let mut last: SmallVec<[bool; 8]> = SmallVec::from_elem(false, of_parts.rank());
        if let Some(last) = last.last_mut() {
            *last = true;
        }
        of_parts.sum(&last, false)
    }

    /// The parts of complex numbers, computed, in a last dimension of 2.
    pub fn parts(&self) -> Result<Array> {
        self.ready()?;
        self.with_parts(self.layout().as_pairs()?, self.dtype().row().real)
    }

    /// `log(sum(exp(x)))`, without overflow. Floats only.
    pub fn logsumexp(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::LogSumExp, reduced, keepdim)
    }

    /// The vector norm of order `p`. Floats and complex numbers only, of which the norm is real.
    pub fn norm(&self, p: f64, reduced: &[bool], keepdim: bool) -> Result<Array> {
        if self.dtype().is_complex() {
            ReducedFlags { reduced, keepdim }.check(self)?;
            if p != 2.0 {
                let sizes =
                    Array::pointwise(Func { row: RowId::Abs, part: Part::Forward }, self.dtype(), self.dtype().row().real, &[self], &[])?;
                return sizes.norm(p, reduced, keepdim);
            }
            let made = self.parts()?.norm(p, &with(reduced, true), keepdim)?;
            let last = self.rank();
            return made.with_layout(made.layout().squeeze(|d| keepdim && d == last));
        }
        self.reduce(Reducer::Norm(p), reduced, keepdim)
    }
}

/// The flags with one more for the parts of complex numbers.
fn with(reduced: &[bool], parts: bool) -> SmallVec<[bool; 8]> {
    reduced.iter().copied().chain([parts]).collect()
}

/// The shape that a reduction leaves.
pub fn reduced_shape(shape: &[usize], reduced: &[bool], keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (s, r) in shape.iter().zip(reduced) {
        match (r, keepdim) {
            (false, _) => out.push(*s),
            (true, true) => out.push(1),
            (true, false) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_floats_and_widen_integers() {
        let a = Array::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let s = a.sum(&[true, false], true).unwrap();
        assert_eq!((s.shape(), s.dtype()), (&[1, 3][..], DType::F32));
        assert_eq!(s.to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0]);
        let t = a.with_layout(a.layout().transpose(0, 1)).unwrap();
        assert_eq!(t.sum(&[true, false], false).unwrap().to_vec::<f32>().unwrap(), [6.0, 15.0]);
        let b = Array::from_slice(&[true, true, false], &[3]).unwrap();
        let s = b.sum(&[true], false).unwrap();
        assert_eq!((s.dtype(), s.to_vec::<i64>().unwrap()), (DType::I64, vec![2]));
    }

    #[test]
    fn norms_do_not_overflow_single_precision() {
        let a = Array::from_slice(&[3e30f32, -4e30], &[2]).unwrap();
        let n = |p: f64| a.norm(p, &[true], false).unwrap().to_vec::<f32>().unwrap()[0];
        assert_eq!(n(2.0), 5e30);
        assert_eq!((n(f64::INFINITY), n(f64::NEG_INFINITY), n(0.0)), (4e30, 3e30, 2.0));
        assert!((n(1.0) / 7e30 - 1.0).abs() < 1e-6);
        assert!((n(3.0) / 4.497_941e30 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn nan_is_the_largest_and_the_smallest() {
        let a = Array::from_slice(&[1.0, f64::NAN, 3.0, 4.0], &[2, 2]).unwrap();
        for max in [true, false] {
            let v = a.extreme(max, &[false, true], false).unwrap().to_vec::<f64>().unwrap();
            assert!(v[0].is_nan() && !v[1].is_nan());
            let v = a.extreme(max, &[true, false], false).unwrap().to_vec::<f64>().unwrap();
            assert!(!v[0].is_nan() && v[1].is_nan());
        }
    }
}
