"""What rgrad does not do as PyTorch yet: tests that are expected to fail, strictly, each with its reason.

A key is a test's name with the beginning of its parameters; when the behaviour is mended, the entry must go.
"""

from __future__ import annotations

import pytest

KNOWN: dict[str, str] = {
    # tests/python
    "test_promotion_of_one[T.square(x)]": "square of bool tensors is not implemented",
    "test_promotion_of_one[~x]": "~ of a float: NotImplementedError, not TypeError",
    "test_promotion_in_place[pow_]": "bool.pow_(True) is not implemented",
    "test_unflatten_of_a_scalar_is_refused": "unflatten takes a 0-d tensor for one of one element",
    "test_lerp_of_two_dtypes_is_refused": "lerp promotes",
    # tests/oracle
    "test_other_dtypes[square-": "square of bool tensors is not implemented",
    "test_values_dtypes_strides[ravel-2x3x4S": "ravel of a strided tensor is a view",
    "test_views_and_copies[ravel]": "ravel of a strided tensor is a view",
    "test_names_of_nodes[rpow_scalar]": "number ** tensor: node of tensor ** tensor",
    "test_names_of_nodes[c**x]": "number ** tensor: node of tensor ** tensor",
    "test_errors_have_torchs_type[index-index_add]": "index_add out of range: RuntimeError, not IndexError",
    "test_errors_have_torchs_type[dtype-invert_floats]": "~ of a float: NotImplementedError, not TypeError",
    "test_in_place_operators[bool-**=]": "bool **= True is not implemented",
}
# Of the rows of the table above only the tests whose parameters end so.
ENDS = {"test_other_dtypes[square-": "-bool]"}


def mark(items: list[pytest.Item]) -> None:
    """Marks the collected tests that KNOWN names."""
    for item in items:
        for key, reason in KNOWN.items():
            if item.name.startswith(key) and item.name.endswith(ENDS.get(key, "")):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
