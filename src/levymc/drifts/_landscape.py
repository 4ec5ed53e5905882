"""Where a target's mass lies along a line: breaks between which a Gauss rule resolves the density.

Found by exploration, outside compiled programs: scans for modes and edges, zooming in on them, then
bisection until every panel is resolved, and as few panels as that allows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ._panels import GAUSS_NODES, GAUSS_TAIL, GAUSS_WEIGHTS

Heights = Callable[[np.ndarray], np.ndarray]  # log φ at points of a line

LINEAR_REACH = 1100.0  # of the linear scan to either side, in units of `scale`
MOST_POINTS = 1 << 18  # of the linear scans of one line
_GEOMETRIC = np.exp(np.arange(np.log(1e-8), np.log(1e9), 0.02))  # distances, in units of `scale`
_MOST_MODES = 64
_DROP = 45.0  # of log(φ · distance) below its largest value, where the bulk ends
_HEAVIEST = 100.0  # how many bulks away panels end and a rule to infinity takes over
_SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # so that programs are reused
_TOLERANCE = 1e-7  # of a panel's estimated error, to the mass around it; the true one is far less
_MOST_ROUNDS = 44
_MOST_PANELS = 1024


class Landscape(NamedTuple):
    """What is known of a target along each coordinate.

    breaks: increasing, the last repeated to one of a few lengths; a row per coordinate, or one.
    is_singular: where log φ has a kink or an edge.
    log_mass: log ∫φ along the line; NaN where that differs from place to place.
    num_rungs: cuts that a position needs around itself on either side.
    """

    breaks: np.ndarray
    is_singular: np.ndarray
    log_mass: np.ndarray
    num_rungs: int


class _Panels(NamedTuple):
    """Panels side by side, log of their masses, log of the estimated errors of those."""

    begin: np.ndarray
    end: np.ndarray
    log_mass: np.ndarray
    log_error: np.ndarray


@np.errstate(all="ignore")  # logarithms of zero, and what follows from them, are no surprise
def explore(heights: Heights, centers: np.ndarray, scale: float, num_points: int) -> Landscape:
    """The landscape along one line.

    Looked at: points in a ratio of 1.02 at distances of 1e-8 to 1e9 `scale` from each center; three
    quarters of `num_points` evenly within 1100 `scale` of the first; the others evenly over the
    bulk that these show.  A mode is missed if it stands out at none of them.
    """
    points, logs = _scan(heights, centers, scale, num_points)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    if not np.any(np.isfinite(logs)):
        return given(np.sort(centers))
    edges = _edges(heights, points, logs)
    modes, widths, is_kink = _modes(heights, points, logs)
    low, high = _ends(points, logs, modes, widths, edges)
    inside = (modes >= low) & (modes <= high)
    modes, widths, is_kink = modes[inside], widths[inside], is_kink[inside]
    singular = np.unique(np.concatenate([edges, modes[is_kink]]))
    cuts = _first_cuts(modes, widths, singular, low, high)
    panels, kinks = _bisect(heights, cuts)
    singular = np.unique(np.concatenate([singular[(singular >= low) & (singular <= high)], kinks]))
    breaks = _few(heights, panels, singular)
    smallest = min(np.min(widths, initial=np.inf), np.min(np.diff(breaks)))
    return _padded(breaks, singular, _log_mass(heights, breaks), smallest)


def given(breaks: np.ndarray) -> Landscape:
    """That of breaks which a user gives, of which nothing more is known."""
    ordered = np.sort(np.asarray(breaks, float))
    return _padded(ordered, ordered[:0], np.nan, 0.0)


def stacked(landscapes: list[Landscape]) -> Landscape:
    """One row per coordinate; masses along lines are not those along others."""
    length = max(len(one.breaks) for one in landscapes)
    rows = [_lengthened(one, length) for one in landscapes]
    return Landscape(
        np.stack([row.breaks for row in rows]),
        np.stack([row.is_singular for row in rows]),
        np.full(len(rows), np.nan),
        max(row.num_rungs for row in rows),
    )


def _padded(breaks: np.ndarray, singular: np.ndarray, log_mass: Any, smallest: float) -> Landscape:
    span = breaks[-1] - breaks[0] if len(breaks) else 0.0
    wanted = np.log(max(span / smallest, 1.0)) / np.log(8) if smallest else 8
    rungs = int(np.clip(np.ceil(wanted) + 2 * (len(singular) > 0), 3, 8))
    bare = Landscape(breaks, np.isin(breaks, singular), np.asarray(log_mass, float), rungs)
    return _lengthened(bare, next((size + 1 for size in _SIZES if size + 1 >= len(breaks)), 0))


def _lengthened(one: Landscape, length: int) -> Landscape:
    more = (0, max(0, length - len(one.breaks)))
    if not len(one.breaks):
        return one
    return one._replace(
        breaks=np.pad(one.breaks, more, mode="edge"),
        is_singular=np.pad(one.is_singular, more, mode="edge"),
    )


# --- the scan -----------------------------------------------------------------------------------


def _scan(
    heights: Heights, centers: np.ndarray, scale: float, num_points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points in their order, and log φ there."""
    steps = scale * np.concatenate([-_GEOMETRIC[::-1], [0.0], _GEOMETRIC])
    reach = LINEAR_REACH * scale
    linear = np.linspace(centers[0] - reach, centers[0] + reach, num_points * 3 // 4)
    points = np.unique(np.concatenate([linear, np.ravel(centers[:, None] + steps)]))
    logs = heights(points)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    is_finite = np.isfinite(logs)
    if not np.any(is_finite):
        return points, logs
    middle = points[np.argmax(logs)]
    weighed = logs + np.log(np.abs(points - middle) + np.gradient(points))
    bulk = points[weighed >= np.max(weighed[is_finite]) - _DROP]
    margin = (bulk[-1] - bulk[0]) / 8
    bulk_low, bulk_high = max(bulk[0] - margin, -1e9 * scale), min(bulk[-1] + margin, 1e9 * scale)
    more = np.linspace(bulk_low, bulk_high, num_points // 4)
    points, where = np.unique(np.concatenate([points, more]), return_index=True)
    return points, np.concatenate([logs, heights(more)])[where]


def _edges(heights: Heights, points: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Where the density begins and ends to be positive, to rounding."""
    is_inside = np.isfinite(logs)
    where = np.flatnonzero(is_inside[1:] != is_inside[:-1])[:_MOST_MODES]
    inner = np.where(is_inside[where], points[where], points[where + 1])
    outer = np.where(is_inside[where], points[where + 1], points[where])
    for _ in range(80 if len(where) else 0):
        middle = (inner + outer) / 2
        is_in = np.isfinite(heights(middle))
        inner, outer = np.where(is_in, middle, inner), np.where(is_in, outer, middle)
    return inner


def _modes(
    heights: Heights, points: np.ndarray, logs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The modes, how wide they are, and whether log φ has a kink there."""
    begins = np.flatnonzero(np.concatenate([[True], logs[1:] != logs[:-1]]))
    ends = np.append(begins[1:], len(logs))  # of runs of one value
    levels = np.concatenate([[-np.inf], logs[begins], [-np.inf]])
    is_peak = (levels[1:-1] > levels[:-2]) & (levels[1:-1] > levels[2:])
    low = points[np.maximum(begins[is_peak] - 1, 0)]
    high = points[np.minimum(ends[is_peak], len(points) - 1)]
    weighed = levels[1:-1][is_peak] + np.log(high - low)
    best = np.argsort(weighed)[::-1][: 4 * _MOST_MODES]
    low, high = low[best], high[best]
    modes, tops = _zoom(heights, low, high)
    widths, is_kink = _widths(heights, modes, tops, high - low)
    weighed = tops + np.log(widths)
    best = np.argsort(weighed)[::-1][:_MOST_MODES]
    best = best[weighed[best] > np.max(weighed) - _DROP]
    modes, first = np.unique(modes[best], return_index=True)
    return modes, widths[best][first], is_kink[best][first]


def _zoom(heights: Heights, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value between each two points, and where, by grids of ever smaller step."""
    share = np.linspace(0, 1, 9)
    best, top = (low + high) / 2, np.full(low.shape, -np.inf)
    for _ in range(24):
        grid = low[:, None] + (high - low)[:, None] * share
        logs = heights(grid.ravel()).reshape(grid.shape)
        logs = np.where(np.isfinite(logs), logs, -np.inf)
        place = np.argmax(logs, axis=1)
        rows = np.arange(len(grid))
        best, top = grid[rows, place], logs[rows, place]
        low, high = grid[rows, np.maximum(place - 1, 0)], grid[rows, np.minimum(place + 1, 8)]
    return best, top


def _widths(
    heights: Heights, modes: np.ndarray, tops: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far from a mode log φ has dropped by a half, to a factor of 1.5, on the farther side."""
    steps = first[:, None] * 1.5 ** np.arange(-40.0, 41.0)
    drops = np.stack([_drops(heights, modes, tops, steps), _drops(heights, modes, tops, -steps)])
    is_near = np.cumprod(np.min(drops, axis=0) <= 0.5, axis=1)
    widths = np.maximum(np.max(np.where(is_near, steps, 0.0), axis=1), steps[:, 0])
    small = widths[:, None] * np.array([0.025, 0.05])
    either = [_drops(heights, modes, tops, side * small) for side in (1, -1)]
    # A smooth maximum drops four times as far at twice the distance, a kink or an edge twice.
    is_kink = np.any([drop[:, 1] < 3 * drop[:, 0] for drop in either], axis=0)
    is_kink &= np.any([drop[:, 0] > 5e-3 for drop in either], axis=0)
    return widths, is_kink


def _drops(heights: Heights, modes: np.ndarray, tops: np.ndarray, steps: np.ndarray) -> np.ndarray:
    logs = heights((modes[:, None] + steps).ravel()).reshape(steps.shape)
    return tops[:, None] - np.where(np.isnan(logs), -np.inf, logs)


def _ends(
    points: np.ndarray, logs: np.ndarray, modes: np.ndarray, widths: np.ndarray, edges: np.ndarray
) -> tuple[float, float]:
    """Beyond which only a tail is left, or nothing."""
    if not len(modes):
        return float(points[np.isfinite(logs)][0]), float(points[np.isfinite(logs)][-1])
    middle = modes[np.argmax(np.interp(modes, points, np.where(np.isfinite(logs), logs, -1e300)))]
    weighed = logs + np.log(np.abs(points - middle) + np.min(widths))
    top = np.max(weighed[np.isfinite(weighed)])
    above, bulk = points[weighed >= top - _DROP], points[weighed >= top - 5]
    bulk_low = min(bulk[0], np.min(modes - 10 * widths))
    bulk_high = max(bulk[-1], np.max(modes + 10 * widths))
    size = bulk_high - bulk_low
    low = max(above[0] - 0.03 * abs(above[0] - middle), bulk_low - _HEAVIEST * size)
    high = min(above[-1] + 0.03 * abs(above[-1] - middle), bulk_high + _HEAVIEST * size)
    low, high = min(low, np.min(modes - 10 * widths)), max(high, np.max(modes + 10 * widths))
    inside = points[np.isfinite(logs)]
    if len(edges) and inside[0] >= low:
        low = float(np.min(edges)) if np.min(edges) >= low else low
    if len(edges) and inside[-1] <= high:
        high = float(np.max(edges)) if np.max(edges) <= high else high
    return float(low), float(high)


# --- panels -------------------------------------------------------------------------------------


def _first_cuts(
    modes: np.ndarray, widths: np.ndarray, singular: np.ndarray, low: float, high: float
) -> np.ndarray:
    """Around every mode at distances that grow, so that no first panel overlooks one."""
    steps = 1.5 * 3.0 ** np.arange(0, 60)
    around = []
    for mode, width in zip(modes, widths, strict=True):
        own = width * steps[width * steps < high - low]
        around += [mode - own, [mode], mode + own]
    cuts = np.concatenate([*around, singular, [low, high]]) if around else np.array([low, high])
    cuts = np.unique(np.clip(cuts, low, high))
    is_apart = np.diff(cuts, prepend=-np.inf) > 1e-12 * (high - low)
    return cuts[is_apart | np.isin(cuts, singular)]


def _measured(heights: Heights, begin: np.ndarray, end: np.ndarray) -> _Panels:
    """Masses of panels, and how well their Gauss rules know them."""
    length = end - begin
    points = begin[:, None] + length[:, None] * GAUSS_NODES
    logs = heights(points.ravel()).reshape(points.shape)
    logs = np.where(np.isnan(logs) | (logs == np.inf), -np.inf, logs)
    top = np.max(logs, axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    values = np.exp(logs - shift[:, None])
    size = values @ GAUSS_WEIGHTS
    # Rounding of log φ is no lack of resolution.
    noise = 4 * jnp.finfo(heights.dtype).eps * np.abs(shift) * size  # type: ignore[attr-defined]
    tail = np.maximum(np.abs(values @ GAUSS_TAIL).sum(axis=1) - noise, 0.0)
    log_mass = np.log(size * length) + shift
    ratio = np.where(size > 0, tail / size, 0.0)
    log_error = log_mass + np.log(np.minimum(1.0, 10 * ratio**1.5))
    return _Panels(begin, end, log_mass, log_error)


def _is_resolved(panels: _Panels, others: _Panels, tolerance: float = _TOLERANCE) -> np.ndarray:
    """Whether a panel's error is small against the masses around it, seen from the panel.

    A mass m at a distance d counts as m (L/(L + d))², L being the panel's length: the drift in the
    panel is at least as large as what comes from there.
    """
    length = (panels.end - panels.begin)[:, None]
    gap = np.maximum(
        np.maximum(others.begin - panels.end[:, None], panels.begin[:, None] - others.end), 0.0
    )
    weighed = others.log_mass - 2 * np.log1p(gap / length)
    top = np.max(weighed, axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    around = np.log(np.sum(np.exp(weighed - top), axis=1)) + top[:, 0]
    return ~(panels.log_error > around + np.log(tolerance))


def _bisect(heights: Heights, cuts: np.ndarray) -> tuple[_Panels, np.ndarray]:
    """Halve panels until all are resolved; those that never are hold a kink, which is returned."""
    panels = _measured(heights, cuts[:-1], cuts[1:])
    smallest = 1e-10 * (cuts[1:] - cuts[:-1])
    kinks: list[float] = []
    for _ in range(_MOST_ROUNDS):
        is_open = ~_is_resolved(panels, panels) & (panels.end - panels.begin > smallest)
        if not np.any(is_open) or len(panels.begin) > _MOST_PANELS:
            break
        begin, end = panels.begin[is_open], panels.end[is_open]
        middle = (begin + end) / 2
        halves = _measured(heights, np.concatenate([begin, middle]), np.concatenate([middle, end]))
        kept = [part[~is_open] for part in panels]
        joined = [np.concatenate(pair) for pair in zip(kept, halves, strict=True)]
        limits = np.concatenate([smallest[~is_open], np.tile(smallest[is_open], 2)])
        order = np.argsort(joined[0], kind="stable")
        panels, smallest = _Panels(*(part[order] for part in joined)), limits[order]
    is_tiny = ~_is_resolved(panels, panels) & (panels.end - panels.begin <= smallest)
    kinks.extend(panels.begin[is_tiny])
    return panels, np.asarray(kinks)


def _few(heights: Heights, panels: _Panels, singular: np.ndarray) -> np.ndarray:
    """Breaks of few panels; of a target of very many modes, the estimate shows what that costs."""
    for tolerance in (_TOLERANCE, 1e-5, 1e-3):
        breaks = _fewest(heights, panels, singular, tolerance)
        if len(breaks) <= _SIZES[-1] + 1:
            return breaks
    chosen = np.linspace(0, len(breaks) - 1, _SIZES[-1] + 1).round().astype(int)
    return breaks[chosen]


def _fewest(
    heights: Heights, panels: _Panels, singular: np.ndarray, tolerance: float
) -> np.ndarray:
    """Breaks of as few panels as are resolved, by taking the longest one again and again."""
    cuts = np.unique(np.concatenate([panels.begin, panels.end, singular]))
    stops = set(np.flatnonzero(np.isin(cuts, singular)).tolist())
    fine = _measured(heights, cuts[:-1], cuts[1:])
    chosen, at = [0], 0
    while at < len(cuts) - 1:
        last = next((i for i in sorted(stops) if i > at), len(cuts) - 1)
        candidates = np.arange(at + 1, min(last, at + 128) + 1)
        tried = _measured(heights, np.full(len(candidates), cuts[at]), cuts[candidates])
        sums = np.logaddexp.accumulate(fine.log_mass[at : candidates[-1]])
        tried = tried._replace(log_error=np.maximum(tried.log_error, _log_gap(tried, sums)))
        good = np.flatnonzero(_is_resolved(tried, panels, tolerance))
        # The longest before the first that is not resolved.
        runs = np.flatnonzero(np.diff(np.concatenate([[-1], good])) > 1)
        most = good[runs[0] - 1] if len(runs) and runs[0] > 0 else (good[-1] if len(good) else 0)
        at = int(candidates[most])
        chosen.append(at)
    return cuts[chosen]


def _log_gap(panels: _Panels, log_sums: np.ndarray) -> np.ndarray:
    """log |mass - that of its parts|, which is large where the nodes overlook a mode."""
    larger = np.maximum(panels.log_mass, log_sums)
    gap = larger + np.log(-np.expm1(-np.abs(panels.log_mass - log_sums)))
    return np.where(larger == -np.inf, -np.inf, gap)


def _log_mass(heights: Heights, breaks: np.ndarray) -> float:
    """log ∫φ, tails included."""
    panels = _measured(heights, breaks[:-1], breaks[1:])
    most = np.argmax(panels.log_mass)
    middle = (breaks[most] + breaks[most + 1]) / 2
    parts = [panels.log_mass]
    for end in (breaks[0], breaks[-1]):
        distance = (end - middle) * GAUSS_NODES**-1.5
        measure = np.log(np.abs(1.5 * distance / GAUSS_NODES) * GAUSS_WEIGHTS)
        logs = heights(middle + distance)
        parts.append(np.where(np.isnan(logs), -np.inf, logs) + measure)
    every = np.concatenate(parts)
    top = np.max(every)
    return float(top + np.log(np.sum(np.exp(every - top))))
