r"""Rank-based R-hat and effective sample size: they stay valid where there is no variance."""

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float

from levymc.run import Result

from ._draws import checked_variables, columns, coordinate_name, even_in_time

HIGHEST_RHAT = 1.01
LOWEST_ESS = 400  # Vehtari et al. (2021): below, neither R-hat nor quantiles are reliable
FEWEST_DRAWS = 4  # of a chain, for ArviZ to split it
# ArviZ 0.x takes these quantiles by itself, from version 1 on others.
KINDS: dict[str, dict[str, Any]] = {"bulk": {}, "tail": {"prob": (0.05, 0.95)}}


def rhat(draws: Any) -> dict[str, np.ndarray]:
    r"""Rank-normalised split R-hat, by ArviZ:

    .. math:: \hat R = \sqrt{\tfrac{N-1}{N} + \tfrac{B}{N W}}

    with B and W the variances between and within half-chains, of the normal scores of the ranks,
    of the draws or of their distances from the median, whichever is larger.  Ranks have moments
    whatever the draws have.  Above 1.01 the chains do not agree.

    The weights of decreasing steps are used: of a `Result` the draws are those at even distances in
    the sum of the weights, the time of the diffusion.

    Not valid when: all chains started at one place, as they agree about what none has seen.

    Args:
        draws: a `Result`, or a pytree of arrays with the axes (chain, draw, …).  One chain is cut
            into two first.

    Returns: by variable, an array of the variable's shape.  Infinite where no chain moves and they
        differ; NaN, with a warning, where all draws are equal.

    Raises:
        ValueError, TypeError: draws that are not finite, or fewer than four a chain, or eight of
            a single one.
        ImportError: ArviZ is not installed.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> draws = np.random.default_rng(0).standard_cauchy((4, 1000))
        >>> bool(diagnostics.rhat(draws)["x"] < 1.01)
        True
        >>> bool(diagnostics.rhat(draws + np.arange(4.0)[:, None])["x"] < 1.01)
        False

    References: [vehtari2021], section 4.1.
    """
    return _by_coordinate(draws, rhat_of)


def ess(draws: Any, *, kind: str = "bulk") -> dict[str, np.ndarray]:
    r"""Effective sample size, by ArviZ: how many independent draws would tell as much,

    .. math:: N_{\text{eff}} = \frac{M N}{1 + 2 \sum_{t ≥ 1} ρ_t},

    M chains of N draws, with ρ the autocorrelations of the ranks' normal scores ("bulk"), or of the
    indicators of the draws below the 5 % and 95 % quantiles, whichever gives less ("tail").
    Below some 400 neither quantiles nor R-hat are to be trusted.

    The weights of decreasing steps are used as by `rhat`: for independent draws the result is about
    (Σ w)²/Σ w².

    Not valid when: the chains have missed a mode.

    Args:
        draws: as for `rhat`.
        kind: "bulk" or "tail".

    Returns, Raises: as for `rhat`.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> draws = np.random.default_rng(0).standard_cauchy((4, 1000))
        >>> bool(diagnostics.ess(draws, kind="tail")["x"] > 3000)
        True

    References: [vehtari2021], sections 3 and 4.3.
    """
    if kind not in KINDS:
        raise ValueError(f'`kind` must be "bulk" or "tail", got {kind!r}.')
    return _by_coordinate(draws, lambda values: ess_of(values, kind))


def rhat_of(values: Float[np.ndarray, "chain draw"]) -> float:
    if np.all(values == values[:, :1]):
        return float("nan") if np.all(values == values[0, 0]) else float("inf")
    if len(values) == 1:
        half = values.shape[1] // 2
        values = values[0, : 2 * half].reshape(2, half)
    with np.errstate(divide="ignore", invalid="ignore"):  # half-chains that never move
        return float(ask_for_arviz().rhat(values))


def ess_of(values: Float[np.ndarray, "chain draw"], kind: str) -> float:
    """NaN for equal draws, for which ArviZ gives the number of draws."""
    if np.all(values == values[0, 0]):
        return float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(ask_for_arviz().ess(values, method=kind, **KINDS[kind]))


def has_arviz() -> bool:
    try:
        ask_for_arviz()
    except ImportError:
        return False
    return True


def ask_for_arviz() -> ModuleType:
    try:
        import arviz
    except ImportError:
        raise ImportError(
            "R-hat and the effective sample size are ArviZ's, which is not installed: "
            "pip install 'levymc[arviz]'."
        ) from None
    return arviz


def _by_coordinate(draws: Any, statistic: Callable[[np.ndarray], float]) -> dict[str, np.ndarray]:
    """A number for each coordinate; the arrays have the shapes of the variables."""
    found = {}
    for name, leaf in checked_variables(draws).items():
        _check_length(name, leaf)
        values = np.array([statistic(one) for one in series(draws, leaf)]).reshape(leaf.shape[2:])
        for place in np.argwhere(np.isnan(values)).tolist():
            warn_of_equal_draws(coordinate_name(name, tuple(place)), stacklevel=4)
        found[name] = values
    return found


def series(draws: Any, leaf: np.ndarray) -> Iterator[np.ndarray]:
    """All coordinates of a variable; those of a `Result` at even distances in time."""
    if not isinstance(draws, Result):
        return columns(leaf)
    return (even_in_time(one, draws.weights) for one in columns(leaf))


def warn_of_equal_draws(name: str, stacklevel: int) -> None:
    warnings.warn(
        f"All draws of {name} are equal, so that nothing can be said of their convergence. See "
        "levymc.diagnostics.check(result).",
        stacklevel=stacklevel,
    )


def fewest_draws(num_chains: int) -> int:
    """Of a chain, for ArviZ to split it; a single one is cut into two before."""
    return FEWEST_DRAWS * (2 if num_chains == 1 else 1)


def _check_length(name: str, leaf: np.ndarray) -> None:
    fewest = fewest_draws(leaf.shape[0])
    if leaf.shape[1] < fewest:
        raise ValueError(
            f"`draws` must have at least {fewest} draws a chain, got {leaf.shape[1]} of {name}. "
            "Run the chains longer."
        )
