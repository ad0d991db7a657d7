"""The gates of scripts/gates: what counts as a difference between two files, and that there are cases to run."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rgrad
from loading import load
from places import ROOT


def gate(name: str) -> ModuleType:
    return load(f"scripts/gates/{name}.py")


records, kernels, counts = gate("records"), gate("kernels"), gate("counts")


def differs(name: str, before: dict[str, Any], after: dict[str, Any], **options: Any) -> tuple[str, bool]:
    lines, same = records.compare(records.Record(name, before), records.Record(name, after), **options)
    return "\n".join(lines), same


def test_counts_may_grow_by_half_a_percent() -> None:
    assert differs("counts", {"add": 1000.0}, {"add": 1005.0})[1]
    told, same = differs("counts", {"add": 1000.0, "mul": 500.0}, {"add": 1006.0, "mul": 400.0})
    assert not same
    assert "CHANGED  add: 1,000 -> 1,006 (+0.60 %)" in told
    assert "note     mul" in told  # less is no failure
    assert differs("counts", {"add": 1000.0}, {"add": 1006.0}, allowed=1.0)[1]


def test_any_other_hash_fails() -> None:
    assert differs("hashes", {"a": "x" * 64}, {"a": "x" * 64, "b": "y" * 64}) == (
        "new      b\nhashes: 1 cases, 0 fail",
        True,
    )
    told, same = differs("hashes", {"a": "x" * 64}, {"a": "RuntimeError"})
    assert not same
    assert f"CHANGED  a: {'x' * 12} -> RuntimeError" in told
    many = {str(i): "x" * 64 for i in range(60)}
    told, same = differs("hashes", many, {}, most=50)
    assert not same
    assert "missing  49" in told
    assert "missing  50" not in told
    assert "and 10 more" in told


def test_a_kernel_is_lost_when_it_has_less_than_half_of_its_share() -> None:
    assert differs("kernels", {"row": {"a": 0.6, "b": 0.11}}, {"row": {"a": 0.4, "c": 0.12}})[1]
    told, same = differs("kernels", {"row": {"a": 0.6}}, {"row": {"b": 0.5, "a": 0.1}})
    assert not same
    assert "lost a; new b" in told


def test_only_the_total_of_sizes_fails() -> None:
    before = {"norms": 1000, "casts": 9000, "all code": 10000}
    told, same = differs("sizes", before, {"norms": 1100, "casts": 8950, "all code": 10050})
    assert same
    assert "note     norms" in told
    assert not differs("sizes", before, {"norms": 1000, "casts": 9000, "all code": 10200})[1]


def test_files_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    records.write(path, "counts", [{"case": "a", "value": 1.5}, {"case": "b", "value": 2}], module="m")
    assert records.read(path) == records.Record("counts", {"a": 1.5, "b": 2})
    assert len(path.read_text().splitlines()) == 3
    for text in ("", "{}", "[1]", '{"gate": "counts"}\n{"case": 1}', "no json"):
        path.write_text(text)
        with pytest.raises(records.NoRecord):
            records.read(path)
    counted, sized = records.Record("counts", {}), records.Record("sizes", {})
    with pytest.raises(records.NoRecord, match="the other of sizes"):
        records.compare(counted, sized)


def test_symbols_become_paths_below_the_backend() -> None:
    inside = "rgrad_kernels::backend::cpu::"
    assert kernels.kernel(f"{inside}matmul::packed::tile::multiply::avx512") == "matmul::packed::tile::multiply::avx512"
    assert kernels.kernel(f"{inside}scan::down::h0123456789abcdef") == "scan::down"
    assert kernels.kernel(f"{inside}norm::rows<f32>::run") == "norm::rows::run"
    assert kernels.kernel(f"<{inside}sort::Key<T> as core::cmp::Ord>::cmp") == "sort::Key"
    assert kernels.kernel(f"{inside}threads::pool::Seats::attend") == ""
    assert kernels.kernel("_PyEval_EvalFrameDefault") == ""
    samples = [f"{inside}scan::down"] * 60 + ["main"] * 36 + [f"{inside}copy::rows"] * 4
    assert kernels.shares(samples) == {"scan::down": 0.6}


def test_programs_that_are_counted_run() -> None:
    for name in counts.PROGRAMS:
        text = counts.script(name).replace(f"range({counts.BLOCKS})", "range(1)")
        text = text.replace(f"run({counts.ITERATIONS})", "run(1)").replace(f"run({counts.WARM_UP})", "run(1)")
        threads = rgrad.get_num_threads()
        try:
            exec(compile(text, name, "exec"), {})
        finally:
            gc.enable()
            rgrad.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
def test_cases_and_rows_are_found() -> None:
    sys.path.append(str(ROOT / "scripts" / "gates"))
    table, hashes, kit = gate("case_table"), gate("hashes"), gate("case_kit")
    made = list(hashes.all_cases())
    names = Counter(case.name for case in made)
    assert [name for name, n in names.items() if n > 1] == []
    assert len(names) > 30000
    # Every pointwise row that is written in Rust is read, and called.
    rows = table.rows()
    assert len(rows) > 110
    assert all(row.inputs for row in rows)
    assert [row.name for row in rows if table.call_of(row) is None] == []
    # One case of each family gives results, and gives them twice.
    firsts = {case.name.partition("/")[0].partition(" ")[0]: case for case in reversed(made) if "float32" in case.name}
    for case in firsts.values():
        value = kit.digest(case)
        assert len(value) == 64, f"{case.name}: {value}"
        assert value == kit.digest(case), case.name
    assert len(kernels.rows()) > 100
