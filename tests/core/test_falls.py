"""Tops whose curvature tells no width: kinks, edges, and flat ones.  Deterministic but for one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import adapt
from levymc.adapt._explore import TOO_HEAVY
from levymc.adapt._falls import FALL, climbed, fallen, seen_covariance
from levymc.adapt._target import Target

FAR = 12.0
LAWS = {  # with masses of one around zero, but for what the edge cuts off of the other mode
    "kink": lambda x: -jnp.sum(jnp.abs(x)) - x.size * jnp.log(2.0),
    "edge": lambda x: (
        jnp.where(x[0] >= 0, jnp.log(3.0) - 3 * x[0], -jnp.inf) + normal(x[1:], jnp.zeros(()))
    ),
    "flat": lambda x: -jnp.sum(x**8) - x.size * jnp.log(1.883486),
    "very flat": lambda x: -jnp.sum(x**4) - x.size * jnp.log(1.812805),
}


def normal(x, mean):
    return -jnp.sum((x - mean) ** 2) / 2 - x.size / 2 * jnp.log(2 * jnp.pi)


def beside(kind):
    """Half of the mass is that of the law, half that of a normal one."""

    def logdensity(x):
        law = LAWS[kind](x)
        both = jnp.logaddexp(law, normal(x, FAR)) - jnp.log(2.0)
        return jnp.where(x[0] >= 0, both, -jnp.inf) if kind == "edge" else both

    return logdensity


def starts_in_both(kind, dimension):
    near = 0.3 * jax.random.normal(jax.random.key(1), (4, dimension))
    near = jnp.abs(near) + 0.05 if kind == "edge" else near
    near = near.at[0].set(0.0) if kind == "very flat" else near
    return jnp.concatenate([near, FAR + jax.random.normal(jax.random.key(2), (4, dimension))])


@pytest.mark.parametrize("dimension", [2, 6])
@pytest.mark.parametrize("kind", LAWS)
def test_modes_without_curvature_are_found_and_hide_no_other(kind, dimension):
    """Of a kink or an edge there was no mode, and beside a flat top no other, in 6 dimensions."""
    starts = starts_in_both(kind, dimension)
    modes = adapt.explore(beside(kind), jax.random.key(0), starts, budget=6000)
    assert modes.num_modes == 2
    place = int(np.argmin(np.linalg.norm(modes.location, axis=1)))
    assert np.linalg.norm(modes.location[place]) < 1.5
    off = 0.6 * dimension if kind in ("kink", "edge") else TOO_HEAVY + 1
    assert abs(modes.log_mass[place] - np.log(0.5)) < off
    assert modes.log_mass[1 - place] == pytest.approx(np.log(0.5), abs=0.01)
    assert modes.times_found.sum() + modes.num_lost == modes.num_relaxations


def test_widths_are_where_log_density_has_fallen_by_a_half():
    laws = [
        (lambda t: -t * t / 2, 1.0, False),
        (lambda t: -jnp.abs(t) / 3, 1.5, True),
        (lambda t: -((t / 50) ** 4), 50 * FALL**0.25, False),
        (lambda t: jnp.where(t >= 0, -2 * t, -jnp.inf), 0.25, True),
        (lambda t: -jnp.log1p(t * t), np.sqrt(np.expm1(FALL)), False),
    ]
    for law, width, is_sharp in laws:
        target = Target(lambda x, law=law: law(x[0]) - x[1] ** 2 / 8, jnp.zeros(2))
        for length in (100.0, 1e4):
            found = fallen(target, np.zeros(2), 0.0, length * np.eye(2))
            np.testing.assert_allclose(length * found.widths, [width, 2.0], rtol=0.1)
            assert found.is_sharp == is_sharp


def test_a_scale_that_nobody_knows_is_seen():
    scales = np.array([1e-5, 1.0, 1e6])
    target = Target(lambda x: -jnp.sum((x / scales) ** 4), jnp.zeros(3))
    widths = np.sqrt(np.diag(seen_covariance(target, np.zeros(3), 0.0)))
    np.testing.assert_allclose(widths / scales, FALL**0.25, rtol=0.1)


def test_a_climb_along_axes_ends_at_the_kink():
    target = Target(lambda x: -jnp.sum(jnp.abs(x - 3.0)), jnp.zeros(4))
    found = climbed(target, np.zeros(4), -12.0, 16 * np.eye(4))
    assert found.is_sharp
    assert found.value > -0.5
    np.testing.assert_allclose(found.point, 3.0, atol=0.3)


def test_the_slope_of_a_smooth_ridge_is_no_top():
    def banana(x):
        return -(x[0] ** 2) / 2 - (x[1] - x[0] ** 2) ** 2 / 0.0002

    target = Target(banana, jnp.zeros(2))
    assert not fallen(target, np.array([2.0, 4.0]), -2.0, 16 * np.eye(2)).is_sharp


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["kink", "edge", "flat", "very flat"])
def test_auto_weighs_modes_without_curvature(kind):
    """One of the two had no draw, and there was no warning.

    Draws are worth some 1000 at least: by Hoeffding's inequality fewer than 1e-60 of all runs are
    beyond .2 and .8.  It detects a mode that is lost.
    """
    starts = starts_in_both(kind, 3)
    run = levymc.auto(beside(kind), jax.random.key(0), starts, budget=20_000, progress=False)
    assert 0.2 < np.mean(np.asarray(run.positions)[..., 1] > FAR / 2) < 0.8
    assert abs(run.log_evidence.value) < 0.3
