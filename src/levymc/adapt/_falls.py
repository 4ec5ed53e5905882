r"""How wide a top is where its curvature does not tell: at a kink, at an edge, or where it is flat.

Along an axis log φ falls like t^p with the distance t: p = 2 is a curvature, p = 1 a kink, as that
of −|x|; flat tops, as that of −x⁴, have p > 2; and at an edge it falls to −∞ on one side.
"""

from typing import NamedTuple

import numpy as np

from ._target import Target

LENGTHS = 4.0 ** -np.arange(14.0)  # of steps along an axis: down to 1e-8 of the longest
MOST_SWEEPS = 12
RISE = 0.05  # nats that a sweep has to gain, to be followed by another
FALL = 0.5  # nats, as of a normal law one standard deviation from its top
KINKED = 1.5  # the power p below which a fall is that of a kink
EDGE = 1e9  # nats that are an edge, where the other side falls by 0.5
FURTHEST, NEAREST = 1e15, 1e-12  # where log φ may have fallen
NOISE = 100.0  # roundings, below which a fall tells nothing


class Falls(NamedTuple):
    """How log φ falls from a place along some axes.

    widths: for each axis in its own units, where the fall is 0.5 on the side where it is less.
    is_sharp: whether there is a kink or an edge along one of them.
    """

    point: np.ndarray
    value: float
    widths: np.ndarray
    is_sharp: bool


def climbed(target: Target, point: np.ndarray, value: float, axes: np.ndarray) -> Falls:
    """Climb along the columns of a matrix, then see how log φ falls along them."""
    steps = np.repeat(LENGTHS, 2) * np.tile([1.0, -1.0], len(LENGTHS))
    for _ in range(MOST_SWEEPS):
        values = _along(target, point, axes).reshape(len(steps), -1)
        own = np.where(values.max(axis=0) > value, steps[np.argmax(values, axis=0)], 0.0)
        best = np.where(values.max(axis=0) == values.max(), own, 0.0)
        tried = point + np.stack([own, best]) @ axes.T  # of all axes at once, or of the best alone
        heights = _finite(target.values(tried))
        place = int(np.argmax(heights))
        if heights[place] < value + RISE:
            break
        point, value = tried[place], float(heights[place])
    return fallen(target, point, value, axes)


def fallen(target: Target, point: np.ndarray, value: float, axes: np.ndarray) -> Falls:
    """How log φ falls along the columns of a matrix."""
    both = value - _along(target, point, axes)
    widths, is_sharp = np.empty(axes.shape[1]), False
    noise = NOISE * float(np.finfo(target.dtype).eps) * max(abs(value), 1.0)
    for axis, own in enumerate(np.moveaxis(both, -1, 0)):
        falls = own.min(axis=1)
        # The longest step that is on the way down, not beyond a valley.
        number = len(falls) - int(np.argmin(np.append(falls[::-1] <= FALL, False)))
        if number > len(falls) - 2:  # steeper than all steps
            widths[axis] = LENGTHS[-1]
            continue
        power = _power(falls[number - 1], falls[number]) if number else np.inf
        longer = (FALL / falls[number]) ** (1 / power) if power < np.inf else 1.0
        widths[axis] = LENGTHS[number] * min(longer, 4.0)
        nearer = own[number + 1].sum()
        is_edge = own[number].max() > EDGE
        is_kink = not is_edge and nearer > noise and _power(own[number].sum(), nearer) < KINKED
        is_sharp |= bool(is_edge or is_kink)
    return Falls(point, value, widths, is_sharp)


def seen_covariance(target: Target, point: np.ndarray, value: float) -> np.ndarray:
    """Of a top of which no scale is known, along the coordinates."""
    lengths = np.full(len(point), FURTHEST)
    while True:
        widths = fallen(target, point, value, np.diag(lengths)).widths
        is_steeper = (widths == LENGTHS[-1]) & (lengths > NEAREST)
        if not np.any(is_steeper):
            return np.diag((lengths * widths) ** 2)
        lengths = np.where(is_steeper, 4 * LENGTHS[-1] * lengths, lengths)


def _along(target: Target, point: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """log φ at steps of all lengths to both sides: its axes are (length, side, axis)."""
    steps = np.stack([LENGTHS, -LENGTHS], axis=1)
    points = point + steps[..., None, None] * axes.T
    return _finite(target.values(points.reshape(-1, len(point)))).reshape(points.shape[:-1])


def _finite(values: np.ndarray) -> np.ndarray:
    """What is infinite is no density."""
    return np.where(values == np.inf, -np.inf, values)


def _power(further: float, nearer: float) -> float:
    """p, of falls at a distance and at a quarter of it."""
    if not 0 < nearer < further < np.inf:
        return np.inf
    return float(np.log(further / nearer) / np.log(4.0))
