//! PyTorch's names of a row's operands.

use super::row::RowInfo;

impl RowInfo {
    /// The names under which the operands are given and saved ("self", "other", ...), in order.
    pub fn operand_names(&self) -> &'static [&'static str] {
        match (self.name, self.operands.len()) {
            ("where", _) => &["condition", "self", "other"],
            ("masked_fill", _) => &["self", "mask", "value"],
            ("lerp", _) => &["self", "end", "weight"],
            ("clamp_tensor", _) => &["self", "min", "max"],
            ("pow", _) => &["self", "exponent"],
            ("mse_loss" | "smooth_l1_loss" | "huber_loss" | "binary_cross_entropy" | "binary_cross_entropy_with_logits", _) => {
                &["self", "target"]
            }
            (_, 1) => &["self"],
            (_, 2) => &["self", "other"],
            _ => &["self", "tensor1", "tensor2"],
        }
    }
}
