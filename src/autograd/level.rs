//! Levels: forward mode, vmap and nested transforms wrap tensors of the next lower level.
//!
//! The door takes the highest level among an operation's inputs, lets that level apply its rule, and the rule re-enters the door one
//! level lower. Only level 0 sees arrays. History is recorded at every level by the same code.

use super::door::{Op, Outputs};
use super::tensor::Tensor;
use crate::error::Result;
use std::fmt;
use std::sync::Arc;

/// One level of a transform.
pub trait Level: Send + Sync + fmt::Debug {
    /// 1 for a level right above plain tensors; a level entered inside it has a higher number.
    fn number(&self) -> u32;

    /// Applies `op` to inputs of which at least one is of this level and none of a higher one. The results are of this level or lower.
    fn apply(&self, this: &Arc<dyn Level>, op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs>;
}

/// A tensor of the next lower level together with the level that wrapped it.
#[derive(Clone)]
pub struct Leveled {
    pub level: Arc<dyn Level>,
    pub inner: Tensor,
}

impl fmt::Debug for Leveled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leveled({}, {:?})", self.level.number(), self.inner)
    }
}
