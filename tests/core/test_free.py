"""Modes without gradients: which components of a mixture are one."""

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc.adapt._free import hills_of
from levymc.adapt._ladder import Draws
from levymc.adapt._reference import Fit
from levymc.adapt._target import Target


def two_hills(x):
    return jnp.logaddexp(-jnp.sum((x - 3) ** 2) / 2, -jnp.sum((x + 3) ** 2) / 2)


def hills(means, points=None, most=1000):
    """Of components with unit covariances, each of which holds some of the draws."""
    means = np.array(means)[:, None]
    count = len(means)
    fit = Fit(
        np.ones(count) / count,
        means,
        np.ones((count, 1, 1)),
        np.full(count, 5.0),
        np.arange(count),
    )
    target = Target(two_hills, jnp.zeros(1))
    points = means if points is None else np.array(points)[:, None]
    values = target.values(points)
    target.evaluations = 0
    found = hills_of(target, fit, Draws(points, values, values), np.arange(count), most)
    return found, target.evaluations


def test_components_without_a_dip_between_them_are_one():
    found, spent = hills([2.5, 3.1, -3.0, 3.6])
    first, second, third, fourth = found.of_component
    assert first == second == fourth != third
    assert spent <= 4 + 7 * 5
    np.testing.assert_array_equal(np.sort(found.location[:, 0]), [-3.0, 3.1])


def test_a_component_in_the_valley_does_not_join_the_hills():
    found, _ = hills([3.0, -3.0, 0.1])
    assert len(found.location) == 2
    assert found.of_component[2] == found.of_component[0]


def test_a_component_is_where_its_best_draw_is():
    found, _ = hills([3.0, 0.0], points=[3.0, -3.0])
    np.testing.assert_array_equal(np.sort(found.location[:, 0]), [-3.0, 3.0])


def test_nothing_is_called_a_mode_without_the_budget_to_tell():
    assert hills([2.5, 3.1, -3.0], most=10)[0] is None


def test_a_normal_law_has_one_mode_without_a_gradient_too():
    result = levymc.auto(
        lambda x: -jnp.sum(x**2) / 2,
        jax.random.key(0),
        jnp.zeros((4, 2), jnp.float32),
        budget=20_000,
        gradient=False,
        progress=False,
    )
    assert result.modes.weight.tolist() == [1.0]
    assert result.modes.times_found.tolist() == [0]
    assert np.all(np.isnan(result.modes.log_mass))
    assert "as `gradient=False` was given" in result.report
    assert "no walk from the starts came to" in result.report
    assert "found 1 time" not in result.report
    assert "Laplace" not in result.report
    assert abs(sum(result.evaluations.values()) / 20_000 - 1) < 0.02
