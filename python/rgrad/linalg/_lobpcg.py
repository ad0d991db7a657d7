"""A few eigenvalues of symmetric matrices (Knyazev 2001, "Toward the optimal preconditioned eigensolver")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._runtime.info import finfo
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad


class _Pairs(Function):
    """Eigenvalues and eigenvectors that are known already, as functions of the matrix."""

    _node_name = "LOBPCGAutogradFunctionBackward"

    @staticmethod
    def forward(ctx: Any, A: Tensor, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        E, X = values.clone(), vectors.clone()
        ctx.save_for_backward(A, E, X)
        ctx.set_materialize_grads(False)
        return E, X

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        A, E, X = ctx.saved_tensors
        to_values, to_vectors = grads
        if to_values is None and to_vectors is None:
            return None, None, None
        left = None if to_values is None else X * to_values.unsqueeze(-2)
        if to_vectors is not None:
            inner = X.mH @ to_vectors
            eye = _core.eye(E.shape[-1], dtype=E.dtype, device=E.device)
            gaps = (1 - eye) / (E.unsqueeze(-2) - E.unsqueeze(-1) + eye)
            along = X @ (inner * gaps) + _beside(A, E, X, to_vectors - X @ inner)
            left = along if left is None else left + along
        assert left is not None
        return left @ X.mH, None, None


def _beside(A: Tensor, E: Tensor, X: Tensor, right: Tensor) -> Tensor:
    """Solve ``(value - A) z = column`` for each column of ``right``, all orthogonal to the eigenvectors."""
    identity = _core.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    inside = X @ X.mH
    rest = A - (X * E.unsqueeze(-2)) @ X.mH
    # Of the eigenvectors themselves the matrix is to be regular.
    regular = inside * E.detach().abs().amax(-1).clamp(min=finfo(E.dtype).tiny)[..., None, None]
    columns = []
    for j in range(E.shape[-1]):
        matrix = E[..., j, None, None] * (identity - inside) - rest + regular
        columns.append(_core._linalg_solve(matrix, right[..., j : j + 1]))
    made = _core.cat(columns, -1)
    return made - inside @ made


class LOBPCG:
    """What a tracker is called with.

    Attributes:
        iparams: ``m`` rows, ``n`` vectors, ``k`` wanted pairs, and the largest number of steps, ``niter``.
        fparams: The tolerance, ``tol``.
        bparams: ``largest``; ``force_stop`` may be set in ``bvars``.
        ivars: The step, ``istep``, and how many pairs are good enough, ``converged_count``.
        tvars: ``rerr``, the errors of the pairs.
        E: The eigenvalues, shape ``(n)``.
        X: The eigenvectors, shape ``(m, n)``.
    """

    def __init__(self, m: int, n: int, k: int, niter: int, tol: float, largest: bool) -> None:
        self.iparams = {"m": m, "n": n, "k": k, "niter": niter}
        self.fparams = {"tol": tol}
        self.bparams = {"largest": largest}
        self.ivars = {"istep": 0, "converged_count": 0}
        self.bvars = {"force_stop": False}
        self.tvars: dict[str, Tensor] = {}
        self.E: Tensor | None = None
        self.X: Tensor | None = None

    def run(
        self, A: Tensor, X: Tensor, precondition: Callable[[Tensor], Tensor], tracker: Callable[[Any], None] | None
    ) -> tuple[Tensor, Tensor]:
        """Improve ``X`` (m, n) until its first columns are eigenvectors of ``A`` (m, m)."""
        n, k, largest = self.iparams["n"], self.iparams["k"], self.bparams["largest"]
        scale = A.abs().sum(-1).amax()
        basis = _core._linalg_qr(X).Q
        step = 0
        while True:
            E, Z = _core._linalg_eigh(basis.mH @ (A @ basis))
            E, Z = (E[-n:].flip(0), Z[:, -n:].flip(1)) if largest else (E[:n], Z[:, :n])
            X = basis @ Z
            R = A @ X - X * E
            errors = R.norm(2, 0) / (scale + E.abs()).clamp(min=finfo(E.dtype).tiny)
            good = (errors[:k] < self.fparams["tol"]).long().cumprod(0).sum().item()
            self.E, self.X, self.tvars["rerr"] = E, X, errors
            self.ivars["istep"], self.ivars["converged_count"] = step, int(good)
            if tracker is not None:
                tracker(self)
            if good >= k or step >= self.iparams["niter"] or self.bvars["force_stop"]:
                return E[:k], X[:, :k]
            # The next space: the vectors, how they last changed, and where they are wrong.
            parts = [X, precondition(R)] if step == 0 else [X, basis[:, n:] @ Z[n:], precondition(R)]
            basis = _core._linalg_qr(_core.cat(parts, 1)).Q
            step += 1


def _one(A: Tensor, factor: Tensor | None, X: Tensor, iK: Tensor | None, worker: LOBPCG, tracker: Any) -> Any:
    def precondition(R: Tensor) -> Tensor:
        if iK is None:
            return R
        return iK @ R if factor is None else factor.mH @ (iK @ (factor @ R))

    return worker.run(A, X if factor is None else factor.mH @ X, precondition, tracker)


@operation("lobpcg")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute a few of the largest (or smallest) eigenvalues of symmetric matrices: ``A @ X = B @ X @ diag(E)``.

    A matrix of moderate size has all of them sooner from :func:`rgrad.linalg.eigh`.

    Args:
        A: Shape ``(*, m, m)``, float32, float64, complex64 or complex128; symmetric or Hermitian.
        k: How many pairs, by default the columns of ``X``, or 1; at most ``n``.
        B: Shape ``(*, m, m)``: a positive-definite matrix, by default the identity.
        X: Shape ``(*, m, n)``: where the search begins; random numbers by default.
        n: How many vectors are improved, by default ``k``. ``3 * n`` may be at most ``m``.
        iK: Shape ``(*, m, m)``: about the inverse of ``A``, which makes the search shorter.
        niter: The largest number of steps, by default 1000.
        tol: The error of a pair that is good enough, relative to the size of ``A``: by default the root of the
            precision of the dtype.
        largest: Search for the largest values (the default), or the smallest ones.
        method: ``"basic"`` or ``"ortho"``; both stand for the same, robust way.
        tracker: Is called in each step with an object that has ``iparams``, ``fparams``, ``bparams``, ``ivars``,
            ``tvars``, ``bvars``, ``E`` and ``X``.
        ortho_iparams: Has no effect.
        ortho_fparams: Has no effect.
        ortho_bparams: Has no effect.

    Returns:
        ``(E, X)`` of shape ``(*, k)`` and ``(*, m, k)``, the values from the first one that was searched for. Both
        have gradients, also those of ``B``.

    Raises:
        LinAlgError: ``B`` is not positive-definite.
        RuntimeError: Dtypes are others, or differ.
        ValueError: There are too few rows, or ``method`` is another word.

    Example:
        >>> rgrad.lobpcg(rgrad.diag(rgrad.arange(1.0, 9.0)), k=2)[0].round()
        tensor([8., 7.])
    """
    A = _core._linalg_matrices("lobpcg", A, "A", True)
    m = A.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    n = X.shape[-1] if X is not None else k if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if k < 1 or n < 1:
        raise ValueError(f"lobpcg(): k (={k}) and the number of vectors (={n}) must be positive")
    k = min(k, n)
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg(): expected method to be 'basic' or 'ortho', but got {method!r}")
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    A = (A + A.mH) / 2
    factor = None
    if B is not None:
        B = (B + B.mH) / 2
        factor = _core._linalg_cholesky(B.expand(A.shape))
        # With B = L L^H the vectors L^H x are those of L^-1 A L^-H.
        half = _core._linalg_solve_triangular(factor, A, False)
        A = _core._linalg_solve_triangular(factor.mH, half, True, left=False)
        A = (A + A.mH) / 2
    batch = A.shape[:-2]
    with no_grad():
        start = _core.randn(*batch, m, n, dtype=A.dtype, device=A.device) if X is None else X.expand(*batch, m, n)
        found = []
        for i in range(batch.numel()):
            one = [None if t is None else t.detach().expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:])[i]
                   for t in (A, factor, start, iK)]  # fmt: skip
            worker = LOBPCG(m, n, k, 1000 if niter is None else niter, tol, largest is not False)
            found.append(_one(*one, worker, tracker))  # type: ignore[call-arg,arg-type]
        real = A.real.dtype if A.dtype.is_complex else A.dtype
        if found:
            E, Y = (_core.stack([f[i] for f in found]) for i in (0, 1))
        else:
            E, Y = A.new_zeros((0, k), dtype=real), A.new_zeros((0, m, k))
        E, Y = E.reshape(*batch, k), Y.reshape(*batch, m, k)
    E, Y = _Pairs.apply(A, E, Y)
    return E, Y if factor is None else _core._linalg_solve_triangular(factor.mH, Y, True)
