//! Every row's derivative, to the second order, against numbers; and its values at special points.
//!
//! `Traced` is what a tensor is to a derivative: an instance of the scalar language that remembers which row made it. So the
//! derivative's derivative is taken with the rows' own rules, and both orders are compared with finite differences.

use rgrad::layout::{DType, Scalar};
use rgrad::rows::{Analytic, Field, Kind, Num, Real, RowId};
use rgrad_kernels::backend::cpu::pointwise::{Func, StridedOperand, has_kernel, run};
use std::ops::{Add, Mul, Neg, Sub};
use std::rc::Rc;

/// The value of a row at a point, in f64.
pub(crate) fn value(row: RowId, x: &[f64], p: &[f64]) -> f64 {
    let info = row.info();
    let masks: Vec<u8> = x.iter().map(|v| (*v != 0.0) as u8).collect();
    let ins: Vec<StridedOperand> = (0..x.len())
        .map(|k| match info.operands[k].mask {
            true => StridedOperand { ptr: &masks[k], strides: &[], dtype: DType::Bool },
            false => StridedOperand { ptr: &x[k] as *const f64 as *const u8, strides: &[], dtype: DType::F64 },
        })
        .collect();
    let p: Vec<Scalar> = p.iter().map(|v| Scalar::Float(*v)).collect();
    let mut out = 0f64;
    // SAFETY: one element each; a predicate's byte fits too.
    unsafe { run(Func::forward(row), DType::F64, &[], &raw mut out as *mut u8, &[], &ins, &p) }.unwrap();
    out
}

struct Cell {
    value: f64,
    made: Option<(RowId, Vec<Traced>, Vec<Traced>)>,
}

#[derive(Clone)]
struct Traced(Rc<Cell>);

impl Traced {
    fn leaf(value: f64) -> Self {
        Traced(Rc::new(Cell { value, made: None }))
    }

    fn of(row: RowId, x: &[&Traced]) -> Self {
        let values: Vec<f64> = x.iter().map(|x| x.0.value).collect();
        let value = value(row, &values, &[]);
        Traced(Rc::new(Cell { value, made: Some((row, x.iter().map(|x| (*x).clone()).collect(), vec![])) }))
    }

    fn is(&self, other: &Traced) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// What `x` gets from the cotangent `g` of `self`: every path by itself, which small expressions allow.
    fn pull(&self, g: &Traced, x: &Traced) -> Traced {
        if self.is(x) {
            return g.clone();
        }
        let mut sum = Traced::leaf(0.0);
        if let Some((row, ins, p)) = &self.0.made {
            for i in 0..ins.len() {
                if row.info().differentiable() >> i & 1 == 1 && ins[i].reaches(x) {
                    sum = sum + ins[i].pull(&row.vjp(i, g, ins, self, p), x);
                }
            }
        }
        sum
    }

    fn reaches(&self, x: &Traced) -> bool {
        self.is(x) || self.0.made.iter().any(|(_, ins, _)| ins.iter().any(|i| i.reaches(x)))
    }
}

macro_rules! operator {
    ($Op:ident $op:ident) => {
        impl $Op for Traced {
            type Output = Traced;
            fn $op(self, o: Traced) -> Traced {
                Traced::of(RowId::$Op, &[&self, &o])
            }
        }
    };
}
operator!(Add add);
operator!(Sub sub);
operator!(Mul mul);

impl Neg for Traced {
    type Output = Traced;
    fn neg(self) -> Traced {
        Traced::of(RowId::Neg, &[&self])
    }
}

macro_rules! unary {
    ($($f:ident $Row:ident)+) => { $(fn $f(self) -> Self { Traced::of(RowId::$Row, &[&self]) })+ };
}
macro_rules! binary {
    ($($f:ident $Row:ident)+) => { $(fn $f(self, o: Self) -> Self { Traced::of(RowId::$Row, &[&self, &o]) })+ };
}

impl Field for Traced {
    type Cond = bool;
    rgrad_kernels::without_imaginary_part!();

    fn lit(&self, v: f64) -> Self {
        Traced::leaf(v)
    }
    fn eq(&self, o: &Self) -> bool {
        self.0.value == o.0.value
    }
    fn select(c: bool, a: Self, b: Self) -> Self {
        Traced::of(RowId::Where, &[&Traced::leaf(c as u8 as f64), &a, &b])
    }
    binary! { pow Pow }
}

impl Num for Traced {
    fn lt(&self, o: &Self) -> bool {
        self.0.value < o.0.value
    }
    fn le(&self, o: &Self) -> bool {
        self.0.value <= o.0.value
    }
    unary! { abs Abs sign Sign floor Floor ceil Ceil round Round trunc Trunc }
    binary! { max Maximum min Minimum div_floor DivFloor div_trunc DivTrunc fmod Fmod remainder Remainder }
}

impl Analytic for Traced {
    unary! {
        sqrt Sqrt exp Exp exp2 Exp2 expm1 Expm1 log Log log2 Log2 log10 Log10 log1p Log1p sin Sin cos Cos tan Tan asin Asin
        acos Acos atan Atan sinh Sinh cosh Cosh tanh Tanh asinh Asinh acosh Acosh atanh Atanh sigmoid Sigmoid
    }
    binary! { div Div }
}

impl Real for Traced {
    fn special(row: RowId, x: &[Self]) -> Self {
        Traced::of(row, &x.iter().collect::<Vec<_>>())
    }
    unary! { erf Erf erfc Erfc }
    binary! { atan2 Atan2 hypot Hypot copysign Copysign }
}

/// Points inside the row's range, away from its kinks.
pub(crate) fn points(row: RowId) -> Vec<Vec<f64>> {
    let info = row.info();
    let mut seed = 0x9E37_79B9_7F4A_7C15u64 ^ (row as u64) << 32;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut out = vec![];
    while out.len() < 12 {
        let x: Vec<f64> = info
            .operands
            .iter()
            .map(|o| match o.mask {
                true => (random() < 0.5) as u8 as f64,
                false => o.range.0 + (o.range.1 - o.range.0) * random(),
            })
            .collect();
        let smooth = info.kinks.iter().all(|k| (x[0] - k).abs() > 0.05);
        // Choices between operands have their kinks where two are equal.
        let apart = (0..x.len()).all(|i| (0..i).all(|j| (x[i] - x[j]).abs() > 0.05 || info.operands[j].mask));
        if smooth && apart {
            out.push(x);
        }
    }
    out
}

fn rows_with_derivative() -> impl Iterator<Item = RowId> {
    RowId::ALL.iter().copied().filter(|r| r.info().differentiable() != 0)
}

/// Central differences, extrapolated once: an error of about h^4.
fn slope(f: impl Fn(f64) -> f64, at: f64) -> f64 {
    let h = 1e-3;
    let d = |h: f64| (f(at + h) - f(at - h)) / (2.0 * h);
    (4.0 * d(h / 2.0) - d(h)) / 3.0
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= 2e-8 * (1.0 + want.abs())
}

fn vjp_f64(row: RowId, i: usize, g: f64, x: &[f64], p: &[f64]) -> f64 {
    let xs: Vec<Traced> = x.iter().map(|v| Traced::leaf(*v)).collect();
    let ps: Vec<Traced> = p.iter().map(|v| Traced::leaf(*v)).collect();
    row.vjp(i, &Traced::leaf(g), &xs, &Traced::leaf(value(row, x, p)), &ps).0.value
}

#[test]
fn first_derivatives_agree_with_differences() {
    for row in rows_with_derivative() {
        let info = row.info();
        for x in points(row) {
            for i in 0..x.len() {
                if info.differentiable() >> i & 1 == 0 {
                    continue;
                }
                let want = slope(
                    |v| {
                        let mut x = x.clone();
                        x[i] = v;
                        value(row, &x, info.sample_params)
                    },
                    x[i],
                );
                let got = vjp_f64(row, i, 0.7, &x, info.sample_params) / 0.7;
                assert!(close(got, want), "{} d{i} at {x:?}: {got} but differences say {want}", info.name);
            }
        }
    }
}

#[test]
fn second_derivatives_agree_with_differences() {
    for row in rows_with_derivative() {
        let info = row.info();
        for x in points(row) {
            for i in 0..x.len() {
                if info.differentiable() >> i & 1 == 0 {
                    continue;
                }
                let g = Traced::leaf(0.7);
                let xs: Vec<Traced> = x.iter().map(|v| Traced::leaf(*v)).collect();
                let ps: Vec<Traced> = info.sample_params.iter().map(|v| Traced::leaf(*v)).collect();
                let y = value(row, &x, info.sample_params);
                let y = Traced(Rc::new(Cell { value: y, made: Some((row, xs.clone(), ps.clone())) }));
                let first = row.vjp(i, &g, &xs, &y, &ps);
                for j in 0..x.len() {
                    let refused = matches!((row, i, j), (RowId::Igamma | RowId::Igammac, 0, 0) | (RowId::StandardGammaGrad, _, 0));
                    if refused || info.differentiable() >> j & 1 == 0 {
                        continue;
                    }
                    let want = slope(
                        |v| {
                            let mut x = x.clone();
                            x[j] = v;
                            vjp_f64(row, i, 0.7, &x, info.sample_params)
                        },
                        x[j],
                    );
                    let got = first.pull(&Traced::leaf(1.0), &xs[j]).0.value;
                    assert!(close(got, want), "{} d{i} d{j} at {x:?}: {got} but differences say {want}", info.name);
                }
                // Linear in the cotangent.
                let dg = first.pull(&Traced::leaf(1.0), &g).0.value;
                assert!(close(dg * 0.7, first.0.value), "{} d{i} at {x:?} is not linear in the cotangent", info.name);
            }
        }
    }
}

#[test]
fn derivative_kernels_agree_with_the_rule() {
    for row in rows_with_derivative() {
        let info = row.info();
        for x in points(row) {
            let y = value(row, &x, info.sample_params);
            for i in 0..x.len() {
                if info.differentiable() >> i & 1 == 0 {
                    continue;
                }
                let (func, g) = (Func::vjp(row, i), 0.7f64);
                if !has_kernel(func, DType::F64) {
                    continue;
                }
                let masks: Vec<u8> = x.iter().map(|v| (*v != 0.0) as u8).collect();
                let mut ins = vec![StridedOperand { ptr: &raw const g as *const u8, strides: &[], dtype: DType::F64 }];
                for k in 0..x.len() {
                    ins.push(match info.operands[k].mask {
                        true => StridedOperand { ptr: &masks[k], strides: &[], dtype: DType::Bool },
                        false => StridedOperand { ptr: &x[k] as *const f64 as *const u8, strides: &[], dtype: DType::F64 },
                    });
                }
                ins.push(StridedOperand { ptr: &raw const y as *const u8, strides: &[], dtype: DType::F64 });
                for (k, operand) in ins.iter_mut().enumerate() {
                    if func.reads() >> k & 1 == 0 {
                        operand.ptr = std::ptr::null();
                    }
                }
                let p: Vec<Scalar> = info.sample_params.iter().map(|v| Scalar::Float(*v)).collect();
                let mut got = 0f64;
                // SAFETY: one element each; what is not read is null.
                unsafe { run(func, DType::F64, &[], &raw mut got as *mut u8, &[], &ins, &p) }.unwrap();
                let want = vjp_f64(row, i, g, &x, info.sample_params);
                assert!((got - want).abs() <= 1e-14 * (1.0 + want.abs()), "{} d{i} at {x:?}: {got}, {want}", info.name);
            }
        }
    }
}

fn vjp_at(row: RowId, i: usize, x: &[f64], p: &[f64]) -> f64 {
    vjp_f64(row, i, 1.0, x, p)
}

#[test]
fn derivatives_at_special_points_are_those_of_pytorch() {
    use RowId::*;
    let nan = f64::NAN;
    let inf = f64::INFINITY;
    // (row, operand, point, parameters, derivative): values of PyTorch 2.13.
    type Case<'a> = (RowId, usize, &'a [f64], &'a [f64], f64);
    let cases: &[Case<'_>] = &[
        (Relu, 0, &[0.0], &[], 0.0),
        (Relu, 0, &[nan], &[], 1.0),
        (Abs, 0, &[0.0], &[], 0.0),
        (Sign, 0, &[0.0], &[], 0.0),
        (Sqrt, 0, &[0.0], &[], inf),
        (Maximum, 0, &[1.0, 1.0], &[], 0.5),
        (Maximum, 1, &[1.0, 1.0], &[], 0.5),
        (Minimum, 0, &[1.0, 2.0], &[], 1.0),
        (Minimum, 1, &[1.0, 2.0], &[], 0.0),
        (Fmax, 0, &[1.0, 1.0], &[], 1.0),
        (Fmax, 1, &[nan, 1.0], &[], 1.0),
        (Clamp, 0, &[2.0], &[-1.0, 2.0], 1.0),
        (Clamp, 0, &[-1.0], &[-1.0, 2.0], 1.0),
        (Clamp, 0, &[3.0], &[-1.0, 2.0], 0.0),
        (Hardtanh, 0, &[2.0], &[-1.0, 2.0], 0.0),
        (Pow, 0, &[0.0, 0.0], &[], 0.0),
        (Pow, 0, &[0.0, 1.0], &[], 1.0),
        (Pow, 0, &[0.0, 2.0], &[], 0.0),
        (Pow, 1, &[0.0, 2.0], &[], 0.0),
        (Pow, 1, &[0.0, 0.0], &[], 0.0),
        (Pow, 1, &[0.0, -1.0], &[], -inf),
        (PowScalar, 0, &[0.0], &[0.0], 0.0),
        (PowScalar, 0, &[0.0], &[2.0], 0.0),
        (Xlogy, 0, &[0.0, 0.0], &[], 0.0),
        (Xlogy, 1, &[0.0, 2.0], &[], 0.0),
        (LeakyRelu, 0, &[0.0], &[0.1], 0.1),
        (Logaddexp, 0, &[800.0, -800.0], &[], 1.0),
        (Sigmoid, 0, &[-800.0], &[], 0.0),
        (Softplus, 0, &[100.0], &[1.0, 20.0], 1.0),
        (LogSigmoid, 0, &[-800.0], &[], 1.0),
        (Hypot, 0, &[3.0, 4.0], &[], 0.6),
        (Logit, 0, &[2.0], &[-1.0], nan),
        (Logit, 0, &[2.0], &[0.1], 0.0),
        (Elu, 0, &[nan], &[1.0, 1.0, 1.0], nan),
        // Of single elements; PyTorch's vectors give 0.
        (Hardtanh, 0, &[nan], &[-1.0, 1.0], 1.0),
        (Softshrink, 0, &[nan], &[0.5], 0.0),
        (Hardshrink, 0, &[nan], &[0.5], 0.0),
        (Hardshrink, 0, &[0.5], &[0.5], 0.0),
        (Atan2, 0, &[0.0, 0.0], &[], 0.0),
        (Atan2, 1, &[0.0, 0.0], &[], 0.0),
        (Copysign, 0, &[nan, 1.0], &[], nan),
        (Copysign, 0, &[0.0, 1.0], &[], 0.0),
        (Copysign, 0, &[2.0, -1.0], &[], -1.0),
        (SmoothL1Loss, 0, &[nan, 1.0], &[1.0], nan),
        (SmoothL1Loss, 0, &[3.0, 1.0], &[1.0], 1.0),
        (SmoothL1Loss, 0, &[1.0, 1.0], &[0.0], 0.0),
    ];
    for (row, i, x, p, want) in cases {
        let got = vjp_at(*row, *i, x, p);
        assert!(got == *want || got.is_nan() && want.is_nan(), "{:?} d{i} at {x:?}: {got}, not {want}", row);
    }
}

#[test]
fn unused_branches_do_not_poison_second_derivatives() {
    // d2/dx2 and the mixed ones at points where a masked branch is infinite or nan.
    for (row, x, p) in [
        (RowId::Pow, vec![0.0, 2.0], vec![]),
        (RowId::PowScalar, vec![0.0], vec![2.0]),
        (RowId::PowScalar, vec![0.0], vec![0.0]),
        (RowId::Elu, vec![800.0], vec![1.0, 1.0, 1.0]),
        (RowId::Softplus, vec![800.0], vec![1.0, 20.0]),
        (RowId::LogSigmoid, vec![-800.0], vec![]),
        (RowId::Celu, vec![800.0], vec![1.0]),
        (RowId::SmoothL1Loss, vec![1.0, 1.0], vec![0.0]),
    ] {
        let xs: Vec<Traced> = x.iter().map(|v| Traced::leaf(*v)).collect();
        let ps: Vec<Traced> = p.iter().map(|v| Traced::leaf(*v)).collect();
        let y = Traced(Rc::new(Cell { value: value(row, &x, &p), made: Some((row, xs.clone(), ps.clone())) }));
        let first = row.vjp(0, &Traced::leaf(1.0), &xs, &y, &ps);
        assert!(first.0.value.is_finite(), "{row:?} d0 at {x:?}: {}", first.0.value);
        let second = first.pull(&Traced::leaf(1.0), &xs[0]).0.value;
        assert!(second.is_finite(), "{row:?} d0 d0 at {x:?}: {second}");
    }
}

#[test]
fn values_at_special_points() {
    use RowId::*;
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases: &[(RowId, &[f64], &[f64], f64)] = &[
        (Relu, &[nan], &[], nan),
        (Relu, &[-0.0], &[], 0.0),
        (Maximum, &[nan, 1.0], &[], nan),
        (Maximum, &[1.0, nan], &[], nan),
        (Fmax, &[nan, 1.0], &[], 1.0),
        (Fmin, &[1.0, nan], &[], 1.0),
        (Clamp, &[nan], &[0.0, 1.0], nan),
        (Clamp, &[5.0], &[2.0, 1.0], 1.0),
        (Sign, &[nan], &[], 0.0),
        (Remainder, &[-3.0, 2.0], &[], 1.0),
        (Remainder, &[3.0, -2.0], &[], -1.0),
        (Remainder, &[3.0, 0.0], &[], nan),
        (Fmod, &[-3.0, 2.0], &[], -1.0),
        (DivFloor, &[-3.0, 2.0], &[], -2.0),
        (DivFloor, &[1.0, 0.0], &[], inf),
        (DivFloor, &[6.0, 0.1], &[], 59.0),
        (DivTrunc, &[-3.0, 2.0], &[], -1.0),
        (Round, &[2.5], &[], 2.0),
        (Round, &[-0.5], &[], -0.0),
        (Xlogy, &[0.0, 0.0], &[], 0.0),
        (Xlogy, &[0.0, nan], &[], nan),
        (Logaddexp, &[inf, inf], &[], inf),
        (Logaddexp, &[-inf, -inf], &[], -inf),
        (Logaddexp, &[1000.0, 1000.0], &[], 1000.0 + std::f64::consts::LN_2),
        (LogSigmoid, &[-1000.0], &[], -1000.0),
        (Softplus, &[1000.0], &[1.0, 20.0], 1000.0),
        (Hypot, &[inf, nan], &[], inf),
        (Hypot, &[1e300, 1e300], &[], 1.4142135623730951e300),
        (Pow, &[0.0, 0.0], &[], 1.0),
        (Pow, &[nan, 0.0], &[], 1.0),
        (Pow, &[1.0, nan], &[], 1.0),
        (Pow, &[-2.0, 3.0], &[], -8.0),
        (Pow, &[-2.0, 0.5], &[], nan),
        (Pow, &[-0.0, -3.0], &[], -inf),
        (Pow, &[-0.0, 3.0], &[], -0.0),
        (Pow, &[-1.0, inf], &[], 1.0),
        (Pow, &[-inf, 3.0], &[], -inf),
        (Pow, &[0.5, -inf], &[], inf),
        (Pow, &[2.0, 1e300], &[], inf),
        (Atan2, &[0.0, -0.0], &[], std::f64::consts::PI),
        (Atan2, &[-0.0, 1.0], &[], -0.0),
        (Atan2, &[inf, -inf], &[], 0.75 * std::f64::consts::PI),
        (Atan2, &[1.0, nan], &[], nan),
        (NanToNum, &[nan], &[1.0, 2.0, 3.0], 1.0),
        (NanToNum, &[-inf], &[1.0, 2.0, 3.0], 3.0),
        (Gelu, &[-40.0], &[], -0.0),
        (Exp, &[-inf], &[], 0.0),
        (Exp, &[1000.0], &[], inf),
        (Expm1, &[-inf], &[], -1.0),
        (Log, &[-1.0], &[], nan),
        (Log, &[0.0], &[], -inf),
        (Log1p, &[-1.0], &[], -inf),
        (Sin, &[inf], &[], nan),
        (Sin, &[1e22], &[], -0.8522008497671888),
        (Cos, &[1e300], &[], -0.5753861119575491),
        (Tanh, &[-inf], &[], -1.0),
        (Sigmoid, &[-745.0], &[], 5e-324),
        (Sigmoid, &[-inf], &[], 0.0),
        (Acosh, &[0.5], &[], nan),
        (Atanh, &[1.0], &[], inf),
        (Erf, &[inf], &[], 1.0),
        (Erfc, &[-inf], &[], 2.0),
    ];
    for (row, x, p, want) in cases {
        let got = value(*row, x, p);
        let same = got == *want && got.is_sign_negative() == want.is_sign_negative() || got.is_nan() && want.is_nan();
        assert!(same, "{row:?} at {x:?}: {got:e}, not {want:e}");
    }
}

#[test]
fn the_table_is_sound() {
    let mut names = std::collections::HashSet::new();
    for (i, row) in RowId::ALL.iter().enumerate() {
        let info = row.info();
        assert_eq!(*row as usize, i, "ids are dense");
        assert!(names.insert(info.name), "{} twice", info.name);
        assert!(info.doc.trim().ends_with('.'), "{} has a sentence of documentation", info.name);
        assert_eq!(info.params.len(), info.sample_params.len(), "{}", info.name);
        assert!((1..=3).contains(&info.arity()) && info.params.len() <= 3, "{}: kernels have room for three", info.name);
        assert!(info.node_names.iter().all(|n| n.ends_with(char::is_numeric)) || info.differentiable() == 0, "{}", info.name);
        assert!(!matches!(info.kind, Kind::Test | Kind::Cmp | Kind::Int) || info.differentiable() == 0, "{}", info.name);
        for o in info.operands {
            assert!(!o.mask || o.saves.is_none(), "{}: a mask has no derivative", info.name);
        }
    }
}
