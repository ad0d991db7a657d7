//! Tensors with history: the door through which operations pass, the graph they leave behind, and the engine that walks it.

mod accumulate;
pub mod anomaly;
mod around;
pub mod cut;
mod direct;
mod door;
pub mod engine;
mod flow;
pub mod hooks;
mod index;
pub mod level;
pub mod linear;
pub mod kept;
mod lock;
pub mod mode;
mod node;
pub mod owned;
pub mod packing;
pub mod plan;
mod pointwise;
pub mod running;
mod saved;
mod sharing;
pub mod site;
pub mod slot;
mod tensor;
mod view;
pub mod writing;

pub use direct::apply_direct;
pub use door::{Arrays, Devices, Old, Op, Outputs, Saves, apply, apply_inplace, apply1, apply1_growing};
pub use hooks::Grads;
pub use node::{Edge, Edges, Node, NodeOp, OutMeta, Vjp, VjpCx};
pub use pointwise::{Expr, MAX_PARAMS, Number, PointwiseOp};
pub use saved::Saved;
pub use tensor::{Tensor, Value, WeakTensor};
pub use view::{Creation, ViewCall, ViewInfo, ViewOp, check_inplace, function_output, view, view_as, view_inplace, views};
