r"""BlackJAX's samplers in `levymc.sample`, and ours in its loops.

Nothing is needed for most: `levymc.sample(blackjax.nuts(...), ...)` runs, and so does
`levymc.adapt.tempered` with `kernel=lambda f: blackjax.nuts(f, ...)`, `levymc.auto` with
`local=lambda f, step_size: blackjax.nuts(f, step_size, ...)`, and
`blackjax.util.run_inference_algorithm(key, levymc.mafla(...), ...)`.  Its stochastic-gradient
samplers, whose step wants a step size each time, are completed here, and ours are given the form
that its SMC takes.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import schedules
from levymc._checks import check_function
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
from levymc.drifts import LogDensity


def stochastic_gradient(
    algorithm: Algorithm, step_size: ArrayLike | schedules.Schedule
) -> SamplingAlgorithm[State]:
    """A stochastic-gradient sampler of BlackJAX, such as `blackjax.sgld`, with its step size.

    Targets: what the sampler does.

    Args:
        algorithm: whose step takes (key, position, minibatch, step size) and returns a position.
        step_size: positive, or a schedule of the step n = 1, 2, …; an input of the compiled
            program, as those of our own algorithms are.

    Raises:
        TypeError: a sampler that wants other arguments, as `blackjax.sgnht` and `blackjax.csgld`.

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
    remedy = "Give blackjax.sgld(…) or blackjax.sghmc(…), whose state is a position."
    check_function("algorithm.init", algorithm.init, remedy)
    check_function("algorithm.step", algorithm.step, remedy, 4)
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


def sampling_api(make: Callable[..., SamplingAlgorithm[Any]], **options: Any) -> Any:
    """One of our algorithms as an object of the kind that BlackJAX's own are.

    With its `init` and `build_kernel` it goes wherever BlackJAX takes `blackjax.hmc`: into tempered
    SMC, for instance.  Nothing of this is needed for its loops, which run our algorithms as they
    are.

    Targets: what the algorithm does.  Not valid when: SMC is to be exact and the algorithm is not,
    as `levymc.fla` and `levymc.ula`.

    Args:
        make: of a log density and one number, `step_size` or `scale`, makes the algorithm:
            `levymc.mafla`, `levymc.levy_walk`, `levymc.fla`, `levymc.flmc` or `levymc.ula`.
        options: all else that it takes, such as `alpha`.  They are part of the state, in which the
            drift is kept; what the kernel is given at each step is the number alone.

    Returns:
        A `blackjax.GenerateSamplingAPI`: called with (logdensity_fn, step_size) it gives a
        `blackjax.SamplingAlgorithm`; `init(position, logdensity_fn)` a state; `build_kernel()` a
        function of (rng_key, state, logdensity_fn, step_size).

    Raises:
        TypeError: `make` is no such function.  ImportError: there is no BlackJAX.

    Examples:
        >>> import blackjax, blackjax.smc.resampling, jax, jax.numpy as jnp, levymc
        >>> walk = levymc.interop.blackjax.sampling_api(levymc.levy_walk, alpha=1.2)
        >>> smc = blackjax.adaptive_tempered_smc(
        ...     lambda x: -x * x / 200,  # the prior, N(0, 10²)
        ...     lambda x: jnp.logaddexp(-((x - 4) ** 2), -((x + 4) ** 2)),
        ...     walk.build_kernel(),
        ...     walk.init,
        ...     {"scale": jnp.array([2.0])},
        ...     blackjax.smc.resampling.systematic,
        ...     target_ess=0.5,
        ...     num_mcmc_steps=5,
        ... )
        >>> state = smc.init(10 * jax.random.normal(jax.random.key(0), (500,)))
        >>> for key in jax.random.split(jax.random.key(1), 20):
        ...     if state.tempering_param < 1:
        ...         state, _ = jax.jit(smc.step)(key, state)
        >>> bool(state.tempering_param == 1), bool(0.3 < (state.particles > 0).mean() < 0.7)
        (True, True)
    """
    library, number = _blackjax(), _number_of(make)

    def algorithm(logdensity_fn: LogDensity, size: Any) -> SamplingAlgorithm[Any]:
        return make(logdensity_fn, size, **options)

    def init(position: Any, logdensity_fn: LogDensity, rng_key: Any = None) -> Any:
        return algorithm(logdensity_fn, 1.0).init(position, rng_key)  # of no consequence there

    def build_kernel() -> Callable[..., tuple[Any, Any]]:
        def kernel(
            rng_key: Array, state: Any, logdensity_fn: LogDensity, *size: Any, **named: Any
        ) -> tuple[Any, Any]:
            given = _one_number(number, size, named)
            return algorithm(logdensity_fn, given).step(rng_key, state)

        return kernel

    def differentiable(logdensity_fn: LogDensity, *size: Any, **named: Any) -> Any:
        made = algorithm(logdensity_fn, _one_number(number, size, named))
        return library.SamplingAlgorithm(made.init, made.step)

    return library.GenerateSamplingAPI(differentiable, init, build_kernel)


def _number_of(make: Any) -> str:
    """What a maker of algorithms calls its number: the second of its arguments."""
    remedy = "Give levymc.mafla, levymc.levy_walk, levymc.fla, levymc.flmc or levymc.ula."
    check_function("make", make, remedy, 2)
    first, *others = inspect.signature(make).parameters
    if first != "logdensity_fn":
        raise TypeError(f"`make` must take a `logdensity_fn`, got {make!r:.100}. {remedy}")
    return others[0]


def _one_number(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The one number that a kernel is given, by its place or its name."""
    if len(given) == 1 and not named:
        return given[0]
    if set(named) == {name} and not given:
        return named[name]
    raise TypeError(
        f"`{name}` must be all that a kernel is given, got {len(given)} numbers by place and "
        f"{sorted(named)}. Give the rest, on which states depend, to sampling_api(…)."
    )


def _blackjax() -> Any:
    try:
        import blackjax
    except ImportError as error:
        raise ImportError("`sampling_api` needs BlackJAX: pip install 'levymc[auto]'.") from error
    return blackjax
