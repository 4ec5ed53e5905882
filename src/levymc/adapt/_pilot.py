r"""A Lévy walk that finds scales: the pilot before a tail map, and the warm-up of `levy_walk`."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc import noises
from levymc._checks import check_scalar_output, like
from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm, start_at
from levymc.drifts import LogDensity
from levymc.run import Result, sample

from ._adapted import Adapted, counts, last, refuse_endless, shaped, too_small, whole
from ._tail_map import Fitted, fit, flat_draws, identity, linear, principal_axes

VISITS = 200  # of each coordinate by each chain; fewer of an axis, where there are more axes
FEWEST_VISITS = 40  # with fewer, a given covariance serves better
FEWEST_DRAWS = 20  # of all chains together, for a fit
WALK_ACCEPTANCE = 0.3
LAST_GAIN = 0.1
PILOT_SHARE = 0.25  # of the budget, at most


class PilotState(NamedTuple):
    """Where the walk is, log φ there, and the number of its steps.

    log_scales, acceptance_rates: of each axis, the latter at its last visit.
    """

    position: Any
    logdensity: Array
    log_scales: Array
    acceptance_rates: Array
    step: Array


class PilotInfo(NamedTuple):
    """Of each axis."""

    log_scales: Array
    acceptance_rates: Array


@module(static=("logdensity_fn",))
class Pilot(SamplingAlgorithm[PilotState]):
    """A Lévy walk along one axis after the other, whose scales adapt to an acceptance of 0.3.

    axes: the columns are the directions.  visits: of an axis, over which the gain falls from 1 to
    0.1.
    """

    takes_minibatch = False
    is_exact = False
    logdensity_fn: LogDensity
    jump: noises.Variable
    axes: Any
    log_scales: Any
    visits: Any

    @property
    def name(self) -> str:
        return "pilot"

    def init(self, position: Any, rng_key: Any = None) -> PilotState:
        position = start_at(position).position
        check_scalar_output("logdensity_fn", self.logdensity_fn, position)
        flat, _ = ravel_pytree(position)
        scales = jnp.asarray(self.log_scales, flat.dtype)
        logdensity = jnp.asarray(self.logdensity_fn(position))
        return PilotState(position, logdensity, scales, jnp.zeros_like(scales), jnp.int32(0))

    def step(self, key: Array, state: PilotState, *minibatch: Any) -> tuple[PilotState, PilotInfo]:
        key_noise, key_accept = jax.random.split(key)
        flat, unflatten = ravel_pytree(state.position)
        num_axes = state.log_scales.size
        axis = state.step % num_axes
        length = jnp.exp(state.log_scales[axis]) * self.jump.draw(key_noise, (), flat.dtype)
        proposed = unflatten(flat + length * jnp.asarray(self.axes, flat.dtype)[:, axis])
        logdensity = self.logdensity_fn(proposed)
        # NaN and +inf are no densities, and a proposal that has them is refused.
        is_known = logdensity < jnp.inf
        change = jnp.where(is_known, logdensity - state.logdensity, -jnp.inf)
        rate = jnp.exp(jnp.minimum(change, 0.0))
        is_accepted = jax.random.uniform(key_accept, dtype=rate.dtype) < rate
        gain = jnp.maximum(LAST_GAIN, 10.0 ** (-(state.step // num_axes) / self.visits))
        rate = rate.astype(flat.dtype)
        move = (gain * (rate - WALK_ACCEPTANCE)).astype(flat.dtype)
        kept = jax.tree.map(
            lambda new, old: jnp.where(is_accepted, new, old),
            (proposed, logdensity),
            (state.position, state.logdensity),
        )
        scales = state.log_scales.at[axis].add(move)
        rates = state.acceptance_rates.at[axis].set(rate)
        following = PilotState(kept[0], kept[1], scales, rates, state.step + 1)
        return following, PilotInfo(scales, rates)


class Piloted(NamedTuple):
    """A run of the pilot with as many draws as sweeps over d axes, and what it cost."""

    result: Result
    num_sweeps: int
    evaluations: int

    @property
    def later(self) -> Any:
        """The second half of the draws."""
        return jax.tree.map(lambda leaf: leaf[:, leaf.shape[1] // 2 :], self.result.positions)


def walk(
    logdensity_fn: LogDensity,
    key: Array,
    positions: Any,
    budget: int,
    jump: noises.Variable,
    axes: np.ndarray,
    log_scales: np.ndarray,
) -> Piloted | None:
    """As many sweeps over d axes as the budget has room for, at most 200; one draw of each."""
    num_chains, size = counts(positions)
    num_sweeps = min(VISITS, (budget // num_chains - 1) // size)
    if num_sweeps < 1:
        return None
    visits = num_sweeps * size / axes.shape[1]
    walk = Pilot(logdensity_fn, jump, axes, log_scales, visits)
    result = whole(sample(walk, key, positions, num_sweeps * size, thin=size, progress=False))
    return Piloted(result, num_sweeps, num_chains * (1 + num_sweeps * size))


def first_scales(positions: Any) -> np.ndarray:
    """How far the starts are apart, or else their size."""
    flat = flat_draws(jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], positions))
    apart = np.ptp(flat, axis=0)
    return np.where(apart > 0, apart, np.maximum(np.abs(flat).max(axis=0), 1.0))


class _First(NamedTuple):
    """The map that a pilot gives, and where it ended."""

    fitted: Fitted
    positions: Any


def pilot_map(
    logdensity_fn: LogDensity,
    key: Array,
    positions: Any,
    budget: int,
    covariance: np.ndarray | None,
    kinds: tuple[str, ...],
) -> tuple[_First, int]:
    """The map after a pilot, and what it cost."""
    num_chains, size = counts(positions)
    allowed = int(PILOT_SHARE * budget)
    begin = Fitted(identity(size), "linear", 0.0)
    axes, scales = np.eye(size), first_scales(positions)
    if covariance is not None:
        # Tails may be heavy along the coordinates or along the axes of the curvature.
        axes = np.column_stack([np.linalg.cholesky(covariance), principal_axes(covariance)])
        center = flat_draws(jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], positions))
        begin = Fitted(linear(np.median(center, axis=0), covariance), "given", 0.0)
        scales = np.ones(axes.shape[1])
        if allowed // num_chains < FEWEST_VISITS * size:
            return _First(begin, positions), 0
    walked = walk(
        logdensity_fn, key, positions, allowed, noises.variable(1.0), axes, np.log(scales)
    )
    if walked is None:
        return _First(begin, positions), 0
    refuse_endless(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(walked.later)]))
    flat = flat_draws(walked.later)
    fitted = fit(flat, kinds, covariance) if len(flat) >= FEWEST_DRAWS else begin
    return _First(fitted, last(walked.result.positions)), walked.evaluations


def tune_walk(algorithm: Any, key: Array, positions: Any, budget: int) -> Adapted:
    """The scales of a walk along coordinates."""
    positions = jax.tree.map(jnp.asarray, positions)
    num_chains, size = counts(positions)
    one = jax.tree.map(lambda leaf: leaf[0], positions)
    given = jax.tree.leaves(like("scale", algorithm.scale, one))
    first = np.concatenate([np.ravel(leaf) for leaf in given])
    walked = walk(
        algorithm.logdensity_fn,
        key,
        positions,
        budget,
        algorithm.jump,
        np.eye(size),
        np.log(first.astype(np.float64)),
    )
    if walked is None:
        raise too_small(budget, num_chains * (size + 1))
    late = walked.result.info.log_scales[:, walked.num_sweeps // 2 :]
    rates = walked.result.info.acceptance_rates[:, walked.num_sweeps // 2 :]
    scales = np.exp(np.median(np.asarray(late, np.float64), axis=(0, 1)))
    return Adapted(
        dataclasses.replace(algorithm, scale=shaped(scales, positions)),
        last(walked.result.positions),
        {"scales": walked.evaluations},
        1.0,
        {"sampler": "levy_walk", "acceptance_rate": float(np.mean(rates))},
        [],
    )
