//! nll_loss: the weighted element of the target class, and the gradient. Sums are trees of fixed shape.

use super::elem::value;
use super::pointwise::fused::DeviceProgram;
use super::{Bindings, Buffer, BufferView};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{Elements, first, operand, output};
use crate::backend::wgpu::common::word_kernels::{
    GROUP, Launch, NONE, ParamNames, ParamValues, ProgramReads, WordKernel, countable, each, groups, groups_for, load_real, number_words,
    scratch, store, store_real, unsupported, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Classes, Nll, NllReduction as Reduction};
use crate::error::Result;
use crate::layout::{DType, Scalar};
use std::sync::Arc;

/// Targets that one workgroup sums.
const TILE: usize = GROUP * 16;

/// Targets and weights of a loss. All arrays are row-major: input (outer, classes, inner), targets (outer, inner) of int64 or uint8.
#[derive(Debug, Clone, Copy)]
pub struct NllArrays<'a> {
    pub op: &'static str,
    pub classes: Classes,
    /// The number of the dimension of classes, for the error about an invalid target.
    pub dim: usize,
    pub targets: BufferView<'a>,
    pub weight: Option<BufferView<'a>>,
    /// float32 or float64: of the input, the weight and the losses.
    pub real: DType,
    /// The ticket for a target that is not a class.
    pub ticket: u32,
}

/// Log-probabilities in memory, or computed by a program that reads neither the targets nor the weights.
#[derive(Debug, Clone, Copy)]
pub enum NllInput<'a> {
    Memory(BufferView<'a>),
    Made(&'a DeviceProgram<'a>),
}

impl<'a> NllInput<'a> {
    /// Binds them: their binding, the first element's place, and the program's part of the shader.
    fn bind(self, bindings: &mut Bindings<'a>) -> Result<(Option<u32>, usize, Option<ProgramReads<'a>>)> {
        Ok(match self {
            NllInput::Memory(x) => (Some(bindings.read(x.buffer)), x.offset, None),
            NllInput::Made(p) => (None, 0, Some(ProgramReads { program: p, loader: p.loader(bindings)? })),
        })
    }
}

/// The output of a sum over all targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NllSumOutput {
    /// The sum of losses and that of weights, for the next round.
    Parts,
    Sum,
    Mean,
    /// The sum of weights.
    Total,
}

/// Bindings that all kernels here share.
#[derive(Debug, Clone, Copy, Hash)]
struct NllCommon {
    targets: u32,
    weight: Option<u32>,
    long: bool,
    real: DType,
}

impl<'a> NllArrays<'a> {
    fn check(&self) -> Result<()> {
        if self.real.is_float() { Ok(()) } else { Err(unsupported(self.op, self.real)) }
    }

    fn bind(&self, bindings: &mut Bindings<'a>) -> NllCommon {
        NllCommon {
            targets: bindings.read(self.targets.buffer),
            weight: self.weight.map(|w| bindings.read(w.buffer)),
            long: self.targets.dtype == DType::I64,
            real: self.real,
        }
    }

    fn numbers(&self, n: ParamValues) -> ParamValues {
        let c = &self.classes;
        n.push(self.targets.offset)
            .push(self.weight.map_or(0, |w| w.offset))
            .push(c.classes)
            .push(c.inner)
            .long(c.ignore as u64)
            .push(self.dim)
            .word(self.ticket)
    }

    /// Losses of log-probabilities `x`: one for each target, or one altogether.
    pub fn forward(&self, out: BufferView<'_>, x: NllInput<'_>) -> Result<()> {
        self.check()?;
        match self.classes.reduction {
            Reduction::Sum => return self.sum(out.buffer, out.offset, Some(x), NllSumOutput::Sum),
            Reduction::Mean => return self.sum(out.buffer, out.offset, Some(x), NllSumOutput::Mean),
            Reduction::None => {}
        }
        let n = countable(self.op, self.targets.shape)?;
        let mut bindings = Bindings::new();
        let to = bindings.write(out.buffer);
        let (from, first, made) = x.bind(&mut bindings)?;
        let this = *self;
        let common = this.bind(&mut bindings);
        let numbers = self.numbers(ParamValues::default().push(n).push(out.offset).push(first).push(0));
        let launch = Launch { op: self.op, bindings, numbers, groups: groups_for(n) };
        launch.reading(out.buffer.context(), &NllLosses { common, to, from }, made.as_ref())
    }

    /// The adjoint of `forward`: the gradient of x from `g`, that of the losses.
    pub fn backward(&self, out: BufferView<'_>, g: BufferView<'_>) -> Result<()> {
        self.check()?;
        let context = out.buffer.context();
        let single = self.classes.reduction != Reduction::None;
        let total = if self.classes.reduction == Reduction::Mean { Some(scratch(context, words(self.real))?) } else { None };
        if let Some(t) = &total {
            self.sum(t, 0, None, NllSumOutput::Total)?;
        }
        let n = countable(self.op, out.shape)?;
        let mut bindings = Bindings::new();
        let (to, from) = (bindings.write(out.buffer), bindings.read(g.buffer));
        let total = total.as_ref().map(|t| bindings.read(t));
        let this = *self;
        let common = this.bind(&mut bindings);
        let numbers = self.numbers(ParamValues::default().push(n).push(out.offset).push(g.offset));
        let kernel = NllGradient { common, to, from, single, total };
        Launch { op: self.op, bindings, numbers, groups: groups_for(n) }.run(context, &kernel)
    }

    /// Sums over all targets into the element `at` of `out`.
    fn sum(&self, out: &Buffer, at: usize, x: Option<NllInput<'_>>, gives: NllSumOutput) -> Result<()> {
        let n = countable(self.op, self.targets.shape)?;
        let context = out.context();
        let tiles = n.div_ceil(TILE).max(1);
        let parts = if tiles > 1 { Some(scratch(context, 2 * tiles * words(self.real))?) } else { None };
        let now = if tiles > 1 { NllSumOutput::Parts } else { gives };
        let mut bindings = Bindings::new();
        let to = bindings.write(parts.as_ref().unwrap_or(out));
        let (from, first, made) = x.map_or(Ok((None, 0, None)), |x| x.bind(&mut bindings))?;
        let this = *self;
        let common = this.bind(&mut bindings);
        let start = if tiles > 1 { 0 } else { at };
        let numbers = self
            .numbers(ParamValues::default().push(n).push(start).push(first).push(0).long(number_words(Scalar::Float(f64::NAN), self.real)));
        let kernel = NllSum { common, to, from: if x.is_some() { Some(from) } else { None }, gives: now };
        Launch { op: self.op, bindings, numbers, groups: tiles }.reading(context, &kernel, made.as_ref())?;
        let Some(parts) = parts else { return Ok(()) };
        let mut bindings = Bindings::new();
        let (to, from) = (bindings.write(out), bindings.read(&parts));
        let numbers = ParamValues::default().push(tiles).push(at).long(number_words(Scalar::Float(f64::NAN), self.real));
        Launch { op: self.op, bindings, numbers, groups: 1 }.run(context, &NllJoin { to, from, gives, real: self.real })
    }
}

#[derive(Debug, Hash)]
struct NllLosses {
    common: NllCommon,
    to: u32,
    /// None if a program computes the input.
    from: Option<u32>,
}

impl WordKernel for NllLosses {
    const KIND: &'static str = "nll_pick";

    fn checked(&self) -> bool {
        true
    }

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, first, source, zero] = p.many();
        let text = self.common.functions(p, Some((self.from, &source)));
        let put = store_real(self.common.real, self.to, &format!("{first} + e"), "v");
        let t = value(self.common.real);
        let known = reading(self.from, &zero);
        text + &each(&n, &format!("{known}let c = class_of(e); var v = {t}();\nif (c != {NONE}) {{ v = loss(e, c); }}\n{put}"))
    }
}

#[derive(Debug, Hash)]
struct NllGradient {
    common: NllCommon,
    to: u32,
    from: u32,
    /// Whether there is one gradient for all.
    single: bool,
    /// What a mean divides by.
    total: Option<u32>,
}

impl WordKernel for NllGradient {
    const KIND: &'static str = "nll_spread";

    fn checked(&self) -> bool {
        true
    }

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, first, source] = p.many();
        let text = self.common.functions(p, None);
        let real = self.common.real;
        let at = if self.single { "0u" } else { "number" };
        let scale = self.total.map_or(String::new(), |t| format!(" / {}", load_real(real, t, "0u")));
        let g = load_real(real, self.from, &format!("{source} + {at}"));
        let put = store_real(real, self.to, &format!("{first} + e"), "v");
        let t = value(real);
        text + &each(
            &n,
            &format!(
                "let row = e / inner(); let number = (row / classes()) * inner() + e % inner();
let c = row % classes(); var v = {t}();
if (class_of(number) == c) {{ v = -{g}{scale} * weight(c); }}
{put}"
            ),
        )
    }
}

#[derive(Debug, Hash)]
struct NllSum {
    common: NllCommon,
    to: u32,
    /// The input, which a program may compute; None if only weights are summed.
    from: Option<Option<u32>>,
    gives: NllSumOutput,
}

impl WordKernel for NllSum {
    const KIND: &'static str = "nll_sum";

    fn checked(&self) -> bool {
        true
    }

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, start, source, zero, nan, nan_high] = p.many();
        let text = self.common.functions(p, self.from.map(|f| (f, &source[..])));
        let loss = if self.from.is_some() { "sum.x += loss(j, c);" } else { "" };
        let add = format!(
            "{known}for (var i = 0u; i < {}u; i++) {{
let j = group * {TILE}u + i * {GROUP}u + lane;
if (j >= {n}) {{ break; }}
let c = class_of(j);
if (c != {NONE}) {{ {loss} sum.y += weight(c); }}
}}
",
            TILE / GROUP,
            known = self.from.map_or(String::new(), |f| reading(f, &zero)),
        );
        text + &joining(&add, self.common.real, self.to, &start, [&nan, &nan_high], self.gives)
    }
}

#[derive(Debug, Hash)]
struct NllJoin {
    to: u32,
    from: u32,
    gives: NllSumOutput,
    real: DType,
}

impl WordKernel for NllJoin {
    const KIND: &'static str = "nll_join";

    fn body(&self, p: &mut ParamNames) -> String {
        let [tiles, start, nan, nan_high] = p.many();
        let (loss, weight) = (load_real(self.real, self.from, "2u * j"), load_real(self.real, self.from, "2u * j + 1u"));
        let t = value(self.real);
        let add = format!(
            "for (var j = lane; j < {tiles}; j += {GROUP}u) {{
sum += vec2<{t}>({loss}, {weight});
}}
"
        );
        joining(&add, self.real, self.to, &start, [&nan, &nan_high], self.gives)
    }
}

/// The first statement of an invocation if a program computes the input (see `strided::unknown`); `zero` is 0.
fn reading(from: Option<u32>, zero: &str) -> String {
    if from.is_some() { String::new() } else { format!("unknown = {zero};\n") }
}

/// A kernel in which each invocation adds to `sum` (losses, weights) and the workgroup joins them in a tree.
fn joining(add: &str, real: DType, to: u32, start: &str, nan: [&str; 2], gives: NllSumOutput) -> String {
    let put = |at: &str, v: &str| store_real(real, to, at, v);
    let write = match gives {
        NllSumOutput::Parts => put("2u * group", "sums[0].x") + &put("2u * group + 1u", "sums[0].y"),
        NllSumOutput::Sum => put(start, "sums[0].x"),
        NllSumOutput::Total => put(start, "sums[0].y"),
        // 0 / 0 is nan, which a compiler may assume to be impossible.
        NllSumOutput::Mean => {
            let nan = if words(real) == 2 { format!("vec2<u32>({}, {})", nan[0], nan[1]) } else { nan[0].to_string() };
            let nan = store(to, words(real), start, &nan);
            format!("if (sums[0].x == 0 && sums[0].y == 0) {{ {nan} }} else {{ {} }}", put(start, "sums[0].x / sums[0].y"))
        }
    };
    let (t, last) = (value(real), if real == DType::F64 { 3 } else { 1 });
    // The grid may have more workgroups than requested.
    let guard = if gives == NllSumOutput::Parts {
        format!("group * {}u + {last}u < arrayLength(&b{to})", last + 1)
    } else {
        "group == 0u".to_string()
    };
    format!("var<workgroup> sums: array<vec2<{t}>, {GROUP}>;\n")
        + &groups(
            GROUP,
            &format!(
                "var sum = vec2<{t}>();
{add}sums[lane] = sum;
workgroupBarrier();
for (var half = {}u; half > 0u; half /= 2u) {{
if (lane < half) {{ sums[lane] += sums[lane + half]; }}
workgroupBarrier();
}}
if (lane == 0u && {guard}) {{ {write} }}
",
                GROUP / 2
            ),
        )
}

impl NllCommon {
    /// `classes()`, `inner()`, `weight(class)`, `class_of(target)` (NONE if it counts for nothing) and, with an input, `loss(target, class)`.
    fn functions(&self, p: &mut ParamNames, input: Option<(Option<u32>, &str)>) -> String {
        let [first, weights, classes, inner, ignore_low, ignore_high, dim, ticket] = p.many();
        let b = self.targets;
        let read = if self.long {
            format!("let lo = b{b}[2u * at]; let hi = b{b}[2u * at + 1u];")
        } else {
            format!("let lo = b{b}[at]; let hi = 0u;")
        };
        let weight = self.weight.map_or(format!("{}(1)", value(self.real)), |w| load_real(self.real, w, &format!("{weights} + c")));
        let t = value(self.real);
        let loss = input.map_or(String::new(), |(x, offset)| {
            let element = x.map_or("load(at)".to_string(), |x| load_real(self.real, x, &format!("{offset} + at")));
            format!(
                "fn loss(number: u32, c: u32) -> {t} {{
let at = ((number / inner()) * classes() + c) * inner() + number % inner();
return -{element} * weight(c);
}}
"
            )
        });
        format!(
            "fn classes() -> u32 {{ return {classes}; }}
fn inner() -> u32 {{ return {inner}; }}
fn weight(c: u32) -> {t} {{ return {weight}; }}
fn class_of(number: u32) -> u32 {{
let at = number + {first};
{read}
if (lo == {ignore_low} && hi == {ignore_high}) {{ return {NONE}; }}
if (hi == 0u && lo < {classes}) {{ return lo; }}
fault({ticket}, lo, hi, {dim}, {classes});
return {NONE};
}}
{loss}"
        )
    }
}

impl WgpuFamily for Nll {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(n: &Nll, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let targets = operand(ins, 1)?;
        let weight = if ins.len() > 2 { Some(operand(ins, 2)?) } else { None };
        let ticket = if n.ticket == 0 { context.ticket("nll_loss") } else { n.ticket };
        let loss = NllArrays { op: "nll_loss", classes: n.classes, dim: n.dim, targets, weight, real: out.dtype, ticket };
        let can = |p: &DeviceProgram<'_>| p.can_be_read(context) && !p.reads(targets.buffer) && weight.is_none_or(|w| !p.reads(w.buffer));
        first(context, ins, can, |x| match x {
            Elements::Memory(g) if n.adjoint => loss.backward(out, g),
            Elements::Memory(x) => loss.forward(out, NllInput::Memory(x)),
            Elements::Made(p, ..) => loss.forward(out, NllInput::Made(p)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for (real, long, weight) in
            [(DType::F32, true, None), (DType::F64, true, Some(3)), (DType::F32, false, Some(3)), (DType::F64, false, None)]
        {
            let common = NllCommon { targets: 2, weight, long, real };
            validate(&NllLosses { common, to: 0, from: Some(1) }, 1);
            for (single, total) in [(false, None), (true, None), (true, Some(4))] {
                validate(&NllGradient { common, to: 0, from: 1, single, total }, 1);
            }
            for gives in [NllSumOutput::Parts, NllSumOutput::Sum, NllSumOutput::Mean, NllSumOutput::Total] {
                validate(&NllSum { common, to: 0, from: if gives == NllSumOutput::Total { None } else { Some(Some(1)) }, gives }, 1);
                validate(&NllJoin { to: 0, from: 1, gives, real }, 1);
            }
        }
    }
}
