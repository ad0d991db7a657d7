//! Formulas as text, for docstrings: an instance of the scalar language whose values are expressions.

use super::arith::{Analytic, Cond, Field, Int, Num, Real};
use super::row::{Eval, Row};
use crate::rows::table;
use crate::rows::table::{RowId, all_rows};
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// How tightly an expression's outermost operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bind {
    Choice,
    Or,
    And,
    Not,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

/// An expression, or a condition, in Python's syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    text: String,
    bind: Bind,
}

impl Text {
    /// A name or anything else that needs no brackets.
    pub fn name(text: impl Into<String>) -> Self {
        Text { text: text.into(), bind: Bind::Atom }
    }

    fn at(&self, least: Bind) -> String {
        if self.bind >= least { self.text.clone() } else { format!("({})", self.text) }
    }

    fn infix(self, op: &str, other: Text, bind: Bind, right: Bind) -> Self {
        Text { text: format!("{} {op} {}", self.at(bind), other.at(right)), bind }
    }

    fn call(f: &str, args: &[&Text]) -> Self {
        let args: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        Text::name(format!("{f}({})", args.join(", ")))
    }

    fn is(&self, v: &str) -> bool {
        self.text == v
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Add for Text {
    type Output = Text;
    fn add(self, o: Text) -> Text {
        self.infix("+", o, Bind::Sum, Bind::Sum)
    }
}

impl Sub for Text {
    type Output = Text;
    fn sub(self, o: Text) -> Text {
        self.infix("-", o, Bind::Sum, Bind::Product)
    }
}

impl Mul for Text {
    type Output = Text;
    fn mul(self, o: Text) -> Text {
        if self.bind == Bind::Atom && self.text == o.text {
            return Text { text: format!("{}**2", self.text), bind: Bind::Power };
        }
        // A product's factors come in any order; a quotient on the right keeps its brackets.
        self.infix("*", o, Bind::Product, Bind::Sign)
    }
}

impl Neg for Text {
    type Output = Text;
    fn neg(self) -> Text {
        Text { text: format!("-{}", self.at(Bind::Product)), bind: Bind::Sign }
    }
}

impl Cond for Text {
    fn and(self, other: Self) -> Self {
        self.infix("and", other, Bind::And, Bind::And)
    }
    fn or(self, other: Self) -> Self {
        self.infix("or", other, Bind::Or, Bind::Or)
    }
    fn not(self) -> Self {
        Text { text: format!("not {}", self.at(Bind::Not)), bind: Bind::Not }
    }
    fn xor(self, other: Self) -> Self {
        Text::call("bool", &[&self]).infix("!=", Text::call("bool", &[&other]), Bind::Compare, Bind::BitOr)
    }
}

macro_rules! calls {
    ($($f:ident),+) => { $(fn $f(self) -> Self { Text::call(stringify!($f), &[&self]) })+ };
    (binary $($f:ident),+) => { $(fn $f(self, o: Self) -> Self { Text::call(stringify!($f), &[&self, &o]) })+ };
}

impl Field for Text {
    type Cond = Text;
    crate::without_imaginary_part!();

    fn lit(&self, v: f64) -> Self {
        use std::f64::consts as c;
        // Names for what a reader would not recognise by its digits.
        for (value, name) in [
            (c::LN_2, "log(2)"),
            (c::LN_10, "log(10)"),
            (c::FRAC_2_SQRT_PI, "2 / sqrt(pi)"),
            (c::FRAC_2_SQRT_PI / (2.0 * c::SQRT_2), "1 / sqrt(2 * pi)"),
            (c::FRAC_2_SQRT_PI / c::SQRT_2, "sqrt(2 / pi)"),
            (1.0 / c::SQRT_2, "1 / sqrt(2)"),
            (1.0 / 6.0, "1 / 6"),
            (1.0 / 3.0, "1 / 3"),
            (f64::INFINITY, "inf"),
        ] {
            let bind = if name.contains(" / ") { Bind::Product } else { Bind::Atom };
            if v == value {
                return Text { text: name.into(), bind };
            }
            if v == -value {
                return Text { text: format!("-{name}"), bind: Bind::Sign };
            }
        }
        let bind = if v < 0.0 { Bind::Sign } else { Bind::Atom };
        Text { text: format!("{v}"), bind }
    }
    fn eq(&self, o: &Self) -> Self {
        self.clone().infix("==", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn ne(&self, o: &Self) -> Self {
        self.clone().infix("!=", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn truthy(&self) -> Self {
        self.clone()
    }
    fn is_nan(&self) -> Self {
        Text::call("isnan", &[self])
    }
    fn is_inf(&self) -> Self {
        Text::call("isinf", &[self])
    }
    fn select(c: Self, a: Self, b: Self) -> Self {
        if a == b {
            return a;
        }
        Text { text: format!("{} if {} else {}", a.at(Bind::Or), c.at(Bind::Or), b.at(Bind::Choice)), bind: Bind::Choice }
    }
    fn is_exact(&self) -> bool {
        false
    }
    fn pow(self, e: Self) -> Self {
        if e.is("1") {
            return self;
        }
        Text { text: format!("{}**{}", self.at(Bind::Atom), e.at(Bind::Power)), bind: Bind::Power }
    }
}

impl Num for Text {
    fn lt(&self, o: &Self) -> Self {
        self.clone().infix("<", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn le(&self, o: &Self) -> Self {
        self.clone().infix("<=", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn gt(&self, o: &Self) -> Self {
        self.clone().infix(">", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn ge(&self, o: &Self) -> Self {
        self.clone().infix(">=", o.clone(), Bind::BitOr, Bind::BitOr).compare()
    }
    fn div_floor(self, o: Self) -> Self {
        self.infix("//", o, Bind::Product, Bind::Sign)
    }
    fn div_trunc(self, o: Self) -> Self {
        Text::call("trunc", &[&self.div(o)])
    }
    fn remainder(self, o: Self) -> Self {
        self.infix("%", o, Bind::Product, Bind::Sign)
    }
    calls!(abs, sign, floor, ceil, round, trunc);
    calls!(binary max, min, fmod);
}

impl Text {
    fn compare(self) -> Self {
        Text { bind: Bind::Compare, ..self }
    }
}

impl Int for Text {
    fn bit_and(self, o: Self) -> Self {
        self.infix("&", o, Bind::BitAnd, Bind::Shift)
    }
    fn bit_or(self, o: Self) -> Self {
        self.infix("|", o, Bind::BitOr, Bind::BitXor)
    }
    fn bit_xor(self, o: Self) -> Self {
        self.infix("^", o, Bind::BitXor, Bind::BitAnd)
    }
    fn bit_not(self) -> Self {
        Text { text: format!("~{}", self.at(Bind::Sign)), bind: Bind::Sign }
    }
    fn shl(self, o: Self) -> Self {
        self.infix("<<", o, Bind::Shift, Bind::Sum)
    }
    fn shr(self, o: Self) -> Self {
        self.infix(">>", o, Bind::Shift, Bind::Sum)
    }
}

impl Analytic for Text {
    fn div(self, o: Self) -> Self {
        self.infix("/", o, Bind::Product, Bind::Sign)
    }
    calls!(
        sqrt, exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, sigmoid
    );
}

impl Real for Text {
    fn special(row: RowId, x: &[Self]) -> Self {
        Text::call(row.info().name, &x.iter().collect::<Vec<_>>())
    }
    calls!(erf, erfc);
    calls!(binary atan2, hypot, copysign);
}

fn names<R: Row>() -> (Vec<Text>, Vec<Text>) {
    (R::INFO.operands.iter().map(|o| Text::name(o.name)).collect(), R::INFO.params.iter().map(|p| Text::name(*p)).collect())
}

macro_rules! formulas {
    ($([$kind:ident $Row:ident])+) => {
        fn forward(row: RowId) -> Text {
            match row {
                $(RowId::$Row => {
                    let (x, p) = names::<table::$Row>();
                    <table::$Row as Eval<Text>>::f(&x, &p)
                })+
            }
        }
    };
}

all_rows!(formulas);

impl RowId {
    /// The operation as a formula of its operands and parameters.
    pub fn formula(self) -> String {
        forward(self).to_string()
    }

    /// The gradient of operand `i` for the cotangent `g`, as a formula in which `y` is the output; None if there is no derivative.
    pub fn vjp_formula(self, i: usize) -> Option<String> {
        let info = self.info();
        info.operands.get(i)?.saves?;
        let x: Vec<Text> = info.operands.iter().map(|o| Text::name(o.name)).collect();
        let p: Vec<Text> = info.params.iter().map(|p| Text::name(*p)).collect();
        Some(self.vjp(i, &Text::name("g"), &x, &Text::name("y"), &p).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_read_as_one_would_write_them() {
        for (row, formula) in [
            (RowId::Add, "a + b"),
            (RowId::AddScaled, "a + alpha * b"),
            (RowId::Tanh, "tanh(x)"),
            (RowId::Reciprocal, "1 / x"),
            (RowId::Square, "x**2"),
            (RowId::Where, "a if c else b"),
            (RowId::Clamp, "min(max(x, min), max)"),
            (RowId::Remainder, "a % b"),
            (RowId::LogicalNot, "not x"),
            (RowId::IsFinite, "not (isnan(x) or isinf(x))"),
            (RowId::BitwiseNot, "~x"),
            (RowId::Gelu, "x * (0.5 * erfc(-1 / sqrt(2) * x))"),
            (RowId::LeakyRelu, "x if x > 0 else x * negative_slope"),
        ] {
            assert_eq!(row.formula(), formula);
        }
    }

    #[test]
    fn derivatives_read_as_one_would_write_them() {
        for (row, i, formula) in [
            (RowId::Mul, 0, "g * b"),
            (RowId::Sub, 1, "-g"),
            (RowId::Sin, 0, "g * cos(x)"),
            (RowId::Tanh, 0, "g * (1 - y**2)"),
            (RowId::Sqrt, 0, "g / (2 * y)"),
            (RowId::Div, 1, "-g * (a / b / b)"),
            (RowId::Relu, 0, "0 if y <= 0 else g"),
            (RowId::Log2, 0, "g / (log(2) * x)"),
        ] {
            assert_eq!(row.vjp_formula(i).as_deref(), Some(formula));
        }
        assert_eq!(RowId::Eq.vjp_formula(0), None);
        assert_eq!(RowId::Where.vjp_formula(0), None);
    }

    #[test]
    fn brackets_keep_the_meaning() {
        let [a, b, c] = ["a", "b", "c"].map(Text::name);
        assert_eq!((a.clone() - (b.clone() - c.clone())).to_string(), "a - (b - c)");
        assert_eq!(((a.clone() - b.clone()) - c.clone()).to_string(), "a - b - c");
        assert_eq!((a.clone() * (b.clone() + c.clone())).to_string(), "a * (b + c)");
        assert_eq!(a.clone().div(b.clone().div(c.clone())).to_string(), "a / (b / c)");
        assert_eq!((-(a.clone() + b.clone())).to_string(), "-(a + b)");
        assert_eq!((-a.clone()).pow(b.clone()).to_string(), "(-a)**b");
        assert_eq!(a.clone().pow(b.clone().pow(c.clone())).to_string(), "a**b**c");
        let choice = Text::select(a.lt(&b), a.clone(), b.clone());
        assert_eq!((choice * c).to_string(), "(a if a < b else b) * c");
    }
}
