r"""Find the numbers of a sampler from short runs, on a budget; then freeze them."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_count, check_key
from levymc.algorithms import Dense, SamplingAlgorithm
from levymc.drifts import LogDensity
from levymc.run import Result, sample

from ._adapted import Adapted, counts, last, whole
from ._nuts import Nuts, averaged_step_size, nuts
from ._pilot import FEWEST_DRAWS, pilot_map, tune_walk
from ._step_sizes import tune_steps
from ._tail_map import KINDS, Fitted, fit, flat_draws, identity

WINDOWS = (75, 100, 150, 250)  # draws of each chain, after which the map is fitted again
TO_TURN = (400, 800)  # more windows where axes were learned, whose error falls as 1/draws
TURN_SHARE = 0.5  # of what is left, for each of these at most: the map is still to be judged
CHECKED = 100  # draws for the step size, then as many to judge the map, and the plain metric
SHORTEST_WINDOW = 25  # draws; shorter ones are joined to the next
DRAWS_PER_COORDINATE = 10  # for a fit: where a window has fewer, those before it are added
FIRST_COST = 15.0  # gradients a draw, before any is known
LEAST_STEP = 0.5  # to begin with: one that is too long costs a gradient, a short one a thousand
MOST_DIVERGENT = 0.05  # with a map, unless the plain metric diverges half as often
MOST_OF_PLAIN = 2.0  # evaluations for the plain metric's trial, of what the map's took
TREE_SHARE = 0.05  # of the budget, in which the longest trajectories of all chains must fit
FEWEST_DOUBLINGS, MOST_DOUBLINGS = 5, 10
WARM_UP_SHARE = 0.45
# What is worth a note.
MANY_DIVERGENT, LOW_BFMI, MANY_CUT = 0.02, 0.3, 0.05
STRAIGHT = ("linear", "curvature", "given")  # kinds of maps without tails
UNJUDGED = (
    "The budget ended before the sampler could be judged: map and step size are those of the last "
    "window. Give a larger budget."
)


def warm_up(
    algorithm: SamplingAlgorithm[Any],
    key: Any,
    initial_positions: Any,
    *,
    budget: int,
    kinds: tuple[str, ...] = KINDS,
) -> Adapted:
    r"""Tune a sampler by short runs of it, and freeze it.

    - `levymc.adapt.nuts`: windows of 75, 100, 150 and 250 draws, after each of which the tail map
      is fitted to the draws of all chains, and of 400 and 800 where it has axes of its own; the
      step size by dual averaging to an acceptance of 0.8; and a trial of the map against the plain
      dense metric.
    - `levymc.mafla`: the step size, to accept a half at α = 1.8 and a fifth at 1.2, and a
      preconditioner from quantiles.
    - `levymc.levy_walk`: the scale of each coordinate, to accept 0.3.

    Nothing rests on the variance of draws whose tails are heavy, but for the plain metric.

    Targets: what the frozen algorithm targets, exactly; the draws of the warm-up are not kept.

    Args:
        algorithm: one of these; its numbers are where the search begins.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the chains along their first axis.
        budget: evaluations of the density, or of density and gradient, by all chains together: at
            most so many are made.  Where they are few, windows are shortened.
        kinds: of tail maps to choose from, see `levymc.adapt.tail_map`; for NUTS.

    Returns: `Adapted`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -jnp.sum((x / 100) ** 2) / 2, 1.0)
        >>> starts = jnp.zeros((4, 2))
        >>> adapted = levymc.adapt.warm_up(walk, jax.random.key(0), starts, budget=4000)
        >>> bool(jnp.all(adapted.algorithm.scale > 30))
        True
    """
    key = check_key(key)
    check_count("budget", budget, "It is a number of evaluations, such as 50000.")
    name = getattr(algorithm, "name", type(algorithm).__name__)
    if isinstance(algorithm, Nuts):
        return _WarmUp(algorithm, key, initial_positions, budget, kinds).run()
    if isinstance(algorithm, Dense):
        raise TypeError(
            f"`algorithm` must be without a `covariance`, got {name} with one. Warm it up without: "
            "the widths of the coordinates are found."
        )
    if name == "levy_walk" and getattr(algorithm, "coordinatewise", False):
        return tune_walk(algorithm, key, initial_positions, budget)
    if name in ("levy_walk", "mafla"):
        return tune_steps(algorithm, key, initial_positions, budget)
    raise TypeError(
        f"`algorithm` must be of levymc.adapt.nuts, levymc.mafla or levymc.levy_walk, got {name}. "
        "Others have no acceptance rate to tune by."
    )


def one_mode(
    logdensity_fn: LogDensity,
    key: Any,
    initial_positions: Any,
    *,
    budget: int,
    covariance: Any = None,
    kinds: tuple[str, ...] = KINDS,
) -> Adapted:
    """NUTS after a tail map, for a target with one mode: a pilot, then `warm_up`.

    The pilot is a Lévy walk along coordinates, which finds scales that nobody knows, and tails,
    without gradients.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree; differentiable.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the chains along their first axis.
        budget: evaluations for all that is to come; at most 45 % of them are spent here.
        covariance: of the flat position, such as that of a Laplace approximation, if one is known:
            then the pilot walks along its axes.
        kinds: of tail maps to choose from, see `levymc.adapt.tail_map`.

    Returns: `Adapted`.
    """
    key_pilot, key_windows = jax.random.split(check_key(key))
    budget = int(WARM_UP_SHARE * check_count("budget", budget, "Such as 200000.", least=100))
    positions = jax.tree.map(jnp.asarray, initial_positions)
    longest = TREE_SHARE * budget / counts(positions)[0]
    doublings = min(MOST_DOUBLINGS, max(FEWEST_DOUBLINGS, int(math.log2(max(longest, 1.0)))))
    if covariance is not None:
        covariance = np.asarray(covariance, np.float64)
    first, spent = pilot_map(logdensity_fn, key_pilot, positions, budget, covariance, kinds)
    sampler = nuts(logdensity_fn, 1.0, first.fitted.map, max_num_doublings=doublings)
    stages = _WarmUp(sampler, key_windows, first.positions, budget - spent, kinds, covariance)
    adapted = stages.run()
    facts = {**adapted.facts, "pilot_map": first.fitted.kind, "pilot_gain": first.fitted.gain}
    return adapted._replace(evaluations={"pilot": spent, **adapted.evaluations}, facts=facts)


# The warm-up of NUTS.


class _Window(NamedTuple):
    """A run, and which of its draws were made before the allowance was used up."""

    result: Result
    is_made: np.ndarray  # (chain, draw)
    evaluations: int

    @property
    def info(self) -> Any:
        return self.result.info

    def draws(self, begin: float) -> np.ndarray:
        """Those of all chains as vectors, without the first part of each chain."""
        flat = flat_draws(self.result.positions).reshape(*self.is_made.shape, -1)
        return flat[self.is_later(begin)]

    def is_later(self, begin: float) -> np.ndarray:
        number = np.cumsum(self.is_made, axis=1)
        return self.is_made & (number > begin * number[:, -1:])

    def mean(self, values: np.ndarray, begin: float = 0.0) -> float:
        """Over draws that were made; 0 if there are none."""
        chosen = np.asarray(values, np.float64)[self.is_later(begin)]
        return float(chosen.mean()) if chosen.size else 0.0

    @property
    def cost(self) -> float:
        return self.mean(self.info.num_integration_steps)

    @property
    def step_size(self) -> float | None:
        """What dual averaging found, the median over chains."""
        found = [
            averaged_step_size(steps[made])
            for steps, made in zip(self.info.step_size, self.is_made, strict=True)
            if made.any()
        ]
        return float(np.exp(np.median(np.log(found)))) if found else None

    @property
    def e_bfmi(self) -> float:
        chains = zip(self.info.energy, self.is_made, strict=True)
        return worst_e_bfmi([np.asarray(energies)[made] for energies, made in chains])


def worst_e_bfmi(chains: Iterable[Any]) -> float:
    """How well energies are explored, by the worst chain (Betancourt 2016); 1 if not known."""
    found = [1.0]
    for energies in chains:
        own = np.asarray(energies, np.float64)
        if len(own) > 3 and np.var(own) > 0:
            found.append(float(np.mean(np.diff(own) ** 2) / np.var(own)))
    return min(found)


class _Trial(NamedTuple):
    """A sampler that was adapted, and a run by which it is judged."""

    algorithm: Nuts
    fitted: Fitted
    window: _Window


class _WarmUp:
    """The stages, each within what the budget leaves it."""

    def __init__(
        self,
        algorithm: Nuts,
        key: Array,
        initial_positions: Any,
        budget: int,
        kinds: tuple[str, ...],
        covariance: np.ndarray | None = None,
    ) -> None:
        self.algorithm, self.key, self.budget = algorithm, key, budget
        self.kinds, self.covariance = kinds, covariance
        self.positions = jax.tree.map(jnp.asarray, initial_positions)
        self.num_chains, self.size = counts(self.positions)
        self.evaluations: dict[str, int] = {}
        self.left = sum(WINDOWS) + 3 * CHECKED + CHECKED // 2  # draws that are planned
        self.cost, self.num_runs = FIRST_COST, 0
        given = identity(self.size) if algorithm.tail_map is None else algorithm.tail_map
        self.fitted, self.step_size = Fitted(given, "given", 0.0), algorithm.step_size
        self.latest = np.zeros((0, self.size))

    def run(self) -> Adapted:
        length = 0
        for number, planned in enumerate(WINDOWS, 1):
            length += planned
            if self.share * length < SHORTEST_WINDOW and number < len(WINDOWS):
                continue  # too short to learn from: the next is longer by it
            self.learn(f"window {number}", length)
            length = 0
        for more in TO_TURN:
            if self.fitted.kind == "turned":
                self.left += more
                self.learn("axes", more, TURN_SHARE * self.room)
        if not self.evaluations:
            raise ValueError(
                f"`budget` must leave room for a trajectory of each chain, got {self.budget} for "
                f"{self.num_chains} chains with at most {self.longest} gradients each. Give more, "
                "or a smaller max_num_doublings."
            )
        mapped = self.trial("map", self.fitted, self.step_size, CHECKED)
        if mapped is None:  # the windows took all there was
            frozen = self.frozen(self.fitted, self.step_size)
            return self.adapted(_Trial(frozen, self.fitted, self.last), [UNJUDGED])
        if self.fitted.kind in STRAIGHT:
            return self.adapted(mapped, [])
        return self.adapted(*self.guard(mapped))

    @property
    def longest(self) -> int:
        return 2**self.algorithm.max_num_doublings - 1

    @property
    def room(self) -> int:
        """Evaluations that are left, for each chain."""
        return (self.budget - sum(self.evaluations.values())) // self.num_chains

    @property
    def share(self) -> float:
        """Of the draws that are planned, those that there is room for."""
        return min(1.0, self.room / (self.cost * self.left))

    def learn(self, stage: str, length: int, most: float = math.inf) -> None:
        """Run a window, and learn map and step size from it; nothing without room."""
        window = self.window(stage, self.fitted, self.step_size, length, most=most)
        if window is None:
            return
        self.step_size = window.step_size or self.step_size
        draws = window.draws(0.25)
        # Few draws, or axes to be found, of which the furthest draws tell most: all serve.
        if len(draws) < DRAWS_PER_COORDINATE * self.size or self.fitted.kind == "turned":
            draws = np.concatenate([self.latest, draws])
        self.latest = draws
        if len(draws) >= FEWEST_DRAWS:
            self.fitted = fit(draws, self.kinds, self.covariance)
            # The step of another map: a good one admits about 1, whatever it was before.
            self.step_size = max(self.step_size, LEAST_STEP)

    def window(
        self,
        stage: str,
        fitted: Fitted,
        step_size: float,
        length: int,
        *,
        gain: float = 1.0,
        most: float = math.inf,
    ) -> _Window | None:
        """Run it, shortened where the budget is, and count what it takes; None without room."""
        count = max(1, round(self.share * length))
        # Twice what is due to it, as some windows are dearer; but what is made is made.
        allowance = min(self.room, most, max(2 * self.room * length / self.left, 2 * self.longest))
        self.left = max(self.left - length, 1)
        if allowance < self.longest + 1:
            return None
        algorithm = dataclasses.replace(
            self.algorithm,
            step_size=step_size,
            tail_map=fitted.map,
            gain=gain,
            allowance=float(allowance - 1),  # one is for the start
        )
        key = jax.random.fold_in(self.key, self.num_runs)
        self.num_runs += 1
        result = whole(sample(algorithm, key, self.positions, count, progress=False))
        gradients = np.asarray(result.info.num_integration_steps, np.int64)
        spent = self.num_chains + int(gradients.sum())
        self.evaluations[stage] = self.evaluations.get(stage, 0) + spent
        self.positions = last(result.positions)
        window = _Window(result, gradients > 0, spent)
        self.cost, self.last = max(window.cost, 1.0), window
        return window

    def trial(
        self, stage: str, fitted: Fitted, step_size: float, length: int, most: float = math.inf
    ) -> _Trial | None:
        """Find the step size for a map, then judge both by a frozen run; None without room."""
        tuned = self.window(stage, fitted, step_size, length, most=most)
        if tuned is None:
            return None
        found = tuned.step_size or step_size
        most -= tuned.evaluations / self.num_chains
        judged = self.window(stage, fitted, found, CHECKED, gain=0.0, most=most)
        return _Trial(self.frozen(fitted, found), fitted, judged or tuned)

    def frozen(self, fitted: Fitted, step_size: float) -> Nuts:
        return dataclasses.replace(
            self.algorithm, step_size=step_size, tail_map=fitted.map, gain=0.0, allowance=math.inf
        )

    def guard(self, mapped: _Trial) -> tuple[_Trial, list[str], str]:
        """The map's trial, or that of the plain metric where the map does harm."""
        plain_map = fit(self.latest, ("linear",))
        most = MOST_OF_PLAIN * self.evaluations["map"] / self.num_chains
        plain = self.trial("plain metric", plain_map, LEAST_STEP, CHECKED // 2, most)
        reason = None if plain is None else _objection(mapped.window, plain.window)
        if plain is None or reason is None:
            return mapped, [], ""
        refused = (
            f"A map of the tails ({mapped.fitted.kind}) was fitted and refused, as {reason}; the "
            "plain dense metric is used."
        )
        return plain, [refused], refused

    def adapted(self, chosen: _Trial, notes: list[str], refused: str = "") -> Adapted:
        """What was chosen; that a map was refused is no reason to doubt it, and is a fact, too."""
        window, fitted = chosen.window, chosen.fitted
        at_limit = window.info.num_trajectory_expansions >= self.algorithm.max_num_doublings
        divergent = window.mean(window.info.is_divergent)
        facts: dict[str, float | int | str] = {
            "sampler": "nuts",
            "map": fitted.kind,
            "gain": fitted.gain,
            "step_size": float(chosen.algorithm.step_size),
            "acceptance_rate": window.mean(window.info.acceptance_rate),
            "divergent": divergent,
            "e_bfmi": window.e_bfmi,
            "at_most_doublings": window.mean(at_limit),
            "max_num_doublings": self.algorithm.max_num_doublings,
            "refused": refused,
        }
        cost = max(window.cost, 1.0)
        return Adapted(
            chosen.algorithm, self.positions, self.evaluations, cost, facts, notes + advice(facts)
        )


def _objection(mapped: _Window, plain: _Window) -> str | None:
    """What speaks against a map, if anything does."""
    divergent = [window.mean(window.info.is_divergent) for window in (mapped, plain)]
    if divergent[0] > max(MOST_DIVERGENT, 2 * divergent[1]):
        return f"{divergent[0]:.0%} of its trajectories diverged ({divergent[1]:.0%} without it)"
    distances = _jump_distances(mapped, plain)
    if distances[0] < distances[1]:
        return f"it moves {distances[0] / distances[1]:.2f} times as far for the same work"
    return None


def _jump_distances(*windows: _Window) -> list[float]:
    """Mean squared jumps of normal scores of the ranks, for each gradient.

    Ranks are those among the draws of all windows together, so that tails have no weight.
    """
    from scipy import special, stats  # only here, as it takes a second

    parts = [window.draws(0.0) for window in windows]
    pooled = np.concatenate(parts)
    ranks = stats.rankdata(pooled, axis=0)
    scores = special.ndtri((ranks - 0.375) / (len(pooled) + 0.25))
    found = []
    for window, own in zip(windows, np.split(scores, [len(parts[0])]), strict=True):
        lengths = window.is_made.sum(axis=1)
        chains = np.split(own, np.cumsum(lengths)[:-1])
        jumps = np.concatenate([np.diff(chain, axis=0) for chain in chains])
        found.append(float(np.mean(jumps**2)) / window.cost if jumps.size else 0.0)
    return found


def advice(facts: Mapping[str, Any]) -> list[str]:
    """Sentences on what a person should know."""
    notes = []
    if facts["divergent"] > MANY_DIVERGENT:
        notes.append(
            f"{facts['divergent']:.1%} of the trajectories diverge: some region, such as the neck "
            "of a funnel or of a centred hierarchy, or the edge of a bounded support, is too "
            "narrow for the step size, and visited too rarely. Reparametrise: write a group's "
            "effects as mean + scale × standard ones, a positive number as an exponential."
        )
    if facts["e_bfmi"] < LOW_BFMI:
        notes.append(
            f"The energy is explored slowly (E-BFMI {facts['e_bfmi']:.2f}, below 0.3): the width "
            "of the target changes a lot along some coordinate, as in a funnel or a centred "
            "hierarchy, or its tails are heavier than the map makes them. Reparametrise, and "
            "distrust the tails."
        )
    if facts["at_most_doublings"] > MANY_CUT:
        notes.append(
            f"{facts['at_most_doublings']:.0%} of the trajectories were cut at "
            f"2^{facts['max_num_doublings']} steps: the target is much longer in some direction "
            "than in others, in a way that no fixed metric mends. Rescale or reparametrise, or "
            "give a larger budget."
        )
    return notes
