"""The examples of networks, on small data: what they print, what they leave, and that they run on every device."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from places import ROOT

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")
pytest.importorskip("tqdm")

EXAMPLES = ROOT / "examples"


def run(name: str, out: Path, device: str, *options: str) -> str:
    """What an example prints; its picture and its progress bar are checked here."""
    command = [sys.executable, EXAMPLES / f"{name}.py", "--device", device, "--out", out, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    assert done.returncode == 0, done.stderr
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert re.search(r"\d+/\d+", done.stderr), "the progress bar is missing"
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found is not None, text
    return [float(group) for group in found.groups()]


def check_fused_convolution_holds_less_and_learns_the_same(device: str, tmp_path: Path) -> None:
    text = run("fused_conv_bn", tmp_path, device, "--epochs", "1" if device == "wgpu" else "3")
    assert "gradients of FusedConvBN2D are right" in text
    (less,) = numbers(r"fused holds ([\d.]+)% less", text)
    assert less >= 40
    (fused,), (unfused,) = (numbers(rf"(?m)^{name} +([\d.]+)%", text) for name in ("fused", "unfused"))
    assert abs(fused - unfused) <= 2
    assert fused >= (60 if device == "wgpu" else 90)


def check_residual_network_and_its_memory(device: str, tmp_path: Path) -> None:
    few = ["--steps", "1", "--batch-size", "4", "--test-batches", "3"]
    text = run("resnet", tmp_path, device, *(few if device == "wgpu" else ["--steps", "12", "--batch-size", "16"]))
    assert "resnet18: 11,181,642 parameters" in text
    graphs, none = numbers(r"([\d.]+) MiB with graphs, ([\d.]+) MiB under no_grad", text)
    assert graphs > 1
    assert none < 0.1
    if device == "cpu":
        first, last = numbers(r"loss ([\d.]+) at first, ([\d.]+) after", text)
        assert last < first


def check_characters(device: str, tmp_path: Path) -> None:
    steps = "6" if device == "wgpu" else "60"
    text = run("characters", tmp_path, device, "--steps", steps, "--write", "40", "--batch-size", "8")
    loss, guessing = numbers(r"test loss ([\d.]+) nats per letter; guessing gives ([\d.]+)", text)
    assert loss < guessing - (0.5 if device == "wgpu" else 1.5)
    assert len(text.split("\n\n", 1)[1].rstrip("\n")) == len("The ") + 40


def check_autoencoder(device: str, tmp_path: Path) -> None:
    text = run("autoencoder", tmp_path, device, "--epochs", "2" if device == "wgpu" else "4")
    first, last = numbers(r"mean squared error ([\d.]+) after one epoch, ([\d.]+)", text)
    assert last < first
    (right,) = numbers(r"frozen features ([\d.]+)%", text)
    assert right >= 60


def check_forecast(device: str, tmp_path: Path) -> None:
    text = run("forecast", tmp_path, device, "--steps", "10" if device == "wgpu" else "120", "--ahead", "60")
    first, last = numbers(r"number ([\d.]+) at first, ([\d.]+) in the end", text)
    assert last < first * (0.9 if device == "wgpu" else 0.1)


def test_bad_options_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "characters.py", "--out", tmp_path, "--width", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--width" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


CHECKS = [
    check_fused_convolution_holds_less_and_learns_the_same,
    check_residual_network_and_its_memory,
    check_characters,
    check_autoencoder,
    check_forecast,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_the_cpu(check: Callable[[str, Path], None], tmp_path: Path) -> None:
    check("cpu", tmp_path)


@pytest.mark.rotate
@pytest.mark.wgpu
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_wgpu(check: Callable[[str, Path], None], tmp_path: Path) -> None:
    check("wgpu", tmp_path)
