//! The arguments of the kernels, from the operands of a request.
//!
//! Not here: which products wait for steps (`array/deferred/source.rs`).

use crate::backend::contract::{Operand, Program, View};
use crate::backend::cpu::algorithms::runs;
use crate::backend::cpu::common::cast::convert_fn;
use crate::backend::cpu::common::epilogue::Epilogue;
use crate::backend::cpu::common::operands::{DenseOperand, malformed, output, runner, view};
use crate::backend::cpu::common::widened;
use crate::backend::cpu::elem::{Loops, float, is_widened, loops};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::matmul;
use crate::backend::cpu::matmul::algorithms::{self, FloatPlan, HalfPlan, Product};
use crate::backend::cpu::matmul::packed::{Bias, Factor};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::matmul::{FloatProduct, packed};
use crate::call::{Matmul, Request};
use crate::error::{Error, Result};
use crate::host::memory::alloc::Buffer;
use crate::host::threads::SharedPointer;
use crate::layout::{Complex32, Complex64, DType};
use crate::simd::instruction_set;
use std::sync::atomic::Ordering;

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

/// Products of matrices. A product of two has a bias only where `adds_bias` says so; packed ones may have a program as their epilogue.
pub(in crate::backend::cpu) unsafe fn compute(ins: &[Operand<'_>], out: View<'_>, program: Option<&Program<'_>>) -> Result<()> {
    let (a, b) = (view("matmul", ins, 0)?, view("matmul", ins, 1)?);
    let Some(lead) = out.shape.len().checked_sub(2) else { return Err(malformed("matmul")) };
    let batch = &out.shape[..lead];
    let (m, n, k) = (out.shape[lead], out.shape[lead + 1], a.shape[lead + 1]);
    let offsets = |mut i: usize| {
        let (mut p, mut q) = (0, 0);
        for d in (0..lead).rev() {
            let at = (i % batch[d]) as isize;
            i /= batch[d];
            p += at * a.strides[d];
            q += at * b.strides[d];
        }
        (p, q)
    };
    let count = batch.iter().product();
    if is_widened(a.dtype) && program.is_none() && !is_packed([a, b]) {
        // SAFETY: the caller's.
        return unsafe { widened::run(&Request::Matmul(Matmul), ins, &[Some(out)]) };
    }
    let bias = if ins.len() > 2 { Some(view("matmul", ins, 2)?) } else { None };
    if program.is_some() || a.dtype.is_half() {
        // SAFETY: the caller's.
        return unsafe { PackedGemm { batches: (count, &offsets), sizes: (m, n, k), operands: [a, b], bias, out }.run(program) };
    }
    if let Some(bias) = bias {
        // SAFETY: the caller's; floats of 16 bits are computed above.
        return unsafe { float!(a.dtype, T => biased_gemm::<T>([a, b], bias, out)) };
    }
    macro_rules! run {
        ($T:ty) => {{
            let [a, b] = factors([a, b]);
            // SAFETY: see above.
            unsafe { matmul::batched::<$T>(count, (m, n, k), a, b, out.ptr().cast(), offsets) }
        }};
    }
    match loops(a.dtype) {
        Some(Loops::F32) => run!(f32),
        Some(Loops::F64) => run!(f64),
        Some(Loops::I64) => run!(i64),
        Some(Loops::I32) => run!(i32),
        Some(Loops::I16) => run!(i16),
        Some(Loops::U8) if a.dtype == DType::Bool => return Err(Error::not_implemented("matmul: not implemented for bool on cpu")),
        // Bytes wrap around in the same way, signed or not.
        Some(Loops::U8 | Loops::I8) => run!(u8),
        Some(Loops::C64) => run!(Complex32),
        Some(Loops::C128) => run!(Complex64),
        // Computed above, or before.
        None => return Err(malformed("matmul")),
    }
    Ok(())
}

/// The left and the right operand, of the first product if there are several.
fn factors<T>(ab: [View<'_>; 2]) -> [matmul::Mat<T>; 2] {
    ab.map(|v| {
        let [.., rs, cs] = v.strides else { panic!("a matrix has two strides") };
        matmul::Mat { ptr: v.ptr().cast_const().cast(), rs: *rs, cs: *cs }
    })
}

/// The product of these operands, the first one if there are several.
fn product<T>(ab: [View<'_>; 2]) -> Option<Product<T>> {
    let ([.., m, k], [.., n]) = (ab[0].shape, ab[1].shape) else { return None };
    Some(Product { sizes: (*m, *n, *k), factors: factors(ab) })
}

/// Whether products of these operands are packed: then they take an epilogue, and a product of two matrices takes a bias.
pub(in crate::backend::cpu) fn is_packed(ab: [View<'_>; 2]) -> bool {
    let packs = |plan: Option<FloatPlan>| matches!(plan, Some(FloatPlan::Packed(())));
    match ab[0].dtype {
        DType::F32 => product::<f32>(ab).is_some_and(|p| packs(FloatPlan::of(&p))),
        DType::F64 => product::<f64>(ab).is_some_and(|p| packs(FloatPlan::of(&p))),
        DType::F16 | DType::BF16 => product::<u16>(ab).is_some_and(|p| HalfPlan::of(&p).is_some()),
        _ => false,
    }
}

/// Whether the product of two matrices takes a bias.
pub(in crate::backend::cpu) fn adds_bias(ab: [View<'_>; 2]) -> bool {
    if ab[0].shape.len() != 2 {
        return false;
    }
    let adds = |plan: Option<FloatPlan>| plan.is_some_and(FloatPlan::adds_bias);
    match ab[0].dtype {
        DType::F32 => product::<f32>(ab).is_some_and(|p| adds(FloatPlan::of(&p))),
        DType::F64 => product::<f64>(ab).is_some_and(|p| adds(FloatPlan::of(&p))),
        _ => is_packed(ab),
    }
}

/// # Safety
/// As for `gemm`.
unsafe fn biased_gemm<T: FloatProduct>(ab: [View<'_>; 2], bias: View<'_>, out: View<'_>) -> Result<()> {
    let planned = product::<T>(ab).and_then(|p| Some((FloatPlan::with_bias(&p)?, p)));
    let Some((plan, p)) = planned.filter(|_| bias.strides == [1]) else { return Err(malformed("matmul")) };
    runs(plan.name());
    // SAFETY: the caller's.
    unsafe { plan.run(&p, Bias::Columns(bias.ptr().cast_const().cast()), out.ptr().cast(), true) };
    Ok(())
}

/// Products that are packed.
#[derive(Clone, Copy)]
struct PackedGemm<'a> {
    /// How many, and where the operands of each begin, in elements.
    batches: (usize, &'a (dyn Fn(usize) -> (isize, isize) + Sync)),
    sizes: (usize, usize, usize),
    operands: [View<'a>; 2],
    /// One number for each column; of a single product.
    bias: Option<View<'a>>,
    out: View<'a>,
}

impl PackedGemm<'_> {
    /// The products, with the steps that follow.
    ///
    /// # Safety
    /// As for `gemm`.
    unsafe fn run(&self, program: Option<&Program<'_>>) -> Result<()> {
        let can_pack = self.out.dtype.is_float() && product::<u16>(self.operands).is_some_and(|p| algorithms::can_pack(&p));
        if !can_pack || self.bias.is_some_and(|b| b.strides != [1]) {
            return Err(malformed("matmul"));
        }
        runs(HalfPlan::NAMES[0]);
        // SAFETY: the caller's.
        unsafe {
            let runner = program.map(|p| runner(p)).transpose()?;
            let steps = runner.as_ref().map(|r| |start: usize, len: usize| r.range(start, len, None));
            let steps = steps.as_ref().map(|s| s as Epilogue<'_>);
            match self.out.dtype {
                DType::F32 => self.of_numbers::<f32>(steps),
                DType::F64 => self.of_numbers::<f64>(steps),
                _ => self.of_halves(steps)?,
            }
        }
        if let Some(program) = program {
            program.is_written.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// # Safety
    /// As for `gemm`.
    unsafe fn of_numbers<T: CoreNumber>(&self, steps: Option<Epilogue<'_>>) {
        let bias = self.bias.map_or(Bias::None, |b| Bias::Columns(b.ptr().cast_const().cast()));
        let factors = factors(self.operands).map(Factor::Numbers);
        // SAFETY: the caller's.
        unsafe { self.products::<T>(factors, bias, steps, self.out.ptr().cast()) };
    }

    /// # Safety
    /// As for `gemm`; the factors are those of the first product.
    unsafe fn products<T: CoreNumber>(&self, [a, b]: [Factor<T>; 2], bias: Bias<T>, epilogue: Option<Epilogue<'_>>, out: *mut T) {
        let (count, offsets) = self.batches;
        let operands = |i: usize| {
            let (p, q) = offsets(i);
            ([a.moved(p), b.moved(q)], bias)
        };
        // SAFETY: the caller's.
        unsafe { packed::products::<T>(instruction_set(), count, self.sizes, operands, epilogue, out) };
    }

    /// Of floats of 16 bits: operands are widened while they are packed, and each part of the result is rounded as soon as it is there. Then come the
    /// steps that follow.
    ///
    /// # Safety
    /// As for `gemm`.
    unsafe fn of_halves(&self, steps: Option<Epilogue<'_>>) -> Result<()> {
        let (narrow, wide) = (self.out.dtype, self.out.dtype.computed());
        let sums = Buffer::new(self.out.numel() * wide.size())?;
        let (from, to) = (SharedPointer::new(sums.as_ptr()), SharedPointer::new(self.out.ptr()));
        let (widen, round) = (convert_fn(narrow, wide), convert_fn(wide, narrow));
        let epilogue = |start: usize, len: usize| {
            let (a, b) = (wide.size(), narrow.size());
            // SAFETY: the caller's, here and below; there is room for all sums.
            unsafe { round(1, len, from.at(start * a), (0, a as isize), to.at(start * b), (0, b as isize)) };
            if let Some(steps) = steps {
                steps(start, len);
            }
        };
        let factors = factors(self.operands).map(|m| Factor::Halves(m, widen));
        // SAFETY: see above.
        unsafe {
            let bias = self.bias.as_ref().map(|b| DenseOperand::cast(b, wide)).transpose()?;
            let bias = bias.as_ref().map_or(Bias::None, |b| Bias::Columns(b.ptr().cast()));
            self.products::<f32>(factors, bias, Some(&epilogue), sums.as_ptr().cast());
        }
        Ok(())
    }
}

impl CpuFamily for Matmul {
    const NARROW: NarrowElements = NarrowElements::Taken;

    fn takes_epilogue(&self, ins: &[View<'_>]) -> bool {
        matches!(ins, [a, b, ..] if is_packed([*a, *b]))
    }

    unsafe fn compute(_: &Matmul, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { compute(ins, output("matmul", outs, 0)?, None) }
    }
}
