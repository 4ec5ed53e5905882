r"""One step of the fast matrix factorisation in JAX alone: the reference of the kernels."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import native, stable

from ._factorization_data import Ratings
from ._factorization_start import moving_columns


def step(
    setting: native.Setting,
    users: Array,
    items: Array,
    key_words: Array,
    step_size: Array,
    largest: Array,
    data: Ratings,
) -> tuple[Array, Array, Array]:
    """As `levymc.native.factorization_step`, which says what the arguments are."""
    key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
    key_batch, key_users, key_items = jax.random.split(key, 3)
    chosen = jax.random.randint(key_batch, (setting.batch_size,), 0, len(data.codes))
    rater, item = data.raters[chosen], data.rated[chosen].astype(jnp.int32)
    of_user, of_item = users[rater], items[item]
    scale = np.float32(len(data.codes) / setting.batch_size * setting.precision)
    errors = scale * (data.levels[data.codes[chosen]] - jnp.sum(of_user * of_item, axis=1))
    moved_users, told_users = _move(
        setting, users, rater, errors, of_item, scale, key_users, step_size, setting.user_frozen,
        data.user_steps, data.user_noises, data.quantiles,
    )  # fmt: skip
    moved_items, told_items = _move(
        setting, items, item, errors, of_user, scale, key_items, step_size, setting.item_frozen,
        data.item_steps, data.item_noises, data.quantiles,
    )  # fmt: skip
    jump, taming, size = jnp.maximum(told_users, told_items)
    is_finite = jnp.all(jnp.isfinite(moved_users)) & jnp.all(jnp.isfinite(moved_items))
    report = jnp.stack([jump, taming, 1.0 - is_finite, jnp.where(is_finite, size, largest)])
    kept_users = jnp.where(is_finite, moved_users, users)
    return kept_users, jnp.where(is_finite, moved_items, items), report.astype(jnp.float32)


def _move(
    setting: native.Setting,
    table: Array,
    row: Array,
    errors: Array,
    partners: Array,
    scale: np.float32,
    key: Array,
    step_size: Array,
    frozen: int,
    steps: Array,
    noises: Array,
    quantiles: Array,
) -> tuple[Array, Array]:
    """The moved table, and (largest jump, taming, largest entry)."""
    moving = moving_columns(setting.rank, table.shape[1], frozen)
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
    words = jax.random.bits(key, (len(table), setting.rank), jnp.uint32)
    draws = stable.from_words(words, quantiles[:, 0], quantiles[:, 1])
    padding = ((0, 0), (0, table.shape[1] - setting.rank))
    jump = jnp.where(moving, scales * jnp.pad(draws, padding), 0.0)
    moved = table + (jnp.where(moving, drift, 0.0) + jump)
    sizes = (jnp.abs(jump), jnp.where(moving, shortened, 0.0), jnp.abs(moved))
    return moved, jnp.stack([jnp.max(size) for size in sizes])
