//! Views under PyTorch's names: arguments are checked here, `layout` computes the layouts, `autograd` records the views.

use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::with_batch;
use crate::autograd::{
    Arrays, Creation, Grads, Name, Op, ShownAttributes, Tangent, Tensor, ViewName, ViewOp, Vjp, VjpCx, apply1, primitives,
    view as make_view, view_as as make_view_as, view_inplace,
};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, MemoryFormat, Strides, broadcast_many, fmt_shape, wrap_dim, wrap_dims};
use smallvec::{SmallVec, smallvec};

/// Several views that one call returns.
pub type Views = SmallVec<[Tensor; 4]>;

// ---- another shape ---------------------------------------------------------------------------------------------------

/// The same elements under another shape, always sharing memory. One size may be -1.
#[inline]
pub fn view(t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let shape = Layout::infer_shape(sizes, t.numel())?;
    make_view(t, ViewOp::View(shape))
}

/// A row-major copy under another shape, as one node.
#[derive(Debug, Clone)]
struct ReshapeCopy {
    shape: Dims,
    from: Dims,
    /// Nothing else uses the input: its memory is reused if it is row-major.
    fresh: bool,
}

impl Vjp for ReshapeCopy {
    fn node_name(&self) -> Name {
        "UnsafeViewBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self_sym_sizes", SavedAttribute::sizes(&self.from))]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(|g| primitives::reshape(g, &self.from)).transpose()?])
    }
}

impl Op for ReshapeCopy {
    fn name(&self) -> &'static str {
        "reshape"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let rows = if self.fresh { x[0].contiguous()? } else { x[0].contiguous_copy()? };
        let layout = rows.layout().view(&self.shape).unwrap_or_else(|| Layout::contiguous(&self.shape));
        Ok(smallvec![rows.with_layout(layout)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(ReshapeCopy { shape: with_batch(batch, &self.shape), from: with_batch(batch, &self.from), fresh: self.fresh })
    }
}

fn to_shape(t: &Tensor, shape: Dims) -> Result<Tensor> {
    let (possible, rows) = t.with_array(|a| (a.layout().view(&shape).is_some(), a.layout().is_contiguous()));
    if possible {
        let name = if rows { None } else { Some("ReshapeAliasBackward0") };
        return make_view_as(t, ViewOp::View(shape), name.map(ViewName::from), Creation::Normal);
    }
    let from = t.shape();
    apply1(&ReshapeCopy { shape, from, fresh: false }, &[t])
}

/// A new tensor, which nothing else uses, in another shape; not recorded as a view.
pub(crate) fn unsafe_view(t: &Tensor, shape: Dims) -> Result<Tensor> {
    let from = t.shape();
    apply1(&ReshapeCopy { shape, from, fresh: true }, &[t])
}

/// As `view`, copying where the layout makes that necessary.
#[inline]
pub fn reshape(t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    to_shape(t, Layout::infer_shape(sizes, t.numel())?)
}

/// Joins the dimensions `start..=end` into one. Gives the tensor itself where there is nothing to join.
pub fn flatten(t: &Tensor, start: i64, end: i64) -> Result<Tensor> {
    let shape = t.shape();
    let (s, e) = (wrap_dim(start, shape.len())?, wrap_dim(end, shape.len())?);
    if s > e {
        return Err(Error::runtime(format!(
            "flatten() has invalid args: start_dim cannot come after end_dim (got {start} and {end} for shape {})",
            fmt_shape(&shape)
        )));
    }
    if shape.is_empty() {
        return to_shape(t, smallvec![1]);
    }
    if s == e {
        return Ok(t.clone());
    }
    let mut out = Dims::from_slice(&shape[..s]);
    out.push(shape[s..=e].iter().product());
    out.extend_from_slice(&shape[e + 1..]);
    to_shape(t, out)
}

/// All elements in one dimension.
pub fn ravel(t: &Tensor) -> Result<Tensor> {
    make_view(&super::memory_format::contiguous(t, MemoryFormat::Contiguous)?, ViewOp::View(smallvec![t.numel()]))
}

/// Splits dimension `dim` into `sizes`; one of them may be -1.
pub fn unflatten(t: &Tensor, dim: i64, sizes: &[i64]) -> Result<Tensor> {
    let shape = t.shape();
    let d = wrap_dim(dim, shape.len())?;
    if shape.is_empty() {
        return Err(Error::runtime(format!("unflatten: Dimension specified as {dim} but tensor has no dimensions")));
    }
    if sizes.is_empty() {
        return Err(Error::runtime("unflatten: sizes must be non-empty"));
    }
    let have = shape[d];
    let inner = Layout::infer_shape(sizes, have).map_err(|_| {
        Error::runtime(format!("unflatten: Provided sizes {sizes:?} don't multiply up to the size of dim {d} ({have}) in the input tensor"))
    })?;
    let mut out = Dims::from_slice(&shape[..d]);
    out.extend_from_slice(&inner);
    out.extend_from_slice(&shape[d + 1..]);
    make_view(t, ViewOp::View(out))
}

/// A new dimension of size 1 at `dim`.
#[inline]
pub fn unsqueeze(t: &Tensor, dim: i64) -> Result<Tensor> {
    let d = wrap_dim(dim, t.rank() + 1)?;
    make_view(t, ViewOp::Unsqueeze(d))
}

/// PyTorch numbers squeezes by how they name dimensions; the one that names none keeps none.
const WHOLE_SQUEEZE: ViewName = ViewName { node: "SqueezeBackward0", attributes: ShownAttributes::AllBut("dim") };

/// Without its dimensions of size 1.
pub fn squeeze(t: &Tensor) -> Result<Tensor> {
    let dims = t.with_array(|a| a.shape().iter().enumerate().filter(|(_, n)| **n == 1).map(|(d, _)| d).collect());
    make_view_as(t, ViewOp::Squeeze(dims), Some(WHOLE_SQUEEZE), Creation::Normal)
}

/// Without dimension `dim`, if that has size 1.
pub fn squeeze_dim(t: &Tensor, dim: i64) -> Result<Tensor> {
    let d = wrap_dim(dim, t.rank())?;
    make_view_as(t, ViewOp::Squeeze(smallvec![d]), Some("SqueezeBackward1".into()), Creation::Normal)
}

/// Without those of `dims` that have size 1.
pub fn squeeze_dims(t: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let dims = wrap_dims(dims, t.rank())?;
    make_view_as(t, ViewOp::Squeeze(dims), Some("SqueezeBackward2".into()), Creation::Normal)
}

// ---- broadcasting ----------------------------------------------------------------------------------------------------

/// Dimensions of size 1 repeated without copying; -1 leaves a size as it is.
pub fn expand(t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let shape = t.shape();
    let Some(extra) = sizes.len().checked_sub(shape.len()) else {
        return Err(Error::shape(format!(
            "expand(rgrad.{}Tensor{{{}}}, size={sizes:?}): the number of sizes provided ({}) must be greater or equal to the number of \
             dimensions in the tensor ({})",
            t.dtype().type_name(),
            fmt_shape(&shape),
            sizes.len(),
            shape.len()
        )));
    };
    let mut out = Dims::new();
    for (i, &s) in sizes.iter().enumerate() {
        out.push(match s {
            -1 if i < extra => {
                return Err(Error::runtime(format!(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                )));
            }
            -1 => shape[i - extra],
            s if s < 0 => {
                return Err(Error::shape(format!(
                    "The expanded size of the tensor ({s}) must match the existing size ({}) at non-singleton dimension {i}.  Target sizes: \
                     {sizes:?}.  Tensor sizes: {}",
                    if i < extra { 1 } else { shape[i - extra] },
                    fmt_shape(&shape)
                )));
            }
            s => s as usize,
        });
    }
    make_view(t, ViewOp::Expand(out))
}

/// The tensor expanded to a shape.
pub fn expand_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    make_view(t, ViewOp::Expand(Dims::from_slice(shape)))
}

/// All tensors expanded to their common shape.
pub fn broadcast_tensors(ts: &[Tensor]) -> Result<Views> {
    let shapes: SmallVec<[Dims; 4]> = ts.iter().map(Tensor::shape).collect();
    let common = broadcast_many(shapes.iter().map(|s| &s[..]))?;
    // A tensor that has the shape already is returned itself, as in PyTorch.
    ts.iter().zip(&shapes).map(|(t, s)| if *s == common { Ok(t.clone()) } else { expand_to(t, &common) }).collect()
}

/// A view of everything, under a node of its own.
pub fn alias(t: &Tensor) -> Result<Tensor> {
    make_view(t, ViewOp::Alias)
}

// ---- order of dimensions ---------------------------------------------------------------------------------------------

/// Two dimensions exchanged.
#[inline]
pub fn transpose(t: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    let rank = t.rank();
    let (a, b) = (wrap_dim(a, rank)?, wrap_dim(b, rank)?);
    if rank == 0 {
        return make_view(t, ViewOp::Alias);
    }
    make_view(t, ViewOp::Transpose(a, b))
}

/// A matrix transposed; vectors and 0-d tensors stay as they are.
#[inline]
pub fn t(x: &Tensor) -> Result<Tensor> {
    let op = match x.rank() {
        0 | 1 => ViewOp::Alias,
        2 => ViewOp::Transpose(0, 1),
        n => return Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
    };
    make_view_as(x, op, Some(ViewName { node: "TBackward0", attributes: ShownAttributes::Nothing }), Creation::Normal)
}

/// The dimensions in another order; `dims` names each once.
pub fn permute(t: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let rank = t.rank();
    if dims.len() != rank {
        return Err(Error::runtime(format!(
            "permute: number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. \
             input.dim() = {rank} is not equal to len(dims) = {}",
            dims.len()
        )));
    }
    let mut out = Dims::new();
    for &d in dims {
        let d = wrap_dim(d, rank)?;
        if out.contains(&d) {
            return Err(Error::runtime(format!("permute(): duplicate dims are not allowed. Got {dims:?}")));
        }
        out.push(d);
    }
    make_view(t, ViewOp::Permute(out))
}

/// All dimensions in reverse order (`x.T`).
pub fn reversed(t: &Tensor) -> Result<Tensor> {
    make_view(t, ViewOp::Permute((0..t.rank()).rev().collect()))
}

/// The last two dimensions exchanged (`x.mT`).
pub fn matrix_transpose(t: &Tensor) -> Result<Tensor> {
    let n = t.rank();
    if n < 2 {
        return Err(Error::runtime(format!("tensor.mT is only supported on matrices or batches of matrices. Got {n}-D tensor.")));
    }
    make_view(t, ViewOp::Transpose(n - 2, n - 1))
}

/// A matrix transposed and conjugated, a view.
pub fn adjoint_matrix(t: &Tensor) -> Result<Tensor> {
    match t.rank() {
        0 => Ok(t.clone()),
        2 => primitives::conj_view(&make_view(t, ViewOp::Transpose(0, 1))?),
        n => Err(Error::runtime(format!(
            "tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor. For batches of matrices, consider using tensor.mH"
        ))),
    }
}

/// The dimensions `source` moved to `destination`; the others keep their order.
pub fn movedim(t: &Tensor, source: &[i64], destination: &[i64]) -> Result<Tensor> {
    if source.len() != destination.len() {
        return Err(Error::runtime(format!(
            "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of dims as destination \
             ({destination:?} dims)"
        )));
    }
    let rank = t.rank();
    let unique = |dims: &[i64], name: &str| -> Result<SmallVec<[usize; 4]>> {
        let mut out = SmallVec::new();
        for &d in dims {
            let w = wrap_dim(d, rank)?;
            if out.contains(&w) {
                return Err(Error::runtime(format!("movedim: repeated dim in `{name}` ({dims:?})")));
            }
            out.push(w);
        }
        Ok(out)
    };
    let (src, dst) = (unique(source, "source")?, unique(destination, "destination")?);
    if rank == 0 {
        return make_view(t, ViewOp::Alias);
    }
    let mut rest = (0..rank).filter(|d| !src.contains(d));
    let order: Dims = (0..rank).map(|d| dst.iter().position(|x| *x == d).map_or_else(|| rest.next().unwrap_or(d), |i| src[i])).collect();
    make_view(t, ViewOp::Permute(order))
}

// ---- parts -----------------------------------------------------------------------------------------------------------

/// `length` elements along `dim` from `start` on; a negative start counts from the end.
pub fn narrow(t: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    let shape = t.shape();
    if shape.is_empty() {
        return Err(Error::runtime("narrow() cannot be applied to a 0-dim tensor."));
    }
    if length < 0 {
        return Err(Error::runtime(format!("narrow(): length must be non-negative. Got {length}")));
    }
    let d = wrap_dim(dim, shape.len())?;
    let n = shape[d] as i64;
    if start < -n || start > n {
        return Err(Error::index(format!("start out of range (expected to be in range of [{}, {n}], but got {start})", -n)));
    }
    let s = if start < 0 { start + n } else { start };
    if length > n - s {
        return Err(Error::runtime(format!("start ({s}) + length ({length}) exceeds dimension size ({n}).")));
    }
    make_view(t, ViewOp::Slice { dim: d, start: s as usize, end: (s + length) as usize, step: 1 })
}

/// One slice along `dim`, without that dimension.
pub fn select(t: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    let shape = t.shape();
    if shape.is_empty() {
        return Err(Error::index("select() cannot be applied to a 0-dim tensor."));
    }
    let d = wrap_dim(dim, shape.len())?;
    let n = shape[d] as i64;
    if index < -n || index >= n {
        return Err(Error::index(format!(
            "select(): index {index} out of range for tensor of size {} at dimension {d}",
            fmt_shape(&shape)
        )));
    }
    make_view(t, ViewOp::Select(d, if index < 0 { index + n } else { index } as usize))
}

/// A diagonal of the dimensions `dim1` and `dim2`, as a new last dimension.
pub fn diagonal(t: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let rank = t.rank();
    let (dim1, dim2) = (wrap_dim(dim1, rank)?, wrap_dim(dim2, rank)?);
    if dim1 == dim2 {
        return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    make_view(t, ViewOp::Diagonal { offset, dim1, dim2 })
}

/// Windows of `size` along `dim`, every `step`, as a new last dimension.
pub fn unfold(t: &Tensor, dim: i64, size: i64, step: i64) -> Result<Tensor> {
    let d = wrap_dim(dim, t.rank())?;
    if size < 0 {
        return Err(Error::runtime(format!("size is {size} but must be >= 0")));
    }
    if step <= 0 {
        return Err(Error::runtime(format!("step is {step} but must be > 0")));
    }
    make_view(t, ViewOp::Unfold { dim: d, size: size as usize, step: step as usize })
}

/// Any sizes, strides and offset (default: the tensor's own) inside of the tensor's storage.
pub fn as_strided(t: &Tensor, sizes: &[i64], strides: &[i64], offset: Option<i64>) -> Result<Tensor> {
    let offset = match offset {
        None => t.with_array(|a| a.layout().offset()),
        Some(o) => usize::try_from(o).map_err(|_| Error::runtime(format!("Tensor: invalid storage offset {o}")))?,
    };
    if sizes.len() != strides.len() {
        return Err(Error::runtime(format!("mismatch in length of strides and shape: got {sizes:?} and {strides:?}")));
    }
    if sizes.iter().any(|s| *s < 0) {
        return Err(Error::runtime(format!("Storage size calculation overflowed with sizes={sizes:?} and strides={strides:?}")));
    }
    let shape: Dims = sizes.iter().map(|s| *s as usize).collect();
    let strides: Strides = strides.iter().map(|s| *s as isize).collect();
    make_view(t, ViewOp::AsStrided { shape, strides, offset })
}

// ---- in place --------------------------------------------------------------------------------------------------------

/// `transpose`, changing the tensor itself.
pub fn transpose_(t: &Tensor, a: i64, b: i64) -> Result<()> {
    let rank = t.rank();
    let (a, b) = (wrap_dim(a, rank)?, wrap_dim(b, rank)?);
    let op = if rank == 0 { ViewOp::Alias } else { ViewOp::Transpose(a, b) };
    view_inplace(t, op, "transpose_", "TransposeBackward1")
}

/// `t`, changing the tensor itself.
pub fn t_(x: &Tensor) -> Result<()> {
    let op = match x.rank() {
        0 | 1 => ViewOp::Alias,
        2 => ViewOp::Transpose(0, 1),
        n => return Err(Error::runtime(format!("t_() expects a tensor with <= 2 dimensions, but self is {n}D"))),
    };
    view_inplace(x, op, "t_", ViewName { node: "TBackward1", attributes: ShownAttributes::Nothing })
}

/// `unsqueeze`, changing the tensor itself.
pub fn unsqueeze_(t: &Tensor, dim: i64) -> Result<()> {
    let d = wrap_dim(dim, t.rank() + 1)?;
    view_inplace(t, ViewOp::Unsqueeze(d), "unsqueeze_", "UnsqueezeBackward1")
}

/// `squeeze`, `squeeze_dim` or `squeeze_dims`, changing the tensor itself.
pub fn squeeze_(t: &Tensor, dims: Option<&[i64]>) -> Result<()> {
    let (dims, node) = match dims {
        Some(d) => (wrap_dims(d, t.rank())?, ViewName::from("SqueezeBackward4")),
        None => ((0..t.rank()).collect(), ViewName { node: "SqueezeBackward3", ..WHOLE_SQUEEZE }),
    };
    view_inplace(t, ViewOp::Squeeze(dims), "squeeze_", node)
}
