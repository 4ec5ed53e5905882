"""`levymc.minimize` and its peers, each with so many evaluations and no more.

An evaluation is of the function, or of it with its gradient.  A peer whose search ends before its
evaluations do begins anew, at another place.

Differential evolution has 15 members for each variable by default, with which a budget of 10 000
makes 13 generations in 50 dimensions.  Here it has as many as leave `GENERATIONS`.  And it would
never come to its polish, by L-BFGS-B from the best member with differences for a gradient, because
its evaluations end before: as many as `POLISH` such gradients need are kept for it.  It ends where
its members are alike to a thousandth; with SciPy's hundredth it would on Ackley's function after
the first generation, as all random places are as bad.

Basin hopping keeps SciPy's T = 1, whatever the units of the function.  Taken from the spread of the
first minima (a tenth or a fiftieth of it on four functions, all of it on others) T found no minimum
more often, and that of the rotated Rastrigin function less.

What remains: `levymc.minimize` and differential evolution know the budget.  The others do not: dual
annealing cools by its number of iterations, of which it makes at most a hundred in 50 dimensions
out of the thousand of its schedule.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

import levymc

from ._landscapes import Landscape

NUM_STARTS = 16
HOP = 0.1  # of the box: the first length of basin hopping, which it adapts
FIRST_WIDTH = 0.25  # of the box: that of CMA-ES, as its manual advises
WORST = 1e300  # instead of NaN and infinity, which not all peers take
MOST_RESTARTS = 1000
GENERATIONS = 100  # of differential evolution, at least, where a member for each variable allows it
ALIKE = 1e-3  # spread of its members, relative to their mean, at which it ends
POLISH = 30  # gradients by differences
POLISH_SHARE = 0.2  # of the evaluations, at most


class Found(NamedTuple):
    """The lowest value, and how many evaluations were made."""

    value: float
    evaluations: int


class _SpentError(Exception):
    """All evaluations are made: ends a search from inside."""


class _Counted:
    """A landscape as SciPy calls it, which counts, remembers the lowest, and ends the search.

    The gradient where the value was asked for last costs nothing.
    """

    def __init__(self, landscape: Landscape, budget: int) -> None:
        self.packed, self.limit = _compiled(landscape.function), budget
        self.count, self.lowest = 0, np.inf
        self.best: tuple[float, np.ndarray] = (np.inf, np.zeros(0))
        self.place: np.ndarray | None = None
        self.there: tuple[float, np.ndarray] = (np.inf, np.zeros(0))

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self.place is None or not np.array_equal(self.place, x):
            self._evaluate(np.array(x, float))
        return self.there

    def _evaluate(self, x: np.ndarray) -> None:
        if self.count >= self.limit:
            raise _SpentError
        self.count += 1
        found = np.array(self.packed(x))  # a copy: some peers write into the gradient
        value = float(found[0])
        self.lowest = min(self.lowest, value)
        if value < self.best[0]:
            self.best = value, x
        self.place, self.there = x, (value, found[1:])

    def value(self, x: np.ndarray) -> float:
        return self.value_and_gradient(x)[0]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.value_and_gradient(x)[1]


@lru_cache(maxsize=32)
def _compiled(function: Any) -> Any:
    """Value and gradient in one array, finite: two, or a test outside, take twice the time."""

    def packed(x: Any) -> Any:
        value, gradient = jax.value_and_grad(function)(x)
        worst = jnp.nan_to_num(value, nan=WORST, posinf=WORST)
        return jnp.concatenate([worst[None], jnp.nan_to_num(gradient)])

    return jax.jit(packed)


def _levy_jumps(landscape: Landscape, key: Any, budget: int) -> Found:
    key_starts, key_run = jax.random.split(key)
    low, high = landscape.box
    starts = jax.random.uniform(
        key_starts, (NUM_STARTS, landscape.dimension), minval=low, maxval=high
    )
    found = levymc.minimize(landscape.function, key_run, jnp.asarray(starts), budget=budget)
    return Found(found.value, found.evaluations)


def _dual_annealing(landscape: Landscape, counted: _Counted, rng: Any) -> None:
    boxes = list(zip(*landscape.box, strict=True))
    local = {"method": "L-BFGS-B", "jac": counted.gradient, "bounds": boxes}
    optimize.dual_annealing(counted.value, boxes, maxfun=10**9, minimizer_kwargs=local, rng=rng)


def _basin_hopping(landscape: Landscape, counted: _Counted, rng: Any) -> None:
    low, high = landscape.box
    optimize.basinhopping(
        counted.value_and_gradient,
        rng.uniform(low, high),
        niter=1000,
        stepsize=HOP * float(np.mean(high - low)),
        minimizer_kwargs={"method": "L-BFGS-B", "jac": True},
        rng=rng,
    )


def _differential_evolution(landscape: Landscape, counted: _Counted, rng: Any) -> None:
    boxes, dimension = list(zip(*landscape.box, strict=True)), landscape.dimension
    end, left = counted.limit, counted.limit - counted.count
    reserve = min(POLISH * (dimension + 1), int(POLISH_SHARE * left))
    members = int(np.clip((left - reserve) // (GENERATIONS * dimension), 1, 15))
    counted.limit, counted.best = end - reserve, (np.inf, np.zeros(0))
    try:
        options = {"maxiter": 10**6, "popsize": members, "polish": False, "tol": ALIKE}
        optimize.differential_evolution(counted.value, boxes, **options, rng=rng)
    except _SpentError:
        pass
    finally:
        counted.limit = end
    if counted.best[1].size:
        optimize.minimize(counted.value, counted.best[1], method="L-BFGS-B", bounds=boxes)


def _cma_es(landscape: Landscape, counted: _Counted, rng: Any) -> None:
    import cma

    low, high = landscape.box
    options = {"verbose": -9, "seed": int(rng.integers(1, 2**31)), "CMA_stds": high - low}
    cma.fmin2(
        counted.value,
        lambda: rng.uniform(low, high),
        FIRST_WIDTH,
        options,
        restarts=9,
        bipop=True,
    )


PEERS: dict[str, Callable[[Landscape, _Counted, Any], None]] = {
    "dual annealing": _dual_annealing,
    "basin hopping": _basin_hopping,
    "differential evolution": _differential_evolution,
    "CMA-ES": _cma_es,
}
OURS = "levymc.minimize"
METHODS = (OURS, *PEERS)
WITHOUT_GRADIENTS = ("differential evolution", "CMA-ES")


def missing(method: str) -> str:
    """Why a method cannot be run, or nothing."""
    if method == "CMA-ES" and find_spec("cma") is None:
        return "CMA-ES needs the package cma: pip install cma."
    return ""


def search(method: str, landscape: Landscape, key: Any, budget: int) -> Found:
    """Let a method search a landscape with so many evaluations."""
    if method == OURS:
        return _levy_jumps(landscape, key, budget)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    counted = _Counted(landscape, budget)
    try:
        for _ in range(MOST_RESTARTS):
            PEERS[method](landscape, counted, rng)
    except _SpentError:
        pass
    return Found(counted.lowest, counted.count)
