"""When a run has drawn enough: a rule to end it by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from levymc._checks import check_floating, check_one_number, check_positive
from levymc.run import Result

from ._convergence import (
    HIGHEST_RHAT,
    LOWEST_ESS,
    ask_for_arviz,
    ess_of,
    fewest_draws,
    rhat_of,
    series,
    warn_of_equal_draws,
)
from ._draws import coordinate_name, variables


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
        A function of a `Result`.  Not enough are coordinates of which all draws are equal, or one
        is not finite, and chains of fewer draws than R-hat needs.

    Raises:
        ValueError, TypeError: an argument outside its range.
        ImportError: ArviZ is not installed.

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
    ask_for_arviz()  # now, and not in the middle of a run
    return Enough(float(ess), float(rhat))


@dataclass(frozen=True)
class Enough:
    """The rule of `enough`."""

    ess: float
    rhat: float

    def __call__(self, result: Result) -> bool:
        """Up to the first coordinate that has not enough, as a run is looked at many times."""
        if result.num_draws < fewest_draws(result.num_chains):
            return False
        found = variables(result)
        check_floating("draws", found)
        return all(
            self._is_met(values, coordinate_name(name, place))
            for name, leaf in found.items()
            for place, values in zip(np.ndindex(leaf.shape[2:]), series(result, leaf), strict=True)
        )

    def _is_met(self, values: np.ndarray, name: str) -> bool:
        if not np.all(np.isfinite(values)):
            return False
        if np.all(values == values[0, 0]):
            warn_of_equal_draws(name, stacklevel=5)
            return False
        return (
            rhat_of(values) <= self.rhat
            and ess_of(values, "bulk") >= self.ess
            and ess_of(values, "tail") >= self.ess
        )
