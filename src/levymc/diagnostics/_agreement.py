"""What looks wrong with the draws of a run."""

from collections.abc import Iterator

import numpy as np

from ._evidence import Coordinate, Evidence
from ._report import Finding

HIGHEST_RHAT = 1.01
LOWEST_ESS = 400  # Vehtari et al. (2021): below, neither R-hat nor quantiles are reliable


def disagreement(seen: Evidence) -> Iterator[Finding]:
    """Chains that tell different things: in separate modes, or on the way."""
    bad = [c for c in seen.coordinates if c.rhat > HIGHEST_RHAT]
    if not bad:
        return
    apart = [c for c in bad if _separation(c) > 1]
    if apart:
        worst = max(apart, key=_separation)
        medians = np.median(worst.values, axis=1)
        yield Finding(
            "modes",
            f"The chains sit at different places and do not mix, each in one mode only, it seems: "
            f"the medians of {worst.name} go from {medians.min():.3g} to {medians.max():.3g}, "
            f"farther than a chain ranges (R-hat {worst.rhat:.2f}). The share of chains in a mode "
            "is that of the starts, not its weight.",
            "levymc.levy_walk, whose jumps cross barriers, or levymc.mafla with a smaller α; more "
            "steps or chains of the same kind will not help.",
        )
        return
    worst = max(bad, key=lambda c: c.rhat)
    yield Finding(
        "not converged",
        f"The chains do not agree: R-hat of {worst.name} is {worst.rhat:.3f}, above "
        f"{HIGHEST_RHAT}, and so is that of {len(bad)} of {len(seen.coordinates)} coordinates.",
        "more steps, a longer burn-in, or a larger step if R-hat hardly falls.",
    )


def few_effective(seen: Evidence) -> Iterator[Finding]:
    for kind in ("bulk", "tail"):
        known = [c for c in seen.coordinates if not np.isnan(_ess(c, kind))]
        if not known:
            continue
        worst = min(known, key=lambda c: _ess(c, kind))
        if _ess(worst, kind) < LOWEST_ESS:
            yield Finding(
                "few effective draws",
                f"{seen.result.num_chains * seen.result.num_draws} draws are worth "
                f"{_ess(worst, kind):.0f} independent ones in the {kind} of {worst.name}; below "
                f"{LOWEST_ESS} the summaries are rough.",
                "more steps, or a larger step size if most proposals are accepted.",
            )
            return


def weights(seen: Evidence) -> Iterator[Finding]:
    count = effective_weights(seen.result.weights)
    if count < min(LOWEST_ESS, 0.5 * seen.result.weights.size):
        yield Finding(
            "weights",
            f"The step sizes fall so fast that the weights of {seen.result.weights.size} draws "
            f"count as {count:.0f}: the first draws decide the weighted estimate.",
            "a schedule that falls more slowly, a burn-in, or a constant step.",
        )


def effective_weights(values: np.ndarray) -> float:
    """(Σ w)² / Σ w², the number of equal weights with the same noise."""
    shares = np.asarray(values, np.float64) / np.sum(values, dtype=np.float64)
    return float(1 / np.sum(shares**2))


def _separation(coordinate: Coordinate) -> float:
    """Distance between the chains' medians, over the range of a typical chain."""
    low, medians, high = np.quantile(coordinate.values, [0.05, 0.5, 0.95], axis=1)
    distance = float(np.ptp(medians))
    width = float(np.median(high - low))
    return distance / width if width else (np.inf if distance else 0.0)


def _ess(coordinate: Coordinate, kind: str) -> float:
    return coordinate.bulk_ess if kind == "bulk" else coordinate.tail_ess
