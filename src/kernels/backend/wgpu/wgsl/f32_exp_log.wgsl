// 2^n for n from -126 to 127.
fn f32_pow2(n: i32) -> f32 {
    return bitcast<f32>(bitcast<u32>(n + 127) << 23u);
}

// v * 2^n for n from -252 to 254, rounded once.
fn f32_scale(v: f32, n: i32) -> f32 {
    let half = n >> 1u;
    return f32_keep(v * f32_pow2(half)) * f32_pow2(n - half);
}

// The sum of two numbers and what its rounding lost.
fn f32_two_sum(a: f32, b: f32) -> vec2<f32> {
    let s = f32_keep(a + b);
    let c = f32_keep(s - a);
    return vec2<f32>(s, f32_keep(a - f32_keep(s - c)) + f32_keep(b - c));
}

// The product of two numbers and what its rounding lost. WGSL's fma need not be exact; products of halves are.
fn f32_two_prod(a: f32, b: f32) -> vec2<f32> {
    let ah = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let bh = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let al = f32_keep(a - ah);
    let bl = f32_keep(b - bh);
    let p = f32_keep(a * b);
    let e = f32_keep(f32_keep(ah * bh) - p);
    return vec2<f32>(p, f32_keep(f32_keep(e + f32_keep(ah * bl)) + f32_keep(al * bh)) + f32_keep(al * bl));
}

// (n, r, p) with exp(x + low) = 2^n * (1 + r + p), |r| < 0.35 and |p| < 0.08; for x from -105 to 89. n times the upper part of ln 2,
// which has 16 bits, is exact.
fn f32_exp_parts(x: f32, low: f32) -> vec3<f32> {
    let n = f32_keep(f32_keep(x * 1.44269504) + 12582912.0) - 12582912.0;
    let r = f32_keep(f32_keep(x - f32_keep(n * 0.69314575)) - n * 1.42860677e-6) + low;
    let q = 0.5 + r * (0.166666672 + r * (0.0416662693 + r * (0.00833326578 + r * (0.00139460841 + r * 0.000199178263))));
    return vec3<f32>(n, r, r * r * q);
}

// 1 + r + p for |p| < |r| < 1.
fn f32_one_plus(r: f32, p: f32) -> f32 {
    let h = f32_keep(r + p);
    let l = f32_keep(r - h) + p;
    let s = f32_keep(1.0 + h);
    return s + (f32_keep(f32_keep(1.0 - s) + h) + l);
}

fn f32_exp(x: f32) -> f32 {
    let v = f32_exp_parts(f32_clamp(x, -105.0, 89.0), 0.0);
    return select(f32_scale(f32_one_plus(v.y, v.z), i32(v.x)), x, f32_is_nan(x));
}

// exp(x) / 2, which overflows later.
fn f32_half_exp(x: f32) -> f32 {
    let v = f32_exp_parts(f32_clamp(x, -105.0, 90.0), 0.0);
    return select(f32_scale(f32_one_plus(v.y, v.z), i32(v.x) - 1), x, f32_is_nan(x));
}

fn f32_exp2(x: f32) -> f32 {
    let c = f32_clamp(x, -160.0, 130.0);
    let n = f32_round(c);
    let r = (c - n) * 0.693147182;
    let q = 0.5 + r * (0.166666672 + r * (0.0416662693 + r * (0.00833326578 + r * (0.00139460841 + r * 0.000199178263))));
    return select(f32_scale(f32_one_plus(r, r * r * q), i32(n)), x, f32_is_nan(x));
}

// Half of it is computed: 2^128 does not exist.
fn f32_expm1(x: f32) -> f32 {
    let v = f32_exp_parts(f32_clamp(x, -60.0, 89.0), 0.0);
    let h = f32_keep(v.y + v.z);
    let l = f32_keep(v.y - h) + v.z;
    let t = f32_pow2(i32(v.x) - 1);
    let a = f32_two_sum(t, -0.5);
    let s = f32_two_sum(a.x, t * h);
    let y = 2.0 * (s.x + (s.y + (a.y + t * l)));
    let small = (bitcast<u32>(x) & 0x7fffffffu) < 0x33000000u;
    return select(y, x, small | f32_is_nan(x));
}

fn f32_sigmoid(x: f32) -> f32 {
    let e = f32_exp(f32_neg(f32_abs(x)));
    return f32_div(select(1.0, e, f32_is_negative(x)), 1.0 + e);
}

fn f32_tanh(x: f32) -> f32 {
    let a = f32_abs(x);
    let e = f32_expm1(-2.0 * f32_at_most(a, 1.0));
    let near = f32_div(f32_neg(e), 2.0 + e);
    let y = select(near, 1.0 - 2.0 / (f32_exp(2.0 * f32_at_most(a, 10.0)) + 1.0), f32_lt(1.0, a));
    return select(f32_copysign(y, x), x, f32_is_nan(x));
}

fn f32_sinh(x: f32) -> f32 {
    let a = f32_abs(x);
    let e = f32_expm1(f32_at_most(a, 20.0));
    let near = 0.5 * (e + e / (e + 1.0));
    let y = select(near, f32_half_exp(a), f32_lt(20.0, a));
    return select(f32_copysign(y, x), x, f32_is_nan(x) | ((bitcast<u32>(x) & 0x7fffffffu) < 0x33000000u));
}

fn f32_cosh(x: f32) -> f32 {
    let h = f32_half_exp(f32_abs(x));
    return h + 0.25 / f32_at_most(h, 1e30) * select(1.0, 0.0, f32_lt(1e30, h));
}

// (k, f) with |x| = 2^k * (1 + f) and f from sqrt(1/2) - 1 to sqrt(2) - 1, for x neither 0 nor infinite nor nan.
fn f32_log_parts(x: f32) -> vec2<f32> {
    let b = bitcast<u32>(x) & 0x7fffffffu;
    let tiny = b < 0x800000u;
    // Subnormals are whole numbers of 2^-149.
    let v = select(b, bitcast<u32>(f32(b)), tiny);
    let t = v - 0x3f3504f3u + 0x3f800000u;
    let k = i32(t >> 23u) - select(127, 276, tiny);
    return vec2<f32>(f32(k), bitcast<f32>((t & 0x7fffffu) + 0x3f3504f3u) - 1.0);
}

// The logarithm of 1 + f less f, for f from sqrt(1/2) - 1 to sqrt(2) - 1.
fn f32_log_tail(f: f32) -> f32 {
    let p = 0.333333135 + f * (-0.250000089 + f * (0.200021192 + f * (-0.166679963 + f * (0.142195508 + f * (-0.124055915
        + f * (0.118881747 + f * (-0.116756409 + f * 0.0674660131)))))));
    return f * f * (f * p - 0.5);
}

// Logarithms of 0, infinity, nan and numbers below 0.
fn f32_log_edges(x: f32, y: f32) -> f32 {
    let b = bitcast<u32>(x);
    let finite = select(y, f32_lit(0x7fc00000u), b > 0x7f800000u);
    return select(select(finite, x, b == 0x7f800000u), f32_lit(0xff800000u), (b & 0x7fffffffu) == 0u);
}

fn f32_log(x: f32) -> f32 {
    let v = f32_log_parts(x);
    let s = f32_two_sum(v.x * 0.69314575, v.y);
    return f32_log_edges(x, s.x + (s.y + (f32_log_tail(v.y) + v.x * 1.42860677e-6)));
}

fn f32_log2(x: f32) -> f32 {
    let v = f32_log_parts(x);
    let t = f32_log_tail(v.y);
    // 1 / ln 2 is 1.4375 and a rest: the product with few bits is all but exact.
    let h = bitcast<f32>(bitcast<u32>(v.y) & 0xffffe000u);
    let l = f32_keep(v.y - h);
    let s = f32_two_sum(v.x, f32_keep(h * 1.4423828125));
    return f32_log_edges(x, s.x + (s.y + (h * 0.000312228389 + (l + t) * 1.44269504)));
}

fn f32_log10(x: f32) -> f32 {
    let v = f32_log_parts(x);
    let t = f32_log_tail(v.y);
    let h = bitcast<f32>(bitcast<u32>(v.y) & 0xffffe000u);
    let l = f32_keep(v.y - h);
    let s = f32_two_sum(f32_keep(v.x * 0.301025391), f32_keep(h * 0.434082031));
    return f32_log_edges(x, s.x + (s.y + ((v.x * 4.60503906e-6 + h * 0.000212450673) + (l + t) * 0.434294492)));
}

fn f32_log1p(x: f32) -> f32 {
    let u = f32_keep(1.0 + x);
    let lost = select(f32_keep(x - f32_keep(u - 1.0)), f32_keep(1.0 - f32_keep(u - x)), f32_lt(1.0, x));
    let c = select(lost / u, 0.0, f32_lt(1e8, x));
    let v = f32_log_parts(u);
    let s = f32_two_sum(v.x * 0.69314575, v.y);
    let y = f32_log_edges(u, s.x + (s.y + (f32_log_tail(v.y) + (v.x * 1.42860677e-6 + c))));
    let edge = f32_is_zero(u) | ((bitcast<u32>(u) & 0x7fffffffu) >= 0x7f800000u) | f32_is_negative(u);
    let small = (bitcast<u32>(x) & 0x7fffffffu) < 0x33000000u;
    return select(select(y, f32_log_edges(u, y), edge), x, small);
}

fn f32_asinh(x: f32) -> f32 {
    let a = f32_abs(x);
    let m = f32_at_most(a, 4096.0);
    let z = m * m;
    let near = f32_log1p(m + z / (1.0 + sqrt(1.0 + z)));
    let y = select(near, f32_log(a) + 0.693147182, f32_lt(4096.0, a));
    return select(f32_copysign(y, x), x, f32_is_nan(x) | ((bitcast<u32>(x) & 0x7fffffffu) < 0x39000000u));
}

fn f32_acosh(x: f32) -> f32 {
    let t = f32_at_most(x, 4096.0) - 1.0;
    let near = f32_log1p(t + f32_sqrt(t * (t + 2.0)));
    let y = select(near, f32_log(x) + 0.693147182, f32_lt(4096.0, x));
    return select(y, f32_lit(0x7fc00000u), !f32_le(1.0, x));
}

fn f32_atanh(x: f32) -> f32 {
    let a = f32_abs(x);
    let y = 0.5 * f32_log1p(f32_div(2.0 * a, 1.0 - a));
    let inside = select(f32_copysign(y, x), x, (bitcast<u32>(x) & 0x7fffffffu) < 0x39000000u);
    let edge = select(f32_lit(0x7fc00000u), f32_copysign(f32_lit(0x7f800000u), x), f32_eq(a, 1.0));
    return select(edge, inside, f32_lt(a, 1.0));
}

// IEEE 754's special cases around y, the value of |x|^e.
fn f32_pow_edges(x: f32, e: f32, y: f32) -> f32 {
    let a = f32_abs(x);
    let b = f32_abs(e);
    let inf = f32_lit(0x7f800000u);
    let whole = f32_trunc(e);
    let is_whole = bitcast<u32>(whole) == bitcast<u32>(e);
    let odd = is_whole & f32_lt(b, 16777216.0) & ((i32(f32_clamp(e, -16777216.0, 16777216.0)) & 1) == 1);
    let grows = f32_lt(1.0, a) == f32_lt(0.0, e);
    let end = select(0.0, inf, grows);
    var r = select(y, end, f32_is_zero(x) | f32_is_inf(x) | f32_is_inf(e));
    r = select(r, 1.0, f32_eq(a, 1.0));
    r = select(r, f32_neg(r), f32_is_negative(x) & odd);
    let complex = f32_lt(x, 0.0) & !is_whole & !f32_is_inf(x) & !f32_is_inf(e);
    r = select(r, f32_lit(0x7fc00000u), complex | f32_is_nan(x) | f32_is_nan(e));
    return select(r, 1.0, f32_is_zero(e) | (bitcast<u32>(x) == 0x3f800000u));
}

// 2^(e * log2 |x|) with the logarithm as a sum of two numbers, to some 33 bits.
fn f32_pow(x: f32, e: f32) -> f32 {
    let v = f32_log_parts(x);
    let f = v.y;
    // log2(1 + f) = 2 / ln 2 * atanh(s) with s = f / (2 + f).
    let d = f32_two_sum(2.0, f);
    let s = f32_keep(f / d.x);
    let sd = f32_two_prod(s, d.x);
    let sl = (f32_keep(f32_keep(f - sd.x) - sd.y) - s * d.y) / d.x;
    let z = s * s;
    let q = z * (0.333333343 + z * (0.200000614 + z * (0.142753273 + z * 0.116673239)));
    let p = f32_two_prod(s, 2.88539004);
    let low = p.y + (s * 3.85195987e-8 + (sl + (s + sl) * q) * 2.88539004);
    let t = f32_two_sum(v.x, p.x);
    let l = f32_two_sum(t.x, t.y + low);
    // From 2^34 on every exponent is as good as infinite.
    let w = f32_clamp(e, -1.7179869e10, 1.7179869e10);
    let h = f32_two_prod(w, l.x);
    let c = f32_clamp(h.x, -160.0, 130.0);
    let n = f32_round(c);
    let r = (c - n) * 0.693147182 + select(0.0, (h.y + w * l.y) * 0.693147182 + (c - n) * -1.90465421e-9, c == h.x);
    let g = 0.5 + r * (0.166666672 + r * (0.0416662693 + r * (0.00833326578 + r * (0.00139460841 + r * 0.000199178263))));
    return f32_pow_edges(x, e, f32_scale(f32_one_plus(r, r * r * g), i32(n)));
}
