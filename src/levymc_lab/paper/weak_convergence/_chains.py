r"""The chains of the experiment `weak_convergence`: FLMC with the exact drift, and estimates."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import algorithms, integrators, schedules

from .. import _double_well as well

ALPHA, CAP = 1.7, 0.5
LOCAL, LEFT, POSITION = "cos x", "left well", "x"
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    LOCAL: jnp.cos,
    LEFT: lambda x: jax.nn.sigmoid(-4 * x),  # smooth; nothing of note lies where it is not 0 or 1
    POSITION: lambda x: x,
}
# a and b.  With these the first steps are about 1, as large as taming bears.
SCHEDULES = {"b = 0.2": (0.01, 0.2), "b = 1/3": (1.0, 1 / 3), "b = 0.6": (10.0, 0.6)}
CONSTANT, STEP_SIZE = "constant", 0.05
NAMES = (*SCHEDULES, CONSTANT)


def estimates(steps: str, lengths: np.ndarray, num_repeats: int, key: Any) -> dict[str, np.ndarray]:
    """ν_N(g) for each N of `lengths`, g and repeat, and H_N; repeats start in either well."""
    sampler = algorithms.flmc(
        well.target,
        _schedule(steps),
        ALPHA,
        drift=well.exact_drift(ALPHA),
        integrator=integrators.tamed(CAP),
    )
    wells = jnp.float32([well.LEFT_MINIMUM, well.RIGHT_MINIMUM])
    states = jax.vmap(sampler.init)(jnp.resize(wells, (num_repeats,)))
    sums = jnp.zeros((len(FUNCTIONS), num_repeats))
    found, times = [], []
    so_far, done = (states, jnp.zeros(()), sums), 0
    advance = jax.jit(lambda *args: _advance(sampler, key, *args))
    for length in lengths.tolist():
        so_far, done = advance(done, length, so_far), length
        found.append(np.asarray(so_far[2] / so_far[1]))
        times.append(float(so_far[1]))
    return {"estimates": np.stack(found), "time": np.array(times)}


def _schedule(name: str) -> schedules.Schedule:
    if name == CONSTANT:
        return schedules.constant(STEP_SIZE)
    return schedules.polynomial(*SCHEDULES[name])


def _advance(sampler: Any, key: Array, begin: Any, end: Any, so_far: Any) -> Any:
    """From step `begin` to `end`; states, Σ η, and Σ η g for each g and repeat."""

    def step(number: Array, so_far: Any) -> Any:
        states, total, sums = so_far
        keys = jax.random.split(jax.random.fold_in(key, number), sums.shape[1])
        states, info = jax.vmap(sampler.step)(keys, states)
        weight = info.step_size[0].astype(total.dtype)
        values = jnp.stack([g(states.position) for g in FUNCTIONS.values()])
        return states, total + weight, sums + weight * values

    return jax.lax.fori_loop(begin, end, step, so_far)


def exact() -> dict[str, float]:
    """∫ g π for each g, by a sum that converges spectrally."""
    x = np.linspace(-well.BEYOND, well.BEYOND, 4001)
    law = well.density(x) * (x[1] - x[0])
    return {
        name: float((np.asarray(g(jnp.asarray(x))) * law).sum()) for name, g in FUNCTIONS.items()
    }
