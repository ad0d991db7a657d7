//! Passes requests to backends. Every computation of an array uses `run` (new outputs), `run_into` (given outputs) or `count` (an output whose
//! size depends on values). Device checks, deferral, allocation and execution are implemented here, once for all families.

use super::deferred::memory::DeferredMemory;
use super::deferred::policy;
use super::deferred::queue;
use super::deferred::source;
use super::deferred::step::{DeferredInput, DeferredKind, DeferredRequest, DeferredStep, ProgramWeight};
use super::storage::Device;
use super::value::Array;
use crate::backend::contract::{CountedResult, Operand, Support, View};
use crate::call::{Flags, Reads, Request, Seen, rows};
use crate::error::{Error, ErrorKind, Result};
use crate::host::live_memory;
use crate::layout::{DType, Layout, fmt_shape};
use smallvec::{SmallVec, smallvec};

/// Shape and dtype of a new output, which is row-major.
pub(super) type OutputSpec<'a> = (&'a [usize], DType);
pub type Outputs = SmallVec<[Array; 2]>;

/// The error for an array on another device.
#[cold]
pub(super) fn device_mismatch(op: &str, a: &Array, wanted: Device) -> Error {
    if a.device() == wanted {
        return Error::runtime(format!("{op}: tensors of two {wanted} devices; move one with .cpu().to(\"{wanted}\")"));
    }
    Error::runtime(format!(
        "Expected all tensors to be on the same device, but found at least two devices, {wanted} and {}! ({op}: an argument of shape {:?} is on {}; \
         move it with .to(\"{wanted}\"))",
        a.device(),
        a.shape(),
        a.device()
    ))
}

impl Array {
    /// The elements as a backend sees them. Pending values must have been computed.
    #[inline(always)]
    pub(super) fn view(&self) -> View<'_> {
        let l = self.layout();
        View { memory: self.storage().backend_memory(), offset: l.offset(), shape: l.shape(), strides: l.strides(), dtype: self.dtype() }
    }

    /// The operand for a request whose output is `target`: a view, or the value of a 0-d array on the host.
    #[inline]
    fn operand<'a>(&'a self, request: &Request, target: &Array) -> Result<Operand<'a>> {
        if self.storage().is_beside(target.storage()) {
            Ok(Operand::View(self.view()))
        } else if self.device().is_host() && self.numel() == 1 {
            Ok(Operand::Number(self.first()?))
        } else {
            Err(device_mismatch(request.name(), self, target.device()))
        }
    }
}

impl Array {
    /// Runs a request on new, row-major outputs of these shapes and dtypes, or defers it as steps of the program of its first operand.
    ///
    /// # Errors
    /// Operands and outputs are not what the request's family describes, or are on several devices; or the backend's own error.
    pub fn request(request: Request, ins: &[&Array], outs: &[(&[usize], DType)]) -> Result<Outputs> {
        accepted(&request, ins, outs)?;
        run(request, ins, outs)
    }

    /// As `request`, for a first operand that nobody reads later (`Storage::may_be_given_away`, apart from the caller's own handles). Where the
    /// backend can, its memory becomes that of the first output.
    ///
    /// # Errors
    /// As for `request`.
    pub fn request_over(request: Request, ins: &[&Array], outs: &[(&[usize], DType)]) -> Result<Outputs> {
        let (Some(first), Some((shape, dtype))) = (ins.first(), outs.first()) else { return Self::request(request, ins, outs) };
        let same = first.dtype() == *dtype && first.shape() == *shape && first.is_whole() && first.is_contiguous();
        if !same || first.numel() == 0 || !first.storage().backend().may_write_over(&request) {
            return Self::request(request, ins, outs);
        }
        accepted(&request, ins, outs)?;
        if let Some((key, bytes)) = first.storage().held()
            && live_memory::may_be_registered(bytes)
        {
            live_memory::take_over(key, policy::site());
        }
        let mut made: Outputs = smallvec![(*first).clone()];
        for (shape, dtype) in &outs[1..] {
            made.push(first.empty_beside(shape, *dtype)?);
        }
        run_into(&request, ins, &made.iter().collect::<SmallVec<[&Array; 4]>>())?;
        Ok(made)
    }

    /// As `request`, for requests with one output.
    ///
    /// # Errors
    /// As for `request`.
    pub fn request1(request: Request, ins: &[&Array], shape: &[usize], dtype: DType) -> Result<Array> {
        accepted(&request, ins, &[(shape, dtype)])?;
        run1(request, ins, shape, dtype)
    }
}

/// Refuses operands and outputs that the request's family does not describe: kernels rely on them.
pub(super) fn accepted(request: &Request, ins: &[&Array], outs: &[(&[usize], DType)]) -> Result<()> {
    let seen: SmallVec<[Seen<'_>; 4]> = ins.iter().map(|a| Some((a.shape(), a.dtype()))).collect();
    let made: SmallVec<[Seen<'_>; 2]> = outs.iter().map(|o| Some(*o)).collect();
    if request.accepts(&seen, &made) {
        return Ok(());
    }
    let list = |all: &[Seen<'_>]| {
        let texts: Vec<String> = all.iter().flatten().map(|(shape, dtype)| format!("{dtype} of shape {}", fmt_shape(shape))).collect();
        if texts.is_empty() { "nothing".into() } else { texts.join(", ") }
    };
    Err(Error::shape(format!("{}: no kernel takes {} and makes {}: convert the inputs", request.name(), list(&seen), list(&made))))
}

/// Runs a request on new, row-major outputs on the device of the first operand, or defers it as steps of that operand's program.
pub(super) fn run(request: Request, ins: &[&Array], outs: &[OutputSpec<'_>]) -> Result<Outputs> {
    debug_assert_eq!(outs.len(), request.outputs());
    let Some(first) = ins.first() else { return Err(Error::internal(request.name(), "a request that says no device")) };
    if !first.storage().is_plain()
        && let Some(made) = deferred(&request, ins, outs)?
    {
        return Ok(made);
    }
    let mut made = Outputs::new();
    for (shape, dtype) in outs {
        made.push(first.empty_beside(shape, *dtype)?);
    }
    match &made[..] {
        [one] => run_into(&request, ins, &[one])?,
        [one, two] => run_into(&request, ins, &[one, two])?,
        more => run_into(&request, ins, &more.iter().collect::<SmallVec<[&Array; 4]>>())?,
    }
    Ok(made)
}

/// As `run`, for requests with one output.
#[inline]
pub(super) fn run1(request: Request, ins: &[&Array], shape: &[usize], dtype: DType) -> Result<Array> {
    let Some(first) = ins.first() else { return Err(Error::internal(request.name(), "a request that says no device")) };
    if !first.storage().is_plain()
        && let Some(mut made) = deferred(&request, ins, &[(shape, dtype)])?
        && let Some(one) = made.pop()
    {
        return Ok(one);
    }
    if let Some(made) = source::pending(&request, ins, shape, dtype)? {
        return Ok(made);
    }
    let out = first.empty_beside(shape, dtype)?;
    run_into(&request, ins, &[&out])?;
    Ok(out)
}

/// Runs a request at once, into existing arrays. None of them overlaps an operand, unless the request's family allows it.
pub(super) fn run_into<'a>(request: &Request, ins: &[&'a Array], outs: &[&Array]) -> Result<()> {
    for a in ins {
        a.ready()?;
    }
    for a in outs {
        a.writable()?;
    }
    let operand = |a: &'a Array| a.operand(request, outs[0]);
    // For few operands an array on the stack, without a collection.
    match ins {
        [] => run_on_backend(request, &[], outs),
        [a] => run_on_backend(request, &[operand(a)?], outs),
        [a, b] => run_on_backend(request, &[operand(a)?, operand(b)?], outs),
        _ => run_on_backend(request, &ins.iter().map(|a| operand(a)).collect::<Result<Vec<Operand<'_>>>>()?, outs),
    }
}

/// As `run_into`, for operands that are views already.
#[inline(always)]
pub(super) fn run_on_backend(request: &Request, operands: &[Operand<'_>], outs: &[&Array]) -> Result<()> {
    debug_assert!(fits(request, operands, outs), "{request:?} of {operands:?} into {outs:?}");
    let backend = outs[0].storage().backend();
    if request.flags().has(Flags::CHECKS) {
        // SAFETY: as for `run` below.
        unsafe { backend.check(request, operands)? };
    }
    if outs[0].numel() == 0 && !request.flags().has(Flags::CHECKS_NOTHING) {
        return Ok(());
    }
    // SAFETY, of both: layouts stay inside their storages, which live as long as the arrays; all are this backend's. Sizes, dtypes and overlap are
    // what the request's family describes: the methods of `Array` that make requests check them.
    let result = match outs {
        // SAFETY: see above.
        [one] => unsafe { backend.run(request, operands, &[Some(one.view())]) },
        _ => {
            let views: SmallVec<[Option<View<'_>>; 2]> = outs.iter().map(|a| Some(a.view())).collect();
            // SAFETY: see above.
            unsafe { backend.run(request, operands, &views) }
        }
    };
    result.map_err(|e| explain_unsupported(e, request, operands, outs))
}

/// Whether operands and outputs are as the request's family describes.
fn fits(request: &Request, operands: &[Operand<'_>], outs: &[&Array]) -> bool {
    let ins: SmallVec<[Seen<'_>; 4]> = operands
        .iter()
        .map(|o| match o {
            Operand::View(v) => Some((v.shape, v.dtype)),
            Operand::Number(_) => Some((&[][..], outs[0].dtype())),
            Operand::Made { program, shape, .. } => Some((*shape, program.dtype())),
            Operand::Unread => None,
        })
        .collect();
    let outs: SmallVec<[Seen<'_>; 2]> = outs.iter().map(|o| Some((o.shape(), o.dtype()))).collect();
    request.accepts(&ins, &outs)
}

/// The full error for a request that the backend does not support.
#[cold]
fn explain_unsupported(e: rgrad_kernels::error::Error, request: &Request, operands: &[Operand<'_>], outs: &[&Array]) -> Error {
    let first = operands.iter().find_map(|o| if let Operand::View(v) = o { Some(v.dtype) } else { None });
    let dtype = first.unwrap_or_else(|| outs[0].dtype());
    match outs[0].storage().backend().support(request, dtype) {
        Support::No(why) if e.kind() == ErrorKind::NotImplemented => {
            let (op, device) = (request.name(), outs[0].device());
            Error::not_implemented(format!(
                "{op}: not implemented for {dtype} on {device} ({why}); convert it with .to(dtype), or move it with .to(device)"
            ))
        }
        _ => e.into(),
    }
}

/// A row of the table of supported requests.
#[derive(Debug)]
pub struct SupportEntry {
    pub request: &'static str,
    pub is_row: bool,
    pub dtype: DType,
    pub device: Device,
    pub support: Support,
}

/// Which requests each backend supports, for each dtype.
///
/// # Errors
/// A device is missing.
pub fn support_table(devices: &[Device]) -> Result<Vec<SupportEntry>> {
    let mut table = Vec::new();
    for device in devices {
        let backend = device.backend()?;
        for dtype in DType::ALL {
            for request in Request::samples().into_iter().chain(rows(dtype).map(Request::Pointwise)) {
                let (is_row, support) = (matches!(request, Request::Pointwise(_)), backend.support(&request, dtype));
                table.push(SupportEntry { request: request.name(), is_row, dtype, device: *device, support });
            }
        }
    }
    Ok(table)
}

/// Determines the size of a result that depends on values, allocates it, and writes it. `shape` maps a count to a shape.
pub(super) fn count(request: &Request, x: &Array, shape: impl FnOnce(usize) -> SmallVec<[usize; 2]>, dtype: DType) -> Result<Array> {
    x.ready()?;
    let backend = x.storage().backend();
    // SAFETY: as in `ask`.
    let counted: Box<dyn CountedResult + '_> = unsafe { backend.count(request, x.view())? };
    let out = x.empty_beside(&shape(counted.count()), dtype)?;
    if out.numel() > 0 {
        // SAFETY: as in `ask`; the output is new.
        unsafe { counted.fill(out.view())? };
    }
    Ok(out)
}

/// Defers the request as steps after the pending ones of its first operand, whose result may then never have to be written. None where that gains
/// nothing, or the request cannot be deferred.
fn deferred(request: &Request, ins: &[&Array], outs: &[OutputSpec<'_>]) -> Result<Option<Outputs>> {
    let x = ins[0];
    if request.reads(0) == Reads::InMemory || !policy::is_enabled() || x.storage().is_plain() {
        return Ok(None);
    }
    let Some(step) = x.storage().deferred().and_then(DeferredMemory::step) else { return Ok(None) };
    let backend = x.storage().backend();
    if step.weight.sources > 0
        || step.follows_two_requests
        || step.out != x.dtype()
        || !x.is_whole()
        || !(request.flags().has(Flags::ANY_ORDER) || x.is_contiguous())
    {
        return Ok(None);
    }
    if !backend.defers() || !backend.reads_programs(request, x.dtype()) {
        return Ok(None);
    }
    let mut operands: SmallVec<[DeferredInput; 3]> = smallvec![DeferredInput::Aligned(x.clone())];
    for a in &ins[1..] {
        if !a.storage().is_beside(x.storage()) || a.storage().deferred().is_some_and(DeferredMemory::is_exposed) {
            return Ok(None);
        }
        // The other operands are read later, after they may have been checked.
        operands.push(DeferredInput::Aligned(a.tracked()?.contiguous()?));
    }
    if request.flags().has(Flags::CHECKS) {
        let views: SmallVec<[Operand<'_>; 4]> = operands
            .iter()
            .enumerate()
            .map(|(k, i)| if k == 0 { Operand::Unread } else { i.array().map_or(Operand::Unread, |a| Operand::View(a.view())) })
            .collect();
        // SAFETY: as in `ask`; the first operand is not looked at.
        unsafe { backend.check(request, &views)? };
    }
    let ticket = if request.flags().has(Flags::CHECKS) { backend.ticket(request.name()) } else { 0 };
    let request = DeferredRequest::new(request.clone().with_ticket(ticket));
    queue::sweep();
    let weight = ProgramWeight { steps: step.weight.steps + 1, inputs: step.weight.inputs + ins.len() - 1, sources: 0 };
    let site = policy::site();
    let made = outs.iter().enumerate().map(|(output, (shape, dtype))| {
        let ins = operands.iter().filter_map(|i| i.array().cloned().map(DeferredInput::Aligned)).collect();
        let make = DeferredKind::Request { request: request.clone(), output };
        let made = queue::make(DeferredStep::new(make, *dtype, Layout::contiguous(shape), ins, weight, false, site));
        request.register(output, &made);
        made
    });
    Ok(Some(made.collect()))
}
