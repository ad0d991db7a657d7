//! Softmax and log-softmax along one dimension, forward and backward.
//!
//! A program may compute the input, or in the backward pass the gradient. Its elements are then stored in the output until the results
//! replace them.
//!
//! Rows that a workgroup can hold take one dispatch. If they are short enough, each invocation keeps its elements of a row in registers:
//! memory is read once, and each exponential is computed once. Few long rows take three dispatches: maxima and sums are reductions, which
//! use the whole device, and the last dispatch writes the results.

use super::pointwise::elementwise::LoadFunction;
use super::pointwise::fused::{self, DeviceProgram};
use super::reduce::rows::{Meeting, RowTile, tree};
use super::reduce::{DeviceReducer, reduce};
use super::wgsl::with_library;
use super::{Bindings, Buffer, BufferView, Dispatch, Key, elem, scratch_size};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{Elements, first, operand, output};
use crate::backend::wgpu::common::strided::{GROUP, Params, StridedWalk, check, element, entry, header, param, slots, unknown, wgsl};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Softmax, SoftmaxPass};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::fmt::Write;
use std::sync::Arc;

/// Rows longer than this are spread over the device if there are few.
const LONG: usize = 1 << 14;
const FEW: usize = 256;
/// Rows from which each invocation may take whole ones.
const MANY: usize = 1 << 14;
/// Loads under way in a loop.
const UNROLL: usize = 4;
/// Words of the parameters before the walk.
const FIXED: usize = 9;
/// A word of them that is 0.
const ZERO: usize = 8;

impl SoftmaxPass {
    /// What is written (functions without their type), of the element `x`, its gradient `g`, the row's maximum `m` and its sum `t` (of
    /// log-softmax's forward pass, the sum's logarithm).
    fn result(self) -> &'static str {
        match self {
            SoftmaxPass { log: false, backward: false } => "exp(x - m) / t",
            SoftmaxPass { log: true, backward: false } => "x - m - t",
            SoftmaxPass { log: false, backward: true } => "x * (g - t)",
            SoftmaxPass { log: true, backward: true } => "g - exp(x) * t",
        }
    }

    /// What a row sums up.
    fn summand(self) -> &'static str {
        match self {
            SoftmaxPass { backward: false, .. } => "exp(x - m)",
            SoftmaxPass { log: false, backward: true } => "g * x",
            SoftmaxPass { log: true, backward: true } => "g",
        }
    }
}

/// How a workgroup is divided among rows.
#[derive(Debug, Clone, Copy)]
struct SoftmaxTile {
    /// Rows of a workgroup.
    rows: usize,
    /// Neighbouring invocations are neighbours in a row (else among the rows).
    along: bool,
    /// Elements that an invocation keeps in registers; None where it reads them in loops.
    each: Option<usize>,
}

impl SoftmaxTile {
    /// The most elements that an invocation keeps in registers.
    fn most(dtype: DType, backward: bool) -> usize {
        match (dtype, backward) {
            (DType::F64, _) => 8,
            (_, true) => 16,
            (_, false) => 32,
        }
    }

    /// For `count` rows of `n` elements; None for few long ones.
    fn new(count: usize, n: usize, along: bool, most: usize) -> Option<SoftmaxTile> {
        if n > LONG && count < FEW {
            return None;
        }
        let (shared, each) = if along {
            RowTile::new(count, n, most).map_or((GROUP, None), |t| (t.shared, Some(t.each)))
        } else {
            let shared = if n <= 16 || (count >= MANY && n <= most) { 1 } else { 8 };
            match RowTile::of(n, shared).each {
                each if each <= most => (shared, Some(each)),
                _ => (if count >= MANY || n <= 16 { 1 } else { 8 }, None),
            }
        };
        Some(SoftmaxTile { rows: GROUP / shared, along, each })
    }
}

#[derive(Debug, Clone, Copy)]
struct SoftmaxShader {
    pass: SoftmaxPass,
    dtype: DType,
    /// None where maxima and sums are given and every invocation writes one element.
    tile: Option<SoftmaxTile>,
    /// A program computes the input, in the backward pass the gradient.
    made: bool,
    /// The elements of a row are neighbours in all operands.
    dense: bool,
    rank: u32,
    /// Binding numbers: input (backward the output), gradient, output, maxima, sums.
    slots: [u32; 5],
    writes: u32,
}

impl SoftmaxShader {
    fn key(&self, bindings: &Bindings<'_>, loader: Option<&LoadFunction>) -> Key {
        let tile = self.tile.map_or(u32::MAX, |t| t.rows as u32 | u32::from(t.along) << 16 | t.each.map_or(0, |each| each as u32) << 17);
        let flags = u32::from(self.pass.log)
            | u32::from(self.pass.backward) << 1
            | self.rank << 2
            | (self.dtype as u32) << 8
            | u32::from(self.made) << 16
            | u32::from(self.dense) << 17;
        let [at, writes] = slots(&self.slots, bindings);
        let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&[flags, tile, at, writes]);
        words.extend(loader.iter().flat_map(|l| l.words.iter().copied()));
        Key::new("softmax", words)
    }

    /// The parameter `i`, a stride that is 1 where rows are dense.
    fn stride(&self, i: usize) -> String {
        if self.dense { "1u".into() } else { param(i) }
    }

    /// Where element `j` of a row lies in the output.
    fn own(&self, j: &str) -> String {
        format!("to + {j} * {}", self.stride(2))
    }

    fn load(&self, b: u32, at: &str) -> String {
        elem::load(self.dtype, &format!("b{b}"), at)
    }

    fn put(&self, j: &str, v: &str) -> String {
        elem::store(self.dtype, &format!("b{}", self.slots[2]), &self.own(j), v)
    }

    /// Element `j` of the input and of the gradient, in memory.
    fn stored(&self, j: &str) -> [String; 2] {
        let x = self.load(self.slots[0], &format!("o0 + {j} * {}", self.stride(5)));
        let g = match self.pass.backward {
            true => self.load(self.slots[1], &format!("o1 + {j} * {}", self.stride(6))),
            false => format!("{}()", element(self.dtype)),
        };
        [x, g]
    }

    /// As `stored`; the operand that a program computes is read from the output.
    fn operands(&self, j: &str) -> [String; 2] {
        let [x, g] = self.stored(j);
        let own = self.load(self.slots[2], &self.own(j));
        match (self.made, self.pass.backward) {
            (false, _) => [x, g],
            (true, false) => [own, g],
            (true, true) => [x, own],
        }
    }

    /// Stores the elements of a program, each by the invocation that reads it later.
    fn store_program(&self, s: &mut String, y: usize) {
        let (n, own, put) = (param(1), self.own("j"), self.put("j", "v"));
        let _ = writeln!(s, "for (var j = y; inside && j < {n}; j += {y}u) {{ let v = load({own}); {put} }}");
    }

    /// A number below which there is only minus infinity.
    fn lowest(&self) -> String {
        let lowest = if self.dtype == DType::F64 { "-0x1.fffffffffffffp+1023lf" } else { "-0x1.fffffep+127f" };
        format!("{}({lowest})", element(self.dtype))
    }

    fn source(&self, made: Option<(&DeviceProgram<'_>, &LoadFunction)>) -> String {
        let SoftmaxPass { backward, log } = self.pass;
        let float = element(self.dtype);
        let [x, g, out, tops, sums] = self.slots;
        // All buffers by their storage type: a program may read one of them as well.
        let stored = elem::storage(self.dtype);
        let mut types: SmallVec<[(u32, &str); 5]> = SmallVec::from_slice(&[(x, stored), (g, stored), (out, stored)]);
        types.extend(made.iter().flat_map(|(_, l)| l.declared()));
        if self.tile.is_none() {
            types.push((sums, stored));
            if !backward {
                types.push((tops, stored));
            }
        }
        let (count, n, inner) = (param(0), param(1), self.stride(2));
        let place = format!(
            "var o0 = {}; var o1 = {};\n{}let to = {} + (k / {inner}) * {n} * {inner} + k % {inner};\n",
            param(3),
            param(4),
            wgsl(self.rank, FIXED, "k", if backward { &["o0", "o1"] } else { &["o0"] }),
            param(7)
        );
        let typed = |f: &str| f.replace("exp(", &format!("{float}_exp("));
        let of_sum = |t: &str| if log && !backward { format!("{float}_log({t})") } else { t.into() };
        let total = FIXED + self.rank as usize * if backward { 3 } else { 2 };
        let mut s = header(&types, self.writes, total + made.map_or(0, |(_, l)| l.params.len()));
        if let Some((program, loader)) = made {
            s.push_str(&program.function(loader, total));
        }
        let _ = write!(
            s,
            "fn summand(x: {float}, g: {float}, m: {float}) -> {float} {{ return {}; }}\n\
             fn result(x: {float}, g: {float}, m: {float}, t: {float}) -> {float} {{ return {}; }}\n",
            typed(self.pass.summand()),
            typed(self.pass.result())
        );
        let Some(tile) = self.tile else {
            let top = if backward { format!("{float}()") } else { self.load(tops, "k") };
            let [x, g] = self.stored("j");
            s.push_str(&entry());
            let _ = writeln!(s, "{}", unknown(ZERO));
            let _ = write!(
                s,
                "let e = group * {GROUP}u + lid;\n\
                 if (e >= {count} * {n}) {{ return; }}\n\
                 let j = (e / {inner}) % {n};\n\
                 let k = (e / {inner} / {n}) * {inner} + e % {inner};\n{place}\
                 let m = {top}; let t = {};\n\
                 let v = result({x}, {g}, m, t);\n{}\n}}\n",
                of_sum(&self.load(sums, "k")),
                self.put("j", "v")
            );
            return with_library(&s);
        };
        let (rows, y) = (tile.rows, GROUP / tile.rows);
        let (lx, ly) =
            if tile.along { (format!("lid / {y}u"), format!("lid % {y}u")) } else { (format!("lid % {rows}u"), format!("lid / {rows}u")) };
        let mut meeting = Meeting::new(y, if tile.along { 1 } else { rows });
        s.push_str(&meeting.declaration(float));
        s.push_str(&entry());
        let _ = writeln!(s, "{}", unknown(ZERO));
        let _ = write!(
            s,
            "if (group * {rows}u >= {count}) {{ return; }}\n\
             let y = {ly};\n\
             let row = group * {rows}u + {lx};\n\
             let inside = row < {count};\n\
             let k = min(row, {count} - 1u);\n{place}"
        );
        let meet_top = if backward { String::new() } else { meeting.merge("m", &maximum) };
        let meet_sum = format!("{}t = {};\n", meeting.merge("t", &plus), of_sum("t"));
        match tile.each {
            Some(each) => self.in_registers(&mut s, y, each, &meet_top, &meet_sum),
            None => self.in_loops(&mut s, y, &meet_top, &meet_sum),
        }
        s.push_str("}\n");
        with_library(&s)
    }

    /// Each element is read once. Those of a program are stored in the output before, so that the program is in the shader once.
    fn in_registers(&self, s: &mut String, y: usize, each: usize, meet_top: &str, meet_sum: &str) {
        let SoftmaxPass { backward, log } = self.pass;
        let (float, n) = (element(self.dtype), param(1));
        // In a short row the last elements are missing: the last one of the row is read instead, and not added.
        let checked = |i: usize| i >= each / 2;
        if self.made {
            self.store_program(s, y);
        }
        for i in 0..each {
            let j = if checked(i) { format!("min(j{i}, {n} - 1u)") } else { format!("j{i}") };
            let at = format!("p{i}");
            let [x, g] = self.operands(&at);
            // Another invocation may be storing that last element of a program.
            let x = if self.made && !backward && checked(i) { format!("select({}, {x}, j{i} < {n})", self.lowest()) } else { x };
            let _ = writeln!(s, "let j{i} = y + {}u; let {at} = {j}; let x{i} = {x}; let g{i} = {g};", i * y);
        }
        let names = |name: &str| (0..each).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        // A compiler may take x - x and x / x for constants even if x is nan.
        let apart = |v: String| if each * y == 1 { format!("{float}_keep({v})") } else { v };
        let top = if backward { format!("{float}()") } else { apart(tree(&names("x"), &maximum)) };
        let _ = writeln!(s, "var m = {top};\n{meet_top}");
        for i in 0..each {
            let sum = format!("summand(x{i}, g{i}, m)");
            let add = if checked(i) { format!("select({float}(), e{i}, j{i} < {n})") } else { format!("e{i}") };
            let _ = writeln!(s, "let e{i} = {sum}; let s{i} = {add};");
        }
        let _ = write!(s, "var t = {};\n{meet_sum}if (inside) {{\n", apart(tree(&names("s"), &plus)));
        for i in 0..each {
            // Softmax's summand is the numerator.
            let v = if log || backward { format!("result(x{i}, g{i}, m, t)") } else { format!("e{i} / t") };
            let put = self.put(&format!("j{i}"), &v);
            let _ = if checked(i) { writeln!(s, "if (j{i} < {n}) {{ {put} }}") } else { writeln!(s, "{put}") };
        }
        s.push_str("}\n");
    }

    /// Elements are read two or three times. Those of a program are stored in the output, and read again, by one invocation.
    fn in_loops(&self, s: &mut String, y: usize, meet_top: &str, meet_sum: &str) {
        let backward = self.pass.backward;
        let (float, n) = (element(self.dtype), param(1));
        let read = |j: &str| self.operands(j);
        // `value` of all elements, merged with the variable `v`.
        let sweep = |v: &str, value: &dyn Fn(&str) -> String, merge: &dyn Fn(&str, &str) -> String| {
            let many: Vec<String> = (0..UNROLL).map(|i| value(&format!("(j + {}u)", i * y))).collect();
            let all = tree(&many, merge);
            format!(
                "{{ var j = y;\n\
                 while (j + {last}u < {n}) {{ {v} = {many}; j += {all}u; }}\n\
                 while (j < {n}) {{ {v} = {one}; j += {y}u; }} }}\n",
                last = (UNROLL - 1) * y,
                many = merge(v, &all),
                all = UNROLL * y,
                one = merge(v, &value("j")),
            )
        };
        if self.made {
            self.store_program(s, y);
        }
        let inside = |sweep: String| if self.made { format!("if (inside) {{\n{sweep}}}\n") } else { sweep };
        let sum = |j: &str| {
            let [x, g] = read(j);
            format!("summand({x}, {g}, m)")
        };
        if backward {
            let _ = writeln!(s, "let m = {float}();");
        } else {
            let first = if self.made { self.lowest() } else { self.load(self.slots[0], "o0") };
            let top = inside(sweep("m", &|j| read(j)[0].clone(), &maximum));
            let _ = write!(s, "var m = {first};\n{top}");
        }
        let _ = write!(s, "{meet_top}var t = {float}();\n{}", inside(sweep("t", &sum, &plus)));
        let (first, many, step) = ((UNROLL - 1) * y, UNROLL * y, y);
        let values: String = (0..UNROLL)
            .map(|i| {
                let [x, g] = read(&format!("(j + {}u)", i * y));
                format!("let v{i} = result({x}, {g}, m, t); ")
            })
            .collect();
        let puts: String = (0..UNROLL).map(|i| self.put(&format!("(j + {}u)", i * y), &format!("v{i}"))).collect();
        let [x, g] = read("j");
        let put = self.put("j", "v");
        let _ = write!(
            s,
            "{meet_sum}if (inside) {{\n\
             var j = y;\n\
             while (j + {first}u < {n}) {{ {values}{puts} j += {many}u; }}\n\
             while (j < {n}) {{ let v = result({x}, {g}, m, t); {put} j += {step}u; }}\n}}\n"
        );
    }
}

fn plus(a: &str, b: &str) -> String {
    format!("({a} + {b})")
}

fn maximum(a: &str, b: &str) -> String {
    format!("max({a}, {b})")
}

/// Softmax or its logarithm of `x` along `dim` into `out`, row-major and of the same shape; or, with a gradient `g`, the backward pass, for
/// which `x` is the forward output. Floats only.
pub fn softmax(pass: SoftmaxPass, x: BufferView<'_>, dim: usize, g: Option<BufferView<'_>>, out: BufferView<'_>) -> Result<()> {
    let op = if pass.log { "log_softmax" } else { "softmax" };
    if !x.dtype.is_float() {
        return Err(Error::dtype(format!("{op}: expected a floating point tensor, got {}", x.dtype)));
    }
    let grad = g.unwrap_or(x);
    check(op, &x)?;
    check(op, &grad)?;
    let job = SoftmaxRun::new(op, pass, x, grad, dim, out);
    let Some(job) = job else { return Ok(()) };
    let job = SoftmaxRun { x: Some(x), g, ..job };
    if let Some(tile) = job.tile() {
        return job.run(Some(tile), None, None);
    }
    let count = job.sizes[0];
    let reduced: SmallVec<[bool; 8]> = (0..x.shape.len()).map(|d| d == dim).collect();
    let strides = Layout::contiguous_strides(&[count]);
    let shape = [count];
    let fresh = || Buffer::new(x.buffer.context(), count * scratch_size(x.dtype));
    let (tops, sums) = (fresh()?, fresh()?);
    let view = |buffer| BufferView { buffer, offset: 0, shape: &shape, strides: &strides, dtype: x.dtype };
    let (top, sum) = (view(&tops), view(&sums));
    match (g, pass.log) {
        (None, _) => {
            reduce(op, DeviceReducer::Extreme { max: true }, &[x], None, &reduced, 0.0, &[top])?;
            reduce(op, DeviceReducer::SumExp, &[x], Some(top), &reduced, 0.0, &[sum])?;
        }
        (Some(g), false) => reduce(op, DeviceReducer::Dot, &[g, x], None, &reduced, 0.0, &[sum])?,
        (Some(g), true) => reduce(op, DeviceReducer::Sum, &[g], None, &reduced, 0.0, &[sum])?,
    }
    job.run(None, Some(&tops), Some(&sums))
}

/// As `softmax`, of an input that a program computes or, in the backward pass with the forward output `y`, of a gradient that it computes;
/// row-major.
pub fn softmax_program(
    pass: SoftmaxPass,
    made: &DeviceProgram<'_>,
    y: Option<BufferView<'_>>,
    dim: usize,
    out: BufferView<'_>,
) -> Result<()> {
    let op = if pass.log { "log_softmax" } else { "softmax" };
    check(op, &out)?;
    let x = y.unwrap_or(out);
    let Some(job) = SoftmaxRun::new(op, pass, x, out, dim, out) else { return Ok(()) };
    let context = out.buffer.context();
    match job.tile() {
        Some(tile) if made.can_be_read(context) => SoftmaxRun { x: y, made: Some(made), ..job }.run(Some(tile), None, None),
        _ => {
            // The elements of the program are stored in the output and read from there.
            let last = made.code.steps.len() - 1;
            fused::run(context, made.code, made.shape, made.strides, made.inputs, &[(last, out.buffer)])?;
            softmax(pass, x, dim, y.map(|_| out), out)
        }
    }
}

struct SoftmaxRun<'a> {
    op: &'static str,
    pass: SoftmaxPass,
    x: Option<BufferView<'a>>,
    g: Option<BufferView<'a>>,
    made: Option<&'a DeviceProgram<'a>>,
    out: BufferView<'a>,
    kept: StridedWalk<2>,
    /// Rows, elements of each, and how far apart they lie in the output.
    sizes: [usize; 3],
    steps: [isize; 2],
}

impl<'a> SoftmaxRun<'a> {
    /// The run for operands with the layouts of `x` and `g`; None if there is nothing to compute.
    fn new(
        op: &'static str,
        pass: SoftmaxPass,
        x: BufferView<'_>,
        g: BufferView<'_>,
        dim: usize,
        out: BufferView<'a>,
    ) -> Option<SoftmaxRun<'a>> {
        let (n, steps) = if x.shape.is_empty() { (1, [1, 1]) } else { (x.shape[dim], [x.strides[dim], g.strides[dim]]) };
        let inner: usize = x.shape.iter().skip(dim + 1).product();
        let kept = StridedWalk::ordered((0..x.shape.len()).filter(|d| *d != dim).map(|d| (x.shape[d], [x.strides[d], g.strides[d]])));
        let count = kept.count();
        (count * n > 0).then(|| SoftmaxRun { op, pass, x: None, g: None, made: None, out, kept, sizes: [count, n, inner], steps })
    }

    fn tile(&self) -> Option<SoftmaxTile> {
        let ([count, n, _], steps) = (self.sizes, self.steps);
        let along = steps[0].unsigned_abs() + steps[1].unsigned_abs() <= self.kept.step();
        SoftmaxTile::new(count, n, along, SoftmaxTile::most(self.out.dtype, self.pass.backward))
    }

    fn run(&self, tile: Option<SoftmaxTile>, tops: Option<&Buffer>, sums: Option<&Buffer>) -> Result<()> {
        let mut params = Params::new();
        let made;
        let mut bindings = Bindings::new();
        let out = bindings.write(self.out.buffer);
        // Bindings that are not read are replaced by the output.
        let mut at = [out; 5];
        for (slot, b) in
            [(0, self.x.map(|x| x.buffer)), (1, self.g.map(|g| g.buffer)), (3, tops.filter(|_| !self.pass.backward)), (4, sums)]
        {
            if let Some(b) = b {
                at[slot] = bindings.read(b);
            }
        }
        made = self.made.map(|p| Ok((p, p.loader(&mut bindings)?))).transpose()?;
        let form = SoftmaxShader {
            pass: self.pass,
            dtype: self.out.dtype,
            tile,
            made: made.is_some(),
            dense: self.sizes[2] == 1 && self.steps == [1, 1],
            rank: self.kept.rank(),
            slots: at,
            writes: bindings.writes(),
        };
        let [count, n, _] = self.sizes;
        params.extend(self.sizes.map(|v| v as u32));
        params.extend([self.x, self.g].map(|v| v.map_or(0, |v| v.offset) as u32));
        params.extend(self.steps.map(|v| v as u32));
        params.extend([self.out.offset as u32, 0]);
        debug_assert_eq!(params.len(), FIXED);
        if self.pass.backward {
            self.kept.push(&mut params);
        } else {
            self.kept.first().push(&mut params);
        }
        let made = made.as_ref().map(|(p, l)| (*p, l));
        params.extend(made.iter().flat_map(|(_, l)| l.params.iter().copied()));
        self.out.buffer.context().dispatch(Dispatch {
            op: self.op,
            key: form.key(&bindings, made.map(|(_, l)| l)),
            source: &|| form.source(made),
            bindings,
            params: &params,
            groups: tile.map_or((count * n).div_ceil(GROUP), |t| count.div_ceil(t.rows)),
            checked: false,
        })
    }
}

impl WgpuFamily for Softmax {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(s: &Softmax, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let y = if s.pass.backward { Some(operand(ins, 1)?) } else { None };
        first(
            context,
            ins,
            |_| true,
            |x| match (x, y) {
                (Elements::Made(p, ..), y) => softmax_program(s.pass, p, y, s.dim, out),
                (Elements::Memory(g), Some(y)) => softmax(s.pass, y, s.dim, Some(g), out),
                (Elements::Memory(x), None) => softmax(s.pass, x, s.dim, None, out),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::reduce::rows::tests::workgroup_bytes;
    use crate::backend::wgpu::wgsl::validate;

    fn forms() -> impl Iterator<Item = SoftmaxShader> {
        let tile = |rows, along, each| Some(SoftmaxTile { rows, along, each });
        let tiles = [
            (None, 0),
            (tile(1, true, None), 0),
            (tile(8, false, None), 0),
            (tile(GROUP, false, None), 0),
            (tile(1, true, Some(8)), 0),
            (tile(64, true, Some(4)), 0),
            (tile(32, false, Some(8)), 0),
            (tile(GROUP, false, Some(1)), 0),
            (tile(8, true, Some(32)), 1),
        ];
        let passes = [(false, false, 0), (true, false, 1), (false, true, 2), (true, true, 3)];
        tiles.into_iter().flat_map(move |(tile, only)| {
            passes.into_iter().flat_map(move |(log, backward, rank)| {
                [(DType::F32, false), (DType::F32, true), (DType::F64, true)]
                    .into_iter()
                    .filter(move |d| only == 0 || d.0 == DType::F32)
                    .map(move |(dtype, dense)| SoftmaxShader {
                        pass: SoftmaxPass { log, backward },
                        dtype,
                        tile,
                        made: false,
                        dense,
                        rank,
                        slots: if backward { [0, 1, 2, 0, 3] } else { [0, 0, 1, 2, 3] },
                        writes: if backward { 4 } else { 2 },
                    })
            })
        })
    }

    #[test]
    fn every_shader_is_valid() {
        for form in forms() {
            let source = form.source(None);
            validate::check(&format!("{form:?}"), &source);
            assert!(workgroup_bytes(&source) <= 16384, "{form:?}");
            if form.tile.is_some() {
                let load = format!("fn load(i: u32) -> {0} {{ return {0}(); }}\n", element(form.dtype));
                validate::check(&format!("{form:?}, of a program"), &(load + &SoftmaxShader { made: true, ..form }.source(None)));
            }
        }
    }
}
