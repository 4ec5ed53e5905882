r"""Stochastic-gradient FLA, and stochastic-gradient Langevin dynamics as its α = 2."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array

from levymc import drifts, integrators, schedules
from levymc._checks import check_interval

from ._base import ALPHA_REMEDY, Info, SamplingAlgorithm, State, init
from ._noise import noise_of_kind
from ._unadjusted import unadjusted_step


def sgfla(
    grad_estimator: Callable[[Any, Any], Any],
    step_size: Any,
    alpha: Any,
    *,
    integrator: integrators.Integrator | None = None,
    noise: str = "independent",
) -> SamplingAlgorithm:
    r"""FLA with an estimate of the gradient, from a minibatch:

    .. math:: x' = x + η\, c_α\, \widehat{∇\log φ}(x; Ω) + η^{1/α}\, ξ .

    Targets: not φ, for α < 2 (see `fla`) nor, at a step that does not vanish, for α = 2.

    Args:
        grad_estimator: of (position, minibatch), such as `levymc.grad_estimator` returns.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        integrator: `levymc.integrators.tamed()` if not given.
        noise: "independent" or "isotropic".

    Returns:
        An algorithm whose step takes a minibatch: step(key, state, minibatch).

    References: [simsekli2017], section 3.4.
    """
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy=ALPHA_REMEDY)
    schedule = schedules.as_schedule(step_size)
    advance = integrator or integrators.tamed()
    jump = noise_of_kind(noise)

    def step(key: Array, state: State, minibatch: Any) -> tuple[State, Info]:
        drift = drifts.scaled_gradient(lambda x: grad_estimator(x, minibatch), alpha)
        return unadjusted_step(key, state, drift, alpha, schedule, advance, jump)

    return SamplingAlgorithm(init, step)


def sgld(
    grad_estimator: Callable[[Any, Any], Any],
    step_size: Any,
    *,
    integrator: integrators.Integrator | None = None,
) -> SamplingAlgorithm:
    r"""Stochastic-gradient Langevin dynamics, SG-FLA at α = 2 with Euler's step."""
    return sgfla(grad_estimator, step_size, 2.0, integrator=integrator or integrators.euler())
