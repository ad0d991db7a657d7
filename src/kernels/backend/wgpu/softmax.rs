//! Softmax and log-softmax along one dimension, forward and backward.
//!
//! A program may compute the input, or in the backward pass the gradient. Its elements are then stored in the output until the results
//! replace them.
//!
//! Rows that a workgroup can hold take one dispatch. Few long rows take three: maxima and sums are reductions, which use the whole device,
//! and the last dispatch writes the results.

use super::pointwise::elementwise::LoadFunction;
use super::pointwise::fused::{self, DeviceProgram};
use super::reduce::{DeviceReducer, reduce};
use super::strided::{GROUP, Params, StridedWalk, check, element, entry, header, param, slots, unknown, wgsl};
use super::wgsl::{types, with_library};
use super::{Bindings, Buffer, BufferView, Dispatch, Key, element_size};
use crate::backend::requests::SoftmaxPass;
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::fmt::Write;

/// Rows longer than this are spread over the device if there are few.
const LONG: usize = 1 << 14;
const FEW: usize = 256;
/// Words of the parameters before the walk.
const FIXED: usize = 9;
/// A word of them that is 0.
const ZERO: usize = 8;

impl SoftmaxPass {
    /// What is written (functions without their type), of the element `x`, its gradient `g`, the row's maximum `m` and its sum `t`.
    fn result(self) -> &'static str {
        match self {
            SoftmaxPass { log: false, backward: false } => "exp(x - m) / t",
            SoftmaxPass { log: true, backward: false } => "x - m - log(t)",
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

#[derive(Debug, Clone, Copy)]
struct SoftmaxShader {
    pass: SoftmaxPass,
    dtype: DType,
    /// Rows of a workgroup, and whether neighbouring invocations are neighbours in a row; None where maxima and sums are given and
    /// every invocation writes one element.
    tile: Option<(usize, bool)>,
    /// A program computes the input, in the backward pass the gradient.
    made: bool,
    rank: u32,
    /// Binding numbers: input (backward the output), gradient, output, maxima, sums.
    slots: [u32; 5],
    writes: u32,
}

impl SoftmaxShader {
    fn key(&self, bindings: &Bindings<'_>, loader: Option<&LoadFunction>) -> Key {
        let tile = self.tile.map_or(u32::MAX, |(x, along)| x as u32 | u32::from(along) << 16);
        let flags = u32::from(self.pass.log)
            | u32::from(self.pass.backward) << 1
            | self.rank << 2
            | (self.dtype as u32) << 8
            | u32::from(self.made) << 16;
        let [at, writes] = slots(&self.slots, bindings);
        let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&[flags, tile, at, writes]);
        words.extend(loader.iter().flat_map(|l| l.words.iter().copied()));
        Key { kind: "softmax", words }
    }

    fn source(&self, made: Option<(&DeviceProgram<'_>, &LoadFunction)>) -> String {
        let SoftmaxPass { backward, .. } = self.pass;
        let float = element(self.dtype);
        let [x, g, out, tops, sums] = self.slots;
        // All buffers by their storage type: a program may read one of them as well.
        let stored = types::storage(self.dtype);
        let load = |b: u32, at: &str| types::load(self.dtype, &format!("b{b}"), at);
        let mut types: SmallVec<[(u32, &str); 5]> = SmallVec::from_slice(&[(x, stored), (g, stored), (out, stored)]);
        types.extend(made.iter().flat_map(|(_, l)| l.declared()));
        if self.tile.is_none() {
            types.push((sums, stored));
            if !backward {
                types.push((tops, stored));
            }
        }
        let (count, n, inner, stride, g_stride) = (param(0), param(1), param(2), param(5), param(6));
        let own = format!("to + j * {inner}");
        let put = |v: &str| types::store(self.dtype, &format!("b{out}"), &own, v);
        // The operand that a program makes is read where it is put.
        let x_at = if self.made && !backward { load(out, &own) } else { load(x, &format!("o0 + j * {stride}")) };
        let g_at = match (backward, self.made) {
            (false, _) => format!("{float}()"),
            (true, false) => load(g, &format!("o1 + j * {g_stride}")),
            (true, true) => load(out, &own),
        };
        let read = format!("let x = {x_at}; let g = {g_at};");
        let first = if self.made && backward { format!("let x = {x_at}; let g = load({own}); {}", put("g")) } else { read.clone() };
        let place = format!(
            "var o0 = {}; var o1 = {};\n{}let to = {} + (k / {inner}) * {n} * {inner} + k % {inner};\n",
            param(3),
            param(4),
            wgsl(self.rank, FIXED, "k", if backward { &["o0", "o1"] } else { &["o0"] }),
            param(7)
        );
        let typed = |f: &str| f.replace("exp(", &format!("{float}_exp(")).replace("log(", &format!("{float}_log("));
        let (result, summand) = (typed(self.pass.result()), typed(self.pass.summand()));
        let total = FIXED + self.rank as usize * if backward { 3 } else { 2 };
        let mut s = header(&types, self.writes, total + made.map_or(0, |(_, l)| l.params.len()));
        if let Some((program, loader)) = made {
            s.push_str(&program.function(loader, total));
        }
        let Some((rows, along)) = self.tile else {
            let top = if backward { format!("{float}()") } else { load(tops, "k") };
            s.push_str(&entry());
            let _ = writeln!(s, "{}", unknown(ZERO));
            let _ = write!(
                s,
                "let e = group * {GROUP}u + lid;\n\
                 if (e >= {count} * {n}) {{ return; }}\n\
                 let j = (e / {inner}) % {n};\n\
                 let k = (e / {inner} / {n}) * {inner} + e % {inner};\n{place}\
                 let m = {top}; let t = {};\n{read}\n\
                 let v = {result};\n{}\n}}\n",
                load(sums, "k"),
                put("v")
            );
            return with_library(&s);
        };
        let y = GROUP / rows;
        let (lx, ly) =
            if along { (format!("lid / {y}u"), format!("lid % {y}u")) } else { (format!("lid % {rows}u"), format!("lid / {rows}u")) };
        let step = if along { 1 } else { rows };
        if y > 1 {
            let _ = writeln!(s, "var<workgroup> parts: array<{float}, {GROUP}>;");
        }
        // The Y values of a row meet, and all of them get the result.
        let meet = |v: &str, f: &str| {
            if y == 1 {
                return String::new();
            }
            format!(
                "parts[lid] = {v};\n\
                 for (var w = {}u; w > 0u; w >>= 1u) {{\n\
                 workgroupBarrier();\n\
                 if (y < w) {{ let a = parts[lid]; let b = parts[lid + w * {step}u]; parts[lid] = {f}; }}\n}}\n\
                 workgroupBarrier();\n\
                 {v} = parts[lid - y * {step}u];\n\
                 workgroupBarrier();\n",
                y / 2
            )
        };
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
        // Each element is put, and read again, by one invocation.
        let each = format!("for (var j = y; {}j < {n}; j += {y}u)", if self.made { "inside && " } else { "" });
        if backward {
            let _ = writeln!(s, "let m = {float}();");
        } else if self.made {
            let lowest = if self.dtype == DType::F64 { "-0x1.fffffffffffffp+1023lf" } else { "-0x1.fffffep+127f" };
            let _ = write!(
                s,
                "var m = {float}({lowest});\n{each} {{ let v = load({own}); {} m = max(m, v); }}\n{}",
                put("v"),
                meet("m", "max(a, b)")
            );
        } else {
            let _ = write!(s, "var m = {};\n{each} {{ m = max(m, {x_at}); }}\n{}", load(x, "o0"), meet("m", "max(a, b)"));
        }
        let _ = write!(
            s,
            "var t = {float}();\n\
             {each} {{ {first} t += {summand}; }}\n{}\
             if (inside) {{\n\
             for (var j = y; j < {n}; j += {y}u) {{ {read} let v = {result}; {} }}\n}}\n}}\n",
            meet("t", "a + b"),
            put("v")
        );
        with_library(&s)
    }
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
    let fresh = || Buffer::new(x.buffer.context(), count * element_size(x.dtype));
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

    /// How many rows a workgroup holds, and how; None for few long ones.
    fn tile(&self) -> Option<(usize, bool)> {
        let ([count, n, _], steps) = (self.sizes, self.steps);
        if n > LONG && count < FEW {
            return None;
        }
        let along = steps[0].unsigned_abs() + steps[1].unsigned_abs() <= self.kept.step();
        let rows = match () {
            () if n <= 16 => GROUP,
            () if along && n > 512 => 1,
            () if along => 8,
            () if count >= 1 << 14 => GROUP,
            () => 32,
        };
        Some((rows, along && rows < GROUP))
    }

    fn run(&self, tile: Option<(usize, bool)>, tops: Option<&Buffer>, sums: Option<&Buffer>) -> Result<()> {
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
            groups: tile.map_or((count * n).div_ceil(GROUP), |(rows, _)| count.div_ceil(rows)),
            checked: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;

    #[test]
    fn every_shader_is_valid() {
        for tile in [None, Some((1, true)), Some((8, true)), Some((32, false)), Some((GROUP, false))] {
            for (log, backward, rank) in [(false, false, 0), (true, false, 1), (false, true, 2), (true, true, 3)] {
                let slots = if backward { [0, 1, 2, 0, 3] } else { [0, 0, 1, 2, 3] };
                for dtype in [DType::F32, DType::F64] {
                    let form = SoftmaxShader {
                        pass: SoftmaxPass { log, backward },
                        dtype,
                        tile,
                        made: false,
                        rank,
                        slots,
                        writes: if backward { 4 } else { 2 },
                    };
                    validate::check(&format!("{form:?}"), &form.source(None));
                }
            }
        }
    }
}
