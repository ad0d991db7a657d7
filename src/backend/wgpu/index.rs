//! Kernels that read and write elements at positions given by data.
//!
//! Positions are checked where they are read; one out of range raises a fault and touches nothing. Where several of them meet at one
//! place, the result is the same in every run: few positions are gone through in order by one invocation for each column, as on the
//! CPU; many are decided by the number of the last writer, or sorted and summed (`accumulate`).

use super::accumulate::{self, Runs};
use super::strided::Walk;
use super::words::{
    Kernel, Launch, NONE, Names, Numbers, WIDE_MUL, countable, each, fill, groups_for, load, number_words, scratch, store, unsupported, wgsl_type,
    words,
};
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
    fn form(&self, slot: u32) -> At {
        match self {
            Positions::Made(_) => At { slot, raw: None },
            Positions::Raw { from, wraps } => At { slot, raw: Some((from.index.dtype, *wraps)) },
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
}

/// Where a shader finds its positions: the binding and, where it has to check them, their type and whether negative ones count from the end.
#[derive(Debug, Clone, Copy, Hash)]
struct At {
    slot: u32,
    raw: Option<(DType, bool)>,
}

impl At {
    /// `position(number)`: the position with this number, or NONE.
    fn function(&self, p: &mut Names) -> String {
        let slot = self.slot;
        let Some((dtype, wraps)) = self.raw else {
            return format!("fn position(number: u32) -> u32 {{ return b{slot}[number]; }}\n");
        };
        let [offset, size, dim, ticket] = p.many();
        let read = match dtype {
            DType::I64 => format!("let lo = b{slot}[at * 2u]; let hi = b{slot}[at * 2u + 1u];"),
            DType::I32 => format!("let lo = b{slot}[at]; let hi = 0u - (lo >> 31u);"),
            _ => format!("let lo = b{slot}[at]; let hi = 0u;"),
        };
        let wrap = if wraps {
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
        let kernel = Make { to, at: at.form(idx), rank: walk.rank(), first: k == 0 };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &kernel)?;
    }
    Ok(out)
}

#[derive(Debug, Hash)]
struct Make {
    to: u32,
    at: At,
    rank: u32,
    first: bool,
}

impl Kernel for Make {
    const KIND: &'static str = "index_positions";

    fn checked(&self) -> bool {
        true
    }

    fn body(&self, p: &mut Names) -> String {
        let [n, step] = p.many();
        let position = self.at.function(p);
        let walk = p.walk(self.rank, "e", &["at", "more"]);
        let to = self.to;
        let put = if self.first {
            format!("b{to}[e] = select(number + more, {NONE}, p == {NONE});\n")
        } else {
            format!("b{to}[e] = select(b{to}[e] + number, {NONE}, p == {NONE} || b{to}[e] == {NONE});\n")
        };
        position + &each(&n, &format!("var at = 0u; var more = 0u;\n{walk}let p = position(at); let number = p * {step};\n{put}"))
    }
}

/// `out[e] = x[walk of e, position of e]`: `dims` have the array's and the positions' strides, `places` are the indexed sizes and strides.
fn pick(op: &'static str, out: View<'_>, x: View<'_>, dims: Walk<2>, at: Positions<'_>, places: Walk<1>) -> Result<()> {
    let n = countable(op, out.shape)?;
    let width = words(x.dtype);
    let mut bindings = Bindings::new();
    let (to, from, idx) = (bindings.write(out.buffer), bindings.read(x.buffer), bindings.read(at.buffer()));
    let numbers = at.numbers(op, Numbers::default().push(n).push(out.offset).push(x.offset)).walk(&dims).walk(&places);
    let kernel = Pick { width, at: at.form(idx), ranks: [dims.rank(), places.rank()], to, from };
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(out.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct Pick {
    width: usize,
    at: At,
    ranks: [u32; 2],
    to: u32,
    from: u32,
}

impl Kernel for Pick {
    const KIND: &'static str = "index_pick";

    fn checked(&self) -> bool {
        self.at.raw.is_some()
    }

    fn body(&self, p: &mut Names) -> String {
        let [n, start, first] = p.many();
        let position = self.at.function(p);
        let (walk, place) = (p.walk(self.ranks[0], "e", &["x", "k"]), p.walk(self.ranks[1], "key", &["x"]));
        let put = store(self.to, self.width, &format!("{start} + e"), "v");
        let (t, v) = (wgsl_type(self.width), load(self.from, self.width, "x"));
        position
            + &each(
                &n,
                &format!(
                    "var x = {first}; var k = 0u;
{walk}let key = position(k);
var v = {t}();
if (key != {NONE}) {{
{place}v = {v};
}}
{put}"
                ),
            )
    }
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
        combine(op, dtype, how)?;
        let n = columns.count();
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(self.x.buffer), bindings.read(at.buffer()));
        let from = self.source(&mut bindings);
        let numbers = Numbers::default().push(n).push(run.count()).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = at.numbers(op, numbers).walk(&columns).walk(&run).walk(&self.places);
        let kernel = InOrder { dtype, how, at: at.form(idx), ranks: [columns.rank(), run.rank(), self.places.rank()], to, from };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(self.x.buffer.context(), &kernel)
    }

    /// The last of all positions that meet at a place writes there. `dims` have strides of the array, the source and the positions' number.
    fn last(&self, dims: Walk<3>, k: usize, places: usize, keys: &Buffer) -> Result<()> {
        let op = self.op;
        let context = self.x.buffer.context();
        let table = scratch(context, places)?;
        fill(context, op, &table, places, 0)?;
        let mut bindings = Bindings::new();
        (bindings.read(keys), bindings.write(&table));
        let numbers = Numbers::default().push(k);
        Launch { op, bindings, numbers, groups: groups_for(k) }.run(context, &Mark)?;
        let n = dims.count();
        let mut bindings = Bindings::new();
        let (to, idx, win) = (bindings.write(self.x.buffer), bindings.read(keys), bindings.read(&table));
        let from = self.source(&mut bindings);
        let numbers = Numbers::default().push(n).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = numbers.walk(&dims).walk(&self.places);
        let kernel = Set { width: words(self.x.dtype), ranks: [dims.rank(), self.places.rank()], slots: [to, idx, win], from };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &kernel)
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

#[derive(Debug, Hash)]
struct InOrder {
    dtype: DType,
    how: Write,
    at: At,
    ranks: [u32; 3],
    to: u32,
    /// None: one number is written.
    from: Option<u32>,
}

impl Kernel for InOrder {
    const KIND: &'static str = "index_in_order";

    fn checked(&self) -> bool {
        self.at.raw.is_some()
    }

    fn body(&self, p: &mut Names) -> String {
        let width = words(self.dtype);
        let [n, length, first, source, low, high] = p.many();
        let position = self.at.function(p);
        let columns = p.walk(self.ranks[0], "e", &["x0", "s0", "k0"]);
        let run = p.walk(self.ranks[1], "j", &["s", "k"]);
        let place = p.walk(self.ranks[2], "key", &["x"]);
        let value = source_value(self.from, width, &low, &high);
        let (old, put) = (load(self.to, width, "x"), store(self.to, width, "x", "v"));
        position
            + &combine("", self.dtype, self.how).unwrap_or_default()
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
    }
}

/// Finds the last of the positions at each place.
#[derive(Debug, Hash)]
struct Mark;

impl Kernel for Mark {
    const KIND: &'static str = "index_last";
    const ATOMICS: u32 = 2;

    fn body(&self, p: &mut Names) -> String {
        each(&p.next(), &format!("let key = b0[e];\nif (key != {NONE}) {{ atomicMax(&b1[key], e + 1u); }}\n"))
    }
}

#[derive(Debug, Hash)]
struct Set {
    width: usize,
    ranks: [u32; 2],
    /// The array, the positions, the last of them at each place.
    slots: [u32; 3],
    from: Option<u32>,
}

impl Kernel for Set {
    const KIND: &'static str = "index_set";

    fn body(&self, p: &mut Names) -> String {
        let [n, first, source, low, high] = p.many();
        let (walk, place) = (p.walk(self.ranks[0], "e", &["x", "s", "k"]), p.walk(self.ranks[1], "key", &["x"]));
        let [to, idx, win] = self.slots;
        let (value, put) = (source_value(self.from, self.width, &low, &high), store(to, self.width, "x", "v"));
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
    }
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
    let kernel = Triangle { width, upper, rank: walk.rank(), to, from };
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(out.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct Triangle {
    width: usize,
    upper: bool,
    rank: u32,
    to: u32,
    from: u32,
}

impl Kernel for Triangle {
    const KIND: &'static str = "triangle";

    fn body(&self, p: &mut Names) -> String {
        let [n, rows, cols, diagonal, first, source] = p.many();
        let walk = p.walk(self.rank, "e", &["o", "s"]);
        let (value, put, t) = (load(self.from, self.width, "s"), store(self.to, self.width, "o", "v"), wgsl_type(self.width));
        let keeps = if self.upper { ">=" } else { "<=" };
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
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::validate;
    use super::*;

    const AT: [At; 4] = [
        At { slot: 1, raw: None },
        At { slot: 1, raw: Some((DType::I64, true)) },
        At { slot: 1, raw: Some((DType::I32, false)) },
        At { slot: 1, raw: Some((DType::U8, true)) },
    ];

    #[test]
    fn every_shader_is_valid() {
        for at in AT {
            for first in [true, false] {
                if at.raw.is_some() {
                    validate(&Make { to: 0, at, rank: 2, first }, 1);
                }
            }
            for (width, rank) in [(1, 0), (2, 3)] {
                validate(&Pick { width, at, ranks: [rank, rank], to: 0, from: 2 }, 1);
            }
            for dtype in DType::ALL {
                for how in [Write::Set, Write::Add, Write::Multiply] {
                    if combine("test", dtype, how).is_ok() {
                        validate(&InOrder { dtype, how, at, ranks: [2, 1, 2], to: 0, from: Some(2) }, 1);
                        validate(&InOrder { dtype, how, at, ranks: [0, 0, 0], to: 0, from: None }, 1);
                    }
                }
            }
        }
        validate(&Mark, 2);
        for width in [1, 2] {
            for from in [None, Some(3)] {
                validate(&Set { width, ranks: [2, 2], slots: [0, 1, 2], from }, 1);
            }
            for upper in [true, false] {
                validate(&Triangle { width, upper, rank: 3, to: 0, from: 0 }, 1);
            }
        }
    }
}
