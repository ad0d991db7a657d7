"""Tables of vectors."""

from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from .. import init
from ..functional._embedding import padding_row
from ..parameter import Parameter
from ._text import options
from .module import Module


class _Table(Module):
    weight: Parameter
    padding_idx: int | None

    def _set(self, shape: tuple[int, int], given: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        if given is None:
            self.weight = Parameter(_core.empty(shape, device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
        else:
            if list(given.shape) != list(shape):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the table anew, from a standard normal distribution; the padding row is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of vectors, of which it gives the rows that are asked for.

    The parameter ``weight`` of shape ``(num_embeddings, embedding_dim)`` starts normally distributed.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        padding_idx: A row that starts as 0 and gets no gradient.
        max_norm: Rows that are used and have a larger norm are scaled to it, in place.
        norm_type: The order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by the number of its uses.
        sparse: Not supported by :func:`rgrad.nn.functional.embedding`: gradients are dense.
        _weight: The table itself.
        _freeze: Whether the table is not trained.
        device: The device of the table.
        dtype: The dtype of the table.

    Raises:
        AssertionError: ``padding_idx`` is no row, or ``_weight`` has another shape.

    Shape:
        Input: ``(*)``, integers; output: ``(*, embedding_dim)``.

    Example:
        >>> layer = nn.Embedding(10, 3, padding_idx=0)
        >>> layer(rgrad.tensor([[0, 2], [4, 9]])).shape
        rgrad.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set((num_embeddings, embedding_dim), _weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.embedding`."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    extra_repr = options(
        first=["num_embeddings", "embedding_dim"],
        unless={"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False},
    )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """Make a layer of a table.

        Args:
            embeddings: The table, of shape ``(num_embeddings, embedding_dim)``.
            freeze: Whether it is not trained.
            padding_idx: See the class.
            max_norm: See the class.
            norm_type: See the class.
            scale_grad_by_freq: See the class.
            sparse: See the class.

        Returns:
            The layer.

        Raises:
            AssertionError: The table is no matrix.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, size = embeddings.shape
        return cls(
            rows,
            size,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """A table of vectors, of which it gives sums, means or maxima of bags of rows.

    The parameter ``weight`` of shape ``(num_embeddings, embedding_dim)`` starts normally distributed.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        max_norm: Rows that are used and have a larger norm are scaled to it, in place.
        norm_type: The order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by the number of its uses.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: Not supported by :func:`rgrad.nn.functional.embedding_bag`: gradients are dense.
        _weight: The table itself.
        include_last_offset: The last of the offsets is the end of the last bag.
        padding_idx: An index that does not count.
        device: The device of the table.
        dtype: The dtype of the table.

    Raises:
        AssertionError: ``padding_idx`` is no row, or ``_weight`` has another shape.

    Shape:
        Input: ``(B, L)``, or ``(*)`` in one dimension with offsets of shape ``(B)``; output: ``(B, embedding_dim)``.

    Example:
        >>> layer = nn.EmbeddingBag(10, 3, mode="sum")
        >>> layer(rgrad.tensor([1, 2, 4, 5]), rgrad.tensor([0, 3])).shape
        rgrad.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = padding_row(padding_idx, num_embeddings, "padding_idx")
        self._set((num_embeddings, embedding_dim), _weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """See :func:`rgrad.nn.functional.embedding_bag`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> "EmbeddingBag":
        """Make a layer of a table.

        Args:
            embeddings: The table, of shape ``(num_embeddings, embedding_dim)``.
            freeze: Whether it is not trained.
            max_norm: See the class.
            norm_type: See the class.
            scale_grad_by_freq: See the class.
            mode: See the class.
            sparse: See the class.
            include_last_offset: See the class.
            padding_idx: See the class.

        Returns:
            The layer.

        Raises:
            AssertionError: The table is no matrix.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, size = embeddings.shape
        made = cls(
            rows,
            size,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made
