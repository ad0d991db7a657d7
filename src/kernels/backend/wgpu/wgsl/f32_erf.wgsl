// erf(a) for a from 0 to 1.
fn f32_erf_small(a: f32) -> f32 {
    let z = a * a;
    let p = -0.376126379 + z * (0.112837829 + z * (-0.0268654451 + z * (0.00522107491 + z * (-0.000848471129
        + z * (0.000112705449 + z * -9.68013683e-6)))));
    return a + a * (0.128379167 + z * p);
}

// erfc(a) for a from 0.5 to 10.2. exp(a^2) * erfc(a) * (a + 3) is a polynomial in (a - 3) / (a + 3); a^2 is taken exactly.
fn f32_erfc_large(a: f32) -> f32 {
    let d = f32_two_sum(a, 3.0);
    let n = f32_two_sum(a, -3.0);
    let t = f32_keep(n.x / d.x);
    let td = f32_two_prod(t, d.x);
    let tl = (f32_keep(f32_keep(n.x - td.x) - td.y) + (n.y - t * d.y)) / d.x;
    let q = 0.590228319 + t * (-0.310467333 + t * (0.119528517 + t * (-0.026826242 + t * (-0.00121926749 + t * (0.0030272638
        + t * (-0.000521884474 + t * (-0.00025411864 + t * 6.61768063e-5)))))));
    // The first two terms are the largest, and t's own error goes into the second.
    let u = f32_two_prod(t, -0.88339448);
    let s = f32_two_sum(1.07400692, u.x);
    let low = s.y + (u.y + tl * (-0.88339448 + 2.0 * t * q));
    let p = s.x + (t * t * q + low);
    let z = f32_two_prod(a, a);
    let v = f32_exp_parts(-z.x, -z.y);
    return f32_scale(f32_one_plus(v.y, v.z) * (p / d.x), i32(v.x));
}

fn f32_erf(x: f32) -> f32 {
    let a = f32_abs(x);
    let c = f32_at_most(a, 5.0);
    let y = select(1.0 - f32_erfc_large(f32_at_least(c, 0.5)), f32_erf_small(c), c < 0.8);
    return select(f32_copysign(y, x), x, f32_is_nan(x));
}

fn f32_erfc(x: f32) -> f32 {
    let a = f32_abs(x);
    let c = f32_at_most(a, 10.2);
    let near = 1.0 - f32_erf_small(f32_at_most(c, 1.0));
    let y = select(f32_erfc_large(f32_at_least(c, 0.5)), near, c < 0.5);
    let both = select(y, 2.0 - y, f32_is_negative(x));
    return select(both, x, f32_is_nan(x));
}
