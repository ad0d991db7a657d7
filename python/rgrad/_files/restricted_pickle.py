"""Reads pickles of files that are not trusted: a machine for the opcodes that ``save`` writes.

Python's own unpickler lets a pickle write to everything that it can name. Here only those classes and functions are
called that are allowed, and only objects are written to that this very unpickling has made: no class, function, member
of an enumeration, or other object that the process has already. What a pickle takes in time and memory is bounded by
its length, apart from what the allowed classes and functions of a user do.
"""

from __future__ import annotations

import pickle
import struct
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from types import MemberDescriptorType
from typing import Any

from .._core import Tensor
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from . import rebuild, safe_globals
from .default_globals import MAKERS, TENSOR_MAKERS
from .key_hashes import alike
from .made_objects import ALONE, ALONE_DICT, attributes_of, called, is_class, is_dict, makes_new_ones, said

# How deeply tuples may be nested: Python computes their hashes by recursion in C, without a check of its own.
_MOST_NESTED = 1000


class Malformed(ValueError):
    """The bytes are no pickle that `save` writes."""


# By id: classes of users may have any hash.
_MAKER_OF = {id(kind): maker for kind, maker in MAKERS.items()}
_TENSOR_MAKERS = frozenset(map(id, TENSOR_MAKERS))
# A pickle does not write to what holds elements.
_ELEMENTS = (Tensor, TypedStorage, UntypedStorage)
_STATES = (dict, OrderedDict)
_PLAIN_DICTS = frozenset(id(kind) for kind in (dict, OrderedDict, Counter, defaultdict))
_KEYED = frozenset(id(kind) for kind in (set, frozenset, OrderedDict))


class RestrictedUnpickler:
    """Reads one pickle.

    Args:
        data: The pickle; more may come behind it.
        permitted: The classes and functions that it may use, by full name.
        persistent_load: Gives what stands behind the id of a tensor or storage.
        encoding: That of strings of Python 2; ``"bytes"`` leaves them bytes.
    """

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        permitted: Mapping[str, Any],
        persistent_load: Callable[[Any], Any],
        encoding: str = "utf-8",
    ) -> None:
        self._data = memoryview(data)
        self._encoding = encoding
        self._protocol = 0
        self._at = 0
        self._permitted = permitted
        self._persistent_load = persistent_load
        self._stack: list[Any] = []
        # The stacks below the marks.
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        # By id; the objects are kept, so that no other one gets the same id.
        self._made: dict[int, Any] = {}
        self._named: dict[int, Any] = {}
        # Of tuples and frozensets: how deeply they are nested, how many steps their hash takes, and they themselves.
        self._weight: dict[int, tuple[int, int, Any]] = {}
        # By the id of the dict or set, which was made here: how many of its keys have a hash.
        self._hashes: dict[int, Counter[int]] = {}
        self._steps_left = 10_000_000 + 100 * len(data)

    def load(self) -> Any:
        """The object.

        Raises:
            Malformed: It is no pickle that `save` writes.
            Exception: ``pickle.UnpicklingError`` where the pickle asks for what is not allowed; and what allowed
                classes and functions raise.
        """
        while (code := self._byte()) != _STOP:
            step = _OPCODES.get(code)
            if step is None:
                raise Malformed(f"opcode {bytes([code])!r} at byte {self._at - 1} is none that rgrad.save writes")
            step(self)
        if len(self._stack) != 1 or self._below:
            raise Malformed(f"the pickle ends with {len(self._stack)} objects, expected one")
        return self._stack[0]

    @property
    def end(self) -> int:
        """Where the pickle ended, after `load`."""
        return self._at

    # -------------------------------------------------------------------------------------------------------- bytes

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, count: int) -> memoryview:
        end = self._at + count
        # Before anything is allocated: a length may be any number.
        if end > len(self._data):
            raise Malformed(f"the pickle ends after {len(self._data)} bytes, expected {count} more from {self._at} on")
        part = self._data[self._at : end]
        self._at = end
        return part

    def _number(self, form: struct.Struct) -> Any:
        return form.unpack(self._bytes(form.size))[0]

    def _text(self, length: int) -> str:
        try:
            return str(self._bytes(length), "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Malformed(f"a string is no UTF-8: {error}") from None

    # -------------------------------------------------------------------------------------------------------- stack

    def _pop(self) -> Any:
        if not self._stack:
            raise Malformed("the pickle takes more from its stack than there is")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack:
            raise Malformed("the pickle takes more from its stack than there is")
        return self._stack[-1]

    def _push_made(self, made: Any) -> None:
        self._made[id(made)] = made
        self._stack.append(made)

    def _marked(self) -> list[Any]:
        """What is above the last mark, which goes with it."""
        if not self._below:
            raise Malformed("the pickle goes back to a mark that it has not set")
        above, self._stack = self._stack, self._below.pop()
        return above

    def mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def pop(self) -> None:
        # At a mark it takes the mark away.
        if self._stack:
            self._stack.pop()
        else:
            self._marked()

    def pop_mark(self) -> None:
        self._marked()

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def put(self, form: struct.Struct) -> None:
        self._memo[self._number(form)] = self._top()

    def get(self, form: struct.Struct) -> None:
        place = self._number(form)
        if place not in self._memo:
            raise Malformed(f"the pickle asks for object {place}, which it has not made")
        self._stack.append(self._memo[place])

    # ------------------------------------------------------------------------------------------------------- values

    def protocol(self) -> None:
        self._protocol = self._byte()
        if self._protocol > pickle.HIGHEST_PROTOCOL:
            raise Malformed("the pickle is of a protocol that this Python does not know")

    def frame(self) -> None:
        self._bytes(8)

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def number(self, form: struct.Struct) -> None:
        self._stack.append(self._number(form))

    def long(self, form: struct.Struct) -> None:
        self._stack.append(int.from_bytes(self._bytes(self._length(form)), "little", signed=True))

    def _length(self, form: struct.Struct) -> int:
        length: int = self._number(form)
        if length < 0:
            raise Malformed(f"the pickle has a length of {length}")
        return length

    def text(self, form: struct.Struct) -> None:
        self._stack.append(self._text(self._length(form)))

    def old_text(self, form: struct.Struct) -> None:
        data = bytes(self._bytes(self._length(form)))
        try:
            self._stack.append(data if self._encoding == "bytes" else str(data, self._encoding))
        except (UnicodeDecodeError, LookupError) as error:
            raise Malformed(f"a string of Python 2 is not {self._encoding}: {error}") from None

    def binary(self, form: struct.Struct) -> None:
        self._stack.append(bytes(self._bytes(self._length(form))))

    def writable_bytes(self, form: struct.Struct) -> None:
        self._push_made(bytearray(self._bytes(self._length(form))))

    # --------------------------------------------------------------------------------------------------- containers

    def empty(self, kind: Callable[[], Any]) -> None:
        self._push_made(kind())

    def marked_list(self) -> None:
        self._push_made(self._marked())

    def marked_dict(self) -> None:
        items = self._marked()
        self.push_dict(items)

    def push_dict(self, items: list[Any]) -> None:
        made: dict[Any, Any] = {}
        self._push_made(made)
        self._set_items(made, items)

    def marked_tuple(self) -> None:
        self._push_tuple(self._marked())

    def short_tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise Malformed("the pickle takes more from its stack than there is")
        items = self._stack[-count:]
        del self._stack[-count:]
        self._push_tuple(items)

    def frozen(self) -> None:
        items = self._marked()
        self._check_keys(None, items)
        made = self._theirs(frozenset, items)
        self._weigh(made, items)
        self._stack.append(made)

    def _push_tuple(self, items: list[Any]) -> None:
        made = tuple(items)
        self._weigh(made, items)
        self._stack.append(made)

    def _weigh(self, made: Any, items: list[Any]) -> None:
        depth = 1 + max((self._weight[id(item)][0] for item in items if id(item) in self._weight), default=0)
        if depth > _MOST_NESTED:
            raise Malformed(f"tuples are nested more than {_MOST_NESTED} deep")
        # The number is cut: that of tuples of the same tuple twice doubles with each of them.
        steps = min(1 + sum(self._steps(item) for item in items), 1 << 62)
        if made:
            self._weight[id(made)] = depth, steps, made

    def _steps(self, item: Any) -> int:
        """What the hash of an object takes, about. Strings and bytes keep theirs."""
        if type(item) is int:
            return 1 + item.bit_length() // 256
        return self._weight.get(id(item), (0, 1, None))[1]

    def _check_keys(self, target: Any, keys: list[Any]) -> None:
        """Count what the hashes of keys take, before they are computed, and how many of a dict or set are the same.

        Raises:
            Malformed: It is more than pickles of this length take, or a key has no hash.
        """
        self._steps_left -= sum(self._steps(key) for key in keys)
        if self._steps_left < 0:
            raise Malformed("keys of dicts or sets are tuples in which the same tuples occur again and again")
        before = None if target is None else self._hashes.setdefault(id(target), Counter())
        if self._theirs(alike, keys, before):
            raise Malformed("keys of a dict or set are chosen so that their hashes are the same")

    @staticmethod
    def _theirs(kind: Callable[..., Any], *args: Any) -> Any:
        """What a builtin makes of parts of the pickle; what is wrong is wrong with the pickle."""
        try:
            return kind(*args)
        except TypeError as error:
            raise Malformed(str(error)) from None

    def _target(self, what: str) -> Any:
        """The object at the top, which must have been made here."""
        top = self._top()
        if id(top) not in self._made:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the pickle {what} {said(top)}, which it has not made itself. Only objects "
                "that are made by reading a file can be written to by it."
            )
        if issubclass(type(top), _ELEMENTS):
            raise Malformed(f"the pickle {what} {said(top)}; elements are in files of their own")
        return top

    def append(self) -> None:
        item = self._pop()
        self._extend([item])

    def appends(self) -> None:
        self._extend(self._marked())

    def _extend(self, items: list[Any]) -> None:
        target = self._target("appends to")
        if type(target) is list:
            target.extend(items)
            return
        # Of its class: its own attributes come from the pickle.
        add = getattr(type(target), "append", None)
        if add is None or id(type(target)) in _MAKER_OF:
            raise Malformed(f"the pickle appends to {said(target)}")
        for item in items:
            add(target, item)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items(self._target("sets items of"), [key, value])

    def set_items(self) -> None:
        items = self._marked()
        self._set_items(self._target("sets items of"), items)

    def _set_items(self, target: Any, items: list[Any]) -> None:
        if len(items) % 2:
            raise Malformed("a dict has a key without a value")
        keys = items[::2]
        self._check_keys(target, keys)
        if id(type(target)) in _PLAIN_DICTS:
            for key, value in zip(keys, items[1::2], strict=True):
                self._theirs(target.__setitem__, key, value)
            return
        put = getattr(type(target), "__setitem__", None)
        if put is None or type(target) is list or id(type(target)) in _MAKER_OF:
            raise Malformed(f"the pickle sets items of {said(target)}")
        for key, value in zip(keys, items[1::2], strict=True):
            put(target, key, value)

    def add_items(self) -> None:
        items = self._marked()
        target = self._target("adds to")
        self._check_keys(target, items)
        if type(target) is set:
            self._theirs(target.update, items)
            return
        add = getattr(type(target), "add", None)
        if add is None or id(type(target)) in _MAKER_OF:
            raise Malformed(f"the pickle adds to {said(target)}")
        for item in items:
            add(target, item)

    # ------------------------------------------------------------------------------------------------------ objects

    def persistent(self) -> None:
        self._stack.append(self._persistent_load(self._pop()))

    def _push_named(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise Malformed("the pickle names a class or function otherwise than with strings")
        if self._protocol < 3:
            # The names of Python 2, which protocols up to 2 have.
            if (module, name) in NAME_MAPPING:
                module, name = NAME_MAPPING[module, name]
            else:
                module = IMPORT_MAPPING.get(module, module)
        found = safe_globals.find(module, name, self._permitted)
        self._named[id(found)] = found
        self._stack.append(found)

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        self._push_named(module, name)

    def text_global(self) -> None:
        lines = []
        for _ in range(2):
            end = bytes(self._data[self._at : self._at + 1000]).find(b"\n")
            if end < 0:
                raise Malformed("the name of a class or function does not end")
            lines.append(self._text(end))
            self._bytes(1)
        self._push_named(*lines)

    def _checked_call(self, call: Any, args: Any) -> tuple[Any, ...]:
        if type(args) is not tuple:
            raise Malformed(f"the pickle calls {said(call)} with {type(args).__name__}, expected a tuple")
        if id(call) not in self._named or not callable(call):
            raise pickle.UnpicklingError(
                f"Weights only load failed: the pickle calls {said(call)}. It may call only classes and functions "
                "that are allowed; see rgrad.serialization.add_safe_globals."
            )
        return args

    def _push_inner(self, args: tuple[Any, ...]) -> None:
        """A class inside of a class that the pickle has named; it must be allowed, too."""
        if len(args) != 2 or id(args[0]) not in self._named or not is_class(args[0]) or type(args[1]) is not str:
            raise Malformed("the pickle asks for an attribute of something else than a class that it names")
        names = (type.__dict__[name].__get__(args[0]) for name in ("__module__", "__qualname__"))
        module, outer = (str(name) for name in names)
        self._push_named(module, f"{outer}.{args[1]}")

    def reduce(self) -> None:
        args, call = self._pop(), self._pop()
        if call is getattr and type(args) is tuple:
            self._push_inner(args)
            return
        self._make(call, call, self._checked_call(call, args))

    def new_object(self) -> None:
        args, cls = self._pop(), self._pop()
        self._new(cls, args, {})

    def new_object_by_name(self) -> None:
        named, args, cls = self._pop(), self._pop(), self._pop()
        if type(named) is not dict or any(type(name) is not str for name in named):
            raise Malformed("the pickle makes an object with named arguments that are none")
        self._new(cls, args, named)

    def _new(self, cls: Any, args: Any, named: dict[str, Any]) -> None:
        args = self._checked_call(cls, args)
        if not is_class(cls):
            raise Malformed(f"the pickle makes an object of {said(cls)}, expected a class")
        if id(cls) in _MAKER_OF:
            if named:
                raise Malformed(f"the pickle makes {said(cls)} with named arguments")
            self._make(cls, cls, args)
            return
        new: Any = cls.__new__
        self._make(cls, lambda *given: new(cls, *given, **named), args)

    def _make(self, by: Any, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Push what a class or function makes. It may be written to if nobody else has it."""
        maker = _MAKER_OF.get(id(by))
        if args and id(by) in _KEYED and type(args[0]) in (list, tuple):
            keys = list(args[0])
            if by is OrderedDict:
                keys = [pair[0] for pair in keys if type(pair) in (list, tuple) and pair]
            self._check_keys(None, keys)
        if maker is not None:
            try:
                if by is rebuild.from_type:
                    maker = self._from_type
                made, references = maker(*args), 0
            except Malformed:
                raise
            except (TypeError, ValueError, OverflowError, RuntimeError) as error:
                if isinstance(error, (rebuild.NotHere, MemoryError)):
                    raise
                raise Malformed(f"the pickle makes {said(by)} of what it is not made of: {error}") from None
            if id(by) in _TENSOR_MAKERS:
                # It is complete: nothing writes to it any more.
                self._stack.append(made)
                return
        else:
            made, references = called(call, args)
            if makes_new_ones(by):
                references = 0
        for kind in (tuple, frozenset):
            if issubclass(type(made), kind):
                self._weigh(made, list(kind.__iter__(made)))
        if references <= ALONE and not is_class(made):
            self._made[id(made)] = made
        self._stack.append(made)

    def _from_type(self, function: Any, cls: Any, args: Any, state: Any) -> Any:
        """A tensor of a class, with attributes; both functions must be among those that make tensors."""
        if id(function) not in self._named or id(function) not in _TENSOR_MAKERS or function is rebuild.from_type:
            raise TypeError("expected a function that makes tensors")
        if id(cls) not in self._named or not is_class(cls) or type(args) is not tuple:
            raise TypeError("expected a class that the pickle names, and a tuple")
        made = _MAKER_OF[id(function)](*args)
        attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
        if any(part is not None and type(part) not in _STATES for part in (attributes, slots)):
            raise TypeError("expected the attributes of a tensor as a dict")
        if any(type(name) is not str for name in attributes or ()):
            raise TypeError("expected the names of attributes as strings")
        if getattr(cls, "__setstate__", None) is not None:
            return rebuild.as_type(made, cls, state)
        made = rebuild.as_type(made, cls, attributes)
        if slots:
            self._fill_slots(made, slots)
        return made

    def build(self) -> None:
        state = self._pop()
        target = self._target("sets the state of")
        # Of its class, as above.
        set_state = getattr(type(target), "__setstate__", None)
        if set_state is not None:
            set_state(target, state)
            return
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        if state:
            self._update(target, state)
        if slots:
            self._fill_slots(target, slots)

    def _update(self, target: Any, state: Any) -> None:
        attributes, references = attributes_of(target)
        if not (is_dict(state) and is_dict(attributes)) or any(type(name) is not str for name in dict.keys(state)):
            raise Malformed(f"the pickle has a state for {said(target)} that is none of such an object")
        if references > ALONE_DICT and id(attributes) not in self._made:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the pickle sets the state of {said(target)}, which has its attributes "
                "together with other objects."
            )
        dict.update(attributes, {sys.intern(name): value for name, value in dict.items(state)})

    def _fill_slots(self, target: Any, slots: Any) -> None:
        if type(slots) is not dict:
            raise Malformed(f"the pickle has a state for {said(target)} that is none of such an object")
        for name, value in slots.items():
            # Only what `__slots__` has made: other attributes, such as `__class__`, are written by code of their own.
            slot = next((vars(base)[name] for base in type(target).__mro__ if name in vars(base)), None)
            if type(slot) is not MemberDescriptorType:
                raise Malformed(f"the pickle sets {str(name)[:60]!r} of {said(target)}, which is no slot")
            slot.__set__(target, value)


_U1, _U2, _I4, _U4, _U8 = (struct.Struct(form) for form in ("<B", "<H", "<i", "<I", "<Q"))
_FLOAT = struct.Struct(">d")
_STOP = pickle.STOP[0]

_Step = Callable[[RestrictedUnpickler], None]
_R = RestrictedUnpickler


def _with(step: Callable[[RestrictedUnpickler, Any], None], argument: Any) -> _Step:
    return lambda machine: step(machine, argument)


_OPCODES: dict[int, _Step] = {
    code[0]: step
    for code, step in {
        pickle.PROTO: _R.protocol,
        pickle.FRAME: _R.frame,
        pickle.NONE: _with(_R.push, None),
        pickle.NEWTRUE: _with(_R.push, True),
        pickle.NEWFALSE: _with(_R.push, False),
        pickle.BININT: _with(_R.number, _I4),
        pickle.BININT1: _with(_R.number, _U1),
        pickle.BININT2: _with(_R.number, _U2),
        pickle.LONG1: _with(_R.long, _U1),
        pickle.LONG4: _with(_R.long, _I4),
        pickle.BINFLOAT: _with(_R.number, _FLOAT),
        pickle.SHORT_BINUNICODE: _with(_R.text, _U1),
        pickle.BINUNICODE: _with(_R.text, _U4),
        pickle.BINUNICODE8: _with(_R.text, _U8),
        pickle.SHORT_BINBYTES: _with(_R.binary, _U1),
        pickle.SHORT_BINSTRING: _with(_R.old_text, _U1),
        pickle.BINSTRING: _with(_R.old_text, _I4),
        pickle.BINBYTES: _with(_R.binary, _U4),
        pickle.BINBYTES8: _with(_R.binary, _U8),
        pickle.BYTEARRAY8: _with(_R.writable_bytes, _U8),
        pickle.EMPTY_LIST: _with(_R.empty, list),
        pickle.EMPTY_DICT: _with(_R.empty, dict),
        pickle.EMPTY_SET: _with(_R.empty, set),
        pickle.EMPTY_TUPLE: _with(_R.push, ()),
        pickle.LIST: _R.marked_list,
        pickle.DICT: _R.marked_dict,
        pickle.TUPLE: _R.marked_tuple,
        pickle.TUPLE1: _with(_R.short_tuple, 1),
        pickle.TUPLE2: _with(_R.short_tuple, 2),
        pickle.TUPLE3: _with(_R.short_tuple, 3),
        pickle.FROZENSET: _R.frozen,
        pickle.APPEND: _R.append,
        pickle.APPENDS: _R.appends,
        pickle.SETITEM: _R.set_item,
        pickle.SETITEMS: _R.set_items,
        pickle.ADDITEMS: _R.add_items,
        pickle.MARK: _R.mark,
        pickle.POP: _R.pop,
        pickle.POP_MARK: _R.pop_mark,
        pickle.MEMOIZE: _R.memoize,
        pickle.BINPUT: _with(_R.put, _U1),
        pickle.LONG_BINPUT: _with(_R.put, _U4),
        pickle.BINGET: _with(_R.get, _U1),
        pickle.LONG_BINGET: _with(_R.get, _U4),
        pickle.GLOBAL: _R.text_global,
        pickle.STACK_GLOBAL: _R.stack_global,
        pickle.REDUCE: _R.reduce,
        pickle.NEWOBJ: _R.new_object,
        pickle.NEWOBJ_EX: _R.new_object_by_name,
        pickle.BUILD: _R.build,
        pickle.BINPERSID: _R.persistent,
    }.items()
}
