//! Rounding, and choosing one of several values.

macro_rules! choosing {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // --------------------------------------------------------------------------------------------------- rounding and choosing
    /// The largest whole number not above the input.
    Num Floor = "floor" NoBool [FloorBackward0](x in 0.1 to 0.9) { x.floor(); x(g) { g.lit(0.0) } }
    /// The smallest whole number not below the input.
    Num Ceil = "ceil" NoBool [CeilBackward0](x in 0.1 to 0.9) { x.ceil(); x(g) { g.lit(0.0) } }
    /// The nearest whole number, halves to even.
    Num Round = "round" NoBool [RoundBackward0](x in 0.6 to 1.4), not_bound { x.round(); x(g) { g.lit(0.0) } }
    /// The multiple of `down / up` that is nearest to the input, halves to even; one of the parameters is 1.
    Real RoundTo = "round_to" FloatOnly [RoundBackward1](x in 0.6 to 1.4; up = 1.0, down = 1.0), not_bound {
        (x * up.clone()).div(down.clone()).round().div(up) * down;
        x(g) { g.lit(0.0) }
    }
    /// The whole part, towards zero.
    Num Trunc = "trunc" NoBool [TruncBackward0](x in 0.1 to 0.9) also ["fix"] { x.trunc(); x(g) { g.lit(0.0) } }
    /// The part after the decimal point, with the input's sign.
    Real Frac = "frac" FloatOnly [FracBackward0](x in 0.1 to 0.9) {
        x.clone() - x.trunc();
        x(g) { g }
    }
    /// The larger input; where both are equal each gets half of the gradient.
    Num Maximum = "maximum" Any [MaximumBackward0](a, b), no_in_place, cuts {
        a.max(b);
        a(g; a, b) { A::select(a.lt(&b), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
        b(g; a, b) { A::select(b.lt(&a), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
    }
    /// The smaller input; where both are equal each gets half of the gradient.
    Num Minimum = "minimum" Any [MinimumBackward0](a, b), no_in_place, cuts {
        a.min(b);
        a(g; a, b) { A::select(b.lt(&a), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
        b(g; a, b) { A::select(a.lt(&b), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
    }
    /// The larger input, or the one that is not nan.
    Num Fmax = "fmax" Any [FmaxBackward0](a, b), no_in_place, cuts {
        A::select(a.is_nan().or(a.lt(&b)), b, a);
        a(g; a, b) { A::select(a.ge(&b).or(b.is_nan()), g.clone(), g.lit(0.0)) }
        b(g; a, b) { A::select(a.ge(&b).or(b.is_nan()), g.lit(0.0), g) }
    }
    /// The smaller input, or the one that is not nan.
    Num Fmin = "fmin" Any [FminBackward0](a, b), no_in_place, cuts {
        A::select(a.is_nan().or(b.lt(&a)), b, a);
        a(g; a, b) { A::select(a.le(&b).or(b.is_nan()), g.clone(), g.lit(0.0)) }
        b(g; a, b) { A::select(a.le(&b).or(b.is_nan()), g.lit(0.0), g) }
    }
    /// The input kept between two numbers; the upper one wins.
    Num Clamp = "clamp" NoBool [ClampBackward1](x; min = -1.5, max = 1.25) also ["clip"] kinks [-1.5, 1.25], not_bound, cuts {
        x.max(min).min(max);
        x(g; x) { A::select(x.ge(&min).and(x.le(&max)), g.clone(), g.lit(0.0)) }
    }
    /// The input, but not less than a number.
    Num ClampMin = "clamp_min" NoBool [ClampMinBackward0](x; min = -1.5) kinks [-1.5], not_bound, cuts {
        x.max(min);
        x(g; x) { A::select(x.ge(&min), g.clone(), g.lit(0.0)) }
    }
    /// The input, but not more than a number.
    Num ClampMax = "clamp_max" NoBool [ClampMaxBackward0](x; max = 1.25) kinks [1.25], not_bound, cuts {
        x.min(max);
        x(g; x) { A::select(x.le(&max), g.clone(), g.lit(0.0)) }
    }
    /// The input kept between two tensors; the upper one wins.
    Num ClampTensor = "clamp_tensor" NoBool [ClampBackward0](x, lo as "min" in -2.0 to -1.0, hi as "max" in 1.0 to 2.0), not_bound, cuts {
        x.max(lo).min(hi);
        x(g; x, lo, hi) { A::select(x.ge(&lo).and(x.le(&hi)), g.clone(), g.lit(0.0)) }
        lo(g; x, lo, hi) { A::select(x.lt(&lo).and(lo.lt(&hi)), g.clone(), g.lit(0.0)) }
        hi(g; x, lo, hi) { A::select(x.gt(&hi).or(hi.lt(&lo)), g.clone(), g.lit(0.0)) }
    }
    /// The first input where the condition holds, else the second.
    Field Where = "where" Any [WhereBackward0](c as "condition": mask, a as "self", b as "other"), no_in_place, not_bound, cuts {
        A::select(c.truthy(), a, b);
        a(g; c) { A::select(c.truthy(), g.clone(), g.lit(0.0)) }
        b(g; c) { A::select(c.truthy(), g.lit(0.0), g) }
    }
    /// The input, with a value where the mask holds.
    Field MaskedFill = "masked_fill" Any [MaskedFillBackward0](x, c as "mask": mask, value as "value"), not_bound, cuts {
        A::select(c.truthy(), value, x);
        x(g; c) { A::select(c.truthy(), g.lit(0.0), g) }
        value(g; c) { A::select(c.truthy(), g.clone(), g.lit(0.0)) }
    }
    /// The first input, but 0 where it is nan and the gate 0. The gate has no derivative.
    Field Cut = "_cut" Any [CutBackward0](x, gate in 0.5 to 3.0), no_in_place, not_bound, cuts {
        A::select(gate.truthy().or(x.eq(&x)), x.clone(), x.lit(0.0));
        x(g; x, gate) { A::select(gate.truthy().or(x.eq(&x)), g.clone(), g.lit(0.0)) }
    }
    /// The input with numbers in place of nan, plus and minus infinity.
    Real NanToNum = "nan_to_num" FloatElseSame [NanToNumBackward0](
        x;
        nan = 0.5 default 0.0 shown "None", posinf = 7.0 default 1.7976931348623157e308 shown "None",
        neginf = -7.0 default -1.7976931348623157e308 shown "None"
    ) hides ["nan", "posinf", "neginf"], cuts {
        A::select(
            x.is_nan(),
            nan,
            A::select(x.eq(&x.lit(f64::INFINITY)), posinf, A::select(x.eq(&x.lit(f64::NEG_INFINITY)), neginf, x))
        );
        x(g; x) { A::select(x.is_nan().or(x.is_inf()), g.lit(0.0), g) }
    }

    ] $($rest)* } };
}
pub(super) use choosing;
