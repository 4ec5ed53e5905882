r"""Lévy jumps between the modes of a posterior, beside any algorithm that samples within them."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc._checks import check_count
from levymc._trees import module
from levymc.drifts import LogDensity

from ._base import Algorithm, Info, SamplingAlgorithm, as_algorithm, choose
from ._levy_walk import LevyWalk, LevyWalkState, levy_walk


class JumpingState(NamedTuple):
    """The state of the algorithm that makes the steps, and how many it made since the last jump."""

    inner: Any
    since: Array

    @property
    def position(self) -> Any:
        return getattr(self.inner, "position", self.inner)


def jumping(
    algorithm: Algorithm,
    logdensity_fn: LogDensity,
    every: int = 100,
    *,
    scale: Any = 1.0,
    alpha: ArrayLike = 1.2,
    coordinatewise: bool = True,
) -> SamplingAlgorithm[JumpingState]:
    r"""Steps of any algorithm, and after every so many of them one of `levymc.levy_walk`:

    .. math:: y = x + s\, ξ\, e_d \quad\text{or}\quad y = x + s\, ξ, \qquad
       a = \min(1, φ(y)/φ(x)),

    with φ the density of all data, where the steps between may have seen minibatches.  A jump costs
    two densities, and steps without one cost none: with N data and minibatches of n, jumps look at
    2N/(every · n) as many data as the steps do.

    Targets: φ, as far as the algorithm does.  The jumps leave φ invariant and exchange modes; all
    bias is the algorithm's own, within modes, of which their weights feel a part.  Exact where the
    algorithm is.  Not valid when: the algorithm's law is far from φ, as that of FLA with small α:
    the law of both together is then neither.

    Args:
        algorithm: ours or BlackJAX's, such as `levymc.sgld(...)`.  After a jump that is accepted
            its state is that of a start at the new place, but its steps are counted on, so that a
            schedule goes on, and `levymc.underdamped` keeps its momentum.
        logdensity_fn: log φ of all data up to a constant, such as
            ``lambda x: estimator.logdensity(x, data)`` of a `levymc.grad_estimator`.  In float32
            leave out what does not depend on x: beside 10⁵ terms of -y²/2 differences are rounded
            to some 0.01.
        every: steps from jump to jump.
        scale: s > 0, one number or a pytree like the position, in the units of its coordinates:
            about half the distance between modes, or the width of the prior where that is not
            known.  1 is right for coordinates that have about unit width, as with standard normal
            priors; give another where they have not.  Ten times too small makes
            jumps to another mode 10^α times as rare, ten times too large 10 times for each
            coordinate that jumps; Gaussian ones would never arrive.  ``info.jumps_accepted``
            counts short jumps within a mode, too.
        alpha: in (0, 2], one number.
        coordinatewise: along one coordinate at a time, drawn afresh for each jump.  False where
            modes differ in several coordinates at once, and these are few.

    Returns:
        An algorithm whose step takes what that of `algorithm` does.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> data = 4 + 10 * jax.random.normal(jax.random.key(0), (1000,))
        >>> estimator = levymc.grad_estimator(  # of x² = 4 from noisy data
        ...     lambda x: -x * x / 18, lambda x, y: -((y - x * x) ** 2) / 200, 1000
        ... )
        >>> jumps = levymc.jumping(
        ...     levymc.sgld(estimator, 1e-3), lambda x: estimator.logdensity(x, data), 10, scale=2.0
        ... )
        >>> run = levymc.sample(
        ...     jumps,
        ...     jax.random.key(1),
        ...     jnp.full(16, 2.0),
        ...     2000,
        ...     minibatches=levymc.batches(data, 100),
        ...     progress=False,
        ... )
        >>> bool(0.3 < (run.positions > 0).mean() < 0.7)  # though all began at 2
        True

    References: none.  Departures: not in the paper.
    """
    steps = check_count("every", every, "It is the number of steps from jump to jump.")
    walk = levy_walk(logdensity_fn, scale, alpha, coordinatewise=coordinatewise)
    assert isinstance(walk, LevyWalk)
    return Jumping(as_algorithm(algorithm), walk, np.asarray(min(steps, 2**31 - 1), np.int32))


@module()
class Jumping(SamplingAlgorithm[JumpingState]):
    """See `jumping`."""

    algorithm: Any
    walk: LevyWalk
    every: Any

    @property
    def name(self) -> str:
        return f"jumping {self.algorithm.name}"

    @property
    def takes_minibatch(self) -> bool | None:  # type: ignore[override]
        return self.algorithm.takes_minibatch

    @property
    def grad_estimator(self) -> Any:
        return getattr(self.algorithm, "grad_estimator", None)

    @property
    def is_exact(self) -> bool | None:  # type: ignore[override]
        """As its algorithm, if that is known to be of the same density."""
        is_same = getattr(self.algorithm, "logdensity_fn", None) == self.walk.logdensity_fn
        return self.algorithm.is_exact if is_same or not self.algorithm.is_exact else None

    @property
    def step_schedule(self) -> Callable[[Any], Any] | None:
        return self.algorithm.step_schedule

    def start_logdensity(self, position: Any) -> Array:
        own, full = self.algorithm.start_logdensity(position), self.walk.logdensity_fn(position)
        return jnp.asarray(full) if own is None else own + full  # finite where both are

    def init(self, position: Any, rng_key: Any = None) -> JumpingState:
        self.walk.init(position)  # refuses what is no start
        return JumpingState(self.algorithm.init(position, rng_key=rng_key), jnp.int32(0))

    def moved(self, state: JumpingState, position: Any, rng_key: Any = None) -> JumpingState:
        return state._replace(inner=self.algorithm.moved(state.inner, position, rng_key))

    def prepared(self, positions: Any) -> "Jumping":
        return dataclasses.replace(self, algorithm=self.algorithm.prepared(positions))

    def step(self, key: Array, state: JumpingState, *minibatch: Any) -> tuple[JumpingState, Any]:
        key_step, key_jump = jax.random.split(key)
        inner, info = self.algorithm.step(key_step, state.inner, *minibatch)
        is_due = state.since + 1 >= self.every
        inner, is_accepted = _jump_if(is_due, self, key_jump, inner)
        since = jnp.where(is_due, 0, state.since + 1)
        return JumpingState(inner, since), _with_jumps(info, is_due, is_accepted)

    def jump(self, key: Array, inner: Any) -> tuple[Any, Array]:
        """One step of the walk, and whether it led elsewhere."""
        key_walk, key_start = jax.random.split(key)
        position = JumpingState(inner, jnp.int32(0)).position
        here = LevyWalkState(position, jnp.asarray(self.walk.logdensity_fn(position)))
        there, _ = self.walk.step(key_walk, here)
        is_elsewhere = jnp.any(
            jnp.stack([jnp.any(a != b) for a, b in _pairs(there.position, position)])
        )
        begun = self.algorithm.moved(inner, there.position, key_start)
        return choose(is_elsewhere, begun, inner), is_elsewhere


def _pairs(one: Any, other: Any) -> list[tuple[Array, Array]]:
    return list(zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def _with_jumps(info: Any, is_due: Array, is_accepted: Array) -> Info:
    """The info of the step that was made before the jump; of another library's what we know."""
    if not isinstance(info, Info):
        one = jnp.ones(())
        rate = jnp.asarray(getattr(info, "acceptance_rate", one))
        is_divergent = jnp.asarray(getattr(info, "is_divergent", False))
        info = Info(one, rate, is_divergent, 0 * one, 0 * one)
    counts = (is_due.astype(jnp.int32), is_accepted.astype(jnp.int32))
    return info._replace(jumps_tried=counts[0], jumps_accepted=counts[1])


# A condition that is mapped over chains computes both of its branches for all of them.  Chains jump
# together: it is asked once, whether any of them is due, and the density is computed only then.


def _jump_if(is_due: Array, jumping: Jumping, key: Array, inner: Any) -> tuple[Any, Array]:
    """The state after a jump that is due, and whether it was accepted."""
    # A density may hold numbers that are mapped, too, such as the β of a rung: a rule for mapped
    # arguments sees them only if they are arguments.
    given = (jumping, key, inner)
    jump, held = jax.closure_convert(lambda jumping, *rest: jumping.jump(*rest), *given)

    @jax.custom_batching.custom_vmap
    def jump_if(is_due: Array, *given: Any) -> tuple[Any, Array]:
        return jax.lax.cond(is_due, jump, lambda *given: (given[2], jnp.bool_(False)), *given)

    @jump_if.def_vmap
    def jump_if_any(size: int, is_mapped: Any, *given: Any) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, is_mapped)

        def go(is_due: Array, *given: Any) -> tuple[Any, Array]:
            moved, is_accepted = jump(*given)
            return choose(is_due, moved, given[2]), is_due & is_accepted

        def stay(is_due: Array, *given: Any) -> tuple[Any, Array]:
            return given[2], jnp.bool_(False)

        found = jax.lax.cond(
            jnp.any(given[0]),
            *(jax.vmap(one, in_axes=tuple(axes), axis_size=size) for one in (go, stay)),
            *given,
        )
        return found, jax.tree.map(lambda leaf: True, found)

    return jump_if(is_due, *given, *held)
