// (m, k) with |x| = m * 2^k and m from sqrt(1/2) to sqrt(2), for x neither 0 nor infinite nor nan.
fn f64_split(x: f64) -> vec2<f64> {
    let bits = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    let tiny = bits < 0x10000000000000lu;
    // Subnormals are whole numbers of 2^-1074.
    let v = select(bits, bitcast<u64>(f64(bits)), tiny);
    let t = v - 0x3fe6a09e667f3bcdlu + 0x3ff0000000000000lu;
    let k = i32(t >> 52u) - select(1023, 2097, tiny);
    return vec2<f64>(bitcast<f64>((t & 0xffffffffffffflu) + 0x3fe6a09e667f3bcdlu), f64(k));
}

// log(1 + f + fl) as a sum of two, for f from -0.3 to 0.42.
fn f64_log_sum(f: f64, fl: f64) -> vec2<f64> {
    let d = f64_fast_two_sum(2.0lf, f);
    let s = f64_keep(f / d.x);
    let sl = (f64_rest(s, d.x, f) + (fl - s * (d.y + fl))) / d.x;
    let z = f64_two_prod(s, s);
    let zl = 2.0lf * s * sl + z.y;
    let u = z.x * (0.4lf + z.x * (0.2857142857142937lf + z.x * (0.22222222221652765lf + z.x * (0.18181818336099848lf
        + z.x * (0.1538459488700718lf + z.x * (0.1333480879881234lf + z.x * (0.11706126464563398lf + z.x * 0.11724327060846747lf)))))));
    let g = f64_fast_two_sum(0.6666666666666666lf, u);
    let gl = g.y + 3.700743415417188e-17lf;
    let w = f64_two_prod(z.x, s);
    let wl = z.x * sl + (zl * s + w.y);
    let t = f64_two_prod(w.x, g.x);
    let tl = w.x * gl + (wl * g.x + t.y);
    let h = f64_fast_two_sum(2.0lf * s, t.x);
    return f64_fast_two_sum(h.x, h.y + (tl + 2.0lf * sl));
}

// k * ln 2 + h as a sum of two.
fn f64_add_ln2(k: f64, h: vec2<f64>) -> vec2<f64> {
    let s = f64_two_sum(k * 6.931471803691238e-1lf, h.x);
    return f64_fast_two_sum(s.x, s.y + (k * 1.9082149292705877e-10lf + h.y));
}

// Logarithms of 0, infinity, nan and numbers below 0.
fn f64_log_edges(x: f64, y: f64) -> f64 {
    let finite = select(y, f64_nan(), f64_is_negative(x) | f64_is_nan(x));
    let positive = select(finite, x, f64_is_inf(x) & !f64_is_negative(x));
    return select(positive, f64_lit(0u, 0xfff00000u), f64_is_zero(x));
}

fn f64_log(x: f64) -> f64 {
    let v = f64_split(x);
    let s = f64_add_ln2(v.y, f64_log_sum(v.x - 1.0lf, 0.0lf));
    return f64_log_edges(x, s.x + s.y);
}

fn f64_log2(x: f64) -> f64 {
    let v = f64_split(x);
    let h = f64_log_sum(v.x - 1.0lf, 0.0lf);
    let p = f64_two_prod(h.x, 1.4426950408889634lf);
    let s = f64_two_sum(v.y, p.x);
    return f64_log_edges(x, s.x + (s.y + (h.x * 2.0355273740931033e-17lf + (h.y * 1.4426950408889634lf + p.y))));
}

fn f64_log10(x: f64) -> f64 {
    let v = f64_split(x);
    let h = f64_log_sum(v.x - 1.0lf, 0.0lf);
    let p = f64_two_prod(h.x, 0.4342944819032518lf);
    let e = h.x * 1.098319650216765e-17lf + (h.y * 0.4342944819032518lf + p.y);
    let a = f64_two_prod(v.y, 0.3010299956639812lf);
    let s = f64_two_sum(a.x, p.x);
    return f64_log_edges(x, s.x + (s.y + (e + (v.y * -2.8037281277851704e-18lf + a.y))));
}

// log(1 + x + xl) as a sum of two, for finite x + xl > -1 with |xl| far below |x|.
fn f64_log1p_sum(x: f64, xl: f64) -> vec2<f64> {
    let u = f64_two_sum(1.0lf, x);
    let v = f64_split(u.x);
    let c = f64_scale(u.y + xl, -i32(v.y));
    return f64_add_ln2(v.y, f64_log_sum(v.x - 1.0lf, c));
}

fn f64_log1p(x: f64) -> f64 {
    let inside = f64_lt(-1.0lf, x) & !f64_is_inf(x);
    let s = f64_log1p_sum(select(0.0lf, x, inside), 0.0lf);
    let edge = select(f64_log_edges(1.0lf + x, x), x, f64_is_nan(x));
    return select(select(edge, s.x + s.y, inside), x, f64_lt(f64_abs(x), 1e-17lf));
}

// log(2 a) for a > 1.
fn f64_log_twice(a: f64) -> f64 {
    let v = f64_split(a);
    let s = f64_add_ln2(v.y + 1.0lf, f64_log_sum(v.x - 1.0lf, 0.0lf));
    return select(s.x + s.y, a, f64_is_inf(a));
}

// The root of a sum of two.
fn f64_sqrt_sum(z: vec2<f64>) -> vec2<f64> {
    let r = sqrt(z.x);
    let l = (f64_rest(r, r, z.x) + z.y) / (2.0lf * r);
    return vec2<f64>(r, select(l, 0.0lf, f64_is_zero(r)));
}

fn f64_asinh(x: f64) -> f64 {
    let a = f64_abs(x);
    let huge = f64_lt(1e9lf, a);
    let b = select(a, 1.0lf, huge | f64_is_nan(x));
    let z = f64_two_prod(b, b);
    let u = f64_two_sum(1.0lf, z.x);
    let r = f64_sqrt_sum(vec2<f64>(u.x, u.y + z.y));
    let d = f64_two_sum(r.x, 1.0lf);
    let q = f64_div_sums(z, vec2<f64>(d.x, d.y + r.y));
    let s = f64_two_sum(b, q.x);
    let near = f64_log1p_sum(s.x, s.y + q.y);
    let y = select(near.x + near.y, f64_log_twice(a), huge);
    return select(f64_copysign(y, x), x, f64_lt(a, 1e-9lf) | f64_is_nan(x));
}

fn f64_acosh(x: f64) -> f64 {
    let near = f64_le(1.0lf, x) & f64_le(x, 1e9lf);
    let t = select(1.0lf, x - 1.0lf, near);
    let tl = select(0.0lf, f64_keep(x - f64_keep(t)) - 1.0lf, near);
    let d = f64_two_sum(t, 2.0lf);
    let z = f64_two_prod(t, d.x);
    let r = f64_sqrt_sum(vec2<f64>(z.x, z.y + (t * (d.y + tl) + tl * d.x)));
    let s = f64_two_sum(t, r.x);
    let h = f64_log1p_sum(s.x, s.y + (r.y + tl));
    let y = select(f64_log_twice(x), h.x + h.y, near);
    return select(f64_nan(), y, f64_le(1.0lf, x));
}

fn f64_atanh(x: f64) -> f64 {
    let a = f64_abs(x);
    let b = select(0.5lf, a, f64_lt(a, 1.0lf));
    let d = f64_two_sum(1.0lf, -b);
    let q = f64_div_sums(vec2<f64>(2.0lf * b, 0.0lf), d);
    let h = f64_log1p_sum(q.x, q.y);
    let y = select(f64_copysign((h.x + h.y) * 0.5lf, x), x, f64_lt(a, 1e-9lf));
    let edge = select(f64_nan(), f64_copysign(f64_lit(0u, 0x7ff00000u), x), f64_eq(a, 1.0lf));
    return select(edge, y, f64_lt(a, 1.0lf));
}

fn f64_hypot(x: f64, y: f64) -> f64 {
    let a = f64_max(f64_abs(x), f64_abs(y));
    let b = f64_min(f64_abs(x), f64_abs(y));
    let e = clamp(i32((f64_high(a) >> 20u) & 0x7ffu) - 1023, -1022, 1022);
    let scale = f64_pow2(-e);
    let p = f64_two_prod(a * scale, a * scale);
    let q = f64_two_prod(b * scale, b * scale);
    let s = f64_two_sum(p.x, q.x);
    let r = f64_sqrt_sum(vec2<f64>(s.x, s.y + (p.y + q.y)));
    let back = f64_scale(r.x + r.y, e);
    let edge = select(f64_nan(), f64_lit(0u, 0x7ff00000u), f64_is_inf(x) | f64_is_inf(y));
    return select(back, edge, f64_is_inf(x) | f64_is_inf(y) | f64_is_nan(x) | f64_is_nan(y));
}

// IEEE 754's special cases around y, the value of |x|^e.
fn f64_pow_edges(x: f64, e: f64, y: f64) -> f64 {
    let a = f64_abs(x);
    let is_whole = f64_eq(f64_trunc(e), e);
    let half = e * 0.5lf;
    let odd = is_whole & !f64_eq(f64_trunc(half), half) & f64_lt(f64_abs(e), 9007199254740992.0lf);
    let end = select(0.0lf, f64_lit(0u, 0x7ff00000u), f64_lt(1.0lf, a) == f64_lt(0.0lf, e));
    var r = select(y, end, f64_is_zero(x) | f64_is_inf(x) | f64_is_inf(e));
    r = select(r, 1.0lf, f64_eq(a, 1.0lf));
    r = select(r, f64_neg(r), f64_is_negative(x) & odd);
    let complex = f64_lt(x, 0.0lf) & !is_whole & !f64_is_inf(x) & !f64_is_inf(e);
    r = select(r, f64_nan(), complex | f64_is_nan(x) | f64_is_nan(e));
    return select(r, 1.0lf, f64_is_zero(e) | f64_eq(x, 1.0lf));
}

fn f64_pow(x: f64, e: f64) -> f64 {
    let v = f64_split(x);
    let h = f64_add_ln2(v.y, f64_log_sum(v.x - 1.0lf, 0.0lf));
    // Beyond 2^65 every power but that of 1 overflows or vanishes.
    let w = f64_clamp(e, -3.7e19lf, 3.7e19lf);
    let p = f64_two_prod(h.x, w);
    let c = f64_clamp(p.x, -760.0lf, 720.0lf);
    let t = f64_exp_parts(c, select(0.0lf, p.y + h.y * w, f64_eq(c, p.x)));
    let s = f64_fast_two_sum(1.0lf, t.y);
    return f64_pow_edges(x, e, f64_scale(s.x + (s.y + t.z), i32(t.x)));
}
