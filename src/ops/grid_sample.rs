//! `grid_sample`: an image read at places that a grid names. The weights of neighbours are functions of the place's distance from them, and
//! the derivatives are written with them in tensor operations, so they have derivatives themselves.

use super::declared::declare;
use super::pool::no_kernel;
use super::{gather, pointwise as pw};
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, Vjp, VjpCx, apply1, mode, primitives};
use crate::call::{self, GridBorder, GridMode, GridPass, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::ops::reduce::sum;
use crate::ops::shape::{expand_to, select, unsqueeze};
use crate::rows::RowId;
use smallvec::{SmallVec, smallvec};

/// Of an image (N, C, sizes..) and a grid (N, sizes of the result.., dimensions): (N, C, sizes of the result..).
#[derive(Debug, Clone)]
struct GridSample {
    how: GridMode,
    beside: GridBorder,
    align_corners: bool,
    spatial: usize,
}

/// A neighbour of each place along one axis: its position, whether it is inside (None: always), its weight and the weight's derivative by
/// the grid's number.
struct Neighbour {
    at: Tensor,
    inside: Option<Tensor>,
    weight: Tensor,
    slope: Tensor,
}

/// A choice of one neighbour along each axis.
struct Corner<'a> {
    of: SmallVec<[&'a Neighbour; 3]>,
    /// The position in the flattened image: (N, 1, places).
    at: Tensor,
    /// Where all neighbours are inside; None: everywhere.
    inside: Option<Tensor>,
}

fn number(v: f64) -> pw::Arg<'static> {
    pw::Arg::Scalar(Scalar::Float(v))
}

fn floor(t: &Tensor) -> Result<Tensor> {
    pw::call(RowId::Floor, &[t.into()], &[])
}

/// The nearest whole number, the even one of two.
fn round(t: &Tensor) -> Result<Tensor> {
    pw::call(RowId::Round, &[t.into()], &[])
}

/// 16-bit floats in float32, so that results are rounded once.
fn widened(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_half() { primitives::cast(t, DType::F32) } else { Ok(t.clone()) }
}

impl GridSample {
    /// Where a number of the grid lies along an axis of `size` elements.
    fn place(&self, v: &Tensor, size: usize) -> Result<(Tensor, f64)> {
        let n = size as f64;
        let v = pw::add(v, 1.0)?;
        if self.align_corners {
            return Ok((pw::mul(&pw::div(&v, 2.0)?, n - 1.0)?, (n - 1.0) / 2.0));
        }
        Ok((pw::div(&pw::sub(&pw::mul(&v, n)?, 1.0)?, 2.0)?, n / 2.0))
    }

    /// Places brought inside as `beside` says, and the derivative of that; None: 1.
    fn inside(&self, u: &Tensor, size: usize) -> Result<(Tensor, Option<Tensor>)> {
        let last = size as f64 - 1.0;
        let (u, turn) = match self.beside {
            GridBorder::Zeros => return Ok((u.clone(), None)),
            GridBorder::Border => (u.clone(), None),
            GridBorder::Reflection => {
                // Between the centers of the outermost elements, or their outer edges.
                let (low, span) = if self.align_corners { (0.0, last) } else { (-0.5, size as f64) };
                if span == 0.0 {
                    let zero = pw::mul(u, 0.0)?;
                    let zero = pw::where_(&pw::eq(&zero, &zero)?, &zero, number(0.0))?;
                    return Ok((zero.clone(), Some(zero)));
                }
                let from = pw::sub(u, low)?;
                let size = pw::abs(&from)?;
                let extra = pw::call(RowId::Fmod, &[(&size).into(), number(span)], &[])?;
                let flips = floor(&pw::div(&size, span)?)?;
                let even = pw::eq(&pw::call(RowId::Fmod, &[(&flips).into(), number(2.0)], &[])?, 0.0)?;
                let back = pw::where_(&even, &pw::add(&extra, low)?, &pw::sub(span + low, &extra)?)?;
                let sign = pw::where_(&even, number(1.0), number(-1.0))?;
                let turn = pw::where_(&pw::lt(&from, 0.0)?, &pw::neg(&sign)?, &sign)?;
                (back, Some(primitives::cast(&turn, u.dtype())?))
            }
        };
        // Nan counts as 0; on the border the derivative is 0.
        let (above, below) = (pw::gt(&u, 0.0)?, pw::lt(&u, last)?);
        let clipped = pw::where_(&above, &pw::where_(&below, &u, number(last))?, number(0.0))?;
        let free = primitives::cast(&pw::logical_and(&above, &below)?, u.dtype())?;
        let slope = match turn {
            Some(turn) => pw::mul(&turn, &free)?,
            None => free,
        };
        Ok((primitives::cast(&clipped, u.dtype())?, Some(slope)))
    }

    /// The position of a neighbour, and whether it is inside.
    fn position(&self, at: &Tensor, size: usize) -> Result<(Tensor, Option<Tensor>)> {
        let last = size as f64 - 1.0;
        let inside = pw::logical_and(&pw::ge(at, 0.0)?, &pw::le(at, last)?)?;
        let safe = pw::where_(&inside, at, number(0.0))?;
        Ok((primitives::cast(&safe, DType::I64)?, Some(inside)))
    }

    /// The neighbours along one axis, of places (N, places).
    fn neighbours(&self, v: &Tensor, size: usize) -> Result<SmallVec<[Neighbour; 4]>> {
        let (plain, scale) = {
            let _off = mode::ModeGuard::grad(false);
            self.place(&v.detach(), size)?
        };
        let constant = |t: f64| -> Result<Tensor> { pw::add(&pw::mul(&plain.detach(), 0.0)?, t) };
        if self.how == GridMode::Cubic {
            let floor = floor(&plain)?;
            let t = self.moved(&pw::sub(&plain, &floor)?, v, &constant(scale)?)?;
            let mut made = SmallVec::new();
            for k in 0..4 {
                let at = pw::add(&floor, f64::from(k) - 1.0)?;
                let (at, _) = self.inside(&at, size)?;
                let (at, inside) = self.position(&at, size)?;
                let (weight, slope) = cubic_weight(&t, k)?;
                made.push(Neighbour { at, inside, weight, slope: pw::mul(&slope, scale)? });
            }
            return Ok(made);
        }
        let (u, turn) = self.inside(&plain, size)?;
        if self.how == GridMode::Nearest {
            let (at, inside) = self.position(&round(&u)?, size)?;
            return Ok(smallvec![Neighbour { at, inside, weight: constant(1.0)?, slope: constant(0.0)? }]);
        }
        let slope = match turn {
            Some(turn) => pw::mul(&turn, scale)?,
            None => constant(scale)?,
        };
        let floor = floor(&u)?;
        let t = self.moved(&pw::sub(&u, &floor)?, v, &slope)?;
        let (low, low_inside) = self.position(&floor, size)?;
        let (high, high_inside) = self.position(&pw::add(&floor, 1.0)?, size)?;
        Ok(smallvec![
            Neighbour { at: low, inside: low_inside, weight: pw::sub(1.0, &t)?, slope: pw::neg(&slope)? },
            Neighbour { at: high, inside: high_inside, weight: t, slope },
        ])
    }

    /// `t` as a function of the grid's number `v`, with this derivative.
    fn moved(&self, t: &Tensor, v: &Tensor, slope: &Tensor) -> Result<Tensor> {
        if !v.requires_grad() && v.is_bare() {
            return Ok(t.clone());
        }
        pw::add(t, &pw::mul(slope, &pw::sub(v, &v.detach())?)?)
    }

    /// Calls `f` for each choice of neighbours. `v`: the grid's numbers, (N, places) for each axis of the image.
    fn each_corner(&self, v: &[Tensor], sizes: &[usize], mut f: impl FnMut(&Corner<'_>) -> Result<()>) -> Result<()> {
        let along = v.iter().zip(sizes).map(|(v, n)| self.neighbours(v, *n)).collect::<Result<SmallVec<[_; 3]>>>()?;
        let count: usize = along.iter().map(|a| a.len()).product();
        for k in 0..count {
            let (mut rest, mut of) = (k, SmallVec::<[&Neighbour; 3]>::new());
            for a in along.iter().rev() {
                of.insert(0, &a[rest % a.len()]);
                rest /= a.len();
            }
            let mut at = of[0].at.clone();
            let mut inside = of[0].inside.clone();
            for (n, size) in of[1..].iter().zip(&sizes[1..]) {
                at = pw::add(&pw::mul(&at, Scalar::Int(*size as i64))?, &n.at)?;
                inside = match (inside, &n.inside) {
                    (Some(a), Some(b)) => Some(pw::logical_and(&a, b)?),
                    (a, b) => a.or_else(|| b.clone()),
                };
            }
            f(&Corner { of, at: unsqueeze(&at, 1)?, inside: inside.map(|i| unsqueeze(&i, 1)).transpose()? })?;
        }
        Ok(())
    }
}

impl Corner<'_> {
    /// The product of all weights, or of the derivative along `axis` and the others: (N, 1, places).
    fn weight(&self, axis: Option<usize>) -> Result<Tensor> {
        let of = |k: usize| if Some(k) == axis { &self.of[k].slope } else { &self.of[k].weight };
        let mut product = of(0).clone();
        for k in 1..self.of.len() {
            product = pw::mul(&product, of(k))?;
        }
        unsqueeze(&product, 1)
    }

    /// `t` where the corner is inside, and 0 elsewhere.
    fn masked(&self, t: &Tensor) -> Result<Tensor> {
        match &self.inside {
            Some(inside) => pw::where_(inside, t, number(0.0)),
            None => Ok(t.clone()),
        }
    }

    /// The elements of flattened images (N, C, elements) here: (N, C, places), 0 outside.
    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let (n, c, places) = (x.shape()[0], x.shape()[1], self.at.shape()[2]);
        self.masked(&gather::gather(x, -1, &expand_to(&self.at, &[n, c, places])?)?)
    }
}

/// The weight of the neighbour `k - 1` of a place at `t` from 0 to 1, and its derivative: cubic convolution with the parameter -0.75 (Keys
/// 1981).
fn cubic_weight(t: &Tensor, k: i32) -> Result<(Tensor, Tensor)> {
    const A: f64 = -0.75;
    let (x, sign) = match k {
        0 => (pw::add(t, 1.0)?, 1.0),
        1 => (t.clone(), 1.0),
        2 => (pw::sub(1.0, t)?, -1.0),
        _ => (pw::sub(2.0, t)?, -1.0),
    };
    let horner = |c: [f64; 4]| -> Result<Tensor> {
        let y = pw::add(&pw::mul(&x, c[0])?, c[1])?;
        let y = pw::add(&pw::mul(&y, &x)?, c[2])?;
        pw::add(&pw::mul(&y, &x)?, c[3])
    };
    let c = if k == 1 || k == 2 { [A + 2.0, -(A + 3.0), 0.0, 1.0] } else { [A, -5.0 * A, 8.0 * A, -4.0 * A] };
    let slope = pw::add(&pw::mul(&pw::add(&pw::mul(&x, 3.0 * c[0])?, 2.0 * c[1])?, &x)?, c[2])?;
    Ok((horner(c)?, pw::mul(&slope, sign)?))
}

/// An image as (N, C, elements), and the grid's numbers for each of its axes as (N, places).
struct Flat {
    x: Tensor,
    v: SmallVec<[Tensor; 3]>,
    sizes: Dims,
    /// (N, C, sizes of the result..).
    shape: Dims,
}

impl Flat {
    fn of(x: &Tensor, grid: &Tensor) -> Result<Flat> {
        let (x, grid) = (&widened(x)?, &widened(grid)?);
        let (xs, gs) = (x.shape(), grid.shape());
        let sizes = Dims::from_slice(&xs[2..]);
        let places: usize = gs[1..gs.len() - 1].iter().product();
        let flat = primitives::reshape(grid, &[gs[0], places, sizes.len()])?;
        // The grid's first number is the place along the last dimension.
        let v = (0..sizes.len()).rev().map(|k| select(&flat, 2, k as i64)).collect::<Result<_>>()?;
        let shape = xs[..2].iter().chain(&gs[1..gs.len() - 1]).copied().collect();
        Ok(Flat { x: primitives::reshape(x, &[xs[0], xs[1], sizes.iter().product()])?, v, sizes, shape })
    }

    /// Gradients of the result as (N, C, places).
    fn gradient(&self, g: &Tensor) -> Result<Tensor> {
        primitives::reshape(&widened(g)?, &[self.shape[0], self.shape[1], self.shape[2..].iter().product()])
    }
}

fn added(total: &mut Option<Tensor>, t: Tensor) -> Result<()> {
    *total = Some(match total.take() {
        Some(s) => pw::add(&s, &t)?,
        None => t,
    });
    Ok(())
}

impl GridSample {
    /// The result, by operations that are recorded.
    fn sampled(&self, x: &Tensor, grid: &Tensor) -> Result<Tensor> {
        let flat = Flat::of(x, grid)?;
        let mut total = None;
        self.each_corner(&flat.v, &flat.sizes, |c| added(&mut total, pw::mul(&c.weight(None)?, &c.read(&flat.x)?)?))?;
        total.map_or_else(
            || Err(Error::internal("grid_sample", "there are no neighbours")),
            |t| primitives::cast(&primitives::reshape(&t, &flat.shape)?, x.dtype()),
        )
    }

    /// The gradients of the image and of the grid, by operations that are recorded.
    fn gradients(&self, g: &Tensor, x: &Tensor, grid: &Tensor, needs: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        let flat = Flat::of(x, grid)?;
        let g = flat.gradient(g)?;
        let (mut to_x, mut to_grid) = (None, vec![None; flat.sizes.len()]);
        let shape = flat.x.shape();
        self.each_corner(&flat.v, &flat.sizes, |c| {
            if needs[0] {
                let at = expand_to(&c.at, &g.shape())?;
                let share = c.masked(&pw::mul(&c.weight(None)?, &g)?)?;
                added(&mut to_x, gather::scatter_gradient(&share, 2, &at, &shape)?)?;
            }
            if needs[1] {
                let product = sum(&pw::mul(&g, &c.read(&flat.x)?)?, Some(&[1]), true, None)?;
                for (axis, total) in to_grid.iter_mut().enumerate() {
                    added(total, pw::mul(&product, &c.weight(Some(axis))?)?)?;
                }
            }
            Ok(())
        })?;
        let to_x = to_x.map(|t| primitives::cast(&primitives::reshape(&t, &x.shape())?, x.dtype())).transpose()?;
        let to_grid = if needs[1] {
            let each = to_grid
                .into_iter()
                .rev()
                .flatten()
                .map(|t| primitives::reshape(&t, &[t.shape()[0], t.shape()[2]]))
                .collect::<Result<Vec<_>>>()?;
            Some(primitives::cast(&primitives::reshape(&crate::ops::join::stack(&each, -1)?, &grid.shape())?, grid.dtype())?)
        } else {
            None
        };
        Ok([to_x, to_grid])
    }
}

impl Vjp for GridSample {
    fn node_name(&self) -> Name {
        if self.spatial == 3 { "GridSampler3DBackward0" } else { "GridSampler2DBackward0" }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let how = match self.how {
            GridMode::Linear => 0,
            GridMode::Nearest => 1,
            GridMode::Cubic => 2,
        };
        smallvec![
            ("input", SavedAttribute::Input(0)),
            ("grid", SavedAttribute::Input(1)),
            ("interpolation_mode", SavedAttribute::Int(how)),
            ("padding_mode", SavedAttribute::Int(self.beside as i64)),
            ("align_corners", SavedAttribute::Bool(self.align_corners)),
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (x, grid) = (cx.input(0)?, cx.input(1)?);
        if !mode::is_grad_enabled() && [g, &x, &grid].iter().all(|t| t.is_bare()) {
            // The gradient is not recorded: a pass of the kernel for each.
            let arrays = [g.array()?.contiguous()?, x.array()?.contiguous()?, grid.array()?.contiguous()?];
            let mut grads = Grads::from_elem(None, 2);
            let mut found = true;
            for (k, pass) in [GridPass::ImageGradient, GridPass::GridGradient].into_iter().enumerate().filter(|(k, _)| cx.needs(*k)) {
                match self.request(pass, &arrays[1], &arrays[2]) {
                    Some(request) => {
                        let like = &arrays[k + 1];
                        let made = Array::request1(request, &[&arrays[0], &arrays[1], &arrays[2]], like.shape(), like.dtype())?;
                        grads[k] = Some(Tensor::new(made));
                    }
                    None => found = false,
                }
            }
            if found {
                return Ok(grads);
            }
        }
        Ok(Grads::from_iter(self.gradients(g, &x, &grid, [cx.needs(0), cx.needs(1)])?))
    }
}

impl Op for GridSample {
    fn name(&self) -> &'static str {
        "grid_sample"
    }
    fn is_composed(&self) -> bool {
        true
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        if let Some(request) = self.request(GridPass::Read, ins[0], ins[1]) {
            let grid = ins[1].shape();
            let shape: Dims = ins[0].shape()[..2].iter().chain(&grid[1..grid.len() - 1]).copied().collect();
            return Ok(smallvec![Array::request1(request, &[&ins[0].contiguous()?, &ins[1].contiguous()?], &shape, ins[0].dtype())?]);
        }
        let _off = mode::ModeGuard::grad(false);
        let made = self.sampled(&Tensor::new(ins[0].clone()), &Tensor::new(ins[1].clone()))?;
        let made = made.array()?.contiguous()?;
        Ok(smallvec![made])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).input(1)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (x, grid) = (cx.primal(0), cx.primal(1));
        let mut total = None;
        if let Some(t) = cx.tangent(0) {
            added(&mut total, self.sampled(t, grid)?)?;
        }
        if let Some(t) = cx.tangent(1) {
            let (flat, moved) = (Flat::of(x, grid)?, Flat::of(x, t)?);
            self.each_corner(&flat.v, &flat.sizes, |c| {
                let read = c.read(&flat.x)?;
                for (axis, t) in moved.v.iter().enumerate() {
                    let by = pw::mul(&c.weight(Some(axis))?, &unsqueeze(t, 1)?)?;
                    added(&mut total, primitives::reshape(&pw::mul(&by, &read)?, &flat.shape)?)?;
                }
                Ok(())
            })?;
        }
        Ok(Tangents::from_elem(total.map(|t| primitives::cast(&t, x.dtype())).transpose()?, 1))
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}

impl GridSample {
    /// The request that does it. None for planes of more elements than a kernel counts: then it is read at positions.
    fn request(&self, pass: GridPass, x: &Array, grid: &Array) -> Option<Request> {
        let (xs, gs) = (x.shape(), grid.shape());
        let plane = xs[2..].iter().try_fold(1usize, |n, s| n.checked_mul(*s))?;
        if plane > i32::MAX as usize {
            return None;
        }
        let sizes = if self.spatial == 3 { [xs[2], xs[3], xs[4]] } else { [0, xs[2], xs[3]] };
        Some(Request::GridSample(call::GridSample {
            op: "grid_sample",
            batch: xs[0],
            channels: xs[1],
            sizes,
            places: gs[1..gs.len() - 1].iter().product(),
            mode: self.how,
            border: self.beside,
            align_corners: self.align_corners,
            pass,
        }))
    }

    /// The elements of the batch are more images.
    fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let joined = |t: Tensor| {
            let s = t.shape();
            let flat: Dims = std::iter::once(s[0] * s[1]).chain(s[2..].iter().copied()).collect();
            primitives::reshape(&t, &flat)
        };
        let (x, grid) = (joined(batch.batched(0)?)?, joined(batch.batched(1)?)?);
        let y = apply1(self, &[&x, &grid])?;
        let s = y.shape();
        let apart: Dims = [batch.size, s[0] / batch.size.max(1)].into_iter().chain(s[1..].iter().copied()).collect();
        Ok(smallvec![primitives::reshape(&y, &apart)?])
    }
}

/// Reads images (N, C, sizes..) at the places of a grid (N, sizes of the result.., dimensions), whose numbers are -1 and 1 at the edges of
/// the image. Modes: 0 linear, 1 nearest, 2 cubic; beside the image: 0 zeros, 1 the border, 2 reflections.
pub fn grid_sampler(x: &Tensor, grid: &Tensor, mode: i64, padding: i64, align_corners: bool) -> Result<Tensor> {
    let cast = autocast::widen([x, grid])?;
    let [x, grid] = cast.of([x, grid]);
    let (xs, gs) = (x.shape(), grid.shape());
    let shapes = || format!("but got input with sizes {} and grid with sizes {}", fmt_shape(&xs), fmt_shape(&gs));
    let refuse = |what: String| Err(Error::runtime(format!("grid_sampler(): {what}")));
    if xs.is_empty() || gs.is_empty() || xs[0] != gs[0] {
        return refuse(format!("expected grid and input to have same batch size, {}", shapes()));
    }
    if gs[gs.len() - 1] + 2 != xs.len() {
        let n = xs.len().saturating_sub(2);
        return refuse(format!("expected grid to have size {n} in last dimension, but got grid with sizes {}", fmt_shape(&gs)));
    }
    if let Some(at) = (2..xs.len()).find(|d| xs[*d] == 0) {
        return refuse(format!(
            "expected input to have non-empty spatial dimensions, but input has sizes {} with dimension {at} being empty",
            fmt_shape(&xs)
        ));
    }
    if !matches!(xs.len(), 4 | 5) || gs.len() != xs.len() {
        return refuse(format!("expected 4D or 5D input and grid with same number of dimensions, {}", shapes()));
    }
    let how = match mode {
        0 => GridMode::Linear,
        1 => GridMode::Nearest,
        2 if xs.len() == 5 => return refuse("bicubic interpolation only supports 4D input".into()),
        2 => GridMode::Cubic,
        _ => return Err(Error::value(format!("grid_sampler(): there is no interpolation mode {mode}"))),
    };
    let beside = match padding {
        0 => GridBorder::Zeros,
        1 => GridBorder::Border,
        2 => GridBorder::Reflection,
        _ => return Err(Error::value(format!("grid_sampler(): there is no padding mode {padding}"))),
    };
    if !x.dtype().is_float() {
        return Err(no_kernel("grid_sampler_2d_cpu_kernel_impl", x.dtype()));
    }
    if grid.dtype() != x.dtype() {
        return Err(Error::runtime(format!("expected scalar type {} but found {}", x.dtype().type_name(), grid.dtype().type_name())));
    }
    apply1(&GridSample { how, beside, align_corners, spatial: xs.len() - 2 }, &[x, grid])
}

declare! {
    /// Images read at the places of a grid: see `nn.functional.grid_sample`. Interpolation modes: 0 linear, 1 nearest, 2 cubic; padding modes: 0 zeros, 1 border, 2 reflection.
    fn [function] grid_sampler(input: &Tensor, grid: &Tensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool) -> Tensor = grid_sampler;
    /// As `grid_sampler`, of images.
    fn [function] grid_sampler_2d(input: &Tensor, grid: &Tensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool) -> Tensor = grid_sampler;
    /// As `grid_sampler`, of volumes.
    fn [function] grid_sampler_3d(input: &Tensor, grid: &Tensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool) -> Tensor = grid_sampler;
}
