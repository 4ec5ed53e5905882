r"""Bayesian matrix factorisation by the kernel, with the users spread over devices."""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from levymc import _native, schedules
from levymc._checks import check_mesh
from levymc._trees import module
from levymc.algorithms import Info, SamplingAlgorithm

from ._data import Tables
from ._fast import SEGMENTS, FastAlgorithm, FastFactorization, Ratings, Setting

MOST_UNEVEN = 1.25  # the ratings of a device against the mean, from which on there is a warning


class SpreadRatings(NamedTuple):
    """What a step reads: of each device its part of the ratings, filled up to the largest.

    counts: the ratings of each device.
    """

    ratings: Ratings
    counts: Any


@module(static=("tables",))
class SpreadState:
    """Where the chain is, how many steps it has made, and a bound on the entries' size.

    users, items: with rows that stand for nobody, so that every device has as many.
    """

    users: Any
    items: Any
    step: Any
    largest: Any
    tables: Tables

    @property
    def position(self) -> dict[str, Array]:
        """Also of many chains, along a first axis."""
        users, items = self.tables.num_users, self.tables.num_items
        return {"users": self.users[..., :users, :], "items": self.items[..., :items, :]}


def spread_users(fast: FastFactorization, mesh: Mesh) -> FastFactorization:
    r"""The same algorithm with the users, and their ratings, spread over the devices of a mesh.

    Each device moves its users and adds up the gradients of the items over its ratings; a
    reduce-scatter adds these up, each device moves a part of the items, and an all-gather gives
    all of them to everyone.  The batch is drawn as from all ratings: the law is the same, with
    other random numbers.

    Several processes under `jax.distributed` all make the same calls with the same ratings.  Users
    are cut into parts of equal number: where those with many ratings come first, mix them.

    Args:
        fast: what `levymc.models.fast_factorization` returned, by the backend "native"; of its
            threads each device has as many.
        mesh: a `jax.sharding.Mesh` with one axis.

    Returns:
        As by `fast_factorization`, and to be used in the same way.  Positions have the shapes that
        they have there; to keep or observe them brings all users to every device.

    Raises:
        ValueError, TypeError: another backend, or no mesh of one axis.

    Examples:
        >>> import jax, jax.numpy as jnp, numpy as np, levymc
        >>> users, items = np.arange(100) % 20, np.arange(100) % 7
        >>> fast = levymc.models.fast_factorization(
        ...     users, items, (users + items) % 5, 20, 7, rank=3, batch_size=50, step_size=1e-3
        ... )
        >>> mesh = jax.make_mesh((jax.device_count(),), ("users",))
        >>> spread = levymc.models.spread_users(fast, mesh)
        >>> starts = {
        ...     "users": jnp.zeros((1, 20, 3), "float32"),
        ...     "items": jnp.ones((1, 7, 3), "float32"),
        ... }
        >>> run = levymc.sample(
        ...     spread.algorithm,
        ...     jax.random.key(0),
        ...     starts,
        ...     10,
        ...     minibatches=levymc.whole(spread.data),
        ...     progress=False,
        ... )
        >>> run.positions["users"].shape
        (1, 10, 20, 16)

    References: none.  Departures: not in the paper.
    """
    devices = check_mesh(mesh, "users")
    algorithm = fast.algorithm
    if fast.backend != "native" or not isinstance(algorithm, FastAlgorithm):
        raise ValueError(
            "`fast` must be what levymc.models.fast_factorization returned, of the backend "
            f"'native', got {algorithm.name} of {fast.backend!r}. With JAX alone, take "
            "levymc.models.matrix_factorization and levymc.batches(ratings, size, mesh=mesh)."
        )
    spread = SpreadAlgorithm(algorithm.schedule, algorithm.setting, algorithm.tables, devices)
    return FastFactorization(spread, _cut(fast.data, algorithm.tables, devices), fast.backend)


def _cut(data: Ratings, tables: Tables, mesh: Mesh) -> SpreadRatings:
    """The ratings on their devices."""
    count, axis = mesh.size, mesh.axis_names[0]
    rows = {"users": -(-tables.num_users // count), "items": -(-tables.num_items // count)}
    offsets = np.asarray(data.offsets)
    bounds = np.minimum(rows["users"] * np.arange(count + 1), tables.num_users)
    counts = np.diff(offsets[bounds])
    if counts.max() > MOST_UNEVEN * counts.mean():
        warnings.warn(
            f"One device has {counts.max() / counts.mean():.2g} times the ratings of the mean, and "
            "all wait for it: number the users in a random order.",
            stacklevel=3,
        )
    parts = list(pairwise(bounds))

    def of_ratings(values: Any) -> np.ndarray:
        own = [np.asarray(values)[offsets[a] : offsets[b]] for a, b in parts]
        return np.concatenate([np.pad(part, (0, counts.max() - len(part))) for part in own])

    def of_rows(name: str, values: Any) -> np.ndarray:
        missing = 0 if values.size == 0 else rows[name] * count - len(values)
        return np.pad(np.asarray(values), (0, missing), constant_values=1.0)

    own = [offsets[a : b + 1] - offsets[a] for a, b in parts]
    begins = [np.pad(part, (0, rows["users"] + 1 - len(part)), mode="edge") for part in own]
    arrays: dict[str, Any] = data._asdict() | {
        "rated": of_ratings(data.rated),
        "codes": of_ratings(data.codes),
        "offsets": np.concatenate(begins).astype(np.int32),
        "user_steps": of_rows("users", data.user_steps),
        "user_noises": of_rows("users", data.user_noises),
        "item_steps": of_rows("items", data.item_steps),
        "item_noises": of_rows("items", data.item_noises),
    }
    spread = SpreadRatings(Ratings(**arrays), counts.astype(np.int32))

    def put(leaf: Any, spec: PartitionSpec) -> Array:
        plain = np.asarray(leaf)
        sharding = NamedSharding(mesh, spec)
        return jax.make_array_from_callback(plain.shape, sharding, lambda index: plain[index])

    return jax.tree.map(put, spread, specs(spread, axis))


def specs(data: SpreadRatings, axis: str) -> SpreadRatings:
    """Which of the arrays are spread; those of no entries are the same everywhere."""
    common = {"levels", "raters", "quantiles"}
    of_ratings: dict[str, Any] = {
        name: PartitionSpec(*(() if name in common or leaf.size == 0 else (axis,)))
        for name, leaf in data.ratings._asdict().items()
    }
    return SpreadRatings(Ratings(**of_ratings), PartitionSpec())


@module(static=("setting", "tables", "mesh"))
class SpreadAlgorithm(SamplingAlgorithm[SpreadState]):
    """The algorithm of `spread_users`; its step takes the ratings: step(key, state, data)."""

    takes_minibatch = True

    schedule: schedules.Schedule
    setting: Setting
    tables: Tables
    mesh: Mesh

    @property
    def name(self) -> str:
        return "FastAlgorithm"

    @property
    def axis(self) -> str:
        return self.mesh.axis_names[0]

    def init(self, position: Any, rng_key: Any = None) -> SpreadState:
        padded = self.tables.start(position)
        sizes = [jnp.max(jnp.abs(table)) for table in padded.values()]
        users, items = (self._filled(padded[name]) for name in ("users", "items"))
        spread = NamedSharding(self.mesh, PartitionSpec(self.axis))
        users = jax.lax.with_sharding_constraint(users, spread)
        return SpreadState(users, items, jnp.int32(0), jnp.maximum(*sizes), self.tables)

    def _filled(self, table: Array) -> Array:
        """With rows for nobody, so that the devices have as many."""
        return jnp.pad(table, ((0, -len(table) % self.mesh.size), (0, 0)))

    def step(
        self, key: Array, state: SpreadState, *minibatch: SpreadRatings
    ) -> tuple[SpreadState, Info]:
        (data,) = minibatch
        number = schedules.following(state.step)
        step_size = schedules.at(self.schedule, number, jnp.float32)
        everywhere, spread = PartitionSpec(), PartitionSpec(self.axis)
        advance = jax.shard_map(
            self._advance,
            mesh=self.mesh,
            in_specs=(everywhere, spread, *[everywhere] * 3, specs(data, self.axis)),
            out_specs=(spread, everywhere, everywhere),
            check_vma=False,
        )
        users, items, report = advance(
            key, state.users, state.items, state.largest, step_size, data
        )
        jump, taming, is_divergent, largest = report
        info = Info(step_size, jnp.ones_like(step_size), is_divergent > 0, jump, taming)
        return SpreadState(users, items, number, largest, self.tables), info

    def _advance(
        self,
        key: Array,
        users: Array,
        items: Array,
        largest: Array,
        step_size: Array,
        data: SpreadRatings,
    ) -> tuple[Array, Array, Array]:
        """A step on one device: its users, all items, and the report of `step_by_kernel`."""
        device = jax.lax.axis_index(self.axis)
        own_key = jax.random.fold_in(key, device)
        words = [jax.random.bits(one, (2,), jnp.uint32) for one in (key, own_key)]
        keys = jnp.concatenate(words)
        moved, gradients, curvatures, told, backup = self._move_users(
            users, items, keys, device, largest, step_size, data
        )
        own = jax.tree.map(
            lambda leaf: jax.lax.psum_scatter(leaf, self.axis, tiled=True) if leaf.size else leaf,
            (gradients, curvatures),
        )
        count = len(items) // self.mesh.size
        old = jax.lax.dynamic_slice_in_dim(items, device * count, count)
        new, also_told = self._move_items(old, own[0], own[1], keys, step_size, data.ratings)
        report = jax.lax.pmax(jnp.maximum(told, also_told), self.axis)
        is_wrong = report[2] > 0
        (kept,) = _native.call(
            "levymc_factorization_restore",
            [jax.ShapeDtypeStruct(users.shape, users.dtype)],
            [moved, backup, report],
            {},
            vmap_method="sequential",
            input_output_aliases={0: 0},
        )
        all_items = jax.lax.all_gather(jnp.where(is_wrong, old, new), self.axis, tiled=True)
        return kept, all_items, report.at[3].set(jnp.where(is_wrong, largest, report[3]))

    def _attributes(self, *without: str) -> dict[str, Any]:
        both = {**self.setting._asdict(), **self.tables.attributes}
        return {name: value for name, value in both.items() if name not in without}

    def _move_users(
        self,
        users: Array,
        items: Array,
        keys: Array,
        device: Array,
        largest: Array,
        step_size: Array,
        data: SpreadRatings,
    ) -> Sequence[Array]:
        """New users, and of the items gradients and curvatures; a report; the old users."""
        num_items, row = items.shape
        shapes = (
            users.shape,
            items.shape,
            (num_items if self.setting.has_clip else 0,),
            (4,),
            users.shape,  # written only where the step may have to be undone
            (SEGMENTS, num_items, row),  # scratch: gradients of the items
            (SEGMENTS + 1, num_items),  # scratch: curvatures
        )
        ratings, counts = data
        given = [ratings.rated, ratings.codes, ratings.levels, ratings.offsets]
        given += [ratings.user_steps, ratings.user_noises, ratings.quantiles]
        found = _native.call(
            "levymc_factorization_users",
            [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
            [users, items, keys, device[None], counts, step_size, largest, *given],
            self._attributes("item_frozen"),
            vmap_method="sequential",
            input_output_aliases={0: 0},
        )
        return found[:5]

    def _move_items(
        self,
        items: Array,
        gradients: Array,
        curvatures: Array,
        keys: Array,
        step_size: Array,
        ratings: Ratings,
    ) -> Sequence[Array]:
        """New items, and a report."""
        given = [ratings.item_steps, ratings.item_noises, ratings.quantiles]
        return _native.call(
            "levymc_factorization_items",
            [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (items.shape, (4,))],
            [items, gradients, curvatures, keys, step_size, *given],
            self._attributes("user_frozen", "batch_size", "precision"),
            vmap_method="sequential",
        )
