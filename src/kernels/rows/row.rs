//! What a row is: its data, its traits, and the macro that makes both from one entry of `rows/`.

use super::arith::Field;
use crate::layout::Category;

/// In a mask of saved values: the operation's output. Bit `i` below it is operand `i`.
pub const OUTPUT: u8 = 1 << 7;

/// In which numbers a row and its derivative can be evaluated: for which types it has `Eval` and `Vjp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any numbers; the derivative is analytic.
    Field,
    /// Real and complex numbers.
    Analytic,
    /// Any numbers, with a real result: an absolute value.
    Modulus,
    /// Real and complex numbers, with a real result: an angle.
    Phase,
    /// Numbers with an order; the derivative is of reals.
    Num,
    /// Real numbers.
    Real,
    /// Real numbers, computed in float64 by `simd/math/special`: its value is `Real::special` of itself. It has no fused kernels.
    Special,
    /// Any numbers, with a truth value as result.
    Test,
    /// Numbers with an order, with a truth value as result.
    Cmp,
    /// Integers and booleans.
    Int,
}

/// The dtype of a row's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Of the type that is computed in.
    Same,
    /// Of the real type of that.
    Real,
    Bool,
}

/// Which dtypes a row accepts, and which it computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DTypeRule {
    /// Integers and booleans are computed in the default float type.
    Float,
    /// Only floats are taken.
    FloatOnly,
    /// Floats are computed; integers and booleans are given back as they are.
    FloatElseSame,
    /// Any type, kept.
    Any,
    /// Any type but bool, kept.
    NoBool,
    /// As `NoBool`, where PyTorch's error is that of subtraction, and no operand may be bool whatever the others are.
    Subtract,
    /// As `NoBool`, where PyTorch's error is that of negation.
    Negate,
    /// Any type, kept; bool is computed in int64.
    BoolAsInt,
    /// Any type, compared in the promoted type; the result is bool.
    Compare,
    /// Any types, each seen as true or false; the result is bool.
    Logic,
    /// Integers and bool, kept.
    Bitwise,
    /// Integers, kept.
    Shift,
}

impl DTypeRule {
    /// Whether floats are computed in their own type, which is the result's.
    pub const fn keeps_floats(self) -> bool {
        !matches!(self, DTypeRule::Compare | DTypeRule::Logic | DTypeRule::Bitwise | DTypeRule::Shift)
    }
}

/// A saved attribute that does not depend on the operands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    Whole(i64),
    Word(&'static str),
    /// None: a parameter of PyTorch's operation that this one does not have.
    Nothing,
}

/// An operand of a row, and what tests need of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operand {
    /// Its name in the row's formulas.
    pub name: &'static str,
    /// PyTorch's name: of the argument, and of what a node saves ("self", "other", ...).
    pub public: &'static str,
    /// Where the row is defined and smooth but for `RowInfo::kinks`; tests draw from it.
    pub range: (f64, f64),
    /// The operand is a bool mask whatever the type of the others.
    pub mask: bool,
    /// What its derivative reads (bits of operands, `OUTPUT`); None where there is no derivative.
    pub saves: Option<u8>,
}

/// A row's data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowInfo {
    pub name: &'static str,
    /// The name of PyTorch's graph node for this operation: between tensors, with a Python number that is not the first operand, and
    /// with one that is.
    pub node_names: [&'static str; 3],
    pub kind: Kind,
    pub rule: DTypeRule,
    pub operands: &'static [Operand],
    /// Numbers, not tensors, that the operation takes after its operands.
    pub params: &'static [&'static str],
    /// PyTorch's defaults of the parameters; one without must be given.
    pub defaults: &'static [Option<f64>],
    /// How signatures show a default that is not shown as the number it is.
    pub shown_defaults: &'static [Option<&'static str>],
    /// Parameter values for tests.
    pub sample_params: &'static [f64],
    /// Other names of the same operation.
    pub aliases: &'static [&'static str],
    /// Points of the first operand where the row is not smooth.
    pub kinks: &'static [f64],
    pub doc: &'static str,
    /// Whether PyTorch has an in-place form.
    pub in_place: bool,
    /// Whether it, or its derivative, is a function of the angle `operands[0]`: large ones need another algorithm.
    pub periodic: bool,
    /// Whether an operand is a mask.
    pub masks: bool,
    /// Whether integer operands may make it fail: the divisor is the last operand.
    pub divides: bool,
    /// Whether operands must be of the first one's type, but for a last one without dimensions.
    pub unpromoted: bool,
    /// Whether it is piecewise linear and the derivative of its derivative is recorded, as zeros. Not for clamping and choosing, whose
    /// derivatives have no history in PyTorch either.
    pub zero_second: bool,
    /// Whether it is differentiable in the sense of complex numbers: the derivative is one factor, by which forward mode multiplies a tangent and
    /// backward, conjugated, a gradient. Only rows that take and give complex numbers are asked.
    pub holomorphic: bool,
    /// Whether Python takes the parameters by keyword only.
    pub keyword_params: bool,
    /// Whether Python's functions and methods are generated from the row. Not for parts of other operations, nor if the signature has more than
    /// operands and parameters.
    pub bound: bool,
    /// Whether a bound row is a function of the module alone, not a method.
    pub function_only: bool,
    /// Whether the gradient of an operand without a derivative is an error, instead of zeros.
    pub refuses: bool,
    /// Whether it chooses among its operands, or what stands for them: the gradient is 0 where one does not reach the result, and that 0 stays one
    /// behind it, whatever the slopes there.
    pub cuts: bool,
    /// Saved attributes other than operands, result and parameters, under PyTorch's names.
    pub constants: &'static [(&'static str, Constant)],
    /// Parameters that are not saved attributes.
    pub hidden: &'static [&'static str],
    /// The saved attributes if an operand after the first is a number, where they are fewer.
    pub attributes_with_number: Option<&'static [&'static str]>,
}

/// PyTorch's name of operand `i` of `n` where the row says none.
pub(super) const fn public_name(i: usize, n: usize) -> &'static str {
    match (i, n) {
        (0, _) => "self",
        (_, 2) => "other",
        (1, _) => "tensor1",
        _ => "tensor2",
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

const FLAGS: [&str; 11] = [
    "no_in_place",
    "periodic",
    "divides",
    "unpromoted",
    "keyword_params",
    "zero_second",
    "not_bound",
    "function_only",
    "refuses",
    "not_holomorphic",
    "cuts",
];

/// Whether a flag stands among a row's.
pub(super) const fn has(flags: &[&str], flag: &str) -> bool {
    let (mut found, mut i) = (false, 0);
    while i < flags.len() {
        let (mut known, mut k) = (false, 0);
        while k < FLAGS.len() {
            known = known || same(flags[i], FLAGS[k]);
            k += 1;
        }
        assert!(known, "a row has a flag that there is not");
        found = found || same(flags[i], flag);
        i += 1;
    }
    found
}

impl RowInfo {
    pub const fn arity(&self) -> usize {
        self.operands.len()
    }

    /// Bit `i`: operand `i` has a derivative.
    pub const fn differentiable(&self) -> u8 {
        let mut mask = 0;
        let mut i = 0;
        while i < self.operands.len() {
            if self.operands[i].saves.is_some() {
                mask |= 1 << i;
            }
            i += 1;
        }
        mask
    }

    /// What must be saved for the gradients of the operands in `needed` (bits).
    pub const fn saves(&self, needed: u8) -> u8 {
        let mut mask = 0;
        let mut i = 0;
        while i < self.operands.len() {
            if let Some(s) = self.operands[i].saves
                && needed & (1 << i) != 0
            {
                mask |= s;
            }
            i += 1;
        }
        mask
    }

    pub const fn output(&self) -> Output {
        match self.kind {
            Kind::Field | Kind::Analytic | Kind::Num | Kind::Real | Kind::Special | Kind::Int => Output::Same,
            Kind::Modulus | Kind::Phase => Output::Real,
            Kind::Test | Kind::Cmp => Output::Bool,
        }
    }

    /// Whether it can be computed in numbers of this category.
    pub const fn computes(&self, numbers: Category) -> bool {
        match (self.kind, numbers) {
            (Kind::Field | Kind::Modulus | Kind::Test, _) => true,
            (Kind::Num | Kind::Cmp, _) => !matches!(numbers, Category::Complex),
            (Kind::Analytic | Kind::Phase, _) => matches!(numbers, Category::Float | Category::Complex),
            (Kind::Real | Kind::Special, _) => matches!(numbers, Category::Float),
            (Kind::Int, _) => matches!(numbers, Category::Bool | Category::Integer),
        }
    }
}

/// A pointwise operation.
pub trait Row: 'static {
    const INFO: RowInfo;
}

/// The value of a row in numbers of the type `A`, for every type that its kind admits. `x` has the row's arity, `p` its parameters.
pub trait Eval<A: Field>: Row {
    /// `A`, its real type, or its truth values.
    type Out;
    fn f(x: &[A], p: &[A]) -> Self::Out;
}

/// The derivative of a row in numbers of the type `A`. Factors are conjugated: the gradient of a real number by complex ones is the
/// direction of its steepest rise, as in PyTorch.
pub trait Vjp<A: Field>: Row {
    /// The type of the output and its cotangent.
    type Y;
    /// What operand `i`'s gradient gets from the cotangent `g`. Reads only what `INFO.operands[i].saves` names; the rest of `x` and
    /// `y` can be anything. The value may be a bare `lit` (it then broadcasts). Zero for an operand without derivative.
    fn vjp(i: usize, g: &Self::Y, x: &[A], y: &Self::Y, p: &[A]) -> A;
}

/// Turns entries into types, `RowId`, and `all_rows!`. An entry reads
///
/// ```text
/// /// What it computes.
/// kind Type = "name" rule [Node, NodeWithNumber, NodeWithNumberFirst](operand, ...; parameter = sample default value, ...)
///     also ["alias"] kinks [0.0] attributes [name = Whole(1)] hides ["parameter"] number_attributes ["name"], flag, ... {
///     value of the operation;
///     operand(cotangent; what the derivative reads) { contribution to the operand's gradient }
/// }
/// ```
///
/// `y` among what a derivative reads is the operation's output. Only what is listed there is in scope, so the list cannot lie. An operand is
/// `x as "PyTorch's name" in lo to hi` or `x: mask`; a default that signatures show otherwise is `default 1.0 shown "1"`. The clauses and
/// flags are those of `RowInfo`; all may be left out.
macro_rules! rows {
    ([$(
        $(#[doc = $doc:literal])+
        $kind:ident $Row:ident = $name:literal $rule:ident [$node:ident $(, $node_number:ident $(, $node_first:ident)?)?]
        ($($x:ident $(as $public:literal)? $(in $lo:literal to $hi:literal)? $(: $mask:ident)?),+
            $(; $($p:ident = $sample:literal $(default $default:literal $(shown $shown:literal)?)?),+)?)
        $(also [$($alias:literal),+])? $(kinks [$($kink:literal),+])? $(attributes [$($constant:ident = $value:expr),+])?
        $(hides [$($hidden:literal),+])? $(number_attributes [$($kept:literal),*])? $(, $flag:ident)*
        {
            $f:expr $(; $($of:ident($g:ident $(; $($s:ident),+)?) $v:block)*)?
        }
    )+]) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $Row;

            const _: () = {
                #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
                #[derive(Clone, Copy)]
                enum Slot { $($x,)+ y }
                #[allow(unused_imports)]
                use Constant::{Nothing, Whole, Word};
                #[allow(dead_code)]
                const ARITY: usize = [$(stringify!($x)),+].len();
                const FLAGS: &[&str] = &[$(stringify!($flag)),*];

                #[allow(non_camel_case_types, dead_code)]
                enum Param { $($($p,)+)? __ }

                /// The value that a derivative reads under this name.
                #[allow(dead_code)]
                #[inline(always)]
                fn slot_value<A: Clone>(slot: Slot, x: &[A], y: &A) -> A {
                    if slot as usize == Slot::y as usize { y.clone() } else { x[slot as usize].clone() }
                }

                #[allow(dead_code)]
                const fn bit(slot: Slot) -> u8 {
                    if slot as usize == Slot::y as usize { OUTPUT } else { 1 << slot as u8 }
                }

                /// What the derivative of operand `slot` reads.
                #[allow(unused_variables)]
                const fn saves(slot: Slot) -> Option<u8> {
                    $($(if slot as usize == Slot::$of as usize {
                        return Some(0 $($(| bit(Slot::$s))+)?);
                    })*)?
                    None
                }

                impl Row for $Row {
                    const INFO: RowInfo = RowInfo {
                        name: $name,
                        node_names: [
                            stringify!($node),
                            first!($(stringify!($node_number),)? stringify!($node)),
                            first!($($(stringify!($node_first),)?)? stringify!($node)),
                        ],
                        kind: Kind::$kind,
                        rule: DTypeRule::$rule,
                        operands: &[$(Operand {
                            name: stringify!($x),
                            public: first!($($public,)? public_name(Slot::$x as usize, ARITY)),
                            range: first!($(($lo, $hi),)? (-3.0, 3.0)),
                            mask: first!($(is_mask!($mask),)? false),
                            saves: saves(Slot::$x),
                        }),+],
                        params: &[$($(stringify!($p)),+)?],
                        defaults: &[$($(first!($(Some($default),)? None)),+)?],
                        shown_defaults: &[$($(first!($($(Some($shown),)?)? None)),+)?],
                        sample_params: &[$($($sample),+)?],
                        aliases: &[$($($alias),+)?],
                        kinks: &[$($($kink),+)?],
                        doc: concat!($($doc),+),
                        in_place: !has(FLAGS, "no_in_place"),
                        periodic: has(FLAGS, "periodic"),
                        masks: false $($(|| is_mask!($mask))?)+,
                        divides: has(FLAGS, "divides"),
                        unpromoted: has(FLAGS, "unpromoted"),
                        zero_second: has(FLAGS, "zero_second"),
                        holomorphic: !has(FLAGS, "not_holomorphic"),
                        keyword_params: has(FLAGS, "keyword_params"),
                        bound: !has(FLAGS, "not_bound"),
                        function_only: has(FLAGS, "function_only"),
                        refuses: has(FLAGS, "refuses"),
                        cuts: has(FLAGS, "cuts"),
                        constants: &[$($((stringify!($constant), $value)),+)?],
                        hidden: &[$($($hidden),+)?],
                        attributes_with_number: first!($(Some(&[$($kept),*]),)? None),
                    };
                }

                vjp_of!($kind $Row [$($($p),+)?] [$($([$of $g [$($($s),+)?] $v])*)?]);
                value_of!($kind $Row [$($x),+] [$($($p),+)?] { $f });
            };
        )+

        /// Names a row; dense, so that tables are indexed by it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum RowId { $($Row),+ }

        impl RowId {
            pub const ALL: &'static [RowId] = &[$(RowId::$Row),+];

            #[inline]
            pub const fn info(self) -> &'static RowInfo {
                const INFOS: &[RowInfo] = &[$(<$Row as Row>::INFO),+];
                &INFOS[self as usize]
            }

            /// `Vjp::vjp` of the row of this name, in real numbers.
            pub fn vjp<A: Real>(self, i: usize, g: &A, x: &[A], y: &A, p: &[A]) -> A {
                match self {
                    $(RowId::$Row => <$Row as Vjp<A>>::vjp(i, g, x, y, p),)+
                }
            }
        }

        all_rows_macro! { ($) $([$kind $Row])+ }
    };
}

/// Defines `all_rows!(callback)`, which calls `callback! { [Kind Type] [Kind Type] ... }` with every row in the order of `RowId`.
macro_rules! all_rows_macro {
    (($d:tt) $($rows:tt)+) => {
        macro_rules! all_rows {
            ($d callback:ident) => { $d callback! { $($rows)+ } };
        }
        /// As `all_rows` inside the crate of the kernels, for the crates that build on it.
        #[macro_export]
        macro_rules! every_row {
            ($d callback:ident) => { $d callback! { $($rows)+ } };
        }
        pub(crate) use all_rows;
    };
}

/// The bound of a kind's numbers, and the result.
macro_rules! value_of {
    (Field $($row:tt)+) => { value_of!(@ Field A $($row)+); };
    (Analytic $($row:tt)+) => { value_of!(@ Analytic A $($row)+); };
    (Modulus $($row:tt)+) => { value_of!(@ Field (A::Re) $($row)+); };
    (Phase $($row:tt)+) => { value_of!(@ Analytic (A::Re) $($row)+); };
    (Num $($row:tt)+) => { value_of!(@ Num A $($row)+); };
    (Real $($row:tt)+) => { value_of!(@ Real A $($row)+); };
    (Special $($row:tt)+) => { value_of!(@ Real A $($row)+); };
    (Test $($row:tt)+) => { value_of!(@ Field (A::Cond) $($row)+); };
    (Cmp $($row:tt)+) => { value_of!(@ Num (A::Cond) $($row)+); };
    (Int $($row:tt)+) => { value_of!(@ Int A $($row)+); };
    (@ $Bound:ident $Out:tt $Row:ident [$($x:ident),+] [$($p:ident),*] { $f:expr }) => {
        #[allow(unused_parens)]
        impl<A: $Bound> Eval<A> for $Row {
            type Out = $Out;

            #[inline(always)]
            fn f(x: &[A], p: &[A]) -> $Out {
                let _ = p;
                $(let $x = x[Slot::$x as usize].clone();)+
                $(let $p = p[Param::$p as usize].clone();)*
                $f
            }
        }
    };
}

/// The bound of a kind's derivative, and the type of output and cotangent.
macro_rules! vjp_of {
    (Field $($row:tt)+) => { vjp_of!(@ Analytic A $($row)+); };
    (Analytic $($row:tt)+) => { vjp_of!(@ Analytic A $($row)+); };
    (Modulus $($row:tt)+) => { vjp_of!(@ Analytic (A::Re) $($row)+); };
    (Phase $($row:tt)+) => { vjp_of!(@ Analytic (A::Re) $($row)+); };
    (Num $($row:tt)+) => { vjp_of!(@ Real A $($row)+); };
    (Real $($row:tt)+) => { vjp_of!(@ Real A $($row)+); };
    (Special $($row:tt)+) => { vjp_of!(@ Real A $($row)+); };
    (Test $($row:tt)+) => { vjp_of!(@ Analytic A $($row)+); };
    (Cmp $($row:tt)+) => { vjp_of!(@ Real A $($row)+); };
    (Int $($row:tt)+) => { vjp_of!(@ Real A $($row)+); };
    (@ $Bound:ident $Y:tt $Row:ident $p:tt [$($of:tt)*]) => {
        #[allow(unused_parens)]
        impl<A: $Bound> Vjp<A> for $Row {
            type Y = $Y;

            #[allow(unused_variables, non_snake_case)]
            #[inline(always)]
            fn vjp(i: usize, g: &$Y, x: &[A], y: &$Y, p: &[A]) -> A {
                vjp_of!(params $p p);
                $(vjp_of!(operand $Y $of i g x y);)*
                vjp_of!(lifted $Y g.lit(0.0))
            }
        }
    };
    (params [$($p:ident),*] $all:ident) => {
        $(let $p = $all[Param::$p as usize].clone();)*
    };
    (operand $Y:tt [$of:ident $g:ident [$($s:ident),*] $v:block] $i:ident $cotangent:ident $x:ident $y:ident) => {
        if $i == Slot::$of as usize {
            let $g = vjp_of!(lifted $Y $cotangent.clone());
            $(let $s = slot_value(Slot::$s, $x, vjp_of!(borrowed $Y $y));)*
            return $v;
        }
    };
    // A real output, and its cotangent, are seen as numbers of the operand's type.
    (lifted A $v:expr) => { $v };
    (lifted (A::Re) $v:expr) => { A::of_re($v) };
    (borrowed A $y:ident) => { $y };
    (borrowed (A::Re) $y:ident) => { &A::of_re($y.clone()) };
}

macro_rules! first {
    ($a:expr $(, $b:expr)*) => {
        $a
    };
}

macro_rules! is_mask {
    (mask) => {
        true
    };
}

pub(super) use {all_rows_macro, first, is_mask, rows, value_of, vjp_of};
