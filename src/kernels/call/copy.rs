//! Elements moved, some of them replaced by zero.

/// The upper or lower triangle of each matrix in the last two dimensions of the operand, zero elsewhere. The output has the operand's shape
/// and dtype, and may be the operand.
#[derive(Debug, Clone, Hash)]
pub struct Triangle {
    pub diagonal: i64,
    pub upper: bool,
}

impl Triangle {
    pub fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }
}
