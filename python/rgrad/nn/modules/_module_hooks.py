"""Registration of hooks on the calls of one module and on its backward; ``_call`` runs them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...utils.hooks import RemovableHandle


class HasHooks:
    """The part of ``Module`` that hooks are registered with."""

    # True once a hook was registered: the only thing a call looks at.
    _hooked: bool = False
    _is_full_backward_hook: bool | None = None
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_always_called: OrderedDict[int, bool]

    def _register(
        self, table: str, hook: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        hooks = self.__dict__[table]
        kwargs_table = self.__dict__[table + "_with_kwargs"] if with_kwargs else None
        handle = RemovableHandle(hooks, extra_dict=kwargs_table)
        hooks[handle.id] = hook
        if kwargs_table is not None:
            kwargs_table[handle.id] = True
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        self.__dict__["_hooked"] = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns (not None) replaces the arguments.

        With ``with_kwargs``: ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        """
        return self._register("_forward_pre_hooks", hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns (not None) replaces the output.

        With ``with_kwargs``: ``hook(module, args, kwargs, output)``. With ``always_call`` it is called with output
        None when the call raises before the hook's turn; an error of the hook is a warning then.
        """
        handle = self._register("_forward_hooks", hook, prepend, with_kwargs)
        if always_call:
            always: dict[int, bool] = self._forward_hooks_always_called
            always[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known.

        ``grad_output`` is a tuple with one entry for each output; what the hook returns (not None) replaces it.
        """
        return self._register("_backward_pre_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` with the gradients of the last operation in ``forward``.

        An old way, which tells the gradients of the inputs only if forward is a single operation: use
        :meth:`register_full_backward_hook`. Raises RuntimeError for a module that has such hooks.
        """
        return self._register_backward(hook, False, False)

    def _register_backward(self, hook: Callable[..., Any], prepend: bool, full: bool) -> RemovableHandle:
        if self._backward_hooks and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        return self._register("_backward_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        Both are tuples, with None for what needs no gradient; what the hook returns (not None) replaces
        ``grad_input``. If no input requires grad, the hook is called with the gradients of the outputs.
        """
        return self._register_backward(hook, prepend, True)
