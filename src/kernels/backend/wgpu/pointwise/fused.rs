//! A fused program as one shader: the result of a step stays in a register, and is written only if it is an output.
//!
//! The shader's source depends on the steps (rows, types, what reads what), on the inputs' types and on how each lies (one element, dense,
//! strided; dimensions that lie alike in all operands count as one). Sizes, strides, offsets, values and parameters of rows are parameters
//! of the shader, so a loop makes its pipelines once. Results have the same bits as those of single steps: the compiler is kept from fusing
//! a sum or product with the step that reads it, and results pass from step to step in the types that they would have in memory.

use super::elementwise::{self, Elementwise, LoadFunction, Operands};
use crate::backend::wgpu::pointwise::has_kernel;
use crate::backend::wgpu::wgsl::expr::{Formula, ShaderExpr, Sheet};
use crate::backend::wgpu::{Bindings, Buffer, BufferView, Context, PointwiseInput, elem, scratch_size};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::program::{Code, StepInput, StepKind};
use crate::rows::Part;
use smallvec::SmallVec;

/// The most inputs and results of one shader together.
const MAX_OPERANDS: usize = 32;
/// The most steps of one shader: their numbers have seven bits in its key.
pub(super) const MOST_STEPS: usize = 0x7d;

/// How many different buffers a program can read and write in one dispatch on this device.
pub fn most_buffers(context: &Context) -> usize {
    (context.limits().max_storage_buffers_per_shader_stage as usize).min(MAX_OPERANDS)
}

/// An input: its memory, the first element, its type, and its strides over the program's shape; without strides it has the layout of the
/// results.
pub type ProgramRead<'a> = (&'a Buffer, usize, DType, Option<&'a [isize]>);

/// A program. Another shader may read the results of its last step while they are computed: elements of `shape` with the memory order
/// `strides`.
#[derive(Debug, Clone, Copy)]
pub struct DeviceProgram<'a> {
    pub code: &'a Code,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub inputs: &'a [ProgramRead<'a>],
}

/// Bindings that a shader needs for itself when it reads a program.
const BESIDE: usize = 4;
/// Such shaders have four bits for the number of a binding.
const MOST_BINDINGS: usize = 15;

impl<'a> DeviceProgram<'a> {
    /// Whether another shader can bind what the program reads.
    pub fn can_be_read(&self, context: &Context) -> bool {
        self.inputs.len() + BESIDE <= most_buffers(context).min(MOST_BINDINGS) && self.code.steps.len() <= MOST_STEPS
    }

    /// Whether it reads this memory.
    pub fn reads(&self, buffer: &Buffer) -> bool {
        self.inputs.iter().any(|r| r.0.same(buffer))
    }

    /// The dtype of the last step.
    pub(crate) fn dtype(&self) -> DType {
        self.code.steps.last().map_or(DType::Bool, |s| s.out)
    }

    /// Binds the inputs in a shader that reads the elements.
    pub(crate) fn loader(&self, bindings: &mut Bindings<'a>) -> Result<LoadFunction> {
        let last = [self.code.steps.len().saturating_sub(1)];
        check(name(self.code), self.code, self.inputs.len(), &last)?;
        let view = |r: &ProgramRead<'a>| BufferView {
            buffer: r.0,
            offset: r.1,
            shape: self.shape,
            strides: r.3.unwrap_or(self.strides),
            dtype: r.2,
        };
        let dtypes = self.dtypes();
        let ins: SmallVec<[(PointwiseInput<'a>, DType); 8]> = self.inputs.iter().map(|r| (PointwiseInput::View(view(r)), r.2)).collect();
        let numbers: SmallVec<[(Scalar, DType); 8]> = numbers(self.code).collect();
        let operands = Operands { outs: &[], ins: &ins, numbers: &numbers, divisor: None, shape: self.shape, order: self.strides };
        LoadFunction::new::<MAX_OPERANDS>(name(self.code), &key(self.code, &dtypes, &last), &operands, bindings)
    }

    /// The function `load` of a loader, whose words begin at `head`.
    pub(crate) fn function(&self, loader: &LoadFunction, head: usize) -> String {
        let dtypes = self.dtypes();
        let last = [self.code.steps.len().saturating_sub(1)];
        loader.function(head, &|x, p| formula(self.code, &dtypes, &last, x, p))
    }

    fn dtypes(&self) -> SmallVec<[DType; 8]> {
        self.inputs.iter().map(|i| i.2).collect()
    }
}

/// Runs `code` over `shape`: one dispatch, or one for each step where a shader cannot have so many operands. Results start at the beginning
/// of their buffers, with `out_strides`; `outputs` are steps and where their results go. A result may be written to the memory of an input
/// that has no strides of its own and starts at the same element.
///
/// # Errors
/// A row without a kernel on wgpu for its type; no memory for results of single steps; what a dispatch refuses.
pub fn run(
    context: &Context,
    code: &Code,
    shape: &[usize],
    out_strides: &[isize],
    inputs: &[ProgramRead<'_>],
    outputs: &[(usize, &Buffer)],
) -> Result<()> {
    let op = name(code);
    let steps: SmallVec<[usize; 4]> = outputs.iter().map(|o| o.0).collect();
    check(op, code, inputs.len(), &steps)?;
    if inputs.iter().any(|i| !std::ptr::eq(&**i.0.context(), context)) {
        return Err(Error::runtime(format!("{op}: an input lies on another wgpu device than {}", context.name())));
    }
    let many = inputs.len() + outputs.len() > most_buffers(context) || code.steps.len() > MOST_STEPS;
    if many && code.steps.len() > 1 {
        return one_by_one(code, shape, out_strides, inputs, outputs);
    }
    let view = |buffer, offset, strides, dtype| BufferView { buffer, offset, shape, strides, dtype };
    let outs: SmallVec<[BufferView<'_>; 4]> = outputs.iter().map(|(j, b)| view(*b, 0, out_strides, code.steps[*j].out)).collect();
    let ins =
        inputs.iter().map(|(b, at, dtype, strides)| (PointwiseInput::View(view(*b, *at, strides.unwrap_or(out_strides), *dtype)), *dtype));
    let dtypes: SmallVec<[DType; 8]> = inputs.iter().map(|i| i.2).collect();
    elementwise::run_all::<MAX_OPERANDS>(
        &outs,
        &Elementwise {
            op,
            kind: "program",
            code: &key(code, &dtypes, &steps),
            ins: ins.collect(),
            numbers: numbers(code).collect(),
            divisor: None,
            body: &|x, p| formula(code, &dtypes, &steps, x, p),
        },
    )
}

/// Runs each step by itself. The result of a step is written to its output, or to temporary memory.
fn one_by_one(code: &Code, shape: &[usize], out_strides: &[isize], inputs: &[ProgramRead<'_>], outputs: &[(usize, &Buffer)]) -> Result<()> {
    let context = outputs[0].1.context();
    let numel: usize = shape.iter().product();
    let kept = |j: usize| outputs.iter().find(|o| o.0 == j).map(|o| o.1);
    let own: Vec<Option<Buffer>> = (0..code.steps.len())
        .map(|j| if kept(j).is_some() { Ok(None) } else { Buffer::new(context, numel * scratch_size(code.steps[j].out)).map(Some) })
        .collect::<Result<_>>()?;
    for (j, step) in code.steps.iter().enumerate() {
        let mut one = step.clone();
        let mut reads: SmallVec<[ProgramRead<'_>; 5]> = SmallVec::new();
        for (from, dtype) in &mut one.ins {
            let read = match *from {
                StepInput::Input(i) => Some(inputs[i]),
                StepInput::Step(k) => kept(k).or(own[k].as_ref()).map(|b| (b, 0, *dtype, None)),
                StepInput::Nothing | StepInput::Value(_) => None,
            };
            if let Some(read) = read {
                *from = StepInput::Input(reads.len());
                reads.push(read);
            }
        }
        if let Some(to) = kept(j).or(own[j].as_ref()) {
            run(context, &Code { steps: vec![one] }, shape, out_strides, &reads, &[(0, to)])?;
        }
    }
    Ok(())
}

/// The name of a program in labels and errors: its last row.
pub(super) fn name(code: &Code) -> &'static str {
    let row = |s: &crate::program::ProgramStep| match s.kind {
        StepKind::Row { func, .. } => Some(func.row.info().name),
        StepKind::Cast => None,
    };
    code.steps.iter().rev().find_map(row).unwrap_or("to")
}

/// The error for an invalid program: the source of the shader is generated from it.
pub(super) fn check(op: &str, code: &Code, inputs: usize, outputs: &[usize]) -> Result<()> {
    let wrong = |what: &str| Err(Error::internal(op, what));
    if outputs.is_empty() {
        return wrong("a program without results");
    }
    for (at, s) in code.steps.iter().enumerate() {
        let earlier = s.ins.iter().all(|(from, _)| match from {
            StepInput::Input(i) => *i < inputs,
            StepInput::Step(j) => *j < at,
            StepInput::Nothing | StepInput::Value(_) => true,
        });
        let (count, fine) = match s.kind {
            StepKind::Cast => (1, true),
            StepKind::Row { func, compute, .. } => (func.inputs(), func.out_dtype(compute) == s.out),
        };
        if !earlier || !fine || s.ins.len() != count {
            return wrong("a step that reads what is not there, or gives another type than its row");
        }
        if let StepKind::Row { func, compute, .. } = s.kind {
            if !has_kernel(func, compute) {
                let name = func.row.info().name;
                return Err(Error::not_implemented(format!(
                    "{name}: not implemented for {compute} on wgpu yet; move the tensor with .cpu()"
                )));
            }
            if func.divides() && !compute.is_float() {
                return wrong("a step that can fail on values");
            }
        }
    }
    if outputs.iter().any(|j| *j >= code.steps.len()) { wrong("a result that no step makes") } else { Ok(()) }
}

/// The key of the steps. Its length comes first, so that no key is the prefix of another.
pub(super) fn key(code: &Code, dtypes: &[DType], outputs: &[usize]) -> SmallVec<[u32; 48]> {
    let mut key: SmallVec<[u32; 48]> = SmallVec::new();
    key.extend([0, code.steps.len() as u32, outputs.len() as u32]);
    for s in &code.steps {
        let (row, part, compute) = match s.kind {
            StepKind::Cast => (u32::from(u16::MAX), 0, DType::Bool),
            StepKind::Row { func, compute, .. } => {
                (func.row as u32, if let Part::Vjp(i) = func.part { 1 + u32::from(i) } else { 0 }, compute)
            }
        };
        const { assert!(DType::COUNT <= 16, "a dtype has four bits of a key") }
        key.push(row | part << 16 | (compute as u32) << 24 | (s.out as u32) << 28);
        // Two inputs in a word.
        for pair in s.ins.chunks(2) {
            key.push(pair.iter().enumerate().fold(0, |w, (k, (from, dtype))| {
                let from = match from {
                    StepInput::Nothing => 0x7f,
                    StepInput::Value(_) => 0x7e,
                    StepInput::Input(i) => *i as u32,
                    StepInput::Step(j) => 0x80 | *j as u32,
                };
                w | (from | (*dtype as u32) << 8) << (16 * k)
            }));
        }
    }
    key.extend(outputs.iter().map(|j| *j as u32));
    key.extend(dtypes.iter().map(|d| *d as u32));
    key[0] = key.len() as u32;
    key
}

/// Numbers that the shader is given, in the order in which `formula` takes them: of each step the values that it reads, in the types in
/// which it sees them, and its row's parameters.
pub(super) fn numbers(code: &Code) -> impl Iterator<Item = (Scalar, DType)> + '_ {
    code.steps.iter().flat_map(|s| {
        let values = s.ins.iter().enumerate().filter_map(|(k, (from, dtype))| match from {
            StepInput::Value(bytes) => Some((Scalar::of_bytes(bytes, *dtype), elem::beside(*dtype, s.sees(k)))),
            _ => None,
        });
        let params: SmallVec<[(Scalar, DType); 3]> = match &s.kind {
            StepKind::Row { func, compute, params } => {
                params[..func.row.info().params.len()].iter().map(|p| (func.param(*p, *compute), elem::number(*compute))).collect()
            }
            StepKind::Cast => SmallVec::new(),
        };
        values.chain(params)
    })
}

/// What is stored, from expressions for the inputs and the numbers.
pub(super) fn formula(code: &Code, dtypes: &[DType], outputs: &[usize], x: &[String], p: &[String]) -> Formula {
    let sheet = Sheet::default();
    let inputs: Vec<ShaderExpr> = x.iter().zip(dtypes).map(|(x, d)| sheet.leaf(*d, x)).collect();
    let mut numbers = p.iter();
    let mut number = |dtype| sheet.leaf(dtype, numbers.next().map_or("", String::as_str));
    let mut done: Vec<ShaderExpr> = Vec::new();
    for s in &code.steps {
        let ins: SmallVec<[ShaderExpr; 5]> = (0..s.ins.len())
            .map(|k| match s.ins[k].0 {
                StepInput::Nothing => sheet.zero(s.sees(k)),
                StepInput::Value(_) => number(s.sees(k)),
                StepInput::Input(i) => sheet.cast(&inputs[i], s.sees(k)),
                StepInput::Step(j) => sheet.cast(&done[j], s.sees(k)),
            })
            .collect();
        done.push(match &s.kind {
            StepKind::Cast => sheet.cast(&ins[0], s.out),
            StepKind::Row { func, compute, .. } => {
                let params: SmallVec<[ShaderExpr; 3]> = func.row.info().params.iter().map(|_| number(*compute)).collect();
                sheet.rounded(sheet.apply(*func, &ins, &params))
            }
        });
    }
    let roots: SmallVec<[ShaderExpr; 4]> = outputs.iter().map(|j| done[*j].clone()).collect();
    sheet.formula(&roots)
}

#[cfg(test)]
mod tests {
    use super::super::elementwise::tests::check_all;
    use super::*;
    use crate::program::ProgramStep;
    use crate::program::StepInput;
    use crate::program::StepInput::{Input as I, Step as S};
    use crate::rows::{Func, RowId};
    use std::collections::HashSet;

    fn step(func: Func, compute: DType, ins: &[(StepInput, DType)]) -> ProgramStep {
        let kind = StepKind::Row { func, compute, params: [Scalar::Int(1); 3] };
        ProgramStep { kind, ins: ins.iter().copied().collect(), out: func.out_dtype(compute) }
    }

    fn cast(from: (StepInput, DType), out: DType) -> ProgramStep {
        ProgramStep { kind: StepKind::Cast, ins: [from].into_iter().collect(), out }
    }

    /// Lets naga check the shader of a program with inputs of these types.
    fn validate(name: &str, steps: Vec<ProgramStep>, outputs: &[usize], dtypes: &[DType]) {
        let code = Code { steps };
        check(name, &code, dtypes.len(), outputs).unwrap();
        let outs: Vec<DType> = outputs.iter().map(|j| code.steps[*j].out).collect();
        let wanted: Vec<DType> = numbers(&code).map(|n| n.1).collect();
        check_all(name, &outs, dtypes, &wanted, None, &|x, p| formula(&code, dtypes, outputs, x, p));
    }

    #[test]
    fn a_chain_and_its_derivative_are_valid() {
        let f = DType::F32;
        let row = |row, ins: &[StepInput]| step(Func::forward(row), f, &ins.iter().map(|i| (*i, f)).collect::<Vec<_>>());
        let steps = vec![
            row(RowId::Mul, &[I(0), I(1)]),
            row(RowId::Add, &[S(0), I(0)]),
            row(RowId::Tanh, &[S(1)]),
            row(RowId::Mul, &[S(2), StepInput::Value(Scalar::Float(2.0).to_bytes(DType::F32))]),
            step(Func::vjp(RowId::Tanh, 0), f, &[(I(1), f), (StepInput::Nothing, DType::Bool), (S(2), f)]),
            cast((S(4), f), DType::I64),
            row(RowId::AddScaled, &[I(2), S(4)]),
        ];
        validate("chain", steps, &[3, 2, 5, 6], &[f, f, f]);
    }

    /// Every row in every type, between steps of other types.
    #[test]
    fn every_row_can_be_a_step() {
        let mut count = 0;
        for row in RowId::ALL {
            for dtype in crate::backend::wgpu::elem::on_device() {
                let func = Func::forward(*row);
                if !has_kernel(func, dtype) || (func.divides() && !dtype.is_float()) {
                    continue;
                }
                let from = [(S(0), DType::U8), (I(1), DType::I32), (StepInput::Value([1; 16]), DType::F32)];
                let made = func.out_dtype(dtype);
                let f = DType::F32;
                let steps = vec![
                    cast((I(0), f), DType::U8),
                    step(func, dtype, &from[..func.inputs()]),
                    cast((S(1), made), f),
                    step(Func::forward(RowId::Mul), f, &[(S(2), f), (S(2), f)]),
                    step(Func::forward(RowId::Gt), f, &[(S(3), f), (I(2), dtype)]),
                ];
                validate(&format!("{} of {dtype}", row.info().name), steps, &[4, 1, 3], &[f, DType::I32, dtype]);
                count += 1;
            }
        }
        assert!(count > 250, "only {count} rows");
    }

    #[test]
    fn programs_that_differ_have_other_keys() {
        let f = DType::F32;
        let reads = [[I(0), I(1)], [I(1), I(0)], [I(0), S(0)], [S(0), S(0)], [S(0), StepInput::Value([0; 16])]];
        let mut keys = HashSet::new();
        let mut count = 0;
        for second in reads {
            for row in [RowId::Mul, RowId::Sub] {
                for dtypes in [[f, f], [f, DType::I64]] {
                    let typed = |from: StepInput| (from, if let I(i) = from { dtypes[i] } else { f });
                    let add = step(Func::forward(RowId::Add), f, &[typed(I(0)), typed(I(1))]);
                    let code = Code { steps: vec![add, step(Func::forward(row), f, &second.map(typed))] };
                    for outputs in [&[1usize][..], &[0, 1], &[1, 0]] {
                        keys.insert(key(&code, &dtypes, outputs));
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let f = DType::F32;
        let add = |a, b| step(Func::forward(RowId::Add), f, &[(a, f), (b, f)]);
        let refused = |steps: Vec<ProgramStep>, outputs: &[usize]| check("test", &Code { steps }, 2, outputs).is_err();
        assert!(!refused(vec![add(I(0), I(1))], &[0]));
        assert!(refused(vec![add(I(0), I(2))], &[0]));
        assert!(refused(vec![add(I(0), S(0))], &[0]));
        assert!(refused(vec![add(I(0), I(1))], &[1]));
        assert!(refused(vec![add(I(0), I(1))], &[]));
        assert!(refused(vec![step(Func::forward(RowId::Fmod), DType::I32, &[(I(0), DType::I32), (I(1), DType::I32)])], &[0]));
    }
}
