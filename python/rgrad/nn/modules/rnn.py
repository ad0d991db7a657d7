"""Recurrent networks, and their cells alone."""

import numbers
import warnings
from collections.abc import Callable
from typing import Any

from ... import _core
from ..._core import Tensor
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from ._parameters import draw
from ._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from ._text import options
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_NETWORKS: dict[str, Callable[..., Any]] = {
    "LSTM": _core.lstm,
    "GRU": _core.gru,
    "RNN_TANH": _core.rnn_tanh,
    "RNN_RELU": _core.rnn_relu,
}


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return tensor.index_select(dim, permutation)


def _no_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    for name in kwargs:
        raise TypeError(f"__init__() got an unexpected keyword argument {name!r}")


class RNNBase(Module):
    """What recurrent networks have in common: parameters by layer and direction, checks, packed sequences.

    The parameters ``weight_ih_l{k}``, ``weight_hh_l{k}``, ``bias_ih_l{k}``, ``bias_hh_l{k}`` and, with a projection,
    ``weight_hr_l{k}`` start uniform in ``±1 / sqrt(hidden_size)``; those of the direction from the end have the suffix
    ``_reverse``.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        input_size: Features of an input.
        hidden_size: Features of a state.
        num_layers: How many layers are stacked.
        bias: Whether there are biases.
        batch_first: Whether inputs and results are ``(N, L, *)`` instead of ``(L, N, *)``.
        dropout: The probability of dropout behind all layers but the last one.
        bidirectional: Whether each layer has a direction from the end, too.
        proj_size: The size of projected states of an LSTM; 0 for no projection.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Raises:
        TypeError: ``hidden_size`` is no integer.
        ValueError: A size or the probability is out of range, or a network other than an LSTM has a projection.

    Shape:
        Input: ``(L, N, input_size)``; output: ``(L, N, directions * size)``; states:
        ``(layers * directions, N, size)``.

    Example:
        >>> nn.RNNBase("GRU", 3, 4).all_weights[0][0].shape
        rgrad.Size([12, 3])
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        layers = self._shapes()
        for layer in layers:
            for name, shape in layer.items():
                self.register_parameter(name, Parameter(_core.empty(shape, device=device, dtype=dtype)))
        self._name_weights(layers)
        self.reset_parameters()

    def _shapes(self) -> list[dict[str, tuple[int, ...]]]:
        """The shapes of the parameters of each layer and direction, by name."""
        rows, state = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        found = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
                features = self.input_size if layer == 0 else state * (1 + self.bidirectional)
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, state)}
                if self.bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if self.proj_size:
                    shapes["weight_hr"] = (self.proj_size, self.hidden_size)
                found.append({f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()})
        return found

    def _name_weights(self, layers: list[dict[str, tuple[int, ...]]]) -> None:
        self._all_weights: list[list[str]] = [list(layer) for layer in layers]
        self._flat_weights_names: list[str] = [name for layer in layers for name in layer]

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's class reads the list from a pickle.
        weights = [self._parameters.get(name, self.__dict__.get(name)) for name in self._flat_weights_names]
        return self.__dict__ | {"_flat_weights": weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a network that was pickled or copied, also by early releases of PyTorch.

        Args:
            state: The attributes, by name.

        Raises:
            TypeError: It is no dict.
        """
        super().__setstate__(state)
        own = self.__dict__
        # Parameters that are replaced later would stay there.
        own.pop("_flat_weights", None)
        own.setdefault("proj_size", 0)
        names = own.pop("all_weights", own.get("_all_weights"))
        if not (names and isinstance(names[0][0], str)):
            # Early releases kept the parameters in place of their names.
            self._name_weights(self._shapes())
        else:
            self._all_weights = names

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: the parameters need not be neighbors in memory."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        draw(self.hidden_size, *self.parameters())

    extra_repr = options(
        first=["input_size", "hidden_size"],
        unless={
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        },
    )

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse inputs of another dtype, rank or size than the parameters need.

        Args:
            input: The sequences, or the elements of packed ones.
            batch_sizes: How many packed sequences have each step, or None.

        Raises:
            RuntimeError: The input has another rank or size.
            ValueError: It has another dtype, and autocast is off.
        """
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype != weight.dtype and not _core._autocasts():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Give the shape of first states for an input.

        Args:
            input: The sequences, or the elements of packed ones.
            batch_sizes: How many packed sequences have each step, or None.

        Returns:
            Layers and directions, sequences, and size.
        """
        return (
            self.num_layers * (1 + self.bidirectional),
            self._batch(input, batch_sizes),
            self.proj_size or self.hidden_size,
        )

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Give the shape of first cells for an input.

        Args:
            input: The sequences, or the elements of packed ones.
            batch_sizes: How many packed sequences have each step, or None.

        Returns:
            Layers and directions, sequences, and size.
        """
        return (self.num_layers * (1 + self.bidirectional), self._batch(input, batch_sizes), self.hidden_size)

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.shape[0 if self.batch_first else 1]

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a first state of another shape.

        Args:
            hx: The state.
            expected_hidden_size: The shape.
            msg: The text of the error, with places for both shapes.

        Raises:
            RuntimeError: The shape is another one.
        """
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse inputs and first states that do not fit.

        Args:
            input: The sequences, or the elements of packed ones.
            hidden: The first states, of an LSTM states and cells.
            batch_sizes: How many packed sequences have each step, or None.

        Raises:
            RuntimeError: Sizes do not fit.
            ValueError: The input has another dtype.
        """
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode == "LSTM":
            self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
            cells = self.get_expected_cell_size(input, batch_sizes)
            self.check_hidden_size(hidden[1], cells, "Expected hidden[1] size {}, got {}")
        else:
            self.check_hidden_size(hidden, expected)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Bring states into another order of the sequences.

        Args:
            hx: The states, of an LSTM states and cells.
            permutation: The order, or None.

        Returns:
            The same in that order.
        """
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(_apply_permutation(t, permutation) for t in hx)
        return _apply_permutation(hx, permutation)

    def _unbatched(self, input: Tensor, hx: Any) -> bool:
        """Whether the input is one sequence. Refuses states that are not of the same kind."""
        name = "LSTM" if self.mode == "LSTM" else "GRU" if self.mode == "GRU" else "RNN"
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        if hx is None:
            return not batched
        if self.mode == "LSTM":
            ranks = tuple(t.dim() for t in hx)
            if any(rank != input.dim() for rank in ranks):
                what = "batched 3-D" if batched else "unbatched 2-D"
                raise RuntimeError(
                    f"For {what} input, hx and cx should also be {input.dim()}-D but got ({ranks[0]}-D, {ranks[1]}-D) "
                    "tensors"
                )
        elif hx.dim() != input.dim():
            what = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {what} input, hx should also be {input.dim()}-D but got {hx.dim()}-D tensor")
        return not batched

    def _autocast(self, input: Tensor, hx: Tensor, weights: list[Any]) -> tuple[Tensor, Tensor, list[Any]]:
        """What a network other than an LSTM takes under autocast, in the dtype of its result.

        PyTorch runs the products in the smaller type, and of GRUs the rest in the type to which that and the state are
        promoted. Here all is in the type of the result.
        """
        device = input.device.type
        given = (input, hx, *weights)
        if not _core.is_autocast_enabled(device) or any(t.dtype == _core.float64 for t in given):
            return input, hx, weights
        kind = _core.get_autocast_dtype(device)
        if self.mode == "GRU":
            kind = _core.promote_types(kind, hx.dtype)
        return input.to(kind), hx.to(kind), [w.to(kind) for w in weights]

    def _run(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Run the network.

        Args:
            input: Sequences of shape ``(L, N, input_size)``, ``(N, L, input_size)`` if ``batch_first``, or
                ``(L, input_size)`` for one sequence; or packed sequences.
            hx: The first states, of shape ``(layers * directions, N, size)``, of an LSTM states and cells; by default
                zeros.

        Returns:
            The results of all steps, and the last states (of an LSTM states and cells).

        Raises:
            RuntimeError: Sizes do not fit.
            ValueError: The input has another rank or dtype.
        """
        lstm = self.mode == "LSTM"
        sizes = order = back = None
        packed = isinstance(input, PackedSequence)
        alone = False
        if packed:
            input, sizes, order, back = input
        else:
            alone = self._unbatched(input, hx)
            if alone:
                input = input.unsqueeze(0 if self.batch_first else 1)
                if hx is not None:
                    hx = tuple(t.unsqueeze(1) for t in hx) if lstm else hx.unsqueeze(1)
        if hx is None:
            if input.dim() != (2 if packed else 3):
                self.check_input(input, sizes)
            shapes = [self.get_expected_hidden_size(input, sizes)]
            if lstm:
                shapes.append(self.get_expected_cell_size(input, sizes))
            zeros = tuple(_core.zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes)
            hx = zeros if lstm else zeros[0]
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, sizes)
        rest = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        call, weights = _NETWORKS[self.mode], self._flat_weights
        if _core._autocasts() and not lstm:
            input, hx, weights = self._autocast(input, hx, weights)
        if packed:
            out, *last = call(input, sizes, hx, weights, *rest)
        else:
            out, *last = call(input, hx, weights, *rest, self.batch_first)
        state: Any = tuple(last) if lstm else last[0]
        if packed:
            return PackedSequence(out, sizes, order, back), self.permute_hidden(state, back)
        if alone:
            out = out.squeeze(0 if self.batch_first else 1)
            state = tuple(t.squeeze(1) for t in state) if lstm else state.squeeze(1)
        return out, state


class RNN(RNNBase):
    """Elman's network: ``h' = tanh(W x + b + U h + c)``, or with ``max(·, 0)`` instead of the hyperbolic tangent.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        num_layers: How many layers are stacked.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: Whether there are biases.
        batch_first: Whether inputs and results are ``(N, L, *)`` instead of ``(L, N, *)``.
        dropout: The probability of dropout behind all layers but the last one.
        bidirectional: Whether each layer has a direction from the end, too.
        device: The device of the parameters.
        dtype: The dtype of the parameters.
        kwargs: None: ``proj_size`` is refused in PyTorch's words.

    Shape:
        Input: ``(L, N, input_size)``; output: ``(L, N, directions * hidden_size)``; states:
        ``(layers * directions, N, hidden_size)``.

    Raises:
        ValueError: An argument is out of range, or ``nonlinearity`` is unknown.

    Example:
        >>> out, state = nn.RNN(3, 4)(rgrad.ones(5, 2, 3))
        >>> out.shape, state.shape
        (rgrad.Size([5, 2, 4]), rgrad.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        _no_projection(kwargs)
        self.nonlinearity = nonlinearity
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        rest = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, *rest)

    forward = RNNBase._run


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), perhaps with projected states (Sak et al. 2014).

    ``i, f, o = sigmoid(W x + b + U h + c)``, ``g = tanh(...)``, ``c' = f c + i g``, ``h' = o tanh(c')``.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a cell.
        num_layers: How many layers are stacked.
        bias: Whether there are biases.
        batch_first: Whether inputs and results are ``(N, L, *)`` instead of ``(L, N, *)``.
        dropout: The probability of dropout behind all layers but the last one.
        bidirectional: Whether each layer has a direction from the end, too.
        proj_size: The size of projected states; 0 for no projection.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(L, N, input_size)``; output: ``(L, N, directions * size)``; states and cells:
        ``(layers * directions, N, size)``, where size is ``proj_size`` or ``hidden_size``.

    Raises:
        ValueError: An argument is out of range.

    Example:
        >>> out, (state, cell) = nn.LSTM(3, 4, num_layers=2)(rgrad.ones(5, 2, 3))
        >>> out.shape, cell.shape
        (rgrad.Size([5, 2, 4]), rgrad.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *rest)

    forward = RNNBase._run


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014).

    ``r, z = sigmoid(W x + b + U h + c)``, ``n = tanh(W x + b + r (U h + c))``, ``h' = (1 - z) n + z h``.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        num_layers: How many layers are stacked.
        bias: Whether there are biases.
        batch_first: Whether inputs and results are ``(N, L, *)`` instead of ``(L, N, *)``.
        dropout: The probability of dropout behind all layers but the last one.
        bidirectional: Whether each layer has a direction from the end, too.
        device: The device of the parameters.
        dtype: The dtype of the parameters.
        kwargs: None: ``proj_size`` is refused in PyTorch's words.

    Shape:
        Input: ``(L, N, input_size)``; output: ``(L, N, directions * hidden_size)``; states:
        ``(layers * directions, N, hidden_size)``.

    Raises:
        ValueError: An argument is out of range.

    Example:
        >>> out, state = nn.GRU(3, 4, bidirectional=True)(rgrad.ones(5, 2, 3))
        >>> out.shape, state.shape
        (rgrad.Size([5, 2, 8]), rgrad.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        _no_projection(kwargs)
        rest = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *rest)

    forward = RNNBase._run
