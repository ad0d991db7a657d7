//! Every pointwise operation. To add one, add its entry here; kernels, derivatives, the Tensor's table and the tests follow from it.
//!
//! Derivatives hold to PyTorch's values at special points and are themselves differentiable: where an unused branch of `select` would
//! be infinite or nan there, its input is masked and not its result (0 * inf is nan one order higher).

use super::arith::{Cond, Int, Num, Real};
use super::row::*;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, SQRT_2};

rows! {
    // ------------------------------------------------------------------------------------------------------------- arithmetic
    /// The sum of both inputs.
    Num Add = "add" Any [AddBackward0](a, b) {
        a + b;
        a(g) { g }
        b(g) { g }
    }
    /// `a + alpha * b`.
    Num AddScaled = "add_scaled" Any [AddBackward0](a, b; alpha = 0.7) {
        a + alpha * b;
        a(g) { g }
        b(g) { g * alpha }
    }
    /// The first input minus the second.
    Num Sub = "sub" NoBool [SubBackward0](a, b) also ["subtract"] {
        a - b;
        a(g) { g }
        b(g) { -g }
    }
    /// `a - alpha * b`.
    Num SubScaled = "sub_scaled" NoBool [SubBackward0](a, b; alpha = 0.7) {
        a - alpha * b;
        a(g) { g }
        b(g) { -(g * alpha) }
    }
    /// The second input minus the first.
    Num Rsub = "rsub" NoBool [RsubBackward0, RsubBackward1](a, b), no_in_place {
        b - a;
        a(g) { -g }
        b(g) { g }
    }
    /// The product of both inputs.
    Num Mul = "mul" Any [MulBackward0](a, b) also ["multiply"] {
        a * b;
        a(g; b) { g * b }
        b(g; a) { g * a }
    }
    /// The quotient of both inputs.
    Real Div = "div" Float [DivBackward0](a, b in 0.3 to 3.0) also ["divide", "true_divide"] {
        a.div(b);
        a(g; b) { g.div(b) }
        b(g; a, b) { -g * a.div(b.clone()).div(b) }
    }
    /// The quotient rounded towards minus infinity.
    Num DivFloor = "div_floor" NoBool [DivBackward2](a in 1.1 to 1.9, b in 0.9 to 1.05) {
        a.div_floor(b);
        a(g) { g.lit(0.0) }
        b(g) { g.lit(0.0) }
    }
    /// The quotient rounded towards zero.
    Num DivTrunc = "div_trunc" NoBool [DivBackward2](a in 1.1 to 1.9, b in 0.9 to 1.05) {
        a.div_trunc(b);
        a(g) { g.lit(0.0) }
        b(g) { g.lit(0.0) }
    }
    /// The quotient rounded towards minus infinity, without derivative.
    Num FloorDivide = "floor_divide" NoBool [NotImplemented](a, b) { a.div_floor(b) }
    /// The remainder of the division truncated towards zero; it has the sign of the dividend.
    Num Fmod = "fmod" NoBool [FmodBackward1, FmodBackward0](a in 1.1 to 1.9, b in 0.9 to 1.05) {
        a.fmod(b);
        a(g) { g }
        b(g; a, b) { -g * a.div_trunc(b) }
    }
    /// The remainder of the division rounded towards minus infinity; it has the sign of the divisor.
    Num Remainder = "remainder" NoBool [RemainderBackward1, RemainderBackward0](a in 1.1 to 1.9, b in 0.9 to 1.05) {
        a.remainder(b);
        a(g) { g }
        b(g; a, b) { -g * a.div_floor(b) }
    }
    /// `x + value * a * b`.
    Num Addcmul = "addcmul" NoBool [AddcmulBackward0](x, a, b; value = 0.7) {
        x + value * a * b;
        x(g) { g }
        a(g; b) { g * (b * value) }
        b(g; a) { g * (a * value) }
    }
    /// `x + value * a / b`.
    Real Addcdiv = "addcdiv" FloatOnly [AddcdivBackward0](x, a, b in 0.4 to 3.0; value = 0.7) {
        x + value * a.div(b);
        x(g) { g }
        a(g; b) { g * value.div(b) }
        b(g; a, b) { -g * (value * a).div(b.clone() * b) }
    }
    /// `a + w * (b - a)`, computed from the end that `w` is nearer to.
    Real Lerp = "lerp" FloatOnly [LerpBackward1, LerpBackward0](a, b, w in 0.0 to 1.0) {
        {
            let d = b.clone() - a.clone();
            A::select(w.clone().abs().lt(&w.lit(0.5)), a + w.clone() * d.clone(), b - d * (w.lit(1.0) - w))
        };
        a(g; w) { g * (w.lit(1.0) - w) }
        b(g; w) { g * w }
        w(g; a, b) { g * (b - a) }
    }

    // ---------------------------------------------------------------------------------------------------------- sign and size
    /// The input with its sign changed.
    Num Neg = "neg" NoBool [NegBackward0](x) also ["negative"] {
        -x;
        x(g) { -g }
    }
    /// The absolute value; its derivative at 0 is 0.
    Num Abs = "abs" NoBool [AbsBackward0](x) also ["absolute"] kinks [0.0] {
        x.abs();
        x(g; x) { g * x.sign() }
    }
    /// -1, 0 or 1 (0 for nan).
    Num Sign = "sign" Any [SignBackward0](x) kinks [0.0] {
        x.sign();
        x(g) { g.lit(0.0) }
    }
    /// -1, 0 or 1 (0 for nan).
    Num Sgn = "sgn" Any [SgnBackward0](x) kinks [0.0] {
        x.sign();
        x(g) { g.lit(0.0) }
    }
    /// The magnitude of the first input with the sign of the second.
    Real Copysign = "copysign" Float [CopysignBackward0](a, b) kinks [0.0] {
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
    Real Reciprocal = "reciprocal" Float [ReciprocalBackward0](x in 0.3 to 3.0) {
        x.lit(1.0).div(x);
        x(g; y) { -g * (y.clone() * y) }
    }
    /// The input times itself.
    Num Square = "square" NoBool [PowBackward0](x) {
        x.clone() * x;
        x(g; x) { g * (x.lit(2.0) * x) }
    }
    /// The first input to the power of the second.
    Num Pow = "pow" NoBool [PowBackward1, PowBackward2](x in 0.2 to 3.0, e) {
        x.pow(e);
        x(g; x, e) { g * (e.clone() * A::select(e.eq(&e.lit(0.0)), e.lit(1.0), x).pow(e.clone() - e.lit(1.0))) }
        e(g; x, e, y) {
            {
                let flat = x.eq(&x.lit(0.0)).and(e.ge(&e.lit(0.0)));
                g * (y * A::select(flat, x.lit(1.0), x).log())
            }
        }
    }
    /// The input to the power of a number.
    Num PowScalar = "pow_scalar" NoBool [PowBackward0](x in 0.2 to 3.0; e = 2.5) {
        x.pow(e);
        x(g; x) { g * (e.clone() * A::select(e.eq(&e.lit(0.0)), e.lit(1.0), x).pow(e.clone() - e.lit(1.0))) }
    }
    /// The square root.
    Real Sqrt = "sqrt" Float [SqrtBackward0](x in 0.2 to 4.0) {
        x.sqrt();
        x(g; y) { g.div(y.lit(2.0) * y) }
    }
    /// One over the square root.
    Real Rsqrt = "rsqrt" Float [RsqrtBackward0](x in 0.2 to 4.0) {
        x.lit(1.0).div(x.sqrt());
        x(g; y) { g * (y.lit(-0.5) * (y.clone() * y.clone() * y)) }
    }
    /// The length of the hypotenuse, without needless overflow.
    Real Hypot = "hypot" FloatOnly [HypotBackward0](a in 0.3 to 3.0, b in 0.3 to 3.0) {
        a.hypot(b);
        a(g; a, y) { g * a.div(y) }
        b(g; b, y) { g * b.div(y) }
    }

    // -------------------------------------------------------------------------------------------------- rounding and choosing
    /// The largest whole number not above the input.
    Num Floor = "floor" NoBool [FloorBackward0](x in 0.1 to 0.9) { x.floor(); x(g) { g.lit(0.0) } }
    /// The smallest whole number not below the input.
    Num Ceil = "ceil" NoBool [CeilBackward0](x in 0.1 to 0.9) { x.ceil(); x(g) { g.lit(0.0) } }
    /// The nearest whole number, halves to even.
    Num Round = "round" NoBool [RoundBackward0](x in 0.6 to 1.4) { x.round(); x(g) { g.lit(0.0) } }
    /// The whole part, towards zero.
    Num Trunc = "trunc" NoBool [TruncBackward0](x in 0.1 to 0.9) also ["fix"] { x.trunc(); x(g) { g.lit(0.0) } }
    /// The part after the decimal point, with the input's sign.
    Real Frac = "frac" FloatOnly [FracBackward0](x in 0.1 to 0.9) {
        x.clone() - x.trunc();
        x(g) { g }
    }
    /// The larger input; where both are equal each gets half of the gradient.
    Num Maximum = "maximum" Any [MaximumBackward0](a, b), no_in_place {
        a.max(b);
        a(g; a, b) { A::select(a.lt(&b), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
        b(g; a, b) { A::select(b.lt(&a), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
    }
    /// The smaller input; where both are equal each gets half of the gradient.
    Num Minimum = "minimum" Any [MinimumBackward0](a, b), no_in_place {
        a.min(b);
        a(g; a, b) { A::select(b.lt(&a), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
        b(g; a, b) { A::select(a.lt(&b), g.lit(0.0), A::select(a.eq(&b), g.clone() * g.lit(0.5), g)) }
    }
    /// The larger input, or the one that is not nan.
    Num Fmax = "fmax" Any [FmaxBackward0](a, b), no_in_place {
        A::select(a.is_nan().or(a.lt(&b)), b, a);
        a(g; a, b) { A::select(a.ge(&b).or(b.is_nan()), g.clone(), g.lit(0.0)) }
        b(g; a, b) { A::select(a.ge(&b).or(b.is_nan()), g.lit(0.0), g) }
    }
    /// The smaller input, or the one that is not nan.
    Num Fmin = "fmin" Any [FminBackward0](a, b), no_in_place {
        A::select(a.is_nan().or(b.lt(&a)), b, a);
        a(g; a, b) { A::select(a.le(&b).or(b.is_nan()), g.clone(), g.lit(0.0)) }
        b(g; a, b) { A::select(a.le(&b).or(b.is_nan()), g.lit(0.0), g) }
    }
    /// The input kept between two numbers; the upper one wins.
    Num Clamp = "clamp" NoBool [ClampBackward1](x; min = -1.5, max = 1.25) also ["clip"] kinks [-1.5, 1.25] {
        x.max(min).min(max);
        x(g; x) { A::select(x.ge(&min).and(x.le(&max)), g.clone(), g.lit(0.0)) }
    }
    /// The input, but not less than a number.
    Num ClampMin = "clamp_min" NoBool [ClampMinBackward0](x; min = -1.5) kinks [-1.5] {
        x.max(min);
        x(g; x) { A::select(x.ge(&min), g.clone(), g.lit(0.0)) }
    }
    /// The input, but not more than a number.
    Num ClampMax = "clamp_max" NoBool [ClampMaxBackward0](x; max = 1.25) kinks [1.25] {
        x.min(max);
        x(g; x) { A::select(x.le(&max), g.clone(), g.lit(0.0)) }
    }
    /// The input kept between two tensors; the upper one wins.
    Num ClampTensor = "clamp_tensor" NoBool [ClampBackward0](x, lo in -2.0 to -1.0, hi in 1.0 to 2.0) {
        x.max(lo).min(hi);
        x(g; x, lo, hi) { A::select(x.ge(&lo).and(x.le(&hi)), g.clone(), g.lit(0.0)) }
        lo(g; x, lo, hi) { A::select(x.lt(&lo).and(lo.lt(&hi)), g.clone(), g.lit(0.0)) }
        hi(g; x, lo, hi) { A::select(x.gt(&hi).or(hi.lt(&lo)), g.clone(), g.lit(0.0)) }
    }
    /// The first input where the condition holds, else the second.
    Num Where = "where" Any [WhereBackward0](c: mask, a, b), no_in_place {
        A::select(c.truthy(), a, b);
        a(g; c) { A::select(c.truthy(), g.clone(), g.lit(0.0)) }
        b(g; c) { A::select(c.truthy(), g.lit(0.0), g) }
    }
    /// The input, with a value where the mask holds.
    Num MaskedFill = "masked_fill" Any [MaskedFillBackward0](x, c: mask, value) {
        A::select(c.truthy(), value, x);
        x(g; c) { A::select(c.truthy(), g.lit(0.0), g) }
        value(g; c) { A::select(c.truthy(), g.clone(), g.lit(0.0)) }
    }
    /// The input with numbers in place of nan, plus and minus infinity.
    Real NanToNum = "nan_to_num" FloatOnly [NanToNumBackward0](x; nan = 0.5, posinf = 7.0, neginf = -7.0) {
        A::select(
            x.is_nan(),
            nan,
            A::select(x.eq(&x.lit(f64::INFINITY)), posinf, A::select(x.eq(&x.lit(f64::NEG_INFINITY)), neginf, x))
        );
        x(g; x) { A::select(x.is_nan().or(x.is_inf()), g.lit(0.0), g) }
    }

    // ----------------------------------------------------------------------------------------------- exponentials, logarithms
    /// e to the power of the input.
    Real Exp = "exp" Float [ExpBackward0](x) { x.exp(); x(g; y) { g * y } }
    /// 2 to the power of the input.
    Real Exp2 = "exp2" Float [Exp2Backward0](x) { x.exp2(); x(g; y) { g * y.clone() * y.lit(LN_2) } }
    /// e to the power of the input, minus 1, accurate near 0.
    Real Expm1 = "expm1" Float [Expm1Backward0](x) { x.expm1(); x(g; y) { g * (y.clone() + y.lit(1.0)) } }
    /// The natural logarithm.
    Real Log = "log" Float [LogBackward0](x in 0.2 to 4.0) { x.log(); x(g; x) { g.div(x) } }
    /// The logarithm to base 2.
    Real Log2 = "log2" Float [Log2Backward0](x in 0.2 to 4.0) { x.log2(); x(g; x) { g.div(x.lit(LN_2) * x) } }
    /// The logarithm to base 10.
    Real Log10 = "log10" Float [Log10Backward0](x in 0.2 to 4.0) { x.log10(); x(g; x) { g.div(x.lit(LN_10) * x) } }
    /// The natural logarithm of 1 plus the input, accurate near 0.
    Real Log1p = "log1p" Float [Log1PBackward0](x in -0.7 to 3.0) { x.log1p(); x(g; x) { g.div(x.lit(1.0) + x) } }
    /// The logarithm of the sum of the exponentials of both inputs.
    Real Logaddexp = "logaddexp" FloatOnly [LogaddexpBackward0](a, b), no_in_place {
        {
            let d = A::select(a.eq(&b), a.lit(0.0), a.clone() - b.clone());
            a.max(b) + (-d.abs()).exp().log1p()
        };
        a(g; a, b) { g * (a - b).sigmoid() }
        b(g; a, b) { g * (b - a).sigmoid() }
    }
    /// `a * log(b)`, and 0 where `a` is 0 and `b` is not nan.
    Real Xlogy = "xlogy" Float [XlogyBackward0](a, b in 0.2 to 3.0) {
        {
            let zero = a.eq(&a.lit(0.0)).and(b.is_nan().not());
            a * A::select(zero, b.lit(1.0), b).log()
        };
        a(g; a, b) {
            {
                let flat = a.eq(&a.lit(0.0)).and(b.le(&b.lit(0.0)));
                g * A::select(flat, b.lit(1.0), b).log()
            }
        }
        b(g; a, b) { g * a.div(b) }
    }
    /// The logarithm of the odds, `log(x / (1 - x))`.
    Real Logit = "logit" Float [LogitBackward0](x in 0.1 to 0.9) {
        {
            let odds = x.clone().div(x.lit(1.0) - x);
            odds.log()
        };
        x(g; x) {
            {
                let outside = x.lt(&x.lit(0.0)).or(x.gt(&x.lit(1.0)));
                let d = x.clone() * (x.lit(1.0) - x);
                g.div(A::select(outside, d.lit(f64::NAN), d))
            }
        }
    }

    // -------------------------------------------------------------------------------------------------- circles and hyperbolas
    /// The sine of an angle in radians.
    Real Sin = "sin" Float [SinBackward0](x), periodic { x.sin(); x(g; x) { g * x.cos() } }
    /// The cosine of an angle in radians.
    Real Cos = "cos" Float [CosBackward0](x), periodic { x.cos(); x(g; x) { g * -x.sin() } }
    /// The tangent of an angle in radians.
    Real Tan = "tan" Float [TanBackward0](x in -1.2 to 1.2), periodic {
        x.tan();
        x(g; y) { g * (y.lit(1.0) + y.clone() * y) }
    }
    /// The angle, in radians, whose sine is the input.
    Real Asin = "asin" Float [AsinBackward0](x in -0.8 to 0.8) also ["arcsin"] {
        x.asin();
        x(g; x) { g.div((x.lit(1.0) - x.clone() * x).sqrt()) }
    }
    /// The angle, in radians, whose cosine is the input.
    Real Acos = "acos" Float [AcosBackward0](x in -0.8 to 0.8) also ["arccos"] {
        x.acos();
        x(g; x) { -g.div((x.lit(1.0) - x.clone() * x).sqrt()) }
    }
    /// The angle, in radians, whose tangent is the input.
    Real Atan = "atan" Float [AtanBackward0](x) also ["arctan"] {
        x.atan();
        x(g; x) { g.div(x.clone() * x.clone() + x.lit(1.0)) }
    }
    /// The angle, in radians, of the point with the ordinate `a` and the abscissa `b`.
    Real Atan2 = "atan2" Float [Atan2Backward0](a in 0.3 to 3.0, b) also ["arctan2"] {
        a.atan2(b);
        a(g; a, b) {
            {
                let d = a.clone() * a + b.clone() * b.clone();
                g * b.div(A::select(d.eq(&d.lit(0.0)), d.lit(1.0), d))
            }
        }
        b(g; a, b) {
            {
                let d = a.clone() * a.clone() + b.clone() * b;
                g * -a.div(A::select(d.eq(&d.lit(0.0)), d.lit(1.0), d))
            }
        }
    }
    /// The hyperbolic sine.
    Real Sinh = "sinh" Float [SinhBackward0](x) { x.sinh(); x(g; x) { g * x.cosh() } }
    /// The hyperbolic cosine.
    Real Cosh = "cosh" Float [CoshBackward0](x) { x.cosh(); x(g; x) { g * x.sinh() } }
    /// The hyperbolic tangent.
    Real Tanh = "tanh" Float [TanhBackward0](x) {
        x.tanh();
        x(g; y) { g * (y.lit(1.0) - y.clone() * y) }
    }
    /// The inverse of the hyperbolic sine.
    Real Asinh = "asinh" Float [AsinhBackward0](x) also ["arcsinh"] {
        x.asinh();
        x(g; x) { g.div((x.clone() * x.clone() + x.lit(1.0)).sqrt()) }
    }
    /// The inverse of the hyperbolic cosine.
    Real Acosh = "acosh" Float [AcoshBackward0](x in 1.3 to 4.0) also ["arccosh"] {
        x.acosh();
        x(g; x) { g.div((x.clone() * x.clone() - x.lit(1.0)).sqrt()) }
    }
    /// The inverse of the hyperbolic tangent.
    Real Atanh = "atanh" Float [AtanhBackward0](x in -0.8 to 0.8) also ["arctanh"] {
        x.atanh();
        x(g; x) { g.div(x.lit(1.0) - x.clone() * x) }
    }
    /// The error function.
    Real Erf = "erf" Float [ErfBackward0](x) {
        x.erf();
        x(g; x) { g * (x.lit(FRAC_2_SQRT_PI) * (-(x.clone() * x)).exp()) }
    }
    /// One minus the error function, accurate where that is small.
    Real Erfc = "erfc" Float [ErfcBackward0](x) {
        x.erfc();
        x(g; x) { g * (x.lit(-FRAC_2_SQRT_PI) * (-(x.clone() * x)).exp()) }
    }

    // ------------------------------------------------------------------------------------------------------------ activations
    /// `1 / (1 + exp(-x))`.
    Real Sigmoid = "sigmoid" Float [SigmoidBackward0](x) also ["expit"] {
        x.sigmoid();
        x(g; y) { g * (y.lit(1.0) - y.clone()) * y }
    }
    /// `log(sigmoid(x))`.
    Real LogSigmoid = "logsigmoid" FloatOnly [LogSigmoidBackward0](x), no_in_place {
        x.clone().min(x.lit(0.0)) - (-x.abs()).exp().log1p();
        x(g; x) { g * (-x).sigmoid() }
    }
    /// The input where it is positive, else 0; the derivative at 0 is 0.
    Num Relu = "relu" NoBool [ReluBackward0](x) kinks [0.0] {
        x.clone().max(x.lit(0.0));
        x(g; y) { A::select(y.le(&y.lit(0.0)), g.lit(0.0), g) }
    }
    /// The input where it is positive, else the input times a slope.
    Real LeakyRelu = "leaky_relu" FloatOnly [LeakyReluBackward0](x; negative_slope = 0.1) kinks [0.0] {
        A::select(x.gt(&x.lit(0.0)), x.clone(), x * negative_slope);
        x(g; x) { A::select(x.gt(&x.lit(0.0)), g.clone(), g * negative_slope) }
    }
    /// `scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))`.
    Real Elu = "elu" FloatOnly [EluBackward0](x; alpha = 0.8, scale = 1.1, input_scale = 0.9) kinks [0.0] {
        A::select(
            x.le(&x.lit(0.0)),
            alpha * (x.clone().min(x.lit(0.0)) * input_scale).expm1() * scale.clone(),
            x * scale
        );
        x(g; x) {
            {
                let e = (x.clone().min(x.lit(0.0)) * input_scale.clone()).exp();
                A::select(x.gt(&x.lit(0.0)), g.clone() * scale.clone(), g * input_scale * scale * alpha * e)
            }
        }
    }
    /// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    Real Celu = "celu" FloatOnly [CeluBackward0](x; alpha = 0.8) kinks [0.0] {
        A::select(x.le(&x.lit(0.0)), alpha.clone() * x.clone().min(x.lit(0.0)).div(alpha).expm1(), x);
        x(g; x) {
            {
                let e = x.clone().min(x.lit(0.0)).div(alpha).exp();
                A::select(x.le(&x.lit(0.0)), g.clone() * e, g)
            }
        }
    }
    /// The input times the normal distribution function of the input.
    Real Gelu = "gelu" FloatOnly [GeluBackward0](x), no_in_place {
        x.clone() * x.lit(0.5) * (x.lit(-1.0 / SQRT_2) * x).erfc();
        x(g; x) {
            {
                // FRAC_2_SQRT_PI / (2 sqrt 2) is 1 / sqrt(2 pi), the height of the normal density.
                let density = (x.lit(-0.5) * (x.clone() * x.clone())).exp() * x.lit(FRAC_2_SQRT_PI / (2.0 * SQRT_2));
                g * (x.lit(0.5) * (x.lit(-1.0 / SQRT_2) * x.clone()).erfc() + x * density)
            }
        }
    }
    /// An approximation of gelu by tanh.
    Real GeluTanh = "gelu_tanh" FloatOnly [GeluBackward0](x), no_in_place {
        {
            let u = x.lit(FRAC_2_SQRT_PI / SQRT_2) * (x.clone() + x.lit(0.044715) * (x.clone() * x.clone() * x.clone()));
            x.clone() * x.lit(0.5) * (u.lit(1.0) + u.tanh())
        };
        x(g; x) {
            {
                let xx = x.clone() * x.clone();
                let u = x.lit(FRAC_2_SQRT_PI / SQRT_2) * (x.clone() + x.lit(0.044715) * (xx.clone() * x.clone()));
                let du = x.lit(FRAC_2_SQRT_PI / SQRT_2) * (x.lit(1.0) + x.lit(3.0 * 0.044715) * xx);
                let t = u.tanh();
                let rise = x.lit(0.5) * x.clone() * ((t.lit(1.0) - t.clone() * t.clone()) * du);
                g * (x.lit(0.5) * (t.lit(1.0) + t) + rise)
            }
        }
    }
    /// `x * sigmoid(x)`.
    Real Silu = "silu" FloatOnly [SiluBackward0](x) {
        x.clone() * x.sigmoid();
        x(g; x) {
            {
                let s = x.clone().sigmoid();
                g * (s.clone() * (x.lit(1.0) + x.clone() * (s.lit(1.0) - s)))
            }
        }
    }
    /// `x * tanh(softplus(x))`.
    Real Mish = "mish" FloatOnly [MishBackward0](x) {
        x.clone() * (x.clone().max(x.lit(0.0)) + (-x.abs()).exp().log1p()).tanh();
        x(g; x) {
            {
                let t = (x.clone().max(x.lit(0.0)) + (-x.clone().abs()).exp().log1p()).tanh();
                g * (t.clone() + x.clone() * x.sigmoid() * (t.lit(1.0) - t.clone() * t))
            }
        }
    }
    /// `log(1 + exp(beta * x)) / beta`, and the input itself where `beta * x` is above the threshold.
    Real Softplus = "softplus" FloatOnly [SoftplusBackward0](x; beta = 1.3, threshold = 20.0), no_in_place {
        {
            let z = x.clone() * beta.clone();
            let soft = (z.clone().max(z.lit(0.0)) + (-z.clone().abs()).exp().log1p()).div(beta);
            A::select(z.gt(&threshold), x, soft)
        };
        x(g; x) {
            {
                let z = x * beta;
                A::select(z.gt(&threshold), g.clone(), g * z.sigmoid())
            }
        }
    }
    /// The input kept between two numbers; the derivative at both is 0.
    Num Hardtanh = "hardtanh" NoBool [HardtanhBackward0](x; min_val = -1.5, max_val = 1.25) kinks [-1.5, 1.25] {
        x.max(min_val).min(max_val);
        x(g; x) { A::select(x.gt(&min_val).and(x.lt(&max_val)), g.clone(), g.lit(0.0)) }
    }
    /// `x * clamp(x + 3, 0, 6) / 6`.
    Real Hardswish = "hardswish" FloatOnly [HardswishBackward0](x in -5.0 to 5.0) kinks [-3.0, 3.0] {
        x.clone() * (x.clone() + x.lit(3.0)).max(x.lit(0.0)).min(x.lit(6.0)) * x.lit(1.0 / 6.0);
        x(g; x) {
            {
                let middle = g.clone() * (x.clone() * x.lit(1.0 / 3.0) + x.lit(0.5));
                A::select(x.le(&x.lit(-3.0)), g.lit(0.0), A::select(x.ge(&x.lit(3.0)), g, middle))
            }
        }
    }
    /// `clamp(x + 3, 0, 6) / 6`.
    Real Hardsigmoid = "hardsigmoid" FloatOnly [HardsigmoidBackward0](x in -5.0 to 5.0) kinks [-3.0, 3.0] {
        (x.clone() + x.lit(3.0)).max(x.lit(0.0)).min(x.lit(6.0)) * x.lit(1.0 / 6.0);
        x(g; x) { A::select(x.gt(&x.lit(-3.0)).and(x.lt(&x.lit(3.0))), g.clone() * g.lit(1.0 / 6.0), g.lit(0.0)) }
    }
    /// The input where it is above the threshold, else the value.
    Num Threshold = "threshold" NoBool [ThresholdBackward0](x; threshold = 0.4, value = 0.1) kinks [0.4] {
        A::select(x.le(&threshold), value, x);
        x(g; x) { A::select(x.le(&threshold), g.lit(0.0), g) }
    }
    /// The input moved towards 0 by `lambd`.
    Real Softshrink = "softshrink" FloatOnly [SoftshrinkBackward0](x; lambd = 0.5) kinks [-0.5, 0.5], no_in_place {
        A::select(
            x.gt(&lambd),
            x.clone() - lambd.clone(),
            A::select(x.lt(&-lambd.clone()), x.clone() + lambd.clone(), x * lambd.lit(0.0))
        );
        x(g; x) { A::select(x.lt(&-lambd.clone()).or(x.gt(&lambd)), g.clone(), g.lit(0.0)) }
    }
    /// The input, but 0 where its magnitude is not above `lambd`.
    Real Hardshrink = "hardshrink" FloatOnly [HardshrinkBackward0](x; lambd = 0.5) kinks [-0.5, 0.5], no_in_place {
        A::select(x.ge(&-lambd.clone()).and(x.le(&lambd)), x.lit(0.0), x);
        x(g; x) { A::select(x.lt(&-lambd.clone()).or(x.gt(&lambd)), g.clone(), g.lit(0.0)) }
    }

    // ----------------------------------------------------------------------------------------------------------------- losses
    /// The squared difference.
    Real MseLoss = "mse_loss" FloatOnly [MseLossBackward0](a, b), no_in_place {
        {
            let d = a - b;
            d.clone() * d
        };
        a(g; a, b) { g * (a.lit(2.0) * (a - b)) }
        b(g; a, b) { g * (a.lit(2.0) * (b - a)) }
    }
    /// `0.5 * d * d / beta` for a difference below `beta`, else `|d| - 0.5 * beta`.
    Real SmoothL1Loss = "smooth_l1_loss" FloatOnly [SmoothL1LossBackward0](a, b; beta = 1.7), no_in_place {
        {
            let d = (a - b).abs();
            let near = d.lt(&beta);
            let scale = A::select(beta.eq(&beta.lit(0.0)), beta.lit(1.0), beta.clone());
            A::select(near, d.lit(0.5) * d.clone() * d.clone().div(scale), d.clone() - d.lit(0.5) * beta)
        };
        a(g; a, b) {
            {
                let d = a - b;
                let scale = A::select(beta.eq(&beta.lit(0.0)), beta.lit(1.0), beta.clone());
                g * A::select(d.clone().abs().ge(&beta), d.clone().sign(), d.div(scale))
            }
        }
        b(g; a, b) {
            {
                let d = b - a;
                let scale = A::select(beta.eq(&beta.lit(0.0)), beta.lit(1.0), beta.clone());
                g * A::select(d.clone().abs().ge(&beta), d.clone().sign(), d.div(scale))
            }
        }
    }
    /// `0.5 * d * d` for a difference up to `delta`, else `delta * (|d| - 0.5 * delta)`.
    Real HuberLoss = "huber_loss" FloatOnly [HuberLossBackward0](a, b; delta = 1.7), no_in_place {
        {
            let d = (a - b).abs();
            let far = delta.clone() * (d.clone() - d.lit(0.5) * delta.clone());
            A::select(d.lt(&delta), d.lit(0.5) * d.clone() * d, far)
        };
        a(g; a, b) {
            {
                let d = a - b;
                g * d.clone().max(-delta.clone()).min(delta)
            }
        }
        b(g; a, b) {
            {
                let d = b - a;
                g * d.clone().max(-delta.clone()).min(delta)
            }
        }
    }
    /// The cross entropy of a probability `x` and a target `t`; logarithms are not taken below -100.
    Real BinaryCrossEntropy = "binary_cross_entropy" FloatOnly [BinaryCrossEntropyBackward0](x in 0.1 to 0.9, t in 0.0 to 1.0), no_in_place {
        (t.clone() - t.lit(1.0)) * (-x.clone()).log1p().max(x.lit(-100.0)) - t * x.clone().log().max(x.lit(-100.0));
        // The divisor is kept from 0 as PyTorch does it, by 1e-12.
        x(g; x, t) { g * (x.clone() - t).div(((x.lit(1.0) - x.clone()) * x.clone()).max(x.lit(1e-12))) }
        t(g; x) { g * ((-x.clone()).log1p().max(x.lit(-100.0)) - x.clone().log().max(x.lit(-100.0))) }
    }
    /// The cross entropy of `sigmoid(x)` and a target `t`.
    Real BceWithLogits = "binary_cross_entropy_with_logits" FloatOnly [BinaryCrossEntropyWithLogitsBackward0](x, t in 0.0 to 1.0), no_in_place {
        (t.lit(1.0) - t) * x.clone() + ((-x.clone().abs()).exp().log1p() - x.clone().min(x.lit(0.0)));
        x(g; x, t) { g * (x.sigmoid() - t) }
        t(g; x) { g * -x }
    }

    // ------------------------------------------------------------------------------------------------------------ comparisons
    /// Whether both inputs are equal.
    Cmp Eq = "eq" Compare [NoBackward](a, b) { a.eq(&b) }
    /// Whether the inputs differ (true where one is nan).
    Cmp Ne = "ne" Compare [NoBackward](a, b) also ["not_equal"] { a.ne(&b) }
    /// Whether the first input is less.
    Cmp Lt = "lt" Compare [NoBackward](a, b) also ["less"] { a.lt(&b) }
    /// Whether the first input is less or equal.
    Cmp Le = "le" Compare [NoBackward](a, b) also ["less_equal"] { a.le(&b) }
    /// Whether the first input is greater.
    Cmp Gt = "gt" Compare [NoBackward](a, b) also ["greater"] { a.gt(&b) }
    /// Whether the first input is greater or equal.
    Cmp Ge = "ge" Compare [NoBackward](a, b) also ["greater_equal"] { a.ge(&b) }
    /// Whether the input is nan.
    Cmp IsNan = "isnan" Compare [NoBackward](x), no_in_place { x.is_nan() }
    /// Whether the input is infinite.
    Cmp IsInf = "isinf" Compare [NoBackward](x), no_in_place { x.is_inf() }
    /// Whether the input is neither nan nor infinite.
    Cmp IsFinite = "isfinite" Compare [NoBackward](x), no_in_place { x.is_nan().or(x.is_inf()).not() }
    /// Whether the input is plus infinity.
    Cmp IsPosInf = "isposinf" Compare [NoBackward](x), no_in_place { x.is_inf().and(x.gt(&x.lit(0.0))) }
    /// Whether the input is minus infinity.
    Cmp IsNegInf = "isneginf" Compare [NoBackward](x), no_in_place { x.is_inf().and(x.lt(&x.lit(0.0))) }
    /// Whether both inputs are true (not zero).
    Cmp LogicalAnd = "logical_and" Logic [NoBackward](a, b) { a.truthy().and(b.truthy()) }
    /// Whether one of the inputs is true (not zero).
    Cmp LogicalOr = "logical_or" Logic [NoBackward](a, b) { a.truthy().or(b.truthy()) }
    /// Whether just one of the inputs is true (not zero).
    Cmp LogicalXor = "logical_xor" Logic [NoBackward](a, b) { a.truthy().xor(b.truthy()) }
    /// Whether the input is zero.
    Cmp LogicalNot = "logical_not" Logic [NoBackward](x) { x.truthy().not() }

    // ------------------------------------------------------------------------------------------------------------------- bits
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
}
