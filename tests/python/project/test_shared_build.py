"""Rust's tests and the Python module share one compiled `rgrad-kernels`, which takes minutes (Cargo.toml says how)."""

from __future__ import annotations

import subprocess

from places import ROOT


def features(*asked: str) -> dict[str, set[str]]:
    """The features of every crate under `rgrad-kernels`, as cargo resolves them with the options `asked`."""

    def tree(*options: str) -> dict[str, set[str]]:
        done = subprocess.run(
            ["cargo", "tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}|{f}", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, set[str]] = {}
        for line in done.stdout.splitlines():
            crate, bar, features = line.removesuffix(" (*)").partition("|")
            if bar:
                found.setdefault(" ".join(crate.split()[:2]), set()).add(features)
        return found

    under = tree("--package", "rgrad-kernels", "--edges", "normal,build")
    return {crate: found for crate, found in tree(*asked).items() if crate in under}


def test_the_kernels_are_compiled_once() -> None:
    module = features("--package", "rgrad", "--features", "python", "--edges", "normal,build")
    for others in (
        ("--package", "rgrad"),
        ("--package", "rgrad-kernels"),
        ("--workspace",),
        ("--workspace", "--features", "python"),
    ):
        tests = features(*others, "--edges", "normal,build,dev")
        assert module.keys() <= tests.keys()
        # A crate of which macros (built for the machine) and code (for the target) ask other features is there twice.
        assert {crate: found - tests[crate] for crate, found in module.items() if found - tests[crate]} == {}, others
