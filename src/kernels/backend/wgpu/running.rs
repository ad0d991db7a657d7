//! The largest and smallest elements so far, and the most frequent ones. One invocation goes along each row or, where rows are long and
//! few, a workgroup: tile by tile, each handing on to the next what it ends with.

use super::scan::shares;
use super::select::{Rows, ordered};
use super::words::{GROUP, Kernel, Launch, Names, Numbers, countable, each, groups, groups_for, load, store, wgsl_type, words};
use super::{Bindings, View};
use crate::error::Result;
use crate::layout::DType;

/// The largest (smallest, with `max` false) element so far along `dim`, and where it stands: the last of equals. From the first nan on all
/// are nan. `values` and `places` (int64) are row-major, of x's shape.
pub fn running_extreme(op: &'static str, max: bool, values: View<'_>, places: View<'_>, x: View<'_>, dim: usize) -> Result<()> {
    countable(op, x.shape)?;
    let rows = Rows::new(&x, dim);
    let mut bindings = Bindings::new();
    let slots = [bindings.write(values.buffer), bindings.write(places.buffer), bindings.read(x.buffer)];
    let kernel = Running { dtype: x.dtype, max, rank: rows.walk.rank(), slots, shared: shared(&rows) };
    let groups = if kernel.shared { rows.count } else { groups_for(rows.count) };
    Launch { op, bindings, numbers: numbers(&rows, &x, &values, &places), groups }.run(x.buffer.context(), &kernel)
}

/// The most frequent element along `dim` (the smallest of equally frequent ones) and where it stands last; a nan equals no other. `sorted`
/// and `order` are what `select::sort` gives for whole rows; `values` and `places` are row-major, without `dim`.
pub fn mode(op: &'static str, values: View<'_>, places: View<'_>, sorted: View<'_>, order: View<'_>, dim: usize) -> Result<()> {
    let rows = Rows::new(&sorted, dim);
    let mut bindings = Bindings::new();
    let slots = [bindings.write(values.buffer), bindings.write(places.buffer), bindings.read(sorted.buffer), bindings.read(order.buffer)];
    let kernel = Mode { dtype: sorted.dtype, rank: rows.walk.rank(), slots, shared: shared(&rows) };
    let groups = if kernel.shared { rows.count } else { groups_for(rows.count) };
    Launch { op, bindings, numbers: numbers(&rows, &sorted, &values, &places), groups }.run(sorted.buffer.context(), &kernel)
}

fn shared(rows: &Rows) -> bool {
    shares(rows.length, rows.stride as isize, &rows.walk)
}

/// Statements of a scan over the lanes of a workgroup: `keep` writes what this lane has to the workgroup's memory, `merge` adds what lane
/// `before` has.
fn over_lanes(keep: &str, merge: &str) -> String {
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

fn numbers(rows: &Rows, x: &View<'_>, values: &View<'_>, places: &View<'_>) -> Numbers {
    let n = Numbers::default().push(rows.count).push(rows.length).push(rows.stride).push(rows.inner).push(x.offset);
    n.push(values.offset).push(places.offset).walk(&rows.walk)
}

/// Whether the element `v` is nan.
fn nan(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "(v & 0x7fffffffu) > 0x7f800000u",
        DType::F64 => "(v.y & 0x7fffffffu) > 0x7ff00000u || ((v.y & 0x7fffffffu) == 0x7ff00000u && v.x != 0u)",
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => "false",
    }
}

#[derive(Debug, Hash)]
struct Running {
    dtype: DType,
    max: bool,
    rank: u32,
    /// Values, places, the array.
    slots: [u32; 3],
    /// A workgroup goes along each row.
    shared: bool,
}

impl Kernel for Running {
    const KIND: &'static str = "running_extreme";

    fn body(&self, p: &mut Names) -> String {
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

#[derive(Debug, Hash)]
struct Mode {
    dtype: DType,
    rank: u32,
    /// Values, places, sorted elements, the places they came from.
    slots: [u32; 4],
    /// A workgroup goes along each row.
    shared: bool,
}

impl Kernel for Mode {
    const KIND: &'static str = "mode";

    fn body(&self, p: &mut Names) -> String {
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

#[cfg(test)]
mod tests {
    use super::super::words::validate;
    use super::*;

    #[test]
    fn every_shader_is_valid() {
        for dtype in DType::ALL {
            for (max, shared) in [(false, false), (true, false), (false, true), (true, true)] {
                validate(&Running { dtype, max, rank: 2, slots: [0, 1, 2], shared }, 3);
            }
            for shared in [false, true] {
                validate(&Mode { dtype, rank: 1, slots: [0, 1, 2, 3], shared }, 3);
            }
        }
    }
}
