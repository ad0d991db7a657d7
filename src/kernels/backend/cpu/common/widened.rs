//! Requests whose kernels have no instance for floats of 16 bits: operands are converted to float32, and results are rounded once. The same for
//! other dtypes without loops of their own, in the dtype that they are computed in.

use crate::backend::contract::{Backend, Memory, Operand, View};
use crate::backend::cpu::backend::CPU;
use crate::backend::cpu::copy::copy;
use crate::backend::cpu::elem::is_widened;
use crate::call::Request;
use crate::error::Result;
use crate::host::memory::alloc::Buffer;
use crate::layout::{Dims, Layout, Strides};
use smallvec::SmallVec;

/// A view's elements in the dtype that they are computed in, without the repetitions of broadcast dimensions.
struct WideView {
    memory: Buffer,
    strides: Strides,
}

impl WideView {
    fn of(v: &View<'_>) -> Result<WideView> {
        let shape: Dims = v.shape.iter().zip(v.strides).map(|(n, s)| if *s == 0 { 1 } else { *n }).collect();
        let mut strides = Layout::contiguous_strides(&shape);
        strides.iter_mut().zip(v.strides).filter(|(_, old)| **old == 0).for_each(|(s, _)| *s = 0);
        Ok(WideView { memory: Buffer::new(shape.iter().product::<usize>() * v.dtype.computed().size())?, strides })
    }

    /// Writes the view's elements into the wide memory (or back, rounded, with `back`).
    ///
    /// # Safety
    /// The view is the one that this was made of, inside memory of the host that nothing else uses in a conflicting way.
    unsafe fn convert(&self, v: &View<'_>, back: bool) {
        let shape: Dims = v.shape.iter().zip(v.strides).map(|(n, s)| if *s == 0 { 1 } else { *n }).collect();
        // SAFETY: the caller's; the wide memory has room for this shape.
        unsafe {
            if back {
                copy(v.dtype.computed(), v.dtype, &shape, self.memory.as_ptr(), &self.strides, v.ptr(), v.strides);
            } else {
                copy(v.dtype, v.dtype.computed(), &shape, v.ptr(), v.strides, self.memory.as_ptr(), &self.strides);
            }
        }
    }

    fn view<'a>(&'a self, v: &View<'a>) -> View<'a> {
        View { memory: Memory::Host(self.memory.as_ptr()), offset: 0, shape: v.shape, strides: &self.strides, dtype: v.dtype.computed() }
    }
}

/// Runs the request in the dtype that its operands are computed in.
///
/// # Errors
/// As for `Backend::run`.
///
/// # Safety
/// As for `Backend::run`.
pub(in crate::backend::cpu) unsafe fn run(request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let mut wide_ins: SmallVec<[Option<WideView>; 4]> = SmallVec::new();
    for i in ins {
        wide_ins.push(match i {
            Operand::View(v) if is_widened(v.dtype) => {
                let wide = WideView::of(v)?;
                // SAFETY: the caller's.
                unsafe { wide.convert(v, false) };
                Some(wide)
            }
            Operand::View(_) | Operand::Unread => None,
            Operand::Number(_) | Operand::Made { .. } => return Err(super::operands::malformed(request.name())),
        });
    }
    let written = matches!(request, Request::IndexWrite(_) | Request::Scatter(_));
    let mut wide_outs: SmallVec<[Option<WideView>; 2]> = SmallVec::new();
    for o in outs {
        wide_outs.push(match o {
            Some(v) if is_widened(v.dtype) => {
                let wide = WideView::of(v)?;
                if written {
                    // SAFETY: the caller's.
                    unsafe { wide.convert(v, false) };
                }
                Some(wide)
            }
            _ => None,
        });
    }
    let ins: SmallVec<[Operand<'_>; 4]> = ins
        .iter()
        .zip(&wide_ins)
        .map(|(i, wide)| match (i, wide) {
            (Operand::View(v), Some(wide)) => Operand::View(wide.view(v)),
            (i, _) => *i,
        })
        .collect();
    let targets: SmallVec<[Option<View<'_>>; 2]> =
        outs.iter().zip(&wide_outs).map(|(o, wide)| o.as_ref().map(|v| wide.as_ref().map_or(*v, |wide| wide.view(v)))).collect();
    // SAFETY: the caller's; the wide memory has the shapes of what it stands for.
    unsafe { CPU.run(request, &ins, &targets)? };
    for (o, wide) in outs.iter().zip(&wide_outs) {
        if let (Some(v), Some(wide)) = (o, wide) {
            // SAFETY: the caller's.
            unsafe { wide.convert(v, true) };
        }
    }
    Ok(())
}
