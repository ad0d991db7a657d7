//! Normalisation on the reference backend, from the definition.

use rgrad_kernels::call::{Norm, NormPass, NormShape};

/// The number of the mean and the weight's number of each element.
fn places(s: &NormShape) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for o in 0..s.outer {
        for g in 0..s.groups {
            for c in 0..s.channels {
                let stat = if s.across { g } else { o * s.groups + g };
                all.extend(std::iter::repeat_n((stat, g * s.channels + c), s.inner));
            }
        }
    }
    all
}

/// The outputs of a pass.
pub fn outputs(n: &Norm, ins: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let s = &n.shape;
    let (at, count, eps) = (places(s), s.count() as f64, n.eps.to_f64());
    let means = |v: &dyn Fn(usize) -> f64| {
        let mut all = vec![0.0; s.stats()];
        at.iter().enumerate().for_each(|(i, (stat, _))| all[*stat] += v(i) / count);
        all
    };
    let applied = |x: &[f64], mean: &[f64], rstd: &[f64], params: [Option<&Vec<f64>>; 2]| -> Vec<f64> {
        let each = at.iter().zip(x);
        each.map(|((stat, c), x)| (x - mean[*stat]) * rstd[*stat] * params[0].map_or(1.0, |w| w[*c]) + params[1].map_or(0.0, |b| b[*c]))
            .collect()
    };
    let reciprocal = |var: &[f64]| -> Vec<f64> { var.iter().map(|v| 1.0 / (v + eps).sqrt()).collect() };
    let optional = |k: usize, there: bool| there.then(|| &ins[k]);
    match n.pass {
        NormPass::Forward { weight, bias } => {
            let x = &ins[0];
            let mean = means(&|i| x[i]);
            let var = means(&|i| (x[i] - mean[at[i].0]).powi(2));
            let rstd = reciprocal(&var);
            let y = applied(x, &mean, &rstd, [optional(1, weight), optional(1 + usize::from(weight), bias)]);
            if s.across { vec![y, mean, rstd, var] } else { vec![y, mean, rstd] }
        }
        NormPass::Apply { weight, bias } => {
            let params = [optional(3, weight), optional(3 + usize::from(weight), bias)];
            vec![applied(&ins[0], &ins[1], &reciprocal(&ins[2]), params)]
        }
        NormPass::Backward { weight, fixed, params } => {
            let (g, mean, rstd) = (&ins[0], &ins[2], &ins[3]);
            let xhat = applied(&ins[1], mean, rstd, [None, None]);
            let v: Vec<f64> = g.iter().zip(&at).map(|(g, (_, c))| g * optional(4, weight).map_or(1.0, |w| w[*c])).collect();
            let (first, second) = (means(&|i| v[i]), means(&|i| v[i] * xhat[i]));
            let rest = |i: usize, stat: usize| if fixed { 0.0 } else { first[stat] + xhat[i] * second[stat] };
            let mut made = vec![at.iter().enumerate().map(|(i, (stat, _))| rstd[*stat] * (v[i] - rest(i, *stat))).collect()];
            if params {
                let (mut w, mut b) = (vec![0.0; s.params()], vec![0.0; s.params()]);
                for (i, (_, c)) in at.iter().enumerate() {
                    w[*c] += g[i] * xhat[i];
                    b[*c] += g[i];
                }
                made.extend([w, b]);
            }
            made
        }
    }
}
