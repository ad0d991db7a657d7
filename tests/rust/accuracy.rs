//! How far the values of rows of one `f32` are from the truth, in units in the last place (ULP), over every input there is.
//!
//! The truth is the same row computed in `f64` from the same input, whose own error (at most a few of *its* units, see the tests of `f64`)
//! is less than a hundred-millionth of a unit of `f32`. That says nothing about a mistake that both types share: the unit tests of
//! `simd::math` compare samples of both with other people's functions.

use rgrad::layout::{DType, Scalar};
use rgrad::rows::{Output, RowId};
use rgrad_kernels::backend::cpu::pointwise::{Func, StridedOperand, has_kernel, run_at};
use rgrad_kernels::simd::{InstructionSet, best};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many units a result may be off, from the input and the true result.
type Bound = fn(f64, f64) -> f64;

/// Functions that are computed as such are within one unit. The others state here what they are within.
const BOUNDS: &[(RowId, &str, Bound)] = &[
    // A root and a quotient.
    (RowId::Rsqrt, "1.5", |_, _| 1.5),
    // A product with a logarithm.
    (RowId::Entr, "2", |_, _| 2.0),
    (RowId::Hardsigmoid, "1.5", |_, _| 1.5),
    (RowId::Hardswish, "3, and half the least number", |_, y| 3.0 + absolute(0.5 * MIN_ELEMENTS, y)),
    // The odds are rounded, and their logarithm is 0 where they are 1.
    (RowId::Logit, "1, and 2^-23 of the odds", |_, y| 1.0 + absolute(1.2e-7, y)),
    (RowId::LogSigmoid, "2", |_, _| 2.0),
    (RowId::Elu, "4", |_, _| 4.0),
    (RowId::Celu, "3", |_, _| 3.0),
    // Without AVX-512 the argument of the exponential is rounded, which counts more the larger it is.
    // So is that of the complement of the error function.
    (RowId::Ndtr, "2 + x^2", |x, _| 2.0 + x * x),
    (RowId::Gelu, "3 + 2 x^2", |x, _| 3.0 + 2.0 * x * x),
    // The argument of the sigmoid is of the third order, and rounded thrice.
    (RowId::GeluTanh, "4 + 4 abs(x) + x^4", |x, _| 4.0 + 4.0 * x.abs() + x.powi(4)),
    // The factor may be subnormal, with few bits.
    (RowId::Silu, "2, and abs(x) / 2 of the least number", |x, y| 2.0 + absolute(0.5 * MIN_ELEMENTS * x.abs(), y)),
    (RowId::Mish, "4, and abs(x) / 2 of the least number", |x, y| 4.0 + absolute(0.5 * MIN_ELEMENTS * x.abs(), y)),
    // The exponent is rounded.
    (RowId::Softplus, "3 + abs(beta x)", |x, _| 3.0 + RowId::Softplus.info().sample_params[0] * x.abs()),
];

/// The least positive `f32`.
const MIN_ELEMENTS: f64 = 1.401_298_464_324_817e-45;

/// An absolute error in units in the last place of `want`.
fn absolute(error: f64, want: f64) -> f64 {
    error / unit(want)
}

/// The unit in the last place of `want` rounded to `f32`.
fn unit(want: f64) -> f64 {
    let exponent = ((want as f32).to_bits() >> 23 & 0xff).clamp(1, 254) as u64;
    f64::from_bits((exponent + (1023 - 127 - 23)) << 52)
}

fn bound_of(row: RowId) -> (&'static str, Bound) {
    BOUNDS.iter().find(|b| b.0 == row).map_or(("1", |_, _| 1.0), |b| (b.1, b.2))
}

/// The rows whose values are floats (or truth values) made from one float.
fn rows() -> impl Iterator<Item = RowId> {
    let takes = |row: &RowId| row.info().arity() == 1 && has_kernel(Func::forward(*row), DType::F32);
    RowId::ALL.iter().copied().filter(takes)
}

/// What the row makes of `x`, bit by bit as it lies in memory.
fn values<T, U: Clone>(level: InstructionSet, row: RowId, dtype: DType, x: &[T], params: &[Scalar], out: &mut [U]) {
    let func = Func::forward(row);
    assert_eq!((size_of::<T>(), size_of::<U>(), x.len()), (dtype.size(), func.out_dtype(dtype).size(), out.len()));
    let input = StridedOperand { ptr: x.as_ptr().cast(), strides: &[1], dtype };
    // SAFETY: both slices have this length and hold elements of these sizes.
    unsafe { run_at(level, func, dtype, &[x.len()], out.as_mut_ptr().cast(), &[1], &[input], params) }.expect("a kernel");
}

/// The largest error of a row, and where it is.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    /// In units in the last place.
    ulps: f64,
    at: f32,
    /// As a share of the bound.
    share: f64,
    share_at: f32,
    /// How many inputs give the nearest `f32`.
    nearest: u64,
    inputs: u64,
}

impl Worst {
    fn merge(&mut self, o: &Worst) {
        if o.ulps > self.ulps {
            (self.ulps, self.at) = (o.ulps, o.at);
        }
        if o.share > self.share {
            (self.share, self.share_at) = (o.share, o.share_at);
        }
        self.nearest += o.nearest;
        self.inputs += o.inputs;
    }
}

const BLOCK: usize = 4096;

/// The errors of `got` in units in the last place.
#[inline(never)]
fn errors(got: &[f32], want: &[f64], out: &mut [f64]) {
    for ((got, want), out) in got.iter().zip(want).zip(out) {
        let near = *want as f32;
        let exponent = (near.to_bits() >> 23 & 0xff).clamp(1, 254) as u64;
        // The reciprocal of the unit in the last place.
        let scale = f64::from_bits((2046 - (exponent + (1023 - 127 - 23))) << 52);
        let off = (*got as f64 - want).abs() * scale;
        let same = near.to_bits() == got.to_bits() || near.is_nan() && got.is_nan();
        let zeros = near == 0.0 && *got == 0.0 && *want == 0.0;
        // Where one is infinite and the other is not, their distance is infinite or nan; beyond the largest number is one unit.
        let beyond = got.is_infinite() && near.abs() == f32::MAX && got.is_sign_negative() == near.is_sign_negative();
        let off = if off.is_nan() || zeros { f64::INFINITY } else { off };
        *out = if same {
            0.0
        } else if beyond {
            1.0
        } else {
            off
        };
    }
}

/// The worst of a row over every `stride`th of the bit patterns in `first..last`.
fn worst(row: RowId, level: InstructionSet, params: &[Scalar], range: std::ops::Range<u64>, stride: u64, worst: &mut Worst) {
    let (truth, info) = (row.info().output() == Output::Bool, row.info());
    let bound = bound_of(row).1;
    let constant = !BOUNDS.iter().any(|b| b.0 == row);
    let (mut x, mut wide) = (vec![0f32; BLOCK], vec![0f64; BLOCK]);
    let (mut got, mut want, mut off) = (vec![0f32; BLOCK], vec![0f64; BLOCK], vec![0f64; BLOCK]);
    let (mut got_truth, mut want_truth) = (vec![0u8; BLOCK], vec![0u8; BLOCK]);
    let mut next = range.start;
    while next < range.end {
        let n = BLOCK.min((range.end - next).div_ceil(stride) as usize);
        for (i, x) in x[..n].iter_mut().enumerate() {
            *x = f32::from_bits((next + i as u64 * stride) as u32);
        }
        for (wide, x) in wide[..n].iter_mut().zip(&x[..n]) {
            *wide = *x as f64;
        }
        next += n as u64 * stride;
        worst.inputs += n as u64;
        if truth {
            values(level, row, DType::F32, &x[..n], params, &mut got_truth[..n]);
            values(level, row, DType::F64, &wide[..n], params, &mut want_truth[..n]);
            assert_eq!(got_truth[..n], want_truth[..n], "{}", info.name);
            worst.nearest += n as u64;
            continue;
        }
        values(level, row, DType::F32, &x[..n], params, &mut got[..n]);
        values(level, row, DType::F64, &wide[..n], params, &mut want[..n]);
        errors(&got[..n], &want[..n], &mut off[..n]);
        worst.nearest += off[..n].iter().map(|e| u64::from(*e <= 0.5)).sum::<u64>();
        let most = off[..n].iter().fold(0.0, |a: f64, b| a.max(*b));
        if most > worst.ulps
            && let Some(i) = off[..n].iter().position(|e| *e == most)
        {
            (worst.ulps, worst.at) = (most, x[i]);
            if constant {
                (worst.share, worst.share_at) = (most, x[i]);
            }
        }
        if !constant && most > 0.0 {
            for i in (0..n).filter(|i| off[*i] > 0.5) {
                let share = off[i] / bound(wide[i], want[i]);
                if share > worst.share {
                    (worst.share, worst.share_at) = (share, x[i]);
                }
            }
        }
    }
}

/// All cores look at a row.
fn look(row: RowId, level: InstructionSet, stride: u64) -> Worst {
    // Parameters that both types hold alike.
    let params: Vec<Scalar> = row.info().sample_params.iter().map(|p| Scalar::Float(*p as f32 as f64)).collect();
    const PIECES: u64 = 256;
    const PIECE: u64 = (1 << 32) / PIECES;
    let (next, all) = (AtomicU64::new(0), Mutex::new(Worst::default()));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let mut own = Worst::default();
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= PIECES {
                        break;
                    }
                    // Strided inputs go on across the pieces' borders.
                    let start = (piece * PIECE).next_multiple_of(stride);
                    worst(row, level, &params, start..(piece + 1) * PIECE, stride, &mut own);
                }
                all.lock().expect("no thread has failed").merge(&own);
            });
        }
    });
    all.into_inner().expect("no thread has failed")
}

/// Looks at rows, prints a line for each, and refuses those that are beyond their bounds.
fn check(level: InstructionSet, stride: u64, only: Option<&str>) {
    let mut beyond = Vec::new();
    for row in rows().filter(|r| only.is_none_or(|o| o.split(',').any(|n| n == r.info().name))) {
        let (began, name, (text, _)) = (std::time::Instant::now(), row.info().name, bound_of(row));
        let w = look(row, level, stride);
        let share = 100.0 * w.nearest as f64 / w.inputs as f64;
        println!(
            "accuracy\t{name}\t{level:?}\t{}\t{:.3}\t{:e}\t{share:.2}\t{text}\t{:.3}\t{:e}\t{:.0}",
            w.inputs,
            w.ulps,
            w.at,
            w.share,
            w.share_at,
            began.elapsed().as_secs_f64()
        );
        if w.share > 1.0 {
            beyond.push(format!("{name} ({level:?}): {:.3} times its bound at {:e} ({:#010x})", w.share, w.share_at, w.share_at.to_bits()));
        }
    }
    assert!(beyond.is_empty(), "beyond their bounds: {beyond:#?}");
}

#[test]
fn rows_of_one_number_are_within_their_bounds_on_a_sample() {
    for level in InstructionSet::ALL.into_iter().filter(|l| *l <= best()) {
        check(level, if cfg!(miri) { 100_000_007 } else { 65_521 }, None);
    }
}

/// Every row is in the table of the page, and its bound is the one here.
#[test]
fn the_page_tells_of_every_row() {
    let page = include_str!("../../docs/accuracy.md");
    let told: Vec<(&str, &str)> = page
        .lines()
        .filter(|l| l.starts_with("| `"))
        .filter_map(|l| Some((l.split('`').nth(1)?, l.trim_end_matches('|').rsplit('|').next()?.trim())))
        .collect();
    let mut want: Vec<(&str, &str)> = rows().map(|r| (r.info().name, bound_of(r).0)).collect();
    want.sort_unstable();
    assert_eq!(told, want, "write the table anew with scripts/accuracy_table.py");
}

/// Takes a row a minute or two of two cores. `RGRAD_ULP_ROWS` (names with commas between) chooses rows, `RGRAD_ULP_STRIDE` takes
/// fewer inputs, `RGRAD_ULP_LEVEL` (`Base`, `Avx2`, `Avx512`) the instruction set.
#[test]
#[ignore = "slow: every f32 there is"]
fn rows_of_one_number_are_within_their_bounds_everywhere() {
    let option = |name: &str| std::env::var(name).ok();
    let stride = option("RGRAD_ULP_STRIDE").map_or(1, |s| s.parse().expect("RGRAD_ULP_STRIDE is a number"));
    let level = match option("RGRAD_ULP_LEVEL").as_deref() {
        None => best(),
        Some(name) => InstructionSet::ALL
            .into_iter()
            .find(|l| *l <= best() && format!("{l:?}") == name)
            .expect("RGRAD_ULP_LEVEL is an instruction set of this machine"),
    };
    check(level, stride, option("RGRAD_ULP_ROWS").as_deref());
}
