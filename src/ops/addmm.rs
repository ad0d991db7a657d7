//! Matrix products that are scaled and added to a tensor: `addmm` and `baddbmm`.

use super::declared::declare;
use super::matmul::{Product, left_grad, product, product_saves, product_work, rank_error, right_grad};
use super::pointwise as pw;
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, Vjp, VjpCx, apply1, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::RowId;
use crate::rows::{Func, Part};
use smallvec::smallvec;

/// `beta * c + alpha * (a @ op(b))`, where `c` broadcasts to the product.
#[derive(Debug, Clone, Copy)]
struct Addmm {
    beta: Scalar,
    alpha: Scalar,
    tb: bool,
    names: AddmmNames,
}

/// PyTorch's name of the node, and of the factors that it saves.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddmmNames {
    node: &'static str,
    factors: [&'static str; 2],
}

pub(super) const ADDMM: AddmmNames = AddmmNames { node: "AddmmBackward0", factors: ["mat1", "mat2"] };
const BADDBMM: AddmmNames = AddmmNames { node: "BaddbmmBackward0", factors: ["batch1", "batch2"] };

fn scaled(t: Tensor, by: Scalar) -> Result<Tensor> {
    if is_one(by) { Ok(t) } else { pw::mul(&t, by) }
}

fn is_one(s: Scalar) -> bool {
    let z = s.to_complex();
    z.re == 1.0 && z.im == 0.0
}

/// The factor of gradients by what is multiplied with `s`.
fn conj_of(s: Scalar) -> Scalar {
    match s {
        Scalar::Complex(z) => Scalar::Complex(z.conj()),
        real => real,
    }
}

impl Vjp for Addmm {
    fn node_name(&self) -> Name {
        self.names.node.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let [first, second] = self.names.factors;
        smallvec![
            (first, SavedAttribute::Input(1)),
            (second, SavedAttribute::Input(2)),
            ("alpha", SavedAttribute::Number(self.alpha)),
            ("beta", SavedAttribute::Number(self.beta)),
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let alpha = conj_of(self.alpha);
        let c = if cx.needs(0) { Some(scaled(g.clone(), conj_of(self.beta))?) } else { None };
        // That of the second factor first: then the first one, often the activations, is free before its own gradient is allocated.
        let b = if cx.needs(2) { Some(scaled(right_grad(g, &primitives::conj(&cx.input(1)?)?, false, self.tb)?, alpha)?) } else { None };
        cx.forget_input(1);
        let a = if cx.needs(1) { Some(scaled(left_grad(g, false, &primitives::conj(&cx.input(2)?)?, self.tb)?, alpha)?) } else { None };
        Ok(smallvec![c, a, b])
    }
}

impl Op for Addmm {
    fn name(&self) -> &'static str {
        "addmm"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let (out, is_sum) = if is_one(self.alpha) && is_one(self.beta) {
            x[1].matmul_and_bias(x[2], (false, self.tb), x[0])?
        } else {
            (x[1].matmul(x[2], (false, self.tb))?, false)
        };
        if is_sum {
            return Ok(smallvec![out]);
        }
        let dtype = out.dtype();
        let run = |row: RowId, ins: &[&Array], params: &[Scalar]| out.pointwise_into(Func { row, part: Part::Forward }, dtype, ins, params);
        let c = x[0].with_layout(x[0].layout().expand(out.shape())?)?;
        if !is_one(self.alpha) {
            run(RowId::Mul, &[&out, &Array::scalar(self.alpha, dtype)?], &[])?;
        }
        // As in PyTorch, beta 0 means that nan and inf in `c` do not matter.
        if is_one(self.beta) {
            run(RowId::Add, &[&out, &c], &[])?;
        } else if self.beta.to_bool() {
            run(RowId::AddScaled, &[&out, &c], &[self.beta])?;
        }
        Ok(smallvec![out])
    }
    fn work(&self, x: &[&Array]) -> usize {
        product_work(x[1], false, x[2], self.tb)
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        product_saves(needs, 1)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let mut sum = cx.tangent(0).map(|t| scaled(t.clone(), self.beta)).transpose()?;
        let mut add = |more: Tensor| -> Result<()> {
            let more = scaled(more, self.alpha)?;
            sum = Some(match sum.take() {
                None => more,
                Some(s) => pw::add(&s, &more)?,
            });
            Ok(())
        };
        if let Some(t) = cx.tangent(1) {
            add(product(t, false, cx.primal(2), self.tb)?)?;
        }
        if let Some(t) = cx.tangent(2) {
            add(product(cx.primal(1), false, t, self.tb)?)?;
        }
        Ok(smallvec![sum])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let (a, b) = (&batch.inputs[1], &batch.inputs[2]);
            let made = if a.batched || b.batched {
                let factors = [a.clone(), b.clone()];
                let p = Product { ta: false, tb: self.tb, name: "BmmBackward0" };
                p.batch(&BatchedInputs { size: batch.size, inputs: &factors }).transpose()?.and_then(|mut o| o.pop())
            } else {
                None
            };
            let (made, batched) = match made {
                Some(m) => (m, true),
                None => (product(&a.tensor, false, &b.tensor, self.tb)?, false),
            };
            let made = scaled(made, self.alpha)?;
            if !self.beta.to_bool() {
                return Ok(smallvec![made]);
            }
            let rank = made.rank() - usize::from(batched);
            let c = scaled(batch.inputs[0].aligned(rank)?, self.beta)?;
            Ok(smallvec![pw::add(&made, &c)?])
        };
        Some(one())
    }
}

/// `beta * c + alpha * (a @ b)` of matrices; `c` broadcasts to the product's shape.
pub fn addmm(c: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let cast = autocast::lower([c, a, b])?;
    let [c, a, b] = cast.of([c, a, b]);
    addmm_as_given(c, a, b, beta, alpha)
}

/// As `addmm`, with or without autocast.
pub(super) fn addmm_as_given(c: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    for (t, name) in [(a, "mat1"), (b, "mat2")] {
        if t.rank() != 2 {
            return Err(rank_error(&format!("{name} must be a matrix, got {}-D tensor", t.rank())));
        }
    }
    add_product(c, a, b, beta, alpha, false, ADDMM)
}

/// `beta * c + alpha * (a @ b)` of batches of matrices; `c` broadcasts to the product's shape.
pub fn baddbmm(c: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let cast = autocast::lower([c, a, b])?;
    let [c, a, b] = cast.of([c, a, b]);
    let (sa, sb) = (a.shape(), b.shape());
    for (s, name) in [(&sa, "batch1"), (&sb, "batch2")] {
        if s.len() != 3 {
            return Err(rank_error(&format!("{name} must be a 3D tensor, got {}-D tensor", s.len())));
        }
    }
    if sb[0] != sa[0] || sb[1] != sa[2] {
        return Err(Error::shape(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sa[0], sa[2], sb[0], sb[1]
        )));
    }
    add_product(c, a, b, beta, alpha, false, BADDBMM)
}

pub(super) fn add_product(c: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar, tb: bool, names: AddmmNames) -> Result<Tensor> {
    if c.dtype() != b.dtype() && a.dtype() == b.dtype() {
        return Err(Error::dtype(format!(
            "self and mat2 must have the same dtype, but got {} and {}",
            c.dtype().type_name(),
            b.dtype().type_name()
        )));
    }
    let (mut alpha, mut beta) = (alpha, beta);
    if a.dtype() != DType::Bool {
        for factor in [&mut alpha, &mut beta] {
            *factor = pw::factor_in(*factor, a.dtype())?;
        }
    }
    apply1(&Addmm { beta, alpha, tb, names }, &[c, a, b])
}

declare! {
    /// `beta * input + alpha * (mat1 @ mat2)`, with the input broadcast to the shape of the product.
    fn addmm(input: &Tensor, mat1: &Tensor, mat2: &Tensor; beta: Scalar = 1, alpha: Scalar = 1) -> Tensor = addmm;
    /// `beta * input + alpha * (batch1 @ batch2)` for each matrix of a batch, with the input broadcast to the shape of the product.
    fn baddbmm(input: &Tensor, batch1: &Tensor, batch2: &Tensor; beta: Scalar = 1, alpha: Scalar = 1) -> Tensor = baddbmm;
}
