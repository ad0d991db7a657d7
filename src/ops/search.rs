//! Where elements belong in sorted rows.

use super::declared::declare;
use crate::array::Array;
use crate::autograd::{Arrays, Name, Op, Tangent, Tensor, Vjp, apply1};
use crate::call::{Request, Search};
use crate::error::Result;
use crate::layout::DType;
use smallvec::smallvec;

#[derive(Debug, Clone, Copy)]
struct SearchOp {
    right: bool,
}

impl Vjp for SearchOp {
    fn node_name(&self) -> Name {
        "NotDifferentiable".into()
    }
}

impl Op for SearchOp {
    fn name(&self) -> &'static str {
        "searchsorted"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![Array::request1(Request::Search(Search { right: self.right }), x, x[1].shape(), DType::I64)?])
    }
    fn differentiable(&self, _output: usize) -> bool {
        false
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// For each element of `x` how many elements of the same row of `rows`, which are sorted along the last dimension, come before it: less ones, and
/// equal ones, too, if `right`. Both have the same dtype, and the same dimensions before the last.
pub fn search(rows: &Tensor, x: &Tensor, right: bool) -> Result<Tensor> {
    apply1(&SearchOp { right }, &[rows, x])
}

declare! {
    /// For each of `values` how many elements of the same row of `input`, which is sorted, come before it: less ones,
    /// and equal ones, too, if `right`. The dtypes are the same, and the dimensions before the last.
    fn [function] _search_rows(input: &Tensor, values: &Tensor, right: bool) -> Tensor = search;
}
