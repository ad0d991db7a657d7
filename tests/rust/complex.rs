//! The rows that complex numbers can be computed with, in a complex type that exists only here: values, and derivatives against differences.

use crate::rows::{points, value};
use rgrad::rows::{Analytic, Eval, Field, Kind, Num, Output, RowId, Vjp};
use rgrad_kernels::rows::table;
use std::ops::{Add, Mul, Neg, Sub};

/// The real numbers that absolute values are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct R(f64);

/// `re + i * im`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct C {
    re: f64,
    im: f64,
}

const I: C = C { re: 0.0, im: 1.0 };

impl C {
    fn real(re: f64) -> C {
        C { re, im: 0.0 }
    }

    fn size(self) -> f64 {
        self.re.hypot(self.im)
    }
}

macro_rules! operators {
    ($T:ident: $($Op:ident $op:ident |$a:ident, $b:ident| $e:expr;)+) => {
        $(impl $Op for $T {
            type Output = $T;
            fn $op(self, o: $T) -> $T {
                let ($a, $b) = (self, o);
                $e
            }
        })+
        impl Neg for $T {
            type Output = $T;
            fn neg(self) -> $T {
                self.lit(0.0) - self
            }
        }
    };
}
operators! { R: Add add |a, b| R(a.0 + b.0); Sub sub |a, b| R(a.0 - b.0); Mul mul |a, b| R(a.0 * b.0); }
operators! { C:
    Add add |a, b| C { re: a.re + b.re, im: a.im + b.im };
    Sub sub |a, b| C { re: a.re - b.re, im: a.im - b.im };
    Mul mul |a, b| C { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
}

impl Field for R {
    type Cond = bool;
    rgrad_kernels::without_imaginary_part!();

    fn lit(&self, v: f64) -> R {
        R(v)
    }
    fn eq(&self, o: &R) -> bool {
        self.0 == o.0
    }
    fn select(c: bool, a: R, b: R) -> R {
        if c { a } else { b }
    }
    fn pow(self, e: R) -> R {
        R(self.0.powf(e.0))
    }
}

macro_rules! of_f64 {
    (one $($f:ident |$x:ident| $e:expr;)+) => { $(fn $f(self) -> R { let $x = self.0; R($e) })+ };
    (two $($f:ident |$x:ident, $y:ident| $e:expr;)+) => { $(fn $f(self, o: R) -> R { let ($x, $y) = (self.0, o.0); R($e) })+ };
}

impl Num for R {
    fn lt(&self, o: &R) -> bool {
        self.0 < o.0
    }
    fn le(&self, o: &R) -> bool {
        self.0 <= o.0
    }
    of_f64! { one abs |x| x.abs(); floor |x| x.floor(); ceil |x| x.ceil(); round |x| x.round_ties_even(); trunc |x| x.trunc(); }
    of_f64! { two
        max |x, y| x.max(y);
        min |x, y| x.min(y);
        div_floor |x, y| (x / y).floor();
        div_trunc |x, y| (x / y).trunc();
        fmod |x, y| x % y;
        remainder |x, y| x - y * (x / y).floor();
    }
}

impl Field for C {
    type Cond = bool;
    type Re = R;

    fn lit(&self, v: f64) -> C {
        C::real(v)
    }
    fn eq(&self, o: &C) -> bool {
        self == o
    }
    fn select(c: bool, a: C, b: C) -> C {
        if c { a } else { b }
    }
    fn pow(self, e: C) -> C {
        match (self == C::real(0.0), e == C::real(0.0)) {
            (_, true) => C::real(1.0),
            (true, false) => C::real(0.0),
            _ => (e * self.log()).exp(),
        }
    }
    fn conj(self) -> C {
        C { im: -self.im, ..self }
    }
    fn re(self) -> R {
        R(self.re)
    }
    fn of_re(re: R) -> C {
        C::real(re.0)
    }
    fn im(self) -> R {
        R(self.im)
    }
    fn turned(self) -> C {
        I * self
    }
    fn angle(self) -> R {
        R(self.im.atan2(self.re))
    }
    fn modulus(self) -> R {
        R(self.size())
    }
    fn sgn(self) -> C {
        if self == C::real(0.0) { self } else { self * C::real(1.0 / self.size()) }
    }
}

macro_rules! complex {
    ($($f:ident |$z:ident| $e:expr;)+) => { $(fn $f(self) -> C { let $z = self; $e })+ };
}

/// The textbook's formulas with principal branches; a few units in the last place do not matter here.
impl Analytic for C {
    fn div(self, o: C) -> C {
        self * o.conj() * C::real(1.0 / (o.re * o.re + o.im * o.im))
    }
    complex! {
        sqrt |z| z.pow(C::real(0.5));
        exp |z| C { re: z.im.cos(), im: z.im.sin() } * C::real(z.re.exp());
        exp2 |z| (C::real(2f64.ln()) * z).exp();
        expm1 |z| z.exp() - C::real(1.0);
        log |z| C { re: z.size().ln(), im: z.im.atan2(z.re) };
        log2 |z| z.log() * C::real(1.0 / 2f64.ln());
        log10 |z| z.log() * C::real(1.0 / 10f64.ln());
        log1p |z| (C::real(1.0) + z).log();
        sin |z| C { re: z.re.sin() * z.im.cosh(), im: z.re.cos() * z.im.sinh() };
        cos |z| C { re: z.re.cos() * z.im.cosh(), im: -z.re.sin() * z.im.sinh() };
        tan |z| z.sin().div(z.cos());
        asin |z| -I * (I * z + (C::real(1.0) - z * z).sqrt()).log();
        acos |z| C::real(std::f64::consts::FRAC_PI_2) - z.asin();
        atan |z| I * C::real(0.5) * ((C::real(1.0) - I * z).log() - (C::real(1.0) + I * z).log());
        sinh |z| C { re: z.re.sinh() * z.im.cos(), im: z.re.cosh() * z.im.sin() };
        cosh |z| C { re: z.re.cosh() * z.im.cos(), im: z.re.sinh() * z.im.sin() };
        tanh |z| z.sinh().div(z.cosh());
        asinh |z| (z + (z * z + C::real(1.0)).sqrt()).log();
        acosh |z| (z + (z + C::real(1.0)).sqrt() * (z - C::real(1.0)).sqrt()).log();
        atanh |z| C::real(0.5) * ((C::real(1.0) + z).log() - (C::real(1.0) - z).log());
        sigmoid |z| C::real(1.0).div(C::real(1.0) + (-z).exp());
    }
}

/// A row in complex numbers; of a real result the imaginary part is 0.
struct InC {
    f: fn(&[C], &[C]) -> C,
    vjp: fn(usize, &C, &[C], &C, &[C]) -> C,
}

macro_rules! in_complex {
    ($([$kind:ident $Row:ident])+) => {
        fn in_complex(row: RowId) -> Option<InC> {
            match row {
                $(RowId::$Row => in_complex!(@ $kind table::$Row),)+
            }
        }
    };
    (@ Field $R:path) => { Some(InC { f: <$R as Eval<C>>::f, vjp: <$R as Vjp<C>>::vjp }) };
    (@ Analytic $R:path) => { Some(InC { f: <$R as Eval<C>>::f, vjp: <$R as Vjp<C>>::vjp }) };
    (@ Modulus $R:path) => {
        Some(InC { f: |x, p| C::of_re(<$R as Eval<C>>::f(x, p)), vjp: |i, g, x, y, p| <$R as Vjp<C>>::vjp(i, &g.re(), x, &y.re(), p) })
    };
    (@ Phase $R:path) => { in_complex!(@ Modulus $R) };
    (@ $kind:ident $R:path) => { None };
}
rgrad_kernels::every_row!(in_complex);

/// The points of a row, moved off the real axis (masks stay).
fn complex_points(row: RowId) -> Vec<Vec<C>> {
    let lift = |(k, x): (usize, f64), n: usize| match row.info().operands[k].mask {
        true => C::real(x),
        false => C { re: x, im: 0.1 + 0.3 * ((n * 7 + k * 3) % 5) as f64 / 5.0 - if n.is_multiple_of(2) { 0.5 } else { 0.0 } },
    };
    points(row).into_iter().enumerate().map(|(n, x)| x.into_iter().enumerate().map(|x| lift(x, n)).collect()).collect()
}

fn params(row: RowId) -> Vec<C> {
    row.info().sample_params.iter().map(|p| C::real(*p)).collect()
}

#[test]
fn on_the_real_axis_complex_values_are_the_real_ones() {
    let mut seen = 0;
    for row in RowId::ALL {
        let Some(c) = in_complex(*row) else { continue };
        seen += 1;
        for x in points(*row) {
            let want = value(*row, &x, row.info().sample_params);
            let z: Vec<C> = x.iter().map(|x| C::real(*x)).collect();
            let got = (c.f)(&z, &params(*row));
            assert!((got - C::real(want)).size() <= 1e-12 * (1.0 + want.abs()), "{} at {x:?}: {got:?} and {want}", row.info().name);
        }
    }
    let kinds = RowId::ALL.iter().filter(|r| matches!(r.info().kind, Kind::Field | Kind::Analytic | Kind::Modulus | Kind::Phase)).count();
    assert!(seen == kinds && seen >= 40, "{seen} rows");
}

/// The gradient of a real number by a complex one is the direction of its steepest rise: along `dz` the number `Re(conj(g) f)` grows by
/// `Re(conj(gradient) dz)`.
#[test]
fn derivatives_in_complex_numbers_agree_with_differences() {
    let h = 1e-4;
    for row in RowId::ALL {
        let (Some(c), info) = (in_complex(*row), row.info()) else { continue };
        let p = params(*row);
        for x in complex_points(*row) {
            let y = (c.f)(&x, &p);
            let g = if info.output() == Output::Real { C::real(0.7) } else { C { re: 0.7, im: -0.4 } };
            for i in (0..x.len()).filter(|i| info.differentiable() >> i & 1 == 1) {
                let grad = (c.vjp)(i, &g, &x, &y, &p);
                for dz in [C::real(1.0), I] {
                    let at = |s: f64| {
                        let mut x = x.clone();
                        x[i] = x[i] + C::real(s) * dz;
                        (g.conj() * (c.f)(&x, &p)).re
                    };
                    let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
                    let want = (4.0 * slope(h / 2.0) - slope(h)) / 3.0;
                    let got = (grad.conj() * dz).re;
                    assert!((got - want).abs() <= 1e-7 * (1.0 + want.abs()), "{} d{i} at {x:?} along {dz:?}: {got} and {want}", info.name);
                }
            }
        }
    }
}

/// The gradient by an operand of a holomorphic row is linear in the cotangent over complex numbers; of no other row it is.
#[test]
fn holomorphic_rows_say_so() {
    for row in RowId::ALL {
        let (Some(c), info) = (in_complex(*row), row.info()) else { continue };
        if info.output() != Output::Same {
            continue;
        }
        let p = params(*row);
        let mut linear = true;
        for x in complex_points(*row) {
            let y = (c.f)(&x, &p);
            for i in (0..x.len()).filter(|i| info.differentiable() >> i & 1 == 1) {
                let [one, turned] = [C::real(1.0), I].map(|g| (c.vjp)(i, &g, &x, &y, &p));
                linear &= (turned - I * one).size() <= 1e-9 * (1.0 + one.size());
            }
        }
        assert_eq!(info.holomorphic, linear, "{}", info.name);
    }
}

#[test]
fn real_results_say_so() {
    use rgrad::rows::Func;
    for row in RowId::ALL {
        let info = row.info();
        assert_eq!(info.output() == Output::Real, matches!(info.kind, Kind::Modulus | Kind::Phase), "{}", info.name);
        for d in rgrad::layout::DType::ALL {
            let want = match info.output() {
                Output::Bool => rgrad::layout::DType::Bool,
                Output::Real => d.row().real,
                Output::Same => d,
            };
            assert_eq!(Func::forward(*row).out_dtype(d), want);
        }
    }
}

/// The CPU's kernels against the complex type of this file, whose functions are other ones.
#[test]
fn the_kernels_of_the_cpu_agree() {
    use rgrad::array::Array;
    use rgrad::layout::{Complex64, DType, Scalar};
    use rgrad::rows::Func;
    let mut seen = 0;
    for row in RowId::ALL {
        let (Some(c), info) = (in_complex(*row), row.info()) else { continue };
        let func = Func::forward(*row);
        for (dtype, close) in [(DType::C64, 2e-6), (DType::C128, 1e-12)] {
            let points = complex_points(*row);
            let operands: Vec<Array> = (0..info.arity())
                .map(|k| {
                    let z: Vec<Complex64> = points.iter().map(|x| Complex64::new(x[k].re, x[k].im)).collect();
                    Array::from_slice(&z, &[z.len()]).unwrap().cast(func.in_dtype(k, dtype)).unwrap()
                })
                .collect();
            let numbers: Vec<Scalar> = info.sample_params.iter().map(|p| Scalar::Float(*p)).collect();
            let made = Array::pointwise(func, dtype, func.out_dtype(dtype), &operands.iter().collect::<Vec<_>>(), &numbers).unwrap();
            for (x, got) in points.iter().zip(made.cast(DType::C128).unwrap().to_vec::<Complex64>().unwrap()) {
                // The operands as the dtype holds them, which matters where a function is steep.
                let seen: Vec<C> = if dtype == DType::C64 {
                    x.iter().map(|z| C { re: f64::from(z.re as f32), im: f64::from(z.im as f32) }).collect()
                } else {
                    x.clone()
                };
                let want = (c.f)(&seen, &params(*row));
                let off = (C { re: got.re, im: got.im } - want).size();
                assert!(off <= close * (1.0 + want.size()), "{} of {x:?} in {dtype}: {got} and {want:?}", info.name);
            }
            seen += 1;
        }
    }
    assert!(seen >= 80, "{seen}");
}
