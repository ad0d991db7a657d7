//! The operation of all pointwise rows, and the instance of the scalar language over tensors, which gives derivatives of every order.

use crate::array::{Array, Numbers, fusion};
use crate::autograd::dispatch::apply::apply1;
use crate::autograd::dispatch::fast_path::apply_step;
use crate::autograd::dispatch::flat::with_zero_second;
use crate::autograd::dispatch::mode;
use crate::autograd::dispatch::op::{Arrays, Devices, Op, Saves};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::NodeOp;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::primitives;
use crate::autograd::tensor::{Tensor, Value};
use crate::autograd::transforms::forward_mode::{self, Jvp, Tangents};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::Func;
use crate::rows::{Analytic, Cond, Constant, Field, Num, OUTPUT, Real, RowId};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::OnceLock;

pub use crate::rows::MAX_PARAMS;

/// Which operand is a Python number. PyTorch names some nodes after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    None,
    Later,
    First,
}

/// Whether an operand's gradient is the cotangent itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::autograd) enum Passthrough {
    Identity,
    /// The cotangent with its sign changed.
    Negated,
    None,
}

/// A row with its parameters, the dtype it computes in, and that of the result.
#[derive(Debug, Clone, Copy)]
pub struct PointwiseOp {
    pub row: RowId,
    pub compute: DType,
    pub out: DType,
    pub params: [Scalar; MAX_PARAMS],
    pub number: Number,
}

impl PointwiseOp {
    /// A row that computes in `dtype`. Its kind determines the result's dtype. The caller fills in the parameters.
    #[inline]
    pub fn of(row: RowId, dtype: DType) -> Self {
        let out = Func::forward(row).out_dtype(dtype);
        PointwiseOp { row, compute: dtype, out, params: [Scalar::Int(0); MAX_PARAMS], number: Number::None }
    }

    /// Whether it adds its operands.
    #[inline]
    pub fn is_sum(&self) -> bool {
        self.row == RowId::Add
    }

    #[inline]
    fn params(&self) -> &[Scalar] {
        &self.params[..self.row.info().params.len()]
    }

    pub fn node_name(&self) -> &'static str {
        self.row.info().node_names[self.number as usize]
    }

    /// Whether nothing is kept but a number, an attribute of the node that no pass frees.
    #[inline]
    pub(in crate::autograd) fn saves_only_its_number(&self) -> bool {
        matches!(self.number, Number::Later) && self.row.info().attributes_with_number.is_some()
    }

    /// The node's saved attributes, under PyTorch's names.
    pub fn saved_attributes(&self) -> SavedAttributes {
        let info = self.row.info();
        let saves = info.saves(info.differentiable());
        let mut attributes = SavedAttributes::new();
        for (i, operand) in info.operands.iter().enumerate() {
            if saves >> i & 1 == 1 {
                attributes.push((operand.public, SavedAttribute::Input(i)));
            }
        }
        if saves & OUTPUT != 0 {
            attributes.push(("result", SavedAttribute::Output(0)));
        }
        for (name, value) in info.params.iter().zip(self.params()).filter(|(name, _)| !info.hidden.contains(name)) {
            attributes.push((name, SavedAttribute::Number(*value)));
        }
        attributes.extend(info.constants.iter().map(|(name, constant)| {
            let attribute = match constant {
                Constant::Whole(i) => SavedAttribute::Int(*i),
                Constant::Word(s) => SavedAttribute::Text(s),
                Constant::Nothing => SavedAttribute::Nothing,
            };
            (*name, attribute)
        }));
        if let (Number::Later, Some(names)) = (self.number, info.attributes_with_number) {
            attributes.retain(|k| names.contains(&k.0));
        }
        attributes
    }

    /// Whether the gradient of an operand is the cotangent itself, read off the row's formula. Such derivatives have no kernels.
    #[inline]
    pub(in crate::autograd) fn passthrough(&self, operand: usize) -> Passthrough {
        static ALL: OnceLock<Vec<[Passthrough; 3]>> = OnceLock::new();
        let of_row = |row: &RowId| {
            std::array::from_fn(|i| match row.vjp_formula(i).as_deref() {
                Some("g") => Passthrough::Identity,
                Some("-g") => Passthrough::Negated,
                _ => Passthrough::None,
            })
        };
        ALL.get_or_init(|| RowId::ALL.iter().map(of_row).collect())[self.row as usize][operand]
    }

    fn forward_func(&self) -> Func {
        Func::forward(self.row)
    }

    /// The gradient of operand `i`: zeros without a derivative, where the result was written over a tensor with history.
    pub(in crate::autograd) fn grad(&self, i: usize, cx: &VjpCx<'_>, g: &Tensor) -> Result<Option<Tensor>> {
        let info = self.row.info();
        let Some(reads) = info.operands[i].saves else { return primitives::zeros_like(Some(g)) };
        let n = info.arity();
        // Positions that the derivative does not read hold `g`.
        let mut xs: SmallVec<[Option<Tensor>; 3]> = SmallVec::new();
        for k in 0..n {
            xs.push(if reads & (1 << k) != 0 { Some(cx.input(k)?) } else { None });
        }
        let y = if reads & OUTPUT != 0 { Some(cx.output(0)?) } else { None };
        let recorded = mode::is_grad_enabled() && (y.is_some() || g.requires_grad() || xs.iter().flatten().any(Tensor::requires_grad));
        let dual = g.has_tangent() || y.iter().chain(xs.iter().flatten()).any(Tensor::has_tangent);
        let func = Func::vjp(self.row, i);
        // Without a fused kernel the derivative is composed of forward operations.
        if reads != 0 && !recorded && !dual && g.with_array(|a| a.has_row(func, self.compute)) {
            let held = std::iter::once(g).chain(xs.iter().map(|x| x.as_ref().unwrap_or(g))).chain(std::iter::once(y.as_ref().unwrap_or(g)));
            let run = |arrays: &[&Array]| Array::pointwise(func, self.compute, self.compute, arrays, self.params());
            let mut handles: SmallVec<[Array; 5]> = SmallVec::new();
            {
                let cores: SmallVec<[_; 5]> = held.map(Tensor::read).collect();
                let arrays: Option<SmallVec<[&Array; 5]>> = cores
                    .iter()
                    .map(|c| match &c.value {
                        Value::Array(a) => Some(a),
                        Value::Wrapped(_) => None,
                    })
                    .collect();
                if let Some(arrays) = arrays {
                    if arrays.iter().all(|a| a.numel() < fusion::large() && a.storage().is_plain()) {
                        return Ok(Some(Tensor::new(run(&arrays)?)));
                    }
                    handles.extend(arrays.into_iter().cloned());
                }
            }
            // No tensor is locked here: a program may run, or the device may be waited for.
            if !handles.is_empty() {
                return Ok(Some(Tensor::new(run(&handles.iter().collect::<SmallVec<[&Array; 5]>>())?)));
            }
        }
        self.composed(i, g, xs, y).map(Some)
    }

    /// The gradient of operand `i`, composed of tensor operations so that it has a history.
    fn composed(&self, i: usize, g: &Tensor, xs: SmallVec<[Option<Tensor>; 3]>, y: Option<Tensor>) -> Result<Tensor> {
        let info = self.row.info();
        let read = if info.zero_second { xs.iter().chain([&y]).flatten().next().cloned() } else { None };
        // PyTorch computes the gradient of `relu` as that of `threshold`.
        let first = if self.row == RowId::Relu { RowId::Threshold } else { self.row };
        let flat = |v: Tensor| match read {
            Some(read) => {
                with_zero_second(v, || Ok(read), || format!("{}Backward0", first.info().node_names[0].trim_end_matches('0')).into())
            }
            None => Ok(v),
        };
        let or_g = |t: Option<Tensor>| t.map_or_else(|| Expr::of(g.clone()), Expr::operand);
        // Loops that push: collecting costs more than a small operation.
        let (mut operands, mut p): (SmallVec<[Expr; 3]>, SmallVec<[Expr; 3]>) = (SmallVec::new(), SmallVec::new());
        for x in xs {
            operands.push(or_g(x));
        }
        for param in self.params() {
            p.push(Expr::number(param.to_f64(), self.compute));
        }
        let v = self.row.vjp(i, &Expr::of(g.clone()), &operands, &or_g(y), &p).finish()?;
        // A derivative may be a 0-d number on the CPU.
        if v.rank() > 0 {
            return flat(v);
        }
        flat(primitives::spread(&v, g)?)
    }
}

impl Vjp for PointwiseOp {
    fn node_name(&self) -> Name {
        PointwiseOp::node_name(self).into()
    }

    #[inline]
    fn into_node(self) -> NodeOp {
        NodeOp::Pointwise(self)
    }

    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.row.info().arity();
        let mut out = Grads::new();
        for i in 0..n {
            out.push(if cx.needs(i) { self.grad(i, cx, g)? } else { None });
        }
        Ok(out)
    }
}

impl Op for PointwiseOp {
    fn name(&self) -> &'static str {
        self.row.info().name
    }

    fn devices(&self) -> Devices {
        Devices::Numbers
    }

    fn accepts_pending(&self) -> bool {
        true
    }

    #[inline]
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![Array::pointwise(self.forward_func(), self.compute, self.out, x, self.params())?])
    }

    fn work(&self, x: &[&Array]) -> usize {
        let rank = x.iter().map(|a| a.rank()).max().unwrap_or(0);
        // The forward reports operands that do not broadcast.
        let size = |a: &Array, d: usize| a.rank().checked_sub(d + 1).map_or(1, |i| a.shape()[i]);
        (0..rank).map(|d| x.iter().map(|a| size(a, d)).max().unwrap_or(1)).product()
    }

    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        for a in &x[1..] {
            if a.shape() != out.shape() {
                let all = crate::layout::broadcast(out.shape(), a.shape())?;
                if all[..] != *out.shape() {
                    return Err(crate::autograd::dispatch::apply::inplace_shape(out.shape(), &all));
                }
            }
        }
        if x[1..].iter().any(|a| a.overlaps_partly(out)) {
            return Err(Error::runtime(format!(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please \
                 clone() the tensor before performing the operation ({}_).",
                self.name()
            )));
        }
        if self.out == out.dtype() {
            return out.pointwise_into(self.forward_func(), self.compute, x, self.params());
        }
        let made = Array::pointwise(self.forward_func(), self.compute, self.out, x, self.params())?;
        out.copy_from(&made)
    }

    fn saves(&self, needs: &[bool]) -> Saves {
        let mut needed = 0u8;
        for (i, n) in needs.iter().enumerate() {
            needed |= u8::from(*n) << i;
        }
        let mask = self.row.info().saves(needed);
        Saves::of_row(mask & !OUTPUT, mask & OUTPUT != 0)
    }

    fn differentiable(&self, _output: usize) -> bool {
        self.row.info().differentiable() != 0
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        forward_mode::pointwise(self, cx)
    }
}

thread_local! {
    /// The first error of the expression that this thread evaluates: operators cannot return one.
    static FAILED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// A number of the scalar language. What formulas compute from numbers alone (parameters and literals: arithmetic, comparisons, choices, powers) is
/// folded in double precision and not recorded.
#[derive(Clone)]
pub struct Expr(Term);

#[derive(Clone)]
enum Term {
    Tensor(Tensor),
    /// A known number, and the dtype in which it is used.
    Number(f64, DType),
    /// A number that the operation had as an operand. It is no part of the formula, so nothing is folded with it.
    Operand(f64, DType),
    Truth(bool),
    /// What follows an error.
    Failed,
}

impl Expr {
    pub fn of(t: Tensor) -> Expr {
        Expr(Term::Tensor(t))
    }

    /// The value, or the first error of the expression.
    pub fn finish(self) -> Result<Tensor> {
        let failed = FAILED.with(|f| f.borrow_mut().take());
        match (failed, self.0) {
            (Some(e), _) => Err(e),
            (None, Term::Failed) => Err(Error::runtime("an expression over tensors lost its value")),
            (None, term) => term.tensor(),
        }
    }

    fn number(v: f64, dtype: DType) -> Expr {
        Expr(Term::Number(v, dtype))
    }

    /// A saved operand or result.
    fn operand(t: Tensor) -> Expr {
        let number = {
            let core = t.read();
            match &core.value {
                Value::Array(a) if core.number && matches!(a.dtype(), DType::F32 | DType::F64) && a.storage().is_plain() => {
                    Some((a.first(), a.dtype()))
                }
                _ => None,
            }
        };
        match number {
            Some((Ok(v), dtype)) => Expr(Term::Operand(v.to_f64(), dtype)),
            _ => Expr::of(t),
        }
    }

    fn truth(v: bool) -> Expr {
        Expr(Term::Truth(v))
    }

    /// Both values, if both are known numbers, with the first one's dtype.
    fn numbers(&self, o: &Expr) -> Option<(f64, f64, DType)> {
        match (&self.0, &o.0) {
            (Term::Number(a, dtype), Term::Number(b, _)) => Some((*a, *b, *dtype)),
            _ => None,
        }
    }

    fn known(&self) -> Option<f64> {
        if let Term::Number(v, _) = self.0 { Some(v) } else { None }
    }

    fn from_result(result: Result<Tensor>) -> Expr {
        match result {
            Ok(t) => Expr::of(t),
            Err(e) => {
                FAILED.with(|f| {
                    f.borrow_mut().get_or_insert(e);
                });
                Expr(Term::Failed)
            }
        }
    }

    fn dtype(&self) -> DType {
        match &self.0 {
            Term::Tensor(t) => t.dtype(),
            Term::Number(_, dtype) | Term::Operand(_, dtype) => *dtype,
            Term::Truth(_) => DType::Bool,
            Term::Failed => DType::F32,
        }
    }

    fn row(row: RowId, xs: &[&Expr]) -> Expr {
        // Masks, if any, come first; the last operand has the dtype to compute in.
        Expr::applied(&PointwiseOp::of(row, xs.last().map_or(DType::F32, |x| x.dtype())), xs)
    }

    fn applied(op: &PointwiseOp, xs: &[&Expr]) -> Expr {
        match Expr::applied_directly(op, xs) {
            Ok(None) => {}
            Ok(Some(t)) => return Expr::of(t),
            Err(e) => return Expr::from_result(Err(e)),
        }
        let mut numbers: SmallVec<[Tensor; 2]> = SmallVec::new();
        for x in xs {
            match &x.0 {
                Term::Failed => return Expr(Term::Failed),
                Term::Tensor(_) => {}
                known => match known.clone().tensor() {
                    Ok(t) => numbers.push(t),
                    Err(e) => return Expr::from_result(Err(e)),
                },
            }
        }
        let mut numbers = numbers.iter();
        let tensors: SmallVec<[&Tensor; 3]> =
            xs.iter().filter_map(|x| if let Term::Tensor(t) = &x.0 { Some(t) } else { numbers.next() }).collect();
        Expr::from_result(apply1(op, &tensors))
    }
}

impl Expr {
    /// The fast path, on which numbers need no tensor.
    #[inline]
    fn applied_directly(op: &PointwiseOp, xs: &[&Expr]) -> Result<Option<Tensor>> {
        let mut numbers = Numbers::NONE;
        // Any of the tensors stands in the place of a number.
        let Some(any) = xs.iter().find_map(|x| x.tensor()) else { return Ok(None) };
        let mut tensors = [any; 3];
        for (i, x) in xs.iter().enumerate() {
            match &x.0 {
                Term::Tensor(t) => tensors[i] = t,
                Term::Number(v, dtype) | Term::Operand(v, dtype) if *dtype == op.compute => numbers.set(i, *v),
                _ => return Ok(None),
            }
        }
        apply_step(op, &tensors[..xs.len()], &numbers)
    }

    fn tensor(&self) -> Option<&Tensor> {
        if let Term::Tensor(t) = &self.0 { Some(t) } else { None }
    }
}

impl Term {
    /// Known values become 0-d tensors that stand for numbers.
    fn tensor(self) -> Result<Tensor> {
        match self {
            Term::Tensor(t) => Ok(t),
            Term::Number(v, dtype) | Term::Operand(v, dtype) => Ok(Tensor::number(Array::scalar(Scalar::Float(v), dtype)?)),
            Term::Truth(v) => Ok(Tensor::new(Array::scalar(Scalar::Bool(v), DType::Bool)?)),
            Term::Failed => Err(Error::runtime("an expression over tensors failed")),
        }
    }
}

impl Cond for Expr {
    fn and(self, other: Self) -> Self {
        match (&self.0, &other.0) {
            (Term::Truth(true), _) | (_, Term::Truth(false)) => other,
            (Term::Truth(false), _) | (_, Term::Truth(true)) => self,
            _ => Expr::row(RowId::LogicalAnd, &[&self, &other]),
        }
    }
    fn or(self, other: Self) -> Self {
        match (&self.0, &other.0) {
            (Term::Truth(false), _) | (_, Term::Truth(true)) => other,
            (Term::Truth(true), _) | (_, Term::Truth(false)) => self,
            _ => Expr::row(RowId::LogicalOr, &[&self, &other]),
        }
    }
    fn not(self) -> Self {
        match self.0 {
            Term::Truth(v) => Expr::truth(!v),
            _ => Expr::row(RowId::LogicalNot, &[&self]),
        }
    }
}

macro_rules! folded_operators {
    ($($Trait:ident $f:ident $op:tt $row:ident),* $(,)?) => { $(
        impl $Trait for Expr {
            type Output = Expr;
            fn $f(self, o: Expr) -> Expr {
                match self.numbers(&o) {
                    Some((a, b, dtype)) => Expr::number(a $op b, dtype),
                    None => Expr::row(RowId::$row, &[&self, &o]),
                }
            }
        }
    )* };
}

folded_operators!(Add add + Add, Sub sub - Sub, Mul mul * Mul);

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        match self.0 {
            Term::Number(v, dtype) => Expr::number(-v, dtype),
            _ => Expr::row(RowId::Neg, &[&self]),
        }
    }
}

macro_rules! unary {
    ($($f:ident => $row:ident),* $(,)?) => { $(fn $f(self) -> Self { Expr::row(RowId::$row, &[&self]) })* };
}
macro_rules! binary {
    ($($f:ident => $row:ident),* $(,)?) => { $(fn $f(self, o: Self) -> Self { Expr::row(RowId::$row, &[&self, &o]) })* };
}

macro_rules! folded_comparisons {
    ($($f:ident $op:tt $row:ident),* $(,)?) => { $(
        fn $f(&self, o: &Self) -> Expr {
            match self.numbers(o) {
                Some((a, b, _)) => Expr::truth(a $op b),
                None => Expr::row(RowId::$row, &[self, o]),
            }
        }
    )* };
}

impl Field for Expr {
    type Cond = Expr;
    rgrad_kernels::without_imaginary_part!();

    fn lit(&self, v: f64) -> Self {
        Expr::number(v, self.dtype())
    }
    folded_comparisons!(eq == Eq, ne != Ne);
    fn is_nan(&self) -> Expr {
        self.known().map_or_else(|| Expr::row(RowId::IsNan, &[self]), |v| Expr::truth(v.is_nan()))
    }
    fn is_inf(&self) -> Expr {
        self.known().map_or_else(|| Expr::row(RowId::IsInf, &[self]), |v| Expr::truth(v.is_infinite()))
    }
    fn select(c: Expr, a: Self, b: Self) -> Self {
        match c.0 {
            Term::Truth(v) => {
                if v {
                    a
                } else {
                    b
                }
            }
            _ => Expr::row(RowId::Where, &[&c, &a, &b]),
        }
    }
    /// A power by a known number is the operation that has a number as exponent.
    fn pow(self, e: Self) -> Self {
        match (self.known(), e.known()) {
            (Some(x), Some(e)) => Expr::number(x.powf(e), self.dtype()),
            (None, Some(e)) => {
                let mut op = PointwiseOp::of(RowId::PowScalar, self.dtype());
                op.params[0] = Scalar::Float(e);
                Expr::applied(&op, &[&self])
            }
            _ => Expr::row(RowId::Pow, &[&self, &e]),
        }
    }
}

impl Num for Expr {
    folded_comparisons!(lt < Lt, le <= Le);
    unary!(abs => Abs, sign => Sign, floor => Floor, ceil => Ceil, round => Round, trunc => Trunc);
    binary!(max => Maximum, min => Minimum, div_floor => DivFloor, div_trunc => DivTrunc, fmod => Fmod, remainder => Remainder);
}

impl Analytic for Expr {
    unary!(
        sqrt => Sqrt, exp => Exp, exp2 => Exp2, expm1 => Expm1, log => Log, log2 => Log2, log10 => Log10, log1p => Log1p,
        sin => Sin, cos => Cos, tan => Tan, asin => Asin, acos => Acos, atan => Atan, sinh => Sinh, cosh => Cosh, tanh => Tanh,
        asinh => Asinh, acosh => Acosh, atanh => Atanh, sigmoid => Sigmoid,
    );
    fn div(self, o: Self) -> Self {
        match self.numbers(&o) {
            Some((a, b, dtype)) => Expr::number(a / b, dtype),
            None => Expr::row(RowId::Div, &[&self, &o]),
        }
    }
}

impl Real for Expr {
    unary!(erf => Erf, erfc => Erfc);
    binary!(atan2 => Atan2, hypot => Hypot, copysign => Copysign);
}
