"""One question to ask of every run: what looks wrong, and what to try."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from levymc._checks import check_count
from levymc.run import Result

from . import _agreement, _steps
from ._convergence import has_arviz
from ._evidence import Evidence, gather
from ._heavy import heavy_tails
from ._probe import unvisited
from ._report import Finding, Report

FEWEST_DRAWS = 20  # of a chain: below, no test of the draws means anything

OF_STEPS = (_steps.divergences, _steps.stuck, _steps.acceptance, _steps.taming)
OF_DRAWS = (
    _agreement.disagreement,
    _agreement.few_effective,
    _agreement.weights,
)


def check(
    result: Any,
    logdensity_fn: Callable[[Any], Any] | None = None,
    *,
    max_coordinates: Any = 50,
) -> Report:
    """Say in plain words what looks wrong with a run, and what to try.

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
        seen = gather(result, most, FEWEST_DRAWS)
        return Report(tuple(_findings(seen, logdensity_fn)), tuple(_notes(seen, logdensity_fn)))


def _findings(seen: Evidence, logdensity_fn: Callable[[Any], Any] | None) -> Iterator[Finding]:
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
    of_steps = [finding for test in OF_STEPS for finding in test(seen)]
    yield from of_steps
    if not seen.is_finite or "stuck" in {finding.kind for finding in of_steps}:
        return  # what the draws say has no meaning then
    if logdensity_fn is not None:
        yield from unvisited(seen.result, logdensity_fn)
    yield from heavy_tails(seen, logdensity_fn)
    for test in OF_DRAWS:
        yield from test(seen)


def _notes(seen: Evidence, logdensity_fn: Any) -> Iterator[str]:
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
        count = _agreement.effective_weights(result.weights)
        yield (
            f"The draws have weights, {count:.0f} equal ones' worth of {result.weights.size}: use "
            "result.expectation and result.mean. R-hat and effective draws do not know of them."
        )
    if logdensity_fn is None:
        yield (
            "A mode that no chain has visited cannot be seen from here: start the chains far "
            "apart, compare with levymc.levy_walk, or give check the `logdensity_fn`."
        )
