"""What looks wrong with the steps of a run: how they were made, and how large they were."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from ._evidence import Evidence
from ._increments import NORMAL_SQUARE, gaussian_noise, over_noise, strongest_pull
from ._report import Finding

FEWEST_MOVES = 0.01  # of the draws: below, a chain counts as stuck
LONGEST_STAY = (0.1, 100)  # share of a chain, and draws, that a healthy chain does not stay
ACCEPTANCE = (0.05, 0.95)  # around all that the algorithms' docstrings advise
TAMED = (0.5, 0.1)  # drift's steps cut to less than half, in more than a tenth of the draws
STRONGEST_PULL = 0.4  # h of `_increments`: Euler's variance is then a quarter too large
MOST_OVER_NOISE = 1.6  # square of the increments over that of their noise; 1 + h/2 for normal laws
GAUSSIAN = ("ula", "sgld")
SEVERAL_TRIES = ("proximal", "jumping proximal")  # a step that moves nearly always is no short one

SMALLER_STEP = "a smaller step size"
_GENTLER = f"{SMALLER_STEP}, or levymc.integrators.tamed() or split() in the place of euler()."


def step_findings(seen: Evidence) -> Iterator[Finding]:
    for test in (_divergences, _drift, _bound, _stuck, _acceptance, _taming, _too_large):
        yield from test(seen)


def refusals(seen: Evidence) -> int:
    """Proposals that an exact algorithm refused as log φ or the step was not finite."""
    divergent = seen.info("is_divergent")
    return int(np.sum(divergent)) if seen.is_exact and divergent is not None else 0


def size_option(seen: Evidence) -> str:
    """What a user of the algorithm calls the size of its steps."""
    known = {"levy_walk": "`scale`", "": "step size or scale"}
    return known.get(seen.result.algorithm, "step size")


def _divergences(seen: Evidence) -> Iterator[Finding]:
    divergent = seen.info("is_divergent")
    if divergent is None or not np.any(divergent) or seen.is_exact:
        return
    share = f"{int(np.sum(divergent))} of {divergent.size} draws"
    if not seen.is_levymc:
        yield Finding("divergences", f"{share} diverged.", f"{SMALLER_STEP}.")
    elif seen.result.num_outside:
        yield Finding(
            "divergences",
            f"{share} had a step that was not made, {seen.result.num_outside} of them as it would "
            "have ended where log φ is not finite, outside the support or so far out that it "
            "overflows; the chain stayed where it was, so that the draws are biased.",
            "on a bounded support levymc.mafla or levymc.levy_walk, for which a refusal is right, "
            f"or a transform to the whole line; elsewhere {_GENTLER}",
        )
    elif seen.is_unadjusted:
        yield Finding(
            "divergences",
            f"{share} had a step that would have left the finite numbers, as the step is too "
            "large where the drift is steep; the chain stayed where it was, so that the draws are "
            "biased.",
            _GENTLER,
        )
    else:
        yield Finding(
            "divergences",
            f"{share} had a proposal where the density is not a finite number; it was refused.",
            "a `logdensity_fn` that is never NaN; -inf outside the support is no harm.",
        )


def _drift(seen: Evidence) -> Iterator[Finding]:
    """Of unadjusted algorithms only, as no others report it."""
    count = seen.result.num_inexact
    if count:
        yield Finding(
            "drift in doubt",
            f"In {count} of {seen.result.weights.size} draws the drift's estimated error is above "
            "1e-3, as where the chain is in a mode that its exploration did not find.",
            "levymc.drifts.quadrature(..., modes=...) with the modes that these draws show.",
        )


def _bound(seen: Evidence) -> Iterator[Finding]:
    count = seen.result.num_above_bound
    if count:
        yield Finding(
            "bound too low",
            f"{count} of {seen.result.weights.size} draws had a step that met a point where log φ "
            "is above `upper_bound`; the draws are of the law that is cut off there.",
            "a larger `upper_bound`, or none.",
        )


def _stuck(seen: Evidence) -> Iterator[Finding]:
    num_draws = seen.result.num_draws
    rates = seen.is_moved.mean(axis=1)
    acceptance = seen.info("acceptance_rate")
    if acceptance is not None:
        rates = np.fmin(rates, _mean_known(acceptance))
    stays = np.array([_longest_stay(moved) for moved in seen.is_moved])
    share, least = LONGEST_STAY
    chains = np.flatnonzero((rates < FEWEST_MOVES) | (stays > max(share * num_draws, least)))
    if chains.size:
        yield Finding(
            "stuck",
            f"{_chains(chains, seen)} stayed at one place for up to {stays[chains].max()} of "
            f"{num_draws} draws in a row.",
            f"a smaller {size_option(seen)}, and starts where the density is not tiny.",
        )


def _mean_known(rates: np.ndarray) -> Any:
    """Along the last axis, of those that are known; NaN where none is."""
    is_known = ~np.isnan(rates)
    with np.errstate(invalid="ignore"):
        return np.where(is_known, rates, 0.0).sum(axis=-1) / is_known.sum(axis=-1)


def _longest_stay(is_moved: np.ndarray) -> int:
    """Draws at one place, the first among them."""
    changes = np.flatnonzero(np.concatenate([[True], is_moved, [True]]))
    return int(np.max(np.diff(changes)))


def _chains(numbers: np.ndarray, seen: Evidence) -> str:
    if numbers.size == seen.result.num_chains:
        return "Every chain" if numbers.size > 1 else "The chain"
    listed = ", ".join(str(number) for number in numbers[:10])
    return f"{numbers.size} of {seen.result.num_chains} chains (number {listed})"


def _acceptance(seen: Evidence) -> Iterator[Finding]:
    acceptance = seen.info("acceptance_rate")
    if acceptance is None or seen.is_unadjusted:
        return
    rate = float(_mean_known(acceptance.ravel()))
    low, high = ACCEPTANCE
    if FEWEST_MOVES <= rate < low:
        yield Finding(
            "step too large",
            f"Only {rate:.1%} of the proposals are accepted.",
            f"a smaller {size_option(seen)}, until .2 to .5 are accepted.",
        )
    if seen.is_levymc and rate > high and seen.result.algorithm not in SEVERAL_TRIES:
        yield Finding(
            "step too small",
            f"{rate:.1%} of the proposals are accepted: the chain creeps.",
            f"a larger {size_option(seen)}, until .2 to .5 are accepted.",
        )


def _taming(seen: Evidence) -> Iterator[Finding]:
    """Of unadjusted algorithms only: a Metropolis test makes any proposal right."""
    taming = seen.info("taming")
    if taming is None or not seen.is_unadjusted:
        return
    cut, share = TAMED
    found = float(np.mean(taming > cut))
    if found > share:
        yield Finding(
            "step too large",
            f"In {found:.0%} of the draws the drift's step was cut to less than half: the chain "
            "follows the cap rather than the drift.",
            f"{SMALLER_STEP}, or levymc.integrators.split().",
        )


# The size of a step, beside its noise and the width of the draws


def _too_large(seen: Evidence) -> Iterator[Finding]:
    """The first that is found of three signs; each by itself is enough."""
    if not (seen.is_finite and seen.is_levymc and seen.is_unadjusted):
        return
    for sign in (_beyond_noise, _pull, _wide_noise):
        message = sign(seen)
        if message:
            yield Finding(
                "step too large",
                message,
                f"{SMALLER_STEP}, by ten at first, larger minibatches if there are any; or "
                "levymc.mafla, which is exact at every step.",
            )
            return


def _beyond_noise(seen: Evidence) -> str | None:
    """Steps that are made of drift, or of the minibatches' noise, rather than of the noise."""
    thinning, variance = seen.thinning, _noise_variance(seen)
    if thinning is None:
        return None
    if variance is not None:
        found = [(over_noise(c.values, variance, thinning), c.name) for c in seen.coordinates]
        ratio, name = max(found)
    else:
        ratio, name = _largest_over_noise(seen, thinning), "the largest coordinate"
    if ratio <= MOST_OVER_NOISE:
        return None
    return (
        f"The moves of {name} are {math.sqrt(ratio):.3g} times as large as their noise: the drift, "
        "or the noise of the minibatches, makes the steps, and the draws are spread by it."
    )


def _pull(seen: Evidence) -> str | None:
    if seen.thinning != 1:
        return None
    pull = strongest_pull(np.stack([c.values for c in seen.coordinates]))
    if pull is None or pull.share <= STRONGEST_PULL + pull.error:
        return None
    return (
        f"A step goes {pull.share:.0%} of the way to the middle of the target where that is "
        "narrow: the step is as large as the target is wide there, and the draws are too wide."
    )


def _wide_noise(seen: Evidence) -> str | None:
    """Noise of one step beside the width of the draws, where draws are too far apart for a pull.

    With h as in `_increments`, noise over width is 2h(1 - h/2) in squares.
    """
    variance = _noise_variance(seen)
    if seen.thinning == 1 or variance is None:
        return None
    bound = 2 * STRONGEST_PULL * (1 - STRONGEST_PULL / 2)
    for c in seen.coordinates:
        width = np.median((c.values - np.median(c.values)) ** 2) / NORMAL_SQUARE
        if width and np.median(variance) > bound * width:
            ratio = math.sqrt(np.median(variance) / width)
            return (
                f"The noise of one step is {ratio:.2g} times as wide as the draws of {c.name}: the "
                "step is as large as the target is wide."
            )
    return None


def _noise_variance(seen: Evidence) -> Float[np.ndarray, "chain draw"] | None:
    """Of Gaussian noise without preconditioner, draw by draw."""
    steps, largest, thinning = seen.info("step_size"), seen.info("largest_jump"), seen.thinning
    if seen.result.algorithm not in GAUSSIAN or steps is None or largest is None or not thinning:
        return None
    return gaussian_noise(steps, largest, seen.num_coordinates * thinning)


def _largest_over_noise(seen: Evidence, thinning: int) -> float:
    """Square of the largest increment over that of the largest noise since the draw before.

    Over several steps noise of any α adds up to at most as many times the largest.
    """
    largest = seen.info("largest_jump")
    if largest is None or len(seen.coordinates) < seen.num_coordinates:
        return 0.0
    moves = np.max([np.abs(np.diff(c.values)) for c in seen.coordinates], axis=0)
    typical = float(np.median(largest[:, 1:]))
    return (float(np.median(moves)) / (thinning * typical)) ** 2 if typical else 0.0
