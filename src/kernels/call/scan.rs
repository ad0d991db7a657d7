//! Scans: each element is replaced by the accumulation of all elements up to it.

/// What a scan accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanKind {
    Sum,
    Prod,
    /// `log(sum(exp(x)))`, without overflow. Floats only.
    LogSumExp,
}

impl ScanKind {
    /// Whether it is defined for floats alone.
    pub fn is_float_only(self) -> bool {
        self == ScanKind::LogSumExp
    }
}

/// The output has the operand's shape; floats keep their dtype, others give int64.
#[derive(Debug, Clone, Hash)]
pub struct Scan {
    pub kind: ScanKind,
    pub dim: usize,
}

impl Scan {
    pub fn name(&self) -> &'static str {
        match self.kind {
            ScanKind::Sum => "cumsum",
            ScanKind::Prod => "cumprod",
            ScanKind::LogSumExp => "logcumsumexp",
        }
    }
}

/// The largest (or smallest) element so far and where it stands, the last of equals. Two outputs of the operand's shape: values of its
/// dtype, and int64.
#[derive(Debug, Clone, Hash)]
pub struct CumulativeExtreme {
    pub max: bool,
    pub dim: usize,
}

impl CumulativeExtreme {
    pub fn name(&self) -> &'static str {
        if self.max { "cummax" } else { "cummin" }
    }
}
