"""Checks of arguments, made once, when a thing is built, and parameters made of them.

Traced values pass unseen.

Every message names the argument, shows the value and says what to do.
"""

import inspect
import operator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh
from jaxtyping import Array

WITH_JAX = "Write it with jax.numpy, and jnp.where or jax.lax.cond in the place of if."
# By the name of the argument: what serves where a function cannot be written with JAX.
UNTRACED = {
    "logdensity_fn": (
        f"{WITH_JAX} If it must stay in NumPy, wrap it: "
        "levymc.interop.numpy.as_logdensity(function)."
    )
}


def is_traced(value: Any) -> bool:
    """Whether any leaf of `value` is known only to a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def is_in_program() -> bool:
    """Whether a program is being traced, in which all is traced that is not asked to be known."""
    return is_traced(jnp.zeros(()) + 0)


def check_real(name: str, value: Any, remedy: str) -> None:
    """Refuse what is not a real number or array of them, and NaN and infinity among them."""
    for leaf in _known_leaves(value):
        array = _real_array(name, leaf, remedy)
        if not np.all(np.isfinite(array)):
            found = _first(array, ~np.isfinite(array))
            raise ValueError(f"`{name}` must be finite, got {found}. {remedy}")


def check_unmasked(name: str, value: Any, remedy: str) -> None:
    """Refuse masked entries of a NumPy array, which numpy.asarray would unmask."""
    if np.ma.is_masked(value):
        raise ValueError(
            f"`{name}` must have no masked entries, got {np.ma.count_masked(value)} of "
            f"{np.size(value)}. {remedy}"
        )


def check_interval(
    name: str, value: Any, low: float, high: float, *, includes_low: bool, remedy: str
) -> None:
    """Refuse what lies outside (low, high], or [low, high] where `includes_low`."""
    bracket = "[" if includes_low else "("
    for leaf in _known_leaves(value):
        array = _real_array(name, leaf, remedy)
        above = array >= low if includes_low else array > low
        outside = ~(above & (array <= high))
        if np.any(outside):
            raise ValueError(
                f"`{name}` must lie in {bracket}{low:g}, {high:g}], "
                f"got {_first(array, outside)}. {remedy}"
            )


def check_alpha(alpha: Any) -> None:
    """Refuse a noise of α outside (1, 2], for which no drift is defined."""
    remedy = (
        "Below 1 the process has no mean; 2 is plain Langevin dynamics, where the drift is the "
        "gradient of the log density."
    )
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy=remedy)


def nan_outside(value: Array, low: float, high: float, *, includes_low: bool) -> Array:
    """NaN in the place of a traced number outside its interval, which no check could refuse."""
    is_above = value >= low if includes_low else value > low
    return jnp.where(is_above & (value <= high), value, jnp.nan)


def known_alpha(alpha: Any) -> Any:
    """The α of a drift or a noise, NaN where it is traced and outside (1, 2]."""
    return jax.tree.map(
        lambda leaf: nan_outside(leaf, 1.0, 2.0, includes_low=False) if is_traced(leaf) else leaf,
        alpha,
    )


def check_positive(name: str, value: Any, remedy: str, *, infinity: bool = False) -> None:
    """Refuse what is not positive; and infinity, unless `infinity`."""
    for leaf in _known_leaves(value):
        array = _real_array(name, leaf, remedy)
        wrong = ~((array > 0) & (infinity | np.isfinite(array)))
        if np.any(wrong):
            kind = "positive" if infinity else "positive and finite"
            raise ValueError(f"`{name}` must be {kind}, got {_first(array, wrong)}. {remedy}")


def check_one_number(name: str, value: Any, remedy: str) -> None:
    """Refuse a pytree, and an array with axes."""
    if not jax.tree_util.all_leaves([value]) or np.ndim(value):
        found = f"an array of shape {np.shape(value)}" if hasattr(value, "shape") else repr(value)
        raise TypeError(f"`{name}` must be one number, got {found}. {remedy}")


def check_count(name: str, value: Any, remedy: str, *, least: int = 1) -> int:
    """Return `value` as a Python integer of at least `least`, or refuse it."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, got {value!r}. {remedy}") from None
    if count < least:
        raise ValueError(f"`{name}` must be at least {least}, got {count}. {remedy}")
    return count


def check_seed(name: str, value: Any, remedy: str, kind: str = "an integer") -> int:
    """Return `value` as a Python integer of at least zero, or refuse what is not of the `kind`."""
    try:
        seed = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be {kind}, got {value!r}. {remedy}") from None
    if seed < 0:
        raise ValueError(f"`{name}` must not be negative, got {seed}. {remedy}")
    return seed


def check_shape(name: str, value: Any) -> tuple[int, ...]:
    """Return `value` as a tuple of sizes, or refuse it."""
    remedy = "Give a tuple of non-negative integers, such as (1000, 3), or ()."
    try:
        shape = tuple(
            operator.index(size) for size in np.atleast_1d(np.asarray(value, dtype=object))
        )
    except TypeError:
        raise TypeError(f"`{name}` must be a tuple of integers, got {value!r}. {remedy}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"`{name}` must have no negative size, got {value!r}. {remedy}")
    return shape


def check_broadcast(name: str, value: Any, shape: tuple[int, ...]) -> None:
    """Refuse a value whose shape does not broadcast against `shape`."""
    try:
        jnp.broadcast_shapes(jnp.shape(value), shape)
    except ValueError:
        raise ValueError(
            f"`{name}` must broadcast against the shape {shape}, got shape {jnp.shape(value)}. "
            "Give one number, or one for each entry."
        ) from None


def check_key(key: Any) -> jax.Array:
    """Return `key` as one typed JAX key; raw uint32 keys are wrapped."""
    remedy = "Make one with jax.random.key(seed)."
    if not isinstance(key, jax.Array | np.ndarray):
        raise TypeError(
            f"`key` must be a JAX random key, got {type(key).__name__} {key!r}. {remedy}"
        )
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        found = f"an array of {key.dtype} with shape {key.shape}"
        if key.dtype != np.uint32:
            raise TypeError(f"`key` must be a JAX random key, got {found}. {remedy}")
        try:
            key = jax.random.wrap_key_data(jnp.asarray(key))
        except (TypeError, ValueError):
            raise ValueError(f"`key` must be a JAX random key, got {found}. {remedy}") from None
    if key.ndim != 0:
        raise ValueError(
            f"`key` must be a single key, got an array of keys with shape {key.shape}. "
            "Map over them with jax.vmap."
        )
    return key


def check_scalar_output(name: str, function: Any, *arguments: Any) -> None:
    """Refuse a function that does not return one real number."""
    leaves = jax.tree.leaves(output_shapes(name, function, *arguments))
    remedy = "Return one number: for independent terms, their sum."
    strange = [leaf for leaf in leaves if not isinstance(leaf, jax.ShapeDtypeStruct)]
    if strange:
        raise TypeError(f"`{name}` must return a scalar, got {strange[0]!r:.100}. {remedy}")
    if len(leaves) != 1 or leaves[0].shape != ():
        found = ", ".join(str(leaf.shape) for leaf in leaves) or "nothing"
        raise TypeError(f"`{name}` must return a scalar, got shape {found}. {remedy}")
    if not jnp.issubdtype(leaves[0].dtype, jnp.floating):
        raise TypeError(f"`{name}` must return a real number, got {leaves[0].dtype}. {remedy}")


def check_folder(name: str, value: Any) -> Path:
    """The path of a folder; refuse an address, of which Python would make a folder `s3:`."""
    if "://" in str(value):
        raise ValueError(
            f"`{name}` must be a folder of a file system, got {str(value)!r}. Object stores have "
            "no lock that ends with its process, by which one process at a time writes. "
            "Run into a folder, and copy it there when it is complete."
        )
    return Path(value)


def check_mesh(mesh: Any, axis: str = "chains") -> Mesh:
    """A mesh of one axis, whose sharding is left to the compiler."""
    if not isinstance(mesh, Mesh) or len(mesh.axis_names) != 1:
        raise TypeError(
            f"`mesh` must be a jax.sharding.Mesh with one axis, got {mesh!r}. "
            f'Such as jax.make_mesh((jax.device_count(),), ("{axis}",)).'
        )
    # With explicit axes every gather would need to be told its sharding.
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))


def check_function(name: str, value: Any, remedy: str, num_arguments: int = 1) -> None:
    """Refuse what is no function, and one that does not take so many arguments."""
    if not callable(value):
        raise TypeError(f"`{name}` must be a function, got {value!r:.100}. {remedy}")
    try:
        inspect.signature(value).bind(*[None] * num_arguments)
    except TypeError:
        raise TypeError(
            f"`{name}` must be a function of {num_arguments} argument{'s' * (num_arguments > 1)}, "
            f"got {value!r:.100}, which is not. {remedy}"
        ) from None
    except ValueError:
        pass  # some that are built in have no signature


def refuse_function(name: str, value: Any, remedy: str) -> None:
    """Refuse a function where fixed numbers are asked for."""
    if callable(value):
        raise TypeError(f"`{name}` must be fixed numbers here, got {value!r:.100}. {remedy}")


def output_shapes(name: str, function: Any, *arguments: Any) -> Any:
    """Shapes and dtypes of what a function returns; a leaf that is no array as it is."""
    remedy = "Give a function that JAX can trace."
    check_function(name, function, remedy, len(arguments))
    found: list[Any] = []

    def note(*given: Any) -> None:
        found.append(jax.tree.map(_shape_or_itself, function(*given)))

    try:
        jax.eval_shape(note, *arguments)
    except jax.errors.JAXTypeError as error:
        # It wants to know a value that is not there yet, as NumPy's functions do, and Python's if.
        raise TypeError(
            f"`{name}` must be a function that JAX can trace, got {function!r:.100}, which is not "
            f"({type(error).__name__}). {UNTRACED.get(name, WITH_JAX)}"
        ) from error
    return found[0]


def _shape_or_itself(leaf: Any) -> Any:
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int | complex):
        return leaf
    try:
        return jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf))
    except TypeError:  # an array of objects
        return leaf


def check_like(name: str, found: Any, position: Any) -> None:
    """Refuse what a function returned, if it has not the structure and shapes of the position."""
    shapes, expected = (jax.tree.map(np.shape, tree) for tree in (found, position))
    structures: list[Any] = [jax.tree.structure(tree) for tree in (found, position)]
    if structures[0] != structures[1] or shapes != expected:
        raise TypeError(
            f"`{name}` must return a pytree like the position, of shapes {expected}, got {shapes}. "
            "Return one number for each coordinate."
        )


def check_floating(name: str, tree: Any) -> None:
    """Refuse a pytree with leaves that are not real floating-point arrays."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        known = _shape_or_itself(leaf)
        found = known.dtype if isinstance(known, jax.ShapeDtypeStruct) else f"{leaf!r:.100}"
        if isinstance(found, str) or not jnp.issubdtype(found, jnp.floating):
            where = name + jax.tree_util.keystr(path)
            raise TypeError(
                f"`{where}` must be of floating type, got {found}. "
                "Convert it first, for instance with jnp.asarray(value, float)."
            )


def check_position(name: str, tree: Any) -> None:
    """Refuse what is no pytree of real floating-point arrays with at least one coordinate."""
    check_floating(name, tree)
    if not sum(np.size(leaf) for leaf in jax.tree.leaves(tree)):
        raise ValueError(
            f"`{name}` must have at least one coordinate, got shapes "
            f"{[np.shape(leaf) for leaf in jax.tree.leaves(tree)]}. Give arrays that are not empty."
        )


def as_parameter(value: Any) -> Any:
    """Fixed numbers as Python's: of one kind, however they were given; the rest as it is."""

    def convert(leaf: Any) -> Any:
        return float(leaf) if not is_traced(leaf) and np.ndim(leaf) == 0 else leaf

    return jax.tree.map(convert, value)


def spread(name: str, parameter: Any, position: Any) -> Any:
    """`parameter`, a number or a pytree like the position, with the structure of the position.

    Its leaves keep their shapes, which must broadcast to those of the position's.
    """
    try:
        tree = jax.tree.broadcast(parameter, position)
    except ValueError:
        raise ValueError(
            f"`{name}` must be one number or a pytree like the position, got the structure "
            f"{jax.tree.structure(parameter)} for {jax.tree.structure(position)}."
        ) from None

    def fit(part: Any, leaf: Any) -> Any:
        check_broadcast(name, part, jnp.shape(leaf))
        if jnp.broadcast_shapes(jnp.shape(part), jnp.shape(leaf)) != jnp.shape(leaf):
            raise ValueError(
                f"`{name}` must broadcast to the position's shape {jnp.shape(leaf)}, "
                f"got shape {jnp.shape(part)}. Give at most one number for each coordinate."
            )
        return part if is_traced(part) else np.asarray(part)

    return jax.tree.map(fit, tree, position)


def like(name: str, parameter: Any, position: Any) -> Any:
    """As `spread`, with the shapes of the position, in NumPy unless it is traced."""

    def fill(part: Any, leaf: Any) -> Any:
        xp: ModuleType = jnp if is_traced(part) else np
        return xp.broadcast_to(xp.asarray(part), jnp.shape(leaf))

    return jax.tree.map(fill, spread(name, parameter, position), position)


def _known_leaves(value: Any) -> list[Any]:
    """Leaves that are not traced; None is one, so that it is refused rather than passed over."""
    leaves = jax.tree.leaves(value, is_leaf=lambda leaf: leaf is None)
    return [leaf for leaf in leaves if not isinstance(leaf, jax.core.Tracer)]


def _real_array(name: str, leaf: Any, remedy: str) -> np.ndarray:
    check_unmasked(name, leaf, remedy)
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be real, got {leaf!r}. {remedy}") from None
    if array.dtype.kind not in "iuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"`{name}` must be real, got {leaf!r}. {remedy}")
    return array if array.dtype.kind in "iuf" else array.astype(np.float32)


def _first(array: Any, wrong: Any) -> str:
    """The first offending value, and where it stands if there are others beside it."""
    if array.ndim == 0:
        return f"{array[()]!s}"
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{array[place]!s} at index {place if len(place) > 1 else place[0]}"
