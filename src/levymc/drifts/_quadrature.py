r"""The exact drift b, by quadrature of the density."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from levymc._checks import (
    as_parameter,
    check_alpha,
    check_count,
    check_floating,
    check_positive,
    check_real,
    is_traced,
    like,
)
from levymc._settled import as_now
from levymc._trees import as_partial, module

from . import _panels
from ._coordinates import Coordinates, coordinates
from ._drift import (
    Drift,
    Estimated,
    Evaluations,
    LogDensity,
    Position,
    check_position,
    gradient,
    is_gaussian,
    widened,
)
from ._exploration import MOST_CENTERS, explored, explored_number
from ._fixed_reach import fixed_reach
from ._landscape import given

_PROBES = 10  # in a ratio of 3, from half a panel on, where the landscape is known
_OPEN_PROBES = 33  # from 3^-16 to 3^16 times `scale`, where it is not
_OPEN_RUNGS = 12


def quadrature(
    logdensity_fn: LogDensity,
    alpha: Any,
    *,
    modes: Any = None,
    breaks: Any = None,
    center: Any = 0.0,
    scale: Any = 1.0,
    radius: Any = None,
    num_nodes: Any = 96,
    anchored: bool | None = None,
) -> Drift:
    r"""The exact drift, from the density alone:

    .. math::
       b(x) = C_α \int_0^∞ \frac{φ(x+u) - φ(x-u)}{u\,φ(x)}\, u^{1-α}\, du, \qquad
       C_α = \frac{α-1}{2\,Γ(2-α)\cos(π(2-α)/2)},

    along each coordinate, by Gauss rules on panels between breaks where the density changes its
    behaviour and around x itself, to infinity on both sides.  No gradient is taken.

    The breaks are found by exploring the log density: when the drift is built, if it is a function
    of one number; and by `levymc.sample` and `levymc.iterate` (by `prepared(positions)`) before a
    run, along each coordinate through the initial positions of the chains.  A run explores once:
    what it finds later is not looked for again, but seen in the estimate.

    Every value has an estimate of its error, relative to |b| + (∫φ/φ(x))^{1-α}: that is
    `evaluate(x).error`, and `info.drift_error` in a run.  Above 1e-3 count a value as wrong.  It is
    the larger of what the panels' coefficients show and, for a target of one number, of how far the
    mass that is seen from x is from the one that exploration found: it is large in a mode that
    exploration missed.  It is infinite where nothing was explored, nor breaks given.

    Targets: φ exactly, up to the quadrature's error: 1e-8 and less on smooth densities, at kinks
    (Laplace), on half-lines and bounded supports, where log φ is -inf or NaN.

    Not valid when: exploration misses a mode.  Of a black box nothing more can be known than its
    values at finitely many points; those are, along each line, in a ratio of 1.02 at distances of
    1e-8 to 1e9 `scale` from `center`, from each of the `modes` and from up to 16 chains; 196 608
    evenly spaced ones within 1100 `scale` of `center`, 0.011 `scale` apart; and 65 536 over the
    bulk that these show.  A mode is missed where log φ has a local maximum at none of them: one
    that is narrower, where it stands out, than about 0.01 `scale`, than 2 % of its distance from
    each of those places, and than 1/60 000 of the bulk.  Of more than 64 modes on a line the
    heaviest are kept.  In D > 1 dimensions 2^21 points go to all of the lines along D coordinates
    through up to 8 positions; with more than 512 lines nothing is explored.  The density along the
    line through a later position may differ from those: a mode that is on none of them, and that no
    node meets, is missed and not flagged.  Where the log density is traced nothing is explored.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.  A `jax.tree_util.Partial` of a
            function and numbers: other numbers then compile nothing anew.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        modes: positions to explore from, too, along the first axis of a pytree like the position.
        breaks: numbers, the ends of panels in which φ is smooth, for all coordinates; nothing is
            explored then.
        center, scale: roughly where the bulk of the target lies and how wide its narrowest mode
            times a hundred is, a number or a pytree like the position: the units of exploration.
        radius: one rule of fixed reach instead, without panels, exploration or estimate: how far
            from x to look, a number or a pytree like the position, or a function that gives one
            for a position, such as `lambda x: 6 + abs(x)` for a target that lives on [-6, 6].
            `inf` places the nodes around `center`, and reaches to infinity.  For a target that is
            known it is faster.
        num_nodes: with a radius, the density is evaluated twice for each; they are R/60 apart in
            the middle of a radius R if there are 96.
        anchored: with a radius, take the value at u = 0 from the gradient, which keeps all digits
            as α → 2.  None: only within 1e-3 of α = 2 (0.15 in float32), or where α is traced.

    Raises:
        ValueError, TypeError: an argument outside its range; when called, `logdensity_fn` not
            scalar.

    Examples:
        >>> import levymc
        >>> drift = levymc.drifts.quadrature(lambda x: -x * x / 2, 1.5)
        >>> round(float(drift(1.0)), 4)
        -0.9417
        >>> bool(drift.evaluate(1.0).error < 1e-3)
        True

    References: [simsekli2017], eqs. (5) and (13).  Departures: the paper differentiates φ and then
    integrates; here the kernel is differentiated instead, so that no gradient is needed.
    """
    check_alpha(alpha)
    count = check_count("num_nodes", num_nodes, "96 give eight digits on a double well.")
    if radius is not None and not callable(radius):
        check_positive(
            "radius", radius, "Or None, for panels; or inf, for heavy tails.", infinity=True
        )
    check_real("center", center, "Give roughly where the bulk of the target lies.")
    check_positive("scale", scale, "Give roughly how wide the bulk of the target is.")
    if is_gaussian(alpha):
        return gradient(logdensity_fn)
    if radius is not None:
        return fixed_reach(logdensity_fn, alpha, radius, count, center, scale, anchored)
    rules = jax.tree.map(_panels.kernel, as_parameter(alpha))
    bare = Quadrature(
        as_partial(logdensity_fn),
        "open",
        _OPEN_RUNGS,
        rules,
        as_parameter(center),
        as_parameter(scale),
        modes,
        np.zeros(0),
        np.zeros(0, bool),
        np.asarray(np.nan),
    )
    if breaks is not None:
        check_real("breaks", breaks, "Give the ends of panels in which φ is smooth.")
        return bare._with(given(np.ravel(np.asarray(breaks))), "given")
    return bare._of_a_number()


@module(static=("kind", "num_rungs"))
class Quadrature(Drift):
    """The drift by panels; see `_panels`.

    kind: what the landscape is of: "number", if the target is of one; "lines", a row for each
        coordinate; "given", by a user; "open", of nothing, and there are no breaks.
    rules: a `Kernel` for each α.
    breaks, is_singular, log_mass: those of a `Landscape`.
    """

    logdensity_fn: Any
    kind: str
    num_rungs: int
    rules: Any
    center: Any
    scale: Any
    modes: Any
    breaks: Any
    is_singular: Any
    log_mass: Any

    @property
    def evaluations(self) -> Evaluations:  # type: ignore[override]
        num_probes = _PROBES if self.kind == "number" else _OPEN_PROBES
        num_panels = self.breaks.shape[-1] + 2 * (self.num_rungs + 1)
        nodes = _panels.NUM_GAUSS * num_panels + 2 * (_panels.NUM_LOCAL + num_probes)
        return Evaluations(density=nodes + 1, gradient=0)

    def evaluate(self, position: Position) -> Estimated:
        check_floating("position", position)
        whole = dataclasses.replace(self, logdensity_fn=as_partial(self.logdensity_fn))
        return widened(partial(_evaluate, as_now(whole, position)), position)

    def prepared(self, positions: Any) -> "Quadrature":
        if self.kind == "given" or is_traced((self, positions)):
            return self
        arrays = jax.tree.map(np.asarray, positions)
        if self.modes is not None:
            arrays = jax.tree.map(
                lambda leaf, more: np.concatenate([np.asarray(more, leaf.dtype), leaf]),
                arrays,
                self.modes,
            )
        columns = _columns(arrays)
        example = jax.tree.map(lambda leaf: leaf[0], arrays)
        check_position(self.logdensity_fn, example)
        center, scale = (
            _columns(jax.tree.map(lambda leaf: leaf[None], like(name, part, example)))
            for name, part in (("center", self.center), ("scale", self.scale))
        )
        centers = np.concatenate([center, _spread_out(columns)], axis=1)
        found = explored(self.logdensity_fn, arrays, centers, scale[:, 0])
        if found is None:
            return self
        return self._with(found, "number" if len(columns) == 1 else "lines")

    def _of_a_number(self) -> "Quadrature":
        """With the landscape, if the target is of a number and can be looked at."""
        if is_traced((self.center, self.scale, self.modes)) or jnp.ndim(self.scale):
            return self
        more = np.ravel(np.asarray([] if self.modes is None else self.modes, float))
        found = explored_number(self.logdensity_fn, np.append(self.center, more), float(self.scale))
        return self if found is None else self._with(found, "number")

    def _with(self, landscape: Any, kind: str) -> "Quadrature":
        return dataclasses.replace(
            self,
            kind=kind,
            num_rungs=landscape.num_rungs if kind == "number" else _OPEN_RUNGS,
            breaks=landscape.breaks,
            is_singular=landscape.is_singular,
            log_mass=landscape.log_mass,
        )


def _columns(positions: Any) -> np.ndarray:
    """A row for each coordinate, with all positions in it."""
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(positions)]
    return np.concatenate([leaf.reshape(len(leaf), -1).T for leaf in leaves])


def _spread_out(columns: np.ndarray) -> np.ndarray:
    """At most so many of each row as exploration begins from."""
    if columns.shape[1] <= MOST_CENTERS:
        return columns
    places = np.linspace(0, columns.shape[1] - 1, MOST_CENTERS).round().astype(int)
    return np.sort(columns, axis=1)[:, places]


@jax.jit  # step by step it would be slow
def _evaluate(drift: Quadrature, position: Position) -> Estimated:
    place = coordinates(drift.logdensity_fn, position)
    rule = place.by_coordinate(_panels.Kernel, drift.rules, position)
    here = place.logdensity(place.flat)
    cut = _panels_at(place, here, drift, position)
    found = _panels.integrate(place, here, cut, rule)
    error, is_number = found.error, place.flat.size == 1
    if drift.kind == "open" or (drift.kind == "number" and not is_number):
        error = jnp.full_like(error, jnp.inf)
    elif drift.kind == "number":
        error = jnp.maximum(error, _unknown_mass(found.log_mass, jnp.asarray(drift.log_mass)))
    return Estimated(place.signed_log(found.sign, found.log_size), place.unflatten(error))


def _panels_at(
    place: Coordinates, here: Array, drift: Quadrature, position: Position
) -> _panels.Panels:
    """The panels that the landscape and the density around x ask for."""
    x, dtype = place.flat, place.flat.dtype
    if drift.kind == "number" and x.size == 1:
        breaks = jnp.asarray(drift.breaks, dtype)[None]
        room = _room(breaks, jnp.asarray(drift.is_singular)[None], x)
        inner, _, is_smooth = _panels.probe(place, here, room, _PROBES)
        reach = jnp.maximum(x - breaks[:, 0], breaks[:, -1] - x)
        return _panels.panels(breaks - x[:, None], inner, is_smooth, reach, drift.num_rungs)
    scale = jnp.asarray(place.spread("scale", drift.scale, position), dtype)
    largest = scale * 3.0 ** (_OPEN_PROBES // 2)
    inner, reach, is_smooth = _panels.probe(place, here, largest, _OPEN_PROBES)
    breaks, rungs = _breaks_of(drift, x), drift.num_rungs
    if drift.kind == "number":
        # Along an axis of a vector it is another density: as many panels, all by rungs.
        rungs = (len(drift.breaks) + 2 * drift.num_rungs) // 2 - 2
    offsets = breaks - x[:, None]
    if breaks.shape[-1]:
        is_singular = jnp.broadcast_to(jnp.asarray(drift.is_singular), breaks.shape)
        inner = jnp.minimum(inner, _room(breaks, is_singular, x))
        reach = jnp.maximum(reach, jnp.max(jnp.abs(offsets), axis=-1))
    return _panels.panels(offsets, inner, is_smooth, reach, rungs)


def _breaks_of(drift: Quadrature, x: Array) -> Float[Array, "d n"]:
    """A row for each coordinate of a vector."""
    if drift.kind == "number":
        return jnp.zeros((x.size, 0), x.dtype)
    rows = jnp.asarray(drift.breaks, x.dtype)
    if drift.kind == "lines" and rows.shape[0] != x.size:
        raise ValueError(
            f"`position` must have the {rows.shape[0]} coordinates that the drift was prepared "
            f"for, got {x.size}. Prepare it for these."
        )
    return jnp.broadcast_to(rows, (x.size, rows.shape[-1]))


def _room(breaks: Float[Array, "d n"], is_singular: Bool[Array, "d n"], x: Array) -> Array:
    """How far log φ may be smooth around x.

    Half way into any panel, the one around x among them, as panels are as long as φ lets them be;
    and no farther than a kink or an edge.
    """
    length, low, high = jnp.diff(breaks), breaks[:, :-1], breaks[:, 1:]
    gap = jnp.maximum(jnp.maximum(low - x[:, None], x[:, None] - high), 0.0)
    into = jnp.min(jnp.where(length > 0, gap + length / 2, jnp.inf), axis=-1)
    to_kink = jnp.min(jnp.where(is_singular, jnp.abs(breaks - x[:, None]), jnp.inf), axis=-1)
    smallest = 1e-9 * (breaks[:, -1] - breaks[:, 0])
    return jnp.maximum(jnp.minimum(into, to_kink), smallest)


def _unknown_mass(log_mass: Array, known: Array) -> Array:
    """How far the mass that is seen is from the one known, beyond the rounding of log φ."""
    expected = jnp.asarray(known, log_mass.dtype)
    rounding = 16 * jnp.finfo(log_mass.dtype).eps * (1 + jnp.abs(expected))
    beyond = jnp.maximum(jnp.abs(log_mass - expected) - rounding, 0.0)
    return jnp.where(jnp.isnan(beyond), 0.0, -jnp.expm1(-beyond))
