//! Recurrent networks: layers, directions, dropout between layers, packed sequences, and single cells. Not here: the steps of one layer
//! (`recurrent_op`), modules and packing, which are Python's.

use super::dropout::dropout;
use super::join::{cat, stack};
use super::matmul::linear;
use super::pointwise as pw;
use super::recurrent_op::{LayerResults, RecurrentLayer, step_of};
use super::shape::{select, transpose};
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, apply, primitives};
pub use crate::call::RecurrentCell;
use crate::error::{Error, Result};
use crate::layout::fmt_shape;
use smallvec::{SmallVec, smallvec};

/// A whole network. Parameters are those of each layer and direction: weights of input and state, two biases if `biases`, and perhaps the
/// weights of a projection.
#[derive(Debug)]
pub struct RecurrentNetwork<'a> {
    /// The projection is read off the number of parameters.
    pub cell: RecurrentCell,
    pub parameters: &'a [Tensor],
    pub biases: bool,
    pub layers: usize,
    pub dropout: f64,
    pub train: bool,
    pub bidirectional: bool,
    pub batch_first: bool,
}

/// The result of all steps, and the last states (and cells) of all layers and directions.
pub type NetworkResults = (Tensor, SmallVec<[Tensor; 2]>);

/// The parameters of one layer in one direction.
struct LayerParameters<'a> {
    input: &'a Tensor,
    state: &'a Tensor,
    biases: Option<[&'a Tensor; 2]>,
    projection: Option<&'a Tensor>,
}

fn wrong(what: &str) -> Error {
    Error::runtime(what.to_owned())
}

fn matrix(t: &Tensor) -> Result<[usize; 2]> {
    match t.shape()[..] {
        [m, n] => Ok([m, n]),
        _ => Err(wrong(&format!("a weight of a recurrent layer must be a matrix, got the shape {}", fmt_shape(&t.shape())))),
    }
}

impl RecurrentNetwork<'_> {
    fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }

    /// All layers and directions.
    fn parts(&self) -> Result<Vec<LayerParameters<'_>>> {
        let parts = self.layers * self.directions();
        let plain = if self.biases { 4 } else { 2 };
        let projected = self.cell.is_lstm() && self.parameters.len() == parts * (plain + 1);
        let each = plain + usize::from(projected);
        if self.parameters.len() != parts * each || parts == 0 {
            return Err(wrong(&format!(
                "got an incorrect number of RNN parameters: {} for {parts} layers and directions",
                self.parameters.len()
            )));
        }
        let made = self.parameters.chunks_exact(each).map(|p| LayerParameters {
            input: &p[0],
            state: &p[1],
            biases: self.biases.then(|| [&p[2], &p[3]]),
            projection: projected.then(|| &p[each - 1]),
        });
        Ok(made.collect())
    }

    /// One layer in one direction, of rows (n, features).
    fn layer(
        &self,
        x: &Tensor,
        batches: &[usize],
        reverse: bool,
        dense: bool,
        first: &[Tensor],
        p: &LayerParameters<'_>,
    ) -> Result<LayerResults> {
        let ([rows, state], [_, features]) = (matrix(p.state)?, matrix(p.input)?);
        let projected = p.projection.is_some();
        let cell = if self.cell.is_lstm() { RecurrentCell::Lstm { projected } } else { self.cell };
        let hidden = rows / cell.gates();
        let given = x.shape();
        if given.len() != 2 || given[1] != features {
            return Err(wrong(&format!(
                "input.size(-1) must be equal to input_size. Expected {features}, got {}",
                given.last().unwrap_or(&0)
            )));
        }
        let sizes = [state, hidden];
        let batch = batches.first().copied().unwrap_or(0);
        for (t, n) in first.iter().zip(sizes) {
            if t.shape()[..] != [batch, n] {
                return Err(wrong(&format!("Expected a hidden state of size [{batch}, {n}], got {}", fmt_shape(&t.shape()))));
            }
        }
        let all = [Some(x), Some(p.state), p.projection].into_iter().flatten().chain(first).chain(p.biases.iter().flatten().copied());
        if let Some(other) = all.clone().find(|t| t.dtype() != p.input.dtype()) {
            return Err(wrong(&format!(
                "{}: expected tensors of one dtype, got {} and {}: convert the input or the parameters",
                if self.cell.is_lstm() { "lstm" } else { "rnn" },
                p.input.dtype(),
                other.dtype()
            )));
        }
        if !x.dtype().is_float() {
            return Err(Error::not_implemented(format!("\"rnn\" not implemented for '{}'", x.dtype().type_name())));
        }
        let gru = cell == RecurrentCell::Gru;
        let inner = match (p.biases, gru) {
            (Some([input, _]), true) => Some(input.clone()),
            (Some([input, state]), false) => Some(pw::add(input, state)?),
            (None, _) => None,
        };
        let product = linear(x, p.input, inner.as_ref())?;
        let (zeros, zeros_there);
        let mut ins: SmallVec<[&Tensor; 6]> = smallvec![&product, p.state, &first[0]];
        if gru {
            ins.push(match p.biases {
                Some([_, state]) => state,
                None => {
                    zeros = Tensor::new(Array::zeros(&[rows], x.dtype())?);
                    zeros_there = primitives::to_device(&zeros, x.device())?;
                    &zeros_there
                }
            });
        }
        if cell.is_lstm() {
            ins.push(&first[1]);
        }
        ins.extend(p.projection);
        let op = RecurrentLayer { cell, reverse, batches: SmallVec::from_slice(batches), hidden, state, dense };
        let wrapped = ins.iter().any(|t| t.level() > 0 || t.has_tangent());
        if wrapped || given[0] == 0 || hidden == 0 {
            return op.steps(&ins);
        }
        let made = apply(&op, &ins)?;
        Ok(op.results().iter().map(|at| made[*at].clone()).collect())
    }

    /// As `run`, while autocast is on: an LSTM runs in the smaller type; the others, whose pointwise steps PyTorch leaves in float32, run in the
    /// type of their parameters.
    fn run_autocast(&self, x: &Tensor, batches: Option<&[usize]>, first: &[Tensor]) -> Result<NetworkResults> {
        let before = autocast::setting(x.device());
        let lower = |t: &Tensor| -> Result<Tensor> { Ok(autocast::lower([t])?.of([t])[0].clone()) };
        let lstm = self.cell.is_lstm();
        let all = |ts: &[Tensor]| ts.iter().map(|t| if lstm { lower(t) } else { Ok(t.clone()) }).collect::<Result<Vec<Tensor>>>();
        let (x, parameters, first) = (if lstm { lower(x)? } else { x.clone() }, all(self.parameters)?, all(first)?);
        let network = RecurrentNetwork { parameters: &parameters, ..*self };
        autocast::set(x.device(), autocast::AutocastSetting { enabled: false, ..before });
        let made = network.run(&x, batches, &first);
        autocast::set(x.device(), before);
        made
    }

    /// Of sequences (steps, batch, features), or (n, features) packed as `batches` says; first states (layers and directions, batch, size).
    ///
    /// # Errors
    /// Shapes or dtypes do not fit.
    pub fn run(&self, x: &Tensor, batches: Option<&[usize]>, first: &[Tensor]) -> Result<NetworkResults> {
        if first.len() != 1 + usize::from(self.cell.is_lstm()) {
            return Err(wrong("lstm expects two hidden states"));
        }
        if autocast::is_on() && autocast::setting(x.device()).enabled {
            return self.run_autocast(x, batches, first);
        }
        let parts = self.parts()?;
        if let Some(t) = first.iter().find(|t| t.rank() != 3 || t.shape()[0] != parts.len()) {
            return Err(wrong(&format!("Expected hidden size ({}, batch, size), got {}", parts.len(), fmt_shape(&t.shape()))));
        }
        let x = if self.batch_first && batches.is_none() { transpose(x, 0, 1)? } else { x.clone() };
        let shape = x.shape();
        if shape.len() != if batches.is_none() { 3 } else { 2 } {
            return Err(wrong(&format!(
                "a recurrent network takes (steps, batch, features), or packed (n, features); got {}",
                fmt_shape(&shape)
            )));
        }
        let dense: SmallVec<[usize; 8]>;
        let uniform = batches.is_none();
        let batches = match batches {
            Some(b) => b,
            None => {
                dense = SmallVec::from_elem(shape[1], shape[0]);
                &dense
            }
        };
        let n = batches.iter().try_fold(0usize, |n, b| n.checked_add(*b));
        if !batches.is_sorted_by(|a, b| a >= b) || !uniform && n != Some(shape[0]) {
            return Err(wrong("batch_sizes must not increase, and must sum up to the number of rows"));
        }
        if batches.is_empty() {
            return Err(wrong("Expected sequence length to be larger than 0 in RNN"));
        }
        let mut rows = if uniform { primitives::reshape(&x, &[shape[0] * shape[1], shape[2]])? } else { x };
        let mut lasts: SmallVec<[Vec<Tensor>; 2]> = smallvec![Vec::new(); first.len()];
        let mut out = rows.clone();
        for layer in 0..self.layers {
            let mut sides = Vec::new();
            for direction in 0..self.directions() {
                let at = layer * self.directions() + direction;
                let own = first.iter().map(|t| select(t, 0, at as i64)).collect::<Result<SmallVec<[Tensor; 2]>>>()?;
                let mut made = self.layer(&rows, batches, direction == 1, uniform, &own, &parts[at])?.into_iter();
                sides.extend(made.next());
                for (lasts, last) in lasts.iter_mut().zip(made) {
                    lasts.push(last);
                }
            }
            out = match sides.pop() {
                Some(one) if sides.is_empty() => one,
                Some(last) => {
                    sides.push(last);
                    cat(&sides, -1)?
                }
                None => return Err(Error::internal("rnn", "a layer without results")),
            };
            if layer + 1 < self.layers {
                if self.train && self.dropout > 0.0 {
                    out = dropout(&out, self.dropout, true, None)?;
                }
                let width = out.shape().last().copied().unwrap_or(0);
                rows = if uniform { primitives::reshape(&out, &[shape[0] * shape[1], width])? } else { out.clone() };
            }
        }
        let out = if self.batch_first && uniform { transpose(&out, 0, 1)? } else { out };
        let lasts = lasts.iter().map(|l| stack(l, 0)).collect::<Result<_>>()?;
        Ok((out, lasts))
    }
}

/// One step of a cell: the new state, and of an LSTM the new cell. Inputs are (batch, features) or (features).
///
/// # Errors
/// Shapes do not fit.
pub fn cell(
    kind: RecurrentCell,
    x: &Tensor,
    before: &[Tensor],
    weights: [&Tensor; 2],
    biases: [Option<&Tensor>; 2],
) -> Result<SmallVec<[Tensor; 2]>> {
    let product = linear(x, weights[0], biases[0])?;
    step_of(kind, &product, &linear(&before[0], weights[1], biases[1])?, before)
}
