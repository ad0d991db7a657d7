"""How notebooks show a tensor: what it is, a small picture of its values, and the text of ``repr``."""

from __future__ import annotations

import base64
import math
from html import escape
from typing import Any

from .. import _core
from .._runtime.guards import NoGradGuard
from .._runtime.units import bytes_text
from .png import encode
from .text import to_string

__all__ = ["to_html"]

# At most so many elements are looked at: a picture of more is not better, and a notebook shall not wait.
SAMPLE = 100_000
# Rows and columns of the heat map at most.
ROWS, COLUMNS = 48, 96
BARS = 32

NAN = (214, 39, 214)
BELOW, ABOVE = (8, 29, 88), (127, 0, 0)  # infinities


def to_html(t: Any) -> str:
    """The HTML of a tensor. Its values are read, as by ``repr``, and nothing else happens to it."""
    with _core.DisableTorchFunction(), NoGradGuard():
        parts = [f"<div>{_head(t)}</div>"]
        if _core._level_of(t) == 0 and not t.is_meta and t.numel():
            shown = _core.Tensor.detach(t)
            if shown.is_complex():
                parts.append("<div>absolute values:</div>")
                shown = shown.abs()
            sample, whole = _sampled(shown)
            values = _values(sample)
            parts.append(f"<div>{_facts(values, sample.dtype, whole)}</div>")
            pictures = _pictures(shown, values, sample.dtype)
            if pictures:
                parts.append(f'<div style="display:flex;gap:16px;align-items:flex-end">{pictures}</div>')
        # Long texts scroll, so that the pictures of several cells are on one screen.
        scroll = "max-height:260px;overflow:auto"
        parts.append(f'<pre style="margin:4px 0;line-height:1.2;{scroll}">{escape(to_string(t))}</pre>')
    style = (
        "font-family:monospace;font-size:12px;color:#1b1f24;background:#ffffff;border:1px solid #d0d7de;"
        "border-radius:6px;padding:6px 10px;display:inline-block;max-width:100%;overflow:auto"
    )
    return f'<div style="{style}">{"".join(parts)}</div>'


def _head(t: Any) -> str:
    shape = " × ".join(map(str, t.shape)) if t.ndim else "scalar"
    words = [f"<b>{escape(type(t).__name__)}</b>", shape, str(t.dtype).rpartition(".")[2], escape(str(t.device))]
    if not t.is_meta:
        words.append(bytes_text(t.numel() * t.element_size()))
    try:
        if t.grad_fn is not None:
            words.append(escape(type(t.grad_fn).__name__))
        elif t.requires_grad:
            words.append("requires grad")
    except RuntimeError:
        words.append("history no longer valid")
    return " · ".join(words)


def _sampled(t: Any) -> tuple[Any, bool]:
    """The tensor on the CPU, thinned out to at most ``SAMPLE`` elements, and whether it is all of it."""
    whole = True
    while t.numel() > SAMPLE:
        whole = False
        # The longest dimension, so that short ones (channels) stay whole as long as possible.
        dim = max(range(t.ndim), key=t.size)
        step = max(2, min(t.size(dim), -(-t.numel() // SAMPLE)))
        t = t[(slice(None),) * dim + (slice(None, None, step),)]
    return t.cpu(), whole


def _values(t: Any) -> list[float]:
    return [float(v) for v in t.reshape(-1).tolist()]


def _facts(values: list[float], dtype: Any, whole: bool) -> str:
    finite = [v for v in values if math.isfinite(v)]
    words = []
    if dtype == _core.bool:
        words.append(f"{sum(values) / len(values):.1%} true")
    elif finite:
        words += [f"min {_short(min(finite))}", f"mean {_short(math.fsum(v / len(finite) for v in finite))}"]
        words.append(f"max {_short(max(finite))}")
        zeros = sum(v == 0 for v in finite)
        if zeros:
            words.append(f"{zeros / len(values):.1%} zero")
    nans = sum(math.isnan(v) for v in values)
    infinite = len(values) - len(finite) - nans
    for number, name in ((nans, "nan"), (infinite, "inf")):
        if number:
            words.append(f'<b style="color:#b00020">{number:,} {name}</b>')
    if not whole:
        words.append(f"of a sample of {len(values):,}")
    return " · ".join(words)


def _short(v: float) -> str:
    return f"{v:.4g}"


def _pictures(t: Any, values: list[float], dtype: Any) -> str:
    if t.numel() < 2:
        return ""
    found = [_heat_map(t)]
    if t.numel() >= 64 and dtype != _core.bool:
        found.append(_histogram(values))
    return "".join(found)


def _ordinal(n: int) -> str:
    """``2nd``, ``11th``, ``21st``."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _heat_map(t: Any) -> str:
    """The first matrix of the tensor; more rows or columns than fit are thinned out."""
    matrix = _core.Tensor.detach(t)
    note = ""
    if matrix.ndim > 2:
        note = f"[{', '.join('0' * (matrix.ndim - 2))}]"
        matrix = matrix[(0,) * (matrix.ndim - 2)]
    if matrix.ndim == 1:
        matrix = matrix.unsqueeze(0)
    rows, columns = matrix.shape
    if matrix.numel() < 2:
        return ""
    row_step, column_step = -(-rows // ROWS), -(-columns // COLUMNS)
    steps = ((row_step, "row"), (column_step, "column"))
    thinned = ", ".join(f"every {_ordinal(step)} {what}" for step, what in steps if step > 1)
    note = f"{note} {thinned}".strip()
    thin = matrix[::row_step, ::column_step].cpu()
    height, width = thin.shape
    values = _values(thin)
    finite = [v for v in values if math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    scale = max(2, min(16, 320 // width, 160 // height))
    w, h = width * scale, height * scale
    # Enlarged here: not every viewer leaves the edges of enlarged pixels sharp, and the file hardly grows.
    lines = [
        b"".join(bytes(_colour(v, low, high)) * scale for v in values[i * width : (i + 1) * width]) * scale
        for i in range(height)
    ]
    data = base64.b64encode(encode(b"".join(lines), w, h, 3)).decode()
    title = f"<title>{escape(note or 'values')}</title>"
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h + 2}" viewBox="-1 -1 {w + 2} {h + 2}">{title}'
        f'<rect x="-0.5" y="-0.5" width="{w + 1}" height="{h + 1}" fill="none" stroke="#d0d7de"/>'
        f'<image width="{w}" height="{h}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{data}"/></svg>'
    )
    label = f'<div style="color:#57606a">{escape(note)}</div>' if note else ""
    return f"<div>{picture}{label}</div>"


def _colour(v: float, low: float, high: float) -> tuple[int, int, int]:
    """White to blue; with both signs blue over white to red, white being zero."""
    if math.isnan(v):
        return NAN
    if math.isinf(v):
        return ABOVE if v > 0 else BELOW
    if low < 0 < high:
        share = v / max(-low, high)
        end = (178, 24, 43) if share > 0 else (33, 102, 172)
        share = abs(share)
    else:
        # Halves first: the difference of two large numbers may be infinite.
        share = (v / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        end = (8, 81, 156)
    red, green, blue = (round(255 + (e - 255) * share) for e in end)
    return red, green, blue


def _histogram(values: list[float]) -> str:
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    width = high / 2 - low / 2
    counts = [0] * BARS
    for v in finite:
        place = int((v / 2 - low / 2) / width * BARS) if width else BARS // 2
        counts[min(place, BARS - 1)] += 1
    most = max(counts)
    bar, height = 7, 80
    bars = "".join(
        f'<rect x="{i * bar}" y="{height - c / most * height:.1f}" width="{bar - 1}" height="{c / most * height:.1f}"/>'
        for i, c in enumerate(counts)
        if c
    )
    w = BARS * bar
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{height + 16}" viewBox="0 0 {w} {height + 16}" '
        f'font-family="monospace" font-size="10" fill="#1b1f24"><g fill="#4f7cac">{bars}</g>'
        f'<path d="M0 {height + 0.5}H{w}" stroke="#57606a"/>'
        f'<text x="0" y="{height + 12}">{_short(low)}</text>'
        f'<text x="{w}" y="{height + 12}" text-anchor="end">{_short(high)}</text></svg>'
    )
