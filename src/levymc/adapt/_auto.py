r"""One call: modes, scales and tails are found, the kernel is chosen, frozen, and run."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from levymc._checks import (
    check_count,
    check_folder,
    check_key,
    check_mesh,
    check_scalar_output,
)
from levymc.drifts import LogDensity
from levymc.run import Result, check_shards, stage_bar

from ._adapted import info_of
from ._bridge import Evidence
from ._explore import AWAY, Atlas, Jumps, Modes, go_on, neighbour_basis
from ._free import Hills, by_walking, hills_of
from ._ladder import NUM_SYSTEMS, Directions, Ladder, is_good, is_pooled
from ._local import Maker, check_local, name_of
from ._many import (
    FOUND_LATE,
    GOOD_FOR_ONE,
    LEAST_LEFT,
    MOST_RESTARTS,
    MOST_UNSEEN,
    Basins,
    Monitor,
    Plan,
    Sampled,
    adapt_ladder,
    basins_of,
    components_of,
    doubted,
    draw,
    draws_of,
    evidence,
    found_modes,
    objections,
    on_probation,
    too_few,
)
from ._met import more_than
from ._outcome import NO_EVIDENCE, Account, AutoResult, FoundModes, counted, in_digits, written
from ._reference import Fit, laplace
from ._search import num_parts, searched
from ._single import sample_one_mode
from ._stages import identity_of, working_in
from ._target import Target, check_support, checked_starts

EXPLORING = 0.25  # of the budget, at most
SPARE, MORE_SPARE, MOST_SPARE = 0.12, 0.85, 0.4  # of it, for a second search: see `spare_share`
SEARCHING = 0.13  # of it, that the first search is expected to take
FOR_DRAWS = 10_000  # evaluations: where there are fewer, draws are what is short
TO_BEGIN_AGAIN = LEAST_LEFT + 0.05  # of it, that a second search leaves, for what it finds
NEIGHBOURS_SHARE = 0.05  # of the budget, to learn directions from one mode to others
LEAST_BUDGET = 2000
GIVEN = "All numbers are given the modes found."
UNSEARCHED = (
    "Nothing is known of modes that no walk from the starts came to: without a gradient there is "
    f"no search for them. {GIVEN}"
)
NONE_OF_USE, NONE_WANTED = "as log φ has none of use", "as `gradient=False` was given"
MOST_TO_JOIN = 0.03  # of the budget, to see which components are one mode: 0.02 are left for it
NO_TOP = (
    "No mode was found: no climb reached a top within its evaluations. log φ is badly scaled where "
    "they ended, or has no top, or a flat one."
)
STOPPED = (
    "The run was interrupted before its first draw: there are no draws, and of the modes found "
    "neither weights nor evidence are known."
)
FEWEST_RELAXATIONS = 100
MOST_ROUGH = 0.001  # of the places looked at, or of the draws, without a finite gradient
HIGHEST_CHANCE = 0.2  # that the next relaxation finds another mode


def auto(
    logdensity_fn: LogDensity,
    key: Any,
    initial_positions: Any,
    *,
    budget: int = 200_000,
    gradient: bool = True,
    local: Maker | None = None,
    progress: bool = True,
    store: str | Path | None = None,
    mesh: Mesh | None = None,
    shards: int | None = None,
) -> AutoResult:
    r"""Sample a density that may have several modes or heavy tails, with nothing to tune.

    A search finds the modes.  Several modes, or one that a mixture of t laws fits well, are sampled
    by tempering from such a mixture, one mode that is not by NUTS after a map that makes its tails
    normal.  All is adapted first; then it is frozen, and only what comes after is kept:

    .. math:: q^{1-β}\, φ^{β}, \quad 0 < β_1 < … < β_N = 1, \qquad
       q = \sum_k w_k\, t_{ν}(μ_k, Σ_k) .

    Targets: φ exactly, given enough steps.  Not valid when: a mode is so narrow, for its distance
    from the others, that no jump lands in its basin: it is missed, and nothing can tell.  Read
    `result.report`, and `result.warnings` first.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the starts along their first axis; they may
            all be in one mode.  The draws have chains of their own.
        budget: evaluations of log φ, with or without its gradient, over all chains; kept to 2 %.
        gradient: whether log φ may be differentiated; where its gradient is of no use, that is
            found out, and reported.
        local: makes the sampler of local moves in the place of ours, of a log density and a step
            size: `lambda f, step_size: blackjax.nuts(f, step_size, jnp.ones(2))`, or any that is
            exact.  Its positions are flat vectors, in coordinates in which a mode has about unit
            covariance.  Its step size is adapted, if it tells an `acceptance_rate`.  A step of it
            counts one evaluation to start, one to end, and between them `num_integration_steps`,
            if it tells that, or as many as it writes down, a loop counted once.
        progress: show a bar, in a terminal.
        store: a folder.  The same call, made again, goes on where the last one was killed, and
            gives the same draws; those are in `store/draws…`, which `levymc.load` reads.
        mesh: a `jax.sharding.Mesh` with one axis, over which the chains are spread; over several
            processes it needs a `store`.
        shards: with a `store`, cut the independent systems, of which there are 8, into at most so
            many parts, which processes share: the same call in any number of them, on all machines
            that see the folder.  All of them search, in as many parts, and make draws; one of them
            makes a stage of the adaptation, for which the others wait; each returns all of it, the
            same bytes however many there are.

    Returns:
        `AutoResult`: a `Result` with `modes`, `log_evidence`, `evaluations`, `warnings`, `report`.
        After Ctrl-C it is what there is, without draws where only the modes are known by then.

    Raises:
        ValueError, TypeError: an argument outside its range; a start outside the support.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> starts = jnp.full((4, 2), 4.0)  # in the lightest of four modes
        >>> result = levymc.auto(
        ...     levymc.targets.four_modes, jax.random.key(0), starts, budget=20_000, progress=False
        ... )
        >>> result.modes.weight.round(1).tolist()
        [0.4, 0.3, 0.2, 0.1]

    Departures: not in the paper.
    """
    key, budget, starts = (
        check_key(key),
        _checked_budget(budget),
        checked_starts(initial_positions),
    )
    first = jax.tree.map(lambda leaf: leaf[0], starts)
    check_scalar_output("logdensity_fn", logdensity_fn, first)
    folder = None if store is None else check_folder("store", store)
    how = _options(folder, mesh, shards)
    count = how.get("shards")
    if local is not None:
        check_local(local)
        _check_unshared(local, count)
    target = Target(logdensity_fn, first, gradient=gradient, local=local)
    flat = target.flattened(starts)
    check_support(target, flat)
    slopes = slopes_at(target, flat) if gradient else Slopes(False, np.zeros(0, int), False)
    target.has_gradient = slopes.is_usable
    with (
        working_in(
            folder,
            lambda: identity_of(target, key, flat, budget, count, num_parts(budget, count)),
            is_shared=count is not None,
        ) as stages,
        stage_bar(budget, progress=progress) as tell,
    ):
        plan = Plan(budget, tell, stages, folder, how)
        if slopes.is_usable and slopes.are_rough:
            flat = smooth_starts(target, flat)
        run = _Run(target, key, flat, plan)
        if not slopes.is_usable:
            return run.without_gradient(NONE_OF_USE if gradient else NONE_WANTED)
        return run.with_gradient(slopes.flat)


def _checked_budget(budget: Any) -> int:
    return check_count(
        "budget", budget, "It is a number of evaluations, such as 200_000.", least=LEAST_BUDGET
    )


def _options(store: Path | None, mesh: Any, shards: Any) -> dict[str, Any]:
    """What the draws are to be made with, refused before anything is spent."""
    how: dict[str, Any] = {}
    if mesh is not None:
        check_mesh(mesh)
        how["mesh"] = mesh
        if store is not None and shards is None:
            shards = min(mesh.size, NUM_SYSTEMS)
        if store is None and mesh.is_multi_process:
            raise ValueError(
                f"`store` must be given with a mesh over several processes, got None for {mesh!r}. "
                "The report is on all draws: it is a folder in which processes share them."
            )
    if shards is not None:
        how["shards"] = check_shards(shards, store, NUM_SYSTEMS, "systems")
    return how


def _check_unshared(local: Maker, shards: int | None) -> None:
    """What a local move of another sampler costs is seen from all draws, and ends the run."""
    if shards is not None:
        raise ValueError(
            f"`local` must be None in a run that processes or devices share, got {local!r}: how "
            "long it is depends on what its moves cost. Leave out `shards`, or `mesh` with `store`."
        )


class Slopes(NamedTuple):
    """What is seen of the gradient of log φ at some starts, and beside them.

    is_usable: it exists, is finite at half of these points, and not zero at all of them.
    flat: the coordinates along which it is zero wherever one looks.
    are_rough: it is not finite at a start itself.
    """

    is_usable: bool
    flat: np.ndarray
    are_rough: bool


def slopes_at(target: Target, starts: np.ndarray) -> Slopes:
    """Look at the gradient around some of the starts."""
    some = starts[:8]
    try:
        values, gradients = target.gradients(np.concatenate([some, _beside(some)]))
    except (TypeError, ValueError, NotImplementedError):
        # By way of whole numbers, of loops without a fixed end, or outside JAX; that the density
        # itself can be computed is known by now.
        return Slopes(False, np.zeros(0, int), False)
    inside = np.isfinite(values)
    is_fine = inside & np.all(np.isfinite(gradients), axis=1)
    is_flat = np.all(gradients[is_fine] == 0, axis=0)
    is_usable = 2 * is_fine.sum() >= inside.sum() and not np.all(is_flat)
    return Slopes(bool(is_usable), np.flatnonzero(is_flat), not np.all(is_fine[: len(some)]))


def _beside(starts: np.ndarray) -> np.ndarray:
    """Points a hundredth away, of the same place each time."""
    return starts + 1e-2 * np.random.default_rng(0).standard_normal(starts.shape)


def smooth_starts(target: Target, starts: np.ndarray) -> np.ndarray:
    """Starts beside those at which the gradient may not exist: those inside the support."""
    moved = _beside(starts)
    is_inside = np.isfinite(target.values(moved))
    return np.where(is_inside[:, None], moved, starts)


class Attempt(NamedTuple):
    """A ladder, whether another mode was met, and all modes that are known by then.

    times_found: of the modes that it was made for, by now.
    on_search: evaluations of a second search.
    """

    ladder: Ladder
    is_new: bool
    modes: Modes
    times_found: np.ndarray
    on_search: int


class _Run:
    """The stages of a call."""

    def __init__(self, target: Target, key: Any, starts: np.ndarray, plan: Plan) -> None:
        self.target, self.starts, self.plan = target, starts, plan
        self.key_search, self.key_adapt, self.key_draw, self.key_rest = jax.random.split(key, 4)
        self.spent: dict[str, int] = {"checking": target.evaluations}
        self.reasons: list[str] = []  # not to trust the answer, besides those of the draws

    def note(self, stage: str) -> None:
        """Enter what was spent since the last stage."""
        before = sum(self.spent.values())
        self.spent[stage] = self.spent.get(stage, 0) + self.target.evaluations - before

    def with_gradient(self, flat: np.ndarray) -> AutoResult:
        """With the coordinates along which log φ seems to have no slope."""
        budget = self.plan.budget
        if len(flat):
            self.reasons.append(_no_slope(flat))

        def report(found: int) -> None:
            self.plan.tell("exploring", self.target.evaluations, f"{found} modes")

        modes = searched(
            self.target,
            self.key_search,
            self.starts,
            int(EXPLORING * budget),
            budget,
            report,
            self.plan.stages,
            num_parts(budget, self.plan.how.get("shards")),
        )
        self.note("exploring")
        self.known = modes
        try:
            return self.drawn(modes)
        except KeyboardInterrupt:
            if not self.known.num_modes:
                raise
            return self.without_draws(self.known)

    def drawn(self, modes: Modes) -> AutoResult:
        """What is drawn once the search has ended."""
        if not modes.num_modes:
            return self.by_nuts(modes)
        for restart in range(MOST_RESTARTS + 1):
            sampled = self.tempered(modes, restart)
            self.note("sampling" if isinstance(sampled, Sampled) else "adapting")
            if isinstance(sampled, Sampled):
                return self.finished(sampled)
            if sampled is None:  # one mode that its reference does not fit
                return self.by_nuts(modes)
            modes = self.known = sampled
        raise AssertionError("unreachable")

    def without_draws(self, modes: Modes) -> AutoResult:
        """What there is where the run was stopped after the search, before the first draw."""
        self.note("adapting")
        nowhere = self.target.positions(np.zeros((0, self.target.dimension)))
        result = Result(
            jax.tree.map(lambda leaf: np.zeros((NUM_SYSTEMS, *leaf.shape), leaf.dtype), nowhere),
            np.zeros((NUM_SYSTEMS, 0)),
            {},
            is_interrupted=True,
            algorithm="none",
        )
        unknown = np.full(modes.num_modes, np.nan)
        order = np.argsort(-modes.log_mass, kind="stable")
        listed = FoundModes(
            self.target.positions(modes.location[order]),
            unknown,
            unknown,
            modes.log_mass[order],
            modes.times_found[order],
        )
        return self.ended(
            result,
            None if modes.are_too_many else listed,
            NO_EVIDENCE,
            [*self.reasons, STOPPED, *_of_search(modes)],
            "none, as the run was interrupted before it was chosen",
            _searched(modes),
            _unseen(modes),
        )

    def tempered(self, modes: Modes, restart: int) -> Sampled | Modes | None:
        """Draws; or more modes, to begin again with; or None where NUTS serves better."""
        target, plan = self.target, self.plan
        prior = laplace(modes)
        atlas = None if is_pooled(prior) else Atlas.of(target, modes)
        monitor = Monitor(target, atlas)
        key_adapt = jax.random.fold_in(self.key_adapt, restart)
        key_draw = jax.random.fold_in(self.key_draw, restart)

        def adapt() -> Attempt:
            ladder, is_new = adapt_ladder(
                target, key_adapt, prior, monitor, plan, restart, self.directions(modes, prior)
            )
            before = target.evaluations
            if not is_new and atlas is not None and is_good(ladder):
                is_new = self.finds_by_more_jumps(atlas, restart)
            on_search = target.evaluations - before
            if not is_new and not self.is_for_nuts(ladder, modes):
                ladder, is_new = on_probation(
                    target, jax.random.fold_in(key_draw, 1), ladder, monitor, plan
                )
            if atlas is None:
                return Attempt(ladder, is_new, modes, modes.times_found, on_search)
            times_found = atlas.whole().times_found[: modes.num_modes]
            return Attempt(ladder, is_new, atlas.listed(), times_found, on_search)

        ladder, is_new, more, times_found, on_search = plan.stages.of(
            f"ladder-{restart}",
            target,
            adapt,
            lambda kept: Attempt(
                ladder_from(kept["ladder"]),
                bool(kept["is_new"]),
                Modes(**kept["modes"]),
                kept["times_found"],
                int(kept["on_search"]),
            ),
        )
        self.note("adapting")
        self.spent["adapting"] -= on_search
        self.spent["exploring"] += on_search
        left = 1 - target.evaluations / plan.budget
        if atlas is not None and is_new and restart < MOST_RESTARTS and left > LEAST_LEFT:
            return more
        if self.is_for_nuts(ladder, modes):
            self.reasons += [FOUND_LATE] * is_new
            return None
        modes = modes._replace(
            times_found=times_found,
            num_relaxations=more.num_relaxations,
            num_lost=more.num_lost,
            met=more.met,
            num_rough=more.num_rough,
        )
        result = draw(target, key_draw, ladder, plan, f"draws-{restart}")
        draws = draws_of(target, result)
        # An atlas as a run that goes on from a store has it: one that has not seen the adaptation.
        last = Monitor(target, None if atlas is None else Atlas.of(target, modes))
        is_late = last.finds_more(draws, plan.budget - target.evaluations) or is_new
        basins = basins_of(target, ladder, last, plan, modes, draws.points)
        return Sampled(result, ladder, modes, is_late, basins)

    def finds_by_more_jumps(self, atlas: Atlas, restart: int) -> bool:
        """Where draws are nearly independent there is budget to spare, to look for other modes."""
        target, known, budget = self.target, len(atlas.modes), self.plan.budget
        share = spare_share(target.dimension, atlas.listed().num_modes)
        spare = min(
            share * budget,
            (SEARCHING + share) * budget - self.spent["exploring"],
            (1 - TO_BEGIN_AGAIN) * budget - target.evaluations,
            max(budget - FOR_DRAWS - target.evaluations, SPARE * budget),
        )
        jumps = Jumps(jax.random.fold_in(self.key_search, 1 + restart))
        go_on(atlas, jumps, spare, spare, lambda found: None)
        return atlas.has_gained(known)

    def is_for_nuts(self, ladder: Ladder, modes: Modes) -> bool:
        """Whether one mode was found that no t mixture fits well, and nobody else moves."""
        is_bad = ladder.harmonic < GOOD_FOR_ONE or len(ladder.betas) > 1
        is_one = modes.num_modes == 1 and not without_slope(modes)  # else nothing would climb
        return is_one and is_bad and self.target.local is None

    def directions(self, modes: Modes, prior: Fit) -> Directions | None:
        """Directions to neighbours, where there are too many modes to go to each."""
        if not is_pooled(prior):
            return None
        most = min(int(NEIGHBOURS_SHARE * self.plan.budget), 300 * self.target.dimension)
        basis = neighbour_basis(self.target, jax.random.fold_in(self.key_search, 0), modes, most)
        best = int(np.argmax(modes.logdensity))
        return Directions(basis, modes.covariance[best], modes.location)

    def finished(self, sampled: Sampled) -> AutoResult:
        target, (result, ladder, modes, _, basins) = self.target, sampled
        points = target.flattened(result.positions)
        components = components_of(ladder, points)
        rough = without_slope(modes, float(np.mean(info_of(result).is_rough)))
        reasons = self.reasons + rough + _of_search(modes)
        reasons += objections(points, components, sampled)
        kernel = (
            f"tempering from {_described(ladder)}; harmonic acceptance of the mixture "
            f"{ladder.harmonic:.2f}"
        )
        if ladder.has_axes:
            kernel += "; jumps along axes to where other draws were"
        if target.local is not None:
            name, cost = name_of(target.local), ladder.local_cost
            kernel += f"; local moves by {name}, {cost:.1f} evaluations each"
        listed, log_z, unseen = None, evidence(ladder, result), 0.0
        if not is_pooled(ladder.prior):
            found = found_modes(target, modes, basins, components)
            listed, log_z, unseen = doubted(found, log_z)
        if unseen > MOST_UNSEEN:
            reasons.append(_much_unseen(unseen))
        reasons += filter(None, [more_than(log_z, modes.met)])
        return self.ended(
            result, listed, log_z, reasons, kernel, _searched(modes), _unseen(modes, unseen)
        )

    def by_nuts(self, modes: Modes) -> AutoResult:
        """One mode, or none that could be found."""
        target = self.target
        single = sample_one_mode(target, self.key_rest, self.starts, modes, self.plan, self.note)
        draws = target.flattened(single.result.positions)
        reasons = [*self.reasons, *without_slope(modes), *single.notes]
        reasons += too_few(draws, single.notes)
        reasons += filter(None, [more_than(single.evidence, modes.met)])
        if not modes.num_modes:
            reasons.insert(0, NO_TOP)
        else:
            reasons[:0] = _of_search(modes)
        listed = FoundModes(
            target.positions(modes.location),
            np.ones(modes.num_modes),
            np.zeros(modes.num_modes),
            modes.log_mass,
            modes.times_found,
        )
        return self.ended(
            single.result,
            listed,
            single.evidence,
            reasons,
            single.kernel,
            _searched(modes),
            _unseen(modes),
        )

    def without_gradient(self, why: str) -> AutoResult:
        """With the reason in words."""
        target, plan = self.target, self.plan
        prior = plan.stages.of(
            "walk",
            target,
            lambda: by_walking(target, self.key_search, self.starts, plan.budget),
            lambda kept: Fit(**kept),
        )
        self.note("exploring")
        monitor = Monitor(target, None)
        ladder = plan.stages.of(
            "ladder-0",
            target,
            lambda: adapt_ladder(target, self.key_adapt, prior, monitor, plan, MOST_RESTARTS)[0],
            ladder_from,
        )
        self.note("adapting")
        result = draw(target, self.key_draw, ladder, plan, "draws-0")
        self.note("sampling")
        draws = draws_of(target, result)
        components = components_of(ladder, draws.points)
        most = int(MOST_TO_JOIN * plan.budget)
        hills = hills_of(target, ladder.fit, draws, components, most)
        self.note("sampling")
        each = np.arange(len(ladder.fit.weights))
        basins = Basins.of_numbers(each if hills is None else hills.of_component)
        modes = _as_modes(hills) if hills else _as_modes(Hills(ladder.fit.means, 0.0 * each, each))
        sampled = Sampled(result, ladder, modes, False, basins)
        kernel = f"without gradients, {why}: random walks and tempering from {_described(ladder)}"
        count = counted(len(each), "component")
        searched = f"Lévy walks from the starts saw what {count} of a mixture fit"
        if hills is None:
            searched += "; which of these are one mode is not known, for want of budget."
        else:
            searched += f": {counted(modes.num_modes, 'mode')}"
            searched += ", as those without a dip between them are one." if each.size > 1 else "."
        listed = found_modes(target, modes, basins, components) if hills else None
        reasons = objections(draws.points, components, sampled)
        log_z = evidence(ladder, result)
        return self.ended(result, listed, log_z, reasons, kernel, searched, UNSEARCHED)

    def ended(
        self,
        result: Result,
        modes: FoundModes | None,
        log_z: Evidence,
        reasons: list[str],
        kernel: str,
        searched: str,
        unseen: str,
    ) -> AutoResult:
        if result.is_interrupted and result.num_draws:
            reasons.insert(0, "The run was interrupted: fewer draws than planned.")
        fields = {name.name: getattr(result, name.name) for name in dataclasses.fields(Result)}
        made = AutoResult(
            **fields,
            modes=modes,
            log_evidence=log_z,
            evaluations={name: count for name, count in self.spent.items() if count},
            warnings=tuple(reasons),
        )
        report = written(made, Account(kernel, searched, self.plan.budget, unseen))
        return dataclasses.replace(made, report=report)


def _as_modes(hills: Hills) -> Modes:
    """Of which no curvature is known, and to which nothing climbed."""
    count, dimension = hills.location.shape
    nothing = np.full((count, dimension, dimension), np.nan)
    mass, never = np.full(count, np.nan), np.zeros(count, int)
    return Modes(hills.location, nothing, hills.logdensity, mass, never)


def spare_share(dimension: int, num_modes: int) -> float:
    """Of the budget, for a second search where draws are nearly independent.

    Twice as many places find modes that are narrower by the factor 2^(-1/d): more is won by them
    the fewer dimensions there are.  Weighing K modes to the same distance takes √K in the place of
    one: the more modes, the more is left to draws.
    """
    return min(SPARE + MORE_SPARE / (dimension * num_modes**0.5), MOST_SPARE)


def _of_search(modes: Modes) -> list[str]:
    """Reasons not to trust that all modes were found."""
    found = []
    if modes.chance_of_another > HIGHEST_CHANCE:
        found.append(_likely_more(modes.chance_of_another))
    if modes.num_relaxations < FEWEST_RELAXATIONS:
        found.append(
            f"Only {modes.num_relaxations} relaxations were made, too few to have seen much of the "
            "target. Give a larger budget."
        )
    return found


def _no_slope(flat: np.ndarray) -> str:
    return (
        f"log φ has no slope along coordinate {', '.join(map(str, flat))}: nothing climbs along "
        "it, and modes that differ in it are not searched for. If it holds steps or whole numbers, "
        "give `gradient=False`; if it is flat, this is no fault."
    )


def without_slope(modes: Modes, share: float = 0.0) -> list[str]:
    """A reason, where log φ is finite but not its gradient, in the search or a share of draws."""
    searched = modes.num_rough / max(modes.num_relaxations, 1)
    if max(searched, share) <= MOST_ROUGH:
        return []
    seen = f"{searched:.1%} of the places from which modes were searched for"
    if share > 0:
        seen += f", and at {share:.1%} of the draws"
    return [
        f"log φ is finite but its gradient is not, at {seen}: nothing climbs there, so that modes "
        "may be missed, and moves there are poor. The cause may be a `jnp.where` whose other "
        "branch has no derivative: write `jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), "
        "0.0)` for `jnp.where(x > 0, jnp.sqrt(x), 0.0)`; or give `gradient=False`."
    ]


def _likely_more(chance: float) -> str:
    return (
        f"There are probably more modes: the chance that the next relaxation finds one is "
        f"{chance:.2f}. Give a larger budget, or starts in other places."
    )


def _much_unseen(unseen: float) -> str:
    return (
        f"Modes that were not found may have {unseen:.2f} of the mass, going by those that were "
        "found once. Give a larger budget, or starts in other places."
    )


def _unseen(modes: Modes, mass: float = 0.0) -> str:
    """Which modes would have been missed, at least."""
    if not modes.num_modes:
        return GIVEN
    missed = ""
    if mass > 0:
        missed = (
            f"Modes that were not found may have {mass:.2g} of the mass, going by those found "
            "once; standard errors include that. "
        )
    return (
        f"{missed}A mode narrower than about {modes.resolution:.2g} × the width of those found, "
        f"{AWAY:.0f} of their standard deviations away, would probably have been missed, as its "
        f"volume is too small to be hit. {GIVEN}"
    )


def _described(ladder: Ladder) -> str:
    laws, rungs = len(ladder.fit.weights), len(ladder.betas)
    return f"a mixture of {counted(laws, 't law')} over {counted(rungs, 'rung')}"


def _searched(modes: Modes) -> str:
    if not modes.num_modes:
        return f"none found in {modes.num_relaxations} relaxations."
    what = f"{modes.num_modes} found" if modes.num_modes > 1 else "one found, no other"
    lost = f" ({modes.num_lost} of them without reaching a top)" if modes.num_lost else ""
    listing = " Too many to list." if modes.are_too_many else ""
    if modes.num_negligible:
        listing += f" {modes.num_negligible} more are left out, as their mass is negligible."
    return (
        f"{what} in {modes.num_relaxations} relaxations{lost}; chance that the next finds one: "
        f"{in_digits(modes.chance_of_another)}.{listing}"
    )


def ladder_from(kept: dict[str, Any]) -> Ladder:
    """A ladder, of what a stage kept."""
    fits = {name: Fit(**kept[name]) for name in ("fit", "prior")}
    return Ladder(**{**kept, **fits})
