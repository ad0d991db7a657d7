//! Upper and lower triangles of matrices.

use super::{Bindings, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load, store, wgsl_type, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Family, Triangle};
use crate::error::Result;
use std::sync::Arc;

/// Copies a matrix for each of the leading dimensions, keeping what lies on and above (`upper`) or on and below the `diagonal`-th
/// diagonal; the rest becomes zero. Both have one shape; `out` may be `x` itself.
pub fn triangle(op: &'static str, out: BufferView<'_>, x: BufferView<'_>, diagonal: i64, upper: bool) -> Result<()> {
    let n = countable(op, out.shape)?;
    let width = words(x.dtype);
    let r = out.shape.len();
    let (rows, cols) = (out.shape[r - 2], out.shape[r - 1]);
    let dims = out.shape.iter().zip(out.strides).zip(x.strides).map(|((n, a), b)| (*n, [*a, *b]));
    let walk = StridedWalk::ordered(dims);
    let mut bindings = Bindings::new();
    let (to, from) = (bindings.write(out.buffer), bindings.read(x.buffer));
    // Beyond the matrix every diagonal is alike.
    let diagonal = diagonal.clamp(-(rows as i64) - 1, cols as i64 + 1) as i32 as u32;
    let numbers = ParamValues::default().push(n).push(rows).push(cols).word(diagonal).push(out.offset).push(x.offset).walk(&walk);
    let kernel = TriangleKernel { width, upper, rank: walk.rank(), to, from };
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(out.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct TriangleKernel {
    width: usize,
    upper: bool,
    rank: u32,
    to: u32,
    from: u32,
}

impl WordKernel for TriangleKernel {
    const KIND: &'static str = "triangle";

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, rows, cols, diagonal, first, source] = p.many();
        let walk = p.walk(self.rank, "e", &["o", "s"]);
        let (value, put, t) = (load(self.from, self.width, "s"), store(self.to, self.width, "o", "v"), wgsl_type(self.width));
        let keeps = if self.upper { ">=" } else { "<=" };
        each(
            &n,
            &format!(
                "let row = (e / {cols}) % {rows}; let column = e % {cols};
var o = {first}; var s = {source};
{walk}var v = {t}();
if (i32(column) - i32(row) {keeps} bitcast<i32>({diagonal})) {{ v = {value}; }}
{put}"
            ),
        )
    }
}

impl WgpuFamily for Triangle {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(t: &Triangle, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        triangle(t.name(), out, operand(ins, 0)?, t.diagonal, t.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for width in [1, 2] {
            for upper in [true, false] {
                validate(&TriangleKernel { width, upper, rank: 3, to: 0, from: 0 }, 1);
            }
        }
    }
}
