r"""Non-reversible parallel tempering from a normalised reference to the target."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike

from levymc._checks import check_interval, check_positive
from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm, as_algorithm
from levymc.drifts import LogDensity

from ._local import TO_ACCEPT, Maker, advanced, check_exact, local_move, rate_of
from ._moves import Axes, Kernel, Noise, Point, draw_noise, move
from ._reference import Reference


@runtime_checkable
class Normalised(Protocol):
    """A law whose density integrates to one: of a flat vector, and how to draw one."""

    def logdensity(self, x: Array) -> Array: ...

    def sample(self, key: Array) -> Array: ...


@module(static=("law",))
class Fixed:
    """A law that is no pytree, part of the compiled program."""

    law: Normalised

    def logdensity(self, x: Array) -> Array:
        return self.law.logdensity(x)

    def sample(self, key: Array) -> Array:
        return self.law.sample(key)


class TemperedState(NamedTuple):
    """The rungs of a ladder, the target last; `position` is where that is.

    points: of all rungs, with log φ and q there.
    log_steps: of local moves, one per rung; they change only while the algorithm adapts.
    is_fresh: whether the point came from the reference and has not been at the target yet.
    """

    position: Any
    points: Point
    log_steps: Array
    is_fresh: Array
    step: Array


class TemperedInfo(NamedTuple):
    """What a person may ask of a step.

    acceptance_rate: of local moves at the target, the last in the step; what another kernel says of
        its own, NaN if it says nothing.
    local_rates: of local moves for each rung, NaN where none was made.
    swap_rates: with the next rung below, for each rung; the lowest has the reference below it.
    jump_rates: of jumps between components, and of far ones along axes, at the target; NaN where
        none was made.
    ratios: log φ − log q for a draw of the reference, NaN where none was made, and for each rung.
    step_sizes: of local moves, for each rung.
    is_tour: a point that came from the reference arrived at the target.
    logdensity: log φ at the target's point.
    is_divergent: a proposal could not be judged.
    is_rough: the gradient of log φ is not finite at the target's point.
    num_evaluations: of log φ in the step, as far as they can be known; see `levymc.auto`.
    """

    acceptance_rate: Array
    local_rates: Array
    swap_rates: Array
    jump_rates: Array
    ratios: Array
    step_sizes: Array
    is_tour: Array
    logdensity: Array
    is_divergent: Array
    is_rough: Array
    num_evaluations: Array


def tempered(
    logdensity_fn: LogDensity,
    reference: Normalised,
    betas: ArrayLike | Sequence[float] = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0),
    *,
    kernel: Callable[[LogDensity], Any] | None = None,
    step_size: ArrayLike = 0.5,
) -> SamplingAlgorithm[TemperedState]:
    r"""Parallel tempering along q^{1−β} φ^β, from a normalised q, with non-reversible swaps.

    A step moves every rung twice, by a local kernel; the lowest rung is offered a draw of q in the
    second.  After the first the rungs (1, 2), (3, 4), … are offered to swap, after the second
    (2, 3), (4, 5), …, with probability

    .. math:: \min\bigl(1, e^{(β' - β)(ℓ(x) - ℓ(x'))}\bigr), \qquad ℓ = \log φ - \log q .

    With one rung a step is one move: a draw of q or a local one, with probability ½ each.

    Targets: φ exactly.  Not valid when: q has lighter tails than φ, where it is exact but slow.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        reference: q: `levymc.adapt.reference(modes)`, or anything with a normalised
            `logdensity(x)` and `sample(key)` of flat vectors.
        betas: of the rungs, increasing to 1.
        kernel: of a log density, gives the algorithm that makes the local moves, such as
            `lambda f: levymc.mafla(f, 0.1)` or one of BlackJAX's; if not given, MALA in the metric
            of a component of q, for which q has to be such a mixture.
        step_size: of that, in units of the component's scale; tune to accept 0.57.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> f, start = levymc.targets.four_modes, jnp.full((8, 2), 4.0)
        >>> q = levymc.adapt.reference(levymc.adapt.explore(f, jax.random.key(0), start))
        >>> result = levymc.sample(
        ...     levymc.adapt.tempered(f, q), jax.random.key(1), start, 500, progress=False
        ... )
        >>> bool(abs((result.positions[..., 0] < 0).mean() - 0.6) < 0.1)
        True

    References: non-reversible swaps as in [syed2022].  Departures: not in the paper.
    """
    check_interval("betas", betas, 0.0, 1.0, includes_low=False, remedy="They end with 1.")
    ladder = np.atleast_1d(np.asarray(betas, float))
    if ladder.ndim != 1 or np.any(np.diff(ladder) <= 0) or not ladder.size or ladder[-1] != 1:
        raise ValueError(
            f"`betas` must increase to 1, got {ladder.tolist()}. Sort them, end with 1."
        )
    check_positive("step_size", step_size, "0.5 is of the right order.")
    if not isinstance(reference, Normalised):
        raise TypeError(
            f"`reference` must have `logdensity` and `sample`, got {reference!r}. "
            "Make one by levymc.adapt.reference(modes)."
        )
    if kernel is None and not isinstance(reference, Reference):
        raise TypeError(
            f"`kernel` must be given for a reference that is no mixture, got {reference!r}. "
            "Such as kernel=lambda f: levymc.mafla(f, 0.1)."
        )
    if kernel is not None:
        check_exact("kernel", as_algorithm(kernel(logdensity_fn)))
    is_pytree = not jax.tree_util.all_leaves([reference])
    used = reference if is_pytree else Fixed(reference)
    return build(logdensity_fn, used, ladder, step_size, kernel=kernel)


def build(
    logdensity_fn: LogDensity,
    reference: Any,
    betas: np.ndarray,
    step_sizes: ArrayLike,
    *,
    chances: np.ndarray | None = None,
    axes: Axes | None = None,
    gain: float = 0.0,
    has_gradient: bool = True,
    kernel: Any = None,
    local: Maker | None = None,
) -> "Tempered":
    """What `tempered` makes, with all of its numbers.

    chances: of the kinds of moves, with axes (half of a step, rung, kind).
    local: a step of it follows every move; see `levymc.adapt._local`.
    """
    log_steps = np.log(np.broadcast_to(np.asarray(step_sizes, float), np.shape(betas)))
    chances = usual_chances(len(betas)) if chances is None else chances
    with np.errstate(divide="ignore"):
        log_chances = np.log(chances)
    dtype = jnp.result_type(float)
    return Tempered(
        logdensity_fn,
        kernel,
        local,
        has_gradient,
        reference,
        jnp.asarray(betas, dtype),
        jnp.asarray(log_steps, dtype),
        jnp.asarray(log_chances, dtype),
        jnp.asarray(gain, dtype),
        axes,
    )


def usual_chances(num_rungs: int) -> np.ndarray:
    """Local moves; the lowest rung is offered the reference every other time."""
    num_halves = 1 if num_rungs == 1 else 2
    chances = np.zeros((num_halves, num_rungs, len(Kernel)))
    chances[..., Kernel.LOCAL] = 1.0
    chances[-1, 0] = np.eye(len(Kernel))[Kernel.INDEPENDENT]
    if num_rungs == 1:
        chances[0, 0, Kernel.LOCAL] = chances[0, 0, Kernel.INDEPENDENT] = 0.5
    return chances


@module(static=("logdensity_fn", "kernel", "local", "has_gradient"))
class Tempered(SamplingAlgorithm[TemperedState]):
    """See `tempered`.  `gain` is positive while local steps are adapted, and 0 in an exact run."""

    takes_minibatch = False
    is_exact = True
    logdensity_fn: LogDensity
    kernel: Any
    local: Maker | None
    has_gradient: bool
    reference: Any
    betas: Any
    log_steps: Any
    log_chances: Any
    gain: Any
    axes: Any

    @property
    def name(self) -> str:
        return "tempered"

    def init(self, position: Any, rng_key: Any = None) -> TemperedState:
        flat, unflatten = ravel_pytree(position)
        point = self._point_at(flat, unflatten)
        num_rungs = self.betas.shape[0]
        points = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], num_rungs, axis=0), point)
        return TemperedState(
            jax.tree.map(jnp.asarray, position),
            points,
            self.log_steps.astype(flat.dtype),
            jnp.zeros(num_rungs, bool),
            jnp.int32(0),
        )

    def step(
        self, key: Array, state: TemperedState, *minibatch: Any
    ) -> tuple[TemperedState, TemperedInfo]:
        flat, unflatten = ravel_pytree(state.position)
        num_halves, num_rungs = self.log_chances.shape[:2]
        noise = draw_noise(key, (num_halves, num_rungs), flat.size, flat.dtype)
        to_swap = jax.random.uniform(
            jax.random.fold_in(key, 1), (num_halves, num_rungs - 1), flat.dtype
        )
        halves = (noise, to_swap, self.log_chances.astype(flat.dtype), _offers(num_rungs))

        def half_step(state: TemperedState, half: Any) -> tuple[TemperedState, TemperedInfo]:
            noise, to_swap, log_chances, is_offered = half
            return self._half_step(state, noise, to_swap, log_chances, is_offered, unflatten)

        state, infos = _scanned(half_step, state, halves)
        known = {
            name: _last_known(getattr(infos, name))
            for name in ("acceptance_rate", "local_rates", "swap_rates", "jump_rates")
        }
        joined = jax.tree.map(lambda leaf: leaf[-1], infos)._replace(
            **known,
            is_tour=jnp.any(infos.is_tour),
            is_divergent=jnp.any(infos.is_divergent),
            num_evaluations=jnp.sum(infos.num_evaluations),
        )
        position = unflatten(state.points.x[-1])
        return state._replace(position=position, step=state.step + 1), joined

    def _flat_fn(self, unflatten: Any) -> Callable[[Array], Array]:
        return lambda x: jnp.asarray(self.logdensity_fn(unflatten(x))).astype(x.dtype)

    def _point_at(self, x: Array, unflatten: Any) -> Point:
        flat_fn = self._flat_fn(unflatten)
        if self.has_gradient and self.kernel is None:
            value, gradient = jax.value_and_grad(flat_fn)(x)
        else:
            value, gradient = flat_fn(x), jnp.zeros_like(x)
        return Point.at(x, value, gradient, self.reference, self.kernel is None)

    def _half_step(
        self,
        state: TemperedState,
        noise: Noise,
        to_swap: Array,
        log_chances: Array,
        is_offered: Array,
        unflatten: Any,
    ) -> tuple[TemperedState, TemperedInfo]:
        betas = self.betas.astype(state.points.x.dtype)

        def one(noise: Noise, point: Point, beta: Array, log_step: Array, chances: Array) -> Any:
            return move(
                noise,
                point,
                beta,
                jnp.exp(log_step),
                chances,
                reference=self.reference,
                axes=self.axes,
                evaluate=lambda x: self._point_at(x, unflatten),
                foreign=None if self.kernel is None else self._foreign(beta, unflatten),
                has_gradient=self.has_gradient,
            )

        moved, made = jax.vmap(one)(noise, state.points, betas, state.log_steps, log_chances)
        local_rates = jnp.where(made.kernel == Kernel.LOCAL, made.rate, jnp.nan)
        rate, aim, spent = made.rate[-1], jnp.asarray(TO_ACCEPT, betas.dtype), jnp.int32(betas.size)
        if self.local is not None:
            how = partial(self._locally, self.local, unflatten)
            moved, local_rates, aim, more = how(noise.key, moved, betas, state.log_steps)
            rate, spent = local_rates[-1], spent + more
        is_independent = made.kernel == Kernel.INDEPENDENT
        pace = self.gain.astype(betas.dtype) / jnp.sqrt(state.step + 1.0).astype(betas.dtype)
        is_known = ~jnp.isnan(local_rates)
        log_steps = state.log_steps + jnp.where(is_known, pace * (local_rates - aim), 0.0)
        is_fresh = state.is_fresh | (is_independent & made.is_accepted)
        points, is_fresh, rates = _swapped(to_swap, betas, moved, is_fresh, is_offered)
        lowest = jnp.where(is_independent[0], made.rate[0], jnp.nan)
        changed = state._replace(
            points=points,
            log_steps=log_steps,
            is_fresh=is_fresh.at[-1].set(False),
        )
        of_reference = jnp.where(is_independent[0], made.ratio[0], jnp.nan)
        jump_rates = [made.kernel[-1] == Kernel.DETERMINISTIC, made.is_far[-1]]
        info = TemperedInfo(
            acceptance_rate=rate,
            local_rates=local_rates,
            swap_rates=jnp.concatenate([lowest[None], rates]),
            jump_rates=jnp.where(jnp.stack(jump_rates), made.rate[-1], jnp.nan),
            ratios=jnp.append(of_reference, points.value - points.log_reference),
            step_sizes=jnp.exp(log_steps),
            is_tour=is_fresh[-1],
            logdensity=points.value[-1],
            is_divergent=jnp.any(made.is_divergent),
            is_rough=points.is_rough[-1],
            num_evaluations=spent,
        )
        return changed, info

    def _locally(
        self,
        local: Maker,
        unflatten: Any,
        keys: Array,
        points: Point,
        betas: Array,
        log_steps: Array,
    ) -> tuple[Point, Array, Array, Array]:
        """A step of `local` in every rung: points, rates, what they should be, evaluations."""
        flat_fn = self._flat_fn(unflatten)
        step = partial(local_move, local, reference=self.reference, flat_fn=flat_fn)
        made = jax.vmap(step)(keys, points.x, betas, jnp.exp(log_steps))
        there = jax.vmap(lambda x: self._point_at(x, unflatten))(made.x)
        is_finite = jnp.isfinite(there.value) & jnp.all(jnp.isfinite(there.x), axis=-1)
        chosen = jax.vmap(
            lambda is_new, new, old: jax.tree.map(partial(jnp.where, is_new), new, old)
        )
        moved = chosen(is_finite, there, points)
        return moved, made.rate, made.aim, jnp.sum(made.num_evaluations) + betas.size

    def _foreign(self, beta: Array, unflatten: Any) -> Any:
        """A step of another kernel on the law of a rung: the next flat vector, and its rate."""

        def logdensity(position: Any) -> Array:
            x, _ = ravel_pytree(position)
            value = jnp.asarray(self.logdensity_fn(position)).astype(x.dtype)
            return beta * value + (1 - beta) * self.reference.logdensity(x)

        algorithm = as_algorithm(self.kernel(logdensity))

        def step(key: Array, x: Array) -> tuple[Array, Array]:
            position, info = advanced(algorithm, key, unflatten(x))
            return ravel_pytree(position)[0], rate_of(info, x.dtype)

        return step


def _scanned(half_step: Callable[[Any, Any], Any], state: Any, halves: Any) -> tuple[Any, Any]:
    """`jax.lax.scan`, but one half by itself: what depends on parameters alone is then seen to."""
    if len(halves[-1]) > 1:
        return jax.lax.scan(half_step, state, halves)
    state, info = half_step(state, jax.tree.map(lambda leaf: leaf[0], halves))
    return state, jax.tree.map(lambda leaf: leaf[None], info)


def _last_known(values: Array) -> Array:
    """The last along the first axis that is a number, entry by entry."""
    known = values[0]
    for value in values[1:]:
        known = jnp.where(jnp.isnan(value), known, value)
    return known


def _offers(num_rungs: int) -> Array:
    """Which neighbours are offered to swap: (0, 1), (2, 3), … first, then (1, 2), (3, 4), …"""
    num_halves = 1 if num_rungs == 1 else 2
    return jnp.asarray(np.arange(num_rungs - 1) % 2 == np.arange(num_halves)[:, None])


def _swapped(
    uniforms: Array, betas: Array, points: Point, is_fresh: Array, is_offered: Array
) -> tuple[Point, Array, Array]:
    """Swap neighbours that are offered to, and accept."""
    ratios = points.value - points.log_reference
    log_rates = (betas[1:] - betas[:-1]) * (ratios[:-1] - ratios[1:])
    rates = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_rates), -jnp.inf, log_rates), 0.0))
    is_swapped = is_offered & (uniforms < rates)
    nothing = jnp.zeros(1, bool)
    up, down = jnp.append(is_swapped, nothing), jnp.append(nothing, is_swapped)
    rungs = jnp.arange(betas.shape[0])
    order = jnp.where(up, rungs + 1, jnp.where(down, rungs - 1, rungs))
    exchanged = jax.tree.map(lambda leaf: leaf[order], points)
    return exchanged, is_fresh[order], jnp.where(is_offered, rates, jnp.nan)
