//! Products of integers, which wrap around.

use super::algorithms::{PLAIN, Product};
use super::{MatrixProduct, VECTOR_TASK};
use crate::backend::cpu::algorithms::runs;
use crate::host::threads::{SharedPointer, parallel_for};

macro_rules! integer_product {
    ($($t:ty),*) => { $(
        impl MatrixProduct for $t {
            type Plan = ();

            fn plan(_p: &Product<$t>) {
                runs(PLAIN);
            }

            unsafe fn run(_plan: (), p: &Product<$t>, out: *mut $t, parallel: bool) {
                let ((m, n, k), [a, b]) = (p.sizes, p.factors);
                let out = SharedPointer::new(out);
                let rows = if parallel { (VECTOR_TASK / (n * k).max(1)).max(1) } else { m.max(1) };
                // SAFETY: each task writes its own rows; the rest is the caller's promise.
                parallel_for(m.div_ceil(rows), |t| unsafe {
                    for i in t * rows..m.min((t + 1) * rows) {
                        let to = std::slice::from_raw_parts_mut(out.at(i * n), n);
                        to.fill(0);
                        for p in 0..k {
                            let x = *a.at(i, p);
                            if b.cs == 1 {
                                let row = b.at(p, 0);
                                to.iter_mut().enumerate().for_each(|(j, o)| *o = o.wrapping_add(x.wrapping_mul(*row.add(j))));
                            } else {
                                for (j, o) in to.iter_mut().enumerate() {
                                    *o = o.wrapping_add(x.wrapping_mul(*b.at(p, j)));
                                }
                            }
                        }
                    }
                });
            }
        }
    )* };
}
integer_product!(u8, i16, i32, i64);
