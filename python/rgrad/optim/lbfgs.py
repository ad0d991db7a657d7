"""L-BFGS."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, SupportsFloat, TypeVar

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import enable_grad, no_grad
from .optimizer import Optimizer, Params, checked_rate, option

Loss = TypeVar("Loss", bound=SupportsFloat)


class _Point(NamedTuple):
    """A place on the line that is searched: step, loss, gradient, and the loss's slope along the line."""

    step: float
    loss: float
    grad: Tensor
    slope: float


def _lowest_of_cubic(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes has its minimum (Nocedal and Wright, 3.59)."""
    low, high = bounds if bounds is not None else (min(a.step, b.step), max(a.step, b.step))
    if a.step > b.step:
        a, b = b, a
    width = b.step - a.step
    if width == 0:
        return (low + high) / 2.0
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    slope_sum = b.slope - a.slope + 2 * root
    if slope_sum == 0:
        return (low + high) / 2.0
    at = b.step - width * ((b.slope + root - first) / slope_sum)
    return min(max(at, low), high)


def _strong_wolfe(
    at: Callable[[float], _Point],
    start: _Point,
    step: float,
    largest: float,
    most: int,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    smallest: float = 1e-9,
) -> tuple[_Point, int]:
    """A step that lowers the loss enough and makes it flat enough (the strong Wolfe conditions).

    First steps grow until two of them enclose such a step, then the interval shrinks (Nocedal and Wright, 3.5 and 3.6).

    Args:
        at: Evaluates a step.
        start: The point of step 0.
        step: The first step tried.
        largest: The largest element of the direction, which tells how much an interval of steps is in the parameters.
        most: The most evaluations after the first.
        decrease: How much of the first slope the loss must fall by.
        flatness: How much of the first slope may be left.
        smallest: The least interval that is searched.

    Returns:
        The best point found, and how often ``at`` was called.
    """

    def is_too_high(p: _Point) -> bool:
        return p.loss > start.loss + decrease * p.step * start.slope

    def is_flat(p: _Point) -> bool:
        return abs(p.slope) <= -flatness * start.slope

    before, now = start, at(step)
    calls, tries = 1, 0
    bracket = []
    while tries < most:
        if is_too_high(now) or (tries > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if is_flat(now):
            return now, calls
        if now.slope >= 0:
            bracket = [before, now]
            break
        bounds = (now.step + 0.01 * (now.step - before.step), now.step * 10)
        before, now = now, at(_lowest_of_cubic(before, now, bounds))
        calls += 1
        tries += 1
    if tries == most:
        bracket = [start, now]
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stalled = False
    while tries < most:
        left, right = (f(p.step for p in bracket) for f in (min, max))
        if (right - left) * largest < smallest:
            break
        step = _lowest_of_cubic(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        if min(right - step, step - left) < margin:
            # Close to an end: once that is fine, the second time the step moves away from it.
            if stalled or step >= right or step <= left:
                step = right - margin if abs(step - right) < abs(step - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        now = at(step)
        calls += 1
        tries += 1
        if is_too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        done = is_flat(now)
        if not done and now.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
        if done:
            break
    return bracket[low], calls


def _pairs(t: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones, which a direction has as well."""
    return _core.view_as_real(t) if t.dtype.is_complex else t


class LBFGS(Optimizer):
    """Steps by an approximate inverse Hessian, made of changes of parameters and gradients (Liu and Nocedal 1989).

    :meth:`step` needs a closure that computes loss and gradients again, which it calls up to ``max_eval`` times. There
    is one group of parameters, and they are all on one device.

    Args:
        params: Parameters.
        lr: The length of a step, or the first length that the line search tries.
        max_iter: The most iterations of one step.
        max_eval: The most calls of the closure in one step; None for ``max_iter * 5 // 4``.
        tolerance_grad: Stop where no element of the gradient is larger.
        tolerance_change: Stop where parameters and loss change by no more.
        history_size: How many changes are kept.
        line_search_fn: None or ``"strong_wolfe"``.

    Raises:
        ValueError: ``lr`` is negative, or there are several groups.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        checked_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    def _gradient(self) -> Tensor:
        """The gradients of all parameters as one vector; missing ones are zeros."""
        parts = []
        for param in self._params:
            grad = param.grad
            parts.append(_pairs(_core.zeros_like(param) if grad is None else grad.resolve_conj()).reshape(-1))
        return _core.cat(parts, 0)

    def _move(self, step: float, direction: Tensor) -> None:
        start = 0
        for param in map(_pairs, self._params):
            n = param.numel()
            param.add_(direction[start : start + n].view_as(param), alpha=step)
            start += n

    def _kept(self) -> Callable[[], None]:
        """Remember parameters and state; gives a function that brings both back."""
        params = [(param, param.detach().clone(), param._version) for param in self._params]
        first = self._params[0]
        state = self.state.get(first)
        if state is not None:
            # Tensors of the state are never written to, lists are.
            state = {key: list(value) if isinstance(value, list) else value for key, value in state.items()}

        def bring_back() -> None:
            for param, values, version in params:
                if param._version != version:
                    param.copy_(values)
            if state is None:
                self.state.pop(first, None)
            else:
                self.state[first].clear()
                self.state[first].update(state)

        return bring_back

    @no_grad()
    def step(self, closure: Callable[[], Loss]) -> Loss:  # type: ignore[override]
        """Iterate until the loss, the gradient or the parameters hardly change; returns the loss before.

        Args:
            closure: Clears the gradients, computes the loss, calls ``backward``, and returns the loss. If it fails,
                parameters and state are as they were before the step.
        """
        bring_back = self._kept()
        try:
            return self._steps(closure)
        except BaseException:
            bring_back()
            raise

    def _steps(self, closure: Callable[[], Loss]) -> Loss:
        group = self.param_groups[0]
        rate = float(option(group["lr"], False))
        search = group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> Loss:
            with enable_grad():
                return closure()

        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gradient()
        if grad.abs().max().item() <= group["tolerance_grad"]:
            return first_loss

        direction: Any = state.get("d")
        step: Any = state.get("t")
        changes: Any = state.get("old_dirs")
        steps: Any = state.get("old_stps")
        inverse: Any = state.get("ro")
        scale: Any = state.get("H_diag")
        previous: Any = state.get("prev_flat_grad")
        previous_loss: Any = state.get("prev_loss")

        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, changes, steps, inverse, scale = grad.neg(), [], [], [], 1
            else:
                self._remember(grad.sub(previous), direction.mul(step), changes, steps, inverse, state, scale)
                scale = state.pop("_scale", scale)
                direction = self._direction(grad, changes, steps, inverse, scale, state)
            previous = grad.clone()
            previous_loss = loss
            step = min(1.0, 1.0 / grad.abs().sum().item()) * rate if state["n_iter"] == 1 else rate
            slope = grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                loss, grad, step, used = self._search(
                    evaluate, direction, step, _Point(0.0, loss, grad.clone(), slope), group["max_eval"] - evaluations
                )
                self._move(step, direction)
                is_flat = grad.abs().max().item() <= group["tolerance_grad"]
            else:
                self._move(step, direction)
                is_flat = False
                if iterations != group["max_iter"]:
                    loss = float(evaluate())
                    grad = self._gradient()
                    is_flat = grad.abs().max().item() <= group["tolerance_grad"]
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if iterations == group["max_iter"] or evaluations >= group["max_eval"] or is_flat:
                break
            if direction.mul(step).abs().max().item() <= group["tolerance_change"]:
                break
            if abs(loss - previous_loss) < group["tolerance_change"]:
                break

        state.update(
            d=direction,
            t=step,
            old_dirs=changes,
            old_stps=steps,
            ro=inverse,
            H_diag=scale,
            prev_flat_grad=previous,
            prev_loss=previous_loss,
        )
        return first_loss

    def _remember(
        self,
        change: Tensor,
        moved: Tensor,
        changes: list[Tensor],
        steps: list[Tensor],
        inverse: list[Tensor],
        state: dict[str, Any],
        scale: Any,
    ) -> None:
        """Keep one more change of gradient and parameters, if the loss is curved upwards along it."""
        product = change.dot(moved)
        if product.item() > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for kept in (changes, steps, inverse):
                    kept.pop(0)
            changes.append(change)
            steps.append(moved)
            inverse.append(1.0 / product)
            state["_scale"] = product / change.dot(change)

    def _direction(
        self,
        grad: Tensor,
        changes: list[Tensor],
        steps: list[Tensor],
        inverse: list[Tensor],
        scale: Any,
        state: dict[str, Any],
    ) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient, by the two loops of Nocedal (1980)."""
        factors = state.setdefault("al", [None] * self.param_groups[0]["history_size"])
        found = grad.neg()
        for i in range(len(changes) - 1, -1, -1):
            factors[i] = steps[i].dot(found) * inverse[i]
            found = found.add(changes[i].mul(-factors[i]))
        found = found.mul(scale)
        for i in range(len(changes)):
            back = changes[i].dot(found) * inverse[i]
            found = found.add(steps[i].mul(factors[i] - back))
        return found

    def _search(
        self, evaluate: Callable[[], Any], direction: Tensor, step: float, start: _Point, most: int
    ) -> tuple[float, Tensor, float, int]:
        kept = [param.clone() for param in self._params]

        def at(step: float) -> _Point:
            self._move(step, direction)
            loss = float(evaluate())
            grad = self._gradient()
            for param, values in zip(self._params, kept, strict=True):
                param.copy_(values)
            return _Point(step, loss, grad, grad.dot(direction).item())

        best, calls = _strong_wolfe(at, start, step, direction.abs().max().item(), most)
        return best.loss, best.grad, best.step, calls
