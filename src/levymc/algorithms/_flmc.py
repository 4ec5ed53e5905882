r"""Fractional Langevin Monte Carlo, with the exact drift or any other."""

from typing import Any

from jaxtyping import ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc._checks import check_alpha
from levymc.drifts import LogDensity

from ._base import LangevinState, SamplingAlgorithm
from ._fla import Unadjusted, stepping
from ._local import local, weighted


def flmc(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    drift: Any = None,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
    checks_support: bool = True,
) -> SamplingAlgorithm[LangevinState]:
    r"""Fractional Langevin Monte Carlo:

    .. math:: x' = x + η\, b(x) + η^{1/α}\, ξ, \qquad ξ \sim SαS(1)

    with the exact drift b, unless another is given; its step tamed, unless another integrator is.

    Targets: φ as η → 0.  Not valid when: `euler()` is the integrator and φ has light tails; or the
    exact drift does not know of a mode.  It explores the target before the run, from the positions
    of all chains; `info.drift_error` and the report at the end show where it is in doubt.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        drift: a `levymc.drifts.Drift`, or a function that gives the drift's values;
            `levymc.drifts.quadrature(logdensity_fn, alpha)` if not given.
        integrator: `levymc.integrators.tamed()` if not given.
        noise: `levymc.noises.independent()` if not given; with `truncated(bound)` or `isotropic()`
            it does not target φ.
        preconditioner: m > 0, a number or a pytree that broadcasts to the position: coordinate d
            steps η m_d, in drift and noise.  The target stays φ, as the exact drift makes φ
            invariant under each coordinate's part of the generator by itself.  Or a function of
            the position that gives one number: the drift is then m(x) times that of the density
            m φ, under which the target stays φ, see docs/directions.md.  m must not grow so fast
            that m φ cannot be integrated; `drift` must not be given.
        checks_support: as for `fla`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.flmc(lambda x: -x * x / 2, 0.01, 1.7)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> int(state.step)
        1

    References: [simsekli2017], eqs. (6) and (11).
    """
    check_alpha(alpha)
    target = logdensity_fn
    if callable(preconditioner):
        if drift is not None:
            raise ValueError(
                "`drift` must not be given with a preconditioner that is a function, got "
                f"{drift!r:.100}. Leave it out: the exact drift of m φ, which is needed, is made."
            )
        preconditioner = local(preconditioner, None)
        target = weighted(logdensity_fn, preconditioner)
    used = drifts.quadrature(target, alpha) if drift is None else drifts.as_drift(drift)
    how = stepping(step_size, alpha, integrator, noise, preconditioner)
    return Unadjusted("flmc", logdensity_fn, used, how, checks_support)
