//! Recurrent layers on the reference backend, from the definition: each sequence for itself, step by step.

use rgrad_kernels::call::{Recurrent, RecurrentCell};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A matrix of `n` rows and as many columns as `x` has numbers, times `x`.
fn times(matrix: &[f64], x: &[f64], n: usize) -> Vec<f64> {
    (0..n).map(|i| x.iter().enumerate().map(|(k, v)| matrix[i * x.len() + k] * v).sum()).collect()
}

/// `x`, of as many numbers as the matrix has rows, times a matrix of `n` columns.
fn into(x: &[f64], matrix: &[f64], n: usize) -> Vec<f64> {
    (0..n).map(|k| x.iter().enumerate().map(|(i, v)| v * matrix[i * n + k]).sum()).collect()
}

/// The rows of one sequence's steps, in the order in which the layer goes through them.
fn rows_of(r: &Recurrent, sequence: usize) -> Vec<usize> {
    let mut start = 0;
    let mut rows = Vec::new();
    for n in &r.batches {
        if *n > sequence {
            rows.push(start + sequence);
        }
        start += n;
    }
    if r.reverse {
        rows.reverse();
    }
    rows
}

/// What a step makes: what is kept of it, the cell, and the state before a projection.
fn step(cell: RecurrentCell, x: &[f64], product: &[f64], bias: &[f64], state: &[f64], before: &[f64]) -> [Vec<f64>; 3] {
    let h = x.len() / cell.gates();
    let of = |f: &dyn Fn(usize) -> f64| (0..h).map(f).collect::<Vec<f64>>();
    let sum = |gate: usize, j: usize| x[gate * h + j] + product[gate * h + j];
    match cell {
        RecurrentCell::Tanh => [vec![], vec![], of(&|j| sum(0, j).tanh())],
        RecurrentCell::Relu => [vec![], vec![], of(&|j| sum(0, j).max(0.0))],
        RecurrentCell::Gru => {
            let r = of(&|j| sigmoid(sum(0, j) + bias[j]));
            let z = of(&|j| sigmoid(sum(1, j) + bias[h + j]));
            let inner = of(&|j| product[2 * h + j] + bias[2 * h + j]);
            let new = of(&|j| (x[2 * h + j] + r[j] * inner[j]).tanh());
            let next = of(&|j| (1.0 - z[j]) * new[j] + z[j] * state[j]);
            [[r, z, new, inner].concat(), vec![], next]
        }
        RecurrentCell::Lstm { .. } => {
            let [i, f, o] = [0, 1, 3].map(|gate| of(&|j| sigmoid(sum(gate, j))));
            let g = of(&|j| sum(2, j).tanh());
            let now = of(&|j| f[j] * before[j] + i[j] * g[j]);
            let next = of(&|j| o[j] * now[j].tanh());
            [[i, f, g, o].concat(), now, next]
        }
    }
}

/// Copies a row to its place.
fn put(to: &mut [f64], row: usize, v: &[f64]) {
    to[row * v.len()..][..v.len()].copy_from_slice(v);
}

/// The outputs of a pass.
pub fn outputs(r: &Recurrent, ins: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut made: Vec<Vec<f64>> = r.results().iter().map(|s| vec![0.0; s[0] * s[1]]).collect();
    let sequences = r.batches.first().copied().unwrap_or(0);
    for s in 0..sequences {
        if r.backward { backward(r, ins, s, &mut made) } else { forward(r, ins, s, &mut made) }
    }
    made
}

fn forward(r: &Recurrent, ins: &[Vec<f64>], s: usize, made: &mut [Vec<f64>]) {
    let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
    let (lstm, none) = (r.cell.is_lstm(), vec![]);
    let (x, weight) = (&ins[0], &ins[1]);
    let bias = if r.cell == RecurrentCell::Gru { &ins[3] } else { &none };
    let mut state = ins[2][s * p..][..p].to_vec();
    let mut cell = if lstm { ins[3][s * h..][..h].to_vec() } else { vec![] };
    for row in rows_of(r, s) {
        let product = times(weight, &state, gates);
        let [kept, now, next] = step(r.cell, &x[row * gates..][..gates], &product, bias, &state, &cell);
        state = if r.cell.is_projected() { times(&ins[4], &next, p) } else { next };
        put(&mut made[0], row, &state);
        if lstm {
            put(&mut made[1], row, &now);
            cell = now;
        }
        if !kept.is_empty() {
            put(&mut made[1 + usize::from(lstm)], row, &kept);
        }
    }
    let last = r.results().len() - 1 - usize::from(lstm);
    put(&mut made[last], s, &state);
    if lstm {
        put(&mut made[last + 1], s, &cell);
    }
}

fn backward(r: &Recurrent, ins: &[Vec<f64>], s: usize, made: &mut [Vec<f64>]) {
    let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
    let (lstm, gru) = (r.cell.is_lstm(), r.cell == RecurrentCell::Gru);
    let mut operands = ins.iter();
    let mut next = |there: bool| if there { operands.next().cloned().unwrap_or_default() } else { vec![] };
    let (g, g_last, g_last_cell, states, cells) = (next(true), next(true), next(lstm), next(true), next(lstm));
    let (kept, weight, first) = (next(r.cell.kept() > 0), next(true), next(true));
    let _bias = next(gru);
    let (first_cell, projection) = (next(lstm), next(r.cell.is_projected()));
    let mut slope = g_last[s * p..][..p].to_vec();
    let mut slope_cell = if lstm { g_last_cell[s * h..][..h].to_vec() } else { vec![] };
    let rows = rows_of(r, s);
    let at_before = 1 + usize::from(gru);
    for (k, row) in rows.iter().copied().enumerate().rev() {
        let before = |of: &[f64], first: &[f64], width: usize| match k.checked_sub(1) {
            Some(k) => of[rows[k] * width..][..width].to_vec(),
            None => first[s * width..][..width].to_vec(),
        };
        let state_before = before(&states, &first, p);
        put(&mut made[at_before], row, &state_before);
        slope.iter_mut().zip(&g[row * p..]).for_each(|(to, g)| *to += g);
        let raw = if r.cell.is_projected() { into(&slope, &projection, h) } else { slope.clone() };
        let of = |f: &dyn Fn(usize) -> f64| (0..h).map(f).collect::<Vec<f64>>();
        let of_gate = |gate: usize| kept[(row * 4 + gate) * h..][..h].to_vec();
        let y = &states[row * p..][..p];
        let mut passed = vec![0.0; p];
        let (dx, dproduct) = match r.cell {
            RecurrentCell::Tanh => (of(&|j| raw[j] * (1.0 - y[j] * y[j])), vec![]),
            RecurrentCell::Relu => (of(&|j| if y[j] > 0.0 { raw[j] } else { 0.0 }), vec![]),
            RecurrentCell::Gru => {
                let [reset, z, new, inner] = [0, 1, 2, 3].map(of_gate);
                let dnew = of(&|j| raw[j] * (1.0 - z[j]) * (1.0 - new[j] * new[j]));
                let dz = of(&|j| raw[j] * (state_before[j] - new[j]) * z[j] * (1.0 - z[j]));
                let dr = of(&|j| dnew[j] * inner[j] * reset[j] * (1.0 - reset[j]));
                passed = of(&|j| raw[j] * z[j]);
                let dinner = of(&|j| dnew[j] * reset[j]);
                ([dr.clone(), dz.clone(), dnew].concat(), [dr, dz, dinner].concat())
            }
            RecurrentCell::Lstm { .. } => {
                let [i, f, new, o] = [0, 1, 2, 3].map(of_gate);
                let t = of(&|j| cells[row * h + j].tanh());
                let dc = of(&|j| raw[j] * o[j] * (1.0 - t[j] * t[j]) + slope_cell[j]);
                let cell_before = before(&cells, &first_cell, h);
                if r.cell.is_projected() {
                    let at = r.results().len() - 2;
                    put(&mut made[at], row, &slope);
                    put(&mut made[at + 1], row, &of(&|j| o[j] * t[j]));
                }
                slope_cell = of(&|j| dc[j] * f[j]);
                let di = of(&|j| dc[j] * new[j] * i[j] * (1.0 - i[j]));
                let df = of(&|j| dc[j] * cell_before[j] * f[j] * (1.0 - f[j]));
                let dnew = of(&|j| dc[j] * i[j] * (1.0 - new[j] * new[j]));
                let d_o = of(&|j| raw[j] * t[j] * o[j] * (1.0 - o[j]));
                ([di, df, dnew, d_o].concat(), vec![])
            }
        };
        put(&mut made[0], row, &dx);
        let through = if gru { &dproduct } else { &dx };
        slope = into(through, &weight, p).iter().zip(&passed).map(|(a, b)| a + b).collect();
        if gru {
            put(&mut made[1], row, &dproduct);
        }
        debug_assert_eq!(dx.len(), gates);
    }
    put(&mut made[at_before + 1], s, &slope);
    if lstm {
        put(&mut made[at_before + 2], s, &slope_cell);
    }
}
