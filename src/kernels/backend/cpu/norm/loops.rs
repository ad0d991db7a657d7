//! The inner loops of normalisation, over contiguous elements, compiled for each instruction set. Sums are made in lanes of the elements'
//! type, segment by segment, and the segments are added up in double precision.

use std::ops::{Add, Mul, Sub};

/// Elements that are summed before the sum goes to double precision.
const SEGMENT: usize = 4096;
const LANES: usize = 32;
/// Rows whose column sums stay in the elements' type.
const ROWS: usize = 64;
/// Columns that are summed together.
pub(super) const COLUMNS: usize = 256;

/// float32 and float64.
pub trait NormElement: Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    const ZERO: Self;
    const ONE: Self;
    fn wide(self) -> f64;
    fn narrow(v: f64) -> Self;
}

macro_rules! element {
    ($($t:ty),+) => { $(
        impl NormElement for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn narrow(v: f64) -> Self {
                v as $t
            }
        }
    )+ };
}

#[allow(trivial_numeric_casts, reason = "one macro for both widths")]
mod elements {
    use super::NormElement;
    element!(f32, f64);
}

/// Functions that run in the instance of this machine's instruction set.
macro_rules! vectorised {
    ($($(#[$doc:meta])* fn $name:ident($($a:ident: $t:ty),+ $(,)?) $(-> $r:ty)? $body:block)+) => { $(
        $(#[$doc])*
        #[inline]
        pub(super) fn $name<T: NormElement>($($a: $t),+) $(-> $r)? {
            #[inline(always)]
            fn body<T: NormElement>($($a: $t),+) $(-> $r)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx512<T: NormElement>($($a: $t),+) $(-> $r)? { body($($a),+) }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx2<T: NormElement>($($a: $t),+) $(-> $r)? { body($($a),+) }
                use $crate::backend::cpu::num::{InstructionSet, instruction_set};
                match instruction_set() {
                    // SAFETY: the features were found on this machine.
                    InstructionSet::Avx512 => unsafe { avx512($($a),+) },
                    // SAFETY: as above.
                    InstructionSet::Avx2 => unsafe { avx2($($a),+) },
                    InstructionSet::Base => body($($a),+),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            body($($a),+)
        }
    )+ };
}

/// The sums of both values of `f` over `n` elements.
#[inline(always)]
fn both<T: NormElement>(n: usize, f: impl Fn(usize) -> (T, T)) -> (f64, f64) {
    let (mut first, mut second) = (0.0, 0.0);
    let mut at = 0;
    while at < n {
        let m = SEGMENT.min(n - at);
        let (a, b) = both_lanes(m, |i| f(at + i));
        first += a;
        second += b;
        at += m;
    }
    (first, second)
}

#[inline(always)]
fn both_lanes<T: NormElement>(n: usize, f: impl Fn(usize) -> (T, T)) -> (f64, f64) {
    let (mut a, mut b) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    let whole = n / LANES * LANES;
    let mut i = 0;
    while i < whole {
        for j in 0..LANES {
            let (x, y) = f(i + j);
            a[j] = a[j] + x;
            b[j] = b[j] + y;
        }
        i += LANES;
    }
    // In arrays of their own, so that the lanes above stay in registers.
    let (mut c, mut d) = ([T::ZERO; 8], [T::ZERO; 8]);
    while i + 8 <= n {
        for j in 0..8 {
            let (x, y) = f(i + j);
            c[j] = c[j] + x;
            d[j] = d[j] + y;
        }
        i += 8;
    }
    for j in 0..n - i {
        let (x, y) = f(i + j);
        c[j] = c[j] + x;
        d[j] = d[j] + y;
    }
    (total(a).wide() + total(c).wide(), total(b).wide() + total(d).wide())
}

/// The sum, as a tree.
#[inline(always)]
fn total<T: NormElement, const N: usize>(mut lanes: [T; N]) -> T {
    let mut width = N / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = lanes[j] + lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The smallest common length, so that no index is checked.
macro_rules! same_length {
    ($n:ident = $first:ident $(, $other:ident)*) => {
        let $n = $first.len();
        $( let $other = &$other[..$n]; )*
    };
}

vectorised! {
    /// The sums of `x - shift` and of its squares.
    fn sums(x: &[T], shift: T) -> (f64, f64) {
        both(x.len(), |i| {
            let d = x[i] - shift;
            (d, d * d)
        })
    }

    /// The sums of `g` and of `g * (x - mean)`.
    fn gradient_sums(g: &[T], x: &[T], mean: T) -> (f64, f64) {
        same_length!(n = g, x);
        both(n, |i| (g[i], g[i] * (x[i] - mean)))
    }

    /// The sums of `g * w` and of `g * w * (x - mean)`.
    fn weighted_sums(g: &[T], x: &[T], w: &[T], mean: T) -> (f64, f64) {
        same_length!(n = g, x, w);
        both(n, |i| {
            let v = g[i] * w[i];
            (v, v * (x[i] - mean))
        })
    }

    /// `(x - mean) * scale + shift`.
    fn scaled(x: &[T], y: &mut [T], mean: T, scale: T, shift: T) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = (*x - mean) * scale + shift;
        }
    }

    /// `((x - mean) * scale + shift) * w + b`.
    fn affine(x: &[T], y: &mut [T], line: (T, T, T), w: &[T], b: &[T]) {
        same_length!(n = x, w, b);
        let (mean, scale, shift) = line;
        let y = &mut y[..n];
        for i in 0..n {
            y[i] = ((x[i] - mean) * scale + shift) * w[i] + b[i];
        }
    }

    /// `g * a + (x - mean) * b + c`.
    fn gradient(g: &[T], x: &[T], dx: &mut [T], mean: T, line: (T, T, T)) {
        same_length!(n = g, x);
        let (dx, (a, b, c)) = (&mut dx[..n], line);
        for i in 0..n {
            dx[i] = g[i] * a + (x[i] - mean) * b + c;
        }
    }

    /// `g * w * a + (x - mean) * b + c`.
    fn weighted_gradient(g: &[T], x: &[T], w: &[T], dx: &mut [T], mean: T, line: (T, T, T)) {
        same_length!(n = g, x, w);
        let (dx, (a, b, c)) = (&mut dx[..n], line);
        for i in 0..n {
            dx[i] = g[i] * w[i] * a + (x[i] - mean) * b + c;
        }
    }

    /// `g * w * a`.
    fn product(g: &[T], w: &[T], dx: &mut [T], a: T) {
        same_length!(n = g, w);
        let dx = &mut dx[..n];
        for i in 0..n {
            dx[i] = g[i] * w[i] * a;
        }
    }

    /// Adds `g * (x - mean) * rstd` to `dw`, and `g` to `db`.
    fn add_gradients(g: &[T], x: &[T], dw: &mut [T], db: &mut [T], mean: T, rstd: T) {
        same_length!(n = g, x);
        let (dw, db) = (&mut dw[..n], &mut db[..n]);
        for i in 0..n {
            dw[i] = dw[i] + g[i] * ((x[i] - mean) * rstd);
            db[i] = db[i] + g[i];
        }
    }

    /// Adds to `s` and `q`, for each column of `x`, whose rows are `step` apart, the sums of `x - shift` and of its squares.
    fn column_sums(x: &[T], step: usize, shift: &[T], s: &mut [f64], q: &mut [f64]) {
        columns(x.len(), step, shift, s, q, |row, j, shift| {
            let d = x[row + j] - shift;
            (d, d * d)
        });
    }

    /// As `column_sums`, the sums of `g` and of `g * (x - mean)`.
    fn column_gradient_sums(g: &[T], x: &[T], step: usize, mean: &[T], s: &mut [f64], q: &mut [f64]) {
        let x = &x[..g.len()];
        columns(g.len(), step, mean, s, q, |row, j, mean| (g[row + j], g[row + j] * (x[row + j] - mean)));
    }

    /// A row of columns: `(x - mean) * scale + shift`.
    fn column_scaled(x: &[T], y: &mut [T], mean: &[T], scale: &[T], shift: &[T]) {
        same_length!(n = x, mean, scale, shift);
        let y = &mut y[..n];
        for i in 0..n {
            y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
        }
    }

    /// A row of columns: `g * a + (x - mean) * b + c`.
    fn column_gradient(g: &[T], x: &[T], dx: &mut [T], mean: &[T], a: &[T], b: &[T], c: &[T]) {
        same_length!(n = g, x, mean, a, b, c);
        let dx = &mut dx[..n];
        for i in 0..n {
            dx[i] = g[i] * a[i] + (x[i] - mean[i]) * b[i] + c[i];
        }
    }

    /// Adds elements to sums.
    fn add_to(sums: &mut [f64], x: &[T]) {
        for (s, x) in sums.iter_mut().zip(x) {
            *s += x.wide();
        }
    }
}

/// Adds both values of `f` (of the start of a row, a column, and what belongs to the column) to the columns' sums. There are
/// `of.len()` columns, at most `COLUMNS`, and `len` elements from the first to the last one.
#[inline(always)]
fn columns<T: NormElement>(len: usize, step: usize, of: &[T], s: &mut [f64], q: &mut [f64], f: impl Fn(usize, usize, T) -> (T, T)) {
    let width = of.len();
    let (mut a, mut b) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    let (a, b, s, q) = (&mut a[..width], &mut b[..width], &mut s[..width], &mut q[..width]);
    let mut row = 0;
    while row + width <= len {
        a.fill(T::ZERO);
        b.fill(T::ZERO);
        for _ in 0..ROWS {
            if row + width > len {
                break;
            }
            for j in 0..width {
                let (x, y) = f(row, j, of[j]);
                a[j] = a[j] + x;
                b[j] = b[j] + y;
            }
            row += step;
        }
        for j in 0..width {
            s[j] += a[j].wide();
            q[j] += b[j].wide();
        }
    }
}
