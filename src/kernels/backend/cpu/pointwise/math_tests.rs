//! Accuracy of the functions, in units in the last place (ULP), against wider arithmetic.

use crate::backend::cpu::pointwise::{Func, StridedOperand, run_at};
use crate::layout::DType;
use crate::rows::RowId;
use crate::simd::{InstructionSet, best};

pub(super) fn instruction_sets() -> Vec<InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|l| *l <= best()).collect()
}

fn run_f32(isa: InstructionSet, row: RowId, x: &[f32]) -> Vec<f32> {
    let mut out = vec![0f32; x.len()];
    let input = StridedOperand { ptr: x.as_ptr() as *const u8, strides: &[1], dtype: DType::F32 };
    // SAFETY: both slices have this length.
    unsafe { run_at(isa, Func::forward(row), DType::F32, &[x.len()], out.as_mut_ptr() as *mut u8, &[1], &[input], &[]) }.unwrap();
    out
}

fn run_f64(isa: InstructionSet, row: RowId, x: &[&[f64]]) -> Vec<f64> {
    let mut out = vec![0f64; x[0].len()];
    let inputs: Vec<_> = x.iter().map(|x| StridedOperand { ptr: x.as_ptr() as *const u8, strides: &[1], dtype: DType::F64 }).collect();
    // SAFETY: all slices have this length.
    unsafe { run_at(isa, Func::forward(row), DType::F64, &[x[0].len()], out.as_mut_ptr() as *mut u8, &[1], &inputs, &[]) }.unwrap();
    out
}

fn f64_of(row: RowId, x: f64) -> f64 {
    run_f64(InstructionSet::Base, row, &[&[x]])[0]
}

type Reference = fn(f64) -> f64;

/// Every function of one number, with a reference in `f64`.
const UNARY: &[(RowId, Reference)] = &[
    (RowId::Exp, f64::exp),
    (RowId::Exp2, f64::exp2),
    (RowId::Expm1, f64::exp_m1),
    (RowId::Log, f64::ln),
    (RowId::Log2, f64::log2),
    (RowId::Log10, f64::log10),
    (RowId::Log1p, f64::ln_1p),
    (RowId::Sin, f64::sin),
    (RowId::Cos, f64::cos),
    (RowId::Tan, f64::tan),
    (RowId::Asin, f64::asin),
    (RowId::Acos, f64::acos),
    (RowId::Atan, f64::atan),
    (RowId::Sinh, f64::sinh),
    (RowId::Cosh, f64::cosh),
    (RowId::Tanh, f64::tanh),
    (RowId::Asinh, f64::asinh),
    (RowId::Acosh, f64::acosh),
    (RowId::Atanh, f64::atanh),
    (RowId::Sigmoid, |x| if x > 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }),
    (RowId::Erf, |x| f64_of(RowId::Erf, x)),
    (RowId::Erfc, |x| f64_of(RowId::Erfc, x)),
];

/// Rows of one number that are made of functions, with a reference and a bound in units in the last place at an input.
const COMPOSED: &[(RowId, Reference, Reference)] = &[
    // Without AVX-512 the argument of the exponential is rounded, which counts more the larger it is.
    (RowId::Gelu, |x| x * 0.5 * f64_of(RowId::Erfc, -x * std::f64::consts::FRAC_1_SQRT_2), |x| 3.0 + 2.0 * x * x),
    (RowId::Silu, |x| x * if x > 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }, |_| 2.0),
    (RowId::Square, |x| x * x, |_| 0.5),
    (RowId::Sqrt, f64::sqrt, |_| 0.5),
    (RowId::Rsqrt, |x| 1.0 / x.sqrt(), |_| 1.5),
    (RowId::Reciprocal, |x| 1.0 / x, |_| 0.5),
];

/// How far `got` is from `want`, in units in the last place of `want` rounded to `f32`.
fn ulps32(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if near == got {
        return if near == 0.0 && want == 0.0 && near.is_sign_negative() != got.is_sign_negative() { f64::INFINITY } else { 0.0 };
    }
    if got.is_infinite() {
        // The largest finite number and infinity are one unit apart.
        return if near.abs() == f32::MAX && got.is_sign_negative() == near.is_sign_negative() { 1.0 } else { f64::INFINITY };
    }
    let exponent = ((near.to_bits() >> 23) & 0xff).max(1) as i32 - 127 - 23;
    (got as f64 - want).abs() / 2f64.powi(exponent)
}

/// The error of what `row` has got, as a share of what it may be.
fn share_f32(row: RowId, x: f32, got: f32, want: f64) -> f64 {
    let composed = COMPOSED.iter().find(|(r, ..)| *r == row);
    let Some((.., bound)) = composed else { return ulps32(got, want) };
    // A product of something subnormal has no more bits than that.
    const MIN_ELEMENTS: f64 = 1e-36;
    let ulps = if want.abs() < MIN_ELEMENTS { (got as f64 - want).abs() / (MIN_ELEMENTS * 2f64.powi(-23)) } else { ulps32(got, want) };
    ulps / bound(x as f64)
}

/// The worst of each function over the inputs with these bits.
fn worst_f32(mut bits: impl Iterator<Item = u32>, instruction_sets: &[InstructionSet]) -> Vec<(f64, f32, f32)> {
    let rows = || UNARY.iter().copied().chain(COMPOSED.iter().map(|(row, f, _)| (*row, *f)));
    let mut worst = vec![(0f64, 0f32, 0f32); rows().count()];
    loop {
        let x: Vec<f32> = bits.by_ref().take(1 << 16).map(f32::from_bits).collect();
        if x.is_empty() {
            return worst;
        }
        for (worst, (row, reference)) in worst.iter_mut().zip(rows()) {
            for &isa in instruction_sets {
                for (x, got) in x.iter().zip(run_f32(isa, row, &x)) {
                    let e = share_f32(row, *x, got, reference(*x as f64));
                    if e > worst.0 {
                        *worst = (e, *x, got);
                    }
                }
            }
        }
    }
}

fn check_f32(step: usize, instruction_sets: &[InstructionSet]) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let part = (1u64 << 32).div_ceil(threads);
    let worst = std::thread::scope(|s| {
        let parts: Vec<_> = (0..threads)
            .map(|t| {
                s.spawn(move || worst_f32((t * part..((t + 1) * part).min(1 << 32)).step_by(step).map(|b| b as u32), instruction_sets))
            })
            .collect();
        parts
            .into_iter()
            .map(|p| p.join().unwrap())
            .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| if b.0 > a.0 { b } else { a }).collect())
    });
    let names = UNARY.iter().map(|r| r.0).chain(COMPOSED.iter().map(|r| r.0)).map(|row| row.info().name);
    let worst: Vec<_> = names.zip(worst.unwrap_or_default()).collect();
    for (name, (e, x, got)) in &worst {
        println!("{name:10} {e:.4} of its bound at {x:e} ({:#x}): {got:e}", x.to_bits());
    }
    for (name, (e, x, got)) in &worst {
        assert!(*e <= 1.0, "{name}: {e} times its bound at {x:e}: {got:e}");
    }
}

/// `tests/rust/accuracy.rs` looks at all inputs, with the same rows in `f64` as the truth.
#[test]
fn f32_functions_are_accurate_on_a_sample() {
    check_f32(if cfg!(miri) { 100_000_007 } else { 16_381 }, &instruction_sets());
}

/// A hexadecimal float as Python writes it.
pub(super) fn hex(text: &str) -> f64 {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |t| (-1.0, t));
    let text = text.strip_prefix("0x").expect("a hexadecimal float");
    let (digits, exponent) = text.split_once('p').expect("an exponent");
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{part}"), 16).expect("hexadecimal digits") as f64;
    let exponent = exponent.parse::<i32>().expect("a whole exponent") - 4 * part.len() as i32;
    // In two steps: 2^-1074 has no reciprocal.
    sign * mantissa * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

/// Points and true values (as sums of two doubles) from `tests/data/f64_functions.txt`.
fn true_values() -> Vec<(RowId, Vec<f64>, f64, f64)> {
    include_str!("../../../../../tests/data/f64_functions.txt")
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let name = fields.next().expect("a name");
            let row = *RowId::ALL.iter().find(|r| r.info().name == name).expect("a row of this name");
            let numbers: Vec<f64> = fields.map(hex).collect();
            let n = row.info().arity();
            (row, numbers[..n].to_vec(), numbers[n], numbers[n + 1])
        })
        .collect()
}

#[test]
fn f64_functions_are_accurate_to_one_ulp() {
    let values = true_values();
    assert!(values.len() > 1000);
    for isa in instruction_sets() {
        for (row, x, high, low) in &values {
            let operands: Vec<&[f64]> = x.iter().map(std::slice::from_ref).collect();
            let got = run_f64(isa, *row, &operands)[0];
            let exponent = ((high.to_bits() >> 52) & 0x7ff).max(1) as i32 - 1075;
            // Twice: the smallest unit is below the range of a reciprocal.
            let ulps = ((got - high) - low) / 2f64.powi(exponent / 2) / 2f64.powi(exponent - exponent / 2);
            assert!(ulps.abs() <= 1.0, "{} {isa:?} at {x:?}: {got:e} is {ulps:.3} ULP from {high:e}", row.info().name);
        }
    }
}
