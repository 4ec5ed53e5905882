"""Problems whose coordinates are turned: what holds along the axes no longer helps."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._laws import rotation
from ._problem import Marginal, Problem, Truth, entered, get


def turned(base: Problem, seed: int, **labels: Any) -> Problem:
    """The problem, turned by a random rotation; its truth is turned back."""
    turn = rotation(np.random.default_rng(seed), base.dimension)
    mode_of, sample = base.mode_of, base.sample

    def straight(positions: Any) -> np.ndarray:
        return np.asarray(positions) @ turn

    def logdensity(position: Array) -> Array:
        return base.logdensity_fn(jnp.asarray(turn.T, position.dtype) @ position)

    def marginal(one: Marginal) -> Marginal:
        return dataclasses.replace(one, of=lambda positions: one.of(straight(positions)))

    def truth() -> Truth:
        return dataclasses.replace(base.truth, marginals=tuple(map(marginal, base.truth.marginals)))

    return Problem(
        **labels,
        dimension=base.dimension,
        about=f"{base.name}, turned by a random rotation.",
        logdensity_fn=logdensity,
        starts=lambda key, count: base.starts(key, count) @ jnp.asarray(turn.T),
        extent=np.sqrt(turn**2 @ base.extents**2),
        make_truth=truth,
        mode_of=None if mode_of is None else lambda positions: mode_of(straight(positions)),
        sample=None
        if sample is None
        else lambda key, count: sample(key, count) @ jnp.asarray(turn.T),
        tail_index=base.tail_index,
    )


@entered("student-1.5-scales-rotated", "final", "heavy")
def _student(**labels: Any) -> Problem:
    return turned(get("student-1.5-scales"), 15, **labels)


@entered("two-bananas-10-rotated", "final", "modes")
def _bananas(**labels: Any) -> Problem:
    return turned(get("two-bananas-10"), 10, **labels)


@entered("label-switching-rotated", "final", "modes")
def _switching(**labels: Any) -> Problem:
    return turned(get("label-switching"), 9, **labels)


@entered("sensors-rotated", "final", "modes")
def _sensors(**labels: Any) -> Problem:
    return turned(get("sensors"), 4, **labels)
