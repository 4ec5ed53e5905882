"""When a run has drawn enough: a rule to end it by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from levymc._checks import check_one_number, check_positive
from levymc.run import Result

from . import _convergence
from ._convergence import FEWEST_DRAWS, HIGHEST_RHAT, LOWEST_ESS


def enough(ess: Any = LOWEST_ESS, *, rhat: Any = HIGHEST_RHAT) -> Callable[[Result], bool]:
    r"""A rule for ``levymc.sample(..., until=levymc.enough(400))``: every coordinate has

    .. math:: N_{\text{eff}}^{\text{bulk}} ≥ N, \quad N_{\text{eff}}^{\text{tail}} ≥ N, \quad
       \hat R ≤ R .

    Not valid when: the chains have missed a mode, which neither number shows.  As both are
    estimates, a run ends at a time at which they happen to be high: an ESS that is wanted for a
    publication deserves some margin.

    Args:
        ess: N, effective draws over all chains, in the bulk and in the tails.
        rhat: R, above one.

    Returns:
        A function of a `Result`.  Coordinates of which all draws are equal count as not enough.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 2.0)
        >>> starts = jnp.linspace(-1, 1, 4)
        >>> run = levymc.sample(
        ...     walk, jax.random.key(0), starts, 100_000, until=levymc.enough(400), progress=False
        ... )
        >>> bool(run.num_draws < 10_000)
        True

    References: [vehtari2021].
    """
    for name, value, remedy in [
        ("ess", ess, "It is a number of effective draws, such as 400."),
        ("rhat", rhat, "It is 1 where chains agree, and 1.01 is usual."),
    ]:
        check_one_number(name, value, remedy)
        check_positive(name, value, remedy)
    if not rhat > 1:
        raise ValueError(f"`rhat` must be above 1, got {rhat}. Chains that agree have 1; try 1.01.")
    return Enough(float(ess), float(rhat))


@dataclass(frozen=True)
class Enough:
    """The rule of `enough`."""

    ess: float
    rhat: float

    def __call__(self, result: Result) -> bool:
        if result.num_draws < FEWEST_DRAWS:
            return False
        sizes = (_convergence.ess(result, kind=kind) for kind in ("bulk", "tail"))
        return all(_all(size, lambda value: value >= self.ess) for size in sizes) and _all(
            _convergence.rhat(result), lambda value: value <= self.rhat
        )


def _all(found: dict[str, np.ndarray], is_good: Callable[[np.ndarray], Any]) -> bool:
    """NaN, of draws that are all equal, is not good."""
    return all(bool(np.all(is_good(values))) for values in found.values())
