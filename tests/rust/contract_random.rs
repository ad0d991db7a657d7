//! Random numbers on the CPU and on the reference backend.

use super::contract::{array, both, one};
use rgrad::DType;
use rgrad::array::{Distribution, Random};
use rgrad::layout::Scalar;

#[test]
pub fn random_numbers() {
    let kinds = [
        Distribution::Uniform { from: -1.0, to: 2.0 },
        Distribution::Normal { mean: 0.5, std: 2.0 },
        Distribution::Exponential { rate: 1.5 },
        Distribution::Bernoulli { p: 0.3 },
        Distribution::BernoulliOf,
        Distribution::Integers { from: 3, range: 20 },
    ];
    for dtype in DType::ALL.into_iter().filter(|d| !d.is_complex() && !d.is_wide_unsigned()) {
        for distribution in kinds {
            if distribution.is_float_only() && !dtype.is_float() {
                continue;
            }
            // Less than a block, the end of a block, and more than the lanes side by side.
            for (n, start) in [(1, 0), (4, 7), (33, u64::from(u32::MAX)), (150, 1 << 33)] {
                let r = Random { op: distribution.name(), distribution, seed: 0x1234_5678_9abc_def0, start };
                let chances = array(&[n], DType::F64, n);
                let drawn_by = distribution == Distribution::BernoulliOf;
                both(distribution.name(), &[&chances], |i| {
                    let out = i[0].full_beside(&[n], Scalar::Int(0), dtype)?;
                    out.draw(r, drawn_by.then_some(i[0]))?;
                    one(Ok(out))
                });
            }
        }
    }
}
