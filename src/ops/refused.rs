//! PyTorch's errors for pointwise operations that have no complex numbers.

use crate::error::Error;
use crate::layout::DType;
use crate::rows::RowId;

/// The error of a row that has no complex numbers.
#[cold]
pub(super) fn complex(row: RowId, dtype: DType) -> Error {
    let name = row.info().name;
    let kernel = match row {
        RowId::Sign => {
            return Error::not_implemented(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
            );
        }
        RowId::Floor | RowId::Ceil | RowId::Trunc => return Error::not_implemented(format!("{name} is not supported for complex inputs")),
        RowId::Maximum | RowId::Minimum | RowId::Fmax | RowId::Fmin => {
            return Error::runtime(format!("{name} not implemented for complex tensors."));
        }
        RowId::Clamp | RowId::ClampMin | RowId::ClampMax | RowId::Hardtanh | RowId::Relu => {
            return Error::not_implemented("clamp is not supported for complex types");
        }
        RowId::IsPosInf | RowId::IsNegInf => return Error::runtime(format!("{name} does not support complex inputs.")),
        RowId::Rad2deg | RowId::Deg2rad => return Error::runtime(format!("{name} is not supported for complex tensors.")),
        RowId::Round => "round_vml_cpu".into(),
        RowId::Erf | RowId::Erfc | RowId::Lgamma | RowId::Erfinv | RowId::BesselI0 => format!("{name}_vml_cpu"),
        RowId::Digamma => "digamma".into(),
        RowId::Ndtr => "erf_vml_cpu".into(),
        RowId::FloorDivide => "div_floor_cpu".into(),
        RowId::Gelu | RowId::GeluTanh => "GeluKernelImpl".into(),
        RowId::LeftShift => "lshift_cpu".into(),
        RowId::RightShift => "rshift_cpu".into(),
        RowId::LogSigmoid => "log_sigmoid_cpu".into(),
        RowId::Celu => "elu_cpu".into(),
        _ => format!("{}_cpu", name.trim_start_matches("special_")),
    };
    Error::not_implemented(format!("\"{kernel}\" not implemented for '{}'", dtype.type_name()))
}
