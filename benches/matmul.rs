//! Matrix products from 4x4 to 1024x1024, thin ones, and batches.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rgrad::Array;
use std::hint::black_box;

fn filled(shape: &[usize]) -> Array {
    let n = shape.iter().product();
    let data: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 1e-3 - 0.5).collect();
    Array::from_slice(&data, shape).expect("the values fill the shape")
}

fn products(c: &mut Criterion) {
    let mut group = c.benchmark_group("matmul");
    let cases: [(&str, &[usize], &[usize], u64); 9] = [
        ("4", &[4, 4], &[4, 4], 4 * 4 * 4),
        ("32", &[32, 32], &[32, 32], 32 * 32 * 32),
        ("128", &[128, 128], &[128, 128], 128 * 128 * 128),
        ("512", &[512, 512], &[512, 512], 512 * 512 * 512),
        ("1024", &[1024, 1024], &[1024, 1024], 1024 * 1024 * 1024),
        ("64x784 by 784x10", &[64, 784], &[784, 10], 64 * 784 * 10),
        ("1024x1024 by a vector", &[1024, 1024], &[1024, 1], 1024 * 1024),
        ("a vector by 1024x1024", &[1, 1024], &[1024, 1024], 1024 * 1024),
        ("64 batches of 64", &[64, 64, 64], &[64, 64, 64], 64 * 64 * 64 * 64),
    ];
    for (name, a, b, multiply_adds) in cases {
        let (x, y) = (filled(a), filled(b));
        group.throughput(Throughput::Elements(2 * multiply_adds));
        group.bench_function(name, |b| b.iter(|| black_box(&x).matmul(black_box(&y), (false, false)).map(|a| a.numel())));
    }
    group.finish();
}

criterion_group!(benches, products);
criterion_main!(benches);
