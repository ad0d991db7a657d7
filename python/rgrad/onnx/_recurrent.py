"""Recurrent networks. ONNX has one layer in a node, with the gates in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..fx._record import Value
from ._graph import Graph, converts
from ._views import all_sizes, transposed

# For each kind: the operator, and where each gate of ONNX stands among rgrad's.
_KINDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "gru": ("GRU", (1, 0, 2)),
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}


def _gates(g: Graph, weights: Sequence[Any], order: Sequence[int], base: str) -> str:
    """Weights of each direction with their gates in ONNX's order."""
    made = []
    for w in weights:
        if w.tensor is None or w.kind == "input":
            g.refuse("weights that are computed from inputs")
        parts = w.tensor.detach().cpu().chunk(len(order))
        made.append(_core.cat([parts[k] for k in order]))
    return g.tensor(_core.stack(made), base)


def _network(kind: str) -> Any:
    operator, order = _KINDS[kind]

    def converter(g: Graph, input: Any, *args: Any) -> Any:
        if not args or not isinstance(args[-1], bool) or not isinstance(args[1], (tuple, list)):
            g.refuse("packed sequences")
        hx, weights, bias, layers, dropout, train, both, batch_first = args
        if train and dropout:
            g.refuse("dropout, which draws random numbers; export the model in eval mode")
        directions = 2 if both else 1
        states = list(hx) if isinstance(hx, (tuple, list)) else [hx]
        each = 4 if bias else 2
        hidden = weights[1].shape[1]
        if len(weights) != each * layers * directions:
            g.refuse("proj_size")
        own: Any = transposed(g, input, [1, 0, 2]) if batch_first else g.name(input)
        sizes = all_sizes(g, input)
        steps, batch = (sizes[1], sizes[0]) if batch_first else (sizes[0], sizes[1])
        last: list[list[str]] = [[] for _ in states]
        for layer in range(layers):
            sets = [weights[each * (layer * directions + d) :][:each] for d in range(directions)]
            base = _base_of(sets[0][0])
            w = _gates(g, [s[0] for s in sets], order, f"{base}_W")
            r = _gates(g, [s[1] for s in sets], order, f"{base}_R")
            b = None
            if bias:
                b = _both_biases(g, sets, order, f"{base}_B")
            starts = [_layer_of(g, state, layer * directions, directions, layers) for state in states]
            out, *final = g.several(
                1 + len(states),
                operator,
                own,
                w,
                r,
                b,
                None,
                *starts,
                hidden_size=hidden,
                direction="bidirectional" if both else "forward",
                activations=["Relu"] * directions if kind == "rnn_relu" else None,
                linear_before_reset=1 if kind == "gru" else None,
            )
            own = g.reshape(transposed(g, out, [0, 2, 1, 3]), [steps, batch, directions * hidden])
            for k, one in enumerate(final):
                last[k].append(one)
        result = transposed(g, own, [1, 0, 2]) if batch_first else own
        return [result, *(one[0] if layers == 1 else g.op("Concat", *one, axis=0) for one in last)]

    return converter


def _base_of(weight: Value) -> str:
    return weight.name.replace("weight_ih_", "") or "recurrent"


def _both_biases(g: Graph, sets: Sequence[Any], order: Sequence[int], base: str) -> str:
    rows = []
    for s in sets:
        both = []
        for one in s[2:4]:
            if one.tensor is None or one.kind == "input":
                g.refuse("biases that are computed from inputs")
            parts = one.tensor.detach().cpu().chunk(len(order))
            both += [parts[k] for k in order]
        rows.append(_core.cat(both))
    return g.tensor(_core.stack(rows), base)


def _layer_of(g: Graph, state: Value, first: int, many: int, layers: int) -> str:
    if layers == 1:
        return g.name(state)
    return g.op("Slice", state, g.ints([first]), g.ints([first + many]), g.ints([0]))


for _kind in _KINDS:
    converts(_kind)(_network(_kind))


def _cell_gates(g: Graph, input: Any, hx: Any, weights: Sequence[Any]) -> tuple[str, str]:
    w_ih, w_hh, b_ih, b_hh = weights
    made = []
    for x, w, b in ((input, w_ih, b_ih), (hx, w_hh, b_hh)):
        out = g.op("MatMul", x, transposed(g, w, [1, 0]))
        made.append(str(out if b is None else g.op("Add", out, b)))
    return made[0], made[1]


@converts("lstm_cell")
def lstm_cell(g: Graph, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    state, cell = hx
    of_input, of_state = _cell_gates(g, input, state, (w_ih, w_hh, b_ih, b_hh))
    i, f, c, o = g.several(4, "Split", g.op("Add", of_input, of_state), axis=-1, num_outputs=4)
    kept = g.op("Mul", g.op("Sigmoid", f), cell)
    new = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", c)))
    return [g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", new)), new]


@converts("gru_cell")
def gru_cell(g: Graph, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> str:
    of_input, of_state = _cell_gates(g, input, hx, (w_ih, w_hh, b_ih, b_hh))
    ri, zi, ni = g.several(3, "Split", of_input, axis=-1, num_outputs=3)
    rh, zh, nh = g.several(3, "Split", of_state, axis=-1, num_outputs=3)
    reset, update = (g.op("Sigmoid", g.op("Add", a, b)) for a, b in ((ri, rh), (zi, zh)))
    new = g.op("Tanh", g.op("Add", ni, g.op("Mul", reset, nh)))
    return g.op("Add", new, g.op("Mul", update, g.op("Sub", hx, new)))
