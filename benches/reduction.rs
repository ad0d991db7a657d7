//! Sums over every kind of dimension, softmax, and what a tiny tensor costs.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rgrad::call::{Request, Softmax, SoftmaxPass};
use rgrad::{Array, DType, Result};
use std::hint::black_box;

fn filled(shape: &[usize]) -> Array {
    let n = shape.iter().product();
    let data: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 1e-3).collect();
    Array::from_slice(&data, shape).expect("the values fill the shape")
}

fn sums(c: &mut Criterion) {
    let mut group = c.benchmark_group("sum of 4M f32");
    group.throughput(Throughput::Bytes(4 << 22));
    let cases: [(&str, &[usize], &[bool]); 5] = [
        ("all", &[1 << 22], &[true]),
        ("last", &[2048, 2048], &[false, true]),
        ("first", &[2048, 2048], &[true, false]),
        ("middle", &[64, 256, 256], &[false, true, false]),
        ("few columns", &[1 << 20, 4], &[true, false]),
    ];
    for (name, shape, reduced) in cases {
        let x = filled(shape);
        group.bench_function(name, |b| b.iter(|| black_box(&x).sum(reduced, false).map(|a| a.numel())));
    }
    group.finish();

    let small = filled(&[4, 4]);
    c.bench_function("sum of 4x4", |b| b.iter(|| black_box(&small).sum(&[true, true], false).map(|a| a.numel())));
}

fn softmax(x: &Array, dim: usize) -> Result<Array> {
    let pass = SoftmaxPass { log: false, backward: false };
    Array::request1(Request::Softmax(Softmax { pass, dim }), &[x], x.shape(), x.dtype())
}

fn softmaxes(c: &mut Criterion) {
    let mut group = c.benchmark_group("softmax of 1M f32");
    group.throughput(Throughput::Bytes(4 << 20));
    for (name, shape, dim) in [("rows of 1024", [1024, 1024], 1), ("rows of 16", [65536, 16], 1), ("columns", [1024, 1024], 0)] {
        let x = filled(&shape);
        assert_eq!(x.dtype(), DType::F32);
        group.bench_function(name, |b| b.iter(|| softmax(black_box(&x), dim).map(|a| a.numel())));
    }
    group.finish();
}

criterion_group!(benches, sums, softmaxes);
criterion_main!(benches);
