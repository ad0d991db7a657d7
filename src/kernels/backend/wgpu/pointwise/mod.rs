//! Pointwise operations on a device: runs a row, or its derivative, over strided memory. `elementwise` generates the shader around the body
//! of a row, `fused` does so for programs of several steps, `many` for one program over many groups of operands. Not here: what a row
//! computes in WGSL (`wgsl::expr`).

pub(super) mod compute;
pub(super) mod elementwise;
pub mod fused;
pub mod many;

use self::elementwise::Elementwise;
use super::device::errors::division_by_zero;
use super::wgsl::expr::formula;
use super::{BufferView, PointwiseInput, elem};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::{Func, Kind, Part};
use smallvec::SmallVec;

/// Whether there is a kernel for `func` that computes in `dtype`.
pub fn has_kernel(func: Func, dtype: DType) -> bool {
    let info = func.row.info();
    if info.kind == Kind::Special {
        return false;
    }
    match func.part {
        Part::Vjp(i) => dtype.is_float() && info.differentiable() & (1 << i) != 0,
        Part::Forward => info.computes(dtype.category()),
    }
}

/// Computes `func` in `compute` for every element of `out`; inputs are broadcast to its shape. An input may be `out` itself. Integers
/// divided by 0 give 0 and a fault, which the next wait for the device raises; a Python number that is 0 is an error here.
pub fn run(func: Func, compute: DType, out: BufferView<'_>, ins: &[PointwiseInput<'_>], params: &[Scalar]) -> Result<()> {
    let info = func.row.info();
    if !has_kernel(func, compute) {
        return Err(Error::not_implemented(format!(
            "{}: not implemented for {compute} on wgpu yet; move the tensor with .cpu()",
            info.name
        )));
    }
    let part = match func.part {
        Part::Forward => 0,
        Part::Vjp(i) => 1 + u32::from(i),
    };
    let reads = func.reads();
    let divisor = if func.divides() && !compute.is_float() { ins.len().checked_sub(1) } else { None };
    if let Some(PointwiseInput::Number(v)) = divisor.map(|k| ins[k])
        && elem::to_words(v, compute) == [0, 0]
    {
        return Err(division_by_zero(info.name));
    }
    elementwise::run(
        out,
        &Elementwise {
            op: info.name,
            kind: "pointwise",
            code: &[func.row as u32 | part << 16 | (compute as u32) << 24],
            ins: ins
                .iter()
                .enumerate()
                .map(|(k, input)| {
                    let seen = func.in_dtype(k, compute);
                    match input {
                        _ if reads >> k & 1 == 0 => (PointwiseInput::Unread, seen),
                        PointwiseInput::Number(_) if !func.rounds_numbers() => (*input, elem::number(seen)),
                        _ => (*input, seen),
                    }
                })
                .collect(),
            numbers: params.iter().map(|p| (func.param(*p, compute), elem::number(compute))).collect::<SmallVec<_>>(),
            divisor: divisor.filter(|k| matches!(ins[*k], PointwiseInput::View(_))),
            body: &|x, p| formula(func, compute, x, p),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::pointwise::elementwise::tests::check;
    use crate::rows::RowId;

    /// All kernels.
    fn kernels() -> Vec<(Func, DType)> {
        let funcs = RowId::ALL.iter().flat_map(|row| {
            let vjps = (0..row.info().arity()).map(|i| Func::vjp(*row, i));
            std::iter::once(Func::forward(*row)).chain(vjps)
        });
        funcs.flat_map(|f| crate::backend::wgpu::elem::on_device().map(move |d| (f, d))).filter(|(f, d)| has_kernel(*f, *d)).collect()
    }

    #[test]
    fn every_row_compiles_for_every_dtype() {
        let kernels = kernels();
        assert!(kernels.len() > 600, "only {} kernels", kernels.len());
        for (func, dtype) in kernels {
            let wants: Vec<DType> = (0..func.inputs()).map(|k| func.in_dtype(k, dtype)).collect();
            let numbers = vec![dtype; func.row.info().params.len()];
            let name = format!("{} {:?} {dtype}", func.row.info().name, func.part);
            let divisor = if func.divides() && !dtype.is_float() { Some(1) } else { None };
            check(&name, func.out_dtype(dtype), &wants, &numbers, divisor, &|x, p| formula(func, dtype, x, p));
        }
    }

    #[test]
    fn what_the_cpu_computes_is_computed_here() {
        for row in RowId::ALL.iter().filter(|r| r.info().kind != Kind::Special) {
            for dtype in crate::backend::wgpu::elem::on_device() {
                let func = Func::forward(*row);
                assert_eq!(has_kernel(func, dtype), crate::backend::cpu::pointwise::has_kernel(func, dtype), "{} {dtype}", row.info().name);
            }
        }
    }
}
