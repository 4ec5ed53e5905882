r"""Bayesian matrix factorisation by a kernel that makes a whole iteration."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float32, UInt8, UInt32

from levymc import _native, schedules, stable
from levymc._checks import check_count, check_interval, check_positive
from levymc._trees import module
from levymc.algorithms import Info, SamplingAlgorithm

from ._data import MOST_RANK, Sorted, Tables, check_rank, sort_ratings

MOST_COLUMNS = 512
SEGMENTS = 4  # as in the source: more threads than this are of no use


class Ratings(NamedTuple):
    """What a step reads.

    rated, codes: of each rating, in the order of the users, its item and its value's number.
    levels: the values, less the center; the last is repeated up to 256.
    offsets: where the ratings of each user begin, and their number at the end.
    raters: the user of each rating, for JAX alone; otherwise empty.
    user_steps, user_noises, item_steps, item_noises: m and m^{1/α} of each row, or empty.
    quantiles: see `levymc.stable.quantile_table`.
    """

    rated: Array
    codes: Array
    levels: Array
    offsets: Array
    raters: Array
    user_steps: Array
    user_noises: Array
    item_steps: Array
    item_noises: Array
    quantiles: Array


class Setting(NamedTuple):
    """What is fixed when a program is compiled, but the tables; attributes of the kernel.

    precision: τ.  drift_scale: c_α.  cap: of the tamed step, or infinity.
    largest_step: the largest of all rows' m.
    has_clip: shorten the drift's step where the curvature asks for it.
    """

    batch_size: int
    alpha: float
    drift_scale: float
    precision: float
    cap: float
    largest_step: float
    has_clip: bool
    num_threads: int


class FastState(NamedTuple):
    """Where the chain is, how many steps it has made, and a bound on the entries' size."""

    position: dict[str, Array]
    step: Array
    largest: Array


@module(static=("setting", "tables", "backend"))
class FastAlgorithm(SamplingAlgorithm[FastState]):
    """The algorithm of `fast_factorization`; its step takes the ratings: step(key, state, data)."""

    takes_minibatch = True

    schedule: schedules.Schedule
    setting: Setting
    tables: Tables
    backend: str

    def init(self, position: Any, rng_key: Any = None) -> FastState:
        padded = self.tables.start(position)
        sizes = [jnp.max(jnp.abs(table)) for table in padded.values()]
        return FastState(padded, jnp.int32(0), jnp.maximum(*sizes))

    def step(self, key: Array, state: FastState, *minibatch: Ratings) -> tuple[FastState, Info]:
        (data,) = minibatch
        number = schedules.following(state.step)
        step_size = schedules.at(self.schedule, number, jnp.float32)
        words = jax.random.bits(key, (2,), jnp.uint32)
        advance = step_by_kernel if self.backend == "native" else step_in_jax
        position, report = advance(self, state, words, step_size, data)
        jump, taming, is_divergent, largest = report
        info = Info(step_size, jnp.ones_like(step_size), is_divergent > 0, jump, taming)
        return FastState(position, number, largest), info


class FastFactorization(NamedTuple):
    """What `fast_factorization` returns.

    algorithm: to be given to `levymc.sample`, with
    data: as `minibatches=levymc.whole(data)`.
    backend: "native" or "jax".
    """

    algorithm: SamplingAlgorithm[Any]
    data: Any
    backend: str


def fast_factorization(
    users: ArrayLike,
    items: ArrayLike,
    ratings: ArrayLike,
    num_users: int,
    num_items: int,
    *,
    rank: int = 10,
    batch_size: int,
    step_size: Any,
    alpha: float = 2.0,
    center: float = 0.0,
    noise_precision: float = 1.0,
    preconditioner: Any = None,
    curvature: bool = False,
    cap: float | None = None,
    truncation: float | None = None,
    biases: bool = False,
    num_threads: int = 1,
    backend: str | None = None,
) -> FastFactorization:
    r"""Stochastic-gradient FLA, or SGLD at α = 2, for ratings of items by users,

    .. math:: y_{ui} \sim N(a_u · b_i + c, 1/τ), \qquad a_u, b_i \sim N(0, I),

    .. math:: x' = x + η\, m\, c_α\, \widehat{∇\log φ}(x; Ω) + (η m)^{1/α}\, ξ

    for every row x at once, with a batch Ω drawn uniformly and with replacement.  The same law as
    `levymc.sgfla` on this model, at a twentieth of the time: one iteration is a kernel in C++,
    called from inside the compiled program.

    Targets: not the posterior, for α < 2 (see `levymc.fla`) nor, at a step that does not vanish,
    for α = 2.  Not valid when: α < 2 without `curvature` or `truncation` at a useful step, as a
    large jump in one row makes the curvature of its partners exceed 2/η.

    Args:
        users, items, ratings: of each rating; numbers from 0, at most 256 different values.
        num_users, num_items: of all, rated or not.
        rank: columns of the factors.
        batch_size: ratings per step, at most as many as there are.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2].
        center: c, such as the mean rating.
        noise_precision: τ > 0.
        preconditioner: {"users": m, "items": m}, a positive number for each row; 1 if not given.
        curvature: shorten the drift's step of a row from η m to η m min(1, 1/(η m c_α S)), with
            S = 1 + (N/n) Σ_Ω τ |partner row|².  The noise keeps its size.
        cap: longest step of the drift in each coordinate, as by `levymc.integrators.tamed(cap)`;
            Euler's step if not given.
        truncation: draw ξ on the condition |ξ| ≤ truncation.  Another algorithm than the paper's.
        biases: add a bias for each user and for each item, with the same prior.
        num_threads: of the kernel; more than four are of no use.  The draws do not depend on it.
        backend: "native" or "jax"; see `levymc.models.backend`.

    Returns:
        A `FastFactorization`.  Positions are {"users": (num_users, columns), "items": (num_items,
        columns)} in float32, padded with zeros to a multiple of 16 columns; a start may have `rank`
        columns or all.  A prediction is Σ users[u] * items[i] + center: with biases, column `rank`
        is that of the users, where items have 1, and the next one that of the items.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, jax.numpy as jnp, numpy as np, levymc
        >>> users, items = np.arange(100) % 20, np.arange(100) % 7
        >>> fast = levymc.models.fast_factorization(
        ...     users, items, (users + items) % 5, 20, 7, rank=3, batch_size=50, step_size=1e-3
        ... )
        >>> starts = {
        ...     "users": jnp.zeros((1, 20, 3), "float32"),
        ...     "items": jnp.ones((1, 7, 3), "float32"),
        ... }
        >>> run = levymc.sample(
        ...     fast.algorithm,
        ...     jax.random.key(0),
        ...     starts,
        ...     10,
        ...     minibatches=levymc.whole(fast.data),
        ...     progress=False,
        ... )
        >>> run.positions["users"].shape
        (1, 10, 20, 16)

    References: [simsekli2017], section 4.3.  Departures: preconditioner, clip, truncation, biases.
    """
    ordered = sort_ratings(users, items, ratings, num_users, num_items, center)
    rows = _check_preconditioner(preconditioner, num_users, num_items)
    columns = check_rank(rank, MOST_RANK if biases else MOST_COLUMNS)
    tables = Tables(num_users, num_items, columns, bool(biases))
    size = check_count("batch_size", batch_size, "It is the number of ratings per step.")
    if size > len(ordered.codes):
        raise ValueError(
            f"`batch_size` must be at most the {len(ordered.codes)} ratings, got {size}. "
            "Take fewer."
        )
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy="2 is SGLD.")
    check_positive("noise_precision", noise_precision, "It is 1/variance of a rating.")
    if cap is not None:
        check_positive("cap", cap, "It is the longest step that the drift may make.")
    if truncation is not None:
        check_positive("truncation", truncation, "The noise is drawn within ± this bound.")
    exponent = float(alpha)
    setting = Setting(
        batch_size=size,
        alpha=exponent,
        drift_scale=math.gamma(exponent - 1) / math.gamma(exponent / 2) ** 2,
        precision=float(noise_precision),
        cap=math.inf if cap is None else float(cap),
        largest_step=1.0 if rows is None else float(max(m.max() for m in rows)),
        has_clip=bool(curvature),
        num_threads=check_count("num_threads", num_threads, "1 is no threads but the caller's."),
    )
    chosen = _native.backend(backend)
    data = _to_arrays(ordered, rows, exponent, stable.quantile_table(exponent, truncation))
    if chosen == "jax":
        data = data._replace(raters=jnp.asarray(ordered.raters))
    algorithm = FastAlgorithm(schedules.as_schedule(step_size), setting, tables, chosen)
    return FastFactorization(algorithm, data, chosen)


def _check_preconditioner(value: Any, num_users: int, num_items: int) -> list[np.ndarray] | None:
    """The rows' m of users and items, in float32."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"users", "items"}:
        raise TypeError(
            f"`preconditioner` must have one number a row, got {value!r}. "
            'Such as {"users": …, "items": …}, with as many numbers as there are of them.'
        )
    rows = []
    for name, count in (("users", num_users), ("items", num_items)):
        check_positive("preconditioner", value[name], "It multiplies the step size of the row.")
        row = np.asarray(value[name], np.float32)
        if row.shape != (count,):
            raise ValueError(
                f"`preconditioner[{name!r}]` must have shape ({count},), got {row.shape}. "
                "Give one number a row."
            )
        rows.append(row)
    return rows


def _to_arrays(
    ordered: Sorted, rows: list[np.ndarray] | None, alpha: float, quantiles: np.ndarray
) -> Ratings:
    """All that a step reads, without the raters."""
    steps = [np.zeros(0, np.float32)] * 2 if rows is None else rows
    of_rows = [f for m in steps for f in (m, m.astype(np.float64) ** (1 / alpha))]
    arrays = [ordered.rated, ordered.codes, ordered.levels, ordered.offsets, np.zeros(0, np.int32)]
    tables = [np.asarray(table, np.float32) for table in [*of_rows, quantiles]]
    return Ratings(*map(jnp.asarray, arrays + tables))


def step_by_kernel(
    algorithm: FastAlgorithm,
    state: FastState,
    key_words: UInt32[Array, "2"],
    step_size: Array,
    data: Ratings,
) -> tuple[dict[str, Array], Float32[Array, "4"]]:
    """One step: the new position, and (largest jump, taming, is divergent, largest entry)."""
    users, items = state.position["users"], state.position["items"]
    num_items, row = items.shape
    shapes = (
        users.shape,
        items.shape,
        (4,),
        (SEGMENTS, num_items, row),  # scratch: gradients of the items
        (SEGMENTS + 1, num_items),  # scratch: curvatures
    )
    ratings = [getattr(data, name) for name in Ratings._fields if name != "raters"]
    new_users, new_items, report, _, _ = _native.call(
        "levymc_factorization_step",
        [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        [users, items, key_words, step_size, state.largest, *ratings],
        {**algorithm.setting._asdict(), **algorithm.tables.attributes},
        vmap_method="expand_dims",
        input_output_aliases={0: 0, 1: 1},
    )
    return {"users": new_users, "items": new_items}, report


def batch_counts(
    key_words: UInt32[Array, "2"], offsets: Array, num_ratings: int, batch_size: int
) -> UInt8[Array, " rating"]:
    """How often each rating is in the batch that the kernel draws for a key; for tests."""
    shape = jax.ShapeDtypeStruct((num_ratings,), jnp.uint8)
    attributes = {"batch_size": batch_size}
    return _native.call("levymc_factorization_batch", [shape], [key_words, offsets], attributes)[0]


def step_in_jax(
    algorithm: FastAlgorithm,
    state: FastState,
    key_words: UInt32[Array, "2"],
    step_size: Array,
    data: Ratings,
) -> tuple[dict[str, Array], Float32[Array, "4"]]:
    """As `step_by_kernel`: the same law, other random numbers."""
    setting = algorithm.setting
    users, items = state.position["users"], state.position["items"]
    key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
    key_batch, key_users, key_items = jax.random.split(key, 3)
    chosen = jax.random.randint(key_batch, (setting.batch_size,), 0, len(data.codes))
    rater, item = data.raters[chosen], data.rated[chosen].astype(jnp.int32)
    of_user, of_item = users[rater], items[item]
    scale = np.float32(len(data.codes) / setting.batch_size * setting.precision)
    errors = scale * (data.levels[data.codes[chosen]] - jnp.sum(of_user * of_item, axis=1))
    user_side = _Side("users", users, rater, of_item, data.user_steps, data.user_noises)
    item_side = _Side("items", items, item, of_user, data.item_steps, data.item_noises)
    move = partial(_move, algorithm, errors, scale, step_size, data.quantiles)
    moved_users, told_users = move(key_users, user_side)
    moved_items, told_items = move(key_items, item_side)
    jump, taming, size = jnp.maximum(told_users, told_items)
    is_finite = jnp.all(jnp.isfinite(moved_users)) & jnp.all(jnp.isfinite(moved_items))
    report = jnp.stack([jump, taming, 1.0 - is_finite, jnp.where(is_finite, size, state.largest)])
    kept = {
        "users": jnp.where(is_finite, moved_users, users),
        "items": jnp.where(is_finite, moved_items, items),
    }
    return kept, report.astype(jnp.float32)


class _Side(NamedTuple):
    """A table, and of each rating in the batch its row and the row of its partner.

    steps, noises: m and m^{1/α} of each row, or empty.
    """

    name: str
    table: Array
    row: Array
    partners: Array
    steps: Array
    noises: Array


def _move(
    algorithm: FastAlgorithm,
    errors: Array,
    scale: np.float32,
    step_size: Array,
    quantiles: Array,
    key: Array,
    side: _Side,
) -> tuple[Array, Array]:
    """The moved table, and (largest jump, taming, largest entry)."""
    setting, tables = algorithm.setting, algorithm.tables
    _, table, row, partners, steps, noises = side
    moving = tables.is_moving(side.name, table.shape[1])
    gradient = -table + jnp.zeros_like(table).at[row].add(errors[:, None] * partners)
    full = (step_size * setting.drift_scale).astype(jnp.float32)
    lengths = jnp.full(len(table), full) if steps.size == 0 else full * steps
    clip = jnp.ones(len(table), jnp.float32)
    if setting.has_clip:
        squares = scale * jnp.sum(partners**2, axis=1)
        curvature = 1 + jnp.zeros(len(table), jnp.float32).at[row].add(squares)
        clip = jnp.minimum(clip, 1 / (lengths * curvature))
    drift = (lengths * clip)[:, None] * gradient
    shortened = jnp.broadcast_to((1 - clip)[:, None], drift.shape)
    if np.isfinite(setting.cap):
        taming = 1 / (1 + np.float32(setting.cap) / jnp.abs(drift))
        drift = jnp.sign(drift) * np.float32(setting.cap) * taming
        shortened = 1 - (1 - shortened) * (1 - taming)
    noise_scale = (step_size ** (1 / setting.alpha)).astype(jnp.float32)
    scales = noise_scale if noises.size == 0 else noise_scale * noises[:, None]
    words = jax.random.bits(key, (len(table), tables.columns), jnp.uint32)
    draws = stable.from_words(words, quantiles[:, 0], quantiles[:, 1])
    padding = ((0, 0), (0, table.shape[1] - tables.columns))
    jump = jnp.where(moving, scales * jnp.pad(draws, padding), 0.0)
    moved = table + (jnp.where(moving, drift, 0.0) + jump)
    sizes = (jnp.abs(jump), jnp.where(moving, shortened, 0.0), jnp.abs(moved))
    return moved, jnp.stack([jnp.max(size) for size in sizes])
