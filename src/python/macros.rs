//! Operations that are functions of the module and methods of `Tensor` alike are written once.

/// Each entry becomes `rgrad.name(input, ...)` and `Tensor.name(...)`; `register` adds the functions to the module.
///
/// ```text
/// /// What it does.
/// fn name(x, dim: i64) sig(dim=0) { body with x: &Bound<PyTensor>, giving PyResult<Py<PyAny>> }
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
