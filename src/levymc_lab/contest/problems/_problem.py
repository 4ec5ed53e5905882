"""What a problem of the contest is: a density, where chains start, and the truth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import interpolate, optimize

from levymc_lab.framework import nearest

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles that are compared
Group = Literal["development", "final"]
Kind = Literal["modes", "heavy", "light", "hard"]


@dataclass(frozen=True, eq=False)
class Marginal:
    """A function of the position whose law is known, by its quantiles at `LEVELS`.

    of: of positions of shape (count, dimension), a number for each; in NumPy.
    errors: standard errors of the quantiles; zero where they come from a formula or quadrature.
    cdf: the distribution function, where it is known.
    """

    name: str
    of: Callable[[np.ndarray], np.ndarray]
    quantiles: np.ndarray
    errors: np.ndarray
    cdf: Callable[[np.ndarray], np.ndarray] | None = None

    @classmethod
    def of_cdf(
        cls,
        name: str,
        of: Callable[[np.ndarray], np.ndarray],
        cdf: Callable[[Any], Any],
        scale: float = 1.0,
    ) -> "Marginal":
        """With the quantiles that the distribution function has; `scale` is a rough one."""
        quantiles = np.array([_inverse(cdf, level, scale) for level in LEVELS])
        return cls(name, of, quantiles, np.zeros(len(LEVELS)), cdf)

    @classmethod
    def of_grid(
        cls,
        name: str,
        of: Callable[[np.ndarray], np.ndarray],
        places: np.ndarray,
        density: np.ndarray,
    ) -> "Marginal":
        """From a density on a grid, up to a constant, by the trapezoid rule."""
        pieces = np.diff(places) * (density[1:] + density[:-1]) / 2
        levels = np.concatenate([[0.0], np.cumsum(pieces)])
        levels /= levels[-1]
        quantiles = np.interp(LEVELS, levels, places)
        return cls(
            name,
            of,
            quantiles,
            np.zeros(len(LEVELS)),
            lambda x: np.interp(x, places, levels, left=0.0, right=1.0),
        )

    @classmethod
    def of_cells(
        cls,
        name: str,
        of: Callable[[np.ndarray], np.ndarray],
        edges: np.ndarray,
        masses: np.ndarray,
    ) -> "Marginal":
        """From the masses of cells between edges; inside them by a monotone cubic."""
        levels = np.concatenate([[0.0], np.cumsum(masses)])
        with np.errstate(over="ignore"):  # where hardly any mass is
            smooth = interpolate.PchipInterpolator(edges, levels / levels[-1])

        def cdf(x: Any) -> Any:
            return smooth(np.clip(x, edges[0], edges[-1]))

        return cls.of_cdf(name, of, cdf, float(np.max(np.abs(edges))))

    @property
    def scale(self) -> float:
        """A robust standard deviation: what quantile errors are measured in."""
        return float(self.quantiles[3] - self.quantiles[1]) / 1.349


def _inverse(cdf: Callable[[Any], Any], level: float, scale: float) -> float:
    reach = scale
    while not cdf(-reach) < level < cdf(reach):
        reach *= 2
    return float(
        optimize.brentq(lambda x: float(cdf(x)) - level, -reach, reach, xtol=1e-10 * scale)
    )


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A coordinate, as a function of positions."""

    index: int

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        return positions[:, self.index]


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of a problem's law.

    weights: of the modes, an array for each way to tell them apart.
    marginals: laws of coordinates, or of functions of the position.
    log_evidence: log ∫ exp(logdensity); NaN where it is not known.
    source: "formula", "quadrature", "symmetry", or "long run" where errors are stated.
    joined: of each of the modes that the first way tells apart, the number of the top that it
        belongs to, where parts of the law overlap so much that they share one.
    """

    source: str
    weights: tuple[np.ndarray, ...] = ()
    marginals: tuple[Marginal, ...] = ()
    log_evidence: float = float("nan")
    joined: np.ndarray | None = None

    @property
    def groups(self) -> np.ndarray:
        """`joined`, or each mode by itself."""
        return np.arange(len(self.weights[0])) if self.joined is None else self.joined


@dataclass(frozen=True, eq=False)
class Problem:
    """A density to sample from, and how to judge what came out.

    logdensity_fn: of a vector; the same object each time, so that compiled programs are shared.
    starts: of a key and a count, positions of shape (count, dimension): all near one mode, or of
        the vague law that `about` states.
    extent: standard deviation of a Gaussian about the starts that covers all of the mass, one
        or one for each coordinate, from exact moments or priors; peers that need a wide reference
        are told it, and `levymc.auto` is not.
    make_truth: computes the truth, when it is first asked for.
    mode_of: of positions of shape (count, dimension) the numbers of their modes, of shape
        (count, ways), one for each entry of `Truth.weights`; in NumPy.
    sample: of a key and a count, exact draws, where there is a way.
    tail_index: of heavy tails, P(|X| > x) ~ x^-index.
    """

    name: str
    group: Group
    kind: Kind
    dimension: int
    about: str
    logdensity_fn: Callable[[Any], Any]
    starts: Callable[[Any, int], Any]
    extent: Any
    make_truth: Callable[[], Truth] = field(repr=False)
    mode_of: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    sample: Callable[[Any, int], Any] | None = field(default=None, repr=False)
    tail_index: float = float("inf")

    @property
    def extents(self) -> np.ndarray:
        """For each coordinate."""
        return np.broadcast_to(np.asarray(self.extent, float), (self.dimension,))

    @cached_property
    def truth(self) -> Truth:
        return self.make_truth()


@dataclass(frozen=True)
class _Entry:
    group: Group
    kind: Kind
    make: Callable[..., Problem]


_ENTRIES: dict[str, _Entry] = {}
_MADE: dict[str, Problem] = {}


def entered(
    name: str, group: Group, kind: Kind
) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Enter a function that makes a problem of its name, group and kind."""

    def enter(make: Callable[..., Problem]) -> Callable[..., Problem]:
        _ENTRIES[name] = _Entry(group, kind, make)
        return make

    return enter


def names(group: str | None = None, kind: str | Sequence[str] | None = None) -> list[str]:
    """The names of all problems, or of those of a group or kind.

    >>> from levymc_lab.contest import problems
    >>> "cauchy-10" in problems.names("development", "heavy")
    True
    """
    kinds = (kind,) if isinstance(kind, str) else kind
    return [
        name
        for name, entry in _ENTRIES.items()
        if group in (None, entry.group) and (kinds is None or entry.kind in kinds)
    ]


def get(name: str) -> Problem:
    """The problem of that name, made once in a process.

    Raises:
        ValueError: there is none; the message names the nearest.

    Examples:
        >>> from levymc_lab.contest import problems
        >>> problems.get("double-well").dimension
        1
    """
    if name not in _ENTRIES:
        raise ValueError(f"Problems: {nearest(name, _ENTRIES)}")
    if name not in _MADE:
        entry = _ENTRIES[name]
        _MADE[name] = entry.make(name=name, group=entry.group, kind=entry.kind)
    return _MADE[name]
