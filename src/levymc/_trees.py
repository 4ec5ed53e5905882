"""Pytrees: dataclasses that are inputs of programs, and the names of leaves."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

import jax
from jax.tree_util import Partial

T = TypeVar("T")
_MODULES: dict[type, tuple[str, ...]] = {}  # with their static fields


@dataclass_transform(frozen_default=True, eq_default=False)
def module(*, static: tuple[str, ...] = ()) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass that JAX knows: its fields are inputs of compiled programs.

    Those named in `static`, functions above all, are part of the program: two objects whose static
    fields are equal share one.
    """

    def hash_functions(self: Any) -> None:
        for name in static:
            value = getattr(self, name)
            if callable(value) and hashable(value) is not value:
                object.__setattr__(self, name, hashable(value))

    def register(cls: type[T]) -> type[T]:
        cls.__post_init__ = hash_functions  # type: ignore[attr-defined]
        made = dataclasses.dataclass(frozen=True, eq=False)(cls)
        names = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
        data = [name for name in names if name not in static]
        jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=list(static))
        _MODULES[made] = static
        return made

    return register


def is_module(thing: Any) -> bool:
    """Whether it is an object of such a class."""
    return type(thing) in _MODULES


def static_fields(thing: Any) -> tuple[str, ...]:
    """The names of those fields of such an object that are part of programs."""
    return _MODULES[type(thing)]


class ByIdentity:
    """Stands for a callable, such as one that cannot be hashed; equal to itself alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.__wrapped__(*given, **named)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


_BY_IDENTITY: WeakValueDictionary[int, ByIdentity] = WeakValueDictionary()


def hashable(function: T) -> T | ByIdentity:
    """A function that can be looked up: itself, or always the same in its place."""
    try:
        hash(function)
        return function
    except TypeError:
        found = _BY_IDENTITY.get(id(function))  # which keeps it, so that no other has its number
        if found is None:
            found = _BY_IDENTITY[id(function)] = ByIdentity(function)  # type: ignore[arg-type]
        return found


def as_partial(function: Callable[..., Any]) -> Partial:
    """A function as a pytree: the numbers of a `jax.tree_util.Partial` are inputs, it is static."""
    return function if isinstance(function, Partial) else Partial(hashable(function))


def leaf_names(tree: Any) -> list[str]:
    """A dictionary's keys, joined by dots where they nest; x for a tree that is one leaf."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path in paths]


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves by their names; by their paths where names are the same, as a.b and b in a."""
    names = leaf_names(tree)
    if len(set(names)) < len(names):
        names = [
            jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)
        ]
    return dict(zip(names, jax.tree.leaves(tree), strict=True))
