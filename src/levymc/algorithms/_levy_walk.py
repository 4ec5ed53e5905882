r"""The Lévy random walk with a Metropolis test: no gradient, exact, and it crosses barriers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc import stable
from levymc._checks import check_interval, check_positive
from levymc.drifts import LogDensity, like

from ._base import Info, SamplingAlgorithm
from ._mafla import start
from ._metropolis import accept


class LevyWalkState(NamedTuple):
    """Where the chain is, and log φ there."""

    position: Any
    logdensity: Array


def levy_walk(
    logdensity_fn: LogDensity, scale: Any, alpha: Any = 1.2, *, coordinatewise: bool = True
) -> SamplingAlgorithm:
    r"""Random-walk Metropolis with stable jumps,

    .. math:: y = x + s\, ξ\, e_d \quad\text{or}\quad y = x + s\, ξ, \qquad
       a = \min(1, φ(y)/φ(x)),

    along one coordinate d, drawn afresh at each step, or along all of them.  A step costs one
    density either way: in D dimensions, D steps along one coordinate make a sweep.

    Targets: φ exactly.  It finds other modes even with a scale far too small, as long jumps come
    at all scales; along one coordinate only where modes differ in that coordinate alone.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        scale: s > 0, one number or a pytree like the position; tune to accept .2 to .45.
        alpha: in (0, 2], one number; 1 for heavy-tailed targets.
        coordinatewise: along one coordinate at a time.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    Departures: not in the paper.
    """
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy="1.2 serves in general.")
    check_positive("scale", scale, "It is the scale of the jumps.")

    def init(position: Any) -> LevyWalkState:
        return LevyWalkState(*start(logdensity_fn, position))

    def step(key: Array, state: LevyWalkState) -> tuple[LevyWalkState, Info]:
        key_noise, key_axis, key_accept = jax.random.split(key, 3)
        flat, unflatten = ravel_pytree(state.position)
        scales = ravel_pytree(like("scale", scale, state.position))[0].astype(flat.dtype)
        if coordinatewise:
            axis = jax.random.randint(key_axis, (), 0, flat.size)
            jump = scales[axis] * stable.sample(key_noise, alpha, dtype=flat.dtype)
            proposed = flat.at[axis].add(jump)
        else:
            jump = scales * stable.sample(key_noise, alpha, flat.shape, dtype=flat.dtype)
            proposed = flat + jump
        there = unflatten(proposed)
        chosen, rate, is_divergent = accept(
            key_accept, tuple(state), (there, logdensity_fn(there)), 0.0
        )
        nothing = jnp.zeros_like(rate)
        info = Info(jnp.ones_like(rate), rate, is_divergent, jnp.max(jnp.abs(jump)), nothing)
        return LevyWalkState(*chosen), info

    return SamplingAlgorithm(init, step)
