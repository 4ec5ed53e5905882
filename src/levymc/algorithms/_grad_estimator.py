r"""The unbiased gradient of a log posterior from a minibatch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_count

LogPrior = Callable[[Any], Any]
LogLikelihood = Callable[[Any, Any], Any]


def grad_estimator(
    logprior_fn: LogPrior, loglikelihood_fn: LogLikelihood, data_size: Any
) -> "MinibatchGradient":
    r"""Return the function of (position, minibatch) that estimates the gradient of log φ by

    .. math:: ∇\log p(x) + \frac{N}{|Ω|} \sum_{i ∈ Ω} ∇\log p(y_i | x) .

    Unbiased for minibatches Ω drawn uniformly, with replacement or without.

    Args:
        logprior_fn: log p(x).
        loglikelihood_fn: log p(y_i | x) of one data point, called as (position, data point).
        data_size: N, the number of all data points.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> estimate = levymc.grad_estimator(
        ...     lambda x: 0.0 * x, lambda x, y: -((x - y) ** 2) / 2, 10
        ... )
        >>> float(estimate(1.0, jnp.array([2.0, 4.0])))
        20.0

    References: [simsekli2017], section 3.4; the signature is BlackJAX's.
    """
    size = check_count("data_size", data_size, "It is the number of data points.")
    return MinibatchGradient(logprior_fn, loglikelihood_fn, size)


@dataclass(frozen=True)
class MinibatchGradient:
    """See `grad_estimator`."""

    logprior_fn: LogPrior
    loglikelihood_fn: LogLikelihood
    data_size: int

    def logdensity(self, position: Any, minibatch: Any) -> Array:
        """The unbiased estimate of log φ."""
        terms = jax.vmap(self.loglikelihood_fn, in_axes=(None, 0))(position, minibatch)
        return self.logprior_fn(position) + self.data_size * jnp.mean(terms, axis=0)

    def __call__(self, position: Any, minibatch: Any) -> Any:
        return jax.grad(self.logdensity)(position, minibatch)
