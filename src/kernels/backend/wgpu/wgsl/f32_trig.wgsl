// A word of 2 / pi in binary, after 32 zeros.
fn two_over_pi(i: u32) -> u32 {
    switch i {
        case 1u: { return 0xa2f9836eu; }
        case 2u: { return 0x4e441529u; }
        case 3u: { return 0xfc2757d1u; }
        case 4u: { return 0xf534ddc0u; }
        case 5u: { return 0xdb629599u; }
        case 6u: { return 0x3c439041u; }
        case 7u: { return 0xfe5163abu; }
        default: { return 0u; }
    }
}

// |x| less a multiple of pi / 2, as a sum of two numbers, and the multiple modulo 4: exact for every x (Payne and Hanek's reduction:
// the bits of 2 / pi that matter, times the bits of x, in integers). For finite x.
fn f32_quadrant(x: f32) -> vec3<f32> {
    let b = bitcast<u32>(x) & 0x7fffffffu;
    if b < 0x3f490fdbu {
        return vec3<f32>(bitcast<f32>(b), 0.0, 0.0);
    }
    let m = (b & 0x7fffffu) | 0x800000u;
    // Where the window of 96 bits begins, so that the product's first two bits are the multiple modulo 4.
    let start = (b >> 23u) - 120u;
    let i = start >> 5u;
    let k = start & 31u;
    let w0 = two_over_pi(i);
    let w1 = two_over_pi(i + 1u);
    let w2 = two_over_pi(i + 2u);
    let w3 = two_over_pi(i + 3u);
    let a0 = (w0 << k) | ((w1 >> 1u) >> (31u - k));
    let a1 = (w1 << k) | ((w2 >> 1u) >> (31u - k));
    let a2 = (w2 << k) | ((w3 >> 1u) >> (31u - k));
    let p2 = u32_mul_wide(m, a2);
    let p1 = u32_mul_wide(m, a1);
    let r1 = p1.x + p2.y;
    let r0 = m * a0 + p1.y + select(0u, 1u, r1 < p1.x);
    let fraction = vec2<u32>((r1 << 2u) | (p2.x >> 30u), (r0 << 2u) | (r1 >> 30u));
    let up = fraction.y >> 31u;
    let size = i64_abs(fraction);
    let zeros = select(countLeadingZeros(size.y), 32u + countLeadingZeros(size.x), size.y == 0u) & 63u;
    let n = u64_shl(size, zeros);
    let high = f32(n.y >> 8u) * 5.9604645e-8;
    let low = f32(((n.y & 255u) << 16u) | (n.x >> 16u)) * 3.5527137e-15;
    let r = f32_two_prod(high, 1.57079637);
    let rest = r.y + (high * -4.37113883e-8 + low * 1.57079637);
    let scale = select(1.0, -1.0, up == 1u) * f32_pow2(-i32(zeros));
    return vec3<f32>(r.x * scale, rest * scale, f32(((r0 >> 30u) + up) & 3u));
}

// sin(r + low) for |r| up to pi / 4.
fn f32_sin_quarter(r: f32, low: f32) -> f32 {
    let z = r * r;
    let p = -0.166666672 + z * (0.00833332911 + z * (-0.000198393347 + z * 2.71830868e-6));
    return r + (r * z * p + low * (1.0 - 0.5 * z));
}

// cos(r + low) for |r| up to pi / 4.
fn f32_cos_quarter(r: f32, low: f32) -> f32 {
    let z = r * r;
    let h = f32_keep(0.5 * z);
    let w = f32_keep(1.0 - h);
    let p = 0.0416666679 + z * (-0.00138888834 + z * (2.47995195e-5 + z * -2.72102085e-7));
    return w + (f32_keep(f32_keep(1.0 - w) - h) + (z * z * p - r * low));
}

fn f32_sin(x: f32) -> f32 {
    if (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u {
        return f32_lit(0x7fc00000u);
    }
    let v = f32_quadrant(x);
    let q = u32(v.z);
    let y = select(f32_sin_quarter(v.x, v.y), f32_cos_quarter(v.x, v.y), (q & 1u) == 1u);
    return bitcast<f32>(bitcast<u32>(y) ^ ((q & 2u) << 30u) ^ (bitcast<u32>(x) & 0x80000000u));
}

fn f32_cos(x: f32) -> f32 {
    if (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u {
        return f32_lit(0x7fc00000u);
    }
    let v = f32_quadrant(x);
    let q = u32(v.z);
    let y = select(f32_cos_quarter(v.x, v.y), f32_sin_quarter(v.x, v.y), (q & 1u) == 1u);
    return bitcast<f32>(bitcast<u32>(y) ^ (((q + 1u) & 2u) << 30u));
}

fn f32_tan(x: f32) -> f32 {
    if (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u {
        return f32_lit(0x7fc00000u);
    }
    let v = f32_quadrant(x);
    let s = f32_sin_quarter(v.x, v.y);
    let c = f32_cos_quarter(v.x, v.y);
    let odd = (u32(v.z) & 1u) == 1u;
    let y = f32_div(select(s, f32_neg(c), odd), select(c, s, odd));
    return bitcast<f32>(bitcast<u32>(y) ^ (bitcast<u32>(x) & 0x80000000u));
}

// atan(a / b) for 0 <= a <= b, b a normal number, as a sum of two.
fn f32_atan_ratio(a: f32, b: f32) -> vec2<f32> {
    let far = a > b * 0.414213562;
    let t = select(a, a - b, far) / select(b, a + b, far);
    let z = t * t;
    let p = -0.333333313 + z * (0.199999049 + z * (-0.142820403 + z * (0.110450663 + z * (-0.0847824588 + z * 0.0474792868))));
    let s = f32_two_sum(select(0.0, 0.785398185, far), t);
    return vec2<f32>(s.x, s.y + (t * z * p + select(0.0, -2.18556941e-8, far)));
}

fn f32_atan(x: f32) -> f32 {
    return f32_atan2(x, 1.0);
}

// |atan2(y, x)| as a sum of two numbers, of numbers that are not nan.
fn f32_atan2_size(y: f32, x: f32) -> vec2<f32> {
    let a = bitcast<u32>(y) & 0x7fffffffu;
    let b = bitcast<u32>(x) & 0x7fffffffu;
    let least = min(a, b);
    let most = max(a, b);
    // Both infinite: as if both were 1. Both zero: as if x were 1.
    let level = most == least;
    var h = select(bitcast<f32>(most), 1.0, (most == 0u) | (level & (most == 0x7f800000u)));
    var l = select(bitcast<f32>(least), 1.0, level & (most == 0x7f800000u));
    // Kept from the ends of the range, where quotients are not accurate.
    let scale = select(select(1.0, 16777216.0, most < 0x20000000u), 5.9604645e-8, most > 0x7d800000u);
    h = select(h, 1e30, most == 0x7f800000u & !level) * scale;
    l = select(l * scale, 0.0, most == 0x7f800000u & !level);
    h = select(h, 1.0, most == 0u);
    let r = f32_atan_ratio(l, h);
    // The rest comes before the whole: r is small where nothing is added.
    let steep = a > b;
    let flipped = f32_is_negative(x);
    var s = r;
    if steep {
        let v = f32_two_sum(1.57079637, f32_neg(r.x));
        s = vec2<f32>(v.x, v.y + (-4.37113883e-8 - r.y));
    }
    if flipped {
        let v = f32_two_sum(3.14159274, f32_neg(s.x));
        s = vec2<f32>(v.x, v.y + (-8.74227766e-8 - s.y));
    }
    return s;
}

fn f32_atan2(y: f32, x: f32) -> f32 {
    let s = f32_atan2_size(y, x);
    return select(f32_copysign(s.x + s.y, y), f32_lit(0x7fc00000u), f32_is_nan(x) | f32_is_nan(y));
}

// asin(t) - t for 0 <= t <= 0.5.
fn f32_asin_tail(t: f32) -> f32 {
    let z = t * t;
    let p = 0.166666597 + z * (0.0750051066 + z * (0.0445157215 + z * (0.0318176076 + z * (0.0144026149 + z * 0.0375651866))));
    return t * z * p;
}

fn f32_asin(x: f32) -> f32 {
    let a = f32_abs(x);
    let outer = a > 0.5;
    let t = select(a, f32_sqrt((1.0 - a) * 0.5), outer);
    let tail = f32_asin_tail(t);
    let v = f32_two_sum(1.57079637, -2.0 * t);
    let y = select(t + tail, v.x + (v.y + (-4.37113883e-8 - 2.0 * tail)), outer);
    return select(f32_lit(0x7fc00000u), f32_copysign(y, x), f32_le(a, 1.0));
}

fn f32_acos(x: f32) -> f32 {
    let a = f32_abs(x);
    let outer = a > 0.5;
    let t = select(a, f32_sqrt((1.0 - a) * 0.5), outer);
    let tail = f32_asin_tail(t);
    let negative = f32_is_negative(x);
    let far = f32_two_sum(3.14159274, -2.0 * t);
    let steep = select(2.0 * (t + tail), far.x + (far.y + (-8.74227766e-8 - 2.0 * tail)), negative);
    let v = f32_two_sum(1.57079637, select(f32_neg(t), t, negative));
    let y = select(v.x + (v.y + (-4.37113883e-8 + select(f32_neg(tail), tail, negative))), steep, outer);
    return select(f32_lit(0x7fc00000u), y, f32_le(a, 1.0));
}

fn f32_hypot(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    let most = max(a, b);
    // Scaled so that the larger one is about 1.
    let e = clamp(i32(most >> 23u) - 127, -126, 126);
    let scale = f32_pow2(-e);
    let h = bitcast<f32>(most) * scale;
    let l = bitcast<f32>(min(a, b)) * scale;
    let r = f32_sqrt(h * h + l * l);
    let back = f32_keep(r * f32_pow2(e / 2)) * f32_pow2(e - e / 2);
    let inf = (a == 0x7f800000u) | (b == 0x7f800000u);
    let nan = !inf & (most > 0x7f800000u);
    return select(select(back, f32_lit(0x7f800000u), inf), f32_lit(0x7fc00000u), nan);
}
