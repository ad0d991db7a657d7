//! Reductions in WGSL: the accumulator, how an element becomes an accumulator, how accumulators merge, and how results are written.

use crate::backend::wgpu::common::strided::{element, param};
use crate::backend::wgpu::elem::{convert, from_words, narrowed};
use crate::backend::wgpu::scratch_size;
use crate::call::Reducer;
use crate::layout::{DType, Number};
use std::borrow::Cow;
use std::fmt::Write;

/// The words of the parameters that a reducer's text may read.
pub(crate) const LOWEST: usize = 10;
pub(crate) const POWER: usize = 12;
/// A word that is 0, for the library's `unknown`.
pub(crate) const ZERO: usize = 14;

/// A reduction. Those over `shift` read one value for each result: a mean, a scale, a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceReducer {
    /// The sum, of integers in int64.
    Sum,
    /// The product, of integers in int64.
    Prod,
    /// The largest (or smallest) element; nan if there is one.
    Extreme { max: bool },
    /// As `Extreme`, and as second output where it stands first.
    Place { max: bool },
    /// Whether all elements (or any) are not 0; nan is not 0.
    Truth { all: bool },
    /// How many elements are not 0.
    CountNonzero,
    /// The sum of squared distances from the mean.
    Squares,
    /// The sum of absolute values.
    SumAbs,
    /// The root of the sum of squares, which neither overflow nor vanish.
    Root,
    /// The largest (or smallest) absolute value; nan if there is one.
    ExtremeAbs { max: bool },
    /// `shift` times the p-th root of the sum of `(|x| / shift)^p`.
    Power,
    /// The sum of `exp(x - shift)`.
    SumExp,
    /// `log(sum(exp(x)))`, without overflow.
    LogSumExp,
    /// The sum of products of two operands' elements.
    Dot,
}

impl DeviceReducer {
    /// The reducer of a request. None for a norm that takes two reductions.
    pub(crate) fn of(asked: Reducer) -> Option<DeviceReducer> {
        Some(match asked {
            Reducer::Sum => DeviceReducer::Sum,
            Reducer::Prod => DeviceReducer::Prod,
            Reducer::Extreme { max } => DeviceReducer::Extreme { max },
            Reducer::Truth { all } => DeviceReducer::Truth { all },
            Reducer::CountNonzero | Reducer::Norm(0.0) => DeviceReducer::CountNonzero,
            Reducer::SquaredDeviations => DeviceReducer::Squares,
            Reducer::LogSumExp => DeviceReducer::LogSumExp,
            Reducer::Norm(2.0) => DeviceReducer::Root,
            Reducer::Norm(1.0) => DeviceReducer::SumAbs,
            Reducer::Norm(f64::INFINITY) => DeviceReducer::ExtremeAbs { max: true },
            Reducer::Norm(f64::NEG_INFINITY) => DeviceReducer::ExtremeAbs { max: false },
            Reducer::Norm(_) => return None,
        })
    }
}

/// The text of a reducer: `Acc` and the functions `init`, `lift(x, y, s, j)`, `merge`; `store` is made of an accumulator `a`, a shift `s`
/// and a place `k`.
pub(crate) struct ReducerCode {
    pub(crate) text: String,
    /// Bytes of an accumulator.
    pub(crate) size: usize,
    /// Statements, in which the outputs are called `{0}` and `{1}`.
    pub(crate) store: Cow<'static, str>,
}

impl DeviceReducer {
    /// A number for keys.
    pub(crate) fn word(self) -> u32 {
        match self {
            DeviceReducer::Sum => 0,
            DeviceReducer::Prod => 1,
            DeviceReducer::Extreme { max } => 2 + u32::from(max),
            DeviceReducer::Place { max } => 4 + u32::from(max),
            DeviceReducer::Truth { all } => 6 + u32::from(all),
            DeviceReducer::CountNonzero => 8,
            DeviceReducer::Squares => 9,
            DeviceReducer::SumAbs => 10,
            DeviceReducer::Root => 11,
            DeviceReducer::ExtremeAbs { max } => 12 + u32::from(max),
            DeviceReducer::Power => 14,
            DeviceReducer::SumExp => 15,
            DeviceReducer::Dot => 16,
            DeviceReducer::LogSumExp => 17,
        }
    }

    /// How the elements are typed in a buffer: those of float64 by their bits where they are only compared.
    pub(crate) fn element(self, dtype: DType) -> &'static str {
        let compared = matches!(
            self,
            DeviceReducer::Extreme { .. }
                | DeviceReducer::ExtremeAbs { .. }
                | DeviceReducer::Place { .. }
                | DeviceReducer::Truth { .. }
                | DeviceReducer::CountNonzero
        );
        if compared && dtype == DType::F64 { element(DType::I64) } else { element(dtype) }
    }

    /// The same for the (first) output.
    pub(crate) fn output(self, dtype: DType) -> &'static str {
        if self == DeviceReducer::CountNonzero { element(dtype) } else { self.element(dtype) }
    }

    /// Whether `lift` or `merge` is so long that a shader should not repeat it often.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, DeviceReducer::LogSumExp | DeviceReducer::Power | DeviceReducer::Squares)
    }

    /// How many operands are walked over.
    pub(crate) fn operands(self) -> usize {
        1 + usize::from(self == DeviceReducer::Dot)
    }

    /// The accumulator to begin with where it is an extreme value: its bits, low word first.
    pub(crate) fn lowest(self, dtype: DType) -> [u32; 2] {
        let max = match self {
            DeviceReducer::Extreme { max } | DeviceReducer::ExtremeAbs { max } | DeviceReducer::Place { max } => max,
            _ => return [0, 0],
        };
        let split = |v: i64| [v as u32, (v >> 32) as u32];
        match (dtype.number(), max) {
            (Number::Bool | Number::U8, true) => [0, 0],
            (Number::Bool | Number::U8, false) => [u32::MAX, 0],
            (Number::I32, true) => [i32::MIN as u32, 0],
            (Number::I32, false) => [i32::MAX as u32, 0],
            (Number::I64, true) => split(i64::MIN),
            (Number::I64, false) => split(i64::MAX),
            (Number::F32, true) => [f32::NEG_INFINITY.to_bits(), 0],
            (Number::F32, false) => [f32::INFINITY.to_bits(), 0],
            (Number::F64, true) => split(f64::NEG_INFINITY.to_bits() as i64),
            (Number::F64, false) => split(f64::INFINITY.to_bits() as i64),
            (Number::C64 | Number::C128, _) => crate::backend::wgpu::elem::no_complex(),
        }
    }

    /// The text for elements of `from` and results of `to`.
    pub(crate) fn code(self, from: DType, to: DType) -> ReducerCode {
        let e = self.element(from);
        let wide_acc = from == DType::F64 || from.is_complex();
        let mut c = ReducerCode { text: String::new(), size: if wide_acc { 8 } else { 4 }, store: "{0}[k] = a;".into() };
        let wide = to == DType::I64;
        match self {
            DeviceReducer::Sum | DeviceReducer::Prod => {
                let sum = self == DeviceReducer::Sum;
                if wide {
                    let start = if sum { "vec2<u32>(0u, 0u)" } else { "vec2<u32>(1u, 0u)" };
                    let merge = if sum { "i64_add(a, b)" } else { "i64_mul(a, b)" };
                    c.size = 8;
                    c.simple("vec2<u32>", start, e, &widened(from, "x"), merge);
                } else {
                    let (start, merge) = match (sum, from.is_complex()) {
                        (true, _) => (format!("{e}()"), "a + b"),
                        (false, true) => (format!("{e}(1.0, 0.0)"), "c64_mul(a, b)"),
                        (false, false) => (format!("{e}(1)"), "a * b"),
                    };
                    c.simple(e, &start, e, "x", merge);
                }
            }
            DeviceReducer::Extreme { max } | DeviceReducer::ExtremeAbs { max } => {
                let lift = match (self, from) {
                    (DeviceReducer::Extreme { .. }, _) => "x",
                    (_, DType::F64) => "vec2<u32>(x.x, x.y & 0x7fffffffu)",
                    _ => "abs(x)",
                };
                c.size = scratch_size(from);
                ahead(&mut c.text, from, max);
                c.simple(e, &lowest(from), e, lift, "select(b, a, ahead(a, b))");
            }
            DeviceReducer::Place { max } => {
                c.size = if scratch_size(from) == 8 { 16 } else { 8 };
                ahead(&mut c.text, from, max);
                let _ = write!(
                    c.text,
                    "struct Acc {{ v: {e}, at: u32 }}\n\
                     fn init() -> Acc {{ return Acc({}, 0xffffffffu); }}\n\
                     fn lift(x: {e}, y: {e}, s: {e}, j: u32) -> Acc {{ return Acc(x, j); }}\n\
                     fn merge(a: Acc, b: Acc) -> Acc {{\n\
                     if (ahead(a.v, b.v)) {{ return a; }}\n\
                     if (ahead(b.v, a.v)) {{ return b; }}\n\
                     if (a.at < b.at) {{ return a; }}\n\
                     return b;\n}}\n",
                    lowest(from)
                );
                c.store = "{0}[k] = a.v; {1}[k] = vec2<u32>(a.at, 0u);".into();
            }
            DeviceReducer::Truth { all } => {
                let (start, merge) = if all { ("1u", "a & b") } else { ("0u", "a | b") };
                c.size = 4;
                c.simple("u32", start, e, &truth(from), merge);
            }
            DeviceReducer::CountNonzero => {
                c.size = 4;
                c.simple("u32", "0u", e, &truth(from), "a + b");
                c.store = match to.number() {
                    Number::I64 => "{0}[k] = vec2<u32>(a, 0u);",
                    Number::F64 => "{0}[k] = f64(a);",
                    Number::F32 => "{0}[k] = f32(a);",
                    Number::Bool | Number::U8 => "{0}[k] = a;",
                    Number::I32 => "{0}[k] = i32(a);",
                    Number::C64 | Number::C128 => crate::backend::wgpu::elem::no_complex(),
                }
                .into();
            }
            DeviceReducer::Squares => {
                // Counts, means and squares are merged by Chan, Golub and LeVeque's formula (COMPSTAT 1982). The distance of infinity from
                // itself is nan.
                let _ = write!(
                    c.text,
                    "struct Acc {{ n: {e}, mean: {e}, squares: {e} }}\n\
                     fn init() -> Acc {{ return Acc({e}(), {e}(), {e}()); }}\n\
                     fn lift(x: {e}, y: {e}, s: {e}, j: u32) -> Acc {{ return Acc({e}(1.0), x, {e}_keep(x) - x); }}\n\
                     fn merge(a: Acc, b: Acc) -> Acc {{\n\
                     if ({e}_is_zero(a.n)) {{ return b; }}\n\
                     if ({e}_is_zero(b.n)) {{ return a; }}\n\
                     let n = a.n + b.n; let apart = b.mean - a.mean; let part = b.n / n;\n\
                     return Acc(n, a.mean + apart * part, a.squares + b.squares + apart * apart * (a.n * part));\n}}\n"
                );
                c.size = if from == DType::F64 { 24 } else { 12 };
                c.store = "{0}[k] = a.squares;".into();
            }
            DeviceReducer::LogSumExp => {
                let _ = write!(
                    c.text,
                    "struct Acc {{ top: {e}, sum: {e} }}\n\
                     fn init() -> Acc {{ return Acc({e}(), {e}()); }}\n\
                     fn odd(x: {e}) -> bool {{ return {e}_is_inf(x) || {e}_is_nan(x); }}\n\
                     fn base(top: {e}) -> {e} {{ if (odd(top)) {{ return {e}(); }} return top; }}\n\
                     fn lift(x: {e}, y: {e}, s: {e}, j: u32) -> Acc {{ if (odd(x)) {{ return Acc(x, {e}_exp(x)); }} return Acc(x, {e}(1.0)); }}\n\
                     fn join(a: Acc, b: Acc) -> Acc {{ return Acc(a.top, a.sum + b.sum * {e}_exp(base(b.top) - base(a.top))); }}\n\
                     fn merge(a: Acc, b: Acc) -> Acc {{\n\
                     if ({e}_is_zero(a.sum)) {{ return b; }}\n\
                     if ({e}_is_zero(b.sum)) {{ return a; }}\n\
                     if ({e}_is_nan(a.top) || (!{e}_is_nan(b.top) && a.top >= b.top)) {{ return join(a, b); }}\n\
                     return join(b, a);\n}}\n\
                     fn log_of(a: Acc) -> {e} {{ return base(a.top) + {e}_log(a.sum); }}\n"
                );
                c.size = if from == DType::F64 { 16 } else { 8 };
                c.store = "{0}[k] = log_of(a);".into();
            }
            DeviceReducer::SumAbs => c.simple(e, &format!("{e}()"), e, "abs(x)", "a + b"),
            DeviceReducer::Root if from == DType::F64 => {
                c.simple(e, "f64()", e, "x * x", "a + b");
                c.store = "{0}[k] = sqrt(a);".into();
            }
            DeviceReducer::Root => {
                // Sums of squares of small, medium and big elements, the first and last scaled by powers of two (Blue, ACM TOMS 4(1), 1978).
                // `f32_keep` keeps compilers from gathering the powers, whose squares are out of range.
                c.size = 12;
                c.text.push_str(
                    "struct Acc { small: f32, medium: f32, big: f32 }\n\
                     fn init() -> Acc { return Acc(0.0, 0.0, 0.0); }\n\
                     fn lift(x: f32, y: f32, s: f32, j: u32) -> Acc {\n\
                     let size = bitcast<u32>(x) & 0x7fffffffu;\n\
                     if (size > 0x57800000u && size <= 0x7f800000u) { let v = f32_keep(x * 0x1p-78f); return Acc(0.0, 0.0, v * v); }\n\
                     if (size < 0x20000000u) { let v = f32_keep(x * 0x1p90f); return Acc(v * v, 0.0, 0.0); }\n\
                     return Acc(0.0, x * x, 0.0);\n}\n\
                     fn merge(a: Acc, b: Acc) -> Acc { return Acc(a.small + b.small, a.medium + b.medium, a.big + b.big); }\n\
                     fn root(a: Acc) -> f32 {\n\
                     if (bitcast<u32>(a.big) != 0u) { let v = f32_keep(sqrt(a.medium) * 0x1p-78f); return sqrt(a.big + f32_keep(v * v)) * 0x1p78f; }\n\
                     if (bitcast<u32>(a.medium) != 0u) { let v = f32_keep(sqrt(a.small) * 0x1p-90f); return sqrt(a.medium + f32_keep(v * v)); }\n\
                     return sqrt(a.small) * 0x1p-90f;\n}\n",
                );
                c.store = "{0}[k] = root(a);".into();
            }
            DeviceReducer::Power => {
                let p = from_words(from, &param(POWER), &param(POWER + 1));
                // A scale of 0 or infinity would make nan of 0 / 0 or inf / inf: such powers need no scale.
                let _ = write!(
                    c.text,
                    "fn scale(s: {e}) -> {e} {{ return select(s, {e}(1.0), {e}_is_zero(s) || {e}_is_inf(s) || {e}_is_nan(s)); }}\n\
                     fn root(a: {e}, s: {e}) -> {e} {{ return scale(s) * {e}_pow(a, {e}(1.0) / {p}); }}\n"
                );
                c.simple(e, &format!("{e}()"), e, &format!("{e}_pow(abs(x) / scale(s), {p})"), "a + b");
                c.store = "{0}[k] = root(a, s);".into();
            }
            DeviceReducer::SumExp => c.simple(e, &format!("{e}()"), e, &format!("{e}_exp(x - s)"), "a + b"),
            DeviceReducer::Dot => {
                let (lift, merge) = match from.number() {
                    Number::I64 => ("i64_mul(x, y)", "i64_add(a, b)"),
                    Number::C64 => ("c64_mul(x, y)", "a + b"),
                    Number::Bool | Number::U8 | Number::I32 | Number::F32 | Number::F64 | Number::C128 => ("x * y", "a + b"),
                };
                c.size = scratch_size(from);
                c.simple(e, &format!("{e}()"), e, lift, merge);
                c.store = match from.number() {
                    Number::U8 => "{0}[k] = a & 255u;".into(),
                    Number::I32 => format!("{{0}}[k] = {};", narrowed(from, "a")).into(),
                    Number::Bool | Number::I64 | Number::F32 | Number::F64 | Number::C64 => c.store,
                    Number::C128 => crate::backend::wgpu::elem::no_complex128(),
                };
            }
        }
        c
    }
}

impl ReducerCode {
    fn simple(&mut self, acc: &str, init: &str, e: &str, lift: &str, merge: &str) {
        let _ = write!(
            self.text,
            "alias Acc = {acc};\n\
             fn init() -> Acc {{ return {init}; }}\n\
             fn lift(x: {e}, y: {e}, s: {e}, j: u32) -> Acc {{ return {lift}; }}\n\
             fn merge(a: Acc, b: Acc) -> Acc {{ return {merge}; }}\n"
        );
    }
}

/// `x` as int64.
fn widened(from: DType, x: &str) -> String {
    match from.number() {
        Number::I32 => format!("vec2<u32>(bitcast<u32>({x}), select(0u, 0xffffffffu, {x} < 0))"),
        Number::I64 => x.to_string(),
        Number::Bool | Number::U8 => format!("vec2<u32>({x}, 0u)"),
        Number::F32 | Number::F64 | Number::C64 | Number::C128 => convert(from, DType::I64, x),
    }
}

/// 1 where `x` is not 0.
fn truth(from: DType) -> String {
    match from.number() {
        Number::I64 => "min(x.x | x.y, 1u)".into(),
        // By bits, because comparisons may be folded as if nan did not exist.
        Number::F32 => "min(bitcast<u32>(x) & 0x7fffffffu, 1u)".into(),
        Number::F64 => "min(x.x | (x.y & 0x7fffffffu), 1u)".into(),
        Number::I32 => "select(0u, 1u, x != 0)".into(),
        Number::Bool | Number::U8 => "min(x, 1u)".into(),
        Number::C64 => "min((bitcast<u32>(x.x) | bitcast<u32>(x.y)) & 0x7fffffffu, 1u)".into(),
        Number::C128 => crate::backend::wgpu::elem::no_complex128(),
    }
}

fn lowest(from: DType) -> String {
    let (low, high) = (param(LOWEST), param(LOWEST + 1));
    if from == DType::F64 { format!("vec2<u32>({low}, {high})") } else { from_words(from, &low, &high) }
}

/// `ahead(a, b)`: whether a must be chosen before b; nan is ahead of everything else. Floats are compared by their bits: drivers may
/// compare as if nan did not exist, and may flush subnormals.
fn ahead(s: &mut String, from: DType, max: bool) {
    let e = if from == DType::F64 { element(DType::I64) } else { element(from) };
    let than = if max { ">" } else { "<" };
    let (first, second) = if max { ("q", "p") } else { ("p", "q") };
    let body = match from.number() {
        Number::Bool | Number::U8 | Number::I32 => format!("return a {than} b;"),
        Number::C64 | Number::C128 => crate::backend::wgpu::elem::no_complex(),
        Number::I64 => format!("let p = a; let q = b; return i64_lt({first}, {second});"),
        Number::F32 => format!(
            "let p = f32_is_nan(a); let q = f32_is_nan(b); \
             return (p && !q) || (!p && !q && f32_order(a) {than} f32_order(b));"
        ),
        Number::F64 => {
            s.push_str(
                "fn is_nan(v: vec2<u32>) -> bool { let h = v.y & 0x7fffffffu; return h > 0x7ff00000u || (h == 0x7ff00000u && v.x != 0u); }\n\
                 fn order(v: vec2<u32>) -> vec2<u32> {\n\
                 let size = vec2<u32>(v.x, v.y & 0x7fffffffu);\n\
                 return select(size, i64_neg(size), v.y >= 0x80000000u);\n}\n",
            );
            format!(
                "if (is_nan(a) || is_nan(b)) {{ return is_nan(a) && !is_nan(b); }} \
                 let p = order(a); let q = order(b); return i64_lt({first}, {second});"
            )
        }
    };
    let _ = writeln!(s, "fn ahead(a: {e}, b: {e}) -> bool {{ {body} }}");
}
