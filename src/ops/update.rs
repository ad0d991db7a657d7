//! Many tensors written in place by one formula: the steps of optimizers.
//!
//! A formula is a short program of pointwise rows. It runs over each group of tensors (a parameter, its gradient, its states) as one pass over
//! memory. Nothing is recorded: updates have no derivative. Not here: the formulas, which are the optimizers' (`python/rgrad/optim`).

use crate::array::{Array, ArrayGroup, Change, OverwritingProgram};
use crate::autograd::{Tensor, call_site, check_inplace, mode};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::program::{Code, ProgramStep, StepInput, StepKind};
use crate::rows::{Func, MAX_PARAMS, RowId};
use smallvec::SmallVec;

/// An operand of a row: an input of the formula, the result of an earlier row, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateInput {
    Input(usize),
    Row(usize),
    Number(usize),
}

/// A row of a formula. Parameters are numbers of the formula.
#[derive(Debug, Clone)]
pub struct UpdateRow {
    pub row: RowId,
    pub ins: SmallVec<[UpdateInput; 3]>,
    pub params: SmallVec<[usize; 3]>,
}

/// A formula: rows, and which input the result of a row overwrites.
#[derive(Debug, Clone)]
pub struct UpdateFormula {
    pub rows: Vec<UpdateRow>,
    pub writes: SmallVec<[(usize, usize); 4]>,
}

/// What versions and errors call the write.
const LABEL: &str = "optimizer.step";

impl UpdateFormula {
    fn code(&self, dtype: DType, inputs: usize, numbers: &[f64]) -> Result<Code> {
        let wrong = |why: &str| Error::runtime(format!("{LABEL}: {why}"));
        let mut steps: Vec<ProgramStep> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let func = Func::forward(row.row);
            if row.ins.len() != func.inputs() || row.params.len() != row.row.info().params.len() {
                return Err(wrong(&format!("a row {} with another number of operands or parameters than it has", row.row.info().name)));
            }
            let number = |at: usize| numbers.get(at).copied().ok_or_else(|| wrong("a number that is not given"));
            let mut params = [Scalar::Int(0); MAX_PARAMS];
            for (to, at) in params.iter_mut().zip(&row.params) {
                *to = Scalar::Float(number(*at)?);
            }
            let mut ins = SmallVec::new();
            for from in &row.ins {
                ins.push(match *from {
                    UpdateInput::Input(i) if i < inputs => (StepInput::Input(i), dtype),
                    UpdateInput::Row(i) if i < steps.len() => (StepInput::Step(i), steps[i].out),
                    UpdateInput::Number(i) => number_input(number(i)?, func, dtype),
                    _ => return Err(wrong("an operand that is not there")),
                });
            }
            steps.push(ProgramStep { kind: StepKind::Row { func, compute: dtype, params }, ins, out: func.out_dtype(dtype) });
        }
        Ok(Code { steps })
    }

    /// Applies the formula to the first tensors of all lists, the second, and so on, and returns which of these groups it has taken. Others are as
    /// they were: the formula has no fast way for their dtype or layout, or a transform or a tangent needs the operations one by one.
    ///
    /// # Errors
    /// A tensor that may not be written; lists of different lengths; a formula that is none. Nothing is written then.
    pub fn apply(&self, lists: &[SmallVec<[Tensor; 4]>], numbers: &[f64]) -> Result<Vec<bool>> {
        let n = lists.first().map_or(0, |l| l.len());
        if lists.iter().any(|l| l.len() != n) || self.writes.iter().any(|(i, _)| *i >= lists.len()) {
            return Err(Error::runtime(format!("{LABEL}: lists of tensors of different lengths, or without what is written")));
        }
        let mut taken = vec![false; n];
        let Some(dtype) = lists.first().and_then(|l| l.first()).map(Tensor::dtype) else { return Ok(taken) };
        if mode::is_grad_enabled() || !dtype.is_differentiable() {
            return Ok(taken);
        }
        let is_watched = mode::current().watch != 0;
        let mut arrays: Vec<ArrayGroup> = Vec::with_capacity(n);
        let mut at: Vec<usize> = Vec::with_capacity(n);
        'groups: for g in 0..n {
            let mut group = ArrayGroup::new();
            for (i, list) in lists.iter().enumerate() {
                let core = list[g].read();
                // Tensors of transforms and those with tangents go the general way.
                let Some(array) = core.plain_or_ended() else { continue 'groups };
                group.push(array.clone());
                if self.writes.iter().any(|(w, _)| *w == i) && (is_watched || core.inference || !array.storage().is_writable()) {
                    drop(core);
                    check_inplace(&list[g], false, LABEL)?;
                    if let Some(e) = list[g].refuses_write(LABEL) {
                        return Err(e);
                    }
                }
            }
            arrays.push(group);
            at.push(g);
        }
        let program = OverwritingProgram { code: self.code(dtype, lists.len(), numbers)?, dtype, writes: self.writes.clone() };
        let done = Array::overwrite_each(&program, &arrays)?;
        let site = call_site::current().0;
        for (g, done) in at.into_iter().zip(done) {
            taken[g] = done;
            if done {
                self.writes.iter().for_each(|(i, _)| lists[*i][g].bump_version(Change { site, op: LABEL }));
            }
        }
        Ok(taken)
    }
}

/// A number beside floats of 16 bits stays a float32 where the row does not round it.
fn number_input(value: f64, func: Func, dtype: DType) -> (StepInput, DType) {
    let seen = if dtype.is_half() && !func.rounds_numbers() { DType::F32 } else { dtype };
    (StepInput::Value(Scalar::Float(value).to_bytes(seen)), seen)
}
