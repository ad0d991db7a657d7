"""How the batch is cut for the cross entropy of a linear layer's scores."""

from dataclasses import dataclass
from typing import Any

from ... import _core

_POLICIES = ("auto", "accurate", "balanced", "compact")
_HALVES = (_core.float16, _core.bfloat16)
_FLOATS = (*_HALVES, _core.float32, _core.float64)


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How :func:`~rgrad.nn.functional.linear_cross_entropy` cuts a batch, so that not all scores are there at once.

    Each part's scores are computed in the forward pass, and again for its gradient.

    Args:
        allow_retain_graph: Accepted; gradients can be computed as often as wanted.
        batch_chunk_size: Rows in a part; None for what ``chunking_method`` says.
        chunking_method: ``"aspect_ratio"`` makes the scores of a part about as large as the input, ``"aspect_ratio:N"``
            N times smaller, None makes one part; ``"auto"`` is the first for 16-bit floats and the second with 2 for
            others.
        acc_policy: ``"auto"``, ``"accurate"``, ``"balanced"`` or ``"compact"``; accepted.
        acc_dtype: The dtype in which losses are computed from scores; None is float32 for 16-bit floats, else the
            input's.

    Raises:
        ValueError: An option has a value that is not listed.

    Example:
        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}, expected one of {_POLICIES}")
        if self.chunking_method not in (None, "auto") and self._divisor(str(self.chunking_method)) is None:
            raise ValueError(
                f"invalid chunking_method: {self.chunking_method!r}, expected 'auto', 'aspect_ratio', "
                "'aspect_ratio:N' or None"
            )
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if self.acc_dtype is not None and self.acc_dtype not in _FLOATS:
            raise ValueError(f"acc_dtype must be one of {{None, {', '.join(map(str, _FLOATS))}}}, got {self.acc_dtype}")

    @staticmethod
    def _divisor(method: str) -> int | None:
        name, colon, number = method.partition(":")
        if name != "aspect_ratio" or (colon and not (number.isdigit() and int(number) > 0)):
            return None
        return int(number) if colon else 1

    def _rows(self, batch: int, in_features: int, num_classes: int, dtype: Any) -> int:
        """How many rows a part has."""
        method = self.chunking_method
        if method == "auto":
            method = None if self.batch_chunk_size else "aspect_ratio" if dtype in _HALVES else "aspect_ratio:2"
        if method is None:
            return max(1, min(self.batch_chunk_size or batch, batch))
        parts = -(-num_classes // max(in_features, 1))
        wanted = max(-(-batch // max(parts, 1)), 1)
        rows = min((1 << (wanted - 1).bit_length()) // (self._divisor(method) or 1), batch)
        if self.batch_chunk_size not in (None, rows):
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give different chunk "
                f"sizes ({self.batch_chunk_size} vs {rows}); pass only one."
            )
        return max(1, rows)
