// The bits of the float32 with the value of a float16, given by its bits. Nan keeps its payload.
fn half_to_single(h: u32) -> u32 {
    let sign = (h & 0x8000u) << 16u;
    let m = h & 0x7fffu;
    if m >= 0x7c00u { return sign | 0x7f800000u | (m << 13u); }
    if m >= 0x400u { return sign | ((m << 13u) + 0x38000000u); }
    // Subnormals are multiples of 2^-24.
    return sign | bitcast<u32>(f32(m) * 0x1p-24f);
}

// The bits of the float16 that is nearest to a float32, given by its bits. Whole numbers only: no driver may round otherwise.
fn half_from_single(x: u32) -> u32 {
    let sign = (x >> 16u) & 0x8000u;
    let a = x & 0x7fffffffu;
    if a >= 0x477ff000u {
        if a <= 0x7f800000u { return sign | 0x7c00u; }
        let payload = (a >> 13u) & 0x3ffu;
        return sign | 0x7c00u | select(payload, 0x200u, payload == 0u);
    }
    if a >= 0x38800000u { return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u); }
    if a < 0x33000000u { return sign; }
    let m = (a & 0x7fffffu) | 0x800000u;
    let by = 126u - (a >> 23u);
    let q = m >> by;
    return sign | (q + ((m - (q << by) + (1u << (by - 1u)) - 1u + (q & 1u)) >> by));
}

// The bits of the bfloat16 that is nearest to a float32, given by its bits.
fn brain_from_single(x: u32) -> u32 {
    if (x & 0x7fffffffu) > 0x7f800000u { return (x >> 16u) | select(0u, 0x40u, (x & 0x7f0000u) == 0u); }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}

// The float16 that is nearest to a float32, given by its bits, as a float32.
fn half_nearest(x: u32) -> f32 {
    let a = x & 0x7fffffffu;
    if a < 0x38800000u || a >= 0x477ff000u { return bitcast<f32>(half_to_single(half_from_single(x))); }
    return bitcast<f32>((x & 0x80000000u) | ((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u));
}
