//! The inner loops of normalisation, over contiguous elements, compiled for each instruction set. Sums are made in lanes of the elements'
//! type, segment by segment, and the segments are added up in double precision.

use std::ops::{Add, Mul, Sub};

/// Elements that are summed before the sum goes to double precision.
const SEGMENT: usize = 4096;
const LANES: usize = 32;
/// Elements whose mean is the shift.
const SAMPLE: usize = 64;
/// Rows whose column sums stay in the elements' type.
const ROWS: usize = 64;
/// Lanes of sums over transposed rows.
pub(super) const TRANSPOSED: usize = 16;
/// Columns that are summed together.
pub(super) const COLUMNS: usize = 256;

/// float32 and float64.
pub trait NormElement: Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    const ZERO: Self;
    const ONE: Self;
    /// Below it powers of the reciprocal of a deviation are too small.
    const FAR: f64;
    /// So many deviations away from 0 a mean that is rounded to the type has lost digits beside them.
    const ROUNDED: f64;
    fn wide(self) -> f64;
    fn narrow(v: f64) -> Self;
    /// Half of the digits.
    fn coarse(self) -> Self;
}

macro_rules! element {
    ($($t:ty, $low:literal, $far:literal, $rounded:literal),+) => { $(
        impl NormElement for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const FAR: f64 = $far;
            const ROUNDED: f64 = $rounded;
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn narrow(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn coarse(self) -> Self {
                <$t>::from_bits(self.to_bits() >> $low << $low)
            }
        }
    )+ };
}

#[allow(trivial_numeric_casts, reason = "one macro for both widths")]
mod elements {
    use super::NormElement;
    element!(f32, 12, 1e-17, 1e3, f64, 26, 1e-100, 1e6);
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
                use $crate::simd::{InstructionSet, instruction_set};
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

/// The sums of both values of `f`, of the elements at one place of all inputs.
#[inline(always)]
fn both<T: NormElement, const N: usize>(inputs: [&[T]; N], f: impl Fn([T; N]) -> (T, T)) -> (f64, f64) {
    let n = inputs[0].len();
    let (mut first, mut second) = (0.0, 0.0);
    let mut at = 0;
    while at < n {
        let end = n.min(at + SEGMENT);
        let (a, b) = both_lanes(inputs.map(|x| &x[at..end]), &f);
        first += a;
        second += b;
        at = end;
    }
    (first, second)
}

/// Adds `f` of `M` elements to lanes. The inputs are arrays: the compiler makes one vector of a loop without checks alone.
#[inline(always)]
fn add_lanes<T: NormElement, const N: usize, const M: usize>(
    a: &mut [T; M],
    b: &mut [T; M],
    inputs: [&[T]; N],
    f: &impl Fn([T; N]) -> (T, T),
) {
    let rows = inputs.map(|x| x.first_chunk::<M>().expect("a block is as long as the lanes"));
    for j in 0..M {
        let (x, y) = f(rows.map(|row| row[j]));
        a[j] = a[j] + x;
        b[j] = b[j] + y;
    }
}

#[inline(always)]
fn both_lanes<T: NormElement, const N: usize>(inputs: [&[T]; N], f: &impl Fn([T; N]) -> (T, T)) -> (f64, f64) {
    let n = inputs[0].len();
    if n < LANES {
        return few_lanes(inputs, f);
    }
    let (mut a, mut b) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    let mut i = 0;
    while i + LANES <= n {
        add_lanes(&mut a, &mut b, inputs.map(|x| &x[i..i + LANES]), f);
        i += LANES;
    }
    if i == n {
        return (total(a).wide(), total(b).wide());
    }
    // In arrays of their own, so that the lanes above stay in registers.
    let (c, d) = few_lanes(inputs.map(|x| &x[i..]), f);
    (total(a).wide() + c, total(b).wide() + d)
}

/// As `both_lanes`, in few lanes: adding up many of them would take longer than the elements themselves, if these are fewer.
#[inline(always)]
fn few_lanes<T: NormElement, const N: usize>(inputs: [&[T]; N], f: &impl Fn([T; N]) -> (T, T)) -> (f64, f64) {
    let n = inputs[0].len();
    let (mut a, mut b) = ([T::ZERO; 8], [T::ZERO; 8]);
    let mut i = 0;
    while i + 8 <= n {
        add_lanes(&mut a, &mut b, inputs.map(|x| &x[i..i + 8]), f);
        i += 8;
    }
    for j in 0..n - i {
        let (x, y) = f(inputs.map(|of| of[i + j]));
        a[j] = a[j] + x;
        b[j] = b[j] + y;
    }
    (total(a).wide(), total(b).wide())
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

/// About the mean of the first elements; the first one stands for a mean that is not finite. It has few digits, so that distances from it are
/// exact: the same digits cut off from all of them would add up.
#[inline(always)]
fn near_mean<T: NormElement>(x: &[T]) -> T {
    let Some(first) = x.first() else { return T::ZERO };
    let (blocks, _) = x[..x.len().min(SAMPLE)].as_chunks::<16>();
    if blocks.is_empty() {
        return *first;
    }
    let mut lanes = [T::ZERO; 16];
    for block in blocks {
        for j in 0..16 {
            lanes[j] = lanes[j] + block[j];
        }
    }
    let mean = total(lanes).wide() / (16 * blocks.len()) as f64;
    if mean.is_finite() { T::narrow(mean).coarse() } else { *first }
}

/// The smallest common length, so that no index is checked.
macro_rules! same_length {
    ($n:ident = $first:ident $(, $other:ident)*) => {
        let $n = $first.len();
        $( let $other = &$other[..$n]; )*
    };
}

vectorised! {
    /// A shift near the mean.
    fn shift(x: &[T]) -> T {
        near_mean(x)
    }

    /// A shift near the mean, and the sums of distances from it and of their squares.
    fn shifted_sums(x: &[T]) -> (T, (f64, f64)) {
        let shift = near_mean(x);
        let sums = both([x], |[x]| {
            let d = x - shift;
            (d, d * d)
        });
        (shift, sums)
    }

    /// The sums of `x - shift` and of its squares.
    fn sums(x: &[T], shift: T) -> (f64, f64) {
        both([x], |[x]| {
            let d = x - shift;
            (d, d * d)
        })
    }

    /// The sums of `g` and of `g * (x - mean)`.
    fn gradient_sums(g: &[T], x: &[T], mean: T) -> (f64, f64) {
        both([g, x], |[g, x]| (g, g * (x - mean)))
    }

    /// The sums of `g * w` and of `g * w * (x - mean)`.
    fn weighted_sums(g: &[T], x: &[T], w: &[T], mean: T) -> (f64, f64) {
        both([g, x, w], |[g, x, w]| {
            let v = g * w;
            (v, v * (x - mean))
        })
    }

    /// `(x - mean) * scale + shift`.
    fn scaled(x: &[T], y: &mut [T], mean: T, scale: T, shift: T) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = (*x - mean) * scale + shift;
        }
    }

    /// As `scaled`, over `x`.
    fn scaled_over(x: &mut [T], mean: T, scale: T, shift: T) {
        for x in x {
            *x = (*x - mean) * scale + shift;
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

    /// As `gradient`, over `g`.
    fn gradient_over(g: &mut [T], x: &[T], mean: T, line: (T, T, T)) {
        let n = x.len();
        let (g, (a, b, c)) = (&mut g[..n], line);
        for i in 0..n {
            g[i] = g[i] * a + (x[i] - mean) * b + c;
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

    /// As `weighted_gradient`, over `g`.
    fn weighted_gradient_over(g: &mut [T], x: &[T], w: &[T], mean: T, line: (T, T, T)) {
        same_length!(n = x, w);
        let (g, (a, b, c)) = (&mut g[..n], line);
        for i in 0..n {
            g[i] = g[i] * w[i] * a + (x[i] - mean) * b + c;
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

    /// As `product`, over `g`.
    fn product_over(g: &mut [T], w: &[T], a: T) {
        let n = w.len();
        let g = &mut g[..n];
        for i in 0..n {
            g[i] = g[i] * w[i] * a;
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
        columns([x], step, shift, s, q, |[x], shift| {
            let d = x - shift;
            (d, d * d)
        });
    }

    /// As `column_sums`, the sums of `g` and of `g * (x - mean)`.
    fn column_gradient_sums(g: &[T], x: &[T], step: usize, mean: &[T], s: &mut [f64], q: &mut [f64]) {
        columns([g, x], step, mean, s, q, |[g, x], mean| (g, g * (x - mean)));
    }

    /// A row of columns: `(x - mean) * scale + shift`.
    fn column_scaled(x: &[T], y: &mut [T], mean: &[T], scale: &[T], shift: &[T]) {
        same_length!(n = x, mean, scale, shift);
        let y = &mut y[..n];
        for i in 0..n {
            y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
        }
    }

    /// As `column_scaled`, over `x`.
    fn column_scaled_over(x: &mut [T], mean: &[T], scale: &[T], shift: &[T]) {
        same_length!(n = mean, scale, shift);
        let x = &mut x[..n];
        for i in 0..n {
            x[i] = (x[i] - mean[i]) * scale[i] + shift[i];
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

    /// As `column_gradient`, over `g`.
    fn column_gradient_over(g: &mut [T], x: &[T], mean: &[T], a: &[T], b: &[T], c: &[T]) {
        same_length!(n = x, mean, a, b, c);
        let g = &mut g[..n];
        for i in 0..n {
            g[i] = g[i] * a[i] + (x[i] - mean[i]) * b[i] + c[i];
        }
    }

    /// Transposed rows, `step` apart: `((x - mean) * scale + shift) * w + b`, over `x`. Weights are those of a transposed row.
    fn transposed_affine(x: &mut [T], step: usize, lines: [&[T]; 3], w: &[T], b: &[T]) {
        let [mean, scale, shift] = lines;
        same_length!(n = mean, scale, shift);
        for ((x, w), b) in x.chunks_mut(step).zip(w).zip(b) {
            let x = &mut x[..n];
            for j in 0..n {
                x[j] = ((x[j] - mean[j]) * scale[j] + shift[j]) * *w + *b;
            }
        }
    }

    /// Transposed rows: adds the sums of `g * w` and of `g * w * (x - mean)` to `s` and `q`.
    fn transposed_gradient_sums(g: &[T], x: &[T], step: usize, w: &[T], mean: &[T], sums: (&mut [T], &mut [T])) {
        let (s, q) = sums;
        let n = mean.len();
        let (s, q) = (&mut s[..n], &mut q[..n]);
        for ((g, x), w) in g.chunks(step).zip(x.chunks(step)).zip(w) {
            let (g, x) = (&g[..n], &x[..n]);
            for j in 0..n {
                let v = g[j] * *w;
                s[j] = s[j] + v;
                q[j] = q[j] + v * (x[j] - mean[j]);
            }
        }
    }

    /// Transposed rows: `g * w * a + (x - mean) * b + c`, over `g`.
    fn transposed_gradient_over(g: &mut [T], x: &[T], step: usize, w: &[T], mean: &[T], lines: [&[T]; 3]) {
        let [a, b, c] = lines;
        same_length!(n = mean, a, b, c);
        for ((g, x), w) in g.chunks_mut(step).zip(x.chunks(step)).zip(w) {
            let (g, x) = (&mut g[..n], &x[..n]);
            for j in 0..n {
                g[j] = g[j] * *w * a[j] + (x[j] - mean[j]) * b[j] + c[j];
            }
        }
    }

    /// Transposed rows: adds `g * (x - mean) * rstd` to `dw`, and `g` to `db`, each element's in lanes.
    fn transposed_add_gradients(g: &[T], x: &[T], step: usize, mean: &[T], rstd: &[T], sums: (&mut [[T; TRANSPOSED]], &mut [[T; TRANSPOSED]])) {
        same_length!(n = mean, rstd);
        for (((g, x), dw), db) in g.chunks(step).zip(x.chunks(step)).zip(sums.0).zip(sums.1) {
            let (mut w, mut b) = (*dw, *db);
            let inputs = [&g[..n], &x[..n], mean, rstd].map(|of| of.as_chunks::<TRANSPOSED>());
            let [(g, g_rest), (x, x_rest), (mean, mean_rest), (rstd, rstd_rest)] = inputs;
            for (((g, x), mean), rstd) in g.iter().zip(x).zip(mean).zip(rstd) {
                for j in 0..TRANSPOSED {
                    w[j] = w[j] + g[j] * ((x[j] - mean[j]) * rstd[j]);
                    b[j] = b[j] + g[j];
                }
            }
            for (j, (((g, x), mean), rstd)) in g_rest.iter().zip(x_rest).zip(mean_rest).zip(rstd_rest).enumerate() {
                w[j] = w[j] + *g * ((*x - *mean) * *rstd);
                b[j] = b[j] + *g;
            }
            (*dw, *db) = (w, b);
        }
    }

    /// Adds elements to sums.
    fn add_to(sums: &mut [f64], x: &[T]) {
        for (s, x) in sums.iter_mut().zip(x) {
            *s += x.wide();
        }
    }
}

/// Adds both values of `f` (of the elements at one place of all inputs, and what belongs to the column) to the columns' sums. There are
/// `of.len()` columns, at most `COLUMNS`; inputs reach from the first row's first element to the last one's last.
#[inline(always)]
fn columns<T: NormElement, const N: usize>(
    inputs: [&[T]; N],
    step: usize,
    of: &[T],
    s: &mut [f64],
    q: &mut [f64],
    f: impl Fn([T; N], T) -> (T, T),
) {
    let (width, len) = (of.len(), inputs[0].len());
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
            let rows = inputs.map(|x| &x[row..row + width]);
            for j in 0..width {
                let (x, y) = f(rows.map(|row| row[j]), of[j]);
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
