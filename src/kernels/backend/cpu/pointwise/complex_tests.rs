//! Accuracy and special values of the functions of complex numbers, over the loops that compute them.

use super::math_tests::{hex, instruction_sets};
use crate::backend::cpu::pointwise::{Func, StridedOperand, run_at};
use crate::layout::DType;
use crate::rows::RowId;
use crate::simd::InstructionSet;

type ReIm = (f64, f64);

fn row(name: &str) -> RowId {
    *RowId::ALL.iter().find(|r| r.info().name == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// What `row` gives for complex numbers with parts of the type `R`, in one call.
macro_rules! run {
    ($isa:expr, $row:expr, $dtype:expr, $R:ty, $operands:expr) => {{
        let operands: &[Vec<ReIm>] = $operands;
        let n = operands[0].len();
        let narrow: Vec<Vec<[$R; 2]>> = operands.iter().map(|o| o.iter().map(|z| [z.0 as $R, z.1 as $R]).collect()).collect();
        let ins: Vec<_> = narrow.iter().map(|o| StridedOperand { ptr: o.as_ptr() as *const u8, strides: &[1], dtype: $dtype }).collect();
        let func = Func::forward($row);
        let mut out = vec![[0 as $R; 2]; n];
        // SAFETY: all have this length; a real result takes half of it.
        unsafe { run_at($isa, func, $dtype, &[n], out.as_mut_ptr() as *mut u8, &[1], &ins, &[]) }.unwrap();
        if func.out_dtype($dtype).is_complex() {
            out.iter().map(|z| (z[0] as f64, z[1] as f64)).collect::<Vec<ReIm>>()
        } else {
            out.concat()[..n].iter().map(|v| (*v as f64, 0.0)).collect()
        }
    }};
}

fn run(isa: InstructionSet, row: RowId, bits: u32, operands: &[Vec<ReIm>]) -> Vec<ReIm> {
    if bits == 32 { run!(isa, row, DType::C64, f32, operands) } else { run!(isa, row, DType::C128, f64, operands) }
}

/// A row at some points, and the true values; each part of these is a sum of two.
struct Values {
    row: RowId,
    bits: u32,
    operands: Vec<Vec<ReIm>>,
    values: Vec<[ReIm; 2]>,
}

fn true_values() -> Vec<Values> {
    let mut all: Vec<Values> = Vec::new();
    for line in include_str!("../../../../../tests/data/complex_functions.txt").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (row, bits) = (row(fields[0]), fields[1].parse().unwrap());
        let numbers: Vec<f64> = fields[2..].iter().map(|f| hex(f)).collect();
        let pairs: Vec<ReIm> = numbers.chunks(2).map(|p| (p[0], p[1])).collect();
        let (operands, value) = pairs.split_at(pairs.len() - 2);
        let at = all.iter().position(|v| v.row == row && v.bits == bits).unwrap_or_else(|| {
            all.push(Values { row, bits, operands: vec![Vec::new(); operands.len()], values: Vec::new() });
            all.len() - 1
        });
        all[at].operands.iter_mut().zip(operands).for_each(|(to, z)| to.push(*z));
        all[at].values.push([value[0], value[1]]);
    }
    all
}

/// The unit in the last place of a number of this size.
fn unit(v: f64, bits: u32) -> f64 {
    let exponent = ((v.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let last = if bits == 32 { exponent.max(-126) - 23 } else { exponent.max(-1022) - 52 };
    // In two steps: the smallest ones have no reciprocal.
    2f64.powi(last / 2) * 2f64.powi(last - last / 2)
}

/// Rows with parts that are small differences of large terms: only the distance from the truth is bounded.
const CANCELLING: &[&str] = &["expm1", "sigmoid", "silu", "pow", "div", "log1p"];

#[test]
fn complex_functions_are_accurate_to_four_ulp() {
    let all = true_values();
    assert!(all.iter().map(|v| v.values.len()).sum::<usize>() > 1500);
    for isa in instruction_sets() {
        for Values { row, bits, operands, values } in &all {
            let name = row.info().name;
            for (i, (got, want)) in run(isa, *row, *bits, operands).iter().zip(values).enumerate() {
                let z: Vec<_> = operands.iter().map(|o| o[i]).collect();
                let off = [(got.0 - want[0].0) - want[0].1, (got.1 - want[1].0) - want[1].1];
                let size = want[0].0.abs().max(want[1].0.abs());
                let of = |k: usize, by: f64| off[k] / by;
                let ulps = of(0, unit(size, *bits)).hypot(of(1, unit(size, *bits)));
                assert!(ulps <= 4.0, "{name} {bits} {isa:?} at {z:?}: {got:?} is {ulps:.2} ULP from {want:?}");
                if !CANCELLING.contains(&name) {
                    let parts = [of(0, unit(want[0].0, *bits)).abs(), of(1, unit(want[1].0, *bits)).abs()];
                    assert!(parts.iter().all(|e| *e <= 6.0), "{name} {bits} {isa:?} at {z:?}: {got:?}, {parts:?} ULP from {want:?}");
                }
            }
        }
    }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

/// Annex G of C99 and its technical corrigenda: name, operand, value, and whether the sign of its parts is specified.
#[rustfmt::skip]
#[allow(clippy::type_complexity)]
const SPECIAL: &[(&str, ReIm, (f64, f64, bool, bool))] = &[
    ("sqrt", (0.0, 0.0), (0.0, 0.0, true, true)),
    ("sqrt", (-0.0, 0.0), (0.0, 0.0, true, true)),
    ("sqrt", (1.0, INF), (INF, INF, true, true)),
    ("sqrt", (NAN, INF), (INF, INF, true, true)),
    ("sqrt", (-INF, 1.0), (0.0, INF, true, true)),
    ("sqrt", (INF, 1.0), (INF, 0.0, true, true)),
    ("sqrt", (-INF, NAN), (NAN, INF, true, false)),
    ("sqrt", (INF, NAN), (INF, NAN, true, true)),
    ("sqrt", (-4.0, 0.0), (0.0, 2.0, true, true)),
    ("sqrt", (NAN, 1.0), (NAN, NAN, true, true)),
    ("exp", (0.0, 0.0), (1.0, 0.0, true, true)),
    ("exp", (1.0, INF), (NAN, NAN, true, true)),
    ("exp", (INF, 0.0), (INF, 0.0, true, true)),
    ("exp", (-INF, 2.0), (-0.0, 0.0, true, true)),
    ("exp", (INF, 2.0), (-INF, INF, true, true)),
    ("exp", (-INF, INF), (0.0, 0.0, false, false)),
    ("exp", (INF, INF), (INF, NAN, false, true)),
    ("exp", (-INF, NAN), (0.0, 0.0, false, false)),
    ("exp", (INF, NAN), (INF, NAN, false, true)),
    ("exp", (NAN, 0.0), (NAN, 0.0, true, true)),
    ("log", (-0.0, 0.0), (-INF, PI, true, true)),
    ("log", (0.0, 0.0), (-INF, 0.0, true, true)),
    ("log", (1.0, INF), (INF, PI / 2.0, true, true)),
    ("log", (-INF, 1.0), (INF, PI, true, true)),
    ("log", (INF, 1.0), (INF, 0.0, true, true)),
    ("log", (-INF, INF), (INF, 0.75 * PI, true, true)),
    ("log", (INF, NAN), (INF, NAN, true, true)),
    ("log", (NAN, INF), (INF, NAN, true, true)),
    ("log", (1.0, NAN), (NAN, NAN, true, true)),
    ("log", (-1.0, 0.0), (0.0, PI, true, true)),
    ("log1p", (-1.0, 0.0), (-INF, 0.0, true, true)),
    ("log1p", (-0.0, 0.0), (-0.0, 0.0, true, true)),
    ("sinh", (0.0, 0.0), (0.0, 0.0, true, true)),
    ("sinh", (0.0, INF), (0.0, NAN, false, true)),
    ("sinh", (0.0, NAN), (0.0, NAN, false, true)),
    ("sinh", (1.0, INF), (NAN, NAN, true, true)),
    ("sinh", (INF, 0.0), (INF, 0.0, true, true)),
    ("sinh", (INF, 2.0), (-INF, INF, true, true)),
    ("sinh", (INF, INF), (INF, NAN, false, true)),
    ("sinh", (NAN, 0.0), (NAN, 0.0, true, true)),
    ("cosh", (0.0, 0.0), (1.0, 0.0, true, true)),
    ("cosh", (0.0, INF), (NAN, 0.0, true, false)),
    ("cosh", (INF, 0.0), (INF, 0.0, true, true)),
    ("cosh", (INF, 2.0), (-INF, INF, true, true)),
    ("cosh", (INF, INF), (INF, NAN, false, true)),
    ("cosh", (INF, NAN), (INF, NAN, true, true)),
    ("cosh", (NAN, 0.0), (NAN, 0.0, true, false)),
    ("tanh", (0.0, 0.0), (0.0, 0.0, true, true)),
    ("tanh", (1.0, INF), (NAN, NAN, true, true)),
    ("tanh", (0.0, INF), (0.0, NAN, true, true)),
    ("tanh", (INF, 1.0), (1.0, 0.0, true, true)),
    ("tanh", (INF, 2.0), (1.0, -0.0, true, true)),
    ("tanh", (INF, INF), (1.0, 0.0, true, false)),
    ("tanh", (NAN, 0.0), (NAN, 0.0, true, true)),
    ("acos", (0.0, 0.0), (PI / 2.0, -0.0, true, true)),
    ("acos", (-0.0, NAN), (PI / 2.0, NAN, true, true)),
    ("acos", (1.0, INF), (PI / 2.0, -INF, true, true)),
    ("acos", (-INF, 1.0), (PI, -INF, true, true)),
    ("acos", (INF, 1.0), (0.0, -INF, true, true)),
    ("acos", (-INF, INF), (0.75 * PI, -INF, true, true)),
    ("acos", (INF, INF), (0.25 * PI, -INF, true, true)),
    ("acos", (INF, NAN), (NAN, INF, true, false)),
    ("acos", (NAN, INF), (NAN, -INF, true, true)),
    ("acosh", (0.0, 0.0), (0.0, PI / 2.0, true, true)),
    ("acosh", (1.0, INF), (INF, PI / 2.0, true, true)),
    ("acosh", (-INF, 1.0), (INF, PI, true, true)),
    ("acosh", (INF, 1.0), (INF, 0.0, true, true)),
    ("acosh", (INF, NAN), (INF, NAN, true, true)),
    ("acosh", (NAN, INF), (INF, NAN, true, true)),
    ("asinh", (0.0, 0.0), (0.0, 0.0, true, true)),
    ("asinh", (1.0, INF), (INF, PI / 2.0, true, true)),
    ("asinh", (INF, 1.0), (INF, 0.0, true, true)),
    ("asinh", (INF, INF), (INF, PI / 4.0, true, true)),
    ("asinh", (INF, NAN), (INF, NAN, true, true)),
    ("asinh", (NAN, 0.0), (NAN, 0.0, true, true)),
    ("asinh", (NAN, INF), (INF, NAN, false, true)),
    ("atanh", (0.0, 0.0), (0.0, 0.0, true, true)),
    ("atanh", (0.0, NAN), (0.0, NAN, true, true)),
    ("atanh", (1.0, 0.0), (INF, 0.0, true, true)),
    ("atanh", (1.0, INF), (0.0, PI / 2.0, true, true)),
    ("atanh", (INF, 1.0), (0.0, PI / 2.0, true, true)),
    ("atanh", (INF, INF), (0.0, PI / 2.0, true, true)),
    ("atanh", (INF, NAN), (0.0, NAN, true, true)),
    ("atanh", (NAN, INF), (0.0, PI / 2.0, false, true)),
    ("atanh", (2.0, 0.0), (0.549_306_144_334_054_9, PI / 2.0, true, true)),
    ("abs", (INF, NAN), (INF, 0.0, true, true)),
    ("abs", (NAN, -INF), (INF, 0.0, true, true)),
    ("sigmoid", (INF, 1.0), (1.0, -0.0, true, false)),
    ("sigmoid", (-INF, 0.0), (0.0, 0.0, true, true)),
    ("reciprocal", (INF, 1.0), (0.0, 0.0, false, false)),
];

#[test]
fn special_values_are_those_of_c99() {
    for isa in instruction_sets() {
        for bits in [32, 64] {
            for (name, z, value) in SPECIAL {
                // The conjugate has the conjugate value.
                for sign in [1.0, -1.0] {
                    let got = run(isa, row(name), bits, &[vec![(z.0, z.1 * sign)]])[0];
                    let same = |got: f64, want: f64, signed: bool| {
                        let near = (got == want) | ((got - want).abs() <= want.abs() * 1e-7) | (got.is_nan() & want.is_nan());
                        (near | (!signed & (got.abs() == want.abs())))
                            & (!signed | want.is_nan() | (got.is_sign_negative() == want.is_sign_negative()))
                    };
                    let im = if *name == "abs" { 0.0 } else { value.1 * sign };
                    assert!(
                        same(got.0, value.0, value.2) && same(got.1, im, value.3),
                        "{name} {bits} {isa:?} of {z:?} * {sign}: {got:?}, not {value:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn quotients_treat_zero_and_infinity_as_pytorch_does() {
    let points = [
        ((1.0, 2.0), (0.0, 0.0), (INF, INF)),
        ((0.0, 1.0), (0.0, -0.0), (NAN, INF)),
        ((1.0, -2.0), (INF, 0.0), (0.0, -0.0)),
        ((1.0, 2.0), (0.0, INF), (0.0, -0.0)),
        ((1.0, 2.0), (INF, INF), (NAN, NAN)),
        ((1.0, 2.0), (INF, NAN), (NAN, NAN)),
        ((INF, 1.0), (2.0, 1.0), (INF, -INF)),
        ((3.0, 4.0), (3.0, 4.0), (1.0, 0.0)),
    ];
    for isa in instruction_sets() {
        for bits in [32, 64] {
            for (a, b, value) in points {
                let got = run(isa, RowId::Div, bits, &[vec![a], vec![b]])[0];
                let same = |got: f64, want: f64| {
                    (got == want && got.is_sign_negative() == want.is_sign_negative()) | (got.is_nan() & want.is_nan())
                };
                assert!(same(got.0, value.0) && same(got.1, value.1), "{bits} {isa:?} {a:?} / {b:?}: {got:?}, not {value:?}");
            }
        }
    }
}
