r"""One step of the fast matrix factorisation by numba, where there is no C++ compiler.

As factorization.cpp says, without its vectors and threads: ratings sorted by user, batches drawn
block by block through a histogram so that they come out sorted.  JAX calls it back on the host.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
from jaxtyping import Array

from levymc import native

from ._factorization_data import Ratings
from ._factorization_start import moving_columns

BLOCK = 1 << 14
LINE = 16  # floats that rows are padded to a multiple of
FIRST_CELL = int(np.float32(0.5).view(np.uint32)) >> 15
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def step(
    rated: np.ndarray,
    codes: np.ndarray,
    setting: native.Setting,
    users: Array,
    items: Array,
    key_words: Array,
    step_size: Array,
    largest: Array,
    data: Ratings,
) -> tuple[Array, Array, Array]:
    """As `levymc.native.factorization_step`, which says what the other arguments are.

    The ratings themselves stay on the host: handed over at each call, they would be copied.
    """
    shapes = (
        jax.ShapeDtypeStruct(users.shape, jnp.float32),
        jax.ShapeDtypeStruct(items.shape, jnp.float32),
        jax.ShapeDtypeStruct((4,), jnp.float32),
    )

    def on_host(*arrays: Any) -> Any:
        *state, quantiles, offsets, levels, m_users, n_users, m_items, n_items = (
            np.asarray(array) for array in arrays
        )
        ratings = (rated, codes, levels, offsets, offsets, m_users, n_users, m_items, n_items)
        return _on_host(setting, *state, *ratings, quantiles)

    arguments = (
        users, items, key_words, step_size, largest, data.quantiles, data.offsets, data.levels,
        data.user_steps, data.user_noises, data.item_steps, data.item_noises,
    )  # fmt: skip
    return jax.pure_callback(on_host, shapes, *arguments, vmap_method="sequential")


def _on_host(
    setting: native.Setting,
    users: np.ndarray,
    items: np.ndarray,
    key_words: np.ndarray,
    step_size: np.ndarray,
    largest: np.ndarray,
    *arrays: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data: Any = Ratings._make(arrays)
    num_ratings, rank, width = len(data.codes), setting.rank, users.shape[1]
    seed = key_words.view(np.uint64)[0]
    ends = np.append(np.arange(BLOCK, num_ratings, BLOCK), num_ratings)
    shares = np.diff(ends, prepend=0) / num_ratings
    draws = np.random.Generator(np.random.Philox(seed)).multinomial(setting.batch_size, shares)
    gradients = np.zeros((2, max(len(users), len(items)), width), np.float32)
    curvatures = np.ones((2, max(len(users), len(items))), np.float32)
    scale = np.float32(num_ratings / setting.batch_size * setting.precision)
    _gradients(
        users, items, data.rated, data.codes, data.levels, data.offsets, draws, ends, seed, scale,
        setting.has_clip, gradients, curvatures,
    )  # fmt: skip
    moved, reports = [], []
    sides = (
        (users, setting.user_frozen, data.user_steps, data.user_noises),
        (items, setting.item_frozen, data.item_steps, data.item_noises),
    )
    for side, (table, frozen, steps, noises) in enumerate(sides):
        new, report = table.copy(), np.zeros(3, np.float32)
        moving = moving_columns(rank, rank, frozen)
        lengths = np.array(
            [float(step_size) * setting.drift_scale, float(step_size) ** (1 / setting.alpha)],
            np.float32,
        )
        _move(
            new, gradients[side], curvatures[side], steps, noises, data.quantiles, moving, lengths,
            setting.has_clip, np.float32(setting.cap), seed ^ np.uint64(side + 1), report,
        )  # fmt: skip
        moved.append(new)
        reports.append(report)
    jump, taming, size = np.maximum(*reports)
    if np.all(np.isfinite(moved[0])) and np.all(np.isfinite(moved[1])):
        return moved[0], moved[1], np.array([jump, taming, 0, size], np.float32)
    return users.copy(), items.copy(), np.array([jump, taming, 1, largest], np.float32)


def compiled(function: Callable[..., Any]) -> Any:
    """By numba, for which checks of types that a test puts around functions are taken off."""
    # Sums may be made in any order; infinities and NaN stay what they are.
    return numba.njit(inspect.unwrap(function), fastmath={"reassoc", "contract"})


@compiled
def _word(seed: Any, count: Any) -> Any:
    """A random 64-bit word: SplitMix (Steele, Lea & Flood 2014), as a function of a counter."""
    z = seed + (count + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _gradients(
    users: Any, items: Any, rated: Any, codes: Any, levels: Any, offsets: Any, draws: Any,
    ends: Any, seed: Any, scale: Any, has_clip: Any, gradients: Any, curvatures: Any,
) -> None:  # fmt: skip
    """Draw the batch, and add up the gradients and curvatures of users [0] and items [1]."""
    width = gradients.shape[2]
    histogram, places = np.zeros(BLOCK, np.uint8), np.zeros(BLOCK + 1, np.int64)
    count, begin, user = np.uint64(0), 0, 0
    for block in range(len(ends)):
        size = np.uint64(ends[block] - begin)
        threshold = (np.uint64(1 << 32) - size) % size
        left = draws[block]
        while left > 0:  # Lemire's unbiased multiplication
            scaled = (_word(seed, count) >> np.uint64(32)) * size
            count += np.uint64(1)
            if scaled & np.uint64(0xFFFFFFFF) >= threshold:
                histogram[scaled >> np.uint64(32)] += 1
                left -= 1
        num_drawn = 0
        for place in range(ends[block] - begin):  # without a branch that depends on chance
            places[num_drawn] = place
            num_drawn += histogram[place] != 0
        for drawn in range(num_drawn):
            place = begin + places[drawn]
            weight = scale * np.float32(histogram[places[drawn]])
            histogram[places[drawn]] = 0
            while place >= offsets[user + 1]:
                user += 1
            of_user, of_item = users[user], items[rated[place]]
            to_user, to_item = gradients[0, user], gradients[1, rated[place]]
            error = levels[codes[place]]
            for line in range(0, width, LINE):  # whole lines, which the compiler makes vectors of
                for k in range(line, line + LINE):
                    error -= of_user[k] * of_item[k]
            error *= weight
            for line in range(0, width, LINE):
                for k in range(line, line + LINE):
                    to_user[k] += error * of_item[k]
                for k in range(line, line + LINE):
                    to_item[k] += error * of_user[k]
            if has_clip:
                norm_user, norm_item = np.float32(0), np.float32(0)
                for k in range(width):
                    norm_user += of_user[k] * of_user[k]
                    norm_item += of_item[k] * of_item[k]
                curvatures[0, user] += weight * norm_item
                curvatures[1, rated[place]] += weight * norm_user
        begin = ends[block]


@compiled
def _move(
    table: Any, gradients: Any, curvatures: Any, steps: Any, noises: Any, quantiles: Any,
    moving: Any, lengths: Any, has_clip: Any, cap: Any, seed: Any, report: Any,
) -> None:  # fmt: skip
    """Move a table in place; `report` becomes (largest jump, taming, largest entry)."""
    rank, one = len(moving), np.float32(1)
    largest_jump, most_taming, largest = np.float32(0), np.float32(0), np.float32(0)
    count = np.uint64(1) << np.uint64(40)  # beyond the words of the batch
    for row in range(len(table)):
        full = lengths[0] * (steps[row] if len(steps) else one)
        noise = lengths[1] * (noises[row] if len(noises) else one)
        clip = min(one, one / (full * curvatures[row])) if has_clip else one
        for k in range(rank):
            word = np.uint32(_word(seed, count) >> np.uint64(32))
            count += np.uint64(1)
            if not moving[k]:
                continue
            drift = full * clip * (gradients[row, k] - table[row, k])
            kept = clip
            if cap < np.inf:
                taming = one / (one + cap / max(abs(drift), np.float32(1e-38)))
                drift = np.sign(drift) * cap * taming
                kept *= one - taming
            jump = noise * _quantile(word, quantiles)
            table[row, k] += drift + jump
            largest_jump = max(largest_jump, abs(jump))
            most_taming = max(most_taming, one - kept)
            largest = max(largest, abs(table[row, k]))
    report[:] = largest_jump, most_taming, largest


@compiled
def _quantile(word: Any, quantiles: Any) -> Any:
    """As levymc.stable.from_words."""
    uniform = np.float32(np.int32(word >> np.uint32(1))) + np.float32(0.5)
    pattern = np.float32(uniform).view(np.uint32)
    cell = np.int64(pattern >> np.uint32(15)) - FIRST_CELL
    rest = np.float32(pattern & np.uint32(0x7FFF)) * np.float32(2.0**-15)
    size = quantiles[cell, 0] + quantiles[cell, 1] * rest
    return -size if word & np.uint32(1) else size
