"""Custom Functions, one idea at a time: run it and read along.

.venv/bin/python examples/custom_function.py
"""

import rgrad
from rgrad.autograd import Function, gradcheck, gradgradcheck


def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


# --- 1. The smallest one. backward gets the gradient of the output and returns the gradient of the input. -------


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)  # tensors go here, so that changing them in place later is noticed
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y  # chain rule: what comes in, times d exp(x) / dx = exp(x)


def smallest():
    title("1. Exp")
    x = rgrad.tensor([0.0, 1.0], requires_grad=True)
    y = Exp.apply(x)
    print("y       =", y)  # the name of the node is the name of the class
    y.sum().backward()
    print("x.grad  =", x.grad)


# --- 2. Arguments that are no tensors. They get no gradient: backward returns None for them. --------------------


class GradCoeff(Function):
    """The identity forward; backward scales the gradient (a negative coefficient reverses it)."""

    @staticmethod
    def forward(ctx, x, coeff):
        ctx.coeff = coeff  # anything that is no tensor is a plain attribute
        return x.view_as(x)  # a new tensor over the same memory: an input itself should not be returned

    @staticmethod
    def backward(ctx, grad_y):
        return ctx.coeff * grad_y, None


def plain_arguments():
    title("2. GradCoeff, with a number as argument")
    x = rgrad.tensor([2.0], requires_grad=True)
    (GradCoeff.apply(x, -0.1) ** 2).backward()
    print("x.grad  =", x.grad, " (4 without GradCoeff)")


# --- 3. Several inputs and outputs: one gradient comes in for each output, one goes out for each input. ---------


class Polar(Function):
    """(x, y) to (r, φ), the length and the angle of the vector."""

    @staticmethod
    def forward(ctx, x, y):
        r = (x * x + y * y).sqrt()
        ctx.save_for_backward(x, y, r)
        return r, rgrad.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_r, grad_phi):
        x, y, r = ctx.saved_tensors
        grad_x = grad_y = None
        if ctx.needs_input_grad[0]:  # do not compute what nobody asked for
            grad_x = grad_r * x / r - grad_phi * y / r**2
        if ctx.needs_input_grad[1]:
            grad_y = grad_r * y / r + grad_phi * x / r**2
        return grad_x, grad_y


def several_outputs():
    title("3. Polar, with two outputs")
    x = rgrad.tensor([3.0], requires_grad=True)
    y = rgrad.tensor([4.0], requires_grad=True)
    r, phi = Polar.apply(x, y)
    print("r, φ    =", r.item(), phi.item())
    r.backward(retain_graph=True)
    print("dr/dx   =", x.grad.item(), "  dr/dy   =", y.grad.item())
    print("dφ/dx   =", rgrad.autograd.grad(phi, x)[0].item(), "(the output that is not asked for counts as zero)")


# --- 4. Trust: compare backward with numeric differences, in float64. -------------------------------------------


class WrongExp(Exp):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y * 1.01  # one part in a hundred too much


def trust():
    title("4. gradcheck")
    x = rgrad.linspace(-1, 1, 4, dtype=rgrad.float64).requires_grad_()
    y = rgrad.linspace(2, 3, 4, dtype=rgrad.float64).requires_grad_()
    print("Exp     ", gradcheck(Exp.apply, x))
    print("Polar   ", gradcheck(Polar.apply, (x, y)))
    # These backwards are written in differentiable operations, so they can be differentiated once more:
    print("twice   ", gradgradcheck(Exp.apply, x), gradgradcheck(Polar.apply, (x, y)))
    try:
        gradcheck(WrongExp.apply, x)
    except RuntimeError as error:
        print("WrongExp", str(error).splitlines()[0])


# --- 5. When backward fails, the error tells where the forward call was. ----------------------------------------


class Broken(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_y):
        raise ValueError("no idea what the gradient is")


def failing():
    title("5. An error in backward names the forward line")
    x = rgrad.ones(3, requires_grad=True)
    y = Broken.apply(x)  # this is the line that the note below names
    z = (y + 1).sum()
    try:
        z.backward()
    except ValueError as error:  # the error itself comes out unchanged
        print(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            print(note)


def main():
    smallest()
    plain_arguments()
    several_outputs()
    trust()
    failing()


if __name__ == "__main__":
    main()
