"""All differences between rgrad's signatures and PyTorch's, by reason. `test_oracle_signatures.py` compares exactly:
one that is not here fails, and so does one that is here and no longer there.
"""

from __future__ import annotations

from rgrad._runtime.names import IN_PLACE

UNBIASED = {"unbiased stands where dim is"}
VALUE = {"value stands where src is"}
NAMED_PADDING = {"padding is 0, not 'valid'"}
SECTIONS = {"indices stands where indices_or_sections is", "sections stands where indices_or_sections is"}
ALL_SECTIONS = {*SECTIONS, "indices_or_sections has no default"}
BY_POSITION = {f"{name} cannot be given by position" for name in ("dtype", "device", "requires_grad", "pin_memory")}

KINDS = (
    "BFloat16",
    "Bool",
    "Byte",
    "Char",
    "ComplexDouble",
    "ComplexFloat",
    "Double",
    "Float",
    "Half",
    "Int",
    "Long",
    "Short",
)

DIFFERENT: dict[str, dict[str, set[str]]] = {
    "an old class has its dtype and lies on the CPU; PyTorch refuses others when it is called": {
        f"{kind}Storage": {"dtype= is missing", "device= is missing"} for kind in KINDS
    },
    "methods that always raise, with the names of their functions": {
        "Tensor.lstsq": {"other stands where A is"},
        "Tensor.solve": {"other stands where A is"},
    },
    "PyTorch's stub says so, PyTorch itself takes no such argument": {
        "Tensor.add": {"out= is missing"},
        "Tensor.contiguous": {"memory_format cannot be given by position"},
        "Tensor.floor_divide": {"out= is missing"},
        "Tensor.mul": {"out= is missing"},
        "Tensor.new_tensor": BY_POSITION,
        "Tensor.requires_grad_": {"mode stands where requires_grad is"},
        "Tensor.split": {"split_size stands where split_size_or_sections is"},
        "Tensor.sub": {"out= is missing"},
        "Tensor.true_divide": {"out= is missing"},
        "linspace": {"steps is without default, not None"},
        "logspace": {"steps is without default, not None"},
        "tensor": BY_POSITION,
    },
    "one parameter takes what PyTorch's forms have in the same place under several names; all names are taken": {
        "Tensor.max": {"other stands where dim is"},
        "Tensor.min": {"other stands where dim is"},
        "Tensor.random_": {"to stands where from_ is"},
        "Tensor.scatter": VALUE,
        "Tensor.scatter_": VALUE,
        "Tensor.std": UNBIASED,
        "Tensor.tensor_split": {*SECTIONS, "tensor_indices_or_sections stands where indices_or_sections is"},
        "Tensor.var": UNBIASED,
        "conv1d": NAMED_PADDING,
        "conv2d": NAMED_PADDING,
        "conv3d": NAMED_PADDING,
        "dsplit": SECTIONS,
        "hsplit": SECTIONS,
        "isin": {"element stands where elements is", "test_element stands where test_elements is"},
        "max": {"other stands where dim is"},
        "min": {"other stands where dim is"},
        "scatter": VALUE,
        "std": UNBIASED,
        "std_mean": UNBIASED,
        "tensor_split": {*SECTIONS, "tensor_indices_or_sections stands where indices_or_sections is"},
        "var": UNBIASED,
        "var_mean": UNBIASED,
        "vsplit": SECTIONS,
    },
    "several dimensions or positions are given as one tuple, not one by one": {
        "Tensor.count_nonzero": {"*dim is missing"},
        "Tensor.dsplit": ALL_SECTIONS,
        "Tensor.hsplit": ALL_SECTIONS,
        "Tensor.vsplit": ALL_SECTIONS,
    },
    "they are the methods: the tensor comes first and has no name": {
        name: {"input stands where self is"} for name in IN_PLACE
    },
    "a factor is given by name": {
        "Tensor.subtract": {"alpha cannot be given by position"},
        "Tensor.subtract_": {"alpha cannot be given by position"},
        "subtract": {"alpha cannot be given by position"},
    },
    "names that depend on which operand is a number": {
        "repeat_interleave": {"repeats stands where input is"},
        "result_type": {
            "scalar stands where tensor is",
            "scalar1 stands where tensor is",
            "scalar2 stands where other is",
            "tensor stands where other is",
        },
    },
    "PyTorch's native form takes the reduction as a number; rgrad's is that of nn.functional": {
        "binary_cross_entropy_with_logits": {"reduction is 'mean', not 1"},
    },
    "False here, and None there: both say that no gradient is wanted": {
        "asarray": {"requires_grad is False, not None"},
    },
    "files of others are read without running what they say, unless the caller wants it": {
        "hub.load_state_dict_from_url": {"weights_only is True, not False"},
    },
    "the method takes `out` as the function does": {
        "Tensor.norm": {"dtype stands where out is"},
    },
    "the form without dimensions": {
        "nuclear_norm": {"keepdim stands where dim is"},
    },
    "dimensions have no names here": {
        "full": {"names= is missing"},
    },
}
