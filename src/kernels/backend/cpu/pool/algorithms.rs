//! The algorithms of pools, in the order in which they are tried.

use super::across::Across;
use crate::backend::cpu::algorithms::{Asked, Why, algorithms, needs};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::call::Pool;
use crate::simd::instruction_set;
use std::marker::PhantomData;

// Thresholds between algorithms, with the machine and what was measured beside each where that is known. `./run tune` measures around them.

/// The most elements of windows that are pooled across planes, and of those whose largest ones are given to. On one Zen 3 core windows of 121
/// elements took a quarter of the time of rows, and largest ones of 25 an eighth; giving to 25 took a third. Along rows, giving
/// takes one step a window, whatever its size.
pub(super) const MOST: usize = 256;
pub(super) const MOST_GIVEN_TO: usize = 64;
/// Windows of a row from which on those of one, two or three elements are largest numbers of vectors as they lie.
pub(super) const LONG: usize = 256;

algorithms! {
    /// Pools of floats.
    pub(in crate::backend::cpu) enum PoolPlan['p] for PoolCall<'_, T> where [T: CoreNumber] {
        /// Vectors go across planes.
        Across(Across<'p>) = "pool.across", across;
        /// Vectors go along rows of windows.
        Rows(()) = "pool.rows", rows;
    }
}

/// Of other numbers.
pub(in crate::backend::cpu) const ROWS: &str = "pool.rows";

/// A pass of a pool.
pub(in crate::backend::cpu) struct PoolCall<'a, T> {
    pub p: &'a Pool,
    /// The most elements of windows with which it is faster across planes.
    pub most: usize,
    /// Whether each row is faster as it lies.
    pub is_row: bool,
    /// Whether it may go across planes.
    pub has_places: bool,
    pub numbers: PhantomData<T>,
}

impl<'a, T: CoreNumber> PoolCall<'a, T> {
    pub fn new(p: &'a Pool, most: usize) -> PoolCall<'a, T> {
        PoolCall { p, most, is_row: false, has_places: true, numbers: PhantomData }
    }
}

fn across<'p, T: CoreNumber>(call: &'p PoolCall<'_, T>, asked: Asked) -> Result<Across<'p>, Why> {
    needs(call.has_places, "windows have given places, or none in the plane")?;
    asked.gains(!call.is_row, "long rows are vectors as they lie")?;
    let most = if asked == Asked::ByName { MOST } else { call.most };
    Across::on::<T>(instruction_set(), call.p, most).ok_or("there are few planes, or windows are large or uneven")
}

fn rows<T>(_call: &PoolCall<'_, T>, _asked: Asked) -> Result<(), Why> {
    Ok(())
}
