"""Pytrees: dataclasses that are programs' inputs, and parameters spread over positions."""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_broadcast, is_traced

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


def as_parameter(value: Any) -> Any:
    """Fixed numbers as Python's: of one kind, however they were given; the rest as it is."""

    def convert(leaf: Any) -> Any:
        return float(leaf) if not is_traced(leaf) and np.ndim(leaf) == 0 else leaf

    return jax.tree.map(convert, value)


def spread(name: str, parameter: Any, position: Any) -> Any:
    """`parameter`, a number or a pytree like the position, with the structure of the position.

    Its leaves keep their shapes, which must broadcast to those of the position's.
    """
    try:
        tree = jax.tree.broadcast(parameter, position)
    except ValueError:
        raise ValueError(
            f"`{name}` must be one number or a pytree like the position, got the structure "
            f"{jax.tree.structure(parameter)} for {jax.tree.structure(position)}."
        ) from None

    def fit(part: Any, leaf: Any) -> Any:
        check_broadcast(name, part, jnp.shape(leaf))
        if jnp.broadcast_shapes(jnp.shape(part), jnp.shape(leaf)) != jnp.shape(leaf):
            raise ValueError(
                f"`{name}` must broadcast to the position's shape {jnp.shape(leaf)}, "
                f"got shape {jnp.shape(part)}. Give at most one number for each coordinate."
            )
        return part if is_traced(part) else np.asarray(part)

    return jax.tree.map(fit, tree, position)


def like(name: str, parameter: Any, position: Any) -> Any:
    """As `spread`, with the shapes of the position, in NumPy unless it is traced."""

    def fill(part: Any, leaf: Any) -> Any:
        xp: ModuleType = jnp if is_traced(part) else np
        return xp.broadcast_to(xp.asarray(part), jnp.shape(leaf))

    return jax.tree.map(fill, spread(name, parameter, position), position)


def leaf_names(tree: Any) -> list[str]:
    """A dictionary's keys, joined by dots where they nest; x for a tree that is one leaf."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path in paths]


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves by their names."""
    return dict(zip(leaf_names(tree), jax.tree.leaves(tree), strict=True))
