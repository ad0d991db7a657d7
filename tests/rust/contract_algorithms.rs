//! Every algorithm of every list, asked for by name, on the samples that its plan takes, against the reference backend.

use super::contract::{array, both, one};
use rgrad::array::Array;
use rgrad::call::{Conv, ConvPass, ConvShape, Pool, PoolDivisor, PoolPass, WindowAxis};
use rgrad::{DType, Result};
use rgrad_kernels::backend::cpu::algorithms;
use rgrad_kernels::call::Request;
use rgrad_kernels::host::kernel_names;
use rgrad_kernels::simd::{InstructionSet, instruction_set};
use std::cell::RefCell;

thread_local!(static RAN: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) });

/// The names of the kernels that `f` runs on this thread.
fn ran(f: impl FnOnce()) -> Vec<&'static str> {
    RAN.take();
    kernel_names::watch(Some(|name| RAN.with_borrow_mut(|ran| ran.push(name))));
    f();
    kernel_names::watch(None);
    RAN.take()
}

/// Algorithms that this machine has not. All of them have one of another name beside them.
fn is_missing(name: &str) -> bool {
    match name {
        "matmul.skinny" => instruction_set() != InstructionSet::Avx512,
        "matmul.packed" | "conv.disjoint" | "conv.depthwise" | "conv.images" | "pool.across" => instruction_set() == InstructionSet::Base,
        _ => false,
    }
}

/// Runs the samples of a family with each of its algorithms.
fn each_algorithm(family: &str, samples: impl Fn()) {
    let names: Vec<_> = algorithms::names().into_iter().filter(|name| name.split('.').next() == Some(family)).collect();
    assert!(names.len() > 1, "{family} has {names:?}");
    for name in names {
        let asked: &'static [&'static str] = Box::leak(Box::new([name]));
        let ran = ran(|| kernel_names::asking(asked, &samples));
        assert!(ran.contains(&name) != is_missing(name), "{name}, of {family}'s samples: {ran:?}");
    }
}

fn square(batch: usize, groups: usize, channels: [usize; 2], side: usize, kernel: usize, stride: usize, padding: usize) -> ConvShape {
    let out = (side + 2 * padding - kernel) / stride + 1;
    ConvShape {
        batch,
        groups,
        in_channels: channels[0],
        out_channels: channels[1],
        input: [1, side, side],
        output: [1, out, out],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        dilation: [1; 3],
        padding: [0, padding, padding],
    }
}

/// All passes of a convolution; `compare` is given what each is, its operands, and how it is run.
fn each_pass(s: &ConvShape, dtype: DType, compare: impl Fn(&str, &[&Array], &dyn Fn(&[&Array]) -> Result<Vec<Array>>)) {
    let lead = |n: usize, channels: usize, s: [usize; 3]| [n, channels, s[0], s[1], s[2]];
    let (of_x, of_y) = (s.groups * s.in_channels, s.groups * s.out_channels);
    let shapes = [lead(s.batch, of_x, s.input), lead(of_y, s.in_channels, s.kernel), lead(s.batch, of_y, s.output)];
    let [x, w, y] = [0, 1, 2].map(|k| array(&shapes[k], dtype, 40 + k));
    let run = |pass: ConvPass, ins: &[&Array], to: &[usize]| {
        one(Array::request1(Request::Conv(Conv { op: "convolution", pass, shape: *s }), ins, to, dtype))
    };
    let bias = [of_x, of_y].map(|n| array(&[n], dtype, 44));
    compare("convolution", &[&x, &w, &bias[1]], &|i| run(ConvPass::Forward { bias: true }, i, &shapes[2]));
    compare("convolution's input", &[&y, &w, &bias[0]], &|i| run(ConvPass::Input { bias: true }, i, &shapes[0]));
    compare("convolution's weight", &[&y, &x], &|i| run(ConvPass::Weight, i, &shapes[1]));
}

#[test]
fn convolutions() {
    let three = ConvShape { input: [3, 4, 5], output: [2, 3, 4], kernel: [2; 3], ..square(2, 1, [3, 5], 5, 2, 1, 0) };
    let shapes = [
        square(1, 1, [1, 1], 1, 1, 1, 0),
        square(2, 3, [1, 1], 9, 3, 1, 1),
        square(2, 19, [1, 1], 12, 3, 2, 1),
        square(2, 1, [3, 6], 16, 4, 4, 0),
        square(2, 2, [5, 3], 8, 2, 2, 0),
        square(3, 1, [5, 6], 9, 3, 1, 1),
        square(1, 2, [3, 9], 11, 3, 1, 0),
        square(2, 1, [9, 4], 10, 3, 2, 1),
        square(1, 1, [6, 7], 12, 4, 2, 1),
        square(2, 1, [4, 5], 9, 2, 1, 0),
        square(2, 1, [7, 9], 6, 1, 1, 0),
        square(2, 2, [3, 5], 7, 1, 1, 0),
        square(1, 1, [20, 33], 12, 1, 2, 0),
        square(1, 1, [8, 6], 5, 1, 1, 1),
        square(1, 1, [2, 40], 17, 5, 1, 2),
        ConvShape { dilation: [1, 2, 2], output: [1, 5, 5], ..square(1, 1, [4, 6], 9, 3, 1, 0) },
        ConvShape { output: [1, 3, 4], ..square(1, 1, [4, 6], 9, 3, 2, 0) },
        three,
    ];
    each_algorithm("conv", || {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32] {
            shapes.iter().for_each(|s| each_pass(s, dtype, |what, ins, run| both(what, ins, run)));
        }
    });
}

#[test]
fn products() {
    let sizes = [
        (1, 1, 1),
        (4, 4, 4),
        (3, 16, 7),
        (1, 70, 33),
        (70, 1, 33),
        (1, 1, 300),
        (3, 40, 50),
        (64, 30, 70),
        (70, 65, 40),
        (130, 20, 17),
        (5, 129, 130),
    ];
    each_algorithm("matmul", || {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32] {
            for (m, n, k) in sizes {
                for (left, right) in [(false, false), (false, true), (true, false), (true, true)] {
                    let of = |rows: usize, columns: usize, turned: bool| if turned { [2, columns, rows] } else { [2, rows, columns] };
                    let (a, b) = (array(&of(m, k, left), dtype, 1), array(&of(k, n, right), dtype, 2));
                    both("batches of products", &[&a, &b], |i| one(i[0].matmul(i[1], (left, right))));
                    let first = |x: &Array| x.with_layout(x.layout().select(0, 0).unwrap()).unwrap().contiguous_copy().unwrap();
                    both("products", &[&first(&a), &first(&b)], |i| one(i[0].matmul(i[1], (left, right))));
                }
            }
        }
    });
}

#[test]
fn pools() {
    let axis = |input, output, kernel, stride, pad, dilation| WindowAxis { input, output, kernel, stride, pad, dilation, adaptive: false };
    let cases = [
        [WindowAxis::ONE, axis(7, 3, 3, 2, 1, 1), axis(6, 3, 2, 2, 0, 1)],
        [axis(3, 2, 2, 1, 0, 1), axis(5, 3, 2, 2, 1, 1), axis(9, 3, 3, 2, 1, 2)],
        [WindowAxis::ONE, WindowAxis::ONE, axis(300, 298, 3, 1, 0, 1)],
        [WindowAxis::ONE, WindowAxis::adaptive(3, 5), WindowAxis::adaptive(8, 2)],
    ];
    each_algorithm("pool", || {
        for dtype in [DType::F32, DType::F64, DType::F16] {
            for (case, axes) in cases.into_iter().enumerate() {
                // Fewer than a vector has lanes, and more.
                for planes in [3, 37] {
                    let pool = |pass| Pool { op: "pool", planes, axes, pass };
                    let (n, m) = (pool(PoolPass::Unfold).plane(), pool(PoolPass::Unfold).windows());
                    let (x, g) = (array(&[planes, n], dtype, 50 + case), array(&[planes, m], dtype, 60 + case));
                    let run =
                        |pass, ins: &[&Array], size: usize| one(Array::request1(Request::Pool(pool(pass)), ins, &[planes, size], dtype));
                    let max = PoolPass::Max { indices: true, given: false };
                    let outs: [(&[usize], DType); 2] = [(&[planes, m], dtype), (&[planes, m], DType::I64)];
                    both("max pooling", &[&x], |i| Ok(Array::request(Request::Pool(pool(max)), i, &outs)?.into_vec()));
                    both("largest elements alone", &[&x], |i| run(PoolPass::Max { indices: false, given: false }, i, m));
                    both("average pooling", &[&x], |i| run(PoolPass::Average(PoolDivisor::Padded), i, m));
                    both("the adjoint of average pooling", &[&g], |i| run(PoolPass::AverageAdjoint(PoolDivisor::Inside), i, n));
                }
            }
        }
    });
}

#[test]
fn a_bias_is_added_by_those_that_say_so() {
    let (a, b, bias) = (array(&[20, 40], DType::F32, 1), array(&[30, 40], DType::F32, 2), array(&[30], DType::F32, 3));
    for name in algorithms::names().into_iter().filter(|name| name.starts_with("matmul.")) {
        let asked: &'static [&'static str] = Box::leak(Box::new([name]));
        kernel_names::asking(asked, || {
            let (sum, is_added) = a.matmul_and_bias(&b, (false, true), &bias).unwrap();
            let product = a.matmul(&b, (false, true)).unwrap().to_vec::<f64>().unwrap();
            let bias = bias.to_vec::<f64>().unwrap();
            for (i, sum) in sum.to_vec::<f64>().unwrap().into_iter().enumerate() {
                let want = product[i] + if is_added { bias[i % 30] } else { 0.0 };
                assert!((sum - want).abs() < 1e-5, "{name} at {i}: {sum} and {want}");
            }
            let (adds, does_not) = (["matmul.skinny", "matmul.packed"].contains(&name), ["matmul.gemm"].contains(&name));
            assert!(!adds || is_missing(name) || is_added, "{name}");
            assert!(!does_not || !is_added, "{name}");
        });
    }
}

#[test]
fn what_is_not_asked_for_runs_as_it_is_fastest() {
    // A pending result is computed when its elements are read.
    let alone = |_: &str, ins: &[&Array], run: &dyn Fn(&[&Array]) -> Result<Vec<Array>>| drop(run(ins).unwrap()[0].to_vec::<f64>());
    let of = |s: &ConvShape| ran(|| each_pass(s, DType::F32, alone));
    let plain = of(&square(1, 1, [1, 1], 1, 1, 1, 0));
    assert!(!plain.is_empty() && plain.iter().all(|name| *name == "conv.plain"), "{plain:?}");
    let large = of(&square(1, 1, [40, 40], 30, 3, 1, 1));
    assert_eq!(large, ["conv.winograd"; 3]);
    // What is infinite is computed again by the next algorithm in order.
    let (x, w) = (Array::from_slice(&[f64::INFINITY; 36_000], &[1, 40, 1, 30, 30]).unwrap(), array(&[40, 40, 1, 3, 3], DType::F32, 1));
    let shape = square(1, 1, [40, 40], 30, 3, 1, 1);
    let request = Request::Conv(Conv { op: "convolution", pass: ConvPass::Forward { bias: false }, shape });
    let x = x.cast(DType::F32).unwrap();
    let again = ran(|| drop(Array::request1(request.clone(), &[&x, &w], &[1, 40, 1, 30, 30], DType::F32).unwrap().to_vec::<f64>()));
    assert_eq!(again, ["conv.winograd", "conv.patches"]);
}
