//! One program over many groups of arrays, some of which it overwrites: what an optimizer does with parameters, gradients and states.

use super::storage::Storage;
use super::value::Array;
use crate::backend::contract::{Memory, ProgramRun, ProgramRuns};
use crate::error::{Error, Result};
use crate::host::language;
use crate::layout::DType;
use crate::program::{Code, StepInput};
use smallvec::SmallVec;

/// The arrays that one run of a program reads, in the order of the program's inputs.
pub type ArrayGroup = SmallVec<[Array; 6]>;

/// Bytes of a storage: its number, and the first and the last byte.
type Bytes = (usize, usize, usize);

/// A program that overwrites some of its inputs.
#[derive(Debug)]
pub struct OverwritingProgram {
    pub code: Code,
    /// The dtype of all inputs.
    pub dtype: DType,
    /// Which input the result of a step overwrites.
    pub writes: SmallVec<[(usize, usize); 4]>,
}

impl OverwritingProgram {
    /// Refuses programs that read an input after it is overwritten, or write another dtype than the input has.
    fn check(&self) -> Result<()> {
        let wrong = |why: &str| Err(Error::internal("a program that overwrites its inputs", why));
        for (input, step) in &self.writes {
            let Some(writer) = self.code.steps.get(*step) else { return wrong("it writes the result of a step that it does not have") };
            if writer.out != self.dtype {
                return wrong("a result has another dtype than the input that it overwrites");
            }
            let reads = |s: &crate::program::ProgramStep| s.ins.iter().any(|(from, _)| *from == StepInput::Input(*input));
            if self.code.steps[step + 1..].iter().any(reads) {
                return wrong("a step reads an input that an earlier step has overwritten");
            }
        }
        Ok(())
    }

    fn is_written(&self, input: usize) -> bool {
        self.writes.iter().any(|(i, _)| *i == input)
    }

    /// Whether the program can run on these arrays: they have one shape and one order in memory, without gaps.
    fn takes(&self, group: &[Array], beside: &Storage) -> bool {
        let Some(first) = group.first() else { return false };
        let same_order = |a: &Array| a.strides().iter().zip(first.strides()).zip(first.shape()).all(|((x, y), n)| x == y || *n == 1);
        group.iter().enumerate().all(|(i, a)| {
            a.dtype() == self.dtype
                && a.shape() == first.shape()
                && a.layout().is_dense()
                && same_order(a)
                && a.storage().is_beside(beside)
                && (!self.is_written(i) || a.storage().is_writable() && (a.device().is_host() || a.is_whole()))
        })
    }

    /// The memory of one run.
    fn run_of<'a>(&self, group: &'a ArrayGroup) -> ProgramRun<'a> {
        // On the host the memory of an output begins with its first element.
        let output = |a: &'a Array| {
            let view = a.view();
            if a.device().is_host() { Memory::Host(view.ptr()) } else { view.memory }
        };
        ProgramRun {
            elements: group[0].numel(),
            inputs: group.iter().map(|a| (a.view().memory, a.layout().offset())).collect(),
            outputs: self.writes.iter().map(|(i, _)| output(&group[*i])).collect(),
        }
    }
}

fn bytes_of(a: &Array) -> Bytes {
    let ((low, high), size) = (a.layout().extent(), a.storage().element_size(a.dtype()));
    (a.storage().id(), low * size, high * size)
}

/// Which groups can run beside the others: none of them writes what another one reads or writes.
fn independent(program: &OverwritingProgram, groups: &[ArrayGroup], taken: &mut [bool]) {
    let mut written: Vec<(Bytes, usize)> = Vec::new();
    for (g, group) in groups.iter().enumerate().filter(|(g, group)| taken[*g] && group[0].numel() > 0) {
        written.extend(program.writes.iter().map(|(i, _)| (bytes_of(&group[*i]), g)));
    }
    written.sort_unstable();
    for pair in written.windows(2) {
        let (((id, _, end), first), ((other, start, _), second)) = (pair[0], pair[1]);
        if id == other && start < end {
            taken[first] = false;
            taken[second] = false;
        }
    }
    for (g, group) in groups.iter().enumerate() {
        if !taken[g] || group[0].numel() == 0 {
            continue;
        }
        for a in group.iter().enumerate().filter_map(|(i, a)| (!program.is_written(i)).then_some(a)) {
            let (id, start, end) = bytes_of(a);
            let after = written.partition_point(|((other, _, high), _)| (*other, *high) <= (id, start));
            if written.get(after).is_some_and(|((other, low, _), _)| *other == id && *low < end) {
                taken[g] = false;
            }
        }
    }
}

impl Array {
    /// Runs the program on each group, and returns which groups it has taken. Others are as they were: their arrays differ in shape, order,
    /// dtype or device, have gaps, or share memory with what another group, or another operand, writes.
    ///
    /// # Errors
    /// No memory for what was pending in the arrays; a row without a kernel. Nothing is written then.
    pub fn overwrite_each(program: &OverwritingProgram, groups: &[ArrayGroup]) -> Result<Vec<bool>> {
        program.check()?;
        let Some(beside) = groups.iter().find_map(|g| g.first()).map(|a| a.storage().clone()) else { return Ok(Vec::new()) };
        let mut taken: Vec<bool> = groups.iter().map(|g| program.takes(g, &beside)).collect();
        independent(program, groups, &mut taken);
        let mut work = 0;
        for group in groups.iter().zip(&taken).filter_map(|(g, t)| t.then_some(g)) {
            for (i, a) in group.iter().enumerate() {
                if program.is_written(i) {
                    a.writable()?
                } else {
                    a.ready()?
                }
                work += a.numel();
            }
        }
        let is_host = beside.device().is_host();
        let run_all = || -> Result<()> {
            let steps: SmallVec<[usize; 4]> = program.writes.iter().map(|(_, step)| *step).collect();
            let runs: Vec<ProgramRun<'_>> =
                groups.iter().zip(&taken).filter(|(g, t)| **t && g[0].numel() > 0).map(|(g, _)| program.run_of(g)).collect();
            if runs.is_empty() {
                return Ok(());
            }
            let runs = ProgramRuns { code: &program.code, dtype: program.dtype, outputs: &steps, runs: &runs };
            // SAFETY: the arrays are settled, dense, of one order, and held by the groups; `check` says that no input is read after it is
            // overwritten, `independent` that no group writes what another one uses.
            unsafe { Ok(beside.backend().run_program_each(&runs)?) }
        };
        // Not interrupted: half a step could not be repeated.
        if is_host && work >= language::LARGE { language::unlocked(run_all) } else { run_all() }?;
        Ok(taken)
    }
}
