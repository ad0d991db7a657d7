//! Diagnostics: anomaly mode, why a gradient is missing, and what the profiler records.
//!
//! Not here: call sites, which every operation records (`dispatch/call_site.rs`).

pub mod anomaly;
pub mod graph_memory;
pub mod graph_nodes;
pub mod growing_graph;
pub mod missing_gradient;
pub mod profiler;
pub mod unused_total;
