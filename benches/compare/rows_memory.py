"""Peak memory of a network and of attention: what a process of its own holds at most beyond what it held before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness import Check, Settings

PEAK = """
import importlib, sys
sys.path.insert(0, {here!r})
import numpy as np
lib = importlib.import_module({module!r})
lib.set_num_threads({threads})
F = lib.nn.functional

def resident(what):
    return int(next(line for line in open("/proc/self/status") if line.startswith(what)).split()[1]) * 1024

def network(batch):
    from rows_networks import digits
    model = digits(lib)
    x = lib.tensor(np.random.default_rng(0).standard_normal((batch, 1, 28, 28), dtype=np.float32))
    y = lib.tensor(np.arange(batch) % 10)
    descent = lib.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        descent.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        descent.step()
        return loss.item()

    return step

def attention(length, blocked):
    q, k, v, g = (lib.full((1, 8, length, 64), 0.1 * n) for n in range(1, 5))
    for t in (q, k, v):
        t.requires_grad_()

    def step():
        if blocked:
            out = F.scaled_dot_product_attention(q, k, v)
        else:
            out = (q @ k.transpose(-2, -1) / 8).softmax(-1) @ v
        return lib.autograd.grad(out, (q, k, v), g)[0].sum().item()

    return step

{small}()  # kernels, threads and counters are there before the measurement
step = {work}
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
before = resident("VmRSS")
step()
print(resident("VmHWM") - before)
"""


def peak(module: str, small: str, work: str, settings: Settings) -> tuple[float | None, str]:
    here = str(Path(__file__).parent)
    code = PEAK.format(module=module, small=small, work=work, threads=settings.threads, here=here)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    return float(done.stdout), f"{float(done.stdout) / 1e6:.0f} MB"


def network(settings: Settings) -> tuple[str, str, bool | None]:
    ours, said = peak("rgrad", "network(2)", "network(256)", settings)
    if "torch" not in settings.modules:
        return said, "", None if ours else False
    theirs, told = peak("torch", "network(2)", "network(256)", settings)
    if ours is None or theirs is None:
        return said, told, False
    return f"{said}, {ours / theirs:.2f} of torch", told, ours <= 0.7 * theirs


def attention(settings: Settings) -> tuple[str, str, bool | None]:
    ours, said = peak("rgrad", "attention(64, True)", "attention(4096, True)", settings)
    plain, told = peak("rgrad", "attention(64, False)", "attention(4096, False)", settings)
    if ours is None or plain is None:
        return said, told, False
    return f"{said}, {ours / plain:.2f} of the unblocked form", f"rgrad unblocked {told}", ours <= 0.3 * plain


CHECKS = [
    Check("memory_conv_bn", "step of the conv + batch norm network at 256", "<= 0.7 of torch", network),
    Check("memory_attention", "attention, 8 heads of 4096x64, there and back", "<= 0.3 of unblocked", attention),
]
