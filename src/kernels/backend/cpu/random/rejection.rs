//! Random numbers whose distribution has parameters of its own for each element, by rejection. Each element draws from a stream of its own, so
//! it depends on seed, counter and its position alone. Streams have a fourth counter word of 1, which other distributions never use.
//!
//! G. Marsaglia, W. W. Tsang: A simple method for generating gamma variables (2000). W. Hörmann: The transformed rejection method for generating
//! Poisson random variables; The generation of binomial random variates (both 1993).

use super::{philox_of, unit_f64};
use crate::backend::contract::View;
use crate::call::Custom;
use crate::error::{Error, Result};
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::DType;
use crate::rows::RowId;
use crate::simd::Base;
use crate::simd::math::f64 as m;
use crate::simd::math::special;
use std::f64::consts::TAU;

/// Elements of a task.
const PIECE: usize = 1024;

/// Which numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rejected {
    /// Of the gamma distribution with scale 1; the operand is its order. Not less than `least`.
    Gamma { least: f64 },
    /// Their logarithms, which do not vanish for small orders.
    LogGamma,
    /// Of Poisson's distribution; the operand is the rate.
    Poisson,
    /// Numbers of successes; the operands are how many trials there are, and the probability of a success.
    Binomial,
}

/// The numbers of one element.
struct Stream {
    seed: u64,
    at: u64,
    block: u32,
    spare: Option<f64>,
}

impl Stream {
    /// Two numbers in [0, 1).
    #[inline]
    fn pair(&mut self) -> (f64, f64) {
        let w = philox_of(self.seed, [self.at as u32, (self.at >> 32) as u32, self.block, 1]);
        self.block = self.block.wrapping_add(1);
        (unit_f64(w[0], w[1]), unit_f64(w[2], w[3]))
    }

    /// In [0, 1).
    #[inline]
    fn unit(&mut self) -> f64 {
        if let Some(v) = self.spare.take() {
            return v;
        }
        let (a, b) = self.pair();
        self.spare = Some(b);
        a
    }

    #[inline]
    fn normal(&mut self) -> f64 {
        let (a, b) = self.pair();
        (-2.0 * m::log1p::<Base>(-a)).sqrt() * m::cos::<Base>(TAU * b)
    }

    /// The logarithm of a number in (0, 1].
    #[inline]
    fn log_unit(&mut self) -> f64 {
        m::log1p::<Base>(-self.unit())
    }

    /// The logarithm of a number of the gamma distribution. Of a small order it is one of the next order times a power of a uniform number.
    fn log_gamma(&mut self, order: f64) -> f64 {
        if order.is_nan() || order < 0.0 {
            return f64::NAN;
        }
        if order == 0.0 {
            return f64::NEG_INFINITY;
        }
        if order == f64::INFINITY {
            return order;
        }
        let (raised, factor) = if order < 1.0 { (order + 1.0, self.log_unit() / order) } else { (order, 0.0) };
        let d = raised - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let t = 1.0 + c * x;
            if t <= 0.0 {
                continue;
            }
            let (v, square) = (t * t * t, x * x);
            let u = 1.0 - self.unit();
            let log_v = m::log::<Base>(v);
            if u < 1.0 - 0.0331 * square * square || m::log::<Base>(u) < 0.5 * square + d * (1.0 - v + log_v) {
                return m::log::<Base>(d) + log_v + factor;
            }
        }
    }

    fn gamma(&mut self, order: f64, least: f64) -> f64 {
        let made = m::exp::<Base>(self.log_gamma(order));
        if made < least { least } else { made }
    }

    fn poisson(&mut self, rate: f64) -> f64 {
        if !(rate > 0.0 && rate < f64::INFINITY) {
            return rate;
        }
        if rate < 10.0 {
            let (limit, mut product, mut k) = (m::exp::<Base>(-rate), 1.0, 0.0);
            loop {
                product *= 1.0 - self.unit();
                if product <= limit {
                    return k;
                }
                k += 1.0;
            }
        }
        let log_rate = m::log::<Base>(rate);
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let log_inverse_alpha = m::log::<Base>(1.1239 + 1.1328 / (b - 3.4));
        let quick = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let (u, v) = (self.unit() - 0.5, 1.0 - self.unit());
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
            if us >= 0.07 && v <= quick {
                return k;
            }
            if k.is_nan() || k < 0.0 || us < 0.013 && v > us {
                continue;
            }
            let allowed = k * log_rate - rate - special::value(RowId::Lgamma, &[k + 1.0]);
            if m::log::<Base>(v) + log_inverse_alpha - m::log::<Base>(a / (us * us) + b) <= allowed {
                return k;
            }
        }
    }

    /// Counts trials up to the next success.
    fn binomial_by_waiting(&mut self, n: f64, p: f64) -> f64 {
        let log_failure = m::log1p::<Base>(-p);
        let (mut trials, mut k) = (0.0, 0.0);
        loop {
            // At least one trial, also if the uniform number is 1.
            trials += (self.log_unit() / log_failure).ceil().max(1.0);
            if trials > n {
                return k;
            }
            k += 1.0;
        }
    }

    fn binomial(&mut self, n: f64, p: f64) -> f64 {
        let n = n.floor();
        if !(n > 0.0 && n < f64::INFINITY && p > 0.0) {
            return if n.is_nan() || p.is_nan() || n == f64::INFINITY { f64::NAN } else { 0.0 };
        }
        if p >= 1.0 {
            return n;
        }
        if p > 0.5 {
            return n - self.binomial(n, 1.0 - p);
        }
        if n * p < 10.0 {
            return self.binomial_by_waiting(n, p);
        }
        let deviation = (n * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let (c, quick, odds) = (n * p + 0.5, 0.92 - 4.2 / b, p / (1.0 - p));
        let alpha = (2.83 + 5.1 / b) * deviation;
        let mode = ((n + 1.0) * p).floor();
        loop {
            let (u, v) = (self.unit() - 0.5, 1.0 - self.unit());
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + c).floor();
            if us >= 0.07 && v <= quick {
                return k;
            }
            if !(k >= 0.0 && k <= n) {
                continue;
            }
            let log = |x: f64| m::log::<Base>(x);
            let allowed = (mode + 0.5) * log((mode + 1.0) / (odds * (n - mode + 1.0)))
                + (n + 1.0) * log((n - mode + 1.0) / (n - k + 1.0))
                + (k + 0.5) * log(odds * (n - k + 1.0) / (k + 1.0))
                + stirling_tail(mode)
                + stirling_tail(n - mode)
                - stirling_tail(k)
                - stirling_tail(n - k);
            if log(v * alpha / (a / (us * us) + b)) <= allowed {
                return k;
            }
        }
    }
}

/// log(k!) without (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
fn stirling_tail(k: f64) -> f64 {
    const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_8;
    let up = k + 1.0;
    if k < 10.0 {
        return special::value(RowId::Lgamma, &[up]) - ((k + 0.5) * m::log::<Base>(up) - up + HALF_LOG_TAU);
    }
    let square = up * up;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / up
}

/// Draws numbers for operands of float32 or float64, in their order of memory.
#[derive(Debug)]
pub struct RejectionSampler {
    pub kind: Rejected,
    pub seed: u64,
    /// The counter of the first element; each takes one.
    pub start: u64,
}

impl RejectionSampler {
    fn draw(&self, i: usize, a: f64, b: f64) -> f64 {
        let mut stream = Stream { seed: self.seed, at: self.start.wrapping_add(i as u64), block: 0, spare: None };
        match self.kind {
            Rejected::Gamma { least } => stream.gamma(a, least),
            Rejected::LogGamma => stream.log_gamma(a),
            Rejected::Poisson => stream.poisson(a),
            Rejected::Binomial => stream.binomial(a, b),
        }
    }

    /// # Safety
    /// The operands and the result have `n` elements of this type; the second operand may be the first.
    unsafe fn run_in<T: Copy + Into<f64> + Send + Sync>(
        &self,
        n: usize,
        ins: [*const T; 2],
        out: *mut T,
        rounded: impl Fn(f64) -> T + Sync,
    ) {
        let (a, b, out) = (SharedPointer::new(ins[0].cast_mut()), SharedPointer::new(ins[1].cast_mut()), SharedPointer::new(out));
        parallel_for(n.div_ceil(PIECE), |piece| {
            for i in piece * PIECE..n.min((piece + 1) * PIECE) {
                // SAFETY: the caller's; pieces are disjoint.
                unsafe { *out.at(i) = rounded(self.draw(i, (*a.at(i)).into(), (*b.at(i)).into())) };
            }
        });
    }
}

// SAFETY: every element of the result is written, from the element of the operands at its place; the pointers end with the call.
unsafe impl Custom for RejectionSampler {
    fn name(&self) -> &'static str {
        match self.kind {
            Rejected::Gamma { .. } | Rejected::LogGamma => "gamma",
            Rejected::Poisson => "poisson",
            Rejected::Binomial => "binomial",
        }
    }

    unsafe fn run(&self, ins: &[View<'_>], outs: &[View<'_>]) -> Result<()> {
        let (Some(a), Some(b), [out]) = (ins.first(), ins.last(), outs) else {
            return Err(Error::internal(self.name(), "operands and one result"));
        };
        let plain = |v: &View<'_>| v.shape == out.shape && v.strides == out.strides && v.dtype == out.dtype;
        if !plain(a) || !plain(b) {
            return Err(Error::internal(self.name(), "the result lies otherwise than an operand"));
        }
        let n = out.numel();
        match out.dtype {
            // SAFETY: the caller's; all are dense, in the same order.
            DType::F32 => unsafe { self.run_in::<f32>(n, [a.ptr().cast(), b.ptr().cast()], out.ptr().cast(), |v| v as f32) },
            // SAFETY: as above.
            DType::F64 => unsafe { self.run_in::<f64>(n, [a.ptr().cast(), b.ptr().cast()], out.ptr().cast(), |v| v) },
            other => return Err(Error::internal(self.name(), &format!("{other} has to be widened before"))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of many draws.
    fn moments(kind: Rejected, a: f64, b: f64) -> (f64, f64) {
        let (n, sampler) = (40_000, RejectionSampler { kind, seed: 11, start: 5 });
        let drawn: Vec<f64> = (0..n).map(|i| sampler.draw(i, a, b)).collect();
        let mean = drawn.iter().sum::<f64>() / n as f64;
        (mean, drawn.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64)
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let close = |got: (f64, f64), mean: f64, variance: f64| {
            let error = 5.0 * (variance / 40_000.0).sqrt();
            assert!((got.0 - mean).abs() < error && (got.1 / variance - 1.0).abs() < 0.12, "{got:?} instead of {mean} and {variance}");
        };
        for order in [0.3, 1.0, 4.5, 300.0] {
            close(moments(Rejected::Gamma { least: 0.0 }, order, 0.0), order, order);
        }
        for rate in [0.2, 7.0, 12.0, 1e4] {
            close(moments(Rejected::Poisson, rate, 0.0), rate, rate);
        }
        for (n, p) in [(9.0, 0.3), (40.0, 0.9), (1000.0, 0.02), (1000.0, 0.4), (1e6, 0.999)] {
            close(moments(Rejected::Binomial, n, p), n * p, n * p * (1.0 - p));
        }
    }

    #[test]
    fn edges_end() {
        let draw = |kind, a, b| RejectionSampler { kind, seed: 1, start: 0 }.draw(0, a, b);
        assert_eq!(draw(Rejected::Gamma { least: 0.5 }, 0.0, 0.0), 0.5);
        assert_eq!(draw(Rejected::Gamma { least: 0.0 }, f64::INFINITY, 0.0), f64::INFINITY);
        assert!(draw(Rejected::Gamma { least: 0.0 }, -1.0, 0.0).is_nan() && draw(Rejected::Gamma { least: 0.0 }, f64::NAN, 0.0).is_nan());
        assert_eq!(draw(Rejected::Poisson, 0.0, 0.0), 0.0);
        assert_eq!(draw(Rejected::Binomial, 7.0, 1.0), 7.0);
        assert_eq!(draw(Rejected::Binomial, 7.0, 0.0), 0.0);
        assert!(draw(Rejected::LogGamma, 1e-5, 0.0) < -100.0);
    }
}
