"""One question to ask of every run: what looks wrong, and what to try."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from levymc._checks import check_count
from levymc.drifts import LogDensity
from levymc.run import Result

from ._convergence import has_arviz
from ._draw_findings import draw_findings, effective
from ._evidence import FEWEST_DRAWS, Evidence, gather
from ._report import Finding, Report
from ._step_findings import refusals, step_findings


def check(
    result: Any,
    logdensity_fn: LogDensity | None = None,
    *,
    max_coordinates: Any = 50,
) -> Report:
    """Report in plain words what looks wrong with a run, and what to try.

    Looks for: chains that are stuck; divergences; steps too large or too small, beside the noise
    and the width of the target; chains in separate modes, or not converged (R-hat > 1.01); draws
    that change from start to end, or from the first half to the second; fewer than 400 effective
    draws; heavy-tailed draws without a Metropolis test, the mark of FLA, which is not valid on
    heavy-tailed targets; weights that fall too fast.  With `logdensity_fn`, also for a mode that no
    chain has visited, for heavy tails of the target itself, and for draws that are wider or
    narrower than the slopes of log φ say.

    R-hat, the effective sample size and the comparison of start and end use the weights; the tail
    index does not.  An exact algorithm (levymc.mafla, levymc.levy_walk) is not blamed for refusing
    a proposal outside the support.  The warnings of levymc.auto are repeated.

    False alarms: start against end, and the slopes, one in a thousand good runs each (nominal:
    normal approximations with the chains' own autocorrelation); the others have fixed bounds.  In
    benchmarks/check_table.py the whole is measured on 40 runs.

    Not valid when: taken as a proof.  All tests see only where chains have been.

    Args:
        result: of any algorithm; of others than levymc's less is known.
        logdensity_fn: log φ of one position, up to a constant; called some 16 000 times, its
            gradient some 2000 times.
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
    if result.positions is not None and not result.num_draws:
        empty = (*_own_warnings(result), _too_few(result))
        return Report(empty, (), result.algorithm, result.is_exact)
    # The draws of a run that explodes overflow; infinite spreads then speak for themselves.
    with np.errstate(over="ignore", invalid="ignore"):
        seen = gather(result, logdensity_fn, most)
        findings, notes = (*_own_warnings(result), *_findings(seen)), tuple(_notes(seen))
    missing = () if has_arviz() else ("R-hat", "effective draws")
    return Report(findings, notes, result.algorithm, seen.is_exact, missing)


def _own_warnings(result: Result) -> Iterator[Finding]:
    """What made the run knows more of it than its draws show, as levymc.auto does."""
    for sentence in getattr(result, "warnings", ()):
        yield Finding("warned", sentence, "what `result.report` advises.")


def _too_few(result: Result) -> Finding:
    return Finding(
        "too few draws",
        f"{result.num_draws} draws a chain are too few to tell anything.",
        "more steps, or less thinning.",
    )


def _findings(seen: Evidence) -> Iterator[Finding]:
    if seen.result.num_draws < FEWEST_DRAWS:
        yield _too_few(seen.result)
        return
    if not seen.is_finite:
        yield Finding(
            "not finite",
            "Some draws are NaN or infinite.",
            "a smaller step size, starts inside the support, and a look at `logdensity_fn` there.",
        )
    of_steps = list(step_findings(seen))
    yield from of_steps
    # What the draws say has no meaning where they are not finite, or all at one place.
    if seen.is_finite and "stuck" not in {finding.kind for finding in of_steps}:
        yield from draw_findings(seen)


def _notes(seen: Evidence) -> Iterator[str]:
    result = seen.result
    if result.is_interrupted:
        yield "The run was stopped before its end."
    refused = refusals(seen)
    if refused and seen.info("energy") is not None:
        yield (
            f"{refused} of {result.weights.size} draws had a trajectory that diverged, or met a "
            f"gradient that is not finite; it was refused: {result.algorithm} stays exact, but may "
            "reach what is behind too rarely."
        )
    elif refused:
        yield (
            f"{refused} of {result.weights.size} draws had a proposal where log φ or the step is "
            f"not finite; it was refused, as is right: {result.algorithm} stays exact."
        )
    if not has_arviz():
        yield "ArviZ is not installed, so that R-hat and effective draws were not looked at."
    if len(seen.coordinates) < seen.num_coordinates:
        yield f"{len(seen.coordinates)} of {seen.num_coordinates} coordinates were looked at."
    if result.num_chains == 1:
        yield "One chain has nothing to agree with: run at least four, from starts far apart."
    if np.ptp(result.weights) > 0:
        count = effective(result.weights)
        yield (
            f"The draws have weights, {count:.0f} equal ones' worth of {result.weights.size}: use "
            "result.expectation and result.mean. R-hat and effective draws know of them."
        )
    if seen.is_unadjusted and (seen.thinning or 0) > 1:
        yield (
            "The run is thinned, so that a step too large for the target is seen only if it is far "
            "too large, unless check is given the `logdensity_fn`."
        )
    if seen.logdensity_fn is None:
        yield (
            "A mode that no chain has visited cannot be seen from here: start the chains far "
            "apart, compare with levymc.levy_walk, or give check the `logdensity_fn`."
        )
