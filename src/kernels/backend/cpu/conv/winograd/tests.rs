use super::super::gather::WeightPlaces;
use super::*;
use crate::backend::cpu::num::{InstructionSet, best};
use crate::backend::requests::ConvShape;

fn shape(batch: usize, groups: usize, channels: [usize; 2], input: [usize; 2], padding: usize) -> ConvShape {
    let [h, w] = input;
    ConvShape {
        batch,
        groups,
        in_channels: channels[0],
        out_channels: channels[1],
        input: [1, h, w],
        output: [1, h + 2 * padding - 2, w + 2 * padding - 2],
        kernel: [1, 3, 3],
        stride: [1; 3],
        dilation: [1; 3],
        padding: [0, padding, padding],
    }
}

/// Numbers between -1 and 1 that look random.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut s = seed;
    (0..n)
        .map(|_| {
            s = s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (s >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

fn sets() -> Vec<InstructionSet> {
    [InstructionSet::Base, InstructionSet::Avx2, InstructionSet::Avx512].into_iter().filter(|i| *i <= best()).collect()
}

/// The forward pass in this way: the results, and whether all are said to be finite. None if it does not fit.
fn got(isa: InstructionSet, s: &ConvShape, x: &[f32], w: &[f32], bias: &[f32]) -> Option<(Vec<f32>, bool)> {
    let depth = s.in_channels * 9;
    let weights = WeightPlaces { start: 0, group: s.out_channels * depth, row: depth, channel: 9, taps: (0..9).collect() };
    let phases = [GatherPhase { patches: Patches::forward(s), places: Patches::forward_places(s), weights }];
    let (groups, rows, channels) = (s.groups, s.out_channels, s.in_channels);
    let g = Gather { isa, groups, rows, channels, phases: &phases, weights: w.as_ptr(), bias: bias.as_ptr(), epilogue: None };
    let tiled = fits(&g)?;
    assert_eq!(tiled.are_few, few_tiles().contains(s));
    let [_, _, n] = s.numels()?;
    let mut y = vec![f32::NAN; n];
    // SAFETY: all have the elements of the shape.
    let is_finite = unsafe { run(&g, &tiled, x.as_ptr(), y.as_mut_ptr()) };
    Some((y, is_finite))
}

/// Few tiles for many weights: one panel of them and two, with tails of rows and of channels.
fn few_tiles() -> [ConvShape; 3] {
    [shape(2, 1, [371, 360], [7, 7], 1), shape(1, 2, [512, 270], [5, 7], 1), shape(5, 1, [300, 450], [8, 9], 0)]
}

/// The result of the definition at `(n, channel, h, w)`, in float64, and the sum of its terms without their signs.
fn wanted(s: &ConvShape, x: &[f32], w: &[f32], bias: &[f32], [n, c, h, v]: [usize; 4]) -> (f64, f64) {
    let (mut sum, mut size) = (f64::from(bias[c]), 0.0);
    let [_, ih, iw] = s.input;
    for i in 0..s.in_channels {
        let channel = (n * s.groups + c / s.out_channels) * s.in_channels + i;
        for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
            let (row, column) = ((h + a).wrapping_sub(s.padding[1]), (v + b).wrapping_sub(s.padding[2]));
            if row < ih && column < iw {
                let term = f64::from(x[(channel * ih + row) * iw + column]) * f64::from(w[(c * s.in_channels + i) * 9 + 3 * a + b]);
                sum += term;
                size += term.abs();
            }
        }
    }
    (sum, size)
}

fn each_result(s: &ConvShape, mut f: impl FnMut(usize, [usize; 4])) {
    let (channels, [_, oh, ow]) = (s.groups * s.out_channels, s.output);
    for at in 0..s.batch * channels * oh * ow {
        f(at, [at / (channels * oh * ow), at / (oh * ow) % channels, at / ow % oh, at % ow]);
    }
}

#[test]
fn results_are_those_of_the_definition_within_some_roundings() {
    for s in [
        shape(1, 1, [40, 50], [30, 30], 1),
        shape(2, 1, [70, 33], [19, 23], 1),
        shape(3, 1, [64, 64], [9, 15], 0),
        shape(2, 3, [32, 40], [16, 17], 2),
        shape(20, 1, [30, 90], [5, 4], 1),
        shape(1, 1, [400, 24], [12, 31], 1),
    ]
    .into_iter()
    .chain(few_tiles())
    {
        let [x, w, _] = s.numels().expect("few");
        let (x, w, bias) = (numbers(x, 1), numbers(w, 2), numbers(s.groups * s.out_channels, 3));
        for isa in sets() {
            let (y, is_finite) = got(isa, &s, &x, &w, &bias).expect("fits");
            assert!(is_finite);
            each_result(&s, |at, place| {
                let (want, size) = wanted(&s, &x, &w, &bias, place);
                let error = (f64::from(y[at]) - want).abs();
                assert!(error <= 6e-7 * (size + 1.0), "{error} of {want} ({size}) at {place:?}, {isa:?} {s:?}");
            });
        }
    }
}

#[test]
fn gradients_of_weights_are_those_of_the_definition_within_some_roundings() {
    for s in [
        shape(1, 1, [40, 50], [30, 30], 1),
        shape(2, 1, [70, 33], [19, 23], 1),
        shape(30, 1, [64, 64], [9, 15], 0),
        shape(2, 3, [32, 40], [26, 17], 2),
        shape(40, 1, [130, 30], [5, 8], 1),
    ] {
        let [x, w, y] = s.numels().expect("few");
        let (x, g) = (numbers(x, 1), numbers(y, 2));
        let (mut want, mut size) = (vec![0f64; w], vec![0f64; w]);
        let [_, ih, iw] = s.input;
        each_result(&s, |at, [n, c, h, v]| {
            for i in 0..s.in_channels {
                let channel = (n * s.groups + c / s.out_channels) * s.in_channels + i;
                for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                    let (row, column) = ((h + a).wrapping_sub(s.padding[1]), (v + b).wrapping_sub(s.padding[2]));
                    if row < ih && column < iw {
                        let term = f64::from(g[at]) * f64::from(x[(channel * ih + row) * iw + column]);
                        let to = (c * s.in_channels + i) * 9 + 3 * a + b;
                        want[to] += term;
                        size[to] += term.abs();
                    }
                }
            }
        });
        for isa in sets() {
            let mut got = vec![f32::NAN; w];
            // SAFETY: all have the elements of the shape.
            let is_done = unsafe { weight::run_if_it_fits::<f32, f32>(isa, &s, g.as_ptr(), x.as_ptr(), got.as_mut_ptr()) };
            assert!(is_done, "{isa:?} {s:?}");
            for (i, v) in got.iter().enumerate() {
                let error = (f64::from(*v) - want[i]).abs();
                assert!(error <= 6e-7 * (size[i] + 1.0), "{error} of {} ({}) at {i}, {isa:?} {s:?}", want[i], size[i]);
            }
            let mut x = x.clone();
            x[3 * iw + 2] = f32::INFINITY;
            // SAFETY: as above.
            let is_done = unsafe { weight::run_if_it_fits::<f32, f32>(isa, &s, g.as_ptr(), x.as_ptr(), got.as_mut_ptr()) };
            assert!(!is_done, "infinity has to be told");
        }
    }
}

#[test]
fn an_element_reaches_the_results_that_depend_on_it_alone() {
    let s = shape(1, 1, [40, 40], [20, 20], 1);
    let [x, w, _] = s.numels().expect("few");
    let (mut x, w, bias) = (numbers(x, 1), numbers(w, 2), numbers(40, 3));
    let (h, v) = (7, 10);
    x[(5 * 20 + h) * 20 + v] = f32::NAN;
    let (y, is_finite) = got(best(), &s, &x, &w, &bias).expect("fits");
    assert!(!is_finite);
    each_result(&s, |at, [_, _, row, column]| {
        assert_eq!(y[at].is_nan(), row.abs_diff(h) <= 1 && column.abs_diff(v) <= 1, "{row} {column}");
    });
}

#[test]
fn sums_beyond_the_range_are_told() {
    let s = shape(1, 1, [40, 40], [20, 20], 1);
    let [x, w, _] = s.numels().expect("few");
    let (mut x, w, bias) = (numbers(x, 1), numbers(w, 2), numbers(40, 3));
    assert!(got(best(), &s, &x, &w, &bias).expect("fits").1);
    // Finite themselves, but not their differences.
    (x[43], x[45]) = (3e38, -3e38);
    assert!(!got(best(), &s, &x, &w, &bias).expect("fits").1);
}

#[test]
fn what_does_not_fit_is_left() {
    let fits = |s: &ConvShape| {
        let [x, w, _] = s.numels().expect("few");
        got(best(), s, &vec![0.0; x], &vec![0.0; w], &vec![0.0; s.groups * s.out_channels]).is_some()
    };
    assert!(fits(&shape(1, 1, [40, 40], [20, 20], 1)));
    // Too few products, or tiles.
    assert!(!fits(&shape(1, 40, [1, 1], [20, 20], 1)));
    assert!(!fits(&shape(1, 1, [40, 40], [4, 4], 1)));
    let mut strided = shape(1, 1, [40, 40], [20, 20], 1);
    (strided.stride[2], strided.output[2]) = (2, 10);
    let mut dilated = shape(1, 1, [40, 40], [20, 20], 1);
    (dilated.dilation[1], dilated.output[1]) = (2, 18);
    assert!(!fits(&strided) && !fits(&dilated));
}
