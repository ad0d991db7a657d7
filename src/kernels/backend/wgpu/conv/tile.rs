//! Tiles of a product in workgroup memory, with a block of 4 x 4 results in the registers of each invocation. While a tile is multiplied the
//! next one is read into registers. What a term of the sum adds to places and coordinates is the same for all rows and columns: some
//! invocations compute it once for the tile after the next.

use super::super::elem::value;
use super::ConvFactors;
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, groups, store_real};
use crate::layout::DType;
use std::fmt::Write;

/// The rows and columns of a tile, multiples of 4, and the terms of the sum that it has in workgroup memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConvTileSize {
    pub rows: usize,
    pub columns: usize,
    depth: usize,
}

pub(super) const TILES: [ConvTileSize; 4] = [
    ConvTileSize { rows: 32, columns: 32, depth: 16 },
    ConvTileSize { rows: 64, columns: 64, depth: 16 },
    ConvTileSize { rows: 32, columns: 128, depth: 16 },
    ConvTileSize { rows: 16, columns: 256, depth: 8 },
];

/// With fewer tiles than this, smaller ones are used.
const FEW: usize = 16;

impl ConvTileSize {
    fn invocations(self) -> usize {
        self.rows / 4 * (self.columns / 4)
    }

    /// Elements of 64 bits have half as many terms.
    pub fn depth_of(self, dtype: DType) -> usize {
        if dtype == DType::F64 { self.depth / 2 } else { self.depth }
    }
}

/// The tile for a product of this size.
pub(super) fn choose(rows: usize, columns: usize, groups: usize) -> usize {
    let tiles = |t: usize| groups * rows.div_ceil(TILES[t].rows) * columns.div_ceil(TILES[t].columns);
    let wide = match rows {
        0..=16 => 3,
        17..=32 => 2,
        _ => 1,
    };
    if columns <= 32 || tiles(wide) < FEW { 0 } else { wide }
}

/// A tiled product of floats.
#[derive(Debug, Hash)]
pub(super) struct ConvTile {
    pub factors: ConvFactors,
    pub tile: usize,
}

const LANES: [&str; 4] = ["x", "y", "z", "w"];

impl WordKernel for ConvTile {
    const KIND: &'static str = "conv_tile";

    fn body(&self, p: &mut ParamNames) -> String {
        let (f, n, tile) = (&self.factors, ConvFactors::names(p), TILES[self.tile]);
        let [down, across, parts, split, results, groups_] = p.many();
        let (t, depth, threads) = (value(f.dtype), tile.depth_of(f.dtype), tile.invocations());
        let (rq, cq) = (tile.rows / 4, tile.columns / 4);
        // One quadruple of padding keeps neighbours along the sum out of each other's banks.
        let (ra, rb) = (rq + 1, cq + 1);
        let mut s = f.functions(&n);
        let _ = write!(
            s,
            "var<workgroup> left: array<vec4<{t}>, {la}>;
var<workgroup> right: array<vec4<{t}>, {lb}>;
var<workgroup> terms: array<vec4<i32>, {depth}>;
var<workgroup> lefts: array<u32, {depth}>;
fn quad_left(m: u32, p: u32, start: u32) -> vec4<{t}> {{
var v = vec4<{t}>();
let at = start + m * {row} + lefts[p];
",
            la = depth * ra,
            lb = depth * rb,
            row = n.row[0],
        );
        for (i, c) in LANES.iter().enumerate() {
            let _ = writeln!(s, "if (m + {i}u < {}) {{ v.{c} = {}; }}", n.rows, f.load(f.left, &format!("at + {i}u * {}", n.row[0])));
        }
        s.push_str("return v;\n}\n");
        let mut b = format!(
            "if (group >= {groups_}) {{ return; }}
let tiles = {down} * {across};
let g = group / (tiles * {parts});
let part = (group / tiles) % {parts};
let row = (group % tiles) / {across} * {rows}u;
let first = (group % tiles) % {across} * {columns}u;
let begin = part * {split};
let end = min(begin + {split}, {along});
let tx = lane % {cq}u; let ty = lane / {cq}u;
let from_left = {left} + g * {left_group};
let from_gathered = {gathered} + g * {gathered_group};
let n0 = first + tx * 4u;
",
            rows = tile.rows,
            columns = tile.columns,
            along = n.along,
            left = n.starts[0],
            left_group = n.between[0],
            gathered = n.starts[1],
            gathered_group = n.between[1],
        );
        for i in 0..4 {
            // A column outside is one that is read in vain.
            let _ = writeln!(b, "let h{i} = column(min(n0 + {i}u, {} - 1u));", n.columns);
        }
        // Quadruples of the left factor lie along the sum first, those of the gathered one along columns.
        let (each_left, each_right) = (rq * depth / threads, cq * depth / threads);
        let guard = |count: usize| if count < threads { format!("if (lane < {count}u) ") } else { String::new() };
        let (mut fetch, mut store) = (String::new(), String::new());
        for i in 0..each_left.max(1) {
            let _ = writeln!(
                b,
                "let lp{i} = (lane + {o}u) % {depth}u; let lr{i} = (lane + {o}u) / {depth}u;\nvar lv{i} = vec4<{t}>();",
                o = i * threads
            );
            let guard = guard(rq * depth);
            let _ = writeln!(
                fetch,
                "{guard}{{ lv{i} = vec4<{t}>(); if (next + lp{i} < end) {{ lv{i} = quad_left(row + lr{i} * 4u, lp{i}, from_left); }} }}"
            );
            let _ = writeln!(store, "{guard}{{ left[lp{i} * {ra}u + lr{i}] = lv{i}; }}");
        }
        for i in 0..each_right.max(1) {
            let _ = writeln!(b, "let rp{i} = (lane + {}u) / {cq}u;\nvar rv{i} = vec4<{t}>();", i * threads);
            let guard = guard(cq * depth);
            let gathered: Vec<String> = (0..4).map(|j| format!("gathered(h{j} + term, from_gathered)")).collect();
            let _ = writeln!(
                fetch,
                "{guard}{{ rv{i} = vec4<{t}>(); if (next + rp{i} < end) {{ let term = terms[rp{i}]; rv{i} = vec4<{t}>({}); }} }}",
                gathered.join(", ")
            );
            let _ = writeln!(store, "{guard}{{ right[rp{i} * {rb}u + tx] = rv{i}; }}");
        }
        for i in 0..4 {
            let _ = writeln!(b, "var c{i} = vec4<{t}>();");
        }
        let describe = format!("if (lane < {depth}u) {{ let k = next + lane; terms[lane] = term(k); lefts[lane] = term_left(k); }}\n");
        let _ = write!(
            b,
            "var next = begin;
{describe}workgroupBarrier();
{fetch}workgroupBarrier();
while (next < end) {{
{store}next += {depth}u;
{describe}workgroupBarrier();
if (next < end) {{
{fetch}}}
for (var p = 0u; p < {depth}u; p += 1u) {{
let r = right[p * {rb}u + tx];
let l = left[p * {ra}u + ty];
c0 += l.x * r; c1 += l.y * r; c2 += l.z * r; c3 += l.w * r;
}}
workgroupBarrier();
}}
let to = {start} + part * {results} + g * {to_group};
",
            start = n.starts[3],
            to_group = n.between[2],
        );
        for (j, q) in LANES.iter().enumerate() {
            let _ = writeln!(b, "if (n0 + {j}u < {}) {{\nlet at = to + column_to(n0 + {j}u);", n.columns);
            for i in 0..4 {
                let put = store_real(f.dtype, f.to, &format!("at + m * {}", n.row[1]), "total");
                let _ = writeln!(
                    b,
                    "{{ let m = row + ty * 4u + {i}u; if (m < {rows}) {{ var total = c{i}.{q}; if (part == 0u) {{ total += bias_of(g * {rows} + m); }}\n{put}}} }}",
                    rows = n.rows
                );
            }
            b.push_str("}\n");
        }
        s + &groups(threads, &b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in [DType::F32, DType::F64] {
            for tile in 0..TILES.len() {
                for (dims, bias) in [(1, None), (2, Some(2)), (3, None), (3, Some(2))] {
                    let factors = ConvFactors { dtype, dims, left: 0, gathered: 1, bias, to: 3 };
                    validate(&ConvTile { factors, tile }, 8);
                }
            }
        }
    }

    #[test]
    fn tiles_fit_what_every_adapter_offers() {
        for t in TILES {
            for (dtype, bytes) in [(DType::F32, 16), (DType::F64, 32)] {
                let depth = t.depth_of(dtype);
                let quads = [t.rows / 4, t.columns / 4];
                assert!(depth * ((quads[0] + quads[1] + 2) * bytes + 20) <= 16384, "{t:?}");
                let threads = t.invocations();
                assert!(threads <= 256 && depth <= threads, "{t:?}");
                // Whole rounds of loads, or a part of one.
                assert!(quads.iter().all(|q| (q * depth).is_multiple_of(threads) || q * depth < threads), "{t:?}");
                assert!(threads.is_multiple_of(quads[1]) && (threads.is_multiple_of(depth) || quads[0] * depth <= threads), "{t:?}");
            }
        }
    }
}
