//! Cumulative maxima and minima. One invocation goes along each row or, where rows are long and few, a workgroup: tile by tile, and each
//! tile starts with the result of the previous one.

use super::scan::shares;
use super::sort::{RowsAlong, ordered};
use super::{Bindings, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::word_kernels::{
    GROUP, Launch, ParamNames, ParamValues, WordKernel, countable, each, groups, groups_for, load, store, wgsl_type, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{CumulativeExtreme, Family};
use crate::error::Result;
use crate::layout::{DType, Number};
use std::sync::Arc;

/// The cumulative maximum (minimum, with `max` false) along `dim` and its position, the last among equal elements. From the first nan on
/// all values are nan. `values` and `positions` (int64) are row-major, of x's shape.
pub fn cummax(op: &'static str, max: bool, values: BufferView<'_>, positions: BufferView<'_>, x: BufferView<'_>, dim: usize) -> Result<()> {
    countable(op, x.shape)?;
    let rows = RowsAlong::new(&x, dim);
    let mut bindings = Bindings::new();
    let slots = [bindings.write(values.buffer), bindings.write(positions.buffer), bindings.read(x.buffer)];
    let kernel = CummaxKernel { dtype: x.dtype, max, rank: rows.walk.rank(), slots, shared: shared(&rows) };
    let groups = if kernel.shared { rows.count } else { groups_for(rows.count) };
    Launch { op, bindings, numbers: numbers(&rows, &x, &values, &positions), groups }.run(x.buffer.context(), &kernel)
}

pub(super) fn shared(rows: &RowsAlong) -> bool {
    shares(rows.length, rows.stride as isize, &rows.walk)
}

/// Statements of a scan over the lanes of a workgroup: `keep` writes what this lane has to the workgroup's memory, `merge` adds what lane
/// `before` has.
pub(super) fn over_lanes(keep: &str, merge: &str) -> String {
    format!(
        "{keep}for (var step = 1u; step < {GROUP}u; step *= 2u) {{
workgroupBarrier();
if (lane >= step) {{ let before = lane - step; {merge} }}
workgroupBarrier();
{keep}}}
workgroupBarrier();
"
    )
}

pub(super) fn numbers(rows: &RowsAlong, x: &BufferView<'_>, values: &BufferView<'_>, positions: &BufferView<'_>) -> ParamValues {
    let n = ParamValues::default().push(rows.count).push(rows.length).push(rows.stride).push(rows.inner).push(x.offset);
    n.push(values.offset).push(positions.offset).walk(&rows.walk)
}

/// Whether the element `v` is nan.
pub(super) fn nan(dtype: DType) -> &'static str {
    match dtype.number() {
        Number::F32 => "(v & 0x7fffffffu) > 0x7f800000u",
        Number::F64 => "(v.y & 0x7fffffffu) > 0x7ff00000u || ((v.y & 0x7fffffffu) == 0x7ff00000u && v.x != 0u)",
        Number::Bool | Number::U8 | Number::I32 | Number::I64 | Number::C64 | Number::C128 => "false",
    }
}

#[derive(Debug, Hash)]
struct CummaxKernel {
    dtype: DType,
    max: bool,
    rank: u32,
    /// Values, positions, the array.
    slots: [u32; 3],
    /// A workgroup goes along each row.
    shared: bool,
}

impl WordKernel for CummaxKernel {
    const KIND: &'static str = "running_extreme";

    fn body(&self, p: &mut ParamNames) -> String {
        let (width, [to, at, from]) = (words(self.dtype), self.slots);
        let [count, length, stride, inner, first, to_first, at_first] = p.many();
        let walk = p.walk(self.rank, "e", &["s"]);
        let (value, put) = (load(from, width, "s"), store(to, width, &format!("{to_first} + o"), "best"));
        let put_at = store(at, 2, &format!("{at_first} + o"), "vec2<u32>(place, 0u)");
        let better = if width == 2 { "k.y > top.y || (k.y == top.y && k.x >= top.x)" } else { "k >= top" };
        if self.shared {
            let (own, put) = (load(from, width, "s + i * stride"), store(to, width, &format!("{to_first} + o"), "best"));
            let t = wgsl_type(width);
            let merge = format!("let top = keys[before]; if (!({better})) {{ k = top; place = spots[before]; }}");
            return ordered(self.dtype, !self.max)
                + &format!("var<workgroup> keys: array<{t}, {GROUP}>;\nvar<workgroup> spots: array<u32, {GROUP}>;\n")
                + &groups(
                    GROUP,
                    &format!(
                        "let e = group;
if (e >= {count}) {{ return; }}
var s = {first};
{walk}let stride = {stride};
var top = {t}(); var last = 0u;
for (var begin = 0u; begin < {length}; begin += {GROUP}u) {{
let i = begin + lane;
var k = {t}(); var place = i;
if (i < {length}) {{
let v = {own};
k = ordered(v);
if ({nan}) {{ k = {t}(0xffffffffu); }}
}}
if (lane == 0u && begin > 0u && !({better})) {{ k = top; place = last; }}
{scan}top = keys[{GROUP}u - 1u]; last = spots[{GROUP}u - 1u];
if (i < {length}) {{
let o = ((e / {inner}) * {length} + i) * {inner} + e % {inner};
let best = {value_at};
{put}{put_at}}}
workgroupBarrier();
}}
",
                        nan = nan(self.dtype),
                        scan = over_lanes("keys[lane] = k; spots[lane] = place;\n", &merge),
                        value_at = load(from, width, "s + place * stride"),
                    ),
                );
        }
        ordered(self.dtype, !self.max)
            + &each(
                &count,
                &format!(
                    "var s = {first};
{walk}var o = (e / {inner}) * {length} * {inner} + e % {inner};
var best = {value}; var top = best; var place = 0u;
for (var i = 0u; i < {length}; i++) {{
let v = {value};
var k = ordered(v);
if ({nan}) {{ k = {t}(0xffffffffu); }}
if (i == 0u || {better}) {{ best = v; top = k; place = i; }}
{put}{put_at}s += {stride}; o += {inner};
}}
",
                    nan = nan(self.dtype),
                    t = wgsl_type(width)
                ),
            )
    }
}

impl WgpuFamily for CumulativeExtreme {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(c: &CumulativeExtreme, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let values = output(outs, 0)?;
        let positions = output(outs, 1)?;
        cummax(c.name(), c.max, values, positions, operand(ins, 0)?, c.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied() {
            for (max, shared) in [(false, false), (true, false), (false, true), (true, true)] {
                validate(&CummaxKernel { dtype, max, rank: 2, slots: [0, 1, 2], shared }, 3);
            }
        }
    }
}
