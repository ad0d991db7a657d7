//! What a node keeps for its backward, under PyTorch's names (`_saved_self`, `_saved_dim`, ...).

use crate::autograd::dispatch::apply::Saves;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::graph::view::ViewOp;
use crate::layout::Scalar;
use smallvec::{SmallVec, smallvec};

/// One thing that a node keeps.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// Input `i` of the operation; None where no gradient needs it.
    Input(usize),
    /// The inputs from `.0` up to and without `.1`, as one list.
    Inputs(usize, usize),
    /// Output `j` of the operation.
    Output(usize),
    Int(i64),
    Ints(SmallVec<[i64; 4]>),
    Bool(bool),
    Number(Scalar),
    Text(&'static str),
    Nothing,
}

impl Kept {
    pub fn sizes(shape: &[usize]) -> Kept {
        Kept::Ints(shape.iter().map(|n| *n as i64).collect())
    }

    pub fn at(i: usize) -> Kept {
        Kept::Int(i as i64)
    }
}

/// Names and what they stand for.
pub type Keeps = SmallVec<[(&'static str, Kept); 4]>;

impl Node {
    /// What the node keeps, by PyTorch's names; nothing for custom Functions and leaves.
    pub fn keeps(&self) -> Keeps {
        match self.op() {
            NodeOp::Pointwise(p) => p.kept(),
            NodeOp::Other(o) => o.keeps(),
            NodeOp::Accumulate(_) => Keeps::new(),
        }
    }

    /// The place where a saved input (`bit` i) or output (`bit` `Saves::FIRST_OUTPUT` + j) lies; None if it was not saved.
    pub fn place_of(&self, bit: usize) -> Option<usize> {
        self.saves.has(bit).then(|| self.saves.place(bit))
    }

    /// The places of all saved values in the order in which PyTorch packs and unpacks them: inputs by name, then outputs by name.
    pub(in crate::autograd) fn saved_order(&self) -> SmallVec<[usize; 4]> {
        let mut keeps = self.keeps();
        keeps.sort_by_key(|(name, _)| *name);
        let named = keeps.iter().flat_map(|(_, kept)| match kept {
            Kept::Input(i) => *i..i + 1,
            Kept::Inputs(from, to) => *from..*to,
            _ => 0..0,
        });
        let outputs = keeps.iter().filter_map(|(_, kept)| if let Kept::Output(j) = kept { Some(Saves::FIRST_OUTPUT + j) } else { None });
        let mut order: SmallVec<[usize; 4]> = SmallVec::new();
        // What has no name comes last, as it lies.
        for place in named.chain(outputs).filter_map(|bit| self.place_of(bit)).chain(0..self.saved_len()) {
            if !order.contains(&place) {
                order.push(place);
            }
        }
        order
    }
}

impl ViewOp {
    /// What a view's node keeps, given the shape of what it views.
    pub(in crate::autograd) fn keeps(&self, of: &[usize]) -> Keeps {
        let sizes = ("self_sym_sizes", Kept::sizes(of));
        match self {
            ViewOp::View(_) | ViewOp::Expand(_) => smallvec![sizes],
            ViewOp::Transpose(a, b) => smallvec![("dim0", Kept::at(*a)), ("dim1", Kept::at(*b))],
            ViewOp::Permute(dims) => smallvec![("dims", Kept::sizes(dims))],
            ViewOp::Unsqueeze(dim) => smallvec![("dim", Kept::at(*dim))],
            ViewOp::Squeeze(dims) => smallvec![("dim", Kept::sizes(dims)), sizes],
            ViewOp::Select(dim, i) => smallvec![("dim", Kept::at(*dim)), ("index", Kept::at(*i)), sizes],
            ViewOp::Slice { dim, start, end, step } => {
                smallvec![("dim", Kept::at(*dim)), ("start", Kept::at(*start)), ("end", Kept::at(*end)), ("step", Kept::at(*step)), sizes,]
            }
            ViewOp::Diagonal { offset, dim1, dim2 } => {
                smallvec![("offset", Kept::Int(*offset)), ("dim1", Kept::at(*dim1)), ("dim2", Kept::at(*dim2)), sizes]
            }
            ViewOp::Unfold { dim, size, step } => {
                smallvec![("dimension", Kept::at(*dim)), ("size", Kept::at(*size)), ("step", Kept::at(*step)), sizes]
            }
            ViewOp::AsStrided { shape, strides, offset } => smallvec![
                ("size", Kept::sizes(shape)),
                ("stride", Kept::Ints(strides.iter().map(|s| *s as i64).collect())),
                ("storage_offset", Kept::at(*offset)),
            ],
            ViewOp::Alias => Keeps::new(),
        }
    }
}
