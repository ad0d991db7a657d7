//! Every kind of request is compared with the reference backend.

use super::{contract, contract_factor, contract_fft, contract_images, contract_random, contract_recurrence, reference};
use rgrad_kernels::call::RequestKind;

/// The test that compares this kind. None: a custom kernel is whatever a user makes it, and runs on the CPU alone.
fn tested_by(kind: RequestKind) -> Option<(&'static str, fn())> {
    macro_rules! of {
        ($module:ident::$test:ident) => {
            (stringify!($test), $module::$test as fn())
        };
    }
    let found: (&'static str, fn()) = match kind {
        RequestKind::Fill | RequestKind::Copy | RequestKind::Triangle | RequestKind::Matmul => {
            of!(contract::copies_fills_triangles_and_products)
        }
        RequestKind::Pointwise => of!(contract::every_row_over_strides_and_broadcast),
        RequestKind::Reduce
        | RequestKind::ArgReduce
        | RequestKind::Scan
        | RequestKind::CumulativeExtreme
        | RequestKind::Sort
        | RequestKind::Mode
        | RequestKind::Search
        | RequestKind::Softmax
        | RequestKind::Nonzero => of!(contract::reductions_scans_and_sorting),
        RequestKind::Nll => of!(contract::losses),
        RequestKind::Norm => of!(contract::normalisation),
        RequestKind::Conv => of!(contract::convolutions),
        RequestKind::Attention => of!(contract::attention),
        RequestKind::Pool => of!(contract_images::pooling),
        RequestKind::Resample => of!(contract_images::other_sizes),
        RequestKind::GridSample => of!(contract_images::grids),
        RequestKind::Factor => of!(contract_factor::factorisations),
        RequestKind::Recurrent => of!(contract_recurrence::recurrent_layers),
        RequestKind::IndexRead | RequestKind::IndexWrite | RequestKind::Gather | RequestKind::Scatter => of!(contract::positions),
        RequestKind::Fft => of!(contract_fft::fourier_transforms),
        RequestKind::Random => of!(contract_random::random_numbers),
        RequestKind::Custom => return None,
    };
    Some(found)
}

#[test]
fn every_kind_of_request_is_compared_with_the_reference() {
    let mut left: Vec<RequestKind> = RequestKind::ALL.iter().copied().filter(|k| tested_by(*k).is_some()).collect();
    assert!(left.contains(&RequestKind::Recurrent) && left.len() + 1 == RequestKind::ALL.len());
    while let Some((name, test)) = left.first().copied().and_then(tested_by) {
        let (of_test, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|k| tested_by(*k).is_some_and(|t| t.0 == name));
        reference::take_ran();
        test();
        let ran = reference::take_ran();
        let missing: Vec<_> = of_test.iter().filter(|k| !ran.contains(k)).collect();
        assert!(missing.is_empty(), "the test of {of_test:?} has not run {missing:?} on the reference backend");
        left = others;
    }
}
