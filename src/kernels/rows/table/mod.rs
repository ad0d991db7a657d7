//! Every pointwise operation. To add one, add its entry to its family's file; kernels, derivatives, the Tensor's table and the tests
//! follow from it. Not here: the meaning of a row's clauses (`row.rs`), and operations that are not pointwise (`ops`).
//!
//! Derivatives hold to PyTorch's values at special points and are themselves differentiable: where an unused branch of `select` would
//! be infinite or nan there, its input is masked and not its result (0 * inf is nan one order higher).
//!
//! A family is a macro that adds its entries to those before it and hands all of them to the next one; the last is `rows`, which makes
//! one list of them.

mod activations;
mod arithmetic;
mod choosing;
mod elementary;
mod predicates;
mod special;

use super::arith::{Analytic, Cond, Field, Int, Num, Real};
use super::row::*;
use activations::activations;
use arithmetic::arithmetic;
use choosing::choosing;
use elementary::elementary;
use predicates::predicates;
use special::special;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI, SQRT_2};
use std::slice::from_ref;

arithmetic! { [] choosing elementary activations predicates special rows }
