"""Run an algorithm: chains side by side, thinned, chunk by chunk."""

import warnings
from pathlib import Path
from typing import Any

import jax

from levymc._checks import check_key

from ._execute import Memory, any_divergences, execute
from ._feed import source_of
from ._prepare import Prepared, check_counts, check_observers, check_seen, count_chains, prepare
from ._result import Result, from_leaves
from ._shard import check_mesh, spread
from ._step import Recipe
from ._structure import numbered


def sample(
    algorithm: Any,
    key: Any,
    initial_positions: Any,
    num_steps: Any,
    *,
    thin: Any = 1,
    burn_in: int = 0,
    minibatches: Any = None,
    observe: Any = None,
    observe_every: Any = 1,
    keep_positions: bool | None = None,
    progress: bool = True,
    store: str | Path | None = None,
    mesh: Any = None,
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
        minibatches: for algorithms whose step takes one.  `levymc.batches(data, size)` draws them
            inside the compiled program, for each chain its own.  An iterable of minibatches, or a
            function of the step's number 0, 1, …, gives one a step to all chains.
            `levymc.whole(data)` gives all of the data to every step.
        observe: summaries by name, such as {"mean": levymc.observe.mean()}, of every step.
        observe_every: show observers every k-th step only, counted after burn-in; in the others
            they cost nothing.
        keep_positions: keep the draws; if not given, where nothing is observed.
        progress: show a bar, in a terminal.
        store: a folder that does not exist yet, for draws, state and program as the run proceeds;
            `levymc.resume(store)` goes on from it, also after the process was killed.
        mesh: a `jax.sharding.Mesh` with one axis, over which the chains are spread.

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
    counts = check_counts(num_steps, thin, burn_in)
    num_chains, typed_key = count_chains(initial_positions), check_key(key)
    check_mesh(mesh, num_chains, is_stored=store is not None)
    source = source_of(minibatches, num_chains, is_stored=store is not None)
    observers = check_observers(observe)
    seen = check_seen(observe_every, counts, observers)
    keeps = not observers if keep_positions is None else keep_positions
    recipe = Recipe(algorithm, tuple(observers.values()), source.batch_size, keeps, seen)
    ready = prepare(recipe, tuple(observers), source, typed_key, initial_positions, counts)
    if store is not None:
        from ._store import create, run_store

        opened = create(Path(store), ready)
        return finish(run_store(opened, source.feed, progress=progress))
    return finish(_run_in_memory(spread(ready, mesh), progress=progress))


def _run_in_memory(ready: Prepared, *, progress: bool) -> Result:
    memory, where = Memory(), numbered(ready.draws)
    outcome = execute(
        ready.plan,
        ready.program,
        ready.inputs,
        ready.states,
        memory,
        progress=progress,
        count_divergences=any_divergences(where),
    )
    if not memory.num_draws:
        raise KeyboardInterrupt("The run was stopped before its first chunk; there are no draws.")
    return from_leaves(
        memory.joined(),
        where,
        (ready.plan.num_chains, memory.num_draws),
        is_interrupted=outcome.is_interrupted,
        observed=jax.tree.unflatten(
            jax.tree.structure(ready.observed), ready.program.finish(outcome.states)
        ),
    )


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
