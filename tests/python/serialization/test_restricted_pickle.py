"""Pickles of files that are not trusted: they write to what they have made alone, and cost what their length allows."""

from __future__ import annotations

import collections
import enum
import io
import json
import pickle
import zipfile
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

import rgrad
from container_writer import container
from rgrad import nn, serialization
from rgrad._files import safe_globals
from rgrad._files.archive import StoredArchive
from rgrad._files.restricted_pickle import Malformed, RestrictedUnpickler


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]


class Slots:
    __slots__ = ("a", "b")


class Both(Slots):
    pass


class Guarded:
    def __setstate__(self, state: Any) -> None:
        self.given = state


class Colour(enum.Enum):
    RED = 1


class Bits(enum.Flag):
    ONE = 1
    TWO = 2


class Single:
    one: ClassVar[Any] = None

    def __new__(cls) -> Single:
        if cls.one is None:
            cls.one = object.__new__(cls)
        found: Single = cls.one
        return found


class Alike:
    """Objects that have all their attributes together."""

    together: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.__dict__ = self.together


class Made:
    """A class with a ``__new__`` of its own that gives new objects."""

    def __new__(cls) -> Made:
        return object.__new__(cls)


class List(list[Any]):
    pass


class Dict(dict[Any, Any]):
    pass


class Attributes(dict[str, Any]):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.__dict__ = self


class Pair(NamedTuple):
    a: Any
    b: Any


class Wrong(Exception):
    pass


def shared_list() -> list[Any]:
    return KEPT


def new_list() -> list[Any]:
    return []


KEPT: list[Any] = []
CLASSES = [Plain, Slots, Both, Guarded, Colour, Bits, Single, Alike, Made, List, Dict, Attributes, Pair, Wrong]
ALLOWED = [*CLASSES, shared_list, new_list, collections.deque]


@pytest.fixture(autouse=True)
def _allowed() -> Iterator[None]:
    with serialization.safe_globals(ALLOWED):
        yield
    KEPT.clear()


def read(data: bytes) -> Any:
    def refuse(pid: Any) -> Any:
        raise AssertionError(pid)

    return RestrictedUnpickler(data, safe_globals.allowed(), refuse).load()


def through(obj: Any, protocol: int = 4) -> Any:
    return read(pickle.dumps(obj, protocol))


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize(
    "value",
    [
        *(1, -1, 2**40, -(2**2000), 1.5, None, True, False, "é\ud800", "x" * 300, b"x" * 300, bytearray(b"q"), ()),
        *((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [1] * 3000, {i: str(i) for i in range(3000)}, {1, 2}, set()),
        frozenset([1, (2, frozenset([3]))]),
        collections.OrderedDict(a=1, b=[2]),
        collections.Counter("aab"),
        complex(1, -2.5),
        collections.deque([1, 2], 5),
        Pair(1, [2]),
        Plain(a=1, b=Plain()),
        Colour.RED,
        Bits.ONE | Bits.TWO,
        rgrad.Size([2, 3]),
        rgrad.device("cpu"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_goes_in_comes_out(value: Any, protocol: int) -> None:
    found = through(value, protocol)
    assert found == value
    assert type(found) is type(value)


def test_objects_with_items_and_state() -> None:
    items, pairs, slots, both = List([1, 2]), Dict(a=1), Slots(), Both()
    items.x, pairs.y, slots.a, both.b, both.c = 3, 4, 5, 6, 7  # type: ignore[attr-defined]
    found = through([items, pairs, slots, both, Guarded(), Made(), Wrong("what"), Attributes({"a": 1})])
    assert (found[0], found[0].x) == ([1, 2], 3)
    assert (found[1], found[1].y) == ({"a": 1}, 4)
    assert (found[2].a, found[3].b, found[3].c) == (5, 6, 7)
    assert not hasattr(found[2], "b")
    assert [type(value) for value in found[4:]] == [Guarded, Made, Wrong, Attributes]
    assert found[6].args == ("what",)


def test_objects_that_occur_again_are_one_object() -> None:
    loop: list[Any] = []
    loop.append(loop)
    pair: Any = ([],)
    pair[0].append(pair)
    one = Plain()
    one.me = one  # type: ignore[attr-defined]
    found = through([loop, pair, one, one])
    assert found[0] is found[0][0]
    assert found[1] is found[1][0][0]
    assert found[2] is found[2].me is found[3]


# ------------------------------------------------------------------------------------- what must not be written to


def named(what: Any) -> bytes:
    parts = [text.encode() for text in (what.__module__, what.__qualname__)]
    return b"".join(b"\x8c" + bytes([len(part)]) + part for part in parts) + b"\x93"


def pickled(*parts: bytes) -> bytes:
    return b"\x80\x04" + b"".join(parts) + b"."


# {"a": 1}
STATE = b"}\x8c\x01aK\x01s"
# No arguments; the argument 1.
NONE, ONE = b")", b"K\x01\x85"


@pytest.mark.parametrize(
    "steps",
    {
        "class": [named(Plain), STATE, b"b"],
        "default class": [named(collections.OrderedDict), STATE, b"b"],
        "function": [named(shared_list), STATE, b"b"],
        "member": [named(Colour), ONE, b"R", STATE, b"b"],
        "new member": [named(Colour), ONE, b"\x81", STATE, b"b"],
        "flag": [named(Bits), b"K\x03\x85R", STATE, b"b"],
        "single": [named(Single), NONE, b"R", STATE, b"b"],
        "new single": [named(Single), NONE, b"\x81", STATE, b"b"],
        "single with names": [named(Single), NONE, b"}\x92", STATE, b"b"],
        "attributes of all": [named(Alike), NONE, b"R", STATE, b"b"],
        "append": [named(shared_list), NONE, b"RK\x01a"],
        "appends": [named(shared_list), NONE, b"R(K\x01e"],
        "item": [named(shared_list), NONE, b"RK\x00K\x01s"],
        "items": [named(Plain), b"(K\x00K\x01u"],
        "add": [named(shared_list), NONE, b"R(K\x01\x90"],
        "from the memo": [named(Single), NONE, b"R\x940h\x00", STATE, b"b"],
        "a tuple": [b"K\x01K\x02\x86", STATE, b"b"],
    }.items(),
    ids=lambda steps: steps[0],
)
def test_what_others_have_is_not_written_to(steps: tuple[str, list[bytes]]) -> None:
    Single()
    data = pickled(*steps[1])
    before = [dict(vars(kind)) for kind in ALLOWED if hasattr(kind, "__dict__")]
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed: the pickle "):
        read(data)
    assert [dict(vars(kind)) for kind in ALLOWED if hasattr(kind, "__dict__")] == before
    assert KEPT == []
    assert vars(Single()) == vars(shared_list) == Alike.together == {}
    assert not hasattr(Colour.RED, "a")


def test_what_a_function_makes_anew_is_written_to() -> None:
    assert read(pickled(named(new_list), NONE, b"RK\x01a")) == [1]
    assert vars(read(pickled(named(Made), NONE, b"R", STATE, b"b"))) == {"a": 1}


@pytest.mark.parametrize(
    "steps",
    {
        "slot of no class": [named(Plain), NONE, b"\x81N}\x8c\x09__class__", named(Made), b"s\x86b"],
        "state that is no dict": [named(Plain), NONE, b"\x81K\x01b"],
        "names that are no strings": [named(Plain), NONE, b"\x81}K\x01K\x01sb"],
        "a large bytearray": [named(bytearray), b"J\xff\xff\xff\x7f\x85R"],
        "a codec": [named(__import__("_codecs").encode), b"\x8c\x01a\x8c\x03hex\x86R"],
        "a counter of an iterable": [named(collections.Counter), b"]\x85R"],
        "a tensor": [named(rgrad.Tensor), b"J\xff\xff\xff\x7f\x85R"],
        "a new tensor": [named(rgrad.Tensor), b"J\xff\xff\xff\x7f\x85\x81"],
        "items of a storage": [b"ctorch.storage\nUntypedStorage\n)RK\x00K\x01s"],
        "many items of a storage": [b"ctorch.storage\nUntypedStorage\n)R(K\x00K\x01u"],
        "a size of no numbers": [named(rgrad.Size), b"N\x85\x85R"],
        "a device of no name": [named(rgrad.device), b"K\x01\x85R"],
        "an unknown device": [named(rgrad.device), b"\x8c\x02xy\x85R"],
        "a parameter of nothing": [named(nn.Parameter), b"K\x01\x85R"],
        "a key that has no hash": [b"}]K\x01s"],
        "a member that has no hash": [b"\x8f(]\x90"],
        "a key without a value": [b"}(K\x01u"],
        "arguments that are none": [named(Plain), b"]R"],
        "an extension": [b"\x82\x01"],
        "an old instance": [b"(i__main__\nPlain\n"],
        "another old instance": [b"(", named(Plain), b"o"],
        "an old id": [b"P0\n"],
        "no stack": [b"a"],
        "no mark": [b"t"],
        "no memo": [b"h\x07"],
        "two objects": [b"NN"],
        "a mark that is left": [b"N("],
        "a length": [b"\x8e" + b"\xff" * 7 + b"\x7f"],
        "a negative length": [b"\x8b\xff\xff\xff\xff"],
        "text that is none": [b"\x8c\x01\xff"],
        "names that are none": [b"K\x01K\x02\x93"],
        "a name without end": [b"cbuiltins"],
        "a later protocol": [b"\x80\x7f"],
    }.items(),
    ids=lambda steps: steps[0],
)
def test_what_save_does_not_write_is_damage(steps: tuple[str, list[bytes]]) -> None:
    with pytest.raises(Malformed):
        read(pickled(*steps[1]))


def test_what_is_made_is_not_called() -> None:
    for made in (b"}", named(Plain) + NONE + b"\x81", named(Plain) + NONE + b"R"):
        with pytest.raises(pickle.UnpicklingError, match="may call only classes and functions that are allowed"):
            read(pickled(made, b")R"))


def test_attributes_from_the_pickle_are_not_called() -> None:
    # `append` and `__setstate__` are those of the class, whatever the object has by these names.
    bytes_of = named(bytearray)
    found = read(pickled(named(List), NONE, b"\x81}\x8c\x06append", bytes_of, b"sbK\x05a"))
    assert found == [5]
    found = read(pickled(named(Plain), NONE, b"\x81}\x8c\x0c__setstate__", bytes_of, b"sb", STATE, b"b"))
    assert found.a == 1


def test_nested_tuples_end_in_an_error() -> None:
    deep = b")" + b"\x85" * 500
    value, depth = read(pickled(deep)), 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 500
    for count in (5000, 1_000_000):
        for nested in (b")" + b"\x85" * count, b"(" * count + b"K\x01" + b"\x91" * count):
            with pytest.raises(Malformed, match="nested more than 1000 deep"):
                read(pickled(nested))


@pytest.mark.parametrize(
    "key",
    [
        # Each is a tuple of the one before, twice.
        b"K\x01\x94" + b"".join(b"h" + bytes([i, 0x68, i]) + b"\x86\x94" for i in range(60)),
        # One large number, whose hash is computed anew each time.
        b"\x8b" + (1 << 20).to_bytes(4, "little") + b"\x01" * (1 << 20) + b"\x94",
    ],
    ids=["doubled", "large"],
)
def test_keys_do_not_take_longer_than_their_length_allows(key: bytes) -> None:
    last = 60 if len(key) < 1000 else 0
    again = b"h" + bytes([last]) + b"K\x01"
    with pytest.raises(Malformed, match="the same tuples occur again and again"):
        read(pickled(key, b"0}(", again * (20_000 if last == 0 else 1), b"u"))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", ["dict", "set", "frozenset"])
def test_keys_with_chosen_hashes_are_refused(kind: str, at_once: bool) -> None:
    # The hash of each is 0, and each new one is compared with all before it.
    keys = [number * (2**61 - 1) for number in range(1, 5000)]
    steps = [pickle.dumps(key, 4)[2:-1] for key in keys]
    steps = [step[9:] if step[:1] == b"\x95" else step for step in steps]
    if kind == "frozenset":
        data = pickled(b"(", *steps, b"\x91")
    else:
        value, start, one, many = (b"N", b"}", b"s", b"u") if kind == "dict" else (b"", b"\x8f", b"", b"\x90")
        steps = [step + value for step in steps]
        whole = [b"(", *steps, many] if at_once else [b"(" * (not one) + step + (one or many) for step in steps]
        data = pickled(start, *whole)
    with pytest.raises(Malformed, match="their hashes are the same"):
        read(data)
    # Some have the same by chance, and different dicts may have the same keys.
    some = dict.fromkeys(keys[:50])
    assert through([dict(some) for _ in range(50)]) == [some] * 50
    assert through([frozenset(some) for _ in range(50)]) == [frozenset(some)] * 50


# ---------------------------------------------------------------------------------------------------- in whole files


def file_of(*objects: bytes, obj: Any = None, tensors: int = 1) -> io.BytesIO:
    file = io.BytesIO()
    header = {
        "format": "rgrad",
        "version": 3,
        "tensors": [{"dtype": "float32", "shape": [1]}] * tensors,
        "views": list(range(tensors)),
        "obj": ["object", 0, "x"] if obj is None else obj,
    }
    with StoredArchive(file) as out:
        out.add("header.json", json.dumps(header).encode())
        for number in range(tensors):
            out.add(f"tensors/{number}", bytes(4))
        for number, data in enumerate(objects):
            out.add(f"objects/{number}", data)
    file.seek(0)
    return file


def test_a_file_does_not_change_a_class() -> None:
    layer = nn.Linear(1, 1)
    serialization.add_safe_globals([nn.Linear])
    try:
        with pytest.raises(pickle.UnpicklingError, match="sets the state of the class Linear"):
            rgrad.load(file_of(pickled(named(nn.Linear), b"}\x8c\x07forward", named(bytearray), b"sb")))
    finally:
        serialization.clear_safe_globals()
    assert layer(rgrad.ones(1)).shape == (1,)


def test_tensors_of_the_file_are_not_written_to() -> None:
    tensor = b"(\x8c\x06tensorK\x00tQ"
    assert rgrad.load(file_of(pickled(tensor))).tolist() == [0.0]
    for step in (STATE + b"b", b"K\x00K\x01s", b"K\x01a"):
        with pytest.raises(pickle.UnpicklingError, match="an object of type Tensor, which it has not made itself"):
            rgrad.load(file_of(pickled(tensor, step)))


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "pid",
    [
        b"(\x8c\x06objectK\x01\x8c\x00tQ",
        b"(\x8c\x04list(\x8c\x06tensorK\x00ttQ",
        b"(\x8c\x06tensorK\x09tQ",
        b"(\x8c\x06tensorJ\xff\xff\xff\xfftQ",
        b"(\x8c\x06tensor\x88tQ",
        b"NQ",
        b")Q",
    ],
)
@pytest.mark.filterwarnings("ignore:load. <_io.BytesIO:UserWarning")
def test_ids_are_those_of_tensors(pid: bytes, trusted: bool) -> None:
    # Ids of objects would let pickles contain each other: twice each, thirty of them, a billion times the work.
    with pytest.raises(RuntimeError, match="damaged: Malformed"):
        rgrad.load(file_of(pickled(pid), pickled(b"N")), weights_only=not trusted)


def test_an_object_is_read_once() -> None:
    file = file_of(pickled(b"]"), obj=["list", *[["object", 0, "x"]] * 3])
    first, second, third = rgrad.load(file)
    assert first is second is third


@pytest.mark.parametrize("number", [1, -1, True, "0", None, 0.0])
def test_objects_that_are_not_there(number: Any) -> None:
    with pytest.raises(RuntimeError, match="damaged"):
        rgrad.load(file_of(pickled(b"N"), obj=["object", number, "x"]))


def test_errors_of_allowed_classes_are_theirs() -> None:
    with pytest.raises(TypeError, match="not callable|takes no arguments|positional"):
        rgrad.load(file_of(pickled(named(Made), ONE, b"R")))
    # What is wrong beside them is damage all the same.
    with pytest.raises(RuntimeError, match="damaged"):
        rgrad.load(file_of(pickled(b"N"), obj=["list", ["object", 0, "x"], ["float", "no"]]))


def test_damage_of_a_file_with_objects_is_damage() -> None:
    with zipfile.ZipFile(container([Plain(a=rgrad.ones(2))])) as archive:
        data = archive.read("objects/0")
    for end in range(1, len(data)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            rgrad.load(file_of(data[:end]))
