//! Element types, Python-like scalars, and PyTorch's promotion among them.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool,
    U8,
    I32,
    I64,
    F32,
    F64,
}

/// The ladder of PyTorch's promotion: a higher category wins whatever the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Bool,
    Integer,
    Float,
}

impl DType {
    pub const ALL: [DType; 6] = [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F32, DType::F64];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    #[inline]
    pub const fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8 | DType::I32 | DType::I64 => Category::Integer,
            DType::F32 | DType::F64 => Category::Float,
        }
    }

    /// PyTorch's long name, as in `torch.float32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// PyTorch's name of the type in error messages about dtypes ("Float", "Long").
    pub const fn type_name(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::U8 => "Byte",
            DType::I32 => "Int",
            DType::I64 => "Long",
            DType::F32 => "Float",
            DType::F64 => "Double",
        }
    }

    /// The common dtype of two tensors of equal standing (`torch.promote_types`).
    #[inline]
    pub fn promote(self, other: DType) -> DType {
        // The variants are ordered so that the larger one always wins: there is no pair of equal category
        // (u8 with a signed byte, say) whose result is a third type.
        self.max(other)
    }

    /// Whether an in-place result of dtype `self` may be written into `to` (`torch.can_cast`).
    #[inline]
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number as Python has it: what `2`, `2.5` and `True` are before they meet a tensor.
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

    #[inline]
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
        }
    }

    /// Whether an integer dtype has a value for this number at all: nan, infinities and what exceeds 64 bits have none.
    #[inline]
    pub fn has_value_in(self, dtype: DType) -> bool {
        match self {
            Scalar::Float(v) => dtype.category() != Category::Integer || v.abs() < 9_223_372_036_854_775_808.0,
            _ => true,
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

    /// The dtype that a tensor made of this scalar alone has, given the default float dtype.
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

/// How much say an operand has in promotion: operands of a lower rank only decide when their category is higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A Python number, or a 0-d tensor made of one.
    Number,
    /// A 0-d tensor.
    ZeroDim,
    /// A tensor with dimensions.
    Dims,
}

/// PyTorch's result type of several operands (`torch.result_type` for more than two).
pub fn result_type(operands: impl IntoIterator<Item = (DType, Rank)>) -> Option<DType> {
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
    fn lower_ranks_decide_only_by_category() {
        use DType::*;
        assert_eq!(result_type([(F32, Rank::Dims), (F64, Rank::ZeroDim)]), Some(F32));
        assert_eq!(result_type([(I32, Rank::Dims), (I64, Rank::Number)]), Some(I32));
        assert_eq!(result_type([(I32, Rank::Dims), (F64, Rank::ZeroDim)]), Some(F64));
        assert_eq!(result_type([(Bool, Rank::Dims), (I64, Rank::Number)]), Some(I64));
        assert_eq!(result_type([(F32, Rank::ZeroDim), (F64, Rank::Number)]), Some(F32));
        assert_eq!(result_type([]), None);
    }
}
