//! A description of the C interface, generated from the same declarations that the compiler lays out. It is compared with the header of the
//! loaded library before the first call.

use std::ffi::{c_char, c_void};

/// A type of the C interface, by the name that cffi gives it.
pub trait CType {
    fn c_name() -> String;
}

/// A struct: its size, and each field's name, offset and type.
#[derive(Debug, Clone)]
pub struct StructLayout {
    pub name: &'static str,
    pub size: usize,
    pub fields: Vec<(&'static str, usize, String)>,
}

/// Everything of the interface that is used.
#[derive(Debug, Clone)]
pub struct Description {
    pub structs: Vec<StructLayout>,
    pub constants: Vec<(String, u64)>,
    pub functions: Vec<(&'static str, String)>,
}

macro_rules! scalar {
    ($($ty:ty = $name:literal),*) => {
        $(impl CType for $ty {
            fn c_name() -> String {
                $name.into()
            }
        })*
    };
}
scalar!(() = "void", u32 = "uint32_t", u64 = "uint64_t", usize = "size_t", f32 = "float", f64 = "double", c_void = "void", c_char = "char");

impl<T: CType> CType for *const T {
    fn c_name() -> String {
        T::c_name() + " *"
    }
}

impl<T: CType> CType for *mut T {
    fn c_name() -> String {
        T::c_name() + " *"
    }
}

impl<T: CType> CType for Option<T> {
    fn c_name() -> String {
        T::c_name()
    }
}

macro_rules! function {
    ($($arg:ident),*) => {
        impl<R: CType, $($arg: CType),*> CType for unsafe extern "C" fn($($arg),*) -> R {
            fn c_name() -> String {
                let args: Vec<String> = vec![$($arg::c_name()),*];
                format!("{}(*)({})", R::c_name(), args.join(", "))
            }
        }
    };
}
function!();
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);
function!(A, B, C, D, E);
function!(A, B, C, D, E, F);

/// Declares opaque handles. They are plain addresses; the code that stores one is responsible for its reference.
macro_rules! handles {
    ($($name:ident = $c:literal),* $(,)?) => {
        $(
            #[repr(transparent)]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub struct $name(pub *mut c_void);

            impl Default for $name {
                fn default() -> Self {
                    $name(std::ptr::null_mut())
                }
            }

            // SAFETY: the library's objects may be used from any thread.
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}

            impl CType for $name {
                fn c_name() -> String {
                    concat!("struct ", $c, " *").into()
                }
            }
        )*
    };
}

/// Declares enums, as transparent numbers, and constants of them.
macro_rules! enums {
    ($($name:ident = $c:literal { $($value:ident = $number:literal),* $(,)? })*) => {
        $(
            #[repr(transparent)]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
            pub struct $name(pub u32);

            // Named as in the header.
            #[allow(non_upper_case_globals)]
            impl $name {
                $(pub const $value: $name = $name($number);)*
            }

            impl CType for $name {
                fn c_name() -> String {
                    $c.into()
                }
            }
        )*

        pub(super) fn enum_values() -> Vec<(String, u64)> {
            vec![$($((concat!($c, "_", stringify!($value)).into(), $name::$value.0.into())),*),*]
        }
    };
}

/// Declares structs together with the description of their layout.
macro_rules! structs {
    ($($name:ident = $c:literal { $($field:ident: $ty:ty = $cf:literal),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Debug, Clone, Copy, Default)]
            pub struct $name {
                $(pub $field: $ty),*
            }

            impl CType for $name {
                fn c_name() -> String {
                    $c.into()
                }
            }
        )*

        pub(super) fn layouts() -> Vec<StructLayout> {
            vec![$(StructLayout {
                name: $c,
                size: size_of::<$name>(),
                fields: vec![$(($cf, std::mem::offset_of!($name, $field), <$ty as CType>::c_name())),*],
            }),*]
        }
    };
}

/// Declares the table of functions together with the description of their signatures.
macro_rules! functions {
    ($($name:ident = $c:literal: fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// The functions that are used, at their addresses in the library that is loaded.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> $ret),*
        }

        impl Functions {
            /// The table, from the address of each function by its name; the name of the first that has none.
            ///
            /// # Safety
            /// Each address must be that of the function of this name and of the described signature, in a library that stays loaded.
            pub unsafe fn load(mut address: impl FnMut(&str) -> Option<usize>) -> Result<Functions, &'static str> {
                $(let $name = address($c).filter(|a| *a != 0).ok_or($c)?;)*
                Ok(Functions {
                    // SAFETY: by the caller's promise; a function pointer is as wide as an address.
                    $($name: unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($arg),*) -> $ret>($name) }),*
                })
            }
        }

        pub(super) fn signatures() -> Vec<(&'static str, String)> {
            vec![$(($c, <unsafe extern "C" fn($($arg),*) -> $ret as CType>::c_name())),*]
        }
    };
}

pub(super) use {enums, functions, handles, structs};
