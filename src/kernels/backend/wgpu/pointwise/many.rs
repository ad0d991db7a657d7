//! One program over many groups of operands in as few dispatches as bindings allow: the step of an optimizer over its parameters.
//!
//! A workgroup finds in the parameters to which group of operands it belongs, loads from that group's buffers, computes, and stores. So a
//! shader has the program once and a load and a store for each group. Its source depends on the number of groups and on which operand is
//! which binding; sizes, offsets and numbers are parameters.

use super::fused::{self, MOST_STEPS, ProgramRead, check, key, name, numbers};
use crate::backend::wgpu::common::strided;
use crate::backend::wgpu::common::strided::{GROUP, Params, check_count, param};
use crate::backend::wgpu::device::dispatch::MOST_BINDINGS;
use crate::backend::wgpu::wgsl::expr::Formula;
use crate::backend::wgpu::{Bindings, Buffer, Context, Dispatch, Key, elem, wgsl};
use crate::error::Result;
use crate::layout::{DType, Scalar};
use crate::program::Code;
use smallvec::SmallVec;
use std::fmt::Write;

/// One group: dense operands without strides of their own.
#[derive(Debug)]
pub struct ProgramGroup<'a> {
    pub elements: usize,
    /// The memory of each input, and its first element.
    pub inputs: SmallVec<[(&'a Buffer, usize); 6]>,
    /// The memory of each output, which begins with its first element.
    pub outputs: SmallVec<[&'a Buffer; 4]>,
}

impl ProgramGroup<'_> {
    /// The most buffers that it can add to the bindings of a shader.
    fn buffers(&self) -> usize {
        let own = |out: &&&Buffer| !self.inputs.iter().any(|(b, _)| b.same(out));
        self.inputs.len() + self.outputs.iter().filter(own).count()
    }
}

/// Runs `code` on each group. `outputs` are the steps whose results are stored, in the order of the groups' outputs. An output may be the
/// memory of an input of its group that starts at its first element.
///
/// # Errors
/// As for `fused::run`. Groups that came earlier may be written then.
pub fn run_each(context: &Context, code: &Code, dtype: DType, outputs: &[usize], groups: &[ProgramGroup<'_>]) -> Result<()> {
    let most = (context.limits().max_storage_buffers_per_shader_stage as usize).min(MOST_BINDINGS);
    let mut rest = groups;
    while let [first, ..] = rest {
        let (mut count, mut buffers) = (1, first.buffers());
        while let Some(next) = rest.get(count)
            && buffers + next.buffers() <= most
        {
            buffers += next.buffers();
            count += 1;
        }
        let (now, later) = rest.split_at(count);
        rest = later;
        if count > 1 && code.steps.len() <= MOST_STEPS {
            together(context, code, dtype, outputs, now)?;
        } else {
            now.iter().try_for_each(|g| alone(context, code, dtype, outputs, g))?;
        }
    }
    Ok(())
}

fn alone(context: &Context, code: &Code, dtype: DType, outputs: &[usize], group: &ProgramGroup<'_>) -> Result<()> {
    let inputs: SmallVec<[ProgramRead<'_>; 6]> = group.inputs.iter().map(|(b, at)| (*b, *at, dtype, None)).collect();
    let outs: SmallVec<[(usize, &Buffer); 4]> = outputs.iter().copied().zip(group.outputs.iter().copied()).collect();
    fused::run(context, code, &[group.elements], &[1], &inputs, &outs)
}

/// The parameter word that is a zero opaque to the compiler; the numbers follow.
const ZERO: usize = 0;

/// What the source of the shader depends on besides the program.
struct Plan<'a> {
    code: &'a Code,
    dtypes: SmallVec<[DType; 8]>,
    numbers: SmallVec<[(Scalar, DType); 8]>,
    outputs: &'a [usize],
    /// Of each group the bindings of its inputs, then those of its outputs.
    slots: Vec<SmallVec<[u32; 8]>>,
    written: u128,
}

impl Plan<'_> {
    /// Where the ends of the groups begin among the parameters, counted in workgroups.
    fn ends(&self) -> usize {
        ZERO + 1 + 2 * self.numbers.len()
    }

    /// Where the groups' own words begin, the elements of a group and the first element of each input, and how many these are.
    fn own(&self) -> (usize, usize) {
        (self.ends() + self.slots.len(), 1 + self.dtypes.len())
    }

    /// A switch over the groups.
    fn by_group(&self, case: impl Fn(&[u32]) -> String) -> String {
        let mut text = "switch which {\n".to_owned();
        for (k, slots) in self.slots.iter().enumerate() {
            // A switch must have a default.
            let label = if k + 1 == self.slots.len() { "default".to_owned() } else { format!("case {k}u") };
            let _ = writeln!(text, "{label}: {{ {} }}", case(slots));
        }
        text + "}\n"
    }

    fn source(&self) -> String {
        let (own, words) = self.own();
        let params = own + self.slots.len() * words;
        let count = self.dtypes.len();
        let out_dtype = |k: usize| self.code.steps[self.outputs[k]].out;
        let mut declared: Vec<(u32, &str)> = Vec::new();
        for slots in &self.slots {
            declared.extend(
                slots
                    .iter()
                    .enumerate()
                    .map(|(k, slot)| (*slot, elem::storage(if k < count { self.dtypes[k] } else { out_dtype(k - count) }))),
            );
        }
        let mut vars = String::new();
        let mut inputs: Vec<String> = Vec::new();
        for (k, dtype) in self.dtypes.iter().enumerate() {
            let _ = writeln!(vars, "let at{k} = word(own + {}u) + i;\nvar x{k}: {};", k + 1, elem::value(*dtype));
            inputs.push(format!("x{k}"));
        }
        let loads = self.by_group(|slots| {
            let load = |k: usize| format!("x{k} = {};", elem::load(self.dtypes[k], &format!("b{}", slots[k]), &format!("at{k}")));
            (0..count).map(load).collect::<Vec<_>>().join(" ")
        });
        let read = |(at, n): (usize, &(Scalar, DType))| {
            let first = ZERO + 1 + 2 * at;
            elem::from_words(n.1, &param(first), &param(first + 1))
        };
        let values: Vec<String> = self.numbers.iter().enumerate().map(read).collect();
        let Formula { lets, values } = fused::formula(self.code, &self.dtypes, self.outputs, &inputs, &values);
        let mut results = String::new();
        for (k, (value, dtype)) in values.iter().enumerate() {
            // A name first, because a conversion may use its operand twice.
            let _ = writeln!(results, "let result{k} = {value};");
            let _ = writeln!(results, "let stored{k} = {};", elem::convert(*dtype, out_dtype(k), &format!("result{k}")));
        }
        let stores = self.by_group(|slots| {
            let store = |k: usize| elem::store(out_dtype(k), &format!("b{}", slots[count + k]), "i", &format!("stored{k}"));
            (0..self.outputs.len()).map(store).collect::<Vec<_>>().join(" ")
        });
        let (ends, last) = (self.ends(), self.slots.len() - 1);
        let shader = format!(
            "{}fn word(i: u32) -> u32 {{ return params[i / 4u][i % 4u]; }}\n{}{}\n\
             var which = 0u;\n\
             while which < {last}u && group >= word({ends}u + which) {{ which += 1u; }}\n\
             let before = select(0u, word({ends}u + max(which, 1u) - 1u), which > 0u);\n\
             let own = {own}u + which * {words}u;\n\
             let i = (group - before) * {GROUP}u + lid;\n\
             if i >= word(own) {{ return; }}\n\
             {vars}{loads}{lets}{results}{stores}}}\n",
            strided::header(&declared, self.written, params),
            strided::entry(),
            strided::unknown(ZERO),
        );
        wgsl::with_library(&shader)
    }
}

/// One dispatch for all groups, whose buffers can be bound at once.
fn together(context: &Context, code: &Code, dtype: DType, outputs: &[usize], groups: &[ProgramGroup<'_>]) -> Result<()> {
    let op = name(code);
    let inputs = groups.first().map_or(0, |g| g.inputs.len());
    check(op, code, inputs, outputs)?;
    let plan;
    let mut params = Params::new();
    // Declared last, because it must be dropped first: it borrows from the others.
    let mut bindings = Bindings::new();
    let (mut slots, mut ends, mut own) = (Vec::new(), Params::new(), Params::new());
    let mut workgroups = 0;
    for g in groups {
        check_count(op, g.elements)?;
        let outs: SmallVec<[u32; 4]> = g.outputs.iter().map(|b| bindings.write(b)).collect();
        let mut of: SmallVec<[u32; 8]> = g.inputs.iter().map(|(b, _)| bindings.read(b)).collect();
        of.extend(outs);
        slots.push(of);
        workgroups += g.elements.div_ceil(GROUP);
        ends.push(workgroups as u32);
        own.push(g.elements as u32);
        own.extend(g.inputs.iter().map(|(_, first)| *first as u32));
    }
    plan = Plan {
        code,
        dtypes: SmallVec::from_elem(dtype, inputs),
        numbers: numbers(code).collect(),
        outputs,
        slots,
        written: bindings.written(),
    };
    params.push(0);
    plan.numbers.iter().for_each(|(v, dtype)| params.extend(elem::to_words(*v, *dtype)));
    params.extend(ends);
    params.extend(own);
    let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&key(code, &plan.dtypes, outputs));
    words.push(groups.len() as u32);
    // Four bindings in a word.
    let all: Vec<u32> = plan.slots.iter().flatten().copied().collect();
    words.extend(all.chunks(4).map(|four| four.iter().enumerate().fold(0, |w, (k, slot)| w | slot << (8 * k))));
    context.dispatch(Dispatch {
        op,
        key: Key::new("program over groups", words),
        source: &|| plan.source(),
        bindings,
        params: &params,
        groups: workgroups,
        checked: false,
    })
}

const _: () = assert!(MOST_BINDINGS <= 256, "a binding has eight bits of a key");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;
    use crate::program::{ProgramStep, StepInput, StepKind};
    use crate::rows::{Func, RowId};

    /// `x + y`, and its product with a number, over three groups of which two share a buffer.
    #[test]
    fn a_shader_over_groups_is_valid() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
            let row = |row, ins: [StepInput; 2]| ProgramStep {
                kind: StepKind::Row { func: Func::forward(row), compute: dtype, params: [Scalar::Int(0); 3] },
                ins: ins.into_iter().map(|i| (i, dtype)).collect(),
                out: dtype,
            };
            let steps = vec![
                row(RowId::Add, [StepInput::Input(0), StepInput::Input(1)]),
                row(RowId::Mul, [StepInput::Step(0), StepInput::Value([0; 16])]),
            ];
            let code = Code { steps };
            let slots: [[u32; 4]; 3] = [[0, 1, 0, 1], [2, 3, 2, 3], [4, 40, 4, 40]];
            let plan = Plan {
                code: &code,
                dtypes: SmallVec::from_elem(dtype, 2),
                numbers: numbers(&code).collect(),
                outputs: &[1, 0],
                slots: slots.iter().map(|s| SmallVec::from_slice(s)).collect(),
                written: u128::MAX,
            };
            validate::check(&format!("a program over groups of {dtype}"), &plan.source());
        }
    }
}
