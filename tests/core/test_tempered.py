"""Tempering as a whole: the joint law of all rungs is kept, whatever moves them.

Statistical bounds: false-alarm rate at most 1e-8 each, 20 of them in the file.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core import mixtures
from tests.core.rungs import after, assert_kept, exact

import levymc
from levymc.adapt import tempered
from levymc.adapt._moves import Axes, Kernel
from levymc.adapt._tempered import build


def mixed(betas):
    """All kinds of moves in every rung."""
    chances = np.zeros((2, len(betas), len(Kernel)))
    chances[:] = [0.3, 0.2, 0.3, 0.2]
    values = np.array([[-0.5, 0.1, 0.4, 3.1], [0.0, 0.2, 1.7, 1.9]])
    parts = (np.eye(2), np.eye(2), values, np.array([0.8, 0.5]), np.array([0.0, -0.7]))
    axes = Axes(*(jnp.asarray(part, jnp.float32) for part in parts))
    reference = mixtures.misfit()
    return build(mixtures.logdensity, reference, betas, 0.9, chances=chances, axes=axes)


@pytest.mark.nightly
def test_the_whole_system_keeps_the_law_of_every_rung():
    """From exact draws of four rungs, three steps of all moves and both kinds of swaps.

    DKW at 2e4 systems and 1e-8 detects 0.044 in the CDF of the target, and 0.087 below it.
    """
    betas, rng = np.array([0.2, 0.5, 0.8, 1.0]), np.random.default_rng(5)
    found, rates = after(mixed(betas), jax.random.key(0), exact(rng, betas), 3)
    assert np.all((rates > 0.05) & (rates < 0.99))
    assert_kept(found, betas, rng)


def foreign(name):
    if name == "mafla":
        return lambda f: levymc.mafla(f, 0.6)
    blackjax = pytest.importorskip("blackjax")
    if name == "mala":
        return lambda f: blackjax.mala(f, 0.5)
    return lambda f: blackjax.nuts(f, 0.5, jnp.ones(2), max_num_doublings=3)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mafla", "mala", "nuts"])
def test_other_kernels_are_exact_too(name):
    """As above, two rungs."""
    betas, rng = np.array([0.4, 1.0]), np.random.default_rng(6)
    # With 64-bit types allowed, BlackJAX's cannot do with others.
    dtype = jnp.float32 if name == "mafla" else jnp.float64
    algorithm = tempered(mixtures.logdensity, mixtures.misfit(dtype), betas, kernel=foreign(name))
    found, rates = after(algorithm, jax.random.key(1), exact(rng, betas), 3, dtype)
    assert np.all((rates > 0.05) & (rates < 0.99))
    assert_kept(found, betas, rng)


class Wide:
    """N(0, 9) in the plane, as a class that JAX knows nothing of."""

    def logdensity(self, x):
        return -jnp.sum(x * x) / 18 - jnp.log(18 * jnp.pi)

    def sample(self, key):
        return 3 * jax.random.normal(key, (2,))


def test_any_object_with_a_density_and_draws_is_a_reference():
    algorithm = tempered(mixtures.logdensity, Wide(), (0.5, 1.0), kernel=foreign("mafla"))
    starts = np.zeros((3, 2), np.float32)
    result = levymc.sample(algorithm, jax.random.key(3), starts, 20, progress=False)
    assert len(np.unique(result.positions[..., 0])) > 20


class Silent(NamedTuple):
    """A sampler of another library that tells nothing of its steps."""

    init: Any
    step: Any


def silent(logdensity_fn):
    walk = levymc.levy_walk(logdensity_fn, 1.0)
    return Silent(walk.init, lambda key, state: (walk.step(key, state)[0], ()))


def test_another_kernel_has_its_own_acceptance_rate_or_none():
    """It was 1, which `check` believed."""
    starts = np.zeros((4, 2), np.float32)

    def run(kernel):
        algorithm = tempered(mixtures.logdensity, Wide(), (0.5, 1.0), kernel=kernel)
        return levymc.sample(algorithm, jax.random.key(3), starts, 200, progress=False)

    told = run(lambda f: levymc.mafla(f, 3.0)).info.acceptance_rate
    assert np.all((told >= 0) & (told <= 1))
    assert np.mean(told) < 0.9
    result = run(silent)
    assert np.all(np.isnan(result.info.acceptance_rate))
    kinds = {finding.kind for finding in levymc.diagnostics.check(result).findings}
    assert not kinds & {"stuck", "step too large", "step too small"}
    once = np.broadcast_to(np.arange(200)[:, None] >= 100, result.positions.shape)  # moved
    still = dataclasses.replace(result, positions=once.astype(np.float32))
    assert "stuck" in {finding.kind for finding in levymc.diagnostics.check(still).findings}


def pytree(position):
    return mixtures.logdensity(jnp.stack([position["a"], position["b"][0]]))


def as_tree(points):
    return {"a": points[..., 0], "b": points[..., 1:]}


@pytest.mark.nightly
def test_a_tree_gives_the_draws_of_a_vector():
    starts = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    given = mixtures.misfit(), (0.5, 1.0)
    run, same = (
        levymc.sample(tempered(f, *given), jax.random.key(2), at, 40, progress=False).positions
        for f, at in ((pytree, as_tree(starts)), (mixtures.logdensity, starts))
    )
    assert np.ptp(same) > 1
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, 1e-3), run, as_tree(same)
    )


@pytest.mark.nightly
def test_a_resumed_run_has_the_same_bytes(tmp_path):
    """Of a tree in float64, which goes in and comes out."""
    starts, key = as_tree(np.zeros((2, 2))), jax.random.key(2)
    algorithm = tempered(pytree, mixtures.misfit(jnp.float64), (0.5, 1.0))
    whole = levymc.sample(algorithm, key, starts, 40, progress=False)
    levymc.sample(algorithm, key, starts, 20, progress=False, store=tmp_path / "run")
    resumed = levymc.resume(tmp_path / "run", num_steps=40, progress=False)
    assert whole.is_exact
    assert resumed.is_exact
    assert {leaf.dtype for leaf in jax.tree.leaves(resumed.positions)} == {np.dtype(np.float64)}
    jax.tree.map(np.testing.assert_array_equal, whole.positions, resumed.positions)


@pytest.mark.nightly
def test_without_gain_step_sizes_stay_to_the_bit():
    """And with it they move."""
    sizes = np.array([0.3137, 0.77])
    for gain in (0.0, 1.0):
        algorithm = build(
            mixtures.logdensity, mixtures.misfit(), np.array([0.5, 1.0]), sizes, gain=gain
        )
        run = levymc.sample(
            algorithm, jax.random.key(0), jnp.zeros((2, 2), jnp.float32), 60, progress=False
        )
        state = algorithm.init(jnp.zeros(2, jnp.float32))
        wanted = np.exp(state.log_steps)
        is_same = run.info.step_sizes == np.asarray(run.info.step_sizes)[0, 0]
        assert np.all(is_same) == (gain == 0)
        np.testing.assert_allclose(wanted, sizes, rtol=1e-6)


@pytest.mark.parametrize(
    ("betas", "wrong"),
    [((0.5, 0.9), "0.9"), ((1.0, 0.5), "increase"), ((0.0, 1.0), "betas"), ((), "betas")],
)
def test_bad_ladders_are_refused(betas, wrong):
    with pytest.raises(ValueError, match=wrong):
        tempered(mixtures.logdensity, mixtures.misfit(), betas)


def test_a_kernel_that_is_biased_is_refused():
    with pytest.raises(ValueError, match="`kernel` must make a sampler that is exact, got ula"):
        tempered(mixtures.logdensity, mixtures.misfit(), kernel=lambda f: levymc.ula(f, 0.1))


def test_a_reference_that_is_no_mixture_needs_a_kernel():
    class Normal:
        def logdensity(self, x):
            return -jnp.sum(x**2) / 2 - jnp.log(2 * jnp.pi)

        def sample(self, key):
            return jax.random.normal(key, (2,))

    with pytest.raises(TypeError, match="kernel"):
        tempered(mixtures.logdensity, Normal())
    with pytest.raises(TypeError, match="reference"):
        tempered(mixtures.logdensity, 3)
