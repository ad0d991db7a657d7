//! Layer, group and batch norm. The elements of each mean are added up twice (for the mean, and for distances from it), then the results
//! are written. Where they are neighbours and few, some invocations of a workgroup share a mean and keep its elements in registers.
//! Otherwise a workgroup reads the elements of one mean two or three times. The gradients of weight and bias take one workgroup for each
//! channel. All arrays are row-major.
//!
//! Each element takes about ten operations: the kernels are bound by memory. So loops have several loads under way and no divisions. Not here:
//! the choice of dimensions (`ops/norm.rs`).

mod compute;

use super::elem::{from_words, value};
use super::reduce::rows::{Meeting, RowTile, tree};
use super::{Bindings, BufferView};
use crate::backend::wgpu::common::word_kernels::{
    GROUP, Launch, ParamNames, ParamValues, WordKernel, countable, each, groups, groups_for, load_real, number_words, store_real,
    unsupported,
};
use crate::call::{Norm, NormPass, NormShape};
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

    /// The walk of an invocation over the elements of mean `i`; beside it goes the channel `c`.
    fn walk(&self, n: &NormNames) -> NormWalk {
        let [_, groups, channels, inner] = &n.sizes;
        if self.across {
            return NormWalk::through(inner, GROUP, groups, "i", "c", ["i".into(), "0u".into(), "0u".into()]);
        }
        NormWalk {
            inner: inner.clone(),
            step: GROUP,
            at: [format!("i * ({channels} * {inner}) + y"), format!("{GROUP}u"), "0u".into()],
            name: "c",
            beside: [format!("(i % {groups}) * {channels} + y / {inner}"), "runs".into(), "1u".into()],
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

    /// Adds up two values of all elements into the variable `sum`, in which every invocation finds the total.
    fn sums(&self, count: &str, walk: &NormWalk, meeting: &mut Meeting, summand: &dyn Fn(&str, &str) -> String) -> String {
        let each = |u: usize| {
            let (at, beside) = (format!("at{u}"), format!("beside{u}"));
            format!("let {at} = at; let {beside} = {}; let s{u} = {}; {}", walk.name, summand(&at, &beside), walk.next())
        };
        let all: String = (0..UNROLL).map(each).collect();
        let names: Vec<String> = (0..UNROLL).map(|u| format!("s{u}")).collect();
        format!(
            "sum = vec2<{t}>();
{{ {start}var e = y;
while (e + {last}u < {count}) {{
{all}sum += {total}; e += {step}u;
}}
while (e < {count}) {{
{one}sum += s0; e += {few}u;
}} }}
{meet}",
            t = value(self.real),
            start = walk.start(),
            last = (UNROLL - 1) * walk.step,
            total = tree(&names, &plus),
            step = UNROLL * walk.step,
            one = each(0),
            few = walk.step,
            meet = meeting.merge("sum", &plus),
        )
    }

    /// Statements that write `result` of all elements; `put` is made of a place and a value.
    fn results(count: &str, walk: &NormWalk, result: &dyn Fn(&str, &str) -> String, put: &dyn Fn(&str, &str) -> String) -> String {
        let each = |u: usize| {
            let (at, beside) = (format!("at{u}"), format!("beside{u}"));
            format!("let {at} = at; let {beside} = {}; let v{u} = {}; {}", walk.name, result(&at, &beside), walk.next())
        };
        let all: String = (0..UNROLL).map(each).collect();
        let puts: String = (0..UNROLL).map(|u| put(&format!("at{u}"), &format!("v{u}"))).collect();
        format!(
            "{{ {start}var e = y;
while (e + {last}u < {count}) {{
{all}{puts}e += {step}u;
}}
while (e < {count}) {{
{one}{put}e += {few}u;
}} }}
",
            start = walk.start(),
            last = (UNROLL - 1) * walk.step,
            step = UNROLL * walk.step,
            one = each(0),
            few = walk.step,
            put = put("at0", "v0"),
        )
    }

    /// Statements of a workgroup of several means, each with `tile.shared` invocations: element `k` of an invocation lies at `at{k}` and has
    /// the channel `c{k}`.
    fn rows(&self, n: &NormNames, tile: RowTile, dense: bool) -> String {
        let [_, groups, channels, inner] = &n.sizes;
        let (shared, rows) = (tile.shared, GROUP / tile.shared);
        let mut s = format!(
            "if (group * {rows}u >= {stats}) {{ return; }}
let y = lane % {shared}u;
let row = group * {rows}u + lane / {shared}u;
let inside = row < {stats};
let i = min(row, {stats} - 1u);
let count = {count};
let begin = i * count;
let channel = (i % {groups}) * {channels};
",
            stats = self.stats(n),
            count = self.count(n),
        );
        for k in 0..tile.each {
            let j = if tile.is_checked(k) { format!("min(j{k}, count - 1u)") } else { format!("j{k}") };
            let c = if dense { format!("p{k}") } else { format!("p{k} / {inner}") };
            s += &format!("let j{k} = y + {}u; let p{k} = {j}; let at{k} = begin + p{k}; let c{k} = channel + {c};\n", k * shared);
        }
        s
    }

    /// The sum, as two values, of `summand` over all elements that `rows` names, as `sums` gives it.
    fn row_sums(&self, tile: RowTile, meeting: &mut Meeting, summand: &dyn Fn(usize) -> String) -> String {
        let zero = format!("vec2<{}>()", value(self.real));
        let part = |k: usize| match tile.is_checked(k) {
            true => format!("select({zero}, {}, j{k} < count)", summand(k)),
            false => summand(k),
        };
        let parts: Vec<String> = (0..tile.each).map(part).collect();
        format!("sum = {};\n{}", tree(&parts, &plus), meeting.merge("sum", &plus))
    }

    fn declarations(&self, n: &NormNames, meeting: &Meeting) -> String {
        meeting.declaration(&format!("vec2<{}>", value(self.real))) + &self.functions(n)
    }
}

/// Statements that write `result` of all elements that `NormReads::rows` names.
fn row_results(tile: RowTile, result: &dyn Fn(usize) -> String, put: &dyn Fn(&str, &str) -> String) -> String {
    let one = |k: usize| {
        let put = put(&format!("at{k}"), &result(k));
        if tile.is_checked(k) { format!("if (j{k} < count) {{ {put} }}\n") } else { put }
    };
    format!("if (inside) {{\n{}}}\n", (0..tile.each).map(one).collect::<String>())
}

fn plus(a: &str, b: &str) -> String {
    format!("({a} + {b})")
}

/// Loads under way in a loop.
const UNROLL: usize = 8;

/// How an invocation goes through elements, from number `y` in steps of `step`, without divisions: its place `at`, and another variable
/// that depends on the number. Each is given by its start, what a step adds, and what it adds more where it enters a further run of
/// `inner` elements. A step goes over `runs` such runs and `over` elements.
struct NormWalk {
    inner: String,
    step: usize,
    at: [String; 3],
    name: &'static str,
    beside: [String; 3],
}

impl NormWalk {
    /// Through the elements of channel `c` of `channels`.
    fn through(inner: &str, step: usize, channels: &str, c: &str, name: &'static str, beside: [String; 3]) -> NormWalk {
        let at = [
            format!("((y / {inner}) * {channels} + {c}) * {inner} + y % {inner}"),
            format!("runs * {channels} * {inner} + over"),
            format!("({channels} - 1u) * {inner}"),
        ];
        NormWalk { inner: inner.to_string(), step, at, name, beside }
    }

    fn start(&self) -> String {
        let (inner, step) = (&self.inner, self.step);
        format!(
            "let runs = {step}u / {inner}; let over = {step}u % {inner};
let at_step = {}; let at_more = {}; let beside_step = {}; let beside_more = {};
var place = y % {inner}; var at = {}; var {} = {};
",
            self.at[1], self.at[2], self.beside[1], self.beside[2], self.at[0], self.name, self.beside[0]
        )
    }

    fn next(&self) -> String {
        let (inner, name) = (&self.inner, self.name);
        format!(
            "place += over; at += at_step; {name} += beside_step;
if (place >= {inner}) {{ place -= {inner}; at += at_more; {name} += beside_more; }}
"
        )
    }
}

#[derive(Debug, Hash)]
struct NormForward {
    reads: NormReads,
    /// Results, means, reciprocals of deviations, variances.
    to: [u32; 4],
    variances: bool,
    /// How a mean is shared, if elements are kept in registers.
    tile: Option<RowTile>,
    /// A channel has one element.
    dense: bool,
}

impl WordKernel for NormForward {
    const KIND: &'static str = "norm_forward";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let [eps, eps_high, zero, to, to_mean, to_rstd, to_var] = p.many();
        let (t, eps) = (value(r.real), from_words(r.real, &eps, &eps_high));
        let put = |b: usize, at: &str, v: &str| store_real(r.real, self.to[b], at, v);
        let put_v = |at: &str, v: &str| put(0, &format!("{to} + {at}"), v);
        let mut meeting = Meeting::new(self.tile.map_or(GROUP, |tile| tile.shared), 1);
        let declarations = r.declarations(&n, &meeting) + &format!("fn distances(d: {t}) -> vec2<{t}> {{ return vec2<{t}>(d, d * d); }}\n");
        let result = |d: &str, c: &str| format!("({d} - rest) * rstd * weight_of({c}) + bias_of({c})");
        let (start, first, second, results) = match self.tile {
            Some(tile) => {
                let read: String = (0..tile.each).map(|k| format!("let x{k} = x_at(at{k});\n")).collect();
                let apart: String = (0..tile.each).map(|k| format!("let d{k} = x{k} - mean;\n")).collect();
                (
                    format!("{}{read}let shift = x_at(begin);\n", r.rows(&n, tile, self.dense)),
                    r.row_sums(tile, &mut meeting, &|k| format!("vec2<{t}>(x{k} - shift, {t}())")),
                    apart + &r.row_sums(tile, &mut meeting, &|k| format!("distances(d{k})")),
                    row_results(tile, &|k| result(&format!("d{k}"), &format!("c{k}")), &put_v),
                )
            }
            None => {
                let (count, walk) = (r.count(&n), r.walk(&n));
                let begin = if r.across { format!("i * {}", n.sizes[3]) } else { format!("i * {count}") };
                let start = format!(
                    "if (group >= {}) {{ return; }}
let y = lane; let i = group; let inside = true;
let count = {count};
let shift = x_at({begin});
",
                    r.stats(&n)
                );
                (
                    start,
                    r.sums("count", &walk, &mut meeting, &|at, _| format!("vec2<{t}>(x_at({at}) - shift, {t}())")),
                    r.sums("count", &walk, &mut meeting, &|at, _| format!("distances(x_at({at}) - mean)")),
                    NormReads::results("count", &walk, &|at, c| result(&format!("(x_at({at}) - mean)"), c), &put_v),
                )
            }
        };
        let var = if self.variances { put(3, &format!("{to_var} + i"), "variance") } else { String::new() };
        declarations
            + &groups(
                GROUP,
                &format!(
                    "unknown = {zero};
let lid = lane;
{start}let n = {t}(count);
var sum = vec2<{t}>();
{first}let mean = shift + sum.x / n;
{second}let rest = sum.x / n;
let variance = max(sum.y / n - rest * rest, {t}());
let rstd = {t}(1) / {t}_sqrt(variance + {eps});
{results}if (y == 0u && inside) {{
{put_mean}{put_rstd}{var}}}
",
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
    /// As in `NormForward`.
    tile: Option<RowTile>,
    dense: bool,
}

impl WordKernel for NormGradient {
    const KIND: &'static str = "norm_gradient";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let to = p.next();
        let t = value(r.real);
        let put = |at: &str, v: &str| store_real(r.real, self.to, &format!("{to} + {at}"), v);
        let mut meeting = Meeting::new(self.tile.map_or(GROUP, |tile| tile.shared), 1);
        let declarations = if self.fixed { r.functions(&n) } else { r.declarations(&n, &meeting) };
        let weighted = |at: &str, c: &str| format!("g_at({at}) * weight_of({c})");
        let apart = |at: &str| format!("(x_at({at}) - mean) * rstd");
        let summand = |w: &str, d: &str| format!("{w} * vec2<{t}>({t}(1), {d})");
        let result = |w: &str, d: &str| format!("rstd * ({w} - sum.x / n - {d} * (sum.y / n))");
        let stats = "let mean = mean_of(i); let rstd = rstd_of(i);\n";
        let body = match self.tile {
            Some(tile) => {
                let one = |k: usize| {
                    let (at, c) = (format!("at{k}"), format!("c{k}"));
                    format!("let w{k} = {}; let d{k} = {};\n", weighted(&at, &c), apart(&at))
                };
                let read: String = (0..tile.each).map(one).collect();
                let of = |k: usize| (format!("w{k}"), format!("d{k}"));
                let sums = r.row_sums(tile, &mut meeting, &|k| summand(&of(k).0, &of(k).1));
                let results = row_results(tile, &|k| result(&of(k).0, &of(k).1), &put);
                let rows = r.rows(&n, tile, self.dense);
                format!("{rows}let n = {t}(count);\n{stats}{read}var sum = vec2<{t}>();\n{sums}{results}")
            }
            None => {
                let walk = r.walk(&n);
                let (sums, results) = if self.fixed {
                    let results = NormReads::results("count", &walk, &|at, c| format!("{} * rstd", weighted(at, c)), &put);
                    (String::new(), results)
                } else {
                    (
                        r.sums("count", &walk, &mut meeting, &|at, c| summand(&weighted(at, c), &apart(at))),
                        NormReads::results("count", &walk, &|at, c| result(&weighted(at, c), &apart(at)), &put),
                    )
                };
                let (all, count) = (r.stats(&n), r.count(&n));
                format!(
                    "if (group >= {all}) {{ return; }}
let y = lane; let i = group; let count = {count};
let n = {t}(count);
{stats}var sum = vec2<{t}>();
{sums}{results}"
                )
            }
        };
        declarations + &groups(GROUP, &format!("let lid = lane;\n{body}"))
    }
}

#[derive(Debug, Hash)]
struct NormParamGradients {
    reads: NormReads,
    /// The gradients of weights and of biases.
    to: [u32; 2],
    /// A channel has one element for each outer index: a workgroup takes `CHANNELS` of them, which are neighbours in memory.
    dense: bool,
}

/// Channels whose elements, of four bytes, fill a transaction.
const CHANNELS: usize = 8;

impl WordKernel for NormParamGradients {
    const KIND: &'static str = "norm_param_gradients";

    fn body(&self, p: &mut ParamNames) -> String {
        let r = &self.reads;
        let n = NormReads::names(p);
        let [to_weight, to_bias] = p.many();
        let [outer, groups_, channels, inner] = &n.sizes;
        let inner = if self.dense { "1u" } else { inner };
        let x = if self.dense { CHANNELS } else { 1 };
        let t = value(r.real);
        let params = format!("({groups_} * {channels})");
        let beside = if r.across {
            ["c".into(), "0u".into(), "0u".into()]
        } else {
            [format!("(y / {inner}) * {groups_} + c / {channels}"), format!("runs * {groups_}"), groups_.clone()]
        };
        let walk = NormWalk::through(inner, GROUP / x, &params, "c", "i", beside);
        let mut meeting = Meeting::new(GROUP / x, x);
        let declarations = r.declarations(&n, &meeting);
        let sums = r.sums("count", &walk, &mut meeting, &|at, i| {
            format!("g_at({at}) * vec2<{t}>((x_at({at}) - mean_of({i})) * rstd_of({i}), {t}(1))")
        });
        declarations
            + &groups(
                GROUP,
                &format!(
                    "if (group * {x}u >= {params}) {{ return; }}
let lid = lane; let y = lane / {x}u; let count = {outer} * {inner};
let channel = group * {x}u + lane % {x}u;
let c = min(channel, {params} - 1u);
var sum = vec2<{t}>();
{sums}if (y == 0u && channel < {params}) {{
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

/// How the elements of each mean are kept in registers by the invocations that share it: at most `most` by each (fewer of 64 bits).
fn row_tile(shape: &NormShape, real: DType, most: usize) -> Option<RowTile> {
    let count = shape.channels * shape.inner;
    if shape.across || count == 0 {
        return None;
    }
    RowTile::new(shape.stats(), count, if real == DType::F64 { 8 } else { most })
}

fn row_groups(shape: &NormShape, tile: Option<RowTile>) -> usize {
    tile.map_or(shape.stats(), |t| shape.stats().div_ceil(GROUP / t.shared))
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
            let (tile, dense) = (row_tile(shape, real, 32), shape.inner == 1);
            let kernel = NormForward { reads, to: [to[0], to[1], to[2], if variances { to[3] } else { 0 }], variances, tile, dense };
            Launch { op, bindings, numbers, groups: row_groups(shape, tile) }.run(context, &kernel)
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
            let tile = if fixed { None } else { row_tile(shape, real, 16) };
            let kernel = NormGradient { reads, to, fixed, tile, dense: shape.inner == 1 };
            Launch { op, bindings, numbers, groups: row_groups(shape, tile) }.run(context, &kernel)?;
            if !params {
                return Ok(());
            }
            let mut bindings = Bindings::new();
            let to = [bindings.write(outs[1].buffer), bindings.write(outs[2].buffer)];
            let (reads, numbers) = bind(shape, real, &of, &mut bindings);
            let numbers = numbers.push(outs[1].offset).push(outs[2].offset);
            let dense = shape.inner == 1;
            let groups = shape.params().div_ceil(if dense { CHANNELS } else { 1 });
            Launch { op, bindings, numbers, groups }.run(context, &NormParamGradients { reads, to, dense })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::rows::tests::workgroup_bytes;
    use super::super::wgsl::with_library;
    use super::*;
    use crate::backend::wgpu::common::strided::header;
    use crate::backend::wgpu::common::word_kernels;

    fn source<K: WordKernel>(kernel: &K, writes: u32) -> String {
        let types: Vec<_> = (0..8).map(|i| (i, "u32")).collect();
        with_library(&(header(&types, writes, 128) + &kernel.body(&mut ParamNames::default())))
    }

    fn validate<K: WordKernel + std::fmt::Debug>(kernel: &K, writes: u32) {
        word_kernels::validate(kernel, writes);
        assert!(workgroup_bytes(&source(kernel, writes)) <= 16384, "{kernel:?}");
    }

    #[test]
    fn every_shader_is_valid() {
        for real in [DType::F32, DType::F64] {
            for across in [false, true] {
                for affine in [false, true] {
                    let (weight, bias) = (affine.then_some(6), affine.then_some(7));
                    let none = NormReads { real, across, g: None, x: 4, mean: None, rstd: None, weight, bias };
                    let all = NormReads { g: Some(2), x: 3, mean: Some(4), rstd: Some(5), ..none };
                    let tiles = [(1, 4), (8, 2), (256, 8)].map(|(shared, each)| Some(RowTile { shared, each }));
                    for (tile, dense) in [(None, true), (None, false), (tiles[0], true), (tiles[1], false), (tiles[2], affine)] {
                        if tile.is_none() || !across {
                            validate(&NormForward { reads: none, to: [0, 1, 2, 3], variances: across, tile, dense }, 15);
                            validate(&NormGradient { reads: all, to: 0, fixed: false, tile, dense }, 1);
                        }
                    }
                    validate(&NormGradient { reads: all, to: 0, fixed: true, tile: None, dense: false }, 1);
                    validate(&NormApply { reads: all, to: 0 }, 1);
                    for dense in [false, true] {
                        validate(&NormParamGradients { reads: all, to: [0, 1], dense }, 3);
                    }
                }
            }
        }
    }
}
