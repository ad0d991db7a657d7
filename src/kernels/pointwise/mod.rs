//! Pointwise operations as pure maths: one row each, written once in the scalar language, without tensors and without memory.

pub mod arith;
pub mod func;
pub mod row;
pub mod rows;
pub mod text;

pub use arith::{Analytic, Cond, Field, Int, Num, Real};
pub use func::{Func, Part};
pub use row::{Constant, DTypeRule, Eval, Kind, OUTPUT, Operand, Output, Row, RowInfo, Vjp};
pub use rows::RowId;
pub(crate) use rows::all_rows;
