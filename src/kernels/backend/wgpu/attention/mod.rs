//! Scaled dot-product attention, and its gradients, without the matrix of scores in memory: a pass goes through the pairs of a query and a
//! key and makes their scores as it needs them. Forward the softmax is a running maximum and sum; backward the logarithms of the sums,
//! which forward has kept, give the weights. The rows of a pass are those of its result:
//!
//! | pass | rows | columns | products of a pair | result |
//! | --- | --- | --- | --- | --- |
//! | forward | queries | keys | q . k | weights x v |
//! | along | queries | | | g . o |
//! | gradient of q | queries | keys | q . k, g . v | slopes x k |
//! | gradient of k | keys | queries of all heads that share them | k . q, v . g | slopes x q |
//! | gradient of v | keys | queries of all heads that share them | k . q | weights x g |
//!
//! The shape of a pass chooses its form: tiles of float32 in workgroup memory (`tile`), or one invocation for each row (`each`), for
//! float64, for long rows and for few pairs.
//!
//! A pair without attention (the mask is false, the key is after the query, the score is -inf) has weight 0. In `each` its terms are left
//! out; in `tile` they are multiplied by 0, so a nan or infinity in them makes nan, as on the CPU.
//!
//! Not here: dropout, which is composed of operations, and floats of 16 bits, which run in float32.

mod along;
mod each;
mod tile;

use super::common::operands::{foreign, operand, output};
use super::elem::{from_words, value};
use super::{Bindings, Buffer, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, countable, groups_for, load_real, number_words, scratch, unsupported, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Attention, AttentionPass, AttentionShape, Family};
use crate::error::Result;
use crate::layout::{DType, Layout};
use along::{ALONG_QUERIES, AttentionAlong};
use each::AttentionEach;
use std::sync::Arc;
use tile::{AttentionTile, TILES};

/// What a shader makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AttentionResult {
    /// The result and the logarithms.
    Forward,
    /// For each query the sum of products of gradient (in the place of the values) and result (of the keys).
    Along,
    QueryGradient,
    KeyGradient,
    ValueGradient,
}

impl AttentionResult {
    /// Which of q, k, v, g, logarithms and `Along` it reads.
    fn reads(self) -> [bool; 6] {
        match self {
            AttentionResult::Forward => [true, true, true, false, false, false],
            AttentionResult::Along => [false, false, true, true, false, false],
            AttentionResult::QueryGradient | AttentionResult::KeyGradient => [true; 6],
            AttentionResult::ValueGradient => [true, true, false, true, true, false],
        }
    }

    /// Whether its rows are keys.
    fn by_key(self) -> bool {
        matches!(self, AttentionResult::KeyGradient | AttentionResult::ValueGradient)
    }
}

/// What all shaders of a pass depend on.
#[derive(Debug, Clone, Copy, Hash)]
struct AttentionOperands {
    result: AttentionResult,
    real: DType,
    e: usize,
    ev: usize,
    causal: bool,
    /// q, k, v, g, logarithms, `Along`.
    from: [Option<u32>; 6],
    mask: Option<(u32, DType)>,
    to: u32,
    lse: Option<u32>,
}

const NAMES: [&str; 6] = ["q", "k", "v", "g", "lse", "along"];

/// The names of the parameters.
struct AttentionNames {
    /// Rows, or workgroups of tiles.
    count: String,
    heads: String,
    kv_heads: String,
    l: String,
    s: String,
    scale: String,
    zero: String,
    to: String,
    to_lse: String,
    /// Rows of the result from one element of the batch, one head and one query or key to the next.
    steps: [String; 3],
    /// Of each operand its start and its strides over batch, heads, rows and columns.
    from: [[String; 5]; 6],
    mask: [String; 5],
}

impl AttentionOperands {
    fn names(&self, p: &mut ParamNames) -> AttentionNames {
        let [count, heads, kv_heads, l, s, scale, scale_high, zero, to, to_lse] = p.many();
        let scale = from_words(self.real, &scale, &scale_high);
        let steps = p.many();
        let from = std::array::from_fn(|_| p.many());
        AttentionNames { count, heads, kv_heads, l, s, scale, zero, to, to_lse, steps, from, mask: p.many() }
    }

    /// Numbers of a row of the result.
    fn width(&self) -> usize {
        match self.result {
            AttentionResult::Forward | AttentionResult::ValueGradient => self.ev,
            AttentionResult::QueryGradient | AttentionResult::KeyGradient => self.e,
            AttentionResult::Along => 1,
        }
    }

    /// The most negative number that is a power of two; a pair with this score or less has no attention.
    fn lowest(&self) -> &'static str {
        if self.real == DType::F64 { "-0x1p+1023lf" } else { "-0x1p+127f" }
    }

    /// Functions: for each operand `q_row(b, h, i)` is where a row begins, and `q_at(o, c)` the number at column `c` of the row at `o`.
    fn functions(&self, n: &AttentionNames) -> String {
        let t = value(self.real);
        let mut text = String::new();
        for ((name, slot), [start, b, h, i, c]) in NAMES.iter().zip(self.from).zip(&n.from) {
            let Some(slot) = slot else { continue };
            let load = load_real(self.real, slot, &format!("o + c * {c}"));
            text += &format!(
                "fn {name}_row(b: u32, h: u32, i: u32) -> u32 {{ return {start} + b * {b} + h * {h} + i * {i}; }}\n\
                 fn {name}_at(o: u32, c: u32) -> {t} {{ return {load}; }}\n"
            );
        }
        text
    }

    /// Statements that return the lowest score where the mask is false, and set `extra` to a mask of numbers.
    fn masked(&self, n: &AttentionNames) -> String {
        let Some((slot, d)) = self.mask else { return String::new() };
        let [start, b, h, i, j] = &n.mask;
        let at = format!("{start} + b * {b} + h * {h} + i * {i} + j * {j}");
        if d == DType::Bool {
            format!("if (b{slot}[{at}] == 0u) {{ return {}; }}\n", self.lowest())
        } else {
            format!("extra = {};\n", load_real(d, slot, &at))
        }
    }

    /// Where the row of the result lies for query `i` or key `j`.
    fn row_of_result(&self, n: &AttentionNames) -> String {
        let [of_batch, of_head, of_row] = &n.steps;
        let (head, row) = if self.result.by_key() { ("kh", "j") } else { ("h", "i") };
        format!("(b * {of_batch} + {head} * {of_head} + {row} * {of_row})")
    }
}

struct AttentionRun<'a> {
    a: &'a Attention,
    real: DType,
    /// q, k, v, g, logarithms, `Along`.
    from: [Option<BufferView<'a>>; 6],
    mask: Option<BufferView<'a>>,
}

impl AttentionRun<'_> {
    fn run(&self, result: AttentionResult, to: (&Buffer, usize), lse: Option<(&Buffer, usize)>) -> Result<()> {
        let AttentionShape { batch, heads, kv_heads, l, s, e, ev } = self.a.shape;
        let op = self.a.name();
        let (all, rows, columns) = if result.by_key() { (kv_heads, s, l) } else { (heads, l, s) };
        let count = countable(op, &[batch, all, rows])?;
        let all = batch * all;
        let along = result == AttentionResult::Along && self.real == DType::F32;
        let tile = tile::choose(self.real, [e, ev], all, rows, columns).filter(|_| result != AttentionResult::Along);
        let number = match tile {
            Some(tile) => all * rows.div_ceil(TILES[tile].rows()),
            None => count,
        };
        let mut bindings = Bindings::new();
        let slot = bindings.write(to.0);
        let lse_slot = lse.map(|(b, _)| bindings.write(b));
        let mut from = [None; 6];
        for ((slot, view), read) in from.iter_mut().zip(&self.from).zip(result.reads()) {
            *slot = view.as_ref().filter(|_| read).map(|v| bindings.read(v.buffer));
        }
        let mask = self.mask.filter(|_| result.reads()[0]).map(|m| (bindings.read(m.buffer), m.dtype));
        let mut numbers = ParamValues::default()
            .push(number)
            .push(heads)
            .push(kv_heads)
            .push(l)
            .push(s)
            .long(number_words(self.a.scale, self.real))
            .push(0)
            .push(to.1)
            .push(lse.map_or(0, |l| l.1));
        let steps = match result {
            AttentionResult::Forward => self.a.row_steps(),
            AttentionResult::Along => [heads * l, l, 1],
            AttentionResult::QueryGradient => [l * heads, 1, heads],
            AttentionResult::KeyGradient | AttentionResult::ValueGradient => [s * kv_heads, 1, kv_heads],
        };
        for step in steps {
            numbers = numbers.push(step);
        }
        for view in self.from.iter().chain([&self.mask]) {
            let Some(v) = view else {
                numbers = numbers.push(0).push(0).push(0).push(0).push(0);
                continue;
            };
            crate::backend::wgpu::common::strided::check(op, v)?;
            numbers = numbers.push(v.offset);
            for d in 0..4 {
                numbers = numbers.push(v.strides.get(d).map_or(0, |s| *s as usize));
            }
        }
        let operands = AttentionOperands { result, real: self.real, e, ev, causal: self.a.causal, from, mask, to: slot, lse: lse_slot };
        let context = to.0.context();
        match tile {
            Some(tile) => Launch { op, bindings, numbers, groups: number }.run(context, &AttentionTile { operands, tile }),
            None if along => {
                let groups = count.div_ceil(ALONG_QUERIES);
                Launch { op, bindings, numbers, groups }.run(context, &AttentionAlong { operands })
            }
            None => Launch { op, bindings, numbers, groups: groups_for(count) }.run(context, &AttentionEach { operands }),
        }
    }
}

impl WgpuFamily for Attention {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(a: &Attention, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let all = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<Vec<_>>>()?;
        let out = output(outs, 0)?;
        let real = out.dtype;
        if !matches!(real, DType::F32 | DType::F64) {
            return Err(unsupported(a.name(), real));
        }
        match (a.pass, &all[..]) {
            (AttentionPass::Forward, [q, k, v, mask @ ..]) => {
                let run = AttentionRun { a, real, from: [Some(*q), Some(*k), Some(*v), None, None, None], mask: mask.first().copied() };
                let lse = output(outs, 1)?;
                run.run(AttentionResult::Forward, (out.buffer, out.offset), Some((lse.buffer, lse.offset)))
            }
            (AttentionPass::Backward, [g, q, k, v, o, lse, mask @ ..]) => {
                let AttentionShape { batch, heads, l, .. } = a.shape;
                let shape = [batch, heads, l];
                let strides = Layout::contiguous_strides(&shape);
                let memory = scratch(out.buffer.context(), countable(a.name(), &shape)? * words(real))?;
                let along = BufferView { buffer: &memory, offset: 0, shape: &shape, strides: &strides, dtype: real };
                let first = AttentionRun { a, real, from: [None, None, Some(*o), Some(*g), None, None], mask: None };
                first.run(AttentionResult::Along, (&memory, 0), None)?;
                let from = [Some(*q), Some(*k), Some(*v), Some(*g), Some(*lse), Some(along)];
                let run = AttentionRun { a, real, from, mask: mask.first().copied() };
                let results = [AttentionResult::QueryGradient, AttentionResult::KeyGradient, AttentionResult::ValueGradient];
                for (at, result) in results.into_iter().enumerate() {
                    let to = output(outs, at)?;
                    run.run(result, (to.buffer, to.offset), None)?;
                }
                Ok(())
            }
            _ => Err(foreign("operands that attention does not have")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    const ALL: [AttentionResult; 5] = [
        AttentionResult::Forward,
        AttentionResult::Along,
        AttentionResult::QueryGradient,
        AttentionResult::KeyGradient,
        AttentionResult::ValueGradient,
    ];

    /// The operands of a shader, and which bindings it writes.
    fn operands(result: AttentionResult, real: DType, [e, ev]: [usize; 2], mask: Option<DType>, causal: bool) -> (AttentionOperands, u32) {
        let forward = result == AttentionResult::Forward;
        let from = if forward { [Some(2), Some(3), Some(4), None, None, None] } else { [1, 2, 3, 4, 5, 6].map(Some) };
        let lse = forward.then_some(1);
        let mask = mask.map(|d| (7, d));
        let all = AttentionOperands { result, real, e, ev, causal, from, mask, to: 0, lse };
        (all, if forward { 3 } else { 1 })
    }

    #[test]
    fn shaders_are_valid() {
        for result in ALL {
            for real in [DType::F32, DType::F64] {
                for mask in [None, Some(DType::Bool), Some(real)] {
                    let (operands, writes) = operands(result, real, [3, 5], mask, true);
                    validate(&AttentionEach { operands }, writes);
                }
            }
        }
        let (operands, writes) = operands(AttentionResult::Along, DType::F32, [3, 5], None, false);
        validate(&AttentionAlong { operands }, writes);
    }

    #[test]
    fn tiled_shaders_are_valid() {
        for result in ALL.into_iter().filter(|r| *r != AttentionResult::Along) {
            for mask in [None, Some(DType::Bool), Some(DType::F32)] {
                for (sizes, causal) in [([5, 3], true), ([64, 64], false), ([128, 96], true)] {
                    let (operands, writes) = operands(result, DType::F32, sizes, mask, causal);
                    for tile in 0..TILES.len() {
                        validate(&AttentionTile { operands, tile }, writes);
                    }
                }
            }
        }
    }
}
