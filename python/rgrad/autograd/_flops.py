"""Floating point operations of an operation, from the shapes of its inputs and results.

A multiplication and an addition are two. As in PyTorch, matrix products, convolutions and attention are counted; for
single events of the profiler also additions and multiplications of elements.
"""

from __future__ import annotations

from math import prod

Shape = list[int]
Shapes = list[Shape]

PRODUCTS = frozenset({"matmul", "mm", "bmm", "addmm", "baddbmm", "linear"})
_VECTOR_PRODUCTS = frozenset({"mv", "dot", "vdot"})
#: All steps of a recurrent layer in one operation.
RECURRENT = frozenset({"rnn_tanh", "rnn_relu", "gru", "lstm"})
_BACKWARD = "_backward"


def _product(a: Shape, out: Shape) -> int:
    """A matrix product whose first operand, which may be stored transposed, has the shape ``a``."""
    if len(a) < 2 or len(out) < 2 or not prod(out):
        return 0
    # The operand's two sizes are the rows of the result and the length of the sums.
    rows = out[-2] if len(a) == len(out) else prod(out[:-1]) // max(prod(a[:-2]), 1)
    return 2 * prod(out) * (a[-2] * a[-1] // max(rows, 1))


def _attention(inputs: Shapes, backward: bool) -> int:
    """Scores and their product with the values; in backward the scores again, and two gradients of each."""
    query, key, value = inputs[:3]
    scores = prod(query[:-1]) * key[-2]
    forward = 2 * scores * (query[-1] + value[-1])
    return 2 * scores * (3 * query[-1] + 2 * value[-1]) if backward else forward


def _recurrent_backward(inputs: Shapes) -> int:
    """The gradients of the weights, and of all states but the first: products of the size of the forward's.

    The inputs are the products of the layer's inputs (rows of all steps), the weights, and the first state.
    """
    products, weights, first = inputs[:3]
    rows = 2 * products[0] - prod(first[:-1])
    return 2 * rows * prod(weights)


def counted(name: str, inputs: Shapes, outputs: Shapes, known: int, vectors: bool = False) -> tuple[str, int] | None:
    """PyTorch's name of a dispatched operation, and its count; None for an operation that is not counted.

    Args:
        name: The operation's name here.
        inputs: The shapes of the tensors that it gets.
        outputs: Those of its results.
        known: The count that the operation itself gave; 0 if the shapes tell it.
        vectors: Whether products with one vector are counted, too; in PyTorch's counter they are not.
    """
    if name.endswith(_BACKWARD) and name.removesuffix(_BACKWARD) in RECURRENT:
        return ("mm", _recurrent_backward(inputs)) if len(inputs) >= 3 else None
    if known:
        # The products of the states; those of the inputs are operations of their own.
        return "addmm" if name in RECURRENT else name, known
    if vectors and name in _VECTOR_PRODUCTS and inputs:
        return name, 2 * prod(inputs[0])
    if name in PRODUCTS and len(inputs) >= 2 and outputs:
        added = name in ("addmm", "baddbmm", "linear") and len(inputs) >= 3
        operand = inputs[-2] if added else inputs[0]
        batched = len(outputs[0]) > 2 and len(inputs[-1]) > 2
        title = ("baddbmm" if batched else "addmm") if added else ("bmm" if batched else "mm")
        return title, _product(operand, outputs[0])
    if name.startswith("scaled_dot_product_attention") and len(inputs) >= 3:
        backward = name.endswith("_backward")
        return "_scaled_dot_product_flash_attention" + "_backward" * backward, _attention(inputs, backward)
    return None


def operation_flops(name: str, inputs: Shapes, outputs: Shapes, known: int) -> int:
    """The count of one event; 0 where no formula is known."""
    if name in ("add", "mul") and outputs:
        return prod(outputs[0])
    found = counted(name, inputs, outputs, known)
    return found[1] if found else 0
