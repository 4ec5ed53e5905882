r"""The step size of MAFLA, and the scale of a walk along all coordinates, by their acceptance."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import noises, schedules
from levymc.run import sample

from ._adapted import Adapted, counts, half_widths, last, shaped, too_small, whole
from ._pilot import FEWEST_VISITS, WALK_ACCEPTANCE, Piloted, first_scales, walk
from ._tail_map import flat_draws

ROUNDS = 8
PHASES = (0.3, 0.4)  # of the budget, after the pilot; without one, widths are measured between


def mafla_acceptance(alpha: float) -> float:
    """The acceptance to tune for: a half at α = 1.8, a fifth at 1.2, MALA's 0.574 at 2."""
    return min(max(0.2 + 0.5 * (alpha - 1.2), 0.2), 0.574)


def tune_steps(algorithm: Any, key: Array, positions: Any, budget: int) -> Adapted:
    """One number by its acceptance, and the widths of coordinates by a pilot, then by quantiles."""
    positions = jax.tree.map(jnp.asarray, positions)
    num_chains, size = counts(positions)
    rounds = [int(share * budget / num_chains / ROUNDS) - 1 for share in PHASES]
    if min(rounds) < 1:
        raise too_small(budget, math.ceil(2 * num_chains * ROUNDS / min(PHASES)))
    key_pilot, key_phases = jax.random.split(key)
    widths, evaluations = np.ones(size), {}
    piloted = _pilot(algorithm, key_pilot, positions, int((1 - sum(PHASES)) * budget))
    if piloted is not None:
        positions, evaluations = last(piloted.result.positions), {"pilot": piloted.evaluations}
        widths = _relative(half_widths(piloted.later))
    tuned = _Mafla(algorithm) if algorithm.name == "mafla" else _Walk(algorithm)
    log_size, rate, evaluations["steps"] = tuned.first, math.nan, 0
    for phase, steps in enumerate(rounds):
        search, draws = _Search(log_size), []
        for number in range(ROUNDS):
            made = tuned.made(search.log_size, shaped(widths, positions))
            key_round = jax.random.fold_in(key_phases, phase * ROUNDS + number)
            result = whole(sample(made, key_round, positions, steps, progress=False))
            positions = last(result.positions)
            evaluations["steps"] += num_chains * (steps + 1)  # one at the start
            rate = float(np.mean(result.info.acceptance_rate))
            search = search.after(rate - tuned.acceptance)
            draws.append(flat_draws(result.positions).reshape(num_chains, steps, size))
        log_size = search.log_size
        if phase < len(PHASES) - 1 and piloted is None:
            widths = _relative(half_widths(np.concatenate(draws[ROUNDS // 2 :], axis=1)))
    return Adapted(
        tuned.made(log_size, shaped(widths, positions)),
        positions,
        evaluations,
        1.0,
        {"sampler": algorithm.name, "step_size": math.exp(log_size), "acceptance_rate": rate},
        [],
    )


def _pilot(algorithm: Any, key: Array, positions: Any, budget: int) -> Piloted | None:
    """A Lévy walk along coordinates, if there is room for one that is worth it."""
    num_chains, size = counts(positions)
    if budget // num_chains < FEWEST_VISITS * size:
        return None
    scales = np.log(first_scales(positions))
    jump = noises.variable(1.0)
    return walk(algorithm.logdensity_fn, key, positions, budget, jump, np.eye(size), scales)


def _relative(widths: np.ndarray) -> np.ndarray:
    """Widths whose geometric mean is 1."""
    return widths / np.exp(np.mean(np.log(widths)))


class _Search(NamedTuple):
    """Kesten's rule: the gain is halved whenever the sign of the error changes."""

    log_size: float
    gain: float = 4.0
    error: float = 0.0

    def after(self, error: float) -> "_Search":
        gain = self.gain / 2 if error * self.error < 0 else self.gain
        return _Search(self.log_size + gain * error, gain, error)


class _Mafla:
    """How MAFLA is made of a step size and of widths."""

    def __init__(self, algorithm: Any) -> None:
        self.algorithm = algorithm
        self.alpha = algorithm.how.alpha
        mean = float(np.mean([np.mean(leaf) for leaf in jax.tree.leaves(self.alpha)]))
        self.acceptance = mafla_acceptance(mean)
        self.first = float(np.log(schedules.at(algorithm.how.schedule, jnp.int32(1), float)))

    def made(self, log_size: float, widths: Any) -> Any:
        # The noise of coordinate d is (η m_d)^{1/α}: as wide as the coordinate.
        alphas = jax.tree.broadcast(self.alpha, widths)
        preconditioner = jax.tree.map(lambda width, a: width**a, widths, alphas)
        schedule = schedules.as_schedule(math.exp(log_size))
        how = dataclasses.replace(
            self.algorithm.how, schedule=schedule, preconditioner=preconditioner
        )
        return dataclasses.replace(self.algorithm, how=how)


class _Walk:
    """How a walk along all coordinates at once is made of a scale and of widths."""

    acceptance = WALK_ACCEPTANCE

    def __init__(self, algorithm: Any) -> None:
        self.algorithm = algorithm
        sizes = [np.mean(np.log(leaf)) for leaf in jax.tree.leaves(algorithm.scale)]
        self.first = float(np.mean(sizes))

    def made(self, log_size: float, widths: Any) -> Any:
        scale = jax.tree.map(lambda width: math.exp(log_size) * width, widths)
        return dataclasses.replace(self.algorithm, scale=scale)
