//! The requests of backends. A request is plain data: what to compute, with which parameters, and how each operand is read. It holds no tensor
//! and no memory. The same request runs at once or is deferred as a step of a program. Not here: kernels (a folder for each backend), and
//! PyTorch's rules for the shapes of results (`ops`).

mod conv;
mod attention;
mod copy;
mod gather;
mod grid_sample;
mod kind;
mod nll;
mod norm;
mod pointwise;
mod pool;
mod random;
mod recurrent;
mod reduce;
mod resample;
pub mod samples;
mod scan;
mod shapes;
mod softmax;
mod sort;
mod view;

pub use attention::{Attention, AttentionOrder, AttentionPass, AttentionShape};
pub use conv::{Conv, ConvPass, ConvShape};
pub use copy::Triangle;
pub use gather::{Along, Bounds, IndexPlan, IndexWrite, ScatterAlong, Write};
pub use grid_sample::{GridBorder, GridMode, GridPass, GridSample};
pub use kind::RequestKind;
pub use nll::{Classes, Nll, NllReduction};
pub use norm::{Norm, NormPass, NormShape};
pub use pointwise::Pointwise;
pub use pool::{Pool, PoolDivisor, PoolPass, WindowAxis};
pub use random::{Distribution, Random, below};
pub use recurrent::{Recurrent, RecurrentCell};
pub use reduce::{ArgReduce, Reduce, Reducer};
pub use resample::{Resample, WeightTable};
pub use scan::{CumulativeExtreme, Scan, ScanKind};
pub use shapes::Seen;
pub use softmax::{Softmax, SoftmaxPass};
pub use sort::{Mode, Sort};
pub use view::{DeviceMemory, Memory, View};

use crate::layout::{DType, Scalar};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How an operand of a request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Every element once, in memory order. The operand may be a deferred program, which computes the elements as they are read.
    InOrder,
    /// Some elements, in any order. The operand may be a deferred program, unless other holders need the results of its steps.
    AtRandom,
    /// More than once, or in the kernel's own order. The operand must be in memory.
    InMemory,
}

/// Where the elements of results come from. Floats of 16 bits are exact where they are moved or selected, and rounded once where they are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// They are elements of operands, wherever those lie, or zeros. No value is looked at.
    Moved,
    /// They are elements of operands, or their positions, chosen by comparing values.
    Selected,
    /// They are new numbers.
    Computed,
}

/// A request. Operands and outputs are described at each family's struct.
#[non_exhaustive]
#[derive(Debug, Clone, Hash)]
pub enum Request {
    /// One value everywhere. No operand.
    Fill(Scalar),
    /// The operand, converted to the output's dtype.
    Copy,
    Pointwise(Pointwise),
    Triangle(Triangle),
    Reduce(Reduce),
    ArgReduce(ArgReduce),
    Scan(Scan),
    CumulativeExtreme(CumulativeExtreme),
    Sort(Sort),
    Mode(Mode),
    Softmax(Softmax),
    Nll(Nll),
    Norm(Norm),
    Conv(Conv),
    Attention(Attention),
    Pool(Pool),
    Resample(Resample),
    GridSample(GridSample),
    Recurrent(Recurrent),
    /// Products of matrices: (..., m, k) and (..., k, n) give (..., m, n). All have the same leading sizes. Where `Backend::adds_bias` holds,
    /// a third operand (n), dense, is added to each row of the result.
    Gemm,
    /// `x[i, j]`: the elements of the first operand at the positions that the others name.
    IndexRead(IndexPlan),
    /// `x[i, j] = v`: the first operand is written to the output, at the positions that the others name.
    IndexWrite(IndexWrite),
    /// `out[.., j, ..] = x[.., index[.., j, ..], ..]` of x and an index.
    Gather(Along),
    /// `out[.., index[.., j, ..], ..] = x[.., j, ..]` of x and an index.
    Scatter(ScatterAlong),
    /// The positions of elements that are not zero: a result whose size depends on values (see `Backend::count`).
    Nonzero,
    /// Random numbers. One operand, the probabilities, for `Distribution::BernoulliOf`; otherwise none.
    Random(Random),
    /// A custom kernel. It reads memory and is never deferred.
    Custom(Arc<dyn Custom>),
}

/// A kernel from outside of the crate.
///
/// # Safety
/// `run` writes every element of every output, reads and writes nothing else than the views describe, and keeps none of their pointers: what
/// comes after it relies on that.
pub unsafe trait Custom: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Computes the outputs, which are new, on the CPU.
    ///
    /// # Errors
    /// The kernel's own errors.
    ///
    /// # Safety
    /// Operands and outputs are what the kernel expects. All views stay inside their memory.
    unsafe fn run(&self, ins: &[View<'_>], outs: &[View<'_>]) -> crate::error::Result<()>;
}

impl Hash for dyn Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            Scalar::Bool(b) => (0u8, u64::from(b)).hash(state),
            Scalar::Int(i) => (1u8, i as u64).hash(state),
            Scalar::Float(f) => (2u8, f.to_bits()).hash(state),
        }
    }
}

impl Request {
    /// The operation's name, for messages and diagnostics.
    pub fn name(&self) -> &'static str {
        match self {
            Request::Fill(_) => "fill",
            Request::Copy => "copy",
            Request::Pointwise(p) => p.func.row.info().name,
            Request::Triangle(t) => t.name(),
            Request::Reduce(r) => r.reducer.name(),
            Request::ArgReduce(r) => r.name(),
            Request::Scan(s) => s.name(),
            Request::CumulativeExtreme(c) => c.name(),
            Request::Sort(_) => "sort",
            Request::Mode(_) => "mode",
            Request::Softmax(s) => s.name(),
            Request::Nll(_) => "nll_loss",
            Request::Norm(n) => n.op,
            Request::Conv(c) => c.op,
            Request::Attention(a) => a.name(),
            Request::Pool(p) => p.op,
            Request::Resample(r) => r.op,
            Request::GridSample(g) => g.op,
            Request::Recurrent(r) => r.name(),
            Request::Gemm => "matmul",
            Request::IndexRead(i) => i.bounds.name(),
            Request::IndexWrite(w) => w.index.bounds.name(),
            Request::Gather(_) => "gather",
            Request::Scatter(_) => "scatter",
            Request::Nonzero => "nonzero",
            Request::Random(r) => r.op,
            Request::Custom(c) => c.name(),
        }
    }

    /// Where the elements of results come from: what backends ask before they convert operands to a wider dtype.
    pub fn provenance(&self) -> Provenance {
        match self {
            Request::Copy | Request::Triangle(_) | Request::IndexRead(_) | Request::Gather(_) => Provenance::Moved,
            Request::IndexWrite(IndexWrite { how, .. }) | Request::Scatter(ScatterAlong { how, .. }) => match how {
                Write::Set => Provenance::Moved,
                Write::Add | Write::Multiply => Provenance::Computed,
            },
            Request::Pool(p) => match p.pass {
                PoolPass::Unfold => Provenance::Moved,
                PoolPass::Max { .. } => Provenance::Selected,
                PoolPass::MaxAdjoint | PoolPass::Average(_) | PoolPass::AverageAdjoint(_) | PoolPass::Fold => Provenance::Computed,
            },
            Request::Reduce(Reduce { reducer: Reducer::Extreme { .. }, .. })
            | Request::ArgReduce(_)
            | Request::CumulativeExtreme(_)
            | Request::Sort(_)
            | Request::Mode(_)
            | Request::Nonzero => Provenance::Selected,
            Request::Fill(_)
            | Request::Pointwise(_)
            | Request::Reduce(_)
            | Request::Scan(_)
            | Request::Softmax(_)
            | Request::Nll(_)
            | Request::Norm(_)
            | Request::Conv(_)
            | Request::Attention(_)
            | Request::Resample(_)
            | Request::GridSample(_)
            | Request::Recurrent(_)
            | Request::Gemm
            | Request::Random(_)
            | Request::Custom(_) => Provenance::Computed,
        }
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        match self {
            Request::ArgReduce(_) | Request::CumulativeExtreme(_) | Request::Sort(_) | Request::Mode(_) => 2,
            Request::Norm(n) => n.outputs(),
            Request::Attention(a) => a.outputs(),
            Request::Pool(p) => p.outputs(),
            Request::Recurrent(r) => r.results().len(),
            _ => 1,
        }
    }

    /// Whether operands have to be checked even if no output has an element.
    pub fn looks_at_nothing(&self) -> bool {
        matches!(self, Request::IndexRead(_) | Request::IndexWrite(_))
    }

    /// How operand `k` is read. Operands after the first are always read from memory.
    pub fn reads(&self, k: usize) -> Reads {
        match self {
            Request::Reduce(_) | Request::ArgReduce(_) | Request::Scan(_) | Request::Softmax(_) if k == 0 => Reads::InOrder,
            Request::Nll(n) if k == 0 && !n.adjoint => Reads::AtRandom,
            _ => Reads::InMemory,
        }
    }

    /// The multiply-adds of a product, or of a convolution whose result is images, from the shapes of the first operand and of the output. None: no
    /// backend runs an epilogue after such a request.
    pub fn multiply_adds(&self, first: &[usize], out: &[usize]) -> Option<usize> {
        match self {
            Request::Gemm => Some(out.iter().chain(first.last()).fold(1, |n, k| n.saturating_mul(*k))),
            Request::Conv(c) if !matches!(c.pass, ConvPass::Weight) => Some(c.shape.multiply_adds()),
            _ => None,
        }
    }

    /// Whether the first operand's elements may come in any dense order, described by strides.
    pub fn reads_any_order(&self) -> bool {
        matches!(self, Request::Reduce(_))
    }

    /// Whether operands after the first may have invalid values (see `Backend::check`).
    pub fn checks(&self) -> bool {
        matches!(self, Request::Nll(_))
    }

    /// The request with this ticket, if it reports errors later (see `Backend::ticket`).
    #[must_use]
    pub fn with_ticket(mut self, ticket: u32) -> Request {
        if let Request::Nll(n) = &mut self {
            n.ticket = ticket;
        }
        self
    }
}

/// The accumulating dtype of sums and products: floats keep theirs, others give int64.
pub fn summed(dtype: DType) -> DType {
    dtype.row().accumulator
}
