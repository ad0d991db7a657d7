//! Validation of shaders in tests, without a device, by naga, the compiler that a device uses.

use naga::back::{hlsl, msl};
use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Panics unless `source` is a valid shader for a device with 64-bit floats and integers. One without 64-bit floats must also have a
/// translation for Apple's and for Microsoft's drivers; Vulkan's take the 64-bit ones.
pub(in crate::backend::wgpu) fn check(name: &str, source: &str) {
    let fail = |message: String| -> ! { panic!("{name}: {message}\n{source}") };
    let module = match wgsl::parse_str(source) {
        Ok(m) => m,
        Err(e) => fail(e.emit_to_string(source)),
    };
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::FLOAT64 | Capabilities::SHADER_INT64);
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
    let (options, pipeline) = (hlsl::Options::default(), hlsl::PipelineOptions::default());
    if let Err(e) = hlsl::Writer::new(String::new(), &options, &pipeline).write(&module, &info, None) {
        fail(format!("for Direct3D: {e}"));
    }
}
