//! Matrix products: `matmul` and its special cases, and `linear`. Products that are added to a tensor are in `addmm`.

use super::addmm::{ADDMM, add_product};
use super::declared::declare;
use super::pointwise as pw;
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{
    Arrays, Creation, Grads, Name, Op, Outputs, Saves, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply1, primitives as lin, unrelated, view,
    view_as,
};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use smallvec::smallvec;

/// `op(a) @ op(b)`, where `op` swaps the last two dimensions if its flag is set; leading dimensions broadcast. Closed under
/// differentiation: the gradients are such products again, so no transposed view is ever made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub ta: bool,
    pub tb: bool,
    pub name: &'static str,
}

pub(super) fn product(a: &Tensor, ta: bool, b: &Tensor, tb: bool) -> Result<Tensor> {
    let name = if a.rank().max(b.rank()) > 2 { "BmmBackward0" } else { "MmBackward0" };
    apply1(&Product { ta, tb, name }, &[a, b])
}

/// The gradient of the first factor of `op(a) @ op(b)`; `b` is the conjugate of the second.
pub(super) fn left_grad(g: &Tensor, ta: bool, b: &Tensor, tb: bool) -> Result<Tensor> {
    if ta { product(b, tb, g, true) } else { product(g, false, b, !tb) }
}

/// The gradient of the second factor of `op(a) @ op(b)`; `a` is the conjugate of the first.
pub(super) fn right_grad(g: &Tensor, a: &Tensor, ta: bool, tb: bool) -> Result<Tensor> {
    if tb { product(g, true, a, ta) } else { product(a, !ta, g, false) }
}

/// The work of `op(a) @ op(b)` in units of one element read from memory, which is worth about eight products; at least the result's elements,
/// for what follows the product.
pub(super) fn product_work(a: &Array, ta: bool, b: &Array, tb: bool) -> usize {
    let size = |a: &Array, back: usize| a.rank().checked_sub(back).map_or(1, |d| a.shape()[d]);
    let (m, n) = (size(a, if ta { 1 } else { 2 }), size(b, if tb { 2 } else { 1 }));
    let products = a.numel().saturating_mul(n).max(b.numel().saturating_mul(m));
    products / size(a, if ta { 2 } else { 1 }).clamp(1, 8)
}

/// What the gradients of the factors of a product, inputs `first` and `first + 1`, read.
pub(super) fn product_saves(needs: &[bool], first: usize) -> Saves {
    let mut s = Saves::NOTHING;
    if needs[first] {
        s = s.input(first + 1);
    }
    if needs[first + 1] {
        s = s.input(first);
    }
    s
}

impl Vjp for Product {
    fn node_name(&self) -> Name {
        self.name.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0)), ("mat2", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        // As in `addmm`, the first factor is free before its gradient is allocated.
        let b = if cx.needs(1) { Some(right_grad(g, &lin::conj(&cx.input(0)?)?, self.ta, self.tb)?) } else { None };
        cx.forget_input(0);
        let a = if cx.needs(0) { Some(left_grad(g, self.ta, &lin::conj(&cx.input(1)?)?, self.tb)?) } else { None };
        Ok(smallvec![a, b])
    }
}

impl Op for Product {
    fn name(&self) -> &'static str {
        "matmul"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].matmul(x[1], (self.ta, self.tb))?])
    }
    fn work(&self, x: &[&Array]) -> usize {
        product_work(x[0], self.ta, x[1], self.tb)
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        product_saves(needs, 0)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Multilinear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let rank = batch.inputs.iter().map(BatchedInput::rank).max().unwrap_or(2);
            let (a, b) = (batch.inputs[0].aligned(rank)?, batch.inputs[1].aligned(rank)?);
            // The second matrix is shared by the batch: all rows of the batch are rows of one product.
            let rows = rank == 2 && batch.inputs[0].batched && !batch.inputs[1].batched && !self.ta;
            if rows {
                let s = a.shape();
                let out = product(&lin::reshape(&a, &[s[0] * s[1], s[2]])?, false, &b, self.tb)?;
                let columns = out.shape()[1];
                return Ok(smallvec![lin::reshape(&out, &[s[0], s[1], columns])?]);
            }
            Ok(smallvec![product(&a, self.ta, &b, self.tb)?])
        };
        Some(one())
    }
}

/// The product of a matrix (m, k) and a vector (k).
#[derive(Debug, Clone, Copy)]
struct MatVec;

impl Vjp for MatVec {
    fn node_name(&self) -> Name {
        "MvBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0)), ("vec", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let a = if cx.needs(0) { Some(outer(g, &lin::conj(&cx.input(1)?)?)?) } else { None };
        let x = if cx.needs(1) { Some(mv(&view(&lin::conj(&cx.input(0)?)?, ViewOp::Transpose(0, 1))?, g)?) } else { None };
        Ok(smallvec![a, x])
    }
}

impl Op for MatVec {
    fn name(&self) -> &'static str {
        "mv"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let column = x[1].with_layout(x[1].layout().unsqueeze(1))?;
        let out = x[0].matmul(&column, (false, false))?;
        Ok(smallvec![out.with_layout(out.layout().squeeze(|d| d == 1))?])
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        product_saves(needs, 0)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Multilinear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let (a, x) = (&batch.inputs[0], &batch.inputs[1]);
            if !a.batched {
                // The vectors of the batch are the rows of one product.
                return Ok(smallvec![product(&x.tensor, false, &a.tensor, true)?]);
            }
            if !x.batched {
                let s = a.tensor.shape();
                let out = mv(&lin::reshape(&a.tensor, &[s[0] * s[1], s[2]])?, &x.tensor)?;
                return Ok(smallvec![lin::reshape(&out, &[s[0], s[1]])?]);
            }
            let out = product(&a.tensor, false, &view(&x.tensor, ViewOp::Unsqueeze(2))?, false)?;
            Ok(smallvec![view(&out, ViewOp::Squeeze(smallvec![2]))?])
        };
        Some(one())
    }
}

/// The sum of the products of two vectors' elements.
#[derive(Debug, Clone, Copy)]
struct Dot;

impl Vjp for Dot {
    fn node_name(&self) -> Name {
        "DotBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0)), ("tensor", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let a = if cx.needs(0) { Some(pw::mul(g, &lin::conj(&cx.input(1)?)?)?) } else { None };
        let b = if cx.needs(1) { Some(pw::mul(g, &lin::conj(&cx.input(0)?)?)?) } else { None };
        Ok(smallvec![a, b])
    }
}

impl Op for Dot {
    fn name(&self) -> &'static str {
        "dot"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let row = x[0].with_layout(x[0].layout().unsqueeze(0))?;
        let column = x[1].with_layout(x[1].layout().unsqueeze(1))?;
        let out = row.matmul(&column, (false, false))?;
        Ok(smallvec![out.with_layout(out.layout().squeeze(|_| true))?])
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        product_saves(needs, 0)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Multilinear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let (a, b) = (&batch.inputs[0], &batch.inputs[1]);
            Ok(smallvec![match (a.batched, b.batched) {
                (true, false) => mv(&a.tensor, &b.tensor)?,
                (false, _) => mv(&b.tensor, &a.tensor)?,
                (true, true) => {
                    let (row, column) = (view(&a.tensor, ViewOp::Unsqueeze(1))?, view(&b.tensor, ViewOp::Unsqueeze(2))?);
                    lin::reshape(&product(&row, false, &column, false)?, &[batch.size])?
                }
            }])
        };
        Some(one())
    }
}

// ---- functions -------------------------------------------------------------------------------------------------------

pub(super) fn rank_error(what: &str) -> Error {
    Error::shape(what.to_string())
}

/// The product of two matrices.
pub fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = autocast::lower([a, b])?;
    let [a, b] = cast.of([a, b]);
    if a.rank() != 2 {
        return Err(rank_error(&format!("self must be a matrix: mm got a tensor of shape {}", fmt_shape(&a.shape()))));
    }
    if b.rank() != 2 {
        return Err(rank_error(&format!("mat2 must be a matrix: mm got a tensor of shape {}", fmt_shape(&b.shape()))));
    }
    product(a, false, b, false)
}

/// The products of two batches of matrices, (b, m, k) and (b, k, n).
pub fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = autocast::lower([a, b])?;
    let [a, b] = cast.of([a, b]);
    let (sa, sb) = (a.shape(), b.shape());
    if sa.len() != 3 {
        return Err(rank_error(&format!("batch1 must be a 3D tensor: bmm got a tensor of shape {}", fmt_shape(&sa))));
    }
    if sb.len() != 3 {
        return Err(rank_error(&format!("batch2 must be a 3D tensor: bmm got a tensor of shape {}", fmt_shape(&sb))));
    }
    if sb[0] != sa[0] || sb[1] != sa[2] {
        return Err(Error::shape(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sa[0], sa[2], sb[0], sb[1]
        )));
    }
    same_scalar_type(a, b)?;
    product(a, false, b, false)
}

fn same_scalar_type(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::dtype(format!("expected scalar type {} but found {}", a.dtype().type_name(), b.dtype().type_name())))
}

/// The product of a matrix and a vector.
pub fn mv(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (sa, sx) = (a.shape(), x.shape());
    if sa.len() != 2 || sx.len() != 1 {
        return Err(rank_error(&format!(
            "vector + matrix @ vector expected: mv takes a matrix and a vector, got {}D and {}D tensors",
            sa.len(),
            sx.len()
        )));
    }
    if sa[1] != sx[0] {
        return Err(Error::shape(format!("size mismatch, got input ({}), mat ({}x{}), vec ({})", sa[0], sa[0], sa[1], sx[0])));
    }
    if a.dtype() != x.dtype() {
        return Err(Error::dtype(format!(
            "addmv input tensors must have the same dtype, but got {} and {}",
            a.dtype().type_name(),
            x.dtype().type_name()
        )));
    }
    refuse_bool(a, "addmv_impl_cpu")?;
    apply1(&MatVec, &[a, x])
}

fn refuse_bool(a: &Tensor, name: &str) -> Result<()> {
    if a.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("\"{name}\" not implemented for 'Bool'")));
    }
    Ok(())
}

/// The sum of the products of two vectors' elements.
pub fn dot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (sa, sb) = (a.shape(), b.shape());
    if sa.len() != 1 || sb.len() != 1 {
        return Err(rank_error(&format!("1D tensors expected, but got {}D and {}D tensors", sa.len(), sb.len())));
    }
    if a.dtype() != b.dtype() {
        return Err(Error::dtype(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            a.dtype().type_name(),
            b.dtype().type_name()
        )));
    }
    if sa != sb {
        return Err(Error::shape(format!(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but got {} and {} \
             elements respectively",
            sa[0], sb[0], sa[0], sb[0]
        )));
    }
    refuse_bool(a, "dot")?;
    if a.is_conj() && b.is_conj() {
        // As in PyTorch, what is common to both factors stays lazy.
        return lin::conj_view(&apply1(&Dot, &[&lin::conj_view(a)?, &lin::conj_view(b)?])?);
    }
    apply1(&Dot, &[a, b])
}

/// The sum of the products of the conjugates of one vector's elements with those of another.
pub fn vdot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if !a.dtype().is_complex() || a.rank() != 1 || a.dtype() != b.dtype() {
        return dot(a, b);
    }
    if b.is_conj() {
        let b = lin::conj_view(b)?;
        return if a.is_conj() { dot(&lin::conj(&b)?, &lin::conj_view(a)?) } else { lin::conj_view(&dot(a, &b)?) };
    }
    dot(&lin::conj(a)?, b)
}

/// Every product of an element of one vector with one of the other.
pub fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    for (t, name) in [(a, "self"), (b, "vec2")] {
        if t.rank() != 1 {
            return Err(rank_error(&format!("outer: Expected 1-D argument {name}, but got {}-D", t.rank())));
        }
    }
    pw::mul(&view(a, ViewOp::Unsqueeze(1))?, b)
}

/// `x @ w^T + bias` over the last dimension of `x`; `w` is (out, in) or a vector (in).
pub fn linear(x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let (cast, of_bias) = (autocast::lower([x, w])?, bias.map(|b| autocast::lower([b])).transpose()?);
    let [x, w] = cast.of([x, w]);
    let bias = bias.map(|b| of_bias.as_ref().map_or(b, |cast| cast.of([b])[0]));
    let (rx, rw) = (x.rank(), w.rank());
    if rw == 1 {
        let y = matmul(x, w)?;
        return match bias {
            Some(b) => pw::add(&y, b),
            None => Ok(y),
        };
    }
    if rw != 2 || rx == 0 {
        return Err(Error::shape(format!(
            "linear: the input must be at least 1D and the weight 1D or 2D, got input of shape {} and weight of shape {}",
            fmt_shape(&x.shape()),
            fmt_shape(&w.shape())
        )));
    }
    let flat;
    let x2 = if rx == 2 {
        x
    } else {
        let (sx, sw) = (x.shape(), w.shape());
        let rows: usize = sx[..rx - 1].iter().product();
        if sx[rx - 1] != sw[1] {
            return Err(Error::shape(format!("mat1 and mat2 shapes cannot be multiplied ({rows}x{} and {}x{})", sx[rx - 1], sw[1], sw[0])));
        }
        flat = lin::reshape(x, &[rows, sx[rx - 1]])?;
        &flat
    };
    let y = match bias {
        Some(b) => add_product(b, x2, w, Scalar::Int(1), Scalar::Int(1), true, ADDMM)?,
        None => product(x2, false, w, true)?,
    };
    if rx == 2 {
        return Ok(y);
    }
    if rx == 1 && bias.is_none() {
        return squeezed(&y, 0);
    }
    let mut shape = x.shape();
    shape[rx - 1] = y.shape()[1];
    if bias.is_some() { view(&y, ViewOp::View(shape)) } else { reshaped(&y, shape) }
}

/// The product in another shape. Nobody else has the product itself, so the result is no view to its user.
fn reshaped(t: &Tensor, shape: Dims) -> Result<Tensor> {
    Ok(unrelated(view_as(t, ViewOp::View(shape), Some("UnsafeViewBackward0".into()), Creation::Normal)?))
}

pub(super) fn squeezed(t: &Tensor, dim: usize) -> Result<Tensor> {
    Ok(unrelated(view_as(t, ViewOp::Squeeze(smallvec![dim]), Some("SqueezeBackward4".into()), Creation::Normal)?))
}

/// PyTorch's `matmul`: dot, matrix-vector, matrix and batched products by the ranks of the operands; batches broadcast.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = autocast::lower([a, b])?;
    let [a, b] = cast.of([a, b]);
    match (a.rank(), b.rank()) {
        (2, 2) => product(a, false, b, false),
        (0, _) | (_, 0) => {
            Err(Error::shape(format!("both arguments to matmul need to be at least 1D, but they are {}D and {}D", a.rank(), b.rank())))
        }
        (1, 1) => dot(a, b),
        (2, 1) => mv(a, b),
        (1, 2) => squeezed(&mm(&view(a, ViewOp::Unsqueeze(0))?, b)?, 0),
        (r, 1 | 2) => {
            // One product with all rows.
            let mut shape = a.shape();
            let k = shape[r - 1];
            let rows: usize = shape[..r - 1].iter().product();
            let flat = lin::reshape(a, &[rows, k])?;
            let y = if b.rank() == 1 { mv(&flat, b)? } else { mm(&flat, b)? };
            shape.truncate(r - 1);
            if b.rank() == 2 {
                shape.push(b.shape()[1]);
            }
            reshaped(&y, shape)
        }
        (1, r) => {
            same_scalar_type(a, b)?;
            squeezed(&product(&view(a, ViewOp::Unsqueeze(0))?, false, b, false)?, r - 2)
        }
        _ => {
            same_scalar_type(a, b)?;
            product(a, false, b, false)
        }
    }
}

/// The sum of products along the last dimension of both; a number multiplies.
pub fn inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (sa, sb) = (a.shape(), b.shape());
    if sa.is_empty() || sb.is_empty() {
        return pw::mul(a, b);
    }
    if sa.last() != sb.last() {
        return Err(Error::shape(format!(
            "inner() the last dimension must match on both input tensors but got shapes {} and {}",
            fmt_shape(&sa),
            fmt_shape(&sb)
        )));
    }
    super::einsum::tensordot(a, b, &[-1], &[-1])
}

declare! {
    /// The product of two tensors by the rules of `@`: of vectors, matrices, or batches of matrices, which are broadcast.
    fn matmul(input: &Tensor, other: &Tensor) -> Tensor = matmul;
    /// The product of two matrices.
    fn mm(input: &Tensor, mat2: &Tensor) -> Tensor = mm;
    /// The products of two batches of matrices.
    fn bmm(input: &Tensor, mat2: &Tensor) -> Tensor = bmm;
    /// The product of a matrix and a vector.
    fn mv(input: &Tensor, vec: &Tensor) -> Tensor = mv;
    /// The dot product of two vectors.
    fn dot(input: &Tensor, tensor: &Tensor) -> Tensor = dot;
    /// The sums of products over the last dimension of both tensors.
    fn inner(input: &Tensor, other: &Tensor) -> Tensor = inner;
    /// The outer product of two vectors: a matrix of the products of their elements.
    fn outer(input: &Tensor, vec2: &Tensor) -> Tensor = outer;
    /// The same as `outer`.
    fn ger(input: &Tensor, vec2: &Tensor) -> Tensor = outer;
}
