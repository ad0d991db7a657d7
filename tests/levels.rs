//! Levels are in the types: a level that counts what passes through it, nested twice, with history at each level.

use rgrad::autograd::level::{Level, wrap};
use rgrad::autograd::{Old, Op, Outputs, Tensor, apply, apply_inplace, engine, linear};
use rgrad::error::Result;
use rgrad::layout::DType;
use rgrad::ops::pointwise as pw;
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

    fn apply_inplace(&self, _this: &Arc<dyn Level>, op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: Old) -> Result<()> {
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
    assert_eq!(y.array().to_vec::<f64>().unwrap(), [1.0, 4.0, 9.0]);
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
    let loss = linear::sum_to(&y, &[1]).unwrap();
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
        assert_eq!(g.array().to_vec::<f64>().unwrap(), expected, "level {}", out.level());
        out = g;
        assert_eq!(out.level(), input.level());
    }
}
