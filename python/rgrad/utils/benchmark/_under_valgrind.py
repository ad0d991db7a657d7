"""The process that valgrind runs for `Timer.collect_callgrind`: it switches the counting on and off around a loop."""

from __future__ import annotations

import ctypes
import mmap
import pickle
import sys
import timeit
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A request to valgrind on x86-64, as valgrind.h has it: rax is the address of six words, the request first. Rotations
# of rdi by 128 bits in all and the exchange of rbx with itself change nothing, and valgrind knows them. The answer is
# in rdx. As a function: mov rax, rdi; xor edx, edx; rol rdi by 3, 13, 61, 51; xchg rbx, rbx; mov rax, rdx; ret.
_REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
_RUNNING_ON_VALGRIND = 0x1001
_CALLGRIND = ord("C") << 24 | ord("T") << 16
_DUMP, _ZERO, _TOGGLE = _CALLGRIND, _CALLGRIND + 1, _CALLGRIND + 2

_Words = ctypes.c_uint64 * 6


def _requests() -> Callable[[int], int]:
    """A function that sends requests. It holds its code, which lies in memory of its own."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(_REQUEST)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(start)

    def request(number: int, _held: mmap.mmap = memory) -> int:
        words = _Words(number)
        return int(call(ctypes.addressof(words)))

    return request


def _run(job: dict[str, Any]) -> None:
    import rgrad

    from .measurement import set_torch_threads

    names: dict[str, Any] = {"rgrad": rgrad, "torch": rgrad}
    for name, file, setup in job["globals"]:
        if setup is not None:
            exec(setup, names)
        names[name] = pickle.loads(Path(file).read_bytes())
    request = _requests()
    if not request(_RUNNING_ON_VALGRIND):
        raise RuntimeError("the process does not run under valgrind")

    def toggle() -> float:
        """What `timeit` takes for a clock: it is called right before and right after the loop."""
        request(_TOGGLE)
        return 0.0

    with set_torch_threads(job["threads"]), rgrad.fusion(False):
        statements = [job["stmt"]] * job["repeats"] + ["pass"] * job["baseline"]
        for stmt in statements:
            timeit.Timer(stmt, job["setup"], globals=names).timeit(min(job["number"], 10))
            request(_ZERO)
            timeit.Timer(stmt, job["setup"], timer=toggle, globals=names).timeit(job["number"])
            request(_DUMP)


def main() -> None:
    """Run the job of the folder that the command line names; what goes wrong is written there."""
    folder = Path(sys.argv[1])
    try:
        _run(pickle.loads((folder / "job").read_bytes()))
    except BaseException:
        (folder / "error").write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
        raise
