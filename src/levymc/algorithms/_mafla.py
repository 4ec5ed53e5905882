r"""The Metropolis-adjusted fractional Langevin algorithm: exact for every step."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc._checks import check_alpha, refuse_function
from levymc._trees import module
from levymc.drifts import Changed, LogDensity

from ._base import Info, LangevinState, SamplingAlgorithm, check_minibatch
from ._dense import dense
from ._fla import Langevin, Stepping, in_own_time, propose, stepping
from ._metropolis import accept


def mafla(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.8,
    *,
    drift: Any = None,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
    covariance: Any = None,
) -> SamplingAlgorithm[Any]:
    r"""Metropolis–Hastings with FLA's step as the proposal,

    .. math:: y = x + m(x) + η^{1/α}\, ξ, \qquad
       a = \min\Bigl(1, \frac{φ(y)\, q(x - y - m(y))}{φ(x)\, q(y - x - m(x))}\Bigr),

    where m is the integrator's move over η and q the density of η^{1/α} ξ, a product of SαS
    densities, one per coordinate, unless the noise is isotropic.  Density and drift at x are kept
    from the step before, so that a step costs one of each, at y.

    Targets: φ exactly, for every step size, α, drift and integrator.  Where the drift is NaN and φ
    is not, as the gradient of a `jnp.where` may be, it is taken as zero.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n; tune to accept about a half at α = 1.8, a
            fifth at 1.2.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.  1.8 in general;
            1.2 to 1.5 where modes are far apart and there are at most ten coordinates.
        drift: a `levymc.drifts.Drift`, or a function that gives the drift's values;
            `levymc.drifts.leading_term(logdensity_fn, alpha)` if not given.
        integrator: `levymc.integrators.tamed()` if not given.
        noise: `levymc.noises.independent()` if not given; or `isotropic()`, one jump for all
            coordinates in a uniform direction, for one α, whose density takes much longer: see
            `levymc.stable.isotropic_logpdf`, and the ledger for where it helps.
        preconditioner: m > 0, a number or a pytree that broadcasts to the position: coordinate d
            steps η m_d, in drift and noise.
        covariance: a symmetric positive definite matrix L Lᵀ, coordinates in the order of
            `jax.flatten_util.ravel_pytree`: it is y = L⁻¹x that makes the steps, so that those of
            x have its shape, and step size, α and preconditioner are those of y.  Roughly the
            target's covariance makes strongly correlated coordinates cheap.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.mafla(lambda x: -x * x / 2, 0.5)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> 0 <= float(info.acceptance_rate) <= 1
        True

    Departures: the paper has no adjusted algorithm.
    """
    check_alpha(alpha)
    refuse_function("preconditioner", preconditioner, "For local geometry use fla, flmc or sgfla.")
    used = drifts.leading_term(logdensity_fn, alpha) if drift is None else drifts.as_drift(drift)
    if not (noise is None or isinstance(noise, noises.Independent | noises.Isotropic)):
        raise TypeError(
            f"`noise` must be of a law with a known density, got {noise!r}. Give "
            "levymc.noises.independent() or isotropic(); others serve unadjusted algorithms."
        )
    how = stepping(step_size, alpha, integrator, noise, preconditioner)
    algorithm = Mafla(logdensity_fn, used, how)
    if covariance is None:
        return algorithm
    if drift is not None:
        raise ValueError(
            f"`drift` must not be given with a covariance, got {drift!r:.100}. Leave it out: the "
            "leading term of the transformed target is made."
        )
    return dense(algorithm, covariance)


@module()
class _Defined(Changed):
    """A drift with zeros where it is NaN.

    It only proposes, from here and back by the same rule; with NaN all points there were refused,
    and φ cut without a word.
    """

    drift: Any

    def change(self, drift: drifts.Evaluation, position: Any) -> drifts.Evaluation:
        return _defined(drift)


def _defined(drift: drifts.Evaluation) -> drifts.Evaluation:
    if isinstance(drift, drifts.Estimated):
        return drift._replace(numbers=_defined_logs(drift.numbers))
    if isinstance(drift, drifts.SignedLog):
        return _defined_logs(drift)
    return drift._replace(
        numbers=jax.tree.map(lambda b: jnp.where(jnp.isnan(b), 0, b), drift.numbers)
    )


def _defined_logs(drift: drifts.SignedLog) -> drifts.SignedLog:
    is_known = jax.tree.map(lambda *parts: ~jnp.isnan(sum(parts)), *drift)
    return drifts.SignedLog(
        jax.tree.map(lambda known, s: jnp.where(known, s, 0), is_known, drift.sign),
        jax.tree.map(lambda known, s: jnp.where(known, s, -jnp.inf), is_known, drift.log_size),
    )


@module(static=("logdensity_fn",))
class Mafla(Langevin):
    """See `mafla`."""

    is_exact = True
    logdensity_fn: LogDensity
    drift: Any
    how: Stepping

    @property
    def name(self) -> str:
        return "mafla"

    def on(self, logdensity_fn: LogDensity) -> "Mafla":
        """The same with the leading term of another target."""
        drift = dataclasses.replace(self.drift, logdensity_fn=logdensity_fn)
        return dataclasses.replace(self, logdensity_fn=logdensity_fn, drift=drift)

    def known_at(self, position: Any, step: Array) -> LangevinState:
        known = super().known_at(position, step)
        return known._replace(drift=_defined(known.drift))

    def step(self, key: Array, state: LangevinState, *minibatch: Any) -> tuple[LangevinState, Info]:
        check_minibatch(self, minibatch)
        key_noise, key_accept = jax.random.split(key)
        number, how = schedules.following(state.step), self.how
        drift = _Defined(self.drift)
        proposal = propose(key_noise, state.position, number, drift, how, state.drift)
        eta, there = proposal.step_size, self.known_at(proposal.position, number)
        own = in_own_time(drift, there.position, how)
        back = how.integrator(own, there.position, eta, there.drift)
        returning = jax.tree.map(
            lambda x, y, m: x - y - m, state.position, there.position, back.displacement
        )
        log_ratio = self._log_q(returning, eta) - how.noise.logdensity(proposal.noise, eta)
        chosen, outcome = accept(key_accept, state._replace(step=number), there, log_ratio)
        largest = proposal.largest_jump
        info = Info(eta, outcome.rate, outcome.is_divergent, largest, proposal.taming)
        return chosen, info

    def _log_q(self, jump: Any, eta: Array) -> Array:
        """log q of a jump, up to a constant."""
        if self.how.preconditioner is None:
            return self.how.noise.logdensity(jump, eta)
        inverse = jax.tree.map(lambda m: 1 / m, self.how.preconditioner)
        return self.how.noise.logdensity(noises.stretched(jump, inverse, self.how.alpha), eta)
