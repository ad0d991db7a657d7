// The float64 of these bits (not of a nan's payload). There is no bitcast to f64.
fn f64_from_bits(low: u32, high: u32) -> f64 {
    let e = (high >> 20u) & 0x7ffu;
    let m = (high & 0xfffffu) | select(0u, 0x100000u, e != 0u);
    var v = f64(m) * 4294967296.0lf + f64(low);
    // v * 2^(e - 1075), in steps that are exact until the last.
    var n = i32(max(e, 1u)) - 1075;
    if e == 0x7ffu {
        let zero = f64(unknown);
        let inf = 1.0lf / zero;
        v = select(zero / zero, inf, ((high & 0xfffffu) | low) == 0u);
        n = 0;
    }
    while n >= 32 {
        v = v * 4294967296.0lf;
        n -= 32;
    }
    while n > 0 {
        v = v * 2.0lf;
        n -= 1;
    }
    while n <= -32 {
        v = v * 2.3283064365386962890625e-10lf;
        n += 32;
    }
    while n < 0 {
        v = v * 0.5lf;
        n += 1;
    }
    return select(v, -v, (high >> 31u) == 1u);
}

// Truncated; nan and what is out of range become the least i64.
fn f64_to_i64(x: f64) -> vec2<u32> {
    let a = abs(x);
    if !(a < 9223372036854775808.0lf) {
        return vec2<u32>(0u, 0x80000000u);
    }
    let t = trunc(a);
    let h = u32(trunc(t * 2.3283064365386962890625e-10lf));
    let l = u32(t - f64(h) * 4294967296.0lf);
    let size = vec2<u32>(l, h);
    return select(size, i64_neg(size), x < 0.0lf);
}

fn f64_to_i32(x: f64) -> i32 {
    let inside = abs(x) < 2147483648.0lf;
    return select(bitcast<i32>(0x80000000u), i32(select(0.0lf, x, inside)), inside);
}

fn i64_to_f64(x: vec2<u32>) -> f64 {
    return f64(bitcast<i32>(x.y)) * 4294967296.0lf + f64(x.x);
}
