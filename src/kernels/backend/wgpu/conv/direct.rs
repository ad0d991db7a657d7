//! The forms of a product without workgroup memory: one invocation, or one workgroup, for each result.

use super::super::wgsl::types::{narrowed, value, zero};
use super::super::word_kernels::{GROUP, ParamNames, WordKernel, each, groups, store_real};
use super::{ConvFactors, ConvNames};
use crate::layout::DType;

/// Statements that find group `g`, row `m` and column `n` of result `e`.
fn place(n: &ConvNames) -> String {
    format!(
        "let n = e % {columns}; let m = (e / {columns}) % {rows}; let g = e / ({columns} * {rows});
let here = column(n);
let from_left = {left} + g * {left_group} + m * {left_row};
let from_gathered = {gathered} + g * {gathered_group};
",
        columns = n.columns,
        rows = n.rows,
        left = n.starts[0],
        left_group = n.between[0],
        left_row = n.row[0],
        gathered = n.starts[1],
        gathered_group = n.between[1],
    )
}

/// A statement that adds the product of term `k` to `sum`.
fn add(f: &ConvFactors) -> String {
    let left = f.load(f.left, "from_left + term_left(k)");
    let product = f.plus_product("sum", &left, "gathered(here + term(k), from_gathered)");
    format!("sum = {product};\n")
}

/// A statement that writes `sum`.
fn put(f: &ConvFactors, n: &ConvNames) -> String {
    let at = format!("{} + g * {} + m * {} + column_to(n)", n.starts[3], n.between[2], n.row[1]);
    let total = f.plus("sum", &format!("bias_of(g * {} + m)", n.rows));
    let total = match f.dtype {
        DType::U8 => format!("(({total}) & 255u)"),
        d => narrowed(d, &format!("({total})")),
    };
    format!("let total = {total};\n{}", store_real(f.dtype, f.to, &at, "total"))
}

/// One invocation for each result.
#[derive(Debug, Hash)]
pub(super) struct ConvEach {
    pub factors: ConvFactors,
}

impl WordKernel for ConvEach {
    const KIND: &'static str = "conv_each";

    fn body(&self, p: &mut ParamNames) -> String {
        let (f, n) = (&self.factors, ConvFactors::names(p));
        let loops = format!("var sum = {};\nfor (var k = 0u; k < {}; k += 1u) {{\n{}}}\n", zero(f.dtype), n.along, add(f));
        let count = format!("{} * {} * {}", n.groups, n.rows, n.columns);
        f.functions(&n) + &each(&count, &(place(&n) + &loops + &put(f, &n)))
    }
}

/// One workgroup for each result: its invocations add up every 256th product, and then their sums.
#[derive(Debug, Hash)]
pub(super) struct ConvSum {
    pub factors: ConvFactors,
}

impl WordKernel for ConvSum {
    const KIND: &'static str = "conv_sum";

    fn body(&self, p: &mut ParamNames) -> String {
        let (f, n) = (&self.factors, ConvFactors::names(p));
        let t = value(f.dtype);
        let body = format!(
            "let e = group;
if (e >= {groups} * {rows} * {columns}) {{ return; }}
{place}var sum = {zero};
for (var k = lane; k < {along}; k += {GROUP}u) {{
{add}}}
parts[lane] = sum;
workgroupBarrier();
for (var half = {half}u; half > 0u; half /= 2u) {{
if (lane < half) {{ parts[lane] = {both}; }}
workgroupBarrier();
}}
sum = parts[0];
if (lane == 0u) {{
{put}}}
",
            groups = n.groups,
            rows = n.rows,
            columns = n.columns,
            along = n.along,
            place = place(&n),
            zero = zero(f.dtype),
            add = add(f),
            half = GROUP / 2,
            both = f.plus("parts[lane]", "parts[lane + half]"),
            put = put(f, &n),
        );
        format!("var<workgroup> parts: array<{t}, {GROUP}>;\n") + &f.functions(&n) + &groups(GROUP, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::word_kernels::validate;
    use super::*;

    #[test]
    fn every_shader_is_valid() {
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64] {
            for (dims, divides, bias) in [(1, false, None), (2, true, Some(2)), (3, true, None), (3, false, Some(2))] {
                let factors = ConvFactors { dtype, dims, divides, left: 0, gathered: 1, bias, to: 3 };
                validate(&ConvEach { factors }, 8);
                validate(&ConvSum { factors }, 8);
            }
        }
    }
}
