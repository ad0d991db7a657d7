# beartype: annotations with Tensor
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintParamViolation


@beartype
def f(x: torch.Tensor) -> torch.Tensor:
    return x


f(torch.ones(1))
try:
    f(1)
except BeartypeCallHintParamViolation:
    pass
else:
    raise AssertionError("a wrong type was not found")
