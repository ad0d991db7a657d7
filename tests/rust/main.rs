//! All tests of the core that need no Python, as one program: each further one would be linked with all kernels again.

mod accuracy;
mod common;
mod complex;
mod contract;
mod gradients;
mod kernels;
mod levels;
mod passes;
mod reference;
mod reference_conv;
mod reference_elements;
mod reference_attention;
mod reference_norm;
mod reference_pool;
mod reference_images;
mod reference_random;
mod reference_recurrence;
mod contract_algorithms;
mod contract_images;
mod contract_kinds;
mod contract_random;
mod contract_recurrence;
mod rooms;
mod rows;
mod soundness;
mod views_and_indexing;
