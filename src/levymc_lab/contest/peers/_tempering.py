r"""Non-reversible parallel tempering from a wide Gaussian, tuned on the run.

Rung k samples q^{1-β_k} π^{β_k}, where q = N(start, extents²) is told to it: a Gaussian that covers
all of the mass, with a scale for each coordinate.  Rung 0 is drawn from q, the others move by MALA,
with a step and coordinates' scales of their own; neighbours are swapped, even and odd pairs in
turn.  The ladder is spaced for equal rejection; its length N minimises the cost of a round trip,
(N + 1)(2 + 2Λ/(1 - Λ/N)), where Λ is the sum of the rejection rates.

References: Syed, Bouchard-Côté, Deligiannidis and Doucet, "Non-reversible parallel tempering: a
scalable highly parallel MCMC scheme", 2022.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm
from levymc.run import sample
from levymc_lab.contest.problems import Problem

from ._outcome import Outcome

NUM_SYSTEMS = 4
TUNING = 0.35  # of the budget
ROUNDS = 6  # of lengths 1 : 2 : 4 …
RESIZING = (1, 3)  # rounds after which the ladder's length is chosen: each is a program
FIRST_RUNGS = 12
ACCEPTANCE = 0.57
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40)  # few, so that programs are shared


class TemperedState(NamedTuple):
    """Positions of all rungs, from the reference to the target, with log π and its gradient."""

    position: Array
    logdensity: Array
    gradient: Array
    step: Array


class Ladder(NamedTuple):
    """Inverse temperatures from 0 to 1, and of each rung the step size and coordinates' scales."""

    betas: Any
    step_sizes: Any
    scales: Any


@module(static=("logdensity_fn",))
class Tempering(SamplingAlgorithm[TemperedState]):
    logdensity_fn: Any
    ladder: Ladder
    centre: Any
    extent: Any

    is_exact = True

    def _reference(self, x: Array) -> tuple[Array, Array]:
        """log q, up to a constant, and its gradient."""
        offset = (x - self.centre) / self.extent
        return -jnp.sum(offset**2, axis=-1) / 2, -offset / self.extent

    def _evaluate(self, x: Array) -> tuple[Array, Array]:
        """log π and its gradient; where they are not finite, a density of zero."""
        value, gradient = jax.vmap(jax.value_and_grad(self.logdensity_fn))(x)
        is_fine = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient), axis=-1)
        return jnp.where(is_fine, value, -jnp.inf), jnp.where(is_fine[:, None], gradient, 0.0)

    def init(self, position: Any, rng_key: Any = None) -> TemperedState:
        return TemperedState(position, *self._evaluate(position), jnp.int32(0))

    def step(self, key: Array, state: TemperedState, *minibatch: Any) -> tuple[TemperedState, Any]:
        key_move, key_accept, key_swap = jax.random.split(key, 3)
        moved, accepted = self._move(key_move, key_accept, state)
        swapped, rejected, is_tried = self._swap(key_swap, moved)
        info = {"accepted": accepted, "rejected": rejected, "is_tried": is_tried}
        return swapped._replace(step=state.step + 1), info

    def _drift(self, x: Array, gradient: Array) -> Array:
        """Of a MALA step in units of the scales, shortened where it would be very long."""
        betas, steps = self.ladder.betas[:, None], self.ladder.step_sizes[:, None]
        slope = (1 - betas) * self._reference(x)[1] + betas * gradient
        drift = steps / 2 * self.ladder.scales * slope
        length = jnp.linalg.norm(drift, axis=-1, keepdims=True)
        most = 2 * jnp.sqrt(x.shape[-1] * steps)
        return drift * jnp.minimum(1.0, most / jnp.maximum(length, 1e-30))

    def _move(
        self, key_move: Array, key_accept: Array, state: TemperedState
    ) -> tuple[TemperedState, Array]:
        x, betas = state.position, self.ladder.betas
        spread = jnp.sqrt(self.ladder.step_sizes)[:, None] * self.ladder.scales
        noise = jax.random.normal(key_move, x.shape, x.dtype)
        proposed = x + self._drift(x, state.gradient) * self.ladder.scales + spread * noise
        proposed = proposed.at[0].set(self.centre + self.extent * noise[0])
        value, gradient = self._evaluate(proposed)
        back = (x - proposed - self._drift(proposed, gradient) * self.ladder.scales) / spread
        ratio = betas * (value - state.logdensity)
        ratio += (1 - betas) * (self._reference(proposed)[0] - self._reference(x)[0])
        ratio += (jnp.sum(noise**2, axis=-1) - jnp.sum(back**2, axis=-1)) / 2
        chance = jnp.where(jnp.isnan(ratio), 0.0, jnp.exp(jnp.minimum(ratio, 0.0))).at[0].set(1.0)
        # A draw of the reference where π vanishes is kept, but never swapped up.
        is_made = jax.random.uniform(key_accept, chance.shape, x.dtype) < chance
        after = TemperedState(
            jnp.where(is_made[:, None], proposed, x),
            jnp.where(is_made, value, state.logdensity),
            jnp.where(is_made[:, None], gradient, state.gradient),
            state.step,
        )
        return after, chance

    def _swap(self, key: Array, state: TemperedState) -> tuple[TemperedState, Array, Array]:
        """Exchange neighbours: pairs (0, 1), (2, 3) … in even steps, the others in odd ones."""
        betas = self.ladder.betas
        gain = state.logdensity - self._reference(state.position)[0]
        ratio = (betas[1:] - betas[:-1]) * (gain[:-1] - gain[1:])
        chance = jnp.where(jnp.isnan(ratio), 0.0, jnp.exp(jnp.minimum(ratio, 0.0)))
        is_tried = jnp.arange(len(betas) - 1) % 2 == state.step % 2
        is_made = is_tried & (jax.random.uniform(key, chance.shape, chance.dtype) < chance)
        order = jnp.arange(len(betas))
        order = order + jnp.append(is_made, False) - jnp.insert(is_made, 0, False)
        swapped = TemperedState(
            state.position[order], state.logdensity[order], state.gradient[order], state.step
        )
        return swapped, 1 - chance, is_tried


def tempering(problem: Problem, key: Any, budget: int) -> Outcome:
    """Tune ladder, steps and scales on a part of the budget, then sample with what was found."""
    key_start, key_run = jax.random.split(key)
    starts = problem.starts(key_start, NUM_SYSTEMS)
    reference = jnp.mean(starts, axis=0), jnp.asarray(problem.extents, starts.dtype)
    ladder = _first_ladder(problem.extents)
    positions = jnp.repeat(starts[:, None], len(ladder.betas), axis=1)
    spent = 0
    for number in range(ROUNDS):
        cost = NUM_SYSTEMS * len(ladder.betas)
        steps = max(4, int(TUNING * budget * 2**number / (2**ROUNDS - 1) / cost) - 1)
        key_round = jax.random.fold_in(key_run, number)
        run = _run(problem, ladder, reference, key_round, positions, steps)
        spent += (steps + 1) * cost
        count = len(ladder.betas) - 1 if number not in RESIZING else None
        ladder, kept = _learn(ladder, run, count)
        positions = jnp.asarray(run.positions[:, -1][:, kept])
    cost = NUM_SYSTEMS * len(ladder.betas)
    steps = (budget - spent) // cost - 1
    key_last = jax.random.fold_in(key_run, ROUNDS)
    run = _run(problem, ladder, reference, key_last, positions, steps, _last)
    return Outcome(run.positions, spent + (steps + 1) * cost)


def _last(position: Array) -> Array:
    return position[-1]


def _run(
    problem: Problem,
    ladder: Ladder,
    reference: tuple[Any, Any],
    key: Any,
    positions: Any,
    num_steps: int,
    keep: Any = None,
) -> Any:
    cast = Ladder(*(jnp.asarray(one, positions.dtype) for one in ladder))
    algorithm = Tempering(problem.logdensity_fn, cast, *reference)
    return sample(algorithm, key, positions, num_steps, progress=False, keep=keep)


def _first_ladder(extents: np.ndarray) -> Ladder:
    """Geometric, with scales that shrink from the reference's to a tenth."""
    betas = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, FIRST_RUNGS)])
    shrinking = 1 / np.sqrt(1 + 99 * betas)
    steps = np.full(len(betas), 1.65**2 / len(extents) ** (1 / 3))
    return Ladder(betas, steps, np.outer(shrinking, extents))


def _learn(ladder: Ladder, run: Any, count: int | None) -> tuple[Ladder, np.ndarray]:
    """The next ladder, of the best length if none is given, and the rungs where its own start."""
    tried = np.sum(run.info["is_tried"], axis=(0, 1))
    rejections = np.sum(run.info["rejected"] * run.info["is_tried"], axis=(0, 1)) / np.maximum(
        tried, 1
    )
    barrier = np.concatenate([[0.0], np.cumsum(np.clip(rejections, 1e-3, 0.999))])
    count = count or _best_count(barrier[-1])
    wanted = np.linspace(0, barrier[-1], count + 1)
    betas = np.interp(wanted, barrier, ladder.betas)
    betas[0], betas[-1] = 0.0, 1.0
    accepted = np.mean(run.info["accepted"], axis=(0, 1))
    log_steps = np.log(ladder.step_sizes) + 1.5 * (accepted - ACCEPTANCE)
    half = run.positions[:, run.positions.shape[1] // 2 :]
    spread = np.var(half, axis=(0, 1)) + 1e-12
    weight = half.shape[1] / (half.shape[1] + 10.0)
    log_scales = (1 - weight) * np.log(ladder.scales) + weight * np.log(spread) / 2
    nearest = np.argmin(np.abs(barrier[:, None] - wanted), axis=0)
    nearest[0], nearest[-1] = 0, len(barrier) - 1
    steps = np.exp(np.interp(wanted, barrier, log_steps))
    return Ladder(betas, steps, np.exp(log_scales[nearest])), nearest


def _best_count(barrier: float) -> int:
    """The number of rungs of the cheapest round trip."""
    costs = [
        (n + 1) * (2 + 2 * barrier / (1 - barrier / n)) if n > barrier else math.inf for n in SIZES
    ]
    return SIZES[int(np.argmin(costs))] if min(costs) < math.inf else SIZES[-1]
