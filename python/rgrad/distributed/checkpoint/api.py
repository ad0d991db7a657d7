"""The error of checkpoints."""

from __future__ import annotations

from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """A checkpoint could not be written or read. All processes raise it, also where others have failed.

    Args:
        msg: What was tried.
        failures: The error of each process that has failed, by its place among all, with its traceback or None.
    """

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, Any]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, Any]]:
        """The error of each process that has failed, by its place among all, with its traceback or None."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"{self.args[0]}: CheckpointException ranks:{list(self._failures)}"]
        lines += [f"(RANK {rank}) {type(error).__name__}: {error}" for rank, (error, _) in self._failures.items()]
        return "\n".join(lines)
