r"""Bayesian matrix factorisation by a kernel that makes a whole iteration."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc import native, schedules, stable
from levymc._checks import check_count, check_interval, check_positive
from levymc.algorithms import Info, SamplingAlgorithm

from . import _factorization_data as compact
from ._factorization_jax import step as step_in_jax
from ._factorization_start import padded_start

MOST_COLUMNS = 512
Step = Callable[..., tuple[Array, Array, Array]]


class FastState(NamedTuple):
    """Where the chain is, how many steps it has made, and a bound on the entries' size."""

    position: dict[str, Array]
    step: Array
    largest: Array


class FastFactorization(NamedTuple):
    """What `fast_factorization` returns.

    algorithm: to be given to `levymc.sample`, with
    data: as `minibatches=levymc.whole(data)`.
    backend: "native", "numba" or "jax".
    """

    algorithm: SamplingAlgorithm
    data: compact.Ratings
    backend: str


def fast_factorization(
    users: Any,
    items: Any,
    ratings: Any,
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
        batch_size: ratings a step, at most as many as there are.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2].
        center: c, such as the mean rating.
        noise_precision: τ > 0.
        preconditioner: {"users": m, "items": m}, a positive number a row; 1 if not given.
        curvature: shorten the drift's step of a row from η m to η m min(1, 1/(η m c_α S)), with
            S = 1 + (N/n) Σ_Ω τ |partner row|².  The noise keeps its size.
        cap: longest step of the drift in each coordinate, as by `levymc.integrators.tamed(cap)`;
            Euler's step if not given.
        truncation: draw ξ on the condition |ξ| ≤ truncation.  Another algorithm than the paper's.
        biases: add a bias for each user and for each item, with the same prior.
        num_threads: of the kernel; more than four are of no use.  The draws do not depend on it.
        backend: "native", "numba" or "jax"; see `levymc.native.backend`.

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
    ordered = compact.sort_ratings(users, items, ratings, num_users, num_items, center)
    rows = compact.check_preconditioner(preconditioner, num_users, num_items)
    setting = _setting(
        len(ordered.codes), rank, batch_size, alpha, noise_precision, curvature, cap, biases,
        num_threads, 1.0 if rows is None else float(max(m.max() for m in rows)),
    )  # fmt: skip
    if truncation is not None:
        check_positive("truncation", truncation, "The noise is drawn within ± this bound.")
    quantiles = stable.quantile_table(setting.alpha, truncation)
    road = native.backend(backend)
    data = compact.to_ratings(ordered, rows, setting.alpha, quantiles)
    if road == "jax":
        data = data._replace(raters=jnp.asarray(ordered.raters))
    if road == "numba":
        data = data._replace(rated=jnp.zeros(0, jnp.uint16), codes=jnp.zeros(0, jnp.uint8))
    advance = _step_of(road, ordered)
    algorithm = _algorithm(
        setting, schedules.as_schedule(step_size), advance, (num_users, num_items)
    )
    return FastFactorization(algorithm, data, road)


def _setting(
    num_ratings: int,
    rank: int,
    batch_size: int,
    alpha: float,
    precision: float,
    curvature: bool,
    cap: float | None,
    biases: bool,
    num_threads: int,
    largest_step: float,
) -> native.Setting:
    columns = check_count("rank", rank, "It is the number of columns.") + (2 if biases else 0)
    if columns > (63 if biases else MOST_COLUMNS):
        most = 61 if biases else MOST_COLUMNS
        raise ValueError(f"`rank` must be at most {most} here, got {rank}. Take fewer columns.")
    size = check_count("batch_size", batch_size, "It is the number of ratings a step.")
    if size > num_ratings:
        raise ValueError(
            f"`batch_size` must be at most the {num_ratings} ratings, got {size}. Take fewer."
        )
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy="2 is SGLD.")
    check_positive("noise_precision", precision, "It is 1/variance of a rating.")
    if cap is not None:
        check_positive("cap", cap, "It is the longest step that the drift may make.")
    exponent = float(alpha)
    return native.Setting(
        batch_size=size,
        rank=columns,
        alpha=exponent,
        drift_scale=math.gamma(exponent - 1) / math.gamma(exponent / 2) ** 2,
        precision=float(precision),
        cap=math.inf if cap is None else float(cap),
        largest_step=largest_step,
        has_clip=bool(curvature),
        user_frozen=1 << columns - 1 if biases else 0,
        item_frozen=1 << columns - 2 if biases else 0,
        num_threads=check_count("num_threads", num_threads, "1 is no threads but the caller's."),
    )


def _step_of(road: str, ordered: compact.Sorted) -> Step:
    if road == "native":
        return native.factorization_step
    if road == "numba":
        from ._factorization_numba import step as step_in_numba

        return partial(step_in_numba, ordered.rated, ordered.codes)
    return step_in_jax


def _algorithm(
    setting: native.Setting,
    schedule: schedules.Schedule,
    advance: Step,
    counts: tuple[int, int],
) -> SamplingAlgorithm:
    def init(position: Any) -> FastState:
        padded = padded_start(position, setting, counts)
        sizes = [jnp.max(jnp.abs(table)) for table in padded.values()]
        return FastState(padded, jnp.int32(0), jnp.maximum(*sizes))

    def step(key: Array, state: FastState, data: compact.Ratings) -> tuple[FastState, Info]:
        number = state.step + 1
        step_size = schedules.at(schedule, number, jnp.float32)
        words = jax.random.bits(key, (2,), jnp.uint32)
        users, items, report = advance(
            setting, state.position["users"], state.position["items"], words, step_size,
            state.largest, data,
        )  # fmt: skip
        jump, taming, is_divergent, largest = report
        info = Info(step_size, jnp.ones_like(step_size), is_divergent > 0, jump, taming)
        return FastState({"users": users, "items": items}, number, largest), info

    return SamplingAlgorithm(init, step)
