//! The operation behind recurrent layers: all steps of one layer in one direction. Derivatives of the second order and what
//! transforms need are composed of operations (`steps`). Not here: layers and directions (`recurrent`).

use super::join::{cat, stack};
use super::matmul::linear;
use super::pointwise as pw;
use super::shape::{alias, narrow};
use crate::array::Array;
use crate::autograd::dispatch::mode::ModeGuard;
use crate::autograd::engine::{self, Options};
use crate::autograd::{Arrays, Grads, Name, Op, Saves, Tensor, Vjp, VjpCx, mode};
use crate::call::{self, Family, RecurrentCell, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar};
use smallvec::{SmallVec, smallvec};

/// Of the products of the inputs (n, gates), weights, the first state, of a GRU the biases of the state's products, of an LSTM the first cell
/// and perhaps the weights of a projection: all states, of an LSTM all cells, what is kept for the backward pass, the last state (and cell).
#[derive(Debug, Clone)]
pub(super) struct RecurrentLayer {
    pub cell: RecurrentCell,
    pub reverse: bool,
    pub batches: SmallVec<[usize; 8]>,
    pub hidden: usize,
    pub state: usize,
    /// States are (steps, batch, state) instead of (n, state): all sequences have all steps.
    pub dense: bool,
}

/// All states, the last state, and of an LSTM the last cell.
pub(super) type LayerResults = SmallVec<[Tensor; 3]>;

impl RecurrentLayer {
    fn request(&self, backward: bool) -> call::Recurrent {
        let (cell, reverse, batches) = (self.cell, self.reverse, self.batches.clone());
        call::Recurrent { cell, backward, reverse, batches, hidden: self.hidden, state: self.state }
    }

    fn run(&self, backward: bool, ins: &[&Array], dtype: DType) -> Result<SmallVec<[Array; 6]>> {
        let request = self.request(backward);
        let shapes = request.results();
        let outs: SmallVec<[(&[usize], DType); 6]> = shapes.iter().map(|s| (&s[..], dtype)).collect();
        let dense = ins.iter().map(|a| a.contiguous()).collect::<Result<SmallVec<[Array; 12]>>>()?;
        let refs: SmallVec<[&Array; 12]> = dense.iter().collect();
        Ok(Array::request(Request::Recurrent(request), &refs, &outs)?.into_iter().collect())
    }

    fn outputs(&self) -> usize {
        self.request(false).results().len()
    }

    /// The places of what is differentiable among the outputs: all states, the last state, the last cell.
    pub fn results(&self) -> SmallVec<[usize; 3]> {
        let n = self.outputs();
        if self.cell.is_lstm() { smallvec![0, n - 2, n - 1] } else { smallvec![0, n - 1] }
    }

    /// As the operation, composed of operations: all states, the last state, and of an LSTM the last cell.
    pub fn steps(&self, ins: &[&Tensor]) -> Result<LayerResults> {
        let (x, weight, first) = (ins[0], ins[1], ins[2]);
        let bias = (self.cell == RecurrentCell::Gru).then(|| ins[3]);
        let first_cell = self.cell.is_lstm().then(|| ins[3]);
        let projection = self.cell.is_projected().then(|| ins[4]);
        let count = self.batches.len();
        let mut starts: SmallVec<[usize; 8]> = SmallVec::new();
        let mut next = 0;
        for n in &self.batches {
            starts.push(next);
            next += n;
        }
        let rows = |t: &Tensor, start: usize, n: usize| {
            if start == 0 && t.shape()[0] == n { Ok(t.clone()) } else { narrow(t, 0, start as i64, n as i64) }
        };
        let start = if self.reverse { self.batches.last() } else { self.batches.first() }.copied().unwrap_or(0);
        let mut now: SmallVec<[Tensor; 2]> = smallvec![rows(first, 0, start)?];
        if let Some(c) = first_cell {
            now.push(rows(c, 0, start)?);
        }
        let firsts: SmallVec<[&Tensor; 2]> = std::iter::once(first).chain(first_cell).collect();
        // States (and cells) of sequences that have ended, the longest last.
        let mut ended: Vec<SmallVec<[Tensor; 2]>> = Vec::new();
        let mut states: Vec<Tensor> = Vec::with_capacity(count);
        for k in 0..count {
            let step = if self.reverse { count - 1 - k } else { k };
            let (n, have) = (self.batches[step], now[0].shape()[0]);
            if n < have {
                ended.push(now.iter().map(|t| rows(t, n, have - n)).collect::<Result<_>>()?);
                now = now.iter().map(|t| rows(t, 0, n)).collect::<Result<_>>()?;
            } else if n > have {
                now = now.iter().zip(&firsts).map(|(t, f)| cat(&[t.clone(), rows(f, have, n - have)?], 0)).collect::<Result<_>>()?;
            }
            now = step_of(self.cell, &rows(x, starts[step], n)?, &linear(&now[0], weight, bias)?, &now)?;
            if let Some(w) = projection {
                now[0] = linear(&now[0], w, None)?;
            }
            states.push(now[0].clone());
        }
        if self.reverse {
            states.reverse();
        }
        let all = if states.is_empty() {
            rows(first, 0, 0)?
        } else if self.dense {
            stack(&states, 0)?
        } else {
            cat(&states, 0)?
        };
        let mut made: LayerResults = smallvec![all];
        for (at, last) in now.iter().enumerate() {
            let parts: Vec<Tensor> = std::iter::once(last.clone()).chain(ended.iter().rev().map(|e| e[at].clone())).collect();
            made.push(if parts.len() == 1 { last.clone() } else { cat(&parts, 0)? });
        }
        Ok(made)
    }

    /// The gradients by the kernel.
    fn gradients(&self, cx: &VjpCx<'_>, ins: &[Tensor], grads: &Grads) -> Result<Grads> {
        let dtype = ins[0].dtype();
        let lstm = self.cell.is_lstm();
        let arrays: SmallVec<[Array; 6]> = ins.iter().map(Tensor::array).collect::<Result<_>>()?;
        let shapes = self.request(false).results();
        let given = |at: usize| match &grads[at] {
            Some(g) => flat(&g.array()?, &shapes[at]),
            None => arrays[0].full_beside(&shapes[at], Scalar::Int(0), dtype),
        };
        let mut all: SmallVec<[Array; 12]> = self.results().iter().map(|at| given(*at)).collect::<Result<_>>()?;
        all.push(flat(&cx.output(0)?.array()?, &shapes[0])?);
        if lstm {
            all.push(cx.output(1)?.array()?);
        }
        if self.cell.kept() > 0 {
            all.push(cx.output(if lstm { 2 } else { 1 })?.array()?);
        }
        let mut operands = arrays[1..].iter().cloned().collect::<SmallVec<[Array; 6]>>();
        if self.cell == RecurrentCell::Gru {
            operands[2] = flat(&operands[2], &[1, 3 * self.hidden])?;
        }
        all.extend(operands);
        let refs: SmallVec<[&Array; 12]> = all.iter().collect();
        let mut made = self.run(true, &refs, dtype)?.into_iter();
        let mut next = || made.next().ok_or_else(|| Error::internal("recurrent", "a gradient is missing"));
        let dx = next()?;
        let dproduct = if self.cell == RecurrentCell::Gru { Some(next()?) } else { None };
        let before = next()?;
        let mut out = Grads::from_elem(None, cx.node.edges().len());
        let mut put = |at: usize, a: Array| {
            if cx.needs(at) {
                out[at] = Some(Tensor::new(a));
            }
        };
        if cx.needs(1) {
            // One product over all steps.
            put(1, dproduct.as_ref().unwrap_or(&dx).matmul(&before, (true, false))?);
        }
        put(2, next()?);
        if let Some(d) = &dproduct {
            put(3, d.sum(&[true, false], false)?);
        }
        if lstm {
            put(3, next()?);
        }
        if self.cell.is_projected() {
            let (d, raw) = (next()?, next()?);
            put(4, d.matmul(&raw, (true, false))?);
        }
        put(0, dx);
        Ok(out)
    }

    /// The gradients with a graph: those of `steps`, by a pass of its own.
    fn composed_gradients(&self, cx: &VjpCx<'_>, ins: &[Tensor], grads: &Grads) -> Result<Grads> {
        // Each input is a tensor of its own, whose gradient is its own even if one tensor was given twice.
        // The steps are recorded even if their gradients are not.
        let recording = ModeGuard::grad(true);
        let own = ins.iter().map(alias).collect::<Result<SmallVec<[Tensor; 6]>>>()?;
        let refs: SmallVec<[&Tensor; 6]> = own.iter().collect();
        let made = self.steps(&refs)?;
        drop(recording);
        let mut roots = Vec::new();
        for (at, t) in self.results().iter().zip(&made) {
            if let (Some(g), Some(edge)) = (&grads[*at], t.gradient_edge()?) {
                roots.push((edge, g.clone()));
            }
        }
        let mut inputs = Vec::new();
        let mut places = Vec::new();
        for (i, t) in own.iter().enumerate() {
            if cx.needs(i)
                && let Some(edge) = t.gradient_edge()?
            {
                inputs.push(edge);
                places.push(i);
            }
        }
        let mut out = Grads::from_elem(None, cx.node.edges().len());
        if inputs.is_empty() || roots.is_empty() {
            return Ok(out);
        }
        let options = Options { retain_graph: true, create_graph: mode::is_grad_enabled(), inputs, ..Default::default() };
        for (at, g) in places.into_iter().zip(engine::run(roots, &options)?) {
            out[at] = g;
        }
        Ok(out)
    }
}

fn flat(a: &Array, shape: &[usize]) -> Result<Array> {
    if a.shape() == shape {
        return Ok(a.clone());
    }
    match a.layout().view(shape) {
        Some(layout) => a.with_layout(layout),
        None => a.contiguous_copy()?.with_layout(Layout::contiguous(shape)),
    }
}

/// One step: the new state (before a projection) and cell, from the products of input and state, and state and cell before.
pub(super) fn step_of(kind: RecurrentCell, x: &Tensor, product: &Tensor, before: &[Tensor]) -> Result<SmallVec<[Tensor; 2]>> {
    let gates = kind.gates();
    let hidden = (x.shape().last().copied().unwrap_or(0) / gates) as i64;
    let gate = |t: &Tensor, k: usize| narrow(t, -1, k as i64 * hidden, hidden);
    Ok(match kind {
        RecurrentCell::Tanh => smallvec![pw::tanh(&pw::add(x, product)?)?],
        RecurrentCell::Relu => smallvec![pw::relu(&pw::add(x, product)?)?],
        RecurrentCell::Gru => {
            let both = |k: usize| pw::sigmoid(&pw::add(&gate(x, k)?, &gate(product, k)?)?);
            let (r, z) = (both(0)?, both(1)?);
            let new = pw::tanh(&pw::add(&gate(x, 2)?, &pw::mul(&r, &gate(product, 2)?)?)?)?;
            smallvec![pw::add(&pw::mul(&pw::sub(&before[0], &new)?, &z)?, &new)?]
        }
        RecurrentCell::Lstm { .. } => {
            let all = pw::add(x, product)?;
            let (i, f) = (pw::sigmoid(&gate(&all, 0)?)?, pw::sigmoid(&gate(&all, 1)?)?);
            let (g, o) = (pw::tanh(&gate(&all, 2)?)?, pw::sigmoid(&gate(&all, 3)?)?);
            let cell = pw::add(&pw::mul(&f, &before[1])?, &pw::mul(&i, &g)?)?;
            smallvec![pw::mul(&o, &pw::tanh(&cell)?)?, cell]
        }
    })
}

impl Vjp for RecurrentLayer {
    fn node_name(&self) -> Name {
        if self.dense { "StackBackward0" } else { "CatBackward0" }.into()
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let count = cx.node.edges().len();
        let ins = (0..count).map(|i| cx.input(i)).collect::<Result<SmallVec<[Tensor; 6]>>>()?;
        let bare = ins.iter().chain(grads.iter().flatten()).all(Tensor::is_bare);
        if !mode::is_grad_enabled() && bare {
            return self.gradients(cx, &ins, grads);
        }
        self.composed_gradients(cx, &ins, grads)
    }
}

impl Op for RecurrentLayer {
    fn name(&self) -> &'static str {
        self.request(false).name()
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let mut operands: SmallVec<[Array; 6]> = ins.iter().map(|a| (*a).clone()).collect();
        if self.cell == RecurrentCell::Gru {
            operands[3] = flat(ins[3], &[1, 3 * self.hidden])?;
        }
        let refs: SmallVec<[&Array; 6]> = operands.iter().collect();
        let mut made: Arrays = self.run(false, &refs, ins[0].dtype())?.into_iter().collect();
        if self.dense {
            let shape: Dims = smallvec![self.batches.len(), self.batches.first().copied().unwrap_or(0), self.state];
            made[0] = flat(&made[0], &shape)?;
        }
        Ok(made)
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(self.state) / 8
    }
    fn flops(&self) -> u64 {
        let product = |columns: usize, sums: usize| self.batches.iter().fold(0, |n, rows| n + 2 * (rows * columns * sums) as u64);
        let projection = if self.cell.is_projected() { product(self.state, self.hidden) } else { 0 };
        product(self.cell.gates() * self.hidden, self.state) + projection
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        let mut saves = Saves::NOTHING.input(0).input(1).input(2).output(0);
        if self.cell == RecurrentCell::Gru {
            saves = saves.input(3).output(1);
        }
        if self.cell.is_lstm() {
            saves = saves.input(3).output(1).output(2);
        }
        if self.cell.is_projected() { saves.input(4) } else { saves }
    }
    fn differentiable(&self, output: usize) -> bool {
        self.results().contains(&output)
    }
}
