//! Triangular forms of Hessenberg matrices by QR steps with implicit shifts (Francis 1961; Golub and Van Loan, "Matrix computations", 7.5): two
//! shifts at once for real matrices, whose forms have blocks of two rows for conjugate pairs, and one for complex ones.

use super::number::LinearNumber;
use super::qr::reflection;
use crate::host::interrupt;
use num_complex::Complex;

/// Steps after which a shift is taken that has nothing to do with the matrix's last rows, in case these are in a cycle.
const CYCLE: usize = 10;
/// Steps for one eigenvalue before it counts as not found.
const STEPS: usize = 300;
/// Below this, products of two numbers near 1 in the matrix's scale are nothing.
const SMALLEST: f64 = 1e-292;

/// A Hessenberg matrix `h` (n, n) that becomes triangular between the rows `low` and `high`, and the transposed product `z` of the transformations
/// if it is wanted.
pub(super) struct Hessenberg<'a, T> {
    pub n: usize,
    pub low: usize,
    pub high: usize,
    pub h: &'a mut [T],
    pub z: Option<&'a mut [T]>,
}

/// A number of which Hessenberg matrices have triangular forms.
pub(in crate::backend::cpu) trait SchurNumber: LinearNumber<Real = f64> {
    /// Makes the matrix (quasi-)triangular and fills the eigenvalues in. False if one was not found.
    fn triangular(at: &mut Hessenberg<'_, Self>, values: &mut [Complex<f64>]) -> bool;
    fn complex(self) -> Complex<f64>;
}

impl<T: LinearNumber<Real = f64>> Hessenberg<'_, T> {
    #[inline(always)]
    fn get(&self, i: usize, j: usize) -> T {
        self.h[i * self.n + j]
    }

    #[inline(always)]
    fn at(&mut self, i: usize, j: usize) -> &mut T {
        &mut self.h[i * self.n + j]
    }

    /// The first row of the block that ends at row `last`: above it the element below the diagonal is negligible, and becomes 0 (Ahues and Tisseur
    /// 1997, "A new deflation criterion for the QR algorithm").
    fn split(&mut self, last: usize) -> usize {
        for k in (self.low + 1..=last).rev() {
            let below = self.get(k, k - 1).size();
            let (here, before) = (self.get(k, k), self.get(k - 1, k - 1));
            let mut beside = here.size() + before.size();
            if beside == 0.0 {
                let more = |i: usize, j: usize| if i < self.n && j < self.n { self.get(i, j).size() } else { 0.0 };
                beside = more(k + 1, k) + if k > 1 { more(k - 1, k - 2) } else { 0.0 };
            }
            let is_negligible = below <= SMALLEST
                || below <= f64::EPSILON * beside && {
                    let above = self.get(k - 1, k).size();
                    let (most, least) = (below.max(above), below.min(above));
                    let difference = before.minus(here).size();
                    let (a, b) = (here.size().max(difference), here.size().min(difference));
                    let sum = a + most;
                    least * (most / sum) <= SMALLEST.max(f64::EPSILON * (b * (a / sum)))
                };
            if is_negligible {
                *self.at(k, k - 1) = T::ZERO;
                return k;
            }
        }
        self.low
    }

    /// Applies the adjoint of a reflection with the vector (1, v...) to the rows from `k` on, and the reflection to the columns.
    ///
    /// `last` is the last row of the block. Without `z` rows and columns outside of it are left alone.
    fn transform<const N: usize>(&mut self, k: usize, v: [T; N], tau: T, (first, last): (usize, usize)) {
        let n = self.n;
        let (start, end) = if self.z.is_some() { (0, n) } else { (first, last + 1) };
        let by = tau.conj();
        for j in k..end {
            let sum = (1..N).fold(self.get(k, j), |s, i| s.plus(v[i].conj().times(self.get(k + i, j)))).times(by);
            for (i, v) in v.iter().enumerate() {
                let to = self.at(k + i, j);
                *to = to.minus(v.times(sum));
            }
        }
        for row in start..=(k + N).min(last) {
            let part = &mut self.h[row * n + k..row * n + k + N];
            let sum = part.iter().zip(&v).fold(T::ZERO, |s, (a, v)| s.plus(a.times(*v))).times(tau);
            part.iter_mut().zip(&v).for_each(|(a, v)| *a = a.minus(sum.times(v.conj())));
        }
        if let Some(z) = &mut self.z {
            for j in 0..n {
                let sum = (0..N).fold(T::ZERO, |s, i| s.plus(z[(k + i) * n + j].times(v[i]))).times(tau);
                for (i, v) in v.iter().enumerate() {
                    let to = &mut z[(k + i) * n + j];
                    *to = to.minus(sum.times(v.conj()));
                }
            }
        }
    }
}

/// Of the vector its reflection: the vector that begins with 1, the factor, and what the first element becomes.
fn reflected<T: LinearNumber, const N: usize>(mut x: [T; N]) -> ([T; N], T, T) {
    let tau = reflection(&mut x);
    let first = x[0];
    x[0] = T::ONE;
    (x, tau, first)
}

impl SchurNumber for f64 {
    fn triangular(at: &mut Hessenberg<'_, f64>, values: &mut [Complex<f64>]) -> bool {
        let (mut end, mut steps) = (at.high + 1, 0);
        while end > at.low {
            let last = end - 1;
            let first = at.split(last);
            if first + 1 >= last {
                if first == last {
                    values[last] = Complex::new(at.get(last, last), 0.0);
                } else {
                    (values[first], values[last]) = pair(at, first);
                }
                (end, steps) = (first, 0);
                continue;
            }
            if steps == STEPS {
                return false;
            }
            steps += 1;
            interrupt::check();
            double_step(at, first, last, steps);
        }
        true
    }

    fn complex(self) -> Complex<f64> {
        Complex::new(self, 0.0)
    }
}

/// The eigenvalues of the block of the rows `i` and `i + 1`. If they are real, the block becomes triangular.
fn pair(at: &mut Hessenberg<'_, f64>, i: usize) -> (Complex<f64>, Complex<f64>) {
    let (a, b, c, d) = (at.get(i, i), at.get(i, i + 1), at.get(i + 1, i), at.get(i + 1, i + 1));
    let half = (a - d) / 2.0;
    let scale = half.abs().max(b.abs()).max(c.abs());
    let square = (half / scale) * (half / scale) + (b / scale) * (c / scale);
    if square < 0.0 {
        // The mean lies between both, where a sum might overflow.
        let (mean, size) = (d + half, scale * (-square).sqrt());
        return (Complex::new(mean, size), Complex::new(mean, -size));
    }
    let root = scale * square.sqrt();
    let z = if half < 0.0 { half - root } else { half + root };
    let (x, y) = if z == 0.0 { (d, d) } else { (d + z, d - b / z * c) };
    // (z, c) is the first one's vector.
    let size = z.hypot(c);
    let (cos, sin) = if size == 0.0 { (1.0, 0.0) } else { (z / size, c / size) };
    let n = at.n;
    for j in i..n {
        let (p, q) = (at.get(i, j), at.get(i + 1, j));
        (*at.at(i, j), *at.at(i + 1, j)) = (cos * p + sin * q, cos * q - sin * p);
    }
    for k in 0..=i + 1 {
        let (p, q) = (at.get(k, i), at.get(k, i + 1));
        (*at.at(k, i), *at.at(k, i + 1)) = (cos * p + sin * q, cos * q - sin * p);
    }
    if let Some(v) = &mut at.z {
        for j in 0..n {
            let (p, q) = (v[i * n + j], v[(i + 1) * n + j]);
            (v[i * n + j], v[(i + 1) * n + j]) = (cos * p + sin * q, cos * q - sin * p);
        }
    }
    (*at.at(i, i), *at.at(i + 1, i), *at.at(i + 1, i + 1)) = (x, 0.0, y);
    (Complex::new(x, 0.0), Complex::new(y, 0.0))
}

/// The sum and the product of two shifts, as numbers that are subtracted from the diagonal: both real parts and an imaginary part.
fn shifts(at: &Hessenberg<'_, f64>, first: usize, last: usize, steps: usize) -> (f64, f64, f64) {
    let (mut a, mut b, mut c, mut d) = (at.get(last - 1, last - 1), at.get(last - 1, last), at.get(last, last - 1), at.get(last, last));
    if steps.is_multiple_of(2 * CYCLE) {
        let size = at.get(last, last - 1).abs() + at.get(last - 1, last - 2).abs();
        (a, b, c, d) = (0.75 * size + at.get(last, last), -0.4375 * size, size, 0.75 * size + at.get(last, last));
    } else if steps.is_multiple_of(CYCLE) {
        let size = at.get(first + 1, first).abs() + at.get(first + 2, first + 1).abs();
        (a, b, c, d) = (0.75 * size + at.get(first, first), -0.4375 * size, size, 0.75 * size + at.get(first, first));
    }
    let scale = a.abs() + b.abs() + c.abs() + d.abs();
    if scale == 0.0 {
        return (0.0, 0.0, 0.0);
    }
    (a, b, c, d) = (a / scale, b / scale, c / scale, d / scale);
    let mean = (a + d) / 2.0;
    let det = (a - mean) * (d - mean) - b * c;
    let root = det.abs().sqrt();
    if det >= 0.0 {
        return (mean * scale, mean * scale, root * scale);
    }
    // Of two real shifts the one that is nearer to the last element, twice.
    let (x, y) = (mean + root, mean - root);
    let nearer = if (x - d).abs() <= (y - d).abs() { x } else { y };
    (nearer * scale, nearer * scale, 0.0)
}

fn double_step(at: &mut Hessenberg<'_, f64>, first: usize, last: usize, steps: usize) {
    let (x, y, imaginary) = shifts(at, first, last, steps);
    // The step may begin below `first` if two elements beside the diagonal are small.
    let (mut start, mut v) = (first, [0.0; 3]);
    for m in (first..=last - 2).rev() {
        let (d, below) = (at.get(m, m), at.get(m + 1, m));
        let size = (d - y).abs() + imaginary.abs() + below.abs();
        let part = below / size;
        v = [
            part * at.get(m, m + 1) + (d - x) * ((d - y) / size) - imaginary * (-imaginary / size),
            part * (d + at.get(m + 1, m + 1) - x - y),
            part * at.get(m + 2, m + 1),
        ];
        let sum: f64 = v.iter().map(|v| v.abs()).sum();
        v = v.map(|v| v / sum);
        start = m;
        if m == first {
            break;
        }
        let around = at.get(m - 1, m - 1).abs() + d.abs() + at.get(m + 1, m + 1).abs();
        if at.get(m, m - 1).abs() * (v[1].abs() + v[2].abs()) <= f64::EPSILON * v[0].abs() * around {
            break;
        }
    }
    for k in start..last {
        if k + 2 <= last {
            let x = if k == start { v } else { [at.get(k, k - 1), at.get(k + 1, k - 1), at.get(k + 2, k - 1)] };
            let (v, tau, made) = reflected(x);
            chased(at, k, (start, first), &[made, 0.0, 0.0], tau);
            at.transform(k, v, tau, (first, last));
        } else {
            let (v, tau, made) = reflected([at.get(k, k - 1), at.get(k + 1, k - 1)]);
            chased(at, k, (start, first), &[made, 0.0], tau);
            at.transform(k, v, tau, (first, last));
        }
    }
}

/// Writes what a reflection makes of the column before `k`.
fn chased(at: &mut Hessenberg<'_, f64>, k: usize, (start, first): (usize, usize), made: &[f64], tau: f64) {
    if k > start {
        made.iter().enumerate().for_each(|(i, v)| *at.at(k + i, k - 1) = *v);
    } else if k > first {
        // The elements below are negligible.
        *at.at(k, k - 1) *= 1.0 - tau;
    }
}

impl SchurNumber for Complex<f64> {
    fn triangular(at: &mut Hessenberg<'_, Self>, values: &mut [Complex<f64>]) -> bool {
        let (mut end, mut steps) = (at.high + 1, 0);
        while end > at.low {
            let last = end - 1;
            let first = at.split(last);
            if first == last {
                values[last] = at.get(last, last);
                (end, steps) = (last, 0);
                continue;
            }
            if steps == STEPS {
                return false;
            }
            steps += 1;
            interrupt::check();
            let shift = if steps.is_multiple_of(2 * CYCLE) {
                at.get(last, last) + 0.75 * at.get(last, last - 1).size()
            } else if steps.is_multiple_of(CYCLE) {
                at.get(first, first) + 0.75 * at.get(first + 1, first).size()
            } else {
                wilkinson(at, last)
            };
            for k in first..last {
                let x = if k == first { [at.get(k, k) - shift, at.get(k + 1, k)] } else { [at.get(k, k - 1), at.get(k + 1, k - 1)] };
                let (v, tau, made) = reflected(x);
                if k > first {
                    (*at.at(k, k - 1), *at.at(k + 1, k - 1)) = (made, Complex::ZERO);
                }
                at.transform(k, v, tau, (first, last));
            }
        }
        true
    }

    fn complex(self) -> Complex<f64> {
        self
    }
}

/// The eigenvalue of the last two rows and columns that is nearer to the last element.
fn wilkinson(at: &Hessenberg<'_, Complex<f64>>, last: usize) -> Complex<f64> {
    let (a, b, c, d) = (at.get(last - 1, last - 1), at.get(last - 1, last), at.get(last, last - 1), at.get(last, last));
    let half = (a - d).scaled(0.5);
    let scale = half.size().max(b.size()).max(c.size());
    if scale == 0.0 {
        return d;
    }
    let (p, b, c) = (half.unscale(scale), b.unscale(scale), c.unscale(scale));
    let root = (p * p + b * c).sqrt();
    let (x, y) = (p + root, p - root);
    let z = if x.size() >= y.size() { x } else { y };
    if z == Complex::ZERO { d } else { d - (b * c).over(z).scaled(scale) }
}
