r"""SG-FLA and SGLD as Optax transformations, for networks that are trained by Optax anyway.

Each is one transformation with its own key, count of steps and step size, which Optax's parts
cannot be put together to: after `optax.add_noise` a learning rate η would scale the noise by η,
not by η^{1/α}.  The step is that of `levymc.sgfla`.

`levymc.optax` is this module; Optax itself is imported when a transformation is made.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import algorithms, integrators, noises, schedules
from levymc._checks import (
    check_key,
    check_one_number,
    check_position,
    check_positive,
    refuse_function,
)
from levymc.algorithms import SamplingAlgorithm, State

_OUR_SCHEDULES = (schedules.Constant, schedules.Polynomial, schedules.Cyclical)


class SgFlaState(NamedTuple):
    """The key of all noise, the steps made, and those of them that were not finite and left out."""

    key: Array
    count: Array  # type: ignore[assignment]  # not the method of tuples; its name in Optax
    num_divergent: Array


def sgfla(
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    key: Any,
    num_data: ArrayLike = 1,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
) -> Any:
    r"""Stochastic-gradient FLA as an Optax transformation: for the gradient g of a loss,

    .. math:: \text{update} = -η m\, c_α N g + (η m)^{1/α}\, ξ, \qquad ξ \sim SαS(1),

    for `optax.apply_updates`, with m = 1 unless a `preconditioner` is given and the first term
    tamed unless another integrator is.

    N = `num_data` times the loss has to be -log φ, the negative log posterior, of which a minibatch
    may give an unbiased estimate.  For the usual loss, a *mean* over the minibatch, N is the number
    of all data; a penalty in it is then the negative log prior divided by N.  For a loss that is
    the negative log posterior itself N is 1, as if nothing is given; a mean without `num_data`
    would be sampled at N times the temperature.  As an optimiser this is SGD with the learning rate
    η N.

    Put it last.  What stands before it in an `optax.chain` changes the drift and not the noise:
    `optax.add_decayed_weights(1 / (N * variance))` is a normal prior of that variance, but clipping
    and the scaling of Adam change the target.  What follows it would change the noise, too.

    Targets: not φ, for α < 2 nor, at a step that does not vanish, for α = 2: see `levymc.sgfla`.
    Not valid when: the gradients are so noisy that their variance is not small beside 2/η.

    Args:
        step_size: η > 0; or a schedule, of `levymc.schedules`, asked at 1, 2, … as everywhere in
            levymc, or any other function, asked at 0, 1, … as everywhere in Optax.
        alpha: in (1, 2], one number or a pytree like the parameters; may be traced.
        key: of all noise.  For several transformations in one `optax.partition` give several; for
            several chains make the state of each by a transformation with its own key.
        num_data: N > 0, which makes the loss a negative log posterior.
        integrator: `levymc.integrators.tamed()` if not given, or `euler()`; not `split()`, which
            would need gradients between one step and the next.
        noise: `levymc.noises.independent()` if not given; `isotropic()` or `truncated(bound)`.
        preconditioner: m > 0, a number or a pytree that broadcasts to the parameters.

    Returns:
        An `optax.GradientTransformationExtraArgs`, whose `update` does not need the parameters.
        In its state is `num_divergent`, how many steps were not made as they were not finite or the
        step size not positive.  With `optax.inject_hyperparams`, where everything that can be
        called is a schedule, name the `static_args` "integrator" and "noise" if they are given.

    Raises:
        ValueError, TypeError: an argument outside its range.  ImportError: there is no Optax.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, optax
        >>> data = 3 + jax.random.normal(jax.random.key(0), (1000,))
        >>> transformation = optax.chain(
        ...     optax.add_decayed_weights(1 / 1000),  # the prior is N(0, 1)
        ...     levymc.optax.sgfla(1e-4, 1.7, key=jax.random.key(1), num_data=1000),
        ... )
        >>> def step(carry, batch):
        ...     mean, state = carry
        ...     slope = jax.grad(lambda m: jnp.mean((batch - m) ** 2) / 2)(mean)
        ...     update, state = transformation.update(slope, state, mean)
        ...     mean = optax.apply_updates(mean, update)
        ...     return (mean, state), mean
        >>> start = jnp.asarray(0.0)
        >>> batches = jax.random.choice(jax.random.key(2), data, (2000, 50))
        >>> _, draws = jax.lax.scan(step, (start, transformation.init(start)), batches)
        >>> bool(abs(jnp.median(draws[500:]) - jnp.mean(data)) < 0.1)
        True

    References: [simsekli2017], section 3.4.
    """
    _check_options(integrator, preconditioner)
    algorithm = algorithms.sgfla(
        _drift_of_loss(num_data),
        _counted_from_one(step_size),
        alpha,
        integrator=integrator,
        noise=noise,
        preconditioner=preconditioner,
    )
    return _transformation(algorithm, key)


def sgld(
    step_size: ArrayLike | schedules.Schedule,
    *,
    key: Any,
    num_data: ArrayLike = 1,
    integrator: integrators.Integrator | None = None,
    preconditioner: Any = None,
) -> Any:
    r"""Stochastic-gradient Langevin dynamics as an Optax transformation:

    .. math:: \text{update} = -η m\, N g + \sqrt{2 η m}\, ξ, \qquad ξ \sim N(0, 1) .

    `sgfla` at α = 2 with Euler's step.

    Targets: φ up to O(η), and what the noise of the gradients adds.

    Args, Returns, Raises: as for `sgfla`; the integrator is `euler()` if not given.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, optax
        >>> langevin = levymc.optax.sgld(1e-3, key=jax.random.key(0))
        >>> weights = {"w": jnp.ones(3), "b": jnp.zeros(())}
        >>> update, state = langevin.update(weights, langevin.init(weights))
        >>> int(state.count), optax.apply_updates(weights, update)["w"].shape
        (1, (3,))
    """
    _check_options(integrator, preconditioner)
    algorithm = algorithms.sgld(
        _drift_of_loss(num_data),
        _counted_from_one(step_size),
        integrator=integrator,
        preconditioner=preconditioner,
    )
    return _transformation(algorithm, key)


def _transformation(algorithm: SamplingAlgorithm[State], key: Any) -> Any:
    """A step of the algorithm from zero, with the loss's gradient as its minibatch."""
    first_key = check_key(key)

    def init(params: Any) -> SgFlaState:
        check_position("params", params)
        return SgFlaState(first_key, jnp.int32(0), jnp.int32(0))

    def update(
        updates: Any, state: SgFlaState, params: Any = None, **extra_args: Any
    ) -> tuple[Any, SgFlaState]:
        del params, extra_args
        # From zero, as drift and noise are known without the parameters: adding the step to them
        # and taking them off again would cost digits of it.
        origin = State(jax.tree.map(jnp.zeros_like, updates), state.count)
        key_noise = jax.random.fold_in(state.key, state.count)
        moved, info = algorithm.step(key_noise, origin, updates)
        num_divergent = state.num_divergent + info.is_divergent
        return moved.position, SgFlaState(state.key, moved.step, num_divergent)

    return _optax().GradientTransformationExtraArgs(init, update)


def _drift_of_loss(num_data: Any) -> Any:
    """∇log φ, of (position, gradient of the loss): -N times the latter."""
    remedy = "It is the number of data, where the loss is a mean over them."
    check_one_number("num_data", num_data, remedy)
    check_positive("num_data", num_data, remedy)

    def slopes(position: Any, gradient: Any) -> Any:
        return jax.tree.map(lambda g: -jnp.asarray(num_data, g.dtype) * g, gradient)

    return slopes


def _counted_from_one(step_size: Any) -> Any:
    """A step size as levymc asks for it; other people's schedules count from zero."""
    if not callable(step_size) or isinstance(step_size, _OUR_SCHEDULES):
        return step_size
    return lambda n: step_size(n - 1)


def _check_options(integrator: Any, preconditioner: Any) -> None:
    """Refuse what may ask for the gradient anywhere but where the step begins, or where that is."""
    remedy = "Updates are made without the parameters; for local geometry, run levymc.sgfla."
    refuse_function("preconditioner", preconditioner, remedy)
    if integrator is None or isinstance(integrator, integrators.Euler | integrators.Tamed):
        return
    raise TypeError(
        f"`integrator` must be euler() or tamed(cap) of levymc.integrators, got {integrator!r}. "
        "Optax gives one gradient a step; for others, run levymc.sgfla."
    )


def _optax() -> Any:
    try:
        import optax
    except ImportError as error:
        raise ImportError("`levymc.optax` needs Optax: pip install 'levymc[optax]'.") from error
    return optax
