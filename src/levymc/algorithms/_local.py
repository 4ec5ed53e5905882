r"""Local geometry: a preconditioner m that is a function of the position.

Jumps from z come m(z) times as often.  That alone would move the target; the drift that keeps it is
m(x) times that of the density m φ, which for b̂ = c_α ∇log φ is c_α (m ∇log φ + ∇m).  It is derived
in docs/directions.md.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array

from levymc import drifts
from levymc._checks import check_floating, check_function, output_shapes, spread
from levymc._trees import as_partial, module
from levymc.drifts import Changed, LogDensity

_REMEDY = "Give a function of the position, positive everywhere, or fixed numbers."


def local(function: Any, coefficients: Any) -> "Local":
    """The preconditioner of a user's function; see `Local`."""
    check_function("preconditioner", function, _REMEDY)
    return Local(as_partial(function), coefficients)


@module()
class Local:
    """m > 0, a function of the position: one number, or a pytree that broadcasts to the position.

    coefficients: c_α of the correction c_α ∂_d m_d; None for a drift that is already that of m φ.
    """

    function: Any
    coefficients: Any

    def at(self, position: Any) -> Any:
        """m for each leaf of the position; NaN, so that no step is made, where it is not valid."""
        given = spread("preconditioner", self._given(position), position)
        return jax.tree.map(lambda m, x: _positive(jnp.asarray(m, x.dtype)), given, position)

    def applied(self, known: drifts.Evaluation, position: Any) -> drifts.Evaluation:
        """A drift's values in each coordinate's own time, corrected."""
        scaled = known.scaled(self.at(position))
        if self.coefficients is None:
            return scaled
        correction = drifts.scaled_gradient(self.coefficients, self._slopes(position), position)
        return drifts.Values(jax.tree.map(jnp.add, scaled.value(), correction))

    def _given(self, position: Any) -> Any:
        check_floating("preconditioner", output_shapes("preconditioner", self.function, position))
        return jax.tree.map(jnp.asarray, self.function(position))

    def _slopes(self, position: Any) -> Any:
        """∂_d m_d for each coordinate d, by one reverse pass for each number that m has."""
        given, pull = jax.vjp(self._given, position)
        numbers, unravel = ravel_pytree(given)
        each = jnp.eye(numbers.size, dtype=numbers.dtype)
        rows = jax.vmap(lambda row: pull(unravel(row))[0])(each)
        owners = spread("preconditioner", _numbered(given), position)

        def own(row: Array, owner: Any, x: Any) -> Array:
            index = np.broadcast_to(owner, jnp.shape(x))[None]
            return jnp.take_along_axis(row, index, axis=0)[0]

        return jax.tree.map(own, rows, owners, position)


@module()
class Paced(Changed):
    """A drift in the time of a `Local` preconditioner."""

    drift: Any
    local: Local

    def change(self, drift: drifts.Evaluation, position: Any) -> drifts.Evaluation:
        return self.local.applied(drift, position)


def weighted(logdensity_fn: LogDensity, preconditioner: Local) -> Partial:
    """log(m φ), for an m that is one number."""
    return Partial(_log_weighted, as_partial(logdensity_fn), preconditioner.function)


def _log_weighted(logdensity_fn: Partial, function: Partial, position: Any) -> Array:
    found = output_shapes("preconditioner", function, position)
    shapes = [leaf.shape for leaf in jax.tree.leaves(found)]
    if shapes != [()]:
        raise TypeError(
            f"`preconditioner` of flmc must return one number, got shapes {shapes}. The exact "
            "drift is made for one; several, a coordinate each, serve fla and sgfla."
        )
    return logdensity_fn(position) + jnp.log(function(position))


def _positive(m: Array) -> Array:
    return jnp.where((m > 0) & jnp.isfinite(m), m, jnp.nan)


def _numbered(tree: Any) -> Any:
    """In the place of each entry of a pytree its number among all."""
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([leaf.size for leaf in leaves])
    numbers = [
        np.arange(end - leaf.size, end).reshape(leaf.shape)
        for end, leaf in zip(ends, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, numbers)
