"""Attributes that ask for kinds of tensors which there are not."""

from __future__ import annotations

import pytest

import rgrad
from rgrad._runtime.absent_kinds import ABSENT_KINDS


@pytest.mark.parametrize("name", ABSENT_KINDS)
def test_a_tensor_is_none_of_the_absent_kinds(name: str) -> None:
    for tensor in (rgrad.ones(2), rgrad.nn.Parameter(rgrad.ones(2)), rgrad.empty(2, device="meta")):
        assert getattr(tensor, name) is False
    with pytest.raises(AttributeError):
        setattr(rgrad.ones(2), name, True)
