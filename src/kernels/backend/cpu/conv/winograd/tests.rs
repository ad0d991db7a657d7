use super::super::algorithms::WeightPass;
use super::super::gather::WeightPlaces;
use super::*;
use crate::call::ConvShape;
use crate::simd::{InstructionSet, best};

fn shape(batch: usize, groups: usize, channels: [usize; 2], input: [usize; 2], padding: usize) -> ConvShape {
    of([3, 1], batch, groups, channels, input, padding)
}

fn of([kernel, stride]: [usize; 2], batch: usize, groups: usize, channels: [usize; 2], input: [usize; 2], padding: usize) -> ConvShape {
    let [h, w] = input.map(|size| (size + 2 * padding - kernel) / stride + 1);
    ConvShape {
        batch,
        groups,
        in_channels: channels[0],
        out_channels: channels[1],
        input: [1, input[0], input[1]],
        output: [1, h, w],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        dilation: [1; 3],
        padding: [0, padding, padding],
    }
}

/// Some of each filter but `Three`, with padding and without, tails of tiles, rows and channels, and images that end within a panel.
fn others() -> Vec<ConvShape> {
    vec![
        of([2, 1], 1, 1, [90, 101], [31, 40], 1),
        of([2, 1], 6, 2, [70, 80], [13, 16], 0),
        of([3, 2], 4, 1, [98, 130], [46, 57], 1),
        of([3, 2], 9, 2, [131, 96], [38, 36], 0),
        of([4, 2], 3, 1, [40, 50], [46, 61], 1),
        of([4, 2], 2, 3, [33, 70], [60, 38], 2),
    ]
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
    InstructionSet::ALL.into_iter().filter(|i| *i <= best()).collect()
}

/// The forward pass in this way: the results, and whether all are said to be finite. None if it does not fit.
fn got(isa: InstructionSet, s: &ConvShape, x: &[f32], w: &[f32], bias: &[f32]) -> Option<(Vec<f32>, bool)> {
    let kernel = s.kernel.iter().product::<usize>();
    let depth = s.in_channels * kernel;
    let weights = WeightPlaces { start: 0, group: s.out_channels * depth, row: depth, channel: kernel, taps: (0..kernel).collect() };
    let phases = [GatherPhase { patches: Patches::forward(s), places: Patches::forward_places(s), weights }];
    let (groups, rows, channels) = (s.groups, s.out_channels, s.in_channels);
    let g = Gather { isa, groups, rows, channels, phases: &phases, weights: w.as_ptr(), bias: bias.as_ptr(), epilogue: None };
    let tiled = tiles(&g, Asked::ForSpeed).ok()?;
    assert_eq!(tiled.are_few, few_tiles().contains(s));
    let [_, _, n] = s.numels()?;
    let mut y = vec![f32::NAN; n];
    // SAFETY: all have the elements of the shape.
    let is_finite = unsafe { run(&g, &tiled, x.as_ptr(), y.as_mut_ptr()) };
    Some((y, is_finite == Results::Finite))
}

/// Few tiles for many weights: one panel of them and two, with tails of rows and of channels.
fn few_tiles() -> [ConvShape; 4] {
    [
        shape(2, 1, [371, 360], [7, 7], 1),
        shape(1, 2, [512, 270], [6, 8], 1),
        shape(5, 1, [300, 450], [8, 9], 0),
        of([4, 2], 5, 1, [230, 200], [10, 14], 0),
    ]
}

/// Calls `f(place of y, place in x, place in the weights)` for all that meet.
fn each_term(s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let ([_, ih, iw], [_, kh, kw]) = (s.input, s.kernel);
    each_result(s, |at, [n, c, h, v]| {
        for i in 0..s.in_channels {
            let channel = (n * s.groups + c / s.out_channels) * s.in_channels + i;
            for (a, b) in (0..kh).flat_map(|a| (0..kw).map(move |b| (a, b))) {
                let row = (h * s.stride[1] + a).wrapping_sub(s.padding[1]);
                let column = (v * s.stride[2] + b).wrapping_sub(s.padding[2]);
                if row < ih && column < iw {
                    f(at, (channel * ih + row) * iw + column, ((c * s.in_channels + i) * kh + a) * kw + b);
                }
            }
        }
    });
}

/// Sums in float64, and those of the terms without their signs.
struct Sums {
    values: Vec<f64>,
    sizes: Vec<f64>,
}

impl Sums {
    fn new(n: usize) -> Sums {
        Sums { values: vec![0.0; n], sizes: vec![0.0; n] }
    }

    fn add(&mut self, at: usize, a: f32, b: f32) {
        let term = f64::from(a) * f64::from(b);
        self.values[at] += term;
        self.sizes[at] += term.abs();
    }

    fn check(&self, got: &[f32], what: &str) {
        for (i, (got, want)) in got.iter().zip(&self.values).enumerate() {
            let error = (f64::from(*got) - want).abs();
            assert!(error <= 6e-7 * (self.sizes[i] + 1.0), "{error} of {want} ({}) at {i}, {what}", self.sizes[i]);
        }
    }
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
    .chain(others())
    {
        let [x, w, y] = s.numels().expect("few");
        let (x, w, bias) = (numbers(x, 1), numbers(w, 2), numbers(s.groups * s.out_channels, 3));
        let mut want = Sums::new(y);
        each_result(&s, |at, [_, c, ..]| want.values[at] = f64::from(bias[c]));
        each_term(&s, |y, i, k| want.add(y, x[i], w[k]));
        for isa in sets() {
            let (y, is_finite) = got(isa, &s, &x, &w, &bias).unwrap_or_else(|| panic!("{s:?} fits"));
            assert!(is_finite);
            want.check(&y, &format!("{isa:?} {s:?}"));
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
        of([2, 1], 4, 1, [70, 101], [31, 40], 1),
        of([2, 1], 20, 2, [60, 80], [19, 16], 0),
        of([3, 2], 8, 1, [64, 120], [76, 61], 1),
        of([3, 2], 15, 2, [60, 150], [42, 61], 0),
        of([4, 2], 6, 1, [40, 50], [46, 81], 1),
        of([4, 2], 4, 3, [33, 60], [40, 88], 2),
    ] {
        let [x, w, y] = s.numels().expect("few");
        let (x, g) = (numbers(x, 1), numbers(y, 2));
        let mut want = Sums::new(w);
        each_term(&s, |y, i, k| want.add(k, x[i], g[y]));
        for isa in sets() {
            let mut got = vec![f32::NAN; w];
            let pass = WeightPass::<f32, f32>::new(isa, &s, [g.as_ptr(), x.as_ptr()], got.as_mut_ptr());
            let tiled = weight::plan(&pass, Asked::ForSpeed).unwrap_or_else(|why| panic!("{isa:?} {s:?}: {why}"));
            // SAFETY: all have the elements of the shape.
            let results = unsafe { tiled.run(g.as_ptr(), x.as_ptr(), got.as_mut_ptr()) };
            assert_eq!(results, Results::Finite, "{isa:?} {s:?}");
            want.check(&got, &format!("{isa:?} {s:?}"));
            let mut x = x.clone();
            x[3 * s.input[2] + 2] = f32::INFINITY;
            // SAFETY: as above.
            let results = unsafe { tiled.run(g.as_ptr(), x.as_ptr(), got.as_mut_ptr()) };
            assert_eq!(results, Results::NotFinite, "infinity has to be told");
        }
    }
}

#[test]
fn phases_of_transposed_convolutions_are_those_of_the_definition_within_some_roundings() {
    for s in [
        of([4, 2], 2, 1, [63, 84], [66, 60], 1),
        of([4, 2], 1, 1, [80, 70], [101, 97], 2),
        of([4, 2], 3, 2, [70, 64], [60, 61], 0),
        of([6, 2], 2, 1, [40, 40], [61, 50], 2),
    ] {
        let [x, w, y] = s.numels().expect("few");
        let (w, g, bias) = (numbers(w, 1), numbers(y, 2), numbers(s.groups * s.in_channels, 3));
        let mut want = Sums::new(x);
        let plane = s.input[1] * s.input[2];
        want.values.iter_mut().enumerate().for_each(|(i, v)| *v = f64::from(bias[i / plane % bias.len()]));
        each_term(&s, |y, i, k| want.add(i, g[y], w[k]));
        for isa in sets() {
            for row_first in [false, true] {
                // Weights as they lie, where the taps of a phase are not neighbours, and a copy of each phase's.
                let (mut copy, mut phases) = (Vec::new(), Vec::new());
                let kernel = s.kernel[1] * s.kernel[2];
                for (patches, places) in Patches::input(&s) {
                    let (channel, taps) = (s.in_channels * kernel, patches.kernel_places(s.kernel));
                    let mut weights = WeightPlaces { start: 0, group: s.out_channels * channel, row: kernel, channel, taps: taps.clone() };
                    if row_first {
                        let start = copy.len();
                        for group in 0..s.groups {
                            for (row, c) in (0..s.in_channels).flat_map(|r| (0..s.out_channels).map(move |c| (r, c))) {
                                copy.extend(taps.iter().map(|t| w[weights.at(group, row, c) + t]));
                            }
                        }
                        let row = s.out_channels * taps.len();
                        weights =
                            WeightPlaces { start, group: s.in_channels * row, row, channel: taps.len(), taps: (0..taps.len()).collect() };
                    }
                    phases.push(GatherPhase { patches, places, weights });
                }
                let weights = if row_first { copy.as_ptr() } else { w.as_ptr() };
                let (groups, rows, channels) = (s.groups, s.in_channels, s.out_channels);
                let g_of = Gather { isa, groups, rows, channels, phases: &phases, weights, bias: bias.as_ptr(), epilogue: None };
                let Ok(tiled) = tiles(&g_of, Asked::ForSpeed) else {
                    assert!(s.kernel[1] == 6 && !row_first, "{s:?} fits");
                    continue;
                };
                let mut got = vec![f32::NAN; x];
                // SAFETY: all have the elements of the shape.
                assert_eq!(unsafe { run(&g_of, &tiled, g.as_ptr(), got.as_mut_ptr()) }, Results::Finite);
                want.check(&got, &format!("{isa:?} {s:?}"));
            }
        }
    }
}

#[test]
fn an_element_reaches_the_results_that_depend_on_it_alone() {
    for s in [shape(1, 1, [40, 40], [20, 20], 1)].into_iter().chain(others()) {
        let [x, w, y] = s.numels().expect("few");
        let (mut x, w, bias) = (numbers(x, 1), numbers(w, 2), numbers(s.groups * s.out_channels, 3));
        let at = (5 * s.input[1] + 7) * s.input[2] + 10 % s.input[2];
        x[at] = f32::NAN;
        let mut wanted = vec![false; y];
        each_term(&s, |y, i, _| wanted[y] |= i == at);
        let (y, is_finite) = got(best(), &s, &x, &w, &bias).unwrap_or_else(|| panic!("{s:?} fits"));
        assert!(!is_finite);
        assert!(y.iter().map(|v| v.is_nan()).eq(wanted), "{s:?}");
    }
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
