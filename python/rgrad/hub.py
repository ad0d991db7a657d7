"""Models from folders with a ``hubconf.py``, and state dicts from URLs; PyTorch's cache of both is read, too.

Code is never fetched: :func:`load` takes ``source="local"``, or a repository that is in the cache already.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ._runtime.whole_files import written_whole
from .serialization import load as _load

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_CONF = "hubconf.py"
_CHUNK = 1 << 17
# What PyTorch's names of files have: eight digits or more of the SHA-256 of the content.
_DIGITS = re.compile(r"-([a-f0-9]{8,})\.")
_names = list
_dir: str | None = None


# PyTorch's names of these.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = _CHUNK


def _get_torch_home() -> str:
    """``$TORCH_HOME``, or where that is when it is not set."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return str(Path(os.getenv("TORCH_HOME") or os.path.join(cache, "torch")).expanduser())


def get_dir() -> str:
    """The folder of the cache: what :func:`set_dir` was given, else ``$TORCH_HOME/hub``.

    ``$TORCH_HOME`` is ``$XDG_CACHE_HOME/torch`` where it is not set, and that is ``~/.cache/torch``.
    """
    if _dir is not None:
        return _dir
    return str(Path(_get_torch_home(), "hub"))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Let the cache be in another folder.

    Args:
        d: The folder.
    """
    global _dir
    _dir = str(Path(d).expanduser())


def _cached(github: str, force_reload: bool) -> Path:
    """The folder of a repository in the cache.

    Raises:
        RuntimeError: It is not there, or shall be fetched again.
        ValueError: The name is none.
    """
    found = re.fullmatch(r"([^/:]+)/([^/:]+)(?::(.+))?", github)
    if found is None:
        raise ValueError(f"hub: expected 'repo_owner/repo_name[:ref]', but got {github!r}")
    owner, name, ref = found.groups()
    if not force_reload:
        for branch in (ref,) if ref else ("main", "master"):
            folder = Path(get_dir(), f"{owner}_{name}_{branch.replace('/', '_')}")
            if folder.is_dir():
                return folder
    raise RuntimeError(
        f"hub: rgrad does not download code, and the repo could not be found in the cache ({get_dir()}). Fetch it with "
        f"'git clone https://github.com/{owner}/{name}', read it, and load it with source=\"local\" and the folder"
    )


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _conf_of(folder: Path) -> ModuleType:
    """The module of the folder's ``hubconf.py``, executed."""
    spec = importlib.util.spec_from_file_location(_CONF, folder / _CONF)
    if spec is None or spec.loader is None:
        raise AssertionError(f"failed to load spec from {folder / _CONF}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry(conf: ModuleType, model: Any) -> Any:
    """A function of a ``hubconf.py``.

    Raises:
        RuntimeError: There is no such function, or a package that the file needs is missing.
        ValueError: The name is no string.
    """
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(conf, "dependencies", None) or ()
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(conf, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
    verbose: bool = True,
) -> _names[str]:
    """The functions of a repository in the cache.

    Args:
        github: ``"repo_owner/repo_name[:ref]"``.
        force_reload: Refused, since nothing is downloaded.
        skip_validation: Has no effect.
        trust_repo: Has no effect: what is in the cache was trusted.
        verbose: Say where the cache is.

    Raises:
        RuntimeError: The repository is not in the cache.
    """
    folder = _cached(github, force_reload)
    if verbose:
        sys.stderr.write(f"Using cache found in {folder}\n")
    with _importable(folder):
        conf = _conf_of(folder)
    return [name for name in dir(conf) if callable(getattr(conf, name)) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
) -> str | None:
    """The docstring of a function of a repository in the cache.

    Args:
        github: ``"repo_owner/repo_name[:ref]"``.
        model: The function's name.
        force_reload: Refused, since nothing is downloaded.
        skip_validation: Has no effect.
        trust_repo: Has no effect: what is in the cache was trusted.

    Raises:
        RuntimeError: The repository is not in the cache, or has no such function.
    """
    folder = _cached(github, force_reload)
    sys.stderr.write(f"Using cache found in {folder}\n")
    with _importable(folder):
        conf = _conf_of(folder)
    text: str | None = _entry(conf, model).__doc__
    return text


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What a function of a folder's ``hubconf.py`` returns. The folder's code runs: load only what you trust.

    Args:
        repo_or_dir: A folder, or ``"repo_owner/repo_name[:ref]"`` of a repository in the cache.
        model: The function's name.
        args: What it is called with.
        source: ``"local"`` or ``"github"``.
        trust_repo: Has no effect: what is in the cache was trusted.
        force_reload: Refused for repositories, since nothing is downloaded.
        verbose: Say where the cache is.
        skip_validation: Has no effect.
        kwargs: What it is called with.

    Raises:
        FileNotFoundError: The folder has no ``hubconf.py``.
        RuntimeError: The repository is not in the cache, a package is missing, or there is no such function.
        ValueError: There is no such source.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        folder = _cached(str(repo_or_dir), force_reload)
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
    else:
        folder = Path(repo_or_dir)
    with _importable(folder):
        return _entry(_conf_of(folder), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Write what is at a URL to a file, which appears when it is whole.

    Args:
        url: What `urllib` opens.
        dst: The file.
        hash_prefix: With which the SHA-256 of the content must begin.
        progress: Show how far it is, on stderr.

    Raises:
        RuntimeError: The hash is another one. There is no file then, or the old one.
        OSError: The URL cannot be read, or not to its end.
    """
    digest, done = hashlib.sha256(), 0
    # The name first: where the file cannot be written nothing is downloaded.
    with (
        written_whole(Path(dst).expanduser()) as file,
        urlopen(Request(url, headers={"User-Agent": "rgrad.hub"})) as answer,
    ):
        told = answer.headers.get("Content-Length") or ""
        size = int(told) if told.isdecimal() else 0
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if progress:
                sys.stderr.write(f"\r{100 * done / size:.1f}%" if size else f"\r{done} bytes")
        if progress:
            sys.stderr.write("\n")
        if done < size:
            raise OSError(f"hub: the download of {url} ended after {done} of {size} bytes; try again")
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')


def _digits_of(name: str) -> str:
    """The digits of the hash in a file's name.

    Raises:
        ValueError: There are none.
    """
    found = _DIGITS.search(name)
    if found is None:
        raise ValueError(
            f"hub: check_hash=True needs a file name that ends in '-' and eight or more digits of the SHA-256, such as "
            f"net-0123abcd.pth, but it is {name!r}. Give file_name=, or download_url_to_file the hash_prefix"
        )
    return found.group(1)


def _check_kept(file: Path, digits: str) -> None:
    """Compare the hash of a file that was downloaded before.

    Raises:
        RuntimeError: It is another one.
    """
    with open(file, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if not digest.startswith(digits):
        raise RuntimeError(
            f'invalid hash value (expected "{digits}", got "{digest}") of {file}, which was there before. Delete it to '
            "download it anew"
        )


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """What :func:`rgrad.load` reads from a URL. The file is kept, and read from there the next time.

    Args:
        url: What `urllib` opens.
        model_dir: The folder of the file; ``checkpoints`` in :func:`get_dir` if None.
        map_location: As in :func:`rgrad.load`.
        progress: Show how far the download is, on stderr.
        check_hash: Compare the SHA-256 of the file with the digits in its name, ``name-<digits>.pth``, also if it was
            downloaded before.
        file_name: The file's name, if it is not the URL's.
        weights_only: As in :func:`rgrad.load`: False runs what pickled objects of the file say. In PyTorch it is
            False by default.

    Raises:
        RuntimeError: The hash is another one, or the file is none that ``save`` has written.
        ValueError: ``check_hash`` without digits in the name, or the URL has no name.
        OSError: The URL cannot be read.
        Exception: ``pickle.UnpicklingError``, as in :func:`rgrad.load`.
    """
    name = file_name if file_name is not None else Path(urlparse(url).path).name
    if name in ("", ".", ".."):
        raise ValueError(f"hub: {url} ends in no name of a file; give file_name=")
    digits = _digits_of(name) if check_hash else None
    folder = Path(get_dir(), "checkpoints") if model_dir is None else Path(model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    if not file.exists():
        sys.stdout.write(f'Downloading: "{url}" to {file}\n')
        download_url_to_file(url, str(file), digits, progress)
    elif digits is not None:
        _check_kept(file, digits)
    state: dict[str, Any] = _load(file, map_location=map_location, weights_only=weights_only)
    return state
