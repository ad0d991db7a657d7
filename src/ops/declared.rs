//! Declared functions: one entry gives name, parameters, types and defaults of a function. The bindings are generated from the entries.

use crate::autograd::Tensor;
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    Int,
    Float,
    Bool,
    Number,
    Text,
    DType,
    /// One dimension or several.
    Dims,
}

/// An argument of one call.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Nothing,
    Tensor(&'a Tensor),
    Int(i64),
    Float(f64),
    Bool(bool),
    Number(Scalar),
    Text(String),
    DType(DType),
    Dims(SmallVec<[i64; 4]>),
}

#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    /// Whether None may be given.
    pub optional: bool,
    pub keyword_only: bool,
    /// As written in Rust: `-1`, `true`, `1.0`, `"mean"`, `None`; `()` for no dimensions, `(-2, -1)` for some.
    pub default: Option<&'static str>,
}

/// One result, or two.
pub type Results = (Tensor, Option<Tensor>);

/// A function of tensors, whose first argument is one.
#[derive(Debug)]
pub struct Declared {
    pub name: &'static str,
    pub doc: &'static str,
    pub parameters: &'static [Parameter],
    /// Whether there are two results, with names of their own.
    pub pair: bool,
    /// Whether the function takes `out=`.
    pub takes_out: bool,
    /// Whether it is a method of `Tensor`, too.
    pub is_method: bool,
    pub call: fn(&[Value<'_>]) -> Result<Results>,
}

/// The type of a parameter of the Rust function.
pub trait Argument<'a>: Sized {
    const KIND: Kind;
    const OPTIONAL: bool = false;

    /// None if the value is of another kind.
    fn of(value: &'a Value<'a>) -> Option<Self>;
}

macro_rules! arguments {
    ($($t:ty: $kind:ident, $pattern:pat => $value:expr;)+) => { $(
        impl<'a> Argument<'a> for $t {
            const KIND: Kind = Kind::$kind;
            fn of(value: &'a Value<'a>) -> Option<Self> {
                if let $pattern = value { Some($value) } else { None }
            }
        }
    )+ };
}
arguments! {
    &'a Tensor: Tensor, Value::Tensor(t) => t;
    i64: Int, Value::Int(i) => *i;
    f64: Float, Value::Float(f) => *f;
    bool: Bool, Value::Bool(b) => *b;
    Scalar: Number, Value::Number(n) => *n;
    &'a str: Text, Value::Text(t) => t;
    DType: DType, Value::DType(d) => *d;
    &'a [i64]: Dims, Value::Dims(d) => d;
}

impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn of(value: &'a Value<'a>) -> Option<Self> {
        if matches!(value, Value::Nothing) { Some(None) } else { T::of(value).map(Some) }
    }
}

/// The argument at a place.
///
/// # Errors
/// The bindings gave a value of another kind than declared.
#[inline]
pub fn argument<'a, T: Argument<'a>>(values: &'a [Value<'a>], place: usize) -> Result<T> {
    values.get(place).and_then(T::of).ok_or_else(|| another_kind(place))
}

#[cold]
fn another_kind(place: usize) -> Error {
    Error::internal("a declared function", &format!("argument {place} is of another kind"))
}

/// What a Rust function returns.
pub trait Returns {
    const PAIR: bool;
    fn tensors(self) -> Results;
}

impl Returns for Tensor {
    const PAIR: bool = false;
    fn tensors(self) -> Results {
        (self, None)
    }
}

impl Returns for (Tensor, Tensor) {
    const PAIR: bool = true;
    fn tensors(self) -> Results {
        (self.0, Some(self.1))
    }
}

/// Declares functions: `/// docs`, then `fn name(input: &Tensor, dim: i64 = -1; sorted: bool = true) -> Tensor = rust_function;`. What stands
/// behind a semicolon is given by keyword only. The Rust function takes the arguments in this order. `[no_out]` before the name: PyTorch has
/// no `out=` there. `[function]`: no method either. `[elsewhere]`: `out=`, but no method.
macro_rules! declare {
    ($($(#[doc = $doc:literal])+ fn $([$flag:ident])? $name:ident($($p:ident: $t:ty $(= $d:expr)?),+ $(; $($k:ident: $kt:ty $(= $kd:expr)?),+)?) -> $r:ty = $f:expr;)+) => {
        pub(super) const DECLARED: &[$crate::ops::declared::Declared] = &[$(
            $crate::ops::declared::Declared {
                name: stringify!($name),
                doc: concat!($($doc, "\n"),+),
                parameters: &[
                    $($crate::ops::declared::declare!(@parameter $p, $t, false $(, $d)?)),+
                    $(, $($crate::ops::declared::declare!(@parameter $k, $kt, true $(, $kd)?)),+)?
                ],
                pair: <$r as $crate::ops::declared::Returns>::PAIR,
                takes_out: $crate::ops::declared::declare!(@out $($flag)?),
                is_method: $crate::ops::declared::declare!(@method $($flag)?),
                call: |values| {
                    let mut place = 0..;
                    $(let $p: $t = $crate::ops::declared::argument(values, place.next().unwrap_or(0))?;)+
                    $($(let $k: $kt = $crate::ops::declared::argument(values, place.next().unwrap_or(0))?;)+)?
                    $f($($p),+ $(, $($k),+)?).map(<$r as $crate::ops::declared::Returns>::tensors)
                },
            }
        ),+];
    };
    (@parameter $p:ident, $t:ty, $keyword:literal $(, $d:expr)?) => {
        $crate::ops::declared::Parameter {
            name: stringify!($p),
            kind: <$t as $crate::ops::declared::Argument<'_>>::KIND,
            optional: <$t as $crate::ops::declared::Argument<'_>>::OPTIONAL,
            keyword_only: $keyword,
            default: $crate::ops::declared::declare!(@default $($d)?),
        }
    };
    (@out) => { true };
    (@out no_out) => { false };
    (@out function) => { false };
    (@out elsewhere) => { true };
    (@method) => { true };
    (@method no_out) => { true };
    (@method function) => { false };
    (@method elsewhere) => { false };
    (@default) => { None };
    (@default $d:expr) => { Some(stringify!($d)) };
}
pub(super) use declare;
