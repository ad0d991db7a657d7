//! Discrete Fourier transforms, dimension by dimension: a `pass` transforms all lines along one of them, in the caches. `plan` keeps what is
//! computed once for a length, `real` has the steps between real numbers and half of the spectrum. One line is the work of one thread.
//! Not here: the algorithms for one line in memory (crate `rustfft`), paddings, and PyTorch's normalisations (`ops`).

mod compute;
mod pass;
mod plan;
mod real;
