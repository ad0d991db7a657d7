//! For each query the sum of products of gradient and result. Neighbouring invocations read neighbouring numbers of a row. It takes a
//! quarter of an operation for each byte, all from memory.

use super::{AttentionNames, AttentionOperands};
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, groups, store_real};

/// Invocations that share a query.
const SHARE: usize = 16;
/// Queries of a workgroup.
pub(super) const ALONG_QUERIES: usize = 16;

/// The sums in float32.
#[derive(Debug, Hash)]
pub(super) struct AttentionAlong {
    pub operands: AttentionOperands,
}

impl WordKernel for AttentionAlong {
    const KIND: &'static str = "attention_along";

    fn body(&self, p: &mut ParamNames) -> String {
        let a = &self.operands;
        let names = a.names(p);
        let AttentionNames { count, heads, l, to, .. } = &names;
        let mut body = format!(
            "let e = group * {ALONG_QUERIES}u + lane / {SHARE}u;\n\
             var sum = 0.0;\n\
             if (e < {count}) {{\n\
             let i = e % {l}; let h = (e / {l}) % {heads}; let b = e / {l} / {heads};\n\
             let go = g_row(b, h, i); let oo = v_row(b, h, i);\n\
             for (var c = lane % {SHARE}u; c < {}u; c += {SHARE}u) {{ sum += g_at(go, c) * v_at(oo, c); }}\n}}\n\
             sums[lane] = sum;\nworkgroupBarrier();\n",
            a.ev
        );
        let mut half = SHARE / 2;
        while half > 0 {
            // Every invocation adds, so that none writes what its neighbour reads; those of the first place have the sum.
            body += &format!("sum += sums[lane ^ {half}u];\nworkgroupBarrier();\nsums[lane] = sum;\nworkgroupBarrier();\n");
            half /= 2;
        }
        body += &format!("if (lane % {SHARE}u == 0u && e < {count}) {{ {} }}\n", store_real(a.real, a.to, &format!("{to} + e"), "sum"));
        let size = SHARE * ALONG_QUERIES;
        format!("{}var<workgroup> sums: array<f32, {size}>;\n{}", a.functions(&names), groups(size, &body))
    }
}
