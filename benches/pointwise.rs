//! How long rows take: tiny tensors (the cost of a call) and large ones (the memory's speed).

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rgrad::layout::{DType, Scalar};
use rgrad::rows::RowId;
use rgrad_kernels::backend::cpu::pointwise::{Func, StridedOperand, run};
use std::hint::black_box;

/// Values from 0.1 to 0.9, where every row below is defined.
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.618_034).fract() * 0.8 + 0.1).collect()
}

fn bench(c: &mut Criterion, group: &str, func: Func, shape: &[usize], strides: &[isize], operand_strides: &[&[isize]]) {
    let n: usize = shape.iter().product();
    let info = func.row.info();
    let inputs: Vec<Vec<f32>> = (0..func.inputs()).map(|_| values(n)).collect();
    let operands: Vec<StridedOperand> = inputs
        .iter()
        .enumerate()
        .map(|(k, v)| StridedOperand {
            ptr: v.as_ptr() as *const u8,
            strides: operand_strides.get(k).copied().unwrap_or(strides),
            dtype: DType::F32,
        })
        .collect();
    let params: Vec<Scalar> = info.sample_params.iter().map(|p| Scalar::Float(*p)).collect();
    let mut out = vec![0f32; n];
    let mut g = c.benchmark_group(group);
    g.throughput(Throughput::Elements(n as u64));
    g.bench_function(BenchmarkId::new(info.name, format!("{shape:?}")), |b| {
        b.iter(|| {
            // SAFETY: all operands have `n` elements, and the strides stay inside them.
            unsafe {
                run(func, DType::F32, black_box(shape), out.as_mut_ptr() as *mut u8, strides, &operands, &params)
                    .expect("a dtype that it takes")
            }
        })
    });
    g.finish();
}

fn tiny(c: &mut Criterion) {
    for row in [RowId::Add, RowId::Exp, RowId::Tanh] {
        bench(c, "tiny", Func::forward(row), &[], &[], &[]);
        bench(c, "tiny", Func::forward(row), &[4, 4], &[4, 1], &[]);
    }
}

fn large(c: &mut Criterion) {
    use RowId::*;
    for row in [Add, Mul, Exp, Log, Sin, Tanh, Sigmoid, Erf, Gelu, Pow, Atan2] {
        bench(c, "large", Func::forward(row), &[1 << 22], &[1], &[]);
    }
    for row in [Mul, Tanh, Gelu] {
        bench(c, "large derivative", Func::vjp(row, 0), &[1 << 22], &[1], &[]);
    }
}

fn strided(c: &mut Criterion) {
    let (shape, dense): (&[usize], &[isize]) = (&[2048, 2048], &[2048, 1]);
    let add = Func::forward(RowId::Add);
    bench(c, "transposed", add, shape, dense, &[dense, &[1, 2048]]);
    bench(c, "row", add, shape, dense, &[dense, &[0, 1]]);
    bench(c, "column", add, shape, dense, &[dense, &[1, 0]]);
    bench(c, "number", add, shape, dense, &[dense, &[0, 0]]);
}

criterion_group!(benches, tiny, large, strided);
criterion_main!(benches);
