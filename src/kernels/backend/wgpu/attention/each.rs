//! One invocation has one query (for the gradients of keys and values one key) and goes through its pairs alone. Neighbouring invocations
//! read the same keys at the same time. Of long rows, results are made a part at a time. A pair takes about a quarter of an operation for
//! each byte, which comes from caches at best.

use super::super::elem::value;
use super::{AttentionNames, AttentionOperands, AttentionResult};
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, each, store_real};

/// Numbers of a result that an invocation makes at once.
const PART: usize = 128;

#[derive(Debug, Hash)]
pub(super) struct AttentionEach {
    pub operands: AttentionOperands,
}

impl WordKernel for AttentionEach {
    const KIND: &'static str = "attention";

    fn body(&self, p: &mut ParamNames) -> String {
        let a = &self.operands;
        let names = a.names(p);
        let t = value(a.real);
        let mut text = a.functions(&names);
        let (lowest, mask, columns) = (a.lowest(), a.masked(&names), a.width());
        let AttentionNames { count, heads, kv_heads, l, s, scale, zero, to, to_lse, .. } = &names;
        let row = a.row_of_result(&names);
        if a.result.reads()[0] {
            text += &format!(
                "fn score(qo: u32, ko: u32, b: u32, h: u32, i: u32, j: u32) -> {t} {{\n\
                 var extra = {t}();\n{mask}var sum = {t}();\n\
                 for (var c = 0u; c < {}u; c++) {{ sum += q_at(qo, c) * k_at(ko, c); }}\n\
                 return sum * {scale} + extra;\n}}\n",
                a.e
            );
        }
        let part = columns.clamp(1, PART);
        let end = if a.causal { format!("min({s}, i + 1u)") } else { s.clone() };
        let first = if a.causal { "j" } else { "0u" };
        let by_query =
            format!("let i = e % {l}; let h = (e / {l}) % {heads}; let b = e / {l} / {heads}; let kh = h / ({heads} / {kv_heads});\n");
        let by_key = format!("let j = e % {s}; let kh = (e / {s}) % {kv_heads}; let b = e / {s} / {kv_heads};\n");
        let sums = format!(
            "for (var c0 = 0u; c0 < {columns}u; c0 += {part}u) {{\n\
             let n = min({part}u, {columns}u - c0);\n\
             var acc = array<{t}, {part}>();\n"
        );
        let put = |v: &str| {
            let put = store_real(a.real, a.to, &format!("{to} + {row} * {columns}u + c0 + c"), v);
            format!("for (var c = 0u; c < n; c++) {{ {put} }}\n}}\n")
        };
        // The weight `w` of a pair, and the gradient `slope` of its score.
        let weight = format!("if (x <= {lowest}) {{ continue; }}\nlet w = {t}_exp(x - lse_at(lse_row(b, h, i), 0u));\n");
        let slope = format!(
            "var dw = {t}();\nfor (var c = 0u; c < {}u; c++) {{ dw += g_at(go, c) * v_at(vo, c); }}\n\
             let slope = w * (dw - along_at(along_row(b, h, i), 0u)) * {scale};\n",
            a.ev
        );
        let body = match a.result {
            AttentionResult::Forward => {
                let lse = a.lse.map_or(String::new(), |slot| {
                    store_real(
                        a.real,
                        slot,
                        &format!("{to_lse} + (b * {l} + i) * {heads} + h"),
                        &format!("select(top + {t}_log(safe), {t}(), total == {t}())"),
                    )
                });
                format!(
                    "{by_query}let qo = q_row(b, h, i);\n{sums}\
                     var top = {t}({lowest}); var total = {t}();\n\
                     for (var j = 0u; j < {end}; j++) {{\n\
                     let x = score(qo, k_row(b, kh, j), b, h, i, j);\n\
                     if (x <= {lowest}) {{ continue; }}\n\
                     if (x > top) {{\n\
                     let less = {t}_exp(top - x);\ntop = x; total *= less;\n\
                     for (var c = 0u; c < n; c++) {{ acc[c] *= less; }}\n}}\n\
                     let w = {t}_exp(x - top);\ntotal += w;\nlet vo = v_row(b, kh, j);\n\
                     for (var c = 0u; c < n; c++) {{ acc[c] += w * v_at(vo, c0 + c); }}\n}}\n\
                     let safe = select(total, {t}(1), total == {t}());\n\
                     if (c0 == 0u) {{ {lse} }}\n{}",
                    put("acc[c] / safe")
                )
            }
            AttentionResult::Along => format!(
                "{by_query}let go = g_row(b, h, i); let oo = v_row(b, h, i);\nvar sum = {t}();\n\
                 for (var c = 0u; c < {}u; c++) {{ sum += g_at(go, c) * v_at(oo, c); }}\n{}",
                a.ev,
                store_real(a.real, a.to, &format!("{to} + e"), "sum")
            ),
            AttentionResult::QueryGradient => format!(
                "{by_query}let qo = q_row(b, h, i); let go = g_row(b, h, i);\n{sums}\
                 for (var j = 0u; j < {end}; j++) {{\n\
                 let ko = k_row(b, kh, j); let vo = v_row(b, kh, j);\n\
                 let x = score(qo, ko, b, h, i, j);\n{weight}{slope}\
                 for (var c = 0u; c < n; c++) {{ acc[c] += slope * k_at(ko, c0 + c); }}\n}}\n{}",
                put("acc[c]")
            ),
            AttentionResult::KeyGradient | AttentionResult::ValueGradient => {
                let of_keys = a.result == AttentionResult::KeyGradient;
                let (rows, slope) = if of_keys { ("let vo = v_row(b, kh, j);\n", slope.as_str()) } else { ("", "") };
                let add = if of_keys { "slope * q_at(qo, c0 + c)" } else { "w * g_at(go, c0 + c)" };
                format!(
                    "{by_key}let ko = k_row(b, kh, j);\n{rows}{sums}\
                     for (var h = kh * ({heads} / {kv_heads}); h < (kh + 1u) * ({heads} / {kv_heads}); h++) {{\n\
                     for (var i = {first}; i < {l}; i++) {{\n\
                     let qo = q_row(b, h, i); let go = g_row(b, h, i);\n\
                     let x = score(qo, ko, b, h, i, j);\n{weight}{slope}\
                     for (var c = 0u; c < n; c++) {{ acc[c] += {add}; }}\n}}\n}}\n{}",
                    put("acc[c]")
                )
            }
        };
        text + &each(count, &format!("unknown = {zero};\n{body}"))
    }
}
