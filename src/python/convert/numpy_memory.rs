//! Memory shared with NumPy: arrays as tensors, tensors as arrays. NumPy is imported on first use.
//!
//! When an array is shared and when copied is decided in `from_python` and `to_python`.

use crate::array::{Access, Array, Storage};
use crate::error::Error;
use crate::layout::{DType, Dims, Layout, NumberKind, Strides};
use crate::python::errors::type_error;
use numpy::npyffi::{self, PY_ARRAY_API, flags, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use smallvec::SmallVec;

/// Keeps a storage alive as long as a NumPy array uses its memory.
#[pyclass(name = "_Memory", module = "rgrad._core", frozen)]
pub(crate) struct Memory {
    storage: Storage,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.storage.hide();
    }
}

/// A NumPy array.
pub(crate) struct NdArray<'py>(Bound<'py, PyUntypedArray>);

fn dtype_of(d: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let letter = |k: NumberKind| match k {
        NumberKind::Bool => b'b',
        NumberKind::Unsigned => b'u',
        NumberKind::Signed => b'i',
        NumberKind::Float => b'f',
        NumberKind::Complex => b'c',
    };
    if let Some(found) = DType::ALL.into_iter().find(|t| *t != DType::BF16 && (letter(t.kind()), t.size()) == (d.kind(), d.itemsize())) {
        return Some(found);
    }
    // NumPy has no bfloat16 of its own; `ml_dtypes` registers one.
    let is_bfloat16 = d.kind() == b'V' && d.itemsize() == 2 && d.typeobj().qualname().is_ok_and(|n| n == "bfloat16");
    is_bfloat16.then_some(DType::BF16)
}

/// The names of all dtypes, the widest first, as a phrase.
fn supported() -> String {
    // NumPy has no complex32.
    let names: Vec<&str> = DType::ALL.iter().rev().filter(|d| **d != DType::C32).map(|d| d.name()).collect();
    match names.split_last() {
        Some((last, rest)) => format!("{}, and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Whether the elements of an array are numbers, of any of NumPy's dtypes.
pub(crate) fn is_number_array(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    Ok(matches!(kind.as_str(), "b" | "i" | "u" | "f" | "c"))
}

impl<'py> NdArray<'py> {
    /// The object as an array, or None if it is not one.
    pub(crate) fn of(obj: &Bound<'py, PyAny>) -> PyResult<Option<NdArray<'py>>> {
        // Before NumPy is imported there are no arrays, and the import is slow.
        if !numpy_is_loaded(obj.py())? {
            return Ok(None);
        }
        Ok(obj.cast::<PyUntypedArray>().ok().map(|a| NdArray(a.clone())))
    }

    /// The dtype of the elements; PyTorch's error if rgrad has none like it.
    pub(crate) fn dtype(&self) -> PyResult<DType> {
        let d = self.0.dtype();
        if d.is_native_byteorder() == Some(false) {
            return Err(PyValueError::new_err(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not \
                 supported.",
            ));
        }
        match dtype_of(&d) {
            Some(d) => Ok(d),
            None => {
                let name: String = d.typeobj().qualname()?.to_string();
                Err(type_error(format!("can't convert np.ndarray of type numpy.{name}. The only supported types are: {}.", supported())))
            }
        }
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        // SAFETY: a live array object.
        unsafe { (*self.0.as_array_ptr()).fields.data.cast() }
    }

    fn is_writable(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.0.as_array_ptr()).fields.flags & flags::NPY_ARRAY_WRITEABLE != 0 }
    }

    /// Whether a tensor can use the array's memory without a copy.
    pub(crate) fn can_share(&self) -> bool {
        self.layout().is_ok()
    }

    fn layout(&self) -> PyResult<Layout> {
        let size = self.dtype()?.size() as isize;
        if self.0.shape().contains(&0) {
            return Ok(Layout::contiguous(self.0.shape()));
        }
        let mut strides = Strides::new();
        for (&s, &n) in self.0.strides().iter().zip(self.0.shape()) {
            // The stride of a dimension with at most one element has no meaning.
            if n <= 1 && s % size != 0 {
                strides.push(1);
                continue;
            }
            if s < 0 {
                return Err(PyValueError::new_err(
                    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently \
                     supported. (You can probably work around this by making a copy of your array  with array.copy().) ",
                ));
            }
            if s % size != 0 {
                return Err(PyValueError::new_err(
                    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
                ));
            }
            strides.push(s / size);
        }
        // A complex128 is as aligned as its parts.
        if !(self.pointer() as usize).is_multiple_of(size.min(8) as usize) {
            return Err(PyValueError::new_err(
                "given numpy array is not aligned to its element size. Copy the numpy array to reallocate the memory.",
            ));
        }
        Ok(Layout::from_parts(Dims::from_slice(self.0.shape()), strides, 0).map_err(crate::error::Error::from)?)
    }

    /// An array of the core over the same memory, which keeps the NumPy array alive.
    pub(crate) fn share(&self) -> PyResult<Array> {
        let (dtype, layout) = (self.dtype()?, self.layout()?);
        let bytes = layout.extent().1 * dtype.size();
        // With `refcheck=False` NumPy resizes an array that others refer to, but none that has a weak reference.
        let pinned: Py<PyAny> = PyWeakrefReference::new(&self.0)?.into_any().unbind();
        let owner: Py<PyAny> = self.0.clone().into_any().unbind();
        // SAFETY: the array owns or keeps alive the memory of all its elements as long as it lives, and NumPy does not resize it. The strides are
        // not negative.
        let storage = unsafe { Storage::external(self.pointer().cast_mut(), bytes, self.is_writable(), Box::new((owner, pinned))) };
        Ok(Array::from_parts(storage, layout, dtype)?)
    }

    /// An array of the core with the same elements, which shares the memory if possible.
    pub(crate) fn read(&self) -> PyResult<Array> {
        self.dtype()?;
        if self.can_share() {
            return self.share();
        }
        let py = self.0.py();
        let copied = self.0.as_any().call_method1("copy", ("C",))?;
        let _ = py;
        match NdArray::of(&copied)? {
            Some(a) => a.share(),
            None => Err(type_error("copy() of a NumPy array gave no array")),
        }
    }
}

fn numpy_is_loaded(py: Python<'_>) -> PyResult<bool> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static LOADED: AtomicBool = AtomicBool::new(false);
    if LOADED.load(Ordering::Relaxed) {
        return Ok(true);
    }
    let modules = py.import("sys")?.getattr("modules")?;
    let loaded = modules.contains("numpy")?;
    if loaded {
        LOADED.store(true, Ordering::Relaxed);
    }
    Ok(loaded)
}

/// The dtype of a NumPy scalar; None if the object is not one.
pub(crate) fn scalar_dtype(obj: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = obj.py();
    if !numpy_is_loaded(py)? || !obj.is_instance(&py.import("numpy")?.getattr("generic")?)? {
        return Ok(None);
    }
    let d = obj.getattr("dtype")?.cast_into::<PyArrayDescr>()?;
    match dtype_of(&d) {
        Some(d) => Ok(Some(d)),
        None => Err(type_error(format!(
            "can't convert a NumPy scalar of type {}. The only supported types are: {}.",
            crate::python::args::type_name(obj),
            supported()
        ))),
    }
}

/// NumPy's type of bfloat16 elements, which the package `ml_dtypes` has; PyTorch's error without it.
fn bfloat16(py: Python<'_>) -> PyResult<Bound<'_, PyArrayDescr>> {
    match py.import("ml_dtypes") {
        Ok(m) => PyArrayDescr::new(py, m.getattr("bfloat16")?),
        Err(_) => Err(type_error(
            "Got unsupported ScalarType BFloat16: NumPy has no such type without the package ml_dtypes; convert with .float() first",
        )),
    }
}

/// NumPy's type of the elements.
fn descriptor(py: Python<'_>, d: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    static KNOWN: [PyOnceLock<Py<PyArrayDescr>>; DType::COUNT] = [const { PyOnceLock::new() }; DType::COUNT];
    let made = || {
        if d == DType::C32 {
            return Err(type_error("Got unsupported ScalarType ComplexHalf: NumPy has no complex32; convert with .cfloat() first"));
        }
        let descriptor = if d == DType::BF16 { bfloat16(py)? } else { PyArrayDescr::new(py, d.name())? };
        Ok::<_, PyErr>(descriptor.unbind())
    };
    Ok(KNOWN[d as usize].get_or_try_init(py, made)?.bind(py).clone())
}

/// A NumPy array over the memory of an array, which it keeps alive.
pub(crate) fn export(py: Python<'_>, a: &Array) -> PyResult<Py<PyAny>> {
    let size = a.dtype().size() as isize;
    let mut dims: SmallVec<[npy_intp; 6]> = a.shape().iter().map(|n| *n as npy_intp).collect();
    let mut strides: SmallVec<[npy_intp; 6]> = a.strides().iter().map(|s| (*s * size) as npy_intp).collect();
    let writable = a.storage().is_writable();
    a.storage().expose()?;
    let data = a.storage().memory(if writable { Access::Write } else { Access::Read }).wrapping_add(a.layout().offset() * size as usize);
    let descr = descriptor(py, a.dtype())?;
    let holder = Py::new(py, Memory { storage: a.storage().clone() })?;
    let rank = i32::try_from(dims.len()).map_err(|_| Error::runtime("too many dimensions for a NumPy array"))?;
    // SAFETY: the pointer, sizes and strides describe memory that `holder` keeps alive. The new array takes over the references to the
    // descriptor and the holder. With a null result an exception is set.
    unsafe {
        let subtype = PyUntypedArray::type_object_raw(py);
        let flags = if writable { flags::NPY_ARRAY_WRITEABLE } else { 0 };
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            subtype,
            descr.into_dtype_ptr(),
            rank,
            dims.as_mut_ptr(),
            strides.as_mut_ptr(),
            data.cast(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let base = holder.into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast::<npyffi::PyArrayObject>(), base) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array.unbind())
    }
}
