//! The C interface of wgpu-native.
