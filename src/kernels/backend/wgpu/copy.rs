//! Copies, conversions and fills.

use super::pointwise::elementwise::{self, Elementwise};
use super::wgsl::expr::Formula;
use super::{BufferView, PointwiseInput};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::Copying;
use crate::error::Result;
use crate::layout::Scalar;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Writes one value everywhere.
pub fn fill(dst: BufferView<'_>, value: Scalar) -> Result<()> {
    let dtype = dst.dtype;
    elementwise::run(
        dst,
        &Elementwise {
            op: "fill",
            kind: "fill",
            code: &[],
            ins: SmallVec::new(),
            numbers: smallvec![(value, dtype)],
            divisor: None,
            body: &|_, v| Formula::just(&v[0], dtype),
        },
    )
}

/// Copies and converts; the shapes are equal (a stride of 0 in `src` repeats elements) and the memory does not overlap. Floats are
/// truncated on the way to integers; nan and numbers out of range become the least int64 or int32.
pub fn copy(dst: BufferView<'_>, src: BufferView<'_>) -> Result<()> {
    let dtype = src.dtype;
    elementwise::run(
        dst,
        &Elementwise {
            op: "copy",
            kind: "copy",
            code: &[],
            ins: smallvec![(PointwiseInput::View(src), dtype)],
            numbers: SmallVec::new(),
            divisor: None,
            body: &|x, _| Formula::just(&x[0], dtype),
        },
    )
}

impl WgpuFamily for Copying {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(_: &Copying, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let x = operand(ins, 0)?;
        copy(out, BufferView { shape: out.shape, ..x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::pointwise::elementwise::tests::{check, check_from};

    #[test]
    fn every_conversion_compiles() {
        for dtype in crate::backend::wgpu::elem::on_device() {
            let body = |x: &[String], _: &[String]| Formula::just(&x[0], dtype);
            for out in crate::backend::wgpu::elem::on_device() {
                check(&format!("copy {dtype} to {out}"), out, &[dtype], &[], None, &body);
                check_from(&format!("load {out} as {dtype}"), out, dtype, &[dtype], &body);
            }
            let fill = |_: &[String], v: &[String]| Formula::just(&v[0], dtype);
            check(&format!("fill {dtype}"), dtype, &[], &[dtype], None, &fill);
        }
    }
}
