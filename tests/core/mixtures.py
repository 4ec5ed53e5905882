"""A skewed mixture in the plane, and a reference that does not fit it: nothing cancels."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from levymc.adapt._reference import Fit, assemble

WEIGHTS = np.array([0.65, 0.35])
MEANS = np.array([[0.0, 0.0], [3.0, 1.5]])
COVARIANCES = np.array([[[0.5, 0.2], [0.2, 0.4]], [[1.5, -0.9], [-0.9, 1.2]]])
LOG_MASS = 0.7  # ∫ φ = e^0.7

# Other places, other shapes (a light-tailed component and a heavy-tailed one), other weights.
MISFIT = Fit(
    np.array([0.45, 0.55]),
    np.array([[-0.4, 0.3], [2.4, 1.2]]),
    np.array([[[0.9, -0.2], [-0.2, 0.5]], [[1.0, 0.5], [0.5, 2.5]]]),
    np.array([3.0, np.inf]),
    np.arange(2),
)
EDGES = (np.array([-0.6, 0.5, 1.8, 3.2]), np.array([-0.2, 0.6, 1.6]))
NUM_CELLS = 20

FACTORS = np.linalg.cholesky(COVARIANCES)
INVERSES = np.linalg.inv(FACTORS)
HEIGHTS = np.log(WEIGHTS / np.linalg.det(FACTORS) / (2 * np.pi)) + LOG_MASS


def logdensity(x):
    """log φ, with a mass that is not one."""
    whitened = jnp.einsum("kij,kj->ki", INVERSES.astype(x.dtype), x - MEANS.astype(x.dtype))
    logs = HEIGHTS.astype(x.dtype) - jnp.sum(whitened**2, axis=-1) / 2
    return jax.scipy.special.logsumexp(logs)


def misfit(dtype=jnp.float32):
    return assemble(MISFIT, dtype)


def cells(points):
    """The number of the cell that each point of the plane is in."""
    across, along = (np.searchsorted(e, points[..., i]) for i, e in enumerate(EDGES))
    return across * (len(EDGES[1]) + 1) + along


def projected_cdf(direction):
    """The distribution function of a projection of the target."""
    means = MEANS @ direction
    scales = np.sqrt(np.einsum("i,kij,j->k", direction, COVARIANCES, direction))
    return lambda u: stats.norm.cdf((np.asarray(u)[:, None] - means) / scales) @ WEIGHTS


def draws(rng, count):
    """Exact draws of φ."""
    component = rng.choice(2, count, p=WEIGHTS)
    normals = rng.standard_normal((count, 2))
    return MEANS[component] + np.einsum("nij,nj->ni", FACTORS[component], normals)


@partial(jax.jit, static_argnums=0)
def _logs(fn, points):
    return jax.vmap(fn)(points)


@partial(jax.jit, static_argnums=1)
def _of_reference(key, count):
    return jax.vmap(misfit(jnp.float64).sample)(jax.random.split(key, count))


def tempered_draws(rng, count, beta):
    """Exact draws of q^{1−β} φ^β by rejection: it is at most (1 − β) q + β φ, φ normalised."""
    if beta == 1:
        return draws(rng, count)
    both = []
    while sum(map(len, both)) < count:
        key = jax.random.key(int(rng.integers(2**31)))
        points = np.where(
            rng.random((count, 1)) < beta, draws(rng, count), np.asarray(_of_reference(key, count))
        )
        q = np.asarray(_logs(misfit(jnp.float64).logdensity, points))
        p = np.asarray(_logs(logdensity, points)) - LOG_MASS
        rate = np.exp(
            (1 - beta) * q + beta * p - np.logaddexp(q + np.log1p(-beta), p + np.log(beta))
        )
        both.append(points[rng.random(count) < rate])
    return np.concatenate(both)[:count]
