"""Files that are written as a whole: whoever is killed while writing leaves the old file as it was."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file to write, which takes the place of the one at a path when the block ends without an exception.

    It is written beside that file, under another name, and renamed. What is at the path keeps its permissions, and its
    owner if the system allows it. A symbolic link stays one: the file that it leads to is replaced. Other hard links of
    that file keep the old content, and so do maps of it. What is no regular file (a pipe, a device) is written
    directly, and so is a file in a folder that takes no new files.

    Args:
        path: The file.
        durable: Wait until the system has the content on its disk, so that a loss of power, too, leaves one of both.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(os.path.realpath(path))
    before = _regular(target)
    try:
        handle, part = (None, target) if before is False else _beside(target)
    except PermissionError:
        # The folder takes no new files; the file itself may be written all the same.
        if before is None:
            raise
        handle, part = None, target
    if handle is None:
        with open(path, "wb") as file:
            yield file
        return
    try:
        with open(handle, "wb") as file:
            if isinstance(before, os.stat_result):
                _like(handle, before)
            yield file
            file.flush()
            if durable:
                os.fsync(handle)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        _remember(target.parent)


@contextlib.contextmanager
def text_written_whole(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[IO[str]]:
    """As `written_whole`, for text in UTF-8. The disk is not waited for.

    Raises:
        OSError: The file cannot be written.
    """
    import io

    with written_whole(path, durable=False) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors=errors)
        yield text
        text.flush()
        text.detach()


def _regular(target: Path) -> os.stat_result | bool | None:
    """None if there is nothing yet, False if it is no regular file, else what it is.

    Raises:
        OSError: It may not be written.
    """
    try:
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            return False
        # A rename does not ask whether the file itself may be written. To open it so changes nothing in it.
        with open(target, "ab"):
            return found
    except FileNotFoundError:
        return None


def _beside(target: Path) -> tuple[int, Path]:
    """A new file in the same folder, with the permissions of any new file."""
    while True:
        # A name of its own length: that of the target may be as long as names can be.
        part = target.with_name(f".rgrad-{os.urandom(8).hex()}.partial")
        with contextlib.suppress(FileExistsError):
            return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), part


def _like(handle: int, before: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        made = os.fstat(handle)
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with contextlib.suppress(OSError):
                os.fchown(handle, before.st_uid, before.st_gid)
        # After the owner: a change of that clears the set-user-id bits.
        os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _remember(folder: Path) -> None:
    """Have the folder's new entry on the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
