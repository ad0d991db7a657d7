"""Newton's method: steps by second derivatives, with transforms.

.venv/bin/python examples/newton.py

`grad` gives the slope, `hessian` the curvature; near a minimum each step doubles the number of correct digits. For
many variables the matrix is not needed: conjugate gradients solve for the step with products of the Hessian and
vectors, which `jvp` of `grad` gives.
"""

import math

import rgrad
from rgrad.func import grad, hessian, jvp


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def step_length(f, x, direction, g):
    """How far to go: half as far, until the function falls by a part of what its slope promises."""
    here, promised = f(x).item(), g.dot(direction).item()
    scale = 1.0
    # Close to the minimum the function falls by less than its last digit.
    while f(x - scale * direction).item() > here - 1e-4 * scale * promised + 1e-14 * abs(here) and scale > 1e-8:
        scale /= 2
    return scale


def newton(f, x, steps, tolerance=1e-10):
    """Go to a minimum: a point where the slope is 0 and every curvature is positive."""
    for step in range(steps):
        g = grad(f)(x)
        curvatures, directions = rgrad.linalg.eigh(hessian(f)(x))
        slope, least = g.abs().max().item(), curvatures.min().item()
        print(f"step {step:2}: f = {f(x).item():.3e}, largest slope {slope:.1e}, least curvature {least:8.3f}")
        if slope < tolerance and least > 0:
            return x
        # Newton's step divides the slope by the curvature. Where that is negative the step would go uphill, so its
        # size is taken; one that is nearly 0 would make the step too long.
        sizes = curvatures.abs()
        direction = directions @ ((directions.t() @ g) / sizes.clamp(min=1e-6 * sizes.max().item()))
        x = x - step_length(f, x, direction, g) * direction
    raise RuntimeError(f"no minimum after {steps} steps")


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
    print("minimum at", [round(value, 9) for value in x.tolist()])

    print("\nA chain of 2000 variables, by products with the Hessian")
    pull = 2 * rgrad.linspace(0, 2 * math.pi, 2000, dtype=rgrad.float64).sin()

    def chain(x):
        return ((x[1:] - x[:-1]) ** 2).sum() + (x.cosh() - pull * x).sum()

    x = rgrad.zeros(2000, dtype=rgrad.float64)
    for step in range(12):
        g = grad(chain)(x)
        print(f"step {step}: largest slope {g.abs().max().item():.1e}")
        if g.abs().max().item() < 1e-9:
            break
        x = x - conjugate_gradients(lambda v, x=x: jvp(grad(chain), (x,), (v,))[1], g, 200, 1e-22)
    else:
        raise RuntimeError("the chain is not at rest")
    print("at rest:", ", ".join(f"x[{i}] = {x[i].item():.9f}" for i in range(100, 2000, 400)))


if __name__ == "__main__":
    main()
