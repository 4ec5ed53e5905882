"""The weighted estimator along a run, and slopes of its errors with their bootstrap errors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from levymc import iterate, observe, schedules
from levymc.algorithms import Algorithm

NUM_BOOTSTRAPS = 400


def weighted_estimates(
    sampler: Algorithm,
    schedule: schedules.Schedule,
    functions: Callable[[Any], Any],
    starts: Any,
    lengths: np.ndarray,
    key: Any,
) -> dict[str, np.ndarray]:
    """ν_N(g) for each N of `lengths`, g and start, and the times H_N.

    functions: of a position, all g of it in one vector.
    """
    last = int(lengths[-1])
    observers = {"means": observe.mean(functions)}
    visits = iterate(sampler, key, starts, last, at=lengths, observe=observers)
    found = [np.asarray(visit.observed["means"]).T for visit in visits]
    sizes = np.broadcast_to(schedule(np.arange(1, last + 1)), last)
    return {"estimates": np.stack(found), "time": np.cumsum(sizes)[lengths - 1]}


def fitted_slope(
    x: np.ndarray,
    parts: Sequence[Float[np.ndarray, "place repeat"]],
    statistic: Callable[[np.ndarray], np.ndarray],
) -> tuple[float, float]:
    """Slope of the log of a statistic over the repeats against log x, and its bootstrap error.

    x: one number for each place, those of all parts one after the other.
    parts: samples of their own repeats each.
    statistic: of an array, over its last axis.
    """
    rng = np.random.default_rng(0)
    drawn = [
        part[:, rng.integers(part.shape[1], size=(NUM_BOOTSTRAPS, part.shape[1]))] for part in parts
    ]
    logs = np.log(x)
    once = np.log(np.concatenate([statistic(part) for part in parts]))
    again = np.log(np.concatenate([statistic(part) for part in drawn]))
    return float(np.polyfit(logs, once, 1)[0]), float(np.polyfit(logs, again, 1)[0].std())
