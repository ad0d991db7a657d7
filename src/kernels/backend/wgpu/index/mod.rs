//! Indexing: reads at positions given by data; `scatter` writes, and `segmented_reduce` combines writes to one element. Shaders check
//! positions when they read them: one out of range reports a fault and accesses no memory. Not here: which positions an index names
//! (`crate::call`).

pub(super) mod compute;
pub(super) mod scatter;
mod segmented_reduce;

pub use self::scatter::ScatterSource;
use self::scatter::{IN_ORDER, ScatterWrites};
use super::{Bindings, Buffer, BufferView};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, NONE, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load, scratch, store, wgsl_type, words,
};
use crate::call::Write;
use crate::error::Result;
use crate::layout::{DType, Number};
use smallvec::SmallVec;

/// One indexed dimension of an array.
#[derive(Debug, Clone, Copy)]
pub struct Indexed<'a> {
    /// Positions; all indexed dimensions have one index shape.
    pub index: BufferView<'a>,
    /// The number of the dimension, for the error.
    pub dim: usize,
    pub size: usize,
    /// The array's stride.
    pub stride: isize,
}

/// `x[.., i, .., j, ..]`: the dimensions that are not indexed stand before and behind those of the index.
#[derive(Debug, Clone, Copy)]
pub struct IndexedArray<'a> {
    pub op: &'static str,
    pub x: BufferView<'a>,
    pub indexed: &'a [Indexed<'a>],
    /// Whether negative positions count from the end.
    pub wraps: bool,
    pub before: &'a [usize],
    pub after: &'a [usize],
}

/// The positions of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Positions<'a> {
    /// Already checked, one word each.
    Made(&'a Buffer),
    Raw {
        from: Indexed<'a>,
        wraps: bool,
    },
}

impl<'a> Positions<'a> {
    pub(super) fn buffer(&self) -> &'a Buffer {
        match self {
            Positions::Made(b) => b,
            Positions::Raw { from, .. } => from.index.buffer,
        }
    }

    /// The properties that the source of a shader depends on.
    pub(super) fn form(&self, slot: u32) -> PositionsBinding {
        match self {
            Positions::Made(_) => PositionsBinding { slot, raw: None },
            Positions::Raw { from, wraps } => PositionsBinding { slot, raw: Some((from.index.dtype, *wraps)) },
        }
    }

    pub(super) fn numbers(&self, op: &'static str, n: ParamValues) -> ParamValues {
        match self {
            Positions::Made(_) => n,
            Positions::Raw { from, .. } => {
                n.push(from.index.offset).push(from.size).push(from.dim).word(from.index.buffer.context().ticket(op))
            }
        }
    }
}

/// The binding of the positions of a shader and, if the shader checks them, their type and whether negative ones count from the end.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct PositionsBinding {
    pub slot: u32,
    pub raw: Option<(DType, bool)>,
}

impl PositionsBinding {
    /// `position(number)`: the position with this number, or NONE.
    pub(super) fn function(&self, p: &mut ParamNames) -> String {
        let slot = self.slot;
        let Some((dtype, wraps)) = self.raw else {
            return format!("fn position(number: u32) -> u32 {{ return b{slot}[number]; }}\n");
        };
        let [offset, size, dim, ticket] = p.many();
        let read = match dtype.number() {
            Number::I64 => format!("let lo = b{slot}[at * 2u]; let hi = b{slot}[at * 2u + 1u];"),
            Number::I32 => format!("let lo = b{slot}[at]; let hi = 0u - (lo >> 31u);"),
            Number::Bool | Number::U8 => format!("let lo = b{slot}[at]; let hi = 0u;"),
            // Refused as positions.
            Number::F32 | Number::F64 | Number::C64 | Number::C128 => "let lo = 0u; let hi = 0x80000000u;".into(),
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

/// For each position its linear number over the indexed dimensions; NONE if it is out of range. With `others`, the numbers of the
/// dimensions that are not indexed are added.
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
        let walk = StridedWalk::ordered(shape.iter().enumerate().map(|(d, n)| (*n, [from.index.strides[d], more(d)])));
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(&out), bindings.read(from.index.buffer));
        let numbers = at.numbers(op, ParamValues::default().push(n).push(step)).walk(&walk);
        let kernel = ResolvePositions { to, at: at.form(idx), rank: walk.rank(), first: k == 0 };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &kernel)?;
    }
    Ok(out)
}

#[derive(Debug, Hash)]
struct ResolvePositions {
    to: u32,
    at: PositionsBinding,
    rank: u32,
    first: bool,
}

impl WordKernel for ResolvePositions {
    const KIND: &'static str = "index_positions";

    fn checked(&self) -> bool {
        true
    }

    fn body(&self, p: &mut ParamNames) -> String {
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
fn pick(
    op: &'static str,
    out: BufferView<'_>,
    x: BufferView<'_>,
    dims: StridedWalk<2>,
    at: Positions<'_>,
    places: StridedWalk<1>,
) -> Result<()> {
    let n = countable(op, out.shape)?;
    let width = words(x.dtype);
    let mut bindings = Bindings::new();
    let (to, from, idx) = (bindings.write(out.buffer), bindings.read(x.buffer), bindings.read(at.buffer()));
    let numbers = at.numbers(op, ParamValues::default().push(n).push(out.offset).push(x.offset)).walk(&dims).walk(&places);
    let kernel = GatherKernel { width, at: at.form(idx), ranks: [dims.rank(), places.rank()], to, from };
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(out.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct GatherKernel {
    width: usize,
    at: PositionsBinding,
    ranks: [u32; 2],
    to: u32,
    from: u32,
}

impl WordKernel for GatherKernel {
    const KIND: &'static str = "index_pick";

    fn checked(&self) -> bool {
        self.at.raw.is_some()
    }

    fn body(&self, p: &mut ParamNames) -> String {
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

impl IndexedArray<'_> {
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
    fn places(&self) -> StridedWalk<1> {
        StridedWalk::ordered(self.indexed.iter().map(|i| (i.size, [i.stride])))
    }

    /// Strides of positions made for a contiguous index.
    fn made_strides(&self) -> SmallVec<[isize; 6]> {
        let mut s: SmallVec<[isize; 6]> = SmallVec::from_elem(1, self.index_rank());
        for k in (1..s.len()).rev() {
            s[k - 1] = s[k] * self.indexed[0].index.shape[k] as isize;
        }
        s
    }

    /// The positions and their strides over the index's shape: those of one index array may be read where they lie, others are made
    /// into `made` first.
    fn positions<'b>(&'b self, in_place: bool, made: &'b mut Option<Buffer>) -> Result<(Positions<'b>, SmallVec<[isize; 6]>)> {
        if let ([one], true) = (self.indexed, in_place) {
            return Ok((Positions::Raw { from: *one, wraps: self.wraps }, SmallVec::from_slice(one.index.strides)));
        }
        let made = made.insert(make(self.op, self.indexed, self.wraps, None)?);
        Ok((Positions::Made(made), self.made_strides()))
    }

    /// `out = x[positions]`, row-major.
    pub fn take(&self, out: BufferView<'_>) -> Result<()> {
        let mut made = None;
        let (at, strides) = self.positions(true, &mut made)?;
        let dims = StridedWalk::ordered(self.dims().map(|(n, s, k)| (n, [s, k.map_or(0, |k| strides[k])])));
        pick(self.op, out, self.x, dims, at, self.places())
    }

    /// `x[positions] = src`, added or multiplied. A view as source has the result's shape.
    pub fn put(&self, src: ScatterSource<'_>, how: Write) -> Result<()> {
        let shape = self.indexed[0].index.shape;
        let k = countable(self.op, shape)?;
        let all: SmallVec<[usize; 8]> = self.dims().map(|d| d.0).collect();
        countable(self.op, &all)?;
        let write = ScatterWrites { op: self.op, x: self.x, src, how, places: self.places() };
        let dims: SmallVec<[(usize, isize, Option<usize>); 8]> = self.dims().collect();
        let source = |d: usize| src.stride(d);
        let alone = |d: &(usize, &(usize, isize, Option<usize>))| d.1.2.is_none();
        let of_index = |d: &(usize, &(usize, isize, Option<usize>))| d.1.2.is_some();
        let mut made = None;
        let untouched = self.indexed.iter().all(|i| !i.index.buffer.same(self.x.buffer));
        let (at, strides) = self.positions(k <= IN_ORDER && untouched, &mut made)?;
        if k <= IN_ORDER {
            let columns = StridedWalk::ordered(dims.iter().enumerate().filter(alone).map(|(d, (n, s, _))| (*n, [*s, source(d), 0])));
            let run = dims.iter().enumerate().filter(of_index);
            let run = StridedWalk::ordered(run.map(|(d, (n, _, k))| (*n, [source(d), k.map_or(0, |k| strides[k])])));
            return write.in_order(columns, run, at);
        }
        let places: usize = self.indexed.iter().map(|i| i.size).product();
        let Positions::Made(keys) = at else { return Ok(()) };
        if how == Write::Set {
            let all = dims.iter().enumerate().map(|(d, (n, s, k))| (*n, [*s, source(d), k.map_or(0, |k| strides[k])]));
            return write.last(StridedWalk::ordered(all), k, places, keys);
        }
        let columns = StridedWalk::ordered(dims.iter().enumerate().filter(alone).map(|(d, (n, s, _))| (*n, [*s, source(d)])));
        let run = StridedWalk::ordered(dims.iter().enumerate().filter(of_index).map(|(d, (n, _, _))| (*n, [source(d)])));
        write.sorted(columns, run, k, places, keys)
    }
}

/// `out[.., j, ..] = x[.., index[.., j, ..], ..]` along `dim`; `x` has the index's rank.
pub fn gather(op: &'static str, out: BufferView<'_>, x: BufferView<'_>, index: BufferView<'_>, dim: usize, size: usize) -> Result<()> {
    let stride = x.strides.get(dim).copied().unwrap_or(0);
    let at = Positions::Raw { from: Indexed { index, dim, size, stride }, wraps: false };
    let dims = index.shape.iter().enumerate().map(|(d, n)| (*n, [if d == dim { 0 } else { x.strides[d] }, index.strides[d]]));
    pick(op, out, x, StridedWalk::ordered(dims), at, StridedWalk::ordered([(size, [stride])].into_iter()))
}

/// `x[.., index[.., j, ..], ..] = src[.., j, ..]` along `dim`, added or multiplied; all have the index's rank, `src` its shape.
pub fn scatter(
    op: &'static str,
    x: BufferView<'_>,
    index: BufferView<'_>,
    src: ScatterSource<'_>,
    how: Write,
    dim: usize,
    size: usize,
) -> Result<()> {
    let n = countable(op, index.shape)?;
    let stride = x.strides.get(dim).copied().unwrap_or(0);
    let from = Indexed { index, dim, size, stride };
    let run = index.shape.get(dim).copied().unwrap_or(1);
    if run <= IN_ORDER {
        let write = ScatterWrites { op, x, src, how, places: StridedWalk::ordered([(size, [stride])].into_iter()) };
        let others = (0..index.shape.len()).filter(|d| *d != dim);
        let columns = StridedWalk::ordered(others.map(|d| (index.shape[d], [x.strides[d], src.stride(d), index.strides[d]])));
        let along = index.shape.get(dim).map(|n| (*n, [src.stride(dim), index.strides[dim]]));
        if !index.buffer.same(x.buffer) {
            return write.in_order(columns, StridedWalk::ordered(along.into_iter()), Positions::Raw { from, wraps: false });
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
    let all = StridedWalk::ordered(shape.iter().zip(x.strides).map(|(n, s)| (*n, [*s])));
    let write = ScatterWrites { op, x, src, how, places: all };
    let mut row = n as isize;
    let dims = index.shape.iter().enumerate().map(|(d, n)| {
        row /= *n as isize;
        (*n, [0, src.stride(d), row])
    });
    if how == Write::Set {
        return write.last(StridedWalk::ordered(dims), n, places, &keys);
    }
    let run = StridedWalk::ordered(index.shape.iter().enumerate().map(|(d, n)| (*n, [src.stride(d)])));
    write.sorted(StridedWalk::ordered([].into_iter()), run, n, places, &keys)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    pub(in super::super) const AT: [PositionsBinding; 4] = [
        PositionsBinding { slot: 1, raw: None },
        PositionsBinding { slot: 1, raw: Some((DType::I64, true)) },
        PositionsBinding { slot: 1, raw: Some((DType::I32, false)) },
        PositionsBinding { slot: 1, raw: Some((DType::U8, true)) },
    ];

    #[test]
    fn every_shader_is_valid() {
        for at in AT {
            for first in [true, false] {
                if at.raw.is_some() {
                    validate(&ResolvePositions { to: 0, at, rank: 2, first }, 1);
                }
            }
            for (width, rank) in [(1, 0), (2, 3)] {
                validate(&GatherKernel { width, at, ranks: [rank, rank], to: 0, from: 2 }, 1);
            }
        }
    }
}
