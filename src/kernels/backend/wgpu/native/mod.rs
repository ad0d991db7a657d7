//! The C interface of wgpu-native, as the library that wgpu-py has loaded offers it. Structs, enums and functions are declared together
//! with their description, which is compared with the library's own header before the first call. Not here: what is done with a device
//! (`device`).

pub mod api;
pub mod describe;
pub mod functions;
pub mod types;

pub use api::Api;
pub use describe::Description;
pub use functions::Functions;

/// The version of wgpu-native that these declarations were written for.
pub const VERSION: &str = "29";

/// Everything of the interface that is used, as declared here.
pub fn description() -> Description {
    let mut constants = types::enum_values();
    constants.extend(types::flag_values());
    Description { structs: types::layouts(), constants, functions: functions::signatures() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(d: &'a Description, name: &str) -> &'a str {
        &d.functions.iter().find(|(n, _)| *n == name).expect("a function of the table").1
    }

    #[test]
    fn signatures_are_spelled_as_cffi_spells_them() {
        let d = description();
        assert_eq!(of(&d, "wgpuDevicePoll"), "uint32_t(*)(struct WGPUDeviceImpl *, uint32_t, uint64_t *)");
        assert_eq!(of(&d, "wgpuQueueSubmit"), "void(*)(struct WGPUQueueImpl *, size_t, struct WGPUCommandBufferImpl * *)");
        let map = d.structs.iter().find(|s| s.name == "WGPUBufferMapCallbackInfo").unwrap();
        assert_eq!(map.fields[2].2, "void(*)(WGPUMapAsyncStatus, WGPUStringView, void *, void *)");
    }

    #[test]
    fn constants_have_their_full_names() {
        assert!(description().constants.contains(&("WGPUErrorFilter_OutOfMemory".into(), 2)));
    }

    #[test]
    fn a_missing_function_is_named() {
        // SAFETY: nothing is loaded, since one address is missing.
        let missing = unsafe { Functions::load(|name| (name != "wgpuBufferUnmap").then_some(1)) }.unwrap_err();
        assert_eq!(missing, "wgpuBufferUnmap");
    }
}
