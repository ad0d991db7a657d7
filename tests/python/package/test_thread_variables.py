"""How many threads kernels use, by the environment; and what a free-threaded interpreter is told."""

from __future__ import annotations

import pytest

from fresh import run

ASK = "import rgrad\nprint(rgrad.get_num_threads())"
REFUSED = """
try:
    import rgrad
except {error} as e:
    print(e)
"""


@pytest.mark.parametrize(
    ("own", "open_mp", "threads"), [("", "3", 3), ("5", "3", 5), ("", "4,2", 4), ("7", "", 7), ("100000", "", 1024)]
)
def test_the_environment_asks(own: str, open_mp: str, threads: int) -> None:
    assert int(run(ASK, RGRAD_NUM_THREADS=own, OMP_NUM_THREADS=open_mp)) == threads


def test_wrong_numbers() -> None:
    usual = int(run(ASK, RGRAD_NUM_THREADS="", OMP_NUM_THREADS=""))
    for text in ("0", "-2", "many", "1.5"):
        assert int(run(ASK, RGRAD_NUM_THREADS="", OMP_NUM_THREADS=text)) == usual
        said = run(REFUSED.format(error="ValueError"), RGRAD_NUM_THREADS=text)
        assert said.startswith(f'RGRAD_NUM_THREADS="{text}" is no number of threads: expected an integer from 1 on')


def test_what_is_set_stays() -> None:
    assert run("import rgrad\nrgrad.set_num_threads(2)\nprint(rgrad.get_num_threads())", OMP_NUM_THREADS="3") == "2\n"


def test_without_the_lock_the_import_is_refused() -> None:
    code = "import sys\nsys._is_gil_enabled = lambda: False\n" + REFUSED.format(error="ImportError")
    assert "rgrad needs Python's global interpreter lock, which PYTHON_GIL=0" in run(code)


def test_an_open_autocast_context_at_the_end() -> None:
    code = """
    import threading
    import rgrad

    def work():
        rgrad.autocast("cpu").__enter__()
        w = rgrad.nn.Parameter(rgrad.ones(3, 3))
        return w @ w

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    y = work()
    print(y.dtype)
    """
    assert run(code) == "rgrad.bfloat16\n"
