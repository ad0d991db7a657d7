"""Files of memory, which processes pass to each other by their descriptors. Linux has them."""

from __future__ import annotations

import contextlib
import os


def new(name: str) -> int:
    """The descriptor of a new file, which is empty.

    Raises:
        OSError: There are too many files.
    """
    return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def seal(fd: int) -> None:
    """Fix the size of a file.

    If a process could shorten it, the system would end the others when they read what is lost.
    """
    import fcntl

    # Systems without seals, such as sandboxes that stand in for Linux, do as before.
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
