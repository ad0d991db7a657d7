"""What the examples print is what an independent computation gives; test_network_examples.py has those of networks."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solveh_banded
from scipy.optimize import rosen, rosen_der, rosen_hess

import rgrad
from loading import load
from places import ROOT

EXAMPLES = ROOT / "examples"
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(str(word) for word in command)],
        cwd=cwd,
        env={**os.environ, "MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def printed(name: str, *options: str, cwd: Path | None = None) -> str:
    done = run(EXAMPLES / f"{name}.py", *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    """All numbers of the line, or lines, that a pattern matches; ``#`` in it stands for a number."""
    found = re.findall(pattern.replace("#", f"({NUMBER})"), text)
    assert found, text
    return [float(number) for match in found for number in ([match] if isinstance(match, str) else match)]


# By name: what is run and looked at.
CHECKS: dict[str, Callable[[Path], None]] = {}


def check(function: Callable[[Path], None]) -> Callable[[Path], None]:
    CHECKS[function.__name__] = function
    return function


@check
def newton(tmp_path: Path) -> None:
    valley, chain = printed("newton").split("\n\n")
    # A minimum, of which the text shows nine digits: no slope, and every curvature is positive.
    x = np.array([float(n) for n in re.findall(NUMBER, valley.rpartition("minimum at")[2])])
    assert np.abs(rosen_der(x)).max() < 1e-5
    assert np.linalg.eigvalsh(rosen_hess(x)).min() > 0
    values = numbers(r"f = #", valley)
    assert values[0] == pytest.approx(rosen([-1.2, 1.0, -1.2, 1.0]), rel=1e-3)
    assert values[-1] == pytest.approx(rosen(x), abs=1e-9)
    assert all(b < a * 1.001 for a, b in pairwise(values)), "a step went uphill"
    slopes, curvatures = numbers(r"slope #", valley), numbers(r"curvature +#", valley)
    assert slopes[-1] < 1e-10
    assert curvatures[-1] == pytest.approx(np.linalg.eigvalsh(rosen_hess(x)).min(), abs=2e-3)
    assert min(curvatures) < 0, "the way leads through a place where plain steps would go uphill"
    assert slopes[-2] < slopes[-3] ** 1.5, "the number of digits doubles"

    # The chain by banded matrices.
    pull = 2 * np.sin(np.linspace(0, 2 * np.pi, 2000))
    at = np.zeros(2000)
    for _ in range(20):
        between = 2 * np.diff(at)
        slope = np.sinh(at) - pull + np.r_[0, between] - np.r_[between, 0]
        diagonal = np.cosh(at) + 2 * np.r_[1, np.full(1998, 2), 1]
        at -= solveh_banded(np.array([np.r_[0, np.full(1999, -2)], diagonal]), slope)
    found = re.findall(rf"x\[(\d+)\] = ({NUMBER})", chain)
    assert len(found) == 5
    for place, value in found:
        assert float(value) == pytest.approx(at[int(place)], abs=1e-8)
    assert numbers(r"largest slope #", chain)[-1] < 1e-9


@check
def custom_function(tmp_path: Path) -> None:
    text = printed("custom_function")
    np.testing.assert_allclose(numbers(r"y       = tensor\(\[#, #\]", text), np.exp([0, 1]), atol=1e-4)
    exp, scaled = re.findall(r"x\.grad  = tensor\((.*?)\)", text)
    np.testing.assert_allclose(json.loads(exp), np.exp([0, 1]), atol=1e-4)
    np.testing.assert_allclose([float(n) for n in re.findall(NUMBER, scaled)], [-0.1 * 4], atol=1e-4)
    assert "grad_fn=<ExpBackward>" in text
    assert numbers(r"r, φ    = # #", text) == pytest.approx([5, math.atan2(4, 3)], rel=1e-6)
    assert numbers(r"dr/dx   = #   dr/dy   = #", text) == pytest.approx([3 / 5, 4 / 5], rel=1e-6)
    assert numbers(r"dφ/dx   = #", text) == pytest.approx([-4 / 25], rel=1e-6)
    assert re.search(r"^Exp +True\nPolar +True\ntwice +True True\nWrongExp Jacobian mismatch", text, re.MULTILINE)
    assert "ValueError: no idea what the gradient is" in text
    # The note names the line of the forward call.
    source = (EXAMPLES / "custom_function.py").read_text(encoding="utf-8").splitlines()
    line = next(n for n, words in enumerate(source, 1) if "this is the line that the note below names" in words)
    assert re.search(rf"custom_function\.py.*\b{line}\b", text), text


@check
def mlp_regression(tmp_path: Path) -> None:
    example = load("examples/mlp_regression.py")
    text = printed("mlp_regression", "--steps", "300")
    losses = numbers(r"loss #", text)
    assert losses[-1] < losses[0] / 20
    (error, noise) = numbers(r"against the curve itself: # \(the noise in the data: #\)", text)
    assert error < noise / 2
    assert losses[-1] == pytest.approx(noise**2, rel=0.5), "what is left is the noise"
    x, y = (t.numpy().astype(float) for t in example.make_data(4000, rgrad.Generator().manual_seed(0)))
    assert (y - np.sin(3 * x) - x / 2).std() == pytest.approx(noise, rel=0.05)
    assert [x.min(), x.max()] == pytest.approx([-2, 2], abs=0.01)


@check
def per_sample_gradients(tmp_path: Path) -> None:
    text = printed("per_sample_gradients")
    assert re.findall(r"^(\S+) +(\(.*\))$", text, re.MULTILINE) == [
        ("0.weight", "(64, 32, 20)"),
        ("0.bias", "(64, 32)"),
        ("2.weight", "(64, 2, 32)"),
        ("2.bias", "(64, 2)"),
    ]
    # The same gradients by the chain rule.
    model, inputs, labels = load("examples/per_sample_gradients.py").train(64)
    w1, b1, w2, b2 = (p.detach().numpy().astype(float) for p in model.parameters())
    x, y = inputs.numpy().astype(float), labels.numpy()
    hidden = np.tanh(x @ w1.T + b1)
    scores = np.exp(hidden @ w2.T + b2)
    at_scores = scores / scores.sum(1, keepdims=True) - np.eye(2)[y]
    at_hidden = (at_scores @ w2) * (1 - hidden**2)
    norms = np.sqrt((at_scores**2).sum(1) * ((hidden**2).sum(1) + 1) + (at_hidden**2).sum(1) * ((x**2).sum(1) + 1))
    example, largest, median = numbers(r"example #, norm #; median #", text)
    assert example == norms.argmax() == 0, "the wrong label"
    assert largest == pytest.approx(norms.max(), abs=2e-4)
    # That of an even number of values is the lower one of the two in the middle.
    assert median == pytest.approx(np.sort(norms)[31], abs=2e-4)
    factor = np.minimum(1, 1 / norms) / 64
    outer = [np.einsum("b,bi,bj->ij", factor, a, b) for a, b in ((at_hidden, x), (at_scores, hidden))]
    sums = [np.einsum("b,bi->i", factor, a) for a in (at_hidden, at_scores)]
    total = math.sqrt(sum((part**2).sum() for part in outer + sums))
    assert numbers(r"limited gradients: #", text) == pytest.approx([total], abs=2e-4)


@check
def pinn(tmp_path: Path) -> None:
    text = printed("pinn", "--steps", "250")
    losses = numbers(r"loss #", text)
    assert losses[-1] < 1e-3 * losses[0]
    (error,) = numbers(r"largest error against sin\(t\): #", text)
    assert error < 0.02


@check
def digits(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sklearn = pytest.importorskip("sklearn.model_selection")
    from sklearn.datasets import load_digits

    done = run(EXAMPLES / "digits.py", "--epochs", "15", "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "the gradients of LinearTanh are right" in text
    assert "loads back, same predictions" in text
    assert "training" in done.stderr, "the progress bar is missing"
    assert "loss=" in done.stderr
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    # What the saved parameters predict, by NumPy.
    state = {name: value.numpy() for name, value in rgrad.load(tmp_path / "digits.pt").items()}
    images, classes = load_digits(return_X_y=True)
    parts: Any = sklearn.train_test_split(images / 16, classes, test_size=0.25, random_state=0, stratify=classes)
    hidden = parts[1]
    for layer in ("0", "2"):
        hidden = np.tanh(hidden @ state[f"{layer}.weight"].T + state[f"{layer}.bias"])
    right = ((hidden @ state["3.weight"].T + state["3.bias"]).argmax(1) == parts[3]).mean()
    (accuracy,) = numbers(r"test accuracy #%", text)
    assert accuracy == pytest.approx(100 * right, abs=0.23)  # one digit is 0.22 %
    assert accuracy >= 95
    assert numbers(r"# digits to train on, # to test on; # parameters", text) == [
        len(parts[0]),
        len(parts[1]),
        sum(value.size for value in state.values()),
    ]


def test_every_example_is_run() -> None:
    networks = (ROOT / "tests" / "python" / "project" / "test_network_examples.py").read_text(encoding="utf-8")
    others = set(re.findall(r'run\("(\w+)", tmp_path', networks))
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*CHECKS, *others, "common"}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_example(name: str, tmp_path: Path) -> None:
    CHECKS[name](tmp_path)


def test_the_solution_of_the_equation(capsys: pytest.CaptureFixture[str]) -> None:
    net = load("examples/pinn.py").main(["--steps", "250"])
    (error,) = numbers(r"largest error against sin\(t\): #", capsys.readouterr().out)
    values = [p.detach().numpy() for p in net.parameters()]
    hidden = np.linspace(0, np.pi, 32)[:, None]
    for weight, bias in zip(values[0:4:2], values[1:4:2], strict=True):
        hidden = np.tanh(hidden @ weight.T + bias)
    found = (hidden @ values[4].T + values[5])[:, 0]
    assert error == pytest.approx(np.abs(found - np.sin(np.linspace(0, np.pi, 32))).max(), abs=1e-4)


BAD_OPTIONS = (["--epochs", "0"], ["--lr", "nan"], ["--batch-size", "x"], ["--seed", "-1"], ["--out", "{file}/x"])
# In one process, since what the example imports takes seconds.
EACH_OF_THEM = """
import contextlib, io, json, runpy, sys
for words in json.loads(sys.argv[2]):
    text, code = io.StringIO(), None
    with contextlib.redirect_stderr(text):
        try:
            kept, sys.argv = sys.argv, [sys.argv[1], *words]
            runpy.run_path(kept[1], run_name="__main__")
        except SystemExit as e:
            code = e.code
        finally:
            sys.argv = kept
    print(json.dumps([code, text.getvalue()]))
"""


def test_example_refuses_bad_options(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    every = [[word.format(file=file) for word in words] for words in BAD_OPTIONS]
    done = run("-c", EACH_OF_THEM, ROOT / "examples" / "digits.py", json.dumps(every), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    for (option, _), (code, text) in zip(BAD_OPTIONS, told, strict=True):
        assert code == 2, text
        assert option in text.splitlines()[-1]
        assert "Traceback" not in text
