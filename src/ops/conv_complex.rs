//! Convolutions of complex numbers: one of their parts, which are channels of real numbers. Each group has the real parts of all its channels,
//! then the imaginary ones. Derivatives are those of the steps.

use super::conv::{ConvParameters, convolution as real_convolution};
use super::{join, pointwise as pw};
use crate::autograd::{Tensor, ViewOp, primitives, view};
use crate::error::Result;
use crate::layout::Dims;

/// `sizes` with dimension `at` replaced.
fn split(sizes: &[usize], at: usize, by: &[usize]) -> Dims {
    sizes[..at].iter().chain(by).chain(&sizes[at + 1..]).copied().collect()
}

/// Real and imaginary parts that alternate in groups, and the parts of other tensors so interleaved: `t` (N, G C, *) as (N, G 2 C, *).
fn parts_of_groups(t: &Tensor, at: usize, groups: usize) -> Result<Tensor> {
    let shape = t.shape();
    let channels = shape[at] / groups;
    let grouped = split(&shape, at, &[groups, channels]);
    let part = |imaginary| primitives::reshape(&primitives::part(t, imaginary)?, &grouped);
    let both = join::stack(&[part(false)?, part(true)?], at as i64 + 1)?;
    primitives::reshape(&both, &split(&shape, at, &[2 * shape[at]]))
}

/// The weight, of which each number is a matrix: (re, -im; im, re) of a plain convolution, transposed of a transposed one.
fn matrices(w: &Tensor, groups: usize, transposed: bool) -> Result<Tensor> {
    let shape = w.shape();
    let grouped = split(&shape, 0, &[groups, shape[0] / groups]);
    let part = |imaginary| primitives::reshape(&primitives::part(w, imaginary)?, &grouped);
    let (re, im) = (part(false)?, part(true)?);
    let less = pw::neg(&im)?;
    let (first, second) = if transposed { ([re.clone(), im], [less, re]) } else { ([re.clone(), less], [im, re]) };
    let rows = join::stack(&[join::stack(&first, 2)?, join::stack(&second, 2)?], 1)?;
    let mut made = shape;
    made[0] *= 2;
    made[1] *= 2;
    primitives::reshape(&rows, &made)
}

/// As `conv::convolution`, of complex tensors that it has checked.
pub(super) fn convolution(x: &Tensor, w: &Tensor, bias: Option<&Tensor>, given: ConvParameters<'_>) -> Result<Tensor> {
    let groups = usize::try_from(given.groups).unwrap_or(1);
    let bias = bias.map(|b| parts_of_groups(b, 0, groups)).transpose()?;
    let y = real_convolution(&parts_of_groups(x, 1, groups)?, &matrices(w, groups, given.transposed)?, bias.as_ref(), given)?;
    let shape = y.shape();
    let channels = shape[1] / 2;
    let apart = primitives::reshape(&y, &split(&shape, 1, &[groups, 2, channels / groups]))?;
    let order = (0..apart.rank()).filter(|d| *d != 2).chain([2]).collect();
    let pairs = primitives::contiguous_copy(&view(&apart, ViewOp::Permute(order))?)?;
    primitives::reshape(&primitives::as_complex(&pairs)?, &split(&shape, 1, &[channels]))
}
