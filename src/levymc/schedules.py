r"""Step sizes η_n, as functions of the step's number n = 1, 2, …, 2³¹ - 1.

In a longer run n stays there, and the step size with it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc._checks import as_parameter, check_one_number, check_positive, output_shapes
from levymc._trees import module

Schedule = Callable[[Any], ArrayLike]
ASKED_AT_ONCE = 1 << 14
ONE_STEP = "For steps of several sizes, give a schedule of the step n, or a preconditioner."


@module()
class Constant:
    """η_n = eta."""

    eta: Any

    def __call__(self, n: Any) -> Any:
        return self.eta


def constant(eta: ArrayLike) -> Constant:
    """η_n = eta.

    Examples:
        >>> from levymc import schedules
        >>> schedules.constant(0.1)(7)
        0.1
    """
    check_one_number("eta", eta, ONE_STEP)
    check_positive("eta", eta, "It is the step size.")
    return Constant(as_parameter(eta))


@module()
class Polynomial:
    """η_n = (a/n)^b."""

    a: Any
    b: Any

    def __call__(self, n: Any) -> Any:
        return (self.a / n) ** self.b


def polynomial(a: ArrayLike, b: ArrayLike) -> Polynomial:
    r"""η_n = (a/n)^b, the paper's decreasing steps.

    The weighted estimator converges where η_n → 0 and Σ η_n = ∞: for 0 < b ≤ 1.

    Examples:
        >>> from levymc import schedules
        >>> round(schedules.polynomial(1.0, 0.5)(4), 3)
        0.5

    References: [simsekli2017], section 4.
    """
    check_positive("a", a, "It is the first step, to the power 1/b.")
    check_positive("b", b, "It is how fast the steps fall; 0 < b ≤ 1 for convergence.")
    return Polynomial(as_parameter(a), as_parameter(b))


@module(static=("function",))
class FromFunction:
    """A function of n that is part of the compiled program."""

    function: Schedule

    def __call__(self, n: Any) -> Any:
        return self.function(n)


def as_schedule(step_size: Any) -> Schedule:
    """A number as a constant; any function of n, such as Optax's schedules, as a schedule."""
    if not callable(step_size):
        check_one_number("step_size", step_size, ONE_STEP)
        check_positive("step_size", step_size, "Give a number, or a schedule of the step n.")
        return Constant(as_parameter(step_size))
    first = output_shapes("step_size", step_size, jax.ShapeDtypeStruct((), jnp.int32))
    shapes = jax.tree.leaves(first)
    if len(shapes) != 1 or getattr(shapes[0], "shape", None) != ():
        raise TypeError(
            f"`step_size` must return one number for a step n, got {first!r}. "
            "Give schedules.constant(eta), schedules.polynomial(a, b), or a function like them."
        )
    check_positive("step_size", step_size(1), "It was asked for its first step, n = 1.")
    is_pytree = not jax.tree_util.all_leaves([step_size])
    return step_size if is_pytree else FromFunction(step_size)


def following(n: Array) -> Array:
    """The number of the next step; once it is the largest of its type, it stays that."""
    return jnp.minimum(n, jnp.iinfo(n.dtype).max - 1) + 1


def at(schedule: Schedule, n: Array, dtype: Any) -> Array:
    """η_n in the precision of the position."""
    return jnp.asarray(schedule(n), dtype)


@jax.jit
def _sizes(schedule: Any, first: Array) -> Array:
    """η_{first+1}, …: as many as are asked for at once."""
    return jax.vmap(schedule)(first + jnp.arange(1, ASKED_AT_ONCE + 1, dtype=jnp.int32))


def check_steps(schedule: Any, first: int, count: int, dtype: Any = float) -> None:
    """Refuse a schedule that is not positive and finite at the steps first + 1, …, first + count.

    `schedule` is one of `as_schedule`, `dtype` that of the position: what is too small for it is
    zero.  A constant is looked at before the first step alone.
    """
    if isinstance(schedule, Constant):
        if first == 0:
            _check_sizes(np.asarray(schedule.eta)[None], 0, dtype)
        return
    end = min(first + count, int(jnp.iinfo(jnp.int32).max) - ASKED_AT_ONCE)  # later, η stays
    for begin in range(first, end, ASKED_AT_ONCE):
        length = min(ASKED_AT_ONCE, end - begin)
        _check_sizes(np.asarray(_sizes(schedule, jnp.int32(begin)))[:length], begin, dtype)


def _check_sizes(given: np.ndarray, begin: int, dtype: Any) -> None:
    """Refuse step sizes η_{begin+1}, … of which one is not positive and finite in a precision."""
    with np.errstate(over="ignore", under="ignore"):
        sizes = given.astype(dtype)
    wrong = np.argwhere(~(np.isfinite(sizes) & (sizes > 0)))
    if len(wrong):
        raise ValueError(
            f"`step_size` must be positive and finite at every step, got {sizes[tuple(wrong[0])]} "
            f"at step {begin + wrong[0][0] + 1} in {sizes.dtype}. Give a schedule that is bounded "
            "from below, such as levymc.schedules.polynomial(a, b) with b ≤ 1."
        )
