"""What a family of requests costs: adds a toy of it, compiles it, and counts the files.

    python scripts/toys.py family            adds `mirror`, with a gradient, kernels for both devices, and its binding
    python scripts/toys.py family --check    compiles it, and runs no test
    python scripts/toys.py family --anchors  looks whether the lines that the toy is added to are still there

The files are all that such an addition needs by hand. The worktree is removed at the end.
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
CPU = "src/kernels/backend/cpu"


class Edit(NamedTuple):
    """Text that is inserted into a file behind an anchor, which is there once. Without an anchor: a new file."""

    file: str
    anchor: str
    text: str


class Toy(NamedTuple):
    """What is added, and the tests that know it: those of the core and those of the kernels."""

    edits: list[Edit]
    tests: tuple[str, ...]
    kernel_tests: tuple[str, ...]


CALL, WGPU = "src/kernels/call", "src/kernels/backend/wgpu"
FAMILY = [
    Edit(
        f"{CALL}/mirror.rs",
        "",
        """//! Elements in reverse order.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};

/// The operand's elements in reverse order along the last dimension.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Mirror;

impl Family for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Moved
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some(x)], [Some(o)]) if x == o)
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![Mirror]
    }
}
""",
    ),
    Edit(f"{CALL}/mod.rs", "mod matmul;\n", "mod mirror;\n"),
    Edit(f"{CALL}/mod.rs", "pub use matmul::Matmul;\n", "pub use mirror::Mirror;\n"),
    Edit(f"{CALL}/mod.rs", "    Matmul(Matmul),\n", "    Mirror(Mirror),\n"),
    Edit(
        f"{CPU}/mirror.rs",
        "",
        """//! Elements in reverse order.

use super::common::operands::{result, view};
use super::copy::copy;
use super::family::{CpuFamily, NarrowElements};
use crate::backend::contract::{Operand, View};
use crate::call::Mirror;
use crate::error::Result;

impl CpuFamily for Mirror {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(m: &Mirror, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (x, out) = (view("mirror", ins, 0)?, result(m, outs, 0)?);
        let mut strides = x.strides.to_vec();
        let mut from = x.ptr().cast_const();
        if let (Some(stride), Some(n)) = (strides.last_mut(), x.shape.last()) {
            from = from.wrapping_offset((*n as isize - 1) * *stride * x.dtype.size() as isize);
            *stride = -*stride;
        }
        // SAFETY: the caller's; the last element of each row comes first.
        unsafe { copy(x.dtype, out.dtype, out.shape, from, &strides, out.ptr(), out.strides) };
        Ok(())
    }
}
""",
    ),
    Edit(f"{CPU}/mod.rs", "pub mod mode;\n", "mod mirror;\n"),
    Edit(
        f"{WGPU}/mirror.rs",
        "",
        """//! Elements in reverse order.

use super::common::operands::{operand, output};
use super::copy::copy;
use super::family::{Halves, WgpuFamily};
use super::{BufferView, Context};
use crate::backend::contract::{Operand, View};
use crate::call::Mirror;
use crate::error::Result;
use std::sync::Arc;

impl WgpuFamily for Mirror {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(_: &Mirror, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (x, out) = (operand(ins, 0)?, output(outs, 0)?);
        let mut strides = x.strides.to_vec();
        let mut offset = x.offset as isize;
        if let (Some(stride), Some(n)) = (strides.last_mut(), x.shape.last()) {
            offset += (*n as isize - 1) * *stride;
            *stride = -*stride;
        }
        copy(out, BufferView { offset: offset as usize, strides: &strides, ..x })
    }
}
""",
    ),
    Edit(f"{WGPU}/mod.rs", "pub mod mode;\n", "mod mirror;\n"),
    Edit(
        "src/ops/mirror.rs",
        "",
        """//! Elements in reverse order along the last dimension.

use super::declared::declare;
use crate::array::Array;
use crate::autograd::{Arrays, Grads, Name, Op, Tangent, Tensor, Vjp, VjpCx, apply1};
use crate::call::{self, Request};
use crate::error::Result;
use smallvec::smallvec;

#[derive(Debug, Clone)]
struct Mirror;

impl Vjp for Mirror {
    fn node_name(&self) -> Name {
        "MirrorBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(mirror).transpose()?])
    }
}

impl Op for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![Array::request1(Request::Mirror(call::Mirror), &x[..1], x[0].shape(), x[0].dtype())?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(Mirror)
    }
}

/// The elements in reverse order along the last dimension.
pub fn mirror(x: &Tensor) -> Result<Tensor> {
    apply1(&Mirror, &[x])
}

declare! {
    /// The elements in reverse order along the last dimension.
    fn mirror(input: &Tensor) -> Tensor = mirror;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_in_reverse_order_and_so_do_gradients() {
        let x = Tensor::new(Array::from_slice(&[1.0f64, 2.0, 3.0, 4.0], &[2, 2]).unwrap());
        assert_eq!(mirror(&x).unwrap().array().to_vec::<f64>().unwrap(), [2.0, 1.0, 4.0, 3.0]);
    }
}
""",
    ),
    Edit("src/ops/mod.rs", "pub mod memory_format;\n", "pub mod mirror;\n"),
    Edit("src/ops/mod.rs", "    matmul::DECLARED,\n", "    mirror::DECLARED,\n"),
    # The list of which test compares each family with the reference; a real one has a test there.
    Edit("tests/rust/contract_kinds.rs", "        RequestKind::Custom", " | RequestKind::Mirror"),
]

TOYS = {
    "family": Toy(FAMILY, ("rooms::",), ()),
}


def missing(toy: Toy) -> list[str]:
    """The anchors that are not there exactly once."""
    found = []
    for edit in toy.edits:
        if edit.anchor:
            times = (ROOT / edit.file).read_text(encoding="utf-8").count(edit.anchor)
            if times != 1:
                found.append(f"{edit.file}: {times} times {edit.anchor.strip()!r}")
    return found


def add(toy: Toy, tree: Path) -> None:
    for edit in toy.edits:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8") if edit.anchor else ""
        after = text.replace(edit.anchor, edit.anchor + edit.text, 1) if edit.anchor else edit.text
        path.write_text(after, encoding="utf-8", newline="\n")


def run(command: list[str], tree: Path) -> None:
    print("+", " ".join(command), flush=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "toy"))
    subprocess.run(command, cwd=tree, check=True, env={**os.environ, "CARGO_TARGET_DIR": target})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("toy", choices=TOYS, help="what is added")
    parser.add_argument("--anchors", action="store_true", help="look for the anchors alone")
    parser.add_argument("--check", action="store_true", help="compile, and run no test")
    arguments = parser.parse_args()
    toy = TOYS[arguments.toy]
    if gone := missing(toy):
        print("\n".join(gone))
        return 1
    if arguments.anchors:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "toy"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), "HEAD"], cwd=ROOT, check=True)
        try:
            add(toy, tree)
            run(["cargo", "check", "--workspace", "--release", "--all-targets"], tree)
            if not arguments.check:
                if toy.kernel_tests:
                    run(["cargo", "test", "-p", "rgrad-kernels", "--release", "--lib", "--", *toy.kernel_tests], tree)
                run(["cargo", "test", "--release", "--test", "rust", "--", *toy.tests], tree)
            subprocess.run(["git", "add", "--all"], cwd=tree, check=True)
            changed = ["git", "diff", "--cached", "--stat"]
            print(subprocess.run(changed, cwd=tree, check=True, capture_output=True, text=True).stdout)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
