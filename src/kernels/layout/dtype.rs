//! Element types, Python-like scalars, and PyTorch's type promotion.
//!
//! A dtype is one row of the table below. `DType`, its names and its properties are generated from that table. A match over `DType` names
//! every variant, so after a new row the compiler lists the places that need an arm.

use std::fmt;

/// The kind of numbers of a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    Bool,
    Unsigned,
    Signed,
    Float,
}

/// The types of numbers that kernels compute with. A dtype is one of them as it lies in memory, or is converted to one before and after: a kernel
/// matches a `Number`, never a `DType`, so that a dtype which is computed in another one adds no arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Number {
    Bool,
    U8,
    I32,
    I64,
    F32,
    F64,
}

/// What floating point numbers of a format can be.
#[derive(Debug, Clone, Copy)]
pub struct FloatFormat {
    /// Binary digits of the significand, with the one that is not stored.
    pub digits: u32,
    /// The largest finite number.
    pub largest: f64,
}

/// The categories of PyTorch's promotion: a higher category wins for any sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Bool,
    Integer,
    Float,
}

/// A row of the table of dtypes.
#[derive(Debug, Clone, Copy)]
pub struct DTypeRow {
    /// PyTorch's long name, as in `torch.float32`.
    pub name: &'static str,
    /// PyTorch's other names.
    pub aliases: &'static [&'static str],
    /// PyTorch's name in messages and in the names of tensor types ("Float", "Long").
    pub type_name: &'static str,
    /// The name of the C type in messages about matrices.
    pub c_name: &'static str,
    pub kind: NumberKind,
    /// The format of a floating dtype.
    pub format: Option<FloatFormat>,
    /// Bytes of one element in memory.
    pub size: usize,
    /// The dtype that kernels compute in. If it is another one, elements are converted block by block before and after.
    pub computed: DType,
    /// The dtype of sums and products of many elements. Those of 16 bits are added up in the dtype that they are computed in.
    pub accumulator: DType,
    /// The dtype of absolute values, and of real and imaginary parts.
    pub real: DType,
    /// The dtype of complex numbers with parts of this dtype; None where there is none.
    pub complex: Option<DType>,
}

macro_rules! first {
    ($first:expr, $($rest:expr,)*) => {
        $first
    };
}

/// Makes `DType` of the rows: `Variant: "name" ["alias"] "TypeName" "C name", Kind, type in memory, computed, accumulator, real, complex;`. A
/// float has its digits and its largest number behind the kind.
macro_rules! dtypes {
    ($(
        $(#[$doc:meta])*
        $D:ident: $name:literal [$($alias:literal),*] $type_name:literal $c_name:literal,
        $kind:ident $($digits:literal $largest:expr)?, $raw:ty, $computed:ident, $accumulator:ident, $real:ident, $complex:expr;
    )+) => {
        /// The type of a tensor's elements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DType { $($(#[$doc])* $D),+ }

        impl DType {
            /// Every dtype, in the order of their numbers.
            pub const ALL: [DType; [$(DType::$D),+].len()] = [$(DType::$D),+];

            /// The row of the table.
            #[inline]
            pub const fn row(self) -> &'static DTypeRow {
                const ROWS: &[DTypeRow; DType::COUNT] = &[$(DTypeRow {
                    name: $name,
                    aliases: &[$($alias),*],
                    type_name: $type_name,
                    c_name: $c_name,
                    kind: NumberKind::$kind,
                    format: first!($(Some(FloatFormat { digits: $digits, largest: $largest }),)? None,),
                    size: size_of::<$raw>(),
                    computed: DType::$computed,
                    accumulator: DType::$accumulator,
                    real: DType::$real,
                    complex: $complex,
                }),+];
                &ROWS[self as usize]
            }

            /// Bytes of one element.
            #[inline]
            pub const fn size(self) -> usize {
                match self { $(DType::$D => size_of::<$raw>()),+ }
            }

            #[inline]
            pub const fn kind(self) -> NumberKind {
                match self { $(DType::$D => NumberKind::$kind),+ }
            }

            /// The dtype that kernels compute in.
            #[inline]
            pub const fn computed(self) -> DType {
                match self { $(DType::$D => DType::$computed),+ }
            }

            /// The numbers that kernels compute with.
            #[inline]
            pub const fn number(self) -> Number {
                match self { $(DType::$D => Number::$computed),+ }
            }
        }
    };
}

dtypes! {
    Bool: "bool" [] "Bool" "bool", Bool, u8, Bool, I64, Bool, None;
    U8: "uint8" [] "Byte" "unsigned char", Unsigned, u8, U8, I64, U8, None;
    I8: "int8" [] "Char" "signed char", Signed, i8, I32, I64, I8, None;
    I16: "int16" ["short"] "Short" "short int", Signed, i16, I32, I64, I16, None;
    I32: "int32" ["int"] "Int" "int", Signed, i32, I32, I64, I32, None;
    I64: "int64" ["long"] "Long" "long int", Signed, i64, I64, I64, I64, None;
    F16: "float16" ["half"] "Half" "c10::Half", Float 11 65504.0, u16, F32, F16, F16, None;
    BF16: "bfloat16" [] "BFloat16" "c10::BFloat16", Float 8 255.0 * (1u128 << 120) as f64, u16, F32, BF16, BF16, None;
    F32: "float32" ["float"] "Float" "float", Float 24 f32::MAX as f64, f32, F32, F32, F32, None;
    F64: "float64" ["double"] "Double" "double", Float 53 f64::MAX, f64, F64, F64, F64, None;
}

// The sizes that loops over untyped elements handle (`by_width`). A dtype that kernels compute with is a `Number` of the same name.
const _: () = {
    let mut i = 0;
    while i < DType::COUNT {
        let d = DType::ALL[i];
        assert!(matches!(d.size(), 1 | 2 | 4 | 8));
        assert!(d.number().dtype() as u8 == d.computed() as u8 && d.computed().number() as u8 == d.number() as u8);
        i += 1;
    }
};

impl Number {
    pub const ALL: [Number; 6] = [Number::Bool, Number::U8, Number::I32, Number::I64, Number::F32, Number::F64];

    /// The dtype whose elements are these numbers.
    #[inline]
    pub const fn dtype(self) -> DType {
        match self {
            Number::Bool => DType::Bool,
            Number::U8 => DType::U8,
            Number::I32 => DType::I32,
            Number::I64 => DType::I64,
            Number::F32 => DType::F32,
            Number::F64 => DType::F64,
        }
    }
}

impl DType {
    pub const COUNT: usize = DType::ALL.len();

    /// The dtype whose number is `n`, as `dtype as u8` gives it.
    #[inline]
    pub const fn numbered(n: u8) -> Option<DType> {
        if (n as usize) < DType::COUNT { Some(DType::ALL[n as usize]) } else { None }
    }

    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), NumberKind::Float)
    }

    /// Whether functions of such numbers have derivatives: what may require a gradient, has tangents, and is recorded.
    #[inline]
    pub const fn is_differentiable(self) -> bool {
        match self.kind() {
            NumberKind::Float => true,
            NumberKind::Bool | NumberKind::Unsigned | NumberKind::Signed => false,
        }
    }

    /// Whether kernels compute in a wider dtype: results are cut, or rounded, to this one.
    #[inline]
    pub const fn is_narrow(self) -> bool {
        self.size() < self.computed().size()
    }

    /// Whether it is one of the floating formats of 16 bits, which are computed in float32.
    #[inline]
    pub const fn is_half(self) -> bool {
        self.is_float() && self.size() == 2
    }

    /// Whether the dtype has negative values.
    #[inline]
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), NumberKind::Signed | NumberKind::Float)
    }

    #[inline]
    pub const fn category(self) -> Category {
        match self.kind() {
            NumberKind::Bool => Category::Bool,
            NumberKind::Unsigned | NumberKind::Signed => Category::Integer,
            NumberKind::Float => Category::Float,
        }
    }

    /// The least and the largest integer of an integer dtype, limited to the range of int64; None for other dtypes.
    pub const fn integers(self) -> Option<(i64, i64)> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            NumberKind::Unsigned => Some((0, if bits < 64 { (1 << bits) - 1 } else { i64::MAX })),
            NumberKind::Signed => Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))),
            NumberKind::Bool | NumberKind::Float => None,
        }
    }

    /// Binary digits of a number: all integers up to 2^digits in absolute value are numbers of the dtype (of integers, those below).
    pub const fn digits(self) -> u32 {
        let bits = 8 * self.size() as u32;
        match (self.row().format, self.kind()) {
            (Some(format), _) => format.digits,
            (None, NumberKind::Bool) => 1,
            (None, NumberKind::Signed) => bits - 1,
            (None, NumberKind::Unsigned | NumberKind::Float) => bits,
        }
    }

    /// The largest finite number of a floating dtype; infinity for other dtypes.
    pub const fn largest(self) -> f64 {
        match self.row().format {
            Some(format) => format.largest,
            None => f64::INFINITY,
        }
    }

    /// PyTorch's long name, as in `torch.float32`.
    #[inline]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// PyTorch's name of the type in error messages about dtypes ("Float", "Long").
    #[inline]
    pub const fn type_name(self) -> &'static str {
        self.row().type_name
    }

    /// The common dtype of two tensors of equal rank in promotion (`torch.promote_types`).
    #[inline]
    pub fn promote(self, other: DType) -> DType {
        static PROMOTED: [[DType; DType::COUNT]; DType::COUNT] = promotions();
        PROMOTED[self as usize][other as usize]
    }

    /// Whether an in-place result of dtype `self` may be written into `to` (`torch.can_cast`).
    #[inline]
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }
}

const fn promotions() -> [[DType; DType::COUNT]; DType::COUNT] {
    let mut all = [[DType::Bool; DType::COUNT]; DType::COUNT];
    let mut i = 0;
    while i < DType::COUNT {
        let mut j = 0;
        while j < DType::COUNT {
            all[i][j] = promoted(DType::ALL[i], DType::ALL[j]);
            j += 1;
        }
        i += 1;
    }
    all
}

/// PyTorch's rule. The higher category wins; of one kind the wider dtype. An unsigned integer and a signed one that is not wider, and two
/// formats of one kind and size, give the narrowest dtype that holds both.
const fn promoted(a: DType, b: DType) -> DType {
    if a as u8 == b as u8 {
        return a;
    }
    let (x, y) = (a.category() as u8, b.category() as u8);
    if x != y {
        return if x > y { a } else { b };
    }
    let (wide, narrow) = if a.size() >= b.size() { (a, b) } else { (b, a) };
    let equal = wide.size() == narrow.size();
    match (wide.kind(), narrow.kind()) {
        (NumberKind::Signed, NumberKind::Unsigned) | (NumberKind::Unsigned, NumberKind::Signed) => {
            if matches!(wide.kind(), NumberKind::Signed) && !equal { wide } else { wider(NumberKind::Signed, wide) }
        }
        (kind, _) => {
            if equal {
                wider(kind, wide)
            } else {
                wide
            }
        }
    }
}

/// The narrowest dtype of a kind that is wider than `than`.
const fn wider(kind: NumberKind, than: DType) -> DType {
    let mut best: Option<DType> = None;
    let mut i = 0;
    while i < DType::COUNT {
        let d = DType::ALL[i];
        let found = d.kind() as u8 == kind as u8 && d.size() > than.size();
        if found && (best.is_none() || matches!(best, Some(b) if d.size() < b.size())) {
            best = Some(d);
        }
        i += 1;
    }
    // The table is computed at compile time: dtypes without a common dtype are a compile error here.
    best.expect("a wider dtype")
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Python number, such as `2`, `2.5` or `True`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
        }
    }

    /// The value as an integer; floats are truncated towards zero, as a C cast does where that is defined.
    #[inline]
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
        }
    }

    /// As `to_i64`, but nan and what is out of range become the least integer, as in x86's conversion.
    #[inline]
    pub fn truncated(self) -> i64 {
        match self {
            Scalar::Float(f) if f.is_nan() || f >= 9_223_372_036_854_775_808.0 => i64::MIN,
            v => v.to_i64(),
        }
    }

    #[inline]
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
        }
    }

    /// Whether the number can be converted to an integer dtype: not nan, infinities and numbers beyond 64 bits.
    #[inline]
    pub fn has_value_in(self, dtype: DType) -> bool {
        match self {
            Scalar::Float(v) => dtype.category() != Category::Integer || v.abs() < 9_223_372_036_854_775_808.0,
            _ => true,
        }
    }

    /// Whether PyTorch takes this number for a parameter, or a value, of `dtype`. An unsigned type also takes the negatives of its numbers, which
    /// wrap around.
    pub fn fits(self, dtype: DType) -> bool {
        let Some((low, high)) = dtype.integers() else { return true };
        match self {
            Scalar::Bool(_) => true,
            Scalar::Int(i) => (if low == 0 { -high } else { low }..=high).contains(&i),
            Scalar::Float(f) => f >= low as f64 && f <= high as f64 && self.has_value_in(dtype),
        }
    }

    #[inline]
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) => Category::Integer,
            Scalar::Float(_) => Category::Float,
        }
    }

    /// The dtype of a tensor made from this scalar, given the default float dtype.
    #[inline]
    pub fn dtype(self, default_float: DType) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => default_float,
        }
    }
}

impl From<f64> for Scalar {
    fn from(v: f64) -> Self {
        Scalar::Float(v)
    }
}

impl From<i64> for Scalar {
    fn from(v: i64) -> Self {
        Scalar::Int(v)
    }
}

impl From<bool> for Scalar {
    fn from(v: bool) -> Self {
        Scalar::Bool(v)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{}", if *b { "True" } else { "False" }),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(v) => write!(f, "{v}"),
        }
    }
}

/// The rank of an operand in promotion: operands of a lower rank count only if their category is higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromotionRank {
    /// A Python number, or a 0-d tensor made of one.
    Number,
    /// A 0-d tensor.
    ZeroDim,
    /// A tensor with dimensions.
    Dims,
}

/// PyTorch's result type of several operands (`torch.result_type` for more than two).
pub fn result_type(operands: impl IntoIterator<Item = (DType, PromotionRank)>) -> Option<DType> {
    let mut best: [Option<DType>; 3] = [None; 3];
    for (d, r) in operands {
        let slot = &mut best[r as usize];
        *slot = Some(slot.map_or(d, |b| b.promote(d)));
    }
    let mut out: Option<DType> = None;
    for slot in [best[2], best[1], best[0]] {
        out = match (out, slot) {
            (None, s) => s,
            (o, None) => o,
            (Some(o), Some(s)) if s.category() > o.category() => Some(o.promote(s)),
            (o, _) => o,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{BF16, F16};

    #[test]
    fn rows_are_numbered_in_order_and_named_once() {
        let mut names = std::collections::HashSet::new();
        for (i, d) in DType::ALL.into_iter().enumerate() {
            assert_eq!((d as usize, DType::numbered(i as u8)), (i, Some(d)));
            assert!(std::iter::once(&d.name()).chain(d.row().aliases).all(|n| names.insert(*n)), "{d} has another's name");
            assert!(d.row().complex.is_none_or(|c| c.row().real == d), "{d}");
            assert_eq!((d.row().size, d.row().kind, d.row().computed), (d.size(), d.kind(), d.computed()));
            // A dtype that is computed in another one has its category, and all its values are values of that one.
            assert!(d.computed().category() == d.category() && d.promote(d.computed()) == d.computed());
            assert!(d.digits() <= d.computed().digits() && d.row().format.is_some() == d.is_float(), "{d}");
        }
        assert_eq!(DType::numbered(DType::COUNT as u8), None);
        assert_eq!((DType::U8.integers(), DType::I8.integers()), (Some((0, 255)), Some((-128, 127))));
        assert_eq!([DType::Bool, DType::U8, DType::I8, DType::I64, DType::BF16].map(DType::digits), [1, 8, 7, 63, 8]);
        let largest = [DType::F16, DType::BF16, DType::F32].map(DType::largest);
        assert_eq!(largest, [f64::from(F16(0x7bff).to_f32()), f64::from(BF16(0x7f7f).to_f32()), f64::from(f32::MAX)]);
        assert_eq!((DType::I64.integers(), DType::Bool.integers(), DType::F32.integers()), (Some((i64::MIN, i64::MAX)), None, None));
    }

    #[test]
    fn promotion_is_commutative_and_associative() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                for c in DType::ALL {
                    assert_eq!(a.promote(b).promote(c), a.promote(b.promote(c)));
                }
            }
        }
    }

    #[test]
    fn an_unsigned_and_a_signed_integer_meet_in_a_signed_one_that_holds_both() {
        use DType::*;
        assert_eq!([U8.promote(I8), U8.promote(I16), U8.promote(I32)], [I16, I16, I32]);
        assert_eq!(result_type([(Bool, PromotionRank::Dims), (I8, PromotionRank::ZeroDim), (U8, PromotionRank::ZeroDim)]), Some(I16));
    }

    #[test]
    fn lower_ranks_decide_only_by_category() {
        use DType::*;
        assert_eq!(result_type([(F32, PromotionRank::Dims), (F64, PromotionRank::ZeroDim)]), Some(F32));
        assert_eq!(result_type([(I32, PromotionRank::Dims), (I64, PromotionRank::Number)]), Some(I32));
        assert_eq!(result_type([(I32, PromotionRank::Dims), (F64, PromotionRank::ZeroDim)]), Some(F64));
        assert_eq!(result_type([(Bool, PromotionRank::Dims), (I64, PromotionRank::Number)]), Some(I64));
        assert_eq!(result_type([(F32, PromotionRank::ZeroDim), (F64, PromotionRank::Number)]), Some(F32));
        assert_eq!(result_type([(F16, PromotionRank::Dims), (F64, PromotionRank::Number)]), Some(F16));
        assert_eq!([F16.promote(BF16), F16.promote(F32), BF16.promote(I64)], [F32, F32, BF16]);
        assert_eq!(result_type([]), None);
    }
}
