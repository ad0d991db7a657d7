"""Running a model once to look at it, and leaving it as it was."""

import copy
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .grad_mode import inference_mode


def with_sizes_to_come(model: Any) -> Any:
    """The model, or a copy if it has lazy layers, which get their sizes for good when they are run."""
    if any(hasattr(t, "materialize") for t in (*model.parameters(), *model.buffers())):
        return copy.deepcopy(model)
    return model


@contextmanager
def trial_run(model: Any, training: bool | None = None) -> Generator[None]:
    """A block after which a model's buffers, its training flags and the random generators are what they were.

    Args:
        model: A module. Modules are asked for what they have; this file lies below `nn`.
        training: Train or evaluate meanwhile; None: as it is.
    """
    modules = list(model.modules())
    flags = [module.training for module in modules]
    buffers: list[tuple[Any, dict[str, Any], dict[str, Any]]] = []
    for module in modules:
        own = dict(module._buffers)
        copies = {
            name: b.detach().clone() for name, b in own.items() if b is not None and not hasattr(b, "materialize")
        }
        buffers.append((module, own, copies))
    random = _core.get_rng_state()
    try:
        if training is not None:
            for module in modules:
                module.training = training
        yield
    finally:
        _core.set_rng_state(random)
        for module, flag in zip(modules, flags, strict=True):
            module.training = flag
        for module, own, copies in buffers:
            module._buffers.clear()
            module._buffers.update(own)
            for name, kept in copies.items():
                _put_back(own[name], kept)


def _put_back(buffer: Any, kept: Any) -> None:
    """Gives a buffer its values again, if it has others."""
    if buffer.is_meta or _core.equal(buffer.detach(), kept):
        return
    if buffer.is_inference():
        with inference_mode():
            buffer.copy_(kept)
    else:
        # Through `data`, so that graphs recorded before do not take it for a write.
        buffer.data.copy_(kept)


@contextmanager
def watched_calls(
    model: Any,
    before: Callable[[str, Any, tuple[Any, ...], dict[str, Any]], None],
    after: Callable[[str, Any, Any], None],
) -> Generator[None]:
    """A block in which every call of a model's modules is told.

    Args:
        model: A module.
        before: ``before(name, module, args, kwargs)``, where ``name`` is the module's first name in the model.
        after: ``after(name, module, output)``; the output is None of a call that raised.
    """
    # Once a module has had a hook, its calls take the slow path for ever; these shall not.
    unhooked = [m for m in model.modules() if m.__dict__.get("_hooked") is False]
    handles: list[Any] = []
    try:
        for name, module in model.named_modules():

            def enter(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = name) -> None:
                before(name, module, args, kwargs)

            def leave(module: Any, _args: tuple[Any, ...], output: Any, name: str = name) -> None:
                after(name, module, output)

            handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(module.register_forward_hook(leave, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in unhooked:
            hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
            if not any(hooks) and not module._backward_pre_hooks:
                module.__dict__["_hooked"] = False
