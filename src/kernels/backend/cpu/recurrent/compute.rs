//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::blocks::BlockElement;
use crate::backend::cpu::common::operands::{DenseOperand, output, view};
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::recurrent::{RecurrentBackward, RecurrentForward};
use crate::call::{Family, Recurrent, RecurrentCell};
use crate::error::Result;
use smallvec::SmallVec;
use std::ptr::{null, null_mut};

impl CpuFamily for Recurrent {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(r: &Recurrent, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let views = (0..ins.len()).map(|k| view(r.name(), ins, k)).collect::<Result<SmallVec<[View<'_>; 12]>>>()?;
        // SAFETY: the caller's.
        let dense = views.iter().map(|v| unsafe { DenseOperand::of(v) }).collect::<Result<SmallVec<[DenseOperand<'_>; 12]>>>()?;
        let made = (0..outs.len()).map(|k| output(r.name(), outs, k)).collect::<Result<SmallVec<[View<'_>; 6]>>>()?;
        let (lstm, gru, projected) = (r.cell.is_lstm(), r.cell == RecurrentCell::Gru, r.cell.is_projected());
        let keeps = r.cell.kept() > 0;
        float!(made[0].dtype, T => {
            let (mut i, mut o) = (0, 0);
            let mut from = |there: bool| {
                if !there {
                    return null::<T>();
                }
                i += 1;
                dense[i - 1].ptr().cast::<T>()
            };
            let mut to = |there: bool| {
                if !there {
                    return null_mut::<T>();
                }
                o += 1;
                made[o - 1].ptr().cast::<T>()
            };
            // In the order that `Recurrent::operands` and `Recurrent::results` describe.
            // SAFETY: the caller's, both of them.
            unsafe {
                if r.backward {
                    <T as BlockElement>::run(&RecurrentBackward {
                        r,
                        g: from(true),
                        g_last: from(true),
                        g_last_cell: from(lstm),
                        states: from(true),
                        cells: from(lstm),
                        kept: from(keeps),
                        weight: from(true),
                        first: from(true),
                        first_cell: {
                            from(gru);
                            from(lstm)
                        },
                        projection: from(projected),
                        dx: to(true),
                        dproduct: to(gru),
                        before: to(true),
                        d_first: to(true),
                        d_first_cell: to(lstm),
                        d_projected: to(projected),
                        raw: to(projected),
                    })
                } else {
                    <T as BlockElement>::run(&RecurrentForward {
                        r,
                        x: from(true),
                        weight: from(true),
                        first: from(true),
                        bias: from(gru),
                        first_cell: from(lstm),
                        projection: from(projected),
                        states: to(true),
                        cells: to(lstm),
                        kept: to(keeps),
                        last: to(true),
                        last_cell: to(lstm),
                    })
                }
            }
        })
    }
}
