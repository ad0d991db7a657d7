//! Passes of the engine: the fast path of pointwise nodes beside dispatch, and several passes over one graph.

#[allow(dead_code, reason = "shared with tests that use more of it")]
use super::common::{leaf, tensor, to_vec, values};
use rgrad::autograd::engine::hooks::TensorHook;
use rgrad::autograd::{Edge, Tensor, engine};
use rgrad::error::{ErrorKind, Result};
use rgrad::ops::pointwise as pw;
use std::any::Any;
use std::sync::{Arc, Barrier};

/// Sees every gradient and changes none.
struct Watch;

impl TensorHook for Watch {
    fn call(&self, _grad: Option<&Tensor>) -> Result<Option<Tensor>> {
        Ok(None)
    }
    fn name(&self) -> String {
        "Watch".into()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A graph in which gradients meet: sums of two, three and four, an operation that saves its output, one that saves nothing.
fn graph(x: &Tensor, w: &Tensor, watched: bool) -> Tensor {
    let see = |t: Tensor| {
        if watched {
            t.register_hook(Arc::new(Watch)).unwrap();
        }
        t
    };
    let a = see(pw::mul(x, w).unwrap());
    let b = see(pw::tanh(&a).unwrap());
    let c = see(pw::add(&b, &a).unwrap());
    let d = see(pw::mul(&a, &a).unwrap());
    let e = see(pw::div(&c, w).unwrap());
    let f = see(pw::mul(&d, &e).unwrap());
    see(pw::mul(&f, x).unwrap())
}

fn root(y: &Tensor) -> Vec<(Edge, Tensor)> {
    let ones = tensor(&vec![1.0; y.numel()], &y.shape());
    vec![(y.gradient_edge().unwrap().unwrap(), ones)]
}

#[test]
fn the_fast_path_gives_the_same_bits() {
    for shape in [vec![], vec![1], vec![3], vec![4, 4], vec![5, 7], vec![0, 3], vec![40, 40]] {
        let n = shape.iter().product();
        let run = |watched: bool, create_graph: bool| {
            let (x, w) = (leaf(&values(n, 1), &shape), leaf(&values(n, 2), &shape));
            let y = graph(&x, &w, watched);
            let options = engine::Options { retain_graph: false, create_graph, ..Default::default() };
            engine::run(root(&y), &options).unwrap();
            let bits = |t: &Tensor| to_vec(&t.grad().unwrap()).iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
            let made = (bits(&x), bits(&w));
            // A gradient with a history holds the leaf that holds it.
            x.set_grad(None).unwrap();
            w.set_grad(None).unwrap();
            made
        };
        let short = run(false, false);
        assert_eq!(short, run(true, false), "{shape:?} with hooks");
        // Recorded gradients are composed of other kernels.
        let close = |a: &[u64], b: &[u64]| {
            a.iter().zip(b).all(|(a, b)| (f64::from_bits(*a) - f64::from_bits(*b)).abs() <= 1e-12 * f64::from_bits(*b).abs().max(1.0))
        };
        let recorded = run(false, true);
        assert!(close(&short.0, &recorded.0) && close(&short.1, &recorded.1), "{shape:?} recorded");
    }
}

#[test]
fn a_graph_is_freed_once_and_kept_when_asked() {
    let (x, w) = (leaf(&[0.5, -1.5], &[2]), leaf(&[2.0, 3.0], &[2]));
    let y = graph(&x, &w, false);
    let keep = engine::Options { retain_graph: true, ..engine::Options::default() };
    engine::run(root(&y), &keep).unwrap();
    let once = to_vec(&x.grad().unwrap());
    engine::run(root(&y), &engine::Options::default()).unwrap();
    assert_eq!(to_vec(&x.grad().unwrap()), once.iter().map(|g| g + g).collect::<Vec<f64>>());
    let again = engine::run(root(&y), &keep).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Graph);
    assert!(again.message().contains("second time"), "{}", again.message());
}

#[test]
fn a_saved_value_that_was_written_is_noticed() {
    let (x, w) = (leaf(&[0.5, -1.5], &[2]), leaf(&[2.0, 3.0], &[2]));
    for saved_output in [false, true] {
        let a = pw::mul(&x, &w).unwrap();
        let y = if saved_output { pw::tanh(&a).unwrap() } else { pw::mul(&a, &w).unwrap() };
        let written = if saved_output { &y } else { &a };
        let y = pw::mul(&y, &x).unwrap();
        written.increment_version("add_");
        let error = engine::run(root(&y), &engine::Options::default()).unwrap_err();
        assert!(error.message().contains("modified by an inplace operation"), "{}", error.message());
    }
}

#[test]
fn passes_on_several_threads_share_a_graph() {
    let (x, w) = (leaf(&values(6, 1), &[2, 3]), leaf(&values(6, 2), &[2, 3]));
    let mut y = graph(&x, &w, false);
    for _ in 0..40 {
        y = pw::mul(&y, &w).unwrap();
    }
    let wanted = || engine::Options {
        retain_graph: true,
        create_graph: false,
        inputs: vec![x.gradient_edge().unwrap().unwrap()],
        ..Default::default()
    };
    let alone = to_vec(engine::run(root(&y), &wanted()).unwrap()[0].as_ref().unwrap());
    let start = Barrier::new(4);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                start.wait();
                for _ in 0..100 {
                    let got = engine::run(root(&y), &wanted()).unwrap();
                    assert_eq!(to_vec(got[0].as_ref().unwrap()), alone);
                }
            });
        }
    });
}
