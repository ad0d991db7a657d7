//! Argsort of keys: a stable radix sort of the numbers 0..n by their keys, four bits at a time.
//!
//! Each pass counts the digits of a tile, computes prefix sums of the counts, and writes each number to its new position. Within a tile an
//! invocation owns neighbouring entries and a counter for each digit, so the result does not depend on the order of invocations.

use crate::backend::wgpu::common::prefix_sum::{exclusive, sum_before};
use crate::backend::wgpu::common::word_kernels::{Launch, ParamNames, ParamValues, WordKernel, groups, scratch};
use crate::backend::wgpu::{Bindings, Buffer, Context};
use crate::error::Result;
use std::sync::Arc;

const LANES: usize = 128;
/// Entries of one invocation.
const OWN: usize = 8;
const TILE: usize = LANES * OWN;
const DIGITS: usize = 16;

/// A part of the sort key.
#[derive(Clone, Copy)]
pub(crate) enum Digits<'a> {
    /// The lowest `bits` of word `word` of each entry's key of `words` words.
    Key { keys: &'a Buffer, words: usize, word: usize, bits: u32 },
    /// The row of `length` entries that an entry stands in.
    Row { length: usize, bits: u32 },
}

/// The numbers 0..n in the order of their digits; the last of `digits` decides first.
pub(crate) fn order(context: &Arc<Context>, op: &'static str, n: usize, digits: &[Digits<'_>]) -> Result<Buffer> {
    let mut from: Option<Buffer> = None;
    let mut to = scratch(context, n)?;
    for d in digits {
        let (Digits::Key { bits, .. } | Digits::Row { bits, .. }) = *d;
        for shift in (0..bits).step_by(4) {
            pass(context, op, n, from.as_ref(), &to, *d, shift)?;
            let next = match from.take() {
                Some(b) => b,
                None => scratch(context, n)?,
            };
            from = Some(std::mem::replace(&mut to, next));
        }
    }
    Ok(from.unwrap_or(to))
}

/// One pass from an order (0..n without one) to the next.
fn pass(context: &Arc<Context>, op: &'static str, n: usize, from: Option<&Buffer>, to: &Buffer, d: Digits<'_>, shift: u32) -> Result<()> {
    let tiles = n.div_ceil(TILE);
    let counts = scratch(context, DIGITS * tiles)?;
    for moves in [false, true] {
        let mut bindings = Bindings::new();
        let hist = if moves { bindings.read(&counts) } else { bindings.write(&counts) };
        let from = from.map(|f| bindings.read(f));
        let to = moves.then(|| bindings.write(to));
        let (keys, length) = match d {
            Digits::Key { keys, words, word, .. } => (Some((bindings.read(keys), words, word)), 0),
            Digits::Row { length, .. } => (None, length),
        };
        let numbers = ParamValues::default().push(n).push(tiles).word(shift).push(length);
        Launch { op, bindings, numbers, groups: tiles }.run(context, &RadixPass { hist, from, to, keys })?;
        if !moves {
            exclusive(context, op, &counts, DIGITS * tiles)?;
        }
    }
    Ok(())
}

/// Counts digits or, with `to`, moves the entries.
#[derive(Debug, Hash)]
struct RadixPass {
    hist: u32,
    /// None: the entries are 0, 1, 2, ...
    from: Option<u32>,
    to: Option<u32>,
    /// The keys' binding, their words, and which of them counts; None for rows.
    keys: Option<(u32, usize, usize)>,
}

impl WordKernel for RadixPass {
    const KIND: &'static str = "radix";

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, tiles, shift, length] = p.many();
        let hist = self.hist;
        let entry = self.from.map_or("j".to_string(), |f| format!("b{f}[j]"));
        let looked_up = match self.keys {
            Some((b, words, word)) => format!("b{b}[v * {words}u + {word}u]"),
            None => format!("(v / {length})"),
        };
        let count = format!(
            "let first = group * {TILE}u + lane * {OWN}u;
let end = min(first + {OWN}u, {n});
for (var d = 0u; d < {DIGITS}u; d++) {{ counts[d * {LANES}u + lane] = 0u; }}
for (var j = first; j < end; j++) {{ counts[digit({entry}) * {LANES}u + lane]++; }}
workgroupBarrier();
"
        );
        let before = sum_before(LANES);
        let then = match self.to {
            None => format!(
                "if (lane < {DIGITS}u && group < {tiles}) {{
var sum = 0u;
for (var i = 0u; i < {LANES}u; i++) {{ sum += counts[lane * {LANES}u + i]; }}
b{hist}[lane * {tiles} + group] = sum;
}}
"
            ),
            Some(to) => format!(
                "var total = 0u;
for (var i = lane * {DIGITS}u; i < (lane + 1u) * {DIGITS}u; i++) {{ total += counts[i]; }}
{before}for (var i = lane * {DIGITS}u; i < (lane + 1u) * {DIGITS}u; i++) {{ let c = counts[i]; counts[i] = sum; sum += c; }}
workgroupBarrier();
if (lane < {DIGITS}u) {{ starts[lane] = counts[lane * {LANES}u]; }}
workgroupBarrier();
for (var j = first; j < end; j++) {{
let v = {entry}; let d = digit(v); let rank = counts[d * {LANES}u + lane];
counts[d * {LANES}u + lane] = rank + 1u;
b{to}[b{hist}[d * {tiles} + group] + rank - starts[d]] = v;
}}
"
            ),
        };
        format!(
            "var<workgroup> counts: array<u32, {}>;
var<workgroup> sums: array<u32, {LANES}>;
var<workgroup> starts: array<u32, {DIGITS}>;
fn digit(v: u32) -> u32 {{ return ({looked_up} >> {shift}) & {}u; }}
",
            DIGITS * LANES,
            DIGITS - 1
        ) + &groups(LANES, &(count + &then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for from in [None, Some(1)] {
            for to in [None, Some(2)] {
                for keys in [None, Some((3, 1, 0)), Some((3, 2, 1))] {
                    validate(&RadixPass { hist: 0, from, to, keys }, if to.is_some() { 4 } else { 1 });
                }
            }
        }
    }
}
