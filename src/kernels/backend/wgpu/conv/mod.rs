//! Convolution. Each pass is a product of matrices of which one is gathered from patches as it is read:
//!
//! | pass | rows | columns | along the sum | left factor | gathered factor |
//! | --- | --- | --- | --- | --- | --- |
//! | forward | channels of y | batch, places of y | channels of x, kernel | weight | x |
//! | input | channels of x | batch, places of x | channels of y, kernel | weight | gradient of y |
//! | weight | channels of y | channels of x, kernel | batch, places of y | gradient of y | x |
//!
//! All groups of channels, images and channels are one dispatch. The shape of the product chooses its form: tiles in workgroup memory (`tile`),
//! one invocation for each result, or one workgroup for each result (`direct`). A tiled product with a long sum and few tiles is cut into
//! parts, which a second dispatch adds up.
//!
//! The gradient of the input of a convolution with strides falls into phases: places that are a stride apart meet the same taps, and one phase
//! gathers with steps of 1. Each is a dispatch.
//!
//! A product of a tile of R x C takes 2 R C / (4 (R + C)) float32 operations for each byte that it reads: 16 for 64 x 64, 12.8 for 32 x 128,
//! 7.5 for 16 x 256. The direct forms take a quarter of an operation for each byte, which mostly comes from caches: they are for depthwise
//! convolutions and few channels, whose products have nothing to share.
//!
//! Not here: strides of operands (they are row-major), and floats of 16 bits, which run in float32.

pub(super) mod compute;
mod direct;
mod tile;

use super::elem::{load, value, zero};
use super::reduce::{DeviceReducer, reduce};
use super::{Bindings, Buffer, BufferView};
use crate::backend::wgpu::common::word_kernels;
use crate::backend::wgpu::common::word_kernels::{GROUP, Launch, ParamNames, ParamValues, countable, groups_for, unsupported, wgsl_type};
use crate::call::{Conv, ConvPass, ConvShape};
use crate::error::Result;
use crate::layout::DType;
use direct::{ConvEach, ConvSum};
use tile::{ConvTile, TILES};

/// Workgroups that fill a large device, some for each of its multiprocessors. With fewer of them a long sum is cut into several parts.
const BUSY: usize = 512;
/// Elements of all the parts of a result.
const PARTIAL: usize = 1 << 24;
/// Results of a column that one invocation adds up, so that it gathers once for them.
const ROWS: usize = 4;
/// Products that one part of a cut sum has at least.
const PART: usize = 512;
/// A shorter sum, or fewer rows, are not worth a tile.
const SHORT: usize = 8;
/// A longer sum of few results is added up by a workgroup.
const LONG: usize = 256;
/// Workgroups whose invocations have a result each: fewer results than those are few.
const FEW: usize = 128;

/// How an index of columns, or one along the sum, becomes a place: a leading part and three spatial ones.
#[derive(Debug, Clone, Copy)]
struct ConvWalk {
    lead: usize,
    sizes: [usize; 3],
    /// What a step in each spatial dimension adds to the coordinate in the gathered factor; wraps around where it is negative.
    steps: [u32; 3],
    /// What the coordinates begin with.
    starts: [u32; 3],
    /// What a step of the leading part adds to the place in the gathered factor.
    gathered: usize,
    /// What it adds to the place in the result (of columns) or in the left factor (along the sum).
    other: usize,
    /// What a step of each spatial dimension adds there, and where the places begin.
    places: [usize; 3],
    place: usize,
}

/// What a step of each dimension of a row-major array amounts to.
fn row_major(sizes: [usize; 3]) -> [usize; 3] {
    [sizes[1] * sizes[2], sizes[2], 1]
}

/// The taps of one dimension that a phase of places meets: how many, the first one, and the distance of two; then what the coordinate in the
/// gradient of y begins with, and what a tap takes away from it.
struct PhaseTaps {
    count: usize,
    first: usize,
    step: usize,
    start: isize,
    less: usize,
}

impl PhaseTaps {
    /// Of the places `phase`, `phase + stride`, ... of dimension `d`.
    fn new(s: &ConvShape, d: usize, phase: usize) -> PhaseTaps {
        let (stride, dilation) = (s.stride[d], s.dilation[d]);
        let shift = |k: usize| (phase + s.padding[d]) as isize - (k * dilation) as isize;
        let meets = |k: &usize| shift(*k) % stride as isize == 0;
        let Some(first) = (0..s.kernel[d]).find(meets) else {
            return PhaseTaps { count: 0, first: 0, step: 1, start: 0, less: 0 };
        };
        let step = (first + 1..s.kernel[d]).find(meets).map_or(s.kernel[d], |k| k - first);
        PhaseTaps {
            count: (s.kernel[d] - first).div_ceil(step),
            first,
            step,
            start: shift(first) / stride as isize,
            less: step * dilation / stride,
        }
    }
}

/// A pass as a product.
#[derive(Debug, Clone, Copy)]
struct ConvProduct {
    groups: usize,
    rows: usize,
    columns: ConvWalk,
    along: ConvWalk,
    /// The spatial sizes of the gathered factor.
    bounds: [usize; 3],
    /// Elements between groups of the left factor, the gathered one and the result.
    between: [usize; 3],
    /// Elements between rows of the left factor and of the result.
    row: [usize; 2],
}

fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

fn words(of: [usize; 3]) -> [u32; 3] {
    of.map(|n| n as u32)
}

fn negative(of: [usize; 3]) -> [u32; 3] {
    of.map(|n| (n as u32).wrapping_neg())
}

impl ConvProduct {
    /// The products of a pass: one, or one for each phase.
    fn all(pass: ConvPass, s: &ConvShape) -> Vec<ConvProduct> {
        match pass {
            ConvPass::Forward { .. } => vec![ConvProduct::forward(s)],
            ConvPass::Weight => vec![ConvProduct::weight(s)],
            ConvPass::Input { .. } => {
                // Beyond the size of x a stride has no phases.
                let phases: [usize; 3] = std::array::from_fn(|d| s.stride[d].min(s.input[d]));
                let of = |i: usize| [i / phases[2] / phases[1], i / phases[2] % phases[1], i % phases[2]];
                (0..volume(phases)).map(|i| ConvProduct::input(s, of(i))).collect()
            }
        }
    }

    fn forward(s: &ConvShape) -> ConvProduct {
        let (groups, i, o) = (s.groups, s.in_channels, s.out_channels);
        let (x, y, k) = (volume(s.input), volume(s.output), volume(s.kernel));
        ConvProduct {
            groups,
            rows: o,
            columns: ConvWalk {
                lead: s.batch,
                sizes: s.output,
                steps: words(s.stride),
                starts: negative(s.padding),
                gathered: groups * i * x,
                other: groups * o * y,
                places: row_major(s.output),
                place: 0,
            },
            along: ConvProduct::kernel(s, k, [0; 3]),
            bounds: s.input,
            between: [o * i * k, i * x, o * y],
            row: [i * k, y],
        }
    }

    /// Channels of x and the kernel, which meet elements of x.
    fn kernel(s: &ConvShape, other: usize, starts: [u32; 3]) -> ConvWalk {
        ConvWalk {
            lead: s.in_channels,
            sizes: s.kernel,
            steps: words(s.dilation),
            starts,
            gathered: volume(s.input),
            other,
            places: row_major(s.kernel),
            place: 0,
        }
    }

    fn weight(s: &ConvShape) -> ConvProduct {
        let (groups, i, o) = (s.groups, s.in_channels, s.out_channels);
        let (x, y, k) = (volume(s.input), volume(s.output), volume(s.kernel));
        ConvProduct {
            groups,
            rows: o,
            columns: ConvProduct::kernel(s, k, negative(s.padding)),
            along: ConvWalk {
                lead: s.batch,
                sizes: s.output,
                steps: words(s.stride),
                starts: [0; 3],
                gathered: groups * i * x,
                other: groups * o * y,
                places: row_major(s.output),
                place: 0,
            },
            bounds: s.input,
            between: [o * y, i * x, o * i * k],
            row: [y, i * k],
        }
    }

    fn input(s: &ConvShape, phase: [usize; 3]) -> ConvProduct {
        let (groups, i, o) = (s.groups, s.in_channels, s.out_channels);
        let (x, y, k) = (volume(s.input), volume(s.output), volume(s.kernel));
        let taps: [PhaseTaps; 3] = std::array::from_fn(|d| PhaseTaps::new(s, d, phase[d]));
        let some = taps.iter().all(|t| t.count > 0);
        let (of_x, of_kernel) = (row_major(s.input), row_major(s.kernel));
        ConvProduct {
            groups,
            rows: i,
            columns: ConvWalk {
                lead: s.batch,
                sizes: std::array::from_fn(|d| (s.input[d] - phase[d]).div_ceil(s.stride[d])),
                steps: [1; 3],
                starts: std::array::from_fn(|d| taps[d].start as u32),
                gathered: groups * o * y,
                other: groups * i * x,
                places: std::array::from_fn(|d| s.stride[d] * of_x[d]),
                place: (0..3).map(|d| phase[d] * of_x[d]).sum(),
            },
            along: ConvWalk {
                lead: if some { o } else { 0 },
                sizes: std::array::from_fn(|d| if some { taps[d].count } else { 1 }),
                steps: negative(std::array::from_fn(|d| taps[d].less)),
                starts: [0; 3],
                gathered: y,
                other: i * k,
                places: std::array::from_fn(|d| taps[d].step * of_kernel[d]),
                place: (0..3).map(|d| taps[d].first * of_kernel[d]).sum(),
            },
            bounds: s.output,
            between: [o * i * k, o * y, i * x],
            row: [k, x],
        }
    }

    fn columns(&self) -> usize {
        self.columns.lead * volume(self.columns.sizes)
    }

    fn along(&self) -> usize {
        self.along.lead * volume(self.along.sizes)
    }

    fn results(&self) -> usize {
        self.groups * self.rows * self.columns()
    }

    /// The parameters, in the order of `ConvNames`.
    fn numbers(&self) -> ParamValues {
        let mut n = ParamValues::default().push(self.groups).push(self.rows).push(self.columns()).push(self.along());
        for walk in [&self.columns, &self.along] {
            n = walk.sizes.iter().fold(n, |n, s| n.push(*s));
            n = walk.steps.iter().chain(&walk.starts).fold(n, |n, s| n.word(*s));
            n = n.push(walk.lead).push(walk.gathered).push(walk.other);
            n = walk.places.iter().fold(n, |n, s| n.push(*s)).push(walk.place);
        }
        let rest = self.bounds.iter().chain(&self.between).chain(&self.row);
        rest.fold(n, |n, s| n.push(*s))
    }
}

/// What all shaders of a product depend on.
#[derive(Debug, Clone, Copy, Hash)]
struct ConvFactors {
    dtype: DType,
    /// Spatial dimensions that have more than one place.
    dims: usize,
    left: u32,
    gathered: u32,
    bias: Option<u32>,
    to: u32,
}

/// The names of a walk's parameters.
struct ConvWalkNames {
    sizes: [String; 3],
    steps: [String; 3],
    starts: [String; 3],
    lead: String,
    gathered: String,
    other: String,
    places: [String; 3],
    place: String,
}

/// The names of a product's parameters.
struct ConvNames {
    groups: String,
    rows: String,
    columns: String,
    along: String,
    column: ConvWalkNames,
    sum: ConvWalkNames,
    bounds: [String; 3],
    between: [String; 3],
    row: [String; 2],
    /// Where left factor, gathered factor, bias and result begin.
    starts: [String; 4],
}

fn walk_names(p: &mut ParamNames) -> ConvWalkNames {
    ConvWalkNames {
        sizes: p.many(),
        steps: p.many(),
        starts: p.many(),
        lead: p.next(),
        gathered: p.next(),
        other: p.next(),
        places: p.many(),
        place: p.next(),
    }
}

impl ConvFactors {
    fn names(p: &mut ParamNames) -> ConvNames {
        let [groups, rows, columns, along] = p.many();
        let (column, sum) = (walk_names(p), walk_names(p));
        ConvNames { groups, rows, columns, along, column, sum, bounds: p.many(), between: p.many(), row: p.many(), starts: p.many() }
    }

    /// The first spatial dimension with more than one place.
    fn first(&self) -> usize {
        3 - self.dims
    }

    /// Functions: `column(n)` and `term(k)` give the coordinates of a column and of a term of the sum; `.w` is their place in the gathered
    /// factor, and `column_to(n)` and `term_left(k)` their places in result and left factor. `gathered(c, start)` is the element at the
    /// coordinates, 0 outside.
    fn functions(&self, n: &ConvNames) -> String {
        let t = value(self.dtype);
        let first = self.first();
        let mut s = String::new();
        for (name, other, w) in [("column", "column_to", &n.column), ("term", "term_left", &n.sum)] {
            let [_, b, c] = &w.sizes;
            let all = w.sizes[first..].join(" * ");
            let (mut decode, mut at) = (String::new(), format!("{} + lead * {}", w.place, w.other));
            let mut coordinates = ["0".to_owned(), "0".to_owned(), "0".to_owned()];
            for (d, coordinate) in coordinates.iter_mut().enumerate().skip(first) {
                let below = match d {
                    0 => format!("({b} * {c})"),
                    1 => c.clone(),
                    _ => String::new(),
                };
                if below.is_empty() {
                    decode += "let q2 = r;\n";
                } else {
                    decode += &format!("let q{d} = r / {below}; r -= q{d} * {below};\n");
                }
                *coordinate = format!("bitcast<i32>(q{d} * {} + {})", w.steps[d], w.starts[d]);
                at += &format!(" + q{d} * {}", w.places[d]);
            }
            s += &format!(
                "fn {name}(i: u32) -> vec4<i32> {{
let all = {all}; let lead = i / all; var r = i - lead * all;
{decode}return vec4<i32>({}, {}, {}, bitcast<i32>(lead * {}));
}}
fn {other}(i: u32) -> u32 {{
let all = {all}; let lead = i / all; var r = i - lead * all;
{decode}return {at};
}}
",
                coordinates[0], coordinates[1], coordinates[2], w.gathered
            );
        }
        let (mut inside, mut place) = (Vec::new(), "0u".to_owned());
        let mut coordinates = String::new();
        for d in first..3 {
            coordinates += &format!("let u{d} = bitcast<u32>(c[{d}]);\n");
            inside.push(format!("u{d} < {}", n.bounds[d]));
            place = if d == first { format!("u{d}") } else { format!("({place} * {} + u{d})", n.bounds[d]) };
        }
        s += &format!(
            "fn gathered(c: vec4<i32>, start: u32) -> {t} {{
{coordinates}var v = {zero};
if ({inside}) {{ v = {load}; }}
return v;
}}
",
            zero = zero(self.dtype),
            inside = inside.join(" && "),
            load = self.load(self.gathered, &format!("start + bitcast<u32>(c.w) + {place}")),
        );
        let bias = self.bias.map_or(zero(self.dtype).to_owned(), |b| self.load(b, &format!("{} + i", n.starts[2])));
        s + &format!("fn bias_of(i: u32) -> {t} {{ return {bias}; }}\n")
    }

    fn load(&self, buffer: u32, at: &str) -> String {
        match self.dtype {
            DType::F64 => format!("f64_from_bits(b{buffer}[({at}) * 2u], b{buffer}[({at}) * 2u + 1u])"),
            DType::I64 => format!("{}(b{buffer}[({at}) * 2u], b{buffer}[({at}) * 2u + 1u])", wgsl_type(word_kernels::words(self.dtype))),
            d => load(d, &format!("b{buffer}"), at),
        }
    }

    /// The sum `a + b * c`.
    fn plus_product(&self, a: &str, b: &str, c: &str) -> String {
        if self.dtype == DType::I64 { format!("i64_add({a}, i64_mul({b}, {c}))") } else { format!("{a} + {b} * {c}") }
    }

    fn plus(&self, a: &str, b: &str) -> String {
        if self.dtype == DType::I64 { format!("i64_add({a}, {b})") } else { format!("{a} + {b}") }
    }
}

/// Runs a request.
pub fn conv(c: &Conv, ins: &[BufferView<'_>], out: BufferView<'_>) -> Result<()> {
    let (op, dtype, products) = (c.op, out.dtype, ConvProduct::all(c.pass, &c.shape));
    if dtype == DType::Bool {
        return Err(unsupported(op, dtype));
    }
    for v in ins.iter().chain([&out]) {
        countable(op, v.shape)?;
    }
    // The weight is the left factor, except where it is the result.
    let (left, gathered) = if c.pass == ConvPass::Weight { (ins[0], ins[1]) } else { (ins[1], ins[0]) };
    let bias = ins.get(2);
    let s = &c.shape;
    let first = (0..3).find(|d| [s.input[*d], s.output[*d], s.kernel[*d]] != [1; 3] || s.padding[*d] > 0).unwrap_or(2);
    let context = out.buffer.context();
    let launch = |product: &ConvProduct, to: BufferView<'_>, form: ConvForm| -> Result<()> {
        let mut bindings = Bindings::new();
        let factors = ConvFactors {
            dtype,
            dims: 3 - first,
            left: bindings.read(left.buffer),
            gathered: bindings.read(gathered.buffer),
            bias: bias.map(|b| bindings.read(b.buffer)),
            to: bindings.write(to.buffer),
        };
        let starts = [left.offset, gathered.offset, bias.map_or(0, |b| b.offset), to.offset];
        let numbers = starts.iter().fold(product.numbers(), |n, s| n.push(*s));
        let (rows, columns) = (product.rows, product.columns());
        match form {
            ConvForm::Each => {
                let together = rows.clamp(1, ROWS);
                let groups = groups_for(product.groups * rows.div_ceil(together) * columns);
                Launch { op, bindings, numbers, groups }.run(context, &ConvEach { factors, rows: together })
            }
            ConvForm::Sum => Launch { op, bindings, numbers, groups: product.results() }.run(context, &ConvSum { factors }),
            ConvForm::Tile { tile, parts, split } => {
                let t = TILES[tile];
                let (down, across) = (rows.div_ceil(t.rows), columns.div_ceil(t.columns));
                let groups = product.groups * down * across * parts;
                let results = products.iter().map(ConvProduct::results).sum();
                let numbers = numbers.push(down).push(across).push(parts).push(split).push(results).push(groups);
                Launch { op, bindings, numbers, groups }.run(context, &ConvTile { factors, tile })
            }
        }
    };
    // The phases have about the same sizes; the forms are those of the one with the longest sum.
    let Some(longest) = products.iter().max_by_key(|p| p.along()) else { return Ok(()) };
    let (columns, along) = (longest.columns(), longest.along());
    let results = products.iter().map(ConvProduct::results).sum::<usize>();
    let real = matches!(dtype, DType::F32 | DType::F64);
    if !(real && longest.rows >= SHORT && along >= SHORT && columns >= 2 * SHORT) {
        let form = if along >= LONG && results <= FEW * GROUP { ConvForm::Sum } else { ConvForm::Each };
        return products.iter().try_for_each(|p| launch(p, out, form));
    }
    let tile = tile::choose(longest.rows, columns, longest.groups);
    let t = TILES[tile];
    let tiles = |p: &ConvProduct| p.groups * p.rows.div_ceil(t.rows) * p.columns().div_ceil(t.columns);
    let tiles = products.iter().map(tiles).sum::<usize>().max(1);
    let parts = (BUSY / tiles).min(along / PART).min(PARTIAL / results.max(1)).max(1);
    let split = along.div_ceil(parts).next_multiple_of(t.depth_of(dtype));
    let parts = along.div_ceil(split);
    let form = ConvForm::Tile { tile, parts, split };
    if parts == 1 {
        return products.iter().try_for_each(|p| launch(p, out, form));
    }
    let size = super::scratch_size(dtype);
    let sums = Buffer::new(context, parts * results * size)?;
    let (shape, strides) = ([parts, results], [results as isize, 1]);
    let sums = BufferView { buffer: &sums, offset: 0, shape: &shape, strides: &strides, dtype };
    products.iter().try_for_each(|p| launch(p, sums, form))?;
    let (flat, steps) = ([results], [1]);
    reduce(op, DeviceReducer::Sum, &[sums], None, &[true, false], 0.0, &[BufferView { shape: &flat, strides: &steps, ..out }])
}

/// How a product is computed.
#[derive(Debug, Clone, Copy)]
enum ConvForm {
    /// One invocation for some results of a column.
    Each,
    /// One workgroup for each result.
    Sum,
    Tile {
        tile: usize,
        parts: usize,
        split: usize,
    },
}
