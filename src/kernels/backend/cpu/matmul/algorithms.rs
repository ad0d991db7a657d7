//! The algorithms of matrix products, in the order in which they are tried. Which products add a bias or run an epilogue is read from the same
//! lists.

#[cfg(target_arch = "x86_64")]
use super::gemm_skinny::{self, SkinnyForm};
use super::{Bias, Factor, FloatProduct, Mat, direct, packed, vector};
use crate::backend::cpu::algorithms::{Asked, Why, algorithms, needs};
use crate::simd::{InstructionSet, instruction_set};

// Thresholds between algorithms, with the machine and what was measured beside each where that is known. `./run tune` measures around them.

/// `matmul.small`: multiply-adds below which `gemm`'s set-up costs more than the product.
const DIRECT: usize = 512;
/// `matmul.small`: columns of the result whose sums the plain loop keeps in registers.
pub(super) const DIRECT_COLUMNS: usize = 16;

/// `matmul.skinny`: the most rows that count as few for a matrix that is dense along k. More rows pay for packing it (`packed`).
#[cfg(target_arch = "x86_64")]
pub(super) const FEW_ALONG: usize = 63;
/// As `FEW_ALONG`, where `gemm` could take the matrix as it lies.
#[cfg(target_arch = "x86_64")]
pub(super) const FEW_ACROSS: usize = 32;

/// `matmul.packed`: multiply-adds, and rows with AVX2 and with AVX-512, from which on this is faster than the crate `gemm`, which need not pack where
/// there is so little to do. It has been measured on x86-64 with AVX2 (two Zen 3 cores: products of 256 to 2048 at 155 to 160 GFLOP/s in place of 106
/// to 120) and with AVX-512; other machines use `gemm`.
const WORTH: (usize, [usize; 2]) = (1 << 18, [32, 96]);
/// As `WORTH`, where the right operand is dense along k, as the weight of `linear` is: `gemm` packs that slowly.
const WORTH_ALONG: (usize, [usize; 2]) = (1 << 12, [4, 4]);

/// No machine but x86-64 has products of few rows.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) type SkinnyForm = std::convert::Infallible;

/// A product: `a` (m x k) times `b` (k x n). Where it is planned, the elements are not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<T> {
    pub sizes: (usize, usize, usize),
    pub factors: [Mat<T>; 2],
}

algorithms! {
    /// Products of floats.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum FloatPlan[] for Product<T> where [T: FloatProduct] {
        /// A plain loop.
        Small(()) = "matmul.small", small;
        /// A matrix and a vector, on the side that it says.
        Vector(VectorSide) = "matmul.vector", one_vector;
        /// Few rows, or few columns, without packing.
        Skinny(SkinnyForm) = "matmul.skinny", skinny;
        /// Both operands are packed. It runs epilogues.
        Packed(()) = "matmul.packed", pack;
        /// The crate `gemm`, tile by tile.
        Gemm(()) = "matmul.gemm", gemm;
    }
}

algorithms! {
    /// Products of floats of 16 bits; others are converted.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum HalfPlan[] for Product<T> where [T] {
        /// Operands are widened while they are packed.
        Packed(()) = "matmul.packed", pack;
    }
}

/// Of integers.
pub(in crate::backend::cpu) const PLAIN: &str = "matmul.plain";

/// Which factor is a vector.
#[derive(Debug, Clone, Copy)]
pub(crate) enum VectorSide {
    Left,
    Right,
}

#[inline(always)]
fn small<T>(p: &Product<T>, asked: Asked) -> Result<(), Why> {
    let (m, n, k) = p.sizes;
    asked.gains(m * n * k <= DIRECT, "there is much to multiply")?;
    needs(n <= DIRECT_COLUMNS, "there are more columns than registers")
}

#[inline(always)]
fn one_vector<T>(p: &Product<T>, _asked: Asked) -> Result<VectorSide, Why> {
    match p.sizes {
        (_, 1, _) => Ok(VectorSide::Right),
        (1, ..) => Ok(VectorSide::Left),
        _ => Err("both are matrices"),
    }
}

#[cfg(target_arch = "x86_64")]
fn skinny<T: FloatProduct>(p: &Product<T>, asked: Asked) -> Result<SkinnyForm, Why> {
    gemm_skinny::form(p, asked)
}

#[cfg(not(target_arch = "x86_64"))]
fn skinny<T: FloatProduct>(_p: &Product<T>, _asked: Asked) -> Result<SkinnyForm, Why> {
    Err("it is written for AVX-512")
}

fn pack<T>(p: &Product<T>, asked: Asked) -> Result<(), Why> {
    let (m, n, k) = p.sizes;
    needs(m > 0 && n > 0 && k > 0, "nothing is multiplied")?;
    let (work, [avx2, avx512]) = if p.factors[1].rs == 1 && p.factors[1].cs != 1 { WORTH_ALONG } else { WORTH };
    let rows = match instruction_set() {
        InstructionSet::Base => return Err("it is written for AVX2 and AVX-512"),
        InstructionSet::Avx2 => avx2,
        InstructionSet::Avx512 => avx512,
    };
    let is_worth = m >= rows && m.saturating_mul(n).saturating_mul(k) >= work;
    asked.gains(m > 1 && n > 1 && is_worth, "there are few rows, or there is little to multiply")
}

fn gemm<T>(_p: &Product<T>, _asked: Asked) -> Result<(), Why> {
    Ok(())
}

impl FloatPlan {
    /// Whether a number for each column is added while results are written.
    pub fn adds_bias(self) -> bool {
        matches!(self, FloatPlan::Skinny(_) | FloatPlan::Packed(()))
    }

    /// What computes a product with a bias.
    pub fn with_bias<T: FloatProduct>(p: &Product<T>) -> Option<FloatPlan> {
        // One that was asked for by name may be asked for no longer: then it is any other.
        let others = ["matmul.packed", "matmul.skinny"];
        let any = || others.into_iter().find_map(|name| FloatPlan::named(p, name).ok());
        FloatPlan::of(p).filter(|plan| plan.adds_bias()).or_else(any)
    }

    /// `out`, row-major with rows of `n`, is overwritten by the product, plus the bias where `adds_bias` holds.
    ///
    /// # Safety
    /// The plan is one of a product with the same sizes and strides. The factors are readable, `out` is writable and overlaps neither; there is a
    /// number of the bias for each column.
    #[inline(always)]
    pub(in crate::backend::cpu) unsafe fn run<T: FloatProduct>(self, p: &Product<T>, bias: Bias<T>, out: *mut T, parallel: bool) {
        let ((m, n, k), [a, b]) = (p.sizes, p.factors);
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match self {
                FloatPlan::Small(()) => direct(m, n, k, a, b, out),
                FloatPlan::Vector(VectorSide::Right) => vector(m, k, a, b.ptr, b.rs, out, parallel),
                FloatPlan::Vector(VectorSide::Left) => vector(n, k, b.t(), a.ptr, a.cs, out, parallel),
                #[cfg(target_arch = "x86_64")]
                FloatPlan::Skinny(form) => gemm_skinny::product(form, p.sizes, [a, b], bias, out, parallel),
                #[cfg(not(target_arch = "x86_64"))]
                FloatPlan::Skinny(never) => match never {},
                FloatPlan::Packed(()) => {
                    packed::product(instruction_set(), p.sizes, [a, b].map(Factor::Numbers), (bias, None), out, parallel);
                }
                FloatPlan::Gemm(()) => T::gemm(m, n, k, a, b, out, parallel),
            }
        }
    }
}

/// Whether the product may be packed, whatever is faster: what waits with an epilogue was packed when that was asked.
pub(super) fn can_pack<T>(p: &Product<T>) -> bool {
    pack(p, Asked::ByName).is_ok()
}
