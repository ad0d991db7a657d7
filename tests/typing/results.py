"""What is not one tensor says what it is: tuples, tuples with named fields, numbers, texts."""

from typing import assert_type

import rgrad
from rgrad import Tensor, return_types

x = rgrad.tensor([[4.0, 1.0], [1.0, 3.0]])

# Parts.
assert_type(x.chunk(2), tuple[Tensor, ...])
assert_type(rgrad.unsafe_chunk(x, 2), tuple[Tensor, ...])
assert_type(x.unsafe_chunk(2), tuple[Tensor, ...])
assert_type(x.split(1), tuple[Tensor, ...])
assert_type(rgrad.unsafe_split(x, 1), tuple[Tensor, ...])
assert_type(x.unsafe_split_with_sizes([1, 1]), tuple[Tensor, ...])
assert_type(x.unbind(), tuple[Tensor, ...])
assert_type(rgrad.meshgrid(x[0], x[1], indexing="ij"), tuple[Tensor, ...])

# Fields by name and by place.
largest = x.max(dim=0)
assert_type(largest.values, Tensor)
assert_type(largest.indices, Tensor)
assert_type(largest[0], Tensor)
values, indices = largest
assert_type(values, Tensor)
assert_type(indices, Tensor)
assert_type(x.sort(), return_types.sort)
assert_type(x.sort().indices, Tensor)
assert_type(x.topk(1).values, Tensor)
assert_type(x.kthvalue(1), return_types.kthvalue)
assert_type(x.mode(), return_types.mode)
assert_type(x.cummax(0), return_types.cummax)
assert_type(x.cummin(0).values, Tensor)
assert_type(x.aminmax(), return_types.aminmax)
assert_type(x.aminmax().min, Tensor)
assert_type(rgrad.frexp(x).mantissa, Tensor)
assert_type(x.frexp().exponent, Tensor)
assert_type(x.histogram(3).bin_edges, Tensor)
assert_type(rgrad.histogramdd(x, 2).bin_edges, tuple[Tensor, ...])
assert_type(rgrad.std_mean(x), tuple[Tensor, Tensor])
assert_type(rgrad.var_mean(x, 0), tuple[Tensor, Tensor])

# Linear algebra.
assert_type(rgrad.linalg.qr(x), return_types.linalg_qr)
assert_type(rgrad.linalg.qr(x).Q, Tensor)
Q, R = rgrad.linalg.qr(x, mode="complete")
assert_type(R, Tensor)
assert_type(rgrad.linalg.svd(x).Vh, Tensor)
assert_type(rgrad.linalg.eigh(x).eigenvalues, Tensor)
assert_type(rgrad.linalg.slogdet(x).logabsdet, Tensor)
assert_type(rgrad.linalg.lu(x).P, Tensor)
assert_type(rgrad.linalg.lu_factor(x).pivots, Tensor)
assert_type(rgrad.linalg.lu_factor_ex(x).info, Tensor)
assert_type(rgrad.linalg.lstsq(x, x).solution, Tensor)
assert_type(rgrad.linalg.inv_ex(x).inverse, Tensor)
assert_type(rgrad.linalg.solve_ex(x, x).result, Tensor)
assert_type(rgrad.linalg.cholesky_ex(x).L, Tensor)
assert_type(rgrad.linalg.inv(x), Tensor)
assert_type(x.qr(), return_types.qr)
assert_type(x.svd().V, Tensor)
assert_type(x.slogdet().sign, Tensor)
assert_type(x.triangular_solve(x).solution, Tensor)
P, L, U = rgrad.lu_unpack(*rgrad.linalg.lu_factor(x))
assert_type(P, Tensor)

# What a tensor says of itself.
assert_type(x._repr_html_(), str)
assert_type(repr(x), str)
assert_type(x.grad_dtype, rgrad.dtype | None)
assert_type(x.grad, Tensor | None)
assert_type(x.shape, rgrad.Size)
assert_type(x.numel(), int)
assert_type(x.dim_order(), tuple[int, ...])
assert_type(x.is_contiguous(), bool)
assert_type(bool(x.sum() > 0), bool)
assert_type(x.requires_grad, bool)
assert_type(x.mT, Tensor)
assert_type(rgrad.equal(x, x), bool)
assert_type(rgrad.promote_types(rgrad.int32, rgrad.float32), rgrad.dtype)

# What writes to a tensor gives that tensor, with its class.
parameter = rgrad.nn.Parameter(rgrad.ones(2))
with rgrad.no_grad():
    assert_type(parameter.add_(1), rgrad.nn.Parameter)
    assert_type(parameter.mul_(2).zero_(), rgrad.nn.Parameter)
    parameter += 1
    assert_type(parameter, rgrad.nn.Parameter)
assert_type(x.erfinv_(), Tensor)
assert_type(rgrad.relu_(x), Tensor)
