//! The scalar language as WGSL: values are nodes of an expression graph, equal nodes are merged, and a node becomes one `let`.

use crate::backend::wgpu::elem;
use crate::layout::{DType, Number, Scalar};
use crate::rows::{Analytic, Cond, Eval, Field, Func, Int, Num, Part, Real, RowId, all_rows, table};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::{Add, Mul, Neg, Sub};
use std::rc::Rc;

struct ExprNode {
    text: String,
    reads: SmallVec<[u32; 3]>,
    /// The type of a sum or product of floats, which a driver could fuse with others.
    fusible: Option<DType>,
}

#[derive(Default)]
struct ExprGraph {
    nodes: Vec<ExprNode>,
    index: HashMap<String, u32>,
}

type SharedGraph = Rc<RefCell<ExprGraph>>;

fn node(graph: &SharedGraph, text: String, reads: &[u32], fusible: Option<DType>) -> u32 {
    let mut g = graph.borrow_mut();
    if let Some(&id) = g.index.get(&text) {
        return id;
    }
    let id = g.nodes.len() as u32;
    g.index.insert(text.clone(), id);
    g.nodes.push(ExprNode { text, reads: SmallVec::from_slice(reads), fusible });
    id
}

/// A number of the language: a node and its dtype.
#[derive(Clone)]
pub struct ShaderExpr {
    graph: SharedGraph,
    id: u32,
    dtype: DType,
}

/// A truth value: a node of the type `bool`.
#[derive(Clone)]
pub struct ShaderBool {
    graph: SharedGraph,
    id: u32,
}

impl ShaderExpr {
    fn new(graph: &SharedGraph, dtype: DType, text: String, reads: &[u32]) -> ShaderExpr {
        ShaderExpr { graph: graph.clone(), id: node(graph, text, reads, None), dtype }
    }

    fn made(&self, text: String, reads: &[u32]) -> ShaderExpr {
        ShaderExpr::new(&self.graph, self.dtype, text, reads)
    }

    /// `f(self)`.
    fn call(&self, f: &str) -> ShaderExpr {
        self.made(format!("{f}(v{})", self.id), &[self.id])
    }

    /// `f(self, o)`.
    fn call2(&self, f: &str, o: &ShaderExpr) -> ShaderExpr {
        self.made(format!("{f}(v{}, v{})", self.id, o.id), &[self.id, o.id])
    }

    fn infix(&self, op: &str, o: &ShaderExpr) -> ShaderExpr {
        self.made(format!("v{} {op} v{}", self.id, o.id), &[self.id, o.id])
    }

    /// An operation that wraps at 256.
    fn infix_u8(&self, op: &str, o: &ShaderExpr) -> ShaderExpr {
        self.made(format!("(v{} {op} v{}) & 255u", self.id, o.id), &[self.id, o.id])
    }

    /// An operation on signed integers of up to 32 bits, which wraps around.
    fn infix_i32(&self, op: &str, o: &ShaderExpr) -> ShaderExpr {
        self.made(elem::narrowed(self.dtype, &format!("v{} {op} v{}", self.id, o.id)), &[self.id, o.id])
    }

    /// As `typed2`, for what may leave the range of a narrow integer.
    fn wrapped2(&self, f: &str, o: &ShaderExpr) -> ShaderExpr {
        let text = format!("{}_{f}(v{}, v{})", elem::prefix(self.dtype), self.id, o.id);
        self.made(elem::narrowed(self.dtype, &text), &[self.id, o.id])
    }

    fn fusible(&self, op: &str, o: &ShaderExpr) -> ShaderExpr {
        let id = node(&self.graph, format!("v{} {op} v{}", self.id, o.id), &[self.id, o.id], Some(self.dtype));
        ShaderExpr { id, ..self.clone() }
    }

    fn truth(&self, text: String, reads: &[u32]) -> ShaderBool {
        ShaderBool { graph: self.graph.clone(), id: node(&self.graph, text, reads, None) }
    }

    fn compare(&self, op: &str, f: &str, o: &ShaderExpr) -> ShaderBool {
        let text = match self.dtype.number() {
            Number::F32 | Number::F64 | Number::I64 | Number::C64 | Number::C128 => {
                format!("{}_{f}(v{}, v{})", elem::prefix(self.dtype), self.id, o.id)
            }
            Number::Bool | Number::U8 | Number::I32 => format!("v{} {op} v{}", self.id, o.id),
        };
        self.truth(text, &[self.id, o.id])
    }

    /// The library's function of this dtype and name.
    fn typed(&self, f: &str) -> ShaderExpr {
        self.call(&format!("{}_{f}", elem::prefix(self.dtype)))
    }

    fn typed2(&self, f: &str, o: &ShaderExpr) -> ShaderExpr {
        self.call2(&format!("{}_{f}", elem::prefix(self.dtype)), o)
    }

    /// A predicate of floats and complex numbers; None for integers.
    fn float_test(&self, f: &str) -> Option<ShaderBool> {
        self.dtype.is_differentiable().then(|| self.truth(format!("{}_{f}(v{})", elem::prefix(self.dtype), self.id), &[self.id]))
    }

    /// A part of a complex number.
    fn part(&self, name: &str) -> ShaderExpr {
        ShaderExpr::new(&self.graph, self.dtype.row().real, format!("v{}.{name}", self.id), &[self.id])
    }

    /// A real function of a complex number.
    fn size(&self, f: &str) -> ShaderExpr {
        ShaderExpr::new(&self.graph, self.dtype.row().real, format!("{}_{f}(v{})", elem::prefix(self.dtype), self.id), &[self.id])
    }

    fn rounded(&self, f: &str) -> ShaderExpr {
        if self.dtype.is_float() { self.typed(f) } else { self.clone() }
    }
}

impl Add for ShaderExpr {
    type Output = ShaderExpr;
    fn add(self, o: ShaderExpr) -> ShaderExpr {
        match self.dtype.number() {
            Number::Bool => self.infix("|", &o),
            Number::U8 => self.infix_u8("+", &o),
            Number::I64 => self.call2("i64_add", &o),
            Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.fusible("+", &o),
            Number::I32 => self.infix_i32("+", &o),
        }
    }
}

impl Sub for ShaderExpr {
    type Output = ShaderExpr;
    fn sub(self, o: ShaderExpr) -> ShaderExpr {
        match self.dtype.number() {
            Number::Bool => self.infix("^", &o),
            Number::U8 => self.infix_u8("-", &o),
            Number::I64 => self.call2("i64_sub", &o),
            // Drivers replace `x - x` by 0, which is wrong for nan and infinity.
            Number::F32 | Number::F64 | Number::C64 | Number::C128 if self.id == o.id => {
                let kept = o.typed("keep");
                self.fusible("-", &kept)
            }
            Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.fusible("-", &o),
            Number::I32 => self.infix_i32("-", &o),
        }
    }
}

impl Mul for ShaderExpr {
    type Output = ShaderExpr;
    fn mul(self, o: ShaderExpr) -> ShaderExpr {
        match self.dtype.number() {
            Number::Bool => self.infix("&", &o),
            Number::U8 => self.infix_u8("*", &o),
            Number::I64 => self.call2("i64_mul", &o),
            Number::F32 | Number::F64 => self.fusible("*", &o),
            Number::C64 | Number::C128 => self.typed2("mul", &o),
            Number::I32 => self.infix_i32("*", &o),
        }
    }
}

impl Neg for ShaderExpr {
    type Output = ShaderExpr;
    fn neg(self) -> ShaderExpr {
        match self.dtype.number() {
            Number::Bool => self,
            Number::U8 => self.made(format!("(0u - v{}) & 255u", self.id), &[self.id]),
            Number::I32 => self.made(elem::narrowed(self.dtype, &format!("0 - v{}", self.id)), &[self.id]),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed("neg"),
        }
    }
}

impl Cond for ShaderBool {
    fn and(self, o: Self) -> Self {
        ShaderBool { id: node(&self.graph, format!("v{} & v{}", self.id, o.id), &[self.id, o.id], None), ..self }
    }
    fn or(self, o: Self) -> Self {
        ShaderBool { id: node(&self.graph, format!("v{} | v{}", self.id, o.id), &[self.id, o.id], None), ..self }
    }
    fn not(self) -> Self {
        ShaderBool { id: node(&self.graph, format!("!v{}", self.id), &[self.id], None), ..self }
    }
    fn xor(self, o: Self) -> Self {
        ShaderBool { id: node(&self.graph, format!("v{} != v{}", self.id, o.id), &[self.id, o.id], None), ..self }
    }
}

impl Field for ShaderExpr {
    type Cond = ShaderBool;
    type Re = ShaderExpr;

    fn conj(self) -> Self {
        if self.dtype.is_complex() { self.typed("conj") } else { self }
    }
    fn re(self) -> Self {
        if self.dtype.is_complex() { self.part("x") } else { self }
    }
    /// Shaders compute values of rows alone in complex numbers, and none of these is made of a real number.
    fn of_re(re: Self) -> Self {
        re
    }
    fn im(self) -> Self {
        if self.dtype.is_complex() { self.part("y") } else { self.lit(0.0) }
    }
    fn turned(self) -> Self {
        if self.dtype.is_complex() { self.typed("turned") } else { self.lit(0.0) }
    }
    fn modulus(self) -> Self {
        if self.dtype.is_complex() { self.size("abs") } else { self.abs() }
    }
    fn sgn(self) -> Self {
        if self.dtype.is_complex() { self.typed("sgn") } else { self.sign() }
    }
    fn angle(self) -> Self {
        if self.dtype.is_complex() {
            return self.size("angle");
        }
        let turned = self.lt(&self.lit(0.0));
        let angle = Self::select(turned, self.lit(std::f64::consts::PI), self.lit(0.0));
        Self::select(self.is_nan(), self, angle)
    }

    fn lit(&self, v: f64) -> Self {
        let whole = v as i64;
        let text = match self.dtype.number() {
            Number::Bool => format!("{}u", u32::from(v != 0.0)),
            Number::U8 => format!("{}u", whole as u8),
            Number::I32 => format!("bitcast<i32>({}u)", elem::to_words(Scalar::Int(whole), self.dtype)[0]),
            Number::I64 => format!("vec2<u32>({}u, {}u)", whole as u32, (whole >> 32) as u32),
            Number::F32 => format!("f32_lit({:#010x}u)", (v as f32).to_bits()),
            // A 0 that compilers know would cost signs of products.
            Number::C64 => format!("vec2<f32>(f32_lit({:#010x}u), f32_lit(0u))", (v as f32).to_bits()),
            Number::C128 => elem::no_complex128(),
            Number::F64 => format!("f64_lit({}u, {}u)", v.to_bits() as u32, (v.to_bits() >> 32) as u32),
        };
        self.made(text, &[])
    }
    fn eq(&self, o: &Self) -> ShaderBool {
        self.compare("==", "eq", o)
    }
    fn truthy(&self) -> ShaderBool {
        match self.dtype.number() {
            Number::F32 | Number::F64 | Number::I64 | Number::C64 | Number::C128 => {
                self.truth(format!("!{}_is_zero(v{})", elem::prefix(self.dtype), self.id), &[self.id])
            }
            Number::Bool | Number::U8 | Number::I32 => self.ne(&self.lit(0.0)),
        }
    }
    fn is_nan(&self) -> ShaderBool {
        self.float_test("is_nan").unwrap_or_else(|| self.truth("false".into(), &[]))
    }
    fn is_inf(&self) -> ShaderBool {
        self.float_test("is_inf").unwrap_or_else(|| self.truth("false".into(), &[]))
    }
    fn select(c: ShaderBool, a: Self, b: Self) -> Self {
        a.made(format!("select(v{}, v{}, v{})", b.id, a.id, c.id), &[b.id, a.id, c.id])
    }
    fn pow(self, e: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.made(format!("v{} | (v{} ^ 1u)", self.id, e.id), &[self.id, e.id]),
            Number::I32 => self.wrapped2("pow", &e),
            Number::U8 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("pow", &e),
        }
    }
}

impl Num for ShaderExpr {
    fn abs(self) -> Self {
        match self.dtype.number() {
            Number::Bool | Number::U8 => self,
            Number::I32 => self.made(elem::narrowed(self.dtype, &format!("i32_abs(v{})", self.id)), &[self.id]),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed("abs"),
        }
    }
    fn lt(&self, o: &Self) -> ShaderBool {
        self.compare("<", "lt", o)
    }
    fn le(&self, o: &Self) -> ShaderBool {
        self.compare("<=", "le", o)
    }
    fn max(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.infix("|", &o),
            Number::U8 | Number::I32 => self.call2("max", &o),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("max", &o),
        }
    }
    fn min(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.infix("&", &o),
            Number::U8 | Number::I32 => self.call2("min", &o),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("min", &o),
        }
    }
    fn sign(self) -> Self {
        match self.dtype.number() {
            Number::Bool => self,
            Number::U8 => self.made(format!("min(v{}, 1u)", self.id), &[self.id]),
            Number::I32 => self.call("sign"),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed("sign"),
        }
    }
    fn div_floor(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.infix("&", &o),
            Number::U8 => self.call2("u8_div", &o),
            Number::I32 => self.wrapped2("div_floor", &o),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("div_floor", &o),
        }
    }
    fn div_trunc(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.infix("&", &o),
            Number::U8 => self.call2("u8_div", &o),
            Number::I32 => self.wrapped2("div_trunc", &o),
            Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("div_trunc", &o),
        }
    }
    fn fmod(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.lit(0.0),
            Number::U8 | Number::I32 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("fmod", &o),
        }
    }
    fn remainder(self, o: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.lit(0.0),
            Number::U8 => self.call2("u8_fmod", &o),
            Number::I32 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("remainder", &o),
        }
    }
    fn floor(self) -> Self {
        self.rounded("floor")
    }
    fn ceil(self) -> Self {
        self.rounded("ceil")
    }
    fn round(self) -> Self {
        self.rounded("round")
    }
    fn trunc(self) -> Self {
        self.rounded("trunc")
    }
}

impl Int for ShaderExpr {
    fn bit_and(self, o: Self) -> Self {
        self.infix("&", &o)
    }
    fn bit_or(self, o: Self) -> Self {
        self.infix("|", &o)
    }
    fn bit_xor(self, o: Self) -> Self {
        self.infix("^", &o)
    }
    fn bit_not(self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.made(format!("v{} ^ 1u", self.id), &[self.id]),
            Number::U8 => self.made(format!("v{} ^ 255u", self.id), &[self.id]),
            Number::I32 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => {
                self.made(format!("~v{}", self.id), &[self.id])
            }
        }
    }
    fn shl(self, n: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.made(format!("v{} & (v{} ^ 1u)", self.id, n.id), &[self.id, n.id]),
            Number::I32 => self.wrapped2("shl", &n),
            Number::U8 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("shl", &n),
        }
    }
    fn shr(self, n: Self) -> Self {
        match self.dtype.number() {
            Number::Bool => self.made(format!("v{} & (v{} ^ 1u)", self.id, n.id), &[self.id, n.id]),
            Number::U8 | Number::I32 | Number::I64 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => self.typed2("shr", &n),
        }
    }
}

macro_rules! reals {
    (one $($f:ident)+) => { $(fn $f(self) -> Self { self.typed(stringify!($f)) })+ };
    (two $($f:ident)+) => { $(fn $f(self, o: Self) -> Self { self.typed2(stringify!($f), &o) })+ };
}

impl Analytic for ShaderExpr {
    reals!(one sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid);
    reals!(two div);
}

impl Real for ShaderExpr {
    /// There are no shaders of these rows: `has_kernel` says so, and the host computes them.
    fn special(_row: RowId, x: &[Self]) -> Self {
        x[0].lit(f64::NAN)
    }
    reals!(one erf erfc);
    reals!(two atan2 hypot copysign);
}

macro_rules! forwards {
    ($([$kind:ident $Row:ident])+) => {
        fn forward(row: RowId, x: &[ShaderExpr], p: &[ShaderExpr]) -> ShaderExpr {
            match row {
                $(RowId::$Row => forwards!(@ $kind table::$Row, x, p)),+
            }
        }
    };
    (@ Test $R:path, $x:ident, $p:ident) => { number(<$R as Eval<ShaderExpr>>::f($x, $p)) };
    (@ Cmp $R:path, $x:ident, $p:ident) => { number(<$R as Eval<ShaderExpr>>::f($x, $p)) };
    (@ $kind:ident $R:path, $x:ident, $p:ident) => { <$R as Eval<ShaderExpr>>::f($x, $p) };
}

/// A truth value as an element of a bool tensor.
fn number(c: ShaderBool) -> ShaderExpr {
    ShaderExpr::new(&c.graph, DType::Bool, format!("select(0u, 1u, v{})", c.id), &[c.id])
}

all_rows!(forwards);

/// The computation for one element, in WGSL.
#[derive(Debug)]
pub struct Formula {
    /// Statements that come before the values.
    pub lets: String,
    /// The expressions of the results, and their types.
    pub values: SmallVec<[(String, DType); 1]>,
}

impl Formula {
    /// An expression as it is.
    pub fn just(value: &str, dtype: DType) -> Formula {
        Formula { lets: String::new(), values: smallvec![(value.to_owned(), dtype)] }
    }
}

/// An expression graph under construction. Equal operations on equal values are computed once.
#[derive(Default)]
pub struct Sheet(SharedGraph);

impl Sheet {
    /// The value of an expression of the shader.
    pub fn leaf(&self, dtype: DType, text: &str) -> ShaderExpr {
        ShaderExpr::new(&self.0, dtype, text.to_owned(), &[])
    }

    /// Zero, for a value that is not read.
    pub fn zero(&self, dtype: DType) -> ShaderExpr {
        self.leaf(dtype, elem::zero(dtype))
    }

    /// `func` of values of `func.in_dtype` (those not read may be anything) and parameters, all of the type computed in. The kind of the
    /// row must admit the type.
    pub fn apply(&self, func: Func, x: &[ShaderExpr], p: &[ShaderExpr]) -> ShaderExpr {
        match func.part {
            Part::Forward => forward(func.row, x, p),
            Part::Vjp(i) => func.row.vjp(i as usize, &x[0], &x[1..x.len() - 1], &x[x.len() - 1], p),
        }
    }

    /// The result of a row as its dtype holds it: floats of 16 bits are computed in `f32`, and rounded once.
    pub fn rounded(&self, v: ShaderExpr) -> ShaderExpr {
        if !v.dtype.is_half() {
            return v;
        }
        ShaderExpr::new(&self.0, v.dtype, elem::narrowed(v.dtype, &format!("v{}", v.id)), &[v.id])
    }

    /// The value after it was stored as `to`.
    pub fn cast(&self, v: &ShaderExpr, to: DType) -> ShaderExpr {
        if v.dtype == to {
            return v.clone();
        }
        ShaderExpr::new(&self.0, to, elem::convert(v.dtype, to, &format!("v{}", v.id)), &[v.id])
    }

    /// The statements that compute `roots`, without unused nodes.
    pub fn formula(&self, roots: &[ShaderExpr]) -> Formula {
        let g = self.0.borrow();
        // How often each node is read; a root counts as read once by the caller.
        let mut reads = vec![0usize; g.nodes.len()];
        for v in roots {
            reads[v.id as usize] += 1;
        }
        for id in (0..g.nodes.len()).rev() {
            if reads[id] > 0 {
                for r in &g.nodes[id].reads {
                    reads[*r as usize] += 1;
                }
            }
        }
        let bare = |v: &ShaderExpr| reads[v.id as usize] == 1;
        let mut lets = String::new();
        for (id, n) in g.nodes.iter().enumerate() {
            if reads[id] == 0 || roots.iter().any(|v| v.id as usize == id && bare(v)) {
                continue;
            }
            let _ = match n.fusible {
                Some(dtype) => writeln!(lets, "let v{id} = {}_keep({});", elem::prefix(dtype), n.text),
                None => writeln!(lets, "let v{id} = {};", n.text),
            };
        }
        let text = |v: &ShaderExpr| if bare(v) { g.nodes[v.id as usize].text.clone() } else { format!("v{}", v.id) };
        Formula { lets, values: roots.iter().map(|v| (text(v), v.dtype)).collect() }
    }
}

/// `func` computed in `dtype` from inputs that are expressions (of `func.in_dtype`; those not read may be anything) and parameters (of
/// `dtype`). The kind of the row must admit the dtype.
pub fn formula(func: Func, dtype: DType, ins: &[String], params: &[String]) -> Formula {
    let sheet = Sheet::default();
    let x: Vec<ShaderExpr> = ins.iter().enumerate().map(|(k, x)| sheet.leaf(func.in_dtype(k, dtype), x)).collect();
    let p: Vec<ShaderExpr> = params.iter().map(|p| sheet.leaf(dtype, p)).collect();
    let v = sheet.rounded(sheet.apply(func, &x, &p));
    sheet.formula(&[v])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(func: Func, dtype: DType, ins: &[&str]) -> String {
        let ins: Vec<String> = ins.iter().map(|s| (*s).to_owned()).collect();
        let f = formula(func, dtype, &ins, &[]);
        f.lets + &f.values[0].0
    }

    #[test]
    fn shared_nodes_are_computed_once() {
        let s = text(Func::forward(RowId::MseLoss), DType::F32, &["a", "b"]);
        assert_eq!(s, "let v0 = a;\nlet v1 = b;\nlet v2 = f32_keep(v0 - v1);\nv2 * v2");
    }

    #[test]
    fn what_is_not_used_is_not_computed() {
        let s = text(Func::vjp(RowId::Tanh, 0), DType::F32, &["g", "x", "y"]);
        assert!(s.contains("= g;") && s.contains("= y;") && !s.contains("= x;"), "{s}");
    }

    #[test]
    fn steps_share_what_they_share_and_keep_what_is_read() {
        let sheet = Sheet::default();
        let (x, y) = (sheet.leaf(DType::F32, "a"), sheet.leaf(DType::F32, "b"));
        let product = sheet.apply(Func::forward(RowId::Mul), &[x.clone(), y.clone()], &[]);
        let again = sheet.apply(Func::forward(RowId::Mul), &[x.clone(), y], &[]);
        let sum = sheet.apply(Func::forward(RowId::Add), &[product.clone(), x], &[]);
        let whole = sheet.cast(&sum, DType::I64);
        let f = sheet.formula(&[sum, again, whole]);
        assert_eq!(f.lets, "let v0 = a;\nlet v1 = b;\nlet v2 = f32_keep(v0 * v1);\nlet v3 = f32_keep(v2 + v0);\n");
        assert_eq!(&f.values[..], [("v3".into(), DType::F32), ("v2".into(), DType::F32), ("f32_to_i64(v3)".into(), DType::I64)]);
    }

    #[test]
    fn integers_wrap_and_truth_is_a_number() {
        assert!(text(Func::forward(RowId::Mul), DType::U8, &["a", "b"]).ends_with("(v0 * v1) & 255u"));
        assert!(text(Func::forward(RowId::Add), DType::I64, &["a", "b"]).ends_with("i64_add(v0, v1)"));
        assert!(text(Func::forward(RowId::Lt), DType::F32, &["a", "b"]).ends_with("select(0u, 1u, v2)"));
    }
}
