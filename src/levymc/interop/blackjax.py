r"""BlackJAX's samplers in `levymc.sample`, and ours in its loops.

Nothing is needed for most: `levymc.sample(blackjax.nuts(...), ...)` runs, and
`blackjax.util.run_inference_algorithm(key, levymc.mafla(...), ...)` does.  Only its
stochastic-gradient samplers, whose step wants a step size each time, are completed here.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import schedules
from levymc._trees import module
from levymc.algorithms import (
    Algorithm,
    Info,
    SamplingAlgorithm,
    State,
    keep_finite,
    name_of_other,
    start_at,
)


def stochastic_gradient(
    algorithm: Algorithm, step_size: ArrayLike | schedules.Schedule
) -> SamplingAlgorithm[State]:
    """A stochastic-gradient sampler of BlackJAX, such as `blackjax.sgld`, with its step size.

    Targets: what the sampler does.

    Args:
        algorithm: whose step takes (key, position, minibatch, step size) and returns a position.
        step_size: positive, or a schedule of the step n = 1, 2, …; an input of the compiled
            program, as those of our own algorithms are.

    Examples:
        >>> import blackjax, jax, jax.numpy as jnp, levymc
        >>> gradient = levymc.grad_estimator(
        ...     lambda x: -x * x / 2, lambda x, y: -((x - y) ** 2) / 2, 100
        ... )
        >>> sgld = levymc.interop.blackjax.stochastic_gradient(blackjax.sgld(gradient), 1e-3)
        >>> run = levymc.sample(
        ...     sgld,
        ...     jax.random.key(0),
        ...     jnp.zeros(2),
        ...     50,
        ...     minibatches=levymc.batches(jnp.ones(100), 10),
        ...     progress=False,
        ... )
        >>> run.positions.shape
        (2, 50)
    """
    return StochasticGradient(algorithm, schedules.as_schedule(step_size))


@module(static=("algorithm",))
class StochasticGradient(SamplingAlgorithm[State]):
    """See `stochastic_gradient`."""

    takes_minibatch = True
    algorithm: Any
    schedule: Any

    @property
    def name(self) -> str:
        return name_of_other(self.algorithm)

    @property
    def step_schedule(self) -> schedules.Schedule:
        return self.schedule

    def init(self, position: Any, rng_key: Any = None) -> State:
        return start_at(self.algorithm.init(position))

    def step(self, key: Array, state: State, *minibatch: Any) -> tuple[State, Info]:
        number = schedules.following(state.step)
        eta = schedules.at(self.schedule, number, jnp.result_type(*jax.tree.leaves(state.position)))
        proposed = self.algorithm.step(key, state.position, *minibatch, eta)
        position, is_divergent = keep_finite(proposed, state.position)
        one, nothing = jnp.ones_like(eta), jnp.zeros_like(eta)
        return State(position, number), Info(eta, one, is_divergent, nothing, nothing)
