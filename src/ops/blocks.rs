//! Splitting and joining under NumPy's names, block matrices, and differences of neighbours.

use super::join;
use super::parts;
use super::pointwise as pw;
use super::reduce::{self};
use super::shape::{self, Views};
use crate::array::Array;
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Name, Op, Outputs, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply1, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape, wrap_dim};
use smallvec::{SmallVec, smallvec};

// ---- splitting -------------------------------------------------------------------------------------------------------

/// Where to split: into equal parts, or at positions.
#[derive(Debug, Clone, Copy)]
pub enum Cuts<'a> {
    Equal(i64),
    At(&'a [i64]),
}

/// `hsplit`, `vsplit` and `dsplit`: along `dim` of a tensor of at least `least` dimensions, into parts of one size.
fn split_named(t: &Tensor, name: &str, least: usize, dim: usize, cuts: Cuts<'_>) -> Result<Views> {
    let s = t.shape();
    if s.len() < least {
        return Err(Error::runtime(format!(
            "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {} dimensions!",
            s.len()
        )));
    }
    match cuts {
        Cuts::At(positions) => parts::tensor_split_at(t, positions, dim as i64),
        Cuts::Equal(n) if n == 0 || s[dim] as i64 % n != 0 => Err(Error::runtime(format!(
            "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {} is not divisible by the split_size {n}!",
            s[dim]
        ))),
        Cuts::Equal(n) => parts::tensor_split(t, n, dim as i64),
    }
}

/// Parts along dimension 1, or 0 for a vector.
pub fn hsplit(t: &Tensor, cuts: Cuts<'_>) -> Result<Views> {
    split_named(t, "hsplit", 1, usize::from(t.rank() > 1), cuts)
}

/// Parts along dimension 0.
pub fn vsplit(t: &Tensor, cuts: Cuts<'_>) -> Result<Views> {
    split_named(t, "vsplit", 2, 0, cuts)
}

/// Parts along dimension 2.
pub fn dsplit(t: &Tensor, cuts: Cuts<'_>) -> Result<Views> {
    split_named(t, "dsplit", 3, 2, cuts)
}

// ---- blocks ----------------------------------------------------------------------------------------------------------

/// Where a block of (rows, columns) begins.
type Corner = ((usize, usize), (usize, usize));

#[derive(Debug, Clone)]
struct BlockDiag {
    blocks: SmallVec<[Corner; 4]>,
    shapes: SmallVec<[Dims; 4]>,
    size: (usize, usize),
    dtype: DType,
}

impl BlockDiag {
    fn parts(&self) -> impl Iterator<Item = [ViewOp; 2]> + '_ {
        self.blocks.iter().map(|((row, column), (rows, columns))| {
            [
                ViewOp::Slice { dim: 0, start: *row, end: row + rows, step: 1 },
                ViewOp::Slice { dim: 1, start: *column, end: column + columns, step: 1 },
            ]
        })
    }
}

impl BlockDiag {
    /// For a batch of such matrices: each block between zeros, and these strips stacked vertically.
    fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let zero = Tensor::new(batch.inputs[0].tensor.memory().full_beside(&[], Scalar::Int(0), self.dtype)?);
        let mut strips: SmallVec<[Tensor; 4]> = SmallVec::new();
        for (i, ((_, column), (rows, columns))) in self.blocks.iter().enumerate() {
            let zeros = |columns: usize| view(&zero, ViewOp::Expand(Dims::from_slice(&[batch.size, *rows, columns])));
            let block = primitives::cast(&primitives::reshape(&batch.batched(i)?, &[batch.size, *rows, *columns])?, self.dtype)?;
            strips.push(join::cat(&[zeros(*column)?, block, zeros(self.size.1 - column - columns)?], 2)?);
        }
        Ok(smallvec![join::cat(&strips, 1)?])
    }
}

impl Vjp for BlockDiag {
    fn node_name(&self) -> Name {
        "BlockDiagBackward0".into()
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut out = Grads::from_elem(None, self.blocks.len());
        for (i, [rows, columns]) in self.parts().enumerate() {
            if cx.needs(i) {
                out[i] = Some(primitives::reshape(&view(&view(g, rows)?, columns)?, &self.shapes[i])?);
            }
        }
        Ok(out)
    }
}

impl Op for BlockDiag {
    fn name(&self) -> &'static str {
        "block_diag"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].full_beside(&[self.size.0, self.size.1], Scalar::Int(0), self.dtype)?;
        for (a, ((row, column), (rows, columns))) in x.iter().zip(&self.blocks) {
            let part = out.with_layout(out.layout().narrow(0, *row, *rows)?.narrow(1, *column, *columns)?)?;
            let block = a.contiguous()?;
            part.copy_from(&block.with_layout(crate::layout::Layout::from_parts(
                smallvec![*rows, *columns],
                smallvec![*columns as isize, 1],
                block.layout().offset(),
            )?)?)?;
        }
        Ok(smallvec![out])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}

/// A matrix with the given matrices on its diagonal, zero elsewhere. Vectors count as rows, 0-d tensors as 1 x 1.
pub fn block_diag(ts: &[Tensor]) -> Result<Tensor> {
    if ts.is_empty() {
        return super::create::empty(&[1, 0], pw::default_dtype());
    }
    let mut op = BlockDiag { blocks: SmallVec::new(), shapes: SmallVec::new(), size: (0, 0), dtype: join::common_dtype(ts) };
    for (i, t) in ts.iter().enumerate() {
        let s = t.shape();
        let (rows, columns) = match s[..] {
            [] => (1, 1),
            [n] => (1, n),
            [m, n] => (m, n),
            _ => {
                return Err(Error::runtime(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {} dimensions",
                    s.len()
                )));
            }
        };
        op.blocks.push((op.size, (rows, columns)));
        op.shapes.push(s);
        op.size = (op.size.0 + rows, op.size.1 + columns);
    }
    let inputs: SmallVec<[&Tensor; 4]> = ts.iter().collect();
    apply1(&op, &inputs)
}

/// The Kronecker product: each element of `a` times all of `b`, as blocks.
pub fn kron(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let rank = a.rank().max(b.rank());
    let wide = |t: &Tensor| -> Dims {
        let mut s = Dims::from_elem(1, rank - t.rank());
        s.extend_from_slice(&t.shape());
        s
    };
    let (sa, sb) = (wide(a), wide(b));
    let (mut pa, mut pb, mut out) = (Dims::new(), Dims::new(), Dims::new());
    for (m, n) in sa.iter().zip(&sb) {
        pa.extend([*m, 1]);
        pb.extend([1, *n]);
        out.push(m * n);
    }
    shape::unsafe_view(&pw::mul(&primitives::reshape(a, &pa)?, &primitives::reshape(b, &pb)?)?, out)
}

// ---- differences and sums --------------------------------------------------------------------------------------------

/// Differences of neighbours along `dim`, `n` times, of the tensor with `prepend` and `append` at its ends.
pub fn diff(t: &Tensor, n: i64, dim: i64, prepend: Option<&Tensor>, append: Option<&Tensor>) -> Result<Tensor> {
    if t.rank() == 0 {
        return Err(Error::runtime("diff expects input to be at least one-dimensional"));
    }
    if n < 0 {
        return Err(Error::runtime(format!("order must be non-negative but got {n}")));
    }
    let d = wrap_dim(dim, t.rank())?;
    if let Some(end) = [prepend, append].into_iter().flatten().find(|e| e.rank() != t.rank()) {
        return Err(Error::runtime(format!(
            "diff expects prepend or append to be the same dimension as input, got {} and {}",
            end.rank(),
            t.rank()
        )));
    }
    if n == 0 {
        // As in PyTorch, nothing is joined then.
        return primitives::clone_as(t, "CopyBackwards");
    }
    let ends: Views = [prepend, Some(t), append].into_iter().flatten().cloned().collect();
    let mut x = if ends.len() > 1 { join::cat(&ends, d as i64)? } else { t.clone() };
    for _ in 0..n.min(x.shape()[d] as i64) {
        let len = x.shape()[d];
        let part = |start: usize| view(&x, ViewOp::Slice { dim: d, start, end: start + len.saturating_sub(1), step: 1 });
        let (before, after) = (part(0)?, part(len.min(1))?);
        x = if x.dtype() == DType::Bool { pw::ne(&after, &before)? } else { pw::sub(&after, &before)? };
    }
    Ok(x)
}

/// The tensor summed over the dimensions by which it could have been broadcast from `shape`.
pub fn sum_to_size(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let have = t.shape();
    let fits = have.len() >= shape.len() && shape.iter().rev().zip(have.iter().rev()).all(|(w, h)| w == h || *w == 1);
    if !fits {
        return Err(Error::runtime(format!("size {{{}}} is not expandable to size {{{}}}.", fmt_shape(shape), fmt_shape(&have))));
    }
    if have[..] == *shape {
        return Ok(t.clone());
    }
    if shape.is_empty() {
        return reduce::sum(t, None, false, None);
    }
    let extra = have.len() - shape.len();
    let dims: SmallVec<[i64; 8]> =
        (0..have.len()).filter(|d| *d < extra || (shape[d - extra] == 1 && have[*d] != 1)).map(|d| d as i64).collect();
    let summed = reduce::sum(t, Some(&dims), true, None)?;
    if extra > 0 { view(&summed, ViewOp::View(Dims::from_slice(shape))) } else { Ok(summed) }
}
