r"""Many chains on the double well at once, for a grid of step sizes, kept as summaries only.

Every chain has its own a and b in η_n = (a/n)^b, and its own random numbers.  Of its draws there
remain the weighted mean, the weighted histogram, and the number of hops between the wells.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import algorithms, integrators, schedules

from .. import _double_well as well

CAP = 0.5  # of FLMC's tamed step
METHODS = ("FLA, Euler", "FLA, tamed", "FLMC", "MAFLA")

Steps = Any  # a schedule of the step n


class Summary(NamedTuple):
    """One entry a chain; `histogram` has the bins of `EDGES`, and one on either side."""

    mean: Array
    histogram: Array
    hops: Array
    exploded: Array


class _Progress(NamedTuple):
    state: Any
    total: Array
    weighted: Array
    histogram: Array
    well: Array  # the last one visited: -1 or 1
    hops: Array
    exploded: Array


def algorithm(method: str, alpha: float) -> Callable[[Steps], algorithms.SamplingAlgorithm]:
    """The sampler of that name, as a function of its step sizes."""
    if method == "MAFLA":
        return lambda steps: algorithms.mafla(well.target, steps, alpha)
    if method == "FLMC":
        drift, tamed = well.exact_drift(alpha), integrators.tamed(CAP)
        return lambda steps: algorithms.flmc(
            well.target, steps, alpha, drift=drift, integrator=tamed
        )
    integrator = integrators.euler() if method == "FLA, Euler" else integrators.tamed()
    return lambda steps: algorithms.fla(well.target, steps, alpha, integrator=integrator)


def simulate(
    method: str, alpha: float, a: np.ndarray, b: np.ndarray, start: float, count: int, key: Any
) -> Summary:
    """`count` steps of a chain for each pair of entries of a and b, in float32.

    A step that would leave the finite numbers is not made, and marks its chain as exploded.
    """
    sampler = algorithm(method, alpha)
    return _simulate(sampler, count, start, jnp.float32(a), jnp.float32(b), key)


def _simulate(sampler: Any, count: int, start: float, a: Array, b: Array, key: Array) -> Summary:
    def begin(a: Array, b: Array) -> Any:
        return sampler(schedules.polynomial(a, b)).init(jnp.float32(start))

    def move(a: Array, b: Array, key: Array, state: Any) -> Any:
        return sampler(schedules.polynomial(a, b)).step(key, state)

    def advance(so_far: _Progress, key: Array) -> tuple[_Progress, None]:
        state, info = jax.vmap(move)(a, b, jax.random.split(key, a.size), so_far.state)
        return _record(so_far, state, info), None

    @jax.jit
    def run(key: Array) -> Summary:
        last, _ = jax.lax.scan(
            advance, _empty(jax.vmap(begin)(a, b), a.size, start), jax.random.split(key, count)
        )
        histogram = last.histogram / last.total[:, None]
        return Summary(last.weighted / last.total, histogram, last.hops, last.exploded)

    return run(key)


def _empty(state: Any, size: int, start: float) -> _Progress:
    zeros, none = jnp.zeros(size), jnp.zeros(size, jnp.int32)
    side = jnp.full(size, jnp.int32(np.sign(start)))
    histogram = jnp.zeros((size, well.EDGES.size + 1))
    return _Progress(state, zeros, zeros, histogram, side, none, jnp.zeros(size, bool))


def _record(so_far: _Progress, state: Any, info: Any) -> _Progress:
    x, weight = state.position, info.step_size.astype(so_far.total.dtype)
    low, high, last = well.EDGES[0], well.EDGES[-1], well.EDGES.size - 1
    place = jnp.floor((x - low) * (last / (high - low)))
    bins = jnp.clip(place, -1, last).astype(jnp.int32) + 1
    left, right = well.CORES
    here = jnp.where(x < left, -1, jnp.where(x > right, 1, so_far.well))
    return _Progress(
        state,
        so_far.total + weight,
        so_far.weighted + weight * x,
        so_far.histogram.at[jnp.arange(x.size), bins].add(weight),
        here,
        so_far.hops + (here != so_far.well),
        so_far.exploded | info.is_divergent,
    )
