"""BlackJAX's NUTS with its window adaptation, diagonal or dense, within a budget."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm
from levymc.run import iterate, sample
from levymc_lab.contest.problems import Problem

from ._outcome import Outcome

NUM_CHAINS = 4
WARM_UP = 1000  # steps of a chain at most, as many as Stan has
MOST_WARM_UP = 0.6  # of the budget: where it is not enough, what was learned by then is used
LOOK = 25  # steps between looks at what the warm-up has cost


class WarmState(NamedTuple):
    """A chain, what its warm-up has learned, and what it has cost."""

    position: Any
    chain: Any
    step_size_state: Any
    metric_state: Any
    step: Array
    evaluations: Array


@module(static=("logdensity_fn", "is_diagonal"))
class WarmUp(SamplingAlgorithm[WarmState]):
    """Window adaptation as an algorithm: each step moves a chain and learns from the move.

    stages: of each step, whether the metric learns from it.  ends: whether a window ends with it.
    """

    logdensity_fn: Any
    is_diagonal: bool
    stages: Any
    ends: Any

    def init(self, position: Any, rng_key: Any = None) -> WarmState:
        import blackjax

        step_size, metric = self._parts()
        return WarmState(
            position,
            blackjax.nuts.init(position, self.logdensity_fn),
            step_size[0](1.0),
            metric[0](position.size),
            jnp.int32(0),
            jnp.int32(1),
        )

    def _parts(self) -> tuple[Any, Any]:
        from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
        from blackjax.adaptation.step_size import dual_averaging_adaptation

        return dual_averaging_adaptation(0.8), mass_matrix_adaptation(self.is_diagonal)

    def step(self, key: Array, state: WarmState, *minibatch: Any) -> tuple[WarmState, Any]:
        (begin, update, finish), (_, learn, close) = self._parts()
        step_size = jnp.exp(state.step_size_state.log_step_size)
        metric = state.metric_state.inverse_mass_matrix
        chain, info = _kernel()(key, state.chain, self.logdensity_fn, step_size, metric)
        size_state = update(state.step_size_state, info.acceptance_rate)
        place = jnp.minimum(state.step, len(self.stages) - 1)
        metric_state = _choose(
            self.stages[place] == 1, learn(state.metric_state, chain.position), state.metric_state
        )
        ends = self.ends[place]
        metric_state = _choose(ends, close(metric_state), metric_state)
        size_state = _choose(ends, begin(finish(size_state)), size_state)
        evaluations = state.evaluations + info.num_integration_steps
        after = WarmState(
            chain.position, chain, size_state, metric_state, state.step + 1, evaluations
        )
        return after, {"acceptance_rate": info.acceptance_rate}


def _choose(condition: Array, one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def _kernel() -> Any:
    import blackjax

    return blackjax.nuts.build_kernel()


@module(static=("logdensity_fn",))
class Nuts(SamplingAlgorithm[Any]):
    """BlackJAX's kernel; step size and metric are inputs, so that runs share a program."""

    logdensity_fn: Any
    step_size: Any
    inverse_mass_matrix: Any

    is_exact = True

    def init(self, position: Any, rng_key: Any = None) -> Any:
        import blackjax

        return blackjax.nuts.init(position, self.logdensity_fn)

    def step(self, key: Array, state: Any, *minibatch: Any) -> tuple[Any, Any]:
        state, info = _kernel()(
            key, state, self.logdensity_fn, self.step_size, self.inverse_mass_matrix
        )
        return state, {
            "is_divergent": info.is_divergent,
            "num_integration_steps": info.num_integration_steps,
        }


def nuts(problem: Problem, key: Any, budget: int, *, is_diagonal: bool) -> Outcome:
    """Warm up, then draw until the budget is spent; a leapfrog step is an evaluation."""
    key_start, key_warm, key_draw = jax.random.split(key, 3)
    starts = problem.starts(key_start, NUM_CHAINS)
    warm = _warm_up(problem, key_warm, starts, budget, is_diagonal=is_diagonal)
    algorithms = [
        Nuts(problem.logdensity_fn, size, metric)
        for size, metric in zip(warm.step_sizes, warm.metrics, strict=True)
    ]
    left = budget - warm.evaluations
    positions, used = _draw(algorithms, key_draw, warm.positions, left, warm.cost)
    divergent = () if used.divergent == 0 else (f"{used.divergent} divergent transitions",)
    return Outcome(positions, warm.evaluations + used.evaluations, notes=divergent)


class _Warm(NamedTuple):
    """What a warm-up leaves for each chain, and the mean cost of a late step of all chains."""

    positions: Any
    step_sizes: np.ndarray
    metrics: np.ndarray
    evaluations: int
    cost: float


def _warm_up(problem: Problem, key: Any, starts: Any, budget: int, *, is_diagonal: bool) -> _Warm:
    """First the step size alone, which tells the cost; then windows of the length it allows."""
    key_first, key_windows = jax.random.split(key)

    def adapt(key: Any, positions: Any, schedule: np.ndarray, most: float) -> _Warm:
        stages, ends = np.zeros((2, WARM_UP), int)  # of one length, so that programs are shared
        stages[: len(schedule)], ends[: len(schedule)] = schedule.T
        algorithm = WarmUp(
            problem.logdensity_fn, is_diagonal, jnp.asarray(stages), jnp.asarray(ends, bool)
        )
        return _adapt(algorithm, key, positions, len(schedule), most)

    brief = adapt(key_first, starts, np.zeros((3 * LOOK, 2), int), 0.3 * budget)
    left = MOST_WARM_UP * budget - brief.evaluations
    num_steps = int(np.clip(left / brief.cost, 4 * LOOK, WARM_UP)) // LOOK * LOOK
    windows = _schedule(num_steps, 1 if is_diagonal else problem.dimension)
    warm = adapt(key_windows, brief.positions, windows, left)
    return warm._replace(evaluations=brief.evaluations + warm.evaluations)


def _schedule(num_steps: int, dimension: int) -> np.ndarray:
    """Stan's windows; of a dense metric the first is long enough for it to have full rank."""
    from blackjax.adaptation.window_adaptation import build_schedule

    return np.asarray(build_schedule(num_steps, first_window_size=max(25, 2 * dimension)), int)


def _adapt(algorithm: WarmUp, key: Any, positions: Any, num_steps: int, most: float) -> _Warm:
    """Run a warm-up, at most until so many evaluations are spent."""
    history, state = [(0, NUM_CHAINS)], None
    for visit in iterate(algorithm, key, positions, num_steps, at=LOOK):
        state = visit.states
        history.append((visit.step, int(np.sum(state.evaluations))))
        if history[-1][1] > most:
            break
    assert state is not None
    sizes, (last, total) = state.step_size_state, history[-1]
    before, earlier = history[max(0, len(history) - 1 - max(1, len(history) // 4))]
    # Where a window has just begun there is no average yet.
    is_fresh = np.asarray(sizes.step) < LOOK
    logs = np.where(is_fresh, sizes.log_step_size, sizes.log_step_size_avg)
    metrics = np.asarray(state.metric_state.inverse_mass_matrix)
    return _Warm(state.position, np.exp(logs), metrics, total, (total - earlier) / (last - before))


class _Used(NamedTuple):
    evaluations: int
    divergent: int


def _draw(
    algorithms: list[Nuts], key: Any, positions: Any, budget: int, cost: float
) -> tuple[np.ndarray, _Used]:
    """Draws in rounds of the length that the cost so far allows; what is over budget is dropped."""
    parts, evaluations, divergent, rounds = [], 0, 0, 0
    while (left := budget - evaluations) > 2 * cost and rounds < 6:
        num_steps = max(1, int(0.9 * left / cost)) if rounds < 5 else max(1, int(left / cost))
        run = sample(
            algorithms, jax.random.fold_in(key, rounds), positions, num_steps, progress=False
        )
        steps = np.sum(run.info["num_integration_steps"], axis=0)
        kept = max(1, int(np.searchsorted(np.cumsum(steps) + NUM_CHAINS, left, side="right")))
        parts.append(run.positions[:, :kept])
        evaluations += int(steps[:kept].sum()) + NUM_CHAINS
        divergent += int(np.sum(run.info["is_divergent"][:, :kept]))
        cost = max(1.0, float(steps.mean()))
        positions = jnp.asarray(run.positions[:, kept - 1])
        rounds += 1
        if kept < num_steps:
            break
    if not parts:  # the warm-up took all: one draw is where it ended
        parts = [np.asarray(positions)[:, None]]
    return np.concatenate(parts, axis=1), _Used(evaluations, divergent)
