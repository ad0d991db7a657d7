//! What shaders must pass in tests, where there is no device: naga, the compiler that a device would give them to.

use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Panics unless `source` is a valid shader for a device with 64-bit floats and integers.
pub(in crate::backend::wgpu) fn check(name: &str, source: &str) {
    let fail = |message: String| -> ! { panic!("{name}: {message}\n{source}") };
    let module = match wgsl::parse_str(source) {
        Ok(m) => m,
        Err(e) => fail(e.emit_to_string(source)),
    };
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::FLOAT64 | Capabilities::SHADER_INT64);
    if let Err(e) = validator.validate(&module) {
        fail(e.emit_to_string(source));
    }
    assert!(module.entry_points.iter().any(|e| e.name == "main"), "{name}: no entry point `main`");
}
