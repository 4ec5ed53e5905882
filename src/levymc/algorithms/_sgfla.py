r"""Stochastic-gradient FLA, and stochastic-gradient Langevin dynamics as its α = 2."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc._checks import check_alpha, check_function, check_like
from levymc._trees import module

from ._base import (
    Info,
    SamplingAlgorithm,
    State,
    check_minibatch,
    check_start_logdensity,
    choose,
    start_at,
)
from ._fla import Proposal, Stepping, propose, stepping, unadjusted_info
from ._grad_estimator import MinibatchGradient
from ._spread import estimated

GradEstimator = Callable[[Any, Any], Any]


def sgfla(
    grad_estimator: GradEstimator,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
    curvature: Callable[[Any, Any], Any] | None = None,
) -> SamplingAlgorithm[State]:
    r"""FLA with an estimate of the gradient, from a minibatch:

    .. math:: x' = x + η m κ\, c_α\, \widehat{∇\log φ}(x; Ω) + (η m)^{1/α}\, ξ, \qquad
       κ = \min\Bigl(1, \frac{1}{η m\, c_α S(x; Ω)}\Bigr),

    with m = 1 unless a `preconditioner` is given, κ = 1 unless a `curvature` S is, and the drift's
    step tamed unless another integrator is.

    Targets: not φ, for α < 2 (see `fla`) nor, at a step that does not vanish, for α = 2.

    - A preconditioner m that does not depend on the position lets coordinate d run m_d times as
      fast.  The generator is a sum over coordinates, Σ_d m_d L_d.  With the exact drift each L_d
      leaves φ invariant, and so does every such sum: for α = 2, as the steps vanish, the target
      stays φ.  The c_α ∇log φ of α < 2 only has an invariant law for the sum as a whole, which
      may change with m, unless the coordinates are independent.
    - A curvature shortens the drift's step, not the noise, where Euler's step would overshoot: for
      η m c_α S > 1, on a quadratic along the coordinate, κ leads to its minimum.  Without it, one
      long jump in a product of coordinates (a row of a factorisation) makes the curvature of its
      partners exceed 2/(η c_α), and the chain explodes.  As η → 0, κ = 1 on every bounded set and
      the law is that without it; at a finite step it is another, the pull back being too weak far
      out.

    Args:
        grad_estimator: of (position, minibatch), such as `levymc.grad_estimator` returns.  Of that
            one the log prior is looked at where a step leads, and the minibatch's likelihood where
            the next begins: a step is not made, and counted as divergent, where they are not
            finite.  A function that gives gradients alone cannot tell the support.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        integrator: `levymc.integrators.tamed()` if not given; `euler()` for the step as written.
        noise: `levymc.noises.independent()` if not given; `isotropic()` or `truncated(bound)`.
        preconditioner: m > 0, a number or a pytree that broadcasts to the position; or a function
            of the position alone that gives either, with the correction c_α ∂_d m_d, as for `fla`.
        curvature: S, a function of (position, minibatch) that returns numbers ≥ 0 that broadcast
            to the position: a bound on -∂² log φ, for instance its row's trace.

    Returns:
        An algorithm whose step takes a minibatch: step(key, state, minibatch).

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> steep = levymc.sgfla(
        ...     lambda x, batch: -100 * x,
        ...     0.1,
        ...     1.5,
        ...     integrator=levymc.integrators.euler(),
        ...     curvature=lambda x, batch: 100.0,
        ... )
        >>> state, info = steep.step(jax.random.key(0), steep.init(1e6), None)
        >>> bool(abs(state.position) < 100), round(float(info.taming), 3)
        (True, 0.915)

        As RMSprop does, long steps where gradients are small; but of the position, from a part of
        the data that stays the same, and corrected, so that the target stays what it was:

        >>> data = jnp.array([0.3, -1.2, 0.8, 2.0])
        >>> estimate = levymc.grad_estimator(
        ...     lambda x: -x * x / 2, lambda x, y: -jnp.log1p((x - y) ** 2), 4
        ... )
        >>> rms = levymc.sgld(
        ...     estimate,
        ...     0.01,
        ...     preconditioner=lambda x: 1 / (1 + jnp.sqrt(1e-2 + estimate(x, data[:2]) ** 2)),
        ... )
        >>> state, info = rms.step(jax.random.key(0), rms.init(0.5), data[2:])
        >>> bool(info.is_divergent)
        False

    References: [simsekli2017], section 3.4.  Departures: the paper has neither option.
    """
    check_alpha(alpha)
    remedy = "Its arguments are (position, minibatch), as of what levymc.grad_estimator returns."
    check_function("grad_estimator", grad_estimator, remedy, 2)
    if curvature is not None:
        remedy = "Its arguments are (position, minibatch), as of a model's `row_curvature`."
        check_function("curvature", curvature, remedy, 2)
    how = stepping(step_size, alpha, integrator, noise, preconditioner)
    return SgFla(grad_estimator, curvature, drifts.gradient_coefficients(alpha), how)


@module(static=("grad_estimator", "curvature"))
class SgFla(SamplingAlgorithm[State]):
    """See `sgfla`."""

    takes_minibatch = True
    is_exact = False
    grad_estimator: GradEstimator
    curvature: Any
    coefficients: Any  # c_α; None for the gradient itself
    how: Stepping

    @property
    def name(self) -> str:
        return "sgld" if self.coefficients is None else "sgfla"

    @property
    def step_schedule(self) -> schedules.Schedule:
        return self.how.schedule

    def init(self, position: Any, rng_key: Any = None) -> State:
        begun = start_at(position)
        logprior = self.start_logdensity(begun.position)
        if logprior is not None:
            check_start_logdensity("logprior_fn", logprior, begun.position)
        return begun

    def start_logdensity(self, position: Any) -> Array | None:
        if not isinstance(self.grad_estimator, MinibatchGradient):
            return None
        return jnp.asarray(self.grad_estimator.logprior_fn(position))

    def step(self, key: Array, state: State, *minibatch: Any) -> tuple[State, Info]:
        check_minibatch(self, minibatch)
        number, curvature = schedules.following(state.step), None
        if self.curvature is not None:
            curvature = functools.partial(self._curvature_at, minibatch)
        drift = drifts.as_drift(functools.partial(self._drift_at, minibatch))
        proposal = propose(key, state.position, number, drift, self.how, None, curvature)
        is_outside = self._is_outside(state.position, proposal, minibatch)
        is_made = proposal.is_valid if is_outside is None else proposal.is_valid & ~is_outside
        position = choose(is_made, proposal.position, state.position)
        return State(position, number), unadjusted_info(proposal, ~is_made, is_outside)

    def _drift_at(self, minibatch: Any, position: Any) -> Any:
        slopes = estimated(self.grad_estimator, position, *minibatch)
        check_like("grad_estimator", slopes, position)
        return drifts.scaled_gradient(self.coefficients, slopes, position)

    def _curvature_at(self, minibatch: Any, position: Any) -> Any:
        return estimated(self.curvature, position, *minibatch)

    def _is_outside(self, position: Any, proposal: Proposal, minibatch: Any) -> Array | None:
        """Whether the prior is zero where the step leads, or the minibatch impossible before it.

        Both as far as the estimator tells; the minibatch's likelihood is known from the gradient.
        """
        estimator = self.grad_estimator
        if not isinstance(estimator, MinibatchGradient):
            return None
        here = estimated(estimator.logdensity, position, *minibatch)
        there = jnp.asarray(estimator.logprior_fn(proposal.position))
        return ~jnp.isfinite(here) | (proposal.is_valid & ~jnp.isfinite(there))


def sgld(
    grad_estimator: GradEstimator,
    step_size: ArrayLike | schedules.Schedule,
    *,
    integrator: integrators.Integrator | None = None,
    preconditioner: Any = None,
    curvature: Callable[[Any, Any], Any] | None = None,
) -> SamplingAlgorithm[State]:
    r"""Stochastic-gradient Langevin dynamics, SG-FLA at α = 2 with Euler's step."""
    algorithm = sgfla(
        grad_estimator,
        step_size,
        2.0,
        integrator=integrators.euler() if integrator is None else integrator,
        preconditioner=preconditioner,
        curvature=curvature,
    )
    return dataclasses.replace(algorithm, coefficients=None)  # type: ignore[type-var]
