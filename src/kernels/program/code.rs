//! A fused program as backends run it: pointwise steps over values of one size. Every value is a flat vector in memory order.

use crate::layout::{DType, ElementBytes, Scalar};
use crate::rows::{Func, MAX_PARAMS};
use smallvec::SmallVec;

/// The computation of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepKind {
    Row {
        func: Func,
        compute: DType,
        params: [Scalar; MAX_PARAMS],
    },
    /// Its only input, converted.
    Cast,
}

/// The source of a step's input. It has the element type of that source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepInput {
    /// Not read at all.
    Nothing,
    /// The program's input of this number.
    Input(usize),
    /// The result of an earlier step.
    Step(usize),
    /// One value for all elements: its bytes in memory.
    Value(ElementBytes),
}

#[derive(Debug, Clone)]
pub struct ProgramStep {
    pub kind: StepKind,
    pub ins: SmallVec<[(StepInput, DType); 3]>,
    pub out: DType,
}

impl ProgramStep {
    /// The element type to which input `k` is converted for the step.
    pub fn sees(&self, k: usize) -> DType {
        match self.kind {
            StepKind::Row { func, compute, .. } => func.in_dtype(k, compute),
            StepKind::Cast => self.ins[k].1,
        }
    }
}

/// The steps of a program; each comes after those whose results it reads.
#[derive(Debug, Clone, Default)]
pub struct Code {
    pub steps: Vec<ProgramStep>,
}

impl Code {
    /// For each step the last one that reads it (itself where none does).
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last: Vec<usize> = (0..self.steps.len()).collect();
        for (i, s) in self.steps.iter().enumerate() {
            for (from, _) in &s.ins {
                if let StepInput::Step(j) = from {
                    last[*j] = i;
                }
            }
        }
        last
    }
}
