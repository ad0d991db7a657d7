//! A macro for operations that are both functions of the module and methods of `Tensor`.
//!
//! Operations whose arguments have one form each need no binding: `ops/declared.rs` declares them, `functions::declared` binds them.

/// Each entry becomes `rgrad.name(input, ...)` and `Tensor.name(...)`. `register_functions` adds the functions to the module.
///
/// ```text
/// /// What it does.
/// fn name(x, dim: i64) sig(dim=0) { /* x: &Bound<PyTensor>; the value is a PyResult<Py<PyAny>> */ }
/// ```
macro_rules! functions_and_methods {
    ($($(#[doc = $doc:literal])+ fn $name:ident($x:ident $(, $arg:ident: $ty:ty)* $(,)?) sig($($sig:tt)*) $body:block)+) => {
        $(
            $(#[doc = $doc])+
            #[pyfunction]
            #[pyo3(signature = (input, $($sig)*))]
            #[allow(clippy::too_many_arguments)]
            fn $name(input: &Bound<'_, PyTensor> $(, $arg: $ty)*) -> PyResult<Py<PyAny>> {
                let $x = input;
                $body
            }
        )+

        #[pymethods]
        impl PyTensor {
            $(
                $(#[doc = $doc])+
                #[pyo3(signature = ($($sig)*))]
                #[allow(clippy::too_many_arguments)]
                fn $name(slf: &Bound<'_, Self> $(, $arg: $ty)*) -> PyResult<Py<PyAny>> {
                    $name(slf $(, $arg)*)
                }
            )+
        }

        fn register_functions(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(m.add_function(wrap_pyfunction!($name, m)?)?;)+
            Ok(())
        }
    };
}

pub(crate) use functions_and_methods;
