//! Reductions, scans, sorting, softmax and picked losses of arrays: shapes and dtypes of the results, and what is refused.

use super::Array;
use super::run::{run, run1};
use crate::backend::requests::{
    ArgReduce, Classes, CumulativeExtreme, Mode, Nll, NllReduction, Reduce, Reducer, Request, Scan, ScanKind, Softmax, SoftmaxPass, Sort,
    summed,
};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, checked_numel};
use smallvec::{SmallVec, smallvec};

fn not_floating(d: DType) -> Error {
    Error::dtype(format!("expected a floating point tensor, got {d}"))
}

/// Which dimensions are reduced, and whether they stay as dimensions of size 1.
#[derive(Debug, Clone, Copy)]
struct Over<'a> {
    reduced: &'a [bool],
    keepdim: bool,
}

impl Over<'_> {
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

    /// Refuses to look for the best of nothing.
    fn check_best(&self, of: &Array) -> Result<()> {
        self.check(of)?;
        if of.numel() > 0 || !reduced_shape(of.shape(), self.reduced, self.keepdim).iter().all(|n| *n > 0) {
            return Ok(());
        }
        Err(Error::index(format!("expected something to look through, got shape {:?}", of.shape())))
    }
}

/// Refuses a dimension that is not there; a 0-d array has one.
fn check_dim(of: &Array, dim: usize) -> Result<()> {
    if dim < of.rank().max(1) {
        return Ok(());
    }
    Err(Error::index(format!("dimension {dim} does not exist in an array of shape {:?}", of.shape())))
}

impl Array {
    /// The reduction over the dimensions marked in `reduced` (one flag each).
    pub fn reduce(&self, reducer: Reducer, reduced: &[bool], keepdim: bool) -> Result<Array> {
        Over { reduced, keepdim }.check(self)?;
        if reducer.is_float_only() && !self.dtype().is_float() {
            return Err(not_floating(self.dtype()));
        }
        let shape = reduced_shape(self.shape(), reduced, keepdim);
        let to = reducer.out_dtype(self.dtype());
        run1(Request::Reduce(Reduce { reducer, reduced: reduced.into() }), &[self], &shape, to)
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
        Over { reduced, keepdim }.check_best(self)?;
        self.reduce(Reducer::Extreme { max }, reduced, keepdim)
    }

    /// Whether all elements (or any, with `all` false) are true, as bool.
    pub fn truth(&self, all: bool, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::Truth { all }, reduced, keepdim)
    }

    /// How many elements are not 0, as int64.
    pub fn count_nonzero(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::CountNonzero, reduced, keepdim)
    }

    /// The sum of squared distances from the mean. Floats only.
    pub fn squares(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::SquaredDeviations, reduced, keepdim)
    }

    /// `log(sum(exp(x)))`, without overflow. Floats only.
    pub fn logsumexp(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::LogSumExp, reduced, keepdim)
    }

    /// The vector norm of order `p`. Floats only.
    pub fn norm(&self, p: f64, reduced: &[bool], keepdim: bool) -> Result<Array> {
        self.reduce(Reducer::Norm(p), reduced, keepdim)
    }

    /// Values of this dtype and the places where they were found.
    fn with_places(&self, request: Request, shape: &[usize]) -> Result<(Array, Array)> {
        let mut made = run(request, &[self], &[(shape, self.dtype()), (shape, DType::I64)])?;
        match (made.pop(), made.pop()) {
            (Some(places), Some(values)) => Ok((values, places)),
            _ => Err(Error::internal("a request", "fewer outputs than two")),
        }
    }

    /// The shape without dimension `dim`, something to choose from being there.
    fn chosen(&self, dim: usize, keepdim: bool) -> Result<Dims> {
        check_dim(self, dim)?;
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        Over { reduced: &reduced, keepdim }.check_best(self)?;
        Ok(reduced_shape(self.shape(), &reduced, keepdim))
    }

    /// The largest (or smallest) elements along `dim`, which is not empty, and where each stands first.
    pub fn extreme_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        let shape = self.chosen(dim, keepdim)?;
        self.with_places(Request::ArgReduce(ArgReduce { max, dim }), &shape)
    }

    /// Sorts along `dim` and keeps the first `keep` values with the places they came from.
    pub fn sort_along(&self, sort: Sort) -> Result<(Array, Array)> {
        check_dim(self, sort.dim)?;
        if sort.keep > self.layout().size_or_one(sort.dim) {
            return Err(Error::index(format!(
                "sort: {} elements are asked for along dimension {} of shape {:?}",
                sort.keep,
                sort.dim,
                self.shape()
            )));
        }
        let mut shape = Dims::from_slice(self.shape());
        if let Some(n) = shape.get_mut(sort.dim) {
            *n = sort.keep;
        }
        self.with_places(Request::Sort(sort), &shape)
    }

    /// The largest (or smallest) element so far along `dim` and where it stands, the last of equals.
    pub fn cumulative_extreme(&self, max: bool, dim: usize) -> Result<(Array, Array)> {
        check_dim(self, dim)?;
        self.with_places(Request::CumulativeExtreme(CumulativeExtreme { max, dim }), self.shape())
    }

    /// The most frequent element along `dim`, which is not empty, and where it stands last.
    pub fn mode_along(&self, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        let shape = self.chosen(dim, keepdim)?;
        self.with_places(Request::Mode(Mode { dim }), &shape)
    }

    /// Cumulative sums or products along `dim`. Floats keep their dtype (on the CPU they are added up in double precision, on a device in
    /// their own), others give int64.
    pub fn scan(&self, kind: ScanKind, dim: usize) -> Result<Array> {
        check_dim(self, dim)?;
        run1(Request::Scan(Scan { kind, dim }), &[self], self.shape(), summed(self.dtype()))
    }

    /// Softmax or its logarithm along `dim`, or, with a gradient `g`, the backward pass, for which `self` is the forward output.
    pub fn softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array> {
        check_dim(self, dim)?;
        if pass.backward != g.is_some() || g.is_some_and(|g| g.shape() != self.shape() || g.dtype() != self.dtype()) {
            return Err(Error::shape("softmax: backward, and only then, there is a gradient, of the output's shape and dtype"));
        }
        if !self.dtype().is_float() {
            return Err(not_floating(self.dtype()));
        }
        let request = Request::Softmax(Softmax { pass, dim });
        match g {
            Some(g) => run1(request, &[g, self], self.shape(), self.dtype()),
            None => run1(request, &[self], self.shape(), self.dtype()),
        }
    }

    /// What nll_loss picks from this array, of `shape`; with `adjoint` the way back, which spreads it. `weight` is of this array's dtype, a
    /// float; a target that is neither a class nor ignored is an error.
    pub fn nll(&self, classes: Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<Array> {
        self.check_nll(&classes, adjoint, shape, targets, weight)?;
        if !self.dtype().is_float() {
            return Err(not_floating(self.dtype()));
        }
        let dim = usize::from(if adjoint { shape.len() } else { self.rank() } > 1);
        let (targets, weight) = (targets.contiguous()?, weight.map(Array::contiguous).transpose()?);
        let x = if self.is_contiguous() { self.clone() } else { self.contiguous()? };
        let mut ins: SmallVec<[&Array; 3]> = smallvec![&x, &targets];
        ins.extend(weight.as_ref());
        run1(Request::Nll(Nll { classes, adjoint, dim, ticket: 0 }), &ins, shape, self.dtype())
    }

    /// Whether all sizes belong together.
    fn check_nll(&self, c: &Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<()> {
        let some = checked_numel(&[c.outer, c.inner], 1)?;
        let losses = if c.reduction == NllReduction::None { some } else { 1 };
        let (all, of) = (checked_numel(&[c.outer, c.classes, c.inner], 1)?, checked_numel(shape, 1)?);
        let (scores, wanted) = if adjoint { (of, self.numel()) } else { (self.numel(), of) };
        let weighs = weight.is_none_or(|w| w.numel() == c.classes && w.dtype() == self.dtype());
        if scores == all && wanted == losses && targets.numel() == some && weighs {
            return Ok(());
        }
        Err(Error::shape(format!(
            "nll_loss: {} targets, {} elements and results of shape {shape:?} do not belong to {c:?}, or the weights do not",
            targets.numel(),
            self.numel()
        )))
    }
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
