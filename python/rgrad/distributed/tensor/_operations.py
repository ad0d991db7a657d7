"""What operations do with DTensors: which of them can be computed from the parts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ... import _core
from ..._core import Tensor
from ..._functions.foreach_names import NAMES as FOREACH
from ..._runtime.info import iinfo
from .._reducing import all_reduce
from .._reductions import ReduceOp
from ._dtensor import DTensor, plain
from ._redistribute import gradient_placements, moved, summed_gradient
from ._rules import ELEMENTS, KEEP, LIKE, NEVER, OF_PART, RANDOM, RANDOM_LIKE, REDUCTIONS, TENSOR_ATTRIBUTES
from ._spec import Placements, Spec
from .placement_types import NormPartial, Partial, Replicate, Shard

# What the others of a reduction are where a process has no elements.
_NOTHING = {"max": -math.inf, "min": math.inf}


def _found(values: Any) -> Iterator[Tensor]:
    """All tensors in arguments."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _found(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from _found(value)


def _mapped(values: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, (list, tuple)):
        made = [_mapped(value, change) for value in values]
        if isinstance(values, list):
            return made
        return type(values)(*made) if hasattr(values, "_fields") else tuple(made)
    if isinstance(values, dict):
        return {key: _mapped(value, change) for key, value in values.items()}
    return values


def refuse(name: str, spec: Spec) -> NoReturn:
    """Raise for an operation that cannot be computed from parts."""
    raise NotImplementedError(
        f"{name}: there is no rule for DTensors with {spec.placements}; compute with the whole tensor, "
        ".full_tensor(), or with this process's part, .to_local()"
    )


def _native(func: Any, args: Any, kwargs: Any) -> Any:
    with _core.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What ``__torch_function__`` of DTensors does."""
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        return _attribute(func, args, kwargs)
    if name in OF_PART:
        return _native(func, args, kwargs)
    if name == "is_same_size":
        return tuple(args[0].shape) == tuple(args[1].shape)
    if name == "grad":
        return _gradients(func, args, kwargs)
    if name in FOREACH:
        return _foreach(name, func, args, kwargs)
    tensors = list(_found((args, kwargs)))
    parts = [t for t in tensors if isinstance(t, DTensor)]
    spec = parts[0]._spec
    _check_mixed(name, tensors, spec)
    if name in ("norm", "vector_norm"):
        return _norm(name, func, args, kwargs)
    if name in REDUCTIONS and isinstance(args[0], DTensor):
        reduced = _reduction(name, func, args, kwargs)
        if reduced is not None:
            return reduced
    if name == "equal":
        return _equal(args[0], args[1])
    if name in RANDOM and isinstance(args[0], DTensor):
        return _random(func, args, kwargs)
    if name in RANDOM_LIKE:
        return _random_like(func, args, kwargs)
    if (
        name == "stack"
        and all(p.dim() == 0 and p._spec.same_layout(spec) for p in parts)
        and len(parts) == len(tensors)
    ):
        made = _native(func, _mapped(args, plain), kwargs)
        return DTensor._with_history(made, spec.replaced(shape=made.shape))
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if name in ELEMENTS or base in ELEMENTS:
        return _elements(name, func, args, kwargs, parts, in_place=base != name)
    return _whole(name, func, args, kwargs, parts)


def _attribute(func: Any, args: Any, kwargs: Any) -> Any:
    found = _native(func, args, kwargs)
    attribute = getattr(func.__self__, "__name__", "")
    this = args[0]
    if not isinstance(found, Tensor) or not isinstance(this, DTensor):
        return found
    if attribute == "_base":
        return None
    if attribute in TENSOR_ATTRIBUTES or this._spec.is_replicated():
        shape = this.shape if attribute in TENSOR_ATTRIBUTES else found.shape
        return DTensor._with_history(found, this._spec.replaced(shape=shape))
    refuse(attribute, this._spec)


def _gradients(func: Any, args: Any, kwargs: Any) -> Any:
    """What ``autograd.grad`` gives: gradients lie as the inputs do."""
    inputs = args[1] if len(args) > 1 else kwargs["inputs"]
    sources = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    made = _native(func, args, kwargs)
    return tuple(
        DTensor._with_history(gradient, one._spec.replaced(gradient_placements(one.placements)))
        if isinstance(one, DTensor) and gradient is not None
        else gradient
        for gradient, one in zip(made, sources, strict=True)
    )


def _check_mixed(name: str, tensors: list[Tensor], spec: Spec) -> None:
    for tensor in tensors:
        if isinstance(tensor, DTensor):
            if tensor._spec.mesh != spec.mesh:
                raise RuntimeError(
                    f"{name}: DTensors must be on one mesh, got {spec.mesh} and {tensor._spec.mesh}; use .full_tensor()"
                )
        elif tensor.dim() > 0 and tensor.numel() != 1:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor; distribute_tensor makes a DTensor of the one, "
                ".full_tensor() a Tensor of the other"
            )


def _reduced(tensor: DTensor) -> DTensor:
    """The tensor without reductions that are to be made."""
    if not tensor._spec.is_partial():
        return tensor
    return tensor._redistributed(tuple(Replicate() if isinstance(p, Partial) else p for p in tensor.placements))


def _elements(name: str, func: Any, args: Any, kwargs: Any, parts: list[DTensor], in_place: bool) -> Any:
    """An operation of each element: tensors of one layout, and whole ones of one element."""
    if in_place and not isinstance(args[0], DTensor):
        raise RuntimeError(f"{name}: a DTensor cannot be written to an ordinary Tensor; use .full_tensor()")
    if name not in KEEP and name not in LIKE:
        target = args[0] if in_place else None
        if target is not None and target._spec.is_partial():
            refuse(name, target._spec)
        args, kwargs = _mapped((args, kwargs), lambda t: _reduced(t) if isinstance(t, DTensor) else t)
        parts = [t for t in _found((args, kwargs)) if isinstance(t, DTensor)]
    main = args[0] if in_place else max(parts, key=lambda t: (not t._spec.is_replicated(), t.dim(), t.numel()))
    spec: Spec = main._spec
    if not spec.is_replicated() or in_place:
        for part in parts:
            single = part.numel() == 1 and part._spec.is_replicated()
            if not single and not (part.shape == main.shape and part._spec.same_layout(spec)):
                raise NotImplementedError(
                    f"{name}: DTensors must have one shape and the same placements, got {tuple(main.shape)} with "
                    f"{spec.placements} and {tuple(part.shape)} with {part.placements}; use .redistribute() or "
                    ".full_tensor()"
                )

    def local(tensor: Tensor) -> Tensor:
        return summed_gradient(plain(tensor), tensor._spec, spec) if isinstance(tensor, DTensor) else tensor

    if name in LIKE:
        # A reduction of such numbers would be another number.
        spec = spec.replaced(tuple(Replicate() if isinstance(p, Partial) else p for p in spec.placements))
    made = _native(func, *_mapped((args, kwargs), local))
    if in_place:
        return args[0]
    shape = made.shape if spec.is_replicated() else main.shape
    return DTensor._with_history(made, spec.replaced(shape=shape)) if isinstance(made, Tensor) else made


def _whole(name: str, func: Any, args: Any, kwargs: Any, parts: list[DTensor]) -> Any:
    """Any operation on tensors that all processes have whole."""
    args, kwargs = _mapped((args, kwargs), lambda t: _reduced(t) if isinstance(t, DTensor) else t)
    parts = [t for t in _found((args, kwargs)) if isinstance(t, DTensor)]
    spec = next((p._spec for p in parts if not p._spec.is_replicated()), parts[0]._spec)
    writes = name.endswith("_") and not name.endswith("__")
    if not spec.is_replicated() or name in NEVER or writes or "out" in kwargs:
        refuse(name, spec)
    made = _native(func, *_mapped((args, kwargs), lambda t: plain(t) if isinstance(t, DTensor) else t))
    return _mapped(made, lambda t: DTensor._with_history(t, spec.replaced(shape=t.shape)))


def _no_gradient(name: str, tensor: Tensor) -> None:
    if tensor.requires_grad and _core.is_grad_enabled():
        raise NotImplementedError(
            f"{name}: the derivative for DTensors is not there; use .full_tensor(), or no_grad() where none is needed"
        )


def _over(spec: Spec, place: Partial) -> Spec:
    """The result of a reduction of all elements."""
    return spec.replaced(tuple(place if isinstance(p, Shard) else p for p in spec.placements), ())


def _norm(name: str, func: Any, args: Any, kwargs: Any) -> DTensor:
    given = {**dict(zip(("self", "p", "dim", "keepdim", "dtype"), args, strict=False)), **kwargs}
    tensor: DTensor = _reduced(given.pop("self", None) if "self" in given else given.pop("x"))
    order = given.pop("p", given.pop("ord", 2))
    order = 2.0 if order in (None, "fro") else order
    if given.pop("dim", None) is not None or given.pop("keepdim", False) or isinstance(order, str):
        refuse(name, tensor._spec)
    local = plain(tensor)
    _no_gradient(name, local)
    if local.numel() == 0 and math.isinf(order):
        made = local.new_full((), 0.0 if order > 0 else math.inf).to(given.get("dtype") or local.dtype)
    else:
        made = _native(_core.norm, (local, order), given)
    return DTensor._with_history(made, _over(tensor._spec, NormPartial(norm_type=order)))


def _reduction(name: str, func: Any, args: Any, kwargs: Any) -> DTensor | None:
    """A reduction of all elements; None for another one, or for replicated tensors."""
    tensor = _reduced(args[0])
    spec = tensor._spec
    if spec.is_replicated():
        return None
    dims = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if dims not in (None, (), []) or len(args) > 2 or set(kwargs) - {"dim", "dtype"}:
        refuse(name, spec)
    local, how = plain(tensor), REDUCTIONS[name]
    if how != "sum":
        _no_gradient(name, local)
    options = {key: value for key, value in kwargs.items() if key != "dim"}
    if name == "mean":
        if not (local.is_floating_point() or local.is_complex() or options.get("dtype")):
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {local.dtype}"
            )
        made = local.sum(**options) / tensor.numel()
    elif local.numel() == 0 and how in _NOTHING and name not in ("any", "all"):
        kind = local.dtype
        least = _NOTHING[how]
        if not kind.is_floating_point:
            info = iinfo(kind)
            least = info.min if how == "max" else info.max
        made = local.new_full((), least)
    else:
        made = _native(func, (local,), options)
    return DTensor._with_history(made, _over(spec, Partial(how)))


def _equal(first: Any, second: Any) -> bool:
    if not (isinstance(first, DTensor) and isinstance(second, DTensor)):
        raise RuntimeError("equal: got mixed torch.Tensor and DTensor; .full_tensor() makes a Tensor of the DTensor")
    first, second = _reduced(first), _reduced(second)
    if first.shape != second.shape:
        return False
    if not first._spec.same_layout(second._spec):
        second = second._redistributed(first.placements)
    answer = _core.tensor([int(_core.equal(plain(first), plain(second)))], dtype=_core.int32, device="cpu")
    for dim in range(first.device_mesh.ndim):
        all_reduce(answer, ReduceOp.MIN, first.device_mesh.get_group(dim))
    return bool(answer.item())


def own_part(whole: Tensor, spec: Spec) -> Tensor:
    """This process's part of a tensor that all processes have."""
    places: Placements = (Replicate(),) * spec.mesh.ndim
    return moved(whole, spec.replaced(places), spec.placements)


def _random(func: Any, args: Any, kwargs: Any) -> Any:
    """All processes draw the whole tensor, so that its numbers are those of one process with the same seed."""
    target: DTensor = args[0]
    if target._spec.is_partial():
        refuse(func.__name__, target._spec)
    local = plain(target)
    if local.device.type == "meta":
        return target
    whole = _core.empty(tuple(target.shape), dtype=local.dtype, device=local.device)
    _native(func, (whole, *args[1:]), kwargs)
    local.copy_(own_part(whole, target._spec))
    return target


def _random_like(func: Any, args: Any, kwargs: Any) -> DTensor:
    like: DTensor = _reduced(args[0])
    whole = _native(func, (_core.empty(tuple(like.shape), dtype=like.dtype, device=like.device), *args[1:]), kwargs)
    made = DTensor(own_part(whole, like._spec), like._spec)
    return made.requires_grad_(whole.requires_grad)


def _foreach(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """An operation of each tensor of lists: those at one place must lie alike."""
    first = args[0]
    lists = [a for a in args if isinstance(a, (list, tuple)) and any(isinstance(t, Tensor) for t in a)]
    if name == "_foreach_norm":
        order = args[1] if len(args) > 1 else kwargs.get("ord", 2)
        return [t.norm(order) for t in first]
    for group in zip(*lists, strict=True):
        specs = [t._spec if isinstance(t, DTensor) else None for t in group]
        if any(s is not None and s.is_partial() for s in specs) or name == "_foreach_max":
            refuse(name, next(s for s in specs if s is not None))
        alike = [(None if s is None else (s.placements, s.mesh, s.shape)) for s in specs]
        if any(one != alike[0] for one in alike):
            raise RuntimeError(
                f"{name}: tensors at one place of the lists must have the same placements, got {specs}; use "
                ".redistribute() or .full_tensor()"
            )
    scalars = [t for t in _found((args[len(lists) :], kwargs)) if isinstance(t, DTensor)]
    if any(not t._spec.is_replicated() and not t._spec.is_partial() for t in scalars):
        refuse(name, scalars[0]._spec)

    def local(tensor: Tensor) -> Tensor:
        return plain(_reduced(tensor)) if isinstance(tensor, DTensor) else tensor

    made = _native(func, *_mapped((args, kwargs), local))
    if made is None or name.endswith("_"):
        return made if made is None else first
    return type(made)(
        DTensor._with_history(t, one._spec) if isinstance(one, DTensor) else t
        for t, one in zip(made, first, strict=True)
    )


DTensor._run = staticmethod(run)
