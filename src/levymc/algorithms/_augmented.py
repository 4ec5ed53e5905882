r"""Algorithms for models with latent variables: draw these first, then make the step given them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._trees import module

from ._base import Algorithm, SamplingAlgorithm, as_algorithm

DrawLatents = Callable[..., tuple[Any, Any]]  # of (key, position, minibatch, memory)


class AugmentedState(NamedTuple):
    """The state of the algorithm that makes the steps, and what the latents are begun with."""

    inner: Any
    memory: Any

    @property
    def position(self) -> Any:
        return getattr(self.inner, "position", self.inner)


def augmented(
    algorithm: Algorithm, draw_latents: DrawLatents, memory: Any = None
) -> SamplingAlgorithm[AugmentedState]:
    r"""Alternate draws of latent variables z with steps of an algorithm for x given them:

    .. math:: z ∼ p(z | x, y_Ω), \qquad x' ∼ K(x, · ; y_Ω, z) .

    By Fisher's identity, :math:`E[∇_x \log p(y, z | x) \,|\, y, x] = ∇_x \log p(y | x)`: with exact
    draws, a gradient given z is as unbiased as one that sums over all z.

    Targets: what the algorithm targets for the model without its latents.  Not valid when: the
    draws are far from p(z | x, y), as after few sweeps of a chain that mixes slowly: the gradient
    is then biased, and the target another.

    Args:
        algorithm: whose step takes a minibatch, such as `levymc.sgfla`.
        draw_latents: called as (key, position, minibatch, memory); returns the completed
            minibatch, which the algorithm is given, and the new memory.
        memory: what it is given first, a pytree of arrays, or None: for instance the last draw for
            every data point, to begin from next time.

    Returns:
        An algorithm whose step takes a minibatch: step(key, state, minibatch).

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> def which(key, mean, points, memory):  # of two components, at mean and -mean
        ...     signs = 2 * jax.random.bernoulli(key, jax.nn.sigmoid(2 * mean * points)) - 1.0
        ...     return (points, signs), memory
        >>> gradient = levymc.grad_estimator(
        ...     lambda mean: 0.0, lambda mean, both: -((both[0] - both[1] * mean) ** 2) / 2, 4
        ... )
        >>> mixture = levymc.augmented(levymc.sgld(gradient, 1e-2), which)
        >>> points = jnp.array([3.0, -3.0, 2.9, -3.1])
        >>> run = levymc.sample(
        ...     mixture,
        ...     jax.random.key(0),
        ...     jnp.ones(1),
        ...     2000,
        ...     burn_in=500,
        ...     minibatches=levymc.batches(points, 4),
        ...     progress=False,
        ... )
        >>> bool(abs(run.mean()[0] - 3) < 0.3)
        True

    References: the paper's section 5.3 draws the hidden units of its network so.
    """

    return Augmented(as_algorithm(algorithm), draw_latents, jax.tree.map(jnp.asarray, memory))


@module(static=("draw_latents",))
class Augmented(SamplingAlgorithm[AugmentedState]):
    """See `augmented`."""

    takes_minibatch = True
    algorithm: Any
    draw_latents: DrawLatents
    memory: Any

    @property
    def name(self) -> str:
        return f"augmented {self.algorithm.name}"

    @property
    def step_schedule(self) -> Callable[[Any], Any] | None:
        return self.algorithm.step_schedule

    def start_logdensity(self, position: Any) -> Array | None:
        return self.algorithm.start_logdensity(position)

    def init(self, position: Any, rng_key: Any = None) -> AugmentedState:
        return AugmentedState(self.algorithm.init(position, rng_key=rng_key), self.memory)

    def moved(self, state: AugmentedState, position: Any, rng_key: Any = None) -> AugmentedState:
        return state._replace(inner=self.algorithm.moved(state.inner, position, rng_key))

    def step(
        self, key: Array, state: AugmentedState, *minibatch: Any
    ) -> tuple[AugmentedState, Any]:
        key_latents, key_step = jax.random.split(key)
        complete, kept = self.draw_latents(key_latents, state.position, *minibatch, state.memory)
        inner, info = self.algorithm.step(key_step, state.inner, complete)
        return AugmentedState(inner, kept), info
