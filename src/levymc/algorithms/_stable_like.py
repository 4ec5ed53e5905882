r"""Fractional Langevin Monte Carlo driven by a stable-like process."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike

from levymc import drifts, integrators, schedules, stable
from levymc._checks import check_scalar_output
from levymc._trees import module
from levymc.drifts import AlphaFunction, LogDensity

from ._base import LangevinState, SamplingAlgorithm
from ._fla import Stepping, Unadjusted


def stable_like(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha_fn: AlphaFunction,
    *,
    radius: Any = None,
    drift: Any = None,
    integrator: integrators.Integrator | None = None,
    checks_support: bool = True,
) -> SamplingAlgorithm[LangevinState]:
    r"""Fractional Langevin Monte Carlo whose α depends on the position:

    .. math:: x' = x + η\, b(x) + η^{1/α(x)}\, ξ, \qquad ξ \sim Sα(x)S(1)

    with the drift b of `levymc.drifts.stable_like`, under which φ is invariant; its step tamed,
    unless another integrator is given.

    Targets: φ as η → 0.  Not valid when: the drift is not, see there; or α(x) leaves (1, 2): such
    a step is not made, and counted as divergent.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha_fn: a differentiable function of the position, one number in (1, 2) for all
            coordinates.
        radius: how far the drift looks along each coordinate; must be given unless `drift` is.
        drift: a `levymc.drifts.Drift`, or a function that gives the drift's values.
        integrator: `levymc.integrators.tamed()` if not given.
        checks_support: as for `fla`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> algorithm = levymc.stable_like(
        ...     lambda x: -x * x / 2, 0.01, lambda x: 1.5 + 0.3 * jnp.tanh(x), radius=12.0
        ... )
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [bass1988].  Departures: the paper names the extension as a future direction and
    derives nothing; see docs/directions.md for the drift, and for whether it pays.
    """
    if drift is None and radius is None:
        raise ValueError(
            "`radius` must be a positive number, got None. Give how far the target reaches from "
            "any position, or a drift."
        )
    made = drifts.stable_like(logdensity_fn, alpha_fn, radius=1.0 if radius is None else radius)
    how = Stepping(
        None,
        schedules.as_schedule(step_size),
        integrators.as_integrator(integrator),
        StableLikeLaw(alpha_fn),
        None,
    )
    used = made if drift is None else drifts.as_drift(drift)
    return Unadjusted("stable_like", logdensity_fn, used, how, checks_support)


@module(static=("alpha_fn",))
class StableLikeLaw:
    """One variable per coordinate, all of the index that belongs to the position."""

    alpha_fn: AlphaFunction

    def draw(self, key: Array, position: Any, step_size: Array) -> Any:
        check_scalar_output("alpha_fn", self.alpha_fn, position)
        flat, unflatten = ravel_pytree(position)
        alpha = jnp.asarray(self.alpha_fn(position), flat.dtype)
        is_index = (alpha > 1) & (alpha < 2)
        noise = stable.sample(key, jnp.where(is_index, alpha, 1.5), flat.shape, dtype=flat.dtype)
        jump = step_size.astype(flat.dtype) ** (1 / alpha) * noise
        return jax.tree.map(jnp.asarray, unflatten(jnp.where(is_index, jump, jnp.nan)))
