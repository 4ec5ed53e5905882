r"""Step sizes η_n, as functions of the step's number n = 1, 2, …, 2³¹ - 1.

In a longer run n stays there, and the step size with it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc._checks import (
    as_parameter,
    check_count,
    check_interval,
    check_one_number,
    check_positive,
    is_traced,
    output_shapes,
)
from levymc._trees import module

Schedule = Callable[[Any], ArrayLike]
_FEW, _MANY = 1 << 8, 1 << 14  # steps that are asked for at once
_ONE_STEP = "For steps of several sizes, give a schedule of the step n, or a preconditioner."


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
    check_one_number("eta", eta, _ONE_STEP)
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

    The weighted estimator converges where η_n → 0 and Σ η_n = ∞: for 0 < b ≤ 1; of any schedule,
    `levymc.theory.check_schedule` says whether that is so.

    Examples:
        >>> from levymc import schedules
        >>> round(schedules.polynomial(1.0, 0.5)(4), 3)
        0.5

    References: [simsekli2017], section 4.
    """
    check_positive("a", a, "It is the first step, to the power 1/b.")
    check_positive("b", b, "It is how fast the steps fall; 0 < b ≤ 1 for convergence.")
    return Polynomial(as_parameter(a), as_parameter(b))


@module()
class Cyclical:
    """η_n = least + (a - least) sin²(π (period - (n - 1) mod period) / (2 period))."""

    a: Any
    period: Any
    least: Any

    def __call__(self, n: Any) -> Any:
        # Not 1 + cos, which rounds to zero long before a cycle ends.
        left = (self.period - (n - 1) % self.period) / self.period
        return self.least + (self.a - self.least) * jnp.sin(jnp.pi / 2 * left) ** 2


def cyclical(a: ArrayLike, period: int, *, least: ArrayLike = 0.0) -> Cyclical:
    r"""Steps that fall from `a` along a cosine, and begin anew every `period` steps:

    .. math:: η_n = \text{least} + \frac{a - \text{least}}{2}
       \Bigl(1 + \cos\frac{π\,((n - 1) \bmod P)}{P}\Bigr).

    Large steps look for modes, small ones sample them.  What the large ones draw is far from the
    target: keep the ends of the cycles alone, by ``thin=levymc.marks.cycle_ends(period)``.

    Targets: no more than the algorithm does; the weights of modes are those of where the large
    steps leave a chain, not the target's.

    Args:
        a: the first and largest step of a cycle, positive.
        period: steps of a cycle.
        least: what the steps fall to, in [0, a]; they come close to it, and stay above.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import schedules
        >>> step_size = schedules.cyclical(1.0, 4)
        >>> [round(float(step_size(n)), 3) for n in (1, 2, 3, 4, 5)]
        [1.0, 0.854, 0.5, 0.146, 1.0]

    References: [zhang2020], eq. (1), with M cycles in a run of M `period` steps.  Departures: their
    first part of a cycle may leave out the noise; here every step has it.
    """
    check_one_number("a", a, _ONE_STEP)
    check_positive("a", a, "It is the largest step.")
    steps = check_count("period", period, "It is the number of steps of a cycle.")
    check_one_number("least", least, _ONE_STEP)
    check_interval("least", least, 0.0, _number(a), includes_low=True, remedy="It is below `a`.")
    length = np.asarray(min(steps, int(np.iinfo(np.int32).max)), np.int32)
    return Cyclical(as_parameter(a), length, as_parameter(least))


def _number(value: Any) -> float:
    return np.inf if is_traced(value) else float(value)


@module(static=("function",))
class FromFunction:
    """A function of n that is part of the compiled program."""

    function: Schedule

    def __call__(self, n: Any) -> Any:
        return self.function(n)


def as_schedule(step_size: Any) -> Schedule:
    """A number as a constant; any function of n, such as Optax's schedules, as a schedule."""
    if not callable(step_size):
        check_one_number("step_size", step_size, _ONE_STEP)
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


@partial(jax.jit, static_argnames="count")
def _sizes(schedule: Any, first: Array, count: int) -> Array:
    """η_{first+1}, …, η_{first+count}."""
    return jax.vmap(schedule)(first + jnp.arange(1, count + 1, dtype=jnp.int32))


def check_steps(schedule: Any, first: int, count: int, dtype: Any = float) -> None:
    """Refuse a schedule that is not positive and finite at the steps first + 1, …, first + count.

    `schedule` is one of `as_schedule`, `dtype` that of the position: what is too small for it is
    zero.  A constant is looked at before the first step alone.
    """
    if isinstance(schedule, Constant):
        if first == 0:
            _check_sizes(np.asarray(schedule.eta)[None], 0, dtype)
        return
    end = min(first + count, int(jnp.iinfo(jnp.int32).max) - _MANY)  # later, η stays
    while first < end:
        # Not many more than there are: the next call is as long as the time of this one allows.
        asked = _MANY if end - first > _MANY // 2 else _FEW
        sizes = np.asarray(_sizes(schedule, jnp.int32(first), asked))[: end - first]
        _check_sizes(sizes, first, dtype)
        first += asked


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
