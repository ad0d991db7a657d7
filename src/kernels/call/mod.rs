//! The requests of backends. A request is plain data: what to compute, with which parameters, and how each operand is read. It holds no tensor
//! and no memory. The same request runs at once or is deferred as a step of a program. Each family has a file, which says everything about it
//! (`Family`); the list below makes the rest. Not here: kernels (`backend`, a file or folder for each family under the same name), and PyTorch's
//! rules for the shapes of results (`ops`).

mod arg_reduce;
mod attention;
mod conv;
mod copy;
mod cumulative_extreme;
mod custom;
mod factor;
mod family;
mod fft;
mod fill;
mod gather;
mod grid_sample;
mod index;
mod matmul;
mod mode;
mod nll;
mod nonzero;
mod norm;
mod pointwise;
mod pool;
mod random;
mod recurrent;
mod reduce;
mod resample;
mod scan;
mod search;
mod softmax;
mod sort;
mod triangle;
mod view;

pub use arg_reduce::ArgReduce;
pub use attention::{Attention, AttentionOrder, AttentionPass, AttentionShape};
pub use conv::{Conv, ConvPass, ConvShape};
pub use copy::Copying;
pub use cumulative_extreme::CumulativeExtreme;
pub use custom::Custom;
pub use factor::{Factor, FactorKind, QrParts, SvdParts};
pub use family::{Elems, Family, Flags, Provenance, Reads, Seen};
pub use fft::{Fft, FftKind};
pub use fill::Fill;
pub use gather::{Along, ScatterAlong};
pub use grid_sample::{GridBorder, GridMode, GridPass, GridSample};
pub use index::{Bounds, IndexPlan, IndexWrite, Write};
pub use matmul::Matmul;
pub use mode::Mode;
pub use nll::{Classes, Nll, NllReduction};
pub use nonzero::Nonzero;
pub use norm::{Norm, NormPass, NormShape};
pub use pointwise::{Pointwise, rows};
pub use pool::{Pool, PoolDivisor, PoolPass, WindowAxis};
pub use random::{Distribution, Random, below};
pub use recurrent::{Recurrent, RecurrentCell};
pub use reduce::{Reduce, Reducer};
pub use resample::{Resample, WeightTable};
pub use scan::{Scan, ScanKind};
pub use search::Search;
pub use softmax::{Softmax, SoftmaxPass};
pub use sort::Sort;
pub use triangle::Triangle;
pub use view::{DeviceMemory, Memory, View};

use crate::layout::{DType, Scalar};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The families. Requests, their kinds and what is asked of any request are made of this list.
macro_rules! families {
    ($($kind:ident($family:ty)),+ $(,)?) => {
        /// A request. Operands and outputs are described at each family's struct.
        #[non_exhaustive]
        #[derive(Debug, Clone, Hash)]
        pub enum Request {
            $($kind($family)),+
        }

        /// Which kind of request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RequestKind {
            $($kind),+
        }

        impl RequestKind {
            pub const ALL: &[RequestKind] = &[$(RequestKind::$kind),+];
        }

        impl Request {
            /// Which kind it is.
            pub fn kind(&self) -> RequestKind {
                match self {
                    $(Request::$kind(_) => RequestKind::$kind),+
                }
            }

            /// A request for each name in the table of what backends support, but for pointwise rows.
            pub fn samples() -> Vec<Request> {
                let mut all = Vec::new();
                $(all.extend(<$family as Family>::samples().into_iter().map(Request::$kind));)+
                all
            }
        }

        /// `$body` with `$f` as the family's struct of any request.
        macro_rules! of_family {
            ($request:expr, $f:ident => $body:expr) => {
                match $request {
                    $($crate::call::Request::$kind($f) => $body),+
                }
            };
        }
    };
}

families! {
    Fill(Fill),
    Copy(Copying),
    Pointwise(Pointwise),
    Triangle(Triangle),
    Reduce(Reduce),
    ArgReduce(ArgReduce),
    Scan(Scan),
    CumulativeExtreme(CumulativeExtreme),
    Sort(Sort),
    Mode(Mode),
    Search(Search),
    Softmax(Softmax),
    Nll(Nll),
    Norm(Norm),
    Conv(Conv),
    Attention(Attention),
    Pool(Pool),
    Resample(Resample),
    GridSample(GridSample),
    Recurrent(Recurrent),
    Matmul(Matmul),
    Fft(Fft),
    Factor(Factor),
    IndexRead(IndexPlan),
    IndexWrite(IndexWrite),
    Gather(Along),
    Scatter(ScatterAlong),
    Nonzero(Nonzero),
    Random(Random),
    Custom(Arc<dyn Custom>),
}

pub(crate) use of_family;

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            Scalar::Bool(b) => (0u8, u64::from(b)).hash(state),
            Scalar::Int(i) => (1u8, i as u64).hash(state),
            Scalar::Float(f) => (2u8, f.to_bits()).hash(state),
            Scalar::Unsigned(u) => (4u8, u).hash(state),
            Scalar::Complex(z) => (3u8, z.re.to_bits(), z.im.to_bits()).hash(state),
        }
    }
}

/// What `Family` says, of any request.
impl Request {
    pub fn name(&self) -> &'static str {
        of_family!(self, f => f.name())
    }

    pub fn elems(&self) -> Elems {
        of_family!(self, f => f.elems())
    }

    pub fn provenance(&self) -> Provenance {
        of_family!(self, f => f.provenance())
    }

    pub fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        of_family!(self, f => f.accepts(ins, outs))
    }

    pub fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        of_family!(self, f => f.work(ins, outs))
    }

    pub fn outputs(&self) -> usize {
        of_family!(self, f => f.outputs())
    }

    #[inline]
    pub fn reads(&self, k: usize) -> Reads {
        of_family!(self, f => f.reads(k))
    }

    #[inline]
    pub fn flags(&self) -> Flags {
        of_family!(self, f => f.flags())
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
