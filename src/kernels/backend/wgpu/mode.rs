//! The most frequent element of each row, from its sorted elements: one invocation or, where rows are long and few, one workgroup per row
//! looks for the longest run of equal elements.

use super::sort::{RowsAlong, ordered};
use super::{Bindings, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::word_kernels::{GROUP, Launch, ParamNames, WordKernel, each, groups, groups_for, load, store, words};
use crate::backend::wgpu::cumulative_extreme::{nan, numbers, over_lanes, shared};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{Buffer, Context, scratch_size, sort};
use crate::call::{Mode, Sort};
use crate::error::Result;
use crate::layout::{DType, Layout};
use std::sync::Arc;

/// The most frequent element along `dim` (the smallest of equally frequent ones) and its last position; a nan equals no other element.
/// `sorted` and `order` are what `sort::sort` gives for whole rows; `values` and `positions` are row-major, without `dim`.
pub fn mode(
    op: &'static str,
    values: BufferView<'_>,
    positions: BufferView<'_>,
    sorted: BufferView<'_>,
    order: BufferView<'_>,
    dim: usize,
) -> Result<()> {
    let rows = RowsAlong::new(&sorted, dim);
    let mut bindings = Bindings::new();
    let slots =
        [bindings.write(values.buffer), bindings.write(positions.buffer), bindings.read(sorted.buffer), bindings.read(order.buffer)];
    let kernel = ModeKernel { dtype: sorted.dtype, rank: rows.walk.rank(), slots, shared: shared(&rows) };
    let groups = if kernel.shared { rows.count } else { groups_for(rows.count) };
    Launch { op, bindings, numbers: numbers(&rows, &sorted, &values, &positions), groups }.run(sorted.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct ModeKernel {
    dtype: DType,
    rank: u32,
    /// Values, positions, sorted elements, their original positions.
    slots: [u32; 4],
    /// A workgroup goes along each row.
    shared: bool,
}

impl WordKernel for ModeKernel {
    const KIND: &'static str = "mode";

    fn body(&self, p: &mut ParamNames) -> String {
        let (width, [to, at, from, order]) = (words(self.dtype), self.slots);
        let [count, length, stride, _, first, to_first, at_first] = p.many();
        let walk = p.walk(self.rank, "e", &["s"]);
        let (value, put) = (load(from, width, "s + i * stride"), store(to, width, &format!("{to_first} + e"), "best"));
        let put_at = store(at, 2, &format!("{at_first} + e"), "vec2<u32>(place, 0u)");
        let same = if width == 2 { "all(k == last)" } else { "k == last" };
        if self.shared {
            let merge = "start = max(start, starts[before]);";
            return ordered(self.dtype, false)
                + &format!("var<workgroup> starts: array<u32, {GROUP}>;\nvar<workgroup> runs: array<vec2<u32>, {GROUP}>;\n")
                + &groups(
                    GROUP,
                    &format!(
                        "let e = group;
if (e >= {count}) {{ return; }}
var s = {first};
{walk}let stride = {stride};
var carried = 0u; var most = 0u; var end = 0u;
for (var begin = 0u; begin < {length}; begin += {GROUP}u) {{
let i = begin + lane;
var start = 0u;
if (i < {length} && i > 0u) {{
let v = {value};
let k = ordered(v); let last = ordered({before});
if (!({same}) || {nan}) {{ start = i; }}
}}
if (lane == 0u) {{ start = max(start, carried); }}
{scan}carried = starts[{GROUP}u - 1u];
if (i < {length} && i - start + 1u > most) {{ most = i - start + 1u; end = i; }}
workgroupBarrier();
}}
runs[lane] = vec2<u32>(most, end);
for (var half = {GROUP}u / 2u; half > 0u; half /= 2u) {{
workgroupBarrier();
if (lane < half) {{
let other = runs[lane + half]; let own = runs[lane];
if (other.x > own.x || (other.x == own.x && other.y < own.y)) {{ runs[lane] = other; }}
}}
}}
if (lane == 0u) {{
let i = runs[0].y;
let best = {value}; let place = b{order}[(s + i * stride) * 2u];
{put}{put_at}}}
",
                        before = load(from, width, "s + (i - 1u) * stride"),
                        scan = over_lanes("starts[lane] = start;\n", merge),
                        nan = nan(self.dtype),
                    ),
                );
        }
        ordered(self.dtype, false)
            + &each(
                &count,
                &format!(
                    "var s = {first};
{walk}let stride = {stride};
var best = {}; var place = b{order}[s * 2u]; var most = 1u; var run = 0u; var last = best;
for (var i = 0u; i < {length}; i++) {{
let v = {value};
let k = ordered(v);
if (i > 0u && {same} && !({nan})) {{ run += 1u; }} else {{ run = 1u; }}
last = k;
if (run > most) {{ most = run; best = v; place = b{order}[(s + i * stride) * 2u]; }}
}}
{put}{put_at}",
                    load(from, width, "s"),
                    nan = nan(self.dtype)
                ),
            )
    }
}

impl WgpuFamily for Mode {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(m: &Mode, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let values = output(outs, 0)?;
        let positions = output(outs, 1)?;
        let x = operand(ins, 0)?;
        let strides = Layout::contiguous_strides(x.shape);
        let numel: usize = x.shape.iter().product();
        let (sorted, order) =
            (Buffer::new(context, numel * scratch_size(x.dtype))?, Buffer::new(context, numel * scratch_size(DType::I64))?);
        let sorted = BufferView { buffer: &sorted, offset: 0, strides: &strides, ..x };
        let order = BufferView { buffer: &order, dtype: DType::I64, ..sorted };
        let keep = x.shape.get(m.dim).copied().unwrap_or(1);
        sort::sort("mode", sorted, order, x, m.dim, Sort { dim: m.dim, descending: false, keep })?;
        mode("mode", values, positions, sorted, order, m.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied() {
            for shared in [false, true] {
                validate(&ModeKernel { dtype, rank: 1, slots: [0, 1, 2, 3], shared }, 3);
            }
        }
    }
}
