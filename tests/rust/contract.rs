//! Every request, and random programs, on the CPU and on the reference backend.

use super::common::{Along as _, values};
use super::reference;
use rgrad::array::{Array, Bounds, Device, IndexPlan, Write, fusion};
use rgrad::call::{
    Attention, AttentionOrder, AttentionPass, AttentionShape, Classes, Conv, ConvPass, ConvShape, NllReduction, Norm, NormPass, NormShape,
    ScanKind, SoftmaxPass, Sort,
};
use rgrad::layout::{Layout, Scalar};
use rgrad::rows::{Func, RowId};
use rgrad::{DType, Result};
use rgrad_kernels::backend::contract::{Backend, Memory, Operand, View};
use rgrad_kernels::backend::cpu::backend::CPU;
use rgrad_kernels::call::{Custom, Reads, Request};
use std::sync::{Arc, LazyLock};

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::register("reference", reference::find).expect("a free name"));

pub fn array(shape: &[usize], dtype: DType, seed: usize) -> Array {
    let v: Vec<f64> =
        values(shape.iter().product(), seed).into_iter().map(|v| if dtype.is_float() { v } else { (v * 4.0).round() }).collect();
    let v: Vec<f64> = if !dtype.is_signed() && dtype != DType::Bool { v.into_iter().map(f64::abs).collect() } else { v };
    Array::from_slice(&v, shape).unwrap().cast(dtype).unwrap()
}

/// The same elements lying in three ways: row-major, transposed, and every other one of a larger array.
fn layouts(shape: &[usize], dtype: DType, seed: usize) -> Vec<Array> {
    let dense = array(shape, dtype, seed);
    let mut all = vec![dense.clone()];
    if shape.len() > 1 {
        let turned = dense.with_layout(dense.layout().transpose(0, shape.len() - 1)).unwrap().contiguous_copy().unwrap();
        all.push(turned.with_layout(turned.layout().transpose(0, shape.len() - 1)).unwrap());
    }
    let mut wide = shape.to_vec();
    *wide.last_mut().unwrap() *= 2;
    let wide = array(&wide, dtype, seed + 1);
    let strides = wide.strides().iter().enumerate().map(|(d, s)| if d + 1 == shape.len() { 2 * s } else { *s }).collect();
    let part = wide.with_layout(Layout::from_parts(shape.iter().copied().collect(), strides, 1).unwrap()).unwrap();
    part.copy_from(&dense).unwrap();
    all.push(part);
    all
}

fn there(a: &Array) -> Array {
    let moved = a.to_device(*DEVICE).unwrap();
    assert_eq!(moved.device(), *DEVICE);
    moved
}

fn same(what: &str, here: &Result<Vec<Array>>, there: &Result<Vec<Array>>) {
    match (here, there) {
        (Ok(a), Ok(b)) => {
            assert_eq!(a.len(), b.len());
            for (a, b) in a.iter().zip(b) {
                assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{what}");
                let parts = |a: &Array| {
                    if a.dtype().is_complex() {
                        a.with_parts(a.layout().as_pairs().unwrap(), a.dtype().row().real).unwrap()
                    } else {
                        a.clone()
                    }
                };
                let (x, y) = (parts(a).to_vec::<f64>().unwrap(), parts(b).to_vec::<f64>().unwrap());
                let close = match a.dtype().row().real {
                    DType::F16 => 2e-3,
                    DType::BF16 => 1.6e-2,
                    DType::F32 => 2e-5,
                    _ => 1e-12,
                };
                for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                    let near = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= close * (1.0 + x.abs());
                    assert!(near, "{what} of {}: {x} on the CPU and {y} on the reference backend, at {i} of {:?}", a.dtype(), a.shape());
                }
            }
        }
        (Err(a), Err(b)) => assert_eq!(a.message(), b.message(), "{what}"),
        (a, b) => panic!("{what}: {a:?} on the CPU and {b:?} on the reference backend"),
    }
}

/// Runs `f` on operands of the CPU and on the same ones on the reference backend.
pub fn both(what: &str, ins: &[&Array], f: impl Fn(&[&Array]) -> Result<Vec<Array>>) {
    let copies: Vec<Array> = ins.iter().map(|a| a.clone_dense().unwrap()).collect();
    let elsewhere: Vec<Array> = ins.iter().map(|a| there(a)).collect();
    let here: Vec<&Array> = if ins.iter().all(|a| a.is_contiguous()) { copies.iter().collect() } else { ins.to_vec() };
    same(what, &f(&here), &f(&elsewhere.iter().collect::<Vec<_>>()));
}

pub fn one(made: Result<Array>) -> Result<Vec<Array>> {
    made.map(|a| vec![a])
}

#[test]
pub fn reductions_scans_and_sorting() {
    for dtype in DType::ALL.into_iter().filter(|d| !d.is_complex() && !d.is_wide_unsigned()) {
        for x in layouts(&[3, 4, 5], dtype, 1) {
            for reduced in [[true; 3], [false, true, false], [true, false, true], [false; 3]] {
                for keepdim in [false, true] {
                    let all = |a: &Array| -> Vec<(&str, Result<Array>)> {
                        let r = &reduced[..];
                        vec![
                            ("sum", a.sum(r, keepdim)),
                            ("prod", a.prod(r, keepdim)),
                            ("amax", a.extreme(true, r, keepdim)),
                            ("amin", a.extreme(false, r, keepdim)),
                            ("all", a.truth(true, r, keepdim)),
                            ("any", a.truth(false, r, keepdim)),
                            ("count_nonzero", a.reduce(rgrad::call::Reducer::CountNonzero, r, keepdim)),
                            ("squares", a.squares(r, keepdim)),
                            ("logsumexp", a.logsumexp(r, keepdim)),
                            ("norm 2", a.norm(2.0, r, keepdim)),
                            ("norm 3", a.norm(3.0, r, keepdim)),
                            ("norm inf", a.norm(f64::INFINITY, r, keepdim)),
                            ("norm 0", a.norm(0.0, r, keepdim)),
                        ]
                    };
                    for ((what, a), (_, b)) in all(&x).into_iter().zip(all(&there(&x))) {
                        same(what, &one(a), &one(b));
                    }
                }
            }
            for dim in 0..3 {
                for max in [true, false] {
                    both("max along", &[&x], |i| i[0].max_along(max, dim, false));
                    both("cummax", &[&x], |i| i[0].cummax(max, dim));
                    both("sort", &[&x], |i| i[0].sort_along(Sort { dim, descending: max, keep: 3 }));
                }
                both("cumsum", &[&x], |i| one(i[0].scan(ScanKind::Sum, dim)));
                both("cumprod", &[&x], |i| one(i[0].scan(ScanKind::Prod, dim)));
                both("logcumsumexp", &[&x], |i| one(i[0].scan(ScanKind::LogSumExp, dim)));
                both("mode", &[&x], |i| i[0].mode_along(dim, true));
                for log in [false, true] {
                    both("softmax", &[&x], |i| one(i[0].softmax(SoftmaxPass { log, backward: false }, dim, None)));
                    both("softmax backward", &[&x, &array(&[3, 4, 5], dtype, 9)], |i| {
                        one(i[0].softmax(SoftmaxPass { log, backward: true }, dim, Some(i[1])))
                    });
                }
            }
            let sorted = array(&[3, 4, 7], dtype, 2).sort_along(Sort { dim: 2, descending: false, keep: 7 }).unwrap().remove(0);
            for right in [false, true] {
                both("search", &[&sorted, &x], |i| one(i[0].places(i[1], right)));
            }
            both("nonzero", &[&x], |i| Ok(i[0].nonzero()?.into_vec()));
        }
    }
}

#[test]
pub fn normalisation() {
    // All ways in which the CPU walks them: rows, chunks, columns, and each of them divided among tasks.
    let shapes = [
        (3, 1, 5, 1, false),
        (2, 2, 2, 3, false),
        (2, 2, 2, 20, false),
        (70, 1, 1000, 1, false),
        (1, 1, 3, 50_000, false),
        (40, 2, 20, 30, false),
        (4, 3, 1, 1, true),
        (3, 2, 1, 5, true),
        (3, 2, 1, 20, true),
        (900, 300, 1, 1, true),
        (3, 2, 1, 50_000, true),
        (1, 1, 1, 1, true),
    ];
    for dtype in [DType::F32, DType::F64] {
        for (outer, groups, channels, inner, across) in shapes {
            let shape = NormShape { outer, groups, channels, inner, across };
            let whole = [outer, groups, channels, inner];
            let (stats, params) = ([shape.stats()], [shape.params()]);
            let x = array(&whole, dtype, 1);
            let (w, b, mean) = (array(&params, dtype, 2), array(&params, dtype, 3), array(&stats, dtype, 4));
            let var = array(&stats, dtype, 5).to_vec::<f64>().unwrap().iter().map(|v| v.abs() + 0.5).collect::<Vec<f64>>();
            let var = Array::from_slice(&var, &stats).unwrap().cast(dtype).unwrap();
            let run = |pass: NormPass, ins: &[&Array]| {
                let n = Norm { op: "norm", pass, shape, eps: Scalar::Float(0.1) };
                let outs: &[&[usize]] = match pass {
                    NormPass::Forward { .. } if across => &[&whole, &stats, &stats, &stats],
                    NormPass::Forward { .. } => &[&whole, &stats, &stats],
                    NormPass::Backward { params: true, .. } => &[&whole, &params, &params],
                    _ => &[&whole],
                };
                let outs: Vec<(&[usize], DType)> = outs.iter().map(|o| (*o, dtype)).collect();
                Ok(Array::request(Request::Norm(n), ins, &outs)?.into_vec())
            };
            for (weight, bias) in [(false, false), (true, false), (false, true), (true, true)] {
                let affine: Vec<&Array> = [weight.then_some(&w), bias.then_some(&b)].into_iter().flatten().collect();
                let with = |first: &[&Array]| [first, &affine].concat().iter().map(|a| (*a).clone()).collect::<Vec<Array>>();
                let given = with(&[&x]);
                both("norm", &given.iter().collect::<Vec<_>>(), |i| run(NormPass::Forward { weight, bias }, i));
                let given = with(&[&x, &mean, &var]);
                both("norm", &given.iter().collect::<Vec<_>>(), |i| run(NormPass::Apply { weight, bias }, i));
            }
            for (weight, fixed, params) in [(false, false, false), (true, false, true), (true, true, true), (false, true, false)] {
                let g = array(&whole, dtype, 6);
                let ins: Vec<&Array> = [&g, &x, &mean, &var].into_iter().chain(weight.then_some(&w)).collect();
                both("norm backward", &ins, |i| run(NormPass::Backward { weight, fixed, params }, i));
            }
        }
    }
}

#[test]
pub fn convolutions() {
    let mut seed = 1u64;
    let mut draw = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    for case in 0..300 {
        let dtype = [DType::F32, DType::F64, DType::F32, DType::I64, DType::U8, DType::F16, DType::I16, DType::BF16][case % 8];
        let rank = draw(3);
        let mut sizes = |one: usize, n: usize| [0, 1, 2].map(|d| if d < rank { one } else { draw(n) });
        let (kernel, stride, dilation, padding) = (sizes(0, 4), sizes(0, 3), sizes(0, 3), sizes(0, 4));
        let (kernel, stride, dilation) = (kernel.map(|k| k + 1), stride.map(|s| s + 1), dilation.map(|d| d + 1));
        let output = sizes(0, 6).map(|o| o + 1);
        // As many as meet the input, or a few more or fewer.
        let input = [0, 1, 2].map(|d| {
            let reach = (output[d] - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1;
            (reach + if d < rank { 0 } else { draw(4) }).saturating_sub(2 * padding[d]).max(1)
        });
        let shape = ConvShape {
            batch: draw(3) + 1,
            groups: draw(3) + 1,
            in_channels: draw(5) + usize::from(case % 20 > 0),
            out_channels: draw(9) + 1,
            input,
            output,
            kernel,
            stride,
            dilation,
            padding,
        };
        let lead = |n: usize, channels: usize, s: [usize; 3]| vec![n, channels, s[0], s[1], s[2]];
        let (of_x, of_y) = (shape.groups * shape.in_channels, shape.groups * shape.out_channels);
        let shapes = [lead(shape.batch, of_x, input), lead(of_y, shape.in_channels, kernel), lead(shape.batch, of_y, output)];
        let [x, w, y] = [0, 1, 2].map(|k| layouts(&shapes[k], dtype, 40 + k)[draw(3)].clone());
        let run = |pass: ConvPass, ins: &[&Array], to: &[usize]| {
            one(Array::request1(Request::Conv(Conv { op: "convolution", pass, shape }), ins, to, dtype))
        };
        for bias in [false, true] {
            let with = |a, b, n| [a, b, &array(&[n], dtype, 44)].into_iter().take(2 + usize::from(bias)).cloned().collect::<Vec<Array>>();
            let ins = with(&x, &w, of_y);
            both("convolution", &ins.iter().collect::<Vec<_>>(), |i| run(ConvPass::Forward { bias }, i, &shapes[2]));
            let ins = with(&y, &w, of_x);
            both("convolution's input", &ins.iter().collect::<Vec<_>>(), |i| run(ConvPass::Input { bias }, i, &shapes[0]));
        }
        both("convolution's weight", &[&y, &x], |i| run(ConvPass::Weight, i, &shapes[1]));
        assert!(run(ConvPass::Weight, &[&y, &w], &shapes[1]).is_err() || x.numel() == w.numel());
    }
}

#[test]
pub fn attention() {
    // More queries and keys than a block, heads that share keys, and columns that do not fill a vector.
    let sizes = [[2, 2, 1, 3, 4, 3, 2], [1, 4, 2, 70, 140, 5, 18], [1, 1, 1, 2, 600, 1, 1], [1, 2, 2, 130, 3, 33, 40]];
    for dtype in [DType::F32, DType::F64] {
        for [batch, heads, kv_heads, l, s, e, ev] in sizes {
            let shape = AttentionShape { batch, heads, kv_heads, l, s, e, ev };
            let (rows, lse) = ([batch, heads, l, ev], [batch, heads, l]);
            let (q, k) = (array(&[batch, heads, l, e], dtype, 1), array(&[batch, kv_heads, s, e], dtype, 2));
            let (v, g) = (array(&[batch, kv_heads, s, ev], dtype, 3), array(&rows, dtype, 4));
            let added = array(&[batch, heads, l, s], dtype, 5);
            let allowed = added.cast(DType::I64).unwrap().cast(DType::Bool).unwrap();
            let [plain, inside, first] = AttentionOrder::ALL;
            for (causal, mask, order) in
                [(false, None, inside), (true, None, plain), (false, Some(&added), first), (true, Some(&allowed), inside)]
            {
                let request = |pass, order| Attention { pass, shape, scale: Scalar::Float(0.3), causal, mask: mask.is_some(), order };
                let forward = request(AttentionPass::Forward, order);
                let outs: [(&[usize], DType); 2] = [(&forward.result_shape(), dtype), (&[batch, l, heads], dtype.computed())];
                let ins: Vec<&Array> = [&q, &k, &v].into_iter().chain(mask).collect();
                both("attention", &ins, |i| Ok(Array::request(Request::Attention(forward), i, &outs)?.into_vec()));
                let outs = [(&rows[..], dtype), (&[batch, l, heads], dtype.computed())];
                let o = Array::request(Request::Attention(request(AttentionPass::Forward, plain)), &ins, &outs).unwrap();
                let sums = o[1].with_layout(o[1].layout().transpose(1, 2)).unwrap().contiguous_copy().unwrap();
                assert_eq!(sums.shape(), &lse);
                let ins: Vec<&Array> = [&g, &q, &k, &v, &o[0], &sums].into_iter().chain(mask).collect();
                let outs: [(&[usize], DType); 3] =
                    [(&[batch, l, heads, e], dtype), (&[batch, s, kv_heads, e], dtype), (&[batch, s, kv_heads, ev], dtype)];
                let backward = request(AttentionPass::Backward, plain);
                both("attention backward", &ins, |i| Ok(Array::request(Request::Attention(backward), i, &outs)?.into_vec()));
            }
        }
    }
}

#[test]
pub fn copies_fills_triangles_and_products() {
    for dtype in DType::ALL {
        for x in layouts(&[4, 6], dtype, 2) {
            // What is below 0 is above int64 in uint64, which the reference backend cannot say.
            for to in DType::ALL.into_iter().filter(|to| *to != DType::U64 || !dtype.is_signed()) {
                both("cast", &[&x], |i| one(i[0].cast(to)));
            }
            both("flip", &[&x], |i| one(i[0].flip(&[0, 1])));
            both("repeat", &[&x], |i| one(i[0].repeat(&[2, 3])));
            both("roll", &[&x], |i| one(i[0].roll(&[1, -2], &[0, 1])));
            for diagonal in [-2, 0, 3] {
                both("triu", &[&x], |i| {
                    let out = i[0].empty_like(i[0].dtype())?;
                    out.triangle_from(i[0], diagonal, true)?;
                    Ok(vec![out])
                });
            }
            both("fill", &[&x], |i| one(i[0].full_beside(&[2, 2], Scalar::Int(3), i[0].dtype())));
            if dtype.is_complex() || dtype.is_wide_unsigned() {
                continue;
            }
            let y = array(&[2, 6, 3], dtype, 3);
            both("matmul", &[&x, &y], |i| one(i[0].matmul(i[1], (false, false))));
        }
    }
}

#[test]
pub fn positions() {
    for dtype in DType::ALL {
        for x in layouts(&[4, 5, 3], dtype, 4) {
            let index = |v: &[i64], shape: &[usize]| Array::from_slice(v, shape).unwrap();
            let (i, j) = (index(&[0, -1, 2, 2], &[4]), index(&[1, 0, -2, 1], &[4]));
            let plan = || IndexPlan { dims: [0, 1].into_iter().collect(), at: 0, bounds: Bounds::Wrap };
            both("index", &[&x, &i, &j], |a| one(a[0].take_rows(&plan(), &a[1..])));
            both("index out of range", &[&x, &index(&[0, 4], &[2]), &index(&[0, 0], &[2])], |a| one(a[0].take_rows(&plan(), &a[1..])));
            both("index_select", &[&x, &index(&[2, 0], &[2])], |a| one(a[0].take_rows(&IndexPlan::one(1, Bounds::Select), &a[1..])));
            for how in [Write::Set, Write::Add, Write::Multiply] {
                both("index_put", &[&x, &array(&[4, 3], dtype, 5), &i, &j], |a| {
                    let out = a[0].contiguous_copy()?;
                    out.put_rows(&plan(), &a[2..], a[1], how)?;
                    Ok(vec![out])
                });
                let at = index(&[0, 1, 2, 3, 3, 2, 1, 0, 0], &[3, 3, 1]);
                both("scatter", &[&x, &at, &array(&[3, 3, 1], dtype, 6)], |a| {
                    let out = a[0].contiguous_copy()?;
                    out.scatter_into(0, a[1], a[2], how)?;
                    Ok(vec![out])
                });
                both("gather", &[&x, &at], |a| one(a[0].gather(0, a[1])));
            }
        }
    }
}

#[test]
pub fn losses() {
    for dtype in [DType::F32, DType::F64] {
        let (x, w) = (array(&[4, 5, 2], dtype, 7), array(&[5], dtype, 8));
        for (target, weighs) in [([0i64, 4, -100, 2, 1, 1, 3, 0], true), ([0, 4, 5, 2, 1, 1, 3, 0], false)] {
            let targets = Array::from_slice(&target, &[4, 2]).unwrap();
            for reduction in [NllReduction::None, NllReduction::Mean, NllReduction::Sum] {
                let c = Classes { outer: 4, classes: 5, inner: 2, ignore: -100, reduction };
                let losses: &[usize] = if reduction == NllReduction::None { &[4, 2] } else { &[] };
                both("nll_loss", &[&x, &targets, &w], |a| one(a[0].nll(c, false, losses, a[1], weighs.then_some(a[2]))));
                let g = array(losses, dtype, 10);
                both("nll_loss backward", &[&g, &targets, &w], |a| one(a[0].nll(c, true, &[4, 5, 2], a[1], weighs.then_some(a[2]))));
            }
        }
    }
}

#[test]
pub fn every_row_over_strides_and_broadcast() {
    for row in RowId::ALL {
        // Complex numbers are in `complex.rs`; of wide unsigned integers `ops` lets few rows through.
        for compute in DType::ALL.into_iter().filter(|d| !d.is_complex() && !d.is_wide_unsigned()) {
            let func = Func::forward(*row);
            let x = array(&[3, 4], compute, 11);
            if !x.has_row(func, compute) {
                continue;
            }
            let out = func.out_dtype(compute);
            let operands: Vec<Array> = (0..func.inputs())
                .map(|k| layouts(if k == 1 { &[1, 4] } else { &[3, 4] }, func.in_dtype(k, compute), 12 + k)[k % 2].clone())
                .collect();
            let params: Vec<Scalar> = row.info().sample_params.iter().map(|p| Scalar::Float(*p)).collect();
            let name = row.info().name;
            both(name, &operands.iter().collect::<Vec<_>>(), |a| one(Array::pointwise(func, compute, out, a, &params)));
        }
    }
}

/// Pointwise steps in a row, with what reads the last one, drawn from a seed.
fn program(ins: &[&Array], mut seed: u64) -> Result<Vec<Array>> {
    let mut draw = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    const ROWS: [RowId; 10] =
        [RowId::Add, RowId::Mul, RowId::Sub, RowId::Maximum, RowId::Tanh, RowId::Sin, RowId::Neg, RowId::Abs, RowId::Sigmoid, RowId::Erf];
    let mut made: Vec<Array> = ins.iter().map(|a| (*a).clone()).collect();
    let mut held = Vec::new();
    for _ in 0..3 + draw(8) {
        let func = Func::forward(ROWS[draw(ROWS.len())]);
        let (a, b) = (made[draw(made.len())].clone(), made[draw(made.len())].clone());
        let operands: Vec<&Array> = [&a, &b].into_iter().take(func.inputs()).collect();
        let next = Array::pointwise(func, DType::F64, DType::F64, &operands, &[Scalar::Float(1.0); 3][..func.row.info().params.len()])?;
        if draw(4) == 0 {
            held.push(next.clone());
        }
        made.push(next);
    }
    let last = made.pop().expect("a step");
    let last = if last.shape().len() == 2 { last } else { last.with_layout(last.layout().expand(&[8, 6])?)? };
    drop(made);
    held.extend(match draw(6) {
        0 => vec![last.sum(&[true, false], false)?],
        1 => vec![last.softmax(SoftmaxPass { log: false, backward: false }, 1, None)?],
        2 => last.max_along(true, 0, false)?,
        3 => vec![last.scan(ScanKind::Sum, 1)?],
        4 => vec![last.logsumexp(&[false, true], true)?],
        _ => vec![last],
    });
    Ok(held)
}

#[test]
pub fn random_programs() {
    // Deferred however small they are.
    let before = fusion::set_min_elements(1);
    let steps = fusion::counts().steps;
    for seed in 0..300 {
        let ins = [array(&[8, 6], DType::F64, 20), array(&[6], DType::F64, 21), array(&[8, 1], DType::F64, 22)];
        both(&format!("program {seed}"), &ins.iter().collect::<Vec<_>>(), |a| program(a, seed));
    }
    assert!(fusion::counts().steps > steps + 300, "nothing was deferred");
    fusion::set_min_elements(before);
}

/// A kernel from outside: the sum of two float64 operands, element by element.
#[derive(Debug)]
struct Plus;

// SAFETY: as many elements are written as the output has, which is compared first.
unsafe impl Custom for Plus {
    fn name(&self) -> &'static str {
        "plus"
    }

    unsafe fn run(&self, ins: &[View<'_>], outs: &[View<'_>]) -> rgrad_kernels::error::Result<()> {
        if ins[0].numel() != outs[0].numel() {
            return Err(rgrad_kernels::error::Error::shape("plus: two sizes"));
        }
        for i in 0..outs[0].numel() {
            // SAFETY: the test gives as many elements to each.
            unsafe { *outs[0].ptr().cast::<f64>().add(i) = *ins[0].ptr().cast::<f64>().add(i) + *ins[1].ptr().cast::<f64>().add(i) };
        }
        Ok(())
    }
}

#[test]
fn a_request_from_outside_reads_memory() {
    let request = Request::Custom(Arc::new(Plus));
    assert_eq!((request.name(), request.reads(0), request.outputs()), ("plus", Reads::InMemory, 1));
    let (mut a, mut b, mut out) = ([1.0f64, 2.0], [3.0f64, 4.0], [0.0f64; 2]);
    let view = |p: *mut f64, shape| View { memory: Memory::Host(p.cast()), offset: 0, shape, strides: &[1], dtype: DType::F64 };
    let (x, y) = (view(a.as_mut_ptr(), &[2]), view(b.as_mut_ptr(), &[2]));
    // SAFETY: views of two elements each.
    unsafe { CPU.run(&request, &[Operand::View(x), Operand::View(y)], &[Some(view(out.as_mut_ptr(), &[2]))]).unwrap() };
    assert_eq!(out, [4.0, 6.0]);
    let short = view(out.as_mut_ptr(), &[1]);
    // SAFETY: as above.
    let refused = unsafe { CPU.run(&request, &[Operand::View(x), Operand::View(y)], &[Some(short)]) };
    assert_eq!(refused.unwrap_err().message(), "plus: two sizes");
}
