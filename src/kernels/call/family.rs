//! What a family of requests says about itself.

use crate::layout::{Category, DType};

/// Shape and dtype of an operand or output. None: an operand that is not read.
pub type Seen<'a> = Option<(&'a [usize], DType)>;

/// How an operand of a request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Every element once, in memory order. The operand may be a deferred program, which computes the elements as they are read.
    InOrder,
    /// Some elements, in any order. The operand may be a deferred program, unless other holders need the results of its steps.
    AtRandom,
    /// More than once, or in the kernel's own order. The operand must be in memory.
    InMemory,
}

/// Where the elements of results come from. Floats of 16 bits are exact where they are moved or selected, and rounded once where they are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// They are elements of operands, wherever those lie, or zeros. No value is looked at.
    Moved,
    /// They are elements of operands, or their positions, chosen by comparing values.
    Selected,
    /// They are new numbers.
    Computed,
}

/// What is special about requests of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// Operands after the first may have invalid values (see `Backend::check`).
    pub const CHECKS: Flags = Flags(1);
    /// Operands have to be checked even if no output has an element.
    pub const CHECKS_NOTHING: Flags = Flags(2);
    /// The first operand's elements may come in any dense order, described by strides.
    pub const ANY_ORDER: Flags = Flags(4);
    /// Backends may run an epilogue after such a request (see `Backend::takes_epilogue`).
    pub const EPILOGUE: Flags = Flags(8);

    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The dtypes for which a request is defined, of its first operand (of the output if there is none), and why it is not for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elems {
    /// A bit for each dtype.
    set: u32,
    /// The end of a sentence.
    pub why_not: &'static str,
}

/// The dtypes of a category.
const fn all_of(category: Category) -> u32 {
    let (mut set, mut k) = (0, 0);
    while k < DType::ALL.len() {
        if DType::ALL[k].category() as u8 == category as u8 {
            set |= 1 << DType::ALL[k] as u32;
        }
        k += 1;
    }
    set
}

const FLOATS: u32 = all_of(Category::Float);
const COMPLEX: u32 = all_of(Category::Complex);

/// The wide unsigned integers, which are converted before anything but products, bits and equality is computed.
const WIDE_UNSIGNED: u32 = {
    let (mut set, mut k) = (0, 0);
    while k < DType::ALL.len() {
        if DType::ALL[k].is_wide_unsigned() {
            set |= 1 << DType::ALL[k] as u32;
        }
        k += 1;
    }
    set
};

impl Elems {
    pub const ALL: Elems = Elems { set: u32::MAX, why_not: "" };
    pub const FLOATS: Elems = Elems { set: FLOATS, why_not: "defined for floating point" };
    /// All but wide unsigned integers.
    pub const COMPUTED: Elems = Elems { set: !WIDE_UNSIGNED, why_not: "converted to int64 first" };
    /// Those that have an order, and bool: all but complex numbers and wide unsigned integers.
    pub const ORDERED: Elems = Elems { set: !(COMPLEX | WIDE_UNSIGNED), why_not: "defined for numbers that have an order" };

    /// As `ORDERED`, but bool.
    pub const fn real_numbers(why_not: &'static str) -> Elems {
        Elems { set: !(COMPLEX | WIDE_UNSIGNED | 1 << DType::Bool as u32), why_not }
    }

    /// Floats and complex numbers if `only`, else as `COMPUTED`.
    pub const fn differentiable_if(only: bool) -> Elems {
        if only { Elems { set: FLOATS | COMPLEX, why_not: "defined for floating point and complex numbers" } } else { Elems::COMPUTED }
    }

    /// As `COMPUTED`, but bool.
    pub const fn numbers(why_not: &'static str) -> Elems {
        Elems { set: !(WIDE_UNSIGNED | 1 << DType::Bool as u32), why_not }
    }

    pub const fn floats_and(other: DType, why_not: &'static str) -> Elems {
        Elems { set: FLOATS | 1 << other as u32, why_not }
    }

    /// These alone.
    pub const fn only(dtypes: &[DType], why_not: &'static str) -> Elems {
        let (mut set, mut k) = (0, 0);
        while k < dtypes.len() {
            set |= 1 << dtypes[k] as u32;
            k += 1;
        }
        Elems { set, why_not }
    }

    #[inline]
    pub const fn floats_if(only: bool) -> Elems {
        if only { Elems::FLOATS } else { Elems::COMPUTED }
    }

    #[inline]
    pub const fn has(self, dtype: DType) -> bool {
        self.set & 1 << dtype as u32 != 0
    }
}

/// A family of requests. It is implemented in the family's own file, and has no default: what is forgotten is an error of the compiler.
pub trait Family {
    /// The operation's name, for messages and diagnostics.
    fn name(&self) -> &'static str;

    fn elems(&self) -> Elems;

    /// What backends ask before they convert operands to a wider dtype.
    fn provenance(&self) -> Provenance;

    /// Whether these operands and outputs are what the family describes. Unsafe kernels rely on this check, which `array` makes before a request
    /// runs.
    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool;

    /// How much is computed: the multiply-adds of products, elsewhere the elements of operands and outputs.
    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64;

    /// How many outputs there are.
    fn outputs(&self) -> usize;

    /// How operand `k` is read. Operands after the first are always read from memory.
    fn reads(&self, k: usize) -> Reads;

    fn flags(&self) -> Flags;

    /// A request for each name under which the support table lists the family. Of pointwise rows there are none here: see `rows`.
    fn samples() -> Vec<Self>
    where
        Self: Sized;
}

/// The elements of all operands and outputs.
pub(super) fn elements(ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
    ins.iter().chain(outs).flatten().fold(0, |n, (shape, _)| n.saturating_add(numel(shape) as u64))
}

pub(super) fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Whether there is such a dimension; 0-d counts as 1-d.
pub(super) fn has_dim(shape: &[usize], dim: usize) -> bool {
    dim < shape.len().max(1)
}

/// The size along a dimension; 0-d counts as 1-d with one element.
pub(super) fn size(shape: &[usize], dim: usize) -> usize {
    shape.get(dim).copied().unwrap_or(1)
}

/// Whether `out` is `shape` with another size along `dim`, or without this dimension where `n` is 1.
pub(super) fn is_with_size(out: &[usize], shape: &[usize], dim: usize, n: usize) -> bool {
    let kept = out.len() == shape.len() && out.iter().zip(shape).enumerate().all(|(d, (o, s))| if d == dim { *o == n } else { o == s });
    let gone = || n == 1 && out.iter().eq(shape.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, s)| s));
    kept || gone()
}

/// Whether values and positions are those of one element along `dim` of `x`, which has one.
pub(super) fn is_one_of_each(x: (&[usize], DType), dim: usize, v: (&[usize], DType), p: &[usize]) -> bool {
    let something = size(x.0, dim) > 0 || numel(v.0) == 0;
    let shapes = is_with_size(v.0, x.0, dim, 1) || x.0.is_empty() && numel(v.0) == 1;
    has_dim(x.0, dim) && something && v.1 == x.1 && v.0 == p && shapes
}
