//! Activations of neural networks, and losses before they are reduced.

macro_rules! activations {
    ([$($before:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($before)*

    // ------------------------------------------------------------------------------------------------------------- activations
    /// `1 / (1 + exp(-x))`.
    Analytic Sigmoid = "sigmoid" Float [SigmoidBackward0](x) also ["expit"] {
        x.sigmoid();
        x(g; y) { g * (y.lit(1.0) - y.clone()).conj() * y.conj() }
    }
    /// `sigmoid` in recorded derivatives, whose own derivatives keep their digits where it is nearly 1: they read the input.
    Analytic SigmoidOf = "_sigmoid_of" Float [SigmoidBackward0](x), no_in_place, not_bound {
        x.sigmoid();
        x(g; x, y) { g * ((-x).sigmoid() * y).conj() }
    }
    /// `log(sigmoid(x))`.
    Real LogSigmoid = "logsigmoid" FloatOnly [LogSigmoidBackward0](x), no_in_place {
        x.clone().min(x.lit(0.0)) - (-x.abs()).exp().log1p();
        x(g; x) { g * (-x).sigmoid() }
    }
    /// The input where it is positive, else 0; the derivative at 0 is 0.
    Num Relu = "relu" NoBool [ReluBackward0](x) kinks [0.0], zero_second {
        x.clone().max(x.lit(0.0));
        x(g; y) { A::select(y.le(&y.lit(0.0)), g.lit(0.0), g) }
    }
    /// The input where it is positive, else the input times a slope.
    Real LeakyRelu = "leaky_relu" FloatOnly [LeakyReluBackward0](x; negative_slope = 0.1 default 0.01) kinks [0.0], zero_second {
        A::select(x.gt(&x.lit(0.0)), x.clone(), x * negative_slope);
        x(g; x) { A::select(x.gt(&x.lit(0.0)), g.clone(), g * negative_slope) }
    }
    /// The input where it is positive, else the input times a weight.
    Real Prelu = "prelu" FloatOnly [PreluKernelBackward0](x, w as "weight") kinks [0.0], no_in_place, not_bound, zero_second {
        A::select(x.gt(&x.lit(0.0)), x.clone(), w * x);
        x(g; x, w) { A::select(x.gt(&x.lit(0.0)), g.clone(), w * g) }
        w(g; x) { A::select(x.gt(&x.lit(0.0)), g.lit(0.0), x * g) }
    }
    /// `scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))`.
    Real Elu = "elu" FloatOnly [EluBackward0](x; alpha = 0.8 default 1.0, scale = 1.1 default 1.0, input_scale = 0.9 default 1.0) kinks [0.0] {
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
    Real Celu = "celu" FloatOnly [CeluBackward0](x; alpha = 0.8 default 1.0) kinks [0.0] {
        A::select(x.le(&x.lit(0.0)), alpha.clone() * x.clone().min(x.lit(0.0)).div(alpha).expm1(), x);
        x(g; x) {
            {
                let e = x.clone().min(x.lit(0.0)).div(alpha).exp();
                A::select(x.le(&x.lit(0.0)), g.clone() * e, g)
            }
        }
    }
    /// The input times the normal distribution function of the input.
    Real Gelu = "gelu" FloatOnly [GeluBackward0](x) attributes [approximate = Word("none")], no_in_place, not_bound {
        x.clone() * x.normal_cdf();
        x(g; x) {
            {
                // FRAC_2_SQRT_PI / (2 sqrt 2) is 1 / sqrt(2 pi), the height of the normal density.
                let density = (x.lit(-0.5) * (x.clone() * x.clone())).exp() * x.lit(FRAC_2_SQRT_PI / (2.0 * SQRT_2));
                g * (x.clone().normal_cdf() + x * density)
            }
        }
    }
    /// An approximation of gelu by tanh.
    // `(1 + tanh(u)) / 2` is the sigmoid of `2 * u`, which does not cancel where x is small.
    Real GeluTanh = "gelu_tanh" FloatOnly [GeluBackward0](x) attributes [approximate = Word("tanh")], no_in_place, not_bound {
        {
            let u = x.lit(2.0 * FRAC_2_SQRT_PI / SQRT_2) * (x.clone() + x.lit(0.044715) * (x.clone() * x.clone() * x.clone()));
            x * u.sigmoid()
        };
        x(g; x) {
            {
                let xx = x.clone() * x.clone();
                let u = x.lit(2.0 * FRAC_2_SQRT_PI / SQRT_2) * (x.clone() + x.lit(0.044715) * (xx.clone() * x.clone()));
                let du = x.lit(2.0 * FRAC_2_SQRT_PI / SQRT_2) * (x.lit(1.0) + x.lit(3.0 * 0.044715) * xx);
                let s = u.clone().sigmoid();
                let rest = if u.is_exact() { (-u).sigmoid() } else { s.lit(1.0) - s.clone() };
                let rise = x.clone() * (s.clone() * rest * du);
                g * (s + rise)
            }
        }
    }
    /// `x * sigmoid(x)`.
    Analytic Silu = "silu" FloatOnly [SiluBackward0](x) {
        x.clone() * x.sigmoid();
        x(g; x) {
            {
                let s = x.clone().sigmoid();
                let rest = if x.is_exact() { (-x.clone()).sigmoid() } else { s.lit(1.0) - s.clone() };
                g * (s * (x.lit(1.0) + x * rest)).conj()
            }
        }
    }
    /// `x * tanh(softplus(x))`.
    Real Mish = "mish" FloatOnly [MishBackward0](x) {
        x.clone() * (x.clone().max(x.lit(0.0)) + (-x.abs()).exp().log1p()).tanh();
        x(g; x) {
            {
                let t = (x.clone().max(x.lit(0.0)) + (-x.clone().abs()).exp().log1p()).tanh();
                let slope = if x.is_exact() {
                    // The square of the hyperbolic secant of softplus.
                    let q = (-x.clone()).sigmoid();
                    let ratio = q.clone().div(q.lit(1.0) + q.clone() * q);
                    ratio.lit(4.0) * (ratio.clone() * ratio)
                } else {
                    t.lit(1.0) - t.clone() * t.clone()
                };
                g * (t + x.clone() * x.sigmoid() * slope)
            }
        }
    }
    /// `log(1 + exp(beta * x)) / beta`, and the input itself where `beta * x` is above the threshold.
    Real Softplus = "softplus" FloatOnly [SoftplusBackward0](x; beta = 1.3 default 1.0, threshold = 20.0 default 20.0), no_in_place {
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
    Num Hardtanh = "hardtanh" NoBool [HardtanhBackward0](x; min_val = -1.5 default -1.0, max_val = 1.25 default 1.0) kinks [-1.5, 1.25], zero_second {
        x.max(min_val).min(max_val);
        x(g; x) { A::select(x.le(&min_val).or(x.ge(&max_val)), g.lit(0.0), g.clone()) }
    }
    /// `x * clamp(x + 3, 0, 6) / 6`.
    Real Hardswish = "hardswish" FloatOnly [HardswishBackward0](x in -5.0 to 5.0) kinks [-3.0, 3.0] {
        x.clone() * ((x.clone() + x.lit(3.0)).max(x.lit(0.0)).min(x.lit(6.0)) * x.lit(1.0 / 6.0));
        x(g; x) {
            {
                let middle = g.clone() * (x.clone() * x.lit(1.0 / 3.0) + x.lit(0.5));
                A::select(x.le(&x.lit(-3.0)), g.lit(0.0), A::select(x.ge(&x.lit(3.0)), g, middle))
            }
        }
    }
    /// `clamp(x + 3, 0, 6) / 6`.
    Real Hardsigmoid = "hardsigmoid" FloatOnly [HardsigmoidBackward0](x in -5.0 to 5.0) kinks [-3.0, 3.0], zero_second {
        (x.clone() + x.lit(3.0)).max(x.lit(0.0)).min(x.lit(6.0)) * x.lit(1.0 / 6.0);
        x(g; x) { A::select(x.gt(&x.lit(-3.0)).and(x.lt(&x.lit(3.0))), g.clone() * g.lit(1.0 / 6.0), g.lit(0.0)) }
    }
    /// The input where it is above the threshold, else the value.
    Num Threshold = "threshold" NoBool [ThresholdBackward0](x; threshold = 0.4, value = 0.1) kinks [0.4] hides ["value"], zero_second {
        A::select(x.le(&threshold), value, x);
        x(g; x) { A::select(x.le(&threshold), g.lit(0.0), g) }
    }
    /// The input moved towards 0 by `lambd`.
    Real Softshrink = "softshrink" FloatOnly [SoftshrinkBackward0](x; lambd = 0.5 default 0.5) kinks [-0.5, 0.5], no_in_place, zero_second {
        A::select(
            x.gt(&lambd),
            x.clone() - lambd.clone(),
            A::select(x.lt(&-lambd.clone()), x.clone() + lambd.clone(), x * lambd.lit(0.0))
        );
        x(g; x) { A::select(x.lt(&-lambd.clone()).or(x.gt(&lambd)), g.clone(), g.lit(0.0)) }
    }
    /// The input, but 0 where its magnitude is not above `lambd`.
    Real Hardshrink = "hardshrink" FloatOnly [HardshrinkBackward0](x; lambd = 0.5 default 0.5) kinks [-0.5, 0.5], no_in_place, zero_second {
        A::select(x.ge(&-lambd.clone()).and(x.le(&lambd)), x.lit(0.0), x);
        x(g; x) { A::select(x.lt(&-lambd.clone()).or(x.gt(&lambd)), g.clone(), g.lit(0.0)) }
    }

    // ------------------------------------------------------------------------------------------------------------------ losses
    /// The squared difference.
    Real MseLoss = "mse_loss" FloatOnly [MseLossBackward0](a, b as "target") attributes [reduction = Whole(0)], no_in_place, not_bound {
        {
            let d = a - b;
            d.clone() * d
        };
        a(g; a, b) { g.clone() * g.lit(2.0) * (a - b) }
        b(g; a, b) { g.clone() * g.lit(2.0) * (b - a) }
    }
    /// `0.5 * d * d / beta` for a difference below `beta`, else `|d| - 0.5 * beta`.
    Real SmoothL1Loss = "smooth_l1_loss" FloatOnly [SmoothL1LossBackward0](a, b as "target"; beta = 1.7) attributes [reduction = Whole(0)], no_in_place, not_bound {
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
    Real HuberLoss = "huber_loss" FloatOnly [HuberLossBackward0](a, b as "target"; delta = 1.7) attributes [reduction = Whole(0)], no_in_place, not_bound {
        {
            let d = (a - b).abs();
            let far = delta.clone() * (d.clone() - d.lit(0.5) * delta.clone());
            A::select(d.lt(&delta), d.lit(0.5) * d.clone() * d, far)
        };
        a(g; a, b) {
            {
                let d = a - b;
                g * A::select(d.clone().abs().ge(&delta), d.clone().sign() * delta, d)
            }
        }
        b(g; a, b) {
            {
                let d = b - a;
                g * A::select(d.clone().abs().ge(&delta), d.clone().sign() * delta, d)
            }
        }
    }
    /// The cross entropy of a probability `x` and a target `t`; logarithms are not taken below -100.
    Real BinaryCrossEntropy = "binary_cross_entropy" FloatOnly [BinaryCrossEntropyBackward0](x in 0.1 to 0.9, t as "target" in 0.0 to 1.0)
        attributes [reduction = Whole(0), weight = Nothing], no_in_place, not_bound {
        (t.clone() - t.lit(1.0)) * (-x.clone()).log1p().max(x.lit(-100.0)) - t * x.clone().log().max(x.lit(-100.0));
        // The divisor is kept from 0 as PyTorch does it, by 1e-12.
        x(g; x, t) { g * (x.clone() - t).div(((x.lit(1.0) - x.clone()) * x.clone()).max(x.lit(1e-12))) }
        t(g; x) { g * ((-x.clone()).log1p().max(x.lit(-100.0)) - x.clone().log().max(x.lit(-100.0))) }
    }
    /// The cross entropy of `sigmoid(x)` and a target `t`.
    Real BceWithLogits = "binary_cross_entropy_with_logits" FloatOnly [BinaryCrossEntropyWithLogitsBackward0](x, t as "target" in 0.0 to 1.0)
        attributes [reduction = Whole(0), weight = Nothing, pos_weight = Nothing], no_in_place, not_bound {
        {
            // A logit that is infinite has an infinite loss of the target 0.
            let none = t.eq(&t.lit(0.0)).and(x.gt(&x.lit(0.0)));
            let part = A::select(none, x.lit(0.0), t * x.clone());
            (x.clone().max(x.lit(0.0)) - part) + (-x.abs()).exp().log1p()
        };
        x(g; x, t) {
            {
                // From the side where the difference from the target does not cancel.
                let above = x.gt(&x.lit(0.0));
                let away = if x.is_exact() { A::select(above.clone(), -x.clone(), x) } else { -x.abs() };
                let s = away.sigmoid();
                g * A::select(above, (t.lit(1.0) - t.clone()) - s.clone(), s - t)
            }
        }
        t(g; x) { g * -x }
    }

    ] $($rest)* } };
}
pub(super) use activations;
