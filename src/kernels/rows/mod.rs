//! Pointwise operations as pure maths: one row each (`table`), written once in the scalar language (`arith`), without tensors and memory. Not
//! here: the loops over memory (`backend/cpu/pointwise`), and shaders (`backend/wgpu/wgsl`).

pub mod arith;
pub mod func;
pub mod row;
pub mod table;
pub mod text;

pub use arith::{Analytic, Cond, Field, Int, Num, Real};
pub use func::{Func, MAX_PARAMS, Part};
pub use row::{Constant, DTypeRule, Eval, Kind, OUTPUT, Operand, Output, Row, RowInfo, Vjp};
pub use table::RowId;
pub(crate) use table::all_rows;
