r"""A normalised mixture of multivariate t laws: what tempering starts from, and jumps go to."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array

from levymc._trees import module

SHELL = 0.1  # of a component's weight is in a wider law around it
SHELL_VARIANCE = 3.0
SHELL_DEGREES = 5.0
WIDE = 0.05  # of all weight is in one wide component
WIDE_DEGREES = 5.0
WIDE_VARIANCE = 2.0
LAPLACE_DEGREES = 8.0
POOLED_DEGREES = 30.0
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, *(65 << power for power in range(8)))
MOST_DEGREES = 30  # of freedom; or infinitely many
NUM_UNIFORMS = 2 + MOST_DEGREES // 2  # of a draw
NO_WEIGHT = -1e30  # the log of none, which stays a finite number


class Fit(NamedTuple):
    """A mixture as it is fitted, on the host; the wide component is not among the others.

    mode: for each component the number of the mode that it belongs to.
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    degrees: np.ndarray
    mode: np.ndarray


@module()
class Reference:
    r"""Mixture of multivariate t laws with a shell around each component:

    .. math:: q = \sum_k w_k \bigl[(1 - s_k)\, t_{ν_k}(μ_k, Σ_k) + s_k\, t_5(μ_k, 3 Σ_k)\bigr] .

    Places that are not used have no weight.  `is_listed` tells the components from the wide one.
    """

    log_weights: Any
    means: Any
    factors: Any
    inverses: Any
    degrees: Any
    shells: Any
    is_listed: Any

    def log_components(self, x: Array) -> Array:
        """log of each summand at a flat vector."""
        whitened = jnp.einsum("kij,kj->ki", self.inverses, x - self.means)
        return self.log_summands(jnp.sum(whitened**2, axis=-1))

    def log_summands(self, squares: Any, numpy: Any = jnp) -> Any:
        """The same, of squared distances |L_k⁻¹(x − μ_k)|²; by `numpy` on the host."""
        dimension = self.means.shape[-1]
        core = log_t(squares, self.degrees, dimension, numpy)
        shell_degrees = numpy.full_like(self.degrees, SHELL_DEGREES)
        shell = log_t(squares / SHELL_VARIANCE, shell_degrees, dimension, numpy)
        shell = shell - dimension / 2 * math.log(SHELL_VARIANCE)
        both = numpy.logaddexp(
            numpy.log1p(-self.shells) + core, numpy.log(numpy.maximum(self.shells, 1e-30)) + shell
        )
        diagonals = numpy.diagonal(self.factors, axis1=-2, axis2=-1)
        return self.log_weights - numpy.sum(numpy.log(diagonals), axis=-1) + both

    @property
    def log_determinants(self) -> Array:
        """log |L_k|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.factors, axis1=-2, axis2=-1)), axis=-1)

    def logdensity(self, x: Array) -> Array:
        return logsumexp(self.log_components(x))

    def sample(self, key: Array) -> Array:
        key_uniform, key_normal = jax.random.split(key)
        dtype, dimension = self.means.dtype, self.means.shape[-1]
        uniforms = jax.random.uniform(key_uniform, (NUM_UNIFORMS,), dtype)
        normals = jax.random.normal(key_normal, (dimension + 1,), dtype)
        return self.draw(uniforms, normals)

    def draw(self, uniforms: Array, normals: Array) -> Array:
        """A draw, made of `NUM_UNIFORMS` uniform numbers and d + 1 normal ones.

        χ² of ν is a sum of ν/2 exponential numbers and, where ν is odd, a square: this takes a
        fraction of the time that a gamma law takes to compile, and fewer random bits than squares.
        """
        dimension = self.means.shape[-1]
        component = choose(self.log_weights, uniforms[0])
        is_shell = uniforms[1] < self.shells[component]
        degrees = jnp.where(is_shell, SHELL_DEGREES, self.degrees[component])
        spread = jnp.where(is_shell, math.sqrt(SHELL_VARIANCE), 1.0)
        pairs = jnp.arange(1, MOST_DEGREES // 2 + 1)
        apart = jnp.maximum(uniforms[2:], jnp.finfo(uniforms.dtype).eps / 4)  # from zero
        exponentials = -2 * jnp.sum(jnp.where(2 * pairs <= degrees, jnp.log1p(-apart), 0.0))
        square = jnp.where(degrees % 2 == 1, normals[dimension] ** 2, 0.0)
        chi_square = exponentials + square
        size = jnp.where(jnp.isinf(degrees), 1.0, jnp.sqrt(degrees / chi_square))
        stretched = spread * size * normals[:dimension]
        return self.means[component] + self.factors[component] @ stretched


def choose(logits: Array, uniform: Array) -> Array:
    """An index with probability proportional to exp(logits), by inversion."""
    sums = jnp.cumsum(jnp.exp(logits - jnp.max(logits)))
    found = jnp.sum(sums <= uniform * sums[-1])
    # Rounding must not lead to an index of no weight at the end.
    return jnp.minimum(found, jnp.sum(sums < sums[-1]))


def log_t(squares: Any, degrees: Any, dimension: int, numpy: Any = jnp) -> Any:
    """log density of a standard multivariate t, normal for infinitely many degrees, given |z|².

    By `numpy` it is computed on the host.
    """
    from scipy.special import gammaln  # here, so that importing levymc stays light

    log_gamma = gammaln if numpy is np else jax.scipy.special.gammaln
    is_normal = numpy.isinf(degrees)
    nu = numpy.where(is_normal, 1.0, degrees)
    half = (nu + dimension) / 2
    height = log_gamma(half) - log_gamma(nu / 2) - dimension / 2 * numpy.log(nu * math.pi)
    normal = -squares / 2 - dimension / 2 * math.log(2 * math.pi)
    return numpy.where(is_normal, normal, height - half * numpy.log1p(squares / nu))


def laplace(modes: Any) -> Fit:
    """A component per mode, weighed by the square root of its mass; all in one where too many."""
    if modes.are_too_many:
        return pooled(modes)
    logs = modes.log_mass / 2
    weights = np.exp(logs - logs.max())
    count = modes.num_modes
    return Fit(
        weights / weights.sum(),
        modes.location,
        modes.covariance,
        np.full(count, LAPLACE_DEGREES),
        np.arange(count),
    )


def pooled(modes: Any) -> Fit:
    """One component that is as wide as all modes together."""
    mean, covariance = _moments(
        np.ones(modes.num_modes) / modes.num_modes, modes.location, modes.covariance
    )
    return Fit(
        np.ones(1), mean[None], covariance[None], np.full(1, POOLED_DEGREES), np.zeros(1, int)
    )


def _moments(
    weights: np.ndarray, means: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ means
    offsets = means - mean
    within = np.einsum("k,kij->ij", weights, covariances)
    return mean, within + np.einsum("k,ki,kj->ij", weights, offsets, offsets)


def places_for(count: int) -> int:
    """Components that a program is compiled for, the wide one included: few different numbers."""
    return next(size for size in SIZES if size > count)


def assemble(fit: Fit, dtype: Any, places: int | None = None) -> Reference:
    """The mixture of a fit with its wide component, which comes first."""
    host = assemble_on_host(fit, places or places_for(len(fit.weights)))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, None if leaf.dtype == bool else dtype), host)


def assemble_on_host(fit: Fit, places: int) -> Reference:
    """The same as NumPy's arrays in double precision, which nothing is compiled for."""
    count, dimension = fit.means.shape
    mean, covariance = _moments(fit.weights, fit.means, fit.covariances)
    means, factors = np.tile(mean, (places, 1)), np.tile(np.eye(dimension), (places, 1, 1))
    means[1 : count + 1] = fit.means
    factors[0] = np.linalg.cholesky(WIDE_VARIANCE * covariance)
    factors[1 : count + 1] = np.linalg.cholesky(fit.covariances)
    log_weights, degrees = np.full(places, NO_WEIGHT), np.full(places, WIDE_DEGREES)
    log_weights[0] = math.log(WIDE)
    log_weights[1 : count + 1] = np.log(np.maximum((1 - WIDE) * fit.weights, 1e-300))
    degrees[1 : count + 1] = fit.degrees
    shells, is_listed = np.zeros(places), np.zeros(places, bool)
    shells[1 : count + 1], is_listed[1 : count + 1] = SHELL, True
    return Reference(
        log_weights, means, factors, np.linalg.inv(factors), degrees, shells, is_listed
    )


def reference(modes: Any, dtype: Any = None) -> Reference:
    r"""The mixture that Laplace's approximation at each mode gives, normalised:

    .. math:: q = 0.95 \sum_k w_k f_k + 0.05\, t_5, \qquad
       f_k = 0.9\, t_8(μ_k, Σ_k) + 0.1\, t_5(μ_k, 3Σ_k), \quad w_k \propto \text{mass}_k^{1/2} .

    Args:
        modes: as found by `levymc.adapt.explore`.
        dtype: of the numbers; JAX's default float if not given.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> logdensity = levymc.targets.four_modes
        >>> modes = levymc.adapt.explore(logdensity, jax.random.key(0), jnp.zeros((1, 2)) + 3.9)
        >>> q = levymc.adapt.reference(modes)
        >>> q.sample(jax.random.key(1)).shape
        (2,)

    Departures: not in the paper.
    """
    if not modes.num_modes:
        raise ValueError(
            "`modes` must hold a mode, got none. Search with a larger budget or from other starts."
        )
    return assemble(laplace(modes), dtype or jnp.result_type(float))
