//! Factorisations of float32 matrices up to `LARGEST`, and solutions made of them: a workgroup has one matrix, in the memory of the result. What
//! else there is of linear algebra the host computes (`ops` asks `is_computed_here`).
//!
//! Not here: shapes, errors and derivatives (`ops/linalg`), and the kernels of the processor (`backend/cpu/factor`).

mod decompose;
mod solve;

use self::decompose::{CholeskyKernel, DeterminantKernel, LuKernel};
use self::solve::{SolveKernel, TriangularPart};
use super::common::operands::{operand, output};
use super::common::strided::StridedWalk;
use super::common::word_kernels::{Launch, ParamValues, WordKernel, countable, groups_for};
use super::family::{Halves, WgpuFamily};
use super::{Bindings, Buffer, BufferView, Context, scratch_size};
use crate::backend::contract::{Operand, Support, View};
use crate::call::{Factor, FactorKind, Seen};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout, Strides};
use std::sync::Arc;

/// The most rows and columns: one workgroup is slower with more than the way to the host and back.
const LARGEST: usize = 256;
/// Columns of right sides that a workgroup solves.
const COLUMNS: usize = 32;
/// Rows and columns up to which a small workgroup is busy.
const SMALL: usize = 16;

const BY_HOST: &str = "computed by the host";

/// All lanes of a workgroup see what the others have written.
const BARRIER: &str = "storageBarrier(); workgroupBarrier();\n";

fn has_kernel(kind: FactorKind) -> bool {
    match kind {
        FactorKind::Cholesky { .. }
        | FactorKind::Lu { .. }
        | FactorKind::Determinant { .. }
        | FactorKind::Triangular { .. }
        | FactorKind::LuSolve { .. }
        | FactorKind::Solve
        | FactorKind::Inverse => true,
        FactorKind::Cofactors
        | FactorKind::Qr(_)
        | FactorKind::Eigen { .. }
        | FactorKind::Spectrum { .. }
        | FactorKind::Svd(_)
        | FactorKind::Householder
        | FactorKind::Reflect { .. }
        | FactorKind::Ldl { .. }
        | FactorKind::LdlSolve { .. } => false,
    }
}

/// Whether there is a kernel for these operands.
pub(super) fn is_computed_here(f: &Factor, ins: &[Seen<'_>]) -> bool {
    let Some((shape, DType::F32)) = ins.first().copied().flatten() else { return false };
    has_kernel(f.kind) && shape.len() >= 2 && shape[shape.len() - 2..].iter().all(|n| *n <= LARGEST)
}

/// Invocations of a workgroup for matrices of this size.
fn lanes(size: usize) -> usize {
    if size <= SMALL { 64 } else { 256 }
}

/// The matrices of a request: their number, their sizes, and those of an operand as a walk.
struct Batch<'a> {
    op: &'static str,
    context: &'a Arc<Context>,
    count: usize,
    shape: &'a [usize],
}

/// The strides of a matrix's rows and columns.
fn steps(v: &BufferView<'_>) -> (isize, isize) {
    let r = v.strides.len();
    (v.strides[r - 2], v.strides[r - 1])
}

impl Batch<'_> {
    /// Where each matrix (or vector) of up to three operands begins. The last dimensions are those of each matrix.
    fn walk(&self, of: [Option<&BufferView<'_>>; 3]) -> StridedWalk<3> {
        let stride = |v: Option<&BufferView<'_>>, d: usize| v.map_or(0, |v| v.strides[d]);
        StridedWalk::ordered(self.shape.iter().enumerate().map(|(d, n)| (*n, of.map(|v| stride(v, d)))))
    }

    fn lu(&self, x: BufferView<'_>, pivot: bool, factors: BufferView<'_>, pivots: BufferView<'_>, info: BufferView<'_>) -> Result<()> {
        let r = x.shape.len();
        let (m, n) = (x.shape[r - 2], x.shape[r - 1]);
        let walk = self.walk([Some(&x), None, None]);
        let mut bindings = Bindings::new();
        let slots = [bindings.read(x.buffer), bindings.write(factors.buffer), bindings.write(pivots.buffer), bindings.write(info.buffer)];
        let (rs, cs) = steps(&x);
        let numbers = ParamValues::default().push(self.count).push(m).push(n).push(x.offset).push(rs as usize).push(cs as usize);
        let numbers = numbers.push(factors.offset).push(pivots.offset).push(info.offset).walk(&walk);
        self.run(bindings, numbers, self.count, &LuKernel { lanes: lanes(m.max(n)), pivot, rank: walk.rank(), slots })
    }

    fn run(&self, bindings: Bindings<'_>, numbers: ParamValues, groups: usize, kernel: &impl WordKernel) -> Result<()> {
        Launch { op: self.op, bindings, numbers, groups }.run(self.context, kernel)
    }

    /// Solves with triangular factors, one after the other.
    fn solve(&self, s: &Solution<'_>) -> Result<()> {
        let r = s.factors.shape.len();
        let (n, k) = (s.factors.shape[r - 1], s.out.shape[r - 1]);
        let walk = self.walk([Some(&s.factors), s.right.as_ref(), s.pivots.as_ref()]);
        let mut bindings = Bindings::new();
        let factors = bindings.read(s.factors.buffer);
        let right = s.right.map(|v| bindings.read(v.buffer));
        let pivots = s.pivots.map(|v| bindings.read(v.buffer));
        let info = s.info.map(|v| bindings.read(v.buffer));
        let to = bindings.write(s.out.buffer);
        let chunks = k.div_ceil(COLUMNS);
        let ((rs, cs), (right_rs, right_cs)) = (steps(&s.factors), s.right.map_or((0, 0), |v| steps(&v)));
        let at = |v: &Option<BufferView<'_>>| v.map_or(0, |v| v.offset);
        let numbers = ParamValues::default().push(self.count * chunks).push(chunks).push(n).push(k);
        let numbers = numbers.push(s.factors.offset).push(rs as usize).push(cs as usize);
        let numbers = numbers.push(at(&s.right)).push(right_rs as usize).push(right_cs as usize);
        let pivot_step = s.pivots.map_or(0, |v| v.strides[v.strides.len() - 1]);
        let numbers = numbers.push(at(&s.pivots)).push(pivot_step as usize).push(at(&s.info)).push(s.out.offset).walk(&walk);
        let kernel = SolveKernel { lanes: lanes(n), parts: s.parts, swaps: s.swaps, factors, right, pivots, info, to, rank: walk.rank() };
        self.run(bindings, numbers, self.count * chunks, &kernel)
    }
}

/// When rows are swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Swaps {
    Never,
    Before,
    /// In the opposite order.
    After,
}

/// The arguments of `Batch::solve`. Without a right side it is the identity.
struct Solution<'a> {
    factors: BufferView<'a>,
    parts: [Option<TriangularPart>; 2],
    right: Option<BufferView<'a>>,
    pivots: Option<BufferView<'a>>,
    swaps: Swaps,
    info: Option<BufferView<'a>>,
    out: BufferView<'a>,
}

/// Both substitutions with LU factors.
const BY_FACTORS: [Option<TriangularPart>; 2] = [
    Some(TriangularPart { upper: false, unit: true, transposed: false }),
    Some(TriangularPart { upper: true, unit: false, transposed: false }),
];
/// The same with their transposes.
const BY_TRANSPOSES: [Option<TriangularPart>; 2] = [
    Some(TriangularPart { upper: false, unit: false, transposed: true }),
    Some(TriangularPart { upper: true, unit: true, transposed: true }),
];

impl WgpuFamily for Factor {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn support(&self, dtype: DType) -> Support {
        if has_kernel(self.kind) && dtype == DType::F32 { Support::Yes } else { Support::Converted(BY_HOST) }
    }

    fn compute(f: &Factor, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = operand(ins, 0)?;
        if !is_computed_here(f, &[Some((x.shape, x.dtype))]) {
            return Err(Error::not_implemented(format!("{}: {BY_HOST}; move the tensor to another device with .to()", f.op)));
        }
        for v in ins.iter().enumerate().map(|(k, _)| operand(ins, k)).chain(outs.iter().enumerate().map(|(k, _)| output(outs, k))) {
            countable(f.op, v?.shape)?;
        }
        let r = x.shape.len();
        let batch = Batch { op: f.op, context, count: x.shape[..r - 2].iter().product(), shape: &x.shape[..r - 2] };
        let n = x.shape[r - 1];
        let out = |k: usize| output(outs, k);
        match f.kind {
            FactorKind::Cholesky { upper } => {
                let (to, info) = (out(0)?, out(1)?);
                let walk = batch.walk([Some(&x), None, None]);
                let mut bindings = Bindings::new();
                let slots = [bindings.read(x.buffer), bindings.write(to.buffer), bindings.write(info.buffer)];
                // The upper triangle is the lower one of the transpose.
                let (rs, cs) = if upper { (steps(&x).1, steps(&x).0) } else { steps(&x) };
                let numbers = ParamValues::default().push(batch.count).push(n).push(x.offset).push(rs as usize).push(cs as usize);
                let numbers = numbers.push(to.offset).push(info.offset).walk(&walk);
                batch.run(bindings, numbers, batch.count, &CholeskyKernel { lanes: lanes(n), upper, rank: walk.rank(), slots })
            }
            FactorKind::Lu { pivot } => batch.lu(x, pivot, out(0)?, out(1)?, out(2)?),
            FactorKind::Determinant { logarithm } => {
                let at = 1 + usize::from(logarithm);
                let (sign, factors, pivots) = (out(0)?, out(at)?, out(at + 1)?);
                let unused = Buffer::new(context, batch.count * scratch_size(DType::I32))?;
                batch.lu(x, true, factors, pivots, BufferView { buffer: &unused, offset: 0, ..sign })?;
                let mut bindings = Bindings::new();
                let (read, swapped, to) = (bindings.read(factors.buffer), bindings.read(pivots.buffer), bindings.write(sign.buffer));
                let size = if logarithm { Some(out(1)?) } else { None };
                let kernel = DeterminantKernel { slots: [read, swapped, to], size: size.map(|v| bindings.write(v.buffer)) };
                let numbers = ParamValues::default().push(batch.count).push(n).push(factors.offset).push(pivots.offset).push(sign.offset);
                let numbers = numbers.push(size.map_or(0, |v| v.offset)).push(0);
                batch.run(bindings, numbers, groups_for(batch.count), &kernel)
            }
            FactorKind::Triangular { upper, unit } => batch.solve(&Solution {
                factors: x,
                parts: [Some(TriangularPart { upper, unit, transposed: false }), None],
                right: Some(operand(ins, 1)?),
                pivots: None,
                swaps: Swaps::Never,
                info: None,
                out: out(0)?,
            }),
            FactorKind::LuSolve { adjoint } => batch.solve(&Solution {
                factors: x,
                parts: if adjoint { BY_TRANSPOSES } else { BY_FACTORS },
                right: Some(operand(ins, 2)?),
                pivots: Some(operand(ins, 1)?),
                swaps: if adjoint { Swaps::After } else { Swaps::Before },
                info: None,
                out: out(0)?,
            }),
            FactorKind::Solve => {
                let (factors, pivots, info) = (out(1)?, out(2)?, out(3)?);
                batch.lu(x, true, factors, pivots, info)?;
                let right = Some(operand(ins, 1)?);
                batch.solve(&Solution {
                    factors,
                    parts: BY_FACTORS,
                    right,
                    pivots: Some(pivots),
                    swaps: Swaps::Before,
                    info: Some(info),
                    out: out(0)?,
                })
            }
            FactorKind::Inverse => {
                let (to, info) = (out(0)?, out(1)?);
                let room = |elements: usize| Buffer::new(context, batch.count * elements * scratch_size(DType::F32));
                let (factors, pivots) = (room(n * n)?, room(n)?);
                let steps: Strides = Layout::contiguous_strides(x.shape);
                let factors = BufferView { buffer: &factors, offset: 0, strides: &steps, ..x };
                let pivot_steps: Strides = Layout::contiguous_strides(&x.shape[..r - 1]);
                let pivots = BufferView { buffer: &pivots, offset: 0, shape: &x.shape[..r - 1], strides: &pivot_steps, dtype: DType::I32 };
                batch.lu(x, true, factors, pivots, info)?;
                batch.solve(&Solution {
                    factors,
                    parts: BY_FACTORS,
                    right: None,
                    pivots: Some(pivots),
                    swaps: Swaps::Before,
                    info: Some(info),
                    out: to,
                })
            }
            _ => Err(Error::internal(f.op, "a factorisation without a kernel")),
        }
    }
}
