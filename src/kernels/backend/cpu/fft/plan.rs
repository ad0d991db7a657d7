//! What is computed once for a length: the algorithm and its tables. Plans are kept while they are used, up to a bound.

use crate::error::{Error, Result};
use crate::host::lock_order::Table;
use crate::host::memory::alloc;
use crate::simd::{InstructionSet, instruction_set};
use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner, FftPlannerScalar};
use std::sync::Arc;

/// At most so many plans are kept.
const PLANS: usize = 64;
/// The lengths of all kept plans together are at most this, or else there is one: tables have about as many numbers.
const LENGTHS: usize = 1 << 22;
/// Planning a length needs memory for at most so many numbers of each element: that of a prime transforms some longer line.
const NUMBERS: usize = 12;

/// float32 and float64.
pub(super) trait FftNumber: FftNum {
    fn of(v: f64) -> Self;
    fn plans() -> &'static Table<Vec<Kept<Self>>>;
}

macro_rules! numbers {
    ($($t:ty),+) => { $(
        impl FftNumber for $t {
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one macro for both widths")]
            fn of(v: f64) -> Self {
                v as $t
            }
            fn plans() -> &'static Table<Vec<Kept<Self>>> {
                static PLANS: Table<Vec<Kept<$t>>> = Table::new(Vec::new());
                &PLANS
            }
        }
    )+ };
}
numbers!(f32, f64);

/// `exp(-2 pi i k / n)`, or its conjugate.
pub(super) fn root<T: FftNumber>(k: usize, n: usize, inverse: bool) -> Complex<T> {
    let angle = -2.0 * std::f64::consts::PI * (k as f64 / n as f64);
    let (sin, cos) = angle.sin_cos();
    Complex { re: T::of(cos), im: T::of(if inverse { -sin } else { sin }) }
}

/// What is needed for one line.
pub(super) enum Plan<T: FftNumber> {
    Complex(Arc<dyn Fft<T>>),
    /// Of real numbers, taken in pairs if the length is even: the transform of the pairs, and roots of unity up to a quarter of the circle.
    Real(Arc<dyn Fft<T>>, Box<[Complex<T>]>),
}

/// Whether lines are real, their length, and whether the exponents' sign is positive.
type PlanKey = (bool, usize, bool);

/// A plan in the table, the latest used last.
pub(super) struct Kept<T: FftNumber> {
    key: PlanKey,
    plan: Arc<Plan<T>>,
}

/// The algorithm for lines of complex numbers.
pub(super) fn algorithm<T: FftNumber>(n: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    if cfg!(target_arch = "x86_64") && instruction_set() == InstructionSet::Base {
        return FftPlannerScalar::new().plan_fft(n, direction);
    }
    FftPlanner::new().plan_fft(n, direction)
}

/// The plan for a line, from the table or new.
///
/// # Errors
/// There is no memory for a new one.
pub(super) fn plan<T: FftNumber>(is_real: bool, n: usize, inverse: bool) -> Result<Arc<Plan<T>>> {
    let key = (is_real, n, inverse);
    {
        let mut kept = T::plans().lock();
        if let Some(at) = kept.iter().position(|k| k.key == key) {
            let found = kept.remove(at);
            let plan = found.plan.clone();
            kept.push(found);
            return Ok(plan);
        }
    }
    // Planning allocates without a way to refuse.
    if !alloc::fits(n.saturating_mul(NUMBERS * size_of::<Complex<T>>())) {
        return Err(Error::memory(format!("fft: no memory for the tables of a transform of length {n}")));
    }
    let made = Arc::new(if !is_real {
        Plan::Complex(algorithm(n, inverse))
    } else if n.is_multiple_of(2) {
        Plan::Real(algorithm(n / 2, inverse), (0..=n / 4).map(|k| root(k, n, inverse)).collect())
    } else {
        Plan::Real(algorithm(n, inverse), Box::new([]))
    });
    // What goes is dropped after the lock.
    let mut gone = Vec::new();
    {
        let mut kept = T::plans().lock();
        kept.push(Kept { key, plan: made.clone() });
        while kept.len() > 1 && (kept.len() > PLANS || kept.iter().map(|k| k.key.1).sum::<usize>() > LENGTHS) {
            gone.push(kept.remove(0));
        }
    }
    drop(gone);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_kept_up_to_a_bound() {
        let first = plan::<f64>(false, 7, false).unwrap();
        assert!(Arc::ptr_eq(&first, &plan(false, 7, false).unwrap()));
        assert!(!Arc::ptr_eq(&first, &plan(false, 7, true).unwrap()));
        for n in 8..8 + PLANS {
            plan::<f64>(false, n, false).unwrap();
        }
        assert!(f64::plans().lock().len() <= PLANS);
        assert!(!Arc::ptr_eq(&first, &plan(false, 7, false).unwrap()));
        plan::<f64>(false, LENGTHS, false).unwrap();
        assert!(f64::plans().lock().iter().map(|k| k.key.1).sum::<usize>() <= LENGTHS);
    }
}
