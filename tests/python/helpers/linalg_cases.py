"""Calls of linear algebra for the tests with and without PyTorch: each of a library and a square matrix or batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Any], Any]


def symmetric(a: Any) -> Any:
    return a + a.mT


def definite(T: Any, a: Any) -> Any:
    return a @ a.mT + 3 * T.eye(a.shape[-1], dtype=T.float64)


# What is not unique (signs of vectors) is squared.
CASES: dict[str, Call] = {
    "inv": lambda T, a: T.linalg.inv(a),
    "inv_ex": lambda T, a: T.linalg.inv_ex(a)[0],
    "solve": lambda T, a: T.linalg.solve(a, a[..., :2] * a[..., 1:3]),
    "solve of vectors": lambda T, a: T.linalg.solve(a, a[..., 0] ** 2),
    "solve on the right": lambda T, a: T.linalg.solve(a, a[..., :2, :] ** 2, left=False),
    "solve_ex": lambda T, a: T.linalg.solve_ex(a, a[..., :2] ** 2)[0],
    "solve_triangular": lambda T, a: T.linalg.solve_triangular(a, a[..., :2] ** 2, upper=True),
    "solve_triangular with ones": lambda T, a: T.linalg.solve_triangular(
        a, a[..., :2, :] ** 2, upper=False, left=False, unitriangular=True
    ),
    "det": lambda T, a: T.linalg.det(a),
    "det of three rows": lambda T, a: T.linalg.det(a[..., :3, :3]),
    "slogdet": lambda T, a: T.linalg.slogdet(a)[1],
    "logdet": lambda T, a: T.logdet(definite(T, a)),
    "cholesky": lambda T, a: T.linalg.cholesky(definite(T, a)),
    "cholesky upper": lambda T, a: T.linalg.cholesky(definite(T, a), upper=True),
    "cholesky_solve": lambda T, a: T.cholesky_solve(a[..., :2] ** 2, T.linalg.cholesky(definite(T, a))),
    "cholesky_inverse": lambda T, a: T.cholesky_inverse(T.linalg.cholesky(definite(T, a))),
    "qr Q": lambda T, a: T.linalg.qr(a)[0] ** 2,
    "qr R": lambda T, a: T.linalg.qr(a)[1] ** 2,
    "qr tall": lambda T, a: (T.linalg.qr(a[..., :2])[0] * T.arange(2)).sum(-1) ** 2,
    "qr wide R": lambda T, a: T.linalg.qr(a[..., :2, :])[1] ** 2,
    "qr wide Q": lambda T, a: T.linalg.qr(a[..., :2, :], "complete")[0] ** 2,
    "eigh values": lambda T, a: T.linalg.eigh(symmetric(a))[0],
    "eigh vectors": lambda T, a: T.linalg.eigh(symmetric(a))[1] ** 2,
    "eigvalsh": lambda T, a: T.linalg.eigvalsh(symmetric(a), "U"),
    "svdvals": lambda T, a: T.linalg.svdvals(a),
    "svd U": lambda T, a: T.linalg.svd(a[..., :2], False)[0] ** 2,
    "svd Vh": lambda T, a: T.linalg.svd(a[..., :2, :], False)[2] ** 2,
    "svd square": lambda T, a: T.linalg.svd(a)[2] ** 2,
    "svd old": lambda T, a: T.svd(a)[2] ** 2,
    "pinv tall": lambda T, a: T.linalg.pinv(a[..., :2]),
    "pinv wide": lambda T, a: T.linalg.pinv(a[..., :2, :]),
    "lstsq": lambda T, a: T.linalg.lstsq(a[..., :2], a[..., 2:] ** 2)[0],
    "lu L": lambda T, a: T.linalg.lu(a)[1],
    "lu U": lambda T, a: T.linalg.lu(a)[2],
    "lu tall": lambda T, a: T.linalg.lu(a[..., :2])[1],
    "lu wide": lambda T, a: T.linalg.lu(a[..., :2, :])[2],
    "lu_solve": lambda T, a: T.linalg.lu_solve(*T.linalg.lu_factor(a), a[..., :2] ** 2),
    "lu_solve adjoint": lambda T, a: T.linalg.lu_solve(
        *T.linalg.lu_factor(a), a[..., :2, :] ** 2, left=False, adjoint=True
    ),
    "matrix_power": lambda T, a: T.linalg.matrix_power(a, 3),
    "matrix_power negative": lambda T, a: T.linalg.matrix_power(a, -2),
    "matrix_exp": lambda T, a: T.linalg.matrix_exp(a),
    "norm": lambda T, a: T.linalg.norm(a),
    "matrix_norm nuc": lambda T, a: T.linalg.matrix_norm(a, "nuc"),
    "matrix_norm 2": lambda T, a: T.linalg.matrix_norm(a, 2),
    "matrix_norm -2": lambda T, a: T.linalg.matrix_norm(a, -2, keepdim=True),
    "vector_norm 3": lambda T, a: T.linalg.vector_norm(a, 3, dim=-1),
    "cond": lambda T, a: T.linalg.cond(a),
    "multi_dot": lambda T, a: T.linalg.multi_dot([a.reshape(-1, 4)[0], a.reshape(-1, 4)[:4], a.reshape(-1, 4)[:4, :2]]),
    "cross": lambda T, a: T.linalg.cross(a[..., :3], a[..., 1:]),
    "vecdot": lambda T, a: T.linalg.vecdot(a, a**2),
    "householder_product": lambda T, a: T.linalg.householder_product(a, a[..., 0, :3]),
    "tensorsolve": lambda T, a: T.linalg.tensorsolve(
        a.reshape(-1)[:16].reshape(2, 2, 4), a.reshape(-1)[:4].reshape(2, 2)
    ),
    "tensorinv": lambda T, a: T.linalg.tensorinv(a.reshape(-1)[:16].reshape(2, 2, 4)),
}
# PyTorch has no second derivative of these, or fails in it.
WITHOUT_SECOND: dict[str, Call] = {
    "matrix_power 0": lambda T, a: T.linalg.matrix_power(a, 0) * a,
    "matrix_norm 1": lambda T, a: T.linalg.matrix_norm(a, 1),
    "matrix_norm -inf": lambda T, a: T.linalg.matrix_norm(a, -float("inf"), dim=(0, 1)),
    "cond 1": lambda T, a: T.linalg.cond(a, 1),
    "cond fro": lambda T, a: T.linalg.cond(a, "fro"),
}
