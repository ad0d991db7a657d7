//! Values of special functions without a history: `special` in Python makes differentiable functions of them.

use crate::array::{Device, SpecialFunction};
use crate::autograd::Tensor;
use crate::error::{Error, Result};
use crate::layout::DType;

/// The values of the function of this name (`SpecialFunction::name`), of float32 or float64 on the CPU.
///
/// # Errors
/// There is no such function, or the tensor is of another dtype or device.
pub fn special_values(name: &str, x: &Tensor) -> Result<Tensor> {
    let Some(f) = SpecialFunction::ALL.into_iter().find(|f| f.name() == name) else {
        return Err(Error::value(format!("there is no kernel of a special function {name}")));
    };
    if x.device() != Device::CPU || !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(Error::not_implemented(format!("{name}: expected float32 or float64 on the CPU, got {} on {}", x.dtype(), x.device())));
    }
    Ok(Tensor::new(x.array().special_values(f)?))
}
