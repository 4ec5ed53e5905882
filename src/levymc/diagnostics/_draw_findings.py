"""What looks wrong with the draws of a run: where they are, and whether the chains agree."""

from collections.abc import Iterator

import numpy as np

from ._convergence import HIGHEST_RHAT, KINDS, LOWEST_ESS
from ._evidence import Evidence, heavy_axis, unvisited_place
from ._fit import worst_misfit
from ._report import Finding
from ._step_findings import SMALLER_STEP, size_option
from ._trend import is_shift, shifts

LEVY_INDEX = 3.0  # two standard errors above the estimate; Gaussian increments give 6 and more
HEAVY_INDEX = 3.0  # a stable law gives its α or little more, an exponential tail 6 and more
MOST_FAR = 2e-3  # of flmc's draws, where a jump has just led: they fall with the step size
CORRELATED = 0.7  # above, a walk along one coordinate at a time creeps

NOT_VALID = (
    "on a heavy-tailed target fla and sgfla are not valid at all, as the gradient there is too "
    "weak to pull a jump back"
)
EXACT = (
    "levymc.mafla or levymc.levy_walk, which are exact, and compare; levymc.flmc with its exact "
    "drift is right as the step goes to 0, in its tails sooner with levymc.integrators.split()."
)


def draw_findings(seen: Evidence) -> Iterator[Finding]:
    tests = (
        _unvisited,
        _heavy_tails,
        _misfits,
        _weights,
        _disagreement,
        _changes,
        _few_effective,
    )
    for test in tests:
        yield from test(seen)


def effective(weights: np.ndarray) -> float:
    """(Σ w)² / Σ w², the number of equal weights with the same noise."""
    shares = np.asarray(weights, np.float64) / np.sum(weights, dtype=np.float64)
    return float(1 / np.sum(shares**2))


def _unvisited(seen: Evidence) -> Iterator[Finding]:
    place = seen.logdensity_fn and unvisited_place(seen.result, seen.logdensity_fn)
    if place:
        yield Finding(
            "one mode only",
            f"Where coordinate {place.axis} of the position is {place.value:.4g} the density is as "
            f"high as at the draws, yet the nearest draw is {place.distance:.3g} away: the chains "
            "have missed a mode.",
            "levymc.levy_walk, whose jumps cross barriers; starts far apart, one of them there.",
        )


def _heavy_tails(seen: Evidence) -> Iterator[Finding]:
    """What Lévy noise that no Metropolis test holds back has left in the draws, or may have."""
    if not seen.is_unadjusted or not seen.is_levymc:
        return
    noise = [(c, c.increment_tail(seen.is_tested)) for c in seen.coordinates]
    driven = [c for c, tail in noise if tail.index + 2 * tail.standard_error < LEVY_INDEX]
    if not driven:
        return
    axis = None if seen.logdensity_fn is None else heavy_axis(seen, seen.logdensity_fn)
    tail, name = min((c.peak_tail, c.name) for c in driven)
    worst = max(driven, key=lambda c: c.rhat)
    few_far = max(c.far_share for c in driven) < MOST_FAR
    if axis is not None:
        yield Finding(
            "heavy tails",
            f"The target has heavy tails along coordinate {axis} of the position, the noise makes "
            f"jumps, and no Metropolis test was made: {NOT_VALID}.",
            EXACT,
        )
    elif tail.index < HEAVY_INDEX and not (seen.result.algorithm == "flmc" and few_far):
        yield Finding(
            "heavy tails",
            f"The draws of {name} have heavy tails (index {tail.index:.1f} ± "
            f"{tail.standard_error:.1f}) and no Metropolis test was made. Jumps leave such tails "
            "behind whatever the target: under fla and sgfla however small the step, under flmc "
            f"until it is small; {NOT_VALID}.",
            EXACT,
        )
    elif seen.logdensity_fn is None and worst.rhat > HIGHEST_RHAT:
        yield Finding(
            "jumps",
            f"Jumps have carried the chains to places on which they do not agree (R-hat of "
            f"{worst.name} {worst.rhat:.2f}), and no Metropolis test was made: {NOT_VALID}.",
            f"for heavy tails {EXACT} For light ones, more steps: hops between modes are rare.",
        )


def _misfits(seen: Evidence) -> Iterator[Finding]:
    """Of unadjusted algorithms: at the edge of a support the identity does not hold."""
    if seen.logdensity_fn is None or not (seen.is_unadjusted and seen.is_levymc):
        return
    axes = np.array([c.number for c in seen.coordinates if np.ptp(c.values) > 0], int)
    found = worst_misfit(seen.result, seen.logdensity_fn, axes)
    if found:
        how = "wide" if found.size < 0 else "narrow"
        yield Finding(
            "wrong width",
            f"The draws do not fit the slopes of log φ: along coordinate {found.axis} of the "
            f"position, around {found.value:.4g}, they are too {how} ({abs(found.size):.0%} of the "
            f"forces do not balance, {abs(found.z):.0f} standard errors).",
            f"{SMALLER_STEP}; a look at the scaling of a minibatch's gradient, N/|Ω| times the "
            "sum; levymc.mafla, which is exact.",
        )


def _disagreement(seen: Evidence) -> Iterator[Finding]:
    """Chains that tell different things: in separate modes, or on the way."""
    bad = [c for c in seen.coordinates if c.rhat > HIGHEST_RHAT]
    apart = [c for c in bad if c.separation > 1]
    if apart:
        worst = max(apart, key=lambda c: c.separation)
        medians = np.median(worst.even, axis=1)
        yield Finding(
            "modes",
            f"The chains sit at different places and do not mix, each in one mode only, it seems: "
            f"the medians of {worst.name} go from {medians.min():.3g} to {medians.max():.3g}, "
            f"farther than a chain ranges (R-hat {worst.rhat:.2f}). The share of chains in a mode "
            "is that of the starts, not its weight.",
            "levymc.levy_walk, whose jumps cross barriers, or levymc.mafla with a smaller α; more "
            "steps or chains of the same kind will not help.",
        )
    elif bad:
        worst = max(bad, key=lambda c: c.rhat)
        yield Finding(
            "not converged",
            f"The chains do not agree: R-hat of {worst.name} is {worst.rhat:.3f}, above "
            f"{HIGHEST_RHAT}, and so is that of {len(bad)} of {len(seen.coordinates)} coordinates.",
            f"a longer burn-in; {_faster(seen)}",
        )


def _changes(seen: Evidence) -> Iterator[Finding]:
    """Start against end, first half against second."""
    found = [(shift, c) for c in seen.coordinates for shift in shifts(c.even)]
    changed = [(shift, c) for shift, c in found if is_shift(shift, len(found))]
    if changed:
        shift, worst = max(changed, key=lambda pair: abs(pair[0].size))
        begin = "first half" if shift.part == 0.5 else f"first {shift.part:.0%}"
        yield Finding(
            "drifting",
            f"The {shift.measure} of {worst.name} changes from the {begin} of the chains to their "
            f"last half by {abs(shift.size):.2g} standard deviations, {abs(shift.z):.0f} standard "
            "errors: the start is still felt, or the chains are still on their way.",
            "a longer burn-in and more steps; starts where the density is high.",
        )


def _few_effective(seen: Evidence) -> Iterator[Finding]:
    for kind in KINDS:
        few = [c for c in seen.coordinates if c.ess[kind] < LOWEST_ESS]  # NaN is not
        if few:
            worst = min(few, key=lambda c: c.ess[kind])
            yield Finding(
                "few effective draws",
                f"{seen.result.weights.size} draws are worth {worst.ess[kind]:.0f} independent "
                f"ones in the {kind} of {worst.name}; below {LOWEST_ESS} the summaries are rough.",
                _faster(seen),
            )
            return


def _weights(seen: Evidence) -> Iterator[Finding]:
    weights = seen.result.weights
    count = effective(weights)
    if count < min(LOWEST_ESS, 0.5 * weights.size):
        yield Finding(
            "weights",
            f"The step sizes fall so fast that the weights of {weights.size} draws count as "
            f"{count:.0f}: the first draws decide the weighted estimate.",
            "a schedule that falls more slowly, a burn-in, or a constant step.",
        )


def _faster(seen: Evidence) -> str:
    """What makes a chain move more, by what it is."""
    walks = seen.result.algorithm == "levy_walk"
    if walks and seen.correlation > CORRELATED:
        return (
            "more steps, and `coordinatewise=False`: the coordinates are correlated "
            f"({seen.correlation:.2f}), so that steps along one at a time are short."
        )
    if walks:
        return "more steps, or another `scale`, so that .2 to .45 of the proposals are accepted."
    if seen.is_unadjusted:
        return f"more steps; a larger {size_option(seen)} moves faster, but is more biased."
    return f"more steps, or a larger {size_option(seen)} if most proposals are accepted."
