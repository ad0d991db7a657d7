use super::{RecurrentBackward, RecurrentForward};
use crate::backend::cpu::common::blocks::BlockElement;
use crate::call::{Recurrent, RecurrentCell};
use crate::host::threads::set_num_threads;
use std::ptr::{null, null_mut};

const LSTM: RecurrentCell = RecurrentCell::Lstm { projected: false };
const PROJECTED: RecurrentCell = RecurrentCell::Lstm { projected: true };

/// Numbers from -0.5 to 0.5.
fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1013) as f64 / 1013.0 - 0.5).collect()
}

#[derive(Clone)]
struct LayerOperands {
    x: Vec<f64>,
    weight: Vec<f64>,
    first: Vec<f64>,
    bias: Vec<f64>,
    first_cell: Vec<f64>,
    projection: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct States {
    states: Vec<f64>,
    cells: Vec<f64>,
    kept: Vec<f64>,
    last: Vec<f64>,
    last_cell: Vec<f64>,
}

impl LayerOperands {
    fn new(r: &Recurrent) -> LayerOperands {
        let (n, b) = (r.batches.iter().sum::<usize>(), r.batches[0]);
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        LayerOperands {
            x: numbers(n * gates, 1),
            weight: numbers(gates * p, 2).iter().map(|w| w / (p as f64).sqrt()).collect(),
            first: numbers(b * p, 3),
            bias: numbers(gates, 4),
            first_cell: numbers(b * h, 5),
            projection: numbers(p * h, 6).iter().map(|w| w / (h as f64).sqrt()).collect(),
        }
    }

    fn forward(&self, r: &Recurrent) -> States {
        let (n, b, h) = (r.batches.iter().sum::<usize>(), r.batches[0], r.hidden);
        let room = |n: usize| vec![f64::NAN; n];
        let is = |there: bool, n: usize| room(if there { n } else { 0 });
        let mut s = States {
            states: room(n * r.state),
            cells: is(r.cell.is_lstm(), n * h),
            kept: room(n * r.cell.kept() * h),
            last: room(b * r.state),
            last_cell: is(r.cell.is_lstm(), b * h),
        };
        let lstm = |p: *mut f64| if r.cell.is_lstm() { p } else { null_mut() };
        let request = RecurrentForward {
            r,
            x: self.x.as_ptr(),
            weight: self.weight.as_ptr(),
            first: self.first.as_ptr(),
            bias: self.bias.as_ptr(),
            first_cell: self.first_cell.as_ptr(),
            projection: self.projection.as_ptr(),
            states: s.states.as_mut_ptr(),
            cells: lstm(s.cells.as_mut_ptr()),
            kept: if r.cell.kept() > 0 { s.kept.as_mut_ptr() } else { null_mut() },
            last: s.last.as_mut_ptr(),
            last_cell: lstm(s.last_cell.as_mut_ptr()),
        };
        // SAFETY: all have the sizes that `Recurrent` describes.
        unsafe { <f64 as BlockElement>::run(&request) }.unwrap();
        s
    }
}

/// The gradients of the input's products, of the first state and of the first cell, and rows that gradients of weights need.
#[derive(Debug, PartialEq)]
struct Gradients {
    dx: Vec<f64>,
    dproduct: Vec<f64>,
    before: Vec<f64>,
    d_first: Vec<f64>,
    d_first_cell: Vec<f64>,
    d_projected: Vec<f64>,
    raw: Vec<f64>,
}

/// Of the sum of states times `g`, and of last states and cells.
fn backward(r: &Recurrent, o: &LayerOperands, s: &States, [g, g_last, g_last_cell]: [&[f64]; 3]) -> Gradients {
    let (n, b) = (r.batches.iter().sum::<usize>(), r.batches[0]);
    let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
    let room = |n: usize| vec![f64::NAN; n];
    let is = |there: bool, n: usize| room(if there { n } else { 0 });
    let (gru, projected) = (r.cell == RecurrentCell::Gru, r.cell.is_projected());
    let mut d = Gradients {
        dx: room(n * gates),
        dproduct: is(gru, n * gates),
        before: room(n * p),
        d_first: room(b * p),
        d_first_cell: is(r.cell.is_lstm(), b * h),
        d_projected: is(projected, n * p),
        raw: is(projected, n * h),
    };
    let given = |v: &[f64]| if v.is_empty() { null() } else { v.as_ptr() };
    let made = |v: &mut [f64]| if v.is_empty() { null_mut() } else { v.as_mut_ptr() };
    let request = RecurrentBackward {
        r,
        g: g.as_ptr(),
        g_last: g_last.as_ptr(),
        g_last_cell: g_last_cell.as_ptr(),
        states: s.states.as_ptr(),
        cells: given(&s.cells),
        kept: given(&s.kept),
        weight: o.weight.as_ptr(),
        first: o.first.as_ptr(),
        first_cell: if r.cell.is_lstm() { o.first_cell.as_ptr() } else { null() },
        projection: o.projection.as_ptr(),
        dx: made(&mut d.dx),
        dproduct: made(&mut d.dproduct),
        before: made(&mut d.before),
        d_first: made(&mut d.d_first),
        d_first_cell: made(&mut d.d_first_cell),
        d_projected: made(&mut d.d_projected),
        raw: made(&mut d.raw),
    };
    // SAFETY: all have the sizes that `Recurrent` describes.
    unsafe { <f64 as BlockElement>::run(&request) }.unwrap();
    d
}

/// Step by step, as the definitions say: all states, last states, last cells.
fn plain(r: &Recurrent, o: &LayerOperands) -> [Vec<f64>; 3] {
    let (h, p, gates) = (r.hidden, r.state, r.cell.gates());
    let starts: Vec<usize> = r.batches.iter().scan(0, |next, n| Some(std::mem::replace(next, *next + n))).collect();
    let (mut state, mut cell) = (o.first.clone(), o.first_cell.clone());
    let mut states = vec![0.0; r.batches.iter().sum::<usize>() * p];
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    for k in 0..r.batches.len() {
        let step = if r.reverse { r.batches.len() - 1 - k } else { k };
        for i in 0..r.batches[step] {
            let row = starts[step] + i;
            let before = state[i * p..(i + 1) * p].to_vec();
            let x = |gate: usize, j: usize| o.x[row * gates * h + gate * h + j];
            let product = |gate: usize, j: usize| {
                let weight = &o.weight[(gate * h + j) * p..][..p];
                weight.iter().zip(&before).map(|(w, s)| w * s).sum::<f64>()
            };
            let sum = |gate: usize, j: usize| x(gate, j) + product(gate, j);
            let new: Vec<f64> = (0..h)
                .map(|j| match r.cell {
                    RecurrentCell::Tanh => sum(0, j).tanh(),
                    RecurrentCell::Relu => sum(0, j).max(0.0),
                    RecurrentCell::Gru => {
                        let (r, z) = (sigmoid(sum(0, j) + o.bias[j]), sigmoid(sum(1, j) + o.bias[h + j]));
                        let n = (x(2, j) + r * (product(2, j) + o.bias[2 * h + j])).tanh();
                        (1.0 - z) * n + z * before[j]
                    }
                    RecurrentCell::Lstm { .. } => {
                        let c = &mut cell[i * h + j];
                        *c = sigmoid(sum(1, j)) * *c + sigmoid(sum(0, j)) * sum(2, j).tanh();
                        sigmoid(sum(3, j)) * c.tanh()
                    }
                })
                .collect();
            for j in 0..p {
                state[i * p + j] = if r.cell.is_projected() {
                    o.projection[j * h..(j + 1) * h].iter().zip(&new).map(|(w, s)| w * s).sum()
                } else {
                    new[j]
                };
                states[row * p + j] = state[i * p + j];
            }
        }
    }
    [states, state, cell]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Few units and many panels of them, with and without tails; sequences that end early; enough work for shared stages, of one block of
/// sequences and of several.
const SIZES: [(&[usize], usize, usize); 6] =
    [(&[1], 1, 1), (&[5, 5, 3, 1], 7, 3), (&[9, 6, 6, 2], 37, 21), (&[4, 4, 2], 97, 97), (&[40, 33, 18], 20, 9), (&[20, 19, 3], 99, 70)];

fn each(mut check: impl FnMut(&Recurrent)) {
    for (batches, hidden, projected) in if cfg!(miri) { &SIZES[..2] } else { &SIZES[..] } {
        for cell in [RecurrentCell::Tanh, RecurrentCell::Relu, RecurrentCell::Gru, LSTM, PROJECTED] {
            for reverse in [false, true] {
                let state = if cell.is_projected() { *projected } else { *hidden };
                check(&Recurrent { cell, backward: false, reverse, batches: batches.iter().copied().collect(), hidden: *hidden, state });
            }
        }
    }
}

fn close(got: &[f64], want: &[f64], within: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= within * (1.0 + w.abs()), "{what}: {g} instead of {w} at {i}");
    }
}

#[test]
fn states_are_those_of_the_definitions_and_the_same_for_any_number_of_threads() {
    each(|r| {
        let o = LayerOperands::new(r);
        let [states, last, last_cell] = plain(r, &o);
        let mut one: Option<States> = None;
        for threads in [1, 2, 5] {
            set_num_threads(threads);
            let got = o.forward(r);
            let what = format!("{r:?} on {threads} threads");
            close(&got.states, &states, 1e-12, &what);
            close(&got.last, &last, 1e-12, &what);
            if r.cell.is_lstm() {
                close(&got.last_cell, &last_cell, 1e-12, &what);
            }
            assert!(got.kept.iter().chain(&got.cells).all(|v| v.is_finite()), "{what}");
            assert!(*one.get_or_insert_with(|| got.clone()) == got, "{what}");
        }
    });
    set_num_threads(2);
}

#[test]
fn gradients_are_those_of_finite_differences_and_the_same_for_any_number_of_threads() {
    each(|r| {
        // Relu has no derivative at 0, which differences may pass.
        let o = LayerOperands::new(r);
        let s = o.forward(r);
        let g = [numbers(s.states.len(), 7), numbers(s.last.len(), 8), numbers(s.last_cell.len(), 9)];
        let loss = |o: &LayerOperands| {
            let s = o.forward(r);
            dot(&s.states, &g[0]) + dot(&s.last, &g[1]) + dot(&s.last_cell, &g[2])
        };
        let of_threads = |threads: usize| {
            set_num_threads(threads);
            backward(&Recurrent { backward: true, ..r.clone() }, &o, &s, g.each_ref().map(|v| &v[..]))
        };
        let d = of_threads(1);
        for threads in [2, 5] {
            assert!(of_threads(threads) == d, "{r:?} on {threads} threads");
        }
        for (operand, gradient) in [&d.dx, &d.d_first, &d.d_first_cell].into_iter().enumerate() {
            for at in (0..gradient.len()).step_by(gradient.len() / 9 + 1) {
                let moved = |by: f64| {
                    let mut o = o.clone();
                    [&mut o.x, &mut o.first, &mut o.first_cell][operand][at] += by;
                    loss(&o)
                };
                let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let got = gradient[at];
                assert!((got - want).abs() < 1e-6 * (1.0 + want.abs()), "{r:?}: {got} instead of {want} at {at}");
            }
        }
        if r.cell.is_projected() {
            let (h, p) = (r.hidden, r.state);
            for (raw, state) in d.raw.chunks(h).zip(s.states.chunks(p)) {
                let projected: Vec<f64> = o.projection.chunks(h).map(|w| dot(w, raw)).collect();
                close(&projected, state, 1e-12, "what was projected");
            }
        }
    });
    set_num_threads(2);
}
