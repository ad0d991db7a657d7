// 2^n for n from -1022 to 1023.
fn f64_pow2(n: i32) -> f64 {
    return f64_from_bits(0u, bitcast<u32>(n + 1023) << 20u);
}

// v * 2^n for n from -2044 to 2046, rounded once.
fn f64_scale(v: f64, n: i32) -> f64 {
    let half = n >> 1u;
    return f64_keep(v * f64_pow2(half)) * f64_pow2(n - half);
}

// Sums and products of two numbers, with what the rounding lost. The first needs |a| >= |b| or a == 0.
fn f64_fast_two_sum(a: f64, b: f64) -> vec2<f64> {
    let s = f64_keep(a + b);
    return vec2<f64>(s, f64_keep(a - s) + b);
}

fn f64_two_sum(a: f64, b: f64) -> vec2<f64> {
    let s = f64_keep(a + b);
    let c = f64_keep(s - a);
    return vec2<f64>(s, f64_keep(a - f64_keep(s - c)) + f64_keep(b - c));
}

fn f64_two_prod(a: f64, b: f64) -> vec2<f64> {
    let ah = bitcast<f64>(bitcast<u64>(a) & 0xfffffffff8000000lu);
    let bh = bitcast<f64>(bitcast<u64>(b) & 0xfffffffff8000000lu);
    let al = f64_keep(a - ah);
    let bl = f64_keep(b - bh);
    let p = f64_keep(a * b);
    let e = f64_keep(f64_keep(ah * bh) - p);
    return vec2<f64>(p, f64_keep(f64_keep(e + f64_keep(ah * bl)) + f64_keep(al * bh)) + f64_keep(al * bl));
}

// c - a * b, rounded at the end, where the difference is small.
fn f64_rest(a: f64, b: f64, c: f64) -> f64 {
    let p = f64_two_prod(a, b);
    return f64_keep(c - p.x) - p.y;
}

// a / b of sums of two, for values whose products neither overflow nor vanish.
fn f64_div_sums(a: vec2<f64>, b: vec2<f64>) -> vec2<f64> {
    let q = f64_keep(a.x / b.x);
    return vec2<f64>(q, (f64_rest(q, b.x, a.x) + (a.y - q * b.y)) / b.x);
}

// (n, h, l, 0) with exp(x + low) = 2^n * (1 + h + l) and |h| < 0.42, for x from -746 to 711.
fn f64_exp_parts(x: f64, low: f64) -> vec4<f64> {
    let n = f64_round(x * 1.4426950408889634lf);
    // 33 bits of ln 2: exact times a small whole number.
    let a = f64_keep(x - f64_keep(n * 6.931471803691238e-1lf));
    let b = f64_keep(n * 1.9082149292705877e-10lf);
    let r = f64_keep(a - b);
    let c = f64_keep(f64_keep(a - r) - b) + low;
    let q = 0.5lf + r * (0.1666666666666667lf + r * (0.04166666666666667lf + r * (0.008333333333326084lf + r * (0.0013888888888883711lf
        + r * (0.0001984126987500228lf + r * (2.480158732567746e-05lf + r * (2.755725517000089e-06lf + r * (2.755727347871858e-07lf
        + r * (2.5105312729622103e-08lf + r * 2.09147553258932e-09lf)))))))));
    let s = f64_fast_two_sum(r, r * r * q);
    return vec4<f64>(n, s.x, s.y + (c * s.x + c), 0.0lf);
}

fn f64_exp(x: f64) -> f64 {
    let v = f64_exp_parts(f64_clamp(x, -746.0lf, 711.0lf), 0.0lf);
    return select(f64_scale(1.0lf + (v.y + v.z), i32(v.x)), x, f64_is_nan(x));
}

// exp(x) / 2, which overflows later, for x from 0 on.
fn f64_half_exp(x: f64) -> f64 {
    let v = f64_exp_parts(f64_clamp(x, 0.0lf, 712.0lf), 0.0lf);
    return f64_scale(1.0lf + (v.y + v.z), i32(v.x) - 1);
}

fn f64_exp2(x: f64) -> f64 {
    let c = f64_clamp(x, -1076.0lf, 1025.0lf);
    let n = f64_round(c);
    let r = f64_keep(c - n);
    let p = f64_two_prod(r, 0.6931471805599453lf);
    let v = f64_exp_parts(p.x, p.y + r * 2.3190468138462996e-17lf);
    return select(f64_scale(1.0lf + (v.y + v.z), i32(n) + i32(v.x)), x, f64_is_nan(x));
}

// exp(x) - 1 as a sum of two, for |x| up to 700.
fn f64_expm1_sum(x: f64) -> vec2<f64> {
    let v = f64_exp_parts(x, 0.0lf);
    let t = f64_pow2(i32(v.x));
    let a = f64_two_sum(t, -1.0lf);
    let s = f64_two_sum(a.x, t * v.y);
    return f64_fast_two_sum(s.x, s.y + (a.y + t * v.z));
}

fn f64_expm1(x: f64) -> f64 {
    let s = f64_expm1_sum(f64_clamp(x, -50.0lf, 60.0lf));
    let y = select(s.x + s.y, f64_exp(x), f64_lt(60.0lf, x));
    return select(y, x, f64_is_zero(x) | f64_is_nan(x));
}

fn f64_sinh(x: f64) -> f64 {
    let a = f64_abs(x);
    let t = f64_expm1_sum(f64_clamp(a, 0.0lf, 45.0lf));
    let d = f64_two_sum(t.x, 1.0lf);
    let q = f64_div_sums(t, vec2<f64>(d.x, d.y + t.y));
    let s = f64_fast_two_sum(t.x, q.x);
    var y = (s.x + (s.y + (t.y + q.y))) * 0.5lf;
    y = select(y, f64_half_exp(a), f64_lt(40.0lf, a));
    return select(f64_copysign(y, x), x, f64_lt(a, 1e-9lf) | f64_is_nan(x));
}

fn f64_cosh(x: f64) -> f64 {
    let a = f64_abs(x);
    let v = f64_exp_parts(f64_clamp(a, 0.0lf, 45.0lf), 0.0lf);
    let m = f64_fast_two_sum(1.0lf, v.y);
    let p = f64_pow2(i32(v.x));
    let e = vec2<f64>(m.x * p, (m.y + v.z) * p);
    let q = f64_div_sums(vec2<f64>(1.0lf, 0.0lf), e);
    let s = f64_fast_two_sum(e.x, q.x);
    let y = (s.x + (s.y + (e.y + q.y))) * 0.5lf;
    return select(select(y, f64_half_exp(a), f64_lt(40.0lf, a)), x, f64_is_nan(x));
}

fn f64_tanh(x: f64) -> f64 {
    let a = f64_abs(x);
    let t = f64_expm1_sum(-2.0lf * f64_clamp(a, 0.0lf, 20.0lf));
    let d = f64_fast_two_sum(2.0lf, t.x);
    let q = f64_div_sums(-t, vec2<f64>(d.x, d.y + t.y));
    return select(f64_copysign(q.x + q.y, x), x, f64_lt(a, 1e-9lf) | f64_is_nan(x));
}

fn f64_sigmoid(x: f64) -> f64 {
    let v = f64_exp_parts(-f64_clamp(f64_abs(x), 0.0lf, 746.0lf), 0.0lf);
    let m = f64_fast_two_sum(1.0lf, v.y);
    let ml = m.y + v.z;
    // exp(-|x|) where it is too small to count against 1 needs no care.
    let n = i32(v.x);
    let p = f64_pow2(max(n, -1000));
    let d = f64_fast_two_sum(1.0lf, m.x * p);
    let positive = f64_lt(0.0lf, x);
    let top = select(vec2<f64>(m.x, ml), vec2<f64>(1.0lf, 0.0lf), positive);
    let q = f64_div_sums(top, vec2<f64>(d.x, d.y + ml * p));
    return select(f64_scale(q.x + q.y, select(n, 0, positive)), x, f64_is_nan(x));
}
