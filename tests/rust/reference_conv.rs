//! Convolution on the reference backend, from the definition.

use super::reference_elements::V;
use rgrad_kernels::call::{Conv, ConvPass, ConvShape};

/// Calls `f` for each product, with its places in x, the weight and y.
fn products(s: &ConvShape, mut f: impl FnMut([usize; 3])) {
    let volume = |n: [usize; 3]| n.iter().product::<usize>();
    let split = |mut i: usize, n: [usize; 3]| {
        let mut at = [0; 3];
        for d in (0..3).rev() {
            at[d] = i % n[d];
            i /= n[d];
        }
        at
    };
    let channels = s.groups * s.out_channels;
    for n in 0..s.batch * channels * volume(s.output) {
        let (c, o) = (n / volume(s.output) % channels, split(n % volume(s.output), s.output));
        for m in 0..s.in_channels * volume(s.kernel) {
            let (i, k) = (c / s.out_channels * s.in_channels + m / volume(s.kernel), split(m % volume(s.kernel), s.kernel));
            let mut at = n / volume(s.output) / channels * s.groups * s.in_channels + i;
            let mut inside = true;
            for d in 0..3 {
                let place = (o[d] * s.stride[d] + k[d] * s.dilation[d]).wrapping_sub(s.padding[d]);
                inside &= place < s.input[d];
                at = at.wrapping_mul(s.input[d]).wrapping_add(place);
            }
            if inside {
                f([at, c * s.in_channels * volume(s.kernel) + m, n]);
            }
        }
    }
}

/// The output of a pass.
pub fn output(c: &Conv, zero: V, ins: &[Vec<V>]) -> Vec<V> {
    let s = &c.shape;
    let numels = s.numels().expect("an accepted shape");
    // The places of the operands and of the output among (x, weight, y).
    let ([a, b], to) = match c.pass {
        ConvPass::Forward { .. } => ([0, 1], 2),
        ConvPass::Input { .. } => ([2, 1], 0),
        ConvPass::Weight => ([2, 0], 1),
    };
    let mut made = vec![zero; numels[to]];
    if let Some(bias) = ins.get(2) {
        let (channels, n) = (bias.len(), numels[to] / s.batch / bias.len());
        made.iter_mut().enumerate().for_each(|(i, v)| *v = bias[i / n % channels]);
    }
    products(s, |at| made[at[to]] = made[at[to]].plus(ins[0][at[a]].times(ins[1][at[b]])));
    made
}
