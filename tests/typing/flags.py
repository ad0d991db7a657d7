"""Functions of which a flag decides what comes back."""

from typing import assert_type

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor, return_types

x = rgrad.tensor([[3.0, 1.0], [2.0, 4.0]])
image = rgrad.arange(32.0).reshape(1, 2, 4, 4)
lines = image[:, :, 0]
volume = rgrad.arange(128.0).reshape(1, 2, 4, 4, 4)
flag = bool(x.sum() > 0)

# Max pooling gives positions on demand: by name, by position, or perhaps.
assert_type(F.max_pool1d(lines, 2), Tensor)
assert_type(F.max_pool1d(lines, 2, return_indices=False), Tensor)
assert_type(F.max_pool1d(lines, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.max_pool1d(lines, 2, 2, 0, 1, False, True), tuple[Tensor, Tensor])
assert_type(F.max_pool1d(lines, 2, return_indices=flag), Tensor | tuple[Tensor, Tensor])
assert_type(F.max_pool2d(image, 2), Tensor)
assert_type(F.max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.max_pool2d(image, 2, 2, 0, 1, False, False), Tensor)
assert_type(F.max_pool2d(image, (2, 2), None, 0, 1, False, True), tuple[Tensor, Tensor])
assert_type(F.max_pool2d(image, 2, return_indices=flag), Tensor | tuple[Tensor, Tensor])
assert_type(F.max_pool2d_with_indices(image, 2), tuple[Tensor, Tensor])
assert_type(F.max_pool3d(volume, 2), Tensor)
assert_type(F.max_pool3d(volume, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.adaptive_max_pool1d(lines, 2), Tensor)
assert_type(F.adaptive_max_pool1d(lines, 2, True), tuple[Tensor, Tensor])
assert_type(F.adaptive_max_pool2d(image, (2, None)), Tensor)
assert_type(F.adaptive_max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.adaptive_max_pool2d(image, 2, flag), Tensor | tuple[Tensor, Tensor])
assert_type(F.adaptive_max_pool3d(volume, 2), Tensor)
assert_type(F.adaptive_max_pool3d(volume, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.fractional_max_pool2d(image, 2, 3), Tensor)
assert_type(F.fractional_max_pool2d(image, 2, 3, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.fractional_max_pool2d(image, 2, 3, None, True), tuple[Tensor, Tensor])
assert_type(F.fractional_max_pool2d(image, 2, 3, return_indices=flag), Tensor | tuple[Tensor, Tensor])
assert_type(F.fractional_max_pool3d(volume, 1, 3), Tensor)
assert_type(F.fractional_max_pool3d(volume, 1, 3, return_indices=True), tuple[Tensor, Tensor])

# Attention gives its weights unless told not to.
words, eye = rgrad.ones(3, 2, 4), rgrad.eye(4)
shared = (words, words, words, 4, 2, rgrad.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, None)
assert_type(F.multi_head_attention_forward(*shared), tuple[Tensor, Tensor])
assert_type(F.multi_head_attention_forward(*shared, need_weights=False), tuple[Tensor, None])
assert_type(F.multi_head_attention_forward(*shared, need_weights=flag), tuple[Tensor, Tensor | None])

# Different numbers, and what they came from.
assert_type(rgrad.unique(x), Tensor)
assert_type(rgrad.unique(x, return_inverse=True), tuple[Tensor, Tensor])
assert_type(rgrad.unique(x, return_counts=True), tuple[Tensor, Tensor])
assert_type(rgrad.unique(x, return_inverse=True, return_counts=True), tuple[Tensor, Tensor, Tensor])
assert_type(rgrad.unique(x, True, True, True, 0), tuple[Tensor, Tensor, Tensor])
assert_type(rgrad.unique(x, return_inverse=flag), Tensor | tuple[Tensor, ...])
assert_type(x.unique(dim=0), Tensor)
assert_type(x.unique(return_inverse=True), tuple[Tensor, Tensor])
assert_type(x.unique(return_inverse=True, return_counts=True), tuple[Tensor, Tensor, Tensor])
assert_type(rgrad.unique_consecutive(x), Tensor)
assert_type(rgrad.unique_consecutive(x, True), tuple[Tensor, Tensor])
assert_type(x.unique_consecutive(return_counts=True), tuple[Tensor, Tensor])
assert_type(x.unique_consecutive(True, True), tuple[Tensor, Tensor, Tensor])

# Places: one tensor of them, or one for each dimension.
assert_type(rgrad.nonzero(x), Tensor)
assert_type(rgrad.nonzero(x, as_tuple=True), tuple[Tensor, ...])
assert_type(x.nonzero(as_tuple=False), Tensor)
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(rgrad.where(x > 1), tuple[Tensor, ...])
assert_type(rgrad.where(x > 1, x, 0.0), Tensor)

# Of all elements, or along a dimension.
assert_type(rgrad.max(x), Tensor)
assert_type(rgrad.max(x, 0), return_types.max)
assert_type(rgrad.max(x, x), Tensor)
assert_type(x.min(), Tensor)
assert_type(x.min(dim=1, keepdim=True), return_types.min)
assert_type(x.median(), Tensor)
assert_type(x.median(0), return_types.median)
assert_type(rgrad.nanmedian(x), Tensor)
assert_type(rgrad.nanmedian(x, 0), return_types.nanmedian)
assert_type(x.size(), rgrad.Size)
assert_type(x.size(0), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.stride(0), int)
assert_type(x.type(), str)
assert_type(x.type(rgrad.float64), Tensor)

# One tensor in, one out; several in, several out.
assert_type(rgrad.atleast_1d(x), Tensor)
assert_type(rgrad.atleast_2d(x, x), tuple[Tensor, ...])
assert_type(rgrad.atleast_3d([x, x]), tuple[Tensor, ...])

assert_type(rgrad.lu(x), tuple[Tensor, Tensor])
assert_type(rgrad.lu(x, get_infos=True), tuple[Tensor, Tensor, Tensor])
assert_type(x.lu(True, True), tuple[Tensor, Tensor, Tensor])

scaler = rgrad.amp.GradScaler("cpu")
assert_type(scaler.scale(x), Tensor)
assert_type(scaler.scale([x, x]), list[Tensor])

optimizer = rgrad.optim.SGD([rgrad.ones(2, requires_grad=True)], lr=0.1)
assert_type(optimizer.step(), None)
assert_type(optimizer.step(lambda: x), Tensor)
