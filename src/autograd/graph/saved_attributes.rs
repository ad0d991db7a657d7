//! Saved attributes: what a node keeps for its backward, under PyTorch's names (`_saved_self`, `_saved_dim`, ...).

use crate::autograd::dispatch::op::Saves;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::graph::view::ViewOp;
use crate::layout::Scalar;
use smallvec::{SmallVec, smallvec};

/// The value of a saved attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedAttribute {
    /// Input `i` of the operation; None where no gradient needs it.
    Input(usize),
    /// Inputs `.0` up to `.1` (exclusive), as one list.
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

impl SavedAttribute {
    pub fn sizes(shape: &[usize]) -> SavedAttribute {
        SavedAttribute::Ints(shape.iter().map(|n| *n as i64).collect())
    }

    pub fn at(i: usize) -> SavedAttribute {
        SavedAttribute::Int(i as i64)
    }
}

/// Names and values.
pub type SavedAttributes = SmallVec<[(&'static str, SavedAttribute); 4]>;

impl Node {
    /// The node's saved attributes, under PyTorch's names; none for custom Functions and leaves.
    pub fn saved_attributes(&self) -> SavedAttributes {
        match self.op() {
            NodeOp::Pointwise(p) => p.saved_attributes(),
            NodeOp::Other(o) => o.saved_attributes(),
            NodeOp::Accumulate(_) => SavedAttributes::new(),
        }
    }

    /// The position of a saved input (`bit` i) or output (`bit` `Saves::FIRST_OUTPUT` + j); None if it was not saved.
    pub fn position_of(&self, bit: usize) -> Option<usize> {
        self.saves.has(bit).then(|| self.saves.position(bit))
    }

    /// The positions of all saved values in the order in which PyTorch packs and unpacks them: inputs by name, then outputs by name.
    pub(in crate::autograd) fn saved_order(&self) -> SmallVec<[usize; 4]> {
        let mut attributes = self.saved_attributes();
        attributes.sort_by_key(|(name, _)| *name);
        let named = attributes.iter().flat_map(|(_, attribute)| match attribute {
            SavedAttribute::Input(i) => *i..i + 1,
            SavedAttribute::Inputs(from, to) => *from..*to,
            _ => 0..0,
        });
        let outputs = attributes
            .iter()
            .filter_map(|(_, attribute)| if let SavedAttribute::Output(j) = attribute { Some(Saves::FIRST_OUTPUT + j) } else { None });
        let mut order: SmallVec<[usize; 4]> = SmallVec::new();
        // Values without a name come last.
        for position in named.chain(outputs).filter_map(|bit| self.position_of(bit)).chain(0..self.saved_len()) {
            if !order.contains(&position) {
                order.push(position);
            }
        }
        order
    }
}

impl ViewOp {
    /// The saved attributes of a view's node; `of` is the shape of its input.
    pub(in crate::autograd) fn saved_attributes(&self, of: &[usize]) -> SavedAttributes {
        let sizes = ("self_sym_sizes", SavedAttribute::sizes(of));
        match self {
            ViewOp::View(_) | ViewOp::Expand(_) => smallvec![sizes],
            ViewOp::Transpose(a, b) => smallvec![("dim0", SavedAttribute::at(*a)), ("dim1", SavedAttribute::at(*b))],
            ViewOp::Permute(dims) => smallvec![("dims", SavedAttribute::sizes(dims))],
            ViewOp::Unsqueeze(dim) => smallvec![("dim", SavedAttribute::at(*dim))],
            ViewOp::Squeeze(dims) => smallvec![("dim", SavedAttribute::sizes(dims)), sizes],
            ViewOp::Select(dim, i) => smallvec![("dim", SavedAttribute::at(*dim)), ("index", SavedAttribute::at(*i)), sizes],
            ViewOp::Slice { dim, start, end, step } => {
                smallvec![
                    ("dim", SavedAttribute::at(*dim)),
                    ("start", SavedAttribute::at(*start)),
                    ("end", SavedAttribute::at(*end)),
                    ("step", SavedAttribute::at(*step)),
                    sizes,
                ]
            }
            ViewOp::Diagonal { offset, dim1, dim2 } => {
                smallvec![
                    ("offset", SavedAttribute::Int(*offset)),
                    ("dim1", SavedAttribute::at(*dim1)),
                    ("dim2", SavedAttribute::at(*dim2)),
                    sizes
                ]
            }
            ViewOp::Unfold { dim, size, step } => {
                smallvec![
                    ("dimension", SavedAttribute::at(*dim)),
                    ("size", SavedAttribute::at(*size)),
                    ("step", SavedAttribute::at(*step)),
                    sizes
                ]
            }
            ViewOp::AsStrided { shape, strides, offset } => smallvec![
                ("size", SavedAttribute::sizes(shape)),
                ("stride", SavedAttribute::Ints(strides.iter().map(|s| *s as i64).collect())),
                ("storage_offset", SavedAttribute::at(*offset)),
            ],
            ViewOp::Alias | ViewOp::AsReal | ViewOp::AsComplex | ViewOp::Bits(_) => SavedAttributes::new(),
        }
    }
}
