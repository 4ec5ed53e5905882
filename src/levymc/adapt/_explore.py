r"""The modes of a log density, found from anywhere without a scale to set.

Points relax uphill.  From a mode that is known, jumps of all lengths start the next relaxations:
log-uniform radii, and α-stable draws isotropically and along single coordinates.  Where modes come
by several choices that do not depend on each other, all of them are differences away from others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc import stable
from levymc._checks import check_count, check_key
from levymc.drifts import LogDensity

from ._falls import Falls, climbed, fallen, seen_covariance
from ._met import NOTHING, log_volumes, met, together
from ._relax import EXPLAINED, KNOWN, NEAR, TOP, Known, Relaxed, relax, steps_of
from ._target import Target, check_support, checked_starts

BATCH = 16  # relaxations at once
MOST_JUMPS = 256  # of which those are chosen
LARGEST_RADIUS = 300.0
ALPHA = 1.2
COMBINING = (0.1, 0.9)  # of the batches, at least and at most, are of sums of known modes
ONE_FOUND = 1000.0  # evaluations for a mode, by which a kind of jumps is judged before it is tried
AWAY = 6.0  # standard deviations, for which the resolution is stated
AT_A_DISTANCE = 0.12  # of all jumps lead there, for each unit of log distance
PATIENCE = 0.08  # of the budget may pass without a new mode
FLOOR = 1e-5  # of the curvatures, in units of the largest
SOFT, LOWEST = 0.01, 1e-10  # below it they differ by this power, down to that part of it
NO_CURVATURE = 1e-25  # at all, as at the top of −x⁴: then a width is seen where log φ has fallen
POLISHED = 0.01  # nats that a Newton step would still gain
MOST_POLISHING = 6
NUM_BETWEEN = 7  # points on the segment between two modes
DIP = 0.2  # nats below both ends, without which two modes are one
NEIGHBOURS = 3
WIDER = 3.0  # times as wide as another, a top is a mode of its own, with a dip or without
APART = 6.0  # standard deviations of the narrower, which it has to be away
NEGLIGIBLE = 12.0  # nats of log mass below the best
OFTEN = 0.05  # of all hits: then a mode is no small one, and its mass is in its tails
ROUGH_DEPTH = 20.0  # nats, and one for each coordinate, below the best: places that may matter
HOPELESS = 100.0  # of them, by Newton's own estimate: then a point is not polished
UNCOVERED = 5.0  # nats of log φ above what the modes that are known make of a place
FURTHER = 16.0  # times the scale of a known mode: the longest steps from a place with no curvature
MOST_SMOOTH = 2  # such places that turn out to be neither kinks nor edges, before none is tried
TOO_HEAVY = 6.0  # nats by which a mode is above all that jumps met: then it is too wide
FEWEST_MET = 64  # jumps, to say so
MANY = 64
TOO_MANY = 256
MOST_NEIGHBOURS = 300
NEIGHBOURHOOD = 30.0  # the largest radius around a mode in which its neighbours are looked for
NEW = 0.3  # of its length, by which a direction must leave those that are known
LOST_AT = -1  # in the place of a mode's number


class Modes(NamedTuple):
    """Modes of a target, each with the normal law that has its height and curvature.

    location: of shape (K, d).  covariance: (K, d, d).  log_mass: of the normal law.
    times_found: how many relaxations ended there.
    num_relaxations: how many there were; `num_lost` of them ended nowhere, `num_rough` of these as
        log φ, though finite and not low, has no finite gradient where they began.
    evaluations: spent on all of it.
    num_negligible: further modes, whose mass is negligible.
    met: the mass that jumps met, as the number of jumps and the logs of two sums.
    """

    location: np.ndarray
    covariance: np.ndarray
    logdensity: np.ndarray
    log_mass: np.ndarray
    times_found: np.ndarray
    num_relaxations: int = 0
    num_lost: int = 0
    evaluations: int = 0
    num_negligible: int = 0
    met: np.ndarray = NOTHING
    num_rough: int = 0

    @property
    def num_modes(self) -> int:
        return len(self.location)

    @property
    def chance_of_another(self) -> float:
        """By Good and Turing: modes that were hit once for each relaxation that hit any.

        At least one for all of them: that none was hit once proves little where they are few.
        """
        hits = max(int(self.times_found.sum()), 1)
        return max(float(np.sum(self.times_found == 1)), 1.0) / hits

    @property
    def resolution(self) -> float:
        r"""The width, in units of those found, below which a mode would probably be missed.

        One of ρ times the width of a known one, with the same mass and r = 6 of that one's standard
        deviations away, dominates in a ball of radius R = ρ √(2 d log 1/ρ + r²), in which a jump
        lands with the probability g (R/r)^d / d, if g of all jumps are in a unit of log distance.
        Of n relaxations three would find it; or, where that is more, ρ^d = 3/n, the ratio of the
        volumes, which is the rule in many dimensions.  All n are counted, whichever mode they
        began from: near one of many, a mode has to be wider to be found.
        """
        dimension, count = self.location.shape[1], max(self.num_relaxations, 3)
        widths = np.geomspace(1e-4, 1.0, 2000)
        radii = widths * np.sqrt(AWAY**2 - 2 * dimension * np.log(widths)) / AWAY
        is_found = AT_A_DISTANCE / dimension * radii**dimension >= 3 / count
        narrowest = float(widths[np.argmax(is_found)]) if np.any(is_found) else 1.0
        return max(narrowest, float((3 / count) ** (1 / dimension)))

    @property
    def are_too_many(self) -> bool:
        """Whether listing them is hopeless, by Chao's estimate of how many there are."""
        is_begun = self.num_modes < MANY or np.mean(self.times_found == 1) <= 0.5
        if is_begun or self.chance_of_another <= 0.2:
            return False
        return self.num_modes + unseen_modes(self.times_found) > TOO_MANY


def unseen_modes(times_found: np.ndarray) -> float:
    """Chao's estimate of how many were not found, by those found once and twice [chao1984].

    A lower bound in expectation; lower still as jumps often fall back to where they began.
    """
    once, twice = (int(np.sum(times_found == times)) for times in (1, 2))
    return once**2 / (2 * twice) if twice else once * (once - 1) / 2


def explore(
    logdensity_fn: LogDensity, key: Any, initial_positions: Any, *, budget: int = 50_000
) -> Modes:
    r"""Search for the modes of a target.

    A known mode μ with curvature Σ = LLᵀ, s = |Σ|^{1/2d}, starts relaxations from

    .. math:: y = μ + L v \quad\text{or}\quad y = μ + s v, \qquad
       v = R z,\; \log R \sim U(0, \log 300),

    or from v with SαS(1.2) coordinates, of which mostly one is long; or from μ₁ + μ₂ − μ₃, the
    fourth corner of a parallelogram of three known modes, as often as that finds more for what it
    costs.  BFGS climbs from there, until it is at a top or near to what is known.  Two tops without
    a dip of 0.2 nats between them are one.

    Targets: nothing: it finds what it finds.  Not valid when: log φ has no gradient.  A mode much
    narrower than its distance from all others may be missed, the more so the more dimensions.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree, differentiable.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the starts along their first axis.
        budget: evaluations, at most; it ends after a twelfth of these without a new mode.

    Returns:
        `Modes`, the heaviest first, without those whose mass is negligible.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> starts = levymc.targets.FOUR_MODES_MEANS[3:] + jnp.zeros((1, 2))
        >>> modes = levymc.adapt.explore(levymc.targets.four_modes, jax.random.key(0), starts)
        >>> modes.location.round(1).tolist()
        [[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0]]

    Departures: not in the paper.
    """
    check_count("budget", budget, "It is a number of evaluations.")
    positions = checked_starts(initial_positions)
    target = Target(logdensity_fn, jax.tree.map(lambda leaf: leaf[0], positions))
    starts = target.flattened(positions)
    check_support(target, starts)
    return search(target, check_key(key), starts, budget, budget)


def search(
    target: Target,
    key: Any,
    starts: np.ndarray,
    budget: int,
    whole: int,
    report: Callable[[int], None] = lambda found: None,
) -> Modes:
    """Explore with at most `budget` evaluations out of a `whole`."""
    atlas = begun(target, starts)
    go_on(atlas, Jumps(key), budget, PATIENCE * whole, report)
    return atlas.listed()


def begun(target: Target, starts: np.ndarray) -> "Atlas":
    """What is found from some of the starts."""
    atlas = Atlas(target)
    unique = np.unique(starts, axis=0)
    chosen = unique[np.linspace(0, len(unique) - 1, min(BATCH, len(unique))).astype(int)]
    atlas.relax(chosen, np.ones(len(chosen)))
    return atlas


def go_on(
    atlas: "Atlas", jumps: "Jumps", budget: float, patience: float, report: Callable[[int], None]
) -> int:
    """Jump from the modes that are known until the budget, patience or hope ends.

    What is returned is how many evaluations there were since the last new mode.
    """
    target, known = atlas.target, len(atlas.modes)
    begin = last = target.evaluations
    while atlas.modes and target.evaluations - begin < budget:
        before = target.evaluations
        left = int(budget) - (before - begin)
        jumps.unexplained = atlas.relax_unexplained(jumps.batch(atlas.modes, left))
        atlas.narrow()
        jumps.learn(len(atlas.modes) - known, target.evaluations - before)
        if len(atlas.modes) != known:
            known, last = len(atlas.modes), target.evaluations
            report(known)
        if target.evaluations - last > patience or atlas.listed().are_too_many:
            break
    return target.evaluations - last


class Mode(NamedTuple):
    """A top, its curvature, and factors of it: covariance = factor factorᵀ.

    is_strict: whether it is a top beyond doubt; see `_is_top`.
    is_measured: whether its width was seen, not told by its curvature.
    """

    location: np.ndarray
    value: float
    covariance: np.ndarray
    factor: np.ndarray
    whitening: np.ndarray
    times_found: int
    is_strict: bool = True
    is_measured: bool = False

    @property
    def scale(self) -> float:
        """|Σ|^{1/2d}."""
        return float(np.exp(np.mean(np.log(np.diag(self.factor)))))

    @property
    def log_mass(self) -> float:
        half_log_det = float(np.sum(np.log(np.diag(self.factor))))
        return self.value + half_log_det + len(self.location) / 2 * float(np.log(2 * np.pi))

    def distance(self, point: np.ndarray) -> float:
        return float(np.linalg.norm(self.whitening @ (point - self.location)))

    def is_around(self, other: "Mode") -> bool:
        """Whether this is a wide top beside which the other is a narrow one, dip or no dip."""
        is_wider = self.is_strict and other.is_strict and self.scale > WIDER * other.scale
        return is_wider and other.distance(self.location) > APART


class Jumps:
    """Where the next relaxations start.

    unexplained: of the last batch, the share whose places known modes do not explain.
    """

    def __init__(self, key: Any) -> None:
        self.key, self.count = key, 0
        self.heavy = np.zeros((0, 0))
        self.is_sum, self.found, self.spent = False, np.zeros(2), np.zeros(2)
        self.unexplained = 1.0

    def _next(self) -> tuple[Any, np.random.Generator]:
        self.count += 1
        key = jax.random.fold_in(self.key, self.count)
        return key, np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())

    def size(self, left: int) -> int:
        """Of a batch: so that about `BATCH` remain to be relaxed, and evaluations do not end."""
        wanted = min(BATCH / max(self.unexplained, 1e-9), MOST_JUMPS, left)
        return max(int(wanted), BATCH)

    def around(self, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
        """A batch of points in the neighbourhood of one mode."""
        _, rng = self._next()
        radii = np.exp(rng.uniform(0.0, np.log(NEIGHBOURHOOD), BATCH))
        normal = rng.standard_normal((BATCH, len(mode.location)))
        points = mode.location + radii[:, None] * normal @ mode.factor.T
        return points, np.full(BATCH, mode.scale)

    def from_modes(self, modes: list[Mode], size: int) -> "Places":
        """So many points, from any of the modes."""
        key, rng = self._next()
        dimension = len(modes[0].location)
        if len(self.heavy) < size:  # many at once: a call takes longer than its numbers
            drawn = stable.sample(key, ALPHA, (MOST_JUMPS, dimension))
            self.heavy = np.concatenate([self.heavy.reshape(-1, dimension), np.asarray(drawn)])
        heavy, self.heavy = self.heavy[:size], self.heavy[size:]
        directions, is_log_uniform = _directions(rng, heavy)
        points = np.empty((size, dimension))
        is_shaped, origins = rng.random(size) < 0.5, rng.integers(len(modes), size=size)
        for number in np.unique(origins):
            mode, own = modes[number], origins == number
            points[own] = mode.location + mode.scale * directions[own]
            own &= is_shaped
            points[own] = mode.location + directions[own] @ mode.factor.T
        scales = np.array([mode.scale for mode in modes])[origins]
        squares = np.sum(directions**2, axis=1)
        volumes = log_volumes(squares, dimension, LARGEST_RADIUS) + dimension * np.log(scales)
        return Places(points, scales, np.where(is_log_uniform, volumes, np.nan))

    def from_sums(self, modes: list[Mode]) -> "Places":
        """A batch of points μ₁ + μ₂ − μ₃, of three modes each, with the scales of the first."""
        _, rng = self._next()
        chosen = [rng.choice(len(modes), 3, replace=False) for _ in range(BATCH)]
        places = np.array([mode.location for mode in modes])
        points = [places[one] + places[two] - places[three] for one, two, three in chosen]
        scales = np.array([modes[one].scale for one, _, _ in chosen])
        return Places(np.array(points), scales, np.full(BATCH, np.nan))

    def batch(self, modes: list[Mode], left: int) -> "Places":
        """Of the kind that finds more modes for its evaluations, of which some are left."""
        self.is_sum = False
        if len(modes) > 2:
            rates = (1 + self.found) / (ONE_FOUND + self.spent)
            _, rng = self._next()
            self.is_sum = bool(rng.random() < np.clip(rates[1] / rates.sum(), *COMBINING))
        return self.from_sums(modes) if self.is_sum else self.from_modes(modes, self.size(left))

    def learn(self, found: int, spent: int) -> None:
        """What the last batch found, and what it cost."""
        self.found[int(self.is_sum)] += found
        self.spent[int(self.is_sum)] += spent


class Places(NamedTuple):
    """Points to begin from, and the scales of the modes they come from.

    log_volumes: −log of the density with which a point was drawn, or NaN where it is not known.
    """

    points: np.ndarray
    scales: np.ndarray
    log_volumes: np.ndarray


def _directions(rng: np.random.Generator, heavy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half with log-uniform radii, a quarter isotropic and a quarter α-stable coordinates.

    The second says which are of the first half.
    """
    count = len(heavy)
    kind = rng.random(count)[:, None]
    radii = np.exp(rng.uniform(0.0, np.log(LARGEST_RADIUS), count))[:, None]
    normal = rng.standard_normal(heavy.shape)
    # Isotropic: a normal vector times the size of one stable draw.
    sizes = np.where(kind < 0.5, radii, np.abs(heavy[:, :1]))
    return np.where(kind < 0.75, sizes * normal, heavy), kind[:, 0] < 0.5


class Atlas:
    """The modes that are known so far, and what became of the relaxations.

    climbed, climbing: relaxations that were not explained, and what these took.
    met: the mass that jumps met.
    """

    def __init__(self, target: Target, modes: list[Mode] | None = None) -> None:
        self.target, self.modes = target, modes or []
        self.num_relaxations = self.num_lost = self.num_rough = 0
        self.climbed = self.climbing = 0
        self.met = NOTHING
        self.ends: list[tuple[np.ndarray, float]] = []  # of climbs that are no tops
        self.num_smooth = 0  # of those that were looked at, and are none

    @classmethod
    def of(cls, target: Target, modes: Modes) -> "Atlas":
        """An atlas that knows some modes."""
        rows = zip(modes.location, modes.logdensity, modes.covariance, strict=True)
        made = [_mode(*row) for row in rows]
        known = [
            mode._replace(times_found=int(times))
            for mode, times in zip(made, modes.times_found, strict=True)
            if mode is not None
        ]
        atlas = cls(target, known)
        atlas.num_relaxations, atlas.num_lost = modes.num_relaxations, modes.num_lost
        atlas.met = modes.met
        atlas.num_rough = modes.num_rough
        return atlas

    def has_gained(self, before: int) -> bool:
        """Whether one of the modes after the first so many has a mass that is not negligible.

        It may be one that makes all others negligible.
        """
        return bool(np.any(self._is_relevant()[before:]))

    def relax(self, points: np.ndarray, scales: np.ndarray, most: int | None = None) -> np.ndarray:
        """Climb from points, and enter what is found; the mode of each, -1 where it is lost.

        most: evaluations of each climb.
        """
        size, numbers, begun = len(points), [], self.target.evaluations
        filled = np.concatenate([points, np.full((BATCH - size % BATCH, points.shape[1]), np.nan)])
        widths = np.concatenate([scales, np.ones(BATCH - size % BATCH)])
        for begin in range(0, size, BATCH):
            part = slice(begin, begin + BATCH)
            numbers += self._enter_all(filled[part], widths[part], min(BATCH, size - begin), most)
        self.climbed += size
        self.climbing += self.target.evaluations - begun
        self._settle()
        return np.array(numbers, int)

    def _is_relevant(self) -> np.ndarray:
        """Of each mode, whether its mass may be more than negligible.

        That of a normal law is too little for a mode with heavy tails, the more so the more
        dimensions: one that many climbs lead to counts up to what a Cauchy law would have.
        """
        from scipy.special import gammaln

        if not self.modes:
            return np.zeros(0, bool)
        masses = np.array([mode.log_mass for mode in self.modes])
        hits = np.array([mode.times_found for mode in self.modes])
        half = (1 + self.target.dimension) / 2
        in_tails = gammaln(0.5) - gammaln(half) + self.target.dimension / 2 * np.log(half)
        spared = np.where(hits > OFTEN * hits.sum(), in_tails, 0.0)
        return masses > masses.max() - NEGLIGIBLE - spared

    def relax_unexplained(self, places: "Places") -> float:
        """Climb from those points at which φ is not as the modes that are known foretell.

        The others would climb to these modes, and count as if they had.  What is returned is the
        share of those that climb.
        """
        points, scales, volumes = places
        values, gradients = self.target.gradients(points)
        self.met = together(self.met, met((values + volumes)[~np.isnan(volumes)]))
        numbers = self.explaining(points, values, gradients)
        for number in numbers[numbers >= 0]:
            self._hit(int(number))
        is_open = numbers < 0
        self.num_relaxations += len(points) - int(is_open.sum())
        if np.any(is_open):
            self.relax(points[is_open], scales[is_open])
        return float(is_open.mean())

    def explaining(
        self, points: np.ndarray, values: np.ndarray, gradients: np.ndarray
    ) -> np.ndarray:
        """The number of the mode whose normal law has φ's value and gradient at a point, or -1."""
        numbers = np.full(len(points), LOST_AT)
        for number, mode in enumerate(self.modes):
            with np.errstate(over="ignore", invalid="ignore"):  # where φ is not to be computed
                whitened = (points - mode.location) @ mode.whitening.T
                squares = np.sum(whitened**2, axis=1)
                off = np.sum((gradients @ mode.factor + whitened) ** 2, axis=1)
                short = np.abs(mode.value - squares / 2 - values)
            numbers[(off < EXPLAINED**2) & (short < EXPLAINED)] = number
        return numbers

    def _enter_all(
        self, points: np.ndarray, scales: np.ndarray, count: int, most: int | None
    ) -> list[int]:
        aim = steps_of(scales, points.shape[1])
        if most is not None:
            aim = aim._replace(most=np.minimum(aim.most, most))
        found = relax(self.target, points, aim, self._known())
        self.target.evaluations -= BATCH - count  # those that fill the batch
        self.num_relaxations += count
        self.num_rough += int(self._are_rough(found)[:count].sum())
        numbers = []
        for place in range(count):
            number = LOST_AT
            if found.outcome[place] == KNOWN:
                number = self._hit(int(found.mode[place]))
            elif found.outcome[place] == TOP and np.all(np.abs(found.point[place]) < 1e15):
                number = self.enter(found.point[place], found.value[place], found.gradient[place])
            self.num_lost += number == LOST_AT
            if number == LOST_AT and np.isfinite(found.value[place]):
                self.ends.append((found.point[place], float(found.value[place])))
            numbers.append(number)
        return numbers

    def _are_rough(self, found: Relaxed) -> np.ndarray:
        """Where a climb did not begin for want of a gradient, though φ is not negligible there."""
        top = max((mode.value for mode in self.modes), default=-np.inf)
        low = top - ROUGH_DEPTH - self.target.dimension
        is_inside = np.isfinite(found.value) & (found.value > low)
        return is_inside & ~np.all(np.isfinite(found.gradient), axis=1)

    def enter(self, point: np.ndarray, value: float, gradient: np.ndarray) -> int:
        """Enter a top, unless it is a known one, or none at all; its number among the modes."""
        for number, mode in enumerate(self.modes):
            if mode.distance(point) < NEAR and value < mode.value + EXPLAINED:
                return self._hit(number)
        polished = self._polished(point, value, gradient)
        if polished is None:
            return LOST_AT
        return self.add(polished)

    def add(self, found: Mode) -> int:
        """Enter a mode, or its hits where it is a known one; its number."""
        same = self._same_as(found)
        if same is None:
            self.modes.append(found)
            return len(self.modes) - 1
        known = self.modes[same]
        best = found if found.value > known.value + 1e-3 else known
        self.modes[same] = best._replace(times_found=known.times_found + found.times_found)
        return same

    def listed(self) -> Modes:
        """What is known, the heaviest first, without what is negligible."""
        is_relevant = self._is_relevant()
        order = np.argsort([-mode.log_mass for mode in self.modes])
        kept = [self.modes[int(one)] for one in order if is_relevant[one]]
        return self._as_modes(kept)._replace(num_negligible=len(self.modes) - len(kept))

    def whole(self) -> Modes:
        """All that is known, in the order in which it was found."""
        return self._as_modes(self.modes)

    def _as_modes(self, kept: list[Mode]) -> Modes:
        dimension = self.target.dimension
        return Modes(
            np.array([mode.location for mode in kept]).reshape(-1, dimension),
            np.array([mode.covariance for mode in kept]).reshape(-1, dimension, dimension),
            np.array([mode.value for mode in kept]),
            np.array([mode.log_mass for mode in kept]),
            np.array([mode.times_found for mode in kept], int),
            self.num_relaxations,
            self.num_lost,
            self.target.evaluations,
            met=self.met,
            num_rough=self.num_rough,
        )

    def _known(self) -> Known:
        """In a number of places that is a power of two, so that few programs are compiled."""
        places = max(8, 1 << len(self.modes).bit_length())
        dimension = self.target.dimension
        location = np.full((places, dimension), np.nan)
        whitening, value = np.zeros((places, dimension, dimension)), np.zeros(places)
        for number, mode in enumerate(self.modes):
            location[number], whitening[number] = mode.location, mode.whitening
            value[number] = mode.value
        return Known(location, whitening, value)

    def _hit(self, number: int) -> int:
        mode = self.modes[number]
        self.modes[number] = mode._replace(times_found=mode.times_found + 1)
        return number

    def _polished(self, point: np.ndarray, value: float, gradient: np.ndarray) -> Mode | None:
        """Newton's steps to the top; None where they do not get there."""
        for _ in range(MOST_POLISHING):
            hessian = self.target.hessian(point)
            if not np.all(np.isfinite(hessian)):
                return None
            covariance = inverse_curvature(hessian)
            gain = gradient @ covariance @ gradient / 2
            if gain < POLISHED:
                if not np.abs(hessian).max() > NO_CURVATURE:
                    covariance = seen_covariance(self.target, point, value)
                found = _mode(point, value, covariance)
                is_strict = _is_top(gradient, hessian)
                return None if found is None else found._replace(is_strict=is_strict)
            if self._is_hopeless(value + gain, covariance):
                return None
            lengths = 0.25 ** np.arange(4.0)
            steps = point + lengths[:, None] * (covariance @ gradient)
            values, gradients = self.target.gradients(steps)
            best = int(np.argmax(values))
            if not values[best] > value:
                return None
            point, value, gradient = steps[best], values[best], gradients[best]
        return None

    def _settle(self) -> None:
        """Enter kinks and edges to which climbs came, where no mode that is known explains φ.

        Nothing climbs to them by slopes; modes as they are have no curvature.
        """
        ends, self.ends = self.ends, []
        for point, value in sorted(ends, key=lambda end: -end[1]):
            if self.modes and self.num_smooth < MOST_SMOOTH and self._is_uncovered(point, value):
                scale = FURTHER * max(mode.scale for mode in self.modes)
                found = climbed(self.target, point, value, scale * np.eye(len(point)))
                mode = _fallen_mode(found, scale * np.eye(len(point)))
                if found.is_sharp and mode is not None:
                    self.add(mode)
                    self.num_lost -= 1
                else:
                    self.num_smooth += 1

    def _is_uncovered(self, point: np.ndarray, value: float) -> bool:
        """Whether φ is far more than t laws at all known modes have there, and not low."""
        from scipy.special import gammaln

        dimension = len(point)
        if value < max(mode.value for mode in self.modes) - ROUGH_DEPTH - dimension:
            return False
        half = (1 + dimension) / 2
        height = gammaln(half) - gammaln(0.5) - dimension / 2 * np.log(np.pi)
        logs = [
            mode.log_mass
            + height
            - half * np.log1p(mode.distance(point) ** 2)
            - float(np.sum(np.log(np.diag(mode.factor))))
            for mode in self.modes
        ]
        return value > np.logaddexp.reduce(logs) + UNCOVERED

    def narrow(self) -> None:
        """Modes of more mass than all that jumps met are as wide as log φ falls along their axes.

        At a flat top, as that of −x⁸, the curvature is next to nothing, and tells a width that is
        far too large; a law so heavy would make all others negligible.
        """
        count, log_sum, _ = self.met
        if count < FEWEST_MET:
            return
        for number, mode in enumerate(self.modes):
            if mode.log_mass > log_sum - np.log(count) + TOO_HEAVY and not mode.is_measured:
                self.modes[number] = self._measured(mode)

    def _measured(self, mode: Mode) -> Mode:
        variances, axes = np.linalg.eigh(mode.covariance)
        axes = axes * np.sqrt(variances)
        found = _fallen_mode(fallen(self.target, mode.location, mode.value, axes), axes)
        if found is None or found.log_mass > mode.log_mass - TOO_HEAVY:
            return mode._replace(is_measured=True)
        return found._replace(times_found=mode.times_found)

    def _is_hopeless(self, value: float, covariance: np.ndarray) -> bool:
        """Whether a top of this height and width would have next to no mass."""
        found = _mode(np.zeros(len(covariance)), value, covariance)
        most = max((mode.log_mass for mode in self.modes), default=-np.inf)
        return found is not None and found.log_mass < most - HOPELESS

    def _same_as(self, found: Mode) -> int | None:
        """The number of the known mode that this is, by distance or for want of a dip between."""
        if not self.modes:
            return None
        distances = np.array(
            [
                min(mode.distance(found.location), found.distance(mode.location))
                for mode in self.modes
            ]
        )
        is_other = np.array(
            [mode.is_around(found) or found.is_around(mode) for mode in self.modes], bool
        )
        distances[is_other] = np.inf
        if distances.min() < NEAR:
            return int(np.argmin(distances))
        inside = np.arange(1, NUM_BETWEEN + 1)[:, None] / (NUM_BETWEEN + 1)
        nearest = np.argsort(distances)[:NEIGHBOURS]
        for number in nearest[np.isfinite(distances[nearest])]:
            mode = self.modes[number]
            between = self.target.values(mode.location + inside * (found.location - mode.location))
            if between.min() > min(mode.value, found.value) - DIP:
                return int(number)
        return None


def neighbour_basis(target: Target, key: Any, modes: Modes, budget: int) -> np.ndarray:
    """Directions from modes to their neighbours, the nearest first, made a basis.

    Where a target has very many modes, these are often along few directions, of which each can be
    gone by itself: they are the shortest among the differences of all modes that are known.
    """
    best = Atlas.of(target, modes).modes[int(np.argmax(modes.logdensity))]
    atlas, jumps, begun = Atlas(target, [best]), Jumps(key), target.evaluations
    while target.evaluations - begun < budget and len(atlas.modes) < MOST_NEIGHBOURS:
        atlas.relax(*jumps.around(best))
    known = np.concatenate([modes.location, [mode.location for mode in atlas.modes[1:]]])
    whitened = known @ best.whitening.T
    first, second = np.triu_indices(len(known), 1)
    offsets = whitened[first] - whitened[second]
    offsets = offsets[np.argsort(np.linalg.norm(offsets, axis=1))]
    dimension = target.dimension
    chosen, span = np.zeros((dimension, 0)), np.zeros((dimension, 0))
    for offset in offsets:
        rest, length = offset - span @ (span.T @ offset), np.linalg.norm(offset)
        is_new = length > NEAR and np.linalg.norm(rest) > NEW * length
        if is_new and chosen.shape[1] < dimension:
            chosen = np.column_stack([chosen, offset])
            span = np.column_stack([span, rest / np.linalg.norm(rest)])
    completed, _ = np.linalg.qr(np.column_stack([span, np.eye(dimension)]))
    return best.factor @ np.column_stack([chosen, completed[:, span.shape[1] : dimension]])


def _is_top(gradient: np.ndarray, hessian: np.ndarray) -> bool:
    """Whether log φ bends downwards in all directions, and nothing is to be gained in any.

    By the curvatures as they are: with a floor, a place in the neck of a funnel passes for a top.
    """
    curvatures, vectors = np.linalg.eigh(-hessian)
    if curvatures.min() <= 0:
        return False
    return bool(np.sum((gradient @ vectors) ** 2 / curvatures) / 2 < POLISHED)


def inverse_curvature(hessian: np.ndarray) -> np.ndarray:
    """|−H|⁻¹, with eigenvalues that are neither negative nor negligible.

    Those below the floor are raised to nearly the same: were they equal, their eigenvectors would
    be lost, which are the axes of independent coordinates with very different scales.
    """
    eigenvalues, vectors = np.linalg.eigh(-hessian)
    sizes = np.abs(eigenvalues)
    floor = FLOOR * max(sizes.max(), 1e-300)
    sizes = np.maximum(sizes, floor * np.clip(sizes / floor, LOWEST, 1.0) ** SOFT)
    return (vectors / sizes) @ vectors.T


def _mode(point: np.ndarray, value: float, covariance: np.ndarray) -> Mode | None:
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    return Mode(point, float(value), covariance, factor, np.linalg.inv(factor), 1)


def _fallen_mode(found: Falls, axes: np.ndarray) -> Mode | None:
    """With the widths that were seen along the columns of a matrix."""
    mode = _mode(found.point, found.value, (axes * found.widths**2) @ axes.T)
    return None if mode is None else mode._replace(is_strict=False, is_measured=True)
