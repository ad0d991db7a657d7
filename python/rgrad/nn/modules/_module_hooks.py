"""Registration of hooks on the calls of one module and on its backward; ``_call`` runs them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...utils.hooks import RemovableHandle

#: The attributes of a module in which hooks on its calls and on its backward are.
_CALL_TABLES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_pre_hooks",
    "_backward_hooks",
)
#: Those, and the ones of hooks on its state dict.
HOOK_TABLES = (
    *_CALL_TABLES,
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class HasHooks:
    """The part of ``Module`` that hooks are registered with."""

    # True once a hook was registered. A call reads only this.
    _hooked: bool = False
    _is_full_backward_hook: bool | None = None
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_always_called: OrderedDict[int, bool]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a module that was pickled or copied. What its version did not have is empty.

        Args:
            state: The attributes, by name.

        Raises:
            TypeError: It is no dict.
        """
        if not isinstance(state, dict):
            raise TypeError(
                f"{type(self).__name__}.__setstate__() expected the attributes of a module as a dict, "
                f"got {type(state).__name__}"
            )
        own = self.__dict__
        own.update(state)
        for table in HOOK_TABLES:
            own.setdefault(table, OrderedDict())
        own.setdefault("_non_persistent_buffers_set", set())
        # PyTorch's modules have no such attribute, and a call reads nothing else.
        own["_hooked"] = any(own[table] for table in _CALL_TABLES)

    def _register(
        self,
        table: str,
        hook: Callable[..., Any],
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        hooks = self.__dict__[table]
        flags = [("_with_kwargs", with_kwargs), ("_always_called", always_call)]
        extra = [self.__dict__[table + name] for name, wanted in flags if wanted]
        handle = RemovableHandle(hooks, extra_dict=extra)
        hooks[handle.id] = hook
        for flagged in extra:
            flagged[handle.id] = True
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        self.__dict__["_hooked"] = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns, unless None, replaces the arguments.

        Args:
            hook: The hook.
            prepend: Call it before the hooks that there are.
            with_kwargs: Call it as ``hook(module, args, kwargs)``; it returns None or ``(args, kwargs)``.

        Returns:
            A handle with ``remove()``.
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
        """Call ``hook(module, args, output)`` after ``forward``; what it returns, unless None, replaces the output.

        Args:
            hook: The hook.
            prepend: Call it before the hooks that there are.
            with_kwargs: Call it as ``hook(module, args, kwargs, output)``.
            always_call: Call it with output None, too, if the call raises before its turn; what the hook raises is then
                a warning.

        Returns:
            A handle with ``remove()``.

        Example:
            >>> layer = nn.ReLU()
            >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
            >>> layer(rgrad.tensor([-1.0, 1.0]))
            tensor([1., 2.])
            >>> handle.remove()
        """
        return self._register("_forward_hooks", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known.

        Args:
            hook: Gets a tuple with one entry for each output; what it returns, unless None, replaces it.
            prepend: Call it before the hooks that there are.

        Returns:
            A handle with ``remove()``.
        """
        return self._register("_backward_pre_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` with the gradients of the last operation in ``forward``.

        These are the gradients of the inputs only if ``forward`` is one operation: use
        :meth:`register_full_backward_hook`.

        Raises:
            RuntimeError: The module has full backward hooks.
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

        Args:
            hook: Gets two tuples, with None for what needs no gradient; what it returns, unless None, replaces
                ``grad_input``. If no input requires grad, it is called when the gradients of the outputs are known.
            prepend: Call it before the hooks that there are.

        Returns:
            A handle with ``remove()``.

        Raises:
            RuntimeError: The module has hooks of :meth:`register_backward_hook`.
        """
        return self._register_backward(hook, prepend, True)
