//! Values of special functions, which the CPU has a kernel for.

use super::Array;
use super::run::run_into;
use crate::backend::cpu::special::{SpecialFunction, SpecialValues};
use crate::call::Request;
use crate::error::Result;
use std::sync::Arc;

impl Array {
    /// The function of each element, of float32 or float64 on the CPU.
    pub fn special_values(&self, f: SpecialFunction) -> Result<Array> {
        let x = if self.layout().is_dense() { self.clone() } else { self.contiguous_copy()? };
        let out = x.empty_like(x.dtype())?;
        run_into(&Request::Custom(Arc::new(SpecialValues(f))), &[&x], &[&out])?;
        Ok(out)
    }
}
