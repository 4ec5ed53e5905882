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
WARM_UP = 1000  # steps of a chain, as Stan has them
MOST_WARM_UP = 0.6  # of the budget: where it is not enough, what was learned by then is used
LOOK = 25  # steps between looks at what the warm-up has cost


class WarmState(NamedTuple):
    """A chain, what its warm-up has learned, its cost so far, and the cost of late steps."""

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
    state, cost = _warm_up(problem, key_warm, starts, budget, is_diagonal=is_diagonal)
    spent = int(np.sum(state.evaluations))
    step_sizes = np.exp(np.asarray(state.step_size_state.log_step_size_avg))
    metrics = np.asarray(state.metric_state.inverse_mass_matrix)
    algorithms = [Nuts(problem.logdensity_fn, step_sizes[c], metrics[c]) for c in range(NUM_CHAINS)]
    positions, used = _draw(algorithms, key_draw, state.position, budget - spent, cost)
    divergent = () if used.divergent == 0 else (f"{used.divergent} divergent transitions",)
    return Outcome(positions, spent + used.evaluations, notes=divergent)


def _warm_up(
    problem: Problem, key: Any, starts: Any, budget: int, *, is_diagonal: bool
) -> tuple[Any, float]:
    """The state after the warm-up, and the mean cost of a step in its last quarter or so."""
    from blackjax.adaptation.window_adaptation import build_schedule

    # Chains of a small budget cannot afford a thousand steps.
    num_steps = int(np.clip(budget / (NUM_CHAINS * 30), 4 * LOOK, WARM_UP)) // LOOK * LOOK
    schedule = np.asarray(build_schedule(num_steps))
    algorithm = WarmUp(
        problem.logdensity_fn,
        is_diagonal,
        jnp.asarray(schedule[:, 0]),
        jnp.asarray(schedule[:, 1], bool),
    )
    history = [(0, NUM_CHAINS)]
    state: Any = None
    for visit in iterate(algorithm, key, starts, num_steps, at=LOOK):
        state = visit.states
        history.append((visit.step, int(np.sum(state.evaluations))))
        if history[-1][1] > MOST_WARM_UP * budget:
            break
    last, total = history[-1]
    before, earlier = history[max(0, len(history) - 1 - max(1, len(history) // 4))]
    return state, (total - earlier) / (last - before)


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
