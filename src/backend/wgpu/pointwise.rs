//! Runs a row, or its derivative, over strided memory of the device.

use super::elementwise::{self, Elementwise};
use super::wgsl::expr::{Formula, formula};
use super::{Input, View};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::pointwise::{Func, Kind, Part};
use smallvec::SmallVec;

/// Whether there is a kernel for `func` that computes in `dtype`.
pub fn has_kernel(func: Func, dtype: DType) -> bool {
    let info = func.row.info();
    match (func.part, dtype) {
        (_, DType::F64) => doubles(func),
        (Part::Vjp(i), _) => dtype == DType::F32 && info.differentiable() & (1 << i) != 0,
        (Part::Forward, DType::F32) => info.kind != Kind::Int,
        (Part::Forward, _) => info.kind != Kind::Real,
    }
}

/// Whether float64 has all functions that `func` needs; WGSL has arithmetic on it, but no elementary functions.
fn doubles(func: Func) -> bool {
    let info = func.row.info();
    let taken = match func.part {
        Part::Forward => info.kind != Kind::Int,
        Part::Vjp(i) => info.differentiable() & (1 << i) != 0,
    };
    let names = |n: usize| vec!["0.0lf".to_owned(); n];
    taken && formula(func, DType::F64, &names(func.inputs()), &names(info.params.len())).is_ok()
}

/// Computes `func` in `compute` for every element of `out`; inputs are broadcast to its shape. An input may be `out` itself. Integers
/// divided by 0 give 0.
pub fn run(func: Func, compute: DType, out: View<'_>, ins: &[Input<'_>], params: &[Scalar]) -> Result<()> {
    let info = func.row.info();
    if !has_kernel(func, compute) {
        return Err(Error::not_implemented(format!(
            "{}: not implemented for {compute} on wgpu yet; move the tensor with .cpu(), or convert it with .to(float32)",
            info.name
        )));
    }
    let part = match func.part {
        Part::Forward => 0,
        Part::Vjp(i) => 1 + u32::from(i),
    };
    let reads = func.reads();
    elementwise::run(
        out,
        &Elementwise {
            op: info.name,
            kind: "pointwise",
            code: func.row as u32 | part << 16 | (compute as u32) << 24,
            ins: ins
                .iter()
                .enumerate()
                .map(|(k, input)| (if reads >> k & 1 == 1 { *input } else { Input::Unread }, func.in_dtype(k, compute)))
                .collect(),
            numbers: params.iter().map(|p| (*p, compute)).collect::<SmallVec<_>>(),
            body: &|x, p| body(func, compute, x, p),
        },
    )
}

fn body(func: Func, compute: DType, x: &[String], p: &[String]) -> Formula {
    match formula(func, compute, x, p) {
        Ok(f) => f,
        // `has_kernel` has refused it; a shader that does not compile is reported with its operation.
        Err(name) => Formula { lets: String::new(), value: format!("no_{name}_of_{compute}()"), dtype: compute },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::elementwise::tests::check;
    use crate::pointwise::RowId;

    /// Every kernel there is.
    fn kernels() -> Vec<(Func, DType)> {
        let funcs = RowId::ALL.iter().flat_map(|row| {
            let vjps = (0..row.info().arity()).map(|i| Func::vjp(*row, i));
            std::iter::once(Func::forward(*row)).chain(vjps)
        });
        funcs.flat_map(|f| DType::ALL.map(|d| (f, d))).filter(|(f, d)| has_kernel(*f, *d)).collect()
    }

    #[test]
    fn every_row_compiles_for_every_dtype() {
        let kernels = kernels();
        assert!(kernels.len() > 600, "only {} kernels", kernels.len());
        for (func, dtype) in kernels {
            let wants: Vec<DType> = (0..func.inputs()).map(|k| func.in_dtype(k, dtype)).collect();
            let numbers = vec![dtype; func.row.info().params.len()];
            let name = format!("{} {:?} {dtype}", func.row.info().name, func.part);
            check(&name, func.out_dtype(dtype), &wants, &numbers, &|x, p| body(func, dtype, x, p));
        }
    }

    #[test]
    fn what_the_cpu_computes_in_f32_and_integers_is_computed_here() {
        for row in RowId::ALL {
            for dtype in [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F32] {
                let func = Func::forward(*row);
                assert_eq!(has_kernel(func, dtype), crate::backend::cpu::pointwise::has_kernel(func, dtype), "{} {dtype}", row.info().name);
            }
        }
    }
}
