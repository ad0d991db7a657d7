//! Segmented reduction: combines all values for one element without atomics on floats. Positions are sorted, equal ones form segments, and
//! segments are summed by chunks; partial sums of segments that cross the border of a chunk go to the next, smaller round. The order of
//! summation depends on positions alone.

use super::scatter::{combine, source_value};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, NONE, ParamNames, ParamValues, WordKernel, each, groups_for, load, scratch, store, wgsl_type, words,
};
use crate::backend::wgpu::sort::radix::{self, Digits};
use crate::backend::wgpu::{Bindings, Buffer, BufferView};
use crate::call::Write;
use crate::error::Result;
use crate::layout::{DType, Number};

/// Sorted entries of one invocation.
const CHUNK: usize = 32;

/// `x[column, place of key[k]] += src[column, k]` for every column and k.
pub(crate) struct SegmentedReduce<'a> {
    pub op: &'static str,
    pub x: BufferView<'a>,
    /// None: `number` everywhere.
    pub src: Option<BufferView<'a>>,
    pub number: u64,
    pub how: Write,
    /// Strides of the array and the source.
    pub columns: StridedWalk<2>,
    /// Strides of the source.
    pub run: StridedWalk<1>,
    pub places: &'a StridedWalk<1>,
}

/// The neutral element: minus zero, so that `x + v` keeps even the sign of a zero.
fn identity(dtype: DType, how: Write) -> u64 {
    match (how, dtype.number()) {
        (Write::Multiply, Number::F32) => u64::from(1f32.to_bits()),
        (Write::Multiply, Number::F64) => 1f64.to_bits(),
        (Write::Multiply, Number::Bool | Number::U8 | Number::I32 | Number::I64) => 1,
        (Write::Set | Write::Add, Number::F32) => u64::from((-0f32).to_bits()),
        (Write::Set | Write::Add, Number::F64) => (-0f64).to_bits(),
        (Write::Multiply, Number::C64) => u64::from(1f32.to_bits()),
        (Write::Set | Write::Add, Number::C64) => 0x8000_0000_8000_0000,
        (_, Number::C128) => crate::backend::wgpu::elem::no_complex128(),
        (Write::Set | Write::Add, Number::Bool | Number::U8 | Number::I32 | Number::I64) => 0,
    }
}

/// `keys` are `n` numbers below `places`, or NONE.
pub(crate) fn accumulate(r: &SegmentedReduce<'_>, n: usize, places: usize, keys: &Buffer) -> Result<()> {
    let context = r.x.buffer.context();
    // One bit more than the largest number needs, so that NONE sorts behind all.
    let bits = usize::BITS - places.leading_zeros();
    let order = radix::order(context, r.op, n, &[Digits::Key { keys, words: 1, word: 0, bits: bits.min(32) }])?;
    let columns = r.columns.count();
    let width = words(r.x.dtype);
    // Everything is allocated before anything is written.
    let mut rounds: Vec<(usize, Option<(Buffer, Buffer)>)> = Vec::new();
    let mut entries = n;
    loop {
        let chunks = entries.div_ceil(CHUNK);
        if chunks == 1 {
            rounds.push((entries, None));
            break;
        }
        rounds.push((entries, Some((scratch(context, 2 * chunks)?, scratch(context, 2 * chunks * columns * width)?))));
        entries = 2 * chunks;
    }
    for (i, (entries, next)) in rounds.iter().enumerate() {
        match i.checked_sub(1).and_then(|before| rounds[before].1.as_ref()) {
            None => r.round(Some(&order), keys, None, *entries, columns, next.as_ref())?,
            Some((k, v)) => r.round(None, k, Some(v), *entries, columns, next.as_ref())?,
        }
    }
    Ok(())
}

impl SegmentedReduce<'_> {
    /// One round over `entries`: the first (with `order`) reads the source, later ones the partial values of the one before.
    fn round(
        &self,
        order: Option<&Buffer>,
        keys: &Buffer,
        values: Option<&Buffer>,
        entries: usize,
        columns: usize,
        next: Option<&(Buffer, Buffer)>,
    ) -> Result<()> {
        let (op, dtype, how) = (self.op, self.x.dtype, self.how);
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(self.x.buffer), bindings.read(keys));
        let order = order.map(|o| bindings.read(o));
        let from = match (values, &self.src) {
            (Some(v), _) => Some(bindings.read(v)),
            (None, Some(s)) => Some(bindings.read(s.buffer)),
            (None, None) => None,
        };
        let next = next.map(|(k, v)| (bindings.write(k), bindings.write(v)));
        let count = entries.div_ceil(CHUNK) * columns;
        let numbers = ParamValues::default().push(count).push(entries).push(columns).push(self.x.offset);
        let numbers = numbers.push(self.src.map_or(0, |s| s.offset)).long(self.number).long(identity(dtype, how));
        let numbers = numbers.walk(&self.columns).walk(&self.run).walk(self.places);
        let kernel =
            SegmentRound { dtype, how, ranks: [self.columns.rank(), self.run.rank(), self.places.rank()], to, idx, order, from, next };
        Launch { op, bindings, numbers, groups: groups_for(count) }.run(self.x.buffer.context(), &kernel)
    }
}

#[derive(Debug, Hash)]
struct SegmentRound {
    dtype: DType,
    how: Write,
    ranks: [u32; 3],
    to: u32,
    idx: u32,
    order: Option<u32>,
    from: Option<u32>,
    /// Keys and values for the next round.
    next: Option<(u32, u32)>,
}

impl WordKernel for SegmentRound {
    const KIND: &'static str = "index_runs";

    fn body(&self, p: &mut ParamNames) -> String {
        let (width, to, idx) = (words(self.dtype), self.to, self.idx);
        let [count, entries, columns, first, source, low, high, id_low, id_high] = p.many();
        let column = p.walk(self.ranks[0], "c", &["x0", "s0"]);
        let run = p.walk(self.ranks[1], "k", &["s"]);
        let place = p.walk(self.ranks[2], "run", &["x"]);
        let t = wgsl_type(width);
        let same = source_value(None, width, &id_low, &id_high);
        let element = source_value(self.from, width, &low, &high);
        let (key, value) = match self.order {
            Some(o) => (format!("b{idx}[b{o}[j]]"), format!("let k = b{o}[j]; var s = s0;\n{run}return {element};\n")),
            None => (format!("b{idx}[j]"), format!("let s = j * {columns} + c;\nreturn {element};\n")),
        };
        let (old, put) = (load(to, width, "x"), store(to, width, "x", "v"));
        let hand_on = match self.next {
            Some((k, v)) => format!(
                "if (c == 0u) {{ b{k}[2u * chunk] = head_key; b{k}[2u * chunk + 1u] = tail_key; }}\n{}{}",
                store(v, width, &format!("2u * chunk * {columns} + c"), "head"),
                store(v, width, &format!("(2u * chunk + 1u) * {columns} + c"), "tail")
            ),
            None => String::new(),
        };
        combine(self.dtype, self.how)
            + &format!(
                "fn key_at(j: u32) -> u32 {{ return {key}; }}
fn value_at(j: u32, s0: u32, c: u32) -> {t} {{
{value}}}
fn leave(run: u32, x0: u32, sum: {t}) {{
if (run == {NONE}) {{ return; }}
var x = x0;
{place}let v = combine({old}, sum);
{put}}}
"
            )
            + &each(
                &count,
                &format!(
                    "let chunk = e / {columns}; let c = e % {columns};
var x0 = {first}; var s0 = {source};
{column}let begin = chunk * {CHUNK}u; let end = min(begin + {CHUNK}u, {entries});
var run = key_at(begin); var sum = value_at(begin, s0, c);
var open = begin > 0u && key_at(select(begin - 1u, 0u, begin == 0u)) == run;
var head_key = {NONE}; var head = {same}; var tail_key = {NONE}; var tail = {same};
for (var j = begin + 1u; j < end; j++) {{
let k = key_at(j);
if (k == run) {{ sum = combine(sum, value_at(j, s0, c)); continue; }}
if (open) {{ head_key = run; head = sum; open = false; }} else {{ leave(run, x0, sum); }}
run = k; sum = value_at(j, s0, c);
}}
let goes_on = end < {entries} && key_at(min(end, {entries} - 1u)) == run;
if (open) {{ head_key = run; head = sum; if (goes_on) {{ tail_key = run; }} }}
else if (goes_on) {{ tail_key = run; tail = sum; }}
else {{ leave(run, x0, sum); }}
{hand_on}"
                ),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::on_device() {
            for how in [Write::Add, Write::Multiply] {
                for (order, from, next) in
                    [(Some(2), Some(3), Some((4, 5))), (Some(2), None, None), (None, Some(3), Some((4, 5))), (None, Some(3), None)]
                {
                    let writes = 1 | if next.is_some() { 0x30 } else { 0 };
                    validate(&SegmentRound { dtype, how, ranks: [2, 1, 2], to: 0, idx: 1, order, from, next }, writes);
                }
            }
        }
    }
}
