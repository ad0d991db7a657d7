//! Requests on images (pooling, other sizes, grids) on the CPU and on the reference backend.

use super::contract::{array, both, one};
use rgrad::DType;
use rgrad::array::Array;
use rgrad::call::{GridBorder, GridMode, GridPass, GridSample, Pool, PoolDivisor, PoolPass, Resample, WeightTable, WindowAxis};
use rgrad_kernels::call::Request;
use std::sync::Arc;

#[test]
pub fn pooling() {
    let axis = |input, output, kernel, stride, pad, dilation| WindowAxis { input, output, kernel, stride, pad, dilation, adaptive: false };
    let cases = [
        [WindowAxis::ONE, axis(7, 3, 3, 2, 1, 1), axis(6, 3, 2, 2, 0, 1)],
        [axis(3, 2, 2, 1, 0, 1), axis(5, 3, 2, 2, 1, 1), axis(9, 3, 3, 2, 1, 2)],
        [WindowAxis::ONE, WindowAxis::ONE, axis(40, 20, 3, 2, 1, 1)],
        [axis(4, 2, 2, 2, 0, 1), WindowAxis::adaptive(7, 3), WindowAxis::adaptive(5, 5)],
        [WindowAxis::ONE, WindowAxis::adaptive(3, 5), WindowAxis::adaptive(8, 2)],
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (case, axes) in cases.into_iter().enumerate() {
            let planes = 3;
            let pool = |pass| Pool { op: "pool", planes, axes, pass };
            let probe = pool(PoolPass::Unfold);
            let (n, m) = (probe.plane(), probe.windows());
            let (x, g) = (array(&[planes, n], dtype, 50 + case), array(&[planes, m], dtype, 60 + case));
            let run = |pass, ins: &[&Array], size: usize| one(Array::request1(Request::Pool(pool(pass)), ins, &[planes, size], dtype));
            let max = PoolPass::Max { indices: true, given: false };
            let outs: [(&[usize], DType); 2] = [(&[planes, m], dtype), (&[planes, m], DType::I64)];
            both("max pooling", &[&x], |i| Ok(Array::request(Request::Pool(pool(max)), i, &outs)?.into_vec()));
            both("max pooling without positions", &[&x], |i| run(PoolPass::Max { indices: false, given: false }, i, m));
            let places = Array::request(Request::Pool(pool(max)), &[&x], &outs).unwrap()[1].clone();
            both("the adjoint of max pooling", &[&g, &places], |i| run(PoolPass::MaxAdjoint, i, n));
            for how in [PoolDivisor::Inside, PoolDivisor::Padded, PoolDivisor::Fixed(-3)] {
                both("average pooling", &[&x], |i| run(PoolPass::Average(how), i, m));
                both("the adjoint of average pooling", &[&g], |i| run(PoolPass::AverageAdjoint(how), i, n));
            }
            if axes.iter().all(|a| !a.adaptive) {
                let columns = probe.kernel() * m;
                let c = array(&[planes, columns], dtype, 70 + case);
                both("unfold", &[&x], |i| run(PoolPass::Unfold, i, columns));
                both("fold", &[&c], |i| run(PoolPass::Fold, i, n));
            }
        }
    }
}

#[test]
fn pooling_with_given_starts() {
    let axes = [WindowAxis::ONE, WindowAxis { kernel: 2, ..WindowAxis { input: 6, output: 3, ..WindowAxis::ONE } }, {
        WindowAxis { kernel: 3, ..WindowAxis { input: 8, output: 2, ..WindowAxis::ONE } }
    }];
    let starts = [[0.0, 0.0, 2.0, 4.0, 1.0, 5.0], [0.0, 1.0, 1.0, 3.0, 0.0, 4.0]].concat();
    let starts = Array::from_slice(&starts, &[2, 6]).unwrap().cast(DType::I64).unwrap();
    for dtype in [DType::F32, DType::F64] {
        let x = array(&[2, 48], dtype, 9);
        let pool = Pool { op: "pool", planes: 2, axes, pass: PoolPass::Max { indices: true, given: true } };
        let outs: [(&[usize], DType); 2] = [(&[2, 6], dtype), (&[2, 6], DType::I64)];
        both("fractional pooling", &[&x, &starts], |i| Ok(Array::request(Request::Pool(pool), i, &outs)?.into_vec()));
    }
}

#[test]
pub fn other_sizes() {
    let rows = (0..7).map(|o| (0..o % 4).map(move |k| ((o * 3 + k) % 5, 0.25 * (k + 1) as f64 - 0.3)).collect::<Vec<_>>());
    let table = WeightTable::new(5, rows).unwrap();
    for dtype in [DType::F32, DType::F64, DType::F16] {
        for table in [table.clone(), table.transposed()] {
            for (outer, inner) in [(3, 1), (2, 40), (1, 3), (70, 1)] {
                let x = array(&[outer, table.input(), inner], dtype, 3);
                let shape = [outer, table.output(), inner];
                let resample = Resample { op: "interpolate", outer, inner, table: Arc::new(table.clone()) };
                both("resample", &[&x], |i| one(Array::request1(Request::Resample(resample.clone()), i, &shape, dtype)));
            }
        }
    }
}

#[test]
pub fn grids() {
    for dtype in [DType::F32, DType::F64] {
        for sizes in [[0, 5, 4], [0, 1, 6], [3, 2, 4]] {
            for mode in [GridMode::Linear, GridMode::Nearest, GridMode::Cubic] {
                for border in [GridBorder::Zeros, GridBorder::Border, GridBorder::Reflection] {
                    for align_corners in [false, true] {
                        let grid = |pass| GridSample {
                            op: "grid_sampler",
                            batch: 2,
                            channels: 3,
                            sizes,
                            places: 150,
                            mode,
                            border,
                            align_corners,
                            pass,
                        };
                        let probe = grid(GridPass::Read);
                        let (rank, plane) = (probe.axes().len(), probe.plane());
                        if mode == GridMode::Cubic && rank == 3 {
                            continue;
                        }
                        let (of_x, of_y, of_grid) = ([2, 3, plane], [2, 3, 150], [2, 150, rank]);
                        let (x, y, at) = (array(&of_x, dtype, 1), array(&of_y, dtype, 2), array(&of_grid, dtype, 3));
                        let run =
                            |pass, ins: &[&Array], to: &[usize]| one(Array::request1(Request::GridSample(grid(pass)), ins, to, dtype));
                        both("grid_sample", &[&x, &at], |i| run(GridPass::Read, i, &of_y));
                        both("the image's gradient", &[&y, &x, &at], |i| run(GridPass::ImageGradient, i, &of_x));
                        both("the grid's gradient", &[&y, &x, &at], |i| run(GridPass::GridGradient, i, &of_grid));
                    }
                }
            }
        }
    }
}
