// (cos, sin) of y + low, where low is far below y.
fn f32_cos_sin(y: f32, low: f32) -> vec2<f32> {
    if (bitcast<u32>(y) & 0x7fffffffu) >= 0x7f800000u {
        return vec2<f32>(f32_lit(0x7fc00000u));
    }
    let v = f32_quadrant(y);
    let l = v.y + select(low, f32_neg(low), f32_is_negative(y));
    let q = u32(v.z);
    let s = f32_sin_quarter(v.x, l);
    let c = f32_cos_quarter(v.x, l);
    let odd = (q & 1u) == 1u;
    let re = bitcast<u32>(select(c, s, odd)) ^ (((q + 1u) & 2u) << 30u);
    let im = bitcast<u32>(select(s, c, odd)) ^ ((q & 2u) << 30u) ^ (bitcast<u32>(y) & 0x80000000u);
    return vec2<f32>(bitcast<f32>(re), bitcast<f32>(im));
}

// (m, n) with e^(x + low) = m * 2^n and m about 1, for x down to -174 and up to 176; beyond, it is as there.
fn c64_exp_parts(x: f32, low: f32) -> vec2<f32> {
    let v = f32_exp_parts(f32_clamp(x, -174.0, 176.0), select(0.0, low, f32_lt(f32_abs(x), 170.0)));
    return vec2<f32>(f32_one_plus(v.y, v.z), v.x);
}

// The exponential of the number with the parts x.x + x.y and y.x + y.y.
fn c64_exp_of(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
    let e = c64_exp_parts(x.x, x.y);
    let u = f32_cos_sin(y.x, y.y);
    let re = f32_scale(e.x * u.x, i32(e.y));
    let im = f32_scale(e.x * u.y, i32(e.y));
    // An infinite or unknown angle: of no length it does not matter, of infinite length all is known but the angle.
    let lost = f32_is_nan(u.x) & f32_is_inf(x.x);
    let nothing = lost & f32_is_negative(x.x);
    let r = select(re, select(x.x, 0.0, nothing), lost);
    return vec2<f32>(r, select(select(im, y.x, f32_is_zero(y.x)), 0.0, nothing));
}

fn c64_exp(z: vec2<f32>) -> vec2<f32> {
    return c64_exp_of(vec2<f32>(z.x, 0.0), vec2<f32>(z.y, 0.0));
}

// x * ln 2 as a sum of two numbers.
fn f32_times_ln2(x: f32) -> vec2<f32> {
    let p = f32_two_prod(x, 0.693147182);
    return vec2<f32>(p.x, select(0.0, p.y + x * -1.90465421e-9, f32_lt(f32_abs(x), 1e30)));
}

fn c64_exp2(z: vec2<f32>) -> vec2<f32> {
    return c64_exp_of(f32_times_ln2(z.x), f32_times_ln2(z.y));
}

// e^x cos y - 1 is (e^x - 1) cos y - 2 sin^2(y / 2), without cancellation near 0.
fn c64_expm1(z: vec2<f32>) -> vec2<f32> {
    let e = c64_exp(z);
    let c = f32_cos(z.y);
    let s = f32_sin(z.y * 0.5);
    let near = f32_keep(f32_expm1(f32_clamp(z.x, -50.0, 45.0)) * c) - f32_keep(2.0 * s * s);
    let far = f32_lt(45.0, z.x) | (f32_is_nan(c) & f32_is_inf(z.x));
    return vec2<f32>(select(select(near, z.x, f32_is_nan(z.x)), e.x - 1.0, far), e.y);
}

// log(u + c) / 2 + n * ln 2 as a sum of two numbers, for u above 0 and c far below it.
fn f32_half_log(u: f32, c: f32, n: i32) -> vec2<f32> {
    let v = f32_log_parts(u);
    let k = v.x + f32(2 * n);
    let s = f32_two_sum(k * 0.69314575, v.y);
    let low = s.y + (f32_log_tail(v.y) + k * 1.42860677e-6) + c / u;
    let t = f32_two_sum(s.x, low);
    return t * 0.5;
}

// The logarithm of the length of (x + low, y), as a sum of two numbers; of numbers that are neither 0 nor infinite nor nan.
fn c64_log_size(x: f32, low: f32, y: f32) -> vec2<f32> {
    let e = c64_exponent(vec2<f32>(x, y));
    // Squares of these are in range, and a length near 1 is not scaled.
    let n = select(e, 0, (e < 40) & (e > -40));
    let s = f32_pow2(-n);
    let p = f32_two_prod(x * s, x * s);
    let q = f32_two_prod(y * s, y * s);
    let larger = p.x > q.x;
    let sum = f32_two_sum(select(q.x, p.x, larger), select(p.x, q.x, larger));
    let rest = sum.y + (p.y + q.y) + 2.0 * f32_keep(x * s) * (low * s);
    let u = f32_two_sum(sum.x, rest);
    return f32_half_log(u.x, u.y, n);
}

// Infinity if a part is, even if the other one is nan, else nan if a part is, else v.
fn c64_edges(z: vec2<f32>, v: f32) -> f32 {
    return select(select(v, f32_lit(0x7fc00000u), c64_is_nan(z)), f32_lit(0x7f800000u), c64_is_inf(z));
}

// The number, or 1 where its logarithm needs no computation.
fn c64_plain(z: vec2<f32>) -> vec2<f32> {
    return select(z, vec2<f32>(1.0, 0.0), c64_is_zero(z) | c64_is_inf(z) | c64_is_nan(z));
}

fn c64_log(z: vec2<f32>) -> vec2<f32> {
    let w = c64_plain(z);
    let v = c64_log_size(w.x, 0.0, w.y);
    let re = select(c64_edges(z, v.x + v.y), f32_lit(0xff800000u), c64_is_zero(z));
    return vec2<f32>(re, f32_atan2(z.y, z.x));
}

fn c64_log2(z: vec2<f32>) -> vec2<f32> {
    return c64_log(z) * 1.44269504;
}

fn c64_log10(z: vec2<f32>) -> vec2<f32> {
    return c64_log(z) * 0.434294492;
}

// Near 0 the square of the length is 1 + (2 x + x^2 + y^2).
fn c64_log1p(z: vec2<f32>) -> vec2<f32> {
    let im = f32_atan2(z.y, 1.0 + z.x);
    if c64_is_inf(z) | c64_is_nan(z) {
        return vec2<f32>(c64_edges(z, 0.0), im);
    }
    let v = f32_two_sum(1.0, z.x);
    if f32_is_zero(v.x) & f32_is_zero(z.y) {
        return vec2<f32>(f32_lit(0xff800000u), im);
    }
    if !(f32_lt(f32_abs(z.x), 0.25) & f32_lt(f32_abs(z.y), 0.25)) {
        let far = c64_log_size(v.x, v.y, z.y);
        return vec2<f32>(far.x + far.y, im);
    }
    let p = f32_two_prod(z.x, z.x);
    let q = f32_two_prod(z.y, z.y);
    let s = f32_two_sum(2.0 * z.x, q.x);
    let t = f32_two_sum(s.x, p.x);
    let f = f32_two_sum(t.x, s.y + t.y + (p.y + q.y));
    let u = f32_two_sum(1.0, f.x);
    let near = f32_half_log(u.x, u.y + f.y, 0);
    let tiny = f32_lt(f32_abs(f.x), 1e-8);
    return vec2<f32>(select(select(near.x + near.y, f.x * 0.5, tiny), z.x, c64_is_zero(z)), im);
}

// a.x * h + b * t with the sums of two numbers h and t, as such a sum. The products of what is infinite have no rest.
fn f32_two_products(a: f32, h: vec2<f32>, b: f32, t: vec2<f32>) -> vec2<f32> {
    let p = f32_two_prod(a, h.x);
    let q = f32_two_prod(b, t.x);
    let s = f32_two_sum(p.x, q.x);
    let rest = s.y + (p.y + q.y) + (a * h.y + b * t.y);
    return vec2<f32>(s.x, select(0.0, rest, f32_lt(f32_abs(s.x), 1e30)));
}

// A power of 0 is 1 for an exponent of 0, else 0 if the exponent's real part is positive, infinite with an unknown angle if it is negative,
// and nan if it is 0.
fn c64_pow(z: vec2<f32>, e: vec2<f32>) -> vec2<f32> {
    if c64_is_zero(e) {
        return vec2<f32>(1.0, 0.0);
    }
    if c64_is_zero(z) {
        let nan = f32_lit(0x7fc00000u);
        if f32_lt(0.0, e.x) {
            return vec2<f32>();
        }
        return vec2<f32>(select(nan, f32_lit(0x7f800000u), f32_lt(e.x, 0.0)), nan);
    }
    let w = c64_plain(z);
    let v = c64_log_size(w.x, 0.0, w.y);
    let odd = c64_is_inf(z) | c64_is_nan(z);
    let h = select(v, vec2<f32>(c64_edges(z, v.x), 0.0), odd);
    let parts = f32_atan2_size(z.y, z.x);
    let size = f32_two_sum(parts.x, parts.y);
    let angle = select(select(size, -size, f32_is_negative(z.y)), vec2<f32>(f32_lit(0x7fc00000u), 0.0), c64_is_nan(z));
    return c64_exp_of(f32_two_products(e.x, h, f32_neg(e.y), angle), f32_two_products(e.x, angle, e.y, h));
}
