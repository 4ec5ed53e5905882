r"""The fractional Langevin algorithm, and the unadjusted Langevin algorithm as its α = 2."""

from typing import Any

from jaxtyping import ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc.drifts import LogDensity

from ._base import SamplingAlgorithm, State
from ._unadjusted import Unadjusted, stepping


def fla(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
) -> SamplingAlgorithm[State]:
    r"""Fractional Langevin algorithm: steps with the leading-term drift b̂.

    .. math:: x' = x + η\, c_α ∇\log φ(x) + η^{1/α}\, ξ, \qquad ξ \sim SαS(1)

    (the drift's step tamed, unless another integrator is given).

    Targets: not φ, for α < 2, however small the step: see `levymc.drifts.leading_term`, and the
    ledger, docs/ledger.md, for how far off it is.
    Not valid when: the target is heavy-tailed, as the gradient cannot pull back a jump.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        integrator: `levymc.integrators.tamed()` if not given; `euler()` is the paper's.
        noise: `levymc.noises.independent()` if not given; `truncated(bound)`; or `isotropic()`,
            which is outside the paper's theory.
        preconditioner: m > 0, a number or a pytree that broadcasts to the position: coordinate d
            steps η m_d, in drift and noise.  For what that does to the target see `sgfla`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.fla(lambda x: -x * x / 2, 0.1, 1.7)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [simsekli2017], eq. (15).
    """
    drift = drifts.leading_term(logdensity_fn, alpha)
    return Unadjusted(drift, stepping(step_size, alpha, integrator, noise, preconditioner))


def ula(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    *,
    integrator: integrators.Integrator | None = None,
    preconditioner: Any = None,
) -> SamplingAlgorithm[State]:
    r"""Unadjusted Langevin algorithm, FLA at α = 2 with Euler's step:

    .. math:: x' = x + η ∇\log φ(x) + \sqrt{2η}\, ξ, \qquad ξ \sim N(0, 1) .

    Targets: φ up to O(η).  Not valid when: η |∇² log φ| > 2 anywhere the chain may go.

    Args, Raises: as for `fla`; the integrator is `euler()` if not given.

    References: [simsekli2017], eq. (2).
    """
    drift = drifts.gradient(logdensity_fn)
    used = integrator or integrators.euler()
    return Unadjusted(drift, stepping(step_size, 2.0, used, None, preconditioner))
