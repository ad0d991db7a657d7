//! The loops around the rows: every stride pattern, dtype and instruction set against one element at a time.

use proptest::prelude::*;
use rgrad::layout::{BF16, Complex64, DType, Element, F16, Number, Scalar, by_element};
use rgrad::rows::{DTypeRule, RowId};
use rgrad_kernels::backend::cpu::copy::{copy, fill};
use rgrad_kernels::backend::cpu::pointwise::{Func, StridedOperand, has_kernel, run, run_at};
use rgrad_kernels::backend::registry::Device;
use rgrad_kernels::simd::{InstructionSet, best, instruction_set};

/// Memory of one operand: `bytes` long enough for any layout below.
#[derive(Debug, Clone, PartialEq)]
struct Memory {
    words: Vec<u64>,
    dtype: DType,
}

impl Memory {
    fn new(dtype: DType, len: usize, seed: u64) -> Self {
        let mut m = Memory { words: vec![0; len * dtype.size() / 8 + 1], dtype };
        let mut s = seed | 1;
        for i in 0..len {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let v = (s >> 40) as i64;
            m.set(i, v);
        }
        m
    }

    fn ptr(&self) -> *const u8 {
        self.words.as_ptr() as *const u8
    }

    fn ptr_mut(&mut self) -> *mut u8 {
        self.words.as_mut_ptr() as *mut u8
    }

    fn set(&mut self, i: usize, v: i64) {
        by_element!(self.dtype, T => {
            let x = match T::DTYPE.number() {
                Number::Bool => T::of_i64(v & 1),
                Number::U8 => T::of_i64(v | 1),
                Number::I32 if T::DTYPE.is_narrow() => T::of_i64(v | 1),
                Number::I32 => T::of_i64(i64::from((v as i32 % 100) | 1)),
                Number::I64 => T::of_i64((v % 1000) | 1),
                Number::F32 => T::of_f64(f64::from((v % 4001) as f32 / 1000.0 - 2.0)),
                Number::F64 => T::of_f64((v % 4001) as f64 / 1000.0 - 2.0),
                Number::C64 | Number::C128 => {
                    let part = |v: i64| f64::from((v % 4001) as f32 / 1000.0 - 2.0);
                    T::of_scalar(Scalar::Complex(Complex64::new(part(v), part(v.wrapping_mul(31)))))
                }
            };
            // SAFETY: `i` is below the length that was asked for.
            unsafe { self.ptr_mut().cast::<<T as Element>::Raw>().add(i).write(x.raw()) }
        });
    }

    fn element(&self, i: isize) -> Vec<u8> {
        let n = self.dtype.size();
        // SAFETY: in range, as for `set`.
        unsafe { std::slice::from_raw_parts(self.ptr().offset(i * n as isize), n) }.to_vec()
    }
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for &n in shape {
        out = out.into_iter().flat_map(|at| (0..n).map(move |i| [at.clone(), vec![i]].concat())).collect();
    }
    out
}

fn offset(at: &[usize], strides: &[isize]) -> isize {
    at.iter().zip(strides).map(|(i, s)| *i as isize * s).sum()
}

/// Strides of one of the kinds that tensors have: dense, permuted, broadcast, or with gaps.
fn strides(shape: &[usize], kind: u8) -> (Vec<isize>, usize) {
    let rank = shape.len();
    let mut order: Vec<usize> = (0..rank).collect();
    match kind % 4 {
        1 => order.reverse(),
        2 if rank > 1 => order.swap(rank - 1, rank / 2),
        _ => {}
    }
    let mut s = vec![0isize; rank];
    let mut step = if kind % 5 == 4 { 3 } else { 1 };
    for &d in order.iter().rev() {
        s[d] = step as isize;
        step *= shape[d].max(1) + (kind as usize / 32) % 2;
    }
    if kind % 4 == 3 {
        for (d, s) in s.iter_mut().enumerate() {
            if (kind >> 3) as usize >> d & 1 == 1 {
                *s = 0;
            }
        }
    }
    (s, step + 4)
}

fn rows_for(dtype: DType) -> Vec<RowId> {
    RowId::ALL
        .iter()
        .copied()
        .filter(|r| match r.info().rule {
            DTypeRule::Float | DTypeRule::FloatOnly | DTypeRule::FloatElseSame => dtype.is_differentiable(),
            DTypeRule::Any | DTypeRule::Compare | DTypeRule::Logic => true,
            DTypeRule::NoBool | DTypeRule::Subtract | DTypeRule::Negate | DTypeRule::BoolAsInt => dtype != DType::Bool,
            DTypeRule::Bitwise => !dtype.is_differentiable(),
            DTypeRule::Shift => !dtype.is_differentiable() && dtype != DType::Bool,
        })
        .filter(|r| r.info().computes(dtype.category()))
        .collect()
}

fn params(row: RowId) -> Vec<Scalar> {
    row.info().sample_params.iter().map(|p| Scalar::Float(*p)).collect()
}

/// Runs `func` at once and one element at a time; both must give the same bits.
fn check(func: Func, dtype: DType, shape: &[usize], kinds: &[u8], seed: u64) {
    let info = func.row.info();
    let p = params(func.row);
    let mut memories = vec![];
    for (k, kind) in kinds.iter().enumerate().take(func.inputs()) {
        let (s, len) = strides(shape, *kind);
        let operand = if func.part == rgrad_kernels::backend::cpu::pointwise::Part::Forward { Some(k) } else { k.checked_sub(1) };
        let mask = operand.and_then(|k| info.operands.get(k)).is_some_and(|o| o.mask);
        memories.push((Memory::new(if mask { DType::Bool } else { dtype }, len, seed + k as u64), s));
    }
    let mut out_kind = kinds[func.inputs()];
    if out_kind % 4 == 3 {
        out_kind -= 1;
    }
    let (os, len) = strides(shape, out_kind);
    let mut out = Memory::new(func.out_dtype(dtype), len, 99);
    let mut one_by_one = out.clone();
    let ins: Vec<StridedOperand> = memories.iter().map(|(m, s)| StridedOperand { ptr: m.ptr(), strides: s, dtype: m.dtype }).collect();
    // SAFETY: `strides` gives as much memory as the layout names, and no output element twice.
    unsafe { run(func, dtype, shape, out.ptr_mut(), &os, &ins, &p) }.unwrap();
    for at in indices(shape) {
        let ins: Vec<StridedOperand> = memories
            .iter()
            .map(|(m, s)| StridedOperand {
                ptr: m.ptr().wrapping_offset(offset(&at, s) * m.dtype.size() as isize),
                strides: &[],
                dtype: m.dtype,
            })
            .collect();
        let o = offset(&at, &os) * one_by_one.dtype.size() as isize;
        // SAFETY: as above, one element.
        unsafe { run(func, dtype, &[], one_by_one.ptr_mut().offset(o), &[], &ins, &p) }.unwrap();
    }
    assert!(out == one_by_one, "{} {:?} {dtype} {shape:?} {kinds:?}", info.name, func.part);
}

const SHAPES: &[&[usize]] = &[
    &[],
    &[0],
    &[1],
    &[5],
    &[16],
    &[37],
    &[1030],
    &[3, 0, 2],
    &[4, 4],
    &[2, 33],
    &[33, 2],
    &[40, 70],
    &[700, 3],
    &[3, 700],
    &[2, 3, 4],
    &[5, 1, 17],
    &[2, 20, 3, 18],
    &[2, 1, 2, 3, 2],
];

#[test]
fn every_stride_pattern_gives_the_same_bits() {
    // On x86-64 without AVX2 derivatives have no kernels: they are composed of forward ones.
    let has_derivatives = cfg!(not(target_arch = "x86_64")) || instruction_set() != InstructionSet::Base;
    assert_eq!(has_kernel(Func::vjp(RowId::Div, 1), DType::F32), has_derivatives);
    let kinds: &[u8] = if cfg!(miri) { &[0, 3 + 8, 4] } else { &[0, 1, 2, 3 + 8, 3 + 16, 3 + 24, 4, 9, 36] };
    for shape in SHAPES.iter().filter(|s| !cfg!(miri) || s.iter().product::<usize>() < 100) {
        for (i, &a) in kinds.iter().enumerate() {
            for (j, &b) in kinds.iter().enumerate() {
                let c = kinds[(i * 3 + j) % kinds.len()];
                check(Func::forward(RowId::Sub), DType::F32, shape, &[a, b, c], 1);
                check(Func::forward(RowId::Where), DType::F64, shape, &[a, b, c, a], 2);
                check(Func::forward(RowId::Lt), DType::I32, shape, &[b, a, c], 3);
                if has_derivatives {
                    check(Func::vjp(RowId::Div, 1), DType::F32, shape, &[a, b, c, 0, a], 4);
                    check(Func::vjp(RowId::Where, 1), DType::F32, shape, &[a, b, c, c, 0, a], 5);
                    check(Func::vjp(RowId::Tanh, 0), DType::F64, shape, &[b, a, c, a], 6);
                }
            }
        }
    }
}

#[test]
fn every_row_runs_in_every_dtype_that_it_takes() {
    for dtype in DType::ALL {
        for row in rows_for(dtype) {
            for shape in [&[3usize, 21] as &[usize], &[50]] {
                check(Func::forward(row), dtype, shape, &[0, 1, 2, 0], 7);
                if dtype.is_float() {
                    for i in 0..row.info().arity() {
                        if has_kernel(Func::vjp(row, i), dtype) {
                            check(Func::vjp(row, i), dtype, shape, &[0, 1, 0, 2, 0, 1], 8);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rows_refuse_other_dtypes_by_an_error() {
    let (x, mut out) = (1i64, 0i64);
    let ins = [StridedOperand { ptr: &raw const x as *const u8, strides: &[], dtype: DType::I64 }];
    // SAFETY: one element; nothing is written.
    let e = unsafe { run(Func::forward(RowId::Sin), DType::I64, &[], &raw mut out as *mut u8, &[], &ins, &[]) };
    assert!(e.unwrap_err().to_string().contains("not implemented for 'Long'"));
}

#[test]
fn dividing_integers_by_zero_is_an_error_and_writes_nothing() {
    for row in [RowId::DivFloor, RowId::DivTrunc, RowId::FloorDivide, RowId::Fmod, RowId::Remainder] {
        let (a, mut b, mut out) = ([7i32; 600], [3i32; 600], [5i32; 600]);
        b[599] = 0;
        for strides in [[1isize], [0]] {
            let divisor = if strides[0] == 0 { &b[599..] } else { &b[..] };
            let ins = [
                StridedOperand { ptr: a.as_ptr() as *const u8, strides: &[1], dtype: DType::I32 },
                StridedOperand { ptr: divisor.as_ptr() as *const u8, strides: &strides, dtype: DType::I32 },
            ];
            // SAFETY: 600 elements each, or one with the stride 0.
            let e = unsafe { run(Func::forward(row), DType::I32, &[600], out.as_mut_ptr() as *mut u8, &[1], &ins, &[]) };
            assert!(e.unwrap_err().to_string().contains("ZeroDivisionError"), "{row:?}");
            assert_eq!(out, [5; 600]);
        }
    }
}

#[test]
fn integers_divide_and_wrap_as_python_and_c_do() {
    let cases: &[(RowId, i32, i32, i32)] = &[
        (RowId::DivFloor, -7, 2, -4),
        (RowId::DivFloor, 7, -2, -4),
        (RowId::DivTrunc, -7, 2, -3),
        (RowId::Remainder, -7, 2, 1),
        (RowId::Remainder, 7, -2, -1),
        (RowId::Fmod, -7, 2, -1),
        (RowId::DivFloor, i32::MIN, -1, i32::MIN),
        (RowId::Remainder, i32::MIN, -1, 0),
        (RowId::Add, i32::MAX, 1, i32::MIN),
        (RowId::Pow, 3, 4, 81),
        (RowId::Pow, -2, 31, i32::MIN),
        (RowId::LeftShift, 1, 31, i32::MIN),
        (RowId::LeftShift, 1, 32, 0),
        (RowId::LeftShift, 1, -1, 0),
        (RowId::RightShift, -8, 1, -4),
        (RowId::RightShift, -8, 70, -1),
        (RowId::RightShift, 8, -1, 0),
        (RowId::BitwiseXor, 6, 3, 5),
    ];
    for &(row, a, b, want) in cases {
        let mut out = 0i32;
        let ins = [a, b].map(Box::new);
        let ops = [0, 1].map(|k| StridedOperand { ptr: &*ins[k] as *const i32 as *const u8, strides: &[], dtype: DType::I32 });
        // SAFETY: one element each.
        unsafe { run(Func::forward(row), DType::I32, &[], &raw mut out as *mut u8, &[], &ops, &[]) }.unwrap();
        assert_eq!(out, want, "{row:?} {a} {b}");
    }
}

#[test]
fn in_place_gives_the_same_as_out_of_place() {
    for n in [1usize, 7, 16, 530, 5000] {
        let b = Memory::new(DType::F32, n, 2);
        let a = Memory::new(DType::F32, n, 1);
        let op = |m: &Memory| m.ptr();
        for shared in 0..3 {
            let mut want = Memory::new(DType::F32, n, 3);
            let mut got = a.clone();
            let at = |m: *const u8| StridedOperand { ptr: m, strides: &[1], dtype: DType::F32 };
            let other = if shared == 1 { op(&a) } else { op(&b) };
            // SAFETY: `n` elements each; `got` is output and input element for element.
            unsafe {
                run(Func::forward(RowId::Atan2), DType::F32, &[n], want.ptr_mut(), &[1], &[at(op(&a)), at(other)], &[]).unwrap();
                let p = got.ptr_mut();
                let other = if shared == 1 { p as *const u8 } else { op(&b) };
                run(Func::forward(RowId::Atan2), DType::F32, &[n], p, &[1], &[at(p), at(other)], &[]).unwrap();
            }
            assert_eq!(want.words, got.words, "{n}");
        }
    }
}

/// Rows that AVX-512 computes by functions of its own in `f32`: as accurate, with other bits.
const OF_SIXTEEN: [RowId; 5] = [RowId::Tanh, RowId::Sin, RowId::Cos, RowId::Erf, RowId::Gelu];

#[test]
fn instruction_sets_agree() {
    let n = 1000;
    let mut differ = std::collections::HashSet::new();
    for dtype in [DType::F32, DType::F64] {
        for row in rows_for(dtype) {
            let mut funcs = vec![Func::forward(row)];
            funcs.extend((0..row.info().arity()).map(|i| Func::vjp(row, i)).filter(|f| has_kernel(*f, dtype)));
            for func in funcs {
                let mems: Vec<Memory> = (0..func.inputs())
                    .map(|k| {
                        let k0 = if func.part == rgrad_kernels::backend::cpu::pointwise::Part::Forward { k } else { k.wrapping_sub(1) };
                        let mask = row.info().operands.get(k0).is_some_and(|o| o.mask);
                        Memory::new(if mask { DType::Bool } else { dtype }, n, 40 + k as u64)
                    })
                    .collect();
                let ins: Vec<StridedOperand> =
                    mems.iter().map(|m| StridedOperand { ptr: m.ptr(), strides: &[1], dtype: m.dtype }).collect();
                let mut results = vec![];
                for level in InstructionSet::ALL.into_iter().filter(|l| *l <= best()) {
                    let mut out = Memory::new(func.out_dtype(dtype), n, 0);
                    // SAFETY: `n` elements each.
                    let done = unsafe { run_at(level, func, dtype, &[n], out.ptr_mut(), &[1], &ins, &params(row)) };
                    // Derivatives have no baseline instance on x86-64.
                    assert!(done.is_ok() || level == InstructionSet::Base);
                    if done.is_ok() {
                        results.push((level, out));
                    }
                }
                let base = &results[0].1;
                for (level, other) in &results[1..] {
                    if *level == InstructionSet::Avx512 {
                        let avx2 = &results[results.len() - 2].1.words;
                        if &other.words != avx2 {
                            let listed = dtype == DType::F32 && OF_SIXTEEN.contains(&row);
                            assert!(listed, "{} {:?} {dtype}: AVX2 and AVX-512 differ", row.info().name, func.part);
                            differ.insert(row);
                        }
                    }
                    // The baseline has no fused multiply-add: it may differ in the last place where functions are composed.
                    // Where terms cancel, their last place counts.
                    let least = if OF_SIXTEEN.contains(&row) { 1.0 } else { 1e-3 };
                    for i in 0..n as isize {
                        let (a, b) = (base.element(i), other.element(i));
                        if a != b {
                            assert!(near(dtype, &a, &b, least), "{} {:?} {dtype} at {i}: {a:?} {b:?}", row.info().name, func.part);
                        }
                    }
                }
            }
        }
    }
    if best() == InstructionSet::Avx512 {
        assert_eq!(differ.len(), OF_SIXTEEN.len(), "only {differ:?} differ");
    }
}

/// Within some units in the last place of `a`, or of `least` where that is larger.
fn near(dtype: DType, a: &[u8], b: &[u8], least: f32) -> bool {
    match dtype {
        DType::F32 => {
            let (a, b) = (f32::from_ne_bytes(a.try_into().unwrap()), f32::from_ne_bytes(b.try_into().unwrap()));
            a.is_nan() && b.is_nan() || (a - b).abs() <= 4.0 * f32::EPSILON * a.abs().max(least)
        }
        _ => {
            let (a, b) = (f64::from_ne_bytes(a.try_into().unwrap()), f64::from_ne_bytes(b.try_into().unwrap()));
            // Where a composed row's terms cancel, a last place of a term is several of the result.
            a.is_nan() && b.is_nan() || (a - b).abs() <= 16.0 * f64::EPSILON * a.abs().max(1e-3)
        }
    }
}

fn is_nan(dtype: DType, a: &[u8]) -> bool {
    match dtype {
        DType::F32 => f32::from_ne_bytes(a.try_into().unwrap()).is_nan(),
        _ => f64::from_ne_bytes(a.try_into().unwrap()).is_nan(),
    }
}

/// Fused programs meet elements in other groups than single rows do.
#[test]
fn what_an_element_gives_does_not_depend_on_its_neighbours() {
    let n = 400;
    for dtype in [DType::F32, DType::F64] {
        for row in rows_for(dtype) {
            let mut funcs = vec![Func::forward(row)];
            funcs.extend((0..row.info().arity()).map(|i| Func::vjp(row, i)).filter(|f| has_kernel(*f, dtype)));
            for func in funcs {
                let mems: Vec<Memory> = (0..func.inputs())
                    .map(|k| {
                        let k0 = if func.part == rgrad_kernels::backend::cpu::pointwise::Part::Forward { k } else { k.wrapping_sub(1) };
                        let mask = row.info().operands.get(k0).is_some_and(|o| o.mask);
                        let mut m = Memory::new(if mask { DType::Bool } else { dtype }, n, 90 + k as u64);
                        for (at, v) in [(3 + k, f64::NAN), (40, f64::INFINITY), (77 + k, 1e7), (111, -0.0), (200, -3e9), (201 + k, 1e300)] {
                            let p = m.ptr_mut();
                            // SAFETY: all are below `n`.
                            unsafe {
                                match m.dtype {
                                    DType::F32 => *(p as *mut f32).add(at) = v as f32,
                                    DType::F64 => *(p as *mut f64).add(at) = v,
                                    _ => {}
                                }
                            }
                        }
                        m
                    })
                    .collect();
                let size = |m: &Memory| m.dtype.size();
                let whole = |from: usize| {
                    let ins: Vec<StridedOperand> = mems
                        .iter()
                        .map(|m| StridedOperand { ptr: m.ptr().wrapping_add(from * size(m)), strides: &[1], dtype: m.dtype })
                        .collect();
                    let mut out = Memory::new(func.out_dtype(dtype), n, 0);
                    // SAFETY: `n - from` elements each.
                    unsafe { run_at(best(), func, dtype, &[n - from], out.ptr_mut(), &[1], &ins, &params(row)) }.unwrap();
                    out
                };
                let all = whole(0);
                for from in [1, 5, 11] {
                    let part = whole(from);
                    for i in from..n {
                        let (a, b) = (all.element(i as isize), part.element((i - from) as isize));
                        // The sign of a nan is that of whichever operand the instructions at its place took it from.
                        let same = a == b || is_nan(dtype, &a) && is_nan(dtype, &b);
                        assert!(same, "{} {:?} {dtype} at {i}, from {from}: {a:?} and {b:?}", row.info().name, func.part);
                    }
                }
            }
        }
    }
}

#[test]
fn large_tensors_are_split_without_seams() {
    if cfg!(miri) {
        return;
    }
    for shape in [&[200_003usize] as &[usize], &[450, 500], &[100_003, 2]] {
        check(Func::forward(RowId::Add), DType::F32, shape, &[0, 0, 0], 5);
        check(Func::forward(RowId::Mul), DType::F32, shape, &[0, 1, 0], 6);
        check(Func::forward(RowId::Add), DType::I64, shape, &[0, 3 + 8, 1], 7);
    }
}

fn copied(from: DType, to: DType, value: Scalar) -> Vec<u8> {
    let (mut a, mut b) = (0u128, 0u128);
    // SAFETY: one element of at most 16 bytes each.
    unsafe {
        fill(from, &[], &raw mut a as *mut u8, &[], value);
        copy(from, to, &[], &raw const a as *const u8, &[], &raw mut b as *mut u8, &[]);
    }
    b.to_ne_bytes()[..to.size()].to_vec()
}

#[test]
fn casts_are_those_of_pytorch() {
    let f = Scalar::Float;
    for from in [DType::F32, DType::F64] {
        assert_eq!(copied(from, DType::I32, f(-2.9)), (-2i32).to_ne_bytes());
        assert_eq!(copied(from, DType::I64, f(f64::NAN)), i64::MIN.to_ne_bytes());
        assert_eq!(copied(from, DType::I32, f(1e30)), i32::MIN.to_ne_bytes());
        assert_eq!(copied(from, DType::U8, f(300.0)), [44]);
        assert_eq!(copied(from, DType::U8, f(-1.0)), [255]);
        assert_eq!(copied(from, DType::Bool, f(f64::NAN)), [1]);
        assert_eq!(copied(from, DType::Bool, f(-0.0)), [0]);
        assert_eq!(copied(from, DType::Bool, f(1e-40)), [1]);
    }
    assert_eq!(copied(DType::I64, DType::I32, Scalar::Int(1 << 33 | 5)), 5i32.to_ne_bytes());
    assert_eq!(copied(DType::I64, DType::F32, Scalar::Int(16_777_217)), 16_777_216f32.to_ne_bytes());
    assert_eq!(copied(DType::Bool, DType::F64, Scalar::Bool(true)), 1f64.to_ne_bytes());
    assert_eq!(copied(DType::F64, DType::F32, f(1e300)), f32::INFINITY.to_ne_bytes());
}

#[test]
fn integers_keep_their_low_bits_in_every_pair_of_dtypes() {
    for from in DType::ALL.into_iter().filter(|d| !d.is_differentiable()) {
        let (low, high) = from.integers().unwrap_or((0, 1));
        for v in [low, low.saturating_add(1), -129, -1, 0, 1, 100, 127, 128, 200, 255, 256, 32_767, 32_768, 65_537, high - 1, high] {
            if !(low..=high).contains(&v) {
                continue;
            }
            for to in DType::ALL {
                let want = match to {
                    DType::Bool => vec![u8::from(v != 0)],
                    DType::F16 => F16::from_f32(v as f32).0.to_ne_bytes().to_vec(),
                    DType::BF16 => BF16::from_f32(v as f32).0.to_ne_bytes().to_vec(),
                    DType::F32 => (v as f32).to_ne_bytes().to_vec(),
                    DType::F64 => (v as f64).to_ne_bytes().to_vec(),
                    _ if to.is_complex() => Scalar::Int(v).to_bytes(to)[..to.size()].to_vec(),
                    // The first bytes, on the little-endian machines that there are.
                    _ => v.to_le_bytes()[..to.size()].to_vec(),
                };
                assert_eq!(copied(from, to, Scalar::Int(v)), want, "{v} from {from} to {to}");
            }
        }
    }
}

#[test]
fn narrow_integers_wrap_at_their_own_width() {
    let run_on = |row: RowId, a: i8, b: i8| {
        let (a, b, mut out) = (a, b, 0i8);
        let ops = [&a, &b].map(|x| StridedOperand { ptr: (x as *const i8).cast(), strides: &[], dtype: DType::I8 });
        // SAFETY: one element each.
        unsafe { run(Func::forward(row), DType::I8, &[], (&raw mut out).cast(), &[], &ops, &[]) }.unwrap();
        out
    };
    for (row, a, b, want) in [
        (RowId::Add, 127, 1, -128),
        (RowId::Mul, 100, 3, 44),
        (RowId::DivFloor, -128, -1, -128),
        (RowId::LeftShift, 1, 7, -128),
        (RowId::LeftShift, 1, 8, 0),
        (RowId::RightShift, -128, 9, -1),
        (RowId::Pow, 3, 5, -13),
        (RowId::Maximum, -128, 127, 127),
    ] {
        assert_eq!(run_on(row, a, b), want, "{row:?} of {a} and {b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn copies_of_any_layout_move_every_element(
        shape in prop::collection::vec(1usize..24, 0..4), a in 0u8..64, b in 0u8..64, from in 0..DType::COUNT, to in 0..DType::COUNT,
    ) {
        let (from, to) = (DType::ALL[from], DType::ALL[to]);
        let (ss, len) = strides(&shape, a);
        let src = Memory::new(from, len, 11);
        let (ds, len) = strides(&shape, if b % 4 == 3 { b - 1 } else { b });
        let mut dst = Memory::new(to, len, 12);
        let before = dst.clone();
        // SAFETY: `strides` gives as much memory as the layout names, and no output element twice.
        unsafe { copy(from, to, &shape, src.ptr(), &ss, dst.ptr_mut(), &ds) };
        let mut written = std::collections::HashSet::new();
        for at in indices(&shape) {
            let (s, d) = (offset(&at, &ss), offset(&at, &ds));
            let mut want = 0u128;
            // SAFETY: one element.
            unsafe {
                let src = src.ptr().offset(s * from.size() as isize);
                copy(from, to, &[], src, &[], &raw mut want as *mut u8, &[]);
            }
            prop_assert_eq!(dst.element(d), &want.to_ne_bytes()[..to.size()]);
            written.insert(d);
        }
        for i in 0..len as isize {
            prop_assert!(written.contains(&i) || dst.element(i) == before.element(i), "wrote beside the layout");
        }
    }

    #[test]
    fn random_layouts_give_the_same_bits(
        shape in prop::collection::vec(1usize..30, 0..4), kinds in prop::collection::vec(0u8..64, 6), row in 0usize..1000,
    ) {
        let rows = rows_for(DType::F32);
        check(Func::forward(rows[row % rows.len()]), DType::F32, &shape, &kinds, 3);
    }
}

// Here and not beside the registry: a unit test that names the backends would have the tests of that crate compile every kernel again.
#[test]
fn devices_have_names_and_names_have_devices() {
    for d in Device::all() {
        assert_eq!(Device::named(d.name()), Some(d));
    }
    for (d, name) in [(Device::CPU, "cpu"), (Device::WGPU, "wgpu"), (Device::META, "meta")] {
        assert_eq!(d.name(), name);
    }
    assert_eq!(Device::named("nowhere"), None);
    assert!(Device::CPU.is_host() && Device::register("cpu", || Device::CPU.backend()).is_err());
}
