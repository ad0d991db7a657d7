"""Views, and what copies, of tensors of many layouts beside torch: shape, strides, offset, base, values, refusals."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

SETUP = """
a = T.arange(24.0).reshape(2, 3, 4)
t = a.transpose(0, 2)
c = a[:, ::2, 1:3]
e = T.arange(3.0).expand(4, 3)
z = T.zeros(0, 3)
s = T.tensor(2.0)
n = a[::2, 1]
"""
TENSORS = ("a", "t", "c", "e", "z", "s", "n", "a.mT", "a[None]", "a[..., 0]", "a[:, 1]")
CALLS = (
    "{}.view(-1)",
    "{}.view({}.shape)",
    "{}.view_as({})",
    "{}.reshape(-1)",
    "{}.reshape({}.shape)",
    "{}.unsqueeze(0)",
    "{}.unsqueeze(-1)",
    "{}.squeeze()",
    "{}.squeeze(0)",
    "{}.unsqueeze(0).squeeze(0)",
    "{}.expand(2,*{}.shape)",
    "{}.expand_as({}.unsqueeze(0).repeat(2,*[1]*{}.dim()))",
    "{}.transpose(0,-1)",
    "{}.permute(*range({}.dim())[::-1])",
    "{}.t()",
    "{}.T",
    "{}.mT",
    "{}.narrow(0,0,1)",
    "{}.select(0,0)",
    "{}[0]",
    "{}[...]",
    "{}[:]",
    "{}[1:]",
    "{}[...,::2]",
    "{}.unbind(0)",
    "{}.split(1)",
    "{}.split(2,-1)",
    "{}.chunk(2)",
    "{}.chunk(2,-1)",
    "{}.diagonal()",
    "{}.detach()",
    "{}.unfold(-1,2,1)",
    "{}.unfold(0,1,1)",
    "{}.as_strided((2,),(1,))",
    "{}.movedim(0,-1)",
    "{}.flatten()",
    "{}.flatten(0,1)",
    "{}.flatten(-2)",
    "{}.unflatten(0,(1,-1))",
    "{}.unflatten(-1,(-1,1))",
    "{}.swapaxes(0,-1)",
    "{}.contiguous()",
    "{}.clone()",
    "{}.ravel()",
    "{}.tensor_split(2)",
    "{}.H",
    "{}.adjoint()",
    "{}.squeeze(-1)",
    "{}.view(1,-1)",
    "{}.view(-1,2)",
    "{}.reshape(-1,2)",
    "{}.reshape(-1,1)",
    "{}.broadcast_to(2,*{}.shape)",
    "{}.to(T.float32)",
    "{}.view({}.numel())",
    "{}.data",
    "{}.new_zeros(2)",
    "{}.narrow(-1,0,1)",
    "{}.index_select(0,T.tensor([0]))",
    "{}.repeat(1,1,1,1)",
    "{}.flip(0)",
    "{}.is_contiguous()",
    "{}.stride()",
    "{}.storage_offset()",
    "{}.element_size()",
    "{}.sum(0)",
    "{}.expand(-1,-1,-1)",
    "{}.neg()",
    "({}+1)",
    "({}*{})",
    "T.zeros_like({})",
    "T.empty_like({}).fill_(1)",
    "{}.double()",
    "{}.clone()",
)

# A result of one element shares no memory in torch; here it is a view of one that nobody else has. And torch refuses to
# choose from nothing in other words, and with another type.
FREE_BASE_AND_ERROR = "{}.index_select(0,T.tensor([0]))"


def seen(T: Any, x: Any, call: str) -> Any:
    """All that can be seen of a result. The offset of nothing says nothing."""
    if isinstance(x, T.Tensor):
        out = [tuple(x.shape), x.detach().tolist(), visible_strides(x), x.is_contiguous()]
        if call != FREE_BASE_AND_ERROR:
            out += [x._is_view(), x._base is not None]
        return [*out, x.storage_offset() if x.numel() else 0]
    if isinstance(x, (tuple, list)) and not isinstance(x, T.Size):
        return [seen(T, one, call) for one in x]
    return x


def outcomes(call: str, x: str) -> list[Any]:
    """What becomes of a call here and in PyTorch."""
    made = []
    for T in (rgrad, torch):
        scope: dict[str, Any] = {"T": T}
        exec(SETUP, scope)
        made.append(attempt(lambda scope=scope: eval(call.replace("{}", f"({x})"), scope)))
    return made


@pytest.mark.parametrize("call", [FREE_BASE_AND_ERROR])
def test_what_is_free_differs(call: str) -> None:
    def told(T: Any, made: Any) -> Any:
        return made.error or seen(T, made.value, "")

    pairs = [outcomes(call, x) for x in TENSORS]
    assert any(told(rgrad, mine) != told(torch, theirs) for mine, theirs in pairs)


@pytest.mark.parametrize("x", TENSORS)
@pytest.mark.parametrize("call", CALLS)
def test_layouts(call: str, x: str) -> None:
    mine, theirs = outcomes(call, x)
    assert (mine.error is None) == (theirs.error is None), (mine, theirs)
    if theirs.error is None:
        assert seen(rgrad, mine.value, call) == seen(torch, theirs.value, call)
    elif call != FREE_BASE_AND_ERROR:
        assert issubclass(mine.error or object, theirs.error), (mine, theirs)
