//! The kinds of requests, without what they say.

use super::Request;

/// One name for each kind of request. `ALL` and `kind` are made of the same list, and the match has no other arm.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
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
                    $(Request::$kind { .. } => RequestKind::$kind),+
                }
            }
        }
    };
}

kinds!(
    Fill,
    Copy,
    Pointwise,
    Triangle,
    Reduce,
    ArgReduce,
    Scan,
    CumulativeExtreme,
    Sort,
    Mode,
    Softmax,
    Nll,
    Norm,
    Conv,
    Attention,
    Pool,
    Resample,
    GridSample,
    Recurrent,
    Gemm,
    IndexRead,
    IndexWrite,
    Gather,
    Scatter,
    Nonzero,
    Random,
    Custom,
);
