r"""A tempered system that adapts: its reference, its rungs and its mix of moves, round by round."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc.run import Result, sample

from ._adapted import info_of, refuse_endless, whole
from ._fit import improve, log_reference, shared_places
from ._local import FIRST_COST
from ._moves import FAR, Axes, Kernel
from ._reference import Fit, assemble, places_for
from ._target import Target
from ._tempered import Tempered, build, usual_chances

NUM_SYSTEMS = 8  # independent of each other: their spread gives the standard errors
LENGTHS = np.array([1, 2, 4, 8, 16]) / 31  # of the rounds
FEWEST_STEPS = 8  # of a round
MOST_OVER = 1.5  # times what adaptation should cost, where rounds are of the fewest steps
SETTLING = 2  # the first round after which adaptation may end
SETTLED = 1.02  # times the harmonic acceptance before, below which it does
# Harmonic acceptance of one mode after a round below which no mixture is expected to fit: later
# rounds add components, and those of skew targets begin low.
HOPELESS = {2: 0.2, 3: 0.3}
FIRST_RUNGS = 8
RUNGS = (1, 2, 4, 8, 12, 16, 24, 32)  # each number is another program
GOOD, POOR = 0.8, 0.05  # harmonic acceptance
TRIAL = 256  # draws of the reference, to see whether one rung will do
FIRST_DEGREES = (1.0, 2.0, 3.0, 5.0, 8.0, 15.0, np.inf)  # of freedom, for one mode
ENOUGH = 0.25  # harmonic acceptance for that
NUM_VALUES = 128  # that a kernel along an axis remembers
NUM_KNOWN = 32  # of them, at the most, are those of modes
TRYING = 2  # rounds in which another basis may be tried
MANY_MODES = 16  # from which on jumps along axes are tried
LEAST_SHARE = 0.05  # of far values: no axis is left out
FOR_ONE = 0.15  # of the moves of one rung for one mode are local, once it is frozen
WORTH = 3.0  # times the cost of a tour by tempering that a jump along each axis may have


class Ladder(NamedTuple):
    """All that a tempered system is made of, and where its systems are; plain arrays.

    harmonic: acceptance of the reference's draws, harmonically averaged.
    barrier: Λ, the sum of the rejection rates from rung to rung.
    shape: the covariance of a mode, by which what is far is told along an axis.
    basis, other_basis: along whose columns jumps are made, and may be made instead; `other_rate` is
        how often far ones were accepted along those.
    values: remembered along the axes; empty where no jumps are made along them.
    known: where modes are.  Draws of a short round may all be on one side along an axis; were they
        all that is remembered, no jump along it would ever go to the other.
    local_cost: evaluations of a local move by another sampler, on average; 0 if there is none.
    """

    fit: Fit
    prior: Fit
    betas: np.ndarray
    step_sizes: np.ndarray
    chances: np.ndarray
    points: np.ndarray
    harmonic: float
    barrier: float
    basis: np.ndarray
    values: np.ndarray
    widths: np.ndarray
    places: int
    shape: np.ndarray
    other_basis: np.ndarray
    other_rate: float
    known: np.ndarray
    local_cost: float

    @property
    def num_moves(self) -> int:
        """Of all rungs in a step of one system."""
        return self.chances.shape[0] * len(self.betas)

    @property
    def cost(self) -> float:
        """Evaluations of a step of one system, expected where local moves are another sampler's."""
        return self.num_moves * (1 + self.local_cost)

    @property
    def has_axes(self) -> bool:
        return bool(self.values.size)

    def _axes(self, dtype: Any) -> Axes:
        """Axes along which stored values are far apart are gone more often."""
        apart = np.abs(self.values[:, :, None] - self.values[:, None, :])
        share = np.mean(apart > FAR * self.widths[:, None, None], axis=(1, 2))
        return Axes(
            jnp.asarray(self.basis, dtype),
            jnp.asarray(np.linalg.inv(self.basis), dtype),
            jnp.asarray(self.values, dtype),
            jnp.asarray(self.widths, dtype),
            jnp.asarray(np.log(share + LEAST_SHARE), dtype),
        )

    def algorithm(self, target: Target, *, gain: float = 0.0) -> Tempered:
        axes = None
        if self.has_axes:
            axes = self._axes(target.dtype)
        return build(
            target.logdensity_fn,
            assemble(self.fit, target.dtype, self.places),
            self.betas,
            self.step_sizes,
            chances=self.chances,
            axes=axes,
            gain=gain,
            has_gradient=target.has_gradient and target.local is None,
            local=target.local,
        )


class Directions(NamedTuple):
    """A basis to jump along, the covariance of a mode, by which what is far is told, and modes."""

    basis: np.ndarray
    shape: np.ndarray
    known: np.ndarray


class Draws(NamedTuple):
    """Draws of all systems, with log φ and log φ − log q there; axes (system, draw, …)."""

    points: np.ndarray
    values: np.ndarray
    ratios: np.ndarray


def draws_of(target: Target, result: Result) -> Draws:
    info = info_of(result)
    points = target.flattened(result.positions)
    refuse_endless(points)
    return Draws(points, np.asarray(info.logdensity, float), np.asarray(info.ratios[..., -1]))


def begin(target: Target, key: Any, prior: Fit, directions: Directions | None = None) -> Ladder:
    """A ladder from what exploration found: one rung if the reference is good, eight if not."""
    # Room for components that are split, where that costs little.
    spare = 4 if target.dimension <= 10 else 1
    count = len(prior.weights)
    places = places_for(max(count, min(64, spare * count)))
    prior, harmonic = _tried(target, key, prior, places)
    num_rungs = 1 if harmonic > ENOUGH else FIRST_RUNGS
    nothing = np.zeros((0, 0))
    ladder = Ladder(
        prior,
        prior,
        np.arange(1, num_rungs + 1) / num_rungs,
        np.full(num_rungs, target.dimension ** (-1 / 6)),
        usual_chances(num_rungs),
        _starts(target, key, prior),
        harmonic,
        np.nan,
        np.eye(target.dimension),
        nothing,
        nothing,
        places,
        prior.covariances[0] if directions is None else directions.shape,
        nothing if directions is None else directions.basis,
        -1.0,
        prior.means if directions is None else directions.known,
        0.0 if target.local is None else FIRST_COST,
    )
    return ladder._replace(chances=_chances(ladder))


def _tried(target: Target, key: Any, prior: Fit, places: int) -> tuple[Fit, float]:
    """The fit, or for one mode the best of the t laws of its curvature; its harmonic acceptance.

    In many dimensions a t law is much wider than its curvature at the top tells, by (ν + d)/ν in
    the variance; of one mode this is seen at once, of several when the rounds fit them.
    """
    fits = [prior]
    if is_one_mode(target, prior):
        fits = [_of_curvature(prior, degrees) for degrees in FIRST_DEGREES]
    keys, drawn = jax.random.split(key, TRIAL), []
    for number, fit in enumerate(fits):
        reference = assemble(fit, target.dtype, places)
        drawn.append(_drawn(reference, keys[number :: len(fits)]))
    points = np.concatenate(drawn)
    values = target.values(points)
    logs = np.array([log_reference(fit, points) for fit in fits])
    together = np.logaddexp.reduce(logs, axis=0) - np.log(len(fits))
    found = [harmonic_of_proposals(values - own, own - together) for own in logs]
    best = int(np.argmax(found))
    return fits[best], found[best]


@jax.jit
def _drawn(reference: Any, keys: Any) -> Any:
    return jax.vmap(reference.sample)(keys)


def _of_curvature(prior: Fit, degrees: float) -> Fit:
    """The t law with the curvature of a fit at its top."""
    wider = 1 + prior.means.shape[1] / degrees
    return prior._replace(covariances=wider * prior.covariances, degrees=np.full(1, degrees))


def harmonic_of_proposals(log_ratios: np.ndarray, log_shares: np.ndarray) -> float:
    """The harmonic acceptance, from draws of another law p instead of π.

    log_ratios: log φ − log q, up to a constant.  log_shares: log q − log p.
    """
    known = np.where(np.isfinite(log_ratios), log_ratios, -np.inf)
    if not np.any(np.isfinite(known)):
        return 0.0
    weights = np.exp(known - known.max())
    proposed = np.exp(log_shares - log_shares.max())
    positive = weights > 1e-300
    ratios = np.minimum(1.0, weights[None] / weights[positive, None])
    acceptance = np.maximum(ratios @ (proposed / proposed.sum()), 1e-300)
    of_target = (weights * proposed)[positive]
    return float(of_target.sum() / np.sum(of_target / acceptance))


def _starts(target: Target, key: Any, fit: Fit) -> np.ndarray:
    """A point per system, near modes in turn, the heavier ones first."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    order = np.argsort(-fit.weights)
    points = np.empty((NUM_SYSTEMS, target.dimension))
    for system in range(NUM_SYSTEMS):
        number = order[system % len(order)]
        factor = np.linalg.cholesky(fit.covariances[number])
        points[system] = fit.means[number] + factor @ rng.standard_normal(target.dimension)
    outside = ~np.isfinite(target.values(points))
    points[outside] = fit.means[order[0]]
    return points


def rounds(
    target: Target,
    key: Any,
    ladder: Ladder,
    budget: int,
    look: Callable[[Ladder, Draws], bool],
) -> Ladder:
    """Adapt in rounds that get longer; `look` at each, and end early if it wants to."""
    begun = target.evaluations
    can_give_up = target.local is None and is_one_mode(target, ladder.prior)  # as NUTS takes over
    for number, share in enumerate(LENGTHS):
        shortest = NUM_SYSTEMS * (FEWEST_STEPS * ladder.cost + 1)
        if number and target.evaluations - begun + shortest > MOST_OVER * budget:
            return ladder  # rounds of fewer steps would show nothing
        steps = int(budget * share / (NUM_SYSTEMS * ladder.cost))
        result = whole(run(target, jax.random.fold_in(key, number), ladder, steps, gain=1.0))
        draws = draws_of(target, result)
        if look(ladder, draws):
            return ladder
        before = ladder.harmonic
        ladder = _adapted(ladder, result, draws, number)
        if number >= SETTLING and _is_settled(ladder, before):
            return ladder
        if can_give_up and ladder.harmonic < HOPELESS.get(number, 0.0):
            return ladder
    return ladder


def _is_settled(ladder: Ladder, before: float) -> bool:
    """Whether longer rounds would buy little: draws are worth more."""
    return is_good(ladder) and ladder.harmonic < SETTLED * before


def is_good(ladder: Ladder) -> bool:
    """Whether draws are nearly independent."""
    return len(ladder.betas) == 1 and ladder.harmonic > GOOD


def run(
    target: Target, key: Any, ladder: Ladder, steps: int, *, gain: float = 0.0, **how: Any
) -> Result:
    """Run the systems of a ladder from where they are, and count what it costs."""
    steps = max(steps, FEWEST_STEPS)
    algorithm = ladder.algorithm(target, gain=gain)
    starts = target.positions(ladder.points)
    result = sample(algorithm, key, starts, steps, **{"progress": False, **how})
    target.evaluations += spent_on(result)
    return result


def spent_on(result: Result) -> int:
    """Evaluations of a run: those of its steps, and one for each start."""
    return int(np.sum(info_of(result).num_evaluations)) + NUM_SYSTEMS


def _adapted(ladder: Ladder, result: Result, draws: Draws, number: int) -> Ladder:
    """What the next round is run with."""
    first = draws.points.shape[1] // 4
    split = NUM_SYSTEMS // 2
    halves = [slice(0, split), slice(split, None)]
    (points, _), held_out = (
        (_joined(draws.points[half, first:]), _joined(draws.values[half, first:]))
        for half in (halves if number % 2 == 0 else halves[::-1])
    )
    fit, harmonic = improve(ladder.fit, ladder.prior, points, held_out)
    rejections = 1 - _mean(result.info.swap_rates[:, first:])
    if ladder.has_axes and len(ladder.betas) == 1:
        betas, barrier = ladder.betas, ladder.barrier
    else:
        betas, barrier = _rungs(ladder.betas, rejections, harmonic)
    step_sizes = np.exp(
        np.interp(betas, ladder.betas, np.log(np.median(result.info.step_sizes[:, -1], axis=0)))
    )
    places = max(ladder.places, shared_places(fit))
    changed = ladder._replace(
        fit=fit,
        betas=betas,
        step_sizes=step_sizes,
        points=draws.points[:, -1],
        harmonic=harmonic,
        barrier=barrier,
        places=places,
        local_cost=float(np.mean(result.info.num_evaluations)) / ladder.num_moves - 1,
    )
    changed = _with_axes(changed, result, draws, number)
    return changed._replace(chances=_chances(changed))


def _joined(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[2:])


def _mean(rates: np.ndarray) -> np.ndarray:
    """Over systems and draws, of those that are known."""
    flat = _joined(np.asarray(rates, float))
    known = ~np.isnan(flat)
    sums = np.where(known, flat, 0.0).sum(axis=0)
    return sums / np.maximum(known.sum(axis=0), 1)


def _rungs(betas: np.ndarray, rejections: np.ndarray, harmonic: float) -> tuple[np.ndarray, float]:
    """How many rungs, and where: as many as make tours cheapest, with equal rejection rates."""
    barrier = float(rejections.sum())
    num_rungs = _number_of_rungs(barrier, harmonic, len(betas))
    cumulative = np.concatenate([[0.0], np.cumsum(np.maximum(rejections, 1e-3))])
    wanted = cumulative[-1] * np.arange(1, num_rungs + 1) / num_rungs
    placed = np.interp(wanted, cumulative, np.concatenate([[0.0], betas]))
    placed[-1] = 1.0
    return placed, barrier


def tour_cost(num_rungs: int, barrier: float, harmonic: float) -> float:
    """Evaluations between two arrivals of a fresh point at the target, as theory has it."""
    if num_rungs == 1:
        return 2 * (2 + 2 * (1 - harmonic) / max(harmonic, 1e-9))
    rejection = min(barrier / num_rungs, 0.999)
    return (num_rungs + 0.5) * (2 + 2 * num_rungs * rejection / (1 - rejection))


def _number_of_rungs(barrier: float, harmonic: float, current: int) -> int:
    """The cheapest; at least eight where the reference is poor.

    With one rung the barrier is that of independent proposals, and says less: then eight are tried.
    """
    if current == 1 and harmonic < ENOUGH:
        return FIRST_RUNGS
    if current == 1:
        return 1
    least = FIRST_RUNGS if harmonic < POOR else 1
    costs = {
        count: tour_cost(count, barrier, harmonic) for count in (current, *RUNGS) if count >= least
    }
    best = min(costs, key=costs.__getitem__)
    # Another number is another program to compile: it changes for a clear gain only.  One rung
    # keeps a draw for each evaluation, which counts, too.
    clear = 1.0 if best == 1 else 1.5
    return current if costs.get(current, np.inf) < clear * costs[best] else best


def frozen(ladder: Ladder) -> Ladder:
    """With the moves for draws that are kept, where they differ from those it learns by.

    Draws of the reference reach all of one mode, and local moves are for where it is too light; but
    from those a reference is learned that does not fit yet.
    """
    is_one = len(ladder.prior.weights) == 1 and not is_pooled(ladder.prior)
    if len(ladder.betas) > 1 or ladder.has_axes or ladder.local_cost or not is_one:
        return ladder
    chances = np.zeros_like(ladder.chances)
    chances[..., Kernel.LOCAL], chances[..., Kernel.INDEPENDENT] = FOR_ONE, 1 - FOR_ONE
    return ladder._replace(chances=chances)


def _chances(ladder: Ladder) -> np.ndarray:
    """Of the kinds of moves, for each half of a step and each rung.

    Where another sampler moves locally, after every move, all of these are over long distances.
    """
    chances = _own_chances(ladder)
    if ladder.local_cost:
        chances[..., Kernel.INDEPENDENT] += chances[..., Kernel.LOCAL]
        chances[..., Kernel.LOCAL] = 0.0
    return chances


def _own_chances(ladder: Ladder) -> np.ndarray:
    num_rungs = len(ladder.betas)
    chances = usual_chances(num_rungs)
    can_leap = len(ladder.fit.weights) > 1
    if num_rungs == 1:
        chances[0, 0] = _mix_of_one_rung(ladder, can_leap)
        return chances
    if can_leap:
        chances[:, -1, Kernel.LOCAL], chances[:, -1, Kernel.DETERMINISTIC] = 0.6, 0.4
    if ladder.has_axes:
        half = chances[..., Kernel.LOCAL] / 2
        chances[..., Kernel.LOCAL] -= half
        chances[..., Kernel.ALONG_AXIS] += half
    return chances


def _mix_of_one_rung(ladder: Ladder, can_leap: bool) -> np.ndarray:
    if ladder.has_axes:
        return np.array([0.2, 0.05, 0.05 * can_leap, 0.75 - 0.05 * can_leap])
    local = 0.25 if ladder.harmonic > GOOD else 0.5
    leap = 0.2 if can_leap and ladder.harmonic <= GOOD else 0.0
    return np.array([local - leap / 2, 1 - local - leap / 2, leap, 0.0])


def _with_axes(ladder: Ladder, result: Result, draws: Draws, number: int) -> Ladder:
    """Remember values along the axes where there are many modes; drop that if it does not pay."""
    if ladder.points.shape[1] < 2:
        return ladder
    if ladder.has_axes:
        rate = float(_mean(result.info.jump_rates[..., 1:])[0])
        if number < TRYING and ladder.other_basis.size and ladder.other_rate < 0:
            turned = ladder._replace(
                basis=ladder.other_basis, other_basis=ladder.basis, other_rate=rate
            )
            return _remembering(turned, draws)
        if ladder.other_rate > rate:
            rate = ladder.other_rate
            ladder = ladder._replace(
                basis=ladder.other_basis, other_basis=ladder.basis, other_rate=0.0
            )
        tour = tour_cost(len(ladder.betas), ladder.barrier, ladder.harmonic)
        is_worth = len(ladder.basis) / max(rate, 1e-9) < WORTH * tour
        if not is_worth or ladder.harmonic >= ENOUGH:
            return ladder._replace(values=np.zeros((0, 0)), widths=np.zeros((0, 0)))
        if len(ladder.basis) / max(rate, 1e-9) < tour:  # then the other rungs are not worth theirs
            ladder = ladder._replace(betas=np.ones(1), step_sizes=ladder.step_sizes[-1:])
        return _remembering(ladder, draws)
    is_tried = len(ladder.prior.weights) >= MANY_MODES or is_pooled(ladder.prior)
    is_tried = is_tried and number == 0 and ladder.harmonic < ENOUGH
    return _remembering(ladder, draws) if is_tried else ladder


def is_pooled(fit: Fit) -> bool:
    return len(fit.weights) == 1 and fit.degrees[0] == 30.0


def is_one_mode(target: Target, prior: Fit) -> bool:
    """Whether a search by gradients found one mode."""
    return len(prior.weights) == 1 and target.has_gradient and not is_pooled(prior)


def _remembering(ladder: Ladder, draws: Draws) -> Ladder:
    flat = _joined(draws.points[:, draws.points.shape[1] // 4 :])
    modes = _spread(ladder.known, min(NUM_KNOWN, len(ladder.known)))
    chosen = np.concatenate([modes, _spread(flat, NUM_VALUES - len(modes))])
    values = np.linalg.solve(ladder.basis, chosen.T)
    inverse = np.linalg.inv(ladder.basis)
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", inverse, ladder.shape, inverse))
    return ladder._replace(values=values, widths=deviations / 2)


def _spread(rows: np.ndarray, count: int) -> np.ndarray:
    """So many of the rows, evenly."""
    return rows[np.linspace(0, len(rows) - 1, count).astype(int)]
