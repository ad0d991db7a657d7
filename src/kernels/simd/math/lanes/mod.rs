//! Elementary functions of sixteen `f32` at once (AVX-512), accurate to 1 ULP over the whole range: the functions that gain most from
//! instructions that the compiler does not find in scalar code. Not here: the same functions for other instruction sets (`f32.rs`).

mod erf;
mod exp;
mod normal;
mod tanh;
mod trig;

pub use erf::erf;
pub use exp::{exp, sigmoid};
pub use normal::normal_cdf;
pub use tanh::tanh;
pub use trig::{cos, sin};

use crate::simd::{Bits16, F32x16, LookupTable};

/// An increasing odd function of a >= 0 by pieces: `value + (a - centre) * polynomial(a - centre)`. Centres are chosen so that values are
/// exact in `f32` to some ten bits more, and no value is above any `a` of its piece. So with centre 0 and an infinite value, as for pieces
/// near 0, the result is `a + a * polynomial(a)`.
#[inline(always)]
fn piecewise<const N: usize>(a: F32x16, piece: Bits16, centres: &LookupTable, values: &LookupTable, c: [&LookupTable; N]) -> F32x16 {
    let d = a - piece.pick(centres);
    let mut p = piece.pick(c[N - 1]);
    for c in c[..N - 1].iter().rev() {
        p = p.fma(d, piece.pick(c));
    }
    p.fma(d, a.at_most(piece.pick(values)))
}
