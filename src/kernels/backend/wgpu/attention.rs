//! Scaled dot-product attention. An invocation has one query (backward, for the gradients of keys and values, one key) and goes through the
//! keys it attends to (the queries that attend to it), with the softmax as a running maximum and sum. Neighbouring invocations read the same
//! keys at the same time. Of long rows, results are made a part at a time.

use super::answer::{foreign, operand, output};
use super::wgsl::types::value;
use super::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load_real, number_words, scratch, store_real, unsupported,
    words,
};
use super::{Bindings, Buffer, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::requests::{Attention, AttentionPass, AttentionShape};
use crate::error::Result;
use crate::layout::{DType, Layout};

/// Numbers of a result that an invocation makes at once.
const PART: usize = 128;

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
}

#[derive(Debug, Clone, Copy, Hash)]
struct AttentionShader {
    result: AttentionResult,
    real: DType,
    e: usize,
    ev: usize,
    causal: bool,
    heads_inside: bool,
    /// q, k, v, g, logarithms, `Along`.
    from: [Option<u32>; 6],
    mask: Option<(u32, DType)>,
    to: u32,
    lse: Option<u32>,
}

const NAMES: [&str; 6] = ["q", "k", "v", "g", "lse", "along"];

impl WordKernel for AttentionShader {
    const KIND: &'static str = "attention";

    fn body(&self, p: &mut ParamNames) -> String {
        let t = value(self.real);
        let [count, heads, kv_heads, l, s, scale, scale_high, zero, to, to_lse] = p.many();
        let scale = super::wgsl::types::from_words(self.real, &scale, &scale_high);
        let mut text = String::new();
        for (name, slot) in NAMES.iter().zip(self.from) {
            let [start, b, h, i, c] = p.many();
            let Some(slot) = slot else { continue };
            let load = load_real(self.real, slot, &format!("o + c * {c}"));
            text += &format!(
                "fn {name}_row(b: u32, h: u32, i: u32) -> u32 {{ return {start} + b * {b} + h * {h} + i * {i}; }}\n\
                 fn {name}_at(o: u32, c: u32) -> {t} {{ return {load}; }}\n"
            );
        }
        let lowest = if self.real == DType::F64 { "-0x1p+1023lf" } else { "-0x1p+127f" };
        let [start, mb, mh, mi, mj] = p.many();
        let mask = match self.mask {
            None => String::new(),
            Some((slot, d)) => {
                let at = format!("{start} + b * {mb} + h * {mh} + i * {mi} + j * {mj}");
                if d == DType::Bool {
                    format!("if (b{slot}[{at}] == 0u) {{ return {lowest}; }}\n")
                } else {
                    format!("extra = {};\n", load_real(d, slot, &at))
                }
            }
        };
        let reads = self.result.reads();
        if reads[0] {
            text += &format!(
                "fn score(qo: u32, ko: u32, b: u32, h: u32, i: u32, j: u32) -> {t} {{\n\
                 var extra = {t}();\n{mask}var sum = {t}();\n\
                 for (var c = 0u; c < {}u; c++) {{ sum += q_at(qo, c) * k_at(ko, c); }}\n\
                 return sum * {scale} + extra;\n}}\n",
                self.e
            );
        }
        let columns = match self.result {
            AttentionResult::Forward | AttentionResult::ValueGradient => self.ev,
            AttentionResult::QueryGradient | AttentionResult::KeyGradient => self.e,
            AttentionResult::Along => 1,
        };
        let part = columns.clamp(1, PART);
        let end = if self.causal { format!("min({s}, i + 1u)") } else { s.clone() };
        let first = if self.causal { "j" } else { "0u" };
        let by_query =
            format!("let i = e % {l}; let h = (e / {l}) % {heads}; let b = e / {l} / {heads}; let kh = h / ({heads} / {kv_heads});\n");
        let by_key = format!("let j = e % {s}; let kh = (e / {s}) % {kv_heads}; let b = e / {s} / {kv_heads};\n");
        let sums = format!(
            "for (var c0 = 0u; c0 < {columns}u; c0 += {part}u) {{\n\
             let n = min({part}u, {columns}u - c0);\n\
             var acc = array<{t}, {part}>();\n"
        );
        let put = |at: &str, v: &str| {
            let put = store_real(self.real, self.to, &format!("{to} + {at} * {columns}u + c0 + c"), v);
            format!("for (var c = 0u; c < n; c++) {{ {put} }}\n}}\n")
        };
        // The weight `w` of a pair, and the gradient `slope` of its score.
        let weight = format!("if (x <= {lowest}) {{ continue; }}\nlet w = {t}_exp(x - lse_at(lse_row(b, h, i), 0u));\n");
        let slope = format!(
            "var dw = {t}();\nfor (var c = 0u; c < {}u; c++) {{ dw += g_at(go, c) * v_at(vo, c); }}\n\
             let slope = w * (dw - along_at(along_row(b, h, i), 0u)) * {scale};\n",
            self.ev
        );
        let body = match self.result {
            AttentionResult::Forward => {
                let lse = self.lse.map_or(String::new(), |slot| {
                    store_real(
                        self.real,
                        slot,
                        &format!("{to_lse} + (b * {l} + i) * {heads} + h"),
                        &format!("select(top + {t}_log(safe), {t}(), total == {t}())"),
                    )
                });
                let row = if self.heads_inside { format!("((b * {l} + i) * {heads} + h)") } else { "e".to_owned() };
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
                    put(&row, "acc[c] / safe")
                )
            }
            AttentionResult::Along => format!(
                "{by_query}let go = g_row(b, h, i); let oo = v_row(b, h, i);\nvar sum = {t}();\n\
                 for (var c = 0u; c < {}u; c++) {{ sum += g_at(go, c) * v_at(oo, c); }}\n{}",
                self.ev,
                store_real(self.real, self.to, &format!("{to} + e"), "sum")
            ),
            AttentionResult::QueryGradient => format!(
                "{by_query}let qo = q_row(b, h, i); let go = g_row(b, h, i);\n{sums}\
                 for (var j = 0u; j < {end}; j++) {{\n\
                 let ko = k_row(b, kh, j); let vo = v_row(b, kh, j);\n\
                 let x = score(qo, ko, b, h, i, j);\n{weight}{slope}\
                 for (var c = 0u; c < n; c++) {{ acc[c] += slope * k_at(ko, c0 + c); }}\n}}\n{}",
                put(&format!("((b * {l} + i) * {heads} + h)"), "acc[c]")
            ),
            AttentionResult::KeyGradient | AttentionResult::ValueGradient => {
                let of_keys = self.result == AttentionResult::KeyGradient;
                let (rows, slope) = if of_keys { ("let vo = v_row(b, kh, j);\n", slope.as_str()) } else { ("", "") };
                let add = if of_keys { "slope * q_at(qo, c0 + c)" } else { "w * g_at(go, c0 + c)" };
                format!(
                    "{by_key}let ko = k_row(b, kh, j);\n{rows}{sums}\
                     for (var h = kh * ({heads} / {kv_heads}); h < (kh + 1u) * ({heads} / {kv_heads}); h++) {{\n\
                     for (var i = {first}; i < {l}; i++) {{\n\
                     let qo = q_row(b, h, i); let go = g_row(b, h, i);\n\
                     let x = score(qo, ko, b, h, i, j);\n{weight}{slope}\
                     for (var c = 0u; c < n; c++) {{ acc[c] += {add}; }}\n}}\n}}\n{}",
                    put(&format!("((b * {s} + j) * {kv_heads} + kh)"), "acc[c]")
                )
            }
        };
        text + &each(&count, &format!("unknown = {zero};\n{body}"))
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
        let by_key = matches!(result, AttentionResult::KeyGradient | AttentionResult::ValueGradient);
        let count = countable(op, &if by_key { [batch, kv_heads, s] } else { [batch, heads, l] })?;
        let mut bindings = Bindings::new();
        let slot = bindings.write(to.0);
        let lse_slot = lse.map(|(b, _)| bindings.write(b));
        let mut from = [None; 6];
        for ((slot, view), read) in from.iter_mut().zip(&self.from).zip(result.reads()) {
            *slot = view.as_ref().filter(|_| read).map(|v| bindings.read(v.buffer));
        }
        let mask = self.mask.filter(|_| result.reads()[0]).map(|m| (bindings.read(m.buffer), m.dtype));
        let mut numbers = ParamValues::default()
            .push(count)
            .push(heads)
            .push(kv_heads)
            .push(l)
            .push(s)
            .long(number_words(self.a.scale, self.real))
            .push(0)
            .push(to.1)
            .push(lse.map_or(0, |l| l.1));
        for view in self.from.iter().chain([&self.mask]) {
            let Some(v) = view else {
                numbers = numbers.push(0).push(0).push(0).push(0).push(0);
                continue;
            };
            super::strided::check(op, v)?;
            numbers = numbers.push(v.offset);
            for d in 0..4 {
                numbers = numbers.push(v.strides.get(d).map_or(0, |s| *s as usize));
            }
        }
        let heads_inside = self.a.heads_inside;
        let kernel =
            AttentionShader { result, real: self.real, e, ev, causal: self.a.causal, heads_inside, from, mask, to: slot, lse: lse_slot };
        Launch { op, bindings, numbers, groups: groups_for(count) }.run(to.0.context(), &kernel)
    }
}

/// Runs a pass. Outputs are row-major.
pub(super) fn attention(a: &Attention, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::super::word_kernels::validate;
    use super::*;

    #[test]
    fn shaders_are_valid() {
        let all = [
            AttentionResult::Forward,
            AttentionResult::Along,
            AttentionResult::QueryGradient,
            AttentionResult::KeyGradient,
            AttentionResult::ValueGradient,
        ];
        for result in all {
            for real in [DType::F32, DType::F64] {
                for mask in [None, Some((7, DType::Bool)), Some((7, real))] {
                    let forward = result == AttentionResult::Forward;
                    let from = [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)];
                    let kernel = AttentionShader {
                        result,
                        real,
                        e: 3,
                        ev: 5,
                        causal: true,
                        heads_inside: true,
                        from,
                        mask,
                        to: 0,
                        lse: forward.then_some(1),
                    };
                    let from = if forward { [Some(2), Some(3), Some(4), None, None, None] } else { from };
                    validate(&AttentionShader { from, ..kernel }, if forward { 3 } else { 1 });
                }
            }
        }
    }
}
