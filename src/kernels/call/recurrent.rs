//! Recurrent layers: all steps of one layer in one direction.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::DType;
use smallvec::SmallVec;

/// One layer in one direction, without the products of its inputs, which are made before for all steps at once.
///
/// Sequences lie packed: at each step the elements of the batch whose sequences have that step, the longest sequences first. `n` rows
/// altogether. All operands are floats of one dtype, row-major.
#[derive(Debug, Clone, Hash)]
pub struct Recurrent {
    pub cell: RecurrentCell,
    pub backward: bool,
    /// The last step first.
    pub reverse: bool,
    /// How many sequences have each step; it never increases.
    pub batches: SmallVec<[usize; 8]>,
    pub hidden: usize,
    /// The size of the projected state, which is `hidden` without a projection.
    pub state: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecurrentCell {
    Tanh,
    Relu,
    /// The biases of the state's product are an operand, since they are inside of a factor.
    Gru,
    Lstm {
        projected: bool,
    },
}

impl RecurrentCell {
    /// How many gates the products have.
    pub fn gates(self) -> usize {
        match self {
            RecurrentCell::Tanh | RecurrentCell::Relu => 1,
            RecurrentCell::Gru => 3,
            RecurrentCell::Lstm { .. } => 4,
        }
    }

    pub fn is_lstm(self) -> bool {
        matches!(self, RecurrentCell::Lstm { .. })
    }

    pub fn is_projected(self) -> bool {
        self == RecurrentCell::Lstm { projected: true }
    }

    /// How many numbers of each hidden unit are kept for the backward pass, beside states and cells.
    pub fn kept(self) -> usize {
        match self {
            RecurrentCell::Tanh | RecurrentCell::Relu => 0,
            RecurrentCell::Gru | RecurrentCell::Lstm { .. } => 4,
        }
    }
}

impl Recurrent {
    /// Rows of all steps.
    pub fn rows(&self) -> usize {
        self.batches.iter().sum()
    }

    /// The shapes of the operands: the products of the inputs, weights (gates * hidden, state), the first state; of a GRU the biases; of an
    /// LSTM the first cell, and the weights of a projection (state, hidden). Backward in front of them: the gradients of all states and of
    /// the last state (and cell), and what the forward pass has made but for the last state and cell.
    pub fn operands(&self) -> SmallVec<[[usize; 2]; 12]> {
        let (n, b, h, p) = (self.rows(), self.batches.first().copied().unwrap_or(0), self.hidden, self.state);
        let g = self.cell.gates() * h;
        let mut all: SmallVec<[[usize; 2]; 12]> = SmallVec::new();
        if self.backward {
            all.extend([[n, p], [b, p]]);
            if self.cell.is_lstm() {
                all.push([b, h]);
            }
            all.push([n, p]);
            if self.cell.is_lstm() {
                all.push([n, h]);
            }
            if self.cell.kept() > 0 {
                all.push([n, self.cell.kept() * h]);
            }
        } else {
            all.push([n, g]);
        }
        all.extend([[g, p], [b, p]]);
        match self.cell {
            RecurrentCell::Gru => all.push([1, g]),
            RecurrentCell::Lstm { projected } => {
                all.push([b, h]);
                if projected {
                    all.push([p, h]);
                }
            }
            RecurrentCell::Tanh | RecurrentCell::Relu => {}
        }
        all
    }

    /// The shapes of the outputs. Forward: all states, of an LSTM all cells, what is kept for the backward pass, the last state (and cell).
    /// Backward: the gradients of the inputs' products, of a GRU also of the state's products, the states before each step, the gradient of
    /// the first state (and cell), and with a projection the gradients of all states and the states before it.
    pub fn results(&self) -> SmallVec<[[usize; 2]; 6]> {
        let (n, b, h, p) = (self.rows(), self.batches.first().copied().unwrap_or(0), self.hidden, self.state);
        let g = self.cell.gates() * h;
        let mut all: SmallVec<[[usize; 2]; 6]> = SmallVec::new();
        if self.backward {
            all.push([n, g]);
            if self.cell == RecurrentCell::Gru {
                all.push([n, g]);
            }
            all.push([n, p]);
        } else {
            all.push([n, p]);
            if self.cell.is_lstm() {
                all.push([n, h]);
            }
            if self.cell.kept() > 0 {
                all.push([n, self.cell.kept() * h]);
            }
        }
        all.push([b, p]);
        if self.cell.is_lstm() {
            all.push([b, h]);
        }
        if self.backward && self.cell.is_projected() {
            all.extend([[n, p], [n, h]]);
        }
        all
    }
}

impl Family for Recurrent {
    fn name(&self) -> &'static str {
        match self.cell {
            RecurrentCell::Tanh => "rnn_tanh",
            RecurrentCell::Relu => "rnn_relu",
            RecurrentCell::Gru => "gru",
            RecurrentCell::Lstm { .. } => "lstm",
        }
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let Some((_, dtype)) = outs.first().copied().flatten() else { return false };
        let fits = |seen: &Seen<'_>, shape: &[usize; 2]| seen.is_some_and(|(s, d): (&[usize], DType)| d == dtype && s == shape);
        let (operands, results) = (self.operands(), self.results());
        dtype.is_float()
            && self.batches.is_sorted_by(|a, b| a >= b)
            && (self.state == self.hidden || self.cell.is_projected())
            && ins.len() == operands.len()
            && outs.len() == results.len()
            && ins.iter().zip(&operands).all(|(i, s)| fits(i, s))
            && outs.iter().zip(&results).all(|(o, s)| fits(o, s))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        self.results().len()
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        let cells = [RecurrentCell::Tanh, RecurrentCell::Relu, RecurrentCell::Gru, RecurrentCell::Lstm { projected: false }];
        let of = |cell| Recurrent { cell, backward: false, reverse: false, batches: SmallVec::from_elem(1, 1), hidden: 1, state: 1 };
        cells.map(of).into()
    }
}
