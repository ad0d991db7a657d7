//! Picking the element of the target class, weighted: the kernel of nll_loss, and its adjoint. float32, summed as trees of fixed shape.

use super::words::{GROUP, Launch, NONE, Names, Numbers, countable, each, groups, groups_for, scratch, unsupported};
use super::{Bindings, Buffer, View};
use crate::backend::cpu::nll::{Classes, Reduction};
use crate::error::Result;
use crate::layout::DType;

/// Targets that one workgroup sums.
const TILE: usize = GROUP * 16;

/// Targets and weights of a loss. All arrays are row-major: input (outer, classes, inner), targets (outer, inner) of int64 or uint8.
#[derive(Debug, Clone, Copy)]
pub struct Nll<'a> {
    pub op: &'static str,
    pub classes: Classes,
    /// The number of the dimension of classes, for the error about a target that is none.
    pub dim: usize,
    pub targets: View<'a>,
    pub weight: Option<View<'a>>,
}

/// What a sum over all targets gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// The sum of losses and that of weights, for the next round.
    Parts,
    Sum,
    Mean,
    /// The sum of weights.
    Total,
}

/// Bindings and text that all kernels here share.
struct Common {
    targets: u32,
    weight: Option<u32>,
    long: bool,
}

impl<'a> Nll<'a> {
    fn bind(&self, bindings: &mut Bindings<'a>) -> Common {
        Common {
            targets: bindings.read(self.targets.buffer),
            weight: self.weight.map(|w| bindings.read(w.buffer)),
            long: self.targets.dtype == DType::I64,
        }
    }

    fn numbers(&self, n: Numbers) -> Numbers {
        let c = &self.classes;
        n.push(self.targets.offset)
            .push(self.weight.map_or(0, |w| w.offset))
            .push(c.classes)
            .push(c.inner)
            .long(c.ignore as u64)
            .push(self.dim)
            .word(self.targets.buffer.context().ticket(self.op))
    }

    /// Losses of log-probabilities `x`: one for each target, or one altogether.
    pub fn pick(&self, out: View<'_>, x: View<'_>) -> Result<()> {
        if x.dtype != DType::F32 {
            return Err(unsupported(self.op, x.dtype));
        }
        match self.classes.reduction {
            Reduction::Sum => return self.sum(out.buffer, out.offset, Some(x), Gives::Sum),
            Reduction::Mean => return self.sum(out.buffer, out.offset, Some(x), Gives::Mean),
            Reduction::None => {}
        }
        let n = countable(self.op, self.targets.shape)?;
        let mut bindings = Bindings::new();
        let (to, from) = (bindings.write(out.buffer), bindings.read(x.buffer));
        let common = self.bind(&mut bindings);
        let numbers = self.numbers(Numbers::default().push(n).push(out.offset).push(x.offset));
        let key = [common.word(), from as usize];
        let launch = Launch { op: self.op, kind: "nll_pick", words: &key, bindings, numbers, groups: groups_for(n), checked: true, atomics: 0 };
        launch.run(out.buffer.context(), &|p| {
            let [n, first, source] = p.many();
            let text = common.functions(p, Some((from, &source)));
            text + &each(
                &n,
                &format!(
                    "let c = class_of(e); var v = 0.0;
if (c != {NONE}) {{ v = loss(e, c); }}
b{to}[{first} + e] = bitcast<u32>(v);
"
                ),
            )
        })
    }

    /// The adjoint of `pick`: the gradient of x from `g`, that of the losses.
    pub fn spread(&self, out: View<'_>, g: View<'_>) -> Result<()> {
        if g.dtype != DType::F32 {
            return Err(unsupported(self.op, g.dtype));
        }
        let context = out.buffer.context();
        let total = scratch(context, 1)?;
        let mean = self.classes.reduction == Reduction::Mean;
        let single = self.classes.reduction != Reduction::None;
        if mean {
            self.sum(&total, 0, None, Gives::Total)?;
        }
        let n = countable(self.op, out.shape)?;
        let mut bindings = Bindings::new();
        let (to, from, by) = (bindings.write(out.buffer), bindings.read(g.buffer), bindings.read(&total));
        let this = *self;
        let common = this.bind(&mut bindings);
        let numbers = self.numbers(Numbers::default().push(n).push(out.offset).push(g.offset));
        let key = [common.word(), from as usize, usize::from(mean) + 2 * usize::from(single)];
        let launch = Launch { op: self.op, kind: "nll_spread", words: &key, bindings, numbers, groups: groups_for(n), checked: true, atomics: 0 };
        launch.run(context, &|p| {
            let [n, first, source] = p.many();
            let text = common.functions(p, None);
            let at = if single { "0u" } else { "number" };
            let scale = if mean { format!(" / bitcast<f32>(b{by}[0])") } else { String::new() };
            text + &each(
                &n,
                &format!(
                    "let row = e / inner(); let number = (row / classes()) * inner() + e % inner();
let c = row % classes(); var v = 0.0;
if (class_of(number) == c) {{ v = -bitcast<f32>(b{from}[{source} + {at}]){scale} * weight(c); }}
b{to}[{first} + e] = bitcast<u32>(v);
"
                ),
            )
        })
    }

    /// Sums over all targets into the element `at` of `out`.
    fn sum(&self, out: &Buffer, at: usize, x: Option<View<'_>>, gives: Gives) -> Result<()> {
        let n = countable(self.op, self.targets.shape)?;
        let context = out.context();
        let tiles = n.div_ceil(TILE).max(1);
        let parts = if tiles > 1 { Some(scratch(context, 2 * tiles)?) } else { None };
        let now = if tiles > 1 { Gives::Parts } else { gives };
        let mut bindings = Bindings::new();
        let to = bindings.write(parts.as_ref().unwrap_or(out));
        let from = x.map(|x| bindings.read(x.buffer));
        let this = *self;
        let common = this.bind(&mut bindings);
        let start = if tiles > 1 { 0 } else { at };
        let numbers = self.numbers(Numbers::default().push(n).push(start).push(x.map_or(0, |x| x.offset)).word(f32::NAN.to_bits()));
        let key = [common.word(), super::index::slot_word(from), now as usize];
        Launch { op: self.op, kind: "nll_sum", words: &key, bindings, numbers, groups: tiles, checked: true, atomics: 0 }.run(context, &|p| {
            let [n, start, source, nan] = p.many();
            let text = common.functions(p, from.map(|f| (f, &source[..])));
            let loss = if from.is_some() { "sum.x += loss(j, c);" } else { "" };
            text + &joining(
                &format!(
                    "for (var i = 0u; i < {}u; i++) {{
let j = group * {TILE}u + i * {GROUP}u + lane;
if (j >= {n}) {{ break; }}
let c = class_of(j);
if (c != {NONE}) {{ {loss} sum.y += weight(c); }}
}}
",
                    TILE / GROUP
                ),
                to,
                &start,
                &nan,
                now,
            )
        })?;
        let Some(parts) = parts else { return Ok(()) };
        let mut bindings = Bindings::new();
        let (to, from) = (bindings.write(out), bindings.read(&parts));
        let numbers = Numbers::default().push(tiles).push(at).word(f32::NAN.to_bits());
        let key = [gives as usize];
        Launch { op: self.op, kind: "nll_join", words: &key, bindings, numbers, groups: 1, checked: false, atomics: 0 }.run(context, &|p| {
            let [tiles, start, nan] = p.many();
            joining(
                &format!(
                    "for (var j = lane; j < {tiles}; j += {GROUP}u) {{
sum += vec2<f32>(bitcast<f32>(b{from}[2u * j]), bitcast<f32>(b{from}[2u * j + 1u]));
}}
"
                ),
                to,
                &start,
                &nan,
                gives,
            )
        })
    }
}

/// A kernel in which each invocation adds to `sum` (losses, weights) and the workgroup joins them in a tree.
fn joining(add: &str, to: u32, start: &str, nan: &str, gives: Gives) -> String {
    let write = match gives {
        Gives::Parts => format!("b{to}[2u * group] = bitcast<u32>(sums[0].x); b{to}[2u * group + 1u] = bitcast<u32>(sums[0].y);"),
        Gives::Sum => format!("b{to}[{start}] = bitcast<u32>(sums[0].x);"),
        Gives::Total => format!("b{to}[{start}] = bitcast<u32>(sums[0].y);"),
        // Nothing over nothing is nan, which a compiler may take for impossible.
        Gives::Mean => format!(
            "if (sums[0].x == 0.0 && sums[0].y == 0.0) {{ b{to}[{start}] = {nan}; }} else {{ b{to}[{start}] = bitcast<u32>(sums[0].x / sums[0].y); }}"
        ),
    };
    // The grid may have more workgroups than were asked for.
    let guard = if gives == Gives::Parts { format!("group * 2u + 1u < arrayLength(&b{to})") } else { "group == 0u".to_string() };
    format!("var<workgroup> sums: array<vec2<f32>, {GROUP}>;\n")
        + &groups(
            GROUP,
            &format!(
                "var sum = vec2<f32>();
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

impl Common {
    fn word(&self) -> usize {
        usize::from(self.long) + 2 * super::index::slot_word(self.weight) + 64 * self.targets as usize
    }

    /// `classes()`, `inner()`, `weight(class)`, `class_of(target)` (NONE if it counts for nothing) and, with an input, `loss(target, class)`.
    fn functions(&self, p: &mut Names, input: Option<(u32, &str)>) -> String {
        let [first, weights, classes, inner, ignore_low, ignore_high, dim, ticket] = p.many();
        let b = self.targets;
        let read = if self.long {
            format!("let lo = b{b}[2u * at]; let hi = b{b}[2u * at + 1u];")
        } else {
            format!("let lo = b{b}[at]; let hi = 0u;")
        };
        let weight = self.weight.map_or("1.0".to_string(), |w| format!("bitcast<f32>(b{w}[{weights} + c])"));
        let loss = input.map_or(String::new(), |(x, offset)| {
            format!(
                "fn loss(number: u32, c: u32) -> f32 {{
let at = ((number / inner()) * classes() + c) * inner() + number % inner();
return -bitcast<f32>(b{x}[{offset} + at]) * weight(c);
}}
"
            )
        });
        format!(
            "fn classes() -> u32 {{ return {classes}; }}
fn inner() -> u32 {{ return {inner}; }}
fn weight(c: u32) -> f32 {{ return {weight}; }}
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
