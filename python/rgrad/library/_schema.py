"""Schemas of operators: ``name.overload(Tensor x, int y=1, *, bool z=False) -> Tensor``, read, written and inferred."""

from __future__ import annotations

import inspect
import operator
import re
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor


class Argument(NamedTuple):
    """One argument.

    Attributes:
        name: Its name.
        type: Its type in a schema's words, such as ``"Tensor?"``.
        default: Its default as text; None without one.
        kwarg_only: Whether it is given by name alone.
        alias: What stands in parentheses behind ``Tensor``: ``"a!"`` for one that is written to.
    """

    name: str
    type: str
    default: str | None
    kwarg_only: bool
    alias: str | None

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to it."""
        return self.alias is not None and "!" in self.alias

    @property
    def base(self) -> str:
        """The type without list and option."""
        return re.sub(r"\[\d*\]|\?", "", self.type)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return "[" in self.type

    def __str__(self) -> str:
        kind = self.type if self.alias is None else self.type.replace("Tensor", f"Tensor({self.alias})", 1)
        return f"{kind} {self.name}" + ("" if self.default is None else f"={self.default}")


@dataclass
class Schema:
    """What an operator takes and gives."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[Argument]
    returns_list: bool = False

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to an argument."""
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts = [str(a) for a in self.arguments if not a.kwarg_only]
        named = [str(a) for a in self.arguments if a.kwarg_only]
        if named:
            parts += ["*", *named]
        outs = [str(r).strip() for r in self.returns]
        given = outs[0] if len(outs) == 1 else f"({', '.join(outs)})"
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(parts)}) -> {given}"


_TYPE = re.compile(r"\s*(Tensor|[A-Za-z_]\w*)\s*(?:\(([^)]*)\))?((?:\[\d*\]|\?)*)")
_BASES = {
    "Device",
    "Generator",
    "Layout",
    "MemoryFormat",
    "Scalar",
    "ScalarType",
    "SymInt",
    "Tensor",
    "bool",
    "complex",
    "float",
    "int",
    "str",
}


def _split(text: str) -> list[str]:
    """Parts between commas that stand in no brackets or quotes."""
    parts, depth, quoted, start = [], 0, "", 0
    for k, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "\"'":
            quoted = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:k])
            start = k + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def _typed(text: str, whole: str) -> tuple[str, str | None, str]:
    found = _TYPE.match(text)
    if found is None or found[1] not in _BASES:
        raise RuntimeError(f"Unknown type in the schema {whole!r}, at {text!r}; known are {', '.join(sorted(_BASES))}")
    return found[1] + found[3], found[2], text[found.end() :].strip()


def parse(text: str) -> Schema:
    """Read a schema.

    Raises:
        RuntimeError: The text is none.
    """
    head, arrow, returns = text.rpartition("->")
    found = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*", head, re.DOTALL)
    if not arrow or found is None:
        raise RuntimeError(f"the schema {text!r} is none; expected 'name(Tensor x, int y=1) -> Tensor'")
    arguments: list[Argument] = []
    kwarg_only = False
    for part in _split(found[3]):
        if part == "*":
            kwarg_only = True
            continue
        kind, alias, rest = _typed(part, text)
        name, equals, default = rest.partition("=")
        if not name.strip().isidentifier():
            raise RuntimeError(f"expected the name of an argument in the schema {text!r}, at {part!r}")
        arguments.append(Argument(name.strip(), kind, default.strip() if equals else None, kwarg_only, alias))
    given = returns.strip()
    outs = _split(given[1:-1]) if given.startswith("(") and given.endswith(")") else [given]
    results = []
    for part in outs:
        kind, alias, rest = _typed(part, text)
        results.append(Argument(rest, kind, None, False, alias))
    return Schema(found[1], found[2] or "", arguments, results)


def value_of(argument: Argument) -> Any:
    """The default of an argument."""
    text = argument.default
    if text in (None, "None"):
        return None
    if argument.base in ("ScalarType", "Layout", "MemoryFormat"):
        return getattr(_core, text.rpartition(".")[2], None)
    if text in ("True", "False"):
        return text == "True"
    if text[0] in "\"'":
        return text[1:-1]
    if text.startswith("["):
        return [value_of(argument._replace(type=argument.base, default=part)) for part in _split(text[1:-1])]
    if argument.base == "Device":
        return _core.device(text)
    return float(text) if argument.base == "float" or any(c in text for c in ".en") else int(text)


# ---------------------------------------------------------------------------------------------------- arguments


def _is_int(x: Any) -> bool:
    return hasattr(type(x), "__index__") and not isinstance(x, Tensor)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "Device": lambda x: isinstance(x, (_core.device, str)),
    "Generator": lambda x: isinstance(x, _core.Generator),
    "Layout": lambda x: type(x).__name__ == "layout",
    "MemoryFormat": lambda x: isinstance(x, _core.memory_format),
    "Scalar": lambda x: isinstance(x, (int, float, complex, bool)) or _is_int(x),
    "ScalarType": lambda x: isinstance(x, _core.dtype),
    "SymInt": _is_int,
    "Tensor": lambda x: isinstance(x, Tensor),
    "bool": lambda x: isinstance(x, bool),
    "complex": lambda x: isinstance(x, (int, float, complex)),
    "float": lambda x: isinstance(x, float) or (_is_int(x) and not isinstance(x, bool)),
    "int": _is_int,
    "str": lambda x: isinstance(x, str),
}


def _fits(argument: Argument, value: Any) -> bool:
    kind = argument.type
    if value is None:
        return kind.endswith("?")
    test = _TESTS[argument.base]
    if not argument.is_list:
        return test(value)
    if re.search(r"\[\d+\]", kind) and test(value):
        return True
    inner_optional = "?[" in kind
    return isinstance(value, (list, tuple)) and all(test(x) or (x is None and inner_optional) for x in value)


def _converted(argument: Argument, value: Any) -> Any:
    if value is None:
        return None
    if argument.is_list:
        if not isinstance(value, (list, tuple)):
            count = int(re.search(r"\[(\d+)\]", argument.type)[1])  # type: ignore[index]
            value = [value] * count
        return [float(x) for x in value] if argument.base == "float" else list(value)
    if argument.base == "float":
        return float(value)
    if argument.base in ("int", "SymInt"):
        return operator.index(value)
    return _core.device(value) if argument.base == "Device" else value


def bind(name: str, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call in their order, with defaults, and those given by name alone.

    Raises:
        RuntimeError: They do not fit the schema.
    """
    positional = [a for a in schema.arguments if not a.kwarg_only]
    if len(args) > len(positional):
        raise RuntimeError(
            f"{name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
            f"Declaration: {schema}"
        )
    given = dict(zip((a.name for a in positional), args, strict=False))
    for key, value in kwargs.items():
        if key in given:
            raise RuntimeError(f"{name}() got argument {key!r} twice, by position and by name. Declaration: {schema}")
        if all(key != a.name for a in schema.arguments):
            raise RuntimeError(f"Unknown keyword argument {key!r} for operator {name!r}. Schema: {schema}")
        given[key] = value
    own, named = [], {}
    for at, argument in enumerate(schema.arguments):
        if argument.name in given:
            value = given[argument.name]
            if not _fits(argument, value):
                raise RuntimeError(
                    f"{name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
                    f"found type '{type(value).__name__}'.\nPosition: {at}\nValue: {value!r}\nDeclaration: {schema}"
                )
            value = _converted(argument, value)
        elif argument.default is not None:
            value = value_of(argument)
        else:
            raise RuntimeError(f"{name}() is missing value for argument '{argument.name}'. Declaration: {schema}")
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            own.append(value)
    return own, named


# -------------------------------------------------------------------------------------------------- annotations

_NAMES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    _core.dtype: "ScalarType",
    _core.device: "Device",
}
_NUMBERS = {int, float, bool}
_VALID = "Tensor, int, float, bool, str, int | float | bool, dtype, device, and Optional and Sequence or list of these"


def _word(annotation: Any) -> str | None:
    """A type in a schema's words."""
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [one for one in inside if one is not type(None)]
        word = "Scalar" if set(rest) == _NUMBERS else _word(rest[0]) if len(rest) == 1 else None
        return word if word is None or len(rest) == len(inside) else f"{word}?"
    if origin in (list, abc.Sequence) and len(inside) == 1:
        word = _word(inside[0])
        return None if word is None else f"{word}[]"
    return None


def _default(value: Any, fail: Callable[[str], Exception], name: str) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float) and value == int(value) if isinstance(value, float) and abs(value) < 1e15 else False:
        return f"{int(value)}."
    if value is None or isinstance(value, (int, float, bool)):
        return str(value)
    if isinstance(value, _core.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, _core.device):
        return f'"{value}"'
    raise fail(f"Parameter {name} has an unsupported default value type {type(value)}.")


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function, from its annotations.

    Args:
        prototype_function: The function. Each parameter has an annotation.
        mutates_args: The names of the parameters that it writes to, or ``"unknown"`` for all tensors.
        op_name: A name to stand before it.

    Returns:
        Such as ``"(Tensor x, float y=2.) -> Tensor"``.

    Raises:
        ValueError: A parameter or the result has no annotation, or one that schemas do not have.

    Example:
        >>> def scaled(x: rgrad.Tensor, by: float = 2.0) -> rgrad.Tensor:
        ...     return x * by
        >>> rgrad.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float by=2.) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def fail(text: str) -> ValueError:
        return ValueError(f"infer_schema(func): {text} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        raise fail(f"The annotations cannot be read ({error}).") from None
    written = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(written, str) and written != "unknown":
        raise fail(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or 'unknown'."
        )
    parts: list[str] = []
    star = False
    for letters, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if name not in hints:
            raise fail(f"Parameter {name} must have a type annotation.")
        word = _word(hints[name])
        if word is None:
            raise fail(f"Parameter {name} has unsupported type {hints[name]}. The valid types are: {_VALID}.")
        if (written == "unknown" and word.startswith("Tensor")) or (written != "unknown" and name in written):
            if not word.startswith("Tensor"):
                raise fail(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            word = word.replace("Tensor", f"Tensor(a{letters}!)", 1)
        end = "" if parameter.default is parameter.empty else f"={_default(parameter.default, fail, name)}"
        parts.append(f"{word} {name}{end}")
    if not isinstance(written, str) and written - set(signature.parameters):
        raise fail(
            f"{written - set(signature.parameters)} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain the names of all args that the custom op mutates, or just the string "
            "'unknown' if you don't know."
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(hints, signature, fail)}"


def _returned(hints: dict[str, Any], signature: inspect.Signature, fail: Callable[[str], Exception]) -> str:
    if signature.return_annotation is inspect.Signature.empty:
        raise fail("No return type annotation was provided. Please add one.")
    given = hints.get("return")
    if given in (None, type(None)):
        return "()"
    many = typing.get_origin(given) is tuple
    outs = typing.get_args(given) if many else (given,)
    words = []
    for one in outs:
        word = _word(one)
        if word is None or "?" in word or word not in ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar"):
            raise fail(
                f"Return has unsupported type {one}. The valid types are: Tensor, list[Tensor], int, float, bool."
            )
        words.append(word)
    return f"({', '.join(words)})" if many else words[0]
