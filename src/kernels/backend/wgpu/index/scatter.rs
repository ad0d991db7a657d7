//! Writes at positions given by data. If several positions name the same element, the result is the same in every run: few positions are
//! processed in order by one invocation for each column, as on the CPU; of many, the writer with the highest number wins, or they are
//! sorted and summed (`segmented_reduce`).

use super::segmented_reduce::{self, SegmentedReduce};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, NONE, ParamNames, ParamValues, WIDE_MUL, WordKernel, each, fill, groups_for, load, number_words, scratch, store, wgsl_type,
    words,
};
use crate::backend::wgpu::index::{Positions, PositionsBinding};
use crate::backend::wgpu::{Bindings, Buffer, BufferView, elem};
use crate::call::Write;
use crate::error::Result;
use crate::layout::{DType, Number, Scalar};

/// The most positions that one invocation processes in order.
pub(crate) const IN_ORDER: usize = 256;

/// What is written: elements, or one value.
#[derive(Debug, Clone, Copy)]
pub enum ScatterSource<'a> {
    View(BufferView<'a>),
    Number(Scalar),
}

impl ScatterSource<'_> {
    pub(crate) fn offset(&self) -> usize {
        match self {
            ScatterSource::View(v) => v.offset,
            ScatterSource::Number(_) => 0,
        }
    }

    pub(crate) fn stride(&self, d: usize) -> isize {
        match self {
            ScatterSource::View(v) => v.strides[d],
            ScatterSource::Number(_) => 0,
        }
    }
}

/// A write to places of an array: a position's number counts `places`.
pub(crate) struct ScatterWrites<'a> {
    pub op: &'static str,
    pub x: BufferView<'a>,
    pub src: ScatterSource<'a>,
    pub how: Write,
    pub places: StridedWalk<1>,
}

impl ScatterWrites<'_> {
    /// The binding of the source and, for a lone number, that there is none.
    fn source<'b>(&'b self, bindings: &mut Bindings<'b>) -> Option<u32> {
        match &self.src {
            ScatterSource::View(v) => Some(bindings.read(v.buffer)),
            ScatterSource::Number(_) => None,
        }
    }

    fn number(&self) -> u64 {
        match self.src {
            ScatterSource::View(_) => 0,
            ScatterSource::Number(s) => number_words(s, self.x.dtype),
        }
    }

    /// One invocation for each of `columns` (strides of the array, the source, the positions) goes along `run` (source, positions).
    pub(crate) fn in_order(&self, columns: StridedWalk<3>, run: StridedWalk<2>, at: Positions<'_>) -> Result<()> {
        let (op, dtype, how) = (self.op, self.x.dtype, self.how);
        let n = columns.count();
        let mut bindings = Bindings::new();
        let (to, idx) = (bindings.write(self.x.buffer), bindings.read(at.buffer()));
        let from = self.source(&mut bindings);
        let numbers = ParamValues::default().push(n).push(run.count()).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = at.numbers(op, numbers).walk(&columns).walk(&run).walk(&self.places);
        let kernel = ScatterInOrder { dtype, how, at: at.form(idx), ranks: [columns.rank(), run.rank(), self.places.rank()], to, from };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(self.x.buffer.context(), &kernel)
    }

    /// The last of all positions that name an element writes it. `dims` have strides of the array, the source and the positions' number.
    pub(crate) fn last(&self, dims: StridedWalk<3>, k: usize, places: usize, keys: &Buffer) -> Result<()> {
        let op = self.op;
        let context = self.x.buffer.context();
        let table = scratch(context, places)?;
        fill(context, op, &table, places, 0)?;
        let mut bindings = Bindings::new();
        bindings.read(keys);
        bindings.write(&table);
        let numbers = ParamValues::default().push(k);
        Launch { op, bindings, numbers, groups: groups_for(k) }.run(context, &MarkLastWriter)?;
        let n = dims.count();
        let mut bindings = Bindings::new();
        let (to, idx, win) = (bindings.write(self.x.buffer), bindings.read(keys), bindings.read(&table));
        let from = self.source(&mut bindings);
        let numbers = ParamValues::default().push(n).push(self.x.offset).push(self.src.offset()).long(self.number());
        let numbers = numbers.walk(&dims).walk(&self.places);
        let kernel =
            ScatterLastWriter { width: words(self.x.dtype), ranks: [dims.rank(), self.places.rank()], slots: [to, idx, win], from };
        Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &kernel)
    }

    /// All values for an element are combined, in an order that depends on the positions alone.
    pub(crate) fn sorted(&self, columns: StridedWalk<2>, run: StridedWalk<1>, k: usize, places: usize, keys: &Buffer) -> Result<()> {
        let runs = SegmentedReduce {
            op: self.op,
            x: self.x,
            src: match &self.src {
                ScatterSource::View(v) => Some(*v),
                ScatterSource::Number(_) => None,
            },
            number: self.number(),
            how: self.how,
            columns,
            run,
            places: &self.places,
        };
        segmented_reduce::accumulate(&runs, k, places, keys)
    }
}

#[derive(Debug, Hash)]
struct ScatterInOrder {
    dtype: DType,
    how: Write,
    at: PositionsBinding,
    ranks: [u32; 3],
    to: u32,
    /// None: one number is written.
    from: Option<u32>,
}

impl WordKernel for ScatterInOrder {
    const KIND: &'static str = "index_in_order";

    fn checked(&self) -> bool {
        self.at.raw.is_some()
    }

    fn body(&self, p: &mut ParamNames) -> String {
        let width = words(self.dtype);
        let [n, length, first, source, low, high] = p.many();
        let position = self.at.function(p);
        let columns = p.walk(self.ranks[0], "e", &["x0", "s0", "k0"]);
        let run = p.walk(self.ranks[1], "j", &["s", "k"]);
        let place = p.walk(self.ranks[2], "key", &["x"]);
        let value = source_value(self.from, width, &low, &high);
        let (old, put) = (load(self.to, width, "x"), store(self.to, width, "x", "v"));
        position
            + &combine(self.dtype, self.how)
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

/// Finds the last position that names each element.
#[derive(Debug, Hash)]
struct MarkLastWriter;

impl WordKernel for MarkLastWriter {
    const KIND: &'static str = "index_last";
    const ATOMICS: u32 = 2;

    fn body(&self, p: &mut ParamNames) -> String {
        each(&p.next(), &format!("let key = b0[e];\nif (key != {NONE}) {{ atomicMax(&b1[key], e + 1u); }}\n"))
    }
}

#[derive(Debug, Hash)]
struct ScatterLastWriter {
    width: usize,
    ranks: [u32; 2],
    /// The array, the positions, the last of them at each place.
    slots: [u32; 3],
    from: Option<u32>,
}

impl WordKernel for ScatterLastWriter {
    const KIND: &'static str = "index_set";

    fn body(&self, p: &mut ParamNames) -> String {
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
pub(crate) fn source_value(from: Option<u32>, width: usize, low: &str, high: &str) -> String {
    match from {
        Some(b) => load(b, width, "s"),
        None if width == 2 => format!("vec2<u32>({low}, {high})"),
        None => low.to_string(),
    }
}

/// `combine(a, b)`: the result of a write of `b` to an element `a`.
pub(crate) fn combine(dtype: DType, how: Write) -> String {
    // Integers of 32 bits and fewer wrap around at their own width.
    let wrapped = |sum: &str| match elem::narrowed(dtype, &format!("bitcast<i32>({sum})")) {
        cut if dtype.is_narrow() => format!("return bitcast<u32>({cut});"),
        _ => format!("return {sum};"),
    };
    let body = match (how, dtype.number()) {
        (Write::Set, _) => "return b;".to_owned(),
        (Write::Add, Number::F32) => "return bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(b));".to_owned(),
        (Write::Multiply, Number::F32) => "return bitcast<u32>(bitcast<f32>(a) * bitcast<f32>(b));".to_owned(),
        (Write::Add, Number::I32) => wrapped("a + b"),
        (Write::Multiply, Number::I32) => wrapped("a * b"),
        (Write::Add, Number::U8) => "return (a + b) & 255u;".to_owned(),
        (Write::Multiply, Number::U8) => "return (a * b) & 255u;".to_owned(),
        (Write::Add, Number::Bool) => "return a | b;".to_owned(),
        (Write::Multiply, Number::Bool) => "return a & b;".to_owned(),
        (Write::Add, Number::I64) => "let lo = a.x + b.x; return vec2<u32>(lo, a.y + b.y + select(0u, 1u, lo < a.x));".to_owned(),
        (Write::Multiply, Number::I64) => {
            "let low = wide_mul(a.x, b.x); return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);".to_owned()
        }
        (Write::Add, Number::F64) => "return f64_words(f64_from_bits(a.x, a.y) + f64_from_bits(b.x, b.y));".to_owned(),
        (Write::Add, Number::C64) => "return bitcast<vec2<u32>>(bitcast<vec2<f32>>(a) + bitcast<vec2<f32>>(b));".to_owned(),
        (Write::Multiply, Number::C64) => "let p = bitcast<vec2<f32>>(a); let q = bitcast<vec2<f32>>(b); \
             return bitcast<vec2<u32>>(vec2<f32>(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x));"
            .to_owned(),
        (_, Number::C128) => elem::no_complex128(),
        (Write::Multiply, Number::F64) => "return f64_words(f64_from_bits(a.x, a.y) * f64_from_bits(b.x, b.y));".to_owned(),
    };
    let t = wgsl_type(words(dtype));
    let wide = if (how, dtype) == (Write::Multiply, DType::I64) { WIDE_MUL } else { "" };
    format!("{wide}fn combine(a: {t}, b: {t}) -> {t} {{ {body} }}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;
    use crate::backend::wgpu::index::tests::AT;

    #[test]
    fn every_shader_is_valid() {
        for at in AT {
            for dtype in crate::backend::wgpu::elem::on_device() {
                for how in [Write::Set, Write::Add, Write::Multiply] {
                    validate(&ScatterInOrder { dtype, how, at, ranks: [2, 1, 2], to: 0, from: Some(2) }, 1);
                    validate(&ScatterInOrder { dtype, how, at, ranks: [0, 0, 0], to: 0, from: None }, 1);
                }
            }
        }
        validate(&MarkLastWriter, 2);
        for width in [1, 2] {
            for from in [None, Some(3)] {
                validate(&ScatterLastWriter { width, ranks: [2, 2], slots: [0, 1, 2], from }, 1);
            }
        }
    }
}
