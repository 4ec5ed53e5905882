"""Pytrees: dataclasses that are inputs of programs, and the names of leaves."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax
from jax.tree_util import Partial

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def module(*, static: tuple[str, ...] = ()) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass that JAX knows: its fields are inputs of compiled programs.

    Those named in `static`, functions above all, are part of the program: two objects whose static
    fields are equal share one.
    """

    def register(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(frozen=True, eq=False)(cls)
        names = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
        data = [name for name in names if name not in static]
        jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=list(static))
        return made

    return register


def as_partial(function: Callable[..., Any]) -> Partial:
    """A function as a pytree: the numbers of a `jax.tree_util.Partial` are inputs, it is static."""
    return function if isinstance(function, Partial) else Partial(function)


def leaf_names(tree: Any) -> list[str]:
    """A dictionary's keys, joined by dots where they nest; x for a tree that is one leaf."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path in paths]


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves by their names."""
    return dict(zip(leaf_names(tree), jax.tree.leaves(tree), strict=True))
