//! What the graph costs: recording, running backward, and dropping, apart from the arithmetic.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rgrad::autograd::{Edge, engine, mode};
use rgrad::ops::pointwise as pw;
use rgrad::{Array, Tensor};
use std::hint::black_box;

const LENGTH: u64 = 1000;

fn leaf(value: f32) -> Tensor {
    let t = Tensor::new(Array::from_slice(&[value], &[]).expect("one value"));
    t.set_requires_grad(true).expect("a float leaf");
    t
}

/// `y = y * x`, LENGTH times.
fn chain(x: &Tensor) -> Tensor {
    let mut y = x.clone();
    for _ in 0..LENGTH {
        y = pw::mul(&y, x).expect("two scalars");
    }
    y
}

fn root(y: &Tensor) -> Vec<(Edge, Tensor)> {
    let edge = y.gradient_edge().expect("a graph").expect("a graph");
    vec![(edge, Tensor::new(Array::from_slice(&[1f32], &[]).expect("one value")))]
}

fn graphs(c: &mut Criterion) {
    let mut group = c.benchmark_group("chain of 1000 products of scalars");
    group.throughput(Throughput::Elements(LENGTH));
    let x = leaf(1.0);
    group.bench_function("without history", |b| {
        b.iter(|| {
            let _off = mode::ModeGuard::grad(false);
            black_box(chain(&x))
        });
    });
    group.bench_function("recorded and dropped", |b| b.iter(|| black_box(chain(&x))));
    group.bench_function("backward", |b| {
        b.iter_batched(
            || root(&chain(&x)),
            |roots| engine::run(roots, &engine::Options::default()).expect("a fresh graph"),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("backward that is recorded itself", |b| {
        let options = engine::Options { retain_graph: true, create_graph: true, ..Default::default() };
        b.iter_batched(
            || {
                let x = leaf(1.0);
                root(&chain(&x))
            },
            |roots| engine::run(roots, &options).expect("a fresh graph"),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, graphs);
criterion_main!(benches);
