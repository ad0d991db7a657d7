//! Real lines of an even length are transformed as half as many complex numbers, `x[2 k] + i x[2 k + 1]`. These are the steps from the
//! transform of such pairs to the first half of the spectrum, and back.

use super::plan::FftNumber;
use num_complex::Complex;

/// From the transform `z` of the pairs (all elements but the last one) to the frequencies `0..=z.len() - 1`, multiplied by `scale`, and those
/// between the first and the last by `inner`, too.
pub(super) fn spectrum<T: FftNumber>(z: &mut [Complex<T>], roots: &[Complex<T>], scale: T, inner: T) {
    let (m, inner) = (z.len() - 1, scale * inner);
    let half = inner * T::of(0.5);
    let first = z[0];
    z[0] = Complex { re: (first.re + first.im) * scale, im: T::of(0.0) };
    z[m] = Complex { re: (first.re - first.im) * scale, im: T::of(0.0) };
    let (low, high) = z[1..m].split_at_mut((m - 1) / 2);
    // Without the frequency in the middle, if there is one: its partner is itself.
    for ((a, b), w) in low.iter_mut().zip(high.iter_mut().rev()).zip(&roots[1..]) {
        let even = Complex { re: (a.re + b.re) * half, im: (a.im - b.im) * half };
        // Of the odd elements, times -i.
        let odd = Complex { re: (a.im + b.im) * half, im: (b.re - a.re) * half } * w;
        *a = even + odd;
        *b = (even - odd).conj();
    }
    if m >= 2 && m % 2 == 0 {
        z[m / 2] = Complex { re: z[m / 2].re * inner, im: -z[m / 2].im * inner };
    }
}

/// From the first half of a spectrum to the numbers whose transform is the pairs, multiplied as in `spectrum`. The imaginary parts of the first
/// frequency and of the last are not read: real lines have none. The last element is of no use afterwards.
pub(super) fn pairs<T: FftNumber>(z: &mut [Complex<T>], roots: &[Complex<T>], scale: T, inner: T) {
    let (m, inner) = (z.len() - 1, scale * inner);
    let (first, last) = (z[0].re * scale, z[m].re * scale);
    z[0] = Complex { re: first + last, im: first - last };
    let (low, high) = z[1..m].split_at_mut((m - 1) / 2);
    for ((a, b), w) in low.iter_mut().zip(high.iter_mut().rev()).zip(&roots[1..]) {
        let even = Complex { re: (a.re + b.re) * inner, im: (a.im - b.im) * inner };
        let odd = Complex { re: (a.re - b.re) * inner, im: (a.im + b.im) * inner } * w;
        // Times i.
        let odd = Complex { re: -odd.im, im: odd.re };
        *a = even + odd;
        *b = (even - odd).conj();
    }
    if m >= 2 && m % 2 == 0 {
        let (two, middle) = (inner + inner, z[m / 2]);
        z[m / 2] = Complex { re: middle.re * two, im: -middle.im * two };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::fft::plan::{algorithm, root};

    #[test]
    fn pairs_and_spectra_are_each_others_inverse_and_agree_with_the_definition() {
        for m in 1..20 {
            let n = 2 * m;
            let x: Vec<f64> = (0..n).map(|k| (k as f64 * 1.7).sin() + 0.1 * k as f64).collect();
            let mut z: Vec<Complex<f64>> = x.chunks(2).map(|p| Complex::new(p[0], p[1])).collect();
            algorithm(m, false).process(&mut z);
            z.push(Complex::new(0.0, 0.0));
            let roots = |inverse| (0..=n / 4).map(|k| root(k, n, inverse)).collect::<Vec<Complex<f64>>>();
            spectrum(&mut z, &roots(false), 3.0, 0.5);
            for (k, z) in z.iter().enumerate() {
                let wanted: Complex<f64> = x.iter().enumerate().map(|(j, x)| root::<f64>(j * k % n, n, false) * x * 3.0).sum();
                let wanted = if k == 0 || k == m { wanted } else { wanted * 0.5 };
                assert!((z - wanted).norm() < 1e-11, "{n} {k} {z} {wanted}");
            }
            (z[0].im, z[m].im) = (5.0, 7.0);
            pairs(&mut z, &roots(true), 1.0 / (3.0 * n as f64), 2.0);
            z.pop();
            algorithm(m, true).process(&mut z);
            for (k, z) in z.iter().enumerate() {
                assert!((z - Complex::new(x[2 * k], x[2 * k + 1])).norm() < 1e-12, "{n} {k}");
            }
        }
    }
}
