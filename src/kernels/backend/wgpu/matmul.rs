//! Matrix products over any strides: tiles in shared memory with a block of results in the registers of each invocation; products with
//! little reuse of elements, and those of integers, as reductions of elementwise products.
//!
//! The choice between them and the order of additions depend on sizes and strides alone.

use super::pointwise::elementwise::{self, Elementwise};
use super::reduce::{DeviceReducer, reduce};
use super::wgsl::expr::Formula;
use super::{Bindings, Buffer, BufferView, Dispatch, Key, PointwiseInput, scratch_size};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::strided::{Params, StridedWalk, check, entry_sized, header, param, slots, wgsl};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::Matmul;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Strides};
use smallvec::SmallVec;
use std::fmt::Write;
use std::sync::Arc;

/// Workgroups that give each multiprocessor of a large device one. With fewer of them tiles are smaller, and a long sum is cut into several
/// parts: with more, adding up the parts took longer than they gained (2048 x 2048 on an H100).
const ENOUGH: usize = 128;
/// Workgroups of all parts of a sum that is cut.
const BUSY: usize = 512;
/// With fewer tiles than this, smaller tiles are used.
const FEW: usize = 16;
/// Products that one part of a cut sum has at least.
const PART: usize = 512;
/// Words of the parameters before the walk.
const FIXED: usize = 16;

/// A tile: the rows and columns of results, the depth of the sum that is in shared memory at once, and the block of results of one
/// invocation (multiples of 4 rows and columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MatmulTile {
    rows: usize,
    columns: usize,
    depth: usize,
    block: (usize, usize),
}

const TILES: [MatmulTile; 3] = [
    MatmulTile { rows: 32, columns: 32, depth: 16, block: (4, 4) },
    MatmulTile { rows: 64, columns: 64, depth: 16, block: (4, 4) },
    MatmulTile { rows: 128, columns: 128, depth: 8, block: (8, 8) },
];

impl MatmulTile {
    fn invocations(self) -> usize {
        self.rows / self.block.0 * (self.columns / self.block.1)
    }
}

/// The properties that the source of a shader depends on.
#[derive(Debug, Clone, Copy)]
struct MatmulShader {
    tile: usize,
    /// Neighbouring invocations read neighbours along the sum (else along rows of `a`, columns of `b`).
    along: (bool, bool),
    rank: u32,
    /// Binding numbers: factors and product.
    slots: [u32; 3],
    writes: u32,
}

impl MatmulShader {
    fn key(&self, bindings: &Bindings<'_>) -> Key {
        let flags = self.tile as u32 | u32::from(self.along.0) << 4 | u32::from(self.along.1) << 5 | self.rank << 8;
        let [at, writes] = slots(&self.slots, bindings);
        Key::new("matmul", SmallVec::from_slice(&[flags, at, writes]))
    }

    fn source(&self) -> String {
        let tile = TILES[self.tile];
        let MatmulTile { rows, columns, depth, block } = tile;
        let threads = tile.invocations();
        let [a, b, out] = self.slots;
        let (m, n, k) = (param(0), param(1), param(2));
        let (down, across, splits, split) = (param(3), param(4), param(5), param(6));
        let mut s = header(&[(a, "f32"), (b, "f32"), (out, "f32")], self.writes, FIXED + self.rank as usize * 3);
        // One quadruple of padding keeps neighbours along the sum out of each other's banks.
        let (ra, rb) = (rows / 4 + 1, columns / 4 + 1);
        let _ =
            write!(s, "var<workgroup> left: array<vec4<f32>, {}>;\nvar<workgroup> right: array<vec4<f32>, {}>;\n", depth * ra, depth * rb);
        for (name, buffer, size, across_step, along_step) in [("a", a, &m, param(7), param(8)), ("b", b, &n, param(10), param(9))] {
            // Four elements across the sum at place `p` of it; zeros outside.
            let _ = write!(s, "fn quad_{name}(r: u32, p: u32, from_: u32) -> vec4<f32> {{\nvar v = vec4<f32>();\n");
            let _ = write!(s, "if (p < {k}) {{\nlet at = from_ + p * {along_step} + r * {across_step};\n");
            for (i, c) in ["x", "y", "z", "w"].iter().enumerate() {
                let _ = writeln!(s, "if (r + {i}u < {size}) {{ v.{c} = b{buffer}[at + {i}u * {across_step}]; }}");
            }
            s.push_str("}\nreturn v;\n}\n");
        }
        s.push_str(&entry_sized(threads));
        let _ = write!(
            s,
            "let tiles = {down} * {across};\n\
             if (group >= {groups}) {{ return; }}\n\
             let batch = group / (tiles * {splits});\n\
             let part = (group / tiles) % {splits};\n\
             let row = (group % tiles) / {across} * {rows}u;\n\
             let column = (group % tiles) % {across} * {columns}u;\n\
             var o0 = {oa}; var o1 = {ob};\n{walk}\
             let begin = part * {split};\n\
             let end = min(begin + {split}, {k});\n\
             let tx = (lid % {per_row}u); let ty = lid / {per_row}u;\n",
            groups = param(14),
            oa = param(11),
            ob = param(12),
            walk = wgsl(self.rank, FIXED, "batch", &["o0", "o1"]),
            per_row = columns / block.1,
        );
        // Which groups of four an invocation loads: number q is (across, along).
        let loads = |name: &str, size: usize, stride: usize, along: bool, origin: &str| {
            let quads = size / 4;
            let each = quads * depth / threads;
            let (mut place, mut fetch, mut put) = (String::new(), String::new(), String::new());
            for i in 0..each.max(1) {
                let q = format!("(lid + {}u)", i * threads);
                let (c, p) = if along {
                    (format!("{q} / {depth}u"), format!("{q} % {depth}u"))
                } else {
                    (format!("{q} % {quads}u"), format!("{q} / {quads}u"))
                };
                let from = if name == "a" { "o0" } else { "o1" };
                let _ = writeln!(place, "let {name}c{i} = {c}; let {name}p{i} = {p}; var {name}v{i} = vec4<f32>();");
                let fetched = format!("{name}v{i} = quad_{name}({origin} + {name}c{i} * 4u, next + {name}p{i}, {from});\n");
                let stored = format!("{}[{name}p{i} * {stride}u + {name}c{i}] = {name}v{i};\n", if name == "a" { "left" } else { "right" });
                if quads * depth < threads {
                    let guard = format!("if (lid < {}u) {{ ", quads * depth);
                    fetch += &format!("{guard}{fetched}}}\n");
                    put += &format!("{guard}{stored}}}\n");
                } else {
                    fetch += &fetched;
                    put += &stored;
                }
            }
            (place, fetch, put)
        };
        let (place_a, fetch_a, put_a) = loads("a", rows, ra, self.along.0, "row");
        let (place_b, fetch_b, put_b) = loads("b", columns, rb, self.along.1, "column");
        s += &place_a;
        s += &place_b;
        let (bm, bn) = (block.0, block.1 / 4);
        for i in 0..bm {
            for j in 0..bn {
                let _ = writeln!(s, "var c{i}_{j} = vec4<f32>();");
            }
        }
        let _ = write!(
            s,
            "var next = begin;\n{fetch_a}{fetch_b}while (next < end) {{\n{put_a}{put_b}workgroupBarrier();\nnext += {depth}u;\nif (next < end) {{\n{fetch_a}{fetch_b}}}\n"
        );
        // Only the last part of the sum can end inside a tile, because `split` is a multiple of the depth.
        let _ = writeln!(s, "for (var p = 0u; p < {depth}u; p += 1u) {{");
        for j in 0..bn {
            let _ = writeln!(s, "let r{j} = right[p * {rb}u + tx + {}u];", j * (columns / 4 / bn));
        }
        for i in 0..bm / 4 {
            let _ = writeln!(s, "let l{i} = left[p * {ra}u + ty + {}u];", i * (rows / 4 / (bm / 4)));
        }
        for i in 0..bm {
            for j in 0..bn {
                let _ = writeln!(s, "c{i}_{j} += l{}.{} * r{j};", i / 4, ["x", "y", "z", "w"][i % 4]);
            }
        }
        let _ = write!(s, "}}\nworkgroupBarrier();\n}}\nlet to = {} + (part * {} + batch) * {m} * {n};\n", param(13), param(15));
        for i in 0..bm {
            let r = format!("row + (ty + {}u) * 4u + {}u", i / 4 * (rows / 4 / (bm / 4)), i % 4);
            let _ = writeln!(s, "{{ let r = {r};\nif (r < {m}) {{");
            for j in 0..bn {
                let _ = writeln!(s, "{{ let c = column + (tx + {}u) * 4u; let at = to + r * {n} + c;", j * (columns / 4 / bn));
                for (q, w) in ["x", "y", "z", "w"].iter().enumerate() {
                    let _ = writeln!(s, "if (c + {q}u < {n}) {{ b{out}[at + {q}u] = c{i}_{j}.{w}; }}");
                }
                s.push_str("}\n");
            }
            s.push_str("} }\n");
        }
        s.push_str("}\n");
        s
    }
}

/// The product of matrices: `a` is (batch, m, k) and `b` (batch, k, n) of one dtype, with any strides (0 where a batch is broadcast);
/// `out` is row-major (batch, m, n).
pub fn matmul(op: &'static str, a: BufferView<'_>, b: BufferView<'_>, out: BufferView<'_>) -> Result<()> {
    let rank = a.shape.len();
    let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
    if a.dtype == DType::Bool {
        return Err(Error::not_implemented(format!("{op}: not implemented for bool on wgpu yet; move the tensor with .cpu()")));
    }
    let batch = StridedWalk::ordered((0..rank - 2).map(|d| (a.shape[d], [a.strides[d], b.strides[d]])));
    let count = batch.count();
    if count * m * n == 0 {
        return Ok(());
    }
    check(op, &a)?;
    check(op, &b)?;
    check(op, &out)?;
    if a.dtype.is_complex() && m * n > 64 && k > 1 {
        return by_parts(op, a, b, out);
    }
    if a.dtype != DType::F32 || m == 1 || n == 1 || k == 0 || m * n <= 64 {
        return by_reduction(op, a, b, out);
    }
    let groups = |t: &MatmulTile| count * m.div_ceil(t.rows) * n.div_ceil(t.columns);
    let tile = match () {
        () if m.min(n) >= 128 && groups(&TILES[2]) >= ENOUGH => 2,
        () if m.min(n) <= 32 || groups(&TILES[1]) < FEW => 0,
        () => 1,
    };
    let t = TILES[tile];
    let parts = if groups(&t) < ENOUGH { (BUSY / groups(&t)).min(k / PART).max(1) } else { 1 };
    let split = k.div_ceil(parts).next_multiple_of(t.depth);
    let parts = k.div_ceil(split);
    let (shape, strides) = ([parts, count * m * n], [(count * m * n) as isize, 1]);
    let sums = if parts > 1 { Some(Buffer::new(a.buffer.context(), parts * count * m * n * 4)?) } else { None };
    let to = match &sums {
        Some(buffer) => BufferView { buffer, offset: 0, shape: &shape, strides: &strides, dtype: DType::F32 },
        None => out,
    };
    let mut params = Params::new();
    let mut bindings = Bindings::new();
    let at = [bindings.read(a.buffer), bindings.read(b.buffer), bindings.write(to.buffer)];
    let (a_steps, b_steps) = ((a.strides[rank - 2], a.strides[rank - 1]), (b.strides[rank - 2], b.strides[rank - 1]));
    let form = MatmulShader {
        tile,
        along: (a_steps.1.abs() < a_steps.0.abs(), b_steps.0.abs() < b_steps.1.abs()),
        rank: batch.rank(),
        slots: at,
        writes: bindings.writes(),
    };
    let (down, across) = (m.div_ceil(t.rows), n.div_ceil(t.columns));
    let groups = groups(&t) * parts;
    params.extend([m, n, k, down, across, parts, split].map(|v| v as u32));
    params.extend([a_steps.0, a_steps.1, b_steps.0, b_steps.1].map(|v| v as u32));
    params.extend([a.offset, b.offset, to.offset, groups, count].map(|v| v as u32));
    debug_assert_eq!(params.len(), FIXED);
    batch.push(&mut params);
    a.buffer.context().dispatch(Dispatch {
        op,
        key: form.key(&bindings),
        source: &|| form.source(),
        bindings,
        params: &params,
        groups,
        checked: false,
    })?;
    match sums {
        Some(_) => reduce(op, DeviceReducer::Sum, &[to], None, &[true, false], 0.0, &[out]),
        None => Ok(()),
    }
}

/// The product of complex matrices: those of the real and imaginary parts, as a batch of four, then their differences and sums.
fn by_parts(op: &'static str, a: BufferView<'_>, b: BufferView<'_>, out: BufferView<'_>) -> Result<()> {
    let real = DType::F32;
    // The part is the first of two more dimensions for the left factor, the second one for the right one.
    let parts = |v: &BufferView<'_>, steps: [isize; 2]| -> (Dims, Strides) {
        let shape = [2, 2].into_iter().chain(v.shape.iter().copied()).collect();
        (shape, steps.into_iter().chain(v.strides.iter().map(|s| 2 * s)).collect())
    };
    let ((shape_a, strides_a), (shape_b, strides_b)) = (parts(&a, [1, 0]), parts(&b, [0, 1]));
    let numel: usize = out.shape.iter().product();
    let products = Buffer::new(out.buffer.context(), 4 * numel * scratch_size(real))?;
    let dense = Layout::contiguous_strides(out.shape);
    let (shape, strides) = ([4, numel], [numel as isize, 1]);
    matmul(
        op,
        BufferView { offset: 2 * a.offset, shape: &shape_a, strides: &strides_a, dtype: real, ..a },
        BufferView { offset: 2 * b.offset, shape: &shape_b, strides: &strides_b, dtype: real, ..b },
        BufferView { buffer: &products, offset: 0, shape: &shape, strides: &strides, dtype: real },
    )?;
    let product = |k: usize| BufferView { buffer: &products, offset: k * numel, shape: out.shape, strides: &dense, dtype: real };
    elementwise::run(
        out,
        &Elementwise {
            op,
            kind: "complex product",
            code: &[],
            ins: (0..4).map(|k| (PointwiseInput::View(product(k)), real)).collect(),
            numbers: SmallVec::new(),
            divisor: None,
            body: &|x, _| Formula::just(&format!("vec2<f32>({} - {}, {} + {})", x[0], x[3], x[1], x[2]), DType::C64),
        },
    )
}

/// Every result as a sum over (batch, m, n, k), where `a` repeats along n and `b` along m.
fn by_reduction(op: &'static str, a: BufferView<'_>, b: BufferView<'_>, out: BufferView<'_>) -> Result<()> {
    let lead = a.shape.len() - 2;
    let mut shape = Dims::from_slice(&a.shape[..lead]);
    shape.extend([a.shape[lead], b.shape[lead + 1], a.shape[lead + 1]]);
    let mut sa = Strides::from_slice(&a.strides[..lead]);
    sa.extend([a.strides[lead], 0, a.strides[lead + 1]]);
    let mut sb = Strides::from_slice(&b.strides[..lead]);
    sb.extend([0, b.strides[lead + 1], b.strides[lead]]);
    let reduced: SmallVec<[bool; 8]> = (0..shape.len()).map(|d| d == lead + 2).collect();
    let (a, b) = (BufferView { shape: &shape, strides: &sa, ..a }, BufferView { shape: &shape, strides: &sb, ..b });
    reduce(op, DeviceReducer::Dot, &[a, b], None, &reduced, 0.0, &[out])
}

impl WgpuFamily for Matmul {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(_: &Matmul, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        matmul("matmul", operand(ins, 0)?, operand(ins, 1)?, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;

    #[test]
    fn every_shader_is_valid() {
        for tile in 0..TILES.len() {
            for (along, rank, slots) in [((true, false), 0, [0, 1, 2]), ((false, true), 2, [0, 1, 2]), ((true, true), 1, [0, 0, 1])] {
                let form = MatmulShader { tile, along, rank, slots, writes: 1 << slots[2] };
                validate::check(&format!("{form:?}"), &form.source());
            }
        }
    }

    #[test]
    fn tiles_fit_what_every_adapter_offers() {
        for t in TILES {
            assert!(t.depth * (t.rows / 4 + 1 + t.columns / 4 + 1) * 16 <= 16384, "{t:?}");
            assert!(t.invocations() <= 256 && t.rows * t.depth / 4 % t.invocations().min(t.rows * t.depth / 4) == 0, "{t:?}");
        }
    }
}
