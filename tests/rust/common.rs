//! Gradients by central differences, against those of the engine, at first and second order.

use rgrad::autograd::dispatch::mode::ModeGuard;
use rgrad::autograd::{Tensor, engine};
use rgrad::call::{ArgReduce, Classes, CumulativeExtreme, Mode, Nll, Request, Scan, ScanKind, Search, Softmax, SoftmaxPass, Sort, summed};
use rgrad::error::Result;
use rgrad::ops::{pointwise as pw, reduce};
use rgrad::{Array, DType};

/// Numbers in -1.5..1.5, none near another (so that orders and kinks stay as they are within a step).
pub fn values(n: usize, seed: usize) -> Vec<f64> {
    let mut v: Vec<f64> = (0..n).map(|i| -1.5 + 3.0 * (i as f64 + 0.37) / n as f64).collect();
    let mut state = seed as u64 * 2 + 1;
    for i in (1..n).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        v.swap(i, (state >> 33) as usize % (i + 1));
    }
    v
}

pub fn tensor(data: &[f64], shape: &[usize]) -> Tensor {
    Tensor::new(Array::from_slice(data, shape).unwrap())
}

pub fn leaf(data: &[f64], shape: &[usize]) -> Tensor {
    let t = tensor(data, shape);
    t.set_requires_grad(true).unwrap();
    t
}

pub fn to_vec(t: &Tensor) -> Vec<f64> {
    t.array().unwrap().to_vec().unwrap()
}

/// Gradients of a scalar at the inputs; zeros where there is none.
pub fn gradients(y: &Tensor, inputs: &[Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let seed = tensor(&[1.0], &[]);
    let options = engine::Options {
        retain_graph: true,
        create_graph,
        inputs: inputs.iter().map(|t| t.gradient_edge().unwrap().unwrap()).collect(),
        ..Default::default()
    };
    let roots = match y.gradient_edge()? {
        Some(edge) => vec![(edge, seed)],
        None => vec![],
    };
    let _mode = ModeGuard::grad(create_graph);
    let found = if roots.is_empty() { vec![None; inputs.len()] } else { engine::run(roots, &options)? };
    Ok(found.into_iter().zip(inputs).map(|(g, x)| g.unwrap_or_else(|| tensor(&vec![0.0; x.numel()], &x.shape()))).collect())
}

/// A fixed weighting that turns a tensor into a scalar without hiding an element.
fn weighted(y: &Tensor, seed: usize) -> Result<Tensor> {
    let w = tensor(&values(y.numel(), seed + 7), &y.shape());
    reduce::sum(&pw::mul(y, &w)?, None, false, None)
}

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

fn numeric(f: &dyn Fn(&[Tensor]) -> f64, points: &[(Vec<f64>, Vec<usize>)], which: usize, step: f64) -> Vec<f64> {
    (0..points[which].0.len())
        .map(|i| {
            let at = |by: f64| {
                let inputs: Vec<Tensor> = points
                    .iter()
                    .enumerate()
                    .map(|(k, (v, s))| {
                        let mut v = v.clone();
                        if k == which {
                            v[i] += by;
                        }
                        leaf(&v, s)
                    })
                    .collect();
                f(&inputs)
            };
            (at(step) - at(-step)) / (2.0 * step)
        })
        .collect()
}

fn compare(name: &str, order: usize, which: usize, got: &Tensor, want: &[f64]) {
    let got = to_vec(got);
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= 2e-6 + 2e-5 * w.abs(), "{name}: order {order}, input {which}, element {i}: {g}, numerically {w}");
    }
}

/// Checks the first and second derivatives of `f` at float64 points.
pub fn check_at(name: &str, points: &[(Vec<f64>, Vec<usize>)], f: Function<'_>) {
    let run = |inputs: &[Tensor]| weighted(&f(inputs).unwrap_or_else(|e| panic!("{name}: {e}")), 1).unwrap();
    let inputs: Vec<Tensor> = points.iter().map(|(v, s)| leaf(v, s)).collect();
    let y = run(&inputs);
    let first = gradients(&y, &inputs, false).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (k, g) in first.iter().enumerate() {
        assert_eq!(g.shape(), inputs[k].shape(), "{name}: input {k}");
        let value = |t: &[Tensor]| to_vec(&run(t))[0];
        compare(name, 1, k, g, &numeric(&value, points, k, 1e-5));
    }
    // The second order: derivatives of a weighting of the first ones.
    let mixed = |inputs: &[Tensor]| {
        let gs = gradients(&run(inputs), inputs, true).unwrap_or_else(|e| panic!("{name}: {e}"));
        let parts: Vec<Tensor> = gs.iter().enumerate().map(|(k, g)| weighted(g, 11 + k).unwrap()).collect();
        parts[1..].iter().fold(parts[0].clone(), |a, b| pw::add(&a, b).unwrap())
    };
    let m = mixed(&inputs);
    let second = gradients(&m, &inputs, false).unwrap_or_else(|e| panic!("{name}: second order: {e}"));
    for (k, g) in second.iter().enumerate() {
        let value = |t: &[Tensor]| to_vec(&mixed(t))[0];
        compare(name, 2, k, g, &numeric(&value, points, k, 1e-5));
    }
}

/// As `check_at`, at fixed points of the given shapes.
pub fn check(name: &str, shapes: &[&[usize]], f: Function<'_>) {
    let points: Vec<(Vec<f64>, Vec<usize>)> =
        shapes.iter().enumerate().map(|(k, s)| (values(s.iter().product(), k + 3), s.to_vec())).collect();
    check_at(name, &points, f);
}

/// Requests along a dimension, with the outputs that the operations ask for.
pub trait Along {
    fn max_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<Vec<Array>>;
    fn mode_along(&self, dim: usize, keepdim: bool) -> Result<Vec<Array>>;
    fn sort_along(&self, sort: Sort) -> Result<Vec<Array>>;
    fn cummax(&self, max: bool, dim: usize) -> Result<Vec<Array>>;
    fn scan(&self, kind: ScanKind, dim: usize) -> Result<Array>;
    fn places(&self, x: &Array, right: bool) -> Result<Array>;
    fn softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array>;
    fn nll(&self, classes: Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<Array>;
}

fn with_positions(request: Request, x: &Array, shape: &[usize]) -> Result<Vec<Array>> {
    Ok(Array::request(request, &[x], &[(shape, x.dtype()), (shape, DType::I64)])?.into_vec())
}

/// `shape` with `n` elements along `dim`, or without this dimension.
fn resized(shape: &[usize], dim: usize, n: usize, keepdim: bool) -> Vec<usize> {
    let mut out = shape.to_vec();
    if let Some(size) = out.get_mut(dim) {
        *size = n;
        if !keepdim {
            out.remove(dim);
        }
    }
    out
}

impl Along for Array {
    fn max_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<Vec<Array>> {
        with_positions(Request::ArgReduce(ArgReduce { max, dim }), self, &resized(self.shape(), dim, 1, keepdim))
    }
    fn mode_along(&self, dim: usize, keepdim: bool) -> Result<Vec<Array>> {
        with_positions(Request::Mode(Mode { dim }), self, &resized(self.shape(), dim, 1, keepdim))
    }
    fn sort_along(&self, sort: Sort) -> Result<Vec<Array>> {
        with_positions(Request::Sort(sort), self, &resized(self.shape(), sort.dim, sort.keep, true))
    }
    fn cummax(&self, max: bool, dim: usize) -> Result<Vec<Array>> {
        with_positions(Request::CumulativeExtreme(CumulativeExtreme { max, dim }), self, self.shape())
    }
    fn scan(&self, kind: ScanKind, dim: usize) -> Result<Array> {
        Array::request1(Request::Scan(Scan { kind, dim }), &[self], self.shape(), summed(self.dtype()))
    }
    fn places(&self, x: &Array, right: bool) -> Result<Array> {
        Array::request1(Request::Search(Search { right }), &[self, x], x.shape(), DType::I64)
    }
    fn softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array> {
        let ins: Vec<&Array> = g.into_iter().chain([self]).collect();
        Array::request1(Request::Softmax(Softmax { pass, dim }), &ins, self.shape(), self.dtype())
    }
    fn nll(&self, classes: Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<Array> {
        let dim = usize::from(if adjoint { shape.len() } else { self.rank() } > 1);
        let ins: Vec<&Array> = [self, targets].into_iter().chain(weight).collect();
        Array::request1(Request::Nll(Nll { classes, adjoint, dim, ticket: 0 }), &ins, shape, self.dtype())
    }
}
