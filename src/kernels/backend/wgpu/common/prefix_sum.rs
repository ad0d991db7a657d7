//! Exclusive prefix sums of counts, a building block of other kernels. No step waits for another workgroup.

use super::word_kernels::{Launch, ParamNames, ParamValues, WordKernel, groups, scratch};
use crate::backend::wgpu::{Bindings, Buffer, Context};
use crate::error::Result;
use std::sync::Arc;

/// Invocations of a workgroup of `exclusive`, and counts that each of them handles.
const LANES: usize = 256;
const OWN: usize = 4;

/// Replaces each of `n` counts by the sum of all before it, in place.
pub(in crate::backend::wgpu) fn exclusive(context: &Arc<Context>, op: &'static str, counts: &Buffer, n: usize) -> Result<()> {
    let tiles = n.div_ceil(LANES * OWN);
    let sums = scratch(context, tiles)?;
    let mut bindings = Bindings::new();
    bindings.write(counts);
    bindings.write(&sums);
    let numbers = ParamValues::default().push(n);
    Launch { op, bindings, numbers, groups: tiles }.run(context, &SumTile)?;
    if tiles == 1 {
        return Ok(());
    }
    exclusive(context, op, &sums, tiles)?;
    let mut bindings = Bindings::new();
    bindings.write(counts);
    bindings.read(&sums);
    let numbers = ParamValues::default().push(n);
    Launch { op, bindings, numbers, groups: tiles }.run(context, &AddTileOffsets)
}

/// Adds the sum of all earlier tiles to a tile.
#[derive(Debug, Hash)]
struct AddTileOffsets;

impl WordKernel for AddTileOffsets {
    const KIND: &'static str = "prefix_add";

    fn body(&self, p: &mut ParamNames) -> String {
        let n = p.next();
        let tile = LANES * OWN;
        groups(
            LANES,
            &format!(
                "let first = group * {tile}u + lane * {OWN}u;
for (var j = first; j < min(first + {OWN}u, {n}); j++) {{ b0[j] += b1[group]; }}
"
            ),
        )
    }
}

/// Sums within a tile, and the tile's own sum.
#[derive(Debug, Hash)]
struct SumTile;

impl WordKernel for SumTile {
    const KIND: &'static str = "prefix_tile";

    fn body(&self, p: &mut ParamNames) -> String {
        let n = p.next();
        let (tile, before) = (LANES * OWN, sum_before(LANES));
        format!("var<workgroup> sums: array<u32, {LANES}>;\n")
            + &groups(
                LANES,
                &format!(
                    "let first = group * {tile}u + lane * {OWN}u;
var own: array<u32, {OWN}>; var total = 0u;
for (var i = 0u; i < {OWN}u; i++) {{
if (first + i < {n}) {{ own[i] = b0[first + i]; }}
total += own[i];
}}
{before}for (var i = 0u; i < {OWN}u; i++) {{
if (first + i < {n}) {{ b0[first + i] = sum; }}
sum += own[i];
}}
if (lane == {LANES}u - 1u && group * {tile}u < {n}) {{ b1[group] = sum; }}
"
                ),
            )
    }
}

/// Statements after which `sum` is what the lanes below this one have as `total` together; `sums` is an array of the workgroup, one `u32`
/// for each of its lanes.
pub(in crate::backend::wgpu) fn sum_before(lanes: usize) -> String {
    format!(
        "sums[lane] = total;
workgroupBarrier();
for (var step = 1u; step < {lanes}u; step *= 2u) {{
var before = 0u;
if (lane >= step) {{ before = sums[lane - step]; }}
workgroupBarrier();
sums[lane] += before;
workgroupBarrier();
}}
var sum = sums[lane] - total;
"
    )
}

#[cfg(test)]
mod tests {
    use super::super::word_kernels::validate;
    use super::*;

    #[test]
    fn every_shader_is_valid() {
        validate(&SumTile, 3);
        validate(&AddTileOffsets, 1);
    }
}
