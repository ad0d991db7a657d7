//! The operations: one file for each family, with shape rule, forward, derivative, tangent and batching rule together. `declared` describes
//! functions for the bindings. Not here: kernels (`backend`), the primitives of differentiation (`autograd/primitives.rs`), conversion of
//! Python's arguments (`python`).

pub mod activation;
pub mod addmm;
pub mod algebra;
pub mod attention;
mod attention_op;
pub mod batch;
pub mod blocks;
pub mod clamp;
pub mod compare;
pub mod complex;
pub mod conv;
mod conv_complex;
pub mod conv_tbc;
mod convolve;
pub mod create;
pub mod cross;
pub mod declared;
pub mod diagonal;
pub mod dropout;
pub mod einsum;
pub mod extreme;
pub mod fft;
pub mod gather;
pub mod grid_sample;
pub mod index;
mod index_batch;
pub mod indexing;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod mask;
pub mod matmul;
pub mod memory_format;
pub mod norm;
pub mod normalize;
pub mod order;
pub mod parts;
pub mod pointwise;
pub mod pool;
mod promotion;
pub mod quantile;
pub mod random;
pub mod rejection;
pub mod rearrange;
pub mod recurrent;
pub mod spectral;
mod recurrent_op;
pub mod reduce;
mod refused;
pub(crate) mod room;
pub mod resample;
pub mod scan;
pub mod search;
pub mod shape;
pub mod softmax;
mod standardize;
pub mod unique;
pub mod update;

/// The declared functions of all families.
pub const DECLARED: &[&[declared::Declared]] = &[
    activation::DECLARED,
    addmm::DECLARED,
    algebra::DECLARED,
    cross::DECLARED,
    extreme::DECLARED,
    fft::DECLARED,
    grid_sample::DECLARED,
    matmul::DECLARED,
    norm::DECLARED,
    order::DECLARED,
    pool::DECLARED,
    reduce::DECLARED,
    resample::DECLARED,
    scan::DECLARED,
    search::DECLARED,
    softmax::DECLARED,
    spectral::DECLARED,
];
