//! Special functions: rows whose values are computed in `simd/math/special`, and those that are a few operations.

macro_rules! special {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // ------------------------------------------------------------------------------------------------- the gamma function
    /// The logarithm of the magnitude of the gamma function, infinite at 0 and at the negative integers.
    Special Lgamma = "lgamma" Float [LgammaBackward0](x in 0.2 to 6.0) {
        A::special(RowId::Lgamma, &[x]);
        x(g; x) { g * A::special(RowId::Digamma, &[x]) }
    }
    /// The derivative of the logarithm of the gamma function, infinite at 0 and nan at the negative integers.
    Special Digamma = "digamma" Float [DigammaBackward0](x in 0.2 to 6.0) {
        A::special(RowId::Digamma, &[x]);
        x(g; x) { { let one = x.lit(1.0); g * A::special(RowId::PolygammaOf, &[one, x]) } }
    }
    /// The derivative of `digamma` of the order `n`, which has no derivative.
    Special PolygammaOf = "_polygamma_of" Float [PolygammaBackward0](n as "n" in 1.0 to 4.0, x as "self" in 0.4 to 6.0), no_in_place, function_only, refuses {
        A::special(RowId::PolygammaOf, &[n, x]);
        x(g; n, x) { { let next = n.clone() + n.lit(1.0); g * A::special(RowId::PolygammaOf, &[next, x]) } }
    }
    /// Hurwitz's zeta function, the sum of `(other + k) ** -input` over `k` from 0; there is a gradient for `other` alone.
    Special Zeta = "special_zeta" Float [SpecialZetaBackward0](s as "self" in 1.5 to 6.0, q as "other" in 0.4 to 5.0), no_in_place, function_only, refuses {
        A::special(RowId::Zeta, &[s, q]);
        q(g; s, q) { { let next = s.clone() + s.lit(1.0); g * -s * A::special(RowId::Zeta, &[next, q]) } }
    }
    /// The lower incomplete gamma function of `input` at `other`, divided by the gamma function.
    Special Igamma = "igamma" Float [IgammaBackward0](a as "self" in 0.3 to 5.0, x as "other" in 0.3 to 6.0) {
        A::special(RowId::Igamma, &[a, x]);
        a(g; a, x) {
            {
                // At both ends the density, or the slope, is infinite, and their product 0.
                let end = x.eq(&x.lit(0.0)).or(x.is_inf());
                let inside = A::select(end.clone(), x.lit(1.0), x);
                let product = A::special(RowId::GammaDensity, &[a.clone(), inside.clone()]) * A::special(RowId::StandardGammaGrad, &[a, inside]);
                -(g * A::select(end, product.lit(0.0), product))
            }
        }
        x(g; a, x) { g * A::special(RowId::GammaDensity, &[a, x]) }
    }
    /// The upper incomplete gamma function of `input` at `other`, divided by the gamma function.
    Special Igammac = "igammac" Float [IgammacBackward0](a as "self" in 0.3 to 5.0, x as "other" in 0.3 to 6.0) {
        A::special(RowId::Igammac, &[a, x]);
        a(g; a, x) {
            {
                let end = x.eq(&x.lit(0.0)).or(x.is_inf());
                let inside = A::select(end.clone(), x.lit(1.0), x);
                let product = A::special(RowId::GammaDensity, &[a.clone(), inside.clone()]) * A::special(RowId::StandardGammaGrad, &[a, inside]);
                g * A::select(end, product.lit(0.0), product)
            }
        }
        x(g; a, x) { -(g * A::special(RowId::GammaDensity, &[a, x])) }
    }
    /// `exp(-x) * x ** (a - 1) / gamma(a)`, the density of the gamma distribution.
    Special GammaDensity = "_gamma_density" FloatOnly [GammaDensityBackward0](a in 0.3 to 5.0, x in 0.3 to 6.0), no_in_place, function_only {
        A::special(RowId::GammaDensity, &[a, x]);
        a(g; a, x, y) { g * y * (x.log() - A::special(RowId::Digamma, &[a])) }
        x(g; a, x, y) { { let one = a.lit(1.0); g * y * ((a - one.clone()).div(x) - one) } }
    }
    /// How a sample `output` of the gamma distribution moves with its parameter `input` at a constant probability.
    Special StandardGammaGrad = "_standard_gamma_grad" FloatOnly [StandardGammaGradBackward0](
        a as "self" in 0.3 to 5.0, x as "output" in 0.3 to 6.0
    ), no_in_place, function_only, refuses {
        A::special(RowId::StandardGammaGrad, &[a, x]);
        // The density times this is -dP / da, whose derivative by x is that of the density by a.
        x(g; a, x, y) {
            {
                let one = a.lit(1.0);
                let decay = (a.clone() - one.clone()).div(x.clone()) - one;
                g * (A::special(RowId::Digamma, &[a]) - x.log() - y * decay)
            }
        }
    }
    /// How a component `input` of a sample of Dirichlet's distribution moves with its parameter `alpha` at a constant probability, over one minus
    /// itself; `total` is the sum of all parameters.
    Special DirichletGrad = "_dirichlet_grad" FloatOnly [DirichletGradBackward0](
        x as "self" in 0.1 to 0.9, a as "alpha" in 0.3 to 3.0, total as "total" in 4.0 to 6.0
    ), no_in_place, function_only, refuses {
        A::special(RowId::DirichletGrad, &[x, a, total])
    }

    // --------------------------------------------------------------------------------------------- the normal distribution
    /// The inverse of the error function, infinite at -1 and 1 and nan outside.
    Special Erfinv = "erfinv" Float [ErfinvBackward0](x in -0.9 to 0.9) {
        A::special(RowId::Erfinv, &[x]);
        x(g; x) { { let y = A::special(RowId::Erfinv, &[x]); g * (y.lit(1.0 / FRAC_2_SQRT_PI) * (y.clone() * y).exp()) } }
    }
    /// The inverse of `special.ndtr`, infinite at 0 and 1 and nan outside.
    Special Ndtri = "special_ndtri" Float [SpecialNdtriBackward0](x in 0.1 to 0.9), no_in_place, function_only {
        A::special(RowId::Ndtri, &[x]);
        x(g; y) { g * (y.lit(2.0 * SQRT_2 / FRAC_2_SQRT_PI) * (y.lit(0.5) * y.clone() * y).exp()) }
    }
    /// `exp(x ** 2) * erfc(x)`, which neither overflows nor vanishes for large elements.
    Special Erfcx = "special_erfcx" Float [SpecialErfcxBackward0](x), no_in_place, function_only {
        A::special(RowId::Erfcx, &[x]);
        x(g; x, y) { g * (x.lit(2.0) * x.clone() * y - x.lit(FRAC_2_SQRT_PI)) }
    }
    /// The logarithm of `special.ndtr`, accurate where that vanishes.
    Special LogNdtr = "special_log_ndtr" Float [SpecialLogNdtrBackward0](x), no_in_place, function_only {
        A::special(RowId::LogNdtr, &[x]);
        x(g; x) { { let t = x.lit(-FRAC_1_SQRT_2) * x; g * t.lit(FRAC_2_SQRT_PI * FRAC_1_SQRT_2).div(A::special(RowId::Erfcx, &[t])) } }
    }
    /// The area under the normal density up to each element.
    Real Ndtr = "special_ndtr" Float [SpecialNdtrBackward0](x), no_in_place, function_only {
        x.normal_cdf();
        x(g; x) { g * (x.lit(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2) * (x.lit(-0.5) * x.clone() * x).exp()) }
    }

    // -------------------------------------------------------------------------------------------------- Bessel's functions
    /// The modified Bessel function of the first kind of order 0.
    Special BesselI0 = "i0" Float [I0Backward0](x) {
        A::special(RowId::BesselI0, &[x]);
        x(g; x) { g * A::special(RowId::BesselI1, &[x]) }
    }
    /// `i0` times `exp(-abs(input))`.
    Special BesselI0e = "special_i0e" Float [SpecialI0EBackward0](x), no_in_place, function_only {
        A::special(RowId::BesselI0e, &[x]);
        x(g; x, y) { g * (A::special(RowId::BesselI1e, from_ref(&x)) - x.sign() * y) }
    }
    /// The modified Bessel function of the first kind of order 1.
    Special BesselI1 = "special_i1" Float [SpecialI1Backward0](x), no_in_place, function_only {
        A::special(RowId::BesselI1, &[x]);
        x(g; x, y) {
            {
                let zero = x.eq(&x.lit(0.0));
                let over = A::select(zero.clone(), y.lit(0.5), y.div(A::select(zero, x.lit(1.0), x.clone())));
                g * (A::special(RowId::BesselI0, &[x]) - over)
            }
        }
    }
    /// `special.i1` times `exp(-abs(input))`.
    Special BesselI1e = "special_i1e" Float [SpecialI1EBackward0](x), no_in_place, function_only {
        A::special(RowId::BesselI1e, &[x]);
        x(g; x, y) {
            {
                let zero = x.eq(&x.lit(0.0));
                let over = A::select(zero.clone(), y.lit(0.5), y.clone().div(A::select(zero, x.lit(1.0), x.clone())));
                g * (A::special(RowId::BesselI0e, from_ref(&x)) - x.sign() * y - over)
            }
        }
    }
    /// The Bessel function of the first kind of order 0, zero at infinity.
    Special BesselJ0 = "special_bessel_j0" Float [SpecialBesselJ0Backward0](x), no_in_place, function_only {
        A::special(RowId::BesselJ0, &[x]);
        x(g; x) { -(g * A::special(RowId::BesselJ1, &[x])) }
    }
    /// The Bessel function of the first kind of order 1, zero at infinity.
    Special BesselJ1 = "special_bessel_j1" Float [SpecialBesselJ1Backward0](x), no_in_place, function_only {
        A::special(RowId::BesselJ1, &[x]);
        x(g; x, y) {
            {
                let zero = x.eq(&x.lit(0.0));
                let over = A::select(zero.clone(), y.lit(0.5), y.div(A::select(zero, x.lit(1.0), x.clone())));
                g * (A::special(RowId::BesselJ0, &[x]) - over)
            }
        }
    }
    /// The Bessel function of the second kind of order 0: minus infinity at 0, nan below.
    Special BesselY0 = "special_bessel_y0" Float [SpecialBesselY0Backward0](x in 0.4 to 6.0), no_in_place, function_only {
        A::special(RowId::BesselY0, &[x]);
        x(g; x) { -(g * A::special(RowId::BesselY1, &[x])) }
    }
    /// The Bessel function of the second kind of order 1: minus infinity at 0, nan below.
    Special BesselY1 = "special_bessel_y1" Float [SpecialBesselY1Backward0](x in 0.4 to 6.0), no_in_place, function_only {
        A::special(RowId::BesselY1, &[x]);
        x(g; x, y) { g * (A::special(RowId::BesselY0, from_ref(&x)) - y.div(x)) }
    }
    /// The modified Bessel function of the second kind of order 0: infinite at 0, nan below.
    Special BesselK0 = "special_modified_bessel_k0" Float [SpecialModifiedBesselK0Backward0](x in 0.4 to 6.0), no_in_place, function_only {
        A::special(RowId::BesselK0, &[x]);
        x(g; x) { -(g * A::special(RowId::BesselK1, &[x])) }
    }
    /// The modified Bessel function of the second kind of order 1: infinite at 0, nan below.
    Special BesselK1 = "special_modified_bessel_k1" Float [SpecialModifiedBesselK1Backward0](x in 0.4 to 6.0), no_in_place, function_only {
        A::special(RowId::BesselK1, &[x]);
        x(g; x, y) { -(g * (A::special(RowId::BesselK0, from_ref(&x)) + y.div(x))) }
    }
    /// `special.modified_bessel_k0` times `exp(input)`.
    Special BesselK0e = "special_scaled_modified_bessel_k0" Float [SpecialScaledModifiedBesselK0Backward0](x in 0.4 to 6.0),
    no_in_place, function_only {
        A::special(RowId::BesselK0e, &[x]);
        x(g; x, y) { g * (y - A::special(RowId::BesselK1e, &[x])) }
    }
    /// `special.modified_bessel_k1` times `exp(input)`.
    Special BesselK1e = "special_scaled_modified_bessel_k1" Float [SpecialScaledModifiedBesselK1Backward0](x in 0.4 to 6.0),
    no_in_place, function_only {
        A::special(RowId::BesselK1e, &[x]);
        x(g; x, y) { g * (y.clone() - A::special(RowId::BesselK0e, from_ref(&x)) - y.div(x)) }
    }

    /// The spherical Bessel function of the first kind of order 0, `sin(input) / input`.
    Special SphericalBesselJ0 = "special_spherical_bessel_j0" Float [SpecialSphericalBesselJ0Backward0](x), no_in_place, function_only {
        A::special(RowId::SphericalBesselJ0, &[x]);
        x(g; x) { -(g * A::special(RowId::SphericalBesselJ1, &[x])) }
    }
    /// The spherical Bessel function of the first kind of order 1.
    Special SphericalBesselJ1 = "_spherical_bessel_j1" FloatOnly [SphericalBesselJ1Backward0](x), no_in_place, function_only {
        A::special(RowId::SphericalBesselJ1, &[x]);
        x(g; x, y) {
            {
                let zero = x.eq(&x.lit(0.0));
                let over = A::select(zero.clone(), y.lit(1.0 / 3.0), y.div(A::select(zero, x.lit(1.0), x.clone())));
                g * (A::special(RowId::SphericalBesselJ0, from_ref(&x)) - over.clone() - over)
            }
        }
    }
    /// Airy's function Ai.
    Special AiryAi = "special_airy_ai" Float [SpecialAiryAiBackward0](x), no_in_place, function_only {
        A::special(RowId::AiryAi, &[x]);
        x(g; x) { g * A::special(RowId::AiryAiPrime, &[x]) }
    }
    /// The derivative of Airy's function Ai.
    Special AiryAiPrime = "_airy_ai_prime" FloatOnly [AiryAiPrimeBackward0](x), no_in_place, function_only {
        A::special(RowId::AiryAiPrime, &[x]);
        x(g; x) { g * x.clone() * A::special(RowId::AiryAi, &[x]) }
    }

    // ----------------------------------------------------------------------------------------------- orthogonal polynomials
    /// Chebyshev's polynomial of the first kind of degree `n`, and 0 for negative degrees.
    Special ChebyshevT = "special_chebyshev_polynomial_t" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::ChebyshevT, &[x, n])
    }
    /// Chebyshev's polynomial of the second kind of degree `n`, and 0 for negative degrees.
    Special ChebyshevU = "special_chebyshev_polynomial_u" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::ChebyshevU, &[x, n])
    }
    /// Chebyshev's polynomial of the third kind of degree `n`, and 0 for negative degrees.
    Special ChebyshevV = "special_chebyshev_polynomial_v" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::ChebyshevV, &[x, n])
    }
    /// Chebyshev's polynomial of the fourth kind of degree `n`, and 0 for negative degrees.
    Special ChebyshevW = "special_chebyshev_polynomial_w" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::ChebyshevW, &[x, n])
    }
    /// Chebyshev's polynomial of the first kind at `2 * input - 1`.
    Special ShiftedChebyshevT = "special_shifted_chebyshev_polynomial_t" Float [NotImplemented](x in 0.0 to 1.0, n as "n" in 3.0 to 7.0),
    no_in_place, function_only {
        A::special(RowId::ShiftedChebyshevT, &[x, n])
    }
    /// Chebyshev's polynomial of the second kind at `2 * input - 1`.
    Special ShiftedChebyshevU = "special_shifted_chebyshev_polynomial_u" Float [NotImplemented](x in 0.0 to 1.0, n as "n" in 3.0 to 7.0),
    no_in_place, function_only {
        A::special(RowId::ShiftedChebyshevU, &[x, n])
    }
    /// Chebyshev's polynomial of the third kind at `2 * input - 1`.
    Special ShiftedChebyshevV = "special_shifted_chebyshev_polynomial_v" Float [NotImplemented](x in 0.0 to 1.0, n as "n" in 3.0 to 7.0),
    no_in_place, function_only {
        A::special(RowId::ShiftedChebyshevV, &[x, n])
    }
    /// Chebyshev's polynomial of the fourth kind at `2 * input - 1`.
    Special ShiftedChebyshevW = "special_shifted_chebyshev_polynomial_w" Float [NotImplemented](x in 0.0 to 1.0, n as "n" in 3.0 to 7.0),
    no_in_place, function_only {
        A::special(RowId::ShiftedChebyshevW, &[x, n])
    }
    /// The physicists' Hermite polynomial of degree `n`, and 0 for negative degrees.
    Special HermiteH = "special_hermite_polynomial_h" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::HermiteH, &[x, n])
    }
    /// The probabilists' Hermite polynomial of degree `n`, and 0 for negative degrees.
    Special HermiteHe = "special_hermite_polynomial_he" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::HermiteHe, &[x, n])
    }
    /// Laguerre's polynomial of degree `n`, and 0 for negative degrees.
    Special LaguerreL = "special_laguerre_polynomial_l" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::LaguerreL, &[x, n])
    }
    /// Legendre's polynomial of degree `n`, and 0 for negative degrees.
    Special LegendreP = "special_legendre_polynomial_p" Float [NotImplemented](x in -1.0 to 1.0, n as "n" in 3.0 to 7.0), no_in_place, function_only {
        A::special(RowId::LegendreP, &[x, n])
    }

    // --------------------------------------------------------------------------------------------------------- a few operations
    /// `-x * log(x)`: 0 at 0, minus infinity below.
    Real Entr = "special_entr" Float [SpecialEntrBackward0](x in 0.2 to 3.0), no_in_place, function_only {
        {
            let (zero, negative) = (x.eq(&x.lit(0.0)), x.lt(&x.lit(0.0)));
            let inside = A::select(zero.clone(), x.lit(1.0), x.clone());
            let made = A::select(zero, x.lit(0.0), -x.clone() * inside.log());
            A::select(negative, x.lit(f64::NEG_INFINITY), made)
        };
        x(g; x) { g * (-x.clone().log() - x.lit(1.0)) }
    }
    /// `a * log1p(b)`, and 0 where `a` is 0 and `b` is not nan.
    Real Xlog1py = "special_xlog1py" Float [SpecialXlog1PyBackward0, SpecialXlog1PyBackward2, SpecialXlog1PyBackward1](
        a, b in -0.7 to 3.0
    ), no_in_place, function_only {
        {
            let zero = a.eq(&a.lit(0.0)).and(b.is_nan().not());
            a * A::select(zero, b.lit(0.0), b).log1p()
        };
        a(g; a, b) {
            {
                let flat = a.eq(&a.lit(0.0)).and(b.le(&b.lit(-1.0)));
                g * A::select(flat, b.lit(0.0), b).log1p()
            }
        }
        b(g; a, b) {
            {
                let below = b.lit(1.0) + b;
                let flat = a.eq(&a.lit(0.0)).and(below.eq(&below.lit(0.0)));
                let slope = a.div(A::select(flat.clone(), below.lit(1.0), below));
                g * A::select(flat, slope.lit(0.0), slope)
            }
        }
    }

    /// `sin(pi * x) / (pi * x)`, and 1 at 0, of real numbers.
    Special Sinc = "_sinc" Float [SincBackward0](x), no_in_place, function_only {
        A::special(RowId::Sinc, &[x]);
        x(g; x) {
            {
                // Near 0 the difference cancels; its series is that of sin and cos.
                let near = x.clone().abs().lt(&x.lit(0.02));
                let far = A::select(near.clone(), x.lit(1.0), x.clone());
                let away = ((far.lit(PI) * far.clone()).cos() - A::special(RowId::Sinc, from_ref(&far))).div(far);
                let t = A::select(near.clone(), x.clone(), x.lit(0.0)) * x.lit(PI);
                let square = t.clone() * t.clone();
                let tail = t.lit(1.0 / 840.0) - square.clone() * t.lit(1.0 / 45360.0);
                let close = t.lit(1.0 / 3.0) - square.clone() * (t.lit(1.0 / 30.0) - square * tail);
                g * A::select(near, t.lit(-PI) * t * close, away)
            }
        }
    }
    /// 0 below 0, 1 above, and an element of `values` at 0.
    Num Heaviside = "_heaviside" Any [NotImplemented](x as "self", values as "values"), no_in_place, function_only, refuses {
        A::select(x.eq(&x.lit(0.0)), values, A::select(x.gt(&x.lit(0.0)), x.lit(1.0), x.lit(0.0)))
    }
    /// The next float from `input` towards `other`, of float32 and float64.
    Special Nextafter = "_nextafter" FloatOnly [NextafterBackward0](a, b), no_in_place, function_only {
        A::special(RowId::Nextafter, &[a, b]);
        a(g; a, b) { A::select(a.eq(&b), g.lit(0.0), g) }
    }
    /// The float of magnitude from 0.5 to 1 that, times a power of 2, is the input.
    Special FrexpMantissa = "_frexp_mantissa" FloatOnly [FrexpBackward0](x in 0.6 to 0.9), no_in_place, function_only {
        A::special(RowId::FrexpMantissa, &[x]);
        x(g; x) { g * (-A::special(RowId::FrexpExponent, &[x])).exp2() }
    }
    /// The exponent of that power, as a float.
    Special FrexpExponent = "_frexp_exponent" FloatOnly [NotImplemented](x in 0.6 to 0.9), no_in_place, function_only {
        A::special(RowId::FrexpExponent, &[x])
    }

    ] $($rest)* } };
}
pub(super) use special;
