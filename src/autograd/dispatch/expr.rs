//! The instance of the scalar language over tensors: the formulas of rows become operations, which gives derivatives of every order.

use crate::array::{Array, Numbers};
use crate::autograd::dispatch::apply::apply1;
use crate::autograd::dispatch::fast_path::apply_step;
use crate::autograd::dispatch::pointwise::PointwiseOp;
use crate::autograd::primitives;
use crate::autograd::tensor::{Tensor, Value};
use crate::error::{Error, Result};
use crate::layout::{Complex, DType, Scalar};
use crate::rows::{Analytic, Cond, Field, Num, Real, RowId};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::{Add, Mul, Neg, Sub};

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

    pub(super) fn number(v: f64, dtype: DType) -> Expr {
        Expr(Term::Number(v, dtype))
    }

    /// A saved operand or result.
    pub(super) fn operand(t: Tensor) -> Expr {
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
        // Masks, if any, come first; the last operand has the dtype to compute in, unless it is the real part beside a complex number.
        let dtype = xs.last().map_or(DType::F32, |x| x.dtype());
        let complex = if xs.len() > 1 && dtype.is_differentiable() { xs.iter().map(|x| x.dtype()).find(|d| d.is_complex()) } else { None };
        let Some(complex) = complex else { return Expr::applied(&PointwiseOp::of(row, dtype), xs) };
        let lifted: Result<SmallVec<[Expr; 3]>> = xs.iter().map(|x| x.lifted(complex)).collect();
        match lifted {
            Ok(lifted) => Expr::applied(&PointwiseOp::of(row, complex), &lifted.iter().collect::<SmallVec<[&Expr; 3]>>()),
            Err(e) => Expr::from_result(Err(e)),
        }
    }

    /// A real number as one of `complex`.
    fn lifted(&self, complex: DType) -> Result<Expr> {
        Ok(match &self.0 {
            Term::Tensor(t) if t.dtype().is_float() => Expr::of(primitives::cast(t, complex)?),
            Term::Number(v, d) if d.is_float() => Expr::number(*v, complex),
            Term::Operand(v, d) if d.is_float() => Expr(Term::Operand(*v, complex)),
            _ => self.clone(),
        })
    }

    fn is_complex(&self) -> bool {
        self.dtype().is_complex()
    }

    /// A part of a complex number that is known to have one.
    fn part(&self, imaginary: bool) -> Expr {
        match &self.0 {
            Term::Tensor(t) => Expr::from_result(primitives::part(t, imaginary)),
            Term::Number(v, d) | Term::Operand(v, d) => Expr::number(if imaginary { 0.0 } else { *v }, d.row().real),
            Term::Truth(_) | Term::Failed => self.clone(),
        }
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
    /// Real and imaginary parts are expressions too. Beside a complex number a real one counts as one (`row`), so `of_re` need not convert.
    type Re = Self;
    fn re(self) -> Self {
        if self.is_complex() { self.part(false) } else { self }
    }
    fn of_re(re: Self) -> Self {
        re
    }
    fn im(self) -> Self {
        if self.is_complex() { self.part(true) } else { self.lit(0.0) }
    }
    fn turned(self) -> Self {
        if !self.is_complex() {
            return self.lit(0.0);
        }
        let i = Array::scalar(Scalar::Complex(Complex { re: 0.0, im: 1.0 }), self.dtype()).map(Tensor::number);
        Expr::row(RowId::Mul, &[&self, &Expr::from_result(i)])
    }
    fn conj(self) -> Self {
        match &self.0 {
            Term::Tensor(t) if t.dtype().is_complex() => Expr::row(RowId::ConjPhysical, &[&self]),
            _ => self,
        }
    }
    fn modulus(self) -> Self {
        Expr::row(RowId::Abs, &[&self])
    }
    fn sgn(self) -> Self {
        Expr::row(if self.is_complex() { RowId::Sgn } else { RowId::Sign }, &[&self])
    }
    fn angle(self) -> Self {
        Expr::row(RowId::Angle, &[&self])
    }

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
    /// The exact forms are written for real numbers.
    fn is_exact(&self) -> bool {
        !self.is_complex()
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
        sin => Sin, cos => Cos, tan => Tan, asin => Asin, acos => Acos, atan => Atan, sinh => Sinh, cosh => Cosh, tanh => TanhOf,
        asinh => Asinh, acosh => Acosh, atanh => Atanh, sigmoid => SigmoidOf,
    );
    fn div(self, o: Self) -> Self {
        match self.numbers(&o) {
            Some((a, b, dtype)) => Expr::number(a / b, dtype),
            None => Expr::row(RowId::Div, &[&self, &o]),
        }
    }
}

impl Real for Expr {
    fn special(row: RowId, x: &[Self]) -> Self {
        Expr::row(row, &x.iter().collect::<SmallVec<[&Expr; 3]>>())
    }
    unary!(erf => Erf, erfc => Erfc);
    binary!(atan2 => Atan2, hypot => Hypot, copysign => Copysign);
}
