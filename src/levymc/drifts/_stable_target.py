r"""The exact drift of a stable target driven by noise of the same α: linear."""

from typing import Any

import jax
import jax.numpy as jnp

from levymc._checks import check_floating, check_interval, check_positive

from ._coordinates import like
from ._drift import ALPHA_REMEDY, Drift, Evaluations, Position, from_value


def stable_target(alpha: Any, scale: Any = 1.0) -> Drift:
    r"""The drift of independent SαS(s) coordinates, a Lévy-driven Ornstein–Uhlenbeck process:

    .. math:: b(x) = -\frac{x}{α s^α} .

    Targets: SαS(s) exactly.  The best test of any other drift.

    Args:
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        scale: s > 0, likewise.

    Raises:
        ValueError: an argument outside its range.

    Examples:
        >>> import levymc
        >>> round(float(levymc.drifts.stable_target(1.6)(3.2)), 4)
        -2.0
    """
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy=ALPHA_REMEDY)
    check_positive("scale", scale, "Give the sigma of exp(-|sigma omega|^alpha).")

    def value(position: Position) -> Position:
        check_floating("position", position)
        alphas, scales = like("alpha", alpha, position), like("scale", scale, position)
        rates = jax.tree.map(lambda a, s: 1 / (a * s**a), alphas, scales)
        return jax.tree.map(lambda x, r: -jnp.asarray(r, jnp.result_type(x)) * x, position, rates)

    return from_value(value, Evaluations(density=0, gradient=0))
