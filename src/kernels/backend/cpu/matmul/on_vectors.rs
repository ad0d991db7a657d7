//! Functions with an instance for the vectors of each instruction set.

/// `$name` runs `$body::<V, ..>` with the vectors of an instruction set, which the machine has. After `not base:` there is no instance of the
/// least vectors on x86-64 outside of tests.
macro_rules! on_vectors {
    (not base: $($rest:tt)+) => {
        on_vectors! { @only_in_tests $($rest)+ }
    };
    (@$base:ident $(#[$doc:meta])* fn $name:ident<T $(, $S:ident: $bound:path)?>($($a:ident: $t:ty),+ $(,)?) $(-> $r:ty)? = $body:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The machine has the instruction set; besides, as for the body.
        pub(in crate::backend::cpu) unsafe fn $name<T: CoreNumber $(, $S: $bound)?>(isa: $crate::simd::InstructionSet, $($a: $t),+) $(-> $r)? {
            // SAFETY: the caller's.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt")]
                    unsafe fn avx512<T: CoreNumber $(, $S: $bound)?>($($a: $t),+) $(-> $r)? {
                        // SAFETY: the caller's.
                        unsafe { $body::<T::Avx512 $(, $S)?>($($a),+) }
                    }
                    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
                    unsafe fn avx2<T: CoreNumber $(, $S: $bound)?>($($a: $t),+) $(-> $r)? {
                        // SAFETY: the caller's.
                        unsafe { $body::<T::Avx2 $(, $S)?>($($a),+) }
                    }
                    use $crate::simd::InstructionSet;
                    match isa {
                        InstructionSet::Avx512 => return avx512::<T $(, $S)?>($($a),+),
                        InstructionSet::Avx2 => return avx2::<T $(, $S)?>($($a),+),
                        InstructionSet::Base => {}
                    }
                }
                let _ = isa;
                $crate::backend::cpu::matmul::on_vectors::on_base!($base, $body::<T::Base $(, $S)?>($($a),+))
            }
        }
    };
    ($($all:tt)+) => {
        on_vectors! { @always $($all)+ }
    };
}
pub(in crate::backend::cpu) use on_vectors;

/// The call for the machine's least vectors, if there is an instance for them: see `on_vectors`.
#[cfg(any(test, not(target_arch = "x86_64")))]
macro_rules! on_base {
    ($base:ident, $call:expr) => {
        $call
    };
}
#[cfg(not(any(test, not(target_arch = "x86_64"))))]
macro_rules! on_base {
    (always, $call:expr) => {
        $call
    };
    (only_in_tests, $call:expr) => {
        unreachable!("a kernel for AVX2 and up was asked to run on another instruction set")
    };
}
pub(in crate::backend::cpu) use on_base;
