//! The losses of target classes.

/// How losses are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NllReduction {
    None,
    Mean,
    Sum,
}

/// Input of (outer, classes, inner), row-major; targets and single losses of (outer, inner).
#[derive(Debug, Clone, Copy, Hash)]
pub struct Classes {
    pub outer: usize,
    pub classes: usize,
    pub inner: usize,
    /// The target that is ignored.
    pub ignore: i64,
    pub reduction: NllReduction,
}

/// The losses of log-probabilities, or, with `adjoint`, the gradient of the log-probabilities from that of the losses. Operands: these, the
/// targets (int64 or uint8), and possibly a weight for each class. Floats only; all are row-major.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Nll {
    pub classes: Classes,
    pub adjoint: bool,
    /// The number of the dimension of classes, for messages.
    pub dim: usize,
    /// The ticket under which a device reports a target that is no class; 0 draws one when the request runs.
    pub ticket: u32,
}
