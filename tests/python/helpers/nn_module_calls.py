"""A module of every class of `rgrad.nn`, with inputs: for the table of docs/nn-and-optim.md, and beside PyTorch.

An input is a shape of numbers between -1 and 1, which are differentiated, or values, which are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[[Any], Any], tuple[Any, ...]]

SIZES = {1: (6,), 2: (5, 6), 3: (4, 5, 4)}
SHORT = {1: (4,), 2: (4, 4), 3: (4, 4, 4)}
#: Modules whose outputs are drawn in training; they are called in evaluation mode.
DRAWN = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


def of(name: str, *inputs: Any, args: tuple[Any, ...] = (), **options: Any) -> dict[str, Case]:
    """The case of a class: its arguments, and the inputs of a call."""
    return {name: (lambda nn: getattr(nn, name)(*args, **options), inputs)}


def ranks(name: str, *args: Any, lead: tuple[int, ...] = (2, 2), sizes: Any = SIZES, **options: Any) -> dict[str, Case]:
    """The cases of a class that there is for one, two and three dimensions; `{}` in its name is their number."""
    cases: dict[str, Case] = {}
    for n in (1, 2, 3):
        cases |= of(name.format(n), (*lead, *sizes[n]), args=args, **options)
    return cases


def indices(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


SIGNS = np.array([1.0, -1.0, 1.0])
PROBABLE = np.array([[0.2, 0.9, 0.4], [0.7, 0.1, 0.5]])


def unpooled(n: int) -> dict[str, Case]:
    places = np.zeros((1, 2, *(2,) * n), dtype=np.int64) + np.arange(2**n).reshape((2,) * n)
    return of(f"MaxUnpool{n}d", (1, 2, *(2,) * n), places, args=(2,))


#: Samples of FractionalMaxPool, which are drawn unless they are given.
SAMPLES = [0.3, 0.6]


CASES: dict[str, Case] = {}
for plain in [
    "CELU",
    "ELU",
    "GELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Identity",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "GLU",
    "Dropout",
    "AlphaDropout",
]:
    CASES |= of(plain, (3, 4))
for by_dim in ("Softmax", "Softmin", "LogSoftmax"):
    CASES |= of(by_dim, (3, 4), dim=1)
CASES |= of("Softmax2d", (2, 3, 2, 2)) | of("Threshold", (3, 4), args=(0.1, 2.0))
for family in ("Conv{}d", "ConvTranspose{}d"):
    CASES |= ranks(family, 2, 4, 3, stride=2, padding=1)
for family in ("LazyConv{}d", "LazyConvTranspose{}d"):
    CASES |= ranks(family, 4, 3, padding=1)
for family in ("BatchNorm{}d", "InstanceNorm{}d"):
    CASES |= ranks(family, 2, affine=True)
    CASES |= ranks("Lazy" + family)
for family in ("MaxPool{}d", "AvgPool{}d"):
    CASES |= ranks(family, 2)
for family in ("AdaptiveAvgPool{}d", "AdaptiveMaxPool{}d"):
    CASES |= ranks(family, 3)
CASES |= ranks("LPPool{}d", 2, 2)
for rank in (1, 2, 3):
    CASES |= unpooled(rank)
for rank in (2, 3):
    CASES |= of(f"FractionalMaxPool{rank}d", (1, 2, *(5,) * rank), args=(2,), output_size=3)
for family in ("CircularPad{}d", "ReflectionPad{}d", "ReplicationPad{}d", "ZeroPad{}d"):
    CASES |= ranks(family, 1)
CASES |= ranks("ConstantPad{}d", 1, 0.5)
CASES |= ranks("Dropout{}d", sizes=SHORT)
CASES |= of("FeatureAlphaDropout", (2, 3, 4)) | of("SyncBatchNorm", (3, 2, 2), args=(2,))
CASES |= of("GroupNorm", (2, 4, 3), args=(2, 4)) | of("LayerNorm", (2, 3, 4), args=((3, 4),))
CASES |= of("RMSNorm", (2, 3, 4), args=(4,)) | of("LocalResponseNorm", (2, 4, 3), args=(3,))
CASES |= of("CrossMapLRN2d", (2, 6, 1, 2), args=(3,))
CASES |= of("Linear", (3, 4), args=(4, 2)) | of("LazyLinear", (3, 4), args=(2,))
CASES |= of("Bilinear", (3, 4), (3, 2), args=(4, 2, 3))
CASES |= of("Embedding", indices([0, 2], [3, 3]), args=(4, 3))
CASES |= of("EmbeddingBag", indices([0, 2], [3, 3]), args=(4, 3))
CASES |= of("Flatten", (2, 3, 2)) | of("Unflatten", (2, 6), args=(1, (2, 3)))
CASES |= of("Fold", (1, 8, 4), args=((3, 3), 2)) | of("Unfold", (1, 2, 3, 3), args=(2,))
CASES |= of("PixelShuffle", (1, 4, 2, 3), args=(2,)) | of("PixelUnshuffle", (1, 1, 4, 6), args=(2,))
CASES |= of("ChannelShuffle", (1, 4, 2, 2), args=(2,)) | of("Upsample", (1, 2, 3, 4), scale_factor=2, mode="bilinear")
CASES |= of("UpsamplingBilinear2d", (1, 2, 3, 4), scale_factor=2)
CASES |= of("UpsamplingNearest2d", (1, 2, 3, 4), scale_factor=2)
CASES |= of("CosineSimilarity", (2, 3), (2, 3)) | of("PairwiseDistance", (2, 3), (2, 3))
for loss in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss", "BCEWithLogitsLoss", "KLDivLoss"):
    CASES |= of(loss, (2, 3), PROBABLE)
CASES |= {"BCELoss": (lambda nn: nn.Sequential(nn.Sigmoid(), nn.Identity()), ((2, 3),))}
for loss in ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "MultiMarginLoss"):
    CASES |= of(loss, (2, 3), indices(0, 2))
CASES |= of("GaussianNLLLoss", (2, 3), PROBABLE, PROBABLE) | of(
    "MultiLabelMarginLoss", (2, 3), indices([0, 2, -1], [1, -1, 0])
)
CASES |= of("MultiLabelSoftMarginLoss", (2, 3), np.round(PROBABLE)) | of(
    "SoftMarginLoss", (2, 3), np.sign(PROBABLE - 0.5)
)
CASES |= of("HingeEmbeddingLoss", (3,), SIGNS) | of("MarginRankingLoss", (3,), (3,), SIGNS)
CASES |= of("CosineEmbeddingLoss", (3, 4), (3, 4), SIGNS) | of("TripletMarginLoss", (3, 4), (3, 4), (3, 4))
CASES |= of("TripletMarginWithDistanceLoss", (3, 4), (3, 4), (3, 4))
CASES |= {
    "CTCLoss": (
        lambda nn: nn.CTCLoss(),
        ((6, 2, 4), indices([1, 2, 3], [2, 2, 1]), indices(6, 5), indices(3, 2)),
    )
}
CASES |= of("LinearCrossEntropyLoss", (2, 4), indices(0, 2), args=(4, 3), bias=True)
CASES |= of("AdaptiveLogSoftmaxWithLoss", (3, 4), indices(0, 4, 7), args=(4, 9, [2, 5]))
for recurrent in ("RNN", "LSTM", "GRU"):
    CASES |= of(recurrent, (5, 2, 3), args=(3, 4), num_layers=2, bidirectional=True)
    CASES |= of(recurrent + "Cell", (2, 3), args=(3, 4))
CASES |= of("MultiheadAttention", (5, 2, 4), (6, 2, 4), (6, 2, 4), args=(4, 2))
CASES |= of(
    "Transformer",
    (5, 2, 4),
    (3, 2, 4),
    d_model=4,
    nhead=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dim_feedforward=6,
    dropout=0.0,
)
CASES |= of("TransformerEncoderLayer", (5, 2, 4), args=(4, 2, 6, 0.0)) | of(
    "TransformerDecoderLayer", (5, 2, 4), (3, 2, 4), args=(4, 2, 6, 0.0)
)
CASES |= {
    "TransformerEncoder": (lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.0), 2), ((5, 2, 4),)),
    "TransformerDecoder": (
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, 0.0), 2),
        ((5, 2, 4), (3, 2, 4)),
    ),
    "Sequential": (lambda nn: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), ((3, 4),)),
    "DataParallel": (lambda nn: nn.DataParallel(nn.Linear(4, 3)), ((3, 4),)),
}
CASES["BCELoss"] = (lambda nn: nn.BCELoss(), ((2, 3), PROBABLE))

#: Classes that hold others, and bases: what they do is checked in test_nn.py and test_oracle_nn_utils.py.
NOT_CALLED = [
    "Buffer",
    "Container",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RNNBase",
    "RNNCellBase",
    "UninitializedBuffer",
    "UninitializedParameter",
    "LinearCrossEntropyOptions",
]


def made(T: Any, name: str, dtype: str = "float64", device: str = "cpu") -> tuple[Any, list[Any]]:
    """The module, and its inputs: the same numbers for every library, dtype and device."""
    import warnings

    make, inputs = CASES[name]
    random = np.random.default_rng(0)
    kind = getattr(T, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = make(T.nn).to(kind).to(device)
    if name in DRAWN:
        module.eval()
    tensors = []
    for given in inputs:
        if isinstance(given, tuple):
            low = 0.1 if name == "BCELoss" else -1.0
            x = T.tensor(random.uniform(low, 0.9, given), dtype=kind, device=device)
            tensors.append(x.requires_grad_())
        else:
            whole = given.dtype.kind == "i"
            tensors.append(T.tensor(given, dtype=T.int64 if whole else kind, device=device))
    if name.startswith("Fractional"):
        rank = int(name[-2])
        module._random_samples = T.tensor([[[u] * rank for u in SAMPLES]], dtype=kind, device=device)
    return module, tensors


def results(out: Any) -> list[Any]:
    """The tensors of floats in what a module gives, in order."""
    if isinstance(out, tuple | list):
        return [t for part in out for t in results(part)]
    return [out] if hasattr(out, "is_floating_point") and out.is_floating_point() else []
