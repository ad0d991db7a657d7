//! The lines of a transform: where their elements lie, and how a long one is cut.

use super::pass;
use crate::backend::wgpu::Buffer;
use crate::backend::wgpu::common::word_kernels::ParamValues;
use crate::error::Result;
use smallvec::SmallVec;

/// What is there of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stored {
    Complex,
    /// The real parts; the imaginary ones count as 0, or are not written.
    Real,
    /// The first `n / 2 + 1` elements, of which the others are the conjugates.
    Half,
}

/// One end of a transform.
#[derive(Clone, Copy)]
pub(super) struct LineEnd<'a> {
    pub buffer: &'a Buffer,
    pub offset: usize,
    /// How far neighbours in a line are apart.
    pub step: isize,
    pub stored: Stored,
}

/// The dimensions over which lines go: sizes, and how far each moves the line in the operand, the place in the operand's line, and both of the
/// result.
pub(super) type LineDims = SmallVec<[(usize, [isize; 4]); 6]>;

/// Both ends.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub from: LineEnd<'a>,
    pub to: LineEnd<'a>,
    /// Whether elements are conjugated when they are read, and when they are written: both make the inverse transform.
    pub conjugated: (bool, bool),
    pub scale: f64,
    /// As in `call::Fft`.
    pub inner: f64,
    /// The elements of a whole line.
    pub all: usize,
}

/// Lines of `n` neighbours, and the ends between which they are transformed. Element `k` of a result has the place `k * spread` there.
pub(super) struct Line<'a> {
    pub op: &'static str,
    pub dims: LineDims,
    pub n: usize,
    pub spread: usize,
    pub ends: Ends<'a>,
}

impl Line<'_> {
    /// How many lines there are.
    pub(super) fn count(&self) -> usize {
        self.dims.iter().map(|d| d.0).product()
    }

    /// How far each dimension of lines moves in dense memory of lines of `n` elements.
    pub(super) fn dense(&self, n: usize) -> SmallVec<[isize; 6]> {
        let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.dims.len());
        let mut step = n;
        for (k, (size, _)) in self.dims.iter().enumerate().rev() {
            steps[k] = step as isize;
            step *= size;
        }
        steps
    }

    /// Transforms lines whose length has no prime factor above 7.
    ///
    /// Place `a m + b` of `n` = `c m` is element (a, b) of a matrix, and place `p + c q` of the result element (p, q): columns are transformed, the
    /// result multiplied by the roots `exp(-2 pi i b p / n)`, and rows transformed (Bailey, J. Supercomputing 4, 1990).
    pub(super) fn transform(&self) -> Result<()> {
        if self.n <= pass::MOST {
            return pass::run(self.op, &self.dims, self.n, [1, self.spread], None, &self.ends);
        }
        let (n, ends) = (self.n, self.ends);
        let columns = pass::split(n);
        let rows = n / columns;
        let steps = self.dense(n);
        let between = Buffer::new(ends.from.buffer.context(), self.count() * n * 8)?;
        let middle = LineEnd { buffer: &between, offset: 0, step: 1, stored: Stored::Complex };
        let mut first: LineDims = self.dims.iter().zip(&steps).map(|((size, s), to)| (*size, [s[0], s[1], *to, 0])).collect();
        first.push((rows, [0, 1, 0, 1]));
        let to_middle = Ends { to: middle, conjugated: (ends.conjugated.0, false), scale: 1.0, ..ends };
        pass::run(self.op, &first, columns, [rows, rows], Some(n), &to_middle)?;
        let mut dims: LineDims = self.dims.iter().zip(&steps).map(|((size, s), from)| (*size, [*from, 0, s[2], s[3]])).collect();
        dims.push((columns, [rows as isize, 0, 0, self.spread as isize]));
        let from_middle = Ends { from: middle, conjugated: (false, ends.conjugated.1), ..ends };
        Line { op: self.op, dims, n: rows, spread: self.spread * columns, ends: from_middle }.transform()
    }
}

/// The names of the numbers that loads and stores read.
pub(super) struct EndNames {
    pub from: [String; 2],
    pub to: [String; 2],
    pub all: String,
    pub scale: String,
    pub inner: String,
}

impl Ends<'_> {
    /// The numbers in the order of `EndNames::new`.
    pub(super) fn numbers(&self, n: ParamValues) -> ParamValues {
        let word = |v: f64| (v as f32).to_bits();
        n.push(self.from.offset)
            .push(self.from.step as usize)
            .push(self.to.offset)
            .push(self.to.step as usize)
            .push(self.all)
            .word(word(self.scale))
            .word(word(self.inner))
    }

    pub(super) fn form(&self, slots: [u32; 2]) -> EndsForm {
        EndsForm { from: self.from.stored, to: self.to.stored, conjugated: self.conjugated, slots }
    }
}

impl EndNames {
    pub(super) fn new(names: [String; 7]) -> EndNames {
        let [a, b, c, d, all, scale, inner] = names;
        EndNames { from: [a, b], to: [c, d], all, scale: format!("bitcast<f32>({scale})"), inner: format!("bitcast<f32>({inner})") }
    }
}

/// What the source of a shader depends on.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct EndsForm {
    pub from: Stored,
    pub to: Stored,
    pub conjugated: (bool, bool),
    /// Bindings of the operand and the result.
    pub slots: [u32; 2],
}

impl EndsForm {
    /// Statements that read into the variable `v` the element at the place `full` of the operand's line at `ia`.
    pub(super) fn load(&self, names: &EndNames) -> String {
        let [offset, step] = &names.from;
        let b = self.slots[0];
        let pair = format!("v = vec2<f32>(bitcast<f32>(b{b}[2u * a]), bitcast<f32>(b{b}[2u * a + 1u]));\n");
        let text = match self.from {
            Stored::Complex => format!("let a = {offset} + ia + full * {step};\n{pair}"),
            Stored::Real => format!("let a = {offset} + ia + full * {step};\nv = vec2<f32>(bitcast<f32>(b{b}[a]), 0.0);\n"),
            Stored::Half => format!(
                "let mirrored = full > {all} / 2u;\nlet h = select(full, {all} - full, mirrored);\nlet a = {offset} + ia + h * {step};\n\
                 {pair}if (mirrored) {{ v.y = -v.y; }}\nif (h != 0u && 2u * h != {all}) {{ v *= {inner}; }}\n",
                all = names.all,
                inner = names.inner,
            ),
        };
        format!("{{\n{text}{}}}\n", if self.conjugated.0 { "v.y = -v.y;\n" } else { "" })
    }

    /// Statements that write the variable `v` to the place `full` of the result's line at `oa`.
    pub(super) fn store(&self, names: &EndNames) -> String {
        let [offset, step] = &names.to;
        let b = self.slots[1];
        let at = format!("let a = {offset} + oa + full * {step};\n");
        let pair = format!("{at}b{b}[2u * a] = bitcast<u32>(v.x); b{b}[2u * a + 1u] = bitcast<u32>(v.y);\n");
        let head = format!("v *= {};\n{}", names.scale, if self.conjugated.1 { "v.y = -v.y;\n" } else { "" });
        let put = match self.to {
            Stored::Complex => pair,
            Stored::Real => format!("{at}b{b}[a] = bitcast<u32>(v.x);\n"),
            Stored::Half => format!(
                "if (full <= {all} / 2u) {{\nif (full != 0u && 2u * full != {all}) {{ v *= {}; }}\n{pair}}}\n",
                names.inner,
                all = names.all
            ),
        };
        format!("{{\n{head}{put}}}\n")
    }
}

/// `root(j, n)`: exp(-2 pi i j / n) for j below n. An eighth of the circle is computed, the others are its images.
pub(super) const ROOT: &str = "fn root(j: u32, n: u32) -> vec2<f32> {
let eighth = 8u * j / n; let rest = 8u * j - eighth * n;
let part = select(rest, n - rest, (eighth & 1u) == 1u);
let angle = f32(part) / f32(n) * 0.785398163;
let s = f32_sin_quarter(angle, 0.0); let c = f32_cos_quarter(angle, 0.0);
let swapped = ((eighth + 1u) & 2u) != 0u;
let x = select(c, s, swapped); let y = select(s, c, swapped);
return vec2<f32>(select(x, -x, ((eighth + 2u) & 4u) != 0u), select(-y, y, (eighth & 4u) != 0u));
}
fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
";
