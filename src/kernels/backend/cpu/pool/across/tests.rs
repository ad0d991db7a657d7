use super::super::average::Counts;
use super::super::max::Places;
use super::super::{average as along_rows, max as max_along_rows};
use super::*;
use crate::backend::cpu::common::seed::Seed;
use crate::call::{PoolDivisor, PoolPass};
use crate::simd::best;

fn axis(r: &mut Seed, adaptive: bool) -> WindowAxis {
    axis_up_to(r, adaptive, 30)
}

fn axis_up_to(r: &mut Seed, adaptive: bool, most: usize) -> WindowAxis {
    let input = 1 + r.below(most);
    if adaptive {
        return WindowAxis::adaptive(input, 1 + r.below(most / 2));
    }
    let (kernel, dilation) = (1 + r.below(4.min(input)), 1 + r.below(2));
    let reach = (kernel - 1) * dilation + 1;
    let (pad, stride) = (r.below(kernel / 2 + 1), 1 + r.below(4));
    if reach > input + 2 * pad {
        return axis_up_to(r, false, most);
    }
    // Sometimes one more, whose elements are not all there.
    let exact = (input + 2 * pad - reach) / stride + 1;
    let more = usize::from(exact * stride < input + pad && r.below(3) == 0);
    WindowAxis { input, output: exact + more, kernel, stride, pad, dilation, adaptive: false }
}

fn numbers<T: Pooled>(r: &mut Seed, n: usize, with_special: bool) -> Vec<T> {
    let of = |i: usize| match i {
        0 if with_special => T::NAN,
        1..9 if with_special => T::LOWEST,
        // Eighths, whose sums are exact, and many of which are equal.
        i => T::of_count(i as i64 % 33 - 16).over(T::of_count(8)),
    };
    (0..n).map(|_| of(r.below(256))).collect()
}

fn same<T: Pooled>(a: &[T], b: &[T]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

/// Shares are rounded, and sums of them have other orders.
fn close<T: Pooled>(a: &[T], b: &[T]) -> bool {
    let (minus, most) = (T::of_count(-1), T::ONE.over(T::of_count(10_000)));
    a.iter().zip(b).all(|(a, b)| a.plus(b.times(minus)) < most && b.plus(a.times(minus)) < most)
}

fn agrees_with_rows<T: Pooled + CoreNumber>(r: &mut Seed, isa: InstructionSet) -> bool {
    let adaptive = r.below(4) == 0;
    let axes = [if r.below(2) == 0 { WindowAxis::ONE } else { axis_up_to(r, adaptive, 8) }, axis(r, adaptive), axis(r, adaptive)];
    let planes = [1, 3, 8, 16, 17, 40][r.below(6)];
    let p = Pool { op: "pool", planes, axes, pass: PoolPass::Fold };
    let Some(of) = Across::on::<T>(isa, &p, 256) else { return false };
    let (n, m) = (planes * p.plane(), planes * p.windows());
    let (x, special, g) = (numbers::<T>(r, n, false), numbers::<T>(r, n, true), numbers::<T>(r, m, false));
    let mut y = [vec![T::ONE; m], vec![T::ONE; m]];
    let mut back = [vec![T::ONE; n], vec![T::ONE; n]];
    // SAFETY: all have as many elements as the pool says; the machine has the instruction set.
    unsafe {
        for divisor in [PoolDivisor::Inside, PoolDivisor::Padded, PoolDivisor::Fixed(3)] {
            forward::average(&of, divisor, x.as_ptr(), y[0].as_mut_ptr());
            along_rows::<T>(&p, divisor, x.as_ptr(), y[1].as_mut_ptr());
            assert!(y[0] == y[1], "{p:?} {divisor:?} {isa:?}");
            backward::average_adjoint(&of, divisor, g.as_ptr(), back[0].as_mut_ptr());
            super::super::average::average_adjoint::<T>(&p, divisor, g.as_ptr(), back[1].as_mut_ptr());
            assert!(close(&back[0], &back[1]), "{p:?} {divisor:?} {isa:?}");
        }
        if !adaptive && !p.has_taps() {
            return true;
        }
        let mut at = [vec![-1i64; m], vec![-1i64; m]];
        forward::max(&of, special.as_ptr(), y[0].as_mut_ptr(), Places::positions(at[0].as_mut_ptr()));
        max_along_rows::<T>(&p, special.as_ptr(), std::ptr::null(), y[1].as_mut_ptr(), Places::positions(at[1].as_mut_ptr())).unwrap();
        assert!(same(&y[0], &y[1]) && at[0] == at[1], "{p:?} {isa:?}");
        y[0].fill(T::ONE);
        forward::max(&of, special.as_ptr(), y[0].as_mut_ptr(), Places::Nowhere);
        assert!(same(&y[0], &y[1]), "{p:?} {isa:?}");
        if p.has_taps() {
            let mut taps = [vec![255u8; m], vec![255u8; m]];
            forward::max(&of, special.as_ptr(), y[0].as_mut_ptr(), Places::taps(taps[0].as_mut_ptr()));
            max_along_rows::<T>(&p, special.as_ptr(), std::ptr::null(), y[1].as_mut_ptr(), Places::taps(taps[1].as_mut_ptr())).unwrap();
            assert!(same(&y[0], &y[1]) && taps[0] == taps[1], "{p:?} {isa:?}");
            assert!(backward::max_adjoint_of_taps(&of, g.as_ptr(), taps[0].as_ptr(), back[0].as_mut_ptr()) == -1);
            super::super::max::max_adjoint_of_taps::<T>(&p, g.as_ptr(), taps[1].as_ptr(), back[1].as_mut_ptr()).unwrap();
            assert!(back[0] == back[1], "{p:?} {isa:?}");
            taps[0][m - 1] = p.kernel() as u8;
            assert!(backward::max_adjoint_of_taps(&of, g.as_ptr(), taps[0].as_ptr(), back[0].as_mut_ptr()) == p.kernel() as i64);
        }
    }
    true
}

#[test]
fn pools_across_planes_are_those_along_rows() {
    let mut r = Seed(0x9e37_79b9_7f4a_7c15);
    for isa in [InstructionSet::Avx2, InstructionSet::Avx512].into_iter().filter(|i| *i <= best()) {
        let run =
            (0..if cfg!(miri) { 5 } else { 400 }).filter(|_| agrees_with_rows::<f32>(&mut r, isa) | agrees_with_rows::<f64>(&mut r, isa));
        assert!(run.count() > 100);
    }
}

#[test]
fn only_small_windows_go_across_planes() {
    let of = |planes, axes: [WindowAxis; 3]| Pool { op: "pool", planes, axes, pass: PoolPass::Fold };
    let (one, two) = (WindowAxis::ONE, WindowAxis { input: 8, output: 4, kernel: 2, stride: 2, pad: 0, dilation: 1, adaptive: false });
    let fits = |p: &Pool, most| Across::on::<f32>(InstructionSet::Avx2, p, most).is_some();
    assert!(fits(&of(8, [one, two, two]), 4) && fits(&of(8, [one, one, two]), 4));
    assert!(
        !fits(&of(8, [one, two, two]), 3)
            && !fits(&of(7, [one, two, two]), 4)
            && fits(&of(8, [two, two, two]), 8)
            && !fits(&of(8, [two, two, two]), 7)
    );
    let far = WindowAxis { dilation: COPY, output: 1, ..two };
    assert!(!fits(&of(8, [one, far, two]), 4) && !fits(&of(8, [one, two, far]), 4));
    assert!(!fits(&of(8, [one, two, WindowAxis { input: 1 << 20, ..two }]), 4));
    assert!(!fits(&of(8, [one, WindowAxis::adaptive(8, 4), two]), 99) && fits(&of(8, [one, one, WindowAxis::adaptive(8, 4)]), 3));
}

#[test]
fn counts_of_rows_are_those_of_windows() {
    let w = WindowAxis { input: 5, output: 3, kernel: 3, stride: 2, pad: 1, dilation: 1, adaptive: false };
    let p = Pool { op: "pool", planes: 1, axes: [WindowAxis::ONE, w, w], pass: PoolPass::Fold };
    let counts: Vec<f32> = Counts::of(&p, PoolDivisor::Inside).of_rows(0, 0..2);
    assert_eq!(counts, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0]);
}
