//! The steps of optimizers: a formula over lists of tensors.

use crate::error::Error;
use crate::ops::update::{UpdateFormula, UpdateInput, UpdateRow};
use crate::python::args::tensor_list;
use crate::python::types::PyObj;
use crate::rows::RowId;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// A short program of pointwise operations that overwrites some of its inputs, for lists of tensors.
///
/// `rows` are tuples (name, operands, parameters). An operand below `arity` is an input, one from there on the result of a row, and a negative
/// one, -1 - k, number k; parameters are numbers. `writes` are pairs (input, row): the row's result overwrites the input.
#[pyclass(name = "_UpdateFormula", module = "rgrad._core", frozen)]
struct PyUpdateFormula(UpdateFormula);

#[pymethods]
impl PyUpdateFormula {
    #[new]
    fn new(arity: usize, rows: Vec<(String, Vec<isize>, Vec<usize>)>, writes: Vec<(usize, usize)>) -> PyResult<PyUpdateFormula> {
        let mut all = Vec::with_capacity(rows.len());
        for (name, operands, params) in rows {
            let Some(row) = RowId::ALL.iter().find(|r| r.info().name == name) else {
                return Err(Error::runtime(format!("_UpdateFormula: there is no operation {name}")).into());
            };
            let operand = |at: &isize| match usize::try_from(*at) {
                Ok(at) if at < arity => UpdateInput::Input(at),
                Ok(at) => UpdateInput::Row(at - arity),
                Err(_) => UpdateInput::Number((-1 - *at) as usize),
            };
            all.push(UpdateRow { row: *row, ins: operands.iter().map(operand).collect(), params: SmallVec::from_vec(params) });
        }
        Ok(PyUpdateFormula(UpdateFormula { rows: all, writes: SmallVec::from_vec(writes) }))
    }

    /// Applies the formula to the first tensors of all lists, the second, and so on. Gives the places that it has left as they were, because
    /// their tensors need the operations one by one.
    fn apply(&self, lists: Vec<PyObj<'_>>, numbers: Vec<f64>) -> PyResult<Vec<usize>> {
        let lists = lists.iter().map(|l| tensor_list(l, "optimizer.step", "tensors")).collect::<PyResult<Vec<_>>>()?;
        let taken = self.0.apply(&lists, &numbers)?;
        Ok(taken.iter().enumerate().filter_map(|(i, taken)| (!taken).then_some(i)).collect())
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyUpdateFormula>()
}
