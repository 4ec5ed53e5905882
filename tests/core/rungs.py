"""Whether steps of a tempered system keep the law of every rung, on the plane of `mixtures`."""

import jax
import jax.numpy as jnp
import numpy as np
from tests.bounds import distance_to, dkw_bound
from tests.core import mixtures

FALSE_ALARM = 1e-8
COUNT = 20_000
DIRECTIONS = (np.array([1.0, 0.0]), np.array([0.6, -0.8]))


def after(algorithm, key, starts, num_steps, dtype=jnp.float32):
    """All rungs of many systems, after some steps; starts have the axes (system, rung, …)."""

    def one(key, points):
        state = algorithm.init(points[-1])
        at = jax.vmap(lambda x: algorithm._point_at(x, lambda flat: flat))(points)
        keys = jax.random.split(key, num_steps)
        state, info = jax.lax.scan(
            lambda state, key: algorithm.step(key, state), state._replace(points=at), keys
        )
        return state.points.x, info.swap_rates[-1]

    keys = jax.random.split(key, len(starts))
    found, rates = jax.jit(jax.vmap(one))(keys, jnp.asarray(starts, dtype))
    return np.asarray(found), np.nanmean(rates, axis=0)


def exact(rng, betas):
    return np.stack([mixtures.tempered_draws(rng, COUNT, beta) for beta in betas], axis=1)


def assert_kept(found, betas, rng):
    """Two projections of every rung; of those below the top against fresh exact draws."""
    bound = dkw_bound(COUNT, FALSE_ALARM)
    for place, beta in enumerate(betas):
        for direction in DIRECTIONS:
            ours = found[:, place] @ direction
            if beta == 1:
                distance = distance_to(ours, mixtures.projected_cdf(direction))
                assert distance < bound
            else:
                fresh = np.sort(mixtures.tempered_draws(rng, COUNT, beta) @ direction)
                empirical = lambda u, f=fresh: np.searchsorted(f, u, "right") / COUNT  # noqa: E731
                assert distance_to(ours, empirical) < 2 * bound
