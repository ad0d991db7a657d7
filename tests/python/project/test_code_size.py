"""The script that tells how many bytes of code each family has."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from loading import ROOT, load

code_size = load("scripts/code_size.py")


def mangled(*parts: str) -> str:
    """A symbol as rustc 1.95 writes it."""
    return "_ZN" + "".join(f"{len(p)}{p}" for p in [*parts, "h0123456789abcdef"]) + "E"


CLOSURE = "_$u7b$$u7b$closure$u7d$$u7d$"
DISPLAY = "_$LT$rgrad..layout..DType$u20$as$u20$core..fmt..Display$GT$"
DROP = "drop_in_place$LT$rgrad..autograd..Node$GT$"
# Symbols, what they are for people, and their families. The last ones were taken from a module.
SYMBOLS = [
    (
        mangled("rgrad_kernels", "backend", "cpu", "reduce", "loops", "rows"),
        "rgrad_kernels::backend::cpu::reduce::loops::rows",
        "cpu reduce",
    ),
    (
        mangled("rgrad_kernels", "backend", "cpu", "reduce", CLOSURE),
        "rgrad_kernels::backend::cpu::reduce::{{closure}}",
        "cpu reduce",
    ),
    (mangled("rgrad_kernels", "backend", "cpu", "scan", "down"), "rgrad_kernels::backend::cpu::scan::down", "cpu scan"),
    (
        mangled("rgrad_kernels", "backend", "cpu", "arg_reduce", "extreme"),
        "rgrad_kernels::backend::cpu::arg_reduce::extreme",
        "cpu arg_reduce",
    ),
    (mangled("rgrad_kernels", "backend", "cpu", "cast", "avx2"), "rgrad_kernels::backend::cpu::cast::avx2", "cpu cast"),
    (
        mangled("rgrad_kernels", "host", "memory", "alloc", "take"),
        "rgrad_kernels::host::memory::alloc::take",
        "host",
    ),
    (
        mangled("rgrad_kernels", "backend", "wgpu", "device", "context", "new"),
        "rgrad_kernels::backend::wgpu::device::context::new",
        "wgpu",
    ),
    (mangled("rgrad", "python", "tensor", "add"), "rgrad::python::tensor::add", "python layer"),
    (mangled("rgrad", "error", "Error", "new"), "rgrad::error::Error::new", "rest"),
    (mangled(DISPLAY, "fmt"), "<rgrad::layout::DType as core::fmt::Display>::fmt", "layout"),
    (mangled("core", "ptr", DROP), "core::ptr::drop_in_place<rgrad::autograd::Node>", "autograd"),
    (mangled("gemm_f32", "gemm", "kernel"), "gemm_f32::gemm::kernel", "cpu matmul"),
    (mangled("pyo3", "impl_", "method"), "pyo3::impl_::method", "python layer"),
    (
        "_RNvNtNtNtCsgEmfK2I1SDS_13rgrad_kernels7backend3cpu4cast5mover",
        "rgrad_kernels::backend::cpu::cast::mover",
        "cpu cast",
    ),
    (
        "_ZN64_$LT$smallvec..SmallVec$LT$A$GT$$u20$as$u20$core..fmt..Debug$GT$3fmt17h331b0414d7ef3053E",
        "<smallvec::SmallVec<A> as core::fmt::Debug>::fmt",
        "std and dependencies",
    ),
    (
        "_RINvMNtNtCsgEmfK2I1SDS_4core5sliceSh11copy_withinINtNtNtB5_3ops5range14RangeInclusivejEECsfEOYDRpO4Ta_11miniz_oxide",
        "core::slice::copy_within::ops::range::RangeInclusive::miniz_oxide",
        "std and dependencies",
    ),
    ("mi_malloc", "mi_malloc", "std and dependencies"),
]


def elf(functions: list[tuple[str, int]], code: int = 4096) -> bytes:
    """A file with a section of code, and with a table of these symbols if there are any."""
    names, table = b"\0", b"\0" * 24
    for i, (name, size) in enumerate(functions):
        table += struct.pack("<IBBHQQ", len(names), 2, 0, 1, 4096 + 64 * i, size)
        names += name.encode() + b"\0"
    text = b"\xcc" * code
    sections = [(0, 0, b"", 0, 0), (1, 2 | 4, text, 0, 0)]
    if functions:
        sections += [(2, 0, table, 3, 24), (3, 0, names, 0, 0)]
    body, headers = b"", b""
    for kind, flags, content, link, entry in sections:
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, flags, 0, 64 + len(body), len(content), link, 0, 1, entry)
        body += content
    at = 64 + len(body)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(sections), 0)
    return head + body + headers


@pytest.mark.parametrize(("symbol", "name", "family"), SYMBOLS)
def test_symbols_are_read_and_grouped(symbol: str, name: str, family: str) -> None:
    assert code_size.readable(symbol) == name
    assert code_size.family(name) == family


def test_each_function_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module.so"
    path.write_bytes(elf([(symbol, 1000 * (i + 1)) for i, (symbol, _, _) in enumerate(SYMBOLS)]))
    found = code_size.read_elf(path.read_bytes())
    sizes = code_size.by_family(found.functions)
    want: dict[str, int] = {}
    for i, (_, _, family) in enumerate(SYMBOLS):
        want[family] = want.get(family, 0) + 1000 * (i + 1)
    assert sizes == want
    assert 4096 <= found.stripped < 5000 < len(path.read_bytes())
    assert code_size.main([str(path), "--largest", "1"]) == 0
    printed = capsys.readouterr().out
    assert f"{sum(want.values()) / 1e6:.3f} MB  all code" in printed
    assert "17000  mi_malloc" in printed


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module.so"
    # Stripped, too: the size is asked for then, and nothing else can be told.
    for functions in ([("mi_malloc", 8)], []):
        path.write_bytes(elf(functions, code=2_000_000))
        assert code_size.main([str(path), "--max-mb", "2.1"]) == 0
        assert code_size.main([str(path), "--max-mb", "1.9"]) == 1
        assert "more than the 1.9 MB" in capsys.readouterr().err
    assert code_size.main([str(path)]) == 2
    assert "CARGO_PROFILE_SHIPPED_STRIP=none" in capsys.readouterr().err


def test_what_is_no_elf_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module.so"
    for content in (b"", b"MZ" + bytes(100), b"\x7fELF\x01" + bytes(100), elf([("f", 1)])[:2000]):
        path.write_bytes(content)
        assert code_size.main([str(path)]) == 2
    assert code_size.main([str(tmp_path / "missing")]) == 2
    assert "code_size:" in capsys.readouterr().err


def test_the_families_name_rooms_that_exist() -> None:
    names = [room.replace("::", "/") for room in code_size.ROOMS]
    assert [n for n in names if not any((ROOT / "src" / top / n).is_dir() for top in ("", "kernels"))] == []
