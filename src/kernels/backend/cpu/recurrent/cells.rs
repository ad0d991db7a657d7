//! The gates of one sequence at one step.

use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::{BlockElement, prefetch};
use crate::call::RecurrentCell;
use std::ops::Range;

/// Where one sequence's numbers at one step are. Null where a cell has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellForward<T> {
    /// The products of the input; of the state, from the first of the units on, for each gate `product_step` further; and the biases of the latter.
    pub x: *const T,
    pub product: *const T,
    pub product_step: usize,
    pub bias: *const T,
    /// The cell before, or of a GRU the state before.
    pub before: *const T,
    pub kept: *mut T,
    pub cell: *mut T,
    pub state: *mut T,
}

impl<T> CellForward<T> {
    /// Asks for the memory of these units that has to do with a gate, before its product is computed.
    #[inline(always)]
    pub fn prefetch(&self, kind: RecurrentCell, gate: usize, h: usize, units: &Range<usize>) {
        let is_last = gate + 1 == kind.gates();
        prefetch_units(self.x, gate..gate + 1, h, units);
        prefetch_units(self.kept, gate.min(kind.kept())..if is_last { kind.kept() } else { gate + 1 }, h, units);
        if is_last {
            for of in [self.before, self.cell.cast_const(), self.state.cast_const()] {
                prefetch_units(of, 0..1, h, units);
            }
        }
    }
}

#[inline(always)]
fn prefetch_units<T>(of: *const T, gates: Range<usize>, h: usize, units: &Range<usize>) {
    for gate in gates {
        if !of.is_null() {
            prefetch(of.wrapping_add(gate * h + units.start), units.len());
        }
    }
}

/// # Safety
/// All are as `Recurrent` describes for `h` hidden units; these units are computed.
#[inline(always)]
pub(super) unsafe fn forward<V: Lanes>(kind: RecurrentCell, h: usize, units: Range<usize>, p: &CellForward<V::T>) {
    // SAFETY: the caller's; the last vector has `n` numbers.
    unsafe {
        for j in units.clone().step_by(V::N) {
            let n = units.end - j;
            let product = |gate: usize| V::load_up_to(p.product.wrapping_add(gate * p.product_step + j - units.start), n);
            let load = |from: *const V::T, gate: usize| V::load_up_to(from.wrapping_add(gate * h + j), n);
            let put = |v: V, to: *mut V::T, gate: usize| v.store_up_to(to.wrapping_add(gate * h + j), n);
            let sum = |gate: usize| load(p.x, gate).plus(product(gate));
            match kind {
                RecurrentCell::Tanh => put(sum(0).tanh(), p.state, 0),
                RecurrentCell::Relu => put(sum(0).larger(V::splat(V::T::ZERO)), p.state, 0),
                RecurrentCell::Gru => {
                    let r = sum(0).plus(load(p.bias, 0)).sigmoid();
                    let z = sum(1).plus(load(p.bias, 1)).sigmoid();
                    let inner = product(2).plus(load(p.bias, 2));
                    let new = r.fma(inner, load(p.x, 2)).tanh();
                    put(r, p.kept, 0);
                    put(z, p.kept, 1);
                    put(new, p.kept, 2);
                    put(inner, p.kept, 3);
                    put(z.fma(load(p.before, 0).minus(new), new), p.state, 0);
                }
                RecurrentCell::Lstm { .. } => {
                    let (i, f, g, o) = (sum(0).sigmoid(), sum(1).sigmoid(), sum(2).tanh(), sum(3).sigmoid());
                    let cell = f.fma(load(p.before, 0), i.times(g));
                    for (gate, v) in [i, f, g, o].into_iter().enumerate() {
                        put(v, p.kept, gate);
                    }
                    put(cell, p.cell, 0);
                    put(o.times(cell.tanh()), p.state, 0);
                }
            }
        }
    }
}

/// As `CellForward`, of the backward pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellBackward<T> {
    /// The gradient of the state (before a projection). A GRU's own part of the gradient of the state before is written here.
    pub g: *mut T,
    /// The gradient of the cell; that of the cell before is written here.
    pub g_cell: *mut T,
    pub kept: *const T,
    pub cell: *const T,
    /// The state; not of an LSTM.
    pub state: *const T,
    /// The state before a projection is written here; null if there is none.
    pub raw: *mut T,
    /// The cell before, or of a GRU the state before.
    pub before: *const T,
    /// The gradients of the products of input and state.
    pub dx: *mut T,
    pub dproduct: *mut T,
}

impl<T> CellBackward<T> {
    /// Asks for the memory of these units, before the product is computed.
    #[inline(always)]
    pub fn prefetch(&self, kind: RecurrentCell, h: usize, units: &Range<usize>) {
        for (of, gates) in [
            (self.kept, kind.kept()),
            (self.dx.cast_const(), kind.gates()),
            (self.dproduct.cast_const(), kind.gates()),
            (self.g.cast_const(), 1),
            (self.g_cell.cast_const(), 1),
            (self.cell, 1),
            (self.state, 1),
            (self.raw.cast_const(), 1),
            (self.before, 1),
        ] {
            prefetch_units(of, 0..gates, h, units);
        }
    }
}

/// # Safety
/// As for `forward`.
#[inline(always)]
pub(super) unsafe fn backward<V: Lanes>(kind: RecurrentCell, h: usize, units: Range<usize>, p: &CellBackward<V::T>) {
    // SAFETY: the caller's; the last vector has `n` numbers.
    unsafe {
        let (one, zero) = (V::splat(V::T::ONE), V::splat(V::T::ZERO));
        for j in units.clone().step_by(V::N) {
            let n = units.end - j;
            let load = |from: *const V::T, gate: usize| V::load_up_to(from.wrapping_add(gate * h + j), n);
            let put = |v: V, to: *mut V::T, gate: usize| v.store_up_to(to.wrapping_add(gate * h + j), n);
            // The derivatives of sigmoid and tanh, of their results.
            let slope = |s: V| s.times(one.minus(s));
            let tanh_slope = |t: V| one.minus(t.times(t));
            let g = load(p.g, 0);
            match kind {
                RecurrentCell::Tanh => put(g.times(tanh_slope(load(p.state, 0))), p.dx, 0),
                RecurrentCell::Relu => {
                    let y = load(p.state, 0);
                    let mut v = [V::T::ZERO; 16];
                    let mut of = [V::T::ZERO; 16];
                    y.store(of.as_mut_ptr());
                    g.store(v.as_mut_ptr());
                    for (v, y) in v.iter_mut().zip(of) {
                        if y <= V::T::ZERO {
                            *v = V::T::ZERO;
                        }
                    }
                    put(V::load(v.as_ptr()).plus(zero), p.dx, 0);
                }
                RecurrentCell::Gru => {
                    let (r, z, new, inner) = (load(p.kept, 0), load(p.kept, 1), load(p.kept, 2), load(p.kept, 3));
                    let dnew = g.times(one.minus(z)).times(tanh_slope(new));
                    let dz = g.times(load(p.before, 0).minus(new)).times(slope(z));
                    let dr = dnew.times(inner).times(slope(r));
                    for (to, third) in [(p.dx, dnew), (p.dproduct, dnew.times(r))] {
                        put(dr, to, 0);
                        put(dz, to, 1);
                        put(third, to, 2);
                    }
                    put(g.times(z), p.g, 0);
                }
                RecurrentCell::Lstm { .. } => {
                    let (i, f, new, o) = (load(p.kept, 0), load(p.kept, 1), load(p.kept, 2), load(p.kept, 3));
                    let t = load(p.cell, 0).tanh();
                    let dc = g.times(o).times(tanh_slope(t)).plus(load(p.g_cell, 0));
                    if !p.raw.is_null() {
                        put(o.times(t), p.raw, 0);
                    }
                    put(dc.times(new).times(slope(i)), p.dx, 0);
                    put(dc.times(load(p.before, 0)).times(slope(f)), p.dx, 1);
                    put(dc.times(i).times(tanh_slope(new)), p.dx, 2);
                    put(g.times(t).times(slope(o)), p.dx, 3);
                    put(dc.times(f), p.g_cell, 0);
                }
            }
        }
    }
}
