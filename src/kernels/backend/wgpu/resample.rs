//! Weighted sums along one axis of row-major elements seen as (outer, n, inner): one invocation for each result. The table goes to the
//! device with the request.

use super::elem::value;
use super::{Bindings, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load_real, scratch, store_real, unsupported,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::Resample;
use crate::error::Result;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use std::sync::Arc;

#[derive(Debug, Hash)]
struct ResampleKernel {
    dtype: DType,
    from: u32,
    to: u32,
    /// Where the entries of each result start, then their positions, then the words of their weights.
    table: u32,
}

impl WordKernel for ResampleKernel {
    const KIND: &'static str = "resample";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, start, to_start, input, output, inner, entries]: [String; 7] = p.many();
        let (t, d, table) = (value(self.dtype), self.dtype, self.table);
        let at = format!("(({output} + 1u + {entries} + 1u) / 2u)");
        // Weights begin at an even word.
        let weight =
            if d == DType::F64 { load_real(d, table, &format!("{at} + k")) } else { load_real(d, table, &format!("{at} * 2u + k")) };
        each(
            &count,
            &format!(
                "let i = e % {inner}; let o = (e / {inner}) % {output}; let outer = e / ({inner} * {output});
var sum = {t}();
let begin = b{table}[o]; let end = b{table}[o + 1u];
for (var k = begin; k < end; k++) {{
let place = (outer * {input} + b{table}[{output} + 1u + k]) * {inner} + i;
let product = {x} * {weight};
if (k == begin) {{ sum = product; }} else {{ sum += product; }}
}}
{put}",
                x = load_real(d, self.from, &format!("{start} + place")),
                put = store_real(d, self.to, &format!("{to_start} + e"), "sum"),
            ),
        )
    }
}

/// Runs a request.
pub fn resample(r: &Resample, x: BufferView<'_>, out: BufferView<'_>) -> Result<()> {
    let dtype = out.dtype;
    if !dtype.is_float() {
        return Err(unsupported(r.op, dtype));
    }
    let count = countable(r.op, out.shape)?;
    countable(r.op, x.shape)?;
    let context = out.buffer.context();
    let (starts, at, weights) = r.table.entries();
    let mut words: Vec<u32> = starts.iter().chain(at).copied().collect();
    words.resize(words.len().next_multiple_of(2), 0);
    for w in weights {
        if dtype == DType::F64 {
            words.extend([w.to_bits() as u32, (w.to_bits() >> 32) as u32]);
        } else {
            words.push((*w as f32).to_bits());
        }
    }
    let table = scratch(context, words.len())?;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    context.write(&table, 0, RawSlice::from(&bytes[..]))?;
    let mut bindings = Bindings::new();
    let kernel = ResampleKernel { dtype, from: bindings.read(x.buffer), to: bindings.write(out.buffer), table: bindings.read(&table) };
    let numbers = ParamValues::default().push(count).push(x.offset).push(out.offset);
    let numbers = numbers.push(r.table.input()).push(r.table.output()).push(r.inner).push(at.len());
    Launch { op: r.op, bindings, numbers, groups: groups_for(count) }.run(context, &kernel)
}

impl WgpuFamily for Resample {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(r: &Resample, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        resample(r, operand(ins, 0)?, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in [DType::F32, DType::F64] {
            validate(&ResampleKernel { dtype, from: 0, to: 1, table: 2 }, 2);
        }
    }
}
