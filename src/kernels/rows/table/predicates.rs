//! Comparisons, logic and bits: what has no derivative. Written over a tensor of floats, they have a node, which gives zeros.

macro_rules! predicates {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // ------------------------------------------------------------------------------------------------------------- comparisons
    /// Whether both inputs are equal.
    Test Eq = "eq" Compare [EqBackward1, EqBackward0](a, b) { a.eq(&b) }
    /// Whether the inputs differ (true where one is nan).
    Test Ne = "ne" Compare [NeBackward1, NeBackward0](a, b) also ["not_equal"] { a.ne(&b) }
    /// Whether the first input is less.
    Cmp Lt = "lt" Compare [LtBackward1, LtBackward0](a, b) also ["less"] { a.lt(&b) }
    /// Whether the first input is less or equal.
    Cmp Le = "le" Compare [LeBackward1, LeBackward0](a, b) also ["less_equal"] { a.le(&b) }
    /// Whether the first input is greater.
    Cmp Gt = "gt" Compare [GtBackward1, GtBackward0](a, b) also ["greater"] { a.gt(&b) }
    /// Whether the first input is greater or equal.
    Cmp Ge = "ge" Compare [GeBackward1, GeBackward0](a, b) also ["greater_equal"] { a.ge(&b) }
    /// Whether the input is nan.
    Test IsNan = "isnan" Compare [NoBackward](x), no_in_place { x.is_nan() }
    /// Whether the input is infinite.
    Test IsInf = "isinf" Compare [NoBackward](x), no_in_place { x.is_inf() }
    /// Whether the input is neither nan nor infinite.
    Test IsFinite = "isfinite" Compare [NoBackward](x), no_in_place { x.is_nan().or(x.is_inf()).not() }
    /// Whether the input is plus infinity.
    Cmp IsPosInf = "isposinf" Compare [NoBackward](x), no_in_place { x.is_inf().and(x.gt(&x.lit(0.0))) }
    /// Whether the input is minus infinity.
    Cmp IsNegInf = "isneginf" Compare [NoBackward](x), no_in_place { x.is_inf().and(x.lt(&x.lit(0.0))) }
    /// Whether both inputs are true (not zero).
    Test LogicalAnd = "logical_and" Logic [LogicalAndBackward0](a, b) { a.truthy().and(b.truthy()) }
    /// Whether one of the inputs is true (not zero).
    Test LogicalOr = "logical_or" Logic [LogicalOrBackward0](a, b) { a.truthy().or(b.truthy()) }
    /// Whether just one of the inputs is true (not zero).
    Test LogicalXor = "logical_xor" Logic [LogicalXorBackward0](a, b) { a.truthy().xor(b.truthy()) }
    /// Whether the input is zero.
    Test LogicalNot = "logical_not" Logic [LogicalNotBackward0](x) { x.truthy().not() }

    // -------------------------------------------------------------------------------------------------------------------- bits
    /// The bits that both inputs have.
    Int BitwiseAnd = "bitwise_and" Bitwise [NoBackward](a, b) { a.bit_and(b) }
    /// The bits that one of the inputs has.
    Int BitwiseOr = "bitwise_or" Bitwise [NoBackward](a, b) { a.bit_or(b) }
    /// The bits that just one of the inputs has.
    Int BitwiseXor = "bitwise_xor" Bitwise [NoBackward](a, b) { a.bit_xor(b) }
    /// The input with all its bits changed.
    Int BitwiseNot = "bitwise_not" Bitwise [NoBackward](x) { x.bit_not() }
    /// The first input's bits moved up by the second; 0 where that is negative or too much.
    Int LeftShift = "bitwise_left_shift" Shift [NoBackward](a, b) { a.shl(b) }
    /// The first input's bits moved down by the second, keeping the sign.
    Int RightShift = "bitwise_right_shift" Shift [NoBackward](a, b) { a.shr(b) }

    ] $($rest)* } };
}
pub(super) use predicates;
