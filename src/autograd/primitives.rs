//! The few operations, nearly all linear, that differentiation itself needs: cast, sum to a shape, copies, and the adjoints of views.

use crate::array::{Array, Device, Numbers};
pub use crate::autograd::complex_parts::{as_complex, as_real, conj, conj_view, part, resolved, with_bits};
use crate::autograd::dispatch::apply::{OldValue, apply_inplace, apply1, apply1_growing};
use crate::autograd::dispatch::fast_path::apply_direct;
use crate::autograd::dispatch::op::{Arrays, Devices, Op, Outputs};
use crate::autograd::dispatch::pointwise::PointwiseOp;
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::OutMeta;
use crate::autograd::graph::view::{ViewOp, view};
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::tensor::Tensor;
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::transforms::forward_mode::{Jvp, Tangent, Tangents};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, MemoryFormat, Scalar, Strides, fmt_shape};
use crate::rows::{Func, Part, RowId};
use smallvec::{SmallVec, smallvec};

// ---- cast ------------------------------------------------------------------------------------------------------------

/// Converts to another dtype.
#[derive(Debug, Clone)]
struct Cast(DType);

impl Vjp for Cast {
    fn cuts(&self, is_cut: bool) -> bool {
        is_cut
    }
    fn node_name(&self) -> Name {
        "ToCopyBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        // The engine casts to the edge's dtype.
        Ok(grads.clone())
    }
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "to"
    }
    fn is_cast(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].converted(self.0)?])
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// The tensor in another dtype; itself if it has that dtype.
pub fn cast(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype {
        return Ok(t.clone());
    }
    let out = apply1(&Cast(dtype), &[t])?;
    if t.is_number() {
        out.mark_number();
    }
    Ok(out)
}

// ---- devices ---------------------------------------------------------------------------------------------------------

/// Copies to another device.
#[derive(Debug, Clone)]
struct ToDevice {
    from: Device,
    to: Device,
}

impl Vjp for ToDevice {
    fn node_name(&self) -> Name {
        "ToCopyBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(|g| to_device(g, self.from)).transpose()?])
    }
}

impl Op for ToDevice {
    fn name(&self) -> &'static str {
        "to"
    }
    fn devices(&self) -> Devices {
        Devices::Any
    }
    fn work(&self, _x: &[&Array]) -> usize {
        // Even a small transfer may wait for the device, or initialise it, which runs foreign code.
        usize::MAX
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].to_device(self.to)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// The tensor on another device; itself if it is there already.
pub fn to_device(t: &Tensor, to: Device) -> Result<Tensor> {
    let from = t.device();
    if from == to {
        return Ok(t.clone());
    }
    apply1_growing(&ToDevice { from, to }, &[t])
}

/// A value without dimensions on the device of `like`, expanded to its shape.
pub(in crate::autograd) fn spread(value: &Tensor, like: &Tensor) -> Result<Tensor> {
    let value = to_device(value, like.device())?;
    let shape = like.shape();
    if shape.is_empty() { Ok(value) } else { view(&value, ViewOp::Expand(shape)) }
}

// ---- sum to a shape --------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct SumTo {
    shape: Dims,
    from: Dims,
}

impl Vjp for SumTo {
    fn node_name(&self) -> Name {
        "SumToSizeBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(|g| view(g, ViewOp::Expand(self.from.clone()))).transpose()?])
    }
}

impl Op for SumTo {
    fn name(&self) -> &'static str {
        "sum_to_size"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let extra = x[0].rank() - self.shape.len();
        let reduced: SmallVec<[bool; 8]> =
            (0..x[0].rank()).map(|i| i < extra || (self.shape[i - extra] == 1 && x[0].shape()[i] != 1)).collect();
        let summed = x[0].sum(&reduced, true)?;
        let layout = summed.layout().squeeze(|d| d < extra);
        Ok(smallvec![summed.with_layout(layout)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let mut aligned = Dims::from_elem(1, self.from.len() - self.shape.len());
            aligned.extend_from_slice(&self.shape);
            let op = SumTo { shape: batch.with_batch(&aligned), from: batch.with_batch(&self.from) };
            Ok(smallvec![reshape(&apply1(&op, &[&batch.batched(0)?])?, &batch.with_batch(&self.shape))?])
        };
        Some(one())
    }
}

/// Sums over the dimensions along which `t` was broadcast from `shape`.
pub fn sum_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let from = t.shape();
    if from[..] == *shape {
        return Ok(t.clone());
    }
    apply1(&SumTo { shape: Dims::from_slice(shape), from }, &[t])
}

/// Whether a gradient of shape `have` can be summed to `want`.
pub(crate) fn is_broadcast_of(have: &[usize], want: &[usize]) -> bool {
    have.len() >= want.len() && want.iter().rev().zip(have.iter().rev()).all(|(w, h)| w == h || *w == 1)
}

/// Fits a gradient to its edge: sums it to the shape, and converts dtype and device.
#[inline]
pub fn fit(g: Tensor, OutMeta { shape, dtype, device }: &OutMeta) -> Result<Tensor> {
    let (same_shape, same_dtype, same_device) = g.with_array(|a| (a.shape() == &shape[..], a.dtype() == *dtype, a.device() == *device));
    let g = if same_shape {
        g
    } else {
        let have = g.shape();
        if !is_broadcast_of(&have, shape) {
            return Err(Error::shape(format!("got {} but expected shape compatible with {}", fmt_shape(&have), fmt_shape(shape))));
        }
        sum_to(&g, shape)?
    };
    let g = if same_dtype { g } else { cast(&g, *dtype)? };
    if same_device { Ok(g) } else { follow_device(&g, *device) }
}

/// Copies a 0-d gradient to the tensor's device, as PyTorch does. A larger gradient on another device is an error.
#[cold]
fn follow_device(g: &Tensor, device: Device) -> Result<Tensor> {
    if g.rank() > 0 {
        return Err(Error::runtime(format!(
            "expected a gradient on device {device} but got one of shape {} on {}",
            fmt_shape(&g.shape()),
            g.device()
        )));
    }
    to_device(g, device)
}

// ---- copies ----------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct CloneOp(MemoryFormat, &'static str);

impl Vjp for CloneOp {
    fn node_name(&self) -> Name {
        self.1.into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(grads.clone())
    }
}

impl Op for CloneOp {
    fn name(&self) -> &'static str {
        "clone"
    }
    fn copies(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].copy_in(self.0)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// A row-major copy.
pub fn contiguous_copy(t: &Tensor) -> Result<Tensor> {
    clone_in(t, MemoryFormat::Contiguous, "CloneBackward0")
}

/// A copy in a memory format, with the node's name. The rank is the format's.
pub fn clone_in(t: &Tensor, format: MemoryFormat, node: &'static str) -> Result<Tensor> {
    apply1(&CloneOp(format, node), &[t])
}

/// A copy that keeps the order of dimensions (`clone`).
pub fn clone(t: &Tensor) -> Result<Tensor> {
    clone_as(t, "CloneBackward0")
}

/// `clone` as the last step of another operation, which names the node.
pub fn clone_as(t: &Tensor, node: &'static str) -> Result<Tensor> {
    clone_in(t, MemoryFormat::Preserve, node)
}

/// The same elements in another shape: a view where possible, else a copy.
pub fn reshape(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let possible = t.with_array(|a| a.layout().view(shape).is_some());
    let op = ViewOp::View(Dims::from_slice(shape));
    if possible { view(t, op) } else { view(&contiguous_copy(t)?, op) }
}

/// The gradient of an overwritten value.
pub(crate) fn zeros_like(g: Option<&Tensor>) -> Result<Option<Tensor>> {
    g.map(|g| Ok(Tensor::new(g.memory().full_beside(&g.shape(), Scalar::Int(0), g.dtype())?))).transpose()
}

/// The fields: the source's device, and the node's name.
#[derive(Debug, Clone)]
struct CopyInto(Device, &'static str);

impl Vjp for CopyInto {
    fn node_name(&self) -> Name {
        self.1.into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![zeros_like(grads[0].as_ref())?, grads[0].as_ref().map(|g| to_device(g, self.0)).transpose()?])
    }
}

impl Op for CopyInto {
    fn name(&self) -> &'static str {
        "copy_"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[1].brought_to(x[0])?.clone_dense()?])
    }
    fn devices(&self) -> Devices {
        Devices::Any
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        out.copy_from(x[1])
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        // The old value is overwritten, and so is its tangent.
        Ok(smallvec![cx.tangent(1).cloned()])
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// Writes `src`, broadcast and converted, over `dst`.
pub fn copy_(dst: &Tensor, src: &Tensor) -> Result<()> {
    copy_as(dst, src, "copy_", "CopyBackwards")
}

fn copy_as(dst: &Tensor, src: &Tensor, label: &'static str, node: &'static str) -> Result<()> {
    let (to, from) = (dst.shape(), src.shape());
    if to != from && !(from.len() <= to.len() && is_broadcast_of(&to, &from)) {
        return Err(Error::shape(format!(
            "{label}: the size of the source {} must be broadcastable to the size of the target {}",
            fmt_shape(&from),
            fmt_shape(&to)
        )));
    }
    apply_inplace(&CopyInto(src.device(), node), label, &[dst, src], OldValue::Overwritten)
}

#[derive(Debug, Clone)]
struct FillOp {
    value: Scalar,
    node: &'static str,
}

impl Vjp for FillOp {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![zeros_like(grads[0].as_ref())?])
    }
}

impl Op for FillOp {
    fn name(&self) -> &'static str {
        "fill_"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].full_beside(x[0].shape(), self.value, x[0].dtype())?])
    }
    fn forward_into(&self, out: &Array, _x: &[&Array]) -> Result<()> {
        out.fill(self.value)
    }
    fn writes_one_value(&self) -> bool {
        true
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// Refuses a number that does not fit into `dtype`.
#[inline]
pub(crate) fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let fits = match (value, dtype.row().real.largest()) {
        (Scalar::Complex(z), largest) if dtype.is_complex() => !is_beyond(z.re.into(), largest) && !is_beyond(z.im.into(), largest),
        (Scalar::Complex(z), _) if z.im != 0.0 && dtype != DType::Bool => false,
        (_, largest) if dtype.is_differentiable() => !is_beyond(value, largest),
        _ => value.fits(dtype),
    };
    if fits { Ok(()) } else { Err(overflow(value, dtype)) }
}

/// Whether a finite number would become infinite in float32.
#[inline]
pub(crate) fn is_beyond_f32(value: Scalar) -> bool {
    matches!(value, Scalar::Float(f) if f.is_finite() && f.abs() > f64::from(f32::MAX))
}

fn is_beyond(value: Scalar, largest: f64) -> bool {
    let value = value.to_f64();
    value.is_finite() && value.abs() > largest
}

#[cold]
fn overflow(value: Scalar, dtype: DType) -> Error {
    // The words of C++, where only these types have one.
    let word = if dtype.is_float() || dtype == DType::I32 { dtype.row().c_name.to_owned() } else { format!("{dtype}_t") };
    Error::runtime(format!("value cannot be converted to type {word} without overflow: got {value}"))
}

/// Writes one number everywhere.
pub fn fill_(t: &Tensor, value: Scalar) -> Result<()> {
    check_fits(value, t.dtype())?;
    apply_inplace(&FillOp { value, node: "FillBackward2" }, "fill_", &[t], OldValue::Overwritten)
}

/// Writes the value of a 0-d tensor everywhere.
pub fn fill_tensor_(t: &Tensor, value: &Tensor) -> Result<()> {
    copy_as(t, value, "fill_", "FillBackward3")
}

/// Writes zero everywhere.
pub fn zero_(t: &Tensor) -> Result<()> {
    apply_inplace(&FillOp { value: Scalar::Int(0), node: "ZeroBackward0" }, "zero_", &[t], OldValue::Overwritten)
}

// ---- the rows that differentiation itself needs ----------------------------------------------------------------------

/// The sum of gradients.
pub(super) const ADD: Func = Func { row: RowId::Add, part: Part::Forward };

/// The gradient of a subtrahend.
pub(super) const NEG: Func = Func { row: RowId::Neg, part: Part::Forward };

/// `t + other`, out of place.
pub fn add(t: &Tensor, other: &Tensor) -> Result<Tensor> {
    row(RowId::Add, t, other)
}

/// `t * other`.
pub(super) fn mul(t: &Tensor, other: &Tensor) -> Result<Tensor> {
    row(RowId::Mul, t, other)
}

/// `t`, but 0 where it is nan and `gate` 0. Both have one shape and dtype.
pub(in crate::autograd) fn cut(t: &Tensor, gate: &Tensor) -> Result<Tensor> {
    row(RowId::Cut, t, gate)
}

#[inline]
fn row(row: RowId, t: &Tensor, other: &Tensor) -> Result<Tensor> {
    if let Some(out) = apply_direct(row, [t, other], &Numbers::NONE, &[])? {
        return Ok(out);
    }
    apply1(&PointwiseOp::of(row, t.dtype()), &[t, other])
}

/// Which elements are nan.
pub(super) fn is_nan(a: &Array) -> Result<Array> {
    Array::pointwise(Func::forward(RowId::IsNan), a.dtype(), DType::Bool, &[a], &[])
}

/// Where the elements are infinite.
pub(super) fn is_inf(a: &Array) -> Result<Array> {
    Array::pointwise(Func::forward(RowId::IsInf), a.dtype(), DType::Bool, &[a], &[])
}

/// Adds in place, without history, to a bare tensor, of memory that nothing else reads or that is meant to change (a leaf's `.grad`).
pub(crate) fn add_into(t: &Tensor, other: &Tensor) -> Result<()> {
    let (a, b) = (t.memory(), other.array()?);
    a.pointwise_into(ADD, a.dtype(), &[&a, &b], &[])
}

// ---- adjoints of views -----------------------------------------------------------------------------------------------

/// The adjoint of a view: zeros outside of the part that the view sees. An element that the view sees several times gets the sum.
#[derive(Debug, Clone)]
struct Unview {
    op: ViewOp,
    shape: Dims,
    geometry: Option<(Strides, usize)>,
}

impl Vjp for Unview {
    fn cuts(&self, is_cut: bool) -> bool {
        is_cut
    }
    fn node_name(&self) -> Name {
        self.op.node_names()[1].into()
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let g = match &self.geometry {
            None => g.clone(),
            Some(geometry) => in_geometry(g, geometry, std::slice::from_ref(&self.op))?,
        };
        Ok(smallvec![Some(view(&g, self.op.clone())?)])
    }
}

/// The number of elements that memory must have for a layout and for the `as_strided` views in `ops`.
fn end_of(layout: &Layout, ops: &[ViewOp]) -> Result<usize> {
    let ends = ops.iter().map(|op| match op {
        ViewOp::AsStrided { shape, strides, offset } => end(&Layout::from_parts(shape.clone(), strides.clone(), *offset)?),
        _ => Ok(0),
    });
    ends.chain([end(layout)]).try_fold(0, |a, b| Ok(a.max(b?)))
}

fn end(layout: &Layout) -> Result<usize> {
    layout.end().ok_or_else(|| {
        let (shape, strides) = (layout.shape(), layout.strides());
        Error::runtime(format!("as_strided: no memory has places for sizes {shape:?} with strides {strides:?} from {} on", layout.offset()))
    })
}

/// A copy of `g` with the strides and offset that the input of `ops` had, for views that refer to positions in memory.
pub(crate) fn in_geometry(g: &Tensor, (strides, offset): &(Strides, usize), ops: &[ViewOp]) -> Result<Tensor> {
    let layout = Layout::from_parts(g.shape(), strides.clone(), *offset)?;
    let flat = g.beside(Tensor::new(g.memory().full_beside(&[end_of(&layout, ops)?], Scalar::Int(0), g.dtype())?))?;
    let shaped = view(&flat, ViewOp::AsStrided { shape: g.shape(), strides: strides.clone(), offset: *offset })?;
    copy_(&shaped, g)?;
    Ok(shaped)
}

impl Op for Unview {
    fn name(&self) -> &'static str {
        "unview"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let g = x[0];
        let out = match &self.geometry {
            None => g.full_beside(&self.shape, Scalar::Int(0), g.dtype())?,
            Some((strides, offset)) => {
                let layout = Layout::from_parts(self.shape.clone(), strides.clone(), *offset)?;
                let end = end_of(&layout, std::slice::from_ref(&self.op))?;
                g.full_beside(&[end], Scalar::Int(0), g.dtype())?.with_layout(layout)?
            }
        };
        add_overlapping(&self.op.apply_to(&out)?, g)?;
        Ok(smallvec![out])
    }
    fn grows(&self) -> bool {
        true
    }
    fn work(&self, x: &[&Array]) -> usize {
        self.shape.iter().product::<usize>() + x[0].numel()
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if self.geometry.is_some() {
            return None;
        }
        let op = self.op.shifted(batch.size, None)?;
        Some(batch.shifted(&Unview { op, shape: batch.with_batch(&self.shape), geometry: None }))
    }
}

/// Adds `src` to `dst` element by element where several elements of `dst` may share a position. Dimensions are peeled off until the rest does not
/// overlap, so each step is a plain addition and the order is fixed.
fn add_overlapping(dst: &Array, src: &Array) -> Result<()> {
    if !dst.layout().may_overlap() {
        return dst.pointwise_into(ADD, dst.dtype(), &[dst, src], &[]);
    }
    let dim = (0..dst.rank()).filter(|&d| dst.shape()[d] > 1).min_by_key(|&d| dst.shape()[d]).unwrap_or(0);
    for i in 0..dst.shape()[dim] {
        let d = dst.with_layout(dst.layout().select(dim, i as i64)?)?;
        let s = src.with_layout(src.layout().select(dim, i as i64)?)?;
        add_overlapping(&d, &s)?;
    }
    Ok(())
}

/// The adjoint of a view operation: from a gradient of the view to a tensor of the input's shape.
pub(crate) fn unview(g: &Tensor, op: &ViewOp, shape: &[usize], geometry: Option<&(Strides, usize)>) -> Result<Tensor> {
    if let Some((strides, offset)) = geometry {
        let layout = Layout::from_parts(Dims::from_slice(shape), strides.clone(), *offset)?;
        if layout.may_overlap() {
            return unview_shared(g, op, layout);
        }
    }
    apply1(&Unview { op: op.clone(), shape: Dims::from_slice(shape), geometry: geometry.cloned() }, &[g])
}

/// `unview` for an input of which several elements share a position in memory: they share its gradient evenly, as in PyTorch.
fn unview_shared(g: &Tensor, op: &ViewOp, layout: Layout) -> Result<Tensor> {
    let (end, dtype) = (end_of(&layout, std::slice::from_ref(op))?, g.dtype());
    let place = ViewOp::AsStrided { shape: layout.shape().into(), strides: layout.strides().into(), offset: layout.offset() };
    let beside = g.memory();
    let (counts, one) = (beside.full_beside(&[end], Scalar::Int(0), dtype)?, beside.full_beside(&[], Scalar::Int(1), dtype)?);
    add_overlapping(&place.apply_to(&counts)?, &one.with_layout(one.layout().expand(layout.shape())?)?)?;
    // Positions that no element of the input refers to are not divided.
    counts.pointwise_into(Func { row: RowId::Maximum, part: Part::Forward }, dtype, &[&counts, &one], &[])?;
    let memory = unview(g, op, &[end], None)?;
    let shared = apply1(&PointwiseOp::of(RowId::Div, dtype), &[&memory, &Tensor::new(counts)])?;
    contiguous_copy(&view(&shared, place)?)
}
