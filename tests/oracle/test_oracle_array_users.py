"""NumPy, pandas, polars and Pillow as programs use them with tensors: what each call gives or raises."""

# ruff: noqa: PLC3002  a call in one line that is a value

from __future__ import annotations

import array
import importlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rgrad

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def found(name: str) -> Any:
    """A module, or None where it is not installed: then its cases are left out."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pd, pl, Image = found("pandas"), found("polars"), found("PIL.Image")


def npy() -> str:
    return str(Path(tempfile.mkdtemp()) / "x.npy")


CASES: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda T: np.asarray(T.ones(2)),
    "asarray dtype": lambda T: np.asarray(T.ones(2), dtype=np.float64),
    "asarray int": lambda T: np.asarray(T.ones(2), dtype=int),
    "array copy False": lambda T: np.array(T.ones(2), copy=False),
    "array copy False dtype": lambda T: np.array(T.ones(2), copy=False, dtype="f8"),
    "array copy True": lambda T: (lambda t, a: (a.__setitem__(0, 5), t, a)[1:])(
        *(lambda t: (t, np.array(t, copy=True)))(T.ones(2))
    ),
    "__array__ copy True": lambda T: T.ones(2).__array__(copy=True),
    "__array__ copy False": lambda T: T.ones(2).__array__(copy=False),
    "__array__ dtype": lambda T: T.ones(2).__array__(np.float16),
    "__array__ dtype str": lambda T: T.ones(2).__array__("f8"),
    "__array__ reqgrad": lambda T: T.ones(2, requires_grad=True).__array__(),
    "asarray reqgrad": lambda T: np.asarray(T.ones(2, requires_grad=True)),
    "asarray list reqgrad": lambda T: np.asarray([T.ones((), requires_grad=True)]),
    "asarray list": lambda T: np.asarray([T.ones(2), T.ones(2)]),
    "asarray list scalars": lambda T: np.array([T.tensor(1.0), T.tensor(2.0)]),
    "bf16": lambda T: np.asarray(T.ones(2, dtype=T.bfloat16)),
    "wrap sin": lambda T: np.sin(T.ones(2)),
    "wrap add": lambda T: np.add(T.ones(2), np.ones(2)),
    "wrap add r": lambda T: np.ones(2) + T.ones(2),
    "wrap add l": lambda T: T.ones(2) + np.ones(2),
    "wrap mul r": lambda T: np.float64(3) * T.ones(2),
    "wrap mul f32": lambda T: np.float32(3) * T.ones(2, dtype=T.float64),
    "wrap mul int r": lambda T: np.int64(3) * T.ones(2),
    "wrap add reqgrad": lambda T: np.ones(2) + T.ones(2, requires_grad=True),
    "cmp": lambda T: np.ones(2) == T.ones(2),
    "lt": lambda T: np.ones(2) < T.ones(2),
    "wrap sum": lambda T: np.sum(T.ones(2)),
    "np.mean": lambda T: np.mean(T.ones(2)),
    "np.mean axis": lambda T: np.mean(T.ones(2, 2), axis=0),
    "np.concatenate": lambda T: np.concatenate([T.ones(2), T.ones(1)]),
    "np.stack": lambda T: np.stack([T.ones(2), T.ones(2)]),
    "np.isnan": lambda T: np.isnan(T.ones(2)),
    "np.allclose": lambda T: np.allclose(T.ones(2), np.ones(2)),
    "np.testing": lambda T: np.testing.assert_allclose(T.ones(2), np.ones(2)),
    "np.dot": lambda T: np.dot(T.ones(2), T.ones(2)),
    "np.matmul": lambda T: np.matmul(T.ones(2, 2), np.ones((2, 2))),
    "np @": lambda T: np.ones((2, 2)) @ T.ones(2, 2),
    "np.transpose": lambda T: np.transpose(T.ones(2, 3)).shape,
    "np.where": lambda T: np.where(T.tensor([True, False]), 1, 2),
    "np idx": lambda T: np.arange(5)[T.tensor([1, 2])],
    "np idx0": lambda T: np.arange(5)[T.tensor(2)],
    "np bool idx": lambda T: np.arange(2)[T.tensor([True, False])],
    "np setitem": lambda T: (lambda a: (a.__setitem__(slice(0, 2), T.ones(2)), a)[1])(np.zeros(3)),
    "np out": lambda T: np.add(np.ones(2), np.ones(2), out=T.zeros(2)),
    "np ufunc reduce": lambda T: np.add.reduce(T.ones(3)),
    "np.array_priority": lambda T: T.ones(1).__array_priority__,
    "np.sqrt int": lambda T: np.sqrt(T.tensor([4])),
    "np.clip": lambda T: np.clip(T.arange(4.0), 1, 2),
    "np.linalg": lambda T: np.linalg.norm(T.ones(4)),
    "np.abs bool": lambda T: np.logical_not(T.tensor([True])),
    "wrap bool": lambda T: np.isfinite(T.ones(2)),
    "np.round": lambda T: np.round(T.ones(2) * 1.4),
    "np.unique": lambda T: np.unique(T.tensor([1, 1, 2])),
    "np.save": lambda T: (lambda b: (np.save(b, T.ones(2)), b.seek(0), T.from_numpy(np.load(b)))[2])(io.BytesIO()),
    "np.savez": lambda T: (
        lambda b: (
            np.savez(b, a=T.ones(2), b=T.tensor([1])),
            b.seek(0),
            {k: T.from_numpy(v) for k, v in np.load(b).items()},
        )[2]
    )(io.BytesIO()),
    "np.savetxt": lambda T: (lambda b: (np.savetxt(b, T.ones(2, 2)), b.getvalue())[1])(io.StringIO()),
    "np.load mmap": lambda T: (lambda p: (np.save(p, np.arange(4.0)), T.from_numpy(np.load(p, mmap_mode="r")))[1])(
        npy()
    ),
    "np.load mmap c": lambda T: (lambda p: (np.save(p, np.arange(4.0)), T.from_numpy(np.load(p, mmap_mode="c")))[1])(
        npy()
    ),
    "from_numpy ro": lambda T: T.from_numpy((lambda a: (a.setflags(write=False), a)[1])(np.ones(2))),
    "from_numpy str": lambda T: T.from_numpy(np.array(["a"])),
    "from_numpy obj": lambda T: T.from_numpy(np.array([None])),
    "from_numpy big": lambda T: T.from_numpy(np.ones(2, ">f4")),
    "from_numpy neg": lambda T: T.from_numpy(np.ones(2)[::-1]),
    "from_numpy scalar": lambda T: T.from_numpy(np.float64(1)),
    "from_numpy 0d": lambda T: T.from_numpy(np.array(3)),
    "from_numpy struct": lambda T: T.from_numpy(np.zeros(2, "i4,f4")),
    "from_numpy dt64": lambda T: T.from_numpy(np.zeros(2, "M8[s]")),
    "from_numpy bool": lambda T: T.from_numpy(np.array([True])),
    "from_numpy u16": lambda T: T.from_numpy(np.ones(1, "u2")),
    "from_numpy longdouble": lambda T: T.from_numpy(np.ones(1, np.longdouble)),
    "from_numpy ma": lambda T: T.from_numpy(np.ma.array([1.0, 2.0], mask=[0, 1])),
    "from_numpy matrix": lambda T: T.from_numpy(np.matrix([[1.0]])),
    "tensor ma": lambda T: T.tensor(np.ma.array([1.0, 2.0], mask=[0, 1])),
    "tensor npfloat": lambda T: T.tensor(np.float32(1)),
    "tensor list npfloat": lambda T: T.tensor([np.float32(1), np.float64(2)]).dtype == T.float32,
    "tensor list np arr": lambda T: T.tensor([np.ones(2), np.ones(2)]),
    "as_tensor neg": lambda T: T.as_tensor(np.ones(2)[::-1]),
    "tensor neg": lambda T: T.tensor(np.ones(2)[::-1]),
    "tensor obj": lambda T: T.tensor(np.array([1, 2], dtype=object)),
    "Tensor np": lambda T: T.Tensor(np.ones(2)),
    "memoryview": lambda T: memoryview(T.ones(2)),
    "bytes": lambda T: bytes(T.tensor([1, 2], dtype=T.uint8)),
    "bytes numpy": lambda T: T.tensor([1, 2], dtype=T.uint8).numpy().tobytes(),
    "bytearray": lambda T: bytearray(T.tensor([1, 2], dtype=T.uint8)),
    "frombuffer np": lambda T: T.frombuffer(np.ones(2), dtype=T.float64),
    "frombuffer array": lambda T: T.frombuffer(array.array("i", [1, 2]), dtype=T.int32),
    "array.array": lambda T: T.tensor(array.array("i", [1, 2])),
    "as_tensor array.array": lambda T: T.as_tensor(array.array("d", [1, 2])),
    "range": lambda T: T.tensor(range(3)),
    "set": lambda T: T.tensor({1}),
    "gen": lambda T: T.tensor(x for x in [1]),
    "iter np": lambda T: list(map(float, T.ones(2))),
    "format": lambda T: f"{T.tensor(1.5):.2f}",
    "np.float64(t)": lambda T: np.float64(T.tensor(2.0)),
    "np.int64(t)": lambda T: np.int64(T.tensor(2)),
    "np.dtype": lambda T: np.zeros(2, dtype=T.ones(1).numpy().dtype),
    "np.zeros_like": lambda T: np.zeros_like(T.ones(2)),
    "np.random.choice": lambda T: np.random.choice(T.tensor([4])),
    "np.random.permutation": lambda T: np.random.permutation(T.tensor([4])),
    "np.interp": lambda T: np.interp(T.tensor([0.5]), [0, 1], [0, 2]),
    "np.histogram": lambda T: np.histogram(T.ones(3), bins=2)[0],
    "np.vectorize": lambda T: np.vectorize(lambda v: v + 1)(T.ones(2)),
    "np.broadcast_to": lambda T: np.broadcast_to(T.ones(2), (2, 2)),
    "np.pad": lambda T: np.pad(T.ones(2), 1),
    "np.meshgrid": lambda T: np.meshgrid(T.ones(2), T.ones(1))[0],
    "np.argsort": lambda T: np.argsort(T.tensor([2, 1])),
    "np.argmax": lambda T: np.argmax(T.tensor([2, 1])),
    "np.max": lambda T: np.max(T.tensor([2, 1])),
    "np.std": lambda T: np.std(T.ones(2)),
    "np.cumsum": lambda T: np.cumsum(T.ones(2)),
    "np.expand_dims": lambda T: np.expand_dims(T.ones(2), 0),
    "np.reshape": lambda T: np.reshape(T.ones(2), (2, 1)),
    "np.squeeze": lambda T: np.squeeze(T.ones(2, 1)),
    "np.swapaxes": lambda T: np.swapaxes(T.ones(2, 1), 0, 1),
    "np.copy": lambda T: np.copy(T.ones(2)),
    "np.ravel": lambda T: np.ravel(T.ones(2, 1)),
    "np.flip": lambda T: np.flip(T.arange(2.0)),
    "np.repeat": lambda T: np.repeat(T.arange(2.0), 2),
    "np.tile": lambda T: np.tile(T.arange(2.0), 2),
    "np.iscomplexobj": lambda T: np.iscomplexobj(T.ones(1)),
    "np.isscalar": lambda T: np.isscalar(T.tensor(1)),
    "np.array_namespace": lambda T: hasattr(T.ones(1), "__array_namespace__"),
    "np.array_iface": lambda T: hasattr(T.ones(1), "__array_interface__"),
    "cuda_array_iface": lambda T: hasattr(T.ones(1), "__cuda_array_interface__"),
    "np.datetime": lambda T: np.timedelta64(1, "s") * T.tensor(2),
}
if pd is not None:
    CASES.update(
        {
            "pd DataFrame": lambda T: pd.DataFrame(T.ones(2, 2)),
            "pd DataFrame numpy": lambda T: pd.DataFrame(T.ones(2, 2).numpy()),
            "pd DataFrame dict": lambda T: pd.DataFrame({"a": T.ones(2)}),
            "pd DataFrame dict 0d": lambda T: pd.DataFrame({"a": [T.tensor(1.0)]}),
            "pd Series": lambda T: pd.Series(T.ones(2)),
            "pd Series dtype": lambda T: pd.Series(T.ones(2)).dtype,
            "pd Series of list": lambda T: pd.Series([T.tensor(1.0), T.tensor(2.0)]).dtype,
            "pd Series name": lambda T: pd.Series(T.tensor([1, 2]), name="x"),
            "pd values": lambda T: T.tensor(pd.DataFrame({"a": [1.0, 2.0]}).values),
            "pd series tensor": lambda T: T.tensor(pd.Series([1.0, 2.0])),
            "pd series tensor idx": lambda T: T.tensor(pd.Series([1.0, 2.0], index=[3, 4])),
            "pd as_tensor": lambda T: T.as_tensor(pd.Series([1, 2])),
            "pd df tensor": lambda T: T.tensor(pd.DataFrame({"a": [1.0, 2.0]})),
            "pd from_numpy": lambda T: T.from_numpy(pd.DataFrame({"a": [1.0, 2.0]}).to_numpy()),
            "pd from_numpy2": lambda T: T.from_numpy(pd.Series([1.0, 2.0])),
            "pd assign": lambda T: (lambda d: (d.__setitem__("b", T.ones(2)), d)[1])(pd.DataFrame({"a": [1.0, 2.0]})),
            "pd assign loc": lambda T: (lambda d: (d.loc.__setitem__((slice(None), "a"), T.ones(2) * 3), d)[1])(
                pd.DataFrame({"a": [1.0, 2.0]})
            ),
            "pd mul": lambda T: pd.Series([1.0, 2.0]) * T.ones(2),
            "pd mul l": lambda T: T.ones(2) * pd.Series([1.0, 2.0]),
            "pd isin": lambda T: pd.Series([1, 2]).isin(T.tensor([1])),
            "pd map": lambda T: pd.Series([1, 2]).map(lambda v: T.tensor(v)).tolist(),
            "pd reqgrad": lambda T: pd.Series(T.ones(2, requires_grad=True)),
            "pd cat codes": lambda T: T.tensor(pd.Series(["a", "b"]).astype("category").cat.codes.values),
            "pd mixed": lambda T: T.tensor(pd.DataFrame({"a": [1], "b": ["x"]}).values),
            "pd Float64": lambda T: T.tensor(pd.Series([1.0, 2.0], dtype="Float64").to_numpy()),
            "pd idx": lambda T: pd.DataFrame({"a": [1, 2, 3]}).iloc[T.tensor([0, 2])],
            "pd bool idx": lambda T: pd.DataFrame({"a": [1, 2, 3]})[T.tensor([True, False, True]).numpy()],
            "pd cut": lambda T: pd.cut(T.tensor([1.0, 5.0]), 2).codes,
        }
    )
if pl is not None:
    CASES.update(
        {
            "pl Series": lambda T: pl.Series(T.ones(2).numpy()),
            "pl Series t": lambda T: pl.Series("a", T.ones(2)).to_list(),
            "pl DataFrame": lambda T: pl.DataFrame({"a": T.ones(2).numpy()}),
            "pl DataFrame t": lambda T: pl.DataFrame({"a": T.ones(2)}),
            "pl DataFrame t2": lambda T: pl.DataFrame(T.ones(2, 2)),
            "pl from": lambda T: T.tensor(pl.Series([1.0, 2.0])),
            "pl from np": lambda T: T.from_numpy(pl.Series([1.0, 2.0]).to_numpy(writable=True)),
            "pl df": lambda T: T.tensor(pl.DataFrame({"a": [1.0, 2.0]}).to_numpy()),
            "pl dlpack": lambda T: T.tensor(pl.DataFrame({"a": [1.0, 2.0]}).to_numpy(order="c")),
        }
    )
if Image is not None:
    CASES.update(
        {
            "pil from": lambda T: T.from_numpy(np.asarray(Image.new("RGB", (2, 2), (1, 2, 3)))),
            "pil from copy": lambda T: T.from_numpy(np.array(Image.new("RGB", (2, 2), (1, 2, 3)))),
            "pil to": lambda T: np.asarray(Image.fromarray(T.full((2, 2, 3), 7, dtype=T.uint8).numpy())).tolist(),
            "pil to t": lambda T: np.asarray(Image.fromarray(T.full((2, 2), 7, dtype=T.uint8))).tolist(),
            "pil tensor": lambda T: T.tensor(np.array(Image.new("L", (2, 2), 9))),
            "pil tensor d": lambda T: T.tensor(Image.new("L", (2, 2), 9)),
            "pil as_tensor": lambda T: T.as_tensor(Image.new("L", (2, 1), 9)),
            "pil getdata": lambda T: T.tensor(list(Image.new("L", (2, 1), 9).getdata())),
            "pil bytes": lambda T: T.frombuffer(bytearray(Image.new("L", (2, 1), 9).tobytes()), dtype=T.uint8),
            "pil bool": lambda T: T.from_numpy(np.array(Image.new("1", (2, 1), 1))),
        }
    )

# Where rgrad does more, or says it otherwise.
DIFFERENT = {
    "`copy=` is a parameter of `__array__`, as NumPy 2 asks for": (
        "array copy False",
        "__array__ copy True",
        "__array__ copy False",
    ),
    "the package ml_dtypes gives NumPy bfloat16": ("bf16",),
    "NumPy's `axis=` is accepted": ("wrap sum", "np.mean", "np.mean axis", "np.max", "np.std", "pd cut"),
    "truth values stay truth values": ("np.isnan", "np.abs bool", "wrap bool"),
    "negative strides are copied": ("as_tensor neg", "tensor neg"),
    "polars asks for the name torch, so only with rgrad in torch's place": (
        "pl Series t",
        "pl DataFrame t",
        "pl DataFrame t2",
    ),
}


def shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {value.tolist()} {value.flags.writeable}"
    return " ".join(f"{type(value).__name__} {value}".replace("rgrad", "torch").split())


def outcome(T: Any, case: Callable[[Any], Any]) -> str:
    try:
        return shown(case(T))
    except Exception as e:
        return next(t.__name__ for t in type(e).__mro__ if t.__module__ == "builtins")


@pytest.mark.parametrize("name", sorted(set(CASES) - {n for names in DIFFERENT.values() for n in names}))
def test_users_of_arrays_see_what_they_see_in_pytorch(name: str) -> None:
    assert outcome(rgrad, CASES[name]) == outcome(torch, CASES[name])


def test_what_is_said_to_differ_differs() -> None:
    for names in DIFFERENT.values():
        for name in names:
            if name in CASES and name not in ("bf16", "np.std"):
                assert outcome(rgrad, CASES[name]) != outcome(torch, CASES[name]), name
