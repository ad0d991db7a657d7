//! Pointwise operations on tensors: PyTorch's argument checks, then the row. Type promotion is in `promotion`.

pub use super::promotion::{Arg, default_dtype, no_common, promote, result_type_of, set_default_dtype};
use super::promotion::{check_common, check_unpromoted, compute_dtype, promotion_of};
use crate::array::{Array, Device, Numbers};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{
    Arrays, Devices, Grads, Jvp, MAX_PARAMS, Name, Number, OldValue, Op, PointwiseOp, Saves, Tangents, Tensor, Vjp, VjpCx, apply_direct,
    apply_inplace, apply1, primitives, write_direct,
};
use crate::error::{Error, Result};
use crate::layout::{Category, DType, Scalar, broadcast, result_type};
use crate::rows::{DTypeRule, Func, Output, RowId};
use smallvec::SmallVec;

/// A number as a 0-d tensor of `dtype`, refused where it does not fit.
pub(crate) fn number(s: Scalar, dtype: DType) -> Result<Tensor> {
    primitives::check_fits(s, dtype)?;
    Ok(Tensor::number(Array::scalar(s, dtype)?))
}

/// A number as `where` and item assignment see it: as a tensor of the dtype, so that floats of 16 bits may become infinite.
pub(crate) fn assigned(s: Scalar, dtype: DType) -> Result<Scalar> {
    if dtype.is_half() { Ok(Array::scalar(s, dtype)?.first()?) } else { Ok(s) }
}

/// A call of a row, without its operands' values.
struct CallPlan {
    op: PointwiseOp,
    /// Operands converted to the dtype computed in; None if an operand is used as it is.
    converted: SmallVec<[Option<Tensor>; 3]>,
}

/// Whether parameter `i` of a row of 16-bit floats must fit into them; others are float32 numbers.
fn is_narrow_param(row: RowId, i: usize) -> bool {
    let narrow = matches!(row, RowId::Clamp | RowId::ClampMin | RowId::ClampMax | RowId::Hardtanh) || row == RowId::Threshold && i == 1;
    narrow || Func::forward(row).rounds_params()
}

fn plan(row: RowId, args: &[Arg<'_>], params: &[Scalar]) -> Result<CallPlan> {
    let info = row.info();
    debug_assert_eq!((args.len(), params.len()), (info.arity(), info.params.len()), "{}", info.name);
    let common = if args.len() == 1 {
        promote(args)
    } else {
        result_type(args.iter().zip(info.operands).filter(|(_, o)| !o.mask).map(|(a, _)| promotion_of(a))).unwrap_or_else(default_dtype)
    };
    if row == RowId::Logaddexp && common.is_complex() {
        // The row of real numbers compares them.
        return plan(RowId::LogaddexpOfComplex, args, params);
    }
    if info.rule == DTypeRule::Subtract && args.iter().any(|a| promotion_of(a).0 == DType::Bool) {
        compute_dtype(row, DType::Bool)?;
    }
    if info.unpromoted {
        check_unpromoted(info, args)?;
    }
    if args.iter().any(|a| matches!(a, Arg::Tensor(t) if t.dtype().is_wide_unsigned())) {
        check_common(args.iter().zip(info.operands).filter(|(_, o)| !o.mask).map(|(a, _)| promotion_of(a)))?;
    }
    let compute = compute_dtype(row, common)?;
    let mut op = PointwiseOp::of(row, compute);
    op.params[..params.len()].copy_from_slice(params);
    debug_assert!(params.len() <= MAX_PARAMS);
    // Parameters of these are numbers as they are.
    let any_number = matches!(row, RowId::PowScalar | RowId::NanToNum | RowId::RoundTo | RowId::HuberLoss | RowId::SmoothL1Loss);
    if row == RowId::Hardtanh && compute == DType::U8 && params.iter().any(|p| p.to_f64() < 0.0) {
        return Err(Error::runtime("cannot do hardtanh on an unsigned type with negative limits"));
    }
    if !params.is_empty() && (!any_number || !compute.is_differentiable() || row == RowId::PowScalar && compute.is_half()) {
        for (i, p) in params.iter().enumerate() {
            let seen = if compute.is_half() && !is_narrow_param(row, i) { DType::F32 } else { compute };
            primitives::check_fits(*p, seen)?;
        }
    }
    let wide = compute.is_half() && !Func::forward(row).rounds_numbers();
    let mut converted: SmallVec<[Option<Tensor>; 3]> = SmallVec::new();
    for (i, a) in args.iter().enumerate() {
        let want = if info.operands[i].mask { DType::Bool } else { compute };
        converted.push(match a {
            Arg::Tensor(t) if t.dtype() == want || wide && t.is_number() && t.dtype() == DType::F32 => None,
            Arg::Tensor(t) if info.operands[i].mask => {
                return Err(Error::runtime(format!(
                    "{} expected condition to be a boolean tensor, but got a tensor with dtype {}",
                    info.name,
                    t.dtype()
                )));
            }
            Arg::Tensor(t) => Some(primitives::cast(t, want)?),
            Arg::Scalar(s) => {
                op.number = if i == 0 { Number::First } else { Number::Later };
                // As an operand the number wraps around; beside a mask it is a value to write, and must fit.
                Some(if info.masks {
                    number(assigned(*s, want)?, want)?
                } else {
                    Tensor::number(Array::scalar(*s, if wide { DType::F32 } else { want })?)
                })
            }
        });
    }
    Ok(CallPlan { op, converted })
}

impl CallPlan {
    fn inputs<'a>(&'a self, args: &[Arg<'a>]) -> SmallVec<[&'a Tensor; 3]> {
        args.iter()
            .zip(&self.converted)
            .map(|(a, m)| match (m, a) {
                (Some(t), _) => t,
                (None, Arg::Tensor(t)) => *t,
                (None, Arg::Scalar(_)) => unreachable!("numbers are always made into tensors"),
            })
            .collect()
    }
}

/// Applies a row.
#[inline]
pub fn call(row: RowId, args: &[Arg<'_>], params: &[Scalar]) -> Result<Tensor> {
    let direct = match args {
        [Arg::Tensor(x)] => apply_direct(row, [x], &Numbers::NONE, params)?,
        [Arg::Tensor(x), Arg::Tensor(y)] => apply_direct(row, [x, y], &Numbers::NONE, params)?,
        [Arg::Tensor(x), Arg::Scalar(s)] => number_direct(row, x, 1, *s, params)?,
        [Arg::Scalar(s), Arg::Tensor(x)] => number_direct(row, x, 0, *s, params)?,
        _ => None,
    };
    if let Some(t) = direct {
        return Ok(t);
    }
    if let Some((op, inputs)) = without_promotion(row, args) {
        return apply1(&op, &inputs);
    }
    with_promotion(row, args, params)
}

/// Whether a row refuses a number: subtraction refuses truth values, also beside floats.
#[inline]
fn is_refused(row: RowId, number: Scalar) -> bool {
    matches!(number, Scalar::Bool(_)) && row.info().rule == DTypeRule::Subtract
}

/// The fast path for a tensor and a number, which is operand `at`. A float tensor keeps its dtype whatever the number's.
#[inline]
fn number_direct(row: RowId, x: &Tensor, at: usize, number: Scalar, params: &[Scalar]) -> Result<Option<Tensor>> {
    if is_refused(row, number) || matches!(number, Scalar::Complex(_)) {
        return Ok(None);
    }
    apply_direct(row, [x, x], &Numbers::at(at, number.to_f64()), params)
}

/// The common case, without promotion: float tensors of one dtype, no parameters, no masks.
#[inline]
fn without_promotion<'a>(row: RowId, args: &[Arg<'a>]) -> Option<(PointwiseOp, SmallVec<[&'a Tensor; 3]>)> {
    let info = row.info();
    if !info.rule.keeps_floats() || info.output() == Output::Bool || !info.params.is_empty() || info.masks {
        return None;
    }
    let mut inputs: SmallVec<[&Tensor; 3]> = SmallVec::new();
    let mut dtype = None;
    for a in args {
        let Arg::Tensor(t) = a else { return None };
        let (d, number) = t.dtype_and_number();
        if number || !d.is_float() || dtype.is_some_and(|have| have != d) {
            return None;
        }
        dtype = Some(d);
        inputs.push(t);
    }
    Some((PointwiseOp::of(row, dtype?), inputs))
}

/// The node of a row that is the last step of another operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepNode {
    pub name: &'static str,
    pub attributes: StepAttributes,
}

/// The saved attributes of such a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StepAttributes {
    All,
    AllBut(&'static str),
    /// All, and a parameter of the operation that is None here.
    AllAndNone(&'static str),
    /// None: the row's operands are not those of the operation.
    Nothing,
}

impl From<&'static str> for StepNode {
    /// A node without saved attributes.
    fn from(name: &'static str) -> StepNode {
        StepNode { name, attributes: StepAttributes::Nothing }
    }
}

/// A row that is the last step of another operation, which names the node.
#[derive(Debug, Clone, Copy)]
struct LastStep {
    op: PointwiseOp,
    node: StepNode,
}

impl Vjp for LastStep {
    fn node_name(&self) -> Name {
        self.node.name.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.op.saved_attributes();
        match self.node.attributes {
            StepAttributes::All => {}
            StepAttributes::AllBut(name) => attributes.retain(|k| k.0 != name),
            StepAttributes::AllAndNone(name) => attributes.push((name, SavedAttribute::Nothing)),
            StepAttributes::Nothing => attributes.clear(),
        }
        attributes
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        self.op.vjp(cx, grads)
    }
}

impl Op for LastStep {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn devices(&self) -> Devices {
        self.op.devices()
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        self.op.forward(x)
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        self.op.forward_into(out, x)
    }
    fn work(&self, x: &[&Array]) -> usize {
        self.op.work(x)
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        self.op.saves(needs)
    }
    fn is_elementwise(&self) -> bool {
        true
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        self.op.jvp(cx)
    }
}

/// Applies a row under another node's name.
pub(crate) fn call_as(row: RowId, node: impl Into<StepNode>, args: &[Arg<'_>], params: &[Scalar]) -> Result<Tensor> {
    let plan = plan(row, args, params)?;
    apply1(&LastStep { op: plan.op, node: node.into() }, &plan.inputs(args))
}

/// The operand that is returned unchanged, if the row's rule says so.
fn returned_unchanged<'a>(row: RowId, args: &[Arg<'a>]) -> Option<&'a Tensor> {
    match args {
        [Arg::Tensor(x)] if row.info().rule == DTypeRule::FloatElseSame && !x.dtype().is_float() => Some(x),
        _ => None,
    }
}

/// Equality with a complex number where the device has no complex tensors of that precision: no real number equals one with an imaginary part that the tensor's
/// precision sees.
fn with_complex_number(row: RowId, args: &[Arg<'_>]) -> Result<Option<Tensor>> {
    let (RowId::Eq | RowId::Ne, [Arg::Tensor(t), Arg::Scalar(Scalar::Complex(z))] | [Arg::Scalar(Scalar::Complex(z)), Arg::Tensor(t)]) =
        (row, args)
    else {
        return Ok(None);
    };
    if t.dtype().is_complex() || t.device().backend()?.has_dtype(t.dtype().to_complex(DType::F32)).is_ok() {
        return Ok(None);
    }
    let dtype = promote(&[Arg::Tensor(t), Arg::Scalar(Scalar::Float(0.0))]);
    let im = if dtype == DType::F64 { z.im } else { f64::from(z.im as f32) };
    let number = if im == 0.0 { z.re } else { f64::NAN };
    call(row, &[Arg::Tensor(&primitives::cast(t, dtype)?), Arg::Scalar(Scalar::Float(number))], &[]).map(Some)
}

fn with_promotion(row: RowId, args: &[Arg<'_>], params: &[Scalar]) -> Result<Tensor> {
    if let Some(made) = with_complex_number(row, args)? {
        return Ok(made);
    }
    if let Some(x) = returned_unchanged(row, args) {
        return primitives::clone(x);
    }
    let plan = plan(row, args, params)?;
    let out = apply1(&plan.op, &plan.inputs(args))?;
    if args.iter().all(|a| matches!(a, Arg::Scalar(_)) || matches!(a, Arg::Tensor(t) if t.is_number())) && plan.op.out == plan.op.compute {
        out.mark_number();
    }
    Ok(out)
}

#[cold]
pub(super) fn cannot_cast(from: DType, to: DType) -> Error {
    Error::runtime(format!("result type {} can't be cast to the desired output type {}", from.type_name(), to.type_name()))
}

/// Applies a row and writes the result over its first operand.
#[inline]
pub fn call_inplace(row: RowId, label: &'static str, target: &Tensor, rest: &[Arg<'_>], params: &[Scalar]) -> Result<()> {
    let done = match rest {
        [] => write_direct(row, label, [target], &Numbers::NONE, params),
        [Arg::Tensor(y)] => write_direct(row, label, [target, y], &Numbers::NONE, params),
        [Arg::Scalar(s)] if !is_refused(row, *s) && !matches!(s, Scalar::Complex(_)) => {
            write_direct(row, label, [target, target], &Numbers::at(1, s.to_f64()), params)
        }
        _ => false,
    };
    if done {
        return Ok(());
    }
    inplace_as(row, None, label, target, rest, params)
}

pub(super) fn inplace_as(
    row: RowId,
    node: Option<StepNode>,
    label: &'static str,
    target: &Tensor,
    rest: &[Arg<'_>],
    params: &[Scalar],
) -> Result<()> {
    let mut args: SmallVec<[Arg<'_>; 3]> = SmallVec::new();
    args.push(Arg::Tensor(target));
    args.extend_from_slice(rest);
    let have = target.dtype();
    if row == RowId::Abs && have.is_complex() {
        return Err(Error::runtime("In-place abs is not supported for complex tensors."));
    }
    if returned_unchanged(row, &args).is_some() {
        return primitives::copy_(target, target);
    }
    if row.info().rule == DTypeRule::Bitwise && !promote(&args).can_cast(have) {
        return Err(cannot_cast(promote(&args), have));
    }
    let plan = plan(row, &args, params)?;
    if !plan.op.out.can_cast(have) {
        return Err(cannot_cast(plan.op.out, have));
    }
    let mut inputs = plan.inputs(&args);
    // The target itself is written, whichever dtype the row computes in.
    inputs[0] = target;
    match node {
        None => apply_inplace(&plan.op, label, &inputs, OldValue::Read),
        Some(node) => apply_inplace(&LastStep { op: plan.op, node }, label, &inputs, OldValue::Read),
    }
}

/// A row that writes over its first input without reading it.
#[derive(Clone)]
struct Overwrite(PointwiseOp);

impl Vjp for Overwrite {
    fn node_name(&self) -> Name {
        Vjp::node_name(&self.0)
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        self.0.vjp(cx, grads)
    }
}

impl Op for Overwrite {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn forward(&self, inputs: &[&Array]) -> Result<Arrays> {
        self.0.forward(&inputs[1..])
    }
    fn forward_into(&self, out: &Array, inputs: &[&Array]) -> Result<()> {
        self.0.forward_into(out, &inputs[1..])
    }
}

/// Applies a row and writes the result into `target`, which nothing records. False, and nothing done, unless it can be computed there:
/// the target has the result's type and shape, lies on the CPU with all inputs, and shares memory with none but element for element.
pub fn call_into(row: RowId, args: &[Arg<'_>], params: &[Scalar], target: &Tensor) -> Result<bool> {
    if returned_unchanged(row, args).is_some() {
        return Ok(false);
    }
    let plan = plan(row, args, params)?;
    let inputs = plan.inputs(args);
    let outside = |t: &Tensor| !t.is_bare() || t.device() != Device::CPU;
    if plan.op.out != target.dtype() || outside(target) || inputs.iter().any(|t| outside(t)) {
        return Ok(false);
    }
    let out = target.memory();
    let mut shape = inputs[0].shape();
    for t in &inputs[1..] {
        shape = broadcast(&shape, &t.shape())?;
    }
    if shape[..] != *out.shape() || inputs.iter().any(|t| t.memory().overlaps_partly(&out)) {
        return Ok(false);
    }
    let mut all: SmallVec<[&Tensor; 4]> = SmallVec::new();
    all.push(target);
    all.extend(inputs);
    apply_inplace(&Overwrite(plan.op), row.info().name, &all, OldValue::Overwritten)?;
    Ok(true)
}

// ---- the operations that other families build on ---------------------------------------------------------------------

macro_rules! unary {
    ($($f:ident => $row:ident),* $(,)?) => { $(
        pub fn $f(x: &Tensor) -> Result<Tensor> { call(RowId::$row, &[x.into()], &[]) }
    )* };
}
macro_rules! binary {
    ($($f:ident => $row:ident),* $(,)?) => { $(
        pub fn $f<'a>(a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>) -> Result<Tensor> {
            call(RowId::$row, &[a.into(), b.into()], &[])
        }
    )* };
}

unary!(
    neg => Neg, abs => Abs, sign => Sign, square => Square, sqrt => Sqrt, rsqrt => Rsqrt, reciprocal => Reciprocal, exp => Exp, log => Log,
    log1p => Log1p, expm1 => Expm1, sin => Sin, cos => Cos, tanh => Tanh, sigmoid => Sigmoid, relu => Relu, isnan => IsNan,
    logical_not => LogicalNot, logsigmoid => LogSigmoid,
);
binary!(
    add => Add, sub => Sub, mul => Mul, div => Div, maximum => Maximum, minimum => Minimum, pow => Pow, eq => Eq, ne => Ne, lt => Lt,
    le => Le, gt => Gt, ge => Ge, logical_and => LogicalAnd, logical_or => LogicalOr,
);

/// `a` where `cond` holds, else `b`.
pub fn where_<'a>(cond: &'a Tensor, a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>) -> Result<Tensor> {
    call(RowId::Where, &[Arg::Tensor(cond), a.into(), b.into()], &[])
}

/// `a + alpha * b`.
pub fn add_scaled<'a>(a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>, alpha: Scalar) -> Result<Tensor> {
    let (a, b) = (a.into(), b.into());
    check_alpha(alpha, promote(&[a, b]))?;
    if alpha == Scalar::Int(1) { call(RowId::Add, &[a, b], &[]) } else { call(RowId::AddScaled, &[a, b], &[alpha]) }
}

/// `a - alpha * b`.
pub fn sub_scaled<'a>(a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>, alpha: Scalar) -> Result<Tensor> {
    let (a, b) = (a.into(), b.into());
    let alpha = subtracted(alpha, promote(&[a, b]))?;
    if alpha == Scalar::Int(1) { call(RowId::Sub, &[a, b], &[]) } else { call(RowId::SubScaled, &[a, b], &[alpha]) }
}

/// `b - alpha * a`.
pub fn rsub<'a>(a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>, alpha: Scalar) -> Result<Tensor> {
    let (a, b) = (a.into(), b.into());
    let alpha = subtracted(alpha, promote(&[a, b]))?;
    let node = RowId::Rsub.info().node_names[usize::from(matches!(b, Arg::Scalar(_)))];
    if alpha == Scalar::Int(1) { call(RowId::Rsub, &[a, b], &[]) } else { call_as(RowId::SubScaled, node, &[b, a], &[alpha]) }
}

/// A factor must not be of a higher category than what it scales.
pub(crate) fn check_alpha(alpha: Scalar, dtype: DType) -> Result<()> {
    if alpha.category() == Category::Bool && dtype != DType::Bool {
        return Err(Error::runtime("Boolean alpha only supported for Boolean results."));
    }
    if alpha.category() == Category::Complex && !dtype.is_complex() {
        return Err(Error::runtime("For non-complex input tensors, argument alpha must not be a complex number."));
    }
    if alpha.category() == Category::Float && !dtype.is_differentiable() {
        return Err(Error::runtime("For integral input tensors, argument alpha must not be a floating point number."));
    }
    Ok(())
}

/// A factor in the dtype of what it scales: integers take the whole part of a fraction.
pub(crate) fn factor_in(factor: Scalar, dtype: DType) -> Result<Scalar> {
    primitives::check_fits(factor, dtype)?;
    Ok(if dtype.is_differentiable() { factor } else { Scalar::Int(factor.to_i64()) })
}

/// The factor of what is subtracted. As in PyTorch, it is its negative that must fit.
pub(crate) fn subtracted(alpha: Scalar, dtype: DType) -> Result<Scalar> {
    check_alpha(alpha, dtype)?;
    match (alpha, dtype.integers()) {
        (Scalar::Int(i), Some((low, _))) => {
            primitives::check_fits(Scalar::Int(i.wrapping_neg()), dtype)?;
            Ok(if alpha.fits(dtype) { alpha } else { Scalar::Int(low) })
        }
        _ => Ok(alpha),
    }
}

/// `x` to the power of a number.
pub fn pow_scalar(x: &Tensor, e: Scalar) -> Result<Tensor> {
    // Parameters are real. A complex number is an operand, which makes the result complex.
    if let Scalar::Complex(_) = e {
        return call(RowId::Pow, &[x.into(), e.into()], &[]);
    }
    if !matches!(e, Scalar::Bool(_))
        && let Some(t) = apply_direct(RowId::PowScalar, [x], &Numbers::NONE, &[e])?
    {
        return Ok(t);
    }
    let common = promote(&[x.into(), e.into()]);
    if !common.is_differentiable()
        && let Scalar::Int(i) = e
        && i < 0
    {
        return Err(Error::runtime("Integers to negative integer powers are not allowed."));
    }
    let computed =
        call(RowId::PowScalar, &[(&primitives::cast(x, if common == DType::Bool { DType::I64 } else { common })?).into()], &[e])?;
    primitives::cast(&computed, common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_has_more_parameters_than_a_node_holds() {
        assert!(RowId::ALL.iter().all(|r| r.info().params.len() <= MAX_PARAMS && r.info().arity() <= 3));
    }
}
