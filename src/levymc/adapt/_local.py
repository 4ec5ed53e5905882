r"""Another sampler, such as one of BlackJAX's, as the local move of a rung.

A point x is taken to belong to a component i of the reference q, drawn with its share r_i(x).  The
other sampler then makes a step on what is left random, the law of x given i,

.. math:: q^{1-β} φ^β r_i = (φ / q)^β \, w_i f_i ,

in coordinates u of that component, x = μ_i + L_i u: its covariance is about the identity there, and
the metric may be another one in each mode.  Whatever keeps that law keeps the one of the rung.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_function
from levymc.algorithms import SamplingAlgorithm, as_algorithm
from levymc.drifts import LogDensity

from ._reference import Reference, choose

Maker = Callable[[LogDensity, Any], Any]

TO_ACCEPT = 0.57  # by a move of one gradient
TO_ACCEPT_TRAJECTORIES = 0.8  # by one of several
FIRST_COST = 10.0  # evaluations of a local move, before any was made
REMEDY = "Such as lambda f, step_size: blackjax.mala(f, step_size)."


class Moved(NamedTuple):
    """Where a local move led.

    rate: of acceptance, as the sampler has it, NaN where it has none; `aim` is what is good.
    num_evaluations: of log φ; the one at the end, which is the caller's, is not among them.
    """

    x: Array
    rate: Array
    aim: Array
    num_evaluations: Array


def check_local(local: Any) -> Maker:
    """Refuse what cannot be called with a log density and a step size."""
    check_function("local", local, REMEDY, 2)
    check_exact("local", _on_normal(local))
    return local


def check_exact(argument: str, algorithm: SamplingAlgorithm[Any]) -> None:
    """Refuse a sampler whose bias would be in draws that are said to be exact."""
    if algorithm.is_exact is False:
        raise ValueError(
            f"`{argument}` must make a sampler that is exact, got {algorithm.name}, whose bias "
            "would be in all draws. Take levymc.mafla, levymc.levy_walk or BlackJAX's MALA."
        )


def _on_normal(local: Maker) -> SamplingAlgorithm[Any]:
    return as_algorithm(local(lambda u: -jnp.sum(u * u) / 2, 1.0))


def name_of(local: Maker) -> str:
    """What the sampler is called."""
    return _on_normal(local).name


def program_of(local: Maker, position: jax.ShapeDtypeStruct) -> bytes:
    """What it does, in JAX's own words, by which it is told from others."""

    def step(key: Array, u: Array, step_size: Array) -> Any:
        return advanced(as_algorithm(local(lambda u: -jnp.sum(u * u) / 2, step_size)), key, u)

    wide = jnp.result_type(float)
    one, number = jax.ShapeDtypeStruct(position.shape, wide), jax.ShapeDtypeStruct((), wide)
    return jax.jit(step).lower(jax.random.key(0), one, number).as_text().encode()


def advanced(algorithm: SamplingAlgorithm[Any], key: Array, position: Any) -> tuple[Any, Any]:
    """The position after a step of an algorithm that keeps no state, and what it says of it."""
    key_init, key_step = jax.random.split(key)
    state = algorithm.init(position, rng_key=key_init)
    moved, info = algorithm.step(key_step, state)
    return moved.position, info


def rate_of(info: Any, dtype: Any) -> Array:
    """The acceptance rate that a sampler tells, NaN if it tells none."""
    return jnp.asarray(getattr(info, "acceptance_rate", jnp.nan), dtype)


def local_move(
    local: Maker,
    key: Array,
    x: Array,
    beta: Array,
    step_size: Array,
    *,
    reference: Reference,
    flat_fn: Callable[[Array], Array],
) -> Moved:
    """A step of `local` on the law of a rung, from a flat vector to the next."""
    key_component, key_step = jax.random.split(key)
    component = choose(reference.log_components(x), jax.random.uniform(key_component, (), x.dtype))
    mean, factor = reference.means[component], reference.factors[component]
    # BlackJAX's samplers work in JAX's own precision only; positions keep theirs.
    wide = jnp.result_type(float)
    calls = 0

    def placed(u: Array) -> Array:
        return mean + factor @ u.astype(x.dtype)

    def logdensity(u: Any) -> Array:
        nonlocal calls
        calls += 1
        there = placed(u)
        components = reference.log_components(there)
        ratio = flat_fn(there) - jax.scipy.special.logsumexp(components)
        return (beta * ratio + components[component]).astype(wide)

    algorithm = as_algorithm(local(logdensity, step_size.astype(wide)))
    start = (reference.inverses[component] @ (x - mean)).astype(wide)
    end, info = advanced(algorithm, key_step, start)
    moved = jnp.where(jnp.all(end == start), x, placed(end))  # to the bit, where it stayed
    rate = rate_of(info, x.dtype)
    gradients = getattr(info, "num_integration_steps", None)
    if gradients is None:
        return Moved(moved, rate, jnp.asarray(TO_ACCEPT, x.dtype), jnp.int32(calls))
    rate = jnp.where(jnp.isnan(rate), 0.0, rate)  # a trajectory that diverged
    aim = jnp.asarray(TO_ACCEPT_TRAJECTORIES, x.dtype)
    return Moved(moved, rate, aim, 1 + jnp.asarray(gradients, jnp.int32))
