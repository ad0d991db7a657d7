//! Arithmetic, signs and powers.

macro_rules! arithmetic {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // -------------------------------------------------------------------------------------------------------------- arithmetic
    /// The sum of both inputs.
    Field Add = "add" Any [AddBackward0](a, b) attributes [alpha = Whole(1)], not_bound {
        a + b;
        a(g) { g }
        b(g) { g }
    }
    /// `a + alpha * b`.
    Field AddScaled = "add_scaled" Any [AddBackward0](a, b; alpha = 0.7), not_bound {
        a + alpha * b;
        a(g) { g }
        b(g) { g * alpha.conj() }
    }
    /// The first input minus the second.
    Field Sub = "sub" Subtract [SubBackward0](a, b) also ["subtract"] attributes [alpha = Whole(1)], not_bound {
        a - b;
        a(g) { g }
        b(g) { -g }
    }
    /// `a - alpha * b`.
    Field SubScaled = "sub_scaled" Subtract [SubBackward0](a, b; alpha = 0.7), not_bound {
        a - alpha * b;
        a(g) { g }
        b(g) { -(g * alpha.conj()) }
    }
    /// The second input minus the first.
    Field Rsub = "rsub" Subtract [RsubBackward0, RsubBackward1](a, b) attributes [alpha = Whole(1)], no_in_place, not_bound {
        b - a;
        a(g) { -g }
        b(g) { g }
    }
    /// The product of both inputs.
    Field Mul = "mul" Any [MulBackward0](a, b) also ["multiply"] {
        a * b;
        a(g; b) { g * b.conj() }
        b(g; a) { g * a.conj() }
    }
    /// The quotient of both inputs.
    Analytic Div = "div" Float [DivBackward0](a, b in 0.3 to 3.0) also ["divide", "true_divide"], not_bound {
        a.div(b);
        a(g; b) { g.div(b.conj()) }
        b(g; a, b) { -g * a.div(b.clone()).div(b).conj() }
    }
    /// The quotient rounded towards minus infinity.
    Num DivFloor = "div_floor" NoBool [DivBackward2](a in 1.1 to 1.9, b in 0.9 to 1.05), divides, not_bound {
        a.div_floor(b);
        a(g) { g.lit(0.0) }
        b(g) { g.lit(0.0) }
    }
    /// The quotient rounded towards zero.
    Num DivTrunc = "div_trunc" NoBool [DivBackward2](a in 1.1 to 1.9, b in 0.9 to 1.05), divides, not_bound {
        a.div_trunc(b);
        a(g) { g.lit(0.0) }
        b(g) { g.lit(0.0) }
    }
    /// The quotient rounded towards minus infinity, without derivative.
    Num FloorDivide = "floor_divide" NoBool [FloorDivideBackward0](a, b), divides { a.div_floor(b) }
    /// The remainder of the division truncated towards zero; it has the sign of the dividend.
    Num Fmod = "fmod" NoBool [FmodBackward1, FmodBackward0](a in 1.1 to 1.9, b in 0.9 to 1.05) number_attributes [], divides {
        a.fmod(b);
        a(g) { g }
        b(g; a, b) { -g * a.div_trunc(b) }
    }
    /// The remainder of the division rounded towards minus infinity; it has the sign of the divisor.
    Num Remainder = "remainder" NoBool [RemainderBackward1, RemainderBackward0](a in 1.1 to 1.9, b in 0.9 to 1.05) number_attributes [], divides {
        a.remainder(b);
        a(g) { g }
        b(g; a, b) { -g * a.div_floor(b) }
    }
    /// `x + value * a * b`.
    Field Addcmul = "addcmul" NoBool [AddcmulBackward0](x, a, b; value = 0.7 default 1.0 shown "1"), keyword_params {
        x + value * a * b;
        x(g) { g }
        a(g; b) { g * (b * value).conj() }
        b(g; a) { g * (a * value).conj() }
    }
    /// `x + value * a / b`.
    Analytic Addcdiv = "addcdiv" FloatOnly [AddcdivBackward0](x, a, b in 0.4 to 3.0; value = 0.7 default 1.0 shown "1"), keyword_params {
        x + value * a.div(b);
        x(g) { g }
        a(g; b) { g * value.div(b).conj() }
        b(g; a, b) { -g * (value * a).div(b.clone() * b).conj() }
    }
    /// `a + w * (b - a)`, computed from the end that `w` is nearer to.
    Analytic Lerp = "lerp" FloatOnly [LerpBackward1, LerpBackward0](a, b as "end", w as "weight" in 0.0 to 1.0) number_attributes ["weight"], unpromoted {
        {
            let (d, size) = (b.clone() - a.clone(), w.clone().modulus());
            A::select(size.lt(&size.lit(0.5)), a + w.clone() * d.clone(), b - d * (w.lit(1.0) - w))
        };
        a(g; w) { g * (w.lit(1.0) - w).conj() }
        b(g; w) { g * w.conj() }
        w(g; a, b) { g * (b - a).conj() }
    }

    // ----------------------------------------------------------------------------------------------------------- sign and size
    /// The input with its sign changed.
    Field Neg = "neg" Negate [NegBackward0](x) also ["negative"] {
        -x;
        x(g) { -g }
    }
    /// The complex conjugate, computed.
    Field ConjPhysical = "conj_physical" Any [ConjPhysicalBackward0](x), not_bound, not_holomorphic {
        x.conj();
        x(g) { g.conj() }
    }
    /// The absolute value; its derivative at 0 is 0.
    Modulus Abs = "abs" NoBool [AbsBackward0](x) also ["absolute"] kinks [0.0] {
        x.modulus();
        x(g; x) { g * x.sgn() }
    }
    /// -1, 0 or 1 (0 for nan).
    Num Sign = "sign" Any [SignBackward0](x) kinks [0.0] {
        x.sign();
        x(g) { g.lit(0.0) }
    }
    /// The input divided by its absolute value: -1, 0 or 1 for real numbers (0 for nan).
    Field Sgn = "sgn" Any [SgnBackward0](x) kinks [0.0], not_holomorphic {
        x.sgn();
        x(g; x, y) {
            {
                // What points across the number turns it; what points along it changes nothing.
                let (size, zero) = (A::of_re(x.modulus()), y.eq(&y.lit(0.0)));
                let turn = A::of_re((g * y.clone().conj()).im()) * y.clone().turned();
                A::select(zero.clone(), y.lit(0.0), turn.div(A::select(zero, size.lit(1.0), size)))
            }
        }
    }
    /// The angle of the input in radians: 0 for positive real numbers and zero, pi for negative ones (nan for nan).
    Phase Angle = "angle" Float [AngleBackward0](x) kinks [0.0], no_in_place {
        x.angle();
        x(g; x) {
            {
                let (along, size) = (x.clone().sgn(), A::of_re(x.modulus()));
                let zero = along.eq(&along.lit(0.0));
                let turn = g * along.turned();
                A::select(zero.clone(), size.lit(0.0), turn.div(A::select(zero, size.lit(1.0), size)))
            }
        }
    }
    /// The magnitude of the first input with the sign of the second.
    Real Copysign = "copysign" Float [CopysignBackward0, CopysignBackward1](a, b) kinks [0.0] {
        a.copysign(b);
        a(g; a, y) {
            {
                let zero = a.eq(&a.lit(0.0));
                g * A::select(zero.clone(), y.lit(0.0), y.div(A::select(zero, a.lit(1.0), a)))
            }
        }
        b(g) { g.lit(0.0) }
    }
    /// One over the input.
    Analytic Reciprocal = "reciprocal" Float [ReciprocalBackward0](x in 0.3 to 3.0) {
        x.lit(1.0).div(x);
        x(g; y) { -g * (y.clone() * y).conj() }
    }
    /// The input times itself.
    Field Square = "square" BoolAsInt [PowBackward0](x) attributes [exponent = Whole(2)] {
        x.clone() * x;
        x(g; x) { g * (x.lit(2.0) * x).conj() }
    }
    /// The first input to the power of the second.
    Field Pow = "pow" NoBool [PowBackward1, PowBackward1, PowBackward2](x in 0.2 to 3.0, e as "exponent"), not_bound {
        x.pow(e);
        x(g; x, e) {
            {
                // A power of 0 is constant: not even an infinite cotangent counts.
                let flat = e.eq(&e.lit(0.0));
                let slope = e.clone() * A::select(flat.clone(), e.lit(1.0), x).pow(e.clone() - e.lit(1.0));
                A::select(flat, g.lit(0.0), g) * slope.conj()
            }
        }
        e(g; x, e, y) {
            {
                let size = e.re();
                let flat = x.eq(&x.lit(0.0)).and(size.ge(&size.lit(0.0)));
                g * (y * A::select(flat, x.lit(1.0), x).log()).conj()
            }
        }
    }
    /// The input to the power of a number.
    Field PowScalar = "pow_scalar" NoBool [PowBackward0](x in 0.2 to 3.0; exponent = 2.5), not_bound {
        x.pow(exponent);
        x(g; x) {
            {
                let (e, flat) = (exponent.clone(), exponent.eq(&exponent.lit(0.0)));
                let slope = e.clone() * A::select(flat.clone(), e.lit(1.0), x).pow(e.clone() - e.lit(1.0));
                A::select(flat, g.lit(0.0), g) * slope.conj()
            }
        }
    }
    /// The square root.
    Analytic Sqrt = "sqrt" Float [SqrtBackward0](x in 0.2 to 4.0) {
        x.sqrt();
        x(g; y) { g.div((y.lit(2.0) * y).conj()) }
    }
    /// One over the square root.
    Analytic Rsqrt = "rsqrt" Float [RsqrtBackward0](x in 0.2 to 4.0) {
        x.lit(1.0).div(x.sqrt());
        x(g; y) { g * (y.lit(-0.5) * (y.clone() * y.clone() * y)).conj() }
    }
    /// The length of the hypotenuse, without needless overflow; its derivative at 0 is 0.
    Real Hypot = "hypot" FloatOnly [HypotBackward0](a in 0.3 to 3.0, b in 0.3 to 3.0) {
        a.hypot(b);
        a(g; a, y) {
            {
                let zero = y.eq(&y.lit(0.0));
                let slope = a.div(A::select(zero.clone(), y.lit(1.0), y));
                g * A::select(zero, slope.lit(0.0), slope)
            }
        }
        b(g; b, y) {
            {
                let zero = y.eq(&y.lit(0.0));
                let slope = b.div(A::select(zero.clone(), y.lit(1.0), y));
                g * A::select(zero, slope.lit(0.0), slope)
            }
        }
    }

    ] $($rest)* } };
}
pub(super) use arithmetic;
