"""The alias: the finder that answers for ``torch``, its modules in ``sys.modules``, and who has asked for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import rgrad

from . import _children, _identity
from ._finder import NAME, Finder, is_alias

_lock = threading.RLock()
_finder = Finder()
# Whether `install` has run, and how many `as_torch` blocks are open.
_installed = False
_blocks = 0


def _torch_modules() -> dict[str, ModuleType]:
    """What ``sys.modules`` has under PyTorch's name."""
    return {name: module for name, module in list(sys.modules.items()) if is_alias(name)}


def _is_ours(module: object) -> bool:
    """Whether what stands under PyTorch's name is rgrad."""
    # Its own name is PyTorch's meanwhile.
    return module is rgrad or getattr(module, "__name__", "").partition(".")[0] == "rgrad"


def _install_in_child() -> None:
    # A process of a fork server may have imported another torch already.
    if _is_ours(sys.modules.get(NAME, rgrad)):
        install()


def _switch_on() -> None:
    """Let the finder answer; first in the list, since a real PyTorch may be there to be found."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _identity.take()
    _children.hold(_install_in_child)
    __import__(NAME)


def _switch_off() -> None:
    """Forget the finder and what it has put in ``sys.modules``."""
    sys.meta_path.remove(_finder)
    for name in _torch_modules():
        del sys.modules[name]
    _identity.give_back()
    _children.let_go()


def install() -> None:
    """Let ``torch`` be rgrad in this process from now on, and in the processes that it starts with `multiprocessing`.

    Call it before anything imports ``torch``. A second call does nothing.

    Raises:
        RuntimeError: Another ``torch`` has been imported already.

    Example:
        >>> rgrad.compat.install()
        >>> import torch.nn.functional as F
        >>> F is rgrad.nn.functional
        True
        >>> rgrad.compat.uninstall()
    """
    global _installed
    with _lock:
        found = sys.modules.get(NAME)
        if found is not None and not _is_ours(found):
            where = getattr(found, "__file__", None) or "unknown file"
            raise RuntimeError(
                f"compat.install: torch was imported before ({where}), and modules that have imported it would keep "
                "that one. Call install() before the first import of torch, run the program by python -m rgrad.run, "
                "or use `with rgrad.compat.as_torch():`, which puts the other torch back at its end"
            )
        if not (_installed or _blocks):
            _switch_on()
        _installed = True


def uninstall() -> None:
    """Undo :func:`install`. Modules that have imported ``torch`` meanwhile keep rgrad.

    Raises:
        RuntimeError: It is called in a block of :func:`as_torch`.
    """
    global _installed
    with _lock:
        if _blocks:
            raise RuntimeError("compat.uninstall: there is an open block of as_torch(). Leave it first")
        if _installed:
            _switch_off()
        _installed = False


def is_installed() -> bool:
    """Whether ``torch`` is rgrad now, by :func:`install` or in a block of :func:`as_torch`."""
    return _installed or _blocks > 0


@contextmanager
def as_torch() -> Iterator[None]:
    """A block in which ``torch`` is rgrad.

    Another ``torch`` that was imported before is put back at the end; modules that were imported in the block keep
    rgrad. A function that imports ``torch`` when it is called has to be called in the block. The block is for the
    whole process, so no other thread should import ``torch`` meanwhile. Blocks may be nested.

    Example:
        >>> with rgrad.compat.as_torch():
        ...     import torch
        >>> torch is rgrad
        True
    """
    global _blocks
    with _lock:
        outermost = not is_installed()
        others = _torch_modules() if outermost else {}
        if outermost:
            for name in others:
                del sys.modules[name]
            _switch_on()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not is_installed():
                _switch_off()
                sys.modules.update(others)
