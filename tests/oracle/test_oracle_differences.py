"""Each difference that docs/differences.md lists is there: what rgrad does, and what PyTorch does instead."""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from autograd_observer import OTHER_WORDS  # noqa: E402
from listed_autograd import AUTOGRAD  # noqa: E402
from listed_functions import FUNCTIONS  # noqa: E402
from listed_programs import agrees, outcome  # noqa: E402
from listed_writes import WRITES  # noqa: E402
from places import ROOT  # noqa: E402

pytestmark = pytest.mark.oracle

PAGE = ROOT / "docs" / "differences.md"

# A group of one process.
ONE_PROCESS = """
        import contextlib
        import importlib
        import tempfile

        @contextlib.contextmanager
        def one_process():
            D = importlib.import_module(f"{T.__name__}.distributed.tensor")
            with tempfile.TemporaryDirectory() as folder:
                if T.__name__ == "torch":
                    T.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
                else:
                    T.distributed.init_process_group("gloo", rank=0, world_size=1)
                try:
                    yield D
                finally:
                    T.distributed.destroy_process_group()
"""

LISTED = WRITES | FUNCTIONS | AUTOGRAD

# As in `listed_writes.py`, in the order of the page.
DIFFERENCES: dict[str, tuple[str, Any, Any]] = LISTED | {
    "Profilers inside of each other are refused": (
        """
        activities = [T.profiler.ProfilerActivity.CPU]
        with T.profiler.profile(activities=activities) as outer:
            T.ones(2)
            with T.profiler.profile(activities=activities):
                T.ones(2)
        result = len(outer.events())
        """,
        "profilers cannot be nested",
        0,
    ),
    "`with_stack` gives events their lines": (
        """
        x = T.ones(2)
        with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU], with_stack=True) as prof:
            x * x
        (event,) = [e for e in prof.events() if e.name == "aten::mul"]
        result = len(event.stack) > 0, len(prof.events()) == 1
        """,
        (True, True),
        (False, False),
    ),
    "A sequence number is that of a node": (
        """
        x = T.ones(2)
        with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU]) as prof:
            x * x
        result = prof.events()[0].sequence_nr >= 0
        """,
        False,
        True,
    ),
    "The gradient of a grouped convolution's weight costs as much as its forward": (
        """
        import importlib
        flops = importlib.import_module(T.__name__ + ".utils.flop_counter")
        w = T.ones(6, 2, 3, requires_grad=True)
        with flops.FlopCounterMode(display=False) as counter:
            T.nn.functional.conv1d(T.ones(2, 4, 9), w, groups=2).sum().backward()
        counts = list(counter.get_flop_counts()["Global"].values())
        result = counts[1] / counts[0]
        """,
        1.0,
        2.0,
    ),
    "`FlopCounterMode` counts LSTM layers": (
        """
        import importlib

        counter = importlib.import_module(f"{T.__name__}.utils.flop_counter").FlopCounterMode(display=False)
        with counter:
            T.nn.LSTM(2, 3)(T.ones(1, 1, 2))
        result = counter.get_total_flops() > 0
        """,
        True,
        False,
    ),
    "The incomplete gamma functions have a derivative by their order": (
        """
        a = T.tensor(2.0, requires_grad=True)
        T.igamma(a, T.tensor(1.0)).backward()
        result = bool(a.grad < 0)
        """,
        True,
        "the derivative for 'igamma: input' is not implemented",
    ),
    "Bessel functions J, Y and K have derivatives": (
        """
        x = T.tensor(1.0, requires_grad=True)
        result = T.special.bessel_j0(x).requires_grad, T.special.modified_bessel_k1(x).requires_grad
        """,
        (True, True),
        (False, False),
    ),
    "The slope of `hardsigmoid` is 1/6 in float64, too": (
        """
        x = T.zeros(1, dtype=T.float64, requires_grad=True)
        T.nn.functional.hardsigmoid(x).backward()
        result = abs(x.grad.item() * 6 - 1) < 1e-12
        """,
        True,
        False,
    ),
    "A point of Dirichlet's distribution with tiny parameters is near a corner": (
        """
        T.manual_seed(0)
        result = bool(T._sample_dirichlet(T.full((100, 2), 1e-6)).max(-1).values.min() > 0.9)
        """,
        True,
        False,
    ),
    "A seed gives other random numbers": (
        """
        T.manual_seed(0)
        result = [round(x, 4) for x in T.randn(3).tolist()]
        """,
        [0.7379, -0.6884, -1.286],
        [1.541, -0.2934, -2.1788],
    ),
    "`add_tensor` writes 16-bit floats as TensorBoard reads them": (
        """
        with written(T) as (writer, read):
            writer.add_tensor("x", T.ones(1).half())
        result = read("x").tensor.half_val[0]
        """,
        0x3C00,
        0x3F800000,
    ),
    "`add_histogram` refuses nan and infinities": (
        """
        with written(T) as (writer, read):
            writer.add_histogram("x", T.tensor([1.0, float("nan")]), bins=[0.0, 2.0])
        result = sum(read("x").histo.bucket)
        """,
        "the values have a nan or an infinity",
        1.0,
    ),
    "`add_graph` runs the model and shows what backward would do": (
        """
        with written(T) as (writer, read):
            writer.add_graph(T.nn.Linear(2, 1), T.ones(1, 2))
        result = any(node.op == "AddmmBackward0" for node in read(None).node)
        """,
        True,
        False,
    ),
    "`add_video` needs Pillow, not moviepy, and fails without it": (
        """
        with written(T) as (writer, read):
            writer.add_video("x", T.zeros(1, 2, 3, 4, 4))
        result = len(read("x").image.encoded_image_string) > 0
        """,
        True,
        False,
    ),
    "`add_image_with_boxes(rescale=...)` writes the size that the picture has": (
        """
        with written(T) as (writer, read):
            writer.add_image_with_boxes("x", T.zeros(3, 4, 4), T.tensor([[0.0, 0.0, 1.0, 1.0]]), rescale=2)
        result = read("x").image.height
        """,
        8,
        4,
    ),
    "`set_printoptions` refuses profiles that do not exist": (
        """
        T.set_printoptions(profile="nothing of the sort")
        result = "taken"
        """,
        "expected one of",
        "taken",
    ),
    "Sums at one position are rounded once": (
        """
        one = T.ones(1000, dtype=T.bfloat16)
        result = T.zeros(1, dtype=T.bfloat16).index_add(0, T.zeros(1000, dtype=T.int64), one).tolist()
        """,
        [1000.0],
        [256.0],
    ),
    "An operation rounds once": (
        """
        result = T.logit(T.tensor([0.52], dtype=T.bfloat16)).tolist()
        """,
        [0.078125],
        [0.0751953125],
    ),
    "Gradients that meet at one element are rounded once": (
        """
        x = T.ones(1, dtype=T.bfloat16, requires_grad=True)
        x[T.zeros(300, dtype=T.int64)].sum().backward()
        result = x.grad.tolist()
        """,
        [300.0],
        [256.0],
    ),
    "Derivatives of elements are rounded once": (
        """
        x = T.tensor([0.1, 0.15], dtype=T.bfloat16, requires_grad=True)
        T.atanh(x).backward(T.tensor([0.9, 0.9], dtype=T.bfloat16))
        result = x.grad.tolist()
        """,
        [0.90625, 0.91796875],
        [0.91015625, 0.921875],
    ),
    "Autocast takes 16-bit floats to linear algebra": (
        """
        with T.autocast("cpu"):
            x = T.linalg.pinv(T.eye(3))
            y = T.linalg.det(T.eye(3, dtype=T.bfloat16))
        result = [str(x.dtype).rpartition(".")[2], y.item()]
        """,
        ["float32", 1.0],
        "not implemented for 'BFloat16'",
    ),
    "`Linear` is one node over its weight": (
        """
        made = T.nn.Linear(2, 3)(T.ones(4, 2)).grad_fn
        result = [type(node).__name__ for node, _ in made.next_functions]
        """,
        ["AccumulateGrad", "NoneType", "AccumulateGrad"],
        ["AccumulateGrad", "NoneType", "TBackward0"],
    ),
    "The first step with momentum is differentiated": (
        """
        start = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
        p = start.clone()
        p.grad = p * 2.5
        T.optim.SGD([p], lr=0.1, momentum=0.5, differentiable=True).step()
        result = T.autograd.grad(p.sum(), start)[0].tolist()
        """,
        [0.75, 0.75],
        [1.0, 1.0],
    ),
    "`load` runs nothing without trust, and reads more": (
        """
        import io
        x = T.ones(2)
        result = True
        try:
            T.save([x, x.view(T.int32)], io.BytesIO())
        except RuntimeError:
            result = False
        """,
        True,
        False,
    ),
    "`hub.load_state_dict_from_url` does not run what a file says": (
        """
        import inspect
        result = inspect.signature(T.hub.load_state_dict_from_url).parameters["weights_only"].default
        """,
        True,
        False,
    ),
    "Blocks of `safe_globals` hold for their thread": (
        """
        import threading
        found = []
        with T.serialization.safe_globals([T.nn.ReLU]):
            look = lambda: found.append(T.nn.ReLU in T.serialization.get_safe_globals())
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            look()
        result = found
        """,
        [False, True],
        [True, True],
    ),
    "Views keep the memory from before `share_memory_`": (
        """
        x = T.zeros(3)
        y = x[1:]
        x.share_memory_()
        result = [x.is_shared(), x[1:].is_shared(), y.is_shared()]
        """,
        [True, True, False],
        [True, True, True],
    ),
    "The gradient of `nn.CrossMapLRN2d` is that of its values": (
        """
        x = T.zeros(1, 4, 1, 1, dtype=T.float64)
        x[0, 0] = 2.0
        x[0, 3] = 1.0
        x.requires_grad_()
        # Of x[3] / (1 + x[0]**2 + x[2]**2 + x[3]**2), the derivative by x[0] is -4 / 36.
        T.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x)[0, 3].backward()
        result = round(x.grad[0, 0].item(), 6)
        """,
        -0.111111,
        0.0,
    ),
    "`LinearCrossEntropyOptions` may be used with everything": (
        """
        x, w = T.ones(3, 2, requires_grad=True), T.ones(4, 2, requires_grad=True)
        options = T.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        loss = T.nn.functional.linear_cross_entropy(x, w, T.tensor([0, 1, 2]), options=options)
        loss.backward(retain_graph=True)
        loss.backward()
        result = x.grad.shape[0]
        """,
        3,
        "",
    ),
    "`jit.script` gives its argument back": (
        """
        net = T.nn.Linear(1, 1)
        result = T.jit.script(net) is net
        """,
        True,
        False,
    ),
    "A traced function runs its Python code": (
        """
        def f(x):
            return x * 2 if x.sum() > 0 else x

        f.__module__ = "programs"
        result = T.jit.trace(f, T.ones(1))(-T.ones(1)).item()
        """,
        -1.0,
        -2.0,
    ),
    "A traced function refuses other numbers of dimensions than the example's": (
        """
        net = T.jit.trace(T.nn.ReLU(), T.ones(1, 2))
        result = tuple(net(T.ones(3, 2)).shape), tuple(net(T.ones(2)).shape)
        """,
        "a tensor of shape (2,), but the example it was traced with has a tensor of shape (1, 2)",
        ((3, 2), (2,)),
    ),
    "Files of TorchScript are neither written nor read": (
        """
        import io

        file = io.BytesIO()
        T.jit.save(T.jit.script(T.nn.Linear(1, 1)), file)
        result = len(file.getvalue()) > 0
        """,
        "there is no TorchScript here",
        True,
    ),
    "A custom operator without tangents fails in forward mode": (
        """
        def double(x: T.Tensor) -> T.Tensor:
            return x * 2

        op = T.library.custom_op("differences::double", double, mutates_args=())
        result = T.func.jvp(op, (T.ones(1),), (T.ones(1),))[1].item()
        """,
        "You must implement the jvp function",
        0.0,
    ),
    "`func.grad` goes through custom operators": (
        """
        def triple(x: T.Tensor) -> T.Tensor:
            return x * 3

        op = T.library.custom_op("differences::triple", triple, mutates_args=())
        op.register_autograd(lambda ctx, g: g * 3)
        result = T.func.grad(lambda x: op(x).sum())(T.ones(1)).item()
        """,
        3.0,
        "it must override the setup_context staticmethod",
    ),
    "An exported program has the functions that were called": (
        """
        import importlib

        export = importlib.import_module(f"{T.__name__}.export").export
        program = export(T.nn.Linear(2, 1), (T.ones(1, 2),))
        result = [n.target is T.nn.functional.linear for n in program.graph.nodes if n.op == "call_function"]
        """,
        [True],
        [False],
    ),
    "A program that writes to its buffers is not exported": (
        """
        import importlib

        export = importlib.import_module(f"{T.__name__}.export").export
        program = export(T.nn.BatchNorm1d(2), (T.ones(3, 2),))
        result = len(program.graph.nodes) > 0
        """,
        "the program writes to 'running_mean'",
        True,
    ),
    "Exported programs are not written to files": (
        """
        import importlib
        import io

        export = importlib.import_module(f"{T.__name__}.export")
        file = io.BytesIO()
        export.save(export.export(T.nn.Linear(2, 1), (T.ones(1, 2),)), file)
        result = len(file.getvalue()) > 0
        """,
        "exported programs are not written to files",
        True,
    ),
    "Modes of `Kumaraswamy` are numbers": (
        """
        result = bool(T.distributions.Kumaraswamy(T.tensor(2.0), T.tensor(3.0)).mode.isnan())
        """,
        False,
        True,
    ),
    "Divergences of batches of `Wishart` distributions are those of each": (
        """
        given = [T.distributions.Wishart(T.tensor(df), covariance_matrix=T.eye(2)) for df in (3.0, 5.0)]
        made = [T.distributions.Wishart(T.tensor([df, 4.0]), covariance_matrix=T.eye(2)) for df in (3.0, 5.0)]
        alone, first = T.distributions.kl_divergence(*given), T.distributions.kl_divergence(*made)[0]
        # Of the second in the batch nothing enters into the first, whatever it is.
        other = [T.distributions.Wishart(T.tensor([df, df]), covariance_matrix=T.eye(2)) for df in (3.0, 5.0)]
        second = T.distributions.kl_divergence(*other)[0]
        result = bool((alone - first).abs() < 1e-4), bool((alone - second).abs() < 1e-4)
        """,
        (True, True),
        (True, False),
    ),
    "Supports with the same ends lie inside each other": (
        """
        p, q = T.distributions.ContinuousBernoulli(T.tensor(0.3)), T.distributions.Uniform(T.tensor(0.0), T.tensor(1.0))
        result = bool(T.distributions.kl_divergence(p, q).isinf()), bool(T.distributions.kl_divergence(q, p).isinf())
        """,
        (False, False),
        (True, True),
    ),
    "Samples of `LKJCholesky` have its density": (
        """
        T.manual_seed(0)
        factor = T.distributions.LKJCholesky(3, 1.0).sample((20000,))
        result = bool((factor @ factor.mT)[:, 0, 2].square().mean() < 0.265)
        """,
        True,
        False,
    ),
    "`ContinuousBernoulli` takes large logits as they are": (
        """
        made = T.distributions.ContinuousBernoulli(logits=T.tensor(1e4)).log_prob(T.tensor(1.0))
        result = bool(made > 9)
        """,
        True,
        False,
    ),
    "Operations on pieces that need other pieces are refused": (
        ONE_PROCESS
        + """
        with one_process() as D:
            x = D.distribute_tensor(T.ones(2, 3), D.init_device_mesh("cpu", (1,)), [D.Shard(0)])
            result = (x @ x.T).full_tensor().tolist()
        """,
        "there is no rule for DTensors",
        [[3.0, 3.0], [3.0, 3.0]],
    ),
    "A DTensor is not pickled": (
        ONE_PROCESS
        + """
        import io

        with one_process() as D:
            x = D.distribute_tensor(T.ones(2), D.init_device_mesh("cpu", (1,)), [D.Shard(0)])
            file = io.BytesIO()
            T.save(x, file)
            result = file.tell() > 0
        """,
        "write it with distributed.checkpoint.save",
        True,
    ),
    "Modules have their shards whenever forward does not run": (
        ONE_PROCESS
        + """
        import importlib

        with one_process() as D:
            fsdp = importlib.import_module(f"{T.__name__}.distributed.fsdp")
            net = fsdp.fully_shard(T.nn.Linear(2, 1), mesh=D.init_device_mesh("cpu", (1,)))
            net(T.ones(1, 2))
            result = isinstance(net.weight, D.DTensor)
        """,
        True,
        False,
    ),
    "`distributed.checkpoint.load` runs nothing without trust": (
        """
        import fractions
        import importlib
        import tempfile

        dcp = importlib.import_module(f"{T.__name__}.distributed.checkpoint")
        with tempfile.TemporaryDirectory() as folder:
            dcp.save({"part": fractions.Fraction(1, 3)}, checkpoint_id=folder, no_dist=True)
            state = {"part": None}
            try:
                dcp.load(state, checkpoint_id=folder, no_dist=True)
                result = state["part"] == fractions.Fraction(1, 3)
            except BaseException as error:
                result = str(error)
        """,
        "add_safe_globals",
        True,
    ),
}


@pytest.mark.parametrize("title", DIFFERENCES)
def test_differences(title: str) -> None:
    program, here, there = DIFFERENCES[title]
    got, theirs = outcome(rgrad, program), outcome(torch, program)
    assert agrees(got, here), f"rgrad: {got}"
    assert agrees(theirs, there), f"PyTorch: {theirs}"
    assert got != theirs


def test_the_page_lists_these() -> None:
    assert re.findall(r"^- \*\*(.+?)\.\*\*", PAGE.read_text(), flags=re.MULTILINE) == list(DIFFERENCES)


def test_the_page_tells_which_messages_have_other_words() -> None:
    section = PAGE.read_text().partition("\n## Other words in errors\n")[2]
    assert re.findall(r"^- \*(.+?)\.\*", section, flags=re.MULTILINE) == list(OTHER_WORDS)
