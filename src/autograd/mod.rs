//! Tensors with history: how operations are dispatched and recorded, the graph that they leave, and the engine that walks it.
//!
//! `tensor` is a value with its history. `dispatch` runs an operation and records it. `graph` is what is recorded. `engine` runs backward.
//! `transforms` has nested levels, batching and forward mode. `diagnostics` explains gradients. `primitives` has the few operations that
//! differentiation itself needs, `complex_parts` those of complex numbers among them. Not here: kernels and devices (`array`, `backend`), the other operations (`ops`), Python.

mod complex_parts;
pub mod diagnostics;
pub mod dispatch;
pub mod engine;
pub mod graph;
pub mod primitives;
pub mod tensor;
pub mod transforms;

pub use diagnostics::{anomaly, missing_gradient, profiler};
pub use dispatch::apply::{OldValue, apply, apply_growing, apply_inplace, apply1, apply1_growing, inplace_shape};
pub use dispatch::expr::Expr;
pub use dispatch::fast_path::{apply_direct, write_direct};
pub use dispatch::op::{Arrays, Devices, Op, OpForm, Outputs, Saves};
pub use dispatch::pointwise::{MAX_PARAMS, Number, PointwiseOp};
pub use dispatch::{call_site, mode, record};
pub use engine::hooks::{self, Grads};
pub use engine::{foreign_run, graph_task, task_plan};
pub use graph::node::{Edge, Edges, Node, NodeOp, OutMeta};
pub use graph::saved::Saved;
pub use graph::saved_hooks;
pub use graph::view::{
    Creation, ShownAttributes, ViewCall, ViewInfo, ViewName, ViewOp, check_inplace, check_recorded_write, function_output, function_view,
    function_write, unrelated, view, view_as, view_inplace, views,
};
pub use graph::vjp::{Name, Vjp, VjpCx};
pub use tensor::{MathBits, Tensor, Value, WeakTensor, census, ownership};
pub use transforms::forward_mode::{self, Jvp, Tangent, Tangents};
pub use transforms::{batching, dual_levels, level, mutation_guard, view_tangents};
