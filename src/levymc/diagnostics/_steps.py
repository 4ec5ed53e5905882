"""What looks wrong with the steps of a run."""

from collections.abc import Iterator

import numpy as np

from ._evidence import Evidence
from ._report import Finding

FEWEST_MOVES = 0.01  # of the draws: below, a chain counts as stuck
LONGEST_STAY = (0.1, 100)  # share of a chain, and draws, that a healthy chain does not stay
ACCEPTANCE = (0.05, 0.95)  # around all that the algorithms' docstrings advise
TAMED = (0.5, 0.1)  # drift's steps cut to less than half, in more than a tenth of the draws

SMALLER_STEP = "a smaller step size"
INTEGRATORS = "levymc.integrators.tamed() or split() in the place of euler()"


def stuck(seen: Evidence) -> Iterator[Finding]:
    num_draws = seen.result.num_draws
    rates = seen.is_moved.mean(axis=1)
    if seen.acceptance is not None:
        rates = np.minimum(rates, seen.acceptance.mean(axis=1))
    stays = np.array([_longest_stay(moved) for moved in seen.is_moved])
    share, least = LONGEST_STAY
    chains = np.flatnonzero((rates < FEWEST_MOVES) | (stays > max(share * num_draws, least)))
    if chains.size:
        yield Finding(
            "stuck",
            f"{_chains(chains, seen)} stayed at one place for up to {stays[chains].max()} of "
            f"{num_draws} draws in a row.",
            f"{SMALLER_STEP} or scale, and starts where the density is not tiny.",
        )


def acceptance(seen: Evidence) -> Iterator[Finding]:
    if seen.acceptance is None or seen.is_unadjusted:
        return
    rate = float(seen.acceptance.mean())
    low, high = ACCEPTANCE
    if FEWEST_MOVES <= rate < low:
        yield Finding(
            "step too large",
            f"Only {rate:.1%} of the proposals are accepted.",
            f"{SMALLER_STEP} or scale, until .2 to .5 are accepted.",
        )
    if seen.is_levymc and rate > high:
        yield Finding(
            "step too small",
            f"{rate:.1%} of the proposals are accepted: the chain creeps.",
            "a larger step size or scale, until .2 to .5 are accepted.",
        )


def divergences(seen: Evidence) -> Iterator[Finding]:
    count = 0 if seen.divergent is None else int(np.sum(seen.divergent))
    if not count or seen.divergent is None:
        return
    share = f"{count} of {seen.divergent.size} draws"
    if not seen.is_levymc:
        yield Finding("divergences", f"{share} diverged.", f"{SMALLER_STEP}.")
        return
    what = "the chain stayed where it was, so that the draws are biased"
    if seen.is_unadjusted:
        yield Finding(
            "divergences",
            f"{share} had a step that would have left the finite numbers, as the step is too "
            f"large where the drift is steep; {what}.",
            f"{SMALLER_STEP}, or {INTEGRATORS}.",
        )
        return
    yield Finding(
        "divergences",
        f"{share} had a proposal where the density is not a finite number; it was refused.",
        "a `logdensity_fn` that is never NaN; -inf outside the support is no harm.",
    )


def taming(seen: Evidence) -> Iterator[Finding]:
    """Of unadjusted algorithms only: a Metropolis test makes any proposal right."""
    if seen.taming is None or not seen.is_unadjusted:
        return
    cut, share = TAMED
    found = float(np.mean(seen.taming > cut))
    if found > share:
        yield Finding(
            "step too large",
            f"In {found:.0%} of the draws the drift's step was cut to less than half: the chain "
            "follows the cap rather than the drift.",
            f"{SMALLER_STEP}, or levymc.integrators.split().",
        )


def _chains(numbers: np.ndarray, seen: Evidence) -> str:
    if numbers.size == seen.result.num_chains:
        return "Every chain" if numbers.size > 1 else "The chain"
    listed = ", ".join(str(number) for number in numbers[:10])
    return f"{numbers.size} of {seen.result.num_chains} chains (number {listed})"


def _longest_stay(is_moved: np.ndarray) -> int:
    """Draws at one place, the first among them."""
    changes = np.flatnonzero(np.concatenate([[True], is_moved, [True]]))
    return int(np.max(np.diff(changes)))
