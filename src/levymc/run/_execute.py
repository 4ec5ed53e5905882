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
    """Make the chunks from `begin` on.  Ctrl-C, and a loader that ends, end the run."""
    keys, feed = inputs
    with progress_bar(progress, plan.num_steps, plan.num_chains) as report:
        try:
            states = _burn_in(plan, program, inputs, states, report) if begin == 0 else states
            report(plan.first_step(begin) - (plan.burn_in if begin == 0 else 0), 0)
            for chunk in range(begin, plan.num_chunks):
                first, thin = plan.first_step(chunk), plan.cut.thin
                wanted = plan.draws_in(chunk)
                data, fed = feed.take(first, wanted * thin, plan.chunk_steps)
                numbers = jnp.int32(first), jnp.int32(fed)
                states, draws = program.draw(states, keys, data, *numbers)
                kept = [np.asarray(leaf)[: fed // thin] for leaf in draws]
                sink.append(chunk, kept, states)
                report(fed, count_divergences(kept))
                if fed < wanted * thin:
                    warnings.warn(_ENDED.format(first + fed, plan.num_steps), stacklevel=4)
                    return Outcome(states, True)
        except KeyboardInterrupt:
            return Outcome(states, True)
    return Outcome(states, False)


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
