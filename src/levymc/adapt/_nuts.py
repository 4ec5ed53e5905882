r"""The no-U-turn sampler after a map of the tails: BlackJAX's kernel, in levymc's engine."""

import dataclasses
import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike

from levymc._checks import (
    as_parameter,
    check_count,
    check_one_number,
    check_positive,
    check_scalar_output,
    is_traced,
)
from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm, start_at
from levymc.drifts import LogDensity

from ._tail_map import TailMap, identity

# Of dual averaging, as Hoffman and Gelman (2014) chose them.
SHRINKAGE, DELAY, FORGETTING = 0.05, 10.0, 0.75
TARGET_ACCEPTANCE = 0.8
BOLDNESS = 10.0  # by how much the steps towards which it shrinks are longer than the first


class NutsState(NamedTuple):
    """Where the chain is, the same seen through the map, and its step size.

    mapped: BlackJAX's state in w: position, log density and its gradient.
    mean_error, center: of dual averaging.  step: how many steps were made.
    evaluations: how many gradients they took.
    """

    position: Any
    mapped: Any
    step_size: Array
    mean_error: Array
    center: Array
    step: Array
    evaluations: Array


class NutsInfo(NamedTuple):
    """What a person may ask of a step; the names are BlackJAX's.

    logdensity: log φ where the step ended.  energy: of the mapped target.
    num_integration_steps: gradients that the step took; 0 where the allowance was used up.
    """

    step_size: Array
    acceptance_rate: Array
    is_divergent: Array
    energy: Array
    logdensity: Array
    num_integration_steps: Array
    num_trajectory_expansions: Array


def nuts(
    logdensity_fn: LogDensity,
    step_size: ArrayLike = 1.0,
    tail_map: TailMap | None = None,
    *,
    max_num_doublings: int = 10,
) -> "Nuts":
    r"""The no-U-turn sampler on the target seen through a map x = T(w),

    .. math:: \log φ(T(w)) + \log |\det T'(w)|,

    with unit masses: the map holds the metric, and turns heavy tails into those of a normal law,
    for which Hamiltonian trajectories are made.

    Targets: φ exactly, whatever map and step size are.  Not valid when: φ is not smooth; then the
    law is still φ, but trajectories are refused.  Where its gradient is not finite, zero is taken.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree; differentiable.
        step_size: of the leapfrog integrator, positive.
        tail_map: T, such as `levymc.adapt.tail_map(draws).map`; none if not given.
        max_num_doublings: a trajectory has at most 2^max_num_doublings - 1 gradients.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.
        ImportError: BlackJAX is not installed.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> algorithm = levymc.adapt.nuts(lambda x: -jnp.sum(x * x) / 2, 0.5)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(jnp.ones(3)))
        >>> bool(info.is_divergent)
        False

    References: [hoffman2014], algorithm 3, with the multinomial choice of BlackJAX.
    Departures: the map.
    """
    _kernel()
    remedy = "About 1 is right after a good map; levymc.adapt.warm_up finds it."
    check_one_number("step_size", step_size, remedy)
    check_positive("step_size", step_size, remedy)
    check_count("max_num_doublings", max_num_doublings, "10 serves in general.")
    return Nuts(logdensity_fn, max_num_doublings, as_parameter(step_size), tail_map)


@module(static=("logdensity_fn", "max_num_doublings"))
class Nuts(SamplingAlgorithm[NutsState]):
    """See `nuts`.

    gain: 1 while the step size adapts, 0 once it is frozen, by which the sampler becomes exact;
        one compiled program serves both.
    allowance: gradients that a chain may take in a run.  One that could exceed it by a step stays
        where it is: for warm-ups with a budget, infinite otherwise.
    """

    takes_minibatch = False
    is_exact = True
    logdensity_fn: LogDensity
    max_num_doublings: int
    step_size: Any
    tail_map: TailMap | None
    gain: Any = 0.0
    allowance: Any = math.inf

    @property
    def name(self) -> str:
        return "nuts"

    def prepared(self, positions: Any) -> "Nuts":
        if self.tail_map is not None:
            return self
        size = sum(math.prod(np.shape(leaf)[1:]) for leaf in jax.tree.leaves(positions))
        return dataclasses.replace(self, tail_map=identity(size))

    def init(self, position: Any, rng_key: Any = None) -> NutsState:
        position = start_at(position).position
        check_scalar_output("logdensity_fn", self.logdensity_fn, position)
        flat, _ = ravel_pytree(position)
        # BlackJAX's kernel works in JAX's own precision only; positions keep theirs.
        wide = jnp.result_type(float)
        w = self._map(flat).inverse(flat.astype(wide))
        logdensity, gradient = jax.value_and_grad(self._mapped(position))(w)
        if not is_traced(logdensity) and not bool(jnp.isfinite(logdensity)):
            raise ValueError(
                f"`logdensity_fn` must be finite at the start, got {logdensity} at {position}. "
                "Start inside the support of the target."
            )
        number, zero = jnp.asarray(self.step_size, wide), jnp.zeros((), wide)
        return NutsState(
            position,
            _state(w, logdensity, gradient),
            number,
            zero,
            jnp.log(BOLDNESS * number),
            jnp.int32(0),
            jnp.int32(0),
        )

    def step(self, key: Array, state: NutsState, *minibatch: Any) -> tuple[NutsState, NutsInfo]:
        most = 2**self.max_num_doublings - 1
        is_over = state.evaluations + most > self.allowance
        # With a step size that is no number the trajectory ends where it begins.
        moved, info = _kernel()(
            key,
            state.mapped,
            self._mapped(state.position),
            jnp.where(is_over, jnp.nan, state.step_size),
            jnp.ones_like(state.mapped.position),
            self.max_num_doublings,
        )
        flat, unflatten = ravel_pytree(state.position)
        x, log_jacobian = self._map(flat).forward(moved.position)
        wide = moved.position.dtype
        gradients = jnp.where(is_over, 0, info.num_integration_steps).astype(jnp.int32)
        rate = jnp.where(jnp.isnan(info.acceptance_rate), 0, info.acceptance_rate)
        rate = jnp.where(is_over, TARGET_ACCEPTANCE, rate).astype(wide)
        adapted = _dual_averaging(state, rate, self.gain)
        following = adapted._replace(
            position=unflatten(x.astype(flat.dtype)),
            mapped=moved,
            evaluations=state.evaluations + gradients,
        )
        return following, NutsInfo(
            state.step_size,
            rate,
            info.is_divergent & ~is_over,
            jnp.asarray(info.energy, wide),
            moved.logdensity - log_jacobian,
            gradients,
            jnp.asarray(info.num_trajectory_expansions, jnp.int32),
        )

    def _map(self, flat: Array) -> TailMap:
        return identity(flat.size) if self.tail_map is None else self.tail_map

    def _mapped(self, position: Any) -> Any:
        """log φ(T(w)) + log |det T′(w)| as a function of w."""
        flat, unflatten = ravel_pytree(position)
        used = self._map(flat)

        def logdensity(w: Array) -> Array:
            x, log_jacobian = used.forward(w)
            return self.logdensity_fn(unflatten(x.astype(flat.dtype))) + log_jacobian

        return _with_finite_gradient(logdensity)


def _with_finite_gradient(function: Any) -> Any:
    """The same, but with zeros where its gradient is not finite.

    Leapfrog steps keep volumes and can be gone back whatever the force is, if it depends on the
    place alone: NUTS stays exact, where with NaN it would never enter such a region.
    """

    @jax.custom_vjp
    def sound(w: Array) -> Array:
        return function(w)

    def forward(w: Array) -> tuple[Array, Array]:
        value, gradient = jax.value_and_grad(function)(w)
        return value, jnp.where(jnp.isfinite(gradient), gradient, 0.0)

    def backward(gradient: Array, cotangent: Array) -> tuple[Array]:
        return (cotangent * gradient,)

    sound.defvjp(forward, backward)
    return sound


def _dual_averaging(state: NutsState, rate: Array, gain: Any) -> NutsState:
    """The step size after one more step; untouched, to the bit, where the gain is 0."""
    dtype = state.step_size.dtype
    number = (state.step + 1).astype(dtype)
    weight = 1 / (number + DELAY)
    error = (1 - weight) * state.mean_error + weight * (TARGET_ACCEPTANCE - rate)
    proposed = jnp.exp(state.center - jnp.sqrt(number) / SHRINKAGE * error)
    is_adapting = jnp.asarray(gain) > 0
    return state._replace(
        step_size=jnp.where(is_adapting, proposed, state.step_size),
        mean_error=jnp.where(is_adapting, error, state.mean_error),
        step=state.step + 1,
    )


def averaged_step_size(step_sizes: np.ndarray) -> float:
    """What dual averaging settles on after a run of a chain with these steps: later ones count."""
    log_average = 0.0
    for number, log_step in enumerate(np.log(step_sizes.astype(np.float64)), 1):
        share = number**-FORGETTING
        log_average = share * log_step + (1 - share) * log_average
    return math.exp(log_average)


@lru_cache(maxsize=1)
def _kernel() -> Any:
    return _blackjax().nuts.build_kernel()


def _state(position: Array, logdensity: Array, gradient: Array) -> Any:
    return _blackjax().mcmc.hmc.HMCState(position, logdensity, gradient)


def _blackjax() -> Any:
    try:
        import blackjax
    except ModuleNotFoundError as error:
        raise ImportError("`nuts` needs BlackJAX: pip install 'levymc[auto]'.") from error
    return blackjax
