//! Macros of the bindings: operations that are both functions of the module and methods of `Tensor`, and numbered C functions.
//!
//! Operations whose arguments have one form each need no binding: `ops/declared.rs` declares them, `functions::declared` binds them.

/// Each entry becomes `rgrad.name(input, ...)` and `Tensor.name(...)`. `register_functions` adds the functions to the module. Errors tell the
/// positions that the function has; those of the method are counted without `self`.
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
                    $name(slf $(, $arg)*).map_err(|e| $crate::python::errors::of_method(slf.py(), e))
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

/// C functions that differ only in a number, sixteen in a row, from `$from` on. CPython passes no data to a C function of a class, so a table that is
/// bound needs a C function for each entry.
macro_rules! numbered {
    ($f:ident from $from:expr, $($row:literal)*) => { [$($crate::python::macros::sixteen!($f ($from + $row * 16))),*] };
}

macro_rules! sixteen {
    ($f:ident $from:expr) => {
        [
            $f::<{ $from + 0 }>,
            $f::<{ $from + 1 }>,
            $f::<{ $from + 2 }>,
            $f::<{ $from + 3 }>,
            $f::<{ $from + 4 }>,
            $f::<{ $from + 5 }>,
            $f::<{ $from + 6 }>,
            $f::<{ $from + 7 }>,
            $f::<{ $from + 8 }>,
            $f::<{ $from + 9 }>,
            $f::<{ $from + 10 }>,
            $f::<{ $from + 11 }>,
            $f::<{ $from + 12 }>,
            $f::<{ $from + 13 }>,
            $f::<{ $from + 14 }>,
            $f::<{ $from + 15 }>,
        ]
    };
}

pub(crate) use numbered;
pub(crate) use sixteen;
