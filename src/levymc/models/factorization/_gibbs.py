r"""The Gibbs sampler of Bayesian matrix factorisation: the truth that others are compared with."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, UInt32

from levymc import _native, schedules
from levymc._checks import check_count, check_interval, check_positive
from levymc._trees import module
from levymc.algorithms import Info, SamplingAlgorithm

from ._data import MOST_RANK, Tables, check_rank, sort_ratings


class Setting(NamedTuple):
    """What is fixed when a program is compiled, but the tables; attributes of the kernel.

    spread: of the draws about their means; 0 is alternating least squares.
    """

    spread: float
    num_threads: int


class BothSides(NamedTuple):
    """The ratings twice, sorted by user and sorted by item.

    levels: the values, less the center.
    user_offsets, rated, user_codes: where each user's ratings begin; their items and values.
    item_offsets, raters, item_codes: likewise the other way round.
    """

    levels: Array
    user_offsets: Array
    rated: Array
    user_codes: Array
    item_offsets: Array
    raters: Array
    item_codes: Array


class GibbsState(NamedTuple):
    """Where the chain is, and how many sweeps it has made."""

    position: dict[str, Array]
    step: Array


@module(static=("setting", "tables", "backend"))
class GibbsAlgorithm(SamplingAlgorithm[GibbsState]):
    """The algorithm of `gibbs_factorization`, whose step is one sweep: step(key, state, data).

    precision: τ, an input of the compiled program.
    """

    takes_minibatch = True

    precision: ArrayLike
    setting: Setting
    tables: Tables
    backend: str

    def init(self, position: Any, rng_key: Any = None) -> GibbsState:
        return GibbsState(self.tables.start(position), jnp.int32(0))

    def step(self, key: Array, state: GibbsState, *minibatch: BothSides) -> tuple[GibbsState, Info]:
        (data,) = minibatch
        words = jax.random.bits(key, (2,), jnp.uint32)
        sweep = sweep_by_kernel if self.backend == "native" else sweep_in_jax
        position = sweep(self, state.position, words, data)
        one = jnp.ones((), jnp.float32)
        info = Info(one, one, jnp.zeros((), bool), 0 * one, 0 * one)
        return GibbsState(position, schedules.following(state.step)), info


class GibbsFactorization(NamedTuple):
    """What `gibbs_factorization` returns; to be used like a `FastFactorization`."""

    algorithm: GibbsAlgorithm
    data: BothSides
    backend: str


def gibbs_factorization(
    users: ArrayLike,
    items: ArrayLike,
    ratings: ArrayLike,
    num_users: int,
    num_items: int,
    *,
    rank: int = 10,
    center: float = 0.0,
    noise_precision: float = 1.0,
    biases: bool = False,
    spread: float = 1.0,
    num_threads: int = 1,
    backend: str | None = None,
) -> GibbsFactorization:
    r"""Sweeps of the Gibbs sampler for ratings of items by users: given the items, each user's

    .. math:: a_u \sim N(Λ_u^{-1} v_u, Λ_u^{-1}), \qquad Λ_u = I + τ \sum_i b_i b_i^⊤, \qquad
       v_u = τ \sum_i (y_{ui} - c)\, b_i,

    sums over the items that the user rated; then each item's given the users.  The model is that of
    `matrix_factorization`, and arguments, positions and their padding are those of
    `fast_factorization`.

    Targets: the posterior, exactly.  Every step goes through all ratings.

    Args:
        users, items, ratings, num_users, num_items, center, noise_precision, biases, num_threads:
            as of `fast_factorization`.
        rank: columns of the factors, at most 61.
        spread: of the draws about their means, in [0, 1]; 0 gives alternating least squares, which
            ends in a mode of the posterior.
        backend: "native" or "jax"; see `levymc.models.backend`.

    Returns:
        A `GibbsFactorization`, whose `algorithm` and `data` go to `levymc.sample`.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, jax.numpy as jnp, numpy as np, levymc
        >>> users, items = np.arange(100) % 20, np.arange(100) % 7
        >>> gibbs = levymc.models.gibbs_factorization(
        ...     users, items, (users + items) % 5, 20, 7, rank=3
        ... )
        >>> start = {"users": jnp.zeros((20, 3), "float32"), "items": jnp.ones((7, 3), "float32")}
        >>> step = gibbs.algorithm.step
        >>> state, _ = step(jax.random.key(0), gibbs.algorithm.init(start), gibbs.data)
        >>> state.position["items"].shape
        (7, 16)

    References: [salakhutdinov2008], without its hyperpriors.
    """
    tables = Tables(num_users, num_items, check_rank(rank, MOST_RANK), bool(biases))
    check_positive("noise_precision", noise_precision, "It is 1/variance of a rating.")
    check_interval(
        "spread", spread, 0.0, 1.0, includes_low=True, remedy="1 draws from the posterior."
    )
    threads = check_count("num_threads", num_threads, "1 is no threads but the caller's.")
    by_user = sort_ratings(users, items, ratings, num_users, num_items, center)
    by_item = sort_ratings(items, users, ratings, num_items, num_users, center)
    arrays = (
        by_user.levels,
        by_user.offsets,
        by_user.rated.astype(np.uint32),
        by_user.codes,
        by_item.offsets,
        by_item.rated.astype(np.uint32),
        by_item.codes,
    )
    chosen = _native.backend(backend)
    setting = Setting(float(spread), threads)
    algorithm = GibbsAlgorithm(np.float32(noise_precision), setting, tables, chosen)
    return GibbsFactorization(algorithm, BothSides(*map(jnp.asarray, arrays)), chosen)


def sweep_by_kernel(
    algorithm: GibbsAlgorithm,
    position: dict[str, Array],
    key_words: UInt32[Array, "2"],
    data: BothSides,
) -> dict[str, Array]:
    """All users, given the items, and then all items: the new position."""
    users, items = position["users"], position["items"]
    new_users, new_items = _native.call(
        "levymc_gibbs_sweep",
        [jax.ShapeDtypeStruct(table.shape, jnp.float32) for table in (users, items)],
        [users, items, key_words, jnp.asarray(algorithm.precision, jnp.float32), *data],
        {**algorithm.setting._asdict(), **algorithm.tables.attributes},
        vmap_method="sequential",
        input_output_aliases={0: 0, 1: 1},
    )
    return {"users": new_users, "items": new_items}


def sweep_in_jax(
    algorithm: GibbsAlgorithm,
    position: dict[str, Array],
    key_words: UInt32[Array, "2"],
    data: BothSides,
) -> dict[str, Array]:
    """As `sweep_by_kernel`: the same law, other random numbers."""
    key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
    key_users, key_items = jax.random.split(key)
    levels, user_offsets, rated, user_codes, item_offsets, raters, item_codes = data
    tables = algorithm.tables
    is_moving = partial(tables.is_moving, width=tables.columns)
    users = _draw_rows(
        algorithm, key_users, position["users"], position["items"], user_offsets, rated,
        levels[user_codes], is_moving("users"),
    )  # fmt: skip
    items = _draw_rows(
        algorithm, key_items, position["items"], users, item_offsets, raters,
        levels[item_codes], is_moving("items"),
    )  # fmt: skip
    return {"users": users, "items": items}


def _draw_rows(
    algorithm: GibbsAlgorithm,
    key: Array,
    rows: Array,
    others: Array,
    offsets: Array,
    partners: Array,
    values: Array,
    moving: np.ndarray,
) -> Array:
    """One side given the other; a frozen column moves to the other side of the equation."""
    rank, count, tau = len(moving), len(rows), algorithm.precision
    row = jnp.searchsorted(offsets, jnp.arange(len(values)), side="right") - 1
    partner = others[partners][:, :rank]

    def line(k: Array) -> Array:  # one at a time: all would take rank² numbers per rating
        return jnp.zeros((count, rank)).at[row].add(partner[:, k, None] * partner)

    precision = tau * jnp.moveaxis(jax.lax.map(line, jnp.arange(rank)), 0, 1)
    linear = tau * jnp.zeros((count, rank)).at[row].add(values[:, None] * partner)
    fixed = jnp.where(moving, 0.0, rows[:, :rank])
    linear = jnp.where(moving, linear - jnp.einsum("rkl,rl->rk", precision, fixed), fixed)
    both = moving[:, None] & moving[None, :]
    root = jnp.linalg.cholesky(jnp.where(both, precision, 0.0) + jnp.eye(rank))
    noise = jnp.where(moving, algorithm.setting.spread * jax.random.normal(key, (count, rank)), 0.0)
    half = jax.scipy.linalg.solve_triangular(root, linear[..., None], lower=True)[..., 0] + noise
    drawn = jax.scipy.linalg.solve_triangular(root, half[..., None], lower=True, trans=1)[..., 0]
    return rows.at[:, :rank].set(drawn.astype(rows.dtype))
