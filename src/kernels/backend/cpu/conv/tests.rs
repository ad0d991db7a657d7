use super::algorithms::{PLAIN, takes_epilogue as is_packed};
use super::*;
use crate::backend::cpu::common::seed::Seed;
use crate::host::threads::{SharedPointer, set_num_threads};
use crate::layout::{BF16, F16};
use crate::simd::best;
use std::sync::atomic::{AtomicUsize, Ordering};

fn geometry(r: &mut Seed) -> ConvShape {
    let dims = 1 + r.below(3);
    let mut s = ConvShape {
        batch: 1 + r.below(4),
        groups: r.of(&[1, 1, 1, 2, 3, 5]),
        in_channels: r.of(&[1, 1, 2, 3, 5, 9, 20]),
        out_channels: r.of(&[1, 2, 3, 4, 7, 8, 11, 19]),
        input: [1; 3],
        output: [1; 3],
        kernel: [1; 3],
        stride: [1; 3],
        dilation: [1; 3],
        padding: [0; 3],
    };
    // Depthwise ones have few channels in each of many groups.
    if r.below(6) == 0 {
        (s.groups, s.in_channels, s.out_channels) = (r.of(&[6, 8, 13, 16, 21, 40]), 1, 1);
    }
    for d in 3 - dims..3 {
        loop {
            s.input[d] = 1 + r.below(if dims == 3 { 7 } else { 20 });
            s.kernel[d] = r.of(&[1, 2, 3, 3, 4, 5, 7]);
            s.stride[d] = r.of(&[1, 1, 1, 2, 3, 5]);
            s.dilation[d] = r.of(&[1, 1, 1, 2, 3]);
            s.padding[d] = r.below(4);
            let reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
            if s.input[d] + 2 * s.padding[d] >= reach {
                let most = (s.input[d] + 2 * s.padding[d] - reach) / s.stride[d] + 1;
                // Now and then fewer than fit, as with the padding of a transposed convolution's output.
                s.output[d] = if r.below(4) == 0 { 1 + r.below(most) } else { most };
                break;
            }
        }
    }
    s
}

/// All triples of an element of x, of the weight and of y that belong together.
fn each(s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let channels = s.groups * s.out_channels;
    for (n, c) in (0..s.batch).flat_map(|n| (0..channels).map(move |c| (n, c))) {
        for i in 0..s.in_channels {
            for o in 0..s.output.iter().product() {
                let o3 = [o / (s.output[1] * s.output[2]), o / s.output[2] % s.output[1], o % s.output[2]];
                for k in 0..s.kernel.iter().product() {
                    let k3 = [k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]];
                    let at: [isize; 3] =
                        std::array::from_fn(|d| (o3[d] * s.stride[d] + k3[d] * s.dilation[d]) as isize - s.padding[d] as isize);
                    if (0..3).all(|d| (0..s.input[d] as isize).contains(&at[d])) {
                        let channel = n * s.groups * s.in_channels + c / s.out_channels * s.in_channels + i;
                        let x = ((channel * s.input[0] + at[0] as usize) * s.input[1] + at[1] as usize) * s.input[2] + at[2] as usize;
                        let kernel: usize = s.kernel.iter().product();
                        let output: usize = s.output.iter().product();
                        f(x, (c * s.in_channels + i) * kernel + k, (n * channels + c) * output + o);
                    }
                }
            }
        }
    }
}

/// The sums, from the definition.
fn wanted(pass: ConvPass, s: &ConvShape, [a, b, bias]: [&[f64]; 3], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    let channels = match pass {
        ConvPass::Forward { bias: true } => s.groups * s.out_channels,
        ConvPass::Input { bias: true } => s.groups * s.in_channels,
        _ => 0,
    };
    if let Some(plane) = (n / s.batch).checked_div(channels) {
        out.iter_mut().enumerate().for_each(|(i, o)| *o = bias[i / plane % channels]);
    }
    each(s, |x, w, y| match pass {
        ConvPass::Forward { .. } => out[y] += a[x] * b[w],
        ConvPass::Input { .. } => out[x] += a[y] * b[w],
        ConvPass::Weight => out[w] += a[y] * b[x],
    });
    out
}

fn passes() -> [ConvPass; 5] {
    [
        ConvPass::Forward { bias: false },
        ConvPass::Forward { bias: true },
        ConvPass::Input { bias: false },
        ConvPass::Input { bias: true },
        ConvPass::Weight,
    ]
}

fn sizes(pass: ConvPass, s: &ConvShape) -> ([usize; 3], usize) {
    let [x, w, y] = s.numels().expect("few elements");
    match pass {
        ConvPass::Forward { .. } => ([x, w, s.groups * s.out_channels], y),
        ConvPass::Input { .. } => ([y, w, s.groups * s.in_channels], x),
        ConvPass::Weight => ([y, x, 0], w),
    }
}

fn has_bias(pass: ConvPass) -> bool {
    matches!(pass, ConvPass::Forward { bias: true } | ConvPass::Input { bias: true })
}

/// The result in one type and instruction set. None: it is left to the plain loops.
fn got<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    pass: ConvPass,
    s: &ConvShape,
    ins: [&[f64]; 3],
    n: usize,
    of: impl Fn(f64) -> S,
) -> Option<Vec<S>> {
    let ins = ins.map(|v| v.iter().map(|v| of(*v)).collect::<Vec<S>>());
    let mut out = vec![of(f64::NAN); n];
    let bias = if has_bias(pass) { ins[2].as_ptr() } else { std::ptr::null() };
    // SAFETY: the buffers have the sizes of the shape.
    let ran = unsafe { floats::<T, S>(isa, pass, s, [ins[0].as_ptr(), ins[1].as_ptr(), bias], out.as_mut_ptr(), None) };
    ran.is_some_and(|name| name != PLAIN).then_some(out)
}

fn sets() -> Vec<InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|i| *i <= best()).collect()
}

fn compare(r: &mut Seed, s: &ConvShape) -> usize {
    let mut done = 0;
    for pass in passes() {
        let (of, n) = sizes(pass, s);
        let ins = of.map(|n| r.numbers(n));
        let ins = [&ins[0][..], &ins[1][..], &ins[2][..]];
        let want = wanted(pass, s, ins, n);
        for isa in sets() {
            let f32s = got::<f32, f32>(isa, pass, s, ins, n, |v| v as f32);
            let f64s = got::<f64, f64>(isa, pass, s, ins, n, |v| v);
            assert_eq!(f32s.is_some(), is_packed(s), "{s:?}");
            let Some((f32s, f64s)) = f32s.zip(f64s) else { continue };
            let f16s = got::<f32, F16>(isa, pass, s, ins, n, |v| F16::from_f32(v as f32)).expect("as float32");
            let bf16s = got::<f32, BF16>(isa, pass, s, ins, n, |v| BF16::from_f32(v as f32)).expect("as float32");
            for i in 0..n {
                let all = (f64::from(f32s[i]), f64s[i], f16s[i].to_f32(), bf16s[i].to_f32());
                let right = (want[i], want[i], F16::from_f32(want[i] as f32).to_f32(), BF16::from_f32(want[i] as f32).to_f32());
                assert_eq!(all, right, "element {i}, {pass:?} {isa:?} {s:?}");
            }
            done += 1;
        }
    }
    done
}

#[test]
fn passes_of_random_geometries_are_exact_sums_in_every_type_and_instruction_set() {
    let mut r = Seed(0x9e37_79b9_7f4a_7c15);
    let mut done = 0;
    for _ in 0..300 {
        let s = geometry(&mut r);
        done += compare(&mut r, &s);
    }
    assert!(done > 500 * sets().len(), "only {done}");
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

/// Along one dimension.
fn along(batch: usize, groups: usize, channels: [usize; 2], len: usize, kernel: usize, stride: usize, padding: usize) -> ConvShape {
    let s = square(batch, groups, channels, len, kernel, stride, padding);
    let last = |[_, _, n]: [usize; 3], other| [1, other, n];
    ConvShape {
        input: last(s.input, 1),
        output: last(s.output, 1),
        kernel: last(s.kernel, 1),
        stride: last(s.stride, 1),
        padding: last(s.padding, 0),
        ..s
    }
}

#[test]
fn larger_sizes_take_several_blocks_and_tasks() {
    let mut r = Seed(7);
    for s in [
        square(1, 1, [40, 24], 30, 3, 1, 1),
        square(2, 1, [3, 16], 50, 7, 2, 3),
        square(3, 1, [70, 64], 7, 3, 1, 1),
        square(1, 1, [200, 130], 6, 1, 1, 0),
        square(3, 1, [260, 40], 13, 1, 1, 0),
        square(2, 1, [40, 260], 26, 1, 2, 0),
        // Kernels of one tap over whole images: large, small ones, those of many weights, and groups.
        square(3, 1, [70, 30], 29, 1, 1, 0),
        square(5, 1, [40, 24], 7, 1, 1, 0),
        square(2, 1, [300, 260], 8, 1, 1, 0),
        square(4, 3, [20, 12], 13, 1, 1, 0),
        ConvShape { input: [3, 5, 7], output: [3, 5, 7], kernel: [1; 3], padding: [0; 3], ..square(3, 2, [9, 12], 7, 1, 1, 0) },
        square(1, 1, [24, 40], 23, 1, 1, 2),
        square(2, 1, [24, 60], 11, 3, 2, 1),
        square(1, 1, [70, 20], 40, 3, 1, 1),
        square(3, 1, [64, 40], 21, 3, 1, 1),
        square(2, 2, [40, 70], 14, 3, 1, 0),
        // Planes outside of the image, too.
        ConvShape { input: [3, 13, 12], output: [5, 13, 12], padding: [1; 3], ..square(2, 1, [40, 40], 12, 3, 1, 1) },
        // Fewer results than fit.
        ConvShape { output: [1, 17, 12], ..square(2, 1, [40, 40], 20, 3, 1, 1) },
        square(40, 1, [8, 8], 2, 2, 1, 0),
        // Patches that cover the image: of few channels, in groups, few positions, three dimensions, a row of positions in several tasks.
        square(2, 1, [3, 20], 48, 16, 16, 0),
        square(3, 2, [5, 6], 12, 4, 4, 0),
        square(2, 1, [40, 30], 8, 2, 2, 0),
        ConvShape {
            input: [4, 6, 8],
            output: [2, 3, 4],
            kernel: [2; 3],
            stride: [2; 3],
            padding: [0; 3],
            ..square(3, 1, [9, 12], 8, 2, 2, 0)
        },
        square(1, 1, [2, 5], 200, 4, 4, 0),
        square(1, 1, [70, 20], 36, 3, 3, 0),
        square(2, 40, [1, 1], 33, 3, 1, 1),
        square(2, 40, [1, 1], 33, 5, 1, 2),
        square(1, 3, [2, 1], 22, 5, 1, 1),
        square(2, 40, [1, 1], 33, 5, 2, 2),
        // Depthwise: small images of many channels, several tasks of rows, and of blocks of channels; rows too long for a copy.
        square(3, 21, [1, 1], 7, 5, 1, 2),
        square(2, 17, [1, 1], 70, 3, 2, 1),
        square(2, 600, [1, 1], 10, 3, 1, 1),
        along(2, 40, [1, 1], 700, 31, 1, 15),
        along(1, 16, [1, 1], 5000, 3, 1, 1),
        square(2, 4, [6, 10], 33, 3, 2, 1),
        square(1, 1, [9, 16], 40, 16, 8, 4),
        // Long rows, of which each task reads a part.
        along(2, 1, [20, 30], 900, 3, 1, 1),
        along(1, 1, [20, 30], 901, 5, 2, 2),
        along(1, 2, [9, 40], 1500, 3, 3, 4),
        square(2, 1, [64, 1], 20, 3, 1, 1),
        // Many results of few channels, whose rows are whole vectors, and few of more channels.
        square(2, 1, [3, 64], 64, 3, 1, 1),
        square(2, 1, [1, 21], 50, 5, 1, 1),
        square(1, 2, [8, 20], 65, 7, 2, 3),
        square(2, 1, [30, 8], 48, 3, 1, 1),
        // Pairs of phases with as many taps and with more, whose weights are transposed.
        square(2, 1, [20, 16], 40, 3, 2, 1),
        square(1, 1, [12, 30], 60, 4, 2, 1),
        square(2, 2, [16, 8], 40, 5, 2, 2),
        square(1, 1, [9, 16], 51, 7, 2, 3),
        // Few tiles of many channels; the gradient of the image reads weights far apart.
        square(2, 1, [340, 400], 5, 3, 1, 1),
    ] {
        assert!(compare(&mut r, &s) > 0);
    }
}

#[test]
fn the_bits_are_the_same_for_any_number_of_threads() {
    let mut r = Seed(11);
    for s in [
        square(2, 1, [40, 40], 20, 3, 1, 1),
        square(4, 1, [64, 64], 28, 3, 1, 1),
        square(3, 1, [40, 40], 20, 1, 1, 0),
        square(6, 4, [20, 12], 9, 1, 1, 0),
        square(3, 1, [3, 40], 48, 8, 8, 0),
        square(2, 1, [160, 150], 15, 1, 1, 0),
        square(8, 6, [1, 1], 20, 3, 2, 1),
        square(3, 40, [1, 1], 20, 5, 2, 2),
        along(2, 1, [20, 30], 900, 3, 1, 1),
        square(3, 1, [3, 40], 64, 3, 1, 1),
        square(5, 1, [3, 9], 31, 5, 2, 2),
    ] {
        for pass in passes() {
            let (of, n) = sizes(pass, &s);
            let ins = of.map(|n| r.numbers(n).iter().map(|v| v / 3.0 + 0.01).collect::<Vec<f64>>());
            let ins = [&ins[0][..], &ins[1][..], &ins[2][..]];
            let bits: Vec<Vec<u32>> = [1, 2, 3, 7]
                .map(|threads| {
                    set_num_threads(threads);
                    let out = got::<f32, f32>(best(), pass, &s, ins, n, |v| v as f32).expect("packed");
                    out.iter().map(|v| v.to_bits()).collect()
                })
                .into();
            set_num_threads(2);
            assert!(bits.iter().all(|b| *b == bits[0]), "{pass:?} {s:?}");
        }
    }
}

#[test]
fn infinite_weights_and_far_reaching_kernels_are_left_to_plain_loops() {
    let s = square(2, 8, [1, 1], 20, 3, 1, 1);
    let mut r = Seed(5);
    let (of, n) = sizes(ConvPass::Forward { bias: false }, &s);
    let mut ins = of.map(|n| r.numbers(n));
    ins[1][4] = f64::INFINITY;
    let ins = [&ins[0][..], &ins[1][..], &ins[2][..]];
    for pass in [ConvPass::Forward { bias: false }, ConvPass::Input { bias: false }] {
        assert!(got::<f32, f32>(best(), pass, &s, ins, n, |v| v as f32).is_none());
    }
    // With many channels only the results tell, and only where the gradient is padded.
    for (padding, is_left) in [(0, true), (1, true), (2, false)] {
        let s = square(2, 1, [20, 20], 12, 3, 1, padding);
        let (of, n) = sizes(ConvPass::Input { bias: false }, &s);
        let mut ins = of.map(|n| r.numbers(n));
        ins[1][100] = f64::INFINITY;
        let ins = [&ins[0][..], &ins[1][..], &ins[2][..]];
        for isa in sets() {
            let f32s = got::<f32, f32>(isa, ConvPass::Input { bias: false }, &s, ins, n, |v| v as f32);
            let bf16s = got::<f32, BF16>(isa, ConvPass::Input { bias: false }, &s, ins, n, |v| BF16::from_f32(v as f32));
            assert_eq!((f32s.is_none(), bf16s.is_none()), (is_left, is_left));
        }
    }
    let mut s = square(1, 1, [64, 64], 4, 3, 1, 1);
    s.dilation = [1, 100_000_000, 100_000_000];
    s.padding = [0, 100_000_000, 100_000_000];
    assert!(!is_packed(&s));
}

/// Compares a pass whose epilogue doubles each element with the pass alone. Whether the epilogue ran, and whether the pass was left to plain loops.
fn with_doubles(pass: ConvPass, s: &ConvShape, ins: &[Vec<f32>; 3], n: usize, is_finite: bool) -> (bool, bool) {
    let from = [ins[0].as_ptr(), ins[1].as_ptr(), ins[2].as_ptr()];
    let (mut plain, mut got) = (vec![0f32; n], vec![0f32; n]);
    let to = SharedPointer::new(got.as_mut_ptr());
    let calls = AtomicUsize::new(0);
    let double = |start: usize, len: usize| {
        calls.fetch_add(len, Ordering::Relaxed);
        // SAFETY: elements of the result; no other thread has them.
        unsafe { std::slice::from_raw_parts_mut(to.at(start), len) }.iter_mut().for_each(|v| *v *= 2.0);
    };
    let images = ImageEpilogue::new(&double, s.batch, n / s.batch);
    // SAFETY: the buffers have the sizes of the shape.
    let done = unsafe {
        let alone = floats::<f32, f32>(best(), pass, s, from, plain.as_mut_ptr(), None);
        assert_eq!(alone, floats::<f32, f32>(best(), pass, s, from, to.get(), Some(&images)));
        alone
    };
    let calls = calls.load(Ordering::Relaxed);
    if done == Some(PLAIN) {
        assert!(!images.has_run(), "{s:?}");
        return (false, true);
    }
    let factor = if images.has_run() { 2.0 } else { 1.0 };
    assert!(plain.iter().zip(&got).all(|(p, g)| (p * factor).to_bits() == g.to_bits() || p.is_nan() && g.is_nan()), "{s:?}");
    assert!(calls == if images.has_run() { n } else { 0 } || calls >= n && !is_finite, "{calls} of {n}: {s:?}");
    (images.has_run(), false)
}

#[test]
fn the_epilogue_runs_once_on_each_image_or_again_after_it_is_computed_again() {
    let mut r = Seed(13);
    for pass in [ConvPass::Forward { bias: true }, ConvPass::Input { bias: true }, ConvPass::Input { bias: false }] {
        let (mut with_epilogue, mut left) = (0, 0);
        for s in [
            square(5, 1, [64, 64], 28, 3, 1, 1),
            square(5, 1, [20, 40], 20, 1, 1, 0),
            square(5, 3, [20, 40], 11, 1, 1, 0),
            square(4, 2, [20, 40], 9, 1, 2, 0),
            square(6, 1, [9, 40], 15, 5, 2, 1),
            square(4, 40, [1, 1], 33, 3, 1, 1),
            square(4, 5, [1, 1], 33, 3, 1, 1),
            square(5, 1, [3, 20], 32, 8, 8, 0),
            // Two and four phases, some of which have no taps or a position more, with many channels and with few.
            square(4, 1, [64, 40], 29, 4, 2, 1),
            square(4, 1, [40, 64], 30, 3, 2, 1),
            square(5, 1, [3, 20], 31, 7, 2, 3),
            square(4, 1, [20, 20], 12, 2, 3, 0),
            square(3, 1, [9, 40], 15, 5, 2, 1),
        ] {
            let (of, n) = sizes(pass, &s);
            let mut ins = of.map(|n| r.numbers(n).iter().map(|v| *v as f32 / 3.0).collect::<Vec<f32>>());
            let at = ins[1].len() / 2;
            let plain = [ins[0][50], ins[1][at]];
            // A number that is not finite among the image's, and among the weights.
            for not_finite in [None, Some(0), Some(1)] {
                ins[0][50] = if not_finite == Some(0) { f32::INFINITY } else { plain[0] };
                ins[1][at] = if not_finite == Some(1) { f32::INFINITY } else { plain[1] };
                for threads in [1, 3] {
                    set_num_threads(threads);
                    let (has_run, is_left) = with_doubles(pass, &s, &ins, n, not_finite.is_none());
                    with_epilogue += usize::from(has_run);
                    left += usize::from(is_left);
                }
            }
        }
        set_num_threads(2);
        // All but those of few images.
        assert!(with_epilogue >= 12 * 4, "only {with_epilogue}");
        assert!(left > 0, "{pass:?}");
    }
}
