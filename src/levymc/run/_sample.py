"""Run an algorithm: chains side by side, thinned, chunk by chunk."""

import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_count, check_floating, check_key
from levymc.algorithms import Info

from ._batches import Batches
from ._program import Draws, Program, chain_keys, compile_program
from ._progress import progress_bar
from ._result import Result, from_chunks

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
) -> Result:
    r"""Run chains of an algorithm, one from each of the initial positions.

    A chain's random numbers depend on `key` and on the chain's index only.  The draws are the same
    bit for bit however the run is cut into chunks, and to rounding whatever runs beside them.
    Ctrl-C returns what there is.

    Args:
        algorithm: one of levymc's or of BlackJAX's.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the chains along their first axis.
        num_steps: steps of each chain after burn-in.
        thin: keep every thin-th step.
        burn_in: steps made before, and not kept.
        minibatches: `levymc.batches(data, size)`, for algorithms whose step takes one.
        progress: show a bar, in a terminal.

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
    num_chains = _count_chains(initial_positions)
    keys = chain_keys(check_key(key), num_chains)
    data, batch_size = (None, None) if minibatches is None else minibatches
    single = compile_program(algorithm, batch_size, 1, 1)
    states = _start(single, initial_positions)
    num_draws = steps // every
    chunk = _chunk_size(single, states, keys, data, num_draws)
    program = compile_program(algorithm, batch_size, every, chunk)
    chunks: list[Draws] = []
    is_interrupted = False
    with progress_bar(progress, unkept + num_draws * every, num_chains) as report:
        try:
            if unkept:
                states = program.advance(states, keys, data, jnp.int32(0), jnp.int32(unkept))
                report(jax.block_until_ready(states) and unkept, 0)
            for first in range(0, num_draws, chunk):
                number = jnp.int32(unkept + first * every)
                states, draws = program.draw(states, keys, data, number)
                chunks.append(jax.tree.map(np.asarray, draws))
                report(chunk * every, _count_divergences(chunks[-1]))
        except KeyboardInterrupt:
            is_interrupted = True
    result = from_chunks(chunks, num_draws, is_interrupted=is_interrupted)
    _warn_of_divergences(result)
    return result


def _start(program: Program, positions: Any) -> Any:
    """The states of all chains; refuse starts at which something is not finite."""
    states = program.init(jax.tree.map(jnp.asarray, positions))
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


def _chunk_size(program: Program, states: Any, keys: Any, data: Any, num_draws: int) -> int:
    """Draws a chunk: few enough for memory and for the bar, in chunks of nearly one size."""
    _, draws = jax.eval_shape(program.draw, states, keys, data, jnp.int32(0))
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(draws))
    most = max(1, min(CHUNK_BYTES // max(size, 1), math.ceil(num_draws / FEWEST_CHUNKS)))
    return math.ceil(num_draws / math.ceil(num_draws / most))


def _count_divergences(draws: Draws) -> int:
    return int(np.sum(draws.info.is_divergent)) if isinstance(draws.info, Info) else 0


def _warn_of_divergences(result: Result) -> None:
    if result.num_divergent:
        warnings.warn(
            f"{result.num_divergent} of {result.num_draws * result.num_chains} draws had a step "
            "that would have left the finite numbers and was not made: the chain stayed where it "
            "was, so that the draws are biased. Take a smaller step size, or "
            "levymc.integrators.tamed() or split() in the place of euler().",
            stacklevel=3,
        )
