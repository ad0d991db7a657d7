//! Lengths with prime factors above 7, by Bluestein's algorithm: since j k = (j^2 + k^2 - (j - k)^2) / 2, a transform is a convolution with the chirp
//! exp(i pi k^2 / n), between products with its conjugate. The convolution is made of transforms of a longer, smooth length.

use super::line::{EndNames, Ends, EndsForm, Line, LineDims, LineEnd, ROOT, Stored};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for};
use crate::backend::wgpu::{Bindings, Buffer};
use crate::error::Result;

/// `chirp(k, n)`: exp(-pi i k^2 / n). The square modulo `2 n` is added up from doubles, because it may need more than 32 bits.
const CHIRP: &str = "fn chirp(k: u32, n: u32) -> vec2<f32> {
let m = 2u * n; var square = 0u; var double = k % m;
for (var bits = k; bits > 0u; bits >>= 1u) {
if ((bits & 1u) == 1u) { square = (square + double) % m; }
double = (double * 2u) % m;
}
return root(square, m);
}
";

/// The length of the convolution: the least smooth one of a few that holds it.
fn padded(n: usize) -> usize {
    let least = 2 * n - 1;
    let up = |odd: usize| odd * least.div_ceil(odd).next_power_of_two();
    [1, 3, 5, 7, 9, 15].map(up).into_iter().min().unwrap_or(least)
}

/// Transforms lines of any length.
pub(super) fn transform(line: &Line<'_>) -> Result<()> {
    let (op, n, ends) = (line.op, line.n, line.ends);
    let (m, count) = (padded(n), line.count());
    countable(op, &[count, m])?;
    let context = ends.from.buffer.context();
    let room = |lines: usize| Buffer::new(context, lines * m * 8);
    let (signal, spectrum, filter, response) = (room(count)?, room(count)?, room(1)?, room(1)?);
    let whole = |buffer| LineEnd { buffer, offset: 0, step: 1, stored: Stored::Complex };
    let (at_signal, at_spectrum) = (whole(&signal), whole(&spectrum));
    let run = |stage: ChirpStage, ends: &Ends<'_>, dims: LineDims, elements: usize| -> Result<()> {
        let walk = StridedWalk::<4>::ordered(dims.into_iter());
        let total = walk.count() * elements;
        let mut bindings = Bindings::new();
        let slots = [bindings.read(ends.from.buffer), bindings.write(ends.to.buffer)];
        let kernel = ChirpKernel { stage, ends: ends.form(slots), rank: walk.rank() };
        let numbers = ends.numbers(ParamValues::default().push(total).push(elements).push(n).push(m).push(0)).walk(&walk);
        Launch { op, bindings, numbers, groups: groups_for(total) }.run(context, &kernel)
    };
    let convolve = |from: LineEnd<'_>, to: LineEnd<'_>, lines: usize, inverse: bool| {
        let step = m as isize;
        let ends = Ends { from, to, conjugated: (inverse, inverse), scale: 1.0, inner: 1.0, all: m };
        let dims = [(lines, [step, 0, step, 0])].into_iter().collect();
        Line { op, dims, n: m, spread: 1, ends }.transform()
    };
    let dense = line.dense(m);
    let dims_in = line.dims.iter().zip(&dense).map(|((size, s), to)| (*size, [s[0], 0, *to, 0])).collect();
    let dims_out = line.dims.iter().zip(&dense).map(|((size, s), from)| (*size, [*from, 0, s[2], 0])).collect();
    run(ChirpStage::In, &Ends { to: at_signal, conjugated: (ends.conjugated.0, false), scale: 1.0, ..ends }, dims_in, m)?;
    // A buffer that is not read is not bound.
    let plain = Ends { from: whole(&filter), to: whole(&filter), conjugated: (false, false), scale: 1.0, inner: 1.0, all: m };
    run(ChirpStage::Filter, &plain, LineDims::new(), m)?;
    convolve(whole(&filter), whole(&response), 1, false)?;
    convolve(at_signal, at_spectrum, count, false)?;
    let step = m as isize;
    let over_lines = [(count, [0, 0, step, 0])].into_iter().collect();
    run(ChirpStage::Multiply, &Ends { from: whole(&response), to: at_spectrum, ..plain }, over_lines, m)?;
    convolve(at_spectrum, at_signal, count, true)?;
    let scale = ends.scale / m as f64;
    run(ChirpStage::Out, &Ends { from: at_signal, conjugated: (false, ends.conjugated.1), scale, ..ends }, dims_out, n)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ChirpStage {
    /// The signal times the chirp, with zeros behind it.
    In,
    /// The conjugate of the chirp, in both directions.
    Filter,
    /// The product with the operand, in place.
    Multiply,
    /// The convolution times the chirp.
    Out,
}

#[derive(Debug, Hash)]
struct ChirpKernel {
    stage: ChirpStage,
    ends: EndsForm,
    rank: u32,
}

impl WordKernel for ChirpKernel {
    const KIND: &'static str = "fft_chirp";

    fn body(&self, p: &mut ParamNames) -> String {
        let [total, elements, n, m, zero] = p.many();
        let names = EndNames::new(p.many());
        let walk = p.walk(self.rank, "line", &["ia", "ii", "oa", "oi"]);
        let (load, store) = (self.ends.load(&names), self.ends.store(&names));
        let value = match self.stage {
            ChirpStage::In => format!("if (full < {n}) {{\n{load}v = times(v, chirp(full, {n}));\n}}\n"),
            ChirpStage::Filter => {
                format!("let k = min(full, {m} - full);\nif (k < {n}) {{ let c = chirp(k, {n}); v = vec2<f32>(c.x, -c.y); }}\n")
            }
            ChirpStage::Multiply => {
                let (b, [offset, _]) = (self.ends.slots[1], &names.to);
                format!(
                    "{load}let t = {offset} + oa + full;\n\
                     v = times(v, vec2<f32>(bitcast<f32>(b{b}[2u * t]), bitcast<f32>(b{b}[2u * t + 1u])));\n"
                )
            }
            ChirpStage::Out => format!("{load}v = times(v, chirp(full, {n}));\n"),
        };
        format!("{ROOT}{CHIRP}")
            + &each(
                &total,
                &format!(
                    "unknown = {zero};\nlet line = e / {elements}; let full = e % {elements};\n\
                     var ia = 0u; var ii = 0u; var oa = 0u; var oi = 0u;\n{walk}var v = vec2<f32>();\n{value}{store}"
                ),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass;
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for stage in [ChirpStage::In, ChirpStage::Filter, ChirpStage::Multiply, ChirpStage::Out] {
            for (from, to) in [(Stored::Complex, Stored::Complex), (Stored::Real, Stored::Half), (Stored::Half, Stored::Real)] {
                let ends = EndsForm { from, to, conjugated: (true, false), slots: [0, 1] };
                validate(&ChirpKernel { stage, ends, rank: 1 }, 2);
            }
        }
    }

    #[test]
    fn convolutions_have_room() {
        for n in [11, 13, 1009, 65537, 1_000_003] {
            let m = padded(n);
            assert!(m >= 2 * n - 1 && m < 4 * n && pass::is_smooth(m), "{n} {m}");
        }
    }
}
