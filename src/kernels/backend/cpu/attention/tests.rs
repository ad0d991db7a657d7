use super::*;
use crate::backend::cpu::common::seed::Seed;
use crate::host::threads::set_num_threads;

/// A dense operand with the dimensions batch, heads, rows and columns, the middle ones in either order in memory.
struct HeadRows {
    numbers: Vec<f64>,
    strides: [usize; 4],
}

impl HeadRows {
    fn new(r: &mut Seed, [b, h, n, e]: [usize; 4], heads_first: bool) -> HeadRows {
        let strides = if heads_first { [h * n * e, n * e, e, 1] } else { [n * h * e, e, h * e, 1] };
        HeadRows { numbers: r.numbers(b * h * n * e), strides }
    }
    fn at(&self, b: usize, h: usize, i: usize, j: usize) -> f64 {
        self.numbers[[b, h, i, j].iter().zip(self.strides).map(|(i, s)| i * s).sum::<usize>()]
    }
    fn as_type<T: BlockElement>(&self) -> Vec<T> {
        self.numbers.iter().map(|v| T::narrow(*v)).collect()
    }
    fn view<T>(&self, data: &[T]) -> Strided4<T> {
        Strided4 { ptr: data.as_ptr(), strides: self.strides.map(|s| s as isize) }
    }
}

/// The result (batch, l, heads, ev), its logarithms, and the gradients of q, k and v, by their definition.
fn defined(
    s: AttentionShape,
    (causal, scale): (bool, f64),
    [q, k, v, g]: [&HeadRows; 4],
    mask: Option<&HeadRows>,
) -> (Vec<f64>, Vec<f64>, [Vec<f64>; 3]) {
    let (mut out, mut lse) = (vec![0.0; s.batch * s.l * s.heads * s.ev], vec![0.0; s.batch * s.l * s.heads]);
    let [mut dq, mut dk, mut dv] =
        [(s.l, s.heads, s.e), (s.s, s.kv_heads, s.e), (s.s, s.kv_heads, s.ev)].map(|(n, h, e)| vec![0.0; s.batch * n * h * e]);
    for b in 0..s.batch {
        for h in 0..s.heads {
            let kv = h / (s.heads / s.kv_heads);
            for i in 0..s.l {
                let row = (b * s.l + i) * s.heads + h;
                let seen = if causal { s.s.min(i + 1) } else { s.s };
                let scores: Vec<f64> = (0..seen)
                    .map(|j| {
                        (0..s.e).map(|e| q.at(b, h, i, e) * k.at(b, kv, j, e)).sum::<f64>() * scale + mask.map_or(0.0, |m| m.at(b, h, i, j))
                    })
                    .collect();
                let sum = scores.iter().map(|x| x.exp()).sum::<f64>();
                lse[row] = sum.ln();
                let weights: Vec<f64> = scores.iter().map(|x| x.exp() / sum).collect();
                for c in 0..s.ev {
                    out[row * s.ev + c] = weights.iter().enumerate().map(|(j, w)| w * v.at(b, kv, j, c)).sum();
                }
                let along: f64 = (0..s.ev).map(|c| g.at(b, h, i, c) * out[row * s.ev + c]).sum();
                for (j, w) in weights.iter().enumerate() {
                    let slope = (0..s.ev).map(|c| g.at(b, h, i, c) * v.at(b, kv, j, c)).sum::<f64>() - along;
                    let of_key = (b * s.s + j) * s.kv_heads + kv;
                    for c in 0..s.ev {
                        dv[of_key * s.ev + c] += w * g.at(b, h, i, c);
                    }
                    for e in 0..s.e {
                        dk[of_key * s.e + e] += w * slope * scale * q.at(b, h, i, e);
                        dq[row * s.e + e] += w * slope * scale * k.at(b, kv, j, e);
                    }
                }
            }
        }
    }
    (out, lse, [dq, dk, dv])
}

fn check<T: BlockElement + Into<f64>>(seed: u64, tolerance: f64) {
    let mut r = Seed(seed);
    for case in 0..if cfg!(miri) { 2 } else { 60 } {
        let kv_heads = 1 + r.below(3);
        let s = AttentionShape {
            batch: 1 + r.below(3),
            heads: kv_heads * (1 + r.below(2)),
            kv_heads,
            l: r.of(&[1, 3, 7, 14, 33, 64, 65, 100]),
            // The last one is divided into parts where there are few heads.
            s: r.of(&[1, 5, 16, 63, 128, 129, 150, if case % 8 == 0 { 1100 } else { 40 }]),
            e: r.of(&[1, 3, 8, 16, 24, 32, 64]),
            ev: r.of(&[1, 5, 8, 16, 32, 40]),
        };
        let (causal, masked, heads_first) = (r.below(3) == 0, r.below(3) == 0, r.below(2) == 0);
        let scale = r.of(&[0.125, 0.5, 1.0]);
        let q = HeadRows::new(&mut r, [s.batch, s.heads, s.l, s.e], heads_first);
        let k = HeadRows::new(&mut r, [s.batch, s.kv_heads, s.s, s.e], heads_first);
        let v = HeadRows::new(&mut r, [s.batch, s.kv_heads, s.s, s.ev], heads_first);
        let g = HeadRows::new(&mut r, [s.batch, s.heads, s.l, s.ev], heads_first);
        let mask = masked.then(|| HeadRows::new(&mut r, [s.batch, s.heads, s.l, s.s], true));
        let (out, lse, gradients) = defined(s, (causal, scale), [&q, &k, &v, &g], mask.as_ref());
        let data = [&q, &k, &v, &g].map(HeadRows::as_type::<T>);
        let mask_data = mask.as_ref().map(HeadRows::as_type::<T>);
        let mut seen: Option<[Vec<T>; 4]> = None;
        for threads in [1, 3] {
            set_num_threads(threads);
            let job = AttentionJob {
                shape: s,
                scale: T::narrow(scale),
                causal,
                q: q.view(&data[0]),
                k: k.view(&data[1]),
                v: v.view(&data[2]),
                mask: mask.as_ref().zip(mask_data.as_ref()).map_or(AttentionMask::Nothing, |(m, d)| AttentionMask::Number(m.view(d))),
                row_steps: [s.l * s.heads, 1, s.heads],
            };
            // What is not written would be seen.
            let made = |n: usize| vec![T::LOWEST; n];
            let (mut o, mut l) = (made(out.len()), made(lse.len()));
            let [mut dq, mut dk, mut dv] = gradients.each_ref().map(|g| made(g.len()));
            let (of_batch, of_row) = ((s.l * s.heads) as isize, s.heads as isize);
            // SAFETY: operands and results have the sizes.
            unsafe {
                forward(&job, o.as_mut_ptr(), l.as_mut_ptr()).unwrap();
                let ev = s.ev as isize;
                let from = GradientSources {
                    g: g.view(&data[3]),
                    o: Strided4 { ptr: o.as_ptr(), strides: [of_batch * ev, ev, of_row * ev, 1] },
                    lse: Strided4 { ptr: l.as_ptr(), strides: [of_batch, 1, of_row, 0] },
                };
                backward(&job, &from, [dq.as_mut_ptr(), dk.as_mut_ptr(), dv.as_mut_ptr()]).unwrap();
            }
            for (got, want) in [(&o, &out), (&l, &lse), (&dq, &gradients[0]), (&dk, &gradients[1]), (&dv, &gradients[2])] {
                let largest = want.iter().fold(1.0, |m: f64, w| m.max(w.abs()));
                for (i, (got, want)) in got.iter().zip(want).enumerate() {
                    assert!(((*got).into() - want).abs() <= tolerance * largest, "{case}: {s:?}, causal {causal}, masked {masked}: {i}");
                }
            }
            let all = [o, dq, dk, dv];
            assert!(seen.get_or_insert_with(|| all.clone()) == &all, "{case}: other bits on {threads} threads");
        }
    }
    set_num_threads(2);
}

#[test]
fn results_and_gradients_of_float32_are_those_of_the_definition() {
    check::<f32>(0x9E37_79B9_7F4A_7C15, 2e-5);
}

#[test]
fn results_and_gradients_of_float64_are_those_of_the_definition() {
    check::<f64>(0x2545_F491_4F6C_DD1D, 1e-12);
}
