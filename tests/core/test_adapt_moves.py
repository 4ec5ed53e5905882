"""Every kernel that a tempered system is frozen with, by itself: detailed balance.

Chains start from exact draws of q^{1−β} φ^β, where q does not fit φ, and make one step.  False
alarms: exact binomial tests of 190 pairs of cells, Bonferroni, at 1e-8 each; 11 in the file.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import balance_p_value
from tests.core import mixtures

from levymc.adapt import _moves
from levymc.adapt._moves import Axes, Kernel, Point
from levymc.adapt._tempered import _swapped, build

FALSE_ALARM = 1e-8
COUNT = 50_000
BETAS = (1.0, 0.4)
TURN = np.array([[np.cos(0.5), -np.sin(0.9)], [np.sin(0.5), np.cos(0.9)]])  # columns, askew


def axes(basis):
    """Few values, unevenly placed, so that the kernel estimate is far from flat."""
    values = np.array([[-0.5, 0.1, 0.4, 3.1], [0.0, 0.2, 1.7, 1.9]])
    parts = (basis, np.linalg.inv(basis), values, np.array([0.8, 0.5]), np.array([0.0, -0.7]))
    return Axes(*(jnp.asarray(part, jnp.float32) for part in parts))


def system(kernel, beta, basis=None):
    """One rung at β that makes one kind of move only."""
    chances = np.zeros((1, 1, len(Kernel)))
    chances[0, 0, kernel] = 1
    along = axes(np.eye(2) if basis is None else basis)
    return build(
        mixtures.logdensity,
        mixtures.misfit(),
        np.array([beta]),
        1.1,
        chances=chances,
        axes=along,
    )


def one_step(algorithm, key, starts):
    def step(key, start):
        state, info = algorithm.step(key, algorithm.init(start))
        return state.position, info.acceptance_rate

    return jax.vmap(step)(jax.random.split(key, len(starts)), starts)


compiled = jax.jit(one_step)  # once for all kinds of moves: their chances are inputs


@pytest.fixture(scope="module")
def starts():
    rng = np.random.default_rng(3)
    return {beta: mixtures.tempered_draws(rng, COUNT, beta).astype(np.float32) for beta in BETAS}


def p_value_of(algorithm, begun, step=compiled):
    ends, rates = step(algorithm, jax.random.key(int(algorithm.log_chances.argmax())), begun)
    ends = np.asarray(ends)
    found = balance_p_value(mixtures.cells(begun), mixtures.cells(ends), mixtures.NUM_CELLS)
    return found, float(np.mean(rates))


KERNELS = [
    (Kernel.LOCAL, None),
    (Kernel.INDEPENDENT, None),
    (Kernel.DETERMINISTIC, None),
    (Kernel.ALONG_AXIS, None),
    (Kernel.ALONG_AXIS, TURN),
]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("kernel", "basis"), KERNELS)
@pytest.mark.often("0-None-1.0", "1-None-1.0", "2-None-1.0", "3-None-1.0", "3-basis4-0.4")
def test_every_move_satisfies_detailed_balance(kernel, basis, beta, starts):
    """A pair of cells with 2000 moves shows an asymmetry of 60 to 40; defects: see below."""
    p_value, rate = p_value_of(system(kernel, beta, basis), starts[beta])
    assert 0.05 < rate < 0.95  # the test has something to do
    assert p_value > FALSE_ALARM


# Broken on purpose.


def broken(monkeypatch, name, change):
    """A move one of whose parts gives something else."""
    right = getattr(_moves, name)
    monkeypatch.setattr(_moves, name, lambda *given: change(right(*given)))


def assert_all_seen(kernels, starts, betas=BETAS):
    step = jax.jit(lambda *given: one_step(*given))
    for kernel, basis in kernels:
        for beta in betas:
            p_value, _ = p_value_of(system(kernel, beta, basis), starts[beta], step)
            assert p_value < FALSE_ALARM, (kernel, beta, p_value)


@pytest.mark.nightly
def test_missing_shares_of_components_are_seen(monkeypatch, starts):
    """r_i(y) / r_i(x) left out."""
    broken(monkeypatch, "_share", lambda share: 0 * share)
    assert_all_seen([(Kernel.LOCAL, None), (Kernel.DETERMINISTIC, None)], starts)


@pytest.mark.nightly
def test_missing_volumes_and_densities_of_kernels_are_seen(monkeypatch, starts):
    """|L_j| / |L_i| of leaps left out, and the kernel estimate's densities along axes."""
    broken(monkeypatch, "_deterministic", lambda leap: leap._replace(log_volume=0.0))
    broken(monkeypatch, "_along_axis", lambda along: along._replace(log_ratio=0 * along.log_ratio))
    assert_all_seen([KERNELS[2], KERNELS[3], KERNELS[4]], starts)


@pytest.mark.nightly
def test_missing_ratios_of_proposals_are_seen(monkeypatch, starts):
    """Metropolis in the place of Metropolis and Hastings."""
    right = _moves._decide
    monkeypatch.setattr(
        _moves,
        "_decide",
        lambda uniform, kind, point, there, beta, log_ratio, is_far: right(
            uniform, kind, point, there, beta, 0 * log_ratio, is_far
        ),
    )
    assert_all_seen([KERNELS[1], KERNELS[2], KERNELS[3]], starts, betas=(1.0,))


# Swaps: of the pair of points, from (A, B) to (B, A) as often as back.


@partial(jax.jit, static_argnums=3)
def swap(uniforms, low, high, sign):
    betas = jnp.asarray([BETAS[1], BETAS[0]], jnp.float32)
    reference = mixtures.misfit()

    def one(uniform, low, high):
        x = jnp.stack([low, high])
        values = jax.vmap(mixtures.logdensity)(x)
        logs = jax.vmap(reference.logdensity)(x)
        points = Point(x, sign * values, x, values < jnp.inf, sign * logs, x, x)
        fresh = jnp.zeros(2, bool)
        found, _, rates = _swapped(uniform, betas, points, fresh, jnp.ones(1, bool))
        return found.x, rates

    return jax.vmap(one)(uniforms, low, high)


def swap_p_value(starts, sign):
    rng = np.random.default_rng(0)
    uniforms = rng.random((COUNT, 1), np.float32)
    ends, rates = swap(uniforms, starts[BETAS[1]], starts[BETAS[0]], sign)
    before = [mixtures.cells(starts[beta]) for beta in (BETAS[1], BETAS[0])]
    after = np.moveaxis(mixtures.cells(np.asarray(ends)), -1, 0)
    # Neighbouring cells joined: pairs of 20 cells would be too many.
    joined = [(low // 4) * 5 + high // 4 for low, high in (before, after)]
    return balance_p_value(*joined, 25), float(np.mean(rates))


def test_swaps_satisfy_detailed_balance(starts):
    """Of pairs of points, in 25 cells; a wrong sign is seen."""
    p_value, rate = swap_p_value(starts, 1)
    assert 0.05 < rate < 0.95
    assert p_value > FALSE_ALARM
    assert swap_p_value(starts, -1)[0] < FALSE_ALARM
