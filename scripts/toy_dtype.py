"""What a dtype that is computed in another one costs: adds a toy, `uint16` computed in int32, and compiles it.

    python scripts/toy_dtype.py             makes a worktree of HEAD, compiles it with the toy, prints the files
    python scripts/toy_dtype.py --anchors   looks whether the lines that the toy is added to are still there

The files are all that such a dtype needs by hand. The worktree is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LAYOUT = "src/kernels/layout"
CPU = "src/kernels/backend/cpu"


class Edit(NamedTuple):
    """Text that is inserted into a file behind an anchor, which is there once."""

    file: str
    anchor: str
    text: str


EDITS = [
    Edit(
        f"{LAYOUT}/dtype.rs",
        '    F64: "float64" ["double"] "Double" "double", Float 53 f64::MAX, f64, F64, F64, F64, None;\n',
        '    U16: "uint16" [] "UInt16" "unsigned short", Unsigned, u16, I32, I64, U16, None;\n',
    ),
    Edit(f"{LAYOUT}/elem.rs", "integers!(u8 => U8, ", "u16 => U16, "),
    Edit(f"{LAYOUT}/elem.rs", "plain!(u8 ", "u16 "),
    Edit(f"{LAYOUT}/elem.rs", "Bool bool, U8 u8, ", "U16 u16, "),
    Edit(
        f"{CPU}/elem.rs",
        "macro_rules! by_narrow_integer {\n"
        "    ($dtype:expr, $S:ident => $body:expr, _ => $other:expr) => {\n"
        "        match $dtype {\n",
        "            $crate::layout::DType::U16 => {\n"
        "                type $S = u16;\n"
        "                $body\n"
        "            }\n",
    ),
    Edit(f"{CPU}/common/cast/mod.rs", "    i16 as i32 => |x| x as i32;\n", "    u16 as i32 => |x| x as i32;\n"),
    Edit(f"{CPU}/common/cast/mod.rs", "(Bool U8 I8 I16 I32 I64 F16 BF16 F32 F64", " U16"),
    Edit(
        f"{CPU}/common/cast/mod.rs",
        "            i16: I16 => i16: I16, i32: I32, f32: F32;\n",
        "            u16: U16 => i32: I32;\n            i16: U16 => i16: U16;\n            i32: I32 => i16: U16;\n",
    ),
]

#: The tests that run: they go through all dtypes.
TESTS = ("integers_keep_their_low_bits_in_every_pair_of_dtypes", "dtypes_are_matched_only_where_it_is_listed")
KERNEL_TESTS = ("layout::", "every_reduction_of_every_dtype_agrees_with_a_naive_one")


def missing() -> list[str]:
    """The anchors that are not there exactly once."""
    found = []
    for edit in EDITS:
        times = (ROOT / edit.file).read_text(encoding="utf-8").count(edit.anchor)
        if times != 1:
            found.append(f"{edit.file}: {times} times {edit.anchor.strip()!r}")
    return found


def add_toy(tree: Path) -> None:
    for edit in EDITS:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(edit.anchor, edit.anchor + edit.text, 1), encoding="utf-8", newline="\n")


def run(command: list[str], tree: Path) -> None:
    print("+", " ".join(command), flush=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "toy"))
    subprocess.run(command, cwd=tree, check=True, env={**os.environ, "CARGO_TARGET_DIR": target})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anchors", action="store_true", help="look for the anchors alone")
    parser.add_argument("--check", action="store_true", help="compile, and run no test")
    arguments = parser.parse_args()
    if gone := missing():
        print("\n".join(gone))
        return 1
    if arguments.anchors:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "toy"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), "HEAD"], cwd=ROOT, check=True)
        try:
            add_toy(tree)
            run(["cargo", "check", "--workspace", "--release", "--all-targets"], tree)
            if not arguments.check:
                run(["cargo", "test", "-p", "rgrad-kernels", "--release", "--lib", "--", *KERNEL_TESTS], tree)
                run(["cargo", "test", "--release", "--test", "rust", "--", *TESTS], tree)
            changed = subprocess.run(["git", "diff", "--stat"], cwd=tree, check=True, capture_output=True, text=True)
            print(changed.stdout)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
