"""Points on a line, dense in the middle and geometric further out, and trends at its ends."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_interval, check_one_number, check_positive, check_real

COUNT = 1001  # 115 points in the outermost decade of each side, for a reach of 1e4
HALVINGS = 12
BROKEN = 0.02  # of its largest value: no smooth function that the points resolve changes so fast
TOLERANCE = 0.05  # of an exponent
FARTHEST = 1e12
STEEPEST = 20.0  # an exponent that is called no power any more


class Line(NamedTuple):
    """Points center + scale · sinh t, up to `reach` scales away."""

    center: float
    scale: float
    reach: float

    @property
    def points(self) -> np.ndarray:
        end = np.arcsinh(self.reach)
        return self.center + self.scale * np.sinh(np.linspace(-end, end, COUNT))

    @property
    def distance(self) -> np.ndarray:
        """Of the points from the center."""
        return np.abs(self.points - self.center)

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the outermost decade on the left and on the right is."""
        is_far = self.distance >= 0.1 * self.reach * self.scale
        is_left = self.points < self.center
        return np.flatnonzero(is_far & is_left), np.flatnonzero(is_far & ~is_left)

    @property
    def words(self) -> str:
        """What was looked at."""
        return (
            f"Seen at {COUNT} points within {self.reach * self.scale:g} of {self.center:g}: what "
            "is narrower than their distance, or begins further out, is not."
        )


def line(center: Any, scale: Any, reach: Any) -> Line:
    """The line of these arguments, checked."""
    for name, value in (("center", center), ("scale", scale), ("reach", reach)):
        check_one_number(name, value, "The hypotheses are about one number.")
    check_real("center", center, "Give roughly where the bulk of the target lies.")
    check_positive("scale", scale, "Give roughly how wide the bulk of the target is.")
    remedy = "It is how far to look, in units of `scale`; trends are those of its last decade."
    check_interval("reach", reach, 100.0, FARTHEST, includes_low=True, remedy=remedy)
    return Line(float(center), float(scale), float(reach))


def compiled(function: Callable[[Any], Any]) -> Callable[[np.ndarray], Any]:
    """A function of one number at many, in JAX's own precision, as NumPy's float64."""
    mapped = jax.jit(jax.vmap(function))

    def at(points: np.ndarray) -> Any:
        found = mapped(jnp.asarray(points, float))
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), found)

    return at


def growing(base: str, exponent: float) -> str:
    """How something grows, in words.

    >>> growing("V", 0.5), growing("|x|", 1e6)
    ('like V^0.5', 'faster than any power of |x|')
    """
    if exponent > STEEPEST:
        return f"faster than any power of {base}"
    return f"like {base}^{exponent:.3g}"


def slope(against: np.ndarray, logs: np.ndarray) -> float:
    """Of the straight line through the values that are finite; -inf where all of them vanish."""
    kept = np.isfinite(logs) & np.isfinite(against)
    if np.any(np.isposinf(logs) | np.isnan(logs)):
        return np.inf
    if kept.sum() < 2:
        return -np.inf
    return float(np.polyfit(against[kept], logs[kept], 1)[0])


def exponents(where: Line, logs: np.ndarray) -> list[float]:
    """By which powers of the distance something grows at the left end and at the right."""
    return [slope(np.log(where.distance[end]), logs[end]) for end in where.ends]


def breaks(function: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """By how much a function changes in each cell after the cell was halved many times.

    Each time the half in which it changes more is kept: what stays is a jump.
    """
    left, right = points[:-1], points[1:]
    below, above = function(left), function(right)
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        value = function(middle)
        is_left = np.abs(value - below) >= np.abs(above - value)
        left, right = np.where(is_left, left, middle), np.where(is_left, middle, right)
        below, above = np.where(is_left, below, value), np.where(is_left, value, above)
    return np.abs(above - below)
