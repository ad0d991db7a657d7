//! Layer, group and batch norm. One workgroup for each mean: it adds up its elements twice (for the mean, and for distances from it), and
//! writes the results. The gradients of weight and bias take one workgroup for each channel. All arrays are row-major.
//!
//! Each element is read two or three times and takes about ten operations: the kernels are bound by memory.

use super::wgsl::types::{from_words, value};
use super::word_kernels::{
    GROUP, Launch, ParamNames, ParamValues, WordKernel, countable, each, groups, groups_for, load_real, number_words, store_real,
    unsupported,
};
use super::{Bindings, BufferView};
use crate::backend::requests::{Norm, NormPass, NormShape};
use crate::error::Result;
use crate::layout::DType;
use smallvec::SmallVec;

/// Bindings: the input (or the gradient), x, means, reciprocals of deviations, weights, biases. None: not read.
#[derive(Debug, Clone, Copy, Hash)]
struct NormReads {
    real: DType,
    across: bool,
    g: Option<u32>,
    x: u32,
    mean: Option<u32>,
    rstd: Option<u32>,
    weight: Option<u32>,
    bias: Option<u32>,
}

/// The names of parameters that all kernels here have.
struct NormNames {
    sizes: [String; 4],
    /// First elements of `g`, `x`, `mean`, `rstd`, `weight`, `bias`.
    starts: [String; 6],
}

impl NormReads {
    fn names(p: &mut ParamNames) -> NormNames {
        NormNames { sizes: p.many(), starts: p.many() }
    }

    fn load(&self, binding: Option<u32>, start: &str, at: &str, or: &str) -> String {
        binding.map_or(format!("{}({or})", value(self.real)), |b| load_real(self.real, b, &format!("{start} + {at}")))
    }

    /// Functions of an element's place: `g_at`, `x_at`; of a mean's number: `mean_of`, `rstd_of`; of a channel: `weight_of`, `bias_of`.
    fn functions(&self, n: &NormNames) -> String {
        let t = value(self.real);
        let [g, x, mean, rstd, weight, bias] = &n.starts;
        [
            ("g_at", self.g, g, "0"),
            ("x_at", Some(self.x), x, "0"),
            ("mean_of", self.mean, mean, "0"),
            ("rstd_of", self.rstd, rstd, "1"),
            ("weight_of", self.weight, weight, "1"),
            ("bias_of", self.bias, bias, "0"),
        ]
        .iter()
        .map(|(f, b, start, or)| format!("fn {f}(i: u32) -> {t} {{ return {}; }}\n", self.load(*b, start, "i", or)))
        .collect()
    }

    /// Statements that find the place `at` and the channel `c` of element `e` of mean `i`.
    fn place(&self, n: &NormNames) -> String {
        let [_, groups, channels, inner] = &n.sizes;
        if self.across {
            format!("let at = ((e / {inner}) * {groups} + i) * {inner} + e % {inner}; let c = i;\n")
        } else {
            format!("let at = i * ({channels} * {inner}) + e; let c = (i % {groups}) * {channels} + e / {inner};\n")
        }
    }

    fn count(&self, n: &NormNames) -> String {
        let [outer, _, channels, inner] = &n.sizes;
        if self.across { format!("({outer} * {inner})") } else { format!("({channels} * {inner})") }
    }

    fn stats(&self, n: &NormNames) -> String {
        let [outer, groups, ..] = &n.sizes;
        if self.across { groups.clone() } else { format!("({outer} * {groups})") }
    }

    /// Adds `summand` (two values) of all elements to the variable `sum`, in which every invocation finds the total.
    fn sums(&self, n: &NormNames, count: &str, place: &str, summand: &str) -> String {
        let (t, _) = (value(self.real), n);
        format!(
            "sum = vec2<{t}>();
for (var e = lane; e < {count}; e += {GROUP}u) {{
{place}sum += {summand};
}}
parts[lane] = sum;
workgroupBarrier();
for (var half = {}u; half > 0u; half /= 2u) {{
if (lane < half) {{ parts[lane] += parts[lane + half]; }}
workgroupBarrier();
}}
sum = parts[0];
workgroupBarrier();
",
            GROUP / 2
        )
    }

    fn declarations(&self, n: &NormNames) -> String {
        format!("var<workgroup> parts: array<vec2<{}>, {GROUP}>;\n", value(self.real)) + &self.functions(n)
    }
}

#[derive(Debug, Hash)]
struct NormForward {
    reads: NormReads,
    /// Results, means, reciprocals of deviations, variances.
    to: [u32; 4],
    variances: bool,
}

impl WordKernel for NormForward {
    const KIND: &'static str = "norm_forward";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let [eps, eps_high, zero, to, to_mean, to_rstd, to_var] = p.many();
        let (t, count, place) = (value(r.real), r.count(&n), r.place(&n));
        let eps = from_words(r.real, &eps, &eps_high);
        let put = |b: usize, at: &str, v: &str| store_real(r.real, self.to[b], at, v);
        let first = r.sums(&n, &count, &place, &format!("vec2<{t}>(x_at(at) - shift, {t}())"));
        let second = r.sums(&n, &count, &place, "distances(x_at(at) - mean)");
        let var = if self.variances { put(3, &format!("{to_var} + i"), "variance") } else { String::new() };
        r.declarations(&n)
            + &format!("fn distances(d: {t}) -> vec2<{t}> {{ return vec2<{t}>(d, d * d); }}\n")
            + &groups(
                GROUP,
                &format!(
                    "unknown = {zero};
if (group >= {stats}) {{ return; }}
let i = group;
var sum = vec2<{t}>();
var shift = {t}();
{{ let e = 0u; {place} shift = x_at(at); }}
let n = {t}({count});
{first}let mean = shift + sum.x / n;
{second}let rest = sum.x / n;
let variance = max(sum.y / n - rest * rest, {t}());
let rstd = {t}(1) / {t}_sqrt(variance + {eps});
for (var e = lane; e < {count}; e += {GROUP}u) {{
{place}let v = ((x_at(at) - mean) - rest) * rstd * weight_of(c) + bias_of(c);
{put}}}
if (lane == 0u) {{
{put_mean}{put_rstd}{var}}}
",
                    stats = r.stats(&n),
                    put = put(0, &format!("{to} + at"), "v"),
                    put_mean = put(1, &format!("{to_mean} + i"), "mean"),
                    put_rstd = put(2, &format!("{to_rstd} + i"), "rstd"),
                ),
            )
    }
}

#[derive(Debug, Hash)]
struct NormGradient {
    reads: NormReads,
    to: u32,
    fixed: bool,
}

impl WordKernel for NormGradient {
    const KIND: &'static str = "norm_gradient";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let to = p.next();
        let (t, count, place) = (value(r.real), r.count(&n), r.place(&n));
        let put = store_real(r.real, self.to, &format!("{to} + at"), "v");
        let weighted = "g_at(at) * weight_of(c)";
        let (sums, v) = if self.fixed {
            (String::new(), format!("{weighted} * rstd"))
        } else {
            (
                r.sums(&n, &count, &place, &format!("{weighted} * vec2<{t}>({t}(1), (x_at(at) - mean) * rstd)")),
                format!("rstd * ({weighted} - sum.x / n - (x_at(at) - mean) * rstd * (sum.y / n))"),
            )
        };
        r.declarations(&n)
            + &groups(
                GROUP,
                &format!(
                    "if (group >= {stats}) {{ return; }}
let i = group;
let n = {t}({count});
let mean = mean_of(i); let rstd = rstd_of(i);
var sum = vec2<{t}>();
{sums}for (var e = lane; e < {count}; e += {GROUP}u) {{
{place}let v = {v};
{put}}}
",
                    stats = r.stats(&n),
                ),
            )
    }
}

#[derive(Debug, Hash)]
struct NormParamGradients {
    reads: NormReads,
    /// The gradients of weights and of biases.
    to: [u32; 2],
}

impl WordKernel for NormParamGradients {
    const KIND: &'static str = "norm_param_gradients";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let [to_weight, to_bias] = p.many();
        let [outer, groups_, channels, inner] = &n.sizes;
        let t = value(r.real);
        let params = format!("({groups_} * {channels})");
        // `e` counts the elements of a channel.
        let i = if r.across { "c".to_string() } else { format!("(e / {inner}) * {groups_} + c / {channels}") };
        let place = format!("let at = ((e / {inner}) * {params} + c) * {inner} + e % {inner}; let i = {i};\n");
        let sums = r.sums(
            &n,
            &format!("({outer} * {inner})"),
            &place,
            &format!("g_at(at) * vec2<{t}>((x_at(at) - mean_of(i)) * rstd_of(i), {t}(1))"),
        );
        r.declarations(&n)
            + &groups(
                GROUP,
                &format!(
                    "if (group >= {params}) {{ return; }}
let c = group;
var sum = vec2<{t}>();
{sums}if (lane == 0u) {{
{}{}}}
",
                    store_real(r.real, self.to[0], &format!("{to_weight} + c"), "sum.x"),
                    store_real(r.real, self.to[1], &format!("{to_bias} + c"), "sum.y"),
                ),
            )
    }
}

/// Its `rstd` are variances.
#[derive(Debug, Hash)]
struct NormApply {
    reads: NormReads,
    to: u32,
}

impl WordKernel for NormApply {
    const KIND: &'static str = "norm_apply";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let [all, to, eps, eps_high, zero] = p.many();
        let (t, eps) = (value(r.real), from_words(r.real, &eps, &eps_high));
        let [_, groups_, channels, inner] = &n.sizes;
        let c = format!("(e / {inner}) % ({groups_} * {channels})");
        let i = if r.across { "c".to_string() } else { format!("e / ({channels} * {inner})") };
        let put = store_real(r.real, self.to, &format!("{to} + e"), "v");
        r.functions(&n)
            + &each(
                &all,
                &format!(
                    "unknown = {zero};
let c = {c}; let i = {i};
let v = (x_at(e) - mean_of(i)) * ({t}(1) / {t}_sqrt(rstd_of(i) + {eps})) * weight_of(c) + bias_of(c);
{put}"
                ),
            )
    }
}

/// The operands of a pass, in the order of `NormReads`: g, x, mean, rstd, weight, bias.
type NormOperands<'a> = [Option<BufferView<'a>>; 6];

fn bind<'a>(shape: &NormShape, real: DType, of: &NormOperands<'a>, bindings: &mut Bindings<'a>) -> (NormReads, ParamValues) {
    let at: SmallVec<[Option<u32>; 6]> = of.iter().map(|v| v.map(|v| bindings.read(v.buffer))).collect();
    let reads =
        NormReads { real, across: shape.across, g: at[0], x: at[1].unwrap_or(0), mean: at[2], rstd: at[3], weight: at[4], bias: at[5] };
    let numbers = ParamValues::default().push(shape.outer).push(shape.groups).push(shape.channels).push(shape.inner);
    (reads, of.iter().fold(numbers, |n, v| n.push(v.map_or(0, |v| v.offset))))
}

/// Runs a request.
pub fn norm(n: &Norm, ins: &[BufferView<'_>], outs: &[BufferView<'_>]) -> Result<()> {
    let (op, shape, real) = (n.op, &n.shape, outs[0].dtype);
    if !real.is_float() {
        return Err(unsupported(op, real));
    }
    let all = countable(op, outs[0].shape)?;
    let context = outs[0].buffer.context();
    let optional = |at: usize, there: bool| there.then(|| ins[at]);
    match n.pass {
        NormPass::Forward { weight, bias } => {
            let of = [None, Some(ins[0]), None, None, optional(1, weight), optional(1 + usize::from(weight), bias)];
            let mut bindings = Bindings::new();
            let to: SmallVec<[u32; 4]> = outs.iter().map(|o| bindings.write(o.buffer)).collect();
            let (reads, numbers) = bind(shape, real, &of, &mut bindings);
            let eps = number_words(n.eps, real);
            let start = |k: usize| outs.get(k).map_or(0, |o| o.offset);
            let numbers = numbers.long(eps).push(0).push(start(0)).push(start(1)).push(start(2)).push(start(3));
            let variances = to.len() > 3;
            let kernel = NormForward { reads, to: [to[0], to[1], to[2], if variances { to[3] } else { 0 }], variances };
            Launch { op, bindings, numbers, groups: shape.stats() }.run(context, &kernel)
        }
        NormPass::Apply { weight, bias } => {
            let of = [None, Some(ins[0]), Some(ins[1]), Some(ins[2]), optional(3, weight), optional(3 + usize::from(weight), bias)];
            let mut bindings = Bindings::new();
            let to = bindings.write(outs[0].buffer);
            let (reads, numbers) = bind(shape, real, &of, &mut bindings);
            let numbers = numbers.push(all).push(outs[0].offset).long(number_words(n.eps, real)).push(0);
            Launch { op, bindings, numbers, groups: groups_for(all) }.run(context, &NormApply { reads, to })
        }
        NormPass::Backward { weight, fixed, params } => {
            let of = [Some(ins[0]), Some(ins[1]), Some(ins[2]), Some(ins[3]), optional(4, weight), None];
            let mut bindings = Bindings::new();
            let to = bindings.write(outs[0].buffer);
            let (reads, numbers) = bind(shape, real, &of, &mut bindings);
            let numbers = numbers.push(outs[0].offset);
            Launch { op, bindings, numbers, groups: shape.stats() }.run(context, &NormGradient { reads, to, fixed })?;
            if !params {
                return Ok(());
            }
            let mut bindings = Bindings::new();
            let to = [bindings.write(outs[1].buffer), bindings.write(outs[2].buffer)];
            let (reads, numbers) = bind(shape, real, &of, &mut bindings);
            let numbers = numbers.push(outs[1].offset).push(outs[2].offset);
            Launch { op, bindings, numbers, groups: shape.params() }.run(context, &NormParamGradients { reads, to })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::word_kernels::validate;
    use super::*;

    #[test]
    fn every_shader_is_valid() {
        for real in [DType::F32, DType::F64] {
            for across in [false, true] {
                for affine in [false, true] {
                    let (weight, bias) = (affine.then_some(6), affine.then_some(7));
                    let none = NormReads { real, across, g: None, x: 4, mean: None, rstd: None, weight, bias };
                    validate(&NormForward { reads: none, to: [0, 1, 2, 3], variances: across }, 15);
                    let all = NormReads { g: Some(2), x: 3, mean: Some(4), rstd: Some(5), ..none };
                    validate(&NormApply { reads: all, to: 0 }, 1);
                    for fixed in [false, true] {
                        validate(&NormGradient { reads: all, to: 0, fixed }, 1);
                    }
                    validate(&NormParamGradients { reads: all, to: [0, 1] }, 3);
                }
            }
        }
    }
}
