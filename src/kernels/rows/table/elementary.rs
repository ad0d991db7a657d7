//! Elementary functions.

macro_rules! elementary {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // ------------------------------------------------------------------------------------------------ exponentials, logarithms
    /// e to the power of the input.
    Analytic Exp = "exp" Float [ExpBackward0](x) { x.exp(); x(g; y) { g * y.conj() } }
    /// 2 to the power of the input.
    Analytic Exp2 = "exp2" Float [Exp2Backward0](x) { x.exp2(); x(g; y) { g * y.clone().conj() * y.lit(LN_2) } }
    /// e to the power of the input, minus 1, accurate near 0.
    Analytic Expm1 = "expm1" Float [Expm1Backward0](x) { x.expm1(); x(g; y) { g * (y.clone() + y.lit(1.0)).conj() } }
    /// The natural logarithm.
    Analytic Log = "log" Float [LogBackward0](x in 0.2 to 4.0) { x.log(); x(g; x) { g.div(x.conj()) } }
    /// The logarithm to base 2.
    Analytic Log2 = "log2" Float [Log2Backward0](x in 0.2 to 4.0) { x.log2(); x(g; x) { g.div((x.lit(LN_2) * x).conj()) } }
    /// The logarithm to base 10.
    Analytic Log10 = "log10" Float [Log10Backward0](x in 0.2 to 4.0) { x.log10(); x(g; x) { g.div((x.lit(LN_10) * x).conj()) } }
    /// The natural logarithm of 1 plus the input, accurate near 0.
    Analytic Log1p = "log1p" Float [Log1PBackward0](x in -0.7 to 3.0) { x.log1p(); x(g; x) { g.div((x.lit(1.0) + x).conj()) } }
    /// The logarithm of the sum of the exponentials of both inputs.
    Real Logaddexp = "logaddexp" FloatOnly [LogaddexpBackward0](a, b), no_in_place {
        {
            let d = A::select(a.eq(&b), a.lit(0.0), a.clone() - b.clone());
            a.max(b) + (-d.abs()).exp().log1p()
        };
        // Of two that are minus infinity neither moves the result; two other equal ones share the gradient.
        a(g; a, b) {
            {
                let low = A::select(a.eq(&a.lit(f64::NEG_INFINITY)), a.clone(), a.lit(0.0));
                g * A::select(a.eq(&b), low, a - b).sigmoid()
            }
        }
        b(g; a, b) {
            {
                let low = A::select(b.eq(&b.lit(f64::NEG_INFINITY)), b.clone(), b.lit(0.0));
                g * A::select(b.eq(&a), low, b - a).sigmoid()
            }
        }
    }
    /// `logaddexp` of complex numbers, whose larger one is that with the larger real part. As in PyTorch, two infinities that are equal are added as
    /// they are, and after nan all is nan.
    Analytic LogaddexpOfComplex = "logaddexp_of_complex" Float [LogaddexpBackward0](a, b), no_in_place, not_bound {
        {
            let below = a.clone().re().lt(&b.clone().re());
            let (top, low) = (A::select(below.clone(), b.clone(), a.clone()), A::select(below, a.clone(), b.clone()));
            let (high, edge) = (top.clone().re(), low.clone().re());
            let equal = high.is_inf().and(edge.eq(&high));
            let nothing = equal.clone().and(edge.lt(&edge.lit(0.0)));
            let sum = top.clone() + (low.clone() - top.clone()).exp().log1p();
            let infinite = A::select(nothing, low.clone(), (low.clone().exp() + top.clone().exp()).log());
            let (is_nan, nan) = (a.is_nan().or(b.is_nan()), a.lit(f64::NAN));
            A::select(is_nan, nan.clone() + nan.turned(), A::select(equal, infinite, sum))
        };
        a(g; a, b) { g.div((a.lit(1.0) + (b - a).exp()).conj()) }
        b(g; a, b) { g.div((a.lit(1.0) + (a - b).exp()).conj()) }
    }
    /// The logarithm to base 2 of the sum of 2 to the power of both inputs.
    Real Logaddexp2 = "logaddexp2" FloatOnly [Logaddexp2Backward0](a, b), no_in_place {
        {
            let d = A::select(a.eq(&b), a.lit(0.0), a.clone() - b.clone());
            let scale = d.lit(1.0 / LN_2);
            a.max(b) + (-d.abs()).exp2().log1p() * scale
        };
        a(g; a, b) {
            {
                let low = A::select(a.eq(&a.lit(f64::NEG_INFINITY)), a.clone(), a.lit(0.0));
                g * (A::select(a.eq(&b), low, a.clone() - b) * a.lit(LN_2)).sigmoid()
            }
        }
        b(g; a, b) {
            {
                let low = A::select(b.eq(&b.lit(f64::NEG_INFINITY)), b.clone(), b.lit(0.0));
                g * (A::select(b.eq(&a), low, b.clone() - a) * b.lit(LN_2)).sigmoid()
            }
        }
    }
    /// `a * log(b)`, and 0 where `a` is 0 and `b` is not nan.
    Real Xlogy = "xlogy" Float [XlogyBackward0, XlogyBackward2, XlogyBackward1](a, b in 0.2 to 3.0) {
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
        b(g; a, b) {
            {
                // 0 times the logarithm is 0 at 0 too.
                let flat = a.eq(&a.lit(0.0)).and(b.eq(&b.lit(0.0)));
                let slope = a.div(A::select(flat.clone(), b.lit(1.0), b));
                g * A::select(flat, slope.lit(0.0), slope)
            }
        }
    }
    /// The logarithm of the odds, `log(x / (1 - x))`, of the input kept in `eps..=1 - eps` unless `eps` is negative.
    Real Logit = "logit" Float [LogitBackward0](x in 0.1 to 0.9; eps = 0.2 default -1.0 shown "None") kinks [0.2, 0.8] {
        {
            let (free, top) = (eps.lt(&eps.lit(0.0)), eps.lit(1.0) - eps.clone());
            let kept = A::select(x.lt(&eps), eps, A::select(x.gt(&top), top, x.clone()));
            let p = A::select(free, x, kept);
            let odds = p.clone().div(p.lit(1.0) - p);
            odds.log()
        };
        x(g; x) {
            {
                // Outside of its range the gradient is 0; without a range nan.
                let free = eps.lt(&eps.lit(0.0));
                let low = A::select(free.clone(), x.lit(0.0), eps.clone());
                let outside = x.lt(&low).or(x.gt(&(x.lit(1.0) - low)));
                let d = x.clone() * (x.lit(1.0) - x);
                let cut = outside.clone().and(free.not());
                // Divisors are masked too, for the next order's sake.
                let inside = A::select(outside, d.lit(f64::NAN), d.clone());
                let slope = g.div(A::select(cut.clone(), d.lit(1.0), inside));
                A::select(cut, d.lit(0.0), slope)
            }
        }
    }

    // -------------------------------------------------------------------------------------------------- circles and hyperbolas
    /// The sine of an angle in radians.
    Analytic Sin = "sin" Float [SinBackward0](x), periodic { x.sin(); x(g; x) { g * x.cos().conj() } }
    /// The cosine of an angle in radians.
    Analytic Cos = "cos" Float [CosBackward0](x), periodic { x.cos(); x(g; x) { g * -x.sin().conj() } }
    /// The tangent of an angle in radians.
    Analytic Tan = "tan" Float [TanBackward0](x in -1.2 to 1.2), periodic {
        x.tan();
        x(g; y) { g * (y.lit(1.0) + y.clone() * y).conj() }
    }
    /// The angle, in radians, whose sine is the input.
    Analytic Asin = "asin" Float [AsinBackward0](x in -0.8 to 0.8) also ["arcsin"] {
        x.asin();
        x(g; x) { g.div((x.lit(1.0) - x.clone() * x).sqrt().conj()) }
    }
    /// The angle, in radians, whose cosine is the input.
    Analytic Acos = "acos" Float [AcosBackward0](x in -0.8 to 0.8) also ["arccos"] {
        x.acos();
        x(g; x) { -g.div((x.lit(1.0) - x.clone() * x).sqrt().conj()) }
    }
    /// The angle, in radians, whose tangent is the input.
    Analytic Atan = "atan" Float [AtanBackward0](x) also ["arctan"] {
        x.atan();
        x(g; x) { g.div((x.clone() * x.clone() + x.lit(1.0)).conj()) }
    }
    /// The angle, in radians, of the point with the ordinate `a` and the abscissa `b`.
    Real Atan2 = "atan2" Float [Atan2Backward0](a in 0.3 to 3.0, b) also ["arctan2"] {
        a.atan2(b);
        // Of the quotient of the smaller by the larger one: squares of both may be too large or too small for the type.
        a(g; a, b) {
            {
                let steep = b.clone().abs().lt(&a.clone().abs());
                let (low, top) = (A::select(steep.clone(), b.clone(), a.clone()), A::select(steep.clone(), a, b));
                let nowhere = top.eq(&top.lit(0.0));
                let top = A::select(nowhere.clone(), top.lit(1.0), top);
                let ratio = low.div(top.clone());
                let rise = A::select(steep, ratio.clone(), A::select(nowhere, top.lit(0.0), top.lit(1.0)));
                g * rise.div(top * (ratio.lit(1.0) + ratio.clone() * ratio))
            }
        }
        b(g; a, b) {
            {
                let steep = b.clone().abs().lt(&a.clone().abs());
                let (low, top) = (A::select(steep.clone(), b.clone(), a.clone()), A::select(steep.clone(), a, b));
                let nowhere = top.eq(&top.lit(0.0));
                let top = A::select(nowhere.clone(), top.lit(1.0), top);
                let ratio = low.div(top.clone());
                let rise = A::select(steep, top.lit(1.0), ratio.clone());
                g * -rise.div(top * (ratio.lit(1.0) + ratio.clone() * ratio))
            }
        }
    }
    /// An angle in degrees as one in radians.
    Real Deg2rad = "deg2rad" Float [Deg2RadBackward0](x) { x.clone() * x.lit(PI / 180.0); x(g) { g.clone() * g.lit(PI / 180.0) } }
    /// An angle in radians as one in degrees.
    Real Rad2deg = "rad2deg" Float [Rad2DegBackward0](x) { x.clone() * x.lit(180.0 / PI); x(g) { g.clone() * g.lit(180.0 / PI) } }
    /// The hyperbolic sine.
    Analytic Sinh = "sinh" Float [SinhBackward0](x) { x.sinh(); x(g; x) { g * x.cosh().conj() } }
    /// The hyperbolic cosine.
    Analytic Cosh = "cosh" Float [CoshBackward0](x) { x.cosh(); x(g; x) { g * x.sinh().conj() } }
    /// The hyperbolic tangent.
    Analytic Tanh = "tanh" Float [TanhBackward0](x) {
        x.tanh();
        x(g; y) { g * (y.lit(1.0) - y.clone() * y).conj() }
    }
    /// `tanh` in recorded derivatives, whose own derivatives keep their digits where it is nearly 1.
    Analytic TanhOf = "_tanh_of" Float [TanhBackward0](x), no_in_place, not_bound {
        x.tanh();
        x(g; x) {
            {
                let twice = x.lit(2.0) * x.clone();
                g * (x.lit(4.0) * (twice.clone().sigmoid() * (-twice).sigmoid())).conj()
            }
        }
    }
    /// The inverse of the hyperbolic sine.
    Analytic Asinh = "asinh" Float [AsinhBackward0](x) also ["arcsinh"] {
        x.asinh();
        x(g; x) { g.div((x.clone() * x.clone() + x.lit(1.0)).sqrt().conj()) }
    }
    /// The inverse of the hyperbolic cosine.
    Analytic Acosh = "acosh" Float [AcoshBackward0](x in 1.3 to 4.0) also ["arccosh"] {
        x.acosh();
        x(g; x) {
            // Two roots: of complex numbers the root of the product has another branch cut.
            g.div(((x.clone() - x.lit(1.0)).sqrt() * (x.clone() + x.lit(1.0)).sqrt()).conj())
        }
    }
    /// The inverse of the hyperbolic tangent.
    Analytic Atanh = "atanh" Float [AtanhBackward0](x in -0.8 to 0.8) also ["arctanh"] {
        x.atanh();
        x(g; x) { g.div((x.lit(1.0) - x.clone() * x).conj()) }
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

    ] $($rest)* } };
}
pub(super) use elementary;
