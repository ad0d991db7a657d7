//! Where elements belong in sorted rows: an invocation for each element, by bisection.

use super::Bindings;
use super::cumulative_extreme::nan;
use super::sort::ordered;
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load, store, wgsl_type, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Family, Search};
use crate::error::Result;
use crate::layout::DType;
use std::sync::Arc;

#[derive(Debug, Hash)]
struct SearchKernel {
    dtype: DType,
    right: bool,
    rank: u32,
    /// Places, sorted rows, elements.
    slots: [u32; 3],
}

impl WordKernel for SearchKernel {
    const KIND: &'static str = "search";

    fn body(&self, p: &mut ParamNames) -> String {
        let (width, [to, rows, from]) = (words(self.dtype), self.slots);
        let [count, length, stride, first_place, first_row, first] = p.many();
        let walk = p.walk(self.rank, "e", &["o", "r", "s"]);
        let (t, nan) = (wgsl_type(width), nan(self.dtype));
        // Whether a number is less than another, and whether it is that or the same.
        let (less, same) = if width == 2 { ("a.y < b.y || (a.y == b.y && a.x < b.x)", "all(a == b)") } else { ("a < b", "a == b") };
        let before = if self.right { format!("({less}) || ({same})") } else { less.to_owned() };
        ordered(self.dtype, false)
            + &format!("fn is_nan(v: {t}) -> bool {{ return {nan}; }}\n")
            + &format!("fn before(a: {t}, b: {t}) -> bool {{ return {before}; }}\n")
            + &each(
                &count,
                &format!(
                    "var o = {first_place}; var r = {first_row}; var s = {first};
{walk}let wanted = {wanted};
let key = ordered(wanted);
let beyond = is_nan(wanted);
var low = 0u; var high = {length};
while (low < high) {{
let middle = (low + high) / 2u;
let at = r + middle * {stride};
let found = {found};
if (beyond || is_nan(found) || before(ordered(found), key)) {{ low = middle + 1u; }} else {{ high = middle; }}
}}
{put}",
                    wanted = load(from, width, "s"),
                    found = load(rows, width, "at"),
                    put = store(to, 2, "o", "vec2<u32>(low, 0u)"),
                ),
            )
    }
}

impl WgpuFamily for Search {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(s: &Search, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (rows, x, out) = (operand(ins, 0)?, operand(ins, 1)?, output(outs, 0)?);
        let n = countable(s.name(), out.shape)?;
        let length = countable(s.name(), rows.shape.get(rows.shape.len().saturating_sub(1)..).unwrap_or(&[1]))?;
        let (last, stride) = (rows.shape.len().saturating_sub(1), rows.strides.last().map_or(0, |s| *s as usize));
        let dims = (0..out.shape.len()).map(|d| {
            let along = if d == last { 0 } else { rows.strides[d] };
            (out.shape[d], [out.strides[d], along, x.strides[d]])
        });
        let walk = StridedWalk::ordered(dims);
        let mut bindings = Bindings::new();
        let slots = [bindings.write(out.buffer), bindings.read(rows.buffer), bindings.read(x.buffer)];
        let numbers = ParamValues::default().push(n).push(length).push(stride).push(out.offset).push(rows.offset).push(x.offset);
        let kernel = SearchKernel { dtype: rows.dtype, right: s.right, rank: walk.rank(), slots };
        Launch { op: s.name(), bindings, numbers: numbers.walk(&walk), groups: groups_for(n) }.run(context, &kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied() {
            for right in [false, true] {
                validate(&SearchKernel { dtype, right, rank: 2, slots: [0, 1, 2] }, 3);
            }
        }
    }
}
