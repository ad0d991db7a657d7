//! Recurrent layers on the CPU and on the reference backend.

use super::common::values;
use super::contract::both;
use rgrad::array::Array;
use rgrad::call::{Family, Recurrent, RecurrentCell, Request};
use rgrad::{DType, Result};
use rgrad_kernels::host::threads::set_num_threads;

const CELLS: [RecurrentCell; 5] = [
    RecurrentCell::Tanh,
    RecurrentCell::Relu,
    RecurrentCell::Gru,
    RecurrentCell::Lstm { projected: false },
    RecurrentCell::Lstm { projected: true },
];

/// Small numbers, so that errors do not grow from step to step.
fn small(shape: &[usize], dtype: DType, seed: usize) -> Array {
    let v: Vec<f64> = values(shape.iter().product(), seed).into_iter().map(|v| 0.3 * v).collect();
    Array::from_slice(&v, shape).unwrap().cast(dtype).unwrap()
}

fn run(r: &Recurrent, ins: &[&Array]) -> Result<Vec<Array>> {
    let shapes = r.results();
    let outs: Vec<(&[usize], DType)> = shapes.iter().map(|s| (&s[..], ins[0].dtype())).collect();
    Ok(Array::request(Request::Recurrent(r.clone()), ins, &outs)?.into_vec())
}

/// The layer, and operands of its forward pass.
fn layer(cell: RecurrentCell, reverse: bool, batches: &[usize], hidden: usize, dtype: DType) -> (Recurrent, Vec<Array>) {
    let state = if cell.is_projected() { hidden.div_ceil(2) } else { hidden };
    let r = Recurrent { cell, backward: false, reverse, batches: batches.iter().copied().collect(), hidden, state };
    let ins = r.operands().iter().enumerate().map(|(k, s)| small(s, dtype, 10 * hidden + k)).collect();
    (r, ins)
}

/// The operands of the backward pass: gradients, what the forward pass has made, and its operands without the first.
fn backward(r: &Recurrent, ins: &[Array]) -> (Recurrent, Vec<Array>) {
    let made = run(r, &ins.iter().collect::<Vec<_>>()).unwrap();
    let back = Recurrent { backward: true, ..r.clone() };
    let gradients = 2 + usize::from(r.cell.is_lstm());
    let results = 1 + usize::from(r.cell.is_lstm()) + usize::from(r.cell.kept() > 0);
    let of = back.operands();
    let mut all: Vec<Array> = (0..gradients).map(|k| small(&of[k], ins[0].dtype(), 90 + k)).collect();
    all.extend(made.into_iter().take(results));
    all.extend(ins[1..].iter().cloned());
    assert_eq!(all.len(), of.len());
    (back, all)
}

/// The same elements, with columns next to each other in memory.
fn turned(a: &Array) -> Array {
    let turned = a.with_layout(a.layout().transpose(0, 1)).unwrap().contiguous_copy().unwrap();
    turned.with_layout(turned.layout().transpose(0, 1)).unwrap()
}

#[test]
pub fn recurrent_layers() {
    // Sequences of one length, packed ones, none, no step, and more than a task has.
    let batches: [&[usize]; 7] = [&[1], &[3, 3, 3], &[5, 4, 4, 1], &[40, 33, 2], &[9, 9], &[0, 0], &[]];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for cell in CELLS {
            for reverse in [false, true] {
                for (case, batches) in batches.iter().enumerate() {
                    for hidden in [[1, 17], [3, 33]][case % 2] {
                        let (r, ins) = layer(cell, reverse, batches, hidden, dtype);
                        both(r.name(), &ins.iter().collect::<Vec<_>>(), |i| run(&r, i));
                        let (back, ins) = backward(&r, &ins);
                        both("its gradients", &ins.iter().collect::<Vec<_>>(), |i| run(&back, i));
                    }
                }
            }
        }
    }
}

#[test]
fn recurrent_layers_read_any_strides() {
    for cell in CELLS {
        let (r, ins) = layer(cell, true, &[4, 3, 3], 5, DType::F32);
        let (back, operands) = backward(&r, &ins);
        for (r, ins) in [(r, ins), (back, operands)] {
            let strided: Vec<Array> = ins.iter().map(turned).collect();
            assert!(strided.iter().any(|a| !a.is_contiguous()));
            both("strided operands", &strided.iter().collect::<Vec<_>>(), |i| run(&r, i));
        }
    }
}

#[test]
fn recurrent_layers_are_the_same_for_any_number_of_threads() {
    for dtype in [DType::F32, DType::F64] {
        for cell in CELLS {
            let (r, ins) = layer(cell, false, &[70, 70, 41, 7], 48, dtype);
            let (back, operands) = backward(&r, &ins);
            for (r, ins) in [(r, ins), (back, operands)] {
                let refs: Vec<&Array> = ins.iter().collect();
                let bits = |threads: usize| -> Vec<Vec<u64>> {
                    set_num_threads(threads);
                    let made = run(&r, &refs).unwrap();
                    made.iter().map(|a| a.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()).collect()
                };
                let one = bits(1);
                assert!(one == bits(2) && one == bits(5), "{}", r.name());
            }
        }
    }
}

#[test]
fn recurrent_layers_refuse_operands_that_do_not_fit() {
    for cell in CELLS {
        let (r, ins) = layer(cell, false, &[3, 2], 4, DType::F32);
        for wrong in 0..ins.len() {
            let other = small(&[7, 5], DType::F32, 1);
            let refs: Vec<&Array> = ins.iter().enumerate().map(|(k, a)| if k == wrong { &other } else { a }).collect();
            assert!(run(&r, &refs).is_err(), "{} accepts a wrong operand {wrong}", r.name());
        }
        let more = Recurrent { batches: [2, 3].into_iter().collect(), ..r.clone() };
        assert!(run(&more, &ins.iter().collect::<Vec<_>>()).is_err(), "{} accepts sequences that begin later", r.name());
    }
}
