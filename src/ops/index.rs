//! Reads and writes at positions given by tensors: one operation that reads, its adjoint, and one that writes.

use crate::array::{Array, Bounds, Device, IndexPlan, Write, index_shape, value_mismatch};
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{
    Arrays, Devices, Grads, Name, OldValue, Op, Outputs, Saves, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply, apply_inplace, apply1,
    primitives, view,
};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, broadcast, fmt_shape, wrap_dim};
use crate::ops::index_batch::{BatchedIndex, behind_batch, index_is_batched};
use crate::ops::pointwise;
use crate::ops::unique::named_once;
use smallvec::{SmallVec, smallvec};

pub(crate) type Refs<'a> = SmallVec<[&'a Tensor; 4]>;

/// The mask that saves all index tensors, which follow the first `from` inputs.
fn saves_index(from: usize, n: usize) -> Saves {
    (from..from + n).fold(Saves::NOTHING, Saves::input)
}

fn saved_index(cx: &VjpCx<'_>, from: usize, n: usize) -> Result<SmallVec<[Tensor; 4]>> {
    (from..from + n).map(|i| cx.input(i)).collect()
}

/// The saved attributes for index tensors: a list, or the one indexed dimension and its index.
fn index_attributes(plan: &IndexPlan, from: usize, listed: bool) -> SavedAttributes {
    match plan.dims[..] {
        [dim] if !listed => smallvec![("dim", SavedAttribute::at(dim)), ("index", SavedAttribute::Input(from))],
        _ => smallvec![("indices", SavedAttribute::Inputs(from, from + plan.dims.len()))],
    }
}

/// A gradient for the first input, none for the indices.
pub(crate) fn first_of(g: Option<Tensor>, n: usize) -> Grads {
    let mut out = Grads::from_elem(None, n);
    out[0] = g;
    out
}

/// The node of an operation that reads or writes rows.
#[derive(Debug)]
pub(crate) struct RowsNode {
    name: &'static str,
    /// The name of the adjoint's node, for reads.
    adjoint: &'static str,
    /// The index tensors are saved as one list.
    listed: bool,
}

impl RowsNode {
    const fn reads(name: &'static str, adjoint: &'static str, listed: bool) -> RowsNode {
        RowsNode { name, adjoint, listed }
    }

    const fn writes(name: &'static str, listed: bool) -> RowsNode {
        RowsNode { name, adjoint: name, listed }
    }
}

pub(crate) static INDEX: RowsNode = RowsNode::reads("IndexBackward0", "IndexBackwardBackward0", true);
pub(crate) static INDEX_SELECT: RowsNode = RowsNode::reads("IndexSelectBackward0", "IndexSelectBackwardBackward0", false);
static TAKE: RowsNode = RowsNode::reads("TakeBackward0", "TakeBackwardBackward0", false);
static INDEX_PUT: RowsNode = RowsNode::writes("IndexPutBackward0", true);
static INDEX_ADD: RowsNode = RowsNode::writes("IndexAddBackward0", false);
static INDEX_COPY: RowsNode = RowsNode::writes("IndexCopyBackward0", false);
static INDEX_FILL: RowsNode = RowsNode::writes("IndexFillBackward0", false);
pub(crate) static MASKED_SELECT: RowsNode = RowsNode::reads("MaskedSelectBackward0", "MaskedSelectBackwardBackward0", false);
pub(crate) static MASKED_SCATTER: RowsNode = RowsNode::writes("MaskedScatterBackward0", false);
static INDEX_FILL_TENSOR: RowsNode = RowsNode::writes("IndexFillBackward1", false);

// ---- reading ---------------------------------------------------------------------------------------------------------

/// `x[index]`; inputs are x, then one index for each of the plan's dimensions.
#[derive(Debug, Clone)]
struct Take {
    plan: IndexPlan,
    shape: Dims,
    node: &'static RowsNode,
}

impl Vjp for Take {
    fn node_name(&self) -> Name {
        self.node.name.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = index_attributes(&self.plan, 1, self.node.listed);
        attributes.push(("self_sym_sizes", SavedAttribute::sizes(&self.shape)));
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.plan.dims.len();
        let index = saved_index(cx, 1, n)?;
        let mut inputs: Refs<'_> = smallvec![g];
        inputs.extend(&index);
        let adjoint = TakeAdjoint { plan: self.plan.clone(), shape: self.shape.clone(), node: self.node };
        Ok(first_of(Some(apply1(&adjoint, &inputs)?), 1 + n))
    }
}

impl Op for Take {
    fn name(&self) -> &'static str {
        "index"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].take_rows(&self.plan, &x[1..])?])
    }
    fn work(&self, x: &[&Array]) -> usize {
        let row: usize = (0..x[0].rank()).filter(|d| !self.plan.dims.contains(d)).map(|d| x[0].shape()[d]).product();
        x[1..].iter().map(|i| i.numel()).max().unwrap_or(0).saturating_mul(row)
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        saves_index(1, self.plan.dims.len())
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            if !index_is_batched(batch, 1) {
                let op = Take { plan: behind_batch(&self.plan), shape: batch.with_batch(&self.shape), node: self.node };
                let mut inputs: Refs<'_> = smallvec![&batch.inputs[0].tensor];
                inputs.extend(batch.inputs[1..].iter().map(|l| &l.tensor));
                return apply(&op, &inputs);
            }
            let b = BatchedIndex::new(&self.plan, batch, 1)?;
            if !batch.inputs[0].batched {
                // The table is shared: its rows are read at the batch's positions.
                let plan = IndexPlan { at: 0, ..self.plan.clone() };
                let mut inputs: Refs<'_> = smallvec![&batch.inputs[0].tensor];
                inputs.extend(&b.index[1..]);
                let made = apply1(&Take { plan, shape: self.shape.clone(), node: self.node }, &inputs)?;
                return Ok(smallvec![b.restore_index_dims(&made)?]);
            }
            let op = Take { plan: b.plan.clone(), shape: batch.with_batch(&self.shape), node: self.node };
            Ok(smallvec![b.restore_index_dims(&apply1(&op, &b.with(&[&batch.inputs[0].tensor]))?)?])
        };
        Some(one())
    }
}

/// The adjoint of `Take`: zeros to which the gradient is added at the positions, in their order.
#[derive(Debug, Clone)]
struct TakeAdjoint {
    plan: IndexPlan,
    shape: Dims,
    node: &'static RowsNode,
}

impl Vjp for TakeAdjoint {
    fn node_name(&self) -> Name {
        self.node.adjoint.into()
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.plan.dims.len();
        let index = saved_index(cx, 1, n)?;
        let mut inputs: Refs<'_> = smallvec![g];
        inputs.extend(&index);
        let take = Take { plan: self.plan.clone(), shape: self.shape.clone(), node: self.node };
        Ok(first_of(Some(apply1(&take, &inputs)?), 1 + n))
    }
}

impl Op for TakeAdjoint {
    fn name(&self) -> &'static str {
        "index_spread"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].full_beside(&self.shape, Scalar::Int(0), x[0].dtype())?;
        out.put_rows(&self.plan, &x[1..], x[0], Write::Add)?;
        Ok(smallvec![out])
    }
    fn grows(&self) -> bool {
        true
    }
    fn work(&self, x: &[&Array]) -> usize {
        self.shape.iter().product::<usize>() + x[0].numel()
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        saves_index(1, self.plan.dims.len())
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let (shape, node) = (batch.with_batch(&self.shape), self.node);
            if !index_is_batched(batch, 1) {
                let mut inputs: Refs<'_> = smallvec![&batch.inputs[0].tensor];
                inputs.extend(batch.inputs[1..].iter().map(|l| &l.tensor));
                return apply(&TakeAdjoint { plan: behind_batch(&self.plan), shape, node }, &inputs);
            }
            let b = BatchedIndex::new(&self.plan, batch, 1)?;
            let g = b.index_dims_first(&batch.batched(0)?)?;
            apply(&TakeAdjoint { plan: b.plan.clone(), shape, node }, &b.with(&[&g]))
        };
        Some(one())
    }
}

/// The index on the device of the tensor that it indexes; an index on the CPU is copied there.
pub(crate) fn beside(index: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (at, there) = (index.device(), x.device());
    if at != there && at != Device::CPU {
        return Err(Error::runtime(format!(
            "indices should be either on cpu or on the same device as the indexed tensor ({there}): got positions on {at}; move them with .cpu()"
        )));
    }
    primitives::to_device(index, there)
}

/// Refuses to record more index tensors than a node can save.
fn check_saved(plan: &IndexPlan, inputs: &[&Tensor]) -> Result<()> {
    // Beside the tensor and the values.
    const MOST: usize = Saves::INPUTS - 2;
    let n = plan.dims.len();
    if n <= MOST || !inputs.iter().any(|t| t.requires_grad()) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "indexing: at most {MOST} index tensors can be differentiated through, but got {n}; index in several steps, or detach() the tensor"
    )))
}

/// Reads rows of `x` under a node name.
pub(crate) fn take_rows(x: &Tensor, plan: IndexPlan, index: &[Tensor], node: &'static RowsNode) -> Result<Tensor> {
    check_saved(&plan, &[x])?;
    let op = Take { plan, shape: x.shape(), node };
    let mut inputs: Refs<'_> = smallvec![x];
    inputs.extend(index);
    apply1(&op, &inputs)
}

// ---- writing ---------------------------------------------------------------------------------------------------------

/// `self[index] = values` or `+= values`; inputs are self, values, then the indices.
#[derive(Debug, Clone)]
struct Put {
    plan: IndexPlan,
    add: bool,
    node: &'static RowsNode,
    /// The shape that the values are broadcast to.
    label: &'static str,
}

impl Put {
    fn how(&self) -> Write {
        if self.add { Write::Add } else { Write::Set }
    }
}

impl Vjp for Put {
    fn node_name(&self) -> Name {
        self.node.name.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = index_attributes(&self.plan, 2, self.node.listed);
        if self.node.listed {
            attributes.push(("accumulate", SavedAttribute::Bool(self.add)));
        }
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.plan.dims.len();
        let mut out = Grads::from_elem(None, 2 + n);
        if self.add && cx.needs(0) {
            out[0] = Some(g.clone());
        }
        if (self.add || !cx.needs(0)) && !cx.needs(1) {
            return Ok(out);
        }
        let index = saved_index(cx, 2, n)?;
        if !self.add && cx.needs(0) {
            let zero = Tensor::new(Array::scalar(Scalar::Int(0), g.dtype())?);
            out[0] = Some(put(g, self.plan.clone(), &index, &zero, false, self.node, self.label)?);
        }
        if cx.needs(1) {
            // The engine sums over broadcast dimensions.
            out[1] = Some(take_rows(g, self.plan.clone(), &index, &INDEX)?);
        }
        Ok(out)
    }
}

impl Op for Put {
    fn name(&self) -> &'static str {
        self.label
    }
    fn devices(&self) -> Devices {
        Devices::Numbers
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].clone_dense()?;
        out.put_rows(&self.plan, &x[2..], x[1], self.how())?;
        Ok(smallvec![out])
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        out.put_rows(&self.plan, &x[2..], x[1], self.how())
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let reads = (!self.add && needs[0]) || needs[1];
        if reads { saves_index(2, self.plan.dims.len()) } else { Saves::NOTHING }
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let x = batch.batched(0)?;
            let values = &batch.inputs[1];
            let (op, index_rank) =
                (|plan| Put { plan, ..self.clone() }, batch.inputs[2..].iter().map(BatchedInput::rank).max().unwrap_or(0));
            // The rank of the result without the batch, to which the values broadcast.
            let rank = batch.inputs[0].rank() - self.plan.dims.len() + index_rank;
            let values = values.aligned(rank)?;
            if !index_is_batched(batch, 2) {
                let mut inputs: Refs<'_> = smallvec![&x, &values];
                inputs.extend(batch.inputs[2..].iter().map(|l| &l.tensor));
                return apply(&op(behind_batch(&self.plan)), &inputs);
            }
            let b = BatchedIndex::new(&self.plan, batch, 2)?;
            let values = if batch.inputs[1].batched {
                b.index_dims_first(&values)?
            } else {
                let mut wide = values.clone();
                while wide.rank() < rank + 1 {
                    wide = view(&wide, ViewOp::Unsqueeze(0))?;
                }
                b.index_dims_first(&wide)?
            };
            apply(&op(b.plan.clone()), &b.with(&[&x, &values]))
        };
        Some(one())
    }
}

fn put(
    x: &Tensor,
    plan: IndexPlan,
    index: &[Tensor],
    values: &Tensor,
    add: bool,
    node: &'static RowsNode,
    label: &'static str,
) -> Result<Tensor> {
    check_saved(&plan, &[x, values])?;
    let mut inputs: Refs<'_> = smallvec![x, values];
    inputs.extend(index);
    apply1(&Put { plan, add, node, label }, &inputs)
}

/// Writes rows into `x` itself.
pub(crate) fn put_(
    x: &Tensor,
    plan: IndexPlan,
    index: &[Tensor],
    values: &Tensor,
    add: bool,
    node: &'static RowsNode,
    label: &'static str,
) -> Result<()> {
    check_saved(&plan, &[x, values])?;
    let mut inputs: Refs<'_> = smallvec![x, values];
    inputs.extend(index);
    apply_inplace(&Put { plan, add, node, label }, label, &inputs, OldValue::Read)
}

/// Whether a call returns a new tensor or writes to its first argument. Each family of writes has one function for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteTarget {
    New,
    Same,
}

#[allow(clippy::too_many_arguments)]
pub(super) fn put_at(
    place: WriteTarget,
    x: &Tensor,
    plan: IndexPlan,
    index: &[Tensor],
    values: &Tensor,
    add: bool,
    node: &'static RowsNode,
    label: &'static str,
) -> Result<Tensor> {
    match place {
        WriteTarget::New => put(x, plan, index, values, add, node, label),
        WriteTarget::Same => {
            put_(x, plan, index, values, add, node, label)?;
            Ok(x.clone())
        }
    }
}

// ---- the operations --------------------------------------------------------------------------------------------------

/// A 0-d tensor counts as one with a single dimension of size 1.
pub(super) fn at_least_1d(x: &Tensor) -> Result<Tensor> {
    if x.rank() == 0 { primitives::reshape(x, &[1]) } else { Ok(x.clone()) }
}

pub(super) fn is_index_dtype(d: DType) -> bool {
    matches!(d, DType::I32 | DType::I64)
}

/// The slices along `dim` that a vector of positions names.
pub fn index_select(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    if index.rank() > 1 {
        return Err(Error::index("index_select(): Index is supposed to be a vector"));
    }
    if !is_index_dtype(index.dtype()) {
        return Err(Error::runtime(format!("index_select(): Expected dtype int32 or int64 for index, got {}", index.dtype())));
    }
    let i = at_least_1d(index)?;
    if x.rank() == 0 {
        if i.numel() != 1 {
            return Err(Error::runtime(format!("index_select(): Index to scalar can have only 1 value, got {} value(s)", i.numel())));
        }
        let row = take_rows(&primitives::reshape(x, &[1])?, IndexPlan::one(0, Bounds::Select), &[i], &INDEX_SELECT)?;
        return primitives::reshape(&row, &[]);
    }
    take_rows(x, IndexPlan::one(d, Bounds::Select), &[i], &INDEX_SELECT)
}

/// The elements at positions of the flattened tensor, in the index's shape.
pub fn take(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!("take(): Expected a long tensor for index, but got {}", index.dtype().type_name())));
    }
    let flat = primitives::reshape(x, &[x.numel()])?;
    take_rows(&flat, IndexPlan::one(0, Bounds::Take), std::slice::from_ref(index), &TAKE)
}

/// Writes `values` where the index tensors point (`self[index] = values`); adds with `accumulate`, in the order of the positions.
pub fn index_put(place: WriteTarget, x: &Tensor, plan: IndexPlan, index: &[Tensor], values: &Tensor, accumulate: bool) -> Result<Tensor> {
    // The order of PyTorch's checks: shapes, dtypes, positions.
    let values = fitting(values, x, &plan, index)?;
    if x.dtype() != values.dtype() {
        return Err(Error::runtime(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            x.dtype().type_name(),
            values.dtype().type_name()
        )));
    }
    put_at(place, x, plan, index, &values, accumulate, &INDEX_PUT, "index_put_")
}

/// Values for what the positions name: without the leading dimensions of size 1 that they have in excess.
fn fitting(values: &Tensor, x: &Tensor, plan: &IndexPlan, index: &[Tensor]) -> Result<Tensor> {
    let arrays: SmallVec<[Array; 4]> = index.iter().map(Tensor::memory).collect();
    let refs: SmallVec<[&Array; 4]> = arrays.iter().collect();
    let target = plan.shape(&x.shape(), &index_shape(&refs)?);
    let shape = values.shape();
    let extra = shape.len().saturating_sub(target.len());
    let cut = if shape[..extra].iter().all(|n| *n == 1) { extra } else { 0 };
    if !broadcast(&shape[cut..], &target).is_ok_and(|all| all == target) {
        return Err(value_mismatch(&shape[cut..], &target));
    }
    if cut == 0 { Ok(values.clone()) } else { primitives::reshape(values, &shape[cut..]) }
}

/// `x` with `alpha * source` added to the slices along `dim` that the index names.
pub fn index_add(place: WriteTarget, x: &Tensor, dim: i64, index: &Tensor, source: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    if index.rank() > 1 {
        return Err(Error::index(format!(
            "index_add_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}",
            index.rank(),
            index.dtype().type_name(),
            fmt_shape(&index.shape())
        )));
    }
    if !is_index_dtype(index.dtype()) {
        return Err(Error::runtime(format!("index_add_(): Expected dtype int32/int64 for index but got: {}", index.dtype().type_name())));
    }
    if x.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "index_add_(): self ({}) and source ({}) must have the same scalar type",
            x.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    let alpha = if x.dtype() == DType::Bool { alpha } else { pointwise::factor_in(alpha, x.dtype())? };
    let (xs, ss) = (x.shape(), source.shape());
    let n = index.numel();
    let have = ss.get(d).copied().unwrap_or(1);
    if have != n {
        return Err(Error::runtime(format!(
            "index_add_(): Number of indices ({n}) should be equal to source.size(dim): ({have}), for dim: {d}"
        )));
    }
    if xs.len() != ss.len() || (0..xs.len()).any(|i| i != d && xs[i] != ss[i]) {
        return Err(Error::runtime(format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {}",
            fmt_shape(&xs),
            fmt_shape(&ss)
        )));
    }
    let source = if alpha == Scalar::Int(1) { source.clone() } else { pointwise::mul(source, alpha)? };
    let i = at_least_1d(index)?;
    // PyTorch raises IndexError for a vector, RuntimeError otherwise.
    let bounds = if xs.len() <= 1 { Bounds::Select } else { Bounds::Exact };
    on_dims(place, x, |x, place| {
        let source = at_least_1d(&source)?;
        put_at(place, x, IndexPlan::one(d, bounds), &[i], &source, true, &INDEX_ADD, "index_add_")
    })
}

/// Runs a write on a 0-d tensor as on a 1-d tensor.
pub(crate) fn on_dims(place: WriteTarget, x: &Tensor, f: impl FnOnce(&Tensor, WriteTarget) -> Result<Tensor>) -> Result<Tensor> {
    if x.rank() > 0 {
        return f(x, place);
    }
    let wide = crate::ops::shape::view(x, &[1])?;
    let out = f(&wide, place)?;
    if place == WriteTarget::Same { Ok(x.clone()) } else { primitives::reshape(&out, &[]) }
}

/// `x` with the slices along `dim` that the index names replaced by those of `source`.
pub fn index_copy(place: WriteTarget, x: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    if index.rank() > 1 {
        return Err(Error::index(format!("index_copy_(): Index should have dimension 1 or 0 (got {})", index.rank())));
    }
    if index.dtype() != DType::I64 {
        return Err(Error::runtime("index_copy_(): Expected a long tensor for index"));
    }
    let cast = if x.dtype() == source.dtype() || !matches!(place, WriteTarget::New) { None } else { Some(autocast::widen([x, source])?) };
    let [x, source] = cast.as_ref().map_or([x, source], |cast| cast.of([x, source]));
    if x.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
            x.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    let (xs, ss) = (x.shape(), source.shape());
    let n = index.numel();
    if ss.is_empty() && n != 1 {
        return Err(Error::index(format!("index_copy_(): When source is scalar, index should have one element (got {n})")));
    }
    if !ss.is_empty() && ss.len() != xs.len() && !xs.is_empty() {
        return Err(Error::index(format!(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({}), \
             destination dimensionality ({})",
            ss.len(),
            xs.len()
        )));
    }
    if xs.len() == ss.len() {
        let slice = |s: &[usize]| -> Vec<usize> { (0..s.len()).filter(|i| *i != d).map(|i| s[i]).collect() };
        let (a, b) = (slice(&xs), slice(&ss));
        if a != b {
            return Err(Error::runtime(format!(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension {d} and source \
                 slice shape: {} at dimension {d}.",
                fmt_shape(&a),
                fmt_shape(&b)
            )));
        }
        let have = ss.get(d).copied().unwrap_or(1);
        if have != n {
            return Err(Error::index(format!("index_copy_(): Number of indices ({n}) should be equal to source.size(dim) ({have})")));
        }
    }
    let i = at_least_1d(index)?;
    on_dims(place, x, |x, place| put_at(place, x, IndexPlan::one(d, Bounds::Copy), &[i], source, false, &INDEX_COPY, "index_copy_"))
}

/// `x` with the slices along `dim` that the index names filled with a number or a 0-d tensor.
pub fn index_fill(place: WriteTarget, x: &Tensor, dim: i64, index: &Tensor, value: pointwise::Arg<'_>) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    if index.dtype() != DType::I64 {
        return Err(Error::index("index_fill_(): Expected dtype int64 for index."));
    }
    if index.rank() > 1 {
        return Err(Error::runtime("Index has to be a vector/scalar"));
    }
    let (value, node) = match value {
        pointwise::Arg::Scalar(Scalar::Complex(_)) if !x.dtype().is_complex() => {
            return Err(Error::runtime("index_fill_(): Converting complex Scalar to non-complex type is not supported"));
        }
        pointwise::Arg::Tensor(t) if t.rank() > 0 => {
            return Err(Error::runtime(format!(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                t.rank()
            )));
        }
        pointwise::Arg::Tensor(t) => (t.clone(), &INDEX_FILL_TENSOR),
        pointwise::Arg::Scalar(s) => (pointwise::number(s, x.dtype())?, &INDEX_FILL),
    };
    let i = at_least_1d(&named_once(index, &value)?)?;
    on_dims(place, x, |x, place| put_at(place, x, IndexPlan::one(d, Bounds::Wrap), &[i], &value, false, node, "index_fill_"))
}
