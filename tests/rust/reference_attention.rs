//! Attention on the reference backend, from the definition.

use rgrad_kernels::call::{Attention, AttentionPass};

/// The outputs of a pass. Operands are row-major; a bool mask has numbers 0 and 1 and `is_bool`.
pub fn outputs(a: &Attention, ins: &[Vec<f64>], is_bool: bool) -> Vec<Vec<f64>> {
    let s = &a.shape;
    let back = usize::from(a.pass == AttentionPass::Backward);
    let (q, k, v) = (&ins[back], &ins[1 + back], &ins[2 + back]);
    let mask = a.mask.then(|| &ins[ins.len() - 1]);
    let group = s.heads / s.kv_heads;
    let mut out = vec![0.0; s.batch * s.heads * s.l * s.ev];
    let mut lse = vec![0.0; s.batch * s.l * s.heads];
    let mut grads = [
        vec![0.0; s.batch * s.l * s.heads * s.e],
        vec![0.0; s.batch * s.s * s.kv_heads * s.e],
        vec![0.0; s.batch * s.s * s.kv_heads * s.ev],
    ];
    let scale = a.scale.to_f64();
    for row in 0..s.batch * s.heads * s.l {
        let (b, h, i) = (row / s.l / s.heads, row / s.l % s.heads, row % s.l);
        let key = |j: usize| (b * s.kv_heads + h / group) * s.s + j;
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let score = |j: usize| {
            let at = row * s.s + j;
            let x = scale * dot(&q[row * s.e..][..s.e], &k[key(j) * s.e..][..s.e]);
            match mask {
                Some(m) if is_bool && m[at] == 0.0 => f64::NEG_INFINITY,
                Some(m) if !is_bool => x + m[at],
                _ => x,
            }
        };
        let scores: Vec<f64> = (0..s.s).map(|j| if a.causal && j > i { f64::NEG_INFINITY } else { score(j) }).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = if top == f64::NEG_INFINITY { 0.0 } else { scores.iter().map(|x| (x - top).exp()).sum() };
        let weight = |j: usize| if total == 0.0 { 0.0 } else { (scores[j] - top).exp() / total };
        lse[(b * s.l + i) * s.heads + h] = if total == 0.0 { 0.0 } else { top + total.ln() };
        let [of_batch, of_head, of_row] = a.row_steps();
        let to = b * of_batch + h * of_head + i * of_row;
        for j in 0..s.s {
            for c in 0..s.ev {
                out[to * s.ev + c] += weight(j) * v[key(j) * s.ev + c];
            }
        }
        if back == 0 {
            continue;
        }
        let g = &ins[0][row * s.ev..][..s.ev];
        let slopes: Vec<f64> = (0..s.s).map(|j| dot(g, &v[key(j) * s.ev..][..s.ev])).collect();
        let along: f64 = (0..s.s).map(|j| weight(j) * slopes[j]).sum();
        for j in 0..s.s {
            let slope = weight(j) * (slopes[j] - along) * scale;
            let (at_q, at_k) = ((b * s.l + i) * s.heads + h, (b * s.s + j) * s.kv_heads + h / group);
            for c in 0..s.e {
                grads[0][at_q * s.e + c] += slope * k[key(j) * s.e + c];
                grads[1][at_k * s.e + c] += slope * q[row * s.e + c];
            }
            for c in 0..s.ev {
                grads[2][at_k * s.ev + c] += weight(j) * g[c];
            }
        }
    }
    if back == 0 { vec![out, lse] } else { grads.into() }
}
