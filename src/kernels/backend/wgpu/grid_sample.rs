//! Images read at the places of a grid. Reading, and the gradient of the grid, are one dispatch each: an invocation finds the neighbours of
//! its place and goes through them. The gradient of the image is two: one writes each neighbour's position and share, then the shares are
//! added up in an order that depends on the positions alone (`index::scatter`), since there are no atomic sums of floats.
//!
//! A place has 4 to 16 neighbours of some 30 operations each, for 4 to 16 scattered reads: bound by memory.

use super::copy::fill;
use super::elem::value;
use super::index::scatter as scatter_shares;
use super::index::scatter::ScatterSource;
use super::{Bindings, Buffer, BufferView, scratch_size};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load_real, store, store_real, unsupported,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{GridBorder, GridMode, GridPass, GridSample, Write};
use crate::error::Result;
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Debug, Hash)]
struct GridKernel {
    dtype: DType,
    /// Axes: 2 or 3.
    rank: usize,
    mode: GridMode,
    border: GridBorder,
    align_corners: bool,
    code: GridCode,
    grid: u32,
    to: u32,
}

/// Bindings of the image, of the gradient, and of the neighbours' positions.
#[derive(Debug, Clone, Copy, Hash)]
enum GridCode {
    Read { x: u32 },
    Grid { g: u32, x: u32 },
    Shares { g: u32, at: u32 },
}

impl GridKernel {
    /// Neighbours along one axis.
    fn neighbours(&self) -> usize {
        neighbours(self.mode)
    }

    /// The functions `brought` (a place inside, and the derivative of that), `position` (-1: outside) and `along` (the neighbours).
    fn functions(&self) -> String {
        let (t, k) = (value(self.dtype), self.neighbours());
        let turned = match self.border {
            GridBorder::Zeros => format!("return vec2<{t}>(at, {t}(1));\n"),
            GridBorder::Border => String::new(),
            GridBorder::Reflection => {
                let (low, span) =
                    if self.align_corners { (format!("{t}()"), "last".into()) } else { (format!("{t}(-0.5)"), format!("(last + {t}(1))")) };
                format!(
                    "let span = {span};
if (span == {t}()) {{ return vec2<{t}>(); }}
let low = {low};
var size = u - low;
if ({t}_lt(size, {t}())) {{ size = -size; turn = {t}(-1); }}
let extra = {t}_fmod(size, span);
if ({t}_fmod({t}_floor({t}_div(size, span)), {t}(2)) == {t}()) {{ u = extra + low; }} else {{ u = (span + low) - extra; turn = -turn; }}
"
                )
            }
        };
        let clipped = if self.border == GridBorder::Zeros {
            String::new()
        } else {
            // Nan counts as 0.
            format!(
                "if (!{t}_lt({t}(), u)) {{ return vec2<{t}>(); }}
if (!{t}_lt(u, last)) {{ return vec2<{t}>(last, {t}()); }}
return vec2<{t}>(u, turn);
"
            )
        };
        let (place, scale) = if self.align_corners {
            (format!("{t}_keep((v + {t}(1)) * {t}(0.5)) * (size - {t}(1))"), format!("(size - {t}(1)) * {t}(0.5)"))
        } else {
            (format!("({t}_keep((v + {t}(1)) * size) - {t}(1)) * {t}(0.5)"), format!("size * {t}(0.5)"))
        };
        let found = match self.mode {
            GridMode::Nearest => format!("r.at[0] = position({t}_round(brought(u, size - {t}(1)).x), size);\nr.weight[0] = {t}(1);\n"),
            GridMode::Linear => format!(
                "let inside = brought(u, size - {t}(1));
let low = {t}_floor(inside.x);
let part = inside.x - low;
let slope = scale * inside.y;
r.at[0] = position(low, size); r.at[1] = position(low + {t}(1), size);
r.weight[0] = {t}(1) - part; r.weight[1] = part;
r.slope[0] = -slope; r.slope[1] = slope;
"
            ),
            // Cubic convolution with the parameter -0.75 (Keys 1981): the coefficients of the far and of the near neighbours.
            GridMode::Cubic => format!(
                "let low = {t}_floor(u);
let part = u - low;
for (var k = 0; k < 4; k++) {{
r.at[k] = position(brought(low + {t}(k - 1), size - {t}(1)).x, size);
let far = k == 0 || k == 3;
let before = k < 2;
let d = select({t}(k - 1) - part, part - {t}(k - 1), before);
let c3 = select({t}(1.25), {t}(-0.75), far); let c2 = select({t}(-2.25), {t}(3.75), far);
let c1 = select({t}(), {t}(-6), far); let c0 = select({t}(1), {t}(3), far);
r.weight[k] = ((c3 * d + c2) * d + c1) * d + c0;
let slope = (({t}(3) * c3 * d + {t}(2) * c2) * d + c1) * scale;
r.slope[k] = select(-slope, slope, before);
}}
"
            ),
        };
        format!(
            "struct Neighbours {{ at: array<i32, {k}>, weight: array<{t}, {k}>, slope: array<{t}, {k}> }}
fn brought(at: {t}, last: {t}) -> vec2<{t}> {{
var u = at; var turn = {t}(1);
{turned}{clipped}}}
fn position(u: {t}, size: {t}) -> i32 {{
if ({t}_le({t}(), u) && {t}_le(u, size - {t}(1))) {{ return i32(u); }}
return -1;
}}
fn along(v: {t}, n: u32) -> Neighbours {{
let size = {t}(n);
let u = {place};
let scale = {scale};
var r = Neighbours();
{found}return r;
}}
"
        )
    }

    /// A loop over the neighbours of a place: `at` is the position in the plane, -1 outside, and `neighbour` its number.
    fn over_neighbours(&self, sizes: &[String; 3], body: &str) -> String {
        let k = self.neighbours();
        let (mut open, mut close, mut inside, mut place) = (String::new(), String::new(), Vec::new(), String::new());
        for a in 0..self.rank {
            open += &format!("for (var k{a} = 0; k{a} < {k}; k{a}++) {{\n");
            close += "}\n";
            inside.push(format!("axis{a}.at[k{a}] >= 0"));
            let size = &sizes[3 - self.rank + a];
            place = if a == 0 { format!("axis{a}.at[k{a}]") } else { format!("({place} * i32({size}) + axis{a}.at[k{a}])") };
        }
        let inside = inside.join(" && ");
        format!("var neighbour = 0u;\n{open}let at = select(-1, {place}, {inside});\n{body}neighbour++;\n{close}")
    }

    /// The product of the neighbour's weights, or of the derivative along `slope` and the others.
    fn weight(&self, slope: Option<usize>) -> String {
        let of = |a: usize| format!("axis{a}.{}[k{a}]", if Some(a) == slope { "slope" } else { "weight" });
        (0..self.rank).map(of).collect::<Vec<_>>().join(" * ")
    }
}

fn neighbours(mode: GridMode) -> usize {
    match mode {
        GridMode::Nearest => 1,
        GridMode::Linear => 2,
        GridMode::Cubic => 4,
    }
}

impl WordKernel for GridKernel {
    const KIND: &'static str = "grid_sample";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, zero, channels, places, from, g_from, grid, to]: [String; 8] = p.many();
        let sizes: [String; 3] = p.many();
        let (t, d, rank) = (value(self.dtype), self.dtype, self.rank);
        let plane = sizes[3 - rank..].join(" * ");
        // The grid's first number is the place along the last axis.
        let axes: String = (0..rank)
            .map(|a| {
                let v = load_real(d, self.grid, &format!("{grid} + (n * {places} + p) * {rank}u + {}u", rank - 1 - a));
                format!("var axis{a} = along({v}, {});\n", sizes[3 - rank + a])
            })
            .collect();
        let element = |x: u32| load_real(d, x, &format!("{from} + (n * {channels} + c) * ({plane}) + u32(at)"));
        let of_channel = format!("let p = e % {places}; let c = (e / {places}) % {channels}; let n = e / ({places} * {channels});\n");
        let code = match self.code {
            GridCode::Read { x } => format!(
                "{of_channel}{axes}var sum = {t}();\n{}{}",
                self.over_neighbours(&sizes, &format!("if (at >= 0) {{ sum += {} * ({}); }}\n", element(x), self.weight(None))),
                store_real(d, self.to, &format!("{to} + e"), "sum"),
            ),
            GridCode::Grid { g, x } => {
                let gradient = load_real(d, g, &format!("{g_from} + (n * {channels} + c) * {places} + p"));
                let (mut sums, mut add, mut put) = (String::new(), String::new(), String::new());
                for a in 0..rank {
                    sums += &format!("var sum{a} = {t}();\n");
                    add += &format!("sum{a} += v * ({});\n", self.weight(Some(a)));
                    put += &store_real(d, self.to, &format!("{to} + e * {rank}u + {}u", rank - 1 - a), &format!("sum{a}"));
                }
                let body = format!("if (at >= 0) {{\nlet v = {} * gradient;\n{add}}}\n", element(x));
                format!(
                    "let p = e % {places}; let n = e / {places};\n{axes}{sums}for (var c = 0u; c < {channels}; c++) {{\nlet gradient = {gradient};\n{}}}\n{put}",
                    self.over_neighbours(&sizes, &body)
                )
            }
            GridCode::Shares { g, at } => {
                let all = format!("{}u", self.neighbours().pow(rank as u32));
                // What is outside adds nothing to the first element.
                let body = format!(
                    "if (c == 0u) {{\nlet safe = vec2<u32>(u32(max(at, 0)), 0u);\n{}}}\n{}",
                    store(at, 2, &format!("(n * {all} + neighbour) * {places} + p"), "safe"),
                    store_real(
                        d,
                        self.to,
                        &format!("((n * {channels} + c) * {all} + neighbour) * {places} + p"),
                        &format!("select({t}(), gradient * ({}), at >= 0)", self.weight(None)),
                    ),
                );
                format!(
                    "{of_channel}{axes}let gradient = {};\n{}",
                    load_real(d, g, &format!("{g_from} + e")),
                    self.over_neighbours(&sizes, &body)
                )
            }
        };
        self.functions() + &each(&count, &format!("unknown = {zero};\n{code}"))
    }
}

/// Runs a request. All operands are row-major.
pub fn grid_sample(s: &GridSample, ins: &[BufferView<'_>], out: BufferView<'_>) -> Result<()> {
    let (op, dtype, rank, plane) = (s.op, out.dtype, s.axes().len(), s.plane());
    if !dtype.is_float() {
        return Err(unsupported(op, dtype));
    }
    countable(op, out.shape)?;
    let of_results = countable(op, &[s.batch, s.channels, s.places])?;
    countable(op, &[s.batch, s.channels, plane])?;
    countable(op, &[s.batch, s.places, rank])?;
    let context = out.buffer.context();
    let (gradient, x, grid) = match s.pass {
        GridPass::Read => (None, ins[0], ins[1]),
        GridPass::ImageGradient | GridPass::GridGradient => (Some(ins[0]), ins[1], ins[2]),
    };
    let numbers = |count: usize, to: usize| {
        let n = ParamValues::default().push(count).push(0).push(s.channels).push(s.places);
        let n = n.push(x.offset).push(gradient.map_or(0, |g| g.offset)).push(grid.offset).push(to);
        n.push(s.sizes[0]).push(s.sizes[1]).push(s.sizes[2])
    };
    let kernel =
        |code, grid, to| GridKernel { dtype, rank, mode: s.mode, border: s.border, align_corners: s.align_corners, code, grid, to };
    match (s.pass, gradient) {
        (GridPass::ImageGradient, Some(g)) => {
            let all = neighbours(s.mode).pow(rank as u32) * s.places;
            let shape = [s.batch, s.channels, all];
            let each_share = countable(op, &shape)?;
            fill(out, Scalar::Int(0))?;
            if each_share == 0 {
                return Ok(());
            }
            let shares = Buffer::new(context, each_share * scratch_size(dtype))?;
            let at = Buffer::new(context, s.batch * all * scratch_size(DType::I64))?;
            let mut bindings = Bindings::new();
            let code = GridCode::Shares { g: bindings.read(g.buffer), at: bindings.write(&at) };
            let kernel = kernel(code, bindings.read(grid.buffer), bindings.write(&shares));
            Launch { op, bindings, numbers: numbers(of_results, 0), groups: groups_for(of_results) }.run(context, &kernel)?;
            let (to_shape, to_strides) = ([s.batch, s.channels, plane], [(s.channels * plane) as isize, plane as isize, 1]);
            let to = BufferView { shape: &to_shape, strides: &to_strides, ..out };
            let strides = [(s.channels * all) as isize, all as isize, 1];
            let from = BufferView { buffer: &shares, offset: 0, shape: &shape, strides: &strides, dtype };
            let strides = [all as isize, 0, 1];
            let at = BufferView { buffer: &at, offset: 0, shape: &shape, strides: &strides, dtype: DType::I64 };
            scatter_shares(op, to, at, ScatterSource::View(from), Write::Add, 2, plane)
        }
        (GridPass::GridGradient, Some(g)) => {
            let count = s.batch * s.places;
            let mut bindings = Bindings::new();
            let code = GridCode::Grid { g: bindings.read(g.buffer), x: bindings.read(x.buffer) };
            let kernel = kernel(code, bindings.read(grid.buffer), bindings.write(out.buffer));
            Launch { op, bindings, numbers: numbers(count, out.offset), groups: groups_for(count) }.run(context, &kernel)
        }
        _ => {
            let mut bindings = Bindings::new();
            let code = GridCode::Read { x: bindings.read(x.buffer) };
            let kernel = kernel(code, bindings.read(grid.buffer), bindings.write(out.buffer));
            Launch { op, bindings, numbers: numbers(of_results, out.offset), groups: groups_for(of_results) }.run(context, &kernel)
        }
    }
}

impl WgpuFamily for GridSample {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        if self.pass == GridPass::ImageGradient { Halves::Accumulated } else { Halves::InFloat32 }
    }

    fn compute(g: &GridSample, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 3]>>>()?;
        grid_sample(g, &from, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in [DType::F32, DType::F64] {
            for (rank, mode) in
                [(2, GridMode::Linear), (2, GridMode::Nearest), (2, GridMode::Cubic), (3, GridMode::Linear), (3, GridMode::Nearest)]
            {
                for border in [GridBorder::Zeros, GridBorder::Border, GridBorder::Reflection] {
                    for align_corners in [false, true] {
                        let kernel = |code, to| GridKernel { dtype, rank, mode, border, align_corners, code, grid: 2, to };
                        validate(&kernel(GridCode::Read { x: 0 }, 3), 8);
                        validate(&kernel(GridCode::Grid { g: 0, x: 1 }, 3), 8);
                        validate(&kernel(GridCode::Shares { g: 0, at: 1 }, 3), 10);
                    }
                }
            }
        }
    }
}
