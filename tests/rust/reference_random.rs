//! Random numbers on the reference backend: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) one number at a time, and each distribution by
//! its formula in float64.

use rgrad_kernels::call::{Distribution, Random};

/// Four words for a counter.
fn words(seed: u64, counter: u64) -> [u64; 4] {
    let low = |x: u64| x & 0xffff_ffff;
    let mut c = [low(counter), counter >> 32, 0, 0];
    let mut key = [low(seed), seed >> 32];
    for _ in 0..10 {
        let (a, b) = (c[0] * 0xD251_1F53, c[2] * 0xCD9E_8D57);
        c = [b >> 32 ^ c[1] ^ key[0], low(b), a >> 32 ^ c[3] ^ key[1], low(a)];
        key = [low(key[0] + 0x9E37_79B9), low(key[1] + 0xBB67_AE85)];
    }
    c
}

/// In [0, 1), from 53 of 64 bits.
fn unit(high: u64, low: u64) -> f64 {
    ((high << 32 | low) >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(u: f64, v: f64, second: bool) -> f64 {
    let (r, t) = ((-2.0 * (1.0 - u).ln()).sqrt(), std::f64::consts::TAU * v);
    r * if second { t.sin() } else { t.cos() }
}

/// Number `i` of a stream whose numbers are computed in float32 (`single`) or not; `chance` is the operand's element there.
pub fn number(r: &Random, i: usize, single: bool, chance: f64) -> f64 {
    let at = |per: usize| (words(r.seed, r.start + (i / per) as u64), i % per);
    let wide = || {
        let (w, k) = at(2);
        (w[2 * k], w[2 * k + 1])
    };
    let drawn = || unit(wide().0, wide().1);
    match r.distribution {
        Distribution::Uniform { from, to } if single => {
            let (w, k) = at(4);
            from + (w[k] >> 8) as f64 / (1u64 << 24) as f64 * (to - from)
        }
        Distribution::Uniform { from, to } => from + drawn() * (to - from),
        Distribution::Normal { mean, std } if single => {
            let (w, k) = at(4);
            let of = |j: usize| w[j] as f64 / (1u64 << 32) as f64;
            mean + std * normal(of(k / 2 * 2), of(k / 2 * 2 + 1), k % 2 == 1)
        }
        Distribution::Normal { mean, std } => {
            let (w, k) = at(2);
            mean + std * normal(unit(w[0], w[1]), unit(w[2], w[3]), k == 1)
        }
        Distribution::Exponential { rate } => -(1.0 - drawn()).ln() / rate,
        Distribution::Bernoulli { p } => f64::from(u8::from(drawn() < p)),
        Distribution::BernoulliOf => f64::from(u8::from(drawn() < chance)),
        Distribution::Integers { from, range } => {
            let bits = u128::from(wide().0 << 32 | wide().1);
            (from + ((bits * u128::from(range)) >> 64) as i64) as f64
        }
    }
}
