"""Run an algorithm: chains side by side, thinned, chunk by chunk."""

import math
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_count, check_floating, check_key

from ._batches import Batches
from ._execute import Inputs, Memory, any_divergences, execute
from ._plan import Plan
from ._program import Draws, chain_keys, compile_init, compile_program, draw_structure
from ._result import Result, from_leaves
from ._structure import numbered

CHUNK_BYTES = 64 * 2**20
FEWEST_CHUNKS = 20  # so that the progress bar moves, and Ctrl-C loses little


def sample(
    algorithm: Any,
    key: Any,
    initial_positions: Any,
    num_steps: Any,
    *,
    thin: Any = 1,
    burn_in: int = 0,
    minibatches: Batches | None = None,
    progress: bool = True,
    store: str | Path | None = None,
) -> Result:
    r"""Run chains of an algorithm, one from each of the initial positions.

    A chain's random numbers depend on `key` and on the chain's index only.  The draws are the same
    bit for bit however the run is cut into chunks, stored, interrupted and resumed, and to rounding
    whatever runs beside them.  Ctrl-C returns what there is.

    Args:
        algorithm: one of levymc's or of BlackJAX's.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the chains along their first axis.
        num_steps: steps of each chain after burn-in.
        thin: keep every thin-th step.
        burn_in: steps made before, and not kept.
        minibatches: `levymc.batches(data, size)`, for algorithms whose step takes one.
        progress: show a bar, in a terminal.
        store: a folder that does not exist yet, for draws, state and program as the run proceeds;
            `levymc.resume(store)` goes on from it, also after the process was killed.

    Returns:
        A `Result` with num_steps // thin draws of each chain.

    Raises:
        ValueError, TypeError: an argument outside its range; starts that are not finite.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> starts = jnp.zeros(4)
        >>> result = levymc.sample(walk, jax.random.key(0), starts, 100, progress=False)
        >>> result.positions.shape
        (4, 100)
    """
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    every = check_count("thin", thin, "Every thin-th step is kept.")
    unkept = 0 if burn_in == 0 else check_count("burn_in", burn_in, "It is a number of steps.")
    if every > steps:
        raise ValueError(
            f"`thin` must be at most `num_steps` = {steps}, got {every}. Nothing would be kept."
        )
    num_chains, typed_key = _count_chains(initial_positions), check_key(key)
    data, batch_size = (None, None) if minibatches is None else minibatches
    states = _start(algorithm, initial_positions)
    structure = draw_structure(algorithm, states, batch_size, data)
    chunk = _chunk_size(structure, steps // every)
    plan = Plan(num_chains, steps // every, chunk, every, unkept)
    leaves, state_structure = jax.tree.flatten(states)
    data_leaves, data_structure = jax.tree.flatten(data)
    kind = str(jax.random.key_impl(typed_key))
    program = compile_program(
        algorithm, state_structure, data_structure, batch_size, every, chunk, kind
    )
    inputs = Inputs(chain_keys(typed_key, num_chains), data_leaves)
    if store is not None:
        from ._store import create, run_store

        opened = create(Path(store), plan, program, inputs, leaves, structure)
        return finish(run_store(opened, progress=progress))
    memory, where = Memory(), numbered(structure)
    is_interrupted = execute(
        plan,
        program,
        inputs,
        leaves,
        memory,
        progress=progress,
        count_divergences=any_divergences(where),
    )
    return finish(from_leaves(memory.joined(), where, is_interrupted=is_interrupted))


def finish(result: Result) -> Result:
    """Tell of divergences, with advice."""
    if result.num_divergent:
        warnings.warn(
            f"{result.num_divergent} of {result.num_draws * result.num_chains} draws had a step "
            "that would have left the finite numbers and was not made: the chain stayed where it "
            "was, so that the draws are biased. Take a smaller step size, or "
            "levymc.integrators.tamed() or split() in the place of euler().",
            stacklevel=3,
        )
    return result


def _start(algorithm: Any, positions: Any) -> Any:
    """The states of all chains; refuse starts at which something is not finite."""
    states = compile_init(algorithm)(jax.tree.map(jnp.asarray, positions))
    for path, leaf in jax.tree_util.tree_leaves_with_path(states):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and not bool(jnp.all(jnp.isfinite(leaf))):
            wrong = ~np.isfinite(np.asarray(leaf)).reshape(leaf.shape[0], -1).all(axis=1)
            raise ValueError(
                f"`initial_positions` must give finite states, got a state whose "
                f"{jax.tree_util.keystr(path)} is not, in chains {np.flatnonzero(wrong).tolist()}. "
                "Start inside the support of the target."
            )
    return states


def _count_chains(positions: Any) -> int:
    check_floating("initial_positions", positions)
    leaves = jax.tree.leaves(positions)
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "`initial_positions` must have the chains along the first axis of every leaf, "
            f"got first axes of {sorted(counts)}. For one chain, add an axis: x[None]."
        )
    return counts.pop()


def _chunk_size(one_draw: Draws, num_draws: int) -> int:
    """Draws a chunk: few enough for memory and for the bar, in chunks of nearly one size."""
    leaves = jax.tree.leaves(one_draw)
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
    most = max(1, min(CHUNK_BYTES // max(size, 1), math.ceil(num_draws / FEWEST_CHUNKS)))
    return math.ceil(num_draws / math.ceil(num_draws / most))
