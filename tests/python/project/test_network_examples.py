"""The examples of networks, on small data: what they print, what they leave, and that they run on every device."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest

import rgrad
from loading import load
from places import ROOT

pytest.importorskip("matplotlib")
load_digits = pytest.importorskip("sklearn.datasets").load_digits
pytest.importorskip("tqdm")

EXAMPLES = ROOT / "examples"


def run(name: str, out: Path, device: str, *options: str) -> str:
    """What an example prints; its picture and its progress bar are checked here."""
    command = [sys.executable, EXAMPLES / f"{name}.py", "--device", device, "--out", out, *options]
    # Each thread that gets to work holds buffers of its own, so that on a busy machine the peak would vary.
    one = {**os.environ, "RGRAD_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out, env=one)
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
    (here, peak), (there, other) = (
        numbers(rf"(?m)^{name} .*% +([\d.]+) MiB +([\d.]+) MiB", text) for name in ("fused", "unfused")
    )
    assert less == pytest.approx(100 * (1 - here / there), abs=1)
    assert 40 <= less < 60
    # The outputs of the two convolutions of 64 digits: 32 images of 6x6, 64 of 4x4. They are what is not held.
    assert there - here == pytest.approx(64 * (32 * 36 + 64 * 16) * 4 / 2**20, rel=0.1)
    assert min(peak, other) > there
    assert peak < 1.2 * other
    (fused,), (unfused,) = (numbers(rf"(?m)^{name} +([\d.]+)%", text) for name in ("fused", "unfused"))
    assert abs(fused - unfused) <= 2
    assert fused >= (60 if device == "wgpu" else 90)


def check_residual_network_and_its_memory(device: str, tmp_path: Path) -> None:
    few = ["--steps", "1", "--batch-size", "4", "--test-batches", "3"]
    text = run("resnet", tmp_path, device, *(few if device == "wgpu" else ["--steps", "40", "--batch-size", "16"]))
    assert "resnet18: 11,181,642 parameters" in text
    graphs, none = numbers(r"([\d.]+) MiB with graphs, ([\d.]+) MiB under no_grad", text)
    assert graphs > 1
    assert none < 0.1
    if device == "cpu":
        first, last = numbers(r"loss ([\d.]+) at first, ([\d.]+) after", text)
        assert last < 0.6 * first
        (right,) = numbers(r"accuracy in eval mode ([\d.]+)%", text)
        assert right >= 60
        # A batch more, and the memory that its graph holds.
        example = load("examples/resnet.py")
        args = argparse.Namespace(batch_size=4, device="cpu")
        model, images = example.models.resnet18(num_classes=10).eval(), example.colour_images(32, False)
        held = example.test(model, images[0][:12], images[1][:12], args, grad=True)[1]
        assert [bytes_ // held[0] for bytes_ in held] == [1, 2, 3]
        flat = example.test(model, images[0][:12], images[1][:12], args, grad=False)[1]
        assert max(flat) < 1000


def check_characters(device: str, tmp_path: Path) -> None:
    steps = "6" if device == "wgpu" else "60"
    text = run("characters", tmp_path, device, "--steps", steps, "--write", "40", "--batch-size", "8")
    loss, guessing, shares = numbers(
        r"test loss ([\d.]+) nats per letter; guessing gives ([\d.]+), the frequencies of letters ([\d.]+)", text
    )
    counts = np.array(list(Counter("\n".join(topics[name] for name in sorted(topics))).values()))
    found = counts / counts.sum()
    assert guessing == pytest.approx(np.log(len(counts)), abs=1e-3)
    assert shares == pytest.approx(-(found * np.log(found)).sum(), abs=1e-3)
    if device == "cpu":
        assert loss < shares - 0.2, "it knows no more than how frequent letters are"
    else:
        assert loss < guessing - 0.5
    assert len(text.split("\n\n", 1)[1].rstrip("\n")) == len("The ") + 40


def check_autoencoder(device: str, tmp_path: Path) -> None:
    text = run("autoencoder", tmp_path, device, "--epochs", "2" if device == "wgpu" else "4")
    first, last = numbers(r"mean squared error ([\d.]+) after one epoch, ([\d.]+)", text)
    assert last < first
    (right,) = numbers(r"frozen features ([\d.]+)%", text)
    if device == "wgpu":
        assert right >= 60
        return
    assert right >= 80
    # The mean image is what can be said without the code.
    images = load_digits(return_X_y=True)[0] / 16
    assert last < 0.8 * images.var(0).mean()


def check_forecast(device: str, tmp_path: Path) -> None:
    text = run("forecast", tmp_path, device, *(["--steps", "10", "--ahead", "60"] if device == "wgpu" else []))
    first, last = numbers(r"number ([\d.]+) at first, ([\d.]+) in the end", text)
    assert last < first * (0.9 if device == "wgpu" else 0.2)
    error, mean, constant = numbers(r"ahead ([\d.]+); saying their mean ([\d.]+), .* number ([\d.]+)", text)
    rgrad.manual_seed(0)
    series = load("examples/forecast.py").make_series(1500, noise=0.03).numpy().astype(float)
    count = 60 if device == "wgpu" else 100
    known, ahead = series[:-count], series[-count:]
    assert mean == pytest.approx(ahead.var(), abs=1e-4)
    assert constant == pytest.approx(((ahead - known[-1]) ** 2).mean(), abs=1e-4)
    assert error >= 0.5 * 0.03**2, "less than the noise cannot be had"
    if device == "cpu":
        assert error < 0.5 * min(mean, constant)


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
