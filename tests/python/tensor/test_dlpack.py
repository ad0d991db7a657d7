"""DLPack both ways: values, memory, lifetimes, what cannot be shared."""

import ctypes
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
VERSIONS = [None, (0, 8), (1, 0), (1, 3), (9, 9)]
get_name = ctypes.pythonapi.PyCapsule_GetName
get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Other:
    """An array of another library, which says `capsule` is its own, and may know fewer arguments."""

    def __init__(self, array: Any, *unknown: str) -> None:
        self.array, self.unknown, self.asked = array, unknown, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **wants: Any) -> Any:
        self.asked.append(sorted(wants))
        for name in self.unknown:
            if name in wants:
                raise TypeError(f"unexpected keyword argument {name}")
        return self.array.__dlpack__(**wants)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "complex32"])
def test_there_and_back(dtype: str, version: tuple[int, int] | None) -> None:
    x = rgrad.arange(12).reshape(3, 4).to(getattr(rgrad, dtype))
    for view in (x, x.t(), x[1:, ::2], x[0], x[2, 3], x[:0], x.expand(2, 3, 4)):
        back = from_dlpack(view.__dlpack__(max_version=version))
        assert back.dtype == view.dtype
        assert back.shape == view.shape
        assert rgrad.equal(back, view)
        if view.numel() > 1:
            assert back.data_ptr() == view.data_ptr()
            assert [s for s, n in zip(back.stride(), back.shape, strict=True) if n > 1] == [
                s for s, n in zip(view.stride(), view.shape, strict=True) if n > 1
            ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_and_writes_the_same_memory(dtype: str) -> None:
    x = rgrad.ones(2, 3, dtype=getattr(rgrad, dtype)).t()
    array = np.from_dlpack(x)
    assert array.dtype == dtype
    assert array.strides == x.numpy().strides
    x[1, 1] = 0
    assert array[1, 1] == 0
    back = rgrad.from_dlpack(np.zeros((2, 3), dtype)[:, 1:])
    assert back.dtype == x.dtype
    assert back.stride() == (3, 1)


def test_writes_are_seen_from_both_sides() -> None:
    array = np.zeros(4)
    x = rgrad.from_dlpack(array)
    x[1] = 5
    array[2] = 7
    assert x.tolist() == [0, 5, 7, 0] == array.tolist()


def test_what_is_pending_is_computed_before() -> None:
    x = rgrad.ones(400, 400)
    y = x * 2 + 1
    assert np.from_dlpack(y).sum() == 3 * 400 * 400
    array = np.from_dlpack(y)
    y.add_(1)
    assert array[0, 0] == 4


def test_memory_lives_as_long_as_someone_uses_it() -> None:
    before = rgrad.memory.allocated("cpu")
    x = rgrad.ones(1000, 1000)
    array = np.from_dlpack(x)
    del x
    gc.collect()
    assert rgrad.memory.allocated("cpu") - before >= 4_000_000
    assert array[999, 999] == 1
    del array
    gc.collect()
    assert rgrad.memory.allocated("cpu") - before < 4_000_000


def test_a_foreign_array_lives_as_long_as_its_tensors() -> None:
    class Mine(np.ndarray):
        pass

    array = np.ones(1000).view(Mine)
    end = weakref.ref(array)
    x = rgrad.from_dlpack(array)
    view = x[10:20]
    del array, x
    gc.collect()
    assert end() is not None
    assert view.sum() == 10
    del view
    gc.collect()
    assert end() is None


def test_a_foreign_array_may_end_on_another_thread() -> None:
    held = [rgrad.from_dlpack(np.ones(1000)) for _ in range(10)]
    made = [np.from_dlpack(rgrad.ones(1000)) for _ in range(10)]
    thread = threading.Thread(target=lambda: (held.clear(), made.clear()))
    thread.start()
    thread.join()
    assert not held
    assert not made


def test_a_capsule_that_nobody_takes_frees_its_memory() -> None:
    before = rgrad.memory.allocated("cpu")
    capsules = [to_dlpack(rgrad.ones(1000, 1000)), rgrad.ones(1000, 1000).__dlpack__(max_version=(1, 0))]
    assert rgrad.memory.allocated("cpu") - before >= 8_000_000
    assert [get_name(c) for c in capsules] == [b"dltensor", b"dltensor_versioned"]
    del capsules
    gc.collect()
    assert rgrad.memory.allocated("cpu") - before < 4_000_000


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_is_taken_once(version: tuple[int, int] | None) -> None:
    capsule = rgrad.ones(3).__dlpack__(max_version=version)
    assert rgrad.from_dlpack(capsule).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="capsules can be consumed only once"):
        rgrad.from_dlpack(capsule)


@pytest.mark.parametrize(
    ("unknown", "copies"),
    [
        ((), True),
        (("max_version",), True),
        (("max_version", "copy"), True),
        (("max_version", "copy", "dl_device"), True),
    ],
)
def test_libraries_that_know_fewer_arguments(unknown: tuple[str, ...], copies: bool) -> None:
    array = np.ones(3)
    x = rgrad.from_dlpack(Other(array, *unknown), copy=copies)
    array[0] = 2
    assert x[0] == 1
    assert x.tolist() == [1, 1, 1]
    y = rgrad.from_dlpack(Other(array, *unknown))
    array[0] = 3
    assert y[0] == 3


def test_an_error_of_the_library_itself_is_told() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        rgrad.from_dlpack(Broken())


class Broken(Other):
    def __init__(self) -> None:
        super().__init__(None)

    def __dlpack__(self, **wants: Any) -> Any:
        raise TypeError("unexpected keyword argument at all")


def test_read_only_memory_is_not_written() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        # It knows no capsules that say so.
        with pytest.raises(BufferError, match="readonly"):
            rgrad.from_dlpack(array)
        return
    x = rgrad.from_dlpack(array)
    assert x.sum() == 3
    with pytest.raises(RuntimeError, match="not writable|read-only|cannot be written|refuses"):
        x.add_(1)
    assert array.tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="knows version 1.0"):
        x.__dlpack__()
    again = np.from_dlpack(x)
    assert not again.flags.writeable


def test_copies() -> None:
    x = rgrad.ones(3)
    copy = from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    copy[0] = 5
    assert x.tolist() == [1, 1, 1]
    assert rgrad.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    assert rgrad.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    assert rgrad.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


def test_devices() -> None:
    kind, number = rgrad.ones(2).__dlpack_device__()
    assert (kind, number) == (DLDeviceType.kDLCPU, 0)
    assert isinstance(kind, DLDeviceType)
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        rgrad.ones(2, device="meta").__dlpack_device__()
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        rgrad.ones(2, device="meta").__dlpack__()
    for bad in ((2, 0), (15, 0)):
        with pytest.raises(BufferError, match="cannot move a tensor from cpu"):
            rgrad.ones(2).__dlpack__(dl_device=bad)


@pytest.mark.wgpu
def test_wgpu_is_copied_to_the_host() -> None:
    x = rgrad.arange(6.0, device="wgpu").reshape(2, 3)
    assert x.__dlpack_device__() == (DLDeviceType.kDLWebGPU, 0)
    with pytest.raises(BufferError, match="has no address"):
        x.__dlpack__()
    assert from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == x.tolist()
    with pytest.raises(ValueError, match="without copying"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert rgrad.from_dlpack(x).device.type == "wgpu"
    assert rgrad.from_dlpack(x, device="cpu").tolist() == x.tolist()
    assert rgrad.from_dlpack(np.ones(3, np.float32), device="wgpu").sum() == 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: rgrad.ones(2, requires_grad=True).__dlpack__(), BufferError, "require gradient, use tensor.detach"),
        (lambda: rgrad.ones(2).__dlpack__(stream=3), AssertionError, "stream should be None on cpu"),
        (lambda: rgrad.ones(2).__dlpack__(stream="a"), TypeError, "stream must be"),
        (lambda: rgrad.ones(2).__dlpack__(dl_device=3), TypeError, "dl_device must be a pair"),
        (lambda: rgrad.from_dlpack(3), TypeError, "method __dlpack__ or a capsule, got int"),
        (lambda: rgrad.from_dlpack([1.0]), TypeError, "got list"),
        (lambda: rgrad.from_dlpack(to_dlpack(rgrad.ones(2)), copy=True), AssertionError, "not supported when"),
        (lambda: rgrad.from_dlpack(rgrad.ones(2), device="wgpu", copy=False), ValueError, "without copying"),
        (lambda: rgrad._C._from_dlpack(3), RuntimeError, "invalid capsule: got 3"),
        (lambda: rgrad.from_dlpack(np.arange(4.0)[::-1]), RuntimeError, "negative strides"),
    ],
)
def test_bad_input(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


# ---- capsules by hand ------------------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
KEPT: list[Any] = []


def by_hand(shape: tuple[int, ...] = (2,), strides: tuple[int, ...] | None = None, **fields: Any) -> Any:
    """A capsule over four float64, or what is said."""
    memory = (ctypes.c_double * 4)(1, 2, 3, 4)
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
    version = fields.pop("version", None)
    given = {
        "data": ctypes.addressof(memory),
        "device": 1,
        "rank": len(shape),
        "code": 2,
        "bits": 64,
        "lanes": 1,
    } | fields
    tensor = DLTensor(shape=sizes, strides=steps, **given)
    managed = Managed(tensor=tensor) if version is None else Versioned(*version, tensor=tensor)
    KEPT.append((memory, sizes, steps, managed))
    name = b"dltensor" if version is None else b"dltensor_versioned"
    return new_capsule(ctypes.addressof(managed), name, None)


def test_capsules_without_strides_and_with_an_offset() -> None:
    assert rgrad.from_dlpack(by_hand((2, 2))).tolist() == [[1, 2], [3, 4]]
    assert rgrad.from_dlpack(by_hand((2,), bytes=16)).tolist() == [3, 4]
    assert rgrad.from_dlpack(by_hand((), bytes=8)).item() == 2
    assert rgrad.from_dlpack(by_hand((1, 2), (-7, 1))).tolist() == [[1, 2]]
    assert rgrad.from_dlpack(by_hand((0, 2), data=None)).shape == (0, 2)
    assert rgrad.from_dlpack(by_hand((2,), (0,), version=(1, 9))).tolist() == [1, 1]
    assert rgrad.from_dlpack(by_hand((2,), device=3)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"device": 2}, "Unsupported device_type: 2"),
        ({"lanes": 4}, "4 lanes"),
        ({"bits": 128}, "no dtype for elements of 128 bits of DLPack's type 2 .float."),
        ({"code": 99}, "type 99 .unknown."),
        ({"shape": (-1,)}, "size is negative"),
        ({"shape": (2, 2), "strides": (2, -1)}, "negative strides"),
        ({"data": None}, "no memory"),
        ({"rank": -1}, "at most 64 dimensions, got -1"),
        ({"rank": 65}, "at most 64 dimensions, got 65"),
        ({"bytes": 4}, "not aligned"),
        ({"shape": (1 << 62, 1 << 62)}, "large|overflow|elements|bytes"),
        ({"shape": (2, 3), "strides": (1 << 62, 1 << 62)}, "large|overflow|stride|bytes"),
    ],
)
def test_bad_capsules(fields: dict[str, Any], text: str) -> None:
    with pytest.raises((RuntimeError, ValueError, MemoryError), match=text):
        rgrad.from_dlpack(by_hand(**fields))


def test_a_version_of_the_future() -> None:
    with pytest.raises(BufferError, match="DLPack 2.0"):
        rgrad.from_dlpack(by_hand(version=(2, 0)))


def test_a_tangent_of_a_transform_is_not_lost() -> None:
    x = rgrad.ones(2)
    for export in (lambda t: t.numpy(), np.asarray, rgrad.from_dlpack, np.from_dlpack):

        def through_memory(t: Any, export: Any = export) -> Any:
            return rgrad.as_tensor(export(t)) * 2

        with pytest.raises(RuntimeError, match=r"Cannot access data pointer of Tensor.*tangent"):
            rgrad.func.jvp(through_memory, (x,), (x,))

    def beside(t: Any) -> Any:
        # The values alone, and tensors of no input.
        return t * float(t.numpy(force=True).sum() + t.detach().numpy().sum() + rgrad.ones(1).numpy().sum())

    value, tangent = rgrad.func.jvp(beside, (x,), (x,))
    assert value.tolist() == tangent.tolist() == [5, 5]


def test_memory_made_in_inference_mode_is_shared_both_ways() -> None:
    with rgrad.inference_mode():
        inside = rgrad.ones(2)
        twin = rgrad.from_dlpack(inside)
        twin[0] = 5
    assert twin.is_inference()
    outside = rgrad.from_dlpack(inside)
    assert not outside.is_inference()
    outside[1] = 7
    array = np.from_dlpack(inside)
    # NumPy before 2.2 takes what it is given without a version for memory that may not be written.
    outside[0] += 1
    assert array.tolist() == [6, 7]
    assert inside.tolist() == twin.tolist() == outside.tolist() == [6, 7]
