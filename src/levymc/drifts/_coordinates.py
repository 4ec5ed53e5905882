"""A position as a vector of coordinates, and the log density along each of them."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from levymc._checks import is_traced, like, spread

from ._drift import LogDensity, Position, SignedLog, check_position


class Coordinates(NamedTuple):
    """A position flattened, the way back, and the log density of the flat vector."""

    flat: Float[Array, " d"]
    unflatten: Callable[[Array], Position]
    logdensity: Callable[[Array], Array]

    def along(self, offsets: Float[Array, "d n"]) -> Float[Array, "d n"]:
        """log φ(x + offsets[d, i] e_d)."""
        return jax.vmap(jax.vmap(self._moved, (None, 0)))(self._axes(), offsets)

    def slope_along(self, offsets: Float[Array, "d n"]) -> tuple[Array, Array]:
        """log φ and its partial derivative in x_d at x + offsets[d, i] e_d."""
        both = jax.value_and_grad(self._moved, argnums=1)
        return jax.vmap(jax.vmap(both, (None, 0)))(self._axes(), offsets)

    def gradient(self) -> Float[Array, " d"]:
        return jax.grad(self.logdensity)(self.flat)

    def signed_log(self, sign: Float[Array, " d"], log_size: Float[Array, " d"]) -> SignedLog:
        return SignedLog(self.unflatten(sign), self.unflatten(log_size))

    def spread(self, name: str, parameter: Any, position: Position) -> Any:
        """`parameter`, a number or a pytree like the position, as a vector of coordinates."""
        leaves = jax.tree.leaves(like(name, parameter, position))
        xp: ModuleType = jnp if is_traced(leaves) else np
        return xp.concatenate([xp.ravel(leaf) for leaf in leaves])

    def rows(self, tables: Any, position: Position) -> Array:
        """Tables with a row for each α, which is a number or a pytree, as rows by coordinate."""
        firsts = jax.tree.map(lambda table: table[..., 0], tables)
        spread("alpha", firsts, position)
        of_leaves = jax.tree.leaves(jax.tree.broadcast(tables, position))
        return jnp.concatenate(
            [
                jnp.broadcast_to(table, (*jnp.shape(leaf), table.shape[-1])).reshape(
                    -1, table.shape[-1]
                )
                for table, leaf in zip(of_leaves, jax.tree.leaves(position), strict=True)
            ]
        )

    def by_coordinate(self, kind: type, rules: Any, position: Position) -> Any:
        """The rule of one α as it is; rules of several with a row for each coordinate."""
        dtype = self.flat.dtype
        is_one = isinstance(rules, kind) and all(
            np.ndim(part) <= 1 for part in jax.tree.leaves(rules)
        )
        if rules is None or is_one:
            return jax.tree.map(lambda table: jnp.asarray(table, dtype), rules)
        each, structure = jax.tree.flatten(rules, is_leaf=lambda node: isinstance(node, kind))
        tables = (jax.tree.unflatten(structure, parts) for parts in zip(*each, strict=True))
        return kind(*(jnp.asarray(self.rows(table, position), dtype) for table in tables))

    def _moved(self, axis: Array, offset: Array) -> Array:
        return self.logdensity(self.flat + offset * axis)

    def _axes(self) -> Array:
        return jnp.eye(self.flat.size, dtype=self.flat.dtype)


def coordinates(logdensity_fn: LogDensity, position: Position) -> Coordinates:
    """Flatten a position; refuse what is no position or no log density."""
    check_position(logdensity_fn, position)
    flat, unflatten = ravel_pytree(position)
    return Coordinates(flat, unflatten, lambda vector: logdensity_fn(unflatten(vector)))
