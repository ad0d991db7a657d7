//! The forms of a product without workgroup memory: one invocation, or one workgroup, for each result.

use super::super::elem::{narrowed, value, zero};
use super::{ConvFactors, ConvNames};
use crate::backend::wgpu::common::word_kernels::{GROUP, ParamNames, WordKernel, each, groups, store_real};
use crate::layout::DType;

/// Statements that find where group `g`, row `m` and column `n` begin.
fn place(n: &ConvNames) -> String {
    format!(
        "let here = column(n);
let from_left = {left} + g * {left_group} + m * {left_row};
let from_gathered = {gathered} + g * {gathered_group};
",
        left = n.starts[0],
        left_group = n.between[0],
        left_row = n.row[0],
        gathered = n.starts[1],
        gathered_group = n.between[1],
    )
}

/// A statement that writes `sum` to row `m`.
fn put(f: &ConvFactors, n: &ConvNames) -> String {
    let at = format!("{} + g * {} + m * {} + column_to(n)", n.starts[3], n.between[2], n.row[1]);
    let total = f.plus("sum", &format!("bias_of(g * {} + m)", n.rows));
    let total = match f.dtype {
        DType::U8 => format!("(({total}) & 255u)"),
        d => narrowed(d, &format!("({total})")),
    };
    format!("let total = {total};\n{}", store_real(f.dtype, f.to, &at, "total"))
}

/// One invocation for some rows of a column. Loops over channels and taps keep the places, which costs no division.
#[derive(Debug, Hash)]
pub(super) struct ConvEach {
    pub factors: ConvFactors,
    pub rows: usize,
}

impl WordKernel for ConvEach {
    const KIND: &'static str = "conv_each";

    fn body(&self, p: &mut ParamNames) -> String {
        let (f, n) = (&self.factors, ConvFactors::names(p));
        let (w, first, together) = (&n.sum, f.first(), self.rows);
        let (mut loops, mut ends) = (format!("for (var lead = 0u; lead < {}; lead++) {{\n", w.lead), "}\n".to_owned());
        let (mut coordinates, mut at) = (["0".to_owned(), "0".to_owned(), "0".to_owned()], format!("{} + lead * {}", w.place, w.other));
        for (d, coordinate) in coordinates.iter_mut().enumerate().skip(first) {
            loops += &format!("for (var q{d} = 0u; q{d} < {}; q{d}++) {{\n", w.sizes[d]);
            ends += "}\n";
            *coordinate = format!("bitcast<i32>(q{d} * {} + {})", w.steps[d], w.starts[d]);
            at += &format!(" + q{d} * {}", w.places[d]);
        }
        let [a, b, c] = coordinates;
        let mut sums = String::new();
        let mut adds = format!(
            "let v = gathered(here + vec4<i32>({a}, {b}, {c}, bitcast<i32>(lead * {})), from_gathered);\nlet at = from_left + {at};\n",
            w.gathered
        );
        let mut puts = String::new();
        for r in 0..together {
            sums += &format!("var sum{r} = {};\n", zero(f.dtype));
            // A row too many is one that is read in vain.
            let row = format!("at + min({r}u, last) * {}", n.row[0]);
            adds += &format!("sum{r} = {};\n", f.plus_product(&format!("sum{r}"), &f.load(f.left, &row), "v"));
            puts += &format!("if ({r}u <= last) {{ let m = m + {r}u; let sum = sum{r};\n{}}}\n", put(f, &n));
        }
        let body = format!(
            "let blocks = ({rows} + {most}u) / {together}u;
let n = e % {columns}; let m = ((e / {columns}) % blocks) * {together}u; let g = e / ({columns} * blocks);
let last = min({most}u, {rows} - 1u - m);
{}{sums}{loops}{adds}{ends}{puts}",
            place(&n),
            rows = n.rows,
            most = together - 1,
            columns = n.columns,
        );
        let count = format!("{} * (({} + {}u) / {together}u) * {}", n.groups, n.rows, together - 1, n.columns);
        f.functions(&n) + &each(&count, &body)
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
        let left = f.load(f.left, "from_left + term_left(k)");
        let add = format!("sum = {};\n", f.plus_product("sum", &left, "gathered(here + term(k), from_gathered)"));
        let body = format!(
            "let e = group;
if (e >= {groups} * {rows} * {columns}) {{ return; }}
let n = e % {columns}; let m = (e / {columns}) % {rows}; let g = e / ({columns} * {rows});
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
            add = add,
            half = GROUP / 2,
            both = f.plus("parts[lane]", "parts[lane + half]"),
            put = put(f, &n),
        );
        format!("var<workgroup> parts: array<{t}, {GROUP}>;\n") + &f.functions(&n) + &groups(GROUP, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64] {
            for (dims, rows, bias) in [(1, 1, None), (2, 4, Some(2)), (3, 2, None), (3, 3, Some(2))] {
                let factors = ConvFactors { dtype, dims, left: 0, gathered: 1, bias, to: 3 };
                validate(&ConvEach { factors, rows }, 8);
                validate(&ConvSum { factors }, 8);
            }
        }
    }
}
