"""Laws that problems are made of: mixtures of Gaussians and Student laws, with exact draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import stats
from scipy.sparse import csgraph

from ._problem import Coordinate, Group, Kind, Marginal, Problem, Truth


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ w_k t_ν(μ_k, L_k L_kᵀ), normalised; Gaussian where ν is infinite.

    weights: of shape (K,); means (K, D); factors (K, D, D), lower triangular or any root of the
        scatter.
    """

    weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    degrees: float = math.inf

    @property
    def dimension(self) -> int:
        return self.means.shape[1]

    @cached_property
    def _inverses(self) -> np.ndarray:
        return np.linalg.inv(self.factors)

    @cached_property
    def _are_spheres(self) -> bool:
        return bool(np.all(self.factors == self.factors[:, :1, :1] * np.eye(self.dimension)))

    @cached_property
    def _heights(self) -> np.ndarray:
        """Log of the weight times the density at the centre."""
        volume = np.linalg.slogdet(self.factors)[1]
        d, nu = self.dimension, self.degrees
        if math.isinf(nu):
            constant = -d / 2 * math.log(2 * math.pi)
        else:
            constant = math.lgamma((nu + d) / 2) - math.lgamma(nu / 2)
            constant -= d / 2 * math.log(nu * math.pi)
        return np.log(self.weights) - volume + constant

    def _logs(self, position: Array) -> Array:
        """Log of each component's part of the density."""
        x = position
        offsets = x - jnp.asarray(self.means, x.dtype)
        if self._are_spheres:  # the matrices would cost more than all the rest
            whitened = offsets * jnp.asarray(self._inverses[:, 0, :1], x.dtype)
        else:
            whitened = jnp.einsum("kij,kj->ki", jnp.asarray(self._inverses, x.dtype), offsets)
        squares = jnp.sum(whitened**2, axis=-1)
        nu = self.degrees
        if math.isinf(nu):
            tails = -squares / 2
        else:
            tails = -(nu + self.dimension) / 2 * jnp.log1p(squares / nu)
        return jnp.asarray(self._heights, x.dtype) + tails

    def logdensity(self, position: Array) -> Array:
        return jax.scipy.special.logsumexp(self._logs(position))

    def component_of(self, positions: np.ndarray) -> np.ndarray:
        """The component of the largest part; it is the mode where they hardly overlap."""
        return self._components(jnp.asarray(positions))[:, None]

    @cached_property
    def _components(self) -> Callable[[Array], np.ndarray]:
        largest = jax.jit(
            lambda xs: jax.lax.map(lambda x: jnp.argmax(self._logs(x)), xs, batch_size=1024)
        )
        return lambda xs: np.asarray(largest(xs))

    def joined(self, dip: float) -> np.ndarray:
        """Of each component the number of its top, if Gaussian spheres of one size.

        Tops are found by the mean shift from the centres; two are one where the log density on the
        line between them is nowhere lower than both by more than `dip`.
        """
        with jax.enable_x64(True):
            centres = jnp.asarray(self.means)

            @jax.jit
            def shifted(x: Array) -> Array:
                weights = jax.vmap(lambda one: jax.nn.softmax(self._logs(one)))
                return jax.lax.fori_loop(0, 3000, lambda _, x: weights(x) @ centres, x)

            tops = np.asarray(shifted(centres))
            first, second = np.triu_indices(len(tops), 1)
            shares = np.linspace(0, 1, 65)[:, None, None]
            lines = jnp.asarray(tops[first] * (1 - shares) + tops[second] * shares)
            heights = np.asarray(jax.jit(jax.vmap(jax.vmap(self.logdensity)))(lines))
        is_one = np.minimum(heights[0], heights[-1]) - heights.min(axis=0) <= dip
        links = np.zeros((len(tops), len(tops)), bool)
        links[first[is_one], second[is_one]] = True
        return csgraph.connected_components(links, directed=False)[1]

    def sample(self, key: Array, count: int) -> Array:
        key_component, key_noise = jax.random.split(key)
        component = jax.random.choice(
            key_component, len(self.weights), (count,), p=jnp.asarray(self.weights)
        )
        return self.near(key_noise, component, 1.0)

    def near(self, key: Array, component: Array, share: float) -> Array:
        """Draws of the components, their distance from the centre times `share`."""
        key_normal, key_scale = jax.random.split(key)
        noise = jax.random.normal(key_normal, (len(component), self.dimension))
        if not math.isinf(self.degrees):
            half = self.degrees / 2
            noise /= jnp.sqrt(jax.random.gamma(key_scale, half, (len(component), 1)) / half)
        if self._are_spheres:
            moved = jnp.asarray(self.factors[:, 0, :1])[component] * noise
        else:  # not factors[component]: that would be a matrix for each draw
            moved = jnp.zeros_like(noise)
            for number, factor in enumerate(self.factors):
                is_own = (component == number)[:, None]
                moved = jnp.where(is_own, noise @ jnp.asarray(factor).T, moved)
        return jnp.asarray(self.means)[component] + share * moved

    def cdf(self, direction: np.ndarray) -> Callable[[Any], Any]:
        """The distribution function of the position's projection on a direction."""
        centres = self.means @ direction
        scales = np.linalg.norm(np.einsum("kij,i->kj", self.factors, direction), axis=1)
        law = stats.norm if math.isinf(self.degrees) else stats.t(self.degrees)
        return lambda x: np.sum(
            self.weights * law.cdf((np.asarray(x)[..., None] - centres) / scales), axis=-1
        )

    def extents(self, start: int) -> np.ndarray:
        """A fifth more than the root mean square distance from a mean, for each coordinate."""
        variances = np.sum(self.factors**2, axis=2)
        squares = (self.means - self.means[start]) ** 2 + variances
        return 1.2 * np.sqrt(self.weights @ squares)

    def marginals(self, indices: Sequence[int]) -> tuple[Marginal, ...]:
        """Those of coordinates."""
        scale = float(np.max(np.abs(self.means)) + np.max(np.abs(self.factors)))
        return tuple(
            Marginal.of_cdf(
                f"x{index}", Coordinate(index), self.cdf(np.eye(self.dimension)[index]), scale
            )
            for index in indices
        )


def isotropic(weights: Any, means: Any, scales: Any, degrees: float = math.inf) -> Mixture:
    """A mixture whose components are spheres."""
    centres = np.asarray(means, float)
    count, dimension = centres.shape
    sizes = np.broadcast_to(np.asarray(scales, float), (count,))
    shares = np.asarray(weights, float)
    return Mixture(
        shares / shares.sum(), centres, sizes[:, None, None] * np.eye(dimension), degrees
    )


def ellipsoids(
    rng: np.random.Generator, weights: Any, means: Any, log_range: float, degrees: float = math.inf
) -> Mixture:
    """A mixture whose components have random axes, of lengths e^±log_range/2."""
    centres = np.asarray(means, float)
    count, dimension = centres.shape
    lengths = np.exp(log_range * (rng.random((count, 1, dimension)) - 0.5))
    factors = np.stack([rotation(rng, dimension) for _ in range(count)]) * lengths
    return Mixture(np.asarray(weights, float), centres, factors, degrees)


def rotation(rng: np.random.Generator, dimension: int) -> np.ndarray:
    """A rotation of uniform law."""
    found = stats.ortho_group.rvs(dimension, random_state=rng) if dimension > 1 else np.ones((1, 1))
    return np.asarray(found)


def mixture_problem(
    law: Mixture,
    *,
    name: str,
    group: Group,
    kind: Kind,
    about: str,
    start: int = 0,
    extent: float | None = None,
    indices: Sequence[int] = (0,),
) -> Problem:
    """The problem of a mixture: chains start in the middle of component `start`."""
    has_modes = len(law.weights) > 1
    return Problem(
        name=name,
        group=group,
        kind=kind,
        dimension=law.dimension,
        about=about,
        logdensity_fn=law.logdensity,
        starts=lambda key, count: law.near(key, jnp.full(count, start), 0.5),
        extent=law.extents(start) if extent is None else extent,
        make_truth=lambda: Truth(
            "formula", (law.weights,) if has_modes else (), law.marginals(indices), 0.0
        ),
        mode_of=law.component_of if has_modes else None,
        sample=law.sample,
        tail_index=law.degrees,
    )
