//! Validation of shaders in tests, without a device, by naga, the compiler that a device uses.

use super::packed::{Packing, lower};
use crate::layout::DType;
use naga::back::{hlsl, msl};
use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Panics unless `source` is a valid shader for a device with 64-bit floats and integers; also with its buffers of words packed. One without
/// 64-bit floats must also have a translation for Apple's and for Microsoft's drivers; Vulkan's take the 64-bit ones.
pub(in crate::backend::wgpu) fn check(name: &str, source: &str) {
    // Shaders that write whole words exist lowered only.
    if !source.contains("_word(") {
        check_one(name, source);
    }
    for native in [true, false] {
        let packing = packed(source, native);
        if !packing.is_none() {
            check_one(&format!("{name}, packed, native {native}"), &lower(source, packing, native));
        }
    }
}

/// All buffers of words in turn as float16 and bfloat16, from one or the other on. Only types are checked, so it does not matter what the
/// words are, but atomics are no elements.
fn packed(source: &str, odd: bool) -> Packing {
    let mut packing = Packing::default();
    for slot in 0..40 {
        let is_of = |t: &str| source.contains(&format!(" b{slot}: array<{t}>;\n"));
        if (is_of("u32") || is_of("f32")) && !source.contains(&format!("&b{slot})")) {
            packing.add(slot, if (slot % 2 == 1) == odd { DType::F16 } else { DType::BF16 });
        }
    }
    packing
}

fn check_one(name: &str, source: &str) {
    let fail = |message: String| -> ! { panic!("{name}: {message}\n{source}") };
    let module = match wgsl::parse_str(source) {
        Ok(m) => m,
        Err(e) => fail(e.emit_to_string(source)),
    };
    let capabilities = Capabilities::FLOAT64 | Capabilities::SHADER_INT64 | Capabilities::SHADER_FLOAT16;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    let info = match validator.validate(&module) {
        Ok(info) => info,
        Err(e) => fail(e.emit_to_string(source)),
    };
    assert!(module.entry_points.iter().any(|e| e.name == "main"), "{name}: no entry point `main`");
    if source.contains("f64") {
        return;
    }
    let options = msl::Options { lang_version: (2, 3), ..Default::default() };
    if let Err(e) = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default()) {
        fail(format!("for Metal: {e}"));
    }
    let options = hlsl::Options { shader_model: hlsl::ShaderModel::V6_2, ..Default::default() };
    if let Err(e) = hlsl::Writer::new(String::new(), &options, &hlsl::PipelineOptions::default()).write(&module, &info, None) {
        fail(format!("for Direct3D: {e}"));
    }
}
