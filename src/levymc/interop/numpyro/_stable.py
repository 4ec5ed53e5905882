r"""The symmetric α-stable law as a NumPyro distribution."""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import promote_shapes, validate_sample

from levymc import stable


class SymmetricStable(Distribution):
    r"""The law of loc + scale·X, where X is symmetric α-stable:

    .. math:: E\, e^{iω(Y - μ)} = e^{-|σω|^α} .

    α = 2 is the normal law of variance 2 scale², α = 1 the Cauchy law of that scale.  `log_prob`
    is differentiable in everything, α among it, so that α may be unknown; at α = 2 exactly its
    derivative in α is the limit from below.  Draws are differentiable likewise.

    Not valid when: α is outside [0.5, 2], where the law is not tabulated.

    Args:
        alpha: characteristic exponent in [0.5, 2]; smaller is heavier-tailed.
        loc: the median μ.
        scale: σ > 0.

    Examples:
        >>> import jax, levymc
        >>> law = levymc.interop.numpyro.SymmetricStable(1.0, 2.0, 3.0)  # Cauchy
        >>> round(float(law.icdf(0.75)), 4), law.sample(jax.random.key(0), (5,)).shape
        (5.0, (5,))

    References: [zolotarev1986].
    """

    arg_constraints = {  # noqa: RUF012 (as NumPyro wants it)
        "alpha": constraints.interval(0.5, 2.0),
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    reparametrized_params = ["alpha", "loc", "scale"]  # noqa: RUF012

    def __init__(
        self, alpha: Any, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool | None = None
    ) -> None:
        self.alpha, self.loc, self.scale = promote_shapes(alpha, loc, scale)
        shapes = (jnp.shape(part) for part in (alpha, loc, scale))
        super().__init__(lax.broadcast_shapes(*shapes), validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        dtype = jnp.result_type(float, self.alpha, self.loc, self.scale)
        shape = (*sample_shape, *self.batch_shape)
        draws = stable.sample(key, self.alpha, shape, scale=self.scale, dtype=dtype)
        return self.loc + draws

    @validate_sample
    def log_prob(self, value: Any) -> Array:
        return stable.logpdf(value - self.loc, self.alpha, self.scale)

    def cdf(self, value: Any) -> Array:
        return stable.cdf(value - self.loc, self.alpha, self.scale)

    def icdf(self, q: Any) -> Array:
        return self.loc + stable.ppf(q, self.alpha, self.scale)

    @property
    def mean(self) -> Array:
        """NaN for α ≤ 1, where there is none."""
        there = jnp.broadcast_to(self.loc, self.batch_shape)
        return jnp.where(jnp.asarray(self.alpha) > 1, there, jnp.nan)

    @property
    def variance(self) -> Array:
        """Infinite for α < 2."""
        normal = jnp.broadcast_to(2 * jnp.square(self.scale), self.batch_shape)
        return jnp.where(jnp.asarray(self.alpha) == 2, normal, jnp.inf)
