// int64 as two words, low first; all arithmetic wraps around.
fn i64_from_i32(x: i32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}

fn i64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn i64_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn i64_neg(a: vec2<u32>) -> vec2<u32> {
    return i64_sub(vec2<u32>(), a);
}

// The whole product of two words.
fn u32_mul_wide(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let low = al * bl;
    let mid = ah * bl + (low >> 16u);
    let mid2 = al * bh + (mid & 0xffffu);
    return vec2<u32>((low & 0xffffu) | (mid2 << 16u), ah * bh + (mid >> 16u) + (mid2 >> 16u));
}

fn i64_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let p = u32_mul_wide(a.x, b.x);
    return vec2<u32>(p.x, p.y + a.x * b.y + a.y * b.x);
}

fn i64_is_negative(a: vec2<u32>) -> bool {
    return bitcast<i32>(a.y) < 0;
}

fn i64_is_zero(a: vec2<u32>) -> bool {
    return (a.x | a.y) == 0u;
}

fn i64_eq(a: vec2<u32>, b: vec2<u32>) -> bool {
    return ((a.x ^ b.x) | (a.y ^ b.y)) == 0u;
}

fn u64_lt(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn i64_lt(a: vec2<u32>, b: vec2<u32>) -> bool {
    let ah = bitcast<i32>(a.y);
    let bh = bitcast<i32>(b.y);
    return (ah < bh) | ((ah == bh) & (a.x < b.x));
}

fn i64_le(a: vec2<u32>, b: vec2<u32>) -> bool {
    return !i64_lt(b, a);
}

fn i64_max(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, i64_lt(a, b));
}

fn i64_min(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, i64_lt(a, b));
}

fn i64_abs(a: vec2<u32>) -> vec2<u32> {
    return select(a, i64_neg(a), i64_is_negative(a));
}

fn i64_sign(a: vec2<u32>) -> vec2<u32> {
    return select(vec2<u32>(select(1u, 0u, i64_is_zero(a)), 0u), vec2<u32>(0xffffffffu, 0xffffffffu), i64_is_negative(a));
}

// Shifts of 64 bits by 0 to 63.
fn u64_shl(a: vec2<u32>, n: u32) -> vec2<u32> {
    let k = n & 31u;
    let carried = (a.x >> 1u) >> (31u - k);
    return select(vec2<u32>(a.x << k, (a.y << k) | carried), vec2<u32>(0u, a.x << k), n >= 32u);
}

fn u64_shr(a: vec2<u32>, n: u32) -> vec2<u32> {
    let k = n & 31u;
    let carried = (a.y << 1u) << (31u - k);
    return select(vec2<u32>((a.x >> k) | carried, a.y >> k), vec2<u32>(a.y >> k, 0u), n >= 32u);
}

// 0 where the count is negative or not below 64.
fn i64_shl(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    return select(vec2<u32>(), u64_shl(a, n.x & 63u), (n.y == 0u) & (n.x < 64u));
}

// The sign where the count is negative or not below 64.
fn i64_shr(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    let count = select(63u, n.x & 63u, (n.y == 0u) & (n.x < 64u));
    let flip = vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> 31u));
    return u64_shr(a ^ flip, count) ^ flip;
}

// Quotient (x, y) and remainder (z, w) of non-negative numbers; b is not 0.
fn u64_divmod(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if (a.y | b.y) == 0u {
        let d = max(b.x, 1u);
        return vec4<u32>(a.x / d, 0u, a.x % d, 0u);
    }
    var q = vec2<u32>();
    var r = vec2<u32>();
    for (var i = 63; i >= 0; i--) {
        let bit = u64_shr(a, u32(i)).x & 1u;
        let carry = r.y >> 31u;
        r = u64_shl(r, 1u) | vec2<u32>(bit, 0u);
        q = u64_shl(q, 1u);
        if (carry == 1u) | !u64_lt(r, b) {
            r = i64_sub(r, b);
            q.x |= 1u;
        }
    }
    return vec4<u32>(q, r);
}

// Quotient towards zero and remainder; both are 0 for a divisor of 0.
fn i64_divmod(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if i64_is_zero(b) {
        return vec4<u32>();
    }
    let d = u64_divmod(i64_abs(a), i64_abs(b));
    let na = i64_is_negative(a);
    let q = select(d.xy, i64_neg(d.xy), na != i64_is_negative(b));
    return vec4<u32>(q, select(d.zw, i64_neg(d.zw), na));
}

fn i64_div_trunc(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return i64_divmod(a, b).xy;
}

fn i64_fmod(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return i64_divmod(a, b).zw;
}

fn i64_div_floor(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let d = i64_divmod(a, b);
    let lower = !i64_is_zero(d.zw) & (i64_is_negative(d.zw) != i64_is_negative(b));
    return select(d.xy, i64_sub(d.xy, vec2<u32>(1u, 0u)), lower);
}

fn i64_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let r = i64_divmod(a, b).zw;
    let other = !i64_is_zero(r) & (i64_is_negative(r) != i64_is_negative(b));
    return select(r, i64_add(r, b), other);
}

fn i64_pow(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    let one = vec2<u32>(1u, 0u);
    let minus = vec2<u32>(0xffffffffu, 0xffffffffu);
    let odd = (n.x & 1u) == 1u;
    if i64_is_negative(n) {
        return select(select(vec2<u32>(), select(one, minus, odd), i64_eq(x, minus)), one, i64_eq(x, one));
    }
    var b = x;
    var e = n;
    var acc = one;
    while !i64_is_zero(e) {
        if (e.x & 1u) == 1u {
            acc = i64_mul(acc, b);
        }
        b = i64_mul(b, b);
        e = u64_shr(e, 1u);
    }
    return acc;
}

// To the nearest f32, halves to even.
fn i64_to_f32(x: vec2<u32>) -> f32 {
    let a = i64_abs(x);
    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
    if zeros == 64u {
        return 0.0;
    }
    let m = u64_shl(a, zeros);
    let rest = (m.y & 255u) << 1u | select(0u, 1u, m.x != 0u);
    let kept = m.y >> 8u;
    let up = select(0u, 1u, (rest > 256u) | ((rest == 256u) & ((kept & 1u) == 1u)));
    let bits = ((189u - zeros) << 23u) + kept + up;
    return bitcast<f32>(bits | (x.y & 0x80000000u));
}

// Truncated; nan and what is out of range become the least i64.
fn f32_to_i64(x: f32) -> vec2<u32> {
    let b = bitcast<u32>(x);
    let e = (b >> 23u) & 255u;
    let m = vec2<u32>((b & 0x7fffffu) | 0x800000u, 0u);
    let size = select(u64_shr(m, min(150u - e, 63u)), u64_shl(m, (e - 150u) & 63u), e >= 150u);
    let signed = select(size, i64_neg(size), (b & 0x80000000u) != 0u);
    return select(signed, vec2<u32>(0u, 0x80000000u), e >= 190u);
}
