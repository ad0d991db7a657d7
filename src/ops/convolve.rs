//! The operation behind all convolutions. It has three passes, each linear in two operands, and the derivatives of each are the other two: so
//! gradients of every order are convolutions again. Not here: PyTorch's arguments and errors (`conv`).

use super::pointwise as pw;
use super::reduce::sum;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, ViewOp, Vjp, VjpCx, apply1, primitives, view};
use crate::call::{Conv, ConvPass, ConvShape, Request};
use crate::error::Result;
use crate::layout::{Dims, MemoryFormat};
use smallvec::{SmallVec, smallvec};

/// One of the three tensors that a convolution relates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    X,
    W,
    Y,
}
use Role::{W, X, Y};

/// Which size of a convolution takes up the batch dimension of a batching rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchPlace {
    /// x and y have the batch.
    Batch,
    /// w and y have it.
    OutChannels,
    /// x and w have it.
    InChannels,
    /// All three have it.
    Groups,
}

/// A pass, with what PyTorch's node says of it.
#[derive(Debug, Clone)]
pub(super) struct Convolve {
    pub pass: ConvPass,
    pub shape: ConvShape,
    /// The spatial dimensions of the tensors: the last ones of `shape`.
    pub dims: usize,
    /// Whether the operation that the user called is the pass `Input`.
    pub transposed: bool,
    pub output_padding: SmallVec<[usize; 3]>,
    /// Whether it is the gradient of another one.
    pub is_gradient: bool,
    /// The order of results in memory.
    pub format: MemoryFormat,
}

impl Convolve {
    /// Operands and result.
    fn roles(&self) -> ([Role; 2], Role) {
        match self.pass {
            ConvPass::Forward { .. } => ([X, W], Y),
            ConvPass::Input { .. } => ([Y, W], X),
            ConvPass::Weight => ([Y, X], W),
        }
    }

    fn has_bias(&self) -> bool {
        matches!(self.pass, ConvPass::Forward { bias: true } | ConvPass::Input { bias: true })
    }

    fn without_bias(&self) -> Convolve {
        let pass = match self.pass {
            ConvPass::Forward { .. } => ConvPass::Forward { bias: false },
            ConvPass::Input { .. } => ConvPass::Input { bias: false },
            ConvPass::Weight => ConvPass::Weight,
        };
        Convolve { pass, ..self.clone() }
    }

    fn tensor_shape(&self, role: Role) -> Dims {
        let s = &self.shape;
        let (lead, spatial) = match role {
            X => ([s.batch, s.groups * s.in_channels], &s.input),
            W => ([s.groups * s.out_channels, s.in_channels], &s.kernel),
            Y => ([s.batch, s.groups * s.out_channels], &s.output),
        };
        lead.into_iter().chain(spatial[3 - self.dims..].iter().copied()).collect()
    }

    pub(super) fn result_shape(&self) -> Dims {
        self.tensor_shape(self.roles().1)
    }

    /// The pass that makes `role` of the other two.
    fn making(&self, role: Role) -> Convolve {
        let pass = match role {
            X => ConvPass::Input { bias: false },
            W => ConvPass::Weight,
            Y => ConvPass::Forward { bias: false },
        };
        Convolve { pass, is_gradient: true, ..self.clone() }
    }

    /// The gradient of operand `at`, of that of the result and the other operand.
    pub(super) fn gradient(&self, at: usize, g: &Tensor, other: &Tensor) -> Result<Tensor> {
        let ([first, second], result) = self.roles();
        let (wanted, given) = if at == 0 { (first, second) } else { (second, first) };
        let op = self.making(wanted);
        // The pass takes its operands in an order of its own.
        let ins = if op.roles().0 == [result, given] { [g, other] } else { [other, g] };
        apply1(&op, &ins)
    }

    /// The sums over all but the channels: the gradient of the bias.
    fn bias_gradient(&self, g: &Tensor) -> Result<Tensor> {
        let dims: SmallVec<[i64; 4]> = std::iter::once(0).chain(2..2 + self.dims as i64).collect();
        sum(g, Some(&dims), false, None)
    }

    /// A bias, with or without a leading batch dimension, as it broadcasts to the result.
    fn broadcast_bias(&self, bias: &Tensor, batched: bool) -> Result<Tensor> {
        let shape = bias.shape();
        let (lead, channels): (&[usize], usize) = if batched { (&shape[..1], shape[1]) } else { (&[], shape[0]) };
        let all: Dims = lead.iter().copied().chain([1, channels]).chain(std::iter::repeat_n(1, self.dims)).collect();
        primitives::reshape(bias, &all)
    }

    fn numbers(&self, of: &[usize; 3]) -> SavedAttribute {
        SavedAttribute::sizes(&of[3 - self.dims..])
    }

    // ---- batches ----

    fn batched_shape(&self, place: BatchPlace, b: usize) -> ConvShape {
        let mut s = self.shape;
        *match place {
            BatchPlace::Batch => &mut s.batch,
            BatchPlace::OutChannels => &mut s.out_channels,
            BatchPlace::InChannels => &mut s.in_channels,
            BatchPlace::Groups => &mut s.groups,
        } *= b;
        s
    }

    /// The two dimensions that lead a tensor, the second (of x and y) or the first (of w) cut into groups and the rest; and where a batch
    /// dimension goes among the three, before the one with this number.
    fn cut(&self, role: Role, place: BatchPlace) -> ([usize; 3], usize) {
        let s = &self.shape;
        match role {
            W => (
                [s.groups, s.out_channels, s.in_channels],
                match place {
                    BatchPlace::Groups => 0,
                    BatchPlace::OutChannels => 1,
                    BatchPlace::InChannels | BatchPlace::Batch => 2,
                },
            ),
            X | Y => (
                [s.batch, s.groups, if role == X { s.in_channels } else { s.out_channels }],
                match place {
                    BatchPlace::Batch => 0,
                    BatchPlace::Groups => 1,
                    BatchPlace::InChannels | BatchPlace::OutChannels => 2,
                },
            ),
        }
    }

    /// A tensor whose leading batch dimension becomes a part of another one.
    fn merged(&self, t: &Tensor, role: Role, place: BatchPlace) -> Result<Tensor> {
        let (cut, at) = self.cut(role, place);
        let spatial = &self.tensor_shape(role)[2..];
        let whole: Dims = std::iter::once(t.shape()[0]).chain(cut).chain(spatial.iter().copied()).collect();
        let order: Dims = (1..=at).chain([0]).chain(at + 1..whole.len()).collect();
        let t = view(&primitives::reshape(t, &whole)?, ViewOp::Permute(order))?;
        let b = whole[0];
        let op = Convolve { shape: self.batched_shape(place, b), ..self.clone() };
        primitives::reshape(&t, &op.tensor_shape(role))
    }

    /// The reverse of `merged`.
    fn split(&self, t: &Tensor, role: Role, place: BatchPlace, b: usize) -> Result<Tensor> {
        let (cut, at) = self.cut(role, place);
        let own = self.tensor_shape(role);
        let mut whole: Dims = cut.into_iter().chain(own[2..].iter().copied()).collect();
        whole.insert(at, b);
        let order: Dims = [at].into_iter().chain((0..whole.len()).filter(|d| *d != at)).collect();
        let t = view(&primitives::reshape(t, &whole)?, ViewOp::Permute(order))?;
        let all: Dims = std::iter::once(b).chain(own).collect();
        primitives::reshape(&t, &all)
    }

    pub(super) fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let (roles, result) = self.roles();
        let BatchedInput { tensor: a, batched: of_a } = &batch.inputs[0];
        let BatchedInput { tensor: c, batched: of_c } = &batch.inputs[1];
        let place = |first: Role| match (first, result) {
            (X, Y) | (Y, X) => BatchPlace::Batch,
            (W, Y) | (Y, W) => BatchPlace::OutChannels,
            _ => BatchPlace::InChannels,
        };
        let bias = batch.inputs.get(2);
        // Within a batch the order in memory is hidden.
        let bare = Convolve { format: MemoryFormat::Contiguous, ..self.without_bias() };
        let place = match (*of_a, *of_c) {
            (true, true) => BatchPlace::Groups,
            (true, false) => place(roles[0]),
            (false, true) => place(roles[1]),
            (false, false) => {
                // The bias alone has a batch.
                let y = apply1(&bare, &[a, c])?;
                return match bias {
                    Some(b) => Ok(smallvec![pw::add(&y, &self.broadcast_bias(&b.tensor, b.batched)?)?]),
                    None => Ok(smallvec![y]),
                };
            }
        };
        let side = |t: &Tensor, role: Role, batched: bool| if batched { self.merged(t, role, place) } else { Ok(t.clone()) };
        let (a, c) = (side(a, roles[0], *of_a)?, side(c, roles[1], *of_c)?);
        let shape = self.batched_shape(place, batch.size);
        let within = bias.filter(|b| !b.batched && place == BatchPlace::Batch);
        let y = match within {
            Some(b) => apply1(&Convolve { shape, pass: self.pass, ..bare }, &[&a, &c, &b.tensor])?,
            None => apply1(&Convolve { shape, ..bare }, &[&a, &c])?,
        };
        let y = self.split(&y, result, place, batch.size)?;
        Ok(smallvec![match bias {
            Some(b) if within.is_none() => pw::add(&y, &self.broadcast_bias(&b.tensor, b.batched)?)?,
            _ => y,
        }])
    }
}

impl Vjp for Convolve {
    fn node_name(&self) -> Name {
        if self.is_gradient && self.pass != (ConvPass::Forward { bias: false }) {
            "ConvolutionBackwardBackward0"
        } else {
            "ConvolutionBackward0"
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let s = &self.shape;
        let mut all: SavedAttributes = smallvec![
            ("dilation", self.numbers(&s.dilation)),
            ("groups", SavedAttribute::at(s.groups)),
            ("output_padding", SavedAttribute::sizes(&self.output_padding)),
            ("padding", self.numbers(&s.padding)),
            ("stride", self.numbers(&s.stride)),
            ("transposed", SavedAttribute::Bool(self.transposed)),
        ];
        let (roles, result) = self.roles();
        let of = |role: Role| roles.iter().position(|r| *r == role).map_or(SavedAttribute::Nothing, SavedAttribute::Input);
        // The input of a transposed convolution is y.
        let (input, output) = if self.transposed { (Y, X) } else { (X, Y) };
        all.extend([("input", of(input)), ("weight", of(W))]);
        if result == output {
            let channels = self.tensor_shape(output)[1];
            all.push(("bias_sym_sizes_opt", SavedAttribute::sizes(&[if self.has_bias() { channels } else { 0 }])));
        } else {
            all.push(("grad_output", of(output)));
        }
        all
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        // As for products of matrices (`addmm`), the first operand is free before its gradient is allocated.
        let b = if cx.needs(1) { Some(self.gradient(1, g, &cx.input(0)?)?) } else { None };
        cx.forget_input(0);
        let a = if cx.needs(0) { Some(self.gradient(0, g, &cx.input(1)?)?) } else { None };
        let mut grads = smallvec![a, b];
        if self.has_bias() {
            grads.push(if cx.needs(2) { Some(self.bias_gradient(g)?) } else { None });
        }
        Ok(grads)
    }
}

impl Op for Convolve {
    fn name(&self) -> &'static str {
        if self.is_gradient { "convolution_backward" } else { "convolution" }
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let dense = ins.iter().map(|a| a.contiguous()).collect::<Result<SmallVec<[Array; 3]>>>()?;
        let refs: SmallVec<[&Array; 3]> = dense.iter().collect();
        let request = Request::Conv(Conv { op: self.name(), pass: self.pass, shape: self.shape });
        let made = Array::request1(request, &refs, &self.result_shape(), ins[0].dtype())?;
        Ok(smallvec![if self.format == MemoryFormat::Contiguous { made } else { made.copy_in(self.format)? }])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        // In units of one element read from memory, which is worth about eight products.
        let products = self.shape.multiply_adds();
        let elements = ins.iter().map(|a| a.numel()).sum::<usize>() + self.result_shape().iter().product::<usize>();
        elements.max(products / 8)
    }
    fn grows(&self) -> bool {
        // With a stride there are places between those that the inputs reach.
        matches!(self.pass, ConvPass::Input { .. })
    }
    fn flops(&self) -> u64 {
        let s = &self.shape;
        let sizes = [s.batch, s.groups, s.in_channels, s.out_channels];
        sizes.iter().chain(&s.kernel).chain(&s.output).fold(2, |n, k| n.saturating_mul(*k as u64))
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let mut saves = Saves::NOTHING;
        if needs[0] {
            saves = saves.input(1);
        }
        if needs[1] {
            saves = saves.input(0);
        }
        saves
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        if !self.has_bias() {
            return cx.multilinear();
        }
        let (op, mut sum) = (self.without_bias(), None::<Tensor>);
        let mut add = |t: Tensor| -> Result<()> {
            sum = Some(match sum.take() {
                Some(s) => pw::add(&s, &t)?,
                None => t,
            });
            Ok(())
        };
        if let Some(t) = cx.tangent(0) {
            add(apply1(&op, &[t, cx.primal(1)])?)?;
        }
        if let Some(t) = cx.tangent(1) {
            add(apply1(&op, &[cx.primal(0), t])?)?;
        }
        if let Some(t) = cx.tangent(2) {
            let whole = view(&self.broadcast_bias(t, false)?, ViewOp::Expand(cx.output(0).shape()))?;
            add(primitives::contiguous_copy(&whole)?)?;
        }
        Ok(smallvec![sum])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_is_made_of_the_other_two() {
        let one = [1; 3];
        let shape = ConvShape {
            batch: 1,
            groups: 1,
            in_channels: 1,
            out_channels: 1,
            input: one,
            output: one,
            kernel: one,
            stride: one,
            dilation: one,
            padding: [0; 3],
        };
        let pass = ConvPass::Forward { bias: true };
        let op = Convolve {
            pass,
            shape,
            dims: 2,
            transposed: false,
            output_padding: smallvec![0, 0],
            is_gradient: false,
            format: MemoryFormat::Contiguous,
        };
        assert_eq!([op.making(X).roles(), op.making(W).roles(), op.making(Y).roles()], [([Y, W], X), ([Y, X], W), ([X, W], Y)]);
    }
}
