//! One request of each kind, for the table of what each backend supports.

use super::{
    Along, ArgReduce, Attention, AttentionOrder, AttentionPass, AttentionShape, Bounds, Classes, Conv, ConvPass, ConvShape,
    CumulativeExtreme, Distribution, GridBorder, GridMode, GridPass, GridSample, IndexPlan, IndexWrite, Mode, Nll, NllReduction, Norm,
    NormPass, NormShape, Pointwise, Pool, PoolDivisor, PoolPass, Random, Recurrent, RecurrentCell, Reduce, Reducer, Request, Resample,
    Scan, ScanKind, ScatterAlong, Softmax, SoftmaxPass, Sort, Triangle, WeightTable, WindowAxis, Write,
};
use crate::layout::{DType, Scalar};
use crate::rows::{Func, RowId};
use std::sync::Arc;

/// Every kind of request but the pointwise rows, by name.
pub fn families() -> Vec<Request> {
    let reducers = [
        Reducer::Sum,
        Reducer::Prod,
        Reducer::Extreme { max: true },
        Reducer::Extreme { max: false },
        Reducer::Truth { all: true },
        Reducer::Truth { all: false },
        Reducer::CountNonzero,
        Reducer::SquaredDeviations,
        Reducer::LogSumExp,
        Reducer::Norm(2.0),
    ];
    let drawn = [
        Distribution::Uniform { from: 0.0, to: 1.0 },
        Distribution::Normal { mean: 0.0, std: 1.0 },
        Distribution::Exponential { rate: 1.0 },
        Distribution::Bernoulli { p: 0.5 },
        Distribution::Integers { from: 0, range: 2 },
    ];
    let random = |distribution: Distribution| Request::Random(Random { op: distribution.name(), distribution, seed: 0, start: 0 });
    let classes = Classes { outer: 1, classes: 2, inner: 1, ignore: -100, reduction: NllReduction::Mean };
    let softmax = |log| Request::Softmax(Softmax { pass: SoftmaxPass { log, backward: false }, dim: 0 });
    let norm = |op, across| {
        let shape = NormShape { outer: 1, groups: 1, channels: 1, inner: 1, across };
        Request::Norm(Norm { op, pass: NormPass::Forward { weight: true, bias: true }, shape, eps: Scalar::Float(1e-5) })
    };
    let one = [1; 3];
    let conv = ConvShape {
        batch: 1,
        groups: 1,
        in_channels: 1,
        out_channels: 1,
        input: one,
        output: one,
        kernel: one,
        stride: one,
        dilation: one,
        padding: [0; 3],
    };
    let pool = |op, pass| Request::Pool(Pool { op, planes: 1, axes: [WindowAxis::ONE; 3], pass });
    let unit = WeightTable::new(1, [[(0, 1.0)]].into_iter()).unwrap_or_else(|| unreachable!("the position is inside"));
    let grid = GridSample {
        op: "grid_sample",
        batch: 1,
        channels: 1,
        sizes: [0, 1, 1],
        places: 1,
        mode: GridMode::Linear,
        border: GridBorder::Zeros,
        align_corners: false,
        pass: GridPass::Read,
    };
    let recurrent = |cell| {
        let batches = [1].into_iter().collect();
        Request::Recurrent(Recurrent { cell, backward: false, reverse: false, batches, hidden: 1, state: 1 })
    };
    let mut all = vec![
        Request::Fill(Scalar::Int(0)),
        Request::Copy,
        Request::Triangle(Triangle { diagonal: 0, upper: true }),
        Request::ArgReduce(ArgReduce { max: true, dim: 0 }),
        Request::Scan(Scan { kind: ScanKind::Sum, dim: 0 }),
        Request::Scan(Scan { kind: ScanKind::Prod, dim: 0 }),
        Request::Scan(Scan { kind: ScanKind::LogSumExp, dim: 0 }),
        Request::CumulativeExtreme(CumulativeExtreme { max: true, dim: 0 }),
        Request::Sort(Sort { dim: 0, descending: false, keep: 1 }),
        Request::Mode(Mode { dim: 0 }),
        softmax(false),
        softmax(true),
        Request::Nll(Nll { classes, adjoint: false, dim: 1, ticket: 0 }),
        norm("layer_norm", false),
        norm("group_norm", false),
        norm("batch_norm", true),
        Request::Conv(Conv { op: "convolution", pass: ConvPass::Forward { bias: false }, shape: conv }),
        Request::Attention(Attention {
            pass: AttentionPass::Forward,
            shape: AttentionShape { batch: 1, heads: 1, kv_heads: 1, l: 1, s: 1, e: 1, ev: 1 },
            scale: Scalar::Float(1.0),
            causal: false,
            mask: false,
            order: AttentionOrder::BatchHeadsRows,
        }),
        pool("max_pool", PoolPass::Max { indices: true, given: false }),
        pool("max_pool_backward", PoolPass::MaxAdjoint),
        pool("avg_pool", PoolPass::Average(PoolDivisor::Inside)),
        pool("avg_pool_backward", PoolPass::AverageAdjoint(PoolDivisor::Inside)),
        pool("unfold", PoolPass::Unfold),
        pool("fold", PoolPass::Fold),
        Request::Resample(Resample { op: "upsample", outer: 1, inner: 1, table: Arc::new(unit) }),
        Request::GridSample(grid),
        recurrent(RecurrentCell::Tanh),
        recurrent(RecurrentCell::Relu),
        recurrent(RecurrentCell::Gru),
        recurrent(RecurrentCell::Lstm { projected: false }),
        Request::Gemm,
        Request::IndexRead(IndexPlan::one(0, Bounds::Wrap)),
        Request::IndexWrite(IndexWrite { index: IndexPlan::one(0, Bounds::Exact), how: Write::Add }),
        Request::Gather(Along { dim: 0 }),
        Request::Scatter(ScatterAlong { dim: 0, how: Write::Set }),
        Request::Nonzero,
    ];
    all.extend(reducers.map(|reducer| Request::Reduce(Reduce { reducer, reduced: [true].into_iter().collect() })));
    all.extend(drawn.map(random));
    all
}

/// Every pointwise row, computed in this dtype.
pub fn rows(compute: DType) -> impl Iterator<Item = Request> {
    RowId::ALL.iter().map(move |row| Request::Pointwise(Pointwise::new(Func::forward(*row), compute, &[])))
}
