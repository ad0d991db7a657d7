//! Softmax and log-softmax along one dimension, forward and backward.
//!
//! Rows that a workgroup can hold take one dispatch. Few long rows take three: their maxima and sums are reductions, which spread over
//! the device, and the last dispatch writes the results.

use super::reduce::{Reducer, reduce};
use super::strided::{GROUP, Params, Walk, check, element, entry, header, param, slots, unknown, wgsl};
use super::wgsl::with_library;
use super::{Bindings, Buffer, Dispatch, Key, View, element_size};
use crate::backend::cpu::softmax::Pass;
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

impl Pass {
    /// What is written (functions without their type), of the element `x`, its gradient `g`, the row's maximum `m` and its sum `t`.
    fn result(self) -> &'static str {
        match self {
            Pass { log: false, backward: false } => "exp(x - m) / t",
            Pass { log: true, backward: false } => "x - m - log(t)",
            Pass { log: false, backward: true } => "x * (g - t)",
            Pass { log: true, backward: true } => "g - exp(x) * t",
        }
    }

    /// What a row sums up.
    fn summand(self) -> &'static str {
        match self {
            Pass { backward: false, .. } => "exp(x - m)",
            Pass { log: false, backward: true } => "g * x",
            Pass { log: true, backward: true } => "g",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Form {
    pass: Pass,
    dtype: DType,
    /// Rows of a workgroup, and whether neighbouring invocations are neighbours in a row; None where maxima and sums are given and
    /// every invocation writes one element.
    tile: Option<(usize, bool)>,
    rank: u32,
    /// Binding numbers: input (backward the output), gradient, output, maxima, sums.
    slots: [u32; 5],
    writes: u32,
}

impl Form {
    fn key(&self, bindings: &Bindings<'_>) -> Key {
        let tile = self.tile.map_or(u32::MAX, |(x, along)| x as u32 | u32::from(along) << 16);
        let flags = u32::from(self.pass.log) | u32::from(self.pass.backward) << 1 | self.rank << 2 | (self.dtype as u32) << 8;
        let [at, writes] = slots(&self.slots, bindings);
        Key { kind: "softmax", words: SmallVec::from_slice(&[flags, tile, at, writes]) }
    }

    fn source(&self) -> String {
        let Pass { backward, .. } = self.pass;
        let float = element(self.dtype);
        let [x, g, out, tops, sums] = self.slots;
        let mut types: SmallVec<[(u32, &str); 5]> = SmallVec::from_slice(&[(x, float), (out, float)]);
        if backward {
            types.push((g, float));
        }
        if self.tile.is_none() {
            types.push((sums, float));
            if !backward {
                types.push((tops, float));
            }
        }
        let (count, n, inner, stride, g_stride) = (param(0), param(1), param(2), param(5), param(6));
        let load = if backward {
            format!("let x = b{x}[o0 + j * {stride}]; let g = b{g}[o1 + j * {g_stride}];")
        } else {
            format!("let x = b{x}[o0 + j * {stride}]; let g = {float}();")
        };
        let place = format!(
            "var o0 = {}; var o1 = {};\n{}let to = {} + (k / {inner}) * {n} * {inner} + k % {inner};\n",
            param(3),
            param(4),
            wgsl(self.rank, FIXED, "k", if backward { &["o0", "o1"] } else { &["o0"] }),
            param(7)
        );
        let typed = |f: &str| f.replace("exp(", &format!("{float}_exp(")).replace("log(", &format!("{float}_log("));
        let (result, summand) = (typed(self.pass.result()), typed(self.pass.summand()));
        let mut s = header(&types, self.writes, FIXED + self.rank as usize * if backward { 3 } else { 2 });
        let Some((rows, along)) = self.tile else {
            let top = if backward { format!("{float}()") } else { format!("b{tops}[k]") };
            s.push_str(&entry());
            let _ = writeln!(s, "{}", unknown(ZERO));
            let _ = write!(
                s,
                "let e = group * {GROUP}u + lid;\n\
                 if (e >= {count} * {n}) {{ return; }}\n\
                 let j = (e / {inner}) % {n};\n\
                 let k = (e / {inner} / {n}) * {inner} + e % {inner};\n{place}\
                 let m = {top}; let t = b{sums}[k];\n{load}\n\
                 b{out}[to + j * {inner}] = {result};\n}}\n"
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
        if !backward {
            let _ = write!(
                s,
                "var m = b{x}[o0];\n\
                 for (var j = y; j < {n}; j += {y}u) {{ m = max(m, b{x}[o0 + j * {stride}]); }}\n{}",
                meet("m", "max(a, b)")
            );
        } else {
            let _ = writeln!(s, "let m = {float}();");
        }
        let _ = write!(
            s,
            "var t = {float}();\n\
             for (var j = y; j < {n}; j += {y}u) {{ {load} t += {summand}; }}\n{}\
             if (inside) {{\n\
             for (var j = y; j < {n}; j += {y}u) {{ {load} b{out}[to + j * {inner}] = {result}; }}\n}}\n}}\n",
            meet("t", "a + b")
        );
        with_library(&s)
    }
}

/// Softmax or its logarithm of `x` along `dim` into `out`, row-major and of the same shape; or, with a gradient `g`, the backward pass,
/// for which `x` is the forward output. Floats only.
pub fn softmax(pass: Pass, x: View<'_>, dim: usize, g: Option<View<'_>>, out: View<'_>) -> Result<()> {
    let op = if pass.log { "log_softmax" } else { "softmax" };
    if !x.dtype.is_float() {
        return Err(Error::dtype(format!("{op}: expected a floating point tensor, got {}", x.dtype)));
    }
    let grad = g.unwrap_or(x);
    check(op, &x)?;
    check(op, &grad)?;
    let (n, steps) = if x.shape.is_empty() { (1, [1, 1]) } else { (x.shape[dim], [x.strides[dim], grad.strides[dim]]) };
    let inner: usize = x.shape.iter().skip(dim + 1).product();
    let kept = Walk::ordered((0..x.shape.len()).filter(|d| *d != dim).map(|d| (x.shape[d], [x.strides[d], grad.strides[d]])));
    let count = kept.count();
    if count * n == 0 {
        return Ok(());
    }
    let job = Job { op, pass, x, g, out, kept, sizes: [count, n, inner], steps };
    if n <= LONG || count >= FEW {
        let along = steps[0].unsigned_abs() + steps[1].unsigned_abs() <= job.kept.step();
        let rows = match () {
            () if n <= 16 => GROUP,
            () if along && n > 512 => 1,
            () if along => 8,
            () if count >= 1 << 14 => GROUP,
            () => 32,
        };
        return job.run(Some((rows, along && rows < GROUP)), None, None);
    }
    let reduced: SmallVec<[bool; 8]> = (0..x.shape.len()).map(|d| d == dim).collect();
    let strides = Layout::contiguous_strides(&[count]);
    let shape = [count];
    let fresh = || Buffer::new(x.buffer.context(), count * element_size(x.dtype));
    let (tops, sums) = (fresh()?, fresh()?);
    let view = |buffer| View { buffer, offset: 0, shape: &shape, strides: &strides, dtype: x.dtype };
    let (top, sum) = (view(&tops), view(&sums));
    match (g, pass.log) {
        (None, _) => {
            reduce(op, Reducer::Extreme { max: true }, &[x], None, &reduced, 0.0, &[top])?;
            reduce(op, Reducer::SumExp, &[x], Some(top), &reduced, 0.0, &[sum])?;
        }
        (Some(g), false) => reduce(op, Reducer::Dot, &[g, x], None, &reduced, 0.0, &[sum])?,
        (Some(g), true) => reduce(op, Reducer::Sum, &[g], None, &reduced, 0.0, &[sum])?,
    }
    job.run(None, Some(&tops), Some(&sums))
}

struct Job<'a> {
    op: &'static str,
    pass: Pass,
    x: View<'a>,
    g: Option<View<'a>>,
    out: View<'a>,
    kept: Walk<2>,
    /// Rows, elements of each, and how far apart they lie in the output.
    sizes: [usize; 3],
    steps: [isize; 2],
}

impl Job<'_> {
    fn run(&self, tile: Option<(usize, bool)>, tops: Option<&Buffer>, sums: Option<&Buffer>) -> Result<()> {
        let mut params = Params::new();
        let mut bindings = Bindings::new();
        let mut at = [bindings.read(self.x.buffer), 0, 0, 0, 0];
        if let Some(g) = self.g {
            at[1] = bindings.read(g.buffer);
        }
        at[2] = bindings.write(self.out.buffer);
        for (slot, b) in [(3, tops.filter(|_| !self.pass.backward)), (4, sums)] {
            if let Some(b) = b {
                at[slot] = bindings.read(b);
            }
        }
        let form = Form { pass: self.pass, dtype: self.x.dtype, tile, rank: self.kept.rank(), slots: at, writes: bindings.writes() };
        let [count, n, _] = self.sizes;
        params.extend(self.sizes.map(|v| v as u32));
        params.extend([self.x.offset, self.g.map_or(0, |g| g.offset)].map(|v| v as u32));
        params.extend(self.steps.map(|v| v as u32));
        params.extend([self.out.offset as u32, 0]);
        debug_assert_eq!(params.len(), FIXED);
        if self.pass.backward {
            self.kept.push(&mut params);
        } else {
            self.kept.first().push(&mut params);
        }
        self.x.buffer.context().dispatch(Dispatch {
            op: self.op,
            key: form.key(&bindings),
            source: &|| form.source(),
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
                    let form = Form { pass: Pass { log, backward }, dtype, tile, rank, slots, writes: if backward { 4 } else { 2 } };
                    validate::check(&format!("{form:?}"), &form.source());
                }
            }
        }
    }
}
