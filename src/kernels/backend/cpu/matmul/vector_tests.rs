use super::on_vectors::on_vectors;
use super::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::simd::{InstructionSet, best};

on_vectors! {
    fn movements<T>(numbers: &[T]) = movements_on
}

/// # Safety
/// The machine has the instruction set.
unsafe fn movements_on<V: PanelVector>(numbers: &[V::Number]) {
    let n = V::LANES;
    let mut out = vec![V::Number::ZERO; n * n + 2 * n];
    // SAFETY: all that is named has room.
    unsafe {
        let (a, b) = (V::load(numbers.as_ptr()), V::load(numbers[n..].as_ptr()));
        for count in 0..=n {
            out.fill(V::Number::ONE);
            a.store_first(out.as_mut_ptr(), count);
            assert!(out[..count] == numbers[..count] && out[count..].iter().all(|v| *v == V::Number::ONE), "{count}");
            V::load_first(numbers.as_ptr(), count).store(out.as_mut_ptr());
            assert!(out[..count] == numbers[..count] && out[count..n].iter().all(|v| *v == V::Number::ZERO), "{count}");
        }
        let (low, high) = a.interleaved(b);
        low.store(out.as_mut_ptr());
        high.store(out[n..].as_mut_ptr());
        assert!((0..n).all(|i| out[2 * i] == numbers[i] && out[2 * i + 1] == numbers[n + i]));
        let (even, odd) = low.parted(high);
        even.store(out.as_mut_ptr());
        odd.store(out[n..].as_mut_ptr());
        assert!(out[..2 * n] == numbers[..2 * n]);
        V::transpose_square(numbers.as_ptr(), out.as_mut_ptr(), n);
        assert!((0..n * n).all(|i| out[i % n * n + i / n] == numbers[i]));
        for count in 4..=16 {
            let mut columns = vec![V::Number::ZERO; count * n];
            V::put_columns(|i| numbers.as_ptr().add(7 * i), count, columns.as_mut_ptr());
            assert!((0..count * n).all(|at| columns[at] == numbers[7 * (at % n) + at / n]), "{count}");
        }
        a.minus(b).store(out.as_mut_ptr());
        assert!((0..n).all(|i| out[i].plus(numbers[n + i]) == numbers[i]));
    }
}

#[test]
fn lanes_go_where_they_are_said_to() {
    for isa in InstructionSet::ALL.into_iter().filter(|i| *i <= best()) {
        let small: Vec<f32> = (0..256).map(|i| i as f32 + 2.0).collect();
        let large: Vec<f64> = (0..256).map(|i| f64::from(i) + 2.0).collect();
        // SAFETY: the machine has been asked; there are as many numbers as a square of the widest vector.
        unsafe {
            movements::<f32>(isa, &small);
            movements::<f64>(isa, &large);
        }
    }
}
