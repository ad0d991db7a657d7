//! Softmax beside its definition, and rows of both types beside each other.

use super::*;

#[test]
fn rows_and_columns_agree_with_the_definition() {
    for (outer, n, inner) in [(3, 5, 1), (2, 100, 1), (2, 7, 3), (3, 40, 33), (2, 9, 300), (1, 1, 1), (2, 0, 3), (700, 90, 1)] {
        let len = outer * n * inner;
        let x: Vec<f64> = (0..len).map(|i| ((i * 37) % 101) as f64 / 10.0 - 5.0).collect();
        for log in [false, true] {
            let mut y = vec![f64::NAN; len];
            let s = SoftmaxShape { outer, n, inner };
            // SAFETY: all buffers have outer * n * inner elements.
            unsafe { f64::softmax(SoftmaxPass { log, backward: false }, s, x.as_ptr(), std::ptr::null(), None, y.as_mut_ptr()) };
            for o in 0..outer {
                for c in 0..inner {
                    let at = |i: usize| (o * n + i) * inner + c;
                    let total: f64 = (0..n).map(|i| x[at(i)].exp()).sum();
                    for i in 0..n {
                        let want = if log { x[at(i)] - total.ln() } else { x[at(i)].exp() / total };
                        assert!((y[at(i)] - want).abs() < 1e-12, "{outer} {n} {inner} {log}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_f32_agree_with_those_of_f64_whatever_their_length() {
    let sizes = [1, 2, 15, 16, 17, 31, 63, 64, 65, 1000, 5000];
    for (outer, n) in sizes.into_iter().flat_map(|n| [(3, n), (90, n)]).filter(|(outer, n)| outer * n <= 15_000) {
        let s = SoftmaxShape { outer, n, inner: 1 };
        let x: Vec<f32> = (0..outer * n).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect();
        let g: Vec<f32> = (0..outer * n).map(|i| ((i * 104_729) % 1009) as f32 / 1024.0 - 0.5).collect();
        let (wide_x, wide_g): (Vec<f64>, Vec<f64>) = (x.iter().map(|v| f64::from(*v)).collect(), g.iter().map(|v| f64::from(*v)).collect());
        for log in [false, true] {
            let (mut y, mut d, mut wide_y, mut wide_d) =
                (vec![f32::NAN; outer * n], vec![f32::NAN; outer * n], vec![0.0; outer * n], vec![0.0; outer * n]);
            let (there, back) = (SoftmaxPass { log, backward: false }, SoftmaxPass { log, backward: true });
            // SAFETY: all buffers have outer * n elements.
            unsafe {
                f32::softmax(there, s, x.as_ptr(), std::ptr::null(), None, y.as_mut_ptr());
                f32::softmax(back, s, y.as_ptr(), g.as_ptr(), None, d.as_mut_ptr());
                f64::softmax(there, s, wide_x.as_ptr(), std::ptr::null(), None, wide_y.as_mut_ptr());
                f64::softmax(back, s, wide_y.as_ptr(), wide_g.as_ptr(), None, wide_d.as_mut_ptr());
            }
            for i in 0..outer * n {
                let scale = if log { wide_y[i].abs().max(1.0) } else { wide_y[i] };
                assert!((f64::from(y[i]) - wide_y[i]).abs() <= 1e-6 * scale, "{n} {log}: {} {}", y[i], wide_y[i]);
                assert!((f64::from(d[i]) - wide_d[i]).abs() <= 2e-6, "{n} {log}: {} {}", d[i], wide_d[i]);
            }
        }
    }
}
