"""Write docs/without-effect.md: the calls and arguments that are accepted for PyTorch's sake and change nothing.

    python scripts/without_effect.py            # writes the page
    python scripts/without_effect.py --check    # exits with 1 if the page is not what would be written

What the docstrings of the public Python functions, classes and methods say is collected. What has no such docstring is
in `OTHERS`; a test calls it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from kept import ROOT, line, main

PAGE = ROOT / "docs" / "without-effect.md"
PACKAGE = ROOT / "python" / "rgrad"
HEAD = """\
# Accepted without effect

PyTorch's programs give arguments, and call functions, for which there is nothing to do here. They are accepted, so that
the programs run; they are checked no further than it says in their docstrings. Everything else that is not there raises
an error. `scripts/without_effect.py` collects this page from the docstrings; do not edit.

| call | what has no effect |
| --- | --- |
"""
# Native calls, and calls without a section of arguments.
OTHERS = {
    "rgrad.Tensor.copy_": ["non_blocking"],
    "rgrad.Tensor.cpu": ["non_blocking"],
    "rgrad.Tensor.to": ["non_blocking"],
    "rgrad.Tensor.type": ["non_blocking"],
    "rgrad.compile": ["the call: it gives the function back"],
    "rgrad.nn.LinearCrossEntropyOptions": ["acc_policy"],
    "rgrad.nn.attention.sdpa_kernel": ["the call: there is one kernel on each device"],
    "rgrad.optim.AdamW": ["foreach", "capturable", "fused"],
    "rgrad.jit.script": ["the call: it gives its argument back"],
    "rgrad.empty, zeros, ones, full, rand, randn, arange and other makers of tensors": ["pin_memory"],
}

WORDS = r"(?:ha(?:s|ve) no effect|changes? nothing)"
NAMES = r"((?:``\w+``(?:,? and |, )?)+)"


def public() -> Iterator[tuple[str, Any]]:
    """Public functions and classes of the Python layer, each by its shortest name, and the classes' public methods."""
    import rgrad
    from rgrad._functions.late_methods import LATE, method_of

    found: dict[int, tuple[str, Any]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = ("rgrad", *file.relative_to(PACKAGE).with_suffix("").parts)
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if any(part.startswith("_") for part in parts[1:]):
            continue
        module = rgrad if len(parts) == 1 else import_module(".".join(parts))
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        for name in dir(rgrad) if module is rgrad else getattr(module, "__all__", own):
            value = getattr(module, name, None)
            if name.startswith("_") or not str(getattr(value, "__module__", "")).startswith("rgrad."):
                continue
            called = f"{'.'.join(parts)}.{name}"
            if id(value) not in found or len(called) < len(found[id(value)][0]):
                found[id(value)] = called, value
    # A method stands with the class that the others inherit it from.
    for called, value in sorted(found.values(), key=lambda pair: len(getattr(pair[1], "__mro__", ()))):
        yield called, value
        if isinstance(value, type) and not issubclass(value, rgrad.Tensor):
            for name in dir(value):
                method = inspect.getattr_static(value, name)
                method = getattr(method, "__func__", method)
                if not name.startswith("_") and inspect.isfunction(method):
                    yield f"{called}.{name}", method
    for owner, names in LATE.items():
        for name, forms in names.items():
            if "m" in forms:
                yield f"rgrad.Tensor.{name}", method_of(owner, name)


def told(doc: str) -> list[str]:
    """The arguments that a docstring says to have no effect; ``the call`` for the whole."""
    text = inspect.cleandoc(doc)
    prose, _, rest = text.partition("\nArgs:\n")
    args = re.split(r"\n\S", rest)[0]
    found = []
    summary = " ".join(prose.split("\n\n")[0].split())
    if re.search(rf"\bit {WORDS}|\bIt {WORDS}|\bthey {WORDS}|^Accepted", " ".join(prose.split())):
        why = re.match(r"Accepted[^:;]*: (.*?)\.?$", summary)
        found.append(f"the call: {why[1]}" if why else "the call")
    flat = " ".join(text.split())
    for match in re.finditer(rf"{NAMES} (?:are accepted for PyTorch's sake and |also )?{WORDS}", flat):
        found.extend(re.findall(r"``(\w+)``", match[1]))
    for name, said in re.findall(r"^    \*{0,2}(\w+): (.*(?:\n {8}.*)*)", args, flags=re.MULTILINE):
        said = " ".join(said.split())
        conditional = re.search(r"\b(else|otherwise|warned of|Old form)\b", said)
        if not conditional and re.search(rf"^(?i:{WORDS})|\b(?:it|they) {WORDS}|^Accepted\b", said):
            found.append(name)
    return list(dict.fromkeys(found))


def rows() -> dict[str, list[str]]:
    """What has no effect, by call."""
    found: dict[str, list[str]] = {}
    seen: set[int] = set()
    for called, value in public():
        doc = value.__doc__
        if doc and id(value) not in seen:
            seen.add(id(value))
            if names := told(doc):
                found[called] = names
    for called, names in OTHERS.items():
        found[called] = [*names, *(name for name in found.get(called, []) if name not in names)]
    return found


def page() -> str:
    """The text of docs/without-effect.md."""
    cells = sorted(rows().items(), key=lambda row: (row[0].lower(), row[0]))
    return HEAD + "".join(
        line((f"`{called}`" if " " not in called else called, ", ".join(n if " " in n else f"`{n}`" for n in names)))
        for called, names in cells
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, page))
