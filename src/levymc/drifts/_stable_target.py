r"""The exact drift of a stable target driven by noise of the same α: linear."""

from typing import Any

import jax
import jax.numpy as jnp

from levymc._checks import as_parameter, check_alpha, check_floating, check_positive, spread
from levymc._trees import module

from ._drift import Drift, Evaluations, Position, Values


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
    check_alpha(alpha)
    check_positive("scale", scale, "Give the sigma of exp(-|sigma omega|^alpha).")
    return StableTarget(as_parameter(alpha), as_parameter(scale))


@module()
class StableTarget(Drift):
    """-x/(α s^α)."""

    alpha: Any
    scale: Any
    evaluations = Evaluations(density=0, gradient=0)

    def evaluate(self, position: Position) -> Values:
        check_floating("position", position)
        alphas, scales = (
            spread("alpha", self.alpha, position),
            spread("scale", self.scale, position),
        )
        rates = jax.tree.map(lambda a, s: 1 / (a * s**a), alphas, scales)
        return Values(
            jax.tree.map(lambda x, r: -jnp.asarray(r, jnp.result_type(x)) * x, position, rates)
        )
