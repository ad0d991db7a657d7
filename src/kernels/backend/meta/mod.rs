//! The meta backend: shapes, dtypes and strides without memory. It does nothing for every request, and reading values is an error. Not here:
//! shapes and dtypes of results, which `ops` decides for every device.

use super::contract::{Backend, CountedResult, DeviceMemory, Operand, Program, Support, View, defined};
use super::cpu::backend::CPU;
use crate::call::Request;
use crate::error::{Error, Result};
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use crate::rows::Func;
use std::any::Any;
use std::sync::{Arc, LazyLock};

#[derive(Debug)]
struct MetaBackend;

/// Memory of this size without contents.
#[derive(Debug)]
struct NoMemory(usize);

impl DeviceMemory for NoMemory {
    fn bytes(&self) -> usize {
        self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

static META: LazyLock<Arc<MetaBackend>> = LazyLock::new(|| Arc::new(MetaBackend));

pub(super) fn current() -> Result<Arc<dyn Backend>> {
    Ok(META.clone())
}

#[cold]
fn no_values(what: &str) -> Error {
    Error::not_implemented(format!(
        "{what}: a meta tensor has a shape and a dtype, but no values; make the tensor on another device, or give it memory with .to_empty()"
    ))
}

impl Backend for MetaBackend {
    fn element_size(&self, dtype: DType) -> usize {
        dtype.size()
    }

    fn has_dtype(&self, _dtype: DType) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, bytes: usize, _dtype: DType) -> Result<Box<dyn DeviceMemory>> {
        Ok(Box::new(NoMemory(bytes)))
    }

    fn has_room(&self, _bytes: usize) -> bool {
        true
    }

    fn upload(&self, _from: RawSlice<'_, u8>, _dtype: DType, _to: &dyn DeviceMemory) -> Result<()> {
        Ok(())
    }

    unsafe fn download(&self, _from: &dyn DeviceMemory, _start: usize, _n: usize, _dtype: DType, _to: *mut u8) -> Result<()> {
        Err(no_values("Cannot copy out of meta tensor; no data!"))
    }

    fn support(&self, request: &Request, dtype: DType) -> Support {
        defined(self, request, dtype)
    }

    fn has_row(&self, func: Func, dtype: DType) -> bool {
        CPU.has_row(func, dtype)
    }

    fn defers(&self) -> bool {
        false
    }

    fn reads_strided(&self, _shape: &[usize], _out_strides: &[isize], _strides: &[isize], _dtype: DType) -> bool {
        true
    }

    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let first = ins.iter().find_map(|i| if let Operand::View(v) = i { Some(v.dtype) } else { None });
        let dtype = first.or_else(|| outs.iter().flatten().next().map(|v| v.dtype));
        if let (Some(dtype), Support::No(_)) = (dtype, dtype.map_or(Support::Yes, |d| self.support(request, d))) {
            return Err(Error::not_implemented(format!("\"{}\" not implemented for '{}'", request.name(), dtype.type_name())));
        }
        Ok(())
    }

    unsafe fn run_program(&self, _program: &Program<'_>) -> Result<()> {
        Ok(())
    }

    unsafe fn count<'a>(&'a self, request: &Request, _x: View<'a>) -> Result<Box<dyn CountedResult + 'a>> {
        Err(no_values(request.name()))
    }
}
