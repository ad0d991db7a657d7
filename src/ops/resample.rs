//! Images of another size (`interpolate`): each mode is a weighted sum along one axis after the other, so it is linear, and the transposed
//! tables of weights give the gradient. Not here: reading at arbitrary places (`grid_sample`).

use super::declared::declare;
use super::pool::no_kernel;
use crate::array::{Array, Device, ResampleBytes};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::with_batch;
use crate::autograd::{Arrays, Grads, Name, Op, Tangent, Tensor, Vjp, VjpCx, apply1_growing};
use crate::call::{self, Request, WeightTable};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::ops::reduce::one;
use crate::ops::room;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// How a result is made from elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResampleMode {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    Lanczos,
}

/// One axis: its sizes and the factor that the caller gave.
#[derive(Debug, Clone, Copy)]
struct Axis {
    input: usize,
    output: usize,
    scale: Option<f64>,
    /// As in PyTorch: whether equal sizes leave the axis as it is, whatever the factor says, and nearest elements are doubled where the size
    /// doubles.
    keeps: bool,
}

/// Arithmetic that is rounded after each step, as in PyTorch's kernels: to float32, or for float64 not at all.
#[derive(Debug, Clone, Copy)]
struct Rounded {
    single: bool,
}

impl Rounded {
    #[inline]
    fn of(self, v: f64) -> f64 {
        if self.single { f64::from(v as f32) } else { v }
    }

    fn sum(self, a: f64, b: f64) -> f64 {
        self.of(a + b)
    }

    fn product(self, a: f64, b: f64) -> f64 {
        self.of(a * b)
    }

    /// How far apart the results are, in elements of the input.
    fn step(self, a: &Axis, align_corners: bool) -> f64 {
        if align_corners {
            return if a.output > 1 { self.of((a.input as f64 - 1.0) / (a.output as f64 - 1.0)) } else { 0.0 };
        }
        match a.scale {
            Some(s) if s > 0.0 => self.of(1.0 / s),
            _ => self.of(self.of(a.input as f64) / self.of(a.output as f64)),
        }
    }

    /// Where result `o` lies in the input.
    fn place(self, step: f64, o: usize, align_corners: bool, cubic: bool) -> f64 {
        if align_corners {
            return self.product(step, o as f64);
        }
        let at = self.sum(self.product(step, self.sum(o as f64, 0.5)), -0.5);
        if !cubic && at < 0.0 { 0.0 } else { at }
    }

    /// The weights of the four elements around a place, by cubic convolution with the parameter -0.75 (Keys 1981).
    fn cubic(self, t: f64) -> [f64; 4] {
        const A: f64 = -0.75;
        let near = |x: f64| {
            let y = self.sum(self.product(self.sum(A, 2.0), x), -self.sum(A, 3.0));
            self.sum(self.product(self.product(y, x), x), 1.0)
        };
        let far = |x: f64| {
            let y = self.sum(self.product(A, x), -5.0 * A);
            let y = self.sum(self.product(y, x), 8.0 * A);
            self.sum(self.product(y, x), -4.0 * A)
        };
        let u = self.sum(1.0, -t);
        [far(self.sum(t, 1.0)), near(t), near(u), far(self.sum(u, 1.0))]
    }
}

type Entries = SmallVec<[(usize, f64); 4]>;

impl Axis {
    /// The weights of result `o`, without a filter.
    fn entries(&self, mode: ResampleMode, r: Rounded, step: f64, align_corners: bool, o: usize) -> Entries {
        let last = self.input - 1;
        match mode {
            ResampleMode::Nearest if self.keeps && self.input == self.output => smallvec![(o, 1.0)],
            ResampleMode::Nearest if self.keeps && self.output == 2 * self.input => smallvec![(o / 2, 1.0)],
            ResampleMode::Nearest => smallvec![((r.product(step, o as f64).floor() as usize).min(last), 1.0)],
            ResampleMode::NearestExact => {
                let at = r.place(step, o, false, false);
                smallvec![((r.sum(at, 0.5).floor() as usize).min(last), 1.0)]
            }
            ResampleMode::Linear => {
                if self.input == self.output {
                    return smallvec![(o, 1.0), (o, 0.0)];
                }
                let at = r.place(step, o, align_corners, false);
                let first = (at.floor() as usize).min(last);
                let t = r.sum(at, -(first as f64)).clamp(0.0, 1.0);
                smallvec![(first, r.sum(1.0, -t)), ((first + 1).min(last), t)]
            }
            ResampleMode::Cubic | ResampleMode::Lanczos => {
                let at = r.place(step, o, align_corners, true);
                let first = at.floor().min(last as f64);
                let weights = r.cubic(r.sum(at, -first).clamp(0.0, 1.0));
                (0..4).map(|k| ((first + k as f64 - 1.0).clamp(0.0, last as f64) as usize, weights[k])).collect()
            }
        }
    }

    /// The weights of result `o` by a filter that is as wide as the results are apart (antialiasing).
    fn filtered(&self, mode: ResampleMode, r: Rounded, step: f64, o: usize) -> Entries {
        if self.keeps && self.input == self.output {
            return smallvec![(o, 1.0)];
        }
        let reach = match mode {
            ResampleMode::Lanczos => 3.0,
            ResampleMode::Cubic => 2.0,
            ResampleMode::Nearest | ResampleMode::NearestExact | ResampleMode::Linear => 1.0,
        };
        let (support, inverse) = if step >= 1.0 { (r.product(reach, step), r.of(1.0 / step)) } else { (reach, 1.0) };
        let center = r.product(step, r.sum(o as f64, 0.5));
        let low = r.sum(r.sum(center, -support), 0.5).max(0.0) as usize;
        let high = (r.sum(r.sum(center, support), 0.5).max(0.0) as usize).min(self.input);
        let mut entries = Entries::new();
        let mut total = 0.0;
        for i in low.min(high)..high {
            let x = r.product(r.sum(r.sum(i as f64, -center), 0.5), inverse).abs();
            let w = r.of(filter(mode, x));
            total = r.sum(total, w);
            entries.push((i, w));
        }
        if total != 0.0 {
            entries.iter_mut().for_each(|(_, w)| *w = r.of(*w / total));
        }
        entries
    }

    fn table(&self, mode: ResampleMode, antialias: bool, r: Rounded, align_corners: bool) -> Result<WeightTable> {
        let step = r.step(self, align_corners);
        let each = if antialias { 6.0 * step.max(1.0) + 3.0 } else { 4.0 };
        room::check("interpolate", self.output, (each.min(self.input as f64 + 4.0) * 12.0) as usize + 4)?;
        let row = |o: usize| {
            if antialias { self.filtered(mode, r, step, o) } else { self.entries(mode, r, step, align_corners, o) }
        };
        WeightTable::new(self.input, (0..self.output).map(row)).ok_or_else(|| {
            Error::runtime(format!("interpolate: a change from {} to {} elements has too many weights", self.input, self.output))
        })
    }
}

/// A filter at a distance: a triangle, cubic convolution with the parameter -0.5, or Lanczos' of three lobes.
fn filter(mode: ResampleMode, x: f64) -> f64 {
    match mode {
        ResampleMode::Lanczos => {
            let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
            if x < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
        }
        ResampleMode::Cubic => {
            if x < 1.0 {
                ((1.5 * x) - 2.5) * x * x + 1.0
            } else if x < 2.0 {
                (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
            } else {
                0.0
            }
        }
        ResampleMode::Nearest | ResampleMode::NearestExact | ResampleMode::Linear => (1.0 - x).max(0.0),
    }
}

/// The last dimensions change their sizes, each by its table.
#[derive(Debug, Clone)]
struct Upsample {
    /// Of the input, for the saved attributes.
    shape: Dims,
    node: &'static str,
    back: &'static str,
    tables: SmallVec<[Arc<WeightTable>; 3]>,
    transposed: bool,
    /// Attributes of the node: None for modes that have no corners to align.
    align_corners: Option<bool>,
    scales: SmallVec<[Option<f64>; 3]>,
}

impl Upsample {
    fn sizes(&self, of: impl Fn(&WeightTable) -> usize) -> Dims {
        self.tables.iter().map(|t| of(t)).collect()
    }

    /// The order of axes: those that shrink most go first, of equal ones the last.
    fn order(&self) -> SmallVec<[usize; 3]> {
        let mut order: SmallVec<[usize; 3]> = (0..self.tables.len()).rev().collect();
        let shrinks = |a: &usize| {
            let t = &self.tables[*a];
            t.output() as f64 / t.input().max(1) as f64
        };
        order.sort_by(|a, b| shrinks(a).min(1.0).total_cmp(&shrinks(b).min(1.0)));
        order
    }

    /// One axis after the other, in float32 at least.
    fn run(&self, x: &Array) -> Result<Array> {
        let (dtype, spatial) = (x.dtype(), self.tables.len());
        let ImageRows { elements: mut y, first, last } = ImageRows::of(x, spatial)?;
        if dtype.is_half() && spatial > 1 {
            y = y.cast(DType::F32)?;
        }
        for axis in self.order() {
            let at = first + axis;
            let mut shape = Dims::from_slice(y.shape());
            let (outer, inner) = (shape[..at].iter().product(), shape[at + 1..].iter().product());
            shape[at] = self.tables[axis].output();
            let request = call::Resample { op: "interpolate", outer, inner, table: self.tables[axis].clone() };
            y = Array::request1(Request::Resample(request), &[&y], &shape, y.dtype())?;
        }
        ImageRows { elements: y.cast(dtype)?, first, last }.image()
    }
}

/// The elements of images, row-major. Channels that come last are the last dimension here, and stay there.
struct ImageRows {
    elements: Array,
    /// The dimension of the first axis of an image.
    first: usize,
    last: bool,
}

impl ImageRows {
    fn of(x: &Array, spatial: usize) -> Result<ImageRows> {
        let rank = x.rank();
        match x.layout().suggested_format().order(rank).filter(|_| rank == spatial + 2) {
            Some(order) => Ok(ImageRows { elements: x.with_layout(x.layout().permute(&order))?.contiguous()?, first: 1, last: true }),
            None => Ok(ImageRows { elements: x.contiguous()?, first: rank - spatial, last: false }),
        }
    }

    fn image(self) -> Result<Array> {
        if !self.last {
            return Ok(self.elements);
        }
        let rank = self.elements.rank();
        let back: Dims = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        self.elements.with_layout(self.elements.layout().permute(&back))
    }
}

impl Vjp for Upsample {
    fn node_name(&self) -> Name {
        if self.transposed { self.back } else { self.node }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        if self.transposed {
            return SavedAttributes::new();
        }
        let mut all: SavedAttributes = smallvec![
            ("output_size", SavedAttribute::sizes(&self.sizes(WeightTable::output))),
            ("self_sym_sizes", SavedAttribute::sizes(&self.shape)),
        ];
        all.extend(self.align_corners.map(|b| ("align_corners", SavedAttribute::Bool(b))));
        let names: &[&'static str] =
            if self.scales.len() == 1 { &["scales"] } else { &["scales_d", "scales_h", "scales_w"][3 - self.scales.len()..] };
        let shown = |s: &Option<f64>| s.map_or(SavedAttribute::Nothing, |s| SavedAttribute::Number(Scalar::Float(s)));
        all.extend(names.iter().zip(&self.scales).map(|(n, s)| (*n, shown(s))));
        all
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let tables = self.tables.iter().map(|t| Arc::new(t.transposed())).collect();
        Ok(one(apply1_growing(&Upsample { tables, transposed: !self.transposed, ..self.clone() }, &[g])?))
    }
}

impl Op for Upsample {
    fn name(&self) -> &'static str {
        "interpolate"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![self.run(ins[0])?])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        let lead: usize = inputs[0].shape()[..inputs[0].rank() - self.tables.len()].iter().product();
        inputs[0].numel().max(lead.saturating_mul(self.tables.iter().map(|t| t.output()).product()))
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Upsample { shape: with_batch(batch, &self.shape), ..self.clone() })
    }
}

/// uint8: axis by axis from the last on, by weights of 15 bits and with results that are rounded in between, as PyTorch does.
fn resampled_bytes(x: &Tensor, tables: &[WeightTable]) -> Result<Tensor> {
    let x = x.array()?;
    let ImageRows { elements: mut y, first, last } = ImageRows::of(&x.to_device(Device::CPU)?, tables.len())?;
    for (k, table) in tables.iter().enumerate().rev() {
        let (at, mut shape) = (first + k, Dims::from_slice(y.shape()));
        let (outer, inner) = (shape[..at].iter().product(), shape[at + 1..].iter().product());
        shape[at] = table.output();
        let kernel = ResampleBytes { outer, inner, table: Arc::new(table.clone()) };
        y = Array::request1(Request::Custom(Arc::new(kernel)), &[&y], &shape, DType::U8)?;
    }
    Ok(Tensor::new(ImageRows { elements: y, first, last }.image()?.to_device_of(&x)?))
}

/// Nodes of a mode and of its gradient, by the number of dimensions.
fn nodes(mode: ResampleMode, n: usize, antialias: bool) -> Option<(&'static str, &'static str)> {
    Some(match (mode, n, antialias) {
        (ResampleMode::Nearest, 1, false) => ("UpsampleNearest1DBackward0", "UpsampleNearest1DBackwardBackward0"),
        (ResampleMode::Nearest, 2, false) => ("UpsampleNearest2DBackward0", "UpsampleNearest2DBackwardBackward0"),
        (ResampleMode::Nearest, 3, false) => ("UpsampleNearest3DBackward0", "UpsampleNearest3DBackwardBackward0"),
        (ResampleMode::NearestExact, 1, false) => ("UpsampleNearestExact1DBackward0", "UpsampleNearestExact1DBackwardBackward0"),
        (ResampleMode::NearestExact, 2, false) => ("UpsampleNearestExact2DBackward0", "UpsampleNearestExact2DBackwardBackward0"),
        (ResampleMode::NearestExact, 3, false) => ("UpsampleNearestExact3DBackward0", "UpsampleNearestExact3DBackwardBackward0"),
        (ResampleMode::Linear, 1, false) => ("UpsampleLinear1DBackward0", "UpsampleLinear1DBackwardBackward0"),
        (ResampleMode::Linear, 2, false) => ("UpsampleBilinear2DBackward0", "UpsampleBilinear2DBackwardBackward0"),
        (ResampleMode::Linear, 2, true) => ("UpsampleBilinear2DAaBackward0", "UpsampleBilinear2DAaBackwardBackward0"),
        (ResampleMode::Linear, 3, false) => ("UpsampleTrilinear3DBackward0", "UpsampleTrilinear3DBackwardBackward0"),
        (ResampleMode::Cubic, 2, false) => ("UpsampleBicubic2DBackward0", "UpsampleBicubic2DBackwardBackward0"),
        (ResampleMode::Cubic, 2, true) => ("UpsampleBicubic2DAaBackward0", "UpsampleBicubic2DAaBackwardBackward0"),
        (ResampleMode::Lanczos, 2, true) => ("UpsampleLanczos2DAaBackward0", "UpsampleLanczos2DAaBackwardBackward0"),
        _ => return None,
    })
}

fn shown(sizes: &[i64]) -> String {
    let names = &["D", "H", "W"][3 - sizes.len()..];
    names.iter().zip(sizes).map(|(n, s)| format!("{n}: {s}")).collect::<Vec<_>>().join(", ")
}

/// The dtypes of a mode, and the kernel that PyTorch names when it refuses one.
fn check_dtype(x: &Tensor, mode: ResampleMode, n: usize, antialias: bool) -> Result<()> {
    let dtype = x.dtype();
    let nearest = matches!(mode, ResampleMode::Nearest | ResampleMode::NearestExact);
    if dtype.is_float() || dtype == DType::U8 && (nearest || n == 2) {
        return Ok(());
    }
    Err(no_kernel(
        match (mode, n) {
            _ if antialias => "compute_index_ranges_weights",
            (ResampleMode::Nearest | ResampleMode::NearestExact, 2) => "upsample_nearest2d_channels_last",
            (ResampleMode::Nearest | ResampleMode::NearestExact, _) => "compute_indices_weights_nearest",
            (ResampleMode::Linear, 2) => "upsample_bilinear2d_channels_last",
            (ResampleMode::Linear, _) => "compute_indices_weights_linear",
            (ResampleMode::Cubic | ResampleMode::Lanczos, _) => "compute_indices_weights_cubic",
        },
        dtype,
    ))
}

/// The input with its last 1 to 3 dimensions of size `output`. `scales` are the factors that the caller named, instead of the ratios of sizes.
pub fn upsample(x: &Tensor, output: &[i64], mode: &str, align_corners: bool, antialias: bool, scales: [Option<f64>; 3]) -> Result<Tensor> {
    let n = output.len();
    let wanted = match mode {
        "nearest" => ResampleMode::Nearest,
        "nearest-exact" => ResampleMode::NearestExact,
        "linear" | "bilinear" | "trilinear" => ResampleMode::Linear,
        "bicubic" => ResampleMode::Cubic,
        "lanczos" => ResampleMode::Lanczos,
        _ => return Err(Error::value(format!("upsample: there is no mode '{mode}'"))),
    };
    let Some((node, back)) = nodes(wanted, n, antialias) else {
        let which = if antialias { " with antialias" } else { "" };
        return Err(Error::not_implemented(format!("upsample: mode '{mode}'{which} is not defined for {n} sizes")));
    };
    let shape = x.shape();
    if shape.len() != n + 2 {
        return Err(Error::runtime(format!(
            "It is expected input_size equals to {}, but got size {}: output_size has {n} elements",
            n + 2,
            shape.len()
        )));
    }
    let input: SmallVec<[i64; 3]> = shape[2..].iter().map(|s| *s as i64).collect();
    if input.iter().chain(output).any(|s| *s <= 0) {
        let and = if n == 1 { " and" } else { "" };
        return Err(Error::runtime(format!(
            "Input and output sizes should be greater than 0, but got input ({}){and} output ({})",
            shown(&input),
            shown(output)
        )));
    }
    if shape[1] == 0 {
        return Err(Error::runtime(format!("Non-empty {}D data tensor expected but got a tensor with sizes {}", n + 2, fmt_shape(&shape))));
    }
    check_dtype(x, wanted, n, antialias)?;
    let keeps = n == 2;
    let scales: SmallVec<[Option<f64>; 3]> = SmallVec::from_slice(&scales[3 - n..]);
    let rounded = Rounded { single: x.dtype() != DType::F64 };
    let axes = input.iter().zip(output).zip(&scales).map(|((i, o), s)| Axis { input: *i as usize, output: *o as usize, scale: *s, keeps });
    // Weights of bytes are made in double precision.
    let rounded = if x.dtype() == DType::U8 && !matches!(wanted, ResampleMode::Nearest | ResampleMode::NearestExact) {
        Rounded { single: false }
    } else {
        rounded
    };
    let tables = axes.map(|a| a.table(wanted, antialias, rounded, align_corners)).collect::<Result<SmallVec<[WeightTable; 3]>>>()?;
    let elements = tables.iter().map(WeightTable::output).try_fold(shape[0].saturating_mul(shape[1]), usize::checked_mul);
    if elements.and_then(|n| n.checked_mul(8)).is_none_or(|n| n > isize::MAX as usize) {
        return Err(Error::memory(format!("interpolate: a result of size {output:?} is too large")));
    }
    if x.dtype() == DType::U8 {
        return resampled_bytes(x, &tables);
    }
    let corners = (!matches!(wanted, ResampleMode::Nearest | ResampleMode::NearestExact)).then_some(align_corners);
    let tables = tables.into_iter().map(Arc::new).collect();
    apply1_growing(&Upsample { shape, node, back, tables, transposed: false, align_corners: corners, scales }, &[x])
}

type ScaleFactor = Option<f64>;

#[allow(clippy::too_many_arguments, reason = "those of the declared function")]
fn upsample_by(
    input: &Tensor,
    size: &[i64],
    mode: &str,
    corners: bool,
    antialias: bool,
    d: ScaleFactor,
    h: ScaleFactor,
    w: ScaleFactor,
) -> Result<Tensor> {
    upsample(input, size, mode, corners, antialias, [d, h, w])
}

declare! {
    /// The input with its last dimensions of another size: `mode` is nearest, nearest-exact, linear, bilinear, trilinear, bicubic or lanczos. `scales_d`, `scales_h` and `scales_w` are factors that count instead of the ratios of sizes.
    fn [function] upsample(input: &Tensor, output_size: &[i64], mode: &str, align_corners: bool = false, antialias: bool = false, scales_d: Option<f64> = None, scales_h: Option<f64> = None, scales_w: Option<f64> = None) -> Tensor = upsample_by;
}
