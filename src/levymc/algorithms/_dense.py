r"""A dense metric: an adjusted sampler run on y = L⁻¹x, so that its steps have the shape of L."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array

from levymc._checks import check_real, is_traced
from levymc._trees import module
from levymc.drifts import LogDensity

from ._base import Info, SamplingAlgorithm, start

_REMEDY = "Give the covariance of draws of an earlier run, for instance, coordinate by coordinate."


class DenseState(NamedTuple):
    """Where the chain is, log φ there, and the state of the sampler of y."""

    position: Any
    logdensity: Array
    inner: Any


def dense(algorithm: Any, covariance: Any) -> "Dense":
    """The algorithm, of x, with steps of the shape of a covariance, which is checked."""
    return Dense(algorithm.logdensity_fn, algorithm, _factor(covariance))


@module(static=("logdensity_fn",))
class Dense(SamplingAlgorithm[DenseState]):
    """See `dense`."""

    takes_minibatch = False
    is_exact = True
    logdensity_fn: LogDensity
    algorithm: Any
    factor: Any  # L, lower triangular

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def step_schedule(self) -> Any:
        return self.algorithm.step_schedule

    def init(self, position: Any, rng_key: Any = None) -> DenseState:
        where, _ = start(self.logdensity_fn, position)
        return self._seen(self._inner().init(self._y_of(where)))

    def moved(self, state: DenseState, position: Any, rng_key: Any = None) -> DenseState:
        return self._seen(self._inner().moved(state.inner, self._y_of(position)))

    def step(self, key: Array, state: DenseState, *minibatch: Any) -> tuple[DenseState, Info]:
        inner, info = self._inner().step(key, state.inner, *minibatch)
        return self._seen(inner), info

    def _inner(self) -> Any:
        """The sampler of y, whose target is φ(L y)."""
        return self.algorithm.on(lambda y: self.logdensity_fn(self._x_of(y)))

    def _seen(self, inner: Any) -> DenseState:
        return DenseState(self._x_of(inner.position), inner.logdensity, inner)

    def _x_of(self, y: Any) -> Any:
        flat, unflatten = ravel_pytree(y)
        return unflatten(self._factor_of(flat) @ flat)

    def _y_of(self, x: Any) -> Any:
        flat, unflatten = ravel_pytree(x)
        wide = flat.astype(jnp.promote_types(flat.dtype, jnp.float32))  # LAPACK knows no half
        y = solve_triangular(self._factor_of(wide), wide, lower=True)
        return unflatten(y.astype(flat.dtype))

    def _factor_of(self, flat: Array) -> Array:
        if jnp.shape(self.factor) != (flat.size, flat.size):
            raise ValueError(
                f"`covariance` must have a row and a column for each of the {flat.size} "
                f"coordinates, got shape {jnp.shape(self.factor)}. {_REMEDY}"
            )
        return jnp.asarray(self.factor, flat.dtype)


def _factor(covariance: Any) -> Any:
    """L of covariance = L Lᵀ; refuse what has none."""
    if is_traced(covariance):
        return jnp.linalg.cholesky(covariance)
    check_real("covariance", covariance, _REMEDY)
    matrix = np.asarray(covariance, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"`covariance` must be a square matrix, got shape {matrix.shape}. {_REMEDY}"
        )
    rounding = 1e-5 * np.max(np.abs(matrix), initial=0.0)  # of draws in float32
    if np.any(np.abs(matrix - matrix.T) > rounding):
        raise ValueError(
            f"`covariance` must be symmetric, got entries that differ by "
            f"{np.max(np.abs(matrix - matrix.T)):g}. {_REMEDY}"
        )
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(
            f"`covariance` must be positive definite, got an eigenvalue of {least:g}. "
            "Take more draws than coordinates, or add to its diagonal."
        ) from None
