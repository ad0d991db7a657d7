// A word of 2 / pi in binary, after 64 zeros.
fn two_over_pi_long(i: u32) -> u32 {
    switch i {
        case 2u: { return 0xa2f9836eu; }
        case 3u: { return 0x4e441529u; }
        case 4u: { return 0xfc2757d1u; }
        case 5u: { return 0xf534ddc0u; }
        case 6u: { return 0xdb629599u; }
        case 7u: { return 0x3c439041u; }
        case 8u: { return 0xfe5163abu; }
        case 9u: { return 0xdebbc561u; }
        case 10u: { return 0xb7246e3au; }
        case 11u: { return 0x424dd2e0u; }
        case 12u: { return 0x06492eeau; }
        case 13u: { return 0x09d1921cu; }
        case 14u: { return 0xfe1deb1cu; }
        case 15u: { return 0xb129a73eu; }
        case 16u: { return 0xe88235f5u; }
        case 17u: { return 0x2ebb4484u; }
        case 18u: { return 0xe99c7026u; }
        case 19u: { return 0xb45f7e41u; }
        case 20u: { return 0x3991d639u; }
        case 21u: { return 0x835339f4u; }
        case 22u: { return 0x9c845f8bu; }
        case 23u: { return 0xbdf9283bu; }
        case 24u: { return 0x1ff897ffu; }
        case 25u: { return 0xde05980fu; }
        case 26u: { return 0xef2f118bu; }
        case 27u: { return 0x5a0a6d1fu; }
        case 28u: { return 0x6d367ecfu; }
        case 29u: { return 0x27cb09b7u; }
        case 30u: { return 0x4f463f66u; }
        case 31u: { return 0x9e5fea2du; }
        case 32u: { return 0x7527bac7u; }
        case 33u: { return 0xebe5f17bu; }
        case 34u: { return 0x3d0739f7u; }
        case 35u: { return 0x8a5292eau; }
        case 36u: { return 0x6bfb5fb1u; }
        case 37u: { return 0x1f8d5d08u; }
        case 38u: { return 0x56033046u; }
        case 39u: { return 0xfc7b6babu; }
        case 40u: { return 0xf0cfbc20u; }
        default: { return 0u; }
    }
}

// A word of 2 / pi in binary that begins at bit k of word i.
fn two_over_pi_at(i: u32, k: u32) -> u64 {
    let low = (two_over_pi_long(i + 1u) >> 1u) >> (31u - k);
    return u64((two_over_pi_long(i) << k) | low);
}

// |x| less a multiple of pi / 2, as a sum of two, and the multiple modulo 4 (the last is 0): exact for every finite x. As f32_quadrant,
// with 192 bits of 2 / pi.
fn f64_quadrant(x: f64) -> vec4<f64> {
    let b = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    if b < 0x3fe921fb54442d18lu {
        return vec4<f64>(bitcast<f64>(b), 0.0lf, 0.0lf, 0.0lf);
    }
    let m = (b & 0xffffffffffffflu) | 0x10000000000000lu;
    let ml = m & 0xfffffffflu;
    let mh = m >> 32u;
    let start = u32(b >> 52u) - 1013u;
    let i = start >> 5u;
    let k = start & 31u;
    // The product's lowest six words, from the last: each takes the low words of two products and the high words of two before.
    var words = array<u64, 6>();
    var carry = 0lu;
    var before = 0lu;
    for (var j = 0u; j < 6u; j++) {
        let w = two_over_pi_at(i + 5u - j, k);
        let p = ml * w;
        let q = mh * before;
        let sum = carry + (p & 0xfffffffflu) + (q & 0xfffffffflu);
        words[j] = sum & 0xfffffffflu;
        carry = (sum >> 32u) + (p >> 32u) + (q >> 32u);
        before = w;
    }
    let high = (words[5] << 32u) | words[4];
    let middle = (words[3] << 32u) | words[2];
    let low = (words[1] << 32u) | words[0];
    // The fraction, 128 bits of it, with the sign that brings it between -1/2 and 1/2.
    var f0 = (high << 2u) | (middle >> 62u);
    var f1 = (middle << 2u) | (low >> 62u);
    let up = u32(f0 >> 63u);
    if up == 1u {
        f1 = ~f1 + 1lu;
        f0 = ~f0 + select(0lu, 1lu, f1 == 0lu);
    }
    let top = u32(f0 >> 32u);
    let zeros = select(countLeadingZeros(top), 32u + countLeadingZeros(u32(f0 & 0xfffffffflu)), top == 0u) & 63u;
    let n0 = (f0 << zeros) | ((f1 >> 1u) >> (63u - zeros));
    let n1 = f1 << zeros;
    let a = f64(n0 >> 11u) * 1.1102230246251565e-16lf;
    let c = f64(((n0 & 0x7fflu) << 42u) | (n1 >> 22u)) * 1.2325951644078309e-32lf;
    let r = f64_two_prod(a, 1.5707963267948966lf);
    let rest = r.y + (a * 6.123233995736766e-17lf + c * 1.5707963267948966lf);
    let scale = select(1.0lf, -1.0lf, up == 1u) * f64_pow2(-i32(zeros));
    return vec4<f64>(r.x * scale, rest * scale, f64((u32(high >> 62u) + up) & 3u), 0.0lf);
}

// sin(h + l) as a sum of two, for |h| up to pi / 4.
fn f64_sin_quarter(h: f64, l: f64) -> vec2<f64> {
    let z = h * h;
    let p = -0.16666666666666666lf + z * (0.008333333333333331lf + z * (-0.0001984126984126504lf + z * (2.755731921932058e-06lf
        + z * (-2.50521062259944e-08lf + z * (1.6058530596645953e-10lf + z * -7.586636882825159e-13lf)))));
    return f64_fast_two_sum(h, h * z * p + (l - 0.5lf * z * l));
}

// cos(h + l) as a sum of two, for |h| up to pi / 4.
fn f64_cos_quarter(h: f64, l: f64) -> vec2<f64> {
    let s = f64_two_prod(h, h);
    let z = s.x;
    let p = 0.041666666666666664lf + z * (-0.0013888888888888887lf + z * (2.4801587301584632e-05lf + z * (-2.755731922139249e-07lf
        + z * (2.0876755787492604e-09lf + z * (-1.1470460319209511e-11lf + z * 4.745838412531023e-14lf)))));
    let a = f64_fast_two_sum(1.0lf, -0.5lf * z);
    return f64_fast_two_sum(a.x, a.y + ((z * z * p - h * l) - 0.5lf * s.y));
}

fn f64_sin(x: f64) -> f64 {
    if f64_is_nan(x) | f64_is_inf(x) {
        return f64_nan();
    }
    let v = f64_quadrant(x);
    let q = u32(v.z);
    let y = select(f64_sin_quarter(v.x, v.y), f64_cos_quarter(v.x, v.y), (q & 1u) == 1u);
    let turn = u64((q & 2u) << 30u) << 32u;
    return bitcast<f64>(bitcast<u64>(y.x + y.y) ^ turn ^ (bitcast<u64>(x) & 0x8000000000000000lu));
}

fn f64_cos(x: f64) -> f64 {
    if f64_is_nan(x) | f64_is_inf(x) {
        return f64_nan();
    }
    let v = f64_quadrant(x);
    let q = u32(v.z);
    let y = select(f64_cos_quarter(v.x, v.y), f64_sin_quarter(v.x, v.y), (q & 1u) == 1u);
    return bitcast<f64>(bitcast<u64>(y.x + y.y) ^ (u64(((q + 1u) & 2u) << 30u) << 32u));
}

fn f64_tan(x: f64) -> f64 {
    if f64_is_nan(x) | f64_is_inf(x) {
        return f64_nan();
    }
    let v = f64_quadrant(x);
    let s = f64_sin_quarter(v.x, v.y);
    let c = f64_cos_quarter(v.x, v.y);
    let odd = (u32(v.z) & 1u) == 1u;
    let t = f64_div_sums(select(s, -c, odd), select(c, s, odd));
    let y = bitcast<f64>(bitcast<u64>(t.x + t.y) ^ (bitcast<u64>(x) & 0x8000000000000000lu));
    return select(y, x, f64_lt(f64_abs(x), 1e-9lf));
}

// atan(a / b) as a sum of two, for a, b >= 0, not both 0, far from the ends of the range.
fn f64_atan_ratio(a: f64, b: f64) -> vec2<f64> {
    let steep = a > b * 2.414213562373095lf;
    let middle = !steep & (a > b * 0.41421356237309503lf);
    let num = select(select(vec2<f64>(a, 0.0lf), f64_two_sum(a, -b), middle), vec2<f64>(-b, 0.0lf), steep);
    let den = select(select(vec2<f64>(b, 0.0lf), f64_two_sum(a, b), middle), vec2<f64>(a, 0.0lf), steep);
    let d = f64_div_sums(num, den);
    let t = d.x;
    // The remainder of a quotient near the subnormals is noise.
    let tl = select(d.y, 0.0lf, abs(t) < 1e-290lf);
    let z = t * t;
    let p = -0.3333333333333333lf + z * (0.19999999999999993lf + z * (-0.1428571428571149lf + z * (0.11111111110751482lf
        + z * (-0.0909090906681608lf + z * (0.07692306729194896lf + z * (-0.06666641869131183lf + z * (0.058819230561140225lf
        + z * (-0.05258020272656758lf + z * (0.04719259188242093lf + z * (-0.04103887546862687lf + z * (0.030622995553735516lf
        + z * -0.013905374533113234lf)))))))))));
    let off = select(select(0.0lf, 0.7853981633974483lf, middle), 1.5707963267948966lf, steep);
    let off_low = select(select(0.0lf, 3.061616997868383e-17lf, middle), 6.123233995736766e-17lf, steep);
    let h = f64_two_sum(off, t);
    return f64_fast_two_sum(h.x, h.y + (t * z * p + (tl - z * tl) + off_low));
}

fn f64_atan(x: f64) -> f64 {
    return f64_atan2(x, 1.0lf);
}

fn f64_atan2(y: f64, x: f64) -> f64 {
    let a = f64_abs(y);
    let b = f64_abs(x);
    let nan = f64_is_nan(x) | f64_is_nan(y);
    let ai = f64_is_inf(a);
    let bi = f64_is_inf(b);
    let top = f64_max(a, b);
    // Far from overflow and from the subnormals: a quotient is what counts.
    let factor = select(select(1.0lf, 1e-20lf, f64_lt(1e290lf, top)), 1.766847064778384e72lf, f64_lt(top, 1e-250lf));
    var p = a * factor;
    var q = select(b * factor, 1.0lf, f64_is_zero(top));
    if ai | bi | nan {
        p = select(0.0lf, 1.0lf, ai);
        q = select(0.0lf, 1.0lf, bi | nan);
    }
    let h = f64_atan_ratio(p, q);
    let s = f64_two_sum(3.141592653589793lf, -h.x);
    let left = s.x + (s.y + (1.2246467991473532e-16lf - h.y));
    let flipped = f64_is_negative(x);
    var r = select(h.x + h.y, left, flipped);
    // Where the angle is the quotient itself, it is rounded only once.
    r = select(r, p / q, f64_lt(p, q * 1e-9lf) & !flipped);
    return select(f64_copysign(r, y), f64_nan(), nan);
}

// asin(t) - t for |t| up to 0.5.
fn f64_asin_rest(t: f64) -> f64 {
    let z = t * t;
    let p = 0.16666666666666669lf + z * (0.07499999999998425lf + z * (0.04464285714637338lf + z * (0.030381944137085216lf
        + z * (0.022372173002005596lf + z * (0.017352391265909227lf + z * (0.013971235301124539lf + z * (0.011478952690257387lf
        + z * (0.010324318288744113lf + z * (0.00545087818772055lf + z * (0.017419357964884856lf + z * (-0.014881409392818066lf
        + z * 0.02877844261259304lf)))))))))));
    return t * z * p;
}

fn f64_asin(x: f64) -> f64 {
    let a = f64_abs(x);
    let outer = f64_lt(0.5lf, a);
    let s = f64_sqrt_sum(vec2<f64>(select(0.25lf, (1.0lf - a) * 0.5lf, f64_le(a, 1.0lf)), 0.0lf));
    let rest = f64_asin_rest(select(a, s.x, outer));
    let h = f64_two_sum(1.5707963267948966lf, -2.0lf * s.x);
    let far = h.x + (h.y + (6.123233995736766e-17lf - 2.0lf * (s.y + rest)));
    return select(f64_nan(), f64_copysign(select(a + rest, far, outer), x), f64_le(a, 1.0lf));
}

fn f64_acos(x: f64) -> f64 {
    let a = f64_abs(x);
    let outer = f64_lt(0.5lf, a);
    let s = f64_sqrt_sum(vec2<f64>(select(0.25lf, (1.0lf - a) * 0.5lf, f64_le(a, 1.0lf)), 0.0lf));
    let rest = f64_asin_rest(select(x, s.x, outer));
    let near = 2.0lf * s.x + 2.0lf * (s.y + rest);
    let h = f64_two_sum(3.141592653589793lf, -2.0lf * s.x);
    let far = h.x + (h.y + (1.2246467991473532e-16lf - 2.0lf * (s.y + rest)));
    let c = f64_two_sum(1.5707963267948966lf, -x);
    let inner = c.x + (c.y + (6.123233995736766e-17lf - rest));
    let y = select(inner, select(near, far, f64_lt(x, 0.0lf)), outer);
    return select(f64_nan(), y, f64_le(a, 1.0lf));
}
