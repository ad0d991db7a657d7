"""Options of makers of tensors that are of no use: each is an error that names the argument, and none is ignored."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad

MAKERS = {
    "zeros": lambda **k: rgrad.zeros(2, **k),
    "rand": lambda **k: rgrad.rand(2, **k),
    "ones_like": lambda **k: rgrad.ones_like(rgrad.ones(2), **k),
    "new_full": lambda **k: rgrad.ones(2).new_full((2,), 1.0, **k),
    "arange": lambda **k: rgrad.arange(3, **k),
    "linspace": lambda **k: rgrad.linspace(0, 1, 3, **k),
    "randperm": lambda **k: rgrad.randperm(3, **k),
    "eye": lambda **k: rgrad.eye(2, **k),
    "empty_strided": lambda **k: rgrad.empty_strided((2,), (1,), **k),
    "hann_window": lambda **k: rgrad.hann_window(4, **k),
    "fft_fftfreq": lambda **k: rgrad.fft.fftfreq(4, **k),
    "new_empty_strided": lambda **k: rgrad.ones(2).new_empty_strided((2,), (1,), **k),
}
BAD: dict[str, list[Any]] = {
    "layout": ["x", 1, rgrad.float32],
    "pin_memory": ["x", 1, 0.0],
    "requires_grad": ["x", 1, 0.0],
    "dtype": ["float32", 1, rgrad.strided],
    "device": [1.5, []],
}
WANTED = {"layout": "rgrad.layout", "pin_memory": "bool", "requires_grad": "bool", "dtype": "rgrad.dtype", "device": ""}


@pytest.mark.parametrize("option", BAD)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_wrong_type_is_an_error(maker: str, option: str) -> None:
    for value in BAD[option]:
        with pytest.raises(TypeError, match=f"{option}.*{WANTED[option]}|{option}"):
            MAKERS[maker](**{option: value})


@pytest.mark.parametrize("maker", MAKERS)
def test_other_layouts_are_refused_and_none_is_none(maker: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"{maker}\(\) is not implemented for the layout rgrad.sparse_coo"):
        MAKERS[maker](layout=rgrad.sparse_coo)
    plain: Any = {"layout": rgrad.strided, "pin_memory": False, "requires_grad": None, "device": "cpu"}
    assert MAKERS[maker](**plain).layout == rgrad.strided
    assert not MAKERS[maker](layout=None, pin_memory=None, dtype=None, device=None).requires_grad


def test_a_memory_format_is_only_for_those_that_have_one() -> None:
    for maker in ("zeros", "arange", "new_full"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'memory_format'"):
            MAKERS[maker](memory_format=rgrad.contiguous_format)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        rgrad.empty(2, memory_format=rgrad.preserve_format)
    image = rgrad.ones(1, 2, 3, 4).type(rgrad.float64, memory_format=rgrad.channels_last)
    assert image.dtype == rgrad.float64
    assert image.is_contiguous(memory_format=rgrad.channels_last)


def test_flags_and_sizes_are_not_given_twice_or_as_numbers() -> None:
    for flag in ("copy", "non_blocking"):
        with pytest.raises(TypeError, match=rf"to\(\): argument '{flag}' must be bool, not int"):
            rgrad.ones(2).to(rgrad.float64, **{flag: 1})
    with pytest.raises(TypeError, match="multiple values for argument 'size'"):
        rgrad.zeros(2, size=(3,))


def test_items_with_labels_are_no_sequence() -> None:
    class Labelled:
        """As a series of pandas with an index of its own."""

        def __len__(self) -> int:
            return 2

        def __getitem__(self, label: Any) -> float:
            return {"a": 1.0, "b": 2.0}[label]

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Labelled'"):
        rgrad.tensor(Labelled())
