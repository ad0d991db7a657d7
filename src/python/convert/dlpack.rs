//! Memory shared with other libraries through DLPack (github.com/dmlc/dlpack, versions 0.8 and 1.x): tensors as capsules, capsules as tensors.
//!
//! Which capsule a library is asked for, and with which arguments, is in `rgrad.utils.dlpack`.

use crate::array::{Access, Array, Device, Storage};
use crate::autograd::Tensor;
use crate::layout::{DType, Dims, Layout, MAX_DIMS, NumberKind, Strides};
use crate::python::args::type_name;
use crate::python::convert::to_python::refuse_tangent;
use crate::python::errors::{runtime, type_error};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::{PyAssertionError, PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::ffi::{CStr, c_void};

const CPU: i32 = 1;
/// Memory of the host that a driver has pinned.
const PINNED: [i32; 3] = [3, 11, 13];
const WEBGPU: i32 = 15;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    number: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DlDtype {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    rank: i32,
    dtype: DlDtype,
    shape: *mut i64,
    /// In elements; null where the elements are in row-major order.
    strides: *mut i64,
    /// From `data` to the first element.
    bytes: u64,
}

/// A tensor with what frees it: `DLManagedTensor`.
#[repr(C)]
struct Plain {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

trait Managed: Sized {
    const NAME: &'static CStr;
    const USED: &'static CStr;
    fn new(tensor: DlTensor, flags: u64) -> Self;
    fn tensor(&self) -> &DlTensor;
    fn flags(&self) -> u64;
    fn context(&mut self) -> &mut *mut c_void;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Managed for Plain {
    const NAME: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
    fn new(tensor: DlTensor, _: u64) -> Plain {
        Plain { tensor, context: std::ptr::null_mut(), deleter: Some(end::<Plain>) }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn flags(&self) -> u64 {
        0
    }
    fn context(&mut self) -> &mut *mut c_void {
        &mut self.context
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Plain)> {
        self.deleter
    }
}

impl Managed for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
    fn new(tensor: DlTensor, flags: u64) -> Versioned {
        Versioned { major: 1, minor: 0, context: std::ptr::null_mut(), deleter: Some(end::<Versioned>), flags, tensor }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn flags(&self) -> u64 {
        self.flags
    }
    fn context(&mut self) -> &mut *mut c_void {
        &mut self.context
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Versioned)> {
        self.deleter
    }
}

// ---- out -------------------------------------------------------------------------------------------------------------

/// What a capsule of ours points into.
struct Exported<M> {
    managed: M,
    storage: Storage,
    /// Sizes, then strides.
    _numbers: Box<[i64]>,
}

impl<M> Drop for Exported<M> {
    fn drop(&mut self) {
        self.storage.hide();
    }
}

/// Frees what was exported. Any thread may call it, with the GIL or without.
///
/// # Safety
/// `managed` is of a capsule of ours, and nobody uses it afterwards.
unsafe extern "C" fn end<M: Managed>(managed: *mut M) {
    // SAFETY: `export` has made the context with `Box::into_raw`, and this is its only end.
    unsafe { drop(Box::from_raw((*(*managed).context()).cast::<Exported<M>>())) }
}

/// The destructor of a capsule of ours: nothing is left to do if a library has taken what is in it.
///
/// # Safety
/// CPython calls it with a capsule that `export` has made.
unsafe extern "C" fn forget<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule still has our name, so its pointer is the one that `export` has put into it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
            end::<M>(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast());
        }
    }
}

fn dl_dtype(dtype: DType) -> DlDtype {
    let code = match dtype.kind() {
        NumberKind::Signed => 0,
        NumberKind::Unsigned => 1,
        NumberKind::Float if dtype == DType::BF16 => 4,
        NumberKind::Float => 2,
        NumberKind::Complex => 5,
        NumberKind::Bool => 6,
    };
    DlDtype { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
}

fn export<M: Managed>(py: Python<'_>, a: &Array, copied: bool) -> PyObjResult {
    let writable = a.storage().is_writable();
    // A stride of a dimension with one element may be any number; some libraries take it at its word.
    let strides = a.shape().iter().zip(a.strides()).map(|(n, s)| if *n < 2 { 1 } else { *s as i64 });
    let mut numbers: Box<[i64]> = a.shape().iter().map(|n| *n as i64).chain(strides).collect();
    let rank = a.rank();
    a.storage().expose()?;
    let access = if writable { Access::Write } else { Access::Read };
    let data = a.storage().memory(access).wrapping_add(a.layout().offset() * a.dtype().size());
    let tensor = DlTensor {
        data: data.cast(),
        device: DlDevice { kind: CPU, number: 0 },
        rank: rank as i32,
        dtype: dl_dtype(a.dtype()),
        shape: numbers.as_mut_ptr(),
        strides: numbers[rank..].as_mut_ptr(),
        bytes: 0,
    };
    let flags = if writable { 0 } else { READ_ONLY } | if copied { IS_COPIED } else { 0 };
    let exported = Exported { managed: M::new(tensor, flags), storage: a.storage().clone(), _numbers: numbers };
    let at = Box::into_raw(Box::new(exported));
    // SAFETY: `at` is live until `end`, which frees it once: called by `forget`, by whoever takes it out of the capsule, or here if there is no
    // capsule. What it points to stays where it is: the numbers are boxed, and the storage keeps its memory.
    unsafe {
        *(*at).managed.context() = at.cast();
        let managed = &raw mut (*at).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(forget::<M>));
        if capsule.is_null() {
            end::<M>(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
    }
}

fn buffer_error(text: impl Into<String>) -> PyErr {
    PyBufferError::new_err(text.into())
}

/// A device of DLPack from a pair of its kind and number.
fn wanted_device(given: &PyObj<'_>) -> PyResult<DlDevice> {
    let (kind, number) = given
        .extract::<(i32, i32)>()
        .map_err(|_| type_error(format!("__dlpack__: dl_device must be a pair of a device type and a number, got {}", type_name(given))))?;
    Ok(DlDevice { kind, number })
}

fn device_of(t: &Tensor) -> PyResult<DlDevice> {
    match t.device() {
        Device::CPU => Ok(DlDevice { kind: CPU, number: 0 }),
        Device::WGPU => Ok(DlDevice { kind: WEBGPU, number: 0 }),
        other => Err(PyValueError::new_err(format!("Unknown device type {other} for Dlpack"))),
    }
}

/// The array on the host that is exported, and whether it is a copy.
fn exported(t: &Tensor, device: Option<DlDevice>, copy: Option<bool>) -> PyResult<(Array, bool)> {
    let own = device_of(t)?;
    let kind = device.map_or(own.kind, |d| d.kind);
    if kind != CPU {
        let text = if kind == WEBGPU && own.kind == WEBGPU {
            "__dlpack__: the memory of wgpu tensors belongs to the driver and has no address; ask for dl_device=(1, 0), or use .cpu() first"
                .to_owned()
        } else {
            format!("__dlpack__: cannot move a tensor from {} to DLPack's device type {kind}; only 1 (CPU) can be asked for", t.device())
        };
        return Err(buffer_error(text));
    }
    let values = t.values(".__dlpack__()")?;
    if own.kind != CPU {
        if copy == Some(false) {
            return Err(PyValueError::new_err(format!(
                "cannot move tensor from {} to cpu without copying. Set copy=None or copy=True.",
                t.device()
            )));
        }
        return Ok((values.to_device(Device::CPU)?, true));
    }
    Ok(if copy == Some(true) { (values.clone_dense()?, true) } else { (values, false) })
}

#[pymethods]
impl PyTensor {
    /// The tensor's memory as a DLPack capsule, which other libraries' `from_dlpack` take.
    ///
    /// Args:
    ///     stream: None or -1: what is pending is computed before.
    ///     max_version: The newest version that the consumer knows. Below (1, 0), or None, the capsule is of version 0.8.
    ///     dl_device: A pair of a `DLDeviceType` and a number; (1, 0) copies a wgpu tensor to the host. By default the tensor's own device.
    ///     copy: Whether to copy; by default only if it is necessary.
    ///
    /// Raises:
    ///     BufferError: The tensor requires grad or is a lazy conjugate or negative, or its memory cannot be shared on that device.
    ///     TypeError: `stream` is no int.
    ///     ValueError: `copy` is False, but a copy is necessary.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        slf: &Bound<'_, Self>,
        stream: Option<&PyObj<'_>>,
        max_version: Option<(i64, i64)>,
        dl_device: Option<&PyObj<'_>>,
        copy: Option<bool>,
    ) -> PyObjResult {
        let (py, t) = (slf.py(), Self::of(slf));
        if t.requires_grad() {
            return Err(buffer_error("Can't export tensors that require gradient, use tensor.detach()"));
        }
        refuse_tangent(t)?;
        let bits = t.math_bits();
        if bits.any() {
            let (what, resolve) = if bits.conj { ("conjugate", "resolve_conj") } else { ("negative", "resolve_neg") };
            return Err(buffer_error(format!("Can't export tensors with the {what} bit set, use tensor.{resolve}()")));
        }
        if stream.map_or(Ok(-1), stream_of)? != -1 {
            return Err(PyAssertionError::new_err(format!("stream should be None on {}.", t.device())));
        }
        let device = dl_device.filter(|d| !d.is_none()).map(wanted_device).transpose()?;
        let (array, copied) = exported(t, device, copy)?;
        if max_version.is_some_and(|v| v.0 >= 1) {
            return export::<Versioned>(py, &array, copied);
        }
        if !array.storage().is_writable() {
            return Err(buffer_error(
                "__dlpack__: a tensor that cannot be written is only exported to a consumer that knows version 1.0 or later; clone it first",
            ));
        }
        export::<Plain>(py, &array, copied)
    }

    /// DLPack's device type and number of the tensor's device.
    ///
    /// Raises:
    ///     ValueError: DLPack has no such device.
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyObjResult {
        let (py, device) = (slf.py(), device_of(Self::of(slf))?);
        let kind = py.import("rgrad.utils.dlpack")?.getattr("DLDeviceType")?.call1((device.kind,))?;
        Ok((kind, device.number).into_pyobject(py)?.into_any().unbind())
    }
}

/// A stream: None and -1 are the same.
fn stream_of(given: &PyObj<'_>) -> PyResult<i64> {
    if given.is_none() {
        return Ok(-1);
    }
    if !given.is_exact_instance_of::<PyInt>() {
        return Err(type_error("stream must be ``int`` or ``none``"));
    }
    given.extract()
}

// ---- in --------------------------------------------------------------------------------------------------------------

/// What was taken out of another library's capsule. Python owns it, so that it ends under the GIL: that library may run Python then.
#[pyclass(name = "_Lent", module = "rgrad._core", frozen)]
struct Lent {
    managed: *mut c_void,
    is_versioned: bool,
}

// SAFETY: the pointer is only used once, in `drop`, and DLPack lets any thread call a deleter.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

/// # Safety
/// `managed` points to a live tensor of this kind, which nobody uses afterwards.
unsafe fn give_back<M: Managed>(managed: *mut c_void) {
    let managed: *mut M = managed.cast();
    // SAFETY: by the caller's promise; without a deleter nothing is to be freed.
    unsafe {
        if let Some(deleter) = (*managed).deleter() {
            deleter(managed);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: `take` has made it from a capsule with that name, and nobody else frees it, since the capsule has been renamed.
        unsafe { if self.is_versioned { give_back::<Versioned>(self.managed) } else { give_back::<Plain>(self.managed) } }
    }
}

fn dtype_from(d: DlDtype) -> PyResult<DType> {
    if d.lanes != 1 {
        return Err(runtime(format!("from_dlpack: elements have {} lanes, but only one is supported", d.lanes)));
    }
    DType::ALL.into_iter().find(|known| dl_dtype(*known) == d).ok_or_else(|| {
        let name = ["int", "uint", "float", "handle", "bfloat", "complex", "bool"].get(usize::from(d.code));
        runtime(format!(
            "from_dlpack: rgrad has no dtype for elements of {} bits of DLPack's type {} ({})",
            d.bits,
            d.code,
            name.unwrap_or(&"unknown")
        ))
    })
}

/// Layout, dtype and place of the first element of a foreign tensor.
fn described(t: &DlTensor) -> PyResult<(Layout, DType, *mut u8)> {
    if t.device.kind != CPU && !PINNED.contains(&t.device.kind) {
        return Err(runtime(format!("from_dlpack: Unsupported device_type: {}; rgrad reads memory of the host", t.device.kind)));
    }
    let dtype = dtype_from(t.dtype)?;
    let rank = usize::try_from(t.rank).ok().filter(|n| *n <= MAX_DIMS);
    let rank = rank.ok_or_else(|| runtime(format!("from_dlpack: a tensor has at most {MAX_DIMS} dimensions, got {}", t.rank)))?;
    if rank > 0 && t.shape.is_null() {
        return Err(runtime("from_dlpack: the tensor has dimensions, but no sizes"));
    }
    // SAFETY: the producer promises `rank` sizes and, unless there are none, as many strides.
    let read = |p: *mut i64| if rank == 0 || p.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(p.cast_const(), rank) } };
    let (sizes, strides) = (read(t.shape), read(t.strides));
    let mut shape = Dims::new();
    for n in sizes {
        shape.push(usize::try_from(*n).map_err(|_| runtime(format!("from_dlpack: a size is negative: {sizes:?}")))?);
    }
    let numel = crate::layout::checked_numel(&shape, dtype.size()).map_err(crate::error::Error::from)?;
    let layout = if strides.is_empty() || numel == 0 {
        Layout::contiguous(&shape)
    } else {
        if strides.iter().zip(&shape).any(|(s, n)| *s < 0 && *n > 1) {
            return Err(runtime(format!("from_dlpack: negative strides are not supported: {strides:?}; copy the array first")));
        }
        let strides: Strides = strides.iter().zip(&shape).map(|(s, n)| if *n < 2 { 1 } else { *s as isize }).collect();
        Layout::from_parts(shape, strides, 0).map_err(crate::error::Error::from)?
    };
    let data = t.data.cast::<u8>().wrapping_add(t.bytes as usize);
    if numel > 0 && t.data.is_null() {
        return Err(runtime("from_dlpack: the tensor has elements, but no memory"));
    }
    if numel > 0 && !(data as usize).is_multiple_of(dtype.size().min(8)) {
        return Err(runtime("from_dlpack: the memory is not aligned to the size of an element; copy the array first"));
    }
    Ok((layout, dtype, data))
}

/// Takes the tensor out of a capsule, if it has this name.
///
/// # Safety
/// The pointer in a capsule of that name is what DLPack says.
unsafe fn take<M: Managed>(capsule: &PyObj<'_>) -> PyResult<Option<Array>> {
    let py = capsule.py();
    // SAFETY: a live object under the GIL; by the caller's promise the pointer is that of a live `M`.
    let managed: *mut M = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::NAME.as_ptr()) != 1 {
            return Ok(None);
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::NAME.as_ptr()).cast()
    };
    // SAFETY: as above.
    let (layout, dtype, data, is_writable) = unsafe {
        let (layout, dtype, data) = described((*managed).tensor())?;
        (layout, dtype, data, (*managed).flags() & READ_ONLY == 0)
    };
    let is_versioned = M::NAME == Versioned::NAME;
    // SAFETY: a live capsule; the name is static.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr()) } != 0 {
        return Err(PyErr::fetch(py));
    }
    let owner = Py::new(py, Lent { managed: managed.cast(), is_versioned })?;
    if layout.shape().contains(&0) {
        return Ok(Some(Array::empty(layout.shape(), dtype)?));
    }
    let bytes = layout.extent().1 * dtype.size();
    // SAFETY: the producer keeps the memory of all elements until the owner ends. The strides are not negative.
    let storage = unsafe { Storage::external(data, bytes, is_writable, Box::new(owner)) };
    Ok(Some(Array::from_parts(storage, layout, dtype)?))
}

/// The tensor in a DLPack capsule, which can be taken once. It shares the memory with the library that made the capsule.
///
/// Raises:
///     RuntimeError: The capsule has been taken already, or its device, dtype or strides are none of rgrad's.
#[pyfunction]
fn _from_dlpack(capsule: &PyObj<'_>) -> PyObjResult {
    let py = capsule.py();
    // SAFETY: DLPack reserves these names.
    let found = unsafe {
        // The first words of all versions are the same.
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), Versioned::NAME.as_ptr()) == 1 {
            let managed: *const Versioned = ffi::PyCapsule_GetPointer(capsule.as_ptr(), Versioned::NAME.as_ptr()).cast();
            if (*managed).major > 1 {
                let (major, minor) = ((*managed).major, (*managed).minor);
                return Err(buffer_error(format!("from_dlpack: the capsule is of DLPack {major}.{minor}; rgrad reads versions below 2.0")));
            }
        }
        match take::<Versioned>(capsule)? {
            None => take::<Plain>(capsule)?,
            found => found,
        }
    };
    match found {
        Some(array) => wrap(py, Tensor::new(array)),
        None => Err(runtime(format!(
            "from_dlpack received an invalid capsule: got {}. Note that DLTensor capsules can be consumed only once, so you might have already \
             constructed a tensor from it once.",
            capsule.repr().map_or_else(|_| type_name(capsule), |r| r.to_string())
        ))),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_from_dlpack, m)?)
}
