"""`out=` and the several names of one parameter, which stand before functions whose own code knows nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from places import ROOT

X = [[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]]
INDEX = [[0, 2, 1], [1, 0, 2]]

# One call of each function; `x` are numbers, `i` positions, `m` a mask.
CALLS: dict[str, Callable[..., Any]] = {
    "addmm": lambda T, x, i, m, **k: T.addmm(x, x[:, :2], x, **k),
    "argsort": lambda T, x, i, m, **k: T.argsort(x, **k),
    "baddbmm": lambda T, x, i, m, **k: T.baddbmm(x[None], x[None, :, :2], x[None], **k),
    "bernoulli": lambda T, x, i, m, **k: T.bernoulli(x * 0 + 1, **k),
    "clamp_max": lambda T, x, i, m, **k: T.clamp_max(x, 3.0, **k),
    "clamp_min": lambda T, x, i, m, **k: T.clamp_min(x, 3.0, **k),
    "column_stack": lambda T, x, i, m, **k: T.column_stack((x, x), **k),
    "diag": lambda T, x, i, m, **k: T.diag(x, 1, **k),
    "diff": lambda T, x, i, m, **k: T.diff(x, **k),
    "dstack": lambda T, x, i, m, **k: T.dstack((x, x), **k),
    "gather": lambda T, x, i, m, **k: T.gather(x, 1, i, **k),
    "hstack": lambda T, x, i, m, **k: T.hstack((x, x), **k),
    "index_add": lambda T, x, i, m, **k: T.index_add(x, 0, i[1, :2], x, alpha=2, **k),
    "index_copy": lambda T, x, i, m, **k: T.index_copy(x, 0, i[1, :2], x, **k),
    "index_select": lambda T, x, i, m, **k: T.index_select(x, 1, i[0], **k),
    "kron": lambda T, x, i, m, **k: T.kron(x, x, **k),
    "masked_select": lambda T, x, i, m, **k: T.masked_select(x, m, **k),
    "msort": lambda T, x, i, m, **k: T.msort(x, **k),
    "multinomial": lambda T, x, i, m, **k: T.multinomial(m[:, :1] * x[:, :1], 1, **k),
    "nonzero": lambda T, x, i, m, **k: T.nonzero(m, **k),
    "normal": lambda T, x, i, m, **k: T.normal(x, 0.0, **k),
    "rand": lambda T, x, i, m, **k: T.rand(2, 3, **k) * 0,
    "randint": lambda T, x, i, m, **k: T.randint(4, 5, (2, 3), **k),
    "randn": lambda T, x, i, m, **k: T.randn(2, 3, **k) * 0,
    "randperm": lambda T, x, i, m, **k: T.randperm(1, **k),
    "row_stack": lambda T, x, i, m, **k: T.row_stack((x, x), **k),
    "scatter": lambda T, x, i, m, **k: T.scatter(x, 1, i, 2.0, **k),
    "scatter_add": lambda T, x, i, m, **k: T.scatter_add(x, 1, i, x, **k),
    "take": lambda T, x, i, m, **k: T.take(x, i, **k),
    "take_along_dim": lambda T, x, i, m, **k: T.take_along_dim(x, i, 1, **k),
    "tensordot": lambda T, x, i, m, **k: T.tensordot(x, x, **k),
    "tril": lambda T, x, i, m, **k: T.tril(x, **k),
    "triu": lambda T, x, i, m, **k: T.triu(x, 1, **k),
    "vstack": lambda T, x, i, m, **k: T.vstack((x, x), **k),
    "where": lambda T, x, i, m, **k: T.where(m, x, 0.0, **k),
}
RANDOM = {"bernoulli", "multinomial", "normal", "rand", "randint", "randn", "randperm"}


def operands() -> tuple[Any, Any, Any]:
    x = rgrad.tensor(X)
    return x, rgrad.tensor(INDEX), x > 2


def test_every_function_that_takes_out_here_is_called() -> None:
    from re import DOTALL, findall, search

    source = (ROOT / "src" / "python" / "overrides" / "keywords.rs").read_text(encoding="utf-8")
    listed = search(r"const WITH_OUT: &\[&str\] = &\[(.*?)\];", source, DOTALL)
    assert listed is not None
    assert set(findall(r'"(\w+)"', listed[1])) <= set(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_out_gets_the_result_and_is_returned(name: str) -> None:
    x, i, m = operands()
    want = CALLS[name](rgrad, x, i, m)
    out = rgrad.empty(0, dtype=want.dtype)
    CALLS[name](rgrad, x, i, m, out=out)
    assert out.shape == want.shape
    if name not in ("rand", "randn"):
        assert rgrad.equal(out, want)
        assert CALLS[name](rgrad, x, i, m, out=out) is out


@pytest.mark.parametrize("name", sorted(CALLS.keys() - RANDOM - {"argsort", "nonzero"}))
def test_out_is_refused_where_a_gradient_is_wanted(name: str) -> None:
    x, i, m = operands()
    out = rgrad.zeros(1)
    with pytest.raises(
        RuntimeError, match=r"functions with out=\.\.\. arguments don't support automatic differentiation"
    ):
        CALLS[name](rgrad, x.requires_grad_(), i, m, out=out)
    assert out.tolist() == [0.0]


def test_out_of_the_wrong_kind_is_refused() -> None:
    x, i, m = operands()
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not int"):
        rgrad.tril(x, out=3)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        rgrad.tril(x, out=rgrad.zeros(2, 3, dtype=rgrad.int64))
    with pytest.raises(TypeError, match="out= needs a single tensor"):
        rgrad.nonzero(m, as_tuple=True, out=rgrad.zeros(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        x.tril(out=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        x.tanh(out=x)
    assert rgrad.equal(rgrad.gather(x, 1, i, out=None), rgrad.gather(x, 1, i))


def test_handlers_see_out_and_the_callers_names() -> None:
    seen: list[Any] = []

    class Watched(rgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func, sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    x, _, _ = operands()
    watched = x.as_subclass(Watched)
    out = rgrad.zeros(2, 3)
    assert rgrad.tril(watched, out=out) is out or rgrad.equal(out, x.tril())
    assert rgrad.hsplit(watched, sections=3)[1].tolist() == [[1.0], [5.0]]
    assert (rgrad.tril, ["out"]) in seen
    assert (rgrad.hsplit, ["sections"]) in seen


@pytest.mark.parametrize("at", [rgrad, rgrad.Tensor], ids=["function", "method"])
def test_the_names_of_sections_and_positions(at: Any) -> None:
    x = rgrad.arange(16.0).reshape(4, 2, 2)
    for name in ("hsplit", "vsplit", "dsplit", "tensor_split"):
        f = getattr(at, name)
        for keyword, value in (("sections", 2), ("indices", [1]), ("indices_or_sections", 2)):
            want = f(x, value)
            got = f(x, **{keyword: value})
            assert [t.tolist() for t in got] == [t.tolist() for t in want], (name, keyword)
    assert len(at.tensor_split(x, tensor_indices_or_sections=rgrad.tensor(2))) == 2
    assert len(at.split(x, split_size=1)) == 4
    assert len(at.split(x, split_size_or_sections=[1, 3], dim=0)) == 2


def test_the_first_argument_of_split_has_pytorchs_name() -> None:
    assert len(rgrad.split(tensor=rgrad.ones(4), split_size_or_sections=2)) == 2


def test_a_running_sum_in_place_takes_a_dtype() -> None:
    x = rgrad.tensor([1.5, 2.5, 3.5])
    assert x.clone().cumsum_(0, dtype=rgrad.int64).tolist() == [1.0, 3.0, 6.0]
    assert x.clone().cumprod_(0, dtype=rgrad.int64).tolist() == [1.0, 2.0, 6.0]
    assert x.clone().cumsum_(0, dtype=rgrad.float32).tolist() == [1.5, 4.0, 7.5]


def test_positions_of_a_triangle_take_the_options_of_new_tensors() -> None:
    assert rgrad.tril_indices(2, 2, dtype=rgrad.int32).dtype == rgrad.int32
    assert rgrad.triu_indices(2, 2).dtype == rgrad.int64
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtypes'"):
        rgrad.tril_indices(2, 2, dtypes=rgrad.int32)


def test_names_that_are_not_interned_are_known() -> None:
    x = rgrad.arange(6.0).reshape(2, 3)
    for name in ("sec", "ind"):
        keyword = name + {"sec": "tions", "ind": "ices"}[name]
        assert len(rgrad.vsplit(x, **{keyword: 2 if name == "sec" else [1]})) == 2
    out = rgrad.zeros(2, 3)
    assert rgrad.tril(x, **{b"out".decode(): out}) is out


def test_the_short_check_of_names_knows_all_of_them() -> None:
    from re import DOTALL, findall, search

    source = (ROOT / "src" / "python" / "overrides" / "keywords.rs").read_text(encoding="utf-8")
    renamed = search(r"const RENAMED: .*? = &\[(.*?)\];", source, DOTALL)
    short = search(r"fn has_one.*?\n}", source, DOTALL)
    assert renamed is not None
    assert short is not None
    numpy = search(r"const NUMPY: .*? = &\[(.*?)\];", source, DOTALL)
    assert numpy is not None
    theirs = {name for _, name, _ in findall(r'\("(\w+)", "(\w+)", "(\w+)"\)', renamed[1])} | {"out"}
    theirs |= {name for name, _ in findall(r'\("(\w+)", "(\w+)"\)', numpy[1])}
    told = {
        (int(length), name)
        for length, names in findall(r"(\d+) => &\[(.*?)\]", short[0])
        for name in findall(r'"(\w+)"', names)
    }
    assert told == {(len(n), n) for n in theirs}
