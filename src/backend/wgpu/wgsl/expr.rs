//! The scalar language as WGSL: values are nodes of an expression graph, equal nodes are one, and a node becomes one `let`.

use crate::layout::DType;
use crate::pointwise::row::{CmpRow, IntRow, NumRow, RealRow};
use crate::pointwise::{Cond, Func, Int, Num, Part, Real, RowId, all_rows, rows};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::{Add, Mul, Neg, Sub};
use std::rc::Rc;

struct Node {
    text: String,
    reads: SmallVec<[u32; 3]>,
    /// A sum or product of f32 that a driver could fuse with others.
    fusible: bool,
}

#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    index: HashMap<String, u32>,
    /// The first function that this dtype does not have on the device.
    missing: Option<&'static str>,
}

type Shared = Rc<RefCell<Graph>>;

fn node(graph: &Shared, text: String, reads: &[u32], fusible: bool) -> u32 {
    let mut g = graph.borrow_mut();
    if let Some(&id) = g.index.get(&text) {
        return id;
    }
    let id = g.nodes.len() as u32;
    g.index.insert(text.clone(), id);
    g.nodes.push(Node { text, reads: SmallVec::from_slice(reads), fusible });
    id
}

/// A number of the language: a node and its dtype.
#[derive(Clone)]
struct Value {
    graph: Shared,
    id: u32,
    dtype: DType,
}

/// A truth value: a node of the type `bool`.
#[derive(Clone)]
struct Truth {
    graph: Shared,
    id: u32,
}

impl Value {
    fn new(graph: &Shared, dtype: DType, text: String, reads: &[u32]) -> Value {
        Value { graph: graph.clone(), id: node(graph, text, reads, false), dtype }
    }

    fn made(&self, text: String, reads: &[u32]) -> Value {
        Value::new(&self.graph, self.dtype, text, reads)
    }

    /// `f(self)`.
    fn call(&self, f: &str) -> Value {
        self.made(format!("{f}(v{})", self.id), &[self.id])
    }

    /// `f(self, o)`.
    fn call2(&self, f: &str, o: &Value) -> Value {
        self.made(format!("{f}(v{}, v{})", self.id, o.id), &[self.id, o.id])
    }

    fn infix(&self, op: &str, o: &Value) -> Value {
        self.made(format!("v{} {op} v{}", self.id, o.id), &[self.id, o.id])
    }

    /// An operation that wraps at 256.
    fn infix_u8(&self, op: &str, o: &Value) -> Value {
        self.made(format!("(v{} {op} v{}) & 255u", self.id, o.id), &[self.id, o.id])
    }

    fn fusible(&self, op: &str, o: &Value) -> Value {
        let id = node(&self.graph, format!("v{} {op} v{}", self.id, o.id), &[self.id, o.id], true);
        Value { id, ..self.clone() }
    }

    fn truth(&self, text: String, reads: &[u32]) -> Truth {
        Truth { graph: self.graph.clone(), id: node(&self.graph, text, reads, false) }
    }

    fn compare(&self, op: &str, f: &str, o: &Value) -> Truth {
        let text = match self.dtype {
            DType::F32 => format!("f32_{f}(v{}, v{})", self.id, o.id),
            DType::I64 => format!("i64_{f}(v{}, v{})", self.id, o.id),
            _ => format!("v{} {op} v{}", self.id, o.id),
        };
        self.truth(text, &[self.id, o.id])
    }

    /// A function that only f32 has.
    fn real(&self, f: &'static str) -> Value {
        self.missing(f);
        self.call(&format!("f32_{f}"))
    }

    fn real2(&self, f: &'static str, o: &Value) -> Value {
        self.missing(f);
        self.call2(&format!("f32_{f}"), o)
    }

    fn missing(&self, f: &'static str) {
        if self.dtype != DType::F32 {
            self.graph.borrow_mut().missing.get_or_insert(f);
        }
    }

    /// `f32_f`, `i32_f`, ... of two numbers, where bool has a formula of its own.
    fn typed2(&self, f: &'static str, o: &Value) -> Value {
        match self.dtype {
            DType::U8 => self.call2(&format!("u8_{f}"), o),
            DType::I32 => self.call2(&format!("i32_{f}"), o),
            DType::I64 => self.call2(&format!("i64_{f}"), o),
            _ => self.real2(f, o),
        }
    }

    fn rounded(&self, f: &'static str) -> Value {
        match self.dtype {
            DType::F32 => self.call(&format!("f32_{f}")),
            DType::F64 => self.call(f),
            _ => self.clone(),
        }
    }
}

impl Add for Value {
    type Output = Value;
    fn add(self, o: Value) -> Value {
        match self.dtype {
            DType::Bool => self.infix("|", &o),
            DType::U8 => self.infix_u8("+", &o),
            DType::I64 => self.call2("i64_add", &o),
            DType::F32 => self.fusible("+", &o),
            DType::I32 | DType::F64 => self.infix("+", &o),
        }
    }
}

impl Sub for Value {
    type Output = Value;
    fn sub(self, o: Value) -> Value {
        match self.dtype {
            DType::Bool => self.infix("^", &o),
            DType::U8 => self.infix_u8("-", &o),
            DType::I64 => self.call2("i64_sub", &o),
            DType::F32 => self.fusible("-", &o),
            DType::I32 | DType::F64 => self.infix("-", &o),
        }
    }
}

impl Mul for Value {
    type Output = Value;
    fn mul(self, o: Value) -> Value {
        match self.dtype {
            DType::Bool => self.infix("&", &o),
            DType::U8 => self.infix_u8("*", &o),
            DType::I64 => self.call2("i64_mul", &o),
            DType::F32 => self.fusible("*", &o),
            DType::I32 | DType::F64 => self.infix("*", &o),
        }
    }
}

impl Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        match self.dtype {
            DType::Bool => self,
            DType::U8 => self.made(format!("(0u - v{}) & 255u", self.id), &[self.id]),
            DType::I32 => self.made(format!("0 - v{}", self.id), &[self.id]),
            DType::I64 => self.call("i64_neg"),
            DType::F32 => self.call("f32_neg"),
            DType::F64 => self.made(format!("-v{}", self.id), &[self.id]),
        }
    }
}

impl Cond for Truth {
    fn and(self, o: Self) -> Self {
        Truth { id: node(&self.graph, format!("v{} & v{}", self.id, o.id), &[self.id, o.id], false), ..self }
    }
    fn or(self, o: Self) -> Self {
        Truth { id: node(&self.graph, format!("v{} | v{}", self.id, o.id), &[self.id, o.id], false), ..self }
    }
    fn not(self) -> Self {
        Truth { id: node(&self.graph, format!("!v{}", self.id), &[self.id], false), ..self }
    }
    fn xor(self, o: Self) -> Self {
        Truth { id: node(&self.graph, format!("v{} != v{}", self.id, o.id), &[self.id, o.id], false), ..self }
    }
}

impl Num for Value {
    type Cond = Truth;

    fn lit(&self, v: f64) -> Self {
        let whole = v as i64;
        let text = match self.dtype {
            DType::Bool => format!("{}u", u32::from(v != 0.0)),
            DType::U8 => format!("{}u", whole as u8),
            DType::I32 => format!("bitcast<i32>({}u)", whole as u32),
            DType::I64 => format!("vec2<u32>({}u, {}u)", whole as u32, (whole >> 32) as u32),
            DType::F32 => format!("f32_lit({:#010x}u)", (v as f32).to_bits()),
            DType::F64 => {
                if !v.is_finite() {
                    self.missing("constants that are not finite");
                }
                format!("{v:e}lf")
            }
        };
        self.made(text, &[])
    }
    fn abs(self) -> Self {
        match self.dtype {
            DType::Bool | DType::U8 => self,
            DType::I32 => self.call("i32_abs"),
            DType::I64 => self.call("i64_abs"),
            DType::F32 => self.call("f32_abs"),
            DType::F64 => self.call("abs"),
        }
    }
    fn lt(&self, o: &Self) -> Truth {
        self.compare("<", "lt", o)
    }
    fn le(&self, o: &Self) -> Truth {
        self.compare("<=", "le", o)
    }
    fn eq(&self, o: &Self) -> Truth {
        self.compare("==", "eq", o)
    }
    fn truthy(&self) -> Truth {
        match self.dtype {
            DType::F32 => self.truth(format!("!f32_is_zero(v{})", self.id), &[self.id]),
            DType::I64 => self.truth(format!("!i64_is_zero(v{})", self.id), &[self.id]),
            _ => self.ne(&self.lit(0.0)),
        }
    }
    fn is_nan(&self) -> Truth {
        match self.dtype {
            DType::F32 => self.truth(format!("f32_is_nan(v{})", self.id), &[self.id]),
            DType::F64 => self.ne(self),
            _ => self.truth("false".into(), &[]),
        }
    }
    fn is_inf(&self) -> Truth {
        match self.dtype {
            DType::F32 => self.truth(format!("f32_is_inf(v{})", self.id), &[self.id]),
            DType::F64 => self.clone().abs().gt(&self.lit(f64::MAX)),
            _ => self.truth("false".into(), &[]),
        }
    }
    fn select(c: Truth, a: Self, b: Self) -> Self {
        a.made(format!("select(v{}, v{}, v{})", b.id, a.id, c.id), &[b.id, a.id, c.id])
    }
    fn max(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.infix("|", &o),
            DType::U8 | DType::I32 => self.call2("max", &o),
            DType::I64 => self.call2("i64_max", &o),
            DType::F32 => self.call2("f32_max", &o),
            DType::F64 => Value::select(o.lt(&self).or(self.is_nan()), self, o),
        }
    }
    fn min(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.infix("&", &o),
            DType::U8 | DType::I32 => self.call2("min", &o),
            DType::I64 => self.call2("i64_min", &o),
            DType::F32 => self.call2("f32_min", &o),
            DType::F64 => Value::select(self.lt(&o).or(self.is_nan()), self, o),
        }
    }
    fn sign(self) -> Self {
        match self.dtype {
            DType::Bool => self,
            DType::U8 => self.made(format!("min(v{}, 1u)", self.id), &[self.id]),
            DType::I32 => self.call("sign"),
            DType::I64 => self.call("i64_sign"),
            DType::F32 => self.call("f32_sign"),
            DType::F64 => {
                let (zero, one, minus) = (self.lit(0.0), self.lit(1.0), self.lit(-1.0));
                let negative = Value::select(self.lt(&zero), minus, zero.clone());
                Value::select(zero.lt(&self), one, negative)
            }
        }
    }
    fn pow(self, e: Self) -> Self {
        match self.dtype {
            DType::Bool => self.made(format!("v{} | (v{} ^ 1u)", self.id, e.id), &[self.id, e.id]),
            _ => self.typed2("pow", &e),
        }
    }
    fn div_floor(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.infix("&", &o),
            DType::U8 => self.call2("u8_div", &o),
            _ => self.typed2("div_floor", &o),
        }
    }
    fn div_trunc(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.infix("&", &o),
            DType::U8 => self.call2("u8_div", &o),
            DType::F64 => self.infix("/", &o).rounded("trunc"),
            _ => self.typed2("div_trunc", &o),
        }
    }
    fn fmod(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.lit(0.0),
            _ => self.typed2("fmod", &o),
        }
    }
    fn remainder(self, o: Self) -> Self {
        match self.dtype {
            DType::Bool => self.lit(0.0),
            DType::U8 => self.call2("u8_fmod", &o),
            _ => self.typed2("remainder", &o),
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

impl Int for Value {
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
        match self.dtype {
            DType::Bool => self.made(format!("v{} ^ 1u", self.id), &[self.id]),
            DType::U8 => self.made(format!("v{} ^ 255u", self.id), &[self.id]),
            _ => self.made(format!("~v{}", self.id), &[self.id]),
        }
    }
    fn shl(self, n: Self) -> Self {
        match self.dtype {
            DType::Bool => self.made(format!("v{} & (v{} ^ 1u)", self.id, n.id), &[self.id, n.id]),
            _ => self.typed2("shl", &n),
        }
    }
    fn shr(self, n: Self) -> Self {
        match self.dtype {
            DType::Bool => self.made(format!("v{} & (v{} ^ 1u)", self.id, n.id), &[self.id, n.id]),
            _ => self.typed2("shr", &n),
        }
    }
}

macro_rules! reals {
    (one $($f:ident)+) => { $(fn $f(self) -> Self { self.real(stringify!($f)) })+ };
    (two $($f:ident)+) => { $(fn $f(self, o: Self) -> Self { self.real2(stringify!($f), &o) })+ };
}

impl Real for Value {
    fn div(self, o: Self) -> Self {
        if self.dtype == DType::F64 { self.infix("/", &o) } else { self.real2("div", &o) }
    }
    fn sqrt(self) -> Self {
        if self.dtype == DType::F64 { self.call("sqrt") } else { self.real("sqrt") }
    }
    reals!(one exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid);
    reals!(two atan2 hypot copysign);
}

macro_rules! forwards {
    ($([$kind:ident $Row:ident])+) => {
        fn forward(row: RowId, x: &[Value], p: &[Value]) -> Value {
            match row {
                $(RowId::$Row => forwards!(@ $kind rows::$Row, x, p)),+
            }
        }
    };
    (@ Num $R:path, $x:ident, $p:ident) => { <$R as NumRow>::f::<Value>($x, $p) };
    (@ Real $R:path, $x:ident, $p:ident) => { <$R as RealRow>::f::<Value>($x, $p) };
    (@ Int $R:path, $x:ident, $p:ident) => { <$R as IntRow>::f::<Value>($x, $p) };
    (@ Cmp $R:path, $x:ident, $p:ident) => {{
        let c = <$R as CmpRow>::f::<Value>($x, $p);
        Value::new(&c.graph, DType::Bool, format!("select(0u, 1u, v{})", c.id), &[c.id])
    }};
}

all_rows!(forwards);

/// What a row, or its derivative, is in WGSL.
#[derive(Debug)]
pub struct Formula {
    /// Statements that come before the value.
    pub lets: String,
    /// The expression of the value.
    pub value: String,
    pub dtype: DType,
}

/// `func` computed in `dtype` from inputs that are expressions (of `func.in_dtype`; those not read may be anything) and parameters (of
/// `dtype`). Err names a function that the dtype does not have on the device. The kind of the row must admit the dtype.
pub fn formula(func: Func, dtype: DType, ins: &[String], params: &[String]) -> Result<Formula, &'static str> {
    let graph = Shared::default();
    let leaf = |k: usize, x: &String| Value::new(&graph, func.in_dtype(k, dtype), x.clone(), &[]);
    let x: Vec<Value> = ins.iter().enumerate().map(|(k, x)| leaf(k, x)).collect();
    let p: Vec<Value> = params.iter().map(|p| Value::new(&graph, dtype, p.clone(), &[])).collect();
    let v = match func.part {
        Part::Forward => forward(func.row, &x, &p),
        Part::Vjp(i) => func.row.vjp(i as usize, &x[0], &x[1..x.len() - 1], &x[x.len() - 1], &p),
    };
    let g = graph.borrow();
    if let Some(name) = g.missing {
        return Err(name);
    }
    let mut used = vec![false; g.nodes.len()];
    used[v.id as usize] = true;
    let mut lets = String::new();
    for id in (0..g.nodes.len()).rev() {
        if used[id] {
            for r in &g.nodes[id].reads {
                used[*r as usize] = true;
            }
        }
    }
    for (id, n) in g.nodes.iter().enumerate() {
        if used[id] && id != v.id as usize {
            let _ = if n.fusible { writeln!(lets, "let v{id} = f32_keep({});", n.text) } else { writeln!(lets, "let v{id} = {};", n.text) };
        }
    }
    Ok(Formula { lets, value: g.nodes[v.id as usize].text.clone(), dtype: v.dtype })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(func: Func, dtype: DType, ins: &[&str]) -> String {
        let ins: Vec<String> = ins.iter().map(|s| (*s).to_owned()).collect();
        let f = formula(func, dtype, &ins, &[]).expect("a formula");
        f.lets + &f.value
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
    fn integers_wrap_and_truth_is_a_number() {
        assert!(text(Func::forward(RowId::Mul), DType::U8, &["a", "b"]).ends_with("(v0 * v1) & 255u"));
        assert!(text(Func::forward(RowId::Add), DType::I64, &["a", "b"]).ends_with("i64_add(v0, v1)"));
        assert!(text(Func::forward(RowId::Lt), DType::F32, &["a", "b"]).ends_with("select(0u, 1u, v2)"));
    }

    #[test]
    fn functions_that_a_dtype_lacks_are_named() {
        let ins = ["x".to_owned()];
        assert_eq!(formula(Func::forward(RowId::Sin), DType::F64, &ins, &[]).err(), Some("sin"));
        assert!(formula(Func::forward(RowId::Sqrt), DType::F64, &ins, &[]).is_ok());
    }
}
