//! Fourier transforms of the reference backend: the definition, dimension by dimension, in float64.

use super::reference_elements::{V, X, get, indices, put, with};
use rgrad::call::{Fft, FftKind};
use rgrad::layout::Complex64;

/// The parts of an element; a real one has no second.
fn read(x: &X<'_>, at: &[usize]) -> Complex64 {
    let (real, from) = (x.v.dtype.row().real, x.at(at));
    // SAFETY: a complex element is two real ones.
    unsafe {
        let im = if x.v.dtype.is_complex() { get(from.add(real.size()), real).f() } else { 0.0 };
        Complex64::new(get(from, real).f(), im)
    }
}

fn write(out: &X<'_>, at: &[usize], z: Complex64) {
    let (real, to) = (out.v.dtype.row().real, out.at(at));
    // SAFETY: as in `read`.
    unsafe {
        put(to, real, V::F(z.re));
        if out.v.dtype.is_complex() {
            put(to.add(real.size()), real, V::F(z.im));
        }
    }
}

/// Numbers by index, row-major.
struct Numbers {
    shape: Vec<usize>,
    all: Vec<Complex64>,
}

impl Numbers {
    fn of(shape: &[usize], f: impl Fn(&[usize]) -> Complex64) -> Numbers {
        Numbers { shape: shape.to_vec(), all: indices(shape).map(|i| f(&i)).collect() }
    }

    fn get(&self, at: &[usize]) -> Complex64 {
        self.all[at.iter().zip(&self.shape).fold(0, |n, (i, size)| n * size + i)]
    }

    fn transformed(&self, dim: usize, inverse: bool) -> Numbers {
        let n = self.shape[dim];
        let turn = if inverse { 2.0 } else { -2.0 } * std::f64::consts::PI / n as f64;
        Numbers::of(&self.shape, |at| (0..n).map(|j| self.get(&with(at, dim, j)) * Complex64::cis(turn * (j * at[dim] % n) as f64)).sum())
    }
}

pub fn fft(f: &Fft, x: &X<'_>, out: &X<'_>) {
    let x = Numbers::of(x.v.shape, |at| read(x, at));
    let (&last, before) = f.dims.split_last().expect("a dimension");
    let (from, to) = (x.shape[last], out.size(last));
    let n = from.max(to);
    // Whether frequency `k` stands for `n - k`, too.
    let is_inner = |k: usize| from != to && k > 0 && 2 * k != n;
    let inner = |k: usize| if is_inner(k) { f.inner } else { 1.0 };
    let others = |x: Numbers| before.iter().fold(x, |x, d| x.transformed(*d, f.inverse));
    let made = match f.kind {
        FftKind::Complex | FftKind::FromReal => others(x).transformed(last, f.inverse),
        FftKind::ToReal => {
            let x = others(x);
            let mut shape = x.shape.clone();
            shape[last] = n;
            let whole = Numbers::of(&shape, |at| match at[last] {
                k if from == to => x.get(&with(at, last, k)),
                k if !is_inner(k) => x.get(&with(at, last, k)).re.into(),
                k if k < from => x.get(at) * inner(k),
                k => x.get(&with(at, last, n - k)).conj() * inner(n - k),
            });
            whole.transformed(last, f.inverse)
        }
    };
    let factor = |k: usize| if f.kind == FftKind::FromReal { inner(k) } else { 1.0 };
    indices(out.v.shape).for_each(|at| write(out, &at, made.get(&at) * f.scale * factor(at[last])));
}
