r"""Simulated annealing by Lévy jumps: the lowest minimum of a function of many."""

from typing import Any, NamedTuple

import jax
import numpy as np

from levymc import stable
from levymc._checks import check_count, check_floating, check_key, check_scalar_output

from ._relax import LOST, Known, Relaxed, relax
from ._target import Target

WALKERS = 16
HEAVY, LIGHT = 1.2, 1.8  # α of the jumps from the highest and from the lowest of the walkers
SHORTEST = 1e-3  # jump, in units of the spread of what is known
NUM_SCALES = 8  # from the shortest to twice the spread
KINDS = ("one coordinate", "all coordinates", "between walkers")
FLOOR = 0.02  # of the share of each kind and scale of jump
MEMORY = 0.98  # of what succeeded, from jump to jump
COLDEST = 1e-3  # of the first temperature, in the end
FOLLOWING = 0.05  # the chance that a walker begins anew at a lower one
LEAST_BUDGET = 200


class Minimum(NamedTuple):
    """What `minimize` found.

    position: where the function was lowest.  value: that of the function there.
    evaluations: of the function with its gradient.  num_jumps: those that were relaxed.
    times_found: how many of the walkers ended within 1e-6 of the range of values of it; one alone
        is a reason to spend more.
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
    chain is made directly, by sixteen walkers side by side:

    .. math:: y = \mathrm{relax}\bigl(x + s\, ξ\bigr), \quad ξ \sim SαS(1), \qquad
       x' = y \text{ with probability } \min\bigl(1, e^{-(U(y) - U(x))/T_n}\bigr),

    T_n falling geometrically.  With one α and no test the chain would prefer wide basins to deep
    ones; the test is the cure, and jumps are heavier from high minima (α = 1.2) than from low ones
    (1.8).  One coordinate jumps, or all, or along the way from one walker to another; which of
    these, and how far, is learned from what succeeds.

    Targets: the lowest minimum that it meets; nothing tells whether there is a lower one.  Not
    valid when: the function has no gradient, or is unbounded below (that is refused where it is
    seen).  For a convex function any local method is cheaper.

    Args:
        function: U, a real number, of any pytree; differentiable by JAX.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the starts along their first axis.  Their
            spread is the scale of the longest jumps: scatter them over where the minimum may be.
        budget: evaluations of the function, each with its gradient; kept to one batch of
            relaxations.

    Returns:
        `Minimum`.

    Raises:
        ValueError, TypeError: an argument outside its range; a function that is NaN or infinite at
            every start, or that falls to -inf.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> def rastrigin(x):
        ...     return jnp.sum(x**2 + 10 - 10 * jnp.cos(2 * jnp.pi * x))
        >>> starts = jax.random.uniform(jax.random.key(0), (16, 5), minval=-5.12, maxval=5.12)
        >>> found = levymc.minimize(rastrigin, jax.random.key(1), starts)
        >>> round(found.value, 6), found.position.round(3).tolist()
        (0.0, [0.0, 0.0, 0.0, 0.0, 0.0])

    References: [simsekli2017], section 5, direction (i); [pavlyukevich2007].  Departures: the paper
    names the use and derives nothing; see docs/directions.md.
    """
    key = check_key(key)
    check_count(
        "budget", budget, "It is a number of evaluations, such as 20_000.", least=LEAST_BUDGET
    )
    check_floating("initial_positions", initial_positions)
    first = jax.tree.map(lambda leaf: leaf[0], initial_positions)
    check_scalar_output("function", function, first)
    target = Target(_negative(function), first)
    walk = _Walk(target, key, target.flattened(initial_positions))
    while target.evaluations < budget:
        walk.jump(target.evaluations / budget)
    return walk.lowest(initial_positions)


class _Negative(NamedTuple):
    """-U, one object for one U, so that what is compiled for it is found again."""

    function: Any

    def __call__(self, position: Any) -> Any:
        return -self.function(position)


def _negative(function: Any) -> Any:
    return _Negative(function)


class _Walk:
    """The walkers: where they are, how low, and what has brought them down."""

    def __init__(self, target: Target, key: Any, starts: np.ndarray) -> None:
        self.target, self.key, self.count = target, key, 0
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
        begun = starts[np.resize(np.arange(len(starts)), WALKERS)]
        self.spread = _spread(starts)
        found = self._relaxed(begun)
        if not np.any(np.isfinite(found.value)):
            raise ValueError(
                f"`function` must be finite at a start, got none among {len(starts)}. "
                "Start where it is."
            )
        self.points, self.values = (
            found.point,
            np.where(np.isfinite(found.value), -found.value, np.inf),
        )
        self.best, self.least = self.points[np.argmin(self.values)], float(np.min(self.values))
        self.rewards = np.ones((len(KINDS), NUM_SCALES))
        self.hottest = max(float(np.subtract(*np.quantile(self._finite(), [0.75, 0.25]))), 1e-12)

    def _finite(self) -> np.ndarray:
        return self.values[np.isfinite(self.values)]

    def _relaxed(self, points: np.ndarray) -> Relaxed:
        dimension = points.shape[1]
        none_known = Known(np.full((1, dimension), np.nan), np.zeros((1, dimension, dimension)))
        scales = np.full(WALKERS, SHORTEST * float(np.mean(self.spread)))
        found = relax(self.target, points, scales, none_known)
        if np.any(found.value == np.inf):
            where = found.point[np.argmax(found.value)].tolist()
            raise ValueError(
                f"`function` must be bounded below, got -inf at {where!s:.200}. "
                "Give one that has a minimum."
            )
        return found

    def jump(self, progress: float) -> None:
        """One jump of every walker, relaxed and tested."""
        kinds, sizes = self._chosen()
        found = self._relaxed(self.points + self._jumps(kinds, sizes))
        values = np.where(found.outcome == LOST, np.inf, -found.value)
        temperature = self.hottest * COLDEST**progress
        with np.errstate(over="ignore", invalid="ignore"):
            chance = np.exp(np.minimum(0.0, (self.values - values) / temperature))
        is_made = self.rng.random(WALKERS) < np.nan_to_num(chance)
        is_lower = values < self.values - 0.1 * temperature
        self.rewards *= MEMORY
        np.add.at(self.rewards, (kinds, sizes), is_lower.astype(float))
        self.points = np.where(is_made[:, None], found.point, self.points)
        self.values = np.where(is_made, values, self.values)
        self.count += WALKERS
        if np.min(values) < self.least:
            self.best, self.least = found.point[np.argmin(values)], float(np.min(values))
        self._follow()

    def _chosen(self) -> tuple[np.ndarray, np.ndarray]:
        """Kind and scale of each walker's jump, by what has succeeded."""
        share = self.rewards / self.rewards.sum()
        share = FLOOR / share.size + (1 - FLOOR) * share
        places = self.rng.choice(share.size, WALKERS, p=(share / share.sum()).ravel())
        return np.unravel_index(places, share.shape)  # type: ignore[return-value]

    def _jumps(self, kinds: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        rank = np.argsort(np.argsort(-self.values)) / (WALKERS - 1)  # 0 is the highest
        alpha = HEAVY + (LIGHT - HEAVY) * rank
        key = jax.random.fold_in(self.key, self.count)
        shape = self.points.shape
        noise = np.asarray(stable.sample(key, alpha[:, None], shape), np.float64)
        scale = SHORTEST * (2 / SHORTEST) ** (sizes / (NUM_SCALES - 1))
        each = scale[:, None] * self.spread * noise
        one = np.arange(shape[1]) == self.rng.integers(shape[1], size=WALKERS)[:, None]
        pairs = [self.rng.choice(WALKERS, 2, replace=False) for _ in range(WALKERS)]
        between = np.array([self.points[a] - self.points[b] for a, b in pairs])
        along = scale[:, None] * noise[:, :1] * between
        return np.choose(kinds[:, None], [np.where(one, each, 0.0), each, along])

    def _follow(self) -> None:
        """Some walkers begin anew where a lower one is."""
        leaders = self.rng.integers(WALKERS, size=WALKERS)
        follows = (self.rng.random(WALKERS) < FOLLOWING) & (self.values[leaders] < self.values)
        self.points = np.where(follows[:, None], self.points[leaders], self.points)
        self.values = np.where(follows, self.values[leaders], self.values)

    def lowest(self, initial_positions: Any) -> Minimum:
        close = 1e-6 * max(self.hottest, abs(self.least))
        position = jax.tree.map(lambda leaf: leaf[0], self.target.positions(self.best[None]))
        return Minimum(
            position,
            self.least,
            self.target.evaluations,
            self.count,
            int(np.sum(self.values <= self.least + close)),
        )


def _spread(starts: np.ndarray) -> np.ndarray:
    """Of the starts, coordinate by coordinate; where they are all alike, that of one."""
    range_ = np.ptp(starts, axis=0)
    size = np.maximum(np.max(np.abs(starts), axis=0), 1.0)
    return np.where(range_ > 1e-9 * size, range_, size)
