"""Runs beyond 2³¹ steps: their numbers, keys and marks, near that step rather than up to it."""

import json
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import schedules
from levymc.run import _engine, _integrity, _iterate

EDGE = 2**31
BEFORE, MARKS = EDGE - 10, [EDGE - 3, EDGE, EDGE + 1, EDGE + 4, EDGE + 20]
KEY = jax.random.key(8)


def normal(x):
    return -jnp.sum(x**2) / 2


WALK = levymc.levy_walk(normal, 1.0)
STARTS = jnp.zeros((2, 3), jnp.float32)


def prepared(**options):
    given = {
        "thin": MARKS,
        "burn_in": 0,
        "minibatches": None,
        "observe": None,
        "observe_every": 1,
        "keep": lambda x: x,
        **options,
    }
    return _iterate.ready(_iterate.start(WALK, KEY, STARTS, EDGE + 20, **given))


def key_of(chain, number):
    """As documented: from 2³¹ on, steps are numbered anew, with other keys of the chains."""
    key, epoch = jax.random.fold_in(KEY, chain), number // EDGE
    if epoch:
        key = jax.random.fold_in(jax.random.fold_in(key, np.uint32(2**32 - 1)), epoch)
    return jax.random.fold_in(key, number % EDGE)


def test_draws_across_the_edge_are_those_of_single_steps(calls_of):
    expected, state = [], jax.vmap(WALK.init)(STARTS)
    step = jax.jit(jax.vmap(WALK.step))
    for number in range(BEFORE, EDGE + 20):
        keys = jnp.stack([key_of(chain, number) for chain in range(2)])
        state, _ = step(keys, state)
        if number + 1 in MARKS:
            expected.append(state.position)
    for steps in (7, 100):
        calls_of(steps)
        run = prepared()
        parts = list(_iterate.march(run, run.carry, BEFORE))
        assert parts[-1].done == EDGE + 20
        assert EDGE in [part.done for part in parts]  # no call goes across
        draws = np.concatenate([part.draws[0] for part in parts])
        np.testing.assert_array_equal(draws, np.stack(expected))


def test_a_store_goes_on_across_the_edge(tmp_path, stopped_after, calls_of):
    """As if its burn-in had just come near; the number of each draw is right, too."""
    folder, options = tmp_path / "run", {"thin": MARKS, "store": tmp_path / "run"}
    calls_of(5)
    with stopped_after(0), pytest.raises(ValueError, match="no draws yet"):
        levymc.sample(WALK, KEY, STARTS, EDGE + 20, progress=False, **options)
    (folder / "levymc/state-0.npz").rename(folder / f"levymc/state-{BEFORE}.npz")
    progress = json.loads((folder / "levymc/progress.json").read_text())
    del progress["checksum"]
    sealed = _integrity.sealed({**progress, "done": BEFORE})
    (folder / "levymc/progress.json").write_bytes(sealed)
    result = levymc.resume(folder, progress=False)
    np.testing.assert_array_equal(result.steps, MARKS)
    run = prepared()
    parts = list(_iterate.march(run, run.carry, BEFORE))
    draws = np.concatenate([part.draws[0] for part in parts])
    np.testing.assert_array_equal(np.moveaxis(result.positions, 1, 0), draws)
    np.testing.assert_array_equal(levymc.load(folder).positions, result.positions)


def test_keys_differ_between_epochs_and_from_those_of_steps():
    keys = np.asarray(_engine.chain_keys(KEY, 2))
    found = [np.asarray(_engine.keys_of_epoch(keys, e, "threefry2x32")) for e in (0, 1, 2)]
    assert np.array_equal(found[0], keys)
    steps = [np.asarray(jax.random.key_data(key_of(0, n))) for n in range(4)]
    assert len({key.tobytes() for key in [*(one[0] for one in found), *steps]}) == 7


def test_a_state_counts_to_the_largest_number_and_stays_there():
    algorithm = levymc.ula(normal, schedules.polynomial(1.0, 0.5))
    state = algorithm.init(STARTS[0])._replace(step=jnp.int32(EDGE - 2))
    for _ in range(2):
        state, info = algorithm.step(KEY, state)
        assert int(state.step) == EDGE - 1
        assert info.step_size == pytest.approx((1 / EDGE) ** 0.5, rel=1e-5)
    assert int(schedules.following(jnp.int32(0))) == 1


def test_a_schedule_that_ends_before_the_run_is_told():
    falling = levymc.ula(normal, schedules.polynomial(1.0, 0.5))
    for algorithm, is_told in ((falling, True), (levymc.ula(normal, 0.1), False)):
        options = {"thin": EDGE, "burn_in": 0, "minibatches": None, "observe": None}
        with pytest.warns(UserWarning, match="step size stays") if is_told else nullcontext():
            _iterate.ready(
                _iterate.start(algorithm, KEY, STARTS, EDGE, observe_every=1, keep=None, **options)
            )
