//! Elementary functions of `f64`, a file for each family, accurate to 1 ULP. Not here: those of `f32` (`f32.rs`), and sums of two `f64`
//! (`double_double.rs`).

mod erf;
mod exp;
mod log;
mod rem;
mod trig;

pub use erf::{erf, erfc, normal_cdf};
pub(super) use exp::exp_parts;
pub use exp::{cosh, exp, exp2, expm1, sigmoid, sinh, tanh};
pub use log::{acosh, asinh, atanh, hypot, log, log1p, log2, log10, pow};
pub(super) use log::{add_ln2, log_dd, power_edges};
pub use rem::{QUOTIENT_LIMIT, fmod};
pub use trig::{TRIG_LIMIT, acos, asin, atan, atan2, cos, sin, tan};
pub(super) use trig::{atan2_dd, sin_cos};
