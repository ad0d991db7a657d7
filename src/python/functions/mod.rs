//! The functions of the module and the methods of `Tensor`, one file for each family, as in `ops`.
//!
//! Here arguments are read in PyTorch's several ways, and results become Python objects. Not here: shape rules, derivatives and mathematics (`ops`).
//! Pointwise rows and declared functions bind themselves from their tables; only the other functions have code of their own.

mod attention;
mod blocks;
mod conv;
pub(crate) mod create;
mod declared;
mod indexing;
mod join;
mod linalg;
mod loss;
mod matmul;
mod normalize;
mod order;
pub(crate) mod pointwise;
mod random;
mod recurrent;
pub(crate) mod reduce;
pub(crate) mod shape;
mod update;

use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    pointwise::register(m)?;
    shape::register(m)?;
    indexing::register(m)?;
    join::register(m)?;
    create::register(m)?;
    random::register(m)?;
    declared::register(m)?;
    reduce::register(m)?;
    order::register(m)?;
    blocks::register(m)?;
    matmul::register(m)?;
    linalg::register(m)?;
    normalize::register(m)?;
    conv::register(m)?;
    attention::register(m)?;
    recurrent::register(m)?;
    loss::register(m)?;
    update::register(m)
}
