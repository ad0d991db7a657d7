"""Newton's method: steps by second derivatives, with transforms.

python examples/newton.py

`grad` gives the slope, `hessian` the curvature; near a minimum each step doubles the number of correct digits. For
many variables the matrix is not needed: conjugate gradients solve for the step with products of the Hessian and
vectors, which `jvp` of `grad` gives.
"""

import rgrad
from rgrad.func import grad, hessian, jvp


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def solve(matrix, vector):
    """Gaussian elimination, for a symmetric matrix that is positive definite."""
    n = len(vector)
    rows = rgrad.cat([matrix, vector.unsqueeze(1)], 1)
    for k in range(n):
        rows[k] = rows[k] / rows[k, k]
        for i in range(n):
            if i != k:
                rows[i] = rows[i] - rows[i, k] * rows[k]
    return rows[:, n]


def newton(f, x, steps):
    for step in range(steps):
        g = grad(f)(x)
        h = hessian(f)(x)
        # Enough of the identity that the matrix is positive definite where the function is not convex: a bound by its
        # rows.
        lowest = (2 * h.diagonal() - h.abs().sum(1)).min().item()
        shift = max(0.0, -lowest) if g.abs().max().item() > 1 else 0.0
        direction = solve(h + shift * rgrad.eye(len(x), dtype=x.dtype), g)
        scale = 1.0
        while f(x - scale * direction).item() > f(x).item() and scale > 1e-8:
            scale /= 2
        x = x - scale * direction
        print(f"step {step + 1:2}: f = {f(x).item():.3e}, largest slope {grad(f)(x).abs().max().item():.1e}")
        if grad(f)(x).abs().max().item() < 1e-10:
            break
    return x


def conjugate_gradients(product, b, steps, tolerance=1e-10):
    """Solve ``A x = b`` by products with A alone."""
    x = rgrad.zeros_like(b)
    r = b.clone()
    p = r.clone()
    rr = r.dot(r)
    for _ in range(steps):
        if rr.item() < tolerance:
            break
        ap = product(p)
        alpha = rr / p.dot(ap)
        x = x + alpha * p
        r = r - alpha * ap
        rr, before = r.dot(r), rr
        p = r + rr / before * p
    return x


def main():
    print("Rosenbrock's valley in 4 dimensions, by the whole Hessian")
    x = newton(rosenbrock, rgrad.tensor([-1.2, 1.0, -1.2, 1.0], dtype=rgrad.float64), 60)
    print("minimum at", [round(value, 6) for value in x.tolist()])

    print("\n2000 variables, by products with the Hessian")

    def chain(x):
        return ((x[1:] - x[:-1]) ** 2).sum() + (x.cosh() - x).sum()

    x = rgrad.zeros(2000, dtype=rgrad.float64)
    for step in range(8):
        g = grad(chain)(x)
        print(f"step {step}: largest slope {g.abs().max().item():.1e}")
        if g.abs().max().item() < 1e-9:
            break
        x = x - conjugate_gradients(lambda v, x=x: jvp(grad(chain), (x,), (v,))[1], g, 200, 1e-22)
    assert g.abs().max().item() < 1e-9
    print("converged")


if __name__ == "__main__":
    main()
