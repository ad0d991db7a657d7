"""What a failed check raises."""


class GradcheckError(RuntimeError):
    """A gradient check failed.

    The attributes are None unless two values differ.

    Attributes:
        output_idx: Which output, among those that are differentiable.
        input_idx: Which input, among those that are differentiable.
        output_index: The index of the worst entry in the output.
        input_index: The index of the worst entry in the input.
        analytical: The engine's value of that entry, complex where one of a complex number is compared.
        numerical: Its value by differences.
        verdict: What is wrong, in words.

    Example:
        >>> def cut(x):
        ...     return x * x.detach()
        >>> try:
        ...     rgrad.autograd.gradcheck(cut, rgrad.tensor(3.0, dtype=rgrad.float64, requires_grad=True))
        ... except rgrad.autograd.GradcheckError as error:
        ...     print(error.verdict, error.analytical, round(error.numerical, 6))
        wrong formula 3.0 6.0
    """

    __module__ = "rgrad.autograd.gradcheck"

    output_idx: int | None = None
    input_idx: int | None = None
    output_index: tuple[int, ...] | None = None
    input_index: tuple[int, ...] | None = None
    analytical: float | complex | None = None
    numerical: float | complex | None = None
    verdict: str | None = None


class BadGradient(Exception):
    """A gradient that cannot be one: of the wrong size or dtype."""
