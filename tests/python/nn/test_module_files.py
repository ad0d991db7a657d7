"""Each file of PyTorch's ``torch/nn`` has one here with its classes and the private bases that programs import."""

from __future__ import annotations

import importlib

import pytest

import rgrad
from rgrad import nn

RANKS = ("1d", "2d", "3d")


def ranked(*names: str) -> list[str]:
    return [name + rank for name in names for rank in RANKS]


# The names of each file of nn.modules. Those with an underscore are bases and helpers.
FILES = {
    "activation": [
        "CELU",
        "ELU",
        "GELU",
        "GLU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "LeakyReLU",
        "LogSigmoid",
        "LogSoftmax",
        "Mish",
        "MultiheadAttention",
        "PReLU",
        "RReLU",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softmax2d",
        "Softmin",
        "Softplus",
        "Softshrink",
        "Softsign",
        "Tanh",
        "Tanhshrink",
        "Threshold",
    ],
    "adaptive": ["AdaptiveLogSoftmaxWithLoss", "_ASMoutput"],
    "batchnorm": [*ranked("BatchNorm", "LazyBatchNorm"), "SyncBatchNorm", "_BatchNorm", "_LazyNormBase", "_NormBase"],
    "channelshuffle": ["ChannelShuffle"],
    "container": ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"],
    "conv": [
        *ranked("Conv", "ConvTranspose", "LazyConv", "LazyConvTranspose"),
        *("_ConvNd", "_ConvTransposeNd", "_LazyConvXdMixin"),
    ],
    "distance": ["CosineSimilarity", "PairwiseDistance"],
    "dropout": [*ranked("Dropout"), "AlphaDropout", "Dropout", "FeatureAlphaDropout", "_DropoutNd"],
    "flatten": ["Flatten", "Unflatten"],
    "fold": ["Fold", "Unfold"],
    "instancenorm": [*ranked("InstanceNorm", "LazyInstanceNorm"), "_InstanceNorm"],
    "lazy": ["LazyModuleMixin"],
    "linear": ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"],
    "loss": [
        "BCELoss",
        "BCEWithLogitsLoss",
        "CTCLoss",
        "CosineEmbeddingLoss",
        "CrossEntropyLoss",
        "GaussianNLLLoss",
        "HingeEmbeddingLoss",
        "HuberLoss",
        "KLDivLoss",
        "L1Loss",
        "LinearCrossEntropyLoss",
        "MSELoss",
        "MarginRankingLoss",
        "MultiLabelMarginLoss",
        "MultiLabelSoftMarginLoss",
        "MultiMarginLoss",
        "NLLLoss",
        "NLLLoss2d",
        "PoissonNLLLoss",
        "SmoothL1Loss",
        "SoftMarginLoss",
        "TripletMarginLoss",
        "TripletMarginWithDistanceLoss",
        "_Loss",
        "_WeightedLoss",
    ],
    "module": [
        *("Module", "_IncompatibleKeys", "_addindent", "register_module_backward_hook", "register_module_forward_hook"),
        *("register_module_forward_pre_hook", "register_module_full_backward_hook"),
    ],
    "normalization": ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"],
    "padding": [
        *ranked("CircularPad", "ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad"),
        *("_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"),
    ],
    "pixelshuffle": ["PixelShuffle", "PixelUnshuffle"],
    "pooling": [
        *ranked("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "LPPool", "MaxPool", "MaxUnpool"),
        *("FractionalMaxPool2d", "FractionalMaxPool3d", "_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd", "_AvgPoolNd"),
        *("_LPPoolNd", "_MaxPoolNd", "_MaxUnpoolNd"),
    ],
    "rnn": ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"],
    "sparse": ["Embedding", "EmbeddingBag"],
    "transformer": [
        *("Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder"),
        *("TransformerEncoderLayer", "_generate_square_subsequent_mask", "_get_activation_fn", "_get_clones"),
    ],
    "upsampling": ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"],
    "utils": [
        *("_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple"),
        "consume_prefix_in_state_dict_if_present",
    ],
}

# Bases, and what is derived from each.
BASES = {
    "batchnorm._NormBase": [*ranked("BatchNorm", "InstanceNorm", "LazyBatchNorm"), "SyncBatchNorm"],
    "batchnorm._BatchNorm": [*ranked("BatchNorm", "LazyBatchNorm"), "SyncBatchNorm"],
    "batchnorm._LazyNormBase": ranked("LazyBatchNorm", "LazyInstanceNorm"),
    "conv._ConvNd": ranked("Conv", "ConvTranspose", "LazyConv", "LazyConvTranspose"),
    "conv._ConvTransposeNd": ranked("ConvTranspose", "LazyConvTranspose"),
    "conv._LazyConvXdMixin": ranked("LazyConv", "LazyConvTranspose"),
    "dropout._DropoutNd": [*ranked("Dropout"), "AlphaDropout", "Dropout", "FeatureAlphaDropout"],
    "instancenorm._InstanceNorm": ranked("InstanceNorm", "LazyInstanceNorm"),
    "lazy.LazyModuleMixin": [
        *ranked("LazyBatchNorm", "LazyConv", "LazyConvTranspose", "LazyInstanceNorm"),
        "LazyLinear",
    ],
    "loss._WeightedLoss": [
        "BCELoss",
        "CrossEntropyLoss",
        "LinearCrossEntropyLoss",
        "MultiLabelSoftMarginLoss",
        "MultiMarginLoss",
        "NLLLoss",
        "NLLLoss2d",
    ],
    "padding._CircularPadNd": ranked("CircularPad"),
    "padding._ConstantPadNd": ranked("ConstantPad", "ZeroPad"),
    "padding._ReflectionPadNd": ranked("ReflectionPad"),
    "padding._ReplicationPadNd": ranked("ReplicationPad"),
    "pooling._AdaptiveAvgPoolNd": ranked("AdaptiveAvgPool"),
    "pooling._AdaptiveMaxPoolNd": ranked("AdaptiveMaxPool"),
    "pooling._AvgPoolNd": ranked("AvgPool"),
    "pooling._LPPoolNd": ranked("LPPool"),
    "pooling._MaxPoolNd": ranked("MaxPool"),
    "pooling._MaxUnpoolNd": ranked("MaxUnpool"),
    "rnn.RNNBase": ["GRU", "LSTM", "RNN"],
    "rnn.RNNCellBase": ["GRUCell", "LSTMCell", "RNNCell"],
}

# Private bases that other classes have too.
SHARED = {"conv._ConvNd", "batchnorm._NormBase"}


@pytest.mark.parametrize("file", FILES)
def test_a_file_has_its_names(file: str) -> None:
    module = importlib.import_module(f"rgrad.nn.modules.{file}")
    for name in FILES[file]:
        assert getattr(module, name) is getattr(nn, name, getattr(module, name)), name


def test_every_layer_stands_in_a_file() -> None:
    assert set(nn.modules.__all__) - {"LinearCrossEntropyOptions"} <= {
        name for names in FILES.values() for name in names
    }


@pytest.mark.parametrize("base", BASES)
def test_a_base_has_its_classes_and_no_others(base: str) -> None:
    file, _, name = base.partition(".")
    cls = getattr(importlib.import_module(f"rgrad.nn.modules.{file}"), name)
    derived = {n for n in nn.modules.__all__ if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), cls)}
    assert set(BASES[base]) <= derived
    if base not in SHARED:
        assert derived - {name} == set(BASES[base])


@pytest.mark.parametrize("rank", RANKS)
def test_padding_with_zeros_is_padding_with_a_constant(rank: str) -> None:
    layer = getattr(nn, f"ZeroPad{rank}")(1)
    assert isinstance(layer, getattr(nn, f"ConstantPad{rank}"))
    assert layer.value == 0
    assert not layer(rgrad.zeros(1, 1, *[2] * int(rank[0]))).any()


@pytest.mark.parametrize(
    "name",
    [
        *("attention", "common_types", "functional", "grad", "init", "modules", "parallel", "parameter"),
        *("utils.clip_grad", "utils.convert_parameters", "utils.fusion", "utils.init", "utils.memory_format"),
        *("utils.parametrizations", "utils.parametrize", "utils.prune", "utils.rnn", "utils.spectral_norm"),
        *("utils.stateless", "utils.weight_norm"),
    ],
)
def test_other_files_of_nn(name: str) -> None:
    assert importlib.import_module(f"rgrad.nn.{name}")
