//! Kernels that read and write elements at positions given by data.
//!
//! Positions are checked where they are read; one out of range raises a fault and touches nothing. Where several of them meet at one
//! place, the result is the same in every run: few positions are gone through in order by one invocation for each column, as on the
//! CPU; many are decided by the number of the last writer, or sorted and summed (`accumulate`).

use super::accumulate::{self, Runs};
use super::strided::Walk;
use super::words::{Launch, NONE, Names, Numbers, countable, each, fill, groups_for, load, number_words, scratch, store, unsupported, words};
use super::words::{WIDE_MUL, wgsl_type};
use super::{Bindings, Buffer, View};
use crate::backend::cpu::index::Write;
use crate::error::Result;
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;

/// Positions that one invocation may go through in order.
const IN_ORDER: usize = 256;

/// One indexed dimension of an array.
#[derive(Debug, Clone, Copy)]
pub struct Indexed<'a> {
    /// Positions; all indexed dimensions have one index shape.
    pub index: View<'a>,
    /// Its number, for the error.
    pub dim: usize,
    pub size: usize,
    /// The array's stride.
    pub stride: isize,
}

/// `x[.., i, .., j, ..]`: the dimensions that are not indexed stand before and behind those of the index.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub op: &'static str,
    pub x: View<'a>,
    pub indexed: &'a [Indexed<'a>],
    /// Whether negative positions count from the end.
    pub wraps: bool,
    pub before: &'a [usize],
    pub after: &'a [usize],
}

/// What is written: elements, or one value.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    View(View<'a>),
    Number(Scalar),
}

impl Source<'_> {
    fn offset(&self) -> usize {
        match self {
            Source::View(v) => v.offset,
            Source::Number(_) => 0,
        }
    }

    fn stride(&self, d: usize) -> isize {
        match self {
            Source::View(v) => v.strides[d],
            Source::Number(_) => 0,
        }
    }
}

/// Where a kernel finds its positions.
#[derive(Clone, Copy)]
enum Positions<'a> {
    /// Checked before, one word each.
    Made(&'a Buffer),
    Raw {
        from: Indexed<'a>,
        wraps: bool,
    },
}

impl<'a> Positions<'a> {
    fn buffer(&self) -> &'a Buffer {
        match self {
            Positions::Made(b) => b,
            Positions::Raw { from, .. } => from.index.buffer,
        }
    }

    /// What a shader must know of them.
    fn word(&self) -> usize {
        match self {
            Positions::Made(_) => 0,
            Positions::Raw { from, wraps } => {
                let width = match from.index.dtype {
                    DType::I64 => 1,
                    DType::I32 => 2,
                    _ => 3,
                };
                width + 4 * usize::from(*wraps)
            }
        }
    }

    fn numbers(&self, op: &'static str, n: Numbers) -> Numbers {
        match self {
            Positions::Made(_) => n,
            Positions::Raw { from, .. } => {
                n.push(from.index.offset).push(from.size).push(from.dim).word(from.index.buffer.context().ticket(op))
            }
        }
    }

    fn checked(&self) -> bool {
        matches!(self, Positions::Raw { .. })
    }
}

/// `position(at)`: the position that stands at element `at`, or NONE.
fn position_function(p: &mut Names, word: usize, slot: u32) -> String {
    if word == 0 {
        return format!("fn position(at: u32) -> u32 {{ return b{slot}[at]; }}\n");
    }
    let [offset, size, dim, ticket] = p.many();
    let read = match word & 3 {
        1 => format!("let lo = b{slot}[at * 2u]; let hi = b{slot}[at * 2u + 1u];"),
        2 => format!("let lo = b{slot}[at]; let hi = 0u - (lo >> 31u);"),
        _ => format!("let lo = b{slot}[at]; let hi = 0u;"),
    };
    let wrap = if word >= 4 {
        format!("if (hi == 0xffffffffu && {size} != 0u && lo >= 0u - {size}) {{ return lo + {size}; }}\n")
    } else {
        String::new()
    };
    format!(
        "fn position(number: u32) -> u32 {{
let at = number + {offset};
{read}
if (hi == 0u && lo < {size}) {{ return lo; }}
{wrap}fault({ticket}, lo, hi, {dim}, {size});
return {NONE};
}}
"
    )
}

/// A position's number among all places that the indexed dimensions have, for each position; NONE where one is out of range. With
/// `others`, the numbers of the dimensions that are not indexed are added.
fn make(op: &'static str, indexed: &[Indexed<'_>], wraps: bool, others: Option<(&[isize], usize)>) -> Result<Buffer> {
    let shape = indexed[0].index.shape;
    let n = countable(op, shape)?;
    let context = indexed[0].index.buffer.context();
    let out = scratch(context, n)?;
    let mut step: usize = others.map_or_else(|| indexed.iter().map(|i| i.size).product(), |o| o.1 * indexed[0].size);
    for (k, from) in indexed.iter().enumerate() {
        step = step.checked_div(from.size).unwrap_or(0);
        let at = Positions::Raw { from: *from, wraps };
        let more = |d: usize| others.map_or(0, |o| o.0[d]);
        let walk = Walk::ordered(shape.iter().enumerate().map(|(d, n)| (*n, [from.index.strides[d], more(d)])));
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(&out), bindings.read(from.index.buffer));
        let numbers = at.numbers(op, Numbers::default().push(n).push(step)).walk(&walk);
        let key = [at.word(), usize::from(k == 0), walk.rank() as usize];
        let (word, rank, first) = (at.word(), walk.rank(), k == 0);
        Launch { op, kind: "index_positions", words: &key, bindings, numbers, groups: groups_for(n), checked: true, atomics: 0 }.run(
            context,
            &|p| {
                let [n, step] = p.many();
                let position = position_function(p, word, idx);
                let walk = p.walk(rank, "e", &["at", "more"]);
                let put = if first {
                    format!("b{to}[e] = select(number + more, {NONE}, p == {NONE});\n")
                } else {
                    format!("b{to}[e] = select(b{to}[e] + number, {NONE}, p == {NONE} || b{to}[e] == {NONE});\n")
                };
                position
                    + &each(&n, &format!("var at = 0u; var more = 0u;\n{walk}let p = position(at); let number = p * {step};\n{put}"))
            },
        )?;
    }
    Ok(out)
}

/// `out[e] = x[walk of e, position of e]`: `dims` have the array's and the positions' strides, `places` are the indexed sizes and strides.
fn pick(op: &'static str, out: View<'_>, x: View<'_>, dims: Walk<2>, at: Positions<'_>, places: Walk<1>) -> Result<()> {
    let n = countable(op, out.shape)?;
    let width = words(x.dtype);
    let mut bindings = Bindings::new();
    let (to, from, idx) = (bindings.write(out.buffer), bindings.read(x.buffer), bindings.read(at.buffer()));
    let key = [width, at.word(), dims.rank() as usize, places.rank() as usize, from as usize, idx as usize];
    let numbers = at.numbers(op, Numbers::default().push(n).push(out.offset).push(x.offset)).walk(&dims).walk(&places);
    let (word, ranks) = (at.word(), (dims.rank(), places.rank()));
    Launch { op, kind: "index_pick", words: &key, bindings, numbers, groups: groups_for(n), checked: at.checked(), atomics: 0 }.run(
        out.buffer.context(),
        &|p| {
            let [n, start, first] = p.many();
            let position = position_function(p, word, idx);
            let (walk, place) = (p.walk(ranks.0, "e", &["x", "k"]), p.walk(ranks.1, "key", &["x"]));
            let put = store(to, width, &format!("{start} + e"), "v");
            let v = load(from, width, "x");
            let t = wgsl_type(width);
            position
                + &each(
                    &n,
                    &format!(
                        "var x = {first}; var k = 0u;\n{walk}let key = position(k);\nvar v = {t}();\nif (key != {NONE}) {{\n{place}v = {v};\n}}\n{put}"
                    ),
                )
        },
    )
}

impl Rows<'_> {
    fn index_rank(&self) -> usize {
        self.indexed[0].index.shape.len()
    }

    /// The dimensions of the result: size, the array's stride, and which dimension of the index it is.
    fn dims(&self) -> impl Iterator<Item = (usize, isize, Option<usize>)> {
        let own = |d: &usize| (self.x.shape[*d], self.x.strides[*d], None);
        let index = self.indexed[0].index.shape.iter().enumerate().map(|(k, n)| (*n, 0, Some(k)));
        self.before.iter().map(own).chain(index).chain(self.after.iter().map(own))
    }

    /// Sizes and strides of the places that a position's number counts.
    fn places(&self) -> Walk<1> {
        Walk::ordered(self.indexed.iter().map(|i| (i.size, [i.stride])))
    }

    /// Strides of positions made for a contiguous index.
    fn made_strides(&self) -> SmallVec<[isize; 6]> {
        let mut s: SmallVec<[isize; 6]> = SmallVec::from_elem(1, self.index_rank());
        for k in (1..s.len()).rev() {
            s[k - 1] = s[k] * self.indexed[0].index.shape[k] as isize;
        }
        s
    }

    /// `out = x[positions]`, row-major.
    pub fn take(&self, out: View<'_>) -> Result<()> {
        let made;
        let strides;
        let at = match self.indexed {
            [one] => {
                strides = SmallVec::from_slice(one.index.strides);
                Positions::Raw { from: *one, wraps: self.wraps }
            }
            several => {
                made = make(self.op, several, self.wraps, None)?;
                strides = self.made_strides();
                Positions::Made(&made)
            }
        };
        let dims = Walk::ordered(self.dims().map(|(n, s, k)| (n, [s, k.map_or(0, |k| strides[k])])));
        pick(self.op, out, self.x, dims, at, self.places())
    }

    /// `x[positions] = src`, added or multiplied. A view as source has the result's shape.
    pub fn put(&self, src: Source<'_>, how: Write) -> Result<()> {
        let shape = self.indexed[0].index.shape;
        let k = countable(self.op, shape)?;
        let write = Writes { op: self.op, x: self.x, src, how, places: self.places() };
        let dims: SmallVec<[(usize, isize, Option<usize>); 8]> = self.dims().collect();
        let source = |d: usize| src.stride(d);
        let alone = |d: &(usize, &(usize, isize, Option<usize>))| d.1.2.is_none();
        let of_index = |d: &(usize, &(usize, isize, Option<usize>))| d.1.2.is_some();
        let made;
        let strides;
        let at = match self.indexed {
            [one] if k <= IN_ORDER && !one.index.buffer.same(self.x.buffer) => {
                strides = SmallVec::from_slice(one.index.strides);
                Positions::Raw { from: *one, wraps: self.wraps }
            }
            several => {
                made = make(self.op, several, self.wraps, None)?;
                strides = self.made_strides();
                Positions::Made(&made)
            }
        };
        if k <= IN_ORDER {
            let columns = Walk::ordered(dims.iter().enumerate().filter(alone).map(|(d, (n, s, _))| (*n, [*s, source(d), 0])));
            let run = dims.iter().enumerate().filter(of_index);
            let run = Walk::ordered(run.map(|(d, (n, _, k))| (*n, [source(d), k.map_or(0, |k| strides[k])])));
            return write.in_order(columns, run, at);
        }
        let places: usize = self.indexed.iter().map(|i| i.size).product();
        let Positions::Made(keys) = at else { return Ok(()) };
        if how == Write::Set {
            let all = dims.iter().enumerate().map(|(d, (n, s, k))| (*n, [*s, source(d), k.map_or(0, |k| strides[k])]));
            return write.last(Walk::ordered(all), k, places, keys);
        }
        let columns = Walk::ordered(dims.iter().enumerate().filter(alone).map(|(d, (n, s, _))| (*n, [*s, source(d)])));
        let run = Walk::ordered(dims.iter().enumerate().filter(of_index).map(|(d, (n, _, _))| (*n, [source(d)])));
        write.sorted(columns, run, k, places, keys)
    }
}

/// `out[.., j, ..] = x[.., index[.., j, ..], ..]` along `dim`; `x` has the index's rank.
pub fn gather(op: &'static str, out: View<'_>, x: View<'_>, index: View<'_>, dim: usize, size: usize) -> Result<()> {
    let stride = x.strides.get(dim).copied().unwrap_or(0);
    let at = Positions::Raw { from: Indexed { index, dim, size, stride }, wraps: false };
    let dims = index.shape.iter().enumerate().map(|(d, n)| (*n, [if d == dim { 0 } else { x.strides[d] }, index.strides[d]]));
    pick(op, out, x, Walk::ordered(dims), at, Walk::ordered([(size, [stride])].into_iter()))
}

/// `x[.., index[.., j, ..], ..] = src[.., j, ..]` along `dim`, added or multiplied; all have the index's rank, `src` its shape.
pub fn scatter(op: &'static str, x: View<'_>, index: View<'_>, src: Source<'_>, how: Write, dim: usize, size: usize) -> Result<()> {
    let n = countable(op, index.shape)?;
    let stride = x.strides.get(dim).copied().unwrap_or(0);
    let from = Indexed { index, dim, size, stride };
    let run = index.shape.get(dim).copied().unwrap_or(1);
    if run <= IN_ORDER {
        let write = Writes { op, x, src, how, places: Walk::ordered([(size, [stride])].into_iter()) };
        let others = (0..index.shape.len()).filter(|d| *d != dim);
        let columns = Walk::ordered(others.map(|d| (index.shape[d], [x.strides[d], src.stride(d), index.strides[d]])));
        let along = index.shape.get(dim).map(|n| (*n, [src.stride(dim), index.strides[dim]]));
        if !index.buffer.same(x.buffer) {
            return write.in_order(columns, Walk::ordered(along.into_iter()), Positions::Raw { from, wraps: false });
        }
    }
    // All places that the index can reach, numbered row-major.
    let shape: SmallVec<[usize; 6]> = index.shape.iter().enumerate().map(|(d, n)| if d == dim { size } else { *n }).collect();
    let places = countable(op, &shape)?;
    let mut numbers: SmallVec<[isize; 6]> = SmallVec::from_elem(1, shape.len());
    for d in (1..shape.len()).rev() {
        numbers[d - 1] = numbers[d] * shape[d] as isize;
    }
    let step = numbers.get(dim).map_or(1, |s| *s as usize);
    if let Some(s) = numbers.get_mut(dim) {
        *s = 0;
    }
    let keys = make(op, &[from], false, Some((&numbers, step)))?;
    let all = Walk::ordered(shape.iter().zip(x.strides).map(|(n, s)| (*n, [*s])));
    let write = Writes { op, x, src, how, places: all };
    let mut row = n as isize;
    let dims = index.shape.iter().enumerate().map(|(d, n)| {
        row /= *n as isize;
        (*n, [0, src.stride(d), row])
    });
    if how == Write::Set {
        return write.last(Walk::ordered(dims), n, places, &keys);
    }
    let run = Walk::ordered(index.shape.iter().enumerate().map(|(d, n)| (*n, [src.stride(d)])));
    write.sorted(Walk::ordered([].into_iter()), run, n, places, &keys)
}

/// A write to places of an array: a position's number counts `places`.
struct Writes<'a> {
    op: &'static str,
    x: View<'a>,
    src: Source<'a>,
    how: Write,
    places: Walk<1>,
}

impl Writes<'_> {
    /// The binding of the source and, for a lone number, that there is none.
    fn source<'b>(&'b self, bindings: &mut Bindings<'b>) -> Option<u32> {
        match &self.src {
            Source::View(v) => Some(bindings.read(v.buffer)),
            Source::Number(_) => None,
        }
    }

    fn number(&self) -> u64 {
        match self.src {
            Source::View(_) => 0,
            Source::Number(s) => number_words(s, self.x.dtype),
        }
    }

    /// One invocation for each of `columns` (strides of the array, the source, the positions) goes along `run` (source, positions).
    fn in_order(&self, columns: Walk<3>, run: Walk<2>, at: Positions<'_>) -> Result<()> {
        let (op, dtype, how) = (self.op, self.x.dtype, self.how);
        let width = words(dtype);
        combine(op, dtype, how)?;
        let n = columns.count();
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(self.x.buffer), bindings.read(at.buffer()));
        let from = self.source(&mut bindings);
        let ranks = (columns.rank(), run.rank(), self.places.rank());
        let key = [dtype as usize, how as usize, at.word(), ranks.0 as usize, ranks.1 as usize, ranks.2 as usize, slot_word(from), idx as usize];
        let numbers = Numbers::default().push(n).push(run.count()).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = at.numbers(op, numbers).walk(&columns).walk(&run).walk(&self.places);
        let word = at.word();
        let launch = Launch { op, kind: "index_in_order", words: &key, bindings, numbers, groups: groups_for(n), checked: at.checked(), atomics: 0 };
        launch.run(self.x.buffer.context(), &|p| {
            let [n, length, first, source, low, high] = p.many();
            let position = position_function(p, word, idx);
            let columns = p.walk(ranks.0, "e", &["x0", "s0", "k0"]);
            let run = p.walk(ranks.1, "j", &["s", "k"]);
            let place = p.walk(ranks.2, "key", &["x"]);
            let value = source_value(from, width, &low, &high);
            let (old, put) = (load(to, width, "x"), store(to, width, "x", "v"));
            position
                + &combine(op, dtype, how).unwrap_or_default()
                + &each(
                    &n,
                    &format!(
                        "var x0 = {first}; var s0 = {source}; var k0 = 0u;
{columns}for (var j = 0u; j < {length}; j++) {{
var s = s0; var k = k0;
{run}let key = position(k);
if (key == {NONE}) {{ continue; }}
var x = x0;
{place}let v = combine({old}, {value});
{put}}}
"
                    ),
                )
        })
    }

    /// The last of all positions that meet at a place writes there. `dims` have strides of the array, the source and the positions' number.
    fn last(&self, dims: Walk<3>, k: usize, places: usize, keys: &Buffer) -> Result<()> {
        let (op, width) = (self.op, words(self.x.dtype));
        let context = self.x.buffer.context();
        let table = scratch(context, places)?;
        fill(context, op, &table, places, 0)?;
        let mut bindings = Bindings::new();
        (bindings.read(keys), bindings.write(&table));
        let numbers = Numbers::default().push(k);
        Launch { op, kind: "index_last", words: &[], bindings, numbers, groups: groups_for(k), checked: false, atomics: 2 }.run(context, &|p| {
            each(&p.next(), &format!("let key = b0[e];\nif (key != {NONE}) {{ atomicMax(&b1[key], e + 1u); }}\n"))
        })?;
        let n = dims.count();
        let mut bindings = Bindings::new();
        let (to, idx, win) = (bindings.write(self.x.buffer), bindings.read(keys), bindings.read(&table));
        let from = self.source(&mut bindings);
        let ranks = (dims.rank(), self.places.rank());
        let key = [width, ranks.0 as usize, ranks.1 as usize, slot_word(from)];
        let numbers = Numbers::default().push(n).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = numbers.walk(&dims).walk(&self.places);
        Launch { op, kind: "index_set", words: &key, bindings, numbers, groups: groups_for(n), checked: false, atomics: 0 }.run(context, &|p| {
            let [n, first, source, low, high] = p.many();
            let (walk, place) = (p.walk(ranks.0, "e", &["x", "s", "k"]), p.walk(ranks.1, "key", &["x"]));
            let (value, put) = (source_value(from, width, &low, &high), store(to, width, "x", "v"));
            each(
                &n,
                &format!(
                    "var x = {first}; var s = {source}; var k = 0u;
{walk}let key = b{idx}[k];
if (key != {NONE} && b{win}[key] == k + 1u) {{
{place}let v = {value};
{put}}}
"
                ),
            )
        })
    }

    /// All that meets at a place is combined, in an order that only the positions decide.
    fn sorted(&self, columns: Walk<2>, run: Walk<1>, k: usize, places: usize, keys: &Buffer) -> Result<()> {
        combine(self.op, self.x.dtype, self.how)?;
        let runs = Runs {
            op: self.op,
            x: self.x,
            src: match &self.src {
                Source::View(v) => Some(*v),
                Source::Number(_) => None,
            },
            number: self.number(),
            how: self.how,
            columns,
            run,
            places: &self.places,
        };
        accumulate::accumulate(&runs, k, places, keys)
    }
}

/// A source's binding as a word of a key.
pub(super) fn slot_word(slot: Option<u32>) -> usize {
    slot.map_or(0, |s| s as usize + 1)
}

/// The source's element at `s`, or the number.
pub(super) fn source_value(from: Option<u32>, width: usize, low: &str, high: &str) -> String {
    match from {
        Some(b) => load(b, width, "s"),
        None if width == 2 => format!("vec2<u32>({low}, {high})"),
        None => low.to_string(),
    }
}

/// `combine(a, b)`: what a write of `b` leaves where `a` was.
pub(super) fn combine(op: &str, dtype: DType, how: Write) -> Result<String> {
    let body = match (how, dtype) {
        (Write::Set, _) => "return b;",
        (Write::Add, DType::F32) => "return bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(b));",
        (Write::Multiply, DType::F32) => "return bitcast<u32>(bitcast<f32>(a) * bitcast<f32>(b));",
        (Write::Add, DType::I32) => "return a + b;",
        (Write::Multiply, DType::I32) => "return a * b;",
        (Write::Add, DType::U8) => "return (a + b) & 255u;",
        (Write::Multiply, DType::U8) => "return (a * b) & 255u;",
        (Write::Add, DType::Bool) => "return a | b;",
        (Write::Multiply, DType::Bool) => "return a & b;",
        (Write::Add, DType::I64) => "let lo = a.x + b.x; return vec2<u32>(lo, a.y + b.y + select(0u, 1u, lo < a.x));",
        (Write::Multiply, DType::I64) => "let low = wide_mul(a.x, b.x); return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);",
        (Write::Add | Write::Multiply, DType::F64) => return Err(unsupported(op, dtype)),
    };
    let t = wgsl_type(words(dtype));
    let wide = if (how, dtype) == (Write::Multiply, DType::I64) { WIDE_MUL } else { "" };
    Ok(format!("{wide}fn combine(a: {t}, b: {t}) -> {t} {{ {body} }}\n"))
}

/// Copies a matrix for each of the leading dimensions, keeping what lies on and above (`upper`) or on and below the `diagonal`-th
/// diagonal; the rest becomes zero. Both have one shape; `out` may be `x` itself.
pub fn triangle(op: &'static str, out: View<'_>, x: View<'_>, diagonal: i64, upper: bool) -> Result<()> {
    let n = countable(op, out.shape)?;
    let width = words(x.dtype);
    let r = out.shape.len();
    let (rows, cols) = (out.shape[r - 2], out.shape[r - 1]);
    let dims = out.shape.iter().zip(out.strides).zip(x.strides).map(|((n, a), b)| (*n, [*a, *b]));
    let walk = Walk::ordered(dims);
    let mut bindings = Bindings::new();
    let (to, from) = (bindings.write(out.buffer), bindings.read(x.buffer));
    // Beyond the matrix every diagonal is alike.
    let diagonal = diagonal.clamp(-(rows as i64) - 1, cols as i64 + 1) as i32 as u32;
    let numbers = Numbers::default().push(n).push(rows).push(cols).word(diagonal).push(out.offset).push(x.offset).walk(&walk);
    let key = [width, usize::from(upper), walk.rank() as usize, from as usize];
    let rank = walk.rank();
    Launch { op, kind: "triangle", words: &key, bindings, numbers, groups: groups_for(n), checked: false, atomics: 0 }.run(
        out.buffer.context(),
        &|p| {
            let [n, rows, cols, diagonal, first, source] = p.many();
            let walk = p.walk(rank, "e", &["o", "s"]);
            let (value, put, t) = (load(from, width, "s"), store(to, width, "o", "v"), wgsl_type(width));
            let keeps = if upper { ">=" } else { "<=" };
            each(
                &n,
                &format!(
                    "let row = (e / {cols}) % {rows}; let column = e % {cols};
var o = {first}; var s = {source};
{walk}var v = {t}();
if (i32(column) - i32(row) {keeps} bitcast<i32>({diagonal})) {{ v = {value}; }}
{put}"
                ),
            )
        },
    )
}
