"""The loop over chunks, the same for a run in memory, into a store, and one that goes on."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._plan import Plan
from ._program import Leaves, Program
from ._progress import progress_bar


class Inputs(NamedTuple):
    """What every chunk is given: raw keys of the chains, and the data of minibatches."""

    keys: Array
    data: Leaves


@runtime_checkable
class Sink(Protocol):
    """Where draws go.  `append` must not return before the chunk is safe."""

    def append(self, chunk: int, draws: list[np.ndarray], states: Leaves) -> None: ...


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
) -> bool:
    """Make the chunks from `begin` on; return whether Ctrl-C cut the run short."""
    with progress_bar(progress, plan.num_steps, plan.num_chains) as report:
        try:
            if begin == 0 and plan.burn_in:
                first, count = jnp.int32(0), jnp.int32(plan.burn_in)
                states = program.advance(states, *inputs, first, count)
            report(plan.first_step(begin), 0)
            for chunk in range(begin, plan.num_chunks):
                first = jnp.int32(plan.first_step(chunk))
                states, draws = program.draw(states, *inputs, first)
                kept = [np.asarray(leaf)[: plan.draws_in(chunk)] for leaf in draws]
                sink.append(chunk, kept, states)
                report(plan.draws_in(chunk) * plan.thin, count_divergences(kept))
        except KeyboardInterrupt:
            return True
    return False


class Memory:
    """A sink that keeps the draws."""

    def __init__(self) -> None:
        self.chunks: list[list[np.ndarray]] = []

    def append(self, chunk: int, draws: list[np.ndarray], states: Leaves) -> None:
        self.chunks.append(draws)

    def joined(self) -> list[np.ndarray]:
        """The leaves with axes (chain, draw, …)."""
        return [
            np.moveaxis(np.concatenate(parts), 0, 1) for parts in zip(*self.chunks, strict=True)
        ]


def any_divergences(structure: Any) -> Callable[[list[np.ndarray]], int]:
    """Count divergent draws in a chunk's leaves, where the algorithm tells of them."""
    place = getattr(structure.info, "is_divergent", None)

    def count(leaves: list[Any]) -> int:
        return 0 if place is None else int(np.sum(leaves[place]))

    return count
