//! Sorting along one dimension: a bitonic sort of each row in one workgroup, or a radix sort (`radix`) where rows are longer. Not here: the
//! most frequent element (`mode`), and which elements of the sorted rows are kept (`ops/order.rs`).

pub(super) mod compute;
pub(super) mod radix;

use self::radix::Digits;
use super::{Bindings, BufferView};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups, groups_for, load, scratch, store, wgsl_type, words,
};
use crate::call::Sort;
use crate::error::Result;
use crate::layout::{DType, Number};

/// The longest row that one workgroup sorts in its own memory.
const ROW: usize = 1024;

/// The bits of a word by which elements are sorted.
fn key_bits(dtype: DType) -> u32 {
    if dtype.is_float() { 32 } else { 32.min(8 * dtype.size() as u32) }
}

/// `ordered(v)`: an unsigned number that sorts as the element does; nan behind all else, zeros alike.
pub(super) fn ordered(dtype: DType, descending: bool) -> String {
    let t = wgsl_type(words(dtype));
    // Narrow integers keep their own bits, with the sign turned over.
    let (bits, sign) = (u32::MAX >> (32 - key_bits(dtype)), 1u32 << (key_bits(dtype) - 1));
    let cut = format!("let k = (v ^ {sign}u) & {bits}u;");
    let body = match dtype.number() {
        Number::Bool | Number::U8 => "let k = v;",
        Number::I32 if !dtype.is_signed() => "let k = v;",
        Number::I32 if dtype.is_narrow() => &cut,
        Number::I32 => "let k = v ^ 0x80000000u;",
        Number::I64 => "let k = vec2<u32>(v.x, v.y ^ 0x80000000u);",
        Number::F32 => {
            "var k = select(v | 0x80000000u, ~v, (v >> 31u) == 1u);
if ((v & 0x7fffffffu) == 0u) { k = 0x80000000u; }
if ((v & 0x7fffffffu) > 0x7f800000u) { k = 0xffffffffu; }"
        }
        Number::C64 | Number::C128 => crate::backend::wgpu::elem::no_complex(),
        Number::F64 => {
            "var k = select(vec2<u32>(v.x, v.y | 0x80000000u), ~v, (v.y >> 31u) == 1u);
let high = v.y & 0x7fffffffu;
if (high == 0u && v.x == 0u) { k = vec2<u32>(0u, 0x80000000u); }
if (high > 0x7ff00000u || (high == 0x7ff00000u && v.x != 0u)) { k = vec2<u32>(0xffffffffu); }"
        }
    };
    format!("fn ordered(v: {t}) -> {t} {{\n{body}\nreturn {};\n}}\n", if descending { "~k" } else { "k" })
}

/// Rows of `x` along `dim`: their number, their length, and an iteration over their first elements.
pub(super) struct RowsAlong {
    pub walk: StridedWalk<1>,
    pub count: usize,
    pub length: usize,
    pub stride: usize,
    /// Elements between neighbours of a row in a row-major result.
    pub inner: usize,
}

impl RowsAlong {
    pub(super) fn new(x: &BufferView<'_>, dim: usize) -> RowsAlong {
        let others = (0..x.shape.len()).filter(|d| *d != dim);
        let walk = StridedWalk::ordered(others.map(|d| (x.shape[d], [x.strides[d]])));
        RowsAlong {
            count: walk.count(),
            walk,
            length: x.shape.get(dim).copied().unwrap_or(1),
            stride: x.strides.get(dim).map_or(0, |s| *s as usize),
            inner: x.shape.get(dim + 1..).map_or(1, |s| s.iter().product()),
        }
    }
}

/// Sorts along `dim`, stably, and writes the first `part.keep` of each row (`values`) with their original positions (`positions`, int64); both
/// are row-major.
pub fn sort(op: &'static str, values: BufferView<'_>, positions: BufferView<'_>, x: BufferView<'_>, dim: usize, part: Sort) -> Result<()> {
    let rows = RowsAlong::new(&x, dim);
    let all = countable(op, x.shape)?;
    if rows.length <= ROW {
        return sort_rows(op, values, positions, x, &rows, part);
    }
    let context = x.buffer.context();
    let (dtype, width) = (x.dtype, words(x.dtype));
    let descending = part.descending;
    let keys = scratch(context, all * width)?;
    let mut bindings = Bindings::new();
    let (to, from) = (bindings.write(&keys), bindings.read(x.buffer));
    let rank = rows.walk.rank();
    let numbers = ParamValues::default().push(all).push(rows.length).push(rows.stride).push(x.offset).walk(&rows.walk);
    Launch { op, bindings, numbers, groups: groups_for(all) }.run(context, &SortKeys { dtype, descending, rank, to, from })?;
    let bits = key_bits(dtype);
    let mut digits: Vec<Digits<'_>> = (0..width).map(|word| Digits::Key { keys: &keys, words: width, word, bits }).collect();
    if rows.count > 1 {
        digits.push(Digits::Row { length: rows.length, bits: usize::BITS - (rows.count - 1).leading_zeros() });
    }
    let order = radix::order(context, op, all, &digits)?;
    let n = rows.count * part.keep;
    let mut bindings = Bindings::new();
    let (to, at) = (bindings.write(values.buffer), bindings.write(positions.buffer));
    let (from, by) = (bindings.read(x.buffer), bindings.read(&order));
    let numbers = ParamValues::default().push(n).push(rows.length).push(rows.stride).push(x.offset).push(part.keep).push(rows.inner);
    let numbers = numbers.push(values.offset).push(positions.offset).walk(&rows.walk);
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &GatherSorted { width, rank, slots: [to, at, from, by] })
}

#[derive(Debug, Hash)]
struct SortKeys {
    dtype: DType,
    descending: bool,
    rank: u32,
    to: u32,
    from: u32,
}

impl WordKernel for SortKeys {
    const KIND: &'static str = "sort_keys";

    fn body(&self, p: &mut ParamNames) -> String {
        let width = words(self.dtype);
        let [all, length, stride, first] = p.many();
        let walk = p.walk(self.rank, "row", &["s"]);
        let (value, put) = (load(self.from, width, "s"), store(self.to, width, "e", "v"));
        ordered(self.dtype, self.descending)
            + &each(
                &all,
                &format!("let row = e / {length}; var s = {first} + (e % {length}) * {stride};\n{walk}let v = ordered({value});\n{put}"),
            )
    }
}

/// Writes values and positions in sorted order.
#[derive(Debug, Hash)]
struct GatherSorted {
    width: usize,
    rank: u32,
    /// Values, positions, the array, the order.
    slots: [u32; 4],
}

impl WordKernel for GatherSorted {
    const KIND: &'static str = "sort_out";

    fn body(&self, p: &mut ParamNames) -> String {
        let [to, at, from, by] = self.slots;
        let [n, length, stride, first, keep, inner, to_first, at_first] = p.many();
        let walk = p.walk(self.rank, "row", &["s"]);
        let (value, put) = (load(from, self.width, "s"), store(to, self.width, &format!("{to_first} + o"), "v"));
        let put_at = store(at, 2, &format!("{at_first} + o"), "place");
        each(
            &n,
            &format!(
                "let row = e / {keep}; let i = e % {keep};
let j = b{by}[row * {length} + i] % {length};
let o = ((row / {inner}) * {keep} + i) * {inner} + row % {inner};
var s = {first} + j * {stride};
{walk}let v = {value};
{put}let place = vec2<u32>(j, 0u);
{put_at}"
            ),
        )
    }
}

/// A bitonic sort of each row in one workgroup; equal elements are compared by position.
fn sort_rows(
    op: &'static str,
    values: BufferView<'_>,
    positions: BufferView<'_>,
    x: BufferView<'_>,
    rows: &RowsAlong,
    part: Sort,
) -> Result<()> {
    let (dtype, descending) = (x.dtype, part.descending);
    let size = rows.length.next_power_of_two().max(2);
    let mut bindings = Bindings::new();
    let (to, at, from) = (bindings.write(values.buffer), bindings.write(positions.buffer), bindings.read(x.buffer));
    let rank = rows.walk.rank();
    let numbers =
        ParamValues::default().push(rows.count).push(rows.length).push(rows.stride).push(x.offset).push(part.keep).push(rows.inner);
    let numbers = numbers.push(values.offset).push(positions.offset).walk(&rows.walk);
    let kernel = BitonicSort { dtype, descending, rank, size, slots: [to, at, from] };
    Launch { op, bindings, numbers, groups: rows.count }.run(x.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct BitonicSort {
    dtype: DType,
    descending: bool,
    rank: u32,
    /// A power of two that is not below the length of a row.
    size: usize,
    /// Values, positions, the array.
    slots: [u32; 3],
}

impl WordKernel for BitonicSort {
    const KIND: &'static str = "sort_rows";

    fn body(&self, p: &mut ParamNames) -> String {
        let (size, width, [to, at, from]) = (self.size, words(self.dtype), self.slots);
        let lanes = (size / 2).clamp(32, 256);
        let half = size / 2;
        let [count, length, stride, first, keep, inner, to_first, at_first] = p.many();
        let walk = p.walk(self.rank, "row", &["x0"]);
        let (value, put) = (load(from, width, "s"), store(to, width, &format!("{to_first} + o"), "v"));
        let put_at = store(at, 2, &format!("{at_first} + o"), "place");
        let t = wgsl_type(width);
        let below = if width == 2 {
            "let a = keys[i]; let b = keys[j];
if (a.y != b.y) { return a.y < b.y; }
if (a.x != b.x) { return a.x < b.x; }"
        } else {
            "if (keys[i] != keys[j]) { return keys[i] < keys[j]; }"
        };
        ordered(self.dtype, self.descending)
            + &format!(
                "var<workgroup> keys: array<{t}, {size}>;
var<workgroup> at: array<u32, {size}>;
fn below(i: u32, j: u32) -> bool {{
{below}
return at[i] < at[j];
}}
"
            )
            + &groups(
                lanes,
                &format!(
                    "let row = min(group, {count} - 1u);
var x0 = {first};
{walk}for (var j = lane; j < {size}u; j += {lanes}u) {{
at[j] = j;
keys[j] = {t}(0xffffffffu);
if (j < {length}) {{ let s = x0 + j * {stride}; keys[j] = ordered({value}); }}
}}
workgroupBarrier();
for (var k = 2u; k <= {size}u; k *= 2u) {{
for (var step = k / 2u; step > 0u; step /= 2u) {{
for (var i = lane; i < {half}u; i += {lanes}u) {{
let a = (i / step) * 2u * step + i % step; let b = a + step;
if (below(b, a) == ((a & k) == 0u)) {{
let key = keys[a]; keys[a] = keys[b]; keys[b] = key;
let place = at[a]; at[a] = at[b]; at[b] = place;
}}
}}
workgroupBarrier();
}}
}}
if (group < {count}) {{
for (var i = lane; i < {keep}; i += {lanes}u) {{
let s = x0 + at[i] * {stride};
let o = ((row / {inner}) * {keep} + i) * {inner} + row % {inner};
let v = {value};
{put}let place = vec2<u32>(at[i], 0u);
{put_at}}}
}}
"
                ),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied() {
            for descending in [false, true] {
                validate(&SortKeys { dtype, descending, rank: 2, to: 0, from: 1 }, 1);
                for size in [2, 64, ROW] {
                    validate(&BitonicSort { dtype, descending, rank: 1, size, slots: [0, 1, 2] }, 3);
                }
            }
        }
        for rank in [1, 3] {
            validate(&GatherSorted { width: rank.min(2), rank: 1, slots: [0, 1, 2, 3] }, 3);
        }
    }
}
