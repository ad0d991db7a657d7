//! Kernels of the rows of the kind `Special`, whose values are computed a block at a time.

use super::kernels::{KernelFn, LANES, MAX_INPUTS};
use crate::layout::Scalar;
use crate::rows::{MAX_PARAMS, RowId};
use crate::simd::math::special::{BLOCK, values};

const _: () = assert!(LANES == BLOCK);
const _: [KernelFn; 2] = [single::<0>, double::<0>];

macro_rules! kernel {
    ($name:ident $T:ident $single:literal) => {
        /// # Safety
        /// As for `KernelFn`.
        pub(super) unsafe fn $name<const ROW: u16>(
            blocks: usize,
            out: *mut u8,
            ins: &[*const u8; MAX_INPUTS],
            _params: &[Scalar; MAX_PARAMS],
        ) {
            let row = RowId::ALL[ROW as usize];
            let arity = row.info().arity();
            for b in 0..blocks {
                let mut operands = [[0.0; BLOCK]; 3];
                for (to, from) in operands.iter_mut().zip(ins).take(arity) {
                    // SAFETY: every operand holds this block.
                    let from = unsafe { (*from as *const [$T; BLOCK]).add(b).read_unaligned() };
                    to.iter_mut().zip(from).for_each(|(to, v)| *to = v as f64);
                }
                values(row, $single, &mut operands);
                let made = operands[0].map(|v| v as $T);
                // SAFETY: the output holds this block. It may be one of the inputs: these were read before.
                unsafe { (out as *mut [$T; BLOCK]).add(b).write_unaligned(made) };
            }
        }
    };
}
kernel!(single f32 true);
kernel!(double f64 false);
