"""Which names of the native module are names of ``rgrad``: all that PyTorch has at its top level, and those in ``OWN``.

A test compares both lists with PyTorch.
"""

# Names that PyTorch has elsewhere, and where they are here.
ELSEWHERE = {
    "HookHandle": "_core",
    "SavedTensor": "autograd",
    "binary_cross_entropy": "nn.functional",
    "cross_entropy": "nn.functional",
    "elu": "nn.functional",
    "expit": "_core",
    "gelu": "nn.functional",
    "hardsigmoid": "nn.functional",
    "hardswish": "nn.functional",
    "hardtanh": "nn.functional",
    "huber_loss": "nn.functional",
    "l1_loss": "nn.functional",
    "leaky_relu": "nn.functional",
    "linear": "nn.functional",
    "logsigmoid": "nn.functional",
    "mish": "nn.functional",
    "mse_loss": "nn.functional",
    "nll_loss": "nn.functional",
    "pointwise_names": "_core",
    "silu": "nn.functional",
    "smooth_l1_loss": "nn.functional",
    "softplus": "nn.functional",
    "softshrink": "nn.functional",
}

_ERRORS = "errors are caught by their class; each is also the built-in error that a PyTorch user would catch"
_MEMORY = "memory is counted on every device; PyTorch has this for each kind of accelerator"

# Names that PyTorch does not have at its top level, and why they are at ours.
OWN = {
    "ArgumentTypeError": _ERRORS,
    "ArgumentValueError": _ERRORS,
    "DTypeError": _ERRORS,
    "GraphError": _ERRORS,
    "InternalError": _ERRORS,
    "MissingError": _ERRORS,
    "OperationError": _ERRORS,
    "OutOfRangeError": _ERRORS,
    "RgradError": _ERRORS,
    "ShapeError": _ERRORS,
    "empty_cache": _MEMORY,
    "fusion": "the switch of deferred results, which PyTorch does not have",
    "max_memory_allocated": _MEMORY,
    "memory_allocated": _MEMORY,
    "reset_peak_memory_stats": _MEMORY,
    "set_memory_limit": _MEMORY,
    "wgpu": "the device, as `torch.cuda` is one",
}
