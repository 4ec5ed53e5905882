"""Tempered stable noise has its law, at short times and at long ones.

Statistical bounds: false-alarm rate at most 3e-8 each, for three frequencies; 5 of them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import hoeffding_bound

import levymc
from levymc import noises, stable

FALSE_ALARM = 1e-8
COUNT = 30_000


def characteristic(frequency, alpha, rate, time):
    return np.exp(-time * ((rate**2 + frequency**2) ** (alpha / 2) - rate**alpha))


def off(draws, alpha, rate, time):
    """The largest error of the characteristic function, at three frequencies."""
    values = np.asarray(draws, np.float64)
    frequencies = np.array([0.3, 1.0, 3.0]) / (time * alpha * rate ** (alpha - 2)) ** 0.5
    found = np.mean(np.cos(frequencies[:, None] * values), axis=1)
    return np.max(np.abs(found - characteristic(frequencies, alpha, rate, time)))


@pytest.mark.parametrize(
    ("alpha", "rate", "time", "dtype"),
    [
        (1.3, 0.5, 2.0, jnp.float32),
        (1.7, 2.0, 0.3, jnp.float64),
        (1.5, 2.0, 1.5, jnp.float32),
        (2.0, 1.0, 0.3, jnp.float32),
    ],
)
@pytest.mark.often("1.3-0.5-2.0-float32", "2.0-1.0-0.3-float32")
def test_draws_have_their_characteristic_function(alpha, rate, time, dtype):
    """Hoeffding: 3e4 draws detect 0.036 at a frequency; undamped noise is off by 0.09 to 0.27."""
    draws = stable.sample_tempered(jax.random.key(2), alpha, rate, (COUNT,), time=time, dtype=dtype)
    assert off(draws, alpha, rate, time) < hoeffding_bound(COUNT, FALSE_ALARM)


@pytest.mark.parametrize(
    ("noise", "is_kept"), [(noises.tempered(1.0), True), (noises.independent(), False)]
)
def test_many_short_steps_have_the_law_of_their_sum(noise, is_kept):
    """Twenty steps of 0.05 without a drift; undamped ones are seen."""
    law = noise.law(1.4)

    def step(total, key):
        return total + law.draw(key, total, jnp.asarray(0.05, total.dtype)), None

    keys = jax.random.split(jax.random.key(4), 20)
    total = jax.jit(lambda keys: jax.lax.scan(step, jnp.zeros(COUNT, jnp.float32), keys)[0])(keys)
    assert (off(total, 1.4, 1.0, 1.0) < hoeffding_bound(COUNT, FALSE_ALARM)) == is_kept


def test_a_step_that_is_no_number_gives_none():
    draws = jax.jit(lambda time: stable.sample_tempered(jax.random.key(0), 1.5, 1.0, time=time))
    assert all(np.isnan(draws(time)) for time in (np.nan, np.inf, -1.0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: noises.tempered(0.0), ("rate", "0.0", "independent()")),
        (lambda: stable.sample_tempered(jax.random.key(0), 2.1, 1.0), ("alpha", "2.1")),
        (lambda: stable.sample_tempered(jax.random.key(0), 1.5, 1.0, time=-1.0), ("time", "-1.0")),
        (
            lambda: levymc.fla(lambda x: -x @ x, 0.1, jnp.full(2, 1.5), noise=noises.tempered(1.0)),
            ("alpha", "(2,)"),
        ),
        (
            lambda: levymc.mafla(lambda x: -x * x, 0.1, noise=noises.tempered(1.0)),
            ("noise", "Tempered(rate=1.0)", "known density"),
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
