"""Runs over four devices, in a process that has as many: python four_devices.py FOLDER CHECK …

A check is the name of a function; each that holds is printed.
"""

import re
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.run import _iterate, _work

KEY = jax.random.key(0)
OPTIONS = {"progress": False, "burn_in": 7, "thin": 3}
COLLECTIVE = re.compile(r"all-reduce|all-gather|all-to-all|collective|reduce-scatter")


def logdensity(x):
    return -jnp.sum(x * x) / 2


def gradient(x, batch):
    return jnp.mean(batch) - x


WALK = levymc.fla(logdensity, 0.5, 1.7)
MESH = jax.make_mesh((jax.device_count(),), ("chains",))


def starts(count):
    return jnp.zeros((count, 3), jnp.float32)


def begin(count, num_steps=48, **options):
    observe = {"mean": levymc.observe.mean()}
    given = {**OPTIONS, "observe": observe, "keep": True, **options}
    return levymc.sample(WALK, KEY, starts(count), num_steps, **given)


def assert_close(one, other):
    trees = [(each.positions, each.info, each.observed) for each in (one, other)]
    for left, right in zip(*map(jax.tree.leaves, trees), strict=True):
        assert left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def uneven_chains_are_those_of_one_device(_):
    """Devices are left with fewer, or with none: 5 are 2, 2, 1 and 0."""
    assert_close(begin(5), begin(5, mesh=MESH))


def even_chains_are_those_of_one_device(_):
    assert_close(begin(8), begin(8, mesh=MESH))


def a_sweep_has_the_numbers_of_each_chain(_):
    sizes = [0.1, 0.2, 0.3, 0.4, 0.5]
    each = [levymc.sgld(gradient, size) for size in sizes]
    batches = levymc.batches(jnp.arange(12, dtype=jnp.float32), 3)
    given = {"minibatches": batches, "progress": False}
    first = jnp.arange(5, dtype=jnp.float32)
    one = levymc.sample(each, KEY, first, 20, **given)
    other = levymc.sample(each, KEY, first, 20, mesh=MESH, **given)
    assert_close(one, other)
    np.testing.assert_array_equal(one.weights, other.weights)


def visits_are_of_the_chains_alone(_):
    (visit,) = levymc.iterate(WALK, KEY, starts(5), 20, at=20, mesh=MESH)
    (known,) = levymc.iterate(WALK, KEY, starts(5), 20, at=20)
    assert visit.states.position.shape == (5, 3)
    np.testing.assert_allclose(visit.states.position, known.states.position, rtol=1e-5, atol=1e-6)


def a_stored_loop_goes_on_over_devices(folder):
    """Left in the middle and begun again, it gives the bytes of a loop without a store."""

    def loop(**options):
        observe = {"mean": levymc.observe.mean()}
        return levymc.iterate(
            WALK, KEY, starts(5), 60, at=20, burn_in=7, observe=observe, **options
        )

    def as_bytes(visits):
        return [(one.step, *map(bytes, map(np.asarray, jax.tree.leaves(one)))) for one in visits]

    options = {"store": folder / "loop", "mesh": MESH, "commit_seconds": 0.0}
    known, stored = as_bytes(loop(mesh=MESH)), loop(**options)
    assert as_bytes([next(stored), next(stored)]) == known[:2]
    stored.close()  # in the second visit, which therefore does not count
    shutil.copytree(folder / "loop", folder / "on one")
    with pytest.warns(UserWarning, match=r"begun on 4 devices.*goes on here on one.*to rounding"):
        levymc.resume(folder / "on one", progress=False)
    assert as_bytes(loop(**options)) == known[1:]
    assert as_bytes(loop(**options)) == known[2:]
    with pytest.raises(levymc.run.StoreError, match="devices"):
        loop(store=folder / "loop")


def devices_exchange_nothing(_):
    """A loop of NUTS that ends where all chains of its device have: none waits for another."""
    import blackjax

    nuts = blackjax.nuts(logdensity, 0.5, jnp.ones(3))
    marks = {"thin": 1, "burn_in": 0, "observe": None, "observe_every": 1}
    started = _iterate.start(
        nuts, KEY, jnp.zeros((8, 3)), 9, minibatches=None, keep=lambda x: x, mesh=MESH, **marks
    )
    run = _iterate.placed_run(started, MESH)
    call = run.plan.call(0, 1, run.program.slots, run.program.block)
    lowered = run.program.advance.lower(run.parameters, run.carry, run.keys, [], call)
    found = COLLECTIVE.findall(lowered.compile().as_text())
    assert not found, found


def each_device_makes_shards_of_a_store(folder):
    """All four at once, each claimed once; the same bytes as one device gives."""
    made, real = [], _work.go_on

    def noted(place, *given, **options):
        found = real(place, *given, **options)
        made.append((place.name, jax.config.jax_default_device))
        return found

    _work.go_on = noted
    several = begin(7, store=folder / "several", mesh=MESH)
    _work.go_on = real
    names = sorted(name for name, _ in made)
    assert names == ["shard-0000", "shard-0001", "shard-0002", "shard-0003"], made
    assert len({device for _, device in made}) > 1, made
    one = begin(7, store=folder / "one", shards=4)
    for left, right in zip(
        *[jax.tree.leaves((each.positions, each.info, each.observed)) for each in (one, several)],
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)
    resumed = levymc.resume(folder / "several", num_steps=60, mesh=MESH, progress=False)
    np.testing.assert_array_equal(resumed.positions[:, :16], several.positions)
    assert resumed.num_draws == 20


def ctrl_c_halts_all_devices(folder):
    """What they have is safe, and gone on with to the same bytes."""
    real, calls = _work._are_over, []

    def interrupted(made):
        calls.append(made)
        raise KeyboardInterrupt

    _work._are_over = interrupted
    try:
        part = begin(7, 10**6, thin=10**5, store=folder / "stopped", mesh=MESH)
    except KeyboardInterrupt as error:
        assert "What was made is safe" in str(error)  # noqa: PT017
    else:
        assert part.is_interrupted
    finally:
        _work._are_over = real
    (made,) = calls
    assert all(one.done() for one in made)
    assert levymc.run.work(folder / "stopped", mesh=MESH, progress=False).left == ()


def a_device_that_fails_halts_the_others(folder):
    real = _work.go_on

    def failing(place, *given, **options):
        if place.name == "shard-0002":
            raise OSError("the disk is full")
        return real(place, *given, **options)

    _work.go_on = failing
    try:
        begin(7, store=folder / "failing", mesh=MESH)
    except OSError as error:
        assert str(error) == "the disk is full"  # noqa: PT017
    else:
        raise AssertionError("it was not told of")
    finally:
        _work.go_on = real
    again = levymc.resume(folder / "failing", progress=False)
    assert again.num_draws == 16


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names:
        globals()[name](Path(folder))
        print(name, flush=True)
