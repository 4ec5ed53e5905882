r"""The Lévy random walk with a Metropolis test: no gradient, exact, and it crosses barriers."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike

from levymc import noises
from levymc._checks import (
    as_parameter,
    check_interval,
    check_one_number,
    check_positive,
    like,
)
from levymc._trees import module
from levymc.drifts import LogDensity

from ._base import Info, SamplingAlgorithm, check_minibatch, start
from ._dense import dense
from ._metropolis import accept


class LevyWalkState(NamedTuple):
    """Where the chain is, and log φ there."""

    position: Any
    logdensity: Array


def levy_walk(
    logdensity_fn: LogDensity,
    scale: Any,
    alpha: ArrayLike = 1.2,
    *,
    coordinatewise: bool = True,
    covariance: Any = None,
) -> SamplingAlgorithm[Any]:
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
        covariance: as for `mafla`: steps are those of y = L⁻¹x, along columns of L for x.

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
    remedy = "1.2 serves in general."
    check_one_number("alpha", alpha, remedy)
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy=remedy)
    check_positive("scale", scale, "It is the scale of the jumps.")
    jump = noises.variable(as_parameter(alpha))
    walk = LevyWalk(logdensity_fn, coordinatewise, as_parameter(scale), jump)
    return walk if covariance is None else dense(walk, covariance)


@module(static=("logdensity_fn", "coordinatewise"))
class LevyWalk(SamplingAlgorithm[LevyWalkState]):
    """See `levy_walk`."""

    takes_minibatch = False
    is_exact = True
    logdensity_fn: LogDensity
    coordinatewise: bool
    scale: Any
    jump: noises.Variable

    @property
    def name(self) -> str:
        return "levy_walk"

    def on(self, logdensity_fn: LogDensity) -> "LevyWalk":
        """The same with another target."""
        return dataclasses.replace(self, logdensity_fn=logdensity_fn)

    def init(self, position: Any, rng_key: Any = None) -> LevyWalkState:
        return LevyWalkState(*start(self.logdensity_fn, position))

    def step(self, key: Array, state: LevyWalkState, *minibatch: Any) -> tuple[LevyWalkState, Info]:
        check_minibatch(self, minibatch)
        key_noise, key_axis, key_accept = jax.random.split(key, 3)
        flat, unflatten = ravel_pytree(state.position)
        scales = ravel_pytree(like("scale", self.scale, state.position))[0].astype(flat.dtype)
        if self.coordinatewise:
            axis = jax.random.randint(key_axis, (), 0, flat.size)
            jump = scales[axis] * self.jump.draw(key_noise, (), flat.dtype)
            proposed = unflatten(flat.at[axis].add(jump))
        else:
            jump = scales * self.jump.draw(key_noise, flat.shape, flat.dtype)
            proposed = unflatten(flat + jump)
        there = LevyWalkState(proposed, jnp.asarray(self.logdensity_fn(proposed)))
        chosen, outcome = accept(key_accept, state, there, 0.0)
        one, nothing = jnp.ones_like(outcome.rate), jnp.zeros_like(outcome.rate)
        largest = jnp.max(jnp.abs(jump))
        return chosen, Info(one, outcome.rate, outcome.is_divergent, largest, nothing)
