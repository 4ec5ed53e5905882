"""One step of all chains, and what it leaves to keep."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array

from levymc.algorithms import Info

from ._batches import draw_batch
from ._hoist import hoist_bits
from .observe import Observer


class Draws(NamedTuple):
    """What is kept; the leading axes are (draw, chain)."""

    positions: Any
    info: Any


class Carry(NamedTuple):
    """What the next step needs, and the summaries so far."""

    state: Any
    observed: Any


@dataclass(frozen=True)
class Constant:
    """A leaf that is the same in every draw, as a step size may be: it is written once."""

    value: Any


class Seen(NamedTuple):
    """Which steps observers see: those whose number, from 0, leaves `remainder` by `every`."""

    every: int = 1
    remainder: int = 0

    def includes(self, number: Any) -> Any:
        return number % self.every == self.remainder


def seen_after(burn_in: int, every: int) -> Seen:
    """Every `every`-th step after the burn-in, counted in steps."""
    return Seen(every, (burn_in + every - 1) % every)


class Recipe(NamedTuple):
    """What makes a step: all that the compiled program depends on but shapes."""

    algorithm: Any
    observers: tuple[Observer, ...] = ()
    batch_size: int | None = None  # None: the step takes no minibatch, or is given one
    keeps_positions: bool = True
    seen: Seen = Seen()

    def init(self, positions: Any) -> Carry:
        """The start of one chain."""
        state = self.algorithm.init(positions)
        return Carry(state, tuple(o.init(position_of(state)) for o in self.observers))

    def step(self, key: Array, data: Any, is_counted: Any, carry: Carry) -> tuple[Carry, Draws]:
        """A step of one chain.

        `data` is a minibatch, what to draw one from, or None; `is_counted` is whether observers
        count the step: they may be shown every k-th only, and the last chunk of a run may make
        more steps than were asked for.
        """
        key_step = key
        if self.batch_size is not None:
            key_batch, key_step = jax.random.split(key)
            data = draw_batch(key_batch, data, self.batch_size)
        batch = () if data is None else (data,)
        state, info = self.algorithm.step(key_step, carry.state, *batch)
        position = position_of(state)
        observed = self.observe(is_counted, state, info, carry.observed)
        return Carry(state, observed), Draws(position if self.keeps_positions else None, info)

    def observe(self, is_counted: Any, state: Any, info: Any, observed: Any) -> tuple[Any, ...]:
        """The summaries of one chain after a step."""
        weight = jnp.where(is_counted, info.step_size if isinstance(info, Info) else 1.0, 0.0)
        return tuple(
            observer.update(summary, position_of(state), weight)
            for observer, summary in zip(self.observers, observed, strict=True)
        )

    def blind(self) -> "Recipe":
        """The same without observers."""
        return self._replace(observers=())

    def step_all(self, keys: Array, data: Any, is_counted: Any, carries: Carry) -> Any:
        """A step of all chains; what observers do not see, they do not compute."""
        if self.seen.every == 1 or not self.observers:
            return jax.vmap(self.step, in_axes=(0, None, None, 0))(keys, data, is_counted, carries)
        unseen = carries._replace(observed=())
        moved, draws = self.blind().step_all(keys, data, is_counted, unseen)
        # Outside the map over chains, within which both branches would be computed.
        observed = jax.lax.cond(
            is_counted,
            jax.vmap(partial(self.observe, True)),
            lambda _state, _info, earlier: earlier,
            moved.state,
            draws.info,
            carries.observed,
        )
        return Carry(moved.state, observed), draws

    def finish(self, carry: Carry) -> tuple[Any, ...]:
        """What the observers of one chain say."""
        pairs = zip(self.observers, carry.observed, strict=True)
        return tuple(observer.finish(summary) for observer, summary in pairs)


def position_of(state: Any) -> Any:
    """A state's position; a state without one, such as that of BlackJAX's sgld, is a position."""
    return getattr(state, "position", state)


class Anatomy(NamedTuple):
    """What one step of all chains leaves and takes.

    draws: shapes, without the axes (draw, chain), or a `Constant` where a leaf is one.
    observed: shapes of what each observer gives in the end, for one chain.
    bits: bytes of random bits.
    """

    draws: Draws
    observed: tuple[Any, ...]
    bits: int


def anatomy(recipe: Recipe, carries: Any, data: Any) -> Anatomy:
    leaves, structure = jax.tree.flatten((carries, data))
    shapes = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)
    return _anatomy(recipe, structure, shapes, jnp.result_type(float))


@lru_cache(maxsize=32)  # so that a second run of the same algorithm traces nothing
def _anatomy(recipe: Recipe, structure: Any, shapes: tuple[Any, ...], _widest: Any) -> Anatomy:
    carries, data = jax.tree.unflatten(structure, shapes)
    carry = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), carries)
    key = jax.eval_shape(lambda: jax.random.key(0))

    def step(key: Array, carry: Carry) -> Draws:
        return recipe.step(key, _zeros(data), True, carry)[1]

    traced, draws = jax.make_jaxpr(step, return_shape=True)(key, carry)
    known = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
    kept = [
        _constant(atom, leaf.dtype, known) or leaf
        for atom, leaf in zip(traced.jaxpr.outvars, jax.tree.leaves(draws), strict=True)
    ]
    collect, _ = hoist_bits(step, key, carry)
    num_chains = jax.tree.leaves(carries)[0].shape[0]
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.eval_shape(collect, key))
    left = jax.tree.unflatten(jax.tree.structure(draws), kept)
    return Anatomy(left, jax.eval_shape(recipe.finish, carry), num_chains * size)


def _constant(atom: Any, dtype: Any, known: dict[Any, Any]) -> Constant | None:
    """What a traced program returns whatever it is given, if it does."""
    if isinstance(atom, Literal):
        return Constant(np.asarray(atom.val, dtype))
    if atom in known and not isinstance(known[atom], jax.core.Tracer):
        return Constant(np.asarray(known[atom]))
    return None


def _zeros(shapes: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def variable_leaves(draws: Any, constants: tuple[bool, ...]) -> list[Array]:
    """The leaves that are no constants."""
    leaves = jax.tree.leaves(draws)
    return [leaf for leaf, same in zip(leaves, constants, strict=True) if not same]


def merge_info(earlier: Any, later: Any) -> Any:
    """The info of thinned steps: of ours the extremes, of other algorithms the last."""
    if not isinstance(later, Info):
        return later
    return later._replace(
        is_divergent=earlier.is_divergent | later.is_divergent,
        largest_jump=jnp.maximum(earlier.largest_jump, later.largest_jump),
        taming=jnp.maximum(earlier.taming, later.taming),
    )
