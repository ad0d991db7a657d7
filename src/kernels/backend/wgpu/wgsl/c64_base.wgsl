// Complex numbers: pairs of a real and an imaginary part. Products and quotients are PyTorch's, without the recovery of infinities of C99's
// annex G. Errors are small beside the number, not beside each of its parts.
fn c64_keep(z: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(f32_keep(z.x), f32_keep(z.y));
}

fn c64_neg(z: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(f32_neg(z.x), f32_neg(z.y));
}

fn c64_conj(z: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(z.x, f32_neg(z.y));
}

// The number times i.
fn c64_turned(z: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(f32_neg(z.y), z.x);
}

// The number divided by i.
fn c64_turned_back(z: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(z.y, f32_neg(z.x));
}

fn c64_eq(a: vec2<f32>, b: vec2<f32>) -> bool {
    return f32_eq(a.x, b.x) & f32_eq(a.y, b.y);
}

fn c64_is_nan(z: vec2<f32>) -> bool {
    return f32_is_nan(z.x) | f32_is_nan(z.y);
}

fn c64_is_inf(z: vec2<f32>) -> bool {
    return f32_is_inf(z.x) | f32_is_inf(z.y);
}

fn c64_is_zero(z: vec2<f32>) -> bool {
    return f32_is_zero(z.x) & f32_is_zero(z.y);
}

fn c64_mul(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(f32_keep(a.x * b.x) - f32_keep(a.y * b.y), f32_keep(a.x * b.y) + f32_keep(a.y * b.x));
}

// The exponent of the larger part, from -126 to 126: by so many powers of 2 less, squares of the parts are in range.
fn c64_exponent(z: vec2<f32>) -> i32 {
    let most = max(bitcast<u32>(z.x) & 0x7fffffffu, bitcast<u32>(z.y) & 0x7fffffffu);
    return clamp(i32(most >> 23u) - 127, -126, 126);
}

// a / 0.
fn c64_over_zero(a: f32) -> f32 {
    return select(f32_copysign(f32_lit(0x7f800000u), a), f32_lit(0x7fc00000u), f32_is_zero(a) | f32_is_nan(a));
}

// A divisor of 0 divides each part; infinite parts are treated as by Smith's division (CACM 5(8), 1962): only a divisor with one infinite
// part gives 0.
fn c64_div(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if c64_is_zero(b) {
        return vec2<f32>(c64_over_zero(a.x), c64_over_zero(a.y));
    }
    let endless = (f32_is_inf(b.x) != f32_is_inf(b.y)) & !c64_is_nan(b);
    let flat = vec2<f32>(
        f32_copysign(select(0.0, 1.0, f32_is_inf(b.x)), b.x),
        f32_copysign(select(0.0, 1.0, f32_is_inf(b.y)), b.y));
    let d = select(b, flat, endless);
    let n = c64_exponent(a);
    let m = c64_exponent(d);
    let p = a * f32_pow2(-n);
    let q = d * f32_pow2(-m);
    let size = f32_keep(q.x * q.x) + f32_keep(q.y * q.y);
    let re = f32_keep(f32_keep(p.x * q.x) + f32_keep(p.y * q.y)) / size;
    let im = f32_keep(f32_keep(p.y * q.x) - f32_keep(p.x * q.y)) / size;
    let r = vec2<f32>(f32_scale(re, n - m), f32_scale(im, n - m));
    return select(r, r * f32_lit(0u), endless);
}

fn c64_abs(z: vec2<f32>) -> f32 {
    return f32_hypot(z.x, z.y);
}

fn c64_angle(z: vec2<f32>) -> f32 {
    return f32_atan2(z.y, z.x);
}

// The number divided by its length; 0 for 0.
fn c64_sgn(z: vec2<f32>) -> vec2<f32> {
    if c64_is_zero(z) {
        return vec2<f32>();
    }
    let w = z * f32_pow2(-c64_exponent(z));
    let r = f32_sqrt(f32_keep(w.x * w.x) + f32_keep(w.y * w.y));
    return vec2<f32>(f32_div(w.x, r), f32_div(w.y, r));
}

// The square root whose real part is not negative.
fn c64_sqrt(z: vec2<f32>) -> vec2<f32> {
    // An even number, half of which scales the root.
    let n = c64_exponent(z) & -2;
    let s = f32_pow2(-n);
    let w = vec2<f32>(f32_abs(z.x) * s, z.y * s);
    let r = f32_sqrt(f32_keep(w.x * w.x) + f32_keep(w.y * w.y));
    let t = f32_sqrt(f32_keep(w.x + r) * 0.5);
    let back = f32_pow2(n / 2);
    let zero = f32_is_zero(t);
    let other = select(f32_keep(w.y / select(2.0 * t, 1.0, zero)) * back, z.y, zero);
    let size = select(t * back, f32_lit(0x7f800000u), f32_is_inf(z.x));
    let along = select(other, f32_copysign(0.0, z.y), f32_is_inf(z.x) & !f32_is_nan(z.y));
    let right = f32_le(0.0, z.x) | f32_is_nan(z.x);
    let root = select(vec2<f32>(f32_abs(along), f32_copysign(size, z.y)), vec2<f32>(size, along), right);
    return select(root, vec2<f32>(f32_lit(0x7f800000u), z.y), f32_is_inf(z.y));
}
