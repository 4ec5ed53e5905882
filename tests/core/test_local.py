"""Another sampler's steps as the local moves of `levymc.auto`.

Statistical bounds: false-alarm rate at most 1e-8 each, 16 of them in the file.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core import mixtures
from tests.core.rungs import after, assert_kept, exact

import levymc
from levymc.adapt._moves import Kernel
from levymc.adapt._tempered import build
from levymc.run import StoreError

FOUR, STARTS = levymc.targets.four_modes, jnp.full((4, 2), 4.0, jnp.float32)
BETAS = np.array([0.4, 1.0])


def system(local, dtype=jnp.float32, **more):
    """Two rungs that move by draws of the reference, leaps between components, and `local`."""
    chances = np.zeros((2, len(BETAS), len(Kernel)))
    chances[..., [Kernel.INDEPENDENT, Kernel.DETERMINISTIC]] = 0.5
    reference = mixtures.misfit(dtype)
    given = {"chances": chances, "has_gradient": False, "local": local}
    return build(mixtures.logdensity, reference, BETAS, 0.9, **given, **more)


class Position(NamedTuple):
    position: jax.Array


class Rate(NamedTuple):
    acceptance_rate: float


class Shifted:
    """Goes a step to the right, whatever the density, which it asks for twice."""

    def __init__(self, logdensity_fn, step_size):
        self.logdensity_fn, self.step_size = logdensity_fn, step_size

    def init(self, position):
        assert self.logdensity_fn(position).shape == ()
        return Position(position)

    def step(self, key, state):
        there = state.position + self.step_size * jnp.array([1.0, 0.0])
        return Position(there + 0 * self.logdensity_fn(there)), Rate(0.97)


def test_a_step_is_in_the_units_of_a_component_and_counted():
    """Of both halves and rungs: a jump, the sampler's two densities, and the one at the end."""
    algorithm = system(Shifted)
    points = np.broadcast_to(np.float32([0.5, -0.2]), (50, 2, 2))

    def one(key, points):
        state = algorithm.init(points[-1])
        keys, betas = jax.random.split(key, 2), jnp.float32(BETAS)
        moved, rates, aim, more = algorithm._locally(
            Shifted, lambda x: x, keys, state.points, betas, state.log_steps
        )
        return moved.x - state.points.x, rates, aim, more, algorithm.step(key, state)[1]

    keys = jax.random.split(jax.random.key(0), 50)
    shifts, rates, aim, more, info = jax.jit(jax.vmap(one))(keys, jnp.asarray(points))
    columns = np.float32(0.9) * np.asarray(mixtures.misfit().factors)[..., 0]
    nearest = np.abs(np.asarray(shifts)[:, :, None] - columns).max(axis=-1)
    assert np.all(nearest.min(axis=-1) < 1e-5)
    assert len(np.unique(np.argmin(nearest, axis=-1))) > 1
    np.testing.assert_allclose(rates, 0.97, rtol=1e-6)
    assert set(np.unique(aim)) == {np.float32(0.57)}
    assert set(np.unique(more)) == {2 * 3}
    assert set(np.unique(info.num_evaluations)) == {2 * 2 * (1 + 3)}


def test_its_step_size_is_adapted_while_that_is_wanted():
    @jax.jit
    def after_a_step(algorithm):
        state = algorithm.init(jnp.zeros(2, jnp.float32))
        return jnp.exp(algorithm.step(jax.random.key(0), state)[0].log_steps)

    frozen, adapted = (after_a_step(system(Shifted, gain=gain)) for gain in (0.0, 1.0))
    np.testing.assert_allclose(frozen, 0.9, rtol=1e-6)
    assert np.all(adapted > 1.2)  # as 0.97 is more than is good


@pytest.mark.parametrize("local", [3, lambda f: f])
def test_what_makes_no_sampler_is_refused(local):
    with pytest.raises(TypeError, match="`local` must be a function"):
        levymc.auto(FOUR, jax.random.key(0), STARTS, local=local)


def test_a_biased_sampler_is_refused():
    with pytest.raises(ValueError, match="`local` must make a sampler that is exact, got ula"):
        levymc.auto(FOUR, jax.random.key(0), STARTS, local=levymc.ula)


def maker(name):
    if name == "mafla":
        return lambda f, step_size: levymc.mafla(f, 0.6 * step_size)
    blackjax = pytest.importorskip("blackjax")
    if name == "mala":
        return lambda f, step_size: blackjax.mala(f, step_size)
    if name == "walk":
        widths = blackjax.mcmc.random_walk.normal
        return lambda f, step_size: blackjax.additive_step_random_walk(
            f, widths(step_size * jnp.ones(2))
        )
    return lambda f, step_size: blackjax.nuts(f, step_size, jnp.ones(2), max_num_doublings=3)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mafla", "mala", "nuts", "walk"])
def test_the_law_of_every_rung_is_kept(name):
    """From exact draws of two rungs, three steps of jumps, local moves and swaps.

    DKW at 2e4 systems and 1e-8 detects 0.044 in the CDF of the target, and 0.087 below it.
    """
    rng = np.random.default_rng(7)
    # In float32, too, where BlackJAX's samplers work in float64.
    algorithm = system(maker(name))
    found, _ = after(algorithm, jax.random.key(1), exact(rng, BETAS), 3)
    assert_kept(found, BETAS, rng)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mala", "nuts"])
def test_auto_weighs_modes_by_its_steps(name):
    """To 0.1, six standard errors of the weights and more; the budget is kept to 2 %."""
    result = levymc.auto(
        FOUR, jax.random.key(0), STARTS, budget=20_000, local=maker(name), progress=False
    )
    np.testing.assert_allclose(result.modes.weight, [0.4, 0.3, 0.2, 0.1], atol=0.1)
    assert abs(result.log_evidence.value) < 6 * result.log_evidence.standard_error  # ∫ φ = 1
    assert abs(sum(result.evaluations.values()) / 20_000 - 1) < 0.02
    assert f"local moves by {name}" in result.report


@pytest.mark.nightly
def test_one_mode_is_left_to_it():
    """A bent ridge that no mixture fits goes to NUTS after a map, unless another is given."""

    def ridge(x):
        return -(x[0] ** 2) / 2 - 4 * (x[1] - x[0] ** 2) ** 2

    starts = jnp.ones((4, 2), jnp.float32)
    result = levymc.auto(
        ridge, jax.random.key(0), starts, budget=20_000, local=maker("mala"), progress=False
    )
    assert result.algorithm == "tempered"
    assert "local moves by mala" in result.report


@pytest.mark.nightly
def test_a_stored_run_goes_on_with_the_same_sampler_only(tmp_path):
    given = {"budget": 6000, "store": tmp_path / "run", "progress": False}
    first, again = (
        levymc.auto(FOUR, jax.random.key(0), STARTS, local=maker("mafla"), **given)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.positions, again.positions)
    assert first.report == again.report
    for other in (None, lambda f, step_size: levymc.mafla(f, 0.7 * step_size)):
        with pytest.raises(StoreError, match="local"):
            levymc.auto(FOUR, jax.random.key(0), STARTS, local=other, **given)
