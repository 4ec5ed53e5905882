"""What a run refuses before it begins: arguments that do not fit, and starts that are none."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_floating, check_position, output_shapes
from levymc.algorithms import SamplingAlgorithm

from ._engine import Leaves, Recipe, Source
from ._spreading import on_host
from .observe import Observer


def count_chains(positions: Any) -> int:
    check_floating("initial_positions", positions)
    leaves = jax.tree.leaves(positions)
    if not all(getattr(leaf, "is_fully_addressable", True) for leaf in leaves):
        raise ValueError(
            "`initial_positions` must be there in every process, got an array that is spread over "
            "several. Give the starts of all chains to each; it takes those of its own."
        )
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "`initial_positions` must have the chains along the first axis of every leaf, "
            f"got first axes of {sorted(counts)}. For one chain, add an axis: x[None]."
        )
    check_position("initial_positions", positions)
    return counts.pop()


def check_observers(observe: Any) -> dict[str, Observer]:
    if observe is None:
        return {}
    is_right = isinstance(observe, Mapping) and all(
        isinstance(name, str) and isinstance(observer, Observer)
        for name, observer in observe.items()
    )
    if not is_right:
        raise TypeError(
            f"`observe` must have observers by name, got {observe!r}. "
            'Such as {"mean": levymc.observe.mean()}.'
        )
    return dict(observe)


def check_batch(recipe: Recipe, parameters: Leaves, positions: Any, source: Source) -> None:
    """Refuse minibatches for an algorithm that takes none, and the other way round."""
    algorithm = jax.tree.unflatten(recipe.algorithm, parameters)
    takes = getattr(algorithm, "takes_minibatch", None)
    is_given = source.structure != jax.tree.structure(None)
    if takes is None or takes == is_given:
        return
    if takes:
        raise TypeError(
            f"`minibatches` must be given, as {algorithm.name} takes one at each step, got None. "
            "Such as levymc.batches(data, 100), or levymc.whole(data)."
        )
    raise TypeError(
        f"`minibatches` must be None, as {algorithm.name} takes none, got some. "
        "For stochastic gradients use levymc.sgfla or levymc.sgld."
    )


def check_spread(
    source: Source, algorithm: SamplingAlgorithm[Any], mesh: Any, *, is_stored: bool
) -> None:
    """Refuse data that are spread over devices, where nothing would add up their gradients."""
    if source.layout is not None and getattr(algorithm, "grad_estimator", None) is None:
        raise TypeError(
            "`minibatches` must be on one device for an algorithm whose gradients are not "
            f"levymc's to add up, got some over a mesh for {algorithm.name}. "
            "Take levymc.sgld or levymc.sgfla, or leave out the `mesh` of levymc.batches."
        )
    if mesh is not None or is_stored:
        name, value = ("mesh", mesh) if mesh is not None else ("store", "a folder")
        raise ValueError(
            f"`{name}` must be None with data over a mesh, got {value!r}: all devices work on the "
            "same chains, and a stored program is for one. Leave one of them out."
        )


def check_kept(keep: Callable[[Any], Any], positions: Any) -> None:
    """Refuse a function of a position that does not return arrays."""
    kept = output_shapes("keep", keep, of_one_chain(positions))
    if not (leaves := jax.tree.leaves(kept)) or not all(map(_is_of_numbers, leaves)):
        raise TypeError(
            f"`keep` must return a pytree of arrays of numbers, got {kept!r:.100}. "
            "With keep=False nothing is kept."
        )


def _is_of_numbers(shape: Any) -> bool:
    """Whether these are the shape and type of an array that NumPy can have, unlike random keys."""
    is_array = isinstance(shape, jax.ShapeDtypeStruct)
    return is_array and not jnp.issubdtype(shape.dtype, jax.dtypes.extended)


def check_keyless(begun: Any) -> None:
    """Refuse a state with random keys in it: neither programs nor stores keep them."""
    if any(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in jax.tree.leaves(begun)):
        raise TypeError(
            "`algorithm` must have numbers alone in its state, got a random key, as that of "
            "blackjax.dynamic_hmc has. Each step is given a key of its own: take an algorithm "
            "that draws with it, such as blackjax.hmc or blackjax.nuts."
        )


def check_finite(states: Any, positions: Any) -> None:
    """Refuse starts at which something is not finite; a drift's logarithm is not where it is 0."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(states):
        name = jax.tree_util.keystr(path).removeprefix(".")
        if jnp.issubdtype(leaf.dtype, jnp.floating) and not _is_of_drift(path):
            _refuse_starts(name, on_host(leaf).astype(np.float64), positions)


def _is_of_drift(path: tuple[Any, ...]) -> bool:
    """Whether a leaf is inside a drift, of a state or of one in it, such as that of `jumping`."""
    above = [getattr(key, "name", None) for key in path[:-1]]
    return "drift" in above and "position" not in above


def check_support(algorithm: SamplingAlgorithm[Any], positions: Any) -> None:
    """Refuse starts where the density is known to be zero, though no state holds it."""
    if jax.eval_shape(algorithm.start_logdensity, of_one_chain(positions)) is not None:
        found = jax.vmap(algorithm.start_logdensity)(jax.tree.map(jnp.asarray, positions))
        _refuse_starts("log prior", np.asarray(found, np.float64), positions)


def of_one_chain(positions: Any) -> Any:
    """Shapes of a position."""

    def first(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], tree)

    return jax.eval_shape(first, positions)


def _refuse_starts(name: str, values: np.ndarray, positions: Any) -> None:
    wrong = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(wrong):
        where = jax.tree.map(lambda leaf: np.asarray(leaf)[wrong[0]].tolist(), positions)
        shown = f"{wrong[:5].tolist()} and {len(wrong) - 5} more" if len(wrong) > 5 else wrong
        raise ValueError(
            f"`initial_positions` must give finite states, got a start {where!s:.200} whose {name} "
            f"is not finite, in chains {shown}. Start inside the support of the target."
        )
