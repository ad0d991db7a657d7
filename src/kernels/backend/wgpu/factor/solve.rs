//! Substitutions with triangular matrices, on some columns of a right side.

use super::{BARRIER, COLUMNS, Swaps};
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, groups};

/// A triangular matrix that is part of another one, or of its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TriangularPart {
    pub upper: bool,
    /// The diagonal counts as ones.
    pub unit: bool,
    pub transposed: bool,
}

#[derive(Debug, Hash)]
pub(super) struct SolveKernel {
    pub lanes: usize,
    /// The matrices in the order in which they are solved with.
    pub parts: [Option<TriangularPart>; 2],
    pub swaps: Swaps,
    pub factors: u32,
    /// None: the identity.
    pub right: Option<u32>,
    pub pivots: Option<u32>,
    /// Where this is not 0, the result is infinite.
    pub info: Option<u32>,
    pub to: u32,
    pub rank: u32,
}

impl WordKernel for SolveKernel {
    const KIND: &'static str = "triangular_solve";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, chunks, n, k, from, rs, cs, right_at, right_rs, right_cs, pivots_at, pivot_step, info_at, to_at] = p.many();
        let walk = p.walk(self.rank, "number", &["ia", "ib", "ip"]);
        let (lanes, f, x) = (self.lanes, self.factors, self.to);
        let value = match self.right {
            Some(b) => format!("b{b}[ib + i * {right_rs} + (first + c) * {right_cs}]"),
            None => "select(0u, 0x3f800000u, i == first + c)".to_owned(),
        };
        let at = |i: &str| format!("at + ({i}) * {k} + c");
        let swap = |order: &str| match self.pivots {
            Some(b) => format!(
                "for (var c = lane; c < width; c += {lanes}u) {{\nfor (var s = 0u; s < {n}; s += 1u) {{\nlet i = {order};\n\
                 let other = b{b}[ip + i * {pivot_step}] - 1u;\n\
                 if (other < {n}) {{ let v = b{x}[{i}]; b{x}[{i}] = b{x}[{o}]; b{x}[{o}] = v; }}\n}}\n}}\n{BARRIER}",
                i = at("i"),
                o = at("other"),
            ),
            None => String::new(),
        };
        let mut solve = String::new();
        if self.swaps == Swaps::Before {
            solve += &swap("s");
        }
        for part in self.parts.into_iter().flatten() {
            let element = |i: &str, j: &str| {
                let (i, j) = if part.transposed { (j, i) } else { (i, j) };
                format!("bitcast<f32>(b{f}[ia + {i} * {rs} + {j} * {cs}])")
            };
            let divide = if part.unit {
                String::new()
            } else {
                format!(
                    "for (var c = lane; c < width; c += {lanes}u) {{ b{x}[{0}] = bitcast<u32>(bitcast<f32>(b{x}[{0}]) / {1}); }}\n{BARRIER}",
                    at("j"),
                    element("j", "j")
                )
            };
            let (j, row) = if part.upper { (format!("{n} - 1u - s"), "e / width") } else { ("s".to_owned(), "j + 1u + e / width") };
            solve += &format!(
                "for (var s = 0u; s < {n}; s += 1u) {{\nlet j = {j};\n{divide}\
                 for (var e = lane; e < ({n} - 1u - s) * width; e += {lanes}u) {{\nlet i = {row}; let c = e % width;\n\
                 b{x}[{xi}] = bitcast<u32>(bitcast<f32>(b{x}[{xi}]) - {tij} * bitcast<f32>(b{x}[{xj}]));\n}}\n{BARRIER}}}\n",
                xi = at("i"),
                xj = at("j"),
                tij = element("i", "j"),
            );
        }
        if self.swaps == Swaps::After {
            solve += &swap(&format!("{n} - 1u - s"));
        }
        let infinite = match self.info {
            Some(b) => format!(
                "if (b{b}[{info_at} + number] != 0u) {{\nfor (var e = lane; e < {n} * width; e += {lanes}u) {{ let i = e / width; let c = e % width; \
                 b{x}[{}] = 0x7f800000u; }}\n}}\n",
                at("i")
            ),
            None => String::new(),
        };
        let main = format!(
            "let number = group / {chunks}; let first = (group % {chunks}) * {COLUMNS}u;\n\
             let width = min({COLUMNS}u, {k} - first);\n\
             var ia = {from}; var ib = {right_at}; var ip = {pivots_at};\n{walk}\
             let at = {to_at} + number * {n} * {k} + first;\n\
             for (var e = lane; e < {n} * width; e += {lanes}u) {{ let i = e / width; let c = e % width; b{x}[{}] = {value}; }}\n{BARRIER}{solve}{infinite}",
            at("i")
        );
        groups(lanes, &format!("if (group < {count}) {{\n{main}}}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        let part = |upper, unit, transposed| Some(TriangularPart { upper, unit, transposed });
        for (parts, swaps, right) in [
            ([part(false, true, false), part(true, false, false)], Swaps::Before, None),
            ([part(false, false, true), part(true, true, true)], Swaps::After, Some(1)),
            ([part(true, false, false), None], Swaps::Never, Some(1)),
        ] {
            let pivots = (swaps != Swaps::Never).then_some(2);
            validate(&SolveKernel { lanes: 64, parts, swaps, factors: 0, right, pivots, info: pivots.map(|_| 3), to: 4, rank: 2 }, 16);
        }
    }
}
