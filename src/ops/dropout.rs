//! Dropout.

use super::pointwise as pw;
use super::random::{Dist, Generator, sample_on};
use super::reduce::with_number;
use crate::autograd::Tensor;
use crate::error::{Error, Result};
use crate::rows::RowId;

/// Sets each element to 0 with probability `p` and scales the others by `1 / (1 - p)`; the input itself when not training.
pub fn dropout(x: &Tensor, p: f64, training: bool, g: Option<&Generator>) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::value(format!("dropout probability has to be between 0 and 1, but got {p}")));
    }
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    if !x.dtype().is_float() {
        return Err(Error::runtime(format!(
            "result type Float can't be cast to the desired output type {}: dropout takes a float tensor",
            x.dtype().type_name()
        )));
    }
    let noise = sample_on(x.device(), &x.shape(), x.dtype(), Dist::Bernoulli { p: 1.0 - p }, g)?;
    if p < 1.0 {
        if noise.level() > 0 {
            return pw::mul(x, &pw::div(&noise, 1.0 - p)?);
        }
        with_number(&noise.memory(), RowId::Div, 1.0 - p)?;
    }
    pw::mul(x, &noise)
}
