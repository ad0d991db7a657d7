//! Diagnostics: anomaly mode, and why a gradient is missing.
//!
//! Not here: call sites, which every operation records (`dispatch/call_site.rs`).

pub mod anomaly;
pub mod missing_gradient;
