//! LU and Cholesky factors, and determinants.

use super::BARRIER;
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, each, groups};

/// LU factors with rows swapped, if wanted, so that pivots are the largest of their columns. A pivot of 0 is left out.
#[derive(Debug, Hash)]
pub(super) struct LuKernel {
    pub lanes: usize,
    pub pivot: bool,
    pub rank: u32,
    /// The matrices, the factors, the pivots, and the first pivots that are 0.
    pub slots: [u32; 4],
}

impl WordKernel for LuKernel {
    const KIND: &'static str = "lu";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, m, n, from, rs, cs, to, pivots_at, info_at] = p.many();
        let walk = p.walk(self.rank, "number", &["ia", "ib", "ip"]);
        let (lanes, [x, f, pivots, info]) = (self.lanes, self.slots);
        // Sizes are compared by their bits, nan as the largest.
        let search = if self.pivot {
            let mut merge = String::new();
            let mut half = lanes / 2;
            while half > 0 {
                merge += &format!(
                    "if (lane < {half}u) {{ if (sizes[lane + {half}u] > sizes[lane] || (sizes[lane + {half}u] == sizes[lane] && rows[lane + {half}u] < rows[lane])) \
                     {{ sizes[lane] = sizes[lane + {half}u]; rows[lane] = rows[lane + {half}u]; }} }}\nworkgroupBarrier();\n"
                );
                half /= 2;
            }
            format!(
                "var size = 0u; var row = {m};\n\
                 for (var i = k + lane; i < {m}; i += {lanes}u) {{\n\
                 let s = b{f}[at + i * {n} + k] & 0x7fffffffu;\n\
                 if (row == {m} || s > size) {{ size = s; row = i; }}\n}}\n\
                 sizes[lane] = size; rows[lane] = row;\nworkgroupBarrier();\n{merge}\
                 let best = rows[0];\nif (best != k) {{\n\
                 for (var j = lane; j < {n}; j += {lanes}u) {{\n\
                 let a = b{f}[at + k * {n} + j]; b{f}[at + k * {n} + j] = b{f}[at + best * {n} + j]; b{f}[at + best * {n} + j] = a;\n}}\n}}\n"
            )
        } else {
            "let best = k;\n".to_owned()
        };
        let (element, word) = (|i: &str, j: &str| format!("bitcast<f32>(b{f}[at + {i} * {n} + {j}])"), "bitcast<u32>");
        let main = format!(
            "let number = min(group, {count} - 1u);\nvar ia = {from}; var ib = 0u; var ip = 0u;\n{walk}\
             let at = {to} + number * {m} * {n};\nlet least = min({m}, {n});\n\
             for (var e = lane; e < {m} * {n}; e += {lanes}u) {{ b{f}[at + e] = b{x}[ia + (e / {n}) * {rs} + (e % {n}) * {cs}]; }}\n{BARRIER}\
             var failed = 0u;\n\
             for (var k = 0u; k < least; k += 1u) {{\n{search}\
             if (lane == 0u) {{ b{pivots}[{pivots_at} + number * least + k] = best + 1u; }}\n{BARRIER}\
             let d = {dkk};\nlet there = (bitcast<u32>(d) & 0x7fffffffu) != 0u;\n\
             if (!there && failed == 0u) {{ failed = k + 1u; }}\n\
             if (there) {{ for (var i = k + 1u + lane; i < {m}; i += {lanes}u) {{ b{f}[at + i * {n} + k] = {word}({aik} / d); }} }}\n{BARRIER}\
             let width = max({n}, k + 1u) - (k + 1u);\n\
             if (there) {{ for (var e = lane; e < ({m} - k - 1u) * width; e += {lanes}u) {{\n\
             let i = k + 1u + e / width; let j = k + 1u + e % width;\n\
             b{f}[at + i * {n} + j] = {word}({aij} - {aik} * {akj});\n}} }}\n{BARRIER}}}\n\
             if (lane == 0u) {{ b{info}[{info_at} + number] = failed; }}\n",
            dkk = element("k", "k"),
            aik = element("i", "k"),
            aij = element("i", "j"),
            akj = element("k", "j"),
        );
        let room = if self.pivot {
            format!("var<workgroup> sizes: array<u32, {lanes}>;\nvar<workgroup> rows: array<u32, {lanes}>;\n")
        } else {
            String::new()
        };
        room + &groups(lanes, &format!("if (group < {count}) {{\n{main}}}\n"))
    }
}

/// The lower factor, or its transpose.
#[derive(Debug, Hash)]
pub(super) struct CholeskyKernel {
    pub lanes: usize,
    pub upper: bool,
    pub rank: u32,
    /// The matrices, the factors, and the orders of the first minors that are not positive.
    pub slots: [u32; 3],
}

impl WordKernel for CholeskyKernel {
    const KIND: &'static str = "cholesky";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, n, from, rs, cs, to, info_at] = p.many();
        let walk = p.walk(self.rank, "number", &["ia", "ib", "ip"]);
        let (lanes, [x, f, info]) = (self.lanes, self.slots);
        let place = |i: &str, j: &str| if self.upper { format!("at + {j} * {n} + {i}") } else { format!("at + {i} * {n} + {j}") };
        let element = |i: &str, j: &str| format!("bitcast<f32>(b{f}[{}])", place(i, j));
        let (own, jj, ij) = (place("i", "c"), place("j", "j"), place("i", "j"));
        let copy = format!(
            "for (var e = lane; e < {n} * {n}; e += {lanes}u) {{\nlet i = e / {n}; let c = e % {n};\n\
             var v = 0u;\nif (c <= i) {{ v = b{x}[ia + i * {rs} + c * {cs}]; }}\nb{f}[{own}] = v;\n}}\n"
        );
        let main = format!(
            "let number = min(group, {count} - 1u);\nvar ia = {from}; var ib = 0u; var ip = 0u;\n{walk}\
             let at = {to} + number * {n} * {n};\n{copy}{BARRIER}\
             var failed = 0u;\n\
             for (var j = 0u; j < {n}; j += 1u) {{\n\
             let d = b{f}[{jj}];\n\
             // Neither 0 nor negative nor nan.
             if (failed == 0u && (d == 0u || d > 0x7f800000u)) {{ failed = j + 1u; }}\n\
             let r = sqrt(bitcast<f32>(select(d, 0x3f800000u, failed != 0u)));\n\
             if (failed == 0u) {{ for (var i = j + 1u + lane; i < {n}; i += {lanes}u) {{ b{f}[{ij}] = bitcast<u32>({lij} / r); }} }}\n{BARRIER}\
             let rest = {n} - 1u - j;\n\
             if (failed == 0u) {{\nif (lane == 0u) {{ b{f}[{jj}] = bitcast<u32>(r); }}\n\
             for (var e = lane; e < rest * rest; e += {lanes}u) {{\nlet i = j + 1u + e / rest; let c = j + 1u + e % rest;\n\
             if (c <= i) {{ b{f}[{own}] = bitcast<u32>({lic} - {lij} * {lcj}); }}\n}}\n}}\n{BARRIER}}}\n\
             if (failed != 0u) {{\n{copy}}}\n\
             if (lane == 0u) {{ b{info}[{info_at} + number] = failed; }}\n",
            lij = element("i", "j"),
            lic = element("i", "c"),
            lcj = element("c", "j"),
        );
        groups(lanes, &format!("if (group < {count}) {{\n{main}}}\n"))
    }
}

/// The product of the pivots, or its sign and the logarithm of its size; one invocation for each matrix.
#[derive(Debug, Hash)]
pub(super) struct DeterminantKernel {
    /// Factors, pivots, the determinant or its sign.
    pub slots: [u32; 3],
    pub size: Option<u32>,
}

impl WordKernel for DeterminantKernel {
    const KIND: &'static str = "determinant";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, n, from, pivots_at, to, size_at, zero] = p.many();
        let [f, pivots, out] = self.slots;
        let (step, end) = match self.size {
            None => ("product *= d;\n".to_owned(), String::new()),
            Some(size) => (
                "if ((bitcast<u32>(d) & 0x7fffffffu) == 0u) { product = 0.0; } else if (bitcast<u32>(d) >= 0x80000000u) { product = -product; }\n\
                 if (f32_is_nan(d)) { product = d; }\nsum += f32_log(abs(d));\n"
                    .to_owned(),
                format!("b{size}[{size_at} + e] = bitcast<u32>(sum);\n"),
            ),
        };
        each(
            &count,
            &format!(
                "unknown = {zero};\nvar product = 1.0; var sum = 0.0;\n\
                 for (var i = 0u; i < {n}; i += 1u) {{\n\
                 if (b{pivots}[{pivots_at} + e * {n} + i] != i + 1u) {{ product = -product; }}\n}}\n\
                 for (var i = 0u; i < {n}; i += 1u) {{\n\
                 let d = bitcast<f32>(b{f}[{from} + (e * {n} + i) * {n} + i]);\n{step}}}\n\
                 b{out}[{to} + e] = bitcast<u32>(product);\n{end}"
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
        for choice in [false, true] {
            validate(&LuKernel { lanes: 64, pivot: choice, rank: 2, slots: [0, 1, 2, 3] }, 14);
            validate(&CholeskyKernel { lanes: 256, upper: choice, rank: 1, slots: [0, 1, 2] }, 6);
            validate(&DeterminantKernel { slots: [0, 1, 2], size: choice.then_some(3) }, 12);
        }
    }
}
