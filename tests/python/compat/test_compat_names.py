"""Names of PyTorch that libraries import: what they compute, and what they refuse."""

from __future__ import annotations

import inspect
import pickle
import typing
from typing import Any

import pytest

import rgrad
from rgrad import compat


def pair() -> list[Any]:
    return [rgrad.tensor([1.0, 4.0]), rgrad.tensor([[9.0]])]


@pytest.mark.parametrize("name", ["sqrt", "neg", "exp", "reciprocal", "sigmoid", "sign", "log1p", "trunc"])
def test_foreach_of_one_list(name: str) -> None:
    expected = [getattr(rgrad, name)(x) for x in pair()]
    found = getattr(rgrad, f"_foreach_{name}")(pair())
    assert isinstance(found, tuple)
    assert all(rgrad.equal(a, b) for a, b in zip(found, expected, strict=True))
    given = pair()
    assert getattr(rgrad, f"_foreach_{name}_")(given) is given
    assert all(rgrad.equal(a, b) for a, b in zip(given, expected, strict=True))


def values(tensors: Any) -> list[Any]:
    return [x.tolist() for x in tensors]


def test_foreach_of_two_lists_and_numbers() -> None:
    assert values(rgrad._foreach_add(pair(), 1)) == [[2, 5], [[10]]]
    assert values(rgrad._foreach_add(pair(), [1, 2])) == [[2, 5], [[11]]]
    assert values(rgrad._foreach_add(pair(), pair(), alpha=2)) == [[3, 12], [[27]]]
    assert values(rgrad._foreach_mul(pair(), rgrad.tensor(3.0))) == [[3, 12], [[27]]]
    assert values(rgrad._foreach_maximum(pair(), 5.0)) == [[5, 5], [[9]]]
    assert values(rgrad._foreach_clamp_max(pair(), [rgrad.tensor(2.0), rgrad.tensor(3.0)])) == [[1, 2], [[3]]]
    assert values(rgrad._foreach_pow(2.0, [rgrad.tensor([3.0])])) == [[8]]
    assert values(rgrad._foreach_addcmul(pair(), pair(), pair(), value=2)) == [[3, 36], [[171]]]
    assert values(rgrad._foreach_addcdiv(pair(), pair(), pair(), [1, 2])) == [[2, 5], [[11]]]
    assert values(rgrad._foreach_lerp(pair(), pair(), 0.5)) == values(pair())
    assert values(rgrad._foreach_norm([rgrad.tensor([3.0, 4.0])])) == [5]
    assert values(rgrad._foreach_max(pair())) == [4, 9]
    assert values(rgrad._foreach_copy_(rgrad._foreach_zero_(pair()), pair())) == values(pair())
    assert values(rgrad._foreach_zero_(pair())) == [[0, 0], [[0]]]


def test_foreach_of_bad_lists() -> None:
    with pytest.raises(RuntimeError, match="at least one tensor"):
        rgrad._foreach_add([], 1)
    given = pair()
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        rgrad._foreach_mul_(given, [rgrad.ones(1)])
    with pytest.raises(RuntimeError):
        rgrad._foreach_add_(given, [rgrad.ones(2), rgrad.ones(2, 3)])
    assert values(given) == values(pair())
    with pytest.raises(TypeError, match="tuple of Tensors"):
        rgrad._foreach_neg(rgrad.ones(2))


def test_layouts() -> None:
    assert rgrad.ones(2).layout is rgrad.strided
    assert rgrad.strided != rgrad.sparse_coo
    assert isinstance(rgrad.strided, rgrad.layout)
    assert pickle.loads(pickle.dumps(rgrad.sparse_csr)) is rgrad.sparse_csr
    assert repr(rgrad.strided) == "rgrad.strided"
    with pytest.raises(TypeError, match="layout"):
        rgrad.layout()
    with compat.as_torch():
        assert str(rgrad.strided) == "torch.strided"
    assert str(rgrad.strided) == "rgrad.strided"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_checks(name: str, kind: type[Exception]) -> None:
    check = getattr(rgrad, name)
    check(True)
    with pytest.raises(kind, match="Expected cond to be True"):
        check(False)
    with pytest.raises(kind, match="because"):
        check(False, lambda: "because")
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(1)


def test_checks_of_sizes_and_tensors() -> None:
    rgrad._check_is_size(3, max=3)
    for bad in ({"i": -1}, {"i": 4, "max": 3}):
        with pytest.raises(RuntimeError):
            rgrad._check_is_size(**bad)
    rgrad._check_tensor_all(rgrad.tensor([True, True]))
    with pytest.raises(RuntimeError):
        rgrad._check_tensor_all(rgrad.tensor([True, False]))
    with pytest.raises(TypeError):
        rgrad._check_tensor_all(rgrad.tensor([1.0]))
    with pytest.raises(AssertionError, match="said"):
        rgrad._assert(rgrad.tensor(0), "said")
    rgrad._assert_async(rgrad.tensor(1))
    with pytest.raises(RuntimeError, match="said"):
        rgrad._assert_async(rgrad.tensor(0), "said")


def test_many_tensors_as_one() -> None:
    parts = [rgrad.arange(6.0).view(2, 3), rgrad.tensor(7.0), rgrad.ones(2)]
    flat = rgrad._utils._flatten_dense_tensors(parts)
    assert flat.shape == (9,)
    back = rgrad._utils._unflatten_dense_tensors(flat, parts)
    assert all(rgrad.equal(a, b) for a, b in zip(back, parts, strict=True))
    groups = list(rgrad._utils._take_tensors([*parts, rgrad.ones(2, dtype=rgrad.int64)], 16))
    assert [len(group) for group in groups] == [1, 2, 1]
    assert rgrad._utils._reorder_tensors_as(parts, parts) == tuple(parts)
    assert rgrad._utils._element_size(rgrad.float64) == 8
    assert rgrad._utils._get_device_index("wgpu:1") == 1
    assert rgrad._utils._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="specified index"):
        rgrad._utils._get_device_index("cpu")


def test_groups_by_device_and_dtype() -> None:
    from rgrad.utils._foreach_utils import _group_tensors_by_device_and_dtype

    a, b, c = rgrad.ones(1), rgrad.ones(1, dtype=rgrad.float64), rgrad.zeros(2)
    found = _group_tensors_by_device_and_dtype([[a, b, c], [None, b, c], []], with_indices=True)
    (lists, places), (other, elsewhere) = found.values()
    assert places == [0, 2]
    assert elsewhere == [1]
    assert lists[0][1] is c
    assert lists[1][0] is None
    assert lists[2] == []
    assert other[0][0] is b


def test_keys_of_autocast() -> None:
    native: Any = rgrad._C
    both = native.DispatchKeySet(native.DispatchKey.AutocastCPU) | native.DispatchKeySet(
        native.DispatchKey.AutocastCUDA
    )
    assert both.has(native.DispatchKey.AutocastCUDA)
    assert both - both == native.DispatchKeySet()
    x = rgrad.ones(2, 2)
    with rgrad.autocast("cpu"):
        with native._ExcludeDispatchKeyGuard(both):
            assert (x @ x).dtype == rgrad.float32
        assert (x @ x).dtype == rgrad.bfloat16


def test_what_is_refused() -> None:
    from rgrad.distributed.fsdp import FullyShardedDataParallel

    with pytest.raises(NotImplementedError, match="FullyShardedDataParallel divides work among processes"):
        FullyShardedDataParallel()
    assert not isinstance(rgrad.ones(1), FullyShardedDataParallel)
    for name in ("prepare", "convert", "quantize_dynamic", "get_default_qconfig", "fuse_modules"):
        with pytest.raises(NotImplementedError, match=f"{name}: rgrad has no quantised tensors"):
            getattr(rgrad.ao.quantization, name)(rgrad.nn.ReLU())
    with pytest.raises(NotImplementedError, match="symbolic"):
        rgrad.onnx.symbolic_opset11.unsqueeze(None, None, 0)


def test_stubs_of_quantisation_give_their_input_back() -> None:
    x = rgrad.ones(2)
    assert rgrad.ao.quantization.QuantWrapper(rgrad.nn.Identity())(x) is x


def test_what_is_asked_of_the_build() -> None:
    assert rgrad._core.__version__ in rgrad.__config__.show()
    assert f"get_num_threads() : {rgrad.get_num_threads()}" in rgrad.__config__.parallel_info()
    assert rgrad._C._get_tracing_state() is None
    assert not rgrad._C._are_functorch_transforms_active()
    seen = []
    rgrad.func.grad(lambda x: (seen.append(rgrad._C._are_functorch_transforms_active()), x)[1])(rgrad.tensor(1.0))
    assert seen == [True]


def test_modules_are_where_pytorch_has_them() -> None:
    with compat.as_torch():
        from torch._vmap_internals import vmap
        from torch.distributions.categorical import Categorical
        from torch.distributions.normal import Normal
        from torch.hub import HASH_REGEX, _get_torch_home
        from torch.nn.parallel.scatter_gather import gather
        from torch.types import Number
    with pytest.warns(FutureWarning, match="Please use `rgrad.vmap`"):
        assert vmap(lambda x: x.sum())(rgrad.ones(2, 3)).tolist() == [3, 3]
    assert (Normal, Categorical) == (rgrad.distributions.Normal, rgrad.distributions.Categorical)
    assert gather is rgrad.nn.parallel.gather
    assert isinstance(2.0, Number)
    assert rgrad.hub.get_dir().startswith(_get_torch_home())
    assert HASH_REGEX.search("resnet-0676ba61.pth").group(1) == "0676ba61"  # type: ignore[union-attr]


def test_dispatch_by_a_truth_value() -> None:
    chosen = rgrad._jit_internal.boolean_dispatch(
        "both", 1, False, lambda x, both: 2, lambda x, both=False: 1, "m", "f"
    )
    assert (chosen(0), chosen(0, True), chosen(0, both=True), chosen(0, both=False)) == (1, 2, 2, 1)


def test_types_of_torchscript_are_typings() -> None:
    private = rgrad._jit_internal
    for name in ("Dict", "List", "Optional", "Tuple", "Union"):
        assert getattr(private, name) is getattr(typing, name)
    assert private.BroadcastingList2[int] == private.List[int]
    for decorator in (private._overload, private._overload_method, private._copy_to_script_wrapper):
        assert decorator(len) is len


def test_private_functions_of_attention() -> None:
    F = rgrad.nn.functional
    hidden = F._canonical_mask(rgrad.tensor([True, False]), "mask", None, "", rgrad.float64)
    assert hidden.tolist() == [-float("inf"), 0.0] and hidden.dtype == rgrad.float64  # noqa: PT018
    numbers = rgrad.ones(2)
    assert F._canonical_mask(numbers, "mask", rgrad.float32, "other", rgrad.float64) is numbers
    assert F._canonical_mask(None, "mask", None, "", rgrad.float32) is None
    with pytest.warns(UserWarning, match="Support for mismatched mask and other is deprecated"):
        F._canonical_mask(
            numbers, mask_name="mask", other_type=rgrad.bool, other_name="other", target_type=rgrad.float32
        )
    with pytest.raises(AssertionError, match="only bool and floating types of mask"):
        F._canonical_mask(rgrad.tensor([1]), "mask", None, "", rgrad.float32)
    assert (F._none_or_dtype(numbers), F._none_or_dtype(None)) == (rgrad.float32, None)

    w, b = rgrad.linspace(-1, 1, 12).view(6, 2), rgrad.linspace(0, 1, 6)
    x, y = rgrad.tensor([[1.0, 2.0]]), rgrad.tensor([[3.0, -1.0]])
    apart = F._in_projection(x, y, y, *w.chunk(3), *b.chunk(3))
    for one, two in zip(F._in_projection_packed(x, y, y, w, b), apart, strict=True):
        rgrad.testing.assert_close(one, two)
    rgrad.testing.assert_close(apart[1], F.linear(y, w[2:4], b[2:4]))
    with pytest.raises(AssertionError, match="expecting"):
        F._in_projection(x, y, y, w, w[:2], w[:2])
    assert F._mha_shape_check(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0), None, None, 1)
    assert not F._mha_shape_check(x, x, x, None, None, 1)


def test_private_functions_of_norms_and_softmax() -> None:
    F = rgrad.nn.functional
    F._verify_batch_size([1, 3, 2])
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F._verify_batch_size([1, 3])
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert [F._get_softmax_dim("softmax", rank, 1) for rank in range(5)] == [0, 0, 1, 0, 1]


def test_functional_has_the_questions_about_overrides() -> None:
    F = rgrad.nn.functional
    assert F.has_torch_function is rgrad.overrides.has_torch_function
    assert F.handle_torch_function is rgrad.overrides.handle_torch_function
    assert not F.has_torch_function((rgrad.ones(1),))
    assert {"has_torch_function_unary", "has_torch_function_variadic", "_in_projection_packed"} <= set(dir(F))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_function'"):
        F.no_such_function


def test_nodes_of_trees() -> None:
    from rgrad.utils import _pytree as trees

    kind = trees._get_node_type([1])
    assert trees.SUPPORTED_NODES[kind].flatten_fn([1, 2])[0] == [1, 2]
    assert trees.LeafSpec() == trees.tree_structure(3)
    assert trees._get_node_type(3) not in trees.SUPPORTED_NODES


def test_the_arguments_of_to_as_libraries_read_them() -> None:
    parse = rgrad._C._nn._parse_to
    assert parse("cpu") == (rgrad.device("cpu"), None, False, None)
    assert parse(rgrad.float64, True) == (None, rgrad.float64, True, None)
    assert parse(rgrad.ones(1), non_blocking=True) == (rgrad.device("cpu"), rgrad.float32, True, None)
    assert parse(memory_format=rgrad.channels_last)[3] == rgrad.channels_last
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        parse(3.5)
    assert rgrad._C._nn.gelu(rgrad.zeros(1)).item() == 0


def test_texts_of_tensors_as_libraries_make_them() -> None:
    from rgrad._tensor_str import _add_suffixes, _str_intern, _tensor_str

    x = rgrad.arange(40.0).reshape(2, 20)
    assert repr(x) == _add_suffixes("tensor(" + _tensor_str(x, 7), [], 7)
    assert _tensor_str(rgrad.ones(2), indent=0) == "[1., 1.]"
    assert _str_intern(rgrad.ones(2).double(), tensor_contents="...") == f"tensor(..., dtype={rgrad.float64})"
    assert _add_suffixes("tensor([1]", ["a=1"], 7, force_newline=True) == "tensor([1],\n       a=1)"


def test_the_signature_of_a_module_is_that_of_any_call() -> None:
    assert str(inspect.signature(rgrad.nn.Linear(1, 1))) == "(*args, **kwargs)"
    assert "in_features" in str(inspect.signature(rgrad.nn.Linear))
    from rgrad.distributed import rpc

    assert not rpc.is_available()


def test_dtypes_that_no_tensor_has_are_names() -> None:
    kind = rgrad.float8_e4m3fn
    assert repr(kind) == "rgrad.float8_e4m3fn"
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert (kind.itemsize, kind.is_floating_point, kind.is_complex) == (1, True, False)
    assert rgrad.ones(1).dtype != kind
    limits = rgrad.finfo(kind)
    assert (limits.bits, limits.max, limits.min, limits.eps, limits.tiny) == (8, 448.0, -448.0, 0.125, 2.0**-6)
    for make in (lambda: rgrad.ones(2, dtype=kind), lambda: rgrad.ones(2).to(kind)):
        with pytest.raises(TypeError, match="float8_e4m3fn"):
            make()
    with pytest.raises(TypeError, match="no tensor has it"):
        type(rgrad.qint8)()


def test_paths_of_trees() -> None:
    from collections import namedtuple

    from rgrad.utils import _pytree as trees

    Pair = namedtuple("Pair", "first second")
    tree = {"a": [1, (2,)], "b": Pair(3, None)}
    found, spec = trees.tree_flatten_with_path(tree)
    texts = [trees.keystr(path) for path, _ in found]
    assert texts == ["['a'][0]", "['a'][1][0]", "['b'].first", "['b'].second"]
    assert spec == trees.tree_structure(tree)
    for path, leaf in found:
        at: Any = tree
        for key in path:
            at = key.get(at)
        assert at is leaf
    assert trees.tree_map_with_path(lambda path, x: len(path), tree) == {"a": [2, (3,)], "b": Pair(2, 2)}

    class Box:
        def __init__(self, x: Any) -> None:
            self.x = x

    trees.register_pytree_node(Box, lambda box: ([box.x], None), lambda x, _: Box(*x), serialized_type_name="Box")
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        trees.tree_flatten_with_path(Box(1))
    del trees.SUPPORTED_NODES[Box]


def test_a_tensor_is_indexed_by_numbers_of_a_batch() -> None:
    from rgrad._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table, at = rgrad.arange(12).reshape(3, 4), rgrad.arange(3)
    with TransformGetItemToIndex():
        assert rgrad.vmap(lambda i, j: table[i, j])(at, at).tolist() == [0, 5, 10]


def test_nothing_is_traced_with_tensors() -> None:
    from rgrad._subclasses.fake_tensor import FakeTensor, is_fake
    from rgrad.fx.experimental.proxy_tensor import get_proxy_mode

    assert get_proxy_mode() is None
    for x in (rgrad.ones(2), rgrad.ones(2, device="meta"), 1, None):
        assert not is_fake(x)
    assert is_fake(rgrad.ones(2).as_subclass(FakeTensor))


def test_annotations_of_modules_can_be_read() -> None:
    for kind in rgrad.nn.Module.__mro__:
        typing.get_type_hints(kind)
