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
//! A product of a tile of R x C takes 2 R C / (4 (R + C)) float32 operations for each byte that it reads: 16 for 64 x 64, 12.8 for 32 x 128,
//! 7.5 for 16 x 256. The direct forms take a quarter of an operation for each byte, which mostly comes from caches: they are for depthwise
//! convolutions and few channels, whose products have nothing to share.
//!
//! Not here: strides of operands (they are row-major), and floats of 16 bits, which run in float32.

mod direct;
mod tile;

use super::reduce::{DeviceReducer, reduce};
use super::wgsl::types::{load, value, zero};
use super::word_kernels::{GROUP, Launch, ParamNames, ParamValues, countable, groups_for, unsupported, wgsl_type, words};
use super::{Bindings, Buffer, BufferView};
use crate::backend::requests::{Conv, ConvPass, ConvShape};
use crate::error::Result;
use crate::layout::DType;
use direct::{ConvEach, ConvSum};
use tile::{ConvTile, TILES};

/// Workgroups that fill a large device. With fewer of them a long sum is cut into several parts.
const BUSY: usize = 128;
/// Products that one part of a cut sum has at least.
const PART: usize = 512;
/// A shorter sum, or fewer rows, are not worth a tile.
const SHORT: usize = 8;
/// A longer sum of few results is added up by a workgroup.
const LONG: usize = 256;

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
    /// What it adds to the place in the result (of columns) or in the left factor (along the sum). Spatial places add their number.
    other: usize,
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
    /// What coordinates are divided by; those that cannot be divided meet nothing.
    divisors: [usize; 3],
    /// Elements between groups of the left factor, the gathered one and the result.
    between: [usize; 3],
    /// Elements between rows of the left factor and of the result.
    row: [usize; 2],
}

fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

impl ConvProduct {
    fn new(pass: ConvPass, s: &ConvShape) -> ConvProduct {
        let (groups, i, o) = (s.groups, s.in_channels, s.out_channels);
        let (x, y, k) = (volume(s.input), volume(s.output), volume(s.kernel));
        let words = |of: [usize; 3]| of.map(|n| n as u32);
        let negative = |of: [usize; 3]| of.map(|n| (n as u32).wrapping_neg());
        let none = [0; 3];
        let kernel = |lead: usize, steps, starts, gathered, other| ConvWalk { lead, sizes: s.kernel, steps, starts, gathered, other };
        match pass {
            ConvPass::Forward { .. } => ConvProduct {
                groups,
                rows: o,
                columns: ConvWalk {
                    lead: s.batch,
                    sizes: s.output,
                    steps: words(s.stride),
                    starts: negative(s.padding),
                    gathered: groups * i * x,
                    other: groups * o * y,
                },
                along: kernel(i, words(s.dilation), none, x, k),
                bounds: s.input,
                divisors: [1; 3],
                between: [o * i * k, i * x, o * y],
                row: [i * k, y],
            },
            ConvPass::Input { .. } => ConvProduct {
                groups,
                rows: i,
                columns: ConvWalk {
                    lead: s.batch,
                    sizes: s.input,
                    steps: [1; 3],
                    starts: words(s.padding),
                    gathered: groups * o * y,
                    other: groups * i * x,
                },
                along: kernel(o, negative(s.dilation), none, y, i * k),
                bounds: s.output,
                divisors: s.stride,
                between: [o * i * k, o * y, i * x],
                row: [k, x],
            },
            ConvPass::Weight => ConvProduct {
                groups,
                rows: o,
                columns: kernel(i, words(s.dilation), negative(s.padding), x, k),
                along: ConvWalk {
                    lead: s.batch,
                    sizes: s.output,
                    steps: words(s.stride),
                    starts: none,
                    gathered: groups * i * x,
                    other: groups * o * y,
                },
                bounds: s.input,
                divisors: [1; 3],
                between: [o * y, i * x, o * i * k],
                row: [y, i * k],
            },
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
            n = n.push(walk.gathered).push(walk.other);
        }
        let rest = self.bounds.iter().chain(&self.divisors).chain(&self.between).chain(&self.row);
        rest.fold(n, |n, s| n.push(*s))
    }
}

/// What all shaders of a product depend on.
#[derive(Debug, Clone, Copy, Hash)]
struct ConvFactors {
    dtype: DType,
    /// Spatial dimensions that have more than one place.
    dims: usize,
    /// Whether coordinates are divided.
    divides: bool,
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
    gathered: String,
    other: String,
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
    divisors: [String; 3],
    between: [String; 3],
    row: [String; 2],
    /// Where left factor, gathered factor, bias and result begin.
    starts: [String; 4],
}

fn walk_names(p: &mut ParamNames) -> ConvWalkNames {
    ConvWalkNames { sizes: p.many(), steps: p.many(), starts: p.many(), gathered: p.next(), other: p.next() }
}

impl ConvFactors {
    fn names(p: &mut ParamNames) -> ConvNames {
        let [groups, rows, columns, along] = p.many();
        let (column, sum) = (walk_names(p), walk_names(p));
        ConvNames {
            groups,
            rows,
            columns,
            along,
            column,
            sum,
            bounds: p.many(),
            divisors: p.many(),
            between: p.many(),
            row: p.many(),
            starts: p.many(),
        }
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
            let mut decode = String::new();
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
            }
            s += &format!(
                "fn {name}(i: u32) -> vec4<i32> {{
let all = {all}; let lead = i / all; var r = i - lead * all;
{decode}return vec4<i32>({}, {}, {}, bitcast<i32>(lead * {}));
}}
fn {other}(i: u32) -> u32 {{
let all = {all}; let lead = i / all;
return lead * {} + (i - lead * all);
}}
",
                coordinates[0], coordinates[1], coordinates[2], w.gathered, w.other
            );
        }
        let (mut inside, mut place) = (Vec::new(), "0u".to_owned());
        let mut divided = String::new();
        for d in first..3 {
            if self.divides {
                // A negative coordinate is a large number here, and is not below the bound times the divisor.
                divided += &format!("let o{d} = u32(c[{d}]); let u{d} = o{d} / {0};\n", n.divisors[d]);
                inside.push(format!("c[{d}] >= 0 && u{d} * {} == o{d} && u{d} < {}", n.divisors[d], n.bounds[d]));
            } else {
                divided += &format!("let u{d} = bitcast<u32>(c[{d}]);\n");
                inside.push(format!("u{d} < {}", n.bounds[d]));
            }
            place = if d == first { format!("u{d}") } else { format!("({place} * {} + u{d})", n.bounds[d]) };
        }
        s += &format!(
            "fn gathered(c: vec4<i32>, start: u32) -> {t} {{
{divided}var v = {zero};
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
            DType::I64 => format!("{}(b{buffer}[({at}) * 2u], b{buffer}[({at}) * 2u + 1u])", wgsl_type(words(self.dtype))),
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
    let (op, dtype, product) = (c.op, out.dtype, ConvProduct::new(c.pass, &c.shape));
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
    let (columns, along, results) = (product.columns(), product.along(), product.results());
    let context = out.buffer.context();
    let real = matches!(dtype, DType::F32 | DType::F64);
    let tiled = real && product.rows >= SHORT && along >= SHORT && columns >= 2 * SHORT;
    let divides = product.divisors.iter().any(|d| *d > 1);
    let launch = |to: BufferView<'_>, form: ConvForm| -> Result<()> {
        let mut bindings = Bindings::new();
        let factors = ConvFactors {
            dtype,
            dims: 3 - first,
            divides,
            left: bindings.read(left.buffer),
            gathered: bindings.read(gathered.buffer),
            bias: bias.map(|b| bindings.read(b.buffer)),
            to: bindings.write(to.buffer),
        };
        let starts = [left.offset, gathered.offset, bias.map_or(0, |b| b.offset), to.offset];
        let numbers = starts.iter().fold(product.numbers(), |n, s| n.push(*s));
        match form {
            ConvForm::Each => Launch { op, bindings, numbers, groups: groups_for(results) }.run(context, &ConvEach { factors }),
            ConvForm::Sum => Launch { op, bindings, numbers, groups: results }.run(context, &ConvSum { factors }),
            ConvForm::Tile { tile, parts, split } => {
                let t = TILES[tile];
                let (down, across) = (product.rows.div_ceil(t.rows), columns.div_ceil(t.columns));
                let groups = product.groups * down * across * parts;
                let numbers = numbers.push(down).push(across).push(parts).push(split).push(results).push(groups);
                Launch { op, bindings, numbers, groups }.run(context, &ConvTile { factors, tile })
            }
        }
    };
    if !tiled {
        let form = if along >= LONG && results <= BUSY * GROUP { ConvForm::Sum } else { ConvForm::Each };
        return launch(out, form);
    }
    let tile = tile::choose(product.rows, columns, product.groups);
    let t = TILES[tile];
    let tiles = product.groups * product.rows.div_ceil(t.rows) * columns.div_ceil(t.columns);
    let parts = if tiles < BUSY { (BUSY / tiles).min(along / PART).max(1) } else { 1 };
    let split = along.div_ceil(parts).next_multiple_of(t.depth_of(dtype));
    let parts = along.div_ceil(split);
    if parts == 1 {
        return launch(out, ConvForm::Tile { tile, parts, split });
    }
    let size = super::element_size(dtype);
    let sums = Buffer::new(context, parts * results * size)?;
    let (shape, strides) = ([parts, results], [results as isize, 1]);
    let sums = BufferView { buffer: &sums, offset: 0, shape: &shape, strides: &strides, dtype };
    launch(sums, ConvForm::Tile { tile, parts, split })?;
    let (flat, steps) = ([results], [1]);
    reduce(op, DeviceReducer::Sum, &[sums], None, &[true, false], 0.0, &[BufferView { shape: &flat, strides: &steps, ..out }])
}

/// How a product is computed.
enum ConvForm {
    /// One invocation for each result.
    Each,
    /// One workgroup for each result.
    Sum,
    Tile {
        tile: usize,
        parts: usize,
        split: usize,
    },
}
