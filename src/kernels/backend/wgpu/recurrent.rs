//! Recurrent layers: all steps of one layer in one direction. A step is a product of the states with the weights and one dispatch for the
//! gates of all sequences that have the step, so a layer is two dispatches for each step; a projection is one product more, and another
//! dispatch backward.
//!
//! The state that steps hand on lies in the output for the last (or first) state: a sequence that has ended leaves its own there.

use super::elem::value;
use super::matmul::matmul;
use super::{Bindings, Buffer, BufferView, Context, copy, scratch_size};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{foreign, operand, output};
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WordKernel, countable, each, groups_for, load_real, scratch, store_real, unsupported,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Family, Recurrent, RecurrentCell};
use crate::error::Result;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// The gates of one step. Bindings of: products of the input and of the state, biases (of a GRU), the cell before (of a GRU the state), what is
/// kept, cells, states, and the state that is handed on (none before a projection).
#[derive(Debug, Hash)]
struct CellForward {
    dtype: DType,
    cell: RecurrentCell,
    x: u32,
    product: u32,
    bias: Option<u32>,
    before: Option<u32>,
    kept: Option<u32>,
    cells: Option<u32>,
    states: u32,
    last: Option<u32>,
}

impl WordKernel for CellForward {
    const KIND: &'static str = "recurrent_forward";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, zero, h, x, bias, before, kept, cells, states, last]: [String; 10] = p.many();
        let (t, d, gates) = (value(self.dtype), self.dtype, self.cell.gates());
        let load = |b: Option<u32>, at: String| b.map_or(String::new(), |b| load_real(d, b, &at));
        let put = |b: Option<u32>, at: String, v: &str| b.map_or(String::new(), |b| store_real(d, b, &at, v));
        let given = |k: usize| load(Some(self.x), format!("{x} + (i * {gates}u + {k}u) * {h} + j"));
        let product = |k: usize| load(Some(self.product), format!("(i * {gates}u + {k}u) * {h} + j"));
        let bias = |k: usize| load(self.bias, format!("{bias} + {k}u * {h} + j"));
        let keep = |k: usize, v: &str| put(self.kept, format!("{kept} + (i * 4u + {k}u) * {h} + j"), v);
        let old = load(self.before, format!("{before} + e"));
        let made = match self.cell {
            RecurrentCell::Tanh => format!("let y = {t}_tanh({} + {});\n", given(0), product(0)),
            RecurrentCell::Relu => format!("let y = {t}_max({} + {}, {t}());\n", given(0), product(0)),
            RecurrentCell::Gru => format!(
                "let r = {t}_sigmoid(({} + {}) + {});
let z = {t}_sigmoid(({} + {}) + {});
let inner = {} + {};
let new_ = {t}_tanh({} + r * inner);
let y = ({t}(1) - z) * new_ + z * {old};
{}{}{}{}",
                given(0),
                product(0),
                bias(0),
                given(1),
                product(1),
                bias(1),
                product(2),
                bias(2),
                given(2),
                keep(0, "r"),
                keep(1, "z"),
                keep(2, "new_"),
                keep(3, "inner"),
            ),
            RecurrentCell::Lstm { .. } => {
                let gate = |k: usize, f: &str| format!("{t}_{f}({} + {})", given(k), product(k));
                format!(
                    "let gate_i = {}; let gate_f = {}; let gate_g = {}; let gate_o = {};
let now = gate_f * {old} + gate_i * gate_g;
let y = gate_o * {t}_tanh(now);
{}{}{}{}{}{}",
                    gate(0, "sigmoid"),
                    gate(1, "sigmoid"),
                    gate(2, "tanh"),
                    gate(3, "sigmoid"),
                    keep(0, "gate_i"),
                    keep(1, "gate_f"),
                    keep(2, "gate_g"),
                    keep(3, "gate_o"),
                    put(self.cells, format!("{cells} + e"), "now"),
                    put(self.before, format!("{before} + e"), "now"),
                )
            }
        };
        let (to, hand_on) = (put(Some(self.states), format!("{states} + e"), "y"), put(self.last, format!("{last} + e"), "y"));
        each(&count, &format!("unknown = {zero};\nlet i = e / {h}; let j = e % {h};\n{made}{to}{hand_on}"))
    }
}

/// The gradients of one step. Bindings of: the gradient handed on (`slope`) and the one of this step's state (`g`, none after a projection), of a
/// GRU the product of the step after with the weights, the gradient of the cell, what is kept, cells, the first cell, states (of a GRU the
/// states before), the gradients of both products, and the state before a projection.
#[derive(Debug, Hash)]
struct CellBackward {
    dtype: DType,
    cell: RecurrentCell,
    slope: u32,
    g: Option<u32>,
    product: Option<u32>,
    g_cell: Option<u32>,
    kept: Option<u32>,
    cells: Option<u32>,
    first_cell: Option<u32>,
    states: Option<u32>,
    dx: u32,
    dproduct: Option<u32>,
    raw: Option<u32>,
}

impl WordKernel for CellBackward {
    const KIND: &'static str = "recurrent_backward";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, zero, h, slope, g, g_cell, kept, cells]: [String; 8] = p.many();
        let [first_cell, states, dx, dproduct, raw, before_rows, before]: [String; 7] = p.many();
        let (t, d, gates) = (value(self.dtype), self.dtype, self.cell.gates());
        let load = |b: Option<u32>, at: String| b.map_or(format!("{t}()"), |b| load_real(d, b, &at));
        let put = |b: Option<u32>, at: String, v: &str| b.map_or(String::new(), |b| store_real(d, b, &at, v));
        let keep = |k: usize| load(self.kept, format!("{kept} + (i * 4u + {k}u) * {h} + j"));
        let to = |k: usize, v: &str| put(Some(self.dx), format!("{dx} + (i * {gates}u + {k}u) * {h} + j"), v);
        let mut gradient = load(Some(self.slope), format!("{slope} + e"));
        if self.product.is_some() {
            gradient = format!("{gradient} + {}", load(self.product, "e".into()));
        }
        if self.g.is_some() {
            gradient = format!("({gradient}) + {}", load(self.g, format!("{g} + e")));
        }
        let state = load(self.states, format!("{states} + e"));
        let made = match self.cell {
            RecurrentCell::Tanh => format!("let y = {state};\nlet v = g * ({t}(1) - y * y);\n{}", to(0, "v")),
            RecurrentCell::Relu => format!("let v = select(g, {t}(), {t}_le({state}, {t}()));\n{}", to(0, "v")),
            RecurrentCell::Gru => {
                let product = |k: usize, v: &str| put(self.dproduct, format!("{dproduct} + (i * 3u + {k}u) * {h} + j"), v);
                format!(
                    "let r = {}; let z = {}; let new_ = {}; let inner = {};
let dnew = g * ({t}(1) - z) * ({t}(1) - new_ * new_);
let dz = g * ({state} - new_) * (z * ({t}(1) - z));
let dr = dnew * inner * (r * ({t}(1) - r));
let dinner = dnew * r;
let passed = g * z;
{}{}{}{}{}{}{}",
                    keep(0),
                    keep(1),
                    keep(2),
                    keep(3),
                    to(0, "dr"),
                    to(1, "dz"),
                    to(2, "dnew"),
                    product(0, "dr"),
                    product(1, "dz"),
                    product(2, "dinner"),
                    put(Some(self.slope), format!("{slope} + e"), "passed"),
                )
            }
            RecurrentCell::Lstm { .. } => format!(
                "let gate_i = {}; let gate_f = {}; let gate_g = {}; let gate_o = {};
let tanh_cell = {t}_tanh({});
let dc = g * gate_o * ({t}(1) - tanh_cell * tanh_cell) + {};
var old = {t}();
if (i < {before_rows}) {{ old = {}; }} else {{ old = {}; }}
let di = dc * gate_g * (gate_i * ({t}(1) - gate_i));
let df = dc * old * (gate_f * ({t}(1) - gate_f));
let dg = dc * gate_i * ({t}(1) - gate_g * gate_g);
let d_o = g * tanh_cell * (gate_o * ({t}(1) - gate_o));
let handed = dc * gate_f;
let y = gate_o * tanh_cell;
{}{}{}{}{}{}",
                keep(0),
                keep(1),
                keep(2),
                keep(3),
                load(self.cells, format!("{cells} + e")),
                load(self.g_cell, format!("{g_cell} + e")),
                load(self.cells, format!("{before} + e")),
                load(self.first_cell, format!("{first_cell} + e")),
                to(0, "di"),
                to(1, "df"),
                to(2, "dg"),
                to(3, "d_o"),
                put(self.g_cell, format!("{g_cell} + e"), "handed"),
                put(self.raw, format!("{raw} + e"), "y"),
            ),
        };
        each(&count, &format!("unknown = {zero};\nlet i = e / {h}; let j = e % {h};\nlet g = {gradient};\n{made}"))
    }
}

/// The sum of two rows of elements; the result may be one of them.
#[derive(Debug, Hash)]
struct AddRows {
    dtype: DType,
    /// Operands and result.
    slots: [u32; 3],
}

impl WordKernel for AddRows {
    const KIND: &'static str = "recurrent_add";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, a, b, to]: [String; 4] = p.many();
        let of = |k: usize, at: &str| load_real(self.dtype, self.slots[k], &format!("{at} + e"));
        let put = store_real(self.dtype, self.slots[2], &format!("{to} + e"), "v");
        each(&count, &format!("let v = {} + {};\n{put}", of(0, &a), of(1, &b)))
    }
}

/// The states before each step, of all steps: a table says for each row from which row they come, or, from `n` on, from which first state.
#[derive(Debug, Hash)]
struct StatesBefore {
    dtype: DType,
    table: u32,
    states: u32,
    first: u32,
    to: u32,
}

impl WordKernel for StatesBefore {
    const KIND: &'static str = "recurrent_before";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, width, n, states, first, to]: [String; 6] = p.many();
        let (t, d) = (value(self.dtype), self.dtype);
        each(
            &count,
            &format!(
                "let row = b{table}[e / {width}]; let c = e % {width};
var v = {t}();
if (row < {n}) {{ v = {a}; }} else {{ v = {b}; }}
{put}",
                table = self.table,
                a = load_real(d, self.states, &format!("{states} + row * {width} + c")),
                b = load_real(d, self.first, &format!("{first} + (row - {n}) * {width} + c")),
                put = store_real(d, self.to, &format!("{to} + e"), "v"),
            ),
        )
    }
}

/// A dense matrix in a buffer.
#[derive(Debug, Clone, Copy)]
struct Matrix<'a> {
    buffer: &'a Buffer,
    offset: usize,
    shape: [usize; 2],
    strides: [isize; 2],
    dtype: DType,
}

impl<'a> Matrix<'a> {
    fn new(buffer: &'a Buffer, offset: usize, rows: usize, columns: usize, dtype: DType) -> Matrix<'a> {
        Matrix { buffer, offset, shape: [rows, columns], strides: [columns as isize, 1], dtype }
    }

    /// `count` rows of a row-major operand, from `start` on.
    fn rows(of: &BufferView<'a>, start: usize, count: usize, columns: usize) -> Matrix<'a> {
        Matrix::new(of.buffer, of.offset + start * columns, count, columns, of.dtype)
    }

    fn transposed(self) -> Matrix<'a> {
        let ([m, n], [a, b]) = (self.shape, self.strides);
        Matrix { shape: [n, m], strides: [b, a], ..self }
    }

    fn view(&self) -> BufferView<'_> {
        BufferView { buffer: self.buffer, offset: self.offset, shape: &self.shape, strides: &self.strides, dtype: self.dtype }
    }
}

fn product(op: &'static str, a: Matrix<'_>, b: Matrix<'_>, to: Matrix<'_>) -> Result<()> {
    matmul(op, a.view(), b.view(), to.view())
}

fn copied(from: &BufferView<'_>, to: BufferView<'_>) -> Result<()> {
    copy::copy(to, *from)
}

/// What both passes know of a layer.
struct DeviceLayer<'a> {
    r: &'a Recurrent,
    op: &'static str,
    dtype: DType,
    context: &'a Arc<Context>,
    /// The first row of each step.
    starts: Vec<usize>,
    sequences: usize,
}

impl<'a> DeviceLayer<'a> {
    fn new(r: &'a Recurrent, out: &BufferView<'a>) -> Result<DeviceLayer<'a>> {
        let (op, dtype) = (r.name(), out.dtype);
        if !dtype.is_float() {
            return Err(unsupported(op, dtype));
        }
        for shape in r.operands().iter().chain(&r.results()) {
            countable(op, shape)?;
        }
        let starts = r.batches.iter().scan(0, |next, n| Some(std::mem::replace(next, *next + n))).collect();
        let sequences = r.batches.first().copied().unwrap_or(0);
        Ok(DeviceLayer { r, op, dtype, context: out.buffer.context(), starts, sequences })
    }

    /// Room for a matrix that one step writes and reads.
    fn scratch(&self, columns: usize) -> Result<Buffer> {
        Buffer::new(self.context, self.sequences * columns * scratch_size(self.dtype))
    }

    /// Steps in the order of the forward pass, or, `back`, in the opposite one.
    fn steps(&self, back: bool) -> impl Iterator<Item = usize> {
        let count = self.r.batches.len();
        let reverse = self.r.reverse != back;
        (0..count).map(move |k| if reverse { count - 1 - k } else { k })
    }

    /// The step from whose states this one begins.
    fn before(&self, step: usize) -> Option<usize> {
        if self.r.reverse { Some(step + 1).filter(|s| *s < self.r.batches.len()) } else { step.checked_sub(1) }
    }

    fn forward(&self, ins: &[BufferView<'_>], outs: &[BufferView<'_>]) -> Result<()> {
        let (r, op, dtype) = (self.r, self.op, self.dtype);
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        let (lstm, projected) = (r.cell.is_lstm(), r.cell.is_projected());
        let (states, last) = (outs[0], outs[outs.len() - 1 - usize::from(lstm)]);
        let (cells, last_cell) = (lstm.then(|| outs[1]), lstm.then(|| outs[outs.len() - 1]));
        let kept = (r.cell.kept() > 0).then(|| outs[1 + usize::from(lstm)]);
        let bias = (r.cell == RecurrentCell::Gru).then(|| ins[3]);
        copied(&ins[2], last)?;
        if let Some(to) = last_cell {
            copied(&ins[3], to)?;
        }
        let weight = Matrix::rows(&ins[1], 0, gates, p).transposed();
        let (products, raw) = (self.scratch(gates)?, if projected { Some(self.scratch(h)?) } else { None });
        let before = if lstm { last_cell } else { bias.map(|_| last) };
        for step in self.steps(false) {
            let (n, start) = (r.batches[step], self.starts[step]);
            if n == 0 {
                continue;
            }
            product(op, Matrix::rows(&last, 0, n, p), weight, Matrix::new(&products, 0, n, gates, dtype))?;
            let mut bindings = Bindings::new();
            let kernel = CellForward {
                dtype,
                cell: r.cell,
                x: bindings.read(ins[0].buffer),
                product: bindings.read(&products),
                bias: bias.map(|b| bindings.read(b.buffer)),
                before: before.map(|b| if lstm { bindings.write(b.buffer) } else { bindings.read(b.buffer) }),
                kept: kept.map(|k| bindings.write(k.buffer)),
                cells: cells.map(|c| bindings.write(c.buffer)),
                states: bindings.write(raw.as_ref().unwrap_or(states.buffer)),
                last: if projected { None } else { Some(bindings.write(last.buffer)) },
            };
            let offset = |v: Option<BufferView<'_>>, columns: usize| v.map_or(0, |v| v.offset + start * columns);
            let numbers = ParamValues::default().push(n * h).push(0).push(h).push(offset(Some(ins[0]), gates));
            let numbers = numbers.push(bias.map_or(0, |b| b.offset)).push(before.map_or(0, |b| b.offset));
            let numbers = numbers.push(offset(kept, 4 * h)).push(offset(cells, h));
            let numbers = numbers.push(if projected { 0 } else { offset(Some(states), p) }).push(last.offset);
            Launch { op, bindings, numbers, groups: groups_for(n * h) }.run(self.context, &kernel)?;
            if let Some(raw) = &raw {
                let to = Matrix::rows(&states, start, n, p);
                product(op, Matrix::new(raw, 0, n, h, dtype), Matrix::rows(&ins[4], 0, p, h).transposed(), to)?;
                copied(&to.view(), Matrix::rows(&last, 0, n, p).view())?;
            }
        }
        Ok(())
    }

    /// Writes the states before each step.
    fn states_before(&self, states: &BufferView<'_>, first: &BufferView<'_>, to: &BufferView<'_>) -> Result<()> {
        let (n, p) = (self.r.rows(), self.r.state);
        if n * p == 0 {
            return Ok(());
        }
        let mut table = Vec::with_capacity(n * 4);
        for (step, count) in self.r.batches.iter().enumerate() {
            let before = self.before(step).map(|s| (self.starts[s], self.r.batches[s]));
            for i in 0..*count {
                let row = before.filter(|(_, have)| i < *have).map_or(n + i, |(start, _)| start + i);
                table.extend((row as u32).to_le_bytes());
            }
        }
        let buffer = scratch(self.context, n)?;
        self.context.write(&buffer, 0, RawSlice::from(&table[..]))?;
        let mut bindings = Bindings::new();
        let kernel = StatesBefore {
            dtype: self.dtype,
            table: bindings.read(&buffer),
            states: bindings.read(states.buffer),
            first: bindings.read(first.buffer),
            to: bindings.write(to.buffer),
        };
        let numbers = ParamValues::default().push(n * p).push(p).push(n).push(states.offset).push(first.offset).push(to.offset);
        Launch { op: self.op, bindings, numbers, groups: groups_for(n * p) }.run(self.context, &kernel)
    }

    fn add(&self, a: Matrix<'_>, b: Matrix<'_>, to: Matrix<'_>) -> Result<()> {
        let count = to.shape[0] * to.shape[1];
        let mut bindings = Bindings::new();
        let slots = [bindings.read(a.buffer), bindings.read(b.buffer), bindings.write(to.buffer)];
        let numbers = ParamValues::default().push(count).push(a.offset).push(b.offset).push(to.offset);
        Launch { op: self.op, bindings, numbers, groups: groups_for(count) }.run(self.context, &AddRows { dtype: self.dtype, slots })
    }

    fn backward(&self, ins: &[BufferView<'_>], outs: &[BufferView<'_>]) -> Result<()> {
        let (r, op, dtype) = (self.r, self.op, self.dtype);
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        let (lstm, gru, projected) = (r.cell.is_lstm(), r.cell == RecurrentCell::Gru, r.cell.is_projected());
        // In the order that `Recurrent::operands` and `Recurrent::results` describe.
        let (mut from, mut to) = (ins.iter().copied(), outs.iter().copied());
        let mut operand = |there: bool| if there { from.next() } else { None };
        let (g, g_last, g_last_cell, states) = (
            ins[0],
            ins[1],
            {
                operand(true);
                operand(true);
                operand(lstm)
            },
            operand(true),
        );
        let (cells, kept, weight, first) = (operand(lstm), operand(r.cell.kept() > 0), operand(true), operand(true));
        let (_, first_cell, projection) = (operand(gru), operand(lstm), operand(projected));
        let mut result = |there: bool| if there { to.next() } else { None };
        let (dx, dproduct, before, slope) = (result(true), result(gru), result(true), result(true));
        let (g_cell, d_projected, raw) = (result(lstm), result(projected), result(projected));
        let (Some(states), Some(weight), Some(first)) = (states, weight, first) else {
            return Err(foreign("too few operands"));
        };
        let (Some(dx), Some(before), Some(slope)) = (dx, before, slope) else { return Err(foreign("too few outputs")) };
        self.states_before(&states, &first, &before)?;
        copied(&g_last, slope)?;
        if let (Some(from), Some(to)) = (g_last_cell, g_cell) {
            copied(&from, to)?;
        }
        let weight = Matrix::rows(&weight, 0, gates, p);
        let products = if gru { Some(self.scratch(p)?) } else { None };
        let whole = |b| Matrix::new(b, 0, self.sequences, p, dtype);
        if let Some(b) = &products
            && self.sequences * p > 0
        {
            copy::fill(whole(b).view(), Scalar::Int(0))?;
        }
        let unprojected = if projected { Some(self.scratch(h)?) } else { None };
        let handed = Matrix::rows(&slope, 0, self.sequences, p);
        for step in self.steps(true) {
            let (n, start) = (r.batches[step], self.starts[step]);
            if n == 0 {
                continue;
            }
            let handed = Matrix { shape: [n, p], ..handed };
            if let (Some(d), Some(projection), Some(to)) = (d_projected, projection, &unprojected) {
                let sum = Matrix::rows(&d, start, n, p);
                self.add(handed, Matrix::rows(&g, start, n, p), sum)?;
                product(op, sum, Matrix::rows(&projection, 0, p, h), Matrix::new(to, 0, n, h, dtype))?;
            }
            let earlier = self.before(step);
            let of_states = if gru { Some(before) } else { (!lstm).then_some(states) };
            let mut bindings = Bindings::new();
            let slope_buffer = unprojected.as_ref().unwrap_or(slope.buffer);
            let kernel = CellBackward {
                dtype,
                cell: r.cell,
                slope: if gru { bindings.write(slope_buffer) } else { bindings.read(slope_buffer) },
                g: if projected { None } else { Some(bindings.read(g.buffer)) },
                product: products.as_ref().map(|b| bindings.read(b)),
                g_cell: g_cell.map(|v| bindings.write(v.buffer)),
                kept: kept.map(|v| bindings.read(v.buffer)),
                cells: cells.map(|v| bindings.read(v.buffer)),
                first_cell: first_cell.map(|v| bindings.read(v.buffer)),
                states: of_states.map(|v| bindings.read(v.buffer)),
                dx: bindings.write(dx.buffer),
                dproduct: dproduct.map(|v| bindings.write(v.buffer)),
                raw: raw.map(|v| bindings.write(v.buffer)),
            };
            let offset = |v: Option<BufferView<'_>>, columns: usize| v.map_or(0, |v| v.offset + start * columns);
            let numbers = ParamValues::default().push(n * h).push(0).push(h).push(if projected { 0 } else { slope.offset });
            let numbers = numbers.push(offset(Some(g), p)).push(g_cell.map_or(0, |v| v.offset)).push(offset(kept, 4 * h));
            let numbers = numbers.push(offset(cells, h)).push(first_cell.map_or(0, |v| v.offset)).push(offset(of_states, p));
            let numbers = numbers.push(offset(Some(dx), gates)).push(offset(dproduct, gates)).push(offset(raw, h));
            let numbers = numbers.push(earlier.map_or(0, |s| r.batches[s]));
            let numbers = numbers.push(earlier.map_or(0, |s| cells.map_or(0, |c| c.offset + self.starts[s] * h)));
            Launch { op, bindings, numbers, groups: groups_for(n * h) }.run(self.context, &kernel)?;
            let through = Matrix::rows(&dproduct.unwrap_or(dx), start, n, gates);
            let to = products.as_ref().map_or(handed, |b| Matrix::new(b, 0, n, p, dtype));
            product(op, through, weight, to)?;
        }
        // A part of a GRU's gradient passes by the product.
        products.as_ref().map_or(Ok(()), |b| self.add(handed, whole(b), handed))
    }
}

/// Runs a request. All operands are row-major.
pub fn recurrent(r: &Recurrent, ins: &[BufferView<'_>], outs: &[BufferView<'_>]) -> Result<()> {
    let layer = DeviceLayer::new(r, &outs[0])?;
    if layer.sequences == 0 {
        return Ok(());
    }
    if r.backward { layer.backward(ins, outs) } else { layer.forward(ins, outs) }
}

impl WgpuFamily for Recurrent {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Accumulated
    }

    fn compute(r: &Recurrent, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 12]>>>()?;
        let to = (0..outs.len()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 6]>>>()?;
        recurrent(r, &from, &to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        let cells = [
            RecurrentCell::Tanh,
            RecurrentCell::Relu,
            RecurrentCell::Gru,
            RecurrentCell::Lstm { projected: false },
            RecurrentCell::Lstm { projected: true },
        ];
        for dtype in [DType::F32, DType::F64] {
            for cell in cells {
                let (gru, lstm, kept) = (cell == RecurrentCell::Gru, cell.is_lstm(), cell.kept() > 0);
                let projected = cell.is_projected();
                let forward = CellForward {
                    dtype,
                    cell,
                    x: 0,
                    product: 1,
                    bias: gru.then_some(2),
                    before: if lstm { Some(3) } else { gru.then_some(7) },
                    kept: kept.then_some(4),
                    cells: lstm.then_some(5),
                    states: 6,
                    last: (!projected).then_some(7),
                };
                validate(&forward, 0b1111_1000);
                let backward = CellBackward {
                    dtype,
                    cell,
                    slope: 0,
                    g: (!projected).then_some(1),
                    product: gru.then_some(2),
                    g_cell: lstm.then_some(3),
                    kept: kept.then_some(4),
                    cells: lstm.then_some(5),
                    first_cell: lstm.then_some(2),
                    states: (!lstm).then_some(5),
                    dx: 6,
                    dproduct: gru.then_some(7),
                    raw: projected.then_some(7),
                };
                validate(&backward, 0b1100_1001);
            }
            validate(&AddRows { dtype, slots: [0, 1, 0] }, 1);
            validate(&StatesBefore { dtype, table: 0, states: 1, first: 2, to: 3 }, 8);
        }
    }
}
