"""The kernels look at what they are given, and refuse what they would read outside of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.models.kernels import needs_native

import levymc
from levymc import _native
from levymc.models.factorization._fast import batch_counts
from levymc.models.sbn._gibbs import Sweeper

NUM_USERS, NUM_ITEMS, NUM_RATINGS = 40, 30, 200
REFUSED = "kernel was given what it cannot read"

pytestmark = needs_native


def ratings():
    generator = np.random.default_rng(0)
    users, items = generator.integers(0, NUM_USERS, NUM_RATINGS), np.arange(NUM_RATINGS) % NUM_ITEMS
    return users, items, generator.integers(1, 6, NUM_RATINGS), NUM_USERS, NUM_ITEMS


def start():
    return {
        "users": jnp.ones((NUM_USERS, 3), jnp.float32),
        "items": jnp.ones((NUM_ITEMS, 3), jnp.float32),
    }


def fast():
    return levymc.models.fast_factorization(
        *ratings(), rank=3, batch_size=100, step_size=1e-3, backend="native"
    )


def gibbs():
    return levymc.models.gibbs_factorization(*ratings(), rank=3, backend="native")


def falling(offsets):
    """Offsets with the right ends, one of which lies behind the next."""
    return offsets.at[3].set(NUM_RATINGS + 10_000)


FAULTS = {
    "too few": ("offsets", lambda offsets: offsets[:-1]),
    "beyond the ratings": ("offsets", lambda offsets: offsets.at[-1].set(NUM_RATINGS + 1)),
    "falling": ("offsets", falling),
    "negative": ("offsets", lambda offsets: offsets.at[0].set(-1)),
    "no such item": ("rated", lambda rated: rated.at[:].set(NUM_ITEMS)),
    "fewer codes": ("codes", lambda codes: codes[:-1]),
    "fewer levels": ("levels", lambda levels: levels[:5]),
}


@pytest.mark.parametrize("fault", [*FAULTS, "quantiles", "steps", "type"])
def test_a_step_refuses_arrays_that_do_not_fit(fault):
    model = fast()
    more = {
        "quantiles": ("quantiles", lambda table: table[:100]),
        "steps": ("user_steps", lambda _: jnp.ones(NUM_USERS - 1, jnp.float32)),
        "type": ("rated", lambda rated: rated.astype(jnp.int8)),
    }
    name, change = {**FAULTS, **more}[fault]
    data = model.data._replace(**{name: change(getattr(model.data, name))})
    state = model.algorithm.init(start())
    model.algorithm.step(jax.random.key(0), state, model.data)
    with pytest.raises(Exception, match=REFUSED):
        jax.block_until_ready(model.algorithm.step(jax.random.key(0), state, data))


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_sweep_refuses_arrays_that_do_not_fit(fault, side):
    model = gibbs()
    kind, change = FAULTS[fault]
    partners = {"user": "rated", "item": "raters"}[side]
    if fault == "no such item":
        change = lambda rows: rows.at[7].set(NUM_USERS)  # noqa: E731
    name = {"offsets": f"{side}_offsets", "codes": f"{side}_codes", "rated": partners}.get(
        kind, kind
    )
    data = model.data._replace(**{name: change(getattr(model.data, name))})
    state = model.algorithm.init(start())
    with pytest.raises(Exception, match=REFUSED):
        jax.block_until_ready(model.algorithm.step(jax.random.key(0), state, data))


def test_rows_of_another_length_are_refused():
    for model in (fast(), gibbs()):
        state = model.algorithm.init(start())
        narrow = {name: table[:, :8] for name, table in state.position.items()}
        with pytest.raises(Exception, match="the same multiple of 16"):
            jax.block_until_ready(
                model.algorithm.step(jax.random.key(0), state._replace(position=narrow), model.data)
            )


def test_a_batch_refuses_offsets_that_do_not_fit():
    words, offsets = jnp.zeros(2, jnp.uint32), jnp.array([0, 3, 9], jnp.int32)
    assert np.sum(batch_counts(words, offsets, 9, 5)) == 5
    for size, number in ((5, 8), (10, 9), (0, 9)):
        with pytest.raises(Exception, match=REFUSED):
            jax.block_until_ready(batch_counts(words, offsets, number, size))


@pytest.mark.parametrize("name", ["visible_bias", "drive", "key_words"])
def test_belief_sweeps_refuse_arrays_that_do_not_fit(name):
    given = {
        "weights": jnp.zeros((20, 6), jnp.float32),
        "visible_bias": jnp.zeros(20, jnp.float32),
        "drive": jnp.zeros((5, 6), jnp.float32),
        "hidden": jnp.zeros((5, 6), jnp.uint8),
        "key_words": jnp.zeros(2, jnp.uint32),
    }
    Sweeper("native")(**given, num_sweeps=1)
    arrays = [array[:1] if key == name else array for key, array in given.items()]
    sums = jax.ShapeDtypeStruct((5,), jnp.float32)
    results = [jax.ShapeDtypeStruct((5, 6), jnp.uint8), sums, sums]
    numbers = {"num_sweeps": 1, "num_threads": 1}
    with pytest.raises(Exception, match=REFUSED):
        jax.block_until_ready(_native.call("levymc_belief_sweeps", results, arrays, numbers))
