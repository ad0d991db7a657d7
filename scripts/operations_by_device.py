"""Write docs/operations-by-device.md: what each backend answers to each kind of request, dtype by dtype.

    python scripts/operations_by_device.py            # writes the page
    python scripts/operations_by_device.py --check    # exits with 1 if the page is not up to date

Nothing is kept by hand: the backends say what they support (`Backend::support` in src/kernels/backend/contract.rs).
That they do what they say is tested by running every operation of the test suite's table for every dtype on both
devices (tests/python/wgpu/test_wgpu_package.py). Needs an adapter with 64-bit floats and integers, such as Mesa's
software adapter.
"""

from __future__ import annotations

import sys

from kept import ROOT, line, main

PAGE = ROOT / "docs" / "operations-by-device.md"
DEVICES = ("cpu", "wgpu")

HEAD = """\
# Operations by device and dtype

Written by `scripts/operations_by_device.py` from what the backends say of themselves; do not edit. Every operation of
the Python interface is made of the requests below, so it runs on a device for a dtype if they do. PyTorch's type
promotion comes first: an integer tensor that `sin` is asked of becomes float32, and is then a float32 request.

`meta` takes what `cpu` takes, and computes nothing. float64 on wgpu needs an adapter that has it; see
[devices.md](devices.md).

"""

Answers = dict[tuple[str, str], str]


def answers() -> tuple[list[str], dict[str, Answers], set[str]]:
    """The dtypes, for each request what each device says to each dtype, and which of them are pointwise rows."""
    from rgrad import _core

    dtypes: list[str] = []
    rows: set[str] = set()
    table: dict[str, Answers] = {}
    for request, is_row, dtype, device, answer in _core._support_table(list(DEVICES)):
        if dtype not in dtypes:
            dtypes.append(dtype)
        if is_row:
            rows.add(request)
        table.setdefault(request, {})[dtype, device] = answer
    return dtypes, table, rows


def page() -> str:
    """The text of docs/operations-by-device.md."""
    dtypes, table, rows = answers()
    notes: list[str] = []

    def cell(of: Answers, dtype: str) -> str:
        here, there = (of[dtype, d] for d in DEVICES)
        shown = [("", here)] if here == there else list(zip((f"{d}: " for d in DEVICES), (here, there), strict=True))
        parts = []
        for where, answer in shown:
            text = "yes" if not answer.startswith("no: ") else "-"
            if answer != "yes":
                reason = answer.removeprefix("no: ")
                if reason not in notes:
                    notes.append(reason)
                text += f" ({notes.index(reason) + 1})"
            parts.append(where + text)
        return ", ".join(parts)

    text = HEAD + "## Requests\n\n" + line(["request", *dtypes]) + line(["---"] * (1 + len(dtypes)))
    for name, of in table.items():
        if name not in rows:
            text += line([f"`{name}`", *(cell(of, d) for d in dtypes)])
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, of in table.items():
        if name in rows:
            groups.setdefault(tuple(cell(of, d) for d in dtypes), []).append(f"`{name}`")
    text += "\n## Pointwise rows, by the dtype that they compute in\n\n"
    text += line(["rows", *dtypes]) + line(["---"] * (1 + len(dtypes)))
    for cells, names in groups.items():
        text += line([" ".join(names), *cells])
    return text + "\n" + "".join(f"{n}. {note}\n" for n, note in enumerate(notes, 1))


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, page))
