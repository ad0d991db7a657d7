# jaxtyping: shapes in annotations, checked by beartype
import torch
from beartype import beartype
from jaxtyping import Float, TypeCheckError, jaxtyped
from torch import Tensor


@jaxtyped(typechecker=beartype)
def f(x: Float[Tensor, "a b"], y: Float[Tensor, "b"]) -> Float[Tensor, "a"]:
    return x @ y


assert f(torch.ones(2, 3), torch.ones(3)).shape == (2,)
try:
    f(torch.ones(2, 3), torch.ones(2))
except TypeCheckError:
    pass
else:
    raise AssertionError("a wrong shape was not found")
