r"""H1: steps that vanish, and whose sum does not converge."""

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import is_traced
from levymc.schedules import Constant, Cyclical, Polynomial, as_schedule

from ._answer import Answer, proved, seen

LARGEST = "Programs count steps up to 2³¹ - 1: from there on η_n stays what it is."
OCTAVES = 31  # n = 1, …, 2³¹ - 1
LAST = 10  # octaves that trends are fitted to
SAMPLES = 64  # of n in an octave, at the same relative places: in a power law they cancel
# η = 1/log n falls by 0.06 in the logarithm an octave there, as fast as the sum of 1/(n log n).
LEVEL = 0.02
STEEP = 0.2  # slower than this, 1/(n log n) and 1/(n log² n) are not to be told apart


def check_schedule(schedule: Any) -> Answer:
    r"""H1, what the weighted estimator needs of its steps:

    .. math:: \lim_n η_n = 0, \qquad \sum_n η_n = ∞ .

    Of the schedules in `levymc.schedules` the answer is proved.  Of any other function nothing can
    be: it is asked for 64 steps of each octave up to n = 2³¹ - 1, and the trends of the largest and
    of their sum over the last ten octaves say what it looks like.

    Args:
        schedule: a number or a function of n, as `step_size` of a sampler.

    Returns:
        `exponent`, `total` (the sum of all steps, the time that a chain ever has) for `polynomial`;
        for other functions the exponents `size` and `octave` of η_n and of its sum over an octave.

    Raises:
        ValueError, TypeError: what no sampler would take as a step size.

    Examples:
        >>> from levymc import schedules, theory
        >>> theory.check_schedule(schedules.polynomial(1.0, 0.6)).holds
        True
        >>> answer = theory.check_schedule(schedules.polynomial(1.0, 3.0))
        >>> answer.holds, round(answer.numbers["total"], 3)
        (False, 1.202)
        >>> print(theory.check_schedule(lambda n: 0.1 / n**0.5).looks)
        True

    References: [simsekli2017], H1.
    """
    made = as_schedule(schedule)
    if is_traced(made):
        return seen("H1", None, "The schedule's numbers are traced.", "Ask outside of jax.jit.")
    return _answer(made)


@singledispatch
def _answer(schedule: Any) -> Answer:
    """Of a function that nothing is known of."""
    first, sizes = _sampled(schedule)
    with np.errstate(divide="ignore"):
        size = _trend(np.log2(sizes.max(axis=1)))
        octave = _trend(np.log2(sizes.mean(axis=1) * first))
    vanishes = size < -LEVEL
    diverges = True if octave >= -LEVEL else False if octave < -STEEP else None
    looks = False if not vanishes else diverges
    return seen(
        "H1",
        looks,
        f"Towards n = 2³¹, η_n changes like n^{size:.3g} and its sum from n to 2n like "
        f"n^{octave:.3g}: {_told(vanishes, diverges)}.",
        "Of a function only values at finitely many n are known, and logarithms are not seen.",
        size=size,
        octave=octave,
    )


def _told(vanishes: bool, diverges: bool | None) -> str:
    sums = {True: "grows without bound", False: "stays finite", None: "may do either"}
    size = "falls to zero" if vanishes else "does not fall to zero"
    return f"it {size}, and its sum {sums[diverges]}"


@_answer.register
def _(schedule: Constant) -> Answer:
    return proved(
        "H1",
        False,
        "A constant step does not fall to zero: the sum is infinite, the bias of the step stays.",
        eta=float(np.max(schedule.eta)),
    )


@_answer.register
def _(schedule: Polynomial) -> Answer:
    exponent = float(np.max(schedule.b))
    if exponent <= 1:
        words = f"η_n = (a/n)^b with b = {exponent:g} ≤ 1: its sum is infinite."
        return proved("H1", True, words, LARGEST, exponent=exponent, total=np.inf)
    from scipy.special import zeta  # takes a third of a second

    with np.errstate(over="ignore"):
        total = float(
            np.max(np.asarray(schedule.a) ** np.asarray(schedule.b) * zeta(schedule.b, 1))
        )
    words = (
        f"η_n = (a/n)^b with b = {exponent:g} > 1: all steps together are {total:.4g} units of "
        "time, and a chain gets no further. Take b ≤ 1."
    )
    return proved("H1", False, words, exponent=exponent, total=total)


@_answer.register
def _(schedule: Cyclical) -> Answer:
    return proved(
        "H1",
        False,
        f"Every {int(schedule.period)} steps it begins anew with a step of {float(schedule.a):g}: "
        "it does not fall to zero.",
        eta=float(schedule.a),
    )


def _sampled(schedule: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first n of each octave, and η at places in it that no period of two shares."""
    places = np.modf(np.arange(SAMPLES) * (np.sqrt(5) - 1) / 2)[0]
    first = 2.0 ** np.arange(OCTAVES)
    steps = np.floor(first[:, None] * (1 + places)).astype(np.int32)
    found = jax.jit(jax.vmap(schedule))(jnp.asarray(steps.ravel()))
    sizes = np.broadcast_to(found, steps.size).reshape(steps.shape).astype(np.float64)
    wrong = ~(np.isfinite(sizes) & (sizes >= 0))
    if np.any(wrong):
        raise ValueError(
            f"`schedule` must be positive and finite at every step, got {sizes[wrong][0]:g} at "
            f"step {steps[wrong][0]}. H1 is about steps that a sampler takes."
        )
    return first, sizes  # zero is what falls below all floats


def _trend(logs: np.ndarray) -> float:
    """Slope over the last octaves, -inf if the last value is zero."""
    late = logs[-LAST:]
    if not np.all(np.isfinite(late)):
        return -np.inf if late[-1] == -np.inf else np.inf
    return float(np.polyfit(np.arange(late.size), late, 1)[0])
