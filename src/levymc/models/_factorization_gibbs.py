r"""The Gibbs sampler of Bayesian matrix factorisation: the truth that others are compared with."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import native
from levymc._checks import check_count, check_interval, check_positive
from levymc.algorithms import Info, SamplingAlgorithm

from . import _factorization_data as compact
from ._factorization_start import moving_columns, padded_start

MOST_RANK = 61  # with two columns for biases, the bits of a mask but its sign


class GibbsState(NamedTuple):
    """Where the chain is, and how many sweeps it has made."""

    position: dict[str, Array]
    step: Array


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


class GibbsFactorization(NamedTuple):
    """What `gibbs_factorization` returns; to be used like a `FastFactorization`."""

    algorithm: SamplingAlgorithm
    data: BothSides
    backend: str


def gibbs_factorization(
    users: Any,
    items: Any,
    ratings: Any,
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
        backend: "native" or "jax"; "numba" is JAX here.

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
    given = check_count("rank", rank, "It is the number of columns.")
    if given > MOST_RANK:
        raise ValueError(f"`rank` must be at most {MOST_RANK}, got {rank}. Take fewer columns.")
    columns = given + (2 if biases else 0)
    check_positive("noise_precision", noise_precision, "It is 1/variance of a rating.")
    check_interval(
        "spread", spread, 0.0, 1.0, includes_low=True, remedy="1 draws from the posterior."
    )
    by_user = compact.sort_ratings(users, items, ratings, num_users, num_items, center)
    by_item = compact.sort_ratings(items, users, ratings, num_items, num_users, center)
    setting = native.GibbsSetting(
        columns,
        float(noise_precision),
        float(spread),
        1 << columns - 1 if biases else 0,
        1 << columns - 2 if biases else 0,
        check_count("num_threads", num_threads, "1 is no threads but the caller's."),
    )
    road = "native" if native.backend(backend) == "native" else "jax"
    data = BothSides(
        *(
            jnp.asarray(array)
            for array in (
                by_user.levels,
                by_user.offsets,
                by_user.rated.astype(np.uint32),
                by_user.codes,
                by_item.offsets,
                by_item.rated.astype(np.uint32),
                by_item.codes,
            )
        )
    )
    return GibbsFactorization(_algorithm(setting, road, (num_users, num_items)), data, road)


def _algorithm(
    setting: native.GibbsSetting, road: str, counts: tuple[int, int]
) -> SamplingAlgorithm:
    sweep = native.gibbs_sweep if road == "native" else sweep_in_jax

    def init(position: Any) -> GibbsState:
        return GibbsState(padded_start(position, setting, counts), jnp.int32(0))

    def step(key: Array, state: GibbsState, data: BothSides) -> tuple[GibbsState, Info]:
        words = jax.random.bits(key, (2,), jnp.uint32)
        users, items = sweep(setting, state.position["users"], state.position["items"], words, data)
        one = jnp.ones((), jnp.float32)
        info = Info(one, one, jnp.zeros((), bool), 0 * one, 0 * one)
        return GibbsState({"users": users, "items": items}, state.step + 1), info

    return SamplingAlgorithm(init, step)


def sweep_in_jax(
    setting: native.GibbsSetting, users: Array, items: Array, key_words: Array, data: BothSides
) -> tuple[Array, Array]:
    """As `levymc.native.gibbs_sweep`: the same law, other random numbers."""
    key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
    key_users, key_items = jax.random.split(key)
    new_users = _draw_rows(
        setting, key_users, users, items, data.user_offsets, data.rated,
        data.levels[data.user_codes], setting.user_frozen,
    )  # fmt: skip
    new_items = _draw_rows(
        setting, key_items, items, new_users, data.item_offsets, data.raters,
        data.levels[data.item_codes], setting.item_frozen,
    )  # fmt: skip
    return new_users, new_items


def _draw_rows(
    setting: native.GibbsSetting,
    key: Array,
    rows: Array,
    others: Array,
    offsets: Array,
    partners: Array,
    values: Array,
    frozen: int,
) -> Array:
    """One side given the other; a frozen column moves to the other side of the equation."""
    rank, count = setting.rank, len(rows)
    row = jnp.searchsorted(offsets, jnp.arange(len(values)), side="right") - 1
    partner = others[partners][:, :rank]

    def line(k: Array) -> Array:  # one at a time: all would take rank² numbers a rating
        return jnp.zeros((count, rank)).at[row].add(partner[:, k, None] * partner)

    precision = setting.precision * jnp.moveaxis(jax.lax.map(line, jnp.arange(rank)), 0, 1)
    linear = setting.precision * jnp.zeros((count, rank)).at[row].add(values[:, None] * partner)
    moving = moving_columns(rank, rank, frozen)
    fixed = jnp.where(moving, 0.0, rows[:, :rank])
    linear = jnp.where(moving, linear - jnp.einsum("rkl,rl->rk", precision, fixed), fixed)
    both = moving[:, None] & moving[None, :]
    root = jnp.linalg.cholesky(jnp.where(both, precision, 0.0) + jnp.eye(rank))
    noise = jnp.where(moving, setting.spread * jax.random.normal(key, (count, rank)), 0.0)
    half = jax.scipy.linalg.solve_triangular(root, linear[..., None], lower=True)[..., 0] + noise
    drawn = jax.scipy.linalg.solve_triangular(root, half[..., None], lower=True, trans=1)[..., 0]
    return rows.at[:, :rank].set(drawn.astype(rows.dtype))
