"""Discrete sites with finitely many values, which funsor sums out."""

from collections.abc import Callable
from typing import Any

import jax
from numpyro.handlers import seed, substitute
from numpyro.infer.util import constrain_fn

from ._sites import Sites


def summed_out(model: Callable[..., Any], max_plate_nesting: int) -> Callable[..., Any]:
    """The model with an axis for the values of each discrete site, left of those of the plates."""
    from numpyro.contrib.funsor import config_enumerate, enum

    return enum(config_enumerate(model), -max_plate_nesting - 1)


def depending(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], sites: Sites
) -> tuple[str, ...]:
    """The deterministic sites that depend on discrete ones, and so have no value of their own."""

    def replay(values: Any, position: Any) -> dict[str, Any]:
        fixed = seed(substitute(model, data=values), jax.random.key(0))
        return constrain_fn(fixed, args, kwargs, position, return_deterministic=True)

    closed, shapes = jax.make_jaxpr(replay, return_shape=True)(sites.enumerated, sites.latent)
    # What an operation makes of a number that depends on them, depends on them.
    reached = {id(var) for var in closed.jaxpr.invars[: len(sites.enumerated)]}
    for operation in closed.jaxpr.eqns:
        if any(id(var) in reached for var in operation.invars):
            reached |= {id(var) for var in operation.outvars}
    names = [name for name in sorted(shapes) for _ in jax.tree.leaves(shapes[name])]
    return tuple(
        dict.fromkeys(
            name
            for name, var in zip(names, closed.jaxpr.outvars, strict=True)
            if id(var) in reached
        )
    )
