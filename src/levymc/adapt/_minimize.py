r"""Simulated annealing by Lévy jumps: the lowest minimum of a function of many."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc import stable
from levymc._checks import check_count, check_key, check_scalar_output

from ._relax import Aim, Known, Relaxed, most_evaluations, relax
from ._target import Target, checked_starts

# Chosen on Rastrigin's and Ackley's functions in 10 dimensions and Styblinski and Tang's in 20.
WALKERS = 8
HEAVY, LIGHT = 1.2, 1.8  # α of the jumps from the highest and from the lowest of the walkers
SHORTEST = 1e-2  # jump, in units of the spread of the starts
NUM_SCALES = 6  # from the shortest to the spread
KINDS = ("one coordinate", "all coordinates", "between walkers", "crossing")
FLOOR = 0.4  # of the jumps are of any kind and scale, whatever has succeeded
MEMORY = 0.98  # of what succeeded, from jump to jump
HOTTEST, COLDEST = 0.03, 1e-4  # temperatures, in units of the spread of the first minima
FOLLOWING = 0.1  # the chance that a walker begins anew at a lower one
FLAT = 1e-3  # of the temperature: what a relaxation may leave
FAR = 1e12  # spreads, or times the first values: a function that falls so far has no minimum
LEAST_HEIGHT = 1.0  # of the first values: on a plain that underflows they are no scale
LEAST_BUDGET = 200


class Minimum(NamedTuple):
    """What `minimize` found.

    position: where the function was lowest.  value: that of the function there.
    evaluations: of the function with its gradient.  num_jumps: those that were relaxed.
    times_found: how many of the eight walkers ended as low, to a thousandth of the first
        temperature.  They follow each other, so that all of them is no proof; one alone is a reason
        to spend more.
    """

    position: Any
    value: float
    evaluations: int
    num_jumps: int
    times_found: int


def minimize(function: Any, key: Any, initial_positions: Any, *, budget: int = 20_000) -> Minimum:
    r"""Search for the global minimum of a differentiable function by annealed Lévy jumps.

    For small noise, dX = -∇U dt + ε dL^α is a chain between the minima of U: it waits in one,
    jumps, and follows the gradient to that of the basin where it lands [pavlyukevich2007].  That
    chain is made directly, by eight walkers side by side:

    .. math:: y = \mathrm{relax}\bigl(x + s\, ξ\bigr), \quad ξ \sim SαS(1), \qquad
       x' = y \text{ with probability } \min\bigl(1, e^{-(U(y) - U(x))/T_n}\bigr),

    T_n falling geometrically.  With one α and no test the chain would prefer wide basins to deep
    ones; the test is the cure, and jumps are heavier from high minima (α = 1.2) than from low ones
    (1.8).  One coordinate jumps, or all, or along the way between two walkers, or some coordinates
    become those of another walker; which of these, and how far, is learned from what succeeds.  A
    relaxation begins with the curvature that the walker's last one found, and ends as soon as it is
    not foreseen to pass the test.  The lowest point is relaxed to rounding in the end.

    Targets: the lowest minimum that it meets; nothing tells whether there is a lower one.

    Not valid when: the function has no gradient, or is unbounded below (that is refused where it
    is seen).  For a convex function any local method is cheaper.  Of fifteen standard functions
    it found the lowest value in 0.53 of the searches, and SciPy's ``basinhopping`` in 0.62, each
    ahead on some (the experiment `annealing`): try that one first.

    Args:
        function: U, a real number, of any pytree; differentiable by JAX.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the starts along their first axis.  Their
            spread is the scale of the jumps: scatter them over where the minimum may be.  The
            walkers begin at the eight lowest; if there are fewer, at jumps away from them, too.
        budget: evaluations of the function, each with its gradient, which are not exceeded.

    Returns:
        `Minimum`.

    Raises:
        ValueError, TypeError: an argument outside its range; a function that is NaN or infinite at
            every start, or that falls further than 1e12, and 1e12 times further than its starts
            are apart or high.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> def rastrigin(x):
        ...     return jnp.sum(x**2 + 10 - 10 * jnp.cos(2 * jnp.pi * x))
        >>> starts = jax.random.uniform(jax.random.key(0), (16, 5), minval=-5.12, maxval=5.12)
        >>> found = levymc.minimize(rastrigin, jax.random.key(1), starts)
        >>> found.value < 1e-4, bool(jnp.all(jnp.abs(found.position) < 1e-2))
        (True, True)

    References: [simsekli2017], section 5, direction (i); [pavlyukevich2007].  Departures: the paper
    names the use and derives nothing; see docs/directions.md.
    """
    key = check_key(key)
    check_count(
        "budget", budget, "It is a number of evaluations, such as 20_000.", least=LEAST_BUDGET
    )
    positions = checked_starts(initial_positions)
    first = jax.tree.map(lambda leaf: leaf[0], positions)
    check_scalar_output("function", function, first)
    target = Target(_Negative(function), first)
    walk = _Walk(target, key, target.flattened(positions), budget)
    while walk.has_budget:
        walk.jump()
    return walk.lowest()


@dataclass(frozen=True)
class _Negative:
    """-U, equal for equal U, so that what is compiled for it is found again."""

    function: Any

    def __call__(self, position: Any) -> Any:
        return -self.function(position)


class _Walk:
    """The walkers: where they are, how low, and what has brought them down."""

    def __init__(self, target: Target, key: Any, starts: np.ndarray, budget: int) -> None:
        self.target, self.key, self.count = target, key, 0
        self.dimension = starts.shape[1]
        self.polish = min(most_evaluations(self.dimension), budget // 10)
        self.budget = budget - self.polish
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
        self.spread = _spread(starts)
        self.rewards = np.ones((len(KINDS), NUM_SCALES))
        self._begin(starts[: max(WALKERS, budget // 10)])

    def _begin(self, starts: np.ndarray) -> None:
        """Relax from the lowest starts; if they are few, from jumps away from them, too."""
        more = np.resize(starts, (max(WALKERS - len(starts), 0), self.dimension))
        away = self._noise(np.full(WALKERS, LIGHT))[: len(more)] * self.spread
        tried = np.concatenate([starts, more + away])
        values = -self.target.values(tried)
        if not np.any(np.isfinite(values)):
            raise ValueError(
                f"`function` must be finite at a start, got none of {len(starts)}. "
                "Start where it is."
            )
        self.height = float(np.max(np.abs(values[np.isfinite(values)])))
        shape = (WALKERS, self.dimension, self.dimension)
        first = np.broadcast_to(np.diag((SHORTEST * self.spread) ** 2), shape)
        self.inverses = jnp.asarray(first, self.target.dtype)
        self.is_learned = np.zeros(WALKERS, bool)
        self.flat = FLAT * HOTTEST * _range(values)
        self.best, self.least, self.its_inverse = tried[0], np.inf, self.inverses[0]
        lowest = tried[np.argsort(values)[:WALKERS]]
        found, self.values = self._relaxed(lowest, np.full(WALKERS, np.inf))
        self.points, self.inverses = found.point, found.inverse
        self.is_learned[:] = True
        self.count = WALKERS
        self.hottest = HOTTEST * _range(self.values)

    @property
    def has_budget(self) -> bool:
        return self.budget - self.target.evaluations >= 2 * WALKERS

    def _relaxed(self, points: np.ndarray, levels: np.ndarray) -> tuple[Relaxed, np.ndarray]:
        """Down from these points, or as far as shows that a level will not be reached."""
        left = (self.budget - self.target.evaluations) // WALKERS
        aim = Aim(
            self.inverses,
            self.is_learned,
            np.full(WALKERS, self.flat),
            -levels,
            np.full(WALKERS, min(most_evaluations(self.dimension), left)),
        )
        found = relax(self.target, points, aim, _none_known(self.dimension))
        values = np.where(np.isfinite(found.value), -found.value, np.inf)
        place = int(np.argmin(values))
        if values[place] < self.least:
            self.best, self.least = found.point[place], float(values[place])
            self.its_inverse = found.inverse[place]
            self._refuse_unbounded()
        return found, values

    def _refuse_unbounded(self) -> None:
        distance = np.max(np.abs(self.best) / self.spread)
        if distance > FAR or self.least < -FAR * max(self.height, LEAST_HEIGHT):
            raise ValueError(
                f"`function` must be bounded below, got {self.least:.3g} at "
                f"{self.best.tolist()!s:.200}, still falling. Give one that has a minimum."
            )

    def jump(self) -> None:
        """One jump of every walker, relaxed and tested."""
        progress = self.target.evaluations / self.budget
        temperature = self.hottest * (COLDEST / HOTTEST) ** progress
        self.flat = FLAT * temperature
        kinds, sizes = self._chosen()
        levels = self.values + temperature * self.rng.exponential(size=WALKERS)
        found, values = self._relaxed(self.points + self._jumps(kinds, sizes), levels)
        is_made = values <= levels
        self.rewards *= MEMORY
        is_lower = values < self.values - self.flat
        np.add.at(self.rewards, (kinds, sizes), is_lower / np.maximum(found.evaluations, 1) * 10)
        self.points = np.where(is_made[:, None], found.point, self.points)
        self.values = np.where(is_made, values, self.values)
        self.inverses = jnp.where(is_made[:, None, None], found.inverse, self.inverses)
        self.count += WALKERS
        self._follow()

    def _chosen(self) -> tuple[np.ndarray, np.ndarray]:
        """Kind and scale of each walker's jump, by what has succeeded."""
        share = self.rewards / self.rewards.sum()
        share = FLOOR / share.size + (1 - FLOOR) * share
        places = self.rng.choice(share.size, WALKERS, p=(share / share.sum()).ravel())
        return np.unravel_index(places, share.shape)  # type: ignore[return-value]

    def _noise(self, alpha: np.ndarray) -> np.ndarray:
        key = jax.random.fold_in(self.key, self.count)
        shape = (WALKERS, self.dimension)
        return np.asarray(stable.sample(key, alpha[:, None], shape), np.float64)

    def _jumps(self, kinds: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        rank = np.argsort(np.argsort(-self.values)) / (WALKERS - 1)  # 0 is the highest
        noise = self._noise(HEAVY + (LIGHT - HEAVY) * rank)
        scale = SHORTEST ** (1 - sizes / (NUM_SCALES - 1))
        each = scale[:, None] * self.spread * noise
        places = self.rng.integers(self.dimension, size=WALKERS)
        one = np.arange(self.dimension) == places[:, None]
        pairs = np.array([self.rng.choice(WALKERS, 2, replace=False) for _ in range(WALKERS)])
        along = (
            scale[:, None] * noise[:, :1] * (self.points[pairs[:, 0]] - self.points[pairs[:, 1]])
        )
        is_taken = self.rng.random(each.shape) < scale[:, None]
        crossing = np.where(is_taken | one, self.points[pairs[:, 0]] - self.points, 0.0)
        return np.choose(kinds[:, None], [np.where(one, each, 0.0), each, along, crossing])

    def _follow(self) -> None:
        """Some walkers begin anew where a lower one is."""
        leaders = self.rng.integers(WALKERS, size=WALKERS)
        follows = (self.rng.random(WALKERS) < FOLLOWING) & (self.values[leaders] < self.values)
        sources = np.where(follows, leaders, np.arange(WALKERS))
        self.points, self.values = self.points[sources], self.values[sources]
        self.inverses = self.inverses[sources]

    def lowest(self) -> Minimum:
        """The best, relaxed as far as rounding allows."""
        close = FLAT * self.hottest
        times_found = int(np.sum(self.values <= self.least + close))
        self._finish()
        position = jax.tree.map(lambda leaf: leaf[0], self.target.positions(self.best[None]))
        return Minimum(position, self.least, self.target.evaluations, self.count, times_found)

    def _finish(self) -> None:
        points = np.full((WALKERS, self.dimension), np.nan)
        points[0] = self.best
        self.inverses = self.inverses.at[0].set(self.its_inverse)
        self.flat = 4 * float(jnp.finfo(self.target.dtype).eps) * abs(self.least)
        self.budget += self.polish * WALKERS
        self._relaxed(points, np.full(WALKERS, np.inf))
        self.target.evaluations -= WALKERS - 1


def _none_known(dimension: int) -> Known:
    return Known(np.full((1, dimension), np.nan), np.zeros((1, dimension, dimension)), np.zeros(1))


def _range(values: np.ndarray) -> float:
    """Between the quartiles; or, where they are alike, what rounding may do to one of them."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.25, 0.75])
    return max(float(high - low), 1e-6 * float(np.max(np.abs(known))), 1e-30)


def _spread(starts: np.ndarray) -> np.ndarray:
    """Of the starts, coordinate by coordinate; where they are all alike, that of one."""
    range_ = np.ptp(starts, axis=0)
    size = np.maximum(np.max(np.abs(starts), axis=0), 1.0)
    return np.where(range_ > 1e-9 * size, range_, size)
