"""What a failed check raises."""


class GradcheckError(RuntimeError):
    """A gradient check failed.

    For a mismatch the attributes say where and how: ``output_idx`` and ``input_idx`` (positions among the outputs and
    inputs that are differentiable), ``output_index`` and ``input_index`` (of the worst entry), ``analytical`` and
    ``numerical`` (its values) and ``verdict``. They are None for other failures.
    """

    __module__ = "rgrad.autograd.gradcheck"

    output_idx: int | None = None
    input_idx: int | None = None
    output_index: tuple[int, ...] | None = None
    input_index: tuple[int, ...] | None = None
    analytical: float | None = None
    numerical: float | None = None
    verdict: str | None = None


class BadGradient(Exception):
    """A gradient that cannot be one: of the wrong size or dtype."""
