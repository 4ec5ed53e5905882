r"""Stable Lévy motion as a path of diffrax, to drive stochastic differential equations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc import noises
from levymc._checks import (
    check_count,
    check_floating,
    check_interval,
    check_key,
    check_one_number,
    check_real,
    check_shape,
    is_traced,
)

try:
    import diffrax
    import equinox as eqx
except ImportError as error:
    raise ImportError(
        "`levymc.interop.diffrax` needs diffrax: pip install 'levymc[diffrax]'."
    ) from error

_OFF_GRID = 0.01  # of a cell; rounding of times in float32 stays below it up to 100 000 cells
_TIMES_REMEDY = "They are the first and the last time at which the motion is known, in that order."


class LevyMotion(diffrax.AbstractPath[Any]):
    r"""An α-stable Lévy motion, as the control of a `diffrax.ControlTerm`:

    .. math:: L_t - L_s \sim SαS\bigl((t-s)^{1/α}\bigr), \qquad s < t,

    known at `num_steps` + 1 times, evenly spaced from `t0` to `t1`.  Between these it is not: the
    law of a stable motion given its values before and after has no form that could be drawn from,
    as Brownian motion's has, on which `diffrax.VirtualBrownianTree` rests.  An increment over
    several cells is the sum of theirs, so that steps of any length that begin and end on the grid
    see one motion: halve the steps, and a solution converges path by path.

    Targets: the law of the motion exactly, at the times of the grid.

    Not valid when: one of these holds.

    - A step begins or ends off the grid, which is an error when it is made.  With
      `diffrax.ConstantStepSize` let `dt0` be whole cells; with `diffrax.StepTo` take its times
      from `times`.  `diffrax.PIDController` chooses steps of its own and cannot be used; nor can
      `dt0=None`, or anything that asks for a derivative.
    - The noise is multiplied by what depends on the solution, and the solver is another than
      `diffrax.Euler`.  That converges to the Itô solution.  Heun's and other methods of higher
      order aim at Stratonovich's, which a jump does not have; with additive noise they are right.
    - The solver needs a Lévy area, as those for additive Brownian noise do: it is refused.

    At α = 2 the motion is √2 times Brownian motion.  `SaveAt` may ask for any times: what lies
    between the steps is interpolated.  A solution may be differentiated with respect to its start
    and the parameters of its terms; with respect to α forwards only.

    Args:
        t0, t1: where the motion begins and ends.
        alpha: in (0, 2], one number, which may be traced; a pytree like `shape` for several.
        key: a JAX random key; one key is one motion, whatever the steps.
        shape: of the motion: a tuple for an array, or a pytree of `jax.ShapeDtypeStruct`.
        num_steps: how many cells the grid has, at least 1.
        noise: `levymc.noises.independent()` if not given, a motion for each coordinate; or
            `isotropic()`, whose jumps have uniform directions.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        The stable Ornstein–Uhlenbeck process dX = -X dt + dL:

        >>> import diffrax, jax, jax.numpy as jnp, levymc
        >>> motion = levymc.interop.diffrax.LevyMotion(
        ...     0.0, 2.0, 1.5, jax.random.key(0), (3,), num_steps=200
        ... )
        >>> terms = diffrax.MultiTerm(
        ...     diffrax.ODETerm(lambda t, x, args: -x),
        ...     diffrax.ControlTerm(lambda t, x, args: jnp.eye(3), motion),
        ... )
        >>> solution = diffrax.diffeqsolve(
        ...     terms, diffrax.Euler(), 0.0, 2.0, dt0=0.01, y0=jnp.zeros(3)
        ... )
        >>> solution.ys.shape
        (1, 3)

    References: [simsekli2017], section 2.  Departures: the paper has the motion, and no solvers.
    """

    t0: Array  # type: ignore[misc]  # class variables to type checkers, fields to Equinox
    t1: Array  # type: ignore[misc]
    law: Any
    key: Array
    shape: Any = eqx.field(static=True)
    num_steps: int = eqx.field(static=True)

    def __init__(
        self,
        t0: ArrayLike,
        t1: ArrayLike,
        alpha: Any,
        key: Any,
        shape: Any = (),
        *,
        num_steps: int,
        noise: noises.Noise | None = None,
    ) -> None:
        _check_times(t0, t1)
        remedy = "It is the characteristic exponent; 2 is √2 times Brownian motion."
        check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy=remedy)
        if isinstance(noise, noises.Truncated):
            raise TypeError(
                f"`noise` must be stable, got {noise!r}. Truncated steps over two cells are not "
                "those over one of twice the length: give independent() or isotropic()."
            )
        remedy = "It is the number of cells in which the motion is drawn."
        self.num_steps = check_count("num_steps", num_steps, remedy)
        self.t0, self.t1 = (jnp.asarray(t, jnp.result_type(float, t)) for t in (t0, t1))
        self.law = noises.as_law(noise, alpha)
        self.key = check_key(key)
        self.shape = _as_shapes(shape)

    @property
    def times(self) -> Array:
        """The times of the grid, at which the motion is known; for `diffrax.StepTo`."""
        return self.t0 + (self.t1 - self.t0) * (jnp.arange(self.num_steps + 1) / self.num_steps)

    @eqx.filter_jit
    def evaluate(self, t0: Any, t1: Any = None, left: bool = True, use_levy: bool = False) -> Any:
        """The motion at `t0`; with `t1` its increment from `t0` to there.  Both on the grid."""
        del left
        if use_levy:
            raise TypeError(
                "`solver` must do without a Lévy area, which is known of Brownian motion alone. "
                "Give diffrax.Euler(), or diffrax.Heun() where the noise is additive."
            )
        begin, end = (self.t0, t0) if t1 is None else (t0, t1)
        first, last = self._cell(begin), self._cell(end)
        sign = jnp.where(first <= last, 1, -1)
        total = self._sum(jnp.minimum(first, last), jnp.maximum(first, last))
        return jax.tree.map(lambda x: sign.astype(x.dtype) * x, total)

    def derivative(self, t: Any, left: bool = True) -> Any:
        raise TypeError(
            "A Lévy motion must be used for its increments, and has no derivative. Give it to "
            "diffrax.ControlTerm, not to ControlTerm.to_ode."
        )

    def _cell(self, time: Any) -> Array:
        """The number of cells before a time, which has to be on the grid."""
        place = (jnp.asarray(time) - self.t0) / (self.t1 - self.t0) * self.num_steps
        place = jax.lax.stop_gradient(place)
        nearest = jnp.round(place)
        is_outside = (nearest < 0) | (nearest > self.num_steps)
        is_off = ~(jnp.abs(place - nearest) <= _OFF_GRID) | is_outside
        checked = eqx.error_if(
            nearest,
            is_off,
            "A Lévy motion must be asked at the times of its grid, and was asked at another: "
            "it cannot be refined. Let `dt0` be a whole number of its cells (t1 - t0) / num_steps, "
            "or step by diffrax.StepTo(motion.times); no adaptive controller will do.",
        )
        return checked.astype(jnp.int32)

    def _sum(self, first: Array, last: Array) -> Any:
        """The increments of the cells first, …, last - 1; not a difference of two values of the
        motion, from which one long jump would take the digits of all that follow."""
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.shape)
        duration = (self.t1 - self.t0) / self.num_steps

        def add_cell(number: Array, total: Any) -> Any:
            jump = self.law.draw(jax.random.fold_in(self.key, number), nothing, duration)
            return jax.tree.map(jnp.add, total, jump)

        return jax.lax.fori_loop(first, last, add_cell, nothing)


def _check_times(t0: Any, t1: Any) -> None:
    for name, value in {"t0": t0, "t1": t1}.items():
        check_one_number(name, value, _TIMES_REMEDY)
        check_real(name, value, _TIMES_REMEDY)
    if not is_traced((t0, t1)) and not np.asarray(t0) < np.asarray(t1):
        raise ValueError(f"`t1` must be later than `t0`, got {t0} and {t1}. {_TIMES_REMEDY}")


def _as_shapes(shape: Any) -> Any:
    """A pytree of shapes and dtypes; a tuple of sizes is an array of the default precision."""
    leaves = jax.tree.leaves(shape)
    if leaves and all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        zeros = jax.tree.map(lambda leaf: np.empty(0, leaf.dtype), shape)
        check_floating("shape", zeros)
        return shape
    return jax.ShapeDtypeStruct(check_shape("shape", shape), jnp.result_type(float))
