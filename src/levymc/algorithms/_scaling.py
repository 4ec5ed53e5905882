r"""Steps that differ from coordinate to coordinate: preconditioned, or shortened by curvature."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_broadcast, check_positive, is_traced
from levymc.drifts import Drift, SignedLog, gradient_coefficient

_PRECONDITIONER_REMEDY = "It multiplies the step size of each coordinate."


def check_preconditioner(preconditioner: Any) -> None:
    if preconditioner is not None:
        check_positive("preconditioner", preconditioner, _PRECONDITIONER_REMEDY)


def check_curvature(curvature: Any) -> None:
    if curvature is not None and not callable(curvature):
        raise TypeError(
            f"`curvature` must be a function of (position, minibatch), got {curvature!r}. "
            "Such as that which a model's `row_curvature` returns."
        )


def multiplied(drift: Drift, factors: Any) -> Drift:
    """The drift times positive factors, a pytree that broadcasts to the position."""

    def value(position: Any) -> Any:
        return jax.tree.map(lambda m, b: m.astype(b.dtype) * b, factors, drift(position))

    def signed_log(position: Any) -> SignedLog:
        sign, log_size = drift.signed_log(position)
        sizes = jax.tree.map(lambda m, s: s + jnp.log(m).astype(s.dtype), factors, log_size)
        return SignedLog(sign, sizes)

    return Drift(value, signed_log, drift.evaluations)


def spread(name: str, parts: Any, position: Any) -> Any:
    """`parts` with the structure of the position; shapes stay as small as they are given."""
    try:
        tree = jax.tree.broadcast(parts, position)
    except ValueError:
        raise ValueError(
            f"`{name}` must be one number or a pytree like the position, got the structure "
            f"{jax.tree.structure(parts)} for {jax.tree.structure(position)}."
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


def stretched(jump: Any, preconditioner: Any, alpha: Any) -> Any:
    """m^{1/α} times the noise: with that of η, the noise over a time η m."""

    def stretch(m: Any, a: Any, noise: Array) -> Array:
        xp: ModuleType = jnp if is_traced((m, a)) else np
        return jnp.asarray(xp.power(m, 1 / xp.asarray(a)), noise.dtype) * noise

    return jax.tree.map(stretch, preconditioner, jax.tree.broadcast(alpha, jump), jump)


def curvature_factors(
    curvature: Callable[[Any], Any],
    position: Any,
    step_size: Array,
    preconditioner: Any,
    alpha: Any,
) -> Any:
    r"""min(1, 1/(η m c_α S)) for each coordinate, S its curvature."""
    sizes = spread("curvature", curvature(position), position)
    alphas = jax.tree.broadcast(alpha, position)

    def factor(size: Any, m: Any, a: Any) -> Array:
        size = jnp.asarray(size)
        scale = jnp.asarray(m * gradient_coefficient(a), size.dtype)
        return jnp.minimum(1, 1 / (step_size.astype(size.dtype) * scale * size))

    return jax.tree.map(factor, sizes, preconditioner, alphas)
