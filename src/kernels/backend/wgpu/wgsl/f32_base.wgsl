// A zero that no compiler knows: `main` sets it from a parameter. See the library's documentation.
var<private> unknown: u32;

// x, as a value that is neither fused with what comes before or after it nor reordered.
fn f32_keep(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ unknown);
}

// The nearest float16, of two equally near ones the even one.
fn f16_round(x: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    if a > 0x7f800000u { return x; }
    var r = (a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u;
    if r >= 0x47800000u { r = 0x7f800000u; }
    // Subnormals are multiples of 2^-24, to which adding 1/2 rounds.
    if a < 0x38800000u { r = bitcast<u32>(f32_keep(f32_keep(bitcast<f32>(a)) + 0.5) - 0.5); }
    return bitcast<f32>(r | (bitcast<u32>(x) & 0x80000000u));
}

// The nearest bfloat16.
fn bf16_round(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    if (b & 0x7fffffffu) > 0x7f800000u { return x; }
    return bitcast<f32>((b + 0x7fffu + ((b >> 16u) & 1u)) & 0xffff0000u);
}

// The number of these bits, not known when the shader is compiled: nan and infinities are allowed.
fn f32_lit(bits: u32) -> f32 {
    return bitcast<f32>(bits ^ unknown);
}

// The built-in min, max and clamp are not used on floats: beside a test for nan Mesa's compiler makes wrong code of them. Behind OpenGL it
// makes them of a choice between two numbers by their order, too, unless what is compared is not seen to be one of them.
fn f32_at_most(x: f32, high: f32) -> f32 {
    return select(x, high, high < f32_keep(x));
}

fn f32_at_least(x: f32, low: f32) -> f32 {
    return select(x, low, low > f32_keep(x));
}

fn f32_clamp(x: f32, low: f32, high: f32) -> f32 {
    return f32_at_most(f32_at_least(x, low), high);
}

fn f32_is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn f32_is_inf(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

fn f32_is_zero(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0u;
}

fn f32_is_negative(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x80000000u) != 0u;
}

// Integers in the order of the numbers, nan apart; both zeros are 0.
fn f32_order(x: f32) -> i32 {
    let b = bitcast<i32>(x);
    return select(b, bitcast<i32>(0x80000000u - bitcast<u32>(b)), b < 0);
}

// Comparisons by bits: drivers may fold those of numbers as if nan did not exist, and may flush subnormals.
fn f32_lt(a: f32, b: f32) -> bool {
    return (f32_order(a) < f32_order(b)) & !(f32_is_nan(a) | f32_is_nan(b));
}

fn f32_le(a: f32, b: f32) -> bool {
    return (f32_order(a) <= f32_order(b)) & !(f32_is_nan(a) | f32_is_nan(b));
}

fn f32_eq(a: f32, b: f32) -> bool {
    return (f32_order(a) == f32_order(b)) & !(f32_is_nan(a) | f32_is_nan(b));
}

// nan if either is nan.
fn f32_max(a: f32, b: f32) -> f32 {
    return select(b, a, f32_lt(b, a) | f32_is_nan(a));
}

fn f32_min(a: f32, b: f32) -> f32 {
    return select(b, a, f32_lt(a, b) | f32_is_nan(a));
}

fn f32_abs(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}

fn f32_neg(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}

fn f32_copysign(x: f32, s: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(s) & 0x80000000u));
}

fn f32_sign(x: f32) -> f32 {
    let o = f32_order(x);
    return select(f32(sign(o)), 0.0, f32_is_nan(x));
}

// Towards zero.
fn f32_trunc(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    let e = i32((b >> 23u) & 255u) - 127;
    let mask = select(0xffffffffu << u32(23 - clamp(e, 0, 23)), 0x80000000u, e < 0);
    return bitcast<f32>(b & mask);
}

fn f32_floor(x: f32) -> f32 {
    let t = f32_trunc(x);
    return select(t, t - 1.0, f32_is_negative(x) & (bitcast<u32>(t) != bitcast<u32>(x)));
}

fn f32_ceil(x: f32) -> f32 {
    return f32_neg(f32_floor(f32_neg(x)));
}

// To the nearest whole number, halves to even.
fn f32_round(x: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let y = f32_keep(f32_keep(bitcast<f32>(a)) + 8388608.0) - 8388608.0;
    return select(f32_copysign(y, x), x, a >= 0x4b000000u);
}

// The quotient, correctly rounded: WGSL grants 2.5 units in the last place. The remainder of the driver's quotient is exact in
// integers modulo 2^32, because it is small. At the ends of the range the driver's quotient stands. Of a divisor beyond 2^126 that may be
// the product with a reciprocal that is flushed to 0: both are divided by 8 before.
fn f32_div(a: f32, b: f32) -> f32 {
    let ba = bitcast<u32>(a);
    let bb = bitcast<u32>(b);
    let ea = (ba >> 23u) & 255u;
    let eb = (bb >> 23u) & 255u;
    let scale = select(1.0, 0.125, eb >= 252u);
    var bq = bitcast<u32>(f32_keep(a * scale) / f32_keep(b * scale));
    let ma = (ba & 0x7fffffu) | 0x800000u;
    let mb = (bb & 0x7fffffu) | 0x800000u;
    let m = bitcast<i32>(mb);
    let inside = (ea - 1u < 254u) & (eb - 1u < 254u) & (((bq >> 23u) & 255u) - 1u < 254u);
    for (var i = select(5, 0, inside); i < 5; i++) {
        let mq = (bq & 0x7fffffu) | 0x800000u;
        let r = bitcast<i32>((ma << ((ea + 150u - ((bq >> 23u) & 255u) - eb) & 31u)) - mq * mb);
        // Below a power of 2, but the least, the units are half as large.
        let twice = 2 * select(r, 2 * r, (mq == 0x800000u) & (bq << 1u != 0x1000000u) & (r < 0));
        if (twice <= m) & (twice >= -m) {
            break;
        }
        bq = select(bq - 1u, bq + 1u, r > 0);
        if ((bq >> 23u) & 255u) - 1u >= 254u {
            break;
        }
    }
    return bitcast<f32>(bq);
}

// The square root, correctly rounded; see f32_div.
fn f32_sqrt(x: f32) -> f32 {
    let bx = bitcast<u32>(x);
    let ex = bx >> 23u;
    if ex - 1u >= 254u {
        let finite = select(sqrt(x), f32_lit(0x7fc00000u), bx > 0x80000000u);
        return select(finite, x, (bx == 0x80000000u) | ((bx >= 0x7f800000u) & (bx < 0x80000000u)));
    }
    let mx = (bx & 0x7fffffu) | 0x800000u;
    var by = bitcast<u32>(sqrt(x));
    for (var i = 0; i < 5; i++) {
        let low = (by & 0x7fffffu) | 0x800000u;
        let r = bitcast<i32>((mx << ((ex + 150u - 2u * (by >> 23u)) & 31u)) - low * low);
        let fine = (low == 0x800000u) & (r < 0);
        let m = bitcast<i32>(select(low, 0x1000000u, fine));
        let rest = select(r, 4 * r, fine);
        if (rest <= m) & (rest > -m) {
            break;
        }
        by = select(by - 1u, by + 1u, rest > 0);
    }
    return bitcast<f32>(by);
}

// The remainder of the division truncated towards zero, exact: in integers, eight bits of the quotient at a time.
fn f32_fmod(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    if (a >= 0x7f800000u) | (b > 0x7f800000u) | (b == 0u) {
        return f32_lit(0x7fc00000u);
    }
    if a < b {
        return x;
    }
    let ea = max(a >> 23u, 1u);
    let eb = max(b >> 23u, 1u);
    let ma = (a & 0x7fffffu) | select(0u, 0x800000u, a >= 0x800000u);
    let mb = (b & 0x7fffffu) | select(0u, 0x800000u, b >= 0x800000u);
    var r = ma % mb;
    var left = ea - eb;
    while left > 0u {
        let k = min(left, 8u);
        r = (r << k) % mb;
        left -= k;
    }
    // r < 2^24 units of 2^(eb - 150).
    let up = min(countLeadingZeros(r) - 8u, eb - 1u);
    let m = r << up;
    let bits = select(m, m + ((eb - up - 1u) << 23u), m >= 0x800000u);
    return bitcast<f32>(bits | (bitcast<u32>(x) & 0x80000000u));
}

// The remainder with the sign of the divisor.
fn f32_remainder(x: f32, y: f32) -> f32 {
    let r = f32_fmod(x, y);
    let other = !f32_is_zero(r) & (f32_lt(y, 0.0) != f32_lt(r, 0.0));
    return select(r, r + y, other);
}

// The quotient rounded towards minus infinity.
fn f32_div_floor(a: f32, b: f32) -> f32 {
    let r = f32_fmod(a, b);
    let exact = f32_div(f32_keep(a - r), b);
    let other = !f32_is_zero(r) & (f32_lt(b, 0.0) != f32_lt(r, 0.0));
    let q = f32_keep(select(exact, exact - 1.0, other));
    let f = f32_floor(q);
    let whole = select(f, f + 1.0, f32_lt(0.5, f32_keep(q - f)));
    let ratio = f32_div(a, b);
    let y = select(whole, f32_copysign(0.0, ratio), f32_is_zero(q));
    return select(y, ratio, f32_is_zero(b));
}

fn f32_div_trunc(a: f32, b: f32) -> f32 {
    return f32_trunc(f32_div(a, b));
}

// Truncated; nan and what is out of range become the least i32.
fn f32_to_i32(x: f32) -> i32 {
    let inside = (bitcast<u32>(x) & 0x7fffffffu) < 0x4f000000u;
    return select(bitcast<i32>(0x80000000u), i32(select(0.0, x, inside)), inside);
}

fn i32_abs(x: i32) -> i32 {
    return select(x, 0 - x, x < 0);
}

// Quotient towards zero; 0 for a divisor of 0. The quotient of the least i32 and -1 wraps around.
fn i32_div_trunc(a: i32, b: i32) -> i32 {
    let simple = (b != 0) & (b != -1);
    return select(select(0, 0 - a, b == -1), a / select(1, b, simple), simple);
}

fn i32_fmod(a: i32, b: i32) -> i32 {
    return select(a - i32_div_trunc(a, b) * b, 0, b == 0);
}

fn i32_div_floor(a: i32, b: i32) -> i32 {
    let r = i32_fmod(a, b);
    return i32_div_trunc(a, b) - select(0, 1, (r != 0) & ((r < 0) != (b < 0)));
}

fn i32_remainder(a: i32, b: i32) -> i32 {
    let r = i32_fmod(a, b);
    return r + select(0, b, (r != 0) & ((r < 0) != (b < 0)));
}

fn i32_pow(x: i32, n: i32) -> i32 {
    if n < 0 {
        return select(select(0, select(1, -1, (n & 1) == 1), x == -1), 1, x == 1);
    }
    var b = x;
    var e = n;
    var acc = 1;
    while e > 0 {
        if (e & 1) == 1 {
            acc *= b;
        }
        b *= b;
        e = e >> 1u;
    }
    return acc;
}

// 0 where the count is negative or not below 32.
fn i32_shl(x: i32, n: i32) -> i32 {
    return select(0, x << (bitcast<u32>(n) & 31u), (n >= 0) & (n < 32));
}

// The sign where the count is negative or not below 32.
fn i32_shr(x: i32, n: i32) -> i32 {
    return x >> select(31u, bitcast<u32>(n) & 31u, (n >= 0) & (n < 32));
}

// uint8 in a u32 below 256.
fn u8_div(a: u32, b: u32) -> u32 {
    return select(a / max(b, 1u), 0u, b == 0u);
}

fn u8_fmod(a: u32, b: u32) -> u32 {
    return select(a % max(b, 1u), 0u, b == 0u);
}

fn u8_pow(x: u32, n: u32) -> u32 {
    var b = x;
    var e = n;
    var acc = 1u;
    while e > 0u {
        if (e & 1u) == 1u {
            acc = (acc * b) & 255u;
        }
        b = (b * b) & 255u;
        e = e >> 1u;
    }
    return acc;
}

fn u8_shl(x: u32, n: u32) -> u32 {
    return select(0u, (x << (n & 7u)) & 255u, n < 8u);
}

fn u8_shr(x: u32, n: u32) -> u32 {
    return select(0u, x >> (n & 7u), n < 8u);
}
