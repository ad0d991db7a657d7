"""The older name of what :mod:`rgrad.hub` does with state dicts."""

from typing import Any

from ..hub import load_state_dict_from_url as load_url

try:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """What stands for a bar of progress where the package tqdm is not there: it shows nothing.

        Args:
            iterable: What is run through.
            args: Has no effect.
            kwargs: Has no effect.
        """

        def __init__(self, iterable: Any = None, *args: Any, **kwargs: Any) -> None:
            self.iterable = iterable

        def __iter__(self) -> Any:
            return iter(self.iterable)

        def update(self, n: int = 1) -> None:
            """Nothing is shown."""

        def close(self) -> None:
            """Nothing was opened."""

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *args: object) -> None:
            pass


__all__ = ["load_url", "tqdm"]
