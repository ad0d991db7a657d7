"""What notebooks show of a tensor: always well-formed, true to the values, and without effect on the tensor."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

import rgrad
from pixels import pixels
from rgrad._tensor import png


def html(t: rgrad.Tensor) -> str:
    """The HTML, which must be well-formed."""
    text: str = t._repr_html_()
    ET.fromstring(text.replace("<br>", ""))
    return text


def heat_map(t: rgrad.Tensor) -> tuple[int, int, Callable[[int, int], tuple[int, ...]]]:
    """Rows and columns of the picture's cells, and their colours."""
    found = re.search(r"base64,([^\"]*)", html(t))
    assert found is not None
    width, height, channels, data = pixels(base64.b64decode(found[1]))
    rows, columns = t.shape[-2:]
    scale = width // columns
    assert (width, height, channels) == (columns * scale, rows * scale, 3)

    def colour(i: int, j: int) -> tuple[int, ...]:
        at = ((i * scale + scale // 2) * width + j * scale + scale // 2) * 3
        return tuple(data[at : at + 3])

    return rows, columns, colour


def test_the_head_says_what_it_is(device: str) -> None:
    text = html(rgrad.ones(3, 4))
    assert f"<b>Tensor</b> · 3 × 4 · float32 · {rgrad.ones(1).device} · 48 B" in text
    assert "min 1 · mean 1 · max 1" in text
    assert "tensor([[1., 1., 1., 1.]," in text
    assert "requires grad" in html(rgrad.ones(2, requires_grad=True))
    assert "MulBackward0" in html(rgrad.ones(2, requires_grad=True) * 2)
    assert "<b>Parameter</b>" in html(rgrad.nn.Parameter(rgrad.ones(2)))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (100,), (1, 1), (3, 4), (70, 200), (2, 3, 4), (0,), (0, 3), (2, 0)])
def test_all_dtypes_and_shapes(dtype: str, shape: tuple[int, ...], device: str) -> None:
    t = (rgrad.rand(shape) * 4).to(getattr(rgrad, dtype))
    text = html(t)
    assert text.count("<image") == (1 if t.numel() > 1 else 0)
    assert len(text) < 60_000
    line = html(rgrad.arange(150.0))
    assert "every 2nd column" in line
    assert "row" not in line
    assert "max-height" in line


def test_colours() -> None:
    rows, columns, colour = heat_map(rgrad.tensor([[-2.0, 0.0, 2.0], [float("nan"), float("inf"), -float("inf")]]))
    assert (rows, columns) == (2, 3)
    assert colour(0, 0) == (33, 102, 172)
    assert colour(0, 1) == (255, 255, 255)
    assert colour(0, 2) == (178, 24, 43)
    assert colour(1, 0) == (214, 39, 214)
    assert colour(1, 1) != colour(1, 2) != colour(0, 1)
    _, _, colour = heat_map(rgrad.tensor([[1.0, 2.0, 3.0]]))
    assert colour(0, 0) == (255, 255, 255)
    assert colour(0, 2) == (8, 81, 156)
    # The first matrix of several.
    t = rgrad.zeros(2, 2, 2)
    t[0, 0, 1] = 1
    t[1] = 5
    _, _, colour = heat_map(t)
    assert [colour(0, 0), colour(0, 1)] == [(255, 255, 255), (8, 81, 156)]
    assert "[0]" in html(t)


def test_what_is_not_finite_is_counted() -> None:
    nan, inf = float("nan"), float("inf")
    text = html(rgrad.tensor([1.0, nan, nan, inf, -inf, 0.0]))
    assert "2 nan" in text
    assert "2 inf" in text
    assert "min 0 · mean 0.5 · max 1 · 16.7% zero" in text
    html(rgrad.full((100,), nan))
    html(rgrad.tensor([[1e308, -1e308], [5.0, 1.7e308]] * 40, dtype=rgrad.float64))
    html(rgrad.full((80,), 1.7e308, dtype=rgrad.float64))
    assert "66.7% true" in html(rgrad.tensor([True, False, True]))


def test_the_histogram_counts_every_value() -> None:
    t = rgrad.cat([rgrad.zeros(75), rgrad.ones(25)])
    bars = re.findall(r'<rect x="(\d+)" y="[\d.]+" width="\d+" height="([\d.]+)"', html(t))
    assert [(x, float(h)) for x, h in bars] == [("0", 80.0), (str(31 * 7), pytest.approx(80 / 3, abs=0.1))]


def test_large_tensors_are_sampled(device: str) -> None:
    t = rgrad.arange(3_000_000).reshape(3, 1000, 1000)
    text = html(t)
    assert re.search(r"of a sample of \d+,\d{3}", text)
    assert "every 21st row, every 11th column" in text
    assert len(text) < 60_000
    line = html(rgrad.arange(150.0))
    assert "every 2nd column" in line
    assert "row" not in line
    assert "max-height" in line
    assert "of a sample" not in html(rgrad.zeros(100_000))
    html(rgrad.zeros(1).expand(10**9))


def test_no_values_where_there_are_none() -> None:
    text = html(rgrad.empty(3, 4, device="meta"))
    assert "3 × 4 · float32 · meta" in text
    assert "<svg" not in text
    shown: list[str] = []

    def show(v: rgrad.Tensor) -> rgrad.Tensor:
        shown.append(html(v))
        return v

    rgrad.func.vmap(show)(rgrad.ones(2, 3))
    assert "BatchedTensor" in shown[0]


def test_showing_a_tensor_changes_nothing() -> None:
    x = rgrad.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    state = rgrad.get_rng_state()
    html(y)
    assert y._version == version
    assert rgrad.equal(rgrad.get_rng_state(), state)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with rgrad.inference_mode():
        html(rgrad.ones(3))


def test_subclasses_are_asked_once() -> None:
    calls = []

    class Mine(rgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = rgrad.ones(3).as_subclass(Mine)
    calls.clear()
    assert "<b>Mine</b>" in html(t)
    # The class is asked about this, as about `repr`, and about nothing inside of it.
    assert calls == [rgrad.Tensor._repr_html_]


def test_text_is_escaped() -> None:
    class Odd(rgrad.Tensor):
        pass

    Odd.__name__ = "A<B>"
    assert "<b>A&lt;B&gt;</b>" in html(rgrad.ones(2).as_subclass(Odd))


def test_png_of_all_channels() -> None:
    for channels in (1, 2, 3, 4):
        data = bytes(range(2 * 3 * channels))
        assert pixels(png.encode(data, 3, 2, channels)) == (3, 2, channels, data)
    with pytest.raises(ValueError, match="image of 5 channels"):
        png.encode(b"", 1, 1, 5)
    with pytest.raises(ValueError, match="got 2 bytes for an image of 1 x 1 pixels"):
        png.encode(b"ab", 1, 1, 1)
    with pytest.raises(ValueError, match="got 0 bytes"):
        png.encode(b"", 0, 1, 1)


def test_options_of_printing() -> None:
    from rgrad._tensor_str import get_printoptions, printoptions

    default = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    assert get_printoptions() == default
    x = rgrad.tensor([1.23456, 100.0])
    with printoptions(precision=1, sci_mode=True):
        assert repr(x) == "tensor([1.2e+00, 1.0e+02])"
        with printoptions(profile="full"):
            assert get_printoptions()["threshold"] == float("inf")
            assert repr(rgrad.arange(1001)).count(",") == 1000
        assert get_printoptions() == {**default, "precision": 1, "sci_mode": True}
    assert get_printoptions() == default
    with pytest.raises(ValueError, match="got precision=-1"), printoptions(precision=-1):
        pass
    assert get_printoptions() == default
    with printoptions(edgeitems=0, threshold=1):
        assert repr(rgrad.ones(3, dtype=rgrad.float64)) == "tensor([...], size=(3,), dtype=rgrad.float64)"
        assert repr(rgrad.tensor(1)) == "tensor(1, size=())"
