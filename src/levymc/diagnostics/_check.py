"""One question to ask of every run: what looks wrong, and what to try."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from levymc._checks import check_count
from levymc.drifts import LogDensity
from levymc.run import Result

from ._convergence import HIGHEST_RHAT, KINDS, LOWEST_ESS, has_arviz
from ._evidence import FEWEST_DRAWS, Evidence, gather, heavy_axis, unvisited_place

FEWEST_MOVES = 0.01  # of the draws: below, a chain counts as stuck
LONGEST_STAY = (0.1, 100)  # share of a chain, and draws, that a healthy chain does not stay
ACCEPTANCE = (0.05, 0.95)  # around all that the algorithms' docstrings advise
TAMED = (0.5, 0.1)  # drift's steps cut to less than half, in more than a tenth of the draws
LEVY_INDEX = 3.0  # two standard errors above the estimate; Gaussian increments give 6 and more
HEAVY_INDEX = 3.0  # a stable law gives its α or little more, an exponential tail 6 and more

SMALLER_STEP = "a smaller step size"
NOT_VALID = (
    "on a heavy-tailed target fla and sgfla are not valid at all, as the gradient there is too "
    "weak to pull a jump back"
)
EXACT = (
    "levymc.mafla or levymc.levy_walk, which are exact, and compare; levymc.flmc with its exact "
    "drift is right as the step goes to 0."
)


class Finding(NamedTuple):
    """One thing that looks wrong.

    kind: a word for programs, such as "stuck" or "divergences".
    message: what was seen.
    remedy: what to try.
    """

    kind: str
    message: str
    remedy: str


@dataclass(frozen=True)
class Report:
    """What looks wrong with a run, and what cannot be told; true where nothing looks wrong.

    findings: the worst first.
    notes: what to keep in mind, also of a run that looks fine.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(finding.kind for finding in self.findings)

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        lines = [self._headline()]
        for finding in self.findings:
            lines += [f"- {finding.kind}: {finding.message}", f"  Try: {finding.remedy}"]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        items = (
            f"<li><b>{html.escape(f.kind)}</b>: {html.escape(f.message)}<br>"
            f"<i>Try:</i> {html.escape(f.remedy)}</li>"
            for f in self.findings
        )
        notes = (f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<p>{self._headline()}</p><ul>{''.join(items)}</ul>{''.join(notes)}"

    def _headline(self) -> str:
        if self:
            return "Nothing looks wrong."
        count = len(self.findings)
        return f"{count} thing{'s look' if count > 1 else ' looks'} wrong."


def check(
    result: Any,
    logdensity_fn: LogDensity | None = None,
    *,
    max_coordinates: Any = 50,
) -> Report:
    """Report in plain words what looks wrong with a run, and what to try.

    Looks for: chains that are stuck; divergences; steps too large or too small; chains in separate
    modes, or not converged (R-hat > 1.01); fewer than 400 effective draws; heavy-tailed draws
    without a Metropolis test, the mark of FLA, which is not valid on heavy-tailed targets; weights
    that fall too fast.  With `logdensity_fn`, also for a mode that no chain has visited, and for
    heavy tails of the target itself.

    Not valid when: taken as a proof.  All tests see only where chains have been, and R-hat, the
    effective sample size and the tail index do not use the weights.

    Args:
        result: of any algorithm; of others than levymc's less is known.
        logdensity_fn: log φ of one position, up to a constant; called some 16 000 times.
        max_coordinates: of a position with more, so many are looked at, evenly spaced.

    Returns:
        A `Report`: print it; it is true where nothing looks wrong.

    Raises:
        ValueError, TypeError: an argument that is not what it should be.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, numpy as np
        >>> from levymc import diagnostics
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 2.0)
        >>> starts = jnp.linspace(-3, 3, 4)
        >>> result = levymc.sample(walk, jax.random.key(0), starts, 5000, progress=False)
        >>> bool(diagnostics.check(result))
        True
        >>> still = levymc.Result(np.zeros((4, 100)), np.ones((4, 100)), None)
        >>> print(diagnostics.check(still))
        1 thing looks wrong.
        - stuck: Every chain stayed at one place for up to 100 of 100 draws in a row.
          Try: a smaller step size or scale, and starts where the density is not tiny.
        Note: ...
    """
    if not isinstance(result, Result):
        raise TypeError(
            f"`result` must be a levymc Result, got {type(result).__name__}. For bare arrays use "
            "rhat, ess and tail_index, or make a Result of positions, weights and info."
        )
    most = check_count("max_coordinates", max_coordinates, "It bounds the work.")
    # The draws of a run that explodes overflow; infinite spreads then speak for themselves.
    with np.errstate(over="ignore", invalid="ignore"):
        seen = gather(result, logdensity_fn, most)
        return Report(tuple(_findings(seen)), tuple(_notes(seen)))


def _findings(seen: Evidence) -> Iterator[Finding]:
    if seen.result.num_draws < FEWEST_DRAWS:
        yield Finding(
            "too few draws",
            f"{seen.result.num_draws} draws a chain are too few to tell anything.",
            "more steps, or less thinning.",
        )
        return
    if not seen.is_finite:
        yield Finding(
            "not finite",
            "Some draws are NaN or infinite.",
            "a smaller step size, starts inside the support, and a look at `logdensity_fn` there.",
        )
    of_steps = [
        f for test in (_divergences, _drift, _stuck, _acceptance, _taming) for f in test(seen)
    ]
    yield from of_steps
    if not seen.is_finite or "stuck" in {finding.kind for finding in of_steps}:
        return  # what the draws say has no meaning then
    for test in (_unvisited, _heavy_tails, _disagreement, _few_effective, _weights):
        yield from test(seen)


def _notes(seen: Evidence) -> Iterator[str]:
    result = seen.result
    if result.is_interrupted:
        yield "The run was stopped before its end."
    if not has_arviz():
        yield "ArviZ is not installed, so that R-hat and effective draws were not looked at."
    if len(seen.coordinates) < seen.num_coordinates:
        yield f"{len(seen.coordinates)} of {seen.num_coordinates} coordinates were looked at."
    if result.num_chains == 1:
        yield "One chain has nothing to agree with: run at least four, from starts far apart."
    if np.ptp(result.weights) > 0:
        count = _effective(result.weights)
        yield (
            f"The draws have weights, {count:.0f} equal ones' worth of {result.weights.size}: use "
            "result.expectation and result.mean. R-hat and effective draws do not know of them."
        )
    if seen.logdensity_fn is None:
        yield (
            "A mode that no chain has visited cannot be seen from here: start the chains far "
            "apart, compare with levymc.levy_walk, or give check the `logdensity_fn`."
        )


# Tests of the steps


def _divergences(seen: Evidence) -> Iterator[Finding]:
    divergent = seen.info("is_divergent")
    if divergent is None or not np.any(divergent):
        return
    share = f"{int(np.sum(divergent))} of {divergent.size} draws"
    if not seen.is_levymc:
        yield Finding("divergences", f"{share} diverged.", f"{SMALLER_STEP}.")
    elif seen.is_unadjusted:
        yield Finding(
            "divergences",
            f"{share} had a step that would have left the finite numbers, as the step is too "
            "large where the drift is steep; the chain stayed where it was, so that the draws are "
            "biased.",
            f"{SMALLER_STEP}, or levymc.integrators.tamed() or split() in the place of euler().",
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


def _stuck(seen: Evidence) -> Iterator[Finding]:
    num_draws = seen.result.num_draws
    rates = seen.is_moved.mean(axis=1)
    acceptance = seen.info("acceptance_rate")
    if acceptance is not None:
        rates = np.minimum(rates, acceptance.mean(axis=1))
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
    rate = float(acceptance.mean())
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


# Tests of the draws


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
    noise = [(c, c.increment_tail) for c in seen.coordinates]
    driven = [c for c, tail in noise if tail.index + 2 * tail.standard_error < LEVY_INDEX]
    if not driven:
        return
    axis = None if seen.logdensity_fn is None else heavy_axis(seen, seen.logdensity_fn)
    tail, name = min((c.peak_tail, c.name) for c in driven)
    worst = max(driven, key=lambda c: c.rhat)
    if axis is not None:
        yield Finding(
            "heavy tails",
            f"The target has heavy tails along coordinate {axis} of the position, the noise makes "
            f"jumps, and no Metropolis test was made: {NOT_VALID}.",
            EXACT,
        )
    elif tail.index < HEAVY_INDEX:
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


def _disagreement(seen: Evidence) -> Iterator[Finding]:
    """Chains that tell different things: in separate modes, or on the way."""
    bad = [c for c in seen.coordinates if c.rhat > HIGHEST_RHAT]
    apart = [c for c in bad if c.separation > 1]
    if apart:
        worst = max(apart, key=lambda c: c.separation)
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
    elif bad:
        worst = max(bad, key=lambda c: c.rhat)
        yield Finding(
            "not converged",
            f"The chains do not agree: R-hat of {worst.name} is {worst.rhat:.3f}, above "
            f"{HIGHEST_RHAT}, and so is that of {len(bad)} of {len(seen.coordinates)} coordinates.",
            "more steps, a longer burn-in, or a larger step if R-hat hardly falls.",
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
                "more steps, or a larger step size if most proposals are accepted.",
            )
            return


def _weights(seen: Evidence) -> Iterator[Finding]:
    weights = seen.result.weights
    count = _effective(weights)
    if count < min(LOWEST_ESS, 0.5 * weights.size):
        yield Finding(
            "weights",
            f"The step sizes fall so fast that the weights of {weights.size} draws count as "
            f"{count:.0f}: the first draws decide the weighted estimate.",
            "a schedule that falls more slowly, a burn-in, or a constant step.",
        )


def _effective(weights: np.ndarray) -> float:
    """(Σ w)² / Σ w², the number of equal weights with the same noise."""
    shares = np.asarray(weights, np.float64) / np.sum(weights, dtype=np.float64)
    return float(1 / np.sum(shares**2))
