//! Views as arithmetic on layouts.

use crate::array::Array;
use crate::autograd::tensor::{MathBits, Value};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, Strides};

/// A zero-copy view: arithmetic on a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewOp {
    /// Another shape with the same elements.
    View(Dims),
    Expand(Dims),
    Transpose(usize, usize),
    Permute(Dims),
    Unsqueeze(usize),
    /// Drops these dimensions of size 1.
    Squeeze(Dims),
    Select(usize, usize),
    Slice {
        dim: usize,
        start: usize,
        end: usize,
        step: usize,
    },
    Diagonal {
        offset: i64,
        dim1: usize,
        dim2: usize,
    },
    Unfold {
        dim: usize,
        size: usize,
        step: usize,
    },
    AsStrided {
        shape: Dims,
        strides: Strides,
        offset: usize,
    },
    /// Complex numbers as pairs of real ones, in a last dimension of 2.
    AsReal,
    /// Pairs of real numbers as complex ones.
    AsComplex,
    /// The same elements conjugated, negated or both.
    Bits(MathBits),
    /// The same layout: the view of its input that a custom Function returns.
    Alias,
}

impl ViewOp {
    /// The view's layout over an array of `capacity` elements.
    pub(in crate::autograd) fn layout(&self, of: &Layout, capacity: usize) -> Result<Layout> {
        Ok(match self {
            ViewOp::View(shape) => of.view(shape).ok_or_else(|| {
                Error::runtime(
                    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous \
                     subspaces). Use .reshape(...) instead.",
                )
            })?,
            ViewOp::Expand(shape) => of.expand(shape)?,
            ViewOp::Transpose(a, b) => of.transpose(*a, *b),
            ViewOp::Permute(dims) => of.permute(dims),
            ViewOp::Unsqueeze(dim) => of.unsqueeze(*dim),
            ViewOp::Squeeze(dims) => of.squeeze(|d| dims.contains(&d)),
            ViewOp::Select(dim, i) => of.select(*dim, *i as i64)?,
            ViewOp::Slice { dim, start, end, step } => of.slice(*dim, *start, *end, *step),
            ViewOp::Diagonal { offset, dim1, dim2 } => of.diagonal(*offset, *dim1, *dim2)?,
            ViewOp::Unfold { dim, size, step } => of.unfold(*dim, *size, *step)?,
            ViewOp::AsStrided { shape, strides, offset } => Layout::as_strided(shape, strides, *offset, capacity)?,
            ViewOp::AsReal => of.as_pairs()?,
            ViewOp::AsComplex => of.from_pairs()?,
            ViewOp::Alias | ViewOp::Bits(_) => of.clone(),
        })
    }

    /// The operation with a leading batch dimension. `as_strided` needs the batch's stride, and is None without it.
    pub(crate) fn shifted(&self, size: usize, stride: Option<isize>) -> Option<ViewOp> {
        let with = |shape: &Dims| {
            let mut out = Dims::from_slice(&[size]);
            out.extend_from_slice(shape);
            out
        };
        let behind = |dims: &Dims| dims.iter().map(|d| d + 1).collect::<Dims>();
        Some(match self {
            ViewOp::View(shape) => ViewOp::View(with(shape)),
            ViewOp::Expand(shape) => ViewOp::Expand(with(shape)),
            ViewOp::Transpose(a, b) => ViewOp::Transpose(a + 1, b + 1),
            ViewOp::Permute(dims) => {
                let mut out = Dims::from_slice(&[0]);
                out.extend(behind(dims));
                ViewOp::Permute(out)
            }
            ViewOp::Unsqueeze(d) => ViewOp::Unsqueeze(d + 1),
            ViewOp::Squeeze(dims) => ViewOp::Squeeze(behind(dims)),
            ViewOp::Select(d, i) => ViewOp::Select(d + 1, *i),
            ViewOp::Slice { dim, start, end, step } => ViewOp::Slice { dim: dim + 1, start: *start, end: *end, step: *step },
            ViewOp::Diagonal { offset, dim1, dim2 } => ViewOp::Diagonal { offset: *offset, dim1: dim1 + 1, dim2: dim2 + 1 },
            ViewOp::Unfold { dim, size, step } => ViewOp::Unfold { dim: dim + 1, size: *size, step: *step },
            ViewOp::AsStrided { shape, strides, offset } => {
                let mut all = Strides::from_slice(&[stride?]);
                all.extend_from_slice(strides);
                ViewOp::AsStrided { shape: with(shape), strides: all, offset: *offset }
            }
            ViewOp::AsReal => ViewOp::AsReal,
            ViewOp::AsComplex => ViewOp::AsComplex,
            ViewOp::Bits(bits) => ViewOp::Bits(*bits),
            ViewOp::Alias => ViewOp::Alias,
        })
    }

    /// The view of a value of level 0.
    ///
    /// # Errors
    /// The layout allows no such view, or a lazy conjugate is viewed as pairs of real numbers, of which it would negate every second.
    pub(crate) fn of_value(&self, value: &Value) -> Result<Value> {
        let bits = value.bits();
        Ok(match (self, value) {
            (ViewOp::Bits(more), value) => Value::of(value.bottom(), bits.toggled(*more)),
            (_, Value::Array(a)) => Value::Array(self.apply_to(a)?),
            (ViewOp::AsReal, _) if bits.conj => {
                return Err(Error::runtime(
                    "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as \
                     real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.",
                ));
            }
            (_, value) => Value::of(self.apply_to(&value.bottom())?, bits),
        })
    }

    /// The view of an array whose elements are read as they lie in memory. `Bits` are computed.
    pub(crate) fn apply_to(&self, a: &Array) -> Result<Array> {
        if let ViewOp::Bits(bits) = self {
            return bits.apply(a.clone());
        }
        let capacity = a.storage().bytes() / a.storage().element_size(a.dtype());
        let layout = self.layout(a.layout(), capacity)?;
        match self {
            ViewOp::AsReal => a.with_parts(layout, a.dtype().row().real),
            ViewOp::AsComplex => a.with_parts(layout, a.dtype().to_complex(a.dtype())),
            _ => a.with_layout(layout),
        }
    }

    /// The names of the nodes of the view and of its adjoint.
    pub(in crate::autograd) fn node_names(&self) -> [&'static str; 2] {
        match self {
            ViewOp::View(_) => ["ViewBackward0", "ViewBackwardBackward0"],
            ViewOp::Expand(_) => ["ExpandBackward0", "ExpandBackwardBackward0"],
            ViewOp::Transpose(..) => ["TransposeBackward0", "TransposeBackwardBackward0"],
            ViewOp::Permute(_) => ["PermuteBackward0", "PermuteBackwardBackward0"],
            ViewOp::Unsqueeze(_) => ["UnsqueezeBackward0", "UnsqueezeBackwardBackward0"],
            ViewOp::Squeeze(_) => ["SqueezeBackward0", "SqueezeBackwardBackward0"],
            ViewOp::Select(..) => ["SelectBackward0", "SelectBackwardBackward0"],
            ViewOp::Slice { .. } => ["SliceBackward0", "SliceBackwardBackward0"],
            ViewOp::Diagonal { .. } => ["DiagonalBackward0", "DiagonalBackwardBackward0"],
            ViewOp::Unfold { .. } => ["UnfoldBackward0", "UnfoldBackwardBackward0"],
            ViewOp::AsStrided { .. } => ["AsStridedBackward0", "AsStridedBackwardBackward0"],
            ViewOp::AsReal => ["ViewAsRealBackward0", "ViewAsRealBackwardBackward0"],
            ViewOp::AsComplex => ["ViewAsComplexBackward0", "ViewAsComplexBackwardBackward0"],
            ViewOp::Bits(MathBits { conj: true, .. }) => ["ConjBackward0", "ConjBackwardBackward0"],
            ViewOp::Bits(_) => ["NegViewBackward0", "NegViewBackwardBackward0"],
            ViewOp::Alias => ["AliasBackward0", "AliasBackwardBackward0"],
        }
    }
}

/// A name of a view's node other than its operation's, and which attributes the node then has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewName {
    pub node: &'static str,
    pub attributes: ShownAttributes,
}

/// Which of a view's attributes its node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownAttributes {
    All,
    AllBut(&'static str),
    Nothing,
}

impl From<&'static str> for ViewName {
    fn from(node: &'static str) -> ViewName {
        ViewName { node, attributes: ShownAttributes::All }
    }
}
