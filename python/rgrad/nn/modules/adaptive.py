"""A softmax over very many classes, most of which are rare."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of classes that are sorted by how often they are, and their loss (Grave et al. 2017).

    The head decides among the first classes and clusters of the others; each cluster has a projection of its own, that
    is smaller the rarer its classes are. Only the clusters of the targets are computed.

    Args:
        in_features: The size of the input's last dimension.
        n_classes: The number of classes.
        cutoffs: Where clusters begin, in increasing order.
        div_value: Cluster ``i`` has projections of size ``in_features / div_value^(i + 1)``.
        head_bias: Whether the head has a bias.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(N, in_features)`` or ``(in_features)``; target: ``(N)`` or ``()``; output: as the target; loss:
            ``()``.

    Raises:
        ValueError: The cutoffs are not increasing numbers between 1 and ``n_classes - 1``.

    Example:
        >>> loss = nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[4, 10])
        >>> loss(rgrad.zeros(3, 16), rgrad.tensor([0, 5, 19])).output.shape
        rgrad.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = all(a < b for a, b in pairwise(ends)) and all(int(c) == c for c in ends)
        if not increasing or ends[0] <= 0 or ends[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(pairwise(self.cutoffs)):
            size = int(in_features // div_value ** (i + 1))
            first = Linear(in_features, size, False, device=device, dtype=dtype)
            self.tail.append(Sequential(first, Linear(size, end - start, False, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log probabilities of the targets, and minus their mean.

        Raises:
            RuntimeError: The shapes do not fit, or a target is no class.
        """
        rank = target_.dim()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with size {input_.size()}"
            )
        x, target = (input_, target_) if rank == 1 else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not 0 <= target.min().item() <= target.max().item() < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        head = self.head(x).log_softmax(1)
        # What the head has for a target: its own class, or its cluster.
        places = target
        in_cluster = _core.zeros(x.size(0), dtype=head.dtype, device=head.device)
        for i, (start, end) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            places = places.index_fill(0, rows, self.shortlist_size + i)
            logs = self.tail[i](x.index_select(0, rows)).log_softmax(1)
            chosen = logs.gather(1, (target.index_select(0, rows) - start).unsqueeze(1)).squeeze(1)
            in_cluster = in_cluster.index_copy(0, rows, chosen)
        output = in_cluster + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if rank == 1 else output.squeeze(0), loss)

    def _all(self, x: Tensor, head: Tensor) -> Tensor:
        logs = head.log_softmax(1)
        parts = [logs[:, : self.shortlist_size]]
        for i, projection in enumerate(self.tail):
            parts.append(projection(x).log_softmax(1) + logs[:, self.shortlist_size + i].unsqueeze(1))
        return _core.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes.

        Args:
            input: A tensor of shape ``(N, in_features)``.

        Returns:
            A tensor of shape ``(N, n_classes)``.
        """
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; clusters are only computed where the head chooses one.

        Args:
            input: A tensor of shape ``(N, in_features)``.

        Returns:
            Numbers of classes, of shape ``(N)``.
        """
        head = self.head(input)
        best: Tensor = head.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        logs = self._all(input.index_select(0, rows), head.index_select(0, rows))
        return best.index_copy(0, rows, logs.argmax(1))
