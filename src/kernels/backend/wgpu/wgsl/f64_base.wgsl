// The float64 of these bits.
fn f64_from_bits(low: u32, high: u32) -> f64 {
    return bitcast<f64>((u64(high) << 32u) | u64(low));
}

// The same, not known when the shader is compiled.
fn f64_lit(low: u32, high: u32) -> f64 {
    return f64_from_bits(low ^ unknown, high);
}

// The bits of x, low word first.
fn f64_words(x: f64) -> vec2<u32> {
    let b = bitcast<u64>(x);
    return vec2<u32>(u32(b & 0xfffffffflu), u32(b >> 32u));
}

fn f64_nan() -> f64 {
    return f64_lit(0u, 0x7ff80000u);
}

// x, as a value that is neither fused with what comes before or after it nor reordered.
fn f64_keep(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) ^ u64(unknown));
}

fn f64_high(x: f64) -> u32 {
    return u32(bitcast<u64>(x) >> 32u);
}

fn f64_is_nan(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

fn f64_is_inf(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu;
}

fn f64_is_zero(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0lu;
}

fn f64_is_negative(x: f64) -> bool {
    return f64_high(x) >= 0x80000000u;
}

// Integers in the order of the numbers, nan apart; both zeros are 0.
fn f64_order(x: f64) -> i64 {
    let b = bitcast<u64>(x);
    return bitcast<i64>(select(b, 0x8000000000000000lu - b, b >= 0x8000000000000000lu));
}

fn f64_lt(a: f64, b: f64) -> bool {
    return (f64_order(a) < f64_order(b)) & !(f64_is_nan(a) | f64_is_nan(b));
}

fn f64_le(a: f64, b: f64) -> bool {
    return (f64_order(a) <= f64_order(b)) & !(f64_is_nan(a) | f64_is_nan(b));
}

fn f64_eq(a: f64, b: f64) -> bool {
    return (f64_order(a) == f64_order(b)) & !(f64_is_nan(a) | f64_is_nan(b));
}

// nan if either is nan.
fn f64_max(a: f64, b: f64) -> f64 {
    return select(b, a, f64_lt(b, a) | f64_is_nan(a));
}

fn f64_min(a: f64, b: f64) -> f64 {
    return select(b, a, f64_lt(a, b) | f64_is_nan(a));
}

// Kept in a range; what becomes of nan is of no account.
fn f64_clamp(x: f64, low: f64, high: f64) -> f64 {
    return select(select(low, x, f64_lt(low, x)), high, f64_lt(high, x));
}

fn f64_abs(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) & 0x7ffffffffffffffflu);
}

fn f64_neg(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) ^ 0x8000000000000000lu);
}

fn f64_copysign(x: f64, s: f64) -> f64 {
    return bitcast<f64>((bitcast<u64>(x) & 0x7ffffffffffffffflu) | (bitcast<u64>(s) & 0x8000000000000000lu));
}

fn f64_sign(x: f64) -> f64 {
    let o = f64_order(x);
    let s = select(select(0.0lf, 1.0lf, o > 0li), -1.0lf, o < 0li);
    return select(s, 0.0lf, f64_is_nan(x));
}

// Towards zero.
fn f64_trunc(x: f64) -> f64 {
    let b = bitcast<u64>(x);
    let e = i32((f64_high(x) >> 20u) & 0x7ffu) - 1023;
    let mask = select(0xfffffffffffffffflu << u32(52 - clamp(e, 0, 52)), 0x8000000000000000lu, e < 0);
    return bitcast<f64>(b & mask);
}

fn f64_floor(x: f64) -> f64 {
    let t = f64_trunc(x);
    return select(t, t - 1.0lf, f64_is_negative(x) & (bitcast<u64>(t) != bitcast<u64>(x)));
}

fn f64_ceil(x: f64) -> f64 {
    return f64_neg(f64_floor(f64_neg(x)));
}

// To the nearest whole number, halves to even.
fn f64_round(x: f64) -> f64 {
    let a = f64_abs(x);
    let y = f64_keep(f64_keep(a) + 4503599627370496.0lf) - 4503599627370496.0lf;
    return select(f64_copysign(y, x), x, bitcast<u64>(a) >= 0x4330000000000000lu);
}

fn f64_div(a: f64, b: f64) -> f64 {
    return a / b;
}

fn f64_sqrt(x: f64) -> f64 {
    let edge = select(x, f64_nan(), f64_lt(x, 0.0lf));
    return select(edge, sqrt(x), f64_lt(0.0lf, x) & !f64_is_inf(x));
}

// The remainder of the division truncated towards zero, exact: in integers, eleven bits of the quotient at a time.
fn f64_fmod(x: f64, y: f64) -> f64 {
    let a = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    let b = bitcast<u64>(y) & 0x7ffffffffffffffflu;
    if (a >= 0x7ff0000000000000lu) | (b > 0x7ff0000000000000lu) | (b == 0lu) {
        return f64_nan();
    }
    if a < b {
        return x;
    }
    let ea = max(u32(a >> 52u), 1u);
    let eb = max(u32(b >> 52u), 1u);
    let ma = (a & 0xffffffffffffflu) | select(0lu, 0x10000000000000lu, a >= 0x10000000000000lu);
    let mb = (b & 0xffffffffffffflu) | select(0lu, 0x10000000000000lu, b >= 0x10000000000000lu);
    var r = ma % mb;
    var left = ea - eb;
    while left > 0u {
        let k = min(left, 11u);
        r = (r << k) % mb;
        left -= k;
    }
    let high = u32(r >> 32u);
    let zeros = select(countLeadingZeros(high), 32u + countLeadingZeros(u32(r & 0xfffffffflu)), high == 0u);
    let up = min(zeros - 11u, eb - 1u);
    let m = r << up;
    let bits = select(m, m + (u64(eb - up - 1u) << 52u), m >= 0x10000000000000lu);
    return bitcast<f64>(bits | (bitcast<u64>(x) & 0x8000000000000000lu));
}

// The remainder with the sign of the divisor.
fn f64_remainder(x: f64, y: f64) -> f64 {
    let r = f64_fmod(x, y);
    let other = !f64_is_zero(r) & (f64_lt(y, 0.0lf) != f64_lt(r, 0.0lf));
    return select(r, r + y, other);
}

// The quotient rounded towards minus infinity.
fn f64_div_floor(a: f64, b: f64) -> f64 {
    let r = f64_fmod(a, b);
    let exact = f64_keep(a - r) / b;
    let other = !f64_is_zero(r) & (f64_lt(b, 0.0lf) != f64_lt(r, 0.0lf));
    let q = f64_keep(select(exact, exact - 1.0lf, other));
    let f = f64_floor(q);
    let whole = select(f, f + 1.0lf, f64_lt(0.5lf, f64_keep(q - f)));
    let ratio = a / b;
    let y = select(whole, f64_copysign(0.0lf, ratio), f64_is_zero(q));
    return select(y, ratio, f64_is_zero(b));
}

fn f64_div_trunc(a: f64, b: f64) -> f64 {
    return f64_trunc(a / b);
}

// Truncated; nan and what is out of range become the least i64.
fn f64_to_i64(x: f64) -> vec2<u32> {
    let b = bitcast<u64>(x);
    let e = u32(b >> 52u) & 0x7ffu;
    let m = (b & 0xffffffffffffflu) | 0x10000000000000lu;
    let size = select(m >> min(1075u - e, 63u), m << ((e - 1075u) & 63u), e >= 1075u);
    let two = vec2<u32>(u32(size & 0xfffffffflu), u32(size >> 32u));
    let signed = select(two, i64_neg(two), f64_is_negative(x));
    return select(signed, vec2<u32>(0u, 0x80000000u), e >= 1086u);
}

fn f64_to_i32(x: f64) -> i32 {
    let inside = f64_lt(f64_abs(x), 2147483648.0lf);
    return select(bitcast<i32>(0x80000000u), bitcast<i32>(f64_to_i64(x).x), inside);
}

fn i64_to_f64(x: vec2<u32>) -> f64 {
    return f64(bitcast<i32>(x.y)) * 4294967296.0lf + f64(x.x);
}
