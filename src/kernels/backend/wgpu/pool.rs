//! Pooling, and windows as columns: one dispatch for each pass, one invocation for each element of the result. The passes that write the
//! input's elements look for the windows that an element is in; so nothing is added atomically, and the result is the same every time.
//! All arrays are row-major.

use super::elem::value;
use super::sort::ordered;
use super::{Bindings, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load, load_real, number_words, store, store_real,
    unsupported, wgsl_type, words,
};
use crate::backend::wgpu::cumulative_extreme::nan;
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Family, Pool, PoolDivisor, PoolPass, WindowAxis};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// Which divisor the code is for; a fixed one is a parameter.
#[derive(Debug, Clone, Copy, Hash)]
enum CountedTaps {
    Inside,
    Padded,
    Fixed,
}

#[derive(Debug, Clone, Copy, Hash)]
enum PoolCode {
    /// Bindings of the positions, if they are written, and of where windows begin, if that is given.
    Max {
        indices: Option<u32>,
        starts: Option<u32>,
    },
    MaxAdjoint {
        indices: u32,
    },
    Average(CountedTaps),
    AverageAdjoint(CountedTaps),
    Unfold,
    Fold,
}

#[derive(Debug, Hash)]
struct PoolKernel {
    dtype: DType,
    code: PoolCode,
    adaptive: [bool; 3],
    from: u32,
    to: u32,
}

const AXES: [&str; 3] = ["d", "h", "w"];

impl PoolKernel {
    /// Constants and functions of the three axes: where a window begins, how many positions it has, which windows an element is in.
    fn functions(&self, p: &mut ParamNames) -> String {
        let mut s = String::new();
        for (a, adaptive) in AXES.iter().zip(self.adaptive) {
            let [input, output, kernel, stride, pad, dilation]: [String; 6] = p.many();
            let (start, count, first, last) = if adaptive {
                (
                    format!("i32(share(o, {output}, {input}))"),
                    format!("{input} - share({output} - 1u - o, {output}, {input}) - share(o, {output}, {input})"),
                    format!("share(i, {input}, {output})"),
                    format!("{output} - share({input} - 1u - i, {input}, {output})"),
                )
            } else {
                (
                    format!("i32(o * {stride}) - i32({pad})"),
                    kernel.clone(),
                    format!(
                        "select(0u, (i + {pad} - ({kernel} - 1u) * {dilation} + {stride} - 1u) / {stride}, i + {pad} > ({kernel} - 1u) * {dilation})"
                    ),
                    format!("min((i + {pad}) / {stride} + 1u, {output})"),
                )
            };
            s += &format!(
                "fn {a}_input() -> u32 {{ return {input}; }}
fn {a}_output() -> u32 {{ return {output}; }}
fn {a}_kernel() -> u32 {{ return {kernel}; }}
fn {a}_start(o: u32) -> i32 {{ return {start}; }}
fn {a}_count(o: u32) -> u32 {{ return {count}; }}
fn {a}_step() -> i32 {{ return i32({dilation}); }}
fn {a}_first(i: u32) -> u32 {{ return {first}; }}
fn {a}_last(i: u32) -> u32 {{ return {last}; }}
fn {a}_has(o: u32, i: u32) -> bool {{ return (i + {pad} - o * {stride}) % {dilation} == 0u; }}
fn {a}_window(i: u32, k: u32) -> u32 {{
let at = i + {pad}; let before = k * {dilation};
if (at < before || (at - before) % {stride} != 0u || (at - before) / {stride} >= {output}) {{ return 0xffffffffu; }}
return (at - before) / {stride};
}}
fn {a}_inside(o: u32) -> u32 {{
var n = 0u;
for (var k = 0u; k < {a}_count(o); k++) {{ if (u32({a}_start(o) + i32(k) * {a}_step()) < {input}) {{ n++; }} }}
return n;
}}
fn {a}_padded(o: u32) -> u32 {{ return min({a}_count(o), u32(max(i32({input} + {pad}) - {a}_start(o), 0))); }}
"
            );
        }
        s + "fn share(at: u32, parts: u32, size: u32) -> u32 { return at * (size / parts) + at * (size % parts) / parts; }\n"
    }

    /// Statements that take an element's number `e` apart: its place along each axis, named with `prefix`, and the plane.
    fn apart(sizes: &str, prefix: &str) -> String {
        format!(
            "let {prefix}w = e % w_{sizes}();
let {prefix}h = (e / w_{sizes}()) % h_{sizes}();
let {prefix}d = (e / (w_{sizes}() * h_{sizes}())) % d_{sizes}();
let plane = e / (w_{sizes}() * h_{sizes}() * d_{sizes}());
"
        )
    }

    /// The function that gives what the sum of a window is divided by.
    fn divisor(&self, counted: CountedTaps, fixed: &[String; 2]) -> String {
        let t = value(self.dtype);
        // A count fits 31 bits.
        let of = |n: &str| if self.dtype == DType::I64 { format!("vec2<u32>({n}, 0u)") } else { format!("{t}({n})") };
        let body = match counted {
            CountedTaps::Inside => of("max(d_inside(od) * h_inside(oh) * w_inside(ow), 1u)"),
            CountedTaps::Padded => of("max(d_padded(od) * h_padded(oh) * w_padded(ow), 1u)"),
            CountedTaps::Fixed => super::elem::from_words(self.dtype, &fixed[0], &fixed[1]),
        };
        format!("fn divisor(od: u32, oh: u32, ow: u32) -> {t} {{ return {body}; }}\n")
    }
}

/// A loop over the elements of window (od, oh, ow) that lie inside: the element is `at` in its plane.
fn over_elements(body: &str) -> String {
    let mut open = String::new();
    for a in AXES {
        open += &format!(
            "for (var k{a} = 0u; k{a} < n{a}; k{a}++) {{
let i{a} = u32(s{a} + i32(k{a}) * {a}_step());
if (i{a} >= {a}_input()) {{ continue; }}
"
        );
    }
    format!("{open}let at = (id * h_input() + ih) * w_input() + iw;\n{body}}}}}}}\n")
}

/// A loop over the windows that reach over element (id, ih, iw) of a plane: `window` is the window's number among all.
fn over_windows(body: &str) -> String {
    let mut open = String::new();
    for a in AXES {
        open += &format!("for (var o{a} = {a}_first(i{a}); o{a} < {a}_last(i{a}); o{a}++) {{\n");
    }
    format!("{open}let window = ((plane * d_output() + od) * h_output() + oh) * w_output() + ow;\n{body}}}}}}}\n")
}

impl WordKernel for PoolKernel {
    const KIND: &'static str = "pool";

    fn body(&self, p: &mut ParamNames) -> String {
        let functions = self.functions(p);
        let [count, start, to_start, second, third]: [String; 5] = p.many();
        let number: [String; 2] = p.many();
        let (width, t, dtype) = (words(self.dtype), value(self.dtype), self.dtype);
        let plane = "plane * d_input() * h_input() * w_input()";
        let spans = |a: &str| format!("let s{a} = {a}_start(o{a}); let n{a} = {a}_count(o{a});\n");
        let tail = match self.code {
            PoolCode::Max { indices, starts } => {
                let begins = match starts {
                    None => AXES.map(spans).concat(),
                    Some(b) => {
                        let mut s = "let row = plane * (d_output() + h_output() + w_output());\n".to_owned();
                        for (a, before) in AXES.iter().zip(["0u", "d_output()", "d_output() + h_output()"]) {
                            s += &format!(
                                "let s{a} = clamp(bitcast<i32>(b{b}[({third} + row + {before} + o{a}) * 2u]), 0, i32({a}_input() - {a}_kernel()));
let n{a} = {a}_kernel();
"
                            );
                        }
                        s
                    }
                };
                let better = if width == 2 { "k.y > top.y || (k.y == top.y && k.x > top.x)" } else { "k > top" };
                let look = format!(
                    "let v = {};
let k = ordered(v);
if (!found || {better} || {}) {{ best = v; top = k; place = at; found = true; }}
",
                    load(self.from, width, &format!("{start} + {plane} + at")),
                    nan(dtype)
                );
                let put = store(self.to, width, &format!("{to_start} + e"), "best");
                let put_at = indices.map_or(String::new(), |b| store(b, 2, &format!("{second} + e"), "vec2<u32>(place, 0u)"));
                let least = if width == 2 { format!("vec2<u32>({}, {})", number[0], number[1]) } else { number[0].clone() };
                let word = wgsl_type(width);
                ordered(dtype, false)
                    + &each(
                        &count,
                        &format!(
                            "{}{begins}var best = {least}; var top = {word}(); var place = 0u; var found = false;\n{}{put}{put_at}",
                            Self::apart("output", "o"),
                            over_elements(&look)
                        ),
                    )
            }
            PoolCode::MaxAdjoint { indices } => {
                let look = format!(
                    "if (b{indices}[({second} + window) * 2u] == own) {{ sum += {}; }}\n",
                    load_real(dtype, self.from, &format!("{start} + window"))
                );
                each(
                    &count,
                    &format!(
                        "{}let own = (id * h_input() + ih) * w_input() + iw;\nvar sum = {t}();\n{}{}",
                        Self::apart("input", "i"),
                        over_windows(&look),
                        store_real(dtype, self.to, &format!("{to_start} + e"), "sum")
                    ),
                )
            }
            PoolCode::Average(counted) => {
                let read = load_real(dtype, self.from, &format!("{start} + {plane} + at"));
                let (look, mean) = if dtype == DType::I64 {
                    (format!("sum = i64_add(sum, {read});\n"), "i64_div_trunc(sum, divisor(od, oh, ow))")
                } else {
                    (format!("sum += {read};\n"), "sum / divisor(od, oh, ow)")
                };
                self.divisor(counted, &number)
                    + &each(
                        &count,
                        &format!(
                            "{}{}var sum = {t}();\n{}let mean = {mean};\n{}",
                            Self::apart("output", "o"),
                            AXES.map(spans).concat(),
                            over_elements(&look),
                            store_real(dtype, self.to, &format!("{to_start} + e"), "mean")
                        ),
                    )
            }
            PoolCode::AverageAdjoint(counted) => {
                let has = AXES
                    .iter()
                    .zip(self.adaptive)
                    .filter(|(_, adaptive)| !adaptive)
                    .map(|(a, _)| format!(" && {a}_has(o{a}, i{a})"))
                    .collect::<String>();
                let look = format!(
                    "if (true{has}) {{ sum += {} / divisor(od, oh, ow); }}\n",
                    load_real(dtype, self.from, &format!("{start} + window"))
                );
                self.divisor(counted, &number)
                    + &each(
                        &count,
                        &format!(
                            "{}var sum = {t}();\n{}{}",
                            Self::apart("input", "i"),
                            over_windows(&look),
                            store_real(dtype, self.to, &format!("{to_start} + e"), "sum")
                        ),
                    )
            }
            PoolCode::Unfold => {
                let word = wgsl_type(width);
                let read = load(self.from, width, &format!("{start} + plane * d_input() * h_input() * w_input() + at"));
                each(
                    &count,
                    &format!(
                        "let ow = e % w_output();
let oh = (e / w_output()) % h_output();
let od = (e / (w_output() * h_output())) % d_output();
let column = e / (w_output() * h_output() * d_output());
let id = u32(d_start(od) + i32((column / (w_kernel() * h_kernel())) % d_kernel()) * d_step());
let ih = u32(h_start(oh) + i32((column / w_kernel()) % h_kernel()) * h_step());
let iw = u32(w_start(ow) + i32(column % w_kernel()) * w_step());
let plane = column / (w_kernel() * h_kernel() * d_kernel());
var v = {word}();
if (id < d_input() && ih < h_input() && iw < w_input()) {{
let at = (id * h_input() + ih) * w_input() + iw;
v = {read};
}}
{}",
                        store(self.to, width, &format!("{to_start} + e"), "v")
                    ),
                )
            }
            PoolCode::Fold => {
                let mut open = String::new();
                for a in AXES {
                    open += &format!(
                        "for (var k{a} = 0u; k{a} < {a}_kernel(); k{a}++) {{
let o{a} = {a}_window(i{a}, k{a});
if (o{a} == 0xffffffffu) {{ continue; }}
"
                    );
                }
                let column = "((plane * d_kernel() + kd) * h_kernel() + kh) * w_kernel() + kw";
                let read =
                    load_real(dtype, self.from, &format!("{start} + ((({column}) * d_output() + od) * h_output() + oh) * w_output() + ow"));
                each(
                    &count,
                    &format!(
                        "{}var sum = {t}();\n{open}sum += {read};\n}}}}}}\n{}",
                        Self::apart("input", "i"),
                        store_real(dtype, self.to, &format!("{to_start} + e"), "sum")
                    ),
                )
            }
        };
        functions + &tail
    }
}

/// What no element is smaller than.
fn lowest(dtype: DType) -> Scalar {
    if dtype.is_float() { Scalar::Float(f64::NEG_INFINITY) } else { Scalar::Int(dtype.integers().map_or(0, |(low, _)| low)) }
}

/// Whether the shaders' 32-bit arithmetic holds for an axis.
fn fits(a: &WindowAxis) -> bool {
    let sides = if a.adaptive { a.output.max(a.input).checked_mul(a.output.max(a.input)) } else { Some(0) };
    let reach =
        a.output.checked_mul(a.stride).and_then(|n| n.checked_add(a.kernel.checked_mul(a.dilation)?)).and_then(|n| n.checked_add(a.input));
    sides.is_some_and(|n| n <= u32::MAX as usize) && reach.and_then(|n| n.checked_add(a.pad)).is_some_and(|n| n <= i32::MAX as usize)
}

/// Runs a request.
pub fn pool(p: &Pool, ins: &[BufferView<'_>], outs: &[BufferView<'_>]) -> Result<()> {
    let (out, dtype) = (outs[0], outs[0].dtype);
    let takes_integers =
        matches!(p.pass, PoolPass::Max { .. } | PoolPass::Unfold) || matches!(p.pass, PoolPass::Average(_)) && dtype == DType::I64;
    if !takes_integers && !dtype.is_float() {
        return Err(unsupported(p.op, dtype));
    }
    let places = match p.pass {
        PoolPass::Max { .. } => outs.get(1),
        PoolPass::MaxAdjoint => ins.get(1),
        _ => None,
    };
    if places.is_some_and(|v| v.dtype == DType::U8) {
        return Err(Error::not_implemented(format!("{}: places inside windows are not supported on wgpu", p.op)));
    }
    if !p.axes.iter().all(fits) {
        return Err(Error::not_implemented(format!("{}: windows of these sizes are not supported on wgpu; use .cpu()", p.op)));
    }
    let count = countable(p.op, out.shape)?;
    for x in ins {
        countable(p.op, x.shape)?;
    }
    let mut bindings = Bindings::new();
    let (from, to) = (bindings.read(ins[0].buffer), bindings.write(out.buffer));
    let (mut second, mut third) = (0, 0);
    let counted = |divisor: PoolDivisor| match divisor {
        PoolDivisor::Inside => CountedTaps::Inside,
        PoolDivisor::Padded => CountedTaps::Padded,
        PoolDivisor::Fixed(_) => CountedTaps::Fixed,
    };
    let mut number = 0;
    let code = match p.pass {
        PoolPass::Max { indices, given } => {
            number = number_words(lowest(dtype), dtype);
            let indices = indices.then(|| {
                second = outs[1].offset;
                bindings.write(outs[1].buffer)
            });
            let starts = given.then(|| {
                third = ins[1].offset;
                bindings.read(ins[1].buffer)
            });
            PoolCode::Max { indices, starts }
        }
        PoolPass::MaxAdjoint => {
            second = ins[1].offset;
            PoolCode::MaxAdjoint { indices: bindings.read(ins[1].buffer) }
        }
        PoolPass::Average(divisor) | PoolPass::AverageAdjoint(divisor) => {
            if let PoolDivisor::Fixed(n) = divisor {
                number = number_words(Scalar::Int(n), dtype);
            }
            if let PoolPass::Average(_) = p.pass { PoolCode::Average(counted(divisor)) } else { PoolCode::AverageAdjoint(counted(divisor)) }
        }
        PoolPass::Unfold => PoolCode::Unfold,
        PoolPass::Fold => PoolCode::Fold,
    };
    let mut numbers = ParamValues::default();
    for a in &p.axes {
        numbers = numbers.push(a.input).push(a.output).push(a.kernel).push(a.stride).push(a.pad).push(a.dilation);
    }
    let numbers = numbers.push(count).push(ins[0].offset).push(out.offset).push(second).push(third).long(number);
    let kernel = PoolKernel { dtype, code, adaptive: p.axes.map(|a| a.adaptive), from, to };
    Launch { op: p.op, bindings, numbers, groups: groups_for(count) }.run(out.buffer.context(), &kernel)
}

impl WgpuFamily for Pool {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(p: &Pool, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 2]>>>()?;
        let to = (0..p.outputs()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 2]>>>()?;
        pool(p, &from, &to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        let taps = [CountedTaps::Inside, CountedTaps::Padded, CountedTaps::Fixed];
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied().filter(|d| !d.is_half()) {
            for adaptive in [false, true] {
                let check = |code: PoolCode, writes: u32| {
                    validate(&PoolKernel { dtype, code, adaptive: [adaptive; 3], from: 0, to: 1 }, writes);
                };
                check(PoolCode::Max { indices: Some(2), starts: None }, 6);
                check(PoolCode::Max { indices: None, starts: Some(2) }, 2);
                check(PoolCode::Unfold, 2);
                if dtype == DType::I64 {
                    for t in taps {
                        check(PoolCode::Average(t), 2);
                    }
                }
                if dtype.is_float() {
                    check(PoolCode::MaxAdjoint { indices: 2 }, 2);
                    check(PoolCode::Fold, 2);
                    for t in taps {
                        check(PoolCode::Average(t), 2);
                        check(PoolCode::AverageAdjoint(t), 2);
                    }
                }
            }
        }
    }
}
