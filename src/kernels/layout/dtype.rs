//! Element types and PyTorch's type promotion.
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
    Complex,
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
    C64,
    C128,
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
    Complex,
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
    /// The dtype of complex numbers whose parts hold numbers of this dtype; None where there is none.
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
    F16: "float16" ["half"] "Half" "c10::Half", Float 11 65504.0, u16, F32, F16, F16, Some(DType::C32);
    BF16: "bfloat16" [] "BFloat16" "c10::BFloat16", Float 8 255.0 * (1u128 << 120) as f64, u16, F32, BF16, BF16, Some(DType::C64);
    F32: "float32" ["float"] "Float" "float", Float 24 f32::MAX as f64, f32, F32, F32, F32, Some(DType::C64);
    F64: "float64" ["double"] "Double" "double", Float 53 f64::MAX, f64, F64, F64, F64, Some(DType::C128);
    C32: "complex32" ["chalf"] "ComplexHalf" "c10::complex<c10::Half>", Complex, [u16; 2], C64, C32, F16, Some(DType::C32);
    C64: "complex64" ["cfloat"] "ComplexFloat" "c10::complex<float>", Complex, [f32; 2], C64, C64, F32, Some(DType::C64);
    C128: "complex128" ["cdouble"] "ComplexDouble" "c10::complex<double>", Complex, [f64; 2], C128, C128, F64, Some(DType::C128);
    U16: "uint16" [] "UInt16" "unsigned short", Unsigned, u16, I32, I64, U16, None;
    U32: "uint32" [] "UInt32" "unsigned int", Unsigned, u32, I64, I64, U32, None;
    /// Computed in int64: what is left to it (products, bits, equality) gives the same bits there.
    U64: "uint64" [] "UInt64" "unsigned long", Unsigned, u64, I64, I64, U64, None;
}

// The sizes that loops over untyped elements handle (`by_width`). A dtype that kernels compute with is a `Number` of the same name.
const _: () = {
    let mut i = 0;
    while i < DType::COUNT {
        let d = DType::ALL[i];
        assert!(matches!(d.size(), 1 | 2 | 4 | 8 | 16));
        assert!(d.number().dtype() as u8 == d.computed() as u8 && d.computed().number() as u8 == d.number() as u8);
        i += 1;
    }
};

impl Number {
    pub const ALL: [Number; 8] = [Number::Bool, Number::U8, Number::I32, Number::I64, Number::F32, Number::F64, Number::C64, Number::C128];

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
            Number::C64 => DType::C64,
            Number::C128 => DType::C128,
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

    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), NumberKind::Complex)
    }

    /// Whether it is one of the unsigned integers that PyTorch stores, converts and compares for equality, and computes little else with. They
    /// have no common dtype with other integers.
    #[inline]
    pub const fn is_wide_unsigned(self) -> bool {
        matches!(self.kind(), NumberKind::Unsigned) && self.size() > 1
    }

    /// Whether functions of such numbers have derivatives: what may require a gradient, has tangents, and is recorded.
    #[inline]
    pub const fn is_differentiable(self) -> bool {
        match self.kind() {
            NumberKind::Float | NumberKind::Complex => true,
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
        matches!(self.kind(), NumberKind::Signed | NumberKind::Float | NumberKind::Complex)
    }

    #[inline]
    pub const fn category(self) -> Category {
        match self.kind() {
            NumberKind::Bool => Category::Bool,
            NumberKind::Unsigned | NumberKind::Signed => Category::Integer,
            NumberKind::Float => Category::Float,
            NumberKind::Complex => Category::Complex,
        }
    }

    /// The dtype of complex numbers whose parts hold numbers of this dtype. Integers have none of their own: they get that of `default_float`.
    #[inline]
    pub const fn to_complex(self, default_float: DType) -> DType {
        match self.row().complex {
            Some(dtype) => dtype,
            None => match default_float.row().complex {
                Some(dtype) => dtype,
                None => DType::C64,
            },
        }
    }

    /// The least and the largest integer of an integer dtype, limited to the range of int64; None for other dtypes.
    pub const fn integers(self) -> Option<(i64, i64)> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            NumberKind::Unsigned => Some((0, if bits < 64 { (1 << bits) - 1 } else { i64::MAX })),
            NumberKind::Signed => Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))),
            NumberKind::Bool | NumberKind::Float | NumberKind::Complex => None,
        }
    }

    /// Binary digits of a number: all integers up to 2^digits in absolute value are numbers of the dtype (of integers, those below).
    pub const fn digits(self) -> u32 {
        let bits = 8 * self.size() as u32;
        match (self.row().format, self.kind()) {
            (Some(format), _) => format.digits,
            (None, NumberKind::Bool) => 1,
            (None, NumberKind::Signed) => bits - 1,
            (None, NumberKind::Complex) => self.row().real.digits(),
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

    /// The common dtype of two tensors of equal rank in promotion (`torch.promote_types`). Of two that have none the narrowest signed dtype, or
    /// int64: see `has_common`.
    #[inline]
    pub fn promote(self, other: DType) -> DType {
        static PROMOTED: [[DType; DType::COUNT]; DType::COUNT] = promotions();
        PROMOTED[self as usize][other as usize]
    }

    /// Whether PyTorch promotes the pair: wide unsigned integers have a common dtype with floats alone.
    #[inline]
    pub const fn has_common(self, other: DType) -> bool {
        let wide = self.is_wide_unsigned() || other.is_wide_unsigned();
        !wide || self.is_float() || other.is_float() || self as u8 == other as u8
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

/// PyTorch's rule. The higher category wins; a complex dtype beside a real float is widened to hold its digits; of one kind the wider dtype. An unsigned integer and a signed one that is not wider, and two
/// formats of one kind and size, give the narrowest dtype that holds both.
const fn promoted(a: DType, b: DType) -> DType {
    if a as u8 == b as u8 {
        return a;
    }
    let (x, y) = (a.category() as u8, b.category() as u8);
    if x != y {
        let (high, low) = if x > y { (a, b) } else { (b, a) };
        return match low.row().complex {
            Some(complex) if high.is_complex() => promoted(high, complex),
            _ => high,
        };
    }
    let (wide, narrow) = if a.size() >= b.size() { (a, b) } else { (b, a) };
    let equal = wide.size() == narrow.size();
    if wide.size() == 8 && !matches!((wide.kind(), narrow.kind()), (NumberKind::Float, _) | (NumberKind::Complex, _)) {
        return DType::I64;
    }
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

/// The rank of an operand in promotion: operands of a lower rank count only if their category is higher. A complex one beside a float makes the
/// complex dtype of that float.
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
            (Some(o), Some(s)) if s.is_complex() && o.is_float() => o.row().complex,
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
            assert!(d.row().complex.is_none_or(|c| c.is_complex() && c.row().real.digits() >= d.digits()), "{d}");
            assert_eq!(d.is_complex(), d.row().complex == Some(d), "{d}");
            assert_eq!((d.row().size, d.row().kind, d.row().computed), (d.size(), d.kind(), d.computed()));
            // A dtype that is computed in another one has its category, and all its values are values of that one.
            assert!(d.computed().category() == d.category() && d.promote(d.computed()) == d.computed());
            assert!((d == DType::U64 || d.digits() <= d.computed().digits()) && d.row().format.is_some() == d.is_float(), "{d}");
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
