"""The loop over chunks, the same for a run in memory, into a store, and one that goes on."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._feed import Feed
from ._plan import Plan
from ._program import Leaves, Program
from ._progress import progress_bar

_ENDED = (
    "`minibatches` ended after {} of {} steps, and the run with them. "
    "Give an iterable that is long enough, such as itertools.cycle(...)."
)


class Inputs(NamedTuple):
    """What every call is given: raw keys of the chains, and where data come from."""

    keys: Array
    feed: Feed


@runtime_checkable
class Sink(Protocol):
    """Where draws go.  `append` must not return before the chunk is safe."""

    def append(self, chunk: int, draws: list[np.ndarray], states: Leaves) -> None: ...


class Outcome(NamedTuple):
    """The chains' last states, and whether the run ended early."""

    states: Leaves
    is_interrupted: bool


class _Launched(NamedTuple):
    """A chunk that is being computed; `draws` are awaited when they are read."""

    chunk: int
    draws: Leaves
    states: Leaves
    num_steps: int


def execute(
    plan: Plan,
    program: Program,
    inputs: Inputs,
    states: Leaves,
    sink: Sink,
    *,
    begin: int = 0,
    progress: bool,
    count_divergences: Callable[[list[np.ndarray]], int],
) -> Outcome:
    """Make the chunks from `begin` on.  Ctrl-C, and a loader that ends, end the run.

    While a chunk is computed, the one before it goes into the sink.
    """
    kept_states = states
    with progress_bar(progress, plan.num_steps, plan.num_chains) as report:

        def settle(done: _Launched) -> Leaves:
            kept = [np.asarray(leaf)[: done.num_steps // plan.cut.thin] for leaf in done.draws]
            sink.append(done.chunk, kept, done.states)
            report(done.num_steps, count_divergences(kept))
            return done.states

        try:
            states = _burn_in(plan, program, inputs, states, report) if begin == 0 else states
            report(plan.first_step(begin) - (plan.burn_in if begin == 0 else 0), 0)
            running = None
            for chunk in range(begin, plan.num_chunks):
                launched = _launch(plan, program, inputs, states, chunk)
                kept_states = settle(running) if running else kept_states
                running, states = launched, launched.states
                if launched.num_steps < plan.draws_in(chunk) * plan.cut.thin:
                    ended = plan.first_step(chunk) + launched.num_steps
                    warnings.warn(_ENDED.format(ended, plan.num_steps), stacklevel=4)
                    return Outcome(settle(launched), True)
            return Outcome(settle(running) if running else kept_states, False)
        except KeyboardInterrupt:
            return Outcome(kept_states, True)


def _launch(plan: Plan, program: Program, inputs: Inputs, states: Leaves, chunk: int) -> _Launched:
    first, wanted = plan.first_step(chunk), plan.draws_in(chunk) * plan.cut.thin
    data, fed = inputs.feed.take(first, wanted, plan.chunk_steps)
    moved, draws = program.draw(states, inputs.keys, data, jnp.int32(first), jnp.int32(fed))
    return _Launched(chunk, draws, moved, fed)


def _burn_in(
    plan: Plan,
    program: Program,
    inputs: Inputs,
    states: Leaves,
    report: Callable[[int, int], None],
) -> Leaves:
    """A chunk's worth of steps a call, so that the bar moves and a loader is asked for few."""
    size = plan.chunk_steps
    for first in range(0, plan.burn_in, size):
        count = min(size, plan.burn_in - first)
        data, fed = inputs.feed.take(first, count, size)
        states = program.advance(states, inputs.keys, data, jnp.int32(first), jnp.int32(fed))
        report(count, 0)
    return states


class Memory:
    """A sink that keeps the draws."""

    def __init__(self) -> None:
        self.chunks: list[list[np.ndarray]] = []

    def append(self, chunk: int, draws: list[np.ndarray], states: Leaves) -> None:
        self.chunks.append(draws)

    @property
    def num_draws(self) -> int:
        return sum(len(leaves[0]) for leaves in self.chunks)

    def joined(self) -> list[np.ndarray]:
        """The leaves with axes (chain, draw, …)."""
        return [
            np.moveaxis(np.concatenate(parts), 0, 1) for parts in zip(*self.chunks, strict=True)
        ]


def any_divergences(structure: Any) -> Callable[[list[np.ndarray]], int]:
    """Count divergent draws in a chunk's leaves, where the algorithm tells of them."""
    place = getattr(structure.info, "is_divergent", None)

    def count(leaves: list[Any]) -> int:
        return int(np.sum(leaves[place])) if isinstance(place, int) else 0

    return count
