r"""Log densities in plain NumPy, which JAX cannot trace: called back, at a cost."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc._checks import check_function
from levymc.drifts import LogDensity

_REMEDY = "Give a function of a position that returns one number, in NumPy."
_GRADIENT_REMEDY = "Give a function of a position that returns a pytree like it, in NumPy, or None."


def as_logdensity(
    function: Callable[[Any], Any],
    *,
    gradient: Callable[[Any], Any] | None = None,
    vectorized: bool = False,
) -> LogDensity:
    """A log density that is computed by NumPy, SciPy or anything else in Python, for any sampler.

    All chains are computed in one call from the compiled program to Python, and there one after
    the other, unless the function is vectorised.  Beside the function itself that costs some 50 µs
    a call for all chains, and 0.6 µs more for each where it is not vectorised (JAX 0.10 on an AMD
    EPYC): a step of eight walks takes 90 µs rather than 4.  Where `jax.numpy` has what is needed,
    write it with that.

    Without a gradient it is for samplers that need none: `levymc.levy_walk`, and `levymc.auto`,
    which finds that out.  With one it is for all.  Second derivatives, which the search for modes
    looks at, are differences of the gradient.

    Not valid when: the function depends on anything but the position (it may be called more or less
    often than a sampler steps), changes the position, or calls JAX: that can wait for itself for
    ever.  A program that calls Python is not for a `store`.

    Args:
        function: log φ up to a constant of a position, a pytree of NumPy arrays (of numbers where
            an array has no axes).  -inf where φ is zero.
        gradient: of log φ, a pytree like the position, or None.
        vectorized: whether both take many positions at once, along the first axis of every leaf,
            and return as many values and gradients.

    Raises:
        TypeError: what is no function.  Values and gradients of wrong shapes are refused when
            the function is called, within an error of JAX's.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> from scipy import stats
        >>> logdensity_fn = levymc.interop.numpy.as_logdensity(stats.t(4.0).logpdf, vectorized=True)
        >>> walk = levymc.levy_walk(logdensity_fn, 2.0)
        >>> run = levymc.sample(walk, jax.random.key(0), jnp.zeros(8), 100, progress=False)
        >>> run.positions.shape
        (8, 100)
    """
    check_function("function", function, _REMEDY)
    if gradient is None:
        return _with_slope(_Callback(function, vectorized).value, _no_slope)
    check_function("gradient", gradient, _GRADIENT_REMEDY)
    slope = _with_curvature(_Callback(gradient, vectorized).gradient)
    return _with_slope(_Callback(function, vectorized).value, slope)


def _with_slope(value: Callable[[Any], Array], slope: Callable[[Any], Any]) -> LogDensity:
    """The function, differentiated by its gradient."""
    differentiable = jax.custom_jvp(value)

    @differentiable.defjvp
    def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
        (position,), (direction,) = primals, tangents
        products = jax.tree.map(lambda s, v: jnp.sum(s * v), slope(position), direction)
        found = differentiable(position)
        return found, jnp.asarray(sum(jax.tree.leaves(products)), found.dtype)

    def logdensity_fn(position: Any) -> Array:
        return differentiable(jax.tree.map(jnp.asarray, position))

    return logdensity_fn


def _no_slope(position: Any) -> Any:
    raise TypeError(
        "`gradient` of levymc.interop.numpy.as_logdensity must be given where the log density is "
        "differentiated, got None. Give it, or use a sampler that needs none: levymc.levy_walk, or "
        "levymc.auto(..., gradient=False)."
    )


def _with_curvature(gradient: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient, differentiated by central differences of it."""
    slope = jax.custom_jvp(gradient)

    @slope.defjvp
    def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (position,), (direction,) = primals, tangents
        step = _difference_step(position, direction)

        def beside(way: Array) -> Any:
            return slope(
                jax.tree.map(lambda x, v: (x + way * v).astype(x.dtype), position, direction)
            )

        change = jax.tree.map(
            lambda above, below: ((above - below) / (2 * step)).astype(above.dtype),
            beside(step),
            beside(-step),
        )
        return slope(position), change

    return slope


def _difference_step(position: Any, direction: Any) -> Array:
    """The cube root of the precision, of the size of what moves, along the direction.

    A coordinate that stays may be much larger, such as a year beside a rate, and says nothing.
    """
    flat, along = ravel_pytree(position)[0], ravel_pytree(direction)[0]
    size = jnp.max(jnp.where(along != 0, jnp.abs(flat), 0.0))
    step = jnp.finfo(flat.dtype).eps ** (1 / 3) * jnp.maximum(size, 1.0)
    length = jnp.max(jnp.abs(along))
    return step / jnp.where(length > 0, length, 1.0)


class _Callback(NamedTuple):
    """A function in Python, as one that JAX can trace, of any number of positions at once."""

    function: Callable[[Any], Any]
    is_vectorized: bool

    def value(self, position: Any) -> Array:
        shape = jax.ShapeDtypeStruct((), jnp.result_type(*jax.tree.leaves(position)))
        return self._traced(position, shape, "function")

    def gradient(self, position: Any) -> Any:
        return self._traced(position, jax.eval_shape(lambda: position), "gradient")

    def _traced(self, position: Any, shapes: Any, name: str) -> Any:
        axes = [leaf.ndim for leaf in jax.tree.leaves(position)]

        def on_host(positions: Any) -> Any:
            leaves, structure = jax.tree.flatten(positions)
            before = np.shape(leaves[0])[: np.ndim(leaves[0]) - axes[0]]
            rows = [
                np.reshape(leaf, (-1, *np.shape(leaf)[np.ndim(leaf) - own :]))
                for leaf, own in zip(map(np.asarray, leaves), axes, strict=True)
            ]
            found = self._of_rows(rows, structure, shapes, name)
            return jax.tree.map(
                lambda leaf, shape: np.reshape(leaf, (*before, *shape.shape)), found, shapes
            )

        return jax.pure_callback(on_host, shapes, position, vmap_method="broadcast_all")

    def _of_rows(self, rows: list[np.ndarray], structure: Any, shapes: Any, name: str) -> Any:
        """What the function says of positions along the first axis, in the dtypes it must have."""
        count = len(rows[0])
        if self.is_vectorized:
            found = self.function(jax.tree.unflatten(structure, rows))
            expected = jax.tree.map(lambda shape: (count, *shape.shape), shapes)
            _check_shapes(name, found, expected)
            return jax.tree.map(lambda leaf, shape: np.asarray(leaf, shape.dtype), found, shapes)
        several = [
            self.function(jax.tree.unflatten(structure, [leaf[row] for leaf in rows]))
            for row in range(count)
        ]
        expected = jax.tree.map(lambda shape: shape.shape, shapes)
        _check_shapes(name, several[0], expected)  # of one, as it takes longer than many a function
        return jax.tree.map(
            lambda shape, *leaves: np.asarray(leaves, shape.dtype), shapes, *several
        )


def _check_shapes(name: str, found: Any, expected: Any) -> None:
    shapes = jax.tree.map(np.shape, found)
    if shapes != expected:
        raise TypeError(
            f"`{name}` must return numbers of the shapes {expected}, got {shapes}. "
            "Return one value, or a gradient like the position, for each position."
        )
