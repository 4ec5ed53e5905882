r"""Step sizes η_n, as functions of the step's number n = 1, 2, …"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_positive, is_traced

Schedule = Callable[[Any], Any]


def constant(eta: Any) -> Schedule:
    """η_n = eta.

    Examples:
        >>> from levymc import schedules
        >>> schedules.constant(0.1)(7)
        0.1
    """
    check_positive("eta", eta, "It is the step size.")
    return lambda n: eta


def polynomial(a: Any, b: Any) -> Schedule:
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
    return lambda n: (a / n) ** b


def as_schedule(step_size: Any) -> Schedule:
    """A number as a constant; any function of n, such as Optax's schedules, as it is."""
    if not callable(step_size):
        check_positive("step_size", step_size, "Give a number, or a schedule of the step n.")
        return lambda n: step_size
    first = jax.eval_shape(step_size, jax.ShapeDtypeStruct((), jnp.int32))
    shapes = jax.tree.leaves(first)
    if len(shapes) != 1 or getattr(shapes[0], "shape", None) != ():
        raise TypeError(
            f"`step_size` must return one number for a step n, got {first!r}. "
            "Give schedules.constant(eta), schedules.polynomial(a, b), or a function like them."
        )
    check_positive("step_size", step_size(1), "It was asked for its first step, n = 1.")
    return step_size


def at(schedule: Schedule, n: Array, dtype: Any) -> Array:
    """η_n in the precision of the position; where it does not depend on n, a known constant."""
    step_size = schedule(n)
    if is_traced(step_size):
        return jnp.asarray(step_size, dtype)
    with jax.ensure_compile_time_eval():
        return jnp.asarray(step_size, dtype)
