"""A mode of PyTorch's compiler that libraries use around `vmap`."""

from contextlib import AbstractContextManager
from typing import Any


class TransformGetItemToIndex(AbstractContextManager["TransformGetItemToIndex"]):
    """A block in which a tensor may be indexed by a tensor of one number under `vmap`; has no effect: it always may."""

    def __exit__(self, *exc: Any) -> None:
        return None
