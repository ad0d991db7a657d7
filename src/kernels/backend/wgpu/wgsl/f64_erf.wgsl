// erfc(a) for a from 0 to 28 as a sum of two before it is scaled by 2^n: (n, h, l, 0). exp(a^2) * erfc(a) * (a + 4) is a polynomial in
// (a - 4) / (a + 4), whose last steps are sums of two.
fn f64_erfc_parts(a: f64) -> vec4<f64> {
    let d = f64_two_sum(a, 4.0lf);
    let v = f64_div_sums(f64_two_sum(a, -4.0lf), d);
    let t = v.x;
    let q = -0.5408538313132364lf + t * (0.3308515878780057lf + t * (-0.17401093723987482lf + t * (0.07638151490955941lf + t *
        (-0.026370053341525722lf + t * (0.006112055651265173lf + t * (-0.00028095885250903644lf + t *
        (-0.0004550526414139015lf + t * (0.00017681273491033545lf + t * (-3.635420026228601e-06lf + t *
        (-1.8860548368757933e-05lf + t * (4.695354326090545e-06lf + t * (1.4233117247403688e-06lf + t *
        (-8.485499743065902e-07lf + t * (-7.406447825008009e-08lf + t * (1.2797807262198503e-07lf + t *
        (-5.893839333871672e-10lf + t * (-1.927974113277093e-08lf + t * (8.648776069502233e-10lf + t *
        (3.058658640471567e-09lf + t * (-8.738934758033261e-11lf + t * (-4.872692244262494e-10lf + t *
        (-3.3181526837606524e-11lf + t * (5.6812057132836534e-11lf + t * 1.3320294759600495e-11lf)))))))))))))))))))))));
    let slope = -0.976548729080882lf + t * (1.5464174045304744lf + t * (3.0lf * q));
    let u2 = f64_two_prod(t, q);
    let s2 = f64_fast_two_sum(0.7732087022652372lf, u2.x + u2.y);
    let u1 = f64_two_prod(t, s2.x);
    let s1 = f64_fast_two_sum(-0.976548729080882lf, u1.x);
    let l1 = s1.y + ((t * s2.y + u1.y) - 1.4808216816782803e-17lf);
    let u0 = f64_two_prod(t, s1.x);
    let s0 = f64_fast_two_sum(1.095995661000491lf, u0.x);
    let l0 = s0.y + ((t * l1 + u0.y) + 5.75724514913018e-17lf) + slope * v.y;
    let r = f64_div_sums(vec2<f64>(s0.x, l0), d);
    let z = f64_two_prod(a, a);
    let e = f64_exp_parts(-z.x, -z.y);
    let m = f64_fast_two_sum(1.0lf, e.y);
    let h = f64_two_prod(m.x, r.x);
    return vec4<f64>(e.x, h.x, h.y + (m.x * r.y + (m.y + e.z) * r.x), 0.0lf);
}

// erf(a) for |a| up to 0.5 as a sum of two.
fn f64_erf_small(a: f64) -> vec2<f64> {
    let z = a * a;
    let q = -0.37612638903183754lf + z * (0.11283791670955126lf + z * (-0.026866170645131037lf + z * (0.005223977625431154lf + z *
        (-0.0008548327020579143lf + z * (0.00012055332552174238lf + z * (-1.492561118797231e-05lf + z *
        (1.645989979894931e-06lf + z * (-1.6289898771332958e-07lf + z * 1.335180053531711e-08lf))))))));
    let h = f64_two_prod(a, 1.1283791670955126lf);
    return f64_fast_two_sum(h.x, a * z * q + (a * 1.533545961316588e-17lf + h.y));
}

fn f64_erf(x: f64) -> f64 {
    let a = f64_abs(x);
    let small = f64_erf_small(f64_clamp(a, 0.0lf, 0.5lf));
    let v = f64_erfc_parts(f64_clamp(a, 0.0lf, 6.0lf));
    let p = f64_pow2(i32(v.x));
    let s = f64_fast_two_sum(1.0lf, -v.y * p);
    let near = select(small.x + small.y, a + a * 0.1283791670955126lf, f64_lt(a, 1e-280lf));
    let y = select(s.x + (s.y - v.z * p), near, f64_lt(a, 0.5lf));
    return select(f64_copysign(y, x), x, f64_is_nan(x));
}

fn f64_erfc(x: f64) -> f64 {
    let v = f64_erfc_parts(f64_clamp(f64_abs(x), 0.0lf, 28.0lf));
    let n = i32(v.x);
    let positive = f64_scale(v.y + v.z, n);
    let p = f64_pow2(max(n, -1000));
    let s = f64_fast_two_sum(2.0lf, -v.y * p);
    let y = select(positive, s.x + (s.y - v.z * p), f64_lt(x, 0.0lf));
    let small = f64_erf_small(f64_clamp(x, -0.5lf, 0.5lf));
    let c = f64_fast_two_sum(1.0lf, -small.x);
    let near = c.x + (c.y - small.y);
    return select(select(y, near, f64_lt(f64_abs(x), 0.5lf)), x, f64_is_nan(x));
}
