//! The positions of elements that are not zero: flags, a prefix sum of them, and a write of each position to the place that its sum names.

use super::{Bindings, Buffer, BufferView};
use crate::backend::contract;
use crate::backend::contract::{CountedResult, Operand};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{foreign, view};
use crate::backend::wgpu::common::prefix_sum::exclusive;
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load, scratch, store, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{self, Family};
use crate::error::Result;
use crate::layout::{DType, Number};
use std::sync::Arc;

/// The number of elements that are not zero, and the data to write their positions.
pub struct Nonzero<'a> {
    op: &'static str,
    x: BufferView<'a>,
    /// For each element, how many stand before it; one more at the end.
    before: Option<Buffer>,
    pub count: usize,
}

impl<'a> Nonzero<'a> {
    /// Counts them; waits for the device.
    pub fn count(op: &'static str, x: BufferView<'a>) -> Result<Nonzero<'a>> {
        let n = countable(op, x.shape)?;
        if n == 0 {
            return Ok(Nonzero { op, x, before: None, count: 0 });
        }
        let context = x.buffer.context();
        let before = scratch(context, n + 1)?;
        let mut bindings = Bindings::new();
        let (to, from) = (bindings.write(&before), bindings.read(x.buffer));
        let walk = StridedWalk::ordered(x.shape.iter().zip(x.strides).map(|(n, s)| (*n, [*s])));
        let rank = walk.rank();
        let numbers = ParamValues::default().push(n).push(n + 1).push(x.offset).walk(&walk);
        Launch { op, bindings, numbers, groups: groups_for(n + 1) }.run(context, &NonzeroFlags { dtype: x.dtype, rank, to, from })?;
        exclusive(context, op, &before, n + 1)?;
        let last = context.read(&before, n * 4, 4)?;
        let count = last.iter().rev().fold(0usize, |v, b| v << 8 | usize::from(*b));
        Ok(Nonzero { op, x, before: Some(before), count })
    }

    /// Writes their positions in row-major order: `out` is int64, row-major, (rank, count).
    pub fn positions(&self, out: BufferView<'_>) -> Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        if self.count == 0 {
            return Ok(());
        }
        let n: usize = self.x.shape.iter().product();
        let mut bindings = Bindings::new();
        let (to, by) = (bindings.write(out.buffer), bindings.read(before));
        let rank = self.x.shape.len();
        let mut numbers = ParamValues::default().push(n).push(self.count).push(out.offset);
        for s in self.x.shape {
            numbers = numbers.push(*s);
        }
        Launch { op: self.op, bindings, numbers, groups: groups_for(n) }.run(out.buffer.context(), &NonzeroPositions { rank, to, by })
    }
}

/// 1 for each element that is not zero, 0 for others and at the end.
#[derive(Debug, Hash)]
struct NonzeroFlags {
    dtype: DType,
    rank: u32,
    to: u32,
    from: u32,
}

impl WordKernel for NonzeroFlags {
    const KIND: &'static str = "nonzero_flags";

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, end, first] = p.many();
        let walk = p.walk(self.rank, "e", &["s"]);
        let (to, value) = (self.to, load(self.from, words(self.dtype), "s"));
        // A negative zero is zero.
        let holds = match self.dtype.number() {
            Number::F32 => "(v & 0x7fffffffu) != 0u",
            Number::F64 => "(v.x | (v.y & 0x7fffffffu)) != 0u",
            Number::I64 => "(v.x | v.y) != 0u",
            Number::Bool | Number::U8 | Number::I32 => "v != 0u",
            Number::C64 => "((v.x | v.y) & 0x7fffffffu) != 0u",
            Number::C128 => crate::backend::wgpu::elem::no_complex128(),
        };
        each(
            &end,
            &format!(
                "if (e == {n}) {{ b{to}[e] = 0u; return; }}\nvar s = {first};\n{walk}let v = {value};\nb{to}[e] = select(0u, 1u, {holds});\n"
            ),
        )
    }
}

#[derive(Debug, Hash)]
struct NonzeroPositions {
    rank: usize,
    to: u32,
    by: u32,
}

impl WordKernel for NonzeroPositions {
    const KIND: &'static str = "nonzero_positions";

    fn body(&self, p: &mut ParamNames) -> String {
        let (to, by) = (self.to, self.by);
        let [n, count, first] = p.many();
        let sizes: Vec<String> = (0..self.rank).map(|_| p.next()).collect();
        let mut body = format!("let at = b{by}[e];\nif (at == b{by}[e + 1u]) {{ return; }}\nvar rest = e;\n");
        for (d, size) in sizes.iter().enumerate().rev() {
            let put = store(to, 2, &format!("{first} + {d}u * {count} + at"), "place");
            body += &format!("{{ let place = vec2<u32>(rest % {size}, 0u); rest /= {size};\n{put}}}\n");
        }
        each(&n, &body)
    }
}

/// Elements that are not zero, counted on the device.
pub(super) struct NonzeroCount<'a>(Nonzero<'a>);

pub(super) fn count_nonzero<'a>(x: &contract::View<'a>) -> Result<NonzeroCount<'a>> {
    Ok(NonzeroCount(Nonzero::count("nonzero", view(x)?)?))
}

impl CountedResult for NonzeroCount<'_> {
    fn count(&self) -> usize {
        self.0.count
    }

    unsafe fn fill(&self, out: contract::View<'_>) -> Result<()> {
        self.0.positions(view(&out)?)
    }
}

impl WgpuFamily for call::Nonzero {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(request: &call::Nonzero, _context: &Arc<Context>, _ins: &[Operand<'_>], _outs: &[Option<contract::View<'_>>]) -> Result<()> {
        // Its size is counted first (`Backend::count`).
        Err(foreign(request.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::on_device() {
            validate(&NonzeroFlags { dtype, rank: 2, to: 0, from: 1 }, 1);
        }
        for rank in [1, 3] {
            validate(&NonzeroPositions { rank, to: 0, by: 1 }, 1);
        }
    }
}
