"""Walking the tree of modules: submodules, parameters and buffers with their dotted names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._core import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class HasTree:
    """The part of ``Module`` that finds what is below it."""

    _modules: dict[str, Any]

    def named_modules(
        self, memo: set["Module"] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """The modules of the tree with their dotted names, this one first.

        Args:
            memo: Modules that are left out; those that are given are added to it.
            prefix: The name of this module.
            remove_duplicate: Give a module that has several names once.

        Yields:
            Pairs of a name and a module.
        """
        if memo is None:
            memo = set()
        this: Any = self
        if this in memo:
            return
        if remove_duplicate:
            memo.add(this)
        yield prefix, this
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator["Module"]:
        """The modules of the tree, this one first; each once unless ``remove_duplicate=False``.

        Yields:
            Modules.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The direct submodules with their names, each module once.

        Yields:
            Pairs of a name and a module.
        """
        seen: set[Module] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator["Module"]:
        """The direct submodules, each once.

        Yields:
            Modules.
        """
        for _, child in self.named_children():
            yield child

    def _named_members(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for owner, module in owners:
            for name, member in module.__dict__[table].items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{owner}.{name}" if owner else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of the tree with their dotted names.

        Args:
            prefix: What stands before the names.
            recurse: Include those of submodules.
            remove_duplicate: Give one that has several names once.

        Yields:
            Pairs of a name and a parameter.
        """
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the tree, each once; those of this module alone unless ``recurse``.

        Yields:
            Parameters.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of the tree with their dotted names.

        Args:
            prefix: What stands before the names.
            recurse: Include those of submodules.
            remove_duplicate: Give one that has several names once.

        Yields:
            Pairs of a name and a buffer.
        """
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of the tree, each once; those of this module alone unless ``recurse``.

        Yields:
            Buffers.
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> "Module":
        """The submodule with the dotted name ``target``; this module for an empty one.

        Raises:
            AttributeError: There is none; the message names the step at which it is missing.
        """
        module: Any = self
        for step in target.split(".") if target else ():
            if not hasattr(module, step):
                raise AttributeError(f"{module._get_name()} has no attribute `{step}`")
            module = getattr(module, step)
            if not isinstance(module, HasTree):
                raise AttributeError(f"`{step}` is not an nn.Module")
        found: Module = module
        return found

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Puts a module at the dotted name ``target``, in place of the one that may be there.

        Args:
            target: The name, as :meth:`get_submodule` takes it. All but its last step must be there.
            module: What is put there.
            strict: Whether something must be there already.

        Raises:
            ValueError: The name is empty, or ``module`` is none.
            AttributeError: A step is missing, or is no module; or nothing is there, which ``strict`` asks for.
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, HasTree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        owner, _, name = target.rpartition(".")
        parent = self.get_submodule(owner)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def _get_member(self, target: str, table: str, kind: str) -> Any:
        owner, _, name = target.rpartition(".")
        module = self.get_submodule(owner)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module.__dict__[table]:
            raise AttributeError(f"`{name}` is not {kind}")
        return module.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name ``target``.

        Raises:
            AttributeError: There is none.
        """
        param: Parameter = self._get_member(target, "_parameters", "an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name ``target``.

        Raises:
            AttributeError: There is none.
        """
        buffer: Tensor = self._get_member(target, "_buffers", "a buffer")
        return buffer
