"""The cells of recurrent networks alone: one step each."""

from typing import Any

from ... import _core
from ..._core import Tensor
from ._parameters import draw, register
from .module import Module


class RNNCellBase(Module):
    """What cells have in common.

    The parameters ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh`` start uniform in
    ``±1 / sqrt(hidden_size)``.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        bias: Whether there are biases.
        num_chunks: How many gates there are.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(N, input_size)`` or ``(input_size)``; state: ``(N, hidden_size)`` or ``(hidden_size)``.

    Example:
        >>> nn.RNNCellBase(3, 4, True, 3).weight_hh.shape
        rgrad.Size([12, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        both = rows if bias else None
        weight_ih, weight_hh = (rows, input_size), (rows, hidden_size)
        register(self, device, dtype, weight_ih=weight_ih, weight_hh=weight_hh, bias_ih=both, bias_hh=both)
        self.reset_parameters()

    def extra_repr(self) -> str:
        """Describe sizes and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        draw(self.hidden_size, *self.parameters())

    def _check(self, name: str, input: Tensor, hidden: tuple[Any, ...]) -> None:
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for k, t in enumerate(hidden):
            if t is not None and t.dim() not in (1, 2):
                which = f"hx[{k}]" if len(hidden) > 1 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {t.dim()}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return _core.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype, device=input.device)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """One step of :class:`RNN`.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        bias: Whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(N, input_size)`` or ``(input_size)``; state: ``(N, hidden_size)`` or ``(hidden_size)``.

    Example:
        >>> nn.RNNCell(3, 4)(rgrad.ones(2, 3)).shape
        rgrad.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Compute the next state from an input and the state ``hx``, by default zeros."""
        self._check("RNNCell", input, (hx,))
        hx = self._zeros(input) if hx is None else hx
        if self.nonlinearity == "tanh":
            return _core.rnn_tanh_cell(input, hx, *self._weights())
        if self.nonlinearity == "relu":
            return _core.rnn_relu_cell(input, hx, *self._weights())
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        bias: Whether there are biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(N, input_size)`` or ``(input_size)``; state and cell: ``(N, hidden_size)`` or ``(hidden_size)``.

    Example:
        >>> state, cell = nn.LSTMCell(3, 4)(rgrad.ones(2, 3))
        >>> cell.shape
        rgrad.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Compute the next state and cell from an input and ``hx``, the state and cell, by default zeros."""
        self._check("LSTMCell", input, tuple(hx) if isinstance(hx, (tuple, list)) else (None, None))
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        made: tuple[Tensor, Tensor] = _core.lstm_cell(input, hx, *self._weights())
        return made


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`.

    Args:
        input_size: Features of an input.
        hidden_size: Features of a state.
        bias: Whether there are biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(N, input_size)`` or ``(input_size)``; state: ``(N, hidden_size)`` or ``(hidden_size)``.

    Example:
        >>> nn.GRUCell(3, 4)(rgrad.ones(2, 3)).shape
        rgrad.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Compute the next state from an input and the state ``hx``, by default zeros."""
        self._check("GRUCell", input, (hx,))
        return _core.gru_cell(input, self._zeros(input) if hx is None else hx, *self._weights())
