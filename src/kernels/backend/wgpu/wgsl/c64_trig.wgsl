// (s, c, n): the hyperbolic sine and cosine of x are s 2^n and c 2^n; n is 0 unless |x| is larger than 40.
fn c64_sinh_cosh(x: f32) -> vec3<f32> {
    let a = f32_abs(x);
    let e = c64_exp_parts(a, 0.0);
    let far = f32_lt(40.0, a);
    let s = select(f32_sinh(f32_at_most(a, 41.0)), e.x, far);
    let c = select(f32_cosh(f32_at_most(a, 41.0)), e.x, far);
    return vec3<f32>(f32_copysign(s, x), c, select(0.0, e.y - 1.0, far));
}

// A product in which 0 is stronger than infinity and nan.
fn f32_or_zero(a: f32, b: f32, product: f32) -> f32 {
    let sign = bitcast<f32>((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u);
    return select(product, sign, f32_is_zero(a) | f32_is_zero(b));
}

fn c64_sinh(z: vec2<f32>) -> vec2<f32> {
    let h = c64_sinh_cosh(z.x);
    let u = f32_cos_sin(z.y, 0.0);
    let n = i32(h.z);
    let product = f32_or_zero(z.x, 1.0, f32_scale(h.x * u.x, n));
    let known = select(product, z.x, f32_is_inf(z.x) & f32_is_nan(u.x));
    // The sign of 0 is that of the product.
    let re = select(known, f32_neg(z.x), f32_is_zero(z.x) & f32_lt(u.x, 0.0));
    return vec2<f32>(re, select(f32_scale(h.y * u.y, n), z.y, f32_is_zero(z.y)));
}

fn c64_cosh(z: vec2<f32>) -> vec2<f32> {
    let h = c64_sinh_cosh(z.x);
    let u = f32_cos_sin(z.y, 0.0);
    let n = i32(h.z);
    let re = select(f32_scale(h.y * u.x, n), f32_abs(z.x), f32_is_inf(z.x) & f32_is_nan(u.x));
    return vec2<f32>(re, f32_or_zero(z.x, select(u.y, z.y, f32_is_nan(u.y)), f32_scale(h.x * u.y, n)));
}

fn c64_sin(z: vec2<f32>) -> vec2<f32> {
    return c64_turned_back(c64_sinh(c64_turned(z)));
}

fn c64_cos(z: vec2<f32>) -> vec2<f32> {
    return c64_cosh(c64_turned(z));
}

// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y): nothing cancels. From 10 on the real part is 1.
fn c64_tanh(z: vec2<f32>) -> vec2<f32> {
    let a = f32_abs(z.x);
    let far = f32_lt(10.0, a);
    let h = c64_sinh_cosh(select(a, 10.0, far));
    let u = f32_cos_sin(z.y, 0.0);
    let below = f32_keep(h.x * h.x) + f32_keep(u.x * u.x);
    let e = f32_exp(f32_neg(a));
    let sc = f32_keep(u.y * u.x);
    let turn = select(select(sc / below, 4.0 * sc * e * e, far), z.y, f32_is_zero(z.y));
    // The double angle of an infinite one is unknown; it counts as positive, as in C's libraries.
    let im = select(turn, f32_copysign(0.0, z.y), f32_is_inf(a) & f32_is_nan(u.x));
    let size = f32_copysign(select(f32_keep(h.x * h.y) / below, 1.0, far), z.x);
    let known = select(size, f32_lit(0x7fc00000u), f32_is_nan(a) | (f32_is_nan(u.x) & !f32_is_inf(a)));
    // 0 stays 0 with any angle.
    return vec2<f32>(select(known, z.x, f32_is_zero(a)), im);
}

fn c64_tan(z: vec2<f32>) -> vec2<f32> {
    return c64_turned_back(c64_tanh(c64_turned(z)));
}

// 1 / (1 + e^-z), and e^z / (1 + e^z) where the real part is negative. 1 + e^x cos y is (e^x - 1) cos y + 2 cos^2(y / 2): it does not cancel
// near the poles.
fn c64_sigmoid(z: vec2<f32>) -> vec2<f32> {
    let a = f32_neg(f32_abs(z.x));
    let e = c64_exp_parts(a, 0.0);
    let n = i32(e.y);
    let half = f32_cos(z.y * 0.5);
    // Against 1 an angle of nothing does not matter.
    let nothing = f32_is_inf(a);
    let u = select(f32_cos_sin(z.y, 0.0), vec2<f32>(1.0, f32_copysign(0.0, z.y)), nothing);
    let left = f32_lt(z.x, 0.0);
    let ec = f32_scale(e.x * u.x, n);
    let es = f32_scale(e.x * u.y, n);
    let whole = f32_keep(f32_expm1(f32_at_least(a, -50.0)) * u.x) + f32_keep(2.0 * half * half);
    let p = select(select(whole, a, f32_is_nan(a)), 1.0, nothing);
    let q = select(f32_neg(es), es, left);
    let by = f32_keep(1.0 / (f32_keep(p * p) + f32_keep(q * q)));
    let w = select(vec2<f32>(1.0, 0.0), vec2<f32>(ec, es), left);
    let re = f32_keep(f32_keep(w.x * p) + f32_keep(w.y * q)) * by;
    // 0 minus a product has the product's sign when that is 0.
    let im = select(f32_neg(q), f32_keep(w.y * p) - f32_keep(w.x * q), left) * by;
    return vec2<f32>(re, select(im, z.y, f32_is_zero(z.y)));
}

// Of a number whose parts are not negative: the real part of sqrt(1 - z) sqrt(1 + z), and the imaginary part of its arc sine (Kahan, "Branch
// cuts for complex elementary functions", 1987). No term is negative, so nothing cancels.
fn c64_asin_parts(x: f32, y: f32) -> vec2<f32> {
    let z = vec2<f32>(x, y);
    if c64_is_inf(z) | c64_is_nan(z) | f32_lt(1e18, x) | f32_lt(1e18, y) {
        let v = c64_log(z);
        return vec2<f32>(y, v.x + 0.693147182);
    }
    let down = c64_sqrt(vec2<f32>(1.0 - x, f32_neg(y)));
    let up = c64_sqrt(vec2<f32>(1.0 + x, y));
    let fall = f32_abs(down.y);
    let d = f32_keep(down.x * up.x) + f32_keep(fall * up.y);
    return vec2<f32>(d, f32_asinh(f32_keep(down.x * up.y) + f32_keep(fall * up.x)));
}

fn c64_asin(z: vec2<f32>) -> vec2<f32> {
    let v = c64_asin_parts(f32_abs(z.x), f32_abs(z.y));
    let re = select(f32_atan2(z.x, v.x), z.x, f32_is_zero(z.x));
    let lost = f32_is_zero(z.y) & f32_is_nan(z.x);
    return vec2<f32>(re, f32_copysign(select(v.y, f32_lit(0x7fc00000u), lost), z.y));
}

fn c64_acos(z: vec2<f32>) -> vec2<f32> {
    let v = c64_asin_parts(f32_abs(z.x), f32_abs(z.y));
    let re = select(f32_atan2(v.x, z.x), 1.57079637, f32_is_zero(z.x));
    return vec2<f32>(re, f32_copysign(v.y, f32_neg(z.y)));
}

fn c64_asinh(z: vec2<f32>) -> vec2<f32> {
    return c64_turned_back(c64_asin(c64_turned(z)));
}

fn c64_acosh(z: vec2<f32>) -> vec2<f32> {
    let v = c64_acos(z);
    return vec2<f32>(f32_abs(v.y), f32_copysign(v.x, z.y));
}

// log1p(4 x / ((1 - x)^2 + y^2)) / 4 and half the angle of ((1 - x)(1 + x) - y^2, 2 y), for |x|. Far away it is 1 / z, and half a turn.
fn c64_atanh(z: vec2<f32>) -> vec2<f32> {
    let x = f32_abs(z.x);
    let y = f32_abs(z.y);
    if c64_is_inf(z) | c64_is_nan(z) | f32_lt(1e9, x) | f32_lt(1e9, y) {
        let larger = f32_lt(y, x);
        let p = select(y, x, larger);
        let v = select(x, y, larger) / p;
        let inverse = select(f32_keep(select(v, 1.0, larger) / (v * v + 1.0)) / p, 0.0, c64_is_inf(z));
        let unknown = c64_is_nan(z) & !c64_is_inf(z);
        let re = select(select(inverse, f32_lit(0x7fc00000u), unknown), 0.0, f32_is_zero(x));
        let im = select(1.57079637, f32_lit(0x7fc00000u), f32_is_nan(y) | (f32_is_nan(x) & !f32_is_inf(y)));
        return vec2<f32>(f32_copysign(re, z.x), f32_copysign(im, z.y));
    }
    let less = 1.0 - x;
    let pole = f32_is_zero(less) & f32_is_zero(y);
    // (1 - x)^2 + y^2 vanishes there.
    let tiny = f32_is_zero(less) & f32_lt(y, 1e-15);
    let below = f32_keep(less * less) + f32_keep(y * y);
    let near = 0.25 * f32_log1p(f32_div(4.0 * x, select(below, 1.0, tiny)));
    let steep = 0.5 * (0.693147182 - f32_log(select(y, 1.0, pole)));
    let re = select(select(near, steep, tiny), f32_lit(0x7f800000u), pole);
    let im = 0.5 * f32_atan2(2.0 * y, f32_keep(less * (1.0 + x)) - f32_keep(y * y));
    return vec2<f32>(f32_copysign(re, z.x), f32_copysign(im, z.y));
}

fn c64_atan(z: vec2<f32>) -> vec2<f32> {
    return c64_turned_back(c64_atanh(c64_turned(z)));
}
