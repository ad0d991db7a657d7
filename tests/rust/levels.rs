//! Levels: one that counts what passes through it, nested twice, with history at each; derivatives and batches; tangents.

use rgrad::autograd::transforms::level::{self, DerivativeLevel, Level, wrap};
use rgrad::autograd::{OldValue, Op, Outputs, Tensor, apply, apply_inplace, dual_levels, engine, forward_mode, primitives};
use rgrad::error::Result;
use rgrad::layout::DType;
use rgrad::ops::batch::{BatchLevel, Randomness};
use rgrad::ops::random::{self, Dist};
use rgrad::ops::{pointwise as pw, reduce};
use rgrad::{Array, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Unwraps its tensors, lets the operation run one level lower, and wraps the results.
#[derive(Debug)]
struct Counting {
    number: u32,
    calls: AtomicUsize,
}

impl Counting {
    fn new(number: u32) -> Arc<Counting> {
        Arc::new(Counting { number, calls: AtomicUsize::new(0) })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// What the tensor is one level lower.
fn unwrap(t: &Tensor, number: u32) -> Tensor {
    t.lower(number).unwrap_or_else(|| t.clone())
}

impl Level for Counting {
    fn number(&self) -> u32 {
        self.number
    }

    fn apply(&self, this: &Arc<dyn Level>, op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let lower: Vec<Tensor> = inputs.iter().map(|t| unwrap(t, self.number)).collect();
        let refs: Vec<&Tensor> = lower.iter().collect();
        if refs.iter().any(|t| t.level() >= self.number) {
            return Err(Error::runtime("a rule must see lower levels only"));
        }
        Ok(apply(op, &refs)?.into_iter().map(|t| wrap(this, t)).collect())
    }

    fn apply_inplace(&self, _this: &Arc<dyn Level>, op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let lower: Vec<Tensor> = inputs.iter().map(|t| unwrap(t, self.number)).collect();
        let refs: Vec<&Tensor> = lower.iter().collect();
        apply_inplace(op, label, &refs, old)
    }

    fn beside(&self, this: &Arc<dyn Level>, made: Tensor) -> Result<Tensor> {
        Ok(wrap(this, made))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn leaf(values: &[f64]) -> Tensor {
    Tensor::new(Array::from_slice(values, &[values.len()]).unwrap())
}

#[test]
fn an_operation_passes_through_every_level_once() {
    let (one, two) = (Counting::new(1), Counting::new(2));
    let (l1, l2): (Arc<dyn Level>, Arc<dyn Level>) = (one.clone(), two.clone());
    let x = leaf(&[1.0, 2.0, 3.0]);
    let nested = wrap(&l2, wrap(&l1, x.clone()));
    assert_eq!(nested.level(), 2);
    // A plain tensor among the inputs is of no level.
    let y = pw::mul(&nested, &x).unwrap();
    assert_eq!((y.level(), two.calls(), one.calls()), (2, 1, 1));
    assert_eq!(y.array().unwrap().to_vec::<f64>().unwrap(), [1.0, 4.0, 9.0]);
    let z = pw::add(&wrap(&l1, x.clone()), &x).unwrap();
    assert_eq!((z.level(), two.calls(), one.calls()), (1, 1, 2));
}

#[test]
fn each_level_has_a_history_of_its_own() {
    let l1: Arc<dyn Level> = Counting::new(1);
    let l2: Arc<dyn Level> = Counting::new(2);
    let x = leaf(&[0.5, -1.0]);
    x.set_requires_grad(true).unwrap();
    let middle = wrap(&l1, x.clone());
    middle.set_requires_grad(true).unwrap();
    let top = wrap(&l2, middle.clone());
    top.set_requires_grad(true).unwrap();
    // f = sum(t^3)
    let y = pw::mul(&pw::mul(&top, &top).unwrap(), &top).unwrap();
    let loss = primitives::sum_to(&y, &[1]).unwrap();
    let expected = [0.75, 3.0];
    for (mut out, input) in [(loss.clone(), top), (loss.lower(2).unwrap(), middle), (loss.lower(2).unwrap().lower(1).unwrap(), x)] {
        assert_eq!(out.level(), input.level());
        let ones = {
            let seed = Tensor::new(Array::full(&[1], 1.0.into(), DType::F64).unwrap());
            match out.level() {
                0 => seed,
                1 => wrap(&l1, seed),
                _ => wrap(&l2, wrap(&l1, seed)),
            }
        };
        let options = engine::Options { retain_graph: true, inputs: vec![input.gradient_edge().unwrap().unwrap()], ..Default::default() };
        let edge = out.gradient_edge().unwrap().unwrap();
        let grads = engine::run(vec![(edge, ones)], &options).unwrap();
        let g = grads[0].clone().unwrap();
        assert_eq!(g.array().unwrap().to_vec::<f64>().unwrap(), expected, "level {}", out.level());
        out = g;
        assert_eq!(out.level(), input.level());
    }
}

/// What is entered is left, whatever the test finds.
struct Inside(u32);

impl Inside {
    fn new(make: impl FnOnce(u32) -> Arc<dyn Level>) -> Inside {
        Inside(level::enter(make))
    }

    fn level(&self) -> Arc<dyn Level> {
        level::open(self.0).unwrap()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        level::exit(self.0);
    }
}

#[test]
fn a_pass_at_a_level_records_below_and_nothing_there() {
    let x = leaf(&[0.5, -1.0]);
    x.set_requires_grad(true).unwrap();
    let inside = Inside::new(|n| Arc::new(DerivativeLevel::new(n)));
    let top = wrap(&inside.level(), x.clone());
    top.set_requires_grad(true).unwrap();
    let cube = pw::mul(&pw::mul(&top, &top).unwrap(), &top).unwrap();
    let ones = leaf(&[1.0, 1.0]);
    let options = engine::Options { inputs: vec![top.gradient_edge().unwrap().unwrap()], level: 1, ..Default::default() };
    let slope = engine::run(vec![(cube.gradient_edge().unwrap().unwrap(), ones.clone())], &options).unwrap()[0].clone().unwrap();
    assert!(slope.grad_fn().unwrap().is_none(), "the level itself has recorded its pass");
    let below = slope.lower(1).unwrap();
    // d(3x^2)/dx
    let options = engine::Options { inputs: vec![x.gradient_edge().unwrap().unwrap()], ..Default::default() };
    let twice = engine::run(vec![(below.gradient_edge().unwrap().unwrap(), ones)], &options).unwrap()[0].clone().unwrap();
    assert_eq!(twice.array().unwrap().to_vec::<f64>().unwrap(), [3.0, -6.0]);
}

#[test]
fn what_outlives_a_derivative_is_what_it_stood_for() {
    let x = leaf(&[1.0, 2.0]);
    let ended = {
        let inside = Inside::new(|n| Arc::new(DerivativeLevel::new(n)));
        wrap(&inside.level(), x.clone())
    };
    // Another level of the same number is not its level.
    let inside = Inside::new(|n| Arc::new(DerivativeLevel::new(n)));
    assert!(ended.below(&*inside.level()).is_none());
    let y = pw::add(&ended, &x).unwrap();
    assert_eq!((y.level(), y.array().unwrap().to_vec::<f64>().unwrap()), (0, vec![2.0, 4.0]));
}

#[test]
fn a_batch_looks_like_one_of_its_elements_and_refuses_to_be_looked_at() {
    let x = Tensor::new(Array::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]).unwrap());
    let batch = |randomness| move |n| -> Arc<dyn Level> { Arc::new(BatchLevel::new(n, 3, randomness)) };
    let escaped = {
        let inside = Inside::new(batch(Randomness::Refuse));
        let row = wrap(&inside.level(), x.clone());
        assert_eq!((&row.shape()[..], row.rank()), (&[2][..], 1));
        assert!(row.values("item()").unwrap_err().to_string().contains("vmap"));
        let sums = reduce::sum(&pw::mul(&row, &row).unwrap(), None, false, None).unwrap();
        assert_eq!(sums.rank(), 0);
        assert_eq!(sums.lower(1).unwrap().array().unwrap().to_vec::<f64>().unwrap(), [5.0, 25.0, 61.0]);
        let refused = random::sample(&[2], DType::F64, Dist::Uniform { from: 0.0, to: 1.0 }, None).unwrap_err();
        assert!(refused.to_string().contains("randomness"));
        row
    };
    assert!(pw::neg(&escaped).unwrap_err().to_string().contains("escaped"));
    let inside = Inside::new(batch(Randomness::Different));
    let drawn = random::sample(&[2], DType::F64, Dist::Uniform { from: 0.0, to: 1.0 }, None).unwrap();
    assert_eq!((&drawn.shape()[..], &drawn.lower(inside.0).unwrap().shape()[..]), (&[2][..], &[3, 2][..]));
}

#[test]
fn tangents_end_with_their_level() {
    let (x, t) = (leaf(&[0.5, 2.0]), leaf(&[1.0, 10.0]));
    dual_levels::enter(0);
    let dual = forward_mode::make_dual(&x, &t).unwrap();
    let y = pw::mul(&dual, &dual).unwrap();
    assert_eq!(y.tangent().unwrap().array().unwrap().to_vec::<f64>().unwrap(), [1.0, 40.0]);
    dual_levels::exit(0);
    assert!(y.tangent().is_none() && dual.tangent().is_none());
    assert_eq!(dual_levels::depth(), 0);
}
